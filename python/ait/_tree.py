"""Arguments and results as trees: leaves (tensors), constants, containers.

A tree is described by a spec: nested tuples, hashable, so that a spec is (part of) the key of a call signature, and written as JSON into
artifacts. Nothing in it is code: a result class is stored by its path, and built again only when that class is registered with
`register_class` or its module is already imported, and only when it is a dataclass, a named tuple or a mapping; else a `Record` takes its
place. This module imports neither torch nor numpy.

    ("t",)                                   the next leaf
    ("n", "int")                             the next leaf, a number that depends on sizes (results only)
    ("c", "float", "0.5")                    a constant
    ("list", (children...)), ("tuple", ...)
    ("dict", (keys as constants...), (children...))
    ("obj", "package.module:Class", kind, (fields...), (children...))
    ("x", "package.module:Class")            something else: no call with one can be tuned
"""
from __future__ import annotations

import collections
import dataclasses
import sys
from typing import Any, Callable, Iterator, List, Sequence, Tuple

Spec = Tuple[Any, ...]
LEAF: Spec = ("t",)
MAX_DEPTH = 64

_classes: dict[str, type] = {}


class Record(dict):  # type: ignore[type-arg]
    """A result whose class is not here: a dict whose keys are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def register_class(cls: type) -> type:
    """Lets results of this class be built again when an artifact is loaded. Usable as a decorator. Dataclasses, named tuples, mappings."""
    if _kind_of(cls) is None:
        raise TypeError(f"{cls.__qualname__} is neither a dataclass, a named tuple nor a mapping")
    _classes[class_path(cls)] = cls
    return cls


def class_path(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _kind_of(cls: type) -> str | None:
    if dataclasses.is_dataclass(cls):
        return "dataclass"
    if issubclass(cls, tuple):
        if hasattr(cls, "_fields"):
            return "namedtuple"
        return "sequence" if hasattr(cls, "n_sequence_fields") else None
    return "mapping" if issubclass(cls, (dict, collections.UserDict)) else None


def _find_class(path: str) -> type | None:
    """A class that may be built: registered, or in a module that the process has imported. Never imports anything."""
    found: Any = _classes.get(path)
    if found is None:
        module, _, name = path.partition(":")
        found = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
    return found if isinstance(found, type) and _kind_of(found) is not None else None


# ---- constants -------------------------------------------------------------------------------------------------------------------------
_TORCH_CONSTANTS = ("dtype", "device", "memory_format", "layout")


def constant(value: Any) -> Spec | None:
    """The spec of a plain value; None when it is none. Floats by their digits, so that nan equals nan and -0.0 is not 0.0."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return ("c", kind.__name__, value)
    if kind in (float, complex):
        return ("c", kind.__name__, repr(value))
    if kind.__module__ == "torch" and kind.__name__ in _TORCH_CONSTANTS:
        return ("c", "torch." + kind.__name__, str(value))
    return None


def constant_value(spec: Spec) -> Any:
    kind, value = spec[1], spec[2]
    if kind in ("float", "complex"):
        return {"float": float, "complex": complex}[kind](value)
    if kind.startswith("torch."):
        torch = sys.modules.get("torch")
        if torch is None:
            return value
        if kind == "torch.device":
            return torch.device(value)
        found = getattr(torch, value.removeprefix("torch."), None)
        if type(found).__name__ != kind.removeprefix("torch."):
            raise ValueError(f"'{value}' is no {kind}")
        return found
    return value


# ---- flatten and rebuild ---------------------------------------------------------------------------------------------------------------
def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return is_tensor(value) or (numpy is not None and isinstance(value, numpy.ndarray))


def _is_symbolic(value: Any) -> str | None:
    return {"SymInt": "int", "SymFloat": "float", "SymBool": "bool"}.get(type(value).__name__) if type(value).__module__ == "torch" else None


