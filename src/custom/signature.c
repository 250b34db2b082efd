/* The outline of a schema: how many parameters, which of them are written, what the results are. */
#include "custom/custom.h"

#include <ctype.h>

static const char *skip_spaces(const char *at) {
  while (isspace((unsigned char)*at)) ++at;
  return at;
}

static ait_status bad(const char *what) { return ait_error(AIT_CODE_INVALID_ARGUMENT, "its schema is wrong: %s", what); }

/* The end of a parameter or result: the comma or parenthesis that is not inside of brackets or a string. NULL: there is none. */
static const char *item_end(const char *at) {
  int depth = 0;
  bool text = false;
  for (; *at; ++at) {
    if (*at == '"') text = !text;
    if (text) continue;
    if (*at == '(' || *at == '[') ++depth;
    if (depth == 0 && (*at == ')' || *at == ',')) return at;
    if (*at == ')' || *at == ']') --depth;
  }
  return NULL;
}

static bool has(const char *at, const char *end, char c) {
  for (; at < end; ++at)
    if (*at == c) return true;
  return false;
}

static ait_status read_params(const char **at, ait_custom_signature *out) {
  const char *p = skip_spaces(*at);
  if (*p++ != '(') return bad("no '(' before the parameters");
  for (p = skip_spaces(p); *p != ')'; p = skip_spaces(p)) {
    const char *end = item_end(p), *name_end;
    if (!end) return bad("no ')' after the parameters");
    bool separator = *p == '*' && skip_spaces(p + 1) == end; /* what follows is given by name */
    if (!separator) {
      if (end == p) return bad("an empty parameter");
      if (out->param_count == AIT_CUSTOM_PARAM_LIMIT) return bad("more than 64 parameters");
      name_end = memchr(p, ' ', (size_t)(end - p)); /* the type's annotation stands before the first space */
      bool written = has(p, name_end ? name_end : end, '!');
      if (written && (strncmp(p, "Tensor(", 7) != 0 || has(p, name_end ? name_end : end, '['))) return bad("only a Tensor can be written");
      out->written[out->param_count++] = written;
      out->written_count += written;
    }
    p = *end == ',' ? end + 1 : end;
  }
  *at = p + 1;
  return AIT_OK;
}

static ait_status read_result(const char *p, const char *end, ait_custom_signature *out) {
  static const struct {
    const char *word;
    ait_type type;
  } types[] = {
      {"Tensor", AIT_TYPE_TENSOR}, {"int", AIT_TYPE_INT}, {"SymInt", AIT_TYPE_INT}, {"float", AIT_TYPE_FLOAT}, {"bool", AIT_TYPE_BOOL}};
  size_t n = 0;
  while (p + n < end && isalnum((unsigned char)p[n])) ++n;
  if (p[n] == '(') return bad("a result that is an argument, or a view of one");
  if (out->result_count == AIT_CUSTOM_RESULT_LIMIT) return bad("more than 16 results");
  for (size_t i = 0; i < AIT_COUNT(types) && p[n] != '['; ++i) {
    if (strlen(types[i].word) != n || memcmp(p, types[i].word, n) != 0) continue;
    out->results[out->result_count++] = types[i].type;
    return AIT_OK;
  }
  return bad("a result is of no type that a custom operator can give (Tensor, int, float, bool)");
}

static ait_status read_results(const char *at, ait_custom_signature *out) {
  const char *p = skip_spaces(at);
  if (p[0] != '-' || p[1] != '>') return bad("no '->' after the parameters");
  p = skip_spaces(p + 2);
  if (*p != '(') {
    AIT_TRY(read_result(p, p + strlen(p), out));
    while (isalnum((unsigned char)*p)) ++p;
    return *skip_spaces(p) ? bad("text after the result") : AIT_OK;
  }
  for (p = skip_spaces(p + 1); *p != ')'; p = skip_spaces(p)) {
    const char *end = item_end(p);
    if (!end) return bad("no ')' after the results");
    AIT_TRY(read_result(p, end, out));
    p = *end == ',' ? end + 1 : end;
  }
  return *skip_spaces(p + 1) ? bad("text after the results") : AIT_OK;
}

ait_status ait_custom_read_signature(const char *schema, ait_custom_signature *out) {
  *out = (ait_custom_signature){0};
  AIT_TRY(read_params(&schema, out));
  return read_results(schema, out);
}
