/* The tables of kernels and the choice between them. */
#include "base/base.h"
#include "kernels/kernels.h"

#define DECLARE(isa, name) void ait_k_##name##_##isa(const void *args, int64_t begin, int64_t end, void *scratch);
#define AIT_KERNEL(name, args, unit, text) DECLARE(generic, name) DECLARE(avx2, name) DECLARE(avx512, name)
#include "kernels/kernels.inc"
#undef AIT_KERNEL

static const ait_kernels generic_table = {
    .isa = "generic",
    .width = 4,
    .tile_rows = 6,
    .tile_columns = 8,
#define AIT_KERNEL(name, args, unit, text) .name = ait_k_##name##_generic,
#include "kernels/kernels.inc"
#undef AIT_KERNEL
};
#if defined(__x86_64__)
static const ait_kernels avx2_table = {
    .isa = "avx2",
    .width = 8,
    .tile_rows = 6,
    .tile_columns = 16,
#define AIT_KERNEL(name, args, unit, text) .name = ait_k_##name##_avx2,
#include "kernels/kernels.inc"
#undef AIT_KERNEL
};
static const ait_kernels avx512_table = {
    .isa = "avx512",
    .width = 16,
    .tile_rows = 14,
    .tile_columns = 32,
#define AIT_KERNEL(name, args, unit, text) .name = ait_k_##name##_avx512,
#include "kernels/kernels.inc"
#undef AIT_KERNEL
};
#endif

static const struct {
  const ait_kernels *table;
  uint64_t features;
} tables[] = {
    {&generic_table, 0},
#if defined(__x86_64__)
    {&avx2_table, AIT_CPU_AVX2},
    {&avx512_table, AIT_CPU_AVX512},
#endif
};

const ait_kernels *ait_kernels_at(size_t index, uint64_t *out_features) {
  if (index >= AIT_COUNT(tables)) return NULL;
  *out_features = tables[index].features;
  return tables[index].table;
}

const ait_kernels *ait_kernels_for(uint64_t cpu_features) {
  const ait_kernels *best = &generic_table;
  for (size_t i = 0; i < AIT_COUNT(tables); ++i)
    if ((tables[i].features & ~cpu_features) == 0) best = tables[i].table;
  return best;
}
