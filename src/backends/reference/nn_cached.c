/* Operators with state of cached language models (docs/llm.md): a flat batch of rows of many sequences; pools are operands that are
 * written. Everything that indexes is checked: page tables and slots come from the caller. */
#include "backends/reference/nn.h"

/* One entry of `sequences`. */
typedef struct span {
  int64_t first, count, past, slot;
} span;

static ait_status read_span(const ait_ref_call *call, const ait_tensor *t, int64_t i, int64_t rows, span *out) {
  int64_t index[2] = {i, 0}, got[4];
  for (; index[1] < 4; ++index[1]) got[index[1]] = ait_element_i64(ait_ref_at(t, index), t->dtype);
  *out = (span){got[0], got[1], got[2], got[3]};
  if (out->count < 0 || (out->count > 0 && (out->first < 0 || out->first > rows - out->count || out->past < 0)))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "sequence %lld is outside the batch", (long long)i);
  return AIT_OK;
}

static ait_status check_spans(const ait_ref_call *call, const ait_tensor *t) {
  if (t->rank == 2 && t->shape[1] == 4 && ait_dtype_is_integer(t->dtype)) return AIT_OK;
  return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "sequences are not integers [n, 4]");
}

static double element(const ait_tensor *t, int64_t a, int64_t b, int64_t c) {
  int64_t index[3] = {a, b, c};
  return ait_element_f64(ait_ref_at(t, index), t->dtype);
}

static double vector_or(const ait_tensor *t, int64_t i, double when_none) { return t ? element(t, i, 0, 0) : when_none; }

static void put(const ait_tensor *t, int64_t a, int64_t b, int64_t c, double v) {
  int64_t index[3] = {a, b, c};
  ait_element_set_f64(ait_ref_at(t, index), t->dtype, v);
}

/* A result like x with the last size `width`, zeros. */
static ait_status new_result(ait_ref_call *call, const ait_tensor *x, int64_t width, ait_tensor *out) {
  int64_t shape[AIT_MAX_RANK];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->rank - 1] = width;
  AIT_TRY(ait_ref_new(call, 0, ait_ref_widen(call, x->dtype), x->rank, shape, out));
  memset(out->data, 0, ait_tensor_bytes(out));
  return AIT_OK;
}

/* ---- attention -------------------------------------------------------------------------------------------------------------------*/
typedef struct cached {
  const ait_ref_call *call;
  const ait_tensor *q, *k, *v, *sequences, *pages, *k_pool, *v_pool, *k_scale, *v_scale, *sinks, *slopes, *bias;
  ait_tensor out;
  double scale, cap;
  int64_t window, page_size, heads, groups, width, value_width;
} cached;

static ait_status get_operands(ait_ref_call *call, cached *c) {
  const ait_tensor **needed[7] = {&c->q, &c->k, &c->v, &c->sequences, &c->pages, &c->k_pool, &c->v_pool};
  c->call = call;
  for (uint32_t i = 0; i < 7; ++i) AIT_TRY(ait_ref_tensor(call, i, needed[i]));
  c->k_scale = ait_ref_tensor_or_null(call, 7), c->v_scale = ait_ref_tensor_or_null(call, 8);
  c->sinks = ait_ref_tensor_or_null(call, 9), c->slopes = ait_ref_tensor_or_null(call, 10);
  AIT_TRY(ait_ref_float_or(call, 11, 1, &c->scale));
  AIT_TRY(ait_ref_float_or(call, 12, 0, &c->cap));
  c->bias = ait_ref_tensor_or_null(call, 14);
  return ait_ref_int_or(call, 13, 0, &c->window);
}

static bool is_vector(const ait_tensor *t, int64_t n) { return !t || (t->rank == 1 && t->shape[0] == n && ait_dtype_is_float(t->dtype)); }

static bool pool_fits(const cached *c, const ait_tensor *pool, const ait_tensor *scale, int64_t width) {
  if (pool->rank != 4 || pool->shape[0] != c->k_pool->shape[0] || pool->shape[1] != c->groups || pool->shape[2] != c->page_size ||
      pool->shape[3] != width)
    return false;
  if (pool->dtype != AIT_I8) return ait_dtype_is_float(pool->dtype) && !scale;
  return scale && scale->rank == 3 && scale->dtype == AIT_F32 && !memcmp(scale->shape, pool->shape, 3 * sizeof *pool->shape);
}

