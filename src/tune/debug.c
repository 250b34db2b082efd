/* ait_debug: the first node whose value on a backend is beyond what rounding explains.
 *
 * The model is lowered as for the backend, and run there and on the reference in double. When an output differs, all intermediate values
 * are made outputs, some at a time, and compared in the order of execution. A fault that hides when every value is asked for (it sits in
 * the fusion of nodes) is found by cutting the graph after a node, at ever fewer nodes: there only what is alive at the cut is asked for.
 */
#include "tune/debug.h"
#include "tune/cost.h"
#include "tune/put_json.h"
#include <math.h>
#include <stdio.h>

static const double chunk_bytes = 64e6; /* of intermediate values that are outputs at a time */

typedef struct finding {
  size_t index; /* of the output; SIZE_MAX: none */
  double atol, max_abs;
  ait_compare_result compared;
  ait_dtype dtype;
  int32_t rank;
  int64_t shape[AIT_MAX_RANK];
  char crash[AIT_REASON_SIZE]; /* not "": the backend did not come back, and how; index is 0 then */
} finding;

typedef struct debugger {
  const ait_load_options *load;
  const ait_debug_options *options;
  const ait_backend *backend, *reference;
  const ait_value *inputs;
  size_t input_count;
  ait_graph *raw, *graph; /* as the backend takes it */
  int64_t *symbols;
  const ait_node **nodes;
  size_t node_count;
  char bad_pass[64]; /* the pass after which the reference itself gives other answers; "" when none */
  const char *cause; /* "node", "fusion", "pass", "crash"; NULL: none */
  const ait_node *node;
  uint32_t value;
  finding found;
} debugger;

/* ---- running ---------------------------------------------------------------------------------------------------------------------*/
static ait_status run_on(const debugger *d, const ait_graph *g, const ait_backend *backend, const char *knobs, const ait_value *inputs,
                         size_t input_count, ait_value *outputs, size_t count) {
  return ait_debug_run(&(ait_debug_call){d->load, g, backend, knobs, inputs, input_count}, outputs, count);
}

/* ---- comparing -------------------------------------------------------------------------------------------------------------------*/
static double largest(const ait_tensor *t) {
  double m = 0;
  for (int64_t i = 0, n = ait_tensor_count(t); i < n; ++i) {
    double x = fabs(ait_element_f64((const char *)t->data + (size_t)i * ait_dtype_size(t->dtype), t->dtype));
    if (isfinite(x) && x > m) m = x;
  }
  return m;
}

/* Ten times what rounding does to the reference itself, as the tuner's gate. */
static ait_status tolerance(const debugger *d, const ait_tensor *single, const ait_tensor *exact, bool in_double, double *out_atol) {
  ait_compare_rule any = {.rtol = INFINITY};
  ait_compare_result r;
  *out_atol = d->options->atol;
  if (d->options->rtol > 0 || d->options->atol > 0) return AIT_OK;
  AIT_TRY(ait_compare(single, exact, &any, &r));
  *out_atol = fmax(10 * r.max_abs, (in_double ? 1e-6 : 1e-5) * largest(exact));
  if (*out_atol == 0) *out_atol = 1e-30;
  return AIT_OK;
}

static ait_status compare_one(const debugger *d, const ait_value *got, const ait_value *single, const ait_value *exact, bool in_double,
                              finding *out, bool *out_bad) {
  *out_bad = false;
  if (got->kind != AIT_VALUE_TENSOR || exact->kind != AIT_VALUE_TENSOR || single->kind != AIT_VALUE_TENSOR) return AIT_OK;
  const ait_tensor *t = &single->as.tensor;
  ait_compare_rule rule = {.exact = !ait_dtype_is_float(t->dtype) && !ait_dtype_is_complex(t->dtype), .rtol = d->options->rtol};
  if (!rule.exact) AIT_TRY(tolerance(d, t, &exact->as.tensor, in_double, &rule.atol));
  if (!ait_tensor_same_shape(&got->as.tensor, t)) return ait_error(AIT_CODE_MISMATCH, "a value has another shape than on the reference");
  AIT_TRY(ait_compare(&got->as.tensor, &exact->as.tensor, &rule, &out->compared));
  *out_bad = !out->compared.pass;
  if (!*out_bad) return AIT_OK;
  out->atol = rule.atol;
  out->max_abs = largest(&exact->as.tensor);
  out->dtype = t->dtype;
  out->rank = t->rank;
  memcpy(out->shape, t->shape, sizeof out->shape);
  return AIT_OK;
}

