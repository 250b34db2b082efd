"""Pairs of encoder and decoder as one graph: the encoder's input and the decoder's token ids to logits. `ait deploy` parts it again: what depends
on the encoder's input alone runs once for each request.
"""

import json
import os


TOKENIZER_FILES = ("tokenizer_config.json", "vocab.json", "vocab.txt", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "source.spm")


def _load(folder, load):
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    kinds = (transformers.AutoModelForSeq2SeqLM, transformers.AutoModelForSpeechSeq2Seq)
    kind = next((k for k in kinds if type(config) in k._model_mapping), None)
    if kind is None:
        raise SystemExit(f"ait: '{folder}' holds no pair of encoder and decoder that transformers knows as text or speech to text")
    return load(kind, folder, config)


def _sample(model):
    """(name of the encoder's input, an example, its dynamic dimensions)."""
    import torch

    config, name = model.config, model.main_input_name
    auto = torch.export.Dim.AUTO
    if name == "input_ids":
        vocab = model.get_input_embeddings().weight.shape[0]
        return name, torch.arange(2 * 23).reshape(2, 23) % max(vocab - 1, 1), {0: auto, 1: auto}
    if name == "input_features" and hasattr(config, "num_mel_bins") and hasattr(config, "max_source_positions"):
        encoder = model.get_encoder()
        strides = [m.stride[0] for m in encoder.modules() if isinstance(m, torch.nn.Conv1d)]
        frames = config.max_source_positions
        for stride in strides:
            frames *= stride
        return name, torch.zeros(2, config.num_mel_bins, frames), {0: auto}
    raise SystemExit(f"ait: the encoder's input '{name}' is not known; token ids (input_ids) and spectrograms (input_features) are")


def _sequential_positions(input_ids, padding_idx, past=0):
    """Positions of ids without padding. Counting those that are no padding gives the same, but looks like mixing tokens."""
    import torch

    at = torch.arange(input_ids.shape[1], device=input_ids.device) + past + padding_idx + 1
    return at.unsqueeze(0).expand(input_ids.shape[0], -1).contiguous()


def export_program(model):
    import torch

    for module in model.modules():
        if hasattr(type(module), "create_position_ids_from_input_ids"):
            module.create_position_ids_from_input_ids = _sequential_positions

    name, source, dynamic = _sample(model)
    auto = torch.export.Dim.AUTO

    class Pair(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

    class Text(Pair):
        def forward(self, input_ids, decoder_input_ids):
            return self.inner(input_ids=input_ids, decoder_input_ids=decoder_input_ids, use_cache=False).logits

    class Features(Pair):
        def forward(self, input_features, decoder_input_ids):
            return self.inner(input_features=input_features, decoder_input_ids=decoder_input_ids, use_cache=False).logits

    vocab = model.get_output_embeddings().weight.shape[0]
    ids = torch.arange(2 * 19).reshape(2, 19) % max(vocab - 1, 1)
    module = (Text if name == "input_ids" else Features)().eval()
    with torch.no_grad():
        return name, torch.export.export(module, (source, ids), dynamic_shapes=(dynamic, {0: auto, 1: auto}), strict=False)


def _list(value):
    if value is None:
        return []
    return [int(v) for v in (value if isinstance(value, (list, tuple)) else [value])]


def _speech_start(g):
    """Tokens behind the first one that say language, task and that no times are wanted: those that transformers adds by itself."""
    more, languages, tasks = [], getattr(g, "lang_to_id", None) or {}, getattr(g, "task_to_id", None) or {}
    language = getattr(g, "language", None)
    if languages and f"<|{language}|>" in languages:
        more = [int(languages[f"<|{language}|>"])]
        task = getattr(g, "task", None) or "transcribe"
        more += [int(tasks[task])] if task in tasks else []
    elif languages and getattr(g, "is_multilingual", True):
        return []  # the model says the language itself, and then the rest
    silent = getattr(g, "no_timestamps_token_id", None)
    return more + ([int(silent)] if silent is not None and not getattr(g, "return_timestamps", False) else [])


def generation(model):
    """How decoding begins and what it may not say, of generation_config."""
    g, config = model.generation_config, model.config
    start = _list(getattr(g, "decoder_start_token_id", None)) or _list(getattr(config, "decoder_start_token_id", None)) or _list(g.bos_token_id)
    forced = {int(at): int(token) for at, token in (getattr(g, "forced_decoder_ids", None) or []) if token is not None}
    if getattr(g, "forced_bos_token_id", None) is not None:
        forced.setdefault(1, int(g.forced_bos_token_id))
    words = getattr(g, "bad_words_ids", None) or []
    suppress = sorted(set(_list(getattr(g, "suppress_tokens", None))) | {w[0] for w in words if len(w) == 1})
    ends = _list(getattr(g, "forced_eos_token_id", None))
    return {
        "start": start[:1] + ([] if forced else _speech_start(g)),
        "forced": [[at, forced[at]] for at in sorted(forced)],
        "forced_end": ends[0] if ends else -1,
        "suppress": [t for t in suppress if t >= 0],
        "begin_suppress": [t for t in _list(getattr(g, "begin_suppress_tokens", None)) if t >= 0],
    }


def _limits(model, folder):
    """(longest answer, longest input of the encoder; 0: any)."""
    config = model.config
    config_of = lambda *names: next((int(getattr(config, n)) for n in names if getattr(config, n, None)), 0)
    longest = config_of("max_target_positions", "max_position_embeddings", "n_positions")
    source = config_of("max_source_positions", "max_position_embeddings", "n_positions")
    path = os.path.join(folder, "tokenizer_config.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            told = json.load(f).get("model_max_length")
        if isinstance(told, int) and 0 < told < 1 << 24:
            source = min(source, told) if source else told
    return longest, source


def _save_tokenizer(folder, out):
    import transformers

    if any(os.path.exists(os.path.join(at, "tokenizer.json")) for at in (folder, out)):
        return
    if not any(os.path.exists(os.path.join(folder, name)) for name in TOKENIZER_FILES):  # transformers would make an empty one up
        return
    try:
        tok = transformers.AutoTokenizer.from_pretrained(folder)
    except Exception:  # a folder without a tokenizer, or one that transformers cannot read: token ids still work
        return
    if hasattr(tok, "backend_tokenizer"):
        tok.backend_tokenizer.save(os.path.join(out, "tokenizer.json"))


def export_seq2seq(folder, out, load):
    """(model, exported program, members for ait.json). load: export_lm's."""
    model = _load(folder, load)
    name, program = export_program(model)
    longest, source = _limits(model, folder)
    _save_tokenizer(folder, out)
    more = {"task": "seq2seq", "source": name, "max_source": source, "generation": generation(model)}
    if longest:
        more["max_positions"] = longest
    return model, program, more
