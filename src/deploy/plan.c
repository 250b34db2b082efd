/* Plans of graphs, together with the weights that they read, as a model in memory and as a file. */
#include "artifact/artifact.h"
#include "deploy/internal.h"
#include "runtime/runtime.h"
#include "tune/tune.h"
#include <stdio.h>

/* ---- weights that are read ------------------------------------------------------------------------------------------------------------*/
static ait_status place_storage(const ait_graph *g, ait_weight_store *store, uint32_t from, uint32_t *out) {
  ait_storage *storage = ait_weight_store_storage(g->weights, from);
  for (*out = 0; *out < ait_weight_store_storage_count(store); ++*out)
    if (ait_weight_store_storage(store, *out) == storage) return AIT_OK;
  return ait_weight_store_add_storage(store, ait_storage_retain(storage), out);
}

static ait_status add_used(const ait_graph *g, ait_weight_store *store) {
  for (size_t i = 0; i < g->input_count; ++i) {
    const ait_weight *from = g->inputs[i].kind == AIT_INPUT_USER ? NULL : ait_weight_store_find(g->weights, g->inputs[i].name);
    if (!from || ait_weight_store_find(store, from->name)) continue;
    ait_weight to = *from;
    AIT_TRY(place_storage(g, store, from->storage, &to.storage));
    AIT_TRY(ait_weight_store_add(store, &to));
  }
  return AIT_OK;
}

/* Inputs that nothing reads: weights go; user inputs stay. */
static ait_status drop_unread(ait_graph *g) {
  uint32_t *uses;
  size_t kept = 0;
  AIT_TRY(ait_graph_count_uses(g, g->allocator, &uses));
  for (size_t i = 0; i < g->input_count; ++i)
    if (g->inputs[i].kind == AIT_INPUT_USER || uses[g->inputs[i].value]) g->inputs[kept++] = g->inputs[i];
  g->input_count = kept;
  ait_free(g->allocator, uses, g->value_count * sizeof *uses);
  return AIT_OK;
}

static ait_status input_names(ait_graph *g) {
  const char *names[256];
  size_t count = 0;
  for (size_t i = 0; i < g->input_count; ++i) count += g->inputs[i].kind == AIT_INPUT_USER;
  const char **all = count <= AIT_COUNT(names) ? names : AIT_ARENA_ARRAY(g->arena, const char *, count);
  if (!all) return AIT_OOM();
  for (size_t i = 0; i < g->input_count; ++i)
    if (g->inputs[i].kind == AIT_INPUT_USER) all[g->inputs[i].user_index] = g->inputs[i].name;
  return ait_graph_set_input_spec(g, all, count);
}

/* ---- plans ----------------------------------------------------------------------------------------------------------------------------*/
void dep_sealing_init(dep_sealing *s, dep_work *w, const char *section_name) {
  *s = (dep_sealing){.w = w, .section_name = section_name, .part_count = 1};
  s->parts[0] = (dep_part){.g = w->g, .plan = {.allocator = w->a}};
  s->parts[1] = (dep_part){.plan = {.allocator = w->a}};
  ait_text_init(&s->section, w->a);
  ait_text_init(&s->second, w->a);
}

static void drop_plans(dep_sealing *s) {
  for (int i = 0; i < 2; ++i) {
    ait_plan_deinit(&s->parts[i].plan);
    ait_graph_region_destroy(s->w->a, s->parts[i].region);
    s->parts[i] = (dep_part){.g = s->parts[i].g, .plan = {.allocator = s->w->a}};
  }
  ait_weight_store_release(s->weights);
  s->weights = NULL;
}

void dep_sealing_deinit(dep_sealing *s) {
  drop_plans(s);
  if (s->draft) ait_file_map_release(s->draft);
  ait_text_deinit(&s->section);
  ait_text_deinit(&s->second);
}

