"""`ait.save` and `ait.load` of modules and pipelines: one file, data only. Format: docs/python-pipelines.md."""
from __future__ import annotations

import collections.abc
import hashlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import typing
import zipfile
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from . import _core, _tree
from ._calls import Function, form_of
from .model import Model

FORMAT = 1
INDEX = "pipeline.json"
MAX_INDEX_BYTES = 64 << 20
_TIME = (1980, 1, 1, 0, 0, 0)
_SAMPLED_ABOVE = 64 << 20  # bytes of a tensor


# ---- weights by their fingerprint --------------------------------------------------------------------------------------------------------
def fingerprint(module: Any) -> str | None:
    """A hash of a module's parameters and buffers: names, dtypes, shapes, contents (of tensors above 64 MiB: a million elements spread over
    them). None where they are not in memory."""
    import torch

    h = hashlib.sha256()
    for name, t in sorted(list(module.named_parameters()) + list(module.named_buffers())):
        if t.device.type == "meta":
            return None
        flat = t.detach().reshape(-1)
        if t.is_conj():
            flat = flat.resolve_conj()
        if flat.numel() * flat.element_size() > _SAMPLED_ABOVE:
            flat = flat[:: max(1, flat.numel() // 1_000_000)]
        flat = flat.cpu().contiguous()
        h.update(f"{name} {str(t.dtype).removeprefix('torch.')} {list(t.shape)}\n".encode())
        h.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return h.hexdigest()


# ---- save ------------------------------------------------------------------------------------------------------------------------------
def save(pipeline: Any, path: "str | os.PathLike[str]") -> None:
    """Writes what was tuned into one file. A single module that was tuned as a whole, for one form of calls, becomes a plain .ait, which
    `ait.load(path)` runs without torch; everything else a file of several, which `ait.load(pipeline, path)` puts back."""
    from ._modules import is_module
    from ._tuning import routers_of

    routers = [r for r in routers_of(pipeline) if r.table]
    if not routers:
        raise ValueError("nothing in it is tuned: call ait.tune first")
    tuned = [(r, t) for r in routers for ts in r.table.values() for t in ts]
    target = pathlib.Path(path)
    if len(tuned) == 1 and is_module(pipeline) and tuned[0][0].part.module is pipeline:
        _atomically(target, lambda out: shutil.copyfile(tuned[0][1].source, out))
        return
    index: Dict[str, Any] = {"format": FORMAT, "reader": FORMAT, "ait": _core.__version__, "parts": []}
    files: List[Tuple[str, pathlib.Path]] = []
    for r in routers:
        part: Dict[str, Any] = {"name": r.part.name, "method": r.part.method, "class": _tree.class_path(type(r.part.module)),
                                "files": []}
        for t in (t for ts in r.table.values() for t in ts):
            name = f"parts/{len(files)}.ait"
            files.append((name, pathlib.Path(t.source)))
            part["files"].append({"name": name, "sha256": _sha256(t.source), "bytes": os.path.getsize(t.source)})
        index["parts"].append(part)
    _atomically(target, lambda out: _write(out, index, files))


def _atomically(target: pathlib.Path, write: typing.Callable[[str], Any]) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent or ".")
    os.close(handle)
    try:
        write(temporary)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _sha256(path: "str | os.PathLike[str]") -> str:
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while piece := f.read(1 << 20):
            h.update(piece)
    return h.hexdigest()


def _write(out: str, index: Dict[str, Any], files: Sequence[Tuple[str, pathlib.Path]]) -> None:
    """Stored entries with a fixed time: equal contents are equal bytes."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        text = json.dumps(index, indent=1, allow_nan=False).encode()
        z.writestr(_entry(INDEX, len(text)), text)
        for name, source in files:
            with open(source, "rb") as f, z.open(_entry(name, os.path.getsize(source)), "w") as to:
                shutil.copyfileobj(f, to, 1 << 20)


def _entry(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIME)
    info.external_attr, info.create_system, info.file_size = 0o644 << 16, 3, size
    return info


# ---- read ------------------------------------------------------------------------------------------------------------------------------
def is_pipeline_file(path: "str | os.PathLike[str]") -> bool:
    try:
        with open(path, "rb") as f:
            head = f.read(30 + len(INDEX))
    except OSError:
        return False  # whoever opens it as a model says why
    return head[:4] == b"PK\x03\x04" and head[30:] == INDEX.encode()


class Stored:
    """The tuned functions of a file, unpacked where they can be mapped; the folder goes when nothing uses it."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path = os.fspath(path)
        self.folder: Any = None
        self.parts: List[Tuple[str, str, List[pathlib.Path]]] = []  # name, method, files
        if is_pipeline_file(path):
            self._unpack()
        else:
            form = form_of(Model(path))
            self.parts.append((form.name, form.method, [pathlib.Path(path)]))

    def _refuse(self, why: str) -> typing.NoReturn:
        raise _core.InvalidModel(f"cannot load '{self.path}': {why}")

    def _unpack(self) -> None:
        try:
            with zipfile.ZipFile(self.path) as z:
                entries = {i.filename: i for i in z.infolist()}
                if len(entries) != len(z.infolist()) or any(i.compress_type != zipfile.ZIP_STORED or i.flag_bits & 1 for i in entries.values()):
                    self._refuse("its entries are not plain")
                if entries[INDEX].file_size > MAX_INDEX_BYTES:
                    self._refuse(f"entry '{INDEX}' is too large")
                index = json.loads(z.read(INDEX))
                if not isinstance(index, dict) or not isinstance(index.get("reader"), int) or not isinstance(index.get("parts"), list):
                    self._refuse(f"entry '{INDEX}' is damaged")
                if index["reader"] > FORMAT:
                    raise _core.Incompatible(f"cannot load '{self.path}': it has format {index['reader']}, this ait reads up to {FORMAT} "
                                             "(hint: use a newer ait)")
                self.folder = tempfile.TemporaryDirectory(prefix="ait-")
                for part in index["parts"]:
                    files = [self._take(z, entries, f) for f in part["files"]]
                    self.parts.append((str(part["name"]), str(part["method"]), files))
        except (zipfile.BadZipFile, KeyError, TypeError, AttributeError, ValueError, NotImplementedError, EOFError) as e:
            self._refuse(f"it is damaged: {e}")

    def _take(self, z: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], file: Mapping[str, Any]) -> pathlib.Path:
        name = str(file["name"])
        if not re.fullmatch(r"parts/[0-9]{1,6}\.ait", name) or name not in entries:
            self._refuse(f"entry '{name}' is not one of it")
        to = pathlib.Path(self.folder.name) / name.rpartition("/")[2]
        h = hashlib.sha256()
        with z.open(name) as source, open(to, "wb") as out:
            while piece := source.read(1 << 20):
                h.update(piece)
                out.write(piece)
        if h.hexdigest() != file["sha256"]:
            self._refuse(f"entry '{name}' does not match its SHA-256")
        return to


