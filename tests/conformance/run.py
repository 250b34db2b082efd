#!/usr/bin/env python3
"""`make conformance`: makes the suites, runs them with `ait verify --cases`, records the results, prints the percentages, writes docs/conformance.md.

    python run.py AIT                        everything; cases are made once into build/conformance
    python run.py AIT --suites float32,half  these only; the other recorded results stay
    python run.py AIT --data half=DIR        cases that were made elsewhere (repeatable: several folders make one suite)

Exit 1: a target is missed, or the list of reasons is not right. Needs the packages of tests/python/requirements.txt to make cases."""
import argparse
import hashlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys

import report
from suites import BACKENDS, SUITES, dtype_of, family_of

HERE = pathlib.Path(__file__).resolve().parent


def make_cases(suite, folder, jobs):
    """Cases of a suite, unless they are there already."""
    script = HERE / ("onnx_node_cases.py" if suite == "onnx" else "aten_cases.py")
    command = [sys.executable, str(script)] + ([str(folder)] if suite == "onnx" else ["--out", str(folder), "--jobs", str(jobs), *SUITES[suite][1]])
    stamp = hashlib.sha256(script.read_bytes() + " ".join(command[2:]).encode()).hexdigest()
    if (folder / "stamp").exists() and (folder / "stamp").read_text() == stamp:
        return
    print(f"making the cases of '{suite}' in {folder}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(command, check=True, env={**os.environ, "ORT_DISABLE_TELEMETRY": "1"})
    if suite != "onnx":
        subprocess.run([sys.executable, str(HERE / "cases.py"), str(folder)], check=True)
    (folder / "stamp").write_text(stamp)


def run_folder(ait, folder, backend, jobs):
    """{name: (outcome, text)}"""
    out = folder / f"result.{backend}.json" if os.access(folder, os.W_OK) else pathlib.Path("result.json")
    command = [ait, "verify", "--cases", str(folder), "--jobs", str(jobs), "-q", f"--json={out}"] + (["--backend", backend] if backend != "reference" else [])
    subprocess.run(command, stdout=subprocess.DEVNULL)
    with open(out) as file:
        cases = json.load(file)["cases"]
    return {c["name"]: (c["outcome"], c.get("text", "").replace(f"{folder}/", "")) for c in cases}


def measure(ait, suite, folders, backend, jobs):
    """What is recorded of a suite on a backend, and the names of the cases that passed."""
    families, not_passed, passed = {}, [], []
    for folder in folders:
        outcomes = run_folder(ait, folder, backend, jobs)
        with open(folder / "cases.json") as file:
            cases = json.load(file)["cases"]
        for case in cases:
            outcome, text = outcomes.get(case["name"], ("failed", "it was not run"))
            counts = families.setdefault(family_of(suite, case), {}).setdefault(dtype_of(suite, case), [0, 0, 0])
            counts[("passed", "failed", "skipped").index(outcome)] += 1
            if outcome == "passed":
                passed.append(case["name"])
            elif outcome == "failed" or backend == "reference":
                not_passed.append({"name": case["name"], "text": text[:200]})
    return {"families": {f: dict(sorted(d.items())) for f, d in sorted(families.items())},
            "not_passed": sorted(not_passed, key=lambda c: c["name"])}, passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ait")
    parser.add_argument("--work", type=pathlib.Path, default=HERE.parents[1] / "build" / "conformance")
    parser.add_argument("--suites", default=",".join(SUITES))
    parser.add_argument("--data", action="append", default=[], metavar="SUITE=DIR")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    given = {}
    for text in options.data:
        suite, folder = text.split("=", 1)
        given.setdefault(suite, []).append(pathlib.Path(folder))
    path = HERE / "results.json"
    old = json.loads(path.read_text()) if path.exists() else {"suites": {}}
    results, all_passed = {"versions": {p: importlib.metadata.version(p) for p in ("torch", "onnx")}, "suites": {}}, {}
    wanted = options.suites.split(",")
    for suite in SUITES:
        if suite not in wanted:
            if suite in old["suites"]:
                results["suites"][suite] = old["suites"][suite]
            continue
        folders = given.get(suite)
        if not folders:
            folders = [options.work / suite]
            make_cases(suite, folders[0], options.jobs)
        results["suites"][suite] = {}
        for backend in BACKENDS:
            result, passed = measure(options.ait, suite, folders, backend, options.jobs)
            results["suites"][suite][backend] = result
            if backend == "reference":
                all_passed[suite] = passed
            counts = report.total_of(result)
            print(f"{suite:14} {backend:10} {counts[0]} passed, {counts[1]} failed, {counts[2]} declined: "
                  f"{report.percent((counts[0], counts[1] + (counts[2] if backend == 'reference' else 0)))}", flush=True)
    path.write_text(json.dumps(results, indent=1) + "\n")
    reasons = report.read_reasons()
    report.PAGE.write_text(report.page(results, reasons))
    wrong = report.check_reasons(results, reasons, all_passed)
    for suite, by_backend in results["suites"].items():
        counts = report.total_of(by_backend["reference"])
        if counts[0] < SUITES[suite][2] * sum(counts):
            wrong.append(f"{suite}: {report.percent((counts[0], sum(counts[1:])))} passed, the target is {100 * SUITES[suite][2]:.0f} %")
    print("\n".join(wrong) or "every target is met")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
