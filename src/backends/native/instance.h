/* One session's memory: plans for the shapes seen lately, and the arena that they share. */
#ifndef AIT_SRC_BACKENDS_NATIVE_INSTANCE_H
#define AIT_SRC_BACKENDS_NATIVE_INSTANCE_H

#include "backends/native/plan.h"

/* Shapes that come back within so many others are not bound again. Steps of language models have two for each size that they are rounded to
 * (src/llm/step.c): 113 up to 4096 tokens, 16 more each time that they double: 241 for a million. */
enum { NAT_PLANS = 256 };

typedef struct nat_step_time {
  double seconds;
  uint64_t calls;
  double longest;     /* call so far: */
  const char *kernel; /* its kernel stands for the step */
} nat_step_time;

typedef struct nat_instance {
  const nat_program *program;
  ait_allocator allocator;
  nat_plan *plans[NAT_PLANS]; /* the latest first */
  uint64_t clock;
  int64_t *key; /* of the current call */
  uint32_t key_count;
  size_t key_capacity;
  bool *direct; /* per output, with key */
  char *arena;
  size_t arena_bytes;
  nat_run_state state;
  nat_step_time *times; /* per step; made by the first run with profile */
} nat_instance;

ait_status nat_instance_create(void *loaded, ait_allocator allocator, void **out_instance) AIT_MUST_USE;
ait_status nat_instance_run(void *instance, const ait_run_context *context) AIT_MUST_USE;
uint32_t nat_instance_profile(void *instance, ait_step_time *out, uint32_t capacity);
void nat_instance_destroy(void *instance);
size_t nat_instance_bytes(const void *instance);

/* symbols.c: values of the region's symbols from the inputs' shapes and ints; INT64_MIN where nothing binds one. Errors name the input. */
ait_status nat_bind_symbols(const ait_region *region, const ait_value *inputs, int64_t *symbols) AIT_MUST_USE;

#endif
