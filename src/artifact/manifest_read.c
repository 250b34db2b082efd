#include "artifact/json_reader.h"
#include "artifact/manifest.h"
#include <stdio.h>

#define MAX_PLANS 4096u
#define MAX_STEPS 65536u
#define MAX_VALUES (1u << 24)

bool ait_manifest_peek(const char *text, size_t size, int64_t *out_format, int64_t *out_reader) {
  ait_json_reader r;
  bool format = false, reader = false;
  ait_json_read_init(&r, text, size);
  for (ait_json_read_enter(&r, '{'); !(format && reader) && ait_json_read_next(&r);) {
    if (ait_json_read_key_is(&r, "format")) *out_format = ait_json_read_int(&r), format = !r.failed;
    else if (ait_json_read_key_is(&r, "reader")) *out_reader = ait_json_read_int(&r), reader = !r.failed;
    else ait_json_read_skip(&r);
  }
  return format && reader;
}

/* ---- plans -------------------------------------------------------------------------------------------------------------------------*/
typedef struct parser {
  ait_allocator allocator;
  ait_arena *arena;
  ait_json_reader r;
  const ait_entry_source *source;
} parser;

static ait_status unreadable(const ait_json_reader *r, const char *what) {
  return r->out_of_memory ? AIT_OOM() : ait_error(AIT_CODE_INVALID_MODEL, "%s cannot be read", what);
}

static ait_status take_text(parser *p, char **out) {
  char *text = ait_json_read_string(&p->r, p->arena);
  if (!text) return unreadable(&p->r, "a text");
  size_t size = strlen(text) + 1;
  char *copy = ait_alloc(p->allocator, size, 1);
  if (!copy) return AIT_OOM();
  memcpy(copy, text, size);
  if (*out) ait_free(p->allocator, *out, strlen(*out) + 1); /* a key given twice: the last counts */
  *out = copy;
  return AIT_OK;
}

/* Numbers of plan values; -1 is AIT_NO_INDEX. */
static ait_status take_indices(parser *p, uint32_t **out, uint32_t *out_count) {
  size_t capacity = 0, count = 0;
  void *data = NULL;
  ait_status status = AIT_OK;
  if (*out) return unreadable(&p->r, "a list that is given twice");
  for (ait_json_read_enter(&p->r, '['); !status && ait_json_read_next(&p->r);) {
    int64_t v = ait_json_read_int(&p->r);
    if (p->r.failed || v < -1 || v >= MAX_VALUES) status = unreadable(&p->r, "a value number");
    else status = ait_grow(p->allocator, &data, &capacity, count + 1, sizeof(uint32_t));
    if (!status) ((uint32_t *)data)[count++] = v < 0 ? AIT_NO_INDEX : (uint32_t)v;
  }
  if (!status && p->r.failed) status = unreadable(&p->r, "a list of value numbers");
  /* Shrunk to its length, because the plan frees by that. */
  uint32_t *exact = status ? NULL : ait_alloc(p->allocator, count * sizeof *exact, _Alignof(uint32_t));
  if (!status && !exact) status = AIT_OOM();
  if (!status) {
    if (count) memcpy(exact, data, count * sizeof *exact);
    *out = exact;
    *out_count = (uint32_t)count;
  }
  ait_free(p->allocator, data, capacity * sizeof(uint32_t));
  return status;
}

typedef struct step_lists {
  uint32_t input_count, output_count;
} step_lists;

static ait_status take_entry(parser *p, const void **out, size_t *out_size) {
  char *name = ait_json_read_string(&p->r, p->arena);
  if (!name) return unreadable(&p->r, "an entry's name");
  *out = p->source->find(p->source->ctx, name, out_size);
  return *out ? AIT_OK : ait_error(AIT_CODE_INVALID_MODEL, "entry '%.200s' is missing", name);
}

