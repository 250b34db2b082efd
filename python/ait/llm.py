"""Language models: a deployed .ait (`ait.llm.deploy`, `ait deploy`) as an object that writes text.

    model = ait.llm.load("chat.ait")
    print(model.generate("Once upon a time", max_tokens=50).text)
    for piece in model.stream([{"role": "user", "content": "Hello"}]):
        print(piece.text, end="", flush=True)

Any number of threads may call `generate` and `stream` at once: one engine runs all their requests as one batch, and answers do not depend on
what else runs. A prompt is a text, a list of token ids, or a conversation (a list of dicts with "role" and "content", which goes through the
model's chat template). With an encoder (T5, BART, Whisper) it is what the encoder reads: a text, token ids, or an array of features.
"""
from __future__ import annotations

import asyncio
import collections
import functools
import json
import os
import threading
import time
import typing

from . import _core

Any = typing.Any
Path = typing.Union[str, "os.PathLike[str]"]
Messages = typing.Sequence[typing.Mapping[str, Any]]
Prompt = typing.Union[str, typing.Sequence[int], Messages, Any]  # Any: an array of token ids, or of an encoder's features
_Event = typing.Tuple[int, int, int, str, float, typing.List[typing.Tuple[int, float]], typing.Optional[str], typing.Optional[str], int, int]


class Piece(typing.NamedTuple):
    """What one step added to an answer."""

    text: str  # certain now: whole characters, nothing that may still become a stop text
    token: int | None  # None: only the end, or text that was held back
    choice: int  # which of n answers
    finish: str | None  # "stop", "length", "cancelled"; None: it goes on
    logprob: float | None  # of the token, in the model's own distribution; None where logprobs was not asked for
    top: list[tuple[int, float]]  # the most probable tokens with theirs


class Choice(typing.NamedTuple):
    """One of the n answers to a prompt."""

    text: str
    tokens: list[int]
    finish: str
    logprobs: list[float]  # empty where they were not asked for
    top: list[list[tuple[int, float]]]


class Answer(typing.NamedTuple):
    """What `generate` gives: the choices, and the prompt as it was read. `text`, `tokens`, `finish` and `logprobs` are those of the first choice."""

    choices: tuple[Choice, ...]
    prompt: list[int]  # with an encoder of token ids: its input
    reused_tokens: int  # of the prompt: whose keys and values were in the cache already

    @property
    def text(self) -> str:
        return self.choices[0].text

    @property
    def tokens(self) -> list[int]:
        return self.choices[0].tokens

    @property
    def finish(self) -> str:
        return self.choices[0].finish

    @property
    def logprobs(self) -> list[float]:
        return self.choices[0].logprobs

    def __str__(self) -> str:
        return self.text


class Tokenizer:
    """The model's own tokenizer (tokenizer.json), with the ids that the library `tokenizers` gives. Threads may share it."""

    def __init__(self, core: _core.Llm) -> None:
        self._core = core

    def __len__(self) -> int:
        """Largest id + 1."""
        return typing.cast(int, self._core.info["tokenizer_size"])

    def encode(self, text: str, *, special: bool = True, as_text: bool = False) -> list[int]:
        """special: with what the tokenizer adds (begin, end …). as_text: special tokens that are spelled out in the text stay text, so that nobody
        can forge them."""
        return self._core.encode(text, special, as_text)

    def decode(self, ids: typing.Sequence[int], *, skip_special: bool = True, clean_up: bool = False) -> str:
        return self._core.decode(ids, skip_special, clean_up)

    def chat(self, messages: Messages, *, tools: typing.Sequence[Any] | None = None, add_generation_prompt: bool = True, **variables: Any) -> str:
        """The conversation as the model's chat template writes it. variables: more that the template knows (enable_thinking=False …)."""
        given: dict[str, Any] = {"messages": list(messages), "add_generation_prompt": add_generation_prompt, **variables}
        if tools is not None:
            given["tools"] = list(tools)
        return self._core.render(json.dumps(given, ensure_ascii=False), int(time.time()) - time.timezone)

    def token(self, id: int) -> str | None:
        """The token as the file spells it; None: no such id."""
        return self._core.token(id)

    def token_id(self, token: str) -> int | None:
        return self._core.token_id(token)

    def is_special(self, id: int) -> bool:
        return self._core.is_special(id)


