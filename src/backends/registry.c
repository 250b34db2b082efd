/* The table of built-in backends, made from backends.inc. */
#include "backends/registry.h"

#include "base/base.h"

#define AIT_BACKEND(name) extern const ait_backend ait_backend_##name;
#include "backends/backends.inc"
#undef AIT_BACKEND

static const ait_backend *const backends[] = {
#define AIT_BACKEND(name) &ait_backend_##name,
#include "backends/backends.inc"
#undef AIT_BACKEND
};

size_t ait_backend_count(void) { return AIT_COUNT(backends); }

const ait_backend *ait_backend_at(size_t index) { return index < AIT_COUNT(backends) ? backends[index] : NULL; }

const ait_backend *ait_backend_find(const char *name) {
  for (size_t i = 0; i < AIT_COUNT(backends); ++i) {
    if (strcmp(backends[i]->name, name) == 0) return backends[i];
  }
  return NULL;
}
