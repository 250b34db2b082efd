/* Tables of the report's page: modules, steps, candidates, accuracy. */
#include "tune/report_page.h"
#include <math.h>
#include <stdlib.h>

static void not_recorded(const ait_page *p, const char *what) {
  ait_text_printf(p->t,
                  "<p class=\"note\">%s are not in this report: its plan runs on a backend that gives no times per step, or it was "
                  "written by an earlier version.</p>\n</section>\n",
                  what);
}

/* kind: " a" the winner's colour, "" the baseline's, " other". */
static void bar_cell(const ait_page *p, double seconds, double whole, const char *kind) {
  double share = whole > 0 ? seconds / whole : 0;
  ait_text_printf(p->t, "<td><div class=\"bar%s\"><span><i style=\"--w:%.1f%%\"></i></span><b>%s</b></div></td>", kind,
                  100 * (share < 1 ? share : 1), ait_unit_seconds(seconds).text);
}

/* ---- modules ---------------------------------------------------------------------------------------------------------------------*/
static int depth_of(const char *path) {
  int depth = *path != 0;
  for (; *path; ++path) depth += *path == '.';
  return depth;
}

static const char *last_part(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot ? dot + 1 : path;
}

enum { SHOWN_DEPTH = 2, SHOWN_ALWAYS = 24 };
static const double shown_share = 0.04;

static bool is_deep(const ait_page *p, const char *path, double after, double before) {
  if (ait_member_count(p->report, "modules") <= SHOWN_ALWAYS || depth_of(path) <= SHOWN_DEPTH) return false;
  double a = ait_page_seconds(p->after, ""), b = ait_page_seconds(p->before, "");
  return after < shown_share * a && before < shown_share * b;
}

static void module_row(const ait_page *p, struct json_object *m, double whole) {
  const char *path = ait_member_text(m, "path"), *type = last_part(ait_member_text(m, "type"));
  double after = ait_page_seconds(p->after, path), before = ait_page_seconds(p->before, path);
  ait_text_printf(p->t, "<tr%s><th scope=\"row\" style=\"--depth:%d\" title=\"", is_deep(p, path, after, before) ? " class=\"deep\"" : "",
                  depth_of(path));
  ait_html_text(p->t, path);
  ait_text_printf(p->t, "\">");
  ait_html_name(p->t, *path ? last_part(path) : "(whole model)");
  ait_text_printf(p->t, "</th><td class=\"wide type\">");
  ait_html_text(p->t, type);
  ait_text_printf(p->t, "</td><td class=\"n wide\">%s</td>",
                  ait_member_number(m, "parameters") > 0 ? ait_unit_count(ait_member_number(m, "parameters")).text : "–");
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td>",
                  ait_member_number(m, "flops") > 0 ? ait_unit_count(ait_member_number(m, "flops")).text : "–");
  if (p->before) bar_cell(p, before, whole, "");
  bar_cell(p, after, whole, " a");
  if (p->before) ait_text_printf(p->t, "<td class=\"n\">%s</td>", after > 0 && before > 0 ? ait_unit_times(before / after).text : "–");
  ait_text_printf(p->t, "</tr>\n");
}

void ait_page_modules(const ait_page *p) {
  size_t count = ait_member_count(p->report, "modules"), hidden = 0;
  ait_text_printf(p->t, "<section>\n<h2>Where the time goes, by module</h2>\n");
  if (!p->after || !count) {
    not_recorded(p, "Times of modules");
    return;
  }
  double after = ait_page_seconds(p->after, ""), before = ait_page_seconds(p->before, "");
  ait_text_printf(p->t,
                  "<p class=\"note\">Time of one call on the first sample, each module with all that is inside it. A step that was fused "
                  "counts for the module that it is named after: compare parents.</p>\n");
  if (p->before) ait_text_printf(p->t, "<ul class=\"key\"><li>before: baseline</li><li class=\"a\">after: winner</li></ul>\n");
  for (size_t i = 0; i < count; ++i) {
    const char *path = ait_member_text(ait_member_at(p->report, "modules", i), "path");
    hidden += is_deep(p, path, ait_page_seconds(p->after, path), ait_page_seconds(p->before, path));
  }
  if (hidden)
    ait_text_printf(p->t,
                    "<input type=\"checkbox\" id=\"all-modules\"><label class=\"toggle\" for=\"all-modules\">show %zu small modules, "
                    "too</label>\n",
                    hidden);
  ait_text_printf(
      p->t,
      "<div class=\"wrap\"><table class=\"tree\">\n<thead><tr><th scope=\"col\">Module</th><th scope=\"col\" class=\"wide\">Type</th>"
      "<th scope=\"col\" class=\"n wide\">Parameters</th><th scope=\"col\" class=\"n wide\">FLOP</th>%s<th scope=\"col\">%s</th>"
      "%s</tr></thead>\n<tbody>\n",
      p->before ? "<th scope=\"col\">Before</th>" : "", p->before ? "After" : "Time",
      p->before ? "<th scope=\"col\" class=\"n\">Gain</th>" : "");
  for (size_t i = 0; i < count; ++i) module_row(p, ait_member_at(p->report, "modules", i), before > after ? before : after);
  ait_text_printf(p->t, "</tbody></table></div>\n</section>\n");
}

