"""What scripts do with their modules while the JIT is on: everything comes out as without it."""
import builtins
import collections
import copy
import gc
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading
import weakref

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "release" / "python"
sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(PACKAGE)))
torch = pytest.importorskip("torch")
from ait import _jit, _jit_cache, _jit_probe, jit  # noqa: E402
from torch import nn  # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.a, self.b, self.factor = nn.Linear(64, 512), nn.Linear(512, 64), 1.0

    def forward(self, x, scale: float = 1.0):
        return self.b(torch.relu(self.a(x))) * scale * self.factor


def plain(net, x, scale=1.0):
    f = nn.functional
    with torch.no_grad():
        return f.linear(f.linear(x, net.a.weight, net.a.bias).relu(), net.b.weight, net.b.bias) * scale * net.factor


def same(a, b, tolerance=1e-4):
    return bool(torch.allclose(a.detach(), b, rtol=tolerance, atol=tolerance))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Knows Net with a batch of rows."""
    folder = tmp_path_factory.mktemp("jit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_jit, "LEAST_SECONDS", 0.0)
        always_faster(patch)
        jit.enable(budget=5, backends=["native"], cache=folder, calls=2)
        net = Net().eval()
        with torch.no_grad():
            for _ in range(10):
                net(torch.randn(8, 64))
        assert watch(net).phase == "tuned", watch(net).reason
        jit.disable()
    return folder


def always_faster(patch):
    decide = _jit.Watch.decide
    patch.setattr(_jit.Watch, "decide", lambda self, ratio, why, lasting=False: decide(self, ratio and 2.0, why, lasting))


def watch(module):
    return _jit._watches[id(module)]


@pytest.fixture
def on(cache, monkeypatch):
    monkeypatch.setattr(_jit, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(_jit_probe, "PAIRS", 1)
    always_faster(monkeypatch)
    jit.enable(budget=1e-3, backends=["native"], cache=cache)
    yield
    jit.disable()


@pytest.fixture
def net(on):
    """Tuned from its first call on."""
    net = Net().eval()
    with torch.no_grad():
        for rows in (8, 3, 8, 3):
            net(torch.randn(rows, 64))
    assert watch(net).phase == "tuned", watch(net).reason
    return net


def tuned_calls(net):
    router = watch(net).router
    return router.tuned_calls if router is not None else -1


# ---- what changes a module behind its back ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("change", [
    lambda n: n.a.weight.data.mul_(0.5), lambda n: n.b.bias.data.copy_(torch.ones(64)), lambda n: n.a.weight.detach().numpy().__imul__(2),
    lambda n: setattr(n, "factor", 3.0), lambda n: n.__dict__.update(factor=2.0), lambda n: n.half().float(), lambda n: n.to(torch.bfloat16).float(),
    lambda n: n.load_state_dict({k: v + 1 for k, v in n.state_dict().items()}), lambda n: setattr(n.a, "forward", lambda x: x @ n.a.weight.T * 0 + 1),
    lambda n: nn.utils.parametrize.register_parametrization(n.a, "weight", Twice()), lambda n: n.requires_grad_(False),
], ids=["data", "data-copy", "numpy", "attribute", "dict", "half", "bfloat16", "state", "forward-of-child", "parametrize", "requires-grad"])
def test_changes_are_seen(net, change):
    change(net)
    x = torch.randn(8, 64)
    want = None
    for _ in range(6):
        jit_answer = net(x)
        if want is None:
            jit.disable()
            want = net(x).detach()
            _jit.enable("1", 1e-3, ["native"], None, None)
        assert same(jit_answer, want), watch(net).reason


class Twice(nn.Module):
    def forward(self, w):
        return 2 * w


def test_dtypes_change(net):
    x = torch.randn(8, 64)
    want = plain(net, x)
    for dtype in (torch.bfloat16, torch.float64, torch.float16):
        net.to(dtype)
        with torch.no_grad():
            got = net(x.to(dtype))
        assert got.dtype == dtype and same(got.float(), want, 3e-2)
        net.to(torch.float32)


def test_functional_call_is_of_the_moment(net):
    x = torch.randn(8, 64)
    other = {k: v.detach() * 0.5 for k, v in net.named_parameters()}
    with torch.no_grad():
        before = tuned_calls(net)
        want = nn.functional.linear(nn.functional.linear(x, other["a.weight"], other["a.bias"]).relu(), other["b.weight"], other["b.bias"])
        assert same(torch.func.functional_call(net, other, (x,)), want)
        assert same(net(x), plain(net, x)) and tuned_calls(net) == before + 1  # its own weights are back, and so is what was tuned


def test_transforms_modes_and_traces_see_the_original(net):
    x, seen = torch.randn(8, 64), []
    with torch.no_grad():
        assert same(torch.func.vmap(net)(x.unsqueeze(1)).squeeze(1), plain(net, x))
        assert same(torch.jit.trace(net, x)(x + 1), plain(net, x + 1))
        assert same(torch.jit.script(net)(x), plain(net, x))
        assert same(torch.fx.symbolic_trace(net)(x), plain(net, x))
        assert same(torch.export.export(net, (x,)).module()(x), plain(net, x))
    parameters = {k: v.detach() for k, v in net.named_parameters()}
    g = torch.func.grad(lambda p: torch.func.functional_call(net, p, (x,)).sum())(parameters)
    assert same(g["b.bias"], torch.full((64,), 8.0))
    _, tangent = torch.func.jvp(lambda v: net(v), (x,), (torch.ones_like(x),))
    assert tangent.abs().sum() > 0
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), FlopCounterMode(display=False) as flops:
        net(x)
    assert flops.get_total_flops() == 2 * 2 * 8 * 64 * 512
    handle = nn.modules.module.register_module_forward_hook(lambda m, a, r: seen.append(type(m).__name__))
    with torch.no_grad():
        net(x)
    handle.remove()
    assert seen == ["Linear", "Linear", "Net"]
    with torch.device("meta"), torch.no_grad():
        assert same(net(x), plain(net, x))


def test_gradients_of_an_evaluated_module(net):
    x = torch.randn(8, 64)
    loss = net(x).square().sum()
    got = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
    twin = copy.deepcopy(net)
    jit.disable()
    want = torch.autograd.grad(twin(x).square().sum(), list(twin.parameters()), create_graph=True)
    assert all(same(a, b, 1e-3) for a, b in zip(got, want))
    second = torch.autograd.grad(got[0].sum(), net.b.weight)[0], torch.autograd.grad(want[0].sum(), twin.b.weight)[0]
    assert same(*second, 1e-3)


def test_gradients_after_a_change_are_refused_as_torch_does(net):
    loss = net(torch.randn(8, 64)).sum()
    with torch.no_grad():
        net.b.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_training_steps_are_torchs_own(net):
    x, seen = torch.randn(8, 64), []
    twin = copy.deepcopy(net)
    for n in (net, twin):
        n.train()
        optimizer = torch.optim.SGD(n.parameters(), 0.01)
        for _ in range(5):
            optimizer.zero_grad()
            n(x).square().mean().backward()
            optimizer.step()
        n.eval()
        with torch.no_grad():
            seen.append(n(x))
        jit.disable()
    assert torch.equal(seen[0], plain(net, x)) and torch.equal(seen[0], seen[1])


def test_a_module_in_training_is_not_tuned_between_epochs(on, monkeypatch):
    monkeypatch.setattr(_jit._settings, "budget", 60.0)
    asked = []
    monkeypatch.setattr(_jit.Watch, "_tune", lambda self, module: asked.append(self.name))
    net = nn.Sequential(nn.Linear(64, 512), nn.Linear(512, 8))
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(3):
        net.train()
        net(torch.randn(8, 64)).mean().backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            for _ in range(10):
                net(torch.randn(8, 64))
    assert not asked
    with torch.no_grad():
        for _ in range(_jit.AFTER_TRAINING):
            net(torch.randn(8, 64))
    assert asked


def test_results_belong_to_the_caller(net):
    x = torch.randn(8, 64)
    with torch.no_grad():
        first = net(x)
        kept = first.clone()
        second = net(x * 2)
        assert torch.equal(first, kept)
        second.zero_()
        first.add_(1)
        assert same(net(x), kept)


def test_shallow_and_deep_copies_are_modules_of_their_own(net):
    x = torch.randn(8, 64)
    for other in (copy.copy(net), copy.deepcopy(net)):
        other.factor = 5.0
        with torch.no_grad():
            assert same(other(x), plain(other, x)) and same(net(x), plain(net, x))
            assert not same(other(x), net(x))


def test_data_parallel_compiled_and_scripted_modules(on):
    x = torch.randn(8, 64)
    with torch.no_grad():
        for wrapped, inner in ((nn.DataParallel(Net().eval()), None), (torch.jit.script(Net().eval()), None),
                               (torch.compile(Net().eval(), backend="eager"), None)):
            inner = getattr(wrapped, "module", None) or getattr(wrapped, "_orig_mod", None) or wrapped
            for _ in range(5):
                assert same(wrapped(x), plain(inner, x))
        net = Net().eval()
        net.compile(backend="eager")
        for _ in range(5):
            assert same(net(x), plain(net, x))
        assert watch(net).phase == "original"


def test_modules_go_when_nobody_has_them(on):
    net = Net().eval()
    with torch.no_grad():
        for _ in range(4):
            net(torch.randn(8, 64))
    assert watch(net).router is not None
    gone, key = weakref.ref(net), id(net)
    del net
    gc.collect()
    assert gone() is None and (key not in _jit._watches or _jit._watches[key].module() is not None)


# ---- forwards with side effects ------------------------------------------------------------------------------------------------------------
COUNT = 0
STORE = {"last": None}


class Counting(Net):
    def forward(self, x):
        global COUNT
        COUNT += 1
        return super().forward(x)


class Storing(Net):
    def forward(self, x):
        STORE["last"] = x
        return super().forward(x)


class Memory:
    def __init__(self):
        self.seen = torch.zeros(64)


class Remembering(Net):
    def __init__(self):
        super().__init__()
        self.memory, self.table = Memory(), {"k": torch.zeros(64)}

    def forward(self, x):
        self.memory.seen = self.memory.seen + x.sum(0)
        return super().forward(x) + self.memory.seen


class Table(Remembering):
    def forward(self, x):
        self.table["k"] = self.table["k"] + x.sum(0)
        return Net.forward(self, x) + self.table["k"]


class InPlace(Remembering):
    def forward(self, x):
        self.table["k"] += x.sum(0)
        return Net.forward(self, x) + self.table["k"]


class Printing(Net):
    def forward(self, x):
        print("rows", len(x))
        return super().forward(x)


class Deque(Net):
    def __init__(self):
        super().__init__()
        self.history = collections.deque(maxlen=3)

    def forward(self, x):
        self.history.append(float(x.sum()))
        return super().forward(x)


@pytest.mark.parametrize("cls", [Counting, Storing, Remembering, Table, InPlace, Printing, Deque])
def test_side_effects_happen_as_often_as_without(on, cls, monkeypatch, capsys):
    global COUNT
    monkeypatch.setattr(_jit._settings, "budget", 30.0)
    monkeypatch.setattr(_jit, "LEAST_OF_CHILD", 1.0)  # children are not what this is about

    def ten():
        global COUNT
        COUNT = 0
        net = cls().eval()
        with torch.no_grad():
            answers = [net(torch.full((2, 64), i / 10)) for i in range(10)]
        state = [COUNT, STORE["last"], getattr(getattr(net, "memory", None), "seen", None), getattr(net, "table", {}).get("k"),
                 list(getattr(net, "history", ()))]
        return answers, state, capsys.readouterr().out, net

    got, state, out, net = ten()
    assert watch(net).phase == "descend", (watch(net).phase, watch(net).reason)
    jit.disable()
    want, expected, printed, _ = ten()
    assert all(same(a, b) for a, b in zip(got, want)) and out == printed and builtins.print.__module__ == "builtins"
    for a, b in zip(state, expected):
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.cache = nn.LazyLinear(64), None

    def forward(self, x):
        if self.cache is None:
            self.cache = torch.ones(64)  # made once
        return self.layer(x) * self.cache


class Strange(nn.Module):
    """Answers for attributes that it does not have, and hides those that it has."""

    def __init__(self):
        super().__init__()
        self.inner = Net()

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def __len__(self):
        return 0

    def __eq__(self, other):
        raise TypeError("not comparable")

    __hash__ = nn.Module.__hash__

    def forward(self, x):
        return self.inner(x)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Net()

    def forward(self, x):
        for i in range(3):
            yield self.inner(x + i)


@pytest.mark.parametrize("make", [Lazy, Strange])
def test_strange_modules(on, make):
    torch.manual_seed(0)
    net = make().eval()
    x = torch.randn(8, 64)
    with torch.no_grad():
        answers = [net(x) for _ in range(6)]
        jit.disable()
        want = net(x)
    assert all(same(a, want) for a in answers)


def test_generators(on):
    net, x = Generator().eval(), torch.randn(8, 64)
    with torch.no_grad():
        for _ in range(4):
            for i, y in enumerate(net(x)):
                assert same(y, plain(net.inner, x + i))


def test_a_module_in_a_closure(on):
    def make():
        inner = Net().eval()

        class Outer(nn.Module):
            def forward(self, x):
                return inner(x) + 1

        return Outer().eval(), inner, lambda x: inner(x) * 2

    outer, inner, function = make()
    x = torch.randn(8, 64)
    with torch.no_grad():
        for _ in range(5):
            assert same(outer(x), plain(inner, x) + 1) and same(function(x), 2 * plain(inner, x))
        inner.b.bias.add_(1)
        assert same(outer(x), plain(inner, x) + 1) and same(function(x), 2 * plain(inner, x))


def test_threads_while_it_is_exported_and_tuned(tmp_path, monkeypatch):
    """Other threads call the module all the time; nobody sees anything of it."""
    monkeypatch.setattr(_jit, "LEAST_SECONDS", 0.0)
    jit.enable(budget=5, backends=["native"], cache=tmp_path, calls=3)
    net, wrong, stop = Net().eval(), [], threading.Event()
    net.register_forward_hook(lambda m, a, r: r + 1)

    def work(seed):
        random = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            while not stop.is_set():
                x = torch.randn(5, 64, generator=random)
                try:
                    if not same(net(x, scale=2.0), plain(net, x, 2.0) + 1):
                        wrong.append("value")
                except Exception as error:
                    wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    [t.start() for t in threads]
    try:
        with torch.no_grad():
            for _ in range(40):
                x = torch.randn(5, 64)
                assert same(net(x, scale=2.0), plain(net, x, 2.0) + 1)
    finally:
        stop.set()
        [t.join() for t in threads]
        jit.disable()
    assert not wrong, wrong[:3]


# ---- processes ------------------------------------------------------------------------------------------------------------------------------
def _child(net, x, queue):
    torch.set_num_threads(1)  # torch's own threads do not outlive a fork
    with torch.no_grad():
        queue.put(net(x).numpy())


def test_a_forked_child_leaves_its_parents_job_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(_jit, "LEAST_SECONDS", 0.0)
    always_faster(monkeypatch)
    jit.enable("background", budget=5, backends=["native"], cache=tmp_path, calls=2)
    net, x = Net().eval(), torch.randn(8, 64)
    with torch.no_grad():
        for _ in range(4):
            net(x)
        assert watch(net).job is not None
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=_child, args=(net, x, queue))
        child.start()
        assert same(torch.from_numpy(queue.get(timeout=60)), plain(net, x))
        child.join()
        pid = os.fork()
        if not pid:
            torch.set_num_threads(1)
            for _ in range(3):
                net(x)
            _jit_job_exit()
        os.waitpid(pid, 0)
        assert watch(net).job.folder.exists() and jit.wait(120)
        for _ in range(8):
            assert same(net(x), plain(net, x))
    assert watch(net).phase == "tuned", watch(net).reason
    jit.disable()


def _jit_job_exit():
    _jit._jit_jobs._at_exit()
    os._exit(0)


WORK = """
import torch
from package.nets import Net
def work(seed):
    net = Net().eval()
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return [net(x).sum().item() for _ in range(6)]
"""
SPAWNING = """
import multiprocessing
from package.work import work
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for row in pool.map(work, range(2)):
            print(" ".join(f"{v:.3f}" for v in row))
