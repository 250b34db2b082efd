#include "tune/watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LOOP_STEPS = 120000, LOOP_TRIES = 9 };
/* Beyond these a person should know. The loop is the fastest of several, so that what is left is the processor's speed. */
static const double slower_by = 0.06, steal_limit = 0.02, throttled_limit = 0.01, others_limit = 0.15, frequency_limit = 0.05;

/* ---- the reference loop: a chain in which each step waits for the one before, in registers only
 * -----------------------------------------*/
static double loop_once(void) {
  static volatile uint64_t sink;
  uint64_t x = sink | 1;
  double start = ait_clock_seconds();
  for (int i = 0; i < LOOP_STEPS; ++i) x = x * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
  double seconds = ait_clock_seconds() - start;
  sink = x;
  return seconds;
}

static double loop_seconds(void) {
  double best = loop_once();
  for (int i = 1; i < LOOP_TRIES; ++i) best = fmin(best, loop_once());
  return best;
}

/* ---- counters --------------------------------------------------------------------------------------------------------------------*/
/* The number after `key` in a file of "key number" lines, or the file's first number when key is NULL. */
static bool read_number(const char *path, const char *key, double *out) {
  char line[256];
  FILE *file = fopen(path, "re");
  bool found = false;
  size_t n = key ? strlen(key) : 0;
  while (file && !found && fgets(line, sizeof line, file)) {
    if (key && (strncmp(line, key, n) || line[n] != ' ')) continue;
    char *end;
    *out = (double)strtoll(line + n, &end, 10);
    found = end != line + n;
  }
  if (file) fclose(file);
  return found;
}

/* proc(5): "cpu user nice system idle iowait irq softirq steal", in ticks over all processors. */
static bool read_processors(double *total, double *busy, double *steal) {
  long long v[8] = {0};
  FILE *file = fopen("/proc/stat", "re");
  bool good =
      file && fscanf(file, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) == 8;
  if (file) fclose(file);
  double tick = (double)sysconf(_SC_CLK_TCK);
  *busy = (double)(v[0] + v[1] + v[2] + v[5] + v[6]) / tick;
  *steal = (double)v[7] / tick;
  *total = (double)(v[3] + v[4]) / tick + *busy + *steal;
  return good;
}

/* Of the cgroup that this process sees as its own: version 2, then version 1. */
static double read_throttled(void) {
  double v;
  if (read_number("/sys/fs/cgroup/cpu.stat", "throttled_usec", &v)) return v * 1e-6;
  if (read_number("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time", &v)) return v * 1e-9;
  return -1;
}

static double read_hertz(void) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < 256; ++i) {
    char path[96];
    double khz;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", i);
    if (!read_number(path, NULL, &khz)) break;
    sum += khz * 1e3;
    ++count;
  }
  return count ? sum / count : 0;
}

static int64_t read_thermal(void) {
  double core = 0, package = 0;
  if (!read_number("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", NULL, &core)) return -1;
  read_number("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", NULL, &package);
  return (int64_t)core + (int64_t)package;
}