/* The reference in double; where it cannot, in the model's own precision. */
static ait_status run_exact(const debugger *d, const ait_graph *g, const ait_value *inputs, size_t input_count, ait_value *out,
                            size_t count, bool *out_double) {
  ait_status status = run_on(d, g, d->reference, "precision=fp64", inputs, input_count, out, count);
  *out_double = status == AIT_OK;
  if (status == AIT_OK || ait_status_code(status) != AIT_CODE_UNSUPPORTED) return status;
  ait_status_free(status);
  return run_on(d, g, d->reference, NULL, inputs, input_count, out, count);
}

/* The first output of `tested` on a backend that is not as that of `trusted` on the reference. */
static ait_status first_bad(const debugger *d, const ait_graph *trusted, const ait_graph *tested, const ait_backend *backend,
                            const char *knobs, const ait_value *inputs, size_t input_count, finding *out) {
  size_t count = 0;
  for (size_t i = 0; i < trusted->output_count; ++i) count += trusted->outputs[i].kind == AIT_OUTPUT_USER;
  ait_value *got = NULL, *single = NULL, *exact = NULL;
  bool in_double = false, bad = false;
  out->index = SIZE_MAX;
  *out->crash = 0;
  ait_status status = ait_debug_values_new(count, &got);
  if (status == AIT_OK) status = ait_debug_values_new(count, &single);
  if (status == AIT_OK) status = ait_debug_values_new(count, &exact);
  if (status == AIT_OK) status = run_exact(d, trusted, inputs, input_count, exact, count, &in_double);
  if (status == AIT_OK) status = run_on(d, trusted, d->reference, NULL, inputs, input_count, single, count);
  ait_debug_call call = {d->load, tested, backend, knobs, inputs, input_count};
  if (status == AIT_OK && backend == d->reference) status = ait_debug_run(&call, got, count);
  else if (status == AIT_OK) status = ait_debug_run_apart(&call, got, count, out->crash);
  if (*out->crash) out->index = 0;
  for (size_t i = 0; status == AIT_OK && !bad && !*out->crash && i < count; ++i) {
    status = compare_one(d, &got[i], &single[i], &exact[i], in_double, out, &bad);
    if (bad) out->index = i;
  }
  ait_debug_values_free(got, count);
  ait_debug_values_free(single, count);
  ait_debug_values_free(exact, count);
  return status;
}

/* ---- searching -------------------------------------------------------------------------------------------------------------------*/
/* Contents that mean something: not memory that nobody has written. */
static bool is_comparable(const debugger *d, const ait_node *n, uint32_t value) {
  return value != AIT_NO_INDEX && d->graph->values[value].type == AIT_TYPE_TENSOR && d->graph->values[value].rank >= 0 &&
         !(n->op->traits & (AIT_OP_UNINIT | AIT_OP_RANDOM));
}

static ait_status test_values(debugger *d, const ait_node *last, const uint32_t *values, size_t count, uint32_t *out_bad) {
  ait_graph *probe;
  *out_bad = AIT_NO_INDEX;
  if (count == 0) return AIT_OK;
  AIT_TRY(ait_debug_probe(d->graph, last, values, count, &probe));
  finding f;
  ait_status status = first_bad(d, probe, probe, d->backend, d->load->knobs, d->inputs, d->input_count, &f);
  ait_graph_destroy(probe);
  if (status != AIT_OK || f.index == SIZE_MAX) return status;
  *out_bad = values[f.index];
  d->found = f;
  return AIT_OK;
}

