#include "tune/nudge.h"
#include <math.h>

void ait_nudge_floats(float *data, size_t count) {
  uint32_t state = 2463534242u; /* xorshift: a pattern without relation to any stride */
  for (size_t i = 0; i < count; ++i) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    if (data[i] != 0 && isfinite(data[i])) data[i] = nextafterf(data[i], state & 0x10000u ? INFINITY : -INFINITY);
  }
}

static bool holds_floats_only(const ait_weight_store *s, uint32_t storage) {
  bool any = false;
  for (size_t i = 0; i < ait_weight_store_count(s); ++i) {
    const ait_weight *w = ait_weight_store_at(s, i);
    if (w->storage != storage) continue;
    if (w->dtype != AIT_F32) return false;
    any = true;
  }
  return any;
}

static ait_status add_copy(const ait_weight_store *from, uint32_t index, ait_weight_store *to) {
  ait_storage *source = ait_weight_store_storage(from, index), *copy;
  size_t bytes = ait_storage_bytes(source);
  AIT_TRY(ait_storage_create(ait_allocator_default(), bytes, &copy));
  memcpy(ait_storage_data(copy), ait_storage_data(source), bytes);
  if (holds_floats_only(from, index)) ait_nudge_floats(ait_storage_data(copy), bytes / sizeof(float));
  uint32_t at;
  return ait_weight_store_add_storage(to, copy, &at);
}

ait_status ait_nudge_weights(const ait_weight_store *from, ait_weight_store **out) {
  ait_weight_store *store;
  AIT_TRY(ait_weight_store_create(ait_allocator_default(), &store));
  ait_status status = AIT_OK;
  for (size_t i = 0; status == AIT_OK && i < ait_weight_store_storage_count(from); ++i) status = add_copy(from, (uint32_t)i, store);
  for (size_t i = 0; status == AIT_OK && i < ait_weight_store_count(from); ++i)
    status = ait_weight_store_add(store, ait_weight_store_at(from, i));
  if (status != AIT_OK) ait_weight_store_release(store);
  else *out = store;
  return status;
}
