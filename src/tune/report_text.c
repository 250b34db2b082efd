/* The report for people: a table that fits 80 columns. */
#include "tune/put_json.h"
#include "tune/report_goal.h"
#include "tune/tune.h"
#include <json-c/json.h>
#include <stdio.h>

static struct json_object *get(struct json_object *o, const char *key) {
  struct json_object *v = NULL;
  return o && json_object_object_get_ex(o, key, &v) ? v : NULL;
}
static const char *text_of(struct json_object *o, const char *key) { return get(o, key) ? json_object_get_string(get(o, key)) : ""; }
static double number_of(struct json_object *o, const char *key) { return json_object_get_double(get(o, key)); }

static void seconds_text(double s, char out[16]) {
  if (s <= 0) snprintf(out, 16, "-");
  else if (s >= 1) snprintf(out, 16, "%.3g s", s);
  else if (s >= 1e-3) snprintf(out, 16, "%.3g ms", s * 1e3);
  else snprintf(out, 16, "%.3g us", s * 1e6);
}

static void candidate_row(ait_text *t, struct json_object *c) {
  char median[16], p95[16], error[16] = "-";
  bool won = json_object_get_boolean(get(c, "won")), valid = !strcmp(text_of(c, "outcome"), "valid");
  seconds_text(number_of(c, "median_s"), median);
  seconds_text(number_of(c, "p95_s"), p95);
  if (get(c, "error_over_tolerance")) snprintf(error, sizeof error, "%.2g", number_of(c, "error_over_tolerance"));
  ait_text_printf(t, "%s %-34.34s %9s %9s %8s  %s\n", won ? "*" : " ", text_of(c, "name"), median, p95, error,
                  valid ? "" : text_of(c, "outcome"));
  if (!valid && *text_of(c, "reason")) ait_text_printf(t, "    %.75s\n", text_of(c, "reason"));
}

static void check_rows(ait_text *t, struct json_object *checks) {
  struct json_object *cases = get(checks, "cases"), *outputs = get(checks, "outputs");
  ait_text_printf(t, "checked against the %s:\n", text_of(checks, "oracle"));
  for (size_t i = 0; cases && i < json_object_array_length(cases); ++i) {
    struct json_object *c = json_object_array_get_idx(cases, i);
    ait_text_printf(t, "  %-10s %.66s\n", text_of(c, "label"), text_of(c, "shapes"));
  }
  for (size_t i = 0; outputs && i < json_object_array_length(outputs); ++i) {
    struct json_object *o = json_object_array_get_idx(outputs, i);
    ait_text_printf(t, "  %-20.20s up to %.3g, rounding noise %.2g, tolerance %.2g\n", text_of(o, "name"), number_of(o, "max_abs"),
                    number_of(o, "noise"), number_of(o, "atol"));
  }
}

/* Who might have won as well: in the contest, and by the trials of those that were not in it. */
static void ties(ait_text *t, struct json_object *o) {
  struct json_object *members = get(get(o, "contest"), "members"), *list = get(o, "candidates");
  for (size_t i = 0; members && i < json_object_array_length(members); ++i) {
    struct json_object *m = json_object_array_get_idx(members, i);
    if (!json_object_get_boolean(get(m, "tie")) || !strcmp(text_of(m, "name"), text_of(o, "winner"))) continue;
    ait_text_printf(t, "within noise of it: %s; ", text_of(m, "name"));
    if (json_object_get_boolean(get(m, "probably_slower")))
      ait_text_printf(t, "probably slower (%.2fx)\n", number_of(m, "time_over_winner"));
    else ait_text_printf(t, "the simpler one was kept\n");
  }
  for (size_t i = 0; i < json_object_array_length(list); ++i) {
    struct json_object *c = json_object_array_get_idx(list, i);
    if (json_object_get_boolean(get(c, "near"))) ait_text_printf(t, "within noise of it: %s; by its trial alone\n", text_of(c, "name"));
  }
}

static void verdict(ait_text *t, struct json_object *o) {
  if (!*text_of(o, "winner")) {
    const char *unmet = ait_report_unmet(o);
    ait_text_printf(t, "%.79s\n", *unmet ? unmet : "no candidate is valid");
    if (strlen(unmet) > 79) ait_text_printf(t, "%.79s\n", unmet + 79);
    return;
  }
  ait_text_printf(t, "winner: %s\n", text_of(o, "winner"));
  if (ait_report_contest_batch(o) > 0) ait_text_printf(t, "at batch size %.0f: ", ait_report_contest_batch(o));
  if (number_of(o, "speedup") > 0)
    ait_text_printf(t, "%.2f times as fast as the baseline, %s\n  (95 %%: %.2f to %.2f; %s rounds)\n", number_of(o, "speedup"),
                    text_of(o, "baseline"), number_of(o, "speedup_low"), number_of(o, "speedup_high"),
                    get(o, "speedup_rounds") ? text_of(o, "speedup_rounds") : text_of(get(o, "contest"), "rounds"));
  if (*text_of(o, "best_single") && strcmp(text_of(o, "best_single"), text_of(o, "winner")))
    ait_text_printf(t, "%.2f times as fast as the best plan of one backend, %s\n  (95 %%: %.2f to %.2f)\n",
                    1 / number_of(o, "time_over_single"), text_of(o, "best_single"), 1 / number_of(o, "time_over_single_high"),
                    1 / number_of(o, "time_over_single_low"));
  ties(t, o);
}

