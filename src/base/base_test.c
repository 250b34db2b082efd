/* Status, memory, text, hashing, files, CPU. */
#include "base/base.h"

#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/test_support.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <dirent.h>
#include <unistd.h>

/* ---- status --------------------------------------------------------------------------------------------------------------------*/
static void status_carries_all(void **state) {
  AIT_UNUSED(state);
  ait_status s = ait_error(AIT_CODE_UNSUPPORTED, "node %d '%s' has no rule", 41, "aten.foo");
  s = ait_error_hint(s, "ait ops --missing %s", "m.pt2");
  s = ait_error_context(s, "cannot import '%s'", "m.pt2");
  assert_int_equal(ait_status_code(s), AIT_CODE_UNSUPPORTED);
  assert_string_equal(ait_status_message(s), "cannot import 'm.pt2': node 41 'aten.foo' has no rule");
  assert_string_equal(ait_status_hint(s), "ait ops --missing m.pt2");
  ait_status second = ait_error(AIT_CODE_IO, "later");
  assert_ptr_equal(ait_status_join(s, second), s);
  assert_null(ait_status_join(AIT_OK, AIT_OK));
  ait_status_free(s);
}

static void status_null_is_success(void **state) {
  AIT_UNUSED(state);
  assert_int_equal(ait_status_code(AIT_OK), AIT_CODE_OK);
  assert_string_equal(ait_status_message(AIT_OK), "");
  assert_null(ait_status_hint(AIT_OK));
  assert_null(ait_error_context(AIT_OK, "x"));
  assert_null(ait_error_hint(AIT_OK, "x"));
  ait_status_free(AIT_OK);
}

static void status_codes_have_names(void **state) {
  AIT_UNUSED(state);
  assert_string_equal(ait_code_name(AIT_CODE_INVALID_MODEL), "invalid-model");
  assert_string_equal(ait_code_name((ait_code)999), "?");
  assert_int_equal(ait_code_exit(AIT_CODE_OK), 0);
  assert_int_equal(ait_code_exit(AIT_CODE_CANCELLED), 130);
  assert_int_equal(ait_code_exit(AIT_CODE_MISMATCH), 1);
}

/* ---- memory --------------------------------------------------------------------------------------------------------------------*/
static void default_allocator_aligns(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  for (size_t align = 1; align <= 4096; align *= 2) {
    for (size_t size = 0; size < 70; size++) {
      void *p = ait_alloc(a, size, align);
      assert_non_null(p);
      assert_int_equal((uintptr_t)p % align, 0);
      memset(p, 1, size);
      ait_free(a, p, size);
    }
  }
  void *big = ait_alloc_zero(a, ((size_t)9 << 20) + 3, 64);
  assert_non_null(big);
  assert_int_equal(((char *)big)[(size_t)9 << 20], 0);
  ait_free(a, big, ((size_t)9 << 20) + 3);
  assert_null(ait_alloc(a, SIZE_MAX - 5, 64));
  ait_free(a, NULL, 7);
}

static ait_status use_arena(ait_allocator a, void *ctx) {
  AIT_UNUSED(ctx);
  ait_arena arena;
  ait_arena_init(&arena, a);
  bool ok = true;
  for (size_t i = 0; i < 3000 && ok; i++) {
    size_t align = (size_t)1 << (i % 9), size = i % 97;
    char *p = ait_arena_zero(&arena, size, align);
    ok = p != NULL;
    if (!ok) break;
    assert_int_equal((uintptr_t)p % align, 0);
    for (size_t k = 0; k < size; k++) assert_int_equal(p[k], 0);
    memset(p, 0xFF, size);
  }
  ok = ok && ait_arena_alloc(&arena, 3 << 20, 64); /* larger than any block */
  char *text = ok ? ait_arena_printf(&arena, "%s-%d", "x", 7) : NULL;
  char *copy = text ? ait_arena_strdup(&arena, text, 3) : NULL;
  if (copy) assert_string_equal(copy, "x-7");
  ok = copy && AIT_ARENA_ARRAY(&arena, int64_t, 100);
  assert_null(ait_arena_array(&arena, SIZE_MAX / 4, 8, 8));
  assert_null(ait_arena_alloc(&arena, SIZE_MAX - 3, 8));
  ait_arena_deinit(&arena);
  return ok ? AIT_OK : AIT_OOM();
}

