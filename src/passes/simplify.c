/* Identities of the core dialect: what gives back its operand, and chains that are one step. */
#include "passes/rewrite.h"

typedef struct simplifier {
  ait_rewrite w;
  ait_graph *g;
  ait_node *n;
} simplifier;

/* The value that the node's result equals, or AIT_NO_INDEX. May emit. */
typedef ait_status (*simplify_fn)(simplifier *s, uint32_t *out);

static const ait_value_info *result(const simplifier *s) { return &s->g->values[s->n->results[0]]; }
static const ait_value_info *operand(const simplifier *s) { return &s->g->values[s->n->args[0].as.value]; }

static ait_status same_dtype(simplifier *s, uint32_t *out) {
  if (operand(s)->dtype == result(s)->dtype) *out = s->n->args[0].as.value;
  return AIT_OK;
}

static ait_status same_shape(simplifier *s, uint32_t *out) {
  if (ait_shape_known(s->g, operand(s)) && ait_same_shape(operand(s), result(s))) *out = s->n->args[0].as.value;
  return AIT_OK;
}

static ait_status reshape(simplifier *s, uint32_t *out) {
  AIT_TRY(same_shape(s, out));
  ait_node *inner = ait_def_of(s->g, s->n->args[0].as.value, "reshape");
  if (*out != AIT_NO_INDEX || !inner) return AIT_OK;
  return AIT_EMIT(&s->w, out, "reshape", inner->args[0], s->n->args[1]);
}

static ait_status permute(simplifier *s, uint32_t *out) {
  const ait_arg *order = &s->n->args[1];
  ait_node *inner = ait_def_of(s->g, s->n->args[0].as.value, "permute");
  ait_arg composed[AIT_MAX_RANK];
  bool identity = true;
  for (uint32_t i = 0; i < order->count; ++i) {
    int64_t from = order->as.list[i].as.i;
    if (!ait_wrap_dim(&from, (int32_t)order->count)) return AIT_OK;
    composed[i] = inner ? inner->args[1].as.list[from] : ait_arg_int(from);
    identity &= composed[i].as.i == (int64_t)i;
  }
  if (identity) *out = inner ? inner->args[0].as.value : s->n->args[0].as.value;
  else if (inner) return AIT_EMIT(&s->w, out, "permute", inner->args[0], ait_arg_list(composed, order->count));
  return AIT_OK;
}

static ait_status single_cat(simplifier *s, uint32_t *out) {
  if (s->n->args[0].count == 1) *out = s->n->args[0].as.list[0].as.value;
  return AIT_OK;
}

/* x * 1, x / 1: exact for every float. */
static ait_status times_one(simplifier *s, uint32_t *out) {
  double one;
  if (!ait_arg_is_tensor(s->g, &s->n->args[0]) || !ait_arg_as_number(s->g, &s->n->args[1], &one) || one != 1) return AIT_OK;
  return same_dtype(s, out);
}

static ait_status clamp(simplifier *s, uint32_t *out) {
  if (s->n->args[1].kind == AIT_ARG_NONE && s->n->args[2].kind == AIT_ARG_NONE) return same_dtype(s, out);
  return AIT_OK;
}

/* Equal shapes do not tell: what is cut off at one end may have been added at the other. */
static ait_status no_pads(simplifier *s, uint32_t *out) {
  int64_t pads[AIT_MAX_RANK];
  uint32_t count;
  if (!ait_arg_as_ints(s->g, &s->n->args[1], pads, &count)) return AIT_OK;
  for (uint32_t i = 0; i < count; ++i)
    if (pads[i] != 0) return AIT_OK;
  return same_shape(s, out);
}

static const struct {
  const char *op;
  simplify_fn run;
} rows[] = {
    {"cast", same_dtype}, {"reshape", reshape}, {"expand", same_shape}, {"slice", same_shape}, {"permute", permute},
    {"cat", single_cat},  {"mul", times_one},   {"div", times_one},     {"clamp", clamp},      {"pad", no_pads},
};

ait_status ait_pass_simplify(ait_graph *g, const ait_pass_context *context, bool *changed) {
  if (g->dialect != AIT_DIALECT_CORE) return AIT_OK;
  for (ait_node *n = g->first, *next; n; n = next) {
    next = n->next;
    if (n->result_count != 1 || n->results[0] == AIT_NO_INDEX) continue;
    simplifier s = {.w = ait_rewrite_at(g, context, n), .g = g, .n = n};
    uint32_t value = AIT_NO_INDEX;
    for (size_t r = 0; r < AIT_COUNT(rows); ++r)
      if (!strcmp(rows[r].op, n->op->name)) AIT_TRY(rows[r].run(&s, &value));
    if (value == AIT_NO_INDEX) continue;
    AIT_TRY(ait_replace_value(g, n->results[0], value));
    ait_graph_remove_node(g, n);
    *changed = true;
  }
  return AIT_OK;
}
