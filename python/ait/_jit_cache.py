"""What the JIT keeps on disk: a folder for each module and form of call, named by a hash of all that the result depends on.

    CACHE/<hash>/entry.json, 0.ait, 1.ait …      CACHE/trials.sqlite: the tuner's record

Entries are written beside and renamed: a reader sees a whole one or none."""
from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import types
import typing

from ait import _core, _tree

Any = typing.Any
VERSION = 1


def default_folder() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "ait", "jit")


# ---- what a result depends on --------------------------------------------------------------------------------------------------------------
def _code(h: Any, code: types.CodeType, seen: set[Any], names: dict[str, Any], depth: int) -> None:
    h.update(code.co_code)
    h.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _code(h, constant, seen, names, depth)
        else:
            h.update(repr(constant).encode() if not isinstance(constant, frozenset) else repr(sorted(map(repr, constant))).encode())
    for name in code.co_names:  # helper functions and plain values of the module that the code stands in
        value = names.get(name)
        if isinstance(value, types.FunctionType) and depth < 4 and not (value.__module__ or "").startswith("torch"):
            _function(h, value, seen, depth + 1)
        elif value is None or type(value) in (bool, int, float, str):
            h.update(f"{name}={value!r}".encode())


def _function(h: Any, fn: types.FunctionType, seen: set[Any], depth: int) -> None:
    if fn.__code__ in seen:
        return
    seen.add(fn.__code__)
    _code(h, fn.__code__, seen, fn.__globals__, depth)
    h.update(repr([d for d in fn.__defaults__ or () if type(d) in (bool, int, float, str, type(None))]).encode())


def _class(h: Any, cls: type, seen: set[Any]) -> None:
    for base in cls.__mro__:
        if base in seen or base is object or base.__module__.partition(".")[0] == "torch":
            continue
        seen.add(base)
        h.update(f"{base.__module__}.{base.__qualname__}".encode())
        for name, member in sorted(vars(base).items(), key=lambda item: item[0]):
            fn = getattr(member, "__func__", member)
            if isinstance(fn, types.FunctionType):
                h.update(name.encode())
                _function(h, fn, seen, 0)


def _plain(value: Any, depth: int = 0) -> Any:
    """A value's plain part, as a text that is the same in the next run."""
    if value is None or type(value) in (bool, int, float, str, bytes, complex):
        return repr(value)
    if depth > 4:
        return "..."
    if isinstance(value, (list, tuple)) and len(value) < 256:
        return [type(value).__name__, *(_plain(v, depth + 1) for v in value)]
    if isinstance(value, dict) and len(value) < 1024:
        return ["dict", *([str(k), _plain(v, depth + 1)] for k, v in value.items())]
    if type(value).__module__ == "torch":
        return str(value) if type(value).__name__ in ("dtype", "device", "Size", "memory_format") else type(value).__name__
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        return f"{value.__module__}.{value.__qualname__}"
    if type(value).__name__.endswith(("Config", "config")) and hasattr(value, "__dict__"):
        return [type(value).__qualname__, _plain({k: v for k, v in vars(value).items() if not k.startswith("_")}, depth + 1)]
    return f"{type(value).__module__}.{type(value).__qualname__}"


_MODULE_OWN = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "forward"}


def digest_of(module: Any, backends: typing.Sequence[str] | None) -> str:
    """Of a module's code, structure, settings and weights, of the machine, and of the versions."""
    from ait._persist import fingerprint

    h = hashlib.sha256()
    seen: set[Any] = set()
    for name, m in module.named_modules():
        _class(h, type(m), seen)
        settings = {k: v for k, v in vars(m).items() if k not in _MODULE_OWN and not k.endswith("hooks") and not k.startswith("_forward")
                    and not k.startswith("_backward") and not k.startswith("_state_dict") and not k.startswith("_load_state")}
        h.update(json.dumps([name, f"{type(m).__module__}.{type(m).__qualname__}", _plain(settings)]).encode())
    h.update(str(fingerprint(module)).encode())
    h.update(json.dumps([VERSION, machine(), versions(), list(backends or [])]).encode())
    return h.hexdigest()


def digest_with(digest: str, key: Any) -> str:
    text = json.dumps([_tree.to_json(key.spec), [str(d) for d in key.dtypes], list(key.ranks), key.autocast])
    return hashlib.sha256((digest + text).encode()).hexdigest()[:40]


