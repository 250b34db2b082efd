/* The encoder of a deployed pair: its graph and plan from the file, its input, one run. */
#include "llm/encoder.h"
#include "runtime/runtime.h"

struct lm_encoder {
  ait_allocator allocator;
  ait_region *region;
  ait_plan plan;
  bool planned;
  ait_model *model;
  const ait_lm_info *info;
};

static ait_status damaged(const char *what) {
  return ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "the file's encoder: %s", what), "make it again: ait deploy");
}

/* ---- llm.json ------------------------------------------------------------------------------------------------------------------------*/
static ait_status read_ids(ait_arena *arena, const ait_json *o, const char *key, int64_t below, const int32_t **out, uint32_t *out_count) {
  const ait_json *list = ait_json_get_kind(o, key, AIT_JSON_ARRAY);
  uint32_t n = list ? list->count : 0;
  int32_t *ids = AIT_ARENA_ARRAY(arena, int32_t, (size_t)n + 1);
  if (!ids) return AIT_OOM();
  for (uint32_t i = 0; i < n; ++i) {
    if (list->as.items[i].kind != AIT_JSON_INT || list->as.items[i].as.i < 0 || list->as.items[i].as.i >= below) return damaged(key);
    ids[i] = (int32_t)list->as.items[i].as.i;
  }
  *out = ids;
  *out_count = n;
  return AIT_OK;
}

static ait_status read_forced(ait_arena *arena, const ait_json *o, ait_lm_info *f) {
  const ait_json *list = ait_json_get_kind(o, "forced", AIT_JSON_ARRAY);
  uint32_t n = list ? list->count : 0;
  int32_t *pairs = AIT_ARENA_ARRAY(arena, int32_t, 2 * (size_t)n + 1);
  if (!pairs) return AIT_OOM();
  for (uint32_t i = 0; i < n; ++i) {
    const ait_json *pair = &list->as.items[i];
    if (pair->kind != AIT_JSON_ARRAY || pair->count != 2) return damaged("forced");
    const ait_json *at = &pair->as.items[0], *token = &pair->as.items[1];
    if (at->kind != AIT_JSON_INT || token->kind != AIT_JSON_INT || at->as.i < 0 || at->as.i > INT32_MAX || token->as.i < 0 ||
        token->as.i >= f->vocab)
      return damaged("forced");
    pairs[2 * i] = (int32_t)at->as.i, pairs[2 * i + 1] = (int32_t)token->as.i;
  }
  f->forced = pairs;
  f->forced_count = n;
  return AIT_OK;
}

static ait_status read_section(ait_arena *arena, const ait_json *root, ait_lm_info *f) {
  const ait_json *source = ait_json_get_kind(root, "source", AIT_JSON_OBJECT), *o = ait_json_get_kind(root, "generation", AIT_JSON_OBJECT);
  if (!source || !o) return damaged("no 'source' and 'generation'");
  if (!ait_json_get_int(source, "max", &f->max_source) || f->max_source < 1 || f->max_source > 1 << 24 ||
      !ait_json_get_int(source, "vocab", &f->source_vocab) || f->source_vocab < 0)
    return damaged("source");
  if (!ait_json_get_int(o, "forced_end", &f->forced_end) || f->forced_end >= f->vocab) return damaged("forced_end");
  AIT_TRY(read_ids(arena, o, "start", f->vocab, &f->start, &f->start_count));
  AIT_TRY(read_ids(arena, o, "suppress", INT32_MAX, &f->suppress, &f->suppress_count));
  AIT_TRY(read_ids(arena, o, "begin_suppress", INT32_MAX, &f->begin_suppress, &f->begin_suppress_count));
  return read_forced(arena, o, f);
}

/* ---- the graph -----------------------------------------------------------------------------------------------------------------------*/
static ait_status read_input(const lm_encoder *e, ait_lm_info *f) {
  ait_port port;
  if (ait_model_input_count(e->model) != 1 || ait_model_output_count(e->model) < 1) return damaged("inputs");
  AIT_TRY(ait_model_input(e->model, 0, &port));
  bool ids = port.dtype == AIT_I64 || port.dtype == AIT_I32;
  if (port.kind != AIT_VALUE_TENSOR || port.rank < 2 || port.rank > AIT_MAX_RANK || (!ids && port.dtype != AIT_F32) ||
      ids != (f->source_vocab > 0) || port.shape[0].max != 1)
    return damaged("its input");
  f->source_rank = port.rank - 1;
  f->source_dtype = port.dtype;
  for (int32_t d = 1; d < port.rank; ++d) f->source_shape[d - 1] = port.shape[d].min == port.shape[d].max ? port.shape[d].min : -1;
  f->has_source = true;
  return AIT_OK;
}