def fields_of(value: Any, kind: str) -> Tuple[Tuple[str, ...], Tuple[Any, ...]]:
    if kind == "dataclass":
        names = tuple(f.name for f in dataclasses.fields(value) if hasattr(value, f.name))
        return names, tuple(getattr(value, n) for n in names)
    return tuple(value._fields), tuple(value)


def flatten(value: Any, leaf: Callable[[Any], bool] = is_tensor) -> Tuple[List[Any], Spec]:
    """The leaves, in order, and the spec that builds the value again."""
    leaves: List[Any] = []
    return leaves, _flatten(value, leaf, leaves, 0)


def _flatten(value: Any, leaf: Callable[[Any], bool], leaves: List[Any], depth: int) -> Spec:
    if leaf(value):
        leaves.append(value)
        return LEAF
    known = constant(value)
    if known is not None:
        return known
    kind = type(value)
    number = _is_symbolic(value)
    if number is not None:
        leaves.append(value)
        return ("n", number)
    if depth >= MAX_DEPTH:
        return ("x", "a structure deeper than 64 levels")
    if kind in (list, tuple) or kind.__name__ == "Size" and isinstance(value, tuple):
        return (kind.__name__ if kind in (list, tuple) else "tuple", tuple(_flatten(v, leaf, leaves, depth + 1) for v in value))
    if kind is dict:
        return _flatten_mapping(("dict",), value, leaf, leaves, depth)
    shape = _kind_of(kind)
    if shape is None:
        return ("x", class_path(kind))
    path = class_path(kind)
    _classes.setdefault(path, kind)  # this process may build it again, wherever it was defined
    if shape == "mapping":
        return _flatten_mapping(("obj", path, shape), value, leaf, leaves, depth)
    if shape == "sequence":
        names: Tuple[str, ...] = ()
        children: Sequence[Any] = tuple(value)
    else:
        names, children = fields_of(value, shape)
    return ("obj", path, shape, names, tuple(_flatten(v, leaf, leaves, depth + 1) for v in children))


def _flatten_mapping(head: Spec, value: Any, leaf: Callable[[Any], bool], leaves: List[Any], depth: int) -> Spec:
    keys = tuple(constant(k) for k in value)
    if None in keys:
        return ("x", class_path(type(value)))
    return head + (keys, tuple(_flatten(v, leaf, leaves, depth + 1) for v in value.values()))


def rebuild(spec: Spec, leaves: Sequence[Any]) -> Any:
    """The value that `flatten` took apart, with these leaves."""
    it = iter(leaves)
    value = _rebuild(spec, it)
    if next(it, it) is not it:
        raise ValueError("more leaves than the structure takes")
    return value


def _rebuild(spec: Spec, leaves: Iterator[Any]) -> Any:
    kind = spec[0]
    if kind in ("t", "n"):
        try:
            return next(leaves)
        except StopIteration:
            raise ValueError("fewer leaves than the structure takes") from None
    if kind == "c":
        return constant_value(spec)
    if kind == "list":
        return [_rebuild(s, leaves) for s in spec[1]]
    if kind == "tuple":
        return tuple(_rebuild(s, leaves) for s in spec[1])
    if kind == "dict":
        return {constant_value(k): _rebuild(s, leaves) for k, s in zip(spec[1], spec[2])}
    if kind == "obj":
        return _rebuild_object(spec, leaves)
    raise ValueError(f"an object of class {spec[1]} cannot be built again")


def _rebuild_object(spec: Spec, leaves: Iterator[Any]) -> Any:
    _, path, kind, names, children = spec
    values = [_rebuild(s, leaves) for s in children]
    cls: Any = _find_class(path)
    if kind == "mapping":
        items = {constant_value(k): v for k, v in zip(names, values)}
        return Record(items) if cls is None else cls(items)
    if kind == "sequence":
        return tuple(values) if cls is None else cls(values)
    if cls is None:
        return Record(zip(names, values))
    if kind == "namedtuple":
        return cls(*values)
    known = {f.name: f.init for f in dataclasses.fields(cls)}
    built = cls(**{n: v for n, v in zip(names, values) if known.get(n)})
    for n, v in zip(names, values):
        if known.get(n) is False:
            object.__setattr__(built, n, v)
    return built


