/* Combinations, finite differences, histograms, segments: operators that few models use. */
#include "backends/reference/reduce.h"

#include <math.h>

static const ait_ref_scalar zero = {.kind = AIT_KIND_INT};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- combinations ------------------------------------------------------------------------------------------------------------ */
/* Every choice of one element from each vector, the last varying fastest. */
static ait_status cartesian(ait_ref_call *call, const ait_tensor *items, uint32_t count) {
  int64_t rows = 1, repeat = 1;
  ait_tensor out;
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i].rank != 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d is not a vector", items[i].rank);
    if (ait_mul_overflows(rows, items[i].shape[0], &rows)) return ait_ref_error(call, AIT_CODE_LIMIT, "too many combinations");
  }
  if (count == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "no tensors");
  if (count == 1) {
    ait_ref_set_view(call, 0, &items[0], &items[0]);
    return AIT_OK;
  }
  AIT_TRY(ait_ref_new(call, 0, items[0].dtype, 2, (int64_t[2]){rows, count}, &out));
  for (uint32_t i = count; i-- > 0;) {
    ait_tensor column = ait_ref_selected(&out, 1, i);
    int64_t size = items[i].shape[0];
    for (int64_t row = 0; row < rows; ++row) {
      ait_tensor to = ait_ref_selected(&column, 0, row), from = ait_ref_selected(&items[i], 0, row / repeat % size);
      memcpy(to.data, from.data, ait_dtype_size(out.dtype));
    }
    repeat *= size;
  }
  return AIT_OK;
}
ait_status ait_ref_cartesian_prod(ait_ref_call *call) {
  ait_tensor *items;
  uint32_t count;
  AIT_TRY(ait_ref_tensors(call, 0, &items, &count));
  ait_status status = cartesian(call, items, count);
  ait_free(call->allocator, items, count * sizeof *items);
  return status;
}

/* The next choice of r positions below n, rising (or not falling, with replacement); false after the last. */
static bool next_choice(int64_t *at, int64_t r, int64_t n, bool replace) {
  for (int64_t i = r; i-- > 0;) {
    int64_t most = replace ? n - 1 : n - r + i;
    if (at[i] >= most) continue;
    ++at[i];
    for (int64_t k = i + 1; k < r; ++k) at[k] = replace ? at[i] : at[k - 1] + 1;
    return true;
  }
  return false;
}

static bool first_choice(int64_t *at, int64_t r, int64_t n, bool replace) {
  for (int64_t i = 0; i < r; ++i) at[i] = replace ? 0 : i;
  return n > 0 && (replace || r <= n);
}

/* (self, r, with_replacement) */
ait_status ait_ref_combinations(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t r, rows = 0, at[AIT_MAX_RANK];
  bool replace;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int_or(call, 1, 2, &r));
  AIT_TRY(ait_ref_bool_or(call, 2, false, &replace));
  if (t->rank != 1 || r < 0 || r > AIT_MAX_RANK)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld of a tensor of rank %d", (long long)r, t->rank);
  if (r == 0) return ait_ref_new(call, 0, t->dtype, 1, (int64_t[1]){0}, &out);
  int64_t n = t->shape[0];
  for (bool more = first_choice(at, r, n, replace); more; more = next_choice(at, r, n, replace)) ++rows;
  AIT_TRY(ait_ref_new(call, 0, t->dtype, 2, (int64_t[2]){rows, r}, &out));
  char *to = out.data;
  size_t size = ait_dtype_size(t->dtype);
  for (bool more = first_choice(at, r, n, replace); more; more = next_choice(at, r, n, replace))
    for (int64_t i = 0; i < r; ++i, to += size) memcpy(to, (char *)t->data + at[i] * t->strides[0] * (int64_t)size, size);
  return AIT_OK;
}

