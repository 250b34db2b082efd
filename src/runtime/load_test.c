/* Sealed files as models: which plan runs, and what happens where none can. */
#include "artifact/toy_models.h"
#include "backends/registry.h"
#include "runtime/runtime.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define FILE_NAME AIT_BINARY_DIR "/tests/load_test.ait"

static ait_allocator heap(void) { return ait_allocator_default(); }

static void ok(ait_status status) {
  if (status) fail_msg("%s (%s)", ait_status_message(status), ait_status_hint(status) ? ait_status_hint(status) : "");
}

static const float w[6] = {1, 2, 3, 4, 5, 6}, tens[4] = {10, 20, 30, 40};

/* One plan on that backend that needs `cpu`. */
static const char *plan_backend = "reference";
static const char *plan_needs; /* then it is on a backend that this process has not */
static void write_file(const char *path, ait_region r, uint64_t cpu) {
  ait_weight_store *store;
  ait_plan plan;
  ok(ait_weight_store_create(heap(), &store));
  ok(toy_add_weight(store, "w", w, 2, (int64_t[]){3, 2}));
  ok(toy_add_weight(store, "total", tens, 1, (int64_t[]){4}));
  ok(ait_plan_compile(heap(), plan_backend, "precision=fp32", &r, ait_weight_store_provider(store), UINT64_MAX, "test-cpu", &plan));
  plan.cpu_needed = cpu;
  if (plan_needs) {
    strcpy(plan.steps[0].backend, "elsewhere"); /* as long as "reference" */
    plan.steps[0].needs = ait_alloc(heap(), strlen(plan_needs) + 1, 1);
    strcpy(plan.steps[0].needs, plan_needs);
  }
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

/* Every earlier format stays readable, and what a format learned later: the files were written by the library of their time. */
static void test_earlier_formats(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *file;
    size_t plans;
    ait_signature_state signature;
  } files[] = {
      {"format1.ait", 1, AIT_SIGNATURE_UNSIGNED},
      {"format1-plans.ait", 2, AIT_SIGNATURE_UNSIGNED}, /* with reports of their own, a feature that nobody knows, a sample */
      {"format1-signed.ait", 1, AIT_SIGNATURE_TRUSTED},
  };
  static const char key[] = "ait-ed25519 ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ= kept";
  ait_load_options options;
  ait_keys *keys;
  assert_int_equal(system("rm -rf " AIT_BINARY_DIR "/tests/load_test_kept"), 0);
  ok(ait_keys_open(heap(), AIT_BINARY_DIR "/tests/load_test_kept", &keys));
  ok(ait_keys_trust(keys, key, NULL, NULL));
  ait_load_options_init(&options);
  options.keys = keys;
  options.full_checksum = true;
  for (size_t i = 0; i < AIT_COUNT(files); ++i) {
    char path[512];
    ait_model *model;
    snprintf(path, sizeof path, "%s/artifact/%s", AIT_TEST_DATA, files[i].file);
    ok(ait_model_load(path, &options, &model));
    assert_string_equal(ait_model_target(model), "test-cpu");
    assert_int_equal(ait_model_plan_count(model), files[i].plans);
    assert_int_equal(ait_model_signature(model).state, files[i].signature);
    run_linear(model);
    ait_model_release(model);
  }
  ait_keys_destroy(keys);
}

static void run_mlp(ait_model *model, float *out_y, float *out_z) {
  static float x[5 * 6];
  for (int i = 0; i < 30; ++i) x[i] = (float)(i * 7 % 13) / 8 - 0.7f;
  ait_session *session;
  ok(ait_session_create(model, NULL, &session));
  ait_port scale;
  ok(ait_model_input(model, 1, &scale));
  ait_value in[2] = {{.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){5, 6})},
                     {.kind = AIT_VALUE_FLOAT, .as.f = 2}},
            out[3] = {0};
  ok(ait_session_run(session, in, 2, out, 3));
  memcpy(out_y, out[0].as.tensor.data, 5 * 8 * sizeof(float));
  memcpy(out_z, out[1].as.tensor.data, 5 * 3 * sizeof(float));
  ait_session_destroy(session);
}

