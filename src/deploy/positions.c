/* Values that depend on sizes only. One whose rows do not depend on the length is a function of the position: a table, computed by the
 * oracle for the longest sequence, whatever formula the model has for it (any kind of rotary embedding and its scaling, learned positions).
 */
#include "deploy/internal.h"
#include <math.h>
#include <stdio.h>

typedef struct table {
  uint32_t value, replacement;
} table;

static const char *module_of(const ait_graph *g, uint32_t v) {
  const ait_node *n = g->values[v].def;
  return n && n->module != AIT_NO_INDEX && *g->modules[n->module].path ? g->modules[n->module].path : "the model";
}

/* The dim that is the length; -1: none; -2: it is not one plain dim. */
static int32_t length_dim(dep_work *w, uint32_t v) {
  const ait_value_info *info = &w->g->values[v];
  int32_t at = -1;
  for (int32_t d = 0; d < info->rank; ++d) {
    if (!dep_is_sized_dim(w->g, info->shape[d], w->tokens_name)) continue;
    const ait_dim_expr *e = &w->g->dims[info->shape[d]];
    at = at != -1 || e->op != AIT_DIM_SYMBOL ? -2 : d;
  }
  return at;
}

static ait_status compute(dep_work *w, uint32_t v, int64_t length, ait_tensor *out) {
  dep_eval e;
  ait_tensor t;
  AIT_TRY(dep_eval_begin(w->g, w->a, false, &e));
  dep_eval_size(&e, w->tokens_name, length);
  ait_status status = dep_eval_run(&e, v, &t);
  if (!status) status = ait_tensor_cast(w->a, &t, t.dtype, out);
  dep_eval_end(&e);
  return status;
}

static bool same_start(const ait_tensor *all, const ait_tensor *some, int32_t dim) {
  ait_tensor part = *all;
  if (dim >= 0) part.shape[dim] = some->shape[dim];
  return dep_difference(&part, some) <= 1e-7;
}

/* Equal for lengths up to max_seq; *worst: the length that differs. */
static ait_status is_steady(dep_work *w, uint32_t v, int32_t dim, const ait_tensor *all, int64_t *worst) {
  *worst = 0;
  for (int64_t length = 2; length < w->max_seq && !*worst; length = length * 3 + 1) {
    ait_tensor t;
    AIT_TRY(compute(w, v, length, &t));
    if (!same_start(all, &t, dim)) *worst = length;
    ait_tensor_release(&t);
  }
  return AIT_OK;
}

/* The longest sequence up to which the value is steady, by bisection. */
static ait_status longest_steady(dep_work *w, uint32_t v, int32_t dim, int64_t *out) {
  int64_t low = 2, high = w->max_seq;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    ait_tensor all, some;
    AIT_TRY(compute(w, v, middle, &all));
    ait_status status = compute(w, v, 2, &some);
    bool same = !status && same_start(&all, &some, dim);
    ait_tensor_release(&all);
    if (!status) ait_tensor_release(&some);
    AIT_TRY(status);
    if (same) low = middle;
    else high = middle;
  }
  *out = low;
  return AIT_OK;
}

static ait_status refuse(dep_work *w, uint32_t v, int32_t dim, int64_t length) {
  int64_t longest;
  AIT_TRY(longest_steady(w, v, dim, &longest));
  ait_status status =
      ait_error(AIT_CODE_UNSUPPORTED, "'%s' of %s depends on the length of the whole sequence: it is another at length %lld than at %lld",
                w->g->values[v].name, module_of(w->g, v), (long long)length, (long long)w->max_seq);
  return ait_error_hint(status, "it does not change up to --max-seq %lld", (long long)longest);
}

