/* The tuner's search for mixed plans: measures parts on each backend, chooses, and adds what came out as candidates like any others. */
#ifndef AIT_SRC_TUNE_MIX_SEARCH_H
#define AIT_SRC_TUNE_MIX_SEARCH_H

#include "tune/candidate.h"

typedef struct ait_mix_hooks {
  void *ctx;
  /* ait_trial_measure_parts, with the record around it. */
  ait_status (*measure)(void *ctx, const ait_candidate *candidate, double seconds, ait_trial_parts *out);
} ait_mix_hooks;
/* seconds: for all measurements together. Adds nothing where one backend is best for every part, or where nothing can be cut. Errors: bad
 * pins (ait_tune_options.module_backends), cancelled. */
ait_status ait_tune_mix(const ait_trial_context *context, ait_candidates *list, double seconds, const ait_mix_hooks *hooks) AIT_MUST_USE;

#endif
