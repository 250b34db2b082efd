#include "tune/put_json.h"
#include "tune/shapes.h"

static const char *name_of(const ait_candidates *list, const ait_shapes *s, uint32_t member) {
  return list->items[s->members[member]].name;
}

/* ---- dimensions ---------------------------------------------------------------------------------------------------------------------*/
/* Sizes that the samples have there, each once. */
static void put_seen(ait_text *t, const ait_tune_cases *cases, int32_t input, int32_t dim) {
  int64_t seen[AIT_SHAPE_POINTS];
  uint32_t count = 0;
  for (size_t i = 0; i < cases->count; ++i) {
    const ait_tune_case *c = &cases->items[i];
    if (!c->measured || c->inputs[input].kind != AIT_VALUE_TENSOR || dim >= c->inputs[input].as.tensor.rank) continue;
    int64_t v = c->inputs[input].as.tensor.shape[dim];
    bool there = false;
    for (uint32_t k = 0; k < count; ++k) there |= seen[k] == v;
    if (there || count == AIT_SHAPE_POINTS) continue;
    ait_text_printf(t, "%s%lld", count ? ", " : "", (long long)v);
    seen[count++] = v;
  }
}

static void put_dimension(ait_text *t, const ait_trial_context *x, const ait_region_input *in, int32_t d, const int64_t *low,
                          const int64_t *high) {
  const ait_region *r = x->region;
  ait_dim dim = r->values[in->value].shape[d];
  bool first = true, fixed = r->dims[dim].op == AIT_DIM_CONST;
  char size[96];
  ait_region_dim_text(r, dim, size, sizeof size);
  ait_put_string(t, &first, "input", in->name);
  ait_put_int(t, &first, "dimension", d);
  ait_put_string(t, &first, "size", size);
  ait_put_bool(t, &first, "fixed", fixed);
  if (!fixed) ait_put_int(t, &first, "min", low[dim] < 0 ? 0 : low[dim]);
  if (!fixed && high[dim] != INT64_MAX) ait_put_int(t, &first, "max", high[dim]);
  ait_put_key(t, &first, "seen");
  ait_text_printf(t, "[");
  put_seen(t, x->cases, in->user_index, d);
  ait_text_printf(t, "]");
  ait_put_string(t, &first, "why",
                 fixed ? "export fixed it: the program holds this size as a constant"
                       : "export left it open: the program holds it as a symbol, bound by this input");
}

static ait_status put_dimensions(ait_text *t, const ait_trial_context *x) {
  const ait_region *r = x->region;
  ait_allocator a = ait_allocator_default();
  size_t bytes = ((size_t)r->dim_count + 1) * sizeof(int64_t);
  int64_t *low = ait_alloc(a, bytes, _Alignof(int64_t)), *high = ait_alloc(a, bytes, _Alignof(int64_t));
  const char *between = "";
  if (low && high) ait_region_dim_ranges(r, low, high);
  for (uint32_t i = 0; low && high && i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX || r->values[in->value].type != AIT_TYPE_TENSOR) continue;
    for (int32_t d = 0; d < r->values[in->value].rank; ++d) {
      ait_text_printf(t, "%s\n    {", between);
      put_dimension(t, x, in, d, low, high);
      ait_text_printf(t, "}");
      between = ",";
    }
  }
  ait_status status = low && high ? AIT_OK : AIT_OOM();
  ait_free(a, low, bytes);
  ait_free(a, high, bytes);
  return status;
}

/* ---- points and buckets -------------------------------------------------------------------------------------------------------------*/
static void put_member(ait_text *t, const ait_candidates *list, const ait_shapes *s, const ait_shape_point *p, uint32_t member) {
  bool first = true;
  ait_text_printf(t, "%s{", member ? ", " : "");
  ait_put_string(t, &first, "name", name_of(list, s, member));
  ait_put_double(t, &first, "median_s", p->medians[member].median);
  ait_put_double(t, &first, "low_s", p->medians[member].low);
  ait_put_double(t, &first, "high_s", p->medians[member].high);
  ait_put_double(t, &first, "time_over_winner", p->against_winner[member].median);
  ait_put_double(t, &first, "time_over_winner_low", p->against_winner[member].low);
  ait_put_double(t, &first, "time_over_winner_high", p->against_winner[member].high);
  ait_text_printf(t, "}");
}

static void put_point(ait_text *t, const ait_candidates *list, const ait_shapes *s, uint32_t index) {
  const ait_shape_point *p = &s->points[index];
  ait_shape_box box = {0};
  char sizes[256];
  bool first = true;
  memcpy(box.min, p->size, sizeof box.min);
  memcpy(box.max, p->size, sizeof box.max);
  ait_shapes_box_text(s, &box, sizes, sizeof sizes);
  ait_text_printf(t, "%s\n    {", index ? "," : "");
  ait_put_string(t, &first, "sizes", sizes);
  if (s->measured) {
    ait_put_string(t, &first, "winner", name_of(list, s, p->winner));
    ait_put_int(t, &first, "rounds", s->times.rounds[index]);
    ait_put_int(t, &first, "dropped", s->times.dropped[index]);
    ait_put_key(t, &first, "members");
    ait_text_printf(t, "[");
    for (uint32_t k = 0; k < s->member_count; ++k) put_member(t, list, s, p, k);
    ait_text_printf(t, "]");
  }
  ait_text_printf(t, "}");
}

void ait_shapes_put(ait_text *t, const ait_trial_context *x, const ait_candidates *list, const ait_shapes *s) {
  bool first = true;
  ait_text_printf(t, "{");
  ait_put_bool(t, &first, "measured", s->measured);
  if (!s->measured) ait_put_string(t, &first, "why_not", s->why);
  ait_text_printf(t, ",\n   \"dimensions\": [");
  ait_status status = put_dimensions(t, x);
  t->failed |= status != AIT_OK;
  ait_status_ignore(status);
  ait_text_printf(t, "],\n   \"points\": [");
  for (uint32_t i = 0; i < s->point_count; ++i) put_point(t, list, s, i);
  ait_text_printf(t, "],\n   \"buckets\": [");
  for (uint32_t b = 0; b < s->box_count; ++b) {
    char sizes[256];
    bool f = true;
    ait_shapes_box_text(s, &s->boxes[b], sizes, sizeof sizes);
    ait_text_printf(t, "%s\n    {", b ? "," : "");
    ait_put_string(t, &f, "sizes", sizes);
    ait_put_string(t, &f, "winner", name_of(list, s, s->boxes[b].winner));
    ait_put_bool(t, &f, "own_plan", s->boxes[b].winner != 0);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]}");
}
