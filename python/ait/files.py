"""Functions on files: what the command line does, as Python. Arrays instead of .npz files, objects instead of text."""
from __future__ import annotations

import json
import os
import typing

from . import _arrays, _core, _spec, backend as _backend, guests, progress as _progress
from .model import Model, load_model
from ._report import Report
from ._strategies import strategy_of

Any = typing.Any
Path = typing.Union[str, os.PathLike[str]]


# ---- samples ----------------------------------------------------------------------------------------------------------------------------
def _ports_of(path: Path, **options: Any) -> Model:
    """The model's signature, as cheaply as it can be had."""
    try:
        return load_model(path, **{**options, "backend": "null"})
    except _core.Unsupported:  # sizes that depend on data: only the reference takes it
        return load_model(path, **{**options, "backend": "reference"})


def bind(model: Model, sample: Any) -> list[Any]:
    """One call's inputs in the order of the model's: a dict by name, a list or tuple by position, one array, or a file of arrays."""
    if isinstance(sample, (str, os.PathLike)):
        sample = _arrays.inputs_of(model, _arrays.load_arrays(sample))
    if isinstance(sample, dict):
        if sample.keys() <= {p.name for p in model.inputs}:  # flat, whatever the structure of a call
            return _core.Model._bind(model, **sample)
        return model._bind(**sample)
    if isinstance(sample, (list, tuple)):
        return model._bind(*sample)
    return model._bind(sample)


def _samples(model: Model, data: Any) -> list[list[Any]]:
    if isinstance(data, (str, os.PathLike, dict, tuple)) or hasattr(data, "__dlpack__"):
        data = [data]
    return [bind(model, sample) for sample in data]


def _pairs(mapping: typing.Mapping[str, str] | None) -> list[str] | None:
    return None if mapping is None else [f"{k}={v}" for k, v in mapping.items()]


def names_of(names: str | typing.Sequence[str] | None) -> list[str] | None:
    """Backends as a list, or as the command line writes them: "native,onnxruntime"."""
    if names is None:
        return None
    return [n.strip() for n in names.split(",") if n.strip()] if isinstance(names, str) else list(names)


def seconds_of(budget: float | str) -> float:
    """A number of seconds, or as the command line writes it: "90", "90s", "2m"."""
    if not isinstance(budget, str):
        return float(budget)
    number, unit = (budget[:-1], budget[-1]) if budget[-1:] in ("s", "m", "h") else (budget, "s")
    try:
        return float(number) * {"s": 1, "m": 60, "h": 3600}[unit]
    except ValueError:
        raise _core.InvalidArgument(f"a budget is a number of seconds, or a text such as '90s' or '2m', not '{budget}'") from None


# ---- tuning -----------------------------------------------------------------------------------------------------------------------------
_LOAD_OPTIONS = frozenset({"model_name", "weights", "keys", "isa"})


