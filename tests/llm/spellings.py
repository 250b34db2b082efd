"""Causal language models as people write them, knowing nothing of transformers nor of ait. GOOD must be cached; LOOKS_LIKE must be refused.

A model is a function without arguments that makes the module; its forward takes token ids [batch, length]."""

import math

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LONGEST = 61, 96


class RMSNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Mlp(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Swiglu(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.w1, self.w2, self.w3 = (nn.Linear(size, 2 * size, bias=False), nn.Linear(2 * size, size, bias=False), nn.Linear(size, 2 * size, bias=False))

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


# ---- one attention spelled in many ways: q, k, v are [b, h, s, d] -------------------------------------------------------------------------
def is_causal(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def sdpa_tril(q, k, v, m):
    s = q.shape[2]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tril(torch.ones(s, s, dtype=torch.bool)))


def sdpa_float(q, k, v, m):
    s = q.shape[2]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.full((s, s), float("-inf")).triu(1), scale=0.4)


def sdpa_gqa(q, k, v, m):
    return F.scaled_dot_product_attention(q, k[:, ::2], v[:, ::2], is_causal=True, enable_gqa=True)


def tril_buffer(q, k, v, m):
    s = q.shape[2]
    w = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(k.size(-1)))
    w = w.masked_fill(m.tril[:, :, :s, :s] == 0, float("-inf"))
    return F.softmax(w, dim=-1) @ v


def minus_1e9(q, k, v, m):
    s = q.shape[2]
    w = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    return torch.softmax(w.masked_fill(~m.tril[:, :, :s, :s].bool(), -1e9), -1) @ v


def minus_1e4(q, k, v, m):
    s = q.shape[2]
    w = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    return torch.softmax(w + (1.0 - m.tril[:, :, :s, :s].float()) * -10000.0, -1) @ v


def times_mask(q, k, v, m):
    s = q.shape[2]
    b = m.tril[:, :, :s, :s].float()
    w = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    return torch.softmax(w * b + -1e4 * (1 - b), -1) @ v


def times_mask_1e10(q, k, v, m):
    s = q.shape[2]
    b = torch.tril(torch.ones(s, s))[None, None]
    w = torch.matmul(q, k.transpose(-2, -1)) * 0.35
    w = w * b - 1e10 * (1 - b)
    return torch.softmax(w, -1) @ v


def where_less(q, k, v, m):
    at = torch.arange(q.shape[2])
    w = torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.3
    return torch.einsum("bhqk,bhkd->bhqd", torch.softmax(torch.where(at[None, :] > at[:, None], -torch.inf, w), -1), v)


def where_min(q, k, v, m):
    at = torch.arange(q.shape[2])
    w = torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.3
    return torch.softmax(torch.where(at[:, None] >= at, w, torch.finfo(torch.float32).min), -1) @ v


def window_compare(q, k, v, m):
    at = torch.arange(q.shape[2])
    far = at[:, None] - at[None, :]
    w = (q @ k.mT) * 0.3
    return torch.softmax(w.masked_fill((far < 0) | (far >= 5), -math.inf), -1) @ v


def window_bands(q, k, v, m):
    s = q.shape[2]
    band = torch.ones(s, s, dtype=torch.bool).tril().triu(-3)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=band)


def window_difference(q, k, v, m):
    s = q.shape[2]
    band = torch.tril(torch.ones(s, s)) - torch.tril(torch.ones(s, s), -6)
    return torch.softmax((q @ k.mT * 0.3).masked_fill(band == 0, -1e9), -1) @ v


def heads_last(q, k, v, m):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    s = q.shape[1]
    w = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    w = w + torch.triu(torch.full((s, s), float("-inf")), diagonal=1)
    return torch.einsum("bhqk,bkhd->bqhd", F.softmax(w.float(), -1).type_as(q), v).transpose(1, 2)


def heads_flat(q, k, v, m):
    b, h, s, d = q.shape
    q, k, v = (x.reshape(b * h, s, d) for x in (q, k, v))
    mask = torch.full((s, s), -1e30).triu(1)
    return torch.bmm(torch.softmax(torch.baddbmm(mask[None], q, k.transpose(1, 2), beta=1.0, alpha=0.3), -1), v).view(b, h, s, d)


