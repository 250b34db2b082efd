/* Sorting, selection by rank, searching in sorted sequences, unique elements. */
#include "backends/reference/lines.h"

#include <math.h>

typedef struct sorted_line {
  ait_allocator allocator;
  ait_ref_domain domain;
  int64_t n;
  void *keys; /* double or int64 */
  int64_t *order, *scratch;
} sorted_line;

static void line_release(sorted_line *s) {
  ait_free(s->allocator, s->keys, (size_t)s->n * sizeof(double));
  ait_free(s->allocator, s->order, (size_t)s->n * sizeof(int64_t));
  ait_free(s->allocator, s->scratch, (size_t)s->n * sizeof(int64_t));
}

static ait_status sort_line(const ait_ref_call *call, const ait_tensor *line, bool descending, sorted_line *s) {
  int64_t n = line->shape[0];
  ait_allocator a = call->allocator;
  *s = (sorted_line){a,
                     ait_ref_domain_of(line->dtype),
                     n,
                     ait_alloc(a, (size_t)n * sizeof(double), 8),
                     ait_alloc(a, (size_t)n * sizeof(int64_t), 8),
                     ait_alloc(a, (size_t)n * sizeof(int64_t), 8)};
  if (!s->keys || !s->order || !s->scratch) {
    line_release(s);
    return AIT_OOM();
  }
  if (n > 0) ait_ref_load(line, 0, n, s->domain, s->keys);
  ait_ref_sort_order(s->domain, s->keys, n, descending, s->order, s->scratch);
  return AIT_OK;
}

static const void *key_at(const sorted_line *s, int64_t position) { return (const char *)s->keys + position * (int64_t)sizeof(double); }
static bool key_is_nan(const sorted_line *s, int64_t position) {
  return s->domain == AIT_REF_F && isnan(((const double *)s->keys)[position]);
}
static bool same_key(const sorted_line *s, int64_t a, int64_t b) {
  if (s->domain == AIT_REF_F) return ((const double *)s->keys)[a] == ((const double *)s->keys)[b];
  return ((const int64_t *)s->keys)[a] == ((const int64_t *)s->keys)[b];
}

/* ---- sort, argsort, topk ----------------------------------------------------------------------------------------------------- */
typedef struct sort_params {
  bool descending, values, indices; /* which of the outputs there are; tensors 1 and 2, or 1 alone */
  int64_t take;                     /* how many of the line */
} sort_params;

static ait_status sort_one(const ait_ref_lines *lines, int64_t o) {
  const sort_params *p = lines->params;
  ait_tensor line = ait_ref_line(lines, 0, o), first = ait_ref_line(lines, 1, o), second = {0};
  if (p->values && p->indices) second = ait_ref_line(lines, 2, o);
  sorted_line s;
  AIT_TRY(sort_line(lines->call, &line, p->descending, &s));
  for (int64_t i = 0; i < p->take; ++i) {
    if (p->values) ait_ref_store(&first, i, 1, s.domain, key_at(&s, s.order[i]));
    if (p->indices) ait_ref_store(p->values ? &second : &first, i, 1, AIT_REF_I, &s.order[i]);
  }
  line_release(&s);
  return AIT_OK;
}

static ait_status sort_along(ait_ref_call *call, const ait_tensor *t, int32_t dim, sort_params params) {
  if (ait_dtype_is_complex(t->dtype)) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "complex numbers have no order");
  int64_t shape[AIT_MAX_RANK], size = t->rank ? t->shape[dim] : 1;
  memcpy(shape, t->shape, sizeof t->shape);
  if (t->rank) shape[dim] = params.take;
  ait_tensor out;
  ait_ref_lines lines = {.call = call, .params = &params};
  lines.tensors[lines.count++] = ait_ref_lines_view(t, dim);
  uint32_t k = 0;
  if (params.values) {
    AIT_TRY(ait_ref_new(call, k++, t->dtype, t->rank, shape, &out));
    lines.tensors[lines.count++] = ait_ref_lines_view(&out, dim);
  }
  if (params.indices) {
    AIT_TRY(ait_ref_new(call, k, AIT_I64, t->rank, shape, &out));
    lines.tensors[lines.count++] = ait_ref_lines_view(&out, dim);
  }
  return ait_ref_each_line(&lines, size * 16, sort_one);
}

