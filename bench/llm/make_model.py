#!/usr/bin/env python3
"""A Llama-shaped model of random weights, made by its config alone, for tools/bench_llm.

    make_model.py OUT [--small] [--gguf-only]

OUT/hf          checkpoint in bfloat16 (transformers) and what `python -m ait.export_lm` adds
OUT/bf16.gguf, OUT/q8_0.gguf, OUT/q4_0.gguf
                the same weights for llama.cpp, when the package gguf is there; every matrix in the named type but the table of embeddings, of
                which a step reads one row

--small: 4 layers of width 256, to try the script."""
import argparse
import pathlib

# 507 million parameters; widths are multiples of 256 so that every quantised type of llama.cpp fits.
SHAPE = dict(hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, intermediate_size=4096, vocab_size=32000)
SMALL = dict(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, intermediate_size=512, vocab_size=1024)



def make_checkpoint(folder, shape):
    import torch
    import transformers

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        **shape, max_position_embeddings=2048, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, rope_theta=10000.0
    )
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder, safe_serialization=True)


def export(folder):
    from ait.export_lm import export_lm

    export_lm(str(folder))


def interleaved(weight, heads):
    """llama.cpp rotates neighbouring pairs; transformers the two halves of a head."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(folder, path, kind):
    import gguf
    import json
    import numpy
    import torch
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    weights = load_file(str(folder / "model.safetensors"))
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, tensor in weights.items():
        target = names.get_name(name, try_suffixes=(".weight",))
        data = tensor.to(torch.float32).numpy()
        if name.endswith("q_proj.weight"):
            data = interleaved(data, config["num_attention_heads"])
        if name.endswith("k_proj.weight"):
            data = interleaved(data, config["num_key_value_heads"])
        kept = data.ndim == 1 or "embed_tokens" in name
        own = gguf.GGMLQuantizationType.F32 if data.ndim == 1 else gguf.GGMLQuantizationType.BF16 if kept else gguf.GGMLQuantizationType[kind]
        writer.add_tensor(target, gguf.quants.quantize(numpy.ascontiguousarray(data), own), raw_dtype=own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--gguf-only", action="store_true")
    args = parser.parse_args()
    folder = args.out / "hf"
    if not args.gguf_only:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "model.safetensors").exists():
            make_checkpoint(folder, SMALL if args.small else SHAPE)
        if not (folder / "ait.json").exists():
            export(folder)
    try:
        import gguf  # noqa: F401
    except ImportError:
        print("make_model: without the package gguf no files for llama.cpp are written")
        return
    for kind in ("BF16", "Q8_0", "Q4_0"):
        path = args.out / f"{kind.lower()}.gguf"
        if not path.exists():
            write_gguf(folder, path.with_suffix(".part"), kind)
            path.with_suffix(".part").rename(path)


main()
