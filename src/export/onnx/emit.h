/* Inside of the ONNX exporter: nodes, constants and sizes, as the rows need them.
 *
 * An emitter writes what it means as nested calls; the first error stays in ox.status, and everything after it is harmless (tensors without
 * a name). Memory is one arena. */
#ifndef AIT_SRC_EXPORT_ONNX_EMIT_H
#define AIT_SRC_EXPORT_ONNX_EMIT_H

#include "export/export.h"
#include <math.h>

typedef struct ox_name {
  const char *text; /* NULL until names are given out */
  const char *hint; /* name of the graph's value, or NULL */
  bool used;        /* a node reads it */
} ox_name;

/* One ONNX tensor. Scalars of the graph (sizes, flags) are tensors of rank 0. */
typedef struct ox_t {
  ox_name *name; /* NULL: an optional operand that is left out */
  ait_dtype dtype;
  int32_t rank;         /* -1: not tracked */
  const ait_dim *shape; /* NULL: not tracked */
} ox_t;

typedef enum ox_attr_kind { OX_INT, OX_FLOAT, OX_STRING, OX_INTS, OX_GRAPH } ox_attr_kind;
typedef struct ox_attr {
  const char *name;
  ox_attr_kind kind;
  int64_t i;
  float f;
  const char *s;
  const int64_t *ints;
  uint32_t count;
  const struct ox_frame *graph;
  struct ox_attr *next;
} ox_attr;

typedef struct ox_node {
  const char *op, *label;
  ox_name **in, **out;
  uint32_t in_count, out_count;
  ox_attr *attrs, *last_attr;
  struct ox_node *next;
} ox_node;

/* Where a size can be read: dim `axis` of a tensor, or the (scalar) tensor itself when axis is -1. */
typedef struct ox_source {
  ox_t tensor;
  int32_t axis;
} ox_source;

/* The graph that is being written: the model's, or a body inside of it, which sees what its parent has. */
typedef struct ox_frame {
  struct ox_frame *parent;
  struct ox_frame *into; /* where its nodes go: itself, or the frame that a graph is written into in place of a call */
  const ait_region *region;
  ox_t *values; /* by value id */
  ox_t **lists; /* by value id: elements of a tensor list, or NULL */
  uint32_t *list_counts;
  ox_source *sources; /* by dim id; tensor.name NULL: none */
  ox_t *dims;         /* by dim id: computed ones, rank 1 and one element */
  ox_node *first, *last;
  ox_t *inputs, *outputs;
  uint32_t input_count, output_count;
  const char *name;
} ox_frame;

typedef struct ox_constant { /* an initializer of few elements */
  ox_name *name;
  ait_dtype dtype;
  int32_t rank;
  int64_t shape[AIT_MAX_RANK];
  const void *data;
  size_t bytes;
  struct ox_constant *next;
} ox_constant;

typedef struct ox_weight {
  ox_name *name;
  ait_tensor tensor;  /* as the provider gave it */
  const void *packed; /* contiguous elements: the provider's memory or the arena's */
  bool state;         /* default of an input of the same name */
  struct ox_weight *next;
} ox_weight;

typedef struct ox {
  ait_arena arena;
  ait_allocator allocator;
  ait_status status;
  ait_weights provider;
  int32_t opset;
  ox_frame *frame;
  const ait_region_node *node; /* the one being written; NULL between nodes */
  ait_map names;               /* texts in use */
  ait_map constants;           /* by contents */
  ox_constant *first_constant, *last_constant;
  ox_weight *first_weight, *last_weight;
  const char *with; /* of the node's row: what a shared emitter needs to know, mostly an ONNX operator */
  uint32_t depth;   /* bodies inside of bodies */
} ox;

/* ---- errors (emit.c) ---- */
/* unsupported, naming node and operator; the first error stays. */
void ox_fail(ox *x, const char *format, ...) AIT_PRINTF(2, 3);
void ox_set_status(ox *x, ait_status status); /* takes over */
static inline bool ox_failed(const ox *x) { return x->status != AIT_OK; }
void *ox_new(ox *x, size_t count, size_t size); /* zeroed; on failure sets the status and returns NULL */

