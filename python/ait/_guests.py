"""Torch's own ways to run an exported program, as backends. Written against: torch 2.13, torchao 0.18, torch_tensorrt 2.8's documentation."""
from __future__ import annotations

import os
import shutil
import sysconfig
import tempfile
import typing

from ait import _core, backend

Any = typing.Any


def _compiler() -> str:
    """Inductor turns graphs into C++ and calls a compiler while the program runs."""
    wanted = os.environ.get("CXX")
    for name in [wanted] if wanted else ["g++", "clang++", "c++"]:
        if found := shutil.which(name):
            return found
    raise _core.Unavailable("no C++ compiler is here, which Inductor calls: install g++")


def _python_headers() -> None:
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        raise _core.Unavailable("the header Python.h is not here, which Inductor's code includes: install python3-dev")


def _inductor_ready(packages: typing.Sequence[str]) -> str:
    version = backend.packages_version(packages)
    _compiler()
    _python_headers()
    return version


def _dynamic(program: Any) -> bool:
    return bool(program.range_constraints)


class TorchEager(backend.Backend):
    name = "torch-eager"
    summary = "PyTorch as it is, operator by operator: the baseline of PyTorch users"

    def build(self, program: Any, samples: list[tuple[Any, ...]]) -> None:
        self.run = backend.flat(program)

    def __call__(self, *inputs: Any) -> Any:
        return self.run(*inputs)


class TorchCompile(backend.Backend):
    name = "torch-compile"
    summary = "torch.compile with Inductor, weights frozen; needs a C++ compiler where it runs"
    options = {"mode": ("Inductor's mode", ("default",))}

    @classmethod
    def probe(cls) -> str:
        return _inductor_ready(cls.packages)

    def module(self, program: Any) -> Any:
        return program.module(check_guards=False)

    def build(self, program: Any, samples: list[tuple[Any, ...]]) -> None:
        import torch
        import torch._inductor.config as inductor

        self._patch = inductor.patch(freezing=True)
        mode = None if self.option["mode"] == "default" else self.option["mode"]
        compiled = torch.compile(self.module(program), dynamic=True if _dynamic(program) else None, mode=mode)
        self.run = backend.flat(program, compiled)
        with self._patch:
            self.run(*samples[0])

    def __call__(self, *inputs: Any) -> Any:
        with self._patch:  # other sizes may be compiled anew
            return self.run(*inputs)


class AOTInductor(backend.Backend):
    name = "aotinductor"
    summary = "Inductor ahead of time: native code in the artifact, which runs from a file only when a trusted key signed it"
    seals_code = True

    @classmethod
    def probe(cls) -> str:
        return _inductor_ready(cls.packages)

    def build(self, program: Any, samples: list[tuple[Any, ...]]) -> None:
        import torch

        with tempfile.TemporaryDirectory() as folder:
            path = torch._inductor.aoti_compile_and_package(program, package_path=os.path.join(folder, "model.pt2"))
            with open(path, "rb") as f:
                self._package = f.read()

    def save(self) -> bytes | None:
        return self._package

    def load(self, data: bytes) -> None:
        import torch

        self._folder = tempfile.TemporaryDirectory()  # its library stays mapped
        path = os.path.join(self._folder.name, "model.pt2")
        with open(path, "wb") as f:
            f.write(data)
        package = torch._inductor.aoti_load_package(path)
        spec = package.loader.get_call_spec()
        in_spec = torch.utils._pytree.treespec_loads(spec[0])

        def call(*inputs: Any) -> Any:
            args, kwargs = torch.utils._pytree.tree_unflatten(list(inputs), in_spec)
            return package(*args, **kwargs)

        self.run = call

    def __call__(self, *inputs: Any) -> Any:
        return self.run(*inputs)


