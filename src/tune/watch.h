/* Was the machine itself while something was measured? A reference loop, the kernel's counters, and what they say when it was not. Linux
 * files that are not there count as nothing known. Only the tuner's own thread. */
#ifndef AIT_SRC_TUNE_WATCH_H
#define AIT_SRC_TUNE_WATCH_H

#include "base/base.h"

/* Plain data: kept in the record. */
typedef struct ait_watch_result {
  double seconds;                             /* from the first look to the last */
  double loop_fastest, loop_first, loop_last; /* seconds of the reference loop */
  double loop_slowest;
  double steal_share;             /* of all processors' time: taken by the hypervisor; -1: not known */
  double throttled;               /* seconds in which the cgroup's CPU quota stopped this process; -1: not known */
  double others;                  /* processors that other processes kept busy; -1: not known, or not all processors are ours */
  double hertz_first, hertz_last; /* mean of the processors' frequencies; 0: not known */
  int64_t involuntary;            /* context switches of the children that were not of their own will */
  int64_t thermal_events;         /* of the first processor; -1: not known */
  char governor[32];              /* "performance"; "": not known */
} ait_watch_result;

typedef struct ait_watch {
  double start, steal, total, busy, own, throttled;
  int64_t involuntary, thermal_events;
  bool alone; /* all processors of the machine are ours */
  ait_watch_result result;
} ait_watch;

void ait_watch_start(ait_watch *watch);
/* Some milliseconds: the reference loop once more. While no child runs. */
void ait_watch_look(ait_watch *watch);
/* Looks, and fills watch->result. */
void ait_watch_finish(ait_watch *watch);

/* What a person should know, by kind: "" when all is well. */
typedef enum ait_watch_kind {
  AIT_WATCH_SLOWER,
  AIT_WATCH_STEAL,
  AIT_WATCH_QUOTA,
  AIT_WATCH_OTHERS,
  AIT_WATCH_THERMAL,
  AIT_WATCH_FREQUENCY,
  AIT_WATCH_KINDS,
} ait_watch_kind;
void ait_watch_warning(const ait_watch_result *result, ait_watch_kind kind, char *out, size_t size);
bool ait_watch_plausible(const ait_watch_result *result);

#endif
