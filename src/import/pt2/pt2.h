/* Inside of the .pt2 importer: what its files share. An import is one call in one thread; everything here lives as long as it. */
#ifndef AIT_SRC_IMPORT_PT2_H
#define AIT_SRC_IMPORT_PT2_H

#include "import/import.h"
#include "base/json.h"
#include "import/pt2/weights.h"

enum { AIT_PT2_GRAPH_DEPTH = 16 }; /* graphs nested in graphs */

typedef struct ait_pt2_import {
  ait_arena arena; /* everything but the graph and the weights; limited */
  const ait_import_options *options;
  const char *path;
  const char *model; /* name of the program in the archive */
  ait_graph *graph;  /* the root */
  ait_pt2_weights weights;
  ait_map dims;         /* expression text to ait_dim + 1: programs repeat few texts thousands of times */
  ait_map calls;        /* keys of nn_module_stack seen: call instances */
  ait_map stacks;       /* nn_module_stack to module index */
  ait_missing *missing; /* unknown operators are collected here, and weights are not read; NULL: unknown operators are errors */
  const char *node;     /* whose operator is looked up, for `missing` */
} ait_pt2_import;

/* A graph of the file while it is read: names are its own, nested graphs do not see the outer ones. */
typedef struct ait_pt2_scope {
  ait_pt2_import *in;
  ait_graph *graph;
  const ait_json *json; /* of the graph */
  int depth;
  /* The body of a vmap sees the scope around it: what it reads there becomes an input of the body. NULL for all others. */
  struct ait_pt2_scope *outer;
  uint32_t *captures; /* values of the outer graph, in the order of the inputs they became */
  size_t capture_count, capture_capacity;
  ait_map tensors;    /* name to its TensorMeta (ait_json) */
  ait_map scalars;    /* name to its SymInt, SymFloat or SymBool (ait_json) */
  ait_map values;     /* name to value id + 1, once it is defined */
  ait_map subclasses; /* name to ait_pt2_tensor, of parameters that are tensor subclasses */
} ait_pt2_scope;

/* ---- values.c --------------------------------------------------------------------------------------------------------------------*/
ait_status ait_pt2_scope_init(ait_pt2_scope *scope, ait_pt2_import *in, ait_graph *graph, const ait_json *graph_json,
                              int depth) AIT_MUST_USE;
void ait_pt2_scope_deinit(ait_pt2_scope *scope);
/* A union is an object with exactly one member: that member. */
ait_status ait_pt2_union(const ait_json *json, const ait_json **out) AIT_MUST_USE;
/* SymInt: {"as_int": n} or {"as_expr": …} */
ait_status ait_pt2_dim(ait_pt2_import *in, const ait_json *sym_int, ait_dim *out) AIT_MUST_USE;
/* What the file says of a tensor. Errors: invalid-model, also when it says nothing. */
ait_status ait_pt2_tensor_info(ait_pt2_scope *scope, const char *name, ait_value_info *out) AIT_MUST_USE;
/* Defines `name` in the scope, with the metadata that the file has for it. Errors: invalid-model when it is defined already. */
ait_status ait_pt2_define(ait_pt2_scope *scope, const char *name, ait_type type, uint32_t *out) AIT_MUST_USE;
/* `name` stands for an existing value from now on. Errors: invalid-model when it stands for one already. */
ait_status ait_pt2_remember(ait_pt2_scope *scope, const char *name, uint32_t value) AIT_MUST_USE;
/* Defines what an Argument in a place of definition names (graph input, node output). *out: AIT_NO_INDEX when it is a constant or none. */
ait_status ait_pt2_define_argument(ait_pt2_scope *scope, const ait_json *argument, uint32_t *out) AIT_MUST_USE;
ait_status ait_pt2_value(ait_pt2_scope *scope, const char *name, uint32_t *out) AIT_MUST_USE;

/* ---- arguments.c -----------------------------------------------------------------------------------------------------------------*/
/* An Argument union as a value that param wants (NULL: whatever it is). Lists lie in the import's arena. */
ait_status ait_pt2_argument(ait_pt2_scope *scope, const ait_json *argument, const ait_param *param, ait_arg *out) AIT_MUST_USE;
/* The NamedArguments of a node from `first` on, in the order of the operator's schema with defaults filled in; out has op->param_count. */
ait_status ait_pt2_match(ait_pt2_scope *scope, const ait_op *op, const ait_json *inputs, uint32_t first, ait_arg *out) AIT_MUST_USE;

