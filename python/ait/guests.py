"""Where ONNX Runtime and OpenVINO may be: the library reads no environment, so Python tells it, as the command line does."""
from __future__ import annotations

import os
import sys

from . import _core

_TELEMETRY = "ORT_DISABLE_TELEMETRY"
_configured = False


def search_path() -> str:
    """AIT_GUEST_PATH first, then this interpreter's own packages, then an active environment's and the user's."""
    folders = [f for f in os.environ.get("AIT_GUEST_PATH", "").split(":") if f]
    folders += [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    if environment := os.environ.get("VIRTUAL_ENV"):
        folders.append(f"{environment}/lib/python3*/site-packages")
    if home := os.environ.get("HOME"):
        folders.append(f"{home}/.local/lib/python3*/site-packages")
    return ":".join(dict.fromkeys(folders))


def telemetry_settled() -> bool:
    """ONNX Runtime from 1.29 on reports usage over the network unless a variable says no before its first use.

    Set by the user, whatever it says: settled. Not set: it is set here, unless onnxruntime is in the process already; then it is too late, and
    ait leaves such a version alone.
    """
    if _TELEMETRY not in os.environ:
        if "onnxruntime" in sys.modules:
            return False
        os.environ[_TELEMETRY] = "1"
    return True


def configure() -> None:
    """Once, before the first use of a backend."""
    global _configured
    if not _configured:
        _configured = True
        if hasattr(_core, "guest_add"):  # not in the run-only package
            from . import backend

            backend.ready()
        os.environ.setdefault("TBB_ENABLE_SANITIZERS", "1")  # OpenVINO's threads end a program under AddressSanitizer without
        _core.configure_guests(search_path(), telemetry_settled())