def keys_first(q, k, v, m):
    s = q.shape[2]
    w = torch.einsum("bhkd,bhqd->bhkq", k, q) * 0.3  # scores turned: keys before queries
    w = w.masked_fill(torch.ones(s, s, dtype=torch.bool).tril(-1), float("-inf"))
    return torch.einsum("bhkq,bhkd->bhqd", torch.softmax(w, -2), v)


def own_softmax(q, k, v, m):
    s = q.shape[2]
    w = (q @ k.mT) * 0.3
    w = w.masked_fill(m.tril[:, :, :s, :s] == 0, float("-inf"))
    e = torch.exp(w - w.max(dim=-1, keepdim=True).values)
    return (e / e.sum(-1, keepdim=True)) @ v


def divided_late(q, k, v, m):
    s = q.shape[2]
    w = (q @ k.mT) * 0.3
    e = torch.exp(w - w.amax(-1, keepdim=True)) * m.tril[:, :, :s, :s]
    return (e @ v) / e.sum(-1, keepdim=True)


def softmax_then_mask(q, k, v, m):
    s = q.shape[2]
    p = torch.softmax((q @ k.mT) * 0.3, -1) * m.tril[:, :, :s, :s]
    return (p / p.sum(-1, keepdim=True)) @ v


def half_mask(q, k, v, m):
    s = q.shape[2]
    mask = torch.full((s, s), torch.finfo(torch.bfloat16).min, dtype=torch.bfloat16).triu(1)
    return torch.softmax((q @ k.mT).float() * 0.3 + mask, -1).to(q.dtype) @ v


def scaled_operands(q, k, v, m):
    s = q.shape[2]
    root = q.shape[-1] ** -0.25
    return F.scaled_dot_product_attention(q * root, k * root, v, attn_mask=m.tril[0, 0, :s, :s].bool(), scale=1.0)


def soft_cap(q, k, v, m):
    s = q.shape[2]
    w = torch.tanh((q @ k.mT) * 0.3 / 2.0) * 2.0
    return torch.softmax(w.masked_fill(m.tril[:, :, :s, :s] == 0, float("-inf")), -1) @ v


def sinks(q, k, v, m):
    b, h, s, _ = q.shape
    w = (q @ k.mT * 0.3).masked_fill(m.tril[:, :, :s, :s] == 0, float("-inf"))
    sink = m.sink.view(1, -1, 1, 1).expand(b, -1, s, 1)
    return torch.softmax(torch.cat((sink, w), -1), -1)[..., 1:] @ v


def plus_one(q, k, v, m):
    s = q.shape[2]
    w = (q @ k.mT * 0.3).masked_fill(m.tril[:, :, :s, :s] == 0, float("-inf"))
    top = w.amax(-1, keepdim=True).clamp(min=0)
    e = torch.exp(w - top)
    return (e / (torch.exp(-top) + e.sum(-1, keepdim=True))) @ v


def alibi(q, k, v, m):
    s, h = q.shape[2], q.shape[1]
    slopes = torch.tensor([2.0 ** (-8.0 * (i + 1) / h) for i in range(h)])
    at = torch.arange(s)
    bias = (at[None, :] - at[:, None])[None] * slopes[:, None, None]
    return torch.softmax((q @ k.mT * 0.3 + bias).masked_fill(m.tril[:, :, :s, :s] == 0, float("-inf")), -1) @ v


def alibi_keys(q, k, v, m):
    s, h = q.shape[2], q.shape[1]
    slopes = torch.tensor([2.0 ** (-8.0 * (i + 1) / h) for i in range(h)])
    return torch.softmax((q @ k.mT * 0.3 + slopes[:, None, None] * torch.arange(s)).masked_fill(m.tril[:, :, :s, :s] == 0, float("-inf")), -1) @ v


def value_wider(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, torch.cat((v, v * v, v + 1), -1), is_causal=True)[..., 4:12]


def one_by_one(q, k, v, m):
    return torch.stack([F.scaled_dot_product_attention(q[:, i], k[:, i], v[:, i], is_causal=True) for i in range(q.shape[1])], 1)


def shared_key(q, k, v, m):
    return F.scaled_dot_product_attention(q, k[:, :1].expand(-1, q.shape[1], -1, -1), v[:, :1].expand(-1, q.shape[1], -1, -1), is_causal=True)


