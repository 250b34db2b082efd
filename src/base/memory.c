/* The default allocator, growing arrays, arenas. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- default allocator ---------------------------------------------------------------------------------------------------------*/
/* From here on huge pages pay: the first touch of a 4 KiB page costs as much as that of a 2 MiB page. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)4 << 20)

static void *default_alloc(void *ctx, size_t size, size_t align) {
  AIT_UNUSED(ctx);
  if (size > PTRDIFF_MAX) return NULL;
  if (size < HUGE_FROM && align <= _Alignof(max_align_t)) return malloc(size);
  bool huge = size >= HUGE_FROM;
  if (huge && align < HUGE_PAGE) align = HUGE_PAGE;
  if (align < sizeof(void *)) align = sizeof(void *);
  void *p = NULL;
  if (posix_memalign(&p, align, size) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (huge) madvise(p, size & ~(HUGE_PAGE - 1), MADV_HUGEPAGE); /* only a wish: failure changes nothing */
#endif
  return p;
}

static void default_free(void *ctx, void *p, size_t size) {
  AIT_UNUSED(ctx);
  AIT_UNUSED(size);
  free(p);
}

ait_allocator ait_allocator_default(void) { return (ait_allocator){NULL, default_alloc, default_free}; }

void *ait_alloc(ait_allocator a, size_t size, size_t align) { return a.alloc(a.ctx, size ? size : 1, align); }

void *ait_alloc_zero(ait_allocator a, size_t size, size_t align) {
  void *p = ait_alloc(a, size, align);
  if (p) memset(p, 0, size ? size : 1);
  return p;
}

void ait_free(ait_allocator a, void *p, size_t size) {
  if (p) a.free(a.ctx, p, size ? size : 1);
}

/* ---- growing arrays ------------------------------------------------------------------------------------------------------------*/
ait_status ait_grow(ait_allocator a, void **data, size_t *capacity, size_t needed, size_t element_size) {
  if (needed <= *capacity) return AIT_OK;
  size_t new_capacity = *capacity <= SIZE_MAX / 2 ? *capacity * 2 : SIZE_MAX;
  if (new_capacity < 8) new_capacity = 8;
  if (new_capacity < needed) new_capacity = needed;
  size_t bytes;
  if (ait_mul_overflows(new_capacity, element_size, &bytes)) return AIT_OOM();
  void *p = ait_alloc(a, bytes, _Alignof(max_align_t));
  if (!p) return AIT_OOM();
  if (*capacity) memcpy(p, *data, *capacity * element_size);
  ait_free(a, *data, *capacity * element_size);
  *data = p;
  *capacity = new_capacity;
  return AIT_OK;
}

/* ---- arena ---------------------------------------------------------------------------------------------------------------------*/
typedef struct ait_arena_block {
  struct ait_arena_block *next;
  size_t size, used; /* of the bytes that follow the header */
} arena_block;

enum { BLOCK_FIRST = 4096, BLOCK_MAX = 1 << 20, BLOCK_HEADER = 64 }; /* header padded: data starts 64-byte aligned */
_Static_assert(sizeof(arena_block) <= BLOCK_HEADER, "block header");

void ait_arena_init(ait_arena *arena, ait_allocator allocator) { *arena = (ait_arena){.allocator = allocator}; }

void ait_arena_deinit(ait_arena *arena) {
  for (arena_block *block = arena->blocks, *next; block; block = next) {
    next = block->next;
    ait_free(arena->allocator, block, BLOCK_HEADER + block->size);
  }
  ait_arena_init(arena, arena->allocator);
}

static void *block_take(arena_block *block, size_t size, size_t align) {
  uintptr_t base = (uintptr_t)block + BLOCK_HEADER;
  uintptr_t start = ait_align_up(base + block->used, align);
  size_t end;
  if (start < base || ait_add_overflows(start - base, size, &end) || end > block->size) return NULL;
  block->used = end;
  return (void *)start;
}

static arena_block *block_add(ait_arena *arena, size_t size, size_t align) {
  size_t want = arena->blocks ? arena->blocks->size * 2 : BLOCK_FIRST;
  if (want > BLOCK_MAX) want = BLOCK_MAX;
  size_t need, total;
  if (ait_add_overflows(size, align > BLOCK_HEADER ? align : 0, &need)) return NULL;
  if (want < need) want = need;
  if (ait_add_overflows(want, BLOCK_HEADER, &total)) return NULL;
  arena_block *block = ait_alloc(arena->allocator, total, BLOCK_HEADER);
  if (!block) return NULL;
  *block = (arena_block){arena->blocks, want, 0};
  arena->blocks = block;
  return block;
}

void *ait_arena_alloc(ait_arena *arena, size_t size, size_t align) {
  if (size == 0) size = 1;
  size_t used;
  if (ait_add_overflows(arena->used_bytes, size, &used)) return NULL;
  if (arena->limit_bytes && used > arena->limit_bytes) return NULL;
  void *p = arena->blocks ? block_take(arena->blocks, size, align) : NULL;
  if (!p) {
    arena_block *block = block_add(arena, size, align);
    if (!block) return NULL;
    p = block_take(block, size, align);
  }
  if (p) arena->used_bytes = used;
  return p;
}

void *ait_arena_zero(ait_arena *arena, size_t size, size_t align) {
  void *p = ait_arena_alloc(arena, size, align);
  if (p && size) memset(p, 0, size);
  return p;
}

void *ait_arena_array(ait_arena *arena, size_t count, size_t element_size, size_t align) {
  size_t bytes;
  return ait_mul_overflows(count, element_size, &bytes) ? NULL : ait_arena_zero(arena, bytes, align);
}

char *ait_arena_strdup(ait_arena *arena, const char *text, size_t length) {
  if (length == SIZE_MAX) return NULL;
  char *copy = ait_arena_alloc(arena, length + 1, 1);
  if (!copy) return NULL;
  if (length) memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

char *ait_arena_printf(ait_arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *text = length < 0 ? NULL : ait_arena_alloc(arena, (size_t)length + 1, 1);
  if (!text) return NULL;
  va_start(args, format);
  vsnprintf(text, (size_t)length + 1, format, args);
  va_end(args);
  return text;
}