/* Each tensor's dim is padded with zeros to a multiple of num_chunks, cut into that many rows, and the rows are joined. */
static ait_status chunk_cat(ait_ref_call *call, const ait_tensor *items, uint32_t count, int32_t dim, int64_t chunks) {
  int64_t shape[AIT_MAX_RANK], width = 0, at = 0;
  ait_tensor out;
  if (count == 0 || dim + 2 > AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "no tensors");
  for (int32_t d = 0; d < dim; ++d) shape[d] = items[0].shape[d];
  for (uint32_t i = 0; i < count; ++i) {
    int64_t inner = 1;
    for (int32_t d = dim + 1; d < items[i].rank; ++d) inner *= items[i].shape[d];
    width += (items[i].shape[dim] + chunks - 1) / chunks * inner;
  }
  shape[dim] = chunks;
  shape[dim + 1] = width;
  AIT_TRY(ait_ref_new(call, 0, items[0].dtype, dim + 2, shape, &out));
  AIT_TRY(ait_ref_set_all(call, &out, &zero));
  for (uint32_t i = 0; i < count; ++i) {
    int64_t rows = items[i].shape[dim], each = (rows + chunks - 1) / chunks, inner = 1;
    for (int32_t d = dim + 1; d < items[i].rank; ++d) inner *= items[i].shape[d];
    for (int64_t c = 0; c * each < rows; ++c) { /* rows c*each.. of the tensor are one stretch of row c */
      ait_tensor from = ait_ref_narrowed(&items[i], dim, c * each, smaller(each, rows - c * each)), to = ait_ref_selected(&out, dim, c);
      to = ait_ref_narrowed(&to, dim, at, from.shape[dim] * inner);
      ait_tensor folded = from;
      folded.data = to.data;
      folded.dtype = to.dtype;
      int64_t stride = 1;
      for (int32_t d = from.rank; d-- > dim; stride *= from.shape[d]) folded.strides[d] = stride;
      for (int32_t d = 0; d < dim; ++d) folded.strides[d] = to.strides[d];
      AIT_TRY(ait_ref_move(call, &folded, &from));
    }
    at += each * inner;
  }
  return AIT_OK;
}
ait_status ait_ref__chunk_cat(ait_ref_call *call) {
  ait_tensor *items;
  uint32_t count;
  int64_t dim, chunks;
  AIT_TRY(ait_ref_int(call, 1, &dim));
  AIT_TRY(ait_ref_int(call, 2, &chunks));
  AIT_TRY(ait_ref_tensors(call, 0, &items, &count));
  ait_status status = AIT_OK;
  if (dim < 0 && count > 0) dim += items[0].rank;
  for (uint32_t i = 0; i < count && status == AIT_OK; ++i)
    if (chunks < 1 || dim < 0 || dim >= items[i].rank) status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "cannot be cut into chunks");
  if (status == AIT_OK) status = chunk_cat(call, items, count, (int32_t)dim, chunks);
  ait_free(call->allocator, items, count * sizeof *items);
  return status;
}

/* torch.vander (x, N, increasing): powers of a vector's elements as columns. */
ait_status ait_ref_powers(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t columns;
  bool increasing;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (t->rank != 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d is not a vector", t->rank);
  AIT_TRY(ait_ref_int_or(call, 1, t->shape[0], &columns));
  AIT_TRY(ait_ref_bool_or(call, 2, false, &increasing));
  ait_dtype declared = ait_ref_result_dtype(call, 0);
  AIT_TRY(ait_ref_new(call, 0, declared == AIT_DTYPE_NONE ? t->dtype : declared, 2, (int64_t[2]){t->shape[0], columns}, &out));
  for (int64_t i = 0; i < t->shape[0]; ++i) {
    double complex x, power = 1;
    ait_ref_load(t, i, 1, AIT_REF_C, &x);
    for (int64_t k = 0; k < columns; ++k, power *= x) {
      ait_tensor row = ait_ref_selected(&out, 0, i);
      ait_ref_store(&row, increasing ? k : columns - 1 - k, 1, AIT_REF_C, &power);
    }
  }
  return AIT_OK;
}

/* (self, weights, minlength) */
ait_status ait_ref_bincount(ait_ref_call *call) {
  const ait_tensor *t, *weights = ait_ref_tensor_or_null(call, 1);
  ait_tensor values, out;
  int64_t size;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int_or(call, 2, 0, &size));
  if (t->rank != 1 || (weights && !ait_tensor_same_shape(weights, t)))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the values and weights are not vectors of one size");
  AIT_TRY(ait_ref_as_i64(call, t, &values));
  const int64_t *v = values.data;
  ait_status status = AIT_OK;
  for (int64_t i = 0; i < t->shape[0]; ++i) {
    if (v[i] < 0 || v[i] > INT32_MAX)
      AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "cannot count the value %lld", (long long)v[i]));
    if (v[i] >= size) size = v[i] + 1;
  }
  ait_dtype dtype = !weights ? AIT_I64 : weights->dtype == AIT_F32 ? AIT_F32 : AIT_F64;
  AIT_GOTO(ait_ref_new(call, 0, dtype, 1, &size, &out));
  AIT_GOTO(ait_ref_set_all(call, &out, &zero));
  for (int64_t i = 0; i < t->shape[0]; ++i) {
    double sum, weight = 1;
    if (weights) ait_ref_load(weights, i, 1, AIT_REF_F, &weight);
    ait_ref_load(&out, v[i], 1, AIT_REF_F, &sum);
    sum += weight;
    ait_ref_store(&out, v[i], 1, AIT_REF_F, &sum);
  }
