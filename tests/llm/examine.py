"""Every variant and spelling as a stranger would try it: export, `ait deploy`, `ait generate`, and greedy tokens and log probabilities beside the model's own.

python examine.py AIT FOLDER [--only NAMES] [--set variants,kinds,good,bad] [--attention sdpa,eager] [--style auto|strict|fixed|named] [-o REPORT.tsv]

The answers of the engine start from short and long prompts (beyond windows and the length that positions were trained for), whole and in pieces of 7
tokens; the reference computes each prefix anew, without caches. Prints a line for each case; exit 1 when one is wrong.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "ait"))
import export_lm  # noqa: E402
import spellings  # noqa: E402
import variants  # noqa: E402
from kinds import KINDS  # noqa: E402
from make import jitter  # noqa: E402

PROMPTS, ANSWER, TOLERANCE = (1, 6, 21, 70), 10, 2e-3


def fill(model, seed=1):
    """Random weights for which masks, positions and norms show in the logits."""
    torch.manual_seed(seed)
    tables = {m.weight for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    for p in model.parameters():
        if not p.is_floating_point():
            continue
        if p in tables:
            p.normal_(0, 0.5)
        elif p.dim() > 1:
            p.normal_(0, 1.3 / math.sqrt(max(p.shape[-1], 8)))
        else:
            p += jitter(p, 0.15)
    return model.eval().requires_grad_(False)


def greedy(logits_of, prompt, answer, stepwise):
    """Worst distance of log probabilities along the engine's answer; None where a token is not the most probable."""
    tokens, worst = list(prompt), 0.0
    whole = None if stepwise else logits_of(tokens + [t for t, _ in answer])
    for token, value in answer:
        row = (whole[len(tokens) - 1] if whole is not None else logits_of(tokens)[-1]).double()
        best, scale = row.max(), row.abs().max().clamp(min=1e-6)
        if float((best - row[token]) / scale) > 1e-4:
            return None
        worst = max(worst, abs(float(torch.log_softmax(row, -1)[token]) - value))
        tokens.append(token)
    return worst


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def short(text):
    return " ".join(text.split())[:400]


