/* Running sums and their like along a dim; differences of neighbours. */
#include "backends/reference/lines.h"

#include <math.h>

/* What is carried from element to element. */
typedef struct carry {
  double f, g;
  int64_t i, index;
  double complex c;
  bool any;
} carry;

/* block is changed in place to the running values; indices, where the operator gives them, are those of the values. */
typedef void (*scan_fn)(carry *c, ait_ref_block *block, int64_t *indices, int64_t n, int64_t first);

typedef struct scan_params {
  scan_fn fn;
  ait_ref_domain domain;
  carry start;
} scan_params;

static ait_status scan_one(const ait_ref_lines *lines, int64_t o) {
  const scan_params *p = lines->params;
  ait_tensor from = ait_ref_line(lines, 0, o), to = ait_ref_line(lines, 1, o), index = {0};
  if (lines->count == 3) index = ait_ref_line(lines, 2, o);
  carry c = p->start;
  ait_ref_block block;
  int64_t indices[AIT_REF_BLOCK];
  for (int64_t at = 0; at < from.shape[0]; at += AIT_REF_BLOCK) {
    int64_t n = from.shape[0] - at < AIT_REF_BLOCK ? from.shape[0] - at : AIT_REF_BLOCK;
    ait_ref_load(&from, at, n, p->domain, &block);
    p->fn(&c, &block, indices, n, at);
    ait_ref_store(&to, at, n, p->domain, &block);
    if (lines->count == 3) ait_ref_store(&index, at, n, AIT_REF_I, indices);
  }
  return AIT_OK;
}

static ait_status scan(ait_ref_call *call, const scan_params *by_domain, bool with_indices) {
  const ait_tensor *t;
  int32_t dim;
  ait_tensor values, indices;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  if (dtype == AIT_DTYPE_NONE || with_indices) dtype = t->dtype;
  const scan_params *params = &by_domain[ait_ref_domain_of(dtype)];
  if (!params->fn) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "not defined for %s", ait_dtype_name(dtype));
  AIT_TRY(ait_ref_new(call, 0, dtype, t->rank, t->shape, &values));
  ait_ref_lines lines = {.call = call, .params = params, .count = 2};
  lines.tensors[0] = ait_ref_lines_view(t, dim);
  lines.tensors[1] = ait_ref_lines_view(&values, dim);
  if (with_indices) {
    AIT_TRY(ait_ref_new(call, 1, AIT_I64, t->rank, t->shape, &indices));
    lines.tensors[lines.count++] = ait_ref_lines_view(&indices, dim);
  }
  return ait_ref_each_line(&lines, 8 * lines.tensors[0].shape[lines.tensors[0].rank - 1], scan_one);
}

#define SCAN(name, member, update)                                                               \
  static void name(carry *c, ait_ref_block *block, int64_t *indices, int64_t n, int64_t first) { \
    AIT_UNUSED(indices);                                                                         \
    AIT_UNUSED(first);                                                                           \
    for (int64_t k = 0; k < n; ++k) {                                                            \
      update;                                                                                    \
      block->member[k] = c->member;                                                              \
    }                                                                                            \
  }
SCAN(sum_f, f, c->f += block->f[k])
SCAN(sum_i, i, c->i = (int64_t)((uint64_t)c->i + (uint64_t)block->i[k]))
SCAN(sum_c, c, c->c += block->c[k])
SCAN(prod_f, f, c->f *= block->f[k])
SCAN(prod_i, i, c->i = (int64_t)((uint64_t)c->i * (uint64_t)block->i[k]))
SCAN(prod_c, c, c->c *= block->c[k])
ait_status ait_ref_cumsum(ait_ref_call *call) {
  static const scan_params kinds[] = {
      {.fn = sum_f, .domain = AIT_REF_F}, {.fn = sum_i, .domain = AIT_REF_I}, {.fn = sum_c, .domain = AIT_REF_C}};
  return scan(call, kinds, false);
}
ait_status ait_ref_cumprod(ait_ref_call *call) {
  static const scan_params kinds[] = {{.fn = prod_f, .domain = AIT_REF_F, .start = {.f = 1}},
                                      {.fn = prod_i, .domain = AIT_REF_I, .start = {.i = 1}},
                                      {.fn = prod_c, .domain = AIT_REF_C, .start = {.c = 1}}};
  return scan(call, kinds, false);
}

/* The greatest so far in f, the sum of exponentials below it in g. */
static double log_sum(carry *c, double x) {
  if (!c->any || x > c->f || isnan(x)) {
    c->g = c->any && isfinite(c->f) ? c->g * exp(c->f - x) + 1 : 1;
    c->f = x;
  } else c->g += x == c->f ? 1 : exp(x - c->f);
  c->any = true;
  return isinf(c->f) ? c->f : c->f + log(c->g);
}
static void log_sum_f(carry *c, ait_ref_block *block, int64_t *indices, int64_t n, int64_t first) {
  AIT_UNUSED(indices);
  AIT_UNUSED(first);
  for (int64_t k = 0; k < n; ++k) block->f[k] = log_sum(c, block->f[k]);
}
static void log_sum_c(carry *c, ait_ref_block *block, int64_t *indices, int64_t n, int64_t first) {
  AIT_UNUSED(indices);
  AIT_UNUSED(first);
  for (int64_t k = 0; k < n; ++k) {
    c->c = c->any ? ait_ref_log_add_exp(c->c, block->c[k]) : block->c[k];
    c->any = true;
    block->c[k] = c->c;
  }
}
ait_status ait_ref_logcumsumexp(ait_ref_call *call) {
  static const scan_params kinds[] = {{.fn = log_sum_f, .domain = AIT_REF_F}, {.fn = NULL}, {.fn = log_sum_c, .domain = AIT_REF_C}};
  return scan(call, kinds, false);
}

