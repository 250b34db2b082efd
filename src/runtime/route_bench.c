/* What buckets cost a call: a model of the null backend with 0, 1, 8 and 64 buckets, called with one size and with two in turn; and the
 * look into the table alone. Nanoseconds, best of 20. */
#include "artifact/toy_models.h"
#include "runtime/internal.h"
#include <stdio.h>

enum { CALLS = 20000 };

static ait_status add_bucket(ait_plan *plan, uint32_t index, const ait_region *r, ait_weights weights) {
  ait_plan_bucket *b = &plan->buckets[index];
  AIT_TRY(ait_plan_bucket_new_ranges(plan->allocator, b, 1));
  b->ranges[0] = (ait_plan_range){ait_alloc(plan->allocator, 2, 1), index, index};
  b->plan = ait_alloc_zero(plan->allocator, sizeof *b->plan, _Alignof(ait_plan));
  if (!b->ranges[0].symbol || !b->plan) return AIT_OOM();
  memcpy(b->ranges[0].symbol, "n", 2);
  return ait_plan_compile(plan->allocator, "null", NULL, r, weights, UINT64_MAX, NULL, b->plan);
}

static ait_status time_calls(ait_session *s, int64_t first, int64_t second, double *out) {
  float x[128] = {0};
  *out = 1e9;
  for (int round = 0; round < 20; ++round) {
    double begin = ait_clock_seconds();
    for (int i = 0; i < CALLS; ++i) {
      int64_t n = i % 2 ? second : first;
      ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 1, &n)}, y = {0};
      AIT_TRY(ait_session_run(s, &in, 1, &y, 1));
    }
    double seconds = (ait_clock_seconds() - begin) / CALLS;
    if (seconds < *out) *out = seconds;
  }
  return AIT_OK;
}

static double time_table(const ait_model *m) {
  int64_t symbols[8] = {0};
  double best = 1e9;
  volatile uint32_t sink = 0;
  for (int round = 0; round < 20; ++round) {
    double begin = ait_clock_seconds();
    for (int i = 0; i < CALLS; ++i) {
      symbols[1] = i & 63;
      sink += ait_model_route_for(m, symbols);
    }
    double seconds = (ait_clock_seconds() - begin) / CALLS;
    if (seconds < best) best = seconds;
  }
  return best;
}

/* y = x, x: [n]. */
static ait_status measure(uint32_t buckets) {
  static const ait_region_value values[] = {TOY_F32("x", 1, toy_shape_n)};
  static const ait_region_input inputs[] = {TOY_USER(0, "x", 0, false)};
  static const ait_region_output outputs[] = {TOY_OUT(0, "y")};
  ait_region r = TOY_REGION("identity");
  TOY_PART(r, value, values), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs);
  ait_weights none = {0};
  ait_plan plan;
  ait_model *model;
  ait_session *session;
  double same, changing;
  AIT_TRY(ait_plan_compile(ait_allocator_default(), "null", NULL, &r, none, UINT64_MAX, "", &plan));
  AIT_TRY(ait_plan_new_buckets(&plan, buckets));
  for (uint32_t i = 0; i < buckets; ++i) AIT_TRY(add_bucket(&plan, i, &r, none));
  AIT_TRY(ait_model_create(ait_allocator_default(), &r, none, &plan, NULL, NULL, &model));
  AIT_TRY(ait_session_create(model, NULL, &session));
  AIT_TRY(time_calls(session, 5, 5, &same));
  AIT_TRY(time_calls(session, 0, 63, &changing));
  printf("%2u buckets  %6.1f ns a call, %6.1f with sizes changing, %5.1f in the table\n", buckets, same * 1e9, changing * 1e9,
         time_table(model) * 1e9);
  ait_session_destroy(session);
  ait_model_release(model);
  ait_plan_deinit(&plan);
  return AIT_OK;
}

int main(void) {
  static const uint32_t counts[] = {0, 1, 8, 64};
  ait_status status = AIT_OK;
  for (size_t i = 0; !status && i < AIT_COUNT(counts); ++i) status = measure(counts[i]);
  if (status) printf("%s\n", ait_status_message(status));
  ait_status_free(status);
  return status != AIT_OK;
}
