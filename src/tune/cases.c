#include "tune/cases.h"
#include "tune/cost.h"
#include "tune/nudge.h"
#include "tune/shapes.h"
#include <math.h>
#include <stdio.h>

enum { MAX_SAMPLES = 8, MAX_CASES = MAX_SAMPLES + AIT_SHAPE_WANTED + 2 };
/* Sizes of the largest case, as multiples of the sample's; -n: one less than n times where that is odd and the sample even, or the other
 * way round, since what is wrong in the rest of a vector is right without one; the last is one more than the sample's. */
static const int64_t growths[] = {-4, 4, -3, 3, -2, 2, 0};
/* The oracle is slow, a few GFLOP a second, and runs three times: sizes that ask for more are made smaller. */
static const double largest_flops = 2e10;
/* Where the count of operations says too little: a case that would take it longer is left out. */
static const double reference_limit_seconds = 20;

/* ---- inputs ----------------------------------------------------------------------------------------------------------------------*/
static ait_status copy_value(const ait_value *v, ait_value *out) {
  *out = *v;
  if (v->kind != AIT_VALUE_TENSOR) return AIT_OK;
  return ait_tensor_cast(ait_allocator_default(), &v->as.tensor, v->as.tensor.dtype, &out->as.tensor);
}

static void shapes_text(const ait_tune_case *c, char *out, size_t size) {
  *out = 0;
  for (size_t i = 0; i < c->input_count; ++i) {
    char shape[128];
    if (c->inputs[i].kind != AIT_VALUE_TENSOR) continue;
    ait_tensor_shape_text(&c->inputs[i].as.tensor, shape, sizeof shape);
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", used ? " " : "", shape);
  }
}

/* The tensor in another size: its contents repeated, or cut, along each dimension, so that indices and masks stay valid. */
static ait_status resize(const ait_tensor *src, const int64_t *shape, ait_tensor *out) {
  AIT_TRY(ait_tensor_create(ait_allocator_default(), src->dtype, src->rank, shape, out));
  int64_t index[AIT_MAX_RANK] = {0}, n = ait_tensor_count(out);
  size_t size = ait_dtype_size(src->dtype);
  for (int64_t i = 0; i < n; ++i) {
    int64_t from = 0;
    for (int32_t d = 0; d < src->rank; ++d) from += (index[d] % src->shape[d]) * src->strides[d];
    memcpy((char *)out->data + (size_t)i * size, (const char *)src->data + from * (int64_t)size, size);
    for (int32_t d = src->rank - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
  }
  return AIT_OK;
}

/* The sample with other values of the symbols. *out_possible: false when a size cannot be told, or the sample is empty there. */
static ait_status resized_case(const ait_region *region, const ait_tune_case *sample, const int64_t *symbols, ait_tune_case *out,
                               bool *out_possible) {
  *out_possible = true;
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->user_index < 0) continue;
    const ait_value *from = &sample->inputs[in->user_index];
    ait_value *to = &out->inputs[in->user_index];
    *to = *from;
    if (in->value == AIT_NO_INDEX) continue;
    const ait_region_value *v = &region->values[in->value];
    int64_t shape[AIT_MAX_RANK];
    if (from->kind == AIT_VALUE_INT && v->type == AIT_TYPE_INT && v->shape)
      *out_possible &= ait_dim_eval(region->dims, symbols, v->shape[0], &to->as.i);
    if (from->kind != AIT_VALUE_TENSOR) continue;
    to->kind = AIT_VALUE_NONE;
    for (int32_t d = 0; d < v->rank; ++d)
      if (!ait_dim_eval(region->dims, symbols, v->shape[d], &shape[d]) || from->as.tensor.shape[d] == 0) *out_possible = false;
    if (!*out_possible) return AIT_OK;
    AIT_TRY(resize(&from->as.tensor, shape, &to->as.tensor));
    to->kind = AIT_VALUE_TENSOR;
  }
  return AIT_OK;
}

static void release_case(ait_tune_case *c, size_t outputs) {
  ait_allocator a = ait_allocator_default();
  for (size_t i = 0; c->inputs && i < c->input_count; ++i) ait_value_release(&c->inputs[i]);
  for (size_t i = 0; c->expected && i < outputs; ++i) ait_value_release(&c->expected[i]);
  ait_free(a, c->inputs, (c->input_count + 1) * sizeof *c->inputs);
  ait_free(a, c->expected, (outputs + 1) * sizeof *c->expected);
  *c = (ait_tune_case){0};
}

static ait_status new_case(const ait_tune_cases *cases, size_t input_count, const char *label, ait_tune_case *out) {
  ait_allocator a = ait_allocator_default();
  *out = (ait_tune_case){.input_count = input_count};
  snprintf(out->label, sizeof out->label, "%s", label);
  out->inputs = ait_alloc_zero(a, (input_count + 1) * sizeof *out->inputs, _Alignof(ait_value));
  out->expected = ait_alloc_zero(a, (cases->output_count + 1) * sizeof *out->expected, _Alignof(ait_value));
  return out->inputs && out->expected ? AIT_OK : AIT_OOM();
}