/* Every value, in the order of execution, as outputs. */
static ait_status search_values(debugger *d, uint32_t *values) {
  size_t count = 0;
  double bytes = 0;
  uint32_t bad = AIT_NO_INDEX;
  for (size_t i = 0; bad == AIT_NO_INDEX && i < d->node_count; ++i) {
    const ait_node *n = d->nodes[i];
    for (uint32_t r = 0; r < n->result_count; ++r) {
      if (!is_comparable(d, n, n->results[r])) continue;
      values[count++] = n->results[r];
      bytes += ait_value_bytes(d->graph, n->results[r], d->symbols);
    }
    if (bytes < chunk_bytes && i + 1 < d->node_count) continue;
    AIT_TRY(test_values(d, NULL, values, count, &bad));
    if (*d->found.crash) return AIT_OK; /* asked for every value it crashes: the cuts tell more */
    count = 0;
    bytes = 0;
  }
  if (bad == AIT_NO_INDEX) return AIT_OK;
  d->value = bad;
  d->node = d->graph->values[bad].def;
  d->cause = "node";
  return AIT_OK;
}

typedef struct frontier {
  const debugger *d;
  bool *used;
} frontier;
static void mark_used(void *ctx, uint32_t value) { ((frontier *)ctx)->used[value] = true; }

/* What nodes 0 to k made and later nodes, or the model's outputs, use. */
static size_t alive_after(const debugger *d, size_t k, bool *used, uint32_t *values) {
  frontier f = {d, used};
  size_t count = 0;
  memset(used, 0, d->graph->value_count * sizeof *used);
  for (size_t i = k + 1; i < d->node_count; ++i) ait_node_each_operand(d->nodes[i], mark_used, &f);
  for (size_t i = 0; i < d->graph->output_count; ++i)
    if (d->graph->outputs[i].arg.kind == AIT_ARG_VALUE) used[d->graph->outputs[i].arg.as.value] = true;
  for (size_t i = 0; i <= k; ++i)
    for (uint32_t r = 0; r < d->nodes[i]->result_count; ++r)
      if (is_comparable(d, d->nodes[i], d->nodes[i]->results[r]) && used[d->nodes[i]->results[r]])
        values[count++] = d->nodes[i]->results[r];
  return count;
}

/* The backend comes back from the nodes before this one, and not from this one. */
static void blame_last(debugger *d, const ait_node *last) {
  d->cause = "crash";
  d->node = last;
  for (uint32_t r = 0; r < last->result_count; ++r)
    if (last->results[r] != AIT_NO_INDEX) d->value = last->results[r];
  const ait_value_info *v = &d->graph->values[d->value];
  d->found.dtype = v->dtype;
  d->found.rank = v->rank > 0 ? v->rank : 0;
  for (int32_t k = 0; k < d->found.rank; ++k)
    if (!ait_dim_eval(d->graph->root->dims, d->symbols, v->shape[k], &d->found.shape[k])) d->found.shape[k] = -1;
}

static ait_status search_cuts(debugger *d, bool *used, uint32_t *values) {
  size_t low = 0, high = d->node_count; /* the cut after high - 1 is bad: it is the whole graph */
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    uint32_t bad;
    size_t count = alive_after(d, middle, used, values);
    AIT_TRY(test_values(d, d->nodes[middle], values, count, &bad));
    if (bad == AIT_NO_INDEX) {
      low = middle + 1;
      continue;
    }
    high = middle;
    d->value = bad;
    d->node = d->graph->values[bad].def;
    d->cause = "fusion";
    if (*d->found.crash) blame_last(d, d->nodes[middle]);
  }
  return AIT_OK;
}

/* ---- passes ----------------------------------------------------------------------------------------------------------------------*/
typedef struct pass_watch {
  debugger *d;
  ait_status status;
} pass_watch;