cleanup:
  ait_tensor_release(&values);
  return status;
}

/* ---- distances and differences ----------------------------------------------------------------------------------------------- */
static double norm_step(double sum, double x, double p) {
  if (p == 0) return sum + (x != 0);
  if (isinf(p)) return isnan(sum) || (p > 0 ? sum > x : sum < x) ? sum : x;
  return sum + (p == 1 ? x : p == 2 ? x * x : pow(x, p));
}

/* (self, other, p): the p-norm of the difference. */
ait_status ait_ref_dist(ait_ref_call *call) {
  const ait_tensor *pair[2];
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  double p, sum = 0;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &pair[0]));
  AIT_TRY(ait_ref_tensor(call, 1, &pair[1]));
  AIT_TRY(ait_ref_float_or(call, 2, 2, &p));
  AIT_TRY(ait_ref_broadcast(call, pair, 2, &rank, shape));
  ait_tensor a = ait_ref_expand(pair[0], rank, shape), b = ait_ref_expand(pair[1], rank, shape);
  int64_t count = ait_tensor_count(&a);
  double complex x[AIT_REF_BLOCK], y[AIT_REF_BLOCK];
  if (isinf(p) && p < 0 && count > 0) sum = INFINITY;
  for (int64_t at = 0; at < count; at += AIT_REF_BLOCK) {
    int64_t n = smaller(count - at, AIT_REF_BLOCK);
    ait_ref_load(&a, at, n, AIT_REF_C, x);
    ait_ref_load(&b, at, n, AIT_REF_C, y);
    for (int64_t k = 0; k < n; ++k) sum = norm_step(sum, cabs(x[k] - y[k]), p);
  }
  if (p != 0 && !isinf(p)) sum = p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  AIT_TRY(ait_ref_new(call, 0, dtype == AIT_DTYPE_NONE ? pair[0]->dtype : dtype, 0, NULL, &out));
  ait_ref_store(&out, 0, 1, AIT_REF_F, &sum);
  return AIT_OK;
}

/* The same where the steps between elements differ: second-order differences on three points each. */
static void uneven_gradient_line(const double complex *x, double complex *y, int64_t n, const double *at, int64_t edge_order) {
  for (int64_t i = 1; i + 1 < n; ++i) {
    double p = at[i] - at[i - 1], q = at[i + 1] - at[i];
    y[i] = -q / (p * (p + q)) * x[i - 1] + (q - p) / (p * q) * x[i] + p / (q * (p + q)) * x[i + 1];
  }
  double first = at[1] - at[0], last = at[n - 1] - at[n - 2];
  if (edge_order == 1) {
    y[0] = (x[1] - x[0]) / first;
    y[n - 1] = (x[n - 1] - x[n - 2]) / last;
    return;
  }
  double second = at[2] - at[1], before = at[n - 2] - at[n - 3];
  y[0] = -(2 * first + second) / (first * (first + second)) * x[0] + (first + second) / (first * second) * x[1] -
         first / (second * (first + second)) * x[2];
  y[n - 1] = last / (before * (last + before)) * x[n - 3] - (last + before) / (last * before) * x[n - 2] +
             (2 * last + before) / (last * (last + before)) * x[n - 1];
}

/* Central differences along the line; at its ends differences of the given order. */
static void gradient_line(const double complex *x, double complex *y, int64_t n, double h, int64_t edge_order) {
  for (int64_t i = 1; i + 1 < n; ++i) y[i] = (x[i + 1] - x[i - 1]) / (2 * h);
  if (edge_order == 1) {
    y[0] = (x[1] - x[0]) / h;
    y[n - 1] = (x[n - 1] - x[n - 2]) / h;
    return;
  }
  y[0] = (-1.5 * x[0] + 2 * x[1] - 0.5 * x[2]) / h;
  y[n - 1] = (1.5 * x[n - 1] - 2 * x[n - 2] + 0.5 * x[n - 3]) / h;
}

