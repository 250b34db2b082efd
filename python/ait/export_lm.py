"""A language model of transformers as a graph whose weights stay in the checkpoint: once, then `ait deploy` needs no Python.

    python -m ait.export_lm HF_DIR [-o DIR] [--task auto|lm|seq2seq|embed]

Takes causal language models, pairs of encoder and decoder (text or audio to text), and encoders for sentence embeddings, plain or in the layout
of sentence-transformers.

writes into DIR (default: HF_DIR itself)

    model.pt2          the exported program; weights that the checkpoint holds are not in it
    ait.json           where the checkpoint is, names that differ, end tokens, longest position
    extra.safetensors  weights that the checkpoint does not hold as the model uses them (joined experts and the like), when there are any

The graph is exported in float32 without caches; `ait deploy` widens the checkpoint's numbers, which loses nothing.
"""

import argparse
import io
import json
import os
import re
import sys
import zipfile

FORMAT = 1


def _scan_operator():
    """An operator for recurrences that transformers spells as a Python loop over the tokens, which cannot be exported for any length."""
    import torch

    if hasattr(torch.ops, "ait") and hasattr(torch.ops.ait, "scan"):
        return torch.ops.ait.scan

    @torch.library.custom_op("ait::scan", mutates_args=())
    def scan(
        u: torch.Tensor, dt: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor
    ) -> torch.Tensor:
        # u, dt [batch, tokens, heads]; a [heads, size]; b, c [batch, tokens, size]: h = exp(dt a) h + u b, y = c h
        h = u.new_zeros(u.shape[0], u.shape[2], a.shape[1])
        out = []
        for t in range(u.shape[1]):
            h = torch.exp(dt[:, t, :, None] * a) * h + u[:, t, :, None] * b[:, t, None, :]
            out.append((h * c[:, t, None, :]).sum(-1))
        return torch.stack(out, 1) if out else u.clone()

    @scan.register_fake
    def _(u, dt, a, b, c):
        return torch.empty_like(u)

    return torch.ops.ait.scan


def _selective_scan(hidden_states, dt, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False, **_):
    """What modules call `mamba_selective_scan`: [batch, heads, tokens] in and out."""
    import torch.nn.functional as F

    kind = hidden_states.dtype
    if delta_bias is not None:
        dt = dt + delta_bias.to(dt.dtype)[..., None]
    if delta_softplus:
        dt = F.softplus(dt)
    x, dt = hidden_states.float(), dt.float()
    y = _scan_operator()((x * dt).transpose(1, 2), dt.transpose(1, 2), A.float(), B.transpose(1, 2).float(), C.transpose(1, 2).float())
    y = y.transpose(1, 2)
    if D is not None:
        y = y + x * D.float()[..., None] if D.dim() == 1 else y + x * D.float()
    if z is not None:
        y = y * F.silu(z.float())
    return (y.to(kind), None) if return_last_state else y.to(kind)


def _plain(kind):
    return "default" if "dynamic" in kind else kind


def _dynamic_turns(model):
    """Rotary embeddings that change with each length beyond the one they were trained for, by a branch that no export takes."""
    for module in model.modules():
        kind = getattr(module, "rope_type", None)
        kinds = list(kind.values()) if isinstance(kind, dict) else [kind]
        if any(isinstance(k, str) and "dynamic" in k for k in kinds):
            yield module, kind


def _longest_unchanged(model):
    """Length up to which such embeddings are what they are at the start; None: the model has none."""
    lengths = [getattr(module, "original_max_seq_len", None) for module, _ in _dynamic_turns(model)]
    return min((n for n in lengths if n), default=None)


class _Patched:
    """Functions of the model's modules that cannot be exported are exchanged while the export runs."""

    NAMES = {"mamba_selective_scan": _selective_scan}

    def __init__(self, model):
        self.model, self.turns = model, []
        self.modules = {sys.modules[type(m).__module__] for m in model.modules() if type(m).__module__ in sys.modules}
        self.kept = []

    def __enter__(self):
        for module in self.modules:
            for name, function in self.NAMES.items():
                if hasattr(module, name):
                    self.kept.append((module, name, getattr(module, name)))
                    setattr(module, name, function)
        for module, kind in _dynamic_turns(self.model):
            self.turns.append((module, kind))
            module.rope_type = {n: _plain(k) for n, k in kind.items()} if isinstance(kind, dict) else _plain(kind)

    def __exit__(self, *_):
        for module, kind in self.turns:
            module.rope_type = kind
        for module, name, function in self.kept:
            setattr(module, name, function)


def _loader(attention):
    """load(class of transformers, folder, its config) -> model for inference, with the first of the implementations of attention that it takes."""

    def load(kind, folder, config):
        import torch

        for name in attention:
            try:
                model = kind.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation=name)
                break
            except ValueError:
                if name == attention[-1]:
                    raise
        model.eval().requires_grad_(False)
        model.config.use_cache = False
        return model

    return load


