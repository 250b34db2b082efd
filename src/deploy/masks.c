/* What a mask is, found by evaluating it: causal, causal within a window, plus a bias that is linear in the distance. Nothing else is
 * taken. It is evaluated whole at short lengths, and at the longest one at positions around every number that it is made of; a mask that
 * is not made of positions alone (a table, say) whole at every length that one of its numbers or tables names. */
#include "deploy/internal.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_CONSTANTS = 48, LONGEST = 8192, MAX_POINTS = 512, BIASED_LONGEST = 1024 };

/* ---- numbers that it is made of -------------------------------------------------------------------------------------------------------*/
typedef struct numbers {
  int64_t at[MAX_CONSTANTS];
  uint32_t count;
  bool overflow;
} numbers;

static void add_number(numbers *l, double value) {
  int64_t n = fabs(value) < 1e9 ? (int64_t)fabs(value) : 0;
  if (n < 2) return;
  for (uint32_t i = 0; i < l->count; ++i)
    if (l->at[i] == n) return;
  if (l->count < MAX_CONSTANTS) l->at[l->count++] = n;
  else l->overflow = true;
}

typedef struct walk {
  dep_work *w;
  numbers *l;
  uint8_t *seen;
  uint32_t *stack;
  size_t count, capacity;
  ait_status status;
} walk;

/* A table ends where its size says. */
static void sizes_of_table(const walk *k, uint32_t v) {
  const ait_value_info *info = &k->w->g->values[v];
  int64_t size;
  if (info->type != AIT_TYPE_TENSOR || !ait_is_constant(k->w->g, v)) return;
  for (int32_t d = 0; d < info->rank; ++d)
    if (ait_dim_is_const(k->w->g, info->shape[d], &size)) add_number(k->l, (double)size);
}

/* What hides a key is no number of positions. */
static bool is_fill(double number) { return number <= -9999; }

static void push(void *ctx, uint32_t v) {
  walk *k = ctx;
  double number;
  if (k->status || k->seen[v]) return;
  k->seen[v] = 1;
  if (ait_scalar_constant(k->w->g, v, &number)) add_number(k->l, is_fill(number) ? 0 : number);
  else sizes_of_table(k, v);
  void *stack = k->stack;
  k->status = ait_grow(k->w->a, &stack, &k->capacity, k->count + 1, sizeof *k->stack);
  if (!k->status) k->stack = stack, k->stack[k->count++] = v;
}

static ait_status find_numbers(dep_work *w, const dep_term *terms, uint32_t count, numbers *l) {
  walk k = {.w = w, .l = l, .seen = ait_alloc_zero(w->a, w->g->value_count + 1, 1)};
  if (!k.seen) return AIT_OOM();
  for (uint32_t i = 0; i < count; ++i) push(&k, terms[i].value);
  while (k.count && !k.status) {
    const ait_node *n = w->g->values[k.stack[--k.count]].def;
    for (uint32_t i = 0; n && i < n->arg_count; ++i) {
      if (n->args[i].kind == AIT_ARG_INT) add_number(l, (double)n->args[i].as.i);
      if (n->args[i].kind == AIT_ARG_FLOAT && !is_fill(n->args[i].as.f)) add_number(l, n->args[i].as.f);
    }
    if (n) ait_node_each_operand(n, push, &k);
  }
  ait_free(w->a, k.stack, k.capacity * sizeof *k.stack);
  ait_free(w->a, k.seen, w->g->value_count + 1);
  return k.status;
}

/* ---- what it is -----------------------------------------------------------------------------------------------------------------------*/
static bool allowed(int64_t q, int64_t k, int64_t window) { return k <= q && (!window || k > q - window); }

static bool check_shape(const dep_grid *m, int64_t window, int64_t length, char why[160]) {
  for (int64_t h = 0; h < m->heads; ++h)
    for (int64_t q = 0; q < m->points; ++q)
      for (int64_t k = 0; k < m->points; ++k) {
        bool seen = m->bias[(h * m->points + q) * m->points + k] != -INFINITY;
        if (seen == allowed(dep_grid_at(m, q), dep_grid_at(m, k), window)) continue;
        snprintf(why, 160, "its mask is not causal%s: at length %lld query %lld %s key %lld", window ? " within a window" : "",
                 (long long)length, (long long)dep_grid_at(m, q), seen ? "sees" : "does not see", (long long)dep_grid_at(m, k));
        return false;
      }
  return true;
}

