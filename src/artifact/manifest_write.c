#include "artifact/json_reader.h"
#include "artifact/manifest.h"
#include <stdio.h>

/* ---- names of entries --------------------------------------------------------------------------------------------------------------*/
static bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

/* A target's name as part of an entry's name: what an entry cannot hold becomes '_'. */
static char *plain_target(ait_arena *arena, const char *target) {
  size_t length = strlen(target) < 200 ? strlen(target) : 200;
  char *name = ait_arena_strdup(arena, length ? target : "any", length ? length : 3);
  for (char *p = name; p && *p; ++p) {
    if (!is_plain(*p) || (p == name && *p == '.')) *p = '_';
  }
  return name;
}

ait_status ait_plan_folder(ait_arena *arena, const ait_plan *plans, size_t index, const char **out) {
  char *name = plain_target(arena, plans[index].target ? plans[index].target : "");
  unsigned same = 0;
  for (size_t i = 0; i < index && name; ++i) {
    char *other = plain_target(arena, plans[i].target ? plans[i].target : "");
    if (!other) return AIT_OOM();
    same += strcmp(other, name) == 0;
  }
  *out = name && same ? ait_arena_printf(arena, "targets/%s/%u", name, same) : name ? ait_arena_printf(arena, "targets/%s", name) : NULL;
  return *out ? AIT_OK : AIT_OOM();
}

/* The plan's own steps, and those of its buckets after them: blob number n. false: there are not so many. */
static bool blob_at(const ait_plan *plan, uint32_t n, uint32_t *out_bucket, uint32_t *out_step) {
  *out_bucket = AIT_NO_INDEX;
  *out_step = n;
  if (n < plan->step_count) return true;
  n -= plan->step_count;
  for (uint32_t b = 0; b < plan->bucket_count; ++b) {
    uint32_t count = plan->buckets[b].plan ? plan->buckets[b].plan->step_count : 0;
    *out_bucket = b;
    *out_step = n;
    if (n < count) return true;
    n -= count;
  }
  return false;
}

static const ait_blob *blob_of(const ait_plan *plan, uint32_t bucket, uint32_t step) {
  return bucket == AIT_NO_INDEX ? &plan->steps[step].blob : &plan->buckets[bucket].plan->steps[step].blob;
}

static char *entry_name(ait_arena *arena, const char *folder, uint32_t bucket, uint32_t step, const char *what) {
  if (bucket == AIT_NO_INDEX) return ait_arena_printf(arena, "%s/%u.%s", folder, step, what);
  return ait_arena_printf(arena, "%s/b%u/%u.%s", folder, bucket, step, what);
}

/* Plans that differ only in how they are run (threads) have equal blobs: kept once. */
ait_status ait_plan_step_entries(ait_arena *arena, const ait_plan *plan, const char *folder, uint32_t bucket, uint32_t step,
                                 ait_step_entries *out) {
  const ait_blob *blob = blob_of(plan, bucket, step);
  uint32_t b = bucket, s = step;
  for (uint32_t n = 0; blob_at(plan, n, &b, &s) && !(b == bucket && s == step); ++n) {
    const ait_blob *other = blob_of(plan, b, s);
    if (other->size == blob->size && (blob->size == 0 || memcmp(other->data, blob->data, blob->size) == 0)) break;
  }
  out->own_blob = b == bucket && s == step;
  out->region = entry_name(arena, folder, bucket, step, "region");
  out->blob = entry_name(arena, folder, b, s, "blob");
  return out->region && out->blob ? AIT_OK : AIT_OOM();
}

/* ---- manifest ----------------------------------------------------------------------------------------------------------------------*/
typedef struct scribe {
  ait_text *out;
  ait_arena *arena;
  const ait_artifact_content *content;
  int64_t *dim_min, *dim_max;
} scribe;

static void text(ait_text *out, const char *value) { ait_text_json_string(out, value ? value : "", strlen(value ? value : "")); }

static const char *separator(uint32_t index) { return index ? ", " : ""; }

static void dim(const scribe *s, ait_dim d) {
  const ait_region *r = s->content->portable;
  if (r->dims[d].op == AIT_DIM_CONST) {
    ait_text_printf(s->out, "%lld", (long long)r->dims[d].value);
    return;
  }
  char expression[128];
  ait_region_dim_text(r, d, expression, sizeof expression);
  ait_text_printf(s->out, "{\"dim\": ");
  text(s->out, expression);
  ait_text_printf(s->out, ", \"min\": %lld", (long long)(s->dim_min[d] < 0 ? 0 : s->dim_min[d]));
  if (s->dim_max[d] != INT64_MAX) ait_text_printf(s->out, ", \"max\": %lld", (long long)s->dim_max[d]);
  ait_text_printf(s->out, "}");
}

