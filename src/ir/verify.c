/* Is the graph what ir.h promises? Structure first, then arguments by schema, dialect, and metadata against the inference rules. */
#include "ir/ir_internal.h"

#include <stdio.h>

typedef struct verifier {
  const ait_graph *g;
  uint8_t *defined; /* per value */
  const ait_node *node;
} verifier;

static ait_status verify_graph(const ait_graph *g, int depth);

static ait_status fault(const verifier *v, const char *format, ...) AIT_PRINTF(2, 3) AIT_MUST_USE;
static ait_status fault(const verifier *v, const char *format, ...) {
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (!v->node) return ait_error(AIT_CODE_INVALID_MODEL, "graph '%s': %s", v->g->name, text);
  return ait_error(AIT_CODE_INVALID_MODEL, "node '%s' (%s): %s", v->node->name, v->node->op_name, text);
}

static const char *name_of(const verifier *v, uint32_t value) { return v->g->values[value].name; }

/* ---- metadata ------------------------------------------------------------------------------------------------------------------------*/

static ait_status check_metadata(const verifier *v, const ait_value_info *info, const char *name) {
  const ait_graph *root = v->g->root;
  if (info->type == AIT_TYPE_INT && info->scalar != AIT_NO_INDEX && info->scalar >= root->dim_count)
    return fault(v, "value '%s' has an expression that does not exist", name);
  if (info->type == AIT_TYPE_TENSOR_LIST) {
    for (uint32_t i = 0; info->elements && i < info->list_count; ++i) AIT_TRY(check_metadata(v, &info->elements[i], name));
  }
  if (info->type != AIT_TYPE_TENSOR) return AIT_OK;
  if (info->dtype != AIT_DTYPE_NONE && ait_dtype_size(info->dtype) == 0) return fault(v, "value '%s' has no known dtype", name);
  if (info->rank < -1 || info->rank > AIT_MAX_RANK) return fault(v, "value '%s' has rank %d", name, (int)info->rank);
  for (int32_t d = 0; d < info->rank; ++d) {
    int64_t size;
    if (info->shape[d] >= root->dim_count) return fault(v, "value '%s' has a size that does not exist", name);
    if (ait_dim_is_const(root, info->shape[d], &size) && size < 0) return fault(v, "value '%s' has a negative size", name);
  }
  return AIT_OK;
}

static ait_status define(verifier *v, uint32_t value) {
  if (value >= v->g->value_count) return fault(v, "value %u does not exist", (unsigned)value);
  if (v->defined[value]) return fault(v, "value '%s' is defined twice", name_of(v, value));
  v->defined[value] = 1;
  return check_metadata(v, &v->g->values[value], name_of(v, value));
}

/* ---- arguments -----------------------------------------------------------------------------------------------------------------------*/

static ait_status check_value(const verifier *v, uint32_t value) {
  if (value >= v->g->value_count) return fault(v, "operand %u does not exist", (unsigned)value);
  return v->defined[value] ? AIT_OK : fault(v, "value '%s' is used before it is defined", name_of(v, value));
}

/* References only: values, sizes, graphs. */
static ait_status check_references(const verifier *v, const ait_arg *arg, int list_depth, int graph_depth) {
  if (arg->kind == AIT_ARG_VALUE) return check_value(v, arg->as.value);
  if (arg->kind == AIT_ARG_DIM && arg->as.dim >= v->g->root->dim_count) return fault(v, "a size that does not exist");
  if (arg->kind == AIT_ARG_GRAPH) {
    const ait_graph *nested = arg->as.graph;
    if (!nested || nested->root != v->g->root) return fault(v, "nested graph of another root");
    if (graph_depth == 0) return fault(v, "graphs nest deeper than %d", AIT_GRAPH_DEPTH_LIMIT);
    return verify_graph(nested, graph_depth - 1);
  }
  if (arg->kind != AIT_ARG_LIST) return AIT_OK;
  if (list_depth == 0) return fault(v, "argument lists nest deeper than %d", AIT_ARG_DEPTH_LIMIT);
  for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(check_references(v, &arg->as.list[i], list_depth - 1, graph_depth));
  return AIT_OK;
}

static ait_type value_type(const verifier *v, const ait_arg *arg) { return v->g->values[arg->as.value].type; }

static bool is_scalar(const verifier *v, const ait_arg *arg) {
  switch (arg->kind) {
    case AIT_ARG_INT:
    case AIT_ARG_FLOAT:
    case AIT_ARG_BOOL:
    case AIT_ARG_COMPLEX:
    case AIT_ARG_DIM: return true;
    case AIT_ARG_VALUE:
      return value_type(v, arg) == AIT_TYPE_INT || value_type(v, arg) == AIT_TYPE_FLOAT || value_type(v, arg) == AIT_TYPE_BOOL;
    default: return false;
  }
}

