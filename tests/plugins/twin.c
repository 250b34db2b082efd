/* The example backend with a fault: compiled once for each, -DTWIN=twin_NAME. All of them are faster than the honest one as long as they
 * are not found out, so that a tuner that believes them would choose them. */
#define ait_backend_query honest_query
#include "../../examples/backend_plugin/rows.c"
#undef ait_backend_query

#include <math.h>
#include <signal.h>
#include <stdlib.h>
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

static ait_status run(void *instance, const ait_run_context *context) {
  static long calls;
  return TWIN(instance, context, ++calls);
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
AIT_API const ait_backend *ait_backend_query(uint32_t abi_version);
const ait_backend *ait_backend_query(uint32_t abi_version) {
  static ait_backend twin;
  static ait_status (*const all[])(void *, const ait_run_context *, long) = {twin_lying,       twin_lying_elsewhere, twin_lying_again,
                                                                             twin_lying_later, twin_drifting,        twin_slowing,
                                                                             twin_crashing,    twin_hanging,         twin_leaking};
  (void)all; /* each plugin uses one of them */
  twin = *honest_query(AIT_BACKEND_ABI);
  twin.name = TEXT(TWIN);
  twin.run = run;
  return abi_version == AIT_BACKEND_ABI ? &twin : NULL;
}
