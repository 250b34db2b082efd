/* softmax and log_softmax along one dim, in double. */
#include "backends/reference/nn.h"

typedef struct softmax_job {
  double *x;
  int64_t n, inner;
  bool log, safe; /* safe: a row of nothing but -inf gives zeros */
} softmax_job;

static void softmax_row(const softmax_job *job, double *x) {
  int64_t n = job->n, s = job->inner;
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i)
    if (x[i * s] > top || isnan(x[i * s])) top = x[i * s];
  if (job->safe && top == -INFINITY) {
    for (int64_t i = 0; i < n; ++i) x[i * s] = 0;
    return;
  }
  if (job->log) {
    for (int64_t i = 0; i < n; ++i) sum += exp(x[i * s] - top);
    double shift = log(sum);
    for (int64_t i = 0; i < n; ++i) x[i * s] = x[i * s] - top - shift;
    return;
  }
  for (int64_t i = 0; i < n; ++i) sum += x[i * s] = exp(x[i * s] - top);
  for (int64_t i = 0; i < n; ++i) x[i * s] /= sum;
}

static void softmax_rows(void *ctx, int64_t begin, int64_t end) {
  const softmax_job *job = ctx;
  for (int64_t r = begin; r < end; ++r) softmax_row(job, job->x + r / job->inner * job->n * job->inner + r % job->inner);
}

/* A dtype argument is applied to the input first, so its rounding counts. */
static ait_status input_as(const ait_ref_call *call, const ait_tensor *t, ait_dtype dtype, ait_tensor *out) {
  bool real_part = ait_dtype_is_complex(t->dtype) && dtype != AIT_DTYPE_NONE;
  if (!real_part && (dtype == AIT_DTYPE_NONE || dtype == t->dtype || dtype == AIT_F64)) return ait_nn_f64(call, t, out);
  ait_tensor cast;
  AIT_TRY(ait_tensor_cast(call->allocator, t, dtype, &cast));
  ait_status status = ait_nn_f64(call, &cast, out);
  ait_tensor_release(&cast);
  return status;
}

static ait_status softmax(ait_ref_call *call, ait_dtype dtype, bool log, bool safe) {
  const ait_tensor *t;
  int64_t dim;
  int32_t d;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &dim));
  AIT_TRY(ait_ref_dim(call, dim, t->rank, &d));
  ait_tensor x;
  AIT_TRY(input_as(call, t, dtype, &x));
  int64_t count = ait_tensor_count(&x);
  softmax_job job = {
      .x = x.data, .n = x.rank ? x.shape[d] : 1, .inner = x.rank ? ait_nn_span(&x, d + 1, x.rank) : 1, .log = log, .safe = safe};
  if (count > 0) ait_ref_parallel(call, count / job.n, job.n * 16, softmax_rows, &job);
  ait_dtype otherwise = dtype != AIT_DTYPE_NONE ? dtype : t->dtype;
  ait_status status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, otherwise), &x);
  ait_tensor_release(&x);
  return status;
}

/* softmax, softmax.int, log_softmax.int, _safe_softmax, _softmax, _log_softmax, and core's two. */
ait_status ait_ref_softmax(ait_ref_call *call) {
  bool core = !ait_nn_starts(call, "aten."), legacy = ait_nn_is(call, "aten._softmax") || ait_nn_is(call, "aten._log_softmax");
  ait_dtype dtype = AIT_DTYPE_NONE;
  if (!core && !legacy) dtype = ait_ref_dtype(call, 2, AIT_DTYPE_NONE);
  return softmax(call, dtype, strstr(call->node->op, "log_softmax") != NULL, ait_nn_is(call, "aten._safe_softmax"));
}

/* grad_input = output * (grad - sum(grad * output)) */
ait_status ait_ref_softmax_backward(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t dim;
  int32_t d;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 2, &dim));
  AIT_TRY(ait_ref_dim(call, dim, t->rank, &d));
  ait_tensor g = {0}, y = {0};
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, t, &g));
  AIT_GOTO(ait_nn_arg(call, 1, &y));
  int64_t n = g.rank ? g.shape[d] : 1, s = g.rank ? ait_nn_span(&g, d + 1, g.rank) : 1, rows = n ? ait_tensor_count(&g) / n : 0;
  for (int64_t r = 0; r < rows; ++r) {
    double *a = ait_nn_data_mut(&g) + r / s * n * s + r % s, sum = 0;
    const double *b = ait_nn_data(&y) + r / s * n * s + r % s;
    for (int64_t i = 0; i < n; ++i) sum += a[i * s] * b[i * s];
    for (int64_t i = 0; i < n; ++i) a[i * s] = b[i * s] * (a[i * s] - sum);
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &g);
cleanup:
  ait_tensor_release(&g);
  ait_tensor_release(&y);
  return status;
}
