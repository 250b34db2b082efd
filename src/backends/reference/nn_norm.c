/* Normalisations: batch, instance, layer, group, RMS; weight_norm and renorm. Statistics in double, two passes. */
#include "backends/reference/nn.h"

#include <complex.h>

/* Mean and biased variance of `count` numbers: `runs` runs of `run` numbers, `step` apart. */
static void moments(const double *x, int64_t runs, int64_t run, int64_t step, double *mean, double *var) {
  double sum = 0, square = 0, n = (double)(runs * run);
  for (int64_t r = 0; r < runs; ++r)
    for (int64_t i = 0; i < run; ++i) sum += x[r * step + i];
  *mean = sum / n;
  for (int64_t r = 0; r < runs; ++r)
    for (int64_t i = 0; i < run; ++i) {
      double c = x[r * step + i] - *mean;
      square += c * c;
    }
  *var = square / n;
}

/* ---- batch and instance ---------------------------------------------------------------------------------------------------------------*/
typedef struct channel_norm {
  ait_tensor x; /* [batch, channels, inner] doubles, normalised in place */
  ait_tensor weight, bias, running_mean, running_var;
  int64_t batch, channels, inner;
  double *mean, *var; /* channels each: what was used */
  double eps;
} channel_norm;

static void channel_norm_release(const ait_ref_call *call, channel_norm *n) {
  ait_nn_doubles_free(call, n->mean, 2 * n->channels);
  ait_tensor_release(&n->x);
  ait_tensor_release(&n->weight);
  ait_tensor_release(&n->bias);
  ait_tensor_release(&n->running_mean);
  ait_tensor_release(&n->running_var);
}

static void scale_channels(void *ctx, int64_t begin, int64_t end) {
  const channel_norm *n = ctx;
  for (int64_t p = begin; p < end; ++p) {
    int64_t c = p % n->channels;
    double *x = ait_nn_data_mut(&n->x) + p * n->inner;
    double scale = 1 / sqrt(n->var[c] + n->eps), mean = n->mean[c], shift = n->bias.data ? ait_nn_data(&n->bias)[c] : 0;
    if (n->weight.data) scale *= ait_nn_data(&n->weight)[c];
    for (int64_t i = 0; i < n->inner; ++i) x[i] = (x[i] - mean) * scale + shift;
  }
}

/* A running statistic is a buffer of the model: written where it is. What the loader mapped read-only and no node is known to change is
 * left alone. */
static void update_running(const ait_ref_call *call, uint32_t arg, const double *stat, int64_t n, double momentum, double correction) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, arg);
  if (!t || t->rank != 1 || t->shape[0] != n) return;
  size_t size = ait_dtype_size(t->dtype);
  for (int64_t c = 0; c < n; ++c) {
    char *p = (char *)t->data + c * t->strides[0] * (int64_t)size;
    ait_element_set_f64(p, t->dtype, (1 - momentum) * ait_element_f64(p, t->dtype) + momentum * correction * stat[c]);
  }
}

