/* Attention over paged caches: the tables are checked, keys and values stored, then read. */
#include "backends/native/prepare.h"

typedef struct check_args {
  ait_cached_attention_f32 a;
  int32_t *flag;
} check_args;

static void check_tables(const void *args, int64_t begin, int64_t end, void *scratch) {
  const check_args *c = args;
  AIT_UNUSED(begin), AIT_UNUSED(end), AIT_UNUSED(scratch);
  if (!ait_cached_attention_check(&c->a)) *c->flag = 1;
}

enum { Q, K, V, SPANS, PAGES, K_POOL, V_POOL, K_SCALE, V_SCALE, SINKS, SLOPES, OPERANDS };

typedef struct cached {
  ait_cached_attention_f32 a;
  nat_view in[OPERANDS], o;
  bool has[OPERANDS];
} cached;

static bool row_major(const nat_view *v) {
  int32_t order[AIT_MAX_RANK];
  nat_order_row_major(v->rank, order);
  return nat_has_order(v, order);
}

static ait_status get_operands(nat_bind *b, const nat_step *s, cached *c) {
  for (uint32_t i = 0; i < OPERANDS; ++i) {
    nat_view v;
    c->has[i] = nat_has_in(b, s, i);
    if (!c->has[i]) continue;
    AIT_TRY(nat_in(b, s, i, &v));
    if (i < SPANS) AIT_TRY(nat_rows(b, &v, &c->in[i]));
    else if (i == SPANS || i == PAGES || i >= SINKS) AIT_TRY(nat_dense(b, &v, NULL, &c->in[i]));
    else if (row_major(&v)) c->in[i] = v;
    else return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "operand %u is written in place and not contiguous", i);
  }
  return AIT_OK;
}

static bool pool_fits(const cached *c, int pool, int scale, int64_t width) {
  const int64_t *p = c->in[pool].shape, *s = c->in[scale].shape;
  if (p[0] != c->a.pool_pages || p[1] != c->a.groups || p[2] != c->a.page || p[3] != width) return false;
  return !c->has[scale] || (s[0] == p[0] && s[1] == p[1] && s[2] == p[2]);
}

static ait_status fill(nat_bind *b, const nat_step *s, cached *c) {
  const nat_view *q = &c->in[Q], *k = &c->in[K], *v = &c->in[V], *pool = &c->in[K_POOL];
  ait_cached_attention_f32 *a = &c->a;
  double scale, cap;
  AIT_TRY(nat_arg_float(b, s, 11, 1, &scale));
  AIT_TRY(nat_arg_float(b, s, 12, 0, &cap));
  AIT_TRY(nat_arg_int(b, s, 13, 0, &a->window));
  a->scale = (float)scale, a->cap = (float)cap;
  a->rows = q->shape[0], a->heads = q->shape[1], a->d = q->shape[2];
  a->groups = k->shape[1], a->dv = v->shape[2];
  a->page = pool->shape[2], a->pool_pages = pool->shape[0];
  a->sequences = c->in[SPANS].shape[0], a->table = c->in[PAGES].shape[1];
  a->form = pool->dtype == AIT_F32 ? AIT_POOL_F32 : pool->dtype == AIT_BF16 ? AIT_POOL_BF16 : AIT_POOL_INT8;
  bool good = k->shape[0] == a->rows && v->shape[0] == a->rows && v->shape[1] == a->groups && k->shape[2] == a->d && a->groups > 0 &&
              a->heads % a->groups == 0 && a->page > 0 && c->in[SPANS].shape[1] == 4 && c->in[PAGES].shape[0] == a->sequences &&
              pool_fits(c, K_POOL, K_SCALE, a->d) && pool_fits(c, V_POOL, V_SCALE, a->dv) &&
              (!c->has[SINKS] || c->in[SINKS].shape[0] == a->heads) && (!c->has[SLOPES] || c->in[SLOPES].shape[0] == a->heads);
  if (!good) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "shapes of rows, tables and pools do not fit");
  for (int i = 0; i < 2; ++i)
    a->q_stride[i] = q->strides[i], a->k_stride[i] = k->strides[i], a->v_stride[i] = v->strides[i], a->o_stride[i] = c->o.strides[i];
  return AIT_OK;
}

