"""How the JIT works: `torch.nn.Module.__call__` is replaced, outermost calls are watched, a watch goes through phases.

    learn -> (cache, or export and a job) -> probe (original and tuned in turn, on the script's own calls) -> tuned
                                          \\-> descend: the module's children are watched instead
                                          \\-> original: it stays as it is
"""
from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import typing
import weakref

from ait import _export, _jit_cache, _tree
from ait._errors import ExportError
from ait._modules import Key, Part, Patch, Signature, unpatchable
from ait._router import Router, Tuned

Any = typing.Any
log = logging.getLogger("ait.jit")

LEAST_SECONDS, LEAST_OF_CHILD = 1e-4, 3e-4  # a module that takes less for a call is not worth it
PAIRS, PAIRS_KNOWN, PAIR_SECONDS = 5, 2, 0.5  # original and tuned in turn: how often, and no longer than
MISSES, RETUNES = 3, 2
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
    global _held
    _held = True  # a child uses what is tuned, and tunes nothing


os.register_at_fork(after_in_child=_after_fork)


def _make_call(torch: Any) -> Any:
    """The new Module.__call__. For a module inside a watched one it does what torch's own does, in as many steps."""
    compiling = torch.compiler.is_compiling
    local, watches = _local, _watches
    plain = hasattr(torch.nn.Module, "_wrapped_call_impl") and hasattr(torch.nn.Module, "_call_impl") and hasattr(torch.nn.Module, "_compiled_call_impl")
    original = _original_call

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or local.inside:
            if plain and self._compiled_call_impl is None:
                return self._call_impl(*args, **kwargs)
            return original(self, *args, **kwargs)
        watch = watches.get(id(self))
        if watch is None or watch.module() is not self:
            watch = _new_watch(self)
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
        if len(_watches) > 4096:
            for key in [k for k, w in _watches.items() if w.module() is None]:
                del _watches[key]
        watch = Watch(module)
        _watches[id(module)] = watch
        return watch


# ---- the router: what a tuned module has as its forward --------------------------------------------------------------------------------------
class JitRouter(Router):
    watch: "Watch"

    def _fall_back(self, reason: str, args: tuple[Any, ...], kwargs: typing.Mapping[str, Any]) -> Any:
        self.reasons[reason] += 1
        self.watch.missed(reason, args, dict(kwargs))
        return self.original(*args, **kwargs)


class Prober:
    """For the first calls: original and tuned in turn, on the script's own arguments. The original's result is what the script gets."""

    def __init__(self, watch: "Watch", router: JitRouter, pairs: int) -> None:
        self.watch, self.router, self.pairs = watch, router, pairs
        self.times: list[tuple[float, float]] = []
        self.ait_original = router.original

    def __reduce__(self) -> Any:
        return getattr, (self.router.part.module, "forward")  # a copy or a pickle of the module is the plain module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import torch

        router = self.router
        found = router._find(args, kwargs)
        if isinstance(found, str) or (router._state is not None and router._state.changed()):
            return router(*args, **kwargs)
        clock = time.perf_counter
        before = sum(router.reasons.values())
        got, want, tuned_s = None, None, 0.0
        tuned_first = len(self.times) % 2 == 1
        if tuned_first:
            start = clock()
            got = router(*args, **kwargs)
            tuned_s = clock() - start
        start = clock()
        want = router.original(*args, **kwargs)
        original_s = clock() - start
        if not tuned_first:
            start = clock()
            got = router(*args, **kwargs)
            tuned_s = clock() - start
        if sum(router.reasons.values()) != before:
            return want
        with torch.no_grad():
            problem = _difference(got, want)
        self.times.append((original_s, tuned_s))
        spent = sum(a + b for a, b in self.times)
        if problem:
            self.watch.decide(None, f"the tuned function's result differs on this call: {problem}", lasting=True)
        elif len(self.times) >= self.pairs or (len(self.times) >= 2 and spent > PAIR_SECONDS):
            times = self.times[1:] if len(self.times) > 2 else self.times  # the first call finds cold caches
            ratio = min(a for a, _ in times) / min(b for _, b in times)  # on a busy machine the least is the least wrong
            self.watch.decide(ratio, f"the original is as fast (ratio {ratio:.2f})")
        return want


