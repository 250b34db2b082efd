/* Trials and contests, each in a child process (child.h): a crash, a hang or a leak costs one candidate. */
#include "tune/child.h"
#include "tune/conduct.h"
#include "tune/fence.h"
#include "tune/manners.h"
#include "tune/mix.h"
#include "tune/stats.h"
#include "tune/stopwatch.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- building --------------------------------------------------------------------------------------------------------------------*/
ait_status ait_built_create(const ait_trial_context *x, const ait_candidate *c, ait_built *out) {
  *out = (ait_built){0};
  ait_build_request request = {
      .allocator = ait_allocator_default(), .backend = c->backend, .options = c->options, .cpu_mask = x->options->cpu_mask};
  if (c->mix) AIT_TRY(ait_mix_build(x->raw, &request, c->mix, &out->plan, &out->weights));
  else AIT_TRY(ait_plan_build(x->raw, &request, NULL, &out->plan, &out->weights));
  out->plan.threads = c->threads;
  ait_status status = ait_weight_meter_create(ait_weight_store_provider(out->weights), &out->meter);
  ait_memory_mark();
  out->before = ait_memory_used();
  if (status == AIT_OK)
    status =
        ait_model_create(ait_allocator_default(), x->region, ait_weight_meter_provider(out->meter), &out->plan, NULL, NULL, &out->model);
  if (status != AIT_OK) ait_built_deinit(out);
  return status;
}

void ait_built_deinit(ait_built *b) {
  ait_model_release(b->model);
  ait_weight_meter_destroy(b->meter);
  ait_weight_store_release(b->weights);
  if (b->plan.steps) ait_plan_deinit(&b->plan);
  *b = (ait_built){0};
}

/* ---- measuring (in the child) ----------------------------------------------------------------------------------------------------*/
typedef struct runner {
  ait_session *session;
  const ait_tune_cases *cases;
  ait_value *outputs;
  size_t measured, next; /* the first cases are the user's samples: called in turn */
  ait_stopwatch watch;
} runner;

static ait_status call(void *ctx) {
  runner *r = ctx;
  const ait_tune_case *c = &r->cases->items[r->next];
  r->next = (r->next + 1) % r->measured;
  for (size_t k = 0; k < r->cases->output_count; ++k) r->outputs[k] = (ait_value){0};
  return ait_session_run(r->session, c->inputs, c->input_count, r->outputs, r->cases->output_count);
}

static double transport(void *ctx) { return ait_session_transport_seconds(((const runner *)ctx)->session); }

static ait_status open_runner(const ait_trial_context *x, ait_model *model, int32_t threads, runner *r) {
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = threads;
  *r = (runner){.cases = x->cases};
  for (size_t i = 0; i < x->cases->count && x->cases->items[i].measured; ++i) r->measured = i + 1;
  r->watch = (ait_stopwatch){call, r, (uint32_t)r->measured, 1, transport};
  r->outputs = ait_alloc_zero(ait_allocator_default(), (x->cases->output_count + 1) * sizeof *r->outputs, _Alignof(ait_value));
  return r->outputs ? ait_session_create(model, &so, &r->session) : AIT_OOM();
}

static const double check_again_seconds = 1; /* a check that takes longer is not made twice in whole */
static const double look_share = 0.25;       /* of the time of measuring that looking at answers may take */

/* The answers of one call more, while there are not more looks than their share: what is wrong now and then is found by chance. One more,
 * so that a fault which comes every n-th call does not hide between measurements of a multiple of n calls. */
static ait_status look_at_answers(runner *r, uint64_t *calls, double began, double *looked) {
  ait_tune_error error;
  double start = ait_clock_seconds();
  if (!r->cases->pure || *looked > look_share * (start - began)) return AIT_OK;
  AIT_TRY(call(r));
  ++*calls;
  AIT_TRY(ait_tune_check_answers(r->cases, (r->next + r->measured - 1) % r->measured, r->outputs, &error));
  *looked += ait_clock_seconds() - start;
  if (error.pass) return AIT_OK;
  return ait_error(AIT_CODE_MISMATCH, "right at first, wrong after more calls (%llu): %s", (unsigned long long)*calls, error.reason);
}

