/* The cached graph as a plan and a file. */
#include "artifact/artifact.h"
#include "deploy/internal.h"
#include "llm/evaluate.h"
#include "runtime/runtime.h"
#include "tune/tune.h"
#include <stdio.h>

typedef struct seal {
  dep_work *w;
  const dep_source *source;
  ait_region *region;
  ait_plan plan;
  ait_weight_store *weights; /* those that the graph reads */
  ait_text section;          /* llm.json */
  ait_text evidence;         /* of the manifest */
  dep_check check, reduced;  /* before, and with fewer bits */
  ait_perplexity before, after;
  ait_tokenizer *tokenizer; /* for the text; NULL: none is given */
  bool checked, is_reduced;
  int64_t vocab;
} seal;

/* ---- weights that are read ------------------------------------------------------------------------------------------------------------*/
static ait_status used_weights(const ait_graph *g, ait_weight_store **out) {
  ait_weight_store *store;
  size_t storages = ait_weight_store_storage_count(g->weights);
  uint32_t *moved = ait_alloc_zero(g->allocator, (storages + 1) * sizeof *moved, 4); /* index + 1 */
  if (!moved) return AIT_OOM();
  ait_status status = ait_weight_store_create(g->allocator, &store);
  if (status) goto cleanup;
  for (size_t i = 0; i < g->input_count && !status; ++i) {
    const ait_weight *from = g->inputs[i].kind == AIT_INPUT_USER ? NULL : ait_weight_store_find(g->weights, g->inputs[i].name);
    if (!from || ait_weight_store_find(store, from->name)) continue;
    ait_weight to = *from;
    uint32_t *index = &moved[from->storage];
    if (!*index) {
      status = ait_weight_store_add_storage(store, ait_storage_retain(ait_weight_store_storage(g->weights, from->storage)), index);
      ++*index;
    }
    to.storage = *index - 1;
    if (!status) status = ait_weight_store_add(store, &to);
  }
  if (status) ait_weight_store_release(store);
  else *out = store;
cleanup:
  ait_free(g->allocator, moved, (storages + 1) * sizeof *moved);
  return status;
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

/* ---- llm.json -------------------------------------------------------------------------------------------------------------------------*/
static void put_states(const dep_work *w, ait_text *t) {
  ait_text_printf(t, ",\"groups\":[");
  for (uint32_t i = 0; i < w->group_count; ++i)
    ait_text_printf(t, "%s{\"kind\":\"%s\",\"window\":%lld,\"layers\":%u}", i ? "," : "",
                    w->groups[i].kind == AIT_LM_SLOTS ? "slots" : "pages", (long long)w->groups[i].window, w->groups[i].layers);
  ait_text_printf(t, "],\"states\":[");
  for (size_t i = 0; i < w->state_count; ++i)
    ait_text_printf(t, "%s{\"name\":\"%s\",\"group\":%u}", i ? "," : "", w->states[i].name, w->states[i].group);
  ait_text_printf(t, "]");
}

static void put_check(ait_text *t, const char *key, const dep_check *c) {
  ait_text_printf(t, ",\"%s\":{\"length\":%lld,\"prefill\":", key, (long long)c->length);
  ait_text_json_double(t, c->prefill);
  ait_text_printf(t, ",\"steps\":");
  ait_text_json_double(t, c->steps);
  ait_text_printf(t, ",\"pieces\":");
  ait_text_json_double(t, c->pieces);
  ait_text_printf(t, "}");
}

static void put_perplexity(ait_text *t, const char *key, const ait_perplexity *p) {
  ait_text_printf(t, ",\"%s\":{\"perplexity\":", key);
  ait_text_json_double(t, p->perplexity);
  ait_text_printf(t, ",\"bits_per_byte\":");
  ait_text_json_double(t, p->bits_per_byte);
  ait_text_printf(t, ",\"nll\":");
  ait_text_json_double(t, p->nll);
  ait_text_printf(t, "}");
}

/* Each member with a comma in front. */
static void put_evidence(const seal *s, ait_text *t) {
  const ait_deploy_options *o = s->w->options;
  const struct {
    const char *key, *value;
  } words[] = {{"quantize", o->quantize ? o->quantize : "keep"},
               {"embedding", o->embedding ? o->embedding : "keep"},
               {"head", o->head       ? o->head
                        : o->quantize ? o->quantize
                                      : "keep"},
               {"kv_dtype", o->kv_dtype ? o->kv_dtype : "float32"}};
  ait_text_printf(t, ",\"precision\":{\"group\":%lld", (long long)(o->group ? o->group : 32));
  for (size_t i = 0; i < AIT_COUNT(words); ++i) ait_text_printf(t, ",\"%s\":\"%s\"", words[i].key, words[i].value);
  ait_text_printf(t, "}");
  if (s->checked) put_check(t, "proof", &s->check);
  if (s->checked && s->is_reduced) put_check(t, "reduced", &s->reduced);
  if (s->before.tokens == 0) return;
  ait_text_printf(t, ",\"perplexity\":{\"text_bytes\":%zu,\"tokens\":%lld,\"windows\":%lld", o->eval_size, (long long)s->before.tokens,
                  (long long)s->before.windows);
  put_perplexity(t, "float32", &s->before);
  if (s->after.tokens > 0) put_perplexity(t, "reduced", &s->after);
  ait_text_printf(t, "}");
}

static ait_status write_evidence(seal *s) {
  s->evidence.length = 0;
  put_evidence(s, &s->evidence);
  ait_text_printf(&s->evidence, "}");
  if (s->evidence.failed) return AIT_OOM();
  s->evidence.data[0] = '{'; /* in place of the first comma */
  return AIT_OK;
}

static ait_status write_section(seal *s) {
  ait_text *t = &s->section;
  const dep_source *source = s->source;
  t->length = 0;
  ait_text_printf(t, "{\"format\":1,\"vocab\":%lld,\"max_seq\":%lld,\"page_size\":%lld,\"bos\":%lld,\"pad\":%lld,\"stops\":[",
                  (long long)s->vocab, (long long)s->w->max_seq, (long long)s->w->page_size, (long long)source->bos,
                  (long long)source->pad);
  for (uint32_t i = 0; i < source->stop_count; ++i) ait_text_printf(t, "%s%lld", i ? "," : "", (long long)source->stops[i]);
  ait_text_printf(t, "],\"cached\":%s", s->w->uncached ? "false" : "true");
  if (s->w->switch_at) ait_text_printf(t, ",\"switch_at\":%lld", (long long)s->w->switch_at);
  put_states(s->w, t);
  put_evidence(s, t);
  ait_text_printf(t, "}\n");
  return t->failed ? AIT_OOM() : AIT_OK;
}

/* ---- the proof, on the plan in memory -------------------------------------------------------------------------------------------------*/
static const void *find_section(void *owner, const char *name, size_t *out_size) {
  seal *s = owner;
  if (strcmp(name, "llm.json")) return NULL;
  *out_size = s->section.length;
  return s->section.data;
}

/* The plan as a model, as if it had been loaded from the file. */
static ait_status open_plan(seal *s, ait_model **model, ait_lm **lm) {
  ait_model_parts parts = {.allocator = s->w->a,
                           .portable = s->region,
                           .weights = ait_weight_store_provider(s->weights),
                           .plans = &s->plan,
                           .plan_count = 1,
                           .plans_only = true,
                           .cpu_mask = UINT64_MAX,
                           .code_allowed = true,
                           .owner = s,
                           .entry = find_section};
  *lm = NULL;
  AIT_TRY(ait_model_build(&parts, model));
  return ait_lm_create(s->w->a, *model, lm);
}

static ait_status compare(seal *s, const ait_graph *original, dep_check *out) {
  ait_model *model = NULL;
  ait_lm *lm;
  ait_status status = open_plan(s, &model, &lm);
  if (!status) status = dep_compare(original, lm, s->w->a, out);
  ait_lm_destroy(lm);
  ait_model_release(model);
  return status;
}

static ait_status measure(seal *s, ait_perplexity *out) {
  const ait_deploy_options *o = s->w->options;
  lm_evaluation what = {.tokenizer = s->tokenizer, .text = o->eval_text, .size = o->eval_size};
  ait_model *model = NULL;
  ait_status status = open_plan(s, &model, &what.lm);
  if (!status) status = lm_perplexity(&what, out);
  ait_lm_destroy(what.lm);
  ait_model_release(model);
  return ait_error_context(status, "perplexity of the text");
}

static ait_status prove(seal *s, const ait_graph *original) {
  AIT_TRY(compare(s, original, &s->check));
  s->checked = true;
  double worst = s->check.prefill > s->check.steps ? s->check.prefill : s->check.steps;
  if (s->check.pieces > worst) worst = s->check.pieces;
  if (worst <= 2e-4) return AIT_OK;
  return ait_error(
      AIT_CODE_MISMATCH,
      "the cached graph does not give the original's logits: relative difference %.2g in prefill, %.2g token by token, %.2g in "
      "pieces",
      s->check.prefill, s->check.steps, s->check.pieces);
}

/* ---- the file -------------------------------------------------------------------------------------------------------------------------*/
static ait_status write_file(seal *s, const char *path) {
  ait_artifact_extra extras[10] = {{"llm.json", s->section.data, s->section.length}};
  size_t count = 1;
  for (uint32_t i = 0; i < s->source->file_count; ++i)
    extras[count++] = (ait_artifact_extra){s->source->files[i].name, s->source->files[i].text, s->source->files[i].size};
  ait_artifact_content content = {.portable = s->region,
                                  .weights = s->weights,
                                  .plans = &s->plan,
                                  .plan_count = 1,
                                  .deploy_json = s->evidence.data,
                                  .producer = s->w->g->producer,
                                  .model_name = s->w->g->name,
                                  .extras = extras,
                                  .extra_count = count};
  return ait_artifact_write(s->w->a, path, &content);
}

static ait_status report(const seal *s, char **out) {
  *out = ait_alloc(ait_allocator_default(), s->section.length + 1, 1);
  if (!*out) return AIT_OOM();
  memcpy(*out, s->section.data, s->section.length + 1);
  return AIT_OK;
}

static void drop_plan(seal *s) {
  ait_plan_deinit(&s->plan);
  ait_graph_region_destroy(s->w->a, s->region);
  ait_weight_store_release(s->weights);
  s->plan = (ait_plan){.allocator = s->w->a};
  s->region = NULL;
  s->weights = NULL;
}

static ait_status make_plan(seal *s) {
  dep_work *w = s->w;
  ait_graph *g = w->g;
  char target[256];
  drop_plan(s);
  AIT_TRY(drop_unread(g));
  AIT_TRY(input_names(g));
  AIT_TRY(ait_graph_verify(g));
  AIT_TRY(used_weights(g, &s->weights));
  AIT_TRY(ait_graph_region(g, w->a, &s->region));
  ait_plan_target(ait_cpu_features(), target, sizeof target);
  AIT_TRY(ait_plan_compile(w->a, w->options->backend ? w->options->backend : "native", NULL, s->region,
                           ait_weight_store_provider(s->weights), UINT64_MAX, target, &s->plan));
  return write_section(s);
}

static ait_status run(seal *s, const ait_graph *original, const char *path, char **out_json) {
  const ait_graph *g = s->w->g;
  const ait_value_info *logits = &g->values[g->outputs[0].arg.as.value];
  if (!ait_dim_is_const(g, logits->shape[1], &s->vocab)) return ait_error(AIT_CODE_UNSUPPORTED, "the vocabulary's size is not fixed");
  bool evaluates = s->w->options->eval_text != NULL, first = original || evaluates;
  if (first) AIT_TRY(make_plan(s));
  if (original) AIT_TRY(prove(s, original));
  if (evaluates) AIT_TRY(measure(s, &s->before));
  if (evaluates) dep_tell(s->w, "perplexity %.4f in float32, over %lld tokens", s->before.perplexity, (long long)s->before.tokens);
  AIT_TRY(dep_reduce(s->w, &s->is_reduced));
  if (!first || s->is_reduced) AIT_TRY(make_plan(s));
  if (original && s->is_reduced) AIT_TRY(compare(s, original, &s->reduced));
  if (evaluates && s->is_reduced) AIT_TRY(measure(s, &s->after));
  if (evaluates && s->is_reduced)
    dep_tell(s->w, "perplexity %.4f with fewer bits: %+.3f %%", s->after.perplexity,
             100 * (s->after.perplexity / s->before.perplexity - 1));
  AIT_TRY(write_section(s));
  AIT_TRY(write_evidence(s));
  AIT_TRY(write_file(s, path));
  return report(s, out_json);
}

/* Said before the work: what the text needs. */
static ait_status open_text(seal *s) {
  if (!s->w->options->eval_text) return AIT_OK;
  if (s->w->uncached)
    return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "perplexity of a model without caches"),
                          "without --allow-unmatched, or without --eval");
  for (uint32_t i = 0; i < s->source->file_count; ++i)
    if (!strcmp(s->source->files[i].name, "tokenizer.json"))
      return ait_tokenizer_parse(s->w->a, s->source->files[i].text, s->source->files[i].size, &s->tokenizer);
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "a text to evaluate, but no tokenizer.json beside the model"),
                        "a folder of python -m ait.export_lm with the tokenizer's files");
}

ait_status dep_seal(dep_work *w, const dep_source *source, const ait_graph *original, const char *path, char **out_json) {
  seal s = {.w = w, .source = source, .plan = {.allocator = w->a}};
  ait_text_init(&s.section, w->a);
  ait_text_init(&s.evidence, w->a);
  ait_status status = open_text(&s);
  if (!status) status = run(&s, original, path, out_json);
  ait_tokenizer_destroy(s.tokenizer);
  ait_text_deinit(&s.section);
  ait_text_deinit(&s.evidence);
  drop_plan(&s);
  return status;
}
