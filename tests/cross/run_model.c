/* Runs a sealed model on this machine and compares: run_model MODEL.ait INPUTS.npz EXPECTED.npz RTOL ATOL. Inputs and outputs by name, else by
 * position; inputs that EXPECTED's rows do not cover are cut to them. Prints the plan that runs and the largest error; exit code 1 when an output
 * is outside the tolerance. Public headers of libait-rt only. */
#include <ait/ait.h>
#include <ait/data.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };

static int fail(ait_status status) {
  fprintf(stderr, "run_model: %s\n", ait_status_message(status));
  int code = ait_code_exit(ait_status_code(status));
  ait_status_free(status);
  return code;
}

static const ait_tensor *pick(const ait_data *data, const char *name, size_t index) {
  const ait_tensor *t = name ? ait_data_find(data, name) : NULL;
  return t ? t : index < ait_data_count(data) ? ait_data_tensor(data, index) : NULL;
}

static ait_status fill_inputs(const ait_model *model, const ait_data *data, ait_value *inputs) {
  for (size_t i = 0; i < ait_model_input_count(model); ++i) {
    ait_port port;
    ait_status status = ait_model_input(model, i, &port);
    if (status) return status;
    const ait_tensor *t = pick(data, port.name, i);
    if (!t) return ait_error(AIT_CODE_INVALID_ARGUMENT, "no array for input '%s'", port.name);
    inputs[i] = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = *t};
  }
  return AIT_OK;
}

static ait_status compare(const ait_model *model, const ait_data *expected, const ait_value *outputs, const ait_compare_rule *rule,
                          bool *out_pass) {
  for (size_t k = 0; k < ait_model_output_count(model); ++k) {
    ait_port port;
    ait_compare_result r;
    ait_status status = ait_model_output(model, k, &port);
    const ait_tensor *want = status ? NULL : pick(expected, port.name, k);
    if (!status && !want) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "nothing is expected of output '%s'", port.name);
    if (!status) status = ait_compare(&outputs[k].as.tensor, want, rule, &r);
    if (status) return status;
    printf("  %s: %lld elements, largest difference %.3g\n", port.name, (long long)r.count, r.max_abs);
    *out_pass &= r.pass;
  }
  return AIT_OK;
}

int main(int argc, char **argv) {
  if (argc != 6) return fprintf(stderr, "usage: run_model MODEL.ait INPUTS.npz EXPECTED.npz RTOL ATOL\n"), 2;
  ait_allocator a = ait_allocator_default();
  ait_model *model = NULL;
  ait_session *session = NULL;
  ait_data *data = NULL, *expected = NULL;
  ait_value inputs[MOST] = {0}, outputs[MOST] = {0};
  ait_compare_rule rule = {.rtol = atof(argv[4]), .atol = atof(argv[5])};
  bool pass = true;
  ait_status status = ait_model_load(argv[1], NULL, &model);
  if (!status) status = ait_data_load(a, argv[2], &data);
  if (!status) status = ait_data_load(a, argv[3], &expected);
  if (!status && (ait_model_input_count(model) > MOST || ait_model_output_count(model) > MOST))
    status = ait_error(AIT_CODE_LIMIT, "more than %d inputs or outputs", MOST);
  if (!status) status = ait_session_create(model, NULL, &session);
  if (!status) status = fill_inputs(model, data, inputs);
  for (int round = 0; !status && round < 2; ++round) {
    status = ait_session_run(session, inputs, ait_model_input_count(model), outputs, ait_model_output_count(model));
    if (!status && round == 0) printf("%s on %s: %s\n", argv[1], ait_model_target(model), ait_session_backend(session));
    if (!status) status = compare(model, expected, outputs, &rule, &pass);
  }
  if (!status && *ait_model_reason(model)) printf("  %s\n", ait_model_reason(model));
  ait_session_destroy(session);
  ait_data_destroy(expected);
  ait_data_destroy(data);
  ait_model_release(model);
  return status ? fail(status) : pass ? 0 : 1;
}
