"""The JIT: five scripts as they are, a second run that starts tuned, and everything that must not happen."""
import json
import logging
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "release" / "python"
SCRIPTS = pathlib.Path(__file__).parent / "scripts"
sys.path.insert(0, str(PACKAGE))
torch = pytest.importorskip("torch")
import ait  # noqa: E402
from ait import _jit, _jit_cache, _jit_start, jit  # noqa: E402
from torch import nn  # noqa: E402

SLOW = bool(os.environ.get("AIT_SLOW_TESTS"))


@pytest.fixture(autouse=True)
def off():
    yield
    jit.disable()


# ---- scripts ---------------------------------------------------------------------------------------------------------------------------
def run(script, out, cache, mode, budget):
    """The script, unchanged, in a Python that starts as one does with ait_jit.pth installed."""
    site = cache / "site"
    site.mkdir(parents=True, exist_ok=True)
    (site / "sitecustomize.py").write_text((ROOT / "python" / "ait_jit.pth").read_text())
    env = {**os.environ, "PYTHONPATH": f"{site}:{PACKAGE}", "AIT_JIT": mode, "AIT_JIT_CACHE": str(cache / "jit"), "AIT_JIT_BACKENDS": "native",
           "AIT_JIT_BUDGET": str(budget), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, SCRIPTS / f"{script}.py", out], env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return {k: v for k, v in np.load(out).items()}, done.stderr


def entries(cache):
    return [json.loads(p.read_text()) for p in (cache / "jit").rglob("entry.json")]


@pytest.mark.parametrize("script", ["classify", "branches"] + (["embed", "diffuse", "transcribe"] if SLOW else []))
def test_scripts_as_they_are(script, tmp_path):
    if script == "transcribe":
        pytest.importorskip("transformers")
    plain, _ = run(script, tmp_path / "0.npz", tmp_path, "0", 1)
    assert not (tmp_path / "jit").exists()
    first, text = run(script, tmp_path / "1.npz", tmp_path, "1", 30 if SLOW else 6)
    found = entries(tmp_path)
    assert any(e["files"] for e in found), text  # something was tuned
    second, _ = run(script, tmp_path / "2.npz", tmp_path, "1", 1e-3)  # no budget: only what the cache has
    for other in (first, second):
        assert other["answers"].dtype == plain["answers"].dtype
        np.testing.assert_allclose(other["answers"], plain["answers"], rtol=1e-3, atol=1e-4 * np.abs(plain["answers"]).max())
        assert other.get("calls") == plain.get("calls")  # a module that counts its calls was called as often
    assert len(entries(tmp_path)) >= len(found)
    assert second["times"].sum() < plain["times"].sum() + 1.0 + 0.5 * plain["times"].sum()  # nothing was tuned again


