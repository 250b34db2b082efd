/* What the objective wanted to know beyond times at the samples' sizes: kept for the report. */
#ifndef AIT_SRC_TUNE_GOAL_H
#define AIT_SRC_TUNE_GOAL_H

#include "tune/batch.h"
#include "tune/decide.h"
#include "tune/objective.h"
#include "tune/replay.h"

enum { AIT_GOAL_CANDIDATES = 64 };

typedef struct ait_goal {
  const ait_objective *objective;
  uint32_t count; /* candidates that were looked at more closely */
  int32_t who[AIT_GOAL_CANDIDATES];
  /* Batch sizes. */
  bool has_batch; /* the model has a free batch size */
  ait_batch_space space;
  ait_batch_limits limits;
  ait_batch_result *batches; /* of those below */
  int64_t contest_size;      /* the batch size at which finalists met; 0: the samples */
  ait_tune_cases at_size;    /* its one case */
  char unchecked[96];        /* why finalists were not compared with the oracle at that size; "": they were */
  /* Traffic. */
  ait_traffic traffic;
  ait_replay_result *replays; /* of the same candidates */
  char unmet[512];            /* no candidate meets the objective: the sentence that says so */
} ait_goal;
void ait_goal_deinit(ait_goal *goal);
/* Members of the report, each with a comma in front: "objective", "pareto". goal_report.c */
ait_status ait_goal_put(ait_text *t, const ait_trial_context *context, const ait_goal *goal, const ait_candidates *list,
                        const ait_decision *decision) AIT_MUST_USE;

#endif
