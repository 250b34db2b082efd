/* Operators of com.microsoft against ONNX Runtime's answers: tests/data/onnx_ms, made by make.py there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ait/ait.h>
#include <ait/data.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PORTS = 16 };

static void ok(ait_status status, const char *what) {
  if (status) fail_msg("%s: %s", what, ait_status_message(status));
}

static const ait_tensor *find(const ait_data *data, const char *name, const char *what) {
  for (size_t i = 0; i < ait_data_count(data); ++i)
    if (!strcmp(ait_data_name(data, i), name)) return ait_data_tensor(data, i);
  fail_msg("%s: no array '%s'", what, name);
  return NULL;
}

static void compare_outputs(const char *name, const ait_model *model, const ait_value *got, const ait_data *data, double tolerance) {
  for (size_t i = 0; i < ait_model_output_count(model); ++i) {
    ait_port port;
    ait_compare_result result;
    ok(ait_model_output(model, i, &port), name);
    const ait_tensor *want = find(data, port.name, name);
    ait_compare_rule rule = {.rtol = tolerance < 1 ? tolerance : 0, .atol = tolerance};
    assert_int_equal(got[i].kind, AIT_VALUE_TENSOR);
    assert_int_equal(got[i].as.tensor.dtype, want->dtype);
    ok(ait_compare(&got[i].as.tensor, want, &rule, &result), name);
    if (!result.pass)
      fail_msg("%s: %s differs by %g at %lld (%g, not %g)", name, port.name, result.max_abs, (long long)result.worst_index,
               result.worst_got, result.worst_want);
  }
}

static void run_case(const char *name, double tolerance, const char *backend) {
  char path[512];
  ait_model *model;
  ait_session *session;
  ait_data *data;
  ait_value inputs[MOST_PORTS] = {0}, outputs[MOST_PORTS] = {0};
  ait_load_options options;
  ait_load_options_init(&options);
  options.backend = backend;
  snprintf(path, sizeof path, "%s/onnx_ms/%s.npz", AIT_TEST_DATA, name);
  ok(ait_data_load(ait_allocator_default(), path, &data), name);
  snprintf(path, sizeof path, "%s/onnx_ms/%s.onnx", AIT_TEST_DATA, name);
  ok(ait_model_import(path, &options, &model), name);
  ok(ait_session_create(model, NULL, &session), name);
  size_t count = ait_model_input_count(model), results = ait_model_output_count(model);
  assert_true(count <= MOST_PORTS && results <= MOST_PORTS);
  for (size_t i = 0; i < count; ++i) {
    ait_port port;
    ok(ait_model_input(model, i, &port), name);
    inputs[i] = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = *find(data, port.name, name)};
    inputs[i].as.tensor.storage = NULL;
  }
  ok(ait_session_run(session, inputs, count, outputs, results), name);
  compare_outputs(name, model, outputs, data, tolerance);
  ait_session_destroy(session);
  ait_model_release(model);
  ait_data_destroy(data);
}

static void run_all(const char *backend) {
  char path[512], line[128];
  snprintf(path, sizeof path, "%s/onnx_ms/cases.txt", AIT_TEST_DATA);
  FILE *list = fopen(path, "r");
  int count = 0;
  assert_non_null(list);
  while (fgets(line, sizeof line, list)) {
    char *space = strchr(line, ' ');
    assert_non_null(space);
    *space = 0;
    run_case(line, strtod(space + 1, NULL), backend);
    ++count;
  }
  fclose(list);
  assert_true(count >= 80);
}

static void on_the_reference(void **state) {
  (void)state;
  run_all("reference");
}

static void on_native(void **state) {
  (void)state;
  run_all("native");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_the_reference), cmocka_unit_test(on_native)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
