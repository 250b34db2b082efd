/* Any bytes as a pickle. */
#include "import/pt2/pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ait_arena arena;
  const ait_pickle *value;
  char text[64];
  ait_arena_init(&arena, ait_allocator_default());
  arena.limit_bytes = 32 << 20;
  ait_status status = ait_pickle_parse(&arena, data, size, &value);
  if (!status) {
    ait_pickle_describe(value, text, sizeof text);
    ait_pickle_get(value, "weight");
  }
  ait_status_ignore(status);
  ait_arena_deinit(&arena);
  return 0;
}
