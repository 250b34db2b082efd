/* What this machine is: instruction sets, caches, usable processors. */
#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const struct {
  const char *name;
  uint64_t bit;
} feature_table[] = {
#define AIT_CPU(name, bit, text, help) {text, AIT_CPU_##name},
#include "base/cpu_features.inc"
#undef AIT_CPU
};

static struct {
  pthread_once_t once;
  uint64_t features;
  char model[64];
  ait_cpu_caches caches;
} machine = {.once = PTHREAD_ONCE_INIT};

/* ---- instruction sets ----------------------------------------------------------------------------------------------------------*/
#if defined(__x86_64__)
/* XCR0: which registers the operating system saves. Only valid when CPUID says OSXSAVE. */
static uint64_t read_xcr0(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

/* Tile registers are off in a process until it asks (Linux 5.16; Intel SDM vol. 1, 13.14). */
static bool request_amx(void) {
  enum { ARCH_GET_XCOMP_PERM = 0x1022, ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
  uint64_t granted = 0;
  if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) != 0) return false;
  return syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &granted) == 0 && (granted >> XTILEDATA & 1);
}

static uint64_t detect_features(void) {
  uint32_t a, b, c, d, leaf7_b = 0, leaf7_c = 0, leaf7_d = 0, leaf71_a = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return AIT_CPU_SSE2;
  uint32_t leaf1_c = c;
  if (__get_cpuid_count(7, 0, &a, &leaf7_b, &leaf7_c, &leaf7_d) && a >= 1) __get_cpuid_count(7, 1, &leaf71_a, &b, &c, &d);
  const uint32_t osxsave = 1u << 27, fma_avx_f16c = 1u << 12 | 1u << 28 | 1u << 29;
  uint64_t xcr0 = leaf1_c & osxsave ? read_xcr0() : 0, found = AIT_CPU_SSE2;
  if ((xcr0 & 0x6) != 0x6 || (leaf1_c & fma_avx_f16c) != fma_avx_f16c || !(leaf7_b >> 5 & 1)) return found;
  found |= AIT_CPU_AVX2;
  const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */
  if ((xcr0 & 0xE0) != 0xE0 || (leaf7_b & avx512) != avx512) return found;
  found |= AIT_CPU_AVX512;
  if (leaf7_c >> 11 & 1) found |= AIT_CPU_VNNI;
  if (leaf71_a >> 5 & 1) found |= AIT_CPU_BF16;
  if (leaf7_d >> 23 & 1) found |= AIT_CPU_FP16;
  const uint32_t amx = 1u << 22 | 1u << 24 | 1u << 25; /* BF16, TILE, INT8 */
  if ((xcr0 >> 17 & 3) == 3 && (leaf7_d & amx) == amx && request_amx()) found |= AIT_CPU_AMX;
  return found;
}

static void detect_model(char *out, size_t size) {
  union {
    uint32_t words[12];
    char text[49];
  } brand = {0};
  uint32_t *w = brand.words;
  if ((uint32_t)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u) return;
  for (uint32_t i = 0; i < 3; i++) __get_cpuid(0x80000002u + i, w + 4 * i, w + 4 * i + 1, w + 4 * i + 2, w + 4 * i + 3);
  const char *start = brand.text + strspn(brand.text, " ");
  snprintf(out, size, "%s", start);
  for (size_t n = strlen(out); n > 0 && out[n - 1] == ' '; n--) out[n - 1] = '\0';
}
#elif defined(__aarch64__)
static uint64_t detect_features(void) { return AIT_CPU_NEON; }
static void detect_model(char *out, size_t size) { snprintf(out, size, "AArch64"); }
#else
static uint64_t detect_features(void) { return 0; }
static void detect_model(char *out, size_t size) { AIT_UNUSED(out), AIT_UNUSED(size); }
#endif

/* ---- small system files --------------------------------------------------------------------------------------------------------*/
static bool read_line(const char *path, char *out, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file) return false;
  bool ok = fgets(out, (int)size, file) != NULL;
  fclose(file);
  if (ok) out[strcspn(out, "\n")] = '\0';
  return ok;
}

/* "48K" in bytes; 0: unreadable. */
static size_t read_size(const char *path) {
  char text[64], *end;
  if (!read_line(path, text, sizeof text)) return 0;
  unsigned long value = strtoul(text, &end, 10);
  return value << (*end == 'K' ? 10 : *end == 'M' ? 20 : 0);
}

/* ---- caches --------------------------------------------------------------------------------------------------------------------*/
static size_t clamp_size(size_t value, size_t low, size_t high, size_t otherwise) {
  if (value == 0) return otherwise;
  return value < low ? low : value > high ? high : value;
}

/* A virtual machine may hide its caches or claim the host's whole L3 (508 MiB were seen where 16 helped). So a missing or unbelievable L3
 * counts as 2 MiB for each usable processor. */
