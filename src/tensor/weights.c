/* Weights by name, as views of shared storages. */
#include "tensor/tensor.h"

#include <stdatomic.h>

struct ait_weight_store {
  ait_allocator allocator;
  atomic_size_t references;
  ait_arena arena; /* the ait_weight structures: their addresses stay */
  ait_map by_name; /* name -> ait_weight, in the order of adding */
  ait_storage **storages;
  size_t storage_count, storage_capacity;
};

ait_status ait_weight_store_create(ait_allocator a, ait_weight_store **out) {
  ait_weight_store *s = ait_alloc_zero(a, sizeof *s, _Alignof(ait_weight_store));
  if (!s) return AIT_OOM();
  s->allocator = a;
  atomic_init(&s->references, 1);
  ait_arena_init(&s->arena, a);
  ait_map_init(&s->by_name, a);
  *out = s;
  return AIT_OK;
}

ait_weight_store *ait_weight_store_retain(ait_weight_store *s) {
  if (s) atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
  return s;
}

void ait_weight_store_release(ait_weight_store *s) {
  if (!s || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1) return;
  for (size_t i = 0; i < s->storage_count; i++) ait_storage_release(s->storages[i]);
  ait_free(s->allocator, s->storages, s->storage_capacity * sizeof *s->storages);
  ait_map_deinit(&s->by_name);
  ait_arena_deinit(&s->arena);
  ait_free(s->allocator, s, sizeof *s);
}

ait_status ait_weight_store_add_storage(ait_weight_store *s, ait_storage *storage, uint32_t *out_index) {
  if (s->storage_count >= UINT32_MAX) return ait_error(AIT_CODE_LIMIT, "too many weight storages");
  void *storages = s->storages;
  ait_status status = ait_grow(s->allocator, &storages, &s->storage_capacity, s->storage_count + 1, sizeof *s->storages);
  s->storages = storages;
  AIT_TRY(status);
  *out_index = (uint32_t)s->storage_count;
  s->storages[s->storage_count++] = storage;
  return AIT_OK;
}

static ait_status check_weight(const ait_weight_store *s, const ait_weight *w) {
  size_t element = ait_dtype_size(w->dtype);
  if (element == 0) return ait_error(AIT_CODE_INVALID_MODEL, "weight '%s' has an unknown dtype (%d)", w->name, (int)w->dtype);
  if (w->rank < 0 || w->rank > AIT_MAX_RANK) {
    return ait_error(AIT_CODE_INVALID_MODEL, "weight '%s' has %d dimensions (at most %d)", w->name, w->rank, AIT_MAX_RANK);
  }
  if (w->storage >= s->storage_count) return ait_error(AIT_CODE_INVALID_MODEL, "weight '%s' names a storage that does not exist", w->name);
  size_t bytes = ait_storage_bytes(s->storages[w->storage]);
  if (!ait_strides_fit(w->rank, w->shape, w->strides, w->offset, (int64_t)(bytes / element))) {
    return ait_error(AIT_CODE_INVALID_MODEL, "weight '%s' reaches outside its storage of %zu bytes", w->name, bytes);
  }
  if (ait_map_get(&s->by_name, w->name, NULL)) return ait_error(AIT_CODE_INVALID_MODEL, "two weights are named '%s'", w->name);
  return AIT_OK;
}

ait_status ait_weight_store_add(ait_weight_store *s, const ait_weight *weight) {
  AIT_TRY(check_weight(s, weight));
  ait_weight *copy = AIT_ARENA_NEW(&s->arena, ait_weight);
  if (!copy) return AIT_OOM();
  *copy = *weight;
  AIT_TRY(ait_map_put(&s->by_name, weight->name, copy));
  copy->name = s->by_name.entries[s->by_name.count - 1].key;
  return AIT_OK;
}

size_t ait_weight_store_count(const ait_weight_store *s) { return s->by_name.count; }
const ait_weight *ait_weight_store_at(const ait_weight_store *s, size_t index) { return s->by_name.entries[index].value; }

const ait_weight *ait_weight_store_find(const ait_weight_store *s, const char *name) {
  void *found = NULL;
  return ait_map_get(&s->by_name, name, &found) ? found : NULL;
}

size_t ait_weight_store_storage_count(const ait_weight_store *s) { return s->storage_count; }
ait_storage *ait_weight_store_storage(const ait_weight_store *s, uint32_t index) {
  return index < s->storage_count ? s->storages[index] : NULL;
}

static ait_status provider_get(void *ctx, const char *name, ait_tensor *out) {
  const ait_weight_store *s = ctx;
  const ait_weight *w = ait_weight_store_find(s, name);
  if (!w) return ait_error(AIT_CODE_NOT_FOUND, "there is no weight '%s'", name);
  ait_tensor t = {.dtype = w->dtype, .rank = w->rank};
  memcpy(t.shape, w->shape, sizeof t.shape);
  memcpy(t.strides, w->strides, sizeof t.strides);
  char *base = ait_storage_data(s->storages[w->storage]);
  t.data = ait_tensor_count(&t) ? base + (size_t)w->offset * ait_dtype_size(w->dtype) : base;
  *out = t;
  return AIT_OK;
}

ait_weights ait_weight_store_provider(const ait_weight_store *s) { return (ait_weights){(void *)s, provider_get}; }
