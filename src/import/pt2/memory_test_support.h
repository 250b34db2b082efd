/* For the importer's tests: an allocator that counts, has a limit, and can fail once on purpose. */
#ifndef AIT_SRC_IMPORT_PT2_TEST_MEMORY_H
#define AIT_SRC_IMPORT_PT2_TEST_MEMORY_H

#include "base/base.h"
#include <stdlib.h>

typedef struct test_memory {
  size_t used, limit;
  size_t count, fail_at; /* allocations so far; the number of the one that fails, 0: none */
} test_memory;

static inline void *test_memory_alloc(void *ctx, size_t size, size_t align) {
  test_memory *m = ctx;
  if (++m->count == m->fail_at || size > m->limit - m->used) return NULL;
  void *p = NULL;
  if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size) != 0) return NULL;
  m->used += size;
  return p;
}

static inline void test_memory_free(void *ctx, void *p, size_t size) {
  ((test_memory *)ctx)->used -= size;
  free(p);
}

static inline ait_allocator test_memory_allocator(test_memory *m) { return (ait_allocator){m, test_memory_alloc, test_memory_free}; }

#endif
