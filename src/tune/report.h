/* The tuning report as JSON: docs/json.md. */
#ifndef AIT_SRC_TUNE_REPORT_H
#define AIT_SRC_TUNE_REPORT_H

#include "tune/decide.h"
#include "tune/evidence.h"
#include "tune/goal.h"
#include "tune/shapes.h"
#include "tune/watch.h"

/* Deterministic for equal contents: no times of day, no paths. */
ait_status ait_report_json(const ait_trial_context *context, const ait_goal *goal, const ait_candidates *list, const ait_decision *decision,
                           const ait_evidence *evidence, const ait_watch_result *machine, const ait_shapes *shapes,
                           ait_text *out) AIT_MUST_USE;

#endif
