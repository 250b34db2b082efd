#!/usr/bin/env python3
"""Writes graphs/*.txt and cases.json: faults that users of other tools met, as small programs with the right answer. Standard library only.

Right answers are the operator's definition, worked out by hand or by the few lines of Python beside the case; none comes from ait."""
import json
import math
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
CASES, GRAPHS = [], {}
CLOSE = {"rtol": 1.3e-6, "atol": 1e-5}


def shape_of(data):
    shape = []
    while isinstance(data, list):
        shape.append(len(data))
        data = data[0] if data else None
    return shape


def leaf(dtype, data, shape=None, compare=None, strides=None):
    x = {"dtype": dtype, "shape": shape if shape is not None else shape_of(data), "data": data}
    if compare is not None:
        x["compare"] = compare
    if strides:
        x["strides"] = strides
    return x


def graph(name, text):
    GRAPHS[name] = f'graph "{name}" raw\n' + text.strip() + "\n"


def case(fault, name, model, steps, expect="match", why=""):
    """steps: (inputs, outputs), each a list of leaves."""
    CASES.append({"name": f"{fault}/{name}", "model": f"graphs/{model}.txt", "expect": expect, "why": why, "tags": [fault],
                  "steps": [{"inputs": i, "outputs": o} for i, o in steps]})


def ones(*shape):
    return [ones(*shape[1:]) for _ in range(shape[0])] if shape else 1.0


def f32(data, shape=None, strides=None):
    return leaf("float32", data, shape, None, strides)


def near(data, shape=None, dtype="float32", compare=None):
    return leaf(dtype, data, shape, compare or CLOSE)


def exactly(data, shape=None, dtype="float32"):
    return leaf(dtype, data, shape, "exact")


# ---- R05: a row of attention with every key masked
IDENTITY, V = [[1, 0], [0, 1]], [[1, 2], [3, 4]]
for dtype, tolerance in (("float32", CLOSE), ("bfloat16", {"rtol": 0.016, "atol": 1e-2}), ("float16", {"rtol": 1e-3, "atol": 1e-3})):
    graph(f"attention_{dtype}", f"""
input %q: {dtype}[1, 1, 2, 2] user 0 "q"
input %k: {dtype}[1, 1, 2, 2] user 1 "k"
input %v: {dtype}[1, 1, 2, 2] user 2 "v"
input %m: bool[2, 2] user 3 "m"
%y: {dtype}[1, 1, 2, 2] = aten.scaled_dot_product_attention(%q, %k, %v, %m)
output user 0 "y" = %y""")
    qkv = [leaf(dtype, [[x]]) for x in (IDENTITY, IDENTITY, V)]
    case("R05", f"masked-row-{dtype}", f"attention_{dtype}", [
        (qkv + [leaf("bool", [[1, 1], [0, 0]])], [leaf(dtype, [[[[1.6604769, 2.6604769], [0, 0]]]], compare=tolerance)]),
        (qkv + [leaf("bool", [[1, 0], [1, 1]])], [leaf(dtype, [[[[1, 2], [2.3395231, 3.3395231]]]], compare=tolerance)])],
        why="PyTorch's fused operator gives zeros")
graph("attention_by_parts", """
input %q: float32[1, 1, 2, 2] user 0 "q"
input %k: float32[1, 1, 2, 2] user 1 "k"
input %v: float32[1, 1, 2, 2] user 2 "v"
input %m: bool[2, 2] user 3 "m"
%kt: float32[1, 1, 2, 2] = aten.transpose.int(%k, 2, 3)
%s: float32[1, 1, 2, 2] = aten.matmul(%q, %kt)
%t: float32[1, 1, 2, 2] = aten.mul.Tensor(%s, 0.7071067811865475)
%u: float32[1, 1, 2, 2] = aten.where.ScalarOther(%m, %t, -inf)
%p: float32[1, 1, 2, 2] = aten.softmax.int(%u, -1)
%y: float32[1, 1, 2, 2] = aten.matmul(%p, %v)
output user 0 "y" = %y""")
case("R05", "by-parts", "attention_by_parts", [
    ([f32([[x]]) for x in (IDENTITY, IDENTITY, V)] + [leaf("bool", [[1, 1], [0, 0]])],
     [near([[[[1.6604769, 2.6604769], ["nan", "nan"]]]])])], why="a softmax of -inf alone is NaN, fused or not: what the graph says")