static ait_status take_member(parser *p, ait_plan_step *s, step_lists *lists) {
  const void *data;
  size_t size;
  ait_json_reader *r = &p->r;
  if (ait_json_read_key_is(r, "backend")) return take_text(p, &s->backend);
  if (ait_json_read_key_is(r, "options")) return take_text(p, &s->options);
  if (ait_json_read_key_is(r, "needs")) return take_text(p, &s->needs);
  if (ait_json_read_key_is(r, "inputs")) return take_indices(p, &s->inputs, &lists->input_count);
  if (ait_json_read_key_is(r, "outputs")) return take_indices(p, &s->outputs, &lists->output_count);
  if (ait_json_read_key_is(r, "region")) {
    AIT_TRY(take_entry(p, &data, &size));
    ait_region_destroy(s->region);
    s->region = NULL;
    return ait_region_decode(p->allocator, data, size, &s->region);
  }
  if (ait_json_read_key_is(r, "blob")) {
    AIT_TRY(take_entry(p, &data, &size));
    s->blob = (ait_blob){(void *)data, size};
    s->blob_mapped = true;
    return AIT_OK;
  }
  ait_json_read_skip(r);
  return AIT_OK;
}

/* The lists must fit the region before anything frees or indexes them by it. */
static ait_status check_step(parser *p, ait_plan_step *s, const step_lists *lists) {
  bool whole = s->backend && s->options && s->region && s->blob_mapped && s->inputs && s->outputs;
  if (whole && lists->input_count == s->region->input_count && lists->output_count == s->region->output_count) return AIT_OK;
  ait_free(p->allocator, s->inputs, lists->input_count * sizeof *s->inputs);
  ait_free(p->allocator, s->outputs, lists->output_count * sizeof *s->outputs);
  s->inputs = s->outputs = NULL;
  return ait_error(AIT_CODE_INVALID_MODEL, "a step of a plan is incomplete");
}

static ait_status take_step(parser *p, ait_plan_step *s) {
  step_lists lists = {0};
  ait_status status = AIT_OK;
  for (ait_json_read_enter(&p->r, '{'); !status && ait_json_read_next(&p->r);) status = take_member(p, s, &lists);
  if (!status && p->r.failed) status = unreadable(&p->r, "a step of a plan");
  ait_status fits = check_step(p, s, &lists);
  return ait_status_join(status, fits);
}

static ait_status take_steps(parser *p, ait_plan *plan) {
  size_t capacity = 0, count = 0;
  void *data = NULL;
  ait_status status = AIT_OK;
  if (plan->steps) return unreadable(&p->r, "a list that is given twice");
  for (ait_json_read_enter(&p->r, '['); !status && ait_json_read_next(&p->r);) {
    if (count == MAX_STEPS) status = ait_error(AIT_CODE_LIMIT, "a plan has more than %u steps", MAX_STEPS);
    else status = ait_grow(p->allocator, &data, &capacity, count + 1, sizeof(ait_plan_step));
    if (status) break;
    ait_plan_step *s = (ait_plan_step *)data + count++;
    memset(s, 0, sizeof *s);
    status = take_step(p, s);
  }
  if (!status && p->r.failed) status = unreadable(&p->r, "a list of steps");
  /* Into an array of the plan's own length; on failure, too, so that ait_plan_deinit finds what there is. */
  plan->steps = ait_alloc(p->allocator, count * sizeof *plan->steps, _Alignof(ait_plan_step));
  if (plan->steps) {
    if (count) memcpy(plan->steps, data, count * sizeof *plan->steps);
    plan->step_count = (uint32_t)count;
  } else {
    ait_plan lost = {.allocator = p->allocator, .steps = data, .step_count = (uint32_t)count};
    status = ait_status_join(status, AIT_OOM());
    for (uint32_t i = 0; i < lost.step_count; ++i) ait_plan_step_deinit(p->allocator, &lost.steps[i]);
  }
  ait_free(p->allocator, data, capacity * sizeof(ait_plan_step));
  return status;
}

static ait_status take_cpu(parser *p, ait_plan *plan) {
  plan->cpu_needed = 0;
  for (ait_json_read_enter(&p->r, '['); ait_json_read_next(&p->r);) {
    char *name = ait_json_read_string(&p->r, p->arena);
    uint64_t feature;
    if (!name) break;
    ait_status status = ait_cpu_names_parse(name, &feature);
    if (status) feature = AIT_CPU_UNKNOWN_FEATURE;
    ait_status_ignore(status);
    plan->cpu_needed |= feature;
  }
  return p->r.failed ? unreadable(&p->r, "a list of CPU features") : AIT_OK;
}

