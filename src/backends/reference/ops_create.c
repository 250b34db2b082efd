/* New tensors from sizes and numbers. */
#include "backends/reference/shapes.h"

#include <math.h>

static const ait_ref_scalar zero = {.kind = AIT_KIND_INT}, one = {.kind = AIT_KIND_INT, .i = 1, .f = 1};

/* The declared dtype, else argument dtype_arg, else when_none. */
static ait_dtype dtype_for(const ait_ref_call *call, uint32_t dtype_arg, ait_dtype when_none) {
  ait_dtype declared = ait_ref_result_dtype(call, 0);
  return declared != AIT_DTYPE_NONE ? declared : ait_ref_dtype(call, dtype_arg, when_none);
}

static ait_status filled(ait_ref_call *call, ait_dtype dtype, int32_t rank, const int64_t *shape, const ait_ref_scalar *value) {
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, 0, dtype, rank, shape, &out));
  return ait_ref_set_all(call, &out, value);
}

static ait_status filled_like(ait_ref_call *call, uint32_t dtype_arg, const ait_ref_scalar *value) {
  const ait_tensor *like;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &like));
  AIT_TRY(ait_ref_new_like(call, 0, dtype_for(call, dtype_arg, like->dtype), like, &out));
  return ait_ref_set_all(call, &out, value);
}

static ait_status filled_sizes(ait_ref_call *call, uint32_t size_arg, uint32_t dtype_arg, const ait_ref_scalar *value) {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  const ait_tensor *like = size_arg ? ait_ref_tensor_or_null(call, 0) : NULL;
  AIT_TRY(ait_ref_ints(call, size_arg, shape, &rank));
  ait_dtype when_none = like ? like->dtype : ait_ref_widen(call, value->kind == AIT_KIND_BOOL ? AIT_BOOL : AIT_F32);
  return filled(call, dtype_for(call, dtype_arg, when_none), rank, shape, value);
}

/* What torch leaves uninitialised is zero here. */
ait_status ait_ref_zeros(ait_ref_call *call) { return filled_sizes(call, 0, 1, &zero); }
ait_status ait_ref_ones(ait_ref_call *call) { return filled_sizes(call, 0, 1, &one); }
ait_status ait_ref_new_zeros(ait_ref_call *call) { return filled_sizes(call, 1, 2, &zero); }
ait_status ait_ref_new_ones(ait_ref_call *call) { return filled_sizes(call, 1, 2, &one); }
ait_status ait_ref_zeros_like(ait_ref_call *call) { return filled_like(call, 1, &zero); }
ait_status ait_ref_ones_like(ait_ref_call *call) { return filled_like(call, 1, &one); }
ait_status ait_ref_zero(ait_ref_call *call) { return filled_like(call, UINT32_MAX, &zero); }

ait_status ait_ref_full(ait_ref_call *call) {
  ait_ref_scalar value;
  AIT_TRY(ait_ref_scalar_arg(call, 1, &value));
  return filled_sizes(call, 0, 2, &value);
}
ait_status ait_ref_new_full(ait_ref_call *call) {
  ait_ref_scalar value;
  AIT_TRY(ait_ref_scalar_arg(call, 2, &value));
  return filled_sizes(call, 1, 3, &value);
}
ait_status ait_ref_full_like(ait_ref_call *call) {
  ait_ref_scalar value;
  AIT_TRY(ait_ref_scalar_arg(call, 1, &value));
  return filled_like(call, 2, &value);
}
ait_status ait_ref_fill(ait_ref_call *call) {
  ait_ref_scalar value;
  AIT_TRY(ait_ref_scalar_arg(call, 1, &value));
  return filled_like(call, UINT32_MAX, &value);
}
ait_status ait_ref_scalar_tensor(ait_ref_call *call) {
  ait_ref_scalar value;
  AIT_TRY(ait_ref_scalar_arg(call, 0, &value));
  return filled(call, dtype_for(call, 1, ait_ref_widen(call, AIT_F32)), 0, NULL, &value);
}

