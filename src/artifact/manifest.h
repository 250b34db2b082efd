/* manifest.json and weights.json, both ways. docs/format.md names every field. */
#ifndef AIT_SRC_ARTIFACT_MANIFEST_H
#define AIT_SRC_ARTIFACT_MANIFEST_H

#include "artifact/artifact.h"

/* Entry names of a plan's step: "targets/<target>/<step>.region" and ".blob". Plans whose targets would share a folder get ".1", ".2" … */
ait_status ait_plan_folder(ait_arena *arena, const ait_plan *plans, size_t index, const char **out) AIT_MUST_USE;

/* Entries of a step. bucket: whose plan the step is of; AIT_NO_INDEX: the plan's own. *out_own_blob: false when an earlier step of the plan
 * or of its buckets has the same bytes: then *out_blob is that entry's name. */
typedef struct ait_step_entries {
  const char *region, *blob;
  bool own_blob;
} ait_step_entries;
ait_status ait_plan_step_entries(ait_arena *arena, const ait_plan *plan, const char *folder, uint32_t bucket, uint32_t step,
                                 ait_step_entries *out) AIT_MUST_USE;

/* graph_sha256: hex. Deterministic: keys in a fixed order, no times, no paths. */
ait_status ait_manifest_format(ait_allocator a, const ait_artifact_content *content, const char *graph_sha256, ait_text *out) AIT_MUST_USE;
ait_status ait_weights_format(const ait_weight_store *weights, ait_text *out) AIT_MUST_USE;

/* Where readers of plans and weights find entries. */
typedef struct ait_entry_source {
  void *ctx;
  const void *(*find)(void *ctx, const char *name, size_t *out_size);
  /* Storage that views the entry and keeps its mapping; NULL when out of memory. */
  ait_status (*storage)(void *ctx, const char *name, ait_storage **out);
} ait_entry_source;

typedef struct ait_manifest {
  const char *model_name, *producer; /* in the arena */
  ait_plan *plans;                   /* array from the allocator, deinit each */
  size_t plan_count, plan_capacity;
  const char *report; /* in the text: the file's tuning report; NULL: none */
  size_t report_size;
  const char *call; /* in the text: how callers call it; NULL: not said */
  size_t call_size;
  const char *deploy; /* in the text: evidence of a language model; NULL: it is none */
  size_t deploy_size;
} ait_manifest;
/* Only format and minimum reader: never fails on what else the text holds. false: it says neither. */
bool ait_manifest_peek(const char *text, size_t size, int64_t *out_format, int64_t *out_reader);
ait_status ait_manifest_parse(ait_allocator a, ait_arena *arena, const char *text, size_t size, const ait_entry_source *source,
                              ait_manifest *out) AIT_MUST_USE;
void ait_manifest_deinit(ait_allocator a, ait_manifest *manifest);
ait_status ait_weights_parse(ait_allocator a, const char *text, size_t size, const ait_entry_source *source,
                             ait_weight_store **out) AIT_MUST_USE;

#endif