static ait_status add_samples(ait_tune_cases *cases, const ait_region *region, const ait_sample *samples, size_t count, int64_t *symbols) {
  for (size_t s = 0; s < count && s < MAX_SAMPLES; ++s) {
    char label[32];
    snprintf(label, sizeof label, "sample %zu", s);
    AIT_TRY(ait_error_context(ait_bind_inputs(region, samples[s].inputs, samples[s].input_count, symbols), "%s", label));
    ait_tune_case *c = &cases->items[cases->count];
    AIT_TRY(new_case(cases, samples[s].input_count, label, c));
    ++cases->count;
    c->measured = true;
    for (size_t i = 0; i < c->input_count; ++i) AIT_TRY(copy_value(&samples[s].inputs[i], &c->inputs[i]));
    shapes_text(c, c->shapes, sizeof c->shapes);
  }
  return AIT_OK;
}

/* A case for each combination of the sizes that were asked for; other sizes are the first sample's. */
static ait_status add_wanted(ait_tune_cases *cases, const ait_region *region, const ait_shape_requests *q, uint32_t index,
                             int64_t *symbols) {
  bool possible;
  char label[32];
  int64_t bound[256];
  ait_tune_case *c = &cases->items[cases->count];
  snprintf(label, sizeof label, "size %u", index);
  ait_shape_requests_at(q, index, symbols);
  AIT_TRY(new_case(cases, cases->items[0].input_count, label, c));
  ++cases->count;
  c->wanted = true;
  AIT_TRY(resized_case(region, &cases->items[0], symbols, c, &possible));
  if (!possible) return ait_error(AIT_CODE_INVALID_ARGUMENT, "buckets: the first sample cannot be brought to size %u", index);
  shapes_text(c, c->shapes, sizeof c->shapes);
  if (region->symbol_count > AIT_COUNT(bound)) return AIT_OK;
  return ait_error_context(ait_bind_inputs(region, c->inputs, c->input_count, bound), "buckets: sizes %s", c->shapes);
}

static ait_status add_buckets(ait_tune_cases *cases, const ait_region *region, const char *const *buckets) {
  ait_allocator a = ait_allocator_default();
  size_t bytes = ((size_t)region->symbol_count + 1) * sizeof(int64_t);
  ait_shape_requests q;
  AIT_TRY(ait_shape_requests_parse(region, buckets, &q));
  int64_t *symbols = ait_alloc(a, bytes, _Alignof(int64_t));
  ait_status status = symbols ? AIT_OK : AIT_OOM();
  for (uint32_t i = 0; status == AIT_OK && i < q.combinations; ++i) {
    status = ait_bind_inputs(region, cases->items[0].inputs, cases->items[0].input_count, symbols);
    if (status == AIT_OK) status = add_wanted(cases, region, &q, i, symbols);
  }
  ait_free(a, symbols, bytes);
  return status;
}

ait_status ait_tune_case_resized(const ait_tune_cases *cases, const ait_region *region, const int64_t *symbols, const char *label,
                                 ait_tune_case *out, bool *out_possible) {
  size_t bytes = (region->symbol_count + 1) * sizeof(int64_t);
  const ait_tune_case *sample = &cases->items[0];
  int64_t *bound = ait_alloc(ait_allocator_default(), bytes, _Alignof(int64_t));
  *out_possible = false;
  *out = (ait_tune_case){0};
  ait_status status = bound ? new_case(cases, sample->input_count, label, out) : AIT_OOM();
  if (status == AIT_OK) status = resized_case(region, sample, symbols, out, out_possible);
  if (status == AIT_OK && *out_possible) { /* sizes that a guard forbids are no case */
    ait_status bad = ait_bind_inputs(region, out->inputs, out->input_count, bound);
    *out_possible = bad == AIT_OK;
    ait_status_ignore(bad);
  }
  shapes_text(out, out->shapes, sizeof out->shapes);
  if (status != AIT_OK || !*out_possible) ait_tune_case_release(cases, out);
  ait_free(ait_allocator_default(), bound, bytes);
  return status;
}

void ait_tune_case_release(const ait_tune_cases *cases, ait_tune_case *c) { release_case(c, cases->output_count); }

/* What prices a case: the core graph of the model. */
typedef struct pricer {
  ait_graph *core; /* NULL: it cannot be lowered, and nothing has a price */
  ait_region *region;
  int64_t *symbols;
} pricer;

static void open_pricer(const ait_graph *raw, pricer *p) {
  ait_allocator a = ait_allocator_default();
  ait_build_request request = {.allocator = a, .backend = ait_backend_find("native"), .pipeline = "core", .cpu_mask = UINT64_MAX};
  *p = (pricer){0};
  ait_status status = ait_plan_lower(raw, &request, &p->core);
  if (status == AIT_OK) status = ait_graph_region(p->core, a, &p->region);
  if (status == AIT_OK) p->symbols = ait_cost_symbols(p->core, a);
  ait_status_ignore(status);
}

static void close_pricer(pricer *p) {
  ait_allocator a = ait_allocator_default();
  ait_free(a, p->symbols, p->symbols ? (p->core->root->symbol_count + 1) * sizeof *p->symbols : 0);
  ait_graph_region_destroy(a, p->region);
  ait_graph_destroy(p->core);
}

