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

/* ---- how sure ------------------------------------------------------------------------------------------------------------------------*/
/* prior: of a variance, with the weight of so many samples. */
static double by_student(const double *x, uint32_t n, double prior, double weight) {
  double mean = 0, square = 0, freedom = n - 1 + weight;
  for (uint32_t i = 0; i < n; ++i) mean += x[i] / n;
  for (uint32_t i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean);
  double error = sqrt((square + weight * prior) / freedom / n),
         t = mean / fmax(error, 1e-9); /* no clock agrees with itself to nine digits */
  double z = (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(t * t / freedom));
  return t < 0 ? -z : z;
}

static int by_distance(const void *a, const void *b) {
  double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
  return (x > y) - (x < y);
}

static double by_signed_ranks(double *x, uint32_t n) {
  double above = 0, count = n;
  qsort(x, n, sizeof *x, by_distance);
  for (uint32_t i = 0, next; i < n; i = next) { /* equal distances share the mean of their ranks */
    uint32_t positive = 0;
    for (next = i; next < n && fabs(x[next]) == fabs(x[i]); ++next) positive += x[next] > 0;
    above += positive * (0.5 * (i + 1 + next));
    if (x[i] == 0) above += 0.5 * (next - i) * (0.5 * (i + 1 + next)); /* neither above nor below */
  }
  return (above - count * (count + 1) / 4) / sqrt(count * (count + 1) * (2 * count + 1) / 24);
}

double ait_stats_slower(const double *a, const double *b, uint32_t count, double factor, double *scratch) {
  enum { FEW = 12 };
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; ++i)
    if (a[i] > 0 && b[i] > 0) scratch[n++] = log(a[i] / (factor * b[i]));
  return n < 2 ? 0 : n < FEW ? by_student(scratch, n, 0, 0) : by_signed_ranks(scratch, n);
}

double ait_stats_slower_by_builds(const double *medians, uint32_t count, double factor) {
  enum { MOST = 64 };
  static const double usual = 0.015, weight = 4;
  double x[MOST];
  if (count > MOST) count = MOST;
  for (uint32_t i = 0; i < count; ++i) x[i] = medians[i] - log(factor);
  return count ? by_student(x, count, usual * usual, weight) : 0;
}
