/* Activations: element-wise in double; integers, where torch takes them, exactly. */
#include "backends/reference/nn.h"
#include "backends/reference/pointwise.h"

typedef struct activation {
  const char *name; /* operator without "aten." */
  ait_nn_fn1 fn;
  uint32_t params; /* scalar arguments after the tensor, handed to fn in order */
} activation;

static double relu(double x, const double *p) {
  AIT_UNUSED(p);
  return x < 0 ? 0 : x;
}
static double silu(double x, const double *p) {
  AIT_UNUSED(p);
  return x / (1 + exp(-x));
}
static double relu6(double x, const double *p) {
  AIT_UNUSED(p);
  return x < 0 ? 0 : x > 6 ? 6 : x;
}
static double hardsigmoid(double x, const double *p) { return relu6(x + 3, p) / 6; }
static double hardswish(double x, const double *p) { return x * relu6(x + 3, p) / 6; }
static double softplus(double x, const double *p) { return x * p[0] > p[1] ? x : log1p(exp(x * p[0])) / p[0]; }
static double mish(double x, const double *p) {
  AIT_UNUSED(p);
  return x * tanh(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)));
}
static double elu(double x, const double *p) { return x > 0 ? x * p[1] : expm1(x * p[2]) * p[0] * p[1]; }
static double celu(double x, const double *p) { return x > 0 ? x : p[0] * expm1(x / p[0]); }
static double selu(double x, const double *p) {
  AIT_UNUSED(p);
  const double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  return x > 0 ? x * scale : expm1(x) * alpha * scale;
}
static double leaky_relu(double x, const double *p) { return x > 0 ? x : x * p[0]; }
static double hardtanh(double x, const double *p) { return x < p[0] ? p[0] : x > p[1] ? p[1] : x; }
static double hardshrink(double x, const double *p) { return x >= -p[0] && x <= p[0] ? 0 : x; }
static double softshrink(double x, const double *p) { return x > p[0] ? x - p[0] : x < -p[0] ? x + p[0] : x * 0; }
static double threshold(double x, const double *p) { return x <= p[0] ? p[1] : x; }
static double log_sigmoid(double x, const double *p) {
  AIT_UNUSED(p);
  return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
}
/* rrelu outside training: the middle of its range */
static double rrelu(double x, const double *p) { return x >= 0 ? x : x * (p[0] + p[1]) / 2; }
static double gelu_exact(double x, const double *p) {
  AIT_UNUSED(p);
  return 0.5 * x * erfc(-x * M_SQRT1_2);
}
static double gelu_tanh(double x, const double *p) {
  AIT_UNUSED(p);
  return 0.5 * x * (1 + tanh(M_SQRT2 * M_2_SQRTPI * 0.5 * (x + 0.044715 * x * x * x)));
}

static const activation activations[] = {
    {"relu", relu, 0},
    {"silu", silu, 0},
    {"relu6", relu6, 0},
    {"hardsigmoid", hardsigmoid, 0},
    {"hardswish", hardswish, 0},
    {"softplus", softplus, 2},
    {"mish", mish, 0},
    {"elu", elu, 3},
    {"celu", celu, 1},
    {"selu", selu, 0},
    {"leaky_relu", leaky_relu, 1},
    {"hardtanh", hardtanh, 2},
    {"hardshrink", hardshrink, 1},
    {"softshrink", softshrink, 1},
    {"threshold", threshold, 2},
    {"log_sigmoid", log_sigmoid, 0},
    {"rrelu", rrelu, 2},
};

static const activation *find(const char *op) {
  if (ait_starts_with(op, "aten.")) op += 5;
  for (size_t i = 0; i < AIT_COUNT(activations); ++i)
    if (strcmp(op, activations[i].name) == 0) return &activations[i];
  return NULL;
}

