"""Modules inside any object: finding them, swapping a method of one, watching and recording its calls.

The stable interface inside the package (inspect, wrap, tune, JIT and guest backends stand on it):

* `find(obj)`: every nn.Module that an object, pipeline, list, dict, function or closure holds, with a unique path each.
* `Patch(module, method, make)`: puts `make(previous)` in the place of one method of one module, for this instance only: the module stays the
  same object, so hooks, isinstance, attributes, sharing and `state_dict` stay as they are. `undo()` takes it away.
* `Trace(found)`: a context in which all calls of all modules are timed, with the tree of who calls whom.
* `Part`: a module and the method of it that is to be tuned ("unet", "vae.decode"). `Recorder(parts)`: a context in which their calls are
  recorded into `part.signatures`.
* `Signature`: what a tuned function is made for: structure of the arguments, constants, dtypes, ranks, autocast state. `signature.samples`
  holds recorded inputs as flat lists of tensors. `part.eager(signature)` is the module itself as a function from such a list to a list.
* A *runner* is any callable from a list of tensors to a list of tensors, safe under threads. Every backend makes runners; the router of
  `_router.py` chooses one for each call, or the module itself.

Nothing here imports torch before it is used: who calls these functions has it.
"""
from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
import re
import sys
import threading
import time
import types
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

from . import _tree

ROOT = "(root)"
MAX_DEPTH = 24
MAX_ITEMS = 4096
Runner = Callable[[Sequence[Any]], List[Any]]

_PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), type, types.ModuleType, range, slice, re.Pattern)
_SKIPPED_PACKAGES = {"numpy", "logging", "threading", "concurrent", "multiprocessing", "queue", "asyncio", "random", "datetime", "pathlib",
                     "tokenizers", "sentencepiece", "tqdm", "PIL"}