static void value_type(const scribe *s, uint32_t value) {
  static const char *const types[] = {"none", "tensor", "tensor list", "int", "float", "bool", "string"};
  const ait_region_value *v = &s->content->portable->values[value];
  ait_text_printf(s->out, ", \"kind\": \"%s\"", types[v->type]);
  if (v->type != AIT_TYPE_TENSOR) return;
  ait_text_printf(s->out, ", \"dtype\": \"%s\"", ait_dtype_name(v->dtype));
  if (v->rank < 0) return;
  ait_text_printf(s->out, ", \"shape\": [");
  for (int32_t d = 0; d < v->rank; ++d) {
    ait_text_printf(s->out, "%s", separator((uint32_t)d));
    dim(s, v->shape[d]);
  }
  ait_text_printf(s->out, "]");
}

static void constant(const scribe *s, const ait_arg *arg) {
  switch (arg->kind) {
    case AIT_ARG_INT: ait_text_printf(s->out, ", \"kind\": \"int\", \"value\": %lld", (long long)arg->as.i); break;
    case AIT_ARG_FLOAT:
      ait_text_printf(s->out, ", \"kind\": \"float\", \"value\": ");
      ait_text_json_double(s->out, arg->as.f);
      break;
    case AIT_ARG_BOOL: ait_text_printf(s->out, ", \"kind\": \"bool\", \"value\": %s", arg->as.b ? "true" : "false"); break;
    case AIT_ARG_STRING:
      ait_text_printf(s->out, ", \"kind\": \"string\", \"value\": ");
      ait_text_json_string(s->out, arg->as.string, arg->count);
      break;
    case AIT_ARG_DIM:
      ait_text_printf(s->out, ", \"kind\": \"int\", \"value\": ");
      dim(s, arg->as.dim);
      break;
    default: ait_text_printf(s->out, ", \"kind\": \"none\""); break;
  }
}

static void inputs(const scribe *s) {
  const ait_region *r = s->content->portable;
  uint32_t users = ait_region_user_inputs(r);
  ait_text_printf(s->out, "  \"inputs\": [");
  for (uint32_t k = 0; k < users; ++k) {
    for (uint32_t i = 0; i < r->input_count; ++i) {
      const ait_region_input *in = &r->inputs[i];
      if (in->kind != AIT_INPUT_USER || in->user_index != (int32_t)k) continue;
      ait_text_printf(s->out, "%s\n    {\"name\": ", k ? "," : "");
      text(s->out, in->name);
      if (in->value != AIT_NO_INDEX) value_type(s, in->value);
      else constant(s, &in->baked);
      ait_text_printf(s->out, "%s%s}", in->value == AIT_NO_INDEX ? ", \"fixed\": true" : "", in->mutated ? ", \"changed\": true" : "");
    }
  }
  ait_text_printf(s->out, "%s],\n", users ? "\n  " : "");
}

static void outputs(const scribe *s) {
  const ait_region *r = s->content->portable;
  uint32_t k = 0;
  ait_text_printf(s->out, "  \"outputs\": [");
  for (uint32_t i = 0; i < r->output_count; ++i) {
    const ait_region_output *o = &r->outputs[i];
    if (o->kind != AIT_OUTPUT_USER) continue;
    ait_text_printf(s->out, "%s\n    {\"name\": ", k++ ? "," : "");
    text(s->out, o->name && o->name[0] ? o->name : o->arg.kind == AIT_ARG_VALUE ? r->values[o->arg.as.value].name : NULL);
    if (o->arg.kind == AIT_ARG_VALUE) value_type(s, o->arg.as.value);
    else constant(s, &o->arg);
    ait_text_printf(s->out, "}");
  }
  ait_text_printf(s->out, "%s],\n", k ? "\n  " : "");
}

static void states(const scribe *s) {
  const ait_region *r = s->content->portable;
  uint32_t k = 0;
  ait_text_printf(s->out, "  \"states\": [");
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (!ait_region_input_is_weight(in) || !(in->mutated || ait_region_has_state_output(r, in->name))) continue;
    ait_text_printf(s->out, "%s", separator(k++));
    text(s->out, in->name);
  }
  ait_text_printf(s->out, "],\n");
}

static void indices(const scribe *s, const uint32_t *values, uint32_t count) {
  ait_text_printf(s->out, "[");
  for (uint32_t i = 0; i < count; ++i)
    ait_text_printf(s->out, "%s%lld", separator(i), values[i] == AIT_NO_INDEX ? -1LL : (long long)values[i]);
  ait_text_printf(s->out, "]");
}

