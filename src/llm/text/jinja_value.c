/* Values: Python's truth, equality, order, str, repr, JSON and containers. */
#include "llm/text/jinja.h"
#include "llm/text/unicode.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

enum { VALUE_DEPTH = 200 };

ait_status ait_jfail(ait_jrun *r, ait_code code, const char *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return ait_error(code, "line %d: %s", r->line, text);
}

ait_status ait_jinja_step(ait_jrun *r, uint64_t steps) {
  r->steps += steps;
  return r->steps > r->step_limit
             ? ait_jfail(r, AIT_CODE_LIMIT, "the template takes more than %llu steps", (unsigned long long)r->step_limit)
             : AIT_OK;
}

static ait_status arena_full(ait_jrun *r) {
  size_t limit = r->arena.limit_bytes;
  if (limit && r->arena.used_bytes + 4096 > limit / 2)
    return ait_jfail(r, AIT_CODE_LIMIT, "the template takes more than %zu MB", limit >> 20);
  return AIT_OOM();
}

ait_status ait_jv_copy_text(ait_jrun *r, const ait_text *text, ait_jv *out) {
  ait_text copy = *text;
  ait_status status = text->length > r->out_limit ? ait_jfail(r, AIT_CODE_LIMIT, "a text of more than %zu MB", r->out_limit >> 20) : AIT_OK;
  char *data = status || text->failed ? NULL : ait_arena_strdup(&r->arena, text->data ? text->data : "", text->length);
  *out = ait_jv_span(data, text->length);
  if (!status && !data) status = text->failed ? AIT_OOM() : arena_full(r);
  ait_text_deinit(&copy);
  return status;
}

/* ---- containers
 * ------------------------------------------------------------------------------------------------------------------------*/
static ait_status grow(ait_jrun *r, ait_jv **items, uint32_t count, uint32_t capacity) {
  ait_jv *p = AIT_ARENA_ARRAY(&r->arena, ait_jv, capacity);
  if (!p) return arena_full(r);
  if (count) memcpy(p, *items, count * sizeof *p);
  *items = p;
  return AIT_OK;
}

ait_status ait_jlist_new(ait_jrun *r, ait_jlist_type type, uint32_t capacity, ait_jv *out) {
  ait_jlist *list = AIT_ARENA_NEW(&r->arena, ait_jlist);
  if (!list) return arena_full(r);
  list->type = type;
  if (capacity) AIT_TRY(grow(r, &list->items, 0, capacity));
  list->capacity = capacity;
  *out = (ait_jv){.kind = AIT_JV_LIST, .as.list = list};
  return AIT_OK;
}

ait_status ait_jlist_add(ait_jrun *r, ait_jlist *list, ait_jv item) {
  AIT_TRY(ait_jinja_step(r, 1));
  if (list->count == list->capacity) {
    uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
    AIT_TRY(grow(r, &list->items, list->count, capacity));
    list->capacity = capacity;
  }
  list->items[list->count++] = item;
  return AIT_OK;
}

ait_status ait_jdict_new(ait_jrun *r, ait_jv *out) {
  ait_jdict *dict = AIT_ARENA_NEW(&r->arena, ait_jdict);
  if (!dict) return arena_full(r);
  *out = (ait_jv){.kind = AIT_JV_DICT, .as.dict = dict};
  return AIT_OK;
}

const ait_jv *ait_jdict_get(const ait_jdict *dict, const ait_jv *key) {
  for (uint32_t i = 0; i < dict->count; ++i) {
    if (ait_jv_equal(&dict->keys[i], key, 0)) return &dict->values[i];
  }
  return NULL;
}

const ait_jv *ait_jdict_find(const ait_jdict *dict, const char *key, size_t size) {
  for (uint32_t i = 0; i < dict->count; ++i) {
    const ait_jv *k = &dict->keys[i];
    if (k->kind == AIT_JV_STRING && k->size == size && memcmp(k->as.s, key, size) == 0) return &dict->values[i];
  }
  return NULL;
}