/* A file that `ait tune` wrote before plans had buckets, with a blob of the native backend of that day: whatever became of that blob, the
 * answers are those of the model it was made of. */
static void test_earlier_tuning(void **state) {
  AIT_UNUSED(state);
  ait_model *model;
  float y[2][40], z[2][15];
  ok(ait_model_load(AIT_TEST_DATA "/artifact/format1-tuned.ait", NULL, &model));
  run_mlp(model, y[0], z[0]);
  ait_model_release(model);
  ok(ait_model_import(AIT_TEST_DATA "/pt2/golden/mlp_t29.pt2", NULL, &model));
  run_mlp(model, y[1], z[1]);
  ait_model_release(model);
  for (int i = 0; i < 40; ++i) assert_float_equal(y[0][i], y[1][i], 1e-5);
  for (int i = 0; i < 15; ++i) assert_float_equal(z[0][i], z[1][i], 1e-5);
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

/* Loads the file with the byte at `where` changed. */
static ait_status load_damaged(const char *bytes, size_t size, const char *where, bool when_read) {
  ait_load_options options;
  ait_model *model;
  char *copy = malloc(size);
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  copy[where - bytes] ^= 0x10;
  ok(ait_file_write_all(heap(), FILE_NAME, copy, size));
  free(copy);
  ait_load_options_init(&options);
  options.check_when_read = when_read;
  options.threads = 2;
  ait_status status = ait_model_load(FILE_NAME, &options, &model);
  if (status) return status;
  run_linear(model);
  ait_model_release(model);
  return AIT_OK;
}

/* With check_when_read, damage is found where something reads it, and only there. */
static void test_checked_when_read(void **state) {
  AIT_UNUSED(state);
  char *bytes;
  size_t size;
  write_file(FILE_NAME, toy_linear(), 0);
  ok(ait_file_read(heap(), FILE_NAME, 1 << 20, &bytes, &size));
  const struct {
    const void *data; /* what lies there */
    size_t size;
    bool read;
    const char *entry;
  } places[] = {{w, sizeof w, true, "entry 'weights/0'"}, {tens, sizeof tens, false, "entry 'weights/1'"}, {NULL, 0, true, ".blob'"}};
  for (size_t i = 0; i < AIT_COUNT(places); ++i)
    for (int when_read = 0; when_read < 2; ++when_read) {
      ait_artifact *artifact;
      const char *where = NULL;
      ok(ait_file_write_all(heap(), FILE_NAME, bytes, size));
      ok(ait_artifact_open(heap(), FILE_NAME, NULL, &artifact));
      const ait_blob *blob = &ait_artifact_plan(artifact, 0)->steps[0].blob;
      size_t length = places[i].size ? places[i].size : blob->size;
      for (const char *at = bytes; at; where = at ? at++ : where) /* the last: the graph, before it, may be the blob word for word */
        at = memmem(at, (size_t)(bytes + size - at), places[i].size ? places[i].data : blob->data, length);
      ait_artifact_release(artifact);
      assert_non_null(where);
      ait_status status = load_damaged(bytes, size, where + length - 1, when_read);
      if (when_read && !places[i].read) ok(status);
      else {
        assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
        if (!strstr(ait_status_message(status), places[i].entry)) fail_msg("%s: %s", places[i].entry, ait_status_message(status));
        ait_status_free(status);
      }
    }
  ait_free(heap(), bytes, size + 1);
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

/* ---- native code ------------------------------------------------------------------------------------------------------------- */
static uint32_t code_loads;

static ait_status code_load(const ait_load_context *context, void **out_loaded) {
  ++code_loads;
  return ait_backend_find("reference")->load(context, out_loaded);
}

/* The reference backend under another name, as one whose blobs are machine code. */
static void add_code_backend(void) {
  static ait_backend code;
  if (code.name) return;
  code = *ait_backend_find("reference");
  code.name = "machine-code";
  code.blob_is_code = true;
  code.load = code_load;
  ok(ait_backend_add(&code));
}

/* Code of a file runs only when a trusted key has signed it; else the portable graph gives the same answers, and says why. */
static void test_code_needs_trust(void **state) {
  AIT_UNUSED(state);
  static const char folder[] = AIT_BINARY_DIR "/tests/load_test_keys";
  ait_load_options options;
  ait_model *model;
  ait_keys *keys;
  add_code_backend();
  assert_int_equal(system("rm -rf " AIT_BINARY_DIR "/tests/load_test_keys"), 0);
  ok(ait_keys_open(heap(), folder, &keys));
  ok(ait_keys_new(keys, "own"));
  plan_backend = "machine-code";
  write_file(FILE_NAME, toy_linear(), 0);
  plan_backend = "reference";
  ait_load_options_init(&options);
  for (int step = 0; step < 4; ++step) { /* unsigned; signed, trusted; signed, no keys; revoked */
    static const char *const reasons[] = {"it is not signed", "", "its key is not known here", "its key was revoked"};
    static const ait_signature_state states[] = {AIT_SIGNATURE_UNSIGNED, AIT_SIGNATURE_TRUSTED, AIT_SIGNATURE_UNKNOWN,
                                                 AIT_SIGNATURE_REVOKED};
    if (step == 1) ok(ait_sign(FILE_NAME, FILE_NAME, keys, "own"));
    if (step == 3) ok(ait_keys_revoke(keys, "own"));
    options.keys = step == 2 ? NULL : keys;
    code_loads = 0;
    ok(ait_model_load(FILE_NAME, &options, &model));
    assert_int_equal(ait_model_signature(model).state, states[step]);
    assert_int_equal(code_loads, step == 1);
    assert_string_equal(ait_model_target(model), step == 1 ? "test-cpu" : "portable");
    if (!strstr(ait_model_reason(model), reasons[step])) fail_msg("'%s' is not in: %s", reasons[step], ait_model_reason(model));
    run_linear(model);
    ait_model_release(model);
  }
  ait_keys_destroy(keys);
}

/* A plan on a backend that is not here says what it would take; the portable graph runs. */
static void test_needs(void **state) {
  AIT_UNUSED(state);
  ait_model *model;
  plan_needs = "Python and a snake";
  write_file(FILE_NAME, toy_linear(), 0);
  plan_needs = NULL;
  ok(ait_model_load(FILE_NAME, NULL, &model));
  assert_string_equal(ait_model_target(model), "portable");
  assert_non_null(strstr(ait_model_reason(model), "backend 'elsewhere' is not here: it needs Python and a snake"));
  assert_non_null(strstr(ait_model_manifest(model), "\"needs\": \"Python and a snake\""));
  run_linear(model);
  ait_model_release(model);
}

/* ---- several plans ----------------------------------------------------------------------------------------------------------- */
typedef struct offer {
  uint64_t cpu;
  const char *machine;
  int32_t threads;
} offer;

static void write_plans(const offer *offers, size_t count) {
  ait_region r = toy_linear();
  ait_weight_store *store;
  ait_plan plans[8];
  char name[32];
  assert_true(count <= 8);
  ok(ait_weight_store_create(heap(), &store));
  ok(toy_add_weight(store, "w", w, 2, (int64_t[]){3, 2}));
  for (size_t i = 0; i < count; ++i) {
    snprintf(name, sizeof name, "plan-%zu", i);
    ok(ait_plan_compile(heap(), "reference", "precision=fp32", &r, ait_weight_store_provider(store), UINT64_MAX, name, &plans[i]));
    plans[i].cpu_needed = offers[i].cpu;
    plans[i].threads = offers[i].threads;
    if (!offers[i].machine) continue;
    plans[i].machine = ait_alloc(heap(), strlen(offers[i].machine) + 1, 1);
    strcpy(plans[i].machine, offers[i].machine);
  }
  ait_artifact_content content = {
      .portable = &r, .weights = store, .plans = plans, .plan_count = count, .producer = "by hand", .model_name = "toy"};
  ok(ait_artifact_write(heap(), FILE_NAME, &content));
  for (size_t i = 0; i < count; ++i) ait_plan_deinit(&plans[i]);
  ait_weight_store_release(store);
}

/* What this CPU can do best; among equals one that was tuned on such a CPU, for as many threads. Under a mask, what fits. */
static void test_choice(void **state) {
  AIT_UNUSED(state);
  const uint64_t beyond = AIT_CPU_UNKNOWN_FEATURE; /* no CPU has it */
  const char *here = ait_cpu_model();
  int32_t cores = ait_cpu_count();
  const struct {
    offer offers[4];
    size_t count;
    uint64_t mask;
    const char *target;
  } cases[] = {
      {{{0, NULL, 1}, {AIT_CPU_SSE2, NULL, 1}}, 2, UINT64_MAX, "plan-1"},
      {{{0, NULL, 1}, {AIT_CPU_SSE2, NULL, 1}}, 2, 0, "plan-0"},
      {{{AIT_CPU_SSE2, NULL, 1}, {beyond, here, cores}}, 2, UINT64_MAX, "plan-0"},
      {{{AIT_CPU_SSE2, NULL, 1}, {beyond, here, cores}}, 2, 0, "portable"},
      {{{AIT_CPU_SSE2, "another CPU", cores}, {AIT_CPU_SSE2, here, cores}}, 2, UINT64_MAX, "plan-1"},
      {{{AIT_CPU_SSE2, NULL, cores}, {AIT_CPU_SSE2, here, cores}}, 2, UINT64_MAX, "plan-1"},
      {{{AIT_CPU_SSE2, here, cores + 1}, {AIT_CPU_SSE2, here, 1}}, 2, UINT64_MAX, "plan-1"},
      {{{AIT_CPU_SSE2, here, cores + 6}, {AIT_CPU_SSE2, here, cores}, {0, here, cores}}, 3, UINT64_MAX, "plan-1"},
      {{{AIT_CPU_SSE2, here, cores}, {AIT_CPU_SSE2, here, cores}}, 2, UINT64_MAX, "plan-0"}, /* a tie: the first in the file */
  };
  ait_load_options options;
  ait_load_options_init(&options);
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_model *model;
    ait_plan_info info;
    size_t running = 0;
    write_plans(cases[i].offers, cases[i].count);
    options.cpu_mask = cases[i].mask;
    ok(ait_model_load(FILE_NAME, &options, &model));
    if (strcmp(ait_model_target(model), cases[i].target) != 0) fail_msg("case %zu: %s", i, ait_model_target(model));
    assert_int_equal(ait_model_plan_count(model), cases[i].count);
    for (size_t k = 0; ait_model_plan(model, k, &info); ++k) {
      assert_int_equal(info.runs, strcmp(info.target, cases[i].target) == 0);
      assert_int_equal(*info.why_not == 0, info.runs);
      running += info.runs;
    }
    assert_int_equal(running, strcmp(cases[i].target, "portable") != 0);
    run_linear(model);
    ait_model_release(model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_best_plan),      cmocka_unit_test(test_portable),         cmocka_unit_test(test_earlier_formats),
      cmocka_unit_test(test_earlier_tuning), cmocka_unit_test(test_plan_must_run),    cmocka_unit_test(test_not_there),
      cmocka_unit_test(test_threads),        cmocka_unit_test(test_code_needs_trust), cmocka_unit_test(test_needs),
      cmocka_unit_test(test_choice),         cmocka_unit_test(test_checked_when_read)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
