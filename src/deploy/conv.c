/* Causal depthwise convolutions over the tokens: conv with K - 1 zeros in front, by its own padding and a slice, or by a pad before it. */
#include "deploy/internal.h"
#include <stdio.h>

static bool no(dep_work *w, const char *why) {
  snprintf(w->near, sizeof w->near, "%s", why);
  return false;
}

typedef struct found {
  uint32_t x, result; /* [1, C, T] both; `result` is to be replaced */
  int64_t channels, taps;
} found;

static bool single(const ait_graph *g, const ait_arg *a, int64_t want) {
  int64_t list[AIT_MAX_RANK];
  uint32_t count;
  return ait_arg_as_ints(g, a, list, &count) && count == 1 && list[0] == want;
}

/* x padded in front by taps - 1 zeros: the value before the padding. */
static bool undo_pad(dep_work *w, uint32_t value, int64_t taps, uint32_t *out) {
  const ait_node *pad = ait_def_of(w->g, value, "pad");
  int64_t pads[AIT_MAX_RANK], left, right;
  double zero = 0;
  if (!pad || pad->args[1].kind != AIT_ARG_LIST || pad->args[1].count < 2) return false;
  for (uint32_t i = 2; i < pad->args[1].count && i < AIT_MAX_RANK; ++i)
    if (!ait_arg_as_int(w->g, &pad->args[1].as.list[i], &pads[i]) || pads[i]) return false;
  *out = pad->args[0].as.value;
  return ait_arg_as_int(w->g, &pad->args[1].as.list[0], &left) && ait_arg_as_int(w->g, &pad->args[1].as.list[1], &right) &&
         left == taps - 1 && right == 0 && (!ait_arg_as_number(w->g, &pad->args[2], &zero) || zero == 0);
}

/* The first T columns of the convolution's result, which is T + taps - 1 long. */
static bool find_slice(dep_work *w, const ait_node *n, uint32_t *out) {
  ait_dim t = w->g->values[w->tokens].shape[1];
  for (const ait_node *m = n->next; m; m = m->next) {
    int64_t dim, start;
    if (strcmp(m->op->name, "slice") || m->args[0].as.value != n->results[0]) continue;
    if (!ait_arg_as_int(w->g, &m->args[1], &dim) || !ait_wrap_dim(&dim, 3) || dim != 2 || !ait_arg_as_int(w->g, &m->args[2], &start) ||
        start)
      continue;
    if (w->g->values[m->results[0]].shape[2] != t) continue;
    *out = m->results[0];
    return true;
  }
  return false;
}

static bool read_conv(dep_work *w, const ait_node *n, found *f) {
  const ait_graph *g = w->g;
  const ait_value_info *x = &g->values[n->args[0].as.value], *k = &g->values[n->args[1].as.value];
  int64_t groups, per_group;
  if (x->rank != 3 || k->rank != 3 || w->labels[n->args[1].as.value].kind != DEP_FIXED) return no(w, "its weights are not fixed");
  if (!ait_dim_is_const(g, k->shape[0], &f->channels) || !ait_dim_is_const(g, k->shape[1], &per_group) ||
      !ait_dim_is_const(g, k->shape[2], &f->taps) || !ait_arg_as_int(g, &n->args[6], &groups))
    return no(w, "its sizes are not fixed");
  if (groups != f->channels || per_group != 1 || ait_arg_flag(&n->args[7]))
    return no(w, "it is not a convolution of each channel by itself");
  if (!single(g, &n->args[3], 1) || !single(g, &n->args[5], 1)) return no(w, "its stride or dilation is not one");
  f->x = n->args[0].as.value;
  f->result = n->results[0];
  if (single(g, &n->args[4], f->taps - 1)) {
    if (!find_slice(w, n, &f->result)) return no(w, "it sees later tokens: its result is not cut to the first T columns");
  } else if (!single(g, &n->args[4], 0) || !undo_pad(w, f->x, f->taps, &f->x))
    return no(w, "it is not padded in front by its length less one");
  const dep_label *l = &w->labels[f->x];
  return (l->kind == DEP_TOKEN && l->dim == 2 && l->inner == 1) || no(w, "its input's tokens do not lie along its last dimension");
}

