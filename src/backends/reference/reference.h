/* Front door of the reference backend: the oracle. Runs a region operator by operator on strided tensors that share storage, exactly as
 * PyTorch does; accumulates in double; fp64 mode (knob precision=fp64) computes every float in double.
 *
 * An operator is a function ait_ref_<name>, named in the last column of ops.inc. Several operators may share one function: call->node->op
 * tells which it is, and arguments are found by position in their schema. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_H
#define AIT_SRC_BACKENDS_REFERENCE_H

#include "base/base.h"
#include "tensor/tensor.h"
#include <ait/backend.h>

extern const ait_backend ait_backend_reference;

/* A value while the graph runs. */
typedef struct ait_ref_value {
  ait_type type;   /* NONE: not there (yet) */
  bool is_complex; /* a FLOAT value with an imaginary part */
  union {
    ait_tensor tensor; /* holds a reference */
    struct {
      ait_tensor *items;
      uint32_t count;
    } list;
    int64_t i;
    double f;
    bool b;
    const char *s;
    double c[2];
  } as;
} ait_ref_value;

/* A scalar argument: Python int, float, bool or complex. */
typedef struct ait_ref_scalar {
  ait_dtype_kind kind; /* INT, FLOAT, BOOL, COMPLEX */
  int64_t i;
  double f; /* always set: the value as double (real part) */
  double imag;
} ait_ref_scalar;

typedef struct ait_ref_call {
  struct ait_ref_run *run;
  const ait_region *region;
  const ait_region_node *node;
  ait_ref_value *results; /* node->result_count; the function fills them */
  ait_allocator allocator;
  ait_pool *pool;
  bool fp64;
} ait_ref_call;

/* What a call can see: the values and symbols of the (nested) region that is running. */
struct ait_ref_run {
  const ait_region *region;
  const ait_ref_value *values; /* by value id */
  const int64_t *symbols;      /* region->symbol_count values, INT64_MIN where unbound; NULL: none is bound */
  ait_allocator allocator;
  ait_pool *pool;
  bool fp64;
  int32_t depth;   /* of nesting */
  uint64_t *draws; /* random operators that this session has run: each draws from a stream of its own; NULL: always the first */
};

typedef ait_status (*ait_ref_fn)(ait_ref_call *call);
/* Declares ait_ref_<name> for every name in the last column of ops.inc. */
#define AIT_OP(name, schema, dialects, traits, reference) ait_status ait_ref_##reference(ait_ref_call *call) AIT_MUST_USE;
#include "ir/ops.inc"
#undef AIT_OP
ait_status ait_ref_custom(ait_ref_call *call) AIT_MUST_USE; /* ops_custom.c: any operator that the application registered */
/* ref_table.c: NULL when ops.inc says none, or the operator is unknown and not registered. */
ait_ref_fn ait_ref_find(const char *op);
bool ait_ref_find_own(const char *op); /* a row of ops.inc */
/* The error for a node whose operator ait_ref_find does not find: unsupported. */
ait_status ait_ref_missing(const char *node, const char *op) AIT_MUST_USE;

/* ---- arguments by position. Errors name operator, node and argument (invalid-model). --------------------------------------------*/
uint32_t ait_ref_arg_count(const ait_ref_call *call);
bool ait_ref_is_none(const ait_ref_call *call, uint32_t arg);
bool ait_ref_is_tensor(const ait_ref_call *call, uint32_t arg);
ait_status ait_ref_tensor(const ait_ref_call *call, uint32_t arg, const ait_tensor **out) AIT_MUST_USE;
const ait_tensor *ait_ref_tensor_or_null(const ait_ref_call *call, uint32_t arg); /* NULL when none or not given */
/* Borrowed array of the elements of a tensor list (VALUE of list type, or LIST of VALUEs); a NONE element has dtype AIT_DTYPE_NONE.
 * Freed with ait_free(call->allocator, *out, *out_count * sizeof **out). */
ait_status ait_ref_tensors(const ait_ref_call *call, uint32_t arg, ait_tensor **out, uint32_t *out_count) AIT_MUST_USE;
ait_status ait_ref_int(const ait_ref_call *call, uint32_t arg, int64_t *out) AIT_MUST_USE;
ait_status ait_ref_int_or(const ait_ref_call *call, uint32_t arg, int64_t when_none, int64_t *out) AIT_MUST_USE;
ait_status ait_ref_float(const ait_ref_call *call, uint32_t arg, double *out) AIT_MUST_USE;
ait_status ait_ref_float_or(const ait_ref_call *call, uint32_t arg, double when_none, double *out) AIT_MUST_USE;
ait_status ait_ref_bool(const ait_ref_call *call, uint32_t arg, bool *out) AIT_MUST_USE;
ait_status ait_ref_bool_or(const ait_ref_call *call, uint32_t arg, bool when_none, bool *out) AIT_MUST_USE;
ait_status ait_ref_scalar_arg(const ait_ref_call *call, uint32_t arg, ait_ref_scalar *out) AIT_MUST_USE;
/* At most AIT_MAX_RANK ints; a single int counts as a list of one; none gives count 0. */
ait_status ait_ref_ints(const ait_ref_call *call, uint32_t arg, int64_t out[AIT_MAX_RANK], int32_t *out_count) AIT_MUST_USE;
/* Any number of ints; freed with ait_free(call->allocator, *out, *out_count * sizeof **out). */
ait_status ait_ref_int_array(const ait_ref_call *call, uint32_t arg, int64_t **out, uint32_t *out_count) AIT_MUST_USE;
ait_status ait_ref_floats(const ait_ref_call *call, uint32_t arg, double out[AIT_MAX_RANK], int32_t *out_count) AIT_MUST_USE;
ait_status ait_ref_bools(const ait_ref_call *call, uint32_t arg, bool out[AIT_MAX_RANK], int32_t *out_count) AIT_MUST_USE;
const char *ait_ref_string(const ait_ref_call *call, uint32_t arg); /* NULL when none */
/* A dtype argument (float32 and other floats become float64 in fp64 mode), or `when_none`. */
ait_dtype ait_ref_dtype(const ait_ref_call *call, uint32_t arg, ait_dtype when_none);
/* Wraps a negative dim; error when outside [-rank, rank). rank 0 counts as 1. */
ait_status ait_ref_dim(const ait_ref_call *call, int64_t dim, int32_t rank, int32_t *out) AIT_MUST_USE;