# ---- R07: products of bytes must not saturate
graph("integer_mm", """
symbol s0 [1, 64] hint 4 backed
input %a: int32[1, s0] user 0 "a"
input %b: int32[s0, 3] user 1 "b"
%y: int32[1, 3] = aten.mm(%a, %b)
output user 0 "y" = %y""")
case("R07", "k-times-32385", "integer_mm", [
    ([leaf("int32", [[255] * k]), leaf("int32", [[127] * 3] * k)], [exactly([[k * 32385] * 3], dtype="int32")]) for k in (1, 2, 3, 4, 64)])

# ---- R09: strides of the caller
graph("linear", """
symbol s0 [0, 100000] hint 2 backed
input %x: float32[s0, 3] user 0 "x"
input %w: float32[2, 3] user 1 "w"
%y: float32[s0, 2] = aten.linear(%x, %w)
output user 0 "y" = %y""")
W = [[1, 2, 3], [4, 5, 6]]
case("R09", "column-major", "linear", [([f32([[1, 1, 1], [1, 0, 2]], strides=[1, 2]), f32(W, strides=[1, 2])], [exactly([[6, 15], [7, 16]])])])
case("R09", "gaps", "linear", [([f32([[1, 1, 1], [1, 0, 2]], strides=[11, 3]), f32(W, strides=[17, 5])], [exactly([[6, 15], [7, 16]])])])
case("R09", "one-row-for-all", "linear", [([f32([[1, 1, 1]] * 4, strides=[0, 1]), f32(W)], [exactly([[6, 15]] * 4)])], why="stride 0")
graph("conv", """
symbol s0 [0, 1000] hint 1 backed
input %x: float32[s0, 2, 3, 3] user 0 "x"
input %w: float32[1, 2, 2, 2] user 1 "w"
%y: float32[s0, 1, 2, 2] = aten.conv2d(%x, %w)
output user 0 "y" = %y""")
IMAGE = [[[[float(9 * c + 3 * h + w) for w in range(3)] for h in range(3)] for c in range(2)]]
KERNEL = [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]


def conv(image, kernel):
    return [[[sum(kernel[0][c][i][j] * image[0][c][h + i][w + j] for c in range(2) for i in range(2) for j in range(2))
              for w in range(2)] for h in range(2)]]


case("R09", "channels-last", "conv", [([f32(IMAGE, strides=[18, 1, 6, 2]), f32(KERNEL)], [exactly([conv(IMAGE, KERNEL)])])])

# ---- R10: a dynamic first dimension, any order in one session
graph("gemm_reshape", """
symbol s0 [1, 100000] hint 10 backed
guard 10*FloorDiv(s0, 10) == s0 text "s0 % 10 == 0"
input %a: float32[s0, 4] user 0 "a"
input %b: float32[4, 3] user 1 "b"
input %c: float32[3] user 2 "c"
%g: float32[s0, 3] = aten.addmm(%c, %a, %b)
%y: float32[FloorDiv(s0, 10), 10, 3] = aten.view(%g, [-1, 10, 3])
output user 0 "y" = %y""")
B, C = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]], [0.5, -0.5, 1]


def gemm(rows):
    return [[sum(r[k] * B[k][j] for k in range(4)) + C[j] for j in range(3)] for r in rows]


def rows_of(m):
    return [[(7 * i + k) % 5 - 2 for k in range(4)] for i in range(m)]


case("R10", "rows-10-20-30-10", "gemm_reshape", [
    ([f32(rows_of(m)), f32(B), f32(C)], [exactly([gemm(rows_of(m))[i:i + 10] for i in range(0, m, 10)])]) for m in (10, 20, 30, 10)])
