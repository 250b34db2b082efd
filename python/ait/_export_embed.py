"""Sentence embeddings: the encoder and what follows it (pooling, dense layers, normalisation) as one graph of token ids to embeddings.

Understands a plain Hugging Face folder, and the layout of sentence-transformers: modules.json with a folder for each step.
"""

import json
import os

POOLINGS = ("cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken")  # in the order in which several are joined
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model")
FLAGS = {  # of 1_Pooling/config.json in its older form
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
ALIASES = {"last": "lasttoken", "last_token": "lasttoken", "mean_tokens": "mean", "max_tokens": "max", "cls_token": "cls", "none": None}


def _read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def _stop(text):
    raise SystemExit(f"ait: {text}")


def read_poolings(value):
    """ "mean", "cls,mean" or a list of names -> names in the order in which their results are joined."""
    names = value.split(",") if isinstance(value, str) else list(value)
    names = [ALIASES.get(n, n) for n in names]
    for name in names:
        if name is not None and name not in POOLINGS + ("pooler",):
            _stop(f"pooling '{name}' is not known; it can be {', '.join(POOLINGS)}, pooler or none")
    if names == [None]:
        return []
    return [n for n in POOLINGS + ("pooler",) if n in names]


def pool(name, hidden, mask):
    """hidden [batch, length, size], mask [batch, length] of ones and zeros -> [batch, size]."""
    import torch

    m = mask.unsqueeze(-1).to(hidden.dtype)
    if name == "cls":
        first = mask.argmax(1)
        return hidden.gather(1, first[:, None, None].expand(-1, 1, hidden.shape[2])).squeeze(1)
    if name == "lasttoken":
        last = (mask * torch.arange(mask.shape[1], device=mask.device)).argmax(1)
        return hidden.gather(1, last[:, None, None].expand(-1, 1, hidden.shape[2])).squeeze(1)
    if name == "max":
        return hidden.masked_fill(m == 0, -1e9).max(1).values
    if name == "weightedmean":
        m = m * torch.arange(1, mask.shape[1] + 1, device=mask.device, dtype=hidden.dtype)[None, :, None]
    total = m.sum(1).clamp(min=1e-9)
    return (hidden * m).sum(1) / (total.sqrt() if name == "mean_sqrt_len" else total)


def _steps(folder):
    """Modules of the sentence-transformers layout as (kind, folder); None where there is no such layout."""
    modules = _read(folder, "modules.json")
    if modules is None:
        return None
    modules = sorted(modules, key=lambda m: m.get("idx", 0))
    return [(m["type"].rsplit(".", 1)[-1], os.path.join(folder, m.get("path", ""))) for m in modules]


def _poolings_of(config):
    mode = config.get("pooling_mode")
    if isinstance(mode, (str, list, tuple)):
        return read_poolings(mode)
    found = [name for name in POOLINGS if config.get(FLAGS[name])]
    return found or ["mean"]


def _dense(folder):
    import torch

    config = _read(folder, "config.json") or _stop(f"'{folder}' has no config.json")
    layer = torch.nn.Linear(config["in_features"], config["out_features"], bias=config.get("bias", True))
    stored = os.path.join(folder, "model.safetensors")
    if os.path.exists(stored):
        from safetensors.torch import load_file

        weights = load_file(stored)
    else:
        weights = torch.load(os.path.join(folder, "pytorch_model.bin"), map_location="cpu", weights_only=True)
    layer.load_state_dict({k.removeprefix("linear."): v for k, v in weights.items() if k.startswith("linear.")})
    name = config.get("activation_function", "torch.nn.modules.activation.Tanh").rsplit(".", 1)[-1]
    activation = {"Identity": torch.nn.Identity, "Tanh": torch.nn.Tanh, "ReLU": torch.nn.ReLU, "GELU": torch.nn.GELU, "Sigmoid": torch.nn.Sigmoid}
    if name not in activation:
        _stop(f"activation '{name}' of '{folder}' is not known")
    return torch.nn.Sequential(layer, activation[name]())


def plan(folder, poolings=None, normalize=None):
    """(folder of the transformer, poolings, modules behind them, normalised, what the tokenizer and the caller must know)."""
    steps = _steps(folder)
    known = {"strip": False, "lowercase": False, "include_prompt": True, "prompts": {}, "max_length": 0}
    if steps is None:
        return folder, ["mean"] if poolings is None else poolings, [], bool(normalize), known
    if not steps or steps[0][0] not in ("Transformer",):
        _stop(f"the first module of '{folder}' is {steps[0][0] if steps else 'missing'}, not a Transformer")
    inner, found, behind, normal = steps[0][1], [], [], False
    for kind, path in steps[1:]:
        if kind == "Pooling":
            config = _read(path, "config.json") or {}
            found = _poolings_of(config)
            known["include_prompt"] = config.get("include_prompt", True)
        elif kind == "Dense":
            behind.append(_dense(path))
        elif kind == "Normalize":
            behind.append("normalize")
        else:
            _stop(f"module '{kind}' of '{folder}' is not known; Transformer, Pooling, Dense and Normalize are")
    if behind and behind[-1] == "normalize":
        behind, normal = behind[:-1], True
    settings = _read(inner, "sentence_bert_config.json") or {}
    general = _read(folder, "config_sentence_transformers.json") or {}
    known.update(strip=True, lowercase=bool(settings.get("do_lower_case")), max_length=settings.get("max_seq_length") or 0)
    known["prompts"] = {k: v for k, v in (general.get("prompts") or {}).items() if v}
    known["default_prompt"] = general.get("default_prompt_name") or ""
    return inner, found if poolings is None else poolings, behind, normal if normalize is None else normalize, known


def _load(folder, load):
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    half = getattr(config, "is_encoder_decoder", False) or any(n.endswith("EncoderModel") for n in getattr(config, "architectures", None) or [])
    kind = transformers.AutoModelForTextEncoding if half and type(config) in transformers.AutoModelForTextEncoding._model_mapping else transformers.AutoModel
    return load(kind, folder, config)


def _longest(model):
    """Positions that the model has; 0: nothing says so."""
    for name, module in model.named_modules():
        if name.split(".")[-1] in ("position_embeddings", "wpe", "embed_positions") and hasattr(module, "num_embeddings"):
            offset = getattr(module, "offset", 0) if isinstance(getattr(module, "offset", 0), int) else 0
            unused = module.padding_idx + 1 if module.padding_idx is not None else offset
            return module.num_embeddings - unused
    return int(getattr(model.config, "max_position_embeddings", 0) or 0)


def make_module(model, poolings, behind, normal, types):
    import torch

    class Embedder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model
            self.dense = torch.nn.ModuleList([m for m in behind if m != "normalize"])

        def finish(self, input_ids, attention_mask, more):
            out = self.inner(input_ids=input_ids, attention_mask=attention_mask, **more)
            if not poolings:
                return out.last_hidden_state
            parts = [out.pooler_output if p == "pooler" else pool(p, out.last_hidden_state, attention_mask) for p in poolings]
            y = torch.cat(parts, 1) if len(parts) > 1 else parts[0]
            dense = iter(self.dense)
            for m in behind:
                y = torch.nn.functional.normalize(y, dim=1) if m == "normalize" else next(dense)(y)
            return torch.nn.functional.normalize(y, dim=1) if normal else y

    class Typed(Embedder):
        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.finish(input_ids, attention_mask, {"token_type_ids": token_type_ids})

    class Plain(Embedder):
        def forward(self, input_ids, attention_mask):
            return self.finish(input_ids, attention_mask, {})

    return (Typed if types else Plain)().eval()


def _tokenizer(folder, root, out):
    """(input names, pad id, longest text or 0); tokenizer.json is written where the folders have none."""
    import transformers

    tok = None
    for at in (folder, root):
        if not any(os.path.exists(os.path.join(at, name)) for name in TOKENIZER_FILES):  # transformers would make an empty one up
            continue
        try:
            tok = transformers.AutoTokenizer.from_pretrained(at)
            break
        except (OSError, ValueError, KeyError, ImportError):
            tok = None
    if tok is None:
        return None, None, 0
    if not any(os.path.exists(os.path.join(at, "tokenizer.json")) for at in (folder, root, out)) and hasattr(tok, "backend_tokenizer"):
        tok.backend_tokenizer.save(os.path.join(out, "tokenizer.json"))
    longest = tok.model_max_length if tok.model_max_length and tok.model_max_length < 1 << 24 else 0
    return list(tok.model_input_names), tok.pad_token_id, int(longest)


def export_embed(folder, out, load, poolings=None, normalize=None):
    """(model, exported program, folder of the checkpoint, members for ait.json). load: export_lm's."""
    import inspect

    import torch

    inner, names, behind, normal, known = plan(folder, poolings, normalize)
    model = _load(inner, load)
    if model.main_input_name != "input_ids":
        raise ValueError(f"{type(model).__name__} takes {model.main_input_name}, not token ids: it is no encoder of texts")
    inputs, pad, longest = _tokenizer(inner, folder, out)
    takes = "token_type_ids" in inspect.signature(model.forward).parameters
    types = takes and ("token_type_ids" in inputs if inputs else getattr(model.config, "type_vocab_size", 0) > 1)
    module = make_module(model, names, behind, normal, types)
    vocab = model.get_input_embeddings().weight.shape[0]
    ids = torch.arange(3 * 11).reshape(3, 11) % max(vocab - 1, 1)
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    args = (ids, mask) + ((torch.zeros_like(ids),) if types else ())
    auto = torch.export.Dim.AUTO
    with torch.no_grad():
        size = module(*args).shape[-1]
        program = torch.export.export(module, args, dynamic_shapes=tuple({0: auto, 1: auto} for _ in args), strict=False)
    limits = [n for n in (known["max_length"] or longest, _longest(model)) if n]
    embed = dict(known, pooling=names, normalize=normal, size=int(size), max_length=min(limits) if limits else 512)
    embed["pad"] = int(pad if pad is not None else getattr(model.config, "pad_token_id", 0) or 0)
    return model, program, inner, {"task": "embed", "embed": embed}