/* Sizes and strides of the result are given (arguments size_arg, size_arg + 1). */
static ait_status strided(ait_ref_call *call, uint32_t size_arg) {
  ait_tensor shape = {0}, out, whole;
  int32_t count;
  AIT_TRY(ait_ref_ints(call, size_arg, shape.shape, &shape.rank));
  AIT_TRY(ait_ref_ints(call, size_arg + 1, shape.strides, &count));
  if (count != shape.rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d sizes but %d strides", shape.rank, count);
  int64_t last = 0, elements;
  for (int32_t d = 0; d < count; ++d) {
    int64_t reach;
    if (shape.shape[d] < 0 || shape.strides[d] < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a size or stride is negative");
    if (ait_mul_overflows(shape.shape[d] > 0 ? shape.shape[d] - 1 : 0, shape.strides[d], &reach) || ait_add_overflows(last, reach, &last))
      return ait_ref_error(call, AIT_CODE_LIMIT, "sizes and strides are too large");
  }
  elements = ait_tensor_count(&shape) ? last + 1 : 0;
  const ait_tensor *like = size_arg ? ait_ref_tensor_or_null(call, 0) : NULL;
  ait_dtype dtype = dtype_for(call, size_arg + 2, like ? like->dtype : ait_ref_widen(call, AIT_F32));
  AIT_TRY(ait_ref_temp(call, dtype, 1, &elements, &whole));
  out = shape;
  out.data = whole.data;
  out.dtype = dtype;
  out.storage = whole.storage;
  ait_ref_set(call, 0, out);
  return ait_ref_set_all(call, &whole, &zero);
}
ait_status ait_ref_empty_strided(ait_ref_call *call) { return strided(call, 0); }
ait_status ait_ref_new_empty_strided(ait_ref_call *call) { return strided(call, 1); }

ait_status ait_ref_empty_permuted(ait_ref_call *call) {
  int64_t shape[AIT_MAX_RANK], layout[AIT_MAX_RANK], stride = 1;
  int32_t rank, count;
  ait_tensor out;
  AIT_TRY(ait_ref_ints(call, 0, shape, &rank));
  AIT_TRY(ait_ref_ints(call, 1, layout, &count));
  if (count != rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d sizes but a layout of %d", rank, count);
  AIT_TRY(ait_ref_temp(call, dtype_for(call, 2, ait_ref_widen(call, AIT_F32)), rank, shape, &out));
  ait_status status = ait_ref_set_all(call, &out, &zero);
  uint32_t seen = 0;
  for (int32_t i = rank; i-- > 0 && status == AIT_OK;) {
    int32_t d;
    status = ait_ref_dim(call, layout[i], rank, &d);
    if (status == AIT_OK && (seen >> d & 1)) status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "dimension %d is given twice", d);
    if (status != AIT_OK) break;
    seen |= 1u << d;
    out.strides[d] = stride;
    stride *= shape[d] > 1 ? shape[d] : 1;
  }
  if (status == AIT_OK) ait_ref_set(call, 0, out);
  else ait_tensor_release(&out);
  return status;
}

/* ---- sequences --------------------------------------------------------------------------------------------------------------- */
static ait_status arange(ait_ref_call *call, const ait_ref_scalar *start, const ait_ref_scalar *end, const ait_ref_scalar *step,
                         ait_dtype dtype) {
  if (step->f == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a step of zero");
  bool whole = start->kind != AIT_KIND_FLOAT && end->kind != AIT_KIND_FLOAT && step->kind != AIT_KIND_FLOAT;
  if ((step->f > 0) != (end->f >= start->f) && end->f != start->f)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the step leads away from the end");
  if (dtype == AIT_DTYPE_NONE) dtype = whole ? AIT_I64 : ait_ref_widen(call, AIT_F32);
  double exact = ceil((end->f - start->f) / step->f);
  if (!(exact < 9e15)) return ait_ref_error(call, AIT_CODE_LIMIT, "a range of %g elements", exact);
  int64_t count = (int64_t)exact;
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, 0, dtype, 1, &count, &out));
  ait_ref_block block;
  bool ints = whole && ait_dtype_is_integer(dtype);
  for (int64_t at = 0; at < count; at += AIT_REF_BLOCK) {
    int64_t n = count - at < AIT_REF_BLOCK ? count - at : AIT_REF_BLOCK;
    for (int64_t k = 0; k < n; ++k) {
      if (ints) block.i[k] = start->i + (at + k) * step->i;
      else block.f[k] = start->f + (double)(at + k) * step->f;
    }
    ait_ref_store(&out, at, n, ints ? AIT_REF_I : AIT_REF_F, &block);
  }
  return AIT_OK;
}
ait_status ait_ref_arange(ait_ref_call *call) {
  ait_ref_scalar end;
  AIT_TRY(ait_ref_scalar_arg(call, 0, &end));
  return arange(call, &zero, &end, &one, dtype_for(call, 1, AIT_DTYPE_NONE));
}
ait_status ait_ref_arange_start(ait_ref_call *call) {
  ait_ref_scalar start, end;
  AIT_TRY(ait_ref_scalar_arg(call, 0, &start));
  AIT_TRY(ait_ref_scalar_arg(call, 1, &end));
  return arange(call, &start, &end, &one, dtype_for(call, 2, AIT_DTYPE_NONE));
}
ait_status ait_ref_arange_step(ait_ref_call *call) {
  ait_ref_scalar start, end, step;
  AIT_TRY(ait_ref_scalar_arg(call, 0, &start));
  AIT_TRY(ait_ref_scalar_arg(call, 1, &end));
  AIT_TRY(ait_ref_scalar_arg(call, 2, &step));
  return arange(call, &start, &end, &step, dtype_for(call, 3, AIT_DTYPE_NONE));
}

/* From both ends, as torch computes it: exact at the ends, symmetric. base 0: the values themselves, else powers of it. */
static ait_status spaced(ait_ref_call *call, double base, uint32_t dtype_arg) {
  ait_ref_scalar start, end;
  int64_t steps;
  ait_tensor out;
  AIT_TRY(ait_ref_scalar_arg(call, 0, &start));
  AIT_TRY(ait_ref_scalar_arg(call, 1, &end));
  AIT_TRY(ait_ref_int(call, 2, &steps));
  AIT_TRY(ait_ref_new(call, 0, dtype_for(call, dtype_arg, ait_ref_widen(call, AIT_F32)), 1, &steps, &out));
  ait_ref_domain domain = ait_ref_domain_of(out.dtype) == AIT_REF_C ? AIT_REF_C : AIT_REF_F;
  double complex from = __builtin_complex(start.f, start.imag), to = __builtin_complex(end.f, end.imag);
  double complex step = steps > 1 ? (to - from) / (double)(steps - 1) : 0;
  for (int64_t k = 0; k < steps; ++k) {
    double complex v = k < (steps + 1) / 2 ? from + step * (double)k : to - step * (double)(steps - 1 - k);
    if (steps == 1) v = from;
    double real = base != 0 ? pow(base, creal(v)) : creal(v);
    if (domain == AIT_REF_C && base != 0) v = cpow(base, v);
    ait_ref_store(&out, k, 1, domain, domain == AIT_REF_C ? (const void *)&v : (const void *)&real);
  }
  return AIT_OK;
}
ait_status ait_ref_linspace(ait_ref_call *call) { return spaced(call, 0, 3); }
ait_status ait_ref_logspace(ait_ref_call *call) {
  double base;
  AIT_TRY(ait_ref_float_or(call, 3, 10, &base));
  return spaced(call, base, 4);
}

static ait_status eye(ait_ref_call *call, int64_t rows, int64_t columns, uint32_t dtype_arg) {
  ait_tensor out, diagonal;
  AIT_TRY(ait_ref_new(call, 0, dtype_for(call, dtype_arg, ait_ref_widen(call, AIT_F32)), 2, (int64_t[2]){rows, columns}, &out));
  AIT_TRY(ait_ref_set_all(call, &out, &zero));
  AIT_TRY(ait_ref_diagonal_view(call, &out, 0, 0, 1, &diagonal));
  return ait_ref_set_all(call, &diagonal, &one);
}
ait_status ait_ref_eye(ait_ref_call *call) {
  int64_t n;
  AIT_TRY(ait_ref_int(call, 0, &n));
  return eye(call, n, n, 1);
}
ait_status ait_ref_eye_m(ait_ref_call *call) {
  int64_t n, m;
  AIT_TRY(ait_ref_int(call, 0, &n));
  AIT_TRY(ait_ref_int(call, 1, &m));
  return eye(call, n, m, 2);
}

/* (self, value, wrap): the diagonal of a matrix, or of a cube; `wrap` goes on below a tall matrix after an empty row. */
ait_status ait_ref_fill_diagonal_(ait_ref_call *call) {
  const ait_tensor *t;
  ait_ref_scalar value;
  bool wrap;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_scalar_arg(call, 1, &value));
  AIT_TRY(ait_ref_bool_or(call, 2, false, &wrap));
  if (t->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d has no diagonal", t->rank);
  int64_t length = t->shape[0], stride = 0;
  for (int32_t d = 0; d < t->rank; ++d) {
    if (t->rank > 2 && t->shape[d] != t->shape[0]) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the sizes are not equal");
    if (t->shape[d] < length) length = t->shape[d];
    stride += t->strides[d];
  }
  int64_t period = t->rank == 2 && wrap ? t->shape[1] + 1 : t->shape[0] + 1, rows = t->shape[0];
  for (int64_t first = 0; first < rows; first += period) {
    ait_tensor line = {.dtype = t->dtype, .rank = 1, .strides = {stride}};
    line.data = t->data ? (char *)t->data + first * t->strides[0] * (int64_t)ait_dtype_size(t->dtype) : NULL;
    line.shape[0] = length < rows - first ? length : rows - first;
    AIT_TRY(ait_ref_set_all(call, &line, &value));
  }
  ait_ref_set_view(call, 0, t, t);
  return AIT_OK;
}

/* ---- diagonals and triangles ------------------------------------------------------------------------------------------------- */
/* Zero outside the triangle: keeps columns up to row + diagonal (lower), or from it on (upper). */
static ait_status triangle(ait_ref_call *call, bool upper) {
  const ait_tensor *t;
  ait_tensor out, row_out;
  int64_t diagonal;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int_or(call, 1, 0, &diagonal));
  if (t->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d is not a matrix", t->rank);
  AIT_TRY(ait_ref_copy_result(call, 0, t->dtype, t));
  out = call->results[0].as.tensor;
  int64_t rows = out.shape[t->rank - 2], columns = out.shape[t->rank - 1], lines = columns ? ait_tensor_count(&out) / columns : 0;
  size_t size = ait_dtype_size(out.dtype);
  for (int64_t line = 0; line < lines; ++line) {
    int64_t cut = line % rows + diagonal + (upper ? 0 : 1);
    cut = cut < 0 ? 0 : cut > columns ? columns : cut;
    row_out = ait_tensor_borrow((char *)out.data + (size_t)(line * columns) * size, out.dtype, 1, &columns);
    size_t from = upper ? 0 : (size_t)cut, count = upper ? (size_t)cut : (size_t)(columns - cut);
    memset((char *)row_out.data + from * size, 0, count * size);
  }
  return AIT_OK;
}
ait_status ait_ref_tril(ait_ref_call *call) { return triangle(call, false); }
ait_status ait_ref_triu(ait_ref_call *call) { return triangle(call, true); }

/* (rows, columns, offset): row and column numbers of the triangle's elements, [2, count]. */
static ait_status triangle_indices(ait_ref_call *call, bool upper) {
  int64_t rows, columns, offset, count = 0, at = 0;
  ait_tensor out;
  AIT_TRY(ait_ref_int(call, 0, &rows));
  AIT_TRY(ait_ref_int(call, 1, &columns));
  AIT_TRY(ait_ref_int_or(call, 2, 0, &offset));
  if (rows < 0 || columns < 0 || rows > INT32_MAX || columns > INT32_MAX || offset > INT32_MAX || offset < -INT32_MAX)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld rows, %lld columns", (long long)rows, (long long)columns);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t cut = r + offset + !upper;
    cut = cut < 0 ? 0 : cut > columns ? columns : cut;
    count += upper ? columns - cut : cut;
  }
  AIT_TRY(ait_ref_new(call, 0, dtype_for(call, 3, AIT_I64), 2, (int64_t[2]){2, count}, &out));
  for (int64_t r = 0; r < rows; ++r) {
    int64_t cut = r + offset + !upper;
    cut = cut < 0 ? 0 : cut > columns ? columns : cut;
    for (int64_t c = upper ? cut : 0, end = upper ? columns : cut; c < end; ++c, ++at) {
      ait_ref_store(&out, at, 1, AIT_REF_I, &r);
      ait_ref_store(&out, count + at, 1, AIT_REF_I, &c);
    }
  }
  return AIT_OK;
}
ait_status ait_ref_tril_indices(ait_ref_call *call) { return triangle_indices(call, false); }
ait_status ait_ref_triu_indices(ait_ref_call *call) { return triangle_indices(call, true); }

