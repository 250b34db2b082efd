/* What the report says of the objective: throughput by batch size, traffic, and who is beaten in nothing. As text and as HTML. */
#include "tune/report_goal.h"
#include <math.h>
#include <stdio.h>

static struct json_object *objective_of(struct json_object *report) { return ait_member_get(report, "objective"); }

static struct json_object *of_candidate(struct json_object *list_owner, const char *candidate) {
  for (size_t i = 0; i < ait_member_count(list_owner, "candidates"); ++i) {
    struct json_object *c = ait_member_at(list_owner, "candidates", i);
    if (!strcmp(ait_member_text(c, "candidate"), candidate)) return c;
  }
  return NULL;
}

static size_t on_front(struct json_object *report) {
  size_t n = 0;
  for (size_t i = 0; i < ait_member_count(report, "pareto"); ++i) n += ait_member_true(ait_member_at(report, "pareto", i), "front");
  return n;
}

/* "1.234e+05" is no number for people. */
static const char *rate_text(double rows, char out[32]) {
  if (!(rows > 0)) snprintf(out, 32, "-");
  else if (rows >= 1000) snprintf(out, 32, "%.0f", rows);
  else snprintf(out, 32, "%.4g", rows);
  return out;
}

static const char *seconds_text(double s, char out[16]) {
  if (s <= 0) snprintf(out, 16, "-");
  else if (s >= 1) snprintf(out, 16, "%.3g s", s);
  else if (s >= 1e-3) snprintf(out, 16, "%.3g ms", s * 1e3);
  else snprintf(out, 16, "%.3g us", s * 1e6);
  return out;
}

static const char *bytes_text(double b, char out[16]) {
  if (b >= 1e9) snprintf(out, 16, "%.3g GB", b / 1e9);
  else if (b >= 1e6) snprintf(out, 16, "%.3g MB", b / 1e6);
  else snprintf(out, 16, "%.3g kB", b / 1e3);
  return out;
}

/* ---- text ------------------------------------------------------------------------------------------------------------------------*/
static void batch_rows(ait_text *t, struct json_object *batch, const char *winner) {
  struct json_object *c = of_candidate(batch, winner);
  char rate[32], median[16], quantile[16], bytes[16], percent[16];
  if (!c) return;
  snprintf(percent, sizeof percent, "p%g", 100 * ait_member_number(batch, "quantile"));
  ait_text_printf(t, "by batch size (%s), %s:\n  %9s %12s %10s %10s %10s\n", ait_member_text(batch, "symbol"), winner, "batch", "rows/s",
                  "call", percent, "memory");
  for (size_t i = 0; i < ait_member_count(c, "sizes"); ++i) {
    struct json_object *p = ait_member_at(c, "sizes", i);
    bool best = ait_member_number(p, "batch") == ait_member_number(c, "best");
    ait_text_printf(t, "%s %9.0f %12s %10s %10s %10s\n", best ? "*" : " ", ait_member_number(p, "batch"),
                    rate_text(ait_member_number(p, "rows_per_s"), rate), seconds_text(ait_member_number(p, "median_s"), median),
                    seconds_text(ait_member_number(p, "quantile_s"), quantile), bytes_text(ait_member_number(p, "bytes"), bytes));
  }
  ait_text_printf(t, "  no larger one: %s", ait_member_text(c, "stopped"));
  if (ait_member_number(c, "refused_batch") > 0)
    ait_text_printf(t, " (%.0f would take %s of %s)", ait_member_number(c, "refused_batch"),
                    bytes_text(ait_member_number(c, "refused_bytes"), bytes), bytes_text(ait_member_number(c, "limit_bytes"), median));
  ait_text_printf(t, "\n\n");
}

static void traffic_rows(ait_text *t, struct json_object *traffic) {
  char a[16], b[16], w[16], rate[32];
  ait_text_printf(t, "traffic %s, %.0f requests:\n  %-30s %9s %9s %9s %14s\n", ait_member_text(traffic, "trace"),
                  ait_member_number(traffic, "requests"), "candidate", "p50", "p99", "wait p99", "good answers/s");
  for (size_t i = 0; i < ait_member_count(traffic, "candidates"); ++i) {
    struct json_object *c = ait_member_at(traffic, "candidates", i);
    ait_text_printf(t, "  %-30.30s %9s %9s %9s %14s\n", ait_member_text(c, "candidate"), seconds_text(ait_member_number(c, "p50_s"), a),
                    seconds_text(ait_member_number(c, "p99_s"), b), seconds_text(ait_member_number(c, "wait_p99_s"), w),
                    rate_text(ait_member_number(c, "goodput_per_s"), rate));
  }
  ait_text_printf(t, "\n");
}

