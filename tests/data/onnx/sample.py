"""Copies a small sample of a folder of ONNX node cases (cases.json beside models and arrays) to tests/data/onnx/node: for each operator the
smallest cases.

    python sample.py CASES [cases per operator]
"""
import json, os, shutil, sys

here = os.path.dirname(os.path.abspath(__file__))
folder, per_op = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
out = os.path.join(here, "node")
with open(os.path.join(here, "expected_failures.txt")) as f:
    refused = {line.split()[0] for line in f if line.strip() and not line.startswith("#")}


def files(case):
    return [case["model"]] + [s[k] for s in case["steps"] for k in ("in", "out") if k in s]


def size(case):
    return sum(os.path.getsize(os.path.join(folder, f)) for f in files(case))


cases = [c for c in json.load(open(os.path.join(folder, "cases.json")))["cases"] if c["name"] not in refused]
taken, count = [], {}
for case in sorted(cases, key=lambda c: (size(c), c["name"])):
    ops = [t for t in case["tags"] if not t.startswith("opset-")]
    if size(case) < 20000 and any(count.get(op, 0) < per_op for op in ops):
        taken.append(case)
        for op in ops:
            count[op] = count.get(op, 0) + 1
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)
for case in taken:
    for name in files(case):
        shutil.copy(os.path.join(folder, name), out)
json.dump({"format": 1, "cases": sorted(taken, key=lambda c: c["name"])}, open(os.path.join(out, "cases.json"), "w"), indent=0)
print(len(taken), "cases of", len(count), "operators,", sum(size(c) for c in taken), "bytes")
