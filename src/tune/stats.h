/* Robust statistics of running times: order statistics only, since times have long tails. */
#ifndef AIT_SRC_TUNE_STATS_H
#define AIT_SRC_TUNE_STATS_H

#include "base/base.h"

typedef struct ait_stats {
  uint32_t count;
  double median, low, high; /* median with its 95 % confidence interval (order statistics, binomial) */
  double p5, p95, p99, min, max, mean;
} ait_stats;
/* Sorts the samples in place. count 0 gives zeros. */
ait_stats ait_stats_of(double *samples, uint32_t count);
double ait_stats_quantile(const double *sorted, uint32_t count, double q); /* ascending; linear between neighbours; count > 0 */
/* Median of a[i] / b[i] over rounds in which both were measured one after the other, with its 95 % interval. scratch: count doubles. */
ait_stats ait_stats_ratio(const double *a, const double *b, uint32_t count, double *scratch);

#endif
