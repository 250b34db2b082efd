/* Work in child processes: whatever it does costs that child, and comes back as a reason. The child inherits the graph, the weights and the
 * oracle's answers; its result comes back through a pipe. */
#ifndef AIT_SRC_TUNE_CHILD_H
#define AIT_SRC_TUNE_CHILD_H

#include "tune/candidate.h"

/* Shared between tuner and child, so that what was at work is known when the child is no more. */
typedef struct ait_child_work {
  volatile uint32_t member;   /* of a contest, that is built or called */
  const char *volatile doing; /* "while it was built": a literal, which both have at the same place; NULL: nothing yet */
} ait_child_work;

typedef struct ait_child_job {
  const ait_trial_context *x;
  void (*run)(void *ctx, ait_child_work *work, void *out); /* in the child */
  void *ctx;
  void *out; /* out_size bytes, filled by `run` there, and here when they came through */
  size_t out_size;
  double limit;        /* seconds */
  ait_child_work work; /* how far it came */
} ait_child_job;

/* Runs the job. *out_failure: AIT_OUTCOME_NONE, or how the child ended without a result (crashed, timed out), with `reason`. The child is
 * in a group of processes of its own, which ends with it; it cannot signal the tuner; it reads nothing from the terminal, and the last line
 * that it prints is told with the reason when it crashes or hangs. The only error is cancelled. */
ait_status ait_child_run(ait_child_job *job, ait_outcome *out_failure, char reason[AIT_REASON_SIZE]) AIT_MUST_USE;

#endif
