#include "tune/stats.h"
#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double ait_stats_quantile(const double *sorted, uint32_t n, double q) {
  double at = q * (n - 1);
  uint32_t i = (uint32_t)at;
  return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

ait_stats ait_stats_of(double *x, uint32_t n) {
  ait_stats s = {.count = n};
  if (n == 0) return s;
  qsort(x, n, sizeof *x, ascending);
  /* The median is below x[k] when at most k samples are below it: binomial, p = 1/2. The largest k for which that has 2.5 %, by the normal
   * approximation with continuity correction, and the same from above. Fewer than six samples cannot give 95 %: then all of them. */
  double k = floor((double)n / 2 - 0.98 * sqrt((double)n) - 0.5);
  uint32_t lower = k > 0 ? (uint32_t)k : 0;
  s.low = x[lower];
  s.high = x[n - 1 - lower];
  s.median = ait_stats_quantile(x, n, 0.5);
  s.p5 = ait_stats_quantile(x, n, 0.05);
  s.p95 = ait_stats_quantile(x, n, 0.95);
  s.p99 = ait_stats_quantile(x, n, 0.99);
  s.min = x[0];
  s.max = x[n - 1];
  for (uint32_t i = 0; i < n; ++i) s.mean += x[i] / n;
  return s;
}

ait_stats ait_stats_ratio(const double *a, const double *b, uint32_t n, double *scratch) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; ++i)
    if (a[i] > 0 && b[i] > 0) scratch[kept++] = a[i] / b[i];
  return ait_stats_of(scratch, kept);
}
