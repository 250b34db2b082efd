"""Mixtures of experts in the spellings that exported models use, with the routers that are in use; and one that mixes tokens."""

import shapes
import torch
import torch.nn.functional as F

EXPERTS, TAKEN, INNER = 4, 2, 24


def grouped_operator():
    """What transformers calls where torch has no grouped product for the dtype: rows of x sorted, one matrix [K, N] for each group."""
    if not hasattr(torch.ops.transformers, "grouped_mm_fallback"):

        @torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
        def grouped(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
            ends = [0, *offs.tolist()]
            return torch.cat([input[a:b] @ w for a, b, w in zip(ends, ends[1:], weight)])

        grouped.register_fake(lambda input, weight, offs: input.new_empty(input.shape[0], weight.shape[2]))
    return torch.ops.transformers.grouped_mm_fallback


def softmax_first(scores, bias):
    weights, chosen = torch.topk(scores.softmax(-1), TAKEN, dim=-1)
    return weights / weights.sum(-1, keepdim=True), chosen


def softmax_last(scores, bias):
    weights, chosen = torch.topk(scores, TAKEN, dim=-1)
    return weights.softmax(-1), chosen


def sigmoid_in_groups(scores, bias):
    """The best group by its two best, with a correction that chooses but does not weigh."""
    scores = scores.sigmoid()
    choice = scores + bias
    groups = choice.view(-1, 2, EXPERTS // 2).topk(2, dim=-1)[0].sum(-1)
    kept = torch.zeros_like(groups).scatter_(1, groups.topk(1, dim=-1, sorted=False)[1], 1)
    kept = kept.unsqueeze(-1).expand(-1, 2, EXPERTS // 2).reshape(-1, EXPERTS)
    chosen = choice.masked_fill(kept == 0, 0.0).topk(TAKEN, dim=-1, sorted=False)[1]
    weights = scores.gather(1, chosen)
    return 1.5 * weights / (weights.sum(-1, keepdim=True) + 1e-20), chosen


class Mlp(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gate, self.up = torch.nn.Linear(size, INNER, bias=False), torch.nn.Linear(size, INNER, bias=True)
        self.down = torch.nn.Linear(INNER, size, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Mixture(shapes.Model):
    """Attention, then experts."""

    def __init__(self, router=softmax_first, shared=False):
        super().__init__()
        size = self.heads * self.width
        self.router, self.choose = torch.nn.Linear(size, EXPERTS, bias=False), router
        self.correction = torch.nn.Parameter(torch.zeros(EXPERTS))
        self.shared = Mlp(size) if shared else None
        self.build(size)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        p = self.weigh(input_ids, self.scores(self.turn(q), self.turn(k)))
        x = x + self.out((p @ v).transpose(1, 2).flatten(-2))
        rows = x.reshape(-1, x.shape[-1])
        y = self.mix(rows, *self.choose(self.router(rows), self.correction)).reshape(x.shape)
        return self.head(x + (y + self.shared(x) if self.shared else y))


class Loop(Mixture):
    """One expert after the other, on the tokens that chose it."""

    def build(self, size):
        self.experts = torch.nn.ModuleList(Mlp(size) for _ in range(EXPERTS))

    def mix(self, x, weights, chosen):
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, EXPERTS).permute(2, 1, 0)
        for e, expert in enumerate(self.experts):
            place, token = torch.where(mask[e])
            y = expert(x[None, token].reshape(-1, x.shape[-1])) * weights[token, place, None]
            out.index_add_(0, token, y)
        return out


class Stacked(Mixture):
    def build(self, size):
        self.both = torch.nn.Parameter(torch.zeros(EXPERTS, 2 * INNER, size))
        self.down = torch.nn.Parameter(torch.zeros(EXPERTS, size, INNER))
        self.both_bias = torch.nn.Parameter(torch.zeros(EXPERTS, 2 * INNER))

    def act(self, y):
        gate, up = y.chunk(2, -1)
        return F.silu(gate) * up


class Copied(Stacked):
    """Each row with a copy of its matrix."""

    def mix(self, x, weights, chosen):
        ids = chosen.reshape(-1)
        y = torch.bmm(self.both[ids], x.repeat_interleave(TAKEN, dim=0).unsqueeze(-1)).squeeze(-1) + self.both_bias[ids]
        y = torch.bmm(self.down[ids], self.act(y).unsqueeze(-1)).squeeze(-1)
        return (y * weights.reshape(-1, 1)).view(x.shape[0], TAKEN, -1).sum(1)


class Sorted(Stacked):
    """Rows sorted by expert, one product for all groups, and back."""

    def mix(self, x, weights, chosen):
        ids, order = torch.sort(chosen.reshape(-1))
        counts = torch.histc(ids.float(), bins=EXPERTS, min=0, max=EXPERTS - 1)
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        y = grouped_operator()(x[order // TAKEN], self.both.transpose(1, 2), ends) + self.both_bias[ids]
        y = grouped_operator()(self.act(y), self.down.transpose(1, 2), ends) * weights.reshape(-1)[order].unsqueeze(-1)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.shape[0])
        return y[back].view(x.shape[0], TAKEN, -1).sum(1)


class Choosing(Copied):
    """Experts that choose tokens: whether one is taken depends on all others."""

    def mix(self, x, weights, chosen):
        scores = self.router(x).softmax(-1)
        best = scores.topk(1, dim=0)[0]
        return super().mix(x, torch.where(scores.gather(1, chosen) >= best.gather(1, chosen[:1]), weights, 0.0), chosen)


GOOD = {
    "experts_loop": lambda: Loop(),
    "experts_loop_shared": lambda: Loop(sigmoid_in_groups, shared=True),
    "experts_copied": lambda: Copied(sigmoid_in_groups, shared=True),
    "experts_sorted": lambda: Sorted(softmax_last),
    "experts_sorted_groups": lambda: Sorted(sigmoid_in_groups, shared=True),
}
BAD = {"experts_choosing": (lambda: Choosing(), "along the tokens")}
