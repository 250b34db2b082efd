"""The kinds of tests/data/kinds with other seeds: exported here and now, answered by PyTorch, run by the backends."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
AIT = ROOT / "build" / "release" / "bin" / "ait"
sys.path.insert(0, str(ROOT / "tests" / "data" / "kinds"))
import make  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    make.make(folder, seed=11)
    return folder


@pytest.mark.parametrize("options", [["--backend", "reference"], ["--backend", "reference", "--passes", "core"], ["--backend", "native"]], ids=" ".join)
def test_kinds(folder, options):
    done = subprocess.run([AIT, "verify", "--cases", folder, *options], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout.splitlines()[-1]
