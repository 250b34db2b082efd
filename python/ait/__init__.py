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
from ait.model import Model, Port, Session, load_model

__version__ = _core.__version__

# Name -> submodule that has it: imported when it is first used. A line here, and the name in __all__ below, is all that a new function needs.
_LAZY: dict[str, str] = {
    "export": "ait._export",
    "Exported": "ait._export",
    "Dim": "ait._shapes",
    "BatchDim": "ait._shapes",
    "inspect": "ait._inspect",
    "Inspection": "ait._inspect",
    "wrap": "ait._tuning",
    "unwrap": "ait._tuning",
    "tune": "ait._tuning",
    "TuneReport": "ait._tune_report",
    "SampleEvent": "ait._data",
    "save": "ait._persist",
    "Pipeline": "ait._persist",
    "ExportError": "ait._errors",
    "Reason": "ait._errors",
    "register_class": "ait._tree",
    "Record": "ait._tree",
    "Strategy": "ait._strategies",
    "FirstWins": "ait._strategies",
    "OneBackend": "ait._strategies",
    "MaxThroughput": "ait._strategies",
    "HighestThroughput": "ait._strategies",
    "MinLatency": "ait._strategies",
    "LatencyBudget": "ait._strategies",
    "MinMemory": "ait._strategies",
    "Traffic": "ait._strategies",
    "load": "ait.loading",
    "Report": "ait._report",
    "Backend": "ait.backend",
    "register_backend": "ait.backend",
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
    "load_arrays": "ait._arrays",
    "save_arrays": "ait._arrays",
    "backends": "ait.files",
    "operators": "ait.files",
    "load_plugin": "ait.files",
    "record_traffic": "ait.files",
    "replay": "ait.files",
}
_SUBMODULES = frozenset({"backend", "embed", "files", "guests", "jit", "llm", "loading", "model", "progress"})

if typing.TYPE_CHECKING:
    from ait._arrays import load_arrays as load_arrays, save_arrays as save_arrays
    from ait._data import SampleEvent as SampleEvent
    from ait._errors import ExportError as ExportError, Reason as Reason
    from ait._export import export as export, Exported as Exported
    from ait._inspect import inspect as inspect, Inspection as Inspection
    from ait._persist import save as save, Pipeline as Pipeline
    from ait._shapes import Dim as Dim, BatchDim as BatchDim
    from ait._strategies import Strategy as Strategy, FirstWins as FirstWins, OneBackend as OneBackend, MaxThroughput as MaxThroughput
    from ait._strategies import HighestThroughput as HighestThroughput, MinLatency as MinLatency, LatencyBudget as LatencyBudget
    from ait._strategies import MinMemory as MinMemory, Traffic as Traffic
    from ait._tree import register_class as register_class, Record as Record
    from ait._tune_report import TuneReport as TuneReport
    from ait._tuning import wrap as wrap, unwrap as unwrap, tune as tune
    from ait.backend import Backend as Backend, register_backend as register_backend
    from ait.files import backends as backends, bench as bench, compare as compare, debug as debug, explain as explain
    from ait.files import export_onnx as export_onnx, inspect_file as inspect_file, load_plugin as load_plugin, operators as operators
    from ait.files import record_traffic as record_traffic, replay as replay
    from ait.files import report as report, sign as sign, tune_file as tune_file, unpack as unpack, verify as verify
    from ait.loading import load as load
    from ait._report import Report as Report


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
    "Backend", "BatchDim", "Cancelled", "Dim", "Error", "ExportError", "Exported", "FirstWins", "HighestThroughput", "Incompatible",
    "Inspection", "Internal", "InvalidArgument", "InvalidModel", "IoError", "LatencyBudget", "Limit", "MaxThroughput", "MinLatency",
    "MinMemory", "Mismatch", "Model", "NotFound", "OneBackend", "OutOfMemory", "Pipeline", "Port", "Reason", "Record", "Report",
    "SampleEvent", "Session", "Strategy", "Tensor", "Timeout", "Traffic", "TuneReport", "Unavailable", "Unsupported", "backends", "bench",
    "compare", "debug", "explain", "export", "export_onnx", "inspect", "inspect_file", "load", "load_arrays", "load_model", "load_plugin",
    "operators", "record_traffic", "register_backend", "register_class", "replay", "report", "save", "save_arrays", "sign", "tune",
    "tune_file", "unpack", "unwrap", "verify", "wrap",
]
