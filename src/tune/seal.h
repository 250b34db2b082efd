/* Writing the tuned model. */
#ifndef AIT_SRC_TUNE_SEAL_H
#define AIT_SRC_TUNE_SEAL_H

#include "tune/candidate.h"

ait_status ait_seal(const ait_trial_context *context, const ait_candidate *winner, const char *report, const char *path) AIT_MUST_USE;

#endif
