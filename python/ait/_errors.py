"""Why something cannot be exported, in a sentence, with the line of the user's code."""
from __future__ import annotations

import dataclasses
import linecache
import os
import re
import sys
import traceback
from typing import Any, List, Tuple


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why a part is not tuned."""

    code: str  # "data-dependent", "unsupported-argument", "training", …
    text: str
    file: str = ""
    line: int = 0
    source: str = ""  # the line itself

    def __str__(self) -> str:
        where = f" (at {self.file}:{self.line}: {self.source})" if self.file else ""
        return self.text + where

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


class ExportError(RuntimeError):
    """A module that cannot be exported: `reason` says why and where."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


_DATA_DEPENDENT = ("data-dependent", "datadependent", "_local_scalar_dense", "dynamicoutputshape", "data dependent", "unbacked")
_LEAVES = ("numpy()", "faketensor", "cannot access data pointer", "untyped_storage", "tolist")


def _packages() -> Tuple[str, ...]:
    torch = sys.modules["torch"]
    return os.path.dirname(str(torch.__file__)) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep


def user_frame(error: BaseException) -> Tuple[str, int, str] | None:
    """(file, line, source) of the innermost line outside torch and ait that the error came from."""
    outside: List[Tuple[str, int]] = []
    for text in re.findall(r"from user code.*", str(error), re.S)[:1]:  # strict: Dynamo tells it in its message
        outside += [(f, int(n)) for f, n in re.findall(r'File "([^"]+)", line (\d+)', text)]
    seen: BaseException | None = error
    chain: List[BaseException] = []
    while seen is not None and seen not in chain and len(chain) < 16:
        chain.append(seen)
        seen = seen.__cause__ or seen.__context__
    for e in chain:
        if outside:
            break
        outside = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(e.__traceback__)]
        known = {f for f, _ in outside if os.path.exists(f) or f in linecache.cache}  # a notebook's cells are no files
        outside = [(f, n) for f, n in outside if not f.startswith(_packages()) and f in known and not _is_frame_of_ours(f)]
    hits = [(f, n) for f, n in outside if not f.startswith(_packages())]
    if not hits:
        return None
    file, line = hits[-1]
    return file, line, linecache.getline(file, line).strip()


def _is_frame_of_ours(file: str) -> bool:
    return file.startswith(sys.prefix) and ("contextlib.py" in file or "functools.py" in file) or "contextlib" in os.path.basename(file)


def first_line(error: BaseException) -> str:
    lines = [s.strip() for s in str(error).splitlines() if s.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def explain(error: BaseException) -> Reason:
    """An exception of torch.export as a reason."""
    if isinstance(error, ExportError):
        return error.reason
    frame = user_frame(error) or ("", 0, "")
    name, text = type(error).__name__, str(error).lower()
    if "Dynamic control flow is not supported" in str(error) or name in ("GuardOnDataDependentSymNode", "UserErrorType") or any(
            w in text or w in name.lower() for w in _DATA_DEPENDENT):
        return Reason("data-dependent", "its control flow depends on values of tensors, which a graph cannot hold", *frame)
    if name == "Unsupported" or "graph break" in text:
        return Reason("graph-break", f"torch.export cannot follow the code: {first_line(error)}", *frame)
    if "constraints violated" in text or "constraintviolation" in name.lower():
        return Reason("shapes", f"sizes cannot be as free as they were asked to be: {_constraint(error)}", *frame)
    if any(w in text for w in _LEAVES):
        return Reason("leaves-torch", f"the code looks into a tensor while it is traced: {first_line(error)}", *frame)
    return Reason("export", f"torch.export refuses it: {name}: {first_line(error)}", *frame)


def _constraint(error: BaseException) -> str:
    lines = [s.strip(" -") for s in str(error).splitlines() if s.strip().startswith("-")]
    return (lines[0] if lines else first_line(error))[:300]
