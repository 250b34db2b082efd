/* Two tuning results side by side: what is better, worse or the same, beyond noise. */
#include "tune/html.h"
#include "tune/put_json.h"
#include "tune/tune.h"
#include <math.h>

/* An error within the tolerance is no fault; one that has more than doubled and comes near it is worth a look. */
static const double error_growth = 2, error_near = 0.5;

typedef struct side {
  struct json_object *report, *winner; /* the candidate */
  struct json_object *timed;           /* its member of the contest, else the candidate */
} side;

typedef enum verdict { SAME, BETTER, WORSE, UNKNOWN } verdict;
static const char *const verdict_text[] = {"same", "better", "worse", "unknown"};

static struct json_object *by_name(struct json_object *o, const char *list, const char *name) {
  for (size_t i = 0; i < ait_member_count(o, list); ++i)
    if (!strcmp(ait_member_text(ait_member_at(o, list, i), "name"), name)) return ait_member_at(o, list, i);
  return NULL;
}

static ait_status open_side(const char *report, const char *which, side *out) {
  *out = (side){.report = json_tokener_parse(report)};
  if (!ait_member_get(out->report, "candidates")) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the %s is no tuning report", which);
  const char *name = ait_member_text(out->report, "winner");
  if (!*name) return AIT_OK;
  out->winner = by_name(out->report, "candidates", name);
  out->timed = by_name(ait_member_get(out->report, "contest"), "members", name);
  if (!out->timed) out->timed = out->winner;
  return AIT_OK;
}

/* Times have an interval each: one is worse when not even its best is within the threshold of the other's worst. */
static verdict judge_times(struct json_object *a, struct json_object *b, double threshold) {
  double al = ait_member_number(a, "low_s"), ah = ait_member_number(a, "high_s");
  double bl = ait_member_number(b, "low_s"), bh = ait_member_number(b, "high_s");
  if (al <= 0 || ah <= 0 || bl <= 0 || bh <= 0) return UNKNOWN;
  if (bl > ah * (1 + threshold)) return WORSE;
  return al > bh * (1 + threshold) ? BETTER : SAME;
}

static verdict judge_bytes(double a, double b, double threshold) {
  if (b > a * (1 + threshold)) return WORSE;
  return a > b * (1 + threshold) ? BETTER : SAME;
}

static verdict judge_error(double a, double b) {
  if (b > error_near && b > error_growth * a) return WORSE;
  return a > error_near && a > error_growth * b ? BETTER : SAME;
}

typedef struct writer {
  ait_text *t;
  bool any;
  int64_t regressions, improvements;
} writer;

static void put_metric(writer *w, const char *name, bool known_a, double a, bool known_b, double b, verdict v) {
  bool first = true;
  if (!known_a && !known_b) return;
  if (!known_a || !known_b) v = UNKNOWN;
  ait_text_printf(w->t, "%s\n    {", w->any ? "," : "");
  w->any = true;
  ait_put_string(w->t, &first, "metric", name);
  if (known_a) ait_put_double(w->t, &first, "a", a);
  if (known_b) ait_put_double(w->t, &first, "b", b);
  if (known_a && known_b && a > 0 && b > 0) ait_put_double(w->t, &first, "b_over_a", b / a);
  ait_put_string(w->t, &first, "verdict", verdict_text[v]);
  ait_text_printf(w->t, "}");
  w->regressions += v == WORSE;
  w->improvements += v == BETTER;
}

static void put_member(writer *w, const char *metric, const char *member, const side *a, const side *b, double threshold, bool error) {
  double x = ait_member_number(a->winner, member), y = ait_member_number(b->winner, member);
  put_metric(w, metric, ait_member_get(a->winner, member) != NULL, x, ait_member_get(b->winner, member) != NULL, y,
             error ? judge_error(x, y) : judge_bytes(x, y, threshold));
}

static bool same_machine(const side *a, const side *b) {
  struct json_object *x = ait_member_get(a->report, "environment"), *y = ait_member_get(b->report, "environment");
  return !strcmp(ait_member_text(x, "cpu"), ait_member_text(y, "cpu")) && ait_member_number(x, "cores") == ait_member_number(y, "cores");
}

/* As far as a report says: a weight that was trained on is the same model. */
static bool same_model(const side *a, const side *b) {
  return !strcmp(ait_member_text(ait_member_at(a->report, "modules", 0), "type"),
                 ait_member_text(ait_member_at(b->report, "modules", 0), "type")) &&
         ait_member_number(a->report, "weight_bytes") == ait_member_number(b->report, "weight_bytes");
}

static void put_metrics(writer *w, const side *a, const side *b, const ait_compare_options *o) {
  double x = ait_member_number(a->timed, "median_s"), y = ait_member_number(b->timed, "median_s");
  put_metric(w, "latency_s", x > 0, x, y > 0, y, same_machine(a, b) ? judge_times(a->timed, b->timed, o->threshold) : UNKNOWN);
  x = ait_member_number(a->report, "speedup"), y = ait_member_number(b->report, "speedup");
  double al = ait_member_number(a->report, "speedup_low"), bh = ait_member_number(b->report, "speedup_high");
  double ah = ait_member_number(a->report, "speedup_high"), bl = ait_member_number(b->report, "speedup_low");
  verdict v = bh * (1 + o->threshold) < al ? WORSE : ah * (1 + o->threshold) < bl ? BETTER : SAME;
  if (same_machine(a, b)) v = v == WORSE || v == BETTER ? UNKNOWN : v; /* the latency itself has been judged; the baseline may have moved */
  put_metric(w, "speedup", x > 0, x, y > 0, y, v);
  put_member(w, "error_over_tolerance", "error_over_tolerance", a, b, 0, true);
  put_member(w, "plan_bytes", "plan_bytes", a, b, o->threshold, false);
  put_member(w, "blob_bytes", "blob_bytes", a, b, o->threshold, false);
  x = (double)o->a_file_bytes, y = (double)o->b_file_bytes;
  put_metric(w, "file_bytes", x > 0, x, y > 0, y, judge_bytes(x, y, o->threshold));
}

