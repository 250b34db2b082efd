# Faults that users of other inference tools met, as operator calls with the right answer. Read by nn_cases.py.
t = torch.tensor
# a row of attention whose keys are all masked gives zeros; softmax alone gives NaN
q, v = t([[[[1.0, 0.0], [0.0, 1.0]]]]), t([[[[1.0, 2.0], [3.0, 4.0]]]])
for dt in (torch.float32, torch.float16, torch.bfloat16):
    case("scaled_dot_product_attention", q.to(dt), q.to(dt), v.to(dt), t([[True, True], [False, False]])); case("scaled_dot_product_attention", q.to(dt), q.to(dt), v.to(dt), t([[True, False], [True, True]]))
    case("scaled_dot_product_attention", q.to(dt), q.to(dt), v.to(dt), t([[0.0, 0.0], [-inf, -inf]]).to(dt)); case("_safe_softmax", t([[-inf, -inf], [0.0, -inf]]).to(dt), 1); case("softmax.int", t([[-inf, -inf], [0.0, -inf]]).to(dt), 1)
# empty tensors
case("linear", r(0, 4), r(3, 4), r(3)); case("matmul", r(0, 4, 8), r(0, 8, 4)); case("addmm", t([1.0, 2.0, 3.0]), r(2, 0), r(0, 3)); case("conv2d", r(0, 3, 5, 5), r(4, 3, 3, 3), r(4), [1, 1], [1, 1])
e = r(0, 5); case("sum.dim_IntList", e, [0]); case("mean.dim", e, [0]); case("softmax.int", e, 1); case("softmax.int", r(5, 0), 1); case("cat", [r(0, 3), r(2, 3)]); case("repeat", r(2, 3), [0, 2]); case("prod.dim_int", e, 0); case("any.dim", e, 0); case("all.dim", e, 0)
case("nonzero", torch.zeros(3, 2)); case("index_select", r(4, 3), 0, torch.zeros(0, dtype=torch.int64)); case("layer_norm", r(0, 5), [5]); case("max_pool2d", r(0, 2, 4, 4), [2, 2]); case("cumsum", e, 0); case("topk", e, 2, 1); case("sort", r(3, 0), 1)
# an addend broader than the product; a reduction and a bias; gelu's two forms
case("add.Tensor", r(3, 3) @ r(3, 1), r(1, 4)); case("addmm", r(1, 4), r(3, 3), r(3, 4)); case("gelu", t([-2.7, -2.0, -1.0, 1.0, 2.0])); case("gelu", t([-2.7, -2.0, -1.0, 1.0, 2.0]), approximate="tanh")
# sizes of transposed convolutions; nearest at 26 -> 64; linear to one pixel
case("conv_transpose1d", r(1, 1, 28), r(1, 1, 3), None, [2], [1], [1]); case("conv_transpose2d.input", r(1, 2, 3, 3), r(2, 1, 3, 3), None, [2, 2], [1, 1], [1, 1])
w = torch.arange(26.0).view(1, 1, 26); case("upsample_nearest1d", w, [64]); case("_upsample_nearest_exact1d", w, [64]); case("upsample_linear1d", torch.arange(10.0).view(1, 1, 10), [1], False); case("upsample_linear1d", torch.arange(10.0).view(1, 1, 10), [1], True)
# a narrowing cast stays
case("to.dtype", torch.arange(1, 6) / 7, torch.float16); case("to.dtype", (torch.arange(1, 6) / 7).half(), torch.float32)
# indices: negative, repeated; strides that are not those of a contiguous tensor
g = t([10.0, 20.0, 30.0]); case("index.Tensor", g, [t([-1, -3, 0, 2])]); case("index_put", torch.ones(3), [t([1, 1])], t([10.0, 20.0]), True); case("scatter_add", torch.ones(3), 0, t([1, 1]), t([10.0, 20.0])); case("index_put", torch.zeros(2, 3), [t([0, 1, 1]), t([1, 2, -3])], t([5.0, 6.0, 7.0]))
case("linear", t([1.0, 1.0, 1.0]), t([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]).t()); case("as_strided", t([9.0, 1, 4, 2, 5, 3, 6]), [2, 3], [1, 2], 1)
# repeated labels, sums of one side, scalars
x = torch.arange(16.0).view(2, 2, 4)
for eq, a in (("iij->ij", [x]), ("iij->i", [x]), ("ii->", [r(3, 3)]), ("ba", [r(2, 3)]), ("...ij,...jk->...ik", [r(2, 3, 4), r(4, 5)]), (",ij->ij", [r(()), r(2, 3)]), ("ij,kl->il", [r(2, 3), r(4, 5)])): case("einsum", eq, a)
# slices of slices
d = torch.arange(10.0); case("slice.Tensor", d, 0, 1, 100); case("slice.Tensor", d[1:], 0, -2); case("slice.Tensor", d, 0, -5); case("slice.Tensor", d[::2], 0, 1, 4)
# a size of one in the middle; a window of the tokens themselves
case("exp", -torch.ones(5, 1, 32, 32)[:, :, :2, :2] * torch.ones(5).view(5, 1, 1, 1)); case("instance_norm", r(2, 3, 4), None, None, None, None, True, 0.1, 1e-5, True)
# ties, NaN and signed zero in extremes and sorting
m = t([[1.0, 3.0, 3.0, nan], [0.0, -0.0, 0.0, -0.0]])
for n in ("max.dim", "min.dim"): case(n, m, 1)
case("argmax", m, 1); case("argmin", m, 1); case("sort.stable", m, stable=True, dim=1); case("sort.stable", m, stable=True, dim=1, descending=True); case("amax", m, [1]); case("maximum", m, m.flip(1)); case("cummax", m, 1); case("median.dim", m, 1); case("mode", t([1.0, 2.0, 2.0, 1.0]))
case("round", t([0.5, 1.5, 2.5, -0.5, -1.5])); case("round.decimals", t([0.25, 0.35, 1.005]), decimals=1); case("remainder.Tensor", t([5.0, -5.0, 5.0, -5.0, 1e-40]), t([3.0, 3.0, -3.0, -3.0, 2.0])); case("fmod.Tensor", t([5.0, -5.0, 5.0, -5.0]), t([3.0, 3.0, -3.0, -3.0])); case("div.Tensor_mode", t([5.0, -5.0, 1.0, 0.0]), t([2.0, 2.0, 0.0, 0.0]), rounding_mode="floor")
