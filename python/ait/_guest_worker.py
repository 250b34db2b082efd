"""A guest's process: python/src/guest_worker.c starts it, asks, and kills it. What it takes and gives is described there.

Descriptors: 3 the socket, 4 shared memory for tensors, 5 what it loads (or where it puts what it made), 6 weights (or their names).
"""
from __future__ import annotations

import array
import ctypes
import importlib
import json
import mmap
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import time
import typing

Any = typing.Any
SOCKET, SHARED, BLOB, WEIGHTS = 3, 4, 5, 6
DONE, UNSUPPORTED, FAILED = 0, 1, 2
NONE, TENSOR, INT, FLOAT, BOOL = 0, 1, 2, 3, 4
ALIGN = 64


def aligned(n: int) -> int:
    return (n + ALIGN - 1) // ALIGN * ALIGN


def end_with_parent(link: socket.socket) -> None:
    """Nobody to answer: end at once, also in the middle of a compilation."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    def watch() -> None:
        poll = select.poll()
        poll.register(link, select.POLLRDHUP | select.POLLHUP)
        while not poll.poll():
            pass
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def find_class(spec: dict[str, Any]) -> Any:
    if spec.get("file"):  # a script: run under another name, as multiprocessing does
        names = runpy.run_path(spec["file"], run_name="__ait_worker__")
        found: Any = names.get(spec["class"].partition(".")[0])
        for part in spec["class"].split(".")[1:]:
            found = getattr(found, part, None)
        if found is None:
            raise RuntimeError(f"'{spec['file']}' defines no class '{spec['class']}'")
        return found
    found = importlib.import_module(spec["module"])
    for part in spec["class"].split("."):
        found = getattr(found, part)
    return found


# ---- compile ------------------------------------------------------------------------------------------------------------------------------
def compile_blob(job: dict[str, Any], calibration: str | None) -> tuple[bytes, bool]:
    from ait import _guest_program as programs

    names = [n.decode() for n in os.pread(WEIGHTS, os.fstat(WEIGHTS).st_size, 0).split(b"\0") if n]
    version = job["spec"]["version"]
    if job["spec"]["saves"]:
        cls = find_class(job["spec"])
        import torch

        program = torch.export.load(job["program"])
        object_ = cls(**dict(pair.split("=", 1) for pair in job["options"].split(",") if pair))
        sample = program.example_inputs
        samples = [] if sample is None else [tuple(torch.utils._pytree.tree_leaves(sample))]
        if calibration is not None:
            samples = [tuple(call) for call in torch.load(calibration, weights_only=True)]
        with torch.no_grad():
            object_.build(program, samples)
            saved = object_.save()
        if saved is not None:
            return programs.payload("saved", saved, version), False
    return programs.payload("program", programs.strip(job["program"], set(names)), version), True


# ---- runs --------------------------------------------------------------------------------------------------------------------------------
def read_weights(dtypes: list[str]) -> dict[str, Any]:
    from ait import _guest_program as programs

    size = os.fstat(WEIGHTS).st_size
    found: dict[str, Any] = {}
    if size == 0:
        return found
    memory = mmap.mmap(WEIGHTS, size)
    view = memoryview(memory)
    at = 0
    while at < size:
        length, dtype, rank, bytes_ = struct.unpack_from("<4q", view, at)
        numbers = struct.unpack_from(f"<{2 * rank}q", view, at + 32)
        at += aligned(32 + 16 * rank)
        name = bytes(view[at : at + length - 1]).decode()
        at += aligned(length)
        found[name] = programs.tensor_of(view[at : at + bytes_], dtypes[dtype], numbers[:rank], numbers[rank:])
        at += aligned(bytes_)
    return found


class Server:
    def __init__(self, link: socket.socket, job: dict[str, Any], cls: Any) -> None:
        import torch

        from ait import _guest_program as programs

        self.torch = torch
        self.programs = programs
        torch.set_num_threads(job["threads"])
        torch.set_grad_enabled(False)
        self.link = link
        self.dtypes: list[str] = job["dtypes"]
        self.numbers = {getattr(torch, n): i for i, n in enumerate(self.dtypes) if n and hasattr(torch, n)}
        self.memory: Any = None
        self.size = 0
        self.tensors: dict[tuple[Any, ...], Any] = {}
        blob = os.pread(BLOB, os.fstat(BLOB).st_size, 0)
        self.guest = programs.Loaded(cls, job["options"], blob, lambda: read_weights(self.dtypes))

    def map(self, size: int) -> None:
        if size != self.size:
            self.tensors.clear()
            if os.fstat(SHARED).st_size < size:
                os.ftruncate(SHARED, size)
            self.memory = mmap.mmap(SHARED, size)
            self.size = size

    def tensor(self, dtype: int, sizes: tuple[int, ...], offset: int) -> Any:
        """A view of shared memory; kept, since calls repeat."""
        key = (dtype, sizes, offset)
        if key not in self.tensors:
            count = 1
            for n in sizes:
                count *= n
            wanted = getattr(self.torch, self.dtypes[dtype])
            if len(self.tensors) > 256:
                self.tensors.clear()
            self.tensors[key] = (self.torch.frombuffer(self.memory, dtype=wanted, count=count, offset=offset).view(sizes) if count
                                 else self.torch.empty(sizes, dtype=wanted))
        return self.tensors[key]

    def inputs(self, words: array.array[int]) -> list[Any]:
        out: list[Any] = []
        at = 4
        for _ in range(words[3]):
            kind = words[at]
            if kind == TENSOR:
                dtype, rank = words[at + 1], words[at + 2]
                at += 3
                out.append(self.tensor(dtype, tuple(words[at : at + rank]), words[at + rank]))
                at += rank + 1
                continue
            word = words[at + 1]
            at += 2
            out.append({INT: word, BOOL: bool(word), NONE: None}.get(kind) if kind != FLOAT else struct.unpack("<d", struct.pack("<q", word))[0])
        return out

    def results(self, values: list[Any], begin: int) -> list[int]:
        """Puts tensors into shared memory from `begin` on."""
        torch = self.torch
        words = [0, len(values)]
        end = begin
        places = []
        for v in values:
            if isinstance(v, torch.Tensor):
                places.append(end)
                end += aligned(v.numel() * v.element_size())
        if end > self.size:
            self.map(aligned(end) + 65536)
        words[0] = self.size
        for v in values:
            if isinstance(v, torch.Tensor):
                dtype, offset = self.numbers[v.dtype], places.pop(0)
                self.tensor(dtype, tuple(v.shape), offset).copy_(v)
                words += [TENSOR, dtype, v.dim(), *v.shape, offset]
            elif isinstance(v, bool):
                words += [BOOL, int(v)]
            elif isinstance(v, int):
                words += [INT, v]
            elif isinstance(v, float):
                words += [FLOAT, struct.unpack("<q", struct.pack("<d", v))[0]]
            elif v is None:
                words += [NONE, 0]
            else:
                raise TypeError(f"a result of {type(v).__name__}")
        return words

    def serve(self) -> None:
        clock = time.perf_counter_ns
        call: Any = self.guest
        while True:
            request = self.link.recv(1 << 18)
            if not request:
                return
            words = array.array("q", request)
            self.map(words[1])
            inputs = self.inputs(words)
            try:
                start = clock()
                values = call(inputs)
                seconds = clock() - start
                answer = array.array("q", [DONE, seconds, *self.results(values, words[2])]).tobytes()
            except Exception as error:
                answer = refusal(error)
            self.link.sendall(answer)


# ---- the process ---------------------------------------------------------------------------------------------------------------------------
def refusal(error: BaseException) -> bytes:
    from ait import _core

    kind = UNSUPPORTED if isinstance(error, (_core.Unsupported, _core.Unavailable, NotImplementedError)) else FAILED
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0] if lines else ''}" if kind == FAILED or not lines else lines[0]
    return struct.pack("<2q", kind, 0) + text.encode("utf-8", "replace")[:900]


def main(calibration: str | None = None) -> None:
    """calibration: a file of calls, of backend.calibrating."""
    job = json.loads(sys.argv[-1])
    link = socket.socket(fileno=SOCKET)
    end_with_parent(link)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of processes that would outlive this one
    from ait import backend

    backend.in_worker = True
    try:
        if job["do"] == "compile":
            blob, weights = compile_blob(job, calibration)
            os.ftruncate(BLOB, 0)
            with os.fdopen(os.dup(BLOB), "wb") as f:
                f.write(blob)
            link.sendall(struct.pack("<3q", DONE, len(blob), int(weights)))
            link.recv(1)
            return
        server = Server(link, job, find_class(job["spec"]))
    except Exception as error:
        link.sendall(refusal(error))
        link.recv(1)
        return
    link.sendall(struct.pack("<1q", DONE))
    server.serve()
