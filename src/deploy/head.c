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

/* ---- models that give the logits of the last token only
 * ---------------------------------------------------------------------------------*/
enum { SAMPLE_LENGTH = 1000003 };

static int32_t token_dim(const dep_work *w, uint32_t v) {
  const ait_value_info *info = &w->g->values[v];
  for (int32_t d = 0; info->type == AIT_TYPE_TENSOR && d < info->rank; ++d)
    if (dep_is_sized_dim(w->g, info->shape[d], w->tokens_name)) return d;
  return -1;
}

/* -1, or T - 1. */
static bool is_last(const dep_work *w, const ait_arg *a) {
  int64_t symbols[64], value;
  ait_arg dim;
  if (!ait_arg_as_dim(w->g, a, &dim) || w->g->symbol_count > AIT_COUNT(symbols)) return false;
  if (dim.kind == AIT_ARG_INT) return dim.as.i == -1;
  for (size_t i = 0; i < w->g->symbol_count; ++i) symbols[i] = strcmp(w->g->symbols[i].name, w->tokens_name) ? 7 : SAMPLE_LENGTH;
  return ait_dim_eval(w->g->dims, symbols, dim.as.dim, &value) && value == SAMPLE_LENGTH - 1;
}

static bool is_minus_one(const ait_graph *g, const ait_arg *a) {
  ait_tensor t;
  return ait_arg_is_tensor(g, a) && ait_constant_tensor(g, a->as.value, &t) && ait_tensor_count(&t) == 1 &&
         ait_element_f64(t.data, t.dtype) == -1;
}

static bool picks_last(const dep_work *w, const ait_node *n) {
  int32_t dim = token_dim(w, n->args[0].as.value);
  int64_t along;
  if (!strcmp(n->op->name, "index") || !strcmp(n->op->name, "aten.index.Tensor")) {
    const ait_arg *list = &n->args[1];
    for (uint32_t i = 0; list->kind == AIT_ARG_LIST && i < list->count; ++i)
      if (list->as.list[i].kind != AIT_ARG_NONE) return (int32_t)i == dim && is_minus_one(w->g, &list->as.list[i]);
    return false;
  }
  if (n->arg_count < 3 || !ait_arg_as_int(w->g, &n->args[1], &along) || !ait_wrap_dim(&along, w->g->values[n->args[0].as.value].rank) ||
      along != dim)
    return false;
  if (!strcmp(n->op->name, "index_select")) return is_minus_one(w->g, &n->args[2]);
  return (!strcmp(n->op->name, "select") || !strcmp(n->op->name, "slice")) && is_last(w, &n->args[2]);
}

/* The same for one row as for many: works along the last dimension only, whatever stands before it. */
static bool takes_rows(const ait_graph *g, const ait_node *n) {
  static const char *const along_last[] = {"linear", "matmul", "layer_norm", "rms_norm"};
  bool known = n->op->traits & AIT_OP_POINTWISE;
  for (size_t i = 0; i < AIT_COUNT(along_last); ++i) known |= !strcmp(n->op->name, along_last[i]);
  for (uint32_t i = 1; i < n->arg_count; ++i) {
    if (!ait_arg_is_tensor(g, &n->args[i])) continue;
    const ait_value_info *v = &g->values[n->args[i].as.value];
    known &= v->def == NULL && v->rank <= (n->op->traits & AIT_OP_POINTWISE ? 1 : 2);
  }
  return known && n->result_count == 1 && n->arg_count && ait_arg_is_tensor(g, &n->args[0]);
}

ait_status dep_all_rows(dep_work *w) {
  ait_graph *g = w->g;
  ait_node *path[16];
  int count = 0;
  uint32_t v = g->outputs[0].arg.as.value;
  if (token_dim(w, v) >= 0) return AIT_OK;
  for (;;) {
    ait_node *n = g->values[v].def;
    if (!n || count == (int)AIT_COUNT(path) || !n->arg_count || !ait_arg_is_tensor(g, &n->args[0]))
      return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "no output holds logits: floats [batch, length, vocabulary]"),
                            "export with forward(input_ids) -> logits");
    v = n->args[0].as.value;
    if (token_dim(w, v) >= 0) {
      if (picks_last(w, n)) break;
      return ait_error(AIT_CODE_UNSUPPORTED, "the logits are not of each token, nor of the last: '%s' of node '%s' stands before them",
                       n->op->name, n->name);
    }
    if (!takes_rows(g, n))
      return ait_error(AIT_CODE_UNSUPPORTED, "the logits are of one token, and '%s' of node '%s' may not be made for all", n->op->name,
                       n->name);
    path[count++] = n;
  }
  while (count-- > 0) {
    ait_rewrite r = ait_rewrite_at(g, &w->context, path[count]);
    ait_arg args[16];
    if (path[count]->arg_count > AIT_COUNT(args)) return ait_error(AIT_CODE_LIMIT, "node '%s' has too many arguments", path[count]->name);
    memcpy(args, path[count]->args, path[count]->arg_count * sizeof *args);
    args[0] = ait_arg_value(v);
    AIT_TRY(ait_emit(&r, path[count]->op->name, args, path[count]->arg_count, &v));
  }
  g->outputs[0].arg = ait_arg_value(v);
  return AIT_OK;
}
