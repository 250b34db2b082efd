/* In-place operators become pure ones. Every tensor that something may write is a root with views over it; a write makes a new value of the
 * root (through the inverse of each view), and later uses of the root or of any view of it read from that. What a graph input holds at the
 * end becomes a state (or input) output.
 *
 * Refused, by name: reads of a tensor after a write through what may or may not be a view of it (reshape, contiguous), writes
 * through expand, as_strided and other views without an inverse, and weights that share storage with one that is written. */
#include "custom/custom.h"
#include "passes/rewrite.h"

enum { VIEW_DEPTH_LIMIT = 64, GRAPH_DEPTH_LIMIT = 32 };

/* What is known of a tensor value. Indexed by value id; ids made by this pass have none and are their own contents. */
typedef struct alias {
  bool tracked;
  bool uncertain;   /* may be a copy of `parent`, or a view of it */
  uint32_t parent;  /* AIT_NO_INDEX: a root */
  ait_node *view;   /* how it is made from parent */
  uint32_t current; /* value that holds its contents now */
  uint64_t stamp;   /* the root's version when `current` was made */
  uint64_t version; /* roots: number of writes */
  bool lost;        /* roots: something wrote through what may have been a view of it: must not be read any more */
} alias;

typedef struct functionaliser {
  ait_graph *g;
  const ait_pass_context *context;
  alias *aliases;
  size_t count;
  ait_rewrite w;
  bool changed;
} functionaliser;

static ait_status refuse(const functionaliser *f, const ait_node *n, const char *why) {
  AIT_UNUSED(f);
  return ait_error(AIT_CODE_UNSUPPORTED, "node '%s' (%s) cannot be made functional: %s", n->name ? n->name : "?", n->op_name, why);
}

static alias *alias_of(functionaliser *f, uint32_t v) { return v < f->count && f->aliases[v].tracked ? &f->aliases[v] : NULL; }

static uint32_t root_of(const functionaliser *f, uint32_t v) {
  while (f->aliases[v].parent != AIT_NO_INDEX) v = f->aliases[v].parent; /* parents are older: this ends */
  return v;
}

static void make_root(functionaliser *f, uint32_t v) {
  if (v < f->count) f->aliases[v] = (alias){.tracked = true, .parent = AIT_NO_INDEX, .current = v};
}

