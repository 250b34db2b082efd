/* Higher-order operators: their arguments are graphs. Operands are passed explicitly. */
#include "backends/reference/blocks.h"
#include "backends/reference/interp.h"
#include "backends/reference/shapes.h"

/* ---- lists of values --------------------------------------------------------------------------------------------------------- */
typedef struct value_list {
  ait_ref_value *items;
  uint32_t count;
} value_list;

static ait_status list_create(const ait_ref_call *call, uint32_t count, value_list *out) {
  *out = (value_list){ait_alloc_zero(call->allocator, count * sizeof(ait_ref_value), _Alignof(ait_ref_value)), count};
  return out->items ? AIT_OK : AIT_OOM();
}

static void list_release(const ait_ref_call *call, value_list *list) {
  for (uint32_t i = 0; list->items && i < list->count; ++i) ait_ref_value_release(call->allocator, &list->items[i]);
  ait_free(call->allocator, list->items, list->count * sizeof *list->items);
  *list = (value_list){0};
}

static const ait_arg *arg_at(const ait_ref_call *call, uint32_t arg) {
  static const ait_arg none = {.kind = AIT_ARG_NONE};
  return arg < call->node->arg_count ? &call->node->args[arg] : &none;
}

static uint32_t list_length(const ait_ref_call *call, uint32_t arg) {
  const ait_arg *a = arg_at(call, arg);
  return a->kind == AIT_ARG_LIST ? a->count : a->kind == AIT_ARG_NONE ? 0 : 1;
}

/* The elements of list argument `arg`, appended at *at. */
static ait_status list_append_arg(const ait_ref_call *call, uint32_t arg, value_list *list, uint32_t *at) {
  const ait_arg *a = arg_at(call, arg);
  if (a->kind == AIT_ARG_NONE) return AIT_OK;
  if (a->kind != AIT_ARG_LIST) return ait_ref_arg_value(call, a, &list->items[(*at)++]);
  for (uint32_t i = 0; i < a->count; ++i) AIT_TRY(ait_ref_arg_value(call, &a->as.list[i], &list->items[(*at)++]));
  return AIT_OK;
}

static ait_status list_from_arg(const ait_ref_call *call, uint32_t arg, value_list *out) {
  uint32_t at = 0;
  AIT_TRY(list_create(call, list_length(call, arg), out));
  return list_append_arg(call, arg, out, &at);
}

static ait_status list_append_copies(const ait_ref_call *call, const value_list *from, value_list *list, uint32_t *at) {
  for (uint32_t i = 0; i < from->count; ++i) AIT_TRY(ait_ref_value_retain(call->allocator, &from->items[i], &list->items[(*at)++]));
  return AIT_OK;
}

static ait_status graph_arg(const ait_ref_call *call, uint32_t arg, const ait_region **out) {
  const ait_arg *a = arg_at(call, arg);
  if (a->kind != AIT_ARG_GRAPH) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "argument %u is not a graph", arg);
  *out = a->as.graph;
  return AIT_OK;
}

/* Calls a graph; *outputs is created. */
static ait_status call_graph(const ait_ref_call *call, const ait_region *graph, const value_list *inputs, bool autocast,
                             value_list *outputs) {
  AIT_TRY(list_create(call, graph->output_count, outputs));
  ait_status status = ait_ref_call_region(call, graph, inputs->items, inputs->count, autocast, outputs->items);
  if (status != AIT_OK) list_release(call, outputs);
  return status;
}

/* The values become the node's results, in order. */
static ait_status give_results(ait_ref_call *call, value_list *values, uint32_t first) {
  for (uint32_t i = 0; i < values->count && first + i < call->node->result_count; ++i) {
    ait_ref_value_release(call->allocator, &call->results[first + i]);
    call->results[first + i] = values->items[i];
    values->items[i] = (ait_ref_value){0};
  }
  return AIT_OK;
}