/* ---- operators.c -----------------------------------------------------------------------------------------------------------------*/
typedef struct ait_pt2_operator {
  const ait_op *op;     /* the "custom" row for operators of the application, and for unknown ones that are collected */
  const char *name;     /* in the arena */
  uint32_t flags;       /* AIT_NODE_INPLACE */
  const ait_op *schema; /* of a registered custom operator; NULL for all others */
} ait_pt2_operator;
/* "torch.ops.aten.add_.Tensor". Errors: unsupported (unknown, or not registered), invalid-model (no operator at all). */
ait_status ait_pt2_find_operator(ait_pt2_import *in, const char *target, ait_pt2_operator *out) AIT_MUST_USE;

/* ---- nodes.c ---------------------------------------------------------------------------------------------------------------------*/
ait_status ait_pt2_add_nodes(ait_pt2_scope *scope, const ait_json *graph_json) AIT_MUST_USE;
/* Items [begin, end) of an array of nodes. */
ait_status ait_pt2_add_node_range(ait_pt2_scope *scope, const ait_json *nodes, uint32_t begin, uint32_t end) AIT_MUST_USE;
/* A graph in an argument. */
ait_status ait_pt2_nested(ait_pt2_scope *scope, const ait_json *as_graph, ait_graph **out) AIT_MUST_USE;

/* ---- functional.c ----------------------------------------------------------------------------------------------------------------*/
bool ait_pt2_is_functional(const char *target); /* auto_functionalized, auto_functionalized_v2 */
ait_status ait_pt2_add_functional(ait_pt2_scope *scope, const ait_json *node, const char *name, uint32_t module) AIT_MUST_USE;

/* ---- vmap.c ----------------------------------------------------------------------------------------------------------------------*/
bool ait_pt2_is_vmap(const ait_json *node); /* the beginning of a vmap, or what torch writes before it */
/* Adds the vmap that begins at nodes[*index]; *index becomes its last node. */
ait_status ait_pt2_add_vmap(ait_pt2_scope *scope, const ait_json *nodes, uint32_t *index) AIT_MUST_USE;

/* ---- modules.c -------------------------------------------------------------------------------------------------------------------*/
ait_status ait_pt2_add_modules(ait_pt2_import *in, const ait_json *module_call_graph) AIT_MUST_USE;
/* The module that a node's metadata name; AIT_NO_INDEX when they name none. Counts call instances. */
ait_status ait_pt2_module_of(ait_pt2_import *in, const ait_json *metadata, uint32_t *out) AIT_MUST_USE;

/* ---- pytree.c --------------------------------------------------------------------------------------------------------------------*/
typedef struct ait_pt2_leaf {
  const char *name; /* "x", "d_k_0" */
  const char *path; /* as guards write it: "L['d']['k'][0]"; "" inside of dataclasses, named tuples and the like */
} ait_pt2_leaf;
/* Leaves of the arguments, in order; *out_count 0 when the spec is absent or not understood. */
ait_status ait_pt2_input_leaves(ait_arena *arena, const ait_json *signature, ait_pt2_leaf **out, uint32_t *out_count) AIT_MUST_USE;
ait_status ait_pt2_output_leaves(ait_arena *arena, const ait_json *signature, ait_pt2_leaf **out, uint32_t *out_count) AIT_MUST_USE;

/* ---- mutation.c ------------------------------------------------------------------------------------------------------------------*/
/* Sets `mutated` of the inputs that a node may write into, directly or through views. */
ait_status ait_pt2_mark_mutated(ait_graph *graph) AIT_MUST_USE;

/* ---- archive.c -------------------------------------------------------------------------------------------------------------------*/
/* What a zip in memory is. A damaged one counts as PT2: the importer tells what is wrong with it. */
ait_file_kind ait_pt2_kind(ait_allocator a, const uint8_t *data, size_t size);

/* ---- program.c -------------------------------------------------------------------------------------------------------------------*/
/* The ExportedProgram into in->graph. */
ait_status ait_pt2_read_program(ait_pt2_import *in, const ait_json *program) AIT_MUST_USE;

#endif
