/* Removes nodes whose results nothing uses. Effects (assertions), mutation and randomness that is kept as state stay. */
#include "passes/rewrite.h"

typedef struct counter {
  uint32_t *uses;
} counter;

static void release(void *ctx, uint32_t value) { --((counter *)ctx)->uses[value]; }

static bool removable(const ait_node *n, const uint32_t *uses) {
  if (n->flags & AIT_NODE_INPLACE) return false;
  if (n->op->traits & (AIT_OP_EFFECT | AIT_OP_MUTATES)) return false;
  if (n->op->traits & AIT_OP_HIGHER) return false; /* nested graphs may assert or mutate */
  for (uint32_t i = 0; i < n->result_count; ++i)
    if (n->results[i] != AIT_NO_INDEX && uses[n->results[i]]) return false;
  return true;
}

ait_status ait_pass_dce(ait_graph *g, const ait_pass_context *context, bool *changed) {
  counter c;
  AIT_TRY(ait_graph_count_uses(g, context->allocator, &c.uses));
  size_t count = g->value_count;
  for (ait_node *n = g->last, *prev; n; n = prev) {
    prev = n->prev;
    if (!removable(n, c.uses)) continue;
    ait_node_each_operand(n, release, &c);
    ait_graph_remove_node(g, n);
    *changed = true;
  }
  ait_free(context->allocator, c.uses, count * sizeof *c.uses);
  return AIT_OK;
}
