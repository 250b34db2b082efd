/* Mixed plans: parts of a model on different backends. */
#ifndef AIT_SRC_TUNE_MIX_H
#define AIT_SRC_TUNE_MIX_H

#include "tune/candidate.h"
#include "tune/regions.h"
#include "tune/tune.h"

enum { AIT_MIX_ENGINES = 6 };
_Static_assert((int)AIT_PARTS_MAX == (int)AIT_TRIAL_PARTS, "a time for each part");

typedef struct ait_engine {
  const ait_backend *backend;
  char options[192];
  char version[64];
  double whole; /* seconds of the whole model on it; 0: it does not take the whole */
} ait_engine;

/* Which engine runs which part of the core graph. Neighbours on one engine become one step. */
struct ait_mix {
  ait_engine engines[AIT_MIX_ENGINES];
  uint32_t engine_count, part_count;
  uint32_t cuts[AIT_PARTS_MAX]; /* first node of each part but the first */
  uint8_t engine[AIT_PARTS_MAX];
  char modules[AIT_PARTS_MAX][96];
  double seconds[AIT_PARTS_MAX]; /* of the part on its engine, when measured alone */
  bool alone[AIT_PARTS_MAX];     /* a step of its own, even between neighbours on its engine: for measuring it */
};

/* Like ait_plan_build, with several steps. */
ait_status ait_mix_build(const ait_graph *raw, const ait_build_request *request, const ait_mix *mix, ait_plan *out_plan,
                         ait_weight_store **out_weights) AIT_MUST_USE;

/* For each part the engine that makes the sum smallest: measured seconds of parts (INFINITY: it does not take the part), less what two
 * neighbours on one engine save, because fewer values cross: (sum of its parts - whole) / (parts - 1). Dynamic programming from part to
 * part. saving_share: how much of that saving is believed (1: all). pins[part]: the engine that it must have, or -1. Returns the expected
 * seconds, INFINITY when the pins cannot be met. */
double ait_mix_choose(double seconds[AIT_MIX_ENGINES][AIT_PARTS_MAX], const double saving[AIT_MIX_ENGINES], uint32_t engines,
                      uint32_t parts, const int *pins, uint8_t choice[AIT_PARTS_MAX]);
/* The plan's step that holds the part. */
uint32_t ait_mix_step(const ait_mix *mix, uint32_t part);
bool ait_mix_is_single(const ait_mix *mix); /* one engine for all */
void ait_mix_name(const ait_mix *mix, int32_t threads, char *out, size_t size);

#endif