/* `at`: where the elements lie, or NULL: h apart. */
static ait_status gradient_along(const ait_ref_call *call, const ait_tensor *t, int32_t dim, double h, const double *at, int64_t edge_order,
                                 ait_tensor *out) {
  int64_t n = t->shape[dim];
  if (n < edge_order + 1)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "size %lld is too small for edges of order %lld", (long long)n,
                         (long long)edge_order);
  ait_allocator a = call->allocator;
  size_t bytes = (size_t)n * sizeof(double complex);
  double complex *x = ait_alloc(a, bytes, 16), *y = ait_alloc(a, bytes, 16);
  ait_status status =
      x && y ? ait_ref_temp(call, ait_dtype_is_integer(t->dtype) ? ait_ref_widen(call, AIT_F32) : t->dtype, t->rank, t->shape, out)
             : AIT_OOM();
  int64_t position[AIT_MAX_RANK] = {0}, lines[AIT_MAX_RANK];
  memcpy(lines, t->shape, sizeof lines);
  lines[dim] = 1;
  if (status == AIT_OK && ait_tensor_count(t) > 0) {
    do {
      ait_tensor from = {.data = ait_ref_at(t, position), .dtype = t->dtype, .rank = 1, .shape = {n}, .strides = {t->strides[dim]}};
      ait_tensor to = {.data = ait_ref_at(out, position), .dtype = out->dtype, .rank = 1, .shape = {n}, .strides = {out->strides[dim]}};
      ait_ref_load(&from, 0, n, AIT_REF_C, x);
      if (at) uneven_gradient_line(x, y, n, at, edge_order);
      else gradient_line(x, y, n, h, edge_order);
      ait_ref_store(&to, 0, n, AIT_REF_C, y);
    } while (ait_ref_next(t->rank, lines, position));
  }
  ait_free(a, x, bytes);
  ait_free(a, y, bytes);
  return status;
}

/* Steps: one number for all dims, one each, or a tensor of coordinates each. */
typedef struct gradient_steps {
  double numbers[AIT_MAX_RANK];
  ait_tensor *tensors;
  int32_t count;
} gradient_steps;

static ait_status gradient_of(const ait_ref_call *call, const ait_tensor *t, int64_t dim, int32_t i, const gradient_steps *s,
                              int64_t edge_order, ait_tensor *out) {
  int32_t d;
  AIT_TRY(ait_ref_dim(call, dim, t->rank, &d));
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 has no gradient");
  double h = s->count == 0 ? 1 : s->numbers[s->count == 1 ? 0 : i];
  if (!s->tensors) return gradient_along(call, t, d, h, NULL, edge_order, out);
  ait_tensor at;
  if (s->tensors[i].rank != 1 || s->tensors[i].shape[0] != t->shape[d])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the coordinates of dimension %d are not %lld numbers", d,
                         (long long)t->shape[d]);
  AIT_TRY(ait_tensor_cast(call->allocator, &s->tensors[i], AIT_F64, &at));
  ait_status status = gradient_along(call, t, d, 0, at.data, edge_order, out);
  ait_tensor_release(&at);
  return status;
}

/* (self, *, spacing, dim, edge_order), .array without spacing; a dim, several, or all. */
ait_status ait_ref_gradient(ait_ref_call *call) {
  const ait_tensor *t;
  gradient_steps s = {.count = 0};
  int64_t dims[AIT_MAX_RANK], edge_order;
  int32_t count;
  uint32_t given = 0, at = ait_ends_with(call->node->op, ".array") ? 1 : 2;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_ints(call, at, dims, &count));
  AIT_TRY(ait_ref_int_or(call, at + 1, 1, &edge_order));
  if (strstr(call->node->op, ".tensorarray")) {
    AIT_TRY(ait_ref_tensors(call, 1, &s.tensors, &given));
    s.count = (int32_t)given;
  } else if (at == 2) {
    AIT_TRY(ait_ref_floats(call, 1, s.numbers, &s.count));
  }
  if (count == 0)
    for (; count < t->rank; ++count) dims[count] = count;
  ait_tensor *items = NULL;
  ait_status status;
  if (edge_order < 1 || edge_order > 2 || (s.tensors ? s.count != count : s.count > 1 && s.count != count))
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d spacings for %d dimensions, edges of order %lld", s.count, count,
                           (long long)edge_order));
  items = ait_alloc_zero(call->allocator, (size_t)count * sizeof *items, _Alignof(ait_tensor));
  status = items ? AIT_OK : AIT_OOM();
  for (int32_t i = 0; i < count && status == AIT_OK; ++i) status = gradient_of(call, t, dims[i], i, &s, edge_order, &items[i]);
  if (items) ait_ref_set_list(call, 0, items, (uint32_t)count);
