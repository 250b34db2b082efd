#!/usr/bin/env python3
"""docs/conformance.md from what was measured: results.json (run.py writes it) and reasons.tsv.

    python3 report.py            writes the page
    python3 report.py --check    writes nothing; exit 1 when the page, or the list of reasons, is not right

Standard library only."""
import fnmatch
import json
import pathlib
import sys

from suites import ATEN_FAMILIES, BACKENDS, ONNX_FAMILIES, SUITES

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"


def read_reasons():
    """[(suite, pattern of case names, reason)]"""
    rows = [line.rstrip("\n").split("\t") for line in (HERE / "reasons.tsv").read_text().splitlines() if line and not line.startswith("#")]
    for row in rows:
        if len(row) != 3 or not row[2].strip():
            sys.exit(f"reasons.tsv: not suite, case, reason: {row}")
    return [tuple(row) for row in rows]


def reason_for(reasons, suite, name):
    return next((r for s, pattern, r in reasons if s == suite and fnmatch.fnmatchcase(name, pattern)), None)


def check_reasons(results, reasons, passed=None):
    """What is wrong with the list: a case that does not pass and has no reason; a reason for a case that passes, or for none.
    passed: {suite: names}, known right after a run."""
    wrong = []
    for suite, by_backend in results["suites"].items():
        for case in by_backend["reference"]["not_passed"]:
            if reason_for(reasons, suite, case["name"]) is None:
                wrong.append(f"{suite}: {case['name']} does not pass and has no reason: {case['text']}")
    for suite, pattern, _ in reasons:
        cases = results["suites"].get(suite, {}).get("reference", {}).get("not_passed", [])
        if suite in results["suites"] and not any(fnmatch.fnmatchcase(c["name"], pattern) for c in cases):
            wrong.append(f"{suite}: '{pattern}' has a reason, but no case of that name fails: delete the line")
        for name in (passed or {}).get(suite, ()):
            if fnmatch.fnmatchcase(name, pattern):
                wrong.append(f"{suite}: {name} passes, but is listed as '{pattern}'")
    return wrong


def percent(counts):
    total = sum(counts)
    return f"{100 * counts[0] / total:.1f} %" if total else ""


def add(counts, more):
    return [a + b for a, b in zip(counts, more)]


def table(head, rows):
    rows = list(rows)
    numbers = [all(str(row[i])[:1].isdigit() or row[i] == "" for row in rows) for i in range(len(head))]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join("---:" if number else "---" for number in numbers) + "|"
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def total_of(result):
    counts = [0, 0, 0]
    for by_dtype in result["families"].values():
        for c in by_dtype.values():
            counts = add(counts, c)
    return counts


def summary(results):
    rows = []
    for suite, by_backend in results["suites"].items():
        for backend, result in by_backend.items():
            passed, failed, skipped = total_of(result)
            target = f"{100 * SUITES[suite][2]:.0f} %" if backend == "reference" else ""
            rows.append((SUITES[suite][0], backend, passed + failed + skipped, passed, failed, skipped,
                         percent((passed, failed + (skipped if backend == "reference" else 0))), target))
    return table(("suite", "backend", "cases", "passed", "failed", "declined", "passed of what it takes", "target"), rows)


def by_dtype(results):
    counts = {}
    for suite, by_backend in results["suites"].items():
        for backend, result in by_backend.items():
            for family in result["families"].values():
                for dtype, c in family.items():
                    key = (suite, dtype)
                    counts.setdefault(key, {}).setdefault(backend, [0, 0, 0])
                    counts[key][backend] = add(counts[key][backend], c)
    rows = [(suite, dtype, sum(c["reference"]), percent((c["reference"][0], sum(c["reference"][1:]))),
             percent(c.get("native", [0, 0])[:2])) for (suite, dtype), c in counts.items() if dtype]
    return table(("suite", "dtype", "cases", "reference", "native"), rows)


def by_family(results, suites, families):
    suites = [s for s in suites if s in results["suites"]]
    backends = [b for b in BACKENDS if any(b in results["suites"][s] for s in suites)]
    rows = []
    for family, _ in families:
        cells = []
        for suite in suites:
            for backend in backends:
                counts = [0, 0, 0]
                for c in results["suites"][suite].get(backend, {"families": {}})["families"].get(family, {}).values():
                    counts = add(counts, c)
                cells.append(f"{counts[0]}/{counts[0] + counts[1]}" if sum(counts[:2]) else "")
        if any(cells):
            rows.append((family, *cells))
    return table(("family", *(f"{s} {b}" for s in suites for b in backends)), rows)


def failures(results, reasons):
    rows = []
    for suite, by_backend in results["suites"].items():
        found = {}
        for case in by_backend["reference"]["not_passed"]:
            found.setdefault(reason_for(reasons, suite, case["name"]) or "no reason", []).append(case["name"])
        rows += [(suite, len(names), ", ".join(f"`{n}`" for n in names[:3]) + (", …" if len(names) > 3 else ""), reason)
                 for reason, names in sorted(found.items())]
    if not rows:
        return ["Every case passes.", ""]
    return table(("suite", "cases", "which", "why"), rows)


def native_failures(results):
    rows = [(suite, f"`{c['name']}`", c["text"].replace("|", "\\|")) for suite, by_backend in results["suites"].items()
            for c in by_backend.get("native", {"not_passed": []})["not_passed"]]
    if not rows:
        return ["None: what native declines is counted above, and what it takes it gets right.", ""]
    return table(("suite", "case", "what"), rows)


def page(results, reasons):
    v = results["versions"]
    lines = ["# Conformance", "",
             "Made by `make conformance` (tests/conformance) from test suites that nobody here wrote: PyTorch's own operator database (`op_db`,",
             "`module_db`), each sample exported with `torch.export`, and the node tests that the `onnx` package ships. A case passes when every output",
             "has the dtype, the shape and, within PyTorch's (ONNX's) own tolerance, the values of the original.", "",
             f"Measured with torch {v['torch']} and onnx {v['onnx']}. A backend may decline a case; random operators are compared by shape and dtype.", "",
             *summary(results),
             "## By dtype", "", *by_dtype(results),
             "## By family of operators", "", "Passed of those that the backend takes.", "",
             *by_family(results, [s for s in SUITES if s != "onnx"], ATEN_FAMILIES)]
    if "onnx" in results["suites"]:
        lines += by_family(results, ["onnx"], ONNX_FAMILIES)
    lines += ["## What does not pass on the reference", "",
              "The list is kept honest: a case that fails without a reason here, and a reason for a case that passes, are errors of `make conformance`.", "",
              *failures(results, reasons), "## What native gets wrong", "", *native_failures(results)]
    return "\n".join(lines).rstrip() + "\n"


def main():
    results, reasons = json.loads((HERE / "results.json").read_text()), read_reasons()
    wrong = check_reasons(results, reasons)
    text = page(results, reasons)
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            wrong.append("docs/conformance.md is not what results.json and reasons.tsv give: run tests/conformance/report.py")
    else:
        PAGE.write_text(text)
    print("\n".join(wrong) or "conformance: page and reasons are right")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