/* [.., T, ..] from a table [max_seq, rest]; at: which row of it each token has. */
static ait_status look_up(dep_work *w, const ait_rewrite *r, uint32_t v, int32_t dim, ait_tensor *all, uint32_t at, uint32_t *out) {
  ait_graph *g = w->g;
  int32_t rank = all->rank;
  ait_tensor turned = *all, plain;
  ait_arg shape[AIT_MAX_RANK], order[AIT_MAX_RANK];
  char name[32];
  uint32_t weight;
  for (int32_t d = 0, k = 1; d < rank; ++d) {
    int32_t to = d == dim ? 0 : k++;
    turned.shape[to] = all->shape[d];
    turned.strides[to] = all->strides[d];
    order[d] = ait_arg_int(to);
    shape[to] = ait_dim_as_arg(g, g->values[v].shape[d]);
  }
  AIT_TRY(ait_tensor_cast(w->a, &turned, turned.dtype, &plain));
  int64_t rest = ait_tensor_count(&plain) / (plain.shape[0] ? plain.shape[0] : 1);
  plain.rank = 2;
  plain.shape[1] = rest;
  ait_tensor_set_contiguous(&plain);
  snprintf(name, sizeof name, "table.%u", w->tables++);
  ait_status status = dep_add_weight(w, name, &plain, &weight);
  ait_tensor_release(&plain);
  AIT_TRY(status);
  AIT_TRY(AIT_EMIT(r, out, "index_select", ait_arg_value(weight), ait_arg_int(0), ait_arg_value(at)));
  AIT_TRY(AIT_EMIT(r, out, "reshape", ait_arg_value(*out), ait_arg_list(shape, (uint32_t)rank)));
  return AIT_EMIT(r, out, "permute", ait_arg_value(*out), ait_arg_list(order, (uint32_t)rank));
}

/* ---- tables that long sequences exchange for another: factors of rotary embeddings -------------------------------------------------*/
/* Equal at all lengths from `from` to max_seq, as far as they are tried. */
static ait_status is_steady_from(dep_work *w, uint32_t v, int32_t dim, const ait_tensor *all, int64_t from, bool *out) {
  *out = true;
  for (int64_t length = from; length < w->max_seq && *out; length = length + 1 + (length - from) * 2) {
    ait_tensor t;
    AIT_TRY(compute(w, v, length, &t));
    *out = same_start(all, &t, dim);
    ait_tensor_release(&t);
  }
  return AIT_OK;
}

static ait_status add_places(dep_work *w) {
  ait_dim t = w->g->values[w->tokens].shape[1];
  if (w->places != AIT_NO_INDEX) return AIT_OK;
  AIT_TRY(dep_add_input(w, "places", AIT_I64, 1, &t, &w->places));
  AIT_TRY(dep_grow_labels(w));
  w->labels[w->places] = (dep_label){.kind = DEP_TOKEN, .dim = 0, .inner = 1};
  return AIT_OK;
}

/* The table of short sequences, then that of long ones, max_seq rows each. */
static ait_status join_tables(dep_work *w, const ait_tensor *some, const ait_tensor *all, int32_t dim, ait_tensor *out) {
  int64_t shape[AIT_MAX_RANK];
  memcpy(shape, all->shape, sizeof shape);
  shape[dim] = 2 * all->shape[dim];
  AIT_TRY(ait_tensor_create(w->a, all->dtype, all->rank, shape, out));
  memset(out->data, 0, ait_tensor_bytes(out));
  ait_tensor part = *out;
  part.shape[dim] = some->shape[dim];
  AIT_TRY(ait_tensor_copy(&part, some));
  part.shape[dim] = all->shape[dim];
  part.data = (char *)out->data + (size_t)(all->shape[dim] * out->strides[dim]) * ait_dtype_size(out->dtype);
  return ait_tensor_copy(&part, all);
}

/* One value up to some length, and another for all longer ones: two tables. *out AIT_NO_INDEX: it is not so. */
static ait_status switch_tables(dep_work *w, const ait_rewrite *r, uint32_t v, int32_t dim, ait_tensor *all, uint32_t *out) {
  int64_t last;
  bool steady;
  ait_tensor some, both = {0};
  *out = AIT_NO_INDEX;
  if (dim < 0) return AIT_OK;
  AIT_TRY(longest_steady(w, v, dim, &last));
  AIT_TRY(is_steady_from(w, v, dim, all, last + 1, &steady));
  if (!steady || (w->switch_at && w->switch_at != last)) return AIT_OK;
  AIT_TRY(add_places(w));
  AIT_TRY(compute(w, v, last, &some));
  ait_status status = join_tables(w, &some, all, dim, &both);
  ait_tensor_release(&some);
  if (!status) status = look_up(w, r, v, dim, &both, w->places, out);
  ait_tensor_release(&both);
  w->switch_at = last;
  return status;
}

