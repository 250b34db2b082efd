"""Small programs that hold, each, one kind of meaning which inference tools get wrong: ties and NaN, rounding, signs, empty tensors, promotion,
accumulation, masks, pooling, coordinates, bad indices, duplicates, views, control flow, state, sizes. make.py writes them as a folder of cases
with PyTorch's answers; tests/python/test_kinds.py does the same with other seeds.

A kind: a function of tensors (or an nn.Module), the calls it gets, which dims are dynamic. Calls are made by a function of a random generator."""
import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

f32, f64, f16, bf16, c64 = torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64
i64, i32, i16, i8, u8, b1 = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool
nan, inf = float("nan"), float("inf")
KINDS = []


class Kind:
    """exact: floats too must be equal bits. refused: words that the error must hold, for calls that are refused. steps: all calls go to one
    session, whose state is kept; otherwise each call is a case."""

    def __init__(self, name, make, calls, dims=None, exact=False, refused=None, steps=False):
        self.name, self.make, self.calls, self.dims, self.exact, self.refused, self.steps = name, make, calls, dims, exact, refused or [], steps


class Function(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def kind(calls, **options):
    def add(fn):
        make = fn if isinstance(fn, type) else lambda: Function(fn)
        KINDS.append(Kind(options.pop("name", fn.__name__.lower()), make, calls, **options))
        return fn
    return add


def r(g, *shape, dtype=f32):
    if dtype == b1: return torch.randint(0, 2, shape, generator=g).bool()
    if dtype.is_complex: return torch.complex(torch.randn(shape, generator=g), torch.randn(shape, generator=g)).to(dtype)
    if not dtype.is_floating_point: return torch.randint(0 if dtype == u8 else -9, 10, shape, generator=g).to(dtype)
    return torch.randn(shape, generator=g).to(dtype)


def holes(g, *shape, dtype=f32):
    """Few different values, NaN and infinities among them: ties everywhere."""
    values = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1.0, 1.0, 2.0, -3.0])
    return values[torch.randint(0, len(values), shape, generator=g)].to(dtype)


def few(g, *shape, dtype=i64):
    return torch.randint(0 if dtype == u8 else -2, 3, shape, generator=g).to(dtype)


def signs(x):
    """x with the signs of its zeros made visible."""
    return x, torch.signbit(x)


def tensors(x):
    return [*x] if isinstance(x, (tuple, list)) else [x]


# ---- ties and NaN -------------------------------------------------------------------------------------------------------------------
def order(x):
    out = []
    for d in (0, 1, -1):
        s, i = torch.sort(x, dim=d, stable=True)
        down, j = torch.sort(x, dim=d, descending=True, stable=True)
        out += [s, i, down, j, *x.max(d), *x.min(d), x.argmax(d), x.argmin(d), x.amax(d), x.amin(d), *x.cummax(d), *x.cummin(d)]
        out += [x.topk(2, d)[0], x.topk(2, d, largest=False)[0], x.kthvalue(2, d)[0], x.median(d)[0], x.nan_to_num(0, 1, -1).mode(d)[0]]
        out += [torch.argsort(x, dim=d, stable=True), *torch.aminmax(x, dim=d)]
    return (*out, x.max(), x.min(), x.argmax(), x.argmin(), x.median(), torch.msort(x), *torch.aminmax(x))


for t in (f32, f16, bf16):
    kind(lambda g, t=t: [(holes(g, 4, 6, 5, dtype=t),) for _ in range(2)], name=f"order_{str(t)[6:]}", exact=True)(lambda x: order(x))
for t in (i64, i32, i8, u8):
    kind(lambda g, t=t: [(few(g, 4, 6, 5, dtype=t),) for _ in range(2)], name=f"order_{str(t)[6:]}", exact=True)(lambda x: order(x))


@kind(lambda g: [(holes(g, 5, 7), holes(g, 5, 7), holes(g, 7))], exact=True)
def nan_pairs(x, y, row):
    out = []
    for a, b in ((x, y), (x, row), (x.half(), y.half()), (x.bfloat16(), row.bfloat16()), (x.double(), y)):
        out += [torch.maximum(a, b), torch.minimum(a, b), torch.fmax(a, b), torch.fmin(a, b), a == b, a != b, a < b, a <= b, a > b, a >= b,
                torch.isclose(a.to(b.dtype), b, equal_nan=True), torch.logical_and(a, b), torch.logical_xor(a, b)]
    return (*out, x.clamp(-1, 2), x.clamp(min=row), torch.clamp(x, max=y), x.relu(), F.relu6(x), F.hardtanh(x), F.leaky_relu(x, 0.5), x.sign(), x.bool(),
            x.any(0), x.all(1), torch.isnan(x), torch.isinf(x), torch.nan_to_num(x), torch.nan_to_num(x, 1.0, 2.0, -2.0), x.nansum(1), torch.where(x > y, x, y),
            torch.where(x.isnan(), 0.0, x), F.threshold(x, 0.5, 7.0), x.masked_fill(x != x, 4.0), torch.nanmedian(x))


@kind(lambda g: [(torch.tensor([1.0, 2, 2, 2, 5, nan]), holes(g, 9), few(g, 9)), (torch.tensor([-inf, 0, 0, 1, inf, nan]), holes(g, 9), few(g, 9))], exact=True)
def search(edges, x, n):
    return (torch.searchsorted(edges[:5], x), torch.searchsorted(edges[:5], x, right=True), torch.bucketize(x, edges[1:5]),
            torch.bucketize(n, torch.tensor([-1, 0, 0, 1]), right=True), torch.bucketize(n, torch.tensor([-1, 0, 0, 1]), out_int32=True),
            torch.isin(n, torch.tensor([1, 2])), torch.histc(x.nan_to_num(0, 1, -1), 4, -1, 1), torch.bincount(n + 2, minlength=7))


# ---- rounding and casts -------------------------------------------------------------------------------------------------------------
def halves(g):
    return torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0, -8388608.5, 3.7, -3.7, 0.0, -0.0, 1e10, -1e10, 255.5, 65519.0, 65520.0, 1 / 3])


@kind(lambda g: [(halves(g),), (torch.randint(-20, 20, (19,), generator=g) / 4,)], exact=True)
def rounding(x):
    y = x.clamp(-100, 100)
    out = [*signs(x.round()), *signs(x.ceil()), *signs(x.floor()), *signs(x.trunc()), *signs(x.frac()), x.round(decimals=1), y.round(decimals=-1),
           x.half(), x.bfloat16(), x.double(), x.bfloat16().half(), x.half().bfloat16(), y.to(i8), y.abs().to(u8), y.to(i32), x.to(i64), y.to(i16), x.to(b1), y.to(c64)]
    for t in (f16, bf16):
        z = y.to(t)
        out += [z.round(), z.ceil(), z.floor(), z.trunc(), z + 1, z * 3, z / 3, z.to(i64), z.sqrt() if t == f16 else z.square()]
    return tuple(out)


@kind(lambda g: [(torch.tensor([0, 1, 16777217, -16777219, 2**53 + 1, -2**63, 2**63 - 1, 65535, 2049, 257, 128, -129]),)], exact=True)
def integer_casts(n):
    return tuple(n.to(t) for t in (f32, f64, f16, bf16, i32, i16, i8, u8, b1)) + tuple(n.to(t).to(s) for t in (i8, u8, i16) for s in (f32, i64, u8, b1)) + (
        n.to(u8).to(i8), n.to(i32).to(f32), n.to(b1).to(f16), n.to(i32).view(torch.float32), n.to(i16).view(torch.float16), n.view(i8))


