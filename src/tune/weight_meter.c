#include "tune/weight_meter.h"
#include "tensor/tensor.h"
#include <pthread.h>

struct ait_weight_meter {
  ait_weights inner;
  pthread_mutex_t lock;
  ait_map seen;
  uint64_t bytes;
};

static ait_status get(void *ctx, const char *name, ait_tensor *out) {
  ait_weight_meter *m = ctx;
  AIT_TRY(m->inner.get(m->inner.ctx, name, out));
  pthread_mutex_lock(&m->lock);
  bool known = ait_map_get(&m->seen, name, NULL);
  if (!known) m->bytes += ait_tensor_bytes(out);
  ait_status status = known ? AIT_OK : ait_map_put(&m->seen, name, m);
  pthread_mutex_unlock(&m->lock);
  return status;
}

ait_status ait_weight_meter_create(ait_weights inner, ait_weight_meter **out) {
  ait_weight_meter *m = ait_alloc_zero(ait_allocator_default(), sizeof *m, _Alignof(ait_weight_meter));
  *out = m;
  if (!m) return AIT_OOM();
  m->inner = inner;
  pthread_mutex_init(&m->lock, NULL);
  ait_map_init(&m->seen, ait_allocator_default());
  return AIT_OK;
}

void ait_weight_meter_destroy(ait_weight_meter *m) {
  if (!m) return;
  ait_map_deinit(&m->seen);
  pthread_mutex_destroy(&m->lock);
  ait_free(ait_allocator_default(), m, sizeof *m);
}

ait_weights ait_weight_meter_provider(ait_weight_meter *m) { return m->inner.get ? (ait_weights){m, get} : m->inner; }

uint64_t ait_weight_meter_bytes(ait_weight_meter *m) {
  if (!m) return 0;
  pthread_mutex_lock(&m->lock);
  uint64_t bytes = m->bytes;
  pthread_mutex_unlock(&m->lock);
  return bytes;
}
