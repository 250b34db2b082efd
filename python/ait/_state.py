"""What a tuned function stands for besides its arguments: a module's weights, attributes and hooks, and the modes that torch is in."""
from __future__ import annotations

import array
import functools
import itertools
import operator
import sys
from typing import Any, Callable, Dict, List

from . import _core
from ._modules import foreign_hooks

_MISSING = object()
_PLAIN = (bool, int, float, str, bytes, tuple, type(None))
PIECES, PIECE_BYTES = 4, 16  # of a tensor's memory that are looked at in each call; smaller tensors are looked at whole
_WEIGHTS = ("_parameters", "_buffers", "_modules")
_STANDARD = frozenset(("_backward_pre_hooks", "_backward_hooks", "_is_full_backward_hook", "_forward_hooks", "_forward_hooks_with_kwargs",
                       "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
                       "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_non_persistent_buffers_set"))
_CHANGED = "its parameters or buffers were changed after tuning (tune it again)"


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
    return any(type(m).__name__ != "DeviceContext" or getattr(getattr(m, "device", None), "type", "") != "cpu" for m in stack)


class State:
    """A module's parameters, buffers, attributes and hooks as they were when it was tuned."""

    def __init__(self, module: Any) -> None:
        torch = sys.modules["torch"]
        self.module = module
        self._modules = list(module.modules())
        self._dicts: List[Dict[str, Any]] = [vars(m) for m in self._modules]
        self._containers: List[Dict[str, Any]] = [d for m in self._modules for d in (m._parameters, m._buffers, m._modules)]
        self._hooks: List[Any] = [d for m in self._modules[1:] for d in (m._forward_hooks, m._forward_pre_hooks)]
        self.parameters = list({id(t): t for m in self._modules for t in m._parameters.values() if t is not None}.values())
        tensors = self.parameters + [t for m in self._modules for t in m._buffers.values() if t is not None]
        self._located = [t for t in tensors if t.layout is torch.strided and type(t) in (torch.Tensor, torch.nn.Parameter)]
        self._versioned = [t for t in self._located if not t.is_inference()]
        self._default_dtype, self._get_default_dtype = torch.get_default_dtype(), torch.get_default_dtype
        self._gone: str | None = None
        self._values = [v for d in self._containers for v in d.values()]
        self._numbers = _core.tensor_numbers(self._versioned, self._located)
        self._spans = b"".join(_pieces(t) for t in self._located if t.device.type == "cpu")
        self._sum = _core.memory_sum(self._spans)
        self._snapshot()

    def _snapshot(self) -> None:
        """Of the attributes: those that torch gives every module have no meaning of their own, or are looked at in other ways."""
        self._before = [dict(d) for d in self._dicts]
        self._names = [(len(d), *itertools.chain.from_iterable((k, v) for k, v in d.items() if k not in _STANDARD)) for d in self._dicts]
        self._hook_count = sum(map(len, self._hooks))
        self._what = (self._versioned, self._located, *self._numbers, self._dicts, self._names, self._containers, self._values, self._hooks,
                      self._hook_count, self._spans, self._sum)

    def changed(self) -> str | None:
        """Why what was tuned does not stand for the module now; None when it does."""
        if self._gone:
            return self._gone
        what = _core.unchanged(*self._what)
        if what == 0:
            return None if self._get_default_dtype() is self._default_dtype else "the default dtype is another one than when it was tuned"
        if what == 3:
            self._gone = _CHANGED
            return self._gone
        return self._what_changed()

    def _what_changed(self) -> str | None:
        if not self._same_weights():
            return _CHANGED
        for i, (now, before) in enumerate(zip(self._dicts, self._before)):
            for k in before.keys() | now.keys():
                a, b = before.get(k, _MISSING), now.get(k, _MISSING)
                if a is b or _equal(a, b) or k.startswith("__"):  # __overloads__: a mark of torch.jit.script
                    continue
                if i == 0 and hasattr(a, "ait_original"):
                    continue  # what was put over the tuned function calls it
                if k in _WEIGHTS:
                    return _CHANGED
                if k == "training":
                    whose = "the module" if i == 0 else f"its submodule '{self._name(i)}'"
                    return f"{whose} is in {'training' if b else 'evaluation'} mode"
                return f"the attribute '{k}' of a {type(self._modules[i]).__name__} was changed after tuning (tune it again)"
        if any(map(foreign_hooks, self._modules[1:])):
            return "a submodule has a forward hook, which a tuned call would not run"
        self._snapshot()
        return None

    def _same_weights(self) -> bool:
        now = [v for d in self._containers for v in d.values()]
        return len(now) == len(self._values) and all(map(operator.is_, now, self._values))

    def _name(self, i: int) -> str:
        return next((n for n, m in self.module.named_modules() if m is self._modules[i]), "")

    def accept_attributes(self) -> None:
        """The module's own code has run: what it has set (caches, marks of its library) is no change from outside."""
        if _core.unchanged(*self._what) not in (1, 2):
            return
        if not self._same_weights():
            return
        for now, before in zip(self._dicts, self._before):
            if any(now.get(k) is not before.get(k) for k in (*_WEIGHTS, "training")):
                return
        if not any(map(foreign_hooks, self._modules[1:])):
            self._snapshot()


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