/* Operands 0 to 2 and, when `mean_arg` is not AIT_NO_INDEX, the running statistics. */
static ait_status channel_norm_start(const ait_ref_call *call, uint32_t mean_arg, channel_norm *n) {
  AIT_TRY(ait_nn_arg(call, 0, &n->x));
  AIT_TRY(ait_nn_arg_or_null(call, 1, &n->weight));
  AIT_TRY(ait_nn_arg_or_null(call, 2, &n->bias));
  if (mean_arg != AIT_NO_INDEX) {
    AIT_TRY(ait_nn_arg_or_null(call, mean_arg, &n->running_mean));
    AIT_TRY(ait_nn_arg_or_null(call, mean_arg + 1, &n->running_var));
  }
  bool vector = n->x.rank == 1 && ait_tensor_count(&n->x) == 0; /* torch lets it pass */
  if (vector) n->x.shape[1] = n->running_mean.rank == 1 ? n->running_mean.shape[0] : 0;
  else if (n->x.rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", n->x.rank);
  n->batch = n->x.shape[0];
  n->channels = n->x.shape[1];
  n->inner = ait_nn_span(&n->x, 2, n->x.rank);
  n->mean = ait_nn_doubles(call, 2 * n->channels);
  n->var = n->mean + n->channels;
  return n->mean ? AIT_OK : AIT_OOM();
}

static ait_status vector_result(ait_ref_call *call, uint32_t k, ait_dtype dtype, const double *values, int64_t n) {
  ait_tensor t = ait_tensor_borrow((void *)(uintptr_t)values, AIT_F64, 1, &n);
  return ait_nn_result(call, k, dtype, &t);
}

/* Which argument is what, for the forms of batch_norm. */
typedef struct batch_form {
  const char *op;
  uint32_t mean, training, momentum, eps; /* argument positions; training AIT_NO_INDEX: see `always` */
  bool always;                            /* trains whatever the argument */
  bool functional;                        /* new statistics are the last two results, not written in place */
} batch_form;

#define NO AIT_NO_INDEX
static const batch_form forms[] = {
    {"aten.batch_norm", 3, 5, 6, 7, false, false},
    {"aten.native_batch_norm", 3, 5, 6, 7, false, false},
    {"aten._native_batch_norm_legit", 3, 5, 6, 7, false, false},
    {"aten._native_batch_norm_legit_functional", 3, 5, 6, 7, false, true},
    {"aten._native_batch_norm_legit.no_stats", NO, 3, 4, 5, false, false},
    {"aten._native_batch_norm_legit_no_training", 3, NO, 5, 6, false, false},
    {"aten._batch_norm_with_update", 3, NO, 5, 6, true, false},
    {"aten._batch_norm_with_update_functional", 3, NO, 5, 6, true, true},
    {"aten._batch_norm_no_update", 3, NO, 5, 6, false, false},
    {"batch_norm", 3, NO, NO, 5, false, false},
};

static void batch_moments(void *ctx, int64_t begin, int64_t end) {
  const channel_norm *n = ctx;
  for (int64_t c = begin; c < end; ++c)
    moments(ait_nn_data(&n->x) + c * n->inner, n->batch, n->inner, n->channels * n->inner, &n->mean[c], &n->var[c]);
}

static ait_status functional_stats(ait_ref_call *call, const channel_norm *n, double momentum, double correction, bool training) {
  if (!n->running_mean.data || !n->running_var.data) return AIT_OK;
  double *mean = ait_nn_data_mut(&n->running_mean), *var = ait_nn_data_mut(&n->running_var);
  for (int64_t c = 0; training && c < n->channels; ++c) {
    mean[c] = (1 - momentum) * mean[c] + momentum * n->mean[c];
    var[c] = (1 - momentum) * var[c] + momentum * correction * n->var[c];
  }
  uint32_t first = call->node->result_count > 5 ? 4 : 3; /* behind the reserve space, where there is one */
  AIT_TRY(ait_nn_result(call, first, ait_nn_dtype(call, first, AIT_F32), &n->running_mean));
  return ait_nn_result(call, first + 1, ait_nn_dtype(call, first + 1, AIT_F32), &n->running_var);
}

static ait_status batch_norm(ait_ref_call *call, const batch_form *f, bool training, double momentum, channel_norm *n) {
  AIT_TRY(channel_norm_start(call, f->mean, n));
  ait_dtype dtype = ait_nn_dtype(call, 0, AIT_F32);
  double count = (double)(n->batch * n->inner), correction = count > 1 ? count / (count - 1) : 1;
  if (training) {
    ait_ref_parallel(call, n->channels, n->batch * n->inner * 4, batch_moments, n);
  } else {
    if (!n->running_mean.data || !n->running_var.data) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "no running statistics");
    memcpy(n->mean, n->running_mean.data, (size_t)n->channels * sizeof *n->mean);
    memcpy(n->var, n->running_var.data, (size_t)n->channels * sizeof *n->var);
  }
  ait_ref_parallel(call, n->batch * n->channels, n->inner * 4, scale_channels, n);
  const ait_tensor *input;
  AIT_TRY(ait_ref_tensor(call, 0, &input));
  AIT_TRY(ait_nn_result_format(call, 0, dtype, &n->x, input));
  if (f->functional) AIT_TRY(functional_stats(call, n, momentum, correction, training));
  if (training && !f->functional && f->mean != NO) {
    update_running(call, f->mean, n->mean, n->channels, momentum, 1);
    update_running(call, f->mean + 1, n->var, n->channels, momentum, correction);
  }
  /* saved mean and inverse deviation; outside training they are empty */
  int64_t saved = training ? n->channels : 0;
  AIT_TRY(vector_result(call, 1, ait_nn_dtype(call, 1, AIT_F32), n->mean, saved));
  for (int64_t c = 0; c < n->channels; ++c) n->var[c] = 1 / sqrt(n->var[c] + n->eps);
  AIT_TRY(vector_result(call, 2, ait_nn_dtype(call, 2, AIT_F32), n->var, saved));
  if (f->momentum != NO && (!f->functional || call->node->result_count > 5) && ait_nn_wants(call, 3))
    return vector_result(call, 3, ait_nn_dtype(call, 3, AIT_U8), n->mean, 0); /* reserve space */
  return AIT_OK;
}