/* ---- nodes (emit.c) ---- */
ox_t ox_none(void);
ox_t ox_tensor(ox *x, ait_dtype dtype); /* a new name */
void ox_node_new(ox *x, const char *op, const ox_t *in, uint32_t in_count, ox_t *out, uint32_t out_count);
ox_t ox_op(ox *x, const char *op, ait_dtype dtype, const ox_t *in, uint32_t in_count);
/* OX(x, "Add", dtype, a, b) */
#define OX(x, op, dtype, ...) \
  ox_op((x), (op), (dtype), (const ox_t[]){__VA_ARGS__}, (uint32_t)(sizeof((const ox_t[]){__VA_ARGS__}) / sizeof(ox_t)))
ox_t ox_same1(ox *x, const char *op, ox_t a);         /* result has a's dtype */
ox_t ox_same2(ox *x, const char *op, ox_t a, ox_t b); /* both have a's dtype */
ox_t ox_bool2(ox *x, const char *op, ox_t a, ox_t b);
/* Attributes of the node that was made last. */
void ox_int(ox *x, const char *name, int64_t v);
void ox_float(ox *x, const char *name, double v);
void ox_string(ox *x, const char *name, const char *v);
void ox_ints(ox *x, const char *name, const int64_t *v, uint32_t count); /* copied */
void ox_graph(ox *x, const char *name, const ox_frame *body);

/* ---- constants and casts (emit.c) ---- */
ox_t ox_const(ox *x, ait_dtype dtype, int32_t rank, const int64_t *shape, const void *data);
ox_t ox_num(ox *x, ait_dtype dtype, double v); /* rank 0 */
ox_t ox_i64(ox *x, int64_t v);                 /* rank 0 */
ox_t ox_list(ox *x, const int64_t *v, uint32_t count);
ox_t ox_list1(ox *x, int64_t v);              /* [v] */
ox_t ox_cast(ox *x, ox_t a, ait_dtype dtype); /* nothing when it is so */

/* ---- dtypes ----
 * Runtimes lack kernels for some dtypes of most operators: computing in the next wider one of a set and going back gives the same. */
#define OX_BIT(d) (1u << AIT_##d)
#define OX_FLOATS (OX_BIT(F16) | OX_BIT(F32) | OX_BIT(F64))
#define OX_WIDE (OX_FLOATS | OX_BIT(I32) | OX_BIT(I64))
#define OX_INTEGERS (OX_BIT(U8) | OX_BIT(I8) | OX_BIT(U16) | OX_BIT(I16) | OX_BIT(U32) | OX_BIT(I32) | OX_BIT(U64) | OX_BIT(I64))
#define OX_ARITH (OX_FLOATS | OX_INTEGERS)
#define OX_MINMAX (OX_WIDE | OX_BIT(U8) | OX_BIT(I8) | OX_BIT(U32) | OX_BIT(U64))
#define OX_MOVE (OX_WIDE | OX_BIT(U8)) /* Where, Pad, Trilu */
int32_t ox_onnx_type(ait_dtype dtype); /* TensorProto.DataType; 0: there is none */
ait_dtype ox_dtype_in(ait_dtype dtype, uint32_t set);
static inline ox_t ox_widen(ox *x, ox_t a, uint32_t set) { return ox_cast(x, a, ox_dtype_in(a.dtype, set)); }

/* ---- shapes as data (emit.c) ---- */
ox_t ox_reshape(ox *x, ox_t a, ox_t shape);
ox_t ox_reshape_to(ox *x, ox_t a, const int64_t *shape, uint32_t rank); /* constants; 0 keeps a size, -1 is the rest */
ox_t ox_unsqueeze(ox *x, ox_t a, int64_t axis);
ox_t ox_squeeze(ox *x, ox_t a, int64_t axis);
ox_t ox_transpose(ox *x, ox_t a, const int64_t *order, uint32_t rank);
ox_t ox_slice(ox *x, ox_t a, int64_t axis, ox_t start, ox_t end, int64_t step); /* start, end: rank 1 */
ox_t ox_slice_const(ox *x, ox_t a, int64_t axis, int64_t start, int64_t end);
ox_t ox_concat(ox *x, const ox_t *parts, uint32_t count, int64_t axis);
ox_t ox_expand(ox *x, ox_t a, ox_t shape);
ox_t ox_where(ox *x, ox_t condition, ox_t a, ox_t b);
ox_t ox_reduce(ox *x, const char *op, ox_t a, const int64_t *axes, uint32_t count, bool keepdim); /* count 0: all */
ox_t ox_shape_of(ox *x, ox_t a);
ox_t ox_range(ox *x, ox_t count); /* 0..count-1, int64; count: rank 0 */
ox_t ox_isnan(ox *x, ox_t a);     /* none (name NULL) for integers */
ox_t ox_not(ox *x, ox_t a);