def _difference(got: Any, want: Any) -> str | None:
    ours, theirs = _tree.flatten(got), _tree.flatten(want)
    if not _export._fits(ours[1], theirs[1]):
        return "its structure"
    return _export.same(ours[0], theirs[0])


# ---- one module ------------------------------------------------------------------------------------------------------------------------
class Watch:
    def __init__(self, module: Any) -> None:
        self.module: Any = weakref.ref(module)
        kind = type(module).__name__
        self.name, self.depth = _names.get(id(module), ("", 0))
        if not self.name:
            _kinds[kind] = _kinds.get(kind, 0) + 1
            self.name = kind if _kinds[kind] == 1 else f"{kind}#{_kinds[kind]}"
        self.calls = 0
        self.seconds: list[float] = []
        self.reason = ""
        self.speedup: float | None = None
        self.known: set[Key] = set()  # forms of calls that the cache was asked for
        self.tuned: list[Tuned] = []
        self.part: Part | None = None
        self.router: JitRouter | None = None
        self.patch: Patch | None = None
        self.job: Job | None = None
        self.misses = self.retunes = 0
        self.busy = threading.Lock()
        self.digest: str | None = None
        self.phase = "learn"
        self.step: typing.Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = self.learn
        problem = unpatchable(module)
        if problem or "forward" in module.__dict__:
            self.settle("original", problem or "its forward was replaced by somebody else")
        elif not isinstance(module, (sys.modules["torch"].nn.Module,)):
            self.settle("original", "it is no module")

    # ---- phases that last ------------------------------------------------------------------------------------------------------------
    def settle(self, phase: str, reason: str = "", loud: bool = False) -> None:
        self.phase = phase
        self.reason = reason or self.reason
        self.step = {"original": self.plain, "tuned": self.plain, "probe": self.plain, "descend": self.open}[phase]
        if reason:
            (log.warning if loud else log.info)("'%s' %s: %s", self.name, "keeps its original code" if phase == "original" else phase, reason)

    def plain(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _inside(module, args, kwargs)

    def open(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
        if module.training or not self.busy.acquire(blocking=False):
            return _inside(module, args, kwargs)
        try:
            return self._learn(module, args, kwargs)
        finally:
            self.busy.release()

    def _learn(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.part is None:
            self.part = Part(self.name, module)
        got = self.part.canonical(args, kwargs)
        if isinstance(got, str):
            self.descend(module, got)
            return self.step(module, args, kwargs)
        key = got[1]
        if key not in self.known and self.job is None:
            self.known.add(key)
            self._guard(self._from_cache, module, key)
            if self.phase != "learn":
                return self.step(module, args, kwargs)
        own = _own_state(module)
        start = time.perf_counter()
        result = _inside(module, args, kwargs)
        self.seconds = (self.seconds + [time.perf_counter() - start])[-16:]
        self.calls += 1
        changed = _changed_state(module, own)
        if changed:  # extra calls would change it, too
            self._guard(self._keeps_state, module, changed, key)
            return result
        self.part.record(args, kwargs, 1, 6)
        if self.job is not None:
            if self.job.done():
                self._guard(self._finish, module)
        elif self.calls >= _settings.calls and not _held:
            if min(self.seconds) < (LEAST_OF_CHILD if self.depth else LEAST_SECONDS):
                self._guard(self._too_small, module, key)
            else:
                self._guard(self._tune, module)
        return result

    def _guard(self, do: typing.Callable[..., None], module: Any, *args: Any) -> None:
        """Whatever goes wrong, the script goes on with the original."""
        try:
            do(module, *args)
        except Exception as error:
            text = str(error).partition("\n")[0]
            self.leave()
            self.settle("original", f"{type(error).__name__}: {text}", loud=True)

    def _too_small(self, module: Any, key: Key) -> None:
        reason = f"a call takes {1e6 * min(self.seconds):.0f} us: nothing to gain"
        if any(True for _ in module.parameters()):
            _jit_cache.put_reason(_settings.cache, self._key(module, key), reason, descend=False)
        self.settle("original", reason)

    def _keeps_state(self, module: Any, changed: str, key: Key) -> None:
        reason = f"a call changes '{changed}', which a tuned call would not do"
        _jit_cache.put_reason(_settings.cache, self._key(module, key), reason, descend=True)
        self.descend(module, reason)

    def _key(self, module: Any, key: Key) -> str:
        if self.digest is None:
            self.digest = _jit_cache.digest_of(module, _settings.backends)
        return _jit_cache.digest_with(self.digest, key)

    def _from_cache(self, module: Any, key: Key) -> None:
        if not any(True for _ in module.parameters()):
            return
        name = self._key(module, key)  # now: a call may change what the key is made of
        entry = _jit_cache.find(_settings.cache, name)
        if entry is None:
            return
        if entry.descend:
            self.descend(module, entry.reason)
        elif entry.reason:
            self.settle("original", entry.reason)
        else:
            self._install(module, entry.load(), PAIRS_KNOWN if entry.proven else PAIRS)

    # ---- tuning ------------------------------------------------------------------------------------------------------------------------
    def _tune(self, module: Any) -> None:
        global _spent
        assert self.part is not None
        left = _settings.budget - _spent
        if left < 1.0:
            self.settle("original", f"the budget of {_settings.budget:g} s was used up (AIT_JIT_BUDGET): the next run goes on")
            return
        signature = max((s for s in self.part.signatures.values() if s.samples), key=lambda s: s.calls)
        start = time.perf_counter()
        key = self._key(module, signature.key)
        _local.inside = True
        try:
            with sys.modules["torch"].inference_mode(False), _same_random_numbers():
                _other_batch(self.part, signature)
                programs = _export.export_signature(self.part, signature)
        except ExportError as error:
            _jit_cache.put_reason(_settings.cache, key, str(error.reason), descend=True)
            self.descend(module, str(error.reason))
            return
        finally:
            _local.inside = False
            _spent += time.perf_counter() - start
        background = _settings.mode == "background"
        self.job = Job(self, key, signature.key, programs, max(5.0, min(left, max(20.0, left / 3))), background)
        if not background:
            self.job.wait()
            _spent += time.perf_counter() - start
            self._finish(module)

    def _finish(self, module: Any) -> None:
        job, self.job = self.job, None
        assert job is not None and self.part is not None
        error = job.take(_settings.cache)
        entry = _jit_cache.find(_settings.cache, job.key) if not error else None
        if entry is None or entry.reason:
            reason = error or (entry.reason if entry is not None else "the result is not there")
            self.settle("original", reason, loud=bool(error))
            return
        self._install(module, entry.load(), PAIRS)

    def _install(self, module: Any, tuned: list[Tuned], pairs: int) -> None:
        assert self.part is not None
        self.tuned = [t for t in self.tuned if t.key != tuned[0].key] + tuned
        self.leave(keep=True)
        router = JitRouter(self.part, self.part.original)
        router.watch = self
        router.install(self.tuned)
        self.router = router
        self._place(module, Prober(self, router, pairs))
        self.settle("probe")

    def _place(self, module: Any, what: Any) -> None:
        if self.patch is not None:
            self.patch.undo()
        self.patch = Patch(module, "forward", lambda previous: what)

    def decide(self, ratio: float | None, why: str, lasting: bool = False) -> None:
        module, router = self.module(), self.router
        if module is None or router is None or self.phase != "probe":
            return
        self.speedup = ratio
        good = ratio is not None and ratio > 1.0
        for t in self.tuned:
            if good or lasting:
                _jit_cache.prove(_settings.cache, t.source, None if good else why)
        if good:
            self._place(module, router)
            self.settle("tuned")
            log.info("'%s' is tuned: %.2f times as fast", self.name, ratio)
            for s in router.part.signatures.values():
                s.samples.clear()  # they have served; new forms of calls bring their own
        else:
            self.leave()
            self.settle("original", why, loud=lasting)

    def leave(self, keep: bool = False) -> None:
        """The module as it was."""
        if self.patch is not None:
            self.patch.undo()
        self.patch = self.router = None
        if not keep:
            self.tuned = []

    def missed(self, reason: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call that what was tuned does not take: after some of them, they are learned, too."""
        module = self.module()
        if module is None or module.training or self.part is None:
            return
        if "changed after tuning" in reason:
            self.leave()
            self.digest = None
            self._again(reason)
            return
        self.part.record(args, kwargs, 1, 6)
        self.misses += 1
        if self.misses >= MISSES:
            self._again(reason)

    def _again(self, reason: str) -> None:
        self.misses, self.calls = 0, 0
        self.retunes += 1
        if self.retunes > RETUNES:
            if self.router is None:
                self.settle("original", reason, loud=True)
            return
        assert self.part is not None
        for key in {t.key for t in self.tuned}:
            if key in self.part.signatures:
                self.part.signatures[key].calls = 0  # the new forms of calls come first
        self.known -= {t.key for t in self.tuned}
        log.info("'%s' learns again: %s", self.name, reason)
        self.phase, self.step = "learn", self.learn

    def describe(self) -> dict[str, Any]:
        module = self.module()
        row = {"name": self.name, "class": type(module).__name__ if module is not None else "", "state": self.phase, "reason": self.reason,
               "calls": self.calls, "speedup": self.speedup, "tuned_calls": 0, "backends": []}
        if self.router is not None:
            row["tuned_calls"] = self.router.tuned_calls
            row["backends"] = [getattr(t.runner, "backend", "") for t in self.tuned]
        return row


@contextlib.contextmanager
def _same_random_numbers() -> typing.Iterator[None]:
    """Extra calls draw none of the script's random numbers."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    state, plain = torch.get_rng_state(), random.getstate()
    arrays = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        torch.set_rng_state(state)
        random.setstate(plain)
        if numpy is not None:
            numpy.random.set_state(arrays)


_FRAME = {"_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "training"}


def _own_state(module: Any) -> list[tuple[Any, dict[str, Any], list[int]]]:
    """The attributes of a module and of those in it, and how often its tensors were written."""
    return [(m, {k: (v, _size(v)) for k, v in vars(m).items() if k not in _FRAME},
             [t._version for t in m._buffers.values() if t is not None and not t.is_inference()]) for m in module.modules()]


def _size(value: Any) -> int:
    return len(value) if type(value) in (list, dict, set) else 0


def _changed_state(module: Any, before: list[tuple[Any, dict[str, Any], list[int]]]) -> str:
    """The name of an attribute that has another value now; ""."""
    for m, attributes, versions in before:
        now = {k: v for k, v in vars(m).items() if k not in _FRAME}
        for k in attributes.keys() | now.keys():
            old = attributes.get(k)
            if old is None or k not in now or (now[k] is not old[0] and not _equal(now[k], old[0])) or _size(now[k]) != old[1]:
                return k
        if [t._version for t in m._buffers.values() if t is not None and not t.is_inference()] != versions:
            return f"a buffer of {type(m).__name__}"
    return ""


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and type(a) in (bool, int, float, str, tuple, bytes) and bool(a == b)


def _other_batch(part: Part, signature: Signature) -> None:
    """When all recorded calls had one batch, a second one is tried, so that the exported program need not fix it."""
    sample = signature.samples[-1]
    if len(signature.shapes) > 1 or not sample or sample[0].dim() == 0:
        return
    n = sample[0].shape[0]
    torch = sys.modules["torch"]
    other = [t if t.dim() == 0 or t.shape[0] != n else torch.cat([t, t]) if n < 4 else t[: n // 2].clone() for t in sample]
    try:
        with _export.calling(signature.key):
            args, kwargs = _tree.rebuild(signature.key.spec, [t.clone() for t in other])
            part.original(*args, **kwargs)
    except Exception:  # this model has no batch there
        return
    signature.samples.append(other)


# ---- jobs -------------------------------------------------------------------------------------------------------------------------------
_jobs: list["Job"] = []


class Job:
    """Tuning of a module's programs in another process."""

    def __init__(self, watch: Watch, key: str, form: Key, programs: list[_export.Program], budget: float, background: bool) -> None:
        import torch

        self.key, self.limit = key, 4 * budget + 120
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ait-jit-"))
        _settings.cache.mkdir(parents=True, exist_ok=True)
        jobs = []
        for i, program in enumerate(programs):
            program.save(self.folder / f"{i}.pt2")
            samples = []
            for k, sample in enumerate(program.samples):
                samples.append(f"{i}-{k}.safetensors")
                _jit_cache.write_tensors(self.folder / samples[-1], program.names, sample)
            jobs.append({"model": f"{i}.pt2", "samples": samples, "call": program.call_json()})
        backends = _settings.backends or default_backends(budget)
        (self.folder / "job.json").write_text(json.dumps({
            "programs": jobs, "budget": budget / len(jobs), "background": background, "backends": backends, "threads": torch.get_num_threads(),
            "regions": "whole" if budget < 60 else "auto", "record": str(_settings.cache / "trials.sqlite"), "trial_seconds": max(30.0, budget),
            "imports": _backend_modules(backends), "cache": str(_settings.cache), "key": key, "limit": int(self.limit)}))
        paths = [os.path.abspath(p) if p else os.getcwd() for p in sys.path]
        start = f"import sys; sys.path[:] = {paths!r}; from ait._jit_job import main; main()"
        self.log = self.folder / "log"
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen([sys.executable, "-c", start, str(self.folder)], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            start_new_session=background, env={**os.environ, "AIT_JIT": "0"})
        if background:
            _jobs.append(self)

    def done(self) -> bool:
        return self.process.poll() is not None

    def wait(self) -> None:
        try:
            self.process.wait(self.limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        except BaseException:  # Ctrl-C in the script ends its tuning, too
            self.process.kill()
            raise

    def take(self, cache: pathlib.Path) -> str:
        """Why there is no result; "" when it is in the cache."""
        if self in _jobs:
            _jobs.remove(self)
        try:
            result = json.loads((self.folder / "result.json").read_text())
            error = str(result["error"])
        except (OSError, ValueError, KeyError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            error = f"tuning ended with exit code {self.process.returncode}" + (f": {lines[-1]}" if lines else "")
        shutil.rmtree(self.folder, ignore_errors=True)
        return error


def default_backends(budget: float) -> list[str]:
    """Inductor compiles for longer than a small budget lasts."""
    names = ["native", "onnxruntime", "openvino"]
    return names + ["torch-compile"] if budget >= 120 else names


def _backend_modules(names: typing.Sequence[str]) -> list[str]:
    from ait import backend

    known = backend.registered()
    modules = [known[n].__module__ for n in names if n in known]
    return sorted({m for m in modules if m not in ("__main__", "ait._guests")})


def wait(seconds: float) -> bool:
    end = time.monotonic() + seconds
    while any(not j.done() for j in _jobs) and time.monotonic() < end:
        time.sleep(0.02)
    return all(j.done() for j in _jobs)


def report() -> list[dict[str, Any]]:
    return [w.describe() for w in list(_watches.values()) if w.module() is not None]


def save(path: Any) -> None:
    from ait import _persist

    modules = [w.module() for w in list(_watches.values()) if w.phase == "tuned"]
    modules = [m for m in modules if m is not None]
    if not modules:
        raise ValueError("nothing is tuned yet")
    _persist.save(modules[0] if len(modules) == 1 else modules, path)


def _at_exit() -> None:
    """A job in the background goes on and leaves its result in the cache for the next run; one that has nothing to write to does not matter."""
    for job in _jobs:
        if job.done():
            shutil.rmtree(job.folder, ignore_errors=True)


atexit.register(_at_exit)
