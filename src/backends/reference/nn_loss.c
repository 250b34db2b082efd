/* Losses. reduction: 0 none, 1 mean, 2 sum. */
#include "backends/reference/nn.h"

#include <float.h>

enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM };

/* Result 0 from the losses of each element: all of them, or reduced; the mean divides by `weight`. */
static ait_status reduce(ait_ref_call *call, int64_t reduction, const ait_tensor *each, double weight, ait_dtype otherwise) {
  ait_dtype dtype = ait_nn_dtype(call, 0, otherwise);
  if (reduction == REDUCE_NONE) return ait_nn_result(call, 0, dtype, each);
  double sum = 0;
  for (int64_t i = 0; i < ait_tensor_count(each); ++i) sum += ait_nn_data(each)[i];
  if (reduction == REDUCE_MEAN) sum /= weight;
  ait_tensor scalar = ait_tensor_borrow(&sum, AIT_F64, 0, NULL);
  return ait_nn_result(call, 0, dtype, &scalar);
}

/* ---- element by element ------------------------------------------------------------------------------------------------------ */
typedef double (*loss_fn)(double x, double y, const double *p);

static double mse(double x, double y, const double *p) {
  AIT_UNUSED(p);
  return (x - y) * (x - y);
}
static double l1(double x, double y, const double *p) {
  AIT_UNUSED(p);
  return fabs(x - y);
}
static double smooth_l1(double x, double y, const double *p) {
  double d = fabs(x - y);
  return d < p[0] ? 0.5 * d * d / p[0] : d - 0.5 * p[0];
}
static double huber(double x, double y, const double *p) {
  double d = fabs(x - y);
  return d <= p[0] ? 0.5 * d * d : p[0] * (d - 0.5 * p[0]);
}
/* p[0]: the largest number of the dtype; beyond it torch's exponential overflows */
static double soft_margin(double x, double y, const double *p) {
  double z = -x * y;
  if (exp(z) > p[0]) return INFINITY;
  return z > 0 ? z + log1p(exp(-z)) : log1p(exp(z));
}
static double hinge_embedding(double x, double y, const double *p) {
  return y == 1 ? x : y == -1 ? fmax(0, p[0] - x) : fmax(0, p[0] - x) + x;
}
static double kl(double x, double y, const double *p) {
  if (p[0] != 0) return exp(y) * (y - x); /* the target is a logarithm, too */
  return y > 0 ? y * (log(y) - x) : y == 0 ? 0 : NAN;
}
static double bce(double x, double y, const double *p) {
  AIT_UNUSED(p);
  return (y - 1) * fmax(log1p(-x), -100) - y * fmax(log(x), -100);
}
/* p[0] log_input, p[1] full, p[2] eps */
static double poisson(double x, double y, const double *p) {
  double loss = p[0] != 0 ? exp(x) - y * x : x - y * log(x + p[2]);
  return loss + (p[1] != 0 && y > 1 ? y * log(y) - y + 0.5 * log(2 * M_PI * y) : 0);
}

static ait_status complex_l1(const ait_ref_call *call, int32_t rank, const int64_t *shape, ait_tensor *each) {
  ait_tensor x = {0}, y = {0};
  ait_status status;
  AIT_GOTO(ait_nn_complex_expanded(call, 0, rank, shape, &x));
  AIT_GOTO(ait_nn_complex_expanded(call, 1, rank, shape, &y));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, rank, shape, each));
  const double _Complex *a = x.data, *b = y.data;
  for (int64_t i = 0; i < ait_tensor_count(each); ++i) ait_nn_data_mut(each)[i] = ait_nn_modulus(a[i] - b[i]);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&y);
  return status;
}

/* Arguments 0 and 1 broadcast; each[i] = fn(x, y). */
static ait_status each_loss(const ait_ref_call *call, loss_fn fn, const double *p, ait_tensor *each, ait_dtype *dtype) {
  const ait_tensor *t[2];
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  AIT_TRY(ait_ref_tensor(call, 0, &t[0]));
  AIT_TRY(ait_ref_tensor(call, 1, &t[1]));
  AIT_TRY(ait_ref_broadcast(call, t, 2, &rank, shape));
  *dtype = ait_dtype_promote(t[0]->dtype, t[1]->dtype);
  ait_tensor y;
  if (ait_dtype_is_complex(*dtype) && fn == l1) return complex_l1(call, rank, shape, each);
  AIT_TRY(ait_nn_arg_expanded(call, 0, rank, shape, each));
  AIT_TRY(ait_nn_arg_expanded(call, 1, rank, shape, &y));
  double *x = each->data;
  for (int64_t i = 0; i < ait_tensor_count(each); ++i) x[i] = fn(x[i], ait_nn_data(&y)[i], p);
  ait_tensor_release(&y);
  return AIT_OK;
}

