#include "tune/stopwatch.h"

static const double warm_up_seconds = 0.2, shortest_sample = 200e-6;
static const double seconds_of_a_switch = 0.3; /* others then run for some 3 ms: 1 % of so long */

static double transport(const ait_stopwatch *w) { return w->transport ? w->transport(w->ctx) : 0; }

ait_status ait_stopwatch_measure(ait_stopwatch *w, double *out_seconds, bool *out_clean) {
  int64_t voluntary, before, after;
  ait_clock_switches(&voluntary, &before);
  double carried = transport(w), start = ait_clock_seconds();
  for (uint32_t i = 0; i < w->inner; ++i) AIT_TRY(w->call(w->ctx));
  double elapsed = ait_clock_seconds() - start;
  *out_seconds = (elapsed - (transport(w) - carried)) / w->inner;
  ait_clock_switches(&voluntary, &after);
  *out_clean = after - before <= (int64_t)(elapsed / seconds_of_a_switch);
  return AIT_OK;
}

bool ait_stopwatch_rejects(bool clean, uint32_t kept, uint32_t dropped, double end) {
  return !clean && dropped < 4 * (kept + 1) && ait_clock_seconds() < end;
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
