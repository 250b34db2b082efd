"""What `ait.tune` did to a pipeline, as an object: text, Markdown, HTML, a rich table in notebooks."""
from __future__ import annotations

import html
import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from ._errors import Reason

if TYPE_CHECKING:
    from ._report import Report


class PartReport:
    """One part: its forms of calls (`programs`), and which calls stay with the original (`kept`)."""

    def __init__(self, name: str, kind: str, calls: int, share: float, kept: List[Tuple[str, Reason]]) -> None:
        self.name, self.kind, self.calls, self.share, self.kept = name, kind, calls, share, kept
        self.programs: List[Dict[str, Any]] = []

    @property
    def tuned(self) -> bool:
        return any("speedup" in p and "reason" not in p for p in self.programs)

    @property
    def speedup(self) -> float | None:
        """Of its tuned forms of calls together."""
        won = [p for p in self.programs if "speedup" in p and "reason" not in p]
        return sum(p["original_s"] for p in won) / sum(p["tuned_s"] for p in won) if won else None

    @property
    def winner(self) -> str:
        names = [p.get("winner", "") for p in self.programs if "speedup" in p and "reason" not in p]
        return ", ".join(dict.fromkeys(names)) or "original"

    @property
    def reports(self) -> "List[Report]":
        """What the tuner tried for each form of its calls: candidates, times, errors."""
        from ._report import Report

        return [Report(p["report"]) for p in self.programs if "report" in p]

    @property
    def reason(self) -> str:
        """Why it, or some of its calls, runs the original."""
        said = [p["reason"] for p in self.programs if "reason" in p] + [str(r) for _, r in self.kept]
        return "; ".join(dict.fromkeys(said))

    def as_dict(self) -> Dict[str, Any]:
        return {"name": self.name, "type": self.kind, "calls": self.calls, "share": self.share, "tuned": self.tuned, "winner": self.winner,
                "speedup": self.speedup, "programs": self.programs, "kept": [{"calls": c, **r.as_dict()} for c, r in self.kept]}


class TuneReport:
    """`parts`: what was tuned or tried; `reasons`: what could not be exported, by name; `speedup`: of the whole run."""

    def __init__(self, reasons: Dict[str, Reason], dry_run: bool) -> None:
        self.parts: List[PartReport] = []
        self.reasons, self.dry_run = reasons, dry_run
        self.seconds_before: float | None = None
        self.seconds_after: float | None = None
        self.metric_before: Any = None
        self.metric_after: Any = None
        self.undone = ""

    @property
    def speedup(self) -> float | None:
        """Of the whole run over all samples; None where nothing was tuned."""
        if self.seconds_before is None or not self.seconds_after:
            return None
        return self.seconds_before / self.seconds_after

    def __getitem__(self, name: str) -> PartReport:
        for p in self.parts:
            if p.name == name:
                return p
        raise KeyError(name)

    def as_dict(self) -> Dict[str, Any]:
        return {"dry_run": self.dry_run, "parts": [p.as_dict() for p in self.parts], "not_exported": {n: r.as_dict() for n, r in self.reasons.items()},
                "seconds_before": self.seconds_before, "seconds_after": self.seconds_after, "speedup": self.speedup,
                "metric_before": self.metric_before, "metric_after": self.metric_after, "undone": self.undone}

    def json(self) -> str:
        return json.dumps(self.as_dict(), default=str)

    def _cells(self) -> List[Tuple[str, ...]]:
        cells: List[Tuple[str, ...]] = [("part", "type", "calls", "share", "winner", "before", "after", "speed-up", "why not")]
        for p in self.parts:
            timed = [q for q in p.programs if "speedup" in q]
            times = (_ms(timed[0]["original_s"]), _ms(timed[0]["tuned_s"])) if timed else ("", "")
            gain = "" if p.speedup is None else f"{p.speedup:.2f}x"
            cells.append((p.name, p.kind, str(p.calls), f"{100 * p.share:.1f}%", "" if self.dry_run else p.winner, *times, gain, p.reason))
        cells += [(name, "", "", "", "", "", "", "", str(reason)) for name, reason in self.reasons.items()]
        return cells

    def _summary(self) -> List[str]:
        lines = []
        if self.speedup is not None:
            lines.append(f"whole run: {_ms(self.seconds_before)} before, {_ms(self.seconds_after)} after, {self.speedup:.2f} times as fast")
        if self.metric_before is not None or self.metric_after is not None:
            lines.append(f"metric: {self.metric_before} before, {self.metric_after} after")
        return lines + ([self.undone] if self.undone else [])

    def text(self) -> str:
        cells = self._cells()
        widths = [max(len(c[i]) for c in cells) for i in range(8)]
        lines = ["  ".join([c[i].ljust(widths[i]) if i in (0, 1, 4) else c[i].rjust(widths[i]) for i in range(8)] + [c[8]]).rstrip() for c in cells]
        return "\n".join(lines + self._summary())

    __str__ = text
    __repr__ = text

    def markdown(self) -> str:
        cells = [[c.replace("|", "\\|") for c in row] for row in self._cells()]
        table = ["| " + " | ".join(row) + " |" for row in (cells[0], ["---"] * 9, *cells[1:])]
        return "\n".join(table + [""] + self._summary())

    def html(self, path: "str | os.PathLike[str] | None" = None) -> str:
        """One page that loads nothing; written to path, too, when one is given."""
        page = ("<!doctype html><meta charset=utf-8><title>ait</title><style>body{font:14px sans-serif;margin:2em}td,th{padding:4px 10px;"
                "text-align:left;border-bottom:1px solid #ccc}</style><h1>Parts</h1>" + self._repr_html_())
        for part in self.parts:
            for r in part.reports:
                page += f"<h2>{html.escape(part.name)}</h2>" + r._repr_html_()
        if path is not None:
            with open(path, "w", encoding="utf-8") as f:
                f.write(page)
        return page

    _repr_markdown_ = markdown

    def __rich__(self) -> Any:
        """A table of the package rich, for those who print with it."""
        from ._report import rich_table

        return rich_table(self._cells(), "\n".join(self._summary()))

    def _repr_html_(self) -> str:
        head, *body = [[html.escape(c) for c in row] for row in self._cells()]
        rows = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in body)
        lines = "".join(f"<p>{html.escape(s)}</p>" for s in self._summary())
        return "<table><tr>" + "".join(f"<th>{c}</th>" for c in head) + f"</tr>{rows}</table>{lines}"


def _ms(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} us"
