"""docs/conformance.md is what the recorded results give, and the list of reasons is honest."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_page():
    done = subprocess.run([sys.executable, ROOT / "tests" / "conformance" / "report.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_list_is_seen():
    sys.path.insert(0, str(ROOT / "tests" / "conformance"))
    import report
    result = {"families": {}, "not_passed": [{"name": "a/float32-0000", "text": "differs"}]}
    results = {"suites": {"float32": {"reference": result}}}
    assert report.check_reasons(results, [("float32", "a/*", "why")]) == []
    assert len(report.check_reasons(results, [])) == 1
    assert len(report.check_reasons(results, [("float32", "a/*", "why"), ("float32", "b/*", "why")])) == 1
    assert len(report.check_reasons(results, [("float32", "a/*", "why")], {"float32": ["a/float32-0001"]})) == 1
