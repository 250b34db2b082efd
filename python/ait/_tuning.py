"""`ait.wrap` and `ait.tune`: parts of a pipeline, or a whole module, replaced by tuned functions where these are faster."""
from __future__ import annotations

import dataclasses
import math
import os
import pathlib
import tempfile
import time
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from . import _data, _export, _inspect, _modules, _shapes, _tree, progress as _progress
from ._contest import contest
from ._errors import ExportError, Reason, explain
from ._export import Program
from ._modules import ROOT, Part, Recorder, Runner, Signature, Trace
from ._router import Router, Tuned, route, router_of, unroute
from ._strategies import Strategy, strategy_of
from ._tune_report import PartReport, TuneReport

MAX_SIGNATURES = 8  # forms of calls of one part that are tuned; more are left to the original
LEAST_SECONDS = 2.0  # of budget for one program
COMPILING = ("torch-compile", "aotinductor", "torchao")  # Inductor calls a C++ compiler for a minute or more
COMPILING_SECONDS = 120.0  # of budget for one program from which they compete without being named


# ---- wrap ------------------------------------------------------------------------------------------------------------------------------
def wrap(pipeline: Any, modules: Any = None, strategy: Any = None, strategies: Mapping[str, Any] | None = None) -> Any:
    """Chooses what `ait.tune` is to tune. modules: of `ait.inspect(...).modules()`, names ("unet", "vae.decode") or nn.Module objects; None:
    the object itself. strategy: of all of them; strategies: of single ones, by name. Returns the pipeline, which is the same object."""
    found = _modules.find(pipeline)
    chosen = [_resolve(found, m) for m in ([ROOT] if modules is None else modules if isinstance(modules, (list, tuple)) else [modules])]
    names = {p.name for p in chosen}
    for name in strategies or {}:
        if name not in names:
            raise ValueError(f"strategies names '{name}', which is not among the modules: {', '.join(sorted(names))}")
    for part in chosen:
        router = route(part)
        router.strategy = strategy_of((strategies or {}).get(part.name, strategy))  # type: ignore[attr-defined]
    return pipeline


def unwrap(pipeline: Any) -> Any:
    """Takes everything away that wrap, tune or load put in: the pipeline is as it was."""
    for f in _modules.find(pipeline):
        for name, value in list(vars(f.module).items()):
            if isinstance(value, Router):
                unroute(f.module, name)
    return pipeline


def _resolve(found: Sequence[_modules.Found], wanted: Any) -> Part:
    """A part from a row of an inspection, a name, or a module."""
    if isinstance(wanted, _inspect.Row):
        return _existing(Part(wanted.name, wanted.module, wanted.method, wanted.aliases))
    for f in found:
        if wanted is f.module or (isinstance(wanted, str) and wanted in [f.path, *f.aliases]):
            return _existing(Part(f.path, f.module, "forward", f.aliases))
    if isinstance(wanted, str):
        head, _, method = wanted.rpartition(".")
        for f in found:
            if (head or ROOT) in [f.path, *f.aliases] and callable(getattr(f.module, method, None)):
                return _existing(Part(wanted, f.module, method))
        raise ValueError(f"there is no module '{wanted}'; there are {', '.join(f.path for f in found[:40])}")
    raise TypeError(f"{type(wanted).__name__} is neither a name, a module nor a row of ait.inspect")


def _existing(part: Part) -> Part:
    router = router_of(part.module, part.method)
    return router.part if router is not None else part


def routers_of(pipeline: Any) -> List[Router]:
    """All routers in an object, in the order of their modules."""
    return [v for f in _modules.find(pipeline) for v in vars(f.module).values() if isinstance(v, Router)]


# ---- tune ------------------------------------------------------------------------------------------------------------------------------
@dataclasses.dataclass
class _Options:
    strategy: Strategy
    strategies: Dict[str, Strategy]
    backends: Any
    budget: float
    dynamic_shapes: Any
    threads: int
    tolerance: Tuple[float, float] | None
    progress: _progress.Callback | None
    even_if_slower: bool
    rest: Dict[str, Any]  # of ait.tune_file


