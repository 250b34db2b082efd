"""`ait.inspect`: where the time of a pipeline goes, by module, and what of it can be tuned."""
from __future__ import annotations

import contextlib
import dataclasses
import html
import json
from typing import Any, Callable, Dict, Iterator, List, Sequence, Set, Tuple

from . import _data, _modules
from ._errors import ExportError, Reason
from ._modules import TOP, Entry, Found, Part, Recorder, Trace

Run = Callable[[Any, Any], Any]  # run(obj, sample)


def runner_of(obj: Any, run: Run | None) -> Callable[[Any], Any]:
    """How a sample goes into the object, without gradients."""
    import torch

    if run is None and not callable(obj):
        raise TypeError(f"a {type(obj).__name__} cannot be called: say how it is run, run=lambda obj, sample: …")

    def call(sample: Any) -> Any:
        with torch.no_grad():
            if run is not None:
                return run(obj, sample)
            target = obj.forward if _modules.is_module(obj) else obj
            args, kwargs = _data.fit_call(_data.as_call(sample), target)
            return obj(*args, **kwargs)

    return call


@dataclasses.dataclass
class Row:
    """One method of one module, as it was seen."""

    name: str
    kind: str  # class, with the method where it is not forward
    calls: int
    seconds: float
    share: float  # of the run's time
    params: int
    shapes: List[str]
    candidate: bool  # can be tuned as a whole
    reason: Reason | None  # why not
    aliases: List[str]
    module: Any = dataclasses.field(repr=False, default=None)
    method: str = "forward"
    parent: str = ""

    def as_dict(self) -> Dict[str, Any]:
        d = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("module", "reason")}
        d["reason"] = self.reason.as_dict() if self.reason else None
        return d


class Inspection:
    """What `ait.inspect` found. Print it, or ask it: `modules()`, `rows`, `as_dict()`, `markdown()`."""

    def __init__(self, rows: List[Row], seconds: float, runs: int) -> None:
        self.rows, self.seconds, self.runs = rows, seconds, runs

    def modules(self, min_share: float = 0.05, limit: int | None = None) -> List[Row]:
        """What is worth tuning: the outermost parts that can be exported, the slowest first."""
        best = sorted((r for r in self.rows if r.candidate and r.share >= min_share), key=lambda r: -r.share)
        return best if limit is None else best[:limit]

    def __getitem__(self, name: str) -> Row:
        for r in self.rows:
            if name == r.name or name in r.aliases:
                return r
        raise KeyError(name)

    def as_dict(self) -> Dict[str, Any]:
        return {"seconds": self.seconds, "runs": self.runs, "modules": [r.as_dict() for r in self.rows]}

    def json(self) -> str:
        return json.dumps(self.as_dict())

    def _cells(self) -> List[Tuple[str, ...]]:
        cells: List[Tuple[str, ...]] = [("module", "type", "calls", "time", "share", "params", "sizes", "tunable")]
        for r in self.rows:
            sizes = r.shapes[0] + (f" (+{len(r.shapes) - 1})" if len(r.shapes) > 1 else "") if r.shapes else ""
            tunable = "yes" if r.candidate else str(r.reason) if r.reason else ""
            cells.append((r.name, r.kind, str(r.calls), f"{1e3 * r.seconds / max(1, self.runs):.3g} ms", f"{100 * r.share:.1f}%",
                          _count(r.params), sizes, tunable))
        return cells

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(c[i]) for c in cells) for i in range(7)]
        lines = ["  ".join([c[i].ljust(widths[i]) if i in (0, 1, 6) else c[i].rjust(widths[i]) for i in range(7)] + [c[7]]).rstrip() for c in cells]
        return "\n".join(lines)

    __repr__ = __str__

    def markdown(self) -> str:
        cells = [[c.replace("|", "\\|") for c in row] for row in self._cells()]
        return "\n".join(["| " + " | ".join(row) + " |" for row in (cells[0], ["---"] * 8, *cells[1:])])

    _repr_markdown_ = markdown

    def __rich__(self) -> Any:
        """A table of the package rich, for those who print with it."""
        from ._report import rich_table

        return rich_table(self._cells(), "")

    def _repr_html_(self) -> str:
        head, *body = [[html.escape(c) for c in row] for row in self._cells()]
        rows = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in body)
        return "<table><tr>" + "".join(f"<th>{c}</th>" for c in head) + f"</tr>{rows}</table>"


def _count(n: int) -> str:
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= scale:
            return f"{n / scale:.3g} {unit}"
    return str(n)


@contextlib.contextmanager
def originals(found: Sequence[Found]) -> Iterator[None]:
    """Routers are off inside: the pipeline as it was before anything was tuned."""
    from ._router import Router

    routers = [v for f in found for v in vars(f.module).values() if isinstance(v, Router)]
    before = [r.enabled for r in routers]
    for r in routers:
        r.enabled = False
    try:
        yield
    finally:
        for r, was in zip(routers, before):
            r.enabled = was