ait_status ait_jdict_set(ait_jrun *r, ait_jdict *dict, ait_jv key, ait_jv value) {
  AIT_TRY(ait_jinja_step(r, 1 + dict->count / 16));
  if (key.kind == AIT_JV_DICT || (key.kind == AIT_JV_LIST && key.as.list->type == AIT_JL_LIST))
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "unhashable type: '%s'", ait_jv_type(&key));
  const ait_jv *known = ait_jdict_get(dict, &key);
  if (known) return dict->values[known - dict->values] = value, AIT_OK;
  if (dict->count == dict->capacity) {
    uint32_t capacity = dict->capacity ? dict->capacity * 2 : 4;
    AIT_TRY(grow(r, &dict->keys, dict->count, capacity));
    AIT_TRY(grow(r, &dict->values, dict->count, capacity));
    dict->capacity = capacity;
  }
  dict->keys[dict->count] = key;
  dict->values[dict->count++] = value;
  return AIT_OK;
}

/* ---- truth, equality, order
 * --------------------------------------------------------------------------------------------------------------*/
bool ait_jv_truth(const ait_jv *v) {
  switch (v->kind) {
    case AIT_JV_UNSET:
    case AIT_JV_UNDEFINED:
    case AIT_JV_NONE: return false;
    case AIT_JV_BOOL: return v->as.b;
    case AIT_JV_INT: return v->as.i != 0;
    case AIT_JV_FLOAT: return v->as.f != 0;
    case AIT_JV_STRING: return v->size != 0;
    case AIT_JV_LIST: return v->as.list->type == AIT_JL_GENERATOR || v->as.list->count != 0;
    case AIT_JV_DICT: return v->as.dict->count != 0;
    default: return true;
  }
}

const char *ait_jv_type(const ait_jv *v) {
  static const char *const lists[] = {"list", "tuple", "dict_items", "generator"};
  static const char *const names[] = {"Undefined", "Undefined", "NoneType",  "bool",  "int",    "float",      "str",
                                      "list",      "dict",      "Namespace", "Macro", "method", "LoopContext"};
  return v->kind == AIT_JV_LIST ? lists[v->as.list->type] : names[v->kind];
}

static bool number(const ait_jv *v, double *out) {
  if (v->kind == AIT_JV_FLOAT) *out = v->as.f;
  else if (v->kind == AIT_JV_INT) *out = (double)v->as.i;
  else if (v->kind == AIT_JV_BOOL) *out = v->as.b;
  else return false;
  return true;
}

static bool integer(const ait_jv *v, int64_t *out) {
  if (v->kind == AIT_JV_INT) *out = v->as.i;
  else if (v->kind == AIT_JV_BOOL) *out = v->as.b;
  else return false;
  return true;
}

static bool equal_dicts(const ait_jdict *a, const ait_jdict *b, int depth) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; ++i) {
    const ait_jv *other = ait_jdict_get(b, &a->keys[i]);
    if (!other || !ait_jv_equal(&a->values[i], other, depth + 1)) return false;
  }
  return true;
}

bool ait_jv_equal(const ait_jv *a, const ait_jv *b, int depth) {
  int64_t i, k;
  double x, y;
  if (depth > VALUE_DEPTH) return false;
  if (integer(a, &i) && integer(b, &k)) return i == k;
  if (number(a, &x) && number(b, &y)) return x == y;
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case AIT_JV_STRING: return a->size == b->size && memcmp(a->as.s, b->as.s, a->size) == 0;
    case AIT_JV_LIST: {
      const ait_jlist *m = a->as.list, *n = b->as.list;
      if (m == n) return true;
      if (m->type != n->type || m->type == AIT_JL_GENERATOR || m->count != n->count) return false;
      for (uint32_t j = 0; j < m->count; ++j) {
        if (!ait_jv_equal(&m->items[j], &n->items[j], depth + 1)) return false;
      }
      return true;
    }
    case AIT_JV_DICT: return equal_dicts(a->as.dict, b->as.dict, depth);
    case AIT_JV_NAMESPACE: return a->as.dict == b->as.dict;
    case AIT_JV_MACRO: return a->as.macro == b->as.macro;
    case AIT_JV_LOOP: return a->as.loop == b->as.loop;
    case AIT_JV_FUNCTION: return a->as.bound == b->as.bound;
    default: return true; /* undefined, none */
  }
}

