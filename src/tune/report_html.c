/* The report as one HTML page: no script, nothing from elsewhere. */
#include "tune/cost.h"
#include "tune/put_json.h"
#include "tune/report_goal.h"
#include "tune/tune.h"
#include <math.h>

extern const char ait_report_css[]; /* report_page.css */

double ait_page_seconds(struct json_object *profile, const char *module) {
  double sum = *module ? 0 : ait_member_number(profile, "rest_s");
  for (size_t i = 0; i < ait_member_count(profile, "steps"); ++i) {
    struct json_object *s = ait_member_at(profile, "steps", i);
    if (ait_module_inside(ait_member_text(s, "module"), module)) sum += ait_member_number(s, "seconds");
  }
  return sum;
}

double ait_page_roof(struct json_object *roofline, double intensity) {
  double peak = ait_member_number(roofline, "flops_per_s"), slope = ait_member_number(roofline, "cache_bytes_per_s");
  double memory = ait_member_number(roofline, "memory_bytes_per_s");
  if (memory > slope) slope = memory;
  return peak < slope * intensity ? peak : slope * intensity;
}

static void head(const ait_page *p, const char *model) {
  ait_text_printf(p->t,
                  "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
                  "<link rel=\"icon\" href=\"data:,\">\n<title>");
  ait_html_text(p->t, model);
  ait_text_printf(p->t, ": tuning report</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<h1><small>ait tuning report</small>",
                  ait_report_css);
  ait_html_text(p->t, model);
  struct json_object *e = ait_member_get(p->report, "environment");
  ait_text_printf(p->t, "</h1>\n<p>");
  ait_html_text(p->t, ait_member_text(e, "cpu"));
  ait_text_printf(p->t, ", %s core%s · strategy ", ait_member_text(e, "cores"), ait_member_number(e, "cores") == 1 ? "" : "s");
  ait_html_text(p->t, ait_member_text(p->report, "strategy"));
  ait_text_printf(p->t, "</p>\n</header>\n<main>\n");
}

/* The member of the contest, else the candidate: either has median_s. */
static struct json_object *timed(const ait_page *p, const char *name) {
  struct json_object *contest = ait_member_get(p->report, "contest");
  for (size_t i = 0; i < ait_member_count(contest, "members"); ++i)
    if (!strcmp(ait_member_text(ait_member_at(contest, "members", i), "name"), name)) return ait_member_at(contest, "members", i);
  for (size_t i = 0; i < ait_member_count(p->report, "candidates"); ++i)
    if (!strcmp(ait_member_text(ait_member_at(p->report, "candidates", i), "name"), name)) return ait_member_at(p->report, "candidates", i);
  return NULL;
}

static struct json_object *candidate(const ait_page *p, const char *name) {
  for (size_t i = 0; i < ait_member_count(p->report, "candidates"); ++i)
    if (!strcmp(ait_member_text(ait_member_at(p->report, "candidates", i), "name"), name)) return ait_member_at(p->report, "candidates", i);
  return NULL;
}

static void duel_row(const ait_page *p, const char *what, const char *name, double seconds, double longest, bool after) {
  ait_text_printf(p->t, "<div><div class=\"top\"><span>%s ", what);
  ait_html_name(p->t, name);
  ait_text_printf(p->t, "</span><b>%s</b></div><div class=\"track\"><i%s style=\"--w:%.1f%%\"></i></div></div>\n",
                  ait_unit_seconds(seconds).text, after ? " class=\"a\"" : "", longest > 0 ? 100 * seconds / longest : 0);
}