/* Arithmetic of one call on the case; 0: not known. */
static double flops_of_case(const pricer *p, const ait_tune_case *c) {
  double flops = 0;
  if (!p->symbols) return 0;
  ait_status status = ait_bind_inputs(p->region, c->inputs, c->input_count, p->symbols);
  for (const ait_node *n = p->core->first; status == AIT_OK && n; n = n->next) flops += ait_node_cost(p->core, n, p->symbols).flops;
  ait_status_ignore(status);
  return flops;
}

/* Every dynamic size at its minimum, at least 1. false: that is the sample. */
static bool smallest_sizes(const ait_region *region, const int64_t *sampled, int64_t *symbols) {
  bool differs = false;
  for (uint32_t i = 0; i < region->symbol_count; ++i) {
    const ait_symbol *s = &region->symbols[i];
    bool free_size = s->backed && sampled[i] != INT64_MIN;
    symbols[i] = !free_size ? sampled[i] : s->min > 1 ? s->min : 1;
    differs |= symbols[i] != sampled[i];
  }
  return differs;
}

static int64_t grown(int64_t sampled, int64_t max, int64_t growth) {
  int64_t factor = growth < 0 ? -growth : growth;
  if (growth == 0) return sampled + 1;
  if (max / factor < sampled) return max;
  int64_t size = sampled * factor;
  return growth < 0 && size != max && size % 2 == sampled % 2 && size - 1 > sampled ? size - 1 : size;
}

/* Every dynamic size at its maximum, at most `growth` times the sample's, or one more than it. */
static bool larger_sizes(const ait_region *region, const int64_t *sampled, int64_t growth, int64_t *symbols) {
  bool differs = false;
  for (uint32_t i = 0; i < region->symbol_count; ++i) {
    const ait_symbol *s = &region->symbols[i];
    symbols[i] = sampled[i];
    if (!s->backed || sampled[i] == INT64_MIN || sampled[i] >= s->max) continue;
    symbols[i] = grown(sampled[i], s->max, growth);
    differs |= symbols[i] != sampled[i];
  }
  return differs;
}

/* The largest sizes that guards allow and the oracle can afford; none at all where even one more is too much for a guard. */
static ait_status add_largest(ait_tune_cases *cases, const ait_graph *raw, const ait_region *region, const int64_t *sampled,
                              int64_t *symbols) {
  pricer p;
  ait_status status = AIT_OK;
  ait_tune_case *c = &cases->items[cases->count];
  bool done = false;
  if (!larger_sizes(region, sampled, growths[0], symbols)) return AIT_OK;
  open_pricer(raw, &p);
  double sample = flops_of_case(&p, &cases->items[0]);
  for (size_t k = 0; status == AIT_OK && !done && k < AIT_COUNT(growths); ++k) {
    bool possible;
    larger_sizes(region, sampled, growths[k], symbols);
    status = ait_tune_case_resized(cases, region, symbols, growths[k] ? "largest" : "larger", c, &possible);
    if (status != AIT_OK || !possible) continue;
    double flops = flops_of_case(&p, c);
    done = flops <= largest_flops || !growths[k];
    c->cost = sample > 0 && flops > 0 ? flops / sample : 16;
    if (!done) release_case(c, cases->output_count);
  }
  cases->count += done;
  close_pricer(&p);
  return status;
}

static ait_status add_extremes(ait_tune_cases *cases, const ait_graph *raw, const ait_region *region, const int64_t *sampled) {
  size_t bytes = (region->symbol_count + 1) * sizeof(int64_t);
  int64_t *symbols = ait_alloc(ait_allocator_default(), bytes, _Alignof(int64_t));
  bool possible = false;
  ait_status status = symbols ? AIT_OK : AIT_OOM();
  if (status == AIT_OK && smallest_sizes(region, sampled, symbols))
    status = ait_tune_case_resized(cases, region, symbols, "smallest", &cases->items[cases->count], &possible);
  cases->count += possible;
  if (status == AIT_OK) status = add_largest(cases, raw, region, sampled, symbols);
  ait_free(ait_allocator_default(), symbols, bytes);
  return status;
}

/* ---- the oracle ------------------------------------------------------------------------------------------------------------------*/
typedef enum oracle_mode { ORACLE_DOUBLE, ORACLE_OWN, ORACLE_NUDGED } oracle_mode;

/* After building: the weights that the oracle runs on. */
static ait_status replace_weights(ait_weight_store **weights) {
  ait_weight_store *nudged;
  AIT_TRY(ait_nudge_weights(*weights, &nudged));
  ait_weight_store_release(*weights);
  *weights = nudged;
  return AIT_OK;
}

static ait_status oracle(const ait_graph *raw, const ait_region *region, oracle_mode mode, int32_t threads, ait_plan *plan,
                         ait_weight_store **weights, ait_model **model, ait_session **session) {
  const char *options = mode == ORACLE_DOUBLE ? "precision=fp64" : NULL;
  ait_build_request request = {
      .allocator = ait_allocator_default(), .backend = ait_backend_find("reference"), .options = options, .cpu_mask = UINT64_MAX};
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = threads;
  AIT_TRY(ait_plan_build(raw, &request, NULL, plan, weights));
  if (mode == ORACLE_NUDGED && *weights) AIT_TRY(replace_weights(weights));
  AIT_TRY(ait_model_create(ait_allocator_default(), region, ait_weight_store_provider(*weights), plan, NULL, NULL, model));
  return ait_session_create(*model, &so, session);
}

