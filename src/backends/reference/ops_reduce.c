/* Reductions. */
#include "backends/reference/reduce.h"

#include <math.h>

#define STEP(name, body)                                                                                                 \
  static void name(ait_ref_accumulator *a, const ait_ref_block *block, int64_t n, int64_t first, const double *params) { \
    AIT_UNUSED(first);                                                                                                   \
    AIT_UNUSED(params);                                                                                                  \
    for (int64_t k = 0; k < n; ++k) body                                                                                 \
  }
#define FINISH(name, type, expression)                                                               \
  static void name(const ait_ref_accumulator *a, uint32_t result, void *out, const double *params) { \
    AIT_UNUSED(result);                                                                              \
    AIT_UNUSED(params);                                                                              \
    *(type *)out = (expression);                                                                     \
  }
FINISH(finish_f, double, a->f)
FINISH(finish_i, int64_t, a->i)
FINISH(finish_c, double complex, a->c)
FINISH(finish_index, int64_t, a->index)
FINISH(finish_any, int64_t, a->any)
FINISH(finish_count, int64_t, a->count)

/* One reduction for each compute domain. */
typedef struct by_domain {
  const ait_ref_reduction *f, *i, *c;
} by_domain;

static const ait_ref_reduction *for_domain(const by_domain *r, ait_ref_domain domain) {
  return domain == AIT_REF_F ? r->f : domain == AIT_REF_I ? r->i : r->c;
}

static ait_status not_defined(const ait_ref_call *call, ait_dtype dtype) {
  return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "not defined for %s", ait_dtype_name(dtype));
}

/* dims_arg AIT_NO_INDEX: all dims. */
static ait_status axes_for(const ait_ref_call *call, const ait_tensor *t, uint32_t dims_arg, uint32_t keep_arg, ait_ref_axes *out) {
  return dims_arg == AIT_NO_INDEX ? ait_ref_axes_all(t, out) : ait_ref_axes_args(call, t, dims_arg, keep_arg, out);
}

/* Computed in the domain of the result's dtype. */
static ait_status arithmetic(ait_ref_call *call, const by_domain *kinds, uint32_t dims_arg, uint32_t keep_arg) {
  const ait_tensor *t;
  ait_ref_axes axes;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(axes_for(call, t, dims_arg, keep_arg, &axes));
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  if (dtype == AIT_DTYPE_NONE) dtype = t->dtype;
  ait_ref_domain domain = ait_ref_domain_of(dtype);
  const ait_ref_reduction *r = for_domain(kinds, domain);
  if (!r) return not_defined(call, dtype);
  return ait_ref_reduce(call, t, &axes, domain, r, &(ait_ref_reduce_result){dtype, domain}, 1, NULL);
}

#define OVER_ALL_AND_DIMS(name, kinds)                                                                      \
  ait_status ait_ref_##name##_all(ait_ref_call *call) { return arithmetic(call, &kinds, AIT_NO_INDEX, 0); } \
  ait_status ait_ref_##name(ait_ref_call *call) { return arithmetic(call, &kinds, 1, 2); }

/* ---- sums and products ------------------------------------------------------------------------------------------------------- */
STEP(sum_f, a->f += block->f[k];)
STEP(sum_i, a->i = (int64_t)((uint64_t)a->i + (uint64_t)block->i[k]);)
STEP(sum_c, a->c += block->c[k];)
static const ait_ref_reduction r_sum_f = {.step = sum_f, .finish = finish_f}, r_sum_i = {.step = sum_i, .finish = finish_i},
                               r_sum_c = {.step = sum_c, .finish = finish_c};
static const by_domain sums = {&r_sum_f, &r_sum_i, &r_sum_c};
OVER_ALL_AND_DIMS(sum, sums)

static void mean_step_f(ait_ref_accumulator *a, const ait_ref_block *block, int64_t n, int64_t first, const double *params) {
  sum_f(a, block, n, first, params);
  a->count += n;
}
static void mean_step_c(ait_ref_accumulator *a, const ait_ref_block *block, int64_t n, int64_t first, const double *params) {
  sum_c(a, block, n, first, params);
  a->count += n;
}
FINISH(mean_f, double, a->f / (double)a->count)
FINISH(mean_c, double complex, a->c / (double)a->count)
static const ait_ref_reduction r_mean_f = {.step = mean_step_f, .finish = mean_f}, r_mean_c = {.step = mean_step_c, .finish = mean_c};
static const by_domain means = {&r_mean_f, NULL, &r_mean_c};
OVER_ALL_AND_DIMS(mean, means)

