"""`python -m ait.export_lm`, then `ait deploy`, `ait generate` and `ait eval`, on tiny random models: what transformers computes with the same folder.
Needs build/release/bin/ait and build/release/python."""

import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
AIT = ROOT / "build" / "release" / "bin" / "ait"
PACKAGE = os.environ.get("AIT_PYTHON_PACKAGE", str(ROOT / "build" / "release" / "python"))
sys.path.insert(0, PACKAGE)
from ait import export_lm  # noqa: E402
BASE = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
TEXT = "In the beginning was the word, and the word was long. " * 12


def run(*command, code=0):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, env={**os.environ, "PYTHONPATH": PACKAGE})
    assert done.returncode == code, done.stdout + done.stderr
    return done


def export_error(folder):
    """What the command says; importing transformers anew each time would take most of the time."""
    with pytest.raises(SystemExit) as info:
        export_lm.main([str(folder)])
    return str(info.value)


def spread(model):
    """Larger weights, so that choices are clear."""
    torch.manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * (1.5 / p.shape[-1] ** 0.5) if p.dim() > 1 else p + 0.1 * torch.randn_like(p))
    return model.eval()


@pytest.fixture(scope="module")
def tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    """A Llama in bfloat16, embeddings tied, in several shards."""
    folder = tmp_path_factory.mktemp("llama")
    config = transformers.LlamaConfig(vocab_size=tokenizer.get_vocab_size(), **BASE, tie_word_embeddings=True, bos_token_id=0, eos_token_id=1)
    spread(transformers.LlamaForCausalLM(config)).bfloat16().save_pretrained(folder, max_shard_size="60KB")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def exported(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported")
    assert run(sys.executable, "-m", "ait.export_lm", folder, "-o", out).stdout.strip() == str(out / "ait.json")
    return out


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def answers(folder, prompts, count):
    """Greedy, and the least distance of a choice from the next best."""
    model, out, margin = load(folder), [], math.inf
    with torch.no_grad():
        for prompt in prompts:
            ids = list(prompt)
            for _ in range(count):
                two = model(torch.tensor([ids])).logits[0, -1].topk(2)
                margin = min(margin, float(two.values[0] - two.values[1]))
                ids.append(int(two.indices[0]))
            out.append(ids[len(prompt) :])
    assert margin > 1e-4
    return out


def generated(artifact, prompts, count, tmp_path):
    requests = tmp_path / "requests.jsonl"
    requests.write_text("".join(json.dumps({"tokens": p, "max_tokens": count, "ignore_stop": True}) + "\n" for p in prompts))
    return [json.loads(line)["tokens"] for line in run(AIT, "generate", artifact, "--requests", requests, "--json", "-q").stdout.splitlines()]


PROMPTS = [[5], [9, 8, 7, 6, 5, 4], list(range(40, 100)), [9, 8, 7, 6, 5, 11]]


def test_shards_ties_and_dtype(folder, exported, tmp_path):
    assert (folder / "model.safetensors.index.json").exists()
    description = json.loads((exported / "ait.json").read_text())
    assert description["checkpoint"] == os.path.relpath(folder, exported)
    assert description["names"]["inner.lm_head.weight"] == "model.embed_tokens.weight"  # tied: stored once
    assert "extra" not in description and not (exported / "extra.safetensors").exists()
    assert description["bos"] == 0 and description["stops"] == [1] and description["max_positions"] == 128
    with zipfile.ZipFile(exported / "model.pt2") as graph:  # no parameter's bytes are in it
        inside = [i.file_size for i in graph.infolist() if "/weights/" in i.filename and not i.filename.endswith(".json")]
    assert sum(inside) == 0
    for shard in folder.glob("*.safetensors"):
        with safe_open(shard, "pt") as f:
            assert {f.get_tensor(n).dtype for n in f.keys()} == {torch.bfloat16}
    run(AIT, "deploy", exported, "-o", tmp_path / "m.ait", "-q")
    assert generated(tmp_path / "m.ait", PROMPTS, 20, tmp_path) == answers(folder, PROMPTS, 20)


def test_weights_that_the_checkpoint_holds_otherwise(tmp_path):
    """Experts that transformers joins when it loads: they go into a file of their own."""
    source = tmp_path / "hf"
    config = transformers.MixtralConfig(vocab_size=128, **BASE, num_local_experts=4, num_experts_per_tok=2)
    spread(transformers.MixtralForCausalLM(config)).save_pretrained(source)
    export_lm.export_lm(str(source))
    description = json.loads((source / "ait.json").read_text())
    stored = load_file(source / "model.safetensors")
    if any("experts.0." in n for n in stored):  # one matrix for each expert in the checkpoint
        assert description["extra"] == "extra.safetensors"
        assert all("experts" in n for n in load_file(source / "extra.safetensors"))
    moved = tmp_path / "moved"
    source.rename(moved)  # nothing in it says where it was
    run(AIT, "deploy", moved, "-o", tmp_path / "m.ait", "-q")
    assert generated(tmp_path / "m.ait", PROMPTS, 12, tmp_path) == answers(moved, PROMPTS, 12)


# ---- perplexity -----------------------------------------------------------------------------------------------------------------------------


def perplexity(folder, tokenizer, window):
    model, ids, nll = load(folder), tokenizer.encode(TEXT).ids, 0.0
    with torch.no_grad():
        for at in range(0, len(ids), window):
            part = ids[at : at + window]
            logits = model(torch.tensor([[0, *part[:-1]]])).logits[0]
            nll -= float(torch.log_softmax(logits.double(), -1)[range(len(part)), part].sum())
    return math.exp(nll / len(ids)), len(ids)


def test_eval(folder, exported, tokenizer, tmp_path):
    text, artifact = tmp_path / "text.txt", tmp_path / "m.ait"
    text.write_text(TEXT)
    told = json.loads(run(AIT, "deploy", exported, "-o", artifact, "--quantize", "int8", "--eval", text, "--json", "-q").stdout)
    want, tokens = perplexity(folder, tokenizer, 127)
    found = told["perplexity"]
    assert found["tokens"] == tokens and found["text_bytes"] == len(TEXT)
    assert found["float32"]["perplexity"] == pytest.approx(want, rel=1e-5)
    assert found["reduced"]["perplexity"] == pytest.approx(want, rel=0.05) and found["reduced"] != found["float32"]
    judged = json.loads(run(AIT, "eval", artifact, "--text", text, "--json").stdout)
    assert judged["perplexity"] == pytest.approx(found["reduced"]["perplexity"], rel=1e-9)
    for command in ("report", "inspect"):
        kept = json.loads(run(AIT, command, artifact, "--json").stdout)["deploy"]
        assert kept["perplexity"] == found and kept["precision"]["quantize"] == "int8"
        assert f"{found['reduced']['perplexity']:.4f}" in run(AIT, command, artifact).stdout


def test_eval_of_float32(exported, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    told = run(AIT, "deploy", exported, "-o", tmp_path / "m.ait", "--eval", tmp_path / "text.txt", "--no-proof").stdout
    assert "in float32" in told and "with fewer bits" not in told


# ---- what is wrong is said -------------------------------------------------------------------------------------------------------------------


def refused(done, *words):
    for word in words:
        assert word in done.stderr, done.stderr


def test_errors_of_the_export(folder, tmp_path):
    assert "config.json" in export_error(tmp_path)
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("*.safetensors*"))
    assert "safetensors" in export_error(bare)
    missing = tmp_path / "missing"
    shutil.copytree(folder, missing)
    shard = sorted(missing.glob("model-*.safetensors"))[-1]
    shard.unlink()
    assert shard.name in export_error(missing)
    other = tmp_path / "other"
    transformers.ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32).save_pretrained(other)
    assert "ViTConfig" in export_error(other)
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    (damaged / "config.json").write_text("{")
    assert "config.json" in export_error(damaged)


