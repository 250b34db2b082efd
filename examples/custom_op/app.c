/* An application that knows mylib::foo: registers it, then runs a model that calls it. usage: app MODEL[.pt2|.ait] [BACKEND] */
#include <ait/ait.h>
#include <stdio.h>

extern const ait_custom_op mylib_foo; /* foo.c */

/* begin main */
int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: %s MODEL [BACKEND]\n", argv[0]), 2;
  static float data[3] = {1, 2, 4};
  ait_value x = ait_value_tensor(ait_tensor_borrow(data, AIT_F32, 1, (const int64_t[]){3})), y = {0};
  ait_model *model = NULL;
  ait_session *session = NULL;
  ait_load_options options;
  ait_load_options_init(&options);
  options.backend = argc > 2 ? argv[2] : NULL;
  ait_status status = ait_custom_op_add(&mylib_foo); /* once in a process, before the model is opened */
  if (!status) status = ait_model_import(argv[1], &options, &model);
  if (!status) status = ait_session_create(model, NULL, &session);
  if (!status) status = ait_session_run(session, &x, 1, &y, 1);
  for (int i = 0; !status && i < 3; ++i) printf("%g\n", (double)((const float *)y.as.tensor.data)[i]);
  if (status) fprintf(stderr, "%s\n", ait_status_message(status));
  int code = ait_code_exit(ait_status_code(status));
  ait_status_free(status);
  ait_session_destroy(session);
  ait_model_release(model);
  return code;
}
/* end main */
