/* ait_model_load: a sealed file to a model. */
#include "runtime/runtime.h"

static void release_artifact(void *owner) { ait_artifact_release(owner); }
static const void *find_entry(void *owner, const char *name, size_t *out_size) { return ait_artifact_entry(owner, name, out_size); }

static bool checks_when_read(const ait_load_options *o) { return o->check_when_read && !o->skip_checksum && !o->full_checksum; }

static ait_status check_plan(const ait_artifact *artifact, const ait_plan *plan, int32_t threads) {
  for (uint32_t i = 0; i < plan->step_count; ++i) AIT_TRY(ait_artifact_check(artifact, plan->steps[i].blob.data, threads));
  return AIT_OK;
}

/* Plans that this CPU can take. A damaged one is an error, not a reason to run the portable graph. */
static ait_status check_plans(const ait_artifact *artifact, const ait_load_options *o) {
  for (size_t i = 0; i < ait_artifact_plan_count(artifact); ++i) {
    const ait_plan *plan = ait_artifact_plan(artifact, i);
    if (plan->cpu_needed & ~(ait_cpu_features() & o->cpu_mask)) continue;
    AIT_TRY(check_plan(artifact, plan, o->threads));
    for (uint32_t b = 0; b < plan->bucket_count; ++b)
      if (plan->buckets[b].plan) AIT_TRY(check_plan(artifact, plan->buckets[b].plan, o->threads));
  }
  return AIT_OK;
}

static ait_status load_inside(void *owner, const char *name, const ait_load_options *options, ait_model **out);

static ait_status model_of(ait_artifact *artifact, const ait_load_options *options, ait_model **out) {
  bool when_read = checks_when_read(options);
  if (when_read) AIT_TRY(check_plans(artifact, options));
  ait_model_parts parts = {
      .allocator = options->allocator,
      .portable = ait_artifact_region(artifact),
      .weights = when_read ? ait_artifact_checked_weights(artifact) : ait_weight_store_provider(ait_artifact_weights(artifact)),
      .sizes = ait_weight_store_provider(ait_artifact_weights(artifact)),
      .plans = ait_artifact_plan(artifact, 0),
      .plan_count = ait_artifact_plan_count(artifact),
      .cpu_mask = options->cpu_mask,
      .code_allowed = ait_artifact_signature(artifact).state == AIT_SIGNATURE_TRUSTED,
      .signature = ait_artifact_signature(artifact),
      .manifest = ait_artifact_manifest(artifact),
      .owner = artifact,
      .owner_release = release_artifact,
      .entry = find_entry,
      .inside = load_inside,
  };
  return ait_model_build(&parts, out);
}

static ait_status load_inside(void *owner, const char *name, const ait_load_options *options, ait_model **out) {
  ait_artifact *artifact;
  ait_artifact_open_options open = {.skip_bulk_checksum = options->skip_checksum || checks_when_read(options), .threads = options->threads};
  AIT_TRY(ait_artifact_open_inside(owner, name, &open, &artifact));
  ait_status status = model_of(artifact, options, out);
  if (status) ait_artifact_release(artifact);
  return ait_error_context(status, "entry '%s'", name);
}

ait_status ait_model_load(const char *path, const ait_load_options *options, ait_model **out) {
  ait_load_options known;
  ait_load_options_init(&known);
  if (options) memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
  options = &known;
  *out = NULL;
  ait_artifact *artifact;
  ait_artifact_open_options open = {.skip_bulk_checksum = options->skip_checksum || checks_when_read(options),
                                    .threads = options->threads,
                                    .keys = options->keys,
                                    .require_signature = options->require_signature};
  AIT_TRY(ait_artifact_open(options->allocator, path, &open, &artifact));
  ait_status status = options->full_checksum ? ait_artifact_verify(artifact) : AIT_OK;
  if (!status) status = model_of(artifact, options, out);
  if (status) ait_artifact_release(artifact);
  return ait_error_context(status, "cannot load '%s'", path);
}
