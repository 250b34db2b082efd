/* ONNX: reductions over axes that are data, or over nothing; running sums and products. */
#include "backends/reference/lines.h"
#include "backends/reference/onnx.h"

/* ---- reductions ------------------------------------------------------------------------------------------------------------------*/

typedef enum kind { SUM, MEAN, MAX, MIN, PROD, L1, L2, LOG_SUM, LOG_SUM_EXP, SUM_SQUARE, KIND_COUNT } kind;
static const char *const kind_names[KIND_COUNT] = {"sum", "mean", "max", "min", "prod", "l1", "l2", "log_sum", "log_sum_exp", "sum_square"};

typedef struct accumulator {
  double f, largest;
  int64_t i, count;
} accumulator;

static void accumulator_start(accumulator *a, kind k, ait_dtype dtype) {
  *a = (accumulator){.f = k == PROD ? 1 : 0, .i = k == PROD ? 1 : 0, .largest = -INFINITY};
  if (k == MAX) a->f = -INFINITY, a->i = INT64_MIN;
  if (k == MIN) a->f = INFINITY, a->i = INT64_MAX;
  if (k != MAX && k != MIN) return;
  switch (dtype) { /* of no elements: the other end of the type */
    case AIT_BOOL: a->i = k == MIN; break;
    case AIT_U8: a->i = k == MIN ? UINT8_MAX : 0; break;
    case AIT_I8: a->i = k == MIN ? INT8_MAX : INT8_MIN; break;
    case AIT_U16: a->i = k == MIN ? UINT16_MAX : 0; break;
    case AIT_I16: a->i = k == MIN ? INT16_MAX : INT16_MIN; break;
    case AIT_U32: a->i = k == MIN ? UINT32_MAX : 0; break;
    case AIT_I32: a->i = k == MIN ? INT32_MAX : INT32_MIN; break;
    case AIT_U64: a->i = k == MIN ? -1 : 0; break;
    default: break;
  }
}

static void accumulate_float(accumulator *a, kind k, double v) {
  switch (k) {
    case MAX: a->f = isnan(v) || isnan(a->f) ? NAN : v > a->f ? v : a->f; break;
    case MIN: a->f = isnan(v) || isnan(a->f) ? NAN : v < a->f ? v : a->f; break;
    case PROD: a->f *= v; break;
    case L1: a->f += fabs(v); break;
    case L2:
    case SUM_SQUARE: a->f += v * v; break;
    case LOG_SUM_EXP: /* kept as exp(v - largest) */
      if (v > a->largest) {
        a->f = (isinf(a->largest) ? 0 : a->f * exp(a->largest - v)) + 1;
        a->largest = v;
      } else {
        a->f += isinf(v) && v == a->largest ? (v > 0) : exp(v - a->largest);
      }
      break;
    default: a->f += v; break;
  }
}

/* Sums and products wrap, as integers of that width do. */
static void accumulate_int(accumulator *a, kind k, int64_t v) {
  uint64_t u = (uint64_t)v;
  switch (k) {
    case MAX: a->i = v > a->i ? v : a->i; break;
    case MIN: a->i = v < a->i ? v : a->i; break;
    case PROD: a->i = (int64_t)((uint64_t)a->i * u); break;
    case L1: a->i = (int64_t)((uint64_t)a->i + (v < 0 ? 0 - u : u)); break;
    case L2:
    case SUM_SQUARE: a->i = (int64_t)((uint64_t)a->i + u * u); break;
    default: a->i = (int64_t)((uint64_t)a->i + u); break;
  }
}

static void store(const accumulator *a, kind k, bool integer, void *to, ait_dtype dtype) {
  double v = integer && k != LOG_SUM_EXP ? (double)a->i : a->f;
  if (integer && (k == SUM || k == MAX || k == MIN || k == PROD || k == L1 || k == SUM_SQUARE)) {
    ait_element_set_i64(to, dtype, a->i);
    return;
  }
  if (k == MEAN) v /= (double)a->count;
  if (k == L2) v = sqrt(v);
  if (k == LOG_SUM) v = log(v);
  if (k == LOG_SUM_EXP) v = a->count == 0 ? -INFINITY : isinf(a->largest) ? a->largest : log(v) + a->largest;
  ait_element_set_f64(to, dtype, v);
}

