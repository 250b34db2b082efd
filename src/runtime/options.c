/* "key=value,key=value" as knobs are written in plans, manifests and on the command line. */
#include "runtime/runtime.h"

static size_t count_items(const char *text) {
  size_t n = 1;
  for (; *text; ++text) n += *text == ',';
  return n;
}

ait_status ait_options_parse(ait_arena *arena, const char *text, ait_option **out, uint32_t *out_count) {
  *out = NULL;
  *out_count = 0;
  if (!text || !*text) return AIT_OK;
  size_t items = count_items(text);
  ait_option *options = AIT_ARENA_ARRAY(arena, ait_option, items);
  if (!options) return AIT_OOM();
  uint32_t count = 0;
  for (const char *p = text;; ++p) {
    size_t length = strcspn(p, ",");
    const char *equals = memchr(p, '=', length);
    if (!equals || equals == p) {
      return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%.*s' is not an option", (int)length, p), "write key=value,key=value");
    }
    options[count].key = ait_arena_strdup(arena, p, (size_t)(equals - p));
    options[count].value = ait_arena_strdup(arena, equals + 1, length - (size_t)(equals + 1 - p));
    if (!options[count].key || !options[count].value) return AIT_OOM();
    ++count;
    p += length;
    if (!*p) break;
  }
  *out = options;
  *out_count = count;
  return AIT_OK;
}