static ait_status check_operands(cached *c) {
  const ait_tensor *q = c->q, *k = c->k, *v = c->v;
  AIT_TRY(check_spans(c->call, c->sequences));
  if (q->rank != 3 || k->rank != 3 || v->rank != 3 || k->shape[0] != q->shape[0] || v->shape[0] != q->shape[0] ||
      k->shape[1] != v->shape[1] || k->shape[2] != q->shape[2] || k->shape[1] < 1 || q->shape[1] % k->shape[1] != 0)
    return ait_ref_error(c->call, AIT_CODE_INVALID_ARGUMENT, "q, k and v do not fit together");
  c->heads = q->shape[1], c->groups = k->shape[1], c->width = q->shape[2], c->value_width = v->shape[2];
  if (c->k_pool->rank != 4) return ait_ref_error(c->call, AIT_CODE_INVALID_ARGUMENT, "the pool of keys has not four dims");
  c->page_size = c->k_pool->shape[2];
  if (c->page_size < 1 || !pool_fits(c, c->k_pool, c->k_scale, c->width) || !pool_fits(c, c->v_pool, c->v_scale, c->value_width))
    return ait_ref_error(c->call, AIT_CODE_INVALID_ARGUMENT, "the pools do not fit k and v");
  if (c->pages->rank != 2 || c->pages->shape[0] != c->sequences->shape[0] || !ait_dtype_is_integer(c->pages->dtype))
    return ait_ref_error(c->call, AIT_CODE_INVALID_ARGUMENT, "pages are not integers [sequences, n]");
  if (!is_vector(c->sinks, c->heads) || !is_vector(c->slopes, c->heads))
    return ait_ref_error(c->call, AIT_CODE_INVALID_ARGUMENT, "sinks or slopes are not one number a head");
  if (c->bias && (c->bias->rank != 2 || c->bias->shape[0] != c->heads || c->bias->shape[1] < 1 || !ait_dtype_is_float(c->bias->dtype)))
    return ait_ref_error(c->call, AIT_CODE_INVALID_ARGUMENT, "the bias is not floats [heads, distances]");
  return AIT_OK;
}

/* The page of a position of sequence i. */
static ait_status page_of(const cached *c, int64_t i, int64_t position, int64_t *out) {
  int64_t index[2] = {i, position / c->page_size};
  if (index[1] >= c->pages->shape[1])
    return ait_ref_error(c->call, AIT_CODE_INVALID_ARGUMENT, "position %lld is beyond the page table", (long long)position);
  *out = ait_element_i64(ait_ref_at(c->pages, index), c->pages->dtype);
  if (*out >= 0 && *out < c->k_pool->shape[0]) return AIT_OK;
  return ait_ref_error(c->call, AIT_CODE_INVALID_ARGUMENT, "page %lld of sequence %lld is not in the pool", (long long)*out, (long long)i);
}

/* int8: symmetric, one scale for each head's row. */
static void store_row(const ait_tensor *pool, const ait_tensor *scales, const ait_tensor *x, int64_t row, int64_t page, int64_t slot) {
  int64_t width = x->shape[2];
  for (int64_t g = 0; g < x->shape[1]; ++g) {
    int64_t at[4] = {page, g, slot, 0};
    double most = 0, scale = 1;
    if (scales) {
      for (int64_t i = 0; i < width; ++i) most = fmax(most, fabs(element(x, row, g, i)));
      scale = (double)(float)(most / 127);
      put(scales, page, g, slot, scale);
    }
    for (; at[3] < width; ++at[3]) {
      double value = element(x, row, g, at[3]);
      if (scales) value = scale > 0 ? fmin(fmax(nearbyint(value / scale), -127), 127) : 0;
      ait_element_set_f64(ait_ref_at(pool, at), pool->dtype, value);
    }
  }
}

static double load(const ait_tensor *pool, const ait_tensor *scales, int64_t page, int64_t g, int64_t slot, int64_t i) {
  int64_t at[4] = {page, g, slot, i};
  double value = ait_element_f64(ait_ref_at(pool, at), pool->dtype);
  return scales ? value * element(scales, page, g, slot) : value;
}

