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

/* How sure rounds are that a takes more than `factor` times as long as b, both measured in each round: as a deviate of the standard normal
 * distribution (1.28: 90 %, 3: 99.9 %; negative: that it takes less). Wilcoxon's signed ranks of log(a / b) (Wilcoxon 1945): long tails
 * and slow spells of the machine do not matter, since who comes first in a round is drawn. Fewer than 12 rounds: Student's t, as a normal
 * deviate by Wallace 1959. Rounds in which either has no time (0) do not count; fewer than two give 0. scratch: count doubles. */
double ait_stats_slower(const double *a, const double *b, uint32_t count, double factor, double *scratch);
/* The same for medians of log(a / b) in builds: each time both are built anew, and where their memory lies makes one seem faster as long as
 * the build lives. Student's t of the builds, their variance moderated towards what is usual (1.5 % with the weight of four builds; Smyth
 * 2004), so that one or two builds, which show no variance, decide what is far apart only. */
double ait_stats_slower_by_builds(const double *medians, uint32_t count, double factor);

#endif