ait_status ait_ref_batch_norm(ait_ref_call *call) {
  const batch_form *f = NULL;
  for (size_t i = 0; i < AIT_COUNT(forms); ++i)
    if (ait_nn_is(call, forms[i].op)) f = &forms[i];
  if (!f) return ait_ref_error(call, AIT_CODE_INTERNAL, "no such form of batch_norm");
  channel_norm n = {0};
  bool training = f->always;
  double momentum = 0;
  AIT_TRY(ait_ref_float(call, f->eps, &n.eps));
  if (f->momentum != NO) AIT_TRY(ait_ref_float_or(call, f->momentum, 0, &momentum));
  if (f->training != NO) AIT_TRY(ait_ref_bool(call, f->training, &training));
  ait_status status = batch_norm(call, f, training, momentum, &n);
  channel_norm_release(call, &n);
  return status;
}

/* Each sample is a batch of its own; running statistics take the mean over samples. */
static ait_status instance_norm(ait_ref_call *call, channel_norm *n, bool own, double momentum) {
  AIT_TRY(channel_norm_start(call, 3, n));
  double *sum = ait_nn_doubles(call, 2 * n->channels);
  if (!sum) return AIT_OOM();
  memset(sum, 0, (size_t)(2 * n->channels) * sizeof *sum);
  double unbiased = n->inner > 1 ? (double)n->inner / (double)(n->inner - 1) : 1;
  channel_norm one = *n;
  one.batch = 1;
  for (int64_t b = 0; b < n->batch; ++b) {
    one.x.data = ait_nn_data_mut(&n->x) + b * n->channels * n->inner;
    for (int64_t c = 0; c < n->channels; ++c) {
      if (own) {
        moments(ait_nn_data(&one.x) + c * n->inner, 1, n->inner, 0, &n->mean[c], &n->var[c]);
        sum[c] += n->mean[c] / (double)n->batch;
        sum[n->channels + c] += n->var[c] / (double)n->batch;
      } else {
        n->mean[c] = ait_nn_data(&n->running_mean)[c];
        n->var[c] = ait_nn_data(&n->running_var)[c];
      }
    }
    ait_ref_parallel(call, n->channels, n->inner * 4, scale_channels, &one);
  }
  if (own) {
    update_running(call, 3, sum, n->channels, momentum, 1);
    update_running(call, 4, sum + n->channels, n->channels, momentum, unbiased);
  }
  ait_nn_doubles_free(call, sum, 2 * n->channels);
  return ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &n->x);
}

ait_status ait_ref_instance_norm(ait_ref_call *call) {
  channel_norm n = {0};
  bool own;
  double momentum;
  AIT_TRY(ait_ref_bool(call, 5, &own));
  AIT_TRY(ait_ref_float(call, 6, &momentum));
  AIT_TRY(ait_ref_float(call, 7, &n.eps));
  if (!own && (ait_ref_is_none(call, 3) || ait_ref_is_none(call, 4)))
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "no running statistics");
  ait_status status = instance_norm(call, &n, own, momentum);
  channel_norm_release(call, &n);
  return status;
}