@kind(lambda g: [(r(g, 6, 8) * 3, torch.rand(6, generator=g) + 0.05, torch.randint(-5, 5, (6,), generator=g))], exact=True)
def quantise(x, scale, zero):
    a = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127)
    b = torch.fake_quantize_per_channel_affine(x, scale, zero.to(i32), 0, -128, 127)
    c = (x / 0.05).round().clamp(-128, 127).to(i8)
    return a, b, c, (c.to(f32) - 3) * 0.05, (x * 16).to(i8).to(i32) @ (x * 16).to(i8).to(i32).t()


# ---- integers -----------------------------------------------------------------------------------------------------------------------
def integer_pair(t):
    def calls(g):
        a = torch.tensor([7, -7, 7, -7, 0, 5, -128, 127, 1, -1, 100, 99])
        b = torch.tensor([3, 3, -3, -3, 5, 5, -1 if t != i8 else -2, 2, 7, 7, -100, -100])
        return [((a.abs() if t == u8 else a).to(t), (b.abs() if t == u8 else b).to(t)), (r(g, 12, dtype=t), r(g, 12, dtype=t).abs() + 1)]
    return calls


for t in (i64, i32, i16, i8, u8):
    @kind(integer_pair(t), name=f"divide_{str(t)[6:]}", exact=False)
    def _(a, b):
        return (a // b, a % b, torch.fmod(a, b), a / b, torch.div(a, b, rounding_mode="trunc"), torch.div(a, b, rounding_mode="floor"), a // 3, a % 3,
                torch.remainder(-7, b.to(i64)), a // 2.5, a % 2.5, torch.fmod(a, -3 if a.dtype != u8 else 3), a.float() // b, a.float() % b, torch.fmod(a.double(), b),
                torch.div(a.float(), b, rounding_mode="floor"), torch.div(a.half(), b.half(), rounding_mode="trunc"), a.bfloat16() // b.bfloat16(),
                torch.gcd(a, b), torch.lcm(a, b), a.sign(), 7 // b, 7 % b, a.true_divide(b))

    @kind(integer_pair(t), name=f"wrap_{str(t)[6:]}", exact=True)
    def _(a, b):
        big = a * 0 + torch.iinfo(a.dtype).max
        return (a + b, a - b, a * b, a * 100, big + a, big * b, -a, a.abs(), a.square(), a ** 3, a.pow(b.abs() % 4), a.sum(), a.sum(dtype=a.dtype), a.prod(),
                a.cumsum(0), a.cumprod(0), a.cumsum(0, dtype=a.dtype), (a + 1).prod(0, dtype=a.dtype), torch.add(a, b, alpha=3), torch.sub(a, b, alpha=2), a.sum(dtype=f32),
                a & b, a | b, a ^ b, ~a, a << (b.abs() % 5), a >> (b.abs() % 5), a >> 1, a << 1, a.max() - a.min(), torch.maximum(a, b), a.clamp(0, 5), a.bool().sum(),
                (a > 1).cumsum(0), a.any(), a.all(), 2 ** (b.abs() % 5), torch.rsub(a, 3), a.dot(b), torch.outer(a, b), a.view(3, 4) @ b.view(4, 3), a.diff(), torch.bitwise_left_shift(a, 2),
                a.to(i64).mean(dtype=f32), a.view(3, 4).sum(1), a.view(3, 4).amax(1), a.view(3, 4).flip(0).cumsum(1), torch.addcmul(a, a, b, value=2), torch.logical_not(a))


@kind(lambda g: [(r(g, 8, dtype=b1), r(g, 8, dtype=b1))], exact=True)
def truth(a, b):
    return (a & b, a | b, a ^ b, ~a, a + b, a * b, a == b, a > b, a.sum(), a.prod(), a.cumsum(0), a.any(), a.all(), a.float(), a / 2, a + 1, a * 2.5, a.max(), a.min(),
            a.to(i64).argmax(), torch.where(a, 1, 2), torch.where(a, b, True), a.sort(stable=True)[0], a.logical_not(), torch.maximum(a, b), a.nonzero().shape[1] * 1.0 * a,
            a.count_nonzero(), a.unique(), a.any(0, keepdim=True), a.to(u8).sum(), a ** 2, a.clamp(max=1), torch.cat([a, b]), torch.stack([a, b.to(i64)]))


# ---- empty tensors and 0-d ------------------------------------------------------------------------------------------------------------
@kind(lambda g: [(torch.zeros(0, 3), torch.zeros(2, 0), r(g, 3)), (torch.zeros(0, 3), torch.zeros(2, 0), r(g, 3))], exact=True)
def empty(a, b, v):
    index = torch.zeros(0, dtype=i64)
    return (a.sum(), a.sum(0), a.sum(1), a.prod(), a.prod(0), a.mean(), a.mean(0), a.mean(1), a.var(0), a.std(0), a.any(), a.all(), a.any(0), a.all(0), a.amax(1), a.max(1)[0], a.argmax(1),
            a @ v, a @ r_const(3, 2), b @ b.t(), b.t() @ b, torch.bmm(a[None], a.t()[None]), F.linear(a, r_const(4, 3), r_const(4)), F.linear(b, torch.zeros(4, 0), r_const(4)),
            torch.cat([a, r_const(2, 3)]), torch.cat([a, a]), torch.stack([a, a]), a.softmax(1), a.softmax(0), a.log_softmax(1), b.softmax(1), F.conv2d(torch.zeros(0, 2, 5, 5), torch.ones(3, 2, 3, 3)),
            a.cumsum(0), b.cumsum(1), a.sort(0)[0], a.topk(2, 1)[0], b.topk(0, 1)[0], a.nonzero(), v[index], a[:, 1:], v.index_select(0, index), torch.gather(b, 1, torch.zeros(2, 0, dtype=i64)),
            F.embedding(index, r_const(4, 3)), F.layer_norm(a, (3,)), F.batch_norm(torch.zeros(0, 3, 4), v, v.abs() + 1), F.interpolate(torch.zeros(0, 1, 4, 4), scale_factor=2.0),
            F.max_pool2d(torch.zeros(0, 1, 4, 4), 2), F.avg_pool2d(torch.zeros(0, 1, 4, 4), 2), F.adaptive_avg_pool2d(torch.zeros(0, 2, 4, 4), 1), a.norm(), b.norm(dim=1), a.logsumexp(1), b.logsumexp(1),
            torch.einsum("ij,kj->ik", b, b), a.t(), a.reshape(3, 0), a.flatten(), a.expand(5, 0, 3), a.repeat(2, 2), b.repeat(0, 1), F.pad(a, (1, 1)), F.pad(b, (2, 1), value=4.0), a.flip(0), a.roll(1, 0),
            torch.where(a > 0, a, v), a.masked_fill(a > 0, 1), a + v, a * 2, a.half(), a.to(i64).sum(), torch.arange(0), torch.zeros(0).sum(), torch.linspace(0, 1, 0), b.unsqueeze(0).permute(2, 0, 1),
            v.scatter(0, index, torch.zeros(0)), v.index_add(0, index, torch.zeros(0)), v.index_put((index,), torch.zeros(0)), torch.tril(a), a.unfold(1, 2, 1), b.sum((0, 1)), v.sum(()), a.chunk(2, 1)[1],
            a.split([1, 2], 1)[1], F.scaled_dot_product_attention(torch.zeros(1, 1, 0, 4), torch.zeros(1, 1, 3, 4), torch.zeros(1, 1, 3, 4)), torch.addmm(r_const(4), b, torch.zeros(0, 4)),
            torch.baddbmm(torch.ones(2, 1, 1), torch.zeros(2, 1, 0), torch.zeros(2, 0, 1)), torch.dot(b[0], b[0]), torch.mv(b, torch.zeros(0)), a.unique(), torch.cdist(a, r_const(2, 3)), a.count_nonzero(0))


def r_const(*shape):
    n = 1
    for s in shape: n *= s
    return (torch.arange(n, dtype=f32).reshape(shape) % 7) - 3


@kind(lambda g: [(r(g), r(g, dtype=i64), r(g, 4)), (torch.tensor(-0.0), torch.tensor(3), r(g, 4))])
def zero_d(a, n, v):
    return (a + n, a * v, n * v, a.sum(), a.sum(0), a.mean(0), a.max(0)[0], a.max(0)[1], a.argmax(), a.softmax(0), a.cumsum(0), a.sort(0)[0], a.sort(0)[1], a.reshape(1), a.reshape(1, 1), a.t(), a.expand(3),
            a.unsqueeze(0), a.squeeze(), a.flatten(), v[n % 4], v.index_select(0, n % 4), torch.stack([a, a]), torch.where(a > 0, a, n), a * v, a.view(1), a.norm(), a.var(correction=0),
            n // 2, n % 2, n / 2, a.any(), a.nonzero(), torch.gather(a, 0, torch.tensor(0)), torch.outer(v, v).sum(), v.dot(v), a.flip(0), torch.atleast_2d(a), a.logsumexp(0), a.unique(), a.repeat(2, 2),
            torch.full_like(a, 3), n.bool(), a.topk(1)[0], a.prod(0), F.one_hot(n.abs() % 3, 3), F.relu(a), a.clamp(0, 1), F.layer_norm(v, (4,)), a.std(unbiased=False))


# ---- promotion ------------------------------------------------------------------------------------------------------------------------
TYPES = (f32, f64, f16, bf16, i64, i32, i8, u8, b1, c64)
SOME = (f32, f16, i64, i32, u8, b1)


@kind(lambda g: [(torch.tensor([3.0, -2.0, 1.0]), torch.tensor(2.0)), (torch.tensor([1.0, 5.0, -1.0]), torch.tensor(3.0))])
def promotion(x, s):
    x, s = x.abs(), s.abs()
    out = []
    for a in TYPES:
        p = x.to(a)
        for b in TYPES:
            if {a, b} != {f16, c64}: out += [p + x.to(b), p * s.to(b)]
        out += [p + 1, p * 2.5, p / 2, p == 1, torch.where(x > 1, p, 1), p ** 2, p + True]
        if a != b1: out += [2 - p, p - 1, p ** 0.5, 2 ** p]
    return tuple(out)


@kind(lambda g: [(torch.tensor([3.0, 2.0, 1.0]), torch.tensor(2.0))])
def promotion_functions(x, s):
    out = []
    for a in SOME:
        p = x.to(a)
        for b in SOME:
            q = x.flip(0).to(b)
            out += [torch.maximum(p, q), torch.where(x > 1, p, q), torch.cat([p, q]), p > q, torch.div(p, q), p.pow(q) if not (a == b1 and b == b1) else p]
        out += [p.mean() if a.is_floating_point else p.float().mean(), p.sum(), p.exp(), p.sqrt(), p.sigmoid(), torch.atan2(p, x), p.softmax(0, dtype=f32), F.softmax(p.float(), 0, dtype=f64), torch.clamp(p, 0, 2.5) if a != b1 else p,
                torch.lerp(p, p, 0.5) if a.is_floating_point else p, p.to(f32).addcdiv(x, x), torch.full_like(p, 1), p.new_zeros(2), p.cumsum(0)]
    return tuple(out)


# ---- negative zero, denormals -----------------------------------------------------------------------------------------------------------
@kind(lambda g: [(torch.tensor([0.0, -0.0, 1.0, -1.0, -0.3, 0.3]), torch.tensor([-0.0, 0.0, -0.0, 0.0, -0.0, 0.5]))], exact=True)
def negative_zero(x, y):
    out = []
    for t in (f32, f16, bf16, f64):
        a, b = x.to(t), y.to(t)
        for z in (-a, a * b, a + b, a - b, a.abs(), a.round(), a.ceil(), a.trunc(), a.relu(), torch.copysign(a, b), b.sqrt(), b.sign(), b.cumsum(0), b[:1].sum(), b * -1, b / 3,
                  F.leaky_relu(b), b.sin(), b.tanh(), b.exp() - 1, torch.where(a > 0, a, b), F.hardswish(b), F.silu(b), b.square(), b.neg().abs(), torch.fmod(b, 2), b % 2,
                  F.hardtanh(b), torch.nan_to_num(b), b.frac(), b.asin(), b.expm1(), b.log1p(), b.cumprod(0), b[:1].prod(), torch.stack([b, a]).sum(0), torch.atan2(b, a)):
            out += [torch.signbit(z), z == 0]
    return (*out, 1 / y, y.to(i64), y == 0, y.to(b1), x.double().to(f32).signbit())


@kind(lambda g: [(torch.tensor([1e-40, -1e-40, 1.4e-45, 2e-38, 1e-38, 3e-45, 0.0, 1e-44]),), (torch.rand(8, generator=g) * 1e-39,)], exact=True)
def denormals(x):
    h = torch.tensor([6e-8, 1.2e-7, 6.1e-5, 3e-5, 5.96e-8, 2.9e-8, 3.1e-8, 0.0])
    return (x * 0.5, x + x, x - x.flip(0), -x, x.abs(), x * 1e20, x.double(), x.double().float(), x == 0, x > 0, x / 2, x.sqrt(), x.max(), x.sort()[0], x.bfloat16(), x.half(), (x * 1e33).half(),
            h.half(), h.half() * 0.5, h.half() + h.half(), h.half().float(), h.half() == 0, h.half().sum(), (h * 1e-33).bfloat16(), (h * 1e-33).bfloat16() * 2, torch.cat([x, x]), x.cumsum(0), x.relu(), x.clamp(min=1e-41),
            torch.where(x > 1e-41, x, 0.0), x.reshape(2, 4) @ torch.eye(4), F.hardtanh(x), x.floor(), x.ceil(), x.sign(), torch.signbit(-x), torch.nextafter(x, x + 1), torch.frexp(x)[0], torch.frexp(x)[1], x.bool())


# ---- accumulation -----------------------------------------------------------------------------------------------------------------------
for t in (f16, bf16, f32):
    @kind(lambda g, t=t: [((torch.rand(4, 3000, generator=g) + 0.5).to(t),), (torch.full((4, 3000), 0.1, dtype=t),)], name=f"accumulate_{str(t)[6:]}")
    def _(y):
        return (y.sum(), y.sum(1), y.mean(1), (y * 30).sum(1), y.mean(), y.norm(), y.norm(dim=1), y.logsumexp(1), y.softmax(1)[:, ::100], y.log_softmax(1)[:, ::100], y[:, :64].cumsum(1), y[:, :10].prod(1),
                y @ y.t(), F.layer_norm(y, (3000,))[:, ::100], y.sum(dtype=f32), y.mean(dtype=f32), F.normalize(y, dim=1)[:, ::100], y.square().mean(-1, keepdim=True).rsqrt(),
                F.avg_pool1d(y[None], 100, 100)[0], F.cross_entropy(y, torch.arange(4)), F.mse_loss(y, y.flip(0)), F.linear(y, y[:2], y[0, :2]), torch.einsum("ik,jk->ij", y, y), y.nansum(1), y[:, ::100].cumsum(0), y.max(1)[0], F.rms_norm(y, (3000,))[:, ::100])


@kind(lambda g: [(torch.rand(4, 3000, generator=g) + 0.5,)])
def accumulate_far(x):
    big = x * 1e18
    return ((x * 1e-18).norm() * 1e18, (x + 4096).double().std(1), (x + 4096).mean(1), big.double().norm(), (x > 0.7).sum(1), (x > 0.7).float().mean(1), x.to(i8).sum(), (x * 100).to(u8).sum(1), x.var(1), x.double().std(), (x + 100).var(1))


# ---- attention --------------------------------------------------------------------------------------------------------------------------
def attention_calls(t):
    def calls(g):
        mask = torch.rand(1, 1, 4, 6, generator=g) > 0.5
        mask[..., 0, :] = False  # a row in which every key is masked
        v = r(g, 2, 2, 6, 8, dtype=t)
        poisoned = v.clone()
        poisoned[:, :, 5] = nan
        never = mask.clone()
        never[..., 5] = False
        return [(r(g, 2, 2, 4, 8, dtype=t), r(g, 2, 2, 6, 8, dtype=t), v, mask), (r(g, 2, 2, 4, 8, dtype=t), r(g, 2, 2, 6, 8, dtype=t), v, torch.zeros_like(mask))]
    return calls


for t in (f32, f16, bf16):
    @kind(attention_calls(t), name=f"masked_attention_{str(t)[6:]}")
    def _(q, k, v, mask):
        added = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -inf)
        scores = q @ k.transpose(-1, -2) / 8 ** 0.5
        return (F.scaled_dot_product_attention(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, added), F.scaled_dot_product_attention(q, k, v, is_causal=True),
                F.scaled_dot_product_attention(q, k, v, mask, scale=0.3), (scores.masked_fill(~mask, -inf)).softmax(-1), (scores.masked_fill(~mask, -inf)).softmax(-1) @ v,
                (scores + added).softmax(-1).nan_to_num(0) @ v, F.scaled_dot_product_attention(q, k, v, -1e4 * (~mask[..., 3:, :]).to(q.dtype)),
                F.scaled_dot_product_attention(q.repeat(1, 2, 1, 1), k, v, mask, enable_gqa=True), (scores + added).log_softmax(-1), F.scaled_dot_product_attention(q, q, q, is_causal=True))