/* Multiplied by a broadcast weight, if that argument is given. */
static ait_status weigh(const ait_ref_call *call, uint32_t arg, ait_tensor *each) {
  if (!ait_ref_is_tensor(call, arg)) return AIT_OK;
  ait_tensor w;
  AIT_TRY(ait_nn_arg_expanded(call, arg, each->rank, each->shape, &w));
  for (int64_t i = 0; i < ait_tensor_count(each); ++i) ait_nn_data_mut(each)[i] *= ait_nn_data(&w)[i];
  ait_tensor_release(&w);
  return AIT_OK;
}

static ait_status run_each(ait_ref_call *call, loss_fn fn, const double *p, int64_t reduction, uint32_t weight) {
  ait_tensor each = {0};
  ait_dtype dtype;
  ait_status status;
  AIT_GOTO(each_loss(call, fn, p, &each, &dtype));
  if (weight != AIT_NO_INDEX) AIT_GOTO(weigh(call, weight, &each));
  status = reduce(call, reduction, &each, (double)ait_tensor_count(&each), dtype);
cleanup:
  ait_tensor_release(&each);
  return status;
}

typedef struct loss_row {
  const char *op;
  loss_fn fn;
  uint32_t reduction, param, weight; /* argument positions; AIT_NO_INDEX: none */
} loss_row;

#define NO AIT_NO_INDEX
static const loss_row loss_rows[] = {
    {"aten.mse_loss", mse, 2, NO, NO},
    {"aten.l1_loss", l1, 2, NO, NO},
    {"aten.smooth_l1_loss", smooth_l1, 2, 3, NO},
    {"aten.huber_loss", huber, 2, 3, NO},
    {"aten.soft_margin_loss", soft_margin, 2, NO, NO},
    {"aten.hinge_embedding_loss", hinge_embedding, 3, 2, NO},
    {"aten.binary_cross_entropy", bce, 3, NO, 2},
};

static ait_status largest_number(const ait_ref_call *call, double *out) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  *out = t->dtype == AIT_F16 ? 65504 : t->dtype == AIT_F64 ? DBL_MAX : FLT_MAX; /* bfloat16 has the range of float32 */
  return AIT_OK;
}

/* The losses of the table */
ait_status ait_ref_elementwise_loss(ait_ref_call *call) {
  for (size_t i = 0; i < AIT_COUNT(loss_rows); ++i) {
    if (!ait_nn_is(call, loss_rows[i].op)) continue;
    int64_t reduction;
    double param = 0;
    AIT_TRY(ait_ref_int(call, loss_rows[i].reduction, &reduction));
    if (loss_rows[i].param != NO) AIT_TRY(ait_ref_float(call, loss_rows[i].param, &param));
    if (loss_rows[i].fn == soft_margin) AIT_TRY(largest_number(call, &param));
    return run_each(call, loss_rows[i].fn, &param, reduction, loss_rows[i].weight);
  }
  return ait_ref_error(call, AIT_CODE_INTERNAL, "no such loss");
}

ait_status ait_ref_kl_div(ait_ref_call *call) {
  int64_t reduction;
  bool log_target;
  AIT_TRY(ait_ref_int(call, 2, &reduction));
  AIT_TRY(ait_ref_bool(call, 3, &log_target));
  double p = log_target;
  return run_each(call, kl, &p, reduction, NO);
}

ait_status ait_ref_poisson_nll(ait_ref_call *call) {
  bool log_input, full;
  double p[3];
  int64_t reduction;
  AIT_TRY(ait_ref_bool(call, 2, &log_input));
  AIT_TRY(ait_ref_bool(call, 3, &full));
  AIT_TRY(ait_ref_float(call, 4, &p[2]));
  AIT_TRY(ait_ref_int(call, 5, &reduction));
  p[0] = log_input, p[1] = full;
  return run_each(call, poisson, p, reduction, NO);
}

