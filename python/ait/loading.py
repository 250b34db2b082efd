"""ait.load: a file as a callable."""
from __future__ import annotations

import os
import typing

from . import guests
from .model import load_model


def load(pipeline: typing.Any, path: str | os.PathLike[str] | None = None, *, threads: int = 0, sessions: int = 0, returns: str | None = None,
         **options: typing.Any) -> typing.Any:
    """ait.load(path): a sealed .ait (or, unoptimised, a .pt2 or .onnx) as a callable, an `ait.Model`. A file that knows how its module was
    called is called in the same way, and gives the same kind of result.

    threads: that compute one call; 0: what the plan was tuned for. sessions: how many calls run at once; 0: as many as the processors carry.
    returns: "numpy", "torch" or "ait"; None: the kind of the inputs. options: those of ait_load_options: backend, knobs, passes, model_name,
    weights, isa, keys (a folder), require_signature, skip_checksum, full_checksum, check_threads, profile.

    ait.load(pipeline, path): what `ait.save` wrote, put back into a fresh pipeline, module or function, which is returned. Option
    check_weights (default true): refuse one whose weights are not those that were tuned.
    """
    guests.configure()
    if path is not None:
        from ait._persist import load_into

        return load_into(pipeline, path, **options)
    from ait._persist import Pipeline, is_pipeline_file

    if not isinstance(pipeline, (str, os.PathLike)):
        raise TypeError(f"ait.load(path) or ait.load(pipeline, path): a {type(pipeline).__name__} is no path")
    if is_pipeline_file(pipeline):
        return Pipeline(pipeline)
    return load_model(pipeline, threads=threads, sessions=sessions, returns=returns, **options)
