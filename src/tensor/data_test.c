/* The public interface to tensor files, as an application uses it. */
#include <ait/ait.h>
#include <ait/data.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/test_support.h"

#include <stdio.h>
#include <unistd.h>

static char path[64];

static ait_status save_and_load(ait_allocator a, void *ctx) {
  (void)ctx;
  float values[] = {1, 2, 3};
  ait_tensor t = ait_tensor_borrow(values, AIT_F32, 1, (int64_t[]){3});
  ait_data *out = NULL, *in = NULL;
  ait_status status = ait_data_create(a, &out);
  if (!status) status = ait_data_add(out, "x", &t);
  values[0] = 9; /* what was added is a copy */
  if (!status) status = ait_data_save(out, path);
  if (!status) status = ait_data_load(a, path, &in);
  if (!status) {
    assert_int_equal(ait_data_count(in), 1);
    assert_string_equal(ait_data_name(in, 0), "x");
    assert_null(ait_data_name(in, 1));
    assert_null(ait_data_find(in, "y"));
    assert_ptr_equal(ait_data_find(in, "x"), ait_data_tensor(in, 0));
    assert_true(((const float *)ait_data_find(in, "x")->data)[0] == 1);
  }
  ait_data_destroy(in);
  ait_data_destroy(out);
  return status;
}

static void data_round_trip(void **state) {
  (void)state;
  assert_null(save_and_load(ait_allocator_default(), NULL));
}

static void data_survives_failures(void **state) {
  (void)state;
  test_every_allocation_fails(save_and_load, NULL);
}

static void data_refuses_other_files(void **state) {
  (void)state;
  ait_data *data;
  ait_status s = ait_data_load(ait_allocator_default(), "x.txt", &data);
  assert_int_equal(ait_status_code(s), AIT_CODE_INVALID_ARGUMENT);
  assert_non_null(ait_status_hint(s));
  ait_status_free(s);
  s = ait_data_load(ait_allocator_default(), "/nowhere/x.npz", &data);
  assert_int_equal(ait_status_code(s), AIT_CODE_NOT_FOUND);
  assert_null(data);
  ait_status_free(s);
}

static int make_path(void **state) {
  (void)state;
  snprintf(path, sizeof path, "/tmp/ait-data-%ld.npz", (long)getpid());
  return 0;
}
static int remove_path(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(data_round_trip),
      cmocka_unit_test(data_survives_failures),
      cmocka_unit_test(data_refuses_other_files),
  };
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