/* The last of equals is taken; NaN stays. */
#define EXTREME(name, member, better)                                                            \
  static void name(carry *c, ait_ref_block *block, int64_t *indices, int64_t n, int64_t first) { \
    for (int64_t k = 0; k < n; ++k) {                                                            \
      if (!c->any || (better)) {                                                                 \
        c->member = block->member[k];                                                            \
        c->index = first + k;                                                                    \
        c->any = true;                                                                           \
      }                                                                                          \
      block->member[k] = c->member;                                                              \
      indices[k] = c->index;                                                                     \
    }                                                                                            \
  }
EXTREME(max_f, f, isnan(block->f[k]) || (!isnan(c->f) && block->f[k] >= c->f))
EXTREME(min_f, f, isnan(block->f[k]) || (!isnan(c->f) && block->f[k] <= c->f))
EXTREME(max_i, i, block->i[k] >= c->i)
EXTREME(min_i, i, block->i[k] <= c->i)
ait_status ait_ref_cummax(ait_ref_call *call) {
  static const scan_params kinds[] = {{.fn = max_f, .domain = AIT_REF_F}, {.fn = max_i, .domain = AIT_REF_I}, {.fn = NULL}};
  return scan(call, kinds, true);
}
ait_status ait_ref_cummin(ait_ref_call *call) {
  static const scan_params kinds[] = {{.fn = min_f, .domain = AIT_REF_F}, {.fn = min_i, .domain = AIT_REF_I}, {.fn = NULL}};
  return scan(call, kinds, true);
}

/* ---- differences ------------------------------------------------------------------------------------------------------------- */
/* out = later - earlier, element by element; bools: whether they differ. */
static void subtract(const ait_tensor *later, const ait_tensor *earlier, const ait_tensor *out) {
  ait_ref_domain domain = ait_ref_domain_of(out->dtype);
  ait_ref_block a, b;
  int64_t count = ait_tensor_count(out);
  for (int64_t at = 0; at < count; at += AIT_REF_BLOCK) {
    int64_t n = count - at < AIT_REF_BLOCK ? count - at : AIT_REF_BLOCK;
    ait_ref_load(later, at, n, domain, &a);
    ait_ref_load(earlier, at, n, domain, &b);
    for (int64_t k = 0; k < n; ++k) {
      if (domain == AIT_REF_F) a.f[k] -= b.f[k];
      else if (domain == AIT_REF_I) a.i[k] = (int64_t)((uint64_t)a.i[k] - (uint64_t)b.i[k]);
      else a.c[k] -= b.c[k];
    }
    ait_ref_store(out, at, n, domain, &a);
  }
}

/* t with prepend and append put on along dim; released by the caller. */
static ait_status extended(const ait_ref_call *call, const ait_tensor *t, int32_t dim, ait_tensor *out) {
  const ait_tensor *parts[3] = {ait_ref_tensor_or_null(call, 3), t, ait_ref_tensor_or_null(call, 4)};
  int64_t shape[AIT_MAX_RANK], at = 0;
  memcpy(shape, t->shape, sizeof t->shape);
  shape[dim] = 0;
  for (int i = 0; i < 3; ++i) {
    if (!parts[i]) continue;
    bool fits = parts[i]->rank == t->rank;
    for (int32_t d = 0; d < t->rank && fits; ++d) fits = d == dim || parts[i]->shape[d] == t->shape[d];
    if (!fits) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "what is put on does not match the tensor");
    shape[dim] += parts[i]->shape[dim];
  }
  AIT_TRY(ait_ref_temp(call, t->dtype, t->rank, shape, out));
  ait_status status = AIT_OK;
  for (int i = 0; i < 3 && status == AIT_OK; ++i) {
    if (!parts[i]) continue;
    ait_tensor part = ait_ref_narrowed(out, dim, at, parts[i]->shape[dim]);
    status = ait_ref_move(call, &part, parts[i]);
    at += parts[i]->shape[dim];
  }
  if (status != AIT_OK) ait_tensor_release(out);
  return status;
}

/* (self, n, dim, prepend, append) */
ait_status ait_ref_diff(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor now;
  int64_t n;
  int32_t dim;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int_or(call, 1, 1, &n));
  AIT_TRY(ait_ref_dim_arg(call, 2, -1, t->rank, &dim));
  if (t->rank == 0 || n < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "differences of a tensor of rank %d", t->rank);
  AIT_TRY(extended(call, t, dim, &now));
  for (int64_t i = 0; i < n && now.shape[dim] > 0; ++i) {
    ait_tensor next, later = ait_ref_narrowed(&now, dim, 1, now.shape[dim] - 1),
                     earlier = ait_ref_narrowed(&now, dim, 0, now.shape[dim] - 1);
    ait_status status = ait_ref_temp(call, now.dtype, later.rank, later.shape, &next);
    if (status == AIT_OK && ait_tensor_count(&next) > 0) subtract(&later, &earlier, &next);
    ait_tensor_release(&now);
    AIT_TRY(status);
    now = next;
  }
  ait_ref_set(call, 0, now);
  return AIT_OK;
}
