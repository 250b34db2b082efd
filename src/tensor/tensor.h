/* Front door of the tensor room: views, storage, conversion, comparison, weights, npy/npz. */
#ifndef AIT_SRC_TENSOR_H
#define AIT_SRC_TENSOR_H

#include "base/base.h"
#include <ait/backend.h>
#include <ait/data.h>
#include <ait/tensor.h>

/* ---- dtypes (dtype.c) ----------------------------------------------------------------------------------------------------------*/
typedef enum ait_dtype_kind { AIT_KIND_NONE, AIT_KIND_BOOL, AIT_KIND_UINT, AIT_KIND_INT, AIT_KIND_FLOAT, AIT_KIND_COMPLEX } ait_dtype_kind;
ait_dtype_kind ait_dtype_kind_of(ait_dtype dtype);
static inline bool ait_dtype_is_float(ait_dtype d) { return ait_dtype_kind_of(d) == AIT_KIND_FLOAT; }
static inline bool ait_dtype_is_complex(ait_dtype d) { return ait_dtype_kind_of(d) == AIT_KIND_COMPLEX; }
static inline bool ait_dtype_is_integer(ait_dtype d) {
  ait_dtype_kind k = ait_dtype_kind_of(d);
  return k == AIT_KIND_INT || k == AIT_KIND_UINT || k == AIT_KIND_BOOL;
}
/* Bit-exact conversions; rounding to nearest even. */
float ait_f16_to_f32(uint16_t h);
uint16_t ait_f32_to_f16(float f);
float ait_bf16_to_f32(uint16_t h);
uint16_t ait_f32_to_bf16(float f);
uint16_t ait_f64_to_f16(double f); /* one rounding */
uint16_t ait_f64_to_bf16(double f);
float ait_f8_to_f32(uint8_t v, ait_dtype dtype);
uint8_t ait_f32_to_f8(float f, ait_dtype dtype); /* beyond the largest, as torch: e4m3fn saturates, e5m2 gives infinity, fnuz NaN */
int64_t ait_f64_to_i64(double v);                /* truncates; INT64_MIN for what does not fit and NaN, as torch on x86 */
/* Of a complex dtype the dtype of its parts; any other: itself. */
ait_dtype ait_dtype_component(ait_dtype dtype);

/* One element as double / int64 / complex, whatever the dtype; and back with torch's cast rules: float to int truncates, what goes to a
 * float smaller than 32 bits is rounded to float32 first, the imaginary part is dropped. p may be unaligned. */
double ait_element_f64(const void *p, ait_dtype dtype);
int64_t ait_element_i64(const void *p, ait_dtype dtype);
void ait_element_c128(const void *p, ait_dtype dtype, double out[2]);
void ait_element_set_f64(void *p, ait_dtype dtype, double v);
void ait_element_set_i64(void *p, ait_dtype dtype, int64_t v);
void ait_element_set_c128(void *p, ait_dtype dtype, const double v[2]);

/* torch.promote_types; AIT_DTYPE_NONE where torch refuses (8-bit floats and wide unsigned integers with others). */
ait_dtype ait_dtype_promote(ait_dtype a, ait_dtype b);

/* ---- storage and views (tensor.c) ------------------------------------------------------------------------------------------------*/
/* Counted memory. `release(ctx)` is called when the last reference goes; NULL: from the allocator. */
ait_status ait_storage_create(ait_allocator a, size_t bytes, ait_storage **out) AIT_MUST_USE; /* 64-byte aligned */
ait_status ait_storage_wrap(ait_allocator a, void *data, size_t bytes, void (*release)(void *ctx), void *ctx,
                            ait_storage **out) AIT_MUST_USE;
ait_storage *ait_storage_retain(ait_storage *s); /* NULL stays NULL */
void ait_storage_release(ait_storage *s);        /* takes NULL */
void *ait_storage_data(ait_storage *s);
size_t ait_storage_bytes(const ait_storage *s);

void ait_tensor_set_contiguous(ait_tensor *t); /* strides from the shape */
size_t ait_tensor_bytes(const ait_tensor *t);  /* count * element size */
bool ait_tensor_same_shape(const ait_tensor *a, const ait_tensor *b);
void ait_tensor_shape_text(const ait_tensor *t, char *out, size_t size); /* "[2, 3]" */
/* All elements that shape and strides reach lie in [0, elements) of a storage of that many elements, from `offset`. Checked arithmetic.
 * A tensor without elements fits at any offset that is not negative: it may lie outside the storage, so do not point there. */
bool ait_strides_fit(int32_t rank, const int64_t *shape, const int64_t *strides, int64_t offset, int64_t elements);

