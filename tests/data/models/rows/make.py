"""rows.onnx: a hundred times relu(x * w + b) over rows of 16 numbers, any number of rows; nine rows, and their answers in double."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(5)
nodes, weights, value = [], [], "x"
for i in range(100):
    weights.append(numpy_helper.from_array(rng.uniform(0.7, 1.1, 16).astype(np.float32), f"w{i}"))
    weights.append(numpy_helper.from_array(rng.uniform(-0.2, 0.3, 16).astype(np.float32), f"b{i}"))
    last = "y" if i == 99 else f"r{i}"
    nodes.append(helper.make_node("Mul", [value, f"w{i}"], [f"m{i}"]))
    nodes.append(helper.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"]))
    nodes.append(helper.make_node("Relu", [f"a{i}"], [last]))
    value = last
shape = ["batch", 16]
graph = helper.make_graph(nodes, "rows", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "rows.onnx")

x = rng.standard_normal((9, 16)).astype(np.float32)
y = x.astype(np.float64)
for w, b in zip(weights[::2], weights[1::2]):
    y = np.maximum(y * numpy_helper.to_array(w) + numpy_helper.to_array(b), 0)
np.savez("nine.npz", x=x)
np.savez("nine-expected.npz", y=y.astype(np.float32))