def is_module(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


# ---- finding ---------------------------------------------------------------------------------------------------------------------------
@dataclasses.dataclass(eq=False)
class Found:
    path: str  # "text_encoder.layers.0"; "(root)" for the object itself
    module: Any
    aliases: List[str] = dataclasses.field(default_factory=list)  # other paths of the same module
    held: bool = False  # by something that is no module: an attribute of a pipeline, a variable of a function


def _function_members(fn: Any) -> Iterator[Tuple[str, Any]]:
    code = fn.__code__
    for name, cell in zip(code.co_freevars, fn.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue
    names = set(code.co_names)
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    while inner:
        c = inner.pop()
        names.update(c.co_names)
        inner += [k for k in c.co_consts if isinstance(k, types.CodeType)]
    for name in sorted(names & set(fn.__globals__)):
        yield name, fn.__globals__[name]
    spec = inspect.getfullargspec(fn) if not hasattr(fn, "__wrapped__") else None
    defaults = list(fn.__defaults__ or ())
    for name, value in zip((spec.args if spec else [])[-len(defaults):] if defaults else [], defaults):
        yield name, value
    yield from (fn.__kwdefaults__ or {}).items()
    if hasattr(fn, "__wrapped__"):
        yield "__wrapped__", fn.__wrapped__


def _members(value: Any) -> Iterator[Tuple[str, Any]]:
    """(name, member) of all that may hold modules."""
    if is_module(value):
        yield from value._modules.items()
        for name, member in list(vars(value).items()):
            if not name.startswith("_") and name != "forward":
                yield name, member
    elif isinstance(value, Mapping):
        yield from ((str(k), v) for k, v in list(value.items())[:MAX_ITEMS])
    elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        yield from ((str(i), v) for i, v in enumerate(list(value)[:MAX_ITEMS]))
    elif isinstance(value, functools.partial):
        yield from _callable_members(value.func)
        yield from _members(value.args)
        yield from value.keywords.items()
    elif isinstance(value, (types.FunctionType, types.MethodType)):
        yield from _callable_members(value)
    else:
        names = dict(getattr(value, "__dict__", {}) or {})
        for cls in type(value).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if isinstance(name, str) and name not in names and hasattr(value, name):
                    names[name] = getattr(value, name)
        yield from names.items()


def _callable_members(fn: Any) -> Iterator[Tuple[str, Any]]:
    if isinstance(fn, types.MethodType):
        owner = fn.__self__
        if is_module(owner):
            yield type(owner).__name__, owner
        elif not isinstance(owner, type):
            yield from _members(owner)
    elif isinstance(fn, types.FunctionType):
        yield from _function_members(fn)
    else:
        yield from _members(fn)


def _is_plain(value: Any) -> bool:
    return (isinstance(value, _PLAIN) or _tree.is_array(value) or isinstance(value, (types.BuiltinFunctionType, types.CodeType))
            or type(value).__module__.partition(".")[0] in _SKIPPED_PACKAGES)


def find(obj: Any) -> List[Found]:
    """Every module that the object holds, shortest path first; a module that hangs in two places is one, with an alias."""
    found: Dict[int, Found] = {}
    seen: Dict[int, Any] = {}
    paths = set()
    queue: collections.deque[Tuple[str, Any, int, bool]] = collections.deque([("", obj, 0, True)])
    while queue:
        path, value, depth, held = queue.popleft()
        if is_module(value):
            if id(value) in found:
                found[id(value)].aliases.append(path or ROOT)
                continue
            unique, n = path or ROOT, 2
            while unique in paths:
                unique, n = f"{path}#{n}", n + 1
            paths.add(unique)
            found[id(value)] = Found(unique, value, held=held)
        elif _is_plain(value) or id(value) in seen or (depth and _is_library_function(value)):
            continue
        seen[id(value)] = value
        if depth >= MAX_DEPTH:
            continue
        for name, member in _members(value):
            if not _is_plain(member):
                queue.append((f"{path}.{name}" if path else name, member, depth + 1, not is_module(value) or name not in value._modules))
    return list(found.values())


def _is_library_function(value: Any) -> bool:
    """Functions of torch, transformers and so on: what their globals hold is nobody's pipeline."""
    if not isinstance(value, types.FunctionType):
        return False
    top = (value.__module__ or "").partition(".")[0]
    return top in ("torch", "transformers", "diffusers", "accelerate", "huggingface_hub", "ait") or top in sys.stdlib_module_names - {"__main__"}


def foreign_hooks(module: Any) -> List[Any]:
    """Forward hooks of a module that are not part of its library's own code (transformers records intermediate results by hooks, which act
    only inside its forward and are traced with it)."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    return [h for h in hooks if getattr(getattr(h, "func", h), "__module__", None) != "transformers.utils.output_capturing"]


# ---- swapping a method -----------------------------------------------------------------------------------------------------------------
class Patch:
    """`make(previous)` instead of one method of one module. Undone in the reverse order of doing."""

    def __init__(self, module: Any, method: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self.module, self.method = module, method
        self._own = module.__dict__.get(method)
        self.previous: Callable[..., Any] = getattr(module, method)
        self.replacement = make(self.previous)
        module.__dict__[method] = self.replacement

    def undo(self) -> None:
        if self.module.__dict__.get(self.method) is not self.replacement:
            return  # somebody has put something over it: what hangs below stays callable
        if self._own is None:
            del self.module.__dict__[self.method]
        else:
            self.module.__dict__[self.method] = self._own


_BASES = ("torch.", "transformers.modeling_utils", "transformers.generation", "transformers.utils", "diffusers.models.modeling_utils",
          "diffusers.loaders", "diffusers.utils", "huggingface_hub.", "peft.", "accelerate.", "builtins")


@functools.lru_cache(maxsize=None)
def public_methods(cls: type) -> Tuple[str, ...]:
    """Methods that a user may call instead of the module itself: those of its own classes, not those of the frameworks."""
    names: Dict[str, bool] = {}
    for base in cls.__mro__:
        if (base.__module__ + ".").startswith(_BASES):
            continue
        for name, member in vars(base).items():
            if not name.startswith("_") and name != "forward" and isinstance(member, types.FunctionType):
                names.setdefault(name, not inspect.isgeneratorfunction(member) and not inspect.iscoroutinefunction(member))
    torch = sys.modules["torch"]
    return tuple(n for n, ok in names.items() if ok and not hasattr(torch.nn.Module, n))


def unpatchable(module: Any) -> str | None:
    """Why no method of this module can be swapped; None when it can."""
    torch = sys.modules["torch"]
    if isinstance(module, torch.jit.ScriptModule):
        return "it is a TorchScript module, compiled already"
    if type(module).__name__ == "OptimizedModule" and type(module).__module__.startswith("torch._dynamo"):
        return "it is the wrapper of torch.compile: the module inside is compiled already"
    return None


# ---- calls in one form -----------------------------------------------------------------------------------------------------------------
class Binder:
    """Brings the arguments of a call into one form, so that f(x), f(input=x) and f(x, flag=<its default>) are the same call: positional
    values only where the signature takes no names, all others by name in the signature's order, plain defaults filled in."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        P = inspect.Parameter
        try:
            parameters = list(inspect.signature(fn).parameters.values())
        except (TypeError, ValueError):
            parameters = [P("args", P.VAR_POSITIONAL), P("kwargs", P.VAR_KEYWORD)]
        self.positional = [p.name for p in parameters if p.kind in (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)]
        self.only_positional = sum(p.kind is P.POSITIONAL_ONLY for p in parameters)
        self.keyword = [p.name for p in parameters if p.kind is P.KEYWORD_ONLY]
        self.takes_args = any(p.kind is P.VAR_POSITIONAL for p in parameters)
        self.takes_kwargs = any(p.kind is P.VAR_KEYWORD for p in parameters)
        self.defaults = {p.name: p.default for p in parameters if p.default is not P.empty and _tree.constant(p.default) is not None}
        self.names = self.positional + self.keyword
        self._known = frozenset(self.names)

    def __call__(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]] | None:
        """(args, kwargs) in the one form; None when the function does not take them: it will say so itself."""
        n = len(self.positional)
        if len(args) > n and not self.takes_args:
            return None
        values = dict(zip(self.positional, args))
        extra = {}
        for k, v in kwargs.items():
            if k in self._known:
                if k in values:
                    return None
                values[k] = v
            elif self.takes_kwargs:
                extra[k] = v
            else:
                return None
        for k, v in self.defaults.items():
            values.setdefault(k, v)
        if len(args) > n:
            named = self.positional
        else:
            named = self.positional[:self.only_positional]
        head = tuple(values.pop(k) for k in named if k in values) + args[n:]
        ordered = {k: values[k] for k in self.names if k in values}
        ordered.update(sorted(extra.items()))
        return head, ordered


@dataclasses.dataclass(frozen=True)
class Key:
    """What two calls must have in common to be served by the same tuned function, sizes aside."""

    spec: _tree.Spec  # of (args, kwargs) in the one form
    dtypes: Tuple[Any, ...]
    ranks: Tuple[int, ...]
    autocast: str | None  # dtype of torch.autocast("cpu") around the call


def autocast_state() -> str | None:
    torch = sys.modules["torch"]
    return str(torch.get_autocast_dtype("cpu")) if torch.is_autocast_enabled("cpu") else None


def leaf_names(spec: _tree.Spec) -> List[str]:
    """A Python name for each leaf of a call: the parameter's, or its with the way inside."""
    names: List[str] = []
    for path, node in _tree.walk(spec):
        if node[0] != "t":
            continue
        inside = path[1:] if path[0] == 1 else ("arg",) + path[1:]
        name = re.sub(r"\W", "_", "_".join(map(str, inside))) or "input"
        if name[0].isdigit() or name in ("self",) or __import__("keyword").iskeyword(name):
            name = "arg_" + name
        base, n = name, 2
        while name in names:
            name, n = f"{base}_{n}", n + 1
        names.append(name)
    return names


@dataclasses.dataclass(eq=False)
class Signature:
    """One form of calls of a part, with what was recorded of it."""

    key: Key
    names: List[str]
    calls: int = 0
    shapes: "collections.Counter[Tuple[Tuple[int, ...], ...]]" = dataclasses.field(default_factory=collections.Counter)
    samples: List[List[Any]] = dataclasses.field(default_factory=list)  # each: tensors in the order of `names`, own memory
    calibration: List[List[Any]] = dataclasses.field(default_factory=list)  # more of them, for backends that look at many

    def add(self, leaves: Sequence[Any], per_shape: int, max_shapes: int) -> None:
        self.calls += 1
        shapes = tuple(tuple(t.shape) for t in leaves)
        known = self.shapes[shapes]
        if len(self.shapes) <= 4 * max_shapes or known:
            self.shapes[shapes] += 1
        if known < per_shape and (known or len({tuple(tuple(t.shape) for t in s) for s in self.samples}) < max_shapes):
            self.samples.append(_copies(leaves))

    def text(self) -> str:
        parts = [f"{n}: {str(d).removeprefix('torch.')}[{'x'.join('?' * r) if r else ''}]"
                 for n, d, r in zip(self.names, self.key.dtypes, self.key.ranks)]
        return ", ".join(parts)


def _copies(leaves: Sequence[Any]) -> List[Any]:
    with sys.modules["torch"].inference_mode(False):  # a clone made inside inference mode could never be used outside it
        return [t.detach().clone() for t in leaves]


class Part:
    """A method of a module that is to be tuned."""

    def __init__(self, name: str, module: Any, method: str = "forward", aliases: Sequence[str] = ()) -> None:
        self.name, self.module, self.method, self.aliases = name, module, method, list(aliases)
        self.original: Callable[..., Any] = getattr(module, method)
        self.original = getattr(self.original, "ait_original", self.original)  # behind a router
        self.binder = Binder(self.original)
        self.signatures: Dict[Key, Signature] = {}
        self.reasons: collections.Counter[str] = collections.Counter()  # why calls cannot be tuned
        self.share = 0.0  # of the run's time, as far as it is known
        self._lock = threading.Lock()
        self._fingerprint: str | None = None

    def __repr__(self) -> str:
        return f"<part {self.name}: {type(self.module).__name__}.{self.method}>"

    def fingerprint(self) -> str | None:
        """Of the module's weights as they are now; see _persist."""
        from ._persist import fingerprint

        if self._fingerprint is None:
            self._fingerprint = fingerprint(self.module)
        return self._fingerprint

    def canonical(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tuple[List[Any], Key] | str:
        """Flat tensors and key of a call, or the reason why it cannot be tuned."""
        bound = self.binder(args, kwargs)
        if bound is None:
            return "the arguments do not fit the signature"
        try:
            leaves, spec = _tree.flatten(bound)
        except Exception as e:  # of the user's own classes
            return f"an argument cannot be looked into: {type(e).__name__}: {e}"
        strange = _tree.opaque(spec)
        if strange:
            where, cls = strange[0]
            return f"argument {where.partition('.')[2] or where} is a {cls.rpartition(':')[2]}, neither tensor nor plain value"
        if not leaves:
            return "no argument is a tensor"
        reason = unusual(leaves)
        return reason or (leaves, Key(spec, tuple(t.dtype for t in leaves), tuple(t.dim() for t in leaves), autocast_state()))

    def record(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], per_shape: int, max_shapes: int) -> None:
        got = self.canonical(args, kwargs)
        with self._lock:
            if isinstance(got, str):
                self.reasons[got] += 1
                return
            leaves, key = got
            if key not in self.signatures:
                self.signatures[key] = Signature(key, leaf_names(key.spec))
            self.signatures[key].add(leaves, per_shape, max_shapes)

    def record_calibration(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], most: int) -> None:
        """A call of a form that is known already, kept for calibration."""
        got = self.canonical(args, kwargs)
        with self._lock:
            if not isinstance(got, str) and got[1] in self.signatures and len(self.signatures[got[1]].calibration) < most:
                self.signatures[got[1]].calibration.append(_copies(got[0]))

    def eager(self, key: Key) -> Runner:
        """The module itself, from flat tensors to flat leaves of its result."""

        def run(leaves: Sequence[Any]) -> List[Any]:
            args, kwargs = _tree.rebuild(key.spec, leaves)
            return _tree.flatten(self.original(*args, **kwargs))[0]

        return run


