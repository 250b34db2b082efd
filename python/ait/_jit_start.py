"""What the line in ait_jit.pth runs when Python starts with AIT_JIT set: waits for torch to be imported, then enables the JIT.

Must never break a start of Python, and costs nothing where nobody imports torch: one entry on sys.meta_path, gone after its work."""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import typing

Any = typing.Any


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it asks the others for torch and looks on while torch is executed."""

    def __init__(self) -> None:
        self.busy = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != "torch" or self.busy:
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            _enable()

        try:
            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        except AttributeError:
            return None
        return spec


def _enable() -> None:
    try:
        from ait import jit

        jit.enable(os.environ.get("AIT_JIT", "1"))
    except Exception as error:  # the script runs as it would without
        print(f"ait: the JIT does not start: {type(error).__name__}: {error}", file=sys.stderr)


def start() -> None:
    if "torch" in sys.modules:
        _enable()
    elif not any(isinstance(f, _AfterTorch) for f in sys.meta_path):
        sys.meta_path.insert(0, _AfterTorch())