def trace(obj: Any, samples: Sequence[Any], call: Callable[[Any], Any], warmup: int = 1) -> Trace:
    """Runs the samples with all modules timed."""
    found = _modules.find(obj)
    if not found:
        raise ValueError(f"no module was found in this {type(obj).__name__}: it must hold torch.nn.Module objects as attributes, in lists or "
                         "dicts, or, a function, in its closure or globals")
    with originals(found):
        for sample in samples[:warmup]:
            call(sample)
        t = Trace(found)
        with t:
            for sample in samples:
                call(sample)
    if not t.entries:
        raise ValueError("no module was called: " + ", ".join(f.path for f in found[:5]))
    return t


def quick_reason(entry: Entry) -> Reason | None:
    """Why an entry is no part, by what was seen of it alone."""
    from . import _export

    if entry.own_forward:
        return Reason("driver", "it calls its own forward: that is tuned")
    if not entry.tensors:
        return Reason("no-tensor", "no argument is a tensor")
    return _export.obstacle(entry.found.module)


def part_of(entry: Entry, total: float) -> Part:
    part = Part(entry.name, entry.found.module, entry.method, entry.found.aliases)
    part.share = entry.seconds / total if total > 0 else 0.0
    return part


def descend(t: Trace, check: Callable[[List[Part]], Dict[str, Reason]], min_share: float,
            start: Sequence[Entry] | None = None) -> Tuple[List[Part], Dict[str, Reason], Dict[str, str]]:
    """From the outermost calls inwards: what can be tuned as a whole is a part; of what cannot, its children are asked. check(parts) says,
    with one more run, which of them cannot, and why. Returns parts, reasons by name, and the parent of each name."""
    frontier = list(t.children(TOP)) if start is None else list(start)
    seen: Set[Tuple[int, str]] = set()
    parts: List[Part] = []
    reasons: Dict[str, Reason] = {}
    parents: Dict[str, str] = {}
    while frontier:
        asked: Dict[str, Tuple[Entry, Part]] = {}
        inner: List[Entry] = []
        for e in frontier:
            if e.key in seen:
                continue
            seen.add(e.key)
            reason = quick_reason(e)
            if reason is None and e.seconds < min_share * t.total:
                continue
            if reason is None:
                asked[e.name] = e, part_of(e, t.total)
            else:
                reasons[e.name] = reason
                inner.append(e)
        refused = check([p for _, p in asked.values()]) if asked else {}
        for name, (e, part) in asked.items():
            if name in refused:
                reasons[name] = refused[name]
                inner.append(e)
            else:
                parts.append(part)
        frontier = []
        for e in inner:
            for child in t.children(e.key):
                parents.setdefault(child.name, e.name)
                frontier.append(child)
    return parts, reasons, parents


def inspect(model_or_pipeline: Any, data: Any, *, run: Run | None = None, batch_sizes: Sequence[int] | None = None, warmup: int = 1,
            min_share: float = 0.02, check: bool = True) -> Inspection:
    """Runs the data and tells where the time goes, by module and by method, and what can be tuned as a whole and why not.

    data: samples (ait.tune says which forms). run(obj, sample): how a sample goes in, where obj(sample) is not it. check: also asks
    torch.export, for the outermost modules with at least min_share of the time and, where those cannot be exported, for their children."""
    from . import _export

    samples = _data.samples_of(data, batch_sizes)
    call = runner_of(model_or_pipeline, run)
    t = trace(model_or_pipeline, samples, call, warmup)

    def ask(parts: List[Part]) -> Dict[str, Reason]:
        if not check:
            return {}
        with originals(t._found), Recorder(parts, per_shape=1, max_shapes=1):
            call(samples[0])
        refused = {}
        for part in parts:
            reason = _export.dry(part)
            if reason:
                refused[part.name] = reason
        return refused

    parts, reasons, parents = descend(t, ask, min_share)
    rows = _rows(t, {p.name for p in parts}, reasons, parents)
    for name, why in t.unpatchable.items():
        rows.append(Row(name, "", 0, 0.0, 0.0, 0, [], False, Reason("compiled", why), []))
    return Inspection(rows, t.total / len(samples), len(samples))


def _rows(t: Trace, chosen: Set[str], reasons: Dict[str, Reason], parents: Dict[str, str]) -> List[Row]:
    """Outermost entries and what was asked below them, slowest first under each parent."""
    rows: List[Row] = []
    done: Set[Tuple[int, str]] = set()

    def put(e: Entry, parent: str, depth: int) -> None:
        if e.key in done or depth > 32:
            return
        done.add(e.key)
        m = e.found.module
        kind = type(m).__name__ + ("" if e.method == "forward" else f".{e.method}")
        rows.append(Row(e.name, kind, e.calls, e.seconds, e.seconds / t.total if t.total else 0.0, sum(p.numel() for p in m.parameters()),
                        [s for s, _ in e.shapes.most_common()], e.name in chosen, reasons.get(e.name), e.found.aliases, m, e.method, parent))
        if e.name in reasons:
            for child in t.children(e.key):
                put(child, e.name, depth + 1)

    for e in t.children(TOP):
        put(e, "", 0)
    return rows
