/* A warm session on the native backend with one thread runs without allocation, lock, system call or page fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/testing.h"
#include "tune/tune.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* ---- counting: this program's functions go before the C library's ----------------------------------------------------------------*/
static volatile long allocations, locks;

#if !SANITIZED && defined(__GLIBC__)
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
void *malloc(size_t size) { return ++allocations, __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return ++allocations, __libc_calloc(n, size); }
void *realloc(void *p, size_t size) { return ++allocations, __libc_realloc(p, size); }
void *aligned_alloc(size_t align, size_t size) { return ++allocations, __libc_memalign(align, size); }
void *memalign(size_t align, size_t size);
void *memalign(size_t align, size_t size) { return ++allocations, __libc_memalign(align, size); }
int posix_memalign(void **out, size_t align, size_t size) {
  ++allocations;
  return (*out = __libc_memalign(align, size)) ? 0 : ENOMEM;
}
void free(void *p) { ++allocations, __libc_free(p); }

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static int (*next)(pthread_mutex_t *);
  if (!next) next = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT, "pthread_mutex_lock");
  ++locks;
  return next(mutex);
}
#endif

static void *counted_alloc(void *ctx, size_t size, size_t align) {
  AIT_UNUSED(ctx);
  ++allocations;
  return ait_allocator_default().alloc(ait_allocator_default().ctx, size, align);
}
static void counted_free(void *ctx, void *p, size_t size) {
  AIT_UNUSED(ctx);
  ++allocations;
  ait_allocator_default().free(ait_allocator_default().ctx, p, size);
}

/* ---- a warm session --------------------------------------------------------------------------------------------------------------*/
typedef struct steady {
  ait_model *model;
  ait_session *session;
  ait_value inputs[PT_MAX], outputs[PT_MAX];
  size_t input_count, output_count;
} steady;

static void run(steady *s) { pt_ok(ait_session_run(s->session, s->inputs, s->input_count, s->outputs, s->output_count), "run"); }

/* Steps without a kernel run on the reference's functions, which allocate their results. */
static bool has_portable_steps(ait_model *model, const ait_value *inputs, size_t input_count) {
  ait_session *session;
  ait_session_options options;
  ait_step_time steps[256];
  ait_value outputs[PT_MAX] = {0};
  bool portable = false;
  ait_session_options_init(&options);
  options.profile = true;
  pt_ok(ait_session_create(model, &options, &session), "session");
  pt_ok(ait_session_run(session, inputs, input_count, outputs, ait_model_output_count(model)), "run");
  size_t n = ait_session_profile(session, steps, AIT_COUNT(steps));
  assert_true(n > 0 && n <= AIT_COUNT(steps));
  for (size_t i = 0; i < n; ++i) portable |= steps[i].portable;
  ait_session_destroy(session);
  return portable;
}

static void steady_close(steady *s) {
  pt_release(s->inputs, s->input_count);
  ait_session_destroy(s->session);
  ait_model_release(s->model);
}

/* false: native does not take the whole of this model. */
static bool steady_open(steady *s, const char *file) {
  ait_load_options load;
  ait_load_options_init(&load);
  *s = (steady){0};
  load.allocator = (ait_allocator){NULL, counted_alloc, counted_free};
  load.backend = "native";
  ait_status status = ait_model_import(file, &load, &s->model);
  bool taken = status == AIT_OK;
  ait_status_free(status);
  if (!taken) return false;
  ait_session_options options;
  ait_session_options_init(&options);
  options.allocator = load.allocator;
  options.threads = 1;
  pt_ok(ait_session_create(s->model, &options, &s->session), "session");
  s->output_count = ait_model_output_count(s->model);
  assert_true(s->output_count <= PT_MAX && pt_inputs(ait_model_region(s->model), 0, s->inputs, &s->input_count));
  if (has_portable_steps(s->model, s->inputs, s->input_count)) return steady_close(s), false;
  for (int i = 0; i < 5; ++i) run(s);
  return true;
}

static const char *const models[] = {AIT_TEST_DATA "/models/digits/digits.pt2", AIT_TEST_DATA "/pt2/golden/mlp_t29.pt2",
                                     AIT_TEST_DATA "/pt2/golden/kv_t214.pt2",   AIT_TEST_DATA "/pt2/golden/derived_t214.pt2",
                                     AIT_TEST_DATA "/pt2/golden/sym_t214.pt2",  AIT_TEST_DATA "/pt2/golden/inmut_func_t214.pt2",
                                     AIT_TEST_DATA "/pt2/golden/m_t214.pt2",    AIT_TEST_DATA "/pt2/golden/meta_t214.pt2"};

