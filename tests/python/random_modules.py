"""Random torch modules, exported and compared with what `ait` says.

A module is a list of steps: each takes earlier tensors and gives one. Steps are chosen while they run on an example, so every shape is known;
only what torch itself runs at another batch size is kept. The same seed gives the same module.

    python tests/python/random_modules.py --seed 1 --count 200 --out DIR      writes DIR/cases.json; `ait verify --cases DIR` runs it
    python tests/python/random_modules.py --seed 7 --shrink                   fewer steps while `ait` still disagrees
"""
import argparse
import json
import pathlib
import random
import subprocess

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

AIT = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "bin" / "ait"
BACKENDS = [[], ["--backend", "eager"], ["--backend", "native", "--threads", "2"], ["--backend", "native", "--isa", "scalar"]]
BATCHES = (3, 1, 7)
LIMIT = 20000  # elements of a tensor


class Unfit(Exception):
    """The step does not fit the tensors that there are."""


class Context:
    """What a step may ask for while it is chosen."""

    def __init__(self, rng, values):
        self.rng, self.values = rng, values

    def pick(self, want=lambda t: True):
        fitting = [i for i, v in enumerate(self.values) if want(v)]
        if not fitting:
            raise Unfit
        return max(self.rng.choice(fitting), self.rng.choice(fitting))

    def real(self, low=1, high=5):
        return self.pick(lambda t: t.is_floating_point() and low <= t.dim() <= high)

    def of_rank(self, rank):
        return self.real(rank, rank)

    def like(self, shape):
        return self.pick(lambda t: t.is_floating_point() and t.shape == shape)

    def dim(self, t):
        """Not the batch, where that can be helped."""
        return self.rng.randrange(1, t.dim()) if t.dim() > 1 else 0


STEPS = {}


def step(fn):
    STEPS[fn.__name__] = fn
    return fn


def unary(name, fn):
    STEPS[name] = lambda c: ((c.real(),), fn)


for _name in ("relu", "gelu", "silu", "sigmoid", "tanh", "softplus", "elu", "leaky_relu", "mish", "hardswish", "hardsigmoid", "hardtanh", "relu6",
              "logsigmoid", "selu", "celu", "softsign", "tanhshrink", "hardshrink", "softshrink"):
    unary(_name, getattr(F, _name))
for _name in ("abs", "neg", "sin", "cos", "erf", "atan", "square", "asinh", "frac_of_square", "reciprocal_of_positive"):
    unary(_name, {"frac_of_square": lambda x: torch.exp(-x * x), "reciprocal_of_positive": lambda x: 1 / (x.abs() + 1)}.get(_name) or getattr(torch, _name))