static void check_pass(void *ctx, const char *pass, const ait_graph *graph) {
  pass_watch *w = ctx;
  debugger *d = w->d;
  finding f;
  if (w->status != AIT_OK || *d->bad_pass) return;
  w->status = first_bad(d, d->raw, graph, d->reference, NULL, d->inputs, d->input_count, &f);
  if (w->status != AIT_OK || f.index == SIZE_MAX) return;
  d->found = f;
  d->cause = "pass";
  snprintf(d->bad_pass, sizeof d->bad_pass, "%s", pass);
}

/* The lowered graph on the reference is wrong already: after which pass? */
static ait_status search_passes(debugger *d, const char *pipeline) {
  ait_build_request request = {.allocator = ait_allocator_default(), .backend = d->reference, .cpu_mask = UINT64_MAX};
  ait_graph *copy;
  pass_watch watch = {.d = d};
  ait_pass_context context = {.allocator = ait_allocator_default()};
  AIT_TRY(ait_plan_lower(d->raw, &request, &copy)); /* raw, with weights of its own */
  ait_status status = ait_passes_run(copy, pipeline, &context, check_pass, &watch);
  ait_graph_destroy(copy);
  return ait_status_join(status, watch.status);
}

/* ---- reproducer ------------------------------------------------------------------------------------------------------------------*/
typedef struct reproducer {
  bool written, reproduces;
  size_t nodes;
  char graph[1024], data[1024], expected[1024];
} reproducer;

/* What the reference gives for the values that nodes read from elsewhere. known: value_count values. */
static ait_status know_values(const debugger *d, const bool *boundary, ait_value *known) {
  size_t count = 0, n = d->graph->value_count;
  uint32_t *values = ait_alloc(ait_allocator_default(), (n + 1) * sizeof *values, _Alignof(uint32_t));
  ait_value *got = NULL;
  ait_graph *probe = NULL;
  ait_status status = values ? AIT_OK : AIT_OOM();
  for (uint32_t v = 0; status == AIT_OK && v < n; ++v)
    if (boundary[v] && known[v].kind == AIT_VALUE_NONE) values[count++] = v;
  if (status == AIT_OK) status = ait_debug_values_new(count, &got);
  if (status == AIT_OK) status = ait_debug_probe(d->graph, NULL, values, count, &probe);
  if (status == AIT_OK) status = run_on(d, probe, d->reference, NULL, d->inputs, d->input_count, got, count);
  for (size_t i = 0; status == AIT_OK && i < count; ++i) {
    known[values[i]] = got[i];
    got[i] = (ait_value){0};
  }
  ait_graph_destroy(probe);
  ait_debug_values_free(got, count);
  ait_free(ait_allocator_default(), values, (n + 1) * sizeof *values);
  return status;
}

static ait_status save_value(ait_data *data, const char *name, const ait_value *v) {
  ait_tensor scalar = ait_tensor_borrow((void *)(uintptr_t)&v->as.i, AIT_I64, 0, NULL);
  if (v->kind == AIT_VALUE_FLOAT) scalar = ait_tensor_borrow((void *)(uintptr_t)&v->as.f, AIT_F64, 0, NULL);
  if (v->kind == AIT_VALUE_BOOL) scalar = ait_tensor_borrow((void *)(uintptr_t)&v->as.b, AIT_BOOL, 0, NULL);
  return ait_data_add(data, name, v->kind == AIT_VALUE_TENSOR ? &v->as.tensor : &scalar);
}

