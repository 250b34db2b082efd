#include "base/base.h"

#include <sys/resource.h>
#include <time.h>

static double clock_read(clockid_t clock) {
  struct timespec t = {0};
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double ait_clock_seconds(void) { return clock_read(CLOCK_MONOTONIC); }
double ait_clock_thread_seconds(void) { return clock_read(CLOCK_THREAD_CPUTIME_ID); }

void ait_clock_switches(int64_t *voluntary, int64_t *involuntary) {
  struct rusage usage = {0};
  getrusage(RUSAGE_THREAD, &usage);
  *voluntary = usage.ru_nvcsw;
  *involuntary = usage.ru_nivcsw;
}
