/* A candidate at many batch sizes, in one child process. What was measured before a crash counts: the points lie in shared memory. */
#include "tune/batch.h"
#include "tune/memory_use.h"
#include "tune/stats.h"
#include "tune/stopwatch.h"
#include <stdio.h>
#include <sys/mman.h>

enum { POINT_SAMPLES = 64, FEW = 5 };

typedef struct work {
  const ait_trial_context *x;
  const ait_candidate *c;
  const ait_batch_space *space;
  const ait_batch_limits *limits;
  ait_batch_result *out; /* shared with the tuner */
  ait_session *session;
  ait_value *outputs;
  int64_t *symbols;
  ait_tune_case now;
  uint64_t own; /* memory before the first size */
  double each;  /* seconds for one size */
} work;

static ait_status call(void *ctx) {
  work *w = ctx;
  for (size_t k = 0; k < w->x->cases->output_count; ++k) w->outputs[k] = (ait_value){0};
  return ait_session_run(w->session, w->now.inputs, w->now.input_count, w->outputs, w->x->cases->output_count);
}

static double transport(void *ctx) { return ait_session_transport_seconds(((const work *)ctx)->session); }

static ait_status time_size(work *w, ait_batch_point *p) {
  double samples[POINT_SAMPLES], end = ait_clock_seconds() + w->each;
  ait_stopwatch watch = {call, w, 1, 1, transport};
  uint32_t n = 0, dropped = 0;
  AIT_TRY(ait_session_reset(w->session));
  AIT_TRY(ait_stopwatch_warm_up(&watch));
  while (n < POINT_SAMPLES && (n < FEW || ait_clock_seconds() < end)) {
    bool clean;
    AIT_TRY(ait_stopwatch_measure(&watch, &samples[n], &clean));
    if (ait_stopwatch_rejects(clean, n, dropped, end)) ++dropped;
    else ++n;
  }
  ait_stats s = ait_stats_of(samples, n);
  p->median = s.median;
  p->low = s.low;
  p->high = s.high;
  p->quantile = ait_stats_quantile(samples, n, w->limits->quantile > 0 ? w->limits->quantile : 0.95);
  p->measurements = n;
  uint64_t own = ait_memory_used().own, planned = ait_session_bytes(w->session);
  p->bytes = own > w->own && own - w->own > planned ? own - w->own : planned;
  return AIT_OK;
}

static ait_status measure(void *ctx, ait_batch_point *p) {
  work *w = ctx;
  bool possible;
  w->symbols[w->space->symbol] = p->size;
  AIT_TRY(ait_tune_case_resized(w->x->cases, w->x->region, w->symbols, "batch", &w->now, &possible));
  ait_status status = possible ? time_size(w, p) : ait_error(AIT_CODE_INVALID_ARGUMENT, "a condition of the model forbids it");
  ait_tune_case_release(w->x->cases, &w->now);
  return status;
}

/* In the child. Nothing is released: the process ends. */
static ait_status search(work *w) {
  const ait_tune_case *sample = &w->x->cases->items[0];
  ait_allocator a = ait_allocator_default();
  ait_built built;
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = w->c->threads;
  w->symbols = ait_alloc(a, (w->x->region->symbol_count + 1) * sizeof *w->symbols, _Alignof(int64_t));
  w->outputs = ait_alloc_zero(a, (w->x->cases->output_count + 1) * sizeof *w->outputs, _Alignof(ait_value));
  if (!w->symbols || !w->outputs) return AIT_OOM();
  AIT_TRY(ait_bind_inputs(w->x->region, sample->inputs, sample->input_count, w->symbols));
  AIT_TRY(ait_built_create(w->x, w->c, &built));
  AIT_TRY(ait_session_create(built.model, &so, &w->session));
  ait_memory_mark();
  w->own = ait_memory_used().own;
  w->each = w->limits->seconds / 12;
  w->each = w->each < 0.02 ? 0.02 : w->each > 0.4 ? 0.4 : w->each;
  ait_batch_search(w->space, w->limits, measure, w, w->out);
  return AIT_OK;
}

static void child(void *ctx, void *out) {
  work *w = ctx;
  ait_status status = search(w);
  *(char *)out = 1;
  if (status == AIT_OK) return;
  w->out->outcome = ait_status_code(status) == AIT_CODE_UNSUPPORTED ? AIT_OUTCOME_UNSUPPORTED : AIT_OUTCOME_FAILED;
  snprintf(w->out->reason, sizeof w->out->reason, "%s", ait_status_message(status));
}

ait_status ait_trial_batches(const ait_trial_context *x, const ait_candidate *c, const ait_batch_space *space,
                             const ait_batch_limits *limits, ait_batch_result *out) {
  char reason[AIT_REASON_SIZE], done = 0;
  *out = (ait_batch_result){.best = -1};
  ait_batch_result *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return AIT_OOM();
  work w = {.x = x, .c = c, .space = space, .limits = limits, .out = shared};
  ait_status status = ait_child_call(x, child, &w, &done, sizeof done, x->options->trial_seconds + limits->seconds, reason);
  *out = *shared;
  munmap(shared, sizeof *shared);
  if (status != AIT_OK || !*reason) return status;
  out->stop = AIT_BATCH_STOP_FAILED;
  if (out->count > AIT_BATCH_POINTS) out->count = 0; /* a child that went wild wrote here, too */
  out->outcome = out->count ? AIT_OUTCOME_VALID : AIT_OUTCOME_CRASHED;
  out->best = ait_batch_best(out->points, out->count, limits);
  snprintf(out->reason, sizeof out->reason, "at the next batch size: %.200s", reason);
  return AIT_OK;
}