# ---- modules ---------------------------------------------------------------------------------------------------------------------------
class Mlp(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(nn.Linear(width, 1024), nn.ReLU(), nn.Linear(1024, width))

    def forward(self, x, scale=1.0):
        return self.layers(x) * scale


def start(tmp_path, **options):
    jit.enable(**{"budget": 5, "backends": ["native"], "cache": tmp_path / "cache", **options})


def state(module):
    return _jit._watches[id(module)]


def as_if_fast(monkeypatch):
    """What is tested here is what happens, not how fast: the tuned function counts as faster."""
    decide = _jit.Watch.decide
    monkeypatch.setattr(_jit.Watch, "decide", lambda self, ratio, why, lasting=False: decide(self, ratio and 2.0, why, lasting))


@pytest.fixture(scope="module")
def cached(tmp_path_factory):
    """A cache that knows Mlp with a tensor of two dimensions."""
    folder = tmp_path_factory.mktemp("jit")
    module, x = Mlp().eval(), torch.randn(8, 256)
    with pytest.MonkeyPatch.context() as patch:
        as_if_fast(patch)
        jit.enable(budget=5, backends=["native"], cache=folder, calls=2)
        with torch.no_grad():
            for _ in range(12):
                module(x)
        assert state(module).phase == "tuned", state(module).reason
        jit.disable()
    return folder


def tuned(cached, monkeypatch, **options):
    as_if_fast(monkeypatch)
    jit.enable(**{"budget": 1e-3, "backends": ["native"], "cache": cached, **options})
    module = Mlp().eval()
    with torch.no_grad():
        for _ in range(3):
            module(torch.randn(8, 256))
    assert state(module).phase == "tuned", state(module).reason
    return module


def plain_of(module, *args, **kwargs):
    with torch.no_grad():  # by hand: a call of its layers would be watched, too
        a, _, b = module.layers
        x, scale = args[0].detach(), kwargs.get("scale", 1.0)
        return nn.functional.linear(nn.functional.linear(x, a.weight, a.bias).relu(), b.weight, b.bias) * scale


def test_the_cache_is_used_for_other_batches_and_in_threads(cached, monkeypatch):
    module = tuned(cached, monkeypatch)
    before = jit.report()[0]["tuned_calls"]
    wrong = []

    def work():
        with torch.no_grad():
            for rows in (1, 2, 5, 8, 33):
                x = torch.randn(rows, 256)
                if not torch.allclose(module(x), plain_of(module, x), rtol=1e-4, atol=1e-5):
                    wrong.append(rows)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    row = jit.report()[0]
    assert not wrong and row["tuned_calls"] > before, (row, state(module).router.reasons)


def test_changed_weights_are_seen(cached, monkeypatch):
    module = tuned(cached, monkeypatch)
    x = torch.randn(4, 256)
    with torch.no_grad():
        module.layers[2].bias.add_(3.0)
        torch.testing.assert_close(module(x), plain_of(module, x), rtol=1e-5, atol=1e-5)
        module.layers[0] = nn.Linear(256, 1024)
        torch.testing.assert_close(module(x), plain_of(module, x), rtol=1e-5, atol=1e-5)


def test_training_and_gradients_stay(cached, monkeypatch):
    module = tuned(cached, monkeypatch)
    x = torch.randn(4, 256, requires_grad=True)
    module(x).sum().backward()
    assert x.grad is not None and module.layers[0].weight.grad is not None
    module.train()
    module(torch.randn(4, 256)).sum().backward()
    with torch.no_grad():
        module.eval()
        torch.testing.assert_close(module(x, scale=2.0), plain_of(module, x, scale=2.0), rtol=1e-5, atol=1e-5)


def test_hooks_run(cached, monkeypatch):
    module = tuned(cached, monkeypatch)
    seen = []
    handle = module.layers[0].register_forward_hook(lambda m, a, r: seen.append(1))
    outer = module.register_forward_hook(lambda m, a, r: seen.append(2))
    with torch.no_grad():
        module(torch.randn(3, 256))
    assert seen == [1, 2]
    handle.remove()
    outer.remove()


@pytest.mark.parametrize("phase", ["probe", "tuned"])
def test_copies_and_pickles_are_plain_modules(cached, monkeypatch, tmp_path, phase):
    import copy

    module, x = tuned(cached, monkeypatch), torch.randn(3, 256)
    if phase == "probe":
        jit.disable()
        jit.enable(budget=1e-3, backends=["native"], cache=cached)
        with torch.no_grad():
            module(x)
    assert state(module).phase == phase
    torch.save(module, tmp_path / "m.pt")
    for other in (copy.deepcopy(module), torch.load(tmp_path / "m.pt", weights_only=False)):
        assert type(other) is Mlp
        with torch.no_grad():
            other.layers[2].bias.zero_()
            torch.testing.assert_close(other(x), plain_of(other, x), rtol=1e-4, atol=1e-5)


def test_disable_takes_everything_back(cached, monkeypatch):
    call = nn.Module.__call__
    module = tuned(cached, monkeypatch)
    assert "forward" in module.__dict__
    jit.disable()
    assert "forward" not in module.__dict__ and nn.Module.__call__ is call and not jit.report()


def test_other_weights_code_or_settings_are_another_entry():
    class Other(Mlp):
        def forward(self, x, scale=1.0):
            return self.layers(x) * scale + 1

    a, b = Mlp().eval(), Mlp().eval()
    assert _jit_cache.digest_of(a, None) == _jit_cache.digest_of(b, None)
    c, d, e = Mlp().eval(), Mlp().eval(), Other().eval()
    with torch.no_grad():
        c.layers[0].weight[0, 0] += 1e-3
    d.factor = 2.0
    assert len({_jit_cache.digest_of(m, None) for m in (a, d, e)} | {_jit_cache.digest_of(a, ["native"])}) == 4
    assert _jit_cache.weights_of(a) == _jit_cache.weights_of(b) != _jit_cache.weights_of(c)


def test_a_damaged_cache_is_no_harm(cached, tmp_path):
    import shutil

    folder = tmp_path / "cache"
    shutil.copytree(cached, folder)
    for artifact in folder.rglob("0.ait"):
        data = bytearray(artifact.read_bytes())
        data[len(data) // 2] ^= 255
        artifact.write_bytes(bytes(data))
    jit.enable(budget=1e-3, backends=["native"], cache=folder)
    module, x = Mlp().eval(), torch.randn(8, 256)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(module(x), plain_of(module, x))
    for entry in folder.rglob("entry.json"):
        entry.write_text("{")
    other = Mlp().eval()
    with torch.no_grad():
        torch.testing.assert_close(other(x), plain_of(other, x))


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.seen = Mlp(), []

    def forward(self, x):
        self.seen.append(float(x.sum()))
        return self.inner(x)


class Random(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Mlp()

    def forward(self, x):
        return self.inner(x) + torch.rand(())


class Failing(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Mlp()

    def forward(self, x, what):
        if what == "now":
            raise KeyError(what)
        return self.inner(x).numpy().sum()


def test_state_is_not_touched(tmp_path):
    start(tmp_path, budget=1e-3, calls=2)
    module = Stateful().eval()
    with torch.no_grad():
        for i in range(6):
            module(torch.full((2, 256), float(i)))
    assert module.seen == [512.0 * i for i in range(6)]
    assert state(module).phase == "descend" and "'seen'" in state(module).reason


def test_random_numbers_are_drawn_as_without(tmp_path):
    module, x = Random().eval(), torch.randn(2, 256)

    def draw():
        torch.manual_seed(7)
        with torch.no_grad():
            return [module(x) for _ in range(6)]

    want = draw()
    start(tmp_path, calls=2)
    _jit._settings.budget = 5
    got = draw()
    assert state(module).phase == "descend"
    for a, b in zip(got, want):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_errors_of_the_script_are_its_own(tmp_path, caplog):
    start(tmp_path, budget=1e-3, calls=2)
    module, x = Failing().eval(), torch.randn(2, 256)
    with torch.no_grad(), caplog.at_level(logging.WARNING, "ait.jit"):
        for _ in range(5):
            assert isinstance(module(x, "later"), np.floating)
        with pytest.raises(KeyError):
            module(x, "now")
        assert isinstance(module(x, "later"), np.floating)
    assert not _jit._local.inside
    assert len([r for r in caplog.records if "'Failing'" in r.message]) <= 1


def test_a_failing_tuner_leaves_the_original(tmp_path, monkeypatch, caplog):
    def no(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(_jit, "Job", no)
    start(tmp_path, calls=1)
    module, x = Mlp().eval(), torch.randn(8, 256)
    with torch.no_grad(), caplog.at_level(logging.WARNING, "ait.jit"):
        for _ in range(4):
            torch.testing.assert_close(module(x), plain_of(module, x))
    assert state(module).phase == "original" and sum("'Mlp'" in r.message and "no space left" in r.message for r in caplog.records) == 1


def test_a_slower_function_is_not_kept(cached, monkeypatch):
    decide = _jit.Watch.decide
    monkeypatch.setattr(_jit.Watch, "decide", lambda self, ratio, why, lasting=False: decide(self, 0.5, why, lasting))
    jit.enable(budget=1e-3, backends=["native"], cache=cached)
    module, x = Mlp().eval(), torch.randn(8, 256)
    with torch.no_grad():
        for _ in range(4):
            module(x)
    assert state(module).phase == "original" and "forward" not in module.__dict__


def test_a_wrong_function_is_never_used(cached, tmp_path, monkeypatch):
    import shutil

    from ait import _tuning

    shutil.copytree(cached, tmp_path / "cache")
    make = _tuning.runner_of_model

    def spoiled(model):
        runner = make(model)
        return lambda leaves: [r + 0.5 for r in runner(leaves)]

    monkeypatch.setattr(_tuning, "runner_of_model", spoiled)
    jit.enable(budget=1e-3, backends=["native"], cache=tmp_path / "cache")
    module, x = Mlp().eval(), torch.randn(8, 256)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(module(x), plain_of(module, x))
    assert state(module).phase == "original" and "differs" in state(module).reason


def test_deferred_only_records(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(_jit.Watch, "_tune", lambda self, module: asked.append(self.name))
    start(tmp_path, mode="deferred", calls=1)
    module, x = Mlp().eval(), torch.randn(8, 256)
    with torch.no_grad():
        for _ in range(5):
            module(x)
        assert not asked
        jit.deferred()
        module(x)
        assert asked == ["Mlp"]
        with jit.deferred():
            module(x)
        assert asked == ["Mlp"]
        module(x)
        assert asked == ["Mlp"] * 2


def test_background(tmp_path, monkeypatch):
    as_if_fast(monkeypatch)
    start(tmp_path, mode="background", calls=2)
    module, x = Mlp().eval(), torch.randn(8, 256)
    with torch.no_grad():
        for _ in range(3):
            module(x)
        assert state(module).phase == "learn" and state(module).job is not None
        assert jit.wait(300)
        for _ in range(12):
            torch.testing.assert_close(module(x), plain_of(module, x), rtol=1e-4, atol=1e-5)
    assert state(module).phase == "tuned", state(module).reason
    ait.save(module, tmp_path / "m.ait")
    torch.testing.assert_close(ait.load(tmp_path / "m.ait")(x), plain_of(module, x), rtol=1e-4, atol=1e-5)


def test_off_and_unknown_modes():
    jit.enable("0")
    assert not _jit._enabled
    with pytest.raises(ValueError, match="no JIT mode"):
        jit.enable("sometimes")


def test_torch_compile_sees_through(tmp_path):
    """Dynamo traces modules as it does without the JIT."""
    start(tmp_path, budget=1e-3)
    module = Mlp().eval()
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    compiled = torch.compile(lambda x: module(x) + 1, backend=backend, fullgraph=True)
    x = torch.randn(2, 256)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), plain_of(module, x) + 1)
    assert len(graphs) == 1


def test_the_hook_waits_for_torch():
    start_line = (ROOT / "python" / "ait_jit.pth").read_text()
    code = start_line + "\nimport sys; assert 'torch' not in sys.modules and 'ait._jit' not in sys.modules\n"
    for mode, module in (("1", "ait._jit"), ("0", ""), (None, "")):
        env = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        env.pop("AIT_JIT", None)
        if mode is not None:
            env["AIT_JIT"] = mode
        more = "import torch; print(torch.nn.Module.__call__.__module__)" if module else "assert not [m for m in sys.modules if m.startswith('ait')]"
        out = subprocess.run([sys.executable, "-c", code + more], env=env, capture_output=True, text=True)
        assert out.returncode == 0, out.stderr
        assert out.stdout.strip() == module, (mode, out.stdout)
    assert _jit_start.start is not None
