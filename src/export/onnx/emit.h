/* Inside of the ONNX exporter: nodes, constants and sizes, as the rows need them.
 *
 * An emitter writes what it means as nested calls; the first error stays in ox.status, and everything after it is harmless (tensors without
 * a name). Memory is one arena. */
#ifndef AIT_SRC_EXPORT_ONNX_EMIT_H
#define AIT_SRC_EXPORT_ONNX_EMIT_H

#include "export/export.h"
#include <math.h>

typedef struct oe_name {
  const char *text; /* NULL until names are given out */
  const char *hint; /* name of the graph's value, or NULL */
  bool used;        /* a node reads it */
} oe_name;

/* One ONNX tensor. Scalars of the graph (sizes, flags) are tensors of rank 0. */
typedef struct oe_t {
  oe_name *name; /* NULL: an optional operand that is left out */
  ait_dtype dtype;
  int32_t rank;         /* -1: not tracked */
  const ait_dim *shape; /* NULL: not tracked */
} oe_t;

typedef enum oe_attr_kind { OE_INT, OE_FLOAT, OE_STRING, OE_INTS, OE_GRAPH } oe_attr_kind;
typedef struct oe_attr {
  const char *name;
  oe_attr_kind kind;
  int64_t i;
  float f;
  const char *s;
  const int64_t *ints;
  uint32_t count;
  const struct oe_frame *graph;
  struct oe_attr *next;
} oe_attr;

typedef struct oe_node {
  const char *op, *label;
  oe_name **in, **out;
  uint32_t in_count, out_count;
  oe_attr *attrs, *last_attr;
  struct oe_node *next;
} oe_node;

/* Where a size can be read: dim `axis` of a tensor, or the (scalar) tensor itself when axis is -1. */
typedef struct oe_source {
  oe_t tensor;
  int32_t axis;
} oe_source;

/* The graph that is being written: the model's, or a body inside of it, which sees what its parent has. */
typedef struct oe_frame {
  struct oe_frame *parent;
  struct oe_frame *into; /* where its nodes go: itself, or the frame that a graph is written into in place of a call */
  const ait_region *region;
  oe_t *values; /* by value id */
  oe_t **lists; /* by value id: elements of a tensor list, or NULL */
  uint32_t *list_counts;
  oe_source *sources; /* by dim id; tensor.name NULL: none */
  oe_t *dims;         /* by dim id: computed ones, rank 1 and one element */
  oe_node *first, *last;
  oe_t *inputs, *outputs;
  uint32_t input_count, output_count;
  const char *name;
} oe_frame;

typedef struct oe_constant { /* an initializer of few elements */
  oe_name *name;
  ait_dtype dtype;
  int32_t rank;
  int64_t shape[AIT_MAX_RANK];
  const void *data;
  size_t bytes;
  struct oe_constant *next;
} oe_constant;

typedef struct oe_weight {
  oe_name *name;
  ait_tensor tensor;  /* as the provider gave it */
  const void *packed; /* contiguous elements: the provider's memory or the arena's */
  bool state;         /* default of an input of the same name */
  struct oe_weight *next;
} oe_weight;

typedef struct ox {
  ait_arena arena;
  ait_allocator allocator;
  ait_status status;
  ait_weights provider;
  int32_t opset;
  oe_frame *frame;
  const ait_region_node *node; /* the one being written; NULL between nodes */
  ait_map names;               /* texts in use */
  ait_map constants;           /* by contents */
  oe_constant *first_constant, *last_constant;
  oe_weight *first_weight, *last_weight;
  const char *with; /* of the node's row: what a shared emitter needs to know, mostly an ONNX operator */
  uint32_t depth;   /* bodies inside of bodies */
} ox;

/* ---- errors (emit.c) ---- */
/* unsupported, naming node and operator; the first error stays. */
void oe_fail(ox *x, const char *format, ...) AIT_PRINTF(2, 3);
void oe_set_status(ox *x, ait_status status); /* takes over */
static inline bool oe_failed(const ox *x) { return x->status != AIT_OK; }
void *oe_new(ox *x, size_t count, size_t size); /* zeroed; on failure sets the status and returns NULL */

