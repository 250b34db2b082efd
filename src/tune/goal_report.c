/* The objective's part of the report: "objective" and "pareto". */
#include "tune/goal.h"
#include "tune/pareto.h"
#include "tune/put_json.h"
#include <math.h>

static void put_number(ait_text *t, bool *first, const char *key, double v) {
  if (isfinite(v)) ait_put_double(t, first, key, v);
}

/* ---- batch sizes -----------------------------------------------------------------------------------------------------------------*/
static void put_point(ait_text *t, const ait_batch_point *p) {
  bool f = true;
  ait_text_printf(t, "{");
  ait_put_int(t, &f, "batch", p->size);
  put_number(t, &f, "rows_per_s", (double)p->size / p->median);
  put_number(t, &f, "median_s", p->median);
  put_number(t, &f, "low_s", p->low);
  put_number(t, &f, "high_s", p->high);
  put_number(t, &f, "quantile_s", p->quantile);
  ait_put_int(t, &f, "bytes", (int64_t)p->bytes);
  ait_put_int(t, &f, "measurements", p->measurements);
  ait_text_printf(t, "}");
}

static int by_size(const ait_batch_result *r, uint32_t *order) {
  for (uint32_t i = 0; i < r->count; ++i) {
    uint32_t k = i;
    for (; k > 0 && r->points[order[k - 1]].size > r->points[i].size; --k) order[k] = order[k - 1];
    order[k] = i;
  }
  return (int)r->count;
}

static void put_batches(ait_text *t, const ait_candidate *c, const ait_batch_result *r) {
  uint32_t order[AIT_BATCH_POINTS];
  bool f = true;
  ait_text_printf(t, "\n      {");
  ait_put_string(t, &f, "candidate", c->name);
  if (r->best >= 0) ait_put_int(t, &f, "best", r->points[r->best].size);
  if (r->best >= 0) put_number(t, &f, "rows_per_s", (double)r->points[r->best].size / r->points[r->best].median);
  ait_put_string(t, &f, "stopped", ait_batch_stop_text(r->stop));
  ait_put_string(t, &f, "reason", r->reason);
  if (r->refused) ait_put_int(t, &f, "refused_batch", r->refused);
  if (r->refused) ait_put_int(t, &f, "refused_bytes", (int64_t)r->refused_bytes);
  if (r->refused) ait_put_int(t, &f, "limit_bytes", (int64_t)r->limit_bytes);
  ait_put_key(t, &f, "sizes");
  ait_text_printf(t, "[");
  for (int i = 0, n = by_size(r, order); i < n; ++i) {
    if (i) ait_text_printf(t, ", ");
    put_point(t, &r->points[order[i]]);
  }
  ait_text_printf(t, "]}");
}

static void put_batch(ait_text *t, bool *first, const ait_trial_context *x, const ait_goal *g, const ait_candidates *list) {
  bool f = true;
  ait_put_key(t, first, "batch");
  ait_text_printf(t, "{");
  ait_put_string(t, &f, "symbol", x->region->symbols[g->space.symbol].name);
  ait_put_int(t, &f, "smallest", g->space.low);
  if (g->space.high < INT64_MAX) ait_put_int(t, &f, "largest", g->space.high);
  put_number(t, &f, "quantile", g->limits.quantile);
  if (g->contest_size) ait_put_int(t, &f, "contest_batch", g->contest_size);
  if (*g->unchecked) ait_put_string(t, &f, "why_not_checked", g->unchecked);
  ait_put_key(t, &f, "candidates");
  ait_text_printf(t, "[");
  for (uint32_t k = 0; k < g->count; ++k) {
    if (k) ait_text_printf(t, ",");
    put_batches(t, &list->items[g->who[k]], &g->batches[k]);
  }
  ait_text_printf(t, "]}");
}

/* ---- traffic ---------------------------------------------------------------------------------------------------------------------*/
static void put_traffic(ait_text *t, bool *first, const ait_goal *g, const ait_candidates *list) {
  bool f = true;
  ait_put_key(t, first, "traffic");
  ait_text_printf(t, "{");
  ait_put_string(t, &f, "trace", g->traffic.name);
  ait_put_int(t, &f, "requests", (int64_t)g->traffic.request_count);
  ait_put_key(t, &f, "candidates");
  ait_text_printf(t, "[");
  for (uint32_t k = 0; k < g->count; ++k) {
    const ait_replay_result *r = &g->replays[k];
    bool m = true;
    ait_text_printf(t, "%s\n      {", k ? "," : "");
    ait_put_string(t, &m, "candidate", list->items[g->who[k]].name);
    ait_put_string(t, &m, "outcome", ait_outcome_text(r->outcome));
    ait_put_string(t, &m, "reason", r->reason);
    if (r->outcome == AIT_OUTCOME_VALID) ait_replay_put(t, &m, &g->traffic, r, g->objective->limit_seconds);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]}");
}