static void arena_survives_failures(void **state) {
  AIT_UNUSED(state);
  test_every_allocation_fails(use_arena, NULL);
}

static void arena_keeps_its_limit(void **state) {
  AIT_UNUSED(state);
  ait_arena arena;
  ait_arena_init(&arena, ait_allocator_default());
  arena.limit_bytes = 100;
  assert_non_null(ait_arena_alloc(&arena, 60, 1));
  assert_null(ait_arena_alloc(&arena, 41, 1));
  assert_non_null(ait_arena_alloc(&arena, 40, 1));
  ait_arena_deinit(&arena);
}

static void grow_checks_overflow(void **state) {
  AIT_UNUSED(state);
  void *data = NULL;
  size_t capacity = 0;
  ait_status s = ait_grow(ait_allocator_default(), &data, &capacity, SIZE_MAX / 2, 16);
  assert_int_equal(ait_status_code(s), AIT_CODE_OUT_OF_MEMORY);
  ait_status_free(s);
  assert_null(data);
  assert_int_equal(capacity, 0);
}

/* ---- text ----------------------------------------------------------------------------------------------------------------------*/
static ait_status use_text(ait_allocator a, void *ctx) {
  AIT_UNUSED(ctx);
  ait_text t;
  ait_text_init(&t, a);
  for (int i = 0; i < 300; i++) {
    ait_text_printf(&t, "%d,", i);
    ait_text_json_string(&t, "a\"b\n\x01", 5);
    ait_text_append(&t, NULL, 0);
  }
  bool failed = t.failed;
  if (!failed) assert_int_equal(strlen(t.data), t.length);
  ait_text_deinit(&t);
  return failed ? AIT_OOM() : AIT_OK;
}

static void text_survives_failures(void **state) {
  AIT_UNUSED(state);
  test_every_allocation_fails(use_text, NULL);
}

static void expect_json(const char *input, size_t length, const char *wanted) {
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_text_json_string(&t, input, length);
  assert_string_equal(t.data, wanted);
  ait_text_deinit(&t);
}

static void json_strings_are_valid(void **state) {
  AIT_UNUSED(state);
  expect_json("", 0, "\"\"");
  expect_json("a\"\\/\b\f\n\r\t", 9, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\"");
  expect_json("\0\x1f", 2, "\"\\u0000\\u001f\"");
  expect_json("h\xC3\xA9\xF0\x9F\x98\x80", 7, "\"h\xC3\xA9\xF0\x9F\x98\x80\"");
  expect_json("\xC3", 1, "\"\xEF\xBF\xBD\"");
  expect_json("\xED\xA0\x80x", 4, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx\"");
}

