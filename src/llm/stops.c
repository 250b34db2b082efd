#include "llm/stops.h"

struct lm_stops {
  ait_allocator allocator;
  size_t count, bytes; /* of this allocation */
  ait_text held;       /* not told yet; what was told last time stands in front until the next call */
  size_t told;
  struct {
    const char *text;
    size_t size;
  } items[];
};

ait_status lm_stops_create(ait_allocator a, const char *const *stops, size_t count, lm_stops **out) {
  size_t bytes = sizeof(lm_stops) + count * sizeof((*out)->items[0]);
  for (size_t i = 0; i < count; ++i) bytes += strlen(stops[i]) + 1;
  lm_stops *s = ait_alloc_zero(a, bytes, 16);
  if (!s) return AIT_OOM();
  s->allocator = a;
  s->bytes = bytes;
  ait_text_init(&s->held, a);
  char *at = (char *)&s->items[count];
  for (size_t i = 0; i < count; ++i) {
    size_t size = strlen(stops[i]);
    if (size == 0) continue;
    memcpy(at, stops[i], size + 1);
    s->items[s->count].text = at;
    s->items[s->count++].size = size;
    at += size + 1;
  }
  *out = s;
  return AIT_OK;
}

void lm_stops_destroy(lm_stops *s) {
  if (!s) return;
  ait_text_deinit(&s->held);
  ait_free(s->allocator, s, s->bytes);
}

static void forget_told(lm_stops *s) {
  if (s->told == 0) return;
  s->held.length -= s->told;
  memmove(s->held.data, s->held.data + s->told, s->held.length);
  s->told = 0;
}

/* Where the stop string begins that is complete first (of those, the longest); else where one could begin when more text comes. */
static size_t first_stop(const lm_stops *s, bool *whole) {
  size_t end = SIZE_MAX, begin = 0, part = s->held.length;
  for (size_t at = 0; at < s->held.length; ++at)
    for (size_t i = 0; i < s->count; ++i) {
      size_t left = s->held.length - at, size = s->items[i].size, n = size < left ? size : left;
      if (memcmp(s->held.data + at, s->items[i].text, n)) continue;
      if (n < size && at < part) part = at;
      if (n == size && at + size < end) end = at + size, begin = at;
    }
  *whole = end != SIZE_MAX;
  return *whole ? begin : part;
}

ait_status lm_stops_push(lm_stops *s, const char *text, size_t size, const char **out, size_t *out_size, bool *out_hit) {
  forget_told(s);
  ait_text_append(&s->held, text, size);
  if (s->held.failed) return AIT_OOM();
  s->told = *out_size = first_stop(s, out_hit);
  *out = s->held.data ? s->held.data : "";
  return AIT_OK;
}

void lm_stops_finish(lm_stops *s, const char **out, size_t *out_size) {
  forget_told(s);
  *out = s->held.data ? s->held.data : "";
  s->told = *out_size = s->held.length;
}