/* PREFIX.txt, PREFIX.npz and PREFIX.expected.npz. */
static ait_status write_files(const debugger *d, const ait_debug_slice *s, const ait_value *inputs, reproducer *r) {
  ait_allocator a = ait_allocator_default();
  const char *prefix = d->options->output;
  ait_text text;
  ait_data *data = NULL, *expected = NULL;
  ait_value want = {0};
  snprintf(r->graph, sizeof r->graph, "%s.txt", prefix);
  snprintf(r->data, sizeof r->data, "%s.npz", prefix);
  snprintf(r->expected, sizeof r->expected, "%s.expected.npz", prefix);
  ait_text_init(&text, a);
  ait_status status = ait_graph_print(s->graph, &text);
  if (status == AIT_OK && text.failed) status = AIT_OOM();
  if (status == AIT_OK) status = ait_file_write_all(a, r->graph, text.data, text.length);
  if (status == AIT_OK) status = ait_data_create(a, &data);
  for (size_t i = 0; status == AIT_OK && i < s->input_count; ++i) status = save_value(data, s->graph->inputs[i].name, &inputs[i]);
  if (status == AIT_OK) status = ait_data_save(data, r->data);
  if (status == AIT_OK) status = run_on(d, s->graph, d->reference, NULL, inputs, s->input_count, &want, 1);
  if (status == AIT_OK) status = ait_data_create(a, &expected);
  if (status == AIT_OK) status = save_value(expected, s->graph->outputs[0].name, &want);
  if (status == AIT_OK) status = ait_data_save(expected, r->expected);
  r->written = status == AIT_OK;
  ait_value_release(&want);
  ait_data_destroy(data);
  ait_data_destroy(expected);
  ait_text_deinit(&text);
  return status;
}

/* Cuts the taken nodes out and tries them. A slice that cannot be made, or that the backend declines, does not reproduce. */
static ait_status try_slice(const debugger *d, const bool *taken, const bool *boundary, ait_value *known, bool last, reproducer *r) {
  ait_debug_slice s = {0};
  finding f = {.index = SIZE_MAX};
  ait_value *inputs = NULL;
  ait_status status = know_values(d, boundary, known);
  if (status == AIT_OK) status = ait_debug_cut(d->graph, taken, known, d->value, d->symbols, &s);
  if (status != AIT_OK && ait_status_code(status) == AIT_CODE_UNSUPPORTED) return ait_status_free(status), AIT_OK;
  if (status == AIT_OK) status = ait_debug_values_new(s.input_count, &inputs);
  for (size_t i = 0; status == AIT_OK && i < s.input_count; ++i) inputs[i] = known[s.inputs[i]]; /* borrowed */
  if (status == AIT_OK) status = first_bad(d, s.graph, s.graph, d->backend, d->load->knobs, inputs, s.input_count, &f);
  if (status != AIT_OK && ait_status_code(status) == AIT_CODE_UNSUPPORTED) {
    ait_status_free(status);
    status = AIT_OK;
  }
  r->reproduces = f.index != SIZE_MAX;
  r->nodes = s.graph ? s.graph->node_count : 0;
  if (status == AIT_OK && (r->reproduces || last)) status = write_files(d, &s, inputs, r);
  ait_free(ait_allocator_default(), inputs, (s.input_count + 1) * sizeof *inputs);
  ait_debug_slice_deinit(d->graph, &s);
  return status;
}

/* The node alone, then with the nodes before it, until it goes wrong as in the whole model. */
static ait_status reproduce(const debugger *d, reproducer *r) {
  enum { ATTEMPTS = 6 };
  ait_allocator a = ait_allocator_default();
  size_t n = d->graph->value_count;
  bool *taken = ait_alloc_zero(a, d->node_count + 1, 1), *boundary = ait_alloc_zero(a, n + 1, 1);
  ait_value *known = NULL;
  ait_status status = taken && boundary ? ait_debug_values_new(n, &known) : AIT_OOM();
  for (size_t i = 0; status == AIT_OK && i < d->node_count; ++i) taken[i] = d->nodes[i] == d->node;
  for (int attempt = 0; status == AIT_OK && attempt < ATTEMPTS && !r->reproduces; ++attempt) {
    for (int grow = 0; grow < attempt; ++grow) { /* 0, 1, 3, 6, 10, 15 nodes deep */
      ait_debug_boundary(d->graph, taken, boundary);
      for (size_t i = 0; i < d->node_count; ++i)
        for (uint32_t k = 0; k < d->nodes[i]->result_count; ++k)
          if (d->nodes[i]->results[k] != AIT_NO_INDEX && boundary[d->nodes[i]->results[k]]) taken[i] = true;
    }
    ait_debug_boundary(d->graph, taken, boundary);
    status = try_slice(d, taken, boundary, known, attempt + 1 == ATTEMPTS, r);
  }
  ait_debug_values_free(known, n);
  ait_free(a, taken, d->node_count + 1);
  ait_free(a, boundary, n + 1);
  return status;
}