/* ---- steps -----------------------------------------------------------------------------------------------------------------------*/
enum { SHOWN_STEPS = 12 };

static int slowest_first(const void *a, const void *b) {
  double x = ait_member_number(*(struct json_object *const *)a, "seconds"),
         y = ait_member_number(*(struct json_object *const *)b, "seconds");
  return (x < y) - (x > y);
}

static void step_row(const ait_page *p, struct json_object *s, double whole) {
  double seconds = ait_member_number(s, "seconds"), flops = ait_member_number(s, "flops"), bytes = ait_member_number(s, "bytes");
  struct json_object *roofline = ait_member_get(p->report, "roofline");
  ait_text_printf(p->t, "<tr><th scope=\"row\">");
  ait_html_name(p->t, ait_member_text(s, "op"));
  ait_text_printf(p->t, " <span class=\"type\">");
  if (strcmp(ait_member_text(s, "op"), ait_member_text(s, "kernel"))) ait_html_text(p->t, ait_member_text(s, "kernel"));
  ait_text_printf(p->t, "%s</span></th><td class=\"wide\">", ait_member_true(s, "portable") ? " (portable code)" : "");
  ait_html_name(p->t, *ait_member_text(s, "module") ? ait_member_text(s, "module") : "(whole model)");
  ait_text_printf(p->t, "</td>");
  bar_cell(p, seconds, whole, " a");
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td>", ait_unit_percent(whole > 0 ? seconds / whole : 0).text);
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td>", flops > 0 && seconds > 0 ? ait_unit_rate(flops / seconds, "FLOP").text : "–");
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td>", bytes > 0 && seconds > 0 ? ait_unit_rate(bytes / seconds, "B").text : "–");
  double roof = bytes > 0 ? ait_page_roof(roofline, flops / bytes) : 0;
  ait_text_printf(p->t, "<td class=\"n\">%s</td></tr>\n", roof > 0 && seconds > 0 ? ait_unit_percent(flops / seconds / roof).text : "–");
}

void ait_page_steps(const ait_page *p) {
  size_t count = ait_member_count(p->after, "steps");
  struct json_object **sorted = count ? calloc(count, sizeof *sorted) : NULL;
  ait_text_printf(p->t, "<section>\n<h2>The winner’s slowest steps</h2>\n");
  if (!sorted) {
    not_recorded(p, "Times of steps");
    return;
  }
  for (size_t i = 0; i < count; ++i) sorted[i] = ait_member_at(p->after, "steps", i);
  qsort(sorted, count, sizeof *sorted, slowest_first);
  double whole = ait_page_seconds(p->after, ""), rest = ait_member_number(p->after, "rest_s");
  ait_text_printf(p->t,
                  "<p class=\"note\">Work and memory traffic are counted from the graph, not measured. “Of roof” compares with "
                  "the fastest that this machine showed at the same FLOP per byte.</p>\n<div class=\"wrap\"><table>\n<thead><tr>"
                  "<th scope=\"col\">Step</th><th scope=\"col\" class=\"wide\">Module</th><th scope=\"col\">Time</th>"
                  "<th scope=\"col\" class=\"n wide\">Share</th><th scope=\"col\" class=\"n wide\">Work</th>"
                  "<th scope=\"col\" class=\"n wide\">Traffic</th><th scope=\"col\" class=\"n\">Of roof</th></tr></thead>\n<tbody>\n");
  size_t more = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i < SHOWN_STEPS && ait_member_number(sorted[i], "seconds") > 0) step_row(p, sorted[i], whole);
    else if (ait_member_number(sorted[i], "seconds") > 0) rest += ait_member_number(sorted[i], "seconds"), ++more;
  }
  if (rest > 0) {
    ait_text_printf(p->t, "<tr><th scope=\"row\" class=\"type\">%zu other steps</th><td class=\"wide\"></td>",
                    more + (size_t)ait_member_number(p->after, "rest_steps"));
    bar_cell(p, rest, whole, " a");
    ait_text_printf(p->t, "<td class=\"n wide\">%s</td><td class=\"wide\"></td><td class=\"wide\"></td><td></td></tr>\n",
                    ait_unit_percent(whole > 0 ? rest / whole : 0).text);
  }
  ait_text_printf(p->t, "</tbody></table></div>\n</section>\n");
  free(sorted);
}

