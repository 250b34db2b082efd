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

enum { Q, K, V, SPANS, PAGES, K_POOL, V_POOL, K_SCALE, V_SCALE, SINKS, SLOPES, BIAS, OPERANDS };

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
  a->distances = c->has[BIAS] ? c->in[BIAS].shape[1] : 0;
  a->form = pool->dtype == AIT_F32 ? AIT_POOL_F32 : pool->dtype == AIT_BF16 ? AIT_POOL_BF16 : AIT_POOL_INT8;
  bool good = k->shape[0] == a->rows && v->shape[0] == a->rows && v->shape[1] == a->groups && k->shape[2] == a->d && a->groups > 0 &&
              a->heads % a->groups == 0 && a->page > 0 && c->in[SPANS].shape[1] == 4 && c->in[PAGES].shape[0] == a->sequences &&
              pool_fits(c, K_POOL, K_SCALE, a->d) && pool_fits(c, V_POOL, V_SCALE, a->dv) &&
              (!c->has[SINKS] || c->in[SINKS].shape[0] == a->heads) && (!c->has[SLOPES] || c->in[SLOPES].shape[0] == a->heads) &&
              (!c->has[BIAS] || (c->in[BIAS].shape[0] == a->heads && c->in[BIAS].shape[1] > 0));
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
  if (c->has[BIAS]) AIT_TRY(NAT_POINTER(b, a->bias, &c->in[BIAS]));
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

/* ---- what an encoder gave ------------------------------------------------------------------------------------------------------------*/
/* Cross attention is attention over one page, the sequence's unit of the pools, whose last position each row sees: every row is told as a
 * sequence of its own. */
typedef struct cross_args {
  const int32_t *sequences, *lengths; /* [sequences][4]; [units] */
  int32_t *spans, *pages;             /* [rows][4]; [rows] */
  int64_t count, rows, units, most;
  int32_t *flag;
} cross_args;

static void tell_rows(const void *args, int64_t begin, int64_t end, void *scratch) {
  const cross_args *c = args;
  AIT_UNUSED(begin), AIT_UNUSED(end), AIT_UNUSED(scratch);
  memset(c->spans, 0, (size_t)c->rows * 4 * sizeof *c->spans);
  memset(c->pages, 0, (size_t)c->rows * sizeof *c->pages);
  for (int64_t i = 0; i < c->count; ++i) {
    const int32_t *s = c->sequences + 4 * i;
    if (s[1] == 0) continue;
    bool good = s[1] > 0 && s[0] >= 0 && s[0] <= c->rows - s[1] && s[3] >= 0 && s[3] < c->units;
    int32_t length = good ? c->lengths[s[3]] : 0;
    if (length < 1 || length > c->most) {
      *c->flag = 1;
      continue;
    }
    for (int64_t r = s[0]; r < (int64_t)s[0] + s[1]; ++r) {
      c->spans[4 * r] = (int32_t)r, c->spans[4 * r + 1] = 1, c->spans[4 * r + 2] = length - 1;
      c->pages[r] = s[3];
    }
  }
}

enum { X_Q, X_SPANS, X_LENGTHS, X_K, X_V, X_OPERANDS };

static ait_status fill_cross(nat_bind *b, const nat_step *s, const nat_view in[X_OPERANDS], const nat_view *o,
                             ait_cached_attention_f32 *a) {
  const nat_view *q = &in[X_Q], *k = &in[X_K], *v = &in[X_V];
  double scale, cap;
  AIT_TRY(nat_arg_float(b, s, 5, 1, &scale));
  AIT_TRY(nat_arg_float(b, s, 6, 0, &cap));
  *a = (ait_cached_attention_f32){.rows = q->shape[0],
                                  .heads = q->shape[1],
                                  .groups = k->shape[1],
                                  .d = q->shape[2],
                                  .dv = v->shape[3],
                                  .q_stride = {q->strides[0], q->strides[1]},
                                  .o_stride = {o->strides[0], o->strides[1]},
                                  .sequences = q->shape[0],
                                  .table = 1,
                                  .page = k->shape[2],
                                  .pool_pages = k->shape[0],
                                  .scale = (float)scale,
                                  .cap = (float)cap};
  bool good = a->groups > 0 && a->heads % a->groups == 0 && k->shape[3] == a->d && v->shape[0] == k->shape[0] && v->shape[1] == a->groups &&
              v->shape[2] == a->page && a->page > 0 && in[X_SPANS].shape[1] == 4 && in[X_LENGTHS].shape[0] == a->pool_pages &&
              o->rank == 3 && o->shape[0] == a->rows && o->shape[1] == a->heads && o->shape[2] == a->dv;
  return good ? AIT_OK : nat_error(b, AIT_CODE_INVALID_ARGUMENT, "shapes of rows, lengths and pools do not fit");
}

static ait_status emit_rows(nat_bind *b, const nat_step *s, const nat_view in[X_OPERANDS], ait_cached_attention_f32 *a) {
  size_t row_count = (size_t)(a->rows > 0 ? a->rows : 1);
  cross_args rows = {.spans = nat_keep(b, row_count * 4 * sizeof(int32_t)),
                     .pages = nat_keep(b, row_count * sizeof(int32_t)),
                     .count = in[X_SPANS].shape[0],
                     .rows = a->rows,
                     .units = a->pool_pages,
                     .most = a->page,
                     .flag = nat_keep(b, sizeof *rows.flag)},
             *args;
  if (!rows.spans || !rows.pages || !rows.flag) return AIT_OOM();
  *rows.flag = 0;
  a->spans = rows.spans, a->pages = rows.pages;
  nat_work work = {tell_rows, "tell rows", 1, 0, 0};
  AIT_TRY(nat_emit(b, &work, &rows, sizeof rows, &args));
  AIT_TRY(NAT_POINTER(b, args->sequences, &in[X_SPANS]));
  AIT_TRY(NAT_POINTER(b, args->lengths, &in[X_LENGTHS]));
  return nat_emit_range_check(b, s, rows.flag, a->pool_pages);
}

ait_status nat_prepare_cross_attention(nat_bind *b, const nat_step *s) {
  nat_view in[X_OPERANDS], o;
  ait_cached_attention_f32 a, *args;
  for (uint32_t i = 0; i < X_OPERANDS; ++i) {
    nat_view v;
    AIT_TRY(nat_in(b, s, i, &v));
    if (i == X_Q) AIT_TRY(nat_rows(b, &v, &in[i]));
    else AIT_TRY(nat_dense(b, &v, NULL, &in[i]));
  }
  AIT_TRY(nat_out_plain(b, s, 0, &o));
  AIT_TRY(fill_cross(b, s, in, &o, &a));
  AIT_TRY(emit_rows(b, s, in, &a));
  double work_size = (double)(a.rows * a.heads * (a.d + a.dv)) * (double)a.page * 0.05;
  nat_work attend = {b->kernels->cached_attention_f32, "attention, cross", ait_cached_attention_f32_units(&a), work_size,
                     ait_cached_attention_f32_scratch(b->kernels, &a)};
  AIT_TRY(nat_emit(b, &attend, &a, sizeof a, &args));
  AIT_TRY(NAT_POINTER(b, args->q, &in[X_Q]));
  AIT_TRY(NAT_POINTER(b, args->k_pool, &in[X_K]));
  AIT_TRY(NAT_POINTER(b, args->v_pool, &in[X_V]));
  return NAT_POINTER(b, args->o, &o);
}
