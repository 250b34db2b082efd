"""Probabilities of src/llm/sampler.c equal to those that transformers' processors and warpers leave, on random logits."""
import ctypes as c
import pathlib
import subprocess

import numpy as np
import pytest
import torch
from transformers.generation import logits_process as lp

from text_library import Allocator

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Sampler(c.Structure):
    _fields_ = [("allocator", Allocator), ("vocab", c.c_int64), ("logits", c.c_void_p), ("marks", c.c_void_p), ("candidates", c.c_void_p), ("count", c.c_int64)]


class Sampling(c.Structure):
    _fields_ = [("repetition_penalty", c.c_float), ("presence_penalty", c.c_float), ("frequency_penalty", c.c_float), ("bias_tokens", c.c_void_p), ("bias", c.c_void_p),
                ("bias_count", c.c_size_t), ("temperature", c.c_float), ("top_k", c.c_int32), ("top_p", c.c_float), ("min_p", c.c_float), ("seed", c.c_uint64)]


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    """The sampler is no part of the public interface: its file is compiled for this test."""
    out = tmp_path_factory.mktemp("sampler") / "sampler.so"
    sources = [ROOT / "src" / name for name in ("llm/sampler.c", "base/memory.c", "base/status.c", "base/strings.c")]
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", f"-I{ROOT}/include", f"-I{ROOT}/src", *sources, "-lm", "-o", out], check=True)
    library = c.CDLL(str(out))
    library.ait_allocator_default.restype = Allocator
    library.lm_sampler_create.argtypes = [Allocator, c.c_int64, c.POINTER(Sampler)]
    library.lm_sampler_prepare.argtypes = [c.POINTER(Sampler), c.POINTER(Sampling), c.c_void_p, c.c_void_p, c.c_int32, c.c_int32]
    library.lm_sampler_prepare.restype = c.c_bool
    library.lm_sampler_dense.argtypes = [c.POINTER(Sampler), c.c_void_p]
    return library


def theirs(logits, tokens, p):
    scores, ids = torch.tensor(logits)[None], torch.tensor(tokens.astype(np.int64))[None]
    steps = [lp.RepetitionPenaltyLogitsProcessor(p.repetition_penalty)] if p.repetition_penalty != 1 else []
    steps += [lp.TemperatureLogitsWarper(p.temperature)] if p.temperature != 1 else []
    steps += [lp.TopKLogitsWarper(p.top_k)] if p.top_k else []
    steps += [lp.TopPLogitsWarper(p.top_p)] if p.top_p < 1 else []
    steps += [lp.MinPLogitsWarper(p.min_p)] if p.min_p > 0 else []
    for step in steps:
        scores = step(ids, scores)
    return torch.softmax(scores, -1)[0].numpy()


def test_probabilities(lib):
    r = np.random.default_rng(3)
    for _ in range(500):
        vocab = int(r.choice([5, 50, 1000]))
        logits = (r.standard_normal(vocab) * r.choice([0.1, 1, 3, 10])).astype(np.float32)
        if r.random() < 0.2:
            logits[1:][r.random(vocab - 1) < 0.3] = -np.inf
        tokens = r.integers(0, vocab, int(r.integers(1, 40))).astype(np.int32)
        p = Sampling(repetition_penalty=r.choice([1, 1.3, 0.8]), temperature=r.choice([1, 0.7, 1.5, 0.1]), top_k=int(r.choice([0, 1, 5, 40, vocab, vocab + 3])),
                     top_p=r.choice([1, 0.95, 0.5, 0.1, 0.999]), min_p=r.choice([0, 0.05, 0.3, 0.9]))
        sampler, got = Sampler(), np.zeros(vocab, np.float32)
        assert not lib.lm_sampler_create(lib.ait_allocator_default(), vocab, c.byref(sampler))
        assert lib.lm_sampler_prepare(c.byref(sampler), c.byref(p), logits.ctypes.data, tokens.ctypes.data, len(tokens) // 2, len(tokens))
        lib.lm_sampler_dense(c.byref(sampler), got.ctypes.data)
        lib.lm_sampler_destroy(c.byref(sampler))
        np.testing.assert_allclose(got, theirs(logits, tokens, p), atol=2e-6, rtol=0)
