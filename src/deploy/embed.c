/* An encoder of texts: its graph as it is, with what the caller must know (embed.json), and the plan beside the oracle. */
#include "base/json.h"
#include "deploy/internal.h"
#include "tune/tune.h"
#include <ait/session.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 2, LENGTH = 11, SHORTER = 7 };

/* ---- embed.json -----------------------------------------------------------------------------------------------------------------------*/
static void put_key(ait_text *t, const char *key) { ait_text_printf(t, ",\"%s\":", key); }

static void put_flag(ait_text *t, const ait_json *o, const char *key) {
  const ait_json *v = ait_json_get_kind(o, key, AIT_JSON_BOOL);
  if (!v) return;
  put_key(t, key);
  ait_text_printf(t, v->as.b ? "true" : "false");
}

static void put_number(ait_text *t, const ait_json *o, const char *key) {
  int64_t n;
  if (!ait_json_get_int(o, key, &n)) return;
  put_key(t, key);
  ait_text_printf(t, "%lld", (long long)n);
}

static void put_text(ait_text *t, const ait_json *v) { ait_text_json_string(t, v->as.string, v->count); }

static ait_status put_texts(ait_text *t, const ait_json *o, const char *key, ait_json_kind kind) {
  const ait_json *list = ait_json_get_kind(o, key, kind);
  bool object = kind == AIT_JSON_OBJECT;
  if (!list) return AIT_OK;
  put_key(t, key);
  ait_text_printf(t, object ? "{" : "[");
  for (uint32_t i = 0; i < list->count; ++i) {
    const ait_json *v = &list->as.items[i];
    if (v->kind != AIT_JSON_STRING) return ait_error(AIT_CODE_INVALID_MODEL, "ait.json: 'embed.%s' holds what is no text", key);
    if (i) ait_text_printf(t, ",");
    if (object) {
      ait_text_json_string(t, v->key, strlen(v->key));
      ait_text_printf(t, ":");
    }
    put_text(t, v);
  }
  ait_text_printf(t, object ? "}" : "]");
  return AIT_OK;
}

static ait_status write_section(ait_text *t, const dep_source *source, bool proven, double apart) {
  const ait_json *o = ait_json_get_kind(source->description, "embed", AIT_JSON_OBJECT), *name;
  if (!o) return ait_error(AIT_CODE_INVALID_MODEL, "ait.json has no 'embed'");
  t->length = 0;
  ait_text_printf(t, "{\"format\":1");
  put_number(t, o, "size");
  put_number(t, o, "max_length");
  put_number(t, o, "pad");
  AIT_TRY(put_texts(t, o, "pooling", AIT_JSON_ARRAY));
  put_flag(t, o, "normalize");
  put_flag(t, o, "strip");
  put_flag(t, o, "lowercase");
  put_flag(t, o, "include_prompt");
  AIT_TRY(put_texts(t, o, "prompts", AIT_JSON_OBJECT));
  if ((name = ait_json_get_kind(o, "default_prompt", AIT_JSON_STRING)) && name->count) {
    put_key(t, "default_prompt");
    put_text(t, name);
  }
  if (proven) {
    ait_text_printf(t, ",\"proof\":{\"length\":%d,\"difference\":", LENGTH);
    ait_text_json_double(t, apart);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "}\n");
  return t->failed ? AIT_OOM() : AIT_OK;
}

/* ---- the proof: two texts of different length, as the oracle and as the plan computes them --------------------------------------------*/
typedef struct trial {
  ait_tensor inputs[8];
  ait_value values[8];
  size_t count;
} trial;

static ait_status make_inputs(const dep_work *w, trial *t) {
  const ait_graph *g = w->g;
  uint64_t seed = 7;
  for (size_t i = 0; i < g->input_count; ++i) {
    const ait_region_input *in = &g->inputs[i];
    if (in->kind != AIT_INPUT_USER) continue;
    const ait_value_info *v = in->value == AIT_NO_INDEX ? NULL : &g->values[in->value];
    if (!v || v->rank != 2 || (v->dtype != AIT_I64 && v->dtype != AIT_I32) || t->count == AIT_COUNT(t->inputs))
      return ait_error(AIT_CODE_UNSUPPORTED, "input '%s' is none that an encoder of texts has", in->name ? in->name : "");
    ait_tensor *x = &t->inputs[t->count];
    AIT_TRY(ait_tensor_create(w->a, v->dtype, 2, (const int64_t[]){ROWS, LENGTH}, x));
    bool mask = strstr(in->name, "mask"), types = strstr(in->name, "type");
    const uint64_t vocab = (uint64_t)dep_rows_of_table(g, in->value);
    for (int64_t k = 0; k < ROWS * LENGTH; ++k) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      int64_t real = k < LENGTH + SHORTER, value = mask ? real : types ? 0 : real ? (int64_t)((seed >> 33) % (vocab ? vocab : 1)) : 0;
      ait_element_set_i64((char *)x->data + (size_t)k * ait_dtype_size(v->dtype), v->dtype, value);
    }
    t->values[t->count] = ait_value_tensor(*x);
    t->values[t->count++].as.tensor.storage = NULL;
  }
  return AIT_OK;
}