/* Integer tensors: relu, relu6, hardtanh, threshold only choose among values, and do so exactly. */
static ait_status integer_activation(ait_ref_call *call, const ait_tensor *t, const activation *a, const ait_ref_scalar *p,
                                     bool *out_done) {
  ait_tensor x, out;
  *out_done = a->fn == relu || a->fn == relu6 || a->fn == hardtanh || a->fn == threshold;
  if (!*out_done) return AIT_OK;
  AIT_TRY(ait_tensor_cast(call->allocator, t, t->dtype, &x));
  ait_status status = ait_ref_new(call, 0, ait_nn_dtype(call, 0, t->dtype), x.rank, x.shape, &out);
  size_t size_in = ait_dtype_size(x.dtype), size_out = status ? 0 : ait_dtype_size(out.dtype);
  for (int64_t i = 0; !status && i < ait_tensor_count(&x); ++i) {
    int64_t v = ait_element_i64((char *)x.data + i * (int64_t)size_in, x.dtype);
    if (a->fn == relu) v = v < 0 ? 0 : v;
    else if (a->fn == relu6) v = v < 0 ? 0 : v > 6 ? 6 : v;
    else if (a->fn == hardtanh) v = v < p[0].i ? p[0].i : v > p[1].i ? p[1].i : v;
    else v = v <= p[0].i ? p[1].i : v;
    ait_element_set_i64((char *)out.data + i * (int64_t)size_out, out.dtype, v);
  }
  ait_tensor_release(&x);
  return status;
}

AIT_REF_LOOP_C(complex_silu, a / (1 + cexp(-a)))

ait_status ait_ref_activation(ait_ref_call *call) {
  const activation *a = find(call->node->op);
  if (!a) return ait_ref_error(call, AIT_CODE_INTERNAL, "no such activation");
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (a->fn == silu && ait_dtype_is_complex(t->dtype)) {
    static const ait_ref_kernels kernels = {.c = complex_silu, .out_c = AIT_REF_C};
    return ait_ref_map_args(call, 1, false, &kernels, (ait_ref_params){0});
  }
  ait_ref_scalar scalars[4];
  double params[4] = {0};
  for (uint32_t i = 0; i < a->params; ++i) {
    AIT_TRY(ait_ref_scalar_arg(call, 1 + i, &scalars[i]));
    params[i] = scalars[i].f;
    if (scalars[i].kind == AIT_KIND_FLOAT) scalars[i].i = (int64_t)scalars[i].f;
  }
  if (ait_dtype_is_integer(t->dtype)) {
    bool done;
    AIT_TRY(integer_activation(call, t, a, scalars, &done));
    if (done) return AIT_OK;
  }
  return ait_nn_map1(call, 0, a->fn, params);
}

ait_status ait_ref_gelu(ait_ref_call *call) {
  const char *how = ait_ref_string(call, 1);
  return ait_nn_map1(call, 0, how && strcmp(how, "tanh") == 0 ? gelu_tanh : gelu_exact, NULL);
}

/* rrelu draws a slope per negative element in training. */
ait_status ait_ref_rrelu(ait_ref_call *call) {
  bool training;
  AIT_TRY(ait_ref_bool(call, 3, &training));
  if (!training) return ait_ref_activation(call);
  double lower, upper;
  AIT_TRY(ait_ref_float(call, 1, &lower));
  AIT_TRY(ait_ref_float(call, 2, &upper));
  ait_tensor x;
  AIT_TRY(ait_nn_arg(call, 0, &x));
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  double *v = x.data;
  for (int64_t i = 0; i < ait_tensor_count(&x); ++i)
    if (v[i] <= 0) v[i] *= lower + (upper - lower) * ait_nn_random_uniform(&r);
  ait_status status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &x);
  ait_tensor_release(&x);
  return status;
}

/* (self, noise, lower, upper, training): the slopes that were drawn, 1 for positive elements, are written into the noise or, in the
 * functional form, are a second result. */
