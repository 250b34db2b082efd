"""Speech to text as transformers does it: a small random Whisper, generate() with its caches. Usage: transcribe.py OUT.npz [CALLS]"""
import sys
import time

import numpy as np
import torch
import transformers
from transformers import WhisperConfig, WhisperForConditionalGeneration

transformers.logging.set_verbosity_error()

torch.manual_seed(5)
config = WhisperConfig(vocab_size=200, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                       encoder_ffn_dim=256, decoder_ffn_dim=256, max_source_positions=150, max_target_positions=64, num_mel_bins=40,
                       pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, begin_suppress_tokens=None)
model = WhisperForConditionalGeneration(config).eval()
model.generation_config.forced_decoder_ids = None
calls = int(sys.argv[2]) if len(sys.argv) > 2 else 8
answers, times = [], []
for i in range(calls):
    sound = torch.randn(1, 40, 300, generator=torch.Generator().manual_seed(i))
    start = time.perf_counter()
    tokens = model.generate(sound, max_new_tokens=12, min_new_tokens=12, do_sample=False)
    times.append(time.perf_counter() - start)
    answers.append(tokens[:, :12])
np.savez(sys.argv[1], answers=torch.cat(answers).numpy(), times=np.array(times))
