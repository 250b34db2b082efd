"""A loaded model: call it, ask it."""
from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import json
import os
import typing

from . import _arrays, _core, _spec, guests
from ._call import Call

if typing.TYPE_CHECKING:
    from ._report import Report

Any = typing.Any


class Dim(typing.NamedTuple):
    """One dimension of a port: `text` as the model says it ("8", "s0", "2*s0"), and its range (max None: unbounded)."""

    text: str
    min: int
    max: int | None

    def __str__(self) -> str:
        return self.text


class Port(typing.NamedTuple):
    """One input or output."""

    name: str
    kind: str  # "tensor", "int", "float", "bool", "str", "none"
    dtype: str | None  # of tensors
    shape: tuple[Dim, ...] | None  # of tensors; None: not known before running
    baked: bool  # export fixed this value: it may be left out
    default: Any  # what stands for a baked value
    written: bool  # the model writes into this input

    def __str__(self) -> str:
        if self.kind != "tensor":
            return f"{self.name}: {self.kind}" + (f" = {self.default!r}" if self.baked else "")
        sizes = "?" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.name}: {self.dtype} [{sizes}]"


def _ports(raw: tuple[tuple[Any, ...], ...]) -> tuple[Port, ...]:
    return tuple(
        Port(name, kind, dtype, None if shape is None else tuple(Dim(*d) for d in shape), baked, default, written)
        for name, kind, dtype, shape, baked, default, written in raw)


class _Doc:
    """The docstring of an instance comes from its ports, that of the class stays."""

    def __get__(self, instance: Any, owner: Any = None) -> str:
        return "A loaded model: call it with arrays." if instance is None else typing.cast(str, instance._describe())


class Model(_core.Model):
    """A loaded model: call it with arrays. Made by `ait.load`.

    Any number of threads may call one model: each call takes a session of a pool. A model with state (`states` is not empty) has one session,
    and calls take turns on it; `session()` makes further timelines.
    """

    if not typing.TYPE_CHECKING:
        __doc__ = _Doc()

    @functools.cached_property
    def inputs(self) -> tuple[Port, ...]:
        return _ports(self._inputs)

    @functools.cached_property
    def outputs(self) -> tuple[Port, ...]:
        return _ports(self._outputs)

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if not all(p.name.isidentifier() for p in self.inputs):
            return inspect.Signature([inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL)])
        parameters, optional = [], False
        for p in self.inputs:
            optional = optional or p.baked or p.kind == "none"
            default = p.default if p.baked or p.kind == "none" else (None if optional else inspect.Parameter.empty)
            note = str(p).split(": ", 1)[1]
            parameters.append(inspect.Parameter(p.name, kind, default=default, annotation=note))
        return inspect.Signature(parameters, return_annotation=", ".join(map(str, self.outputs)))

    def _describe(self) -> str:
        lines = [f"Model of '{os.fspath(self.path)!s}', running on {self.target}.", "", "inputs"]
        lines += [f"    {p}" for p in self.inputs] + ["outputs"] + [f"    {p}" for p in self.outputs]
        if self.states:
            lines += ["state", *(f"    {name}" for name in self.states)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<ait.Model {os.fspath(self.path)!r}: {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}>"

    _opened: tuple[str, dict[str, Any]]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and other processes open the file again, with the same options; state begins as the file has it."""
        return _reopen, self._opened

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """The call, awaited: it runs in a thread of its own pool, and the event loop goes on."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_executor(self.sessions), functools.partial(self, *args, **kwargs))

    def run(self, inputs: typing.Mapping[str, Any] | str | os.PathLike[str]) -> dict[str, Any]:
        """Inputs by name, or a file of arrays that holds them; results by name."""
        results = self(**self._named(inputs))
        return dict(zip((p.name for p in self.outputs), results if len(self.outputs) != 1 else (results,)))

    def _named(self, inputs: typing.Mapping[str, Any] | str | os.PathLike[str]) -> typing.Mapping[str, Any]:
        if isinstance(inputs, (str, os.PathLike)):
            return _arrays.inputs_of(self, _arrays.load_arrays(inputs))
        return inputs

    def session(self, threads: int = 0, profile: bool = False) -> Session:
        """A timeline of its own: its state, its memory. Calls on one session take turns."""
        return Session(self, threads=threads, profile=profile)

    def profile(self, *args: Any, runs: int = 10, threads: int = 0, **kwargs: Any) -> list[dict[str, Any]]:
        """Where the time of one call goes: `runs` calls on a session of their own. Steps with node, op, module, kernel and seconds per call."""
        session = self.session(threads=threads, profile=True)
        for _ in range(max(1, runs)):
            session(*args, **kwargs)
        steps = session.profile()
        for step in steps:
            step["seconds"] /= max(1, step["calls"])
        return steps

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of a .ait; empty for an imported model."""
        text = self._manifest
        return typing.cast("dict[str, Any]", json.loads(text)) if text else {}

    @property
    def plans(self) -> list[dict[str, Any]]:
        """The plans of the file in the order in which they were tried: target, machine, threads, runs, why_not."""
        return [{k: v for k, v in plan.items() if k != "report"} for plan in self._plans]

    @property
    def signed(self) -> dict[str, str]:
        """Who signed the file: state ("unsigned", "trusted", "unknown", "revoked"), key, fingerprint."""
        return dict(zip(("state", "key", "fingerprint"), self._signed))

    def report(self) -> Report:
        """The tuning report of the plan that runs. NotFound: the file was not tuned."""
        from ._report import Report

        chosen = None
        for plan in self._plans:
            if chosen is None or plan["runs"]:
                chosen = plan
        text = chosen["report"] if chosen else None
        document = json.loads(text) if text else self.manifest.get("tuning")
        if not document:
            raise _core.NotFound(f"'{os.fspath(self.path)!s}' holds no tuning report")
        return Report(document)


class Session(_core.Session):
    """One timeline of a model: state of its own, kept from call to call."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a session cannot be copied or sent to another process: make one there, with model.session()")


