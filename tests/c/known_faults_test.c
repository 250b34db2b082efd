/* Faults of other tools that show over many calls: memory that grows with shapes, pools after fork, leaks of loading, odd strides.
 * tests/known_faults/README.md has the list. */
#include <ait/ait.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* freed memory is kept back on purpose */
#else
#define SANITIZED 0
#endif

static void ok(ait_status status) {
  if (status) fail_msg("%s", ait_status_message(status));
}

static ait_model *open_graph(const char *text, const char *backend) {
  char path[] = "/tmp/ait-known-fault-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  ait_load_options options;
  ait_load_options_init(&options);
  options.backend = backend;
  ait_model *model = NULL;
  ok(ait_model_import(path, &options, &model));
  unlink(path);
  return model;
}

static ait_session *open_session(ait_model *model, int threads) {
  ait_session_options options;
  ait_session_options_init(&options);
  options.threads = threads;
  ait_session *session = NULL;
  ok(ait_session_create(model, &options, &session));
  return session;
}

static const char *const backends[] = {"reference", "native", "eager"};

/* ---- R09: strides of the caller, negative ones, too ------------------------------------------------------------------------------*/
static void test_strides(void **state) {
  (void)state;
  for (int b = 0; b < 3; ++b) {
    ait_model *model = open_graph("graph \"g\" raw\n"
                                  "input %x: float32[2, 3] user 0 \"x\"\ninput %w: float32[2, 3] user 1 \"w\"\n"
                                  "%y: float32[2, 2] = aten.linear(%x, %w)\noutput user 0 \"y\" = %y\n",
                                  backends[b]);
    ait_session *session = open_session(model, 1);
    float memory[64], w[] = {1, 2, 3, 4, 5, 6};
    static const struct {
      int64_t strides[2], first;
    } layouts[] = {{{3, 1}, 0}, {{-3, -1}, 40}, {{1, -2}, 30}, {{0, 1}, 5}, {{-7, 0}, 20}, {{20, 3}, 1}};
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; ++l) {
      for (int i = 0; i < 64; ++i) memory[i] = 1000; /* the wrong cells */
      ait_tensor x = ait_tensor_borrow(memory + layouts[l].first, AIT_F32, 2, (int64_t[]){2, 3});
      memcpy(x.strides, layouts[l].strides, sizeof layouts[l].strides);
      float want[2][2] = {{0}};
      for (int i = 0; i < 2; ++i)
        for (int k = 0; k < 3; ++k) memory[layouts[l].first + i * x.strides[0] + k * x.strides[1]] = (float)(1 + i + 2 * k);
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
          for (int k = 0; k < 3; ++k) want[i][j] += memory[layouts[l].first + i * x.strides[0] + k * x.strides[1]] * w[3 * j + k];
      ait_value in[] = {ait_value_tensor(x), ait_value_tensor(ait_tensor_borrow(w, AIT_F32, 2, (int64_t[]){2, 3}))}, out = {0};
      ok(ait_session_run(session, in, 2, &out, 1));
      assert_memory_equal(out.as.tensor.data, want, sizeof want);
    }
    ait_session_destroy(session);
    ait_model_release(model);
  }
}

/* ---- R16: ever new sizes ---------------------------------------------------------------------------------------------------------
 * The largest comes first, so that what the session holds for it is there when the first figure is taken: what grows after it is a leak. */
