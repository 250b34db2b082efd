#include "tune/batch.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char *ait_batch_stop_text(ait_batch_stop stop) {
  static const char *const texts[AIT_BATCH_STOP_COUNT] = {"largest size", "no gain", "latency", "memory", "time", "failed"};
  return (size_t)stop < AIT_COUNT(texts) ? texts[stop] : "?";
}

/* ---- which sizes -----------------------------------------------------------------------------------------------------------------*/
static bool read_size(const char **text, int64_t *out) {
  char *end;
  errno = 0;
  long long v = strtoll(*text, &end, 10);
  bool good = **text >= '0' && **text <= '9' && !errno && v >= 1;
  *out = v;
  *text = end;
  return good;
}

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

ait_status ait_batch_sizes_parse(const char *text, ait_batch_space *out) {
  const char *p = text;
  bool good = read_size(&p, &out->low);
  out->high = out->low;
  out->list_count = 0;
  if (good && !strncmp(p, "..", 2)) {
    p += 2;
    good = read_size(&p, &out->high) && !*p && out->high >= out->low;
    return good ? AIT_OK : ait_error(AIT_CODE_INVALID_ARGUMENT, "batch sizes '%s': a range is LOW..HIGH", text);
  }
  if (good) out->list[out->list_count++] = out->low;
  while (good && *p == ',') {
    int64_t v;
    ++p;
    good = read_size(&p, &v) && out->list_count < AIT_BATCH_LIST;
    if (good) out->list[out->list_count++] = v;
  }
  if (!good || *p)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' are no batch sizes", text),
                          "like 1..64, or at most %d of them: 1,8,32", AIT_BATCH_LIST);
  qsort(out->list, out->list_count, sizeof *out->list, ascending);
  uint32_t kept = 1;
  for (uint32_t i = 1; i < out->list_count; ++i)
    if (out->list[i] != out->list[kept - 1]) out->list[kept++] = out->list[i];
  out->list_count = kept;
  out->low = out->list[0];
  out->high = out->list[kept - 1];
  return AIT_OK;
}

/* Does the expression depend on the symbol? Dims are made before those that use them: children have smaller ids. */
static bool depends(const ait_region *r, ait_dim d, uint32_t symbol, int depth) {
  const ait_dim_expr *e = &r->dims[d];
  if (e->op == AIT_DIM_SYMBOL) return e->a == symbol;
  if (e->op == AIT_DIM_CONST || e->op == AIT_DIM_UNKNOWN) return false;
  if (depth > 32) return true; /* not to be searched then */
  return depends(r, e->a, symbol, depth + 1) || depends(r, e->b, symbol, depth + 1);
}

/* Dimension 0 wherever it is in a user input, and in one at least exactly. */
static bool is_batch(const ait_region *r, uint32_t symbol) {
  bool exact = false, given = false;
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX) continue;
    const ait_region_value *v = &r->values[in->value];
    for (int32_t d = 0; v->type == AIT_TYPE_TENSOR && d < v->rank; ++d) {
      if (!depends(r, v->shape[d], symbol, 0)) continue;
      if (d > 0) return false;
      exact |= r->dims[v->shape[0]].op == AIT_DIM_SYMBOL;
    }
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    const ait_region_output *o = &r->outputs[i];
    if (o->kind != AIT_OUTPUT_USER || o->arg.kind != AIT_ARG_VALUE) continue;
    const ait_region_value *v = &r->values[o->arg.as.value];
    given |= v->type == AIT_TYPE_TENSOR && v->rank > 0 && depends(r, v->shape[0], symbol, 0);
  }
  return exact && given;
}

/* The user's sizes within the model's. */
static ait_status narrow(const ait_symbol *s, const char *sizes, ait_batch_space *out) {
  int64_t low = s->min > 1 ? s->min : 1, high = s->max;
  out->low = low;
  out->high = high;
  if (!sizes) return AIT_OK;
  AIT_TRY(ait_batch_sizes_parse(sizes, out));
  if (out->low > high || out->high < low || (out->list_count && (out->low < low || out->high > high)))
    return ait_error_hint(
        ait_error(AIT_CODE_INVALID_ARGUMENT, "batch sizes '%s': the model takes %lld to %lld", sizes, (long long)low, (long long)high),
        "'ait inspect' lists the sizes");
  if (out->low < low) out->low = low;
  if (out->high > high) out->high = high;
  return AIT_OK;
}

ait_status ait_batch_find(const ait_region *region, const char *sizes, ait_batch_space *out, bool *out_found) {
  *out = (ait_batch_space){0};
  *out_found = false;
  for (uint32_t s = 0; !*out_found && s < region->symbol_count; ++s) {
    if (!region->symbols[s].backed || !is_batch(region, s)) continue;
    *out_found = true;
    out->symbol = s;
    AIT_TRY(narrow(&region->symbols[s], sizes, out));
  }
  if (*out_found || !sizes) return AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "batch sizes '%s': the model has no free batch size", sizes),
                        "dimension 0 of an input must be dynamic, and no other dimension may depend on it");
}

