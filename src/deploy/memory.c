/* Attention over what an encoder gave: keys and values that depend on the encoder's input alone. They are computed once for each request,
 * by a graph of its own, and kept in units of pools; in the graph of a step the attention reads them there. Found by the same reader as
 * other attention, proven the same way. */
#include "deploy/internal.h"
#include <math.h>
#include <stdio.h>

typedef struct memory {
  dep_work *w;
  uint8_t *given; /* by value: depends on the encoder's input, and on no token */
  size_t given_count;
  struct pool {
    uint32_t value; /* [G, S, d] */
    char name[32];
  } pools[512];
  uint32_t pool_count, group, lengths;
} memory;

/* ---- what depends on the encoder's input ----------------------------------------------------------------------------------------------*/
typedef struct operand_look {
  const memory *m;
  bool given;
} operand_look;

static void look(void *ctx, uint32_t v) {
  operand_look *l = ctx;
  l->given |= v < l->m->given_count && l->m->given[v];
}

static bool reads_given(const memory *m, const ait_node *n) {
  operand_look l = {m, false};
  ait_node_each_operand(n, look, &l);
  return l.given;
}

static ait_status find_given(memory *m) {
  dep_work *w = m->w;
  m->given_count = w->g->value_count;
  m->given = ait_alloc_zero(w->a, m->given_count + 1, 1);
  if (!m->given) return AIT_OOM();
  m->given[w->source] = 1;
  for (const ait_node *n = w->g->first; n; n = n->next) {
    if (!reads_given(m, n)) continue;
    for (uint32_t i = 0; i < n->result_count; ++i)
      if (n->results[i] != AIT_NO_INDEX && !data_kind(w->labels[n->results[i]].kind)) m->given[n->results[i]] = 1;
  }
  return AIT_OK;
}

static bool is_given(const memory *m, const ait_arg *a) {
  return ait_arg_is_tensor(m->w->g, a) && a->as.value < m->given_count && m->given[a->as.value];
}

static bool is_token(const memory *m, const ait_arg *a) {
  return ait_arg_is_tensor(m->w->g, a) && m->w->labels[a->as.value].kind == DEP_TOKEN;
}

/* ---- the mask: nothing is hidden, nothing is added ------------------------------------------------------------------------------------*/
static void set_sizes(const dep_work *w, dep_eval *e, int64_t tokens, int64_t source) {
  dep_eval_size(e, w->tokens_name, tokens);
  if (w->source_name) dep_eval_size(e, w->source_name, source);
}

static ait_status term_is_idle(dep_work *w, const dep_term *term, int64_t tokens, int64_t source, bool *idle) {
  bool keeps = term->role == DEP_TERM_KEEPS, one = term->role == DEP_TERM_GATE || term->role == DEP_TERM_UNIT;
  dep_eval e;
  ait_tensor t;
  AIT_TRY(dep_eval_begin(w->g, w->a, false, &e));
  set_sizes(w, &e, tokens, source);
  ait_status status = dep_eval_run(&e, term->value, &t);
  if (!status) {
    int64_t index[AIT_MAX_RANK] = {0};
    bool any = ait_tensor_count(&t) > 0;
    do {
      double v = any ? ait_element_f64(ait_ref_at(&t, index), t.dtype) : 0;
      *idle = *idle && (!any || (one ? v == 1 : t.dtype == AIT_BOOL ? (v != 0) == keeps : v == 0));
    } while (any && ait_ref_next(t.rank, t.shape, index));
  }
  dep_eval_end(&e);
  return status;
}

static ait_status mask_is_idle(const memory *m, const dep_found *f, bool *idle) {
  dep_work *w = m->w;
  static const int64_t sizes[3][2] = {{2, 5}, {7, 3}, {5, 12}};
  *idle = true;
  for (uint32_t i = 0; i < f->term_count && *idle; ++i) {
    ait_arg a = ait_arg_value(f->terms[i].value);
    if (is_given(m, &a)) *idle = false;
    for (int k = 0; k < 3 && *idle; ++k) AIT_TRY(term_is_idle(w, &f->terms[i], sizes[k][0], sizes[k][1], idle));
  }
  if (!*idle) snprintf(w->near, sizeof w->near, "it hides parts of what the encoder gave, or adds to its scores");
  return AIT_OK;
}

