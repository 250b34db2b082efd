"""The front end on modules and pipelines: inspect, wrap, tune, save, load. Models are small; speed is not asserted, except that nothing that
lost a contest is used."""
import copy
import dataclasses
import functools
import io
import json
import logging
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import typing
import zipfile

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "python")))
import ait  # noqa: E402
from ait import _contest, _data, _modules, _router, _tree, _tuning  # noqa: E402

BUDGET = 0.5
torch.set_num_threads(1)  # models this small gain nothing from threads


@pytest.fixture(autouse=True)
def deterministic():
    torch.manual_seed(0)


@pytest.fixture
def always_wins(monkeypatch):
    """The contest's verdict is not what these tests are about."""
    monkeypatch.setattr(_contest.Contest, "won", property(lambda self: True))
    monkeypatch.setattr(_contest, "SECONDS", 0.01)
    monkeypatch.setattr(_tuning, "LEAST_SECONDS", 0.5)


def tune(obj, data, **options):
    options.setdefault("budget", BUDGET)
    options.setdefault("min_share", 0.0)  # shares of such small models are noise
    return ait.tune(obj, data, progress=False, backends=["native"], **options)


@dataclasses.dataclass
class Result:
    sample: torch.Tensor
    count: int = 0
    extra: typing.Optional[torch.Tensor] = None


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.GELU())
        self.decoder = nn.Sequential(nn.Linear(16, 8), nn.Tanh())

    def encode(self, x):
        return self.encoder(x)

    def decode(self, z, scale=1.0, return_dict=True):
        y = self.decoder(z) * scale
        return Result(y, y.shape[0]) if return_dict else (y,)

    def forward(self, x):
        return self.decode(self.encode(x))