/* ---- nodes (emit.c) ---- */
oe_t oe_none(void);
oe_t oe_tensor(ox *x, ait_dtype dtype); /* a new name */
void oe_node_new(ox *x, const char *op, const oe_t *in, uint32_t in_count, oe_t *out, uint32_t out_count);
oe_t oe_op(ox *x, const char *op, ait_dtype dtype, const oe_t *in, uint32_t in_count);
/* OE(x, "Add", dtype, a, b) */
#define OE(x, op, dtype, ...) \
  oe_op((x), (op), (dtype), (const oe_t[]){__VA_ARGS__}, (uint32_t)(sizeof((const oe_t[]){__VA_ARGS__}) / sizeof(oe_t)))
oe_t oe_same1(ox *x, const char *op, oe_t a);         /* result has a's dtype */
oe_t oe_same2(ox *x, const char *op, oe_t a, oe_t b); /* both have a's dtype */
oe_t oe_bool2(ox *x, const char *op, oe_t a, oe_t b);
/* Attributes of the node that was made last. */
void oe_int(ox *x, const char *name, int64_t v);
void oe_float(ox *x, const char *name, double v);
void oe_string(ox *x, const char *name, const char *v);
void oe_ints(ox *x, const char *name, const int64_t *v, uint32_t count); /* copied */
void oe_graph(ox *x, const char *name, const oe_frame *body);

/* ---- constants and casts (emit.c) ---- */
oe_t oe_const(ox *x, ait_dtype dtype, int32_t rank, const int64_t *shape, const void *data);
oe_t oe_num(ox *x, ait_dtype dtype, double v); /* rank 0 */
oe_t oe_i64(ox *x, int64_t v);                 /* rank 0 */
oe_t oe_list(ox *x, const int64_t *v, uint32_t count);
oe_t oe_list1(ox *x, int64_t v);              /* [v] */
oe_t oe_cast(ox *x, oe_t a, ait_dtype dtype); /* nothing when it is so */

/* ---- dtypes ----
 * Runtimes lack kernels for some dtypes of most operators: computing in the next wider one of a set and going back gives the same. */
#define OE_BIT(d) (1u << AIT_##d)
#define OE_FLOATS (OE_BIT(F16) | OE_BIT(F32) | OE_BIT(F64))
#define OE_WIDE (OE_FLOATS | OE_BIT(I32) | OE_BIT(I64))
#define OE_INTEGERS (OE_BIT(U8) | OE_BIT(I8) | OE_BIT(U16) | OE_BIT(I16) | OE_BIT(U32) | OE_BIT(I32) | OE_BIT(U64) | OE_BIT(I64))
#define OE_ARITH (OE_FLOATS | OE_INTEGERS)
#define OE_MINMAX (OE_WIDE | OE_BIT(U8) | OE_BIT(I8) | OE_BIT(U32) | OE_BIT(U64))
#define OE_MOVE (OE_WIDE | OE_BIT(U8)) /* Where, Pad, Trilu */
int32_t oe_onnx_type(ait_dtype dtype); /* TensorProto.DataType; 0: there is none */
ait_dtype oe_dtype_in(ait_dtype dtype, uint32_t set);
static inline oe_t oe_widen(ox *x, oe_t a, uint32_t set) { return oe_cast(x, a, oe_dtype_in(a.dtype, set)); }

/* ---- shapes as data (emit.c) ---- */
oe_t oe_reshape(ox *x, oe_t a, oe_t shape);
oe_t oe_reshape_to(ox *x, oe_t a, const int64_t *shape, uint32_t rank); /* constants; 0 keeps a size, -1 is the rest */
oe_t oe_unsqueeze(ox *x, oe_t a, int64_t axis);
oe_t oe_squeeze(ox *x, oe_t a, int64_t axis);
oe_t oe_transpose(ox *x, oe_t a, const int64_t *order, uint32_t rank);
oe_t oe_slice(ox *x, oe_t a, int64_t axis, oe_t start, oe_t end, int64_t step); /* start, end: rank 1 */
oe_t oe_slice_const(ox *x, oe_t a, int64_t axis, int64_t start, int64_t end);
oe_t oe_concat(ox *x, const oe_t *parts, uint32_t count, int64_t axis);
oe_t oe_expand(ox *x, oe_t a, oe_t shape);
oe_t oe_where(ox *x, oe_t condition, oe_t a, oe_t b);
oe_t oe_reduce(ox *x, const char *op, oe_t a, const int64_t *axes, uint32_t count, bool keepdim); /* count 0: all */
oe_t oe_shape_of(ox *x, oe_t a);
oe_t oe_range(ox *x, oe_t count); /* 0..count-1, int64; count: rank 0 */
oe_t oe_isnan(ox *x, oe_t a);     /* none (name NULL) for integers */
oe_t oe_not(ox *x, oe_t a);