static void cpu_needed(const scribe *s, uint64_t features) {
  char names[256];
  ait_cpu_names(features, names, sizeof names);
  ait_text_printf(s->out, "\"cpu\": [");
  uint32_t k = 0;
  for (const char *p = names; *p;) {
    size_t length = strcspn(p, ",");
    ait_text_printf(s->out, "%s\"%.*s\"", separator(k++), (int)length, p);
    p += length + (p[length] == ',');
  }
  /* Of a file by a newer ait: the name is lost, but not that there is one. */
  if (features & AIT_CPU_UNKNOWN_FEATURE) ait_text_printf(s->out, "%s\"unknown\"", separator(k++));
  ait_text_printf(s->out, "]");
}

/* A text of the caller's that only must be JSON. */
static ait_status given_json(const scribe *s, const char *before, const char *key, const char *what, const char *json, size_t size) {
  ait_json_reader r;
  ait_json_read_init(&r, json, size);
  ait_json_read_skip(&r);
  ait_json_read_end(&r);
  if (r.failed) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the %s is not JSON", what);
  ait_text_printf(s->out, "%s\"%s\": ", before, key);
  ait_text_append(s->out, json, size);
  return AIT_OK;
}

static ait_status tuning(const scribe *s, const char *before, const char *report, size_t size) {
  return given_json(s, before, "tuning", "tuning report", report, size);
}

/* What a plan, or the plan of a bucket of it, does. */
static ait_status work(const scribe *s, const ait_plan *owner, const char *folder, uint32_t bucket) {
  const ait_plan *plan = bucket == AIT_NO_INDEX ? owner : owner->buckets[bucket].plan;
  const char *indent = bucket == AIT_NO_INDEX ? "      " : "        ";
  ait_text_printf(s->out, "\"threads\": %d, \"values\": %u, \"outputs\": ", plan->threads, plan->value_count);
  indices(s, plan->outputs, plan->output_count);
  ait_text_printf(s->out, ", \"steps\": [");
  for (uint32_t i = 0; i < plan->step_count; ++i) {
    const ait_plan_step *step = &plan->steps[i];
    ait_step_entries entries;
    AIT_TRY(ait_plan_step_entries(s->arena, owner, folder, bucket, i, &entries));
    ait_text_printf(s->out, "%s\n%s{\"backend\": ", i ? "," : "", indent);
    text(s->out, step->backend);
    ait_text_printf(s->out, ", \"options\": ");
    text(s->out, step->options);
    if (step->needs) ait_text_printf(s->out, ", \"needs\": "), text(s->out, step->needs);
    ait_text_printf(s->out, ", \"region\": \"%s\", \"blob\": \"%s\", \"inputs\": ", entries.region, entries.blob);
    indices(s, step->inputs, step->region->input_count);
    ait_text_printf(s->out, ", \"outputs\": ");
    indices(s, step->outputs, step->region->output_count);
    ait_text_printf(s->out, "}");
  }
  ait_text_printf(s->out, "]");
  return AIT_OK;
}

static ait_status buckets(const scribe *s, const ait_plan *plan, const char *folder) {
  if (plan->bucket_count == 0) return AIT_OK;
  ait_text_printf(s->out, ", \"buckets\": [");
  for (uint32_t b = 0; b < plan->bucket_count; ++b) {
    const ait_plan_bucket *bucket = &plan->buckets[b];
    ait_text_printf(s->out, "%s\n      {\"sizes\": [", separator(b));
    for (uint32_t k = 0; k < bucket->range_count; ++k) {
      ait_text_printf(s->out, "%s{\"symbol\": ", separator(k));
      text(s->out, bucket->ranges[k].symbol);
      ait_text_printf(s->out, ", \"min\": %lld", (long long)bucket->ranges[k].min);
      if (bucket->ranges[k].max != INT64_MAX) ait_text_printf(s->out, ", \"max\": %lld", (long long)bucket->ranges[k].max);
      ait_text_printf(s->out, "}");
    }
    ait_text_printf(s->out, "]%s", bucket->plan ? ", " : "");
    if (bucket->plan) AIT_TRY(work(s, plan, folder, b));
    ait_text_printf(s->out, "}");
  }
  ait_text_printf(s->out, "]");
  return AIT_OK;
}

static ait_status one_plan(const scribe *s, size_t index) {
  const ait_plan *plan = &s->content->plans[index];
  const char *folder;
  AIT_TRY(ait_plan_folder(s->arena, s->content->plans, index, &folder));
  ait_text_printf(s->out, "%s\n    {\"target\": ", index ? "," : "");
  text(s->out, plan->target);
  ait_text_printf(s->out, ", ");
  if (plan->machine) {
    ait_text_printf(s->out, "\"machine\": ");
    text(s->out, plan->machine);
    ait_text_printf(s->out, ", ");
  }
  cpu_needed(s, plan->cpu_needed);
  ait_text_printf(s->out, ", ");
  AIT_TRY(work(s, plan, folder, AIT_NO_INDEX));
  AIT_TRY(buckets(s, plan, folder));
  if (plan->report) AIT_TRY(tuning(s, ", ", plan->report, plan->report_size));
  ait_text_printf(s->out, "}");
  return AIT_OK;
}