class _Waiting:
    """A request that somebody waits for. Its events are put there by whichever thread steps the engine."""

    def __init__(self, prompt: list[int], n: int) -> None:
        self.prompt, self.open = prompt, n
        self.events: collections.deque[_Event] = collections.deque()


class Engine:
    """Many requests as one batch, on caches of one size. Threads share it: each submits, and whoever waits drives the steps for all.

    threads: that compute, 0: as tuned. max_sequences: answers that are worked on at once (16). max_seq: longest sequence, 0: the model's.
    cache_bytes: of all caches; 0: for max_sequences of 1024 tokens each. step_tokens: of one step (512). prefix_reuse: keep the caches of texts
    that several prompts begin with. speculate: "ngram", "draft" (draft=, a smaller model with the same tokens, or the one that the file was
    deployed with; used where there is one), or "none". warm: run every size of step now, so that no later step allocates.
    """

    def __init__(self, model: LanguageModel | Path, *, threads: int = 0, max_sequences: int = 0, max_seq: int = 0, cache_bytes: int = 0,
                 step_tokens: int = 0, prefix_reuse: bool = True, overlap: bool = True, warm: bool = False, speculate: str | None = None,
                 draft: LanguageModel | Path | None = None, draft_tokens: int = 0) -> None:
        self.model = model if isinstance(model, LanguageModel) else load(model)
        if draft is not None and not isinstance(draft, LanguageModel):
            draft = load(draft)
        self._core = _core.Engine(self.model._core, threads=threads, max_sequences=max_sequences, max_seq=max_seq, cache_bytes=cache_bytes,
                                  step_tokens=step_tokens, prefix_reuse=prefix_reuse, overlap=overlap, warm=warm, speculate=speculate,
                                  draft=None if draft is None else draft._core, draft_tokens=draft_tokens)
        self._waiting: dict[int, _Waiting] = {}
        self._changed = threading.Condition()  # guards _waiting and _stepping; told after each step
        self._stepping = False  # a thread is in a step

    # -- asking ------------------------------------------------------------------------------------------------------------------------------
    def generate(self, prompt: Prompt, **request: Any) -> Answer:
        """The whole answer. request: max_tokens (256; 0: as many as fit), n, temperature (0: the most probable token), top_k, top_p, min_p, seed,
        repetition_penalty, presence_penalty, frequency_penalty, logit_bias ({id: value}), logprobs (0 to 20), stop (a text or several),
        stop_tokens, ignore_stop; for conversations also tools, and what else the chat template knows as template={…}; with an encoder also
        decoder_tokens, what the answer begins with (the model's own else)."""
        return self.generate_all([prompt], **request)[0]

    def generate_all(self, prompts: typing.Iterable[Prompt], **request: Any) -> list[Answer]:
        """The answers to several prompts, in their order, computed together."""
        ids: list[int] = []
        try:
            for prompt in prompts:
                ids.append(self._submit(prompt, dict(request)))
            return [self._collect(id, request) for id in ids]
        finally:
            self._forget(ids)

    def stream(self, prompt: Prompt, **request: Any) -> typing.Iterator[Piece]:
        """The answer piece by piece, as it comes. It begins with the first piece that is asked for; leaving the loop early cancels the rest."""
        id = self._submit(prompt, dict(request))
        try:
            while (event := self._next(id)) is not None:
                yield _piece(event, request)
        finally:
            self._forget([id])

    async def agenerate(self, prompt: Prompt, **request: Any) -> Answer:
        """`generate`, awaited: the event loop goes on."""
        return await asyncio.get_running_loop().run_in_executor(None, functools.partial(self.generate, prompt, **request))

    async def astream(self, prompt: Prompt, **request: Any) -> typing.AsyncIterator[Piece]:
        """`stream` for `async for`."""
        loop = asyncio.get_running_loop()
        id = self._submit(prompt, dict(request))
        try:
            while (event := await loop.run_in_executor(None, self._next, id)) is not None:
                yield _piece(event, request)
        finally:
            self._forget([id])

    @property
    def stats(self) -> dict[str, Any]:
        """Counters since the engine was made: steps, prompt_tokens, reused_tokens, answer_tokens, preemptions, drafted, accepted, bytes …"""
        with self._changed:
            while self._stepping:
                self._changed.wait()
            return self._core.stats()

    # -- how -----------------------------------------------------------------------------------------------------------------------------------
    def _submit(self, prompt: Prompt, request: dict[str, Any]) -> int:
        tools, template = request.pop("tools", None), request.pop("template", {})
        source, tokens = self.model._read(prompt, request, tools, template)
        stop = request.get("stop")
        if isinstance(stop, str):
            request["stop"] = [stop]
        request["logprobs"] = -1 if request.get("logprobs") is None else int(request["logprobs"])
        waiting = _Waiting(source if isinstance(source, list) else tokens, max(1, int(request.get("n", 1))))
        with self._changed:  # the first step may come before submit returns here
            id = self._core.submit(tokens, source=source, **request)
            self._waiting[id] = waiting
        return id

    def _next(self, id: int) -> _Event | None:
        """The next event of a request; None after the last. Steps the engine while it waits, unless another thread does: who has got an answer goes
        on at once and may submit the next request, so that requests meet in one batch."""
        waiting = self._waiting[id]
        while True:
            with self._changed:
                if waiting.events:
                    event = waiting.events.popleft()
                    break
                if waiting.open == 0:
                    return None
                if self._stepping:
                    self._changed.wait()
                    continue
                self._stepping = True
            self._step()
        if event[6] is not None:
            waiting.open -= 1
        if event[6] == "error":
            raise _core.Internal(event[7] or "the engine gave up this answer")
        return event

    def _step(self) -> None:
        busy, error = False, None
        events: list[_Event] = []
        try:
            busy, events, error = self._core.step()
        finally:
            with self._changed:
                self._stepping = False
                for event in events:
                    waiting = self._waiting.get(event[0])
                    if waiting is not None:
                        waiting.events.append(event)
                self._changed.notify_all()
        if error is not None:
            raise error
        if not busy and not events:
            raise _core.Internal("the engine has nothing to do, and an answer is missing")

    def _collect(self, id: int, request: typing.Mapping[str, Any]) -> Answer:
        waiting = self._waiting[id]
        pieces: list[list[Piece]] = [[] for _ in range(waiting.open)]
        reused = 0
        while (event := self._next(id)) is not None:
            pieces[event[1]].append(_piece(event, request))
            reused = event[9] if event[1] == 0 and event[6] is not None else reused
        return Answer(tuple(_choice(p) for p in pieces), waiting.prompt, reused)

    def _forget(self, ids: typing.Iterable[int]) -> None:
        for id in ids:
            waiting = self._waiting.get(id)
            if waiting is not None and waiting.open:
                self._core.cancel(id)
            with self._changed:
                self._waiting.pop(id, None)


