/* Seals a tuned model in an .ait: the user's graph and weights, the winner's plan, and those folded constants that the plan asks for. */
#include "tune/seal.h"
#include "artifact/signature.h"

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

/* ---- buckets -----------------------------------------------------------------------------------------------------------------------*/
typedef struct builds { /* weights that plans were built with; the winner's first */
  ait_weight_store *weights[AIT_SHAPE_POINTS + 1];
  uint32_t count;
} builds;

static ait_status put_ranges(const ait_shapes *s, const ait_shape_box *box, ait_allocator a, ait_plan_bucket *out) {
  AIT_TRY(ait_plan_bucket_new_ranges(a, out, s->axis_count));
  for (uint32_t k = 0; k < s->axis_count; ++k) {
    const char *symbol = s->region->symbols[s->axes[k]].name;
    out->ranges[k] = (ait_plan_range){ait_alloc(a, strlen(symbol) + 1, 1), box->min[k], box->max[k]};
    if (!out->ranges[k].symbol) return AIT_OOM();
    memcpy(out->ranges[k].symbol, symbol, strlen(symbol) + 1);
  }
  return AIT_OK;
}

/* The bucket's own plan, and which weights it takes. */
static ait_status build_bucket(const ait_trial_context *x, const ait_candidate *c, listener *l, builds *all, ait_plan_bucket *out) {
  ait_built built;
  AIT_TRY(ait_built_create(x, c, &built));
  l->from = ait_weight_store_provider(built.weights);
  ait_status status = hear_plan(x->region, &built.plan, l);
  if (status == AIT_OK) out->plan = ait_alloc_zero(built.plan.allocator, sizeof *out->plan, _Alignof(ait_plan));
  if (status == AIT_OK && !out->plan) status = AIT_OOM();
  if (status == AIT_OK) {
    *out->plan = built.plan;
    built.plan = (ait_plan){0};
    all->weights[all->count++] = built.weights;
    built.weights = NULL;
  }
  ait_built_deinit(&built);
  return status;
}

static ait_status add_buckets(const ait_trial_context *x, const ait_candidates *list, const ait_shapes *s, listener *l, builds *all,
                              ait_plan *plan) {
  AIT_TRY(ait_plan_new_buckets(plan, s->box_count));
  for (uint32_t b = 0; b < s->box_count; ++b) {
    AIT_TRY(put_ranges(s, &s->boxes[b], plan->allocator, &plan->buckets[b]));
    if (s->boxes[b].winner) AIT_TRY(build_bucket(x, &list->items[s->members[s->boxes[b].winner]], l, all, &plan->buckets[b]));
  }
  return AIT_OK;
}

/* ---- weights -----------------------------------------------------------------------------------------------------------------------*/
static ait_status copy_weight(ait_weight_store *to, const ait_weight_store *from, const ait_weight *weight) {
  ait_weight w = *weight;
  AIT_TRY(ait_weight_store_add_storage(to, ait_storage_retain(ait_weight_store_storage(from, weight->storage)), &w.storage));
  return ait_weight_store_add(to, &w);
}

/* The user's weights, and the folded ones that were asked for. */
static ait_status sealed_weights(const ait_weight_store *own, ait_weight_store *const *lowered, uint32_t count, const listener *l,
                                 ait_weight_store **out) {
  ait_weight_store *store;
  AIT_TRY(ait_weight_store_create(ait_allocator_default(), &store));
  ait_status status = AIT_OK;
  for (size_t i = 0; status == AIT_OK && i < ait_weight_store_storage_count(own); ++i) {
    uint32_t index;
    status = ait_weight_store_add_storage(store, ait_storage_retain(ait_weight_store_storage(own, (uint32_t)i)), &index);
  }
  for (size_t i = 0; status == AIT_OK && i < ait_weight_store_count(own); ++i)
    status = ait_weight_store_add(store, ait_weight_store_at(own, i));
  for (uint32_t k = 0; k < count; ++k) { /* names of folded constants are hashes of their bytes: one name, one constant */
    for (size_t i = 0; status == AIT_OK && i < ait_weight_store_count(lowered[k]); ++i) {
      const ait_weight *w = ait_weight_store_at(lowered[k], i);
      if (!ait_weight_store_find(store, w->name) && ait_map_get(&l->asked, w->name, NULL)) status = copy_weight(store, lowered[k], w);
    }
  }
  if (status != AIT_OK) ait_weight_store_release(store);
  else *out = store;
  return status;
}