/* How far all that can be trusted. */
static void trust(ait_text *t, struct json_object *o) {
  struct json_object *noise = get(o, "noise"), *warnings = get(get(o, "machine"), "warnings");
  if (json_object_get_boolean(get(noise, "measured")))
    ait_text_printf(t, "noise: two equal plans differ here by up to %.1f %%\n", 100 * number_of(noise, "floor"));
  for (size_t i = 0; warnings && i < json_object_array_length(warnings); ++i) {
    const char *text = json_object_get_string(json_object_array_get_idx(warnings, i));
    ait_text_printf(t, "warning: while measuring,\n  %.77s\n", text);
    if (strlen(text) > 77) ait_text_printf(t, "  %.77s\n", text + 77);
  }
}

/* What was fixed by export, what was measured at which sizes, and who won there. */
static void shape_rows(ait_text *t, struct json_object *report) {
  struct json_object *shapes = get(report, "shapes");
  struct json_object *dims = get(shapes, "dimensions"), *buckets = get(shapes, "buckets"), *points = get(shapes, "points");
  size_t open = 0;
  for (size_t i = 0; dims && i < json_object_array_length(dims); ++i) {
    struct json_object *d = json_object_array_get_idx(dims, i), *seen = get(d, "seen");
    if (json_object_get_boolean(get(d, "fixed"))) continue;
    ait_text_printf(t, "%s%s dimension %s: %s, %s to %s; samples have ", open++ ? "  " : "sizes:\n  ", text_of(d, "input"),
                    text_of(d, "dimension"), text_of(d, "size"), text_of(d, "min"), get(d, "max") ? text_of(d, "max") : "any");
    for (size_t k = 0; seen && k < json_object_array_length(seen); ++k)
      ait_text_printf(t, "%s%s", k ? ", " : "", json_object_get_string(json_object_array_get_idx(seen, k)));
    ait_text_printf(t, "\n");
  }
  if (!open) return;
  for (size_t i = 0; json_object_get_boolean(get(shapes, "measured")) && i < json_object_array_length(points); ++i) {
    struct json_object *p = json_object_array_get_idx(points, i), *members = get(p, "members");
    ait_text_printf(t, "  at %s:", text_of(p, "sizes"));
    for (size_t k = 0; members && k < json_object_array_length(members); ++k) {
      struct json_object *m = json_object_array_get_idx(members, k);
      char seconds[16];
      bool won = !strcmp(text_of(m, "name"), text_of(p, "winner"));
      if (!won && k) continue; /* who won, and the plan for all sizes */
      seconds_text(number_of(m, "median_s"), seconds);
      ait_text_printf(t, "%s %s %s%s", k ? "," : "", text_of(m, "name"), seconds, won ? " *" : "");
    }
    ait_text_printf(t, "\n");
  }
  for (size_t i = 0; buckets && i < json_object_array_length(buckets); ++i) {
    struct json_object *b = json_object_array_get_idx(buckets, i);
    ait_text_printf(t, "  %s: %s%s\n", text_of(b, "sizes"), text_of(b, "winner"),
                    json_object_get_boolean(get(b, "own_plan")) ? ", a plan of its own" : "");
  }
  ait_text_printf(t, "  all others: %s\n", text_of(report, "winner"));
}

ait_status ait_report_text(const char *report, char **out) {
  struct json_object *o = json_tokener_parse(report), *list = get(o, "candidates");
  *out = NULL;
  if (!list || !json_object_is_type(list, json_type_array)) {
    json_object_put(o);
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "this is no tuning report");
  }
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(&t, "%s, %s cores, strategy %s\n\n", text_of(get(o, "environment"), "cpu"), text_of(get(o, "environment"), "cores"),
                  text_of(o, "strategy"));
  ait_text_printf(&t, "  %-34s %9s %9s %8s\n", "candidate", "median", "p95", "error");
  for (size_t i = 0; i < json_object_array_length(list); ++i) candidate_row(&t, json_object_array_get_idx(list, i));
  ait_text_printf(&t, "(error: worst difference from the oracle; 1 is the tolerance)\n\n");
  check_rows(&t, get(o, "checks"));
  shape_rows(&t, o);
  ait_text_printf(&t, "\n");
  ait_report_goal_text(&t, o);
  verdict(&t, o);
  trust(&t, o);
  json_object_put(o);
  return ait_put_finish(&t, out);
}