static void tiles(const ait_page *p, struct json_object *winner) {
  size_t valid = 0, count = ait_member_count(p->report, "candidates"), tried = 0;
  for (size_t i = 0; i < count; ++i) {
    const char *outcome = ait_member_text(ait_member_at(p->report, "candidates", i), "outcome");
    valid += !strcmp(outcome, "valid");
    tried += strcmp(outcome, "skipped") && strcmp(outcome, "not tried");
  }
  ait_text_printf(p->t, "<dl class=\"tiles\">\n<div><dt>Candidates</dt><dd>%zu tried<small>%zu correct, %zu skipped</small></dd></div>\n",
                  tried, valid, count - tried);
  if (winner)
    ait_text_printf(p->t, "<div><dt>Worst error</dt><dd>%s<small>of the tolerance</small></dd></div>\n",
                    ait_unit_percent(ait_member_number(winner, "error_over_tolerance")).text);
  if (winner)
    ait_text_printf(p->t, "<div><dt>Working memory</dt><dd>%s<small>intermediate results</small></dd></div>\n",
                    ait_unit_bytes(ait_member_number(winner, "plan_bytes")).text);
  if (ait_member_get(p->report, "weight_bytes"))
    ait_text_printf(p->t, "<div><dt>Weights</dt><dd>%s<small>plan adds %s</small></dd></div>\n",
                    ait_unit_bytes(ait_member_number(p->report, "weight_bytes")).text,
                    ait_unit_bytes(ait_member_number(winner, "blob_bytes")).text);
  ait_text_printf(p->t, "</dl>\n");
}

static void verdict(const ait_page *p) {
  const char *winner = ait_member_text(p->report, "winner"), *baseline = ait_member_text(p->report, "baseline");
  double speedup = ait_member_number(p->report, "speedup");
  double after = ait_member_number(timed(p, winner), "median_s"), before = ait_member_number(timed(p, baseline), "median_s");
  ait_text_printf(p->t, "<section class=\"hero\" aria-label=\"Result\">\n");
  if (!*winner) {
    ait_text_printf(p->t, "<div><p class=\"big\">–</p><p>No candidate is correct: the table below says why, for each.</p></div>\n");
  } else if (!strcmp(winner, baseline) || speedup <= 0) {
    ait_text_printf(p->t, "<div><div class=\"big\">%s</div><p>%s</p></div>\n", speedup > 0 ? "1×" : ait_unit_seconds(after).text,
                    speedup > 0 ? "The baseline stays: nothing was faster beyond noise." : "a call; there was no baseline to compare with");
  } else {
    ait_text_printf(p->t,
                    "<div><div class=\"big\">%s</div><p>as fast as the baseline<br><span class=\"type\">95&nbsp;%%: %s to %s, %s rounds",
                    ait_unit_times(speedup).text, ait_unit_times(ait_member_number(p->report, "speedup_low")).text,
                    ait_unit_times(ait_member_number(p->report, "speedup_high")).text,
                    ait_member_get(p->report, "speedup_rounds") ? ait_member_text(p->report, "speedup_rounds")
                                                                : ait_member_text(ait_member_get(p->report, "contest"), "rounds"));
    ait_text_printf(p->t, "</span></p></div>\n");
  }
  ait_text_printf(p->t, "<div class=\"duel\">\n");
  double longest = before > after ? before : after;
  if (*baseline && strcmp(winner, baseline)) duel_row(p, "Baseline", baseline, before, longest, false);
  const char *single = ait_member_text(p->report, "best_single");
  double alone = ait_member_number(timed(p, single), "median_s");
  if (alone > 0 && strcmp(single, winner)) duel_row(p, "Best of one backend", single, alone, longest > alone ? longest : alone, false);
  if (*winner) duel_row(p, "Winner", winner, after, longest, true);
  ait_text_printf(p->t, "</div>\n");
  tiles(p, candidate(p, winner));
  ait_text_printf(p->t, "</section>\n");
}

static void fact(const ait_page *p, const char *what, const char *value) {
  if (!*value) return;
  ait_text_printf(p->t, "<dt>%s</dt><dd>", what);
  for (const char *c = value; *c; ++c) {
    const char one[2] = {*c, 0};
    ait_html_text(p->t, one);
    if (*c == ',') ait_text_printf(p->t, " ");
  }
  ait_text_printf(p->t, "</dd>\n");
}

/* How far the measurements can be trusted. */
static void trust(const ait_page *p) {
  struct json_object *noise = ait_member_get(p->report, "noise"), *machine = ait_member_get(p->report, "machine");
  if (ait_member_true(noise, "measured")) {
    ait_text_printf(p->t, "<dt>Noise</dt><dd>two equal plans differ here by up to %s",
                    ait_unit_percent(ait_member_number(noise, "floor")).text);
    ait_text_printf(p->t, " (the baseline against itself, %s rounds)</dd>\n", ait_member_text(noise, "rounds"));
  }
  for (size_t i = 0; i < ait_member_count(machine, "warnings"); ++i) {
    ait_text_printf(p->t, "<dt>Warning</dt><dd>while measuring, ");
    ait_html_text(p->t, json_object_get_string(ait_member_at(machine, "warnings", i)));
    ait_text_printf(p->t, "</dd>\n");
  }
}