STEP(nansum_f, {
  a->f += isnan(block->f[k]) ? 0 : block->f[k];
  a->count += !isnan(block->f[k]);
})
static const ait_ref_reduction r_nansum_f = {.step = nansum_f, .finish = finish_f}, r_nanmean_f = {.step = nansum_f, .finish = mean_f};
static const by_domain nansums = {&r_nansum_f, &r_sum_i, &r_sum_c}, nanmeans = {&r_nanmean_f, NULL, NULL};
ait_status ait_ref_nansum(ait_ref_call *call) { return arithmetic(call, &nansums, 1, 2); }
ait_status ait_ref_nanmean(ait_ref_call *call) { return arithmetic(call, &nanmeans, 1, 2); }

STEP(prod_f, a->f *= block->f[k];)
STEP(prod_i, a->i = (int64_t)((uint64_t)a->i * (uint64_t)block->i[k]);)
STEP(prod_c, a->c *= block->c[k];)
static const ait_ref_reduction r_prod_f = {.step = prod_f, .finish = finish_f, .start = {.f = 1}},
                               r_prod_i = {.step = prod_i, .finish = finish_i, .start = {.i = 1}},
                               r_prod_c = {.step = prod_c, .finish = finish_c, .start = {.c = 1}};
static const by_domain prods = {&r_prod_f, &r_prod_i, &r_prod_c};
OVER_ALL_AND_DIMS(prod, prods)

/* ---- extremes: NaN wins, the first of equals is taken ------------------------------------------------------------------------ */
#define TAKE(value, member, better) \
  {                                 \
    if (!a->any || (better)) {      \
      a->member = (value);          \
      a->index = first + k;         \
      a->any = true;                \
    }                               \
  }
STEP(max_f, TAKE(block->f[k], f, !isnan(a->f) && (block->f[k] > a->f || isnan(block->f[k]))))
STEP(min_f, TAKE(block->f[k], f, !isnan(a->f) && (block->f[k] < a->f || isnan(block->f[k]))))
STEP(max_i, TAKE(block->i[k], i, block->i[k] > a->i))
STEP(min_i, TAKE(block->i[k], i, block->i[k] < a->i))
static const ait_ref_reduction r_max_f = {.step = max_f, .finish = finish_f, .needs_elements = true},
                               r_max_i = {.step = max_i, .finish = finish_i, .needs_elements = true},
                               r_min_f = {.step = min_f, .finish = finish_f, .needs_elements = true},
                               r_min_i = {.step = min_i, .finish = finish_i, .needs_elements = true};
static const by_domain maxima = {&r_max_f, &r_max_i, NULL}, minima = {&r_min_f, &r_min_i, NULL};
ait_status ait_ref_max_all(ait_ref_call *call) { return arithmetic(call, &maxima, AIT_NO_INDEX, 0); }
ait_status ait_ref_min_all(ait_ref_call *call) { return arithmetic(call, &minima, AIT_NO_INDEX, 0); }
ait_status ait_ref_amax(ait_ref_call *call) { return arithmetic(call, &maxima, 1, 2); }
ait_status ait_ref_amin(ait_ref_call *call) { return arithmetic(call, &minima, 1, 2); }

/* Value and index; finish's result 0 is the value. */
static void value_and_index_f(const ait_ref_accumulator *a, uint32_t k, void *out, const double *params) {
  if (k == 0) finish_f(a, k, out, params);
  else finish_index(a, k, out, params);
}
static void value_and_index_i(const ait_ref_accumulator *a, uint32_t k, void *out, const double *params) {
  if (k == 0) finish_i(a, k, out, params);
  else finish_index(a, k, out, params);
}
static const ait_ref_reduction r_max_dim_f = {.step = max_f, .finish = value_and_index_f, .needs_elements = true},
                               r_max_dim_i = {.step = max_i, .finish = value_and_index_i, .needs_elements = true},
                               r_min_dim_f = {.step = min_f, .finish = value_and_index_f, .needs_elements = true},
                               r_min_dim_i = {.step = min_i, .finish = value_and_index_i, .needs_elements = true},
                               r_argmax_f = {.step = max_f, .finish = finish_index, .needs_elements = true},
                               r_argmax_i = {.step = max_i, .finish = finish_index, .needs_elements = true},
                               r_argmin_f = {.step = min_f, .finish = finish_index, .needs_elements = true},
                               r_argmin_i = {.step = min_i, .finish = finish_index, .needs_elements = true};