static void each_model(void (*check)(steady *s, const char *file)) {
  int taken = 0;
  for (size_t i = 0; i < AIT_COUNT(models); ++i) {
    steady s;
    if (!steady_open(&s, models[i])) continue;
    check(&s, models[i]);
    steady_close(&s);
    ++taken;
  }
  if (taken < 4) fail_msg("native took the whole of only %d models", taken);
}

/* ---- checks ----------------------------------------------------------------------------------------------------------------------*/
static void count_allocations(steady *s, const char *file) {
  long before = allocations, locked = locks;
  for (int i = 0; i < 20; ++i) run(s);
  if (allocations != before) fail_msg("%s: %ld allocations in 20 runs", file, allocations - before);
  if (locks != locked) fail_msg("%s: %ld locks in 20 runs", file, locks - locked);
}

static void count_faults(steady *s, const char *file) {
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 50; ++i) run(s);
  getrusage(RUSAGE_SELF, &after);
  long faults = after.ru_minflt - before.ru_minflt;
  if (faults > 2) fail_msg("%s: %ld page faults in 50 runs", file, faults); /* the kernel may move a page now and then */
}

static int report_fd;
static void on_system_call(int signal_number, siginfo_t *info, void *context) {
  AIT_UNUSED(signal_number), AIT_UNUSED(context);
  int number = info->si_syscall;
  if (write(report_fd, &number, sizeof number) < 0) {}
  syscall(SYS_exit_group, 9);
}

/* From here on only write and exit_group are let through: any other call ends in on_system_call. */
static bool forbid_system_calls(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = AIT_COUNT(rules), .filter = rules};
  struct sigaction action = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void count_system_calls(steady *s, const char *file) {
  int ends[2], number = -1, code;
  assert_int_equal(pipe(ends), 0);
  pid_t pid = fork();
  if (pid == 0) {
    report_fd = ends[1];
    if (!forbid_system_calls()) syscall(SYS_exit_group, 77);
    for (int i = 0; i < 20; ++i)
      if (ait_session_run(s->session, s->inputs, s->input_count, s->outputs, s->output_count) != AIT_OK) syscall(SYS_exit_group, 8);
    syscall(SYS_exit_group, 0);
  }
  close(ends[1]);
  ssize_t got = read(ends[0], &number, sizeof number);
  close(ends[0]);
  waitpid(pid, &code, 0);
  if (WIFEXITED(code) && WEXITSTATUS(code) == 77) return print_message("no seccomp here: system calls are not looked at\n"), (void)0;
  if (got == sizeof number) fail_msg("%s: system call %d", file, number);
  assert_int_equal(code, 0);
}

/* A test that counts nothing would pass, too. */
static void what_is_counted_is_seen(void **state) {
  AIT_UNUSED(state);
  if (SANITIZED) return;
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  long before = allocations, locked = locks;
  void *volatile p = malloc(10);
  free(p);
  assert_true(allocations >= before + 2);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  assert_int_equal(locks, locked + 1);
  pid_t pid = fork();
  int code;
  if (pid == 0) {
    report_fd = -1;
    if (!forbid_system_calls()) syscall(SYS_exit_group, 77);
    syscall(SYS_getppid);
    syscall(SYS_exit_group, 0);
  }
  waitpid(pid, &code, 0);
  assert_true(WIFEXITED(code) && (WEXITSTATUS(code) == 9 || WEXITSTATUS(code) == 77));
}

static void nothing_is_allocated_or_locked(void **state) {
  AIT_UNUSED(state);
  each_model(count_allocations);
}
static void no_page_is_touched_first(void **state) {
  AIT_UNUSED(state);
  if (!SANITIZED) each_model(count_faults);
}
static void the_system_is_not_called(void **state) {
  AIT_UNUSED(state);
  if (!SANITIZED) each_model(count_system_calls);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_counted_is_seen),
      cmocka_unit_test(nothing_is_allocated_or_locked),
      cmocka_unit_test(no_page_is_touched_first),
      cmocka_unit_test(the_system_is_not_called),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