def _piece(event: _Event, request: typing.Mapping[str, Any]) -> Piece:
    _, choice, token, text, logprob, top, finish, _, _, _ = event
    wanted = request.get("logprobs") is not None and int(request["logprobs"]) >= 0 and token >= 0
    return Piece(text, token if token >= 0 else None, choice, finish, logprob if wanted else None, top)


def _choice(pieces: list[Piece]) -> Choice:
    with_token = [p for p in pieces if p.token is not None]
    tokens = [p.token for p in with_token if p.token is not None]
    logprobs = [p.logprob for p in with_token if p.logprob is not None]
    return Choice("".join(p.text for p in pieces), tokens, pieces[-1].finish or "", logprobs, [p.top for p in with_token] if logprobs else [])


class LanguageModel:
    """A deployed language model. Made by `ait.llm.load`; immutable, threads may share it."""

    def __init__(self, core: _core.Llm, path: Path) -> None:
        self._core, self.path = core, path
        info = core.info
        self.vocab: int = info["vocab"]
        self.max_seq: int = info["max_seq"]  # longest sequence, prompt and answer
        self.cached: bool = info["cached"]  # False: each token runs the whole sequence again
        self.token_bytes: int = info["token_bytes"]  # cache of one token
        self.slot_bytes: int = info["slot_bytes"]  # state of one sequence
        self.encoder: bool = info["source_shape"] is not None
        self.source_shape: tuple[int, ...] | None = info["source_shape"]  # what the encoder reads, -1: 1 to max_source; None: there is no encoder
        self.max_source: int = info["max_source"]
        self._reads_tokens: bool = info["source_vocab"] > 0

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """NotFound: the file holds none."""
        if self._core.info["tokenizer_size"] < 0:
            raise _core.NotFound(f"'{os.fspath(self.path)}' holds no tokenizer\n  hint: deploy a folder with tokenizer.json, or give token ids")
        return Tokenizer(self._core)

    def engine(self, **options: Any) -> Engine:
        """An engine with its own caches; options as of `Engine`."""
        return Engine(self, **options)

    @functools.cached_property
    def _engine(self) -> Engine:
        return Engine(self)

    def generate(self, prompt: Prompt, **request: Any) -> Answer:
        """`Engine.generate` on an engine with default options, which is made by the first call."""
        return self._engine.generate(prompt, **request)

    def generate_all(self, prompts: typing.Iterable[Prompt], **request: Any) -> list[Answer]:
        return self._engine.generate_all(prompts, **request)

    def stream(self, prompt: Prompt, **request: Any) -> typing.Iterator[Piece]:
        return self._engine.stream(prompt, **request)

    def perplexity(self, text: str, *, window: int = 0, threads: int = 0) -> dict[str, Any]:
        """`ait eval`: nll, perplexity, bits_per_byte, tokens, windows, seconds."""
        return self._core.perplexity(text, window, threads)

    @property
    def manifest(self) -> dict[str, Any]:
        """llm.json of the file: caches, end tokens, the proof of deployment."""
        text = self._core.entry("llm.json")
        return typing.cast("dict[str, Any]", json.loads(text)) if text else {}

    def _read(self, prompt: Any, request: dict[str, Any], tools: Any, template: typing.Mapping[str, Any]) -> tuple[Any, list[int]]:
        """What the encoder reads (None: there is none), and the tokens that the answer is behind."""
        if not self.encoder:
            return None, self._tokens(prompt, tools, template)
        begin = request.pop("decoder_tokens", None)
        if not self._reads_tokens and not hasattr(prompt, "__dlpack__") and not hasattr(prompt, "__array__"):
            raise TypeError(f"this model's encoder reads an array of features of shape {self.source_shape}, not a {type(prompt).__name__}")
        source = self._tokens(prompt, tools, template) if self._reads_tokens else prompt
        return source, [] if begin is None else list(begin)

    def _tokens(self, prompt: Prompt, tools: Any, template: typing.Mapping[str, Any]) -> list[int]:
        if isinstance(prompt, str):
            return self.tokenizer.encode(prompt)
        if hasattr(prompt, "tolist"):
            prompt = typing.cast(Any, prompt).tolist()
        if not isinstance(prompt, typing.Sequence):
            raise TypeError(f"a prompt is a text, a list of token ids or a list of messages, not a {type(prompt).__name__}")
        if prompt and isinstance(prompt[0], typing.Mapping):  # the template writes the special tokens itself
            text = self.tokenizer.chat(typing.cast(Messages, prompt), tools=tools, **template)
            return self.tokenizer.encode(text, special=False)
        if prompt and isinstance(prompt[0], (str, typing.Sequence)):
            raise TypeError("several prompts at once are generate_all's")
        return list(typing.cast("typing.Sequence[int]", prompt))

    def __repr__(self) -> str:
        return f"<ait.llm.LanguageModel {os.fspath(self.path)!r}: {self.vocab} tokens, sequences up to {self.max_seq}>"


