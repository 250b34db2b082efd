"""TensorRT and Torch-TensorRT as their documentation has them, without a GPU: argument names and kinds are those of the real classes, and the engine
runs its ONNX model with ONNX Runtime on the memory whose addresses it was given. So what is tested is how the guests use them.

Documentation: TensorRT 10 Python API (Builder, INetworkDefinition, OnnxParser, IOptimizationProfile, ICudaEngine, IExecutionContext);
Torch-TensorRT 2.8, torch_tensorrt.dynamo.compile."""
import contextlib
import ctypes
import enum
import types


class Severity(enum.IntEnum):
    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)


class Logger:
    ERROR, WARNING = Severity.ERROR, Severity.WARNING

    def __init__(self, min_severity=Severity.WARNING):
        assert isinstance(min_severity, Severity)


class NetworkDefinitionCreationFlag(enum.IntEnum):
    EXPLICIT_BATCH, STRONGLY_TYPED = range(2)


class TensorIOMode(enum.Enum):
    NONE, INPUT, OUTPUT = range(3)


class DataType(enum.Enum):
    FLOAT, HALF, INT8, INT32, BOOL, UINT8, FP8, BF16, INT64, INT4 = range(10)


_ONNX = {1: DataType.FLOAT, 10: DataType.HALF, 3: DataType.INT8, 6: DataType.INT32, 9: DataType.BOOL, 2: DataType.UINT8, 16: DataType.BF16, 7: DataType.INT64}


class ITensor:
    def __init__(self, value):
        kind = value.type.tensor_type
        self.name, self.dtype = value.name, _ONNX[kind.elem_type]
        self.shape = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim)


class INetworkDefinition:
    def __init__(self, flags):
        self.flags, self.model, self.inputs, self.outputs = flags, None, [], []

    @property
    def num_inputs(self):
        return len(self.inputs)

    def get_input(self, index):
        return self.inputs[index]


class IOptimizationProfile:
    def __init__(self):
        self.ranges = {}

    def set_shape(self, input, min, opt, max):
        if not all(a <= b <= c for a, b, c in zip(min, opt, max)):
            raise ValueError("inconsistent dimensions")
        self.ranges[input] = min, opt, max


class IBuilderConfig:
    def __init__(self):
        self.profiles = []

    def add_optimization_profile(self, profile):
        assert isinstance(profile, IOptimizationProfile)
        self.profiles.append(profile)
        return len(self.profiles) - 1


class Builder:
    def __init__(self, logger):
        assert isinstance(logger, Logger)

    def create_network(self, flags=0):
        return INetworkDefinition(flags)

    def create_builder_config(self):
        return IBuilderConfig()

    def create_optimization_profile(self):
        return IOptimizationProfile()

    def build_serialized_network(self, network, config):
        dynamic = [t.name for t in network.inputs if -1 in t.shape]
        if network.model is None or any(name not in config.profiles[0].ranges for name in dynamic):
            return None
        return network.model, network.inputs, network.outputs, config.profiles[0].ranges


class OnnxParser:
    def __init__(self, network, logger):
        assert isinstance(network, INetworkDefinition) and network.flags & (1 << int(NetworkDefinitionCreationFlag.STRONGLY_TYPED))
        self.network, self.errors = network, []

    @property
    def num_errors(self):
        return len(self.errors)

    def get_error(self, index):
        return types.SimpleNamespace(desc=lambda: self.errors[index])

    def parse(self, model, path=None):
        import onnx

        graph = onnx.load_from_string(model).graph
        strange = [n.op_type for n in graph.node if n.op_type == "NonZero"]
        if strange:
            self.errors = [f"no importer for {strange[0]}"]
            return False
        self.network.model = model
        self.network.inputs, self.network.outputs = [ITensor(v) for v in graph.input], [ITensor(v) for v in graph.output]
        return True


class ICudaEngine:
    def __init__(self, plan):
        self.model, self.inputs, self.outputs, self.ranges = plan
        self._all = {t.name: t for t in (*self.inputs, *self.outputs)}

    @property
    def num_io_tensors(self):
        return len(self._all)

    def get_tensor_name(self, index):
        return list(self._all)[index]

    def get_tensor_mode(self, name):
        return TensorIOMode.INPUT if any(t.name == name for t in self.inputs) else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name):
        return self._all[name].dtype

    def create_execution_context(self):
        return IExecutionContext(self)


class IExecutionContext:
    def __init__(self, engine):
        import onnxruntime

        self.engine, self.shapes, self.addresses = engine, {}, {}
        self.session = onnxruntime.InferenceSession(engine.model, providers=["CPUExecutionProvider"])

    def set_input_shape(self, name, shape):
        low, _, high = self.engine.ranges[name]
        if not all(a <= n <= b for a, n, b in zip(low, shape, high)):
            return False
        self.shapes[name] = tuple(shape)
        return True

    def set_tensor_address(self, name, memory):
        assert isinstance(memory, int)
        self.addresses[name] = memory
        return True

    def _run(self):
        import numpy as np

        feeds = {}
        for t in self.engine.inputs:
            dtype = np.dtype({"FLOAT": "float32", "HALF": "float16", "INT64": "int64", "INT32": "int32", "BOOL": "bool"}[t.dtype.name])
            count = int(np.prod(self.shapes[t.name]))
            address = self.addresses.get(t.name)
            data = bytes((ctypes.c_char * (count * dtype.itemsize)).from_address(address)) if address else bytes(count * dtype.itemsize)
            feeds[t.name] = np.frombuffer(data, dtype).reshape(self.shapes[t.name])
        return dict(zip((o.name for o in self.engine.outputs), self.session.run(None, feeds)))

    def get_tensor_shape(self, name):
        return self._run()[name].shape

    def execute_async_v3(self, stream_handle):
        assert isinstance(stream_handle, int)
        for name, value in self._run().items():
            data = value.tobytes()
            ctypes.memmove(self.addresses[name], data, len(data))
        return True


class Runtime:
    def __init__(self, logger):
        assert isinstance(logger, Logger)

    def deserialize_cuda_engine(self, serialized_engine):
        return ICudaEngine(serialized_engine)


def tensorrt():
    module = types.ModuleType("tensorrt")
    for name in ("Logger", "Builder", "OnnxParser", "Runtime", "NetworkDefinitionCreationFlag", "TensorIOMode", "DataType"):
        setattr(module, name, globals()[name])
    return module


def torch_tensorrt(seen):
    """seen: a dict that gets what compile was given."""
    module = types.ModuleType("torch_tensorrt")

    def compile(exported_program, inputs=None, *, arg_inputs=None, kwarg_inputs=None, device=None, require_full_compilation=False, truncate_double=False,
                enabled_precisions=None, min_block_size=5):
        assert (inputs is None) != (arg_inputs is None), "one of inputs and arg_inputs"
        seen.update(args=arg_inputs, kwargs=kwarg_inputs)
        compiled = exported_program.module(check_guards=False)
        compiled(*arg_inputs, **(kwarg_inputs or {}))
        return compiled

    module.dynamo = types.SimpleNamespace(compile=compile)
    return module


@contextlib.contextmanager
def stream(torch, patch):
    patch.setattr(torch.cuda, "current_stream", lambda: types.SimpleNamespace(cuda_stream=0, synchronize=lambda: None))
    yield
