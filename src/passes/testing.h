/* For the tests of the passes: graphs from text, weights made up, runs on the reference before and after. Include after <cmocka.h>. */
#ifndef AIT_SRC_PASSES_TESTING_H
#define AIT_SRC_PASSES_TESTING_H

#include "backends/registry.h"
#include "passes/passes.h"
#include "runtime/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PT_MAX = 64 };

static inline void pt_ok(ait_status status, const char *what) {
  if (status != AIT_OK) fail_msg("%s: %s", what, ait_status_message(status));
}

/* ---- numbers ---------------------------------------------------------------------------------------------------------------------*/
static inline double pt_random(uint64_t *seed) { /* [-1, 1) */
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 11) * 0x1p-52 - 1;
}

/* Floats in [-1, 1), or [0.5, 1) when positive; integers 0 and 1, which are valid indices nearly everywhere. */
static inline void pt_fill(ait_tensor *t, uint64_t *seed, bool positive) {
  size_t size = ait_dtype_size(t->dtype);
  for (int64_t i = 0, n = ait_tensor_count(t); i < n; ++i) {
    double r = pt_random(seed);
    void *at = (char *)t->data + (size_t)i * size;
    if (ait_dtype_is_integer(t->dtype)) ait_element_set_i64(at, t->dtype, r > 0);
    else ait_element_set_f64(at, t->dtype, positive ? 0.75 + r / 4 : r);
  }
}

/* ---- graphs ----------------------------------------------------------------------------------------------------------------------*/
static inline void pt_add_weight(ait_graph *g, const char *name, ait_tensor *t) {
  if (!g->weights) pt_ok(ait_weight_store_create(ait_allocator_default(), &g->weights), "store");
  ait_weight w = {.name = name, .dtype = t->dtype, .rank = t->rank};
  memcpy(w.shape, t->shape, sizeof w.shape);
  memcpy(w.strides, t->strides, sizeof w.strides);
  pt_ok(ait_weight_store_add_storage(g->weights, ait_storage_retain(t->storage), &w.storage), "storage");
  pt_ok(ait_weight_store_add(g->weights, &w), "weight");
}

/* A constant of one number, for weights that the text names and the test wants to choose. */
static inline void pt_weight_number(ait_graph *g, const char *name, double number, int32_t rank) {
  int64_t shape[AIT_MAX_RANK];
  ait_tensor t;
  for (int32_t d = 0; d < rank; ++d) shape[d] = 1;
  pt_ok(ait_tensor_create(ait_allocator_default(), AIT_F32, rank, shape, &t), "number");
  ait_element_set_f64(t.data, AIT_F32, number);
  pt_add_weight(g, name, &t);
  ait_tensor_release(&t);
}

static inline int64_t pt_const_size(const ait_graph *g, ait_dim d) {
  int64_t size;
  if (!ait_dim_is_const(g, d, &size)) fail_msg("a weight's size is not constant");
  return size;
}

/* Random contents for every parameter, buffer and constant that has none yet; names with "var" get positive ones. */
static inline void pt_random_weights(ait_graph *g, uint64_t seed) {
  for (size_t i = 0; i < g->input_count; ++i) {
    const ait_region_input *in = &g->inputs[i];
    if (in->kind == AIT_INPUT_USER || in->kind == AIT_INPUT_TOKEN || (g->weights && ait_weight_store_find(g->weights, in->name))) continue;
    const ait_value_info *v = &g->values[in->value];
    int64_t shape[AIT_MAX_RANK];
    ait_tensor t;
    for (int32_t d = 0; d < v->rank; ++d) shape[d] = pt_const_size(g, v->shape[d]);
    pt_ok(ait_tensor_create(ait_allocator_default(), v->dtype, v->rank, shape, &t), in->name);
    pt_fill(&t, &seed, strstr(in->name, "var") != NULL);
    pt_add_weight(g, in->name, &t);
    ait_tensor_release(&t);
  }
}

