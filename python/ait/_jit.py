"""How the JIT works: `torch.nn.Module.__call__` is replaced, outermost calls are watched, a watch goes through phases.

    learn -> (cache, or export and a job) -> probe (original and tuned in turn, on the script's own calls) -> tuned
                                          \\-> descend: the module's children are watched instead
                                          \\-> original: it stays as it is

`_side_effects.py`: what calls change besides results. `_jit_probe.py`: the router, and who decides for each size of calls. `_jit_jobs.py`: export
and the process that tunes. `_jit_cache.py`: the folder on disk.
"""
from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import math
import os
import pathlib
import sys
import threading
import time
import typing
import weakref

from ait import _export, _jit_cache, _jit_jobs
from ait._errors import ExportError
from ait._jit_jobs import Job
from ait._jit_probe import JitRouter
from ait._side_effects import Snapshot, watching_print
from ait._modules import Key, Part, Patch, Signature, unpatchable
from ait._router import Router, Tuned
from ait._state import special_mode

Any = typing.Any
log = logging.getLogger("ait.jit")

LEAST_SECONDS, LEAST_OF_CHILD = 1e-4, 3e-4  # a module that takes less for a call is not worth it
MISSES, RETUNES = 3, 2
AFTER_TRAINING = 64  # calls in a row, without a change of the weights, before a module that was trained is tuned
COLLAPSE = 16  # calls of a module that was opened after which it is looked whether that was of use
MAX_DEPTH = 6  # of modules that were given up in favour of their children


@dataclasses.dataclass
class Settings:
    mode: str = "foreground"
    budget: float = 60.0
    backends: list[str] | None = None
    cache: pathlib.Path = pathlib.Path()
    calls: int = 3


class _Local(threading.local):
    inside = False  # a call of a watched module is running: the modules in it are its own affair


_local = _Local()
_watches: dict[int, "Watch"] = {}
_names: dict[int, tuple[str, int]] = {}  # children of modules that were given up: path, depth
_settings = Settings()
_enabled = False
_held = False
_spent = 0.0
_lock = threading.RLock()
_original_call: Any = None
_kinds: dict[str, int] = {}


# ---- on and off ------------------------------------------------------------------------------------------------------------------------
_MODES = {"1": "foreground", "on": "foreground", "true": "foreground", "foreground": "foreground", "background": "background", "deferred": "deferred",
          "0": "off", "off": "off", "false": "off", "": "off"}


def enable(mode: str, budget: float | None, backends: typing.Sequence[str] | None, cache: Any, calls: int | None) -> None:
    global _settings, _enabled, _held, _original_call
    import torch

    if mode.lower() not in _MODES:
        raise ValueError(f"there is no JIT mode '{mode}': foreground (1), background, deferred, off (0)")
    mode = _MODES[mode.lower()]
    if mode == "off":
        disable()
        return
    names = os.environ.get("AIT_JIT_BACKENDS", "")
    _settings = Settings(
        mode=mode, budget=float(budget if budget is not None else os.environ.get("AIT_JIT_BUDGET", 60)),
        backends=list(backends) if backends is not None else [n for n in names.split(",") if n] or None,
        cache=pathlib.Path(cache or os.environ.get("AIT_JIT_CACHE") or _jit_cache.default_folder()),
        calls=max(1, int(calls if calls is not None else os.environ.get("AIT_JIT_CALLS", 3))))
    _held = mode == "deferred"
    if _enabled:
        return
    _original_call = torch.nn.Module.__call__
    setattr(torch.nn.Module, "__call__", _make_call(torch))
    _enabled = True


def disable() -> None:
    global _enabled, _spent
    if not _enabled:
        return
    import torch

    _enabled = False
    setattr(torch.nn.Module, "__call__", _original_call)
    for watch in list(_watches.values()):
        watch.leave()
    _watches.clear()
    _names.clear()
    _kinds.clear()
    _spent = 0.0


def hold() -> None:
    global _held
    _held = True


def release() -> None:
    global _held
    _held = False