/* ---- keys and values ------------------------------------------------------------------------------------------------------------------*/
/* [G, S, d] of a value whose last dims are S and d; *heads -1: it is not of that form. */
static ait_status to_memory(const memory *m, const ait_rewrite *r, uint32_t value, uint32_t *out, int64_t *heads, int64_t *width) {
  ait_graph *g = m->w->g;
  const ait_value_info *v = &g->values[value];
  int64_t size;
  ait_arg shape[3];
  *heads = -1;
  if (v->rank < 3 || !ait_dim_is_const(g, v->shape[v->rank - 1], width)) return AIT_OK;
  int64_t product = 1;
  for (int32_t d = 0; d < v->rank - 2; ++d) {
    if (!ait_dim_is_const(g, v->shape[d], &size)) return AIT_OK;
    product *= size;
  }
  *heads = product;
  shape[0] = ait_arg_int(product), shape[1] = ait_dim_as_arg(g, v->shape[v->rank - 2]), shape[2] = ait_arg_int(*width);
  return AIT_EMIT(r, out, "reshape", ait_arg_value(value), ait_arg_list(shape, 3));
}

/* The value before a transposition of the last two dims, or transposed so. */
static ait_status turn_back(const memory *m, const ait_rewrite *r, uint32_t value, uint32_t *out) {
  ait_graph *g = m->w->g;
  int32_t rank = g->values[value].rank;
  ait_arg order[AIT_MAX_RANK];
  const ait_node *swap = ait_def_of(g, value, "permute");
  bool back = swap != NULL;
  for (int32_t d = 0; d < rank; ++d) {
    int64_t from;
    order[d] = ait_arg_int(d < rank - 2 ? d : 2 * rank - 3 - d);
    back = back && ait_arg_as_int(g, &swap->args[1].as.list[d], &from) && ait_wrap_dim(&from, rank) && from == order[d].as.i;
  }
  if (back) return *out = swap->args[0].as.value, AIT_OK;
  return AIT_EMIT(r, out, "permute", ait_arg_value(value), ait_arg_list(order, (uint32_t)rank));
}

static ait_status settle_room(memory *m, uint32_t value) {
  dep_work *w = m->w;
  const ait_graph *g = w->g;
  int64_t symbols[64], rows;
  if (g->symbol_count > AIT_COUNT(symbols)) return ait_error(AIT_CODE_LIMIT, "the graph has too many sizes");
  for (size_t i = 0; i < g->symbol_count; ++i)
    symbols[i] = w->source_name && !strcmp(g->symbols[i].name, w->source_name) ? w->max_source : 1;
  if (!ait_dim_eval(g->dims, symbols, g->values[value].shape[1], &rows) || rows < 1 || rows > 1 << 24)
    return ait_error(AIT_CODE_UNSUPPORTED, "how much an encoder gives for an input of %lld is not known", (long long)w->max_source);
  if (rows > w->memory_room) w->memory_room = rows;
  return AIT_OK;
}

static ait_status begin_memory(memory *m) {
  dep_work *w = m->w;
  ait_dim units;
  if (m->lengths != AIT_NO_INDEX) return AIT_OK;
  AIT_TRY(dep_find_group(w, AIT_LM_MEMORY, 0, &m->group));
  AIT_TRY(dep_symbol(w, "units", &units));
  return dep_add_input(w, "lengths", AIT_I32, 1, &units, &m->lengths);
}

static ait_status add_pool(memory *m, uint32_t value, const char *which, uint32_t *out) {
  dep_work *w = m->w;
  int64_t shape[4] = {0, 0, w->memory_room, 0};
  const ait_value_info *v = &w->g->values[value];
  if (m->pool_count == AIT_COUNT(m->pools)) return ait_error(AIT_CODE_LIMIT, "more than %d layers read the encoder's output", 256);
  struct pool *p = &m->pools[m->pool_count++];
  p->value = value;
  snprintf(p->name, sizeof p->name, "memory.%u.%s", (m->pool_count - 1) / 2, which);
  (void)ait_dim_is_const(w->g, v->shape[0], &shape[1]);
  (void)ait_dim_is_const(w->g, v->shape[2], &shape[3]);
  return dep_add_state(w, p->name, m->group, AIT_F32, 4, shape, out);
}