static ait_status ask_oracle(const dep_work *w, const ait_graph *g, const trial *t, ait_tensor *out) {
  dep_eval e;
  ait_tensor borrowed;
  size_t k = 0;
  AIT_TRY(dep_eval_begin(g, w->a, false, &e));
  ait_status status = AIT_OK;
  for (size_t i = 0; i < g->input_count && !status; ++i) {
    if (g->inputs[i].kind != AIT_INPUT_USER) continue;
    const ait_value_info *v = &g->values[g->inputs[i].value];
    for (int32_t d = 0; d < 2; ++d) {
      const ait_dim_expr *dim = &g->dims[v->shape[d]];
      if (dim->op == AIT_DIM_SYMBOL) dep_eval_size(&e, g->symbols[dim->a].name, d ? LENGTH : ROWS);
    }
    status = dep_eval_give(&e, g->inputs[i].value, &t->inputs[k++]);
  }
  if (!status) status = dep_eval_run(&e, g->outputs[0].arg.as.value, &borrowed);
  if (!status) *out = ait_tensor_retain(&borrowed);
  dep_eval_end(&e);
  return status;
}

static ait_status ask_plan(dep_sealing *s, trial *t, const ait_tensor *want, double *apart) {
  ait_model *model;
  ait_session *session = NULL;
  ait_value result = {.kind = AIT_VALUE_NONE};
  AIT_TRY(dep_sealing_model(s, &model));
  ait_status status = ait_session_create(model, NULL, &session);
  if (!status) status = ait_session_run(session, t->values, t->count, &result, 1);
  if (!status) *apart = dep_difference(&result.as.tensor, want);
  ait_session_destroy(session);
  ait_model_release(model);
  return status;
}

/* ---- the work -------------------------------------------------------------------------------------------------------------------------*/
static ait_status keep_first_output(ait_graph *g) {
  for (size_t i = 0; i < g->output_count; ++i) {
    ait_region_output o = g->outputs[i];
    if (o.kind != AIT_OUTPUT_USER || o.arg.kind != AIT_ARG_VALUE) continue;
    const ait_value_info *v = &g->values[o.arg.as.value];
    int64_t size;
    if (v->type != AIT_TYPE_TENSOR || (v->rank != 2 && v->rank != 3) || !ait_dim_is_const(g, v->shape[v->rank - 1], &size)) break;
    o.user_index = 0;
    o.name = "embedding";
    g->outputs[0] = o;
    g->output_count = 1;
    return AIT_OK;
  }
  return ait_error(AIT_CODE_UNSUPPORTED, "the first output holds no embeddings: floats [batch, size] or [batch, length, size]");
}

/* torch.export never sees one text, or one token, as an example of a size that may change: the graph is the same for them. */
static void allow_one(ait_graph *g) {
  g->guard_count = 0;
  for (size_t i = 0; i < g->symbol_count; ++i) g->symbols[i].min = 1;
}

static ait_status seal(dep_sealing *s, const dep_source *source, const ait_graph *original, const char *path, char **out_json) {
  dep_work *w = s->w;
  trial t = {.count = 0};
  ait_tensor want = {0};
  double apart = 0;
  bool reduced, proves = !w->options->skip_proof;
  AIT_TRY(dep_keep_tables(w));
  AIT_TRY(dep_reduce(w, &reduced));
  ait_status status = AIT_OK;
  AIT_GOTO(make_inputs(w, &t));
  if (proves) AIT_GOTO(ask_oracle(w, original, &t, &want));
  AIT_GOTO(dep_sealing_plan(s));
  AIT_GOTO(write_section(&s->section, source, false, 0));
  if (proves) AIT_GOTO(ask_plan(s, &t, &want, &apart));
  if (proves && !reduced && !(apart <= 2e-4))
    AIT_GOTO(ait_error(AIT_CODE_MISMATCH, "the plan does not give the original's embeddings: relative difference %.2g", apart));
  AIT_GOTO(write_section(&s->section, source, proves, apart));
  AIT_GOTO(dep_sealing_write(s, source, path));
  AIT_GOTO(dep_sealing_report(s, out_json));
cleanup:
  ait_tensor_release(&want);
  for (size_t i = 0; i < t.count; ++i) ait_tensor_release(&t.inputs[i]);
  return status;
}

ait_status dep_deploy_embed(dep_work *w, dep_source *source, const char *path, char **out_json) {
  dep_sealing s;
  ait_graph *original = NULL;
  ait_status status = AIT_OK;
  if (w->options->draft) return ait_error(AIT_CODE_INVALID_ARGUMENT, "a draft model is for language models; this one makes embeddings");
  AIT_TRY(dep_open(w->a, w->options, source, &w->g));
  dep_sealing_init(&s, w, "embed.json");
  AIT_GOTO(ait_graph_check_operators(w->g));
  AIT_GOTO(ait_passes_run(w->g, "core", &w->context, NULL, NULL));
  AIT_GOTO(keep_first_output(w->g));
  AIT_GOTO(dep_widen(w->g));
  AIT_GOTO(ait_passes_run(w->g, "dce,fold,match,fold,simplify,cse,dce", &w->context, NULL, NULL));
  allow_one(w->g);
  AIT_GOTO(ait_graph_clone(w->g, &original));
  AIT_GOTO(seal(&s, source, original, path, out_json));
cleanup:
  ait_graph_destroy(original);
  dep_sealing_deinit(&s);
  return status;
}
