/* The tuner's stage for sizes: who is fastest at each of them. */
#include "tune/stopwatch.h"
#include "tune/tuner.h"
#include <stdio.h>

enum { FEWEST_ROUNDS = 7 }; /* at each size */

/* ---- measuring (in a child) ---------------------------------------------------------------------------------------------------------*/
typedef struct lane {
  ait_session *session;
  const ait_tune_case *item;
  ait_value *outputs;
  size_t output_count;
  ait_stopwatch watch;
} lane;

static ait_status call(void *ctx) {
  lane *l = ctx;
  for (size_t k = 0; k < l->output_count; ++k) l->outputs[k] = (ait_value){0};
  return ait_session_run(l->session, l->item->inputs, l->item->input_count, l->outputs, l->output_count);
}

static double transport(void *ctx) { return ait_session_transport_seconds(((const lane *)ctx)->session); }

typedef struct work {
  const ait_tuner *t;
  const ait_shapes *shapes;
  double seconds; /* for each point */
} work;

static ait_status open_lane(const work *w, uint32_t member, lane *l) {
  const ait_candidate *c = &w->t->list.items[w->shapes->members[member]];
  ait_built *built =
      ait_alloc_zero(ait_allocator_default(), sizeof *built, _Alignof(ait_built)); /* the process ends: nothing is released */
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = c->threads;
  if (!built) return AIT_OOM();
  *l = (lane){.output_count = w->t->cases.output_count, .watch = {call, l, 1, 1, transport}};
  l->outputs = ait_alloc_zero(ait_allocator_default(), (l->output_count + 1) * sizeof *l->outputs, _Alignof(ait_value));
  if (!l->outputs) return AIT_OOM();
  AIT_TRY(ait_built_create(&w->t->x, c, built));
  return ait_session_create(built->model, &so, &l->session);
}

static ait_status measure_point(const work *w, lane *lanes, uint32_t point, ait_shape_times *out) {
  uint32_t *rounds = &out->rounds[point], *dropped = &out->dropped[point], members = w->shapes->member_count;
  double *times = &out->times[(size_t)point * AIT_SHAPE_MEMBERS * AIT_SHAPE_ROUNDS];
  for (uint32_t k = 0; k < members; ++k) {
    lanes[k].item = &w->t->cases.items[w->shapes->points[point].case_index];
    AIT_TRY(ait_session_reset(lanes[k].session));
    AIT_TRY(ait_stopwatch_warm_up(&lanes[k].watch));
  }
  double end = ait_clock_seconds() + w->seconds;
  while (*rounds < AIT_SHAPE_ROUNDS && (*rounds < FEWEST_ROUNDS || ait_clock_seconds() < end)) {
    bool clean = true;
    for (uint32_t i = 0; i < members; ++i) {
      uint32_t k = (i + *rounds) % members; /* nobody always goes first */
      bool one;
      AIT_TRY(ait_stopwatch_measure(&lanes[k].watch, &times[k * AIT_SHAPE_ROUNDS + *rounds], &one));
      clean &= one;
    }
    if (ait_stopwatch_rejects(clean, *rounds, *dropped, end)) ++*dropped;
    else ++*rounds;
  }
  return AIT_OK;
}

static ait_status measure_all(const work *w, ait_shape_times *out) {
  lane lanes[AIT_SHAPE_MEMBERS];
  out->points = w->shapes->point_count;
  out->members = w->shapes->member_count;
  for (uint32_t k = 0; k < out->members; ++k) AIT_TRY(open_lane(w, k, &lanes[k]));
  for (uint32_t p = 0; p < out->points; ++p) AIT_TRY(measure_point(w, lanes, p, out));
  return AIT_OK;
}

static void measure_child(void *ctx, void *out) {
  ait_shape_times *times = out;
  ait_status status = measure_all(ctx, times);
  if (status == AIT_OK) return;
  times->failed = 1;
  snprintf(times->reason, sizeof times->reason, "%s", ait_status_message(status));
}

/* ---- the stage ----------------------------------------------------------------------------------------------------------------------*/
/* A record may come from elsewhere. */
static bool is_plausible(const ait_shape_times *times, const ait_shapes *s) {
  bool good = !times->failed && times->points == s->point_count && times->members == s->member_count;
  for (uint32_t p = 0; good && p < s->point_count; ++p) {
    good = times->rounds[p] > 0 && times->rounds[p] <= AIT_SHAPE_ROUNDS;
    for (uint32_t k = 0; good && k < s->member_count; ++k) {
      const double *t = &times->times[((size_t)p * AIT_SHAPE_MEMBERS + k) * AIT_SHAPE_ROUNDS];
      for (uint32_t r = 0; good && r < times->rounds[p]; ++r) good = t[r] > 0 && t[r] - t[r] == 0;
    }
  }
  return good;
}

