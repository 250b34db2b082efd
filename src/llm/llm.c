/* A deployed file as one thing, and the engine on it. */
#include "llm/engine.h"
#include "runtime/runtime.h"
#include <stdatomic.h>

struct ait_llm {
  ait_allocator allocator;
  atomic_size_t refs;
  ait_model *model;
  ait_lm *lm;
  ait_tokenizer *tokenizer; /* NULL: the file has none */
  ait_llm *draft;           /* that the file brings; NULL: none */
};

/* From the model on, which is taken in any case. */
static ait_status make(ait_allocator a, ait_model *model, ait_llm **out) {
  ait_llm *l = ait_alloc_zero(a, sizeof *l, _Alignof(ait_llm));
  if (!l) return ait_model_release(model), AIT_OOM();
  l->allocator = a;
  l->model = model;
  atomic_init(&l->refs, 1);
  ait_status status = ait_lm_create(a, l->model, &l->lm);
  size_t size = 0;
  const char *json = status == AIT_OK ? ait_lm_entry(l->lm, "tokenizer.json", &size) : NULL;
  if (json) status = ait_tokenizer_parse(a, json, size, &l->tokenizer);
  if (status != AIT_OK) return ait_llm_release(l), status;
  *out = l;
  return AIT_OK;
}

static ait_status load_draft(ait_llm *l, const ait_load_options *options) {
  ait_model *model;
  if (!ait_lm_entry(l->lm, AIT_ENTRY_DRAFT, NULL)) return AIT_OK;
  AIT_TRY(ait_model_load_inside(l->model, AIT_ENTRY_DRAFT, options, &model));
  return ait_error_context(make(l->allocator, model, &l->draft), "entry '" AIT_ENTRY_DRAFT "'");
}

ait_status ait_llm_load(const char *path, const ait_load_options *options, ait_llm **out) {
  ait_load_options known;
  ait_load_options_init(&known);
  if (options) memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
  known.check_when_read = true;
  ait_model *model;
  ait_llm *l = NULL;
  *out = NULL;
  AIT_TRY(ait_model_load(path, &known, &model));
  ait_status status = make(known.allocator, model, &l);
  if (status == AIT_OK) status = ait_error_context(load_draft(l, &known), "cannot load '%s'", path);
  if (status != AIT_OK) return ait_llm_release(l), status;
  *out = l;
  return AIT_OK;
}

ait_lm *lm_of(const ait_llm *l) { return l->lm; }

ait_llm *ait_llm_retain(ait_llm *l) {
  atomic_fetch_add(&l->refs, 1);
  return l;
}

void ait_llm_release(ait_llm *l) {
  if (!l || atomic_fetch_sub(&l->refs, 1) > 1) return;
  ait_llm_release(l->draft);
  ait_tokenizer_destroy(l->tokenizer);
  ait_lm_destroy(l->lm);
  ait_model_release(l->model);
  ait_free(l->allocator, l, sizeof *l);
}

ait_llm_info ait_llm_describe(const ait_llm *l) {
  const ait_lm_info *in = ait_lm_describe(l->lm);
  ait_llm_info out = {.vocab = in->vocab, .max_seq = in->max_seq, .page_size = in->page_size, .cached = in->cached};
  out.encoder = in->has_source;
  out.max_source = in->max_source;
  out.source_vocab = in->source_vocab;
  out.source_rank = in->source_rank;
  memcpy(out.source_shape, in->source_shape, sizeof out.source_shape);
  for (uint32_t g = 0; g < in->group_count; ++g) {
    if (in->groups[g].kind != AIT_LM_PAGES) out.slot_bytes += in->groups[g].unit_bytes;
    else if (in->groups[g].window == 0 && in->page_size > 0) out.token_bytes += in->groups[g].unit_bytes / (size_t)in->page_size;
  }
  return out;
}

ait_status ait_llm_check_source(const ait_llm *l, const ait_tensor *source) { return ait_lm_check_source(l->lm, source); }
ait_llm *ait_llm_draft(const ait_llm *l) { return l->draft; }
const ait_tokenizer *ait_llm_tokenizer(const ait_llm *l) { return l->tokenizer; }
const char *ait_llm_entry(const ait_llm *l, const char *name, size_t *out_size) { return ait_lm_entry(l->lm, name, out_size); }