/* ---- the search ------------------------------------------------------------------------------------------------------------------*/
static const double tie = 0.01, gain = 0.02;
enum { PATIENCE = 2, REFINEMENTS = 8 };

bool ait_batch_keeps(const ait_batch_point *p, const ait_batch_limits *l) {
  return p->median > 0 && p->bytes <= l->bytes && (l->latency <= 0 || p->quantile <= l->latency);
}

/* Rows a second; 0 beyond the limits. */
static double rate_of(const ait_batch_point *p, const ait_batch_limits *limits) {
  return ait_batch_keeps(p, limits) ? (double)p->size / p->median : 0;
}

int32_t ait_batch_best(const ait_batch_point *points, uint32_t count, const ait_batch_limits *limits) {
  double most = 0;
  int32_t best = -1;
  for (uint32_t i = 0; i < count; ++i) most = rate_of(&points[i], limits) > most ? rate_of(&points[i], limits) : most;
  for (uint32_t i = 0; i < count; ++i) {
    double r = rate_of(&points[i], limits);
    if (r > 0 && r >= (1 - tie) * most && (best < 0 || points[i].size < points[best].size)) best = (int32_t)i;
  }
  return best;
}

double ait_batch_foretell(const ait_batch_point *points, uint32_t count, int64_t size) {
  const ait_batch_point *a = NULL, *b = NULL; /* b the largest below, a the next below that */
  for (uint32_t i = 0; i < count; ++i) {
    if (points[i].size > size) continue;
    if (!b || points[i].size > b->size) a = b, b = &points[i];
    else if (points[i].size < b->size && (!a || points[i].size > a->size)) a = &points[i];
  }
  if (!b) return 0;
  double each = (double)b->bytes / (double)b->size;
  if (a) each = b->bytes > a->bytes ? (double)(b->bytes - a->bytes) / (double)(b->size - a->size) : 0;
  return (double)b->bytes + each * (double)(size - b->size);
}

typedef struct search {
  const ait_batch_space *space;
  const ait_batch_limits *limits;
  ait_status (*measure)(void *ctx, ait_batch_point *point);
  void *ctx;
  ait_batch_result *out;
  double start;
  bool over; /* nothing more may be measured */
} search;

static bool out_of_time(const search *s) {
  return s->out->count > 0 && (s->out->count == AIT_BATCH_POINTS || ait_clock_seconds() - s->start > s->limits->seconds);
}

/* Larger than the known size: in proportion. */
static double by_known(const ait_batch_limits *l, int64_t size) {
  return l->known_size > 0 && size > l->known_size ? (double)l->known_bytes * (double)size / (double)l->known_size : 0;
}

/* A process that was at a larger size keeps that one's memory: the smaller size takes what the line between its neighbours says. */
static void between_neighbours(const ait_batch_result *r, ait_batch_point *p) {
  const ait_batch_point *below = NULL, *above = NULL;
  for (const ait_batch_point *q = r->points; q < p; ++q) {
    if (q->size < p->size && (!below || q->size > below->size)) below = q;
    if (q->size > p->size && (!above || q->size < above->size)) above = q;
  }
  if (!above) return;
  double at = below ? (double)(p->size - below->size) / (double)(above->size - below->size) : (double)p->size / (double)above->size;
  double bytes = (double)above->bytes * at + (below ? (double)below->bytes * (1 - at) : 0);
  if (bytes < (double)p->bytes) p->bytes = (uint64_t)bytes;
}

/* The point of this size, measured now where it is not known; NULL: it cannot be had, and `stop` says why. */
static const ait_batch_point *visit(search *s, int64_t size) {
  ait_batch_result *out = s->out;
  for (uint32_t i = 0; i < out->count; ++i)
    if (out->points[i].size == size) return &out->points[i];
  double bytes = out->count ? ait_batch_foretell(out->points, out->count, size) : by_known(s->limits, size);
  if (bytes > (double)s->limits->bytes) {
    out->stop = AIT_BATCH_STOP_MEMORY;
    out->refused = size;
    out->refused_bytes = (uint64_t)bytes;
    return NULL;
  }
  if (out_of_time(s)) {
    s->over = true;
    out->stop = AIT_BATCH_STOP_TIME;
    return NULL;
  }
  ait_batch_point *p = &out->points[out->count];
  *p = (ait_batch_point){.size = size};
  ait_status status = s->measure(s->ctx, p);
  if (status == AIT_OK) {
    between_neighbours(out, p);
    return ++out->count, p;
  }
  s->over = true;
  out->stop = AIT_BATCH_STOP_FAILED;
  snprintf(out->reason, sizeof out->reason, "at batch size %lld: %s", (long long)size, ait_status_message(status));
  ait_status_free(status);
  return NULL;
}