static void nudge_input(ait_value *v) {
  if (v->kind != AIT_VALUE_TENSOR || v->as.tensor.dtype != AIT_F32 || !ait_tensor_is_contiguous(&v->as.tensor)) return;
  ait_nudge_floats(v->as.tensor.data, (size_t)ait_tensor_count(&v->as.tensor));
}

static ait_status run_case(ait_session *session, const ait_tune_case *c, bool nudge, ait_value *outputs, size_t output_count) {
  ait_value *inputs = ait_alloc_zero(ait_allocator_default(), (c->input_count + 1) * sizeof *inputs, _Alignof(ait_value));
  ait_status status = inputs ? ait_session_reset(session) : AIT_OOM();
  for (size_t i = 0; status == AIT_OK && i < c->input_count; ++i)
    status = copy_value(&c->inputs[i], &inputs[i]); /* a model may write into them */
  for (size_t i = 0; status == AIT_OK && nudge && i < c->input_count; ++i) nudge_input(&inputs[i]);
  for (size_t i = 0; i < output_count; ++i) outputs[i] = (ait_value){0};
  if (status == AIT_OK) status = ait_session_run(session, inputs, c->input_count, outputs, output_count);
  for (size_t i = 0; inputs && i < c->input_count; ++i) ait_value_release(&inputs[i]);
  ait_free(ait_allocator_default(), inputs, (c->input_count + 1) * sizeof *inputs);
  return status;
}

static double largest_magnitude(const ait_tensor *t) { /* contiguous double */
  double m = 0;
  for (int64_t i = 0, n = ait_tensor_count(t); i < n; ++i) {
    double x = fabs(((const double *)t->data)[i]);
    if (isfinite(x) && x > m) m = x;
  }
  return m;
}

static ait_status keep_expected(ait_tune_cases *cases, ait_tune_case *c, const ait_value *outputs) {
  for (size_t k = 0; k < cases->output_count; ++k) {
    c->expected[k] = outputs[k];
    if (outputs[k].kind != AIT_VALUE_TENSOR) continue;
    c->expected[k].kind = AIT_VALUE_NONE;
    ait_dtype dtype = outputs[k].as.tensor.dtype;
    cases->outputs[k].exact = !ait_dtype_is_float(dtype) && !ait_dtype_is_complex(dtype);
    AIT_TRY(ait_tensor_cast(ait_allocator_default(), &outputs[k].as.tensor, ait_dtype_is_float(dtype) ? AIT_F64 : dtype,
                            &c->expected[k].as.tensor));
    c->expected[k].kind = AIT_VALUE_TENSOR;
    if (!ait_dtype_is_float(dtype)) continue;
    double m = largest_magnitude(&c->expected[k].as.tensor);
    if (m > cases->outputs[k].max_abs) cases->outputs[k].max_abs = m;
  }
  return AIT_OK;
}

/* Every number moved by a whole unit at once is more than what roundings of half a unit do. */
static const double nudge_share = 0.3;

/* What rounding alone does, against the oracle in double: the oracle in the model's own precision, which rounds once for each operator, and
 * the same with inputs and weights moved by one unit in the last place, which shows what a model makes of the roundings inside of a sum. A
 * jump (an index that tips over) is no rounding. */
static ait_status measure_noise(ait_tune_cases *cases, const ait_tune_case *c, bool nudged, const ait_value *outputs) {
  ait_compare_rule rule = {.rtol = INFINITY};
  for (size_t k = 0; k < cases->output_count; ++k) {
    ait_compare_result r;
    if (outputs[k].kind != AIT_VALUE_TENSOR || cases->outputs[k].exact || c->expected[k].kind != AIT_VALUE_TENSOR) continue;
    AIT_TRY(ait_compare(&outputs[k].as.tensor, &c->expected[k].as.tensor, &rule, &r));
    bool jumped = nudged && !(r.max_abs <= 1e-4 * cases->outputs[k].max_abs);
    double noise = nudged ? nudge_share * r.max_abs : r.max_abs;
    if (!jumped && noise > cases->outputs[k].noise) cases->outputs[k].noise = noise;
  }
  return AIT_OK;
}

typedef struct oracle_run {
  ait_plan plan;
  ait_weight_store *weights;
  ait_model *model;
  ait_session *session;
} oracle_run;

static void close_oracle(oracle_run *o) {
  ait_session_destroy(o->session);
  ait_model_release(o->model);
  ait_weight_store_release(o->weights);
  if (o->plan.steps) ait_plan_deinit(&o->plan);
}

/* Sizes that nobody gave, and that the model itself refuses (an index beyond a table): no candidate can be asked for them. The extremes
 * come last, and what comes after this one goes, too. */
static bool drop_refused(ait_tune_cases *cases, size_t i, ait_status status) {
  const ait_tune_case *c = &cases->items[i];
  if (ait_status_code(status) != AIT_CODE_INVALID_ARGUMENT || i == 0 || c->measured || c->wanted) return false;
  ait_status_ignore(status);
  while (cases->count > i) release_case(&cases->items[--cases->count], cases->output_count);
  return true;
}

/* All cases on the oracle: first in double (answers), then in single and nudged (noise). A case that is too slow for it is dropped, samples
 * never. */