static ait_status sort_call(ait_ref_call *call, uint32_t dim_arg, uint32_t descending_arg, bool values) {
  const ait_tensor *t;
  int32_t dim;
  sort_params params = {.values = values, .indices = true};
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_dim_arg(call, dim_arg, -1, t->rank, &dim));
  AIT_TRY(ait_ref_bool_or(call, descending_arg, false, &params.descending));
  params.take = t->rank ? t->shape[dim] : 1;
  return sort_along(call, t, dim, params);
}
ait_status ait_ref_sort(ait_ref_call *call) { return sort_call(call, 1, 2, true); }
ait_status ait_ref_sort_stable(ait_ref_call *call) { return sort_call(call, 2, 3, true); }
ait_status ait_ref_argsort(ait_ref_call *call) { return sort_call(call, 1, 2, false); }
ait_status ait_ref_argsort_stable(ait_ref_call *call) { return sort_call(call, 2, 3, false); }
ait_status ait_ref_msort(ait_ref_call *call) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  return sort_along(call, t, 0, (sort_params){.values = true, .take = t->rank ? t->shape[0] : 1});
}

/* Among equals the first come first; torch leaves their order open. */
ait_status ait_ref_topk(ait_ref_call *call) {
  const ait_tensor *t;
  int32_t dim;
  int64_t k;
  sort_params params = {.values = true, .indices = true};
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &k));
  AIT_TRY(ait_ref_dim_arg(call, 2, -1, t->rank, &dim));
  AIT_TRY(ait_ref_bool_or(call, 3, true, &params.descending));
  int64_t size = t->rank ? t->shape[dim] : 1;
  if (k < 0 || k > size)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "k = %lld is out of range for size %lld", (long long)k, (long long)size);
  params.take = k;
  return sort_along(call, t, dim, params);
}

/* ---- one element of the sorted line: value and index ------------------------------------------------------------------------- */
/* Returns the position in s->order. */
typedef int64_t (*pick_fn)(const sorted_line *s, int64_t k);
typedef struct pick_params {
  pick_fn pick;
  int64_t k;
} pick_params;

static int64_t pick_kth(const sorted_line *s, int64_t k) {
  AIT_UNUSED(s);
  return k - 1;
}
static int64_t count_nans(const sorted_line *s) {
  int64_t n = 0;
  while (n < s->n && key_is_nan(s, s->order[s->n - 1 - n])) ++n;
  return n;
}
/* The lower of the two middle elements; a NaN, the first one, when there is any. */
static int64_t pick_median(const sorted_line *s, int64_t k) {
  AIT_UNUSED(k);
  int64_t nans = count_nans(s);
  return nans ? s->n - nans : (s->n - 1) / 2;
}
static int64_t pick_nanmedian(const sorted_line *s, int64_t k) {
  AIT_UNUSED(k);
  int64_t real = s->n - count_nans(s);
  return real ? (real - 1) / 2 : 0;
}
/* The smallest of the most frequent values; its last occurrence. */
static int64_t pick_mode(const sorted_line *s, int64_t k) {
  AIT_UNUSED(k);
  int64_t best = 0, best_length = 0;
  for (int64_t start = 0; start < s->n;) {
    int64_t end = start + 1;
    while (end < s->n && same_key(s, s->order[start], s->order[end])) ++end;
    if (end - start > best_length) {
      best_length = end - start;
      best = end - 1;
    }
    start = end;
  }
  return best;
}

