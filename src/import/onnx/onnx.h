/* Inside of the ONNX importer: what its files share. An import is one call in one thread; everything here lives as long as it.
 *
 * Each node of the file becomes nodes of ait by its row in ops.inc: a builder, which gets the node as an ox_call and adds core, ATen or
 * onnx.* operators through the emitters below. */
#ifndef AIT_SRC_IMPORT_ONNX_H
#define AIT_SRC_IMPORT_ONNX_H

#include "import/import.h"
#include "import/onnx/slim.h"
#include <onnx-ml.pb-c.h>

enum {
  OX_LATEST = 1000000,     /* in ops.inc: no version ends the operator's meaning */
  OX_GRAPH_DEPTH = 16,     /* graphs in graphs, and calls of functions in functions */
  OX_NODE_LIMIT = 1 << 20, /* nodes after inlining of functions */
  OX_KNOWN_LIMIT = 4096,   /* elements of a tensor whose contents are followed */
  OX_MAX_OUTPUTS = 64,
};

/* What is known at import of a value's contents: sizes that a program computes with. */
typedef struct ox_known {
  bool has_tensor;
  ait_tensor tensor; /* constant; borrowed from the weight store or the import's arena */
  bool has_dims;     /* integers as expressions */
  int32_t rank;      /* 0 or 1 */
  uint32_t count;
  const ait_dim *dims;
  int32_t narrow;       /* TensorProto.DataType of elements narrower than a byte, which bytes stand for; or 0 */
  int32_t element_rank; /* of a sequence: the rank of its tensors + 1; 0: not known */
} ox_known;

typedef struct ox_opset {
  const char *domain;
  int64_t version;
} ox_opset;

typedef struct ox_import {
  ait_arena arena; /* everything but the graph and the weights; limited */
  const ait_import_options *options;
  const char *path;
  ait_file_map *mapping; /* of the file; NULL: in the caller's memory, and there is no folder for external data */
  const uint8_t *data;
  size_t size;
  ox_slim slim;
  Onnx__ModelProto *model;
  ait_graph *graph; /* the root */
  ait_weight_store *weights;
  ait_map externals;    /* path to ait_file_map */
  ait_map weight_names; /* taken */
  ait_map functions;    /* "domain:name:overload" to Onnx__FunctionProto */
  ait_map dim_names;    /* dim_param to ait_dim */
  ait_missing *missing; /* unknown operators are collected here; NULL: they are errors */
  uint32_t node_count, unnamed;
} ox_import;

/* Per graph: what is known of its values. */
typedef struct ox_frame {
  ait_graph *graph;
  struct ox_scope *captures_for; /* of a nested graph: the scope that surrounds it */
  const ox_known **known;        /* by value id */
  size_t known_capacity;
  uint32_t *outer_values; /* captured: values of the surrounding graph, in the order of the inputs they became */
  size_t capture_count, capture_capacity;
  ait_map captured; /* decimal id of the outer value to inner id + 1 */
} ox_frame;

/* Names of one graph or function body. */
typedef struct ox_scope {
  ox_import *in;
  ox_frame *frame;
  struct ox_scope *outer; /* graphs see the names around them; function bodies do not */
  const ox_opset *opsets;
  size_t opset_count;
  ait_map values;                      /* name to value id + 1 */
  ait_map initializers;                /* name to Onnx__TensorProto, not yet asked for */
  const Onnx__NodeProto *call;         /* of a function body: the node that called it; attributes refer to its attributes */
  const Onnx__FunctionProto *function; /* and the function, for its defaults */
  const struct ox_scope *call_scope;   /* in which `call` stands */
  const char *prefix;                  /* of node names */
  uint32_t module;                     /* of nodes that name none */
  int depth;
} ox_scope;

/* A node being imported. */
typedef struct ox_call {
  ox_scope *s;
  ox_import *in;
  ait_graph *g;
  const Onnx__NodeProto *node;
  int64_t version;     /* of the operator's domain */
  const char *variant; /* from the row: a builder serves several operators */
  const char *name;    /* for the nodes that are added */
  uint32_t module;
  uint32_t input_count, output_count;
  uint32_t *inputs;                 /* value ids; AIT_NO_INDEX: not given */
  uint32_t outputs[OX_MAX_OUTPUTS]; /* filled by the builder; AIT_NO_INDEX: not produced */
} ox_call;

typedef ait_status (*ox_builder)(ox_call *c);

#define OX_OP(domain, op, since, until, builder, variant) ait_status ox_build_##builder(ox_call *c) AIT_MUST_USE;
#include "import/onnx/ops.inc"
#undef OX_OP

