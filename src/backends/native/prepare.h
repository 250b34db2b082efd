/* What several prepare_*.c share. */
#ifndef AIT_SRC_BACKENDS_NATIVE_PREPARE_H
#define AIT_SRC_BACKENDS_NATIVE_PREPARE_H

#include "backends/native/bind.h"

/* Where the consumer wants result i, or NULL. */
const nat_view *nat_wish(const nat_bind *b, const nat_step *s, uint32_t i);

/* ---- matrices (prepare_matrix.c) ---------------------------------------------------------------------------------------------------*/
/* v as [rows][n], n the product of the last `inner` dims and side by side, rows one stride apart. */
typedef struct nat_matrix {
  nat_view view; /* root and offset */
  int64_t rows, n, stride;
} nat_matrix;
bool nat_matrix_of(const nat_view *v, int32_t inner, nat_matrix *out);
/* As it is, or a row-major copy. */
ait_status nat_matrix_in(nat_bind *b, const nat_view *v, int32_t inner, nat_matrix *out) AIT_MUST_USE;
/* Result i as a matrix: where its consumer wants it when that is one. */
ait_status nat_matrix_out(nat_bind *b, const nat_step *s, uint32_t i, int32_t inner, nat_view *out, nat_matrix *out_matrix) AIT_MUST_USE;

/* Packed weight i of the step as a view; false when the blob has none of that kind and those dims. */
bool nat_packed(nat_bind *b, const nat_step *s, uint32_t i, uint32_t kind, const int64_t dims[6], nat_view *out, ait_status *status);
/* A matrix w[k][n] (rank 2, any strides) packed now; once per plan when it is a weight and the backend is not eager. */
ait_status nat_pack_now(nat_bind *b, const nat_view *w, nat_view *out) AIT_MUST_USE;

/* A vector of n floats side by side, or NULL pointer semantics through `has`. */
ait_status nat_vector(nat_bind *b, const nat_step *s, uint32_t i, int64_t n, bool *has, nat_view *out) AIT_MUST_USE;

/* Emits a product; g has everything but pointers and grid. bias, residual: NULL when absent. */
typedef struct nat_product {
  ait_gemm_f32 g;
  const nat_view *a, *packed, *c, *bias, *residual;
} nat_product;
ait_status nat_emit_product(nat_bind *b, const nat_product *p) AIT_MUST_USE;

/* After a call that sets *flag when an index is out of range: the run ends with an error then (prepare_index.c). */
ait_status nat_emit_range_check(nat_bind *b, const nat_step *s, int32_t *flag, int64_t size) AIT_MUST_USE;

/* ---- element by element (prepare_ew.c) ---------------------------------------------------------------------------------------------*/
enum { NAT_EW_INPUTS = AIT_EW_MAX_INPUTS };
/* Computes dst (dense in some order) from operands of the same, broadcast, shape. e->code, counts and dtypes are set; shapes and strides
 * are filled in here. */
ait_status nat_emit_ew(nat_bind *b, ait_ew_f32 *e, const nat_view *inputs, const nat_view *dst) AIT_MUST_USE;

#endif
