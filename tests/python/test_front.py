"""Models and pipelines of transformers and diffusers through the front end: tune, save, load without torch, run. The whole zoo: make python-zoo."""
import os
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "python")))
torch.set_num_threads(1)  # models this small gain nothing from threads

import ait  # noqa: E402
import front_models  # noqa: E402
import roundtrip  # noqa: E402
from ait import _contest, _tuning  # noqa: E402


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(_contest, "SECONDS", 0.01)
    monkeypatch.setattr(_tuning, "LEAST_SECONDS", 0.5)


@pytest.mark.parametrize("name", ["bert", "resnet", "llama", "gru", "unet"])
def test_module_runs_without_torch(name, tmp_path):
    pytest.importorskip("diffusers" if name == "unet" else "transformers")
    net, calls = getattr(front_models, name)()
    result = roundtrip.roundtrip(net, calls, True, tmp_path, 0.5, backends=["native"])
    assert result["status"] == "passed", result
    assert result["forms"] == 1


def test_stable_diffusion_pipeline(tmp_path):
    pytest.importorskip("diffusers")
    pytest.importorskip("transformers")
    pipe = front_models.stable_diffusion(tmp_path)
    prompts = [["cat"]]  # one size: exports are quick then; several sizes are tested above
    want = [front_models.draw(pipe, p, 2) for p in prompts]
    run = lambda p, prompt: front_models.draw(p, prompt, 2)  # noqa: E731
    report = ait.tune(pipe, prompts, run=run, budget=1.5, backends=["native"], progress=False, even_if_slower=True,
                      min_share=0.0)
    assert {p.name for p in report.parts if p.tuned} == {"unet", "vae.decode", "text_encoder"}, report
    for got, w in zip([run(pipe, p) for p in prompts], want):
        assert np.abs(got - w).max() < 1e-3
    ait.save(pipe, tmp_path / "pipe.ait")
    fresh = front_models.stable_diffusion(tmp_path)
    ait.load(fresh, tmp_path / "pipe.ait")
    for got, w in zip([run(fresh, p) for p in prompts], want):
        assert np.abs(got - w).max() < 1e-3
    assert all(r.tuned_calls and not r.reasons for r in _tuning.routers_of(fresh))