/* ---- the document ----------------------------------------------------------------------------------------------------------------*/
static void put_tensor(ait_text *t, bool *first, const ait_tensor *x) {
  double low = INFINITY, high = -INFINITY;
  int64_t odd = 0, n = ait_tensor_count(x);
  for (int64_t i = 0; i < n; ++i) {
    double v = ait_element_f64((const char *)x->data + (size_t)i * ait_dtype_size(x->dtype), x->dtype);
    if (!isfinite(v)) ++odd;
    else low = fmin(low, v), high = fmax(high, v);
  }
  ait_put_string(t, first, "dtype", ait_dtype_name(x->dtype));
  ait_put_key(t, first, "shape");
  ait_text_printf(t, "[");
  for (int32_t d = 0; d < x->rank; ++d) ait_text_printf(t, "%s%lld", d ? ", " : "", (long long)x->shape[d]);
  ait_text_printf(t, "]");
  if (low <= high) ait_put_double(t, first, "min", low), ait_put_double(t, first, "max", high);
  ait_put_int(t, first, "not_finite", odd);
}

static ait_status put_operands(ait_text *t, const debugger *d) {
  ait_allocator a = ait_allocator_default();
  size_t n = d->graph->value_count;
  bool *taken = ait_alloc_zero(a, d->node_count + 1, 1), *boundary = ait_alloc_zero(a, n + 1, 1), any = false;
  ait_value *known = NULL;
  ait_status status = taken && boundary ? ait_debug_values_new(n, &known) : AIT_OOM();
  for (size_t i = 0; status == AIT_OK && i < d->node_count; ++i) taken[i] = d->nodes[i] == d->node;
  if (status == AIT_OK) {
    ait_debug_boundary(d->graph, taken, boundary);
    status = know_values(d, boundary, known);
  }
  for (size_t v = 0; status == AIT_OK && v < n; ++v) {
    bool first = true;
    if (known[v].kind == AIT_VALUE_NONE) continue;
    ait_text_printf(t, "%s\n    {", any ? "," : "");
    any = true;
    ait_put_string(t, &first, "name", d->graph->values[v].name);
    if (known[v].kind == AIT_VALUE_TENSOR) put_tensor(t, &first, &known[v].as.tensor);
    if (known[v].kind == AIT_VALUE_INT) ait_put_int(t, &first, "value", known[v].as.i);
    if (known[v].kind == AIT_VALUE_FLOAT) ait_put_double(t, &first, "value", known[v].as.f);
    ait_text_printf(t, "}");
  }
  ait_debug_values_free(known, n);
  ait_free(a, taken, d->node_count + 1);
  ait_free(a, boundary, n + 1);
  return status;
}