case("R10", "rows-15", "gemm_reshape", [([f32(rows_of(15)), f32(B), f32(C)], [])], expect="error", why="the guard says a multiple of ten")

# ---- R12: what was declared is checked, at both ends and by guards
graph("pairs", """
symbol s0 [2, 64] hint 6 backed
guard Mod(s0, 2) == 0 text "s0 % 2 == 0"
input %x: float32[s0] user 0 "x"
%p: float32[FloorDiv(s0, 2), 2] = aten.view(%x, [-1, 2])
%y: float32[FloorDiv(s0, 2)] = aten.sum.dim_IntList(%p, [1])
output user 0 "y" = %y""")
case("R12", "sizes-2-6-64", "pairs", [([f32(list(range(n)))], [exactly([float(i + i + 1) for i in range(0, n, 2)])])
                                      for n in (2, 6, 64, 6)])
for n in (0, 1, 65, 7):
    case("R12", f"size-{n}", "pairs", [([f32(list(range(n)), [n])], [])], expect="error", why="outside [2, 64], or odd")

# ---- R13: tensors without elements
graph("addmm", """
symbol s0 [0, 1000] hint 2 backed
symbol s1 [0, 1000] hint 2 backed
input %a: float32[s0, s1] user 0 "a"
input %b: float32[s1, 3] user 1 "b"
input %c: float32[3] user 2 "c"
%y: float32[s0, 3] = aten.addmm(%c, %a, %b)
output user 0 "y" = %y""")
case("R13", "addmm", "addmm", [
    ([f32([], [0, 2]), f32([[1, 2, 3], [4, 5, 6]]), f32([1, 2, 3])], [exactly([], [0, 3])]),
    ([f32([], [2, 0]), f32([], [0, 3]), f32([1, 2, 3])], [exactly([[1, 2, 3], [1, 2, 3]])]),
    ([f32([], [0, 0]), f32([], [0, 3]), f32([1, 2, 3])], [exactly([], [0, 3])])])
graph("bmm", """
symbol s0 [0, 1000] hint 2 backed
input %a: float32[s0, 4, 8] user 0 "a"
input %b: float32[s0, 8, 4] user 1 "b"
%y: float32[s0, 4, 4] = aten.bmm(%a, %b)
output user 0 "y" = %y""")
case("R13", "bmm", "bmm", [([f32([], [0, 4, 8]), f32([], [0, 8, 4])], [exactly([], [0, 4, 4])])])
case("R13", "conv", "conv", [([f32([], [0, 2, 3, 3]), f32(KERNEL)], [exactly([], [0, 1, 2, 2])]), ([f32(IMAGE), f32(KERNEL)], [exactly([conv(IMAGE, KERNEL)])])])
graph("reduce", """
symbol s0 [0, 1000] hint 2 backed
input %x: float32[3, s0] user 0 "x"
%s: float32[3] = aten.sum.dim_IntList(%x, [1])
%m: float32[3] = aten.mean.dim(%x, [1])
%p: float32[3] = aten.prod.dim_int(%x, 1)
%a: bool[3] = aten.any.dim(%x, 1)
output user 0 "s" = %s
output user 1 "m" = %m
output user 2 "p" = %p
output user 3 "a" = %a""")
case("R13", "reduce", "reduce", [([f32([], [3, 0])], [exactly([0, 0, 0]), exactly(["nan"] * 3), exactly([1, 1, 1]), exactly([0, 0, 0], dtype="bool")])])
for name, call in (("amax", "aten.amax(%x, [1])"), ("argmax", "aten.argmax(%x, 1)"), ("min", None)):
    result = "float32[3]" if name == "amax" else "int64[3]"
    line = f"%y: {result} = {call}" if call else "%y: float32[3], %i: int64[3] = aten.min.dim(%x, 1)"
    graph(f"reduce_{name}", f"""
symbol s0 [0, 1000] hint 2 backed
input %x: float32[3, s0] user 0 "x"
{line}
output user 0 "y" = %y""")
    case("R13", f"{name}-of-nothing", f"reduce_{name}", [([f32([], [3, 0])], [])], expect="error", why="there is no largest of nothing")
