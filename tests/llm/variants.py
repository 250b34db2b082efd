"""Configurations beside those of kinds.py: other head counts, biases, windows, scalings, and kinds that nobody asked for. Same form as KINDS."""

SIZE = dict(vocab_size=131, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128)
KV = dict(num_key_value_heads=2)
LONG = dict(SIZE, max_position_embeddings=96)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=24)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=24)
LINEAR = dict(rope_type="linear", rope_theta=10000.0, factor=3.0)
DYNAMIC = dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0)
LONGROPE = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.0], original_max_position_embeddings=24)
MLA = dict(q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=12)
FALCON = dict(vocab_size=131, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128)
GPT = dict(vocab_size=131, n_positions=128, n_embd=32, n_layer=2, n_head=4)
OPT = dict(vocab_size=131, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, word_embed_proj_dim=32)
BERT = dict(SIZE, is_decoder=True)
BART = dict(vocab_size=131, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=128)
ENDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)


def llama(**k):
    return ("LlamaForCausalLM", "LlamaConfig", {**SIZE, **KV, **k})


def falcon(**k):
    return ("FalconForCausalLM", "FalconConfig", {**FALCON, **dict(new_decoder_architecture=False, multi_query=True, alibi=False), **k})


def kind(name, config=None, base=SIZE, **k):
    return (name + "ForCausalLM", (config or name) + "Config", {**base, **k})