/* What a plan and the plan of a bucket have both. */
static ait_status take_work(parser *p, ait_plan *plan) {
  ait_json_reader *r = &p->r;
  if (ait_json_read_key_is(r, "steps")) return take_steps(p, plan);
  if (ait_json_read_key_is(r, "outputs")) return take_indices(p, &plan->outputs, &plan->output_count);
  if (ait_json_read_key_is(r, "threads")) {
    int64_t threads = ait_json_read_int(r);
    plan->threads = threads < 1 || threads > 1024 ? 1 : (int32_t)threads;
  } else if (ait_json_read_key_is(r, "values")) {
    int64_t values = ait_json_read_int(r);
    if (values < 0 || values > MAX_VALUES) return unreadable(&p->r, "the number of a plan's values");
    plan->value_count = (uint32_t)values;
  } else {
    ait_json_read_skip(r);
  }
  return AIT_OK;
}

static ait_status take_range(parser *p, ait_plan_range *range) {
  ait_json_reader *r = &p->r;
  ait_status status = AIT_OK;
  *range = (ait_plan_range){.min = INT64_MIN, .max = INT64_MAX};
  for (ait_json_read_enter(r, '{'); !status && ait_json_read_next(r);) {
    if (ait_json_read_key_is(r, "symbol")) status = take_text(p, &range->symbol);
    else if (ait_json_read_key_is(r, "min")) range->min = ait_json_read_int(r);
    else if (ait_json_read_key_is(r, "max")) range->max = ait_json_read_int(r);
    else ait_json_read_skip(r);
  }
  return !status && r->failed ? unreadable(r, "a range of sizes") : status;
}

static ait_status take_ranges(parser *p, ait_plan_bucket *b) {
  ait_plan_range ranges[AIT_PLAN_RANGES_MAX];
  uint32_t count = 0;
  ait_status status = AIT_OK;
  if (b->ranges) return unreadable(&p->r, "a list that is given twice");
  for (ait_json_read_enter(&p->r, '['); !status && ait_json_read_next(&p->r);) {
    if (count == AIT_PLAN_RANGES_MAX) status = ait_error(AIT_CODE_LIMIT, "a bucket has more than %d ranges", AIT_PLAN_RANGES_MAX);
    else status = take_range(p, &ranges[count++]);
  }
  if (!status && p->r.failed) status = unreadable(&p->r, "a list of ranges");
  ait_status kept = ait_plan_bucket_new_ranges(p->allocator, b, count);
  if (!kept && count) memcpy(b->ranges, ranges, count * sizeof *ranges); /* from here on they are freed with the plan */
  for (uint32_t i = 0; kept && i < count; ++i)
    if (ranges[i].symbol) ait_free(p->allocator, ranges[i].symbol, strlen(ranges[i].symbol) + 1);
  return ait_status_join(status, kept);
}

static ait_status take_bucket(parser *p, ait_plan_bucket *b) {
  ait_status status = AIT_OK;
  ait_plan plan = {.allocator = p->allocator, .threads = 1};
  for (ait_json_read_enter(&p->r, '{'); !status && ait_json_read_next(&p->r);)
    status = ait_json_read_key_is(&p->r, "sizes") ? take_ranges(p, b) : take_work(p, &plan);
  if (!status && (p->r.failed || !b->ranges || (plan.steps && !plan.outputs))) status = unreadable(&p->r, "a bucket of a plan");
  b->plan = plan.steps && !status ? ait_alloc_zero(p->allocator, sizeof *b->plan, _Alignof(ait_plan)) : NULL;
  if (b->plan) return *b->plan = plan, AIT_OK;
  if (plan.steps && !status) status = AIT_OOM();
  ait_plan_deinit(&plan);
  return status;
}

static ait_status take_buckets(parser *p, ait_plan *plan) {
  ait_status status = AIT_OK;
  uint32_t count = 0;
  if (plan->buckets) return unreadable(&p->r, "a list that is given twice");
  AIT_TRY(ait_plan_new_buckets(plan, AIT_PLAN_BUCKETS_MAX));
  for (ait_json_read_enter(&p->r, '['); !status && ait_json_read_next(&p->r);) {
    if (count == AIT_PLAN_BUCKETS_MAX) status = ait_error(AIT_CODE_LIMIT, "a plan has more than %d buckets", AIT_PLAN_BUCKETS_MAX);
    else status = ait_error_context(take_bucket(p, &plan->buckets[count]), "bucket %u", count);
    ++count;
  }
  if (!status && p->r.failed) status = unreadable(&p->r, "a list of buckets");
  if (status) return status;
  /* Into an array of its own length: the plan frees by that. */
  ait_plan_bucket *all = plan->buckets;
  status = ait_plan_new_buckets(plan, count);
  if (status) return plan->buckets = all, status;
  if (count) memcpy(plan->buckets, all, count * sizeof *all);
  ait_free(p->allocator, all, AIT_PLAN_BUCKETS_MAX * sizeof *all);
  return AIT_OK;
}