/* ---- symbolic sizes (dims.c) -----------------------------------------------------------------------------------------------------
 * Evaluates with symbol values (INT64_MIN: unbound). false: unbound, unknown, overflow, division by zero, or too deep (500 levels). */
bool ait_dim_eval(const ait_dim_expr *dims, const int64_t *symbol_values, ait_dim d, int64_t *out);
/* The size `value` of an input tells a symbol: binds the one unbound symbol of the expression (4*s0 + 1 by solving) and returns true; false
 * when all are bound, several are not, or it cannot be solved. Call it over all input sizes until none binds any more. */
bool ait_dim_bind(const ait_dim_expr *dims, int64_t *symbol_values, ait_dim d, int64_t value);
/* All of a table at once, each expression once; INT64_MIN where ait_dim_eval is false. Any depth. */
void ait_dim_eval_all(const ait_dim_expr *dims, uint32_t count, const int64_t *symbol_values, int64_t *out);

/* ---- weights (weights.c) ---------------------------------------------------------------------------------------------------------
 * Named tensors over shared storages. Adding is single-threaded; reading is thread-safe. */
typedef struct ait_weight {
  const char *name;
  uint32_t storage;
  ait_dtype dtype;
  int32_t rank;
  int64_t shape[AIT_MAX_RANK], strides[AIT_MAX_RANK], offset; /* elements */
} ait_weight;
typedef struct ait_weight_store ait_weight_store;
ait_status ait_weight_store_create(ait_allocator a, ait_weight_store **out) AIT_MUST_USE;
ait_weight_store *ait_weight_store_retain(ait_weight_store *s);
void ait_weight_store_release(ait_weight_store *s);
/* Takes over one reference to `storage`. *out_index names it in ait_weight. */
ait_status ait_weight_store_add_storage(ait_weight_store *s, ait_storage *storage, uint32_t *out_index) AIT_MUST_USE;
/* Checks bounds. The name is copied; a second tensor of that name is an error (invalid-model). */
ait_status ait_weight_store_add(ait_weight_store *s, const ait_weight *weight) AIT_MUST_USE;
size_t ait_weight_store_count(const ait_weight_store *s);
const ait_weight *ait_weight_store_at(const ait_weight_store *s, size_t index);
const ait_weight *ait_weight_store_find(const ait_weight_store *s, const char *name);
size_t ait_weight_store_storage_count(const ait_weight_store *s);
ait_storage *ait_weight_store_storage(const ait_weight_store *s, uint32_t index);
ait_weights ait_weight_store_provider(const ait_weight_store *s);

/* ---- npy, npz (npy.c, npz.c; npz through libzip) -------------------------------------------------------------------------------*/
typedef struct ait_named_tensor {
  char *name;
  ait_tensor tensor;
} ait_named_tensor;
typedef struct ait_tensor_file {
  ait_allocator allocator;
  ait_named_tensor *items;
  size_t count, capacity;
} ait_tensor_file;
void ait_tensor_file_init(ait_tensor_file *f, ait_allocator a);
void ait_tensor_file_deinit(ait_tensor_file *f);
void ait_tensor_file_truncate(ait_tensor_file *f, size_t count); /* drops what was added after the first `count` */
ait_status ait_tensor_file_add(ait_tensor_file *f, const char *name, const ait_tensor *t) AIT_MUST_USE; /* retains or copies */
const ait_tensor *ait_tensor_file_find(const ait_tensor_file *f, const char *name);
/* Adds the archive's tensors to *out, all or none. Members may be stored or deflated; archives that would unpack to more than 1 GiB and
 * more than 64 times their size are refused (limit). Errors: not-found, io, invalid-model, unsupported, limit, out-of-memory. */
ait_status ait_npz_read(const char *path, ait_tensor_file *out) AIT_MUST_USE;
ait_status ait_npz_parse(const void *data, size_t size, ait_tensor_file *out) AIT_MUST_USE; /* the same, from memory */
ait_status ait_npz_write(const char *path,
                         const ait_tensor_file *f) AIT_MUST_USE; /* whole or not at all; equal contents give equal bytes */
ait_status ait_npy_read(const char *path, ait_allocator a, ait_tensor *out) AIT_MUST_USE;
/* From memory; `data` is copied. fortran_order becomes strides. Structured and object dtypes are refused. */
ait_status ait_npy_parse(ait_allocator a, const void *data, size_t size, ait_tensor *out) AIT_MUST_USE;
ait_status ait_npy_format(ait_allocator a, const ait_tensor *t, ait_text *out) AIT_MUST_USE;

#endif