static bool ran(const char *outcome) { return *outcome && strcmp(outcome, "skipped") && strcmp(outcome, "not tried"); }

/* A candidate that was right and is not any more is a regression whether it had won or not. */
static verdict judge_candidate(struct json_object *a, struct json_object *b, bool comparable, double threshold) {
  const char *x = ait_member_text(a, "outcome"), *y = ait_member_text(b, "outcome");
  bool valid_a = !strcmp(x, "valid"), valid_b = !strcmp(y, "valid");
  if (!ran(x) || !ran(y)) return UNKNOWN;
  if (valid_a != valid_b) return valid_a ? WORSE : BETTER;
  if (!valid_a) return SAME;
  return comparable ? judge_times(a, b, threshold) : UNKNOWN;
}

static void put_candidate(writer *w, const char *name, struct json_object *a, struct json_object *b, verdict v) {
  bool first = true;
  ait_text_printf(w->t, "%s\n    {", w->any ? "," : "");
  w->any = true;
  ait_put_string(w->t, &first, "name", name);
  ait_put_string(w->t, &first, "a_outcome", a ? ait_member_text(a, "outcome") : "absent");
  ait_put_string(w->t, &first, "b_outcome", b ? ait_member_text(b, "outcome") : "absent");
  double x = ait_member_number(a, "median_s"), y = ait_member_number(b, "median_s");
  if (x > 0) ait_put_double(w->t, &first, "a_median_s", x);
  if (y > 0) ait_put_double(w->t, &first, "b_median_s", y);
  if (x > 0 && y > 0) ait_put_double(w->t, &first, "b_over_a", y / x);
  ait_put_string(w->t, &first, "verdict", verdict_text[v]);
  const char *reason = ait_member_text(b, "reason");
  if (v == WORSE && *reason) ait_put_string(w->t, &first, "reason", reason);
  ait_text_printf(w->t, "}");
  bool lost = v == WORSE && strcmp(ait_member_text(a, "outcome"), ait_member_text(b, "outcome"));
  w->regressions += lost; /* that one which did not win got slower is shown, and is nobody's loss */
}

static void put_candidates(writer *w, const side *a, const side *b, const ait_compare_options *o) {
  bool comparable = same_machine(a, b);
  for (size_t i = 0; i < ait_member_count(a->report, "candidates"); ++i) {
    struct json_object *x = ait_member_at(a->report, "candidates", i);
    const char *name = ait_member_text(x, "name");
    struct json_object *y = by_name(b->report, "candidates", name);
    put_candidate(w, name, x, y, judge_candidate(x, y, comparable, o->threshold));
  }
  for (size_t i = 0; i < ait_member_count(b->report, "candidates"); ++i) {
    struct json_object *y = ait_member_at(b->report, "candidates", i);
    if (!by_name(a->report, "candidates", ait_member_text(y, "name"))) put_candidate(w, ait_member_text(y, "name"), NULL, y, UNKNOWN);
  }
}

static ait_status compare(const side *a, const side *b, const ait_compare_options *o, ait_text *t) {
  writer w = {.t = t};
  bool first = true;
  ait_text_printf(t, "{\n  ");
  ait_put_string(t, &first, "a_winner", ait_member_text(a->report, "winner"));
  ait_put_string(t, &first, "b_winner", ait_member_text(b->report, "winner"));
  ait_put_bool(t, &first, "same_machine", same_machine(a, b));
  ait_put_bool(t, &first, "same_model", same_model(a, b));
  ait_put_double(t, &first, "threshold", o->threshold);
  ait_text_printf(t, ",\n  \"metrics\": [");
  put_metrics(&w, a, b, o);
  ait_text_printf(t, "],\n  \"candidates\": [");
  w.any = false;
  put_candidates(&w, a, b, o);
  if (a->winner && !b->winner) ++w.regressions;
  ait_text_printf(t, "],\n  ");
  first = true;
  ait_put_int(t, &first, "regressions", w.regressions);
  ait_put_int(t, &first, "improvements", w.improvements);
  ait_text_printf(t, "\n}\n");
  return t->failed ? AIT_OOM() : AIT_OK;
}

void ait_compare_options_init(ait_compare_options *options) {
  *options = (ait_compare_options){.struct_size = sizeof *options, .threshold = 0.05};
}

ait_status ait_compare_reports(const char *a_report, const char *b_report, const ait_compare_options *options, char **out) {
  ait_compare_options o;
  side a = {0}, b = {0};
  ait_text t;
  *out = NULL;
  ait_compare_options_init(&o);
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ait_text_init(&t, ait_allocator_default());
  ait_status status = o.threshold >= 0 && isfinite(o.threshold)
                          ? AIT_OK
                          : ait_error(AIT_CODE_INVALID_ARGUMENT, "threshold %g: must be 0 or more", o.threshold);
  if (status == AIT_OK) status = open_side(a_report, "first", &a);
  if (status == AIT_OK) status = open_side(b_report, "second", &b);
  if (status == AIT_OK) status = compare(&a, &b, &o, &t);
  json_object_put(a.report);
  json_object_put(b.report);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return status;
}