class _Tuning:
    """One call of `tune`."""

    def __init__(self, obj: Any, samples: List[Any], call: Callable[[Any], Any], options: _Options) -> None:
        self.obj, self.samples, self.call, self.options = obj, samples, call, options
        self.programs: Dict[str, List[Program]] = {}
        self.kept: Dict[str, List[Tuple[str, Reason]]] = {}  # forms of calls that stay with the original
        self.folder = tempfile.TemporaryDirectory(prefix="ait-")
        self.start = time.perf_counter()

    def tell(self, phase: str, what: str = "", done: int = 0, total: int = 1) -> None:
        if self.options.progress is not None:
            self.options.progress(_progress.Event(phase, what, done, total, time.perf_counter() - self.start, self.options.budget, None))

    def _progress_of(self, part: Part) -> Any:
        """What the tuner says about one part, with the part's name and the time of the whole."""
        told = self.options.progress
        if told is None:
            return False

        def pass_on(event: _progress.Event) -> object:
            name = part.name + (f": {event.candidate}" if event.candidate else "")
            return told(event._replace(candidate=name, seconds=time.perf_counter() - self.start, budget_seconds=self.options.budget))

        return pass_on

    # -- which parts --------------------------------------------------------------------------------------------------------------------
    def check(self, parts: List[Part]) -> Dict[str, Reason]:
        """Records the calls of these parts over all samples and exports them. What cannot be exported at all is refused."""
        with _inspect.originals(self.trace._found):
            with Recorder(parts):
                for sample in self.samples:
                    self.call(sample)
            refused = {}
            for part in parts:
                reason = self._export(part)
                if reason:
                    refused[part.name] = reason
                    part.signatures.clear()
        return refused

    def _export(self, part: Part) -> Reason | None:
        first: Reason | None = None
        for text, n in part.reasons.items():
            self.kept.setdefault(part.name, []).append((f"{n} calls", Reason("argument", text)))
            first = first or Reason("argument", text)
        programs: List[Program] = []
        for i, s in enumerate(sorted(part.signatures.values(), key=lambda s: -s.calls)):
            try:
                if i >= MAX_SIGNATURES:
                    raise ExportError(Reason("many", f"only the {MAX_SIGNATURES} most frequent forms of calls are tuned"))
                programs += _export.export_signature(part, s, self._given(part, s))
            except ExportError as e:
                self.kept.setdefault(part.name, []).append((s.text(), e.reason))
                first = first or e.reason
            except (ValueError, TypeError) as e:
                if self._given(part, s) is not None:
                    raise  # dynamic_shapes that do not fit
                first = first or explain(e)
        if not programs:
            return first or Reason("not-called", "it was not called")
        self.programs[part.name] = programs
        return None

    def calibrate(self, parts: List[Part], data: Any) -> None:
        """Runs more data, whose calls of the chosen parts are kept for backends that calibrate."""
        if data is None or not parts:
            return
        with _inspect.originals(self.trace._found), Recorder(parts, calibration=_data.MAX_CALIBRATION):
            for sample in _data.samples_of(data, limit=_data.MAX_CALIBRATION):
                self.call(sample)

    def observe(self, phase: str, on_sample: Callable[[_data.SampleEvent], object] | None, keep: bool) -> List[Any]:
        """Each sample once, told to the user; the outputs, where they are wanted."""
        outputs = []
        for i, sample in enumerate(self.samples):
            begin = time.perf_counter()
            output = self.call(sample)
            seconds = time.perf_counter() - begin
            if on_sample is not None:
                on_sample(_data.SampleEvent(phase, i, sample, output, seconds))
            if keep:
                outputs.append(output)
        return outputs

    def _given(self, part: Part, s: Signature) -> _shapes.Given | None:
        d = self.options.dynamic_shapes
        if d is None:
            return None
        if isinstance(d, Mapping) and part.name in d:
            d = d[part.name]
        elif part.name != ROOT:
            return None
        return _shapes.expand_given(d, s.names, list(part.binder.names), s.key.ranks)

    def choose(self, wrapped: List[Router], min_share: float, warmup: int) -> Tuple[List[Part], Dict[str, Reason]]:
        self.trace: Trace = _inspect.trace(self.obj, self.samples, self.call, warmup)
        start = None
        reasons: Dict[str, Reason] = {}
        if wrapped:
            entries = {e.key: e for e in self.trace.entries.values()}
            keys = [(id(r.part.module), r.part.method) for r in wrapped]
            reasons = {r.part.name: Reason("not-called", "it was not called") for r, k in zip(wrapped, keys) if k not in entries}
            start, min_share = [entries[k] for k in keys if k in entries], 0.0
        parts, more, _ = _inspect.descend(self.trace, self.check, min_share, start)
        return parts, {**reasons, **more}

    # -- one part -----------------------------------------------------------------------------------------------------------------------
    def tune_part(self, part: Part, seconds: float) -> PartReport:
        router = router_of(part.module, part.method)
        own = router.part if router is not None else part
        own.share = part.share
        strategy = self.options.strategies.get(part.name) or getattr(router, "strategy", None) or self.options.strategy
        programs = self.programs[part.name]
        calls = sum(s.calls for s in part.signatures.values())
        report = PartReport(part.name, type(part.module).__name__, calls, part.share, self.kept.get(part.name, []))
        tuned: List[Tuned] = []
        for i, program in enumerate(programs):
            result = self._tune_program(program, strategy, seconds / len(programs), f"{len(os.listdir(self.folder.name))}-{i}")
            report.programs.append(result[0])
            if result[1] is not None:
                tuned.append(result[1])
            program.exported = program.twin = None  # its weights are the module's, its graph is in the file
        if tuned:
            target = route(part)
            target.folder = self.folder  # type: ignore[attr-defined]
            target.strategy = strategy  # type: ignore[attr-defined]
            target.install(tuned)
            target.enabled = True
        elif router is not None:
            unroute(part.module, part.method)
        return report

    def _tune_program(self, program: Program, strategy: Strategy, seconds: float, name: str) -> Tuple[Dict[str, Any], Tuned | None]:
        document: Dict[str, Any] = {"signature": ", ".join(f"{n}: {s}" for n, s in zip(program.names, program.shape)), "notes": program.notes}
        path = pathlib.Path(self.folder.name) / f"{name}.ait"
        try:
            file_report, runner = self._artifact(program, strategy, seconds, path)
        except Exception as e:  # a model that ait does not take is a reason, not the end
            document["reason"] = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
            return document, None
        document["report"] = file_report
        with _inspect.originals(self.trace._found):
            problem = self._wrong(program, runner)
            if problem:
                document["reason"] = f"the tuned function does not compute what the module does: {problem}"
                return document, None
            tuned = Tuned(program.key, program.shape, program.out_spec, runner, path)
            try:
                result = contest(program, tuned, strategy)
            except Exception as e:  # of the module's own code, too
                document["reason"] = f"it could not be compared with the original: {str(e).splitlines()[0] if str(e) else type(e).__name__}"
                return document, None
        document.update(result.as_dict())
        document["winner"] = file_report.get("winner", "") if result.won or self.options.even_if_slower else "original"
        if not result.won and not self.options.even_if_slower:
            document["reason"] = f"the original is as fast (ratio {result.speedup:.2f}, 95 %: {result.low:.2f} to {result.high:.2f})"
            return document, None
        return document, tuned

    def _artifact(self, program: Program, strategy: Strategy, seconds: float, path: pathlib.Path) -> Tuple[Dict[str, Any], Runner]:
        from ._core import Error, Mismatch

        try:
            return self._artifact_as_it_is(program, strategy, seconds, path)
        except Mismatch:
            raise
        except Error:
            if not program.bound_to_samples():
                raise
            return self._artifact_as_it_is(program, strategy, seconds, path)

    def _artifact_as_it_is(self, program: Program, strategy: Strategy, seconds: float, path: pathlib.Path) -> Tuple[Dict[str, Any], Runner]:
        from .files import tune_file

        o = self.options
        source = path.with_suffix(".pt2")
        program.save(source)
        backends = strategy.backends if strategy.backends is not None else o.backends
        ours = backends is None  # the choice
        if ours:
            backends = _default_backends(seconds)
        try:
            names = program.exported.graph_signature.user_inputs  # flat, whatever the structure of a call
            report = tune_file(source, path, [dict(zip(names, s)) for s in program.samples], strategy=strategy.text, backends=backends, threads=o.threads,
                               budget=max(LEAST_SECONDS, seconds), tolerance=o.tolerance, progress=self._progress_of(program.part),
                               calibration=[dict(zip(names, s)) for s in program.calibration] or None, call=program.call_json(), reference_last=ours, **o.rest)
        finally:
            source.unlink(missing_ok=True)
        return report.document, load_runner(path)

    def _wrong(self, program: Program, runner: Runner) -> str | None:
        """The tuner has compared every output with the oracle; this is about the way from the module's arguments to its result."""
        for sample in program.samples:
            leaves, spec = _export._reference(program.twin or program.part, program.key, sample)
            want = _export._numbers(program.out_spec, spec, leaves)
            problem = _export.same(runner([t.clone() for t in sample]), want, 5e-3)
            if problem:
                return problem
        return None


