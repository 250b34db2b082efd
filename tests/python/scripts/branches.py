"""A model whose way depends on its data, and which counts its calls. Usage: branches.py OUT.npz [CALLS]"""
import sys
import time

import numpy as np
import torch
from torch import nn

torch.manual_seed(6)


def mlp(width):
    return nn.Sequential(nn.Linear(width, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, width))


class Router(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.gate, self.warm, self.cold = nn.Linear(width, 1), mlp(width), mlp(width)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.gate(x).mean() > 0:  # data-dependent: torch.export refuses it
            return self.warm(x) + self.calls
        return self.cold(x) - self.calls


model = Router().eval()
calls = int(sys.argv[2]) if len(sys.argv) > 2 else 60
answers, times = [], []
with torch.no_grad():
    for i in range(calls):
        x = torch.randn(32, 64, generator=torch.Generator().manual_seed(i))
        start = time.perf_counter()
        answers.append(model(x))
        times.append(time.perf_counter() - start)
np.savez(sys.argv[1], answers=torch.stack(answers).numpy(), times=np.array(times), calls=model.calls)
