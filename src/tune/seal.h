/* Writing the tuned model. */
#ifndef AIT_SRC_TUNE_SEAL_H
#define AIT_SRC_TUNE_SEAL_H

#include "tune/append.h"
#include "tune/candidate.h"
#include "tune/shapes.h"

/* The plan of shapes->members[0], with its buckets. base: the file that the plan is added to, NULL: a new one.
 * source: the model's own file where that is an .ait, NULL: it is none. What else it holds (tokenizer, samples, how to call it) is kept. */
ait_status ait_seal(const ait_trial_context *context, const ait_candidates *list, const ait_shapes *shapes, const char *report,
                    ait_artifact *base, ait_artifact *source, const char *path) AIT_MUST_USE;

#endif