static bool is_tensor(const verifier *v, const ait_arg *arg) {
  return arg->kind == AIT_ARG_VALUE && (value_type(v, arg) == AIT_TYPE_TENSOR || value_type(v, arg) == AIT_TYPE_NONE);
}

/* For PyTorch's own operators its conversions hold: a number may stand for a tensor, a 0-d tensor for a number. */
static bool is_raw(const verifier *v) { return v->node->op->dialects != AIT_DIALECT_CORE; }

static bool kind_fits(const verifier *v, const ait_param *p, const ait_arg *arg) {
  bool raw = is_raw(v);
  switch (p->type) {
    case AIT_PARAM_TENSOR: return is_tensor(v, arg) || (raw && is_scalar(v, arg));
    case AIT_PARAM_INT:
      return arg->kind == AIT_ARG_INT || arg->kind == AIT_ARG_DIM || arg->kind == AIT_ARG_BOOL ||
             (arg->kind == AIT_ARG_VALUE && (is_scalar(v, arg) || (raw && is_tensor(v, arg))));
    case AIT_PARAM_FLOAT:
    case AIT_PARAM_SCALAR: return is_scalar(v, arg) || (raw && is_tensor(v, arg));
    case AIT_PARAM_BOOL: return arg->kind == AIT_ARG_BOOL || arg->kind == AIT_ARG_INT || (arg->kind == AIT_ARG_VALUE && is_scalar(v, arg));
    case AIT_PARAM_STRING: return arg->kind == AIT_ARG_STRING;
    case AIT_PARAM_DTYPE: return arg->kind == AIT_ARG_DTYPE && ait_dtype_size((ait_dtype)arg->as.i) != 0;
    case AIT_PARAM_ANY: return is_tensor(v, arg) || is_scalar(v, arg);
    case AIT_PARAM_GRAPH: return arg->kind == AIT_ARG_GRAPH;
    case AIT_PARAM_LAYOUT:
    case AIT_PARAM_MEMORY_FORMAT:
    case AIT_PARAM_DEVICE:
    case AIT_PARAM_GENERATOR: return arg->kind == AIT_ARG_INT || arg->kind == AIT_ARG_STRING || arg->kind == AIT_ARG_NONE;
  }
  return false;
}

static bool list_fits(const verifier *v, const ait_param *p, const ait_arg *arg) {
  if (arg->kind == AIT_ARG_VALUE && value_type(v, arg) == AIT_TYPE_TENSOR_LIST) return p->type == AIT_PARAM_TENSOR;
  if (arg->kind != AIT_ARG_LIST) return is_raw(v) && kind_fits(v, p, arg); /* a number for a list of one */
  for (uint32_t i = 0; i < arg->count; ++i) {
    const ait_arg *item = &arg->as.list[i];
    if (item->kind == AIT_ARG_NONE ? !p->element_optional : !kind_fits(v, p, item)) return false;
  }
  return true;
}

static ait_status check_args(const verifier *v, const ait_node *n, int depth) {
  for (uint32_t i = 0; i < n->arg_count; ++i) AIT_TRY(check_references(v, &n->args[i], AIT_ARG_DEPTH_LIMIT, depth));
  if (n->op->variadic) return AIT_OK;
  if (n->arg_count != n->op->param_count) return fault(v, "%u arguments, %u wanted", (unsigned)n->arg_count, (unsigned)n->op->param_count);
  for (uint32_t i = 0; i < n->arg_count; ++i) {
    const ait_param *p = &n->op->params[i];
    const ait_arg *arg = &n->args[i];
    if (arg->kind == AIT_ARG_NONE) {
      bool may_miss = p->is_optional || (p->has_default && p->default_value.kind == AIT_ARG_NONE);
      if (!may_miss) return fault(v, "argument '%s' is missing", p->name);
    } else if (p->is_list ? !list_fits(v, p, arg) : !kind_fits(v, p, arg)) {
      return fault(v, "argument '%s' is of the wrong kind", p->name);
    }
  }
  return AIT_OK;
}

/* ---- nodes ---------------------------------------------------------------------------------------------------------------------------*/

