#include "tune/shapes.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Another plan must be this much faster, surely, to get sizes of its own. */
static const double worth = 1.02;

/* ---- sizes that the user asked for ---------------------------------------------------------------------------------------------------*/
static uint32_t symbol_of(const ait_region *r, const char *name, size_t length) {
  for (uint32_t i = 0; i < r->symbol_count; ++i)
    if (strlen(r->symbols[i].name) == length && !memcmp(r->symbols[i].name, name, length)) return i;
  return AIT_NO_INDEX;
}

/* INPUT.DIMENSION, where that dimension is a symbol and nothing else. */
static ait_status symbol_of_dimension(const ait_region *r, const char *name, size_t length, uint32_t *out) {
  const char *dot = memrchr(name, '.', length);
  char *end = NULL;
  long dim = dot ? strtol(dot + 1, &end, 10) : -1;
  for (uint32_t i = 0; dot && end == name + length && i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX || !in->name || strlen(in->name) != (size_t)(dot - name) ||
        memcmp(in->name, name, (size_t)(dot - name)))
      continue;
    const ait_region_value *v = &r->values[in->value];
    if (v->type != AIT_TYPE_TENSOR || dim < 0 || dim >= v->rank)
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s' has no dimension %ld", in->name, dim);
    const ait_dim_expr *e = &r->dims[v->shape[dim]];
    char text[96];
    ait_region_dim_text(r, v->shape[dim], text, sizeof text);
    if (e->op == AIT_DIM_CONST)
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "dimension %ld of input '%s' is fixed at %s by export", dim, in->name, text);
    if (e->op != AIT_DIM_SYMBOL)
      return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "dimension %ld of input '%s' is %s", dim, in->name, text),
                            "name the symbol in it");
    *out = e->a;
    return AIT_OK;
  }
  ait_text known;
  ait_text_init(&known, ait_allocator_default());
  for (uint32_t i = 0; i < r->symbol_count; ++i)
    if (r->symbols[i].backed) ait_text_printf(&known, "%s%s", known.length ? ", " : "", r->symbols[i].name);
  ait_status status = ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has no size '%.*s'", (int)length, name), "%s%s",
                                     known.length ? "sizes are symbols or INPUT.DIMENSION; symbols are: " : "all its sizes are fixed",
                                     known.data ? known.data : "");
  ait_text_deinit(&known);
  return status;
}

static ait_status take_values(const ait_region *r, const char *text, ait_shape_request *q) {
  const ait_symbol *s = &r->symbols[q->symbol];
  for (const char *p = text;;) {
    char *end;
    int64_t v = strtoll(p, &end, 10);
    if (end == p || (*end && *end != ',')) return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is no list of sizes", text);
    if (v < s->min || v > s->max)
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "size %lld of '%s' is outside the model's range, which begins at %lld and ends at %lld",
                       (long long)v, s->name, (long long)s->min, (long long)s->max);
    if (q->count == AIT_SHAPE_WANTED) return ait_error(AIT_CODE_LIMIT, "more than %d sizes of '%s'", AIT_SHAPE_WANTED, s->name);
    bool there = false;
    for (uint32_t i = 0; i < q->count; ++i) there |= q->values[i] == v;
    if (!there) q->values[q->count++] = v;
    if (!*end) return AIT_OK;
    p = end + 1;
  }
}

static ait_status take_request(const ait_region *r, const char *text, ait_shape_requests *out) {
  const char *sign = strchr(text, '=');
  if (!sign) return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "no '=' in it"), "like batch=1,8,64");
  uint32_t symbol = symbol_of(r, text, (size_t)(sign - text));
  if (symbol == AIT_NO_INDEX) AIT_TRY(symbol_of_dimension(r, text, (size_t)(sign - text), &symbol));
  if (!r->symbols[symbol].backed)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "size '%s' depends on data: no input gives it", r->symbols[symbol].name);
  for (uint32_t i = 0; i < out->count; ++i)
    if (out->items[i].symbol == symbol) return take_values(r, sign + 1, &out->items[i]);
  if (out->count == AIT_SHAPE_AXES) return ait_error(AIT_CODE_LIMIT, "more than %d dimensions", AIT_SHAPE_AXES);
  ait_shape_request *q = &out->items[out->count++];
  *q = (ait_shape_request){.symbol = symbol};
  return take_values(r, sign + 1, q);
}

ait_status ait_shape_requests_parse(const ait_region *region, const char *const *texts, ait_shape_requests *out) {
  *out = (ait_shape_requests){0};
  for (size_t i = 0; texts && texts[i]; ++i) AIT_TRY(ait_error_context(take_request(region, texts[i], out), "buckets '%s'", texts[i]));
  if (out->count == 0) return AIT_OK;
  out->combinations = 1;
  for (uint32_t i = 0; i < out->count; ++i) { /* each count is at most 16, and so is what it is multiplied with */
    out->combinations *= out->items[i].count;
    if (out->combinations > AIT_SHAPE_WANTED)
      return ait_error(AIT_CODE_LIMIT, "buckets: more than %d combinations of sizes", AIT_SHAPE_WANTED);
  }
  return AIT_OK;
}

