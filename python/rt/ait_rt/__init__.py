"""ait, run only: loads and runs .ait files, with the API of the package `ait`.

    import ait_rt as ait
    model = ait.load("model.ait")
    y = model(x)
"""
from __future__ import annotations

from . import _core, embed, llm
from ._core import (
    Cancelled, Error, Incompatible, Internal, InvalidArgument, InvalidModel, IoError, Limit, Mismatch, NotFound, OutOfMemory, Tensor, Timeout,
    Unavailable, Unsupported,
)
from ._arrays import load_arrays, save_arrays
from ._tree import register_class
from .model import Model, Port, Session, load_model as load
from ._report import Report

__version__ = _core.__version__
__all__ = [
    "Cancelled", "Error", "Incompatible", "Internal", "InvalidArgument", "InvalidModel", "IoError", "Limit", "Mismatch", "Model", "NotFound",
    "OutOfMemory", "Port", "Report", "Session", "Tensor", "Timeout", "Unavailable", "Unsupported", "embed", "llm", "load", "load_arrays",
    "register_class", "save_arrays",
]