/* The last dim becomes the diagonal `offset` of the dims dim1 and dim2 of the result. */
static ait_status embed_diagonal(ait_ref_call *call, const ait_tensor *t, int64_t offset, int64_t dim1, int64_t dim2) {
  if (t->rank == 0 || t->rank == AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "rank %d", t->rank);
  int32_t rank = t->rank + 1, a, b;
  int64_t shape[AIT_MAX_RANK], length = t->shape[t->rank - 1], side = length + (offset < 0 ? -offset : offset);
  ait_tensor out, diagonal;
  AIT_TRY(ait_ref_dim(call, dim1, rank, &a));
  AIT_TRY(ait_ref_dim(call, dim2, rank, &b));
  for (int32_t d = 0, at = 0; d < rank; ++d) shape[d] = d == a || d == b ? side : t->shape[at++];
  AIT_TRY(ait_ref_new(call, 0, t->dtype, rank, shape, &out));
  AIT_TRY(ait_ref_set_all(call, &out, &zero));
  AIT_TRY(ait_ref_diagonal_view(call, &out, offset, a, b, &diagonal));
  return ait_ref_move(call, &diagonal, t);
}
ait_status ait_ref_diag_embed(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t offset, dim1, dim2;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int_or(call, 1, 0, &offset));
  AIT_TRY(ait_ref_int_or(call, 2, -2, &dim1));
  AIT_TRY(ait_ref_int_or(call, 3, -1, &dim2));
  return embed_diagonal(call, t, offset, dim1, dim2);
}
ait_status ait_ref_diag(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor diagonal;
  int64_t offset;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int_or(call, 1, 0, &offset));
  if (t->rank == 1) return embed_diagonal(call, t, offset, 0, 1);
  AIT_TRY(ait_ref_diagonal_view(call, t, offset, 0, 1, &diagonal));
  return ait_ref_copy_result(call, 0, t->dtype, &diagonal);
}
ait_status ait_ref_diagflat(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor flat;
  int64_t offset, count;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int_or(call, 1, 0, &offset));
  count = ait_tensor_count(t);
  AIT_TRY(ait_ref_reshaped(call, t, 1, &count, &flat));
  ait_status status = embed_diagonal(call, &flat, offset, 0, 1);
  ait_tensor_release(&flat);
  return status;
}
