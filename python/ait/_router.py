"""What stands in the place of a tuned method: it sends each call to the tuned function that fits, or to the original.

Never silently wrong: the original runs, and the reason is counted and logged once, when the call is of a form that was not tuned, the module
is in training mode, an argument needs gradients, a parameter, buffer or attribute was changed or replaced after tuning (`_state.py`), a submodule
got a hook, or the tuned function fails. Parameters that need gradients while grad mode is on (an eval loop without no_grad): the tuned function answers, and a
backward pass through its result runs the original again, so that gradients are right.

A router is called by any number of threads. Its table is replaced, never changed.
"""
from __future__ import annotations

import collections
import functools
import inspect
import itertools
import logging
import operator
import sys
import types
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from . import _tree
from ._modules import Key, Part, Patch, Runner
from ._state import State, special_mode

log = logging.getLogger("ait")
MAX_PLANS = 512  # remembered forms of calls; more are looked up each time

_needs_grad = operator.attrgetter("requires_grad")


class Tuned:
    """One tuned function: which calls it takes, the runner, how its results become the module's."""

    def __init__(self, key: Key, shape: Sequence[Sequence[Any]], out_spec: _tree.Spec, runner: Runner, source: Any = None) -> None:
        self.key, self.shape, self.out_spec, self.runner, self.source = key, shape, out_spec, runner, source
        self.calls = itertools.count()
        self.build = _builder(out_spec)

    def accepts(self, leaves: Sequence[Any]) -> bool:
        return all(t.dim() == len(want) and all(bool(isinstance(w, str) or w == s) for w, s in zip(want, t.shape))
                   for t, want in zip(leaves, self.shape))


def _builder(spec: _tree.Spec) -> Callable[[List[Any]], Any]:
    if spec == _tree.LEAF:
        return operator.itemgetter(0)
    if spec[0] == "tuple" and all(s == _tree.LEAF for s in spec[1]):
        return tuple
    return functools.partial(_tree.rebuild, spec)


