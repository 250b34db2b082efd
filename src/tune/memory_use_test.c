/* What a machine leaves, from folders that look like /proc and /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/memory_use.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void put(const char *path, const char *text) {
  char full[512];
  snprintf(full, sizeof full, "%s%s", root, path);
  for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
    *p = 0;
    mkdir(full, 0777);
  }
  FILE *f = fopen(full, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static int setup(void **state) {
  AIT_UNUSED(state);
  snprintf(root, sizeof root, "/tmp/ait-memory.XXXXXX");
  return mkdtemp(root) ? 0 : 1;
}

static int teardown(void **state) {
  AIT_UNUSED(state);
  char command[96];
  snprintf(command, sizeof command, "rm -rf %s", root);
  return system(command);
}

static void test_available(void **state) {
  AIT_UNUSED(state);
  assert_true(ait_memory_available(root) == UINT64_MAX);
  put("/proc/meminfo", "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    8000 kB\n");
  assert_int_equal(ait_memory_available(root), 8000 * 1024);
  put("/proc/self/cgroup", "0::/a/b\n");
  assert_int_equal(ait_memory_available(root), 8000 * 1024);
  put("/sys/fs/cgroup/a/b/memory.max", "max\n");
  put("/sys/fs/cgroup/a/b/memory.current", "1000\n");
  assert_int_equal(ait_memory_available(root), 8000 * 1024);
  put("/sys/fs/cgroup/a/memory.max", "500000\n"); /* a group above */
  put("/sys/fs/cgroup/a/memory.current", "100000\n");
  assert_int_equal(ait_memory_available(root), 400000);
  put("/sys/fs/cgroup/a/b/memory.max", "900\n"); /* used up */
  assert_int_equal(ait_memory_available(root), 0);
  put("/proc/self/cgroup", "12:cpu:/x\n5:memory:/y\n"); /* version 1 */
  put("/sys/fs/cgroup/memory/y/memory.limit_in_bytes", "7000\n");
  put("/sys/fs/cgroup/memory/y/memory.usage_in_bytes", "3000\n");
  assert_int_equal(ait_memory_available(root), 4000);
}

static void test_energy(void **state) {
  AIT_UNUSED(state);
  ait_energy before, after;
  ait_energy_read(root, &before);
  assert_string_equal(before.why_not, "this machine shows no RAPL counters");
  assert_true(ait_energy_between(&before, &before) < 0);
  put("/sys/class/powercap/intel-rapl:0/energy_uj", "9000000\n");
  put("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "10000000\n");
  put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "123456789\n"); /* a part of the package: not added */
  put("/sys/class/powercap/intel-rapl:1/energy_uj", "1000000\n");
  put("/sys/class/powercap/intel-rapl:1/max_energy_range_uj", "10000000\n");
  ait_energy_read(root, &before);
  assert_string_equal(before.why_not, "");
  put("/sys/class/powercap/intel-rapl:1/energy_uj", "3500000\n");
  ait_energy_read(root, &after);
  assert_true(ait_energy_between(&before, &after) > 2.49 && ait_energy_between(&before, &after) < 2.51);
  put("/sys/class/powercap/intel-rapl:0/energy_uj", "500000\n"); /* once around */
  ait_energy_read(root, &after);
  double joules = ait_energy_between(&before, &after);
  assert_true(joules > 3.99 && joules < 4.01);
}

static void test_growth(void **state) {
  AIT_UNUSED(state);
  enum { SIZE = 32 << 20 };
  ait_memory_mark();
  ait_memory_use before = ait_memory_used();
  assert_true(before.own > 0 && before.address_space >= before.own);
  char *p = malloc(SIZE);
  assert_non_null(p);
  memset(p, 1, SIZE);
  ait_memory_use after = ait_memory_used();
  assert_true(after.own > before.own + SIZE / 2 && after.own < before.own + 2 * SIZE);
  assert_true(after.peak >= after.own - (1 << 20));
  free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_available), cmocka_unit_test(test_energy), cmocka_unit_test(test_growth)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