/* self, target, weight, pos_weight, reduction: (1 - y) x + (1 + (pos - 1) y) (log(1 + exp(-|x|)) + max(-x, 0)) */
ait_status ait_ref_bce_logits(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor x = {0}, y = {0}, pos = {0};
  int64_t reduction;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 4, &reduction));
  AIT_GOTO(ait_nn_f64(call, t, &x));
  AIT_GOTO(ait_nn_arg_expanded(call, 1, t->rank, t->shape, &y));
  if (ait_ref_is_tensor(call, 3)) AIT_GOTO(ait_nn_arg_expanded(call, 3, t->rank, t->shape, &pos));
  double *v = x.data;
  for (int64_t i = 0; i < ait_tensor_count(&x); ++i) {
    double target = ait_nn_data(&y)[i], factor = pos.data ? 1 + (ait_nn_data(&pos)[i] - 1) * target : 1;
    v[i] = (1 - target) * v[i] + factor * (log1p(exp(-fabs(v[i]))) + fmax(-v[i], 0));
  }
  AIT_GOTO(weigh(call, 2, &x));
  status = reduce(call, reduction, &x, (double)ait_tensor_count(&x), t->dtype);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&y);
  ait_tensor_release(&pos);
  return status;
}

/* ---- classes ----------------------------------------------------------------------------------------------------------------- */
typedef struct classes {
  ait_tensor x;      /* [batch, classes, inner] doubles; log-probabilities */
  ait_tensor target; /* I64 [batch, inner], or F64 probabilities like x */
  ait_tensor weight; /* [classes] or empty */
  int64_t batch, count, inner, ignore, reduction;
  double smoothing;
} classes;

static void log_softmax(classes *c) {
  for (int64_t b = 0; b < c->batch; ++b)
    for (int64_t i = 0; i < c->inner; ++i) {
      double *x = ait_nn_data_mut(&c->x) + b * c->count * c->inner + i, top = -INFINITY, sum = 0;
      for (int64_t k = 0; k < c->count; ++k) top = x[k * c->inner] > top || isnan(x[k * c->inner]) ? x[k * c->inner] : top;
      for (int64_t k = 0; k < c->count; ++k) sum += exp(x[k * c->inner] - top);
      for (int64_t k = 0; k < c->count; ++k) x[k * c->inner] -= top + log(sum);
    }
}

/* The loss of one position, and its part of the mean's divisor. */
static ait_status class_loss(const ait_ref_call *call, const classes *c, int64_t b, int64_t i, double *loss, double *weight) {
  const double *x = ait_nn_data(&c->x) + b * c->count * c->inner + i, *w = c->weight.data;
  *loss = *weight = 0;
  if (c->target.dtype == AIT_F64) { /* probabilities; the mean is over positions */
    const double *p = ait_nn_data(&c->target) + b * c->count * c->inner + i;
    for (int64_t k = 0; k < c->count; ++k) {
      double q = p[k * c->inner] * (1 - c->smoothing) + c->smoothing / (double)c->count;
      *loss -= q * x[k * c->inner] * (w ? w[k] : 1);
    }
    *weight = 1;
    return AIT_OK;
  }
  int64_t y = ((const int64_t *)c->target.data)[b * c->inner + i];
  if (y == c->ignore) return AIT_OK;
  if (y < 0 || y >= c->count)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "class %lld of %lld", (long long)y, (long long)c->count);
  *weight = w ? w[y] : 1;
  *loss = -x[y * c->inner] * *weight;
  if (c->smoothing > 0) {
    double all = 0;
    for (int64_t k = 0; k < c->count; ++k) all -= x[k * c->inner] * (w ? w[k] : 1);
    *loss = (1 - c->smoothing) * *loss + c->smoothing / (double)c->count * all;
  }
  return AIT_OK;
}

static ait_status class_losses(ait_ref_call *call, classes *c, const ait_tensor *input, const ait_tensor *target, bool logits) {
  if (input->rank < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input without classes");
  int32_t at = input->rank == 1 ? 0 : 1;
  c->batch = at ? input->shape[0] : 1;
  c->count = input->shape[at];
  c->inner = ait_nn_span(input, at + 1, input->rank);
  bool probabilities = ait_dtype_is_float(target->dtype);
  ait_tensor each = {0};
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, input, &c->x));
  if (logits) log_softmax(c);
  AIT_GOTO(ait_tensor_cast(call->allocator, target, probabilities ? AIT_F64 : AIT_I64, &c->target));
  if (ait_tensor_count(&c->target) != c->batch * c->inner * (probabilities ? c->count : 1))
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "targets do not fit the input"));
  int64_t shape[AIT_MAX_RANK];
  int32_t rank = 0;
  for (int32_t d = 0; d < input->rank; ++d)
    if (d != at) shape[rank++] = input->shape[d];
  AIT_GOTO(ait_ref_temp(call, AIT_F64, rank, shape, &each));
  double total = 0, weight;
  for (int64_t i = 0; i < ait_tensor_count(&each); ++i) {
    AIT_GOTO(class_loss(call, c, i / c->inner, i % c->inner, ait_nn_data_mut(&each) + i, &weight));
    total += weight;
  }
  AIT_GOTO(reduce(call, c->reduction, &each, total, input->dtype));
  ait_tensor divisor = ait_tensor_borrow(&total, AIT_F64, 0, NULL);
  if (c->reduction == REDUCE_NONE && input->rank > 1) total = 0; /* of a single position torch gives it all the same */
  if (ait_ends_with(call->node->op, "_forward")) status = ait_nn_result(call, 1, ait_nn_dtype(call, 1, input->dtype), &divisor);