/* ---- results ---------------------------------------------------------------------------------------------------------------------*/
/* float64 for any other float in fp64 mode, complex128 for any other complex; the dtype itself otherwise. */
ait_dtype ait_ref_widen(const ait_ref_call *call, ait_dtype dtype);
/* The dtype that the program declares for result k (mapped in fp64 mode); AIT_DTYPE_NONE when it does not say. Type promotion was done by
 * PyTorch at export: obey it. */
ait_dtype ait_ref_result_dtype(const ait_ref_call *call, uint32_t k);
/* A new contiguous tensor as result k; *out is a borrowed view of it. */
ait_status ait_ref_new(ait_ref_call *call, uint32_t k, ait_dtype dtype, int32_t rank, const int64_t *shape, ait_tensor *out) AIT_MUST_USE;
/* Scratch: contiguous tensor to be released by the caller. */
ait_status ait_ref_temp(const ait_ref_call *call, ait_dtype dtype, int32_t rank, const int64_t *shape, ait_tensor *out) AIT_MUST_USE;
/* A tensor (view or new) as result k: takes over the reference that `t` holds. */
void ait_ref_set(ait_ref_call *call, uint32_t k, ait_tensor t);
/* Result k is a view of `base`: retains its storage. */
void ait_ref_set_view(ait_ref_call *call, uint32_t k, const ait_tensor *base, const ait_tensor *view);
void ait_ref_set_int(ait_ref_call *call, uint32_t k, int64_t v);
void ait_ref_set_scalar(ait_ref_call *call, uint32_t k, const ait_ref_scalar *v);
void ait_ref_set_float(ait_ref_call *call, uint32_t k, double v);
void ait_ref_set_bool(ait_ref_call *call, uint32_t k, bool v);
/* Result k is a list: array of `count` tensors from call->allocator, taken over with the references they hold. */
void ait_ref_set_list(ait_ref_call *call, uint32_t k, ait_tensor *items, uint32_t count);
/* "node 'add_3' (aten.add.Tensor): …" */
ait_status ait_ref_error(const ait_ref_call *call, ait_code code, const char *format, ...) AIT_PRINTF(3, 4) AIT_MUST_USE;

/* Splits 0..count-1 over the pool when count * work_per_item (in rough element operations) is worth it. fn gets half-open ranges. */
typedef void (*ait_ref_range_fn)(void *ctx, int64_t begin, int64_t end);
void ait_ref_parallel(const ait_ref_call *call, int64_t count, int64_t work_per_item, ait_ref_range_fn fn, void *ctx);

/* ---- walking strided tensors -------------------------------------------------------------------------------------------------------*/
/* Broadcast of shapes; error names the operator. */
ait_status ait_ref_broadcast(const ait_ref_call *call, const ait_tensor *const *tensors, uint32_t count, int32_t *out_rank,
                             int64_t out_shape[AIT_MAX_RANK]) AIT_MUST_USE;
/* View of t with stride 0 where it is broadcast to shape. */
ait_tensor ait_ref_expand(const ait_tensor *t, int32_t rank, const int64_t *shape);
/* A contiguous double copy (complex: pairs) of any tensor; released by the caller. The plain way to write an operator that need not be
 * fast. */
ait_status ait_ref_to_f64(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) AIT_MUST_USE;
/* Byte pointer of element at multi-index. */
static inline char *ait_ref_at(const ait_tensor *t, const int64_t *index) {
  int64_t o = 0;
  for (int32_t d = 0; d < t->rank; ++d) o += index[d] * t->strides[d];
  return (char *)t->data + o * (int64_t)ait_dtype_size(t->dtype);
}
/* Next multi-index in row-major order; false after the last. */
bool ait_ref_next(int32_t rank, const int64_t *shape, int64_t *index);

/* Runs one node on given tensors, for native's portable steps and for constant folding. inputs/outputs by argument and result. */
ait_status ait_ref_run_node(const ait_region *region, const ait_region_node *node, ait_allocator a, ait_pool *pool, bool fp64,
                            const int64_t *symbol_values, const ait_ref_value *value_table, ait_ref_value *results) AIT_MUST_USE;
void ait_ref_value_release(ait_allocator a, ait_ref_value *v);

#endif
