"""A diffusion sampler, tuned as its user wrote it: a UNet with class labels (diffusers) under a loop of DDIM steps.

    python diffusion.py                       # a UNet of its own with random weights, as a pipeline object
    python diffusion.py --pt2 STEP.pt2        # an exported step (image, t, t_next, label) -> (image, clean), as a function

Prints the speed-up of each module and of the whole, and the largest difference of any pixel before and after; saves, and draws again from the
saved file in a fresh pipeline. --golden SAMPLER.npz (noise, label, times, images) compares with recorded images, too."""
import argparse
import sys

import numpy as np
import torch

import ait

TOLERANCE = 1e-3  # of pixels between -1 and 1, after all steps


def build_unet(blocks=2):
    """Random weights, scaled so that signals keep their size: library defaults make a UNet nearly the identity, which would hide mistakes."""
    from diffusers import UNet2DModel

    torch.manual_seed(0)
    unet = UNet2DModel(sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(16, 32)[-blocks:], norm_num_groups=8,
                       down_block_types=("DownBlock2D", "AttnDownBlock2D")[-blocks:], up_block_types=("AttnUpBlock2D", "UpBlock2D")[:blocks],
                       attention_head_dim=8, num_class_embeds=10)
    with torch.no_grad():
        for p in unet.parameters():
            if p.dim() > 1:
                p.copy_(torch.randn(p.shape) / p[0].numel() ** 0.5)
    return unet.eval()


class Pipeline:
    """What a user of diffusers writes: a model, a scheduler, a loop."""

    def __init__(self, unet):
        from diffusers import DDIMScheduler

        self.unet, self.scheduler = unet, DDIMScheduler(num_train_timesteps=1000, clip_sample=True)

    @torch.no_grad()
    def __call__(self, noise, label, steps=20):
        self.scheduler.set_timesteps(steps)
        image = noise
        for t in self.scheduler.timesteps:
            predicted = self.unet(image, t, class_labels=label).sample
            image = self.scheduler.step(predicted, t, image).prev_sample
        return image


def sampler(path, times):
    """The same around an exported step: a function that uses a module. Parts of at most 63 images, which is what the program takes."""
    step = torch.export.load(path).module()

    @torch.no_grad()
    def sample(noise, label, steps=None):
        done = []
        for image, of in zip(noise.split(50), label.split(50)):
            for now, then in zip(times[:-1], times[1:]):
                image, _ = step(image, torch.full_like(of, now), torch.full_like(of, then), of)
            done.append(image)
        return torch.cat(done)

    return sample


def differ(a, b):
    return max(float((x - y).abs().max()) for x, y in zip(a, b))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pt2")
    parser.add_argument("--golden")
    parser.add_argument("--blocks", type=int, default=2, choices=(1, 2), help="of the UNet")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--budget", type=float, default=20)
    parser.add_argument("--backends")
    parser.add_argument("--even-if-slower", action="store_true")
    parser.add_argument("-o", "--output", default="diffusion.ait")
    args = parser.parse_args(arguments)

    golden = dict(np.load(args.golden)) if args.golden else None
    times = golden["times"].tolist() if golden else [*torch.linspace(999, 0, args.steps).round().long().tolist(), -1]
    make = (lambda: sampler(args.pt2, times)) if args.pt2 else (lambda: Pipeline(build_unet(args.blocks)))
    noise = torch.from_numpy(golden["noise"]) if golden else torch.randn(args.batch, 1, 8, 8, generator=torch.Generator().manual_seed(7))
    label = torch.from_numpy(golden["label"]) if golden else torch.arange(args.batch) % 10
    samples = [(noise, label, args.steps)]

    pipeline = make()
    before = [pipeline(*s) for s in samples]
    report = ait.tune(pipeline, samples, budget=args.budget, backends=args.backends and args.backends.split(","),
                      even_if_slower=args.even_if_slower)
    print(report)
    after = [pipeline(*s) for s in samples]
    worst = [differ(before, after)]
    print(f"pixels before and after differ by at most {worst[0]:.2g}")
    if any(part.tuned for part in report.parts):
        ait.save(pipeline, args.output)
        fresh = ait.load(make(), args.output)
        worst.append(differ(before, [fresh(*s) for s in samples]))
        print(f"drawn from {args.output}: {worst[-1]:.2g}")
    if golden:
        worst.append(differ([torch.from_numpy(golden["images"][-1])], after))
        print(f"against the recorded images: {worst[-1]:.2g}")
    return report, worst


if __name__ == "__main__":
    sys.exit(max(main()[1]) > TOLERANCE)