class Branchy(nn.Module):
    """Cannot be exported; its children can."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        y = self.inner(x)
        if y.sum() > 0:  # the line that the reason names
            return y
        return -y


class Pipe:
    def __init__(self):
        torch.manual_seed(1)
        self.vae = Coder().eval()
        self.parts = {"head": Branchy().eval(), "again": [self.vae]}
        self.name = "pipe"

    def __call__(self, x, steps=2):
        z = self.vae.encode(x)
        for _ in range(steps):
            z = z + 0.1 * self.vae.encode(self.vae.decode(z, scale=0.5).sample)
        return self.parts["head"](self.vae.decode(z=z, return_dict=False)[0])


DATA = [torch.linspace(-1, 1, 16).reshape(2, 8), torch.linspace(0, 1, 8).reshape(1, 8), torch.linspace(-2, 1, 40).reshape(5, 8)]


def answers(pipe, data=DATA):
    with torch.no_grad():
        return [pipe(x) for x in data]


def close(a, b):
    return all(torch.allclose(x, y, rtol=1e-4, atol=1e-5) for x, y in zip(a, b))


# ---- finding and inspecting ------------------------------------------------------------------------------------------------------------
def test_modules_are_found_in_lists_dicts_slots_closures_and_by_alias():
    class Slots:
        __slots__ = ("a", "b")

    s = Slots()
    s.a, s.b = Coder(), (Branchy(), {"x": nn.Linear(1, 1)})
    assert {"a", "a.encoder", "a.encoder.0", "b.0", "b.0.inner", "b.1.x"} <= {f.path for f in _modules.find(s)}
    pipe = Pipe()
    found = {f.path: f for f in _modules.find(pipe)}
    assert found["vae"].aliases == ["parts.again.0"]
    assert "pipe.vae" in {f.path for f in _modules.find(lambda x: pipe(x))}
    assert "vae" in {f.path for f in _modules.find(functools.partial(Pipe.__call__, pipe))} | {f.path.split(".", 1)[-1] for f in _modules.find(
        functools.partial(Pipe.__call__, pipe))}
    root = nn.Linear(2, 2)
    assert [f.path for f in _modules.find(root)] == [_modules.ROOT]


def test_equal_leaf_names_do_not_collide():
    class Two:
        def __init__(self):
            self.a, self.b = Coder().eval(), Coder().eval()

        def __call__(self, x):
            return self.a.encoder(x) + self.b.encoder(x)

    info = ait.inspect(Two(), DATA, min_share=0.0)
    assert {r.name for r in info.modules(min_share=0)} == {"a.encoder", "b.encoder"}


def test_inspect_names_methods_shares_and_reasons():
    info = ait.inspect(Pipe(), DATA, min_share=0.0)
    names = {r.name for r in info.rows}
    assert {"vae.encode", "vae.decode", "parts.head", "parts.head.inner"} <= names
    assert info["vae.encode"].calls == 9 and info["vae.decode"].calls == 9
    assert 0 < info["vae.encode"].share < 1
    head = info["parts.head"]
    assert not head.candidate and head.reason.code == "data-dependent" and head.reason.source.startswith("if y.sum() > 0")
    assert info["parts.head.inner"].candidate
    assert head.reason.file.endswith("test_tune.py") and "the line that the reason names" in head.reason.source
    assert "vae.encode" in str(info) and "<table>" in info._repr_html_() and json.loads(info.json())["modules"]
    assert info.modules(min_share=0, limit=1) == sorted(info.modules(min_share=0), key=lambda r: -r.share)[:1]


def test_inspect_leaves_no_trace():
    pipe = Pipe()
    before = dict(vars(pipe.vae))
    ait.inspect(pipe, DATA)
    assert vars(pipe.vae).keys() == before.keys() and "forward" not in vars(pipe.vae)


# ---- tuning ----------------------------------------------------------------------------------------------------------------------------
def test_pipeline_round_trip(tmp_path, always_wins):
    pipe = Pipe()
    want = answers(pipe)
    report = tune(pipe, DATA)
    assert {p.name for p in report.parts if p.tuned} == {"vae.encode", "vae.decode", "parts.head.inner"}
    assert report.reasons["parts.head"].code == "data-dependent"
    assert report.speedup and json.loads(report.json()) and "parts.head" in report.text() and "<table>" in report.html()
    assert close(answers(pipe), want)
    routers = {r.part.name: r for r in _tuning.routers_of(pipe)}
    assert all(r.tuned_calls and not r.reasons for r in routers.values())
    new = torch.linspace(-1, 2, 72).reshape(9, 8)  # a batch that was not recorded
    assert close(answers(pipe, [new]), answers(Pipe(), [new])) and not routers["vae.encode"].reasons
    ait.save(pipe, tmp_path / "pipe.ait")
    ait.save(pipe, tmp_path / "again.ait")
    assert (tmp_path / "pipe.ait").read_bytes() == (tmp_path / "again.ait").read_bytes()
    assert b"cpython" not in (tmp_path / "pipe.ait").read_bytes() and not any(n.endswith(".pkl") for n in zipfile.ZipFile(tmp_path / "pipe.ait").namelist())

    fresh = Pipe()
    assert ait.load(fresh, tmp_path / "pipe.ait") is fresh
    assert close(answers(fresh), want)
    assert all(r.tuned_calls for r in _tuning.routers_of(fresh))
    result = fresh.vae.decode(torch.zeros(3, 16), scale=0.5)
    assert type(result) is Result and result.count == 3 and result.extra is None

    other = Pipe()
    nn.init.zeros_(other.vae.encoder[0].weight)
    with pytest.raises(ait.Mismatch, match="weights of 'vae.(en|de)code'"): # both hold them; the larger share is asked first
        ait.load(other, tmp_path / "pipe.ait")

    meta = Pipe()
    for m in (meta.vae, meta.parts["head"].inner):
        m.to("meta")
    ait.load(meta, tmp_path / "pipe.ait")
    assert close(answers(meta), want)
    with pytest.raises(RuntimeError, match="no weights in memory.*scale"):
        meta.vae.decode(torch.zeros(1, 16), scale=2.0)

    parts = ait.load(tmp_path / "pipe.ait")
    assert set(parts) == {"vae.encode", "vae.decode", "parts.head.inner"}
    assert torch.allclose(parts["vae.encode"](DATA[0]), Pipe().vae.encode(DATA[0]), atol=1e-5)

    ait.unwrap(pipe)
    assert not _tuning.routers_of(pipe) and close(answers(pipe), want)


def test_module_becomes_a_plain_artifact_that_runs_without_torch(tmp_path, always_wins):
    net = Coder().eval()
    with torch.no_grad():
        want = [net(x) for x in DATA]
    tune(net, DATA)
    ait.save(net, tmp_path / "net.ait")
    np = pytest.importorskip("numpy")
    np.savez(tmp_path / "x.npz", x=DATA[2].numpy(), y=want[2].sample.numpy())
    code = """