/* ---- proof ----------------------------------------------------------------------------------------------------------------------------*/
/* The pools hold, for unit 0, what the values are. */
static ait_status give_pool(dep_work *w, dep_eval *e, uint32_t pool, uint32_t value) {
  ait_tensor rows, room;
  int64_t shape[AIT_MAX_RANK];
  AIT_TRY(dep_eval_run(e, value, &rows));
  if (!dep_eval_shape(e, pool, shape)) return ait_error(AIT_CODE_INTERNAL, "the shape of a pool is not known");
  AIT_TRY(ait_tensor_create(w->a, rows.dtype, 4, shape, &room));
  memset(room.data, 0, ait_tensor_bytes(&room));
  ait_tensor part = room;
  part.shape[0] = 1, part.shape[2] = rows.shape[1];
  ait_tensor like = rows;
  like.rank = 4;
  for (int32_t d = 3; d > 0; --d) like.shape[d] = rows.shape[d - 1], like.strides[d] = rows.strides[d - 1];
  like.shape[0] = 1, like.strides[0] = 0;
  ait_status status = ait_tensor_copy(&part, &like);
  if (!status) status = dep_eval_give(e, pool, &room);
  ait_tensor_release(&room);
  return status;
}

static ait_status prove_one(memory *m, dep_eval *e, uint32_t old, uint32_t fresh, const uint32_t operands[3], const uint32_t values[2],
                            const uint32_t pools[2], int64_t tokens, int64_t source, double *apart) {
  dep_work *w = m->w;
  ait_tensor lengths, want, got, kept;
  int64_t one = 1, shape[AIT_MAX_RANK];
  dep_eval_forget(e);
  set_sizes(w, e, tokens, source);
  AIT_TRY(dep_give_step(w, e, tokens));
  set_sizes(w, e, tokens, source);
  for (uint32_t i = 0; i < 3; ++i) AIT_TRY(dep_eval_give_random(e, operands[i], 31 * (uint64_t)tokens + i, 2, false));
  for (int i = 0; i < 2; ++i) AIT_TRY(give_pool(w, e, pools[i], values[i]));
  if (!dep_eval_shape(e, values[0], shape)) return ait_error(AIT_CODE_INTERNAL, "the shape of the keys is not known");
  AIT_TRY(ait_tensor_create(w->a, AIT_I32, 1, &one, &lengths));
  *(int32_t *)lengths.data = (int32_t)shape[1];
  ait_status status = dep_eval_give(e, m->lengths, &lengths);
  ait_tensor_release(&lengths);
  AIT_TRY(status);
  AIT_TRY(dep_eval_run(e, old, &want));
  kept = ait_tensor_retain(&want);
  status = dep_eval_run(e, fresh, &got);
  if (!status) *apart = dep_difference(&got, &kept);
  ait_tensor_release(&kept);
  return status;
}

static ait_status prove(memory *m, uint32_t old, uint32_t fresh, const uint32_t operands[3], const uint32_t values[2],
                        const uint32_t pools[2], bool *equal) {
  static const int64_t sizes[3][2] = {{2, 9}, {7, 4}, {11, 17}};
  dep_work *w = m->w;
  dep_eval e;
  *equal = true;
  AIT_TRY(dep_eval_begin(w->g, w->a, true, &e));
  ait_status status = AIT_OK;
  for (int i = 0; i < 3 && *equal && !status; ++i) {
    double apart = INFINITY;
    int64_t source = sizes[i][1] < w->max_source ? sizes[i][1] : w->max_source,
            tokens = sizes[i][0] < w->max_seq ? sizes[i][0] : w->max_seq;
    status = prove_one(m, &e, old, fresh, operands, values, pools, tokens, source, &apart);
    if (status || apart <= 1e-6) continue;
    *equal = false;
    snprintf(w->near, sizeof w->near,
             "it looked like attention over the encoder's output, but gives other numbers (relative difference %.2g)", apart);
  }
  dep_eval_end(&e);
  return status;
}

