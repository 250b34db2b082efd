"""Data sets: what users have, as calls."""
from __future__ import annotations

import inspect
import itertools
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from . import _tree

Call = Tuple[Tuple[Any, ...], Dict[str, Any]]
MAX_SAMPLES = 32
MAX_CALIBRATION = 256  # samples, and calls of one form of a part


class SampleEvent(NamedTuple):
    """One sample has gone through the pipeline: what `ait.tune(on_sample=…)` hears."""

    phase: str  # "before" tuning, "after" it
    index: int
    sample: Any
    output: Any
    seconds: float


def is_call(sample: Any) -> bool:
    """(args, kwargs) written out."""
    return (isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], (tuple, list)) and isinstance(sample[1], dict)
            and all(isinstance(k, str) for k in sample[1]))


def as_call(sample: Any) -> Call:
    """One sample as (args, kwargs): (args, kwargs) itself; a mapping with text keys: by name; a tuple or list: by position (a list of texts or
    numbers is one argument); anything else: one argument."""
    if is_call(sample):
        return tuple(sample[0]), dict(sample[1])
    if isinstance(sample, Mapping) and all(isinstance(k, str) for k in sample):
        return (), dict(sample)
    if hasattr(sample, "data") and isinstance(getattr(sample, "data"), Mapping) and not _tree.is_array(sample):
        return (), dict(sample.data)  # BatchEncoding and its like
    if isinstance(sample, tuple):
        return sample, {}
    if isinstance(sample, list) and any(_tree.is_array(v) for v in sample):
        return tuple(sample), {}
    return (sample,), {}


def fit_call(call: Call, fn: Callable[..., Any]) -> Call:
    """A loader's batch holds labels, too: trailing positional values that the function has no parameter for are left out, and so are
    values by name that it does not know (of a data set's columns)."""
    args, kwargs = call
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return call
    kinds = [p.kind for p in parameters]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    if inspect.Parameter.VAR_POSITIONAL not in kinds and len(args) > max(required, 1) and (
            len(args) > len(positional) or (len(args) == 2 and _looks_like_labels(args) and (
                required == 1 or positional[1].name in ("label", "labels", "target", "targets")))):
        args = args[:max(required, 1)]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        known = {p.name for p in parameters}
        kwargs = {k: v for k, v in kwargs.items() if k in known} if any(k in known for k in kwargs) else kwargs
    return args, kwargs


def _looks_like_labels(args: Tuple[Any, ...]) -> bool:
    """(batch of floats, one integer for each row): what a DataLoader of a classification set gives."""
    x, y = args
    return (_tree.is_tensor(x) and _tree.is_tensor(y) and x.is_floating_point() and not y.is_floating_point() and y.dim() <= 1 < x.dim()
            and (y.dim() == 0 or y.shape[0] == x.shape[0]))


def samples_of(data: Any, batch_sizes: Sequence[int] | None = None, limit: int = MAX_SAMPLES) -> List[Any]:
    """A list of samples from what users have: a list of samples; a DataLoader, a generator, any iterable; a function from a batch size to
    one; one dict, tuple or tensor as a single sample. batch_sizes: each sample is made that large by taking its rows in turn."""
    if callable(data) and not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        sizes = list(batch_sizes or (1, 2))
        each = max(1, limit // len(sizes))
        return [s for b in sizes for s in itertools.islice(_iterate(data(b)), each)]
    samples = list(itertools.islice(_iterate(data), limit))
    if not samples:
        raise ValueError("the data set is empty: at least one sample is needed")
    if batch_sizes:
        return [rebatch(s, b) for b in batch_sizes for s in samples]
    return samples


def _iterate(data: Any) -> Iterable[Any]:
    if _tree.is_array(data) or isinstance(data, (str, bytes, Mapping)) or is_call(data) or isinstance(data, tuple):
        return [data]
    if hasattr(data, "__iter__"):
        return data  # type: ignore[no-any-return]
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):  # torch.utils.data.Dataset
        return (data[i] for i in range(len(data)))
    return [data]


def rebatch(sample: Any, size: int) -> Any:
    """The sample with `size` rows: what has the batch's length along axis 0 (tensors, arrays, lists of texts) is cut or repeated; numbers and
    texts stay. The batch's length is that of the first such value."""
    length: List[int] = []

    def first(v: Any) -> None:
        if length:
            return
        if _tree.is_array(v) and v.ndim > 0:
            length.append(int(v.shape[0]))
        elif isinstance(v, list) and v and not isinstance(v[0], (list, tuple, dict)) and not _tree.is_array(v[0]):
            length.append(len(v))
        elif isinstance(v, Mapping):
            for x in v.values():
                first(x)
        elif isinstance(v, (list, tuple)):
            for x in v:
                first(x)

    first(sample)
    if not length or length[0] == 0:
        return sample
    old = length[0]
    rows = [i % old for i in range(size)]

    def cut(v: Any) -> Any:
        if _tree.is_array(v):
            return v[rows] if v.ndim > 0 and v.shape[0] == old else v
        if isinstance(v, dict):
            return {k: cut(x) for k, x in v.items()}
        if isinstance(v, list) and len(v) == old and v and not _tree.is_array(v[0]) and not isinstance(v[0], (list, tuple, dict)):
            return [v[i] for i in rows]
        if type(v) in (list, tuple):
            return type(v)(cut(x) for x in v)
        return v

    return cut(sample)


def calls_of(samples: Sequence[Any], fn: Callable[..., Any]) -> Iterator[Call]:
    for s in samples:
        yield fit_call(as_call(s), fn)