/* ---- nodes.c ---------------------------------------------------------------------------------------------------------------------*/
/* "node 'x' (Conv): …" is put before by the caller. */
ait_status ox_fail(const ox_call *c, ait_code code, const char *format, ...) AIT_PRINTF(3, 4) AIT_MUST_USE;
/* custom.c: a node of an operator that the application registered under "domain::Op". */
ait_status ox_custom_operator(ox_call *c, const char *domain, bool *out_found) AIT_MUST_USE;
ait_status ox_add_nodes(ox_scope *s, Onnx__NodeProto *const *nodes, size_t count) AIT_MUST_USE;
int64_t ox_opset_version(const ox_scope *s, const char *domain); /* 0: not imported */

/* ---- scope.c ---------------------------------------------------------------------------------------------------------------------*/
void ox_scope_init(ox_scope *s, ox_import *in, ox_frame *frame, ox_scope *outer);
void ox_scope_deinit(ox_scope *s);
void ox_frame_init(ox_frame *f, ait_graph *g, ox_import *in);
void ox_frame_deinit(ox_frame *f);
/* Errors: invalid-model when the name is defined in this scope already. */
ait_status ox_define(ox_scope *s, const char *name, uint32_t value) AIT_MUST_USE;
/* A name as a value of the scope's graph: initializers become weights, names of surrounding graphs are captured. *out AIT_NO_INDEX:
 * unknown. */
ait_status ox_find(ox_scope *s, const char *name, uint32_t *out) AIT_MUST_USE;
ait_status ox_set_known(ox_scope *s, uint32_t value, const ox_known *known) AIT_MUST_USE; /* copied; tensors' data is not */
const ox_known *ox_get_known(const ox_scope *s, uint32_t value);                          /* or NULL */
/* A value of the surrounding graph as an input of this one, once. */
ait_status ox_capture(ox_scope *s, uint32_t outer_value, uint32_t *out) AIT_MUST_USE;
/* A function's input that its caller did not give. */
bool ox_is_absent(const ox_scope *s, const char *name);
/* A value of the root graph as one of the scope's graph. */
ait_status ox_bring_down(ox_scope *s, uint32_t root_value, uint32_t *out) AIT_MUST_USE;

/* ---- tensor.c --------------------------------------------------------------------------------------------------------------------*/
ait_dtype ox_dtype(int32_t onnx); /* AIT_DTYPE_NONE: none of ait's. 4-bit types are int8 and uint8 */
const char *ox_dtype_text(int32_t onnx);
/* Contents as a tensor that lives as long as the import, or longer. */
ait_status ox_tensor(ox_import *in, const Onnx__TensorProto *t, ait_weight *out) AIT_MUST_USE;
/* The tensor as a weight and an input of the root graph, its contents known. */
ait_status ox_add_weight(ox_scope *root, const char *name, const Onnx__TensorProto *t, ait_input_kind kind, uint32_t *out) AIT_MUST_USE;
ait_status ox_add_sparse(ox_scope *root, const char *name, const Onnx__SparseTensorProto *t, uint32_t *out) AIT_MUST_USE;
/* Numbers made at import as a constant of the root graph; data is copied. */
ait_status ox_add_constant(ox_call *c, ait_dtype dtype, int32_t rank, const int64_t *shape, const void *data, uint32_t *out) AIT_MUST_USE;

/* ---- types.c ---------------------------------------------------------------------------------------------------------------------*/
/* A declared type; what it does not say is unknown (symbols == true: a new symbol for each unnamed size). Errors: unsupported,
 * invalid-model. */
ait_status ox_type(ox_import *in, const char *name, const Onnx__TypeProto *type, bool symbols, ait_value_info *out) AIT_MUST_USE;

/* ---- file.c ----------------------------------------------------------------------------------------------------------------------*/
/* Initializers of a graph become names of its scope. */
ait_status ox_add_initializers(ox_scope *s, const Onnx__GraphProto *graph) AIT_MUST_USE;
ait_status ox_read_opsets(ox_import *in, Onnx__OperatorSetIdProto *const *imports, size_t count, const ox_opset **out) AIT_MUST_USE;

/* ---- control.c -------------------------------------------------------------------------------------------------------------------*/
ait_status ox_call_function(ox_call *c, const Onnx__FunctionProto *f) AIT_MUST_USE;

/* A graph attribute's nodes in the place of the node; its inputs are the given values. */
ait_status ox_inline_graph(ox_call *c, const Onnx__GraphProto *graph, const uint32_t *inputs, uint32_t input_count, uint32_t *outputs,
                           uint32_t output_count) AIT_MUST_USE;