static ait_cpu_caches detect_caches(void) {
  const size_t KiB = 1024, MiB = 1024 * KiB;
  size_t level[4] = {0};
  for (int i = 0; i < 8; i++) {
    char path[96], type[32], text[32];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
    if (!read_line(path, type, sizeof type)) break;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
    if (strcmp(type, "Instruction") == 0 || !read_line(path, text, sizeof text)) continue;
    int n = atoi(text);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
    if (n >= 1 && n <= 3) level[n] = read_size(path);
  }
  size_t cores = (size_t)ait_cpu_count(), modest = 2 * MiB * cores;
  return (ait_cpu_caches){
      .l1d = clamp_size(level[1], 16 * KiB, 256 * KiB, 32 * KiB),
      .l2 = clamp_size(level[2], 128 * KiB, 16 * MiB, 1 * MiB),
      .l3 = level[3] == 0 || level[3] > 16 * MiB * cores ? modest : level[3],
  };
}

/* ---- usable processors ---------------------------------------------------------------------------------------------------------*/
static int32_t affinity_count(void) {
  for (size_t cpus = 1024; cpus <= 1u << 20; cpus *= 4) {
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set) break;
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int32_t)online : 1;
}

/* Whole processors that "quota period" grants; INT32_MAX without a limit. Rounded down: a pool with more threads gets throttled. */
static int32_t quota_count(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return INT32_MAX;
  double count = quota / period;
  return count < 1 ? 1 : count > 1e6 ? INT32_MAX : (int32_t)count;
}

static int32_t cgroup2_limit(const char *group) {
  char path[512], text[96];
  double quota, period;
  snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
  if (!read_line(path, text, sizeof text) || sscanf(text, "%lf %lf", &quota, &period) != 2) return INT32_MAX;
  return quota_count(quota, period);
}

static int32_t cgroup1_limit(void) {
  char quota[64], period[64];
  if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota)) return INT32_MAX;
  if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period)) return INT32_MAX;
  return quota_count(strtod(quota, NULL), strtod(period, NULL));
}

/* The tightest limit of the process's control group and those around it. */
static int32_t cgroup_limit(void) {
  int32_t limit = cgroup1_limit();
  char group[256] = "";
  if (!read_line("/proc/self/cgroup", group, sizeof group) || strncmp(group, "0::", 3) != 0) group[3] = '\0';
  char *path = group + 3;
  for (;;) {
    int32_t here = cgroup2_limit(path);
    if (here < limit) limit = here;
    char *slash = strrchr(path, '/');
    if (!slash) return limit;
    *slash = '\0';
  }
}

int32_t ait_cpu_count(void) {
  int32_t allowed = affinity_count(), limit = cgroup_limit();
  return allowed < limit ? allowed : limit;
}

/* ---- queries -------------------------------------------------------------------------------------------------------------------*/
static void detect(void) {
  machine.features = detect_features();
  detect_model(machine.model, sizeof machine.model);
  if (!machine.model[0]) snprintf(machine.model, sizeof machine.model, "unknown");
  machine.caches = detect_caches();
}

uint64_t ait_cpu_features(void) {
  pthread_once(&machine.once, detect);
  return machine.features;
}

const char *ait_cpu_model(void) {
  pthread_once(&machine.once, detect);
  return machine.model;
}

ait_cpu_caches ait_cpu_cache_sizes(void) {
  pthread_once(&machine.once, detect);
  return machine.caches;
}

void ait_cpu_names(uint64_t features, char *out, size_t size) {
  size_t used = 0;
  if (size) out[0] = '\0';
  for (size_t i = 0; i < AIT_COUNT(feature_table); i++) {
    if (!(features & feature_table[i].bit) || used >= size) continue;
    used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "", feature_table[i].name);
  }
}

static bool name_is(const char *name, const char *text, size_t length) { return strlen(name) == length && memcmp(name, text, length) == 0; }

ait_status ait_cpu_mask_parse(const char *text, uint64_t *out) {
  if (strcmp(text, "native") == 0) return *out = ait_cpu_features(), AIT_OK;
  if (strcmp(text, "scalar") == 0) return *out = 0, AIT_OK;
  uint64_t level = 0;
  char names[160] = "native, scalar";
  size_t used = strlen(names);
  for (size_t i = 0; i < AIT_COUNT(feature_table); i++) {
    bool arm = feature_table[i].bit == AIT_CPU_NEON;
    level = arm ? feature_table[i].bit : level | feature_table[i].bit;
    if (strcmp(feature_table[i].name, text) == 0) return *out = level, AIT_OK;
    used += (size_t)snprintf(names + used, sizeof names - used, ", %s", feature_table[i].name);
  }
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "unknown CPU level '%s'", text), "one of %s", names);
}

ait_status ait_cpu_names_parse(const char *text, uint64_t *out) {
  uint64_t found = 0;
  for (const char *p = text; *p;) {
    size_t length = strcspn(p, ","), i = 0;
    while (i < AIT_COUNT(feature_table) && !name_is(feature_table[i].name, p, length)) i++;
    if (i == AIT_COUNT(feature_table)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "unknown CPU feature '%.*s'", (int)length, p);
    found |= feature_table[i].bit;
    p += length + (p[length] == ',');
  }
  *out = found;
  return AIT_OK;
}