static ait_status take_plan_member(parser *p, ait_plan *plan) {
  ait_json_reader *r = &p->r;
  if (ait_json_read_key_is(r, "target")) return take_text(p, &plan->target);
  if (ait_json_read_key_is(r, "machine")) return take_text(p, &plan->machine);
  if (ait_json_read_key_is(r, "cpu")) return take_cpu(p, plan);
  if (ait_json_read_key_is(r, "buckets")) return take_buckets(p, plan);
  if (!ait_json_read_key_is(r, "tuning")) return take_work(p, plan);
  plan->report = ait_json_read_raw(r, &plan->report_size);
  return AIT_OK;
}

static ait_status take_plan(parser *p, ait_plan *plan) {
  ait_status status = AIT_OK;
  *plan = (ait_plan){.allocator = p->allocator, .threads = 1};
  for (ait_json_read_enter(&p->r, '{'); !status && ait_json_read_next(&p->r);) status = take_plan_member(p, plan);
  if (!status && (p->r.failed || !plan->target || !plan->steps || !plan->outputs)) status = unreadable(&p->r, "a plan");
  return status;
}

static ait_status take_plans(parser *p, ait_manifest *out) {
  ait_status status = AIT_OK;
  for (ait_json_read_enter(&p->r, '['); !status && ait_json_read_next(&p->r);) {
    if (out->plan_count == MAX_PLANS) return ait_error(AIT_CODE_LIMIT, "there are more than %u plans", MAX_PLANS);
    void *plans = out->plans;
    status = ait_grow(p->allocator, &plans, &out->plan_capacity, out->plan_count + 1, sizeof *out->plans);
    out->plans = plans;
    if (!status) status = take_plan(p, &out->plans[out->plan_count++]);
  }
  return status ? status : p->r.failed ? unreadable(&p->r, "the list of plans") : AIT_OK;
}

static ait_status take_model(parser *p, ait_manifest *out) {
  for (ait_json_read_enter(&p->r, '{'); ait_json_read_next(&p->r);) {
    if (ait_json_read_key_is(&p->r, "name")) out->model_name = ait_json_read_string(&p->r, p->arena);
    else if (ait_json_read_key_is(&p->r, "producer")) out->producer = ait_json_read_string(&p->r, p->arena);
    else ait_json_read_skip(&p->r);
  }
  return p->r.failed ? unreadable(&p->r, "the model's identity") : AIT_OK;
}

ait_status ait_manifest_parse(ait_allocator a, ait_arena *arena, const char *text, size_t size, const ait_entry_source *source,
                              ait_manifest *out) {
  parser p = {.allocator = a, .arena = arena, .source = source};
  *out = (ait_manifest){.model_name = "", .producer = ""};
  ait_json_read_init(&p.r, text, size);
  ait_status status = AIT_OK;
  for (ait_json_read_enter(&p.r, '{'); !status && ait_json_read_next(&p.r);) {
    if (ait_json_read_key_is(&p.r, "model")) status = take_model(&p, out);
    else if (ait_json_read_key_is(&p.r, "plans")) status = take_plans(&p, out);
    else if (ait_json_read_key_is(&p.r, "tuning")) out->report = ait_json_read_raw(&p.r, &out->report_size);
    else if (ait_json_read_key_is(&p.r, "call")) out->call = ait_json_read_raw(&p.r, &out->call_size);
    else if (ait_json_read_key_is(&p.r, "deploy")) out->deploy = ait_json_read_raw(&p.r, &out->deploy_size);
    else ait_json_read_skip(&p.r);
  }
  if (!status) {
    ait_json_read_end(&p.r);
    if (p.r.failed) status = unreadable(&p.r, "its JSON");
  }
  if (status) ait_manifest_deinit(a, out);
  return ait_error_context(status, "entry '%s'", AIT_ENTRY_MANIFEST);
}