static ait_status truth_of(const ait_ref_call *call, const ait_ref_value *v, bool *out) {
  if (v->type == AIT_TYPE_BOOL) *out = v->as.b;
  else if (v->type == AIT_TYPE_INT) *out = v->as.i != 0;
  else if (v->type == AIT_TYPE_TENSOR && ait_tensor_count(&v->as.tensor) == 1) {
    *out = ait_element_f64(v->as.tensor.data, v->as.tensor.dtype) != 0;
  } else return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "the condition is no truth value");
  return AIT_OK;
}

/* ---- branches and wrappers --------------------------------------------------------------------------------------------------- */
/* (pred, true_graph, false_graph, [operands]) */
ait_status ait_ref_branch(ait_ref_call *call) {
  bool pred;
  const ait_region *branch;
  value_list inputs = {0}, outputs = {0};
  AIT_TRY(ait_ref_bool(call, 0, &pred));
  AIT_TRY(graph_arg(call, pred ? 1 : 2, &branch));
  ait_status status = list_from_arg(call, 3, &inputs);
  if (status == AIT_OK) status = call_graph(call, branch, &inputs, false, &outputs);
  if (status == AIT_OK) status = give_results(call, &outputs, 0);
  list_release(call, &inputs);
  list_release(call, &outputs);
  return status;
}

/* A graph with operands that follow it one by one. */
static ait_status call_wrapped(ait_ref_call *call, uint32_t graph_at, bool autocast) {
  const ait_region *graph;
  value_list inputs = {0}, outputs = {0};
  uint32_t at = 0, count = 0;
  ait_status status = AIT_OK;
  AIT_TRY(graph_arg(call, graph_at, &graph));
  for (uint32_t i = graph_at + 1; i < call->node->arg_count; ++i) count += list_length(call, i);
  AIT_TRY(list_create(call, count, &inputs));
  for (uint32_t i = graph_at + 1; i < call->node->arg_count && status == AIT_OK; ++i) status = list_append_arg(call, i, &inputs, &at);
  if (status == AIT_OK) status = call_graph(call, graph, &inputs, autocast, &outputs);
  if (status == AIT_OK) status = give_results(call, &outputs, 0);
  list_release(call, &inputs);
  list_release(call, &outputs);
  return status;
}

/* (enabled, graph, operands...): gradients do not exist here. */
ait_status ait_ref_wrap_with_set_grad_enabled(ait_ref_call *call) { return call_wrapped(call, 1, false); }

/* (device, dtype, enabled, cache, graph, operands...) */
ait_status ait_ref_wrap_with_autocast(ait_ref_call *call) {
  bool enabled;
  AIT_TRY(ait_ref_bool_or(call, 2, true, &enabled));
  return call_wrapped(call, 4, enabled);
}

/* (graph, operands...) and (graph, name, operands...) */
ait_status ait_ref_call_subgraph(ait_ref_call *call) {
  const ait_region *graph;
  AIT_TRY(graph_arg(call, 0, &graph));
  value_list inputs = {0}, outputs = {0};
  uint32_t first = arg_at(call, 1)->kind == AIT_ARG_STRING ? 2 : 1, at = 0, count = 0;
  for (uint32_t i = first; i < call->node->arg_count; ++i) count += list_length(call, i);
  AIT_TRY(list_create(call, count, &inputs));
  ait_status status = AIT_OK;
  for (uint32_t i = first; i < call->node->arg_count && status == AIT_OK; ++i) status = list_append_arg(call, i, &inputs, &at);
  if (status == AIT_OK) status = call_graph(call, graph, &inputs, false, &outputs);
  if (status == AIT_OK) status = give_results(call, &outputs, 0);
  list_release(call, &inputs);
  list_release(call, &outputs);
  return status;
}

/* (token, operator, its arguments...) -> new token, its results: order is kept anyway. */
ait_status ait_ref_with_effects(ait_ref_call *call) {
  const char *op = ait_ref_string(call, 1);
  ait_ref_fn fn = op ? ait_ref_find(op) : NULL;
  if (!fn) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "the reference backend has no operator '%s'", op ? op : "");
  const ait_region_node *node = call->node;
  ait_region_node inner = *node;
  inner.op = op;
  inner.args = node->args + 2;
  inner.arg_count = node->arg_count - 2;
  inner.results = node->results + (node->result_count ? 1 : 0);
  inner.result_count = node->result_count ? node->result_count - 1 : 0;
  ait_ref_call inner_call = *call;
  inner_call.node = &inner;
  inner_call.results = call->results + (node->result_count ? 1 : 0);
  return fn(&inner_call);
}

