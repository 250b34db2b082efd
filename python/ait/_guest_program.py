"""Exported programs on the way through an artifact: without weights, which the artifact has anyway, and without sample inputs, which are the
user's data and a pickle. And the same callable in the process that loads a plan, and in a trial's worker."""
from __future__ import annotations

import ctypes
import io
import json
import re
import threading
import typing
import warnings
import zipfile

from ait import _core, backend

Any = typing.Any
_WEIGHTS = "data/weights/model_weights_config.json"
_HEAD = b"\n"


# ---- payloads: a line of JSON, then bytes -------------------------------------------------------------------------------------------------
def payload(kind: str, body: bytes, version: str) -> bytes:
    return json.dumps({"kind": kind, "version": version}).encode() + _HEAD + body


def open_payload(data: Any) -> tuple[dict[str, Any], bytes]:
    head, _, body = bytes(data).partition(_HEAD)
    try:
        facts = json.loads(head)
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or facts.get("kind") not in ("program", "saved"):
        raise _core.InvalidModel("a guest's blob is damaged")
    return facts, body


# ---- .pt2 without weights -------------------------------------------------------------------------------------------------------------------
def _root(archive: zipfile.ZipFile) -> str:
    for name in archive.namelist():
        if name.endswith(_WEIGHTS):
            return name[: -len(_WEIGHTS)]
    raise _core.Unsupported("the exported program is of an older form, without data/weights")


