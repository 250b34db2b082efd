/* Loads a sealed model, runs it once on zeros and prints the first number of its first result. Usage: run MODEL.ait */
#include <ait/ait.h>
#include <stdio.h>

static float zeros[1 << 20];

int main(int argc, char **argv) {
  ait_model *model = NULL;
  ait_session *session = NULL;
  ait_value result = {0};
  const int64_t shape[] = {1, 1, 8, 8};
  ait_value image = ait_value_tensor(ait_tensor_borrow(zeros, AIT_F32, 4, shape));
  ait_status status = ait_model_load(argc > 1 ? argv[1] : "model.ait", NULL, &model);
  if (!status) status = ait_session_create(model, NULL, &session);
  if (!status) status = ait_session_run(session, &image, 1, &result, 1);
  if (status) fprintf(stderr, "%s\n", ait_status_message(status));
  else printf("%g\n", ((const float *)result.as.tensor.data)[0]);
  ait_session_destroy(session);
  ait_model_release(model);
  ait_status_free(status);
  return status != NULL;
}
