"""The wheels: what is in them, and that they work in fresh environments of every CPython that is here, without numpy and torch.

The libraries are those of build/release (targets ait_rt_wheel, all); `pip install ./python` builds them itself."""
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]

SCRIPT = """
import array, sys
import {package} as ait
assert not {{'numpy', 'torch'}} & set(sys.modules)
model = ait.load({model!r})
values = array.array('f', {values!r})
x = memoryview(values).cast('B').cast('f', (2, 1, 8, 8))
for _ in range(3):
    y = model(x)
assert y.shape == (2, 10) and y.dtype == 'float32', y
want = {want!r}
assert all(abs(a - b) < 1e-4 for r, w in zip(y.tolist(), want) for a, b in zip(r, w)), (y.tolist(), want)
try:
    model(array.array('d', [1.0]))
    raise SystemExit('no error')
except ait.InvalidArgument as error:
    assert 'float64' in error.message, error
print(ait.__version__, model.backend, model.target)
"""


def interpreter(version):
    """A CPython of that version that starts."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    for name in (f"python{version}", os.path.realpath(sys.executable), *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        path = shutil.which(name)
        if path:
            done = subprocess.run([path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
            if done.returncode == 0 and done.stdout.strip() == version:
                return path
    return None


HERE = [v for v in VERSIONS if interpreter(v)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    done = subprocess.run([sys.executable, ROOT / "tools" / "wheel", folder, "--prebuilt", BUILD], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A sealed model, two images, and PyTorch's answers."""
    import numpy as np

    folder = tmp_path_factory.mktemp("model")
    digits = ROOT / "tests" / "data" / "models" / "digits"
    images, answers = np.load(digits / "digits-test.npz")["image"][:2], np.load(digits / "expected.npz")["output"][:2]
    np.savez(folder / "d.npz", image=images)
    subprocess.run([BUILD / "bin" / "ait", "tune", digits / "digits.pt2", "-d", folder / "d.npz", "-o", folder / "d.ait", "--strategy", "first-wins",
                    "--backends", "native", "--budget", "2", "--record", "none", "-q"], check=True, stdout=subprocess.DEVNULL)
    return folder / "d.ait", images.ravel().tolist(), answers.tolist()


def test_the_line_that_starts_the_jit_is_in_the_wheel(wheels):
    names = zipfile.ZipFile(next(wheels.glob("ait-*.whl"))).namelist()
    assert "ait_jit.pth" in names and "ait/_jit_start.py" in names
    assert "ait_jit.pth" not in zipfile.ZipFile(next(wheels.glob("ait_rt-*.whl"))).namelist()


def test_there_are_pythons_to_test_with():
    assert HERE


@pytest.mark.parametrize("version", HERE)
def test_fresh_environment(wheels, tuned, version, tmp_path):
    model, values, want = tuned
    subprocess.run([interpreter(version), "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", *wheels.glob("*.whl")], check=True)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for package in ("ait", "ait_rt"):
        script = SCRIPT.format(package=package, model=str(model), values=values, want=want)
        done = subprocess.run([python, "-X", "dev", "-W", "error", "-c", script], capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
