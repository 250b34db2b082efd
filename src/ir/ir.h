/* Front door of the ir room: the one graph that everything above the neck works on.
 *
 * SSA: a value is defined once, by a graph input or a node. Values are named by small ids that stay valid for the graph's life; nodes
 * form a doubly linked list in execution order. All memory of a root graph and of the graphs nested in it is one arena. A graph belongs
 * to one thread at a time.
 *
 * Two dialects. raw: what the file says, ATen names, tensors are strided views that may share storage, in-place nodes allowed.
 * core: pure values; views are values, mutation has become state outputs. Which operators belong to which: ops.inc. */
#ifndef AIT_SRC_IR_H
#define AIT_SRC_IR_H

#include "base/base.h"
#include "tensor/tensor.h"
#include <ait/backend.h>

/* ---- operators (ops.c, ops.inc) --------------------------------------------------------------------------------------------------*/
typedef enum ait_dialect { AIT_DIALECT_RAW = 1, AIT_DIALECT_CORE = 2, AIT_DIALECT_BOTH = 3 } ait_dialect;

/* Traits of an operator (ops.inc names them without the prefix). */
enum {
  AIT_OP_PURE = 0,
  AIT_OP_VIEW = 1u << 0,        /* result 0 (or each element of the list) aliases argument 0 */
  AIT_OP_MAYBE_VIEW = 1u << 1,  /* may alias argument 0: reshape, contiguous, to */
  AIT_OP_RANDOM = 1u << 2,      /* draws random numbers: not folded, not merged */
  AIT_OP_EFFECT = 1u << 3,      /* must run though nothing uses it: assertions */
  AIT_OP_MUTATES = 1u << 4,     /* writes into arguments that its schema marks (a!) */
  AIT_OP_POINTWISE = 1u << 5,   /* element i of the result depends on element i of the (broadcast) operands only */
  AIT_OP_COMMUTATIVE = 1u << 6, /* arguments 0 and 1 may be exchanged */
  AIT_OP_HIGHER = 1u << 7,      /* takes nested graphs */
  AIT_OP_SYMBOLIC = 1u << 8,    /* ints, floats, bools in and out: arithmetic on sizes */
  AIT_OP_DYNAMIC = 1u << 9,     /* the result's shape depends on data */
  AIT_OP_UNINIT = 1u << 10,     /* contents of the result are undefined: empty */
  AIT_OP_MADE = 1u << 11,       /* made by passes weights-* and ait deploy: in no model file, and not exported */
};

typedef enum ait_param_type {
  AIT_PARAM_TENSOR = 1,
  AIT_PARAM_INT, /* int, SymInt */
  AIT_PARAM_FLOAT,
  AIT_PARAM_BOOL,
  AIT_PARAM_SCALAR, /* int, float, bool, complex, or a symbolic one */
  AIT_PARAM_STRING,
  AIT_PARAM_DTYPE,
  AIT_PARAM_LAYOUT,
  AIT_PARAM_MEMORY_FORMAT,
  AIT_PARAM_DEVICE,
  AIT_PARAM_GENERATOR,
  AIT_PARAM_GRAPH,
  AIT_PARAM_ANY, /* tensor or scalar ("Any"): second operand of core's binary operators */
} ait_param_type;

typedef struct ait_param {
  const char *name;
  ait_param_type type;
  bool is_list, is_optional, element_optional, keyword_only, written /* (a!) */, aliased /* (a) */;
  int32_t list_length; /* int[2]: a single int is widened to that many; 0: any */
  bool has_default;
  ait_arg default_value;
} ait_param;

typedef struct ait_op {
  uint32_t id; /* row in ops.inc; not stable over versions: files hold names */
  const char *name, *schema;
  ait_dialect dialects;
  uint32_t traits;
  uint32_t param_count, result_count;
  const ait_param *params;
  ait_type result_types[4]; /* declared; beyond four all are tensors. NONE: a Scalar, that is int, float or bool */
  bool variadic;            /* higher-order and custom operators: any arguments, any results */
} ait_op;

