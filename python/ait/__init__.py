"""ait: from a PyTorch model to one tuned file that runs without PyTorch.

    model = ait.load("model.ait")
    y = model(x)                      # NumPy, torch, anything with __dlpack__ or a buffer; results of the same kind

Importing this package imports neither torch nor numpy: they come when a call needs them.
"""
from __future__ import annotations

import importlib
import typing

from ait import _core
from ait._core import (
    Cancelled, Error, Incompatible, Internal, InvalidArgument, InvalidModel, IoError, Limit, Mismatch, NotFound, OutOfMemory, Tensor, Timeout,
    Unavailable, Unsupported,
)
from ait.model import Model, Port, Session

__version__ = _core.__version__

# Name -> submodule that has it: imported when it is first used. A line here, and the name in __all__ below, is all that a new function needs.
_LAZY: dict[str, str] = {
    "load": "ait.loading",
    "Report": "ait.report",
    "tune_file": "ait.files",
    "inspect_file": "ait.files",
    "explain": "ait.files",
    "verify": "ait.files",
    "compare": "ait.files",
    "debug": "ait.files",
    "bench": "ait.files",
    "report": "ait.files",
    "unpack": "ait.files",
    "sign": "ait.files",
    "export_onnx": "ait.files",
    "backends": "ait.files",
    "operators": "ait.files",
    "load_plugin": "ait.files",
}
_SUBMODULES = frozenset({"files", "guests", "loading", "model", "progress", "report"})

if typing.TYPE_CHECKING:
    from ait.files import backends as backends, bench as bench, compare as compare, debug as debug, explain as explain
    from ait.files import export_onnx as export_onnx, inspect_file as inspect_file, load_plugin as load_plugin, operators as operators
    from ait.files import report as report, sign as sign, tune_file as tune_file, unpack as unpack, verify as verify
    from ait.loading import load as load
    from ait.report import Report as Report


def __getattr__(name: str) -> typing.Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
    elif name in _SUBMODULES:
        return importlib.import_module(f"ait.{name}")
    else:
        raise AttributeError(f"module 'ait' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY) | _SUBMODULES)


__all__ = [
    "Cancelled", "Error", "Incompatible", "Internal", "InvalidArgument", "InvalidModel", "IoError", "Limit", "Mismatch", "Model", "NotFound",
    "OutOfMemory", "Port", "Report", "Session", "Tensor", "Timeout", "Unavailable", "Unsupported", "backends", "bench", "compare", "debug",
    "explain", "export_onnx", "inspect_file", "load", "load_plugin", "operators", "report", "sign", "tune_file", "unpack", "verify",
]