class StructuredModel(Model):
    """A model whose file says how its arguments and results are structured: dicts, lists, dataclasses, constants."""

    if not typing.TYPE_CHECKING:
        __doc__ = _Doc()

    _call: Call
    _names: tuple[str, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        results = super().__call__(**self._call.named(self._names, args, kwargs))
        return self._call.rebuild(results if self._call.outputs != 1 else (results,))

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        names = self._call.parameters
        if not all(n.isidentifier() for n in names):
            return inspect.Signature([inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL)])
        return inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])

    def _bind(self, *args: Any, **kwargs: Any) -> list[Any]:
        return super()._bind(**self._call.named(self._names, args, kwargs))

    def run(self, inputs: typing.Mapping[str, Any] | str | os.PathLike[str]) -> dict[str, Any]:
        """Flat inputs by name, or a file of arrays that holds them; flat results by name."""
        results = super().__call__(**self._named(inputs))
        return dict(zip((p.name for p in self.outputs), results if len(self.outputs) != 1 else (results,)))

    def session(self, threads: int = 0, profile: bool = False) -> Session:
        """A timeline of its own. Takes arguments and gives results in the same structure."""
        return StructuredSession(self, threads=threads, profile=profile)


class StructuredSession(Session):
    """A session of a StructuredModel."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        model = typing.cast(StructuredModel, self.model)
        results = super().__call__(**model._call.named(model._names, args, kwargs))
        return model._call.rebuild(results if model._call.outputs != 1 else (results,))


@functools.lru_cache(maxsize=None)
def _executor(threads: int) -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(max_workers=threads, thread_name_prefix="ait")


def load_model(path: str | os.PathLike[str], *, threads: int = 0, sessions: int = 0, returns: str | None = None, **options: Any) -> Model:
    """A sealed .ait as a callable. A file that knows how its module was called is called in the same way, and gives the same kind of result.

    threads: that compute one call; 0: what the plan was tuned for. sessions: how many calls run at once; 0: as many as the processors carry.
    returns: "numpy", "torch" or "ait"; None: the kind of the inputs. options: those of ait_load_options: backend, knobs, passes, model_name,
    weights, isa, keys (a folder), require_signature, skip_checksum, full_checksum, check_threads, profile.
    """
    guests.configure()
    model = Model(path, threads=threads, sessions=sessions, returns=returns, **options)
    model._opened = (os.path.abspath(path), {"threads": threads, "sessions": sessions, "returns": returns, **options})
    text = model._manifest
    if not text:  # imported: a program says how it was called
        description = _spec.call_of(path, options.get("model_name"))
    else:
        description = json.loads(text).get("call") if '"call"' in text else None
    if description is not None:
        _structure(model, Call(description))
    return model


def _reopen(path: str, options: dict[str, Any]) -> Model:
    return load_model(path, **options)


def _structure(model: Model, call: Call) -> None:
    """From now on the model is called in that way, if it is another than its own."""
    names = tuple(p.name for p in model.inputs)
    if (call.inputs, call.outputs) != (len(names), len(model.outputs)) or (call.is_plain and tuple(call.parameters) == names):
        return
    model.__class__ = StructuredModel
    structured = typing.cast(StructuredModel, model)
    structured._call, structured._names = call, names
