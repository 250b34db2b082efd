"""Probabilities of src/llm/sampler.c equal to those that transformers' processors and warpers leave, in the order of its generate(), on random logits."""
import ctypes as c
import pathlib
import subprocess

import numpy as np
import pytest
import torch
import transformers

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


@pytest.fixture(scope="module")
def model():
    """Any model: it orders its processors."""
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1))


def theirs(model, logits, tokens, prompt, p, bias):
    """What generate() would sample from. Presence and frequency penalties are not among its processors: they are custom ones, which come last of those before
    the warpers; by the definition of OpenAI's API."""
    scores, ids = torch.tensor(logits)[None], torch.tensor(tokens.astype(np.int64))[None]
    config = transformers.GenerationConfig(
        do_sample=True, temperature=p.temperature, top_k=p.top_k, top_p=p.top_p, min_p=p.min_p or None, repetition_penalty=p.repetition_penalty,
        sequence_bias={(t,): b for t, b in bias.items()} or None)
    counts = torch.bincount(ids[0, prompt:], minlength=len(logits))[None]

    def penalties(_, scores):
        return scores - p.frequency_penalty * counts - p.presence_penalty * (counts > 0)

    for step in model._get_logits_processor(config, input_ids_seq_length=prompt, logits_processor=[penalties] if p.presence_penalty or p.frequency_penalty else []):
        scores = step(ids, scores)
    return torch.softmax(scores, -1)[0].numpy()


def random_sampling(r, vocab):
    """(values, bias). Any number of the values is set."""
    def some(default, *values):
        return r.choice(values) if r.random() < 0.5 else default

    bias = {int(t): float(r.choice([-5, -1, 2, 20])) for t in r.integers(0, vocab, int(r.integers(0, 4)))} if r.random() < 0.3 else {}
    return Sampling(
        repetition_penalty=some(1, 1.3, 0.8, 2), presence_penalty=some(0, 0.5, -0.7, 2), frequency_penalty=some(0, 0.25, -0.1, 1), temperature=some(1, 0.7, 1.5, 0.1),
        top_k=int(some(0, 1, 5, 40, vocab, vocab + 3)), top_p=some(1, 0.95, 0.5, 0.1, 0.999), min_p=some(0, 0.05, 0.3, 0.9)), bias


def ours(lib, logits, tokens, prompt, p, bias):
    vocab, sampler, got = len(logits), Sampler(), np.zeros(len(logits), np.float32)
    ids, values = np.array(list(bias), np.int32), np.array(list(bias.values()), np.float32)
    p.bias_tokens, p.bias, p.bias_count = ids.ctypes.data, values.ctypes.data, len(bias)
    assert not lib.lm_sampler_create(lib.ait_allocator_default(), vocab, c.byref(sampler))
    assert lib.lm_sampler_prepare(c.byref(sampler), c.byref(p), logits.ctypes.data, tokens.ctypes.data, prompt, len(tokens))
    lib.lm_sampler_dense(c.byref(sampler), got.ctypes.data)
    lib.lm_sampler_destroy(c.byref(sampler))
    return got


def test_probabilities(lib, model):
    r = np.random.default_rng(3)
    for _ in range(1000):
        vocab = int(r.choice([5, 50, 1000]))
        logits = (r.standard_normal(vocab) * r.choice([0.1, 1, 3, 10])).astype(np.float32)
        if r.random() < 0.2:
            logits[1:][r.random(vocab - 1) < 0.3] = -np.inf
        tokens = r.integers(0, vocab, int(r.integers(2, 40))).astype(np.int32)
        prompt = len(tokens) // 2
        p, bias = random_sampling(r, vocab)
        np.testing.assert_allclose(ours(lib, logits, tokens, prompt, p, bias), theirs(model, logits, tokens, prompt, p, bias), atol=2e-6, rtol=0)
