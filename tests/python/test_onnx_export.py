"""ait export against ONNX Runtime: modules are exported by torch, then by ait, and ONNX Runtime must give torch's answers at several sizes."""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.export import Dim

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
AIT = ROOT / "build" / "release" / "bin" / "ait"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.up = nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.ConvTranspose2d(8, 4, 3, 2, 1, 1)
        self.norm, self.head = nn.GroupNorm(2, 8), nn.Linear(4, 5)
        self.bn.running_mean.normal_()

    def forward(self, x):
        x = torch.nn.functional.gelu(self.bn(self.conv(x)))
        x = self.norm(torch.nn.functional.max_pool2d(x, 3, 2, 1, ceil_mode=True))
        x = torch.nn.functional.interpolate(self.up(x), scale_factor=2, mode="bilinear")
        x = torch.nn.functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
        return self.head(torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.norm = nn.Linear(16, 48), nn.LayerNorm(16)

    def forward(self, x, mask):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4).unbind(0)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(6, 5, 2, bidirectional=True, batch_first=True), nn.GRU(10, 4, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.gru(y)[0], h, c


class Semantics(nn.Module):
    """What ONNX and PyTorch see differently, or ONNX leaves open."""

    def forward(self, a, b, i):
        order, places = torch.sort(a, dim=1, descending=True, stable=True)
        return (a // b, torch.remainder(a, b), torch.fmod(a, b), i // 3, i % -3, i >> 1, torch.round(a), torch.sign(a), torch.amax(a, 1),
                torch.argmax(a, 1), order, places, torch.topk(a, 2, dim=1, largest=False)[0], torch.clamp(a, -1, 1), torch.relu(a),
                torch.maximum(a, b), torch.var(a, 1), torch.expm1(b * 1e-4), torch.log1p(b.abs() * 1e-4), torch.atan2(a, b),
                torch.scatter_add(torch.zeros_like(a), 1, i.abs() % 5, b), a[:, [2, 0, 0]], torch.cumsum(i, 1), i.to(torch.uint8) * 200,
                torch.roll(a, 2, 1), torch.flip(a, [1]), a.unfold(1, 2, 2))


class Loops(nn.Module):
    def forward(self, x):
        def step(carry, row):
            return carry * 0.5 + row, torch.tanh(carry + row)

        last, rows = torch._higher_order_ops.scan(step, torch.zeros_like(x[0]), x)
        picked = torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t - 1, (x,))
        return last, rows, picked


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.ones(3))

    def forward(self, x):
        self.seen.add_(x.sum(0))
        return x * self.seen


def convert(tmp_path, module, args, dynamic, *options):
    torch.export.save(torch.export.export(module.eval(), args, dynamic_shapes=dynamic), tmp_path / "m.pt2")
    subprocess.run([AIT, "export", tmp_path / "m.pt2", "-o", tmp_path / "m.onnx", *options], check=True)
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    return onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])


def compare(session, module, args, tolerance=2e-5):
    want = torch.utils._pytree.tree_leaves(module(*args))
    got = session.run(None, {i.name: a.numpy() for i, a in zip(session.get_inputs(), args)})
    assert len(want) == len(got)
    for k, (w, g) in enumerate(zip(want, got)):
        assert w.shape == g.shape, k
        np.testing.assert_allclose(g, w.detach().numpy(), rtol=tolerance, atol=tolerance, err_msg=f"output {k}")


CASES = {
    "net": (Net, lambda n: (torch.randn(n, 3, 20 + n, 23),), ({0: Dim.AUTO, 2: Dim.AUTO},), (2, 1, 5)),
    "attention": (Attention, lambda n: (torch.randn(2, n, 16), torch.arange(2 * n).reshape(2, n) % 3 != 0), ({1: Dim.AUTO}, {1: Dim.AUTO}), (7, 3)),
    "masked rows": (Attention, lambda n: (torch.randn(2, n, 16), torch.tensor([[False] * n, [True] * n])), ({1: Dim.AUTO}, {1: Dim.AUTO}), (4,)),
    "recurrent": (Recurrent, lambda n: (torch.randn(2, n, 6),), None, (7,)),
    "loops": (Loops, lambda n: (torch.randn(n, 3),), ({0: Dim.AUTO},), (5, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_answers(tmp_path, name):
    torch.manual_seed(1)
    make, inputs, dynamic, sizes = CASES[name]
    module = make()
    session = convert(tmp_path, module, inputs(sizes[0]), dynamic)
    for n in sizes:
        compare(session, module, inputs(n))


def test_semantics(tmp_path):
    nan, inf = float("nan"), float("inf")
    a = torch.tensor([[0.5, -1.5, nan, 2.5, inf], [-0.0, -7.0, 7.0, 7.0, -inf]])
    b = torch.tensor([[0.1, -0.4, 1.0, -2.0, 3.0], [2.0, 2.0, -2.0, -3.0, 1.0]])
    i = torch.tensor([[-7, 7, -1, 0, 5], [3, -3, 8, -8, 1]])
    compare(convert(tmp_path, Semantics(), (a, b, i), None), Semantics(), (a, b, i), 1e-6)


def test_state(tmp_path):
    session = convert(tmp_path, Counter(), (torch.ones(2, 3),), None)
    assert [i.name for i in session.get_inputs()] == ["x"] and [o.name for o in session.get_outputs()][1] == "next.seen"
    first, seen = session.run(None, {"x": np.ones((2, 3), np.float32)})
    second, _ = session.run(None, {"x": np.ones((2, 3), np.float32), "seen": seen})
    assert (first == 3).all() and (second == 5).all()


def test_equal_bytes_and_external_weights(tmp_path):
    convert(tmp_path, Net(), (torch.randn(2, 3, 20, 20),), None)
    first = (tmp_path / "m.onnx").read_bytes()
    subprocess.run([AIT, "export", tmp_path / "m.pt2", "-o", tmp_path / "n.onnx"], check=True)
    assert (tmp_path / "n.onnx").read_bytes() == first
    module = nn.Linear(64, 64)
    session = convert(tmp_path, module, (torch.randn(2, 64),), None, "--external-data", "--opset", "21")
    compare(session, module, (torch.randn(2, 64),))
    assert (tmp_path / "m.onnx.data").stat().st_size == 64 * 64 * 4
    assert onnx.load(str(tmp_path / "m.onnx"), load_external_data=False).opset_import[0].version == 21


def test_refusal(tmp_path):
    class Noise(nn.Module):
        def forward(self, x):
            return x + torch.rand_like(x)

    torch.export.save(torch.export.export(Noise(), (torch.ones(2),)), tmp_path / "m.pt2")
    r = subprocess.run([AIT, "export", tmp_path / "m.pt2", "-o", tmp_path / "m.onnx"], capture_output=True, text=True)
    assert r.returncode == 3 and "rand_like" in r.stderr and not (tmp_path / "m.onnx").exists()
