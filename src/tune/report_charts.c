/* Charts of the report's page, as inline SVG that stretches; numbers stand in HTML beside it, so that they are legible at any width. */
#include "tune/report_page.h"
#include <math.h>
#include <stdlib.h>

/* ---- latency ---------------------------------------------------------------------------------------------------------------------*/
enum { BINS = 64 };

typedef struct samples {
  double *x;
  size_t count;
} samples;

static samples samples_of(struct json_object *member) {
  samples s = {.count = ait_member_count(member, "seconds")};
  s.x = s.count ? calloc(s.count, sizeof *s.x) : NULL;
  if (!s.x) s.count = 0;
  for (size_t i = 0; i < s.count; ++i) s.x[i] = json_object_get_double(ait_member_at(member, "seconds", i));
  return s;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* On a logarithmic axis from low to high: 0 to 100; outside it the ends. */
static double place(double v, double low, double high) {
  double at = v > 0 && high > low ? 100 * log(v / low) / log(high / low) : 0;
  return at < 0 ? 0 : at > 100 ? 100 : at;
}

static void lane(const ait_page *p, struct json_object *member, const samples *s, double low, double high) {
  const char *name = ait_member_text(member, "name");
  bool won = !strcmp(name, ait_member_text(p->report, "winner"));
  bool base = !won && !strcmp(name, ait_member_text(p->report, "baseline"));
  double bins[BINS] = {0}, most = 1;
  for (size_t i = 0; i < s->count; ++i) {
    int b = (int)(place(s->x[i], low, high) / 100 * BINS);
    b = b < BINS ? b : BINS - 1;
    bins[b] += 1;
    if (bins[b] > most) most = bins[b];
  }
  ait_text_printf(p->t, "<div class=\"lane\"><div class=\"top\"><div>");
  ait_html_name(p->t, name);
  if (won) ait_text_printf(p->t, " <span class=\"pill good\">winner</span>");
  else if (base) ait_text_printf(p->t, " <span class=\"pill\">baseline</span>");
  else if (ait_member_true(member, "tie")) ait_text_printf(p->t, " <span class=\"pill\">within noise</span>");
  ait_text_printf(p->t, "</div><span>median <b>%s</b>", ait_unit_seconds(ait_member_number(member, "median_s")).text);
  ait_text_printf(p->t, " · p95 %s", ait_unit_seconds(ait_member_number(member, "p95_s")).text);
  ait_text_printf(p->t, " · p99 %s</span></div>\n", ait_unit_seconds(ait_member_number(member, "p99_s")).text);
  ait_text_printf(
      p->t, "<svg class=\"strip\" viewBox=\"0 0 100 40\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"%s\" d=\"M0 40",
      base ? "fill-b" : "fill-a");
  for (int b = 0; b < BINS; ++b) {
    double y = 40 - 38 * bins[b] / most;
    ait_text_printf(p->t, "L%.2f %.2fL%.2f %.2f", 100.0 * b / BINS, y, 100.0 * (b + 1) / BINS, y);
  }
  double from = place(ait_member_number(member, "low_s"), low, high), to = place(ait_member_number(member, "high_s"), low, high);
  double mid = place(ait_member_number(member, "median_s"), low, high);
  ait_text_printf(
      p->t,
      "L100 40Z\"/><rect class=\"ci\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"40\"/><line class=\"mid\" x1=\"%.2f\" x2=\"%.2f\" "
      "y1=\"0\" y2=\"40\"/></svg></div>\n",
      from, to - from > 0.2 ? to - from : 0.2, mid, mid);
}

void ait_page_latency(const ait_page *p) {
  struct json_object *contest = ait_member_get(p->report, "contest");
  size_t count = ait_member_count(contest, "members");
  ait_text_printf(p->t, "<section>\n<h2>Latency in the contest</h2>\n");
  samples *all = count ? calloc(count, sizeof *all) : NULL;
  double low = INFINITY, high = 0;
  for (size_t k = 0; all && k < count; ++k) {
    all[k] = samples_of(ait_member_at(contest, "members", k));
    if (!all[k].count) continue;
    qsort(all[k].x, all[k].count, sizeof *all[k].x, ascending);
    double least = all[k].x[0], most = all[k].x[(all[k].count - 1) * 98 / 100];
    if (least > 0 && least < low) low = least;
    if (most > high) high = most;
  }
  if (high <= 0) {
    ait_text_printf(p->t, "<p class=\"note\">There was no contest.</p>\n</section>\n");
    free(all);
    return;
  }
  low *= 0.98;
  high *= 1.02;
  ait_text_printf(
      p->t,
      "<p class=\"note\">Every one of %s rounds: the finalists one after the other in one process, so that a busy machine hurts "
      "all alike; %s more were dropped as disturbed. Line: median; grey: its 95&nbsp;%% interval. Logarithmic; what is slower than "
      "the axis stands at its end.</p>\n",
      ait_member_text(contest, "rounds"), ait_member_text(contest, "dropped"));
  for (size_t k = 0; all && k < count; ++k) {
    lane(p, ait_member_at(contest, "members", k), &all[k], low, high);
    free(all[k].x);
  }
  ait_text_printf(p->t, "<div class=\"axis\"><span>%s</span>", ait_unit_seconds(low).text);
  ait_text_printf(p->t, "<span>%s</span>", ait_unit_seconds(sqrt(low * high)).text);
  ait_text_printf(p->t, "<span>%s</span></div>\n</section>\n", ait_unit_seconds(high).text);
  free(all);
}

/* ---- roofline --------------------------------------------------------------------------------------------------------------------*/
typedef struct frame { /* powers of ten at the edges */
  int x0, x1, y0, y1;
} frame;
enum { LEFT = 66, RIGHT = 412, TOP = 14, BOTTOM = 250 };

static double at_x(const frame *f, double v) { return LEFT + (RIGHT - LEFT) * (log10(v) - f->x0) / (f->x1 - f->x0); }
static double at_y(const frame *f, double v) { return BOTTOM - (BOTTOM - TOP) * (log10(v) - f->y0) / (f->y1 - f->y0); }

/* false: nothing to draw. */
static bool point_of(struct json_object *step, double *intensity, double *speed) {
  double flops = ait_member_number(step, "flops"), bytes = ait_member_number(step, "bytes"), seconds = ait_member_number(step, "seconds");
  if (flops <= 0 || bytes <= 0 || seconds <= 0) return false;
  *intensity = flops / bytes;
  *speed = flops / seconds;
  return true;
}

static void widen(frame *f, double x, double y) {
  if (floor(log10(x)) < f->x0) f->x0 = (int)floor(log10(x));
  if (ceil(log10(x)) > f->x1) f->x1 = (int)ceil(log10(x));
  if (floor(log10(y)) < f->y0) f->y0 = (int)floor(log10(y));
  if (ceil(log10(y)) > f->y1) f->y1 = (int)ceil(log10(y));
}

static void frame_of(struct json_object *profile, frame *f) {
  double x, y;
  for (size_t i = 0; i < ait_member_count(profile, "steps"); ++i)
    if (point_of(ait_member_at(profile, "steps", i), &x, &y)) widen(f, x, y);
}

static void points(const ait_page *p, struct json_object *profile, const frame *f, const char *class) {
  double whole = ait_page_seconds(profile, ""), x, y;
  for (size_t i = 0; i < ait_member_count(profile, "steps"); ++i) {
    struct json_object *s = ait_member_at(profile, "steps", i);
    if (!point_of(s, &x, &y)) continue;
    double share = whole > 0 ? ait_member_number(s, "seconds") / whole : 0;
    ait_text_printf(p->t, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>", class, at_x(f, x), at_y(f, y),
                    2.2 + 14 * sqrt(share));
    ait_html_text(p->t, ait_member_text(s, "op"));
    ait_text_printf(p->t, " in ");
    ait_html_text(p->t, *ait_member_text(s, "module") ? ait_member_text(s, "module") : "(whole model)");
    ait_text_printf(p->t, ": %s, ", ait_unit_seconds(ait_member_number(s, "seconds")).text);
    ait_text_printf(p->t, "%s at %.3g FLOP per byte</title></circle>\n", ait_unit_rate(y, "FLOP").text, x);
  }
}

static void grid(const ait_page *p, const frame *f) {
  for (int e = f->x0; e <= f->x1; ++e) {
    double x = at_x(f, pow(10, e));
    ait_text_printf(
        p->t,
        "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x,
        x, TOP, BOTTOM, x, BOTTOM + 16, pow(10, e));
  }
  for (int e = f->y0; e <= f->y1; ++e) {
    double y = at_y(f, pow(10, e));
    ait_text_printf(
        p->t, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
        LEFT, RIGHT, y, y, LEFT - 6, y + 4, ait_unit_count(pow(10, e)).text);
  }
  ait_text_printf(p->t,
                  "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">FLOP per byte</text><text transform=\"translate(14 %d) rotate(-90)\" "
                  "text-anchor=\"middle\">FLOP per second</text>\n",
                  (LEFT + RIGHT) / 2, BOTTOM + 33, (TOP + BOTTOM) / 2);
}

/* From the lower left along the slope to the ridge; the flat part is drawn with the first. */
static void slope(const ait_page *p, const frame *f, double peak, double bytes_per_s, const char *class, bool flat) {
  double x = pow(10, f->x0), y = x * bytes_per_s, lowest = pow(10, f->y0);
  if (bytes_per_s <= 0 || peak <= 0) return;
  if (y < lowest) y = lowest, x = lowest / bytes_per_s;
  if (y > peak) y = peak;
  double ridge = peak / bytes_per_s, right = pow(10, f->x1);
  if (ridge < x) ridge = x;
  if (ridge > right) ridge = right;
  double top = ridge * bytes_per_s < peak ? ridge * bytes_per_s : peak;
  ait_text_printf(p->t, "<path class=\"peak %s\" d=\"M%.1f %.1fL%.1f %.1f", class, at_x(f, x), at_y(f, y), at_x(f, ridge), at_y(f, top));
  if (flat) ait_text_printf(p->t, "L%d %.1f", RIGHT, at_y(f, top));
  ait_text_printf(p->t, "\"/>\n");
}

void ait_page_roofline(const ait_page *p) {
  struct json_object *r = ait_member_get(p->report, "roofline");
  ait_text_printf(p->t, "<section>\n<h2>Roofline</h2>\n");
  if (!r || !p->after) {
    ait_text_printf(p->t, "<p class=\"note\">The machine’s roofline, or the steps’ times, are not in this report.</p>\n</section>\n");
    return;
  }
  double peak = ait_member_number(r, "flops_per_s"), cache = ait_member_number(r, "cache_bytes_per_s");
  double memory = ait_member_number(r, "memory_bytes_per_s");
  frame f = {.x0 = 0, .x1 = 2, .y0 = 9, .y1 = 10};
  frame_of(p->after, &f);
  frame_of(p->before, &f);
  if (peak > 0) widen(&f, 1, 1.2 * peak);
  ait_text_printf(
      p->t,
      "<p class=\"note\">Each dot is a step: how much arithmetic it does for each byte that it moves, and how fast it went. Larger: more "
      "of the time. Under the slope it is bound by memory, under the flat part by arithmetic. The roof was measured here with %s "
      "thread%s: the best of three float32 matrix products, and an element-wise operator over %s (caches)",
      ait_member_text(r, "threads"), ait_member_number(r, "threads") == 1 ? "" : "s",
      ait_unit_bytes(ait_member_number(r, "cache_bytes")).text);
  ait_text_printf(p->t, " and %s (memory). Algorithms that save arithmetic, as Winograd’s, can stand above it.</p>\n",
                  ait_unit_bytes(ait_member_number(r, "memory_bytes")).text);
  ait_text_printf(p->t, "<ul class=\"key\">%s<li class=\"a\">winner</li><li class=\"c\">caches, %s</li>",
                  p->before ? "<li>baseline</li>" : "", ait_unit_rate(cache, "B").text);
  ait_text_printf(p->t, "<li class=\"m\">memory, %s</li>", ait_unit_rate(memory, "B").text);
  ait_text_printf(p->t, "<li class=\"m\">peak, %s</li></ul>\n", ait_unit_rate(peak, "FLOP").text);
  ait_text_printf(
      p->t, "<svg class=\"roof\" viewBox=\"0 0 420 290\" role=\"img\" aria-label=\"Roofline: speed of each step over FLOP per byte\">\n");
  grid(p, &f);
  slope(p, &f, peak, cache, "cache", memory <= 0);
  slope(p, &f, peak, memory, "", true);
  if (cache > memory && peak / cache < pow(10, f.x1)) /* the flat part begins where the caches' slope ends */
    ait_text_printf(p->t, "<path class=\"peak\" d=\"M%.1f %.1fL%d %.1f\"/>\n", at_x(&f, fmax(peak / cache, pow(10, f.x0))), at_y(&f, peak),
                    RIGHT, at_y(&f, peak));
  points(p, p->before, &f, "pb");
  points(p, p->after, &f, "pa");
  ait_text_printf(p->t, "</svg>\n</section>\n");
}

/* ---- memory ----------------------------------------------------------------------------------------------------------------------*/
static double most_live(struct json_object *profile) {
  double most = 0;
  for (size_t i = 0; i < ait_member_count(profile, "steps"); ++i)
    most = fmax(most, ait_member_number(ait_member_at(profile, "steps", i), "live_bytes"));
  return most;
}

static void memory_lane(const ait_page *p, struct json_object *profile, double top, bool after) {
  double whole = ait_page_seconds(profile, "") - ait_member_number(profile, "rest_s"), at = 0;
  ait_text_printf(p->t, "<div class=\"lane\"><div class=\"top\"><div>");
  ait_html_name(p->t, ait_member_text(profile, "candidate"));
  ait_text_printf(p->t, "</div><span>at most <b>%s</b></span></div>\n", ait_unit_bytes(most_live(profile)).text);
  ait_text_printf(
      p->t, "<svg class=\"area\" viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"%s\" d=\"M0 100",
      after ? "fill-a" : "fill-b");
  for (size_t i = 0; i < ait_member_count(profile, "steps"); ++i) {
    struct json_object *s = ait_member_at(profile, "steps", i);
    double y = 100 - 96 * ait_member_number(s, "live_bytes") / top, took = ait_member_number(s, "seconds");
    if (took <= 0) continue;
    ait_text_printf(p->t, "L%.2f %.1f", at, y);
    at += whole > 0 ? 100 * took / whole : 0;
    ait_text_printf(p->t, "L%.2f %.1f", at, y);
  }
  ait_text_printf(p->t, "L100 100Z\"/></svg><div class=\"axis\"><span>0</span><span>%s</span></div></div>\n", ait_unit_seconds(whole).text);
}

static void memory_row(const ait_page *p, struct json_object *c, const char *what) {
  if (!c) return;
  ait_text_printf(p->t, "<tr><th scope=\"row\">%s ", what);
  ait_html_name(p->t, ait_member_text(c, "name"));
  ait_text_printf(p->t, "</th><td class=\"n\">%s</td>", ait_unit_bytes(ait_member_number(c, "plan_bytes")).text);
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td>", ait_unit_bytes(ait_member_number(c, "blob_bytes")).text);
  ait_text_printf(p->t, "<td class=\"n wide\">%s</td></tr>\n", ait_unit_seconds(ait_member_number(c, "load_s")).text);
}

void ait_page_memory(const ait_page *p) {
  struct json_object *winner = NULL, *baseline = NULL;
  for (size_t i = 0; i < ait_member_count(p->report, "candidates"); ++i) {
    struct json_object *c = ait_member_at(p->report, "candidates", i);
    const char *name = ait_member_text(c, "name");
    if (*name && !strcmp(name, ait_member_text(p->report, "winner"))) winner = c;
    else if (*name && !strcmp(name, ait_member_text(p->report, "baseline"))) baseline = c;
  }
  double top = fmax(most_live(p->after), most_live(p->before));
  ait_text_printf(p->t, "<section>\n<h2>Memory</h2>\n");
  if (top > 0) {
    ait_text_printf(p->t,
                    "<p class=\"note\">Intermediate results and outputs that are alive during each step of one call, counted from the "
                    "graph. Inputs and "
                    "weights are not in it. Both charts have the same height scale, %s.</p>\n",
                    ait_unit_bytes(top).text);
    if (p->before) memory_lane(p, p->before, top, false);
    memory_lane(p, p->after, top, true);
  }
  ait_text_printf(
      p->t,
      "<div class=\"wrap\"><table>\n<thead><tr><th scope=\"col\">Candidate</th><th scope=\"col\" class=\"n\">Working memory</th>"
      "<th scope=\"col\" class=\"n wide\">Plan in the file</th><th scope=\"col\" class=\"n wide\">Load time</th></tr></thead>\n<tbody>\n");
  memory_row(p, baseline, "Baseline");
  memory_row(p, winner, "Winner");
  ait_text_printf(p->t, "</tbody></table></div>\n</section>\n");
}
