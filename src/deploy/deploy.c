/* From a causal language model to a sealed artifact: the order of the work. */
#include "deploy/internal.h"
#include "tune/tune.h"
#include <stdio.h>

enum { DEFAULT_MAX_SEQ = 32768, PLAIN_MAX_SEQ = 2048, PLAIN_MAX_SOURCE = 1024, DEFAULT_PAGE = 32 };
static const char *const LOWER = "core";
static const char *const TIDY = "simplify,cse,dce";

void ait_deploy_options_init(ait_deploy_options *options) {
  *options = (ait_deploy_options){.struct_size = sizeof *options, .allocator = ait_allocator_default()};
}

void dep_tell(const dep_work *w, const char *format, ...) {
  char line[512];
  va_list list;
  if (!w->options->note) return;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  w->options->note(w->options->note_ctx, line);
}

ait_status dep_run_passes(dep_work *w, const char *passes) { return ait_passes_run(w->g, passes, &w->context, NULL, NULL); }

/* ---- inputs ---------------------------------------------------------------------------------------------------------------------------*/
static bool is_integer_matrix(const ait_graph *g, const ait_region_input *in) {
  if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX) return false;
  const ait_value_info *v = &g->values[in->value];
  return v->type == AIT_TYPE_TENSOR && v->rank == 2 && (v->dtype == AIT_I64 || v->dtype == AIT_I32);
}

static bool contains(const char *text, const char *part) { return text && strstr(text, part); }

static bool is_side_input(const ait_region_input *in) { return contains(in->name, "mask") || contains(in->name, "position"); }

/* The token ids: the input of that name (the decoder's, where there are two), else the only integer matrix that is no mask and holds no
 * positions. */
static ait_status find_tokens(dep_work *w) {
  const ait_region_input *best = NULL;
  for (size_t i = 0; i < w->g->input_count; ++i) {
    const ait_region_input *in = &w->g->inputs[i];
    if (!is_integer_matrix(w->g, in) || is_side_input(in)) continue;
    if (!best || contains(in->name, "decoder_input_ids") || (contains(in->name, "input_ids") && !contains(best->name, "decoder_")))
      best = in;
  }
  if (!best)
    return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "no input holds token ids: integers [batch, length]"),
                          "export with forward(input_ids) -> logits");
  w->tokens = best->value;
  return AIT_OK;
}

static ait_status symbol_of(const dep_work *w, int32_t d, const char **out) {
  const ait_dim_expr *e = &w->g->dims[w->g->values[w->tokens].shape[d]];
  *out = e->op == AIT_DIM_SYMBOL ? w->g->symbols[e->a].name : NULL;
  if (*out || (d == 0 && e->op == AIT_DIM_CONST && e->value == 1)) return AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "the %s of the token ids is fixed", d ? "length" : "batch"),
                        "torch.export.export(…, dynamic_shapes=…) with both dimensions dynamic");
}

/* The encoder's input: there is one when the tokens are a decoder's. */
static ait_status find_source(dep_work *w) {
  const char *tokens = w->g->values[w->tokens].name;
  for (size_t i = 0; i < w->g->input_count; ++i)
    if (w->g->inputs[i].value == w->tokens) tokens = w->g->inputs[i].name;
  for (size_t i = 0; contains(tokens, "decoder_") && i < w->g->input_count; ++i) {
    const ait_region_input *in = &w->g->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX || in->value == w->tokens || is_side_input(in)) continue;
    const ait_value_info *v = &w->g->values[in->value];
    bool ids = v->type == AIT_TYPE_TENSOR && v->rank == 2 && (v->dtype == AIT_I64 || v->dtype == AIT_I32);
    bool features = v->type == AIT_TYPE_TENSOR && v->rank >= 2 && ait_dtype_is_float(v->dtype);
    if (w->source != AIT_NO_INDEX || (!ids && !features))
      return ait_error(AIT_CODE_UNSUPPORTED, "input '%s' is none that an encoder has: token ids [batch, length], or one array of features",
                       in->name);
    w->source = in->value;
  }
  return AIT_OK;
}

