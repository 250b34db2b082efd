/* The example backend, slow where it is told to be: -DNAME=small is slow with more than 2 rows, large with 2 and fewer. For buckets. */
#define ait_backend_query honest_query
#include "../../examples/backend_plugin/rows.c"
#undef ait_backend_query

#include <time.h>

static void spend(double seconds) {
  struct timespec t;
  double end = 0;
  do {
    clock_gettime(CLOCK_MONOTONIC, &t);
    double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (end == 0) end = now + seconds;
    if (now >= end) return;
  } while (true);
}

enum { small, large };

static ait_status run(void *instance, const ait_run_context *context) {
  ait_status status = rows_run(instance, context);
  bool few = !status && context->outputs[0].as.tensor.shape[0] <= 2;
  if (few == (NAME == large)) spend(2e-3);
  return status;
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
AIT_API const ait_backend *ait_backend_query(uint32_t abi_version);
const ait_backend *ait_backend_query(uint32_t abi_version) {
  static ait_backend table;
  table = *honest_query(AIT_BACKEND_ABI);
  table.name = TEXT(NAME);
  table.run = run;
  return abi_version == AIT_BACKEND_ABI ? &table : NULL;
}
