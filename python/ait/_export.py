"""Exporting a part for one form of its calls: from flat tensors to flat tensors, checked against the module.

The program that torch.export sees is a function of the call's tensors, in order, that builds the arguments, calls the method, and takes
the result apart. Constants (None, flags, numbers) are inside. So no class of the user's or of a library is in the file, and what the
arguments and the result look like is said by `call_json` (docs/python-pipelines.md).
"""
from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import logging
import os
import re
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

from . import _shapes, _tree
from ._errors import ExportError, Reason, explain
from ._isolate import isolated
from ._modules import Key, Part, Signature, foreign_hooks, leaf_names

MAX_PROGRAMS = 4  # for one form of calls, when the model's code fixes sizes


@dataclasses.dataclass(eq=False)
class Program:
    """An exported part, for one form of its calls."""

    part: Part
    key: Key
    names: List[str]
    out_spec: _tree.Spec
    exported: Any  # torch.export.ExportedProgram, from flat tensors to flat tensors
    samples: List[List[Any]]
    shape: List[List[Any]]  # of each tensor: numbers, or texts of dynamic sizes
    ranges: Dict[str, Tuple[int, int | None]]
    notes: List[str]
    twin: Part | None = None  # what checks may run instead of the user's module

    def accepts(self, shapes: Sequence[Tuple[int, ...]]) -> bool:
        """Fixed sizes agree (ranges and relations are checked by whoever runs it)."""
        return all(len(a) == len(b) and all(x == y or isinstance(x, str) for x, y in zip(a, b)) for a, b in zip(self.shape, shapes))

    @property
    def calibration(self) -> List[List[Any]]:
        """What was recorded for backends that calibrate, of sizes that this program takes."""
        recorded = self.part.signatures[self.key].calibration
        return [s for s in recorded if self.accepts([tuple(t.shape) for t in s])]

    def bound_to_samples(self) -> bool:
        """Narrows every range to what was recorded; false: nothing is left to narrow. For models whose code takes fewer sizes than their guards
        say (a table of positions that is indexed by data)."""
        from torch.utils._sympy.value_ranges import ValueRanges

        seen: Dict[Any, List[int]] = {}
        for sample in self.samples:
            for value, tensor in zip(_placeholders(self.exported), sample):
                for size, actual in zip(value.shape, tensor.shape):
                    if not isinstance(size, int) and size.node.expr.is_Symbol:
                        seen.setdefault(size.node.expr, []).append(int(actual))
        narrowed = False
        for symbol, sizes in seen.items():
            old = self.exported.range_constraints[symbol]
            new = ValueRanges(max(int(old.lower), min(sizes)), max(sizes))
            narrowed |= old != new
            self.exported.range_constraints[symbol] = new
        if narrowed:
            self.ranges = _ranges(self.exported)
            self.notes.append("sizes end where the recorded ones do: the model failed at others")
        return narrowed

    def call_json(self) -> str:
        call = {
            "version": 1, "name": self.part.name, "method": self.part.method, "in": _tree.to_json(self.key.spec),
            "out": _tree.to_json(self.out_spec), "names": self.names, "dtypes": [str(d).removeprefix("torch.") for d in self.key.dtypes],
            "ranks": list(self.key.ranks), "autocast": self.key.autocast, "shape": self.shape,
            "weights": self.part.fingerprint(),
        }
        return json.dumps(call, allow_nan=False)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """As .pt2: no sample of the user's data is in it; call.json is an extra file."""
        import torch

        self.exported._example_inputs = None
        torch.export.save(self.exported, path, extra_files={"call.json": self.call_json()})


# ---- what the module must be like ------------------------------------------------------------------------------------------------------
def obstacle(module: Any) -> Reason | None:
    """Why a module is not exported as it stands now, before anything is tried."""
    import torch

    graph = isinstance(module, torch.fx.GraphModule)  # of torch.export: its mode was fixed when it was exported
    if module.training and not graph:
        return Reason("training", "it is in training mode: call eval() first")
    for name, m in module.named_modules():
        if name and foreign_hooks(m):
            return Reason("hooks", f"its submodule '{name}' has a forward hook, which a tuned call would not run")
        if name and m.training and not graph and any(True for _ in m.parameters(recurse=False)):
            return Reason("training", f"its submodule '{name}' is in training mode: call eval() first")
    for name, t in list(module.named_parameters()) + list(module.named_buffers()):
        if t.device.type != "cpu":
            return Reason("device", f"'{name}' is on {t.device}: only models on the CPU are tuned")
    return None