/* One request at a time: its batch is 1; what else is not fixed in its shape is its length. */
static ait_status settle_source(dep_work *w, const dep_source *source) {
  if (w->source == AIT_NO_INDEX) return AIT_OK;
  const ait_graph *g = w->g;
  const ait_value_info *v = &g->values[w->source];
  const char *other = NULL;
  w->max_source = w->options->max_source ? w->options->max_source : source->max_source ? source->max_source : PLAIN_MAX_SOURCE;
  for (int32_t d = 0; d < v->rank; ++d) {
    const ait_dim_expr *e = &g->dims[v->shape[d]];
    if (e->op == AIT_DIM_CONST) {
      if (d && ait_dtype_is_float(v->dtype)) continue;
      if (!d && e->value == 1) continue;
      return ait_error(AIT_CODE_UNSUPPORTED, "the %s of the encoder's input is fixed", d ? "length" : "batch");
    }
    if (e->op != AIT_DIM_SYMBOL) return ait_error(AIT_CODE_UNSUPPORTED, "the shape of the encoder's input is not understood");
    const char *name = g->symbols[e->a].name;
    if (d == 0) other = name;
    else if (!w->source_name && strcmp(name, w->tokens_name)) {
      w->source_name = ait_arena_strdup(&w->arena, name, strlen(name));
      if (!w->source_name) return AIT_OOM();
      ait_symbol *s = ait_graph_symbol(w->g, name);
      if (s->max < w->max_source) w->max_source = s->max;
      s->min = 1;
    } else return ait_error(AIT_CODE_UNSUPPORTED, "more than one size of the encoder's input is not fixed");
  }
  return other ? dep_bind_symbol(w->g, other, 1) : AIT_OK;
}

/* What callers of the plain model pass beside the tokens: positions 0, 1, …, and masks of ones. */
static ait_status settle_input(dep_work *w, size_t i, uint32_t *out) {
  const ait_region_input *in = &w->g->inputs[i];
  const ait_value_info *v = &w->g->values[in->value];
  ait_rewrite r = {.graph = w->g, .context = &w->context, .at = w->g->first, .name = in->name, .module = AIT_NO_INDEX};
  ait_arg shape[AIT_MAX_RANK];
  bool line = v->type == AIT_TYPE_TENSOR && v->rank == 1 && contains(in->name, "position");
  if (v->type != AIT_TYPE_TENSOR || (v->rank != 2 && !line) || !ait_shape_args(w->g, in->value, shape))
    return ait_error(AIT_CODE_UNSUPPORTED, "input '%s' is neither token ids, nor positions, nor a mask of tokens", in->name);
  if (contains(in->name, "position")) {
    AIT_TRY(AIT_EMIT(&r, out, "arange", ait_arg_int(0), shape[line ? 0 : 1], ait_arg_int(1), ait_arg_dtype(v->dtype)));
    return line ? AIT_OK : AIT_EMIT(&r, out, "expand", ait_arg_value(*out), ait_arg_list(shape, 2));
  }
  if (!contains(in->name, "mask"))
    return ait_error(AIT_CODE_UNSUPPORTED, "input '%s' is neither token ids, nor positions, nor a mask of tokens", in->name);
  dep_tell(w, "input '%s' is taken as all ones: sequences have no padding", in->name);
  return AIT_EMIT(&r, out, "full", ait_arg_list(shape, 2), v->dtype == AIT_BOOL ? ait_arg_bool(true) : ait_arg_int(1),
                  ait_arg_dtype(v->dtype));
}

static ait_status settle_inputs(dep_work *w) {
  size_t kept = 0;
  for (size_t i = 0; i < w->g->input_count; ++i) {
    ait_region_input in = w->g->inputs[i];
    if (in.kind == AIT_INPUT_USER && in.value != w->tokens && in.value != w->source) {
      uint32_t fresh;
      if (in.value == AIT_NO_INDEX) continue;
      AIT_TRY(settle_input(w, i, &fresh));
      ait_graph_replace_uses(w->g, in.value, fresh);
      continue;
    }
    if (in.value == w->tokens) in.user_index = 0;
    else if (in.value == w->source) in.user_index = 1;
    w->g->inputs[kept++] = in;
  }
  w->g->input_count = kept;
  return AIT_OK;
}

