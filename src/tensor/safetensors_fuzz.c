/* Any bytes as a safetensors file. */
#include "tensor/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ait_tensor_file file;
  ait_tensor_file_init(&file, ait_allocator_default());
  ait_status status = ait_safetensors_parse(data, size, &file);
  size_t bytes = 0;
  for (size_t i = 0; i < file.count; ++i) bytes += ait_tensor_bytes(&file.items[i].tensor);
  if (bytes > size) __builtin_trap();
  ait_status_ignore(status);
  ait_tensor_file_deinit(&file);
  return 0;
}
