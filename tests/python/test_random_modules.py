"""Random modules of torch's operators, exported with a dynamic batch: every backend must give torch's answers (random_modules.py)."""
import random_modules
import pytest

SEEDS = range(1, 61)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("random")
    rows = random_modules.write_cases(path, SEEDS)
    assert len(rows) > len(SEEDS)  # most modules can be exported and run at several sizes
    return path


@pytest.mark.parametrize("options", random_modules.BACKENDS, ids=" ".join)
def test_torch_answers(folder, options):
    done = random_modules.verify(folder, options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fault_is_found_and_made_small(tmp_path, monkeypatch):
    """When ait's answer for one operator is wrong, the shrunk module is that operator."""
    seed = next(s for s in SEEDS if sum(name == "relu" for name, _, _ in random_modules.make(s).steps) and len(random_modules.make(s).steps) > 3)
    real = random_modules.disagrees

    def broken(folder, seed, steps):
        return real(folder, seed, steps) or ("relu is wrong" if any(name == "relu" for name, _, _ in steps) else None)
    monkeypatch.setattr(random_modules, "BACKENDS", [])
    monkeypatch.setattr(random_modules, "disagrees", broken)
    steps, why = random_modules.shrink(tmp_path, seed)
    assert why and steps[-1][0] == "relu"