static int order_bytes(const ait_jv *a, const ait_jv *b) {
  int order = memcmp(a->as.s, b->as.s, a->size < b->size ? a->size : b->size); /* UTF-8 sorts like its characters */
  return order ? (order < 0 ? -1 : 1) : a->size < b->size ? -1 : a->size > b->size;
}

ait_status ait_jv_compare(ait_jrun *r, const ait_jv *a, const ait_jv *b, int *out) {
  int64_t i, k;
  double x, y;
  AIT_TRY(ait_jinja_step(r, 1));
  if (integer(a, &i) && integer(b, &k)) return *out = i < k ? -1 : i > k, AIT_OK;
  if (number(a, &x) && number(b, &y)) return *out = isnan(x) || isnan(y) ? 2 : x < y ? -1 : x > y, AIT_OK;
  if (a->kind == AIT_JV_STRING && b->kind == AIT_JV_STRING) return *out = order_bytes(a, b), AIT_OK;
  if (a->kind == AIT_JV_LIST && b->kind == AIT_JV_LIST && a->as.list->type == b->as.list->type && a->as.list->type <= AIT_JL_TUPLE &&
      r->depth < AIT_JINJA_DEPTH) {
    const ait_jlist *m = a->as.list, *n = b->as.list;
    for (uint32_t j = 0; j < m->count && j < n->count; ++j) {
      if (ait_jv_equal(&m->items[j], &n->items[j], 0)) continue;
      ++r->depth;
      AIT_TRY(ait_jv_compare(r, &m->items[j], &n->items[j], out));
      --r->depth;
      return AIT_OK;
    }
    return *out = m->count < n->count ? -1 : m->count > n->count, AIT_OK;
  }
  return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'%s' and '%s' cannot be ordered", ait_jv_type(a), ait_jv_type(b));
}

/* ---- str and repr
 * --------------------------------------------------------------------------------------------------------------------------*/
void ait_jv_float_repr(ait_text *out, double f) {
  char text[48], digits[32];
  if (isnan(f)) return ait_text_append(out, "nan", 3);
  if (isinf(f)) return ait_text_printf(out, f < 0 ? "-inf" : "inf");
  int precision = 0, exponent, n = 0;
  do { /* the shortest that reads back, as "d.ddde±xx" */
    snprintf(text, sizeof text, "%.*e", precision, f);
    for (char *c = text; *c; ++c) *c = *c == ',' ? '.' : *c; /* other locales */
  } while (ait_parse_double(text, NULL) != f && ++precision < 17);
  const char *e = strchr(text, 'e');
  exponent = atoi(e + 1);
  for (const char *c = text; c < e; ++c) {
    if (*c >= '0' && *c <= '9') digits[n++] = *c;
  }
  while (n > 1 && digits[n - 1] == '0') --n;
  if (text[0] == '-') ait_text_append(out, "-", 1);
  if (exponent < -4 || exponent >= 16) {
    ait_text_append(out, digits, 1);
    if (n > 1) ait_text_append(out, ".", 1), ait_text_append(out, digits + 1, (size_t)n - 1);
    ait_text_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
    return;
  }
  if (exponent < 0) ait_text_append(out, "0.", 2);
  for (int k = -1; k > exponent; --k) ait_text_append(out, "0", 1);
  for (int k = 0; k < n || k <= exponent; ++k) {
    ait_text_append(out, k < n ? &digits[k] : "0", 1);
    if (k == exponent) ait_text_append(out, ".", 1);
  }
  if (n <= exponent + 1 && exponent >= 0) ait_text_append(out, "0", 1);
}