def tune_file(model: Path, out: Path, data: Any, *, strategy: Any = None, backends: str | typing.Sequence[str] | None = None,
              threads: int = 0, budget: float | str = 60.0, tolerance: tuple[float, float] | None = None, record: Path | None = None,
              regions: str | None = None, module_backends: typing.Mapping[str, str] | None = None,
              module_strategies: typing.Mapping[str, str] | None = None, buckets: typing.Mapping[str, typing.Sequence[int]] | None = None, append: bool = False, embed_samples: bool = False,
              progress: bool | _progress.Callback | None = None, calibration: Any = None, **options: Any) -> Report:
    """`ait tune MODEL -o OUT.ait`: finds the fastest correct way to run the model here and seals it.

    data: a list of calls, each a dict by input name, a tuple by position, one array, or an .npz or .safetensors file.
    strategy: as of `ait.tune`, or as on the command line, "latency-budget=5". budget: seconds, or "2m". tolerance: (rtol, atol); None: from the
    oracle's rounding noise.
    record: a database of trials, so that a second run reuses them. buckets: {symbol or "input.dimension": sizes} that are measured, too.
    progress: True, False, a function of an `ait.progress.Event`; None: a bar where somebody looks. Ctrl-C stops after the running trial; the
    record keeps what was tried. Further options: batch_sizes ("1..64"), memory_bytes, seed, from_record, model_name, weights, isa, keys, sign,
    trial_seconds, trial_bytes, call.
    calibration: more calls, in the forms of data, for backends in Python that look at many (`ait.Backend.build`). Not together with record, which
    does not know them.
    Raises Mismatch when nothing valid was found: its `report` is the Report.
    """
    guests.configure()
    if strategy is not None and not isinstance(strategy, str):
        chosen = strategy_of(strategy)
        strategy, backends = chosen.text, chosen.backends if chosen.backends is not None else backends
    if calibration is not None and record is not None:
        raise _core.InvalidArgument("a record does not know the calibration data: give one of the two")
    ports = _ports_of(model, **{k: v for k, v in options.items() if k in _LOAD_OPTIONS and k != "isa"})
    function, bar = _progress.callback(progress)
    if "call" not in options and (call := _spec.call_of(model, options.get("model_name"))):
        options["call"] = json.dumps(call)
    rtol, atol = tolerance if tolerance is not None else (0.0, 0.0)
    calls = [] if calibration is None else _samples(ports, calibration)
    try:
        with _backend.calibrating(calls):
            text = _core.tune(
                model, out, samples=_samples(ports, data), ports=ports, strategy=strategy, backends=names_of(backends),
                threads=threads, budget=seconds_of(budget), rtol=float(rtol), atol=float(atol), record=None if record is None else os.fspath(record),
                regions=regions, module_backends=_pairs(module_backends), module_strategies=_pairs(module_strategies),
                buckets=_pairs({k: ",".join(map(str, v)) for k, v in buckets.items()} if buckets else None), append=append,
                embed_samples=embed_samples, progress=None if function is None else (lambda *e: function(_progress.Event(*e))), **options)
    except _core.Mismatch as error:
        error.report = Report(json.loads(error.report)) if isinstance(error.report, str) else error.report
        raise
    finally:
        if bar is not None:
            bar.close()
    return Report(json.loads(text))


# ---- looking into models ------------------------------------------------------------------------------------------------------------------
def inspect_file(model: Path, sample: Any = None, *, roofline: bool = False, threads: int = 0, **options: Any) -> dict[str, Any]:
    """`ait inspect`: identity, ports, module tree with work and (given a sample) times, what each backend takes. The document of docs/json.md."""
    guests.configure()
    ports = None if sample is None else _ports_of(model, **options)
    inputs = None if ports is None else bind(ports, sample)
    roof = _core.roofline(threads) if roofline else None
    return _parsed(_core.inspect(model, inputs=inputs, ports=ports, roofline=roof, threads=threads, **options))


def explain(model: Path, filter: str | None = None, **options: Any) -> list[dict[str, Any]]:
    """`ait explain`: every "no", as dicts of source, code, node, module, text."""
    guests.configure()
    return typing.cast("list[dict[str, Any]]", _parsed(_core.explain(model, filter, **options))["notes"])


def debug(model: Path, backend: str, sample: Any, *, output: Path | None = None, rtol: float = 0.0, atol: float = 0.0,
          **options: Any) -> dict[str, Any]:
    """`ait debug`: the first node where a backend leaves the reference."""
    ports = _ports_of(model, **options)
    return _parsed(_core.debug(model, output, inputs=bind(ports, sample), ports=ports, backend=backend, rtol=rtol, atol=atol, **options))


class Verdict(typing.NamedTuple):
    """One output compared."""

    name: str
    ok: bool
    max_abs: float
    max_rel: float
    mismatches: int
    elements: int


def verify(model: Path | Model, sample: Any, expected: Any, *, rtol: float = 1.3e-6, atol: float = 1e-5) -> list[Verdict]:
    """`ait verify`: runs and compares each output with what is expected, by name (a dict) or position."""
    runner = model if isinstance(model, Model) else load_model(model)
    results = _core.Model.__call__(runner, *bind(runner, sample))
    results = results if len(runner.outputs) != 1 else (results,)
    if isinstance(expected, (str, os.PathLike)):
        expected = _arrays.load_arrays(expected)
    if isinstance(expected, dict):
        expected = [expected.get(p.name, expected.get(f"arr_{i}")) for i, p in enumerate(runner.outputs)]
    elif not isinstance(expected, (list, tuple)):
        expected = [expected]
    verdicts = []
    for port, got, want in zip(runner.outputs, results, expected):
        if port.kind != "tensor" or want is None:
            verdicts.append(Verdict(port.name, got == want, 0.0, 0.0, int(got != want), 1))
            continue
        r = _core.compare_arrays(got, want, rtol, atol, False)
        verdicts.append(Verdict(port.name, r["pass"], r["max_abs"], r["max_rel"], r["mismatches"], r["count"]))
    return verdicts


