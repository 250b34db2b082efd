"""Small exported language models for the tests, and the sweep over all kinds that docs/models.md shows.

python make.py fixtures OUT                    the files of tests/data/llm
python make.py goldens OUT                     only NAME.golden.npz there, what transformers gives (and models that are missing)
python make.py sweep AIT FOLDER [-o PAGE.md]   every kind: export, answers as transformers gives them, caches, proof
"""

import argparse
import json
import os
import subprocess
import sys
import time
import zipfile

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "ait"))
import export_lm  # noqa: E402
import goldens  # noqa: E402
import mixtures  # noqa: E402
import shapes  # noqa: E402
import variants  # noqa: E402
from kinds import KINDS, PAIRS  # noqa: E402

CLASSES = {entry[0] for entry in KINDS.values()}
ALL = {**KINDS, **{name: entry for name, entry in variants.VARIANTS.items() if entry[0] not in CLASSES}}  # every family once or more

STATES = dict(causal_conv=1, llama=4, gemma3=8, gpt2=4, falcon_new=4, gpt_oss=4, mixtral=4, mamba2=4, bamba=6)  # caches that a model needs; else 2
FIXTURES = ("llama", "gemma3", "gpt2", "falcon_new", "gpt_oss", "mixtral", "mamba2", "bamba")