cleanup:
  ait_free(call->allocator, s.tensors, given * sizeof *s.tensors);
  return status;
}

/* ---- hash -------------------------------------------------------------------------------------------------------------------- */
static void hash_f(ait_ref_accumulator *a, const ait_ref_block *block, int64_t n, int64_t first, const double *params) {
  AIT_UNUSED(first);
  AIT_UNUSED(params);
  for (int64_t k = 0; k < n; ++k) a->i ^= block->i[k]; /* the bits of the doubles */
}
static void finish_hash(const ait_ref_accumulator *a, uint32_t k, void *out, const double *params) {
  AIT_UNUSED(k);
  AIT_UNUSED(params);
  *(int64_t *)out = a->i;
}
/* (self, dim, *, keepdim, mode): exclusive or over the 64-bit patterns of the elements as double or int64. */
ait_status ait_ref_hash_tensor(ait_ref_call *call) {
  static const ait_ref_reduction r = {.step = hash_f, .finish = finish_hash};
  const ait_tensor *t;
  ait_ref_axes axes;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_axes_args(call, t, 1, 2, &axes));
  ait_ref_domain domain = ait_ref_domain_of(t->dtype);
  if (domain == AIT_REF_C) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "not defined for complex numbers");
  return ait_ref_reduce(call, t, &axes, domain, &r, &(ait_ref_reduce_result){AIT_U64, AIT_REF_I}, 1, NULL);
}

/* ---- histograms -------------------------------------------------------------------------------------------------------------- */
/* The edges of one dim, as the result's dtype holds them. */
typedef struct edges {
  ait_tensor tensor; /* holds a reference */
  double *at;        /* count + 1 */
  int64_t bins;
} edges;

static void edges_release(const ait_ref_call *call, edges *e) {
  ait_tensor_release(&e->tensor);
  ait_free(call->allocator, e->at, (size_t)(e->bins + 1) * sizeof *e->at);
  *e = (edges){0};
}

static ait_status edges_create(const ait_ref_call *call, ait_dtype dtype, int64_t bins, edges *out) {
  if (bins < 1 || bins > INT32_MAX) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld bins", (long long)bins);
  *out = (edges){.bins = bins};
  int64_t count = bins + 1;
  out->at = ait_alloc(call->allocator, (size_t)count * sizeof *out->at, 8);
  ait_status status = out->at ? ait_ref_temp(call, dtype, 1, &count, &out->tensor) : AIT_OOM();
  if (status != AIT_OK) edges_release(call, out);
  return status;
}

/* Column d of the values; range: the given one, else of the values. */
static ait_status spaced_edges(const ait_ref_call *call, const ait_tensor *values, int64_t d, int64_t bins, const double *range,
                               edges *out) {
  double low = 0, high = 1; /* of no values */
  ait_tensor column = ait_ref_selected(values, 1, d);
  int64_t n = column.shape[0];
  for (int64_t i = 0; i < n && !range; ++i) {
    double v;
    ait_ref_load(&column, i, 1, AIT_REF_F, &v);
    if (i == 0 || v < low) low = v;
    if (i == 0 || v > high) high = v;
  }
  if (range) {
    low = range[0];
    high = range[1];
  }
  if (!isfinite(low) || !isfinite(high) || low > high)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the range [%g, %g] is not finite", low, high);
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  AIT_TRY(edges_create(call, values->dtype, bins, out));
  for (int64_t i = 0; i <= bins; ++i) out->at[i] = i == bins ? high : low + (high - low) / (double)bins * (double)i;
  ait_ref_store(&out->tensor, 0, bins + 1, AIT_REF_F, out->at);
  ait_ref_load(&out->tensor, 0, bins + 1, AIT_REF_F, out->at);
  return AIT_OK;
}