/* ---- layer, RMS, group ------------------------------------------------------------------------------------------------------- */
typedef struct row_norm {
  double *x;
  int64_t n;             /* numbers of a row */
  int64_t inner, groups; /* weight index of element i of row r: group norm's channel (r % groups) * (n / inner) + i / inner; else i */
  const double *weight, *bias;
  double *mean, *rstd; /* one per row */
  double eps;
  bool rms;
} row_norm;

static void normalise_rows(void *ctx, int64_t begin, int64_t end) {
  const row_norm *j = ctx;
  for (int64_t r = begin; r < end; ++r) {
    double *x = j->x + r * j->n, mean = 0, var = 0;
    if (j->rms) {
      for (int64_t i = 0; i < j->n; ++i) var += x[i] * x[i];
      var /= (double)j->n;
    } else {
      moments(x, 1, j->n, 0, &mean, &var);
    }
    double rstd = 1 / sqrt(var + j->eps);
    int64_t first = j->groups ? r % j->groups * (j->n / j->inner) : 0;
    for (int64_t i = 0; i < j->n; ++i) {
      int64_t w = first + i / j->inner;
      double y = (x[i] - mean) * rstd;
      if (j->weight) y *= j->weight[w];
      if (j->bias) y += j->bias[w];
      x[i] = y;
    }
    j->mean[r] = mean;
    j->rstd[r] = rstd;
  }
}

/* Rows of x normalised; results 1 and 2 are mean and rstd with the given shape when the operator has them. */
static ait_status row_norm_run(ait_ref_call *call, ait_tensor *x, int64_t rows, row_norm *j, uint32_t weight, uint32_t bias,
                               int32_t stat_rank, const int64_t *stat_shape) {
  ait_tensor w = {0}, b = {0}, stats = {0};
  ait_status status;
  double *memory = ait_nn_doubles(call, 2 * rows);
  if (!memory) return AIT_OOM();
  AIT_GOTO(ait_nn_arg_or_null(call, weight, &w));
  if (bias != AIT_NO_INDEX) AIT_GOTO(ait_nn_arg_or_null(call, bias, &b));
  j->x = x->data;
  j->weight = w.data;
  j->bias = b.data;
  j->mean = memory;
  j->rstd = memory + rows;
  if (ait_tensor_count(x) > 0) ait_ref_parallel(call, rows, j->n * 4, normalise_rows, j);
  else
    for (int64_t r = 0; r < rows; ++r) j->mean[r] = j->rstd[r] = 0;
  const ait_tensor *input;
  AIT_GOTO(ait_ref_tensor(call, 0, &input));
  ait_dtype dtype = ait_nn_dtype(call, 0, AIT_F32);
  AIT_GOTO(j->groups ? ait_nn_result_format(call, 0, dtype, x, input) : ait_nn_result(call, 0, dtype, x));
  stats = ait_tensor_borrow(j->mean, AIT_F64, stat_rank, stat_shape);
  AIT_GOTO(ait_nn_result(call, 1, ait_nn_dtype(call, 1, AIT_F32), &stats));
  stats.data = j->rstd;
  status = ait_nn_result(call, 2, ait_nn_dtype(call, 2, AIT_F32), &stats);
cleanup:
  ait_tensor_release(&w);
  ait_tensor_release(&b);
  ait_nn_doubles_free(call, memory, 2 * rows);
  return status;
}

static ait_status trailing_norm(ait_ref_call *call, int64_t trailing, row_norm *j, uint32_t weight, uint32_t bias) {
  ait_tensor x;
  AIT_TRY(ait_nn_arg(call, 0, &x));
  if (trailing < 1 || trailing > x.rank) {
    ait_tensor_release(&x);
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "normalised dims do not fit the input");
  }
  int32_t lead = x.rank - (int32_t)trailing;
  int64_t stat_shape[AIT_MAX_RANK];
  for (int32_t d = 0; d < x.rank; ++d) stat_shape[d] = d < lead ? x.shape[d] : 1;
  j->n = ait_nn_span(&x, lead, x.rank);
  j->inner = 1;
  ait_status status = row_norm_run(call, &x, ait_nn_span(&x, 0, lead), j, weight, bias, x.rank, stat_shape);
  ait_tensor_release(&x);
  return status;
}