# ---- pooling, coordinates ----------------------------------------------------------------------------------------------------------------
def with_nan(g, *shape):
    x = r(g, *shape)
    x.view(-1)[::37] = nan
    return x


@kind(lambda g: [(r(g, 2, 3, 7, 9),), (with_nan(g, 2, 3, 7, 9),), (torch.full((2, 3, 7, 9), -inf),)])
def pooling(x):
    out = []
    for k, s, p, c in ((2, 2, 0, True), (3, 2, 1, True), (3, 2, 1, False), ((2, 3), (2, 1), (1, 1), True), (3, 3, 0, True), (4, 3, 2, True), (2, 5, 1, True), (2, 6, 0, True)):
        out += [F.max_pool2d(x, k, s, p, ceil_mode=c), *F.max_pool2d(x, k, s, p, ceil_mode=c, return_indices=True), F.avg_pool2d(x, k, s, p, c), F.avg_pool2d(x, k, s, p, c, False), F.avg_pool2d(x, k, s, p, c, divisor_override=5)]
    one = x[0]
    out += [F.max_pool2d(x, 2, 1, dilation=2), F.max_pool1d(one, 3, 2, 1, ceil_mode=True), F.avg_pool1d(one, 4, 3, 2, True, False), F.avg_pool3d(x, 2, 2, 1, True, False), F.max_pool3d(x, 2, 2, 1, ceil_mode=True),
            F.adaptive_avg_pool2d(x, (3, 4)), F.adaptive_max_pool2d(x, (3, 4)), F.adaptive_avg_pool2d(x, (None, 2)), F.adaptive_avg_pool1d(one, 5), *F.adaptive_max_pool1d(one, 4, True), F.adaptive_avg_pool2d(x, (9, 11)),
            F.lp_pool2d(x.abs(), 2, 3, 2, True), F.adaptive_avg_pool3d(x[None], (2, 3, 4)), F.max_pool2d(x.half(), 3, 2, 1, ceil_mode=True), F.avg_pool2d(x.bfloat16(), 3, 2, 1, True, False),
            F.max_pool2d(x.nan_to_num(0, 0, 0).to(i64), 2, 2, ceil_mode=True), F.avg_pool1d(x.nan_to_num(0, 0, 0).to(i64)[0], 2)]
    return tuple(out)


