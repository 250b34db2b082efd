#include "llm/text/vocab.h"

ait_status ait_vocab_init(ait_vocab *v, ait_arena *arena, size_t capacity) {
  *v = (ait_vocab){.arena = arena};
  if (capacity > INT32_MAX / 4) return ait_error(AIT_CODE_LIMIT, "vocabulary of %zu tokens is too large", capacity);
  size_t slots = 16;
  while (slots < capacity * 2) slots *= 2;
  v->entries = AIT_ARENA_ARRAY(arena, ait_vocab_entry, capacity + 1);
  v->slots = AIT_ARENA_ARRAY(arena, uint32_t, slots);
  if (!v->entries || !v->slots) return AIT_OOM();
  memset(v->slots, 0, slots * sizeof *v->slots);
  v->capacity = (uint32_t)capacity;
  v->slot_mask = (uint32_t)slots - 1;
  return AIT_OK;
}

static uint32_t hash_of(const char *text, size_t size) { return (uint32_t)ait_hash(text, size, 7); }

static uint32_t slot_of(const ait_vocab *v, const char *text, size_t size, uint32_t hash) {
  uint32_t slot = hash & v->slot_mask;
  while (v->slots[slot]) {
    const ait_vocab_entry *e = &v->entries[v->slots[slot] - 1];
    if (e->hash == hash && e->size == size && memcmp(e->text, text, size) == 0) break;
    slot = (slot + 1) & v->slot_mask;
  }
  return slot;
}

ait_status ait_vocab_add(ait_vocab *v, const char *text, size_t size, int64_t id) {
  if (id < 0 || id >= 1 << 28)
    return ait_error(AIT_CODE_LIMIT, "id %lld of '%.*s' is out of range", (long long)id, (int)(size > 100 ? 100 : size), text);
  uint32_t hash = hash_of(text, size), slot = slot_of(v, text, size, hash);
  if (v->slots[slot]) {
    v->entries[v->slots[slot] - 1].id = (int32_t)id;
  } else {
    if (v->count == v->capacity) return ait_error(AIT_CODE_INTERNAL, "vocabulary is full");
    v->entries[v->count++] = (ait_vocab_entry){text, (uint32_t)size, hash, (int32_t)id};
    v->slots[slot] = v->count;
  }
  if (id >= v->id_limit) v->id_limit = (int32_t)id + 1;
  if (size > v->longest) v->longest = (uint32_t)size;
  return AIT_OK;
}

ait_status ait_vocab_seal(ait_vocab *v) {
  if ((int64_t)v->id_limit > 64 * (int64_t)v->count + 65536)
    return ait_error(AIT_CODE_LIMIT, "vocabulary of %u tokens has id %d", v->count, v->id_limit - 1);
  v->by_id = AIT_ARENA_ARRAY(v->arena, int32_t, (size_t)v->id_limit + 1);
  if (!v->by_id) return AIT_OOM();
  memset(v->by_id, 0xFF, (size_t)v->id_limit * sizeof *v->by_id);
  for (uint32_t i = 0; i < v->count; ++i) v->by_id[v->entries[i].id] = (int32_t)i;
  return AIT_OK;
}

int32_t ait_vocab_find(const ait_vocab *v, const char *text, size_t size) {
  if (size > v->longest || !v->count) return -1;
  uint32_t slot = slot_of(v, text, size, hash_of(text, size));
  return v->slots[slot] ? v->entries[v->slots[slot] - 1].id : -1;
}

const ait_vocab_entry *ait_vocab_at(const ait_vocab *v, int32_t id) {
  if (id < 0 || id >= v->id_limit || v->by_id[id] < 0) return NULL;
  return &v->entries[v->by_id[id]];
}