static ait_status place(dep_work *w, uint32_t v, uint32_t *out) {
  int32_t dim = length_dim(w, v);
  ait_tensor all;
  int64_t worst;
  ait_rewrite r = {.graph = w->g, .context = &w->context, .at = w->g->first, .name = w->g->values[v].name, .module = AIT_NO_INDEX};
  if (w->g->values[v].def) r.module = w->g->values[v].def->module;
  if (dim == -2)
    return ait_error(AIT_CODE_UNSUPPORTED, "'%s' of %s stands for pairs of positions outside an attention", w->g->values[v].name,
                     module_of(w->g, v));
  AIT_TRY(ait_error_context(compute(w, v, w->max_seq, &all), "values of positions up to %lld", (long long)w->max_seq));
  ait_status status = is_steady(w, v, dim, &all, &worst);
  if (!status && worst) {
    status = switch_tables(w, &r, v, dim, &all, out);
    if (!status && *out == AIT_NO_INDEX) status = refuse(w, v, dim, worst);
  } else if (!status && dim >= 0) status = look_up(w, &r, v, dim, &all, w->positions, out);
  else if (!status) {
    char name[32];
    snprintf(name, sizeof name, "table.%u", w->tables++);
    status = dep_add_weight(w, name, &all, out);
  }
  ait_tensor_release(&all);
  return status;
}

typedef struct reads {
  dep_work *w;
  bool tokens;
  uint32_t values[64], count;
} reads;

static void look(void *ctx, uint32_t v) {
  reads *r = ctx;
  if (data_kind(r->w->labels[v].kind)) r->tokens = true;
  if (r->w->labels[v].kind != DEP_SIZED || r->w->g->values[v].type != AIT_TYPE_TENSOR || r->count == AIT_COUNT(r->values)) return;
  for (uint32_t i = 0; i < r->count; ++i)
    if (r->values[i] == v) return;
  r->values[r->count++] = v;
}

ait_status dep_place_tables(dep_work *w) {
  for (ait_node *n = w->g->first, *next; n; n = next) {
    reads r = {.w = w};
    next = n->next;
    ait_node_each_operand(n, look, &r);
    if (!r.tokens || ait_starts_with(n->op->name, "cached_")) continue;
    for (uint32_t i = 0; i < r.count; ++i) {
      uint32_t fresh;
      AIT_TRY(place(w, r.values[i], &fresh));
      ait_graph_replace_uses(w->g, r.values[i], fresh);
    }
  }
  return AIT_OK;
}

/* *can: the value can be computed for that length; tables end somewhere. */
static ait_status can_reach(dep_work *w, uint32_t v, int64_t length, bool *can) {
  ait_tensor t;
  ait_status status = compute(w, v, length, &t);
  *can = !status;
  if (!status) ait_tensor_release(&t);
  if (!status || ait_status_code(status) != AIT_CODE_INVALID_ARGUMENT) return status;
  ait_status_ignore(status);
  return AIT_OK;
}

static ait_status reach_of(dep_work *w, uint32_t v, int64_t *most) {
  int64_t low = 2, high = *most;
  bool can;
  AIT_TRY(can_reach(w, v, high, &can));
  while (!can && high - low > 1) {
    bool middle;
    AIT_TRY(can_reach(w, v, low + (high - low) / 2, &middle));
    if (middle) low = low + (high - low) / 2;
    else high = low + (high - low) / 2;
  }
  if (!can) *most = low;
  return AIT_OK;
}

ait_status dep_reach(dep_work *w, int64_t *out) {
  *out = w->max_seq;
  for (const ait_node *n = w->g->first; n; n = n->next) {
    reads r = {.w = w};
    ait_node_each_operand(n, look, &r);
    for (uint32_t i = 0; r.tokens && i < r.count; ++i)
      if (length_dim(w, r.values[i]) >= 0) AIT_TRY(reach_of(w, r.values[i], out));
  }
  return AIT_OK;
}
