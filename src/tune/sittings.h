/* The final contest: sittings, each a child process in which finalists are built and timed in turn, until all is decided or its time is
 * over. Each builds its members anew, so that where their memory happens to lie does not decide. The tuner's thread only. */
#ifndef AIT_SRC_TUNE_SITTINGS_H
#define AIT_SRC_TUNE_SITTINGS_H

#include "tune/decide.h"

typedef struct ait_sitting_hooks {
  void *ctx;
  double least;                             /* seconds of the first sitting at least, whatever is left */
  double (*left)(void *ctx);                /* seconds that the contest may still take, building included */
  double (*rebuild)(void *ctx, uint32_t k); /* seconds until finalist k is ready to be called */
  void (*undecided)(void *ctx, uint32_t k); /* told: another sitting follows because of finalist k */
  /* Finalists who[0..count) in turn for about `seconds`; at most AIT_SITTING_ROUNDS. */
  ait_status (*sit)(void *ctx, uint32_t sitting, const uint32_t *who, uint32_t count, double seconds, ait_contest *out);
} ait_sitting_hooks;

/* Fills d->contest and decides (ait_decide_winner). All finalists have a part in the first sitting, in others the fastest and those that
 * are not decided against it; what is ahead by less than a quarter is seen in three builds where time allows. Where the objective has
 * chosen there is one sitting. d->contest.failed: a member failed, and its culprit is a finalist's index. Errors: those of `sit`
 * (cancelled). */
ait_status ait_sittings_hold(const ait_candidates *list, ait_decision *d, const ait_sitting_hooks *hooks) AIT_MUST_USE;

#endif
