/* What the report shows besides the contest: where the time of the winner and of the baseline goes, how far each of their outputs is off,
 * and what the machine could do at best. */
#ifndef AIT_SRC_TUNE_EVIDENCE_H
#define AIT_SRC_TUNE_EVIDENCE_H

#include "tune/candidate.h"
#include "tune/roofline.h"

enum { AIT_PROFILE_STEPS = 512, AIT_PROFILE_ROWS = 128 };

typedef struct ait_profile_step {
  char name[64], op[32], kernel[32], module[128]; /* cut where longer */
  double seconds;                                 /* of one call: the median */
  uint32_t portable;
} ait_profile_step;

/* Plain data, through a pipe and into the record. */
typedef struct ait_profile {
  char why[AIT_REASON_SIZE]; /* not "": nothing is known, and why */
  uint32_t calls, step_count, row_count;
  uint32_t rest_count; /* steps beyond the largest AIT_PROFILE_STEPS, */
  double rest_seconds; /* and their time */
  double call_seconds; /* with the stopwatches in between */
  ait_tune_row rows[AIT_PROFILE_ROWS];
  ait_profile_step steps[AIT_PROFILE_STEPS]; /* in the order in which they run */
} ait_profile;
/* Builds the candidate in a child process, checks it once more, and times its steps on the first sample for about `seconds`. */
ait_status ait_profile_run(const ait_trial_context *context, const ait_candidate *candidate, double seconds, ait_profile *out) AIT_MUST_USE;

/* What belongs to a profile's step in the graph that the backend took: nodes that were fused into it, its arithmetic, the values that it
 * reads and writes, and the intermediate results that are in memory while it runs. An estimate from the graph: backends do not say. */
typedef struct ait_step_cost {
  bool known;
  double flops, bytes, live_bytes;
} ait_step_cost;
/* lowered: the graph that the backend took. out: step_count elements. step_cost.c */
ait_status ait_step_costs(const ait_graph *lowered, const int64_t *symbols, const ait_profile *profile, ait_step_cost *out) AIT_MUST_USE;

typedef struct ait_evidence {
  bool has_roofline;
  ait_roofline roofline; /* with the winner's threads */
  size_t count;
  int32_t candidates[2]; /* the winner first, then the baseline when it is another */
  ait_profile *profiles; /* one for each */
} ait_evidence;
ait_status ait_evidence_roofline(const ait_trial_context *context, int32_t threads, ait_roofline *out, bool *out_known) AIT_MUST_USE;
void ait_evidence_deinit(ait_evidence *evidence);
/* Members of the report: "modules", "roofline", "accuracy", "profiles", each with a comma in front. */
ait_status ait_evidence_put(ait_text *t, const ait_trial_context *context, const ait_candidates *list,
                            const ait_evidence *evidence) AIT_MUST_USE;

#endif
