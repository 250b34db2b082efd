#include "tune/bound.h"
#include "tune/html.h"

const char *ait_bound_text(ait_bound bound) {
  static const char *const names[AIT_BOUND_COUNT] = {"nothing", "arithmetic", "caches", "memory"};
  return (unsigned)bound < AIT_BOUND_COUNT ? names[bound] : "?";
}

double ait_bound_seconds(const ait_roofline *r, double flops, double bytes, ait_bound *out_bound) {
  bool cached = bytes <= (double)r->cache_bytes && r->cache_bytes_per_s > r->memory_bytes_per_s;
  double slope = cached ? r->cache_bytes_per_s : r->memory_bytes_per_s;
  double arithmetic = r->flops_per_s > 0 ? flops / r->flops_per_s : 0, traffic = slope > 0 ? bytes / slope : 0;
  *out_bound = arithmetic <= 0 && traffic <= 0 ? AIT_BOUND_NOTHING
               : arithmetic >= traffic         ? AIT_BOUND_ARITHMETIC
               : cached                        ? AIT_BOUND_CACHES
                                               : AIT_BOUND_MEMORY;
  return arithmetic > traffic ? arithmetic : traffic;
}

void ait_bound_modules(const ait_graph *g, const int64_t *symbols, const ait_roofline *r, ait_module_bound *out) {
  for (const ait_node *n = g->first; n; n = n->next) {
    ait_cost cost = ait_node_cost(g, n, symbols);
    ait_bound bound;
    double seconds = ait_bound_seconds(r, cost.flops, cost.bytes, &bound);
    out[g->module_count].seconds[bound] += seconds;
    for (size_t m = 0; n->module != AIT_NO_INDEX && m < g->module_count; ++m)
      if (ait_module_inside(g->modules[n->module].path, g->modules[m].path)) out[m].seconds[bound] += seconds;
  }
}

double ait_bound_total(const ait_module_bound *b) {
  double sum = 0;
  for (int k = 0; k < AIT_BOUND_COUNT; ++k) sum += b->seconds[k];
  return sum;
}

ait_bound ait_bound_main(const ait_module_bound *b) {
  int best = AIT_BOUND_NOTHING;
  for (int k = 0; k < AIT_BOUND_COUNT; ++k)
    if (b->seconds[k] > b->seconds[best]) best = k;
  return (ait_bound)best;
}

/* ---- fusion ----------------------------------------------------------------------------------------------------------------------*/
typedef struct fuser {
  const ait_graph *g;
  const uint32_t *uses;
  uint32_t joined; /* the operand that stays in registers; AIT_NO_INDEX: none */
} fuser;

static void choose(void *ctx, uint32_t value) {
  fuser *f = ctx;
  const ait_node *def = f->g->values[value].def;
  if (f->joined == AIT_NO_INDEX && f->uses[value] == 1 && def && !ait_node_is_view(def)) f->joined = value;
}

ait_status ait_bound_fused(const ait_graph *g, const int64_t *symbols, const ait_roofline *r, double *out_seconds) {
  ait_allocator a = ait_allocator_default();
  uint32_t *uses = NULL;
  double *saved = ait_alloc_zero(a, (g->value_count + 1) * sizeof *saved, _Alignof(double)); /* bytes of the node that makes the value */
  ait_status status = saved ? ait_graph_count_uses(g, a, &uses) : AIT_OOM();
  *out_seconds = 0;
  for (const ait_node *n = g->last; status == AIT_OK && n; n = n->prev) { /* users first: they say what their producers need not write */
    ait_cost cost = ait_node_cost(g, n, symbols);
    ait_bound bound;
    fuser f = {g, uses, AIT_NO_INDEX};
    if (n->op->traits & AIT_OP_POINTWISE) ait_node_each_operand(n, choose, &f);
    if (f.joined != AIT_NO_INDEX) {
      double bytes = ait_value_bytes(g, f.joined, symbols);
      saved[f.joined] += bytes;
      cost.bytes -= bytes;
    }
    for (uint32_t k = 0; k < n->result_count; ++k)
      if (n->results[k] != AIT_NO_INDEX) cost.bytes -= saved[n->results[k]];
    *out_seconds += ait_bound_seconds(r, cost.flops, cost.bytes > 0 ? cost.bytes : 0, &bound);
  }
  ait_free(a, uses, g->value_count * sizeof *uses);
  ait_free(a, saved, (g->value_count + 1) * sizeof *saved);
  return status;
}