static ait_status given_edges(const ait_ref_call *call, const ait_tensor *bins, edges *out) {
  if (bins->rank != 1 || bins->shape[0] < 2)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the edges of bins are a vector of two or more");
  AIT_TRY(edges_create(call, bins->dtype, bins->shape[0] - 1, out));
  ait_ref_load(bins, 0, out->bins + 1, AIT_REF_F, out->at);
  ait_ref_store(&out->tensor, 0, out->bins + 1, AIT_REF_F, out->at);
  return AIT_OK;
}

/* The bin of v, the last one closed; -1: outside. */
static int64_t bin_of(const edges *e, double v) {
  if (!(v >= e->at[0] && v <= e->at[e->bins])) return -1;
  int64_t low = 0, high = e->bins; /* at[low] <= v */
  while (high - low > 1) {
    int64_t mid = low + (high - low) / 2;
    if (e->at[mid] <= v) low = mid;
    else high = mid;
  }
  return low;
}

static ait_status count_bins(const ait_ref_call *call, const ait_tensor *values, const ait_tensor *weight, const edges *e, int32_t dims,
                             double *counts) {
  int64_t n = values->shape[0];
  ait_tensor flat_weight = {0};
  if (weight) AIT_TRY(ait_ref_reshaped(call, weight, 1, &n, &flat_weight));
  for (int64_t i = 0; i < n; ++i) {
    int64_t index = 0;
    for (int32_t d = 0; d < dims && index >= 0; ++d) {
      ait_tensor one = ait_ref_selected(values, 0, i);
      double v;
      ait_ref_load(&one, d, 1, AIT_REF_F, &v);
      int64_t bin = bin_of(&e[d], v);
      index = bin < 0 ? -1 : index * e[d].bins + bin;
    }
    double w = 1;
    if (weight) ait_ref_load(&flat_weight, i, 1, AIT_REF_F, &w);
    if (index >= 0) counts[index] += w;
  }
  ait_tensor_release(&flat_weight);
  return AIT_OK;
}

static void to_density(const edges *e, int32_t dims, double *counts, int64_t total) {
  double sum = 0;
  for (int64_t i = 0; i < total; ++i) sum += counts[i];
  for (int64_t i = 0; i < total; ++i) {
    double volume = 1;
    int64_t rest = i;
    for (int32_t d = dims; d-- > 0; rest /= e[d].bins) volume *= e[d].at[rest % e[d].bins + 1] - e[d].at[rest % e[d].bins];
    counts[i] /= sum * volume;
  }
}

/* Result 0 from the values [n, dims] and their edges. */
static ait_status give_histogram(ait_ref_call *call, const ait_tensor *values, const ait_tensor *weight, bool density, const edges *e,
                                 int32_t dims) {
  int64_t shape[AIT_MAX_RANK], total = 1;
  ait_tensor out;
  for (int32_t d = 0; d < dims; ++d) {
    shape[d] = e[d].bins;
    if (ait_mul_overflows(total, shape[d], &total)) return ait_ref_error(call, AIT_CODE_LIMIT, "too many bins");
  }
  AIT_TRY(ait_ref_new(call, 0, values->dtype, dims, shape, &out));
  size_t bytes = (size_t)total * sizeof(double);
  double *counts = ait_alloc_zero(call->allocator, bytes, 8);
  if (!counts) return AIT_OOM();
  ait_status status = count_bins(call, values, weight, e, dims, counts);
  if (status == AIT_OK && density) to_density(e, dims, counts, total);
  if (status == AIT_OK) ait_ref_store(&out, 0, total, AIT_REF_F, counts);
  ait_free(call->allocator, counts, bytes);
  return status;
}

/* (self, bins or edges, *, range?, weight, density): `first` is the argument after the bins. */
static ait_status histogram(ait_ref_call *call, uint32_t range_arg, uint32_t first) {
  const ait_tensor *t, *given = ait_ref_tensor_or_null(call, 1);
  ait_tensor values;
  edges e = {0};
  double range[AIT_MAX_RANK];
  int64_t bins = 0;
  int32_t range_count = 0;
  bool density;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_bool_or(call, first + 1, false, &density));
  if (!given) AIT_TRY(ait_ref_int(call, 1, &bins));
  if (range_arg) AIT_TRY(ait_ref_floats(call, range_arg, range, &range_count));
  AIT_TRY(ait_ref_reshaped(call, t, 2, (int64_t[2]){ait_tensor_count(t), 1}, &values));
  ait_status status = given ? given_edges(call, given, &e) : spaced_edges(call, &values, 0, bins, range_count >= 2 ? range : NULL, &e);
  if (status == AIT_OK) status = give_histogram(call, &values, ait_ref_tensor_or_null(call, first), density, &e, 1);
  if (status == AIT_OK) ait_ref_set_view(call, 1, &e.tensor, &e.tensor);
  edges_release(call, &e);
  ait_tensor_release(&values);
  return status;
}
ait_status ait_ref_histogram_count(ait_ref_call *call) { return histogram(call, 2, 3); }
ait_status ait_ref_histogram_edges(ait_ref_call *call) { return histogram(call, 0, 2); }