size_t ait_op_count(void);
const ait_op *ait_op_at(size_t id);
/* By exact name; NULL when unknown. */
const ait_op *ait_op_find(const char *name);
/* "aten.add_.Tensor" -> add.Tensor with *out_inplace = true, when no row has the in-place name itself. NULL when unknown. */
const ait_op *ait_op_find_inplace(const char *name, bool *out_inplace);
/* The schema of an operator that the application registered, by the name its nodes carry; *out NULL when there is none. A node of it is
 * still of the row "custom". custom_schema.c. Errors: invalid-argument (its schema). */
ait_status ait_op_custom(const char *name, const ait_op **out) AIT_MUST_USE;
/* Index of the parameter, or -1. */
int32_t ait_op_param(const ait_op *op, const char *name);
bool ait_op_runs(const ait_op *op); /* has a function in the reference interpreter */
/* All operators as a Markdown document: docs/operators.md. */
void ait_ops_markdown(ait_text *out);

/* ---- graph -----------------------------------------------------------------------------------------------------------------------*/
typedef struct ait_graph ait_graph;
typedef struct ait_node ait_node;

typedef struct ait_value_info {
  const char *name; /* unique in its graph */
  ait_type type;
  ait_dtype dtype;
  int32_t rank;         /* -1: unknown */
  const ait_dim *shape; /* rank dims */
  uint32_t list_count;  /* tensor lists: number of elements when known; their metadata in `elements` */
  const struct ait_value_info *elements;
  ait_dim scalar; /* int values: their expression when known, else AIT_NO_INDEX (in what is given to the graph, 0 means that, too) */
  ait_node *def;  /* NULL: a graph input, or removed */
  uint32_t def_index;
} ait_value_info;

struct ait_node {
  const ait_op *op;
  const char *op_name; /* == op->name, or the custom operator's name when op is the "custom" row */
  uint32_t flags;      /* AIT_NODE_INPLACE */
  uint32_t arg_count, result_count;
  ait_arg *args; /* schema order, defaults filled in; AIT_ARG_GRAPH holds an ait_graph * */
  uint32_t *results;
  const char *name;
  uint32_t module; /* index into graph->modules; AIT_NO_INDEX: none */
  ait_node *prev, *next;
  ait_graph *graph;
  bool removed;
};

typedef struct ait_module_info {
  const char *path; /* "encoder.layer.0"; "" is the root */
  const char *type; /* "torch.nn.modules.linear.Linear"; "" when unknown */
  uint32_t calls;   /* call instances seen in the graph */
} ait_module_info;

struct ait_graph {
  ait_graph *root;   /* itself for the root; nested graphs share arena, symbols, dims, modules, weights with it */
  ait_graph *parent; /* NULL for the root */
  ait_allocator allocator;
  ait_arena *arena;
  ait_dialect dialect;
  const char *name, *producer; /* "model", "torch 2.13.0" */
  const char *program;         /* the exported program (.pt2) that this raw graph says the same as; NULL: there is none */

  ait_value_info *values;
  size_t value_count, value_capacity;
  ait_node *first, *last;
  size_t node_count;
  ait_region_input *inputs;
  size_t input_count, input_capacity;
  ait_region_output *outputs;
  size_t output_count, output_capacity;

  /* root only */
  ait_symbol *symbols;
  size_t symbol_count, symbol_capacity;
  ait_dim_expr *dims;
  size_t dim_count, dim_capacity;
  struct ait_dim_index *dim_index; /* hash-consing */
  ait_region_guard *guards;
  size_t guard_count, guard_capacity;
  ait_module_info *modules;
  size_t module_count, module_capacity;
  ait_weight_store *weights;     /* retained */
  const char *const *input_spec; /* leaf names of the user inputs, in the caller's order; user_input_count of them */
  size_t user_input_count;
  struct ait_name_index *module_names, *symbol_names;

  struct ait_name_index *names; /* value names in use; root and nested graphs each have one */
};

/* graph.c. Functions that allocate return an error; the graph's contents are unchanged then. */
ait_status ait_graph_create(ait_allocator a, ait_dialect dialect, ait_graph **out) AIT_MUST_USE;
ait_status ait_graph_create_nested(ait_graph *parent, ait_graph **out) AIT_MUST_USE;
void ait_graph_destroy(ait_graph *graph);                                         /* root only; takes NULL */
ait_status ait_graph_clone(const ait_graph *graph, ait_graph **out) AIT_MUST_USE; /* deep, weights shared; value ids stay the same */
ait_status ait_graph_strdup(ait_graph *g, const char *text, const char **out) AIT_MUST_USE; /* copy in the arena; NULL stays NULL */
/* Root only data, reached from any graph. A module is added once for each path: *out is its index. */
ait_status ait_graph_add_module(ait_graph *g, const char *path, const char *type, uint32_t *out) AIT_MUST_USE;
ait_status ait_graph_add_guard(ait_graph *g, ait_guard_op op, ait_dim left, ait_dim right, const char *text) AIT_MUST_USE;
ait_status ait_graph_set_input_spec(ait_graph *g, const char *const *names, size_t count) AIT_MUST_USE; /* names may be NULL: all unnamed */