void ait_shape_requests_at(const ait_shape_requests *requests, uint32_t index, int64_t *symbols) {
  for (uint32_t i = 0; i < requests->count; ++i) {
    symbols[requests->items[i].symbol] = requests->items[i].values[index % requests->items[i].count];
    index /= requests->items[i].count;
  }
}

/* ---- points -------------------------------------------------------------------------------------------------------------------------*/
static bool same_size(const ait_shapes *s, const ait_shape_point *a, const ait_shape_point *b) {
  return memcmp(a->size, b->size, s->axis_count * sizeof *a->size) == 0;
}

static int by_size(const void *a, const void *b) {
  const ait_shape_point *x = a, *y = b;
  for (int k = 0; k < AIT_SHAPE_AXES; ++k)
    if (x->size[k] != y->size[k]) return x->size[k] < y->size[k] ? -1 : 1;
  return 0;
}

static ait_status add_point(ait_shapes *s, const ait_tune_cases *cases, size_t index, int64_t *symbols) {
  const ait_tune_case *c = &cases->items[index];
  ait_shape_point p = {.case_index = (uint32_t)index};
  AIT_TRY(ait_bind_inputs(s->region, c->inputs, c->input_count, symbols));
  for (uint32_t k = 0; k < s->axis_count; ++k) p.size[k] = symbols[s->axes[k]];
  for (uint32_t i = 0; i < s->point_count; ++i)
    if (same_size(s, &s->points[i], &p)) return AIT_OK;
  if (s->point_count < AIT_SHAPE_POINTS) s->points[s->point_count++] = p;
  return AIT_OK;
}

ait_status ait_shapes_points(const ait_region *region, const ait_tune_cases *cases, ait_shapes *out) {
  *out = (ait_shapes){.region = region};
  int64_t *symbols = ait_alloc(ait_allocator_default(), (region->symbol_count + 1) * sizeof *symbols, _Alignof(int64_t));
  ait_status status = symbols ? ait_bind_inputs(region, cases->items[0].inputs, cases->items[0].input_count, symbols) : AIT_OOM();
  bool room = true;
  for (uint32_t i = 0; status == AIT_OK && i < region->symbol_count; ++i) {
    if (!region->symbols[i].backed || symbols[i] == INT64_MIN) continue;
    room = out->axis_count < AIT_SHAPE_AXES;
    if (!room) break;
    out->axes[out->axis_count++] = i;
  }
  if (!room) {
    out->axis_count = 0;
    snprintf(out->why, sizeof out->why, "more than %d sizes are dynamic", AIT_SHAPE_AXES);
  }
  for (size_t i = 0; status == AIT_OK && out->axis_count && i < cases->count; ++i)
    if (cases->items[i].measured || cases->items[i].wanted) status = add_point(out, cases, i, symbols);
  qsort(out->points, out->point_count, sizeof *out->points, by_size);
  ait_free(ait_allocator_default(), symbols, (region->symbol_count + 1) * sizeof *symbols);
  return status;
}

/* ---- members ------------------------------------------------------------------------------------------------------------------------*/
/* Also who may not win at the sizes of the samples. */
static bool may_take_part(const ait_candidate *c) { return c->median > 0 && !c->baseline; }

static bool is_member(const ait_shapes *s, int32_t candidate) {
  bool found = false;
  for (uint32_t k = 0; k < s->member_count; ++k) found |= s->members[k] == candidate;
  return found;
}

static bool same_kind(const ait_candidate *a, const ait_candidate *b) {
  return a->backend == b->backend && (a->mix != NULL) == (b->mix != NULL) && a->threads == b->threads;
}

/* The fastest that is no member yet; new_kind: and of which kind there is none yet. */
static int32_t next_member(const ait_candidates *list, const ait_shapes *s, bool new_kind) {
  int32_t best = -1;
  for (size_t i = 0; i < list->count; ++i) {
    const ait_candidate *c = &list->items[i];
    bool out = !may_take_part(c) || is_member(s, (int32_t)i);
    for (uint32_t k = 0; new_kind && !out && k < s->member_count; ++k) out = same_kind(c, &list->items[s->members[k]]);
    if (!out && (best < 0 || c->median < list->items[best].median)) best = (int32_t)i;
  }
  return best;
}

void ait_shapes_members(const ait_candidates *list, int32_t winner, ait_shapes *s) {
  s->members[0] = winner;
  s->member_count = 1;
  for (int new_kind = 1; new_kind >= 0; --new_kind)
    for (int32_t next; s->member_count < AIT_SHAPE_MEMBERS && (next = next_member(list, s, new_kind == 1)) >= 0;)
      s->members[s->member_count++] = next;
}