@kind(lambda g: [(r(g, 2, 2, 5, 7), torch.rand(2, 4, 6, 2, generator=g) * 3 - 1.5)])
def coordinates(x, grid):
    out = []
    for size in ((7, 5), (10, 14), (3, 3), (1, 1), (5, 7), (9, 1)):
        out += [F.interpolate(x, size, mode="nearest"), F.interpolate(x, size, mode="nearest-exact"), F.interpolate(x, size, mode="area")]
        for mode in ("bilinear", "bicubic"):
            out += [F.interpolate(x, size, mode=mode, align_corners=a) for a in (False, True)] + [F.interpolate(x, size, mode=mode, antialias=True) for _ in range(size[1] > 1 or size == (1, 1))]
    for scale in (2.0, 1.5, 0.6, 0.3, (1.7, 0.8)):
        for again in (None, True):
            out += [F.interpolate(x, scale_factor=scale, mode=m, recompute_scale_factor=again) for m in ("nearest", "nearest-exact", "bilinear", "bicubic")]
        out += [F.interpolate(x, scale_factor=scale, mode="bilinear", align_corners=True)]
    for mode in ("bilinear", "nearest", "bicubic"):
        for pad in ("zeros", "border", "reflection"):
            out += [F.grid_sample(x, grid, mode, pad, a) for a in (False, True)]
    line = x[0]
    return (*out, F.interpolate(line, 4, mode="linear"), F.interpolate(line, 11, mode="linear", align_corners=True), F.interpolate(line, scale_factor=2.3, mode="nearest"), F.interpolate(x[None], (3, 8, 4), mode="trilinear"),
            F.interpolate(x[None], (3, 8, 4), mode="nearest"), F.affine_grid(grid[:, :2, :3, 0], (2, 1, 4, 5), False), F.affine_grid(grid[:, :2, :3, 0], (2, 1, 4, 5), True), F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2), F.pixel_unshuffle(x[:, :, :4, :6], 2),
            F.interpolate((x * 20 + 100).to(u8), (4, 9), mode="nearest"))


@kind(lambda g: [(torch.randint(0, 256, (1, 3, 17, 13), generator=g).to(u8), torch.randint(0, 256, (2, 5, 8, 9), generator=g).to(u8)), (torch.randint(0, 2, (1, 3, 17, 13), generator=g).to(u8) * 255, torch.zeros(2, 5, 8, 9, dtype=u8) + 255)])
def images_of_bytes(x, y):
    out = []
    for mode in ("bilinear", "bicubic"):
        for size in ((8, 6), (30, 20), (17, 7), (5, 13)):
            out += [F.interpolate(x, size, mode=mode), F.interpolate(x, size, mode=mode, align_corners=True), F.interpolate(x, size, mode=mode, antialias=True), F.interpolate(y, size, mode=mode), F.interpolate(y, size, mode=mode, antialias=True)]
    return (*out, F.interpolate(x, (8, 6), mode="nearest"), F.interpolate(x, (9, 20), mode="nearest-exact"))


for t in (f16, bf16):
    @kind(lambda g, t=t: [(r(g, 2, 3, 6, 5, dtype=t),)], name=f"resize_{str(t)[6:]}")
    def _(x):
        return (F.interpolate(x, (8, 3), mode="bilinear"), F.interpolate(x, (8, 3), mode="bicubic"), F.interpolate(x, (9, 7), mode="nearest"), F.interpolate(x, scale_factor=0.7, mode="bilinear", align_corners=True),
                F.adaptive_avg_pool2d(x, (4, 3)), F.avg_pool2d(x, 3, 2, 1, True), F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.interpolate(x, (4, 4), mode="area"))


@kind(lambda g: [(r(g, 2, 3, 5, 6),)], exact=True)
def padding(x):
    out = [F.pad(x, p, mode) for mode in ("reflect", "replicate", "circular") for p in ((1, 2, 2, 1), (0, 3, 1, 0), (2, 0, 0, 2))]
    return (*out, F.pad(x, (1, -2, 0, 3), value=2.5), F.pad(x, (-1, -1)), F.pad(x, (0, 0, 1, 1, 2, 2), value=-inf), F.pad(x[0], (1, 1), "reflect"), F.pad(x[0], (2, 1), "circular"), F.pad(x.to(i64), (1, 1), value=7), F.pad(x > 0, (1, 1), value=True))