def _linears_as_modules(module: Any) -> int:
    """Calls of aten.linear on a parameter become nn.Linear, which is what TorchAO looks for. Returns how many."""
    import torch

    count = 0
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target is not torch.ops.aten.linear.default or node.args[1].op != "get_attr":
            continue
        weight = _attribute(module, node.args[1].target)
        bias = node.args[2] if len(node.args) > 2 else None
        if not isinstance(weight, torch.nn.Parameter) or weight.dim() != 2 or (bias is not None and bias.op != "get_attr"):
            continue
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
        layer.weight = weight
        if bias is not None:
            layer.bias = torch.nn.Parameter(_attribute(module, bias.target), requires_grad=False)
        module.add_submodule(f"ait_linear_{count}", layer)
        with module.graph.inserting_before(node):
            node.replace_all_uses_with(module.graph.call_module(f"ait_linear_{count}", (node.args[0],)))
        module.graph.erase_node(node)
        count += 1
    module.graph.eliminate_dead_code()
    module.recompile()
    return count


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


class TorchAO(TorchCompile):
    name = "torchao"
    summary = "TorchAO's quantization of linear layers, compiled by Inductor: the accuracy gate decides"
    packages = ("torchao", "torch")
    options = {
        "quantization": ("weights as int8 or int4, or int8 with inputs quantized call by call", ("int8-weights", "int8-dynamic", "int4-weights")),
        "mode": ("Inductor's mode", ("default",)),
    }

    def module(self, program: Any) -> Any:
        import torch
        import torchao.quantization as ao

        module = program.module(check_guards=False)
        if not _linears_as_modules(module):
            raise _core.Unsupported("the model has no linear layer whose weights TorchAO could quantize")
        if self.option["quantization"] == "int8-weights":
            config: Any = ao.Int8WeightOnlyConfig()
        elif self.option["quantization"] == "int8-dynamic":
            config = ao.Int8DynamicActivationInt8WeightConfig()
        else:  # Int4WeightOnlyConfig has no CPU kernels in 0.18; this one is the same numbers as int8 with 16 levels
            config = ao.IntxWeightOnlyConfig(weight_dtype=getattr(torch, "int4"), granularity=ao.PerGroup(32))
        ao.quantize_(module, config)
        return module


_GPU = "cuda"


def _to_gpu(v: Any) -> Any:
    import torch

    return v.to(_GPU) if isinstance(v, torch.Tensor) else v


class TorchTensorRT(backend.Backend):
    name = "torch-tensorrt"
    summary = "Torch-TensorRT's dynamo front end on an NVIDIA GPU; results come back to the CPU"
    packages = ("torch_tensorrt", "torch")

    @classmethod
    def probe(cls) -> str:
        version = backend.packages_version(cls.packages)
        _nvidia_gpu()
        return version

    def build(self, program: Any, samples: list[tuple[Any, ...]]) -> None:
        import torch
        import torch_tensorrt
        from torch.export.passes import move_to_device_pass

        inputs = [_to_gpu(v) for v in samples[0]]
        args, kwargs = tuple(inputs), {}
        if program.call_spec.in_spec is not None:  # an argument may be given by name, or lie in a structure
            args, kwargs = torch.utils._pytree.tree_unflatten(inputs, program.call_spec.in_spec)
        moved = move_to_device_pass(program, f"{_GPU}:0" if _GPU == "cuda" else _GPU)
        compiled = torch_tensorrt.dynamo.compile(moved, arg_inputs=tuple(args), kwarg_inputs=dict(kwargs), require_full_compilation=False,
                                                 truncate_double=False)
        run: Any = backend.flat(program, compiled)

        def call(*values: Any) -> Any:
            return run(*(_to_gpu(v) for v in values))

        self.run = call

    def __call__(self, *inputs: Any) -> Any:
        import torch

        return [r.cpu() if isinstance(r, torch.Tensor) else r for r in torch.utils._pytree.tree_leaves(self.run(*inputs))]


# trt.nptype knows no bfloat16 and no float8.
_TRT_DTYPES = {"FLOAT": "float32", "HALF": "float16", "BF16": "bfloat16", "INT8": "int8", "INT32": "int32", "INT64": "int64", "BOOL": "bool",
               "UINT8": "uint8", "FP8": "float8_e4m3fn"}


