/* The table of backends: the built-in ones, made from backends.inc, and those that were added. */
#include "backends/registry.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

#define AIT_BACKEND(name) extern const ait_backend ait_backend_##name;
#include "backends/backends.inc"
#undef AIT_BACKEND

static const ait_backend *const built_in[] = {
#define AIT_BACKEND(name) &ait_backend_##name,
#include "backends/backends.inc"
#undef AIT_BACKEND
};

/* Written under the lock, before the count that readers go by. */
enum { ADDED_LIMIT = 32 };
static const ait_backend *added[ADDED_LIMIT];
static atomic_size_t added_count;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

size_t ait_backend_count(void) { return AIT_COUNT(built_in) + atomic_load(&added_count); }

const ait_backend *ait_backend_at(size_t index) {
  if (index < AIT_COUNT(built_in)) return built_in[index];
  index -= AIT_COUNT(built_in);
  return index < atomic_load(&added_count) ? added[index] : NULL;
}

const ait_backend *ait_backend_find(const char *name) {
  for (size_t i = 0, n = ait_backend_count(); i < n; ++i) {
    if (strcmp(ait_backend_at(i)->name, name) == 0) return ait_backend_at(i);
  }
  return NULL;
}

static ait_status add_locked(const ait_backend *backend) {
  size_t n = atomic_load(&added_count);
  if (ait_backend_find(backend->name)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "there is a backend '%s' already", backend->name);
  if (n == ADDED_LIMIT) return ait_error(AIT_CODE_LIMIT, "more than %d backends were added", ADDED_LIMIT);
  added[n] = backend;
  atomic_store(&added_count, n + 1);
  return AIT_OK;
}

ait_status ait_backend_add(const ait_backend *backend) {
  if (backend->abi_version != AIT_BACKEND_ABI || backend->struct_size < offsetof(ait_backend, needs)) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "a backend for interface %u, this is interface %u", backend->abi_version, AIT_BACKEND_ABI);
  }
  pthread_mutex_lock(&adding);
  ait_status status = add_locked(backend);
  pthread_mutex_unlock(&adding);
  return status;
}
