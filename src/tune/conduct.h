/* What a candidate does besides giving answers: a backend that takes more memory with each call, or becomes slower, is found out here. */
#ifndef AIT_SRC_TUNE_CONDUCT_H
#define AIT_SRC_TUNE_CONDUCT_H

#include "tune/candidate.h"

/* Memory of this process that is its own, in bytes; 0 when that cannot be read. */
size_t ait_conduct_memory(void);

/* Memory over calls. */
typedef struct ait_growth {
  size_t base, grown; /* before the first of them; since then */
  uint64_t calls;
  struct {
    size_t grown;
    uint64_t calls;
  } half, quarter; /* when the calls had doubled the last time, and the time before */
} ait_growth;
void ait_growth_start(ait_growth *g);
/* After `calls` more calls, which made the process grow by `bytes` (may be negative). */
void ait_growth_add(ait_growth *g, uint64_t calls, int64_t bytes);
/* The same from what the process has now, where nobody else runs in it. */
void ait_growth_look(ait_growth *g, uint64_t calls);
/* Errors: mismatch, "it leaks: …": it grew by much; at the end of all calls: by something, and did not stop. */
ait_status ait_growth_check(const ait_growth *g, bool end) AIT_MUST_USE;

/* Did the samples of a trial become slower from the first to the last quarter? A busy machine can do that, too: believe it the second time.
 * *out_why says how much. */
bool ait_conduct_slows(const ait_trial_result *trial, char out_why[AIT_REASON_SIZE]);
/* Did member k become slower than the others from the first to the last quarter of the rounds? times as in ait_contest. Errors: mismatch.
 */
ait_status ait_conduct_check_speed(const ait_contest *contest, uint32_t k) AIT_MUST_USE;

#endif