def _load_lm(folder, load):
    import transformers

    model = load(transformers.AutoModelForCausalLM, folder, transformers.AutoConfig.from_pretrained(folder))
    if hasattr(model, "set_experts_implementation"):
        try:
            model.set_experts_implementation("batched_mm")
        except (ValueError, NotImplementedError, AttributeError):
            pass
    return model


def _sample_length(config):
    """Longer than two chunks of models that work in chunks: a shorter sample would fix the number of chunks to one."""
    chunks = [v for k, v in config.to_dict().items() if k.endswith("chunk_size") and isinstance(v, int) and v > 0]
    return 2 * max(chunks) + 3 if chunks else 19


def export_program(model):
    """torch.export of token ids [batch, length] to logits, both dimensions dynamic."""
    import torch

    sample_length = _sample_length(model.config)

    class Logits(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, input_ids):
            return self.inner(input_ids=input_ids, use_cache=False).logits

    vocab = model.get_input_embeddings().weight.shape[0]
    ids = torch.arange(2 * sample_length).reshape(2, sample_length) % max(vocab - 1, 1)
    auto, longest = torch.export.Dim.AUTO, _longest_unchanged(model)
    shapes = {0: auto, 1: auto if longest is None else auto(min=2, max=longest)}
    with _Patched(model), torch.no_grad():
        return torch.export.export(Logits(model), (ids,), dynamic_shapes=(shapes,), strict=False)


def _checkpoint_files(folder):
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        with open(index) as f:
            return sorted(set(json.load(f)["weight_map"].values()))
    if os.path.exists(os.path.join(folder, "model.safetensors")):
        return ["model.safetensors"]
    raise SystemExit(f"ait: '{folder}' holds no model.safetensors: save the model with save_pretrained(safe_serialization=True)")


def _checkpoint(folder):
    """Name -> loader of the checkpoint's tensors."""
    from safetensors import safe_open

    tensors = {}
    for file in _checkpoint_files(folder):
        handle = safe_open(os.path.join(folder, file), "pt")
        for name in handle.keys():
            tensors[name] = lambda h=handle, n=name: h.get_tensor(n)
    return tensors


def _same(a, b):
    import torch

    return a.shape == b.shape and torch.equal(a.float(), b.float())


def match_names(program, folder):
    """(graph name -> checkpoint name where they differ, graph name -> tensor that the checkpoint does not hold)."""
    stored = _checkpoint(folder)
    suffixes = {}
    for name in stored:
        suffixes.setdefault(name.split(".")[-1], []).append(name)
    renames, extra, found = {}, {}, {}
    for name, tensor in program.state_dict.items():
        plain = name.removeprefix("inner.")
        candidates = [plain] if plain in stored else []
        if not candidates and id(tensor) in found:
            candidates = [found[id(tensor)]]
        if not candidates and tensor.data_ptr() in found:
            candidates = [found[tensor.data_ptr()]]
        if not candidates:
            candidates = [n for n in suffixes.get(plain.split(".")[-1], []) if n.endswith(plain) or plain.endswith(n)]
        if not candidates:  # renamed when it was loaded: of the same layer
            candidates = [n for n in suffixes.get(plain.split(".")[-1], []) if re.findall(r"\d+", n) == re.findall(r"\d+", plain)]
        match = next((n for n in candidates if _same(stored[n](), tensor)), None)
        if match is None:
            extra[name] = tensor
            continue
        found[id(tensor)] = found[tensor.data_ptr()] = match
        renames[name] = match
    tied = {}
    for name in list(extra):  # one storage under two names, the stored one met later
        match = found.get(extra[name].data_ptr())
        if match is not None and _same(extra[name], program.state_dict[name]):
            renames[name] = match
            tied[name] = extra.pop(name)
    return {g: c for g, c in renames.items() if g != c}, extra


def save_without_weights(program, path):
    """torch.export.save, then the parameters' bytes are left out; constants stay."""
    import torch

    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        dropped, kept = set(), {}
        for entry in source.namelist():
            if entry.endswith("_weights_config.json"):
                config = json.loads(source.read(entry))
                kept[entry] = {}
                for name, item in config["config"].items():
                    if name in program.state_dict:
                        dropped.add(entry.rsplit("/", 1)[0] + "/" + item["path_name"])
                    else:
                        kept[entry][name] = item
        for item in source.infolist():
            if item.filename in dropped:
                continue
            data = source.read(item.filename)
            if item.filename in kept:
                data = json.dumps({"config": kept[item.filename]}).encode()
            target.writestr(zipfile.ZipInfo(item.filename), data)