/* ---- sizes (sizes.c) ---- */
bool oe_dim_const(const ox *x, ait_dim d, int64_t *out);
bool oe_dim_same(const ox *x, ait_dim a, ait_dim b);
bool oe_dim_positive(const ox *x, ait_dim d); /* surely at least 1 */
oe_t oe_dim(ox *x, ait_dim d);                /* rank 1, one element, int64 */
oe_t oe_dims(ox *x, const ait_dim *dims, uint32_t count);
void oe_bind_sizes(ox *x, oe_t t); /* a value is there: its sizes can be read from it */
void oe_bind_scalar(ox *x, ait_dim d, oe_t t);

/* ---- arguments of the node (args.c) ---- */
const ait_arg *oe_arg(const ox *x, uint32_t k); /* NONE beyond the last */
bool oe_has(const ox *x, uint32_t k);
int64_t oe_arg_int(ox *x, uint32_t k);
int64_t oe_arg_int_or(ox *x, uint32_t k, int64_t missing);
double oe_arg_float(ox *x, uint32_t k);
double oe_arg_float_or(ox *x, uint32_t k, double missing);
bool oe_arg_bool(ox *x, uint32_t k);
const char *oe_arg_string(ox *x, uint32_t k);
uint32_t oe_arg_list(ox *x, uint32_t k, const ait_arg **out);                          /* NONE: 0 elements */
uint32_t oe_arg_ints(ox *x, uint32_t k, int64_t *out);                                 /* at most AIT_MAX_RANK */
void oe_arg_spatial(ox *x, uint32_t k, uint32_t count, int64_t missing, int64_t *out); /* one element stands for all */
bool oe_int_const(const ox *x, const ait_arg *a, int64_t *out);                        /* an integer known now */
oe_t oe_int_tensor(ox *x, const ait_arg *a);                                           /* rank 1, one element, int64 */
oe_t oe_ints_tensor(ox *x, const ait_arg *list, uint32_t count);                       /* rank 1 */
oe_t oe_value(ox *x, uint32_t id);
oe_t oe_operand(ox *x, const ait_arg *a, ait_dtype dtype); /* tensor or number, cast; dtype NONE: as it is */
oe_t oe_in(ox *x, uint32_t k);                             /* a tensor */
oe_t oe_in_as(ox *x, uint32_t k, ait_dtype dtype);         /* tensor or number; none when it is NONE */
ait_dtype oe_value_dtype(const ait_region_value *v);       /* of the tensor that stands for it */
ait_dtype oe_result_dtype(const ox *x, uint32_t k);
const ait_region_value *oe_result_value(const ox *x, uint32_t k);
bool oe_wants(const ox *x, uint32_t k);             /* the result is used by name */
void oe_set(ox *x, uint32_t k, oe_t t);             /* the node's result; cast to its dtype */
int64_t oe_axis(ox *x, int64_t axis, int32_t rank); /* counted from 0 */
/* Operands' common dtype, torch's promotion with scalars. */
ait_dtype oe_common_dtype(ox *x, uint32_t first, uint32_t last);

/* ---- bodies (model.c) ---- */
/* A nested region as a body. */
/* Order of calls: enter, bind each input of the nested region, nodes, output, leave. On failure the frame is there but empty. */
oe_frame *oe_body_enter(ox *x, const ait_arg *graph);
void oe_body_bind(ox *x, uint32_t input, oe_t t);
void oe_body_nodes(ox *x);
oe_t oe_body_output(ox *x, uint32_t k); /* a tensor of this frame's own: copied when it is not */
/* The nested region in place of a call: its nodes join the present frame's. enter, bind, nodes, output_of, leave. */
void oe_inline_enter(ox *x, const ait_arg *graph);
oe_t oe_inline_output(ox *x, uint32_t k);
void oe_inline_leave(ox *x);
void oe_body_leave(ox *x, const oe_t *inputs, uint32_t input_count, const oe_t *outputs, uint32_t output_count);

/* ---- rows.c ---- */
typedef struct oe_row {
  const char *op;
  void (*run)(ox *x);
  const char *with;
} oe_row;
const oe_row *oe_row_find(const char *op);

/* ---- model.c ---- */
void oe_claim(ox *x, oe_name *name, const char *text); /* gives it that text, or one like it that is free */

/* ---- proto.c ---- */
ait_status oe_write(ox *x, const ait_onnx_options *options, ait_blob *out_blob, const char *path) AIT_MUST_USE;

#endif