/* ---- loops ------------------------------------------------------------------------------------------------------------------- */
/* Replaces the first items by the outputs. */
static void carry_over(const ait_ref_call *call, value_list *state, value_list *outputs, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    ait_ref_value_release(call->allocator, &state->items[i]);
    state->items[i] = outputs->items[i];
    outputs->items[i] = (ait_ref_value){0};
  }
}

static ait_status loop_goes_on(const ait_ref_call *call, const ait_region *condition, const value_list *state, bool *out) {
  value_list outputs = {0};
  AIT_TRY(call_graph(call, condition, state, false, &outputs));
  ait_status status =
      outputs.count ? truth_of(call, &outputs.items[0], out) : ait_ref_error(call, AIT_CODE_INVALID_MODEL, "the condition has no result");
  list_release(call, &outputs);
  return status;
}

/* (cond_graph, body_graph, [carried], [additional]) */
ait_status ait_ref_while_loop(ait_ref_call *call) {
  const ait_region *condition, *body;
  value_list state = {0}, outputs = {0};
  uint32_t at = 0, carried = list_length(call, 2);
  bool more = false;
  ait_status status = AIT_OK;
  AIT_TRY(graph_arg(call, 0, &condition));
  AIT_TRY(graph_arg(call, 1, &body));
  if (body->output_count != carried) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "the body does not give what the loop carries");
  AIT_TRY(list_create(call, carried + list_length(call, 3), &state));
  AIT_GOTO(list_append_arg(call, 2, &state, &at));
  AIT_GOTO(list_append_arg(call, 3, &state, &at));
  for (;;) {
    AIT_GOTO(loop_goes_on(call, condition, &state, &more));
    if (!more) break;
    AIT_GOTO(call_graph(call, body, &state, false, &outputs));
    carry_over(call, &state, &outputs, carried);
    list_release(call, &outputs);
  }
  state.count = carried;
  AIT_GOTO(give_results(call, &state, 0));
cleanup:
  state.count = carried + list_length(call, 3);
  list_release(call, &state);
  list_release(call, &outputs);
  return status;
}

/* Element i along dim of each tensor. */
static ait_status append_slices(const ait_ref_call *call, const value_list *xs, int64_t dim, int64_t i, value_list *list, uint32_t *at) {
  for (uint32_t k = 0; k < xs->count; ++k) {
    if (xs->items[k].type != AIT_TYPE_TENSOR) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "what is mapped is not a tensor");
    const ait_tensor *t = &xs->items[k].as.tensor;
    int32_t d;
    AIT_TRY(ait_ref_dim(call, dim, t->rank, &d));
    if (t->rank == 0 || i >= t->shape[d]) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the mapped tensors have different sizes");
    ait_tensor slice = ait_ref_selected(t, d, i);
    slice.storage = ait_storage_retain(t->storage);
    list->items[(*at)++] = (ait_ref_value){.type = AIT_TYPE_TENSOR, .as.tensor = slice};
  }
  return AIT_OK;
}

static ait_status mapped_size(const ait_ref_call *call, const value_list *xs, int64_t dim, int64_t *out) {
  int32_t d;
  if (xs->count == 0 || xs->items[0].type != AIT_TYPE_TENSOR || xs->items[0].as.tensor.rank == 0)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "there is no tensor to go along");
  AIT_TRY(ait_ref_dim(call, dim, xs->items[0].as.tensor.rank, &d));
  *out = xs->items[0].as.tensor.shape[d];
  return AIT_OK;
}

