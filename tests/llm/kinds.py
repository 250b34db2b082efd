"""Kinds of causal language models, as tiny random configurations of transformers: name, class, configuration."""

BASE = dict(
    vocab_size=128,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=128,
)
KV = dict(num_key_value_heads=2)

# fmt: off
KINDS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", dict(**BASE, **KV)),
    "llama3": ("LlamaForCausalLM", "LlamaConfig", dict(**BASE, **KV, tie_word_embeddings=True, rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64))),
    "llama_linear": ("LlamaForCausalLM", "LlamaConfig", dict(**BASE, **KV, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.0))),
    "llama_yarn": ("LlamaForCausalLM", "LlamaConfig", dict(**BASE, **KV, rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32))),
    "llama_dynamic": ("LlamaForCausalLM", "LlamaConfig", dict(**BASE, **KV, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0))),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", dict(**BASE, **KV)),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", dict(**BASE, **KV, head_dim=12)),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", dict(**BASE, **KV, head_dim=16, sliding_window=8, attn_logit_softcapping=5.0, final_logit_softcapping=3.0, query_pre_attn_scalar=16)),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(**{**BASE, "num_hidden_layers":4}, **KV, head_dim=16, sliding_window=8, sliding_window_pattern=2)),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(**BASE, **KV, sliding_window=8)),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", dict(**BASE, **KV, pad_token_id=0)),
    "phi3_longrope": ("Phi3ForCausalLM", "Phi3Config", dict(**{**BASE, "max_position_embeddings":256}, **KV, pad_token_id=0, original_max_position_embeddings=64, rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0,1.1,1.2,1.3], long_factor=[1.0,2.0,3.0,4.0], original_max_position_embeddings=64))),
    "phi": ("PhiForCausalLM", "PhiConfig", dict(**BASE)),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(vocab_size=128, n_positions=128, n_embd=32, n_layer=2, n_head=4)),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", dict(**BASE)),
    "gpt_neo": ("GPTNeoForCausalLM", "GPTNeoConfig", dict(vocab_size=128, hidden_size=32, num_layers=2, num_heads=4, max_position_embeddings=128, attention_types=[[["global","local"],1]], window_size=8, intermediate_size=64)),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", dict(vocab_size=128, n_positions=128, n_embd=32, n_layer=2, n_head=4, rotary_dim=4)),
    "opt": ("OPTForCausalLM", "OPTConfig", dict(vocab_size=128, hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, word_embed_proj_dim=32)),
    "falcon": ("FalconForCausalLM", "FalconConfig", dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, new_decoder_architecture=False, multi_query=True, alibi=False)),
    "falcon_new": ("FalconForCausalLM", "FalconConfig", dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2, max_position_embeddings=128, new_decoder_architecture=True, alibi=False)),
    "falcon_alibi": ("FalconForCausalLM", "FalconConfig", dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, new_decoder_architecture=False, multi_query=False, alibi=True)),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(vocab_size=128, hidden_size=32, n_layer=2, n_head=4)),
    "mpt": ("MptForCausalLM", "MptConfig", dict(vocab_size=128, d_model=32, n_layers=2, n_heads=4, max_seq_len=128)),
    "olmo": ("OlmoForCausalLM", "OlmoConfig", dict(**BASE, **KV)),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", dict(**BASE, **KV)),
    "granite": ("GraniteForCausalLM", "GraniteConfig", dict(**BASE, **KV, attention_multiplier=0.3, embedding_multiplier=2.0, logits_scaling=3.0, residual_multiplier=0.7)),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", dict(**BASE, **KV)),
    "cohere": ("CohereForCausalLM", "CohereConfig", dict(**BASE, **KV, use_qk_norm=True)),
    "cohere2": ("Cohere2ForCausalLM", "Cohere2Config", dict(**{**BASE, "num_hidden_layers":4}, **KV, sliding_window=8)),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", dict(**BASE, **KV)),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", "GPTBigCodeConfig", dict(vocab_size=128, n_positions=128, n_embd=32, n_layer=2, n_head=4)),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", dict(**{**BASE, "num_hidden_layers":4}, **KV, pad_token_id=0)),
    "glm": ("GlmForCausalLM", "GlmConfig", dict(**BASE, **KV, head_dim=8, pad_token_id=0)),
    "nemotron": ("NemotronForCausalLM", "NemotronConfig", dict(**BASE, **KV)),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", dict(**BASE, **KV, num_local_experts=4, num_experts_per_tok=2)),
    "qwen2_moe": ("Qwen2MoeForCausalLM", "Qwen2MoeConfig", dict(**BASE, **KV, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=40)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", dict(**BASE, **KV, head_dim=12, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, norm_topk_prob=True)),
    "gpt_oss": ("GptOssForCausalLM", "GptOssConfig", dict(**{**BASE, "num_hidden_layers":2}, **KV, head_dim=8, sliding_window=8, num_local_experts=4, num_experts_per_tok=2)),
    "granitemoe": ("GraniteMoeForCausalLM", "GraniteMoeConfig", dict(**BASE, **KV, num_local_experts=4, num_experts_per_tok=2)),
    "olmoe": ("OlmoeForCausalLM", "OlmoeConfig", dict(**BASE, **KV, num_experts=4, num_experts_per_tok=2)),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", dict(**BASE, num_key_value_heads=4, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=12, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, moe_intermediate_size=24, first_k_dense_replace=1)),
    "mamba": ("MambaForCausalLM", "MambaConfig", dict(vocab_size=128, hidden_size=32, state_size=8, num_hidden_layers=2, time_step_rank=4)),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config", dict(vocab_size=128, hidden_size=32, state_size=8, num_hidden_layers=2, num_heads=8, head_dim=8, n_groups=2, chunk_size=16)),
    "bamba": ("BambaForCausalLM", "BambaConfig", dict(**{**BASE, "num_hidden_layers":3}, **KV, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8, mamba_n_groups=2, mamba_chunk_size=16, mamba_expand=2)),
    "granite_hybrid": ("GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig", dict(**{**BASE, "num_hidden_layers":3}, **KV, layer_types=["mamba","attention","mamba"], mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8, mamba_n_groups=2, mamba_chunk_size=16, mamba_expand=2, num_local_experts=0, shared_intermediate_size=48)),
    "falcon_h1": ("FalconH1ForCausalLM", "FalconH1Config", dict(**BASE, **KV, mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8, mamba_n_groups=2, mamba_chunk_size=16, mamba_d_ssm=64)),
    "falcon_mamba": ("FalconMambaForCausalLM", "FalconMambaConfig", dict(vocab_size=128, hidden_size=32, state_size=8, num_hidden_layers=2, time_step_rank=4)),
    "jamba": ("JambaForCausalLM", "JambaConfig", dict(**{**BASE, "num_hidden_layers": 4}, **KV, pad_token_id=0, bos_token_id=1, eos_token_id=2, num_experts=4, num_experts_per_tok=2, expert_layer_period=2, expert_layer_offset=1, attn_layer_period=4, attn_layer_offset=2, mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False)),
    "zamba2": ("Zamba2ForCausalLM", "Zamba2Config", dict(**{**BASE, "num_hidden_layers": 3}, pad_token_id=0, bos_token_id=1, eos_token_id=2, num_key_value_heads=4, mamba_d_state=8, n_mamba_heads=8, mamba_ngroups=1, chunk_size=16, layers_block_type=["mamba", "hybrid", "mamba"], num_mem_blocks=1, use_mem_rope=True)),
    "nemotron_h": ("NemotronHForCausalLM", "NemotronHConfig", dict(vocab_size=128, hidden_size=32, intermediate_size=64, layers_block_type=["mamba", "moe", "attention", "mamba"], num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=128, ssm_state_size=8, mamba_num_heads=8, mamba_head_dim=8, n_groups=2, chunk_size=16, n_routed_experts=4, moe_intermediate_size=24, moe_shared_expert_intermediate_size=40, num_experts_per_tok=2, n_group=2, topk_group=1)),
    "granite_moe_hybrid": ("GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig", dict(**{**BASE, "num_hidden_layers": 3}, **KV, pad_token_id=0, bos_token_id=1, eos_token_id=2, layer_types=["mamba", "attention", "mamba"], mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8, mamba_n_groups=2, mamba_chunk_size=16, mamba_expand=2, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=48)),
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", dict(**{**BASE, "num_hidden_layers": 3}, **KV, pad_token_id=0, bos_token_id=1, eos_token_id=2, layer_types=["conv", "full_attention", "conv"])),
    "lfm2_moe": ("Lfm2MoeForCausalLM", "Lfm2MoeConfig", dict(**{**BASE, "num_hidden_layers": 3}, **KV, pad_token_id=0, bos_token_id=1, eos_token_id=2, layer_types=["conv", "full_attention", "conv"], num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, num_dense_layers=1)),
    "deepseek_v2": ("DeepseekV2ForCausalLM", "DeepseekV2Config", dict(**BASE, pad_token_id=0, bos_token_id=1, eos_token_id=2, num_key_value_heads=4, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=12, q_lora_rank=16, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, topk_method="group_limited_greedy", moe_intermediate_size=24, first_k_dense_replace=1, head_dim=8)),
    "phimoe": ("PhimoeForCausalLM", "PhimoeConfig", dict(**BASE, **KV, pad_token_id=0, bos_token_id=1, eos_token_id=2, num_local_experts=4, num_experts_per_tok=2)),
    "ernie4_5_moe": ("Ernie4_5_MoeForCausalLM", "Ernie4_5_MoeConfig", dict(**BASE, **KV, pad_token_id=0, bos_token_id=1, eos_token_id=2, moe_intermediate_size=24, moe_k=2, moe_num_experts=4, moe_num_shared_experts=1, moe_layer_start_index=1)),
    "glm4_moe": ("Glm4MoeForCausalLM", "Glm4MoeConfig", dict(**BASE, **KV, pad_token_id=0, bos_token_id=1, eos_token_id=2, moe_intermediate_size=24, num_experts_per_tok=2, n_routed_experts=4, n_group=2, topk_group=1, head_dim=8)),
    "dots1": ("Dots1ForCausalLM", "Dots1Config", dict(**BASE, **KV, pad_token_id=0, bos_token_id=1, eos_token_id=2, moe_intermediate_size=24, n_shared_experts=1, n_routed_experts=4, n_group=2, topk_group=1, num_experts_per_tok=2, first_k_dense_replace=1, norm_topk_prob=True)),
    "hunyuan_moe": ("HunYuanMoEV1ForCausalLM", "HunYuanMoEV1Config", dict(**BASE, **KV, pad_token_id=0, bos_token_id=1, eos_token_id=2, num_experts=4, moe_topk=2, head_dim=8)),
}
# fmt: on