/* Read in the input's own domain; value results keep its dtype. */
static ait_status extreme(ait_ref_call *call, const by_domain *kinds, bool with_value) {
  const ait_tensor *t;
  ait_ref_axes axes;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_axes_args(call, t, 1, 2, &axes));
  ait_ref_domain domain = ait_ref_domain_of(t->dtype);
  const ait_ref_reduction *r = for_domain(kinds, domain);
  if (!r) return not_defined(call, t->dtype);
  ait_ref_reduce_result both[2] = {{t->dtype, domain}, {AIT_I64, AIT_REF_I}};
  return ait_ref_reduce(call, t, &axes, domain, r, with_value ? both : &both[1], with_value ? 2 : 1, NULL);
}
static const by_domain max_dims = {&r_max_dim_f, &r_max_dim_i, NULL}, min_dims = {&r_min_dim_f, &r_min_dim_i, NULL},
                       argmaxima = {&r_argmax_f, &r_argmax_i, NULL}, argminima = {&r_argmin_f, &r_argmin_i, NULL};
ait_status ait_ref_max_dim(ait_ref_call *call) { return extreme(call, &max_dims, true); }
ait_status ait_ref_min_dim(ait_ref_call *call) { return extreme(call, &min_dims, true); }
ait_status ait_ref_argmax(ait_ref_call *call) { return extreme(call, &argmaxima, false); }
ait_status ait_ref_argmin(ait_ref_call *call) { return extreme(call, &argminima, false); }

STEP(minmax_f, {
  double v = block->f[k];
  if (!a->any || v < a->f || isnan(v)) a->f = a->any && isnan(a->f) ? a->f : v;
  if (!a->any || v > a->g || isnan(v)) a->g = a->any && isnan(a->g) ? a->g : v;
  a->any = true;
})
STEP(minmax_i, {
  int64_t v = block->i[k];
  if (!a->any || v < a->i) a->i = v;
  if (!a->any || v > a->index) a->index = v;
  a->any = true;
})
static void finish_minmax_f(const ait_ref_accumulator *a, uint32_t k, void *out, const double *params) {
  AIT_UNUSED(params);
  *(double *)out = k == 0 ? a->f : a->g;
}
static const ait_ref_reduction r_minmax_f = {.step = minmax_f, .finish = finish_minmax_f, .needs_elements = true},
                               r_minmax_i = {.step = minmax_i, .finish = value_and_index_i, .needs_elements = true};
ait_status ait_ref_aminmax(ait_ref_call *call) {
  const ait_tensor *t;
  ait_ref_axes axes;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_axes_args(call, t, 1, 2, &axes));
  ait_ref_domain domain = ait_ref_domain_of(t->dtype);
  if (domain == AIT_REF_C) return not_defined(call, t->dtype);
  ait_ref_reduce_result both[2] = {{t->dtype, domain}, {t->dtype, domain}};
  return ait_ref_reduce(call, t, &axes, domain, domain == AIT_REF_F ? &r_minmax_f : &r_minmax_i, both, 2, NULL);
}

/* ---- truth and counting ------------------------------------------------------------------------------------------------------ */
STEP(any_f, a->any |= block->f[k] != 0;)
STEP(any_i, a->any |= block->i[k] != 0;)
STEP(any_c, a->any |= block->c[k] != 0;)
STEP(all_f, a->any &= block->f[k] != 0;)
STEP(all_i, a->any &= block->i[k] != 0;)
STEP(all_c, a->any &= block->c[k] != 0;)
STEP(count_f, a->count += block->f[k] != 0;)
STEP(count_i, a->count += block->i[k] != 0;)
STEP(count_c, a->count += block->c[k] != 0;)
static const ait_ref_reduction r_any_f = {.step = any_f, .finish = finish_any}, r_any_i = {.step = any_i, .finish = finish_any},
                               r_any_c = {.step = any_c, .finish = finish_any},
                               r_all_f = {.step = all_f, .finish = finish_any, .start = {.any = true}},
                               r_all_i = {.step = all_i, .finish = finish_any, .start = {.any = true}},
                               r_all_c = {.step = all_c, .finish = finish_any, .start = {.any = true}},
                               r_count_f = {.step = count_f, .finish = finish_count}, r_count_i = {.step = count_i, .finish = finish_count},
                               r_count_c = {.step = count_c, .finish = finish_count};