/* ---- candidates ------------------------------------------------------------------------------------------------------------------*/
static const char *pill_of(const char *outcome) {
  if (!strcmp(outcome, "valid")) return "good";
  return !strcmp(outcome, "skipped") || !strcmp(outcome, "not tried") ? "" : "bad";
}

static void candidate_row(const ait_page *p, struct json_object *c, double longest) {
  const char *outcome = ait_member_text(c, "outcome"), *reason = ait_member_text(c, "reason");
  bool valid = !strcmp(outcome, "valid"), won = ait_member_true(c, "won"), measured = ait_member_number(c, "median_s") > 0;
  bool baseline = !strcmp(ait_member_text(p->report, "baseline"), ait_member_text(c, "name"));
  ait_text_printf(p->t, "<tr class=\"%s\"><th scope=\"row\">", won ? "won" : valid ? "" : "no");
  ait_html_name(p->t, ait_member_text(c, "name"));
  if (won) ait_text_printf(p->t, " <span class=\"pill good\">winner</span>");
  if (baseline) ait_text_printf(p->t, " <span class=\"pill\">baseline</span>");
  if (!valid) {
    ait_text_printf(p->t, " <span class=\"pill %s\">", pill_of(outcome));
    ait_html_text(p->t, outcome);
    ait_text_printf(p->t, "</span>");
  }
  ait_text_printf(p->t, "</th>");
  if (!measured) {
    ait_text_printf(p->t, "<td class=\"why\" colspan=\"6\">");
    ait_html_text(p->t, *reason ? reason : outcome);
    ait_text_printf(p->t, "</td></tr>\n");
    return;
  }
  bar_cell(p, ait_member_number(c, "median_s"), longest, won ? " a" : baseline ? "" : " other");
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td>", ait_unit_seconds(ait_member_number(c, "p95_s")).text);
  ait_text_printf(p->t, "<td class=\"n\">%s</td>", ait_unit_percent(ait_member_number(c, "error_over_tolerance")).text);
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td>", ait_unit_bytes(ait_member_number(c, "plan_bytes")).text);
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td>", ait_unit_bytes(ait_member_number(c, "blob_bytes")).text);
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td></tr>\n", ait_unit_seconds(ait_member_number(c, "build_s")).text);
}

void ait_page_candidates(const ait_page *p) {
  size_t count = ait_member_count(p->report, "candidates");
  double longest = 0;
  for (size_t i = 0; i < count; ++i) {
    double m = ait_member_number(ait_member_at(p->report, "candidates", i), "median_s");
    if (m > longest) longest = m;
  }
  ait_text_printf(p->t,
                  "<section>\n<h2>Candidates</h2>\n<p class=\"note\">All that was tried, each in a process of its own, and why what did "
                  "not run is out. The error is the worst difference from the oracle, in percent of the tolerance; beyond 100&nbsp;%% a "
                  "candidate cannot win. The fastest met again in the contest below, which decided.</p>\n"
                  "<div class=\"wrap\"><table>\n<thead><tr><th scope=\"col\">Candidate</th><th scope=\"col\">Median</th>"
                  "<th scope=\"col\" class=\"n wide\">p95</th><th scope=\"col\" class=\"n\">Error</th>"
                  "<th scope=\"col\" class=\"n wide\">Memory</th><th scope=\"col\" class=\"n wide\">Plan</th>"
                  "<th scope=\"col\" class=\"n wide\">Build</th></tr></thead>\n<tbody>\n");
  for (size_t i = 0; i < count; ++i) candidate_row(p, ait_member_at(p->report, "candidates", i), longest);
  ait_text_printf(p->t, "</tbody></table></div>\n</section>\n");
}

/* ---- accuracy --------------------------------------------------------------------------------------------------------------------*/
static struct json_object *find_row(struct json_object *report, const char *candidate, const char *label, const char *output) {
  for (size_t i = 0; i < ait_member_count(report, "accuracy"); ++i) {
    struct json_object *r = ait_member_at(report, "accuracy", i);
    if (!strcmp(ait_member_text(r, "candidate"), candidate) && !strcmp(ait_member_text(r, "case"), label) &&
        !strcmp(ait_member_text(r, "output"), output))
      return r;
  }
  return NULL;
}

static void error_cell(const ait_page *p, struct json_object *row, bool after) {
  bool known = ait_member_get(row, "error_over_tolerance") != NULL;
  double e = ait_member_number(row, "error_over_tolerance");
  if (!row) {
    ait_text_printf(p->t, "<td>–</td>");
    return;
  }
  ait_text_printf(p->t, "<td><div class=\"bar%s%s\"><span><i style=\"--w:%.1f%%\"></i></span><b>%s</b></div></td>", after ? " a" : "",
                  !known || e > 1 ? " over" : "", 100 * (known && e < 1 ? e : 1), known ? ait_unit_percent(e).text : "outside");
}

