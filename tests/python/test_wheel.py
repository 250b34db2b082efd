"""The wheels: what is in them, and that they work in fresh environments of every CPython that is here, without numpy and torch.

The libraries are those of build/release (targets ait_rt_wheel, all); `pip install ./python` builds them itself."""
import array
import ctypes
import hashlib
import json
import os
import pathlib
import random
import shutil
import struct
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
    run_only(python, model, values, want, environment, tmp_path)


def safetensors(path, name, values, shape):
    header = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * len(values)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + array.array("f", values).tobytes())


def run_only(python, model, values, want, environment, folder):
    """What a machine that only serves does from a shell, with neither numpy nor torch."""
    def ait_rt(*arguments):
        return subprocess.run([python, "-m", "ait_rt", model, *arguments], capture_output=True, text=True, env=environment, cwd=folder)

    shown = ait_rt()
    assert shown.returncode == 0 and "image: float32" in shown.stdout and "output: float32" in shown.stdout, shown.stdout + shown.stderr
    safetensors(folder / "in.safetensors", "image", values, [2, 1, 8, 8])
    done = ait_rt("-i", "in.safetensors", "-o", "out.npz")
    assert done.returncode == 0 and "output: float32 [2, 10]" in done.stdout, done.stdout + done.stderr
    import numpy as np

    assert np.abs(np.load(folder / "out.npz")["output"] - np.array(want)).max() < 1e-4
    refused = ait_rt("-i", "out.npz")
    assert refused.returncode == 4 and "NumPy" in refused.stderr and "hint:" in refused.stderr and "Traceback" not in refused.stderr
    missing = ait_rt("-i", "none.safetensors")
    assert missing.returncode not in (0, 1) and "none.safetensors" in missing.stderr and "Traceback" not in missing.stderr


# ---- what only the wheel of ait-rt links with --------------------------------------------------------------------------------------------
L = 2**252 + 27742317777372353535851937790883648493  # order of Ed25519's group (RFC 8032, section 5.1)


def crypto(folder, name, library):
    out = folder / f"{name}.so"
    built = subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-I{ROOT}/src", ROOT / "src" / "artifact" / f"crypto_{name}.c", f"-l{library}", "-o", out],
                           capture_output=True, text=True)
    if built.returncode:
        pytest.skip(built.stderr[:200])
    return ctypes.CDLL(str(out))


def test_both_libraries_of_cryptography_agree(tmp_path):
    both = [crypto(tmp_path, "openssl", "crypto"), crypto(tmp_path, "sodium", "sodium")]
    for each in both:
        for function in ("ait_crypto_sha256", "ait_ed25519_public_key", "ait_ed25519_sign", "ait_ed25519_verify"):
            getattr(each, function).restype = ctypes.c_bool

    def verify(each, key, signature, message):
        right = ctypes.c_bool()
        assert each.ait_ed25519_verify(key, signature, message, ctypes.c_size_t(len(message)), ctypes.byref(right))
        return right.value

    draw = random.Random(11)
    for size in (0, 1, 63, 64, 1000, 70000):
        seed, message = draw.randbytes(32), draw.randbytes(size)
        made = []
        for each in both:
            digest, key, signature = (ctypes.create_string_buffer(n) for n in (32, 32, 64))
            assert each.ait_crypto_sha256(message, ctypes.c_size_t(size), digest) and digest.raw == hashlib.sha256(message).digest()
            assert each.ait_ed25519_public_key(seed, key) and each.ait_ed25519_sign(seed, message, ctypes.c_size_t(size), signature)
            made.append((key.raw, signature.raw))
        assert made[0] == made[1]
        key, signature = made[0]
        high = signature[:32] + (int.from_bytes(signature[32:], "little") + L).to_bytes(32, "little")  # the same number, written otherwise
        flipped = [signature[:i] + bytes([signature[i] ^ 1 << draw.randrange(8)]) + signature[i + 1:] for i in (0, 31, 32, 63)]
        for each in both:
            assert verify(each, key, signature, message)
            assert not any(verify(each, key, s, message) for s in [high, *flipped]) and not verify(each, key, signature, message + b"x")


def test_signed_files_in_the_run_only_package(wheels, tuned, tmp_path):
    model, _, _ = tuned
    keys, signed = tmp_path / "keys", tmp_path / "signed.ait"
    subprocess.run([BUILD / "bin" / "ait", "key", "new", "me", "--keys", keys], check=True, capture_output=True)
    subprocess.run([BUILD / "bin" / "ait", "sign", model, "--key", "me", "--keys", keys, "-o", signed], check=True, capture_output=True)
    zipfile.ZipFile(next(wheels.glob("ait_rt-*.whl"))).extractall(tmp_path / "package")
    script = f"""
import ait_rt
m = ait_rt.load({str(signed)!r}, keys={str(keys)!r}, require_signature=True)
assert m.signed["state"] == "trusted", m.signed
try:
    ait_rt.load({str(model)!r}, keys={str(keys)!r}, require_signature=True)
    raise SystemExit("an unsigned file was taken")
except ait_rt.Error:
    pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "package")})
    assert done.returncode == 0, done.stderr