/* The largest size that fits, by the points so far; between what fits and what was refused. */
static void visit_largest_fit(search *s) {
  int64_t fits = 0, not = s->out->refused;
  for (uint32_t i = 0; i < s->out->count; ++i) fits = s->out->points[i].size > fits ? s->out->points[i].size : fits;
  while (not -fits > 1) {
    int64_t middle = fits + (not -fits) / 2;
    if (ait_batch_foretell(s->out->points, s->out->count, middle) > (double)s->limits->bytes) not = middle;
    else fits = middle;
  }
  uint64_t refused_bytes = s->out->refused_bytes;
  (void)visit(s, fits);
  s->out->refused_bytes = refused_bytes;
}

static ait_batch_stop why_not(search *s, const ait_batch_point *p) {
  if (p->bytes <= s->limits->bytes) return AIT_BATCH_STOP_LATENCY;
  s->out->refused = p->size;
  s->out->refused_bytes = p->bytes;
  return AIT_BATCH_STOP_MEMORY;
}

/* Doubles until that gains nothing any more. */
static void climb(search *s) {
  double most = 0;
  int without_gain = 0;
  s->out->stop = AIT_BATCH_STOP_RANGE;
  for (int64_t size = s->space->low;; size = size > s->space->high / 2 ? s->space->high : 2 * size) {
    const ait_batch_point *p = visit(s, size);
    if (!p && s->out->stop == AIT_BATCH_STOP_MEMORY && !s->over && s->out->count) {
      visit_largest_fit(s);
      if (!s->over) s->out->stop = AIT_BATCH_STOP_MEMORY;
    }
    if (!p) return;
    double rate = rate_of(p, s->limits);
    if (rate == 0) {
      s->out->stop = why_not(s, p);
      return;
    }
    without_gain = rate > (1 + gain) * most ? 0 : without_gain + 1;
    most = rate > most ? rate : most;
    if (size == s->space->high) return;
    if (without_gain > PATIENCE) {
      s->out->stop = AIT_BATCH_STOP_SATURATED;
      return;
    }
  }
}

/* The measured neighbours of the best point: the peak of a unimodal function is between them. */
static void bracket(const search *s, int64_t *low, int64_t *high) {
  int32_t best = ait_batch_best(s->out->points, s->out->count, s->limits);
  *low = *high = best < 0 ? 0 : s->out->points[best].size;
  for (uint32_t i = 0; best >= 0 && i < s->out->count; ++i) {
    int64_t size = s->out->points[i].size, at = s->out->points[best].size;
    if (size < at && (*low == at || size > *low)) *low = size;
    if (size > at && (*high == at || size < *high)) *high = size;
  }
}

static double rate_at(search *s, int64_t size) {
  const ait_batch_point *p = visit(s, size);
  return p ? rate_of(p, s->limits) : 0;
}

/* Golden section; until the bracket is an eighth of the size that it holds: finer is below the noise. */
static void narrow_peak(search *s) {
  static const double share = 0.381966011250105; /* 2 - golden ratio */
  ait_batch_stop stop = s->out->stop;
  int64_t low, high;
  bracket(s, &low, &high);
  for (int n = 0; n < REFINEMENTS && !s->over && high - low > 2 && 8 * (high - low) > high; ++n) {
    int64_t left = low + (int64_t)(share * (double)(high - low) + 0.5), right = high - (left - low);
    if (left >= right) left = low + (high - low) / 2, right = left + 1;
    double a = rate_at(s, left), b = s->over ? 0 : rate_at(s, right);
    if (b > a) low = left;
    else high = right; /* beyond the latency both may be 0 */
  }
  if (s->out->stop != AIT_BATCH_STOP_FAILED) s->out->stop = stop; /* finer or not, no larger one was wanted */
}

/* The user's own sizes are all measured, as far as limits allow. */
static void walk_list(search *s) {
  s->out->stop = AIT_BATCH_STOP_RANGE;
  for (uint32_t i = 0; i < s->space->list_count; ++i) {
    const ait_batch_point *p = visit(s, s->space->list[i]);
    if (!p) return;
    if (rate_of(p, s->limits) > 0) continue;
    s->out->stop = why_not(s, p);
    return;
  }
}

void ait_batch_search(const ait_batch_space *space, const ait_batch_limits *limits,
                      ait_status (*measure)(void *ctx, ait_batch_point *point), void *ctx, ait_batch_result *out) {
  search s = {.space = space, .limits = limits, .measure = measure, .ctx = ctx, .out = out, .start = ait_clock_seconds()};
  *out = (ait_batch_result){.best = -1, .limit_bytes = limits->bytes};
  if (space->list_count) walk_list(&s);
  else climb(&s);
  if (!space->list_count && !s.over && out->count > 1) narrow_peak(&s);
  out->best = ait_batch_best(out->points, out->count, limits);
  out->outcome = out->count ? AIT_OUTCOME_VALID : AIT_OUTCOME_FAILED;
  if (!out->count && out->stop == AIT_BATCH_STOP_MEMORY) snprintf(out->reason, sizeof out->reason, "no batch size fits into memory");
}
