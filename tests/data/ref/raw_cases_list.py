# Element-wise operators, views, creation, reductions, indexing, sorting. Read by nn_cases.py.
f32, f64, f16, bf16, c64 = torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64
i64, i32, i8, u8, b1 = torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool
refused = []
asked = case


def case(op, *args, **kwargs):
    """The loops below ask for combinations that torch itself may refuse."""
    try: asked(op, *args, **kwargs)
    except (RuntimeError, NotImplementedError) as e: refused.append(f"{op}: {str(e).splitlines()[0]}")


special = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-30, 3e38, 100.0, -100.0])
ints = torch.tensor([0, 1, -1, 2, -2, 7, -7, 100, 127, -128, 300, -301], dtype=i64)
m = r(3, 4)
strided = r(5, 6)[1::2, ::3]
turned = r(4, 3).t()
empty = torch.zeros(0, 3)

# unary
for op in ["abs", "neg", "sign", "ceil", "floor", "round", "trunc", "sqrt", "rsqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10",
           "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sigmoid",
           "logical_not", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "square", "frac", "sgn", "angle", "sinc", "deg2rad",
           "rad2deg", "nan_to_num", "logit", "isreal"]:
    x = special[:-4] if op in ("sin", "cos", "tan") else special
    case(op, x)
    case(op, turned * 0.7)
    if op not in ("logit",): case(op, empty)
    if op not in ("frac", "exp2"): case(op, ints[:8].clone(), tol=(1e-6, 1e-6))
    if op not in ("erfc", "logit"): case(op, m.to(bf16))
for op in ["neg", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "reciprocal", "square", "sgn", "angle", "rsqrt", "conj_physical", "isfinite",
           "expm1", "log1p", "log2", "tan", "sinh", "acos", "atan"]:
    case(op, torch.complex(m, r(3, 4)))
case("bitwise_not", ints); case("bitwise_not", torch.tensor([True, False])); case("bitwise_not", torch.tensor([0, 5, 255], dtype=u8))
case("round.decimals", torch.tensor([1.005, -2.345, 123.456, nan]), decimals=2); case("round.decimals", torch.tensor([1234.5, -1250.0]), decimals=-2)
case("logit", torch.tensor([-0.5, 0.2, 0.9, 2.0]), 0.1); case("nan_to_num", special.to(f16)); case("nan_to_num", special, 1.0, 2.0, 3.0)
case("frexp.Tensor", special)

# binary
other = torch.tensor([1.0, -2.0, 0.5, nan, 0.0, -0.0, 3.0, inf, -inf, 2.0, -1.0, 0.25, 7.0, 1e30, -3.5, 2.0])
for op in ["add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "floor_divide", "remainder.Tensor", "fmod.Tensor", "maximum", "minimum", "fmax", "fmin",
           "atan2", "hypot", "copysign.Tensor", "logaddexp", "logaddexp2", "xlogy.Tensor", "heaviside", "pow.Tensor_Tensor", "eq.Tensor", "ne.Tensor",
           "lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor", "logical_and", "logical_or", "logical_xor", "nextafter", "ldexp.Tensor",
           "float_power.Tensor_Tensor"]:
    case(op, special, other, tol=(2e-5, 2e-6))
    case(op, m, r(4)); case(op, turned, r(3, 1)); case(op, empty, r(3))
    if op not in ("nextafter", "logaddexp", "logaddexp2", "hypot"): case(op, m.to(bf16), r(3, 4).to(bf16))
    if op not in ("nextafter", "hypot", "logaddexp", "logaddexp2"): case(op, m, torch.tensor(2.0, dtype=f64))
    if op not in ("nextafter", "logaddexp", "logaddexp2", "hypot", "heaviside", "pow.Tensor_Tensor", "float_power.Tensor_Tensor"):
        case(op, ints, torch.tensor(3), tol=(1e-6, 1e-6)); case(op, ints, torch.tensor(-4, dtype=i32), tol=(1e-6, 1e-6))
        case(op, torch.tensor([5, 200, 7], dtype=u8), torch.tensor([100, 100, 3], dtype=u8), tol=(1e-6, 1e-6))
        if op != "copysign.Tensor": case(op, ints, m[0, 0], tol=(1e-5, 1e-5))
for op in ["add.Tensor", "mul.Tensor", "logical_and", "eq.Tensor", "lt.Tensor", "maximum"]:
    case(op, torch.tensor([True, False, True]), torch.tensor([True, True, False]))