/* One row and head. scores: room for the positions; sums: value_width. */
static ait_status attend(const cached *c, int64_t i, int64_t row, int64_t position, int64_t h, double *scores, double *sums) {
  int64_t g = h / (c->heads / c->groups), page, low = c->window > 0 && position >= c->window ? position - c->window + 1 : 0;
  double top = vector_or(c->sinks, h, -INFINITY), slope = vector_or(c->slopes, h, 0), total = 0;
  for (int64_t j = low; j <= position; ++j) {
    double s = 0;
    AIT_TRY(page_of(c, i, j, &page));
    for (int64_t e = 0; e < c->width; ++e) s += element(c->q, row, h, e) * load(c->k_pool, c->k_scale, page, g, j % c->page_size, e);
    s *= c->scale;
    if (c->cap > 0) s = c->cap * tanh(s / c->cap);
    scores[j - low] = s + slope * (double)(j - position);
    if (c->bias) scores[j - low] += element(c->bias, h, position - j < c->bias->shape[1] ? position - j : c->bias->shape[1] - 1, 0);
    if (!(scores[j - low] <= top)) top = scores[j - low];
  }
  if (c->sinks) total = exp(vector_or(c->sinks, h, 0) - top);
  memset(sums, 0, (size_t)c->value_width * sizeof *sums);
  for (int64_t j = low; j <= position; ++j) {
    double p = exp(scores[j - low] - top);
    total += p;
    AIT_TRY(page_of(c, i, j, &page));
    for (int64_t e = 0; e < c->value_width; ++e) sums[e] += p * load(c->v_pool, c->v_scale, page, g, j % c->page_size, e);
  }
  for (int64_t e = 0; e < c->value_width; ++e) put(&c->out, row, h, e, sums[e] / total);
  return AIT_OK;
}

static ait_status attend_sequence(const cached *c, int64_t i, const span *s, double *scores, double *sums) {
  int64_t page;
  for (int64_t r = 0; r < s->count; ++r) {
    AIT_TRY(page_of(c, i, s->past + r, &page));
    store_row(c->k_pool, c->k_scale, c->k, s->first + r, page, (s->past + r) % c->page_size);
    store_row(c->v_pool, c->v_scale, c->v, s->first + r, page, (s->past + r) % c->page_size);
  }
  for (int64_t r = 0; r < s->count; ++r)
    for (int64_t h = 0; h < c->heads; ++h) AIT_TRY(attend(c, i, s->first + r, s->past + r, h, scores, sums));
  return AIT_OK;
}

ait_status ait_ref_cached_attention(ait_ref_call *call) {
  cached c;
  span s;
  AIT_TRY(get_operands(call, &c));
  AIT_TRY(check_operands(&c));
  AIT_TRY(new_result(call, c.q, c.value_width, &c.out));
  int64_t room;
  if (__builtin_mul_overflow(c.pages->shape[1], c.page_size, &room) || __builtin_add_overflow(room, c.value_width, &room))
    return ait_ref_error(call, AIT_CODE_LIMIT, "the page table is too large");
  double *memory = ait_nn_doubles(call, room);
  if (!memory) return AIT_OOM();
  ait_status status = AIT_OK;
  for (int64_t i = 0; i < c.sequences->shape[0] && status == AIT_OK; ++i) {
    status = read_span(call, c.sequences, i, c.q->shape[0], &s);
    if (status == AIT_OK && s.count > 0) status = attend_sequence(&c, i, &s, memory + c.value_width, memory);
  }
  ait_nn_doubles_free(call, memory, room);
  return status;
}

/* ---- attention over what an encoder gave -------------------------------------------------------------------------------------------*/
typedef struct crossed {
  const ait_tensor *q, *k, *v; /* q [T, H, d], k [units, G, M, d], v [units, G, M, dv] */
  ait_tensor out;
  double scale, cap;
} crossed;

