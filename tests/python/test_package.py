"""The package ait, as a user meets it: arrays in and out, errors, threads, state, memory. Needs build/release/python (target ait_python)."""
import array
import asyncio
import copy
import dataclasses
import gc
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import time
import typing

import numpy as np
import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(os.environ.get("AIT_PYTHON_PACKAGE", ROOT / "build" / "release" / "python"))
sys.path.insert(0, str(PACKAGE))
import ait  # noqa: E402
import package_models  # noqa: E402

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("package")


@pytest.fixture(scope="module")
def add(folder):
    return package_models.add(folder, backend="native")


SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # freed memory stays with the process then


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-4)


# ---- import ---------------------------------------------------------------------------------------------------------------------------
def test_import_brings_neither_torch_nor_numpy():
    code = "import sys, ait; ait.load; ait.tune_file; assert not {'torch', 'numpy'} & set(sys.modules), 'imported'"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})


def test_every_public_name_is_there():
    for name in ait.__all__:
        assert getattr(ait, name) is not None, name
        assert name in dir(ait)
    with pytest.raises(AttributeError, match="nothing_such"):
        ait.nothing_such


# ---- kinds of arrays --------------------------------------------------------------------------------------------------------------------
def test_numpy_in_numpy_out(digits, images, expected):
    for _ in range(2):  # results are copied out the first time, written in place after
        answer = digits(images)
        assert type(answer) is np.ndarray and answer.flags.owndata
        close(answer, expected)


def test_torch_in_torch_out(digits, images, expected):
    x = torch.from_numpy(images)
    for tensor in (x, x, torch.nn.Parameter(x), x.clone().requires_grad_()):
        answer = digits(tensor)
        assert type(answer) is torch.Tensor and not answer.requires_grad and answer.shape == (450, 10)
        close(answer, expected)
    with torch.no_grad():
        answer.add_(1)  # the caller's own memory
    close(digits(x), expected)


def test_other_kinds_give_tensors(digits, images, expected):
    flat = memoryview(array.array("f", images.ravel().tolist())).cast("B").cast("f", images.shape)
    for x in (flat, digits(flat) and flat):
        answer = digits(x)
        assert type(answer) is ait.Tensor and answer.shape == (450, 10) and answer.dtype == "float32" and len(answer) == 450
        assert answer.nbytes == 18000 and answer.size == 4500 and answer.ndim == 2 and answer.strides == (10, 1)
        close(answer.numpy(), expected)
        close(answer.torch(), expected)
        close(np.from_dlpack(answer), expected)
        close(torch.from_dlpack(answer), expected)
        assert memoryview(answer).nbytes == 18000
        assert answer.tolist() == answer.numpy().tolist()
    assert "450, 10" in repr(answer)


class Producer:
    """DLPack, in the way of the version."""

    def __init__(self, tensor, versioned):
        self.tensor, self.versioned, self.asked = tensor, versioned, 0

    def __dlpack_device__(self):
        return (1, 0)


class OldProducer(Producer):
    def __dlpack__(self):
        self.asked += 1
        return self.tensor.__dlpack__()


class NewProducer(Producer):
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        assert max_version[0] >= 1
        self.asked += 1
        return self.tensor.__dlpack__(max_version=max_version)


@pytest.mark.parametrize("make", [OldProducer, NewProducer])
def test_dlpack_capsules(digits, images, expected, make):
    producer = make(torch.from_numpy(images), make is NewProducer)
    for _ in range(3):
        answer = digits(producer)
        assert type(answer) is ait.Tensor
        close(answer.numpy(), expected)
    assert producer.asked == 3


def test_tensor_goes_in_again(add):
    x = array.array("f", [1, 2, 3])
    s, half = add(x, x)
    assert s.tolist() == [3, 6, 9] and half.tolist() == [2, 4, 6]
    assert add(s, half)[0].tolist() == [7, 14, 21]


def test_returns(folder):
    x = np.ones(3, np.float32)
    assert type(package_models.add(folder, backend="native", returns="torch")(x, x)[0]) is torch.Tensor
    assert type(package_models.add(folder, backend="native", returns="ait")(x, x)[0]) is ait.Tensor
    assert type(package_models.add(folder, backend="native", returns="numpy")(torch.ones(3), x)[0]) is np.ndarray
    with pytest.raises(ValueError, match="returns"):
        package_models.add(folder, returns="jax")


