/* Raw operators that stay in core graphs and have an ONNX form. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

enum { GROUP_LIMIT = 256 };

void ox_row_einsum(ox *x) {
  const ait_arg *list;
  uint32_t count = ox_arg_list(x, 1, &list);
  const char *equation = ox_arg_string(x, 0);
  ait_dtype d = ox_result_dtype(x, 0), wide = ox_dtype_in(d, OX_WIDE);
  ox_t *in = ox_new(x, count, sizeof *in);
  for (uint32_t i = 0; i < count && !ox_failed(x); ++i) in[i] = ox_cast(x, ox_operand(x, &list[i], d), wide);
  if (ox_failed(x)) return;
  ox_t r = ox_op(x, "Einsum", wide, in, count);
  ox_string(x, "equation", equation);
  ox_set(x, 0, r);
}

/* Rows of indices; ONNX has columns. */
void ox_row_nonzero(ox *x) {
  ox_t a = ox_in(x, 0);
  if (a.rank == 0) a = ox_reshape_to(x, a, (const int64_t[]){1}, 1);
  ox_t r = ox_transpose(x, OX(x, "NonZero", AIT_I64, ox_cast(x, a, AIT_BOOL)), (const int64_t[]){1, 0}, 2);
  ox_set(x, 0, ox_in(x, 0).rank == 0 ? ox_slice_const(x, r, 1, 0, 0) : r);
}

void ox_row_masked_select(ox *x) {
  ox_t a = ox_in(x, 0), mask = ox_cast(x, ox_in(x, 1), AIT_BOOL);
  ox_t shape = ox_shape_of(x, OX(x, "And", AIT_BOOL, mask, ox_expand(x, mask, ox_shape_of(x, a)))); /* both broadcast */
  ox_t flat = ox_reshape_to(x, ox_expand(x, a, shape), (const int64_t[]){-1}, 1);
  ox_set(x, 0, OX(x, "Compress", a.dtype, flat, ox_reshape_to(x, ox_expand(x, mask, shape), (const int64_t[]){-1}, 1)));
}

void ox_row_item(ox *x) { ox_set(x, 0, ox_reshape_to(x, ox_in(x, 0), NULL, 0)); }

void ox_row_sym_size(ox *x) {
  ox_t a = ox_in(x, 0), size = OX(x, "Shape", AIT_I64, a);
  int64_t axis = ox_axis(x, ox_arg_int(x, 1), a.rank);
  ox_int(x, "start", axis);
  ox_int(x, "end", axis + 1);
  ox_set(x, 0, ox_squeeze(x, size, 0));
}

/* x [M, K], weights [G, K, N], offsets [G]: rows up to offsets[0] go with the first weight, and so on. */
void ox_row_grouped_mm(ox *x) {
  ox_t given = ox_in(x, 0), weights = ox_in_as(x, 1, given.dtype), ends = ox_in_as(x, 2, AIT_I64), w = ox_in(x, 1);
  int64_t groups;
  if (given.rank != 2 || w.rank != 3 || !ox_dim_const(x, w.shape[0], &groups) || groups > GROUP_LIMIT)
    ox_fail(x, "it has no fixed number of at most %d groups", GROUP_LIMIT);
  if (ox_failed(x)) return;
  ox_t a = ox_widen(x, given, OX_FLOATS), row = ox_unsqueeze(x, ox_range(x, ox_squeeze(x, ox_dim(x, given.shape[0]), 0)), 1), r = ox_none();
  weights = ox_cast(x, weights, a.dtype);
  for (int64_t g = groups - 1; g >= 0; --g) { /* the first group whose end is beyond the row */
    ox_t product = ox_same2(x, "MatMul", a, OX(x, "Gather", a.dtype, weights, ox_i64(x, g)));
    ox_t inside = ox_bool2(x, "Less", row, OX(x, "Gather", AIT_I64, ends, ox_i64(x, g)));
    r = ox_where(x, inside, product, r.name ? r : ox_num(x, a.dtype, 0));
  }
  ox_set(x, 0, r);
}

/* ONNX cannot stop a run: what torch would refuse is computed as if the assertion held. Sizes that follow are checked by their operators.
 */
void ox_row_assertion(ox *x) { AIT_UNUSED(x); }