static bool is_logits(const ait_graph *g, const ait_region_output *o, int32_t rank) {
  if (o->kind != AIT_OUTPUT_USER || o->arg.kind != AIT_ARG_VALUE) return false;
  const ait_value_info *v = &g->values[o->arg.as.value];
  return v->type == AIT_TYPE_TENSOR && v->rank == rank && ait_dtype_is_float(v->dtype);
}

/* The logits: the first output that is floats [b, s, n], or [b, n] of the last token. All else is not wanted. */
static ait_status find_logits(dep_work *w) {
  for (int32_t rank = 3; rank >= 2; --rank)
    for (size_t i = 0; i < w->g->output_count; ++i) {
      ait_region_output o = w->g->outputs[i];
      if (!is_logits(w->g, &o, rank)) continue;
      o.user_index = 0;
      o.name = "logits";
      w->g->outputs[0] = o;
      w->g->output_count = 1;
      return AIT_OK;
    }
  return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "no output holds logits: floats [batch, length, vocabulary]"),
                        "export with forward(input_ids) -> logits");
}

/* What the export promises for one length, for any batch: its guards. */
static bool guards_hold(const dep_work *w, int64_t length) {
  const ait_graph *g = w->g;
  int64_t symbols[64];
  if (g->symbol_count > AIT_COUNT(symbols)) return true;
  for (size_t i = 0; i < g->symbol_count; ++i) symbols[i] = strcmp(g->symbols[i].name, w->tokens_name) ? 2 : length;
  for (size_t i = 0; i < g->guard_count; ++i) {
    int64_t left, right;
    if (!ait_dim_eval(g->dims, symbols, g->guards[i].left, &left) || !ait_dim_eval(g->dims, symbols, g->guards[i].right, &right)) continue;
    bool held[] = {
        [AIT_GUARD_EQ] = left == right, [AIT_GUARD_NE] = left != right, [AIT_GUARD_LE] = left <= right, [AIT_GUARD_LT] = left < right};
    if (g->guards[i].op != AIT_GUARD_NE && !held[g->guards[i].op]) return false; /* NE: single lengths that took another path */
  }
  return true;
}

/* Guards leave out single lengths (multiples of a chunk took another path): they are no limit. */
static bool holds_near(const dep_work *w, int64_t length) {
  for (int64_t n = length; n >= 2 && n > length - 64; --n)
    if (guards_hold(w, n)) return true;
  return false;
}

/* The longest sequence, at most max_seq, for which the export holds. */
static int64_t promised(const dep_work *w) {
  const ait_symbol *s = ait_graph_symbol(w->g, w->tokens_name);
  int64_t low = 2, high = s->max < w->max_seq ? s->max : w->max_seq;
  if (holds_near(w, high)) {
    for (int64_t n = high; high - n < 64 && n >= 2; --n) /* unless nothing beyond holds: then the last that does */
      if (guards_hold(w, n)) return holds_near(w, high + 64) ? high : n;
    return high;
  }
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (holds_near(w, middle)) low = middle;
    else high = middle;
  }
  while (low > 2 && !guards_hold(w, low)) --low;
  return low;
}

static ait_status settle_sizes(dep_work *w, const dep_source *source) {
  const ait_deploy_options *o = w->options;
  w->page_size = o->page_size ? o->page_size : DEFAULT_PAGE;
  if (w->page_size < 1 || w->page_size > 1024)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "a page of %lld tokens", (long long)w->page_size);
  w->max_seq = o->max_seq ? o->max_seq : source->max_positions ? source->max_positions : PLAIN_MAX_SEQ;
  w->told = source->max_positions > 0;
  if (!o->max_seq && w->max_seq > DEFAULT_MAX_SEQ) w->max_seq = DEFAULT_MAX_SEQ;
  if (w->max_seq < 2 || w->max_seq > 1 << 24)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "sequences of %lld tokens", (long long)w->max_seq);
  int64_t most = promised(w);
  if (o->max_seq > most)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "sequences of %lld tokens: the export holds up to %lld",
                                    (long long)o->max_seq, (long long)most),
                          "export with a larger range, or give a smaller --max-seq");
  w->max_seq = most;
  return AIT_OK;
}

