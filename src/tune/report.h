/* The tuning report as JSON: docs/json.md. */
#ifndef AIT_SRC_TUNE_REPORT_H
#define AIT_SRC_TUNE_REPORT_H

#include "tune/decide.h"

/* Deterministic for equal contents: no times of day, no paths. */
ait_status ait_report_json(const ait_graph *raw, const ait_tune_options *options, const ait_tune_cases *cases, const ait_candidates *list,
                           const ait_decision *decision, ait_text *out) AIT_MUST_USE;

#endif