static bool check_bias(const dep_grid *m, int64_t window, const double *slopes, char why[160]) {
  for (int64_t h = 0; h < m->heads; ++h)
    for (int64_t q = 0; q < m->points; ++q) {
      const float *row = &m->bias[(h * m->points + q) * m->points];
      for (int64_t k = 0; k <= q; ++k) {
        int64_t from = dep_grid_at(m, q), to = dep_grid_at(m, k);
        if (!allowed(from, to, window)) continue;
        double want = slopes[h] * (double)(to - from), got = (double)row[k] - (double)row[q];
        if (fabs(want - got) <= 1e-6 + 2e-6 * (fabs(want) + fabs((double)row[q]) + fabs((double)row[k]))) continue;
        snprintf(why, 160, "its mask adds a bias that is not linear in the distance (head %d, query %lld, key %lld: %g)", (int)h,
                 (long long)from, (long long)to, (double)row[k]);
        return false;
      }
    }
  return true;
}

/* Keys that a query sees, when fewer than all: the nearest distance at which one is hidden. */
static int64_t window_of(const dep_grid *m) {
  int64_t nearest = 0;
  for (int64_t q = 0; q < m->points; ++q)
    for (int64_t k = 0; k <= q; ++k) {
      int64_t apart = dep_grid_at(m, q) - dep_grid_at(m, k);
      if (m->bias[q * m->points + k] == -INFINITY && (!nearest || apart < nearest)) nearest = apart;
    }
  return nearest;
}

/* The farthest key that is seen is the nearest one before the window's edge: else the edge lies between two of the points. */
static bool edge_is_known(const dep_grid *m, int64_t window, char why[160]) {
  int64_t farthest = 0;
  for (int64_t q = 0; q < m->points && window; ++q)
    for (int64_t k = 0; k <= q; ++k) {
      int64_t apart = dep_grid_at(m, q) - dep_grid_at(m, k);
      if (m->bias[q * m->points + k] != -INFINITY && apart > farthest && apart < window) farthest = apart;
    }
  if (!window || farthest == window - 1) return true;
  snprintf(why, 160, "the edge of its window lies between %lld and %lld keys", (long long)farthest + 1, (long long)window);
  return false;
}

/* From neighbours that see each other. */
static void read_slopes(const dep_grid *m, double *slopes) {
  for (int64_t h = 0, n = m->points; h < m->heads; ++h) {
    slopes[h] = 0;
    for (int64_t q = n - 1; q > 0; --q) {
      const float *row = &m->bias[(h * n + q) * n];
      double step = ((double)row[q] - (double)row[q - 1]) / (double)(dep_grid_at(m, q) - dep_grid_at(m, q - 1));
      if (dep_grid_at(m, q) - dep_grid_at(m, q - 1) != 1 || !isfinite(step)) continue;
      slopes[h] = step;
      break;
    }
  }
}

/* ---- a bias by distance that is not linear: buckets of relative positions
 * ---------------------------------------------------------------*/
/* For each head and distance the bias of the last query, on a whole grid; false where it is not a function of the distance alone. */
static bool read_distances(const dep_grid *m, int64_t window, float *bias) {
  int64_t n = m->points;
  for (int64_t h = 0; h < m->heads; ++h)
    for (int64_t d = 0; d < n; ++d) {
      bool seen = allowed(n - 1, n - 1 - d, window);
      bias[h * n + d] = seen ? m->bias[(h * n + n - 1) * n + n - 1 - d] : d > 0 ? bias[h * n + d - 1] : 0;
    }
  for (int64_t h = 0; h < m->heads; ++h)
    for (int64_t q = 0; q < n; ++q)
      for (int64_t k = 0; k <= q; ++k) {
        if (!allowed(q, k, window)) continue;
        float want = bias[h * n + q - k], got = m->bias[(h * n + q) * n + k];
        if (!(fabsf(want - got) <= 1e-6f + 2e-6f * fabsf(want))) return false;
      }
  return true;
}

/* Distances up to the one from which on nothing changes. */
static int64_t steady_from(const float *bias, int64_t heads, int64_t n) {
  int64_t most = 1;
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t d = n - 1; d >= most; --d)
      if (bias[h * n + d] != bias[h * n + d - 1]) {
        most = d + 1;
        break;
      }
  return most;
}