# Pairs of encoder and decoder.
_TEXT = dict(
    vocab_size=90, d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=40,
    decoder_ffn_dim=40, max_position_embeddings=64,
)
_T5 = dict(vocab_size=90, d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4, decoder_start_token_id=0)
PAIRS = {
    "t5": ("T5ForConditionalGeneration", "T5Config", dict(_T5, feed_forward_proj="relu")),
    "t5_gated": ("T5ForConditionalGeneration", "T5Config", dict(_T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    "bart": ("BartForConditionalGeneration", "BartConfig", dict(_TEXT)),
    "mbart": ("MBartForConditionalGeneration", "MBartConfig", dict(_TEXT, forced_bos_token_id=7, decoder_start_token_id=2)),
    "marian": (
        "MarianMTModel", "MarianConfig",
        dict(_TEXT, pad_token_id=89, eos_token_id=0, forced_eos_token_id=0, decoder_start_token_id=89),
    ),
    "whisper": (
        "WhisperForConditionalGeneration", "WhisperConfig",
        dict(
            {k: v for k, v in _TEXT.items() if k != "max_position_embeddings"}, num_mel_bins=8, max_source_positions=20,
            max_target_positions=40, pad_token_id=1, bos_token_id=2, eos_token_id=2, decoder_start_token_id=3, suppress_tokens=[5, 6],
            begin_suppress_tokens=[7, 2],
        ),
    ),
}