/* ---- entries that no plan reads: samples, only when they are asked for, and what the model's own file holds ------------------------*/
typedef struct extras {
  ait_arena arena; /* names */
  ait_artifact_extra *items;
  ait_text *texts; /* of the samples */
  size_t count, text_count;
} extras;

/* As .npy: what is no tensor as an array of rank 0; texts are left out. */
static ait_status put_sample(extras *s, size_t call, size_t input, const ait_value *v) {
  ait_tensor scalar = {0};
  const ait_tensor *t = &v->as.tensor;
  if (v->kind == AIT_VALUE_INT) scalar = ait_tensor_borrow((void *)(uintptr_t)&v->as.i, AIT_I64, 0, NULL), t = &scalar;
  else if (v->kind == AIT_VALUE_FLOAT) scalar = ait_tensor_borrow((void *)(uintptr_t)&v->as.f, AIT_F64, 0, NULL), t = &scalar;
  else if (v->kind == AIT_VALUE_BOOL) scalar = ait_tensor_borrow((void *)(uintptr_t)&v->as.b, AIT_BOOL, 0, NULL), t = &scalar;
  else if (v->kind != AIT_VALUE_TENSOR) return AIT_OK;
  ait_text *text = &s->texts[s->text_count++];
  ait_text_init(text, ait_allocator_default());
  ait_artifact_extra *e = &s->items[s->count++];
  e->name = ait_arena_printf(&s->arena, "samples/%zu/%zu.npy", call, input);
  if (!e->name) return AIT_OOM();
  AIT_TRY(ait_npy_format(ait_allocator_default(), t, text));
  if (text->failed) return AIT_OOM();
  e->data = text->data;
  e->size = text->length;
  return AIT_OK;
}

/* What the writer makes anew. */
static bool is_made(const char *name) {
  static const char *const names[] = {AIT_ENTRY_MANIFEST,  AIT_ENTRY_GRAPH, AIT_ENTRY_WEIGHTS,
                                      AIT_ENTRY_SIGNATURE, AIT_ENTRY_SUMS,  AIT_ENTRY_SHA256};
  for (size_t i = 0; i < AIT_COUNT(names); ++i)
    if (!strcmp(name, names[i])) return true;
  bool plan = ait_starts_with(name, "targets/") && strchr(name + strlen("targets/"), '/'); /* in the folder of its target */
  return plan || ait_starts_with(name, "weights/");
}

/* old: the file before, NULL: none; its samples stay unless there are new ones. */
static ait_status gather_extras(const ait_trial_context *x, const ait_artifact *old, extras *s) {
  const ait_tune_cases *cases = x->cases;
  size_t own = 0, kept = old ? ait_artifact_entry_count(old) : 0;
  for (size_t i = 0; i < cases->count; ++i) own += cases->items[i].measured ? cases->items[i].input_count : 0;
  s->items = AIT_ARENA_ARRAY(&s->arena, ait_artifact_extra, own + kept);
  s->texts = AIT_ARENA_ARRAY(&s->arena, ait_text, own);
  if (!s->items || !s->texts) return AIT_OOM();
  for (size_t i = 0; x->options->embed_samples && i < cases->count && cases->items[i].measured; ++i) /* the user's own come first */
    for (size_t k = 0; k < cases->items[i].input_count; ++k) AIT_TRY(put_sample(s, i, k, &cases->items[i].inputs[k]));
  for (size_t i = 0; i < kept; ++i) {
    ait_artifact_extra e = {.name = ait_artifact_entry_name(old, i)};
    if (is_made(e.name) || (x->options->embed_samples && ait_starts_with(e.name, "samples/"))) continue;
    e.data = ait_artifact_entry(old, e.name, &e.size);
    s->items[s->count++] = e;
  }
  return AIT_OK;
}