static bool printable(uint32_t c) {
  if (c < 0x7F) return c >= 32;
  utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
  return !(k == UTF8PROC_CATEGORY_CN || (k >= UTF8PROC_CATEGORY_ZS && k <= UTF8PROC_CATEGORY_CO));
}

static void string_repr(ait_text *out, const ait_jv *v) {
  char quote = memchr(v->as.s, '\'', v->size) && !memchr(v->as.s, '"', v->size) ? '"' : '\'';
  ait_text_append(out, &quote, 1);
  for (uint32_t i = 0, n; i < v->size; i += n) {
    uint32_t code;
    n = ait_utf8_read(v->as.s + i, &code);
    if (code == (uint32_t)quote || code == '\\') ait_text_printf(out, "\\%c", (int)code);
    else if (code == '\n') ait_text_append(out, "\\n", 2);
    else if (code == '\r') ait_text_append(out, "\\r", 2);
    else if (code == '\t') ait_text_append(out, "\\t", 2);
    else if (printable(code)) ait_text_append(out, v->as.s + i, n);
    else ait_text_printf(out, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
  }
  ait_text_append(out, &quote, 1);
}

static ait_status list_repr(ait_jrun *r, const ait_jlist *list, ait_text *out, int depth) {
  bool tuple = list->type == AIT_JL_TUPLE;
  if (list->type == AIT_JL_GENERATOR) return ait_jfail(r, AIT_CODE_UNSUPPORTED, "a generator as text");
  if (list->type == AIT_JL_VIEW) ait_text_printf(out, list->count && list->items[0].kind == AIT_JV_LIST ? "dict_items(" : "dict_keys(");
  ait_text_append(out, tuple ? "(" : "[", 1);
  for (uint32_t i = 0; i < list->count; ++i) {
    if (i) ait_text_append(out, ", ", 2);
    AIT_TRY(ait_jv_repr(r, &list->items[i], out, depth + 1));
  }
  if (tuple && list->count == 1) ait_text_append(out, ",", 1);
  ait_text_append(out, tuple ? ")" : "]", 1);
  if (list->type == AIT_JL_VIEW) ait_text_append(out, ")", 1);
  return AIT_OK;
}

ait_status ait_jv_repr(ait_jrun *r, const ait_jv *v, ait_text *out, int depth) {
  AIT_TRY(ait_jinja_step(r, 1));
  if (depth > VALUE_DEPTH) return ait_jfail(r, AIT_CODE_LIMIT, "values nested too deeply");
  if (out->length > r->out_limit) return ait_jfail(r, AIT_CODE_LIMIT, "a text of more than %zu MB", r->out_limit >> 20);
  switch (v->kind) {
    case AIT_JV_UNSET:
    case AIT_JV_UNDEFINED: ait_text_append(out, "Undefined", 9); break;
    case AIT_JV_NONE: ait_text_append(out, "None", 4); break;
    case AIT_JV_BOOL: ait_text_printf(out, v->as.b ? "True" : "False"); break;
    case AIT_JV_INT: ait_text_printf(out, "%lld", (long long)v->as.i); break;
    case AIT_JV_FLOAT: ait_jv_float_repr(out, v->as.f); break;
    case AIT_JV_STRING: string_repr(out, v); break;
    case AIT_JV_LIST: return list_repr(r, v->as.list, out, depth);
    case AIT_JV_DICT:
      ait_text_append(out, "{", 1);
      for (uint32_t i = 0; i < v->as.dict->count; ++i) {
        if (i) ait_text_append(out, ", ", 2);
        AIT_TRY(ait_jv_repr(r, &v->as.dict->keys[i], out, depth + 1));
        ait_text_append(out, ": ", 2);
        AIT_TRY(ait_jv_repr(r, &v->as.dict->values[i], out, depth + 1));
      }
      ait_text_append(out, "}", 1);
      break;
    default: return ait_jfail(r, AIT_CODE_UNSUPPORTED, "a %s as text", ait_jv_type(v));
  }
  return AIT_OK;
}

ait_status ait_jv_str(ait_jrun *r, const ait_jv *v, ait_text *out) {
  if (v->kind == AIT_JV_STRING) {
    ait_text_append(out, v->as.s, v->size);
    return ait_jinja_step(r, 1 + v->size / 256);
  }
  return v->kind == AIT_JV_UNDEFINED ? AIT_OK : ait_jv_repr(r, v, out, 0);
}

ait_status ait_jv_as_string(ait_jrun *r, const ait_jv *v, ait_jv *out) {
  if (v->kind == AIT_JV_STRING) return *out = *v, AIT_OK;
  ait_text text;
  ait_text_init(&text, r->arena.allocator);
  ait_status status = ait_jv_str(r, v, &text);
  if (status) ait_text_deinit(&text);
  return status ? status : ait_jv_copy_text(r, &text, out);
}

/* ---- JSON
 * ------------------------------------------------------------------------------------------------------------------------------*/
static void json_string(const ait_jv *v, bool ascii, ait_text *out) {
  ait_text_append(out, "\"", 1);
  for (uint32_t i = 0, n; i < v->size; i += n) {
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    uint32_t code;
    n = ait_utf8_read(v->as.s + i, &code);
    const char *known = code && code < 0x80 ? strchr(from, (int)code) : NULL;
    if (known) ait_text_printf(out, "\\%c", to[known - from]);
    else if (code < 32 || (ascii && code > 0x7E && code < 0x10000)) ait_text_printf(out, "\\u%04x", code);
    else if (ascii && code >= 0x10000)
      ait_text_printf(out, "\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF));
    else ait_text_append(out, v->as.s + i, n);
  }
  ait_text_append(out, "\"", 1);
}

static void json_break(const ait_json_style *style, int depth, ait_text *out) {
  if (!style->has_indent) return;
  ait_text_append(out, "\n", 1);
  for (int i = 0; i < depth; ++i) ait_text_append(out, style->indent.as.s, style->indent.size);
}

static ait_status json_key(ait_jrun *r, const ait_jv *key, const ait_json_style *style, ait_text *out) {
  if (key->kind == AIT_JV_STRING) return json_string(key, style->ascii, out), AIT_OK;
  if (key->kind == AIT_JV_LIST || key->kind > AIT_JV_STRING || key->kind == AIT_JV_UNDEFINED)
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "keys must be str, int, float, bool or None, not %s", ait_jv_type(key));
  ait_text_append(out, "\"", 1);
  AIT_TRY(ait_jv_json(r, key, style, out, 0));
  ait_text_append(out, "\"", 1);
  return AIT_OK;
}

/* Order of the members; sorted by key when asked for. */
static ait_status key_order(ait_jrun *r, const ait_jdict *d, bool sort, uint32_t **out) {
  uint32_t *order = AIT_ARENA_ARRAY(&r->arena, uint32_t, (size_t)d->count + 1);
  if (!order) return arena_full(r);
  for (uint32_t i = 0; i < d->count; ++i) {
    uint32_t at = i;
    for (int c = 1; sort && at; --at) {
      AIT_TRY(ait_jv_compare(r, &d->keys[order[at - 1]], &d->keys[i], &c));
      if (c <= 0) break;
      order[at] = order[at - 1];
    }
    order[at] = i;
  }
  *out = order;
  return AIT_OK;
}

static ait_status json_dict(ait_jrun *r, const ait_jdict *d, const ait_json_style *style, ait_text *out, int depth) {
  uint32_t *order;
  if (!d->count) return ait_text_append(out, "{}", 2), AIT_OK;
  AIT_TRY(key_order(r, d, style->sort, &order));
  ait_text_append(out, "{", 1);
  for (uint32_t i = 0; i < d->count; ++i) {
    if (i) ait_text_append(out, style->item_separator.as.s, style->item_separator.size);
    json_break(style, depth + 1, out);
    AIT_TRY(json_key(r, &d->keys[order[i]], style, out));
    ait_text_append(out, style->key_separator.as.s, style->key_separator.size);
    AIT_TRY(ait_jv_json(r, &d->values[order[i]], style, out, depth + 1));
  }
  json_break(style, depth, out);
  ait_text_append(out, "}", 1);
  return AIT_OK;
}

static ait_status json_list(ait_jrun *r, const ait_jlist *list, const ait_json_style *style, ait_text *out, int depth) {
  if (list->type > AIT_JL_TUPLE) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "Object of type generator is not JSON serializable");
  if (!list->count) return ait_text_append(out, "[]", 2), AIT_OK;
  ait_text_append(out, "[", 1);
  for (uint32_t i = 0; i < list->count; ++i) {
    if (i) ait_text_append(out, style->item_separator.as.s, style->item_separator.size);
    json_break(style, depth + 1, out);
    AIT_TRY(ait_jv_json(r, &list->items[i], style, out, depth + 1));
  }
  json_break(style, depth, out);
  ait_text_append(out, "]", 1);
  return AIT_OK;
}

