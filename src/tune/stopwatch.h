/* Times calls of a session: one way for trials, contests and `ait bench`. */
#ifndef AIT_SRC_TUNE_STOPWATCH_H
#define AIT_SRC_TUNE_STOPWATCH_H

#include "base/base.h"

typedef struct ait_stopwatch {
  ait_status (*call)(void *ctx);
  void *ctx;
  uint32_t round;                 /* calls that belong together, as one over each sample */
  uint32_t inner;                 /* calls in one measurement; set by warm_up to a multiple of `round` */
  double (*transport)(void *ctx); /* ait_session_transport_seconds of what is called: does not count as time of the call; NULL: 0 */
} ait_stopwatch;

/* Until three measurements in a row agree within 5 %, or 0.2 s are over; then chooses how many calls make a measurement long enough for the
 * clock (200 us). */
ait_status ait_stopwatch_warm_up(ait_stopwatch *watch) AIT_MUST_USE;
/* Seconds of one call. *out_clean: this thread was not descheduled meanwhile, or so seldom that it costs less than 1 %. */
ait_status ait_stopwatch_measure(ait_stopwatch *watch, double *out_seconds, bool *out_clean) AIT_MUST_USE;
/* Is a measurement thrown away? One that was disturbed, until `end` (ait_clock_seconds) and while no more than four were for each that was
 * kept: on a busy machine noisy ones are better than none, and than waiting. */
bool ait_stopwatch_rejects(bool clean, uint32_t kept, uint32_t dropped, double end);

#endif