NUMPY_DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_dtypes(folder, dtype):
    model = package_models.clone(folder, dtype)
    x = (np.arange(12).reshape(3, 4) % 7 * (1.5 if dtype.startswith(("f", "c")) else 1)).astype(dtype)
    for _ in range(2):
        y = model(x)
        assert y.dtype == x.dtype and (y == x).all()
        t = model(torch.from_numpy(x)) if dtype not in ("uint16", "uint32", "uint64") or hasattr(torch, dtype) else None
        assert t is None or (t.numpy() == x).all() and t.dtype == getattr(torch, dtype)
        assert np.asarray(model(memoryview(x)) if x.dtype.char not in "FD" else model(x)).tobytes() == x.tobytes()
    assert model(x[:0]).shape == (0, 4)
    assert model(x[:, :0]).shape == (3, 0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_small_floats(folder, dtype):
    model = package_models.clone(folder, dtype)
    x = torch.tensor([[0.5, 1.0, 2.0], [4.0, 8.0, 0.25]]).to(getattr(torch, dtype))
    for _ in range(2):
        y = model(x)
        assert y.dtype == x.dtype and (y.float() == x.float()).all()
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = x.float().numpy().astype(getattr(ml_dtypes, dtype))
    for _ in range(2):
        b = model(a)
        assert b.dtype == a.dtype and (b.astype("f4") == x.float().numpy()).all()
    assert (model(a[:, ::2]).astype("f4") == x.float().numpy()[:, ::2]).all()
    kept = package_models.clone(folder, dtype, returns="ait")(a)
    assert kept.dtype == dtype and kept.tolist() == x.float().tolist() and (kept.torch().float() == x.float()).all()
    with pytest.raises(BufferError, match=dtype):
        memoryview(kept)


def test_small_floats_without_ml_dtypes(folder):
    """NumPy alone gets float32, which holds them without loss."""
    code = f"""
import sys; sys.modules['ml_dtypes'] = None
import ait, numpy, torch
m = ait.load({str(folder / 'clone-bfloat16.txt')!r}, returns='numpy')
y = m(torch.tensor([[0.5, 3.0]]).bfloat16()); y = m(torch.tensor([[0.5, 3.0]]).bfloat16())
assert y.dtype == numpy.float32 and y.tolist() == [[0.5, 3.0]], y
"""
    package_models.clone(folder, "bfloat16")
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})


# ---- memory --------------------------------------------------------------------------------------------------------------------------------
def test_any_strides(folder):
    model = package_models.clone(folder, "float32")
    base = np.arange(60, dtype=np.float32).reshape(6, 10)
    views = [base.T, base[::-1], base[:, ::-3], base[1::2, 3:7], np.broadcast_to(base[0], (4, 10)), np.asfortranarray(base), base[::2][::-1].T]
    for view in views:
        for _ in range(2):
            np.testing.assert_array_equal(model(view), view)
    for view in (torch.from_numpy(base).T, torch.from_numpy(base)[:, 1::4], torch.from_numpy(base)[0].expand(3, 10)):
        assert torch.equal(model(view), view)


def test_memory_that_is_not_aligned(folder):
    model = package_models.clone(folder, "float32")
    raw = np.zeros(4 * 12 + 1, np.uint8)
    x = raw[1:].view(np.float32).reshape(3, 4)
    x[:] = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(model(x), x)
    np.testing.assert_array_equal(model(x[::-1, ::2]), x[::-1, ::2])


