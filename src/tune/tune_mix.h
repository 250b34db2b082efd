/* The tuner's search for mixed plans: measures parts on each backend, chooses, and adds what came out as candidates like any others. */
#ifndef AIT_SRC_TUNE_MIX_SEARCH_H
#define AIT_SRC_TUNE_MIX_SEARCH_H

#include "tune/mix.h"

/* A part on an engine: what is known of it in the record, whatever model it was measured in. */
typedef struct ait_part_trial {
  double seconds;               /* 0: the engine fails on it */
  char reason[AIT_REASON_SIZE]; /* of a failure */
} ait_part_trial;

typedef struct ait_mix_hooks {
  void *ctx;
  /* Keyed by ait_part_hash, engine and threads. */
  bool (*recall)(void *ctx, uint64_t part, const ait_engine *engine, int32_t threads, ait_part_trial *out);
  void (*remember)(void *ctx, uint64_t part, const ait_engine *engine, int32_t threads, const ait_part_trial *trial);
  /* ait_trial_measure_parts. NULL: what is not recorded is not known. */
  ait_status (*measure)(void *ctx, const ait_candidate *candidate, double seconds, ait_trial_parts *out);
  void (*tell)(void *ctx, const char *line);
} ait_mix_hooks;
/* seconds: for all measurements together. Parts that are alike up to their weights are measured once. Adds nothing where one backend is
 * best for every part, or where nothing can be cut. Errors: bad pins (ait_tune_options.module_backends, module_strategies),
 * cancelled. */
ait_status ait_tune_mix(const ait_trial_context *context, ait_candidates *list, double seconds, const ait_mix_hooks *hooks) AIT_MUST_USE;

/* What can be said of module_backends and module_strategies before anything is measured. region: of the raw graph. */
ait_status ait_tune_mix_check(const ait_tune_options *options, const ait_region *region) AIT_MUST_USE;

#endif