static ait_status measure(runner *r, double seconds, ait_trial_result *out) {
  ait_energy before, after;
  uint64_t calls = 0;
  ait_growth growth;
  ait_pace pace = {0};
  AIT_TRY(ait_stopwatch_warm_up(&r->watch));
  ait_growth_start(&growth);
  double began = ait_clock_seconds(), end = began + seconds, carried = transport(r), looked = 0;
  ait_energy_read("", &before);
  do {
    bool clean;
    double t;
    AIT_TRY(ait_stopwatch_measure(&r->watch, &t, &clean));
    if (ait_stopwatch_rejects(clean, out->sample_count, out->dropped, end)) ++out->dropped;
    else out->samples[out->sample_count++] = t;
    calls += r->watch.inner;
    ait_pace_add(&pace, t);
    ait_growth_look(&growth, r->watch.inner);
    AIT_TRY(ait_growth_check(&growth, false));
    AIT_TRY(look_at_answers(r, &calls, began, &looked));
  } while (out->sample_count < AIT_TRIAL_SAMPLES && (ait_clock_seconds() < end || out->sample_count == 0 || ait_growth_open(&growth)));
  out->transport_seconds = (transport(r) - carried) / (double)calls;
  ait_energy_read("", &after);
  double joules = ait_energy_between(&before, &after);
  out->joules = joules < 0 ? -1 : joules / (double)calls;
  out->slowdown = ait_pace_slowdown(&pace);
  return ait_growth_check(&growth, true);
}

/* After all those calls the answers must be what they were: all cases, or the first where that would take long. */
static ait_status check_again(runner *r, bool all) {
  ait_tune_cases cases = *r->cases;
  ait_tune_error error;
  if (!all) cases.count = 1;
  AIT_TRY(ait_session_reset(r->session));
  AIT_TRY(ait_tune_check(r->session, &cases, NULL, &error));
  return error.pass ? AIT_OK : ait_error(AIT_CODE_MISMATCH, "right at first, wrong after more calls: %s", error.reason);
}

/* After loading: the first call makes what there is to make. Whether it is right is found out later. */
static void weigh(const ait_built *built, runner *r, ait_trial_result *out) {
  ait_status_ignore(call(r));
  r->next = 0;
  ait_memory_use after = ait_memory_used();
  out->plan_bytes = ait_session_bytes(r->session);
  out->read_bytes = ait_weight_meter_bytes(built->meter);
  out->load_bytes = after.own > built->before.own ? after.own - built->before.own : 0;
  out->peak_bytes = after.peak > built->before.own ? after.peak - built->before.own : 0;
}

/* ---- plans that are the same ---------------------------------------------------------------------------------------------------------*/
/* Where every backend promises that blob and weights say all, equal blobs run equally. */
static uint64_t plan_hash(const ait_plan *plan) {
  uint64_t h = (uint64_t)plan->threads;
  for (uint32_t i = 0; i < plan->step_count; ++i) {
    const ait_plan_step *s = &plan->steps[i];
    const ait_backend *b = ait_backend_find(s->backend);
    if (!b || !b->blob_is_whole) return 0;
    h = ait_hash(s->backend, strlen(s->backend), h);
    h = ait_hash(s->blob.data, s->blob.size, h);
  }
  return h;
}

static bool has_twin(const ait_trial_context *x, const ait_candidate *c, ait_trial_result *out) {
  for (size_t i = 0; x->tried && out->plan_hash && i < x->tried->count; ++i) {
    const ait_candidate *other = &x->tried->items[i];
    if (other == c || other->median <= 0 || other->result.plan_hash != out->plan_hash) continue;
    out->outcome = AIT_OUTCOME_SKIPPED;
    snprintf(out->reason, sizeof out->reason, "the same plan as '%.200s'", other->name);
    return true;
  }
  return false;
}

static const char unloading[] = "while it was unloaded";