static ait_status set_pointers(nat_bind *b, const cached *c, ait_cached_attention_f32 *a) {
  AIT_TRY(NAT_POINTER(b, a->q, &c->in[Q]));
  AIT_TRY(NAT_POINTER(b, a->k, &c->in[K]));
  AIT_TRY(NAT_POINTER(b, a->v, &c->in[V]));
  AIT_TRY(NAT_POINTER(b, a->spans, &c->in[SPANS]));
  AIT_TRY(NAT_POINTER(b, a->pages, &c->in[PAGES]));
  AIT_TRY(NAT_POINTER(b, a->k_pool, &c->in[K_POOL]));
  AIT_TRY(NAT_POINTER(b, a->v_pool, &c->in[V_POOL]));
  if (c->has[K_SCALE]) AIT_TRY(NAT_POINTER(b, a->k_scale, &c->in[K_SCALE]));
  if (c->has[V_SCALE]) AIT_TRY(NAT_POINTER(b, a->v_scale, &c->in[V_SCALE]));
  if (c->has[SINKS]) AIT_TRY(NAT_POINTER(b, a->sinks, &c->in[SINKS]));
  if (c->has[SLOPES]) AIT_TRY(NAT_POINTER(b, a->slopes, &c->in[SLOPES]));
  return NAT_POINTER(b, a->o, &c->o);
}

static ait_status emit_check(nat_bind *b, const nat_step *s, const cached *c) {
  check_args check = {.a = c->a, .flag = nat_keep(b, sizeof *check.flag)}, *args;
  if (!check.flag) return AIT_OOM();
  *check.flag = 0;
  nat_work work = {check_tables, "check tables", 1, 0, 0};
  AIT_TRY(nat_emit(b, &work, &check, sizeof check, &args));
  AIT_TRY(NAT_POINTER(b, args->a.spans, &c->in[SPANS]));
  AIT_TRY(NAT_POINTER(b, args->a.pages, &c->in[PAGES]));
  return nat_emit_range_check(b, s, check.flag, c->a.pool_pages);
}

ait_status nat_prepare_cached_attention(nat_bind *b, const nat_step *s) {
  cached c = {0};
  ait_cached_attention_f32 *args;
  AIT_TRY(get_operands(b, s, &c));
  AIT_TRY(nat_out_plain(b, s, 0, &c.o));
  if (c.o.rank != 3 || c.o.shape[0] != c.in[Q].shape[0] || c.o.shape[1] != c.in[Q].shape[1] || c.o.shape[2] != c.in[V].shape[2])
    return nat_error(b, AIT_CODE_INVALID_MODEL, "the result has another shape");
  AIT_TRY(fill(b, s, &c));
  AIT_TRY(emit_check(b, s, &c));
  const ait_cached_attention_f32 *a = &c.a;
  double keys = (double)(a->table * a->page) * 0.5, elements = (double)(a->rows * a->groups * (a->d + a->dv));
  nat_work store = {b->kernels->cache_store_f32, "store keys and values", ait_cache_store_f32_units(a), elements * 0.3, 0};
  AIT_TRY(nat_emit(b, &store, a, sizeof *a, &args));
  AIT_TRY(set_pointers(b, &c, args));
  nat_work attend = {b->kernels->cached_attention_f32, "attention, cached", ait_cached_attention_f32_units(a),
                     elements * (double)(a->heads / a->groups) * keys * 0.05, ait_cached_attention_f32_scratch(b->kernels, a)};
  AIT_TRY(nat_emit(b, &attend, a, sizeof *a, &args));
  return set_pointers(b, &c, args);
}