bool ait_roofline_read(const char *json, ait_roofline *out) {
  struct json_object *o = json ? json_tokener_parse(json) : NULL;
  *out = (ait_roofline){.threads = (int32_t)ait_member_number(o, "threads"),
                        .flops_per_s = ait_member_number(o, "flops_per_s"),
                        .cache_bytes_per_s = ait_member_number(o, "cache_bytes_per_s"),
                        .memory_bytes_per_s = ait_member_number(o, "memory_bytes_per_s"),
                        .cache_bytes = (uint64_t)ait_member_number(o, "cache_bytes"),
                        .memory_bytes = (uint64_t)ait_member_number(o, "memory_bytes")};
  json_object_put(o);
  return out->flops_per_s > 0 && out->memory_bytes_per_s > 0;
}

/* ---- measuring -------------------------------------------------------------------------------------------------------------------*/
static const double measured_seconds = 0.5;

static ait_status call(ait_session *session, const ait_value *inputs, size_t input_count, ait_value *outputs, size_t output_count) {
  memset(outputs, 0, output_count * sizeof *outputs);
  return ait_session_run(session, inputs, input_count, outputs, output_count);
}

/* Seconds of each step in all calls but the first, which plans; *out_calls: how many. */
static ait_status profile_session(ait_session *session, const ait_value *inputs, size_t input_count, ait_value *outputs,
                                  size_t output_count, ait_step_time *steps, double *first, size_t count, double *out_calls) {
  double end = ait_clock_seconds() + measured_seconds;
  AIT_TRY(call(session, inputs, input_count, outputs, output_count));
  ait_session_profile(session, steps, count);
  for (size_t i = 0; i < count; ++i) first[i] = steps[i].seconds;
  for (*out_calls = 0; *out_calls < 3 || (*out_calls < 1000 && ait_clock_seconds() < end); ++*out_calls)
    AIT_TRY(call(session, inputs, input_count, outputs, output_count));
  ait_session_profile(session, steps, count);
  return AIT_OK;
}

static ait_status measure(ait_model *model, const ait_graph *g, const ait_value *inputs, size_t input_count, int32_t threads, double *out) {
  ait_allocator a = ait_allocator_default();
  ait_session *session;
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = threads;
  so.profile = true;
  AIT_TRY(ait_session_create(model, &so, &session));
  size_t count = ait_session_profile(session, NULL, 0), output_count = ait_model_output_count(model);
  ait_step_time *steps = ait_alloc_zero(a, (count + 1) * sizeof *steps, _Alignof(ait_step_time));
  double *first = ait_alloc_zero(a, (count + 1) * sizeof *first, _Alignof(double)), calls = 0;
  ait_value *outputs = ait_alloc_zero(a, (output_count + 1) * sizeof *outputs, _Alignof(ait_value));
  ait_status status = steps && first && outputs
                          ? profile_session(session, inputs, input_count, outputs, output_count, steps, first, count, &calls)
                          : AIT_OOM();
  for (size_t i = 0; status == AIT_OK && i < count; ++i) {
    double seconds = (steps[i].seconds - first[i]) / calls;
    out[g->module_count] += seconds;
    for (size_t m = 0; m < g->module_count; ++m)
      if (ait_module_inside(steps[i].module ? steps[i].module : "", g->modules[m].path)) out[m] += seconds;
  }
  ait_free(a, outputs, (output_count + 1) * sizeof *outputs);
  ait_free(a, first, (count + 1) * sizeof *first);
  ait_free(a, steps, (count + 1) * sizeof *steps);
  ait_session_destroy(session);
  return status;
}

ait_status ait_measure_modules(const ait_graph *raw, const ait_graph *g, const ait_value *inputs, size_t input_count, int32_t threads,
                               double *out) {
  ait_allocator a = ait_allocator_default();
  ait_build_request request = {.allocator = a, .backend = ait_backend_find("eager"), .cpu_mask = UINT64_MAX};
  ait_region *region = NULL;
  ait_plan plan = {0};
  ait_weight_store *weights = NULL;
  ait_model *model = NULL;
  if (!request.backend) return ait_error(AIT_CODE_NOT_FOUND, "there is no backend 'eager'");
  AIT_TRY(ait_graph_region(raw, a, &region));
  ait_status status = ait_plan_build(raw, &request, NULL, &plan, &weights);
  if (status == AIT_OK)
    status = ait_model_create(a, region, weights ? ait_weight_store_provider(weights) : (ait_weights){0}, &plan, NULL, NULL, &model);
  if (status == AIT_OK) status = measure(model, g, inputs, input_count, threads, out);
  ait_model_release(model);
  ait_weight_store_release(weights);
  if (plan.steps) ait_plan_deinit(&plan);
  ait_graph_region_destroy(a, region);
  return status;
}
