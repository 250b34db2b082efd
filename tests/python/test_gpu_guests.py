"""How the guests use TensorRT and Torch-TensorRT, on stand-ins that follow their documentation (fake_gpu.py): there is no GPU here."""
import os
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "python")))
import ait  # noqa: E402
import fake_gpu  # noqa: E402
from ait import _guests  # noqa: E402
from torch import nn  # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = nn.Linear(8, 4)

    def forward(self, x, mask, *, shift):
        return self.layer(x) + shift, (mask.to(torch.int64) + 1, self.layer(x).relu())


class Rows(nn.Module):
    def forward(self, x):
        return x.nonzero()


def program(net, *args, **kwargs):
    rows = torch.export.Dim("rows", min=1, max=64)
    sizes = {"x": {0: rows}, "mask": {0: rows}, "shift": None}
    return torch.export.export(net, args, kwargs, dynamic_shapes=sizes)


@pytest.fixture
def exported():
    net = Net().eval()
    sample = torch.randn(3, 8), torch.tensor([[True], [False], [True]]), torch.randn(4)
    return net, program(net, sample[0], sample[1], shift=sample[2]), sample


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(_guests, "_GPU", "cpu")
    with fake_gpu.stream(torch, monkeypatch):
        yield


def check(guest, net):
    for rows in (3, 1, 12):
        x, mask, shift = torch.randn(rows, 8), torch.arange(rows)[:, None] % 2 == 0, torch.randn(4)
        got = guest(x.T.contiguous().T, mask, shift)
        with torch.no_grad():
            y, (m, r) = net(x, mask, shift=shift)
        assert [t.dtype for t in got] == [torch.float32, torch.int64, torch.float32]
        for a, b in zip(got, (y, m, r)):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_torch_tensorrt(exported, monkeypatch):
    net, ep, sample = exported
    seen = {}
    monkeypatch.setitem(sys.modules, "torch_tensorrt", fake_gpu.torch_tensorrt(seen))
    guest = _guests.TorchTensorRT()
    guest.build(ep, [sample])
    assert len(seen["args"]) == 2 and list(seen["kwargs"]) == ["shift"]
    check(guest, net)


def test_tensorrt(exported, monkeypatch):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    net, ep, sample = exported
    monkeypatch.setitem(sys.modules, "tensorrt", fake_gpu.tensorrt())
    guest = _guests.TensorRT()
    guest.build(ep, [sample])
    check(guest, net)
    with pytest.raises(ait.Unsupported, match="outside those that the engine was built for"):
        guest(torch.randn(13, 8), torch.ones(13, 1, dtype=torch.bool), torch.randn(4))
    refused = torch.export.export(Rows(), (torch.randn(3, 8),))
    with pytest.raises(ait.Unsupported, match="does not take the model: no importer for NonZero"):
        _guests.TensorRT().build(refused, [(torch.randn(3, 8),)])


@pytest.mark.parametrize("cls", [_guests.TorchTensorRT, _guests.TensorRT])
def test_without_a_gpu_or_the_package_it_says_so(cls, monkeypatch):
    from ait import backend

    with pytest.raises(ait.Unavailable):
        cls.probe()
    monkeypatch.setattr(backend, "installed", lambda: {p: "1.0" for p in cls.packages})
    if not os.path.exists("/dev/nvidia0"):
        with pytest.raises(ait.Unavailable, match="no NVIDIA GPU"):
            cls.probe()
