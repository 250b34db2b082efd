"""Data sets in the forms that users have, through ait.tune; callbacks; calibration; what reports look like."""
import os
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn
sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "python")))
import ait  # noqa: E402
from ait import _contest, _tuning  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(_contest.Contest, "won", property(lambda self: True))
    monkeypatch.setattr(_contest, "SECONDS", 0.01)
    monkeypatch.setattr(_tuning, "LEAST_SECONDS", 0.3)


def tune(obj, data, **options):
    return ait.tune(obj, data, **{"budget": 0.3, "min_share": 0.0, "progress": False, "backends": ["native"], **options})


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(20, 8), nn.Linear(8, 3)

    def forward(self, ids, mask=None):
        x = self.embed(ids)
        return self.out((x * mask.unsqueeze(-1)).sum(1) if mask is not None else x.sum(1))


class Wave(nn.Module):
    """Takes a 1-D waveform of any length."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 9, stride=4)

    def forward(self, array, sampling_rate: int = 16000):
        return self.conv(array[None, None]).relu().mean(-1)[0] * (sampling_rate / 16000)


def batch(n, length=6):
    return {"ids": torch.randint(0, 20, (n, length)), "mask": torch.ones(n, length), "labels": torch.zeros(n, dtype=torch.long)}


@pytest.mark.parametrize("form", ["list", "generator", "loader", "function"])
def test_dict_batches_in_every_form(form):
    """Labels that the model does not take are left out; sizes that differ stay open."""
    rows = [{"ids": torch.randint(0, 20, (6,)), "mask": torch.ones(6), "labels": torch.tensor(1)} for _ in range(5)]
    data = {"list": [batch(2), batch(3)], "generator": (batch(n) for n in (2, 3)), "loader": torch.utils.data.DataLoader(rows, batch_size=2),
            "function": lambda size: [batch(size)]}[form]
    net = Text().eval()
    report = tune(net, data, **({"batch_sizes": [2, 4]} if form == "function" else {}))
    router = net.__dict__["forward"]
    new = batch(4)
    with torch.no_grad():
        want = router.original(new["ids"], mask=new["mask"])
        assert report["(root)"].tuned and torch.allclose(net(ids=new["ids"], mask=new["mask"]), want, atol=1e-5)
    assert router.tuned_calls and not router.reasons


@pytest.mark.parametrize("with_rate", [False, True])
def test_audio_of_varying_length(with_rate):
    net = Wave().eval()
    clips = [torch.randn(n) for n in (400, 640, 911)]
    report = tune(net, [{"array": c, "sampling_rate": 16000} for c in clips] if with_rate else clips)
    router = net.__dict__["forward"]
    new = torch.randn(777)
    with torch.no_grad():
        assert report["(root)"].tuned and torch.allclose(net(new), router.original(new), atol=1e-5)
    assert router.tuned_calls and not router.reasons


def test_audio_as_arrays_of_numpy_through_a_pipeline():
    np = pytest.importorskip("numpy")

    class Recognizer:
        def __init__(self):
            self.net = Wave().eval()

        def __call__(self, array, sampling_rate):
            return self.net(torch.as_tensor(array), sampling_rate=sampling_rate)

    pipe = Recognizer()
    report = tune(pipe, [{"array": np.random.rand(n).astype(np.float32), "sampling_rate": 16000, "path": "x.wav"} for n in (300, 500)])
    assert report["net"].tuned


def test_callbacks_hear_of_every_sample():
    net, heard = nn.Sequential(nn.Linear(4, 2)).eval(), []
    data = [torch.randn(n, 4) for n in (1, 3)]
    report = tune(net, data, on_sample=heard.append, metric=lambda outputs, samples: sum(len(o) for o in outputs))
    assert [(e.phase, e.index) for e in heard] == [("before", 0), ("before", 1), ("after", 0), ("after", 1)]
    assert all(isinstance(e, ait.SampleEvent) and e.seconds > 0 and e.sample is data[e.index] for e in heard)
    assert all(torch.allclose(a.output, b.output, atol=1e-5) for a, b in zip(heard[:2], heard[2:]))
    assert report.metric_before == report.metric_after == 4

    def stop(event):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        tune(nn.Sequential(nn.Linear(4, 2)).eval(), data, on_sample=stop)


def test_progress_names_the_parts():
    class Two:
        def __init__(self):
            self.a, self.b = nn.Linear(4, 4).eval(), nn.Linear(4, 4).eval()

        def __call__(self, x):
            with torch.no_grad():
                return self.b(self.a(x))

    events = []
    tune(Two(), [torch.randn(2, 4)], progress=events.append)
    assert all(isinstance(e, ait.progress.Event) for e in events)
    assert {e.candidate.partition(":")[0] for e in events} >= {"a", "b"}
    assert [e.seconds for e in events] == sorted(e.seconds for e in events)


def test_reports_in_every_form(tmp_path):
    net = nn.Sequential(nn.Linear(4, 2), nn.ReLU()).eval()
    report = tune(net, [torch.randn(2, 4)])
    part = report["(root)"]
    assert part.reports[0].winner.startswith("native") and part.reports[0].candidates
    assert "speed-up" in report.text() and report.markdown().count("|") > 10 and "<table>" in report._repr_html_()
    page = report.html(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == page and "native" in page and "<script" not in page and "http" not in page
    assert report._repr_markdown_() == report.markdown()
    info = ait.inspect(net, [torch.randn(2, 4)])
    assert info._repr_markdown_() == info.markdown() and "<table>" in info._repr_html_()
    rich = pytest.importorskip("rich.console")
    console = rich.Console(record=True, width=200, file=open(os.devnull, "w"))
    for thing in (report, info, part.reports[0]):
        console.print(thing)
    assert "speed-up" in console.export_text()


def test_arrays_on_disk(tmp_path):
    np = pytest.importorskip("numpy")
    arrays = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.ones(2, np.int64)}
    ait.save_arrays(tmp_path / "a.npz", arrays)
    for found in (ait.load_arrays(tmp_path / "a.npz"), dict(np.load(tmp_path / "a.npz"))):
        assert found.keys() == arrays.keys() and all((np.asarray(found[k]) == arrays[k]).all() for k in arrays)
    net = nn.Linear(3, 2).eval()
    ait.export(net, torch.ones(2, 3), tmp_path / "m.pt2")
    model = ait.load(tmp_path / "m.pt2")
    (name,) = (p.name for p in model.inputs)
    ait.save_arrays(tmp_path / "in.npz", {name: arrays["x"], "label": arrays["y"]})
    (out,) = model.run(tmp_path / "in.npz").values()
    with torch.no_grad():
        assert np.allclose(np.asarray(out), net(torch.from_numpy(arrays["x"])).numpy(), atol=1e-6)


def test_what_the_command_line_writes_is_taken_too(tmp_path):
    net = nn.Linear(3, 2).eval()
    ait.export(net, torch.ones(2, 3), tmp_path / "m.pt2")
    report = ait.tune_file(tmp_path / "m.pt2", tmp_path / "m.ait", [torch.ones(2, 3)], backends="native, eager", budget="1s", strategy=ait.MinLatency(),
                           progress=False)
    assert report.document["strategy"] == "min-latency" and {c.backend for c in report.candidates if c.outcome == "valid"} <= {"native", "eager"}
    one = ait.tune_file(tmp_path / "m.pt2", tmp_path / "m.ait", [torch.ones(2, 3)], budget=1, strategy=ait.OneBackend("native"), progress=False)
    assert one.winner.startswith("native")
    with pytest.raises(ait.InvalidArgument, match="'90s'"):
        ait.tune_file(tmp_path / "m.pt2", tmp_path / "m.ait", [torch.ones(2, 3)], budget="soon")
