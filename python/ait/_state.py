"""What a tuned function stands for besides its arguments: a module's weights, attributes and hooks, and the modes that torch is in."""
from __future__ import annotations

import array
import functools
import itertools
import operator
import sys
from typing import Any, Callable, Dict, List, Tuple

from . import _core
from ._modules import foreign_hooks

_version = operator.attrgetter("_version")
_MISSING = object()
_PLAIN = (bool, int, float, str, bytes, tuple, type(None))
PIECES, PIECE_BYTES = 4, 16  # of a tensor's memory that are looked at in each call; smaller tensors are looked at whole
_WEIGHTS = ("_parameters", "_buffers", "_modules")


@functools.lru_cache(maxsize=None)
def special_mode() -> Callable[[], bool]:
    """A function: whether torch does something else with calls now than to compute them. It traces them, transforms them (vmap, grad, forward
    mode), counts or fakes their operators (modes), or runs hooks on all modules. A tuned function would be blind to that."""
    import torch
    import torch.nn.modules.module as modules
    from torch.autograd import forward_ad

    C = torch._C
    no = lambda *_: None  # noqa: E731
    tracing = getattr(C, "_get_tracing_state", no)
    dispatch, functions = getattr(C, "_len_torch_dispatch_stack", lambda: 0), getattr(C, "_len_torch_function_stack", lambda: 0)
    transforms = getattr(getattr(C, "_functorch", None), "peek_interpreter_stack", no)
    hooks, pre_hooks = modules._global_forward_hooks, modules._global_forward_pre_hooks

    def special() -> bool:
        if tracing() is not None or dispatch() or transforms() is not None or forward_ad._current_level >= 0 or hooks or pre_hooks:
            return True
        return bool(functions()) and _function_modes()

    return special


def _function_modes() -> bool:
    """Modes that see calls of torch's functions; a default device that is the CPU changes nothing."""
    import torch

    stack = getattr(torch.overrides, "_get_current_function_mode_stack", lambda: [None])()
    return any(type(m).__name__ != "DeviceContext" or getattr(m.device, "type", "") != "cpu" for m in stack)


class State:
    """A module's parameters, buffers, attributes and hooks as they were when it was tuned."""

    def __init__(self, module: Any) -> None:
        torch = sys.modules["torch"]
        self.module = module
        self._modules = list(module.modules())
        self._dicts: List[Dict[Any, Any]] = [d for m in self._modules for d in (vars(m), m._parameters, m._buffers, m._modules)]
        self._hooks: List[Any] = [d for m in self._modules[1:] for d in (m._forward_hooks, m._forward_pre_hooks)]
        self.parameters = list({id(t): t for m in self._modules for t in m._parameters.values() if t is not None}.values())
        tensors = self.parameters + [t for m in self._modules for t in m._buffers.values() if t is not None]
        strided = [t for t in tensors if t.layout is torch.strided and type(t) in (torch.Tensor, torch.nn.Parameter)]
        self._versioned = [t for t in strided if not t.is_inference()]
        self._located = strided
        self._data_ptr = torch.Tensor.data_ptr
        self._default_dtype, self._get_default_dtype = torch.get_default_dtype(), torch.get_default_dtype
        self._gone: str | None = None
        self._spans = b"".join(_pieces(t) for t in strided if t.device.type == "cpu")
        self._sum = _core.memory_sum(self._spans)
        self._numbers = self._versions()
        self._snapshot()

    def _versions(self) -> Tuple[int, int]:
        return sum(map(_version, self._versioned)), sum(map(self._data_ptr, self._located))

    def _snapshot(self) -> None:
        self._keys = [tuple(d) for d in self._dicts]
        self._values = [v for d in self._dicts for v in d.values()]
        self._hook_count = sum(map(len, self._hooks))

    def changed(self) -> str | None:
        """Why what was tuned does not stand for the module now; None when it does."""
        if self._gone:
            return self._gone
        if self._versions() != self._numbers:
            return self._for_good("its parameters or buffers were changed after tuning (tune it again)")
        what = _core.unchanged(self._dicts, self._values, self._hooks, self._hook_count, self._spans, self._sum)
        if what == 0:
            return None if self._get_default_dtype() is self._default_dtype else "the default dtype is another one than when it was tuned"
        if what == 3:
            return self._for_good("its parameters or buffers were changed after tuning (tune it again)")
        return self._what_changed()

    def _for_good(self, reason: str) -> str:
        self._gone = reason
        return reason

    def _what_changed(self) -> str | None:
        values = iter(self._values)
        for i, (now, keys) in enumerate(zip(self._dicts, self._keys)):
            before = dict(zip(keys, values))
            for k in before.keys() | now.keys():
                a, b = before.get(k, _MISSING), now.get(k, _MISSING)
                if a is b or (i % 4 == 0 and _equal(a, b)):
                    continue
                if i % 4 or k in _WEIGHTS:
                    return "its parameters or buffers were changed after tuning (tune it again)"
                if i == 0 and hasattr(a, "ait_original"):
                    continue  # what was put over the tuned function calls it
                if k == "training":
                    whose = "the module" if i == 0 else f"its submodule '{self._name(i)}'"
                    return f"{whose} is in {'training' if b else 'evaluation'} mode"
                return f"the attribute '{k}' of a {type(self._modules[i // 4]).__name__} was changed after tuning (tune it again)"
        if any(map(foreign_hooks, self._modules[1:])):
            return "a submodule has a forward hook, which a tuned call would not run"
        self._snapshot()
        return None

    def _name(self, i: int) -> str:
        return next((n for n, m in self.module.named_modules() if m is self._modules[i // 4]), "")

    def accept_attributes(self) -> None:
        """The module's own code has run: what it has set (caches, marks of its library) is no change from outside."""
        if _core.unchanged(self._dicts, self._values, self._hooks, self._hook_count, b"", _EMPTY) == 0:
            return
        values = iter(self._values)
        for i, (now, keys) in enumerate(zip(self._dicts, self._keys)):
            before = dict(zip(keys, values))
            for k in before.keys() | now.keys():
                a, b = before.get(k, _MISSING), now.get(k, _MISSING)
                if a is not b and (i % 4 or k in _WEIGHTS or k == "training"):
                    return
        if not any(map(foreign_hooks, self._modules[1:])):
            self._snapshot()


_EMPTY = _core.memory_sum(b"")


def _equal(a: Any, b: Any) -> bool:
    """Equal plain values, or the places where a tuned function was put or taken away."""
    if type(a) is type(b) and type(a) in _PLAIN:
        try:
            return bool(a == b)
        except Exception:  # a tuple of tensors
            return False
    return all(v is _MISSING or hasattr(v, "ait_original") for v in (a, b))


def _pieces(t: Any) -> bytes:
    """Addresses and sizes of some of a tensor's memory, from its first to its last element."""
    if t.numel() == 0 or t.data_ptr() == 0:
        return b""
    size = t.element_size() * (1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())))
    if size <= PIECES * PIECE_BYTES:
        return array.array("Q", [t.data_ptr(), size]).tobytes()
    last = size - PIECE_BYTES
    at = (last * i // (PIECES - 1) // t.element_size() * t.element_size() for i in range(PIECES))
    return array.array("Q", itertools.chain.from_iterable((t.data_ptr() + a, PIECE_BYTES) for a in at)).tobytes()