def bench(models: Path | Model | typing.Sequence[Path | Model], sample: Any, *, min_time: float = 2.0, threads: int = 0) -> dict[str, Any]:
    """`ait bench`: latency of one or more models on the same call, timed in turn, with confidence intervals and the ratio to the first."""
    import time

    entries = []
    for m in [models] if isinstance(models, (str, os.PathLike, Model)) else models:
        start = time.perf_counter()
        model = m if isinstance(m, Model) else load_model(m)
        seconds = 0.0 if isinstance(m, Model) else time.perf_counter() - start
        entries.append((str(model.path), model, bind(model, sample), seconds, threads))
    return _parsed(_core.bench(entries, min_time))


# ---- recorded traffic (docs/traffic.md) -----------------------------------------------------------------------------------------------------
def record_traffic(trace: Path, model: Model, sample: Any, arrival: float | None = None) -> None:
    """One request more at the end of a trace: when it came (the time of day, unless given) and the shapes of its inputs, never their contents."""
    import time

    _core.trace_append(trace, model, bind(model, sample), time.time() if arrival is None else arrival)


def replay(model: Path | Model, trace: Path, sample: Any, *, threads: int = 0, seconds: float = 0.0, limit: float = 0.0) -> dict[str, Any]:
    """`ait replay`: recorded traffic against the model: latencies, goodput within `limit` seconds."""
    runner = model if isinstance(model, Model) else load_model(model)
    return _parsed(_core.replay(runner, trace, bind(runner, sample), threads, seconds, limit))


# ---- reports ----------------------------------------------------------------------------------------------------------------------------------
def report(path: Path, **options: Any) -> Report:
    """`ait report`: what was tried, what won, and the evidence, from the file. NotFound: it was not tuned."""
    return load_model(path, **options).report()


def compare(a: Path | Report, b: Path | Report, *, threshold: float = 0.05) -> dict[str, Any]:
    """`ait compare`: two results; `regressions` counts what is worse in b beyond noise."""
    sizes = [0 if isinstance(x, Report) else os.stat(x).st_size for x in (a, b)]
    texts = [(x if isinstance(x, Report) else report(x)).json() for x in (a, b)]
    return _parsed(_core.compare_reports(texts[0], texts[1], threshold, *sizes))


# ---- files --------------------------------------------------------------------------------------------------------------------------------------
def export_onnx(model: Path, out: Path, *, opset: int = 0, external_data: bool = False, **options: Any) -> None:
    """`ait export`: a model as an ONNX file. opset 0: 18."""
    _core.export_onnx(model, out, opset=opset, external_data=external_data, **options)


def unpack(path: Path, folder: Path | None = None, *, npz: bool = False, **options: Any) -> dict[str, Any]:
    """`ait unpack`: what lies in a .ait; given a folder, all of it as plain files."""
    return _parsed(_core.unpack(path, folder, npz=npz, **options))


def sign(path: Path, *, keys: Path, key: str, out: Path | None = None) -> None:
    """`ait sign`: signs a .ait, in its place or to out. keys: the folder of keys; key: the name of an own one."""
    _core.sign(path, out, keys=os.fspath(keys), key=key)


# ---- lists ------------------------------------------------------------------------------------------------------------------------------------
def backends() -> list[dict[str, Any]]:
    """`ait backends`: what can run a model here, or why not."""
    guests.configure()
    return typing.cast("list[dict[str, Any]]", _parsed(_core.backends())["backends"])


def operators(missing_in: Path | None = None, **options: Any) -> list[dict[str, Any]]:
    """`ait ops`: all operators, or those that a model has and ait lacks."""
    if missing_in is not None:
        return typing.cast("list[dict[str, Any]]", _parsed(_core.ops_missing(missing_in, **options))["missing"])
    return typing.cast("list[dict[str, Any]]", _parsed(_core.ops())["operators"])


def load_plugin(path: Path) -> None:
    """Custom operators and backends from a plugin. Runs the code of that file."""
    _core.load_plugin(path)


def _parsed(text: str) -> dict[str, Any]:
    return typing.cast("dict[str, Any]", json.loads(text))
