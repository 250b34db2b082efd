/* The readers of .npy and .npz, over any bytes. What was read is written again and must read back the same. */
#include "tensor/tensor.h"

#include <stdlib.h>

static void check(ait_status status) {
  if (status) abort();
}

static void check_npy_round_trip(const ait_tensor *t) {
  ait_allocator a = ait_allocator_default();
  ait_text text;
  ait_text_init(&text, a);
  check(ait_npy_format(a, t, &text));
  ait_tensor back;
  check(ait_npy_parse(a, text.data, text.length, &back));
  ait_compare_rule exact = {.exact = true};
  ait_compare_result result;
  check(ait_compare(&back, t, &exact, &result));
  if (!result.pass || back.dtype != t->dtype) abort();
  ait_tensor_release(&back);
  ait_text_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ait_tensor t;
  ait_status status = ait_npy_parse(ait_allocator_default(), data, size, &t);
  if (!status) {
    check_npy_round_trip(&t);
    ait_tensor_release(&t);
  }
  ait_status_free(status);
  ait_tensor_file f;
  ait_tensor_file_init(&f, ait_allocator_default());
  status = ait_npz_parse(data, size, &f);
  ait_status_free(status);
  ait_tensor_file_deinit(&f);
  return 0;
}
