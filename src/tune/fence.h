/* An allocator with fences: bytes before and after each block that nobody may write. Candidates are checked on it: a backend that writes
 * past its output, or before it, would be right here and ruin somebody else's memory elsewhere. */
#ifndef AIT_SRC_TUNE_FENCE_H
#define AIT_SRC_TUNE_FENCE_H

#include "base/base.h"

typedef struct ait_fence ait_fence;

ait_status ait_fence_create(ait_fence **out) AIT_MUST_USE;
/* Blocks that are still there stay theirs. */
void ait_fence_destroy(ait_fence *fence);
/* Any thread. Blocks are filled with a pattern that is no number: what is never written is seen as wrong. */
ait_allocator ait_fence_allocator(ait_fence *fence);
/* Errors: mismatch, "it writes past the end of …": a fence of a block that is there, or was, is broken. */
ait_status ait_fence_check(ait_fence *fence) AIT_MUST_USE;

#endif