/* ---- winners ------------------------------------------------------------------------------------------------------------------------*/
static void decide_point(ait_shapes *s, uint32_t index, uint32_t before) {
  ait_shape_point *p = &s->points[index];
  double scratch[AIT_SHAPE_ROUNDS];
  const double *times = &s->times.times[(size_t)index * AIT_SHAPE_MEMBERS * AIT_SHAPE_ROUNDS];
  uint32_t rounds = s->times.rounds[index], fastest = 0;
  double limit = 1 + s->floor > worth ? 1 + s->floor : worth;
  bool tie[AIT_SHAPE_MEMBERS];
  for (uint32_t k = 0; k < s->member_count; ++k) {
    memcpy(scratch, &times[k * AIT_SHAPE_ROUNDS], rounds * sizeof *scratch);
    p->medians[k] = ait_stats_of(scratch, rounds);
    if (p->medians[k].median < p->medians[fastest].median) fastest = k;
  }
  for (uint32_t k = 0; k < s->member_count; ++k)
    tie[k] =
        k == fastest || ait_stats_ratio(&times[k * AIT_SHAPE_ROUNDS], &times[fastest * AIT_SHAPE_ROUNDS], rounds, scratch).low <= limit;
  p->winner = tie[0] ? 0 : tie[before] ? before : fastest;
  for (uint32_t k = 0; k < s->member_count; ++k)
    p->against_winner[k] = ait_stats_ratio(&times[k * AIT_SHAPE_ROUNDS], &times[p->winner * AIT_SHAPE_ROUNDS], rounds, scratch);
}

void ait_shapes_decide(ait_shapes *s) {
  for (uint32_t i = 0; s->measured && i < s->point_count; ++i) decide_point(s, i, i ? s->points[i - 1].winner : 0);
}

/* ---- boxes --------------------------------------------------------------------------------------------------------------------------*/
/* The last size that belongs to `low` when `high` is measured, too. */
static int64_t half_way(int64_t low, int64_t high) {
  int64_t middle = low > 0 ? (int64_t)sqrt((double)low * (double)high) : 0;
  return middle < low ? low : middle >= high ? high - 1 : middle;
}

static void box_of_point(const ait_shapes *s, const ait_shape_point *p, ait_shape_box *out) {
  *out = (ait_shape_box){.winner = p->winner};
  for (uint32_t k = 0; k < s->axis_count; ++k) {
    int64_t below = INT64_MIN, above = INT64_MAX, at = p->size[k];
    for (uint32_t i = 0; i < s->point_count; ++i) {
      int64_t v = s->points[i].size[k];
      if (v < at && v > below) below = v;
      if (v > at && v < above) above = v;
    }
    out->min[k] = below == INT64_MIN ? at : half_way(below, at) + 1;
    out->max[k] = above == INT64_MAX ? at : half_way(at, above);
  }
}

/* Together they are a box: alike but in one axis, and next to each other there. */
static bool can_join(const ait_shapes *s, const ait_shape_box *a, const ait_shape_box *b) {
  uint32_t apart = 0;
  if (a->winner != b->winner) return false;
  for (uint32_t k = 0; k < s->axis_count; ++k) {
    if (a->min[k] == b->min[k] && a->max[k] == b->max[k]) continue;
    bool next = (a->max[k] < INT64_MAX && a->max[k] + 1 == b->min[k]) || (b->max[k] < INT64_MAX && b->max[k] + 1 == a->min[k]);
    if (!next) return false;
    ++apart;
  }
  return apart == 1;
}

static void join(const ait_shapes *s, ait_shape_box *to, const ait_shape_box *from) {
  for (uint32_t k = 0; k < s->axis_count; ++k) {
    if (from->min[k] < to->min[k]) to->min[k] = from->min[k];
    if (from->max[k] > to->max[k]) to->max[k] = from->max[k];
  }
}

static bool join_two(ait_shapes *s) {
  for (uint32_t i = 0; i < s->box_count; ++i) {
    for (uint32_t j = i + 1; j < s->box_count; ++j) {
      if (!can_join(s, &s->boxes[i], &s->boxes[j])) continue;
      join(s, &s->boxes[i], &s->boxes[j]);
      memmove(&s->boxes[j], &s->boxes[j + 1], (--s->box_count - j) * sizeof *s->boxes);
      return true;
    }
  }
  return false;
}

void ait_shapes_make_boxes(ait_shapes *s) {
  s->box_count = 0;
  for (uint32_t i = 0; s->axis_count && i < s->point_count; ++i) box_of_point(s, &s->points[i], &s->boxes[s->box_count++]);
  while (join_two(s)) {}
}

void ait_shapes_box_text(const ait_shapes *s, const ait_shape_box *box, char *out, size_t size) {
  size_t n = 0;
  if (size) *out = 0;
  for (uint32_t k = 0; k < s->axis_count && n < size; ++k) {
    n += (size_t)snprintf(out + n, size - n, "%s%s %lld", k ? ", " : "", s->region->symbols[s->axes[k]].name, (long long)box->min[k]);
    if (n < size && box->max[k] != box->min[k]) n += (size_t)snprintf(out + n, size - n, " to %lld", (long long)box->max[k]);
  }
}
