"""The package is typed: mypy in strict mode finds nothing in it, and knows the types that users meet."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "python" / "ait"
FILES = ["__init__", "_arrays", "_call", "_guest_program", "_guest_worker", "_guests", "_isolate", "_jit", "_jit_cache", "_jit_job", "_jit_jobs", "_jit_probe",
         "_jit_start", "_side_effects", "_spec", "_state", "_tree", "backend", "embed", "files", "guests", "jit", "llm", "loading", "model", "progress", "_report"]

USER = """
import ait

model = ait.load_model("m.ait", threads=2)
name: str = model.inputs[0].name
report: ait.Report = ait.tune_file("m.pt2", "m.ait", [1], progress=lambda event: print(event.done))
speedup: float | None = report.speedup
try:
    model(1)
except ait.InvalidArgument as error:
    code: str = error.code
    hint: str | None = error.hint
reveal_type(report.winner)
report.winner = 1  # E
"""


def mypy(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", *arguments], capture_output=True, text=True, **options)


def test_package_is_strictly_typed():
    pytest.importorskip("mypy")
    done = mypy("--follow-imports=silent", "--ignore-missing-imports", *(SOURCES / f"{f}.py" for f in FILES), SOURCES / "_core.pyi")
    assert done.returncode == 0, done.stdout


def test_users_see_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER)
    done = mypy("user.py", "--follow-imports=silent", cwd=tmp_path, env={"MYPYPATH": str(SOURCES.parent), "PATH": "/usr/bin:/bin"})
    assert 'Revealed type is "str"' in done.stdout or 'Revealed type is "builtins.str"' in done.stdout, done.stdout + done.stderr
    faults = {line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line}
    assert faults == {str(USER.splitlines().index("report.winner = 1  # E") + 1)}, done.stdout


def test_stubs_name_what_there_is():
    """Every function and class of the module is in the stub, and the other way round."""
    import ast
    import os

    sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(ROOT / "build" / "release" / "python")))
    from ait import _core

    def names(body):
        return {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}

    tree = ast.parse((SOURCES / "_core.pyi").read_text())
    public = {n for n in dir(_core) if not n.startswith("_")}
    assert names(tree.body) == public
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in ("Tensor", "Model", "Session", "Llm", "Engine"):
            cls = getattr(_core, node.name)
            there = {n for n in vars(cls) if not n.startswith("__") or n in ("__dlpack__", "__dlpack_device__")}
            assert {n for n in names(node.body) if not n.startswith("__") or "dlpack" in n} == there, node.name
