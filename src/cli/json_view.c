#include "cli/json_view.h"

struct json_object *cli_member_object(struct json_object *o, const char *key) {
  struct json_object *v = NULL;
  return o && json_object_object_get_ex(o, key, &v) ? v : NULL;
}
const char *cli_member(struct json_object *o, const char *key) {
  struct json_object *v = cli_member_object(o, key);
  return v ? json_object_get_string(v) : "";
}
double cli_member_number(struct json_object *o, const char *key) { return json_object_get_double(cli_member_object(o, key)); }
bool cli_member_true(struct json_object *o, const char *key) { return json_object_get_boolean(cli_member_object(o, key)); }
size_t cli_member_count(struct json_object *o, const char *key) {
  struct json_object *v = cli_member_object(o, key);
  return v && json_object_is_type(v, json_type_array) ? json_object_array_length(v) : 0;
}
struct json_object *cli_member_at(struct json_object *o, const char *key, size_t i) {
  return i < cli_member_count(o, key) ? json_object_array_get_idx(cli_member_object(o, key), i) : NULL;
}

struct json_object *cli_document(ait_status status, char *text, int *out_code) {
  *out_code = cli_fail(status);
  struct json_object *o = *out_code == CLI_DONE ? json_tokener_parse(text) : NULL;
  ait_string_free(text);
  if (!o && *out_code == CLI_DONE) *out_code = cli_fail(ait_error(AIT_CODE_INTERNAL, "the library's document does not parse"));
  return o;
}
