/* Raw to core: runs the rows over every node; what has no row stays, and runs on the portable path. */
#include "passes/lower.h"

bool ait_lower_unused(const ait_lower *l, uint32_t k) {
  if (k >= l->n->result_count || l->n->results[k] == AIT_NO_INDEX) return true;
  return l->n->results[k] < l->use_count && l->uses[l->n->results[k]] == 0;
}

bool ait_lower_tensor(const ait_lower *l, uint32_t k, uint32_t *out) {
  if (k >= l->n->arg_count || !ait_arg_is_tensor(l->g, &l->a[k])) return false;
  *out = l->a[k].as.value;
  return true;
}

ait_status ait_lower_cast_arg(ait_lower *l, uint32_t k, ait_dtype dtype, ait_arg *out) {
  uint32_t v;
  *out = l->a[k];
  if (!ait_lower_tensor(l, k, &v)) return AIT_OK;
  AIT_TRY(ait_emit_cast(&l->w, v, dtype, &v));
  *out = ait_arg_value(v);
  return AIT_OK;
}

ait_status ait_lower_done(ait_lower *l, uint32_t value) {
  uint32_t old = l->n->results[0];
  AIT_TRY(ait_emit_cast(&l->w, value, l->g->values[old].dtype, &value));
  AIT_TRY(ait_replace_value(l->g, old, value));
  ait_graph_remove_node(l->g, l->n);
  l->done = true;
  return AIT_OK;
}

static ait_status lower_with(ait_lower *l, const ait_lower_row *rows) {
  for (const ait_lower_row *r = rows; r->op && !l->done; ++r) {
    if (strcmp(r->op, l->n->op->name)) continue;
    l->core = r->core;
    AIT_TRY(r->run(l));
  }
  return AIT_OK;
}

static bool is_assertion_that_holds(const ait_node *n) {
  /* The file's own metadata: import has compared dtypes and ranks with it. */
  return !strcmp(n->op->name, "aten._assert_tensor_metadata");
}

static ait_status lower_graph(ait_graph *g, const ait_pass_context *context, bool *changed) {
  uint32_t *uses;
  size_t use_count = g->value_count;
  AIT_TRY(ait_graph_count_uses(g, context->allocator, &uses));
  ait_status status = AIT_OK;
  for (ait_node *n = g->first, *next; n && status == AIT_OK; n = next) {
    next = n->next;
    if (is_assertion_that_holds(n)) {
      ait_graph_remove_node(g, n);
      continue;
    }
    if (n->result_count == 0 || n->results[0] == AIT_NO_INDEX || g->values[n->results[0]].type != AIT_TYPE_TENSOR) continue;
    ait_lower l = {.w = ait_rewrite_at(g, context, n), .g = g, .n = n, .a = n->args, .uses = uses, .use_count = use_count};
    status = lower_with(&l, ait_lower_pointwise_rows);
    if (status == AIT_OK && !l.done) status = lower_with(&l, ait_lower_shape_rows);
    if (status == AIT_OK && !l.done) status = lower_with(&l, ait_lower_nn_rows);
    if (status == AIT_OK && !l.done) status = lower_with(&l, ait_lower_composite_rows);
    if (status != AIT_OK) status = ait_error_context(status, "node '%s' (%s)", n->name ? n->name : "?", n->op_name);
    *changed |= l.done;
  }
  ait_free(context->allocator, uses, use_count * sizeof *uses);
  return status;
}

/* In a core graph nothing writes: an in-place node would lose its write. */
static ait_status only_pure(const ait_graph *g) {
  for (const ait_node *n = g->first; n; n = n->next) {
    if (!(n->flags & AIT_NODE_INPLACE) && !(n->op->traits & AIT_OP_MUTATES)) continue;
    return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "node '%s' (%s) writes into its operand", n->name ? n->name : "?", n->op_name),
                          "run the pass 'functionalise' before");
  }
  return AIT_OK;
}

/* Nested graphs stay raw inside (they are pure by now): the portable path runs them. */
ait_status ait_pass_lower(ait_graph *g, const ait_pass_context *context, bool *changed) {
  AIT_TRY(only_pure(g));
  AIT_TRY(lower_graph(g, context, changed));
  g->dialect = AIT_DIALECT_CORE;
  return AIT_OK;
}