static void utf8_is_checked(void **state) {
  AIT_UNUSED(state);
  static const char *const good[] = {
      "", "abc", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
  static const char *const bad[] = {"\x80",         "\xC0\x80",     "\xC1\xBF",         "\xC2",
                                    "\xE0\x9F\x80", "\xED\xA0\x80", "\xF0\x8F\x80\x80", "\xF4\x90\x80\x80",
                                    "\xF5",         "\xE2\x82",     "\xE2\x28\xA1",     "\xFF"};
  for (size_t i = 0; i < AIT_COUNT(good); i++) assert_true(ait_utf8_valid(good[i], strlen(good[i])));
  for (size_t i = 0; i < AIT_COUNT(bad); i++) assert_false(ait_utf8_valid(bad[i], strlen(bad[i])));
}

static void expect_double(double value, const char *wanted) {
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_text_json_double(&t, value);
  assert_string_equal(t.data, wanted);
  ait_text_deinit(&t);
}

static void json_doubles_read_back(void **state) {
  AIT_UNUSED(state);
  expect_double(0.1, "0.1");
  expect_double(-0.0, "-0");
  expect_double(3, "3");
  expect_double(1e300, "1e+300");
  expect_double(1.0 / 3, "0.3333333333333333");
  expect_double(5e-324, "5e-324");
  expect_double(NAN, "\"NaN\"");
  expect_double(-INFINITY, "\"-Infinity\"");
  uint64_t seed = 1;
  for (int i = 0; i < 20000; i++) {
    seed = ait_hash(&seed, sizeof seed, 1);
    double v;
    memcpy(&v, &seed, sizeof v);
    if (!isfinite(v)) continue;
    ait_text t;
    ait_text_init(&t, ait_allocator_default());
    ait_text_json_double(&t, v);
    assert_true(strtod(t.data, NULL) == v);
    ait_text_deinit(&t);
  }
  char *end;
  assert_true(ait_parse_double("-0.25)", &end) == -0.25 && *end == ')');
  if (setlocale(LC_NUMERIC, "de_DE.UTF-8")) {
    char decimal[48];
    ait_format_double(decimal, 17, 0.5);
    assert_string_equal(decimal, "0.5");
    assert_true(ait_parse_double("1.5e-3x", NULL) == 1.5e-3);
    expect_double(1.5, "1.5");
    setlocale(LC_NUMERIC, "C");
  }
}

static void affixes(void **state) {
  AIT_UNUSED(state);
  assert_true(ait_starts_with("abc", "ab") && ait_starts_with("abc", "") && !ait_starts_with("a", "ab"));
  assert_true(ait_ends_with("x.npz", ".npz") && ait_ends_with("a", "") && !ait_ends_with("z", "npz"));
}

/* ---- hash ----------------------------------------------------------------------------------------------------------------------*/
static void hash_is_stable(void **state) {
  AIT_UNUSED(state);
  uint8_t data[200];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7 + 1);
  uint64_t all = 0;
  for (size_t n = 0; n <= sizeof data; n++) all = all * 3 + ait_hash(data, n, n);
  assert_int_equal(all, UINT64_C(0xbdb5797137eeda2a)); /* a change of this number breaks every stored key */
}

/* Each input bit must flip about half of the output bits. */
static void hash_avalanches(void **state) {
  AIT_UNUSED(state);
  for (size_t length = 1; length <= 120; length += 7) {
    uint8_t data[128] = {0};
    uint64_t base = ait_hash(data, length, 5);
    int64_t flips = 0;
    for (size_t bit = 0; bit < length * 8; bit++) {
      data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
      int changed = __builtin_popcountll(base ^ ait_hash(data, length, 5));
      data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
      assert_in_range(changed, 8, 56);
      flips += changed;
    }
    double mean = (double)flips / (double)(length * 8);
    assert_true(mean > 29 && mean < 35);
  }
}

static void crc_matches_the_standard(void **state) {
  AIT_UNUSED(state);
  assert_int_equal(ait_crc32(0, "123456789", 9), 0xCBF43926u);
  assert_int_equal(ait_crc32(ait_crc32(0, "1234", 4), "56789", 5), 0xCBF43926u);
  assert_int_equal(ait_crc32(0, "", 0), 0);
}

static ait_status use_map(ait_allocator a, void *ctx) {
  AIT_UNUSED(ctx);
  ait_map map;
  ait_map_init(&map, a);
  assert_false(ait_map_get(&map, "x", NULL));
  ait_status status = AIT_OK;
  size_t put = 0;
  for (size_t i = 0; i < 100 && !status; i++) {
    char key[32];
    snprintf(key, sizeof key, "key%zu", i);
    status = ait_map_put(&map, key, (void *)(i + 1));
    put += !status;
  }
  assert_int_equal(map.count, put);
  for (size_t i = 0; i < put; i++) { /* order kept; what was put before a failure is still there */
    char key[32];
    void *value = NULL;
    snprintf(key, sizeof key, "key%zu", i);
    assert_string_equal(map.entries[i].key, key);
    assert_true(ait_map_get(&map, key, &value));
    assert_int_equal((size_t)value, i + 1);
  }
  if (!status) status = ait_map_put(&map, "key5", NULL);
  if (!status) assert_int_equal(map.count, put);
  ait_map_deinit(&map);
  return status;
}

