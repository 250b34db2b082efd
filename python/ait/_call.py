"""How a model is called, from the `call` of its manifest (docs/python-pipelines.md): arguments to flat inputs, flat results to structures."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from . import _core, _tree

Spec = _tree.Spec


def _wrong(where: str, text: str) -> _core.InvalidArgument:
    return _core.InvalidArgument(f"argument {where}: {text}")


def _constant_text(spec: Spec) -> str:
    return repr(_tree.constant_value(spec))


class Call:
    """Takes arguments apart as the export did, and puts results together."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        try:
            self._in, self._out = _tree.from_json(description["in"]), _tree.from_json(description["out"])
            if self._in[0] != "tuple" or description["version"] != 1:
                raise ValueError("a call's structure is damaged")
            arguments, keywords = self._in[1]
            if arguments[0] != "tuple" or keywords[0] != "dict":
                raise ValueError("a call's structure is damaged")
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise _core.InvalidModel(f"the manifest's description of the call cannot be read: {error}") from None
        self._positional: tuple[Spec, ...] = arguments[1]
        self._keys = tuple(k[2] for k in keywords[1])
        self._named = dict(zip(self._keys, keywords[2]))

    @property
    def is_plain(self) -> bool:
        """Tensors in, a tensor or a tuple of at least two out: what a model does by itself."""
        inputs = self._positional + tuple(self._named.values())
        out = self._out
        flat = out == _tree.LEAF or (out[0] == "tuple" and len(out[1]) > 1 and all(s == _tree.LEAF for s in out[1]))
        return flat and all(s == _tree.LEAF for s in inputs)

    @property
    def parameters(self) -> list[str]:
        return [f"arg{i}" for i in range(len(self._positional))] + [str(k) for k in self._keys]

    @property
    def inputs(self) -> int:
        """How many inputs the model has to have."""
        return sum(s[0] in ("t", "n") for _, s in _tree.walk(self._in))

    @property
    def outputs(self) -> int:
        return sum(s[0] in ("t", "n") for _, s in _tree.walk(self._out))

    def named(self, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The flat inputs under the model's names for them. What was left out is left out: the model says whether it may be."""
        return {n: v for n, v in zip(names, self.flatten(args, kwargs)) if v is not _MISSING}

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The leaves in the order of the model's inputs. Constants may be left out; others than those of the export are refused."""
        count = len(self._positional)
        if len(args) > count + len(self._keys):
            raise _core.InvalidArgument(f"{len(args)} arguments given, the model takes {count + len(self._keys)}")
        given = dict(zip(self._keys, args[count:]))
        for key, value in kwargs.items():
            if key not in self._named:
                raise _core.InvalidArgument(f"the model has no argument '{key}'; it takes {', '.join(self.parameters)}")
            if key in given:
                raise _core.InvalidArgument(f"argument '{key}' is given by position and by name")
            given[key] = value
        leaves: list[Any] = []
        for i, spec in enumerate(self._positional):
            self._take(spec, args[i] if i < len(args) else _MISSING, leaves, str(i))
        for key, spec in self._named.items():
            self._take(spec, given.get(key, _MISSING), leaves, f"'{key}'")
        return leaves

    def _take(self, spec: Spec, value: Any, leaves: list[Any], where: str) -> None:
        kind = spec[0]
        if kind == "c":
            if value is not _MISSING and _tree.constant(value) != spec:
                raise _wrong(where, f"the model was made for {_constant_text(spec)}, not {value!r}")
        elif value is _MISSING:
            leaves += [_MISSING for _, s in _tree.walk(spec) if s[0] in ("t", "n")]
        elif kind in ("t", "n"):
            leaves.append(value)
        elif kind in ("list", "tuple"):
            self._take_items(spec[1], value, leaves, where)
        elif kind == "dict":
            self._take_mapping([k[2] for k in spec[1]], spec[2], value, leaves, where)
        elif kind == "obj" and spec[2] == "mapping":
            self._take_mapping([k[2] for k in spec[3]], spec[4], value, leaves, where)
        elif kind == "obj":
            self._take_object(spec, value, leaves, where)
        else:
            raise _wrong(where, f"an object of class {spec[1]} cannot be passed")

    def _take_items(self, specs: Sequence[Spec], value: Any, leaves: list[Any], where: str) -> None:
        if not isinstance(value, (list, tuple)) or len(value) != len(specs):
            size = f" of {len(value)}" if isinstance(value, (list, tuple)) else ""
            raise _wrong(where, f"is {type(value).__name__}{size}, must be a list or tuple of {len(specs)}")
        for i, (spec, item) in enumerate(zip(specs, value)):
            self._take(spec, item, leaves, f"{where}[{i}]")

    def _take_mapping(self, keys: Sequence[Any], specs: Sequence[Spec], value: Any, leaves: list[Any], where: str) -> None:
        if not hasattr(value, "keys") or not hasattr(value, "__getitem__"):
            raise _wrong(where, f"is {type(value).__name__}, must be a mapping with {', '.join(map(repr, keys))}")
        for extra in value.keys():
            if extra not in keys:
                raise _wrong(where, f"has {extra!r}; the model takes {', '.join(map(repr, keys))}")
        for key, spec in zip(keys, specs):
            self._take(spec, value[key] if key in value.keys() else _MISSING, leaves, f"{where}[{key!r}]")

    def _take_object(self, spec: Spec, value: Any, leaves: list[Any], where: str) -> None:
        names: Sequence[Any] = spec[3]
        if not names:  # torch.return_types
            return self._take_items(spec[4], value, leaves, where)
        if isinstance(value, Mapping):
            return self._take_mapping(names, spec[4], value, leaves, where)
        for name, child in zip(names, spec[4]):
            self._take(child, getattr(value, name, _MISSING), leaves, f"{where}.{name}")

    def rebuild(self, results: Sequence[Any]) -> Any:
        return _tree.rebuild(self._out, results)


class _Missing:
    pass


_MISSING = _Missing()