@contextlib.contextmanager
def _as_flat(part: Part, key: Key, names: Sequence[str], seen: Dict[str, Any]) -> Iterator[Any]:
    """The module with a forward of flat tensors, and without its own hooks, which run around the tuned call as around the original."""
    import torch

    module = part.module
    if isinstance(module, torch.fx.GraphModule):  # torch.export takes the graph of one, whatever its forward is now
        module = torch.nn.Module()
        module.program = part.module
        module.training = False  # eval() would ask the graph, which refuses

    def run(leaves: Sequence[Any]) -> Tuple[Any, ...]:
        args, kwargs = _tree.rebuild(key.spec, leaves)
        results, seen["spec"] = _tree.flatten(part.original(*args, **kwargs))
        return tuple(results)

    scope: Dict[str, Any] = {"_run": run}
    exec(f"def forward({', '.join(names)}):\n  return _run(({', '.join(names)},))", scope)  # names are identifiers: leaf_names
    own = module.__dict__.get("forward")
    hooks = module._forward_hooks, module._forward_pre_hooks
    module._forward_hooks, module._forward_pre_hooks = type(hooks[0])(), type(hooks[1])()
    module.__dict__["forward"] = scope["forward"]
    try:
        yield module
    finally:
        module._forward_hooks, module._forward_pre_hooks = hooks
        if own is None:
            del module.__dict__["forward"]
        else:
            module.__dict__["forward"] = own


@contextlib.contextmanager
def calling(key: Key) -> Iterator[None]:
    """As the recorded calls ran: autocast as it was, no gradients."""
    import torch

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if key.autocast is None:
            yield
        else:
            with torch.autocast("cpu", dtype=getattr(torch, key.autocast.removeprefix("torch."))):
                yield