static ait_status pick_one(const ait_ref_lines *lines, int64_t o) {
  const pick_params *p = lines->params;
  ait_tensor line = ait_ref_line(lines, 0, o), value = ait_ref_line(lines, 1, o);
  sorted_line s;
  AIT_TRY(sort_line(lines->call, &line, false, &s));
  int64_t at = s.order[p->pick(&s, p->k)];
  ait_ref_store(&value, 0, 1, s.domain, key_at(&s, at));
  if (lines->count == 3) {
    ait_tensor index = ait_ref_line(lines, 2, o);
    ait_ref_store(&index, 0, 1, AIT_REF_I, &at);
  }
  line_release(&s);
  return AIT_OK;
}

static void drop_dim(ait_ref_call *call, uint32_t k, int32_t dim) {
  ait_tensor *t = &call->results[k].as.tensor;
  ait_storage *storage = t->storage;
  *t = ait_ref_selected(t, dim, 0);
  t->storage = storage;
}

static ait_status pick_along(ait_ref_call *call, const ait_tensor *t, int32_t dim, bool keep, pick_params params) {
  int64_t shape[AIT_MAX_RANK], size = t->rank ? t->shape[dim] : 1;
  if (size == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "there are no elements to choose from");
  if (ait_dtype_is_complex(t->dtype)) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "complex numbers have no order");
  memcpy(shape, t->shape, sizeof t->shape);
  if (t->rank) shape[dim] = 1;
  ait_tensor values, indices;
  AIT_TRY(ait_ref_new(call, 0, t->dtype, t->rank, shape, &values));
  AIT_TRY(ait_ref_new(call, 1, AIT_I64, t->rank, shape, &indices));
  ait_ref_lines lines = {.call = call, .params = &params, .count = 3};
  lines.tensors[0] = ait_ref_lines_view(t, dim);
  lines.tensors[1] = ait_ref_lines_view(&values, dim);
  lines.tensors[2] = ait_ref_lines_view(&indices, dim);
  AIT_TRY(ait_ref_each_line(&lines, size * 16, pick_one));
  if (!keep && t->rank) {
    drop_dim(call, 0, dim);
    drop_dim(call, 1, dim);
  }
  return AIT_OK;
}

static ait_status pick_dim(ait_ref_call *call, uint32_t dim_arg, uint32_t keep_arg, pick_params params) {
  const ait_tensor *t;
  int32_t dim;
  bool keep;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_dim_arg(call, dim_arg, -1, t->rank, &dim));
  AIT_TRY(ait_ref_bool_or(call, keep_arg, false, &keep));
  int64_t size = t->rank ? t->shape[dim] : 1;
  if (params.pick == pick_kth && (params.k < 1 || params.k > size))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "k = %lld is out of range for size %lld", (long long)params.k, (long long)size);
  return pick_along(call, t, dim, keep, params);
}
ait_status ait_ref_kthvalue(ait_ref_call *call) {
  pick_params params = {.pick = pick_kth};
  AIT_TRY(ait_ref_int(call, 1, &params.k));
  return pick_dim(call, 2, 3, params);
}
ait_status ait_ref_median_dim(ait_ref_call *call) { return pick_dim(call, 1, 2, (pick_params){.pick = pick_median}); }
ait_status ait_ref_nanmedian_dim(ait_ref_call *call) { return pick_dim(call, 1, 2, (pick_params){.pick = pick_nanmedian}); }
ait_status ait_ref_mode(ait_ref_call *call) { return pick_dim(call, 1, 2, (pick_params){.pick = pick_mode}); }

