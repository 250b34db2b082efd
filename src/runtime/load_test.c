/* Sealed files as models: which plan runs, and what happens where none can. */
#include "artifact/toy_models.h"
#include "runtime/runtime.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define FILE_NAME AIT_BINARY_DIR "/tests/load_test.ait"

static ait_allocator heap(void) { return ait_allocator_default(); }

static void ok(ait_status status) {
  if (status) fail_msg("%s (%s)", ait_status_message(status), ait_status_hint(status) ? ait_status_hint(status) : "");
}

static const float w[6] = {1, 2, 3, 4, 5, 6}, tens[4] = {10, 20, 30, 40};

/* One plan on the reference backend that needs `cpu`. */
static void write_file(const char *path, ait_region r, uint64_t cpu) {
  ait_weight_store *store;
  ait_plan plan;
  ok(ait_weight_store_create(heap(), &store));
  ok(toy_add_weight(store, "w", w, 2, (int64_t[]){3, 2}));
  ok(toy_add_weight(store, "total", tens, 1, (int64_t[]){4}));
  ok(ait_plan_compile(heap(), "reference", "precision=fp32", &r, ait_weight_store_provider(store), UINT64_MAX, "test-cpu", &plan));
  plan.cpu_needed = cpu;
  ait_artifact_content content = {
      .portable = &r, .weights = store, .plans = &plan, .plan_count = 1, .producer = "by hand", .model_name = "toy"};
  ok(ait_artifact_write(heap(), path, &content));
  ait_plan_deinit(&plan);
  ait_weight_store_release(store);
}

static void run_linear(ait_model *model) {
  ait_session *session;
  ok(ait_session_create(model, NULL, &session));
  float x[6] = {1, 1, 1, 0, 1, 0};
  ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){2, 3})}, out = {0};
  for (int i = 0; i < 2; ++i) {
    ok(ait_session_run(session, &in, 1, &out, 1));
    assert_memory_equal(out.as.tensor.data, ((float[]){9, 12, 3, 4}), 4 * sizeof(float));
  }
  ait_session_destroy(session);
}

static void test_best_plan(void **state) {
  AIT_UNUSED(state);
  write_file(FILE_NAME, toy_linear(), 0);
  ait_model *model;
  ok(ait_model_load(FILE_NAME, NULL, &model));
  assert_string_equal(ait_model_target(model), "test-cpu");
  assert_string_equal(ait_model_reason(model), "");
  assert_non_null(strstr(ait_model_manifest(model), "\"backend\": \"reference\", \"options\": \"precision=fp32\""));
  assert_non_null(strstr(ait_model_manifest(model), "{\"dim\": \"s0\", \"min\": 2, \"max\": 64}, 3]"));
  run_linear(model);
  ait_model_release(model);
}

static void test_portable(void **state) {
  AIT_UNUSED(state);
  static const uint64_t needs[] = {AIT_CPU_AVX2, AIT_CPU_AMX | AIT_CPU_AVX512};
  static const char *const reasons[] = {"plan 'test-cpu' needs avx2, ", "plan 'test-cpu' needs avx512,amx, "};
  ait_load_options options;
  ait_load_options_init(&options);
  options.cpu_mask = AIT_CPU_SSE2;
  for (int i = 0; i < 2; ++i) {
    write_file(FILE_NAME, toy_linear(), needs[i]);
    ait_model *model;
    ok(ait_model_load(FILE_NAME, &options, &model));
    assert_string_equal(ait_model_target(model), "portable");
    assert_non_null(strstr(ait_model_reason(model), reasons[i]));
    run_linear(model);
    ait_model_release(model);
  }
}

/* Every earlier format stays readable: the file was written by the library of that time. */
static void test_earlier_formats(void **state) {
  AIT_UNUSED(state);
  ait_model *model;
  for (unsigned format = 1; format <= AIT_FORMAT; ++format) {
    char path[512];
    snprintf(path, sizeof path, "%s/artifact/format%u.ait", AIT_TEST_DATA, format);
    ok(ait_model_load(path, NULL, &model));
    assert_string_equal(ait_model_target(model), "test-cpu");
    run_linear(model);
    ait_model_release(model);
  }
}

/* A plan that was asked for runs or is refused; falling back is for files. */
static void test_plan_must_run(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_linear();
  ait_weight_store *store;
  ait_plan plan;
  ait_model *model;
  ok(ait_weight_store_create(heap(), &store));
  ok(toy_add_weight(store, "w", w, 2, (int64_t[]){3, 2}));
  ok(ait_plan_compile(heap(), "reference", "precision=fp16", &r, ait_weight_store_provider(store), UINT64_MAX, "", &plan));
  ait_status status = ait_model_create(heap(), &r, ait_weight_store_provider(store), &plan, NULL, NULL, &model);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  assert_non_null(strstr(ait_status_message(status), "precision 'fp16'"));
  ait_status_free(status);
  plan.cpu_needed = (uint64_t)1 << 50;
  status = ait_model_create(heap(), &r, ait_weight_store_provider(store), &plan, NULL, NULL, &model);
  assert_int_equal(ait_status_code(status), AIT_CODE_UNAVAILABLE);
  ait_status_free(status);
  ait_plan_deinit(&plan);
  ait_weight_store_release(store);
}

static void test_not_there(void **state) {
  AIT_UNUSED(state);
  ait_model *model;
  ait_status status = ait_model_load(AIT_BINARY_DIR "/tests/nothing.ait", NULL, &model);
  assert_int_equal(ait_status_code(status), AIT_CODE_NOT_FOUND);
  assert_null(model);
  ait_status_free(status);
}

/* ---- threads -------------------------------------------------------------------------------------------------------------------------*/
static void *count_up(void *argument) {
  ait_session *s = NULL;
  ait_status status = ait_session_create(argument, NULL, &s);
  float x[4] = {1, 2, 3, 4};
  for (int i = 1; !status && i <= 20; ++i) {
    ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 1, (int64_t[]){4})}, out[2] = {0};
    status = ait_session_run(s, &in, 1, out, 2);
    if (!status && ((const float *)out[0].as.tensor.data)[1] != 20 + 2 * (float)i)
      status = ait_error(AIT_CODE_INTERNAL, "wrong sum in run %d", i);
  }
  ait_session_destroy(s);
  return status;
}

static void test_threads(void **state) {
  AIT_UNUSED(state);
  write_file(FILE_NAME, toy_counter(), 0);
  ait_load_options options;
  ait_load_options_init(&options);
  options.threads = 2;
  ait_model *model;
  ok(ait_model_load(FILE_NAME, &options, &model));
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) assert_int_equal(pthread_create(&threads[i], NULL, count_up, model), 0);
  for (int i = 0; i < 8; ++i) {
    void *status;
    pthread_join(threads[i], &status);
    ok(status);
  }
  ait_model_release(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_best_plan),       cmocka_unit_test(test_portable),
                                     cmocka_unit_test(test_earlier_formats), cmocka_unit_test(test_plan_must_run),
                                     cmocka_unit_test(test_not_there),       cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
