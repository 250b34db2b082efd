"""Arrays on disk: .npz, .npy, .safetensors. The run-only package reads .npz with NumPy, which the full one does without."""
from __future__ import annotations

import os
import typing

from . import _core

if typing.TYPE_CHECKING:
    from .model import Model

Any = typing.Any
Path = typing.Union[str, "os.PathLike[str]"]


def load_arrays(path: Path) -> dict[str, Any]:
    """The arrays of an .npz, .npy or .safetensors file by name."""
    try:
        return dict(_core.load_data(path))
    except _core.Unsupported:
        if not os.fspath(path).endswith(".npz"):
            raise
    with _numpy(path).load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def save_arrays(path: Path, arrays: typing.Mapping[str, Any]) -> None:
    """Arrays of any kind by name as an .npz file."""
    _core.save_data(path, dict(arrays))


def _numpy(path: Path) -> Any:
    import importlib

    try:
        return importlib.import_module("numpy")
    except ImportError:
        raise _core.Unavailable(f"'{os.fspath(path)}': the run-only package reads .npz with NumPy, which is not installed"
                                "\n  hint: pip install numpy, or use .safetensors") from None


def inputs_of(model: Model, arrays: typing.Mapping[str, Any]) -> dict[str, Any]:
    """A model's inputs among arrays: by name, else arr_0, arr_1 … by position; other arrays (labels, …) are left out. Single numbers become
    Python's."""
    found = {}
    for i, port in enumerate(model.inputs):
        array = arrays.get(port.name, arrays.get(f"arr_{i}"))
        if array is not None:
            found[port.name] = array if port.kind == "tensor" else _number(port.kind, array)
    return found


def _number(kind: str, array: Any) -> Any:
    value = array.tolist()
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return {"int": int, "float": float, "bool": bool}.get(kind, lambda v: v)(value)
