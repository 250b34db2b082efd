"""Strategies: what counts as best. Each is a small object; its text is what `ait tune --strategy` takes."""
from __future__ import annotations

import os
from typing import Any, Sequence


class Strategy:
    """Base of all strategies. `text` goes to the tuner; `backends`, when not None, are the only ones that are tried."""

    text = "max-throughput"
    backends: Sequence[Any] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.text))


class MaxThroughput(Strategy):
    """Most samples per second, over all recorded sizes. The default."""


class HighestThroughput(MaxThroughput):
    """Another name of MaxThroughput."""


class MinLatency(Strategy):
    """Least time of one call."""

    text = "min-latency"


class FirstWins(Strategy):
    """The first backend, in the order given, that is correct and not slower than the baseline."""

    text = "first-wins"

    def __init__(self, backends: Sequence[Any] | None = None) -> None:
        self.backends = backends


class OneBackend(Strategy):
    """One backend, and only its options are compared."""

    text = "one-backend"

    def __init__(self, backend: Any) -> None:
        self.backends = [backend]


class LatencyBudget(Strategy):
    """Most throughput among what stays within this latency."""

    def __init__(self, milliseconds: float) -> None:
        if not milliseconds > 0:
            raise ValueError(f"a latency budget of {milliseconds} ms is none")
        self.text = f"latency-budget={float(milliseconds):g}"


class MinMemory(Strategy):
    """Least memory."""

    text = "min-memory"


class Traffic(Strategy):
    """Best for recorded traffic: a trace file (docs/cli.md)."""

    def __init__(self, trace: "str | os.PathLike[str]") -> None:
        self.text = f"traffic={os.fspath(trace)}"


def strategy_of(value: Any) -> Strategy:
    """A strategy from an object, a class or the command line's word."""
    if value is None:
        return MaxThroughput()
    if isinstance(value, Strategy):
        return value
    if isinstance(value, type) and issubclass(value, Strategy):
        return value()
    if isinstance(value, str):
        result = Strategy()
        result.text = {"highest-throughput": "max-throughput"}.get(value, value)
        return result
    raise TypeError(f"{value!r} is no strategy")