static void front_rows(ait_text *t, struct json_object *report) {
  char median[16], memory[16], load[16], size[16];
  ait_text_printf(t, "beaten in nothing by another (%zu of %zu valid):\n  %-32s %9s %9s %9s %9s\n", on_front(report),
                  ait_member_count(report, "pareto"), "candidate", "median", "memory", "load", "plan");
  for (size_t i = 0; i < ait_member_count(report, "pareto"); ++i) {
    struct json_object *c = ait_member_at(report, "pareto", i);
    if (!ait_member_true(c, "front")) continue;
    ait_text_printf(t, "  %-32.32s %9s %9s %9s %9s\n", ait_member_text(c, "candidate"),
                    seconds_text(ait_member_number(c, "median_s"), median), bytes_text(ait_member_number(c, "memory_bytes"), memory),
                    seconds_text(ait_member_number(c, "load_s"), load), bytes_text(ait_member_number(c, "blob_bytes"), size));
  }
  ait_text_printf(t, "\n");
}

void ait_report_goal_text(ait_text *t, struct json_object *report) {
  struct json_object *objective = objective_of(report), *batch = ait_member_get(objective, "batch"),
                     *traffic = ait_member_get(objective, "traffic");
  if (batch) batch_rows(t, batch, ait_member_text(report, "winner"));
  if (traffic) traffic_rows(t, traffic);
  if (ait_member_count(report, "pareto") > 1) front_rows(t, report);
}

const char *ait_report_unmet(struct json_object *report) { return ait_member_text(objective_of(report), "unmet"); }
double ait_report_contest_batch(struct json_object *report) {
  return ait_member_number(ait_member_get(objective_of(report), "batch"), "contest_batch");
}

/* ---- HTML ------------------------------------------------------------------------------------------------------------------------*/
static void batch_table(const ait_page *p, struct json_object *batch) {
  struct json_object *c = of_candidate(batch, ait_member_text(p->report, "winner"));
  char rate[32];
  double most = 0;
  if (!c) return;
  for (size_t i = 0; i < ait_member_count(c, "sizes"); ++i)
    most = fmax(most, ait_member_number(ait_member_at(c, "sizes", i), "rows_per_s"));
  ait_text_printf(p->t, "<section>\n<h2>Throughput by batch size</h2>\n<p class=\"note\">The winner at each size of <code>");
  ait_html_text(p->t, ait_member_text(batch, "symbol"));
  ait_text_printf(p->t, "</code> that was tried. No larger one: ");
  ait_html_text(p->t, ait_member_text(c, "stopped"));
  ait_text_printf(
      p->t,
      ".</p>\n<div class=\"wrap\"><table>\n<thead><tr><th scope=\"col\" class=\"n\">Batch</th><th scope=\"col\">Rows a second</th>"
      "<th scope=\"col\" class=\"n\">Call</th><th scope=\"col\" class=\"n wide\">p%g</th>"
      "<th scope=\"col\" class=\"n wide\">Memory</th></tr></thead>\n<tbody>\n",
      100 * ait_member_number(batch, "quantile"));
  for (size_t i = 0; i < ait_member_count(c, "sizes"); ++i) {
    struct json_object *s = ait_member_at(c, "sizes", i);
    double rows = ait_member_number(s, "rows_per_s");
    bool best = ait_member_number(s, "batch") == ait_member_number(c, "best");
    ait_text_printf(p->t, "<tr class=\"%s\"><th scope=\"row\" class=\"n\">%.0f</th>", best ? "won" : "", ait_member_number(s, "batch"));
    ait_text_printf(p->t, "<td><div class=\"bar%s\"><span><i style=\"--w:%.1f%%\"></i></span><b>%s</b></div></td>", best ? " a" : " other",
                    most > 0 ? 100 * rows / most : 0, rate_text(rows, rate));
    ait_text_printf(p->t, "<td class=\"n\">%s</td><td class=\"n wide\">%s</td><td class=\"n wide\">%s</td></tr>\n",
                    ait_unit_seconds(ait_member_number(s, "median_s")).text, ait_unit_seconds(ait_member_number(s, "quantile_s")).text,
                    ait_unit_bytes(ait_member_number(s, "bytes")).text);
  }
  ait_text_printf(p->t, "</tbody></table></div>\n</section>\n");
}