def _after_fork() -> None:
    """A child uses what is tuned, and tunes nothing; the jobs are its parent's."""
    global _held, _lock
    _held, _lock = True, threading.RLock()
    _jit_jobs.after_fork()
    for watch in list(_watches.values()):
        watch.job, watch.busy = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _make_call(torch: Any) -> Any:
    """The new Module.__call__. For a module inside a watched one it does what torch's own does, in as many steps."""
    compiling, special = torch.compiler.is_compiling, special_mode()
    local, watches = _local, _watches
    plain = hasattr(torch.nn.Module, "_wrapped_call_impl") and hasattr(torch.nn.Module, "_call_impl") and hasattr(torch.nn.Module, "_compiled_call_impl")
    original = _original_call

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if local.inside or compiling():
            if plain and self._compiled_call_impl is None:
                return self._call_impl(*args, **kwargs)
            return original(self, *args, **kwargs)
        watch = watches.get(id(self))
        if watch is None or watch.module() is not self:
            watch = _new_watch(self)
        if watch.settled:
            local.inside = True
            try:
                return original(self, *args, **kwargs)
            finally:
                local.inside = False
        if special():
            return original(self, *args, **kwargs)
        return watch.step(self, args, kwargs)

    return __call__


def _inside(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _local.inside = True
    try:
        return _original_call(module, *args, **kwargs)
    finally:
        _local.inside = False


def _new_watch(module: Any) -> "Watch":
    with _lock:
        watch = _watches.get(id(module))
        if watch is None or watch.module() is not module:
            watch = Watch(module)
            _watches[id(module)] = watch
        return watch


def _forget(key: int, gone: Any) -> None:
    """A module has gone: so does what was tuned for it."""
    watch = _watches.get(key)
    if watch is not None and watch.module is gone:
        del _watches[key]
        _names.pop(key, None)


class _WatchedPart(Part):
    """A part that does not keep its module alive."""

    def __init__(self, name: str, module: Any) -> None:
        self._ref: Any = weakref.ref(module)
        super().__init__(name, module)

    @property
    def module(self) -> Any:
        return self._ref()

    @module.setter
    def module(self, module: Any) -> None:
        pass

    @property
    def original(self) -> Any:
        module = self._ref()
        return type(module).forward.__get__(module)

    @original.setter
    def original(self, original: Any) -> None:
        pass


# ---- one module ------------------------------------------------------------------------------------------------------------------------
class Watch:
    def __init__(self, module: Any) -> None:
        key = id(module)
        self.module: Any = weakref.ref(module, lambda gone: _forget(key, gone))
        kind = type(module).__name__
        self.name, self.depth = _names.get(key, ("", 0))
        if not self.name:
            _kinds[kind] = _kinds.get(kind, 0) + 1
            self.name = kind if _kinds[kind] == 1 else f"{kind}#{_kinds[kind]}"
        self.calls = 0
        self.needed = _settings.calls  # calls before it is tuned
        self.seconds: list[float] = []
        self.reason = ""
        self.speedup: float | None = None
        self.known: set[Key] = set()  # forms of calls that the cache was asked for
        self.wanted: Key | None = None  # a form that is learned beside what is tuned
        self.part: Part | None = None
        self._router: Any = lambda: None
        self.job: Job | None = None
        self.misses = self.retunes = self.opened = self.strange = 0
        self.watched = 0  # calls whose side effects were looked for
        self.versions = -1
        self.busy = threading.Lock()
        self.digest: str | None = None
        self.phase = "learn"
        self.settled = False
        self.step: typing.Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = self.learn
        problem = _untouchable(module)
        if problem:
            self.settle("original", problem)

    @property
    def router(self) -> JitRouter | None:
        found: JitRouter | None = self._router()
        return found

    @property
    def tuned(self) -> list[Tuned]:
        router = self.router
        return [t for ts in router.table.values() for t in ts] if router is not None else []

    # ---- phases that last ------------------------------------------------------------------------------------------------------------
    def settle(self, phase: str, reason: str = "", loud: bool = False) -> None:
        self.phase = phase
        self.reason = reason or self.reason
        self.step = {"original": _inside, "tuned": _inside, "probe": _inside, "descend": self.open}[phase]
        self.settled = phase != "descend"
        if reason:
            (log.warning if loud else log.info)("'%s' %s: %s", self.name, "keeps its original code" if phase == "original" else phase, reason)

    def _stay(self, reason: str) -> None:
        """With what is tuned already, if anything is."""
        self.settle("tuned" if self.router is not None else "original", reason)

    def open(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.opened += 1
        if self.opened % COLLAPSE == 0 and not _held:
            below = [_watches[id(m)] for m in module.modules() if m is not module and id(m) in _watches]
            if below and all(w.phase == "original" for w in below if w.module() is not None):
                self.settle("original")  # nothing inside is of interest: no need to look at each call there
        return _original_call(module, *args, **kwargs)

    def descend(self, module: Any, reason: str) -> None:
        """The module itself cannot be tuned: its children may."""
        children = [(n, m) for n, m in module.named_modules() if n]
        if not children or self.depth >= MAX_DEPTH:
            self.settle("original", reason, loud=self.depth == 0)
            return
        for name, child in children:
            _names.setdefault(id(child), (f"{self.name}.{name}", self.depth + 1))
        self.settle("descend", reason, loud=self.depth == 0)

    # ---- learning ----------------------------------------------------------------------------------------------------------------------
    def learn(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if module.training:
            self._trained()
            return _inside(module, args, kwargs)
        if not self.busy.acquire(blocking=False):
            return _inside(module, args, kwargs)
        try:
            return self._learn(module, args, kwargs)
        finally:
            self.busy.release()

    def _trained(self) -> None:
        """A module whose weights change is tuned only when they have been left alone for a while."""
        self.needed, self.calls = max(self.needed, AFTER_TRAINING), 0

    def _learn(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.part is None:
            from torch.nn.parameter import is_lazy

            if any(is_lazy(t) for t in itertools.chain(module.parameters(), module.buffers())):
                return _inside(module, args, kwargs)
            self.part = _WatchedPart(self.name, module)
        got = self.part.canonical(args, kwargs)
        if isinstance(got, str):
            self.strange += 1
            if self.strange >= 2 and not self.calls:
                self.descend(module, got)
                return self.step(module, args, kwargs)
            return _inside(module, args, kwargs)
        key = got[1]
        if self.wanted is not None and key != self.wanted:
            return _inside(module, args, kwargs)
        versions = sum(t._version for t in module.parameters() if not t.is_inference())
        if versions != self.versions and self.versions >= 0:
            self._trained()
        self.versions = versions
        if self.depth == 0:  # of what is inside another module, little is worth the question
            self._guard(self._from_cache, module, key)
            if self.phase != "learn":
                return self.step(module, args, kwargs)
        result, changed = self._timed(module, args, kwargs)
        self.calls += 1
        if self.settled:
            return result
        if changed:  # extra calls would change it, too
            self._guard(self._keeps_state, module, changed, key)
            return result
        if self.calls <= 8 * self.needed:
            self.part.record(args, kwargs, 1, 6)
        self._next(module, key)
        return result

    def _timed(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, str]:
        """The result of a call, and what else it changed: nothing that happens in the first call alone counts (modules make caches then)."""
        before = None
        if self.watched < max(2, _settings.calls):
            with contextlib.suppress(Exception):  # of the user's own classes
                before = Snapshot(module)
            if before is None:
                self.settle("original", "its attributes cannot be looked into")
        watching = before is not None
        watch: Any = watching_print() if watching else contextlib.nullcontext([])
        with watch as printed:
            start = time.perf_counter()
            result = _inside(module, args, kwargs)
            self.seconds = (self.seconds + [time.perf_counter() - start])[-16:]
        if before is None:
            return result, ""
        self.watched += 1
        try:
            change = "what was printed" if printed else before.change()
        except Exception as error:  # of the user's own classes
            change = f"something ({error})"
        if change and self.watched == 1 and not printed:
            self.needed = max(self.needed, self.calls + 2)
            return result, ""
        return result, change

    def _next(self, module: Any, key: Key) -> None:
        if self.job is not None:
            if self.job.done():
                self._guard(self._finish, module)
            return
        small = min(self.seconds) < (LEAST_OF_CHILD if self.depth else LEAST_SECONDS)
        if self.depth and not small:
            self._guard(self._from_cache, module, key)
        if self.phase == "learn" and self.calls >= self.needed and not _held:
            if small:
                self.settle("original", f"a call takes {1e6 * min(self.seconds):.0f} us: nothing to gain")
            else:
                self._guard(self._tune, module)

    def _guard(self, do: typing.Callable[..., None], module: Any, *args: Any) -> None:
        """Whatever goes wrong, the script goes on with the original."""
        try:
            do(module, *args)
        except Exception as error:
            text = str(error).partition("\n")[0]
            self.leave()
            self.settle("original", f"{type(error).__name__}: {text}", loud=True)

    def _keeps_state(self, module: Any, changed: str, key: Key) -> None:
        reason = f"a call changes '{changed}', which a tuned call would not do"
        _jit_cache.put_reason(_settings.cache, self._key(module, key), reason, descend=True)
        self.descend(module, reason)

    def _key(self, module: Any, key: Key) -> str:
        if self.digest is None:
            self.digest = _jit_cache.digest_of(module, _settings.backends)
        return _jit_cache.digest_with(self.digest, key)

    def _from_cache(self, module: Any, key: Key) -> None:
        if key in self.known or self.job is not None:
            return
        self.known.add(key)
        if not any(True for _ in module.parameters()):
            return
        entry = _jit_cache.find(_settings.cache, self._key(module, key), module)
        if entry is not None:
            self._use(module, entry)

    def _use(self, module: Any, entry: _jit_cache.Entry) -> None:
        if entry.descend:
            self.descend(module, entry.reason)
        elif entry.reason:
            self.settle("original", entry.reason)
        else:
            self._install(module, entry)

    # ---- tuning ------------------------------------------------------------------------------------------------------------------------
    def _tune(self, module: Any) -> None:
        global _spent
        assert self.part is not None
        left = _settings.budget - _spent
        if left < 1.0:
            self._stay(f"the budget of {_settings.budget:g} s was used up (AIT_JIT_BUDGET): the next run goes on")
            return
        problem = None if self.router is not None else _untouchable(module)
        if problem:
            self.settle("original", problem)
            return
        signature = max((s for s in self.part.signatures.values() if s.samples and self.wanted in (None, s.key)), key=lambda s: s.calls)
        start = time.perf_counter()
        key = self._key(module, signature.key)
        background = _settings.mode == "background"
        try:
            with _jit_cache.turn(_settings.cache, key, 0.0 if background else 4 * left + 120) as mine:
                entry = _jit_cache.find(_settings.cache, key, module)  # another process may have tuned it meanwhile
                if entry is not None:
                    self._use(module, entry)
                elif mine >= 0:
                    self._start(module, signature, key, max(5.0, min(left, max(20.0, left / 3))), background, mine)
                else:
                    self.calls = 0  # another process tunes it: asked again later
                    self.known.discard(signature.key)
        finally:
            _spent += time.perf_counter() - start

    def _start(self, module: Any, signature: Signature, key: str, budget: float, background: bool, turn: int) -> None:
        assert self.part is not None
        _local.inside = True
        try:
            with sys.modules["torch"].inference_mode(False), _jit_jobs.same_random_numbers():
                _jit_jobs.other_batch(self.part, signature)
                programs = _export.export_signature(self.part, signature)
        except ExportError as error:
            _jit_cache.put_reason(_settings.cache, key, str(error.reason), descend=True)
            self.descend(module, str(error.reason))
            return
        finally:
            _local.inside = False
        self.job = Job(_settings.cache, _jit_cache.with_weights(key, module), programs, budget, _settings.backends, background, turn)
        if not background:
            self.job.wait()
            self._finish(module)

    def _finish(self, module: Any) -> None:
        job, self.job = self.job, None
        assert job is not None
        error = job.take()
        entry = None if error else _jit_cache.entry_of(_settings.cache, job.key)
        if entry is None or entry.reason:
            reason = error or (entry.reason if entry is not None else "the result is not there")
            if error:  # its parts may be what the tuner takes
                _jit_cache.put_reason(_settings.cache, job.key.partition("/")[0], reason, descend=True)
                self.descend(module, reason)
            else:
                self.settle("original", reason)
            return
        self._install(module, entry)

    def _install(self, module: Any, entry: _jit_cache.Entry) -> None:
        assert self.part is not None
        new = entry.load()
        before = self.tuned
        keys = {t.key for t in new}
        self.leave()
        router = JitRouter(self.part, type(module).forward.__get__(module))
        router.watch = self
        router.install([t for t in before if t.key not in keys] + new)
        for t in new:
            router.judge(t, entry.verdicts.get(pathlib.Path(t.source).name, {}))
        router.patch = Patch(module, "forward", lambda previous: router)
        self._router = weakref.ref(router)
        self.settle("probe")

    def decide(self, ratio: float | None, why: str, lasting: bool = False) -> bool:
        """What the script's own calls of one size have shown: whether the tuned function is used for them."""
        router = self.router
        if router is None:
            return False
        good = ratio is not None and ratio > 1.0
        self.speedup = ratio
        if lasting:
            for t in self.tuned:
                _jit_cache.put_reason(_settings.cache, _jit_cache.key_of(t.source), why, descend=False)
            self.leave()
            self.settle("original", why, loud=True)
        elif good:
            if self.phase != "tuned":
                log.info("'%s' is tuned: %.2f times as fast", self.name, ratio)
            self.settle("tuned")
            for s in router.part.signatures.values():
                s.samples.clear()  # they have served; new forms of calls bring their own
        return good

    def decided(self, router: JitRouter, reason: str) -> None:
        """After a decision: it is kept for the next run, and where the original was the better one for all sizes that came, it is all there is."""
        judges = router.judges()
        for t in self.tuned:
            wins = {size: j.ratio for size, j in t.judges.items() if j.tuned and j.ratio is not None}  # type: ignore[attr-defined]
            if wins:
                _jit_cache.prove(_settings.cache, t.source, wins)
        if any(j.tuned or j.left > 0 for j in judges):
            return
        seen = {j for t in self.tuned for j in t.judges}  # type: ignore[attr-defined]
        signatures = self.part.signatures.values() if self.part is not None else ()
        expected = {sum(math.prod(shape) for shape in shapes).bit_length() for s in signatures for shapes in s.shapes}
        if expected <= seen:
            self.give_up(reason)

    def give_up(self, reason: str) -> None:
        for t in self.tuned:
            if _jit_cache.lost(t.source) > 1:  # once may have been noise
                _jit_cache.put_reason(_settings.cache, _jit_cache.key_of(t.source), reason, descend=False)
        self.leave()
        self.settle("original", reason)

    def idle(self) -> None:
        router = self.router
        if router is not None and not any(j.tuned for j in router.judges()):
            self.give_up("the original is as fast for calls of these sizes")

    def leave(self) -> None:
        """The module as it was."""
        router = self.router
        if router is not None and router.patch is not None:
            router.patch.undo()
            router.table = {}  # where somebody has kept it, it is the original
        self._router = lambda: None

    def missed(self, reason: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call that what was tuned does not take: after some of them, they are learned, too."""
        module = self.module()
        if module is None or self.part is None or self.phase == "learn":
            return
        if module.training:
            self._trained()
            return
        self.misses += 1
        if "changed after tuning" in reason:
            if self.misses >= MISSES:  # not for a moment only, as by torch.func.functional_call
                self.leave()
                self.digest = None
                self.needed *= 8
                self._again(reason)
            return
        self.part.record(args, kwargs, 1, 6)
        if self.misses >= MISSES:
            got = self.part.canonical(args, kwargs)
            self._again(reason, None if isinstance(got, str) else got[1])

    def _again(self, reason: str, form: Key | None = None) -> None:
        self.misses, self.calls = 0, 0
        self.retunes += 1
        if self.retunes > RETUNES or (self.router is not None and form is None):
            if self.router is None:
                self.settle("original", reason, loud=True)
            return
        assert self.part is not None
        self.wanted = None
        if self.router is None:
            self.known.clear()
        else:
            self.wanted = form
        log.info("'%s' learns again: %s", self.name, reason)
        self.phase, self.step, self.settled = "learn", self.learn, False

    def describe(self) -> dict[str, Any]:
        module, router = self.module(), self.router
        row = {"name": self.name, "class": type(module).__name__ if module is not None else "", "state": self.phase, "reason": self.reason,
               "calls": self.calls, "speedup": self.speedup, "tuned_calls": 0, "backends": []}
        if router is not None:
            row["tuned_calls"] = router.tuned_calls
            row["backends"] = [getattr(t.runner, "backend", "") for t in self.tuned]
        return row


def _untouchable(module: Any) -> str | None:
    """Why a module is left alone; None: it need not be. A copy's forward that is its original's is taken away."""
    own = module.__dict__.get("forward")
    if isinstance(own, Router) and own.part.module is not module:  # copy.copy takes the dict as it is
        del module.__dict__["forward"]
        own = None
    if getattr(own, "__self__", None) is module and getattr(own, "__func__", None) is getattr(type(module), "forward", None) and not isinstance(own, Router):
        del module.__dict__["forward"]  # copy.deepcopy of a tuned module
        own = None
    if isinstance(own, Router):
        return "it was tuned by ait.tune or loaded by ait.load"
    if own is not None:
        return "its forward was replaced by somebody else"
    if getattr(module, "_compiled_call_impl", None) is not None:
        return "it was compiled by module.compile()"
    return unpatchable(module)


def wait(seconds: float) -> bool:
    return _jit_jobs.wait(seconds)


def report() -> list[dict[str, Any]]:
    return [w.describe() for w in list(_watches.values()) if w.module() is not None]


def save(path: Any) -> None:
    from ait import _persist

    modules = [w.module() for w in list(_watches.values()) if w.phase == "tuned" and w.router is not None]
    modules = [m for m in modules if m is not None]
    if not modules:
        raise ValueError("nothing is tuned yet")
    _persist.save(modules[0] if len(modules) == 1 else modules, path)
