#include "tune/stopwatch.h"

static const double warm_up_seconds = 0.2, shortest_sample = 200e-6;

static double transport(const ait_stopwatch *w) { return w->transport ? w->transport(w->ctx) : 0; }

ait_status ait_stopwatch_measure(ait_stopwatch *w, double *out_seconds, bool *out_clean) {
  int64_t voluntary, before, after;
  ait_clock_switches(&voluntary, &before);
  double carried = transport(w), start = ait_clock_seconds();
  for (uint32_t i = 0; i < w->inner; ++i) AIT_TRY(w->call(w->ctx));
  *out_seconds = (ait_clock_seconds() - start - (transport(w) - carried)) / w->inner;
  ait_clock_switches(&voluntary, &after);
  *out_clean = before == after;
  return AIT_OK;
}

ait_status ait_stopwatch_warm_up(ait_stopwatch *w) {
  double start = ait_clock_seconds(), last = 0, seconds = 0;
  bool clean;
  w->inner = 1;
  for (int agree = 0; agree < 3;) {
    AIT_TRY(ait_stopwatch_measure(w, &seconds, &clean));
    agree = last > 0 && seconds < 1.05 * last && seconds > 0.95 * last ? agree + 1 : 0;
    last = seconds;
    if (ait_clock_seconds() - start > warm_up_seconds) break;
  }
  if (seconds > 0 && seconds < shortest_sample) w->inner = (uint32_t)(shortest_sample / seconds) + 1;
  w->inner = (w->inner + w->round - 1) / w->round * w->round;
  return AIT_OK;
}
