"""examples/python: diffusion.py on a small model of its own, as a pipeline object and as a function around an exported step."""
import importlib.util
import os
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(ROOT / "build" / "release" / "python")))
from ait import _contest, _tuning  # noqa: E402


@pytest.fixture
def example(monkeypatch):
    monkeypatch.setattr(_contest, "SECONDS", 0.01)
    monkeypatch.setattr(_tuning, "LEAST_SECONDS", 0.5)
    torch.set_num_threads(1)
    spec = importlib.util.spec_from_file_location("diffusion_example", ROOT / "examples" / "python" / "diffusion.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(example, report, worst, part):
    assert report[part].tuned and report[part].speedup and report.speedup, report
    assert len(worst) == 2 and max(worst) < example.TOLERANCE, worst


def test_sampler_as_a_pipeline(example, tmp_path):
    arguments = ["--blocks", "1", "--steps", "3", "--batch", "2", "--budget", "1", "--backends", "native", "--even-if-slower", "-o", str(tmp_path / "d.ait")]
    check(example, *example.main(arguments), "unet")


@pytest.mark.skipif(not os.environ.get("AIT_SLOW_TESTS"), reason="exports a UNet twice: AIT_SLOW_TESTS=1")
def test_sampler_around_an_exported_step(example, tmp_path):
    class Step(torch.nn.Module):
        """One DDIM step (Song et al. 2021, eta = 0), with the share of signal that is left at each time."""

        def __init__(self, unet):
            super().__init__()
            self.unet = unet
            self.register_buffer("signal", torch.linspace(1, 0.001, 1001))

        def forward(self, image, t, t_next, label):
            noise = self.unet(image, t, class_labels=label, return_dict=False)[0]
            now, then = (self.signal[s + 1].view(-1, 1, 1, 1) for s in (t, t_next))
            clean = ((image - (1 - now).sqrt() * noise) / now.sqrt()).clamp(-1, 1)
            noise = (image - now.sqrt() * clean) / (1 - now).sqrt()
            return then.sqrt() * clean + (1 - then).sqrt() * noise, clean

    times = torch.full((2,), 500)
    program = torch.export.export(Step(example.build_unet(1)).eval(), (torch.randn(2, 1, 8, 8), times, times - 100, torch.arange(2)),
                                  dynamic_shapes=[{0: torch.export.Dim("batch", max=63)}] * 4)
    torch.export.save(program, tmp_path / "step.pt2")
    arguments = ["--pt2", str(tmp_path / "step.pt2"), "--steps", "3", "--batch", "2", "--budget", "1", "--backends", "native", "--even-if-slower", "-o",
                 str(tmp_path / "d.ait")]
    report, worst = example.main(arguments)
    check(example, report, worst, report.parts[0].name)