import sys
for name in ("torch", "transformers"): sys.modules[name] = None
import numpy, ait
d = numpy.load(sys.argv[2]); r = ait.load(sys.argv[1])(d["x"])
assert r.count == 5 and r.extra is None, r
assert numpy.abs(r.sample - d["y"]).max() < 1e-5
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "net.ait"), str(tmp_path / "x.npz")], check=True,
                   env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(ait.__file__))})
    fresh = Coder().eval()
    fresh.load_state_dict(net.state_dict())
    ait.load(fresh, tmp_path / "net.ait")
    got = fresh(x=DATA[2])
    assert type(got) is Result and torch.allclose(got.sample, want[2].sample, atol=1e-5)


def test_calls_that_were_not_tuned_run_the_original(always_wins, caplog):
    net = Coder().eval()
    plain = copy.deepcopy(net)
    tune(net, DATA)
    router = net.__dict__["forward"]
    x = DATA[0]
    with torch.no_grad(), caplog.at_level(logging.WARNING, "ait"):
        for other in (x.double().float().unsqueeze(0), x.requires_grad_(False)):
            assert torch.allclose(net(other).sample, plain(other).sample, atol=1e-5)
        net.double(), plain.double()
        assert net(x.double()).sample.dtype == torch.float64
    assert len(router.reasons) == 2 and sum(router.reasons.values()) == 2
    assert len([r for r in caplog.records if "runs its original code" in r.getMessage()]) == 2


def test_changed_parameters_are_noticed():
    for change in (lambda m: m.encoder[0].weight.mul_(0.0),
                   lambda m: setattr(m.encoder[0], "weight", nn.Parameter(torch.zeros(16, 8))),
                   lambda m: setattr(m, "encoder", nn.Sequential(nn.Linear(8, 16), nn.GELU())),
                   lambda m: m.load_state_dict({k: v * 0 for k, v in m.state_dict().items()}),
                   lambda m: m.load_state_dict({k: v * 0 for k, v in m.state_dict().items()}, assign=True),
                   lambda m: setattr(m.encoder[0].weight, "data", torch.zeros(16, 8)),
                   lambda m: m.encoder[0].weight.data.mul_(0.5),
                   lambda m: m.encoder[0].bias.detach().numpy().fill(1.0)):
        net = Coder().eval()
        part = _modules.Part("net", net)
        leaves, key = part.canonical((DATA[0],), {})
        _, out = _tree.flatten(net(DATA[0]))
        frozen = copy.deepcopy(net)
        router = _router.route(part)
        router.install([_router.Tuned(key, [["b", 8]], out, lambda leaves: [frozen(*leaves).sample])])
        with torch.no_grad():
            net(DATA[0])
            assert router.tuned_calls == 1 and not router.reasons
            change(net)
            plain = Coder().eval()
            plain.encoder, plain.decoder = net.encoder, net.decoder
            assert torch.equal(net(DATA[0]).sample, plain(DATA[0]).sample)
            assert list(router.reasons) == ["its parameters or buffers were changed after tuning (tune it again)"]


def test_attributes_and_modes_of_what_is_inside_are_noticed():
    for change, reason in ((lambda m: setattr(m.encoder[1], "approximate", "tanh"), "the attribute 'approximate' of a GELU was changed"),
                           (lambda m: m.decoder.train(), "submodule 'decoder' is in training mode"),
                           (lambda m: setattr(m.encoder[0], "forward", lambda x: torch.zeros(2, 16)), "the attribute 'forward' of a Linear was changed")):
        net = Coder().eval()
        part = _modules.Part("net", net)
        leaves, key = part.canonical((DATA[0],), {})
        _, out = _tree.flatten(net(DATA[0]))
        router = _router.route(part)
        router.install([_router.Tuned(key, [["b", 8]], out, lambda leaves: [leaves[0]])])
        with torch.no_grad():
            assert torch.equal(net(DATA[0]).sample, DATA[0])
            change(net)
            assert not torch.equal(net(DATA[0]).sample, DATA[0]) and reason in next(iter(router.reasons))