static void read_governor(char *out, size_t size) {
  *out = 0;
  FILE *file = fopen("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "re");
  if (!file) return;
  if (!fgets(out, (int)size, file)) *out = 0;
  fclose(file);
  out[strcspn(out, "\n")] = 0;
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

/* CPU time of this process and of its children that have ended, and their involuntary switches. */
static double read_own(int64_t *involuntary) {
  struct rusage self = {0}, children = {0};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  *involuntary = children.ru_nivcsw;
  return seconds_of(self.ru_utime) + seconds_of(self.ru_stime) + seconds_of(children.ru_utime) + seconds_of(children.ru_stime);
}

/* ---- watching --------------------------------------------------------------------------------------------------------------------*/
void ait_watch_start(ait_watch *w) {
  *w = (ait_watch){.start = ait_clock_seconds(), .throttled = read_throttled(), .thermal_events = read_thermal()};
  w->own = read_own(&w->involuntary);
  if (!read_processors(&w->total, &w->busy, &w->steal)) w->total = 0;
  w->alone = sysconf(_SC_NPROCESSORS_ONLN) == (long)ait_cpu_count();
  ait_watch_result *r = &w->result;
  r->hertz_first = read_hertz();
  read_governor(r->governor, sizeof r->governor);
  r->loop_first = r->loop_last = r->loop_fastest = r->loop_slowest = loop_seconds();
}

void ait_watch_look(ait_watch *w) {
  ait_watch_result *r = &w->result;
  r->loop_last = loop_seconds();
  r->loop_fastest = fmin(r->loop_fastest, r->loop_last);
  r->loop_slowest = fmax(r->loop_slowest, r->loop_last);
}

void ait_watch_finish(ait_watch *w) {
  ait_watch_result *r = &w->result;
  double total, busy, steal, throttled = read_throttled();
  int64_t involuntary, thermal = read_thermal();
  ait_watch_look(w);
  double own = read_own(&involuntary);
  r->seconds = ait_clock_seconds() - w->start;
  r->hertz_last = read_hertz();
  r->involuntary = involuntary - w->involuntary;
  r->thermal_events = thermal < 0 ? -1 : thermal - w->thermal_events;
  r->throttled = throttled < 0 || w->throttled < 0 ? -1 : throttled - w->throttled;
  r->steal_share = r->others = -1;
  if (w->total <= 0 || !read_processors(&total, &busy, &steal) || total <= w->total || r->seconds <= 0) return;
  r->steal_share = fmax(0, steal - w->steal) / (total - w->total);
  if (w->alone) r->others = fmax(0, (busy - w->busy - (own - w->own)) / r->seconds);
}

void ait_watch_warning(const ait_watch_result *r, ait_watch_kind kind, char *out, size_t size) {
  *out = 0;
  double slower = r->loop_fastest > 0 ? r->loop_slowest / r->loop_fastest - 1 : 0;
  double frequency = r->hertz_first > 0 ? 1 - r->hertz_last / r->hertz_first : 0;
  if (kind == AIT_WATCH_SLOWER && slower > slower_by)
    snprintf(out, size, "the processor became up to %.0f %% slower (frequency, heat, a neighbour)", 100 * slower);
  if (kind == AIT_WATCH_STEAL && r->steal_share > steal_limit)
    snprintf(out, size, "the hypervisor took %.0f %% of the processors' time (steal)", 100 * r->steal_share);
  if (kind == AIT_WATCH_QUOTA && r->seconds > 0 && r->throttled > throttled_limit * r->seconds)
    snprintf(out, size, "the cgroup's CPU quota stopped the process for %.2g s of %.2g s", r->throttled, r->seconds);
  if (kind == AIT_WATCH_OTHERS && r->others > others_limit) snprintf(out, size, "other processes kept %.1f processors busy", r->others);
  if (kind == AIT_WATCH_THERMAL && r->thermal_events > 0)
    snprintf(out, size, "the processor throttled itself %lld times (heat)", (long long)r->thermal_events);
  if (kind == AIT_WATCH_FREQUENCY && frequency > frequency_limit && !strcmp(r->governor, "performance"))
    snprintf(out, size, "the frequency fell by %.0f %%", 100 * frequency);
}

bool ait_watch_plausible(const ait_watch_result *r) {
  const double *numbers[] = {&r->seconds,     &r->loop_fastest, &r->loop_first, &r->loop_last,   &r->loop_slowest,
                             &r->steal_share, &r->throttled,    &r->others,     &r->hertz_first, &r->hertz_last};
  bool good = memchr(r->governor, 0, sizeof r->governor) != NULL;
  for (size_t i = 0; i < AIT_COUNT(numbers); ++i) good = good && isfinite(*numbers[i]);
  return good;
}