static ait_status pick_of_all(ait_ref_call *call, pick_fn pick) {
  const ait_tensor *t;
  ait_tensor flat, value;
  pick_params params = {.pick = pick};
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  int64_t count = ait_tensor_count(t);
  AIT_TRY(ait_ref_new(call, 0, t->dtype, 0, NULL, &value));
  if (count == 0) return ait_ref_set_all(call, &value, &(ait_ref_scalar){.kind = AIT_KIND_FLOAT, .f = NAN});
  AIT_TRY(ait_ref_reshaped(call, t, 1, &count, &flat));
  ait_ref_lines lines = {.call = call, .params = &params, .count = 2};
  lines.tensors[0] = ait_ref_lines_view(&flat, 0);
  lines.tensors[1] = ait_ref_lines_view(&value, 0);
  ait_status status = ait_ref_each_line(&lines, count * 16, pick_one);
  ait_tensor_release(&flat);
  return status;
}
ait_status ait_ref_median(ait_ref_call *call) { return pick_of_all(call, pick_median); }
ait_status ait_ref_nanmedian(ait_ref_call *call) { return pick_of_all(call, pick_nanmedian); }

/* ---- searching --------------------------------------------------------------------------------------------------------------- */
static int64_t search_f(const double *sorted, const int64_t *order, int64_t n, double value, bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t mid = low + (high - low) / 2;
    double at = sorted[order ? order[mid] : mid];
    if (right ? !(at > value) : !(at >= value)) low = mid + 1;
    else high = mid;
  }
  return low;
}
static int64_t search_i(const int64_t *sorted, const int64_t *order, int64_t n, int64_t value, bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t mid = low + (high - low) / 2;
    int64_t at = sorted[order ? order[mid] : mid];
    if (right ? at <= value : at < value) low = mid + 1;
    else high = mid;
  }
  return low;
}

typedef struct search_args {
  const ait_tensor *sorted, *sorter; /* sorter may be NULL */
  ait_tensor values;
  bool right, narrow;
} search_args;

/* Each line of `sorted` (or its one line) is searched for the values of the same line. */
static ait_status search(ait_ref_call *call, const search_args *s) {
  ait_tensor keys = {0}, order = {0}, wanted = {0}, out;
  ait_status status = AIT_OK;
  bool floats = !ait_dtype_is_integer(s->sorted->dtype) || !ait_dtype_is_integer(s->values.dtype);
  int64_t n = s->sorted->rank ? s->sorted->shape[s->sorted->rank - 1] : 1;
  int64_t count = ait_tensor_count(&s->values);
  int64_t per_line = s->sorted->rank > 1 ? (s->values.rank ? s->values.shape[s->values.rank - 1] : 1) : count;
  if (s->sorted->rank > 1 && (per_line == 0 ? 0 : count / per_line) * n != ait_tensor_count(s->sorted))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the sorted sequences and the values have different leading sizes");
  AIT_GOTO(ait_ref_new(call, 0, s->narrow ? AIT_I32 : AIT_I64, s->values.rank, s->values.shape, &out));
  AIT_GOTO(floats ? ait_ref_as_f64(call, s->sorted, &keys) : ait_ref_as_i64(call, s->sorted, &keys));
  AIT_GOTO(floats ? ait_ref_as_f64(call, &s->values, &wanted) : ait_ref_as_i64(call, &s->values, &wanted));
  if (s->sorter) AIT_GOTO(ait_ref_as_i64(call, s->sorter, &order));
  for (int64_t i = 0; s->sorter && i < ait_tensor_count(&order); ++i)
    AIT_GOTO(ait_ref_wrap_index(call, ((int64_t *)order.data)[i], n, &((int64_t *)order.data)[i]));
  for (int64_t i = 0; i < count; ++i) {
    int64_t line = i / per_line * n, found;
    const int64_t *permutation = s->sorter ? (const int64_t *)order.data + line : NULL;
    if (floats) found = search_f((const double *)keys.data + line, permutation, n, ((const double *)wanted.data)[i], s->right);
    else found = search_i((const int64_t *)keys.data + line, permutation, n, ((const int64_t *)wanted.data)[i], s->right);
    ait_tensor flat = ait_tensor_borrow(out.data, out.dtype, 1, &count);
    ait_ref_store(&flat, i, 1, AIT_REF_I, &found);
  }
cleanup:
  ait_tensor_release(&keys);
  ait_tensor_release(&wanted);
  ait_tensor_release(&order);
  return status;
}

