/* Front door of the base room: errors, memory, strings, hashing, files, threads, clocks, CPU features. */
#ifndef AIT_SRC_BASE_H
#define AIT_SRC_BASE_H

#include <ait/base.h>
#include <stdarg.h>
#include <string.h>

#define AIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define AIT_UNUSED(x) ((void)(x))

/* ---- status (status.c) ---------------------------------------------------------------------------------------------------------*/
/* Frees the newer, keeps the first that is not NULL. */
ait_status ait_status_join(ait_status first, ait_status second) AIT_MUST_USE;
static inline void ait_status_ignore(ait_status status) { ait_status_free(status); }
#define AIT_OOM() ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory")

/* Returns the error to the caller. */
#define AIT_TRY(expression)                                \
  do {                                                     \
    ait_status ait_try_status_ = (expression);             \
    if (ait_try_status_ != AIT_OK) return ait_try_status_; \
  } while (0)
/* For functions with something to release: sets `status` and jumps to `cleanup`. */
#define AIT_GOTO(expression)            \
  do {                                  \
    status = (expression);              \
    if (status != AIT_OK) goto cleanup; \
  } while (0)

/* ---- memory (memory.c) ---------------------------------------------------------------------------------------------------------*/
/* NULL when out of memory. size 0 gives a non-NULL pointer that must be freed like any other. */
void *ait_alloc(ait_allocator a, size_t size, size_t align);
void *ait_alloc_zero(ait_allocator a, size_t size, size_t align);
void ait_free(ait_allocator a, void *p, size_t size); /* takes NULL */

/* Grows an array to hold at least `needed` elements (doubling). *data and *capacity are changed only on success. */
ait_status ait_grow(ait_allocator a, void **data, size_t *capacity, size_t needed, size_t element_size) AIT_MUST_USE;

/* Memory that is freed all at once. Not thread-safe. */
typedef struct ait_arena {
  ait_allocator allocator;
  struct ait_arena_block *blocks;
  size_t used_bytes;  /* asked for */
  size_t limit_bytes; /* 0: none. Allocations beyond it fail */
} ait_arena;
void ait_arena_init(ait_arena *arena, ait_allocator allocator);
void ait_arena_deinit(ait_arena *arena);
void *ait_arena_alloc(ait_arena *arena, size_t size, size_t align); /* NULL when out of memory */
void *ait_arena_zero(ait_arena *arena, size_t size, size_t align);
char *ait_arena_strdup(ait_arena *arena, const char *text, size_t length); /* NUL-terminated copy */
char *ait_arena_printf(ait_arena *arena, const char *format, ...) AIT_PRINTF(2, 3);
#define AIT_ARENA_NEW(arena, type) ((type *)ait_arena_zero((arena), sizeof(type), _Alignof(type)))
/* NULL on overflow, too. */
void *ait_arena_array(ait_arena *arena, size_t count, size_t element_size, size_t align);
#define AIT_ARENA_ARRAY(arena, type, count) ((type *)ait_arena_array((arena), (count), sizeof(type), _Alignof(type)))

/* ---- checked sizes ---------------------------------------------------------------------------------------------------------------
 * true: overflow, *out undefined. */
#define ait_add_overflows(a, b, out) __builtin_add_overflow((a), (b), (out))
#define ait_mul_overflows(a, b, out) __builtin_mul_overflow((a), (b), (out))
static inline size_t ait_align_up(size_t x, size_t align) { return (x + align - 1) & ~(align - 1); }

/* ---- strings (strings.c) -------------------------------------------------------------------------------------------------------*/
/* A growing text. After an allocation failure it stays as it is and `failed` is set; check once at the end. */
typedef struct ait_text {
  ait_allocator allocator;
  char *data; /* NUL-terminated once anything was appended */
  size_t length, capacity;
  bool failed;
} ait_text;
void ait_text_init(ait_text *text, ait_allocator allocator);
void ait_text_deinit(ait_text *text);
void ait_text_append(ait_text *text, const void *data, size_t length);
void ait_text_printf(ait_text *text, const char *format, ...) AIT_PRINTF(2, 3);
void ait_text_json_string(ait_text *text, const char *value, size_t length); /* with quotes; invalid UTF-8 becomes U+FFFD */
void ait_text_json_double(ait_text *text, double value);                     /* shortest that reads back; NaN, Infinity as strings */
/* strtod and "%.*g" with a decimal point, whatever the locale of the program around this library is. */
double ait_parse_double(const char *text, char **out_end); /* out_end may be NULL */
void ait_format_double(char out[48], int precision, double value);
bool ait_utf8_valid(const char *data, size_t length);
bool ait_starts_with(const char *text, const char *prefix);
bool ait_ends_with(const char *text, const char *suffix);