static ait_status plans(const scribe *s) {
  ait_text_printf(s->out, "  \"plans\": [");
  for (size_t i = 0; i < s->content->plan_count; ++i) AIT_TRY(one_plan(s, i));
  ait_text_printf(s->out, "%s]", s->content->plan_count ? "\n  " : "");
  return AIT_OK;
}

static void weights_summary(const scribe *s) {
  const ait_weight_store *w = s->content->weights;
  unsigned long long bytes = 0;
  size_t storages = ait_weight_store_storage_count(w);
  for (size_t i = 0; i < storages; ++i) bytes += ait_storage_bytes(ait_weight_store_storage(w, (uint32_t)i));
  ait_text_printf(s->out, "  \"weights\": {\"tensors\": %zu, \"storages\": %zu, \"bytes\": %llu},\n", ait_weight_store_count(w), storages,
                  bytes);
}

static ait_status all(const scribe *s, const char *graph_sha256) {
  ait_region_dim_ranges(s->content->portable, s->dim_min, s->dim_max);
  ait_text_printf(s->out, "{\n  \"format\": %u,\n  \"reader\": %u,\n  \"ait\": \"%s\",\n  \"model\": {\"name\": ", AIT_FORMAT, AIT_FORMAT,
                  ait_version());
  text(s->out, s->content->model_name);
  ait_text_printf(s->out, ", \"producer\": ");
  text(s->out, s->content->producer);
  ait_text_printf(s->out, ", \"graph_sha256\": \"%s\"},\n", graph_sha256);
  inputs(s);
  outputs(s);
  states(s);
  weights_summary(s);
  AIT_TRY(plans(s));
  const char *call = s->content->call_json, *deploy = s->content->deploy_json, *report = s->content->report_json;
  if (call) AIT_TRY(given_json(s, ",\n  ", "call", "description of the call", call, strlen(call)));
  if (deploy) AIT_TRY(given_json(s, ",\n  ", "deploy", "evidence of the language model", deploy, strlen(deploy)));
  if (report) AIT_TRY(tuning(s, ",\n  ", report, strlen(report)));
  ait_text_printf(s->out, "\n}\n");
  return s->out->failed ? AIT_OOM() : AIT_OK;
}

ait_status ait_manifest_format(ait_allocator a, const ait_artifact_content *content, const char *graph_sha256, ait_text *out) {
  ait_arena arena;
  ait_arena_init(&arena, a);
  scribe s = {.out = out, .arena = &arena, .content = content};
  s.dim_min = AIT_ARENA_ARRAY(&arena, int64_t, content->portable->dim_count);
  s.dim_max = AIT_ARENA_ARRAY(&arena, int64_t, content->portable->dim_count);
  ait_status status = s.dim_min && s.dim_max ? all(&s, graph_sha256) : AIT_OOM();
  ait_arena_deinit(&arena);
  return status;
}

/* ---- weights -----------------------------------------------------------------------------------------------------------------------*/
static void numbers(ait_text *out, const char *key, const int64_t *values, int32_t count) {
  ait_text_printf(out, ", \"%s\": [", key);
  for (int32_t i = 0; i < count; ++i) ait_text_printf(out, "%s%lld", separator((uint32_t)i), (long long)values[i]);
  ait_text_printf(out, "]");
}

ait_status ait_weights_format(const ait_weight_store *weights, ait_text *out) {
  size_t storages = ait_weight_store_storage_count(weights);
  ait_text_printf(out, "{\n  \"storages\": %zu,\n  \"tensors\": [", storages);
  for (size_t i = 0; i < ait_weight_store_count(weights); ++i) {
    const ait_weight *w = ait_weight_store_at(weights, i);
    ait_text_printf(out, "%s\n    {\"name\": ", i ? "," : "");
    text(out, w->name);
    ait_text_printf(out, ", \"storage\": %u, \"dtype\": \"%s\"", w->storage, ait_dtype_name(w->dtype));
    numbers(out, "shape", w->shape, w->rank);
    numbers(out, "strides", w->strides, w->rank);
    ait_text_printf(out, ", \"offset\": %lld}", (long long)w->offset);
  }
  ait_text_printf(out, "%s]\n}\n", ait_weight_store_count(weights) ? "\n  " : "");
  return out->failed ? AIT_OOM() : AIT_OK;
}