/* ---- op_nn.c ---------------------------------------------------------------------------------------------------------------------*/
/* A convolution with the node's strides, pads, dilations and groups. */
ait_status ox_conv(ox_call *c, uint32_t x, uint32_t weight, uint32_t bias, uint32_t *out) AIT_MUST_USE;

/* ---- attributes (call.c); a missing attribute gives `otherwise` --------------------------------------------------------------------*/
ait_status ox_attribute(const ox_call *c, const char *name, int type, const Onnx__AttributeProto **out) AIT_MUST_USE;
ait_status ox_int(const ox_call *c, const char *name, int64_t otherwise, int64_t *out) AIT_MUST_USE;
ait_status ox_flag(const ox_call *c, const char *name, bool otherwise, bool *out) AIT_MUST_USE;
ait_status ox_float(const ox_call *c, const char *name, double otherwise, double *out) AIT_MUST_USE;
ait_status ox_string(const ox_call *c, const char *name, const char *otherwise, const char **out) AIT_MUST_USE;
/* *out NULL when not given. */
ait_status ox_ints(const ox_call *c, const char *name, const int64_t **out, size_t *out_count) AIT_MUST_USE;
ait_status ox_floats(const ox_call *c, const char *name, const float **out, size_t *out_count) AIT_MUST_USE;
ait_status ox_strings(const ox_call *c, const char *name, const char ***out, size_t *out_count) AIT_MUST_USE;
ait_status ox_graph(const ox_call *c, const char *name, const Onnx__GraphProto **out) AIT_MUST_USE;
/* Exactly n ints, or n times `otherwise` when not given. */
ait_status ox_n_ints(const ox_call *c, const char *name, int32_t n, int64_t otherwise, int64_t *out) AIT_MUST_USE;

/* ---- inputs (call.c) ---------------------------------------------------------------------------------------------------------------*/
static inline bool ox_has(const ox_call *c, uint32_t k) { return k < c->input_count && c->inputs[k] != AIT_NO_INDEX; }
static inline bool ox_wants(const ox_call *c, uint32_t k) { return k < c->node->n_output && c->node->output[k][0]; }
static inline const ait_value_info *ox_info(const ox_call *c, uint32_t value) { return &c->g->values[value]; }
static inline ait_dtype ox_dtype_of(const ox_call *c, uint32_t value) { return c->g->values[value].dtype; }
ait_status ox_need(const ox_call *c, uint32_t k, uint32_t *out) AIT_MUST_USE;                /* input k, a tensor */
ait_status ox_need_ranked(const ox_call *c, uint32_t k, uint32_t *out) AIT_MUST_USE;         /* of known rank */
ait_status ox_axis(const ox_call *c, int64_t axis, int32_t rank, int32_t *out) AIT_MUST_USE; /* wraps; error outside */
/* Integers in a value, where import follows them: constants, expressions of the inputs' sizes, and sizes that only data tell. */
bool ox_contents(ox_call *c, uint32_t value, const ait_dim **out, uint32_t *out_count);
/* The same, without the last kind: these may be arguments of operators. */
bool ox_known_dims(ox_call *c, uint32_t value, const ait_dim **out, uint32_t *out_count);
/* All of them constant; at most AIT_MAX_RANK when out_count is for axes. Owned by the import's arena. */
bool ox_known_ints(ox_call *c, uint32_t value, const int64_t **out, uint32_t *out_count);
bool ox_known_floats(ox_call *c, uint32_t value, const double **out, uint32_t *out_count);
bool ox_known_number(ox_call *c, uint32_t value, double *out); /* one element */
/* An attribute of ints in old versions, an input in new ones. *known false: it is input k and not known at import. *given false: neither.
 */
ait_status ox_ints_or_input(ox_call *c, const char *name, uint32_t k, const int64_t **out, uint32_t *out_count, bool *given,
                            bool *known) AIT_MUST_USE;
bool ox_const_dim(const ox_call *c, uint32_t value, int32_t axis, int64_t *out);
/* A size of a value as an argument: a number, an expression, or taken when the graph runs. */
ait_status ox_size_arg(ox_call *c, uint32_t x, int32_t axis, ait_arg *out) AIT_MUST_USE;
int32_t ox_narrow_type(const ox_call *c, uint32_t value);                             /* see ox_known; 0: a whole number of bytes */
ait_status ox_set_narrow_type(ox_call *c, uint32_t value, int32_t type) AIT_MUST_USE; /* does nothing for types of whole bytes */