/* ---- one attention --------------------------------------------------------------------------------------------------------------------*/
static ait_status build(memory *m, ait_node *n, const dep_found *f, bool *matched) {
  dep_work *w = m->w;
  ait_rewrite r = ait_rewrite_at(w->g, &w->context, n);
  ait_node *before = n->prev;
  uint32_t old = n->results[0], q, k, v, values[2], pools[2], rows, fresh, keys = f->k;
  int64_t heads, k_heads, v_heads, width, value_width;
  if (f->k_is_transposed) AIT_TRY(turn_back(m, &r, f->k, &keys));
  AIT_TRY(to_memory(m, &r, keys, &k, &k_heads, &width));
  AIT_TRY(to_memory(m, &r, f->v, &v, &v_heads, &value_width));
  AIT_TRY(dep_label_from(w, before, n));
  AIT_TRY(dep_to_rows(w, &r, f->q, &q, &heads));
  if (heads < 1 || k_heads < 1 || v_heads != k_heads || heads % k_heads) {
    snprintf(w->near, sizeof w->near, "heads of queries, keys and values do not fit together");
    return AIT_OK;
  }
  AIT_TRY(begin_memory(m));
  AIT_TRY(settle_room(m, k));
  values[0] = k, values[1] = v;
  AIT_TRY(add_pool(m, k, "k", &pools[0]));
  AIT_TRY(add_pool(m, v, "v", &pools[1]));
  w->groups[m->group].layers++;
  AIT_TRY(AIT_EMIT(&r, &rows, "cross_attention", ait_arg_value(q), ait_arg_value(w->sequences), ait_arg_value(m->lengths),
                   ait_arg_value(pools[0]), ait_arg_value(pools[1]), ait_arg_float(f->scale), ait_arg_float(f->cap)));
  AIT_TRY(dep_from_rows(w, &r, rows, old, w->g->values[old].rank - 2, &fresh));
  AIT_TRY(ait_emit_cast(&r, fresh, w->g->values[old].dtype, &fresh));
  const uint32_t operands[3] = {f->q, keys, f->v};
  AIT_TRY(prove(m, old, fresh, operands, values, pools, matched));
  if (!*matched) return AIT_OK;
  AIT_TRY(ait_replace_value(w->g, old, fresh));
  return dep_label_from(w, before, n);
}

static ait_status try_match(memory *m, ait_node *n) {
  dep_work *w = m->w;
  dep_found f = {.scores = DEP_TOKEN, .sinks = AIT_NO_INDEX, .q = AIT_NO_INDEX};
  bool fused = !strcmp(n->op->name, "attention"), matched = false, idle;
  if (!fused && strcmp(n->op->name, "matmul")) return AIT_OK;
  if (!is_token(m, &n->args[0]) || !is_given(m, &n->args[1]) || (fused && !is_given(m, &n->args[2]))) return AIT_OK;
  if (!dep_read_attention(w, n, &f)) return AIT_OK;
  if (fused) f.k_is_transposed = false;
  ait_arg key = ait_arg_value(f.k);
  if (f.causal || f.sinks != AIT_NO_INDEX || !is_given(m, &key)) {
    snprintf(w->near, sizeof w->near, "its keys are masked by position, or do not come from the encoder");
    return AIT_OK;
  }
  AIT_TRY(mask_is_idle(m, &f, &idle));
  return idle ? build(m, n, &f, &matched) : AIT_OK;
}

/* ---- two graphs -----------------------------------------------------------------------------------------------------------------------*/
/* Nothing of the encoder may be left in a step, but what the pools hold. */
static ait_status check_rest(const memory *m) {
  dep_work *w = m->w;
  for (const ait_node *n = w->g->first; n; n = n->next) {
    if (!reads_given(m, n) || !n->result_count || !data_kind(w->labels[n->results[0]].kind)) continue;
    const char *module = n->module != AIT_NO_INDEX ? w->g->modules[n->module].path : "";
    return ait_error(AIT_CODE_UNSUPPORTED, "module '%s': node '%s' (%s) reads the encoder's output outside of an attention%s%s", module,
                     n->name, n->op->name, *w->near ? "; the nearest match failed: " : "", w->near);
  }
  return AIT_OK;
}

