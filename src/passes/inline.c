/* Regions that change nothing for inference become part of their surroundings: no-grad, and autocast where it is disabled. */
#include "passes/rewrite.h"

enum { DEPTH_LIMIT = 32 };

typedef struct region_call {
  const ait_graph *body;
  const ait_arg *operands;
  uint32_t operand_count;
} region_call;

/* set_grad: (bool, graph, operands…). autocast: (device, dtype, enabled, cache, graph, operands…). */
static bool as_region_call(const ait_node *n, region_call *out) {
  uint32_t at;
  if (!strcmp(n->op->name, "higher_order.wrap_with_set_grad_enabled")) at = 1;
  else if (!strcmp(n->op->name, "higher_order.wrap_with_autocast") && n->arg_count > 4 && n->args[2].kind == AIT_ARG_BOOL &&
           !n->args[2].as.b)
    at = 4;
  else return false;
  if (n->arg_count <= at || n->args[at].kind != AIT_ARG_GRAPH) return false;
  *out = (region_call){n->args[at].as.graph, n->args + at + 1, n->arg_count - at - 1};
  if (out->operand_count == 1 && out->operands[0].kind == AIT_ARG_LIST && out->body->input_count != 1)
    *out = (region_call){out->body, n->args[at + 1].as.list, n->args[at + 1].count};
  return out->operand_count == out->body->input_count;
}

typedef struct inliner {
  ait_rewrite w;
  const ait_graph *body;
  ait_arg *map; /* body value -> argument in the outer graph */
} inliner;

static ait_status translate(inliner *x, const ait_arg *a, ait_arg *out, int depth) {
  *out = *a;
  if (depth > DEPTH_LIMIT) return ait_error(AIT_CODE_LIMIT, "lists are nested too deep");
  if (a->kind == AIT_ARG_VALUE) *out = x->map[a->as.value];
  if (a->kind != AIT_ARG_LIST) return AIT_OK;
  ait_arg *list = AIT_ARENA_ARRAY(x->w.graph->arena, ait_arg, a->count ? a->count : 1);
  if (!list) return AIT_OOM();
  for (uint32_t i = 0; i < a->count; ++i) AIT_TRY(translate(x, &a->as.list[i], &list[i], depth + 1));
  out->as.list = list;
  return AIT_OK;
}

static ait_status copy_node(inliner *x, const ait_node *n) {
  ait_graph *g = x->w.graph;
  ait_arg *args = AIT_ARENA_ARRAY(g->arena, ait_arg, n->arg_count ? n->arg_count : 1);
  uint32_t *results = AIT_ARENA_ARRAY(g->arena, uint32_t, n->result_count ? n->result_count : 1);
  ait_node *copy;
  if (!args || !results) return AIT_OOM();
  for (uint32_t i = 0; i < n->arg_count; ++i) AIT_TRY(translate(x, &n->args[i], &args[i], 0));
  for (uint32_t i = 0; i < n->result_count; ++i) {
    results[i] = n->results[i];
    if (n->results[i] == AIT_NO_INDEX) continue;
    const ait_value_info *info = &x->body->values[n->results[i]];
    AIT_TRY(ait_graph_add_value(g, info->name, info, &results[i]));
    x->map[n->results[i]] = ait_arg_value(results[i]);
  }
  return ait_graph_add_node(g, x->w.at, n->op, n->op_name, n->flags, args, n->arg_count, results, n->result_count, n->name, n->module,
                            &copy);
}

/* A result of the region: a value of the outer graph, or a constant, in the place of the node's result. */
static void replace_result(ait_graph *g, uint32_t old, const ait_arg *with) {
  if (with->kind == AIT_ARG_VALUE) ait_graph_replace_uses(g, old, with->as.value);
}

static ait_status inline_call(ait_graph *g, const ait_pass_context *context, ait_node *n, const region_call *call) {
  inliner x = {.w = ait_rewrite_at(g, context, n), .body = call->body};
  x.map = AIT_ARENA_ARRAY(g->arena, ait_arg, call->body->value_count + 1);
  if (!x.map) return AIT_OOM();
  for (size_t i = 0; i < call->body->input_count; ++i)
    if (call->body->inputs[i].value != AIT_NO_INDEX) x.map[call->body->inputs[i].value] = call->operands[i];
  for (const ait_node *b = call->body->first; b; b = b->next) AIT_TRY(copy_node(&x, b));
  for (uint32_t i = 0; i < n->result_count && i < call->body->output_count; ++i) {
    ait_arg with;
    if (n->results[i] == AIT_NO_INDEX) continue;
    AIT_TRY(translate(&x, &call->body->outputs[i].arg, &with, 0));
    replace_result(g, n->results[i], &with);
  }
  ait_graph_remove_node(g, n);
  return AIT_OK;
}

/* All results must be values: a constant result has nothing to stand for it. */
static bool results_are_values(const region_call *call) {
  for (size_t i = 0; i < call->body->output_count; ++i)
    if (call->body->outputs[i].arg.kind != AIT_ARG_VALUE) return false;
  return true;
}

static ait_status run_graph(ait_graph *g, const ait_pass_context *context, bool *changed, int depth) {
  if (depth > DEPTH_LIMIT) return ait_error(AIT_CODE_LIMIT, "graphs are nested more than %d deep", DEPTH_LIMIT);
  for (ait_node *n = g->first, *next; n; n = next) {
    next = n->next;
    for (uint32_t i = 0; i < n->arg_count; ++i)
      if (n->args[i].kind == AIT_ARG_GRAPH) AIT_TRY(run_graph((ait_graph *)(uintptr_t)n->args[i].as.graph, context, changed, depth + 1));
    region_call call;
    if (!as_region_call(n, &call) || !results_are_values(&call) || n->result_count > call.body->output_count) continue;
    AIT_TRY(inline_call(g, context, n, &call));
    *changed = true;
  }
  return AIT_OK;
}

ait_status ait_pass_inline(ait_graph *g, const ait_pass_context *context, bool *changed) { return run_graph(g, context, changed, 0); }
