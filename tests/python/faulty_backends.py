"""Backends that misbehave, for test_python_backends.py: importable by a trial's fresh interpreter."""
import os
import time

import torch

import ait


class Right(ait.Backend):
    name = "t-right"

    def build(self, program, samples):
        assert len(samples) == 1 and isinstance(samples[0][0], torch.Tensor)
        self.run = ait.backend.flat(program)

    def __call__(self, *inputs):
        return self.run(*inputs)


class Wrong(Right):
    name = "t-wrong"

    def __call__(self, *inputs):
        return torch.utils._pytree.tree_map(lambda t: t + 0.5 if isinstance(t, torch.Tensor) else t, super().__call__(*inputs))


class Raising(Right):
    name = "t-raising"

    def __call__(self, *inputs):
        raise ValueError("the stars were wrong")


class Dying(Right):
    name = "t-dying"

    def build(self, program, samples):
        os.abort()


class Hanging(Right):
    name = "t-hanging"

    def __call__(self, *inputs):
        time.sleep(1000)


class Declining(Right):
    name = "t-declining"

    def build(self, program, samples):
        raise ait.Unsupported("not on a Monday")


class Missing(Right):
    name = "t-missing"
    packages = ("no-such-package",)


class Sealing(Right):
    name = "t-sealing"

    def save(self):
        return b"scale"

    def load(self, data):
        assert data == b"scale"
        self.run = lambda x: (x * 2).relu()


class Calibrated(ait.Backend):
    """Knows from the calibration data how large inputs get, and clamps there: what a backend with static quantization does."""

    name = "t-calibrated"

    def build(self, program, samples):
        self.top = max(float(x.abs().max()) for (x,) in samples)

    def __call__(self, x):
        return (x.clamp(-self.top, self.top) * 2).relu()

    def save(self):
        return repr(self.top).encode()

    def load(self, data):
        self.top = float(data)


ALL = [Right, Wrong, Raising, Dying, Hanging, Declining, Missing, Sealing, Calibrated]
