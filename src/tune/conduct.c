#include "tune/conduct.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- memory
 * ----------------------------------------------------------------------------------------------------------------------------*/
static const size_t megabyte = 1u << 20;

/* Sanitizers keep what was freed, so that an honest candidate seems to grow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

size_t ait_conduct_memory(void) {
  char text[128];
  unsigned long long size, resident, shared;
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n < 0 ? 0 : n] = 0;
  if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3 || shared > resident) return 0;
  return (size_t)(resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

void ait_growth_start(ait_growth *g) { *g = (ait_growth){.base = ait_conduct_memory()}; }

void ait_growth_add(ait_growth *g, uint64_t calls, int64_t bytes) {
  g->calls += calls;
  g->grown = bytes < 0 && (size_t)-bytes > g->grown ? 0 : g->grown + (size_t)bytes;
  if (g->half.calls && g->calls < 2 * g->half.calls) return;
  g->quarter = g->half;
  g->half.grown = g->grown;
  g->half.calls = g->calls;
}

void ait_growth_look(ait_growth *g, uint64_t calls) {
  size_t now = ait_conduct_memory(), before = g->base + g->grown;
  ait_growth_add(g, calls, now >= before ? (int64_t)(now - before) : -(int64_t)(before - now));
}

/* Caches fill and heaps settle; what grows as fast at the end as it did before does not settle. */
static bool is_steady(const ait_growth *g) {
  bool recent = g->calls >= g->half.calls + g->half.calls / 2; /* long enough after the last doubling to tell */
  size_t grown = recent ? g->half.grown : g->quarter.grown;
  uint64_t calls = recent ? g->half.calls : g->quarter.calls;
  if (calls == 0 || g->grown < grown + 2 * megabyte) return false;
  double share = (double)(g->calls - calls) / (double)g->calls;
  return (double)(g->grown - grown) >= 0.7 * share * (double)g->grown;
}

ait_status ait_growth_check(const ait_growth *g, bool end) {
  if (SANITIZED || g->base == 0 || g->calls < 8) return AIT_OK;
  if (g->grown < 256 * megabyte && !(end && is_steady(g))) return AIT_OK;
  return ait_error(AIT_CODE_MISMATCH, "it leaks: memory grew by %.0f MB in %llu calls, and did not stop",
                   (double)g->grown / (double)megabyte, (unsigned long long)g->calls);
}

/* ---- speed
 * -----------------------------------------------------------------------------------------------------------------------------*/
static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double middle(double *values, uint32_t count) {
  qsort(values, count, sizeof *values, by_value);
  return values[count / 2];
}

bool ait_conduct_slows(const ait_trial_result *r, char out_why[AIT_REASON_SIZE]) {
  double begin[AIT_TRIAL_SAMPLES / 4], end[AIT_TRIAL_SAMPLES / 4];
  uint32_t quarter = r->sample_count / 4;
  if (r->outcome != AIT_OUTCOME_VALID || quarter < 5) return false;
  memcpy(begin, r->samples, quarter * sizeof *begin);
  memcpy(end, &r->samples[r->sample_count - quarter], quarter * sizeof *end);
  double first = middle(begin, quarter), last = middle(end, quarter);
  snprintf(out_why, AIT_REASON_SIZE,
           "it slows down: a call took %.3g us at first and %.3g us at the end of its trial, and so again in another process", first * 1e6,
           last * 1e6);
  return last > 2 * first;
}

/* Of rounds [begin, end): the median of the member's time over the geometric mean of the others', which knows nothing of a machine that
 * becomes slower for all. */
static double against_others(const ait_contest *c, uint32_t k, uint32_t begin, uint32_t end) {
  double ratios[AIT_CONTEST_ROUNDS];
  for (uint32_t r = begin; r < end; ++r) {
    double sum = 0;
    for (uint32_t j = 0; j < c->count; ++j)
      if (j != k) sum += log(c->times[j * AIT_CONTEST_ROUNDS + r]);
    ratios[r - begin] = c->times[k * AIT_CONTEST_ROUNDS + r] / exp(sum / (c->count - 1));
  }
  return middle(ratios, end - begin);
}

ait_status ait_conduct_check_speed(const ait_contest *c, uint32_t k) {
  uint32_t quarter = c->rounds / 4;
  if (c->count < 2 || quarter < 5) return AIT_OK;
  double first = against_others(c, k, 0, quarter), last = against_others(c, k, c->rounds - quarter, c->rounds);
  if (!(last > 2 * first)) return AIT_OK;
  return ait_error(AIT_CODE_MISMATCH, "it slows down: %.1f times slower than the others at the end of %u rounds, %.2f times at their begin",
                   last, c->rounds, first);
}