def _default_backends(seconds: float) -> List[str] | None:
    """None: all. Else all but those that would take longer than there is time for; the reference is the last resort, as without a list."""
    from .files import backends

    if seconds >= COMPILING_SECONDS:
        return None
    names = [b["name"] for b in backends() if b["name"] not in ("null", "eager", "reference", *COMPILING)]
    return [*names, "reference"]


def load_runner(path: "str | os.PathLike[str]") -> Runner:
    """A tuned file as a function from flat tensors to flat leaves."""
    from .model import Model

    return runner_of_model(Model(path, returns="torch"))


def runner_of_model(model: Any) -> Runner:
    """A loaded model as one."""
    if len(model.outputs) == 1:
        def run(leaves: Sequence[Any]) -> List[Any]:
            return [model(*leaves)]
    else:
        def run(leaves: Sequence[Any]) -> List[Any]:
            return list(model(*leaves))
    run.backend = model.backend  # type: ignore[attr-defined]
    return run


def tune(pipeline: Any, data: Any, *, strategy: Any = None, strategies: Mapping[str, Any] | None = None,
         batch_sizes: Sequence[int] | None = None, dynamic_shapes: Any = None, backends: Any = None, budget: float | str = 60.0,
         dry_run: bool = False,
         run: _inspect.Run | None = None, metric: Callable[[List[Any], List[Any]], Any] | None = None, metric_drop: float | None = None,
         on_sample: Callable[[_data.SampleEvent], object] | None = None, calibration: Any = None, threads: int = 0,
         tolerance: Tuple[float, float] | None = None, min_share: float = 0.02, warmup: int = 1, progress: Any = None,
         even_if_slower: bool = False, **options: Any) -> TuneReport:
    """Tunes a module, the modules of a pipeline, or those that a function uses, in place, and tells what came out.

    data: a list of samples, a DataLoader, a generator, or a function from a batch size to one of these. A sample is what the object is called
    with: one argument, a tuple, a dict by name, or (args, kwargs). run(obj, sample): another way to call it. batch_sizes: samples are cut or
    repeated to these, so that the batch is known to change. What was chosen with `ait.wrap` is tuned; where nothing was, the outermost modules
    that can be exported are, as far as they take min_share of the time. A module that cannot be exported leaves its children.
    dynamic_shapes: {module name: {argument: {axis: ait.Dim(...)}}}, or without the name for a single module, where samples do not show it.
    backends: names in order of preference; without them all that are here, those that compile by Inductor from 120 s for one function on.
    budget: seconds for all parts together, or "2m"; dry_run: nothing is tuned, the report says what would be.
    metric(outputs, samples): the user's own figure, taken before and after; where it falls by more than metric_drop, nothing stays tuned.
    on_sample(event): hears of each sample once before and once after tuning, an `ait.SampleEvent` with the sample, the output and its time.
    calibration: more data, in any of the forms of `data`, that runs through the pipeline once; what the parts were called with goes to backends
    in Python that calibrate (`ait.Backend.build`).
    even_if_slower: also what the module itself runs as fast, for a file that must stand alone. progress: as in `ait.tune_file`.
    Everything else goes to `ait.tune_file`. The original runs wherever the tuned function does not take a call: `report` and the log say so."""
    found = routers_of(pipeline)
    samples = _data.samples_of(data, batch_sizes)
    call = _inspect.runner_of(pipeline, run)
    from .files import names_of, seconds_of

    told, bar = _progress.callback(progress)
    o = _Options(strategy_of(strategy), {k: strategy_of(v) for k, v in (strategies or {}).items()}, names_of(backends), seconds_of(budget),
                 dynamic_shapes, threads, tolerance, told, even_if_slower, options)
    t = _Tuning(pipeline, samples, call, o)
    try:
        return _tuned(t, found, min_share, warmup, dry_run, metric, metric_drop, on_sample, calibration)
    finally:
        if bar is not None:
            bar.close()