static inline ait_graph *pt_parse_only(const char *text) {
  ait_graph *g;
  ait_status status = ait_graph_parse(ait_allocator_default(), text, strlen(text), &g);
  if (status == AIT_OK) status = ait_graph_verify(g);
  if (status != AIT_OK) fail_msg("%s\nin:\n%s", ait_status_message(status), text);
  return g;
}

static inline ait_graph *pt_parse(const char *text) {
  ait_graph *g = pt_parse_only(text);
  pt_random_weights(g, 7);
  return g;
}

/* A copy with a weight store of its own: folding adds to it. */
static inline ait_graph *pt_clone(const ait_graph *g) {
  ait_graph *copy;
  pt_ok(ait_graph_clone(g, &copy), "clone");
  if (!g->weights) return copy;
  ait_weight_store *store;
  uint32_t index;
  pt_ok(ait_weight_store_create(ait_allocator_default(), &store), "store");
  for (size_t i = 0; i < ait_weight_store_storage_count(g->weights); ++i)
    pt_ok(ait_weight_store_add_storage(store, ait_storage_retain(ait_weight_store_storage(g->weights, (uint32_t)i)), &index), "storage");
  for (size_t i = 0; i < ait_weight_store_count(g->weights); ++i)
    pt_ok(ait_weight_store_add(store, ait_weight_store_at(g->weights, i)), "weight");
  ait_weight_store_release(copy->weights);
  copy->weights = store;
  return copy;
}

static inline size_t pt_count(const ait_graph *g, const char *op) {
  size_t n = 0;
  for (const ait_node *k = g->first; k; k = k->next) n += !strcmp(k->op->name, op);
  return n;
}

static inline const ait_node *pt_find(const ait_graph *g, const char *op) {
  for (const ait_node *k = g->first; k; k = k->next)
    if (!strcmp(k->op->name, op)) return k;
  return NULL;
}

/* ---- running ---------------------------------------------------------------------------------------------------------------------*/
typedef struct pt_run {
  ait_region *region;
  ait_plan plan;
  ait_model *model;
  ait_session *session;
  ait_value outputs[PT_MAX];
  size_t output_count;
} pt_run;

static inline void pt_run_open(pt_run *r, const ait_graph *g) {
  *r = (pt_run){0};
  pt_ok(ait_graph_region(g, ait_allocator_default(), &r->region), "region");
  ait_weights weights = g->weights ? ait_weight_store_provider(g->weights) : (ait_weights){0};
  pt_ok(ait_plan_compile(ait_allocator_default(), "reference", NULL, r->region, weights, UINT64_MAX, "test", &r->plan), "compile");
  pt_ok(ait_model_create(ait_allocator_default(), r->region, weights, &r->plan, NULL, NULL, &r->model), "model");
  ait_session_options options;
  ait_session_options_init(&options);
  pt_ok(ait_session_create(r->model, &options, &r->session), "session");
  r->output_count = ait_model_output_count(r->model);
  assert_true(r->output_count <= PT_MAX);
}

static inline void pt_run_close(pt_run *r) {
  ait_session_destroy(r->session);
  ait_model_release(r->model);
  ait_plan_deinit(&r->plan);
  ait_graph_region_destroy(ait_allocator_default(), r->region);
}

/* Values for the symbols: variant 0 is what export saw, others nearby. */
static inline void pt_symbols(const ait_region *region, int variant, int64_t *out) {
  for (uint32_t i = 0; i < region->symbol_count; ++i) {
    const ait_symbol *s = &region->symbols[i];
    int64_t v = s->hint > 0 ? s->hint : 4;
    if (variant == 1) v = s->min > 2 ? s->min : 2;
    if (variant > 1) v += variant + i;
    if (v < s->min) v = s->min;
    if (v > s->max) v = s->max;
    out[i] = s->backed ? v : INT64_MIN;
  }
}