cleanup:
  ait_tensor_release(&each);
  return status;
}

/* cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing); nll_loss*, without the last */
ait_status ait_ref_class_loss(ait_ref_call *call) {
  bool logits = ait_nn_is(call, "aten.cross_entropy_loss");
  classes c = {0};
  const ait_tensor *input, *target;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &input));
  AIT_TRY(ait_ref_tensor(call, 1, &target));
  AIT_TRY(ait_ref_int(call, 3, &c.reduction));
  AIT_TRY(ait_ref_int(call, 4, &c.ignore));
  if (logits) AIT_TRY(ait_ref_float(call, 5, &c.smoothing));
  AIT_GOTO(ait_nn_arg_or_null(call, 2, &c.weight));
  status = class_losses(call, &c, input, target, logits);
cleanup:
  ait_tensor_release(&c.x);
  ait_tensor_release(&c.target);
  ait_tensor_release(&c.weight);
  return status;
}

/* The logits x W^T + b in double; released by the caller. */
static ait_status linear_logits(const ait_ref_call *call, ait_tensor *out) {
  const ait_tensor *x, *w;
  ait_tensor bias = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &w));
  if (x->rank != 2 || w->rank != 2 || x->shape[1] != w->shape[1])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input and weight do not fit together");
  int64_t shape[2] = {x->shape[0], w->shape[0]};
  AIT_TRY(ait_ref_temp(call, AIT_F64, 2, shape, out));
  ait_nn_mat a = {x->data, x->dtype, x->strides[0], x->strides[1]}, b = {w->data, w->dtype, w->strides[1], w->strides[0]};
  AIT_TRY(ait_nn_product(call, &a, &b, shape[0], shape[1], x->shape[1], out->data));
  AIT_TRY(ait_nn_arg_or_null(call, 3, &bias));
  for (int64_t i = 0; bias.data && i < ait_tensor_count(out); ++i) ait_nn_data_mut(out)[i] += ait_nn_data(&bias)[i % shape[1]];
  ait_tensor_release(&bias);
  return AIT_OK;
}

/* torch_nn._linear_cross_entropy_batch_chunked(input, linear_weight, target, bias, weight, reduction, ignore_index, label_smoothing, ..),
 * and _no_reduction(input, linear_weight, target, bias, weight, ignore_index, ..): what torch.nn.functional.linear_cross_entropy exports
 * to. The chunks are torch's affair; gradients are not computed here. */
ait_status ait_ref_linear_cross_entropy(ait_ref_call *call) {
  bool each = ait_ends_with(call->node->op, "_no_reduction"), gradient = false;
  const char *how = each ? "none" : ait_ref_string(call, 5);
  classes c = {.reduction = !how || strcmp(how, "mean") == 0 ? REDUCE_MEAN : strcmp(how, "sum") == 0 ? REDUCE_SUM : REDUCE_NONE};
  const ait_tensor *target;
  ait_tensor logits = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 2, &target));
  AIT_TRY(ait_ref_int(call, each ? 5 : 6, &c.ignore));
  if (!each) AIT_TRY(ait_ref_float(call, 7, &c.smoothing));
  for (uint32_t i = 12; !each && i < 15; ++i) {
    AIT_TRY(ait_ref_bool(call, i, &gradient));
    if (gradient) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "the program was exported with gradients");
  }
  AIT_GOTO(linear_logits(call, &logits));
  AIT_GOTO(ait_nn_arg_or_null(call, 4, &c.weight));
  status = class_losses(call, &c, &logits, target, true);
cleanup:
  ait_tensor_release(&logits);
  ait_tensor_release(&c.x);
  ait_tensor_release(&c.target);
  ait_tensor_release(&c.weight);
  return status;
}