# ---- indices ---------------------------------------------------------------------------------------------------------------------------
@kind(lambda g: [(r(g, 4, 5, 6), torch.randint(-4, 4, (3,), generator=g), torch.randint(-4, 4, (2, 3), generator=g), r(g, 4, 5, dtype=b1)),
                 (r(g, 4, 5, 6), torch.tensor([-4, 3, -1]), torch.tensor([[-4, 3, 0], [0, 0, -1]]), torch.zeros(4, 5, dtype=b1))], exact=True)
def indices(x, i, j, mask):
    return (x[i], x[:, j], x[i, i], x[i, j], x[i, :, i], x[:, i, 2:], x[None, i], x[..., i], x[i][:, j], x[i, ..., i], x[:, i, j], x[i.unsqueeze(1), :, i], x[mask], x[:, :, 0][mask], x[-1], x[:, -2], x[1:-1, ::2, -3:], x[i.to(i32)],
            torch.take(x, j), x.index_select(1, i.abs()), torch.gather(x, 0, (i.abs() % 4).view(3, 1, 1).expand(3, 5, 6)), torch.take_along_dim(x, x.argsort(dim=2, stable=True), 2), x[[0, -1], [1, 2]], x[torch.tensor(-1)], x[:3][i > 0], torch.narrow(x, 1, -3, 2))


@kind(lambda g: [(r(g, 6, 4), r(g, 5, 4), torch.tensor([0, 2, 2, 5, 0]), torch.randint(0, 6, (5, 4), generator=g)), (r(g, 6, 4), holes(g, 5, 4), torch.tensor([1, 1, 1, 1, 1]), torch.randint(0, 2, (5, 4), generator=g))])
def duplicates(z, v, i, j):
    out = [z.index_add(0, i, v), z.index_add(0, i, v, alpha=2), z.scatter_add(0, j, v), z.index_put((i,), v, True), z.index_put((i, torch.arange(4)[None].expand(5, 4)[:, 0]), v[:, 0], True), torch.zeros(6, 4).index_add(0, i, v.abs())]
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for own in (True, False):
            out += [z.scatter_reduce(0, j, v, how, include_self=own)]
            if how != "sum": out += [z.index_reduce(0, i, v, how, include_self=own)]
    return (*out, z.to(i64).scatter_reduce(0, j, (v.nan_to_num(0, 0, 0) * 3).to(i64), "mean"), z.scatter(0, j, 2.5), z.scatter(0, j, 3.0, reduce="add"), z.scatter(0, j, v, reduce="multiply"), z.index_fill(0, i, 9.0), F.embedding_bag(i.view(1, 5), z, mode="sum"), F.embedding_bag(i, z, torch.tensor([0, 2, 2]), mode="mean"), F.embedding_bag(i, z, torch.tensor([0, 2, 2]), mode="max"))


for t in (f16, bf16):
    @kind(lambda g, t=t: [(r(g, 6, 4, dtype=t), r(g, 5, 4, dtype=t), torch.tensor([0, 2, 2, 5, 0]), torch.randint(0, 6, (5, 4), generator=g))], name=f"duplicates_{str(t)[6:]}")
    def _(z, v, i, j):
        return z.scatter_add(0, j, v), z.index_add(0, i, v), z.index_put((i,), v, True), z.scatter_reduce(0, j, v, "amax"), z.scatter_reduce(0, j, v, "mean"), F.embedding_bag(i.view(1, 5), z, mode="sum")


def bad_index(name, fn, words=("index",)):
    good = lambda g: [(r(g, 4, 5), torch.tensor([i, 0])) for i in (1, 3)]
    kind(good, name=f"index_{name}", refused=[(lambda g, k=k: (r(g, 4, 5), torch.tensor([k, 0])), words) for k in (4, -5, 2**62, -2**63)])(fn)


bad_index("index", lambda x, i: x[i])
bad_index("pair", lambda x, i: x[i, i])
bad_index("put", lambda x, i: torch.index_put(x, (i,), x[:2] * 2))
bad_index("add", lambda x, i: x.index_put((i,), x[:2], True))
for name, fn in {"select": lambda x, i: x.index_select(0, i), "copy": lambda x, i: x.index_copy(0, i, x[2:]), "index_add": lambda x, i: x.index_add(0, i, x[:2]), "fill": lambda x, i: x.index_fill(0, i, 0.0),
                 "gather": lambda x, i: torch.gather(x, 0, i.view(2, 1)), "scatter": lambda x, i: x.scatter(0, i.view(2, 1), x[:2, :1]), "scatter_value": lambda x, i: x.scatter(0, i.view(2, 1), 1.0),
                 "scatter_add": lambda x, i: x.scatter_add(0, i.view(2, 1), x[:2, :1]), "scatter_reduce": lambda x, i: x.scatter_reduce(0, i.view(2, 1), x[:2, :1], "amax"), "embedding": lambda x, i: F.embedding(i, x),
                 "bag": lambda x, i: F.embedding_bag(i.view(1, 2), x), "one_hot": lambda x, i: F.one_hot(i, 4) * x.sum(), "reduce": lambda x, i: x.index_reduce(0, i, x[:2], "amin")}.items():
    bad_index(name, fn, ())