/* ---- sizes (sizes.c) ---- */
bool ox_dim_const(const ox *x, ait_dim d, int64_t *out);
bool ox_dim_same(const ox *x, ait_dim a, ait_dim b);
bool ox_dim_positive(const ox *x, ait_dim d); /* surely at least 1 */
ox_t ox_dim(ox *x, ait_dim d);                /* rank 1, one element, int64 */
ox_t ox_dims(ox *x, const ait_dim *dims, uint32_t count);
void ox_bind_sizes(ox *x, ox_t t); /* a value is there: its sizes can be read from it */
void ox_bind_scalar(ox *x, ait_dim d, ox_t t);

/* ---- arguments of the node (args.c) ---- */
const ait_arg *ox_arg(const ox *x, uint32_t k); /* NONE beyond the last */
bool ox_has(const ox *x, uint32_t k);
int64_t ox_arg_int(ox *x, uint32_t k);
int64_t ox_arg_int_or(ox *x, uint32_t k, int64_t missing);
double ox_arg_float(ox *x, uint32_t k);
double ox_arg_float_or(ox *x, uint32_t k, double missing);
bool ox_arg_bool(ox *x, uint32_t k);
const char *ox_arg_string(ox *x, uint32_t k);
uint32_t ox_arg_list(ox *x, uint32_t k, const ait_arg **out);                          /* NONE: 0 elements */
uint32_t ox_arg_ints(ox *x, uint32_t k, int64_t *out);                                 /* at most AIT_MAX_RANK */
void ox_arg_spatial(ox *x, uint32_t k, uint32_t count, int64_t missing, int64_t *out); /* one element stands for all */
bool ox_int_const(const ox *x, const ait_arg *a, int64_t *out);                        /* an integer known now */
ox_t ox_int_tensor(ox *x, const ait_arg *a);                                           /* rank 1, one element, int64 */
ox_t ox_ints_tensor(ox *x, const ait_arg *list, uint32_t count);                       /* rank 1 */
ox_t ox_value(ox *x, uint32_t id);
ox_t ox_operand(ox *x, const ait_arg *a, ait_dtype dtype); /* tensor or number, cast; dtype NONE: as it is */
ox_t ox_in(ox *x, uint32_t k);                             /* a tensor */
ox_t ox_in_as(ox *x, uint32_t k, ait_dtype dtype);         /* tensor or number; none when it is NONE */
ait_dtype ox_value_dtype(const ait_region_value *v);       /* of the tensor that stands for it */
ait_dtype ox_result_dtype(const ox *x, uint32_t k);
const ait_region_value *ox_result_value(const ox *x, uint32_t k);
bool ox_wants(const ox *x, uint32_t k);             /* the result is used by name */
void ox_set(ox *x, uint32_t k, ox_t t);             /* the node's result; cast to its dtype */
int64_t ox_axis(ox *x, int64_t axis, int32_t rank); /* counted from 0 */
/* Operands' common dtype, torch's promotion with scalars. */
ait_dtype ox_common_dtype(ox *x, uint32_t first, uint32_t last);

/* ---- bodies (model.c) ---- */
/* A nested region as a body. */
/* Order of calls: enter, bind each input of the nested region, nodes, output, leave. On failure the frame is there but empty. */
ox_frame *ox_body_enter(ox *x, const ait_arg *graph);
void ox_body_bind(ox *x, uint32_t input, ox_t t);
void ox_body_nodes(ox *x);
ox_t ox_body_output(ox *x, uint32_t k); /* a tensor of this frame's own: copied when it is not */
/* The nested region in place of a call: its nodes join the present frame's. enter, bind, nodes, output_of, leave. */
void ox_inline_enter(ox *x, const ait_arg *graph);
ox_t ox_inline_output(ox *x, uint32_t k);
void ox_inline_leave(ox *x);
void ox_body_leave(ox *x, const ox_t *inputs, uint32_t input_count, const ox_t *outputs, uint32_t output_count);

/* ---- rows.c ---- */
typedef struct ox_row {
  const char *op;
  void (*run)(ox *x);
  const char *with;
} ox_row;
const ox_row *ox_row_find(const char *op);

/* ---- model.c ---- */
void ox_claim(ox *x, ox_name *name, const char *text); /* gives it that text, or one like it that is free */

/* ---- proto.c ---- */
ait_status ox_write(ox *x, const ait_onnx_options *options, ait_blob *out_blob, const char *path) AIT_MUST_USE;

#endif
