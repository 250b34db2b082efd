/* Any bytes as JSON. */
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ait_arena arena;
  const ait_json *json;
  ait_arena_init(&arena, ait_allocator_default());
  arena.limit_bytes = 32 << 20;
  ait_status status = ait_json_parse(&arena, (const char *)data, size, &json);
  if (!status && json->kind == AIT_JSON_OBJECT && ait_json_get(json, "config") == json) __builtin_trap();
  ait_status_ignore(status);
  ait_arena_deinit(&arena);
  return 0;
}