ait_status ait_jv_json(ait_jrun *r, const ait_jv *v, const ait_json_style *style, ait_text *out, int depth) {
  AIT_TRY(ait_jinja_step(r, 1));
  if (depth > VALUE_DEPTH) return ait_jfail(r, AIT_CODE_LIMIT, "values nested too deeply");
  if (out->length > r->out_limit) return ait_jfail(r, AIT_CODE_LIMIT, "a text of more than %zu MB", r->out_limit >> 20);
  switch (v->kind) {
    case AIT_JV_NONE: ait_text_append(out, "null", 4); return AIT_OK;
    case AIT_JV_BOOL: ait_text_printf(out, v->as.b ? "true" : "false"); return AIT_OK;
    case AIT_JV_FLOAT:
      if (isnan(v->as.f)) ait_text_append(out, "NaN", 3);
      else if (isinf(v->as.f)) ait_text_printf(out, v->as.f < 0 ? "-Infinity" : "Infinity");
      else ait_jv_float_repr(out, v->as.f);
      return AIT_OK;
    case AIT_JV_INT: return ait_jv_repr(r, v, out, depth);
    case AIT_JV_STRING: return json_string(v, style->ascii, out), AIT_OK;
    case AIT_JV_LIST: return json_list(r, v->as.list, style, out, depth);
    case AIT_JV_DICT: return json_dict(r, v->as.dict, style, out, depth);
    default: return ait_jfail(r, AIT_CODE_INVALID_MODEL, "Object of type %s is not JSON serializable", ait_jv_type(v));
  }
}

