"""Small attention models in spellings of their own: what must be cached, and what only looks like it."""

import torch


def rotate_half(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Model(torch.nn.Module):
    def __init__(self, heads=2, width=8, vocab=32, rope="half"):
        super().__init__()
        self.heads, self.width, self.rope = heads, width, rope
        size = heads * width
        self.embed = torch.nn.Embedding(vocab, size)
        self.qkv = torch.nn.Linear(size, 3 * size)
        self.out = torch.nn.Linear(size, size)
        self.head = torch.nn.Linear(size, vocab, bias=False)
        self.register_buffer("freq", 1.0 / 100 ** (torch.arange(0, width, 2).float() / width))

    def turn(self, x):
        angle = torch.arange(x.shape[2], device=x.device).float()[:, None] * self.freq
        if self.rope == "half":
            angle = torch.cat((angle, angle), -1)
            return rotate_half(x, angle.cos(), angle.sin())
        if self.rope == "pairs":
            a, b = x[..., ::2], x[..., 1::2]
            return torch.stack((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1).flatten(-2)
        return x

    def split(self, x):
        b, s, _ = x.shape
        return x.view(b, s, self.heads, self.width).transpose(1, 2)

    def scores(self, q, k):
        return q @ k.transpose(-1, -2) * self.width**-0.5

    def mask(self, ids):
        s = ids.shape[1]
        return torch.full((s, s), float("-inf")).triu(1)

    def weigh(self, ids, scores):
        return torch.softmax(scores + self.mask(ids), -1)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        p = self.weigh(input_ids, self.scores(self.turn(q), self.turn(k)))
        y = (p @ v).transpose(1, 2).flatten(-2)
        return self.head(x + self.out(y))


def grid(ids):
    at = torch.arange(ids.shape[1])
    return at[:, None], at[None, :]


def keep(rule, fill=-1e38):
    """A model whose queries see the keys for which rule(ids, q, k) holds."""

    class Kept(Model):
        def weigh(self, ids, scores):
            q, k = grid(ids)
            return torch.softmax(scores.masked_fill(~rule(ids, q, k), fill), -1)

    return Kept


def biased(bias):
    class Biased(Model):
        def mask(self, ids):
            q, k = grid(ids)
            return torch.where(k <= q, bias(q, k).float(), -1e38)

    return Biased


class Table(Model):
    """The mask is a table: nothing in the graph names its window."""

    def __init__(self, window=0, hole=False):
        super().__init__()
        q, k = torch.arange(64)[:, None], torch.arange(64)[None, :]
        seen = (k <= q) & ((k > q - window) if window else (k <= q))
        if hole:
            seen[50, 20] = False
        self.register_buffer("seen", seen)

    def weigh(self, ids, scores):
        s = ids.shape[1]
        return torch.softmax(scores.masked_fill(~self.seen[:s, :s], float("-inf")), -1)


class Gated(Model):
    """As GPT-1 masks: scores times a mask, minus 10000 elsewhere."""

    def weigh(self, ids, scores):
        seen = torch.ones(ids.shape[1], ids.shape[1]).tril()
        return torch.softmax(scores * seen - 1e4 * (1 - seen), -1)


class Renormalised(Model):
    """The mask is laid over probabilities, which are then made to sum to one."""

    def weigh(self, ids, scores):
        p = torch.softmax(scores, -1) * torch.ones(ids.shape[1], ids.shape[1]).tril()
        return p / p.sum(-1, keepdim=True)


class NotRenormalised(Model):
    def weigh(self, ids, scores):
        return torch.softmax(scores, -1) * torch.ones(ids.shape[1], ids.shape[1]).tril()


class Complex(Model):
    def turn(self, x):
        angle = torch.arange(x.shape[2]).float()[:, None] * self.freq
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(3)


class SinkFirst(Model):
    def weigh(self, ids, scores):
        sink = self.freq[: self.heads].view(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
        return torch.softmax(torch.cat((sink, scores + self.mask(ids)), -1), -1)[..., 1:]


class SinkBehind(Model):
    """As Granite has them: what its sinks take away from the probabilities is taken from their product with the values."""

    def summed(self, ids, scores):
        return scores + self.mask(ids)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        scores = self.scores(self.turn(q), self.turn(k))
        sink = self.freq[: self.heads].view(1, -1, 1)
        share = (torch.logsumexp(self.summed(input_ids, scores), -1) - sink).sigmoid()
        y = (self.weigh(input_ids, scores) @ v) * share.unsqueeze(-1)
        return self.head(x + self.out(y.transpose(1, 2).flatten(-2)))


class SinkOfAll(SinkBehind):
    def summed(self, ids, scores):
        return scores


class Einsum(Model):
    """Heads stay behind the tokens."""

    def forward(self, input_ids):
        x = self.embed(input_ids)
        q, k, v = (t.view(*t.shape[:2], self.heads, self.width) for t in self.qkv(x).chunk(3, -1))
        q, k = (self.turn(t.transpose(1, 2)).transpose(1, 2) for t in (q, k))
        p = self.weigh(input_ids, torch.einsum("bqhd,bkhd->bhqk", q, k))
        y = torch.einsum("bhqk,bkhd->bqhd", p, v)
        return self.head(x + torch.einsum("bqhd,ohd->bqo", y, self.out.weight.view(-1, self.heads, self.width)))


class LastToken(Model):
    def forward(self, input_ids):
        x = self.embed(input_ids)
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        y = (self.weigh(input_ids, self.scores(self.turn(q), self.turn(k))) @ v).transpose(1, 2).flatten(-2)
        return self.head((x + self.out(y))[:, [-1], :])


class FirstToken(LastToken):
    def forward(self, input_ids):
        return Model.forward(self, input_ids)[:, 0]


class TwoTables(Model):
    """Rotary factors that sequences of more than 20 tokens exchange for others."""

    def turn(self, x):
        at = torch.arange(x.shape[2])
        angle = at.float()[:, None] * torch.where(at.max() + 1 > 20, self.freq * 0.5, self.freq)
        angle = torch.cat((angle, angle), -1)
        return rotate_half(x, angle.cos(), angle.sin())


class CapFirst(Model):
    def weigh(self, ids, scores):
        return super().weigh(ids, 2.0 * torch.tanh(scores / 2.0))


class CapLast(Model):
    def weigh(self, ids, scores):
        q, k = grid(ids)
        return torch.softmax(2.0 * torch.tanh(torch.where(k <= q, scores, -1e38) / 2.0), -1)


class NotCausalConv(Model):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(16, 16, 3, padding=1, groups=16)

    def weigh(self, ids, scores):
        return super().weigh(ids, scores)

    def forward(self, input_ids):
        return self.head(self.conv(self.embed(input_ids).transpose(1, 2)).transpose(1, 2))


class CausalConv(NotCausalConv):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(16, 16, 4, groups=16)

    def forward(self, input_ids):
        x = torch.nn.functional.pad(self.embed(input_ids).transpose(1, 2), (3, 0))
        return self.head(self.conv(x).transpose(1, 2))


class MeanOfAll(Model):
    def forward(self, input_ids):
        x = self.embed(input_ids)
        return self.head(x + x.mean(1, keepdim=True))


class LengthScaled(Model):
    def forward(self, input_ids):
        return super().forward(input_ids) * torch.arange(input_ids.shape[1]).float().sum()


GOOD = {
    "plain": Model(),
    "pairs": Model(rope="pairs"),
    "window": keep(lambda ids, q, k: (k <= q) & (k > q - 5))(),
    "cap_first": CapFirst(),
    "distance": biased(lambda q, k: 0.25 * (k - q))(),
    "curved": biased(lambda q, k: -torch.log1p((q - k).clamp(min=0).float()))(),
    "causal_conv": CausalConv(),
    "table_window": Table(window=33),
    "gated": Gated(),
    "renormalised": Renormalised(),
    "complex": Complex(),
    "einsum": Einsum(),
    "sink_first": SinkFirst(heads=4),
    "sink_behind": SinkBehind(heads=4),
    "last_token": LastToken(),
    "two_tables": TwoTables(),
    "minus_1e9": keep(lambda ids, q, k: k <= q, -1e9)(),
}
BAD = {  # name: model, words of the error
    "everything": (keep(lambda ids, q, k: q - k < 10**6)(), "not causal"),
    "prefix": (keep(lambda ids, q, k: (k <= q) | (k < 3))(), "not causal"),
    "holes": (keep(lambda ids, q, k: (k <= q) & ((q - k) % 2 == 0))(), "not causal"),
    "window_late": (keep(lambda ids, q, k: (k <= q) & (k > q - 5) | (k == 0))(), "not causal"),
    "looks_ahead": (keep(lambda ids, q, k: k <= q + 1)(), "not causal"),
    "blocks": (keep(lambda ids, q, k: (k <= q) & (k // 48 == q // 48))(), "not causal"),
    "hole": (Table(hole=True), "not causal"),
    "mild": (keep(lambda ids, q, k: k <= q, -30.0)(), "not minus infinity"),
    "not_renormalised": (NotRenormalised(), "no softmax over the keys"),
    "first_token": (FirstToken(), "not of each token"),
    "padding": (keep(lambda ids, q, k: ((k <= q) & (ids != 0)[:, None, None, :]))(), "stands across the tokens"),
    "absolute": (biased(lambda q, k: torch.sin(1.7 * k.float()) + 0 * q)(), "no function of the distance"),
    "sink_of_all": (SinkOfAll(heads=4), "gives other numbers"),
    "cap_last": (CapLast(), "added before the soft cap"),
    "conv_ahead": (NotCausalConv(), "convolution"),
    "mean": (MeanOfAll(), "reduces over the tokens"),
    "length": (LengthScaled(), "length"),
}
