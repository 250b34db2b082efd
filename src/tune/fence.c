#include "tune/fence.h"
#include <pthread.h>
#include <stdlib.h>

enum { FENCE_BYTES = 64, FENCE = 0xA7, FILL = 0xFF };

/* Right before the block, FENCE_BYTES of fence in between; the list holds all blocks that are there. */
typedef struct block {
  struct block *next, *prev;
  void *base;
  size_t size;
} block;

struct ait_fence {
  pthread_mutex_t mutex;
  block blocks; /* head of the ring */
  size_t broken_size;
  const char *broken; /* where; NULL: nowhere */
};

static block *block_of(void *p) { return (block *)((char *)p - FENCE_BYTES - sizeof(block)); }
static unsigned char *memory_of(block *b) { return (unsigned char *)(b + 1) + FENCE_BYTES; }

static bool is_fence(const unsigned char *p) {
  for (int i = 0; i < FENCE_BYTES; ++i)
    if (p[i] != FENCE) return false;
  return true;
}

static void look_at(ait_fence *f, block *b) {
  const unsigned char *p = memory_of(b);
  if (f->broken) return;
  if (!is_fence(p + b->size)) f->broken = "past the end";
  else if (!is_fence(p - FENCE_BYTES)) f->broken = "before the begin";
  f->broken_size = b->size;
}

static void *fence_alloc(void *ctx, size_t size, size_t align) {
  ait_fence *f = ctx;
  size_t lead = sizeof(block) + FENCE_BYTES, whole;
  if (align < _Alignof(block)) align = _Alignof(block);
  if (__builtin_add_overflow(size, lead + FENCE_BYTES + align, &whole)) return NULL;
  char *base = malloc(whole);
  if (!base) return NULL;
  uintptr_t at = ((uintptr_t)base + lead + align - 1) & ~(uintptr_t)(align - 1);
  unsigned char *p = (unsigned char *)base + (at - (uintptr_t)base);
  block *b = block_of(p);
  *b = (block){.base = base, .size = size};
  memset(p - FENCE_BYTES, FENCE, FENCE_BYTES);
  memset(p, FILL, size);
  memset(p + size, FENCE, FENCE_BYTES);
  pthread_mutex_lock(&f->mutex);
  b->next = &f->blocks;
  b->prev = f->blocks.prev;
  b->prev->next = b->next->prev = b;
  pthread_mutex_unlock(&f->mutex);
  return p;
}

static void fence_free(void *ctx, void *p, size_t size) {
  AIT_UNUSED(size);
  ait_fence *f = ctx;
  block *b = block_of(p);
  pthread_mutex_lock(&f->mutex);
  look_at(f, b);
  b->prev->next = b->next;
  b->next->prev = b->prev;
  pthread_mutex_unlock(&f->mutex);
  free(b->base);
}

ait_status ait_fence_create(ait_fence **out) {
  ait_fence *f = *out = ait_alloc_zero(ait_allocator_default(), sizeof *f, _Alignof(ait_fence));
  if (!f) return AIT_OOM();
  f->blocks.next = f->blocks.prev = &f->blocks;
  pthread_mutex_init(&f->mutex, NULL);
  return AIT_OK;
}

void ait_fence_destroy(ait_fence *f) {
  if (!f) return;
  pthread_mutex_destroy(&f->mutex);
  ait_free(ait_allocator_default(), f, sizeof *f);
}

ait_allocator ait_fence_allocator(ait_fence *f) { return (ait_allocator){f, fence_alloc, fence_free}; }

ait_status ait_fence_check(ait_fence *f) {
  pthread_mutex_lock(&f->mutex);
  for (block *b = f->blocks.next; b != &f->blocks; b = b->next) look_at(f, b);
  const char *where = f->broken;
  size_t size = f->broken_size;
  pthread_mutex_unlock(&f->mutex);
  return where ? ait_error(AIT_CODE_MISMATCH, "it writes %s of its memory (a block of %zu bytes)", where, size) : AIT_OK;
}