/* Puts one step's results at place i of the stacked ones, which the first step makes. */
static ait_status stack_at(const ait_ref_call *call, value_list *stacked, const value_list *outputs, uint32_t first, int64_t i,
                           int64_t size) {
  for (uint32_t k = 0; k < stacked->count; ++k) {
    const ait_ref_value *v = &outputs->items[first + k];
    ait_ref_value *to = &stacked->items[k];
    if (v->type == AIT_TYPE_NONE) continue;
    if (v->type != AIT_TYPE_TENSOR) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "a step gives something that is not a tensor");
    const ait_tensor *t = &v->as.tensor;
    if (to->type == AIT_TYPE_NONE) {
      int64_t shape[AIT_MAX_RANK];
      if (t->rank == AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
      shape[0] = size;
      memcpy(shape + 1, t->shape, (size_t)t->rank * sizeof *shape);
      AIT_TRY(ait_ref_temp(call, t->dtype, t->rank + 1, shape, &to->as.tensor));
      to->type = AIT_TYPE_TENSOR;
    }
    ait_tensor part = ait_ref_selected(&to->as.tensor, 0, i);
    AIT_TRY(ait_ref_move(call, &part, t));
  }
  return AIT_OK;
}

/* No step ran: the stacked tensors are empty, of the shapes that the graph declares. */
static ait_status empty_stacks(const ait_ref_call *call, const ait_region *graph, uint32_t first, value_list *stacked) {
  for (uint32_t k = 0; k < stacked->count; ++k) {
    const ait_arg *arg = &graph->outputs[first + k].arg;
    if (arg->kind != AIT_ARG_VALUE || arg->as.value >= graph->value_count) continue;
    const ait_region_value *declared = &graph->values[arg->as.value];
    int64_t shape[AIT_MAX_RANK] = {0};
    if (declared->type != AIT_TYPE_TENSOR || declared->rank < 0 || declared->rank >= AIT_MAX_RANK)
      return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "no elements, and the shape of the results is not known");
    for (int32_t d = 0; d < declared->rank; ++d) {
      const ait_dim_expr *e = &graph->dims[declared->shape[d]];
      shape[d + 1] = e->op == AIT_DIM_CONST ? e->value : 0;
    }
    AIT_TRY(ait_ref_temp(call, ait_ref_widen(call, declared->dtype), declared->rank + 1, shape, &stacked->items[k].as.tensor));
    stacked->items[k].type = AIT_TYPE_TENSOR;
  }
  return AIT_OK;
}

typedef struct loop_plan {
  const ait_region *graph;
  value_list state, xs, additional; /* state: what is carried */
  int64_t dim;
  bool reverse;
} loop_plan;

static void loop_release(const ait_ref_call *call, loop_plan *p) {
  list_release(call, &p->state);
  list_release(call, &p->xs);
  list_release(call, &p->additional);
}

/* One step: graph(state..., xs[i]..., additional...). */
static ait_status loop_step(const ait_ref_call *call, const loop_plan *p, int64_t i, value_list *outputs) {
  value_list inputs;
  uint32_t at = 0;
  AIT_TRY(list_create(call, p->state.count + p->xs.count + p->additional.count, &inputs));
  ait_status status = list_append_copies(call, &p->state, &inputs, &at);
  if (status == AIT_OK) status = append_slices(call, &p->xs, p->dim, i, &inputs, &at);
  if (status == AIT_OK) status = list_append_copies(call, &p->additional, &inputs, &at);
  if (status == AIT_OK) status = call_graph(call, p->graph, &inputs, false, outputs);
  list_release(call, &inputs);
  return status;
}

static ait_status run_scan(ait_ref_call *call, loop_plan *p) {
  int64_t size;
  value_list stacked = {0}, outputs = {0};
  uint32_t carried = p->state.count;
  AIT_TRY(mapped_size(call, &p->xs, p->dim, &size));
  if (p->graph->output_count < carried) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "the graph does not give what the scan carries");
  ait_status status = AIT_OK;
  AIT_TRY(list_create(call, p->graph->output_count - carried, &stacked));
  for (int64_t k = 0; k < size; ++k) {
    int64_t i = p->reverse ? size - 1 - k : k;
    AIT_GOTO(loop_step(call, p, i, &outputs));
    AIT_GOTO(stack_at(call, &stacked, &outputs, carried, i, size));
    carry_over(call, &p->state, &outputs, carried);
    list_release(call, &outputs);
  }
  if (size == 0) AIT_GOTO(empty_stacks(call, p->graph, carried, &stacked));
  AIT_GOTO(give_results(call, &p->state, 0));
  AIT_GOTO(give_results(call, &stacked, carried));