def load(path: Path, **options: Any) -> LanguageModel:
    """A file made by `ait.llm.deploy` or `ait deploy`. options: those of `ait.load` that are about reading: keys, require_signature,
    skip_checksum, full_checksum, isa."""
    return LanguageModel(_core.Llm(path, **options), path)


def deploy(source: Any, out: Path, *, tokenizer: Any = None, quantize: str | None = None, kv_dtype: str | None = None, max_seq: int = 0,
           page_size: int = 0, embedding: str | None = None, head: str | None = None, group: int = 0, allow_unmatched: bool = False,
           skip_proof: bool = False, eval_text: str | None = None, draft: Path | None = None, progress: typing.Callable[[str], object] | None = None,
           **options: Any) -> dict[str, Any]:
    """`ait deploy`: a language model into an artifact with caches. Returns what was matched, the proof and the sizes (docs/json.md).

    source: a folder of Hugging Face (exported with torch and transformers here, unless `python -m ait.export_lm` has done so), such a folder's
    model as a transformers object, with tokenizer= beside it, or a .pt2 of token ids to logits. quantize: weights of layers as "bf16", "int8" or
    "int4". kv_dtype: "float32", "bfloat16", "int8". eval_text: its perplexity is measured before and after. draft: a smaller model with the same
    tokens, as a folder or a deployed file, that the file will bring for speculation.
    Unsupported names the module that does not match."""
    given = {"quantize": quantize, "kv_dtype": kv_dtype, "max_seq": max_seq, "page_size": page_size, "embedding": embedding, "head": head,
             "group": group, "allow_unmatched": allow_unmatched, "skip_proof": skip_proof, "eval_text": eval_text, "draft": draft, "note": progress,
             **options}
    return deploy_exported(source, out, tokenizer, {}, given)