@pytest.mark.skipif(SANITIZED, reason="measures memory")
@pytest.mark.parametrize("kind", ["numpy.asarray", "torch.from_numpy", "memoryview"])
def test_neither_inputs_nor_results_are_copied(folder, kind):
    """64 MB in and out: at its peak the process holds two such arrays, and no third."""
    text = ('graph "big" core producer "test"\nsymbol s0 [1, 4096] hint 4 backed\ninput %x: float32[s0, 4096] user 0 "x"\n'
            '%y: float32[s0, 4096] = relu(%x)\noutput user 0 "y" = %y\n')
    (folder / "big.txt").write_text(text)
    code = f"""
import ait, numpy, resource, sys
if {kind!r}.startswith("torch"): import torch
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
model = ait.load({str(folder / "big.txt")!r}, backend="native")
x = numpy.ones((4096, 4096), numpy.float32)
before = peak()
model({kind}(x[:1]))
model({kind}(x))   # the first run of a size is copied out of the session's memory
first = peak()
for _ in range(3):
    y = model({kind}(x))
print(before, first, peak(), float(numpy.asarray(y)[0, 0]))
assert first - before < 64 * 2 + 24 and peak() - first < 64 + 24
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})


def test_results_are_the_callers_own(add):
    kept = []
    for i in range(200):
        x = np.full(1000, i, np.float32)
        kept.append((i, add(x, x), add(torch.from_numpy(x), x), add(memoryview(x), x)))
    for i, *results in kept:
        for total, half in results:
            assert (np.asarray(total) == 3 * i).all() and (np.asarray(half) == 2 * i).all()


def test_results_outlive_the_model(folder):
    model = package_models.add(folder, backend="native")
    results = [model(k(np.ones(500, np.float32)), np.ones(500, np.float32))[0] for k in (np.asarray, torch.from_numpy, memoryview)]
    view = np.asarray(results[2])
    del model, results[2]
    gc.collect()
    for r in (*results, view):
        assert (np.asarray(r) == 3).all()


def test_read_only_inputs(add):
    x = np.ones(4, np.float32)
    x.flags.writeable = False
    assert add(x, b"\0\0\x80\x3f" * 4 and x)[0].tolist() == [3] * 4


def test_no_leaks(digits, images, add):
    """10,000 calls, good and bad: references and memory are what they were."""
    x, t = images[:2].copy(), torch.from_numpy(images[:2].copy())
    m = memoryview(images[:2].copy())
    bad = np.zeros((2, 3), np.float32)

    def calls(n):
        for _ in range(n):
            digits(x), digits(t), digits(m), digits(image=x)
            for wrong in (bad, [1], x.astype("f8")):
                try:
                    digits(wrong)
                except ait.InvalidArgument:
                    pass

    calls(300)
    gc.collect()
    resident = lambda: int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    objects, memory = [sys.getrefcount(o) for o in (x, t, m, bad, None, np.dtype("f4"))], resident()
    calls(1500)
    gc.collect()
    after = [sys.getrefcount(o) for o in (x, t, m, bad, None, np.dtype("f4"))]
    assert all(abs(a - b) < 50 for a, b in zip(after, objects)), (objects, after)
    assert SANITIZED or resident() - memory < 3 << 20


def test_torch_subclasses(folder):
    """Read through DLPack, in a process in which no plain tensor was seen."""
    package_models.add(folder)
    code = f"""
import ait, torch
class Sub(torch.Tensor): pass
m = ait.load({str(folder / "add.txt")!r}, backend="native")
x = torch.ones(3).as_subclass(Sub)
for v in (x, x.clone().requires_grad_(), torch.nn.Parameter(x)):
    for _ in range(2):
        y = m(v, v)[0]
        assert type(y) is torch.Tensor and y.tolist() == [3, 3, 3], y
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})


def test_copies_and_pickles(folder, counter):
    one = np.ones(4, np.float32)
    model = ait.load(counter, returns="ait")
    model(one)
    for again in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(again(one)) is ait.Tensor and again.path == str(counter)
    assert model(one).tolist() == [2] * 4 and again(one).tolist() == [2] * 4
    with pytest.raises(TypeError, match="model.session"):
        pickle.dumps(model.session())


# ---- arguments and errors -----------------------------------------------------------------------------------------------------------------------
def test_names(add):
    x, y = np.ones(3, np.float32), np.full(3, 5, np.float32)
    for answer in (add(x, y), add(x, y=y), add(y=y, x=x)):
        assert answer[0].tolist() == [11] * 3
    assert add.run({"x": x, "y": y})["half"].tolist() == [6] * 3