# ---- load ------------------------------------------------------------------------------------------------------------------------------
def load_into(pipeline: Any, path: "str | os.PathLike[str]", *, check_weights: bool = True) -> Any:
    """Puts the tuned functions of a file into a fresh pipeline (or module, or function), which is returned. Its own weights may be on the
    device `meta`: calls that were not tuned raise then. check_weights: refuse a pipeline whose weights are in memory and are not those that
    were tuned."""
    from ._modules import ROOT, Part, find, is_module
    from ._router import Tuned, route
    from ._tuning import _resolve

    stored = Stored(path)
    found = find(pipeline)
    ready: List[Tuple[Part, List[Tuned]]] = []
    for name, method, files in stored.parts:
        try:
            part = _resolve(found, pipeline if name == ROOT and is_module(pipeline) else name)
        except ValueError as e:
            raise _core.NotFound(f"'{stored.path}' has a part '{name}' that is not in this {type(pipeline).__name__}: {e}") from None
        if part.method != method:
            part = Part(part.name, part.module, method)
        here = part.fingerprint() if check_weights else None
        tuned = []
        for f in files:
            form = form_of(Model(f))
            if here is not None and form.weights is not None and here != form.weights:
                raise _core.Mismatch(f"the weights of '{name}' are not those that were tuned (hint: load the pipeline's own weights first, or put "
                                     "it on the device meta; check_weights=False takes the file's)")
            tuned.append(load_tuned(f))
        ready.append((part, tuned))
    for part, tuned in ready:
        router = route(part)
        router.folder = stored.folder  # type: ignore[attr-defined]
        router.install(tuned)
    return pipeline


def load_tuned(path: "str | os.PathLike[str]") -> Any:
    """A file of one tuned function, as a router takes it."""
    from ._modules import Key
    from ._router import Tuned
    from ._tuning import runner_of_model

    model = Model(path, returns="torch")
    form = form_of(model)
    key = Key(form.spec, tuple(_dtype(d) for d in form.dtypes), form.ranks, form.autocast)
    return Tuned(key, form.shape, form.out_spec, runner_of_model(model), path)


def _dtype(name: str) -> Any:
    import torch

    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise _core.InvalidModel(f"the file names a dtype '{name}' that torch does not have")
    return found


class Pipeline(collections.abc.Mapping):  # type: ignore[type-arg]
    """The parts of a pipeline's file as functions by name, without the pipeline and without torch. With one part, it is callable itself."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._stored = Stored(path)
        self._functions: Dict[str, Function] = {}
        for name, _, files in self._stored.parts:
            self._functions[name] = Function([Model(f) for f in files])

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(self._functions) != 1:
            raise TypeError(f"this file holds several parts, {', '.join(self)}: call one of them by name")
        return next(iter(self._functions.values()))(*args, **kwargs)