def _tuned(t: _Tuning, found: List[Router], min_share: float, warmup: int, dry_run: bool, metric: Callable[[List[Any], List[Any]], Any] | None,
           metric_drop: float | None, on_sample: Callable[[_data.SampleEvent], object] | None, calibration: Any) -> TuneReport:
    t.tell("inspect and export")
    parts, reasons = t.choose(found, min_share, warmup)
    _check_names(t.options, t.trace)
    report = TuneReport(reasons, dry_run)
    if dry_run:
        for part in parts:
            entry = PartReport(part.name, type(part.module).__name__, sum(s.calls for s in part.signatures.values()), part.share,
                               t.kept.get(part.name, []))
            entry.programs = [{"signature": ", ".join(f"{n}: {s}" for n, s in zip(p.names, p.shape)), "notes": p.notes}
                              for p in t.programs[part.name]]
            report.parts.append(entry)
        return report
    t.calibrate(parts, calibration)
    before = t.observe("before", on_sample, metric is not None) if metric or on_sample else []
    total = sum(p.share for p in parts) or 1.0
    for part in sorted(parts, key=lambda p: -p.share):
        report.parts.append(t.tune_part(part, t.options.budget * part.share / total))
    t.tell("measure the whole", done=1)
    _measure_whole(t, report)
    after = t.observe("after", on_sample, metric is not None) if metric or on_sample else []
    if metric:
        _measure_metric(t, report, metric, metric_drop, before, after)
    return report