static long resident_kib(void) {
  FILE *f = fopen("/proc/self/statm", "r");
  long size, resident = 0;
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%ld %ld", &size, &resident), 2);
  fclose(f);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_memory_of_shapes(void **state) {
  (void)state;
  ait_model *model = open_graph("graph \"g\" raw\nsymbol s0 [3, 500] hint 8 backed\nsymbol s1 [3, 500] hint 8 backed\n"
                                "input %x: float32[1, 3, s0, s1] user 0 \"x\"\ninput %w: float32[8, 3, 3, 3] user 1 \"w\"\n"
                                "%c: float32[1, 8, s0, s1] = aten.conv2d(%x, %w, none, [1, 1], [1, 1])\n"
                                "%r: float32[1, 8, s0, s1] = aten.relu(%c)\n"
                                "%y: float32[1, 8] = aten.mean.dim(%r, [2, 3])\noutput user 0 \"y\" = %y\n",
                                "native");
  for (int threads = 1; threads <= 2; ++threads) {
    ait_session *session = open_session(model, threads);
    enum { SIDE = 96, RUNS = SANITIZED ? 300 : 2400 };
    float *x = calloc(3 * SIDE * SIDE, sizeof *x), w[8 * 27] = {1};
    long early = 0;
    uint32_t seed = 1;
    for (int run = 1; run <= RUNS; ++run) {
      int64_t h = 17 + (seed = seed * 1664525u + 1013904223u) % (SIDE - 17), v = 17 + (seed >> 16) % (SIDE - 17);
      if (run == 1) h = v = SIDE;
      ait_value in[] = {ait_value_tensor(ait_tensor_borrow(x, AIT_F32, 4, (int64_t[]){1, 3, h, v})),
                        ait_value_tensor(ait_tensor_borrow(w, AIT_F32, 4, (int64_t[]){8, 3, 3, 3}))},
                out = {0};
      ok(ait_session_run(session, in, 2, &out, 1));
      if (run == RUNS / 6) early = resident_kib();
    }
    long late = resident_kib();
    if (!SANITIZED && late > early + early / 10) fail_msg("%ld KiB after %d runs, %ld KiB after %d", early, RUNS / 6, late, RUNS);
    free(x);
    ait_session_destroy(session);
  }
  ait_model_release(model);
}

/* ---- S15: fork after the pool has started ----------------------------------------------------------------------------------------*/
static float run_once(ait_session *session) {
  static float x[64 * 64];
  for (int i = 0; i < 64 * 64; ++i) x[i] = 1;
  ait_value in = ait_value_tensor(ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){64, 64})), out = {0};
  ok(ait_session_run(session, &in, 1, &out, 1));
  return *(float *)out.as.tensor.data;
}

static void test_fork(void **state) {
  (void)state;
  ait_model *model = open_graph("graph \"g\" raw\ninput %x: float32[64, 64] user 0 \"x\"\n"
                                "%y: float32[64, 64] = aten.mm(%x, %x)\noutput user 0 \"y\" = %y\n",
                                "native");
  ait_session *session = open_session(model, 3);
  assert_true(run_once(session) == 64);
  for (int i = 0; i < 100; ++i) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      alarm(20); /* a hang is a failure */
      _exit(run_once(session) == 64 ? 0 : 1);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
  }
  assert_true(run_once(session) == 64);
  ait_session_destroy(session);
  ait_model_release(model);
}

/* ---- S29: load and unload in a loop ----------------------------------------------------------------------------------------------*/
static int descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  assert_non_null(folder);
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

static void test_load_loop(void **state) {
  (void)state;
  enum { LOOPS = SANITIZED ? 20 : 100 };
  long early = 0;
  int open_early = 0;
  for (int i = 1; i <= LOOPS; ++i) {
    ait_model *model = NULL;
    ait_load_options options;
    ait_load_options_init(&options);
    options.backend = backends[1 + i % 2];
    ok(ait_model_import(AIT_TEST_DATA "/models/digits/digits.pt2", &options, &model));
    ait_session *session = open_session(model, 2);
    float x[64] = {0};
    ait_value in = ait_value_tensor(ait_tensor_borrow(x, AIT_F32, 4, (int64_t[]){1, 1, 8, 8})), out = {0};
    ok(ait_session_run(session, &in, 1, &out, 1));
    ait_session_destroy(session);
    ait_model_release(model);
    if (i == LOOPS / 5) early = resident_kib(), open_early = descriptors();
  }
  assert_int_equal(descriptors(), open_early);
  if (!SANITIZED && resident_kib() > early + 2048) fail_msg("%ld KiB, then %ld KiB", early, resident_kib());
}

/* ---- R25: an idle session ----------------------------------------------------------------------------------------------------------*/
static double process_seconds(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void test_idle(void **state) {
  (void)state;
  ait_model *model = open_graph("graph \"g\" raw\ninput %x: float32[64, 64] user 0 \"x\"\n"
                                "%y: float32[64, 64] = aten.mm(%x, %x)\noutput user 0 \"y\" = %y\n",
                                "native");
  ait_session *sessions[3];
  for (int i = 0; i < 3; ++i) sessions[i] = open_session(model, 2);
  for (int i = 0; i < 3; ++i) run_once(sessions[i]);
  usleep(100000);
  double before = process_seconds();
  usleep(500000);
  double idle = process_seconds() - before;
  if (idle > 0.02 * 0.5 + 0.005) fail_msg("%.4f s of processor time in half a second of rest", idle);
  for (int i = 0; i < 3; ++i) ait_session_destroy(sessions[i]);
  ait_model_release(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_strides), cmocka_unit_test(test_memory_of_shapes), cmocka_unit_test(test_fork),
                                     cmocka_unit_test(test_load_loop), cmocka_unit_test(test_idle)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
