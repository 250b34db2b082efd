"""A tuned function against the module as the user calls it, measured in turn."""
from __future__ import annotations

import dataclasses
import random
import statistics
import time
from typing import Any, Callable, Dict, List, Tuple

from . import _export, _tree
from ._router import Router, Tuned
from ._strategies import Strategy

SECONDS = 1.0  # for one program, at most about this
MIN_ROUNDS, MAX_ROUNDS = 5, 60


@dataclasses.dataclass
class Contest:
    """Times of one call, weighted by how often each size was called."""

    original_s: float
    tuned_s: float
    low: float  # 95 % interval of the ratio
    high: float
    rounds: int

    @property
    def speedup(self) -> float:
        return self.original_s / self.tuned_s

    @property
    def won(self) -> bool:
        """Faster beyond noise: a tie keeps the original."""
        return self.low > 1.0 and self.speedup > 1.01

    def as_dict(self) -> Dict[str, Any]:
        return {"original_s": self.original_s, "tuned_s": self.tuned_s, "speedup": self.speedup, "speedup_low": self.low,
                "speedup_high": self.high, "rounds": self.rounds}


def _times(functions: List[Callable[[], Any]], seconds: float) -> List[List[float]]:
    """Times of each function, called in turn, so that a busy machine hurts all alike."""
    times: List[List[float]] = [[] for _ in functions]
    for f in functions:
        f()
    start = time.perf_counter()
    while len(times[0]) < MIN_ROUNDS or (len(times[0]) < MAX_ROUNDS and time.perf_counter() - start < seconds):
        for f, t in zip(functions, times):
            begin = time.perf_counter()
            f()
            t.append(time.perf_counter() - begin)
    return times


def _interval(rounds: List[Tuple[float, float]]) -> Tuple[float, float]:
    """95 % interval of the ratio of medians, by resampling the rounds (seeded: equal times give equal answers)."""
    draw = random.Random(20240)
    ratios = []
    for _ in range(200):
        pick = [rounds[draw.randrange(len(rounds))] for _ in rounds]
        ratios.append(statistics.median(a for a, _ in pick) / statistics.median(b for _, b in pick))
    ratios.sort()
    return ratios[5], ratios[194]


def contest(program: _export.Program, tuned: Tuned, strategy: Strategy) -> Contest:
    """The router with this function against the original, on the recorded calls."""
    part = program.part
    router = Router(part, part.original)
    router.install([tuned])
    weights: Dict[Any, int] = {}
    signature = part.signatures[program.key]
    chosen: Dict[Any, List[Any]] = {}
    for s in program.samples:
        shapes = tuple(tuple(t.shape) for t in s)
        chosen.setdefault(shapes, s)
        weights[shapes] = max(1, signature.shapes.get(shapes, 1))
    original_s = tuned_s = 0.0
    lows, highs, rounds = [], [], 0
    with _export.calling(program.key):
        for shapes, sample in chosen.items():
            args, kwargs = _tree.rebuild(program.key.spec, sample)
            before, after = _times([lambda: part.original(*args, **kwargs), lambda: router(*args, **kwargs)], SECONDS / len(chosen))
            weight = weights[shapes]
            original_s += weight * statistics.median(before)
            tuned_s += weight * statistics.median(after)
            low, high = _interval(list(zip(before, after)))
            lows.append((weight * statistics.median(after), low))
            highs.append((weight * statistics.median(after), high))
            rounds += len(before)
    if router.reasons:
        raise RuntimeError(f"the tuned function does not take its own samples: {next(iter(router.reasons))}")
    total = sum(weights.values())
    mean = [sum(w * r for w, r in side) / sum(w for w, _ in side) for side in (lows, highs)]
    return Contest(original_s / total, tuned_s / total, mean[0], mean[1], rounds)