class Router:
    """The callable that takes the place of `module.method`."""

    def __init__(self, part: Part, previous: Callable[..., Any]) -> None:
        functools.update_wrapper(self, previous)
        try:
            self.__signature__ = inspect.signature(previous)
        except (TypeError, ValueError):
            pass
        self.part, self.original = part, previous
        self.patch: Patch | None = None
        self.__self__ = part.module
        self.__func__ = getattr(previous, "__func__", previous)
        for name in ("__code__", "__globals__", "__defaults__", "__kwdefaults__", "__closure__"):  # torch.jit.script and torch.export read them
            if hasattr(self.__func__, name):
                setattr(self, name, getattr(self.__func__, name))
        self.ait_original = previous
        self.table: Dict[Key, List[Tuned]] = {}
        self.enabled = True
        self.reasons: collections.Counter[str] = collections.Counter()  # calls of the original, by reason
        self._plans: Dict[Any, Tuple[Tuned, List[int]]] = {}
        self._torch = sys.modules["torch"]
        self._exact = (self._torch.Tensor, self._torch.nn.Parameter)
        self._state: State | None = None
        self._special = special_mode()
        self.without_original = any(t.device.type == "meta" for t in itertools.chain(part.module.parameters(), part.module.buffers()))

    def install(self, tuned: Sequence[Tuned]) -> None:
        """From now on calls go to these functions. Remembers the module's parameters as they are."""
        table: Dict[Key, List[Tuned]] = {}
        for t in tuned:
            table.setdefault(t.key, []).append(t)
        self._state = State(self.part.module)
        self._plans = {}
        self.table = table

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return types.MethodType  # for inspect, by which torch.jit.script and others find the source of a method

    @property
    def tuned_calls(self) -> int:
        return sum(int(t.calls.__reduce__()[1][0]) for ts in self.table.values() for t in ts)

    def __reduce__(self) -> Any:
        # A copy or a pickle of the module is the plain module: what was tuned belongs to this one's parameters.
        return getattr, (self.part.module, self.part.method)

    # ---- a call ------------------------------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.table or not self.enabled or self._torch.compiler.is_compiling() or self._special():
            return self.original(*args, **kwargs)
        state = self._state
        changed = state.changed() if state is not None else None
        if changed:
            return self._fall_back(changed, args, kwargs)
        found = self._find(args, kwargs)
        if isinstance(found, str):
            return self._fall_back(found, args, kwargs)
        return self._answer(found[0], found[1], args, kwargs)

    def _answer(self, tuned: Tuned, leaves: List[Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        state, grad = self._state, False
        if self._torch.is_grad_enabled():
            if any(map(_needs_grad, leaves)):
                return self._fall_back("an argument needs gradients", args, kwargs)
            grad = state is not None and any(map(_needs_grad, state.parameters))
        try:
            results = tuned.runner(leaves)
        except Exception as e:  # whatever a backend raises: the original still runs
            return self._fall_back(f"the tuned function does not take it: {str(e).splitlines()[0] if str(e) else type(e).__name__}", args, kwargs)
        next(tuned.calls)
        if grad:
            results = _with_gradients(self, results, args, kwargs)
        return tuned.build(results)

    def _fall_back(self, reason: str, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        self.reasons[reason] += 1
        if self.without_original:
            raise RuntimeError(f"'{self.part.name}' has no weights in memory (device meta), and this call was not tuned: {reason}")
        if self.reasons[reason] == 1:
            log.warning("'%s' runs its original code: %s", self.part.name, reason)
        return self._run_original(args, kwargs)

    def _run_original(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        state = self._state
        same = state is not None and state.changed() is None
        result = self.original(*args, **kwargs)
        if same and state is not None:
            state.accept_attributes()
        return result

    def _find(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tuple[Tuned, List[Any]] | str:
        """The tuned function and the flat tensors of this call, or why there is none."""
        quick, leaves = self._quick(args, kwargs)
        if quick is not None:
            known = self._plans.get(quick)
            if known is not None:
                tuned, order = known
                return tuned, [leaves[i] for i in order]
        got = self.part.canonical(args, kwargs)
        if isinstance(got, str):
            return got
        flat, key = got
        choices = self.table.get(key)
        if choices is None:
            return self._why_not(key)
        for t in choices:
            if t.accepts(flat):
                if quick is not None:
                    if len(self._plans) >= MAX_PLANS:
                        self._plans = {}
                    where = {id(v): i for i, v in enumerate(leaves)}
                    self._plans[quick] = t, [where[id(v)] for v in flat]
                return t, flat
        return f"no tuned function takes the sizes {', '.join(str(list(v.shape)) for v in flat)}"

    def _quick(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tuple[Any, List[Any]]:
        """A key of the call as it stands (for calls whose arguments hold no containers), and its tensors in the order of writing."""
        marks: List[Any] = [self._torch.is_autocast_enabled("cpu") and self._torch.get_autocast_dtype("cpu"), len(args), *kwargs]
        leaves: List[Any] = []
        for v in itertools.chain(args, kwargs.values()):
            kind = type(v)
            if kind in self._exact:
                if any(v is seen for seen in leaves):  # the same tensor twice: places cannot be told by identity
                    return None, leaves
                leaves.append(v)
                marks.append((v.dtype, v.shape, v.device, v.layout))
            elif v is None or kind in (int, bool, str):
                marks.append((kind, v))
            else:
                return None, leaves
        return tuple(marks), leaves

    def _why_not(self, key: Key) -> str:
        """What is new about a call, against the nearest form that was tuned."""
        for other in self.table:
            if other.spec == key.spec and other.dtypes == key.dtypes and other.ranks == key.ranks:
                return f"autocast is {key.autocast or 'off'}, tuned was {other.autocast or 'off'}"
        for other in self.table:
            if other.spec == key.spec:
                return (f"dtypes or ranks were not tuned: {', '.join(str(d).removeprefix('torch.') + f' of rank {r}' for d, r in zip(key.dtypes, key.ranks))}")
        nearest = next(iter(self.table))
        mine, theirs = dict(_tree.walk(key.spec)), dict(_tree.walk(nearest.spec))
        for path, node in mine.items():
            if theirs.get(path) != node:
                was = theirs.get(path)
                name = _tree.path_text(path[1:]) or "an argument"
                return f"argument '{name}' is {_show(node)}, tuned was {_show(was) if was else 'without it'}"
        return "the arguments have another structure than those that were tuned"


def _show(node: _tree.Spec) -> str:
    return {"t": "a tensor", "n": "a number", "x": "an object"}.get(node[0]) or repr(node[2])


# ---- gradients -------------------------------------------------------------------------------------------------------------------------
@functools.lru_cache(maxsize=None)
def _recompute() -> Any:
    import torch

    class Recompute(torch.autograd.Function):  # type: ignore[misc]
        """Results of a tuned function that know their gradients: backward runs the original code."""

        @staticmethod
        def forward(ctx: Any, again: Any, count: int, *tensors: Any) -> Any:
            results, ctx.parameters = tensors[:count], tensors[count:]
            ctx.again = again
            ctx.versions = [p._version for p in ctx.parameters]
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*[r for r in results if not r.is_floating_point() and not r.is_complex()])
            return tuple(r.detach() for r in results)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if [p._version for p in ctx.parameters] != ctx.versions:
                raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation: a parameter of a "
                                   "module that ait tuned")
            higher = torch.is_grad_enabled()  # backward(create_graph=True)
            with torch.enable_grad():
                results = [t for t in _tree.flatten(ctx.again())[0] if _tree.is_tensor(t)]
                pairs = [(t, g) for t, g in zip(results, grads) if g is not None and t.requires_grad]
                found = torch.autograd.grad([t for t, _ in pairs], ctx.parameters, [g for _, g in pairs], create_graph=higher,
                                            allow_unused=True) if pairs else (None,) * len(ctx.parameters)
            return (None, None, *(None,) * len(grads), *found)

    return Recompute


def _with_gradients(router: Router, results: Sequence[Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> List[Any]:
    assert router._state is not None
    parameters = [p for p in router._state.parameters if p.requires_grad]
    tensors = [i for i, r in enumerate(results) if _tree.is_tensor(r)]
    given = [t for t in _tree.flatten((args, dict(kwargs)))[0] if not t.is_inference()]
    versions = [t._version for t in given]

    def again() -> Any:
        if [t._version for t in given] != versions:
            raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation: an argument of a "
                               "module that ait tuned")
        return router.original(*args, **kwargs)

    marked = _recompute().apply(again, len(tensors), *[results[i] for i in tensors], *parameters)
    out = list(results)
    for i, r in zip(tensors, marked):
        out[i] = r
    return out


# ---- putting routers in and taking them out -----------------------------------------------------------------------------------------------
def router_of(module: Any, method: str = "forward") -> Router | None:
    found = module.__dict__.get(method)
    return found if isinstance(found, Router) else None


def route(part: Part) -> Router:
    """The router of a part: put in its place when it is not there yet."""
    router = router_of(part.module, part.method)
    if router is None:
        patch = Patch(part.module, part.method, lambda previous: Router(part, previous))
        router = patch.replacement  # type: ignore[assignment]
        assert isinstance(router, Router)
        router.patch = patch
    return router


def unroute(module: Any, method: str = "forward") -> bool:
    """Takes a router away: the module is as it was before."""
    router = router_of(module, method)
    if router is None:
        return False
    router.table = {}
    if router.patch is not None:
        router.patch.undo()
    return True
