/* The smallest program against the installed library. */
#include <ait/base.h>
#include <ait/tensor.h>

#include <stdio.h>

int main(void) {
  ait_tensor t;
  ait_status status = ait_tensor_create(ait_allocator_default(), AIT_F32, 1, (int64_t[]){3}, &t);
  if (status != AIT_OK) {
    fprintf(stderr, "%s\n", ait_status_message(status));
    ait_status_free(status);
    return 1;
  }
  ait_tensor_release(&t);
  puts(ait_version());
  return 0;
}