def _ids(value):
    if value is None:
        return []
    return [int(v) for v in (value if isinstance(value, (list, tuple)) else [value])]


def _first(*values):
    return next((int(v) for v in values if v is not None), -1)


def _sibling(name):
    """A module beside this one, which may be used without the package around it."""
    import importlib

    return importlib.import_module(f"{__package__}.{name}" if __package__ else name)


def find_task(folder):
    """ "lm", "seq2seq" or "embed", by what the folder says of itself."""
    if os.path.exists(os.path.join(folder, "modules.json")):
        return "embed"
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            config = json.load(f)
    except ValueError:  # transformers says what is wrong with it
        return "lm"
    names = " ".join(config.get("architectures") or [])
    if "ForCausalLM" in names or "LMHeadModel" in names:
        return "lm"
    if config.get("is_encoder_decoder") and "EncoderModel" not in names:
        return "seq2seq"
    if names.endswith(("Model", "ForMaskedLM", "ForPreTraining")) and not names.startswith(("GPT", "Mamba")):
        return "embed"
    return "lm"


def export_lm(folder, out=None, attention=("sdpa", "eager"), task="auto", poolings=None, normalize=None):
    """Exports the model of a Hugging Face folder; returns the path of ait.json. poolings, normalize: of embeddings, where the folder does
    not say what it wants."""
    out = out or folder
    os.makedirs(out, exist_ok=True)
    if task == "auto":
        task = find_task(folder)
    load = _loader(list(attention))
    if task == "embed":
        model, program, checkpoint, more = _sibling("_export_embed").export_embed(folder, out, load, poolings, normalize)
        return write_folder(model, program, checkpoint, out, more)
    if task == "seq2seq":
        model, program, more = _sibling("_export_seq2seq").export_seq2seq(folder, out, load)
        return write_folder(model, program, folder, out, more)
    model = _load_lm(folder, load)
    return write_folder(model, export_program(model), folder, out)


def write_folder(model, program, folder, out, more=None):
    """What `ait deploy` reads, of an exported model whose checkpoint is in `folder`. more: further members of ait.json."""
    from safetensors.torch import save_file

    os.makedirs(out, exist_ok=True)
    renames, extra = match_names(program, folder)
    save_without_weights(program, os.path.join(out, "model.pt2"))
    description = {"format": FORMAT, "graph": "model.pt2", "checkpoint": os.path.relpath(folder, out)}
    if extra:
        save_file({n: t.contiguous().clone() for n, t in extra.items()}, os.path.join(out, "extra.safetensors"))
        description["extra"] = "extra.safetensors"
    config, generation = model.config, getattr(model, "generation_config", None)
    longest = next((getattr(config, n) for n in ("max_position_embeddings", "n_positions", "max_seq_len") if getattr(config, n, None)), 0)
    stops = _ids(getattr(generation, "eos_token_id", None)) or _ids(getattr(config, "eos_token_id", None))
    description.update(
        max_positions=int(longest),
        bos=_first(getattr(generation, "bos_token_id", None), getattr(config, "bos_token_id", None)),
        pad=_first(getattr(generation, "pad_token_id", None), getattr(config, "pad_token_id", None)),
        stops=stops,
        names=renames,
    )
    description.update(more or {})
    path = os.path.join(out, "ait.json")
    with open(path, "w") as f:
        json.dump(description, f, indent=1, sort_keys=True)
        f.write("\n")
    return path


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m ait.export_lm", description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="Hugging Face folder with config.json and safetensors")
    parser.add_argument("-o", "--output", help="folder to write into (default: the model's own)")
    parser.add_argument("--attention", default="sdpa,eager", help="implementations to try, in order (default: sdpa,eager)")
    parser.add_argument("--task", default="auto", choices=("auto", "lm", "seq2seq", "embed"), help="what the model is for (default: what its files say)")
    parser.add_argument("--pooling", help="embeddings of a plain folder: cls, mean (default), max, mean_sqrt_len, weightedmean, lasttoken, pooler, none; several joined by commas")
    parser.add_argument("--normalize", action=argparse.BooleanOptionalAction, default=None, help="embeddings have length 1 (default: as modules.json says)")
    args = parser.parse_args(arguments)
    if not any(os.path.exists(os.path.join(args.folder, name)) for name in ("config.json", "modules.json")):
        raise SystemExit(f"ait: '{args.folder}' is not a model folder: it has no config.json")
    poolings = _sibling("_export_embed").read_poolings(args.pooling) if args.pooling else None
    try:
        print(export_lm(args.folder, args.output, args.attention.split(","), args.task, poolings, args.normalize))
    except (OSError, ValueError) as error:  # of transformers: what is wrong with the folder, or that it holds no model of that kind
        raise SystemExit(f"ait: cannot export '{args.folder}': {error}")


if __name__ == "__main__":
    main()
