"""Makes the cases of this folder: one small ONNX model for each form of a com.microsoft operator, with inputs and ONNX Runtime's answer.

    pip install onnx==1.22.0 onnxruntime==1.32.0 numpy
    python make.py

Writes NAME.onnx and NAME.npz (in0, in1, ..., out0, ...) and cases.txt: name, tolerance. Quantised results may differ by one step: ONNX Runtime
rounds through tables and fixed-point products."""
import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
rng = np.random.default_rng(5)
lines = []


def normal(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def case(name, op, inputs, outputs=1, weights=(), tolerance=2e-5, domain="com.microsoft", ask=None, **attributes):
    """inputs: arrays or None, in order; those at positions in `weights` are initializers. ask: the same in another form, for what ONNX Runtime
    has no CPU kernel for."""
    if ask:
        answers, _ = run(name, op, ask, outputs, (), domain, attributes)
        _, parts = run(name, op, inputs, outputs, weights, domain, attributes, compute=False)
    else:
        answers, parts = run(name, op, inputs, outputs, weights, domain, attributes)
    model, fed, wanted = parts
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(w, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                              for w, a in zip(wanted, answers))
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString())
    np.savez(HERE / f"{name}.npz", **fed, **dict(zip(wanted, answers)))
    lines.append(f"{name} {tolerance}")


