"""The JIT's routers: original and tuned function in turn on the script's own calls, for each size of calls by itself, before one is believed."""
from __future__ import annotations

import operator
import threading
import time
import typing

from ait import _export, _tree
from ait._router import Router, Tuned

if typing.TYPE_CHECKING:
    from ait._jit import Watch

Any = typing.Any
PAIRS, PAIRS_KNOWN, PAIR_SECONDS = 5, 2, 0.5  # original and tuned in turn: how often, and no longer than
RECHECKS = (32, 256, 2048, 16384, 131072)  # calls of the tuned function after which it is compared again
MAX_IDLE = 64  # calls in which the original was the better one, after which nothing stands between the script and it
_numel = operator.methodcaller("numel")
_needs_grad = operator.attrgetter("requires_grad")


class Judge:
    """Original against tuned function for calls of about one size (elements of all arguments, to the next power of two)."""

    def __init__(self, pairs: int, ratio: float | None = None) -> None:
        self.left, self.ratio = pairs, ratio
        self.tuned = False
        self.times: list[tuple[float, float]] = []
        self.calls = 0  # of the tuned function since it won
        self.checks = iter(RECHECKS)
        self.recheck = next(self.checks)
        self.lock = threading.Lock()

    def again(self) -> None:
        self.left, self.times = PAIRS_KNOWN, []
        self.recheck = next(self.checks, 1 << 62)


def size_of(leaves: typing.Iterable[Any]) -> int:
    elements: int = sum(map(_numel, leaves))
    return elements.bit_length()


class JitRouter(Router):
    watch: "Watch"
    idle = 0

    def judge(self, tuned: Tuned, known: typing.Mapping[int, float]) -> None:
        """known: sizes that won in an earlier run, and how clearly. Their first call is compared all the same."""
        judges: dict[int, Judge] = {size: Judge(1, ratio) for size, ratio in known.items()}
        tuned.judges = judges  # type: ignore[attr-defined]

    def judges(self) -> list[Judge]:
        return [j for ts in self.table.values() for t in ts for j in list(t.judges.values())]  # type: ignore[attr-defined]

    def _fall_back(self, reason: str, args: tuple[Any, ...], kwargs: typing.Mapping[str, Any]) -> Any:
        self.reasons[reason] += 1
        self.watch.missed(reason, args, dict(kwargs))
        return self._run_original(args, kwargs)

    def _answer(self, tuned: Tuned, leaves: list[Any], args: tuple[Any, ...], kwargs: typing.Mapping[str, Any]) -> Any:
        size = size_of(leaves)
        judge: Judge | None = tuned.judges.get(size)  # type: ignore[attr-defined]
        if judge is None:
            judge = tuned.judges.setdefault(size, Judge(PAIRS))  # type: ignore[attr-defined]
        if judge.left == 0:
            if not judge.tuned:
                return self._leave_it(args, kwargs)
            self.idle = 0
            judge.calls += 1
            if judge.calls < judge.recheck:
                return super()._answer(tuned, leaves, args, kwargs)
            judge.again()
        return self._compare(judge, tuned, leaves, args, kwargs)

    def _leave_it(self, args: tuple[Any, ...], kwargs: typing.Mapping[str, Any]) -> Any:
        self.idle += 1
        if self.idle == MAX_IDLE:
            self.watch.idle()
        return self._run_original(args, kwargs)

    def _compare(self, judge: Judge, tuned: Tuned, leaves: list[Any], args: tuple[Any, ...], kwargs: typing.Mapping[str, Any]) -> Any:
        """Both, and the script gets the original's result."""
        import torch

        if (torch.is_grad_enabled() and any(map(_needs_grad, leaves))) or not judge.lock.acquire(blocking=False):
            return self._run_original(args, kwargs)
        try:
            clock = time.perf_counter
            failures = sum(self.reasons.values())
            got, tuned_s = None, 0.0
            tuned_first = len(judge.times) % 2 == 1
            if tuned_first:
                start = clock()
                got = super()._answer(tuned, leaves, args, kwargs)
                tuned_s = clock() - start
                if sum(self.reasons.values()) != failures:
                    return got  # the original's
            start = clock()
            want = self.original(*args, **kwargs)
            original_s = clock() - start
            if self._state is not None:
                self._state.accept_attributes()
            if not tuned_first:
                start = clock()
                got = super()._answer(tuned, leaves, args, kwargs)
                tuned_s = clock() - start
                if sum(self.reasons.values()) != failures:
                    return want
            with torch.no_grad():
                problem = difference(got, want)
            judge.times.append((original_s, tuned_s))
            self._judge(judge, problem)
            return want
        finally:
            judge.lock.release()

    def _judge(self, judge: Judge, problem: str | None) -> None:
        if problem:
            judge.left = 0
            self.watch.decide(None, f"the tuned function's result differs on this call: {problem}", lasting=True)
            return
        judge.left -= 1
        times = judge.times
        if judge.left > 0 and (len(times) < 2 or sum(a + b for a, b in times) <= PAIR_SECONDS):
            return
        judge.left = 0
        times = times[1:] if len(times) > 2 else times  # the first call finds cold caches
        ratio = min(a for a, _ in times) / min(b for _, b in times)  # on a busy machine the least is the least wrong
        if len(times) == 1 and judge.ratio is not None:
            ratio = judge.ratio  # of an earlier run
        judge.ratio = ratio
        why = f"the original is as fast (ratio {ratio:.2f})"
        judge.tuned = self.watch.decide(ratio, why)
        self.watch.decided(self, why)


def difference(got: Any, want: Any) -> str | None:
    ours, theirs = _tree.flatten(got), _tree.flatten(want)
    if not _export._fits(ours[1], theirs[1]):
        return "its structure"
    return _export.same(ours[0], theirs[0])