/* A table, read at a length at which its end shows; memo->bias stays NULL where there is none, and memo->why says it. */
static ait_status judge_distances(dep_work *w, dep_mask_memo *memo) {
  int64_t longest = memo->heads > 32 ? 512 : 1024, n = w->max_seq < longest ? w->max_seq : longest;
  dep_grid m = {.points = n, .heads = memo->heads};
  float *bias = AIT_ARENA_ARRAY(&w->arena, float, (size_t)(memo->heads * n));
  bool good = true;
  if (!bias) return AIT_OOM();
  ait_status status = dep_grid_fill(w, memo->terms, memo->count, memo->causal, &m, &good);
  good = !status && good && check_shape(&m, memo->window, n, memo->why) && read_distances(&m, memo->window, bias);
  ait_free(w->a, m.bias, m.bytes);
  AIT_TRY(status);
  if (!good) {
    snprintf(memo->why, sizeof memo->why, "its mask adds a bias that is no function of the distance");
    return AIT_OK;
  }
  int64_t used = steady_from(bias, memo->heads, n);
  if (used > n / 2 && n < w->max_seq) {
    snprintf(memo->why, sizeof memo->why, "its bias still changes at distance %d of up to %d", (int)used, (int)w->max_seq);
    return AIT_OK;
  }
  for (int64_t h = 0; h < memo->heads; ++h) memmove(bias + h * used, bias + h * n, (size_t)used * sizeof *bias);
  memset(memo->slopes, 0, (size_t)memo->heads * sizeof *memo->slopes);
  memo->bias = bias;
  memo->distances = used;
  return AIT_OK;
}

/* The table found at one length, at another one. */
static bool check_distances(const dep_grid *m, const dep_mask_memo *memo, char why[160]) {
  for (int64_t h = 0; h < m->heads; ++h)
    for (int64_t q = 0; q < m->points; ++q)
      for (int64_t k = 0; k <= q; ++k) {
        int64_t from = dep_grid_at(m, q), to = dep_grid_at(m, k);
        if (!allowed(from, to, memo->window)) continue;
        int64_t d = from - to < memo->distances ? from - to : memo->distances - 1;
        float want = memo->bias[h * memo->distances + d], got = m->bias[(h * m->points + q) * m->points + k];
        if (fabsf(want - got) <= 1e-6f + 2e-6f * fabsf(want)) continue;
        snprintf(why, 160, "its mask adds a bias that depends on more than the distance (head %d, query %lld, key %lld)", (int)h,
                 (long long)from, (long long)to);
        return false;
      }
  return true;
}

static ait_status look_at(dep_work *w, dep_mask_memo *memo, dep_grid m, int64_t length, bool first) {
  ait_status status = dep_grid_fill(w, memo->terms, memo->count, memo->causal, &m, &memo->good);
  if (!memo->good) snprintf(memo->why, sizeof memo->why, "its mask has a shape or values that are not understood");
  if (!status && memo->good && first) {
    memo->window = window_of(&m);
    read_slopes(&m, memo->slopes);
  }
  memo->good = memo->good && !status && check_shape(&m, memo->window, length, memo->why);
  bool linear = memo->good && !memo->bias && check_bias(&m, memo->window, memo->slopes, memo->why);
  if (memo->good && !linear && first) status = judge_distances(w, memo);
  memo->good = memo->good && !status && (linear || (memo->bias && check_distances(&m, memo, memo->why))) &&
               (!first || edge_is_known(&m, memo->window, memo->why));
  ait_free(w->a, m.bias, m.bytes);
  return status;
}

/* ---- where it is looked at ------------------------------------------------------------------------------------------------------------*/
typedef struct points {
  int64_t at[MAX_POINTS];
  int64_t count, length;
} points;

static void add_point(points *p, int64_t at) {
  if (at >= 0 && at < p->length && p->count < MAX_POINTS) p->at[p->count++] = at;
}

