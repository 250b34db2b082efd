#include "tune/mix.h"
#include <math.h>
#include <stdio.h>

/* ---- building ---------------------------------------------------------------------------------------------------------------- */
static bool cut_stays(const ait_mix *m, uint32_t cut) { return m->alone[cut] || m->alone[cut + 1] || m->engine[cut] != m->engine[cut + 1]; }

uint32_t ait_mix_step(const ait_mix *m, uint32_t part) {
  uint32_t step = 0;
  for (uint32_t cut = 0; cut < part; ++cut) step += cut_stays(m, cut);
  return step;
}

static ait_status compile_parts(const ait_build_request *request, const ait_parts *parts, const uint8_t *engine, const ait_mix *m,
                                ait_weights weights, ait_plan *out) {
  ait_plan_part list[AIT_PARTS_MAX];
  char target[128];
  for (uint32_t i = 0; i < parts->count; ++i) {
    const ait_engine *e = &m->engines[engine[i]];
    const ait_part *p = &parts->items[i];
    char what[128];
    snprintf(what, sizeof what, "'%.120s'", p->module);
    AIT_TRY(ait_region_taken(e->backend, &p->region, what, NULL));
    list[i] = (ait_plan_part){e->backend->name, e->options, &p->region, p->inputs, p->outputs};
  }
  uint64_t cpu = request->cpu_mask & ait_cpu_features();
  ait_plan_target(cpu, target, sizeof target);
  AIT_TRY(ait_plan_compile_parts(request->allocator, list, parts->count, parts->value_count, parts->results, parts->result_count, weights,
                                 request->cpu_mask, target, out));
  out->cpu_needed = cpu;
  return AIT_OK;
}

ait_status ait_mix_build(const ait_graph *raw, const ait_build_request *request, const ait_mix *m, ait_plan *out_plan,
                         ait_weight_store **out_weights) {
  ait_allocator a = request->allocator;
  ait_build_request lowered = *request;
  ait_graph *graph = NULL;
  ait_region *region = NULL;
  ait_parts parts = {0};
  uint32_t cuts[AIT_PARTS_MAX], count = 0;
  uint8_t engine[AIT_PARTS_MAX] = {m->engine[0]};
  ait_onnx_bridge_connect();
  lowered.pipeline = "core";
  for (uint32_t i = 0; i + 1 < m->part_count; ++i) {
    if (!cut_stays(m, i)) continue;
    cuts[count++] = m->cuts[i];
    engine[count] = m->engine[i + 1];
  }
  ait_status status = ait_plan_lower(raw, &lowered, &graph);
  if (status == AIT_OK) status = ait_graph_region(graph, a, &region);
  if (status == AIT_OK) status = ait_parts_create(a, region, cuts, count, &parts);
  if (status == AIT_OK) {
    status = compile_parts(request, &parts, engine, m, ait_weight_store_provider(graph->weights), out_plan);
    ait_parts_deinit(&parts);
  }
  if (status == AIT_OK) *out_weights = ait_weight_store_retain(graph->weights);
  ait_graph_region_destroy(a, region);
  ait_graph_destroy(graph);
  return status;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------------------- */
double ait_mix_choose(double seconds[AIT_MIX_ENGINES][AIT_PARTS_MAX], const double saving[AIT_MIX_ENGINES], uint32_t engines,
                      uint32_t parts, const int *pins, uint8_t choice[AIT_PARTS_MAX]) {
  double best[AIT_PARTS_MAX][AIT_MIX_ENGINES];
  uint8_t from[AIT_PARTS_MAX][AIT_MIX_ENGINES] = {{0}};
  for (uint32_t p = 0; p < parts; ++p) {
    for (uint32_t e = 0; e < engines; ++e) {
      double own = pins && pins[p] >= 0 && (uint32_t)pins[p] != e ? INFINITY : seconds[e][p], before = p ? INFINITY : 0;
      for (uint32_t f = 0; p && f < engines; ++f) {
        double total = best[p - 1][f] - (f == e ? saving[e] : 0);
        if (total < before) before = total, from[p][e] = (uint8_t)f;
      }
      best[p][e] = before + own;
    }
  }
  uint32_t last = 0;
  for (uint32_t e = 1; e < engines; ++e)
    if (best[parts - 1][e] < best[parts - 1][last]) last = e;
  double total = best[parts - 1][last];
  for (uint32_t p = parts; p > 0; --p) {
    choice[p - 1] = (uint8_t)last;
    last = from[p - 1][last];
  }
  return total;
}

bool ait_mix_is_single(const ait_mix *m) {
  for (uint32_t i = 1; i < m->part_count; ++i)
    if (m->engine[i] != m->engine[0]) return false;
  return true;
}

/* "mixed native+onnxruntime threads=2 3f2a": the last is a sum over cuts, engines and options. */
void ait_mix_name(const ait_mix *m, int32_t threads, char *out, size_t size) {
  char names[160] = "";
  uint64_t sum = 0;
  bool used[AIT_MIX_ENGINES] = {false}, parts = false;
  for (uint32_t i = 0; i < m->part_count; ++i) {
    parts |= m->alone[i];
    const ait_engine *e = &m->engines[m->engine[i]];
    sum = ait_hash(e->backend->name, strlen(e->backend->name), sum);
    sum = ait_hash(e->options, strlen(e->options), sum);
    sum = ait_hash(&m->cuts[i], i + 1 < m->part_count ? sizeof m->cuts[i] : 0, sum);
    if (used[m->engine[i]]) continue;
    used[m->engine[i]] = true;
    size_t n = strlen(names);
    snprintf(names + n, sizeof names - n, "%s%s", n ? "+" : "", e->backend->name);
  }
  snprintf(out, size, "%s %s threads=%d %04x", parts ? "parts" : "mixed", names, threads, (unsigned)(sum & 0xffff));
}