/* A fresh value; the name is made unique by a suffix when taken. `like` gives type, dtype and shape (its def is ignored). */
ait_status ait_graph_add_value(ait_graph *g, const char *name, const ait_value_info *like, uint32_t *out) AIT_MUST_USE;
uint32_t ait_graph_find_value(const ait_graph *g, const char *name); /* AIT_NO_INDEX when there is none */
/* Replaces type, dtype, shape, elements and scalar of a value; name and definition stay. */
ait_status ait_graph_set_metadata(ait_graph *g, uint32_t value, const ait_value_info *like) AIT_MUST_USE;
/* Appends (before == NULL) or inserts a node. args must be op->param_count long for non-variadic ops. Everything is copied to the arena.
 * The results' values must exist and have no definition yet. */
ait_status ait_graph_add_node(ait_graph *g, ait_node *before, const ait_op *op, const char *op_name, uint32_t flags, const ait_arg *args,
                              uint32_t arg_count, const uint32_t *results, uint32_t result_count, const char *name, uint32_t module,
                              ait_node **out) AIT_MUST_USE;
/* One more result, behind the others; the value must have no definition. */
ait_status ait_graph_add_result(ait_graph *g, ait_node *n, uint32_t value) AIT_MUST_USE;
void ait_graph_remove_node(ait_graph *g, ait_node *n);                                    /* its results must have no uses */
void ait_graph_move_node(ait_node *n, ait_node *before);                                  /* before == NULL: to the end */
ait_status ait_graph_add_input(ait_graph *g, const ait_region_input *input) AIT_MUST_USE; /* strings copied */
ait_status ait_graph_add_output(ait_graph *g, const ait_region_output *output) AIT_MUST_USE;
/* Every use in nodes and outputs of g (not in nested graphs: those take operands explicitly). */
void ait_graph_replace_uses(ait_graph *g, uint32_t old_value, uint32_t new_value);
/* uses[v] = number of uses by nodes and outputs; array of g->value_count from the allocator, freed by the caller. */
ait_status ait_graph_count_uses(const ait_graph *g, ait_allocator a, uint32_t **out) AIT_MUST_USE;
/* Calls fn for each value that the node reads, lists included. */
void ait_node_each_operand(const ait_node *n, void (*fn)(void *ctx, uint32_t value), void *ctx);

/* ---- building with inference (infer.c) -------------------------------------------------------------------------------------------
 * Adds a node of a core (or raw) operator, computing result types, dtypes and shapes by the operator's rule, named after `name`.
 * args: as many as given; the rest take their defaults. Errors: invalid-model with the operator and the reason. */
ait_status ait_build(ait_graph *g, ait_node *before, const char *op, const char *name, uint32_t module, const ait_arg *args,
                     uint32_t arg_count, uint32_t *out_results, uint32_t result_count) AIT_MUST_USE;
/* The rule alone: fills out[0..result_count). unsupported when the operator has no rule. */
ait_status ait_infer(ait_graph *g, const ait_op *op, const ait_arg *args, uint32_t arg_count, ait_value_info *out,
                     uint32_t result_count) AIT_MUST_USE;

