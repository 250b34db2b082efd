/* Seals a tuned model in an .ait: the user's graph and weights, the winner's plan, and those folded constants that the plan asks for. */
#include "tune/seal.h"

/* A provider that writes down which names were asked for. */
typedef struct listener {
  ait_weights from;
  ait_map asked;
} listener;

static ait_status hear_name(void *ctx, const char *name, ait_tensor *out) {
  listener *l = ctx;
  AIT_TRY(ait_map_put(&l->asked, name, NULL));
  return l->from.get(l->from.ctx, name, out);
}

/* Loads the plan once, to hear which weights it takes as they are. */
static ait_status hear_plan(const ait_region *region, const ait_plan *plan, listener *l) {
  ait_model *model;
  ait_weights weights = {.ctx = l, .get = hear_name};
  AIT_TRY(ait_model_create(ait_allocator_default(), region, weights, plan, NULL, NULL, &model));
  ait_model_release(model);
  return AIT_OK;
}

static ait_status copy_weight(ait_weight_store *to, const ait_weight_store *from, const ait_weight *weight) {
  ait_weight w = *weight;
  AIT_TRY(ait_weight_store_add_storage(to, ait_storage_retain(ait_weight_store_storage(from, weight->storage)), &w.storage));
  return ait_weight_store_add(to, &w);
}

/* The user's weights, and the folded ones that were asked for. */
static ait_status sealed_weights(const ait_weight_store *own, const ait_weight_store *lowered, const listener *l, ait_weight_store **out) {
  ait_weight_store *store;
  AIT_TRY(ait_weight_store_create(ait_allocator_default(), &store));
  ait_status status = AIT_OK;
  for (size_t i = 0; status == AIT_OK && i < ait_weight_store_storage_count(own); ++i) {
    uint32_t index;
    status = ait_weight_store_add_storage(store, ait_storage_retain(ait_weight_store_storage(own, (uint32_t)i)), &index);
  }
  for (size_t i = 0; status == AIT_OK && i < ait_weight_store_count(own); ++i)
    status = ait_weight_store_add(store, ait_weight_store_at(own, i));
  for (size_t i = 0; status == AIT_OK && i < ait_weight_store_count(lowered); ++i) {
    const ait_weight *w = ait_weight_store_at(lowered, i);
    if (!ait_weight_store_find(store, w->name) && ait_map_get(&l->asked, w->name, NULL)) status = copy_weight(store, lowered, w);
  }
  if (status != AIT_OK) ait_weight_store_release(store);
  else *out = store;
  return status;
}

ait_status ait_seal(const ait_trial_context *x, const ait_candidate *winner, const char *report, const char *path) {
  ait_allocator a = ait_allocator_default();
  ait_built built;
  ait_weight_store *weights = NULL;
  AIT_TRY(ait_built_create(x, winner, &built));
  listener l = {.from = ait_weight_store_provider(built.weights)};
  ait_map_init(&l.asked, a);
  ait_status status = hear_plan(x->region, &built.plan, &l);
  if (status == AIT_OK) status = sealed_weights(x->raw->weights, built.weights, &l, &weights);
  ait_artifact_content content = {.portable = x->region, .weights = weights, .plans = &built.plan, .plan_count = 1, .report_json = report};
  content.producer = x->raw->producer;
  content.model_name = x->raw->name;
  if (status == AIT_OK) status = ait_artifact_write(a, path, &content);
  ait_weight_store_release(weights);
  ait_map_deinit(&l.asked);
  ait_built_deinit(&built);
  return status;
}
