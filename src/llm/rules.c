/* What a model with an encoder says of its answers: tokens that are forced at a position, that never appear, that do not come first. */
#include "llm/engine.h"
#include <math.h>

static int64_t forced_at(const ait_lm_info *f, int32_t position) {
  for (uint32_t i = 0; i < f->forced_count; ++i)
    if (f->forced[2 * i] == position) return f->forced[2 * i + 1];
  return -1;
}

static void forbid(float *logits, int64_t vocab, const int32_t *tokens, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (tokens[i] < vocab) logits[tokens[i]] = -INFINITY;
}

/* The first position that is the model's own choice. */
static int32_t begin_of(const ait_lm_info *f, const lm_lane *lane) {
  int32_t at = lane->prompt;
  while (forced_at(f, at) >= 0) ++at;
  return at;
}

void lm_apply_rules(const ait_engine *e, const lm_lane *lane, float *logits) {
  const ait_lm_info *f = e->model.info;
  int64_t only = forced_at(f, lane->count);
  if (only < 0 && lane->count == lane->limit - 1) only = f->forced_end;
  if (only >= 0) {
    for (int64_t i = 0; i < f->vocab; ++i) logits[i] = i == only ? 0 : -INFINITY;
    return;
  }
  forbid(logits, f->vocab, f->suppress, f->suppress_count);
  if (lane->count == begin_of(f, lane)) forbid(logits, f->vocab, f->begin_suppress, f->begin_suppress_count);
}
