/* The whole cached model beside the original graph on the oracle. */
#include "deploy/internal.h"
#include <math.h>

enum { LENGTH = 29, SEQUENCES = 2 };

typedef struct sample {
  int32_t tokens[SEQUENCES][LENGTH], length;
  ait_tensor sources[SEQUENCES]; /* of an encoder, of different lengths; data NULL: there is none */
  ait_tensor want;               /* [SEQUENCES, length, vocab], float32; one for each when the batch is fixed */
  int64_t vocab;
  double most; /* the largest logit */
} sample;

static uint32_t next(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33);
}

static const ait_region_input *user_input(const ait_graph *g, int32_t index) {
  for (size_t i = 0; i < g->input_count; ++i)
    if (g->inputs[i].kind == AIT_INPUT_USER && g->inputs[i].user_index == index) return &g->inputs[i];
  return NULL;
}

static ait_status make_sources(const ait_lm_info *f, ait_allocator a, sample *s) {
  static const int64_t lengths[SEQUENCES] = {13, 8};
  uint64_t seed = 5;
  for (int i = 0; i < SEQUENCES && f->has_source; ++i) {
    int64_t shape[AIT_MAX_RANK] = {1};
    ait_tensor *t = &s->sources[i];
    for (int32_t d = 0; d < f->source_rank; ++d)
      shape[d + 1] = f->source_shape[d] >= 0 ? f->source_shape[d] : lengths[i] < f->max_source ? lengths[i] : f->max_source;
    AIT_TRY(ait_tensor_create(a, f->source_dtype, f->source_rank + 1, shape, t));
    for (int64_t k = 0, n = ait_tensor_count(t); k < n; ++k) {
      char *at = (char *)t->data + (size_t)k * ait_dtype_size(t->dtype);
      if (f->source_vocab) ait_element_set_i64(at, t->dtype, (int64_t)(next(&seed) % (uint32_t)f->source_vocab));
      else ait_element_set_f64(at, t->dtype, (double)next(&seed) / 0x40000000 - 1);
    }
  }
  return AIT_OK;
}

static ait_status give_source(dep_eval *e, const ait_graph *g, const ait_tensor *source) {
  const ait_region_input *in = user_input(g, 1);
  if (!source->data || !in) return AIT_OK;
  const ait_value_info *v = &g->values[in->value];
  for (int32_t d = 0; d < v->rank; ++d) {
    const ait_dim_expr *x = &g->dims[v->shape[d]];
    if (x->op == AIT_DIM_SYMBOL) dep_eval_size(e, g->symbols[x->a].name, source->shape[d]);
  }
  return dep_eval_give(e, in->value, source);
}

/* All sequences in one call, or one after the other where the batch is 1. */
static ait_status ask_original(const ait_graph *g, ait_allocator a, sample *s) {
  const ait_region_input *in = user_input(g, 0);
  const ait_value_info *v = &g->values[in->value];
  const ait_dim_expr *batch = &g->dims[v->shape[0]], *length = &g->dims[v->shape[1]];
  int64_t rows = batch->op == AIT_DIM_SYMBOL && !s->sources[0].data ? SEQUENCES : 1, shape[3] = {SEQUENCES, s->length, s->vocab};
  dep_eval e;
  AIT_TRY(ait_tensor_create(a, AIT_F32, 3, shape, &s->want));
  AIT_TRY(dep_eval_begin(g, a, false, &e));
  ait_status status = AIT_OK;
  for (int64_t first = 0; first < SEQUENCES && !status; first += rows) {
    const int64_t token_shape[2] = {rows, s->length};
    ait_tensor tokens, logits;
    dep_eval_forget(&e);
    if (batch->op == AIT_DIM_SYMBOL) dep_eval_size(&e, g->symbols[batch->a].name, rows);
    dep_eval_size(&e, g->symbols[length->a].name, s->length);
    status = ait_tensor_create(a, v->dtype, 2, token_shape, &tokens);
    if (status) break;
    for (int64_t i = 0; i < rows * s->length; ++i)
      ait_element_set_i64((char *)tokens.data + (size_t)i * ait_dtype_size(v->dtype), v->dtype,
                          s->tokens[first + i / s->length][i % s->length]);
    status = dep_eval_give(&e, in->value, &tokens);
    if (!status) status = give_source(&e, g, &s->sources[first]);
    ait_tensor_release(&tokens);
    if (!status) status = dep_eval_run(&e, g->outputs[0].arg.as.value, &logits);
    ait_tensor part = s->want;
    part.shape[0] = rows;
    part.data = (float *)s->want.data + first * s->length * s->vocab;
    if (!status) status = ait_tensor_copy(&part, &logits);
  }
  dep_eval_end(&e);
  for (int64_t i = 0; i < SEQUENCES * s->length * s->vocab && !status; ++i)
    if (isnan(((float *)s->want.data)[i]))
      status = ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "the model's own logits are no numbers"), "are its weights damaged?");
  for (int64_t i = 0; i < SEQUENCES * s->length * s->vocab; ++i) s->most = fmax(s->most, fabs((double)((float *)s->want.data)[i]));
  return status;
}