static ait_status run_oracle(ait_tune_cases *cases, const ait_graph *raw, const ait_region *region, int32_t threads, oracle_mode mode) {
  oracle_run o = {0};
  ait_value *outputs = ait_alloc_zero(ait_allocator_default(), (cases->output_count + 1) * sizeof *outputs, _Alignof(ait_value));
  ait_status status = outputs ? oracle(raw, region, mode, threads, &o.plan, &o.weights, &o.model, &o.session) : AIT_OOM();
  bool answers = mode == ORACLE_DOUBLE || !cases->double_precision, nudged = mode == ORACLE_NUDGED;
  for (size_t i = 0; status == AIT_OK && i < cases->count; ++i) {
    ait_tune_case *c = &cases->items[i];
    double start = ait_clock_seconds();
    status = run_case(o.session, c, nudged, outputs, cases->output_count);
    double seconds = ait_clock_seconds() - start;
    if (status != AIT_OK && answers && drop_refused(cases, i, status)) {
      status = AIT_OK;
      break;
    }
    if (i == 0 && !nudged) cases->reference_seconds = seconds;
    if (status == AIT_OK && answers) status = keep_expected(cases, c, outputs);
    else if (status == AIT_OK) status = measure_noise(cases, c, nudged, outputs);
    if (status != AIT_OK) status = ait_error_context(status, "%s on the reference", c->label);
    const ait_tune_case *next = &cases->items[i + 1]; /* the extremes come last */
    if (answers && i + 2 == cases->count && cases->reference_seconds * next->cost > reference_limit_seconds)
      release_case(&cases->items[--cases->count], cases->output_count);
  }
  ait_free(ait_allocator_default(), outputs, (cases->output_count + 1) * sizeof *outputs);
  close_oracle(&o);
  return status;
}

static void set_tolerances(ait_tune_cases *cases, const ait_tune_options *options) {
  for (size_t k = 0; k < cases->output_count; ++k) {
    ait_tune_output *o = &cases->outputs[k];
    o->rtol = options->rtol;
    o->atol = options->atol;
    if (options->rtol > 0 || options->atol > 0) continue;
    o->atol = fmax(10 * o->noise, 1e-6 * o->max_abs); /* ten times rounding noise, at least a few units in the last place */
    if (!cases->double_precision) o->atol = 1e-5 * o->max_abs;
    if (o->atol == 0) o->atol = 1e-30;
  }
}

/* What a call of this model leaves behind: contents of inputs, or state for the next one. */
static ait_status find_effects(ait_tune_cases *cases, const ait_region *region, size_t input_count) {
  cases->pure = true;
  cases->input_count = input_count;
  cases->may_change = ait_alloc_zero(ait_allocator_default(), input_count + 1, 1);
  if (!cases->may_change) return AIT_OOM();
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    bool user = in->kind == AIT_INPUT_USER && in->user_index >= 0 && (size_t)in->user_index < input_count;
    if (user) cases->may_change[in->user_index] |= in->mutated;
    else cases->pure &= !in->mutated;
  }
  for (uint32_t i = 0; i < region->output_count; ++i) {
    const ait_region_output *o = &region->outputs[i];
    if (o->kind == AIT_OUTPUT_INPUT && o->user_index >= 0 && (size_t)o->user_index < input_count) cases->may_change[o->user_index] = true;
    cases->pure &= o->kind == AIT_OUTPUT_USER;
  }
  for (size_t i = 0; i < input_count; ++i) cases->pure &= !cases->may_change[i];
  return AIT_OK;
}

static ait_dtype dtype_of(const ait_region *region, const ait_arg *arg) {
  bool tensor = arg->kind == AIT_ARG_VALUE && region->values[arg->as.value].type == AIT_TYPE_TENSOR;
  return tensor ? region->values[arg->as.value].dtype : AIT_DTYPE_NONE;
}

static ait_status name_outputs(ait_tune_cases *cases, const ait_region *region) {
  for (uint32_t i = 0; i < region->output_count; ++i) cases->output_count += region->outputs[i].kind == AIT_OUTPUT_USER;
  cases->outputs = ait_alloc_zero(ait_allocator_default(), (cases->output_count + 1) * sizeof *cases->outputs, _Alignof(ait_tune_output));
  if (!cases->outputs) return AIT_OOM();
  for (uint32_t i = 0, k = 0; i < region->output_count; ++i)
    if (region->outputs[i].kind == AIT_OUTPUT_USER)
      cases->outputs[k++] = (ait_tune_output){.name = region->outputs[i].name, .dtype = dtype_of(region, &region->outputs[i].arg)};
  return AIT_OK;
}

static ait_status create_cases(ait_tune_cases *cases, const ait_graph *raw, const ait_region *region, const ait_sample *samples,
                               size_t sample_count, const char *const *buckets, int64_t *symbols) {
  AIT_TRY(name_outputs(cases, region));
  AIT_TRY(find_effects(cases, region, samples[0].input_count));
  cases->items = ait_alloc_zero(ait_allocator_default(), MAX_CASES * sizeof *cases->items, _Alignof(ait_tune_case));
  if (!cases->items) return AIT_OOM();
  AIT_TRY(add_samples(cases, region, samples, sample_count, symbols));
  AIT_TRY(add_buckets(cases, region, buckets));
  return add_extremes(cases, raw, region, symbols);
}

