/* Per-step times and per-output errors of a candidate, measured in a child process; the members of the report that hold them. */
#include "tune/evidence.h"
#include "tune/cost.h"
#include "tune/put_json.h"
#include "tune/stats.h"
#include "tune/stopwatch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 48 };

/* ---- measuring (in the child) ----------------------------------------------------------------------------------------------------*/
typedef struct profiler {
  const ait_trial_context *x;
  const ait_candidate *c;
  double seconds; /* to spend */
  ait_session *session;
  ait_value *outputs;
  size_t steps;
  ait_step_time *before, *after;
  double *times; /* steps + 1 rows of CALLS: the last is the whole call */
} profiler;

static ait_status call(void *ctx) {
  profiler *p = ctx;
  const ait_tune_case *c = &p->x->cases->items[0];
  for (size_t k = 0; k < p->x->cases->output_count; ++k) p->outputs[k] = (ait_value){0};
  return ait_session_run(p->session, c->inputs, c->input_count, p->outputs, p->x->cases->output_count);
}

static ait_status open_session(profiler *p, ait_model *model, bool profile) {
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = p->c->threads;
  so.profile = profile;
  return ait_session_create(model, &so, &p->session);
}

static ait_status check_outputs(profiler *p, ait_model *model, ait_profile *out) {
  ait_tune_rows rows = {.items = out->rows, .capacity = AIT_PROFILE_ROWS};
  ait_tune_error error;
  AIT_TRY(open_session(p, model, false));
  ait_status status = ait_tune_check(p->session, p->x->cases, &rows, &error);
  ait_session_destroy(p->session);
  out->row_count = rows.count;
  return status;
}

static ait_status time_steps(profiler *p, ait_profile *out) {
  ait_allocator a = ait_allocator_default();
  ait_stopwatch watch = {.call = call, .ctx = p, .round = 1, .inner = 1};
  AIT_TRY(ait_stopwatch_warm_up(&watch));
  p->steps = ait_session_profile(p->session, NULL, 0);
  p->before = ait_alloc_zero(a, (p->steps + 1) * sizeof *p->before, _Alignof(ait_step_time));
  p->after = ait_alloc_zero(a, (p->steps + 1) * sizeof *p->after, _Alignof(ait_step_time));
  p->times = ait_alloc_zero(a, (p->steps + 1) * CALLS * sizeof *p->times, _Alignof(double));
  if (!p->before || !p->after || !p->times) return AIT_OOM();
  double end = ait_clock_seconds() + p->seconds;
  for (out->calls = 0; out->calls < CALLS && (out->calls < 3 || ait_clock_seconds() < end); ++out->calls) {
    ait_session_profile(p->session, p->before, p->steps);
    double start = ait_clock_seconds();
    AIT_TRY(call(p));
    p->times[p->steps * CALLS + out->calls] = ait_clock_seconds() - start;
    ait_session_profile(p->session, p->after, p->steps);
    for (size_t i = 0; i < p->steps; ++i) p->times[i * CALLS + out->calls] = p->after[i].seconds - p->before[i].seconds;
  }
  for (size_t i = 0; i <= p->steps; ++i) p->times[i * CALLS] = ait_stats_of(&p->times[i * CALLS], out->calls).median;
  out->call_seconds = p->times[p->steps * CALLS];
  return AIT_OK;
}

static void cut(char *to, size_t size, const char *from) { snprintf(to, size, "%s", from ? from : ""); }

static int descending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* All steps, or where there are too many those that take longest. */
static ait_status keep_steps(const profiler *p, ait_profile *out) {
  double least = 0, *sorted = NULL;
  if (p->steps > AIT_PROFILE_STEPS) {
    sorted = ait_alloc(ait_allocator_default(), p->steps * sizeof *sorted, _Alignof(double));
    if (!sorted) return AIT_OOM();
    for (size_t i = 0; i < p->steps; ++i) sorted[i] = p->times[i * CALLS];
    qsort(sorted, p->steps, sizeof *sorted, descending);
    least = sorted[AIT_PROFILE_STEPS - 1];
    ait_free(ait_allocator_default(), sorted, p->steps * sizeof *sorted);
  }
  for (size_t i = 0; i < p->steps; ++i) {
    const ait_step_time *t = &p->after[i];
    double seconds = p->times[i * CALLS];
    if (seconds < least || out->step_count == AIT_PROFILE_STEPS) {
      ++out->rest_count;
      out->rest_seconds += seconds;
      continue;
    }
    ait_profile_step *s = &out->steps[out->step_count++];
    *s = (ait_profile_step){.seconds = seconds, .portable = t->portable};
    cut(s->name, sizeof s->name, t->name);
    cut(s->op, sizeof s->op, t->op);
    cut(s->kernel, sizeof s->kernel, t->kernel);
    cut(s->module, sizeof s->module, t->module);
  }
  return AIT_OK;
}

