/* Another plan into a file that is there. */
#ifndef AIT_SRC_TUNE_APPEND_H
#define AIT_SRC_TUNE_APPEND_H

#include "tune/tune.h"

/* Opens the file, checks every entry by SHA-256, and that it holds this model: the same graph and the same weights. Errors:
 * invalid-argument says what differs first. */
ait_status ait_append_open(const char *path, const ait_keys *keys, const ait_graph *raw, const ait_region *region,
                           ait_artifact **out) AIT_MUST_USE;
/* The file's plans and `plan`, which takes the place of one for the same CPU features that was tuned on the same CPU. *out (from the arena)
 * are copies whose contents belong to the file and to `plan`. *out_keep_report: a plan of the file goes by the file's own report. */
ait_status ait_append_plans(ait_arena *arena, const ait_artifact *base, const ait_plan *plan, ait_plan **out, size_t *out_count,
                            bool *out_keep_report) AIT_MUST_USE;

#endif