ait_status ait_tune_cases_create(const ait_graph *raw, const ait_sample *samples, size_t sample_count, const char *const *buckets,
                                 ait_tune_cases *out) {
  ait_region *region = NULL;
  *out = (ait_tune_cases){0};
  if (sample_count == 0)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "tuning needs at least one sample input"),
                          "give --data FILE.npz, or --random SEED");
  AIT_TRY(ait_graph_region(raw, ait_allocator_default(), &region));
  int64_t *symbols = ait_alloc(ait_allocator_default(), (region->symbol_count + 1) * sizeof *symbols, _Alignof(int64_t));
  ait_status status = symbols ? create_cases(out, raw, region, samples, sample_count, buckets, symbols) : AIT_OOM();
  for (const ait_node *n = raw->first; n; n = n->next) out->pure &= !(n->op->traits & (AIT_OP_RANDOM | AIT_OP_HIGHER | AIT_OP_EFFECT));
  ait_free(ait_allocator_default(), symbols, (region->symbol_count + 1) * sizeof *symbols);
  ait_graph_region_destroy(ait_allocator_default(), region);
  if (status != AIT_OK) ait_tune_cases_deinit(out);
  return status;
}

static ait_status create_single(ait_tune_cases *cases, const ait_region *region, const ait_sample *sample, int64_t *symbols) {
  AIT_TRY(name_outputs(cases, region));
  cases->items = ait_alloc_zero(ait_allocator_default(), MAX_CASES * sizeof *cases->items, _Alignof(ait_tune_case));
  return cases->items && symbols ? add_samples(cases, region, sample, 1, symbols) : AIT_OOM();
}

ait_status ait_tune_cases_single(const ait_region *region, const ait_sample *sample, ait_tune_cases *out) {
  size_t bytes = (region->symbol_count + 1) * sizeof(int64_t);
  int64_t *symbols = ait_alloc(ait_allocator_default(), bytes, _Alignof(int64_t));
  *out = (ait_tune_cases){0};
  ait_status status = create_single(out, region, sample, symbols);
  ait_free(ait_allocator_default(), symbols, bytes);
  if (status != AIT_OK) ait_tune_cases_deinit(out);
  return status;
}

ait_status ait_tune_cases_answer(ait_tune_cases *cases, const ait_graph *raw, const ait_tune_options *options, int32_t threads) {
  ait_region *region = NULL;
  AIT_TRY(ait_graph_region(raw, ait_allocator_default(), &region));
  cases->double_precision = true;
  ait_status status = run_oracle(cases, raw, region, threads, ORACLE_DOUBLE);
  if (status != AIT_OK && ait_status_code(status) == AIT_CODE_UNSUPPORTED) {
    cases->double_precision = false;
    snprintf(cases->why, sizeof cases->why, "%s", ait_status_message(status));
    ait_status_free(status);
    status = AIT_OK;
  }
  if (status == AIT_OK) status = run_oracle(cases, raw, region, threads, ORACLE_OWN);
  if (status == AIT_OK && cases->double_precision) status = run_oracle(cases, raw, region, threads, ORACLE_NUDGED);
  if (status == AIT_OK) set_tolerances(cases, options);
  ait_graph_region_destroy(ait_allocator_default(), region);
  return status;
}

bool ait_tune_cases_summarise(const ait_tune_cases *cases, ait_tune_summary *out) {
  memset(out, 0, sizeof *out);
  if (cases->output_count > AIT_SUMMARY_OUTPUTS) return false;
  out->case_count = cases->count;
  out->output_count = cases->output_count;
  out->double_precision = cases->double_precision;
  memcpy(out->why, cases->why, sizeof out->why);
  out->reference_seconds = cases->reference_seconds;
  for (size_t k = 0; k < cases->output_count; ++k) {
    const ait_tune_output *o = &cases->outputs[k];
    out->outputs[k].exact = o->exact;
    out->outputs[k].noise = o->noise;
    out->outputs[k].max_abs = o->max_abs;
    out->outputs[k].atol = o->atol;
    out->outputs[k].rtol = o->rtol;
  }
  return true;
}

bool ait_tune_cases_recall(ait_tune_cases *cases, const ait_tune_summary *s) {
  if (s->output_count != cases->output_count || s->output_count > AIT_SUMMARY_OUTPUTS) return false;
  if (s->case_count > cases->count || s->case_count == 0 || !memchr(s->why, 0, sizeof s->why)) return false;
  if (*(const uint8_t *)&s->double_precision > 1) return false; /* the bytes may come from another's record */
  for (size_t k = 0; k < s->output_count; ++k)
    if (*(const uint8_t *)&s->outputs[k].exact > 1) return false;
  while (cases->count > s->case_count) release_case(&cases->items[--cases->count], cases->output_count);
  cases->double_precision = s->double_precision;
  memcpy(cases->why, s->why, sizeof cases->why);
  cases->reference_seconds = s->reference_seconds;
  for (size_t k = 0; k < cases->output_count; ++k) {
    ait_tune_output *o = &cases->outputs[k];
    o->exact = s->outputs[k].exact;
    o->noise = s->outputs[k].noise;
    o->max_abs = s->outputs[k].max_abs;
    o->atol = s->outputs[k].atol;
    o->rtol = s->outputs[k].rtol;
  }
  return true;
}