static ait_status build(lm_encoder *e, ait_model *main) {
  size_t size, blob_size;
  const void *graph = ait_model_entry(main, AIT_LM_SECOND_GRAPH, &size), *blob = ait_model_entry(main, AIT_LM_SECOND_BLOB, &blob_size);
  if (!graph || !blob) return damaged("its graph is missing");
  AIT_TRY(ait_error_context(ait_region_decode(e->allocator, graph, size, &e->region), "%s", AIT_LM_SECOND_GRAPH));
  AIT_TRY(ait_plan_of_blob(e->allocator, "native", e->region, blob, blob_size, "", &e->plan));
  e->planned = true;
  ait_model_parts parts = {.allocator = e->allocator,
                           .portable = e->region,
                           .weights = ait_model_weights(main),
                           .plans = &e->plan,
                           .plan_count = 1,
                           .cpu_mask = UINT64_MAX,
                           .code_allowed = false,
                           .signature = {.key_name = "", .fingerprint = ""}};
  return ait_model_build(&parts, &e->model);
}

ait_status lm_encoder_open(ait_allocator a, ait_arena *arena, ait_model *model, const ait_json *root, ait_lm_info *info, lm_encoder **out) {
  size_t size;
  *out = NULL;
  info->forced_end = -1;
  if (!ait_model_entry(model, AIT_LM_SECOND_GRAPH, &size)) return AIT_OK;
  AIT_TRY(read_section(arena, root, info));
  lm_encoder *e = ait_alloc_zero(a, sizeof *e, _Alignof(lm_encoder));
  if (!e) return AIT_OOM();
  e->allocator = a;
  e->info = info;
  ait_status status = build(e, model);
  if (!status) status = read_input(e, info);
  if (status) lm_encoder_destroy(e);
  else *out = e;
  return status;
}

void lm_encoder_destroy(lm_encoder *e) {
  if (!e) return;
  ait_model_release(e->model);
  if (e->planned) ait_plan_deinit(&e->plan);
  ait_region_destroy(e->region);
  ait_free(e->allocator, e, sizeof *e);
}

ait_model *lm_encoder_model(const lm_encoder *e) { return e->model; }

/* ---- running -------------------------------------------------------------------------------------------------------------------------*/
ait_status lm_check_source(const ait_lm_info *f, const ait_tensor *source) {
  const ait_tensor *t = source;
  int32_t skip = t->rank == f->source_rank + 1 && t->shape[0] == 1;
  bool ids = f->source_vocab > 0, fits = ids ? t->dtype == AIT_I32 || t->dtype == AIT_I64 : ait_dtype_is_float(t->dtype);
  if (!fits || t->rank - skip != f->source_rank)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "the encoder takes %s with %d dimensions, not %s with %d", ids ? "token ids" : "features",
                     (int)f->source_rank, ait_dtype_name(t->dtype), (int)t->rank);
  for (int32_t d = 0; d < f->source_rank; ++d) {
    int64_t n = t->shape[d + skip], want = f->source_shape[d];
    if (want >= 0 ? n == want : n >= 1 && n <= f->max_source) continue;
    if (want >= 0)
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "dimension %d of the encoder's input is %lld, it must be %lld", (int)d, (long long)n,
                       (long long)want);
    return ait_error_hint(
        ait_error(AIT_CODE_LIMIT, "the encoder's input has length %lld, it may have 1 to %lld", (long long)n, (long long)f->max_source),
        "ait deploy --max-source");
  }
  for (int64_t i = 0, n = ids ? ait_tensor_count(t) : 0; i < n; ++i) {
    const char *at = (const char *)t->data + i * t->strides[t->rank - 1] * (int64_t)ait_dtype_size(t->dtype);
    int64_t id = t->dtype == AIT_I32 ? *(const int32_t *)(const void *)at : *(const int64_t *)(const void *)at;
    if (id < 0 || id >= f->source_vocab)
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "token %lld of the encoder's input, number %lld, is not among its %lld", (long long)id,
                       (long long)i, (long long)f->source_vocab);
  }
  return AIT_OK;
}

ait_status lm_encoder_run(const lm_encoder *e, ait_session *session, const ait_tensor *source, ait_value *outputs) {
  ait_tensor own;
  AIT_TRY(lm_check_source(e->info, source));
  AIT_TRY(ait_tensor_cast(e->allocator, source, e->info->source_dtype, &own));
  ait_tensor input = own;
  input.storage = NULL;
  if (own.rank == e->info->source_rank) {
    input.rank = own.rank + 1;
    for (int32_t d = own.rank; d > 0; --d) input.shape[d] = own.shape[d - 1];
    input.shape[0] = 1;
    ait_tensor_set_contiguous(&input);
  }
  size_t count = ait_model_output_count(e->model);
  for (size_t i = 0; i < count; ++i) outputs[i] = (ait_value){.kind = AIT_VALUE_NONE};
  ait_value value = ait_value_tensor(input);
  ait_status status = ait_session_run(session, &value, 1, outputs, count);
  ait_tensor_release(&own);
  return status;
}