/* ---- emitting (call.c) ---------------------------------------------------------------------------------------------------------------*/
static inline ait_arg V(uint32_t v) { return v == AIT_NO_INDEX ? ait_arg_none() : ait_arg_value(v); }
static inline ait_arg I(int64_t i) { return ait_arg_int(i); }
static inline ait_arg F(double f) { return ait_arg_float(f); }
static inline ait_arg B(bool b) { return ait_arg_bool(b); }
static inline ait_arg T(ait_dtype d) { return ait_arg_dtype(d); }
static inline ait_arg S(const char *s) { return ait_arg_string(s); }
#define NONE ait_arg_none()
#define OX_ARGS(...) (ait_arg[]){__VA_ARGS__}, (uint32_t)(sizeof((ait_arg[]){__VA_ARGS__}) / sizeof(ait_arg))
/* A core operator with its inferred results. */
ait_status ox_emit_args(ox_call *c, const char *op, const ait_arg *args, uint32_t count, uint32_t *out, uint32_t out_count) AIT_MUST_USE;
#define OX(c, op, out, ...) ox_emit_args(c, op, OX_ARGS(__VA_ARGS__), out, 1)
/* Another operator: its results are described by the caller. */
ait_status ox_raw_args(ox_call *c, const char *op, const ait_arg *args, uint32_t count, const ait_value_info *infos, uint32_t *out,
                       uint32_t out_count) AIT_MUST_USE;
#define OX_RAW(c, op, info, out, ...) ox_raw_args(c, op, OX_ARGS(__VA_ARGS__), info, out, 1)
ait_arg ox_list_ints(ox_call *c, const int64_t *v, size_t n); /* in the arena; on failure a none, which is refused later */
ait_arg ox_list_dims(ox_call *c, const ait_dim *v, size_t n);
ait_arg ox_list_floats(ox_call *c, const double *v, size_t n);
ait_arg ox_list_values(ox_call *c, const uint32_t *v, size_t n);
ait_value_info ox_like(const ox_call *c, uint32_t value);                          /* type, dtype and shape of a value */
ait_value_info ox_tensor_info(ait_dtype dtype, int32_t rank, const ait_dim *dims); /* dims are copied when used */
ait_status ox_unknown_info(ox_call *c, ait_dtype dtype, int32_t rank, ait_value_info *out) AIT_MUST_USE;
ait_status ox_dims(ox_call *c, int32_t n, ait_dim **out) AIT_MUST_USE; /* arena array */
ait_status ox_dim_ints(ox_call *c, const int64_t *v, int32_t n, ait_dim *out) AIT_MUST_USE;
ait_dim ox_const(ox_call *c, int64_t v); /* 0 (not a dim) when out of memory */
/* Arithmetic on sizes that becomes unknown when it grows too large. */
ait_status ox_dim(ox_call *c, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) AIT_MUST_USE;
ait_status ox_dim_int(ox_call *c, ait_dim_op op, ait_dim a, int64_t b, ait_dim *out) AIT_MUST_USE;

/* Common steps. `out` may be the same variable as an operand. */
ait_status ox_cast(ox_call *c, uint32_t x, ait_dtype dtype, uint32_t *out) AIT_MUST_USE;
ait_status ox_binary(ox_call *c, const char *op, uint32_t a, uint32_t b, uint32_t *out) AIT_MUST_USE; /* result in a's dtype */
ait_status ox_with_float(ox_call *c, const char *op, uint32_t x, double v, uint32_t *out) AIT_MUST_USE;
ait_status ox_unary(ox_call *c, const char *op, uint32_t x, uint32_t *out) AIT_MUST_USE;
ait_status ox_reshape(ox_call *c, uint32_t x, const ait_dim *dims, int32_t rank, uint32_t *out) AIT_MUST_USE;
ait_status ox_permute(ox_call *c, uint32_t x, const int64_t *perm, int32_t rank, uint32_t *out) AIT_MUST_USE;
ait_status ox_transpose_last(ox_call *c, uint32_t x, uint32_t *out) AIT_MUST_USE;
ait_status ox_unsqueeze(ox_call *c, uint32_t x, int32_t axis, uint32_t *out) AIT_MUST_USE; /* axis of the result */
ait_status ox_slice(ox_call *c, uint32_t x, int32_t axis, ait_arg start, ait_arg end, uint32_t *out) AIT_MUST_USE;
/* A reduction in the operand's dtype: sum, mean, amax, amin, prod. */
ait_status ox_reduce(ox_call *c, const char *op, uint32_t x, const int64_t *axes, uint32_t count, bool keep, uint32_t *out) AIT_MUST_USE;
ait_status ox_identity(ox_call *c, uint32_t x); /* output 0 is x itself */

#endif