/* ---- the front -------------------------------------------------------------------------------------------------------------------*/
/* Rows a second: at the best batch size where that was looked for, else one call after the other at the first sample's size. */
static double rows_per_second(const ait_goal *g, size_t candidate) {
  for (uint32_t k = 0; g->has_batch && k < g->count; ++k) {
    const ait_batch_result *r = &g->batches[k];
    if (g->who[k] == (int32_t)candidate && r->best >= 0) return (double)r->points[r->best].size / r->points[r->best].median;
  }
  return NAN;
}

/* Below these nobody cares: 1 ms to load, a tenth of the tolerance. */
static double at_least(double v, double least) { return v > least ? v : least; }

static void axes_of(const ait_goal *g, const ait_candidates *list, size_t i, ait_pareto_row *out) {
  const ait_candidate *c = &list->items[i];
  const ait_trial_result *r = &c->result;
  double rate = rows_per_second(g, i);
  *out = (ait_pareto_row){.axes = {c->median, -rate, (double)ait_trial_memory(r), r->load_seconds, (double)r->blob_bytes, r->worst_error,
                                   r->joules >= 0 ? r->joules : NAN}};
}

static ait_status put_front(ait_text *t, const ait_goal *g, const ait_candidates *list) {
  size_t bytes = 2 * (list->count + 1) * sizeof(ait_pareto_row), n = 0;
  ait_pareto_row *rows = ait_alloc_zero(ait_allocator_default(), bytes, _Alignof(ait_pareto_row));
  if (!rows) return AIT_OOM();
  ait_pareto_row *known = rows + list->count + 1; /* with floors, to compare by */
  for (size_t i = 0; i < list->count; ++i)
    if (list->items[i].median > 0) axes_of(g, list, i, &rows[n++]);
  for (size_t i = 0; i < n; ++i) {
    known[i] = rows[i];
    known[i].axes[3] = at_least(known[i].axes[3], 1e-3);
    known[i].axes[5] = at_least(known[i].axes[5], 0.1);
  }
  ait_pareto_mark(known, n, 0.05);
  ait_text_printf(t, ",\n  \"pareto\": [");
  n = 0;
  for (size_t i = 0; i < list->count; ++i) {
    bool f = true;
    if (list->items[i].median <= 0) continue;
    const ait_pareto_row *row = &rows[n];
    ait_text_printf(t, "%s\n    {", n++ ? "," : "");
    ait_put_string(t, &f, "candidate", list->items[i].name);
    ait_put_bool(t, &f, "front", known[row - rows].front);
    put_number(t, &f, "median_s", row->axes[0]);
    put_number(t, &f, "rows_per_s", -row->axes[1]);
    put_number(t, &f, "memory_bytes", row->axes[2]);
    put_number(t, &f, "load_s", row->axes[3]);
    put_number(t, &f, "blob_bytes", row->axes[4]);
    put_number(t, &f, "error_over_tolerance", row->axes[5]);
    put_number(t, &f, "joules", row->axes[6]);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
  ait_free(ait_allocator_default(), rows, bytes);
  return AIT_OK;
}

ait_status ait_goal_put(ait_text *t, const ait_trial_context *x, const ait_goal *g, const ait_candidates *list, const ait_decision *d) {
  bool first = true;
  ait_energy energy;
  ait_text_printf(t, ",\n  \"objective\": {");
  ait_put_string(t, &first, "strategy", ait_strategies[g->objective->kind].name);
  if (g->objective->limit_seconds > 0) ait_put_double(t, &first, "limit_s", g->objective->limit_seconds);
  if (g->objective->quantile > 0) ait_put_double(t, &first, "quantile", g->objective->quantile);
  if (*g->unmet) ait_put_string(t, &first, "unmet", g->unmet);
  ait_energy_read("", &energy);
  ait_put_string(t, &first, "energy", *energy.why_not ? energy.why_not : "RAPL, processor packages");
  if (g->has_batch) put_batch(t, &first, x, g, list);
  if (g->replays) put_traffic(t, &first, g, list);
  ait_put_key(t, &first, "barred");
  ait_text_printf(t, "[");
  bool any = false;
  for (size_t i = 0; i < list->count; ++i) {
    const ait_candidate *c = &list->items[i];
    bool f = true;
    if (!c->barred || c->median <= 0 || d->winner == (int32_t)i) continue;
    ait_text_printf(t, "%s{", any ? ", " : "");
    ait_put_string(t, &f, "candidate", c->name);
    ait_put_string(t, &f, "reason", c->barred);
    ait_text_printf(t, "}");
    any = true;
  }
  ait_text_printf(t, "]}");
  return put_front(t, g, list);
}