def repeated(q, k, v, m):
    k, v = (x[:, :2].repeat_interleave(q.shape[1] // 2, dim=1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def tiled(q, k, v, m):
    k, v = (x[:, :2].repeat(1, q.shape[1] // 2, 1, 1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def grouped_queries(q, k, v, m):
    b, h, s, d = q.shape
    q = q.view(b, h // 2, 2, s, d)
    w = q @ k[:, ::2].unsqueeze(2).mT * 0.3
    w = w.masked_fill(m.tril[:, :, :s, :s] == 0, float("-inf"))
    return (torch.softmax(w, -1) @ v[:, ::2].unsqueeze(2)).reshape(b, h, s, d)


# ---- positions: x is [b, h, s, d] ------------------------------------------------------------------------------------------------------------
def angles(d, s, base=100.0):
    return torch.outer(torch.arange(s).float(), base ** (-torch.arange(0, d, 2).float() / d))


def no_turn(x, m):
    return x


def complex_turn(x, m):
    b, h, s, d = x.shape
    pairs = torch.view_as_complex(x.float().reshape(b, h, s, d // 2, 2))
    return torch.view_as_real(pairs * m.freqs_cis[:s]).flatten(3).type_as(x)


def complex_turn_here(x, m):
    b, h, s, d = x.shape
    a = angles(d, s)
    pairs = torch.view_as_complex(x.float().reshape(b, h, s, d // 2, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(a), a)).flatten(3)


def halves(x, m):
    s = x.shape[2]
    a, b = x.chunk(2, -1)
    return torch.cat((a * m.cos[:s] - b * m.sin[:s], b * m.cos[:s] + a * m.sin[:s]), -1)


def halves_where(x, m):
    at = torch.arange(x.shape[2])
    cos, sin = m.cos[at], m.sin[at]
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((a, b), -1) * torch.cat((cos, cos), -1) + torch.cat((-b, a), -1) * torch.cat((sin, sin), -1)


def pairs_stacked(x, m):
    s = x.shape[2]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * m.cos[:s] - b * m.sin[:s], a * m.sin[:s] + b * m.cos[:s]), -1).flatten(-2)


def pairs_written(x, m):
    s = x.shape[2]
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * m.cos[:s] - x[..., 1::2] * m.sin[:s]
    out[..., 1::2] = x[..., 0::2] * m.sin[:s] + x[..., 1::2] * m.cos[:s]
    return out


def pairs_swapped(x, m):
    s = x.shape[2]
    cos, sin = (t[:s].repeat_interleave(2, -1) for t in (m.cos, m.sin))
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)
    return x * cos + turned * sin


def partial(x, m):
    a, rest = x[..., :4], x[..., 4:]
    c, s = angles(4, x.shape[2]).cos(), angles(4, x.shape[2]).sin()
    l, r = a.chunk(2, -1)
    return torch.cat((l * c - r * s, r * c + l * s, rest), -1)


def turned_by_matrix(x, m):
    s, d = x.shape[2], x.shape[3]
    a = angles(d, s)
    rotation = torch.stack((torch.stack((a.cos(), -a.sin()), -1), torch.stack((a.sin(), a.cos()), -1)), -2)
    return torch.einsum("sdij,bhsdj->bhsdi", rotation, x.reshape(*x.shape[:3], d // 2, 2)).flatten(-2)


# ---- the model around it -------------------------------------------------------------------------------------------------------------------------
class Block(nn.Module):
    def __init__(self, attend, turn, size, heads, norm, mlp, parallel, post, fused):
        super().__init__()
        self.attend, self.turn, self.heads, self.parallel, self.post, self.fused = attend, turn, heads, parallel, post, fused
        width = size // heads
        if fused:
            self.qkv = nn.Linear(size, 3 * size)
        else:
            self.wq, self.wk, self.wv = (nn.Linear(size, size, bias=False) for _ in range(3))
        self.wo = nn.Linear(size, size)
        self.ln1, self.ln2, self.mlp = norm(size), norm(size), mlp(size)
        self.register_buffer("tril", torch.tril(torch.ones(LONGEST, LONGEST)).view(1, 1, LONGEST, LONGEST))
        a = angles(width, LONGEST)
        self.register_buffer("cos", a.cos(), persistent=False)
        self.register_buffer("sin", a.sin(), persistent=False)
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(a), a))
        self.sink = nn.Parameter(torch.zeros(heads))

    def split(self, x):
        b, s, c = x.shape
        if self.fused == "interleaved":
            return self.qkv(x).view(b, s, self.heads, 3, c // self.heads).permute(3, 0, 2, 1, 4).unbind(0)
        if self.fused == "stacked":
            return self.qkv(x).reshape(b, s, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        parts = self.qkv(x).split(c, dim=2) if self.fused else (self.wq(x), self.wk(x), self.wv(x))
        return (t.view(b, s, self.heads, c // self.heads).transpose(1, 2) for t in parts)

    def attention(self, x):
        q, k, v = self.split(x)
        y = self.attend(self.turn(q, self), self.turn(k, self), v, self)
        return self.wo(y.transpose(1, 2).contiguous().view(x.shape))

    def forward(self, x):
        if self.post:
            x = self.ln1(x + self.attention(x))
            return self.ln2(x + self.mlp(x))
        if self.parallel:
            h = self.ln1(x)
            return x + self.attention(h) + self.mlp(h)
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Lm(nn.Module):
    def __init__(self, attend=is_causal, turn=no_turn, size=32, heads=4, positions="learned", norm=nn.LayerNorm, mlp=Mlp, parallel=False, post=False, fused=True, tied=False, last=None, layers=2):
        super().__init__()
        self.positions, self.last = positions, last
        self.embed = nn.Embedding(VOCAB, size)
        if positions == "learned":
            self.where = nn.Embedding(LONGEST, size)
        elif positions == "parameter":
            self.where = nn.Parameter(torch.zeros(1, LONGEST, size))
        elif positions == "waves":
            at, rate = torch.arange(LONGEST)[:, None], torch.exp(torch.arange(0, size, 2) * (-math.log(100.0) / size))
            table = torch.zeros(LONGEST, size)
            table[:, 0::2], table[:, 1::2] = torch.sin(at * rate), torch.cos(at * rate)
            self.register_buffer("table", table)
        self.blocks = nn.ModuleList(Block(attend, turn, size, heads, norm, mlp, parallel, post, fused) for _ in range(layers))
        self.norm, self.head = norm(size), nn.Linear(size, VOCAB, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, idx):
        s = idx.size(1)
        x = self.embed(idx)
        if self.positions == "learned":
            x = x + self.where(torch.arange(0, s, dtype=torch.long, device=idx.device))
        elif self.positions == "parameter":
            x = x + self.where[:, :s, :]
        elif self.positions == "waves":
            x = x * math.sqrt(x.shape[-1]) + self.table[:s]
        elif self.positions == "counted":
            x = x + torch.sin(torch.cumsum(torch.ones_like(idx), 1).float()[..., None] * torch.arange(1, x.shape[-1] + 1) * 0.1)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.last == "list":
            return self.head(x[:, [-1], :]), None
        if self.last == "slice":
            return self.head(x[:, -1:])
        if self.last == "select":
            return self.head(x[:, -1])
        if self.last == "after":
            return self.head(x)[:, -1, :]
        return self.head(x)


class TorchEncoder(nn.Module):
    """PyTorch's own layers with a causal mask."""

    def __init__(self, batch_first=True, norm_first=False, named=True):
        super().__init__()
        self.batch_first, self.named = batch_first, named
        self.embed, self.where = nn.Embedding(VOCAB, 32), nn.Embedding(LONGEST, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 48, dropout=0.0, batch_first=batch_first, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, VOCAB)

    def forward(self, idx):
        s = idx.shape[1]
        x = self.embed(idx) + self.where(torch.arange(s))
        x = x if self.batch_first else x.transpose(0, 1)
        x = self.encoder(x, mask=nn.Transformer.generate_square_subsequent_mask(s), is_causal=self.named)
        return self.head(x if self.batch_first else x.transpose(0, 1))


class TorchAttention(nn.Module):
    def __init__(self, weights=False):
        super().__init__()
        self.weights = weights
        self.embed, self.where = nn.Embedding(VOCAB, 32), nn.Embedding(LONGEST, 32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.head = nn.Linear(32, VOCAB)

    def forward(self, idx):
        s = idx.shape[1]
        x = self.embed(idx) + self.where(torch.arange(s))
        mask = torch.triu(torch.ones(s, s, dtype=torch.bool), 1)
        return self.head(x + self.attention(x, x, x, attn_mask=mask, need_weights=self.weights)[0])


class Meta(nn.Module):
    """As in Meta's llama: [b, s, h, d], complex positions, mask made in forward, keys repeated."""

    def __init__(self, heads=4, kv_heads=2, width=8):
        super().__init__()
        size = 32
        self.heads, self.kv_heads, self.width = heads, kv_heads, width
        self.tok_embeddings = nn.Embedding(VOCAB, size)
        self.layers = nn.ModuleList(nn.ModuleDict(dict(wq=nn.Linear(size, heads * width, False), wk=nn.Linear(size, kv_heads * width, False), wv=nn.Linear(size, kv_heads * width, False), wo=nn.Linear(heads * width, size, False), n1=RMSNorm(size), n2=RMSNorm(size), mlp=Swiglu(size))) for _ in range(2))
        self.norm, self.output = RMSNorm(size), nn.Linear(size, VOCAB, False)
        freqs = 1.0 / (10000.0 ** (torch.arange(0, width, 2)[: width // 2].float() / width))
        a = torch.outer(torch.arange(2 * LONGEST), freqs)
        self.freqs_cis = torch.polar(torch.ones_like(a), a)

    def rotary(self, xq, xk, freqs_cis):
        q, k = (torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) for x in (xq, xk))
        freqs = freqs_cis.view(*[d if i == 1 or i == q.ndim - 1 else 1 for i, d in enumerate(q.shape)])
        return tuple(torch.view_as_real(x * freqs).flatten(3).type_as(xq) for x in (q, k))

    def repeat_kv(self, x, n):
        b, s, h, d = x.shape
        return x if n == 1 else x[:, :, :, None, :].expand(b, s, h, n, d).reshape(b, s, h * n, d)

    def forward(self, tokens):
        b, s = tokens.shape
        h = self.tok_embeddings(tokens)
        freqs_cis = self.freqs_cis[0:s]
        mask = torch.triu(torch.full((s, s), float("-inf")), diagonal=1)
        mask = torch.hstack([torch.zeros((s, 0)), mask]).type_as(h)
        for l in self.layers:
            x = l["n1"](h)
            q = l["wq"](x).view(b, s, self.heads, self.width)
            k = l["wk"](x).view(b, s, self.kv_heads, self.width)
            v = l["wv"](x).view(b, s, self.kv_heads, self.width)
            q, k = self.rotary(q, k, freqs_cis)
            k, v = self.repeat_kv(k, self.heads // self.kv_heads), self.repeat_kv(v, self.heads // self.kv_heads)
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            scores = F.softmax((torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.width) + mask).float(), dim=-1).type_as(q)
            h = h + l["wo"](torch.matmul(scores, v).transpose(1, 2).contiguous().view(b, s, -1))
            h = h + l["mlp"](l["n2"](h))
        return self.output(self.norm(h)).float()


class WithInputs(Lm):
    """Callers pass a mask and positions too."""

    def forward(self, input_ids, attention_mask, position_ids):
        s = input_ids.shape[1]
        x = self.embed(input_ids) + self.where(position_ids)
        causal = torch.ones(s, s, dtype=torch.bool).tril()[None, None] & attention_mask[:, None, None, :].bool()
        for block in self.blocks:
            block.attend = lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=causal)
            x = block(x)
        return {"logits": self.head(self.norm(x)), "hidden": x}


ATTENTIONS = [is_causal, sdpa_tril, sdpa_float, sdpa_gqa, tril_buffer, minus_1e9, minus_1e4, times_mask, times_mask_1e10, where_less, where_min, window_compare, window_bands,
              window_difference, heads_last, heads_flat, own_softmax, softmax_then_mask, half_mask, scaled_operands, soft_cap, sinks, alibi,
              alibi_keys, value_wider, one_by_one, shared_key, repeated, tiled, grouped_queries]  # fmt: skip
TURNS = [complex_turn, complex_turn_here, halves, halves_where, pairs_stacked, pairs_written, pairs_swapped, partial, turned_by_matrix]

GOOD = {f.__name__: (lambda f=f: Lm(f)) for f in ATTENTIONS}
GOOD |= {f.__name__: (lambda f=f: Lm(tril_buffer, f, positions="none", norm=RMSNorm, mlp=Swiglu, fused=False)) for f in TURNS}
GOOD |= {
    "learned_parameter": lambda: Lm(positions="parameter", tied=True),
    "waves": lambda: Lm(positions="waves", post=True),
    "counted": lambda: Lm(positions="counted", parallel=True),
    "interleaved": lambda: Lm(tril_buffer, fused="interleaved"),
    "stacked": lambda: Lm(minus_1e9, fused="stacked"),
    "last_list": lambda: Lm(tril_buffer, last="list"),
    "last_slice": lambda: Lm(last="slice"),
    "last_select": lambda: Lm(last="select"),
    "last_after": lambda: Lm(last="after"),
    "one_head": lambda: Lm(tril_buffer, halves, size=10, heads=1, positions="none"),
    "no_layers_mix": lambda: Lm(layers=1),
    "torch_encoder": lambda: TorchEncoder(),
    "torch_encoder_masked": lambda: TorchEncoder(named=False, norm_first=True),
    "torch_encoder_seq_first": lambda: TorchEncoder(batch_first=False),
    "torch_attention": lambda: TorchAttention(),
    "torch_attention_weights": lambda: TorchAttention(True),
    "meta": lambda: Meta(),
    "meta_mha": lambda: Meta(kv_heads=4),
    "with_inputs": lambda: WithInputs(),
}


# ---- what only looks causal -------------------------------------------------------------------------------------------------------------------------
def masked(rule):
    def attend(q, k, v, m):
        at = torch.arange(q.shape[2])
        return torch.softmax((q @ k.mT * 0.3).masked_fill(~rule(at[:, None], at[None, :], q.shape[2]), float("-inf")), -1) @ v

    return attend


class Documents(Lm):
    """Tokens see their own document: token 0 ends one."""

    def forward(self, idx):
        document = torch.cumsum((idx == 0).long(), 1)
        same = (document[:, :, None] == document[:, None, :])[:, None]
        for block in self.blocks:
            block.attend = lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=same & torch.ones(idx.shape[1], idx.shape[1], dtype=torch.bool).tril())
        return super().forward(idx)


class Padded(Lm):
    def forward(self, idx):
        for block in self.blocks:
            block.attend = lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=((idx != 0)[:, None, None, :] & torch.ones(idx.shape[1], idx.shape[1], dtype=torch.bool).tril()))
        return super().forward(idx)


class LastOfAll(Lm):
    def forward(self, idx):
        x = self.embed(idx)
        return self.head(x + x[:, -1:])


LOOKS_LIKE = {  # words that the error must hold
    # causal, in spellings that nothing takes yet: refused, and right without caches
    "keys_first": (lambda: Lm(keys_first), "product of tokens"),
    "divided_late": (lambda: Lm(divided_late), "no softmax"),
    "plus_one": (lambda: Lm(plus_one), "no softmax"),
    "bidirectional": (lambda: Lm(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v)), "not causal"),
    "prefix": (lambda: Lm(masked(lambda q, k, s: (k <= q) | (k < 4))), "not causal"),
    "blocks": (lambda: Lm(masked(lambda q, k, s: (k <= q) & (k // 7 == q // 7))), "not causal"),
    "block_ends": (lambda: Lm(masked(lambda q, k, s: k // 5 <= q // 5)), "not causal"),
    "window_both": (lambda: Lm(masked(lambda q, k, s: (q - k).abs() < 4)), "not causal"),
    "window_and_first": (lambda: Lm(masked(lambda q, k, s: (k <= q) & ((q - k < 5) | (k < 2)))), "not causal"),
    "dilated": (lambda: Lm(masked(lambda q, k, s: (k <= q) & ((q - k) % 3 == 0))), "not causal"),
    "growing_window": (lambda: Lm(masked(lambda q, k, s: (k <= q) & (k >= q // 2))), "not causal"),
    "window_of_length": (lambda: Lm(masked(lambda q, k, s: (k <= q) & (q - k <= s // 2))), "not causal"),
    "late_hole": (lambda: Lm(masked(lambda q, k, s: (k <= q) & ~((k == 40) & (q > 50)))), "not causal"),
    "far_hole": (lambda: Lm(masked(lambda q, k, s: (k <= q) & ((q - k) != 33))), "not causal"),
    "anticausal": (lambda: Lm(masked(lambda q, k, s: k >= q)), "not causal"),
    "documents": (lambda: Documents(), "tokens"),
    "padded": (lambda: Padded(), "tokens"),
    "last_of_all": (lambda: LastOfAll(), "token"),
    "linear_attention": (lambda: Lm(lambda q, k, v, m: F.elu(q) @ (F.elu(k).mT @ v)), "over the tokens"),
    "average": (lambda: Lm(lambda q, k, v, m: v.mean(2, keepdim=True).expand_as(v)), "over the tokens"),
}