def test_training_mode_hooks_and_gradients(always_wins):
    net = Coder().eval()
    plain = copy.deepcopy(net)
    tune(net, DATA)
    router = net.__dict__["forward"]
    x = DATA[0].clone().requires_grad_()
    net(x).sample.sum().backward()  # an argument needs gradients: the original
    y = DATA[0].clone().requires_grad_()
    plain(y).sample.sum().backward()
    assert torch.equal(x.grad, y.grad) and "an argument needs gradients" in router.reasons

    net.zero_grad(), plain.zero_grad()
    before = router.tuned_calls
    net(DATA[0]).sample.sum().backward()  # only parameters need gradients: tuned, and the original for the way back
    plain(DATA[0]).sample.sum().backward()
    assert router.tuned_calls == before + 1
    for a, b in zip(net.parameters(), plain.parameters()):
        assert torch.allclose(a.grad, b.grad, atol=1e-6)

    seen = []
    handle = net.encoder.register_forward_hook(lambda *a: seen.append(1))
    with torch.no_grad():
        net(DATA[0])
    assert seen == [1]
    handle.remove()
    own = net.register_forward_hook(lambda m, i, o: seen.append(2))
    with torch.no_grad():
        before = router.tuned_calls
        net(DATA[0])
    assert seen == [1, 2] and router.tuned_calls == before + 1
    own.remove()
    net.train()
    before = router.tuned_calls
    net(DATA[0])
    assert router.tuned_calls == before


def test_module_with_hooked_child_is_tuned_below_it(always_wins):
    net = Coder().eval()
    seen = []
    net.encoder.register_forward_hook(lambda *a: seen.append(1))
    report = tune(net, DATA)
    assert report.reasons["(root)"].code == "hooks"
    assert {"encoder", "decoder"} <= {p.name for p in report.parts if p.tuned}
    n = len(seen)
    with torch.no_grad():
        net(DATA[0])
    assert len(seen) == n + 1