VARIANTS = {
    # ---- the listed kinds, varied
    "llama_mha": llama(num_key_value_heads=4),
    "llama_mqa": llama(num_key_value_heads=1),
    "llama_wide_heads": llama(head_dim=20),
    "llama_biases": llama(attention_bias=True, mlp_bias=True),
    "llama_odd": llama(hidden_size=45, num_attention_heads=3, num_key_value_heads=1, head_dim=14, intermediate_size=37, vocab_size=97),
    "llama_tied": llama(tie_word_embeddings=True),
    "llama_linear": llama(**{"rope_parameters": LINEAR}),
    "llama_dynamic": llama(rope_parameters=DYNAMIC),
    "llama_yarn": llama(max_position_embeddings=96, rope_parameters=YARN),
    "llama_llama3": llama(max_position_embeddings=96, rope_parameters=LLAMA3),
    "llama_longrope": llama(max_position_embeddings=96, rope_parameters=LONGROPE),
    "qwen2_tied": kind("Qwen2", **KV, tie_word_embeddings=True),
    "qwen2_window": kind("Qwen2", **{**KV, "num_hidden_layers": 3}, use_sliding_window=True, sliding_window=8, max_window_layers=1),
    "qwen2_yarn": kind("Qwen2", base=LONG, **KV, rope_parameters=YARN),
    "qwen3_window": kind("Qwen3", **KV, head_dim=12, use_sliding_window=True, sliding_window=4, max_window_layers=1, attention_bias=True),
    "qwen3_tied": kind("Qwen3", num_key_value_heads=1, head_dim=16, tie_word_embeddings=True),
    "gemma": kind("Gemma", num_key_value_heads=1, head_dim=16),
    "gemma2_plain": kind("Gemma2", **KV, head_dim=16, sliding_window=4, attn_logit_softcapping=None, final_logit_softcapping=None, query_pre_attn_scalar=24),
    "gemma2_caps": kind("Gemma2", base={**SIZE, "num_hidden_layers": 4}, num_key_value_heads=1, head_dim=12, sliding_window=4, attn_logit_softcapping=2.0, final_logit_softcapping=5.0, query_pre_attn_scalar=9),
    "gemma3_scaled": kind("Gemma3", "Gemma3Text", base={**LONG, "num_hidden_layers": 4}, **KV, head_dim=16, sliding_window=4, layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"], rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1000.0), sliding_attention=dict(rope_type="default", rope_theta=100.0)), final_logit_softcapping=4.0),
    "mistral_no_window": kind("Mistral", **KV, sliding_window=None),
    "mistral_4": kind("Mistral", num_key_value_heads=4, sliding_window=4, head_dim=10),
    "mistral_wide": kind("Mistral", base={**SIZE, "max_position_embeddings": 16384}, **KV, sliding_window=9000),
    "phi3_window": kind("Phi3", **KV, sliding_window=8, **ENDS),
    "phi3_partial": kind("Phi3", **KV, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5), tie_word_embeddings=True, **ENDS),
    "phi3_longrope": kind("Phi3", base=LONG, **KV, original_max_position_embeddings=24, rope_parameters=LONGROPE, **ENDS),
    "gpt2_scaled": ("GPT2LMHeadModel", "GPT2Config", dict(GPT, scale_attn_by_inverse_layer_idx=True, n_inner=40, activation_function="relu", tie_word_embeddings=False)),
    "gpt2_upcast": ("GPT2LMHeadModel", "GPT2Config", dict(GPT, reorder_and_upcast_attn=True)),
    "gpt2_unscaled": ("GPT2LMHeadModel", "GPT2Config", dict(GPT, scale_attn_weights=False, n_embd=36, n_head=3)),
    "gpt_neox_serial": kind("GPTNeoX", use_parallel_residual=False, rotary_pct=1.0),
    "gpt_neox_bare": kind("GPTNeoX", attention_bias=False, rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5), tie_word_embeddings=True),
    "gpt_neox_dynamic": kind("GPTNeoX", rope_parameters=dict(DYNAMIC, partial_rotary_factor=0.5)),
    "opt_post_norm": ("OPTForCausalLM", "OPTConfig", dict(OPT, do_layer_norm_before=False)),
    "opt_projected": ("OPTForCausalLM", "OPTConfig", dict(OPT, word_embed_proj_dim=20)),
    "opt_bare": ("OPTForCausalLM", "OPTConfig", dict(OPT, enable_bias=False, layer_norm_elementwise_affine=False)),
    "falcon_serial": falcon(parallel_attn=False, bias=True),
    "falcon_mha": falcon(multi_query=False, bias=True),
    "falcon_alibi_mq": falcon(alibi=True, num_attention_heads=4),
    "falcon_alibi_odd": falcon(alibi=True, multi_query=False, hidden_size=48, num_attention_heads=6),
    "falcon_new_2ln": falcon(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=2),
    "falcon_new_1ln": falcon(new_decoder_architecture=True, num_kv_heads=4, num_ln_in_parallel_attn=1),
    "falcon_new_alibi": falcon(new_decoder_architecture=True, num_kv_heads=2, alibi=True),
    "falcon_dynamic": falcon(rope_parameters=DYNAMIC),
    "olmo_clip": kind("Olmo", **KV, clip_qkv=0.5),
    "olmo2_mqa": kind("Olmo2", num_key_value_heads=1, attention_bias=True),
    "olmo3": kind("Olmo3", base={**SIZE, "num_hidden_layers": 4}, **KV, sliding_window=8),
    "olmo3_yarn": kind("Olmo3", base={**LONG, "num_hidden_layers": 4}, **KV, sliding_window=4, rope_parameters=YARN),
    "granite_tied": kind("Granite", num_key_value_heads=4, attention_multiplier=0.2, embedding_multiplier=3.0, logits_scaling=0.5, residual_multiplier=0.3, tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
    "stablelm_parallel": kind("StableLm", **KV, use_parallel_residual=True, use_qkv_bias=True, qk_layernorm=True),
    "stablelm_partial": kind("StableLm", num_key_value_heads=4, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.75)),
    "cohere_scaled": kind("Cohere", num_key_value_heads=4, logit_scale=0.25, attention_bias=True, use_qk_norm=False, tie_word_embeddings=True),
    "cohere2_4": kind("Cohere2", base={**SIZE, "num_hidden_layers": 4}, num_key_value_heads=1, sliding_window=4, head_dim=12, logit_scale=2.0),
    "bloom_post": ("BloomForCausalLM", "BloomConfig", dict(vocab_size=131, hidden_size=48, n_layer=2, n_head=6, apply_residual_connection_post_layernorm=True)),
    "mpt_clip": ("MptForCausalLM", "MptConfig", dict(vocab_size=131, d_model=36, n_layers=2, n_heads=3, max_seq_len=128, attn_config=dict(clip_qkv=0.7, alibi_bias_max=4, softmax_scale=0.4))),
    "starcoder2_window": kind("Starcoder2", **KV, sliding_window=8, use_bias=False),
    "starcoder2_plain": kind("Starcoder2", num_key_value_heads=1, sliding_window=None),
    "gpt_bigcode_mha": ("GPTBigCodeForCausalLM", "GPTBigCodeConfig", dict(GPT, multi_query=False)),
    "gptj_whole": ("GPTJForCausalLM", "GPTJConfig", dict(GPT, rotary_dim=8)),
    "gptj_none": ("GPTJForCausalLM", "GPTJConfig", dict(GPT, rotary_dim=None)),
    "gpt_neo_local": ("GPTNeoForCausalLM", "GPTNeoConfig", dict(vocab_size=131, hidden_size=32, num_layers=3, num_heads=4, max_position_embeddings=128, attention_types=[[["global", "local", "local"], 1]], window_size=4, intermediate_size=48)),
    "phi_layernorm": kind("Phi", **KV, qk_layernorm=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)),
    "glm_bias": kind("Glm", **KV, head_dim=12, attention_bias=True, pad_token_id=0),
    "smollm3_window": kind("SmolLM3", base={**SIZE, "num_hidden_layers": 4}, **KV, pad_token_id=0, use_sliding_window=True, sliding_window=4, layer_types=["sliding_attention", "full_attention"] * 2),
    "nemotron_relu": kind("Nemotron", num_key_value_heads=4, attention_bias=True, mlp_bias=True, head_dim=12),
    # ---- other kinds
    "apertus": kind("Apertus", **KV, **ENDS),
    "arcee": kind("Arcee", **KV),
    "biogpt": kind("BioGpt"),
    "bitnet": kind("BitNet", **KV, **ENDS),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig", dict(GPT, rotary_dim=4)),
    "ctrl": ("CTRLLMHeadModel", "CTRLConfig", dict(vocab_size=131, n_positions=128, n_embd=32, dff=48, n_layer=2, n_head=4)),
    "cwm": kind("Cwm", base={**LONG, "num_hidden_layers": 4}, **KV, **ENDS, head_dim=8, sliding_window=8, layer_types=["full_attention", "sliding_attention"] * 2, rope_parameters=LLAMA3),
    "diffllama": kind("DiffLlama", **KV),
    "doge": kind("Doge", **KV, keep_window_size=256),
    "dory": kind("Dory", base={**SIZE, "num_hidden_layers": 6}, **KV, head_dim=8, sliding_window=8, n_input_layers=2, n_output_layers=2),
    "ernie4_5": kind("Ernie4_5", **KV, head_dim=8, **ENDS),
    "exaone4": kind("Exaone4", base={**SIZE, "num_hidden_layers": 4}, **KV, sliding_window=8, sliding_window_pattern=2, **ENDS),
    "gemma3n": kind("Gemma3n", "Gemma3nText", base={**SIZE, "num_hidden_layers": 4}, **KV, head_dim=8, sliding_window=8, vocab_size_per_layer_input=131, hidden_size_per_layer_input=8, num_kv_shared_layers=2, laurel_rank=4, layer_types=["sliding_attention", "full_attention"] * 2, activation_sparsity_pattern=[0.5, 0.0, 0.0, 0.0]),
    "gemma4": kind("Gemma4", "Gemma4Text", base={**SIZE, "num_hidden_layers": 4}, **KV, head_dim=8, sliding_window=8, vocab_size_per_layer_input=131, hidden_size_per_layer_input=8, layer_types=["sliding_attention", "full_attention"] * 2),
    "glm4": kind("Glm4", **KV, head_dim=8, pad_token_id=0),
    "gpt_neox_japanese": kind("GPTNeoXJapanese", intermediate_multiple_size=2),
    "granite_swa": kind("GraniteSWA", base={**SIZE, "num_hidden_layers": 4}, **KV, sliding_window=8, **ENDS),
    "helium": kind("Helium", **KV, head_dim=8, **ENDS),
    "hunyuan": kind("HunYuanDenseV1", **KV, head_dim=8, **ENDS),
    "hyperclovax": kind("HyperCLOVAX", **KV, **ENDS, attention_multiplier=0.3, residual_multiplier=0.5),
    "jais2": kind("Jais2", **KV, **ENDS),
    "llama4": kind("Llama4", "Llama4Text", base={**SIZE, "num_hidden_layers": 4}, **KV, head_dim=8, intermediate_size_mlp=48, num_local_experts=4, interleave_moe_layer_step=2, attention_chunk_size=256, **ENDS),
    "llama4_chunks": kind("Llama4", "Llama4Text", base={**SIZE, "num_hidden_layers": 4}, **KV, head_dim=8, intermediate_size_mlp=48, num_local_experts=4, interleave_moe_layer_step=2, attention_chunk_size=8, floor_scale=16, **ENDS),
    "minicpm3": kind("MiniCPM3", num_key_value_heads=4, **{**MLA, "v_head_dim": 8}),
    "ministral": kind("Ministral", base={**SIZE, "num_hidden_layers": 4}, **KV, head_dim=8, sliding_window=8, layer_types=["sliding_attention", "full_attention"] * 2),
    "ministral3": kind("Ministral3", base=LONG, **KV, head_dim=8, **ENDS, rope_parameters=dict(YARN, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)),
    "modernbert_decoder": ("ModernBertDecoderForCausalLM", "ModernBertDecoderConfig", {**SIZE, "num_hidden_layers": 4, "local_attention": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2, "layer_types": ["full_attention", "sliding_attention"] * 2}),
    "nanochat": kind("NanoChat", **KV),
    "openai_gpt": ("OpenAIGPTLMHeadModel", "OpenAIGPTConfig", GPT),
    "persimmon": kind("Persimmon", rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)),
    "persimmon_plain": kind("Persimmon", qk_layernorm=False),
    "seed_oss": kind("SeedOss", **KV, head_dim=12),
    "vaultgemma": kind("VaultGemma", **KV, head_dim=8, sliding_window=8, query_pre_attn_scalar=12, attn_logit_softcapping=3.0, layer_types=["sliding_attention", "full_attention"]),
    "xglm": ("XGLMForCausalLM", "XGLMConfig", dict(vocab_size=131, d_model=32, ffn_dim=48, num_layers=2, attention_heads=4, max_position_embeddings=128)),
    "youtu": kind("Youtu", num_key_value_heads=4, **MLA, **ENDS),
    "hrm": kind("HrmText", head_dim=8, prefix_lm=False, num_layers_per_stack=1),
    # ---- decoders of encoder-decoders, and encoders with a causal mask
    "bert_decoder": ("BertLMHeadModel", "BertConfig", BERT),
    "roberta_decoder": ("RobertaForCausalLM", "RobertaConfig", BERT),
    "roformer_decoder": ("RoFormerForCausalLM", "RoFormerConfig", dict(BERT, embedding_size=32)),
    "electra_decoder": ("ElectraForCausalLM", "ElectraConfig", dict(BERT, embedding_size=16)),
    "bart_decoder": ("BartForCausalLM", "BartConfig", BART),
    "blenderbot_decoder": ("BlenderbotForCausalLM", "BlenderbotConfig", BART),
    "pegasus_decoder": ("PegasusForCausalLM", "PegasusConfig", BART),
    "opt_relu": ("OPTForCausalLM", "OPTConfig", dict(OPT, activation_function="gelu")),
}
REFUSED = ("doge", "llama4_chunks", "roberta_decoder")  # by name: masks made of values, chunks shorter than a sequence, positions counted from ids
STEPWISE = ("dynamic", "longrope")  # the answer to a prompt is not a part of the answer to a longer text