static void release(void *ctx, uint32_t value) { --((uint32_t *)ctx)[value]; }

/* Nodes that no output needs, those of the decoder that write caches among them. */
static ait_status drop_unneeded(ait_graph *g) {
  uint32_t *uses;
  AIT_TRY(ait_graph_count_uses(g, g->allocator, &uses));
  size_t count = g->value_count;
  for (ait_node *n = g->last, *before; n; n = before) {
    bool used = false;
    before = n->prev;
    for (uint32_t i = 0; i < n->result_count; ++i) used |= n->results[i] != AIT_NO_INDEX && uses[n->results[i]];
    if (used) continue;
    ait_node_each_operand(n, release, uses);
    ait_graph_remove_node(g, n);
  }
  ait_free(g->allocator, uses, count * sizeof *uses);
  return AIT_OK;
}

static ait_status make_encoder(memory *m) {
  dep_work *w = m->w;
  size_t kept = 0;
  AIT_TRY(ait_graph_clone(w->g, &w->encoder));
  ait_graph *e = w->encoder;
  e->output_count = 0;
  for (uint32_t i = 0; i < m->pool_count; ++i) {
    const char *name;
    AIT_TRY(ait_graph_strdup(e, m->pools[i].name, &name));
    ait_region_output o = {.arg = ait_arg_value(m->pools[i].value), .kind = AIT_OUTPUT_USER, .user_index = (int32_t)i, .name = name};
    AIT_TRY(ait_graph_add_output(e, &o));
  }
  AIT_TRY(drop_unneeded(e));
  for (size_t i = 0; i < e->input_count; ++i) {
    ait_region_input in = e->inputs[i];
    if (in.kind == AIT_INPUT_USER && in.value != w->source) continue;
    if (in.value == w->source) in.user_index = 0;
    e->inputs[kept++] = in;
  }
  e->input_count = kept;
  AIT_TRY(ait_passes_run(e, "fold,simplify,cse,dce", &w->context, NULL, NULL));
  if (!ait_dtype_is_float(w->encoder->values[w->source].dtype)) w->source_vocab = dep_rows_of_table(w->encoder, w->source);
  return AIT_OK;
}

static void drop_source(dep_work *w) {
  int32_t user = 0;
  size_t kept = 0;
  for (size_t i = 0; i < w->g->input_count; ++i) {
    ait_region_input in = w->g->inputs[i];
    if (in.value == w->source) continue;
    if (in.kind == AIT_INPUT_USER) in.user_index = user++;
    w->g->inputs[kept++] = in;
  }
  w->g->input_count = kept;
}

static ait_status match(memory *m) {
  dep_work *w = m->w;
  AIT_TRY(find_given(m));
  for (ait_node *n = w->g->first, *next; n; n = next) {
    next = n->next;
    AIT_TRY(try_match(m, n));
  }
  if (m->pool_count) AIT_TRY(make_encoder(m)); /* keys and values are still there: nothing of a step reads them */
  AIT_TRY(ait_passes_run(w->g, "dce", &w->context, NULL, NULL));
  AIT_TRY(check_rest(m));
  if (!m->pool_count) return ait_error(AIT_CODE_UNSUPPORTED, "no attention reads what the encoder gives");
  drop_source(w);
  return AIT_OK;
}

ait_status dep_match_memory(dep_work *w) {
  if (w->source == AIT_NO_INDEX) return AIT_OK;
  for (uint32_t i = 0; i < w->group_count; ++i)
    if (w->groups[i].kind == AIT_LM_SLOTS) return ait_error(AIT_CODE_UNSUPPORTED, "a decoder with scans or convolutions beside an encoder");
  *w->near = 0;
  memory *m = ait_alloc_zero(w->a, sizeof *m, _Alignof(memory));
  if (!m) return AIT_OOM();
  m->w = w;
  m->lengths = AIT_NO_INDEX;
  ait_status status = match(m);
  ait_free(w->a, m->given, m->given_count + 1);
  ait_free(w->a, m, sizeof *m);
  return status;
}
