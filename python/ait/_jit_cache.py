"""What the JIT keeps on disk: a folder for each module and form of call, named by a hash of all that the result depends on but its weights, and
in it one for each state of the weights. So weights are looked at only where there is something for such a module.

    CACHE/<hash>/entry.json                        why such a module is left as it is, or its children are looked at instead
    CACHE/<hash>/<weights>/entry.json, 0.ait …     what was tuned
    CACHE/<hash>.turn                              locked by the process that tunes it
    CACHE/trials.sqlite                            the tuner's record

Entries are written beside and renamed: a reader sees a whole one or none."""
from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import types
import typing

from ait import _core, _tree

Any = typing.Any
VERSION = 2


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
    if isinstance(value, (types.FunctionType, types.MethodType)):
        h = hashlib.sha256()
        fn: Any = getattr(value, "__func__", value)
        if isinstance(fn, types.FunctionType):  # a method may be of something else that can be called
            _function(h, fn, set(), 2)
        return f"{value.__module__}.{value.__qualname__} {h.hexdigest()}"
    if isinstance(value, types.BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if type(value).__name__.endswith(("Config", "config")) and hasattr(value, "__dict__"):
        return [type(value).__qualname__, _plain({k: v for k, v in vars(value).items() if not k.startswith("_")}, depth + 1)]
    return f"{type(value).__module__}.{type(value).__qualname__}"


_MODULE_OWN = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"}


@functools.lru_cache(maxsize=4096)
def _class_digest(cls: Any) -> str:
    h = hashlib.sha256()
    _class(h, cls, set())
    return h.hexdigest()


def _settings(m: Any, configs: dict[int, Any]) -> Any:
    """A module's plain attributes. Models give the same large configuration to each of their modules."""
    out = []
    for k, v in vars(m).items():
        if k in _MODULE_OWN or k.endswith("hooks") or k.startswith(("_forward_", "_backward_", "_state_dict_", "_load_state_")) or hasattr(v, "ait_original"):
            continue
        if type(v).__name__.endswith(("Config", "config")):
            if id(v) not in configs:
                configs[id(v)] = len(configs), v, _plain(v)
                out.append([k, configs[id(v)][2]])
            else:
                out.append([k, configs[id(v)][0]])
        else:
            out.append([k, _plain(v)])
    return sorted(out, key=lambda item: str(item[0]))


def digest_of(module: Any, backends: typing.Sequence[str] | None) -> str:
    """Of a module's code, structure, settings and the form of its weights, of the machine, and of the versions."""
    torch = sys.modules["torch"]
    h = hashlib.sha256()
    configs: dict[int, Any] = {}
    rows: list[Any] = []
    for name, m in module.named_modules():
        weights = [[n, str(t.dtype), list(t.shape), bool(t.requires_grad)] for d in (m._parameters, m._buffers) for n, t in d.items() if t is not None]
        cls: Any = type(m)
        rows.append([name, f"{type(m).__module__}.{type(m).__qualname__}", _class_digest(cls), _settings(m, configs), weights])
    h.update(json.dumps(rows).encode())
    h.update(json.dumps([VERSION, machine(), torch.get_num_threads(), str(torch.get_default_dtype()), versions(), list(backends or [])]).encode())
    return h.hexdigest()


def weights_of(module: Any) -> str:
    from ait._persist import fingerprint

    return (fingerprint(module) or "none")[:40]


def with_weights(key: str, module: Any) -> str:
    return f"{key}/{weights_of(module)}"


def key_of(source: Any) -> str:
    """The key without weights of a tuned file of the cache."""
    return pathlib.Path(source).parent.parent.name


def digest_with(digest: str, key: Any) -> str:
    text = json.dumps([_tree.to_json(key.spec), [str(d) for d in key.dtypes], list(key.ranks), key.autocast])
    return hashlib.sha256((digest + text).encode()).hexdigest()[:40]


@functools.lru_cache(maxsize=None)
def machine() -> list[Any]:
    facts: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            for line in f:
                name, _, value = line.partition(":")
                if name.strip() in ("model name", "flags", "Features", "CPU part"):
                    facts.setdefault(name.strip(), value.strip())
                if not line.strip() and facts:
                    break  # the other processors are the same, and there may be hundreds
    except OSError:
        pass
    return [os.uname().machine, sorted(facts.items()), len(os.sched_getaffinity(0))]


@functools.lru_cache(maxsize=None)
def versions() -> list[str]:
    from ait.backend import installed

    torch = sys.modules["torch"]
    library = os.stat(_core.__file__)
    found = [_core.__version__, f"{library.st_size}-{library.st_mtime_ns}", str(torch.__version__), sys.version.partition(" ")[0]]
    have = installed()
    return found + [f"{n} {have[n]}" for n in ("onnxruntime", "openvino", "torchao", "transformers", "diffusers") if n in have]


# ---- entries ---------------------------------------------------------------------------------------------------------------------------------
@dataclasses.dataclass
class Entry:
    folder: pathlib.Path
    files: list[str]
    reason: str  # why the original is kept; "": it is not
    descend: bool
    verdicts: dict[str, dict[int, float]]  # file: sizes of calls for which an earlier run found it faster, and how much

    def load(self) -> list[Any]:
        """What the router takes."""
        from ait._persist import load_tuned

        return [load_tuned(self.folder / name) for name in self.files]


def entry_of(cache: pathlib.Path, key: str) -> Entry | None:
    """key: with or without weights."""
    folder = cache / key
    try:
        entry = json.loads((folder / "entry.json").read_text())
        if entry["version"] != VERSION:
            return None
        files = [str(n) for n in entry["files"]]
        if any("/" in n or not (folder / n).is_file() for n in files) or not (files or entry["reason"]):
            return None
        verdicts = {str(n): {int(size): float(ratio) for size, ratio in wins.items()} for n, wins in entry["verdicts"].items()}
        return Entry(folder, files, str(entry["reason"]), bool(entry["descend"]), verdicts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def find(cache: pathlib.Path, key: str, module: Any) -> Entry | None:
    """What is known of a module; key: without weights."""
    known = entry_of(cache, key)
    if known is not None:
        return known
    try:
        with os.scandir(cache / key) as found:
            if not any(e.is_dir() and not e.name.startswith(".") for e in found):
                return None
    except OSError:
        return None
    return entry_of(cache, with_weights(key, module))


def put(cache: pathlib.Path, key: str, files: typing.Sequence[pathlib.Path], reason: str = "", descend: bool = False) -> None:
    entry = {"version": VERSION, "files": [f"{i}.ait" for i in range(len(files))], "reason": reason, "descend": descend, "verdicts": {}}
    if not files:
        (cache / key).mkdir(parents=True, exist_ok=True)
        _write(cache / key / "entry.json", entry)
        return
    old = cache / key
    old.parent.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=".new-", dir=old.parent))
    try:
        for i, f in enumerate(files):
            shutil.move(str(f), folder / f"{i}.ait")
        (folder / "entry.json").write_text(json.dumps(entry))
        if old.exists():
            aside = pathlib.Path(tempfile.mkdtemp(prefix=".old-", dir=old.parent))
            old.rename(aside / "entry")
            shutil.rmtree(aside, ignore_errors=True)
        folder.rename(old)
    finally:
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)


