/* Second half of binding (plan.c), and running what was bound (instance.c). */
#ifndef AIT_SRC_BACKENDS_NATIVE_PLAN_H
#define AIT_SRC_BACKENDS_NATIVE_PLAN_H

#include "backends/native/bind.h"

/* Before the steps: where results should lie, so that outputs are written into the caller's memory and concatenations in place. */
ait_status nat_place_results(nat_bind *b) AIT_MUST_USE;
/* After the steps: hands the outputs over, lays out the arena, fixes pointers, runs the static calls. */
ait_status nat_plan_finish(nat_bind *b) AIT_MUST_USE;
/* Runs calls in order. The error, if any, is state->status, which is taken. */
ait_status nat_run_calls(const nat_call *calls, size_t count, nat_run_state *state, bool fallible) AIT_MUST_USE;
void nat_plan_destroy(nat_plan *plan, const ait_region *region);       /* takes NULL */
void nat_plan_release_lists(nat_plan *plan, const ait_region *region); /* portable.c */

#endif