typedef struct user {
  uint32_t value, count;
} user;

static void count_use(void *ctx, uint32_t v) {
  user *u = ctx;
  u->count += v == u->value;
}

/* The activation behind the convolution when nothing else reads its result: on rows it becomes part of the convolution's step. */
static bool sole_activation(const ait_node *conv, uint32_t value, uint32_t *out) {
  const ait_node *silu = NULL;
  user u = {value, 0};
  for (const ait_node *m = conv->next; m; m = m->next) {
    uint32_t before = u.count;
    ait_node_each_operand(m, count_use, &u);
    if (u.count > before && !strcmp(m->op->name, "silu")) silu = m;
  }
  if (u.count != 1 || !silu) return false;
  *out = silu->results[0];
  return true;
}

static ait_status build(dep_work *w, ait_node *n, const found *f, bool *out_matched) {
  ait_graph *g = w->g;
  ait_rewrite r = ait_rewrite_at(g, &w->context, n);
  ait_node *before = n->prev;
  uint32_t rows, weight, state, group, y, old = f->result;
  char name[32];
  ait_dim t = g->values[f->x].shape[2];
  ait_arg order[3] = {ait_arg_int(2), ait_arg_int(0), ait_arg_int(1)}, back[3] = {ait_arg_int(0), ait_arg_int(2), ait_arg_int(1)};
  ait_arg shape[2] = {ait_dim_as_arg(g, t), ait_arg_int(f->channels)}, taps[2] = {ait_arg_int(f->channels), ait_arg_int(f->taps)},
          turned[2] = {ait_arg_int(1), ait_arg_int(0)};
  ait_arg wide[3] = {ait_arg_int(1), ait_dim_as_arg(g, t), ait_arg_int(f->channels)};
  const int64_t sizes[3] = {0, f->taps - 1, f->channels};
  AIT_TRY(dep_find_group(w, AIT_LM_SLOTS, 0, &group));
  snprintf(name, sizeof name, "state.%u.conv", w->layers++);
  AIT_TRY(dep_add_state(w, name, group, AIT_F32, 3, sizes, &state));
  w->groups[group].layers++;
  AIT_TRY(AIT_EMIT(&r, &rows, "permute", ait_arg_value(f->x), ait_arg_list(order, 3)));
  AIT_TRY(AIT_EMIT(&r, &rows, "reshape", ait_arg_value(rows), ait_arg_list(shape, 2)));
  AIT_TRY(AIT_EMIT(&r, &weight, "reshape", n->args[1], ait_arg_list(taps, 2)));
  AIT_TRY(AIT_EMIT(&r, &weight, "permute", ait_arg_value(weight), ait_arg_list(turned, 2)));
  AIT_TRY(AIT_EMIT(&r, &y, "cached_conv1d", ait_arg_value(rows), ait_arg_value(weight), n->args[2], ait_arg_value(w->sequences),
                   ait_arg_value(state)));
  if (sole_activation(n, f->result, &old)) AIT_TRY(AIT_EMIT(&r, &y, "silu", ait_arg_value(y)));
  AIT_TRY(AIT_EMIT(&r, &y, "reshape", ait_arg_value(y), ait_arg_list(wide, 3)));
  AIT_TRY(AIT_EMIT(&r, &y, "permute", ait_arg_value(y), ait_arg_list(back, 3)));
  AIT_TRY(dep_prove(w, old, y, &f->x, 1, 0, 0, out_matched));
  if (!*out_matched) return AIT_OK;
  AIT_TRY(ait_replace_value(g, old, y));
  for (const ait_node *m = before ? before->next : g->first; m != n; m = m->next) AIT_TRY(dep_label_node(w, m));
  return AIT_OK;
}

ait_status dep_match_conv(dep_work *w, ait_node *n, bool *out_matched) {
  found f;
  *out_matched = false;
  return read_conv(w, n, &f) ? build(w, n, &f, out_matched) : AIT_OK;
}