static void put_worst(ait_text *t, const finding *f) {
  const ait_compare_result *c = &f->compared;
  bool first = true;
  int64_t index[AIT_MAX_RANK], rest = c->worst_index < 0 ? 0 : c->worst_index;
  for (int32_t k = f->rank; k-- > 0;) {
    index[k] = f->shape[k] ? rest % f->shape[k] : 0;
    rest /= f->shape[k] ? f->shape[k] : 1;
  }
  ait_text_printf(t, "{\"index\": [");
  for (int32_t k = 0; k < f->rank; ++k) ait_text_printf(t, "%s%lld", k ? ", " : "", (long long)index[k]);
  ait_text_printf(t, "], ");
  ait_put_double(t, &first, "got", c->worst_got);
  ait_put_double(t, &first, "want", c->worst_want);
  ait_put_double(t, &first, "tolerance", f->atol);
  ait_put_int(t, &first, "mismatches", c->mismatches);
  ait_put_int(t, &first, "count", c->count);
  ait_put_double(t, &first, "max_abs", c->max_abs);
  ait_put_double(t, &first, "largest", f->max_abs);
  ait_text_printf(t, "}");
}

static ait_status put_node(ait_text *t, const debugger *d) {
  bool first = true;
  const ait_node *n = d->node;
  const char *module = n->module != AIT_NO_INDEX ? d->graph->root->modules[n->module].path : "";
  ait_text_printf(t, ",\n  \"node\": {");
  ait_put_string(t, &first, "name", n->name);
  ait_put_string(t, &first, "op", n->op_name);
  ait_put_string(t, &first, "module", module);
  ait_put_string(t, &first, "value", d->graph->values[d->value].name);
  ait_put_string(t, &first, "dtype", ait_dtype_name(d->found.dtype));
  ait_put_key(t, &first, "shape");
  ait_text_printf(t, "[");
  for (int32_t k = 0; k < d->found.rank; ++k) ait_text_printf(t, "%s%lld", k ? ", " : "", (long long)d->found.shape[k]);
  ait_text_printf(t, "]}");
  ait_text_printf(t, ",\n  \"operands\": [");
  AIT_TRY(put_operands(t, d));
  ait_text_printf(t, "]");
  return AIT_OK;
}

