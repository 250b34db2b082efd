#include <ait/ait.h>
#include <stdio.h>

int main(int argc, char **argv) {
  static float pixels[64]; /* one image of 8 by 8, used where it lies */
  ait_value image = ait_value_tensor(ait_tensor_borrow(pixels, AIT_F32, 4, (const int64_t[]){1, 1, 8, 8})), scores = {0};
  ait_model *model = NULL;
  ait_session *session = NULL;
  ait_status status = ait_model_load(argc > 1 ? argv[1] : "digits.ait", NULL, &model);
  if (!status) status = ait_session_create(model, NULL, &session);
  if (!status) status = ait_session_run(session, &image, 1, &scores, 1); /* scores: a view of the session's memory */
  for (int i = 0; !status && i < 10; ++i) printf("%d: %g\n", i, (double)((const float *)scores.as.tensor.data)[i]);
  if (status) fprintf(stderr, "%s\n", ait_status_message(status));
  int code = ait_code_exit(ait_status_code(status));
  ait_status_free(status);
  ait_session_destroy(session);
  ait_model_release(model);
  return code;
}
