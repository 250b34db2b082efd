"""The package ait, as a user meets it: load, run, errors. Needs build/release/python (target ait_python)."""
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "release" / "python"
sys.path.insert(0, str(PACKAGE))
import ait  # noqa: E402

DIGITS = ROOT / "tests" / "data" / "models" / "digits"


@pytest.fixture(scope="module")
def digits():
    return ait.load(DIGITS / "digits.pt2", backend="native")


@pytest.fixture(scope="module")
def images():
    return np.load(DIGITS / "digits-test.npz")["image"]


@pytest.fixture(scope="module")
def expected():
    return np.load(DIGITS / "expected.npz")["output"]


def test_import_brings_neither_torch_nor_numpy():
    code = "import sys, ait; ait.load; ait.tune_file; assert not {'torch', 'numpy'} & set(sys.modules), 'imported'"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(PACKAGE)})


def test_numpy_in_numpy_out(digits, images, expected):
    for _ in range(2):  # results are copied out the first time, written in place after
        answer = digits(images)
        assert type(answer) is np.ndarray
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-4)