static void make_view(functionaliser *f, uint32_t v, uint32_t parent, ait_node *view, bool uncertain) {
  alias *p = alias_of(f, parent);
  if (v >= f->count || !p) return;
  f->aliases[v] = (alias){.tracked = true,
                          .uncertain = uncertain,
                          .parent = parent,
                          .view = view,
                          .current = v,
                          .stamp = f->aliases[root_of(f, parent)].version};
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------*/
/* A copy of the view's node, applied to another value. */
static ait_status replay(functionaliser *f, const ait_node *view, uint32_t from, uint32_t like, uint32_t *out) {
  ait_arg args[AIT_MAX_RANK];
  ait_node *n;
  if (view->arg_count > AIT_COUNT(args)) return refuse(f, view, "too many arguments");
  memcpy(args, view->args, view->arg_count * sizeof *args);
  args[0] = ait_arg_value(from);
  ait_value_info info = f->g->values[like];
  AIT_TRY(ait_graph_add_value(f->g, info.name, &info, out));
  return ait_graph_add_node(f->g, f->w.at, view->op, view->op_name, 0, args, view->arg_count, out, 1, view->name, view->module, &n);
}

/* The value that holds v's contents now. */
static ait_status current_of(functionaliser *f, uint32_t v, const ait_node *user, uint32_t *out) {
  uint32_t chain[VIEW_DEPTH_LIMIT];
  uint32_t depth = 0;
  alias *a = alias_of(f, v);
  *out = v;
  if (!a) return AIT_OK;
  const alias *root = &f->aliases[root_of(f, v)];
  if (root->lost) return refuse(f, user, "what it reads may or may not have been written, through what may or may not be a view of it");
  uint64_t version = root->version;
  while (a->parent != AIT_NO_INDEX && a->stamp != version) {
    if (a->uncertain) return refuse(f, user, "what it reads may or may not be a view of a tensor that was written");
    if (depth == VIEW_DEPTH_LIMIT) return refuse(f, user, "views are nested too deep");
    chain[depth++] = v;
    v = a->parent;
    a = alias_of(f, v);
  }
  *out = a->current;
  while (depth > 0) {
    alias *view = alias_of(f, chain[--depth]);
    AIT_TRY(replay(f, view->view, *out, chain[depth], out));
    view->current = *out;
    view->stamp = version;
  }
  return AIT_OK;
}

static ait_status current_arg(functionaliser *f, ait_node *n, ait_arg *a, int depth) {
  if (depth > GRAPH_DEPTH_LIMIT) return refuse(f, n, "lists are nested too deep");
  if (a->kind == AIT_ARG_VALUE) return current_of(f, a->as.value, n, &a->as.value);
  if (a->kind != AIT_ARG_LIST || a->count == 0) return AIT_OK;
  ait_arg *list = AIT_ARENA_ARRAY(f->g->arena, ait_arg, a->count);
  if (!list) return AIT_OOM();
  for (uint32_t i = 0; i < a->count; ++i) {
    list[i] = a->as.list[i];
    AIT_TRY(current_arg(f, n, &list[i], depth + 1));
  }
  a->as.list = list;
  return AIT_OK;
}

/* ---- writing ---------------------------------------------------------------------------------------------------------------------*/
static ait_status emit_raw(functionaliser *f, const char *op, const ait_arg *args, uint32_t count, uint32_t like, uint32_t *out) {
  const ait_op *row = ait_op_find(op);
  ait_node *n;
  ait_value_info info = f->g->values[like];
  AIT_TRY(ait_graph_add_value(f->g, info.name, &info, out));
  return ait_graph_add_node(f->g, f->w.at, row, row->name, 0, args, count, out, 1, f->w.name, f->w.module, &n);
}

/* The parent's new contents when its view has become `value`. */
static ait_status invert(functionaliser *f, const ait_node *view, uint32_t parent_now, uint32_t parent, uint32_t value, uint32_t *out) {
  const char *op = view->op->name;
  const ait_arg *a = view->args;
  ait_arg shape[AIT_MAX_RANK];
  *out = value;
  if (!strcmp(op, "aten.alias")) return AIT_OK;
  if (!strcmp(op, "aten.view")) {
    if (!ait_shape_args(f->g, parent, shape)) return refuse(f, view, "the size of what it views is not known before running");
    ait_arg args[2] = {ait_arg_value(value), ait_arg_list(shape, (uint32_t)f->g->values[parent].rank)};
    return emit_raw(f, "aten.reshape", args, 2, parent, out);
  }
  if (!strcmp(op, "aten.permute")) {
    for (uint32_t i = 0; i < a[1].count; ++i) shape[a[1].as.list[i].as.i] = ait_arg_int(i);
    ait_arg args[2] = {ait_arg_value(value), ait_arg_list(shape, a[1].count)};
    return emit_raw(f, "aten.permute", args, 2, parent, out);
  }
  if (!strcmp(op, "aten.slice.Tensor")) {
    ait_arg args[6] = {ait_arg_value(parent_now), ait_arg_value(value), a[1], a[2], a[3], a[4]};
    return emit_raw(f, "aten.slice_scatter", args, 6, parent, out);
  }
  if (!strcmp(op, "aten.select.int")) {
    ait_arg args[4] = {ait_arg_value(parent_now), ait_arg_value(value), a[1], a[2]};
    return emit_raw(f, "aten.select_scatter", args, 4, parent, out);
  }
  if (!strcmp(op, "aten.diagonal")) {
    ait_arg args[5] = {ait_arg_value(parent_now), ait_arg_value(value), a[1], a[2], a[3]};
    return emit_raw(f, "aten.diagonal_scatter", args, 5, parent, out);
  }
  return refuse(f, view, "something writes through this view, which has no inverse");
}

/* From here on the value stands for itself. Whether its parent sees the write is not known: the parent must not be read again. */
static void cut_uncertain(functionaliser *f, uint32_t v) {
  uint32_t root = root_of(f, v);
  f->aliases[v].version = f->aliases[root].version;
  f->aliases[v].parent = AIT_NO_INDEX;
  f->aliases[root].lost = true;
}

static ait_status write_value(functionaliser *f, const ait_node *n, uint32_t target, uint32_t value) {
  alias *a = alias_of(f, target);
  if (!a) return refuse(f, n, "it writes into a value that is no tensor of this graph");
  for (uint32_t t = target; f->aliases[t].parent != AIT_NO_INDEX; t = f->aliases[t].parent)
    if (f->aliases[t].uncertain) {
      cut_uncertain(f, t);
      break;
    }
  uint32_t root = root_of(f, target), child_value = value;
  for (uint32_t t = target; t != root; t = f->aliases[t].parent) {
    uint32_t parent = f->aliases[t].parent, parent_now, parent_value;
    AIT_TRY(current_of(f, parent, n, &parent_now));
    AIT_TRY(invert(f, f->aliases[t].view, parent_now, parent, child_value, &parent_value));
    child_value = parent_value;
  }
  f->aliases[root].current = child_value;
  ++f->aliases[root].version;
  a = alias_of(f, target);
  a->current = value;
  a->stamp = f->aliases[root].version;
  return AIT_OK;
}

/* The functional result has the dtype and shape that the operator gives; the tensor that is written keeps its own. */
static ait_status fit_to(functionaliser *f, uint32_t value, uint32_t target, uint32_t *out) {
  const ait_value_info *v = &f->g->values[value], *t = &f->g->values[target];
  *out = value;
  if (v->dtype == t->dtype) return AIT_OK;
  ait_arg args[7] = {ait_arg_value(value), ait_arg_dtype(t->dtype)};
  const ait_op *row = ait_op_find("aten._to_copy");
  for (uint32_t i = 2; i < row->param_count && i < AIT_COUNT(args); ++i) args[i] = row->params[i].default_value;
  return emit_raw(f, "aten._to_copy", args, row->param_count, target, out);
}

/* An in-place node: its pure form, then the write. The functional result's dtype is the promotion of what it reads. */
static ait_status rewrite_inplace(functionaliser *f, ait_node *n, uint32_t target) {
  uint32_t result = n->results[0], value;
  ait_value_info info = f->g->values[target];
  info.dtype = f->g->values[result].dtype;
  AIT_TRY(ait_graph_add_value(f->g, info.name, &info, &value));
  ait_node *pure;
  ait_rewrite w = ait_rewrite_at(f->g, f->context, n);
  f->w = w;
  AIT_TRY(ait_graph_add_node(f->g, n, n->op, n->op_name, 0, n->args, n->arg_count, &value, 1, n->name, n->module, &pure));
  AIT_TRY(fit_to(f, value, target, &value));
  AIT_TRY(write_value(f, n, target, value));
  ait_graph_replace_uses(f->g, result, target); /* the result is the written tensor itself */
  ait_graph_remove_node(f->g, n);
  f->changed = true;
  return AIT_OK;
}

/* An operator of the application that writes into arguments: one more result for each of them, which the write then takes. The runtime
 * makes copies when it sees those results. targets: the arguments as they were before they were replaced by their current contents. */
static ait_status rewrite_custom(functionaliser *f, ait_node *n, const ait_op *schema, const uint32_t *targets) {
  for (uint32_t i = 0; i < schema->param_count; ++i) {
    if (!schema->params[i].written) continue;
    if (n->args[i].kind != AIT_ARG_VALUE || f->g->values[targets[i]].type != AIT_TYPE_TENSOR)
      return refuse(f, n, "an argument that it writes is no tensor");
    uint32_t value;
    ait_value_info info = f->g->values[targets[i]];
    AIT_TRY(ait_graph_add_value(f->g, info.name, &info, &value));
    AIT_TRY(ait_graph_add_result(f->g, n, value));
    f->w = (ait_rewrite){.graph = f->g, .context = f->context, .at = n->next, .name = n->name, .module = n->module};
    AIT_TRY(write_value(f, n, targets[i], value));
    f->changed = true;
  }
  return AIT_OK;
}

/* What a custom node's schema says is written; *out NULL: nothing, or the node is functional already. */
static ait_status writing_schema(const ait_node *n, const ait_op **out) {
  *out = NULL;
  if (!n->op->variadic || n->op->traits & AIT_OP_HIGHER) return AIT_OK;
  AIT_TRY(ait_op_custom(n->op_name, out));
  if (*out && (!((*out)->traits & AIT_OP_MUTATES) || n->result_count != (*out)->result_count || n->arg_count != (*out)->param_count))
    *out = NULL;
  return AIT_OK;
}

static ait_status functionalise_graph(ait_graph *g, const ait_pass_context *context, bool *changed, int depth);

/* Nested graphs must be pure towards the outside. */
static ait_status nested_graphs(functionaliser *f, ait_node *n, int depth) {
  for (uint32_t i = 0; i < n->arg_count; ++i) {
    if (n->args[i].kind != AIT_ARG_GRAPH) continue;
    ait_graph *body = (ait_graph *)(uintptr_t)n->args[i].as.graph;
    AIT_TRY(functionalise_graph(body, f->context, &f->changed, depth + 1));
  }
  return AIT_OK;
}

/* ---- other shapes in place -------------------------------------------------------------------------------------------------------*/
static void replace_in(ait_arg *a, uint32_t old_value, uint32_t new_value) {
  if (a->kind == AIT_ARG_VALUE && a->as.value == old_value) a->as.value = new_value;
  for (uint32_t i = 0; a->kind == AIT_ARG_LIST && i < a->count; ++i) replace_in((ait_arg *)(uintptr_t)&a->as.list[i], old_value, new_value);
}

/* squeeze_, t_, resize_: from here on the tensor is the result. What was a view of it before stays one of the old tensor. */
static ait_status rewrite_reshaped(functionaliser *f, ait_node *n, uint32_t target) {
  uint32_t result = n->results[0];
  alias *a = alias_of(f, target);
  bool view = n->op->traits & AIT_OP_VIEW, maybe = n->op->traits & AIT_OP_MAYBE_VIEW;
  if (!a) return refuse(f, n, "it changes the shape of a value that is no tensor of this graph");
  for (ait_node *u = n->next; u; u = u->next)
    for (uint32_t i = 0; i < u->arg_count; ++i) replace_in(&u->args[i], target, result);
  for (size_t i = 0; i < f->g->output_count; ++i) replace_in(&f->g->outputs[i].arg, target, result);
  n->flags &= ~(uint32_t)AIT_NODE_INPLACE;
  f->changed = true;
  if (view || maybe) {
    make_view(f, result, target, n, !view);
    return AIT_OK;
  }
  if (a->parent != AIT_NO_INDEX) return refuse(f, n, "it changes the size of a view");
  a->lost = true; /* views of it share memory with the result: they must not be read */
  make_root(f, result);
  return AIT_OK;
}

/* ---- running statistics ----------------------------------------------------------------------------------------------------------*/
/* Batch norm in training mode writes its running statistics, whether its schema says so or not. The functional form gives them as results
 * 3 and 4, with the same numbers. */
static bool is_batch_norm(const ait_node *n) {
  static const char *const names[] = {"aten.batch_norm", "aten.native_batch_norm", "aten._native_batch_norm_legit",
                                      "aten._batch_norm_with_update"};
  for (size_t i = 0; i < AIT_COUNT(names); ++i)
    if (!strcmp(n->op->name, names[i])) return true;
  return false;
}

static bool trains(const ait_node *n) {
  int32_t training = ait_op_param(n->op, "training");
  return training < 0 || ait_arg_flag(&n->args[training]);
}

/* An operator that reads running statistics, computes its own from the batch, and stores a mixture: there is no functional form of it. */
static bool trains_otherwise(const ait_node *n) {
  int32_t own = ait_op_param(n->op, "use_input_stats"), mean = ait_op_param(n->op, "running_mean");
  return own >= 0 && mean >= 0 && ait_arg_flag(&n->args[own]) && n->args[mean].kind == AIT_ARG_VALUE;
}

static ait_status new_statistic(functionaliser *f, uint32_t like, uint32_t *out) {
  ait_value_info info = f->g->values[like];
  return ait_graph_add_value(f->g, info.name, &info, out);
}

/* The space that the GPU's backward pass would have reserved: empty. */
static ait_status emit_reserve(functionaliser *f, ait_node *n, uint32_t value) {
  const ait_op *row = ait_op_find("aten.zeros");
  ait_arg args[8], none = ait_arg_int(0);
  ait_node *made;
  if (!row || row->param_count > AIT_COUNT(args)) return refuse(f, n, "it has a result that is not modelled");
  for (uint32_t i = 0; i < row->param_count; ++i) args[i] = row->params[i].default_value;
  args[0] = ait_arg_list(&none, 1);
  args[ait_op_param(row, "dtype")] = ait_arg_dtype(f->g->values[value].dtype);
  f->g->values[value].def = NULL;
  return ait_graph_add_node(f->g, n->next, row, row->name, 0, args, row->param_count, &value, 1, n->name, n->module, &made);
}

/* The node becomes its functional form; its results stay the values that they are. */
static ait_status make_functional(functionaliser *f, ait_node *n, const uint32_t statistics[2]) {
  enum { TRAINING = 5, ARGS = 8, RESULTS = 5 };
  const ait_op *row = ait_op_find("aten._native_batch_norm_legit_functional");
  ait_arg *args = AIT_ARENA_ARRAY(f->g->arena, ait_arg, ARGS);
  uint32_t *results = AIT_ARENA_ARRAY(f->g->arena, uint32_t, RESULTS);
  if (!args || !results) return AIT_OOM();
  memcpy(args, n->args, TRAINING * sizeof *args); /* input, weight, bias and the two statistics */
  args[TRAINING] = ait_arg_bool(trains(n));
  args[TRAINING + 1] = n->args[ait_op_param(n->op, "momentum")];
  args[TRAINING + 2] = n->args[ait_op_param(n->op, "eps")];
  for (uint32_t i = 0; i < 3; ++i) results[i] = i < n->result_count ? n->results[i] : AIT_NO_INDEX;
  if (n->result_count > 3 && n->results[3] != AIT_NO_INDEX) AIT_TRY(emit_reserve(f, n, n->results[3]));
  for (uint32_t i = 0; i < 2; ++i) {
    results[3 + i] = statistics[i];
    f->g->values[statistics[i]].def = n;
    f->g->values[statistics[i]].def_index = 3 + i;
  }
  n->op = row;
  n->op_name = row->name;
  n->args = args;
  n->arg_count = ARGS;
  n->results = results;
  n->result_count = RESULTS;
  f->changed = true;
  return AIT_OK;
}

/* `targets`: the statistics as the program names them, before what they hold now took their place among the arguments. */
static ait_status rewrite_statistics(functionaliser *f, ait_node *n, const ait_arg targets[2]) {
  uint32_t statistics[2];
  bool writes = trains(n);
  for (int i = 0; i < 2; ++i) {
    if (targets[i].kind != AIT_ARG_VALUE) return refuse(f, n, "it has one running statistic only");
    AIT_TRY(new_statistic(f, targets[i].as.value, &statistics[i]));
  }
  AIT_TRY(make_functional(f, n, statistics));
  f->w.at = n->next; /* views are inverted behind the node */
  for (int i = 0; i < 2 && writes; ++i) AIT_TRY(write_value(f, n, targets[i].as.value, statistics[i]));
  f->w.at = n;
  return AIT_OK;
}

/* pow_.Scalar has a row of its own: the functional operator, and the write. */
static void name_inplace(ait_node *n) {
  bool polygamma = strcmp(n->op->name, "aten.polygamma_") == 0 && n->arg_count == 2; /* (self, n), where polygamma has (n, self) */
  if (!polygamma && strcmp(n->op->name, "aten.pow_.Scalar")) return;
  if (polygamma) {
    ait_arg order = n->args[1];
    n->args[1] = n->args[0];
    n->args[0] = order;
  }
  n->op = ait_op_find(polygamma ? "aten.polygamma" : "aten.pow.Tensor_Scalar");
  n->op_name = n->op->name;
  n->flags |= AIT_NODE_INPLACE;
}

static ait_status visit(functionaliser *f, ait_node *n, int depth) {
  uint32_t target = n->arg_count && n->args[0].kind == AIT_ARG_VALUE ? n->args[0].as.value : AIT_NO_INDEX;
  f->w = ait_rewrite_at(f->g, f->context, n);
  AIT_TRY(nested_graphs(f, n, depth));
  name_inplace(n);
  bool statistics = is_batch_norm(n) && n->args[3].kind != AIT_ARG_NONE && (trains(n) || (n->op->traits & AIT_OP_MUTATES));
  ait_arg running[2] = {ait_arg_none(), ait_arg_none()};
  if (statistics) memcpy(running, &n->args[3], sizeof running);
  if (trains_otherwise(n)) return refuse(f, n, "it updates running statistics: the model was exported in training mode");
  if ((n->op->traits & AIT_OP_MUTATES) && !statistics) return refuse(f, n, "it writes into its arguments in a way that is not modelled");
  const ait_op *writing;
  uint32_t targets[AIT_CUSTOM_PARAM_LIMIT];
  AIT_TRY(writing_schema(n, &writing));
  for (uint32_t i = 0; writing && i < n->arg_count; ++i) targets[i] = n->args[i].kind == AIT_ARG_VALUE ? n->args[i].as.value : AIT_NO_INDEX;
  for (uint32_t i = 0; i < n->arg_count; ++i) AIT_TRY(current_arg(f, n, &n->args[i], 0));
  uint32_t results = n->result_count;
  if (writing) AIT_TRY(rewrite_custom(f, n, writing, targets));
  if (n->flags & AIT_NODE_INPLACE) {
    if (target == AIT_NO_INDEX || n->result_count != 1 || f->g->values[target].type != AIT_TYPE_TENSOR)
      return refuse(f, n, "it does not write into a tensor");
    if (!ait_same_shape(&f->g->values[n->results[0]], &f->g->values[target])) return rewrite_reshaped(f, n, target);
    return rewrite_inplace(f, n, target);
  }
  if (statistics) AIT_TRY(rewrite_statistics(f, n, running));
  bool view = n->op->traits & AIT_OP_VIEW, maybe = n->op->traits & AIT_OP_MAYBE_VIEW;
  for (uint32_t i = 0; i < results; ++i) {
    uint32_t r = n->results[i];
    if (r == AIT_NO_INDEX) continue;
    bool from_tensor = target != AIT_NO_INDEX && alias_of(f, target);
    if (!strcmp(n->op->name, "_operator.getitem")) maybe = true; /* elements of lists that stayed: views of what the list was made of */
    if ((view || maybe) && from_tensor && i == 0) make_view(f, r, target, n, !view);
    else make_root(f, r);
  }
  return AIT_OK;
}

/* ---- inputs and outputs ----------------------------------------------------------------------------------------------------------*/
static ait_status check_shared_storage(functionaliser *f, const ait_region_input *written) {
  const ait_weight_store *store = f->g->root->weights;
  const ait_weight *w = store ? ait_weight_store_find(store, written->name) : NULL;
  if (!w) return AIT_OK;
  for (size_t i = 0; i < f->g->input_count; ++i) {
    const ait_region_input *other = &f->g->inputs[i];
    if (other == written || other->kind == AIT_INPUT_USER || !other->name || other->value == AIT_NO_INDEX) continue;
    const ait_weight *o = ait_weight_store_find(store, other->name);
    if (o && o->storage == w->storage)
      return ait_error(AIT_CODE_UNSUPPORTED, "buffer '%s' is written and shares its storage with '%s'", written->name, other->name);
  }
  return AIT_OK;
}

static ait_status add_state_outputs(functionaliser *f) {
  size_t user_outputs = f->g->output_count;
  for (size_t i = 0; i < f->g->input_count; ++i) {
    ait_region_input *in = &f->g->inputs[i];
    if (in->value == AIT_NO_INDEX) continue;
    alias *a = alias_of(f, in->value);
    if (a && a->lost)
      return ait_error(AIT_CODE_UNSUPPORTED, "input '%s' may or may not be written, through what may or may not be a view of it",
                       in->name ? in->name : "?");
    if (!a || !a->version) continue;
    if (f->g->root != f->g)
      return ait_error(AIT_CODE_UNSUPPORTED, "a nested graph writes into its operand '%s'", in->name ? in->name : "?");
    if (in->kind != AIT_INPUT_USER) AIT_TRY(check_shared_storage(f, in));
    ait_region_output out = {.arg = ait_arg_value(a->current), .name = in->name, .user_index = in->user_index};
    out.kind = in->kind == AIT_INPUT_USER ? AIT_OUTPUT_INPUT : AIT_OUTPUT_STATE;
    for (size_t k = 0; k < user_outputs; ++k)
      if (f->g->outputs[k].kind == out.kind && f->g->outputs[k].name && in->name && !strcmp(f->g->outputs[k].name, in->name))
        return ait_error(AIT_CODE_UNSUPPORTED, "'%s' is written in place and has a mutation output, too", in->name);
    in->mutated = true;
    AIT_TRY(ait_graph_add_output(f->g, &out));
  }
  return AIT_OK;
}

static ait_status functionalise_graph(ait_graph *g, const ait_pass_context *context, bool *changed, int depth) {
  if (depth > GRAPH_DEPTH_LIMIT) return ait_error(AIT_CODE_LIMIT, "graphs are nested more than %d deep", GRAPH_DEPTH_LIMIT);
  functionaliser f = {.g = g, .context = context, .count = g->value_count};
  f.aliases = ait_alloc_zero(context->allocator, (f.count + 1) * sizeof *f.aliases, _Alignof(alias));
  if (!f.aliases) return AIT_OOM();
  ait_status status = AIT_OK;
  for (size_t i = 0; i < g->input_count; ++i)
    if (g->inputs[i].value != AIT_NO_INDEX && g->values[g->inputs[i].value].type == AIT_TYPE_TENSOR) make_root(&f, g->inputs[i].value);
  for (ait_node *n = g->first, *next; n && status == AIT_OK; n = next) {
    next = n->next;
    status = visit(&f, n, depth);
  }
  ait_node end = {.op_name = "output", .name = "output"};
  f.w = (ait_rewrite){.graph = g, .context = context, .name = "output", .module = AIT_NO_INDEX};
  for (size_t i = 0; i < g->output_count && status == AIT_OK; ++i)
    if (g->outputs[i].arg.kind == AIT_ARG_VALUE) status = current_of(&f, g->outputs[i].arg.as.value, &end, &g->outputs[i].arg.as.value);
  if (status == AIT_OK) status = add_state_outputs(&f);
  *changed |= f.changed;
  ait_free(context->allocator, f.aliases, (f.count + 1) * sizeof *f.aliases);
  return status;
}

ait_status ait_pass_functionalise(ait_graph *g, const ait_pass_context *context, bool *changed) {
  return functionalise_graph(g, context, changed, 0);
}
