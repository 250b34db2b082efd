/* What a backend has to leave as it was, since it lives in the user's process: the working folder, the locale, the file mode mask, handlers
 * of signals, and how this thread rounds. */
#ifndef AIT_SRC_TUNE_MANNERS_H
#define AIT_SRC_TUNE_MANNERS_H

#include "base/base.h"
#include <fenv.h>
#include <limits.h>
#include <signal.h>
#include <sys/types.h>

enum { AIT_MANNERS_SIGNALS = 15 };

typedef struct ait_manners {
  char folder[PATH_MAX];
  char locale[512];
  mode_t mask;
  void *handlers[AIT_MANNERS_SIGNALS];
  int rounding;
  uint64_t float_mode; /* flush to zero and the like */
} ait_manners;

void ait_manners_look(ait_manners *out);
/* Errors: mismatch, "it changes …". */
ait_status ait_manners_check(const ait_manners *before) AIT_MUST_USE;

#endif