kind(lambda g: [(r(g, 4, 5), torch.tensor([1, -20, 19]))], name="index_take", refused=[(lambda g: (r(g, 4, 5), torch.tensor([20, 0, 0])), ()), (lambda g: (r(g, 4, 5), torch.tensor([-21, 0, 0])), ())])(lambda x, i: torch.take(x, i))
kind(lambda g: [(r(g, 2, 3), torch.tensor([1, 0]))], name="index_nll", refused=[(lambda g: (r(g, 2, 3), torch.tensor([3, 0])), ()), (lambda g: (r(g, 2, 3), torch.tensor([-1, 0])), ())])(lambda x, i: F.nll_loss(x, i, ignore_index=-100))
kind(lambda g: [(torch.tensor([7, -7]), torch.tensor([2, -2]))], name="divide_by_zero", refused=[(lambda g: (torch.tensor([7, 7]), torch.tensor([0, 1])), ("zero",))])(lambda a, b: (a // b, a % b))


# ---- views, overlap, broadcasting ---------------------------------------------------------------------------------------------------------
@kind(lambda g: [(r(g, 6, 8), r(g, 8))])
def writes_to_views(x, v):
    z = x.clone()
    z[1:4, ::3] += 1
    z.t()[2:4].mul_(2)
    z[:, 1].copy_(z[:, 0])
    z.view(3, 16)[1].zero_()
    z[2] = v
    z[4:].add_(v)
    z.diagonal()[1:].fill_(5)
    z[..., -1] = z[..., 0] + z[..., 1]
    rows = z[[0, 1]]
    rows.zero_()
    z[z > 8] = 8.0
    z[[3, 5]] = v * 2
    z.narrow(1, 2, 2).clamp_(-1, 1)
    z.select(0, 0).sub_(z[1])
    a, b = z.split(3)
    a[0].copy_(b[2])
    b.mul_(a)
    z.movedim(0, 1)[0].exp_()
    z.unsqueeze(0).squeeze().transpose(0, 1)[3] = 7
    n = z.to(i64)
    n[0] = z[1]
    n.view(-1)[::5] |= 3
    return z, rows, n, a * 1, z.t().contiguous(), z.view(2, 3, 8).permute(2, 0, 1).reshape(8, -1)


@kind(lambda g: [(r(g, 6, 8),)])
def writes_to_windows(x):
    z = x.clone()
    w = z.unfold(1, 4, 4)
    w[0].neg_()
    z.as_strided((2, 3), (8, 2), 3).add_(10)
    z.view(-1).as_strided((4,), (9,), 2).mul_(2)
    z.real.add_(0.5)
    return z, w.sum(-1), z.t()


@kind(lambda g: [(r(g, 24), r(g, 3, 4))])
def overlap(x, y):
    return (x.as_strided((4, 5), (2, 3), 1), x.as_strided((3, 3, 2), (1, 1, 0)), x.as_strided((5,), (0,), 7), x.unfold(0, 6, 2), y.unfold(1, 2, 1).unfold(0, 2, 1), y.expand(2, 3, 4), y[:, :1].expand(3, 5), y.t().as_strided((4, 2), (1, 4), 2),
            y[:, None].expand(3, 2, 4).reshape(6, 4), x.view(4, 6)[::2, 1::2].as_strided((2, 2), (3, 2)), x.as_strided((2, 2, 6), (0, 6, 1)).sum((1, 2)), y.expand(2, 3, 4).clone().add_(1), y.flip(0, 1), y.T[1:3].flatten(), x.as_strided((0, 3), (1, 1)),
            x.as_strided((4, 6), (6, 1))[:, 2:].view_as(x.view(4, 6)[:, 2:]), F.unfold(x.view(1, 1, 4, 6), (2, 3), stride=(1, 2), padding=(1, 0)), torch.as_strided_copy(x, (2, 3), (5, 2)), torch.diagonal_copy(y, 1), x.as_strided_scatter(y[:2, :3], (2, 3), (6, 2), 1),
            y.slice_scatter(y[:2] * 2, 0, 1, 3), y.select_scatter(y[0] + 1, 0, 2), y.diagonal_scatter(y[0, :3], 1))


@kind(lambda g: [(r(g, 3, 1, 4), r(g, 5, 1), r(g), r(g, 2, 1, 5, 4, dtype=b1))])
def broadcast(a, b, s, m):
    z = torch.zeros(3, 5, 4)
    z += a
    z *= b
    z.copy_(a + s)
    z.masked_fill_(m[0], 2.0)
    z[1] = b
    z[:, 2] = s
    z.add_(b, alpha=2)
    return (z, a + b, a * s, torch.where(m, a, b), torch.where(m, s, b), a.masked_fill(m[0], s), m & (a > 0), torch.matmul(a.expand(3, 2, 4), r_const(4, 6)), torch.matmul(r_const(2, 1, 3, 4), r_const(5, 4, 2)), torch.addmm(b, r_const(5, 3), r_const(3, 4)),
            torch.addmm(s, r_const(5, 3), r_const(3, 4), beta=0.5, alpha=2), torch.baddbmm(a[:, :, :1], r_const(3, 5, 2), r_const(3, 2, 4)), torch.addcmul(a, b, s, value=3), torch.lerp(a, b, s), torch.maximum(a, b), a < b, torch.atan2(a, b), *torch.broadcast_tensors(a, b, s),
            torch.max(a, b), a.expand(2, 3, 5, 4).sum(0), torch.addmm(torch.full((4,), nan), r_const(5, 3), r_const(3, 4), beta=0), a.clamp(b, s + 2), torch.outer(b[:, 0], b[:, 0]), torch.pow(a.abs(), b), torch.addbmm(b, r_const(2, 5, 3), r_const(2, 3, 4)))


@kind(lambda g: [(r(g, 4, 6), r(g, 1, 2, 5, 5)), (r(g, 6, 4).t(), r(g, 1, 5, 5, 2).permute(0, 3, 1, 2)), (r(g, 4, 13)[:, 1::2], r(g, 2, 2, 5, 10)[1:, :, :, 3:8]), (r(g, 4, 1).expand(4, 6), r(g, 1, 1, 5, 1).expand(1, 2, 5, 5))])
def strided_inputs(x, image):
    y = x.clone()
    y[1] += x[0]
    return x + 1, x.reshape(2, 12), x @ r_const(6, 3), x.sum(0), x.t().flatten(), F.conv2d(image, r_const(3, 2, 3, 3)), F.max_pool2d(image, 2), image.mean((2, 3)), y, x.softmax(1), F.layer_norm(x + r_const(6), (6,)), image.flatten(1), x[1:, ::2], x.cumsum(1), x.sort(1)[0], x.argmax(0), torch.cat([x, x.flip(1)])


# ---- control flow -----------------------------------------------------------------------------------------------------------------------
@kind(lambda g: [(r(g, 3, 4) + k, r(g, 4)) for k in (3, -3, 0)])
def nested_cond(x, y):
    def inner(a, b):
        return torch.cond(a.max() > 4, lambda a, b: (a * b, b + 1), lambda a, b: (a - b, b * 2), (a, b))
    return torch.cond(x.sum() > 0, inner, lambda a, b: (a + b, b.clone()), (x, y))


@kind(lambda g: [(torch.tensor(n), r(g, 3)) for n in (0, 1, 5, 12)])
def counted_loop(n, x):
    def body(i, a, s):
        return i - 1, a * 0.5 + i, torch.cond(i % 2 == 0, lambda s, a: s + a.sum(), lambda s, a: s - a.sum(), (s, a))
    return while_loop(lambda i, a, s: i > 0, body, (n, x, torch.zeros(())))


@kind(lambda g: [(torch.tensor(n), r(g, 2, 2)) for n in (0, 2, 3)])
def loop_in_loop(n, x):
    def outer(i, a):
        j, b = while_loop(lambda j, b: j < 3, lambda j, b: (j + 1, b + a.mean() * j), (torch.zeros((), dtype=i64), a))
        return i + 1, b * 0.5
    return while_loop(lambda i, a: i < n, outer, (torch.zeros((), dtype=i64), x))


@kind(lambda g: [(r(g, 3, 4),), (r(g, 3, 4) * 100,)])
def loop_until(x):
    return while_loop(lambda a, n: (a.abs().max() > 0.01) & (n < 40), lambda a, n: (a / 2, n + 1), (x, torch.zeros((), dtype=i64)))


@kind(lambda g: [(r(g, 3), r(g, 5, 3), r(g, 5, 3)), (r(g, 3), r(g, 1, 3), r(g, 1, 3))], dims=(None, {0: Dim("steps", min=1, max=20)}, {0: Dim("steps", min=1, max=20)}))
def scans(h, xs, ys):
    def step(h, xy):
        x, y = xy
        n = torch.tanh(h * 0.5 + x) + y
        return n, (n * 2, h.sum())
    last, (a, b) = scan(step, h, (xs, ys))
    back, (c, d) = scan(step, h, (xs, ys), reverse=True)
    return last, a, b, back, c, d


@kind(lambda g: [(r(g, 4, 6), r(g, 4, 6)), (holes(g, 4, 6), r(g, 4, 6))])
def associative(x, y):
    def linear(p, q):
        return p[0] * q[0], p[1] * q[0] + q[1]
    out = [associative_scan(torch.add, x, 0, combine_mode="generic"), associative_scan(lambda a, b: a * b, x, 1, combine_mode="generic", reverse=True), associative_scan(torch.maximum, x, 1, combine_mode="generic")]
    return (*out, *associative_scan(linear, (x, y), 0, combine_mode="generic"), *associative_scan(linear, (x, y), 1, reverse=True, combine_mode="generic"))


@kind(lambda g: [(r(g, n, 3), r(g, 3)) for n in (4, 1, 7)], dims=({0: Dim("rows", min=1, max=9)}, None))
def maps(x, y):
    def row(a, b):
        return torch.cond(a.sum() > 0, lambda a, b: a + b, lambda a, b: a * b, (a, b)), a.max()
    return map_over(row, x, y)


@kind(lambda g: [(r(g, 4, 3, 2), r(g, 2))])
def scan_in_map(x, h):
    return map_over(lambda rows, h: scan(lambda c, r: (c + r, c * r), h, rows), x, h)


class LoopWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 3)
        self.register_buffer("shift", torch.tensor([0.1, 0.2, 0.3]))

    def forward(self, x, n):
        return while_loop(lambda i, h: i < n, lambda i, h: (i + 1, self.cell(x, h) + self.shift), (torch.zeros((), dtype=i64), x * 0))


kind(lambda g: [(r(g, 2, 3), torch.tensor(n)) for n in (0, 1, 4)], name="loop_weights")(LoopWeights)


@kind(lambda g: [(r(g, n, 3), r(g, 3)) for n in (2, 5, 9)], dims=({0: Dim("rows", min=2, max=12)}, None))
def cond_sizes(x, y):
    a = torch.cond(x.shape[0] > 4, lambda x, y: x.sum(0) + y, lambda x, y: x.mean(0) * y, (x, y))
    b = torch.cond(x[0].sum() > y.sum(), lambda x: (x * 2, x[:1] + 0), lambda x: (x - 1, x[-1:] * 1), (x,))
    return a, *b, torch.cond((x > 0).any() & (y > 0).all(), lambda x: x.argmax(), lambda x: x.argmin(), (x,))


def loop_types(t):
    @kind(lambda g: [(r(g, 2, 3, dtype=t), torch.tensor(n)) for n in (0, 1, 6)], name=f"loop_{str(t)[6:]}")
    def _(x, n):
        return while_loop(lambda i, a, seen: i < n, lambda i, a, seen: (i + 1, a * 3 + i.to(t), seen | (a > 2)), (torch.zeros((), dtype=i64), x, torch.zeros(2, 3, dtype=b1)))

    @kind(lambda g: [(r(g, 2, dtype=t), r(g, 5, 2, dtype=t))], name=f"scan_{str(t)[6:]}")
    def _(h, xs):
        last, ys = scan(lambda h, x: (h + x, torch.maximum(h, x) * 2), h, xs)
        back, zs = scan(lambda h, x: ({"a": h["a"] * 2 - x, "b": h["b"] + 1}, {"c": x + h["a"]}), {"a": h, "b": torch.zeros((), dtype=i64)}, xs, reverse=True)
        return last, ys, back["a"], back["b"], zs["c"], associative_scan(lambda a, b: a + b, xs, 0, combine_mode="generic"), associative_scan(torch.minimum, xs, 0, reverse=True, combine_mode="generic")


for t in (f16, bf16, i64, i32, i8, u8): loop_types(t)


@kind(lambda g: [(r(g, 3, 4, 2), torch.tensor(n), r(g, 2)) for n in (0, 2)])
def cond_in_scan_in_loop(xs, n, h):
    def step(h, x):
        h = torch.cond(x.sum() > 0, lambda h, x: h + x.sum(0), lambda h, x: h * 0.5 - x.mean(0), (h, x))
        return h, h.sum()
    def body(i, h, total):
        last, sums = scan(step, h, xs)
        return i + 1, last * 0.3, total + sums
    return while_loop(lambda i, h, total: i < n, body, (torch.zeros((), dtype=i64), h, torch.zeros(3)))


@kind(lambda g: [(few(g, 7), r(g, 3)), (torch.zeros(7, dtype=i64), r(g, 3))])
def loop_over_found(x, h):
    found = x.nonzero()[:, 0]
    return while_loop(lambda i, h: i < x.count_nonzero(), lambda i, h: (i + 1, h * 0.5 + i), (torch.zeros((), dtype=i64), h)), found.sum(), x[found].sum()


@kind(lambda g: [(r(g, 4, 3), r(g, 4, 2), r(g, 3))])
def map_trees(x, y, w):
    def row(leaves, w):
        return {"s": (leaves["x"] * w).sum() + leaves["y"], "m": [leaves["x"].max(), leaves["y"].flip(0)]}
    a = map_over(row, {"x": x, "y": y}, w)
    return a["s"], *a["m"], map_over(lambda r, w: map_over(lambda e, w: e * w.sum() + w[0], r, w), x, w)


# ---- state --------------------------------------------------------------------------------------------------------------------------------
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", torch.zeros(()))
        self.register_buffer("n", torch.zeros(3, dtype=i64))
        self.register_buffer("seen", torch.zeros(3, dtype=b1))

    def forward(self, x):
        self.c.add_(1)
        self.n += (x > 0).long()
        self.seen.logical_or_(x < 0)
        return x + self.c, self.n.clone(), self.seen * 1


kind(lambda g: [(torch.full((3,), 10.0),)] + [(r(g, 3),) for _ in range(4)], name="counter", steps=True)(Counter)


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 6, 2))
        self.register_buffer("length", torch.zeros((), dtype=i64), persistent=False)

    def forward(self, x, at):
        self.k[:, at] = x
        self.length.copy_(at.max() + 1)
        mask = torch.arange(6) < self.length
        return (self.k * mask[None, :, None]).sum(1), torch.softmax((x @ self.k.transpose(1, 2)).masked_fill(~mask, -inf), -1)