static void accuracy_row(const ait_page *p, const char *label, const char *output) {
  struct json_object *after = find_row(p->report, ait_member_text(p->report, "winner"), label, output);
  struct json_object *before = find_row(p->report, ait_member_text(p->report, "baseline"), label, output);
  if (!after) return;
  ait_text_printf(p->t, "<tr><th scope=\"row\">");
  ait_html_name(p->t, output);
  ait_text_printf(p->t, "</th><td>");
  ait_html_text(p->t, label);
  ait_text_printf(p->t, "</td>");
  if (p->before) error_cell(p, before, false);
  error_cell(p, after, true);
  ait_text_printf(p->t, "<td class=\"n wide\">%.2g</td><td class=\"n wide\">", ait_member_number(after, "max_abs"));
  if (ait_member_get(after, "snr_db")) ait_text_printf(p->t, "%.0f\u00a0dB", ait_member_number(after, "snr_db"));
  else ait_text_printf(p->t, "equal");
  ait_text_printf(p->t, "</td></tr>\n");
}

void ait_page_accuracy(const ait_page *p) {
  struct json_object *checks = ait_member_get(p->report, "checks");
  ait_text_printf(p->t, "<section>\n<h2>Accuracy</h2>\n<p class=\"note\">Every output of every case against the ");
  ait_html_text(p->t, ait_member_text(checks, "oracle"));
  ait_text_printf(p->t, ". 100&nbsp;%% is the tolerance.");
  if (*ait_member_text(checks, "why_not_double")) {
    ait_text_printf(p->t, " Not in double precision: ");
    ait_html_text(p->t, ait_member_text(checks, "why_not_double"));
  }
  ait_text_printf(p->t, "</p>\n");
  if (ait_member_count(p->report, "accuracy")) {
    ait_text_printf(
        p->t,
        "<div class=\"wrap\"><table>\n<thead><tr><th scope=\"col\">Output</th><th scope=\"col\">Case</th>%s<th scope=\"col\">%s</th>"
        "<th scope=\"col\" class=\"n wide\">Largest difference</th><th scope=\"col\" class=\"n wide\">Signal to noise</th>"
        "</tr></thead>\n<tbody>\n",
        p->before ? "<th scope=\"col\">Baseline</th>" : "", p->before ? "Winner" : "Error");
    for (size_t k = 0; k < ait_member_count(checks, "outputs"); ++k)
      for (size_t i = 0; i < ait_member_count(checks, "cases"); ++i)
        accuracy_row(p, ait_member_text(ait_member_at(checks, "cases", i), "label"),
                     ait_member_text(ait_member_at(checks, "outputs", k), "name"));
    ait_text_printf(p->t, "</tbody></table></div>\n");
  }
  ait_text_printf(p->t,
                  "<h3>Cases and tolerances</h3>\n<div class=\"wrap\"><table>\n<thead><tr><th scope=\"col\">Output</th>"
                  "<th scope=\"col\" class=\"n\">Largest value</th><th scope=\"col\" class=\"n wide\">Rounding noise of the model</th>"
                  "<th scope=\"col\" class=\"n\">Tolerance</th></tr></thead>\n<tbody>\n");
  for (size_t k = 0; k < ait_member_count(checks, "outputs"); ++k) {
    struct json_object *o = ait_member_at(checks, "outputs", k);
    ait_text_printf(p->t, "<tr><th scope=\"row\">");
    ait_html_name(p->t, ait_member_text(o, "name"));
    ait_text_printf(p->t, "</th><td class=\"n\">%.3g</td><td class=\"n wide\">%.2g</td><td class=\"n\">", ait_member_number(o, "max_abs"),
                    ait_member_number(o, "noise"));
    if (ait_member_true(o, "exact")) ait_text_printf(p->t, "equal");
    else ait_text_printf(p->t, "%.2g", ait_member_number(o, "atol") + ait_member_number(o, "rtol") * ait_member_number(o, "max_abs"));
    ait_text_printf(p->t, "</td></tr>\n");
  }
  ait_text_printf(p->t, "</tbody></table></div>\n<dl class=\"facts\" style=\"margin-top:.8rem\">\n");
  for (size_t i = 0; i < ait_member_count(checks, "cases"); ++i) {
    struct json_object *c = ait_member_at(checks, "cases", i);
    ait_text_printf(p->t, "<dt>");
    ait_html_text(p->t, ait_member_text(c, "label"));
    ait_text_printf(p->t, "</dt><dd>");
    ait_html_text(p->t, ait_member_text(c, "shapes"));
    ait_text_printf(p->t, "</dd>\n");
  }
  ait_text_printf(p->t, "</dl>\n</section>\n");
}