ait_status ait_llm_chat_template(const ait_llm *l, ait_chat_template **out) {
  size_t source_size = 0, config_size = 0;
  const char *source = ait_lm_entry(l->lm, "chat_template.jinja", &source_size);
  const char *config = ait_lm_entry(l->lm, "tokenizer_config.json", &config_size);
  return ait_chat_template_make(l->allocator, source, source_size, config, config_size, NULL, out);
}

/* ---- engine --------------------------------------------------------------------------------------------------------------------------*/
static ait_status run_context(void *ctx, const ait_lm_batch *batch) { return ait_lm_run(ctx, batch); }
static ait_status encode_context(void *ctx, int32_t unit, const ait_tensor *source) { return ait_lm_encode(ctx, unit, source); }
static ait_status copy_context(void *ctx, uint32_t group, int32_t from, int32_t to) { return ait_lm_copy(ctx, group, from, to); }

/* A context of the engine's sizes; options->units and max_rows are set. */
static ait_status make_context(const ait_engine *e, const ait_llm *llm, ait_lm_context_options *o, lm_model *model, ait_lm_context **out) {
  o->allocator = e->allocator;
  o->threads = e->options.threads;
  o->max_tokens = e->options.max_tokens;
  o->max_sequences = e->lane_count;
  o->max_seq = e->max_len;
  AIT_TRY(ait_lm_context_create(llm->lm, o, out));
  model->ctx = *out;
  return e->options.warm ? ait_lm_warm(*out) : AIT_OK;
}

static ait_status open_context(ait_engine *e, const lm_cache_shape *shape) {
  ait_lm_context_options o = {.max_rows = e->max_rows};
  for (uint32_t g = 0; g < shape->groups; ++g) o.units[e->group_of[g]] = shape->pages[g];
  if (e->has_slots) o.units[e->slot_group] = shape->slots;
  for (uint32_t g = 0; g < e->model.info->group_count; ++g)
    if (e->model.info->groups[g].kind == AIT_LM_MEMORY) o.units[g] = e->lane_count;
  return make_context(e, e->llm, &o, &e->model, &e->context);
}

static ait_status open_draft(ait_engine *e) {
  ait_lm_context_options o = {.max_rows = e->lane_count};
  if (e->options.speculation != AIT_SPECULATE_DRAFT) return AIT_OK;
  for (uint32_t g = 0; g < e->draft.model.info->group_count; ++g) o.units[g] = e->lane_count * e->draft.blocks;
  return make_context(e, e->draft_llm, &o, &e->draft.model, &e->draft_context);
}

static ait_status open_engine(ait_engine *e) {
  lm_cache_shape shape;
  AIT_TRY(lm_engine_plan(e, &shape));
  AIT_TRY(lm_engine_build(e, &shape));
  AIT_TRY(open_context(e, &shape));
  return open_draft(e);
}

ait_status ait_engine_create(ait_llm *llm, const ait_engine_options *options, ait_engine **out) {
  ait_engine *e = lm_engine_new(options);
  if (!e) return AIT_OOM();
  e->llm = ait_llm_retain(llm);
  e->tokenizer = llm->tokenizer;
  e->model = (lm_model){.info = ait_lm_describe(llm->lm), .run = run_context, .copy = copy_context, .encode = encode_context};
  if (e->options.speculation == AIT_SPECULATE_DRAFT) {
    const ait_llm *draft = e->options.draft ? e->options.draft : llm->draft;
    if (!draft) return ait_engine_destroy(e), ait_error(AIT_CODE_INVALID_ARGUMENT, "no draft model was given, and the file brings none");
    if (e->model.info->has_source) return ait_engine_destroy(e), ait_error(AIT_CODE_UNSUPPORTED, "drafts for a model with an encoder");
    e->draft_llm = ait_llm_retain(e->options.draft ? e->options.draft : llm->draft);
    e->draft.model = (lm_model){.info = ait_lm_describe(e->draft_llm->lm), .run = run_context, .copy = copy_context};
  }
  ait_status status = open_engine(e);
  if (status != AIT_OK) return ait_engine_destroy(e), status;
  *out = e;
  return AIT_OK;
}

void ait_engine_destroy(ait_engine *e) {
  if (!e) return;
  ait_lm_context *context = e->context, *draft = e->draft_context;
  ait_llm *llm = e->llm, *draft_llm = e->draft_llm;
  lm_engine_free(e); /* its thread first */
  ait_lm_context_destroy(context);
  ait_lm_context_destroy(draft);
  ait_llm_release(llm);
  ait_llm_release(draft_llm);
}