kind(lambda g: [(r(g, 1, 1, 2), torch.tensor([k])) for k in (0, 1, 2, 2, 3, 0)], name="cache", steps=True)(Cache)


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ring", torch.arange(8.0).reshape(4, 2))
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        self.ring.copy_(torch.cat([self.ring[1:], x]))
        self.ring[0].mul_(0.5)
        return self.norm(self.ring), self.ring.t()


kind(lambda g: [(r(g, 1, 2),) for _ in range(5)], name="ring", steps=True)(Ring)


class TrainNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(x)


kind(lambda g: [(r(g, 4, 3) * 2 + 1,) for _ in range(3)], name="train_norm", steps=True)(TrainNorm)


@kind(lambda g: [(r(g, 3, 4), r(g, 3, 4), torch.tensor([2, 0])) for _ in range(2)], steps=True)
def writes_inputs(x, y, i):
    x.add_(1)
    y[i] = x[:2]
    y.t()[0].mul_(2)
    return x * y, y[1]


# ---- sizes that depend on data -----------------------------------------------------------------------------------------------------------
@kind(lambda g: [(few(g, 6, 3).float(), few(g, 9)), (torch.zeros(6, 3), torch.zeros(9, dtype=i64)), (torch.ones(6, 3), torch.arange(9))])
def data_sizes(x, n):
    at = x.nonzero()
    picked = torch.masked_select(x, x > 0)
    u, inverse, counts = torch.unique(n, return_inverse=True, return_counts=True)
    rows = x[x.sum(1) > 0]
    first, times = torch.unique_consecutive(n, return_counts=True)
    rep = torch.repeat_interleave(n, n.abs() % 3)
    return (at, picked, picked.sum(), u, inverse, counts, rows, rows.sum(0), rows @ torch.ones(3, 2), rows.softmax(1), first, times, rep, torch.cat([picked, picked * 2]), rows.reshape(-1), x[at[:, 0]], torch.nonzero(n, as_tuple=True)[0], rows.cumsum(0), picked.sort()[0],
            torch.arange(picked.shape[0]), torch.zeros(picked.shape[0], 2), F.relu(rows).mean(1), torch.argwhere(x > 0), F.pad(picked, (1, 1)))


@kind(lambda g: [(torch.tensor(k), r(g, 8)) for k in (3, 0, 8, 1)], refused=[(lambda g: (torch.tensor(9), r(g, 8)), ()), (lambda g: (torch.tensor(-1), r(g, 8)), ())])
def data_length(k, x):
    n = k.item()
    torch._check(n >= 0)
    torch._check(n <= 8)
    return x[:n], torch.arange(n), torch.ones(n, 2) * n, x.narrow(0, 0, n) * 2, torch.cat([x[:n], x]), torch.full((n,), 2.5), x[:n].sum(), x[:n].view(n, 1) @ torch.ones(1, 3), x + n