"""
NETS = "import torch\nfrom torch import nn\n" + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.a, self.b = nn.Linear(64, 2048), nn.Linear(2048, 64)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
"""


@pytest.mark.parametrize("how", ["pytest"] + (["module", "command"] if os.environ.get("AIT_SLOW_TESTS") else []))
def test_ways_to_start(how, tmp_path):
    """python -m package with spawned workers, python -c, and a test suite."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "nets.py").write_text(NETS)
    (package / "work.py").write_text(WORK)
    (package / "__main__.py").write_text(SPAWNING)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text((ROOT / "python" / "ait_jit.pth").read_text())
    code = "import torch; from package.nets import Net; n = Net().eval()\nwith torch.no_grad():\n  print(sum(n(torch.ones(8, 64)).sum().item() for _ in range(9)))"
    (tmp_path / "test_it.py").write_text("import torch\nfrom package.nets import Net\n\ndef test_it():\n  n = Net().eval()\n  with torch.no_grad():\n"
                                         "    a = [n(torch.ones(8, 64)) for _ in range(9)]\n  assert all(torch.allclose(a[0], v, atol=1e-4) for v in a)\n")
    command = {"module": ["-m", "package"], "command": ["-c", code], "pytest": ["-m", "pytest", "-q", "test_it.py", "-p", "no:cacheprovider"]}[how]
    answers = []
    for mode in ("0", "1", "1"):
        env = {**os.environ, "PYTHONPATH": f"{site}:{PACKAGE}:{tmp_path}", "AIT_JIT": mode, "AIT_JIT_CACHE": str(tmp_path / "jit"), "AIT_JIT_BACKENDS": "native",
               "AIT_JIT_BUDGET": "5", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run([sys.executable, *command], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        answers.append([float(w) for w in done.stdout.split()] if how != "pytest" else [1.0])
    assert answers[1] == pytest.approx(answers[0], rel=1e-3, abs=1e-2) and answers[2] == pytest.approx(answers[0], rel=1e-3, abs=1e-2)
    assert list((tmp_path / "jit").rglob("entry.json"))


def test_one_process_tunes_while_another_waits(tmp_path):
    with _jit_cache.turn(tmp_path, "k", 0.0) as mine:
        assert mine >= 0
        with _jit_cache.turn(tmp_path, "k", 0.1) as other:
            assert other == -1
    with _jit_cache.turn(tmp_path, "k", 0.0) as again:
        assert again >= 0
