"""Writes the programs of kinds.py with PyTorch's answers as a folder of cases.

    python make.py            # beside this file: what the test `kinds` runs
    python make.py DIR SEED [REGEX] [-d] [-k]    # -d: decomposed into core ATen; -k: go on after a program that torch refuses

Needs torch and numpy. Programs are exported without decompositions; a case is one call, or (state) all calls of a kind on one session."""
import copy
import json
import os
import re
import sys
import warnings
import zipfile

import numpy as np
import torch

import kinds

warnings.filterwarnings("ignore")
BITS = {torch.bfloat16: torch.uint16}
TOLERANCE = {torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7), torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.complex64: (1.3e-6, 1e-5)}


def array(t):
    if not isinstance(t, torch.Tensor): return np.asarray(t)
    t = t.detach().resolve_conj().clone(memory_format=torch.contiguous_format)
    return (t.view(BITS[t.dtype]) if t.dtype in BITS else t).numpy()


def leaf(t):
    return {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)} if isinstance(t, torch.Tensor) else {"value": t, "type": type(t).__name__}


def strides(t):
    return {} if not isinstance(t, torch.Tensor) or t.is_contiguous() else {"strides": list(t.stride())}


def copied(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def wide(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else copied(value)


def compare(t, exact, error=0.0):
    """error: how far PyTorch is from double precision, which an exact implementation need not repeat."""
    if not isinstance(t, torch.Tensor) or exact or t.dtype not in TOLERANCE: return "exact"
    rtol, atol = TOLERANCE[t.dtype]
    return {"rtol": rtol, "atol": max(atol, 2 * error)}


def errors(module, args, results):
    """Distance of each result from the same call in double; large ones are differences of meaning (a rounded index), not of rounding."""
    try: exact = flat(copy.deepcopy(module).double()(*map(wide, args)))
    except Exception: return [0.0] * len(results)
    out = []
    for got, want in zip(results, exact):
        far = got.shape == want.shape and want.dtype == torch.float64 and got.dtype in TOLERANCE and got.numel() > 0
        error = (got.double() - want).abs().nan_to_num(0, 0, 0).max().item() if far else 0.0
        out.append(error if far and error <= max(8 * torch.finfo(got.dtype).eps, 1e-4) * want.abs().nan_to_num(0, 0, 0).max().item() else 0.0)
    return out


def flat(result):
    return torch.utils._pytree.tree_leaves(result)


def step(folder, kind, name, args, module):
    """Runs the call and writes its arrays. What it changed is compared too."""
    before = [a.detach().as_strided(a.shape, a.stride()) if isinstance(a, torch.Tensor) and not a.is_contiguous() else copied(a) for a in args]
    state = {k: v.clone() for k, v in [*module.named_buffers(), *module.named_parameters()]}
    with torch.no_grad():
        noise = errors(module, before, flat(copy.deepcopy(module)(*[copied(a) for a in before])))
        results = flat(module(*args))
    arrays = {f"arr_{i}": array(t) for i, t in enumerate(results)}
    out = {"in": f"{name}.in.npz", "out": f"{name}.out.npz", "inputs": [leaf(a) | strides(a) for a in before],
           "outputs": [leaf(t) | ({"compare": compare(t, kind.exact, e)} if isinstance(t, torch.Tensor) else {}) for t, e in zip(results, noise)]}
    changed = {str(i): (f"input_{i}", a) for i, (a, b) in enumerate(zip(args, before)) if isinstance(a, torch.Tensor) and not torch.allclose(a, b, 0, 0, equal_nan=True)}
    after = {k: (f"state.{k}", v) for k, v in [*module.named_buffers(), *module.named_parameters()] if not torch.equal(v, state[k])}
    for key, rows in (("inputs_changed", changed), ("state_changed", after)):
        if rows: out[key] = {k: {"array": a, **leaf(t), "compare": compare(t, kind.exact)} for k, (a, t) in rows.items()}
        arrays |= {a: array(t) for a, t in rows.values()}
    np.savez_compressed(os.path.join(folder, out["in"]), **{f"arr_{i}": array(t) for i, t in enumerate(before) if isinstance(t, torch.Tensor)})
    np.savez_compressed(os.path.join(folder, out["out"]), **arrays)
    return out


def strip(program):
    """Drops what names this machine's files, and the inputs, which the cases hold."""
    for part in program.graph_module.modules():
        if isinstance(part, torch.fx.GraphModule):
            for node in part.graph.nodes:
                for key in ("stack_trace", "from_node", "nn_module_stack", "source_fn_stack", "torch_fn"):
                    node.meta.pop(key, None)
    program._example_inputs = None


def save(program, path):
    """With deflated entries: text shrinks ten times."""
    torch.export.save(program, path)
    with zipfile.ZipFile(path) as file: entries = [(i.filename, file.read(i)) for i in file.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries: file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED if "/data/" not in name else zipfile.ZIP_STORED)


def cases_of(folder, kind, seed, decompose):
    generator = lambda k=0: torch.Generator().manual_seed(1000 * seed + k)
    torch.manual_seed(seed)
    module = kind.make().train(kind.name.startswith("train"))
    calls = kind.calls(generator())
    program = torch.export.export(module, tuple(map(copied, calls[0])), dynamic_shapes={"args": kind.dims} if kind.dims and isinstance(module, kinds.Function) else kind.dims, strict=False)
    if decompose: program = program.run_decompositions()
    strip(program)
    save(program, os.path.join(folder, f"{kind.name}.pt2"))
    row = {"model": f"{kind.name}.pt2", "expect": "match", "tags": ["kind"]}
    steps = [step(folder, kind, f"{kind.name}.{k}", args, module) for k, args in enumerate(calls)]
    if kind.steps: yield row | {"name": kind.name, "steps": [*steps, steps[0] | {"reset": True}]}
    else: yield from (row | {"name": f"{kind.name}.{k}", "steps": [s]} for k, s in enumerate(steps))
    for k, (args, words) in enumerate(kind.refused):
        args = args(generator(k))
        name = f"{kind.name}.refused{k}"
        np.savez_compressed(os.path.join(folder, f"{name}.npz"), **{f"arr_{i}": array(t) for i, t in enumerate(args) if isinstance(t, torch.Tensor)})
        yield row | {"name": name, "expect": "error", "message": list(words), "steps": [{"in": f"{name}.npz", "inputs": [leaf(a) for a in args]}]}


def make(folder, seed=0, pattern="", decompose=False):
    """decompose: the programs hold core ATen operators only."""
    rows = []
    for kind in kinds.KINDS:
        if not re.search(pattern, kind.name): continue
        try: rows += cases_of(folder, kind, seed, decompose)
        except Exception as error:
            print(f"{kind.name}: {type(error).__name__}: {str(error)[:1500]}", file=sys.stderr)
            if "-k" not in sys.argv: raise
    with open(os.path.join(folder, "cases.json"), "w") as file:
        file.write('{"format": 1, "cases": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")
    return rows


if __name__ == "__main__":
    words = [a for a in sys.argv[1:] if not a.startswith("-")]
    folder, seed, pattern = (words + [os.path.dirname(os.path.abspath(__file__)), "0", ""][len(words):])[:3]
    print(len(make(folder, int(seed), pattern, "-d" in sys.argv)), "cases")