@kind(lambda g: [(torch.tensor([2, 3, 1]), r(g, 6, 2)), (torch.tensor([0, 6, 0]), r(g, 6, 2))])
def data_split(sizes, x):
    a, b, c = sizes.tolist()
    for s in (a, b, c): torch._check(s >= 0)
    torch._check(a + b + c == 6)
    p, q, w = x.split([a, b, c])
    return p, q.sum(0), w * 2, torch.cat([w, q, p])


@kind(lambda g: [(torch.tensor(k), torch.tensor(m), r(g, 10)) for k, m in ((3, 2), (1, 1), (5, 5), (2, 0))])
def data_arithmetic(k, m, x):
    a, b = k.item(), m.item()
    torch._check(a >= 1)
    torch._check(b >= 0)
    torch._check(a <= 5)
    torch._check(b <= a)
    y = torch.arange(2 * a + b)
    return y, torch.zeros(a, b + 1), x[b : b + a], torch.full((a * 2,), 1.5), y.reshape(1, -1) * a + b, torch.ones(a, 3).sum(0), x.narrow(0, b, a), x[a], torch.cat([y[:a], y[b:]]), x.expand(a, 10).sum(0), F.pad(x, (a, b)), x * (a / 2) + b // 2, torch.ones(b).sum(), (torch.arange(a)[:, None] @ torch.ones(1, 2, dtype=i64))


@kind(lambda g: [(r(g, 6, 4), few(g, 6, 2)), (torch.zeros(6, 4), torch.zeros(6, 2, dtype=i64)), (torch.ones(6, 4), torch.arange(12).view(6, 2))])
def data_masks(x, n):
    keep = x > 0.3
    rows = keep.any(1)
    z = x.clone()
    z[keep] = 0
    z[rows] += 1
    where = torch.where(n > 0)
    u, inverse = torch.unique(n, dim=0, return_inverse=True)
    v = torch.unique(x)
    picked = x[rows]
    sorted_rows = torch.sort(picked, dim=0, stable=True)[0]
    return (z, *where, u, inverse, v, picked.t() @ picked, sorted_rows, picked.amax(1), F.linear(picked, torch.ones(2, 4)), torch.bincount(n.flatten().abs()), x[:, 0].repeat_interleave(n[:, 0].abs()), torch.stack([picked, picked], 1).flatten(0, 1), picked.unsqueeze(1).expand(-1, 2, -1).sum((0, 1)),
            x.index_put((rows.nonzero()[:, 0],), torch.tensor(5.0)), torch.masked_select(x, rows[:, None]), torch.nonzero_static(n.flatten(), size=5, fill_value=-1), x.masked_scatter(keep, torch.arange(24.0)), n[n != 0].float().mean(), (n[n > 0] % 2).cumsum(0))


@kind(lambda g: [(r(g, 5, 3), n, 0.5) for n in (2, 3, 7)], dims=(None, Dim.DYNAMIC, None))
def number_inputs(x, n, scale):
    return x * n, x.sum() + n // 2, torch.arange(n), torch.full((n, 2), scale), x.repeat(n, 1), x * scale


# ---- symbolic sizes ----------------------------------------------------------------------------------------------------------------------
batch, length = Dim("batch", min=0, max=16), Dim("length", min=1, max=32)


@kind(lambda g: [(r(g, b, s, 4),) for b, s in ((3, 5), (1, 1), (0, 2), (16, 32), (2, 1))], dims=({0: batch, 1: length},),
      refused=[(lambda g: (r(g, 17, 5, 4),), ("dimension 0", "17", "16")), (lambda g: (r(g, 2, 33, 4),), ("dimension 1", "33", "32")), (lambda g: (r(g, 2, 0, 4),), ("dimension 1", "0", "1 to 32")), (lambda g: (r(g, 2, 5, 3),), ("dimension 2", "3", "4"))])
def sizes(x):
    b, s, d = x.shape
    return (x.reshape(b * s, d), x.view(b, s * d), x.transpose(0, 1).reshape(s, -1), x + torch.arange(s)[:, None], torch.zeros(b, s), x.sum(0), x.mean(1), x.flatten(1), torch.cat([x, x], 1), x @ torch.ones(d, 2), x[:, -1], x * s + b,
            torch.full((b, 1), s), x.unsqueeze(2).expand(b, s, 3, d), torch.arange(b * s).view(b, s), torch.ones(s, s).tril() @ x, F.pad(x, (0, 0, 1, 2)), x.repeat(2, 1, 1), torch.stack([x, x], 2).view(b, s * 2, d), x.cumsum(1), x.softmax(-1), x.numel() + x[..., 0], x.permute(2, 0, 1).contiguous(),
            x.roll(1, 1), x.flip(1), F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], is_causal=True), x.chunk(2, 2)[1], F.layer_norm(x, (4,)), x.topk(1, 1)[0], x.argmax(1), F.interpolate(x.transpose(1, 2), scale_factor=2.0), F.avg_pool1d(x, 2))


even = Dim("half", min=1, max=8)


@kind(lambda g: [(r(g, 2 * n, 3), r(g, n)) for n in (3, 2, 8)], dims=({0: 2 * even}, {0: even}),
      refused=[(lambda g: (r(g, 5, 3), r(g, 2)), ("dimension 0", "5")), (lambda g: (r(g, 18, 3), r(g, 9)), ("dimension 0 is 9", "1 to 8")), (lambda g: (r(g, 4, 3), r(g, 3)), ("dimension 0 is 4", "must be 6", "is 3"))])
def even_sizes(x, y):
    return x.view(-1, 2, 3).sum(1) + y[:, None], x[::2]


@kind(lambda g: [(r(g, n, 3), r(g, n + 1, 3)) for n in (3, 2, 9)], dims=({0: Dim("n", min=2, max=9)}, {0: Dim("n", min=2, max=9) + 1}), refused=[(lambda g: (r(g, 4, 3), r(g, 4, 3)), ("dimension 0", "4", "5")), (lambda g: (r(g, 10, 3), r(g, 11, 3)), ("dimension 0", "10", "2 to 9"))])
def one_more(x, y):
    return y[1:] - x, torch.cat([x, y]), y[:-1] * x


@kind(lambda g: [(r(g, n, 4),) for n in (6, 4, 12)], dims=({0: Dim.AUTO},), refused=[(lambda g: (r(g, 7, 4),), ("7", "dimension 0")), (lambda g: (r(g, 4, 5),), ("dimension 1", "5", "4"))])
def divisible(x):
    a = x.view(2, -1, 4)
    return a.sum(0), a[0] @ a[1].t()


@kind(lambda g: [(r(g, n, 4), r(g, m, 4)) for n, m in ((5, 3), (2, 2), (9, 8), (3, 2))], dims=({0: Dim.AUTO}, {0: Dim.AUTO}), refused=[(lambda g: (r(g, 2, 4), r(g, 3, 4)), ("dimension 0", "2", "3"))])
def not_longer(x, y):
    if y.shape[0] <= x.shape[0]:
        return x[: y.shape[0]] + y
    return x.sum(0), y


@kind(lambda g: [(r(g, 1, 2, h, w),) for h, w in ((9, 11), (4, 4), (16, 5))], dims=({2: Dim("h", min=4, max=32), 3: Dim("w", min=4, max=32)},), refused=[(lambda g: (r(g, 1, 2, 3, 9),), ("dimension 2", "3", "4 to 32"))])
def image_sizes(x):
    y = F.conv2d(x, r_const(3, 2, 3, 3), stride=2, padding=1)
    up = F.interpolate(y, x.shape[2:], mode="bilinear")
    return y, up, F.max_pool2d(x, 3, 2, 1), F.adaptive_avg_pool2d(x, 3), F.conv_transpose2d(y, r_const(3, 2, 2, 2), stride=2), F.interpolate(x, scale_factor=0.5), F.interpolate(x, scale_factor=1.5, mode="bicubic"), F.unfold(x, 2), F.pad(x, (1, 1, 1, 1), "reflect"), F.group_norm(x, 1), F.avg_pool2d(x, 2)
