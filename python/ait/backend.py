"""Backends written in Python: they take part in the same contest as ait's own.

    class Scripted(ait.Backend):
        name = "scripted"

        def build(self, program, samples):
            self.run = torch.jit.trace(program.module(), samples[0])

        def __call__(self, *inputs):
            return self.run(*inputs)

    ait.register_backend(Scripted)
    ait.tune_file("model.pt2", "model.ait", data, backends=["scripted", "native"])

Each candidate is built, checked against the oracle and timed in a process of its own; an exception, a crash or a hang costs that candidate.
An artifact whose plan such a backend won holds the program and the weights, no code and no pickle: it is built again where it is loaded, in a
process that has registered the class; elsewhere the portable graph runs, and `model.reason` says why.
"""
from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import threading
import typing

from ait import _core

Any = typing.Any


class Backend:
    """One engine. Subclass it, and `register_backend` the class. An object is one loaded model; calls come from one thread at a time."""

    name: typing.ClassVar[str] = ""
    summary: typing.ClassVar[str] = "a backend in Python"
    # Packages that a process must have; the manifest says "Python and torch". The first is the one whose version counts.
    packages: typing.ClassVar[tuple[str, ...]] = ("torch",)
    # Options: name -> (help, values worth trying; what is used when nothing is said comes first).
    options: typing.ClassVar[dict[str, tuple[str, tuple[str, ...]]]] = {}
    # save() makes native code: it runs from a file only when a trusted key has signed that.
    seals_code: typing.ClassVar[bool] = False

    def __init__(self, **options: str) -> None:
        """options: of those listed above; `self.option` holds all of them."""
        self.option: dict[str, str] = {name: values[0] for name, (_, values) in self.options.items()}
        self.option.update(options)

    @classmethod
    def probe(cls) -> str:
        """The version, cheaply (nothing heavy is imported). Raises ait.Unavailable with the reason."""
        return packages_version(cls.packages)

    def build(self, program: Any, samples: list[tuple[Any, ...]]) -> None:
        """program: a torch.export.ExportedProgram. samples: calls, each a tuple of the flat inputs (tensors, numbers, None): the first
        one that came. A backend that has save() is built before there is a call: it gets the calibration data of the tuning (`calibration=` of
        ait.tune), else the program's own example, else none; what it learns from them goes into what save() gives.

        `program.module()` takes the arguments in their own structure; `ait.backend.flat(program)` takes the flat inputs as they are here.
        """
        raise NotImplementedError

    def __call__(self, *inputs: Any) -> Any:
        """One call with flat inputs. Results: a tensor, or a sequence or dict of results, flat or as the program has them."""
        raise NotImplementedError

    def save(self) -> bytes | None:
        """What an artifact should hold instead of the program, after build(). None: the program and the weights, and build() runs again."""
        return None

    def load(self, data: bytes) -> None:
        """The other way, instead of build()."""
        raise NotImplementedError


# ---- what is installed ------------------------------------------------------------------------------------------------------------------
_installed: dict[tuple[str, ...], dict[str, str]] = {}


def installed() -> dict[str, str]:
    """Distributions on sys.path and their versions, from the names of their folders: a hundred times faster than importlib.metadata."""
    folders = tuple(p for p in sys.path if p)
    if folders not in _installed:
        found: dict[str, str] = {}
        for folder in folders:
            try:
                entries = os.listdir(folder)
            except OSError:
                continue
            for entry in entries:
                if entry.endswith((".dist-info", ".egg-info")):
                    name, _, version = entry.rpartition(".")[0].partition("-")
                    found.setdefault(name.lower().replace("-", "_"), version.partition("-py")[0])
        _installed.clear()
        _installed[folders] = found
    return _installed[folders]


def packages_version(packages: typing.Sequence[str]) -> str:
    """"torchao 0.18.0, torch 2.13.0". Raises Unavailable naming what is missing."""
    have = installed()
    missing = [p for p in packages if p.lower().replace("-", "_") not in have]
    if missing:
        raise _core.Unavailable(f"Python package {' and '.join(repr(p) for p in missing)} is not installed")
    return ", ".join(f"{p} {have[p.lower().replace('-', '_')]}" for p in packages)