def walk(spec: Spec, path: Tuple[Any, ...] = ()) -> Iterator[Tuple[Tuple[Any, ...], Spec]]:
    """(path, node) of every leaf, constant and opaque object, in the order of the leaves."""
    kind = spec[0]
    if kind in ("list", "tuple"):
        for i, s in enumerate(spec[1]):
            yield from walk(s, path + (i,))
    elif kind == "dict":
        for k, s in zip(spec[1], spec[2]):
            yield from walk(s, path + (k[2],))
    elif kind == "obj":
        names = [k[2] for k in spec[3]] if spec[2] == "mapping" else spec[3] or range(len(spec[4]))
        for k, s in zip(names, spec[4]):
            yield from walk(s, path + (k,))
    else:
        yield path, spec


def opaque(spec: Spec) -> List[Tuple[str, str]]:
    """(where, class) of what is neither tensor nor constant."""
    return [(path_text(p), s[1]) for p, s in walk(spec) if s[0] == "x"]


def path_text(path: Tuple[Any, ...]) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")


# ---- JSON ------------------------------------------------------------------------------------------------------------------------------
def to_json(spec: Spec) -> Any:
    return [to_json(s) if isinstance(s, tuple) else s for s in spec]


def from_json(value: Any) -> Spec:
    """Checks as it reads: the text may come from anywhere."""
    spec = _from_json(value, 0)
    return spec


def _from_json(value: Any, depth: int) -> Spec:
    def children(v: Any) -> Tuple[Spec, ...]:
        if not isinstance(v, list):
            raise ValueError("a call's structure is damaged")
        return tuple(_from_json(s, depth + 1) for s in v)

    if depth > MAX_DEPTH + 2 or not isinstance(value, list) or not value or not isinstance(value[0], str):
        raise ValueError("a call's structure is damaged")
    kind, rest = value[0], value[1:]
    if kind == "t" and not rest:
        return LEAF
    if kind == "n" and rest in (["int"], ["float"], ["bool"]):
        return (kind, rest[0])
    if kind == "c" and len(rest) == 2:
        return _constant_from_json(rest)
    if kind == "x" and len(rest) == 1 and isinstance(rest[0], str):
        return (kind, rest[0])
    if kind in ("list", "tuple") and len(rest) == 1:
        return (kind, children(rest[0]))
    if kind == "dict" and len(rest) == 2:
        keys, values = children(rest[0]), children(rest[1])
        if len(keys) == len(values) and all(k[0] == "c" for k in keys):
            return (kind, keys, values)
    if kind == "obj" and len(rest) == 4 and isinstance(rest[0], str) and rest[1] in ("dataclass", "namedtuple", "mapping", "sequence"):
        names, values = children(rest[2]) if rest[1] == "mapping" else tuple(rest[2]), children(rest[3])
        plain = all(n[0] == "c" for n in names) if rest[1] == "mapping" else all(isinstance(n, str) for n in names)
        if plain and (len(names) == len(values) or rest[1] == "sequence" and not names):
            return (kind, rest[0], rest[1], names, values)
    raise ValueError("a call's structure is damaged")


def _constant_from_json(rest: List[Any]) -> Spec:
    kind, value = rest
    plain = {"NoneType": type(None), "bool": bool, "int": int, "str": str}
    if kind in plain and type(value) is plain[kind]:
        return ("c", kind, value)
    if isinstance(value, str) and (kind in ("float", "complex") or kind in {"torch." + n for n in _TORCH_CONSTANTS}):
        spec = ("c", kind, value)
        if kind in ("float", "complex"):
            constant_value(spec)  # raises ValueError when it is no number
        return spec
    raise ValueError("a call's structure is damaged")