static void extras_deinit(extras *s) {
  for (size_t i = 0; i < s->text_count; ++i) ait_text_deinit(&s->texts[i]);
  ait_arena_deinit(&s->arena);
}

/* ---- the file ----------------------------------------------------------------------------------------------------------------------*/
static ait_status add_plans(ait_arena *arena, ait_artifact *base, ait_plan *own, const char *report, ait_artifact_content *c) {
  c->plans = own;
  c->plan_count = 1;
  c->report_json = report;
  if (!base) return AIT_OK;
  ait_plan *plans, plan = *own;
  bool keep;
  plan.report = report;
  plan.report_size = strlen(report);
  AIT_TRY(ait_append_plans(arena, base, &plan, &plans, &c->plan_count, &keep));
  c->plans = plans;
  c->report_json = NULL;
  return keep ? ait_artifact_report(base, &c->report_json) : AIT_OK;
}

static ait_status write_file(const ait_trial_context *x, const char *path, ait_artifact_content *c) {
  ait_private_key key = {0};
  ait_status status = AIT_OK;
  if (x->options->sign_key) {
    status = ait_private_key_find(x->options->keys, x->options->sign_key, &key);
    c->signer = &key;
  }
  if (!status) status = ait_artifact_write(ait_allocator_default(), path, c);
  ait_private_key_wipe(&key);
  return status;
}

static ait_status name_machine(ait_plan *plan) {
  size_t size = strlen(ait_cpu_model()) + 1;
  plan->machine = ait_alloc(plan->allocator, size, 1);
  if (!plan->machine) return AIT_OOM();
  memcpy(plan->machine, ait_cpu_model(), size);
  return AIT_OK;
}

ait_status ait_seal(const ait_trial_context *x, const ait_candidates *list, const ait_shapes *shapes, const char *report,
                    ait_artifact *base, ait_artifact *source, const char *path) {
  ait_allocator a = ait_allocator_default();
  ait_artifact *old = base ? base : source;
  ait_built built;
  ait_weight_store *weights = NULL;
  extras s = {0};
  builds all = {0};
  AIT_TRY(ait_built_create(x, &list->items[shapes->members[0]], &built));
  listener l = {.from = ait_weight_store_provider(built.weights)};
  ait_map_init(&l.asked, a);
  ait_arena_init(&s.arena, a);
  ait_artifact_content content = {.portable = x->region};
  ait_status status = AIT_OK;
  AIT_GOTO(name_machine(&built.plan));
  AIT_GOTO(hear_plan(x->region, &built.plan, &l));
  all.weights[all.count++] = ait_weight_store_retain(built.weights);
  AIT_GOTO(add_buckets(x, list, shapes, &l, &all, &built.plan));
  AIT_GOTO(sealed_weights(base ? ait_artifact_weights(base) : x->raw->weights, all.weights, all.count, &l, &weights));
  AIT_GOTO(add_plans(&s.arena, base, &built.plan, report, &content));
  AIT_GOTO(gather_extras(x, old, &s));
  content.portable = base ? ait_artifact_region(base) : x->region;
  content.weights = weights;
  content.call_json = x->options->call_json;
  if (old && !content.call_json) AIT_GOTO(ait_artifact_call(old, &content.call_json));
  if (old) AIT_GOTO(ait_artifact_deploy(old, &content.deploy_json));
  content.producer = base ? ait_artifact_producer(base) : x->raw->producer;
  content.model_name = base ? ait_artifact_model_name(base) : x->raw->name;
  content.extras = s.items;
  content.extra_count = s.count;
  AIT_GOTO(write_file(x, path, &content));
cleanup:
  extras_deinit(&s);
  ait_weight_store_release(weights);
  ait_map_deinit(&l.asked);
  for (uint32_t k = 0; k < all.count; ++k) ait_weight_store_release(all.weights[k]);
  ait_built_deinit(&built);
  return status;
}