bool ait_arg_equal(const ait_arg *a, const ait_arg *b); /* floats by bits, nested graphs by address */
static inline ait_arg ait_arg_none(void) { return (ait_arg){.kind = AIT_ARG_NONE}; }
static inline ait_arg ait_arg_value(uint32_t v) { return (ait_arg){.kind = AIT_ARG_VALUE, .as.value = v}; }
static inline ait_arg ait_arg_int(int64_t i) { return (ait_arg){.kind = AIT_ARG_INT, .as.i = i}; }
static inline ait_arg ait_arg_float(double f) { return (ait_arg){.kind = AIT_ARG_FLOAT, .as.f = f}; }
static inline ait_arg ait_arg_bool(bool b) { return (ait_arg){.kind = AIT_ARG_BOOL, .as.b = b}; }
static inline ait_arg ait_arg_dtype(ait_dtype d) { return (ait_arg){.kind = AIT_ARG_DTYPE, .as.i = d}; }
static inline ait_arg ait_arg_dim(ait_dim d) { return (ait_arg){.kind = AIT_ARG_DIM, .as.dim = d}; }
static inline ait_arg ait_arg_string(const char *s) {
  return (ait_arg){.kind = AIT_ARG_STRING, .count = (uint32_t)strlen(s), .as.string = s};
}
static inline ait_arg ait_arg_list(const ait_arg *items, uint32_t count) {
  return (ait_arg){.kind = AIT_ARG_LIST, .count = count, .as.list = items};
}

/* ---- symbolic sizes (dim.c) --------------------------------------------------------------------------------------------------------
 * Expressions are hash-consed and simplified: equal expressions have equal ids. Simplification uses the symbols' ranges as they are at the
 * time: set them before building on a symbol; narrowing them later is safe, widening is not. Invalid ids and expressions that are too
 * large (limit) are errors. Dim 0 is never a result: it stands for "not set". */
ait_status ait_dim_const(ait_graph *g, int64_t value, ait_dim *out) AIT_MUST_USE;
ait_status ait_dim_symbol(ait_graph *g, const char *name, ait_dim *out) AIT_MUST_USE; /* declares it (unbacked, 0..max) when new */
ait_symbol *ait_graph_symbol(ait_graph *g, const char *name);                         /* NULL when unknown */
ait_status ait_dim_make(ait_graph *g, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) AIT_MUST_USE;
ait_status ait_dim_unknown(ait_graph *g, ait_dim *out) AIT_MUST_USE; /* each call a new one, equal to nothing else */
bool ait_dim_is_const(const ait_graph *g, ait_dim d, int64_t *out);
bool ait_dim_is_known(const ait_graph *g, ait_dim d);                                  /* a function of backed symbols only */
void ait_dim_range(const ait_graph *g, ait_dim d, int64_t *out_min, int64_t *out_max); /* saturating interval arithmetic */
void ait_dim_text(const ait_graph *g, ait_dim d, ait_text *out);                       /* "2*s0 + 1" */
/* Reads what ait_dim_text writes, and torch's spelling (FloorDiv(s0, 2), Mod, Max, **). New symbols are declared. Errors: invalid-model. */
ait_status ait_dim_parse(ait_graph *g, const char *text, size_t length, ait_dim *out) AIT_MUST_USE;
/* a / b as an exact quotient of polynomials (true for every value of the symbols where b is not 0); false when there is none. */
bool ait_dim_divides(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out);
/* Evaluation: ait_dim_eval of tensor/tensor.h. */

/* ---- checks and text -------------------------------------------------------------------------------------------------------------*/
/* verify.c: definitions before uses, arity and kinds by schema, dialect, metadata against the inference rules. Names node and fault. */
ait_status ait_graph_verify(const ait_graph *g) AIT_MUST_USE;
/* print.c / parse.c: lossless (weights by name only). */
ait_status ait_graph_print(const ait_graph *g, ait_text *out) AIT_MUST_USE;
ait_status ait_graph_parse(ait_allocator a, const char *text, size_t length, ait_graph **out) AIT_MUST_USE;

/* ---- region ------------------------------------------------------------------------------------------------------------------------
 * region.c: a flat view of the whole graph, in its own allocation; strings and dims stay in the graph's arena, which must outlive it.
 * An int value's `scalar` becomes the one dim of its region value's shape (rank 0). */
ait_status ait_graph_region(const ait_graph *g, ait_allocator a, ait_region **out) AIT_MUST_USE;
void ait_graph_region_destroy(ait_allocator a, ait_region *region);
/* from_region.c: the way back, verified; weights (may be NULL) are retained. Module types and list elements' metadata are not in a region.
 * Errors: invalid-model, limit. */
ait_status ait_graph_from_region(ait_allocator a, const ait_region *region, ait_dialect dialect, ait_weight_store *weights,
                                 ait_graph **out) AIT_MUST_USE;

#endif