/* [batch, classes] or [classes] with integer targets of the same lead */
static ait_status margin_start(const ait_ref_call *call, ait_tensor *x, ait_tensor *target, int64_t *rows, int64_t *n) {
  const ait_tensor *t;
  AIT_TRY(ait_nn_arg(call, 0, x));
  AIT_TRY(ait_ref_tensor(call, 1, &t));
  if (x->rank > 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", x->rank);
  *n = x->rank ? x->shape[x->rank - 1] : 1;
  *rows = x->rank == 2 ? x->shape[0] : 1;
  return ait_tensor_cast(call->allocator, t, AIT_I64, target);
}

/* multi_margin_loss(self, target, p, margin, weight, reduction) */
ait_status ait_ref_multi_margin(ait_ref_call *call) {
  ait_tensor x = {0}, target = {0}, w = {0}, each = {0};
  double p, margin;
  int64_t rows_count, n, reduction;
  ait_status status;
  AIT_TRY(ait_ref_float(call, 2, &p));
  AIT_TRY(ait_ref_float(call, 3, &margin));
  AIT_TRY(ait_ref_int(call, 5, &reduction));
  AIT_GOTO(margin_start(call, &x, &target, &rows_count, &n));
  AIT_GOTO(ait_nn_arg_or_null(call, 4, &w));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, target.rank, target.shape, &each));
  if (ait_tensor_count(&target) != rows_count) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "targets do not fit the input"));
  for (int64_t r = 0; r < rows_count; ++r) {
    const double *v = ait_nn_data(&x) + r * n;
    int64_t y = ((const int64_t *)target.data)[r];
    if (y < 0 || y >= n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "class %lld of %lld", (long long)y, (long long)n));
    for (int64_t k = 0; k < n; ++k) {
      double z = margin - v[y] + v[k];
      if (k == y || z <= 0) continue;
      ait_nn_data_mut(&each)[r] += (p == 1 ? z : z * z) * (w.data ? ait_nn_data(&w)[y] : 1) / (double)n;
    }
  }
  status = reduce(call, reduction, &each, (double)rows_count, AIT_F32);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&target);
  ait_tensor_release(&w);
  ait_tensor_release(&each);
  return status;
}

/* multilabel_margin_loss(_forward): targets up to the first -1 are the right classes; which those are is _forward's second result */
ait_status ait_ref_multilabel_margin(ait_ref_call *call) {
  ait_tensor x = {0}, target = {0}, each = {0}, rights = {0};
  int64_t rows_count, n, reduction;
  ait_status status;
  AIT_TRY(ait_ref_int(call, 2, &reduction));
  AIT_GOTO(margin_start(call, &x, &target, &rows_count, &n));
  if (ait_tensor_count(&target) != rows_count * n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "targets do not fit the input"));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, x.rank == 2 ? 1 : 0, &rows_count, &each));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, target.rank, target.shape, &rights));
  for (int64_t r = 0; r < rows_count; ++r) {
    const double *v = ait_nn_data(&x) + r * n;
    const int64_t *y = (const int64_t *)target.data + r * n;
    for (int64_t k = 0; k < n; ++k) {
      bool right = false;
      for (int64_t j = 0; j < n && y[j] >= 0; ++j) right |= y[j] == k;
      ait_nn_data_mut(&rights)[r * n + k] = right;
      if (right) continue;
      for (int64_t j = 0; j < n && y[j] >= 0; ++j)
        if (y[j] < n) ait_nn_data_mut(&each)[r] += fmax(0, 1 - v[y[j]] + v[k]) / (double)n;
    }
  }
  AIT_GOTO(reduce(call, reduction, &each, (double)rows_count, AIT_F32));
  status = ait_nn_result(call, 1, ait_nn_dtype(call, 1, AIT_F32), &rights);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&target);
  ait_tensor_release(&each);
  ait_tensor_release(&rights);
  return status;
}

/* ---- pairs and triplets ------------------------------------------------------------------------------------------------------ */
/* margin_ranking_loss(x1, x2, target, margin, reduction): max(0, -y (x1 - x2) + margin) */
ait_status ait_ref_margin_ranking(ait_ref_call *call) {
  const ait_tensor *t[3];
  ait_tensor x[3] = {{0}};
  int64_t shape[AIT_MAX_RANK], reduction;
  int32_t rank;
  double margin;
  ait_status status;
  for (uint32_t i = 0; i < 3; ++i) AIT_TRY(ait_ref_tensor(call, i, &t[i]));
  AIT_TRY(ait_ref_float(call, 3, &margin));
  AIT_TRY(ait_ref_int(call, 4, &reduction));
  AIT_TRY(ait_ref_broadcast(call, t, 3, &rank, shape));
  for (uint32_t i = 0; i < 3; ++i) AIT_GOTO(ait_nn_arg_expanded(call, i, rank, shape, &x[i]));
  double *v = x[0].data;
  for (int64_t i = 0; i < ait_tensor_count(&x[0]); ++i) v[i] = fmax(0, -ait_nn_data(&x[2])[i] * (v[i] - ait_nn_data(&x[1])[i]) + margin);
  status = reduce(call, reduction, &x[0], (double)ait_tensor_count(&x[0]), t[0]->dtype);
cleanup:
  for (int i = 0; i < 3; ++i) ait_tensor_release(&x[i]);
  return status;
}

