/* How much memory there is, and how much of it this process has: from /proc and cgroups. */
#ifndef AIT_SRC_TUNE_MEMORY_USE_H
#define AIT_SRC_TUNE_MEMORY_USE_H

#include "base/base.h"

/* Bytes that can still be taken without driving the machine or this process' control group out of memory: the least of MemAvailable and
 * what each group of the process leaves. root: "" (tests: a folder that holds proc and sys). UINT64_MAX where nothing can be told. */
uint64_t ait_memory_available(const char *root);

/* Memory of this process' own (anonymous pages), and the most that it has had since the last reset; 0 where it cannot be told. */
typedef struct ait_memory_use {
  uint64_t own, peak, address_space;
} ait_memory_use;
ait_memory_use ait_memory_used(void);
/* Gives freed memory back to the system and starts a new peak, so that growth is counted from here. */
void ait_memory_mark(void);

/* Energy of the processor packages from RAPL counters (/sys/class/powercap/intel-rapl:N), in joules since some moment. All that runs on
 * them is in it. */
enum { AIT_ENERGY_PACKAGES = 16 };
typedef struct ait_energy {
  double joules[AIT_ENERGY_PACKAGES], wraps_at[AIT_ENERGY_PACKAGES]; /* a counter starts again there */
  int count;
  char why_not[128]; /* "": known */
} ait_energy;
void ait_energy_read(const char *root, ait_energy *out);
/* From one reading to the next; negative when it is not known. */
double ait_energy_between(const ait_energy *before, const ait_energy *after);

#endif