def save(program, path):
    """Without source lines, deflated."""
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    plain = path + ".tmp"
    torch.export.save(program, plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for item in source.infolist():
            if item.filename.split("/", 1)[-1].startswith(("data/sample_inputs", ".data")):
                continue
            target.writestr(zipfile.ZipInfo(item.filename), source.read(item.filename), compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
    os.remove(plain)


def jitter(p, size):
    """Noise for a parameter; less for a small one, which the model scales up."""
    most = float(p.abs().max())
    return (size * most if 0 < most < 0.1 else size) * torch.randn_like(p)


def random_model(name, attention):
    import transformers

    cls, config_cls, keywords = ALL[name]
    torch.manual_seed(1)
    config = getattr(transformers, config_cls)(**keywords)
    config._attn_implementation = attention
    model = getattr(transformers, cls)(config).eval().requires_grad_(False)
    if hasattr(model, "set_experts_implementation"):
        try:
            model.set_experts_implementation("batched_mm")
        except (ValueError, NotImplementedError, AttributeError):
            pass
    for p in model.parameters():  # larger, so that masks and positions show in the logits
        p.copy_(p * 2.0 if p.dim() > 1 else p + jitter(p, 0.1))
    model.config.use_cache = False
    return model


def any_attention(name):
    for attention in ("sdpa", "eager"):
        try:
            return random_model(name, attention), attention
        except ValueError as error:
            if attention == "eager":
                raise error
    return None


def small_fixture(model, path):
    auto = torch.export.Dim.AUTO
    ids = torch.arange(2 * 9).reshape(2, 9)
    torch.manual_seed(2)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    with torch.no_grad():
        program = torch.export.export(model.eval(), (ids,), dynamic_shapes=({0: auto, 1: auto},))
    save(program, path)


def fixtures(out):
    os.makedirs(out, exist_ok=True)
    lines = []
    for good, models in ((True, shapes.GOOD), (False, shapes.BAD), (True, mixtures.GOOD), (False, mixtures.BAD)):
        for name, model in models.items():
            model, why = model if isinstance(model, tuple) else (model, "")
            small_fixture(model if isinstance(model, torch.nn.Module) else model(), os.path.join(out, f"{name}.pt2"))
            lines.append(f"{name}\tcached\t{STATES.get(name, 2)}" if good else f"{name}\t{why}")
    for name in FIXTURES:
        save(export_lm.export_program(any_attention(name)[0]), os.path.join(out, f"{name}.pt2"))
        lines.append(f"{name}\tcached\t{STATES[name]}")
    fixture_goldens(out)
    with open(os.path.join(out, "models.tsv"), "w") as f:
        f.write("".join(line + "\n" for line in lines))
    pairs(out, ("t5", "bart", "whisper"))
    embedder(os.path.join(out, "embed"))


# ---- pairs of encoder and decoder, encoders for embeddings -------------------------------------------------------------------------------


def repack(path):
    """Deflated, without sample inputs."""
    with zipfile.ZipFile(path) as source:
        items = [(i.filename, source.read(i.filename)) for i in source.infolist() if "data/sample_inputs" not in i.filename]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for name, data in items:
            target.writestr(zipfile.ZipInfo(name), data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)


def random_pair(name, folder):
    import transformers

    cls, config_cls, keywords = PAIRS[name]
    torch.manual_seed(4)
    model = getattr(transformers, cls)(getattr(transformers, config_cls)(**keywords)).eval().requires_grad_(False)
    for key, p in model.named_parameters():
        if p.dim() > 1 and "position" not in key:
            p.normal_(0, 0.6)
        elif "bias" in key:
            p.normal_(0, 0.2)
    model.save_pretrained(folder)
    return model


def pair_answers(model, folder, count=4):
    """What transformers answers, greedily, to inputs of several lengths; written into `folder` as expected.json."""
    import numpy

    g, requests = torch.Generator().manual_seed(6), []
    for i in range(count):
        limit = 4 + 3 * i
        if model.main_input_name == "input_ids":
            source = torch.randint(3, 88, (1, (5, 1, 19, 11, 30, 2)[i % 6]), generator=g)
            inputs, told = {"input_ids": source, "attention_mask": torch.ones_like(source)}, {"tokens": source[0].tolist()}
        else:
            frames = model.config.max_source_positions * 2
            source = torch.randn(1, model.config.num_mel_bins, frames, generator=g)
            numpy.save(os.path.join(folder, f"features{i}.npy"), source[0].numpy())
            inputs, told = {"input_features": source}, {"source": f"features{i}.npy"}
        answer = model.generate(**inputs, max_new_tokens=limit, do_sample=False, num_beams=1)[0].tolist()
        start = model.generation_config.decoder_start_token_id
        requests.append(dict(told, max_tokens=limit, expected=answer[1:] if answer and answer[0] == start else answer))
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump({"requests": requests}, f, indent=None)
        f.write("\n")


def pairs(out, names):
    for name in names:
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        model = random_pair(name, folder)
        pair_answers(model, folder)
        export_lm.export_lm(folder)
        repack(os.path.join(folder, "model.pt2"))


SENTENCES = ["the quick brown fox jumps over the lazy dog", "hello world, this is a test", "numbers 12345", "a", "The lazy fox! " * 9, "  spaces "]


def embedder(out):
    """A folder in the layout of sentence-transformers, and what its steps give when they are computed one by one."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    os.makedirs(os.path.join(out, "1_Pooling"), exist_ok=True)
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer, tok.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.train_from_iterator(SENTENCES * 3, trainers.WordPieceTrainer(vocab_size=90, special_tokens=specials))
    template = dict(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tok.post_processor = processors.TemplateProcessing(**template)
    tok.save(os.path.join(out, "tokenizer.json"))
    config = transformers.BertConfig(
        vocab_size=90, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24, max_position_embeddings=32
    )
    torch.manual_seed(3)
    model = transformers.BertModel(config, add_pooling_layer=False).eval().requires_grad_(False)
    for p in model.parameters():
        p.normal_(0, 0.3)
    model.save_pretrained(out)
    files = {
        "tokenizer_config.json": dict(
            tokenizer_class="PreTrainedTokenizerFast", pad_token="[PAD]", model_max_length=32,
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        ),
        "modules.json": [
            dict(idx=0, name="0", path="", type="sentence_transformers.models.Transformer"),
            dict(idx=1, name="1", path="1_Pooling", type="sentence_transformers.models.Pooling"),
            dict(idx=2, name="2", path="2_Normalize", type="sentence_transformers.models.Normalize"),
        ],
        "1_Pooling/config.json": dict(word_embedding_dimension=16, pooling_mode_mean_tokens=True, pooling_mode_max_tokens=True),
        "sentence_bert_config.json": dict(max_seq_length=20, do_lower_case=False),
        "config_sentence_transformers.json": dict(prompts={"query": "fox: "}, default_prompt_name=None),
    }
    for name, content in files.items():
        with open(os.path.join(out, name), "w") as f:
            json.dump(content, f)
    tok.enable_truncation(20)
    rows = {}
    for key, prompt in (("plain", ""), ("query", "fox: ")):
        vectors = []
        for text in SENTENCES:
            ids = torch.tensor([tok.encode((prompt + text).strip()).ids])
            hidden = model(input_ids=ids).last_hidden_state[0].double()
            pooled = torch.cat([hidden.max(0).values, hidden.mean(0)])
            vectors.append((pooled / pooled.norm()).tolist())
        rows[key] = vectors
    export_lm.export_lm(out)
    repack(os.path.join(out, "model.pt2"))
    with open(os.path.join(out, "expected.json"), "w") as f:
        json.dump({"texts": SENTENCES, **rows}, f)
        f.write("\n")


def fixture_goldens(out):
    for name in FIXTURES:
        model, _ = any_attention(name)
        if not os.path.exists(os.path.join(out, f"{name}.pt2")):
            save(export_lm.export_program(model), os.path.join(out, f"{name}.pt2"))
        ids = torch.randint(3, 128, (2, 37), generator=torch.Generator().manual_seed(4))
        with torch.no_grad():
            logits, bound = goldens.reference(model, ids)
            items = goldens.random_items(model, 128, (1, 5, 16, 33, 60), 24, 50 * bound)
        goldens.write(os.path.join(out, f"{name}.golden.npz"), ids, logits, bound, items)


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def try_kind(ait, folder, name, attention):
    """A row of the page: what was found, and how far apart things are."""
    import numpy

    model = random_model(name, attention)
    hf, out = os.path.join(folder, "hf"), os.path.join(folder, "deployed.ait")
    model.save_pretrained(hf)
    exported = export_lm.export_program(model)
    export_lm.write_folder(model, exported, hf, hf)
    ids = torch.randint(1, 128, (2, 23), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        want = model(input_ids=ids, use_cache=False).logits
    done = run([ait, "deploy", hf, "-o", out, "--json"] + (["--max-seq", "64"] if "longrope" in name else []))
    if done.returncode:
        return {"name": name, "attention": attention, "error": done.stderr.strip()}
    section = json.loads(done.stdout)
    numpy.savez(os.path.join(folder, "ids.npz"), input_ids=ids.numpy())
    program = os.path.join(folder, "plain.pt2")
    torch.export.save(exported, program)
    ran = run([ait, "run", program, "-i", os.path.join(folder, "ids.npz"), "-o", os.path.join(folder, "logits.npz")])
    if ran.returncode:
        return {"name": name, "attention": attention, "error": ran.stderr.strip()}
    got = torch.from_numpy(list(numpy.load(os.path.join(folder, "logits.npz")).values())[0])
    apart = float((got - want).abs().max() / want.abs().max())
    return {"name": name, "attention": attention, "groups": section["groups"], "proof": section["proof"], "torch": apart}


def describe(groups):
    parts = []
    for g in groups:
        if g["kind"] in ("slots", "memory"):
            parts.append(f"{g['layers']} {'slots' if g['kind'] == 'slots' else 'cross'}")
        else:
            parts.append(f"{g['layers']} paged" + (f" (window {g['window']})" if g["window"] else ""))
    return ", ".join(parts)


def try_pair(ait, folder, name):
    """A row of the page: how many answers are transformers', token for token, in one batch."""
    os.makedirs(folder, exist_ok=True)
    model = random_pair(name, folder)
    pair_answers(model, folder, 6)
    export_lm.export_lm(folder)
    out = os.path.join(folder, "deployed.ait")
    done = run([ait, "deploy", folder, "-o", out, "--page-size", "8", "--json"])
    if done.returncode:
        return {"name": name, "error": done.stderr.strip()}
    with open(os.path.join(folder, "expected.json")) as f:
        requests = json.load(f)["requests"]
    lines = os.path.join(folder, "requests.jsonl")
    with open(lines, "w") as f:
        for r in requests:
            source = {"source": os.path.join(folder, r["source"])} if "source" in r else {"tokens": r["tokens"]}
            f.write(json.dumps(dict(source, max_tokens=r["max_tokens"])) + "\n")
    ran = run([ait, "generate", out, "--requests", lines, "--json", "-q"])
    if ran.returncode:
        return {"name": name, "error": ran.stderr.strip()}
    got = [json.loads(line)["tokens"] for line in ran.stdout.splitlines()]
    equal = sum(g == r["expected"] for g, r in zip(got, requests))
    return dict(json.loads(done.stdout), name=name, equal=equal, answers=len(requests))


def pair_page(rows):
    lines = [
        "",
        "## Pairs of encoder and decoder",
        "",
        "The same for models with an encoder; the last column: greedy answers equal to those of transformers' `generate`, token for token, to inputs of several lengths in one batch.",
        "",
        "| kind | caches | prefill | token by token | pieces | answers |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        if "error" in r:
            lines.append(f"| {r['name']} | refused: {r['error'].splitlines()[0][:160]} | | | | |")
            continue
        p = r["proof"]
        lines.append(
            f"| {r['name']} | {describe(r['groups'])} | {p['prefill']:.1e} | {p['steps']:.1e} | {p['pieces']:.1e} | {r['equal']} of {r['answers']} |"
        )
    return "\n".join(lines) + "\n"


def sweep_pairs(ait, folder, out, only):
    rows = [try_pair(ait, os.path.join(folder, name), name) for name in PAIRS if not only or name in only]
    for r in rows:
        print(r["name"], f"{r['equal']} of {r['answers']}" if "equal" in r else r["error"], flush=True)
    if out:
        with open(out, "a") as f:
            f.write(pair_page(rows))
    return sum(r.get("equal") != r.get("answers", 1) for r in rows)


def page(rows):
    lines = [
        "# Language models that deploy",
        "",
        "Made by `make llm-models`: for each kind a tiny random configuration of transformers, exported by `python -m ait.export_lm`, deployed with caches.",
        "Columns: what was cached; the exported graph on the oracle against transformers in float32; the cached graph against the exported graph: whole prompts, token",
        "by token, in odd pieces (largest difference of logits, relative to the largest logit).",
        "",
        "| kind | attention | caches | against transformers | prefill | token by token | pieces |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        if "error" in r:
            why = r["error"].splitlines()[0].split("': ", 1)[-1].replace("|", "/")  # without the file's name
            lines.append(f"| {r['name']} | {r['attention']} | refused: {why} | | | | |")
            continue
        p = r["proof"]
        lines.append(
            f"| {r['name']} | {r['attention']} | {describe(r['groups'])} | {r['torch']:.1e} | {p['prefill']:.1e} | {p['steps']:.1e} | {p['pieces']:.1e} |"
        )
    return "\n".join(lines) + "\n"


def sweep(ait, folder, out, only, every):
    os.makedirs(folder, exist_ok=True)
    rows, bad = [], 0
    for name in ALL:
        if only and name not in only:
            continue
        done = False
        for attention in ("sdpa", "eager"):
            if done and not every:
                break
            start = time.time()
            try:
                row = try_kind(ait, folder, name, attention)
            except ValueError as error:  # transformers has no such implementation for it
                print(f"{name} {attention}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
                continue
            except Exception as error:  # noqa: BLE001: an export that fails is a row of the page
                row = {"name": name, "attention": attention, "error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
            worst = max([row["torch"], *(row["proof"][k] for k in ("prefill", "steps", "pieces"))]) if "proof" in row else None
            refused = name in variants.REFUSED
            if refused != (worst is None) or (worst or 0) > 1e-4:
                bad += 1
            done = True
            print(f"{name} {attention}: {worst if worst is not None else row['error'][:300]} ({time.time() - start:.0f} s)", flush=True)
            rows.append(row)
            if out:
                with open(out, "w") as f:
                    f.write(page(rows))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    fixture = commands.add_parser("fixtures")
    fixture.add_argument("out")
    golden = commands.add_parser("goldens")
    golden.add_argument("out")
    all_kinds = commands.add_parser("sweep")
    all_kinds.add_argument("ait")
    all_kinds.add_argument("folder")
    all_kinds.add_argument("-o", "--output")
    all_kinds.add_argument("--only", default="")
    all_kinds.add_argument("--every", action="store_true", help="every attention implementation, not only the first that a kind has")
    args = parser.parse_args()
    if args.command == "fixtures":
        fixtures(args.out)
        return 0
    if args.command == "goldens":
        fixture_goldens(args.out)
        return 0
    only = [n for n in args.only.split(",") if n]
    bad = sweep(args.ait, args.folder, args.output, only, args.every)
    bad += sweep_pairs(args.ait, args.folder, args.output, only)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