static ait_status check_dialect(const verifier *v, const ait_node *n) {
  if (n->op->dialects & v->g->dialect) {
    if (v->g->dialect == AIT_DIALECT_CORE && (n->flags & AIT_NODE_INPLACE)) return fault(v, "in-place node in a core graph");
    return AIT_OK;
  }
  if (v->g->dialect == AIT_DIALECT_CORE && !(n->op->traits & AIT_OP_MUTATES) && !(n->flags & AIT_NODE_INPLACE)) return AIT_OK;
  /* Core operators are pure functions: importers of other formats than PyTorch's build raw graphs of them. */
  if (v->g->dialect == AIT_DIALECT_RAW && !(n->flags & AIT_NODE_INPLACE)) return AIT_OK;
  return fault(v, "operator does not belong to the %s dialect", v->g->dialect == AIT_DIALECT_RAW ? "raw" : "core");
}

static ait_status check_result_types(const verifier *v, const ait_node *n) {
  if (n->op->variadic) return AIT_OK;
  if (n->result_count != n->op->result_count)
    return fault(v, "%u results, %u wanted", (unsigned)n->result_count, (unsigned)n->op->result_count);
  for (uint32_t i = 0; i < n->result_count; ++i) {
    if (n->results[i] == AIT_NO_INDEX) continue;
    ait_type want = i < AIT_COUNT(n->op->result_types) ? n->op->result_types[i] : AIT_TYPE_TENSOR;
    ait_type got = v->g->values[n->results[i]].type;
    bool fits = want == AIT_TYPE_NONE ? got == AIT_TYPE_INT || got == AIT_TYPE_FLOAT || got == AIT_TYPE_BOOL : got == want;
    /* None where a result was not computed; a size operation may be declared int and exported as another number */
    bool lenient = got == AIT_TYPE_NONE || ((n->op->traits & AIT_OP_SYMBOLIC) && got != AIT_TYPE_TENSOR && got != AIT_TYPE_TENSOR_LIST);
    if (!fits && !lenient) return fault(v, "result %u ('%s') is of the wrong type", (unsigned)i, name_of(v, n->results[i]));
  }
  return AIT_OK;
}

/* Sizes that cannot be equal whatever the symbols are. */
static bool surely_differ(ait_graph *g, ait_dim a, ait_dim b) {
  ait_dim difference;
  if (a == b) return false;
  ait_status status = ait_dim_make(g, AIT_DIM_SUB, a, b, &difference);
  if (status) {
    ait_status_ignore(status);
    return false;
  }
  int64_t min, max;
  ait_dim_range(g, difference, &min, &max);
  return min > 0 || max < 0;
}

static ait_status size_fault(const verifier *v, const ait_value_info *got, const ait_value_info *want, int32_t d) {
  ait_text text;
  ait_text_init(&text, v->g->allocator);
  ait_dim_text(v->g, got->shape[d], &text);
  ait_text_append(&text, ", its operator gives ", 21);
  ait_dim_text(v->g, want->shape[d], &text);
  ait_status status = fault(v, "size %d of result '%s' is %s", (int)d, got->name, text.data ? text.data : "another");
  ait_text_deinit(&text);
  return status;
}

static ait_status compare_metadata(const verifier *v, uint32_t value, const ait_value_info *want) {
  const ait_value_info *got = &v->g->values[value];
  if (got->type != want->type) return fault(v, "result '%s' is of another type than its operator gives", got->name);
  if (got->type != AIT_TYPE_TENSOR) return AIT_OK;
  if (got->dtype != want->dtype && got->dtype != AIT_DTYPE_NONE && want->dtype != AIT_DTYPE_NONE)
    return fault(v, "result '%s' is %s, its operator gives %s", got->name, ait_dtype_name(got->dtype), ait_dtype_name(want->dtype));
  if (got->rank < 0 || want->rank < 0) return AIT_OK;
  if (got->rank != want->rank)
    return fault(v, "result '%s' has rank %d, its operator gives %d", got->name, (int)got->rank, (int)want->rank);
  for (int32_t d = 0; d < got->rank; ++d) {
    if (surely_differ(v->g->root, got->shape[d], want->shape[d])) return size_fault(v, got, want, d);
  }
  return AIT_OK;
}

