# ---- products
for dt in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    case("mm", r(5, 7).to(dt), r(7, 9).to(dt))
case("mm", r(67, 300), r(300, 130), tol=(1e-4, 3e-5))
case("mm", r(7, 5).t(), r(9, 7).t())
case("mm", r(0, 5), r(5, 3)); case("mm", r(3, 0), r(0, 2))
case("mm", torch.randint(-9, 9, (3, 4)), torch.randint(-9, 9, (4, 5)))
case("mm", torch.randint(0, 255, (3, 4), dtype=torch.uint8), torch.randint(0, 255, (4, 5), dtype=torch.uint8))
case("mm", r(3, 4, dtype=torch.complex64), r(4, 5, dtype=torch.complex64))
case("mm", torch.tensor([[1.0, nan], [inf, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
case("bmm", r(3, 5, 7), r(3, 7, 2)); case("bmm", r(3, 7, 5).transpose(1, 2), r(3, 2, 7).transpose(1, 2))
for a, b in [((3,), (3,)), ((4, 3), (3,)), ((3,), (3, 4)), ((2, 4, 3), (3, 5)), ((2, 1, 4, 3), (6, 3, 5)), ((3,), (2, 3, 4)), ((2, 4, 3), (3,))]:
    case("matmul", r(*a), r(*b))
case("mv", r(4, 3), r(3)); case("dot", r(5), r(5)); case("dot", r(5, dtype=torch.complex64), r(5, dtype=torch.complex64))
case("vdot", r(5, dtype=torch.complex64), r(5, dtype=torch.complex64)); case("vdot", r(5), r(5))
case("linear", r(2, 3, 8), r(5, 8), r(5)); case("linear", r(8), r(5, 8)); case("linear", r(2, 3, 8).half(), r(5, 8).half(), r(5).half())
case("linear", r(2, 8, 3).transpose(1, 2), r(5, 8), r(5)); case("linear", r(0, 8), r(5, 8), r(5))
case("addmm", r(4), r(3, 5), r(5, 4), beta=0.5, alpha=2.0)
case("addmm", torch.full((3, 4), nan), r(3, 5), r(5, 4), beta=0, alpha=1)
case("addmm", torch.randint(0, 9, (3, 4)), torch.randint(0, 9, (3, 2)), torch.randint(0, 9, (2, 4)), beta=2, alpha=3)
case("addmm", r(3, 4, dtype=torch.complex64), r(3, 2, dtype=torch.complex64), r(2, 4, dtype=torch.complex64), beta=2, alpha=1 + 2j)
case("baddbmm", r(3, 1, 4), r(3, 2, 5), r(3, 5, 4), beta=2, alpha=0.5); case("addbmm", r(2, 4), r(3, 2, 5), r(3, 5, 4), beta=2, alpha=0.5)
case("addmv", r(3), r(3, 5), r(5), beta=2, alpha=0.5); case("addr", r(3, 4), r(3), r(4), beta=2, alpha=0.5)
case("outer", r(3), r(4)); case("inner", r(2, 3, 4), r(5, 4)); case("inner", r(3), r(())); case("kron", r(2, 3), r(4, 1)); case("kron", r(2), r(2, 2))
case("linalg_vecdot", r(2, 1, 4), r(3, 4), dim=-1); case("linalg_vecdot", r(2, 4, 3, dtype=torch.complex64), r(2, 4, 3, dtype=torch.complex64), dim=1)
case("linalg_multi_dot", [r(3), r(3, 4), r(4, 2)]); case("linalg_multi_dot", [r(5, 3), r(3, 4), r(4, 2)])
case("bilinear", r(2, 3, 4), r(2, 3, 5), r(6, 4, 5), r(6))
case("tensordot", r(2, 3, 4), r(4, 3, 5), [1, 2], [1, 0])
for eq, shapes in [("ij,jk->ik", [(2, 3), (3, 4)]), ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ii->i", [(4, 4)]), ("ii", [(4, 4)]),
                   ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]), ("ba,ac", [(2, 3), (3, 4)]), ("i,j,k->kij", [(2,), (3,), (4,)]),
                   ("ijk->j", [(2, 3, 4)]), ("bij,bj,bi->b", [(2, 3, 4), (2, 4), (2, 3)]), ("ij,ij->", [(2, 3), (2, 3)]), ("...a->a...", [(2, 3, 4)]),
                   ("ij, jk -> ik", [(2, 1), (1, 4)])]:
    case("einsum", eq, [r(*s) for s in shapes])
# ---- convolution
case("conv1d", r(2, 4, 9), r(6, 4, 3), r(6), [2], [1], [1], 1); case("conv1d", r(4, 9), r(6, 2, 3), None, [1], [2], [2], 2)
case("conv2d", r(2, 3, 8, 9), r(5, 3, 3, 3), r(5), [1, 1], [1, 1]); case("conv2d", r(2, 3, 8, 9), r(5, 3, 3, 2), r(5), [2, 1], [0, 1], [1, 2])
case("conv2d", r(1, 8, 7, 7), r(8, 1, 3, 3), r(8), [1, 1], [1, 1], [1, 1], 8); case("conv2d", r(1, 6, 5, 5).half(), r(4, 3, 3, 3).half(), None, groups=2)
case("conv2d", r(1, 5, 5, 6).permute(0, 3, 1, 2), r(4, 6, 1, 1), r(4)); case("conv2d", r(0, 3, 8, 9), r(5, 3, 3, 3), r(5))
case("conv2d", r(1, 2, 5, 5, dtype=torch.complex64), r(3, 2, 3, 3, dtype=torch.complex64), r(3, dtype=torch.complex64))
case("conv2d.padding", r(1, 2, 6, 7), r(3, 2, 4, 3), r(3), [1, 1], "same", [1, 2]); case("conv2d.padding", r(1, 2, 6, 7), r(3, 2, 4, 3), None, [2, 1], "valid")
case("conv3d", r(1, 2, 4, 5, 6), r(3, 2, 2, 3, 3), r(3), [1, 2, 1], [1, 0, 1])
case("conv_transpose1d", r(2, 4, 5), r(4, 3, 3), r(3), [2], [1], [1], 1, [2])
case("conv_transpose2d.input", r(2, 4, 5, 6), r(4, 3, 3, 2), r(6), [2, 3], [1, 0], [1, 2], 2, [1, 1])
case("conv_transpose3d.input", r(1, 2, 3, 3, 3), r(2, 2, 2, 2, 2), None, [2, 2, 2])
case("convolution", r(2, 4, 5, 6), r(4, 3, 3, 3), r(3), [2, 2], [1, 1], [1, 1], True, [1, 1], 1)
x, w, b = r(2, 4, 5, 6), r(6, 2, 3, 3), r(6)
core("conv", [x, w, b, [1, 1], [1, 1], [1, 1], 2, False, []], F.conv2d(x, w, b, 1, 1, 1, 2))
core("linear", [x, r(3, 6) if False else (w2 := r(3, 6)), None], F.linear(x, w2)); core("matmul", [x, (w2 := r(6, 2))], x @ w2)
# ---- pooling
xp = r(2, 3, 7, 8); xp[0, 0, 1, 1] = nan; xp[1, 2] = -inf
case("max_pool2d", xp, [3, 2], [2, 2], [1, 1]); case("max_pool2d_with_indices", xp, [2, 2], [], [0, 0], [2, 1], True); case("max_pool1d", r(3, 9), [3], [2], [1], [1], True)
case("max_pool3d", r(1, 2, 4, 5, 6), [2, 2, 2]); case("max_pool2d_with_indices", torch.randint(-5, 5, (1, 2, 4, 4)), [2, 2])
for ceil in (False, True):
    for inc in (False, True):
        case("avg_pool2d", r(2, 3, 7, 8), [3, 2], [2, 2], [1, 1], ceil, inc, None)
case("avg_pool2d", r(2, 3, 7, 8), [3, 2], [2, 2], [1, 1], True, True, 5); case("avg_pool1d", r(3, 9), [3], [2], [1], True); case("avg_pool3d", r(1, 2, 4, 5, 6), [2, 3, 2], [2, 2, 2], [1, 1, 1])
case("adaptive_avg_pool2d", r(2, 3, 7, 8), [3, 5]); case("_adaptive_avg_pool2d", r(3, 7, 8), [1, 1]); case("adaptive_avg_pool1d", r(2, 3, 7), [4]); case("adaptive_avg_pool3d", r(1, 2, 4, 5, 6), [2, 3, 4])
case("adaptive_max_pool2d", r(2, 3, 7, 8), [3, 5]); case("adaptive_max_pool1d", r(2, 3, 7), [4])
y, i = F.max_pool2d(r(1, 2, 6, 6), 2, return_indices=True)
case("max_unpool2d", y, i, [6, 6]); case("max_pool2d_with_indices_backward", y, r(1, 2, 6, 6), [2, 2], [2, 2], [0, 0], [1, 1], False, i)
case("fractional_max_pool2d", r(1, 2, 9, 9), [2, 2], [5, 4], torch.rand(1, 2, 2)); case("fractional_max_pool3d", r(1, 2, 7, 8, 9), [2, 2, 2], [3, 4, 5], torch.rand(1, 2, 3))
xq = r(2, 3, 7, 8)
core("max_pool", [xq, [3, 3], [2, 2], [1, 1], [1, 1], False], F.max_pool2d(xq, 3, 2, 1)); core("avg_pool", [xq, [2], [2], [0], False, True, None], F.avg_pool1d(xq.view(6, 7, 8), 2).view(2, 3, 7, 4)) if False else None
core("adaptive_avg_pool", [xq, [2, 3]], F.adaptive_avg_pool2d(xq, (2, 3))); core("avg_pool", [xq, [2, 2], [2, 2], [1, 1], False, False, None], F.avg_pool2d(xq, 2, 2, 1, False, False))
# ---- norms
c4 = lambda: (r(4), r(4), r(4), torch.rand(4) + 0.5)
w, b, m, v = c4()
case("batch_norm", r(3, 4, 5), w, b, m, v, False, 0.1, 1e-5, False); case("batch_norm", r(3, 4, 5, 2), w, b, m, v, True, 0.1, 1e-5, False, after=(3, 4))
case("batch_norm", r(3, 4), None, None, m, v, True, 0.3, 1e-5, False, after=(3, 4)); case("batch_norm", r(3, 4, 2), w, None, None, None, True, 0.3, 1e-5, False)
case("native_batch_norm", r(3, 4, 5), w, b, m, v, True, 0.1, 1e-5, after=(3, 4)); case("_native_batch_norm_legit_no_training", r(3, 4, 5), w, b, m, v, 0.1, 1e-5)
case("_native_batch_norm_legit_functional", r(3, 4, 5), w, b, m, v, True, 0.1, 1e-5); case("_native_batch_norm_legit.no_stats", r(3, 4, 5), w, b, True, 0.1, 1e-5)
case("batch_norm", r(3, 4, 5).bfloat16(), w.bfloat16(), b.bfloat16(), m.bfloat16(), v.bfloat16(), False, 0.1, 1e-5, False)
case("instance_norm", r(3, 4, 5, 2), w, b, m, v, True, 0.1, 1e-5, False, after=(3, 4)); case("instance_norm", r(3, 4, 5), w, b, m, v, False, 0.1, 1e-5, False); case("instance_norm", r(3, 4, 5), None, None, None, None, True, 0.1, 1e-5, False)
case("layer_norm", r(2, 3, 4), [4], w, b); case("layer_norm", r(2, 3, 4), [3, 4], r(3, 4), None, 1e-3); case("layer_norm", r(2, 3, 4).half(), [4], w.half(), b.half()); case("native_layer_norm", r(2, 3, 4), [3, 4], None, None, 1e-5)
case("layer_norm", torch.tensor([[1., nan, 2., 3.], [1e10, -1e10, 0., 1.]]), [4]); case("layer_norm", r(0, 4), [4], w, b)
case("rms_norm", r(2, 3, 4), [4], w); case("rms_norm", r(2, 3, 4), [3, 4], None, 1e-3); case("rms_norm", r(2, 3, 4).bfloat16() * 0.01, [4], w.bfloat16()); case("rms_norm", r(2, 3, 4).half() * 0.01, [4], None)
case("group_norm", r(2, 4, 5, 3), 2, w, b); case("native_group_norm", r(2, 4, 5, 3), w, b, 2, 4, 15, 2, 1e-5); case("group_norm", r(2, 4), 2, w, b)
case("_weight_norm", r(4, 3, 2), r(4, 1, 1), 0); case("_weight_norm", r(4, 3, 2), r(1, 1, 2), 2); case("renorm", r(3, 4) * 3, 2, 0, 1.5); case("renorm", r(3, 4) * 3, 1, 1, 1.5)
x = r(2, 4, 6)
core("batch_norm", [x, w, b, m, v, 1e-5], F.batch_norm(x, m, v, w, b)); core("layer_norm", [x, 2, None, None, 1e-5], F.layer_norm(x, (4, 6))); core("rms_norm", [x, 1, None, 1e-5], F.rms_norm(x, (6,), None, 1e-5)); core("group_norm", [x, 2, w, b, 1e-5], F.group_norm(x, 2, w, b))
# ---- activations
xs = torch.cat([r(40) * 4, torch.tensor([0.0, -0.0, nan, inf, -inf, 30.0, -30.0, 3.0, -3.0, 6.0, 0.5, -0.5, 1.0, -1.0])])
for n, a in [("relu", ()), ("silu", ()), ("relu6", ()), ("hardsigmoid", ()), ("hardswish", ()), ("softplus", ()), ("softplus", (2.0, 3.0)), ("mish", ()), ("elu", ()), ("elu", (0.5, 1.5, 2.0)),
             ("celu", (0.7,)), ("selu", ()), ("leaky_relu", (0.2,)), ("hardtanh", ()), ("hardtanh", (-2.0, 0.5)), ("hardshrink", (0.5,)), ("softshrink", (0.5,)), ("threshold", (0.5, 9.0)), ("log_sigmoid", ()), ("gelu", ()), ("rrelu", ())]:
    case(n, xs, *a, tol=(2e-5, 1e-6))
case("gelu", xs[:40], approximate="tanh"); case("gelu", xs[:40].bfloat16()); case("silu", xs[:40].half()); case("relu", torch.randint(-5, 5, (7,))); case("hardtanh", torch.randint(-5, 5, (7,)), -2, 2)
case("prelu", r(2, 3, 4), r(3)); case("prelu", r(2, 3), r(1)); case("glu", r(2, 6, 3), 1)
case("relu", r(0)); case("silu", r(3, 4).t())
# ---- softmax
case("softmax.int", r(2, 5, 3), 1); case("log_softmax.int", r(2, 5, 3), -1); case("softmax.int", r(2, 5).half(), 1, torch.float32); case("softmax.int", torch.randint(0, 5, (2, 5)), 1, torch.float32)
case("softmax.int", torch.tensor([[1., inf, 2.], [-inf, -inf, -inf], [1., nan, 0.], [-inf, 1., 0.]]), 1); case("_safe_softmax", torch.tensor([[1., 2., 2.], [-inf, -inf, -inf], [1., nan, 0.]]), 1)
case("_softmax", r(3, 4), 0, False); case("_log_softmax", r(3, 4), 1, False); case("softmax.int", r(()), 0); case("softmax.int", r(0, 3), 1)
case("_softmax_backward_data", r(3, 4), torch.softmax(r(3, 4), 1), 1, torch.float32)
# ---- attention
q, k, v = r(2, 3, 5, 8), r(2, 3, 7, 8), r(2, 3, 7, 6)
case("scaled_dot_product_attention", q, k, v); case("scaled_dot_product_attention", q, k, v, r(5, 7)); case("scaled_dot_product_attention", q, k, v, torch.rand(2, 1, 5, 7) > 0.4, scale=0.3)
mk = torch.rand(2, 1, 5, 7) > 0.4; mk[0, 0, 2] = False
case("scaled_dot_product_attention", q, k, v, mk); case("scaled_dot_product_attention", q, k, v, None, 0.0, True); case("scaled_dot_product_attention", r(2, 6, 5, 8), k, v, None, 0.0, True, enable_gqa=True)
case("scaled_dot_product_attention", q[0, 0], k[0, 0], v[0, 0]); case("scaled_dot_product_attention", r(1, 2, 130, 16), r(1, 2, 130, 16), r(1, 2, 130, 16), None, 0.0, True); case("scaled_dot_product_attention", q.bfloat16(), k.bfloat16(), v.bfloat16())
core("attention", [q, k, v, mk, False, None], F.scaled_dot_product_attention(q, k, v, mk)); core("attention", [(q6 := r(2, 6, 5, 8)), k, v, None, True, 0.2], F.scaled_dot_product_attention(q6, k, v, is_causal=True, scale=0.2, enable_gqa=True))
# ---- recurrent
for kind in ("LSTM", "GRU", "RNN"):
    for bi, bf, bias, layers in [(False, False, True, 1), (True, True, True, 2), (True, False, False, 1)]:
        m = getattr(torch.nn, kind)(5, 4, layers, bias=bias, bidirectional=bi, batch_first=bf)
        x = r(3, 6, 5)
        n = (3 if bf else 6)
        h = r(layers * (2 if bi else 1), n, 4)
        p = [t.detach() for t in m._flat_weights]
        if kind == "LSTM": case("lstm.input", x, [h, r(*h.shape)], p, bias, layers, 0.0, False, bi, bf)
        else: case("gru.input" if kind == "GRU" else "rnn_tanh.input", x, h, p, bias, layers, 0.0, False, bi, bf)
m = torch.nn.LSTM(5, 6, 2, proj_size=3)
case("lstm.input", r(4, 2, 5), [r(2, 2, 3), r(2, 2, 6)], [t.detach() for t in m._flat_weights], True, 2, 0.0, False, False, False)
p = [t.detach() for t in torch.nn.RNN(5, 4, 1, nonlinearity="relu")._flat_weights]
case("rnn_relu.input", r(4, 2, 5), r(1, 2, 4), p, True, 1, 0.0, False, False, False)
case("lstm_cell", r(3, 5), [r(3, 4), r(3, 4)], r(16, 5), r(16, 4), r(16), r(16)); case("gru_cell", r(3, 5), r(3, 4), r(12, 5), r(12, 4), r(12), r(12)); case("rnn_tanh_cell", r(3, 5), r(3, 4), r(4, 5), r(4, 4)); case("rnn_relu_cell", r(3, 5), r(3, 4), r(4, 5), r(4, 4), r(4), r(4))
m = torch.nn.LSTM(5, 4, 2, bidirectional=True, batch_first=True); x = r(3, 6, 5); h, c = r(4, 3, 4), r(4, 3, 4)
o, (hn, cn) = m(x, (h, c)); core("lstm", [x, h, c, [t.detach() for t in m._flat_weights], True, 2, True, True], [o, hn, cn])
m = torch.nn.GRU(5, 4, 1); x = r(3, 6, 5); h = r(1, 6, 4); o, hn = m(x, h); core("gru", [x, h, [t.detach() for t in m._flat_weights], True, 1, False, False], [o, hn])
# ---- resampling
for s in ([7, 9], [12, 10], [3, 2], [6, 5], [13, 17]):
    x = r(1, 2, 6, 5)
    case("upsample_nearest2d.vec", x, s, None); case("upsample_bilinear2d.vec", x, s, False, None); case("upsample_bilinear2d.vec", x, s, True, None); case("upsample_bicubic2d.vec", x, s, False, None); case("upsample_bicubic2d.vec", x, s, True, None); case("_upsample_bilinear2d_aa.vec", x, s, False, None)
for f in ([2.0, 2.0], [1.7, 0.6], [0.5, 2.5]):
    case("upsample_nearest2d.vec", x, None, f); case("upsample_bilinear2d.vec", x, None, False, f); case("upsample_bicubic2d.vec", x, None, False, f); case("_upsample_bilinear2d_aa.vec", x, None, False, f)
case("_upsample_bilinear2d_aa", x, [3, 4], True); case("upsample_linear1d.vec", r(1, 2, 7), [12], False, None); case("upsample_trilinear3d.vec", r(1, 2, 3, 4, 5), [5, 3, 9], True, None); case("upsample_nearest1d.vec", r(1, 2, 7), None, [1.3]); case("_upsample_nearest_exact1d.vec", r(1, 2, 7), [11], None)
core("upsample", [x, [12, 10], "bilinear", False, None], F.interpolate(x, (12, 10), mode="bilinear"))
g = torch.rand(2, 4, 5, 2) * 2.6 - 1.3; g[0, 0, 0, 0] = nan
for mode in (0, 1, 2):
    for pad in (0, 1, 2):
        for al in (False, True):
            case("grid_sampler", r(2, 3, 6, 7), g, mode, pad, al, tol=(1e-4, 1e-5))
case("grid_sampler_3d", r(1, 2, 4, 5, 6), torch.rand(1, 2, 3, 4, 3) * 2.6 - 1.3, 0, 2, False)
case("pixel_shuffle", r(2, 8, 3, 4), 2); case("pixel_unshuffle", r(2, 2, 6, 4), 2); case("channel_shuffle", r(2, 6, 3, 2), 3)
# ---- padding, patches, tables
for m in ("reflect", "replicate", "circular"):
    case("pad", r(2, 3, 5, 6), [2, 1, 1, 3], m)
case("pad", r(2, 3), [1, -1, 0, 2], "constant", 1.5); case("constant_pad_nd", torch.randint(0, 9, (2, 3)), [1, 2], 7); case("constant_pad_nd", r(2, 3, 4).transpose(1, 2), [0, 1, 2, 0], -1.0); case("constant_pad_nd", torch.ones(2, 3, dtype=torch.bool), [1, 2], 0)
case("im2col", r(2, 3, 6, 7), [2, 3], [1, 2], [1, 0], [2, 1]); case("im2col", r(3, 6, 7), [2, 2], [1, 1], [0, 0], [1, 1]); case("unfold", r(3, 8), 1, 3, 2); case("unfold_copy", r(8), 0, 3, 2)
case("embedding", r(7, 4), torch.tensor([[1, 6], [0, 3]])); case("embedding", r(4, 7).t().half(), torch.tensor([1, 6, 0], dtype=torch.int32)); case("embedding", r(7, 4), torch.zeros(0, 2, dtype=torch.int64))
# ---- random: shape and dtype only
so = dict(shape_only=True)
case("rand", [2, 3], **so); case("randn", [0, 3], dtype=torch.float16, **so); case("rand_like", r(3, 2).double(), **so); case("randn_like", r(3, 2).bfloat16(), **so); case("randint", 7, [3], **so); case("randint.low", -3, 7, [3, 2], dtype=torch.int32, **so)
case("randint_like", torch.zeros(3, dtype=torch.int64), 5, **so); case("normal.float_float", 1.0, 2.0, [3], **so); case("normal.Tensor_float", r(3), 2.0, **so); case("normal.Tensor_Tensor", r(3), torch.rand(2, 3), **so); case("bernoulli", torch.rand(4), **so)
case("multinomial", torch.rand(2, 5), 3, **so); case("multinomial", torch.rand(5), 8, True, **so); case("exponential", r(5), **so); case("uniform", r(5), **so); case("native_dropout", r(3, 4), 0.5, True, **so); case("dropout", r(3, 4), 0.5, True, **so); case("alpha_dropout", r(3, 4), 0.5, True, **so)
case("dropout", r(3, 4), 0.5, False); case("native_dropout", r(3, 4), 0.5, False); case("multinomial", torch.tensor([0., 1., 0.]), 1); case("bernoulli", torch.tensor([0., 1., 1.])); case("feature_dropout", r(2, 3, 4), 0.5, True, **so); case("native_dropout_backward", r(3, 4), torch.rand(3, 4) > 0.5, 2.0)
# ---- distances and norms
for p in (2.0, 1.0, 0.0, 3.0, inf):
    case("cdist", r(2, 4, 3), r(5, 3), p, None, tol=(1e-4, 1e-5)); case("linalg_vector_norm", r(3, 4, 2), p, [0, 2], True, tol=(1e-4, 1e-6)); case("pdist", r(4, 3), p); case("pairwise_distance", r(4, 3), r(3), p)
case("linalg_vector_norm", r(3, 4), -inf); case("linalg_vector_norm", r(3, 4), 2); case("linalg_vector_norm", r(3, 4, dtype=torch.complex64), 2, [1]); case("_cdist_forward", r(4, 3), r(5, 3), 2.0, None, tol=(1e-4, 1e-5)); case("linalg_vector_norm", torch.tensor([1., nan, 3.]), inf)
case("cosine_similarity", r(4, 3, 2), r(4, 3, 2), 1); case("cosine_similarity", r(4, 1, 2), r(3, 2), -1); case("pairwise_distance", r(4, 3), r(4, 3), keepdim=True); case("cross", r(2, 3), r(2, 3)); case("linalg_cross", r(3, 2), r(3, 2), dim=0)
case("linalg_norm", r(3, 4)); case("linalg_norm", r(3, 4), 1); case("linalg_norm", r(3, 4), -2); case("linalg_norm", r(3, 4), 2, [0, 1], True); case("linalg_norm", r(2, 3, 4), inf, [1]); case("linalg_norm", r(2, 3, 4), inf, [1, 2]); case("linalg_matrix_norm.str_ord", r(2, 3, 4), "nuc"); case("linalg_matrix_norm.str_ord", r(2, 3, 4), "fro", [0, 1], True)
# ---- linear algebra
T = (1e-3, 1e-4)
A, S, B = r(2, 4, 4), None, r(2, 4, 3)
S = A @ A.transpose(1, 2) + torch.eye(4)
case("linalg_inv", S, tol=T); case("linalg_inv_ex", S, tol=T); case("linalg_det", A, tol=T); case("linalg_slogdet", A, tol=T); case("logdet", S, tol=T); case("linalg_solve", A, B, tol=T); case("linalg_solve", A[0], r(4), tol=T); case("linalg_solve", A, r(2, 3, 4), left=False, tol=T); case("linalg_solve_ex", A, r(2, 4), tol=T)
case("linalg_lu_factor", A, tol=T); case("linalg_lu", r(4, 3), tol=T); case("linalg_lu", r(3, 5), tol=T); LU, pv = torch.linalg.lu_factor(A); case("linalg_lu_solve", LU, pv, B, tol=T); case("linalg_lu_solve", LU, pv, r(2, 3, 4), left=False, adjoint=True, tol=T); case("lu_unpack", LU, pv, tol=T); case("lu_solve", B, LU, pv, tol=T)
case("linalg_cholesky", S, tol=T); case("linalg_cholesky", S, upper=True, tol=T); case("linalg_cholesky_ex", S, tol=T); L = torch.linalg.cholesky(S); case("cholesky_solve", B, L, tol=T); case("cholesky_inverse", L, tol=T); case("cholesky_solve", B, L.mT, True, tol=T)
case("linalg_qr", r(2, 5, 3), tol=T); case("linalg_qr", r(3, 5), "complete", tol=T); case("linalg_qr", r(5, 3), "complete", tol=T); case("linalg_qr", r(5, 3), "r", tol=T); case("geqrf", r(5, 3), tol=T); a, tau = torch.geqrf(r(2, 5, 3)); case("linalg_householder_product", a, tau, tol=T); case("ormqr", a, tau, r(2, 5, 2), tol=T); case("ormqr", a, tau, r(2, 2, 5), False, True, tol=T)
case("linalg_solve_triangular", S, B, upper=True, tol=T); case("linalg_solve_triangular", S, r(2, 3, 4), upper=False, left=False, unitriangular=True, tol=T); case("triangular_solve", B, S, True, True, tol=T)
case("linalg_eigvalsh", S, tol=T); case("linalg_svdvals", r(2, 5, 3), tol=T); case("linalg_svdvals", r(3, 5), tol=T); case("linalg_pinv.atol_rtol_float", r(2, 5, 3), tol=T); case("pinverse", r(3, 5), tol=T); case("linalg_matrix_rank.atol_rtol_tensor", r(5, 2) @ r(2, 6)); case("linalg_matrix_power", A, 5, tol=T); case("linalg_matrix_power", S, -2, tol=T); case("linalg_matrix_power", A, 0); case("matrix_exp", A, tol=T)
case("linalg_cond", S, tol=T); case("linalg_cond", S, 1, tol=T); case("linalg_vander", r(2, 3), N=4); case("linalg_tensorinv", r(2, 3, 6), 2, tol=T); case("linalg_tensorsolve", r(2, 3, 6), r(2, 3), tol=T); case("matrix_H", r(3, 2)); case("linalg_diagonal", r(2, 3, 4), offset=1); case("linalg_ldl_factor", S, tol=T); ld, pv = torch.linalg.ldl_factor(r(4, 4)); case("linalg_ldl_solve", ld, pv, r(4, 2), tol=T)
# ---- Fourier
for n in (8, 7, 12, 1):
    xc, xr = r(3, n, dtype=torch.complex64), r(3, n)
    for f in ("fft", "ifft", "hfft"):
        if not (f == "hfft" and n == 1): case("fft_" + f, xc)
    for f in ("rfft", "ihfft"): case("fft_" + f, xr)
    if n > 1: case("fft_irfft", xc); case("fft_irfft", xc, 2 * n - 1, norm="ortho")
case("fft_fft", r(3, 5), 8, 0, "forward"); case("fft_fft2", r(2, 3, 4)); case("fft_fftn", r(2, 3, 4), [4, 2]); case("fft_rfftn", r(2, 3, 4), None, [2, 0], "ortho"); case("fft_irfftn", r(2, 3, 4, dtype=torch.complex64), [5], [1]); case("fft_irfft2", r(2, 3, 4, dtype=torch.complex64)); case("fft_ifftn", r(3, 4)); case("fft_hfft2", r(3, 4, dtype=torch.complex64)); case("fft_ihfftn", r(3, 4)); case("fft_fftshift", r(4, 5)); case("fft_ifftshift", r(4, 5), [1])
case("_fft_r2c", r(3, 6), [0, 1], 0, True); case("_fft_c2r", r(3, 4, dtype=torch.complex64), [0, 1], 2, 7)
w = torch.hann_window(8); case("hann_window", 7); case("stft", r(2, 32), 8, 4, 8, w, False, True, True); case("stft", r(32), 8, 3, 6, torch.hann_window(6), True, False, True); case("stft", r(2, 32), 8, 4, 8, None, False, True, False)
sp = torch.stft(r(2, 32), 8, 4, 8, w, return_complex=True); case("istft", sp, 8, 4, 8, w); case("istft", sp, 8, 4, 8, w, length=30); case("istft", torch.stft(r(32), 8, 2, window=w, return_complex=True, normalized=True), 8, 2, 8, w, normalized=True)
# ---- losses
x, y = r(4, 5), r(4, 5)
for red in (0, 1, 2):
    case("mse_loss", x, y, red); case("l1_loss", x, y, red); case("smooth_l1_loss", x, y, red, 0.7); case("huber_loss", x, y, red, 0.7); case("soft_margin_loss", x, y.sign(), red); case("hinge_embedding_loss", x, y.sign(), 0.7, red); case("kl_div", x, torch.rand(4, 5), red); case("kl_div", x, y, red, log_target=True); case("poisson_nll_loss", x, torch.rand(4, 5) * 4, True, True, 1e-8, red)
    case("binary_cross_entropy", torch.rand(4, 5), torch.rand(4, 5), torch.rand(5), red); case("binary_cross_entropy_with_logits", x, torch.rand(4, 5), torch.rand(4, 5), torch.rand(5), red)
    t = torch.tensor([1, 0, 4, 2]); case("cross_entropy_loss", x, t, torch.rand(5), red, 0, 0.0); case("cross_entropy_loss", x, t, torch.rand(5), red, -100, 0.2); case("cross_entropy_loss", x, torch.softmax(y, 1), torch.rand(5), red, -100, 0.1); case("nll_loss_nd", torch.log_softmax(r(2, 5, 3), 1), torch.tensor([[1, 0, 4], [2, 2, 0]]), None, red, 2)
    case("multi_margin_loss", x, t, 2, 0.7, torch.rand(5), red); case("multilabel_margin_loss", x, torch.tensor([[1, 3, -1, 0, 0], [0, -1, 2, 3, 4], [4, 1, 2, 0, 3], [-1, 0, 0, 0, 0]]), red); case("margin_ranking_loss", x, y, r(4, 5).sign(), 0.3, red); case("cosine_embedding_loss", x, y, torch.tensor([1., -1., 1., -1.]), 0.1, red); case("triplet_margin_loss", x, y, r(4, 5), 1.0, 2.0, 1e-6, True, red)
case("cross_entropy_loss", r(5), torch.tensor(3)); case("cross_entropy_loss", r(2, 5, 3), torch.tensor([[1, 0, 4], [2, 2, 0]]), None, 1, -100, 0.1)
# ---- special functions
u = torch.cat([r(20) * 3, torch.tensor([0.0, nan, inf, -inf, 1.0, -1.0, 0.5, 40.0, -40.0])]).double(); pos = torch.cat([torch.rand(20) * 8, torch.tensor([1.0, 2.0, 0.5, 30.0])]).double(); T = (1e-9, 1e-11)
for n in ("digamma", "lgamma", "i0", "special_i0", "special_i0e", "special_i1", "special_i1e", "special_erfcx", "special_ndtr", "special_log_ndtr", "special_entr", "special_spherical_bessel_j0", "special_modified_bessel_i0", "special_modified_bessel_i1"): case(n, u, tol=T)
for n in ("special_modified_bessel_k0", "special_modified_bessel_k1", "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1"): case(n, pos, tol=T)
for n in ("special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1"): case(n, pos if "y" in n[-2:] else u, tol=(1e-4, 1e-6))  # torch itself is not closer
case("special_airy_ai", torch.cat([u, r(20).double() * 12]), tol=(1e-6, 1e-7)); q = torch.cat([torch.rand(20), torch.tensor([0.0, 1.0, 0.5, 1e-10, -2.0])]).double(); case("erfinv", q * 2 - 1, tol=T); case("special_ndtri", q, tol=T); case("igamma", pos, torch.rand(24).double() * 10, tol=T); case("igammac", pos, torch.rand(24).double() * 10, tol=T); case("special_zeta", pos + 1.1, torch.rand(24).double() * 10 + 0.1, tol=T); case("special_xlog1py", torch.tensor([0.0, 1.0, 2.0, 0.0]), torch.tensor([-1.0, 0.5, 3.0, nan])); case("polygamma", 0, u, tol=T); case("polygamma", 3, pos, tol=T); case("mvlgamma", pos + 3, 3, tol=T)
xx, nn = torch.rand(30).double() * 2.4 - 1.2, torch.randint(-1, 12, (30,)).double(); xx[:2] = torch.tensor([1.0, -1.0])
for n in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"): case("special_" + n, xx, nn, tol=(1e-8, 1e-9))
# ---- the rest
case("histc", r(50), 7, -2, 2); case("histc", r(50), 5); case("trapezoid.dx", r(3, 4), dx=0.5, dim=0); case("trapezoid.x", r(3, 4), r(4).sort().values); case("cumulative_trapezoid.x", r(3, 4), r(3, 4), dim=0); case("cumulative_trapezoid.dx", r(3, 4)); case("trapz.dx", r(3, 4)); case("quantile.scalar", r(3, 5), 0.3, 1); case("quantile.scalar", r(3, 5), 0.3, 0, True, interpolation="nearest"); case("quantile.scalar", r(3, 5), 0.3); case("nanquantile.scalar", torch.tensor([[1.0, nan, 3.0], [nan, nan, nan]]), 0.6, 1)
# ---- further forms of the operators above
case("linalg_matmul", r(3, 4), r(4, 2)); case("_int_mm", torch.randint(-9, 9, (17, 8), dtype=torch.int8), torch.randint(-9, 9, (8, 8), dtype=torch.int8)); case("ger", r(3), r(2)); case("_convolution", r(1, 2, 5), r(3, 2, 3), None, [1], [1], [1], False, [0], 1, False, False, True, True); case("_convolution_mode", r(1, 2, 5), r(3, 2, 3), None, [1], "same", [1], 1)
case("_adaptive_avg_pool3d", r(1, 2, 4, 5, 6), [2, 3, 1]); case("_prelu_kernel", r(2, 3, 4), r(3, 1)); case("special_softmax", r(2, 3), 1); case("special_log_softmax", r(2, 3), 1); x = r(2, 3); cases.append({"op": "aten.log_sigmoid_forward", "args": [encode(x)], "out": results([F.logsigmoid(x)], None, False)})
q, k, v = r(2, 3, 5, 8), r(2, 3, 7, 8), r(2, 3, 7, 8)
case("_scaled_dot_product_flash_attention_for_cpu", q, k, v); case("_scaled_dot_product_flash_attention_for_cpu", q, k, v, 0.0, True, scale=0.3); case("_scaled_dot_product_flash_attention_for_cpu", q, k, v, attn_mask=r(5, 7)); case("scaled_dot_product_attention", q.transpose(1, 2).contiguous().transpose(1, 2), k, v)
for kind in ("LSTM", "GRU", "RNN"):
    m = getattr(torch.nn, kind)(5, 4, 2, bidirectional=True); pk = torch.nn.utils.rnn.pack_padded_sequence(r(6, 3, 5), torch.tensor([6, 4, 1])); h = r(4, 3, 4); p = [t.detach() for t in m._flat_weights]
    if kind == "LSTM": case("lstm.data", pk.data, pk.batch_sizes, [h, r(4, 3, 4)], p, True, 2, 0.0, False, True)
    else: case("gru.data" if kind == "GRU" else "rnn_tanh.data", pk.data, pk.batch_sizes, h, p, True, 2, 0.0, False, True)
x3, x2, x1 = r(1, 2, 3, 4, 5), r(1, 2, 6, 5), r(1, 2, 7)
for n, x, s in [("upsample_nearest1d", x1, [11]), ("upsample_nearest2d", x2, [9, 8]), ("upsample_nearest3d", x3, [5, 7, 6]), ("_upsample_nearest_exact1d", x1, [11]), ("_upsample_nearest_exact2d", x2, [9, 8]), ("_upsample_nearest_exact3d", x3, [5, 7, 6])]: case(n, x, s)
for n, x, s in [("upsample_linear1d", x1, [11]), ("upsample_bilinear2d", x2, [9, 8]), ("upsample_trilinear3d", x3, [5, 7, 6]), ("upsample_bicubic2d", x2, [9, 8]), ("_upsample_bicubic2d_aa", x2, [4, 9])]:
    for al in (False, True): case(n, x, s, al)
case("upsample_nearest3d.vec", x3, None, [1.5, 2.0, 0.7]); case("_upsample_nearest_exact2d.vec", x2, None, [1.5, 0.7]); case("_upsample_bicubic2d_aa.vec", x2, [3, 2], False, None); case("upsample_bilinear2d", x2, [9, 8], False, 1.5, 1.7)
case("native_channel_shuffle", r(2, 6, 3, 2), 3); case("affine_grid_generator", r(2, 2, 3), [2, 3, 4, 5], False); case("affine_grid_generator", r(2, 3, 4), [2, 3, 4, 5, 3], True)
for n, x, pd in [("reflection_pad1d", r(2, 3, 5), [2, 1]), ("reflection_pad2d", r(2, 3, 5, 4), [2, 1, 3, 0]), ("reflection_pad3d", r(1, 2, 3, 4, 5), [1, 2, 0, 1, 1, 1]), ("replication_pad1d", r(2, 3, 5), [2, 7]), ("replication_pad2d", r(2, 3, 5, 4), [2, 1, 3, 0]), ("replication_pad3d", r(1, 2, 3, 4, 5), [1, 2, 0, 1, 1, 1]), ("_pad_circular", r(2, 3, 5), [2, 1])]: case(n, x, pd)
case("col2im", r(2, 18, 12), [6, 7], [2, 3], [1, 2], [1, 0], [2, 1]) if False else None; case("col2im", torch.ops.aten.im2col(r(2, 3, 6, 7), [2, 3], [1, 2], [1, 0], [2, 1]), [6, 7], [2, 3], [1, 2], [1, 0], [2, 1])
lp, t = torch.log_softmax(r(4, 5), 1), torch.tensor([1, 0, 4, 2])
for red in (0, 1, 2): case("nll_loss", lp, t, torch.rand(5), red, 0); case("nll_loss_forward", lp, t, torch.rand(5), red, 0); case("nll_loss2d_forward", torch.log_softmax(r(2, 5, 3, 2), 1), torch.randint(0, 5, (2, 3, 2)), None, red, 2)
lp = torch.log_softmax(r(9, 3, 5), 2)
for red in (0, 1, 2): case("ctc_loss.IntList", lp, torch.randint(1, 5, (3, 4)), [9, 8, 7], [4, 2, 0], 0, red); case("ctc_loss.Tensor", lp, torch.tensor([1, 1, 2, 3, 4, 4, 4]), torch.tensor([9, 9, 9]), torch.tensor([3, 1, 3]), 0, red, True)
case("ctc_loss.IntList", lp[:2], torch.tensor([[1, 1, 2, 3]] * 3), [2, 2, 2], [4, 4, 4], 0, 0); case("_fft_c2c", r(3, 5, dtype=torch.complex64), [1, 0], 1, True); case("_fft_c2c", r(3, 5, dtype=torch.complex64), [1], 2, False); case("fft_fftfreq", 7, 0.5); case("fft_rfftfreq", 8); case("stft.center", r(2, 32), 8, 4, 8, torch.hann_window(8), True, "reflect", False, True, True); case("stft.center", r(32), 8, 4, 8, None, True, "constant", False, True, True)
for n in ("hann_window.periodic", "hamming_window.periodic", "blackman_window.periodic", "bartlett_window.periodic", "kaiser_window.periodic"): case(n, 7, False); case(n, 8, True)
case("hamming_window.periodic_alpha_beta", 7, False, 0.6, 0.3); case("kaiser_window.beta", 7, True, 5.0); case("blackman_window", 1)
T = (1e-3, 1e-4); A = r(2, 4, 4); S = A @ A.mT + torch.eye(4)
for n in ("det", "slogdet", "_linalg_det", "_linalg_slogdet", "linalg_matrix_exp"): case(n, A, tol=T)
case("inverse", S, tol=T); case("matrix_power", A, 3, tol=T); case("_linalg_solve_ex", A, r(2, 4, 3), tol=T); case("linalg_lstsq", r(5, 3), r(5, 2), tol=T); case("linalg_lstsq", r(2, 3, 5), r(2, 3, 2), tol=T); case("linalg_lstsq", r(5, 3), r(5, 2), driver="gelsd", tol=T); case("linalg_lstsq", r(5, 3), r(5, 2), driver="gels", tol=T); case("linalg_matrix_rank", r(5, 2) @ r(2, 6), 1e-4); case("linalg_pinv", r(3, 5), 1e-5, tol=T); case("linalg_cond.p_str", S, "fro", tol=T); case("linalg_cond.p_str", S, "nuc", tol=T); I = r(5, 5); I = I + I.T; I[0, 0] = 0; case("linalg_ldl_factor_ex", I, tol=T); case("linalg_ldl_factor", torch.tensor([[0.0, 1.0], [1.0, 0.0]]), tol=T); case("linalg_ldl_factor_ex", (lambda B: B + B.mT)(r(3, 7, 7)), tol=T)
case("linalg_norm.ord_str", r(3, 4), "nuc", tol=T); case("linalg_matrix_norm", r(2, 3, 4), 2, tol=T); case("linalg_matrix_norm", r(2, 3, 4), -1, [0, 2], True); case("nuclear_norm", r(3, 4), tol=T); case("norm.Scalar", r(3, 4), 3); case("norm.ScalarOpt_dim", r(3, 4), None, [1]); case("frobenius_norm.dim", r(3, 4), [0, 1], True); case("_pdist_forward", r(4, 3), 2.0); case("_euclidean_dist", r(4, 3), r(5, 3), tol=(1e-4, 1e-4)); case("cov", r(3, 6)); case("cov", r(3, 6), correction=0, fweights=torch.randint(1, 4, (6,)), aweights=torch.rand(6)); case("corrcoef", r(3, 6))
so = dict(shape_only=True); case("randperm", 9, **so); case("bernoulli.p", r(4), 0.3, **so); case("normal.float_Tensor", 1.0, torch.rand(3), **so); case("random", r(4), **so); case("random.from", torch.zeros(3, dtype=torch.int64), -3, 5, **so); case("random.to", torch.zeros(3, dtype=torch.uint8), 5, **so); case("poisson", torch.rand(4) * 9, **so); case("binomial", torch.full((3,), 9.0), torch.rand(3), **so); case("poisson", torch.zeros(3)); case("randperm", 0)
case("fake_quantize_per_tensor_affine", r(20) * 3, 0.1, 3, -20, 20); case("fake_quantize_per_channel_affine", r(3, 4), torch.rand(4) + 0.1, torch.tensor([0, 1, -1, 2], dtype=torch.int32), 1, -8, 7); case("fake_quantize_per_tensor_affine_cachemask", r(20) * 3, 0.1, 3, -20, 20)
case("special_gammaln", torch.rand(4)); case("special_chebyshev_polynomial_t.n_scalar", torch.rand(4), 3); case("special_zeta.self_scalar", 2.5, torch.rand(4) + 1); case("special_multigammaln", torch.rand(4) + 3, 3)
case("istft", torch.stft(r(32), 8, 2, window=torch.hann_window(8), return_complex=True, onesided=False), 8, 2, 8, torch.hann_window(8)); case("istft", torch.stft(r(32, dtype=torch.complex64), 8, 2, window=torch.hann_window(8), return_complex=True), 8, 2, 8, torch.hann_window(8), return_complex=True)
case("embedding_bag.padding_idx", r(7, 4), torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 2]), False, 0, False, None, False, 4); case("embedding_bag", r(7, 4), torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 2]), False, 1); case("_embedding_bag_forward_only", r(7, 4), torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 2, 6]), False, 2, False, None, True)
case("upsample_bilinear2d.vec", torch.randint(0, 255, (1, 3, 6, 5), dtype=torch.uint8), [9, 4], False, None, tol=(0, 1.01)); case("cov", r(1, 6)); case("corrcoef", r(6)); case("linalg_vander", r(()), N=3)
# ---- third batch
q, k, v = r(2, 3, 5, 8), r(2, 3, 7, 8), r(2, 3, 7, 8); core("aten._scaled_dot_product_efficient_attention", [q, k, v, (bias := r(2, 3, 5, 7)), False, 0.0, False, None], [F.scaled_dot_product_attention(q, k, v, bias)]); core("aten._scaled_dot_product_attention_math", [q, k, v, None, 0.0, False, None, None, False], [F.scaled_dot_product_attention(q, k, v)])
x, ln = r(3, 6, 4), torch.tensor([6, 4, 1]); case("_pack_padded_sequence", x, ln, True); case("_pack_padded_sequence", x.transpose(0, 1), ln, False); pk = torch.nn.utils.rnn.pack_padded_sequence(x, ln, batch_first=True); case("_pad_packed_sequence", pk.data, pk.batch_sizes, True, 0.5, 8); case("_pad_packed_sequence", pk.data, pk.batch_sizes, False, 0.0, -1)
case("quantile", r(3, 5), torch.tensor([0.1, 0.5]), 1, True); case("quantile", r(3, 5), torch.tensor(0.7)); case("nanquantile", torch.tensor([[1.0, nan, 3.0], [nan, nan, nan]]), torch.tensor([0.0, 0.6]), 1, interpolation="midpoint")
case("_trilinear", r(2, 3), r(5, 3, 4), r(2, 4), [1, 3], [0], [1, 2], [2, 3]); lp = torch.log_softmax(r(9, 3, 5), 2); case("_ctc_loss", lp, torch.randint(1, 5, (3, 4)), [9, 9, 9], [4, 4, 4]); core("aten._weight_int8pack_mm", [(x := r(3, 8)), (w := torch.randint(-128, 127, (5, 8), dtype=torch.int8)), (s := torch.rand(5))], [(x @ w.float().t()) * s], tol=(1e-4, 1e-3))
w, b, m, v = c4(); xx = r(3, 4, 5); core("aten._batch_norm_no_update", [xx, w, b, m, v, 0.1, 1e-5], [F.batch_norm(xx, m, v, w, b)])
