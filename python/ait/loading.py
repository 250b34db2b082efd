"""ait.load: a file as a callable."""
from __future__ import annotations

import os
import typing

from ait import guests
from ait._call import Call
from ait.model import Model, StructuredModel


def load(path: str | os.PathLike[str], *, threads: int = 0, sessions: int = 0, returns: str | None = None, **options: typing.Any) -> Model:
    """A sealed .ait (or, unoptimised, a .pt2 or .onnx) as a callable.

    threads: that compute one call; 0: what the plan was tuned for. sessions: how many calls run at once; 0: as many as the processors carry.
    returns: "numpy", "torch" or "ait"; None: the kind of the inputs. options: those of ait_load_options: backend, knobs, passes, model_name,
    weights, isa, keys (a folder), require_signature, skip_checksum, full_checksum, check_threads, profile.
    """
    guests.configure()
    model = Model(path, threads=threads, sessions=sessions, returns=returns, **options)
    if '"call"' in model._manifest and (description := model.manifest.get("call")):
        call = Call(description)
        if not (call.is_plain and call.parameters == [p.name for p in model.inputs]):
            model.__class__ = StructuredModel
    return model