# ---- one torch.export ------------------------------------------------------------------------------------------------------------------
def _torch_dims(groups: Sequence[_shapes.Group], names: Sequence[str], how: str) -> Dict[str, Any]:
    from torch.export import Dim

    spec: Dict[str, Dict[int, Any]] = {n: {} for n in names}
    if how == "static":
        return spec
    for g in groups:
        if how == "named":
            dim = Dim(g.name, min=g.min) if g.max is None else Dim(g.name, min=g.min, max=g.max)
        else:
            dim = Dim.AUTO if g.max is None else Dim.AUTO(min=g.min, max=g.max)
        for i, axis in g.axes:
            spec[names[i]][axis] = dim
    return spec


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch prints the graph so far and a warning when it refuses a module; the reason says it shorter."""
    log = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        log.setLevel(level)


def _trace(part: Part, key: Key, names: Sequence[str], tensors: Sequence[Any], dims: Any, strict: bool) -> Tuple[Any, _tree.Spec]:
    import torch

    seen: Dict[str, Any] = {}
    with calling(key), _as_flat(part, key, names, seen) as module, _quiet():
        exported = torch.export.export(module, tuple(tensors), dynamic_shapes=dims, strict=strict)
        if strict:  # Dynamo reads the code and does not run it
            module.__dict__["forward"](*[t.clone() for t in tensors])
    return exported, seen["spec"]


def _refined(error: BaseException, dims: Any) -> Any:
    """What torch itself suggests where a size is bounded or a multiple; None when it suggests nothing."""
    from torch.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes as refine

    head, found, fixes = str(error).partition("Suggested fixes:\n")
    if not found:
        return None
    try:
        return refine(head + found + fixes.partition("\n\n")[0], dims)
    except Exception:  # it reads its own message, and not every one
        return None


def _attempts(part: Part, key: Key, names: Sequence[str], tensors: Sequence[Any], groups: Sequence[_shapes.Group], strict: bool,
              notes: List[str]) -> Tuple[Any, _tree.Spec]:
    """Named sizes first (they say which are equal), then what torch makes of them by itself, then fixed sizes."""
    if not groups:
        try:
            return _trace(part, key, names, tensors, _torch_dims((), names, "static"), strict)
        except Exception as e:  # torch raises many kinds
            raise ExportError(explain(e)) from e
    images = any(axis >= 2 and tensors[i].dim() >= 4 for g in groups for i, axis in g.axes) and not any(g.given for g in groups)
    if images:  # heights and widths are multiples of something: what names would say fails after a whole export, which may take half a minute
        try:
            result = _trace(part, key, names, tensors, _torch_dims(groups, names, "auto"), strict)
            shape = _shape_of(result[0])
            if all(isinstance(shape[i][axis], str) for g in groups for i, axis in g.axes):
                return result
        except Exception as e:  # the other ways say why
            if explain(e).code not in ("shapes", "export", "data-dependent"):
                raise ExportError(explain(e)) from e
    dims = _torch_dims(groups, names, "named")
    error: BaseException
    for _ in range(2):  # each costs an export; Dim.AUTO finds what one suggestion does not say
        try:
            return _trace(part, key, names, tensors, dims, strict)
        except Exception as e:  # torch raises many kinds
            error = e
            dims = _refined(e, dims)
            if dims is None:
                break
    first = explain(error)
    if first.code not in ("shapes", "export"):
        raise ExportError(first) from error
    try:
        return _trace(part, key, names, tensors, _torch_dims(groups, names, "auto"), strict)
    except Exception as e:
        second = explain(e)
        if any(g.given for g in groups) or second.code not in ("shapes", "export", "data-dependent"):
            raise ExportError(first) from error
    try:
        result = _trace(part, key, names, tensors, _torch_dims((), names, "static"), strict)
    except Exception as e:
        raise ExportError(explain(e)) from e
    notes.append(f"sizes are fixed: {first}")
    return result


def _check_result(out_spec: _tree.Spec) -> None:
    strange = _tree.opaque(out_spec)
    if strange:
        raise ExportError(Reason("result", f"its result holds a {strange[0][1].rpartition(':')[2]}, neither tensor nor plain value"))
    if not any(n[0] == "t" for _, n in _tree.walk(out_spec)):
        raise ExportError(Reason("result", "its result holds no tensor"))


# ---- what came out ---------------------------------------------------------------------------------------------------------------------
def _refuse_changes(exported: Any) -> None:
    signature = exported.graph_signature
    for name in dict(signature.buffers_to_mutate).values():
        raise ExportError(Reason("changes-state", f"a call changes its buffer '{name}', which the original module would not see"))
    for name in dict(signature.user_inputs_to_mutate).values():
        raise ExportError(Reason("changes-input", f"a call changes its argument '{name}' in place"))
    for name in dict(getattr(signature, "parameters_to_mutate", {})).values():
        raise ExportError(Reason("changes-state", f"a call changes its parameter '{name}'"))


def _placeholders(exported: Any) -> List[Any]:
    inputs = set(exported.graph_signature.user_inputs)
    return [n.meta["val"] for n in exported.graph.nodes if n.op == "placeholder" and n.name in inputs]


def _shape_of(exported: Any) -> List[List[Any]]:
    return [[s if isinstance(s, int) else str(s) for s in v.shape] for v in _placeholders(exported)]


def same(got: Sequence[Any], want: Sequence[Any], rtol: float = 1e-3) -> str | None:
    """Where two lists of leaves differ; None when they do not. The exported graph calls the same kernels, so this bound is for order of sums
    only; it is relative to the largest value of each tensor."""
    import torch

    if len(got) != len(want):
        return f"{len(got)} results instead of {len(want)}"
    for i, (a, b) in enumerate(zip(got, want)):
        if not isinstance(b, torch.Tensor) or not isinstance(a, torch.Tensor):
            if isinstance(a, torch.Tensor) != isinstance(b, torch.Tensor) or a != b:
                return f"result {i} is {a} instead of {b}"
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {i} is {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
        if not b.is_floating_point() and not b.is_complex():
            if not torch.equal(a, b):
                return f"result {i} differs"
            continue
        finite = b.abs()[b.isfinite()].double()
        bound = rtol * float(finite.max()) if finite.numel() else 0.0
        if b.dtype in (torch.bfloat16, torch.float16):
            bound *= 16
        wide = torch.complex128 if b.is_complex() else torch.float64
        if not torch.allclose(a.to(wide), b.to(wide), rtol=0, atol=bound, equal_nan=True):
            return f"result {i} differs by {float((a.to(wide) - b.to(wide)).abs().nan_to_num(float('inf')).max()):.3g}"
    return None


def _numbers(out_spec: _tree.Spec, spec: _tree.Spec, leaves: List[Any]) -> List[Any]:
    """The leaves of a plain call, with the numbers that the program gives as leaves among them."""
    ours, theirs = list(_tree.walk(out_spec)), list(_tree.walk(spec))
    if len(ours) != len(theirs):
        raise ExportError(Reason("structure", "its result has another structure in another call"))
    left = iter(leaves)
    return [next(left) if b[0] == "t" else _tree.constant_value(b) for (_, a), (_, b) in zip(ours, theirs) if "t" in b[:1] or a[0] == "n"]


def _reference(part: Part, key: Key, sample: Sequence[Any]) -> Tuple[List[Any], _tree.Spec]:
    """What the module itself says; it must say so twice, and change neither itself nor its arguments."""
    module = part.module
    owned = list(module.named_parameters()) + list(module.named_buffers())
    from ._side_effects import Snapshot

    with calling(key):
        results: List[List[Any]] = []
        kept = {n: b.clone() for n, b in module.named_buffers()}
        for _ in range(2):
            versions = [t._version for _, t in owned]
            inputs = [t.clone() for t in sample]
            given = [t._version for t in inputs]
            args, kwargs = _tree.rebuild(key.spec, inputs)
            before_call = Snapshot(module)
            leaves, spec = _tree.flatten(part.original(*args, **kwargs))
            change = before_call.change() if results else ""  # the first call makes caches
            if change and not change.startswith("a buffer"):
                raise ExportError(Reason("changes-state", f"a call changes '{change}', which a tuned call would not do"))
            results.append([t.clone() if _tree.is_tensor(t) else t for t in leaves])
            for (name, t), before in zip(owned, versions):
                if t._version != before:
                    for n, b in module.named_buffers():
                        b.copy_(kept[n])
                    raise ExportError(Reason("changes-state", f"a call changes its '{name}', which the original module would not see"))
            for name, t, before in zip(leaf_names(key.spec), inputs, given):
                if t._version != before:
                    raise ExportError(Reason("changes-input", f"a call changes its argument '{name}' in place"))
        if same(results[0], results[1], 1e-6):
            raise ExportError(Reason("random", "it gives other numbers for the same input each time"))
    return results[0], spec


def _cut(exported: Any, sample: Sequence[Any], symbol: Any) -> List[Any] | None:
    """The sample cut to what the sizes are when this symbol is 1; None where one of them depends on other symbols, too."""
    cut = list(sample)
    for i, value in enumerate(_placeholders(exported)):
        for axis, size in enumerate(value.shape):
            expression = None if isinstance(size, int) else size.node.expr
            if expression is None or symbol not in expression.free_symbols:
                continue
            if expression.free_symbols != {symbol}:
                return None
            at_one = int(expression.subs(symbol, 1))
            if at_one > cut[i].shape[axis]:
                return None
            cut[i] = cut[i].narrow(axis, 0, at_one)
    return cut


def _fails_at(part: Part, key: Key, exported: Any, out_spec: _tree.Spec, cut: List[Any]) -> str | None:
    try:
        with calling(key):
            got = list(exported.module()(*[t.clone() for t in cut]))
        leaves, spec = _reference(part, key, cut)
        return same(got, _numbers(out_spec, spec, leaves))
    except Exception as e:  # the program's own guards, or the module's code
        return str(e).splitlines()[0] if str(e) else type(e).__name__


def _relax(part: Part, key: Key, exported: Any, out_spec: _tree.Spec, sample: Sequence[Any], notes: List[str]) -> None:
    """torch.export assumes that no dynamic size is 1. Where the module agrees with the program at size 1, the range begins there; where it
    does not, the range begins at 2, whatever was asked for."""
    from torch.utils._sympy.value_ranges import ValueRanges

    used: Set[Any] = set()
    for value in _placeholders(exported):
        for size in value.shape:
            used |= set() if isinstance(size, int) else size.node.expr.free_symbols
    for symbol, r in list(exported.range_constraints.items()):
        if symbol not in used or int(r.lower) > 2:
            continue
        cut = _cut(exported, sample, symbol)
        exported.range_constraints[symbol] = ValueRanges(1, r.upper)
        if cut is None:
            exported.range_constraints[symbol] = ValueRanges(max(1, int(r.lower)), r.upper)
        elif any(0 in t.shape for t in cut) or _fails_at(part, key, exported, out_spec, cut):
            exported.range_constraints[symbol] = ValueRanges(2, r.upper)
            notes.append(f"size {symbol} begins at 2")


def _verify(part: Part, key: Key, exported: Any, out_spec: _tree.Spec, samples: Sequence[List[Any]]) -> Tuple[List[List[Any]], List[List[Any]]]:
    """(samples that the program takes and answers as the module does, samples that it does not take)."""
    taken: List[List[Any]] = []
    refused: List[List[Any]] = []
    run = exported.module()
    for sample in samples:
        want, spec = _reference(part, key, sample)
        try:
            with calling(key):
                got = list(run(*[t.clone() for t in sample]))
        except (AssertionError, RuntimeError, ValueError):
            refused.append(sample)
            continue
        if not _fits(out_spec, spec):
            raise ExportError(Reason("structure", "its result has another structure, or other plain values, in another call"))
        problem = same(got, _numbers(out_spec, spec, want))
        if problem:
            raise ExportError(Reason("wrong", f"the exported program does not compute what the module does: {problem}"))
        taken.append(sample)
    return taken, refused


def _fits(ours: _tree.Spec, theirs: _tree.Spec) -> bool:
    """A call's structure is the program's; a number that depends on sizes ("n") is a constant of that call."""
    if ours[0] == "n":
        return theirs[:2] == ("c", ours[1]) or theirs == ours
    if ours[0] != theirs[0] or ours[0] in ("t", "c", "x"):
        return ours == theirs
    if ours[1:-1] != theirs[1:-1] or len(ours[-1]) != len(theirs[-1]):
        return False
    return all(_fits(a, b) for a, b in zip(ours[-1], theirs[-1]))


def export_signature(part: Part, signature: Signature, given: _shapes.Given | None = None, strict: bool = False) -> List[Program]:
    """Programs that together serve the recorded calls of this form. Raises ExportError with the reason."""
    reason = obstacle(part.module)
    if reason:
        raise ExportError(reason)
    programs: List[Program] = []
    left = signature.samples
    twin = isolated(part)
    while left and len(programs) < MAX_PROGRAMS:
        program, left = _export_some(twin, signature, left, given, strict)
        program.part, program.twin = part, twin
        programs.append(program)
    if left:
        programs[-1].notes.append(f"{len(left)} recorded sizes have no program: the model's code fixes them")
    return programs


def _export_some(part: Part, signature: Signature, samples: List[List[Any]], given: _shapes.Given | None,
                 strict: bool) -> Tuple[Program, List[List[Any]]]:
    key, names = signature.key, signature.names
    shapes = [[tuple(t.shape) for t in s] for s in samples]
    groups = _shapes.groups(shapes, names, given)
    chosen = _shapes.pick_sample(shapes, groups)
    notes: List[str] = []
    _reference(part, key, samples[chosen])
    tensors = _shapes.enlarge(samples[chosen], groups, chosen)
    exported, out_spec = _attempts(part, key, names, [t.clone() for t in tensors], groups, strict, notes)
    _check_result(out_spec)
    _refuse_changes(exported)
    if groups:
        _relax(part, key, exported, out_spec, tensors, notes)
    taken, refused = _verify(part, key, exported, out_spec, samples)
    if not taken:
        raise ExportError(Reason("shapes", "the exported program takes none of the recorded calls"))
    program = Program(part, key, names, out_spec, exported, taken, _shape_of(exported), _ranges(exported), notes)
    return program, refused


def _ranges(exported: Any) -> Dict[str, Tuple[int, int | None]]:
    used = " ".join(s for shape in _shape_of(exported) for s in shape if isinstance(s, str))
    result: Dict[str, Tuple[int, int | None]] = {}
    for symbol, r in exported.range_constraints.items():
        if symbol.is_Symbol and re.search(rf"\b{symbol}\b", used):
            result[str(symbol)] = (int(r.lower), int(r.upper) if r.upper.is_Integer and int(r.upper) < 2**62 else None)
    return result


# ---- the public function ---------------------------------------------------------------------------------------------------------------
@dataclasses.dataclass
class Exported:
    """What `ait.export` made."""

    path: str
    inputs: Dict[str, str]  # name -> "float32 [batch, 3, 224, 224]"
    ranges: Dict[str, Tuple[int, int | None]]
    notes: List[str]

    def __str__(self) -> str:
        lines = [f"{self.path}"] + [f"  {n}: {t}" for n, t in self.inputs.items()]
        lines += [f"  {s} = {lo} to {'any' if hi is None else hi}" for s, (lo, hi) in self.ranges.items()]
        return "\n".join(lines + [f"  note: {n}" for n in self.notes])


def export(model: Any, args: Any, path: "str | os.PathLike[str]", *, kwargs: Mapping[str, Any] | None = None, dynamic_shapes: Any = None,
           samples: Sequence[Any] = (), strict: bool = False, method: str = "forward") -> Exported:
    """Exports a module (or another method of it) as a .pt2 that ait takes, and checks it against the module.

    args: a tensor, or the tuple of positional arguments; kwargs: those by name. samples: more calls, each (args tuple, kwargs dict), a
    tuple, a dict or a tensor, from which dynamic sizes are taken. dynamic_shapes: {parameter: {axis: ait.Dim(...)}} where they are not.
    Raises ait.ExportError, whose message says what cannot be exported and where in the code."""
    from ._data import as_call

    calls: List[Tuple[Tuple[Any, ...], Dict[str, Any]]] = [(args if isinstance(args, tuple) else (args,), dict(kwargs or {}))]
    calls += [as_call(s) for s in samples]
    part = Part(type(model).__name__, model, method)
    signatures: List[Signature] = []
    for a, k in calls:
        got = part.canonical(a, k)
        if isinstance(got, str):
            raise ExportError(Reason("argument", f"this call cannot be exported: {got}"))
        leaves, key = got
        if signatures and signatures[0].key != key:
            raise ExportError(Reason("argument", "the samples differ in more than sizes: " + signatures[0].text() + " and "
                                     + Signature(key, leaf_names(key.spec)).text()))
        if not signatures:
            signatures.append(Signature(key, leaf_names(key.spec)))
        signatures[0].add(leaves, 1, 64)
    s = signatures[0]
    given = _shapes.expand_given(dynamic_shapes, s.names, list(part.binder.names), s.key.ranks)
    reason = obstacle(model)
    if reason:
        raise ExportError(reason)
    program, refused = _export_some(isolated(part), s, s.samples, given, strict)
    program.part = part
    if refused:
        raise ExportError(Reason("shapes", f"one program does not take all samples: {[tuple(t.shape) for t in refused[0]]} is refused; "
                                 f"it takes {program.shape} {'; '.join(program.notes)}"))
    program.save(path)
    inputs = {n: f"{str(d).removeprefix('torch.')} [{', '.join(map(str, sh))}]" for n, d, sh in zip(s.names, s.key.dtypes, program.shape)}
    return Exported(os.fspath(path), inputs, program.ranges, program.notes)


def dry(part: Part) -> Reason | None:
    """Whether torch.export takes one recorded call of the part; the reason when it does not. Nothing is kept."""
    if not part.signatures:
        most = part.reasons.most_common(1)
        return Reason("argument", most[0][0]) if most else Reason("not-called", "it was not called")
    s = max(part.signatures.values(), key=lambda s: s.calls)
    part = isolated(part)
    try:
        _reference(part, s.key, s.samples[0])
        exported, out_spec = _attempts(part, s.key, s.names, [t.clone() for t in s.samples[0]], (), False, [])
        _check_result(out_spec)
        _refuse_changes(exported)
    except ExportError as e:
        return e.reason
    except Exception as e:  # the module's own code
        return explain(e)
    return None
