#include "tune/replay.h"
#include "tune/put_json.h"
#include "tune/stats.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the queue -------------------------------------------------------------------------------------------------------------------*/
double ait_queue_run(const double *arrivals, const double *services, size_t count, double *waits) {
  double free_at = 0;
  for (size_t i = 0; i < count; ++i) {
    double start = arrivals[i] > free_at ? arrivals[i] : free_at;
    waits[i] = start - arrivals[i];
    free_at = start + services[i];
  }
  return free_at;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double q) { return ait_stats_quantile(sorted, (uint32_t)n, q); }

ait_replay_numbers ait_replay_judge(const double *arrivals, const double *services, size_t count, double limit, double q, double *scratch) {
  ait_replay_numbers r = {0};
  double *waits = scratch, *sorted = scratch + count, busy = 0, good = 0;
  if (count == 0) return r;
  double end = ait_queue_run(arrivals, services, count, waits);
  for (size_t i = 0; i < count; ++i) {
    sorted[i] = waits[i] + services[i];
    busy += services[i];
    good += limit <= 0 || sorted[i] <= limit;
    r.wait_mean += waits[i] / (double)count;
  }
  qsort(sorted, count, sizeof *sorted, ascending);
  r.p50 = quantile(sorted, count, 0.5);
  r.p95 = quantile(sorted, count, 0.95);
  r.p99 = quantile(sorted, count, 0.99);
  r.max = sorted[count - 1];
  r.quantile = quantile(sorted, count, q);
  qsort(waits, count, sizeof *waits, ascending);
  r.wait_p50 = quantile(waits, count, 0.5);
  r.wait_p99 = quantile(waits, count, 0.99);
  memcpy(sorted, services, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, ascending);
  r.service_p50 = quantile(sorted, count, 0.5);
  r.service_p99 = quantile(sorted, count, 0.99);
  r.service_mean = busy / (double)count;
  r.span = end - arrivals[0];
  r.good_share = good / (double)count;
  if (r.span <= 0) return r;
  r.throughput = (double)count / r.span;
  r.goodput = good / r.span;
  r.utilisation = busy / r.span;
  return r;
}

/* ---- calls -----------------------------------------------------------------------------------------------------------------------*/
enum { KEPT = 64 };
typedef struct kind_times {
  ait_tune_case inputs;
  double kept[KEPT]; /* the latest times */
  uint32_t count, next;
} kind_times;

typedef struct replay {
  const ait_replay_request *q;
  ait_session *session;
  kind_times *kinds;
  ait_value *outputs;
  double *arrivals, *services, *scratch;
  double end;
} replay;

static ait_status call(replay *r, uint32_t kind, double *out_seconds) {
  kind_times *k = &r->kinds[kind];
  for (size_t i = 0; i < r->q->output_count; ++i) r->outputs[i] = (ait_value){0};
  double start = ait_clock_seconds(), carried = ait_session_transport_seconds(r->session);
  ait_status status = ait_session_run(r->session, k->inputs.inputs, k->inputs.input_count, r->outputs, r->q->output_count);
  *out_seconds = ait_clock_seconds() - start - (ait_session_transport_seconds(r->session) - carried);
  if (status != AIT_OK) return ait_error_context(status, "trace '%s' line %u", r->q->traffic->name, r->q->traffic->kinds[kind].line);
  k->kept[k->count++ % KEPT] = *out_seconds;
  return AIT_OK;
}

/* The first calls of a size plan and allocate: they are not what traffic meets later. */
static ait_status warm_up(replay *r) {
  const ait_traffic *t = r->q->traffic;
  double seconds;
  for (size_t k = 0; k < t->kind_count; ++k) {
    AIT_TRY(ait_traffic_case(t, k, r->q->cases, r->q->region, &r->kinds[k].inputs));
    for (int i = 0; i < 2; ++i) AIT_TRY(call(r, (uint32_t)k, &seconds));
    r->kinds[k].kept[0] = r->kinds[k].kept[1];
    r->kinds[k].count = 1;
  }
  return ait_session_reset(r->session);
}

static uint32_t held(const kind_times *k) { return k->count < KEPT ? k->count : KEPT; }

/* The last call was disturbed: an earlier one stands in for it. */
static void forget(kind_times *k, double *seconds) {
  if (k->count < 2) return;
  --k->count;
  uint32_t newest = k->count % KEPT, n = held(k);
  k->kept[newest] = k->kept[(newest + n - 1) % n];
  *seconds = k->kept[k->next++ % n];
}

static ait_status pass(replay *r, ait_replay_result *out) {
  const ait_traffic *t = r->q->traffic;
  AIT_TRY(ait_session_reset(r->session));
  for (size_t i = 0; i < t->request_count; ++i) {
    uint32_t kind = t->requests[i].kind;
    kind_times *k = &r->kinds[kind];
    ++out->requests;
    if (i > 0 && ait_clock_seconds() > r->end) {
      r->services[i] = k->kept[k->next++ % held(k)];
      continue;
    }
    int64_t voluntary, before, after;
    ait_clock_switches(&voluntary, &before);
    AIT_TRY(call(r, kind, &r->services[i]));
    ait_clock_switches(&voluntary, &after);
    bool clean = before == after || out->dropped >= 4 * (out->measured + 1); /* a busy machine: better noisy than nothing */
    if (!clean) forget(k, &r->services[i]);
    out->measured += clean;
    out->dropped += !clean;
  }
  return AIT_OK;
}