/* false: a size is not known, or the model does not take such a call. */
static inline bool pt_inputs(const ait_region *region, int variant, ait_value *out, size_t *out_count) {
  int64_t *symbols = calloc(region->symbol_count + 1, sizeof *symbols);
  uint64_t seed = 99 + (uint64_t)variant;
  bool possible = true;
  *out_count = 0;
  pt_symbols(region, variant, symbols);
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->user_index < 0 || in->user_index >= PT_MAX) continue;
    ait_value *v = &out[in->user_index];
    if ((size_t)in->user_index >= *out_count) *out_count = (size_t)in->user_index + 1;
    *v = (ait_value){0};
    if (in->value == AIT_NO_INDEX) {
      if (in->baked.kind == AIT_ARG_INT) *v = (ait_value){.kind = AIT_VALUE_INT, .as.i = in->baked.as.i};
      if (in->baked.kind == AIT_ARG_FLOAT) *v = (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = in->baked.as.f};
      if (in->baked.kind == AIT_ARG_BOOL) *v = (ait_value){.kind = AIT_VALUE_BOOL, .as.b = in->baked.as.b};
      if (in->baked.kind == AIT_ARG_STRING) *v = (ait_value){.kind = AIT_VALUE_STRING, .as.s = in->baked.as.string};
      continue;
    }
    const ait_region_value *info = &region->values[in->value];
    int64_t shape[AIT_MAX_RANK];
    if (info->type == AIT_TYPE_INT) {
      *v = (ait_value){.kind = AIT_VALUE_INT, .as.i = 3};
      if (info->shape) possible &= ait_dim_eval(region->dims, symbols, info->shape[0], &v->as.i);
    }
    if (info->type == AIT_TYPE_FLOAT) *v = (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = 0.5};
    if (info->type == AIT_TYPE_BOOL) *v = (ait_value){.kind = AIT_VALUE_BOOL, .as.b = variant & 1};
    if (info->type != AIT_TYPE_TENSOR) continue;
    for (int32_t d = 0; d < info->rank; ++d) possible &= ait_dim_eval(region->dims, symbols, info->shape[d], &shape[d]) && shape[d] >= 0;
    if (!possible) break;
    pt_ok(ait_tensor_create(ait_allocator_default(), info->dtype, info->rank, shape, &v->as.tensor), "input");
    v->kind = AIT_VALUE_TENSOR;
    pt_fill(&v->as.tensor, &seed, false);
  }
  if (possible) {
    ait_status status = ait_bind_inputs(region, out, *out_count, symbols);
    possible = status == AIT_OK;
    ait_status_free(status);
  }
  free(symbols);
  return possible;
}

static inline void pt_release(ait_value *values, size_t n) {
  for (size_t i = 0; i < n; ++i) ait_value_release(&values[i]);
}

static inline ait_status pt_call(pt_run *r, ait_value *inputs, size_t n) {
  memset(r->outputs, 0, sizeof r->outputs);
  return ait_session_run(r->session, inputs, n, r->outputs, r->output_count);
}

/* tolerance 0: equal bits. */
static inline void pt_same_value(const char *what, const ait_value *got, const ait_value *want, double tolerance) {
  if (got->kind != want->kind) fail_msg("%s: kind %d, want %d", what, (int)got->kind, (int)want->kind);
  if (got->kind == AIT_VALUE_INT) assert_int_equal(got->as.i, want->as.i);
  if (got->kind == AIT_VALUE_BOOL) assert_int_equal(got->as.b, want->as.b);
  if (got->kind == AIT_VALUE_FLOAT && got->as.f != want->as.f) fail_msg("%s: %g, want %g", what, got->as.f, want->as.f);
  if (got->kind != AIT_VALUE_TENSOR) return;
  const ait_tensor *g = &got->as.tensor, *w = &want->as.tensor;
  if (g->dtype != w->dtype || !ait_tensor_same_shape(g, w)) fail_msg("%s: dtype or shape differ", what);
  ait_compare_rule rule = {.exact = tolerance == 0 || ait_dtype_is_integer(w->dtype), .rtol = tolerance, .atol = tolerance};
  ait_compare_result c;
  pt_ok(ait_compare(g, w, &rule, &c), what);
  if (!c.pass)
    fail_msg("%s: %lld of %lld differ, worst at %lld: %.9g, want %.9g", what, (long long)c.mismatches, (long long)c.count,
             (long long)c.worst_index, c.worst_got, c.worst_want);
}

