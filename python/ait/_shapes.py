"""Sizes that may change between calls: given by `Dim`, or taken from what differs between samples."""
from __future__ import annotations

import dataclasses
import re
from typing import Any, Dict, List, Mapping, Sequence, Tuple

Shapes = Sequence[Tuple[int, ...]]  # of one call, one for each tensor


@dataclasses.dataclass(frozen=True)
class Dim:
    """A size that may change. Equal names are equal sizes, in all tensors of a call. Bounds are inclusive; no max: unbounded."""

    name: str
    min: int = 1
    max: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise ValueError(f"{self.name!r} is no name for a dimension: letters, digits and _ only")
        if self.min < 0 or (self.max is not None and self.max < self.min):
            raise ValueError(f"dimension '{self.name}' goes from {self.min} to {self.max}")


class BatchDim(Dim):
    """The size of the batch: a Dim named "batch" unless it is told otherwise."""

    def __init__(self, name: str = "batch", min: int = 1, max: int | None = None) -> None:
        super().__init__(name, min, max)


Given = Sequence[Mapping[int, "Dim | int | None"]]  # for each tensor: axis -> Dim, or a fixed size


@dataclasses.dataclass
class Group:
    """Axes that have the same size."""

    name: str
    axes: List[Tuple[int, int]]  # (tensor, axis)
    sizes: Tuple[int, ...]  # in each sample
    min: int = 1
    max: int | None = None
    given: bool = False


def groups(samples: Sequence[Shapes], names: Sequence[str], given: Given | None = None) -> List[Group]:
    """The axes that are to be dynamic. From samples: axes of different tensors that had the same sizes in every sample are one dimension;
    two axes of one tensor never are (a square image does not say that all images are square)."""
    found: Dict[Any, Group] = {}
    for i, first in enumerate(samples[0]):
        told = given[i] if given and i < len(given) else {}
        for axis in range(len(first)):
            sizes = tuple(s[i][axis] for s in samples)
            want = told.get(axis, told.get(axis - len(first)))
            if isinstance(want, Dim):
                g = found.setdefault(("given", want.name), Group(want.name, [], sizes, want.min, want.max, True))
                _check_given(g, want, sizes, names[i], axis)
            elif want is not None or len(set(sizes)) == 1:
                continue
            else:
                n = 0  # how many axes of this tensor with these sizes there are already
                while ("seen", sizes, n) in found and any(t == i for t, _ in found["seen", sizes, n].axes):
                    n += 1
                name = re.sub(r"\W", "_", f"{names[i]}_{axis}")
                g = found.setdefault(("seen", sizes, n), Group(name, [], sizes))
            g.axes.append((i, axis))
    result = list(found.values())
    batch = [g for g in result if not g.given and all(a == 0 for _, a in g.axes)]
    if len(batch) == 1 and not any(g.name == "batch" for g in result):
        batch[0].name = "batch"
    return result


def _check_given(g: Group, want: Dim, sizes: Tuple[int, ...], name: str, axis: int) -> None:
    if g.sizes != sizes:
        t, a = g.axes[0]
        raise ValueError(f"dimension '{want.name}' is {sizes} in the samples on axis {axis} of '{name}', but {g.sizes} elsewhere")
    g.min, g.max = max(g.min, want.min), want.max if g.max is None else g.max if want.max is None else min(g.max, want.max)
    for s in sizes:
        if s < g.min or (g.max is not None and s > g.max):
            raise ValueError(f"dimension '{want.name}' goes from {g.min} to {g.max}, but a sample of '{name}' has {s} on axis {axis}")


def pick_sample(samples: Sequence[Shapes], dims: Sequence[Group]) -> int:
    """The sample to export with: the fewest dynamic sizes of 0 or 1, which torch.export would make constants, then the smallest."""

    def rank(k: int) -> Tuple[int, int]:
        elements = 0
        for shape in samples[k]:
            count = 1
            for size in shape:
                count *= size
            elements += count
        return sum(g.sizes[k] < 2 for g in dims), elements

    return min(range(len(samples)), key=rank)


def enlarge(tensors: Sequence[Any], dims: Sequence[Group], k: int) -> List[Any]:
    """The sample with dynamic axes of size 1 doubled (tripled and so on up to the dimension's smallest size)."""
    import torch

    result = list(tensors)
    for g in dims:
        if g.sizes[k] != 1:
            continue
        times = max(2, g.min)
        for i, axis in g.axes:
            result[i] = torch.cat([result[i]] * times, axis)
    return result


def expand_given(dynamic_shapes: Any, names: Sequence[str], parameters: Sequence[str], ranks: Sequence[int]) -> List[Dict[int, Any]]:
    """dynamic_shapes of a user, for each tensor of a call: {parameter: {axis: Dim}}, {parameter: (Dim or None, ...)}, {"a.b": …} for what
    lies inside a parameter; a list goes by position. Also torch's own Dim objects (name, min, max)."""
    result: List[Dict[int, Any]] = [{} for _ in names]
    if dynamic_shapes is None:
        return result
    if isinstance(dynamic_shapes, (list, tuple)):
        if len(dynamic_shapes) > len(parameters):
            raise ValueError(f"dynamic_shapes has {len(dynamic_shapes)} entries, the call {len(parameters)} arguments")
        dynamic_shapes = dict(zip(parameters, dynamic_shapes))
    for key, axes in dynamic_shapes.items():
        wanted = re.sub(r"\W", "_", str(key))
        hits = [i for i, n in enumerate(names) if n == wanted] or [i for i, n in enumerate(names) if n.startswith(wanted + "_")]
        if not hits:
            raise ValueError(f"dynamic_shapes names '{key}', which is no tensor of the call: {', '.join(names)}")
        for i in hits:
            result[i] = _axes(axes, key, ranks[i])
    return result


def _axes(axes: Any, key: Any, rank: int) -> Dict[int, Any]:
    if axes is None:
        return {}
    items = axes.items() if isinstance(axes, Mapping) else enumerate(axes)
    result = {}
    for axis, want in items:
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise ValueError(f"dynamic_shapes: '{key}' has {rank} dimensions, there is no axis {axis}")
        if want is None or isinstance(want, (Dim, int)) and not isinstance(want, bool):
            result[axis % rank] = want
        elif hasattr(want, "__name__") and hasattr(want, "min") and hasattr(want, "max"):  # torch.export.Dim
            top = want.max if isinstance(want.max, int) and want.max < 2**62 else None
            result[axis % rank] = Dim(want.__name__, int(want.min), top)
        else:
            raise ValueError(f"dynamic_shapes: axis {axis} of '{key}' is neither an ait.Dim nor a number")
    return result