def deploy_exported(source: Any, out: Path, tokenizer: Any, export: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What `deploy` here and in `ait.embed` share. export: how a checkpoint is exported (task, pooling, normalize); given: options of `ait deploy`."""
    import tempfile

    if not hasattr(_core, "deploy"):
        raise _core.Unsupported("the run-only package deploys no models\n  hint: use the package ait")
    draft = given.get("draft")
    with tempfile.TemporaryDirectory(prefix="ait-") as work:
        if isinstance(source, (str, os.PathLike)):
            folder = os.fspath(source)
            if _is_checkpoint(folder):
                folder = _exported(folder, os.path.join(work, "exported"), **export)
        else:
            folder = os.path.join(work, "model")
            source.save_pretrained(folder)
            if tokenizer is not None:
                tokenizer.save_pretrained(folder)
            folder = _exported(folder, folder, **export)
        if draft is not None and _is_checkpoint(os.fspath(draft)):
            given["draft"] = _exported(os.fspath(draft), os.path.join(work, "draft"))
        return typing.cast("dict[str, Any]", json.loads(_core.deploy(folder, out, **given)))


def _is_checkpoint(folder: str) -> bool:
    """A folder of Hugging Face that `python -m ait.export_lm` has not seen yet."""
    named = any(os.path.exists(os.path.join(folder, name)) for name in ("config.json", "modules.json"))
    return named and not os.path.exists(os.path.join(folder, "ait.json"))


def _exported(folder: str, out: str, *, task: str = "auto", pooling: str | None = None, normalize: bool | None = None) -> str:
    """A folder that `ait deploy` takes. It names the checkpoint's folder, where the tokenizer's files are, too."""
    import importlib

    poolings = importlib.import_module("ait._export_embed").read_poolings(pooling) if pooling else None
    importlib.import_module("ait.export_lm").export_lm(folder, out, task=task, poolings=poolings, normalize=normalize)
    return out