/* cosine_embedding_loss(x1, x2, target, margin, reduction), along the last dim of one or two */
ait_status ait_ref_cosine_embedding(ait_ref_call *call) {
  const ait_tensor *t[2];
  ait_tensor x = {0}, y = {0}, each = {0};
  int64_t reduction, shape[AIT_MAX_RANK];
  int32_t rank;
  double margin;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t[0]));
  AIT_TRY(ait_ref_tensor(call, 1, &t[1]));
  AIT_TRY(ait_ref_float(call, 3, &margin));
  AIT_TRY(ait_ref_int(call, 4, &reduction));
  AIT_TRY(ait_ref_broadcast(call, t, 2, &rank, shape));
  AIT_GOTO(ait_nn_arg_expanded(call, 0, rank, shape, &x));
  AIT_GOTO(ait_nn_arg_expanded(call, 1, rank, shape, &y));
  AIT_GOTO(ait_nn_arg(call, 2, &each));
  ait_dtype dtype = ait_dtype_promote(t[0]->dtype, t[1]->dtype);
  const ait_tensor *target;
  AIT_GOTO(ait_ref_tensor(call, 2, &target));
  double minus_one = ait_nn_wrap(target->dtype, -1);
  int64_t n = rank ? shape[rank - 1] : 1, rows_count = ait_tensor_count(&each);
  if (rows_count * n != ait_tensor_count(&x)) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "targets do not fit the input"));
  for (int64_t r = 0; r < rows_count; ++r) {
    const double *a = ait_nn_data(&x) + r * n, *b = ait_nn_data(&y) + r * n;
    double ab = 0, aa = 1e-12, bb = 1e-12, *e = ait_nn_data_mut(&each) + r; /* torch's EPSILON in the squares */
    for (int64_t i = 0; i < n; ++i) {
      ab += ait_nn_wrap(dtype, a[i] * b[i]);
      aa += ait_nn_wrap(t[0]->dtype, a[i] * a[i]);
      bb += ait_nn_wrap(t[1]->dtype, b[i] * b[i]);
    }
    double cosine = ab / sqrt(aa * bb);
    *e = *e == 1 ? 1 - cosine : *e == minus_one ? fmax(0, cosine - margin) : 0;
  }
  status = reduce(call, reduction, &each, (double)rows_count, t[0]->dtype);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&y);
  ait_tensor_release(&each);
  return status;
}

static double pair_distance(ait_dtype dtype, const double _Complex *x, const double _Complex *y, int64_t n, double p, double eps) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    double _Complex difference = ait_dtype_is_integer(dtype) ? ait_nn_wrap(dtype, __real__(x[i] - y[i])) : x[i] - y[i];
    double d = ait_nn_modulus(difference + eps);
    sum = isinf(p) ? fmax(sum, d) : sum + (p == 2 ? d * d : pow(d, p));
  }
  return isinf(p) ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

/* triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction) */
ait_status ait_ref_triplet_margin(ait_ref_call *call) {
  const ait_tensor *t[3];
  ait_tensor x[3] = {{0}}, each = {0};
  int64_t shape[AIT_MAX_RANK], reduction;
  int32_t rank;
  double margin, p, eps;
  bool swap;
  ait_status status;
  for (uint32_t i = 0; i < 3; ++i) AIT_TRY(ait_ref_tensor(call, i, &t[i]));
  AIT_TRY(ait_ref_float(call, 3, &margin));
  AIT_TRY(ait_ref_float(call, 4, &p));
  AIT_TRY(ait_ref_float(call, 5, &eps));
  AIT_TRY(ait_ref_bool(call, 6, &swap));
  AIT_TRY(ait_ref_int(call, 7, &reduction));
  AIT_TRY(ait_ref_broadcast(call, t, 3, &rank, shape));
  for (uint32_t i = 0; i < 3; ++i) AIT_GOTO(ait_nn_complex_expanded(call, i, rank, shape, &x[i]));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, rank ? rank - 1 : 0, shape, &each));
  int64_t n = rank ? shape[rank - 1] : 1;
  for (int64_t r = 0; r < ait_tensor_count(&each); ++r) {
    const double _Complex *a = (double _Complex *)x[0].data + r * n, *b = (double _Complex *)x[1].data + r * n,
                          *c = (double _Complex *)x[2].data + r * n;
    double positive = pair_distance(t[0]->dtype, a, b, n, p, eps), negative = pair_distance(t[0]->dtype, a, c, n, p, eps);
    if (swap) negative = fmin(negative, pair_distance(t[0]->dtype, b, c, n, p, eps));
    ait_nn_data_mut(&each)[r] = fmax(0, margin + positive - negative);
  }
  status = reduce(call, reduction, &each, (double)ait_tensor_count(&each), t[0]->dtype);
cleanup:
  for (int i = 0; i < 3; ++i) ait_tensor_release(&x[i]);
  ait_tensor_release(&each);
  return status;
}

/* ---- connectionist temporal classification (Graves et al., 2006): forward variables in logarithms ---------------------------- */
static double log_add(double a, double b) {
  double top = a > b ? a : b;
  return top == -INFINITY ? top : top + log1p(exp((a > b ? b : a) - top));
}

/* x: [time][step] log-probabilities of one sample; alpha: 2 * (2 * length + 1) doubles. table: receives alpha after each time step, rows of
 * `width`; or NULL. */
static double ctc_one(const double *x, int64_t step, int64_t time, const int64_t *target, int64_t length, int64_t blank, double *alpha,
                      double *table, int64_t width) {
  int64_t states = 2 * length + 1;
  double *now = alpha, *next = alpha + states;
  for (int64_t s = 0; s < states; ++s) now[s] = -INFINITY;
  if (time == 0) return length == 0 ? 0 : INFINITY;
  now[0] = x[blank];
  if (length > 0) now[1] = x[target[0]];
  if (table) memcpy(table, now, (size_t)states * sizeof *now);
  for (int64_t t = 1; t < time; ++t) {
    for (int64_t s = 0; s < states; ++s) {
      int64_t label = s % 2 ? target[s / 2] : blank;
      double sum = now[s];
      if (s > 0) sum = log_add(sum, now[s - 1]);
      if (s > 2 && s % 2 && label != target[s / 2 - 1]) sum = log_add(sum, now[s - 2]);
      next[s] = sum + x[t * step + label];
    }
    double *swap = now;
    now = next, next = swap;
    if (table) memcpy(table + t * width, now, (size_t)states * sizeof *now);
  }
  return -log_add(now[states - 1], length > 0 ? now[states - 2] : -INFINITY);
}

typedef struct ctc {
  ait_tensor x, target, input_lengths, target_lengths; /* doubles, int64s */
  int64_t blank, reduction, time, batch, classes;
  bool zero_infinity;
} ctc;

static ait_status lengths_of(const ait_ref_call *call, uint32_t arg, int64_t batch, ait_tensor *out) {
  if (ait_ref_is_tensor(call, arg)) {
    const ait_tensor *t;
    AIT_TRY(ait_ref_tensor(call, arg, &t));
    AIT_TRY(ait_tensor_cast(call->allocator, t, AIT_I64, out));
  } else {
    int64_t *v;
    uint32_t n;
    AIT_TRY(ait_ref_int_array(call, arg, &v, &n));
    int64_t count = n;
    ait_status status = ait_ref_temp(call, AIT_I64, 1, &count, out);
    if (!status) memcpy(out->data, v, n * sizeof *v);
    ait_free(call->allocator, v, n * sizeof *v);
    AIT_TRY(status);
  }
  return ait_tensor_count(out) == batch ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "lengths do not fit the batch");
}

/* Targets stand in one line, or each in a row of a matrix. */
static int64_t longest_target(const ctc *c) {
  if (c->target.rank == 2) return c->target.shape[1];
  int64_t longest = 0;
  for (int64_t i = 0; i < c->batch; ++i) longest = ait_nn_max(longest, ((const int64_t *)c->target_lengths.data)[i]);
  return longest;
}

