"""Makes nn.json and nn.npz: operator calls with PyTorch's answers, for src/backends/reference/nn_test.c.

    python nn_cases.py        # needs torch; writes beside itself
    python nn_cases.py raw    # raw.json and raw.npz from raw_cases_list.py
"""
import json, math, os, sys
import numpy as np, torch
import torch.nn.functional as F

NAME = sys.argv[1] if len(sys.argv) > 1 else "nn"
torch.manual_seed(7)
here = os.path.dirname(os.path.abspath(__file__))
arrays, cases = {}, []
NAMES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.int64: "int64",
         torch.int32: "int32", torch.uint64: "uint64", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "bool", torch.complex64: "complex64",
         torch.complex128: "complex128"}


def tensor(t):
    name = f"t{len(arrays)}"
    base = t.detach()
    data = base.resolve_conj().resolve_neg().contiguous()
    arrays[name] = (data.view(torch.uint16) if data.dtype == torch.bfloat16 else data).numpy().copy()
    out = {"t": name, "dtype": NAMES[t.dtype]}
    if not base.is_contiguous() and base.dim() > 1:  # stored dense; the test makes a strided copy with the last two dims swapped
        out["swap"] = True
    return out


def encode(v):
    if v is None: return None
    if isinstance(v, torch.Tensor): return tensor(v)
    if isinstance(v, bool): return {"b": v}
    if isinstance(v, int): return {"i": v}
    if isinstance(v, float): return {"f": repr(v)}
    if isinstance(v, complex): return {"c": [v.real, v.imag]}
    if isinstance(v, str): return {"s": v}
    if isinstance(v, torch.dtype): return {"d": NAMES[v]}
    if isinstance(v, (list, tuple)): return {"l": [encode(x) for x in v]}
    raise TypeError(v)


TOL = {torch.float32: (2e-5, 2e-6), torch.float64: (1e-10, 1e-12), torch.float16: (2e-3, 1e-3), torch.bfloat16: (2e-2, 8e-3),
       torch.complex64: (2e-5, 4e-6), torch.complex128: (1e-10, 1e-12)}


def results(outs, tol, shape_only):
    enc = []
    for o in outs:
        if isinstance(o, (list, tuple)):
            enc.append({"list": results(o, tol, shape_only)})
            continue
        e = tensor(o)
        e["tol"] = list(tol or TOL.get(o.dtype, (0, 0)))
        if shape_only: e["shape_only"] = True
        enc.append(e)
    return enc


def full_args(schema, args, kwargs):
    out = []
    for i, p in enumerate(schema.arguments):
        if i < len(args): v = args[i]
        elif p.name in kwargs: v = kwargs[p.name]
        elif p.has_default_value(): v = p.default_value
        else: raise TypeError(p.name)
        if isinstance(v, (bool, int)) and "float" in str(p.type) and not isinstance(v, bool): v = float(v)
        if "ScalarType" in str(p.real_type) and isinstance(v, int): v = {4: torch.int64, 6: torch.float32}[v]
        if p.name in ("device", "layout", "pin_memory", "memory_format", "generator"): v = None
        out.append(v)
    return out


def case(op, *args, tol=None, shape_only=False, after=(), inplace=False, **kwargs):
    """op: 'conv2d' or 'conv2d.padding'. inplace: add_ for add, whose row and node the test uses with the in-place flag"""
    packet, _, overload = op.partition(".")
    if inplace: packet, after = packet + "_", (0,)
    fn = getattr(getattr(torch.ops.aten, packet), overload or "default")
    full = full_args(fn._schema, args, kwargs)
    enc = [encode(a) for a in full]
    run = [a.clone() if isinstance(a, torch.Tensor) and i in after else a for i, a in enumerate(full)]
    pos = [a for a, p in zip(run, fn._schema.arguments) if not p.kwarg_only]
    kw = {p.name: a for a, p in zip(run, fn._schema.arguments) if p.kwarg_only and a is not None}
    out = fn(*pos, **kw)
    one_list = len(fn._schema.returns) == 1 and isinstance(out, (tuple, list))
    outs = [out] if one_list else [o for o in (out if isinstance(out, (tuple, list)) else [out])]
    c = {"op": "aten." + op, "args": enc, "out": results(outs, tol, shape_only)}
    if inplace: c["inplace"] = True
    if after: c["after"] = {str(i): results([run[i]], tol, False)[0] for i in after}
    cases.append(c)


def core(op, args, out, tol=None):
    outs = [o for o in (out if isinstance(out, (tuple, list)) else [out])]
    cases.append({"op": op, "args": [encode(a) for a in args], "out": results(outs, tol, False)})


r = torch.randn
nan, inf = math.nan, math.inf
exec(open(os.path.join(here, f"{NAME}_cases_list.py")).read())

np.savez_compressed(os.path.join(here, f"{NAME}.npz"), **arrays)
with open(os.path.join(here, f"{NAME}.json"), "w") as f:
    f.write('{"cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
print(len(cases), "cases", sum(a.nbytes for a in arrays.values()), "bytes")