/* Edges of every dim: from argument 1, numbers of bins or tensors of edges. */
static ait_status edges_of_dims(const ait_ref_call *call, const ait_tensor *values, bool from_tensors, edges *e) {
  int32_t dims = (int32_t)values->shape[1], count, range_count;
  double range[2 * AIT_MAX_RANK];
  if (from_tensors) {
    ait_tensor *items;
    uint32_t item_count;
    AIT_TRY(ait_ref_tensors(call, 1, &items, &item_count));
    ait_status status = (int64_t)item_count == dims
                            ? AIT_OK
                            : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%u edges for %d dimensions", item_count, dims);
    for (int32_t d = 0; d < dims && status == AIT_OK; ++d) status = given_edges(call, &items[d], &e[d]);
    ait_free(call->allocator, items, item_count * sizeof *items);
    return status;
  }
  int64_t bins[AIT_MAX_RANK];
  AIT_TRY(ait_ref_ints(call, 1, bins, &count));
  AIT_TRY(ait_ref_floats(call, 2, range, &range_count));
  if (count != dims && count != 1)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d numbers of bins for %d dimensions", count, dims);
  for (int32_t d = 0; d < dims; ++d)
    AIT_TRY(spaced_edges(call, values, d, bins[count == 1 ? 0 : d], range_count >= 2 * (d + 1) ? &range[2 * d] : NULL, &e[d]));
  return AIT_OK;
}

/* (self, bins, range, weight, density) -> hist, edges of each dim */
static ait_status give_edges(ait_ref_call *call, uint32_t result, const edges *e, int64_t dims) {
  ait_tensor *list = ait_alloc_zero(call->allocator, (size_t)dims * sizeof *list, _Alignof(ait_tensor));
  if (!list) return AIT_OOM();
  for (int64_t d = 0; d < dims; ++d) list[d] = ait_tensor_retain(&e[d].tensor);
  ait_ref_set_list(call, result, list, (uint32_t)dims);
  return AIT_OK;
}

/* Which results: the counts, the edges, or both. _histogramdd_from_bin_tensors has no range. */
static ait_status histogramdd(ait_ref_call *call, bool from_tensors, bool want_counts, bool want_edges) {
  const ait_tensor *t;
  ait_tensor values;
  bool density;
  edges e[AIT_MAX_RANK] = {{.bins = 0}};
  uint32_t weight = from_tensors && !want_edges ? 2 : 3;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_bool_or(call, weight + 1, false, &density));
  if (t->rank < 2 || t->shape[t->rank - 1] > AIT_MAX_RANK / 2)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the values are no list of points");
  int64_t dims = t->shape[t->rank - 1], n = dims ? ait_tensor_count(t) / dims : 0;
  AIT_TRY(ait_ref_reshaped(call, t, 2, (int64_t[2]){n, dims}, &values));
  ait_status status = edges_of_dims(call, &values, from_tensors, e);
  if (status == AIT_OK && want_counts)
    status = give_histogram(call, &values, ait_ref_tensor_or_null(call, weight), density, e, (int32_t)dims);
  if (status == AIT_OK && want_edges) status = give_edges(call, want_counts ? 1 : 0, e, dims);
  for (int64_t d = 0; d < dims; ++d) edges_release(call, &e[d]);
  ait_tensor_release(&values);
  return status;
}
ait_status ait_ref_histogramdd_count(ait_ref_call *call) { return histogramdd(call, false, true, call->node->result_count > 1); }
ait_status ait_ref_histogramdd_edges(ait_ref_call *call) { return histogramdd(call, true, true, call->node->result_count > 1); }
ait_status ait_ref_histogramdd_bin_edges(ait_ref_call *call) { return histogramdd(call, false, false, true); }