def test_errors(digits, images):
    x = images[:2]
    table = [
        (lambda: digits(), ait.InvalidArgument, "input 'image' .* is missing"),
        (lambda: digits(x, x), ait.InvalidArgument, "2 inputs given, the model takes 1"),
        (lambda: digits(x, image=x), ait.InvalidArgument, "by position and by name"),
        (lambda: digits(picture=x), ait.InvalidArgument, "no input 'picture'\n.*it takes image"),
        (lambda: digits([[1.0]]), ait.InvalidArgument, "input 'image' is list, must be an array"),
        (lambda: digits(None), ait.InvalidArgument, "input 'image' is NoneType"),
        (lambda: digits(x.astype(np.float64)), ait.InvalidArgument, "dtype is float64, must be float32"),
        (lambda: digits(x.astype(">f4")), ait.Unsupported, "input 'image': .*'>f'.*byte order"),
        (lambda: digits(x.astype("U1")), ait.Unsupported, "input 'image'"),
        (lambda: digits(np.array([object()])), ait.Unsupported, "input 'image'"),
        (lambda: digits(x[0]), ait.InvalidArgument, "has 3 dimensions, must have 4"),
        (lambda: digits(x[:, :, :7]), ait.InvalidArgument, "input 'image'.*7"),
        (lambda: digits(torch.empty(2, 1, 8, 8, device="meta")), ait.InvalidArgument, "input 'image'"),
        (lambda: digits(torch.ones(2, 2).to_sparse()), ait.InvalidArgument, "input 'image'"),
        (lambda: ait.load("no/such.ait"), ait.NotFound, "no/such.ait"),
        (lambda: ait.load(DIGITS / "digits.json"), ait.InvalidModel, "digits.json"),
        (lambda: ait.load(DIGITS / "digits.pt2", backend="nope"), ait.InvalidArgument, "'nope'"),
    ]
    for call, kind, text in table:
        with pytest.raises(kind, match="(?s)" + text) as caught:
            call()
        assert isinstance(caught.value, ait.Error) and caught.value.message and caught.value.code and caught.value.number > 0
    with pytest.raises(FileNotFoundError):
        ait.load("no/such.ait")
    with pytest.raises(TypeError, match="colour"):
        ait.load(DIGITS / "digits.pt2", colour="red")
    with pytest.raises(ValueError, match="threads"):
        ait.load(DIGITS / "digits.pt2", threads=-1)


