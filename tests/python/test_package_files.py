"""Functions on files, reports and progress of the package ait."""
import io
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(os.environ.get("AIT_PYTHON_PACKAGE", ROOT / "build" / "release" / "python"))
sys.path.insert(0, str(PACKAGE))
import ait  # noqa: E402
from ait import _core, files, guests, progress  # noqa: E402

DIGITS = ROOT / "tests" / "data" / "models" / "digits"
MODEL = DIGITS / "digits.pt2"
QUICK = {"backends": ["native"], "budget": 1.0, "strategy": "first-wins"}


@pytest.fixture(scope="module")
def images():
    return np.load(DIGITS / "digits-test.npz")["image"]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory, images):
    events = []
    out = tmp_path_factory.mktemp("files") / "d.ait"
    report = ait.tune_file(MODEL, out, [images[:8], {"image": images[:2]}], backends=["native", "eager"], budget=1.5, threads=1, progress=events.append)
    return out, report, events


# ---- tuning ---------------------------------------------------------------------------------------------------------------------------------
def test_tune(tuned, images):
    out, report, events = tuned
    assert report.winner and report.baseline.startswith("eager") and report.speedup > 0.5
    low, high = report.speedup_interval
    assert low <= report.speedup <= high
    assert any(e.line for e in events) and all(isinstance(e, progress.Event) for e in events) and events[-1].budget_seconds > 0
    model = ait.load(out)
    assert model.plans[0]["made_here"] and model.report().document == report.document and model.manifest["format"] == 1
    np.testing.assert_allclose(model(images[:5]), np.load(DIGITS / "expected.npz")["output"][:5], rtol=1e-4, atol=1e-4)


def test_data_in_every_form(tmp_path, images):
    model = ait.load(MODEL, backend="null")
    np.savez(tmp_path / "d.npz", image=images[:4], label=np.arange(4))
    for data in (images[:4], (images[:4],), {"image": images[:4]}, [images[:4]], tmp_path / "d.npz", [str(tmp_path / "d.npz")], (s for s in [images[:4]])):
        [[x]] = files._samples(model, data)
        assert (np.asarray(x) == images[:4]).all()
    assert ait.tune_file(MODEL, tmp_path / "m.ait", tmp_path / "d.npz", **QUICK).winner
    for data, text in (([], "sample"), ([images[:4].astype("f8")], "float64"), ({"picture": images}, "picture"), ([(images, images)], "2 inputs")):
        with pytest.raises(ait.InvalidArgument, match=text):
            ait.tune_file(MODEL, tmp_path / "n.ait", data, **QUICK)
    assert not (tmp_path / "n.ait").exists()
    with pytest.raises(TypeError, match="colour"):
        ait.tune_file(MODEL, tmp_path / "n.ait", images[:4], colour="red")
    with pytest.raises(ait.InvalidArgument, match="nope"):
        ait.tune_file(MODEL, tmp_path / "n.ait", images[:4], strategy="nope")


def test_record_is_reused(tmp_path, images):
    lines = [], []
    for seen in lines:
        ait.tune_file(MODEL, tmp_path / "m.ait", images[:4], record=tmp_path / "r.db", progress=lambda e: seen.append(e.line), **QUICK)
    assert (tmp_path / "r.db").exists()
    assert json.loads(_core.record_export(tmp_path / "r.db", tmp_path / "copy.db"))["rows"] > 0
    assert json.loads(_core.record_merge(tmp_path / "new.db", sources=[str(tmp_path / "copy.db")]))["added"] > 0


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ZeroDivisionError])
def test_an_exception_of_the_callback_stops_tuning(tmp_path, images, raised):
    def callback(event):
        raise raised("enough")

    with pytest.raises(raised):
        ait.tune_file(MODEL, tmp_path / "m.ait", images[:4], budget=60, progress=callback)
    assert not (tmp_path / "m.ait").exists()


def test_nothing_valid(tmp_path, images):
    with pytest.raises(ait.Mismatch) as caught:
        ait.tune_file(MODEL, tmp_path / "m.ait", images[:4], backends=["native"], budget=1, tolerance=(0.0, 1e-30), threads=1)
    report = caught.value.report
    assert isinstance(report, ait.Report) and report.winner == "" and any(c.outcome == "wrong" for c in report.candidates)
    assert "nothing valid" in report.markdown()