/* Runs every sequence in pieces of the given size, all sequences in each step; the worst difference. */
static ait_status run_pieces(ait_lm *lm, ait_allocator a, const sample *s, int32_t piece, double *worst) {
  const ait_lm_info *f = ait_lm_describe(lm);
  int32_t pages_each = (int32_t)((LENGTH + f->page_size - 1) / f->page_size), tokens[SEQUENCES * LENGTH], rows[SEQUENCES * LENGTH];
  int32_t pages[SEQUENCES][LENGTH];
  ait_lm_context_options o = {.allocator = a,
                              .threads = 1,
                              .max_tokens = SEQUENCES * LENGTH,
                              .max_sequences = SEQUENCES + 1,
                              .max_rows = SEQUENCES * LENGTH,
                              .max_seq = f->max_seq < LENGTH ? f->max_seq : LENGTH};
  ait_lm_context *c;
  for (uint32_t g = 0; g < f->group_count; ++g) o.units[g] = f->groups[g].kind != AIT_LM_PAGES ? SEQUENCES : SEQUENCES * pages_each;
  for (int32_t i = 0; i < SEQUENCES; ++i) /* interleaved, backwards */
    for (int32_t p = 0; p < pages_each; ++p) pages[i][p] = (pages_each - 1 - p) * SEQUENCES + i;
  size_t bytes = SEQUENCES * LENGTH * (size_t)s->vocab * sizeof(float);
  float *logits = ait_alloc(a, bytes, 64);
  if (!logits) return AIT_OOM();
  ait_status status = ait_lm_context_create(lm, &o, &c);
  for (int32_t i = 0; i < SEQUENCES && f->has_source && !status; ++i) status = ait_lm_encode(c, i, &s->sources[i]);
  *worst = 0;
  for (int32_t past = 0; past < s->length && !status; past += piece) {
    int32_t count = past + piece > s->length ? s->length - past : piece;
    ait_lm_sequence sequences[SEQUENCES];
    ait_lm_batch b = {.tokens = tokens,
                      .token_count = SEQUENCES * count,
                      .sequences = sequences,
                      .sequence_count = SEQUENCES,
                      .rows = rows,
                      .row_count = SEQUENCES * count,
                      .logits = logits};
    for (int32_t i = 0; i < SEQUENCES; ++i) {
      sequences[i] = (ait_lm_sequence){.first = (SEQUENCES - 1 - i) * count,
                                       .count = count,
                                       .past = past,
                                       .slot = i,
                                       .page_count = pages_each,
                                       .is_long = f->switch_at && s->length > f->switch_at};
      for (uint32_t g = 0; g < f->group_count; ++g) sequences[i].pages[g] = pages[i];
      for (int32_t k = 0; k < count; ++k) tokens[sequences[i].first + k] = s->tokens[i][past + k];
    }
    for (int32_t r = 0; r < b.row_count; ++r) rows[r] = r;
    status = ait_lm_run(c, &b);
    for (int32_t r = 0; r < b.row_count && !status; ++r) {
      int32_t i = SEQUENCES - 1 - r / count, at = past + r % count;
      const float *want = (const float *)s->want.data + ((int64_t)i * s->length + at) * s->vocab, *got = logits + (int64_t)r * s->vocab;
      for (int64_t v = 0; v < s->vocab; ++v) {
        double apart = fabs((double)want[v] - (double)got[v]) / s->most;
        *worst = apart <= *worst ? *worst : isnan(apart) ? INFINITY : apart;
      }
    }
  }
  if (!status || c) ait_lm_context_destroy(c);
  ait_free(a, logits, bytes);
  return status;
}

static ait_status compare_at(const ait_graph *original, ait_lm *lm, ait_allocator a, int32_t length, dep_check *out) {
  const ait_lm_info *f = ait_lm_describe(lm);
  sample s = {.vocab = f->vocab, .most = 1e-30, .length = length};
  uint64_t seed = 20;
  *out = (dep_check){.length = length};
  for (int i = 0; i < SEQUENCES; ++i)
    for (int k = 0; k < LENGTH; ++k) s.tokens[i][k] = (int32_t)(next(&seed) % (uint32_t)f->vocab);
  ait_status status = make_sources(f, a, &s);
  if (!status) status = ask_original(original, a, &s);
  if (!status) status = run_pieces(lm, a, &s, length, &out->prefill);
  if (!status && f->cached) status = run_pieces(lm, a, &s, 1, &out->steps);
  if (!status && f->cached) status = run_pieces(lm, a, &s, 7, &out->pieces);
  ait_tensor_release(&s.want);
  for (int i = 0; i < SEQUENCES; ++i) ait_tensor_release(&s.sources[i]);
  return status;
}

ait_status dep_compare(const ait_graph *original, ait_lm *lm, ait_allocator a, dep_check *out) {
  int64_t switch_at = ait_lm_describe(lm)->switch_at;
  dep_check other;
  AIT_TRY(compare_at(original, lm, a, LENGTH, out));
  if (switch_at < 2 || switch_at >= LENGTH) return AIT_OK;
  AIT_TRY(compare_at(original, lm, a, (int32_t)switch_at, &other)); /* the tables of short sequences */
  out->prefill = fmax(out->prefill, other.prefill);
  out->steps = fmax(out->steps, other.steps);
  out->pieces = fmax(out->pieces, other.pieces);
  return AIT_OK;
}
