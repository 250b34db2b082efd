#include "tune/pareto.h"
#include <math.h>

static bool dominates(const ait_pareto_row *a, const ait_pareto_row *b, double noise) {
  bool better = false;
  for (int i = 0; i < AIT_PARETO_AXES; ++i) {
    double x = a->axes[i], y = b->axes[i];
    if (!isfinite(y)) continue;
    if (!isfinite(x)) return false;
    if (x > y + noise * fabs(y)) return false;
    better |= x < y - noise * fabs(y);
  }
  return better;
}

void ait_pareto_mark(ait_pareto_row *rows, size_t count, double noise) {
  for (size_t i = 0; i < count; ++i) {
    rows[i].front = true;
    for (size_t k = 0; rows[i].front && k < count; ++k) rows[i].front = k == i || !dominates(&rows[k], &rows[i], noise);
  }
}