static ait_status profile(profiler *p, ait_profile *out) {
  ait_built built;
  p->outputs = ait_alloc_zero(ait_allocator_default(), (p->x->cases->output_count + 1) * sizeof *p->outputs, _Alignof(ait_value));
  if (!p->outputs) return AIT_OOM();
  AIT_TRY(ait_built_create(p->x, p->c, &built));
  AIT_TRY(check_outputs(p, built.model, out));
  AIT_TRY(open_session(p, built.model, true));
  AIT_TRY(time_steps(p, out));
  return keep_steps(p, out); /* the process ends: nothing is released */
}

static void profile_child(void *ctx, void *result) {
  profiler *p = ctx;
  ait_profile *out = result;
  ait_status status = profile(p, out);
  if (status != AIT_OK) cut(out->why, sizeof out->why, ait_status_message(status));
}

ait_status ait_profile_run(const ait_trial_context *x, const ait_candidate *c, double seconds, ait_profile *out) {
  profiler p = {.x = x, .c = c, .seconds = seconds};
  char why[AIT_REASON_SIZE];
  memset(out, 0, sizeof *out);
  AIT_TRY(ait_child_call(x, profile_child, &p, out, sizeof *out, x->options->trial_seconds, why));
  if (!*why) return AIT_OK;
  memset(out, 0, sizeof *out);
  memcpy(out->why, why, sizeof why);
  return AIT_OK;
}

typedef struct roofline_job {
  int32_t threads;
  uint64_t cpu_mask;
} roofline_job;
typedef struct roofline_result {
  bool known;
  ait_roofline roofline;
} roofline_result;

static void roofline_child(void *ctx, void *result) {
  const roofline_job *job = ctx;
  roofline_result *out = result;
  out->known = ait_roofline_measure(job->threads, job->cpu_mask, 0.4, &out->roofline) == AIT_OK;
}

ait_status ait_evidence_roofline(const ait_trial_context *x, int32_t threads, ait_roofline *out, bool *out_known) {
  roofline_job job = {threads, x->options->cpu_mask};
  roofline_result result = {0};
  char why[AIT_REASON_SIZE];
  AIT_TRY(ait_child_call(x, roofline_child, &job, &result, sizeof result, x->options->trial_seconds, why));
  *out_known = !*why && result.known;
  *out = result.roofline;
  return AIT_OK;
}

void ait_evidence_deinit(ait_evidence *e) {
  ait_free(ait_allocator_default(), e->profiles, 2 * sizeof *e->profiles);
  *e = (ait_evidence){0};
}

/* ---- members of the report -------------------------------------------------------------------------------------------------------*/
static void put_number(ait_text *t, bool *first, const char *key, double v) {
  if (isfinite(v)) ait_put_double(t, first, key, v);
}

/* Three digits say what a step's time is worth, and keep the file small. */
static void put_time(ait_text *t, bool *first, const char *key, double seconds) {
  ait_put_key(t, first, key);
  ait_text_printf(t, "%.3g", seconds);
}

/* Sizes as they are in the first sample; what depends on data is not known. */
static ait_status bind(const ait_graph *g, const ait_tune_case *c, int64_t **out_symbols) {
  ait_allocator a = ait_allocator_default();
  ait_region *region;
  AIT_TRY(ait_graph_region(g, a, &region));
  *out_symbols = ait_alloc_zero(a, (g->root->symbol_count + 1) * sizeof **out_symbols, _Alignof(int64_t));
  ait_status status = *out_symbols ? ait_bind_inputs(region, c->inputs, c->input_count, *out_symbols) : AIT_OOM();
  ait_graph_region_destroy(a, region);
  return status;
}

