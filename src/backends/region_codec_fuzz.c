/* Any bytes are a region or an error; what decodes, encodes again to something that decodes to the same. */
#include "backends/region_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode_again(const ait_region *region) {
  ait_text first, second;
  ait_text_init(&first, ait_allocator_default());
  ait_text_init(&second, ait_allocator_default());
  ait_region *copy = NULL;
  ait_status status = ait_region_encode(region, &first);
  if (!status) status = ait_region_decode(ait_allocator_default(), first.data, first.length, &copy);
  if (!status) status = ait_region_encode(copy, &second);
  if (status || first.length != second.length || memcmp(first.data, second.data, first.length) != 0) __builtin_trap();
  ait_region_destroy(copy);
  ait_text_deinit(&first);
  ait_text_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ait_region *region = NULL;
  ait_status status = ait_region_decode(ait_allocator_default(), data, size, &region);
  if (!status) encode_again(region);
  ait_region_destroy(region);
  ait_status_free(status);
  return 0;
}