def _write(path: pathlib.Path, entry: dict[str, Any]) -> None:
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    with os.fdopen(handle, "w") as f:
        json.dump(entry, f)
    os.replace(temporary, path)


def put_reason(cache: pathlib.Path, key: str, reason: str, descend: bool) -> None:
    try:
        put(cache, key, [], reason, descend)
    except OSError:
        pass  # no cache: the next run finds out again


def prove(cache: pathlib.Path, source: Any, wins: dict[int, float]) -> None:
    """What the script's own calls have shown of a file: sizes of calls for which it is faster, and how much."""
    source = pathlib.Path(source)
    try:
        entry = json.loads((source.parent / "entry.json").read_text())
        entry["verdicts"][source.name] = wins
        _write(source.parent / "entry.json", entry)
    except (OSError, ValueError, KeyError, TypeError):
        pass


def lost(source: Any) -> int:
    """Counts the runs of scripts in which a file was not the faster one."""
    path = pathlib.Path(source).parent / "entry.json"
    try:
        entry = json.loads(path.read_text())
        entry["lost"] = int(entry.get("lost", 0)) + 1
        _write(path, entry)
        return int(entry["lost"])
    except (OSError, ValueError, TypeError, AttributeError):
        return 1


@contextlib.contextmanager
def turn(cache: pathlib.Path, key: str, seconds: float) -> typing.Iterator[int]:
    """One process tunes a module, others that want the same wait for that long. A descriptor that holds the lock: a child that has it keeps the
    lock, too. -1: another process has it."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = os.open(cache / f"{key}.turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        raise _core.IoError(f"the cache '{cache}' cannot be written") from None
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= end:
                    yield -1
                    return
                time.sleep(0.05)
        yield lock
    finally:
        os.close(lock)


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