ait_status ait_jv_from_json(ait_jrun *r, const ait_json *json, ait_jv *out, int depth) {
  if (depth > VALUE_DEPTH) return ait_jfail(r, AIT_CODE_LIMIT, "values nested too deeply");
  ait_jv item;
  switch (json->kind) {
    case AIT_JSON_NULL: *out = ait_jv_none(); break;
    case AIT_JSON_BOOL: *out = ait_jv_bool(json->as.b); break;
    case AIT_JSON_INT: *out = ait_jv_int(json->as.i); break;
    case AIT_JSON_FLOAT: *out = ait_jv_float(json->as.f); break;
    case AIT_JSON_STRING: *out = ait_jv_span(json->as.string, json->count); break;
    case AIT_JSON_ARRAY:
      AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, json->count, out));
      for (uint32_t i = 0; i < json->count; ++i) {
        AIT_TRY(ait_jv_from_json(r, &json->as.items[i], &item, depth + 1));
        AIT_TRY(ait_jlist_add(r, out->as.list, item));
      }
      break;
    case AIT_JSON_OBJECT:
      AIT_TRY(ait_jdict_new(r, out));
      for (uint32_t i = 0; i < json->count; ++i) {
        AIT_TRY(ait_jv_from_json(r, &json->as.items[i], &item, depth + 1));
        AIT_TRY(ait_jdict_set(r, out->as.dict, ait_jv_span(json->as.items[i].key, json->as.items[i].key_size), item));
      }
      break;
  }
  return AIT_OK;
}

