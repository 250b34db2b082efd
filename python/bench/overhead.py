"""What a call from Python costs above the C API: `y = model(x)` of a tiny model, by kind of array.

    PYTHONPATH=build/release/python python python/bench/overhead.py

Each round times a batch of calls of every kind in turn; the medians are printed, and what they are above `ait_session_run` in C on the same
inputs (ait.bench).
"""
import json
import os
import statistics
import sys
import tempfile
import time

import ait
from ait import _core

TINY = """graph "tiny" core producer "bench"
symbol s0 [1, 1024] hint 4 backed
input %x: float32[s0, 8] user 0 "x"
%y: float32[s0, 8] = relu(%x)
output user 0 "y" = %y
"""
ROUNDS, CALLS = 41, 400


def tiny_model(folder):
    path = os.path.join(folder, "tiny.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(TINY)
    return ait.load(path, backend="native")


def arrays():
    """(kind, array) of what is installed."""
    import array

    try:
        import numpy
        yield "numpy", numpy.ones((4, 8), numpy.float32)
    except ImportError:
        pass
    try:
        import torch
        yield "torch", torch.ones(4, 8)
    except ImportError:
        pass
    yield "buffer", memoryview(array.array("f", [1.0] * 32)).cast("B").cast("f", (4, 8))


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = tiny_model(folder)
    kinds = list(arrays())
    times = {kind: [] for kind, _ in kinds}
    for kind, x in kinds:
        for _ in range(100):
            model(x)
    c_times = []
    for _ in range(ROUNDS):
        for kind, x in kinds:
            start = time.perf_counter()
            for _ in range(CALLS):
                model(x)
            times[kind].append((time.perf_counter() - start) / CALLS)
        document = json.loads(_core.bench([("c", model, [kinds[0][1]], 0.0, 0)], 0.005))
        c_times.append(document["entries"][0]["p50_s"])
    c = statistics.median(c_times)
    print(f"{'C API':10s} {c * 1e6:7.2f} us a call")
    for kind, values in times.items():
        median = statistics.median(values)
        print(f"{kind:10s} {median * 1e6:7.2f} us a call, {(median - c) * 1e6:5.2f} us above the C API")
    if "--check" in sys.argv and max(statistics.median(v) for v in times.values()) - c > 3e-6:
        sys.exit("more than 3 us above the C API")


if __name__ == "__main__":
    main()