/* ---- segments ---------------------------------------------------------------------------------------------------------------- */
static double segment_start(const char *mode) {
  if (strcmp(mode, "max") == 0) return -INFINITY;
  if (strcmp(mode, "min") == 0) return INFINITY;
  return strcmp(mode, "prod") == 0;
}
static double segment_step(const char *mode, double a, double x) {
  if (strcmp(mode, "max") == 0) return isnan(a) || a > x ? a : x;
  if (strcmp(mode, "min") == 0) return isnan(a) || a < x ? a : x;
  return strcmp(mode, "prod") == 0 ? a * x : a + x;
}

/* bounds: [batch, segments + 1] positions along axis. */
static ait_status reduce_segments(ait_ref_call *call, const ait_tensor *t, int32_t axis, const char *mode, const int64_t *bounds,
                                  int64_t segments, double start) {
  int64_t shape[AIT_MAX_RANK], position[AIT_MAX_RANK] = {0};
  ait_tensor out;
  memcpy(shape, t->shape, sizeof t->shape);
  shape[axis] = segments;
  AIT_TRY(ait_ref_new(call, 0, t->dtype, t->rank, shape, &out));
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  bool mean = strcmp(mode, "mean") == 0, given = !ait_ref_is_none(call, 7);
  do {
    int64_t batch = 0, element[AIT_MAX_RANK];
    memcpy(element, position, sizeof element);
    for (int32_t d = 0; d < axis; ++d) batch = batch * t->shape[d] + position[d];
    const int64_t *bound = bounds + batch * (segments + 1) + position[axis];
    double sum = start;
    for (int64_t i = bound[0]; i < bound[1]; ++i) {
      element[axis] = i;
      sum = segment_step(mode, sum, ait_element_f64(ait_ref_at(t, element), t->dtype));
    }
    if (mean) sum = bound[1] > bound[0] ? sum / (double)(bound[1] - bound[0]) : given ? sum : NAN;
    ait_element_set_f64(ait_ref_at(&out, position), out.dtype, sum);
  } while (ait_ref_next(out.rank, out.shape, position));
  return AIT_OK;
}

/* (data, reduce, *, lengths, indices, offsets, axis, unsafe, initial) */
ait_status ait_ref_segment_reduce(ait_ref_call *call) {
  const ait_tensor *t, *lengths = ait_ref_tensor_or_null(call, 2), *offsets = ait_ref_tensor_or_null(call, 4);
  const char *mode = ait_ref_string(call, 1);
  int32_t axis;
  double start;
  ait_tensor given;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (!mode || (!lengths && !offsets)) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "segments are given by lengths or offsets");
  AIT_TRY(ait_ref_dim_arg(call, 5, 0, t->rank, &axis));
  AIT_TRY(ait_ref_float_or(call, 7, segment_start(mode), &start));
  AIT_TRY(ait_ref_as_i64(call, lengths ? lengths : offsets, &given));
  int64_t last = given.rank ? given.shape[given.rank - 1] : 0, segments = lengths ? last : last - 1, batch = 1;
  for (int32_t d = 0; d < axis; ++d) batch *= t->shape[d];
  size_t bytes = (size_t)(batch * (segments + 1)) * sizeof(int64_t);
  int64_t *bounds = segments < 0 || ait_tensor_count(&given) != batch * last ? NULL : ait_alloc_zero(call->allocator, bytes, 8);
  ait_status status = bounds ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the segments do not fit the data");
  for (int64_t b = 0; bounds && b < batch; ++b)
    for (int64_t s = 0; s <= segments; ++s) {
      int64_t *bound = &bounds[b * (segments + 1) + s];
      const int64_t *value = (const int64_t *)given.data + b * last;
      *bound = !lengths ? value[s] : s == 0 ? 0 : bound[-1] + value[s - 1];
      if (*bound < 0 || *bound > t->shape[axis] || (s > 0 && *bound < bound[-1])) {
        ait_status_ignore(status);
        status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a segment ends at %lld, outside size %lld", (long long)*bound,
                               (long long)t->shape[axis]);
        break;
      }
    }
  if (status == AIT_OK) status = reduce_segments(call, t, axis, mode, bounds, segments, start);
  if (bounds) ait_free(call->allocator, bounds, bytes);
  ait_tensor_release(&given);
  return status;
}