/* The values to look for: a tensor, or a number in `room`. */
static ait_status search_values(const ait_ref_call *call, uint32_t arg, double *room, ait_tensor *out) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, arg);
  if (t) {
    *out = *t;
    return AIT_OK;
  }
  ait_ref_scalar value;
  AIT_TRY(ait_ref_scalar_arg(call, arg, &value));
  *out = (ait_tensor){.data = room, .dtype = value.kind == AIT_KIND_FLOAT ? AIT_F64 : AIT_I64};
  return ait_ref_set_all(call, out, &value);
}

/* (sorted_sequence, self, *, out_int32, right, side, sorter) */
ait_status ait_ref_searchsorted(ait_ref_call *call) {
  search_args s = {0};
  double room;
  AIT_TRY(ait_ref_tensor(call, 0, &s.sorted));
  AIT_TRY(search_values(call, 1, &room, &s.values));
  AIT_TRY(ait_ref_bool_or(call, 2, false, &s.narrow));
  AIT_TRY(ait_ref_bool_or(call, 3, false, &s.right));
  const char *side = ait_ref_string(call, 4);
  if (side) s.right = strcmp(side, "right") == 0;
  s.sorter = ait_ref_tensor_or_null(call, 5);
  return search(call, &s);
}
/* (self, boundaries, *, out_int32, right) */
ait_status ait_ref_bucketize(ait_ref_call *call) {
  search_args s = {0};
  double room;
  AIT_TRY(search_values(call, 0, &room, &s.values));
  AIT_TRY(ait_ref_tensor(call, 1, &s.sorted));
  if (s.sorted->rank != 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "boundaries of rank %d", s.sorted->rank);
  AIT_TRY(ait_ref_bool_or(call, 2, false, &s.narrow));
  AIT_TRY(ait_ref_bool_or(call, 3, false, &s.right));
  return search(call, &s);
}

/* (elements, test_elements, *, assume_unique, invert); either may be a number */
ait_status ait_ref_isin(ait_ref_call *call) {
  ait_tensor elements, tests, keys = {0}, wanted = {0}, out;
  double room[2];
  bool invert;
  AIT_TRY(search_values(call, 0, &room[0], &elements));
  AIT_TRY(search_values(call, 1, &room[1], &tests));
  AIT_TRY(ait_ref_bool_or(call, 3, false, &invert));
  bool floats = !ait_dtype_is_integer(elements.dtype) || !ait_dtype_is_integer(tests.dtype);
  int64_t count = ait_tensor_count(&elements), n = ait_tensor_count(&tests);
  ait_tensor flat = tests;
  ait_status status = ait_ref_reshaped(call, &tests, 1, &n, &flat);
  if (status != AIT_OK) return status;
  sorted_line s = {0};
  AIT_GOTO(floats ? ait_ref_as_f64(call, &flat, &keys) : ait_ref_as_i64(call, &flat, &keys));
  AIT_GOTO(floats ? ait_ref_as_f64(call, &elements, &wanted) : ait_ref_as_i64(call, &elements, &wanted));
  AIT_GOTO(sort_line(call, &keys, false, &s));
  AIT_GOTO(ait_ref_new(call, 0, AIT_BOOL, elements.rank, elements.shape, &out));
  n -= count_nans(&s); /* equal to nothing */
  for (int64_t i = 0; i < count; ++i) {
    bool found;
    if (floats) {
      double v = ((const double *)wanted.data)[i];
      int64_t at = search_f(s.keys, s.order, n, v, false);
      found = at < n && ((const double *)s.keys)[s.order[at]] == v;
    } else {
      int64_t v = ((const int64_t *)wanted.data)[i], at = search_i(s.keys, s.order, n, v, false);
      found = at < n && ((const int64_t *)s.keys)[s.order[at]] == v;
    }
    ((uint8_t *)out.data)[i] = found != invert;
  }
cleanup:
  if (s.keys) line_release(&s);
  ait_tensor_release(&flat);
  ait_tensor_release(&keys);
  ait_tensor_release(&wanted);
  return status;
}