static void attend_memory(const crossed *c, int64_t unit, int64_t row, int64_t h, int64_t length, double *scores) {
  int64_t g = h / (c->q->shape[1] / c->k->shape[1]), at[4] = {unit, g, 0, 0};
  double top = -INFINITY, total = 0;
  for (int64_t j = 0; j < length; ++j) {
    double s = 0;
    for (at[2] = j, at[3] = 0; at[3] < c->q->shape[2]; ++at[3])
      s += element(c->q, row, h, at[3]) * ait_element_f64(ait_ref_at(c->k, at), c->k->dtype);
    s *= c->scale;
    scores[j] = c->cap > 0 ? c->cap * tanh(s / c->cap) : s;
    if (!(scores[j] <= top)) top = scores[j];
  }
  for (int64_t j = 0; j < length; ++j) total += scores[j] = exp(scores[j] - top);
  for (int64_t e = 0; e < c->v->shape[3]; ++e) {
    double sum = 0;
    for (int64_t j = 0; j < length; ++j) {
      at[2] = j, at[3] = e;
      sum += scores[j] * ait_element_f64(ait_ref_at(c->v, at), c->v->dtype);
    }
    put(&c->out, row, h, e, sum / total);
  }
}

static ait_status check_memory(const ait_ref_call *call, const crossed *c, const ait_tensor *sequences, const ait_tensor *lengths) {
  const ait_tensor *q = c->q, *k = c->k, *v = c->v;
  AIT_TRY(check_spans(call, sequences));
  bool good =
      q->rank == 3 && k->rank == 4 && v->rank == 4 && k->shape[1] > 0 && q->shape[1] % k->shape[1] == 0 && q->shape[2] == k->shape[3];
  good = good && !memcmp(k->shape, v->shape, 3 * sizeof *k->shape) && ait_dtype_is_float(k->dtype) && ait_dtype_is_float(v->dtype);
  good = good && lengths->rank == 1 && lengths->shape[0] == k->shape[0] && ait_dtype_is_integer(lengths->dtype);
  return good ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "q, lengths and pools do not fit together");
}

ait_status ait_ref_cross_attention(ait_ref_call *call) {
  const ait_tensor *sequences, *lengths;
  crossed c = {0};
  span s;
  const ait_tensor **needed[5] = {&c.q, &sequences, &lengths, &c.k, &c.v};
  for (uint32_t i = 0; i < 5; ++i) AIT_TRY(ait_ref_tensor(call, i, needed[i]));
  AIT_TRY(ait_ref_float_or(call, 5, 1, &c.scale));
  AIT_TRY(ait_ref_float_or(call, 6, 0, &c.cap));
  AIT_TRY(check_memory(call, &c, sequences, lengths));
  AIT_TRY(new_result(call, c.q, c.v->shape[3], &c.out));
  double *scores = ait_nn_doubles(call, c.k->shape[2] + 1);
  if (!scores) return AIT_OOM();
  ait_status status = AIT_OK;
  for (int64_t i = 0; i < sequences->shape[0] && status == AIT_OK; ++i) {
    status = read_span(call, sequences, i, c.q->shape[0], &s);
    if (status != AIT_OK || s.count == 0) continue;
    int64_t length = s.slot >= 0 && s.slot < lengths->shape[0] ? ait_element_i64(ait_ref_at(lengths, &s.slot), lengths->dtype) : 0;
    if (length < 1 || length > c.k->shape[2])
      status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "sequence %lld has no memory, or one that is too long", (long long)i);
    for (int64_t r = s.first; r < s.first + s.count && status == AIT_OK; ++r)
      for (int64_t h = 0; h < c.q->shape[1]; ++h) attend_memory(&c, s.slot, r, h, length, scores);
  }
  ait_nn_doubles_free(call, scores, c.k->shape[2] + 1);
  return status;
}

/* ---- slots -------------------------------------------------------------------------------------------------------------------------*/
static ait_status check_slot(const ait_ref_call *call, const span *s, const ait_tensor *state) {
  if (s->count == 0 || (s->slot >= 0 && s->slot < state->shape[0])) return AIT_OK;
  return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "slot %lld is not in the pool", (long long)s->slot);
}

