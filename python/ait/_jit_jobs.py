"""Exporting and tuning for the JIT: the extra calls of a module, and the process that tunes."""
from __future__ import annotations

import atexit
import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import typing

from ait import _export, _jit_cache, _tree
from ait._isolate import isolated
from ait._modules import Part, Signature

Any = typing.Any


# ---- extra calls -------------------------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def same_random_numbers() -> typing.Iterator[None]:
    """Extra calls draw none of the script's random numbers."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    state, plain = torch.get_rng_state(), random.getstate()
    arrays = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        torch.set_rng_state(state)
        random.setstate(plain)
        if numpy is not None:
            numpy.random.set_state(arrays)


def other_batch(part: Part, signature: Signature) -> None:
    """When all recorded calls had one batch, a second one is tried, so that the exported program need not fix it."""
    sample = signature.samples[-1]
    if len(signature.shapes) > 1 or not sample or sample[0].dim() == 0:
        return
    n = sample[0].shape[0]
    torch = sys.modules["torch"]
    other = [t if t.dim() == 0 or t.shape[0] != n else torch.cat([t, t]) if n < 4 else t[: n // 2].clone() for t in sample]
    try:
        with _export.calling(signature.key):
            args, kwargs = _tree.rebuild(signature.key.spec, [t.clone() for t in other])
            isolated(part).original(*args, **kwargs)
    except Exception:  # this model has no batch there
        return
    signature.samples.append(other)


# ---- jobs -------------------------------------------------------------------------------------------------------------------------------
_jobs: list["Job"] = []


class Job:
    """Tuning of a module's programs in another process."""

    def __init__(self, cache: pathlib.Path, key: str, programs: list[_export.Program], budget: float, backends: list[str] | None, background: bool,
                 turn: int) -> None:
        """turn: a descriptor that the job keeps open as long as it lives (_jit_cache.turn)."""
        import torch

        self.key, self.limit, self.owner = key, 4 * budget + 120, os.getpid()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ait-jit-"))
        cache.mkdir(parents=True, exist_ok=True)
        jobs = []
        for i, program in enumerate(programs):
            program.save(self.folder / f"{i}.pt2")
            samples = []
            for k, sample in enumerate(program.samples):
                samples.append(f"{i}-{k}.safetensors")
                _jit_cache.write_tensors(self.folder / samples[-1], program.names, sample)
            jobs.append({"model": f"{i}.pt2", "samples": samples, "call": program.call_json()})
        backends = backends or default_backends(budget)
        (self.folder / "job.json").write_text(json.dumps({
            "programs": jobs, "budget": budget / len(jobs), "background": background, "backends": backends, "threads": torch.get_num_threads(),
            "regions": "whole" if budget < 60 else "auto", "record": str(cache / "trials.sqlite"), "trial_seconds": max(30.0, budget),
            "imports": _backend_modules(backends), "cache": str(cache), "key": key, "limit": int(self.limit)}))
        paths = [os.path.abspath(p) if p else os.getcwd() for p in sys.path]
        start = f"import sys; sys.path[:] = {paths!r}; from ait._jit_job import main; main()"
        self.log = self.folder / "log"
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen([sys.executable, "-c", start, str(self.folder)], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            start_new_session=background, env={**os.environ, "AIT_JIT": "0"},
                                            pass_fds=(turn,) if turn >= 0 else ())
        if background:
            _jobs.append(self)

    def done(self) -> bool:
        return self.process.poll() is not None

    def wait(self) -> None:
        try:
            self.process.wait(self.limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        except BaseException:  # Ctrl-C in the script ends its tuning, too
            self.process.kill()
            raise

    def take(self) -> str:
        """Why there is no result; "" when it is in the cache."""
        if self in _jobs:
            _jobs.remove(self)
        try:
            result = json.loads((self.folder / "result.json").read_text())
            error = str(result["error"])
        except (OSError, ValueError, KeyError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            error = f"tuning ended with exit code {self.process.returncode}" + (f": {lines[-1]}" if lines else "")
        shutil.rmtree(self.folder, ignore_errors=True)
        return error


def default_backends(budget: float) -> list[str]:
    """Inductor compiles for longer than a small budget lasts."""
    names = ["native", "onnxruntime", "openvino"]
    return names + ["torch-compile"] if budget >= 120 else names


def _backend_modules(names: typing.Sequence[str]) -> list[str]:
    from ait import backend

    known = backend.registered()
    modules = [known[n].__module__ for n in names if n in known]
    return sorted({m for m in modules if m not in ("__main__", "ait._guests")})


def after_fork() -> None:
    """In a child: the jobs are its parent's."""
    _jobs.clear()


def wait(seconds: float) -> bool:
    end = time.monotonic() + seconds
    while any(not j.done() for j in _jobs) and time.monotonic() < end:
        time.sleep(0.02)
    return all(j.done() for j in _jobs)


def _at_exit() -> None:
    """A job in the background goes on and leaves its result in the cache for the next run; one that has nothing to write to does not matter."""
    for job in _jobs:
        if job.done():
            shutil.rmtree(job.folder, ignore_errors=True)


atexit.register(_at_exit)
