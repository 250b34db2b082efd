/* The cached graph as a plan and a file: llm.json, the proof on the plan in memory. */
#include "base/json.h"
#include "deploy/internal.h"
#include "llm/evaluate.h"
#include <stdio.h>

typedef struct seal {
  dep_work *w;
  const dep_source *source;
  dep_sealing files;
  ait_text evidence;        /* of the manifest */
  dep_check check, reduced; /* before, and with fewer bits */
  ait_perplexity before, after;
  ait_tokenizer *tokenizer; /* for the text; NULL: none is given */
  bool checked, is_reduced;
  int64_t vocab;
} seal;

/* ---- llm.json -------------------------------------------------------------------------------------------------------------------------*/
static void put_states(const dep_work *w, ait_text *t) {
  ait_text_printf(t, ",\"groups\":[");
  for (uint32_t i = 0; i < w->group_count; ++i)
    ait_text_printf(t, "%s{\"kind\":\"%s\",\"window\":%lld,\"layers\":%u}", i ? "," : "", ait_lm_kind_name(w->groups[i].kind),
                    (long long)w->groups[i].window, w->groups[i].layers);
  ait_text_printf(t, "],\"states\":[");
  for (size_t i = 0; i < w->state_count; ++i)
    ait_text_printf(t, "%s{\"name\":\"%s\",\"group\":%u}", i ? "," : "", w->states[i].name, w->states[i].group);
  ait_text_printf(t, "]");
}

/* What ait.json says of decoding, and what the encoder takes. */
static ait_status put_encoder(const seal *s, ait_text *t) {
  const dep_work *w = s->w;
  const ait_json *o = ait_json_get_kind(s->source->description, "generation", AIT_JSON_OBJECT);
  static const char *const lists[] = {"start", "suppress", "begin_suppress"};
  int64_t end = -1;
  if (!w->encoder) return AIT_OK;
  (void)ait_json_get_int(o, "forced_end", &end);
  ait_text_printf(t, ",\"source\":{\"max\":%lld,\"room\":%lld,\"vocab\":%lld},\"generation\":{\"forced_end\":%lld",
                  (long long)w->max_source, (long long)w->memory_room, (long long)w->source_vocab, (long long)end);
  for (size_t k = 0; k < AIT_COUNT(lists); ++k) {
    const ait_json *list = ait_json_get_kind(o, lists[k], AIT_JSON_ARRAY);
    ait_text_printf(t, ",\"%s\":[", lists[k]);
    for (uint32_t i = 0; list && i < list->count; ++i) {
      if (list->as.items[i].kind != AIT_JSON_INT) return ait_error(AIT_CODE_INVALID_MODEL, "ait.json: 'generation.%s'", lists[k]);
      ait_text_printf(t, "%s%lld", i ? "," : "", (long long)list->as.items[i].as.i);
    }
    ait_text_printf(t, "]");
  }
  const ait_json *forced = ait_json_get_kind(o, "forced", AIT_JSON_ARRAY);
  ait_text_printf(t, ",\"forced\":[");
  for (uint32_t i = 0; forced && i < forced->count; ++i) {
    const ait_json *pair = &forced->as.items[i];
    if (pair->kind != AIT_JSON_ARRAY || pair->count != 2 || pair->as.items[0].kind != AIT_JSON_INT ||
        pair->as.items[1].kind != AIT_JSON_INT)
      return ait_error(AIT_CODE_INVALID_MODEL, "ait.json: 'generation.forced' is not a list of [position, token]");
    ait_text_printf(t, "%s[%lld,%lld]", i ? "," : "", (long long)pair->as.items[0].as.i, (long long)pair->as.items[1].as.i);
  }
  ait_text_printf(t, "]}");
  return AIT_OK;
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
  if (s->files.draft) ait_text_printf(t, ",\"draft\":{\"bytes\":%zu}", ait_file_map_size(s->files.draft));
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
  ait_text *t = &s->files.section;
  const dep_source *source = s->source;
  t->length = 0;
  ait_text_printf(t, "{\"format\":1,\"vocab\":%lld,\"max_seq\":%lld,\"page_size\":%lld,\"bos\":%lld,\"pad\":%lld,\"stops\":[",
                  (long long)s->vocab, (long long)s->w->max_seq, (long long)s->w->page_size, (long long)source->bos,
                  (long long)source->pad);
  for (uint32_t i = 0; i < source->stop_count; ++i) ait_text_printf(t, "%s%lld", i ? "," : "", (long long)source->stops[i]);
  ait_text_printf(t, "],\"cached\":%s", s->w->uncached ? "false" : "true");
  if (s->w->switch_at) ait_text_printf(t, ",\"switch_at\":%lld", (long long)s->w->switch_at);
  put_states(s->w, t);
  AIT_TRY(put_encoder(s, t));
  put_evidence(s, t);
  ait_text_printf(t, "}\n");
  return t->failed ? AIT_OOM() : AIT_OK;
}

/* ---- the proof, on the plan in memory -------------------------------------------------------------------------------------------------*/
/* The plan as a model, as if it had been loaded from the file. */
static ait_status open_plan(seal *s, ait_model **model, ait_lm **lm) {
  *lm = NULL;
  AIT_TRY(dep_sealing_model(&s->files, model));
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

static ait_status make_plan(seal *s) {
  AIT_TRY(dep_sealing_plan(&s->files));
  return write_section(s);
}

static ait_status run(seal *s, const ait_graph *original, const char *path, char **out_json) {
  const ait_graph *g = s->w->g;
  const ait_value_info *logits = &g->values[g->outputs[0].arg.as.value];
  if (!ait_dim_is_const(g, logits->shape[1], &s->vocab)) return ait_error(AIT_CODE_UNSUPPORTED, "the vocabulary's size is not fixed");
  AIT_TRY(dep_draft_open(s->w, path, s->vocab, &s->files.draft));
  bool evaluates = s->w->options->eval_text != NULL, first = original || evaluates;
  AIT_TRY(dep_keep_tables(s->w));
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
  s->files.deploy_json = s->evidence.data;
  AIT_TRY(dep_sealing_write(&s->files, s->source, path));
  return dep_sealing_report(&s->files, out_json);
}

/* Said before the work: what the text needs. */
static ait_status open_text(seal *s) {
  if (!s->w->options->eval_text) return AIT_OK;
  if (s->w->encoder) return ait_error(AIT_CODE_UNSUPPORTED, "perplexity of a model with an encoder");
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
  seal s = {.w = w, .source = source};
  dep_sealing_init(&s.files, w, "llm.json");
  ait_text_init(&s.evidence, w->a);
  s.files.parts[1].g = w->encoder;
  s.files.part_count = w->encoder ? 2 : 1;
  ait_status status = open_text(&s);
  if (!status) status = run(&s, original, path, out_json);
  ait_tokenizer_destroy(s.tokenizer);
  ait_text_deinit(&s.evidence);
  dep_sealing_deinit(&s.files);
  return status;
}
