"""Tunes a module's exported programs for the JIT, in a process of its own: no torch is imported, and a crash costs only this job.

FOLDER, its last argument, holds job.json and what that names; result.json is written into it, and the artifacts go into the cache."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import sys
import typing

Any = typing.Any


def _tune(folder: pathlib.Path, job: dict[str, Any]) -> str:
    from ait import Mismatch, _jit_cache, tune_file

    for module in job["imports"]:
        __import__(module)  # backends of the user's that are defined there
    files = []
    for i, program in enumerate(job["programs"]):
        out = folder / f"{i}.ait"
        try:
            report = tune_file(folder / program["model"], out, [str(folder / name) for name in program["samples"]], backends=job["backends"],
                               budget=job["budget"], threads=job["threads"], regions=job["regions"], record=job["record"], progress=False,
                               call=program["call"], trial_seconds=job["trial_seconds"])
        except Mismatch as error:
            return str(error).partition("\n")[0]
        if report.winner:
            files.append(out)
    _jit_cache.put(pathlib.Path(job["cache"]), job["key"], files)
    return ""


def main() -> None:
    folder = pathlib.Path(sys.argv[-1])
    job = json.loads((folder / "job.json").read_text())
    signal.alarm(job["limit"])
    if job["background"]:
        os.nice(10)
    try:
        error = _tune(folder, job)
    except Exception as problem:
        error = f"{type(problem).__name__}: {str(problem).partition(chr(10))[0]}"
    temporary = folder / "result.tmp"
    try:
        temporary.write_text(json.dumps({"error": error}))
        temporary.replace(folder / "result.json")
    except FileNotFoundError:
        shutil.rmtree(folder, ignore_errors=True)  # who asked is gone
