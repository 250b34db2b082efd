/* Candidates: a backend with options and a number of threads. */
#ifndef AIT_SRC_TUNE_CANDIDATE_H
#define AIT_SRC_TUNE_CANDIDATE_H

#include "tune/cases.h"
#include "tune/memory_use.h"
#include "tune/objective.h"
#include "tune/weight_meter.h"

typedef enum ait_outcome {
  AIT_OUTCOME_NONE,        /* not tried */
  AIT_OUTCOME_VALID,       /* right and measured */
  AIT_OUTCOME_INVALID,     /* outside tolerance, or does not repeat */
  AIT_OUTCOME_UNSUPPORTED, /* the backend declines the model */
  AIT_OUTCOME_FAILED,      /* an error */
  AIT_OUTCOME_CRASHED,
  AIT_OUTCOME_TIMEOUT,
  AIT_OUTCOME_SKIPPED, /* no budget left, or not needed */
} ait_outcome;
const char *ait_outcome_text(ait_outcome outcome);

enum { AIT_TRIAL_SAMPLES = 256, AIT_REASON_SIZE = 256 };

/* What a trial tells: plain data, since it comes through a pipe from the child and goes into the record as it is. */
typedef struct ait_trial_result {
  ait_outcome outcome;
  char reason[AIT_REASON_SIZE];
  double build_seconds, load_seconds, worst_error, max_abs, snr_db;
  double wall_seconds;      /* of the whole trial: building, checking, measuring */
  double transport_seconds; /* per call, beside the samples: what the trial's process spent on reaching a guest's process */
  uint64_t blob_bytes, plan_bytes;
  uint64_t read_bytes; /* of the weights that the plan asks for */
  uint64_t load_bytes; /* that the process grew by when the plan was loaded and called once on the first sample, and the most meanwhile */
  uint64_t peak_bytes;
  double joules;      /* of one call, all that ran on the machine; negative: not known */
  uint64_t plan_hash; /* equal plans have equal ones; 0: a backend does not promise that its blob says all */
  uint32_t dropped;   /* measurements in which the thread was descheduled */
  double slowdown;    /* from the first measurements to the last (conduct.h) */
  uint32_t sample_count;
  double samples[AIT_TRIAL_SAMPLES]; /* seconds of one call */
} ait_trial_result;

/* What a process needs for it: the plan's own data, the weights that it reads, and what loading and calling took. */
uint64_t ait_trial_memory(const ait_trial_result *r);

typedef struct ait_mix ait_mix; /* mix.h */

typedef struct ait_candidate {
  const ait_backend *backend; /* of a mixed plan: that of its first part */
  ait_mix *mix;               /* owned; NULL: the whole model on one backend */
  char options[192];
  char name[256]; /* "native layout=nchw threads=2" */
  int32_t threads;
  bool baseline, reused;
  char version[64];              /* of the backend: trials of another one are not reused */
  char missing[AIT_REASON_SIZE]; /* why the backend is not here; "": it is */
  ait_trial_result result;
  uint32_t rounds;    /* times that it was measured, each twice as long as the one before */
  double median;      /* seconds; 0 when not valid */
  double score;       /* what the objective ranks it by, less is better; 0: the median */
  const char *barred; /* why it cannot win though it is valid; NULL: it can */
} ait_candidate;

typedef struct ait_candidates {
  ait_candidate *items;
  size_t count, capacity;
} ait_candidates;

/* The baseline (eager) first, then each backend with its default options and with each of its knobs changed, at 1 and at most `threads`
 * threads. A backend that is not here is one candidate, with the reason. first-wins and one-backend try no knobs. */
ait_status ait_candidates_create(const ait_tune_options *options, ait_strategy_kind strategy, int32_t threads,
                                 ait_candidates *out) AIT_MUST_USE;
/* Where its backend stands in the user's order, for first-wins; a backend that is not named there comes last. */
int32_t ait_candidate_rank(const ait_tune_options *options, const ait_candidate *candidate);
/* What trials of a backend are known under: its version, and of a plugin its code, since the version may stay while that does not. */
void ait_backend_version(const ait_backend *backend, const ait_probe *probe, char out[64]);
/* Takes over `mix`. */
ait_status ait_candidates_add_mix(ait_candidates *list, ait_mix *mix, int32_t threads) AIT_MUST_USE;
void ait_candidates_deinit(ait_candidates *list);

