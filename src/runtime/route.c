/* Routes: which steps of a model run for which sizes. A plan may have buckets (docs/format.md): sizes that were measured, and the steps
 * that were fastest there. Everything else runs on the plan itself. */
#include "runtime/internal.h"

/* ---- loading -----------------------------------------------------------------------------------------------------------------------*/
static bool same_code(const ait_plan_step *a, const ait_plan_step *b) {
  return a->blob.data == b->blob.data && a->blob.size == b->blob.size && !strcmp(a->backend, b->backend) && !strcmp(a->options, b->options);
}

/* A bucket that only takes another number of threads has the blob of another step: loaded code is shared. */
static const ait_model_step *find_loaded(const ait_model *m, const ait_plan_step *plan) {
  for (uint32_t r = 0; r < m->route_count; ++r) {
    const ait_model_route *route = &m->routes[r];
    for (uint32_t s = 0; route->plan && s < route->plan->step_count; ++s) {
      if (route->steps[s].loaded && same_code(route->steps[s].plan, plan)) return &route->steps[s];
    }
  }
  return NULL;
}

static void unload_route(ait_model_route *route) {
  for (uint32_t s = 0; route->plan && s < route->plan->step_count; ++s) {
    if (route->steps[s].loaded && !route->steps[s].borrowed) route->steps[s].backend->unload(route->steps[s].loaded);
  }
  route->plan = NULL;
}

static ait_status load_route(const ait_step_loader *l, ait_model_route *route, const ait_plan *plan) {
  ait_model *m = l->model;
  route->steps = AIT_ARENA_ARRAY(&m->arena, ait_model_step, plan->step_count);
  if (!route->steps) return AIT_OOM();
  memset(route->steps, 0, plan->step_count * sizeof *route->steps);
  ait_status status = AIT_OK;
  for (uint32_t s = 0; !status && s < plan->step_count; ++s) {
    const ait_model_step *same = find_loaded(m, &plan->steps[s]);
    if (same) {
      route->steps[s] = *same;
      route->steps[s].plan = &plan->steps[s];
      route->steps[s].borrowed = true;
    } else {
      status = l->load(m, &plan->steps[s], l->cpu, &route->steps[s]);
    }
  }
  route->plan = plan;
  if (status) unload_route(route);
  return status;
}

/* Backwards: what is borrowed lies after its owner. */
void ait_model_unload_routes(ait_model *m) {
  for (uint32_t r = m->route_count; r > 0; --r) unload_route(&m->routes[r - 1]);
  m->route_count = 0;
  m->plan = NULL;
}

static ait_status load_bucket(const ait_step_loader *l, uint32_t index, const ait_plan_bucket *bucket) {
  ait_model *m = l->model;
  ait_model_route *route = &m->routes[index];
  char sizes[512];
  ait_plan_ranges_text(bucket, sizes, sizeof sizes);
  *route = (ait_model_route){.bucket = bucket, .why = "", .sizes = ait_arena_strdup(&m->arena, sizes, strlen(sizes))};
  if (!route->sizes) return AIT_OOM();
  if (!bucket->plan) return AIT_OK;
  ait_status status = load_route(l, route, bucket->plan);
  if (!status) return route->uses = index, AIT_OK;
  ait_code code = ait_status_code(status);
  if (code == AIT_CODE_OUT_OF_MEMORY || code == AIT_CODE_IO) return status;
  route->why = ait_arena_printf(&m->arena, "cannot be loaded: %s", ait_status_message(status));
  ait_status_ignore(status);
  return route->why ? AIT_OK : AIT_OOM();
}

/* ---- the table ---------------------------------------------------------------------------------------------------------------------*/
static uint32_t symbol_index(const ait_region *r, const char *name) {
  for (uint32_t i = 0; i < r->symbol_count; ++i) {
    if (strcmp(r->symbols[i].name, name) == 0) return i;
  }
  return AIT_NO_INDEX; /* ait_plan_check has refused it */
}

static uint32_t routed_index(ait_model *m, uint32_t symbol) {
  uint32_t k = 0;
  while (k < m->routed_count && m->routed[k] != symbol) ++k;
  if (k == m->routed_count) m->routed[m->routed_count++] = symbol;
  return k;
}

