"""Sentence embeddings: a deployed encoder (`ait.embed.deploy`, `ait deploy`) as an object that makes vectors of texts.

    embedder = ait.embed.load("minilm.ait")
    vectors = embedder.encode(["a text", "another"], returns="numpy")      # float32 [2, size]

Row i is the vector of text i, and depends on that text alone, up to rounding. Any number of threads may call `encode`; calls take turns, and each uses
the threads of the embedder.
"""
from __future__ import annotations

import os
import threading
import typing

from . import _core

Any = typing.Any
Path = typing.Union[str, "os.PathLike[str]"]


class Embedder:
    """Made by `ait.embed.load`. size: numbers of a vector. max_length: tokens of a text, longer ones are cut. pooling: what makes one vector of those
    of the tokens; "graph" where the model does it itself. normalized: vectors have length 1. prompt: in front of each text, "" for none."""

    def __init__(self, core: _core.Embedder, path: Path) -> None:
        self._core, self.path, self._turn = core, path, threading.Lock()
        info = core.info
        self.size: int = info["size"]
        self.max_length: int = info["max_length"]
        self.pooling: str = info["pooling"]
        self.normalized: bool = info["normalized"]
        self.prompt: str = info["prompt"]

    def encode(self, texts: str | typing.Iterable[str], *, returns: str = "ait") -> Any:
        """float32 [texts, size]; [size] for a single str. returns: "ait" (an `ait.Tensor`, which NumPy and torch take without a copy), "numpy" or
        "torch". InvalidArgument: a text without any token."""
        if returns not in ("ait", "numpy", "torch"):
            raise ValueError(f"returns must be 'ait', 'numpy' or 'torch', not {returns!r}")
        vectors: Any = self._run(texts)[0]
        return vectors if returns == "ait" else getattr(vectors, returns)()

    def count_tokens(self, texts: typing.Iterable[str]) -> list[int]:
        """Tokens of each text as the model sees it, after cutting."""
        return typing.cast("list[int]", self._run(list(texts))[1].tolist())

    def _run(self, texts: str | typing.Iterable[str]) -> tuple[_core.Tensor, _core.Tensor]:
        given = texts if isinstance(texts, str) else list(texts)
        with self._turn:
            return self._core.run(given)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<ait.embed.Embedder {os.fspath(self.path)!r}: {self.size} numbers, texts up to {self.max_length} tokens>"


def load(path: Path, **options: Any) -> Embedder:
    """A file made by `ait.embed.deploy` or `ait deploy`, or any model that takes input_ids and, where it wants them, attention_mask and token_type_ids,
    and gives [batch, size] or [batch, length, size].

    options: threads (that compute; 0: as the plan says), batch (texts of one call of the model, 32), max_length, tokenizer (a folder or
    tokenizer.json; the file's own else), pooling ("cls", "mean", "mean_sqrt_len", "max", "lasttoken", where the graph does not pool), normalize, prompt
    (text in front of each) or prompt_name (one that the file holds), and those of `ait.load` that are about reading: keys, require_signature,
    skip_checksum, full_checksum, isa. Unsupported: inputs or outputs that are none of these."""
    return Embedder(_core.Embedder(path, **options), path)


def deploy(source: Any, out: Path, *, tokenizer: Any = None, pooling: str | None = None, normalize: bool | None = None, quantize: str | None = None,
           embedding: str | None = None, group: int = 0, skip_proof: bool = False, progress: typing.Callable[[str], object] | None = None,
           **options: Any) -> dict[str, Any]:
    """An encoder with its tokenizer, pooling and normalisation into an artifact. Returns what was found, the proof and the sizes (docs/json.md).

    source: a folder of Hugging Face or of sentence-transformers (exported with torch and transformers here, unless `python -m ait.export_lm` has done
    so), a transformers object with tokenizer= beside it, or an object of sentence-transformers. pooling, normalize: of plain encoders, as of
    `python -m ait.export_lm`: "cls", "mean" (default), "max", "mean_sqrt_len", "weightedmean", "lasttoken", "pooler", several joined by commas.
    quantize: weights of layers as "bf16", "int8" or "int4"; embedding: those of the table of tokens."""
    from .llm import deploy_exported

    given = {"quantize": quantize, "embedding": embedding, "group": group, "skip_proof": skip_proof, "note": progress, **options}
    export = {"task": "embed", "pooling": pooling, "normalize": normalize}
    return deploy_exported(source, out, tokenizer, export, given)
