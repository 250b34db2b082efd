#include "tune/html.h"
#include <math.h>
#include <stdio.h>

static void put_escaped(ait_text *t, char c) {
  switch (c) {
    case '&': ait_text_printf(t, "&amp;"); break;
    case '<': ait_text_printf(t, "&lt;"); break;
    case '>': ait_text_printf(t, "&gt;"); break;
    case '"': ait_text_printf(t, "&quot;"); break;
    case '\'': ait_text_printf(t, "&#39;"); break;
    default:
      if ((unsigned char)c < 0x20 && c != '\n' && c != '\t') ait_text_printf(t, "\xef\xbf\xbd"); /* U+FFFD: control characters show */
      else ait_text_append(t, &c, 1);
  }
}

void ait_html_text(ait_text *t, const char *text) {
  for (; text && *text; ++text) put_escaped(t, *text);
}

void ait_html_name(ait_text *t, const char *text) {
  ait_text_printf(t, "<code>");
  for (; text && *text; ++text) {
    put_escaped(t, *text);
    if (strchr("._=,/", *text)) ait_text_printf(t, "<wbr>");
  }
  ait_text_printf(t, "</code>");
}

/* Three digits, without an exponent. */
static void digits(char *out, size_t size, double v) {
  if (fabs(v) >= 99.95) snprintf(out, size, "%.0f", v);
  else if (fabs(v) >= 9.995) snprintf(out, size, "%.1f", v);
  else snprintf(out, size, "%.2f", v);
}

static ait_unit_text scaled(double v, const char *const units[5]) {
  ait_unit_text u;
  char number[24];
  int k = 0;
  if (!isfinite(v)) return snprintf(u.text, sizeof u.text, "–"), u;
  while (fabs(v) >= 999.5 && k < 4) v /= 1000, ++k;
  if (k == 0 && v == floor(v)) snprintf(number, sizeof number, "%.0f", v);
  else digits(number, sizeof number, v);
  snprintf(u.text, sizeof u.text, "%s%s", number, units[k]);
  return u;
}

ait_unit_text ait_unit_seconds(double s) {
  ait_unit_text u;
  char number[24];
  double v = s >= 1 ? s : s >= 1e-3 ? s * 1e3 : s * 1e6;
  if (!(s > 0) || !isfinite(s)) return snprintf(u.text, sizeof u.text, "–"), u;
  digits(number, sizeof number, v);
  snprintf(u.text, sizeof u.text, "%s\u00a0%s", number, s >= 1 ? "s" : s >= 1e-3 ? "ms" : "µs");
  return u;
}

ait_unit_text ait_unit_bytes(double b) {
  static const char *const units[5] = {"\u00a0B", "\u00a0kB", "\u00a0MB", "\u00a0GB", "\u00a0TB"};
  return scaled(b, units);
}

ait_unit_text ait_unit_count(double n) {
  static const char *const units[5] = {"", "\u00a0k", "\u00a0M", "\u00a0G", "\u00a0T"};
  return scaled(n, units);
}

ait_unit_text ait_unit_rate(double per_second, const char *unit) {
  static const char *const units[5] = {"\u00a0", "\u00a0k", "\u00a0M", "\u00a0G", "\u00a0T"};
  ait_unit_text u = scaled(per_second, units);
  size_t n = strlen(u.text);
  snprintf(u.text + n, sizeof u.text - n, "%s/s", unit);
  return u;
}

ait_unit_text ait_unit_percent(double share) {
  ait_unit_text u;
  snprintf(u.text, sizeof u.text, share >= 0.0995 || share == 0 ? "%.0f\u00a0%%" : "%.1f\u00a0%%", 100 * share);
  return u;
}

ait_unit_text ait_unit_times(double ratio) {
  ait_unit_text u;
  char number[24];
  if (!isfinite(ratio)) return snprintf(u.text, sizeof u.text, "–"), u;
  digits(number, sizeof number, ratio);
  snprintf(u.text, sizeof u.text, "%s×", number);
  return u;
}

struct json_object *ait_member_get(struct json_object *o, const char *key) {
  struct json_object *v = NULL;
  return o && json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &v) ? v : NULL;
}
const char *ait_member_text(struct json_object *o, const char *key) {
  struct json_object *v = ait_member_get(o, key);
  return v ? json_object_get_string(v) : "";
}
double ait_member_number(struct json_object *o, const char *key) { return json_object_get_double(ait_member_get(o, key)); }
bool ait_member_true(struct json_object *o, const char *key) { return json_object_get_boolean(ait_member_get(o, key)); }
size_t ait_member_count(struct json_object *o, const char *key) {
  struct json_object *v = ait_member_get(o, key);
  return v && json_object_is_type(v, json_type_array) ? json_object_array_length(v) : 0;
}
struct json_object *ait_member_at(struct json_object *o, const char *key, size_t i) {
  return i < ait_member_count(o, key) ? json_object_array_get_idx(ait_member_get(o, key), i) : NULL;
}