# ---- the table ---------------------------------------------------------------------------------------------------------------------------
_classes: dict[str, type[Backend]] = {}
_builtin_ready = False
_calibration_lock = threading.Lock()
in_worker = False  # this process runs one backend for a trial


def register_backend(cls: type[Backend]) -> type[Backend]:
    """Makes a backend known to this process, usable as a decorator. Its module must be importable, or the script that runs; else a trial, which
    happens in a fresh interpreter, cannot find the class."""
    if not (isinstance(cls, type) and issubclass(cls, Backend)):
        raise TypeError(f"{cls!r} is no subclass of ait.Backend")
    if not cls.name or not all(c.isalnum() or c in "-_" for c in cls.name):
        raise ValueError(f"{cls.__qualname__}.name is {cls.name!r}: letters, digits and '-'")
    if "<locals>" in cls.__qualname__:
        raise ValueError(f"{cls.__qualname__} is defined inside a function: a fresh interpreter would not find it")
    ready()
    known = _classes.get(cls.name)
    if known is not None and known is not cls and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"there is a backend '{cls.name}' already: {known.__module__}.{known.__qualname__}")
    _add(cls)
    return cls


def registered() -> dict[str, type[Backend]]:
    ready()
    return dict(_classes)


def _add(cls: type[Backend]) -> None:
    version: str | None
    try:
        version, reason = cls.probe(), ""
    except _core.Unavailable as error:
        version, reason = None, str(error)
    except Exception as error:  # a probe that fails is a no
        version, reason = None, f"{type(error).__name__}: {error}"
    knobs = [(name, text, values[0], tuple(values)) for name, (text, values) in cls.options.items()]
    needs = f"Python and {' and '.join(cls.packages)}" if cls.packages else "Python"
    spec = {**_spec(cls), "version": version, "saves": cls.save is not Backend.save}
    _core.guest_add(cls.name, cls.summary, version, reason.partition("\n")[0], needs, json.dumps(spec), cls.seals_code, knobs)
    _classes[cls.name] = cls


def _spec(cls: type[Backend]) -> dict[str, Any]:
    """How a fresh interpreter finds the class."""
    spec: dict[str, Any] = {"module": cls.__module__, "class": cls.__qualname__}
    if cls.__module__ == "__main__":
        main = sys.modules["__main__"]
        started: Any = getattr(main, "__spec__", None)
        if started is not None and started.name != "__main__":  # python -m package.module
            spec["module"] = started.name
        else:
            spec["file"] = os.path.abspath(getattr(main, "__file__", "") or "")
    return spec


def _command(calibration: str | None = None) -> list[str]:
    """A fresh interpreter with this one's sys.path (a script may have changed it) that serves one guest."""
    path = [os.path.abspath(p) if p else os.getcwd() for p in sys.path]
    return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; from ait._guest_worker import main; main({calibration!r})"]


@contextlib.contextmanager
def calibrating(calls: typing.Sequence[typing.Sequence[Any]]) -> typing.Iterator[None]:
    """While it lasts, backends that save get these calls, flat inputs each, in build(). Tunings with calibration take turns in a process."""
    if not calls:
        yield
        return
    import tempfile

    import torch

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().contiguous()
        return torch.utils.dlpack.from_dlpack(value).clone() if hasattr(value, "__dlpack__") else value

    from ait import _guest_program

    with _calibration_lock, tempfile.TemporaryDirectory(prefix="ait-") as folder:
        path = os.path.join(folder, "calibration.pt")
        torch.save([[plain(v) for v in call] for call in calls], path)  # the worker loads tensors and numbers only
        _core.guest_setup(_command(path), _guest_program.make_here)
        try:
            yield
        finally:
            _core.guest_setup(_command(), _guest_program.make_here)


def ready() -> None:
    """The built-in guests, once; a worker's command for the sys.path of now."""
    global _builtin_ready
    from ait import _guest_program

    _core.guest_setup(_command(), _guest_program.make_here)
    if not _builtin_ready:
        _builtin_ready = True
        for cls in importlib.import_module("ait._guests").BUILT_IN:
            _add(cls)


def flat(program: Any, module: Any = None) -> Any:
    """The program's module (or one made from it) as a function of its flat inputs."""
    from ait import _guest_program

    return _guest_program.flat(program, module)
