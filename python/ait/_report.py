"""The report of a tuning as an object: values, text, Markdown, HTML, a rich table in notebooks."""
from __future__ import annotations

import html
import json
import os
import typing

from . import _core

Any = typing.Any


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"
    return "-"


def rich_table(cells: typing.Sequence[typing.Sequence[str]], caption: str) -> Any:
    """A table of the package rich: the first row is its head."""
    import importlib

    text = importlib.import_module("rich.text").Text  # not markup: names and reasons hold brackets
    table = importlib.import_module("rich.table").Table(caption=text(caption))
    for head in cells[0]:
        table.add_column(text(head))
    for row in cells[1:]:
        table.add_row(*map(text, row))
    return table


def _full(name: str) -> typing.Callable[[str], str]:
    """A function that the run-only package does not have."""
    function = getattr(_core, name, None)
    if function is None:
        raise _core.Unsupported(f"the run-only package has no {name}\n  hint: use markdown(), or the package ait")
    return typing.cast("typing.Callable[[str], str]", function)


class Candidate(typing.NamedTuple):
    """One way to run the model that was tried."""

    name: str
    backend: str
    outcome: str  # "valid", "wrong", "unsupported", "failed", "crashed", "timed out", "skipped", "not tried"
    reason: str
    won: bool
    baseline: bool
    median_s: float | None
    p95_s: float | None
    error_over_tolerance: float | None  # worst difference from the oracle; 1 is the limit


class Report:
    """What was tried, what won, and the evidence. `document` is the JSON of docs/json.md."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def winner(self) -> str:
        """Name of the winning candidate; "" when nothing was valid."""
        return typing.cast(str, self.document.get("winner", ""))

    @property
    def baseline(self) -> str:
        return typing.cast(str, self.document.get("baseline", ""))

    @property
    def speedup(self) -> float | None:
        """The baseline's time over the winner's; None without a baseline."""
        return self.document.get("speedup")

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """95 % interval of the speed-up."""
        low, high = self.document.get("speedup_low"), self.document.get("speedup_high")
        return None if low is None or high is None else (low, high)

    @property
    def candidates(self) -> list[Candidate]:
        return [
            Candidate(c["name"], c.get("backend", ""), c["outcome"], c.get("reason", ""), bool(c.get("won")), bool(c.get("baseline")),
                      c.get("median_s"), c.get("p95_s"), c.get("error_over_tolerance")) for c in self.document.get("candidates", [])
        ]

    def json(self) -> str:
        return json.dumps(self.document)

    def text(self) -> str:
        """The table that `ait report` prints."""
        return _full("report_text")(self.json())

    def html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The page of `ait report --html`; written to path, too, when one is given."""
        page = _full("report_html")(self.json())
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        rows = []
        for c in self.candidates:
            error = "-" if c.error_over_tolerance is None else f"{c.error_over_tolerance:.2g}"
            note = "winner" if c.won else "baseline" if c.baseline else "" if c.outcome == "valid" else ": ".join(filter(None, (c.outcome, c.reason)))
            rows.append((c.name, _time(c.median_s), _time(c.p95_s), error, note))
        return rows

    def _summary(self) -> str:
        if not self.winner:
            return "nothing valid was found"
        if self.speedup is None:
            return f"winner: {self.winner}"
        interval = self.speedup_interval
        between = f" (95 %: {interval[0]:.3g} to {interval[1]:.3g})" if interval else ""
        return f"winner: {self.winner}, {self.speedup:.3g} times as fast as the baseline, {self.baseline}{between}"

    _HEADS = ("candidate", "median", "p95", "error", "")

    def markdown(self) -> str:
        """Candidates and winner as a Markdown table."""
        def line(cells: typing.Iterable[str]) -> str:
            return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"

        return "\n".join([line(self._HEADS), "|---|---:|---:|---:|---|", *map(line, self._rows()), "", self._summary(), ""])

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str:
        def row(tag: str, cells: typing.Iterable[str]) -> str:
            return "<tr>" + "".join(f"<{tag} style='text-align:left'>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        rows = "".join(row("td", cells) for cells in self._rows())
        return f"<table><thead>{row('th', self._HEADS)}</thead><tbody>{rows}</tbody></table><p>{html.escape(self._summary())}</p>"

    def __rich__(self) -> Any:
        """A table of the package rich, for those who print with it."""
        return rich_table([self._HEADS, *self._rows()], self._summary())

    def __str__(self) -> str:
        return self.text() if hasattr(_core, "report_text") else self.markdown()

    def __repr__(self) -> str:
        return f"<ait.Report {self._summary()}>"