ait_status ait_ref_layer_norm(ait_ref_call *call) {
  row_norm j = {0};
  int64_t shape[AIT_MAX_RANK];
  int32_t trailing;
  AIT_TRY(ait_ref_ints(call, 1, shape, &trailing));
  AIT_TRY(ait_ref_float(call, 4, &j.eps));
  return trailing_norm(call, trailing, &j, 2, 3);
}

/* core: the number of trailing dims instead of their sizes */
ait_status ait_ref_core_layer_norm(ait_ref_call *call) {
  row_norm j = {0};
  int64_t trailing;
  AIT_TRY(ait_ref_int(call, 1, &trailing));
  AIT_TRY(ait_ref_float(call, 4, &j.eps));
  return trailing_norm(call, trailing, &j, 2, 3);
}

/* of the type that torch computes in: single precision for the halves */
static double epsilon_of(ait_dtype d) { return d == AIT_F64 || d == AIT_C128 ? 0x1p-52 : 0x1p-23; }

/* As torch composes it: x / sqrt(mean(x x) + eps), the squares without conjugation. */
static ait_status complex_rms_norm(ait_ref_call *call, const ait_tensor *t, int32_t trailing, double eps) {
  ait_tensor x = {0}, w = {0};
  ait_status status;
  if (trailing > t->rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", t->rank);
  int32_t lead = t->rank - trailing;
  AIT_GOTO(ait_nn_complex(call, t, &x));
  bool weighted = !ait_ref_is_none(call, 2);
  if (weighted) AIT_GOTO(ait_nn_complex_expanded(call, 2, trailing, t->shape + lead, &w));
  int64_t n = ait_nn_span(t, lead, t->rank), rows = ait_nn_span(t, 0, lead);
  for (int64_t r = 0; r < rows; ++r) {
    double complex *row = (double complex *)x.data + r * n, sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += row[i] * row[i];
    double complex scale = 1 / csqrt(sum / (double)n + eps);
    for (int64_t i = 0; i < n; ++i) row[i] *= scale * (weighted ? ((double complex *)w.data)[i] : 1);
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &x);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&w);
  return status;
}

ait_status ait_ref_rms_norm(ait_ref_call *call) {
  const ait_tensor *t;
  row_norm j = {.rms = true};
  int64_t shape[AIT_MAX_RANK];
  int32_t trailing;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_ints(call, 1, shape, &trailing));
  /* without eps: that of the dtype in the user's program, fp64 mode or not */
  AIT_TRY(ait_ref_float_or(call, 3, epsilon_of(ait_nn_declared_dtype(call, 0, AIT_F32)), &j.eps));
  if (ait_dtype_is_complex(t->dtype)) return complex_rms_norm(call, t, trailing, j.eps);
  return trailing_norm(call, trailing, &j, 2, AIT_NO_INDEX);
}

ait_status ait_ref_core_rms_norm(ait_ref_call *call) {
  row_norm j = {.rms = true};
  int64_t trailing;
  AIT_TRY(ait_ref_int(call, 1, &trailing));
  AIT_TRY(ait_ref_float(call, 3, &j.eps));
  return trailing_norm(call, trailing, &j, 2, AIT_NO_INDEX);
}

static ait_status group_norm(ait_ref_call *call, int64_t groups, double eps, uint32_t weight, uint32_t bias) {
  ait_tensor x;
  AIT_TRY(ait_nn_arg(call, 0, &x));
  ait_status status;
  if (x.rank < 2 || groups < 1 || x.shape[1] % groups != 0) {
    status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "channels are not divisible into %lld groups", (long long)groups);
  } else {
    row_norm j = {.eps = eps, .groups = groups};
    j.inner = ait_nn_max(1, ait_nn_span(&x, 2, x.rank));
    j.n = x.shape[1] / groups * ait_nn_span(&x, 2, x.rank);
    int64_t stats[2] = {x.shape[0], groups};
    status = row_norm_run(call, &x, x.shape[0] * groups, &j, weight, bias, 2, stats);
  }
  ait_tensor_release(&x);
  return status;
}