static ait_status make_table(ait_model *m, const ait_plan *plan) {
  m->routed_count = 0;
  m->routed = AIT_ARENA_ARRAY(&m->arena, uint32_t, m->region->symbol_count);
  if (!m->routed) return AIT_OOM();
  for (uint32_t b = 0; b < plan->bucket_count; ++b) {
    for (uint32_t k = 0; k < plan->buckets[b].range_count; ++k) routed_index(m, symbol_index(m->region, plan->buckets[b].ranges[k].symbol));
  }
  size_t count = (size_t)plan->bucket_count * m->routed_count;
  m->ranges = AIT_ARENA_ARRAY(&m->arena, ait_model_range, count);
  if (!m->ranges) return AIT_OOM();
  for (size_t i = 0; i < count; ++i) m->ranges[i] = (ait_model_range){INT64_MIN, INT64_MAX};
  for (uint32_t b = 0; b < plan->bucket_count; ++b) {
    for (uint32_t k = 0; k < plan->buckets[b].range_count; ++k) {
      const ait_plan_range *r = &plan->buckets[b].ranges[k];
      m->ranges[b * m->routed_count + routed_index(m, symbol_index(m->region, r->symbol))] = (ait_model_range){r->min, r->max};
    }
  }
  return AIT_OK;
}

ait_status ait_model_load_routes(const ait_step_loader *l, const ait_plan *plan) {
  ait_model *m = l->model;
  m->routes = AIT_ARENA_ARRAY(&m->arena, ait_model_route, plan->bucket_count + 1);
  if (!m->routes) return AIT_OOM();
  m->routes[0] = (ait_model_route){.sizes = "", .why = ""};
  m->route_count = 1;
  ait_status status = load_route(l, &m->routes[0], plan);
  if (!status) status = make_table(m, plan);
  for (uint32_t b = 0; !status && b < plan->bucket_count; ++b) {
    m->routes[m->route_count++] = (ait_model_route){0};
    status = load_bucket(l, b + 1, &plan->buckets[b]);
  }
  if (status) ait_model_unload_routes(m);
  else m->plan = plan;
  return status;
}

uint32_t ait_model_route_for(const ait_model *m, const int64_t *symbols) {
  const ait_model_range *range = m->ranges;
  for (uint32_t r = 1; r < m->route_count; ++r, range += m->routed_count) {
    bool inside = true;
    for (uint32_t k = 0; inside && k < m->routed_count; ++k) {
      int64_t v = symbols[m->routed[k]];
      inside = v >= range[k].min && v <= range[k].max;
    }
    if (inside) return r;
  }
  return 0;
}

/* ---- names -------------------------------------------------------------------------------------------------------------------------*/
/* Adds the backends of these steps that the text does not name yet: "native+reference". */
static char *add_backends(ait_model *m, char *text, const ait_model_route *route, uint32_t before) {
  for (uint32_t s = 0; text && s < route->plan->step_count; ++s) {
    bool seen = false;
    for (uint32_t r = before; r < m->route_count && !seen; ++r) {
      const ait_model_route *other = &m->routes[r];
      uint32_t n = other == route ? s : other->plan ? other->plan->step_count : 0;
      for (uint32_t t = 0; t < n; ++t) seen |= other->steps[t].backend == route->steps[s].backend;
      if (other == route) break;
    }
    if (!seen) text = ait_arena_printf(&m->arena, "%s%s%s", text, *text ? "+" : "", route->steps[s].backend->name);
  }
  return text;
}

ait_status ait_model_name_routes(ait_model *m, ait_text *reason) {
  char *all = ait_arena_strdup(&m->arena, "", 0);
  for (uint32_t r = 0; all && r < m->route_count; ++r) {
    ait_model_route *route = &m->routes[r];
    if (*route->why)
      ait_text_printf(reason, "%ssizes %s run on the plan for all sizes: their own %s", reason->length ? "; " : "", route->sizes,
                      route->why);
    if (!route->plan) continue;
    all = add_backends(m, all, route, 0);
    route->backends = add_backends(m, ait_arena_strdup(&m->arena, "", 0), route, r);
    if (!route->backends) return AIT_OOM();
  }
  m->backends = all;
  return all ? AIT_OK : AIT_OOM();
}
