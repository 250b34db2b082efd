"""What a call of a module changes besides giving a result: attributes, lists and objects in them, buffers, globals of its code, and what it
prints. A tuned function would not do that, so such a module is left as it is."""
from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import sys
import threading
import types
import typing

Any = typing.Any
_FRAME = {"_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "training"}
_PLAIN = (bool, int, float, str, bytes, tuple, type(None), frozenset)
_CONTAINERS = (list, dict, set, collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter)
_LIBRARIES = {"torch", "numpy", "logging", "threading", "_thread", "builtins", "types", "typing", "functools", "weakref", "re", "enum", "tokenizers",
              "_io", "abc", "random", "concurrent", "multiprocessing", "queue", "pathlib", "datetime", "ait"}
MAX_NODES, MAX_DEPTH, MAX_ITEMS = 4000, 4, 256


class Snapshot:
    """Of everything that a module's code can reach by attributes and by names of its own globals, as far as that is plain data."""

    def __init__(self, module: Any) -> None:
        self._known: dict[int, Any] = {}
        self._nodes: list[tuple[str, Any, typing.Callable[[Any], dict[Any, Any]], dict[Any, Any]]] = []
        self._versions: list[tuple[str, Any, int]] = []
        modules = list(module.modules())
        for m in modules:
            self._known[id(m)] = m
        for m in modules:
            self._node("", m, _attributes, 0)
            for t in m._buffers.values():
                self._tensor(f"a buffer of {type(m).__name__}", t)
        classes: set[Any] = {type(m) for m in modules}
        for cls in classes:
            for names, where in globals_of(cls):
                self._node("", where, functools.partial(_some, names), 0)

    def _tensor(self, name: str, t: Any) -> None:
        if t is not None and not t.is_inference():
            self._versions.append((name, t, t._version))

    def _node(self, name: str, owner: Any, read: typing.Callable[[Any], dict[Any, Any]], depth: int) -> None:
        if len(self._nodes) >= MAX_NODES:
            return
        values = read(owner)
        self._nodes.append((name, owner, read, values))
        if depth >= MAX_DEPTH:
            return
        for k, v in values.items():
            if id(v) in self._known or type(v) in _PLAIN:
                continue
            self._known[id(v)] = v
            label = name or str(k)
            if isinstance(v, sys.modules["torch"].Tensor):
                self._tensor(label, v)
            elif type(v) in _CONTAINERS:
                if len(v) <= MAX_ITEMS:
                    self._node(label, v, _items, depth + 1)
                else:
                    self._node(label, v, _length, MAX_DEPTH)
            elif _is_users(v):
                self._node(label, v, _attributes, depth + 1)

    def change(self) -> str:
        """The name of something that has another value now; ""."""
        for name, owner, read, before in self._nodes:
            now = read(owner)
            for k in before.keys() | now.keys():
                if k not in before or k not in now or not (now[k] is before[k] or _equal(now[k], before[k])):
                    return name or str(k)
        return next((name for name, t, version in self._versions if t._version != version), "")


def _attributes(owner: Any) -> dict[Any, Any]:
    return {k: v for k, v in vars(owner).items() if k not in _FRAME}


def _items(owner: Any) -> dict[Any, Any]:
    if isinstance(owner, dict):
        return dict(owner)
    if isinstance(owner, set):
        return {id(v): v for v in owner}
    return dict(enumerate(owner))


def _length(owner: Any) -> dict[Any, Any]:
    return {"length": len(owner)}


def _some(names: tuple[str, ...], owner: dict[str, Any]) -> dict[Any, Any]:
    return {n: owner[n] for n in names if n in owner and (type(owner[n]) in _PLAIN or type(owner[n]) in _CONTAINERS or _is_users(owner[n])
                                                          or isinstance(owner[n], sys.modules["torch"].Tensor))}


def _is_users(value: Any) -> bool:
    """An object that keeps plain data of the user's or of a model library."""
    cls = type(value)
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.MethodType, sys.modules["torch"].nn.Module)):
        return False
    return hasattr(value, "__dict__") and cls.__module__.partition(".")[0] not in _LIBRARIES


def _equal(a: Any, b: Any) -> bool:
    if type(a) is not type(b) or type(a) not in _PLAIN:
        return False
    try:
        return bool(a == b)
    except Exception:  # a tuple of tensors
        return False


@functools.lru_cache(maxsize=4096)
def globals_of(cls: Any) -> tuple[tuple[tuple[str, ...], Any], ...]:
    """(names, dict) of what the methods of a class read: globals of their file, and variables of the functions around them."""
    out = []
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in ("torch", "builtins", "transformers", "diffusers"):
            continue
        for member in vars(base).values():
            fn = getattr(member, "__func__", member)
            if not isinstance(fn, types.FunctionType):
                continue
            names = tuple(n for n in fn.__code__.co_names if n in fn.__globals__)
            if names:
                out.append((names, fn.__globals__))
            cells = {n: c for n, c in zip(fn.__code__.co_freevars, fn.__closure__ or ()) if n != "__class__"}
            if cells:
                out.append((tuple(cells), _Cells(cells)))
    return tuple(out)


class _Cells(dict):  # type: ignore[type-arg]
    """Variables of an outer function, by name, as they are now."""

    def __getitem__(self, name: str) -> Any:
        try:
            return super().__getitem__(name).cell_contents
        except ValueError:
            return None


# ---- printing ----------------------------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def watching_print() -> typing.Iterator[list[str]]:
    """The list gets an entry when this thread prints."""
    seen: list[str] = []
    original, me = builtins.print, threading.get_ident()

    def noting(*args: Any, **kwargs: Any) -> None:
        if threading.get_ident() == me:
            seen.append("print")
        original(*args, **kwargs)

    builtins.print = noting
    try:
        yield seen
    finally:
        if builtins.print is noting:
            builtins.print = original
