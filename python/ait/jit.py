"""The JIT: modules of an unchanged script are tuned on their first calls, and the results are there at once in its next run.

    AIT_JIT=1 python script.py            # or AIT_JIT=background, AIT_JIT=deferred; AIT_JIT=0: off

    ait.jit.enable()                      # the same from within; ait.jit.disable() takes everything back
    with ait.jit.deferred(): ...          # calls are only recorded here; tuning begins with the first call after it

What is tuned, when, and what keeps it right: docs/python-jit.md. On any failure the original runs, and the reason is logged once ("ait.jit").

Environment: AIT_JIT_BUDGET (seconds of tuning for one run of the script, 60), AIT_JIT_BACKENDS (names with commas), AIT_JIT_CACHE (a folder),
AIT_JIT_CALLS (calls before tuning, 3).
"""
from __future__ import annotations

import os
import types
import typing

from ait import _jit

Any = typing.Any


def enable(mode: str = "foreground", *, budget: float | None = None, backends: typing.Sequence[str] | None = None,
           cache: "str | os.PathLike[str] | None" = None, calls: int | None = None) -> None:
    """Watches modules from now on. mode: "foreground" (a call waits while its module is tuned), "background" (tuned in another process, used
    when ready), "deferred" (recorded until `deferred()` says go), "off". The other arguments go before the environment's."""
    _jit.enable(mode, budget, backends, cache, calls)


def disable() -> None:
    """Every module is as it was. What was found stays in the cache."""
    _jit.disable()


class deferred:
    """Called: what was recorded is tuned at its next calls. As a context: calls inside are recorded only, and it is called at the end."""

    def __init__(self) -> None:
        _jit.release()

    def __enter__(self) -> "deferred":
        _jit.hold()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: types.TracebackType | None) -> None:
        _jit.release()


def report() -> list[dict[str, Any]]:
    """What became of each module: name, class, calls, state, reason, speedup, backends."""
    return _jit.report()


def wait(seconds: float = 600.0) -> bool:
    """Until the jobs in the background are done. False: some are not yet. What they found is used from the next call on."""
    return _jit.wait(seconds)


def save(path: "str | os.PathLike[str]") -> None:
    """All that is tuned now as one file, as ait.save does: for ait.load(path), or ait.load([modules…], path)."""
    _jit.save(path)
