/* Raw operators that stay in core graphs and have an ONNX form. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

enum { GROUP_LIMIT = 256 };

void oe_row_einsum(ox *x) {
  const ait_arg *list;
  uint32_t count = oe_arg_list(x, 1, &list);
  const char *equation = oe_arg_string(x, 0);
  ait_dtype d = oe_result_dtype(x, 0), wide = oe_dtype_in(d, OE_WIDE);
  oe_t *in = oe_new(x, count, sizeof *in);
  for (uint32_t i = 0; i < count && !oe_failed(x); ++i) in[i] = oe_cast(x, oe_operand(x, &list[i], d), wide);
  if (oe_failed(x)) return;
  oe_t r = oe_op(x, "Einsum", wide, in, count);
  oe_string(x, "equation", equation);
  oe_set(x, 0, r);
}

/* Rows of indices; ONNX has columns. */
void oe_row_nonzero(ox *x) {
  oe_t a = oe_in(x, 0);
  if (a.rank == 0) a = oe_reshape_to(x, a, (const int64_t[]){1}, 1);
  oe_t r = oe_transpose(x, OE(x, "NonZero", AIT_I64, oe_cast(x, a, AIT_BOOL)), (const int64_t[]){1, 0}, 2);
  oe_set(x, 0, oe_in(x, 0).rank == 0 ? oe_slice_const(x, r, 1, 0, 0) : r);
}

void oe_row_masked_select(ox *x) {
  oe_t a = oe_in(x, 0), mask = oe_cast(x, oe_in(x, 1), AIT_BOOL);
  oe_t shape = oe_shape_of(x, OE(x, "And", AIT_BOOL, mask, oe_expand(x, mask, oe_shape_of(x, a)))); /* both broadcast */
  oe_t flat = oe_reshape_to(x, oe_expand(x, a, shape), (const int64_t[]){-1}, 1);
  oe_set(x, 0, OE(x, "Compress", a.dtype, flat, oe_reshape_to(x, oe_expand(x, mask, shape), (const int64_t[]){-1}, 1)));
}

void oe_row_item(ox *x) { oe_set(x, 0, oe_reshape_to(x, oe_in(x, 0), NULL, 0)); }

void oe_row_sym_size(ox *x) {
  oe_t a = oe_in(x, 0), size = OE(x, "Shape", AIT_I64, a);
  int64_t axis = oe_axis(x, oe_arg_int(x, 1), a.rank);
  oe_int(x, "start", axis);
  oe_int(x, "end", axis + 1);
  oe_set(x, 0, oe_squeeze(x, size, 0));
}

/* x [M, K], weights [G, K, N], offsets [G]: rows up to offsets[0] go with the first weight, and so on. */
void oe_row_grouped_mm(ox *x) {
  oe_t given = oe_in(x, 0), weights = oe_in_as(x, 1, given.dtype), ends = oe_in_as(x, 2, AIT_I64), w = oe_in(x, 1);
  int64_t groups;
  if (given.rank != 2 || w.rank != 3 || !oe_dim_const(x, w.shape[0], &groups) || groups > GROUP_LIMIT)
    oe_fail(x, "it has no fixed number of at most %d groups", GROUP_LIMIT);
  if (oe_failed(x)) return;
  oe_t a = oe_widen(x, given, OE_FLOATS), row = oe_unsqueeze(x, oe_range(x, oe_squeeze(x, oe_dim(x, given.shape[0]), 0)), 1), r = oe_none();
  weights = oe_cast(x, weights, a.dtype);
  for (int64_t g = groups - 1; g >= 0; --g) { /* the first group whose end is beyond the row */
    oe_t product = oe_same2(x, "MatMul", a, OE(x, "Gather", a.dtype, weights, oe_i64(x, g)));
    oe_t inside = oe_bool2(x, "Less", row, OE(x, "Gather", AIT_I64, ends, oe_i64(x, g)));
    r = oe_where(x, inside, product, r.name ? r : oe_num(x, a.dtype, 0));
  }
  oe_set(x, 0, r);
}

/* ONNX cannot stop a run: what torch would refuse is computed as if the assertion held. Sizes that follow are checked by their operators.
 */
void oe_row_assertion(ox *x) { AIT_UNUSED(x); }