static int by_size(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Around 0, the end, powers of two, each number and twice each number, and some drawn ones. */
static void choose_points(const numbers *l, points *p) {
  uint64_t seed = 11;
  for (int64_t i = 0; i < 14; ++i) add_point(p, i);
  for (int64_t i = 1; i < 4; ++i) add_point(p, p->length - i);
  for (uint32_t i = 0; i < l->count; ++i)
    for (int64_t d = -2; d <= 2; ++d) add_point(p, l->at[i] + d), add_point(p, 2 * l->at[i] + d);
  for (int64_t i = 16; i < p->length; i *= 2) add_point(p, i - 1), add_point(p, i), add_point(p, i + 1);
  for (int i = 0; i < 24; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    add_point(p, (int64_t)((seed >> 33) % (uint64_t)p->length));
  }
  qsort(p->at, (size_t)p->count, sizeof *p->at, by_size);
  int64_t kept = 0;
  for (int64_t i = 0; i < p->count; ++i)
    if (!kept || p->at[kept - 1] != p->at[i]) p->at[kept++] = p->at[i];
  p->count = kept;
}

static ait_status look_at_samples(dep_work *w, dep_mask_memo *memo, const numbers *l) {
  points *p = ait_arena_alloc(&w->arena, sizeof *p, 8);
  if (!p) return AIT_OOM();
  *p = (points){.length = w->max_seq};
  choose_points(l, p);
  return look_at(w, memo, (dep_grid){.points = p->count, .heads = memo->heads, .at = p->at}, w->max_seq, true);
}

static void add_length(int64_t *lengths, uint32_t *count, int64_t n, int64_t most) {
  if (n > most) n = most;
  for (uint32_t i = 0; i < *count; ++i)
    if (lengths[i] == n) return;
  if (n >= 2) lengths[(*count)++] = n;
}

/* Whole, at the length just beyond each number, longest first: it shows the window. */
static ait_status look_at_lengths(dep_work *w, dep_mask_memo *memo, const numbers *l, bool sampled) {
  int64_t lengths[MAX_CONSTANTS + 8];
  uint32_t count = 0;
  add_length(lengths, &count, 2, w->max_seq), add_length(lengths, &count, 5, w->max_seq), add_length(lengths, &count, 41, w->max_seq);
  for (uint32_t i = 0; i < l->count && !sampled; ++i) add_length(lengths, &count, l->at[i] + 3, w->max_seq);
  qsort(lengths, count, sizeof *lengths, by_size);
  int64_t limit = memo->heads > 1 ? BIASED_LONGEST : LONGEST;
  if (lengths[count - 1] > limit) {
    memo->good = false;
    snprintf(memo->why, sizeof memo->why, "its mask can be tried up to length %lld only, and names %lld: --max-seq %lld would do",
             (long long)limit, (long long)lengths[count - 1], (long long)limit);
  }
  for (uint32_t i = count; i-- > 0 && memo->good;)
    AIT_TRY(look_at(w, memo, (dep_grid){.points = lengths[i], .heads = memo->heads}, lengths[i], !sampled && i + 1 == count));
  return AIT_OK;
}

static int64_t heads_of(const dep_work *w, const dep_term *terms, uint32_t count) {
  int64_t most = 1;
  for (uint32_t i = 0; i < count; ++i) {
    const ait_value_info *v = &w->g->values[terms[i].value];
    int64_t heads = 1, size;
    for (int32_t d = 0; d < v->rank - 2; ++d)
      if (ait_dim_is_const(w->g, v->shape[d], &size)) heads *= size;
    if (heads > most) most = heads;
  }
  return most;
}

static ait_status judge(dep_work *w, dep_mask_memo *memo) {
  numbers l = {0};
  bool sampled;
  AIT_TRY(find_numbers(w, memo->terms, memo->count, &l));
  AIT_TRY(dep_grid_can_sample(w, memo->terms, memo->count, &sampled));
  memo->heads = heads_of(w, memo->terms, memo->count);
  memo->slopes = AIT_ARENA_ARRAY(&w->arena, double, (size_t)memo->heads);
  if (!memo->slopes) return AIT_OOM();
  memo->good = !l.overflow;
  if (l.overflow) snprintf(memo->why, sizeof memo->why, "its mask is made of too many numbers");
  if (memo->good && sampled) AIT_TRY(look_at_samples(w, memo, &l));
  return memo->good ? look_at_lengths(w, memo, &l, sampled) : AIT_OK;
}

static bool same_terms(const dep_mask_memo *m, const dep_term *terms, uint32_t count, bool causal) {
  bool same = m->count == count && m->causal == causal;
  for (uint32_t i = 0; same && i < count; ++i)
    same = m->terms[i].value == terms[i].value && m->terms[i].role == terms[i].role && m->terms[i].factor == terms[i].factor;
  return same;
}

ait_status dep_read_mask(dep_work *w, const dep_term *terms, uint32_t count, bool causal, dep_mask_memo **out) {
  for (size_t i = 0; i < w->mask_count; ++i)
    if (same_terms(&w->masks[i], terms, count, causal)) {
      *out = &w->masks[i];
      return AIT_OK;
    }
  void *masks = w->masks;
  AIT_TRY(ait_grow(w->a, &masks, &w->mask_capacity, w->mask_count + 1, sizeof *w->masks));
  w->masks = masks;
  dep_mask_memo *m = *out = &w->masks[w->mask_count++];
  *m = (dep_mask_memo){.count = count, .causal = causal};
  memcpy(m->terms, terms, count * sizeof *terms);
  return judge(w, m);
}