def test_error_objects():
    with pytest.raises(ait.NotFound) as caught:
        ait.load("no/such.ait")
    error = caught.value
    assert (error.code, error.exit_code) == ("not-found", 3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ait.NotFound and again.message == error.message
    own = ait.Unsupported("a thing\n  hint: do another")
    assert own.message == "a thing" and own.hint == "do another" and ait.Error("x").hint is None


def test_lazy_views_of_torch(folder):
    model = package_models.clone(folder, "complex64")
    x = torch.tensor([[1 + 2j, 3 - 1j]])
    assert torch.equal(model(x), x)
    with pytest.raises(ait.InvalidArgument, match="conjugate"):
        model(x.conj())
    assert torch.equal(model(x.conj().resolve_conj()), x.conj())
    real = package_models.clone(folder, "float32")
    with pytest.raises(ait.InvalidArgument, match="negative"):
        real(x.conj().imag)


def test_scalar_inputs(folder):
    class Scaled(torch.nn.Module):
        def forward(self, x, n: int, flag: bool = True, text: str = "a"):
            return (x * n if flag else x), n

    path = folder / "scaled.pt2"
    torch.export.save(torch.export.export(Scaled(), (torch.ones(3), 2)), path)
    model = ait.load(path)
    kinds = {p.name: (p.kind, p.baked) for p in model.inputs}
    assert kinds["n"] == ("int", True)
    y, n = model(torch.ones(3))  # what export fixed may be left out
    assert y.tolist() == [2, 2, 2] and n == 2
    assert model(torch.ones(3), 2)[0].tolist() == [2, 2, 2]
    with pytest.raises(ait.InvalidArgument, match="'n'"):
        model(torch.ones(3), 3)
    with pytest.raises(ait.InvalidArgument, match="input 'n' is str, must be an int"):
        model(torch.ones(3), "2")
    assert list(inspect.signature(model).parameters) == [p.name for p in model.inputs]


def test_written_inputs(folder):
    class Fills(torch.nn.Module):
        def forward(self, x):
            x.mul_(2)
            return x + 1

    path = folder / "fills.pt2"
    torch.export.save(torch.export.export(Fills(), (torch.ones(3),)), path)
    model = ait.load(path)
    assert model.inputs[0].written
    x = np.ones(3, np.float32)
    assert model(x).tolist() == [3, 3, 3] and x.tolist() == [2, 2, 2]
    assert model(x).tolist() == [5, 5, 5] and x.tolist() == [4, 4, 4]
    x.flags.writeable = False
    with pytest.raises(ait.InvalidArgument, match="read only"):
        model(x)
    assert x.tolist() == [4, 4, 4]


def test_sizes_that_depend_on_data(folder):
    class Picks(torch.nn.Module):
        def forward(self, x):
            return x[x > 0], x + 1

    path = folder / "picks.pt2"
    torch.export.save(torch.export.export(Picks(), (torch.tensor([1.0, -1.0, 2.0]),)), path)
    model = ait.load(path)
    for values in ([1.0, -1.0, 2.0], [-1.0, -1.0, -1.0], [1.0, 2.0, 3.0], [1.0, -1.0, 2.0]):
        x = torch.tensor(values)
        picked, plus = model(x)
        assert torch.equal(picked, x[x > 0]) and torch.equal(plus, x + 1)


# ---- structures -------------------------------------------------------------------------------------------------------------------------------
@dataclasses.dataclass
class Pair:
    total: typing.Any
    parts: typing.Any


@pytest.fixture(scope="module")
def nested(folder):
    torch.export.register_dataclass(Pair, serialized_type_name=f"{__name__}.Pair")

    class Nested(torch.nn.Module):
        def forward(self, x, pair, options=None, *, scale=None):
            return {"s": x + pair[0] * 2, "p": (pair[1] - 1, [options["k"] * 3, None]), "n": 5, "d": Pair(x * 4, [x])}

    args = (torch.ones(2), (torch.ones(2), torch.ones(2)), {"k": torch.ones(2)})
    torch.export.save(torch.export.export(Nested(), args), folder / "nested.pt2")
    return folder / "nested.pt2"


def check_nested(model):
    x, a, b, k = (np.full(2, v, np.float32) for v in (1, 2, 3, 4))
    for result in (model(x, (a, b), {"k": k}), model(x, [a, b], options={"k": k}), model(options={"k": k}, pair=(a, b), x=x)):
        assert list(result) == ["s", "p", "n", "d"]
        assert result["s"].tolist() == [5, 5] and result["p"][0].tolist() == [2, 2] and result["p"][1][0].tolist() == [12, 12]
        assert result["p"][1][1] is None and result["n"] == 5 and type(result["p"]) is tuple and type(result["p"][1]) is list
        assert type(result["d"]) is Pair and result["d"].total.tolist() == [4, 4] and result["d"].parts[0].tolist() == [1, 1]
    flat = model.run({"x": x, "pair_0": a, "pair_1": b, "options_k": k})
    assert flat["s"].tolist() == [5, 5]
    assert model.session()(x, (a, b), {"k": k})["s"].tolist() == [5, 5]
    assert list(inspect.signature(model).parameters)[:3] == ["x", "pair", "options"]
    table = [
        (lambda: model(x, (a, b)), "'options_k'.*is missing"),
        (lambda: model(x, (a, b, k), {"k": k}), "'pair': is tuple of 3, must be a list or tuple of 2"),
        (lambda: model(x, a, {"k": k}), "'pair': is ndarray"),
        (lambda: model(x, (a, b), {"q": k}), "'options': has 'q'; the model takes 'k'"),
        (lambda: model(x, (a, b), k), "'options': is ndarray, must be a mapping"),
        (lambda: model(x, (a, b), {"k": k}, wrong=1), "no argument 'wrong'"),
        (lambda: model(x, (a, b), {"k": k}, x=x), "by position and by name"),
        (lambda: model(x, (a, 1), {"k": k}), "input 'pair_1' is int"),
    ]
    for call, text in table:
        with pytest.raises(ait.InvalidArgument, match=text):
            call()


def test_structures_of_a_program(nested):
    check_nested(ait.load(nested))


def test_structures_of_a_tuned_file(nested, folder):
    ones = torch.ones(2)
    for data in ((ones, (ones, ones), {"k": ones}), {"x": ones, "pair_0": ones, "pair_1": ones, "options_k": ones}):
        ait.tune_file(nested, folder / "nested.ait", [data], backends=["native"], strategy="first-wins", budget=1)
        check_nested(ait.load(folder / "nested.ait"))


def test_damaged_structures():
    from ait._call import Call

    for damaged in ({}, {"version": 2, "in": ["t"], "out": ["t"]}, {"version": 1, "in": ["tuple", [["t"], ["t"]]], "out": ["t"]}, {"version": 1, "in": 5, "out": 6}):
        with pytest.raises(ait.InvalidModel):
            Call(damaged)


# ---- state -------------------------------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def counter(folder):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x):
            self.total.add_(x)
            return self.total.clone()

    path = folder / "counter.pt2"
    torch.export.save(torch.export.export(Counter(), (torch.zeros(4),)), path)
    return path


def test_state(counter):
    model = ait.load(counter)
    assert model.states == ("total",) and model.sessions == 1
    one = np.ones(4, np.float32)
    assert [model(one)[0] for _ in range(3)] == [1, 2, 3]
    session = model.session()
    assert [session(one)[0] for _ in range(2)] == [1, 2] and model(one)[0] == 4
    assert session.state("total").tolist() == [2] * 4
    session.reset()
    assert session(one)[0] == 1 and session.nbytes >= 0 and session.backend == model.backend and session.model is model
    with pytest.raises(ait.NotFound, match="nothing"):
        session.state("nothing")


def test_state_under_threads(counter):
    """Calls on one timeline take turns: none is lost."""
    model = ait.load(counter)
    one = np.ones(4, np.float32)

    def work():
        for _ in range(250):
            model(one)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert model(one).tolist() == [1001] * 4


# ---- threads, asyncio, forks ----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("threads", [1, 2])
def test_eight_threads(images, expected, threads):
    model = ait.load(DIGITS / "digits.pt2", backend="native", threads=threads)
    faults = []

    def work(seed):
        order = np.random.default_rng(seed)
        for i in range(1000):
            first, n = int(order.integers(0, 440)), int(order.integers(1, 9))
            x = images[first:first + n]
            y = model(x) if i % 3 else model(torch.from_numpy(x)).numpy()
            if not np.allclose(y, expected[first:first + n], rtol=1e-4, atol=1e-4):
                faults.append((seed, i))

    pool = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in pool], [t.join() for t in pool]
    assert not faults
    assert model.sessions >= 1


