/* Checks on tables of symbolic sizes. */
#include "backends/dims.h"

static bool is_binary(ait_dim_op op) { return op >= AIT_DIM_ADD && op <= AIT_DIM_POW; }

bool ait_dims_valid(const ait_dim_expr *dims, uint32_t count, uint32_t symbol_count) {
  for (uint32_t i = 0; i < count; ++i) {
    const ait_dim_expr *e = &dims[i];
    bool valid = e->op == AIT_DIM_CONST || e->op == AIT_DIM_UNKNOWN || (e->op == AIT_DIM_SYMBOL && e->a < symbol_count) ||
                 (is_binary(e->op) && e->a < i && e->b < i);
    if (!valid) return false;
  }
  return true;
}

/* Expressions larger than this (counted with repetitions) do not come from programs that people write; they count as unknown. */
enum { DIM_VISITS_MAX = 2000 };

static bool backed(const ait_region *region, ait_dim d, int *visits) {
  if (d >= region->dim_count || --*visits < 0) return false;
  const ait_dim_expr *e = &region->dims[d];
  if (e->op == AIT_DIM_CONST) return true;
  if (e->op == AIT_DIM_SYMBOL) return e->a < region->symbol_count && region->symbols[e->a].backed;
  return is_binary(e->op) && backed(region, e->a, visits) && backed(region, e->b, visits);
}

bool ait_dims_backed(const ait_region *region, ait_dim d) {
  int visits = DIM_VISITS_MAX;
  return backed(region, d, &visits);
}
