"""What a file's `call` says beyond structure: which calls it is for. Needs neither torch nor numpy."""
from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from ait import _core, _tree
from ait._call import Call
from ait.model import Model


class Form(Call):
    """The form of calls that a tuned function stands for."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        super().__init__(description)
        try:
            self.name, self.method = str(description["name"]), str(description["method"])
            self.dtypes, self.ranks = tuple(str(d) for d in description["dtypes"]), tuple(int(r) for r in description["ranks"])
            self.autocast = None if description["autocast"] is None else str(description["autocast"])
            self.shape: List[List[Any]] = [[s if isinstance(s, int) else str(s) for s in row] for row in description["shape"]]
            self.weights = None if description.get("weights") is None else str(description["weights"])
        except (KeyError, TypeError, ValueError) as e:
            raise _core.InvalidModel(f"the manifest's description of the call cannot be read: {e}") from None
        tensors = sum(node[0] == "t" for _, node in _tree.walk(self._in))
        if not tensors == len(self.dtypes) == len(self.ranks) == len(self.shape):
            raise _core.InvalidModel("the manifest's description of the call cannot be read: counts differ")

    @property
    def spec(self) -> _tree.Spec:
        return self._in

    @property
    def out_spec(self) -> _tree.Spec:
        return self._out


def form_of(model: Model) -> Form:
    description = model.manifest.get("call")
    if not isinstance(description, dict):
        raise _core.InvalidModel(f"'{model.path}' does not say how a module calls it (hint: ait.load(path) runs it by itself)")
    return Form(description)


class Function:
    """Several tuned forms of one function, without the module: the first that takes a call answers it."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = list(models)
        self.forms = [form_of(m) for m in self.models]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        problem: Exception | None = None
        for model, form in zip(self.models, self.forms):
            try:
                results = _core.Model.__call__(model, *form.flatten(args, kwargs))
            except (_core.InvalidArgument, _core.Unsupported) as e:
                problem = problem or e
                continue
            return form.rebuild([results] if len(model.outputs) == 1 else list(results))
        assert problem is not None
        raise problem