ait_status ait_ref_rrelu_with_noise(ait_ref_call *call) {
  bool training, functional = ait_nn_is(call, "aten.rrelu_with_noise_functional");
  const ait_tensor *noise;
  ait_tensor x = {0}, drawn = {0};
  double lower, upper;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 1, &noise));
  AIT_TRY(ait_ref_float(call, 2, &lower));
  AIT_TRY(ait_ref_float(call, 3, &upper));
  AIT_TRY(ait_ref_bool(call, 4, &training));
  AIT_GOTO(ait_nn_arg(call, 0, &x));
  AIT_GOTO(ait_nn_arg(call, 1, &drawn));
  if (training && ait_tensor_count(&x) != ait_tensor_count(&drawn))
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the noise has another size than the input"));
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  double *v = x.data, *n = drawn.data;
  for (int64_t i = 0; i < ait_tensor_count(&x); ++i) {
    double slope = v[i] <= 0 ? lower + (upper - lower) * ait_nn_random_uniform(&r) : 1;
    if (training) v[i] *= n[i] = slope;
    else v[i] *= v[i] <= 0 ? (lower + upper) / 2 : 1;
  }
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &x));
  if (functional) status = ait_nn_result(call, 1, ait_nn_dtype(call, 1, noise->dtype), &drawn);
  else if (training) status = ait_tensor_copy(noise, &drawn);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&drawn);
  return status;
}

/* log_sigmoid_forward(self) -> (output, buffer): the buffer serves only the gradient; torch's CPU code leaves exp(-|x|) there. */
ait_status ait_ref_log_sigmoid_forward(ait_ref_call *call) {
  AIT_TRY(ait_nn_map1(call, 0, log_sigmoid, NULL));
  if (!ait_nn_wants(call, 1)) return AIT_OK;
  ait_tensor x;
  AIT_TRY(ait_nn_arg(call, 0, &x));
  for (int64_t i = 0; i < ait_tensor_count(&x); ++i) ait_nn_data_mut(&x)[i] = exp(-fabs(ait_nn_data(&x)[i]));
  ait_status status = ait_nn_result(call, 1, ait_nn_dtype(call, 1, AIT_F32), &x);
  ait_tensor_release(&x);
  return status;
}

/* _prelu_kernel: the slopes broadcast */
static double sloped(double x, double y, const double *p) {
  AIT_UNUSED(p);
  return x > 0 ? x : x * y;
}
ait_status ait_ref_prelu_kernel(ait_ref_call *call) { return ait_nn_map2(call, 0, 1, sloped, NULL); }

/* One slope, or one for each channel (dim 1). */
ait_status ait_ref_prelu(ait_ref_call *call) {
  ait_tensor x = {0}, w = {0};
  const ait_tensor *t;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_GOTO(ait_nn_f64(call, t, &x));
  AIT_GOTO(ait_nn_arg(call, 1, &w));
  int64_t channels = ait_tensor_count(&w), inner = x.rank > 2 ? ait_nn_span(&x, 2, x.rank) : 1;
  double *v = x.data;
  const double *slope = w.data;
  for (int64_t i = 0; i < ait_tensor_count(&x); ++i)
    if (!(v[i] > 0)) v[i] *= slope[channels == 1 ? 0 : i / inner % channels];
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &x);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&w);
  return status;
}

/* First half times the sigmoid of the second half along dim. */
ait_status ait_ref_glu(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t dim;
  int32_t d;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &dim));
  AIT_TRY(ait_ref_dim(call, dim, t->rank, &d));
  if (t->rank == 0 || t->shape[d] % 2 != 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "an odd dim cannot be halved");
  ait_tensor x = {0}, out = {0};
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, t, &x));
  int64_t shape[AIT_MAX_RANK], inner = ait_nn_span(&x, d + 1, x.rank), half = x.shape[d] / 2;
  memcpy(shape, x.shape, sizeof shape);
  shape[d] = half;
  AIT_GOTO(ait_ref_temp(call, AIT_F64, x.rank, shape, &out));
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i) {
    int64_t block = i / (half * inner), rest = i % (half * inner);
    const double *a = ait_nn_data(&x) + block * 2 * half * inner + rest;
    ait_nn_data_mut(&out)[i] = a[0] / (1 + exp(-a[half * inner]));
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}