/* ---- hashing (hash.c) ----------------------------------------------------------------------------------------------------------*/
uint64_t ait_hash(const void *data, size_t length, uint64_t seed); /* stable over machines and versions */
/* The checksum of ZIP and gzip. Start with 0; pass the result on to continue. */
uint32_t ait_crc32(uint32_t crc, const void *data, size_t length);
/* String-keyed map to pointers; keys are copied. Insertion order is kept for iteration. */
typedef struct ait_map {
  ait_allocator allocator;
  struct ait_map_entry *entries;
  uint32_t *slots;
  size_t count, capacity, slot_count;
} ait_map;
typedef struct ait_map_entry {
  char *key;
  uint64_t hash;
  void *value;
} ait_map_entry;
void ait_map_init(ait_map *map, ait_allocator allocator);
void ait_map_deinit(ait_map *map);
ait_status ait_map_put(ait_map *map, const char *key, void *value) AIT_MUST_USE; /* replaces */
bool ait_map_get(const ait_map *map, const char *key, void **out_value);         /* out_value may be NULL */

/* ---- files (file.c) ------------------------------------------------------------------------------------------------------------*/
/* A read-only mapping, counted, atomic. */
typedef struct ait_file_map ait_file_map;
ait_status ait_file_map_open(ait_allocator a, const char *path, ait_file_map **out) AIT_MUST_USE;
const uint8_t *ait_file_map_data(const ait_file_map *map);
size_t ait_file_map_size(const ait_file_map *map);
ait_file_map *ait_file_map_retain(ait_file_map *map);
void ait_file_map_release(ait_file_map *map);
void ait_file_map_prefetch(const ait_file_map *map, size_t offset, size_t size); /* populate page tables where the kernel can */
/* Whole file; limit in bytes. *out is from the allocator, NUL-terminated, *out_size without the NUL (free size: size + 1). */
ait_status ait_file_read(ait_allocator a, const char *path, size_t limit, char **out, size_t *out_size) AIT_MUST_USE;
/* Written beside the target as a temporary file and renamed: the target is whole or untouched. commit syncs and renames. */
typedef struct ait_file_writer ait_file_writer;
ait_status ait_file_writer_create(ait_allocator a, const char *path, ait_file_writer **out) AIT_MUST_USE;
ait_status ait_file_writer_write(ait_file_writer *writer, const void *data, size_t size) AIT_MUST_USE;
uint64_t ait_file_writer_offset(const ait_file_writer *writer);
ait_status ait_file_writer_commit(ait_file_writer *writer) AIT_MUST_USE;
void ait_file_writer_destroy(ait_file_writer *writer); /* removes what was not committed; takes NULL */
ait_status ait_file_write_all(ait_allocator a, const char *path, const void *data, size_t size) AIT_MUST_USE;

/* ---- clock (clock.c) -----------------------------------------------------------------------------------------------------------*/
double ait_clock_seconds(void);                                    /* monotonic */
double ait_clock_thread_seconds(void);                             /* CPU time of this thread */
void ait_clock_switches(int64_t *voluntary, int64_t *involuntary); /* context switches of this thread so far */

/* ---- CPU (cpu.c, cpu_features.inc) ----------------------------------------------------------------------------------------------*/
enum {
#define AIT_CPU(name, bit, text, help) AIT_CPU_##name = 1 << (bit),
#include "base/cpu_features.inc"
#undef AIT_CPU
};
uint64_t ait_cpu_features(void); /* what this machine has and the system allows; computed once, thread-safe */
/* "avx2", "scalar", "avx512", "native": the features up to and including that level, whether this machine has them or not: combine with
 * ait_cpu_features before running anything. Errors: invalid-argument listing the names. */
ait_status ait_cpu_mask_parse(const char *text, uint64_t *out) AIT_MUST_USE;
/* Reads what ait_cpu_names wrote; exactly those features. Errors: invalid-argument (a name that this version does not know). */
ait_status ait_cpu_names_parse(const char *text, uint64_t *out) AIT_MUST_USE;
void ait_cpu_names(uint64_t features, char *out, size_t size); /* "sse2,avx2,avx512" */
const char *ait_cpu_model(void);                               /* "AMD EPYC …" */
int32_t ait_cpu_count(void);                                   /* that this process may use (affinity, cgroup quota) */

typedef struct ait_cpu_caches {
  size_t l1d, l2, l3; /* bytes; per core, per core, shared; clamped to sane values where the system says nothing */
} ait_cpu_caches;
ait_cpu_caches ait_cpu_cache_sizes(void);

/* ---- threads (pool.c) ----------------------------------------------------------------------------------------------------------*/
typedef struct ait_pool ait_pool;
typedef void (*ait_pool_fn)(void *ctx, int32_t index);
/* threads counts the caller: 1 makes no thread. Workers spin briefly, then sleep on a futex. One run at a time: a run that starts while
 * another is on (nested, or from another thread) is done by its own thread alone. */
ait_status ait_pool_create(ait_allocator a, int32_t threads, ait_pool **out) AIT_MUST_USE;
void ait_pool_destroy(ait_pool *pool);
/* fn(ctx, i) for i in 0..count-1, the caller taking part; returns when all are done. NULL pool: runs here. No allocation. */
void ait_pool_run(ait_pool *pool, ait_pool_fn fn, void *ctx, int32_t count);

#endif
