"""Small models of transformers and diffusers with random weights, for the tests of the front end. Nothing is downloaded."""
import json
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from torch import nn


def spread(net, seed=0):
    """Weights that keep signals at unit scale: library defaults make blocks nearly identities, which would hide a wrong operator."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for m in net.modules():
            for name, p in m.named_parameters(recurse=False):
                if not p.is_floating_point():
                    continue
                if p.dim() <= 1:
                    p.copy_((1.0 if name == "weight" else 0.0) + 0.2 * torch.randn(p.shape, generator=g))
                elif isinstance(m, nn.Embedding):
                    p.copy_(0.7 * torch.randn(p.shape, generator=g))
                else:
                    p.copy_(torch.randn(p.shape, generator=g) / p[0].numel() ** 0.5)
    return net.eval().requires_grad_(False)


def ids(*shape, high, seed=0):
    return torch.randint(5, high, shape, generator=torch.Generator().manual_seed(seed))


def image(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# ---- modules: (net, calls by name) -----------------------------------------------------------------------------------------------------
def bert():
    from transformers import BertConfig, BertModel

    net = spread(BertModel(BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                      max_position_embeddings=64)))
    return net, [dict(input_ids=ids(b, s, high=100), attention_mask=torch.ones(b, s, dtype=torch.long)) for b, s in ((2, 9), (1, 5), (3, 20))]


def resnet():
    from transformers import ResNetConfig, ResNetForImageClassification

    net = spread(ResNetForImageClassification(ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=5)))
    return net, [dict(pixel_values=image(b, 3, 32, 32)) for b in (2, 1, 5)]


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    net = spread(LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                              num_key_value_heads=2, max_position_embeddings=64, use_cache=False)))
    return net, [dict(input_ids=ids(b, s, high=64)) for b, s in ((2, 8), (1, 3), (3, 21))]


def gru():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.gru, self.out = nn.Embedding(50, 16), nn.GRU(16, 24, batch_first=True, bidirectional=True), nn.Linear(48, 7)

        def forward(self, tokens):
            return {"logits": self.out(self.gru(self.embed(tokens))[0]), "kind": "tags"}

    return spread(Tagger()), [dict(tokens=ids(b, 12, high=50)) for b in (2, 1, 4)]


def unet():
    from diffusers import UNet2DModel

    net = spread(UNet2DModel(sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(16, 32), num_class_embeds=10,
                             down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
                             norm_num_groups=8, attention_head_dim=8))
    return net, [dict(sample=image(b, 1, 8, 8), timestep=ids(b, high=900), class_labels=ids(b, high=10)) for b in (2, 1, 3)]


# ---- pipelines -------------------------------------------------------------------------------------------------------------------------
def tokenizer(folder):
    """A CLIP tokenizer of single letters."""
    from transformers import CLIPTokenizer

    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    words = letters + [c + "</w>" for c in letters] + ["<|startoftext|>", "<|endoftext|>"]
    with open(os.path.join(folder, "vocab.json"), "w") as f:
        json.dump({w: i for i, w in enumerate(words)}, f)
    with open(os.path.join(folder, "merges.txt"), "w") as f:
        f.write("#version: 0.2\n")
    return CLIPTokenizer(os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt"), model_max_length=16)


def stable_diffusion(folder):
    """A Stable Diffusion pipeline of diffusers: text encoder, UNet, VAE, all small and random."""
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    text = spread(CLIPTextModel(CLIPTextConfig(vocab_size=54, hidden_size=24, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                               max_position_embeddings=16, bos_token_id=52, eos_token_id=53)), 1)
    unet = spread(UNet2DConditionModel(sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(16, 32),
                                       down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), cross_attention_dim=24, attention_head_dim=4,
                                       up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), norm_num_groups=8), 2)
    vae = spread(AutoencoderKL(block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
                               latent_channels=4, norm_num_groups=8, sample_size=16), 3)
    pipe = StableDiffusionPipeline(vae=vae, text_encoder=text, tokenizer=tokenizer(folder), unet=unet, scheduler=DDIMScheduler(),
                                   safety_checker=None, feature_extractor=None, requires_safety_checker=False)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def draw(pipe, prompt, steps=4):
    """run(obj, sample) for ait.tune: a picture for each prompt, from the same noise each time."""
    noise = image(len(prompt), 4, 8, 8, seed=7)
    return pipe(prompt, num_inference_steps=steps, latents=noise, output_type="np").images