static void reduce_one(const ait_tensor *x, const bool *reduced, const int64_t *at, kind k, void *to, ait_dtype dtype) {
  int64_t shape[AIT_MAX_RANK], inner[AIT_MAX_RANK] = {0}, index[AIT_MAX_RANK], n = 1;
  bool integer = ait_dtype_is_integer(x->dtype);
  accumulator a;
  accumulator_start(&a, k, x->dtype);
  for (int32_t d = 0; d < x->rank; ++d) {
    shape[d] = reduced[d] ? x->shape[d] : 1;
    n *= shape[d];
  }
  a.count = n;
  if (n > 0) {
    do {
      for (int32_t d = 0; d < x->rank; ++d) index[d] = reduced[d] ? inner[d] : at[d];
      const void *p = ait_ref_at(x, index);
      if (integer && k != LOG_SUM_EXP) accumulate_int(&a, k, ait_element_i64(p, x->dtype));
      else accumulate_float(&a, k, ait_element_f64(p, x->dtype));
    } while (ait_ref_next(x->rank, shape, inner));
  }
  store(&a, k, integer, to, dtype);
}

/* (x, axes tensor?, axes?, keepdims, noop_with_empty_axes, kind) */
ait_status ait_ref_onnx_reduce(ait_ref_call *call) {
  const ait_tensor *x;
  bool reduced[AIT_MAX_RANK] = {0}, keep, noop;
  int32_t n = 0, rank = 0;
  int64_t axes[AIT_MAX_RANK], shape[AIT_MAX_RANK], full[AIT_MAX_RANK], index[AIT_MAX_RANK] = {0};
  const char *name = ait_ref_string(call, 5);
  int k = 0;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_bool(call, 3, &keep));
  AIT_TRY(ait_ref_bool(call, 4, &noop));
  while (k < KIND_COUNT && strcmp(kind_names[k], name ? name : "") != 0) ++k;
  if (k == KIND_COUNT) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "no reduction '%s'", name ? name : "");
  if (!ait_ref_is_none(call, 1)) {
    AIT_TRY(ait_onnx_axes(call, 1, x->rank, reduced, &n));
  } else {
    AIT_TRY(ait_ref_ints(call, 2, axes, &n));
    for (int32_t i = 0; i < n; ++i) reduced[axes[i] >= 0 && axes[i] < x->rank ? axes[i] : 0] = true;
  }
  if (n <= 0 && !noop)
    for (int32_t d = 0; d < x->rank; ++d) reduced[d] = true;
  for (int32_t d = 0; d < x->rank; ++d) {
    full[d] = reduced[d] ? 1 : x->shape[d];
    if (!reduced[d] || keep) shape[rank++] = full[d];
  }
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, rank, shape, &out));
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  int64_t i = 0;
  do reduce_one(x, reduced, index, (kind)k, ait_onnx_at(&out, i++), out.dtype);
  while (ait_ref_next(x->rank, full, index));
  return AIT_OK;
}

/* ---- running sums ----------------------------------------------------------------------------------------------------------------*/

typedef struct running {
  bool exclusive, reverse, product;
} running;

static ait_status run_line(const ait_ref_lines *lines, int64_t o) {
  const running *r = lines->params;
  ait_tensor x = ait_ref_line(lines, 0, o), y = ait_ref_line(lines, 1, o);
  int64_t n = x.shape[0], total_i = r->product;
  double total = r->product;
  bool integer = ait_dtype_is_integer(x.dtype);
  for (int64_t k = 0; k < n; ++k) {
    int64_t i = r->reverse ? n - 1 - k : k, before_i = total_i;
    const void *from = ait_onnx_at(&x, i * x.strides[0]);
    void *to = ait_onnx_at(&y, i * y.strides[0]);
    double before = total;
    if (integer) {
      uint64_t v = (uint64_t)ait_element_i64(from, x.dtype);
      total_i = (int64_t)(r->product ? (uint64_t)total_i * v : (uint64_t)total_i + v);
      ait_element_set_i64(to, y.dtype, r->exclusive ? before_i : total_i);
    } else {
      double v = ait_element_f64(from, x.dtype);
      total = r->product ? total * v : total + v;
      ait_element_set_f64(to, y.dtype, r->exclusive ? before : total);
    }
  }
  return AIT_OK;
}

/* (x, axis, exclusive, reverse, product) */
ait_status ait_ref_onnx_cumulative(ait_ref_call *call) {
  const ait_tensor *x;
  running r;
  double axis;
  int32_t d;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_number(call, 1, &axis));
  AIT_TRY(ait_ref_bool(call, 2, &r.exclusive));
  AIT_TRY(ait_ref_bool(call, 3, &r.reverse));
  AIT_TRY(ait_ref_bool(call, 4, &r.product));
  AIT_TRY(ait_ref_dim(call, (int64_t)axis, x->rank, &d));
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, x->rank, x->shape, &out));
  ait_ref_lines lines = {.tensors = {ait_ref_lines_view(x, d), ait_ref_lines_view(&out, d)}, .count = 2, .call = call, .params = &r};
  return ait_ref_each_line(&lines, x->rank ? x->shape[d] : 1, run_line);
}