static const by_domain anys = {&r_any_f, &r_any_i, &r_any_c}, alls = {&r_all_f, &r_all_i, &r_all_c},
                       counts = {&r_count_f, &r_count_i, &r_count_c};

/* torch keeps uint8 for uint8, else the result is bool (counts: int64). */
static ait_status logical(ait_ref_call *call, const by_domain *kinds, uint32_t dims_arg, ait_dtype when_none) {
  const ait_tensor *t;
  ait_ref_axes axes;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(axes_for(call, t, dims_arg, 2, &axes));
  ait_ref_domain domain = ait_ref_domain_of(t->dtype);
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  if (dtype == AIT_DTYPE_NONE) dtype = when_none;
  return ait_ref_reduce(call, t, &axes, domain, for_domain(kinds, domain), &(ait_ref_reduce_result){dtype, AIT_REF_I}, 1, NULL);
}
ait_status ait_ref_any(ait_ref_call *call) { return logical(call, &anys, 1, AIT_BOOL); }
ait_status ait_ref_all(ait_ref_call *call) { return logical(call, &alls, 1, AIT_BOOL); }
ait_status ait_ref_count_nonzero(ait_ref_call *call) { return logical(call, &counts, 1, AIT_I64); }

/* ---- spread ------------------------------------------------------------------------------------------------------------------ */
/* Two passes: the mean, then the squared distances from it. params: correction, whether the root is taken. */
STEP(spread_again_f, {
  double distance = block->f[k] - a->f / (double)a->count;
  a->g += distance * distance;
})
STEP(spread_again_c, {
  double complex distance = block->c[k] - a->c / (double)a->count;
  a->g += creal(distance) * creal(distance) + cimag(distance) * cimag(distance);
})
static double spread_of(const ait_ref_accumulator *a, const double *params) {
  double divisor = (double)a->count - params[0];
  double variance = a->g / (divisor > 0 ? divisor : 0);
  if (a->count == 0) variance = NAN;
  return params[1] != 0 ? sqrt(variance) : variance;
}
static void finish_spread_f(const ait_ref_accumulator *a, uint32_t k, void *out, const double *params) {
  *(double *)out = k == 0 ? spread_of(a, params) : a->f / (double)a->count;
}
static void finish_spread_c(const ait_ref_accumulator *a, uint32_t k, void *out, const double *params) {
  if (k == 0) *(double *)out = spread_of(a, params);
  else *(double complex *)out = a->c / (double)a->count;
}
static const ait_ref_reduction r_spread_f = {.step = mean_step_f, .again = spread_again_f, .finish = finish_spread_f},
                               r_spread_c = {.step = mean_step_c, .again = spread_again_c, .finish = finish_spread_c};

static ait_status spread(ait_ref_call *call, const ait_ref_axes *axes, double correction, bool root, bool with_mean) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  ait_ref_domain domain = ait_ref_domain_of(t->dtype);
  if (domain == AIT_REF_I) return not_defined(call, t->dtype);
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  if (dtype == AIT_DTYPE_NONE) dtype = t->dtype == AIT_C128 ? AIT_F64 : domain == AIT_REF_C ? AIT_F32 : t->dtype;
  ait_ref_reduce_result both[2] = {{dtype, AIT_REF_F}, {t->dtype, domain}};
  double params[2] = {correction, root};
  return ait_ref_reduce(call, t, axes, domain, domain == AIT_REF_F ? &r_spread_f : &r_spread_c, both, with_mean ? 2 : 1, params);
}
/* (self, unbiased) */
static ait_status spread_all(ait_ref_call *call, bool root, bool with_mean) {
  const ait_tensor *t;
  ait_ref_axes axes;
  bool unbiased;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_axes_all(t, &axes));
  AIT_TRY(ait_ref_bool_or(call, 1, true, &unbiased));
  return spread(call, &axes, unbiased, root, with_mean);
}
/* (self, dim, unbiased, keepdim) */
static ait_status spread_dim(ait_ref_call *call, bool root, bool with_mean) {
  const ait_tensor *t;
  ait_ref_axes axes;
  bool unbiased;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_axes_args(call, t, 1, 3, &axes));
  AIT_TRY(ait_ref_bool_or(call, 2, true, &unbiased));
  return spread(call, &axes, unbiased, root, with_mean);
}
/* (self, dim, correction, keepdim) */
static ait_status spread_correction(ait_ref_call *call, bool root, bool with_mean) {
  const ait_tensor *t;
  ait_ref_axes axes;
  double correction;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_axes_args(call, t, 1, 3, &axes));
  AIT_TRY(ait_ref_float_or(call, 2, 1, &correction));
  return spread(call, &axes, correction, root, with_mean);
}
#define SPREAD(name, root, with_mean)                                                               \
  ait_status ait_ref_##name##_all(ait_ref_call *call) { return spread_all(call, root, with_mean); } \
  ait_status ait_ref_##name##_dim(ait_ref_call *call) { return spread_dim(call, root, with_mean); } \
  ait_status ait_ref_##name##_correction(ait_ref_call *call) { return spread_correction(call, root, with_mean); }