static void put_steps(ait_text *t, const ait_profile *p, const ait_step_cost *costs) {
  ait_text_printf(t, "[");
  for (uint32_t i = 0; i < p->step_count; ++i) {
    const ait_profile_step *s = &p->steps[i];
    bool first = true;
    ait_text_printf(t, "%s\n      {", i ? "," : "");
    ait_put_string(t, &first, "node", s->name);
    ait_put_string(t, &first, "op", s->op);
    ait_put_string(t, &first, "kernel", s->kernel);
    ait_put_string(t, &first, "module", s->module);
    put_time(t, &first, "seconds", s->seconds);
    if (s->portable) ait_put_bool(t, &first, "portable", true);
    if (costs && costs[i].known) {
      ait_put_double(t, &first, "flops", costs[i].flops);
      ait_put_double(t, &first, "bytes", costs[i].bytes);
      ait_put_double(t, &first, "live_bytes", costs[i].live_bytes);
    }
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
}

static ait_status put_profile(ait_text *t, const ait_trial_context *x, const ait_candidate *c, const ait_profile *p) {
  ait_allocator a = ait_allocator_default();
  ait_graph *lowered = NULL;
  int64_t *symbols = NULL;
  ait_step_cost *costs = ait_alloc_zero(a, (p->step_count + 1) * sizeof *costs, _Alignof(ait_step_cost));
  ait_build_request request = {.allocator = a, .backend = c->backend, .options = c->options, .cpu_mask = x->options->cpu_mask};
  ait_status status = costs ? ait_plan_lower(x->raw, &request, &lowered) : AIT_OOM();
  if (status == AIT_OK) status = bind(lowered, &x->cases->items[0], &symbols);
  if (status == AIT_OK) status = ait_step_costs(lowered, symbols, p, costs);
  bool first = true;
  ait_put_string(t, &first, "candidate", c->name);
  ait_put_string(t, &first, "case", x->cases->items[0].label);
  if (*p->why) ait_put_string(t, &first, "why_not", p->why);
  ait_put_int(t, &first, "calls", p->calls);
  put_time(t, &first, "call_s", p->call_seconds);
  ait_put_int(t, &first, "rest_steps", p->rest_count);
  put_time(t, &first, "rest_s", p->rest_seconds);
  ait_put_key(t, &first, "steps");
  put_steps(t, p, costs);
  ait_free(a, costs, (p->step_count + 1) * sizeof *costs);
  ait_free(a, symbols, lowered && symbols ? (lowered->root->symbol_count + 1) * sizeof *symbols : 0);
  ait_graph_destroy(lowered);
  return status;
}

static ait_status put_modules(ait_text *t, const ait_trial_context *x) {
  ait_allocator a = ait_allocator_default();
  ait_graph *g = NULL;
  int64_t *symbols = NULL;
  ait_build_request request = {.allocator = a, .backend = ait_backend_find("eager"), .cpu_mask = UINT64_MAX};
  ait_status status = request.backend ? ait_plan_lower(x->raw, &request, &g) : AIT_OK;
  if (status != AIT_OK) ait_status_free(status); /* work is then counted on the raw graph */
  const ait_graph *from = g ? g : x->raw;
  ait_module_sum *sums = ait_alloc_zero(a, (from->module_count + 1) * sizeof *sums, _Alignof(ait_module_sum)), total = {0};
  status = sums ? bind(from, &x->cases->items[0], &symbols) : AIT_OOM();
  if (status == AIT_OK) ait_module_sums(from, symbols, sums, &total);
  for (size_t m = 0; status == AIT_OK && m < from->module_count; ++m) {
    bool first = true;
    ait_text_printf(t, "%s\n    {", m ? "," : "");
    ait_put_string(t, &first, "path", from->modules[m].path);
    ait_put_string(t, &first, "type", from->modules[m].type);
    ait_put_int(t, &first, "calls", from->modules[m].calls);
    ait_put_double(t, &first, "parameters", sums[m].parameters);
    ait_put_double(t, &first, "parameter_bytes", sums[m].parameter_bytes);
    ait_put_double(t, &first, "flops", sums[m].flops);
    ait_put_double(t, &first, "bytes", sums[m].bytes);
    ait_text_printf(t, "}");
  }
  ait_free(a, symbols, symbols ? (from->root->symbol_count + 1) * sizeof *symbols : 0);
  ait_free(a, sums, (from->module_count + 1) * sizeof *sums);
  ait_graph_destroy(g);
  return status;
}

static void put_accuracy(ait_text *t, const ait_tune_cases *cases, const ait_candidate *c, const ait_profile *p, bool *any) {
  for (uint32_t i = 0; i < p->row_count; ++i) {
    const ait_tune_row *r = &p->rows[i];
    bool first = true;
    if (r->case_index >= cases->count || r->output_index >= cases->output_count) continue;
    ait_text_printf(t, "%s\n    {", *any ? "," : "");
    *any = true;
    ait_put_string(t, &first, "candidate", c->name);
    ait_put_string(t, &first, "case", cases->items[r->case_index].label);
    ait_put_string(t, &first, "output", cases->outputs[r->output_index].name);
    put_number(t, &first, "error_over_tolerance", r->worst);
    put_number(t, &first, "max_abs", r->max_abs);
    put_number(t, &first, "snr_db", r->snr_db);
    ait_text_printf(t, "}");
  }
}

ait_status ait_evidence_put(ait_text *t, const ait_trial_context *x, const ait_candidates *list, const ait_evidence *e) {
  bool any = false;
  ait_text_printf(t, ",\n  \"modules\": [");
  AIT_TRY(put_modules(t, x));
  ait_text_printf(t, "]");
  if (e->has_roofline) {
    ait_text_printf(t, ",\n  \"roofline\": ");
    ait_roofline_put(t, &e->roofline);
  }
  ait_text_printf(t, ",\n  \"accuracy\": [");
  for (size_t k = 0; k < e->count; ++k) put_accuracy(t, x->cases, &list->items[e->candidates[k]], &e->profiles[k], &any);
  ait_text_printf(t, "],\n  \"profiles\": [");
  for (size_t k = 0; k < e->count; ++k) {
    ait_text_printf(t, "%s\n    {", k ? "," : "");
    AIT_TRY(put_profile(t, x, &list->items[e->candidates[k]], &e->profiles[k]));
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
  return AIT_OK;
}
