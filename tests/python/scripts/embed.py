"""An embedding service: a text encoder with a mask, batches and lengths change from request to request. Usage: embed.py OUT.npz [CALLS]"""
import sys
import time

import numpy as np
import torch
from torch import nn

torch.manual_seed(1)


class Encoder(nn.Module):
    def __init__(self, words=500, width=128, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
            "norm2": nn.LayerNorm(width), "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)}) for _ in range(layers))

    def forward(self, ids, mask):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        bias = (1.0 - mask[:, None, None, :].float()) * -1e4
        for layer in self.layers:
            q, k, v = layer["qkv"](layer["norm"](x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
            a = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(-1, -1, ids.shape[1], -1))
            x = x + layer["out"](a.transpose(1, 2).flatten(2))
            x = x + layer["down"](nn.functional.gelu(layer["up"](layer["norm2"](x))))
        m = mask[..., None].float()
        return nn.functional.normalize((x * m).sum(1) / m.sum(1), dim=-1)


@torch.inference_mode()
def embed(model, requests):
    longest = max(map(len, requests))
    ids = torch.tensor([r + [0] * (longest - len(r)) for r in requests])
    mask = torch.tensor([[1] * len(r) + [0] * (longest - len(r)) for r in requests])
    return model(ids=ids, mask=mask)


model = Encoder().eval()
calls = int(sys.argv[2]) if len(sys.argv) > 2 else 60
random = np.random.default_rng(2)
answers, times = [], []
for _ in range(calls):
    requests = [random.integers(1, 500, int(random.integers(4, 40))).tolist() for _ in range(int(random.integers(1, 9)))]
    start = time.perf_counter()
    answers.append(embed(model, requests))
    times.append(time.perf_counter() - start)
np.savez(sys.argv[1], answers=torch.cat(answers).numpy(), times=np.array(times))