for op in ["add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "pow.Tensor_Tensor", "eq.Tensor", "ne.Tensor"]:
    case(op, torch.complex(m, r(3, 4)), torch.complex(r(4), r(4))); case(op, torch.complex(m, r(3, 4)), r(4))
case("add.Tensor", m, r(3, 4), alpha=2.5); case("sub.Tensor", ints, ints, alpha=3); case("rsub.Scalar", m, 2.0, 3.0); case("add.Scalar", m, 0.1)
case("mul.Scalar", m.to(f16), 0.1); case("gt.Scalar", torch.tensor([0.1, 0.2]), 0.1); case("eq.Scalar", torch.tensor([0.1]).to(f16), 0.1)
case("add.Tensor", torch.tensor([120, 100], dtype=i8), torch.tensor([10, 100], dtype=i8))
for mode in ["floor", "trunc"]:
    case("div.Tensor_mode", special, other, rounding_mode=mode)
    case("div.Tensor_mode", ints, torch.tensor(3), rounding_mode=mode, tol=(1e-6, 0)); case("div.Tensor_mode", ints, torch.tensor(-3), rounding_mode=mode, tol=(1e-6, 0))
for e in [0.5, -0.5, 2.0, 3, -1, 0.0, 1.7]: case("pow.Tensor_Scalar", special, e, tol=(2e-5, 2e-6))
case("pow.Tensor_Scalar", ints[:8].clone(), 3); case("pow.Scalar", 2.0, m); case("pow.Tensor_Tensor", torch.tensor([2, 1, -1, 3, 0]), torch.tensor([-1, -1, -3, -2, 0]))
case("remainder.Scalar", special, -1.5); case("fmod.Scalar", ints, -3)
for op in ["bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor"]:
    case(op, ints, ints.flip(0)); case(op, torch.tensor([True, False]), torch.tensor([True, True]))
case("bitwise_left_shift.Tensor", torch.tensor([1, 1, 1, -5]), torch.tensor([-1, 64, 3, 2])); case("bitwise_right_shift.Tensor", torch.tensor([-8, 8, -8], dtype=i32), torch.tensor([-1, 33, 1], dtype=i32))
case("where.self", m > 0, m, torch.tensor(0.0)); case("where.self", torch.tensor([True, False]), torch.tensor([1, 2]), torch.tensor([0.5, 1.5])); case("where.ScalarOther", m > 0, m, -1.0)
case("masked_fill.Scalar", m, torch.tensor([True, False, True, False]), -inf); case("masked_fill.Tensor", ints, ints > 5, torch.tensor(9))
case("clamp", special, -0.7, 1.2); case("clamp", special, None, 0.3); case("clamp", special, 0.3, None); case("clamp", ints, -3, 50); case("clamp.Tensor", m, torch.tensor(-0.5), torch.tensor([0.1, 0.2, nan, 0.4]))
case("clamp_min", special, 0.1); case("clamp_min.Tensor", m, r(4)); case("clamp_max.Tensor", m, r(4))
case("lerp.Scalar", m, r(3, 4), 0.3); case("lerp.Scalar", m, r(3, 4), 0.8); case("addcmul", m, r(3, 4), r(4), value=0.5); case("addcdiv", m, r(3, 4), r(4) + 3, value=2)
case("isclose", special, special + 1e-6); case("isclose", special, special, 1e-5, 1e-8, True); case("complex", m, r(3, 4)); case("polar", m.abs(), r(3, 4)); case("aten.max.other".replace("aten.", ""), m, r(3, 4))

# in place: the memory of argument 0 is written
case("add.Tensor", m.clone(), r(4), inplace=True); case("mul.Tensor", ints.clone(), torch.tensor(3), inplace=True); case("relu", m.clone(), inplace=True)
case("copy", m.clone(), r(4).to(f64), inplace=True); case("fill.Scalar", m.clone(), 3.0, inplace=True); case("zero", m.clone(), inplace=True)
case("index_put", m.clone(), [torch.tensor([0, 2, 0])], r(3, 4), True, inplace=True); case("clamp", m.clone(), -0.1, 0.1, inplace=True)
case("mul.Tensor", m.to(f16), r(3, 4), inplace=True);

# views, and their copies
x3 = r(2, 3, 4)
for x in (x3, x3.permute(2, 0, 1)):
    case("view", x.contiguous(), [-1, 4]); case("reshape", x, [6, -1]); case("permute", x, [1, -1, 0]); case("transpose.int", x, -1, 0); case("select.int", x, 1, -1)
    case("slice.Tensor", x, 1, -2, 100, 1); case("slice.Tensor", x, 2, None, None, 2); case("unsqueeze", x, -1); case("expand", x[:1], [5, x.shape[1], -1]); case("flatten.using_ints", x, 0, 1)
    case("diagonal", x, 1, 0, -1); case("unfold", x, 1, 2, 1); case("narrow", x, 0, 1, 1); case("movedim.int", x, 0, -1); case("movedim.intlist", x, [0, 1], [2, 0]); case("unbind.int", x, 1)
    case("split.Tensor", x, 2, 1); case("chunk", x, 2, -1); case("split_with_sizes", x, [1, 0, x.shape[0] - 1], 0); case("tensor_split.tensor_indices_or_sections", x, torch.tensor([1, 2]), 1)
    case("clone", x); case("contiguous", x); case("to.dtype", x, f64); case("to.dtype", x, f32); case("_to_copy", x, dtype=i32); case("flip", x, [0, -1]); case("roll", x, [1, -1], [0, 2]); case("roll", x, [2])
    case("repeat", x, [2, 1, 2, 1]); case("tile", x, [2]); case("cat", [x, x[:1]], 0); case("stack", [x, x], -2); case("repeat_interleave.self_int", x, 2, 1); case("rot90", x, 1, [0, 1]); case("rot90", x, 3, [2, 1])
    case("numpy_T", x[0]); case("mT", x); case("squeeze", x[:, :1]); case("squeeze.dim", x[:, :1], 1); case("squeeze.dims", x[:1, :1], [0, 1, 2]); case("view_copy", x.contiguous(), [24]); case("unflatten.int", x, 0, [x.shape[0], 1])
    case("tril", x, 1); case("triu", x, -1); case("diag_embed", x, 1); case("slice_scatter", x, r(x.shape[0], 1, x.shape[2]), 1, 0, 1); case("select_scatter", x, r(x.shape[1], x.shape[2]), 0, 1)
case("as_strided", r(12), [3, 2], [4, 1], 1); case("view_as_real", torch.complex(m, m)); case("view_as_complex", r(3, 2)); case("real", torch.complex(m, r(3, 4))); case("cat", [torch.zeros(0), m], 1)
case("cat", [torch.tensor([1, 2]), torch.tensor([0.5])]); case("hstack", [r(3), r(2)]); case("vstack", [r(3), r(1, 3)]); case("dstack", [r(3), r(3)]); case("column_stack", [r(3), r(3, 2)]); case("block_diag", [r(2, 2), r(3), r(1, 2)])
case("hsplit.int", m, 2); case("vsplit.array", m, [1, 2]); case("atleast_1d", torch.tensor(1.0)); case("atleast_3d", m); case("broadcast_tensors", [r(3, 1), r(4)]); case("view.dtype", m, i32); case("diag", m[0], 1); case("diag", m, -1)
case("diagonal_scatter", m, r(3)); case("as_strided_scatter", r(3, 4), r(2, 2), [2, 2], [4, 1], 1); case("repeat_interleave.self_Tensor", m, torch.tensor([1, 0, 2]), 0); case("diagflat", r(2, 2))
case("to.dtype", torch.tensor([3.7, -3.7, 300.0, -1.0]), u8); case("to.dtype", special, i32); case("to.dtype", torch.tensor([0.1, 0.0, nan]), b1); case("to.dtype", torch.tensor([16777217, 3]), f32); case("to.dtype", ints, bf16)

# creation
case("arange", 5, dtype=i64); case("arange.start", 1.5, 4.0, dtype=f32); case("arange.start_step", 10, 0, -3, dtype=i64); case("full", [2, 3], 1.5, dtype=f32); case("full_like", m, 2); case("zeros_like", turned)
case("eye", 3, dtype=f32); case("eye.m", 2, 4, dtype=i64); case("linspace", 0.0, 1.0, 7, dtype=f32); case("linspace", -3, 3, 4, dtype=f32); case("logspace", 0.0, 2.0, 5, dtype=f32); case("scalar_tensor", 2.5, dtype=f32); case("new_ones", ints, [2])

# reductions
x = r(3, 4, 5)
for op in ["sum.dim_IntList", "mean.dim", "amax", "amin"]:
    case(op, x, [1]); case(op, x, [0, 2], True); case(op, x.permute(2, 1, 0), [-1]); case(op, x.to(bf16), [1])
for op in ["sum", "mean", "prod", "max", "min", "any", "all", "std", "var", "median", "count_nonzero", "std_mean", "var_mean"]: case(op, x * 0.5)
for op in ["sum", "prod", "max", "min", "any", "all", "median", "count_nonzero"]: case(op, ints[1:6].clone())
for op in ["max.dim", "min.dim", "median.dim", "kthvalue", "mode", "argmax", "argmin", "any.dim", "all.dim", "prod.dim_int", "cummax", "cummin", "cumsum", "cumprod", "logcumsumexp", "sort", "nanmedian.dim"]:
    if op == "kthvalue": case(op, x, 2, 1); case(op, x, 1, -1, True); continue
    case(op, x, 1); case(op, x.permute(2, 0, 1), 0)
    if op not in ("median.dim", "mode", "sort", "nanmedian.dim"): case(op, special[:8].clone() if op not in ("cumsum", "cumprod", "logcumsumexp") else special[5:10].clone(), 0)
case("argmax", torch.tensor([[1, 3, 3], [3, 0, 3]])); case("argmax", torch.tensor([1.0, nan, 2.0, nan])); case("amax", special[3:], [0]); case("sum.dim_IntList", ints, [0]); case("sum", torch.tensor([True, True])); case("sum", empty); case("mean", empty)
case("sum.dim_IntList", empty, [0]); case("prod", empty); case("any", empty); case("all", empty); case("logsumexp", torch.tensor([[-inf, -inf], [1.0, inf], [0.0, 2.0]]), [1]); case("std.correction", x, [1], correction=0, keepdim=True); case("var.correction", x, None, correction=2)
case("var.dim", x, [0, 1], False, True); case("var", torch.tensor([1.0])); case("nansum", special[3:]); case("nanmean", torch.tensor([1.0, nan, 3.0])); case("aminmax", x, dim=1); case("aminmax", special[3:]); case("trace", r(3, 4)); case("sum_to_size", x, [4, 1]); case("var.dim", torch.complex(m, r(3, 4)), [1])
case("sum.dim_IntList", torch.complex(m, m), [0]); case("median", torch.tensor([2.0, nan])); case("sum", ints, dtype=f32); case("diff", x, 2, 1); case("diff", m, 1, -1, r(3, 1), r(3, 2)); case("cumsum", ints, 0, dtype=f64); case("cumsum", torch.tensor([True, True]), 0)

# indexing
idx = torch.tensor([[0, 2, 1, 0], [3, -1 + 4, 0, 2]])
case("gather", r(4, 4), 0, idx); case("gather", r(4, 5).t(), 1, idx[:, :3]); case("index_select", x, 1, torch.tensor([3, 0, 0])); case("take", m, torch.tensor([[0, -1], [5, 3]])); case("take_along_dim", m, torch.tensor([[1], [0], [3]]), 1); case("take_along_dim", m, torch.tensor([1, 5]))
case("index.Tensor", x, [torch.tensor([0, -1])]); case("index.Tensor", x, [None, torch.tensor([[0, 1], [2, 3]])]); case("index.Tensor", x, [torch.tensor([0, 2]), None, torch.tensor([4, 1])]); case("index.Tensor", x, [x[:, :, 0] > 0]); case("index.Tensor", x, [None, torch.tensor([True, False, True, True]), torch.tensor([0, 1, 2])])
case("index.Tensor", m, [torch.tensor([], dtype=i64)]); case("index.Tensor", m, [torch.tensor(2)]); case("index.Tensor", m, [torch.tensor([0, 1], dtype=i32), torch.tensor([1, 1], dtype=i32)])
case("index_put", x, [torch.tensor([0, 2])], r(4, 5)); case("index_put", x, [None, torch.tensor([1, 1, 1])], r(3, 3, 5), True); case("index_put", m, [m > 0], torch.tensor(7.0)); case("index_put", ints, [torch.tensor([0, 0, 1])], torch.tensor([5, 6, 7]), True); case("index_put", x, [torch.tensor([0, 1]), None, torch.tensor([2, 3])], r(2, 4))
case("scatter.src", torch.zeros(4, 4), 0, idx, r(2, 4)); case("scatter.value", torch.zeros(4, 4), 1, idx, 3.5); case("scatter_add", m, 1, idx, r(3, 4)); case("scatter.reduce", m, 1, idx, r(3, 4), reduce="multiply")
for red in ["sum", "prod", "mean", "amax", "amin"]:
    for inc in (True, False): case("scatter_reduce.two", m, 1, idx, r(3, 4), red, include_self=inc); case("scatter_reduce.two", ints[:8].reshape(2, 4), 1, idx, ints[4:].reshape(2, 4), red, include_self=inc)
case("index_add", m, 0, torch.tensor([0, 0, 2]), r(3, 4), alpha=2.0); case("index_copy", m, 1, torch.tensor([3, 1]), r(3, 2)); case("index_fill.int_Scalar", m, 1, torch.tensor([3, 0]), -1.0); case("index_reduce", m, 0, torch.tensor([0, 0]), r(2, 4), "mean", include_self=False); case("put", m, torch.tensor([0, 5, 0]), r(3), True)
case("masked_select", x, x > 0.3); case("masked_scatter", m, m > 0, r(20)); case("nonzero", m > 0); case("nonzero", torch.tensor(3)); case("argwhere", ints); case("where", m > 0); case("one_hot", torch.tensor([[0, 2], [1, 0]]), 4); case("one_hot", torch.tensor([0, 2])); case("nonzero_static", ints, size=14, fill_value=-5)

# sorting and searching
dup = torch.tensor([[3.0, 1.0, nan, 1.0, 3.0], [2.0, 2.0, -1.0, 0.0, 5.0]])
for d in (False, True): case("sort.stable", dup, stable=True, dim=-1, descending=d); case("sort.stable", dup.t(), stable=True, dim=0, descending=d); case("argsort.stable", ints, stable=True, descending=d)
case("topk", x, 2, 1); case("topk", x, 3, -1, False); case("topk", ints, 4); case("msort", m); case("mode", torch.tensor([2, 2, 1, 1, 3])); case("median.dim", torch.tensor([1.0, nan, 2.0]), 0); case("nanmedian.dim", torch.tensor([1.0, nan, 2.0]), 0)
case("searchsorted.Tensor", torch.tensor([1.0, 3.0, 3.0, 5.0]), torch.tensor([nan, 3.0, 0.0, 6.0])); case("searchsorted.Tensor", torch.tensor([[1, 3, 5], [2, 4, 6]]), torch.tensor([[3, 6], [4, 1]]), right=True, out_int32=True); case("bucketize.Tensor", m, torch.tensor([-1.0, 0.0, 1.0]))
case("isin.Tensor_Tensor", ints, torch.tensor([1, 7, 300])); case("isin.Tensor_Tensor", special, torch.tensor([nan, 1.0]), invert=True); case("_unique2", torch.tensor([[3, 1], [1, 2]]), True, True, True); case("unique_consecutive", torch.tensor([1, 1, 2, 2, 1]), True, True); case("unique_consecutive", torch.tensor([[1, 2], [1, 2], [0, 1]]), True, True, 0)

# seldom used
case("cartesian_prod", [torch.tensor([1, 2]), torch.tensor([3, 4, 5]), torch.tensor([6, 7])]); case("combinations", m[0]); case("combinations", m[0], 3, True); case("combinations", m[0], 5); case("_chunk_cat", [r(5, 2), r(3, 2, 2), r(4)], 0, 2)
case("_chunk_cat", [r(2, 5, 2), r(2, 3)], 1, 3)
for p in [0.0, 1.0, 2.0, 3.5, inf, -inf]: case("dist", m, r(4), p)
case("gradient.scalarint", x); case("gradient.scalarint", x, spacing=0.5, dim=1, edge_order=2); case("gradient.scalarrayint", m, spacing=[2.0, 0.5]); case("hash_tensor", m); case("hash_tensor", ints[:4].reshape(2, 2), [1])
case("histogram.bin_ct", m, 5); case("histogram.bin_ct", m, 4, range=[-1.0, 1.0], weight=r(3, 4).abs(), density=True); case("histogram.bins_tensor", m, torch.tensor([-2.0, -0.5, 0.0, 1.0]))
case("segment_reduce", r(6, 2), "max", lengths=torch.tensor([2, 0, 4])); case("segment_reduce", r(6), "mean", offsets=torch.tensor([0, 2, 2, 6]), initial=1.0); case("segment_reduce", r(2, 5), "sum", lengths=torch.tensor([[2, 3], [4, 1]]), axis=1)
case("gcd", ints, torch.tensor(12)); case("lcm", ints[1:7].clone(), torch.tensor(10)); case("vander", m[0], 3); case("vander", ints[:3].clone(), increasing=True); case("bincount", torch.tensor([1, 3, 1]), minlength=3); case("bincount", torch.tensor([1, 0]), torch.tensor([0.5, 2.0]))
case("unique_dim", torch.tensor([[2, 1], [0, 5], [2, 1]]), 0, True, True, True); case("unique_dim_consecutive", torch.tensor([[2, 1], [2, 1], [0, 5]]), 0, True, True); case("_unsafe_index.Tensor", m, [torch.tensor([0, 2])]); case("fill_diagonal_", r(3, 4), 2.0, after=(0,)); case("fill_diagonal_", r(7, 3), 2.0, True, after=(0,)); case("pow_.Scalar", r(3), 2.0, after=(0,))
for k in (-1, 0, 2): case("tril_indices", 3, 4, k, dtype=i64); case("triu_indices", 4, 3, k, dtype=i64)

print("\n".join(refused))
