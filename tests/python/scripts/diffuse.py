"""A diffusion sampler: a plain pipeline object with a denoiser, called at each step with a number of the step as a tensor, and a decoder, of
which a method other than forward is called. Usage: diffuse.py OUT.npz [IMAGES]"""
import dataclasses
import sys
import time

import numpy as np
import torch
from torch import nn


@dataclasses.dataclass
class Noise:
    sample: torch.Tensor
    scale: float = 1.0


class Denoiser(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.into, self.out = nn.Conv2d(4, width, 3, padding=1), nn.Conv2d(width, 4, 3, padding=1)
        self.time = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width))
        self.body = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1), nn.SiLU(),
                                  nn.Conv2d(width, width, 3, padding=1))

    def forward(self, latent, step, return_dict=True):
        angles = step.float()[:, None] * torch.exp(-torch.arange(8) / 2.0)
        h = self.into(latent) + self.time(torch.cat([angles.sin(), angles.cos()], -1))[:, :, None, None]
        noise = self.out(h + self.body(h))
        return Noise(noise) if return_dict else (noise,)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(4, 32, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(32, 3, 3, padding=1))

    def forward(self, images):
        raise NotImplementedError("only decode() is used here")

    def decode(self, latent):
        return torch.sigmoid(self.layers(latent))


class Pipeline:
    def __init__(self):
        torch.manual_seed(4)
        self.parts = {"denoiser": Denoiser().eval()}
        self.decoder = Decoder().eval()

    @torch.no_grad()
    def __call__(self, seed, steps=8):
        generator = torch.Generator().manual_seed(seed)
        latent = torch.randn(1, 4, 16, 16, generator=generator)
        for t in reversed(range(steps)):
            twice = torch.cat([latent, latent * 0.9])
            a, b = self.parts["denoiser"](twice, torch.full((2,), t), return_dict=True).sample.chunk(2)
            latent = latent - 0.1 * (b + 2.0 * (a - b))
        return self.decoder.decode(latent)


pipeline = Pipeline()
images, times = [], []
for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 12):
    start = time.perf_counter()
    images.append(pipeline(seed))
    times.append(time.perf_counter() - start)
np.savez(sys.argv[1], answers=torch.cat(images).numpy(), times=np.array(times))