class TensorRT(backend.Backend):
    name = "tensorrt"
    summary = "TensorRT on an NVIDIA GPU, from an ONNX export, with one profile around the first call's sizes"
    packages = ("tensorrt", "onnx", "onnxscript", "torch")

    @classmethod
    def probe(cls) -> str:
        version = backend.packages_version(cls.packages)
        _nvidia_gpu()
        return version

    def build(self, program: Any, samples: list[tuple[Any, ...]]) -> None:
        import tensorrt as trt
        import torch

        exported: Any = torch.onnx.export(program, dynamo=True)
        with tempfile.TemporaryDirectory() as folder:
            exported.save(os.path.join(folder, "model.onnx"))
            with open(os.path.join(folder, "model.onnx"), "rb") as f:
                model = f.read()
        logger = trt.Logger(trt.Logger.ERROR)
        builder = trt.Builder(logger)
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
        parser = trt.OnnxParser(network, logger)
        if not parser.parse(model):
            reason = parser.get_error(0).desc() if parser.num_errors else "no reason given"
            raise _core.Unsupported(f"TensorRT does not take the model: {reason}")
        config = builder.create_builder_config()
        config.add_optimization_profile(self._profile(builder, network, samples))
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            raise _core.Unsupported("TensorRT builds no engine for the model")
        self.runtime = trt.Runtime(logger)  # must outlive its engine
        self.engine = self.runtime.deserialize_cuda_engine(plan)
        if self.engine is None:
            raise _core.Unsupported("TensorRT does not load the engine that it built")
        self.context = self.engine.create_execution_context()
        names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]
        self.inputs = [n for n in names if self.engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT]
        self.outputs = [n for n in names if n not in self.inputs]
        self.dtypes = {n: getattr(torch, _TRT_DTYPES[self.engine.get_tensor_dtype(n).name]) for n in names}

    @staticmethod
    def _profile(builder: Any, network: Any, samples: list[tuple[Any, ...]]) -> Any:
        """Sizes from 1 to four times the largest that was seen, best at those of the first call."""
        import torch

        profile = builder.create_optimization_profile()
        given = [[v for v in sample if isinstance(v, torch.Tensor)] for sample in samples]
        if network.num_inputs != len(given[0]):
            raise _core.Unsupported(f"TensorRT's network has {network.num_inputs} inputs, the model {len(given[0])} tensors")
        for i, v in enumerate(given[0]):
            port = network.get_input(i)
            sizes = tuple(port.shape)
            largest = [max(sample[i].shape[d] for sample in given) for d in range(v.dim())]
            least = tuple(1 if declared < 0 else n for declared, n in zip(sizes, v.shape))
            most = tuple(4 * n if declared < 0 else n for declared, n in zip(sizes, largest))
            profile.set_shape(port.name, least, tuple(v.shape), most)  # raises ValueError for sizes that it does not take
        return profile

    def __call__(self, *inputs: Any) -> Any:
        import torch

        stream = torch.cuda.current_stream()
        given = [_to_gpu(v).contiguous() for v in inputs if isinstance(v, torch.Tensor)]
        for name, v in zip(self.inputs, given):
            if not self.context.set_input_shape(name, tuple(v.shape)):
                raise _core.Unsupported(f"sizes {tuple(v.shape)} of '{name}' are outside those that the engine was built for")
            self.context.set_tensor_address(name, v.data_ptr())
        results = []
        for name in self.outputs:
            sizes = tuple(self.context.get_tensor_shape(name))
            if any(n < 0 for n in sizes):
                raise _core.Unsupported(f"the sizes of '{name}' depend on data")
            results.append(torch.empty(sizes, dtype=self.dtypes[name], device=_GPU))
            self.context.set_tensor_address(name, results[-1].data_ptr())
        if not self.context.execute_async_v3(stream.cuda_stream):
            raise RuntimeError("TensorRT's run failed")
        stream.synchronize()
        return [r.cpu() for r in results]


def _nvidia_gpu() -> None:
    if not any(os.path.exists(p) for p in ("/dev/nvidia0", "/dev/dxg")):
        raise _core.Unavailable("no NVIDIA GPU is here")


BUILT_IN: tuple[type[backend.Backend], ...] = (TorchEager, TorchCompile, AOTInductor, TorchAO, TorchTensorRT, TensorRT)