# ---- reports --------------------------------------------------------------------------------------------------------------------------------
def test_report_in_every_form(tuned, tmp_path):
    out, report, _ = tuned
    assert report.winner in report.text() and str(report) == report.text()
    table = report.markdown().splitlines()
    assert table[0].startswith("| candidate") and len([l for l in table if l.startswith("|")]) == 2 + len(report.candidates)
    assert "winner" in report._repr_html_() and "<script" not in report._repr_html_() and report._repr_markdown_() == report.markdown()
    page = report.html(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == page and page.startswith("<!doctype html>")
    assert sum(c.won for c in report.candidates) == 1 and "ait.Report" in repr(report)
    assert ait.report(out).document == report.document
    with pytest.raises(ait.NotFound):
        ait.report(MODEL)


def test_texts_of_reports_are_escaped():
    bad = {"name": "a|b<script>", "backend": "native", "outcome": "failed", "reason": "x\ny<b>"}
    report = ait.Report({"candidates": [bad], "winner": ""})
    assert "<script>" not in report._repr_html_() and "a\\|b" in report.markdown() and "x y" in report.markdown()


def test_compare(tuned):
    out, report, _ = tuned
    same = ait.compare(out, out)
    assert same["regressions"] == 0 and same["same_model"]
    assert ait.compare(report, out)["a_winner"] == report.winner


# ---- progress -------------------------------------------------------------------------------------------------------------------------------
class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bar():
    event = progress.Event("measure", "native threads=2", 3, 10, 1.5, 60.0, None)
    plain, moving = io.StringIO(), Terminal()
    for stream in (plain, moving):
        with progress.Bar(stream) as bar:
            bar(event)
            bar(event._replace(line="native: 1 ms"))
    assert plain.getvalue() == "native: 1 ms\n"
    assert "3/10 measure native threads=2" in moving.getvalue() and "native: 1 ms\n" in moving.getvalue() and moving.getvalue().endswith(" \r")


def test_progress_choices():
    assert progress.callback(False) == (None, None)
    function, bar = progress.callback(True)
    assert function is bar and bar is not None
    assert progress.callback(print) == (print, None)


# ---- looking into models --------------------------------------------------------------------------------------------------------------------
def test_inspect_and_explain(images):
    info = ait.inspect_file(MODEL, images[:4])
    assert info["nodes"] == 15 and info["seconds"] > 0 and info["inputs"][0]["name"] == "image"
    assert "roofline" in ait.inspect_file(MODEL, roofline=True)
    assert isinstance(ait.explain(MODEL), list)
    assert _core.opt(MODEL, "core").startswith("graph ") and "conv" in _core.opt(MODEL)


def test_verify_and_debug(tuned, images, tmp_path):
    out, _, _ = tuned
    expected = np.load(DIGITS / "expected.npz")["output"]
    good = ait.verify(out, DIGITS / "digits-test.npz", DIGITS / "expected.npz")
    assert [v.ok for v in good] == [True] and good[0].elements == 4500 and good[0].name == "output"
    bad = ait.verify(out, images[:2], expected[:2] + 1)
    assert not bad[0].ok and bad[0].mismatches == 20 and abs(bad[0].max_abs - 1) < 1e-3
    assert ait.debug(MODEL, "native", images[:2])["agrees"]
    with pytest.raises(ait.InvalidArgument, match="nope"):
        ait.debug(MODEL, "nope", images[:2])


def test_bench(tuned, images):
    out, _, _ = tuned
    document = ait.bench([out, ait.load(MODEL, backend="eager")], images[:4], min_time=0.1, threads=1)
    first, second = document["entries"]
    assert first["p50_s"] > 0 and second["time_over_first"] > 0 and first["load_s"] > 0


def test_traffic(tuned, images, tmp_path):
    out, _, _ = tuned
    model = ait.load(out)
    for i in range(5):
        ait.record_traffic(tmp_path / "t.jsonl", model, images[:1 + i], arrival=i * 0.01)
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 5
    assert ait.replay(model, tmp_path / "t.jsonl", images[:1], seconds=0.2)["requests"] == 5


# ---- files ----------------------------------------------------------------------------------------------------------------------------------
def test_unpack_sign_and_keys(tuned, tmp_path):
    out, _, _ = tuned
    names = [e["name"] for e in ait.unpack(out)["entries"]]
    assert "manifest.json" in names
    ait.unpack(out, tmp_path / "folder", npz=True)
    assert (tmp_path / "folder" / "manifest.json").exists()
    keys = _core.keys(tmp_path / "keys", "new", "me")
    assert [(k["name"], k["own"], k["revoked"]) for k in keys] == [("me", True, False)]
    ait.sign(out, keys=tmp_path / "keys", key="me", out=tmp_path / "signed.ait")
    assert ait.load(tmp_path / "signed.ait", keys=tmp_path / "keys", require_signature=True).signed["state"] == "trusted"
    assert ait.load(tmp_path / "signed.ait").signed["state"] == "unknown"
    with pytest.raises(ait.Error, match="sign"):
        ait.load(out, keys=tmp_path / "keys", require_signature=True)
    with pytest.raises(ait.NotFound):
        ait.sign(out, keys=tmp_path / "keys", key="other", out=tmp_path / "x.ait")
    assert _core.keys(tmp_path / "keys", "revoke", "me")[0]["revoked"]


def test_onnx(tmp_path, images):
    ait.export_onnx(MODEL, tmp_path / "m.onnx", opset=20)
    again = ait.load(tmp_path / "m.onnx", backend="native")
    np.testing.assert_allclose(again(images[:3]), np.load(DIGITS / "expected.npz")["output"][:3], rtol=1e-4, atol=1e-4)
    with pytest.raises(ait.InvalidArgument, match="opset"):
        ait.export_onnx(MODEL, tmp_path / "m.onnx", opset=3)


def test_arrays_on_disk(tmp_path, images):
    _core.save_data(tmp_path / "a.npz", {"x": images, "n": np.arange(3)})
    loaded = _core.load_data(tmp_path / "a.npz")
    assert list(loaded) == ["x", "n"] and (loaded["x"].numpy() == images).all() and loaded["n"].tolist() == [0, 1, 2]
    with pytest.raises(ait.InvalidArgument, match="array 'x'"):
        _core.save_data(tmp_path / "b.npz", {"x": [1, 2]})


def test_lists():
    assert {"native", "eager", "reference"} <= {b["name"] for b in ait.backends() if b["available"]}
    assert len(ait.operators()) > 500 and ait.operators(missing_in=MODEL) == []
    assert json.loads(_core.machine())["cores"] > 0 and json.loads(_core.passes())["passes"]


# ---- guests -----------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("setting, loaded, settled, after", [(None, False, True, "1"), (None, True, False, None), ("0", True, True, "0"), ("1", False, True, "1")])
def test_telemetry(monkeypatch, setting, loaded, settled, after):
    """ONNX Runtime's reports over the network are off unless the user said otherwise; in a process that has it already, it is left alone."""
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    if setting is not None:
        monkeypatch.setenv("ORT_DISABLE_TELEMETRY", setting)
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    if loaded:
        monkeypatch.setitem(sys.modules, "onnxruntime", object())
    assert guests.telemetry_settled() is settled and os.environ.get("ORT_DISABLE_TELEMETRY") == after


def test_search_path(monkeypatch):
    monkeypatch.setenv("AIT_GUEST_PATH", "/a:/b")
    assert guests.search_path().startswith("/a:/b:") and "site-packages" in guests.search_path()


def test_example(tuned):
    """examples/python/run.py, which the README shows."""
    done = subprocess.run([sys.executable, ROOT / "examples" / "python" / "run.py", tuned[0]], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert done.returncode == 0 and done.stdout.strip() in [str(d) for d in range(10)], done.stdout + done.stderr


def test_rt_package(tuned, images):
    """The run-only package on the same file, and what it does not have."""
    code = f"""
import sys; import ait_rt as ait
assert 'ait' not in sys.modules
import numpy as np
m = ait.load({str(tuned[0])!r})
x = np.load({str(DIGITS / 'digits-test.npz')!r})['image'][:4]
assert np.allclose(m(x), np.load({str(DIGITS / 'expected.npz')!r})['output'][:4], rtol=1e-4, atol=1e-4)
r = m.report(); assert r.winner and r.winner in r.markdown() and str(r) == r.markdown()
try: r.html(); raise SystemExit('no error')
except ait.Unsupported as e: assert e.hint, e
try: ait.load({str(MODEL)!r}); raise SystemExit('no error')
except ait.InvalidModel as e: assert type(e).__module__ == 'ait_rt'
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert done.returncode == 0, done.stdout + done.stderr