/* Two calls in a row (state is kept between them) on both graphs: outputs and written inputs agree. Returns how many sizes were tried. */
static inline int pt_same_answers(const char *what, const ait_graph *before, const ait_graph *after, double tolerance) {
  pt_run a, b;
  int tried = 0;
  pt_run_open(&a, before);
  pt_run_open(&b, after);
  assert_int_equal(a.output_count, b.output_count);
  for (int variant = 0; variant < 3; ++variant) {
    ait_value x[PT_MAX] = {0}, y[PT_MAX] = {0};
    size_t n = 0, m = 0;
    bool possible = pt_inputs(a.region, variant, x, &n);
    if (possible) assert_true(pt_inputs(b.region, variant, y, &m));
    for (int call = 0; possible && call < 2; ++call) {
      ait_status first = pt_call(&a, x, n), second = pt_call(&b, y, m);
      char label[256];
      snprintf(label, sizeof label, "%s, size %d, call %d", what, variant, call);
      if ((first == AIT_OK) != (second == AIT_OK))
        fail_msg("%s: before: %s; after: %s", label, ait_status_message(first), ait_status_message(second));
      bool ran = first == AIT_OK;
      ait_status_free(first);
      ait_status_free(second);
      if (!ran) continue;
      for (size_t k = 0; k < a.output_count; ++k) pt_same_value(label, &b.outputs[k], &a.outputs[k], tolerance);
      for (size_t k = 0; k < n; ++k) pt_same_value(label, &y[k], &x[k], tolerance);
      ++tried;
    }
    pt_release(x, n);
    pt_release(y, m);
  }
  pt_run_close(&a);
  pt_run_close(&b);
  return tried;
}

/* ---- passes ----------------------------------------------------------------------------------------------------------------------*/
typedef struct pt_notes {
  char codes[16][64];
  int count;
} pt_notes;

static inline void pt_note(void *ctx, const char *pass, const char *code, const char *node, const char *text) {
  pt_notes *notes = ctx;
  AIT_UNUSED(pass), AIT_UNUSED(node), AIT_UNUSED(text);
  if (notes->count < 16) snprintf(notes->codes[notes->count++], 64, "%s", code);
}

static inline bool pt_noted(const pt_notes *notes, const char *code) {
  for (int i = 0; i < notes->count; ++i)
    if (!strcmp(notes->codes[i], code)) return true;
  return false;
}

static inline ait_status pt_passes(ait_graph *g, const char *passes, pt_notes *notes) {
  ait_pass_context context = {.allocator = ait_allocator_default(), .note = notes ? pt_note : NULL, .note_ctx = notes};
  if (notes) *notes = (pt_notes){0};
  return ait_passes_run(g, passes, &context, NULL, NULL);
}

/* The graph after the passes, which must give the same answers as before. Destroys the given graph. */
static inline ait_graph *pt_transformed(ait_graph *before, const char *passes, double tolerance, pt_notes *notes) {
  ait_graph *after = pt_clone(before);
  pt_ok(pt_passes(after, passes, notes), passes);
  assert_true(pt_same_answers(passes, before, after, tolerance) > 0);
  ait_graph_destroy(before);
  return after;
}

/* The graph is refused, with `why` in the message. */
static inline void pt_refused(const char *text, const char *passes, const char *why) {
  ait_graph *g = pt_parse(text);
  ait_status status = pt_passes(g, passes, NULL);
  if (status == AIT_OK) fail_msg("not refused:\n%s", text);
  if (ait_status_code(status) != AIT_CODE_UNSUPPORTED || !strstr(ait_status_message(status), why))
    fail_msg("refused otherwise: %s (want: %s)", ait_status_message(status), why);
  ait_status_free(status);
  ait_graph_destroy(g);
}

#endif