/* Before a sequence's first row its state is zeros. */
static void clear_slot(const ait_tensor *state, const span *s) {
  if (s->past > 0 || s->count == 0) return;
  int64_t index[AIT_MAX_RANK] = {s->slot}, shape[AIT_MAX_RANK];
  memcpy(shape, state->shape, sizeof shape);
  for (int32_t d = 0; d < state->rank; ++d)
    if (shape[d] == 0) return;
  do ait_element_set_f64(ait_ref_at(state, index), state->dtype, 0);
  while (ait_ref_next(state->rank - 1, shape + 1, index + 1));
}

/* y[c] = bias[c] + sum over k of w[k][c] x[t - K + 1 + k][c]; the state is the last K - 1 inputs. */
static void convolve(const ait_tensor *x, const ait_tensor *w, const ait_tensor *bias, const ait_tensor *state, const ait_tensor *out,
                     const span *s) {
  int64_t taps = w->shape[0];
  for (int64_t r = s->first; r < s->first + s->count; ++r)
    for (int64_t c = 0; c < x->shape[1]; ++c) {
      double now = element(x, r, c, 0), sum = vector_or(bias, c, 0) + now * element(w, taps - 1, c, 0);
      for (int64_t k = 0; k + 1 < taps; ++k) sum += element(w, k, c, 0) * element(state, s->slot, k, c);
      for (int64_t k = 0; k + 2 < taps; ++k) put(state, s->slot, k, c, element(state, s->slot, k + 1, c));
      if (taps > 1) put(state, s->slot, taps - 2, c, now);
      put(out, r, c, 0, sum);
    }
}

ait_status ait_ref_cached_conv1d(ait_ref_call *call) {
  const ait_tensor *x, *w, *bias = ait_ref_tensor_or_null(call, 2), *sequences, *state;
  ait_tensor out;
  span s;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &w));
  AIT_TRY(ait_ref_tensor(call, 3, &sequences));
  AIT_TRY(ait_ref_tensor(call, 4, &state));
  AIT_TRY(check_spans(call, sequences));
  if (x->rank != 2 || w->rank != 2 || w->shape[1] != x->shape[1] || w->shape[0] < 1 || !is_vector(bias, x->shape[1]) || state->rank != 3 ||
      state->shape[1] != w->shape[0] - 1 || state->shape[2] != x->shape[1] || !ait_dtype_is_float(state->dtype))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input, weight, bias and state do not fit together");
  AIT_TRY(new_result(call, x, x->shape[1], &out));
  for (int64_t i = 0; i < sequences->shape[0]; ++i) {
    AIT_TRY(read_span(call, sequences, i, x->shape[0], &s));
    AIT_TRY(check_slot(call, &s, state));
    clear_slot(state, &s);
    convolve(x, w, bias, state, &out, &s);
  }
  return AIT_OK;
}

typedef struct scan {
  const ait_tensor *u, *dt, *a, *b, *c, *sequences, *state;
  ait_tensor out;
} scan;

/* h = exp(dt a) h + u b;  y = c h, with the state in its own dtype between steps. */
static void scan_head(const scan *f, const span *s, int64_t row, int64_t h) {
  int64_t width = f->u->shape[2], size = f->b->shape[2], g = h / (f->u->shape[1] / f->b->shape[1]);
  double dt = element(f->dt, row, h, 0);
  for (int64_t p = 0; p < width; ++p) {
    double u = element(f->u, row, h, p), y = 0;
    for (int64_t n = 0; n < size; ++n) {
      int64_t at[4] = {s->slot, h, p, n};
      void *cell = ait_ref_at(f->state, at);
      double a = f->a->rank == 2 ? element(f->a, h, n, 0) : element(f->a, h, 0, 0);
      double next = exp(dt * a) * ait_element_f64(cell, f->state->dtype) + u * element(f->b, row, g, n);
      ait_element_set_f64(cell, f->state->dtype, next);
      y += next * element(f->c, row, g, n);
    }
    put(&f->out, row, h, p, y);
  }
}

