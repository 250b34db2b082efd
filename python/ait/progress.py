"""Progress of a tuning: a bar on a terminal or in a notebook, plain lines elsewhere. Like tqdm, without it."""
from __future__ import annotations

import sys
import typing


class Event(typing.NamedTuple):
    """What the tuner says: see `ait_tune_progress` in tune.h."""

    phase: str
    candidate: str
    done: int
    total: int
    seconds: float
    budget_seconds: float
    line: str | None


Callback = typing.Callable[[Event], object]


class Bar:
    """Draws events to a text stream (standard error). Close it, or use it as a context."""

    def __init__(self, stream: typing.TextIO | None = None, width: int = 20) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._width = width
        self._moving = _is_notebook() or self._stream.isatty()
        self._drawn = 0

    def __call__(self, event: Event) -> None:
        if event.line:
            self._clear()
            self._stream.write(event.line + "\n")
        if self._moving:
            self._draw(self._text(event))
        self._stream.flush()

    def _text(self, event: Event) -> str:
        filled = self._width * event.done // event.total if event.total else 0
        bar = "#" * filled + "-" * (self._width - filled)
        return f"[{bar}] {event.done}/{event.total} {event.phase} {event.candidate[:40]} {event.seconds:.0f} s"

    def _draw(self, text: str) -> None:
        self._stream.write("\r" + text + " " * max(0, self._drawn - len(text)))
        self._drawn = len(text)

    def _clear(self) -> None:
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._drawn = 0

    def close(self) -> None:
        self._clear()
        self._stream.flush()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _is_notebook() -> bool:
    return "ipykernel" in sys.modules


def callback(progress: bool | Callback | None) -> tuple[Callback | None, Bar | None]:
    """What the user said as a function, and the bar that must be closed. True: a bar. None: a bar where somebody looks. False: nothing."""
    if progress is None:
        progress = _is_notebook() or sys.stderr.isatty()
    if progress is False:
        return None, None
    if progress is True:
        bar = Bar()
        return bar, bar
    return progress, None