static void environment(const ait_page *p) {
  struct json_object *e = ait_member_get(p->report, "environment"), *r = ait_member_get(p->report, "roofline");
  ait_text_printf(p->t,
                  "<section>\n<h2>Environment</h2>\n<p class=\"note\">What these numbers are worth: on another machine measure again.</p>\n"
                  "<dl class=\"facts\">\n");
  fact(p, "Processor", ait_member_text(e, "cpu"));
  fact(p, "Cores", ait_member_text(e, "cores"));
  fact(p, "Instruction sets", ait_member_text(e, "features"));
  fact(p, "Kernel", ait_member_text(e, "kernel"));
  fact(p, "Frequency governor", ait_member_text(e, "governor"));
  trust(p);
  fact(p, "Model from", ait_member_text(p->report, "producer"));
  fact(p, "ait", ait_member_text(e, "ait"));
  if (r) {
    ait_text_printf(p->t, "<dt>Measured peak</dt><dd>%s", ait_unit_rate(ait_member_number(r, "flops_per_s"), "FLOP").text);
    ait_text_printf(p->t, " (float32, %s thread%s)</dd>\n", ait_member_text(r, "threads"), ait_member_number(r, "threads") == 1 ? "" : "s");
    ait_text_printf(p->t, "<dt>Measured bandwidth</dt><dd>%s from caches, ",
                    ait_unit_rate(ait_member_number(r, "cache_bytes_per_s"), "B").text);
    ait_text_printf(p->t, "%s from memory</dd>\n", ait_unit_rate(ait_member_number(r, "memory_bytes_per_s"), "B").text);
  }
  ait_text_printf(p->t, "</dl>\n</section>\n");
}

/* Of the candidate, when it has steps. */
static struct json_object *profile_of(struct json_object *report, const char *candidate_name) {
  for (size_t i = 0; i < ait_member_count(report, "profiles"); ++i) {
    struct json_object *p = ait_member_at(report, "profiles", i);
    if (!strcmp(ait_member_text(p, "candidate"), candidate_name) && ait_member_count(p, "steps")) return p;
  }
  return NULL;
}

/* Exported programs are mostly called "model": the class of the whole model says more. */
static const char *title_of(struct json_object *report) {
  const char *name = ait_member_text(report, "model"), *type = ait_member_text(ait_member_at(report, "modules", 0), "type");
  const char *dot = strrchr(type, '.');
  if (*name && strcmp(name, "model")) return name;
  return *type ? (dot ? dot + 1 : type) : "model";
}

ait_status ait_report_html(const char *report, char **out) {
  *out = NULL;
  struct json_object *o = json_tokener_parse(report);
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  if (!ait_member_get(o, "candidates")) {
    json_object_put(o);
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "this is no tuning report");
  }
  ait_page p = {.t = &t, .report = o};
  const char *winner = ait_member_text(o, "winner"), *baseline = ait_member_text(o, "baseline");
  if (*winner) p.after = profile_of(o, winner);
  if (*baseline && strcmp(winner, baseline)) p.before = profile_of(o, baseline);
  head(&p, title_of(o));
  verdict(&p);
  ait_page_modules(&p);
  ait_page_steps(&p);
  ait_page_candidates(&p);
  ait_page_goal(&p);
  ait_page_latency(&p);
  ait_page_shapes(&p);
  ait_page_roofline(&p);
  ait_page_memory(&p);
  ait_page_accuracy(&p);
  environment(&p);
  ait_text_printf(&t, "</main>\n<footer>Made by ait ");
  ait_html_text(&t, ait_member_text(ait_member_get(o, "environment"), "ait"));
  ait_text_printf(&t, " from the report that the file carries. The page loads nothing and runs no script.</footer>\n</body>\n</html>\n");
  json_object_put(o);
  return ait_put_finish(&t, out);
}