def run(name, op, inputs, outputs, weights, domain, attributes, compute=True):
    names, graph_inputs, initializers, fed = [], [], [], {}
    for k, a in enumerate(inputs):
        names.append("" if a is None else f"in{k}")
        if a is None:
            continue
        if k in weights:
            initializers.append(numpy_helper.from_array(a, f"in{k}"))
        else:
            graph_inputs.append(helper.make_tensor_value_info(f"in{k}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape))
            fed[f"in{k}"] = a
    wanted = [f"out{k}" if outputs is None or isinstance(outputs, int) or k in outputs else "" for k in
              range(outputs if isinstance(outputs, int) else max(outputs) + 1)]
    node = helper.make_node(op, names, wanted, domain=domain, **attributes)
    probe = helper.make_graph([node], name, graph_inputs, [helper.make_empty_tensor_value_info(w) for w in wanted if w], initializers)
    model = helper.make_model(probe, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    wanted = [w for w in wanted if w]
    if not compute:
        return None, (model, fed, wanted)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, fed), (model, fed, wanted)


def activations():
    x, b = normal(2, 3, 8, scale=2), normal(8)
    case("gelu", "Gelu", [x])
    case("fast_gelu", "FastGelu", [x])
    case("fast_gelu_bias", "FastGelu", [x, b], weights=(1,))
    case("bias_gelu", "BiasGelu", [x, b], weights=(1,))
    case("quick_gelu", "QuickGelu", [x])
    case("quick_gelu_alpha", "QuickGelu", [x], alpha=0.7)


def norms():
    x, skip, gamma, beta, bias = normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8), normal(8)
    case("skip_layer_norm", "SkipLayerNormalization", [x, skip, gamma, beta, bias], (0, 3), (2, 3, 4), epsilon=1e-5)
    case("skip_layer_norm_plain", "SkipLayerNormalization", [x, skip, gamma], 1, (2,))
    case("skip_layer_norm_broadcast", "SkipLayerNormalization", [x, normal(1, 3, 8), gamma, beta], 1, (2, 3), epsilon=1e-3)
    case("skip_rms_norm", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], (0, 3), (2, 3), epsilon=1e-5)
    case("rms_norm", "SimplifiedLayerNormalization", [x, gamma], 1, (1,), domain="", epsilon=1e-5)
    case("rms_norm_axis", "SimplifiedLayerNormalization", [x, normal(3, 8)], 1, (1,), domain="", axis=1, epsilon=1e-2)
    ids, segments = rng.integers(0, 9, (2, 4)).astype(np.int32), rng.integers(0, 2, (2, 4)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    tables = [normal(9, 8), normal(6, 8), normal(2, 8)]
    case("embed_layer_norm", "EmbedLayerNormalization", [ids, segments, *tables, gamma, beta, mask], 2, (2, 3, 4, 5, 6))
    case("embed_layer_norm_positions", "EmbedLayerNormalization",
         [ids, None, tables[0], tables[1], None, gamma, beta, None, np.array([[3, 2, 1, 0], [5, 4, 3, 2]], np.int32)], (0, 2), (2, 3, 5, 6),
         epsilon=1e-4)


def rotary():
    angles = np.outer(np.arange(10), 1 / 10000 ** (np.arange(4) / 4))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    x, places = normal(2, 3, 24), np.array([[0, 1, 2], [5, 6, 9]], np.int64)
    case("rotary", "RotaryEmbedding", [x, places, cos, sin], 1, (2, 3))
    case("rotary_interleaved", "RotaryEmbedding", [x, places, cos, sin], 1, (2, 3), interleaved=1)
    case("rotary_offset", "RotaryEmbedding", [x, np.array([4], np.int64), cos, sin], 1, (2, 3))
    case("rotary_heads", "RotaryEmbedding", [normal(2, 3, 4, 8), np.array([[0, 1, 2, 3], [1, 2, 3, 4]], np.int64), cos, sin], 1, (2, 3))
    case("rotary_part", "RotaryEmbedding", [x, places, cos[:, :2], sin[:, :2]], 1, (2, 3), rotary_embedding_dim=4, num_heads=3)


def products():
    case("fused_matmul", "FusedMatMul", [normal(2, 4, 3), normal(2, 4, 5)], transA=1, alpha=0.5)
    case("fused_matmul_b", "FusedMatMul", [normal(2, 3, 4), normal(2, 5, 4)], transB=1)
    case("fused_matmul_batch", "FusedMatMul", [normal(3, 2, 4), normal(4, 2, 5)], transBatchA=1, transBatchB=1)
    image, kernel = normal(1, 2, 5, 5), normal(3, 2, 3, 3)
    case("fused_conv", "FusedConv", [image, kernel, normal(3)], 1, (1, 2), kernel_shape=[3, 3], pads=[1, 1, 1, 1], activation="Relu")
    case("fused_conv_sum", "FusedConv", [image, kernel, normal(3), normal(1, 3, 3, 3)], 1, (1, 2), kernel_shape=[3, 3], activation="LeakyRelu",
         activation_params=[0.2])
    case("fused_conv_clip", "FusedConv", [image, kernel], 1, (1,), kernel_shape=[3, 3], strides=[2, 2], activation="Clip",
         activation_params=[-0.5, 0.5])
    case("fused_gemm", "FusedGemm", [normal(3, 4), normal(5, 4), normal(5)], 1, (1, 2), transB=1, activation="Tanh")


def n_bits():
    for bits, k, block in ((4, 32, 16), (4, 40, 16), (8, 32, 16)):
        blocks, n = -(-k // block), 6
        packed = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
        scales = normal(n * blocks, scale=0.1)
        zeros = rng.integers(0, 256, (n * (-(-blocks * bits // 8)),)).astype(np.uint8)
        common = dict(K=k, N=n, bits=bits, block_size=block)
        a = normal(2, 3, k)
        case(f"n_bits_{bits}_{k}", "MatMulNBits", [a, packed, scales], 1, (1, 2), 1e-4, **common)
        case(f"n_bits_{bits}_{k}_zeros", "MatMulNBits", [a, packed, scales, zeros], 1, (1, 2, 3), 1e-4, **common)
    packed, scales = rng.integers(0, 256, (6, 2, 8)).astype(np.uint8), normal(12, scale=0.1)
    case("n_bits_bias", "MatMulNBits", [normal(3, 32), packed, scales, None, None, normal(6)], 1, (1, 2, 5), 1e-4, K=32, N=6, bits=4, block_size=16)
    case("n_bits_float_zeros", "MatMulNBits", [normal(3, 32), packed, scales, normal(12) + 8], 1, (1, 2, 3), 1e-4, K=32, N=6, bits=4,
         block_size=16)


def attention():
    x, weight, bias = normal(2, 4, 8), normal(8, 24, scale=0.4), normal(24)
    case("attention", "Attention", [x, weight, bias], 1, (1, 2), num_heads=2)
    case("attention_causal", "Attention", [x, weight, bias], 1, (1, 2), num_heads=2, unidirectional=1)
    case("attention_scale", "Attention", [x, weight, bias], 1, (1, 2), num_heads=4, scale=0.3)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    case("attention_mask", "Attention", [x, weight, bias, mask], 1, (1, 2), num_heads=2)
    case("attention_lengths", "Attention", [x, weight, bias, np.array([4, 2], np.int32)], 1, (1, 2), num_heads=2)
    case("attention_mask3", "Attention", [x, weight, bias, np.tril(np.ones((2, 4, 4), np.int32))], 1, (1, 2), num_heads=2)
    case("attention_past", "Attention", [x, weight, bias, None, normal(2, 2, 2, 3, 4)], 2, (1, 2), num_heads=2, unidirectional=1)
    case("attention_bias", "Attention", [x, weight, bias, None, None, normal(2, 2, 4, 4)], 1, (1, 2), num_heads=2)
    case("attention_sizes", "Attention", [x, normal(8, 20, scale=0.4), normal(20)], 1, (1, 2), num_heads=2, qkv_hidden_sizes=[8, 8, 4])
    q, k, v = normal(2, 4, 8), normal(2, 5, 8), normal(2, 5, 8)
    case("mha", "MultiHeadAttention", [q, k, v], num_heads=2)
    case("mha_bias", "MultiHeadAttention", [q, k, v, normal(24)], 1, (3,), num_heads=2)
    case("mha_mask", "MultiHeadAttention", [q, k, v, None, np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)], num_heads=2)
    case("mha_lengths", "MultiHeadAttention", [q, k, v, None, np.array([3, 5], np.int32)], num_heads=2)
    case("mha_attention_bias", "MultiHeadAttention", [q, k, v, None, None, normal(2, 2, 4, 5)], num_heads=2, scale=0.5)
    k4 = normal(2, 4, 8)
    packed = np.stack([q.reshape(2, 4, 2, 4), k4.reshape(2, 4, 2, 4), k4.reshape(2, 4, 2, 4) + 1], 3)
    case("mha_packed", "MultiHeadAttention", [packed], num_heads=2, ask=[q, k4, k4 + 1])
    packed = np.stack([k.reshape(2, 5, 2, 4), v.reshape(2, 5, 2, 4)], 3)
    case("mha_packed_kv", "MultiHeadAttention", [q, packed], num_heads=2, ask=[q, k, v])
    case("mha_past", "MultiHeadAttention", [q, normal(2, 4, 8), normal(2, 4, 8), None, None, None, normal(2, 2, 3, 4), normal(2, 2, 3, 4)], 3,
         num_heads=2, unidirectional=1)
    case("mha_cross", "MultiHeadAttention", [q, normal(2, 2, 5, 4), normal(2, 2, 5, 4)], num_heads=2)


def grouped():
    def run(name, batch, length, past, lengths, total, packed=False, weights=(), **attributes):
        q, k, v = normal(batch, length, 64), normal(batch, length, 32), normal(batch, length, 32)
        inputs = [np.concatenate([q, k, v], -1), None, None] if packed else [q, k, v]
        history = [normal(batch, 2, past, 16), normal(batch, 2, past, 16)]
        angles = np.outer(np.arange(16), 1 / 100 ** (np.arange(8) / 8))
        caches = [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)] if attributes.get("do_rotary") else []
        case(name, "GroupQueryAttention", inputs + history + [np.array(lengths, np.int32), np.array(total, np.int32)] + caches, 3, (7, 8),
             num_heads=4, kv_num_heads=2, **attributes)

    run("gqa_prompt", 2, 5, 0, [4, 4], 5)
    run("gqa_next", 2, 1, 4, [4, 4], 5)
    run("gqa_chunk", 1, 3, 4, [6], 7)
    run("gqa_rotary", 1, 1, 4, [4], 5, do_rotary=1)
    run("gqa_rotary_prompt", 1, 5, 0, [4], 5, do_rotary=1, rotary_interleaved=1)
    run("gqa_packed", 1, 5, 0, [4], 5, packed=True, do_rotary=1)
    run("gqa_window", 1, 6, 0, [5], 6, local_window_size=3)
    run("gqa_scale", 1, 5, 0, [4], 5, scale=0.2, softcap=1.5)


def quantised():
    def q(*shape, signed=False):
        return rng.integers(-128, 128, shape).astype(np.int8) if signed else rng.integers(0, 256, shape).astype(np.uint8)

    def f(v):
        return np.array(v, np.float32)

    for signed in (False, True):
        kind, tail = (np.int8, "_s8") if signed else (np.uint8, "")
        z = lambda v: np.array(v - 128 if signed else v, kind)
        w = (1, 2, 4, 5, 6, 7)
        case("qlinear_add" + tail, "QLinearAdd", [q(2, 3, 4, signed=signed), f(0.1), z(120), q(2, 3, 4, signed=signed), f(0.2), z(130), f(0.25), z(100)],
             1, w, 1)
        case("qlinear_mul" + tail, "QLinearMul", [q(2, 3, 4, signed=signed), f(0.1), z(120), q(4, signed=signed), f(0.2), z(130), f(1.5), z(100)], 1, w, 1)
        case("qlinear_sigmoid" + tail, "QLinearSigmoid", [q(2, 9, signed=signed), f(0.05), z(128), f(1 / 256), z(0)], 1, (1, 2, 3, 4), 1)
        case("qlinear_leaky" + tail, "QLinearLeakyRelu", [q(2, 9, signed=signed), f(0.05), z(128), f(0.04), z(90)], 1, (1, 2, 3, 4), 1, alpha=0.2)
        case("qlinear_global" + tail, "QLinearGlobalAveragePool", [q(2, 3, 4, 5, signed=signed), f(0.05), z(128), f(0.03), z(90)], 1, (1, 2, 3, 4), 1)
        case("qlinear_pool" + tail, "QLinearAveragePool", [q(1, 3, 5, 5, signed=signed), f(0.05), z(128), f(0.04), z(90)], 1, (1, 2, 3, 4), 1,
             kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    case("qlinear_softmax", "QLinearSoftmax", [q(2, 9), f(0.05), np.uint8(128), f(1 / 256), np.uint8(0)], 1, (1, 2, 3, 4), 1, axis=-1, opset=13)
    case("qlinear_concat", "QLinearConcat", [f(0.1), np.uint8(100), q(2, 3), f(0.05), np.uint8(128), q(2, 2), f(0.2), np.uint8(90)], 1,
         (0, 1, 3, 4, 6, 7), 1, axis=1)
    b = q(4, 5, signed=True) // 2  # ONNX Runtime's products of u8 and s8 saturate on CPUs without VNNI
    case("dynamic_quantize_matmul", "DynamicQuantizeMatMul", [normal(3, 4), b, f(0.02), np.int8(0), normal(5)], 1, (1, 2, 3, 4), 1e-4)
    case("dynamic_quantize_matmul_columns", "DynamicQuantizeMatMul", [normal(2, 3, 4), b, np.abs(normal(5)) * 0.02 + 0.01, np.zeros(5, np.int8)], 1,
         (1, 2, 3), 1e-4)
    case("matmul_integer_to_float", "MatMulIntegerToFloat", [q(3, 4), b, f(0.03), f(0.02), np.uint8(120), np.int8(3), normal(5)], 1,
         (1, 2, 3, 4, 5, 6), 1e-4)
    case("matmul_integer_to_float_columns", "MatMulIntegerToFloat", [q(2, 3, 4), b, f(0.03), np.abs(normal(5)) * 0.02 + 0.01], 1, (1, 2, 3), 1e-4)
    case("q_attention", "QAttention", [q(2, 4, 8), q(8, 24, signed=True) // 2, normal(24), f(0.02), f(0.01), np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32),
                                       np.uint8(128), np.int8(0)], 1, (1, 2, 3, 4, 6, 7), 1e-4, num_heads=2)
    case("ms_quantize", "QuantizeLinear", [normal(3, 4), f(0.02), np.uint8(128)], 1, (1, 2), 1)
    case("ms_dequantize", "DequantizeLinear", [q(3, 4), f(0.02), np.uint8(128)], 1, (1, 2))


for make in (activations, norms, rotary, products, n_bits, attention, grouped, quantised):
    make()
(HERE / "cases.txt").write_text("\n".join(lines) + "\n")