/* ---- trial.c: in a child process -------------------------------------------------------------------------------------------------*/
typedef struct ait_trial_context {
  const ait_graph *raw;
  const ait_region *region; /* of raw */
  const ait_tune_cases *cases;
  const ait_tune_options *options;
  const ait_candidates *tried; /* a plan that one of them has, too, is not measured again (its outcome: skipped); may be NULL */
  uint32_t sitting;            /* of a contest: members are built in another order, and called in another one */
  void (*idle)(void *ctx);     /* called some times a second while a child runs */
  void *idle_ctx;
} ait_trial_context;

/* Builds, checks and measures for about `seconds`. Whatever the child does, this returns; the only error is cancelled. */
ait_status ait_trial_run(const ait_trial_context *context, const ait_candidate *candidate, double seconds,
                         ait_trial_result *out) AIT_MUST_USE;
/* Builds and measures a candidate that was found valid: outcome and samples only. */
ait_status ait_trial_again(const ait_trial_context *context, const ait_candidate *candidate, double seconds,
                           ait_trial_result *out) AIT_MUST_USE;

/* Seconds of each part of a mixed candidate that keeps its cuts, in a child as well. */
enum { AIT_TRIAL_PARTS = 24 };
typedef struct ait_trial_parts {
  ait_outcome outcome;
  char reason[AIT_REASON_SIZE];
  double seconds[AIT_TRIAL_PARTS]; /* medians */
} ait_trial_parts;
ait_status ait_trial_measure_parts(const ait_trial_context *context, const ait_candidate *candidate, double seconds,
                                   ait_trial_parts *out) AIT_MUST_USE;

/* Several candidates in one child, called in turn: times[k * AIT_CONTEST_ROUNDS + r] is candidate k in round r; 0: it had no part in it. A
 * sitting is one child with at most AIT_SITTING_ROUNDS; a contest may have several (sittings.h). */
enum { AIT_CONTEST_MAX = 6, AIT_SITTING_ROUNDS = 25, AIT_SITTINGS = 16, AIT_CONTEST_ROUNDS = AIT_SITTINGS * AIT_SITTING_ROUNDS };
typedef struct ait_contest {
  uint32_t count, rounds, dropped;
  uint32_t sittings, ends[AIT_SITTINGS]; /* the round after the last one of each */
  bool failed;
  uint32_t culprit;    /* failed: the member that was at work */
  ait_outcome outcome; /* failed: how */
  char reason[AIT_REASON_SIZE];
  double times[AIT_CONTEST_MAX * AIT_CONTEST_ROUNDS];
} ait_contest;
/* One sitting. */
ait_status ait_contest_run(const ait_trial_context *context, const ait_candidate *const *candidates, uint32_t count, double seconds,
                           ait_contest *out) AIT_MUST_USE;
/* The times of the rounds in which member k had a part, in their order; how many. out: AIT_CONTEST_ROUNDS of them. */
uint32_t ait_contest_times(const ait_contest *contest, uint32_t k, double *out);

/* Anything else in a child process: run(ctx, out) there fills out_size bytes, which come back. *reason: "" when they did, else how the
 * child ended or that it took longer than `limit` seconds. The only error is cancelled. */
ait_status ait_child_call(const ait_trial_context *context, void (*run)(void *ctx, void *out), void *ctx, void *out, size_t out_size,
                          double limit, char reason[AIT_REASON_SIZE]) AIT_MUST_USE;

/* A model that runs the candidate's plan; all parts are released with it. */
typedef struct ait_built {
  ait_plan plan;
  ait_weight_store *weights;
  ait_weight_meter *meter;
  ait_memory_use before; /* before the plan was loaded */
  ait_model *model;
} ait_built;
ait_status ait_built_create(const ait_trial_context *context, const ait_candidate *candidate, ait_built *out) AIT_MUST_USE;
void ait_built_deinit(ait_built *built);

#endif
