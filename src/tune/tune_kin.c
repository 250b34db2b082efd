/* Kin: models that share most of their parts, as one and itself after a layer was changed or the weights were trained on. What was far
 * behind in the contest of one is not measured on the other: only default options, and what came into that contest. */
#include "tune/part_key.h"
#include "tune/tuner.h"
#include <stdio.h>

/* Share of a model's nodes that must be in known parts. */
static const double enough = 0.6;

/* ---- parts of the model ----------------------------------------------------------------------------------------------------------*/
typedef struct part_list {
  uint64_t hashes[AIT_PARTS_MAX];
  uint32_t nodes[AIT_PARTS_MAX], count;
} part_list;

static ait_status fill_parts(const ait_tuner *t, const ait_region *region, part_list *out) {
  uint32_t cuts[AIT_PARTS_MAX], count = ait_parts_find(region, NULL, 0, cuts);
  ait_parts parts;
  AIT_TRY(ait_parts_create(ait_allocator_default(), region, cuts, count, &parts));
  ait_status status = ait_parts_hash(&parts, &t->cases, out->hashes);
  out->count = status == AIT_OK ? parts.count : 0;
  for (uint32_t p = 0; p < out->count; ++p) out->nodes[p] = parts.items[p].end - parts.items[p].begin;
  ait_parts_deinit(&parts);
  return status;
}

/* Without parts (effects that cannot be cut apart, a size that no sample tells) a model has no kin. */
static void find_parts(const ait_tuner *t, part_list *out) {
  ait_build_request request = {
      .allocator = ait_allocator_default(), .backend = ait_backend_find("native"), .pipeline = "core", .cpu_mask = t->options.cpu_mask};
  ait_graph *graph = NULL;
  ait_region *region = NULL;
  out->count = 0;
  ait_status status = ait_plan_lower(t->raw, &request, &graph);
  if (status == AIT_OK) status = ait_graph_region(graph, ait_allocator_default(), &region);
  if (status == AIT_OK) status = fill_parts(t, region, out);
  ait_graph_region_destroy(ait_allocator_default(), region);
  ait_graph_destroy(graph);
  ait_status_ignore(status);
}

/* ---- the record ------------------------------------------------------------------------------------------------------------------*/
/* Only among tunings that had the same candidates, wanted the same, and let the same pass. */
static void kin_key(const ait_tuner *t, uint64_t part, char out[512]) {
  snprintf(out, 512, "kin-%016llx-%016llx-%016llx-%g-%g-%s", (unsigned long long)part, (unsigned long long)t->machine,
           (unsigned long long)t->candidates, t->options.rtol, t->options.atol, t->objective.text);
}

static bool recall_names(ait_tuner *t, const char *key, ait_tuner_kin *out) {
  bool found;
  ait_tuner_recall(t, key, out, sizeof *out, &found);
  found = found && out->count <= AIT_CONTEST_MAX;
  for (uint32_t i = 0; found && i < out->count; ++i) found = memchr(out->names[i], 0, sizeof out->names[i]) != NULL;
  return found;
}

static void join(ait_tuner_kin *into, const ait_tuner_kin *more) {
  for (uint32_t i = 0; i < more->count; ++i) {
    bool known = false;
    for (uint32_t k = 0; k < into->count; ++k) known |= !strcmp(into->names[k], more->names[i]);
    if (!known && into->count < AIT_CONTEST_MAX) memcpy(into->names[into->count++], more->names[i], sizeof more->names[i]);
  }
}

/* A run that the record holds goes by the list that it had, or by none. */
void ait_tuner_find_kin(ait_tuner *t) {
  char key[600], part_key[512];
  part_list *parts = NULL;
  ait_tuner_kin names = {0}, one;
  double nodes = 0, known = 0;
  bool ordered = t->objective.kind == AIT_STRATEGY_FIRST_WINS || t->objective.kind == AIT_STRATEGY_ONE_BACKEND;
  snprintf(key, sizeof key, "shortlist-%s", t->finish_key);
  if (!t->record || ordered) return;
  t->has_kin = recall_names(t, key, &t->kin);
  if (t->has_kin || t->finished.done || t->options.from_record) return;
  parts = ait_alloc(ait_allocator_default(), sizeof *parts, _Alignof(part_list));
  if (!parts) return;
  find_parts(t, parts);
  for (uint32_t p = 0; p < parts->count; ++p) {
    nodes += parts->nodes[p];
    kin_key(t, parts->hashes[p], part_key);
    if (!recall_names(t, part_key, &one)) continue;
    known += parts->nodes[p];
    join(&names, &one);
  }
  ait_free(ait_allocator_default(), parts, sizeof *parts);
  if (nodes == 0 || known < enough * nodes) return;
  t->kin = names;
  t->has_kin = true;
  ait_tuner_remember(t, key, "shortlist", &t->kin, sizeof t->kin);
  ait_tuner_tell(t, "note: most of the model was tuned here before, in another one: what was far behind there is not measured again");
}

bool ait_tuner_is_behind_in_kin(const ait_tuner *t, const ait_candidate *c) {
  if (!t->has_kin) return false;
  for (uint32_t i = 0; i < t->kin.count; ++i)
    if (!strcmp(t->kin.names[i], c->name)) return false;
  return true;
}

void ait_tuner_remember_kin(ait_tuner *t) {
  const ait_decision *d = t->decision;
  ait_tuner_kin names = {0};
  char key[512];
  if (!t->record || !d->contested || d->reused || d->fixed) return;
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    const ait_candidate *c = &t->list.items[d->finalists[k]];
    if (!c->mix) snprintf(names.names[names.count++], sizeof names.names[0], "%s", c->name);
  }
  part_list *parts = ait_alloc(ait_allocator_default(), sizeof *parts, _Alignof(part_list));
  if (!parts) return;
  find_parts(t, parts);
  for (uint32_t p = 0; p < parts->count; ++p) {
    kin_key(t, parts->hashes[p], key);
    ait_tuner_remember(t, key, "finalists of a model with this part", &names, sizeof names);
  }
  ait_free(ait_allocator_default(), parts, sizeof *parts);
}