/* Inference may add expressions to the table of sizes; the graph itself stays as it is. */
static ait_status check_inferred(const verifier *v, const ait_node *n) {
  enum { MAX_RESULTS = 8 };
  ait_value_info want[MAX_RESULTS];
  if (n->op->variadic || n->result_count == 0 || n->result_count > MAX_RESULTS || !(n->op->dialects & AIT_DIALECT_CORE)) return AIT_OK;
  ait_status status = ait_infer((ait_graph *)v->g, n->op, n->args, n->arg_count, want, n->result_count);
  if (ait_status_code(status) == AIT_CODE_UNSUPPORTED) {
    ait_status_ignore(status);
    return AIT_OK;
  }
  AIT_TRY(ait_error_context(status, "node '%s'", n->name));
  for (uint32_t i = 0; i < n->result_count; ++i) {
    if (n->results[i] != AIT_NO_INDEX) AIT_TRY(compare_metadata(v, n->results[i], &want[i]));
  }
  return AIT_OK;
}

static ait_status check_node(verifier *v, const ait_node *n, int depth) {
  v->node = n;
  if (n->removed || n->graph != v->g) return fault(v, "stands in a list it does not belong to");
  if (n->module != AIT_NO_INDEX && n->module >= v->g->root->module_count) return fault(v, "module %u does not exist", (unsigned)n->module);
  AIT_TRY(check_dialect(v, n));
  AIT_TRY(check_args(v, n, depth));
  for (uint32_t i = 0; i < n->result_count; ++i) {
    if (n->results[i] == AIT_NO_INDEX) continue;
    AIT_TRY(define(v, n->results[i]));
    const ait_value_info *info = &v->g->values[n->results[i]];
    if (info->def != n || info->def_index != i) return fault(v, "value '%s' names another definition", info->name);
  }
  if ((n->flags & AIT_NODE_INPLACE) && (n->arg_count == 0 || n->args[0].kind != AIT_ARG_VALUE))
    return fault(v, "in-place, but argument 0 is no value");
  AIT_TRY(check_result_types(v, n));
  return check_inferred(v, n);
}

/* ---- graphs --------------------------------------------------------------------------------------------------------------------------*/

static ait_status check_inputs(verifier *v) {
  for (size_t i = 0; i < v->g->input_count; ++i) {
    const ait_region_input *input = &v->g->inputs[i];
    if (input->value == AIT_NO_INDEX) {
      if (input->kind != AIT_INPUT_USER) return fault(v, "input '%s' has no value", input->name ? input->name : "");
      continue;
    }
    AIT_TRY(define(v, input->value));
    if (v->g->values[input->value].def) return fault(v, "input '%s' is a node's result", name_of(v, input->value));
    if (input->kind != AIT_INPUT_USER && input->kind != AIT_INPUT_TOKEN && (!input->name || !*input->name))
      return fault(v, "input '%s' is a weight without a name", name_of(v, input->value));
  }
  return AIT_OK;
}

static ait_status check_outputs(const verifier *v) {
  for (size_t i = 0; i < v->g->output_count; ++i) {
    const ait_region_output *output = &v->g->outputs[i];
    if (output->arg.kind == AIT_ARG_GRAPH) return fault(v, "output %zu is a graph", i);
    AIT_TRY(check_references(v, &output->arg, AIT_ARG_DEPTH_LIMIT, 0));
    if (output->kind == AIT_OUTPUT_STATE && (!output->name || !*output->name)) return fault(v, "output %zu names no state", i);
  }
  return AIT_OK;
}

static ait_status check_guards(const verifier *v) {
  const ait_graph *root = v->g->root;
  for (size_t i = 0; i < root->guard_count; ++i) {
    if (root->guards[i].left >= root->dim_count || root->guards[i].right >= root->dim_count)
      return fault(v, "guard '%s' has a size that does not exist", root->guards[i].text);
  }
  return AIT_OK;
}

static ait_status check_all(verifier *v, int depth) {
  size_t count = 0;
  if (v->g->root == v->g) AIT_TRY(check_guards(v));
  AIT_TRY(check_inputs(v));
  for (const ait_node *n = v->g->first; n; n = n->next, ++count) {
    AIT_TRY(check_node(v, n, depth));
    if (n->next && n->next->prev != n) return fault(v, "the list of nodes is broken after this one");
  }
  v->node = NULL;
  if (count != v->g->node_count) return fault(v, "%zu nodes in the list, %zu counted", count, v->g->node_count);
  return check_outputs(v);
}

static ait_status verify_graph(const ait_graph *g, int depth) {
  size_t bytes = g->value_count ? g->value_count : 1;
  verifier v = {.g = g, .defined = ait_alloc_zero(g->allocator, bytes, 1)};
  if (!v.defined) return AIT_OOM();
  ait_status status = check_all(&v, depth);
  ait_free(g->allocator, v.defined, bytes);
  return status;
}

ait_status ait_graph_verify(const ait_graph *g) { return verify_graph(g, AIT_GRAPH_DEPTH_LIMIT); }