static ait_status put_document(ait_text *t, const debugger *d, const reproducer *r) {
  bool first = true;
  ait_text_printf(t, "{\n  ");
  ait_put_string(t, &first, "backend", d->backend->name);
  ait_put_bool(t, &first, "agrees", d->cause == NULL);
  if (d->cause) ait_put_string(t, &first, "cause", d->cause);
  if (*d->bad_pass) ait_put_string(t, &first, "pass", d->bad_pass);
  if (d->node) AIT_TRY(put_node(t, d));
  if (*d->found.crash) ait_put_string(t, &(bool){false}, "crash", d->found.crash);
  else if (d->cause) {
    ait_text_printf(t, ",\n  \"worst\": ");
    put_worst(t, &d->found);
  }
  if (r->written) {
    first = true;
    ait_text_printf(t, ",\n  \"reproducer\": {");
    ait_put_string(t, &first, "graph", r->graph);
    ait_put_string(t, &first, "data", r->data);
    ait_put_string(t, &first, "expected", r->expected);
    ait_put_int(t, &first, "nodes", (int64_t)r->nodes);
    ait_put_bool(t, &first, "reproduces", r->reproduces);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "\n}\n");
  return t->failed ? AIT_OOM() : AIT_OK;
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------------*/
static bool writes_in_place(const ait_graph *g) {
  for (const ait_node *n = g->first; n; n = n->next)
    if ((n->flags & AIT_NODE_INPLACE) || (n->op->traits & AIT_OP_MUTATES)) return true;
  return false;
}

static ait_status bind_symbols(debugger *d) {
  ait_region *region;
  ait_allocator a = ait_allocator_default();
  AIT_TRY(ait_graph_region(d->graph, a, &region));
  d->symbols = ait_alloc_zero(a, (d->graph->symbol_count + 1) * sizeof *d->symbols, _Alignof(int64_t));
  ait_status status = d->symbols ? ait_bind_inputs(region, d->inputs, d->input_count, d->symbols) : AIT_OOM();
  ait_graph_region_destroy(a, region);
  return status;
}

static ait_status prepare(debugger *d, const char **out_pipeline) {
  ait_allocator a = ait_allocator_default();
  ait_build_request request = {.allocator = a, .backend = d->backend, .pipeline = d->load->passes, .cpu_mask = d->load->cpu_mask};
  if (!request.pipeline && d->backend->accepts_raw && writes_in_place(d->raw))
    request.pipeline = "core"; /* a value must have one meaning */
  *out_pipeline = request.pipeline                    ? request.pipeline
                  : d->backend->accepts_raw           ? NULL
                  : strcmp(d->backend->name, "eager") ? "core"
                                                      : "eager";
  AIT_TRY(ait_plan_lower(d->raw, &request, &d->graph));
  AIT_TRY(bind_symbols(d));
  d->nodes = ait_alloc(a, (d->graph->node_count + 1) * sizeof *d->nodes, _Alignof(ait_node *));
  if (!d->nodes) return AIT_OOM();
  for (const ait_node *n = d->graph->first; n; n = n->next) d->nodes[d->node_count++] = n;
  return AIT_OK;
}

static ait_status search(debugger *d, const char *pipeline) {
  ait_allocator a = ait_allocator_default();
  finding f;
  AIT_TRY(first_bad(d, d->raw, d->graph, d->backend, d->load->knobs, d->inputs, d->input_count, &f));
  if (f.index == SIZE_MAX) return AIT_OK;
  d->found = f;
  if (pipeline) {
    AIT_TRY(first_bad(d, d->raw, d->graph, d->reference, NULL, d->inputs, d->input_count, &f));
    if (f.index != SIZE_MAX) return search_passes(d, pipeline);
  }
  size_t n = d->graph->value_count + 1;
  uint32_t *values = ait_alloc(a, n * sizeof *values, _Alignof(uint32_t));
  bool *used = ait_alloc(a, n, 1);
  ait_status status = values && used ? AIT_OK : AIT_OOM();
  if (status == AIT_OK && !*d->found.crash) status = search_values(d, values);
  if (status == AIT_OK && !d->node) status = search_cuts(d, used, values);
  if (status == AIT_OK && !d->cause) d->cause = *d->found.crash ? "crash" : "unknown";
  ait_free(a, values, n * sizeof *values);
  ait_free(a, used, n);
  return status;
}

static ait_status debug(debugger *d, const char *path, ait_text *t) {
  const char *pipeline;
  reproducer r = {0};
  if (!d->backend)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no backend '%s'", d->load->backend ? d->load->backend : ""),
                          "'ait backends' lists them");
  AIT_TRY(ait_graph_open(path, d->load, &d->raw));
  AIT_TRY(prepare(d, &pipeline));
  AIT_TRY(search(d, pipeline));
  if (d->node && d->options->output) AIT_TRY(reproduce(d, &r));
  return put_document(t, d, &r);
}

void ait_debug_options_init(ait_debug_options *options) { *options = (ait_debug_options){.struct_size = sizeof *options}; }

ait_status ait_debug(const char *path, const ait_load_options *load, const ait_value *inputs, size_t input_count,
                     const ait_debug_options *options, char **out) {
  ait_allocator a = ait_allocator_default();
  ait_load_options defaults;
  ait_debug_options o;
  ait_text t;
  *out = NULL;
  if (!load) ait_load_options_init(&defaults), load = &defaults;
  ait_debug_options_init(&o);
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  debugger d = {.load = load, .options = &o, .inputs = inputs, .input_count = input_count};
  d.backend = ait_backend_find(load->backend ? load->backend : "native");
  d.reference = ait_backend_find("reference");
  ait_text_init(&t, a);
  ait_status status = debug(&d, path, &t);
  ait_free(a, d.nodes, d.graph ? (d.graph->node_count + 1) * sizeof *d.nodes : 0);
  ait_free(a, d.symbols, d.graph ? (d.graph->symbol_count + 1) * sizeof *d.symbols : 0);
  ait_graph_destroy(d.graph);
  ait_graph_destroy(d.raw);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return ait_file_context(status, "debug", path);
}