SPREAD(var, false, false)
SPREAD(std, true, false)
SPREAD(var_mean, false, true)
SPREAD(std_mean, true, true)

/* ---- logarithms of sums ------------------------------------------------------------------------------------------------------ */
STEP(log_sum_again, {
  double shift = isinf(a->f) ? 0 : a->f;
  a->g += exp(block->f[k] - shift);
})
FINISH(finish_log_sum, double, log(a->g) + (isinf(a->f) ? 0 : a->f))
static const ait_ref_reduction r_logsumexp = {.step = max_f, .again = log_sum_again, .finish = finish_log_sum, .start = {.f = -INFINITY}};
/* Complex: shifted by the greatest real part. */
STEP(max_real, { a->f = creal(block->c[k]) > a->f || isnan(creal(block->c[k])) ? creal(block->c[k]) : a->f; })
STEP(complex_sum_again, { a->c += cexp(block->c[k] - (isinf(a->f) ? 0 : a->f)); })
FINISH(finish_complex_sum, double complex, clog(a->c) + (isinf(a->f) ? 0 : a->f))
static const ait_ref_reduction r_complex_sum = {
    .step = max_real, .again = complex_sum_again, .finish = finish_complex_sum, .start = {.f = -INFINITY}};
static const by_domain logsumexps = {&r_logsumexp, NULL, &r_complex_sum};
ait_status ait_ref_logsumexp(ait_ref_call *call) { return arithmetic(call, &logsumexps, 1, 2); }

/* ---- sums of parts ----------------------------------------------------------------------------------------------------------- */
ait_status ait_ref_trace(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor diagonal;
  ait_ref_axes axes;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (t->rank != 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d is not a matrix", t->rank);
  AIT_TRY(ait_ref_diagonal_view(call, t, 0, 0, 1, &diagonal));
  AIT_TRY(ait_ref_axes_all(&diagonal, &axes));
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  if (dtype == AIT_DTYPE_NONE) dtype = ait_dtype_is_integer(t->dtype) ? AIT_I64 : t->dtype;
  ait_ref_domain domain = ait_ref_domain_of(dtype);
  return ait_ref_reduce(call, &diagonal, &axes, domain, for_domain(&sums, domain), &(ait_ref_reduce_result){dtype, domain}, 1, NULL);
}

/* Sums the dims that broadcasting to the tensor's shape would stretch. */
ait_status ait_ref_sum_to_size(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  ait_ref_axes axes = {.keep = true};
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_ints(call, 1, shape, &rank));
  int32_t lead = t->rank - rank;
  if (lead < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "rank %d is more than %d", rank, t->rank);
  for (int32_t d = 0; d < t->rank; ++d) {
    axes.reduced[d] = d < lead || (shape[d - lead] == 1 && t->shape[d] != 1);
    if (!axes.reduced[d] && shape[d - lead] != t->shape[d])
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "size %lld is not %lld", (long long)t->shape[d], (long long)shape[d - lead]);
  }
  ait_dtype dtype = ait_ref_result_dtype(call, 0); /* a sum of truth values is int64 */
  if (dtype == AIT_DTYPE_NONE) dtype = t->dtype;
  ait_ref_domain domain = ait_ref_domain_of(dtype);
  AIT_TRY(ait_ref_reduce(call, t, &axes, domain, for_domain(&sums, domain), &(ait_ref_reduce_result){dtype, domain}, 1, NULL));
  ait_tensor *out = &call->results[0].as.tensor;
  for (int32_t d = 0; d < rank; ++d) out->shape[d] = out->shape[d + lead];
  out->rank = rank;
  ait_tensor_set_contiguous(out);
  return AIT_OK;
}