def test_the_gil_is_released(folder):
    """Another thread goes on while a call runs."""
    text = ('graph "slow" core producer "test"\ninput %x: float32[700, 700] user 0 "x"\n%a: float32[700, 700] = matmul(%x, %x)\n'
            '%b: float32[700, 700] = matmul(%a, %x)\noutput user 0 "b" = %b\n')
    model = package_models.text_model(folder, text, "slow", backend="reference")
    ticks, done = 0, threading.Event()
    thread = threading.Thread(target=lambda: (model(np.zeros((700, 700), np.float32)), done.set()))
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        ticks += 1
    thread.join()
    assert ticks > 3


def test_asyncio(add):
    async def main():
        x = [np.full(8, i, np.float32) for i in range(20)]
        answers = await asyncio.gather(*(add.acall(a, a) for a in x))
        return [float(a[0][0]) for a in answers]

    assert asyncio.run(main()) == [3.0 * i for i in range(20)]


def test_fork(digits, images, expected):
    """In a child the sessions' threads are gone: fresh ones are made."""
    model = ait.load(DIGITS / "digits.pt2", backend="native", threads=2)
    close(model(images), expected)
    child = os.fork()
    if child == 0:
        ok = np.allclose(model(images), expected, rtol=1e-4, atol=1e-4)
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    close(model(images), expected)


# ---- what a model says ------------------------------------------------------------------------------------------------------------------------------
def test_description(digits):
    assert str(inspect.signature(digits)).startswith("(image: 'float32 [")
    assert "image: float32" in digits.__doc__ and "output: float32" in repr(digits)
    port = digits.inputs[0]
    assert (port.name, port.kind, port.dtype, port.baked) == ("image", "tensor", "float32", False)
    assert [str(d) for d in port.shape[1:]] == ["1", "8", "8"] and (port.shape[0].min, port.shape[0].max) == (1, 1024)
    assert digits.backend == "native" and digits.reason == "" and digits.target and digits.manifest == {}
    assert digits.signed["state"] == "unsigned" and digits.plans[0]["runs"]
    assert pathlib.Path(digits.path).name == "digits.pt2"
    assert inspect.getdoc(ait.Model).startswith("A loaded model")
    with pytest.raises(ait.NotFound):
        digits.report()


def test_profile(digits, images):
    steps = digits.profile(images[:4], runs=3)
    assert steps and {"node", "op", "module", "kernel", "seconds", "calls", "portable"} <= set(steps[0])
    assert sum(s["seconds"] for s in steps) > 0
