"""A classification loop: a small convolutional network over batches of one size. Usage: classify.py OUT.npz [CALLS]"""
import sys
import time

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside)
        self.skip = nn.Conv2d(inside, outside, 1)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)) + self.skip(x))


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.blocks = nn.Sequential(Block(3, 24), nn.MaxPool2d(2), Block(24, 48), nn.MaxPool2d(2), Block(48, 96))
        self.head = nn.Linear(96, classes)

    def forward(self, images):
        return self.head(self.blocks(images).mean((2, 3))).softmax(-1)


net = Net().eval()
calls = int(sys.argv[2]) if len(sys.argv) > 2 else 40
images = torch.randn(calls, 4, 3, 32, 32)
answers, times = [], []
with torch.no_grad():
    for batch in images:
        start = time.perf_counter()
        answers.append(net(batch))
        times.append(time.perf_counter() - start)
np.savez(sys.argv[1], answers=torch.stack(answers).numpy(), times=np.array(times))