static ait_status ctc_losses(const ait_ref_call *call, const ctc *c, double *each, double *mean, double *table) {
  int64_t longest = longest_target(c), width = 2 * longest + 1, at = 0, total = ait_tensor_count(&c->target), step = c->batch * c->classes;
  const int64_t *in = c->input_lengths.data, *len = c->target_lengths.data;
  double *alpha = ait_nn_doubles(call, 2 * width);
  if (!alpha) return AIT_OOM();
  ait_status status = AIT_OK;
  *mean = 0;
  for (int64_t i = 0; !status && i < c->batch; ++i) {
    int64_t first = c->target.rank == 2 ? i * c->target.shape[1] : at;
    const int64_t *y = (const int64_t *)c->target.data + first;
    bool fits = len[i] >= 0 && len[i] <= longest && in[i] >= 0 && in[i] <= c->time && first + len[i] <= total;
    for (int64_t k = 0; fits && k < len[i]; ++k) fits = y[k] >= 0 && y[k] < c->classes;
    if (!fits) status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "lengths or labels out of range");
    if (status) break;
    each[i] = ctc_one(ait_nn_data(&c->x) + i * c->classes, step, in[i], y, len[i], c->blank, alpha,
                      table ? table + i * c->time * width : NULL, width);
    if (c->zero_infinity && isinf(each[i])) each[i] = 0;
    *mean += each[i] / (double)(ait_nn_max(len[i], 1) * c->batch);
    at += len[i];
  }
  ait_nn_doubles_free(call, alpha, 2 * width);
  return status;
}

/* log-probabilities, targets, lengths, blank */
static ait_status ctc_args(const ait_ref_call *call, ctc *c) {
  const ait_tensor *t, *target;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_tensor(call, 1, &target));
  AIT_TRY(ait_ref_int(call, 4, &c->blank));
  if (t->rank < 2 || t->rank > 3) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "log-probabilities of rank %d", t->rank);
  c->time = t->shape[0], c->batch = t->rank == 3 ? t->shape[1] : 1, c->classes = t->shape[t->rank - 1];
  if (c->blank < 0 || c->blank >= c->classes) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "blank label out of range");
  AIT_TRY(ait_nn_f64(call, t, &c->x));
  AIT_TRY(ait_tensor_cast(call->allocator, target, AIT_I64, &c->target));
  AIT_TRY(lengths_of(call, 2, c->batch, &c->input_lengths));
  return lengths_of(call, 3, c->batch, &c->target_lengths);
}

static void ctc_release(ctc *c) {
  ait_tensor_release(&c->x);
  ait_tensor_release(&c->target);
  ait_tensor_release(&c->input_lengths);
  ait_tensor_release(&c->target_lengths);
}

/* _ctc_loss(.., blank, zero_infinity) -> losses, forward variables [batch, time, 2 * longest + 1] */
ait_status ait_ref_ctc_forward(ait_ref_call *call) {
  ctc c = {0};
  ait_tensor each = {0}, table = {0};
  double mean;
  ait_status status;
  AIT_GOTO(ctc_args(call, &c));
  int64_t shape[3] = {c.batch, c.time, 2 * longest_target(&c) + 1};
  AIT_GOTO(ait_ref_temp(call, AIT_F64, 1, &c.batch, &each));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, 3, shape, &table));
  for (int64_t i = 0; i < ait_tensor_count(&table); ++i) ait_nn_data_mut(&table)[i] = -INFINITY;
  AIT_GOTO(ctc_losses(call, &c, each.data, &mean, table.data));
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &each));
  status = ait_nn_result(call, 1, ait_nn_dtype(call, 1, AIT_F32), &table);
cleanup:
  ctc_release(&c);
  ait_tensor_release(&each);
  ait_tensor_release(&table);
  return status;
}

/* ctc_loss(log_probs [T, N, C] or [T, C], targets, input_lengths, target_lengths, blank, reduction, zero_infinity) */
ait_status ait_ref_ctc_loss(ait_ref_call *call) {
  ctc c = {0};
  ait_tensor each = {0};
  double mean;
  ait_status status;
  AIT_TRY(ait_ref_int(call, 5, &c.reduction));
  AIT_TRY(ait_ref_bool(call, 6, &c.zero_infinity));
  AIT_GOTO(ctc_args(call, &c));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, c.x.rank - 2, &c.batch, &each));
  AIT_GOTO(ctc_losses(call, &c, each.data, &mean, NULL));
  if (c.reduction == REDUCE_MEAN) {
    ait_tensor scalar = ait_tensor_borrow(&mean, AIT_F64, 0, NULL);
    status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &scalar);
  } else {
    status = reduce(call, c.reduction, &each, 1, AIT_F32);
  }
cleanup:
  ctc_release(&c);
  ait_tensor_release(&each);
  return status;
}