def machine() -> list[Any]:
    facts: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            for line in f:
                name, _, value = line.partition(":")
                if name.strip() in ("model name", "flags", "Features", "CPU part"):
                    facts.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    torch = sys.modules["torch"]
    return [os.uname().machine, sorted(facts.items()), len(os.sched_getaffinity(0)), torch.get_num_threads()]


def versions() -> list[str]:
    torch = sys.modules["torch"]
    library = os.stat(_core.__file__)
    found = [_core.__version__, f"{library.st_size}-{library.st_mtime_ns}", str(torch.__version__), sys.version.partition(" ")[0]]
    from ait.backend import installed

    have = installed()
    return found + [f"{n} {have[n]}" for n in ("onnxruntime", "openvino", "torchao", "transformers", "diffusers") if n in have]


# ---- entries ---------------------------------------------------------------------------------------------------------------------------------
@dataclasses.dataclass
class Entry:
    folder: pathlib.Path
    files: list[str]
    reason: str  # why the original is kept; "": it is not
    descend: bool
    proven: bool  # an earlier run found it faster on its own calls

    def load(self) -> list[Any]:
        """What the router takes."""
        from ait._calls import form_of
        from ait._modules import Key
        from ait._persist import _dtype
        from ait._router import Tuned
        from ait._tuning import load_runner
        from ait.model import Model

        out = []
        for name in self.files:
            path = self.folder / name
            form = form_of(Model(path))
            key = Key(form.spec, tuple(_dtype(d) for d in form.dtypes), form.ranks, form.autocast)
            out.append(Tuned(key, form.shape, form.out_spec, load_runner(path), path))
        return out


def find(cache: pathlib.Path, key: str) -> Entry | None:
    folder = cache / key
    try:
        entry = json.loads((folder / "entry.json").read_text())
        if entry["version"] != VERSION:
            return None
        files = [str(n) for n in entry["files"]]
        if any("/" in n or not (folder / n).is_file() for n in files) or not (files or entry["reason"]):
            return None
        return Entry(folder, files, str(entry["reason"]), bool(entry["descend"]), bool(entry["proven"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def put(cache: pathlib.Path, key: str, files: typing.Sequence[pathlib.Path], reason: str = "", descend: bool = False, proven: bool = False) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=".new-", dir=cache))
    try:
        for i, f in enumerate(files):
            shutil.move(str(f), folder / f"{i}.ait")
        entry = {"version": VERSION, "files": [f"{i}.ait" for i in range(len(files))], "reason": reason, "descend": descend, "proven": proven}
        (folder / "entry.json").write_text(json.dumps(entry))
        old = cache / key
        if old.exists():
            aside = pathlib.Path(tempfile.mkdtemp(prefix=".old-", dir=cache))
            old.rename(aside / "entry")
            shutil.rmtree(aside, ignore_errors=True)
        folder.rename(old)
    finally:
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)


def put_reason(cache: pathlib.Path, key: str, reason: str, descend: bool) -> None:
    try:
        put(cache, key, [], reason, descend)
    except OSError:
        pass  # no cache: the next run finds out again


def prove(cache: pathlib.Path, source: Any, reason: str | None) -> None:
    """What the script's own calls showed. reason: why the original is kept; None: it is faster."""
    path = pathlib.Path(source).parent / "entry.json"
    try:
        entry = json.loads(path.read_text())
        entry["proven"] = reason is None
        if reason is not None:
            entry["reason"] = reason
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(entry))
        temporary.replace(path)
    except (OSError, ValueError):
        pass


# ---- samples for a job ---------------------------------------------------------------------------------------------------------------------
_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8",
          "uint8": "U8", "bool": "BOOL", "uint16": "U16", "uint32": "U32", "uint64": "U64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}


def write_tensors(path: pathlib.Path, names: typing.Sequence[str], tensors: typing.Sequence[Any]) -> None:
    """As .safetensors, which can hold bfloat16."""
    torch = sys.modules["torch"]
    header: dict[str, Any] = {}
    bodies = []
    at = 0
    for name, t in zip(names, tensors):
        dtype = str(t.dtype).removeprefix("torch.")
        if dtype not in _NAMES:
            raise _core.Unsupported(f"an argument of dtype {dtype} cannot be given to the tuner")
        body = t.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""
        header[name] = {"dtype": _NAMES[dtype], "shape": list(t.shape), "data_offsets": [at, at + len(body)]}
        at += len(body)
        bodies.append(body)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(bodies))
