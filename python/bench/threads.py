"""Calls per second of one model object by number of Python threads, on the bundled model.

    PYTHONPATH=build/release/python python python/bench/threads.py [SECONDS]
"""
import pathlib
import sys
import threading
import time

import numpy as np

import ait

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "models" / "digits"


def rate(model, x, threads, seconds):
    counts, stop = [0] * threads, threading.Event()

    def work(k):
        while not stop.is_set():
            model(x)
            counts[k] += 1

    pool = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    start = time.perf_counter()
    for t in pool:
        t.start()
    time.sleep(seconds)
    stop.set()
    for t in pool:
        t.join()
    return sum(counts) / (time.perf_counter() - start)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    x = np.load(DIGITS / "digits-test.npz")["image"][:64]
    model = ait.load(DIGITS / "digits.pt2", backend="native", threads=1)
    model(x)
    one = 0.0
    for threads in (1, 2, 4, 8):
        calls = rate(model, x, threads, seconds)
        one = one or calls
        print(f"{threads} threads: {calls:8.0f} calls a second, {calls / one:.2f} times one thread; at most {model.sessions} at once")


if __name__ == "__main__":
    main()