graph("shapes", """
symbol s0 [0, 1000] hint 2 backed
input %x: float32[s0, 3] user 0 "x"
%p: float32[s0, 3] = aten.softmax.int(%x, -1)
%q: float32[s0, 3] = aten.softmax.int(%x, 0)
%c: float32[2*s0, 3] = aten.cat([%x, %p])
%r: float32[0, 3] = aten.repeat(%x, [0, 1])
%t: float32[3, s0] = aten.t(%x)
output user 0 "p" = %p
output user 1 "q" = %q
output user 2 "c" = %c
output user 3 "r" = %r
output user 4 "t" = %t""")
EMPTY = exactly([], [0, 3])
case("R13", "shapes", "shapes", [([f32([], [0, 3])], [EMPTY, EMPTY, EMPTY, EMPTY, exactly([], [3, 0])])])
graph("cat", """
symbol s0 [0, 1000] hint 2 backed
input %x: float32[s0, 3] user 0 "x"
input %y: float32[2, 3] user 1 "y"
%c: float32[s0 + 2, 3] = aten.cat([%x, %y])
output user 0 "c" = %c""")
case("R13", "cat", "cat", [([f32([], [0, 3]), f32([[1, 2, 3], [4, 5, 6]])], [exactly([[1, 2, 3], [4, 5, 6]])])])
graph("nonzero", """
symbol u0 [0, 1000]
input %m: bool[4] user 0 "m"
input %x: float32[4, 2] user 1 "x"
%n: int64[u0, 1] = aten.nonzero(%m)
%i: int64[u0] = aten.squeeze.dim(%n, 1)
%y: float32[u0, 2] = aten.index_select(%x, 0, %i)
output user 0 "y" = %y""")
ROWS = [[1, 2], [3, 4], [5, 6], [7, 8]]
case("R13", "nonzero", "nonzero", [([leaf("bool", [0, 0, 0, 0]), f32(ROWS)], [exactly([], [0, 2])]),
                                   ([leaf("bool", [0, 1, 0, 1]), f32(ROWS)], [exactly([[3, 4], [7, 8]])])])

# ---- R14: one permuted value, two uses
graph("permuted", """
input %x: float32[2, 3, 5] user 0 "x"
%p: float32[2, 5, 3] = aten.permute(%x, [0, 2, 1])
%a: float32[2, 15] = aten.reshape(%p, [2, -1])
%b: float32[2, 3] = aten.sum.dim_IntList(%p, [1])
output user 0 "a" = %a
output user 1 "b" = %b""")
X = [[[float(15 * i + 5 * j + k) for k in range(5)] for j in range(3)] for i in range(2)]
case("R14", "permute-reshape-sum", "permuted", [([f32(X)], [exactly([[X[i][j][k] for k in range(5) for j in range(3)] for i in range(2)]),
                                                              exactly([[sum(X[i][j]) for j in range(3)] for i in range(2)])])])