def _check_names(o: _Options, t: Trace) -> None:
    names = {e.name for e in t.entries.values()}
    for name in o.strategies:
        if name not in names:
            raise ValueError(f"strategies names '{name}', which was not called; called were {', '.join(sorted(names)[:40])}")


def _measure_whole(t: _Tuning, report: TuneReport) -> None:
    """The whole pipeline with and without, in turn."""
    routers = [r for r in routers_of(t.obj) if r.table]
    if not routers:
        return
    times: Dict[bool, List[float]] = {True: [], False: []}
    start = time.perf_counter()
    for _ in range(5):
        for on in (True, False):
            for r in routers:
                r.enabled = on
            begin = time.perf_counter()
            for s in t.samples:
                t.call(s)
            times[on].append(time.perf_counter() - begin)
        if time.perf_counter() - start > max(2.0, t.options.budget / 4):
            break
    for r in routers:
        r.enabled = True
    report.seconds_before, report.seconds_after = min(times[False]), min(times[True])


def _measure_metric(t: _Tuning, report: TuneReport, metric: Callable[[List[Any], List[Any]], Any], drop: float | None, before: List[Any],
                    after: List[Any]) -> None:
    report.metric_before = metric(before, t.samples)
    report.metric_after = metric(after, t.samples)
    if drop is not None and not _close(report.metric_before, report.metric_after, drop):
        for r in routers_of(t.obj):
            unroute(r.part.module, r.part.method)
        report.undone = f"the metric fell from {report.metric_before} to {report.metric_after}: more than {drop}, so the originals are back"


def _close(before: Any, after: Any, drop: float) -> bool:
    if isinstance(before, Mapping):
        return all(_close(before[k], after[k], drop) for k in before)
    return not math.isnan(float(after)) and float(before) - float(after) <= drop
