"""Equality on whole models: `make llm-equality MODELS="FOLDER ..." ZOO=FOLDER REQUESTS=500`.

python equality.py AIT CHECK WORK [--model FOLDER[=DRAFT]]... [--zoo FOLDER] [--requests N]

Each model is exported, deployed and run by ait_llm_check (equality, trace, memory). MODEL: a Hugging Face folder; where it has a goldens.json (items with
prompt_ids and output_ids) its answers are taken from there, else transformers gives them. Zoo: a folder with make.py and zoo.py, whose recipes of family "lm" are
built, and with a manifest.json of what was built before, whose bounds are taken."""

import argparse
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python", "ait")]
import export_lm  # noqa: E402
import goldens  # noqa: E402

torch.set_grad_enabled(False)


def run(*command):
    done = subprocess.run(command, text=True, capture_output=True)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        print(done.stderr, end="", flush=True)
    return done.returncode


def known_items(folder):
    path = os.path.join(folder, "goldens.json")
    if not os.path.exists(path):
        return None
    with open(path) as f:
        return [(i["prompt_ids"], i["output_ids"]) for i in json.load(f)["items"]]


def load(folder):
    import transformers

    return any_dtype(transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval().requires_grad_(False))


def any_dtype(model):
    """The default for experts, a grouped product, has no float64."""
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("batched_mm")
    return model


class Checker:
    def __init__(self, args):
        self.args, self.bad = args, []

    def deploy(self, folder, name):
        """Exports and deploys a model folder; the path of the .ait, or None."""
        out = os.path.join(self.args.work, name)
        export_lm.export_lm(folder, out)
        artifact = out + ".ait"
        return artifact if run(self.args.ait, "deploy", out, "-o", artifact, "-q") == 0 else None

    def check(self, name, artifact, golden, draft, requests):
        print(f"{name}: answers and logits", flush=True)
        drafts = [draft] if draft else []
        if artifact is None or run(self.args.check, "equality", artifact, golden, *drafts):
            self.bad.append(f"{name}: equality")
        if artifact is None or not requests:
            return
        print(f"{name}: {requests} requests at random, and {4 * requests} one after the other", flush=True)
        if run(self.args.check, "trace", artifact, str(requests), "1", *drafts):
            self.bad.append(f"{name}: trace")
        if run(self.args.check, "memory", artifact, str(4 * requests), "1"):
            self.bad.append(f"{name}: memory")

    def model(self, folder, draft_folder):
        name = os.path.basename(folder.rstrip("/"))
        model = load(folder)
        vocab = model.get_input_embeddings().weight.shape[0]
        items = known_items(folder) or goldens.random_items(model, vocab, (5, 33, 70), 48, 1e-3)
        length = min(len(p) + len(a) for p, a in items)
        ids = torch.tensor([(p + a)[:length] for p, a in items[:4]])
        logits, bound = goldens.reference(model, ids)
        golden = os.path.join(self.args.work, name + ".golden.npz")
        goldens.write(golden, ids, logits, bound, items)
        draft = self.deploy(draft_folder, name + "-draft") if draft_folder else None
        self.check(name, self.deploy(folder, name), golden, draft, self.args.requests)

    def zoo(self, folder, built):
        """Recipes that are language models. The first of attention is the draft model of all."""
        sys.path.insert(0, folder)
        spec = importlib.util.spec_from_file_location("zoo_make", os.path.join(folder, "make.py"))
        zoo_make = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(zoo_make)
        import zoo

        manifest = {}
        if built and os.path.exists(os.path.join(built, "manifest.json")):
            with open(os.path.join(built, "manifest.json")) as f:
                manifest = json.load(f)
                manifest = manifest.get("models", manifest)
        draft = None
        for name, recipe in zoo.RECIPES.items():
            if recipe["family"] != "lm" or (self.args.only and name not in self.args.only.split(",")):
                continue
            torch.manual_seed(zoo.SEED)
            with torch.enable_grad():
                net = any_dtype(recipe["build"]().net.eval().requires_grad_(False))
            source = os.path.join(self.args.work, name + ".hf")
            net.save_pretrained(source)
            ids = torch.randint(3, net.config.vocab_size, (3, 48), generator=torch.Generator().manual_seed(1))
            logits, bound = goldens.reference(net, ids)
            if name in manifest:
                bound = manifest[name]["outputs"][0]["atol"]
            items = goldens.random_items(net, net.config.vocab_size, (1, 5, 16, 17, 33, 60), 40, 20 * bound)
            golden = os.path.join(self.args.work, name + ".golden.npz")
            goldens.write(golden, ids, logits, bound, items)
            artifact = self.deploy(source, name)
            draft = draft or artifact
            self.check(name, artifact, golden, draft, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ait")
    parser.add_argument("check")
    parser.add_argument("work")
    parser.add_argument("--model", action="append", default=[], help="FOLDER or FOLDER=DRAFT-FOLDER")
    parser.add_argument("--zoo", default="", help="folder of make.py")
    parser.add_argument("--zoo-built", default="", help="folder of manifest.json")
    parser.add_argument("--only", default="")
    parser.add_argument("--requests", type=int, default=500)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    checker = Checker(args)
    for model in args.model:
        checker.model(*(model.split("=") + [None])[:2])
    if args.zoo:
        checker.zoo(args.zoo, args.zoo_built)
    for line in checker.bad:
        print(f"FAILED: {line}")
    return 1 if checker.bad else 0


if __name__ == "__main__":
    sys.exit(main())
