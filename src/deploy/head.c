/* Only rows whose logits are wanted reach the last projection. */
#include "deploy/internal.h"

/* Node that reads the tokens' values through operand 0 only, and treats each by itself. */
static bool is_simple(const dep_work *w, const ait_node *n) {
  for (uint32_t i = 1; i < n->arg_count; ++i)
    if (ait_arg_is_tensor(w->g, &n->args[i]) && w->labels[n->args[i].as.value].kind != DEP_FIXED) return false;
  return n->result_count == 1 && n->arg_count && ait_arg_is_tensor(w->g, &n->args[0]);
}

/* The value that the last projection reads: walking back from the logits over simple nodes up to a product with weights. */
static uint32_t before_projection(const dep_work *w, uint32_t logits) {
  uint32_t v = logits;
  for (int i = 0; i < 16; ++i) {
    const ait_node *n = w->g->values[v].def;
    if (!n || !is_simple(w, n)) break;
    bool product = !strcmp(n->op->name, "linear") || !strcmp(n->op->name, "matmul");
    v = n->args[0].as.value;
    if (product) return v;
  }
  return logits;
}

/* From the chosen value to the logits all nodes are made again for R rows: their shapes change. */
static ait_status rebuild(dep_work *w, uint32_t from, uint32_t fresh, uint32_t logits, ait_dim rows, uint32_t *out) {
  ait_node *path[16];
  int count = 0;
  for (uint32_t v = logits; v != from; v = path[count++]->args[0].as.value) path[count] = w->g->values[v].def;
  *out = fresh;
  while (count-- > 0) {
    ait_node *n = path[count];
    ait_rewrite r = ait_rewrite_at(w->g, &w->context, n);
    ait_arg args[16];
    if (n->arg_count > AIT_COUNT(args)) return ait_error(AIT_CODE_LIMIT, "node '%s' has too many arguments", n->name);
    memcpy(args, n->args, n->arg_count * sizeof *args);
    args[0] = ait_arg_value(*out);
    ait_arg shape[AIT_MAX_RANK];
    if (!strcmp(n->op->name, "reshape") || !strcmp(n->op->name, "expand")) {
      const ait_value_info *v = &w->g->values[n->results[0]];
      for (int32_t d = 0; d < v->rank; ++d) {
        bool tokens = dep_is_sized_dim(w->g, v->shape[d], w->tokens_name);
        shape[d] = tokens ? ait_dim_as_arg(w->g, rows) : ait_dim_as_arg(w->g, v->shape[d]);
      }
      args[1] = ait_arg_list(shape, (uint32_t)v->rank);
    }
    AIT_TRY(ait_emit(&r, n->op->name, args, n->arg_count, out));
  }
  return AIT_OK;
}

ait_status dep_select_rows(dep_work *w) {
  ait_graph *g = w->g;
  uint32_t logits = g->outputs[0].arg.as.value, from = before_projection(w, logits), picked, fresh;
  dep_label l = w->labels[from];
  const ait_value_info *before = &g->values[from];
  if (l.kind == DEP_MIXED && before->rank == 3 && before->shape[1] == g->values[w->tokens].shape[1]) /* without caches */
    l = (dep_label){.kind = DEP_TOKEN, .dim = 1, .inner = 1};
  ait_dim rows;
  AIT_TRY(dep_symbol(w, "rows", &rows));
  AIT_TRY(dep_add_input(w, "rows", AIT_I64, 1, &rows, &w->rows));
  if (l.kind != DEP_TOKEN || l.inner != 1) return ait_error(AIT_CODE_UNSUPPORTED, "the logits' rows are not tokens");
  ait_rewrite r = {.graph = g, .context = &w->context, .name = "rows", .module = AIT_NO_INDEX};
  r.at = g->values[from].def ? g->values[from].def->next : g->first;
  AIT_TRY(AIT_EMIT(&r, &picked, "index_select", ait_arg_value(from), ait_arg_int(l.dim), ait_arg_value(w->rows)));
  AIT_TRY(rebuild(w, from, picked, logits, rows, &fresh));
  int64_t vocab;
  const ait_value_info *v = &g->values[fresh];
  if (!ait_dim_is_const(g, v->shape[v->rank - 1], &vocab)) return ait_error(AIT_CODE_UNSUPPORTED, "the vocabulary's size is not fixed");
  ait_arg shape[2] = {ait_dim_as_arg(g, rows), ait_arg_int(vocab)};
  r.at = NULL;
  r.name = "logits";
  AIT_TRY(AIT_EMIT(&r, &fresh, "reshape", ait_arg_value(fresh), ait_arg_list(shape, 2)));
  AIT_TRY(ait_emit_cast(&r, fresh, AIT_F32, &fresh));
  g->outputs[0].arg = ait_arg_value(fresh);
  return AIT_OK;
}
