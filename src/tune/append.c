#include "tune/append.h"
#include <ait/data.h>

/* ---- the same graph? ---------------------------------------------------------------------------------------------------------------*/
static const char *next_line(const char **p, size_t *length) {
  const char *line = *p, *end = strchr(line, '\n');
  *length = end ? (size_t)(end - line) : strlen(line);
  *p = end ? end + 1 : line + *length;
  return line;
}

/* Says the first line of each in which they differ. */
static ait_status graphs_differ(const char *ours, const char *theirs) {
  size_t a = 0, b = 0;
  const char *x = "", *y = "";
  do {
    x = next_line(&ours, &a);
    y = next_line(&theirs, &b);
  } while (a == b && (a || *ours || *theirs) && memcmp(x, y, a) == 0);
  return ait_error(AIT_CODE_INVALID_ARGUMENT, "the graphs differ: '%.*s' here, '%.*s' in the file", a < 200 ? (int)a : 200, x,
                   b < 200 ? (int)b : 200, y);
}

static ait_status print_pair(const ait_graph *raw, const ait_artifact *f, ait_text *ours, ait_text *theirs) {
  ait_allocator a = ait_allocator_default();
  ait_graph *graph;
  AIT_TRY(ait_graph_print(raw, ours));
  AIT_TRY(ait_graph_from_region(a, ait_artifact_region(f), AIT_DIALECT_RAW, NULL, &graph));
  ait_status status = ait_graph_print(graph, theirs);
  ait_graph_destroy(graph);
  return status;
}

/* Lines without those of modules, and without the first: name and producer are not what a model computes. In place. */
static void drop_names(ait_text *text) {
  char *to = text->data;
  for (const char *p = text->data; p && *p;) {
    const char *end = strchr(p, '\n');
    size_t length = end ? (size_t)(end - p) + 1 : strlen(p);
    if (!ait_starts_with(p, "module ") && !ait_starts_with(p, "graph ")) memmove(to, p, length), to += length;
    p += length;
  }
  if (to) *to = 0;
}

/* By bytes; a graph that came out of an .ait by its text, since a region does not keep all that a model file says of modules. */
static ait_status check_graph(const ait_graph *raw, const ait_region *region, const ait_artifact *f) {
  ait_allocator a = ait_allocator_default();
  ait_text bytes, ours, theirs;
  size_t size = 0;
  const void *entry = ait_artifact_entry(f, AIT_ENTRY_GRAPH, &size);
  ait_text_init(&bytes, a);
  ait_text_init(&ours, a);
  ait_text_init(&theirs, a);
  ait_status status = ait_region_encode(region, &bytes);
  if (!status && bytes.failed) status = AIT_OOM();
  bool same = !status && entry && bytes.length == size && memcmp(bytes.data, entry, size) == 0;
  if (!status && !same) status = print_pair(raw, f, &ours, &theirs);
  if (!status && !same && (ours.failed || theirs.failed)) status = AIT_OOM();
  if (!status && !same) {
    drop_names(&ours);
    drop_names(&theirs);
    if (strcmp(ours.data, theirs.data) != 0) status = graphs_differ(ours.data, theirs.data);
  }
  ait_text_deinit(&theirs);
  ait_text_deinit(&ours);
  ait_text_deinit(&bytes);
  return status;
}

/* ---- the same weights? -------------------------------------------------------------------------------------------------------------*/
static bool same_form(const ait_tensor *a, const ait_tensor *b) {
  bool same = a->dtype == b->dtype && a->rank == b->rank;
  for (int32_t d = 0; same && d < a->rank; ++d) same = a->shape[d] == b->shape[d];
  return same;
}

static ait_status check_weight(const char *name, const ait_weights *ours, const ait_weights *theirs) {
  ait_tensor a, b;
  ait_compare_result difference;
  ait_compare_rule exact = {.exact = true};
  AIT_TRY(ours->get(ours->ctx, name, &a));
  AIT_TRY(theirs->get(theirs->ctx, name, &b));
  if (!same_form(&a, &b)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "weight '%s' has another dtype or shape in the file", name);
  bool plain = ait_tensor_is_contiguous(&a) && ait_tensor_is_contiguous(&b);
  if (plain && memcmp(a.data, b.data, (size_t)ait_tensor_count(&a) * ait_dtype_size(a.dtype)) == 0) return AIT_OK;
  AIT_TRY(ait_compare(&a, &b, &exact, &difference));
  if (difference.pass && !plain) return AIT_OK;
  return ait_error(AIT_CODE_INVALID_ARGUMENT, "weight '%s' differs in %lld of %lld elements", name,
                   difference.pass ? 1LL : (long long)difference.mismatches, (long long)ait_tensor_count(&a));
}

static ait_status check_weights(const ait_weight_store *ours, const ait_weight_store *theirs) {
  ait_weights a = ait_weight_store_provider(ours), b = ait_weight_store_provider(theirs);
  for (size_t i = 0; i < ait_weight_store_count(ours); ++i) {
    const char *name = ait_weight_store_at(ours, i)->name;
    if (!ait_weight_store_find(theirs, name)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the file has no weight '%s'", name);
    AIT_TRY(check_weight(name, &a, &b));
  }
  for (size_t i = 0; i < ait_weight_store_count(theirs); ++i) {
    const char *name = ait_weight_store_at(theirs, i)->name;
    if (!ait_starts_with(name, "folded.") && !ait_weight_store_find(ours, name))
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "the file has a weight '%s', which this model has not", name);
  }
  return AIT_OK;
}

ait_status ait_append_open(const char *path, const ait_keys *keys, const ait_graph *raw, const ait_region *region, ait_artifact **out) {
  ait_artifact *f;
  *out = NULL;
  ait_artifact_open_options open = {.keys = keys};
  ait_status status = ait_artifact_open(ait_allocator_default(), path, &open, &f);
  if (ait_status_code(status) == AIT_CODE_NOT_FOUND) return ait_error_hint(status, "tune without --append first");
  AIT_TRY(status);
  status = ait_artifact_verify(f);
  if (!status) status = check_graph(raw, region, f);
  if (!status && raw->weights) status = check_weights(raw->weights, ait_artifact_weights(f));
  if (!status) return *out = f, AIT_OK;
  ait_artifact_release(f);
  return ait_error_hint(ait_error_context(status, "cannot add a plan to '%s': it holds another model", path),
                        "tune into a file of its own, without --append");
}

/* ---- plans -------------------------------------------------------------------------------------------------------------------------*/
static bool same_text(const char *a, const char *b) { return a && b && strcmp(a, b) == 0; }

ait_status ait_append_plans(ait_arena *arena, const ait_artifact *base, const ait_plan *plan, ait_plan **out, size_t *out_count,
                            bool *out_keep_report) {
  size_t n = ait_artifact_plan_count(base), count = 0;
  ait_plan *plans = AIT_ARENA_ARRAY(arena, ait_plan, n + 1);
  if (!plans) return AIT_OOM();
  *out_keep_report = false;
  for (size_t i = 0; i < n; ++i) {
    const ait_plan *p = ait_artifact_plan(base, i);
    if (p->cpu_needed == plan->cpu_needed && same_text(p->machine, plan->machine)) continue;
    *out_keep_report |= !p->report;
    plans[count++] = *p;
  }
  plans[count++] = *plan;
  *out = plans;
  *out_count = count;
  return AIT_OK;
}
