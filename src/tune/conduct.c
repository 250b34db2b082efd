#include "tune/conduct.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- memory -------------------------------------------------------------------------------------------------------------------------*/
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
  if (SANITIZED || g->base == 0 || g->calls < 4) return AIT_OK;
  bool much = g->grown >= 256 * megabyte, many = g->calls >= 8; /* of few calls, the first may have made what all later ones use */
  if (many ? !much && !(end && is_steady(g)) : !much || !is_steady(g)) return AIT_OK;
  return ait_error(AIT_CODE_MISMATCH, "it leaks: memory grew by %.0f MB in %llu calls, and did not stop",
                   (double)g->grown / (double)megabyte, (unsigned long long)g->calls);
}

bool ait_growth_open(const ait_growth *g) { return !SANITIZED && g->base && g->calls < 8 && g->grown >= 64 * megabyte; }

/* ---- speed --------------------------------------------------------------------------------------------------------------------------*/
static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void ait_pace_add(ait_pace *p, double seconds) {
  if (p->count < AIT_PACE_FIRST) p->first[p->count] = seconds;
  p->last[p->count++ % AIT_PACE_LAST] = seconds;
}

double ait_pace_slowdown(const ait_pace *p) {
  double first[AIT_PACE_FIRST], fastest = p->last[0];
  if (p->count < 16) return 1;
  memcpy(first, p->first, sizeof first);
  qsort(first, AIT_PACE_FIRST, sizeof *first, by_value);
  for (uint32_t i = 1; i < AIT_PACE_LAST; ++i) fastest = p->last[i] < fastest ? p->last[i] : fastest;
  return first[AIT_PACE_FIRST / 2] > 0 ? fastest / first[AIT_PACE_FIRST / 2] : 1;
}

/* Against the geometric mean of the others: a machine that becomes slower does so for all. */
ait_status ait_pace_check(const ait_pace *paces, uint32_t count, uint32_t k) {
  double others = 0, own = ait_pace_slowdown(&paces[k]);
  for (uint32_t j = 0; j < count; ++j)
    if (j != k) others += log(ait_pace_slowdown(&paces[j]));
  if (count < 2 || !(own > AIT_PACE_LIMIT * fmax(1, exp(others / (count - 1))))) return AIT_OK;
  return ait_error(AIT_CODE_MISMATCH, "it slows down: its calls took %.1f times as long at the end as at the begin", own);
}
