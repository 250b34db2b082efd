"""Backends in Python: the same contest, a process of their own, and the same answers where the plan is used."""
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "release" / "python"
AIT = ROOT / "build" / "release" / "bin" / "ait"
sys.path.insert(0, str(PACKAGE))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
torch = pytest.importorskip("torch")
import ait  # noqa: E402
import faulty_backends as faulty  # noqa: E402
from ait import _guest_program as programs  # noqa: E402

RECORD = pathlib.Path(tempfile.mkdtemp(prefix="ait-test-")) / "trials.sqlite"  # the roofline is measured once
for each in faulty.ALL:
    ait.register_backend(each)


class Small(torch.nn.Module):
    """Tied weights, a view as a buffer, keyword and number arguments, a nested result."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.a, self.b = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
        self.b.weight = self.a.weight
        self.register_buffer("rows", torch.randn(3, 16)[1:])

    def forward(self, x, k=2):
        y = self.b(torch.relu(self.a(x))) * k + self.rows.sum(0)
        return {"y": y, "parts": (y.mean(-1), None)}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("guests") / "small.pt2"
    module, x = Small().eval(), torch.randn(4, 16)
    sizes = {"x": {0: torch.export.Dim("batch", min=2, max=16)}, "k": None}
    torch.export.save(torch.export.export(module, (x,), {"k": 3}, dynamic_shapes=sizes, strict=False), path)
    return path, module, x


def tune(path, out, x, backend, **options):
    options = {"strategy": "one-backend", "regions": "whole", "budget": 1, "threads": 1, "progress": False, "record": RECORD, **options}
    return ait.tune_file(path, out, [{"x": x, "k": 3}], backends=[backend], **options)


def candidate(report, name):
    return next(c for c in report.document["candidates"] if c["backend"] == name)


def tensors(result):
    return [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def check(loaded, module, x):
    for rows in (x, torch.randn(7, 16), x.T.contiguous().T):
        want = module(rows, k=3)
        got = tensors(loaded(rows, k=3))
        torch.testing.assert_close(got[0], want["y"], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(got[1], want["parts"][0], rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def tuned(model, tmp_path_factory):
    path, module, x = model
    out = tmp_path_factory.mktemp("tuned") / "right.ait"
    return out, tune(path, out, x, "t-right")


def test_it_wins_and_runs_in_place(model, tuned):
    _, module, x = model
    out, report = tuned
    c = candidate(report, "t-right")
    assert c["won"] and c["outcome"] == "valid" and c["transport_s"] > 0
    loaded = ait.load(out)
    assert loaded.backend == "t-right" and not loaded.reason
    check(loaded, module, x)
    with pytest.raises(ait.InvalidArgument):
        loaded(torch.randn(4, 15), k=3)


def test_the_artifact_holds_no_pickle_and_no_data(model, tuned):
    path, _, x = model
    data = tuned[0].read_bytes()
    manifest = json.loads(zipfile.ZipFile(tuned[0]).read("manifest.json"))
    assert manifest["plans"][0]["steps"][0]["needs"] == "Python and torch"
    assert x.numpy().tobytes() not in data
    blob = zipfile.ZipFile(tuned[0]).read(manifest["plans"][0]["steps"][0]["blob"])
    body = blob[blob.index(b"PK"):]
    names = zipfile.ZipFile(io.BytesIO(body)).namelist()
    assert any(n.endswith("models/model.json") for n in names)
    assert not any("sample_inputs" in n or n.endswith("weights/weight_0") for n in names)


def test_without_the_backend_the_portable_graph_runs(model, tuned):
    _, module, x = model
    code = (f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import ait, numpy; m = ait.load({str(tuned[0])!r});"
            "print(m.target, '|', m.reason)")
    text = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert text.startswith("portable |") and "backend 't-right' is not here: it needs Python and torch" in text
    given, results = tuned[0].parent / "in.npz", tuned[0].parent / "out.npz"
    np.savez(given, x=x.numpy(), k=3)
    run = subprocess.run([AIT, "run", tuned[0], "-i", given, "-o", results], capture_output=True, text=True)
    assert run.returncode == 0 and "needs Python and torch" in run.stderr, run.stderr
    np.testing.assert_allclose(list(np.load(results).values())[0], module(x, k=3)["y"].detach().numpy(), rtol=1e-4, atol=1e-5)


def test_each_fault_costs_one_candidate(model, tmp_path):
    path, _, x = model
    wanted = {"t-wrong": ("wrong", "outside tolerance"), "t-raising": ("failed", "ValueError: the stars were wrong"),
              "t-dying": ("failed", "died: Aborted"),
              "t-declining": ("unsupported", "not on a Monday"), "t-missing": ("skipped", "'no-such-package' is not installed")}
    report = ait.tune_file(path, tmp_path / "m.ait", [{"x": x, "k": 3}], backends=list(wanted), regions="whole", budget=1, threads=1,
                           trial_seconds=120, progress=False, record=RECORD)
    got = {c["backend"]: (c["outcome"], c["reason"]) for c in report.document["candidates"]}
    for name, (outcome, reason) in wanted.items():
        assert got[name][0] == outcome and reason in got[name][1], (name, got[name])
    report = ait.tune_file(path, tmp_path / "m.ait", [{"x": x, "k": 3}], backends=["t-hanging"], regions="whole", budget=1, threads=1,
                           trial_seconds=5, progress=False, record=RECORD)
    c = candidate(report, "t-hanging")
    assert c["outcome"] == "timed out" and "took more than" in c["reason"]
    assert subprocess.run(["pgrep", "-f", "ait._guest_worke[r]"], capture_output=True).returncode == 1, "a worker is left"


def test_saved_instead_of_built(tmp_path):
    class_path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(Doubling(), (torch.randn(3),), strict=False), class_path)
    report = ait.tune_file(class_path, tmp_path / "m.ait", [torch.tensor([1.0, -2.0, 3.0])], backends=["t-sealing"], strategy="one-backend",
                           regions="whole", budget=1, threads=1, progress=False, record=RECORD)
    assert candidate(report, "t-sealing")["won"]
    loaded = ait.load(tmp_path / "m.ait")
    assert loaded.backend == "t-sealing"
    assert loaded(torch.tensor([1.0, -2.0, 3.0])).tolist() == [2.0, 0.0, 6.0]


@pytest.mark.parametrize("through", ["file", pytest.param("module", marks=pytest.mark.skipif(not os.environ.get("AIT_SLOW_TESTS"), reason="AIT_SLOW_TESTS=1"))])
def test_calibration_reaches_backends_that_save(tmp_path, through):
    data, many = torch.tensor([1.0, -2.0, 3.0]), [torch.full((3,), float(v)) for v in (1, 5, -7, 2)]
    out = tmp_path / "m.ait"
    if through == "file":
        torch.export.save(torch.export.export(Doubling(), (torch.randn(3),), strict=False), tmp_path / "m.pt2")
        ait.tune_file(tmp_path / "m.pt2", out, [data], backends=["t-calibrated"], strategy="one-backend", regions="whole", budget=1, threads=1,
                      progress=False, calibration=many)
        with pytest.raises(ait.InvalidArgument, match="record does not know"):
            ait.tune_file(tmp_path / "m.pt2", out, [data], calibration=many, record=RECORD)
    else:
        module = Doubling().eval()
        report = ait.tune(module, [data], backends=["t-calibrated"], strategy=ait.OneBackend("t-calibrated"), regions="whole", budget=1, threads=1,
                          min_share=0.0, progress=False, calibration=(v for v in many), even_if_slower=True)
        assert report["(root)"].tuned, report
        ait.save(module, out)
    loaded = ait.load(out)
    assert loaded.backend == "t-calibrated"
    assert loaded(torch.tensor([1.0, 6.0, 100.0])).tolist() == [2.0, 12.0, 14.0]  # clamped where the calibration ends


class Doubling(torch.nn.Module):
    def forward(self, x):
        return (x * 2).relu()


def test_what_is_here_and_what_is_not():
    known = {b["name"]: b for b in ait.backends()["backends"]} if isinstance(ait.backends(), dict) else {b["name"]: b for b in ait.backends()}
    assert known["torch-eager"]["available"] and torch.__version__.split("+")[0] in known["torch-eager"]["version"]
    for name in ("torch-compile", "aotinductor", "torchao", "torch-tensorrt", "tensorrt"):
        assert known[name]["available"] or len(known[name]["detail"]) > 10, name
    assert not known["t-missing"]["available"]


def test_no_compiler_is_a_reason(monkeypatch):
    from ait import _guests

    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ait.Unavailable, match="no C\\+\\+ compiler"):
        _guests.TorchCompile.probe()


@pytest.mark.parametrize("what", ["target", "size", "pickle", "kind"])
def test_a_hostile_program_runs_nothing(model, tmp_path, what):
    path, module, _ = model
    program = torch.export.load(path)
    stripped = programs.strip(path, set(program.state_dict))
    mark = tmp_path / "mark"
    evil = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(stripped)) as old, zipfile.ZipFile(evil, "w") as new:
        for n in old.namelist():
            text = old.read(n)
            if what == "target" and n.endswith("model.json"):
                text = text.replace(b"torch.ops.aten.relu.default", b"torch.os.system")
            if what == "size" and n.endswith("model.json"):
                old_text = json.loads(text)
                text = json.dumps(old_text).replace("\"expr_str\": \"", f"\"expr_str\": \"__import__('os').system('touch {mark}') or ").encode()
            if what == "pickle" and n.endswith("model_constants_config.json"):
                text = b'{"config": {"c": {"path_name": "tensor_0", "is_param": false, "use_pickle": true, "tensor_meta": null}}}'
            new.writestr(n, text)
    if what == "kind":
        with pytest.raises(ait.InvalidModel):
            programs.open_payload(b'{"kind": "pickle"}\n...')
        return
    with pytest.raises(ait.InvalidModel):
        programs.restore(evil.getvalue(), dict(program.state_dict))
    assert not mark.exists()


def test_names_are_checked():
    with pytest.raises(ValueError):
        ait.register_backend(type("Bad", (ait.Backend,), {"name": "no good"}))

    class Inside(ait.Backend):
        name = "t-inside"

    with pytest.raises(ValueError, match="inside a function"):
        ait.register_backend(Inside)


def test_the_example(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    torch.export.save(torch.export.export(Doubling(), (torch.randn(3),), strict=False), tmp_path / "m.pt2")
    out = subprocess.run([sys.executable, ROOT / "examples/python/own_backend.py", tmp_path / "m.pt2", tmp_path / "m.ait"], env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert [line for line in out.stdout.splitlines() if line.startswith("torchscript") and " valid " in line], out.stdout


@pytest.mark.skipif(not os.environ.get("AIT_SLOW_TESTS"), reason="compiles with Inductor: AIT_SLOW_TESTS=1")
@pytest.mark.parametrize("name", ["torch-eager", "torch-compile", "aotinductor", "torchao"])
def test_torchs_own(model, tmp_path, name):
    path, module, x = model
    known = {b["name"]: b for b in ait.backends()}
    if not known[name]["available"]:
        pytest.skip(known[name]["detail"])
    report = tune(path, tmp_path / "m.ait", x, name, trial_seconds=300, tolerance=(0.1, 0.1) if name == "torchao" else None)
    c = candidate(report, name)
    assert c["outcome"] == "valid", c["reason"]
    loaded = ait.load(tmp_path / "m.ait")
    if name == "aotinductor":
        assert loaded.target == "portable" and "only when a trusted key signed it" in loaded.reason
    else:
        assert loaded.backend == name
    got = tensors(loaded(x, k=3))
    torch.testing.assert_close(got[0], module(x, k=3)["y"], rtol=0.1 if name == "torchao" else 1e-4, atol=0.1 if name == "torchao" else 1e-4)