static ait_status compile(dep_sealing *s, dep_part *p) {
  dep_work *w = s->w;
  char target[256];
  AIT_TRY(ait_graph_region(p->g, w->a, &p->region));
  ait_plan_target(ait_cpu_features(), target, sizeof target);
  return ait_plan_compile(w->a, w->options->backend ? w->options->backend : "native", NULL, p->region,
                          ait_weight_store_provider(s->weights), UINT64_MAX, target, &p->plan);
}

ait_status dep_sealing_plan(dep_sealing *s) {
  drop_plans(s);
  s->parts[0].g = s->w->g;
  AIT_TRY(ait_weight_store_create(s->w->a, &s->weights));
  for (uint32_t i = 0; i < s->part_count; ++i) {
    ait_graph *g = s->parts[i].g;
    AIT_TRY(drop_unread(g));
    AIT_TRY(input_names(g));
    AIT_TRY(ait_graph_verify(g));
    AIT_TRY(add_used(g, s->weights));
  }
  for (uint32_t i = 0; i < s->part_count; ++i) AIT_TRY(compile(s, &s->parts[i]));
  s->second.length = 0;
  return s->part_count > 1 ? ait_region_encode(s->parts[1].region, &s->second) : AIT_OK;
}

/* ---- in memory ------------------------------------------------------------------------------------------------------------------------*/
static const void *find_entry(void *owner, const char *name, size_t *out_size) {
  dep_sealing *s = owner;
  const ait_plan *second = &s->parts[1].plan;
  if (!strcmp(name, s->section_name)) return *out_size = s->section.length, s->section.data;
  if (s->part_count < 2) return NULL;
  if (!strcmp(name, AIT_LM_SECOND_GRAPH)) return *out_size = s->second.length, s->second.data;
  if (!strcmp(name, AIT_LM_SECOND_BLOB)) return *out_size = second->steps[0].blob.size, second->steps[0].blob.data;
  return NULL;
}

ait_status dep_sealing_model(dep_sealing *s, ait_model **out) {
  ait_model_parts parts = {.allocator = s->w->a,
                           .portable = s->parts[0].region,
                           .weights = ait_weight_store_provider(s->weights),
                           .plans = &s->parts[0].plan,
                           .plan_count = 1,
                           .plans_only = true,
                           .cpu_mask = UINT64_MAX,
                           .code_allowed = true,
                           .owner = s,
                           .entry = find_entry};
  return ait_model_build(&parts, out);
}

/* ---- the file -------------------------------------------------------------------------------------------------------------------------*/
ait_status dep_sealing_write(dep_sealing *s, const dep_source *source, const char *path) {
  ait_artifact_extra extras[13] = {{s->section_name, s->section.data, s->section.length}};
  size_t count = 1;
  for (uint32_t i = 0; i < source->file_count; ++i)
    extras[count++] = (ait_artifact_extra){source->files[i].name, source->files[i].text, source->files[i].size};
  for (int k = 0; k < 2 && s->part_count > 1; ++k) {
    ait_artifact_extra *e = &extras[count++];
    e->name = k ? AIT_LM_SECOND_BLOB : AIT_LM_SECOND_GRAPH;
    e->data = find_entry(s, e->name, &e->size);
  }
  if (s->draft) extras[count++] = (ait_artifact_extra){AIT_ENTRY_DRAFT, ait_file_map_data(s->draft), ait_file_map_size(s->draft)};
  ait_artifact_content content = {.portable = s->parts[0].region,
                                  .weights = s->weights,
                                  .plans = &s->parts[0].plan,
                                  .plan_count = 1,
                                  .deploy_json = s->deploy_json,
                                  .producer = s->w->g->producer,
                                  .model_name = s->w->g->name,
                                  .extras = extras,
                                  .extra_count = count};
  return ait_artifact_write(s->w->a, path, &content);
}

ait_status dep_sealing_report(const dep_sealing *s, char **out) {
  *out = ait_alloc(ait_allocator_default(), s->section.length + 1, 1);
  if (!*out) return AIT_OOM();
  memcpy(*out, s->section.data, s->section.length + 1);
  return AIT_OK;
}