def strip(path: str, names: typing.Collection[str]) -> bytes:
    """The archive without the bytes of the named weights and without sample inputs."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as stripped:
        root = _root(archive)
        config = json.loads(archive.read(root + _WEIGHTS))["config"]
        for name in [n for n in archive.namelist() if n.endswith("_config.json")]:
            if any(entry.get("use_pickle") for entry in json.loads(archive.read(name)).get("config", {}).values()):
                raise _core.Unsupported("the exported program holds a weight as a pickle")
        kept = {f"{root}data/weights/{e['path_name']}" for n, e in config.items() if n not in names}
        for info in archive.infolist():
            inside = info.filename[len(root):]
            weight = inside.startswith("data/weights/") and not inside.endswith("_config.json")
            if inside.startswith("data/sample_inputs/") or (weight and info.filename not in kept):
                continue
            stripped.writestr(zipfile.ZipInfo(info.filename, (1980, 1, 1, 0, 0, 0)), archive.read(info), zipfile.ZIP_DEFLATED)
    return out.getvalue()


# What torch.export.load makes of a program's texts goes through eval (sizes) and getattr from modules (operators): an artifact may come from
# anywhere, so only what torch.export itself writes is let through.
_NAMES = re.compile(r"[su]\d+|zuf\d+|FloorDiv|ModularIndexing|Where|PythonMod|Mod|CleanDiv|CeilToInt|FloorToInt|CeilDiv|LShift|RShift|PowByNatural|"
                    r"FloatPow|FloatTrueDiv|IntTrueDiv|Max|Min|TruncToInt|TruncToFloat|RoundToInt|RoundDecimal|ToFloat|Identity|Eq|Ne|Lt|Le|Gt|Ge|"
                    r"And|Or|Not|True|False|int_oo|oo|Integer|Symbol|positive|nonnegative|integer|OpaqueUnaryFn_\w+")
_EXPRESSION = re.compile(r"[\w\s+*/%(),<>=.~&|-]*")
_TARGET = re.compile(r"(torch\.ops\.(aten|prim|prims|higher_order|quantized|quantized_decomposed|torchvision|onnx|onnx_symbolic)\.\w+(\.\w+)*"
                     r"|_operator\.(getitem|add|sub|mul|floordiv|truediv|mod|pow|neg|pos|lt|le|gt|ge|eq|ne|and_|or_|not_|abs|lshift|rshift)"
                     r"|math\.(ceil|floor|sqrt|trunc|log2)|torch\.sym_\w+|torch\._sym_\w+)")


def _is_expression(text: str) -> bool:
    text = re.sub(r"'([su]\d+|zuf\d+)'", r"\1", text)  # Symbol('s77', integer=True)
    return bool(_EXPRESSION.fullmatch(text)) and all(_NAMES.fullmatch(n) for n in re.findall(r"[A-Za-z_]\w*", text))


def _check_texts(value: Any) -> None:
    """Raises for a program that torch.export did not write."""
    stack = [value]
    while stack:
        v = stack.pop()
        if isinstance(v, list):
            stack.extend(v)
        elif isinstance(v, dict):
            target, expression = v.get("target"), v.get("expr_str")
            if isinstance(target, str) and "inputs" in v and not _TARGET.fullmatch(target.lstrip("#")):
                raise _core.InvalidModel(f"the blob's program calls '{target[:80]}', which no exported program does")
            if isinstance(expression, str) and not _is_expression(expression):
                raise _core.InvalidModel(f"the blob's program has '{expression[:80]}' for a size")
            stack.extend(v.values())


def _check_archive(archive: zipfile.ZipFile) -> None:
    for name in archive.namelist():
        if name.endswith("_config.json") and any(e.get("use_pickle") for e in json.loads(archive.read(name)).get("config", {}).values()):
            raise _core.InvalidModel("the blob's program holds a pickle")
        if "/models/" in "/" + name and name.endswith(".json"):
            _check_texts(json.loads(archive.read(name)))


def _storages(config: dict[str, Any], weights: dict[str, Any]) -> dict[str, bytes]:
    """Bytes of each storage, with the tensors that lie in it put where they were."""
    import torch

    groups: dict[str, list[tuple[int, Any]]] = {}
    for name, entry in config.items():
        if name in weights:
            offset = entry["tensor_meta"]["storage_offset"]["as_int"]
            groups.setdefault(entry["path_name"], []).append((offset * weights[name].element_size(), weights[name]))
    out = {}
    for path, members in groups.items():
        extents = [0 if t.numel() == 0 else (sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1) * t.element_size() for _, t in members]
        storage = torch.zeros(max(o + e for (o, _), e in zip(members, extents)), dtype=torch.uint8)
        for (offset, t), extent in zip(members, extents):
            if extent:
                part = storage[offset : offset + extent]
                view = torch.frombuffer(part.numpy(), dtype=t.dtype) if offset % t.element_size() == 0 else part.view(t.dtype)
                view.as_strided(t.shape, t.stride()).copy_(t)
        out[path] = storage.numpy().tobytes()
    return out


def restore(stripped: bytes, weights: dict[str, Any]) -> Any:
    """The exported program, with these tensors as its weights."""
    import torch

    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(stripped)) as archive, zipfile.ZipFile(out, "w") as whole:
        root = _root(archive)
        _check_archive(archive)
        for info in archive.infolist():
            if not info.filename.startswith(f"{root}data/sample_inputs/"):
                whole.writestr(info.filename, archive.read(info))
        for model in [n for n in archive.namelist() if n.startswith(f"{root}models/") and n.endswith(".json")]:
            whole.writestr(f"{root}data/sample_inputs/{model.rpartition('/')[2][:-5]}.pt", b"")
        for path, data in _storages(json.loads(archive.read(root + _WEIGHTS))["config"], weights).items():
            whole.writestr(f"{root}data/weights/{path}", data)
    out.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.load(out)


# ---- calls in flat form -----------------------------------------------------------------------------------------------------------------------
def _is_flat(spec: Any) -> bool:
    """((leaf, ...), {})"""
    arguments, keywords = spec.children() if callable(getattr(spec, "children", None)) else spec.children_specs
    children = arguments.children() if callable(getattr(arguments, "children", None)) else arguments.children_specs
    return keywords.num_leaves == 0 and all(c.is_leaf() for c in children)


def flat(program: Any, module: Any = None) -> Any:
    import torch

    if module is None:
        module = program.module(check_guards=False)
    spec = program.call_spec.in_spec
    if spec is None or _is_flat(spec):
        return module
    unflatten = torch.utils._pytree.tree_unflatten

    def call(*inputs: Any) -> Any:
        args, kwargs = unflatten(list(inputs), spec)
        return module(*args, **kwargs)

    return call


def leaves(result: Any) -> list[Any]:
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    if type(result) in (tuple, list) and all(isinstance(r, torch.Tensor) for r in result):
        return list(result)
    return list(torch.utils._pytree.tree_leaves(result))


# ---- one loaded guest --------------------------------------------------------------------------------------------------------------------------
class Loaded:
    """A backend that builds itself with its first call. Thread-safe: calls take turns."""

    def __init__(self, cls: type[backend.Backend], options: str, data: Any, weights: typing.Callable[[], dict[str, Any]]) -> None:
        self.object = cls(**dict(pair.split("=", 1) for pair in options.split(",") if pair))
        self.facts, body = open_payload(data)
        self._body: bytes | None = body
        self._weights = weights
        self._lock = threading.Lock()

    def build(self, inputs: tuple[Any, ...]) -> None:
        assert self._body is not None
        if self.facts["kind"] == "saved":
            version = type(self.object).probe()
            if self.facts["version"] != version:
                raise _core.Unavailable(f"it was made by {self.facts['version']}, here is {version}")
            self.object.load(self._body)
        else:
            self.object.build(restore(self._body, self._weights()), [inputs])
        self._body = None

    def __call__(self, inputs: typing.Sequence[Any]) -> list[Any]:
        import torch

        with self._lock, torch.no_grad():
            if self._body is not None:
                self.build(tuple(inputs))
            return leaves(self.object(*inputs))


# ---- in the process that uses a plan ------------------------------------------------------------------------------------------------------------
_as_integer = {"bool": "uint8", "uint16": "int16", "uint32": "int32", "uint64": "int64"}


def tensor_of(memory: Any, dtype: str, sizes: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Any:
    """A tensor over the memory. strides None: contiguous."""
    import torch

    wanted = getattr(torch, dtype)
    if len(memory) == 0:
        return torch.empty(sizes, dtype=wanted)
    t = torch.frombuffer(memory, dtype=wanted)
    return t.view(sizes) if strides is None else t.as_strided(sizes, strides)


def make_here(name: str, options: str, data: Any, weights: list[tuple[str, tuple[Any, ...]]]) -> Any:
    """Called by the extension at the first run of a plan: the callable that serves its runs."""
    cls = backend.registered().get(name)
    if cls is None:
        raise _core.Unavailable(f"no backend '{name}' is registered here")
    tensors = {n: tensor_of(*t).clone() for n, t in weights}
    loaded = Loaded(cls, options, data, lambda: tensors)

    def call(inputs: list[Any]) -> tuple[list[Any], Any]:
        results = loaded([tensor_of(*v[:3]) if isinstance(v, tuple) else v for v in inputs])
        return describe(results)

    return call


def describe(results: list[Any]) -> tuple[list[Any], list[Any]]:
    """Results as the extension takes them, and what keeps their memory."""
    import torch

    values: list[Any] = []
    kept: list[Any] = []
    for r in results:
        if isinstance(r, torch.Tensor):
            r = r.detach().to("cpu").contiguous().resolve_conj().resolve_neg()
            kept.append(r)
            values.append((r.data_ptr(), str(r.dtype).removeprefix("torch."), tuple(r.shape)))
        elif r is None or isinstance(r, (bool, int, float)):
            values.append(r)
        else:
            raise TypeError(f"a result of {type(r).__name__}")
    return values, kept


def pointer_bytes(address: int, size: int) -> Any:
    """Memory as a buffer."""
    return (ctypes.c_char * size).from_address(address)