static ait_status check_scan(const ait_ref_call *call, const scan *f) {
  const ait_tensor *u = f->u, *dt = f->dt, *b = f->b;
  AIT_TRY(check_spans(call, f->sequences));
  bool good = u->rank == 3 && dt->rank == 2 && dt->shape[0] == u->shape[0] && dt->shape[1] == u->shape[1] && b->rank == 3 &&
              f->c->rank == 3 && !memcmp(b->shape, f->c->shape, 3 * sizeof *b->shape) && b->shape[0] == u->shape[0] && b->shape[1] > 0 &&
              u->shape[1] % b->shape[1] == 0;
  good = good && (f->a->rank == 1 || (f->a->rank == 2 && f->a->shape[1] == b->shape[2])) && f->a->shape[0] == u->shape[1];
  good = good && f->state->rank == 4 && f->state->shape[1] == u->shape[1] && f->state->shape[2] == u->shape[2] &&
         f->state->shape[3] == b->shape[2] && ait_dtype_is_float(f->state->dtype);
  return good ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operands and state do not fit together");
}

ait_status ait_ref_cached_scan(ait_ref_call *call) {
  scan f = {0};
  span s;
  const ait_tensor **needed[7] = {&f.u, &f.dt, &f.a, &f.b, &f.c, &f.sequences, &f.state};
  for (uint32_t i = 0; i < 7; ++i) AIT_TRY(ait_ref_tensor(call, i, needed[i]));
  AIT_TRY(check_scan(call, &f));
  AIT_TRY(new_result(call, f.u, f.u->shape[2], &f.out));
  for (int64_t i = 0; i < f.sequences->shape[0]; ++i) {
    AIT_TRY(read_span(call, f.sequences, i, f.u->shape[0], &s));
    AIT_TRY(check_slot(call, &s, f.state));
    clear_slot(f.state, &s);
    for (int64_t r = s.first; r < s.first + s.count; ++r)
      for (int64_t h = 0; h < f.u->shape[1]; ++h) scan_head(&f, &s, r, h);
  }
  return AIT_OK;
}

/* What python -m ait.export_lm writes for recurrences that a model spells as a loop over its tokens: u, dt [B, T, H], a [H, N], b, c [B, T,
 * N]; h = exp(dt a) h + u b, y = c h. */
ait_status ait_ref_ait_scan(ait_ref_call *call) {
  const ait_tensor *in[5];
  ait_tensor out, wide[5] = {0};
  for (uint32_t i = 0; i < 5; ++i) AIT_TRY(ait_ref_tensor(call, i, &in[i]));
  const int64_t *u = in[0]->shape, *b = in[3]->shape;
  bool good = in[0]->rank == 3 && in[2]->rank == 2 && in[3]->rank == 3 && ait_tensor_same_shape(in[0], in[1]) &&
              ait_tensor_same_shape(in[3], in[4]);
  if (!good || in[2]->shape[0] != u[2] || in[2]->shape[1] != b[2] || b[0] != u[0] || b[1] != u[1])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operands do not fit together");
  int64_t batch = u[0], length = u[1], heads = u[2], size = b[2];
  AIT_TRY(ait_ref_new(call, 0, ait_ref_widen(call, in[0]->dtype), 3, u, &out));
  double *h = ait_nn_doubles(call, size + 1);
  ait_status status = h ? AIT_OK : AIT_OOM();
  for (int i = 0; i < 5 && !status; ++i) status = ait_ref_to_f64(call, in[i], &wide[i]);
  for (int64_t k = 0; k < batch * heads && !status; ++k) {
    const double *us = wide[0].data, *dts = wide[1].data, *as = wide[2].data, *bs = wide[3].data, *cs = wide[4].data;
    int64_t head = k % heads;
    memset(h, 0, (size_t)size * sizeof *h);
    for (int64_t t = 0; t < length; ++t) {
      int64_t row = k / heads * length + t, at = row * heads + head;
      double y = 0;
      for (int64_t n = 0; n < size; ++n) {
        h[n] = exp(dts[at] * as[head * size + n]) * h[n] + us[at] * bs[row * size + n];
        y += h[n] * cs[row * size + n];
      }
      ait_element_set_f64((char *)out.data + (size_t)at * ait_dtype_size(out.dtype), out.dtype, y);
    }
  }
  for (int i = 0; i < 5; ++i) ait_tensor_release(&wide[i]);
  if (h) ait_nn_doubles_free(call, h, size + 1);
  return status;
}