static void map_survives_failures(void **state) {
  AIT_UNUSED(state);
  test_every_allocation_fails(use_map, NULL);
}

/* ---- files ---------------------------------------------------------------------------------------------------------------------*/
static char folder[64];

static int make_folder(void **state) {
  AIT_UNUSED(state);
  snprintf(folder, sizeof folder, "/tmp/ait-base-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int count_files(void) {
  DIR *dir = opendir(folder);
  int count = 0;
  for (struct dirent *e; (e = readdir(dir));) count += e->d_name[0] != '.';
  closedir(dir);
  return count;
}

static int remove_folder(void **state) {
  AIT_UNUSED(state);
  DIR *dir = opendir(folder);
  for (struct dirent *e; (e = readdir(dir));) {
    if (e->d_name[0] != '.') unlinkat(dirfd(dir), e->d_name, 0);
  }
  closedir(dir);
  return rmdir(folder);
}

static const char *in_folder(const char *name) {
  static char path[2][160];
  static int turn;
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
  return path[turn];
}

static void expect_contents(const char *path, const char *wanted) {
  char *data;
  size_t size;
  assert_null(ait_file_read(ait_allocator_default(), path, 1 << 20, &data, &size));
  assert_int_equal(size, strlen(wanted));
  assert_string_equal(data, wanted);
  ait_free(ait_allocator_default(), data, size + 1);
}

static ait_status write_and_read(ait_allocator a, void *ctx) {
  AIT_UNUSED(ctx);
  const char *path = in_folder("alloc");
  AIT_TRY(ait_file_write_all(a, path, "hello", 5));
  ait_file_map *map;
  AIT_TRY(ait_file_map_open(a, path, &map));
  ait_file_map_prefetch(map, 2, 100);
  assert_int_equal(ait_file_map_size(map), 5);
  assert_memory_equal(ait_file_map_data(map), "hello", 5);
  ait_file_map_release(ait_file_map_retain(map));
  ait_file_map_release(map);
  char *data;
  size_t size;
  AIT_TRY(ait_file_read(a, path, 5, &data, &size));
  ait_free(a, data, size + 1);
  return AIT_OK;
}

static void files_survive_failures(void **state) {
  AIT_UNUSED(state);
  test_every_allocation_fails(write_and_read, NULL);
}

static void writer_is_atomic(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  const char *path = in_folder("atomic");
  assert_null(ait_file_write_all(a, path, "old", 3));
  int before = count_files();
  ait_file_writer *w;
  assert_null(ait_file_writer_create(a, path, &w));
  for (int i = 0; i < 100000; i++) assert_null(ait_file_writer_write(w, "x", 1));
  assert_int_equal(ait_file_writer_offset(w), 100000);
  expect_contents(path, "old");
  ait_file_writer_destroy(w); /* not committed */
  expect_contents(path, "old");
  assert_int_equal(count_files(), before);
  assert_null(ait_file_writer_create(a, path, &w));
  assert_null(ait_file_writer_write(w, "new", 3));
  assert_null(ait_file_writer_commit(w));
  ait_status again = ait_file_writer_write(w, "x", 1);
  assert_int_equal(ait_status_code(again), AIT_CODE_INTERNAL);
  ait_status_free(again);
  ait_file_writer_destroy(w);
  expect_contents(path, "new");
  assert_int_equal(count_files(), before);
}

static void writer_keeps_links_and_modes(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  struct stat info;
  assert_null(ait_file_write_all(a, in_folder("real"), "1", 1));
  assert_int_equal(chmod(in_folder("real"), 0640), 0);
  assert_int_equal(symlink("real", in_folder("link")), 0);
  assert_null(ait_file_write_all(a, in_folder("link"), "2", 1));
  assert_int_equal(lstat(in_folder("link"), &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(stat(in_folder("real"), &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
  expect_contents(in_folder("real"), "2");
  assert_null(ait_file_write_all(a, "/dev/null", "gone", 4));
  assert_int_equal(stat("/dev/null", &info), 0);
  assert_true(S_ISCHR(info.st_mode));
}

/* A full disk, by a limit on the size of files. */
static void full_disk_leaves_no_half_file(void **state) {
  AIT_UNUSED(state);
  const char *path = in_folder("full");
  assert_null(ait_file_write_all(ait_allocator_default(), path, "whole", 5));
  int before = count_files();
  struct rlimit old, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = (struct rlimit){1 << 16, old.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  static char data[1 << 18];
  ait_status s = ait_file_write_all(ait_allocator_default(), path, data, sizeof data);
  setrlimit(RLIMIT_FSIZE, &old);
  assert_int_equal(ait_status_code(s), AIT_CODE_IO);
  assert_non_null(strstr(ait_status_message(s), path));
  ait_status_free(s);
  expect_contents(path, "whole");
  assert_int_equal(count_files(), before);
}

static void expect_code(ait_status s, ait_code code) {
  assert_int_equal(ait_status_code(s), code);
  ait_status_free(s);
}

static void bad_paths_are_named(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  ait_file_map *map;
  char *data;
  size_t size;
  ait_status s = ait_file_map_open(a, "/nowhere/x", &map);
  assert_string_equal(ait_status_message(s), "cannot open '/nowhere/x': No such file or directory");
  expect_code(s, AIT_CODE_NOT_FOUND);
  expect_code(ait_file_map_open(a, folder, &map), AIT_CODE_IO);
  expect_code(ait_file_map_open(a, "/dev/null", &map), AIT_CODE_IO);
  expect_code(ait_file_read(a, "/nowhere/x", 10, &data, &size), AIT_CODE_NOT_FOUND);
  expect_code(ait_file_write_all(a, "/nowhere/x", "", 0), AIT_CODE_IO);
  expect_code(ait_file_write_all(a, folder, "", 0), AIT_CODE_IO);
  expect_code(ait_file_write_all(a, "", "", 0), AIT_CODE_IO);
  assert_null(ait_file_write_all(a, in_folder("limit"), "123456", 6));
  expect_code(ait_file_read(a, in_folder("limit"), 5, &data, &size), AIT_CODE_LIMIT);
  expect_code(ait_file_read(a, "/proc/self/status", 5, &data, &size), AIT_CODE_LIMIT);
  assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
  expect_code(ait_file_map_open(a, in_folder("fifo"), &map), AIT_CODE_IO); /* and does not hang */
}

static void odd_files_are_read(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  ait_file_map *map;
  char *data;
  size_t size;
  assert_null(ait_file_write_all(a, in_folder("empty"), NULL, 0));
  assert_null(ait_file_map_open(a, in_folder("empty"), &map));
  assert_int_equal(ait_file_map_size(map), 0);
  assert_non_null(ait_file_map_data(map));
  ait_file_map_prefetch(map, 0, 1);
  ait_file_map_release(map);
  expect_contents(in_folder("empty"), "");
  assert_null(ait_file_read(a, "/proc/self/status", 1 << 20, &data, &size)); /* has no size */
  assert_true(size > 10 && data[size] == '\0');
  ait_free(a, data, size + 1);
}

/* ---- clock, CPU ----------------------------------------------------------------------------------------------------------------*/
static void clocks_run(void **state) {
  AIT_UNUSED(state);
  double t0 = ait_clock_seconds(), c0 = ait_clock_thread_seconds();
  while (ait_clock_thread_seconds() - c0 < 1e-3) {}
  assert_true(ait_clock_seconds() - t0 >= 0.9e-3);
  int64_t voluntary = -1, involuntary = -1;
  ait_clock_switches(&voluntary, &involuntary);
  assert_true(voluntary >= 0 && involuntary >= 0);
}

static uint64_t mask_of(const char *text) {
  uint64_t mask = 0;
  assert_null(ait_cpu_mask_parse(text, &mask));
  return mask;
}

static void cpu_masks(void **state) {
  AIT_UNUSED(state);
  assert_int_equal(mask_of("scalar"), 0);
  assert_int_equal(mask_of("avx2"), AIT_CPU_SSE2 | AIT_CPU_AVX2);
  assert_int_equal(mask_of("avx512"), AIT_CPU_SSE2 | AIT_CPU_AVX2 | AIT_CPU_AVX512);
  assert_int_equal(mask_of("neon"), AIT_CPU_NEON);
  assert_int_equal(mask_of("native"), ait_cpu_features());
  uint64_t mask;
  ait_status s = ait_cpu_mask_parse("avx3", &mask);
  assert_int_equal(ait_status_code(s), AIT_CODE_INVALID_ARGUMENT);
  assert_string_equal(ait_status_hint(s), "one of native, scalar, sse2, avx2, avx512, avx512vnni, avx512bf16, avx512fp16, amx, neon");
  ait_status_free(s);
}

static void cpu_names_round_trip(void **state) {
  AIT_UNUSED(state);
  char names[128], tiny[6];
  for (uint64_t features = 0; features < 256; features++) {
    uint64_t back = 999;
    ait_cpu_names(features, names, sizeof names);
    assert_null(ait_cpu_names_parse(names, &back));
    assert_int_equal(back, features);
  }
  ait_cpu_names(255, tiny, sizeof tiny);
  assert_int_equal(strlen(tiny), 5);
  uint64_t mask;
  expect_code(ait_cpu_names_parse("sse2,avx", &mask), AIT_CODE_INVALID_ARGUMENT);
}

static void cpu_is_sane(void **state) {
  AIT_UNUSED(state);
  ait_cpu_caches c = ait_cpu_cache_sizes();
  assert_in_range(c.l1d, 16 << 10, 256 << 10);
  assert_in_range(c.l2, 128 << 10, 16 << 20);
  assert_in_range(c.l3, 1, (size_t)16 << 30);
  assert_true(ait_cpu_count() >= 1);
  assert_true(strlen(ait_cpu_model()) > 0);
  assert_string_equal(ait_version(), "0.1.0");
#if defined(__x86_64__)
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq");
  assert_int_equal((ait_cpu_features() & AIT_CPU_AVX2) != 0, __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0);
  assert_int_equal((ait_cpu_features() & AIT_CPU_AVX512) != 0, avx512);
  assert_int_equal((ait_cpu_features() & AIT_CPU_VNNI) != 0, __builtin_cpu_supports("avx512vnni") != 0);
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(status_carries_all),
      cmocka_unit_test(status_null_is_success),
      cmocka_unit_test(status_codes_have_names),
      cmocka_unit_test(default_allocator_aligns),
      cmocka_unit_test(arena_survives_failures),
      cmocka_unit_test(arena_keeps_its_limit),
      cmocka_unit_test(grow_checks_overflow),
      cmocka_unit_test(text_survives_failures),
      cmocka_unit_test(json_strings_are_valid),
      cmocka_unit_test(utf8_is_checked),
      cmocka_unit_test(json_doubles_read_back),
      cmocka_unit_test(affixes),
      cmocka_unit_test(hash_is_stable),
      cmocka_unit_test(hash_avalanches),
      cmocka_unit_test(crc_matches_the_standard),
      cmocka_unit_test(map_survives_failures),
      cmocka_unit_test(files_survive_failures),
      cmocka_unit_test(writer_is_atomic),
      cmocka_unit_test(writer_keeps_links_and_modes),
      cmocka_unit_test(full_disk_leaves_no_half_file),
      cmocka_unit_test(bad_paths_are_named),
      cmocka_unit_test(odd_files_are_read),
      cmocka_unit_test(clocks_run),
      cmocka_unit_test(cpu_masks),
      cmocka_unit_test(cpu_names_round_trip),
      cmocka_unit_test(cpu_is_sane),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