/* One sequence of T tokens. *out_original: what the proof compares with. */
static ait_status prepare(dep_work *w, const dep_source *source, ait_graph **out_original) {
  const char *batch;
  AIT_TRY(find_tokens(w));
  AIT_TRY(find_source(w));
  AIT_TRY(find_logits(w));
  AIT_TRY(symbol_of(w, 0, &batch));
  AIT_TRY(symbol_of(w, 1, &w->tokens_name));
  w->tokens_name = ait_arena_strdup(&w->arena, w->tokens_name, strlen(w->tokens_name)); /* graphs come and go */
  if (!w->tokens_name) return AIT_OOM();
  AIT_TRY(settle_sizes(w, source));
  AIT_TRY(dep_widen(w->g));
  AIT_TRY(settle_inputs(w));
  AIT_TRY(dep_run_passes(w, "fold,match,fold,simplify,cse,dce"));
  AIT_TRY(dep_all_rows(w));
  AIT_TRY(dep_spell_complex(w));
  AIT_TRY(dep_run_passes(w, TIDY));
  AIT_TRY(ait_graph_clone(w->g, out_original));
  if (batch) AIT_TRY(dep_bind_symbol(w->g, batch, 1));
  AIT_TRY(settle_source(w, source));
  w->g->guard_count = 0; /* they were conditions on the batch and the length of one call */
  ait_symbol *s = ait_graph_symbol(w->g, w->tokens_name);
  s->min = 1;
  s->max = INT32_MAX; /* tokens of many sequences: how long one may be is max_seq */
  return dep_run_passes(w, TIDY);
}

/* ---- caches ---------------------------------------------------------------------------------------------------------------------------*/
static ait_status add_metadata(dep_work *w) {
  ait_dim shape[2], t = w->g->values[w->tokens].shape[1];
  AIT_TRY(dep_add_input(w, "positions", AIT_I64, 1, &t, &w->positions));
  AIT_TRY(dep_symbol(w, "sequences", &shape[0]));
  AIT_TRY(ait_dim_const(w->g, 4, &shape[1]));
  return dep_add_input(w, "sequences", AIT_I32, 2, shape, &w->sequences);
}

static ait_status unmatched(dep_work *w, const dep_label *l) {
  const ait_node *n = l->node;
  const char *module = n && n->module != AIT_NO_INDEX ? w->g->modules[n->module].path : "";
  const char *type = n && n->module != AIT_NO_INDEX ? w->g->modules[n->module].type : "";
  ait_text shape;
  ait_text_init(&shape, w->a);
  const ait_value_info *v = n ? &w->g->values[n->results[0]] : NULL;
  for (int32_t d = 0; v && d < v->rank; ++d) {
    ait_text_append(&shape, ", ", d ? 2 : 0);
    ait_dim_text(w->g, v->shape[d], &shape);
  }
  ait_status status =
      ait_error(AIT_CODE_UNSUPPORTED, "%s%s%s%s%s: node '%s' (%s, [%s]) %s%s%s", *module ? "module '" : "the model", module,
                *module ? "'" : "", *type ? " of " : "", type, n ? n->name : "", n ? n->op->name : "", shape.data ? shape.data : "",
                l->why ? l->why : "mixes tokens", *w->near ? "; the nearest match failed: " : "", w->near);
  ait_text_deinit(&shape);
  return ait_error_hint(status, "--allow-unmatched runs the model without caches: every step computes the whole sequence");
}

/* After matching: the logits' rows are tokens, or the first node that mixes is the reason. */
static ait_status check_labels(dep_work *w) {
  const dep_label *l = &w->labels[w->g->outputs[0].arg.as.value];
  if (l->kind == DEP_TOKEN) return AIT_OK;
  if (l->kind == DEP_MIXED) return unmatched(w, l);
  return ait_error(AIT_CODE_UNSUPPORTED, "the logits do not depend on the tokens one by one");
}

/* Attention and convolutions while labels are set, then one scan after the other: each lets labels go on behind it. */
static ait_status match_all(dep_work *w) {
  for (bool more = true; more;) {
    AIT_TRY(dep_label_graph(w));
    if (w->labels[w->g->outputs[0].arg.as.value].kind != DEP_MIXED) return AIT_OK;
    AIT_TRY(dep_match_scan(w, &more));
  }
  return AIT_OK;
}

