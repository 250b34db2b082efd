/* Which candidates nobody beats in everything at once. */
#ifndef AIT_SRC_TUNE_PARETO_H
#define AIT_SRC_TUNE_PARETO_H

#include "base/base.h"

/* Less is better in each. Not finite: not known; who is known there is not beaten by it. */
enum { AIT_PARETO_AXES = 7 };
typedef struct ait_pareto_row {
  double axes[AIT_PARETO_AXES];
  bool front;
} ait_pareto_row;
/* A row is on the front when no other is as good everywhere and better somewhere; what differs by less than `noise` (0.02: 2 %) is equal.
 */
void ait_pareto_mark(ait_pareto_row *rows, size_t count, double noise);

#endif