def test_errors_of_the_deployment(folder, exported, tmp_path):
    refused(run(AIT, "deploy", folder, "-o", tmp_path / "m.ait", code=3), "ait.json", "export_lm")
    changed = tmp_path / "changed"
    shutil.copytree(folder, changed)
    for file in ("model.pt2", "ait.json"):
        shutil.copy(exported / file, changed)
    description = json.loads((changed / "ait.json").read_text())
    description["checkpoint"] = "."
    (changed / "ait.json").write_text(json.dumps(description))
    shard = next(f for f in sorted(changed.glob("*.safetensors")) if any("layers.1." in n for n in load_file(f)))
    weights = load_file(shard)
    name = next(n for n in weights if "layers.1." in n)
    save_file({n: t for n, t in weights.items() if n != name}, shard)  # the checkpoint changed after the export
    refused(run(AIT, "deploy", changed, "-o", tmp_path / "m.ait", code=3), name)
    shard.unlink()
    refused(run(AIT, "deploy", changed, "-o", tmp_path / "m.ait", code=3), shard.name)
    (tmp_path / "text.txt").write_text(TEXT)
    alone = tmp_path / "alone"
    shutil.copytree(exported, alone)
    moved = json.loads((alone / "ait.json").read_text())
    moved["checkpoint"] = str(folder)
    (alone / "ait.json").write_text(json.dumps(moved))
    (alone / "tokenizer.json").write_text("{}")
    refused(run(AIT, "deploy", alone, "-o", tmp_path / "m.ait", "--eval", tmp_path / "text.txt", code=3), "model")
    refused(run(AIT, "deploy", exported, "-o", tmp_path / "m.ait", "--quantize", "int3", code=3), "int3")
    refused(run(AIT, "deploy", exported, "-o", tmp_path / "m.ait", "--eval", tmp_path / "nothing.txt", code=3), "nothing.txt")
    assert not (tmp_path / "m.ait").exists()