static double score_of(const ait_replay_request *q, const ait_replay_numbers *n) {
  return q->limit > 0 ? 1 / (n->goodput > 0 ? n->goodput : 1e-12) : n->quantile;
}

static double middle(const double *scores, uint32_t count) {
  double sorted[AIT_REPLAY_PASSES];
  memcpy(sorted, scores, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, ascending);
  return count ? sorted[(count - 1) / 2] : 0;
}

void ait_replay_join(ait_replay_result *a, const ait_replay_result *b) {
  if (b->outcome != AIT_OUTCOME_VALID) {
    *a = *b;
    return;
  }
  for (uint32_t i = 0; i < b->passes && a->passes < AIT_REPLAY_PASSES; ++i) a->scores[a->passes++] = b->scores[i];
  a->requests += b->requests;
  a->measured += b->measured;
  a->dropped += b->dropped;
  double score = middle(a->scores, a->passes);
  if (fabs(b->score - score) < fabs(a->score - score)) a->numbers = b->numbers;
  a->score = score;
}

static ait_status run(replay *r, ait_replay_result *out) {
  const ait_traffic *t = r->q->traffic;
  ait_replay_numbers numbers[AIT_REPLAY_PASSES];
  for (size_t i = 0; i < t->request_count; ++i) r->arrivals[i] = t->requests[i].at;
  AIT_TRY(warm_up(r));
  r->end = ait_clock_seconds() + r->q->seconds;
  uint32_t most = r->q->passes > 0 && r->q->passes < AIT_REPLAY_PASSES ? r->q->passes : AIT_REPLAY_PASSES;
  for (uint64_t calls = 0; out->passes < most; calls = out->measured) {
    AIT_TRY(pass(r, out));
    numbers[out->passes] = ait_replay_judge(r->arrivals, r->services, t->request_count, r->q->limit, r->q->quantile, r->scratch);
    out->scores[out->passes] = score_of(r->q, &numbers[out->passes]);
    ++out->passes;
    if (ait_clock_seconds() > r->end || out->measured == calls) break;
  }
  out->score = middle(out->scores, out->passes);
  for (uint32_t p = 0; p < out->passes; ++p)
    if (out->scores[p] == out->score) out->numbers = numbers[p];
  for (size_t k = 0; k < t->kind_count && k < AIT_REPLAY_KINDS; ++k) {
    double times[KEPT];
    memcpy(times, r->kinds[k].kept, sizeof times);
    out->kind_service[k] = ait_stats_of(times, held(&r->kinds[k])).median;
  }
  out->outcome = AIT_OUTCOME_VALID;
  return AIT_OK;
}

ait_status ait_replay_session(const ait_replay_request *q, ait_session *session, ait_replay_result *out) {
  ait_allocator a = ait_allocator_default();
  const ait_traffic *t = q->traffic;
  size_t n = t->request_count;
  replay r = {.q = q, .session = session};
  *out = (ait_replay_result){0};
  r.kinds = ait_alloc_zero(a, t->kind_count * sizeof *r.kinds, _Alignof(kind_times));
  r.outputs = ait_alloc_zero(a, (q->output_count + 1) * sizeof *r.outputs, _Alignof(ait_value));
  r.arrivals = ait_alloc(a, 4 * n * sizeof(double), _Alignof(double));
  if (r.arrivals) r.services = r.arrivals + n, r.scratch = r.services + n;
  ait_status status = r.kinds && r.outputs && r.arrivals ? run(&r, out) : AIT_OOM();
  for (size_t k = 0; r.kinds && k < t->kind_count; ++k) ait_tune_case_release(q->cases, &r.kinds[k].inputs);
  ait_free(a, r.kinds, t->kind_count * sizeof *r.kinds);
  ait_free(a, r.outputs, (q->output_count + 1) * sizeof *r.outputs);
  ait_free(a, r.arrivals, 4 * n * sizeof(double));
  return status;
}

/* ---- in a child ------------------------------------------------------------------------------------------------------------------*/
typedef struct job {
  const ait_trial_context *x;
  const ait_candidate *c;
  const ait_replay_request *q;
} job;

static ait_status replay_candidate(const job *j, ait_replay_result *out) {
  ait_built built;
  ait_session *session;
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = j->c->threads;
  AIT_TRY(ait_built_create(j->x, j->c, &built));
  AIT_TRY(ait_session_create(built.model, &so, &session));
  return ait_replay_session(j->q, session, out); /* the process ends: nothing is released */
}

static void child(void *ctx, void *out) {
  ait_replay_result *r = out;
  ait_status status = replay_candidate(ctx, r);
  if (status == AIT_OK) return;
  r->outcome = ait_status_code(status) == AIT_CODE_UNSUPPORTED ? AIT_OUTCOME_UNSUPPORTED : AIT_OUTCOME_FAILED;
  snprintf(r->reason, sizeof r->reason, "%s", ait_status_message(status));
}

ait_status ait_trial_replay(const ait_trial_context *x, const ait_candidate *c, const ait_replay_request *q, ait_replay_result *out) {
  char reason[AIT_REASON_SIZE];
  job j = {x, c, q};
  *out = (ait_replay_result){0};
  AIT_TRY(ait_child_call(x, child, &j, out, sizeof *out, x->options->trial_seconds + q->seconds, reason));
  if (!*reason) return AIT_OK;
  *out = (ait_replay_result){.outcome = AIT_OUTCOME_CRASHED};
  memcpy(out->reason, reason, sizeof out->reason);
  return AIT_OK;
}