class Structured(nn.Module):
    """Arguments with structure, an argument twice, results that are arguments and buffers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.layer = nn.Linear(8, 8)
        self.register_buffer("table", torch.arange(8.0))

    def forward(self, xs, options):
        return [self.layer(x) * options["w"] for x in xs], options["deep"]["x"], self.table


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(8, 8), 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) + 0


def test_arguments_with_structure_and_modules_that_count(always_wins, tmp_path):
    class Both:
        def __init__(self):
            torch.manual_seed(5)
            self.structured, self.counting = Structured().eval(), Counting().eval()

        def __call__(self, x):
            rows, same, table = self.structured([x, x + 1], {"w": x[0], "deep": {"x": x}})
            return self.counting(rows[0] + rows[1] + same + table)

    pipe = Both()
    want = answers(pipe)
    report = tune(pipe, DATA)
    assert {p.name for p in report.parts if p.tuned} == {"structured", "counting.layer"}, report
    assert report.reasons["counting"].code == "changes-state" and "'calls'" in str(report.reasons["counting"])
    before = pipe.counting.calls
    assert close(answers(pipe), want) and pipe.counting.calls == before + len(DATA)
    ait.save(pipe, tmp_path / "p.ait")
    fresh = Both()
    ait.load(fresh, tmp_path / "p.ait")
    assert close(answers(fresh), want) and all(r.tuned_calls and not r.reasons for r in _tuning.routers_of(fresh))


def test_copies_and_pickles_of_a_tuned_module_are_plain(always_wins):
    net = Coder().eval()
    tune(net, DATA)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        with torch.no_grad():
            other.encoder[0].weight.zero_()
            assert not isinstance(other.__dict__.get("forward"), _router.Router)
            assert not torch.allclose(other(DATA[0]).sample, net(DATA[0]).sample)


def test_threads_share_a_tuned_module(always_wins):
    net = Coder().eval()
    tune(net, DATA)
    with torch.no_grad():
        want = {len(x): net(x).sample for x in DATA}
    wrong = []

    def work():
        with torch.no_grad():
            for i in range(100):
                x = DATA[i % 3]
                if not torch.equal(net(x).sample, want[len(x)]):
                    wrong.append(i)

    router = net.__dict__["forward"]
    before = router.tuned_calls
    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong and router.tuned_calls == before + 800 and not router.reasons


def test_autocast_and_inference_mode_are_forms_of_their_own(always_wins):
    class Auto:
        def __init__(self):
            self.net = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()

        def __call__(self, x, low=False):
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=low):
                return self.net(x)

    pipe = Auto()
    want = [pipe(DATA[0]), pipe(DATA[0], low=True)]
    report = tune(pipe, [(DATA[0],), (DATA[0], True)])
    assert [k.autocast for k in _tuning.routers_of(pipe)[0].table] or report.parts[0].kept
    got = [pipe(DATA[0]), pipe(DATA[0], low=True)]
    assert got[0].dtype == torch.float32 and got[1].dtype == torch.bfloat16
    assert all(torch.allclose(a.float(), b.float(), atol=2e-2) for a, b in zip(got, want))


def test_functions_wrap_strategies_and_dry_run(always_wins):
    net, other = Coder().eval(), nn.Linear(8, 8).eval()

    def search(x):
        return net.encode(other(x))

    plan = ait.tune(search, DATA, dry_run=True, min_share=0.0)
    assert plan.dry_run and {p.name for p in plan.parts} == {"net.encode", "other"} and not _tuning.routers_of(search)
    assert ait.wrap(search, ["net.encode"], strategies={"net.encode": ait.MinLatency()}) is search
    with pytest.raises(ValueError, match="nowhere"):
        ait.wrap(search, ["net.encode"], strategies={"nowhere": ait.MinLatency()})
    with pytest.raises(ValueError, match="there is no module 'net.code'"):
        ait.wrap(search, ["net.code"])
    report = tune(search, DATA)
    assert [p.name for p in report.parts] == ["net.encode"] and report["net.encode"].tuned
    assert report["net.encode"].programs[0]["report"]["strategy"] == "min-latency"


def test_what_loses_the_contest_is_not_used(monkeypatch):
    monkeypatch.setattr(_contest.Contest, "won", property(lambda self: False))
    monkeypatch.setattr(_contest, "SECONDS", 0.01)
    net = Coder().eval()
    report = tune(net, DATA)
    assert not report.parts[0].tuned and "the original is as fast" in report.parts[0].reason and not _tuning.routers_of(net)


def test_the_reference_is_the_last_resort():
    report = ait.tune(torch.nn.Linear(8, 8).eval(), torch.randn(2, 8), budget=1, progress=False, even_if_slower=True)
    candidates = report["(root)"].programs[0]["report"]["candidates"]
    assert any(c["name"].startswith("native") and c["outcome"] == "valid" for c in candidates)
    (reference,) = (c for c in candidates if c["name"].startswith("reference"))
    assert reference["outcome"] == "skipped" and "oracle" in reference["reason"]


def test_given_dims_from_one_sample(always_wins):
    net = Coder().eval()
    tune(net, DATA[1:2], dynamic_shapes={"x": {0: ait.BatchDim(max=64)}})
    router = net.__dict__["forward"]
    with torch.no_grad():
        before = router.tuned_calls
        assert net(torch.ones(7, 8)).count == 7 and net(torch.ones(1, 8)).count == 1
        assert router.tuned_calls == before + 2
        assert net(torch.ones(65, 8)).count == 65  # outside the range: the original
        assert router.tuned_calls == before + 2


def test_batch_sizes_make_the_batch_dynamic(always_wins):
    net = nn.Sequential(nn.Linear(8, 4)).eval()
    report = tune(net, torch.ones(1, 8), batch_sizes=[1, 4])
    assert "batch" in report.parts[0].programs[0]["signature"] or "s" in report.parts[0].programs[0]["signature"]
    with torch.no_grad():
        net(torch.ones(3, 8))
    assert not net.__dict__["forward"].reasons


def test_metric_and_its_limit(always_wins):
    net = nn.Sequential(nn.Linear(8, 4)).eval()
    values = iter([0.9, 0.5])
    report = tune(net, DATA, metric=lambda outputs, samples: next(values), metric_drop=0.1)
    assert (report.metric_before, report.metric_after) == (0.9, 0.5) and "originals are back" in report.undone
    assert not _tuning.routers_of(net)


# ---- export ----------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("strict", [False, True])
def test_export_keeps_names_and_answers(tmp_path, strict):
    net = Coder().eval()
    made = ait.export(net.encoder, DATA[0], tmp_path / "m.pt2", samples=DATA[1:], strict=strict)
    assert list(made.inputs) == ["input"] and list(made.ranges.values()) == [(1, None)]
    model = ait.load(tmp_path / "m.pt2")
    with torch.no_grad():
        assert all(torch.allclose(model(x), net.encoder(x), atol=1e-5) for x in DATA)


class Mutating(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x * self.count


@pytest.mark.parametrize("module, code, source", [
    (Branchy, "data-dependent", "if y.sum() > 0"),
    (Mutating, "changes-state", ""),
    (lambda: type("Noise", (nn.Module,), {"forward": lambda self, x: x + torch.rand_like(x)})(), "random", ""),
    (lambda: type("Numpy", (nn.Module,), {"forward": lambda self, x: torch.from_numpy(x.numpy() + 1)})(), "leaves-torch", "x.numpy()"),
])
def test_export_refusals_name_the_line(tmp_path, module, code, source):
    with pytest.raises(ait.ExportError) as error:
        ait.export(module().eval(), torch.ones(2, 8), tmp_path / "m.pt2")
    assert error.value.reason.code == code and source in error.value.reason.source
    assert not source or error.value.reason.file.endswith("test_tune.py")


def test_export_of_a_module_in_training_mode_is_refused(tmp_path):
    with pytest.raises(ait.ExportError, match="training mode"):
        ait.export(Coder(), DATA[0], tmp_path / "m.pt2")


# ---- data and trees ----------------------------------------------------------------------------------------------------------------------
def test_data_in_every_form():
    x, y = torch.ones(2, 8), torch.zeros(2, dtype=torch.long)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 8), torch.zeros(4, dtype=torch.long)), batch_size=2)

    def one(image):
        return image

    def named(ids, mask=None):
        return ids

    for data, fn, want in (([x], one, [((x,), {})]), (x, one, [((x,), {})]), ((v for v in [x]), one, [((x,), {})]), ([(x, y)], one, [((x,), {})]),
                           ([{"ids": x, "label": y}], named, [((), {"ids": x})]), ([((x,), {"mask": y})], named, [((x,), {"mask": y})]),
                           (lambda b: [torch.ones(b, 8)], one, None), (loader, one, None), ({"ids": x}, named, [((), {"ids": x})])):
        calls = list(_data.calls_of(_data.samples_of(data), fn))
        if want is not None:
            assert len(calls) == len(want)
            for (a, k), (wa, wk) in zip(calls, want):
                assert len(a) == len(wa) and all(p is q for p, q in zip(a, wa)) and k.keys() == wk.keys()
        assert all(_tree.is_tensor(v) for a, k in calls for v in (*a, *k.values()))
    classify = lambda pixel_values=None, labels=None: pixel_values  # noqa: E731 (as transformers' classifiers: all have defaults)
    assert list(_data.calls_of([(x, y)], classify)) == [((x,), {})]
    with pytest.raises(ValueError, match="empty"):
        _data.samples_of([])
    audio = {"array": x[0].numpy(), "sampling_rate": 16000}
    assert _data.as_call(audio) == ((), audio)
    assert _data.rebatch((["a", "b"], x, 3), 3)[0] == ["a", "b", "a"] and _data.rebatch((["a", "b"], x, 3), 3)[1].shape == (3, 8)


class Pair(typing.NamedTuple):
    a: torch.Tensor
    b: int


def test_trees_come_back_and_survive_json():
    t = torch.ones(1)
    value = {"r": Result(t, 2), "l": [t, None, "text", 0.5, float("nan"), (True, 1)], "p": Pair(t, 3), "d": torch.float16, "m": t.max(0)}
    leaves, spec = _tree.flatten(value)
    again = _tree.from_json(json.loads(json.dumps(_tree.to_json(spec), allow_nan=False)))
    assert again == spec and len(leaves) == 5
    back = _tree.rebuild(again, leaves)
    assert type(back["r"]) is Result and back["r"].count == 2 and type(back["p"]) is Pair and back["d"] is torch.float16 and back["l"][5] == (True, 1)
    assert type(back["m"]) is type(value["m"])
    for damaged in (["c", "torch.dtype", "torch.load"], ["c", "int", "1"], ["t", 1], ["dict", [["t"]], [["t"]]], ["obj", "os:system", "x", [], []], [], None):
        with pytest.raises(ValueError):
            _tree.rebuild(_tree.from_json(damaged), [])
    strange = _tree.rebuild(_tree.from_json(["obj", "os:system", "dataclass", ["a"], [["c", "int", 1]]]), [])
    assert strange == {"a": 1} and type(strange) is _tree.Record
    deep: typing.Any = ["t"]
    for _ in range(200):
        deep = ["list", [deep]]
    with pytest.raises(ValueError):
        _tree.from_json(deep)


# ---- damaged files ---------------------------------------------------------------------------------------------------------------------
def test_damaged_pipeline_files_are_refused(tmp_path, always_wins):
    class Two:
        def __init__(self):
            torch.manual_seed(2)
            self.a, self.b = nn.Linear(8, 8).eval(), nn.Linear(8, 8).eval()

        def __call__(self, x):
            return self.b(self.a(x))

    pipe = Two()
    tune(pipe, DATA[:1])
    path = tmp_path / "p.ait"
    ait.save(pipe, path)
    whole = path.read_bytes()
    ait.load(Two(), path)
    for at in range(0, len(whole), max(1, len(whole) // 40)):
        (tmp_path / "bad.ait").write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1:])
        fresh = Two()
        try:
            ait.load(fresh, tmp_path / "bad.ait")
        except ait.Error:
            continue
        with torch.no_grad():  # a byte that nothing reads: the answers are right
            assert torch.allclose(fresh(DATA[0]), Two()(DATA[0]), atol=1e-5)
    for cut in (0, 10, 200, len(whole) // 2, len(whole) - 1):
        (tmp_path / "bad.ait").write_bytes(whole[:cut])
        with pytest.raises(ait.Error):
            ait.load(Two(), tmp_path / "bad.ait")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as z:
        z.writestr("pipeline.json", json.dumps({"format": 9, "reader": 9, "parts": []}))
    (tmp_path / "new.ait").write_bytes(buffer.getvalue())
    with pytest.raises(ait.Incompatible, match="newer"):
        ait.load(Two(), tmp_path / "new.ait")
    with pytest.raises(ait.NotFound, match="part 'a'"):
        ait.load(Pipe(), path)


# ---- pages -----------------------------------------------------------------------------------------------------------------------------
def test_the_page_runs(tmp_path, monkeypatch):
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "python-pipelines.md").read_text()
    code = page.split("```python\n", 1)[1].split("```", 1)[0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_tuning, "_default_backends", lambda seconds: ["native"])  # the page is about calls, not about who wins
    scope = {"__name__": "page"}
    exec(compile(code, "docs/python-pipelines.md", "exec"), scope)
    x = scope["data"][0]
    if "fresh" in scope:
        assert torch.allclose(scope["pipe"](x), scope["fresh"](x), atol=1e-5)


def test_a_graph_of_torch_export_in_a_function(always_wins, tmp_path):
    exported = torch.export.export(Coder().eval().encoder, (DATA[0],), dynamic_shapes=({0: torch.export.Dim("n", min=1, max=32)},))
    step = exported.module()

    def search(x):
        return step(x) + step(x)

    want = answers(search)
    report = tune(search, DATA)
    assert report["step"].tuned and close(answers(search), want)


def test_control_flow_operators_are_left_to_themselves_while_watching():
    class Scan(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(8, 8)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda v: self.cell(v), lambda v: v - 1, (x,))

    info = ait.inspect(Scan().eval(), [torch.ones(2, 8)])
    assert info["(root)"].calls == 1