void ait_manifest_deinit(ait_allocator a, ait_manifest *m) {
  for (size_t i = 0; i < m->plan_count; ++i) ait_plan_deinit(&m->plans[i]);
  ait_free(a, m->plans, m->plan_capacity * sizeof *m->plans);
  *m = (ait_manifest){.model_name = "", .producer = ""};
}

/* ---- weights -----------------------------------------------------------------------------------------------------------------------*/
static ait_status take_dims(ait_json_reader *r, int64_t out[AIT_MAX_RANK], int32_t *out_rank) {
  *out_rank = 0;
  for (ait_json_read_enter(r, '['); ait_json_read_next(r);) {
    if (*out_rank == AIT_MAX_RANK) return unreadable(r, "a shape");
    out[(*out_rank)++] = ait_json_read_int(r);
  }
  return r->failed ? unreadable(r, "a shape") : AIT_OK;
}

static ait_status take_tensor(ait_json_reader *r, ait_arena *arena, ait_weight_store *store) {
  ait_weight w = {.rank = -1};
  int32_t strides = -1;
  int64_t storage = -1;
  for (ait_json_read_enter(r, '{'); ait_json_read_next(r);) {
    if (ait_json_read_key_is(r, "name")) {
      w.name = ait_json_read_string(r, arena);
    } else if (ait_json_read_key_is(r, "dtype")) {
      char *dtype = ait_json_read_string(r, arena);
      w.dtype = dtype ? ait_dtype_from_name(dtype) : AIT_DTYPE_NONE;
    } else if (ait_json_read_key_is(r, "shape")) {
      AIT_TRY(take_dims(r, w.shape, &w.rank));
    } else if (ait_json_read_key_is(r, "strides")) {
      AIT_TRY(take_dims(r, w.strides, &strides));
    } else if (ait_json_read_key_is(r, "storage")) {
      storage = ait_json_read_int(r);
    } else if (ait_json_read_key_is(r, "offset")) {
      w.offset = ait_json_read_int(r);
    } else {
      ait_json_read_skip(r);
    }
  }
  if (r->failed || !w.name || w.rank < 0 || strides != w.rank || storage < 0 || storage > UINT32_MAX) return unreadable(r, "a tensor");
  w.storage = (uint32_t)storage;
  return ait_weight_store_add(store, &w);
}

static ait_status add_storages(const ait_entry_source *source, int64_t count, ait_weight_store *store) {
  for (int64_t i = 0; i < count; ++i) {
    char name[64];
    snprintf(name, sizeof name, "weights/%lld", (long long)i);
    ait_storage *storage;
    uint32_t index;
    AIT_TRY(source->storage(source->ctx, name, &storage));
    ait_status status = ait_weight_store_add_storage(store, storage, &index);
    if (status) {
      ait_storage_release(storage);
      return status;
    }
  }
  return AIT_OK;
}

static ait_status take_weights(ait_json_reader *r, ait_arena *arena, const ait_entry_source *source, ait_weight_store *store) {
  for (ait_json_read_enter(r, '{'); ait_json_read_next(r);) {
    if (ait_json_read_key_is(r, "storages")) {
      int64_t count = ait_json_read_int(r);
      if (!r->failed) AIT_TRY(add_storages(source, count, store)); /* ends at the first entry that is not there */
    } else if (ait_json_read_key_is(r, "tensors")) {
      for (ait_json_read_enter(r, '['); ait_json_read_next(r);) AIT_TRY(take_tensor(r, arena, store));
    } else {
      ait_json_read_skip(r);
    }
  }
  ait_json_read_end(r);
  return r->failed ? unreadable(r, "its JSON") : AIT_OK;
}

ait_status ait_weights_parse(ait_allocator a, const char *text, size_t size, const ait_entry_source *source, ait_weight_store **out) {
  ait_json_reader r;
  ait_arena arena;
  ait_arena_init(&arena, a);
  ait_json_read_init(&r, text, size);
  ait_weight_store *store = NULL;
  ait_status status = ait_weight_store_create(a, &store);
  if (!status) status = take_weights(&r, &arena, source, store);
  if (status) ait_weight_store_release(store);
  else *out = store;
  ait_arena_deinit(&arena);
  return ait_error_context(status, "entry '%s'", AIT_ENTRY_WEIGHTS);
}