static void traffic_table(const ait_page *p, struct json_object *traffic) {
  char rate[32];
  ait_text_printf(p->t, "<section>\n<h2>Recorded traffic</h2>\n<p class=\"note\">Requests of ");
  ait_html_name(p->t, ait_member_text(traffic, "trace"));
  ait_text_printf(
      p->t, ", one after the other as they came; latency counts the time in the queue.</p>\n<div class=\"wrap\"><table>\n"
            "<thead><tr><th scope=\"col\">Candidate</th><th scope=\"col\" class=\"n\">p50</th><th scope=\"col\" class=\"n\">p99</th>"
            "<th scope=\"col\" class=\"n wide\">Wait p99</th><th scope=\"col\" class=\"n wide\">Good answers a second</th></tr></thead>\n"
            "<tbody>\n");
  for (size_t i = 0; i < ait_member_count(traffic, "candidates"); ++i) {
    struct json_object *c = ait_member_at(traffic, "candidates", i);
    bool won = !strcmp(ait_member_text(c, "candidate"), ait_member_text(p->report, "winner"));
    ait_text_printf(p->t, "<tr class=\"%s\"><th scope=\"row\">", won ? "won" : "");
    ait_html_name(p->t, ait_member_text(c, "candidate"));
    ait_text_printf(p->t,
                    "</th><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n wide\">%s</td><td class=\"n wide\">%s</td></tr>\n",
                    ait_unit_seconds(ait_member_number(c, "p50_s")).text, ait_unit_seconds(ait_member_number(c, "p99_s")).text,
                    ait_unit_seconds(ait_member_number(c, "wait_p99_s")).text, rate_text(ait_member_number(c, "goodput_per_s"), rate));
  }
  ait_text_printf(p->t, "</tbody></table></div>\n</section>\n");
}

static void front_row(const ait_page *p, struct json_object *c) {
  char rate[32];
  bool won = !strcmp(ait_member_text(c, "candidate"), ait_member_text(p->report, "winner"));
  ait_text_printf(p->t, "<tr class=\"%s\"><th scope=\"row\">", won ? "won" : "");
  ait_html_name(p->t, ait_member_text(c, "candidate"));
  if (ait_member_true(c, "front")) ait_text_printf(p->t, " <span class=\"pill good\">front</span>");
  ait_text_printf(p->t, "</th><td class=\"n\">%s</td><td class=\"n wide\">%s</td><td class=\"n\">%s</td>",
                  ait_unit_seconds(ait_member_number(c, "median_s")).text, rate_text(ait_member_number(c, "rows_per_s"), rate),
                  ait_unit_bytes(ait_member_number(c, "memory_bytes")).text);
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td><td class=\"n wide\">%s</td><td class=\"n wide\">%s</td><td class=\"n wide\">",
                  ait_unit_seconds(ait_member_number(c, "load_s")).text, ait_unit_bytes(ait_member_number(c, "blob_bytes")).text,
                  ait_unit_percent(ait_member_number(c, "error_over_tolerance")).text);
  if (ait_member_get(c, "joules")) ait_text_printf(p->t, "%.3g\u00a0J</td></tr>\n", ait_member_number(c, "joules"));
  else ait_text_printf(p->t, "–</td></tr>\n");
}

static void front_table(const ait_page *p) {
  if (ait_member_count(p->report, "pareto") < 2) return;
  ait_text_printf(
      p->t, "<section>\n<h2>Trade-offs</h2>\n<p class=\"note\">On the front: no other valid candidate is as good in everything and better "
            "in something. Energy: ");
  ait_html_text(p->t, ait_member_text(objective_of(p->report), "energy"));
  ait_text_printf(p->t,
                  ".</p>\n<div class=\"wrap\"><table>\n<thead><tr><th scope=\"col\">Candidate</th><th scope=\"col\" class=\"n\">Median</th>"
                  "<th scope=\"col\" class=\"n wide\">Rows a second</th><th scope=\"col\" class=\"n\">Memory</th>"
                  "<th scope=\"col\" class=\"n wide\">Load</th><th scope=\"col\" class=\"n wide\">Plan</th>"
                  "<th scope=\"col\" class=\"n wide\">Error</th><th scope=\"col\" class=\"n wide\">Energy</th></tr></thead>\n<tbody>\n");
  for (size_t i = 0; i < ait_member_count(p->report, "pareto"); ++i) front_row(p, ait_member_at(p->report, "pareto", i));
  ait_text_printf(p->t, "</tbody></table></div>\n</section>\n");
}

void ait_page_goal(const ait_page *p) {
  struct json_object *objective = objective_of(p->report);
  if (ait_member_get(objective, "batch")) batch_table(p, ait_member_get(objective, "batch"));
  if (ait_member_get(objective, "traffic")) traffic_table(p, ait_member_get(objective, "traffic"));
  front_table(p);
}