# ---- S01 … S08: fusions
graph("mm_broad", """
input %a: float32[3, 3] user 0 "a"
input %b: float32[3, 1] user 1 "b"
input %c: float32[1, 4] user 2 "c"
%m: float32[3, 1] = aten.mm(%a, %b)
%y: float32[3, 4] = aten.add.Tensor(%m, %c)
output user 0 "y" = %y""")
case("S01", "addend-is-broader", "mm_broad", [([f32([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), f32([[1], [1], [1]]), f32([[10, 20, 30, 40]])],
                                               [exactly([[s + c for c in (10, 20, 30, 40)] for s in (6, 15, 24)])])])
graph("sum_bias", """
input %x: float32[3, 2] user 0 "x"
input %w: float32[3, 2] user 1 "w"
input %b: float32[3] user 2 "b"
%m: float32[3, 2] = aten.mul.Tensor(%x, %w)
%s: float32[3] = aten.sum.dim_IntList(%m, [-1])
%y: float32[3] = aten.add.Tensor(%s, %b)
output user 0 "y" = %y""")
case("S02", "sum-plus-bias", "sum_bias", [([f32([[1, 2], [3, 4], [5, 6]]), f32([[1, 0], [0, 1], [1, 1]]), f32([10, 20, 30])], [exactly([11, 24, 41])])])
for kind in ("none", "tanh"):
    graph(f"gelu_{kind}", f"""
input %x: float32[5] user 0 "x"
%y: float32[5] = aten.gelu(%x, approximate="{kind}")
output user 0 "y" = %y""")
POINTS = [-2, -1, 1, 2, 2.7]
case("S03", "erf", "gelu_none", [([f32(POINTS)], [near([0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in POINTS])])])
case("S03", "tanh", "gelu_tanh", [([f32(POINTS)], [near([0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) for x in POINTS])])])
graph("gelu_by_parts", """
input %x: float32[5] user 0 "x"
%a: float32[5] = aten.div.Tensor(%x, 1.4142135623730951)
%b: float32[5] = aten.erf(%a)
%c: float32[5] = aten.add.Tensor(%b, 1)
%d: float32[5] = aten.mul.Tensor(%x, 0.5)
%y: float32[5] = aten.mul.Tensor(%d, %c)
output user 0 "y" = %y""")
case("S03", "erf-by-parts", "gelu_by_parts", [([f32(POINTS)], [near([0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in POINTS])])])
graph("conv_transpose", """
input %x: float32[1, 1, 3] user 0 "x"
input %w: float32[1, 1, 3] user 1 "w"
%y: float32[1, 1, 6] = aten.conv_transpose1d(%x, %w, stride=[2], padding=[1], output_padding=[1])
output user 0 "y" = %y""")
case("S04", "output-size", "conv_transpose", [([f32([[[1, 1, 1]]]), f32([[[1, 1, 1]]])], [exactly([[[1, 2, 1, 2, 1, 1]]])])])
graph("nearest", """
input %x: float32[1, 1, 26] user 0 "x"
%y: float32[1, 1, 64] = aten.upsample_nearest1d(%x, [64])
output user 0 "y" = %y""")
case("S05", "nearest-26-to-64", "nearest", [([f32([[list(range(26))]])], [exactly([[[i * 26 // 64 for i in range(64)]]])])])
graph("linear_to_one", """
input %x: float32[1, 1, 10] user 0 "x"
%y: float32[1, 1, 1] = aten.upsample_linear1d(%x, [1], false)
output user 0 "y" = %y""")
case("S05", "linear-10-to-1", "linear_to_one", [([f32([[list(range(10))]])], [exactly([[[4.5]]])])])
graph("casts", """
input %x: float32[5] user 0 "x"
%h: float16[5] = aten._to_copy(%x, dtype=float16)
%y: float32[5] = aten._to_copy(%h, dtype=float32)
output user 0 "y" = %y""")
case("S06", "narrow-then-widen", "casts", [([f32([i / 7 for i in range(1, 6)])],
                                            [exactly([0.142822265625, 0.28564453125, 0.428466796875, 0.5712890625, 0.71435546875])])],
     why="the cast is part of the program: it is never left out")
graph("bf16_mm", """
symbol s0 [1, 64] hint 2 backed
symbol s1 [1, 128] hint 2 backed
symbol s2 [1, 64] hint 2 backed
input %a: bfloat16[s0, s1] user 0 "a"
input %b: bfloat16[s1, s2] user 1 "b"
%y: bfloat16[s0, s2] = aten.mm(%a, %b)
output user 0 "y" = %y""")
STEPS = []
for m, k, n in ((1, 1, 1), (2, 3, 5), (17, 64, 16), (3, 65, 17), (16, 31, 1)):
    left = [[(i * 5 + j * 3) % 3 - 1 for j in range(k)] for i in range(m)]
    right = [[(i * 7 + j) % 3 - 1 for j in range(n)] for i in range(k)]
    STEPS.append(([leaf("bfloat16", left), leaf("bfloat16", right)],
                  [exactly([[sum(left[i][t] * right[t][j] for t in range(k)) for j in range(n)] for i in range(m)], dtype="bfloat16")]))
case("S07", "bf16-integers", "bf16_mm", STEPS, why="sums below 256 are exact in bfloat16")
graph("softmax_by_parts", """
input %x: float32[5, 1, 32, 32] user 0 "x"
input %l: float32[5, 1, 1, 1] user 1 "l"
%m: float32[5, 1, 32, 32] = aten.mul.Tensor(%x, %l)
%n: float32[5, 1, 32, 32] = aten.neg(%m)
%e: float32[5, 1, 32, 32] = aten.exp(%n)
%s: float32[5, 1, 1, 1] = aten.sum.dim_IntList(%e, [1, 2, 3], true)
%y: float32[5, 1, 32, 32] = aten.div.Tensor(%e, %s)
output user 0 "y" = %y""")
case("S08", "size-one-dimension", "softmax_by_parts", [([f32(ones(5, 1, 32, 32)), f32(ones(5, 1, 1, 1))],
                                                        [near([[[[1 / 1024] * 32] * 32]] * 5)])])

# ---- S13: GRU, the reset gate before or after the product: PyTorch's is after
graph("gru_cell", """
input %x: float32[1, 1] user 0 "x"
input %h: float32[1, 1] user 1 "h"
input %w: float32[3, 1] user 2 "w"
input %bi: float32[3] user 3 "bi"
input %bh: float32[3] user 4 "bh"
%y: float32[1, 1] = aten.gru_cell(%x, %h, %w, %w, %bi, %bh)
output user 0 "y" = %y""")
case("S13", "gru-cell", "gru_cell", [([f32([[1]]), f32([[0.5]]), f32(ones(3, 1)), f32([0, 0, 0.1]), f32([0, 0, 0.2])], [near([[0.5787814]])])])

# ---- S22: indices
graph("index", """
input %x: int64[3] user 0 "x"
input %i: int64[4] user 1 "i"
%y: int64[4] = aten.index.Tensor(%x, [%i])
output user 0 "y" = %y""")
TEN = leaf("int64", [10, 20, 30])
case("S22", "negative", "index", [([TEN, leaf("int64", [-1, -3, 0, 2])], [exactly([30, 10, 10, 30], dtype="int64")])])
for op, call in (("gather", "aten.gather(%x, 0, %i)"), ("index_select", "aten.index_select(%x, 0, %i)"), ("index", "aten.index.Tensor(%x, [%i])"),
                 ("take", "aten.take(%x, %i)"), ("embedding", None), ("scatter", "aten.scatter.value(%x, 0, %i, 7)"),
                 ("index_fill", "aten.index_fill.int_Scalar(%x, 0, %i, 7)"), ("index_put", "aten.index_put(%x, [%i], %x)")):
    result = "int64[3]" if op in ("scatter", "index_fill", "index_put") else "int64[1]"
    body = f"%y: {result} = {call}" if call else "%t: int64[3, 1] = aten.unsqueeze(%x, 1)\n%y: int64[1, 1] = aten.embedding(%t, %i)"
    graph(f"one_{op}", f"""
input %x: int64[3] user 0 "x"
input %i: int64[1] user 1 "i"
{body}
output user 0 "y" = %y""")
    for bad in (3, -4, 2 ** 31, -2 ** 53):
        case("S22", f"{op}-at-{bad}", f"one_{op}", [([TEN, leaf("int64", [bad])], [])], expect="error", why="outside of three elements")
graph("scatter_add", """
input %x: float32[3] user 0 "x"
input %i: int64[2] user 1 "i"
input %v: float32[2] user 2 "v"
%y: float32[3] = aten.scatter_add(%x, 0, %i, %v)
output user 0 "y" = %y""")
case("S22", "duplicates-add", "scatter_add", [([f32([1, 1, 1]), leaf("int64", [1, 1]), f32([10, 20])], [exactly([1, 31, 1])])])
graph("index_put_2d", """
input %x: float32[2, 3] user 0 "x"
input %i: int64[3] user 1 "i"
input %j: int64[3] user 2 "j"
input %v: float32[3] user 3 "v"
%y: float32[2, 3] = aten.index_put(%x, [%i, %j], %v)
output user 0 "y" = %y""")
case("S22", "put-negative", "index_put_2d", [([f32([[0] * 3] * 2), leaf("int64", [0, 1, 1]), leaf("int64", [1, 2, -3]), f32([5, 6, 7])],
                                              [exactly([[0, 5, 0], [7, 0, 6]])])])

# ---- S23: einsum
EIN = [[[float(8 * i + 4 * j + k) for k in range(4)] for j in range(2)] for i in range(2)]
for name, equation, ins, shape, want in (
        ("iij-ij", "iij->ij", [EIN], [2, 4], [[0, 1, 2, 3], [12, 13, 14, 15]]),
        ("iij-i", "iij->i", [EIN], [2], [6, 54]),
        ("trace", "ii->", [[[1, 2], [3, 4]]], [], 5),
        ("implicit", "ba", [[[1, 2, 3], [4, 5, 6]]], [3, 2], [[1, 4], [2, 5], [3, 6]]),
        ("ellipsis", "...ij,...jk->...ik", [[[[1, 2], [3, 4]]], [[[1, 0], [0, 1]]]], [1, 2, 2], [[[1, 2], [3, 4]]]),
        ("scalar", ",ij->ij", [2, [[1, 2], [3, 4]]], [2, 2], [[2, 4], [6, 8]]),
        ("three", "ij,jk,kl->il", [[[1, 2]], [[1, 0], [0, 1]], [[1], [1]]], [1, 1], [[3]]),
        ("one-sided", "ij,kl->il", [[[1, 2], [3, 4]], [[1, 2], [3, 4]]], [2, 2], [[12, 18], [28, 42]])):
    inputs = "\n".join(f'input %x{i}: float32{shape_of(x)} user {i} "x{i}"' for i, x in enumerate(ins))
    graph(f"einsum_{name}", f"""
{inputs}
%y: float32{shape} = aten.einsum("{equation}", [{", ".join(f"%x{i}" for i in range(len(ins)))}])
output user 0 "y" = %y""")
    case("S23", name, f"einsum_{name}", [([f32(x) for x in ins], [exactly(want)])])

# ---- S24: slices of slices
TEN_VALUES = list(range(10))
for name, chain in (("a", [slice(2, 8), slice(1, 3)]), ("b", [slice(None, None, 2), slice(1, 4)]), ("c", [slice(-5, None), slice(None, -2)]),
                    ("d", [slice(1, 100), slice(-2, None)])):
    lines, value, at = [], TEN_VALUES, "%x"
    for i, s in enumerate(chain):
        value = value[s]
        start = "none" if s.start is None else s.start
        stop = 9223372036854775807 if s.stop is None else s.stop
        lines.append(f"%s{i}: float32[{len(value)}] = aten.slice.Tensor({at}, 0, {start}, {stop}, {s.step or 1})")
        at = f"%s{i}"
    graph(f"slices_{name}", '\ninput %x: float32[10] user 0 "x"\n' + "\n".join(lines) + f'\noutput user 0 "y" = {at}')
    case("S24", f"slices-{name}", f"slices_{name}", [([f32(TEN_VALUES)], [exactly(value)])])

(HERE / "graphs").mkdir(exist_ok=True)
for name, text in GRAPHS.items():
    (HERE / "graphs" / f"{name}.txt").write_text(text)
(HERE / "cases.json").write_text('{"format": 1, "cases": [\n' + ",\n".join(json.dumps(c) for c in CASES) + "\n]}\n")
print(len(CASES), "cases,", len(GRAPHS), "graphs")
