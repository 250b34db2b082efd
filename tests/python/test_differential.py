"""ait against PyTorch: small modules are exported here and now, and every backend must give torch's answers at several sizes."""
import json
import pathlib
import subprocess

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

ROOT = pathlib.Path(__file__).resolve().parents[2]
AIT = ROOT / "build" / "release" / "bin" / "ait"


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1, stride=2, bias=False), nn.BatchNorm2d(16)
        self.depth = nn.Conv2d(16, 16, 5, padding=2, groups=16)
        self.point, self.bn2 = nn.Conv2d(16, 16, 1), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 7)
        for bn in (self.bn1, self.bn2):
            bn.running_mean.normal_()
            bn.running_var.uniform_(0.5, 2)

    def forward(self, x):
        x = torch.relu_(self.bn1(self.conv1(x)))
        x = torch.nn.functional.hardswish(self.bn2(self.point(self.depth(x))) + x)
        return self.head(torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Encoder(nn.Module):
    """Attention written out, with an additive padding mask from integers; GELU by erf; RMS norm by hand."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.embed, self.heads = nn.Embedding(50, dim), heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.norm, self.scale = nn.LayerNorm(dim), nn.Parameter(torch.randn(dim))

    def rms(self, x):
        return self.scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def forward(self, ids, mask):
        x = self.embed(ids)
        b, s, d = x.shape
        q, k, v = (t.view(b, s, self.heads, d // self.heads).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5
        scores = scores + (1.0 - mask[:, None, None, :].float()) * -10000.0
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, d))
        h = self.up(self.rms(x))
        return x + self.down(h * 0.5 * (1.0 + torch.erf(h / 1.4142135623730951)))


class Causal(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(6, 9, num_layers=2, bidirectional=True, batch_first=True), nn.GRU(18, 5, batch_first=True)

    def forward(self, x):
        y, (h, _) = self.lstm(x)
        return self.gru(y)[0], h


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        y = x.clone()
        y[:, 1:3] *= 2
        y[:, 0].add_(x[:, 3])
        self.seen += y.sum(0)
        return y.sigmoid_() + self.seen


class Shapes(nn.Module):
    def forward(self, x):
        a, b = x.split([3, 5], dim=1)
        y = torch.cat([b.flip(1), a.repeat(1, 2)], dim=1).roll(1, 1)
        return y.unfold(1, 4, 2).amax(-1), torch.where(y > 0, y, -y).cumsum(1), y.argmax(1), torch.sort(y, 1)[1]


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.mix = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), nn.Conv2d(6, 3, 3, dilation=2, padding=2)
        self.norm = nn.GroupNorm(2, 6)

    def forward(self, x):
        x = torch.nn.functional.silu(self.norm(self.up(x)))
        x = torch.nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return torch.nn.functional.max_pool2d(self.mix(x), 3, stride=2, padding=1, ceil_mode=True)


batch, length = Dim("batch", min=1, max=16), Dim("length", min=2, max=32)


def ids(b, s):
    mask = torch.ones(b, s, dtype=torch.int64)
    mask[:, s - 1] = 0
    return torch.randint(0, 50, (b, s)), mask


MODELS = {
    "residual": (Residual, lambda b, s: (torch.randn(b, 3, 17, 19),), ({0: batch},)),
    "encoder": (Encoder, ids, ({0: batch, 1: length}, {0: batch, 1: length})),
    "causal": (Causal, lambda b, s: tuple(torch.randn(b, 3, s, 8) for _ in range(3)), ({0: batch, 2: length},) * 3),
    "recurrent": (Recurrent, lambda b, s: (torch.randn(b, 7, 6),), ({0: batch},)),
    "in_place": (InPlace, lambda b, s: (torch.randn(b, 4),), ({0: batch},)),
    "shapes": (Shapes, lambda b, s: (torch.randn(b, 8),), ({0: batch},)),
    "transposed": (Transposed, lambda b, s: (torch.randn(b, 4, 9, 7),), ({0: batch},)),
}


def leaf(t):
    return {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)}


def compare(t):
    return "exact" if not t.is_floating_point() else {"rtol": 1e-4, "atol": 2e-5}


def save(path, tensors):
    np.savez(path, **{f"arr_{i}": t.detach().numpy() for i, t in enumerate(tensors)})


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder, rows = tmp_path_factory.mktemp("cases"), []
    for name, (make, inputs, dims) in MODELS.items():
        torch.manual_seed(1)
        module = make().eval()
        program = torch.export.export(module, inputs(3, 6), dynamic_shapes=dims, strict=False)
        torch.export.save(program, folder / f"{name}.pt2")
        for k, (b, s) in enumerate([(3, 6), (1, 2), (16, 32), (5, 9)]):
            args = inputs(b, s)
            fresh = torch.export.load(folder / f"{name}.pt2").module()  # buffers start anew
            kept = [a.clone() for a in args]
            out = fresh(*args)
            out = [*out] if isinstance(out, tuple) else [out]
            save(folder / f"{name}.in{k}.npz", kept)
            save(folder / f"{name}.out{k}.npz", out)
            rows.append({"name": f"{name}.{k}", "model": f"{name}.pt2", "expect": "match", "tags": [],
                         "steps": [{"in": f"{name}.in{k}.npz", "out": f"{name}.out{k}.npz", "inputs": [leaf(a) for a in kept],
                                    "outputs": [leaf(o) | {"compare": compare(o)} for o in out]}]})
    (folder / "cases.json").write_text(json.dumps({"format": 1, "cases": rows}))
    return folder


@pytest.mark.parametrize("options", [[], ["--passes", "core"], ["--backend", "eager"], ["--backend", "native"], ["--backend", "native", "--threads", "2"],
                                     ["--backend", "native", "--isa", "scalar"]], ids=" ".join)
def test_torch_answers(cases, options):
    done = subprocess.run([AIT, "verify", "--cases", cases, *options], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith(f"{4 * len(MODELS)} passed, 0 failed, 0 skipped"), done.stdout


def test_unknown_operator_is_named(tmp_path):
    @torch.library.custom_op("aittest::odd", mutates_args=())
    def odd(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @odd.register_fake
    def _(x):
        return torch.empty_like(x)

    class Custom(nn.Module):
        def forward(self, x):
            return torch.ops.aittest.odd(x) + 1

    torch.export.save(torch.export.export(Custom(), (torch.ones(2),)), tmp_path / "custom.pt2")
    done = subprocess.run([AIT, "inspect", tmp_path / "custom.pt2"], capture_output=True, text=True)
    assert done.returncode == 3 and "aittest.odd" in done.stderr, done.stderr
