"""How an exported program is called: torch's pytree specs in a .pt2 as the `call` of a manifest (docs/python-pipelines.md)."""
from __future__ import annotations

import json
import os
import zipfile
from typing import Any, Callable

MAX_JSON = 1 << 30
_SEQUENCES = {"builtins.tuple": "tuple", "builtins.list": "list", "collections.deque": "list", "torch.fx.immutable_collections.immutable_list": "list"}
_MAPPINGS = {"builtins.dict", "collections.OrderedDict", "collections.defaultdict", "torch.fx.immutable_collections.immutable_dict"}


class _Unknown(Exception):
    """A structure that this file cannot say: the call stays flat."""


def _key(value: Any) -> list[Any]:
    if type(value) not in (str, int, bool):
        raise _Unknown
    return ["c", type(value).__name__, value]


def _fields(context: Any) -> tuple[list[str], list[str]]:
    """Names of the children, and of fields that hold None and are no children."""
    if isinstance(context, dict):  # a named tuple
        context = context.get("fields")
    absent: Any = []
    if isinstance(context, list) and len(context) == 2 and all(isinstance(n, list) for n in context):  # a dataclass
        context, absent = context
    if not isinstance(context, list) or not all(isinstance(n, str) for n in context + absent):
        raise _Unknown
    return context, absent


def _structure(node: Any, depth: int = 0) -> list[Any]:
    if depth > 64 or not isinstance(node, dict):
        raise _Unknown
    kind, children = node.get("type"), [_structure(c, depth + 1) for c in node.get("children_spec", [])]
    if kind is None:
        return ["t"]
    try:
        context = json.loads(node.get("context") or "null")
    except ValueError:
        raise _Unknown from None
    if kind in _SEQUENCES:
        return [_SEQUENCES[kind], children]
    if kind in _MAPPINGS:
        if isinstance(context, dict):  # defaultdict
            context = context.get("dict_context")
        if not isinstance(context, list) or len(context) != len(children):
            raise _Unknown
        return ["dict", [_key(k) for k in context], children]
    names, absent = _fields(context)
    if len(names) != len(children):
        raise _Unknown
    module, _, name = kind.rpartition(".")
    form = "namedtuple" if kind == "collections.namedtuple" else "dataclass"
    return ["obj", f"{module}:{name}", form, names + absent, children + [["c", "NoneType", None] for _ in absent]]


def _read(archive: zipfile.ZipFile, wanted: Callable[[str], bool]) -> Any:
    for info in archive.infolist():
        if info.file_size < MAX_JSON and wanted("/" + info.filename):
            return json.loads(archive.read(info))
    return None


def _is_program(name: str, model_name: str | None) -> bool:
    here = name.endswith(f"/models/{model_name}.json") if model_name else "/models/" in name and name.endswith(".json")
    return here or name.endswith("/serialized_exported_program.json")


def call_of(path: str | os.PathLike[str], model_name: str | None = None) -> dict[str, Any] | None:
    """None: it is no .pt2, or it does not say. Arguments that have a name are given by name."""
    try:
        if not zipfile.is_zipfile(path):
            return None
        with zipfile.ZipFile(path) as archive:
            own = _read(archive, lambda name: name.endswith("/extra/call.json"))  # of ait.export
            if isinstance(own, dict):
                return own
            program = _read(archive, lambda name: _is_program(name, model_name))
        if program is None:
            return None
        signature = program["graph_module"]["module_call_graph"][0]["signature"]
        arguments, keywords = json.loads(signature["in_spec"])[1]["children_spec"]
        positional, named = _structure(arguments), _structure(keywords)
        names = signature.get("forward_arg_names") or []
        known = min(len(names), len(positional[1])) if len(names) >= len(positional[1]) else 0
        if known:
            named = ["dict", [_key(n) for n in names[:known]] + named[1], positional[1] + named[2]]
            positional = ["tuple", []]
        return {"version": 1, "in": ["tuple", [positional, named]], "out": _structure(json.loads(signature["out_spec"])[1])}
    except (_Unknown, KeyError, IndexError, TypeError, ValueError, OSError, RecursionError, zipfile.BadZipFile):
        return None