/* ---- iterating
 * -------------------------------------------------------------------------------------------------------------------------*/
static ait_status characters(ait_jrun *r, const ait_jv *v, ait_jv **items, uint32_t *count) {
  uint32_t n = (uint32_t)ait_utf8_count(v->as.s, v->size), at = 0, code;
  AIT_TRY(ait_jinja_step(r, n));
  *items = AIT_ARENA_ARRAY(&r->arena, ait_jv, (size_t)n + 1);
  if (!*items) return arena_full(r);
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t size = ait_utf8_read(v->as.s + at, &code);
    (*items)[i] = ait_jv_span(v->as.s + at, size);
    at += size;
  }
  *count = n;
  return AIT_OK;
}

ait_status ait_jv_items(ait_jrun *r, const ait_jv *v, ait_jv **items, uint32_t *count) {
  *items = NULL, *count = 0;
  switch (v->kind) {
    case AIT_JV_UNDEFINED: return AIT_OK;
    case AIT_JV_STRING: return characters(r, v, items, count);
    case AIT_JV_DICT: return *items = v->as.dict->keys, *count = v->as.dict->count, AIT_OK;
    case AIT_JV_LIST: {
      ait_jlist *list = v->as.list;
      *items = list->items ? list->items + list->taken : NULL;
      *count = list->count - list->taken;
      if (list->type == AIT_JL_GENERATOR) list->taken = list->count;
      return ait_jinja_step(r, 1);
    }
    default: return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'%s' object is not iterable", ait_jv_type(v));
  }
}

ait_status ait_jv_length(ait_jrun *r, const ait_jv *v, int64_t *out) {
  if (v->kind == AIT_JV_UNDEFINED) return *out = 0, AIT_OK;
  if (v->kind == AIT_JV_STRING) return *out = (int64_t)ait_utf8_count(v->as.s, v->size), AIT_OK;
  if (v->kind == AIT_JV_DICT) return *out = v->as.dict->count, AIT_OK;
  if (v->kind == AIT_JV_LIST && v->as.list->type != AIT_JL_GENERATOR) return *out = v->as.list->count, AIT_OK;
  if (v->kind == AIT_JV_LOOP) return *out = v->as.loop->count, AIT_OK;
  return ait_jfail(r, AIT_CODE_INVALID_MODEL, "object of type '%s' has no len()", ait_jv_type(v));
}

ait_status ait_jv_contains(ait_jrun *r, const ait_jv *container, const ait_jv *item, bool *out) {
  ait_jv *items;
  uint32_t count;
  *out = false;
  if (container->kind == AIT_JV_STRING) {
    if (item->kind != AIT_JV_STRING)
      return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'in <string>' requires string as left operand, not %s", ait_jv_type(item));
    *out = item->size == 0 || memmem(container->as.s, container->size, item->as.s, item->size) != NULL;
    return ait_jinja_step(r, 1 + container->size / 256);
  }
  AIT_TRY(ait_jv_items(r, container, &items, &count));
  AIT_TRY(ait_jinja_step(r, count));
  for (uint32_t i = 0; i < count && !*out; ++i) *out = ait_jv_equal(&items[i], item, 0);
  return AIT_OK;
}