/* aten.group_norm, core group_norm */
ait_status ait_ref_group_norm(ait_ref_call *call) {
  int64_t groups;
  double eps;
  AIT_TRY(ait_ref_int(call, 1, &groups));
  AIT_TRY(ait_ref_float(call, 4, &eps));
  return group_norm(call, groups, eps, 2, 3);
}

ait_status ait_ref_native_group_norm(ait_ref_call *call) {
  int64_t groups;
  double eps;
  AIT_TRY(ait_ref_int(call, 6, &groups));
  AIT_TRY(ait_ref_float(call, 7, &eps));
  return group_norm(call, groups, eps, 1, 2);
}

/* ---- norms of slices --------------------------------------------------------------------------------------------------------- */
static double slice_norm(const double _Complex *x, const ait_tensor *t, int32_t d, int64_t index, double p) {
  int64_t inner = ait_nn_span(t, d + 1, t->rank), n = t->shape[d], outer = ait_nn_span(t, 0, d);
  double sum = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      double v = ait_nn_modulus(x[(o * n + index) * inner + i]);
      if (isinf(p)) sum = v > sum || isnan(v) ? v : sum;
      else sum += p == 2 ? v * v : p == 0 ? v != 0 : pow(v, p);
    }
  return isinf(p) || p == 0 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

static void scale_slice(double _Complex *x, const ait_tensor *t, int32_t d, int64_t index, double scale) {
  int64_t inner = ait_nn_span(t, d + 1, t->rank), n = t->shape[d], outer = ait_nn_span(t, 0, d);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) x[(o * n + index) * inner + i] *= scale;
}

/* v * g / |v|, the norm over all dims but `dim` (-1: over all) */
ait_status ait_ref_weight_norm(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor v = {0}, g = {0};
  int64_t dim;
  int32_t d = 0;
  ait_status status;
  AIT_GOTO(ait_ref_tensor(call, 0, &t));
  AIT_GOTO(ait_nn_complex(call, t, &v));
  AIT_GOTO(ait_nn_arg(call, 1, &g));
  AIT_GOTO(ait_ref_int(call, 2, &dim));
  ait_tensor shape = v;
  if (dim == -1) {
    shape.rank = 2;
    shape.shape[0] = 1;
    shape.shape[1] = ait_tensor_count(&v);
  } else {
    AIT_GOTO(ait_ref_dim(call, dim, v.rank, &d));
  }
  for (int64_t i = 0; i < shape.shape[d]; ++i)
    scale_slice(v.data, &shape, d, i, ait_nn_data(&g)[ait_tensor_count(&g) == 1 ? 0 : i] / slice_norm(v.data, &shape, d, i, 2));
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &v);
cleanup:
  ait_tensor_release(&v);
  ait_tensor_release(&g);
  return status;
}

/* Slices whose p-norm is above maxnorm are scaled down to it. */
ait_status ait_ref_renorm(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor x = {0};
  double p, limit;
  int64_t dim;
  int32_t d;
  ait_status status;
  AIT_GOTO(ait_ref_tensor(call, 0, &t));
  AIT_GOTO(ait_nn_complex(call, t, &x));
  AIT_GOTO(ait_ref_float(call, 1, &p));
  AIT_GOTO(ait_ref_int(call, 2, &dim));
  AIT_GOTO(ait_ref_float(call, 3, &limit));
  AIT_GOTO(ait_ref_dim(call, dim, x.rank, &d));
  for (int64_t i = 0; i < x.shape[d]; ++i) {
    double norm = slice_norm(x.data, &x, d, i, p);
    if (norm > limit) scale_slice(x.data, &x, d, i, limit / (norm + 1e-7));
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &x);
cleanup:
  ait_tensor_release(&x);
  return status;
}
