"""A module through Python only: tuned, saved, loaded in a process that cannot import torch, run there, compared.

    python tests/python/roundtrip.py --zoo DIR [NAME...] [--budget 3]

DIR holds a model zoo: make.py, whose import fills zoo.RECIPES (name -> dict with `build`, a function that returns an object with net, cases,
inputs(gen, **case), positional), and zoo.py with base_inputs(model, case). Entries that torch.export does not take are named and skipped."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "python")))

WITHOUT_TORCH = """
import json, sys
for name in ("torch", "transformers", "diffusers"): sys.modules[name] = None
import numpy, ait
model = ait.load(sys.argv[1])
def leaves(v):
    if hasattr(v, "dtype"): return [v]
    if isinstance(v, dict): return [x for w in v.values() for x in leaves(w)]
    if isinstance(v, (list, tuple)): return [x for w in v for x in leaves(w)]
    return []
for call in json.load(open(sys.argv[2])):
    d = numpy.load(call["in"])
    out = model(**{k: d[k] for k in d.files}) if call["named"] else model(*[d[k] for k in d.files])
    numpy.savez(call["out"], *leaves(out))
"""


def tensors(value):
    from ait import _tree

    return [t for t in _tree.flatten(value)[0] if _tree.is_tensor(t)]


def roundtrip(net, calls, named, folder, budget, **options):
    """calls: dicts of tensors. Returns a dict: status ("passed", "failed", "not exported"), why, worst, speedup. Tolerance: 2e-4 of the largest
    value of an output, or 30 times what one last bit of the weights' noise moves it, whichever is more; integers are equal."""
    import numpy as np
    import torch

    import ait

    net.eval()
    with torch.no_grad():
        want = [[t.numpy().copy() for t in tensors(net(**x) if named else net(*x.values()))] for x in calls]
    data = [((), x) if named else (tuple(x.values()), {}) for x in calls]
    report = ait.tune(net, data, budget=budget, even_if_slower=True, progress=False, **options)
    if "(root)" in report.reasons:
        return dict(status="not exported", why=str(report.reasons["(root)"]))
    if not report["(root)"].tuned:
        return dict(status="failed", why=report["(root)"].reason)
    folder = pathlib.Path(folder)
    ait.save(net, folder / "m.ait")
    plan = []
    for i, x in enumerate(calls):
        np.savez(folder / f"in{i}.npz", **{k: t.numpy() for k, t in x.items()})
        plan.append({"in": str(folder / f"in{i}.npz"), "out": str(folder / f"out{i}.npz"), "named": named})
    (folder / "calls.json").write_text(json.dumps(plan))
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(ait.__file__))}
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, str(folder / "m.ait"), str(folder / "calls.json")], env=env, capture_output=True, text=True)
    if done.returncode:
        return dict(status="failed", why=done.stderr.strip().splitlines()[-1])
    scale = [max([np.abs(w[k][np.isfinite(w[k])]).max(initial=0) for w in want]) for k in range(len(want[0]))]
    noise = _noise(net, calls, named, want)
    worst = 0.0
    for i, w in enumerate(want):
        got = np.load(folder / f"out{i}.npz")
        got = [got[k] for k in got.files]
        if [g.shape for g in got] != [a.shape for a in w]:
            return dict(status="failed", why=f"call {i}: shapes {[g.shape for g in got]} instead of {[a.shape for a in w]}")
        for k, (a, b) in enumerate(zip(got, w)):
            if a.dtype != b.dtype:
                return dict(status="failed", why=f"call {i}, output {k}: {a.dtype} instead of {b.dtype}")
            bound = max(2e-4 * scale[k], 30 * noise[k]) if b.dtype.kind == "f" else 0.0
            with np.errstate(invalid="ignore"):
                off = np.abs(a.astype(np.float64) - b.astype(np.float64))
            off[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
            top = float(off.max(initial=0))
            if not top <= bound:
                return dict(status="failed", why=f"call {i}, output {k} is off by {top:.3g}, allowed {bound:.3g}")
            worst = max(worst, top / bound if bound else 0.0)
    return dict(status="passed", worst=round(worst, 3), speedup=report["(root)"].speedup, forms=len(report["(root)"].programs))


def _noise(net, calls, named, want):
    """How far each output moves when every weight moves by one unit in the last place: what rounding alone may do."""
    import copy

    import numpy as np
    import torch

    moved = copy.deepcopy(net)
    with torch.no_grad():
        for p in moved.parameters():
            if p.dtype == torch.float32:
                p.mul_(1 + 2**-23)
        outs = [tensors(moved(**x) if named else moved(*x.values())) for x in calls]
    return [max(float(np.abs(np.nan_to_num(o[k].numpy().astype(np.float64) - w[k].astype(np.float64))).max(initial=0)) for o, w in zip(outs, want))
            for k in range(len(want[0]))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--zoo", required=True, help="folder with make.py and zoo.py")
    parser.add_argument("--budget", type=float, default=3.0)
    parser.add_argument("--bench", action="store_true", help="the full-size entries, too")
    parser.add_argument("--backends", default="native", help="names with commas; all: those that ait.tune asks when nothing is said")
    a = parser.parse_args()
    sys.path.insert(0, a.zoo)
    import make  # noqa: F401  fills the recipes
    import torch
    import zoo

    counts = dict(passed=0, failed=0)
    skipped = []
    for name in a.names or [n for n, r in zoo.RECIPES.items() if a.bench or not r.get("bench")]:
        torch.manual_seed(zoo.SEED)
        begin = time.time()
        model = zoo.RECIPES[name]["build"]()
        model.net.requires_grad_(False)
        calls = [zoo.base_inputs(model, k) for k in range(len(model.cases))]
        with tempfile.TemporaryDirectory() as folder:
            try:
                result = roundtrip(model.net, calls, not model.positional, folder, a.budget, backends=None if a.backends == "all" else a.backends.split(","))
            except Exception as e:
                traceback.print_exc()
                result = dict(status="failed", why=f"{type(e).__name__}: {e}")
        print(f"{name:24} {result['status']:12} {time.time() - begin:6.1f} s  " + ", ".join(f"{k} {v}" for k, v in result.items() if k != "status"),
              flush=True)
        if result["status"] in counts:
            counts[result["status"]] += 1
        else:
            skipped.append(name)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {len(skipped)} not exported {' '.join(skipped)}")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
