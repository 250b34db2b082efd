"""A module's structure as an object of its own, for everything that runs its code outside the user's calls.

torch.export puts fake tensors into a module while it traces it, copies its lists and dicts, and the module's own code may keep caches and
counters. Other threads may call the module meanwhile. So exports and checks work on a copy, which shares the weights and nothing else.
"""
from __future__ import annotations

import copy
import sys
import types
from typing import Any, Dict, Iterator

from ._modules import _SKIPPED_PACKAGES, Part

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks", "_state_dict_pre_hooks",
          "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
_SHARED = _SKIPPED_PACKAGES | {"_thread", "_io", "weakref", "_weakref"}
SHARED_BYTES = 64 << 20  # a tensor above it that is no buffer is shared


def isolated(part: Part) -> Part:
    """The part of a copy of its module; the part itself where the module cannot be copied."""
    try:
        module = _copy(part.module)
    except Exception:  # whatever the user's classes raise
        return part
    if module is None or type(module) is not type(part.module):
        return part
    twin = Part(part.name, module, part.method, part.aliases)
    return twin if getattr(twin.original, "__self__", None) is module else part


def _copy(module: Any) -> Any:
    torch = sys.modules["torch"]
    if isinstance(module, torch.fx.GraphModule):  # copies itself by tracing its code again
        return None
    memo: Dict[int, Any] = {}
    modules = list(module.modules())
    for m in modules:
        if isinstance(m, (torch.jit.ScriptModule, torch.fx.GraphModule)):
            memo[id(m)] = m
            continue
        for t in m._parameters.values():
            memo[id(t)] = t
        for t in m._buffers.values():
            memo[id(t)] = t if t is None else _own(t)
        for name in _HOOKS:
            hooks = vars(m).get(name)
            if hooks:  # the functions stay the user's, what they belong to is not copied
                memo[id(hooks)] = type(hooks)() if m is module else copy.copy(hooks)
        for value in _values(vars(m)):
            if isinstance(value, types.FunctionType) and _sees_a_module(value):
                return None  # it would go on with the module that it was made for
            if isinstance(value, torch.Tensor):
                memo.setdefault(id(value), _own(value) if value.numel() * value.element_size() <= SHARED_BYTES else value)
            elif type(value).__module__.partition(".")[0] in _SHARED or isinstance(value, torch.Generator):
                memo[id(value)] = value
    return copy.deepcopy(module, memo)


def _own(t: Any) -> Any:
    with sys.modules["torch"].inference_mode(False):
        return t.detach().clone().requires_grad_(t.requires_grad)


def _values(attributes: Dict[str, Any]) -> Iterator[Any]:
    """Of a module's attributes and of the lists and dicts among them."""
    for name, value in attributes.items():
        if name in ("_parameters", "_buffers", "_modules") or name in _HOOKS:
            continue
        yield value
        if type(value) is dict:
            yield from value.values()
        elif type(value) in (list, tuple):
            yield from value


def _sees_a_module(fn: types.FunctionType) -> bool:
    nn = sys.modules["torch"].nn
    for cell in fn.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if isinstance(value, nn.Module) or isinstance(getattr(value, "__self__", None), nn.Module):
            return True
    return False
