"""Pages for users run as they stand: the ```python blocks behind <!-- run -->, in order, in one namespace, in an empty folder.

In CI: the quick start and one page more. All of them: AIT_GUIDES=all, `make python-docs`. Budgets are not those of the pages: a tuning here is
about whether it runs, not how well. In CI backends that a page does not name are native alone."""
import linecache
import os
import pathlib
import re
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("AIT_PYTHON_PACKAGE", str(ROOT / "build" / "release" / "python")))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import ait  # noqa: E402
from ait import _contest, _tuning, files  # noqa: E402

NEEDS = {"quickstart": [], "coming-from": [], "guide-vision": ["transformers"], "guide-speech": ["transformers"], "guide-embedding": ["transformers"],
         "guide-diffusion": ["transformers", "diffusers"], "guide-language-model": ["transformers", "tokenizers"]}
SHORT = ["quickstart", "guide-language-model"]  # the others take longer
ALL = os.environ.get("AIT_GUIDES") == "all"
PAGES = sorted(NEEDS) if ALL else SHORT
BLOCK = re.compile(r"^<!-- run -->\n```python\n(.*?)^```", re.M | re.S)


def blocks(page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return [(text[:m.start(1)].count("\n"), m.group(1)) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page, tmp_path, monkeypatch):
    for package in NEEDS[page]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "seconds_of", lambda budget: min(float(budget), 0.5))
    names = files.names_of
    monkeypatch.setattr(files, "names_of", lambda given: ["native"] if given is None and not ALL else names(given))
    monkeypatch.setattr(_contest, "SECONDS", 0.01)
    monkeypatch.setattr(_tuning, "LEAST_SECONDS", 0.3)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # models this small gain nothing from threads
    scope, name = {"__name__": "page"}, f"docs/{page}.md"
    text = (ROOT / "docs" / f"{page}.md").read_text()
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)  # reasons quote lines of the page
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for line, code in blocks(page):
                exec(compile("\n" * line + code, name, "exec"), scope)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("page", sorted(NEEDS))
def test_pages_name_what_there_is(page):
    """Each block is Python, and each ait.NAME of the page, in tables too, is there."""
    assert blocks(page)
    for line, code in blocks(page):
        compile(code, f"docs/{page}.md:{line}", "exec")
    text = (ROOT / "docs" / f"{page}.md").read_text()
    if page == "coming-from":  # the left columns are others' names
        text = "\n".join(re.sub(r"^\| .*? \| (?=[^|]*\|$)", "", row) for row in text.splitlines())
    missing = []
    for name in sorted(set(re.findall(r"(?<![\w/.\"])ait\.([A-Za-z_][\w.]*)", text))):
        value = ait
        for part in name.rstrip(".").split("."):
            if not hasattr(value, part):
                missing.append(name)
                break
            value = getattr(value, part)
    assert not missing


def test_every_page_is_linked():
    readme, python = (ROOT / "README.md").read_text(), (ROOT / "python" / "README.md").read_text()
    for page in NEEDS:
        assert f"docs/{page}.md" in readme and f"docs/{page}.md" in python, page