cleanup:
  list_release(call, &outputs);
  list_release(call, &stacked);
  return status;
}

/* (graph, [xs], [additional]) */
ait_status ait_ref_map_impl(ait_ref_call *call) {
  loop_plan p = {0};
  AIT_TRY(graph_arg(call, 0, &p.graph));
  ait_status status = list_create(call, 0, &p.state);
  if (status == AIT_OK) status = list_from_arg(call, 1, &p.xs);
  if (status == AIT_OK) status = list_from_arg(call, 2, &p.additional);
  if (status == AIT_OK) status = run_scan(call, &p);
  loop_release(call, &p);
  return status;
}

/* What follows [init] and [xs]: torch 2.6 puts dim and reverse before the additional inputs. */
static ait_status scan_options(const ait_ref_call *call, uint32_t first, loop_plan *p) {
  for (uint32_t i = first; i < call->node->arg_count; ++i) {
    const ait_arg *a = &call->node->args[i];
    if (a->kind == AIT_ARG_INT) p->dim = a->as.i;
    else if (a->kind == AIT_ARG_BOOL) p->reverse = a->as.b;
    else if (a->kind == AIT_ARG_LIST) AIT_TRY(list_from_arg(call, i, &p->additional));
  }
  return AIT_OK;
}

/* (graph, [init], [xs], dim?, reverse?, [additional]) */
ait_status ait_ref_scan(ait_ref_call *call) {
  loop_plan p = {0};
  AIT_TRY(graph_arg(call, 0, &p.graph));
  ait_status status = list_from_arg(call, 1, &p.state);
  if (status == AIT_OK) status = list_from_arg(call, 2, &p.xs);
  if (status == AIT_OK) status = scan_options(call, 3, &p);
  if (status == AIT_OK) status = run_scan(call, &p);
  loop_release(call, &p);
  return status;
}

/* (graph, [xs], [additional]): y[0] = x[0], y[i] = graph(y[i-1], x[i]). */
static ait_status run_associative(ait_ref_call *call, loop_plan *p) {
  int64_t size;
  value_list stacked = {0}, outputs = {0};
  ait_status status = AIT_OK;
  AIT_TRY(mapped_size(call, &p->xs, 0, &size));
  if (p->graph->output_count != p->xs.count) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "the graph does not give what it takes");
  AIT_TRY(list_create(call, p->xs.count, &stacked));
  for (int64_t i = 0; i < size; ++i) {
    if (i == 0) {
      uint32_t at = 0;
      AIT_GOTO(list_create(call, p->xs.count, &p->state));
      AIT_GOTO(append_slices(call, &p->xs, 0, 0, &p->state, &at));
    } else {
      AIT_GOTO(loop_step(call, p, i, &outputs));
      carry_over(call, &p->state, &outputs, p->state.count);
      list_release(call, &outputs);
    }
    AIT_GOTO(stack_at(call, &stacked, &p->state, 0, i, size));
  }
  if (size == 0) AIT_GOTO(empty_stacks(call, p->graph, 0, &stacked));
  AIT_GOTO(give_results(call, &stacked, 0));
cleanup:
  list_release(call, &outputs);
  list_release(call, &stacked);
  return status;
}
ait_status ait_ref_associative_scan(ait_ref_call *call) {
  loop_plan p = {0};
  AIT_TRY(graph_arg(call, 0, &p.graph));
  ait_status status = list_from_arg(call, 1, &p.xs);
  if (status == AIT_OK) status = scan_options(call, 2, &p);
  if (status == AIT_OK) status = run_associative(call, &p);
  loop_release(call, &p);
  return status;
}