unary("sqrt", lambda x: torch.sqrt(x.abs() + 0.1))
unary("log", lambda x: torch.log(x.abs() + 0.2))
unary("log1p", lambda x: torch.log1p(x.abs()))
unary("rsqrt", lambda x: torch.rsqrt(x * x + 0.5))
unary("pow", lambda x: (x.abs() + 0.3) ** 1.5)
unary("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"))
unary("gelu_spelled", lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x ** 3))))
unary("double_and_back", lambda x: (x.double() * 1.5).float())
unary("half_and_back", lambda x: x.clamp(-100, 100).half().float())
unary("bfloat_and_back", lambda x: x.bfloat16().float())
unary("contiguous", lambda x: x.transpose(0, -1).contiguous().transpose(0, -1))
unary("detach", lambda x: x.detach() + 0)
unary("masked", lambda x: x.masked_fill(x > 0.4, 0.25))
unary("clamp", lambda x: x.clamp(min=-0.5, max=0.75))
unary("clamp_min", lambda x: x.clamp_min(0.1))
unary("mean_centred", lambda x: x - x.mean(-1, keepdim=True))
unary("rms_spelled", lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
unary("layer_norm_spelled", lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt())
unary("softmax_spelled", lambda x: (e := torch.exp(x - x.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True))
unary("addcmul", lambda x: torch.addcmul(x, x, x.sin(), value=0.5))
unary("lerp", lambda x: torch.lerp(x, x.tanh(), 0.3))
unary("full_like", lambda x: x + torch.full_like(x, 0.5) * torch.ones_like(x))
unary("new_zeros", lambda x: x + x.new_zeros(x.shape[-1]))
unary("arange", lambda x: x * torch.arange(x.shape[-1], device=x.device) * 0.1)
unary("where_even", lambda x: torch.where(torch.arange(x.shape[-1]) % 2 == 0, x, -x))


def binary(name, fn):
    def choose(c):
        a = c.real()
        x = c.values[a]
        b = c.pick(lambda t: t.is_floating_point() and t.dim() <= x.dim() and t.dim() > 0 and
                   all(p == q or (p == 1 and i) for i, (p, q) in enumerate(zip(reversed(t.shape), reversed(x.shape)))))
        return (a, b), fn
    STEPS[name] = choose


for _name in ("add", "sub", "mul", "maximum", "minimum", "atan2", "hypot"):
    binary(_name, {"mul": lambda a, b: a * b.clamp(-2, 2), "hypot": lambda a, b: torch.sqrt(a * a + b * b + 0.1),
                   "atan2": lambda a, b: torch.atan2(a, b.abs() + 0.5)}.get(_name) or getattr(torch, _name))
binary("div", lambda a, b: a / (b.abs() + 0.5))
binary("add_alpha", lambda a, b: torch.add(a, b, alpha=2))
binary("where", lambda a, b: torch.where(b > 0.2, a, b))
binary("compare", lambda a, b: (a > b).float() * a)
binary("logical", lambda a, b: ((a > 0) & ~(b > 0.5)).to(torch.float32))


# ---- shapes
@step
def transpose(c):
    a = c.real(2)
    n = c.values[a].dim()
    i, j = c.rng.randrange(n), c.rng.randrange(n)
    return (a,), lambda x: x.transpose(i, j)


@step
def permute(c):
    a = c.real(3)
    order = [0] + c.rng.sample(range(1, c.values[a].dim()), c.values[a].dim() - 1)
    return (a,), lambda x: x.permute(order)


@step
def flatten(c):
    return (c.real(2),), lambda x: x.flatten(1)


@step
def split_dim(c):
    a = c.real(2, 4)
    d = c.dim(c.values[a])
    n = c.values[a].shape[d]
    if n % 2 or n == 0:
        raise Unfit
    return (a,), lambda x: x.unflatten(d, (2, n // 2))


@step
def reshape(c):
    a = c.real(3, 5)
    return (a,), lambda x: x.reshape(x.shape[0], -1, x.shape[-1])


@step
def view_as_rows(c):
    return (c.real(3, 4),), lambda x: x.reshape(-1, x.shape[-1]).tanh().view(x.shape)


@step
def unsqueeze(c):
    a = c.real(1, 4)
    d = c.rng.randrange(c.values[a].dim() + 1)
    return (a,), lambda x: x.unsqueeze(d)


@step
def squeeze(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() > 1 and 1 in t.shape[1:])
    d = 1 + list(c.values[a].shape[1:]).index(1)
    return (a,), lambda x: x.squeeze(d)


@step
def expand(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() > 1 and 1 in t.shape[1:])
    d = 1 + list(c.values[a].shape[1:]).index(1)
    return (a,), lambda x: x.expand([3 if i == d else -1 for i in range(x.dim())])


@step
def repeat(c):
    a = c.real(1, 4)
    times = [1] + [c.rng.choice((1, 2)) for _ in range(c.values[a].dim() - 1)]
    return (a,), lambda x: x.repeat(times)


@step
def repeat_interleave(c):
    a = c.real(2)
    d = c.dim(c.values[a])
    return (a,), lambda x: x.repeat_interleave(2, dim=d)


@step
def narrow(c):
    a = c.real(2)
    d = c.dim(c.values[a])
    n = c.values[a].shape[d]
    if n < 2:
        raise Unfit
    start = c.rng.randrange(n - 1)
    length = c.rng.randrange(1, n - start)
    return (a,), lambda x: x.narrow(d, start, length)


@step
def strided_slice(c):
    return (c.real(2),), lambda x: x[:, ::2]


@step
def negative_slice(c):
    return (c.real(2),), lambda x: x[..., -3:]


@step
def select(c):
    a = c.real(2)
    d = c.dim(c.values[a])
    return (a,), lambda x: x.select(d, -1)


@step
def chunk(c):
    a = c.real(2)
    d = c.dim(c.values[a])
    return (a,), lambda x: torch.cat(list(reversed(x.chunk(2, d))), d)


@step
def split(c):
    a = c.real(2)
    d = c.dim(c.values[a])
    return (a,), lambda x: sum(p.sum(d) for p in x.split(2, d))


@step
def cat(c):
    a = c.real()
    x = c.values[a]
    d = c.dim(x)
    b = c.pick(lambda t: t.is_floating_point() and t.dim() == x.dim() and all(p == q for i, (p, q) in enumerate(zip(t.shape, x.shape)) if i != d))
    return (a, b, a), lambda *xs: torch.cat(xs, d)


@step
def stack(c):
    a = c.real(1, 3)
    b = c.like(c.values[a].shape)
    d = c.rng.randrange(c.values[a].dim() + 1)
    return (a, b), lambda p, q: torch.stack([p, q], d)


@step
def flip(c):
    a = c.real()
    d = c.dim(c.values[a])
    return (a,), lambda x: x.flip(d)


@step
def roll(c):
    a = c.real()
    d = c.dim(c.values[a])
    return (a,), lambda x: x.roll(2, d)


@step
def pad(c):
    value = c.rng.choice((0.0, 1.5))
    return (c.real(2, 4),), lambda x: F.pad(x, (1, 2), value=value)


@step
def pad_reflect(c):
    a = c.pick(lambda t: t.is_floating_point() and 2 <= t.dim() <= 3 and t.shape[-1] > 2)
    mode = c.rng.choice(("reflect", "replicate", "circular"))
    return (a,), lambda x: F.pad(x, (1, 1), mode=mode)


@step
def triangle(c):
    k = c.rng.choice((-1, 0, 1))
    return (c.real(2),), c.rng.choice((lambda x: x.tril(k), lambda x: x.triu(k)))


@step
def unfold(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() in (2, 3) and t.shape[-1] >= 3)
    return (a,), lambda x: x.unfold(-1, 3, 2)


# ---- reductions
def reduction(name, fn):
    def choose(c):
        a = c.real(2)
        d, keep = c.dim(c.values[a]), c.rng.random() < 0.5
        return (a,), lambda x: fn(x, d, keep)
    STEPS[name] = choose


reduction("sum", lambda x, d, k: x.sum(d, keepdim=k))
reduction("mean", lambda x, d, k: x.mean(d, keepdim=k))
reduction("amax", lambda x, d, k: x.amax(d, keepdim=k))
reduction("max_values", lambda x, d, k: x.max(d, keepdim=k)[0])
reduction("var", lambda x, d, k: x.var(d, keepdim=k, unbiased=False))
reduction("std", lambda x, d, k: (x + 0).std(d, keepdim=k, correction=0) if x.shape[d] > 1 else x.sum(d, keepdim=k))
reduction("norm", lambda x, d, k: x.norm(dim=d, keepdim=k))
reduction("logsumexp", lambda x, d, k: x.logsumexp(d, keepdim=k))
reduction("prod", lambda x, d, k: x.clamp(-1.2, 1.2).prod(d, keepdim=k))
reduction("softmax", lambda x, d, k: x.softmax(d))
reduction("log_softmax", lambda x, d, k: x.log_softmax(d))
reduction("cumsum", lambda x, d, k: x.cumsum(d))
reduction("sort", lambda x, d, k: x.sort(d)[0])
reduction("topk", lambda x, d, k: x.topk(1, d)[0])
reduction("normalize", lambda x, d, k: F.normalize(x, dim=d))
reduction("any_of", lambda x, d, k: (x > 0.3).any(d, keepdim=k).float())
reduction("median_of_sorted", lambda x, d, k: x.sort(d, descending=True)[0].select(d, 0))
unary("mean_of_all_but_batch", lambda x: x.flatten(1).mean(1))


# ---- indexing
@step
def embedding(c):
    table = torch.randn(11, c.rng.choice((4, 8)))
    a = c.pick(lambda t: t.dtype == torch.int64 and t.dim() < 3)
    return (a,), nn.Embedding.from_pretrained(table)


@step
def gather(c):
    a = c.real(2)
    index = torch.randint(0, c.values[a].shape[1], (5,))
    return (a,), lambda x: x.index_select(1, index)


@step
def gather_by_ids(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() == 2 and t.shape[1] > 0)
    b = c.pick(lambda t: t.dtype == torch.int64 and t.dim() == 2)
    n = c.values[a].shape[1]
    return (a, b), lambda x, i: x.gather(1, i % n)


@step
def advanced_index(c):
    a = c.real(2)
    index = torch.randint(0, c.values[a].shape[1], (2, 2))
    return (a,), lambda x: x[:, index]


@step
def one_hot(c):
    return (c.pick(lambda t: t.dtype == torch.int64 and t.dim() < 3),), lambda i: F.one_hot(i, 11).float() * 0.5


@step
def scatter_add(c):
    a = c.of_rank(2)
    n = c.values[a].shape[1]
    index = torch.randint(0, 4, (n,))
    return (a,), lambda x: x.new_zeros(x.shape[0], 4).scatter_add(1, index.expand(x.shape[0], n), x)


@step
def ids_arithmetic(c):
    a = c.pick(lambda t: t.dtype == torch.int64)
    return (a,), c.rng.choice((lambda i: (i * 3 + 1) % 11, lambda i: i // 2, lambda i: (i - 5).abs(), lambda i: (i << 1) & 7, lambda i: i.clamp(max=4),
                               lambda i: i.cumsum(-1) % 11, lambda i: -i % 11))


@step
def padding_mask(c):
    a = c.pick(lambda t: t.dtype == torch.int64 and t.dim() == 2)
    return (a,), lambda i: (1.0 - (i != 0).float()) * -10000.0


# ---- layers
@step
def linear(c):
    a = c.real(1, 4)
    return (a,), nn.Linear(c.values[a].shape[-1], c.rng.choice((1, 4, 7, 16)), bias=c.rng.random() < 0.7)


@step
def linear_relu(c):
    a = c.real(2, 4)
    layer = nn.Linear(c.values[a].shape[-1], 6)
    return (a,), nn.Sequential(layer, c.rng.choice((nn.ReLU(inplace=True), nn.GELU(), nn.SiLU(inplace=True), nn.Hardtanh())))


def channels_of(c, a):
    n = c.values[a].shape[1]
    if n == 0:
        raise Unfit
    return n


@step
def conv1d(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() == 3 and t.shape[2] >= 3)
    return (a,), nn.Conv1d(channels_of(c, a), c.rng.choice((2, 6)), 3, stride=c.rng.choice((1, 2)), padding=c.rng.choice((0, 1)))


def image(c, size=3):
    return c.pick(lambda t: t.is_floating_point() and t.dim() == 4 and min(t.shape[2:]) >= size)


def some_conv(c, n):
    groups = n if c.rng.random() < 0.3 else 1
    return nn.Conv2d(n, n if groups > 1 else c.rng.choice((3, 8, 16)), 3, stride=c.rng.choice((1, 2)), padding=1, groups=groups,
                     bias=c.rng.random() < 0.6, dilation=1)


@step
def conv2d(c):
    a = image(c)
    return (a,), some_conv(c, channels_of(c, a))


def batch_norm_of(n, kind):
    norm = kind(n)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
    return norm.eval()


@step
def conv_bn_relu(c):
    a = image(c)
    conv = some_conv(c, channels_of(c, a))
    return (a,), nn.Sequential(conv, batch_norm_of(conv.out_channels, nn.BatchNorm2d), nn.ReLU(inplace=True))


@step
def conv_transposed(c):
    a = image(c, 1)
    return (a,), nn.ConvTranspose2d(channels_of(c, a), 4, 3, stride=2, padding=1, output_padding=c.rng.choice((0, 1)))


@step
def pool(c):
    a = image(c)
    return (a,), c.rng.choice((nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(2, ceil_mode=True), nn.AvgPool2d(3, 2, 1), nn.AvgPool2d(2, count_include_pad=False),
                               nn.AdaptiveAvgPool2d(1), nn.AdaptiveAvgPool2d((2, 3)), nn.AdaptiveMaxPool2d(2), nn.LPPool2d(2, 2)))


@step
def interpolate(c):
    a = image(c, 1)
    how = c.rng.choice(({"mode": "nearest"}, {"mode": "bilinear", "align_corners": False}, {"mode": "bilinear", "align_corners": True}, {"mode": "bicubic"},
                        {"mode": "nearest-exact"}))
    return (a,), lambda x: F.interpolate(x, scale_factor=2.0, **how)


@step
def pixel_shuffle(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() == 4 and t.shape[1] % 4 == 0)
    return (a,), nn.PixelShuffle(2)


@step
def batch_norm(c):
    a = c.real(2, 4)
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[c.values[a].dim()]
    return (a,), batch_norm_of(channels_of(c, a), kind)


@step
def layer_norm(c):
    a = c.real(2, 4)
    return (a,), nn.LayerNorm(c.values[a].shape[-1], elementwise_affine=c.rng.random() < 0.6)


@step
def rms_norm(c):
    a = c.real(2, 4)
    return (a,), nn.RMSNorm(c.values[a].shape[-1])


@step
def group_norm(c):
    a = c.real(3, 4)
    n = channels_of(c, a)
    return (a,), nn.GroupNorm(c.rng.choice([g for g in (1, 2, n) if n % g == 0]), n)


@step
def instance_norm(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() == 4 and t.shape[2] * t.shape[3] > 3)
    return (a,), nn.InstanceNorm2d(channels_of(c, a), affine=True)


@step
def prelu(c):
    a = c.real(2, 4)
    return (a,), nn.PReLU(channels_of(c, a))


class Unwrap(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


@step
def recurrent(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() == 3 and 0 < t.shape[1] <= 12)
    kind = c.rng.choice((nn.LSTM, nn.GRU))
    return (a,), Unwrap(kind(c.values[a].shape[-1], 5, batch_first=True, bidirectional=c.rng.random() < 0.4))


@step
def matmul(c):
    a = c.real(3, 4)
    return (a,), lambda x: x @ x.transpose(-1, -2) * 0.1


@step
def bmm(c):
    a = c.of_rank(3)
    return (a,), lambda x: torch.bmm(x, x.transpose(1, 2)).clamp(-9, 9)


@step
def einsum(c):
    a = c.of_rank(3)
    return (a,), lambda x: torch.einsum("bij,bkj->bik", x, x) * 0.1


@step
def attention(c):
    a = c.of_rank(3)
    causal = c.rng.random() < 0.4
    return (a,), lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], is_causal=causal)[:, 0]


@step
def attention_masked(c):
    a = c.of_rank(3)
    n = c.values[a].shape[1]
    mask = torch.rand(n, n) > 0.3
    mask |= torch.eye(n, dtype=torch.bool)
    return (a,), lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


@step
def attention_spelled(c):
    a = c.of_rank(3)
    n = c.values[a].shape[1]
    bias = torch.randn(n, n)
    return (a,), lambda x: (x @ x.transpose(1, 2) / 3.0 + bias).softmax(-1) @ x


class SelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mha = nn.MultiheadAttention(dim, 2, batch_first=True)

    def forward(self, x):
        return self.mha(x, x, x, need_weights=False)[0]


@step
def multihead(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() == 3 and t.shape[2] % 2 == 0 and t.shape[2] > 0 and t.shape[1] > 0)
    return (a,), SelfAttention(c.values[a].shape[2])


@step
def rotary(c):
    a = c.pick(lambda t: t.is_floating_point() and t.dim() == 3 and t.shape[2] % 2 == 0)
    n, d = c.values[a].shape[1:]
    angle = torch.arange(n)[:, None] * 10000 ** (-torch.arange(0, d, 2) / d)

    def turn(x):
        p, q = x[..., ::2], x[..., 1::2]
        return torch.stack([p * angle.cos() - q * angle.sin(), p * angle.sin() + q * angle.cos()], -1).flatten(-2)
    return (a,), turn


# ---- in place
def in_place(name, fn):
    def change(x):
        y = x.clone()
        fn(y)
        return y
    STEPS[name] = lambda c: ((c.real(2),), change)


in_place("add_slice", lambda y: y[:, :2].add_(0.5))
in_place("mul_view", lambda y: y.view(-1).mul_(0.5))
in_place("relu_of_transposed", lambda y: y.transpose(0, 1).relu_())
in_place("set_column", lambda y: y.__setitem__((slice(None), 0), 1.25))
in_place("copy_last", lambda y: y[..., -1].copy_(y[..., 0]))
in_place("fill_masked", lambda y: y.masked_fill_(y > 0.5, -0.5))
in_place("index_put", lambda y: y.__setitem__((slice(None), torch.tensor([0, -1])), 0.75))
in_place("chain", lambda y: y.sigmoid_().mul_(2).sub_(1).clamp_(-0.5, 0.5))
in_place("unbound", lambda y: y.unbind(1)[0].zero_())
in_place("split_half", lambda y: y.chunk(2, -1)[0].neg_())
in_place("squeezed", lambda y: y.unsqueeze(1).squeeze(1).tanh_())


class Counter(nn.Module):
    """State that calls change."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x + self.count


@step
def counter(c):
    return (c.real(),), Counter()


@step
def trained_batch_norm(c):
    a = c.of_rank(4)
    return (a,), batch_norm_of(channels_of(c, a), nn.BatchNorm2d).train()


# ---- modules
class Program(nn.Module):
    def __init__(self, steps, outputs):
        super().__init__()
        self.steps, self.outputs = steps, outputs
        self.layers = nn.ModuleList([fn for _, _, fn in steps if isinstance(fn, nn.Module)])

    def forward(self, *inputs):
        values = list(inputs)
        for _, operands, fn in self.steps:
            values.append(fn(*(values[i] for i in operands)))
        return tuple(values[i] for i in self.outputs)


def inputs_of(seed, batch):
    g = torch.Generator().manual_seed(seed * 131 + batch)
    rng = random.Random(seed)
    kinds = ["rows", rng.choice(("image", "sequence", "ids")), rng.choice(("image", "sequence", "rows"))]
    shapes = {"rows": (6,), "image": (rng.choice((3, 4, 8)), rng.choice((5, 8)), rng.choice((6, 7))), "sequence": (5, 8), "ids": (4,)}
    return tuple(torch.randint(0, 11, (batch, *shapes[k]), generator=g) if k == "ids" else torch.rand(batch, *shapes[k], generator=g) * 2 - 1 for k in kinds)


def is_sound(t):
    return isinstance(t, torch.Tensor) and 0 < t.numel() <= LIMIT and t.dim() <= 5 and (not t.is_floating_point() or
                                                                                   bool((t.abs() < 1e4).all()))


def choose_steps(seed, count):
    """Steps that run on the example, one after the other."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    values, steps = list(inputs_of(seed, BATCHES[0])), []
    names = sorted(STEPS)
    with torch.no_grad():
        for _ in range(12 * count):
            if len(steps) == count:
                break
            name = rng.choice(names)
            try:
                operands, fn = STEPS[name](Context(rng, values))
                result = fn(*(values[i] for i in operands))
            except (Unfit, RuntimeError, IndexError, ValueError):
                continue
            if is_sound(result):
                steps.append((name, operands, fn))
                values.append(result)
    return steps


def with_outputs(steps, inputs):
    read = {i for _, operands, _ in steps for i in operands}
    return Program(steps, [i for i in range(inputs, inputs + len(steps)) if i not in read])


def make(seed, count=None):
    count = count or random.Random(seed + 999).choice((1, 3, 6, 12))
    return with_outputs(choose_steps(seed, count), 3)


def reset(program):
    for m in program.modules():
        if isinstance(m, Counter):
            m.count.zero_()


def answers(module, args):
    with torch.no_grad():
        return [*module(*(a.clone() for a in args))]


def noise_of(seed, steps_kept, got, args):
    """Distance between torch's answer and the same module in double."""
    module = make(seed)
    if steps_kept is not None:
        module = with_outputs([module.steps[i] for i in steps_kept], 3)
    try:
        exact = answers(module.double(), [a.double() if a.is_floating_point() else a for a in args])
        return [float((g.double() - e.double()).abs().max()) if g.is_floating_point() and g.shape == e.shape else 0.0 for g, e in zip(got, exact)]
    except (RuntimeError, ValueError):
        return [0.0] * len(got)


def leaf(t):
    return {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)}


def save(path, tensors):
    np.savez(path, **{f"arr_{i}": t.detach().numpy() for i, t in enumerate(tensors)})


def write_case(folder, name, seed, module=None):
    """Rows for cases.json, or [] when torch cannot export the module or it does not run at other sizes."""
    module = module or make(seed)
    if not module.steps:
        return []
    args = inputs_of(seed, BATCHES[0])
    dims = tuple({0: Dim("batch", min=1, max=64)} for _ in args)
    train = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training]
    try:
        reset(module)
        program = torch.export.export(module, args, dynamic_shapes=(dims,), strict=False)
        torch.export.save(program, folder / f"{name}.pt2")
    except Exception:  # noqa: BLE001 - whatever export says no to is not ait's matter
        return []
    rows = []
    low = max([int(r.lower) for r in program.range_constraints.values()], default=1)
    for k, batch in enumerate(b for b in BATCHES if b >= max(low, 2 if train else 1)):
        args = inputs_of(seed, batch)
        try:
            fresh = torch.export.load(folder / f"{name}.pt2").module()
            out = answers(fresh, args)
        except Exception:  # noqa: BLE001
            continue
        if any(o.is_floating_point() and not bool(torch.isfinite(o).all()) for o in out):
            continue
        noise = noise_of(seed, None, out, args)
        save(folder / f"{name}.in{k}.npz", args)
        save(folder / f"{name}.out{k}.npz", out)
        compare = ["exact" if not o.is_floating_point() else {"rtol": 1e-5, "atol": max(20 * n, 1e-5 * float(o.abs().max()), 1e-6)}
                   for o, n in zip(out, noise)]
        rows.append({"name": f"{name}.{k}", "model": f"{name}.pt2", "expect": "match", "tags": [],
                     "steps": [{"in": f"{name}.in{k}.npz", "out": f"{name}.out{k}.npz", "inputs": [leaf(a) for a in args],
                                "outputs": [leaf(o) | {"compare": c} for o, c in zip(out, compare)]}]})
    return rows


def write_cases(folder, seeds):
    rows = [row for seed in seeds for row in write_case(folder, f"seed{seed}", seed)]
    (folder / "cases.json").write_text(json.dumps({"format": 1, "cases": rows}))
    return rows


def verify(folder, options=()):
    return subprocess.run([AIT, "verify", "--cases", folder, *options], capture_output=True, text=True, timeout=1200)


def disagrees(folder, seed, steps):
    """The output of `ait verify` when it fails for the module of these steps."""
    for f in folder.glob("small*"):
        f.unlink()
    rows = write_case(folder, "small", seed, with_outputs(steps, 3))
    (folder / "cases.json").write_text(json.dumps({"format": 1, "cases": rows}))
    for options in BACKENDS if rows else []:
        done = verify(folder, options)
        if done.returncode != 0:
            return " ".join(options) + "\n" + done.stdout + done.stderr
    return None


def without(steps, k):
    """The steps without the k-th, where nothing else reads it; an operand of equal shape may take its place."""
    at = 3 + k
    for replacement in (None, *steps[k][1]):
        kept, fine = [], True
        for i, (name, operands, fn) in enumerate(steps):
            if i == k:
                continue
            moved = tuple((replacement if o == at else o) for o in operands)
            fine = fine and None not in moved
            kept.append((name, tuple(o - (o > at) if o is not None else 0 for o in moved), fn))
        if fine:
            yield kept


def shrink(folder, seed):
    steps, again = make(seed).steps, True
    why = disagrees(folder, seed, steps)
    while why and again:
        again = False
        for k in reversed(range(len(steps))):
            for fewer in without(steps, k):
                found = disagrees(folder, seed, fewer) if fewer else None
                if found:
                    steps, why, again = fewer, found, True
                    break
    disagrees(folder, seed, steps)
    return steps, why


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("random_modules"))
    p.add_argument("--shrink", action="store_true")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    if a.shrink:
        steps, why = shrink(a.out, a.seed)
        print([(name, operands) for name, operands, _ in steps], why or "ait agrees with torch")
        return
    rows = write_cases(a.out, range(a.seed, a.seed + a.count))
    print(f"{len(rows)} cases of {a.count} modules in {a.out}")
    for options in BACKENDS:
        done = verify(a.out, options)
        print(" ".join(options) or "reference", done.stdout.strip(), done.stderr.strip())


if __name__ == "__main__":
    main()
