"""Unchanged scripts with the JIT: whether answers stay, what the second run's start costs, and speed in steady state. Usage: jit_bench.py [SCRIPT…]

Each script runs PLAIN times without, once with an empty cache, and as often with what that has left, in turn. `start`: from the start of Python
to the first answer, as much more as without. `steady`: median time of the second half of the calls, without over with. Exit code 1: an answer
differs, the start costs a second or more, or a script is slower by more than a twentieth."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "release" / "python"
SCRIPTS = pathlib.Path(__file__).parent / "scripts"
NAMES = sorted(p.stem for p in SCRIPTS.glob("*.py"))
CALLS = {"classify": 300, "embed": 400, "diffuse": 60, "transcribe": 40, "branches": 600}


def run(script, folder, mode, a):
    """(seconds until the first answer, seconds of each call, answers)"""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text((ROOT / "python" / "ait_jit.pth").read_text())
    env = {**os.environ, "PYTHONPATH": f"{site}:{PACKAGE}", "AIT_JIT": mode, "AIT_JIT_CACHE": str(folder / "jit"), "AIT_JIT_BUDGET": str(a.budget),
           "PYTHONWARNINGS": "ignore"}
    if a.threads:
        env["OMP_NUM_THREADS"] = str(a.threads)
    if a.backends:
        env["AIT_JIT_BACKENDS"] = a.backends
    out = folder / "out.npz"
    start = time.perf_counter()
    done = subprocess.run([sys.executable, SCRIPTS / f"{script}.py", out, str(CALLS.get(script, 50))], env=env, capture_output=True, text=True)
    wall = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{script}: {done.stderr}")
    if a.verbose and done.stderr:
        print(done.stderr.rstrip())
    got = np.load(out)
    times = got["times"]
    return wall - times[1:].sum(), times, got["answers"]


def steady(times):
    return statistics.median(times[len(times) // 2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts", nargs="*", default=NAMES)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tuning in the first run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--backends", default="")
    parser.add_argument("--verbose", action="store_true")
    a = parser.parse_args()
    print(f"{'script':12} {'answers':>9} {'start':>8} {'+ start':>8} {'1st run':>8} {'plain':>10} {'with':>10} {'steady':>7}")
    bad = 0
    for script in a.scripts:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            begin = time.perf_counter()
            first = run(script, folder, "1", a)
            first_s = time.perf_counter() - begin
            plain, tuned = [], []
            for _ in range(a.runs):
                plain.append(run(script, folder, "0", a))
                tuned.append(run(script, folder, "1", a))
        want = plain[0][2]
        off = max(np.abs(got[2].astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-30) for got in (first, *tuned))
        before, after = min(p[0] for p in plain), min(t[0] for t in tuned)
        slow, fast = (min(steady(r[1]) for r in rs) for rs in (plain, tuned))
        problems = [text for text, is_so in (("ANSWERS", not off <= 1e-3), ("START", after - before >= 1.0), ("SLOWER", slow / fast < 0.95)) if is_so]
        bad += bool(problems)
        print(f"{script:12} {off:9.1e} {before:6.2f} s {after - before:6.2f} s {first_s:6.1f} s {1e3 * slow:7.3f} ms {1e3 * fast:7.3f} ms {slow / fast:6.2f}x "
              + " ".join(problems), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
