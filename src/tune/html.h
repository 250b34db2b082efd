/* Writing HTML: everything that comes from a model or a report goes through ait_html_text. */
#ifndef AIT_SRC_TUNE_HTML_H
#define AIT_SRC_TUNE_HTML_H

#include "base/base.h"
#include <json-c/json.h>

void ait_html_text(ait_text *t, const char *text); /* escaped for element contents and quoted attributes */
void ait_html_name(ait_text *t, const char *text); /* the same as <code>, breakable at dots, underscores and spaces */

/* Numbers for people. */
typedef struct ait_unit_text {
  char text[32];
} ait_unit_text;
ait_unit_text ait_unit_seconds(double s);                         /* "1.25 ms"; "–" for 0 */
ait_unit_text ait_unit_bytes(double b);                           /* "4.1 MB" */
ait_unit_text ait_unit_count(double n);                           /* "25.6 M" */
ait_unit_text ait_unit_rate(double per_second, const char *unit); /* "53.5 GFLOP/s" */
ait_unit_text ait_unit_percent(double share);                     /* 0.43: "43 %" */
ait_unit_text ait_unit_times(double ratio);                       /* "8.92×" */

/* Members of JSON objects; missing ones read as NULL, "", 0, false, 0 elements. */
struct json_object *ait_member_get(struct json_object *o, const char *key);
const char *ait_member_text(struct json_object *o, const char *key);
double ait_member_number(struct json_object *o, const char *key);
bool ait_member_true(struct json_object *o, const char *key);
size_t ait_member_count(struct json_object *o, const char *key);
struct json_object *ait_member_at(struct json_object *o, const char *key, size_t i);

#endif