/* Every case on a session of its own, on memory with fences. */
static ait_status check_on(ait_session *session, const ait_tune_cases *cases, ait_fence *fence, ait_tune_error *out) {
  ait_tune_error lent;
  AIT_TRY(ait_tune_check(session, cases, NULL, out));
  AIT_TRY(ait_fence_check(fence));
  if (!out->pass) return AIT_OK;
  AIT_TRY(ait_tune_check_lent(session, cases, ait_fence_allocator(fence), &lent));
  AIT_TRY(ait_fence_check(fence));
  if (lent.pass) return AIT_OK;
  out->pass = false;
  memcpy(out->reason, lent.reason, sizeof out->reason);
  return AIT_OK;
}

static ait_status check(const ait_trial_context *x, ait_model *model, int32_t threads, ait_child_work *work, ait_tune_error *out) {
  ait_fence *fence;
  ait_session *session;
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = threads;
  AIT_TRY(ait_fence_create(&fence));
  so.allocator = ait_fence_allocator(fence);
  ait_status status = ait_session_create(model, &so, &session);
  if (status == AIT_OK) status = check_on(session, x->cases, fence, out);
  work->doing = unloading;
  ait_session_destroy(session);
  return status == AIT_OK && out->pass ? ait_fence_check(fence)
                                       : status; /* the fence ends with the process: who knows who still holds a block */
}

static ait_status try_candidate(const ait_trial_context *x, const ait_candidate *c, double seconds, ait_child_work *work,
                                ait_trial_result *out) {
  ait_built built;
  runner r;
  ait_tune_error error;
  ait_manners manners;
  ait_manners_look(&manners);
  double start = ait_clock_seconds();
  work->doing = "while it was built";
  AIT_TRY(ait_built_create(x, c, &built));
  out->build_seconds = ait_clock_seconds() - start;
  for (uint32_t i = 0; i < built.plan.step_count; ++i) out->blob_bytes += built.plan.steps[i].blob.size;
  out->plan_hash = plan_hash(&built.plan);
  if (has_twin(x, c, out)) return AIT_OK;
  start = ait_clock_seconds();
  work->doing = "while it was loaded";
  AIT_TRY(open_runner(x, built.model, c->threads, &r));
  out->load_seconds = ait_clock_seconds() - start;
  work->doing = "in its first call";
  weigh(&built, &r, out);
  start = ait_clock_seconds();
  work->doing = "while its answers were checked";
  AIT_TRY(check(x, built.model, c->threads, work, &error));
  double check_seconds = ait_clock_seconds() - start;
  out->worst_error = error.worst;
  out->max_abs = error.max_abs;
  out->snr_db = error.snr_db;
  out->outcome = error.pass ? AIT_OUTCOME_VALID : AIT_OUTCOME_INVALID;
  snprintf(out->reason, sizeof out->reason, "%s", error.reason);
  if (!error.pass) return AIT_OK;
  AIT_TRY(ait_session_reset(r.session));
  work->doing = "while it was measured";
  AIT_TRY(measure(&r, seconds, out));
  work->doing = "while its answers were checked again";
  AIT_TRY(check_again(&r, check_seconds < check_again_seconds));
  work->doing = unloading;
  ait_session_destroy(r.session);
  ait_built_deinit(&built);
  return ait_manners_check(&manners);
}

static ait_outcome outcome_of(ait_status status) {
  ait_code code = ait_status_code(status);
  if (code == AIT_CODE_MISMATCH) return AIT_OUTCOME_INVALID;
  return code == AIT_CODE_UNSUPPORTED || code == AIT_CODE_UNAVAILABLE ? AIT_OUTCOME_UNSUPPORTED : AIT_OUTCOME_FAILED;
}

/* ---- child processes -------------------------------------------------------------------------------------------------------------*/
typedef struct job {
  const ait_trial_context *x;
  const ait_candidate *const *candidates;
  uint32_t count;
  double seconds;
  void (*run)(const struct job *job, void *out);
  void (*other)(void *ctx, void *out); /* ait_child_call */
  void *ctx;
  ait_child_work *work; /* in the child */
} job;

