"""A backend of one's own in the tuner's contest: here TorchScript. Run it: python own_backend.py MODEL.pt2 OUT.ait"""
import sys

import torch

import ait


@ait.register_backend
class TorchScript(ait.Backend):
    name = "torchscript"
    summary = "torch.jit.trace, frozen"

    def build(self, program, samples):
        module = torch.jit.trace(ait.backend.flat(program), samples[0], check_trace=False)
        self.run = torch.jit.freeze(module.eval())

    def __call__(self, *inputs):
        return self.run(*inputs)


if __name__ == "__main__":  # trials run in fresh interpreters, which import this file
    model, out = sys.argv[1:]
    program = torch.export.load(model)
    args, kwargs = program.example_inputs
    inputs = torch.utils._pytree.tree_leaves((args, kwargs))
    report = ait.tune_file(model, out, [tuple(inputs)], backends=["torchscript", "native"], regions="whole", budget=5)
    for candidate in report.candidates:
        print(f"{candidate.name:32} {candidate.outcome:12} {1e3 * (candidate.median_s or 0):8.3f} ms  {candidate.reason}")
    print("runs on", ait.load(out).backend)
