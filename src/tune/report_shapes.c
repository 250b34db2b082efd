/* The report page's section on sizes: fixed and dynamic dimensions, what was measured, and which sizes run on which plan. */
#include "tune/report_page.h"
#include <stdio.h>
#include <string.h>

static void dimension_row(const ait_page *p, struct json_object *d) {
  bool fixed = ait_member_true(d, "fixed");
  ait_text_printf(p->t, "<tr><th scope=\"row\">");
  ait_html_name(p->t, ait_member_text(d, "input"));
  ait_text_printf(p->t, " %s</th><td>", ait_member_text(d, "dimension"));
  ait_html_name(p->t, ait_member_text(d, "size"));
  ait_text_printf(p->t, "</td><td>");
  if (fixed) ait_text_printf(p->t, "fixed");
  else if (ait_member_get(d, "max")) ait_text_printf(p->t, "%s to %s", ait_member_text(d, "min"), ait_member_text(d, "max"));
  else ait_text_printf(p->t, "%s and more", ait_member_text(d, "min"));
  ait_text_printf(p->t, "</td><td>");
  for (size_t i = 0; i < ait_member_count(d, "seen"); ++i)
    ait_text_printf(p->t, "%s%s", i ? ", " : "", json_object_get_string(ait_member_at(d, "seen", i)));
  ait_text_printf(p->t, "</td><td class=\"wide\">");
  ait_html_text(p->t, ait_member_text(d, "why"));
  ait_text_printf(p->t, "</td></tr>\n");
}

/* Of a point the one who won, and the plan for all sizes, which is the first member. */
static void point_row(const ait_page *p, struct json_object *point) {
  struct json_object *general = ait_member_at(point, "members", 0), *won = general;
  for (size_t i = 0; i < ait_member_count(point, "members"); ++i) {
    struct json_object *m = ait_member_at(point, "members", i);
    if (!strcmp(ait_member_text(m, "name"), ait_member_text(point, "winner"))) won = m;
  }
  double a = ait_member_number(general, "median_s"), b = ait_member_number(won, "median_s");
  ait_text_printf(p->t, "<tr><th scope=\"row\">");
  ait_html_name(p->t, ait_member_text(point, "sizes"));
  ait_text_printf(p->t, "</th><td>");
  ait_html_name(p->t, ait_member_text(won, "name"));
  ait_text_printf(p->t, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n", ait_unit_seconds(b).text,
                  ait_unit_seconds(a).text, b > 0 ? ait_unit_times(a / b).text : "–");
}

static void buckets(const ait_page *p, struct json_object *s) {
  ait_text_printf(p->t, "<h3>Which sizes run on which plan</h3>\n<div class=\"wrap\"><table>\n<thead><tr><th scope=\"col\">Sizes</th>"
                        "<th scope=\"col\">Plan</th><th scope=\"col\"></th></tr></thead>\n<tbody>\n");
  for (size_t i = 0; i < ait_member_count(s, "buckets"); ++i) {
    struct json_object *b = ait_member_at(s, "buckets", i);
    ait_text_printf(p->t, "<tr><th scope=\"row\">");
    ait_html_name(p->t, ait_member_text(b, "sizes"));
    ait_text_printf(p->t, "</th><td>");
    ait_html_name(p->t, ait_member_text(b, "winner"));
    ait_text_printf(p->t, "</td><td>%s</td></tr>\n", ait_member_true(b, "own_plan") ? "of its own" : "the plan for all sizes");
  }
  ait_text_printf(p->t, "<tr><th scope=\"row\">all others</th><td>");
  ait_html_name(p->t, ait_member_text(p->report, "winner"));
  ait_text_printf(p->t, "</td><td>not measured there; counted by every session</td></tr>\n</tbody></table></div>\n");
}

void ait_page_shapes(const ait_page *p) {
  struct json_object *s = ait_member_get(p->report, "shapes");
  if (!ait_member_count(s, "dimensions")) return;
  ait_text_printf(
      p->t, "<section>\n<h2>Sizes</h2>\n<div class=\"wrap\"><table>\n<thead><tr><th scope=\"col\">Dimension</th><th scope=\"col\">Size"
            "</th><th scope=\"col\">Range</th><th scope=\"col\">Samples</th><th scope=\"col\" class=\"wide\">Why</th></tr></thead>\n"
            "<tbody>\n");
  for (size_t i = 0; i < ait_member_count(s, "dimensions"); ++i) dimension_row(p, ait_member_at(s, "dimensions", i));
  ait_text_printf(p->t, "</tbody></table></div>\n");
  if (ait_member_true(s, "measured")) {
    ait_text_printf(p->t,
                    "<h3>Fastest at each size</h3>\n<div class=\"wrap\"><table>\n<thead><tr><th scope=\"col\">Size</th><th scope=\"col\">"
                    "Candidate</th><th scope=\"col\" class=\"n\">Time</th><th scope=\"col\" class=\"n\">Plan for all</th>"
                    "<th scope=\"col\" class=\"n\">Gain</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < ait_member_count(s, "points"); ++i) point_row(p, ait_member_at(s, "points", i));
    ait_text_printf(p->t, "</tbody></table></div>\n");
  } else {
    ait_text_printf(p->t, "<p class=\"note\">Sizes were not compared: ");
    ait_html_text(p->t, ait_member_text(s, "why_not"));
    ait_text_printf(p->t, ".</p>\n");
  }
  if (ait_member_count(s, "buckets")) buckets(p, s);
  ait_text_printf(p->t, "</section>\n");
}