def unusual(leaves: Sequence[Any]) -> str | None:
    """Tensors that no tuned function takes: other devices, layouts, subclasses (FakeTensor, DTensor, functorch's)."""
    torch = sys.modules["torch"]
    for t in leaves:
        if type(t) is not torch.Tensor and type(t) is not torch.nn.Parameter:
            return f"a tensor is a {type(t).__name__}"
        if t.device.type != "cpu":
            return f"a tensor is on {t.device}"
        if t.layout is not torch.strided:
            return f"a tensor has layout {t.layout}"
    return None


# ---- recording -------------------------------------------------------------------------------------------------------------------------
class Recorder:
    """With it, calls of these parts are recorded: a few samples of each combination of sizes. calibration: up to so many calls of each known
    form are kept for calibration instead."""

    def __init__(self, parts: Sequence[Part], per_shape: int = 2, max_shapes: int = 6, calibration: int = 0) -> None:
        self.parts, self.per_shape, self.max_shapes, self.calibration = list(parts), per_shape, max_shapes, calibration
        self._patches: List[Patch] = []

    def __enter__(self) -> "Recorder":
        for part in self.parts:
            self._patches.append(Patch(part.module, part.method, functools.partial(self._make, part)))
        return self

    def _make(self, part: Part, previous: Callable[..., Any]) -> Callable[..., Any]:
        compiling = sys.modules["torch"].compiler.is_compiling

        @functools.wraps(previous)
        def recording(*args: Any, **kwargs: Any) -> Any:
            if compiling():  # control-flow operators trace their functions on each call
                return previous(*args, **kwargs)
            if self.calibration:
                part.record_calibration(args, kwargs, self.calibration)
            else:
                part.record(args, kwargs, self.per_shape, self.max_shapes)
            return previous(*args, **kwargs)

        return recording

    def __exit__(self, *exc: Any) -> None:
        while self._patches:
            self._patches.pop().undo()