static void run_job(void *ctx, ait_child_work *work, void *out) {
  job *j = ctx;
  j->work = work;
  j->run(j, out);
}

/* *out_failure: AIT_OUTCOME_NONE, or how the child ended without a result. The only error is cancelled. out_member: may be NULL. */
static ait_status run_alone(job *j, void *out, size_t out_size, double limit, ait_outcome *out_failure, char reason[AIT_REASON_SIZE],
                            uint32_t *out_member) {
  ait_child_job child = {.x = j->x, .run = run_job, .ctx = j, .out = out, .out_size = out_size, .limit = limit};
  ait_status status = ait_child_run(&child, out_failure, reason);
  if (out_member) *out_member = child.work.member;
  return status;
}

static void run_other(const job *j, void *out) { j->other(j->ctx, out); }

ait_status ait_child_call(const ait_trial_context *x, void (*run)(void *ctx, void *out), void *ctx, void *out, size_t out_size,
                          double limit, char reason[AIT_REASON_SIZE]) {
  job j = {.x = x, .run = run_other, .other = run, .ctx = ctx};
  ait_outcome failure; /* the caller sees it by the reason */
  return run_alone(&j, out, out_size, limit, &failure, reason, NULL);
}

/* ---- trial -----------------------------------------------------------------------------------------------------------------------*/
static void trial_child(const job *j, void *out) {
  ait_trial_result *r = out;
  ait_status status = try_candidate(j->x, j->candidates[0], j->seconds, j->work, r);
  if (status == AIT_OK) return;
  r->outcome = outcome_of(status);
  snprintf(r->reason, sizeof r->reason, "%s", ait_status_message(status));
}

static void again_child(const job *j, void *out) {
  ait_trial_result *r = out;
  ait_built built;
  runner run;
  j->work->doing = "while it was measured again";
  ait_status status = ait_built_create(j->x, j->candidates[0], &built);
  if (status == AIT_OK) status = open_runner(j->x, built.model, j->candidates[0]->threads, &run);
  if (status == AIT_OK) status = measure(&run, j->seconds, r);
  if (status == AIT_OK) status = check_again(&run, false);
  r->outcome = status == AIT_OK ? AIT_OUTCOME_VALID : outcome_of(status);
  if (status != AIT_OK) snprintf(r->reason, sizeof r->reason, "%s", ait_status_message(status));
}

static ait_status run_trial(const ait_trial_context *x, const ait_candidate *candidate, double seconds,
                            void (*run)(const job *j, void *out), ait_trial_result *out) {
  *out = (ait_trial_result){0};
  char reason[AIT_REASON_SIZE];
  job j = {.x = x, .candidates = &candidate, .count = 1, .seconds = seconds, .run = run};
  ait_outcome failure;
  AIT_TRY(run_alone(&j, out, sizeof *out, x->options->trial_seconds, &failure, reason, NULL));
  if (failure == AIT_OUTCOME_NONE) return AIT_OK;
  *out = (ait_trial_result){.outcome = failure};
  memcpy(out->reason, reason, sizeof reason);
  return AIT_OK;
}

/* One that slows down twice is out. */
static ait_status run_steady(const ait_trial_context *x, const ait_candidate *candidate, double seconds,
                             void (*run)(const job *j, void *out), ait_trial_result *out) {
  for (int k = 0; k < 2; ++k) {
    AIT_TRY(run_trial(x, candidate, seconds, run, out));
    if (out->outcome != AIT_OUTCOME_VALID || out->slowdown <= AIT_PACE_LIMIT) return AIT_OK;
  }
  out->outcome = AIT_OUTCOME_INVALID;
  snprintf(out->reason, sizeof out->reason, "it slows down: its calls took %.1f times as long at the end as at the begin, and so again",
           out->slowdown);
  return AIT_OK;
}

ait_status ait_trial_run(const ait_trial_context *x, const ait_candidate *candidate, double seconds, ait_trial_result *out) {
  return run_steady(x, candidate, seconds, trial_child, out);
}

