/* Equal pure nodes become one: same operator, same arguments. */
#include "passes/rewrite.h"

static uint64_t hash_arg(const ait_graph *g, const ait_arg *a, uint64_t seed) {
  uint64_t h = ait_hash(&a->kind, sizeof a->kind, seed);
  switch (a->kind) {
    case AIT_ARG_NONE: return h;
    case AIT_ARG_STRING: return ait_hash(a->as.string, strlen(a->as.string), h);
    case AIT_ARG_BOOL: return ait_hash(&a->as.b, sizeof a->as.b, h);
    case AIT_ARG_VALUE: return ait_hash(&a->as.value, sizeof a->as.value, h);
    case AIT_ARG_DIM: return ait_hash(&a->as.dim, sizeof a->as.dim, h);
    case AIT_ARG_COMPLEX: return ait_hash(a->as.complex, sizeof a->as.complex, h);
    case AIT_ARG_LIST:
      for (uint32_t i = 0; i < a->count; ++i) h = hash_arg(g, &a->as.list[i], h);
      return h;
    default: return ait_hash(&a->as.i, sizeof a->as.i, h);
  }
}

static bool mergeable(const ait_node *n) {
  return !(n->flags & AIT_NODE_INPLACE) && !n->op->variadic &&
         !(n->op->traits & (AIT_OP_EFFECT | AIT_OP_MUTATES | AIT_OP_RANDOM | AIT_OP_HIGHER | AIT_OP_UNINIT));
}

static bool same_node(const ait_graph *g, const ait_node *a, const ait_node *b) {
  if (a->op != b->op || a->arg_count != b->arg_count || a->result_count != b->result_count) return false;
  for (uint32_t i = 0; i < a->arg_count; ++i)
    if (!ait_arg_equal(&a->args[i], &b->args[i])) return false;
  for (uint32_t i = 0; i < a->result_count; ++i) {
    if ((a->results[i] == AIT_NO_INDEX) != (b->results[i] == AIT_NO_INDEX)) return false;
    if (a->results[i] != AIT_NO_INDEX && g->values[a->results[i]].dtype != g->values[b->results[i]].dtype) return false;
  }
  return true;
}

static uint64_t hash_node(const ait_graph *g, const ait_node *n) {
  uint64_t h = ait_hash(&n->op->id, sizeof n->op->id, 0);
  for (uint32_t i = 0; i < n->arg_count; ++i) h = hash_arg(g, &n->args[i], h);
  return h;
}

ait_status ait_pass_cse(ait_graph *g, const ait_pass_context *context, bool *changed) {
  if (g->dialect != AIT_DIALECT_CORE) return AIT_OK; /* raw tensors alias: equal nodes may see different contents */
  size_t slots = 16;
  while (slots < 2 * g->node_count) slots *= 2;
  ait_node **table = ait_alloc_zero(context->allocator, slots * sizeof *table, _Alignof(ait_node *));
  if (!table) return AIT_OOM();
  for (ait_node *n = g->first, *next; n; n = next) {
    next = n->next;
    if (!mergeable(n)) continue;
    size_t at = hash_node(g, n) & (slots - 1);
    while (table[at] && !same_node(g, table[at], n)) at = (at + 1) & (slots - 1);
    if (!table[at]) {
      table[at] = n;
      continue;
    }
    for (uint32_t i = 0; i < n->result_count; ++i)
      if (n->results[i] != AIT_NO_INDEX) ait_graph_replace_uses(g, n->results[i], table[at]->results[i]);
    ait_graph_remove_node(g, n);
    *changed = true;
  }
  ait_free(context->allocator, table, slots * sizeof *table);
  return AIT_OK;
}
