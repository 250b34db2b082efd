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
/* It grew, and more calls would tell whether it stops. */
bool ait_growth_open(const ait_growth *g);

/* Times of one call, of measurements in their order: also of those that do not count because the thread was descheduled. For these are the
 * longest ones, and what slows down would be hidden by leaving them out. */
enum { AIT_PACE_FIRST = 8, AIT_PACE_LAST = 5 };
typedef struct ait_pace {
  uint32_t count;
  double first[AIT_PACE_FIRST], last[AIT_PACE_LAST];
} ait_pace;
void ait_pace_add(ait_pace *pace, double seconds);
/* The fastest of the last measurements over the median of the first ones: what a busy machine does is mostly not in it. 1 when there are
 * too few. */
double ait_pace_slowdown(const ait_pace *pace);
/* More than this is no noise, when it comes again in another process, or when the others in the same process have it not. */
#define AIT_PACE_LIMIT 2.0
/* Errors: mismatch when member k slowed down against the others. */
ait_status ait_pace_check(const ait_pace *paces, uint32_t count, uint32_t k) AIT_MUST_USE;

#endif