/* Who takes part, in which version, at which sizes. */
static uint64_t hash_of(const ait_tuner *t, const ait_shapes *s) {
  uint64_t h = ait_hash(&s->point_count, sizeof s->point_count, 3);
  for (uint32_t i = 0; i < s->point_count; ++i) h = ait_hash(s->points[i].size, sizeof s->points[i].size, h);
  for (uint32_t k = 0; k < s->member_count; ++k) {
    const ait_candidate *c = &t->list.items[s->members[k]];
    h = ait_hash(c->name, strlen(c->name), h);
    h = ait_hash(c->version, strlen(c->version), h);
  }
  return h;
}

/* As if each size took as long as the first sample. */
static double fewest_seconds(const ait_tuner *t, const ait_shapes *s) {
  double round = 0;
  for (uint32_t k = 0; k < s->member_count; ++k) round += t->list.items[s->members[k]].median;
  return FEWEST_ROUNDS * round * s->point_count;
}

static ait_status measure(ait_tuner *t, ait_shapes *s) {
  char key[256];
  double budget = t->options.budget_seconds, left = budget - (ait_clock_seconds() - t->start), all = 0.2 * budget;
  if (all > left) all = left;
  work w = {.t = t, .shapes = s, .seconds = all / s->point_count};
  w.seconds = w.seconds > 1 ? 1 : w.seconds < 0.1 ? 0.1 : w.seconds;
  snprintf(key, sizeof key, "shapes-%s-%016llx", t->key, (unsigned long long)hash_of(t, s));
  ait_tuner_recall(t, key, &s->times, sizeof s->times, &s->measured);
  s->measured = s->measured && is_plausible(&s->times, s);
  if (s->measured) return AIT_OK;
  /* Sizes that were asked for are measured anyhow. What is left of the budget does not count: a second run, and one from the record alone,
   * must come to the same. */
  if (!t->options.buckets && fewest_seconds(t, s) > 0.4 * budget) {
    snprintf(s->why, sizeof s->why, "the budget is too small to measure at other sizes");
    return AIT_OK;
  }
  if (t->options.from_record) return ait_tuner_not_recorded(t, "the times at each size");
  memset(&s->times, 0, sizeof s->times);
  AIT_TRY(ait_tuner_need_answers(t));
  t->phase = "sizes";
  ait_tuner_tell(t, NULL);
  AIT_TRY(
      ait_child_call(&t->x, measure_child, &w, &s->times, sizeof s->times, t->options.trial_seconds + s->point_count * w.seconds, s->why));
  ait_tuner_measured(t);
  if (!*s->why && s->times.failed) memcpy(s->why, s->times.reason, sizeof s->why);
  s->measured = !*s->why;
  if (s->measured) ait_tuner_remember(t, key, "sizes", &s->times, sizeof s->times);
  return AIT_OK;
}

static bool by_time(const ait_tuner *t) {
  return !t->decision->fixed && (t->objective.kind == AIT_STRATEGY_MAX_THROUGHPUT || t->objective.kind == AIT_STRATEGY_MIN_LATENCY);
}

ait_status ait_tuner_shapes(ait_tuner *t) {
  if (t->decision->winner < 0) return AIT_OK;
  ait_shapes *s = t->shapes = ait_alloc_zero(ait_allocator_default(), sizeof *s, _Alignof(ait_shapes));
  if (!s) return AIT_OOM();
  AIT_TRY(ait_shapes_points(t->region, &t->cases, s));
  s->floor = t->decision->floor;
  ait_shapes_members(&t->list, t->decision->winner, s);
  if (*s->why) return AIT_OK;
  if (s->axis_count == 0) snprintf(s->why, sizeof s->why, "all sizes are fixed");
  else if (!by_time(t)) snprintf(s->why, sizeof s->why, "strategy %s asks for one plan", t->objective.text);
  else if (s->point_count < 2) snprintf(s->why, sizeof s->why, "one size was given");
  else if (s->member_count < 2) snprintf(s->why, sizeof s->why, "there is one candidate");
  else AIT_TRY(measure(t, s));
  ait_shapes_decide(s);
  ait_shapes_make_boxes(s);
  return AIT_OK;
}
