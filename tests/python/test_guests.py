"""Other people's engines as backends: right answers, a place in the contest, and what happens where they are missing."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
AIT = ROOT / "build/release/bin/ait"
DIGITS = ROOT / "tests/data/models/digits"
PACKAGES = next(p for p in sys.path if p.endswith("site-packages"))
WITH = {**os.environ, "AIT_GUEST_PATH": PACKAGES}
WITHOUT = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "AIT_GUEST_PATH")} | {"HOME": "/nonexistent"}


def run(*args, env=WITH):
    return subprocess.run([AIT, *map(str, args)], env=env, capture_output=True, text=True, timeout=300)


def here(name):
    backends = json.loads(run("backends", "--json").stdout)["backends"]
    return next(b for b in backends if b["name"] == name)


@pytest.fixture(params=["onnxruntime", "openvino"])
def engine(request):
    found = here(request.param)
    if not found["available"]:
        pytest.skip(found["detail"])
    return request.param


def test_right(engine):
    for rows in ("1", "7", "64"):
        r = run("run", DIGITS / "digits.pt2", "--backend", engine, "--passes", "core", "-i", DIGITS / "digits-test.npz", "--labels", "label", "--batch", rows)
        assert "447 of 450" in r.stdout, r.stdout + r.stderr


def test_contest_and_file(engine, tmp_path):
    out, report = tmp_path / "m.ait", tmp_path / "report.json"
    r = run("tune", DIGITS / "digits.pt2", "--data", DIGITS / "digits-test.npz", "--batch", "16", "--budget", "10s", "--record", "none", "--strategy",
            "one-backend", "--backends", engine, "-o", out, f"--json={report}")
    assert r.returncode == 0, r.stderr
    document = json.loads(report.read_text())
    mine = [c for c in document["candidates"] if c["backend"] == engine]
    assert mine and all(c["outcome"] == "valid" for c in mine), mine
    assert document["winner"].startswith(engine)
    r = run("run", out, "-i", DIGITS / "digits-test.npz", "--labels", "label")
    assert "447 of 450" in r.stdout and engine in r.stdout, r.stdout + r.stderr
    # a machine that lacks the engine runs the portable path, with the same answers
    r = run("run", out, "-i", DIGITS / "digits-test.npz", "--labels", "label", env=WITHOUT)
    assert "447 of 450" in r.stdout and f"on {engine}" not in r.stdout, r.stdout + r.stderr


def test_missing_is_said(tmp_path):
    found = json.loads(run("backends", "--json", env=WITHOUT).stdout)["backends"]
    for name in ("onnxruntime", "openvino"):
        b = next(b for b in found if b["name"] == name)
        if b["available"]:
            pytest.skip(f"{name} is installed system-wide")
        assert "site-packages" in b["detail"], b
    r = run("tune", DIGITS / "digits.pt2", "--data", DIGITS / "digits-test.npz", "--batch", "4", "--budget", "2s", "--record", "none", "-o",
            tmp_path / "m.ait", "--json", env=WITHOUT)
    assert r.returncode == 0, r.stderr
    skipped = [c for c in json.loads(r.stdout)["candidates"] if c["backend"] == "onnxruntime"]
    assert len(skipped) == 1 and skipped[0]["outcome"] == "skipped" and "not here" in skipped[0]["reason"]