void ait_tune_cases_deinit(ait_tune_cases *cases) {
  ait_allocator a = ait_allocator_default();
  for (size_t i = 0; i < cases->count; ++i) release_case(&cases->items[i], cases->output_count);
  ait_free(a, cases->items, MAX_CASES * sizeof *cases->items);
  ait_free(a, cases->outputs, (cases->output_count + 1) * sizeof *cases->outputs);
  ait_free(a, cases->may_change, cases->input_count + 1);
  *cases = (ait_tune_cases){0};
}

static uint64_t hash_value(const ait_value *v, uint64_t h) {
  h = ait_hash(&v->kind, sizeof v->kind, h);
  switch (v->kind) {
    case AIT_VALUE_TENSOR:
      return ait_hash(v->as.tensor.data, ait_tensor_bytes(&v->as.tensor),
                      ait_hash(v->as.tensor.shape, (size_t)v->as.tensor.rank * sizeof(int64_t), h));
    case AIT_VALUE_INT: return ait_hash(&v->as.i, sizeof v->as.i, h);
    case AIT_VALUE_FLOAT: return ait_hash(&v->as.f, sizeof v->as.f, h);
    case AIT_VALUE_BOOL: return ait_hash(&v->as.b, sizeof v->as.b, h);
    case AIT_VALUE_STRING: return ait_hash(v->as.s, strlen(v->as.s), h);
    case AIT_VALUE_NONE: break;
  }
  return h;
}

uint64_t ait_tune_cases_hash(const ait_tune_cases *cases) {
  uint64_t h = 0;
  for (size_t i = 0; i < cases->count; ++i) {
    const ait_tune_case *c = &cases->items[i];
    h = ait_hash(c->shapes, strlen(c->shapes), h);
    for (size_t k = 0; k < c->input_count; ++k) h = hash_value(&c->inputs[k], h);
  }
  return h;
}

/* ---- checking a candidate --------------------------------------------------------------------------------------------------------*/
static ait_status check_output(const ait_tune_output *o, const char *label, const ait_value *got, const ait_value *want, ait_tune_row *row,
                               ait_tune_error *out) {
  if (want->kind != AIT_VALUE_TENSOR) return AIT_OK;
  if (got->kind != AIT_VALUE_TENSOR) return ait_error(AIT_CODE_MISMATCH, "output '%s' is no tensor", o->name);
  ait_compare_rule rule = {.exact = o->exact, .rtol = o->rtol, .atol = o->atol};
  ait_compare_result r;
  AIT_TRY(ait_compare(&got->as.tensor, &want->as.tensor, &rule, &r));
  double worst = o->exact ? (r.mismatches ? INFINITY : 0) : r.max_abs / (o->atol + o->rtol * o->max_abs);
  *row = (ait_tune_row){.worst = worst, .max_abs = r.max_abs, .snr_db = r.snr_db};
  if (worst > out->worst) out->worst = worst;
  if (r.max_abs > out->max_abs) out->max_abs = r.max_abs;
  if (r.snr_db < out->snr_db) out->snr_db = r.snr_db;
  if (r.pass || !out->pass) return AIT_OK;
  out->pass = false;
  snprintf(out->reason, sizeof out->reason, "output '%s' of %s: %lld of %lld elements outside tolerance; worst %.6g, want %.6g", o->name,
           label, (long long)r.mismatches, (long long)r.count, r.worst_got, r.worst_want);
  return AIT_OK;
}

/* The same call again must give the same bits. */
static ait_status check_repeat(ait_session *session, const ait_tune_cases *cases, const ait_value *first, ait_value *again,
                               ait_tune_error *out) {
  ait_compare_rule exact = {.exact = true};
  AIT_TRY(run_case(session, &cases->items[0], false, again, cases->output_count));
  for (size_t k = 0; k < cases->output_count; ++k) {
    ait_compare_result r;
    if (first[k].kind != AIT_VALUE_TENSOR || again[k].kind != AIT_VALUE_TENSOR) continue;
    AIT_TRY(ait_compare(&again[k].as.tensor, &first[k].as.tensor, &exact, &r));
    if (r.pass || !out->pass) continue;
    out->pass = false;
    snprintf(out->reason, sizeof out->reason, "output '%s': a second call with the same inputs gives other values", cases->outputs[k].name);
  }
  return AIT_OK;
}

ait_status ait_tune_check_answers(const ait_tune_cases *cases, size_t index, const ait_value *outputs, ait_tune_error *out) {
  const ait_tune_case *c = &cases->items[index];
  ait_tune_row row;
  *out = (ait_tune_error){.pass = true, .snr_db = INFINITY};
  for (size_t k = 0; k < cases->output_count; ++k)
    AIT_TRY(check_output(&cases->outputs[k], c->label, &outputs[k], &c->expected[k], &row, out));
  return AIT_OK;
}