def generate(ait, folder, artifact, prompts, options):
    requests = os.path.join(folder, "requests.jsonl")
    with open(requests, "w") as f:
        for p in prompts:
            f.write(json.dumps(dict(tokens=p, max_tokens=ANSWER, ignore_stop=True, logprobs=1)) + "\n")
    done = run([ait, "generate", artifact, "--requests", requests, "--json", *options])
    if done.returncode:
        raise RuntimeError(f"generate: exit {done.returncode}: {short(done.stderr)}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def compare(ait, folder, artifact, logits_of, vocab, longest, stepwise, cached=True):
    g = torch.Generator().manual_seed(7)
    prompts = [torch.randint(0, vocab, (n,), generator=g).tolist() for n in PROMPTS if n + ANSWER <= longest]
    worst = 0.0
    for options in (["--max-sequences", "4"], ["--step-tokens", "7", "--max-sequences", "2"]) if cached else (["--max-sequences", "1"],):
        answers = generate(ait, folder, artifact, prompts, options)
        if len(answers) != len(prompts):
            raise RuntimeError(f"{len(answers)} answers to {len(prompts)} requests")
        for prompt, a in zip(prompts, answers):
            if len(a.get("tokens", ())) != ANSWER:
                raise RuntimeError(f"prompt of {len(prompt)}: {short(json.dumps(a))}")
            apart = greedy(logits_of, prompt, [(p["token"], p["logprob"]) for p in a["logprobs"]], stepwise)
            if apart is None or apart > TOLERANCE:
                raise RuntimeError(f"prompt of {len(prompt)} {options}: {'another token' if apart is None else f'log probabilities {apart:.2g} apart'}")
            worst = max(worst, apart)
    return worst


def examine_kind(ait, folder, entry, attention, dtype, stepwise):
    import transformers

    cls, config_cls, keywords = entry
    config = getattr(transformers, config_cls)(**keywords)
    config._attn_implementation = attention
    model = fill(getattr(transformers, cls)(config)).to(dtype)
    hf, out = os.path.join(folder, "hf"), os.path.join(folder, "m.ait")
    run(["rm", "-rf", hf])
    model.save_pretrained(hf, max_shard_size="40KB")
    export_lm.export_lm(hf, attention=(attention,))
    model = getattr(transformers, cls).from_pretrained(hf, attn_implementation=attention, dtype=torch.float32).eval()  # loading empties rows of padding
    done = run([ait, "deploy", hf, "-o", out, "--json"])
    if done.returncode:
        raise RuntimeError(f"deploy: exit {done.returncode}: {short(done.stderr)}")
    section = json.loads(done.stdout)
    vocab = section["vocab"]
    return compare(ait, folder, out, lambda ids: model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float(), vocab, section["max_seq"], stepwise), section


def export_plain(model, style):
    auto, dim = torch.export.Dim.AUTO, torch.export.Dim
    ids = torch.arange(18).reshape(2, 9) % spellings.VOCAB
    shapes = {0: auto, 1: auto}
    if style == "fixed":
        ids, shapes = ids[:1], {1: dim("length", min=2, max=spellings.LONGEST)}
    if style == "named":
        shapes = {0: dim("batch", max=16), 1: dim("seq", max=spellings.LONGEST)}
    if isinstance(model, spellings.WithInputs):
        return torch.export.export(model, (ids, torch.ones_like(ids), torch.arange(9).expand(len(ids), 9)), dynamic_shapes=(shapes,) * 3, strict=style == "strict")
    return torch.export.export(model, (ids,), dynamic_shapes=(shapes,), strict=style == "strict")


def examine_spelling(ait, folder, make, style, words):
    model = fill(make())
    path, out = os.path.join(folder, "plain.pt2"), os.path.join(folder, "m.ait")
    torch.export.save(export_plain(model, style), path)

    def logits_of(ids):
        x = torch.tensor([ids])
        y = model(x, torch.ones_like(x), torch.arange(len(ids))[None]) if isinstance(model, spellings.WithInputs) else model(x)
        y = y["logits"] if isinstance(y, dict) else y[0] if isinstance(y, tuple) else y
        return y[0] if y.dim() == 3 else y

    last = getattr(model, "last", None)
    done = run([ait, "deploy", path, "-o", out, "--json"])
    if words is not None:
        if done.returncode != 1 + 5 and not done.returncode:
            raise RuntimeError("was deployed")
        if words not in done.stderr:
            raise RuntimeError(f"the error does not say '{words}': exit {done.returncode}: {short(done.stderr)}")
        why = f"exit {done.returncode}: {short(done.stderr)}"
        done = run([ait, "deploy", path, "-o", out, "--json", "--allow-unmatched"])
        if done.returncode:
            raise RuntimeError(f"--allow-unmatched: exit {done.returncode}: {short(done.stderr)}")
        if "costs" not in done.stderr:
            raise RuntimeError("--allow-unmatched does not say what it costs")
    elif done.returncode:
        raise RuntimeError(f"deploy: exit {done.returncode}: {short(done.stderr)}")
    section = json.loads(done.stdout)
    apart = compare(ait, folder, out, logits_of, spellings.VOCAB, min(section["max_seq"], spellings.LONGEST), words is not None or last is not None, words is None)
    return apart, section if words is None else why


def described(section):
    if isinstance(section, str):
        return section
    return ", ".join(f"{g['layers']} {g['kind']}{' window ' + str(g['window']) if g['window'] else ''}" for g in section["groups"]) + f", max_seq {section['max_seq']}"


def cases(args):
    for name in args.set.split(","):
        if name in ("variants", "kinds"):
            for kind, entry in (variants.VARIANTS if name == "variants" else KINDS).items():
                for attention in args.attention.split(","):
                    dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
                    stepwise = any(word in kind for word in variants.STEPWISE)
                    yield f"{kind}.{attention}", kind, lambda e=entry, a=attention, s=stepwise, d=dtype: examine_kind(args.ait, args.folder, e, a, d, s)
        elif name == "good":
            for spelling, make in spellings.GOOD.items():
                yield f"{spelling}.{args.style}", spelling, lambda m=make: examine_spelling(args.ait, args.folder, m, args.style, None)
        else:
            for spelling, (make, words) in spellings.LOOKS_LIKE.items():
                yield f"{spelling}.{args.style}", spelling, lambda m=make, w=words: examine_spelling(args.ait, args.folder, m, args.style, w)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ait")
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--set", default="variants,good,bad")
    parser.add_argument("--attention", default="sdpa,eager")
    parser.add_argument("--style", default="auto", choices=("auto", "strict", "fixed", "named"))
    parser.add_argument("--dtype", default="f32", choices=("f32", "bf16"))
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    os.makedirs(args.folder, exist_ok=True)
    torch.set_num_threads(1)
    only, bad, lines = [n for n in args.only.split(",") if n], 0, []
    for label, name, examine in cases(args):
        if only and name not in only and not any(n.endswith("*") and name.startswith(n[:-1]) for n in only):
            continue
        start = time.time()
        try:
            with torch.no_grad():
                apart, section = examine()
            line = f"ok\t{label}\t{apart:.1e}\t{described(section)}"
        except Exception as error:  # noqa: BLE001: every failure is a line of the report
            bad += 1
            line = f"BAD\t{label}\t{type(error).__name__}\t{short(str(error))}"
        print(f"{line} ({time.time() - start:.1f} s)", flush=True)
        lines.append(line)
        if args.output:
            with open(args.output, "w") as f:
                f.write("\n".join(lines) + "\n")
    print(f"{len(lines) - bad} of {len(lines)}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