/* ---- unique ------------------------------------------------------------------------------------------------------------------ */
/* Groups of equal neighbours in `order` (or in the line itself): values, the group of each element, the groups' sizes. */
static ait_status give_groups(ait_ref_call *call, const ait_tensor *t, const sorted_line *s, const int64_t *order, bool inverse,
                              bool counts) {
  ait_tensor values, groups, sizes;
  int64_t n = s->n, found = 0, zero = 0;
  for (int64_t i = 0; i < n; ++i) found += i == 0 || !same_key(s, order[i - 1], order[i]);
  AIT_TRY(ait_ref_new(call, 0, t->dtype, 1, &found, &values));
  AIT_TRY(ait_ref_new(call, 1, AIT_I64, inverse ? t->rank : 1, inverse ? t->shape : &zero, &groups));
  AIT_TRY(ait_ref_new(call, 2, AIT_I64, 1, counts ? &found : &zero, &sizes));
  int64_t group = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || !same_key(s, order[i - 1], order[i])) {
      ait_ref_store(&values, ++group, 1, s->domain, key_at(s, order[i]));
      if (counts) ((int64_t *)sizes.data)[group] = 0;
    }
    if (inverse) ((int64_t *)groups.data)[order[i]] = group;
    if (counts) ++((int64_t *)sizes.data)[group];
  }
  return AIT_OK;
}

static ait_status unique_of_all(ait_ref_call *call, uint32_t inverse_arg, bool sorted) {
  const ait_tensor *t;
  ait_tensor flat;
  sorted_line s;
  bool inverse, counts;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_bool_or(call, inverse_arg, false, &inverse));
  AIT_TRY(ait_ref_bool_or(call, inverse_arg + 1, false, &counts));
  if (ait_dtype_is_complex(t->dtype)) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "complex numbers have no order");
  int64_t count = ait_tensor_count(t);
  AIT_TRY(ait_ref_reshaped(call, t, 1, &count, &flat));
  ait_status status = sort_line(call, &flat, false, &s);
  if (status == AIT_OK) {
    for (int64_t i = 0; !sorted && i < count; ++i) s.order[i] = i;
    status = give_groups(call, t, &s, s.order, inverse, counts);
    line_release(&s);
  }
  ait_tensor_release(&flat);
  return status;
}
ait_status ait_ref__unique2(ait_ref_call *call) { return unique_of_all(call, 2, true); }

/* Slices a and b along dim by their elements in order: -1, 0, 1. */
static int compare_slices(const ait_tensor *t, int32_t dim, int64_t a, int64_t b) {
  ait_tensor x = ait_ref_selected(t, dim, a), y = ait_ref_selected(t, dim, b);
  int64_t position[AIT_MAX_RANK] = {0};
  if (ait_tensor_count(&x) == 0) return 0;
  do {
    double p[2], q[2];
    ait_element_c128(ait_ref_at(&x, position), x.dtype, p);
    ait_element_c128(ait_ref_at(&y, position), y.dtype, q);
    for (int k = 0; k < 2; ++k)
      if (!(p[k] == q[k])) return p[k] < q[k] ? -1 : 1;
  } while (ait_ref_next(x.rank, x.shape, position));
  return 0;
}