static ait_status cache(dep_work *w) {
  AIT_TRY(dep_match_experts(w));
  AIT_TRY(dep_spell_triangles(w));
  AIT_TRY(add_metadata(w));
  AIT_TRY(match_all(w));
  AIT_TRY(check_labels(w));
  AIT_TRY(dep_match_memory(w));
  AIT_TRY(dep_label_graph(w));
  AIT_TRY(check_labels(w));
  AIT_TRY(dep_run_passes(w, TIDY));
  AIT_TRY(dep_label_graph(w));
  AIT_TRY(check_labels(w));
  if (!w->options->max_seq && !w->told) {
    AIT_TRY(dep_reach(w, &w->max_seq));
    dep_tell(w, "sequences of up to %lld tokens: nothing says how long they may be (--max-seq)", (long long)w->max_seq);
  }
  AIT_TRY(dep_place_tables(w));
  AIT_TRY(dep_run_passes(w, TIDY));
  AIT_TRY(dep_label_graph(w));
  AIT_TRY(check_labels(w));
  AIT_TRY(dep_select_rows(w));
  return dep_run_passes(w, "dce,fold,simplify,cse,dce");
}

/* Without caches: one whole sequence, whose positions are what the model makes of them itself. */
static ait_status run_whole(dep_work *w, ait_graph *plain, ait_status why) {
  dep_tell(w, "not cached: %s", ait_status_message(why));
  dep_tell(w, "every step computes the whole sequence: a text of n tokens costs about n / 2 times what it would with caches");
  ait_status_free(why);
  ait_graph_destroy(w->g);
  w->g = plain;
  w->uncached = true;
  w->state_count = w->group_count = 0;
  w->switch_at = 0;
  w->positions = w->places = w->sequences = AIT_NO_INDEX;
  AIT_TRY(dep_label_all(w));
  AIT_TRY(dep_select_rows(w));
  return dep_run_passes(w, "dce,fold,simplify,cse,dce");
}

static ait_status cache_or_not(dep_work *w) {
  ait_graph *plain = NULL;
  if (w->options->allow_unmatched && w->source == AIT_NO_INDEX) AIT_TRY(ait_graph_clone(w->g, &plain));
  ait_status status = cache(w);
  if (plain && status && ait_status_code(status) == AIT_CODE_UNSUPPORTED) return run_whole(w, plain, status);
  ait_graph_destroy(plain);
  return status;
}

static ait_status deploy(dep_work *w, dep_source *source, const char *out_path, char **out_json) {
  ait_graph *original = NULL;
  ait_status status = AIT_OK;
  AIT_GOTO(dep_reduce_check(w->options));
  AIT_GOTO(dep_open(w->a, w->options, source, &w->g));
  AIT_GOTO(ait_graph_check_operators(w->g));
  AIT_GOTO(dep_run_passes(w, LOWER));
  AIT_GOTO(prepare(w, source, &original));
  AIT_GOTO(cache_or_not(w));
  AIT_GOTO(dep_seal(w, source, w->options->skip_proof ? NULL : original, out_path, out_json));
cleanup:
  ait_graph_destroy(original);
  return status;
}

ait_status ait_deploy(const char *path, const char *out_path, const ait_deploy_options *options, char **out_json) {
  ait_deploy_options known;
  ait_deploy_options_init(&known);
  if (options) memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
  dep_work w = {.a = known.allocator, .options = &known, .positions = AIT_NO_INDEX, .places = AIT_NO_INDEX, .source = AIT_NO_INDEX};
  w.context.allocator = w.a;
  ait_arena_init(&w.arena, w.a);
  dep_source source;
  *out_json = NULL;
  ait_status status = dep_source_open(w.a, path, &source);
  if (!status && !strcmp(source.task, "embed")) status = dep_deploy_embed(&w, &source, out_path, out_json);
  else if (!status) status = deploy(&w, &source, out_path, out_json);
  ait_graph_destroy(w.g);
  ait_graph_destroy(w.encoder);
  ait_free(w.a, w.labels, w.label_capacity * sizeof *w.labels);
  ait_free(w.a, w.states, w.state_capacity * sizeof *w.states);
  ait_free(w.a, w.masks, w.mask_capacity * sizeof *w.masks);
  ait_arena_deinit(&w.arena);
  dep_source_close(&source);
  return ait_error_context(status, "cannot deploy '%s'", path);
}
