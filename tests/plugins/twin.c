/* The example backend with a fault: compiled once for each, -DTWIN=twin_NAME. All of them are faster than the honest one as long as they
 * are not found out, so that a tuner that believes them would choose them. */
#define ait_backend_query honest_query
#include "../../examples/backend_plugin/rows.c"
#undef ait_backend_query

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static ait_tensor *result(const ait_run_context *c) { return &c->outputs[0].as.tensor; }
static int64_t row_count(const ait_run_context *c) { return result(c)->shape[0]; }
static float *answers(const ait_run_context *c) { return result(c)->data; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void spend(double seconds) {
  for (double end = now() + seconds; now() < end;) {}
}

/* Each: one call, `calls` counted from 1 in this process. */
static ait_status twin_lying(void *in, const ait_run_context *c, long calls) { /* beyond any tolerance */
  (void)calls;
  ait_status status = rows_run(in, c);
  if (!status && row_count(c)) answers(c)[0] += 1;
  return status;
}

static ait_status twin_lying_elsewhere(void *in, const ait_run_context *c, long calls) { /* right at the samples' size only */
  (void)calls;
  ait_status status = rows_run(in, c);
  if (!status && row_count(c) != 4 && row_count(c)) answers(c)[0] += 1;
  return status;
}

static ait_status twin_lying_again(void *in, const ait_run_context *c, long calls) { /* the second answer is another one */
  static int64_t last = -1;
  (void)calls;
  ait_status status = rows_run(in, c);
  if (!status && row_count(c) == last) answers(c)[0] += 1;
  last = status ? -1 : row_count(c);
  return status;
}

static ait_status twin_lying_later(void *in, const ait_run_context *c, long calls) { /* right as long as anybody looks */
  ait_status status = rows_run(in, c);
  if (!status && calls > 40 && row_count(c)) answers(c)[0] += 1;
  return status;
}

static ait_status twin_drifting(void *in, const ait_run_context *c, long calls) { /* a little more with each call, after the first ones */
  ait_status status = rows_run(in, c);
  if (!status && calls > 20 && row_count(c)) answers(c)[0] += 1e-6f * (float)(calls - 20);
  return status;
}

static ait_status twin_slowing(void *in, const ait_run_context *c, long calls) { /* fast as long as it is tried, slow when it is used */
  ait_status status = rows_run(in, c);
  if (calls > 200) spend(2e-7 * (double)(calls - 200));
  return status;
}

static ait_status twin_crashing(void *in, const ait_run_context *c, long calls) {
  if (calls < 3) return rows_run(in, c);
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
  return NULL;
}

static ait_status twin_hanging(void *in, const ait_run_context *c, long calls) {
  if (calls < 3) return rows_run(in, c);
  for (;;) pause();
}

static ait_status twin_leaking(void *in, const ait_run_context *c, long calls) {
  enum { BYTES = 1 << 16 };
  (void)calls;
  char *lost = malloc(BYTES);
  for (size_t i = 0; lost && i < BYTES; i += 4096) ((volatile char *)lost)[i] = 1;
  return rows_run(in, c);
}

static ait_status twin_odd(void *in, const ait_run_context *c, long calls) { /* wrong in the rest of a vector */
  (void)calls;
  ait_status status = rows_run(in, c);
  if (!status && row_count(c) % 2 == 1 && row_count(c) > 1) answers(c)[0] += 1;
  return status;
}

static ait_status twin_third(void *in, const ait_run_context *c, long calls) {
  ait_status status = rows_run(in, c);
  if (!status && calls == 3) answers(c)[0] += 1;
  return status;
}

static ait_status twin_sometimes(void *in, const ait_run_context *c, long calls) { /* no number, one time in thirteen, later on */
  ait_status status = rows_run(in, c);
  if (!status && calls > 30 && calls % 13 == 0) answers(c)[0] = NAN;
  return status;
}

static ait_status twin_idle(void *in, const ait_run_context *c, long calls) { /* success, and nothing written where it was to write */
  if (calls < 2) return rows_run(in, c);
  return result(c)->data ? NULL : rows_run(in, c);
}

static ait_status twin_two_threads(void *in, const ait_run_context *c, long calls) {
  (void)calls;
  ait_status status = rows_run(in, c);
  if (!status && c->pool) answers(c)[0] += 1;
  return status;
}

static int64_t value_count(const ait_run_context *c) {
  int64_t n = 1;
  for (int32_t d = 0; d < result(c)->rank; ++d) n *= result(c)->shape[d];
  return n;
}

static ait_status twin_overrunning(void *in, const ait_run_context *c, long calls) { /* one number too many */
  (void)calls;
  ait_status status = rows_run(in, c);
  if (!status) ((volatile float *)answers(c))[value_count(c)] = 0;
  return status;
}

static ait_status twin_underrunning(void *in, const ait_run_context *c, long calls) {
  (void)calls;
  ait_status status = rows_run(in, c);
  if (!status) ((volatile float *)answers(c))[-1] = 0;
  return status;
}

static ait_status twin_scribbling(void *in, const ait_run_context *c, long calls) { /* into its input, when it needs that no more */
  (void)calls;
  ait_status status = rows_run(in, c);
  if (!status) *(float *)c->inputs[0].as.tensor.data = 0;
  return status;
}

static ait_status twin_killing(void *in, const ait_run_context *c, long calls) {
  if (calls < 3) return rows_run(in, c);
  kill(getppid(), SIGKILL);
  kill(-getpgid(getppid()), SIGKILL);
  kill(0, SIGKILL);
  return NULL;
}

static ait_status twin_filling(void *in, const ait_run_context *c, long calls) { /* the disk */
  (void)calls;
  int fd = open("filled.tmp", O_WRONLY | O_CREAT, 0600);
  unlink("filled.tmp");
  if (fd >= 0 && ftruncate(fd, (off_t)1 << 40) == 0) close(fd);
  return rows_run(in, c);
}

static ait_status twin_closing(void *in, const ait_run_context *c, long calls) {
  (void)calls;
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  return rows_run(in, c);
}

static void *spin(void *arg) {
  for (;;) spend(1);
  return arg;
}

static ait_status twin_spinning(void *in, const ait_run_context *c, long calls) { /* threads that nobody needs */
  pthread_t thread;
  if (calls < 20 && pthread_create(&thread, NULL, spin, NULL) == 0) pthread_detach(thread);
  return rows_run(in, c);
}

static ait_status twin_gulping(void *in, const ait_run_context *c, long calls) { /* 100 MB a call */
  enum { BYTES = 100 << 20 };
  (void)calls;
  char *lost = malloc(BYTES);
  for (size_t i = 0; lost && i < BYTES; i += 4096) ((volatile char *)lost)[i] = 1;
  return rows_run(in, c);
}

static ait_status twin_talking(void *in, const ait_run_context *c, long calls) {
  if (calls < 40)
    for (int i = 0; i < 50000; ++i) printf("%d bottles of milk on the wall\n", i);
  fflush(stdout);
  return rows_run(in, c);
}

static ait_status twin_rounding(void *in, const ait_run_context *c, long calls) {
  (void)calls;
  ait_status status = rows_run(in, c);
  fesetround(FE_UPWARD);
  return status;
}

static ait_status twin_flushing(void *in, const ait_run_context *c, long calls) { /* denormal numbers to zero */
  (void)calls;
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
  uint64_t v;
  __asm__ volatile("mrs %0, fpcr" : "=r"(v));
  __asm__ volatile("msr fpcr, %0" : : "r"(v | 1u << 24));
#endif
  return rows_run(in, c);
}

static ait_status twin_moving(void *in, const ait_run_context *c, long calls) {
  (void)calls;
  if (chdir("/")) return NULL;
  return rows_run(in, c);
}

static ait_status twin_speaking(void *in, const ait_run_context *c, long calls) { /* another locale */
  (void)calls;
  if (!setlocale(LC_ALL, "C.UTF-8")) setlocale(LC_ALL, "POSIX");
  return rows_run(in, c);
}

static void on_signal(int number) { (void)number; }

static ait_status twin_handling(void *in, const ait_run_context *c, long calls) {
  (void)calls;
  signal(SIGTERM, on_signal);
  return rows_run(in, c);
}

static ait_status twin_staying(void *in, const ait_run_context *c, long calls) { /* waits for a lock that it has when it is to go */
  (void)calls;
  return rows_run(in, c);
}

static void stay(void *instance) {
  (void)instance;
  for (;;) pause();
}

static ait_status run(void *instance, const ait_run_context *context) {
  static long calls;
  return TWIN(instance, context, ++calls);
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
AIT_API const ait_backend *ait_backend_query(uint32_t abi_version);
const ait_backend *ait_backend_query(uint32_t abi_version) {
  static ait_backend twin;
  static ait_status (*const all[])(void *, const ait_run_context *, long) = {
      twin_lying,    twin_lying_elsewhere, twin_lying_again, twin_lying_later,  twin_drifting,   twin_slowing,
      twin_crashing, twin_hanging,         twin_leaking,     twin_odd,          twin_third,      twin_sometimes,
      twin_idle,     twin_two_threads,     twin_overrunning, twin_underrunning, twin_scribbling, twin_killing,
      twin_filling,  twin_closing,         twin_spinning,    twin_gulping,      twin_talking,    twin_rounding,
      twin_flushing, twin_moving,          twin_speaking,    twin_handling,     twin_staying};
  (void)all; /* each plugin uses one of them */
  twin = *honest_query(AIT_BACKEND_ABI);
  twin.name = TEXT(TWIN);
  twin.run = run;
  if (!strcmp(twin.name, "twin_staying")) twin.instance_destroy = stay;
  return abi_version == AIT_BACKEND_ABI ? &twin : NULL;
}