/* Merge sort of slice numbers, stable. */
static void sort_slices(const ait_tensor *t, int32_t dim, int64_t n, int64_t *order, int64_t *scratch) {
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t start = 0; start < n; start += 2 * width) {
      int64_t middle = start + width < n ? start + width : n, end = middle + width < n ? middle + width : n, a = start, b = middle;
      for (int64_t k = start; k < end; ++k) {
        bool take_b = a == middle || (b < end && compare_slices(t, dim, order[b], order[a]) < 0);
        scratch[k] = take_b ? order[b++] : order[a++];
      }
    }
    memcpy(order, scratch, (size_t)n * sizeof *order);
  }
}

/* Runs of equal slices in `order`: the slices, the run of each slice, the runs' lengths. */
static ait_status give_slices(ait_ref_call *call, const ait_tensor *t, int32_t dim, const int64_t *order, bool inverse, bool counts) {
  ait_tensor values, groups, sizes;
  int64_t shape[AIT_MAX_RANK], n = t->shape[dim], found = 0, zero = 0, group = -1;
  for (int64_t i = 0; i < n; ++i) found += i == 0 || compare_slices(t, dim, order[i - 1], order[i]) != 0;
  memcpy(shape, t->shape, sizeof t->shape);
  shape[dim] = found;
  AIT_TRY(ait_ref_new(call, 0, t->dtype, t->rank, shape, &values));
  AIT_TRY(ait_ref_new(call, 1, AIT_I64, 1, inverse ? &n : &zero, &groups));
  AIT_TRY(ait_ref_new(call, 2, AIT_I64, 1, counts ? &found : &zero, &sizes));
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || compare_slices(t, dim, order[i - 1], order[i]) != 0) {
      ait_tensor to = ait_ref_selected(&values, dim, ++group), from = ait_ref_selected(t, dim, order[i]);
      AIT_TRY(ait_ref_move(call, &to, &from));
      if (counts) ((int64_t *)sizes.data)[group] = 0;
    }
    if (inverse) ((int64_t *)groups.data)[order[i]] = group;
    if (counts) ++((int64_t *)sizes.data)[group];
  }
  return AIT_OK;
}

static ait_status unique_slices(ait_ref_call *call, const ait_tensor *t, int32_t dim, bool sorted, uint32_t inverse_arg) {
  bool inverse, counts;
  AIT_TRY(ait_ref_bool_or(call, inverse_arg, false, &inverse));
  AIT_TRY(ait_ref_bool_or(call, inverse_arg + 1, false, &counts));
  int64_t n = t->shape[dim];
  size_t bytes = (size_t)n * sizeof(int64_t);
  int64_t *order = ait_alloc(call->allocator, bytes, 8), *scratch = ait_alloc(call->allocator, bytes, 8);
  ait_status status = order && scratch ? AIT_OK : AIT_OOM();
  if (status == AIT_OK) {
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    if (sorted) sort_slices(t, dim, n, order, scratch);
    status = give_slices(call, t, dim, order, inverse, counts);
  }
  ait_free(call->allocator, order, bytes);
  ait_free(call->allocator, scratch, bytes);
  return status;
}

/* (self, return_inverse, return_counts, dim) */
ait_status ait_ref_unique_consecutive(ait_ref_call *call) {
  const ait_tensor *t;
  int32_t dim;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (ait_ref_is_none(call, 3) || t->rank == 0) return unique_of_all(call, 1, false);
  AIT_TRY(ait_ref_dim_arg(call, 3, 0, t->rank, &dim));
  return unique_slices(call, t, dim, false, 1);
}

/* (self, dim, sorted, return_inverse, return_counts): always sorted, as torch does on a CPU */
ait_status ait_ref_unique_dim(ait_ref_call *call) {
  const ait_tensor *t;
  int32_t dim;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 has no slices");
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  return unique_slices(call, t, dim, true, 3);
}
/* (self, dim, return_inverse, return_counts) */
ait_status ait_ref_unique_dim_consecutive(ait_ref_call *call) {
  const ait_tensor *t;
  int32_t dim;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 has no slices");
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  return unique_slices(call, t, dim, false, 2);
}