# ---- tracing ---------------------------------------------------------------------------------------------------------------------------
@dataclasses.dataclass(eq=False)
class Entry:
    """What a trace saw of one method of one module."""

    found: Found
    method: str
    calls: int = 0
    seconds: float = 0.0  # in outermost calls of this entry
    tensors: bool = False  # some argument is, or holds, a tensor
    own_forward: bool = False  # it calls its module's forward: a driver such as `generate`
    shapes: "collections.Counter[str]" = dataclasses.field(default_factory=collections.Counter)
    callers: Dict[Tuple[int, str], float] = dataclasses.field(default_factory=dict)  # nearest entry above, seconds under it
    training: bool = False

    @property
    def key(self) -> Tuple[int, str]:
        return id(self.found.module), self.method

    @property
    def name(self) -> str:
        if self.method == "forward":
            return self.found.path
        return self.method if self.found.path == ROOT else f"{self.found.path}.{self.method}"


TOP: Tuple[int, str] = (0, "")


class Trace:
    """With it, calls of all found modules are timed. `entries` holds those that were called, `total` the seconds of the whole."""

    def __init__(self, found: Sequence[Found], clock: Callable[[], float] = time.perf_counter) -> None:
        self.entries: Dict[Tuple[int, str], Entry] = {}
        self.unpatchable: Dict[str, str] = {}
        self.total = 0.0
        self._found, self._clock = list(found), clock
        self._local = threading.local()
        self._lock = threading.Lock()
        self._patches: List[Patch] = []

    def __enter__(self) -> "Trace":
        for f in self._found:
            reason = unpatchable(f.module)
            if reason:
                self.unpatchable[f.path] = reason
                continue
            methods: Tuple[str, ...] = public_methods(type(f.module))  # type: ignore[arg-type]
            for method in ("forward",) + methods:
                entry = Entry(f, method)
                self._patches.append(Patch(f.module, method, functools.partial(self._make, entry)))
        self._start = self._clock()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.total += self._clock() - self._start
        while self._patches:
            self._patches.pop().undo()

    def _make(self, entry: Entry, previous: Callable[..., Any]) -> Callable[..., Any]:
        compiling = sys.modules["torch"].compiler.is_compiling

        @functools.wraps(previous)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if compiling():
                return previous(*args, **kwargs)
            stack = self._local.__dict__.setdefault("stack", [])
            start = self._clock()
            stack.append(entry)
            try:
                return previous(*args, **kwargs)
            finally:
                stack.pop()
                self._finish(entry, stack, self._clock() - start, args, kwargs)

        return timed

    def _finish(self, entry: Entry, stack: List[Entry], seconds: float, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        with self._lock:
            self.entries.setdefault(entry.key, entry)
            entry.calls += 1
            entry.training |= bool(entry.found.module.training)
            above = stack[-1].key if stack else TOP
            entry.callers[above] = entry.callers.get(above, 0.0) + seconds
            if entry not in stack:
                entry.seconds += seconds
            if entry.method == "forward":
                for e in stack:
                    e.own_forward |= e.found.module is entry.found.module and e is not entry
            if len(entry.shapes) < 32 or entry.calls < 64:
                text, tensors = _shape_text(args, kwargs)
                entry.tensors |= tensors
                entry.shapes[text] += 1

    def children(self, key: Tuple[int, str]) -> List[Entry]:
        """Entries called directly by this one (TOP: by the run itself), the slowest first."""
        return sorted((e for e in self.entries.values() if key in e.callers), key=lambda e: -e.callers[key])


def _shape_text(args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tuple[str, bool]:
    leaves, _ = _tree.flatten((args, dict(kwargs)))
    texts = ["x".join(map(str, t.shape)) or "scalar" for t in leaves]
    return ", ".join(texts[:6]) + (" ..." if len(texts) > 6 else ""), bool(leaves)