ait_status ait_trial_again(const ait_trial_context *x, const ait_candidate *candidate, double seconds, ait_trial_result *out) {
  return run_steady(x, candidate, seconds, again_child, out);
}

/* ---- parts ------------------------------------------------------------------------------------------------------------------------*/
enum { PART_RUNS = 64 };

static ait_status time_parts(const job *j, double *out) {
  ait_built built;
  runner r;
  double runs[AIT_TRIAL_PARTS][PART_RUNS], seconds[AIT_TRIAL_PARTS];
  const ait_candidate *c = j->candidates[0];
  AIT_TRY(ait_built_create(j->x, c, &built));
  AIT_TRY(open_runner(j->x, built.model, c->threads, &r));
  if (built.plan.step_count > AIT_TRIAL_PARTS) return ait_error(AIT_CODE_LIMIT, "more than %d parts", AIT_TRIAL_PARTS);
  AIT_TRY(ait_stopwatch_warm_up(&r.watch));
  ait_session_time_steps(r.session, seconds);
  double end = ait_clock_seconds() + j->seconds;
  uint32_t n = 0;
  for (; n < PART_RUNS && (n < 3 || ait_clock_seconds() < end); ++n) {
    memset(seconds, 0, sizeof seconds);
    AIT_TRY(call(&r));
    for (uint32_t p = 0; p < built.plan.step_count; ++p) runs[p][n] = seconds[p];
  }
  for (uint32_t p = 0; p < built.plan.step_count; ++p) out[p] = ait_stats_of(runs[p], n).median;
  return AIT_OK;
}

static void parts_child(const job *j, void *out) {
  ait_trial_parts *r = out;
  ait_status status = time_parts(j, r->seconds);
  r->outcome = status == AIT_OK ? AIT_OUTCOME_VALID : outcome_of(status);
  if (status != AIT_OK) snprintf(r->reason, sizeof r->reason, "%s", ait_status_message(status));
}

ait_status ait_trial_measure_parts(const ait_trial_context *x, const ait_candidate *candidate, double seconds, ait_trial_parts *out) {
  *out = (ait_trial_parts){0};
  char reason[AIT_REASON_SIZE];
  job j = {.x = x, .candidates = &candidate, .count = 1, .seconds = seconds, .run = parts_child};
  ait_outcome failure;
  AIT_TRY(run_alone(&j, out, sizeof *out, x->options->trial_seconds, &failure, reason, NULL));
  if (failure == AIT_OUTCOME_NONE) return AIT_OK;
  *out = (ait_trial_parts){.outcome = failure};
  memcpy(out->reason, reason, sizeof reason);
  return AIT_OK;
}

/* ---- contest ---------------------------------------------------------------------------------------------------------------------*/
/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* Nobody always goes first, and what repeats on the machine does not meet the same member each time. */
static void shuffle(uint32_t *order, uint32_t count, uint64_t *state) {
  for (uint32_t i = count; i > 1; --i) {
    uint32_t k = (uint32_t)(next_random(state) % i), other = order[i - 1];
    order[i - 1] = order[k];
    order[k] = other;
  }
}

/* Memory of a random size that is never given back: what is built next lies elsewhere than it did in another sitting. */
static bool unsettle(uint64_t *state) {
  static void *volatile kept;
  return (kept = malloc(64 + next_random(state) % (256u << 10))) != NULL;
}

/* Were they all the time what they were in their trials? */
static ait_status judge_conduct(const job *j, runner *r, const ait_growth *growth, const ait_pace *paces) {
  for (uint32_t k = 0; k < j->count; ++k) {
    j->work->member = k;
    AIT_TRY(ait_growth_check(&growth[k], true));
    AIT_TRY(ait_pace_check(paces, j->count, k));
    AIT_TRY(check_again(&r[k], false));
  }
  return AIT_OK;
}

static ait_status measure_member(runner *r, ait_growth *growth, double *out_seconds, bool *out_clean) {
  size_t before = ait_conduct_memory();
  AIT_TRY(ait_stopwatch_measure(&r->watch, out_seconds, out_clean));
  ait_growth_add(growth, r->watch.inner, (int64_t)ait_conduct_memory() - (int64_t)before);
  return ait_growth_check(growth, false);
}

