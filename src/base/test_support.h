/* For tests: an allocator that counts, checks what is given back, and fails at the n-th call.
 *
 * Include after <cmocka.h>. A test that runs code under every possible failed allocation:
 *
 *   static ait_status build(ait_allocator a, void *ctx) { … create, use, destroy … }
 *   test_every_allocation_fails(build, NULL);
 */
#ifndef AIT_SRC_BASE_TEST_SUPPORT_H
#define AIT_SRC_BASE_TEST_SUPPORT_H

#include "base/base.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef struct test_allocator {
  atomic_long calls; /* so far */
  atomic_long live;  /* allocations not yet freed */
  long fail_at;      /* this call (0 is the first) and all later ones fail; -1: none */
  bool fail_once;    /* only that one call fails */
} test_allocator;

typedef struct test_block {
  void *raw;
  size_t size;
} test_block;

static inline void *test_allocator_alloc(void *ctx, size_t size, size_t align) {
  test_allocator *t = ctx;
  long call = atomic_fetch_add(&t->calls, 1);
  if (t->fail_at >= 0 && (t->fail_once ? call == t->fail_at : call >= t->fail_at)) return NULL;
  if (align < _Alignof(test_block)) align = _Alignof(test_block);
  if (size > PTRDIFF_MAX / 2) return NULL;
  char *raw = malloc(sizeof(test_block) + align + size);
  if (!raw) return NULL;
  char *p = (char *)ait_align_up((uintptr_t)raw + sizeof(test_block), align);
  ((test_block *)p)[-1] = (test_block){raw, size};
  memset(p, 0xA5, size); /* nobody may count on zeros */
  atomic_fetch_add(&t->live, 1);
  return p;
}

static inline void test_allocator_free(void *ctx, void *p, size_t size) {
  test_allocator *t = ctx;
  test_block block = ((test_block *)p)[-1];
  assert_int_equal(block.size, size); /* the size that was asked for */
  memset(p, 0x5A, size);
  atomic_fetch_sub(&t->live, 1);
  free(block.raw);
}

static inline ait_allocator test_allocator_of(test_allocator *t) { return (ait_allocator){t, test_allocator_alloc, test_allocator_free}; }

typedef ait_status (*test_allocating_fn)(ait_allocator a, void *ctx);

static inline void test_one_failure(test_allocating_fn fn, void *ctx, long n, bool once, bool *out_done) {
  test_allocator t = {.fail_at = n, .fail_once = once};
  ait_status status = fn(test_allocator_of(&t), ctx);
  assert_int_equal(atomic_load(&t.live), 0);
  *out_done = atomic_load(&t.calls) <= n; /* the n-th call was never made: all failures have been tried */
  if (*out_done) assert_int_equal(ait_status_code(status), AIT_CODE_OK);
  else if (status || !once) assert_int_equal(ait_status_code(status), AIT_CODE_OUT_OF_MEMORY);
  ait_status_free(status);
}

/* fn must free all that it allocated, and report out-of-memory when (and only when) an allocation failed. A single failed call may be
 * survived (a cache that is not filled); when all calls from the n-th on fail, it must be reported. */
static inline void test_every_allocation_fails(test_allocating_fn fn, void *ctx) {
  bool done = false;
  for (long n = 0; !done; n++) test_one_failure(fn, ctx, n, false, &done);
  done = false;
  for (long n = 0; !done; n++) test_one_failure(fn, ctx, n, true, &done);
}

#endif