/* ---- on memory that is lent -----------------------------------------------------------------------------------------------------------*/
static void input_changed(const ait_tune_cases *cases, const ait_tune_case *c, const ait_value *inputs, ait_tune_error *out) {
  for (size_t i = 0; out->pass && i < c->input_count; ++i) {
    const ait_tensor *was = &c->inputs[i].as.tensor, *is = &inputs[i].as.tensor;
    if (inputs[i].kind != AIT_VALUE_TENSOR || (i < cases->input_count && cases->may_change[i])) continue;
    if (ait_tensor_bytes(was) == 0 || !memcmp(is->data, was->data, ait_tensor_bytes(was))) continue;
    out->pass = false;
    snprintf(out->reason, sizeof out->reason, "it changes its input: input %zu of %s is not what it was after the call", i, c->label);
  }
}

/* `outputs` has what the session gave; then it is asked once more, to write into memory of the same form. */
static ait_status lend(ait_session *session, const ait_tune_cases *cases, const ait_tune_case *c, ait_allocator a, const ait_value *outputs,
                       ait_value *inputs, ait_value *lent, ait_tune_error *out) {
  for (size_t i = 0; i < c->input_count; ++i) {
    inputs[i] = c->inputs[i];
    if (inputs[i].kind != AIT_VALUE_TENSOR) continue;
    inputs[i].kind = AIT_VALUE_NONE;
    AIT_TRY(ait_tensor_cast(a, &c->inputs[i].as.tensor, c->inputs[i].as.tensor.dtype, &inputs[i].as.tensor));
    inputs[i].kind = AIT_VALUE_TENSOR;
  }
  for (size_t k = 0; k < cases->output_count; ++k) {
    const ait_tensor *t = &outputs[k].as.tensor;
    if (outputs[k].kind != AIT_VALUE_TENSOR || t->dtype != cases->outputs[k].dtype) continue; /* in double: no memory for that is lent */
    AIT_TRY(ait_tensor_create(a, t->dtype, t->rank, t->shape, &lent[k].as.tensor));
    lent[k].kind = AIT_VALUE_TENSOR;
  }
  AIT_TRY(ait_session_reset(session));
  AIT_TRY(ait_session_run(session, inputs, c->input_count, lent, cases->output_count));
  AIT_TRY(ait_tune_check_answers(cases, (size_t)(c - cases->items), lent, out));
  if (out->pass) input_changed(cases, c, inputs, out);
  return AIT_OK;
}

static ait_status check_lent(ait_session *session, const ait_tune_cases *cases, const ait_tune_case *c, ait_allocator a,
                             ait_tune_error *out) {
  size_t n = cases->output_count, all = 2 * n + c->input_count + 1;
  ait_value *values = ait_alloc_zero(ait_allocator_default(), all * sizeof *values, _Alignof(ait_value));
  if (!values) return AIT_OOM();
  ait_value *outputs = values, *lent = values + n, *inputs = values + 2 * n;
  ait_status status = run_case(session, c, false, outputs, n);
  if (status == AIT_OK) status = lend(session, cases, c, a, outputs, inputs, lent, out);
  for (size_t k = n; k < all; ++k) ait_value_release(&values[k]);
  ait_free(ait_allocator_default(), values, all * sizeof *values);
  return ait_error_context(status, "%s, with memory for its outputs given", c->label);
}

ait_status ait_tune_check_lent(ait_session *session, const ait_tune_cases *cases, ait_allocator a, ait_tune_error *out) {
  *out = (ait_tune_error){.pass = true, .snr_db = INFINITY};
  AIT_TRY(check_lent(session, cases, &cases->items[0], a, out));
  return out->pass && cases->count > 1 ? check_lent(session, cases, &cases->items[cases->count - 1], a, out) : AIT_OK;
}

static void keep_row(ait_tune_rows *rows, ait_tune_row row, size_t case_index, size_t output_index) {
  if (!rows || rows->count == rows->capacity) return;
  row.case_index = (uint32_t)case_index;
  row.output_index = (uint32_t)output_index;
  rows->items[rows->count++] = row;
}

ait_status ait_tune_check(ait_session *session, const ait_tune_cases *cases, ait_tune_rows *rows, ait_tune_error *out) {
  *out = (ait_tune_error){.pass = true, .snr_db = INFINITY};
  size_t n = cases->output_count;
  ait_value *outputs = ait_alloc_zero(ait_allocator_default(), (2 * n + 1) * sizeof *outputs, _Alignof(ait_value));
  ait_value *kept = outputs ? outputs + n : NULL;
  ait_status status = outputs ? AIT_OK : AIT_OOM();
  for (size_t i = cases->count; status == AIT_OK && i-- > 0;) { /* the first sample last: the repeat follows it */
    const ait_tune_case *c = &cases->items[i];
    status = run_case(session, c, false, outputs, n);
    for (size_t k = 0; status == AIT_OK && k < n; ++k) {
      ait_tune_row row = {0};
      status = check_output(&cases->outputs[k], c->label, &outputs[k], &c->expected[k], &row, out);
      if (c->expected[k].kind == AIT_VALUE_TENSOR) keep_row(rows, row, i, k);
    }
    if (status != AIT_OK) status = ait_error_context(status, "%s", c->label);
  }
  for (size_t k = 0; status == AIT_OK && k < n; ++k) status = copy_value(&outputs[k], &kept[k]);
  if (status == AIT_OK) status = check_repeat(session, cases, kept, outputs, out);
  for (size_t k = 0; kept && k < n; ++k) ait_value_release(&kept[k]);
  ait_free(ait_allocator_default(), outputs, (2 * n + 1) * sizeof *outputs);
  return status;
}