static ait_status contest(const job *j, ait_contest *out) {
  ait_built built[AIT_CONTEST_MAX];
  runner r[AIT_CONTEST_MAX];
  ait_growth growth[AIT_CONTEST_MAX];
  ait_pace paces[AIT_CONTEST_MAX] = {0};
  uint32_t order[AIT_CONTEST_MAX];
  uint64_t state = j->x->options->seed + 0x9e3779b97f4a7c15u * j->x->sitting;
  for (uint32_t k = 0; k < j->count; ++k) order[k] = k;
  shuffle(order, j->count, &state);
  j->work->doing = "in the contest";
  for (uint32_t i = 0; i < j->count; ++i) {
    uint32_t k = order[i];
    j->work->member = k;
    if (!unsettle(&state)) return AIT_OOM();
    AIT_TRY(ait_built_create(j->x, j->candidates[k], &built[k]));
    AIT_TRY(open_runner(j->x, built[k].model, j->candidates[k]->threads, &r[k]));
    AIT_TRY(ait_stopwatch_warm_up(&r[k].watch));
    ait_growth_start(&growth[k]);
  }
  double end = ait_clock_seconds() + j->seconds;
  out->count = j->count;
  do { /* a round counts when no member of it was disturbed, each time that it was called */
    double times[AIT_CONTEST_MAX];
    bool clean = true;
    shuffle(order, j->count, &state);
    for (uint32_t i = 0; i < j->count; ++i) {
      uint32_t k = order[i];
      bool one = false;
      j->work->member = k;
      int attempts = 0;
      do {
        AIT_TRY(measure_member(&r[k], &growth[k], &times[k], &one));
      } while (!one && ++attempts < 4 && ait_clock_seconds() < end);
      ait_pace_add(&paces[k], times[k]);
      clean &= one;
    }
    if (ait_stopwatch_rejects(clean, out->rounds, out->dropped, end)) {
      ++out->dropped;
      continue;
    }
    for (uint32_t k = 0; k < j->count; ++k) out->times[k * AIT_CONTEST_ROUNDS + out->rounds] = times[k];
    ++out->rounds;
  } while (out->rounds < AIT_SITTING_ROUNDS && (ait_clock_seconds() < end || out->rounds < 5));
  out->sittings = 1;
  out->ends[0] = out->rounds;
  return judge_conduct(j, r, growth, paces);
}

uint32_t ait_contest_times(const ait_contest *contest, uint32_t k, double *out) {
  uint32_t n = 0;
  for (uint32_t r = 0; r < contest->rounds; ++r)
    if (contest->times[k * AIT_CONTEST_ROUNDS + r] > 0) out[n++] = contest->times[k * AIT_CONTEST_ROUNDS + r];
  return n;
}

static void contest_child(const job *j, void *out) {
  ait_contest *c = out;
  ait_status status = contest(j, c);
  if (status == AIT_OK) return;
  c->failed = true;
  c->culprit = j->work->member;
  c->outcome = outcome_of(status);
  snprintf(c->reason, sizeof c->reason, "%s", ait_status_message(status));
}

ait_status ait_contest_run(const ait_trial_context *x, const ait_candidate *const *candidates, uint32_t count, double seconds,
                           ait_contest *out) {
  *out = (ait_contest){0};
  char reason[AIT_REASON_SIZE];
  job j = {.x = x, .candidates = candidates, .count = count, .seconds = seconds, .run = contest_child};
  ait_outcome failure;
  uint32_t culprit;
  AIT_TRY(run_alone(&j, out, sizeof *out, x->options->trial_seconds + 2 * seconds, &failure, reason, &culprit));
  if (failure == AIT_OUTCOME_NONE) return AIT_OK;
  *out = (ait_contest){.failed = true, .culprit = culprit < count ? culprit : 0, .outcome = failure};
  memcpy(out->reason, reason, sizeof reason);
  return AIT_OK;
}
