/* Filters, tests and global functions: tables of names, parameters and functions. Meaning: jinja2.filters, jinja2.tests and what
 * transformers puts in their place (tojson, raise_exception, strftime_now, namespace, dict). */
#include "llm/text/jinja.h"
#include "llm/text/unicode.h"
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#define FN(name) static ait_status name(ait_jrun *r, const ait_jv *self, const ait_jv *slots, const ait_jargs *args, ait_jv *out)
#define UNUSED_ARGS (void)r, (void)self, (void)slots, (void)args, (void)out

static bool given(const ait_jv *v) { return v->kind != AIT_JV_UNSET && v->kind != AIT_JV_NONE; }
static bool flag(const ait_jv *v, bool absent) { return v->kind == AIT_JV_UNSET ? absent : ait_jv_truth(v); }

static ait_status int_slot(ait_jrun *r, const ait_jv *v, int64_t absent, int64_t *out) {
  *out = absent;
  if (!given(v)) return AIT_OK;
  if (v->kind != AIT_JV_INT && v->kind != AIT_JV_BOOL)
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "an integer expected, not %s", ait_jv_type(v));
  *out = v->kind == AIT_JV_INT ? v->as.i : v->as.b;
  return AIT_OK;
}

/* ---- attributes
 * ------------------------------------------------------------------------------------------------------------------------*/
/* "a.b.0" of an item; no path (UNSET, NONE): the item itself. */
static ait_status attribute(ait_jrun *r, const ait_jv *item, const ait_jv *path, ait_jv *out) {
  *out = *item;
  if (!given(path)) return AIT_OK;
  if (path->kind != AIT_JV_STRING) return ait_jv_item(r, item, path, out);
  for (uint32_t at = 0; at <= path->size;) {
    const char *dot = memchr(path->as.s + at, '.', path->size - at);
    uint32_t end = dot ? (uint32_t)(dot - path->as.s) : path->size;
    ait_jv base = *out, key = ait_jv_span(path->as.s + at, end - at);
    bool digits = end > at && end - at < 10;
    for (uint32_t i = at; i < end; ++i) digits &= path->as.s[i] >= '0' && path->as.s[i] <= '9';
    if (digits) key = ait_jv_int(strtol(path->as.s + at, NULL, 10));
    AIT_TRY(ait_jv_item(r, &base, &key, out));
    at = end + 1;
  }
  return AIT_OK;
}

static ait_status sort_key(ait_jrun *r, const ait_jv *item, const ait_jv *path, bool case_sensitive, ait_jv *out) {
  ait_jv value;
  AIT_TRY(attribute(r, item, path, &value));
  if (!case_sensitive && value.kind == AIT_JV_STRING) return ait_jv_case(r, &value, AIT_JCASE_LOWER, out);
  *out = value;
  return AIT_OK;
}

/* Stable; order[i] is the place of the i-th smallest. n log n comparisons by merging. */
static ait_status sort_order(ait_jrun *r, const ait_jv *keys, uint32_t count, bool reverse, uint32_t **out) {
  uint32_t *a = AIT_ARENA_ARRAY(&r->arena, uint32_t, (size_t)count + 1), *b = AIT_ARENA_ARRAY(&r->arena, uint32_t, (size_t)count + 1);
  if (!a || !b) return AIT_OOM();
  for (uint32_t i = 0; i < count; ++i) a[i] = i;
  for (uint32_t width = 1; width < count; width *= 2) {
    for (uint32_t begin = 0; begin < count; begin += 2 * width) {
      uint32_t middle = begin + width < count ? begin + width : count, end = middle + width < count ? middle + width : count;
      for (uint32_t i = begin, k = middle, n = begin; n < end; ++n) {
        int order = i == middle ? 1 : -1;
        if (i < middle && k < end) AIT_TRY(ait_jv_compare(r, &keys[a[i]], &keys[a[k]], &order));
        if (i < middle && k < end && reverse) order = -order;
        b[n] = order <= 0 ? a[i++] : a[k++];
      }
    }
    uint32_t *swap = a;
    a = b, b = swap;
  }
  *out = a;
  return AIT_OK;
}

static ait_status sorted(ait_jrun *r, const ait_jv *items, const ait_jv *keys, uint32_t count, bool reverse, ait_jv *out) {
  uint32_t *order;
  AIT_TRY(sort_order(r, keys, count, reverse, &order));
  AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, count, out));
  for (uint32_t i = 0; i < count; ++i) AIT_TRY(ait_jlist_add(r, out->as.list, items[order[i]]));
  return AIT_OK;
}

static ait_status keys_of(ait_jrun *r, const ait_jv *self, const ait_jv *path, bool case_sensitive, ait_jv **items, uint32_t *count,
                          ait_jv **keys) {
  AIT_TRY(ait_jv_items(r, self, items, count));
  *keys = AIT_ARENA_ARRAY(&r->arena, ait_jv, (size_t)*count + 1);
  if (!*keys) return AIT_OOM();
  for (uint32_t i = 0; i < *count; ++i) AIT_TRY(sort_key(r, &(*items)[i], path, case_sensitive, &(*keys)[i]));
  return AIT_OK;
}

/* ---- filters: texts
 * ------------------------------------------------------------------------------------------------------------------------*/
FN(f_upper) {
  UNUSED_ARGS;
  ait_jv s;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  return ait_jv_case(r, &s, AIT_JCASE_UPPER, out);
}
FN(f_lower) {
  UNUSED_ARGS;
  ait_jv s;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  return ait_jv_case(r, &s, AIT_JCASE_LOWER, out);
}
FN(f_capitalize) {
  UNUSED_ARGS;
  ait_jv s;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  return ait_jv_case(r, &s, AIT_JCASE_CAPITALIZE, out);
}
FN(f_string) {
  UNUSED_ARGS;
  return ait_jv_as_string(r, self, out);
}

/* Words begin behind spaces, '-' and opening brackets, not behind every character that is no letter. */
FN(f_title) {
  UNUSED_ARGS;
  ait_jv s, part, piece;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  *out = ait_jv_span("", 0);
  for (uint32_t at = 0, end; at < s.size; at = end) {
    uint32_t code;
    bool breaks = false;
    for (end = at; end < s.size;) {
      uint32_t n = ait_utf8_read(s.as.s + end, &code);
      bool now = ait_char_is_space(code) || (code < 0x80 && strchr("-({[<", (int)code) && code);
      if (end == at) breaks = now;
      else if (now != breaks) break;
      end += n;
    }
    part = ait_jv_span(s.as.s + at, end - at);
    AIT_TRY(ait_jv_case(r, &part, AIT_JCASE_CAPITALIZE, &piece));
    ait_jv before = *out;
    AIT_TRY(ait_jv_binary(r, AIT_JOP_ADD, &before, &piece, out));
  }
  return AIT_OK;
}

FN(f_trim) {
  UNUSED_ARGS;
  ait_jv s;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  *out = ait_jv_strip(&s, &slots[0], true, true);
  return AIT_OK;
}

FN(f_replace) {
  UNUSED_ARGS;
  ait_jv s, from, to;
  int64_t count;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  AIT_TRY(ait_jv_as_string(r, &slots[0], &from));
  AIT_TRY(ait_jv_as_string(r, &slots[1], &to));
  AIT_TRY(int_slot(r, &slots[2], -1, &count));
  return ait_jv_replace(r, &s, &from, &to, count, out);
}

FN(f_indent) {
  UNUSED_ARGS;
  ait_jv s, width = slots[0];
  int64_t n = 4;
  bool first = flag(&slots[1], false), blank = flag(&slots[2], false);
  ait_text text;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  if (width.kind != AIT_JV_STRING) {
    ait_jv space = ait_jv_span(" ", 1), times;
    AIT_TRY(int_slot(r, &slots[0], 4, &n));
    times = ait_jv_int(n);
    AIT_TRY(ait_jv_binary(r, AIT_JOP_MUL, &space, &times, &width));
  }
  ait_text_init(&text, r->arena.allocator);
  for (uint32_t begin = 0, at = 0, line = 0; at <= s.size && text.length <= r->out_limit;
       ++line) { /* a newline is added and is the last line's end */
    uint32_t code = 0, end = at;
    while (at < s.size) {
      end = at;
      at += ait_utf8_read(s.as.s + at, &code);
      if (ait_char_ends_line(code)) break;
      end = at;
    }
    if (code == '\r' && at < s.size && s.as.s[at] == '\n') ++at;
    if (line) ait_text_append(&text, "\n", 1);
    if (line ? (end > begin || blank) : first) ait_text_append(&text, width.as.s, width.size);
    ait_text_append(&text, s.as.s + begin, end - begin);
    if (at == s.size && (begin == at || end == at)) break;
    begin = at;
  }
  return ait_jv_copy_text(r, &text, out);
}

FN(f_escape) {
  UNUSED_ARGS;
  static const char from[] = "&<>\"'";
  static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
  ait_jv s;
  ait_text text;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  ait_text_init(&text, r->arena.allocator);
  for (uint32_t i = 0; i < s.size; ++i) {
    const char *known = s.as.s[i] ? strchr(from, s.as.s[i]) : NULL;
    if (known) ait_text_append(&text, to[known - from], strlen(to[known - from]));
    else ait_text_append(&text, s.as.s + i, 1);
  }
  return ait_jv_copy_text(r, &text, out);
}

FN(f_wordcount) {
  UNUSED_ARGS;
  ait_jv s;
  int64_t n = 0;
  bool in = false;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  for (uint32_t i = 0, code; i < s.size;) {
    i += ait_utf8_read(s.as.s + i, &code);
    bool word = ait_char_is_space(code)
                    ? false
                    : code == '_' || code >= 0x80 || (code >= '0' && code <= '9') || ((code | 32) >= 'a' && (code | 32) <= 'z');
    n += word && !in;
    in = word;
  }
  *out = ait_jv_int(n);
  return AIT_OK;
}

FN(f_format) {
  UNUSED_ARGS;
  ait_jv tuple;
  AIT_TRY(ait_jlist_new(r, AIT_JL_TUPLE, 0, &tuple));
  for (uint32_t i = 0; i < args->positional; ++i) AIT_TRY(ait_jlist_add(r, tuple.as.list, args->values[i]));
  return self->kind == AIT_JV_STRING ? ait_jv_percent(r, self, &tuple, out)
                                     : ait_jfail(r, AIT_CODE_INVALID_MODEL, "format of a %s", ait_jv_type(self));
}

FN(f_tojson) {
  UNUSED_ARGS;
  ait_json_style style = {.ascii = flag(&slots[0], false), .sort = flag(&slots[3], false)};
  const ait_jv *indent = &slots[1], *separators = &slots[2];
  ait_jv space = ait_jv_span(" ", 1);
  ait_text text;
  style.has_indent = given(indent);
  style.item_separator = style.has_indent ? ait_jv_span(",", 1) : ait_jv_span(", ", 2);
  style.key_separator = ait_jv_span(": ", 2);
  if (style.has_indent && indent->kind == AIT_JV_STRING) style.indent = *indent;
  else if (style.has_indent) AIT_TRY(ait_jv_binary(r, AIT_JOP_MUL, &space, indent, &style.indent));
  if (given(separators)) {
    ait_jv *items;
    uint32_t count;
    AIT_TRY(ait_jv_items(r, separators, &items, &count));
    if (count != 2 || items[0].kind != AIT_JV_STRING || items[1].kind != AIT_JV_STRING)
      return ait_jfail(r, AIT_CODE_INVALID_MODEL, "separators must be two strings");
    style.item_separator = items[0], style.key_separator = items[1];
  }
  ait_text_init(&text, r->arena.allocator);
  ait_status status = ait_jv_json(r, self, &style, &text, 0);
  if (status) ait_text_deinit(&text);
  return status ? status : ait_jv_copy_text(r, &text, out);
}

/* ---- filters: numbers
 * ----------------------------------------------------------------------------------------------------------------------*/
static bool parse_real(const ait_jv *v, double *out) {
  char buffer[64];
  ait_jv s = ait_jv_strip(v, &(ait_jv){0}, true, true);
  if (!s.size || s.size >= sizeof buffer) return false;
  memcpy(buffer, s.as.s, s.size);
  buffer[s.size] = 0;
  if (strspn(buffer, "+-.0123456789eE") != s.size && strcasecmp(buffer, "nan") != 0 && strcasecmp(buffer, "inf") != 0) return false;
  char *end;
  *out = ait_parse_double(buffer, &end);
  return *end == 0;
}

static bool parse_int(const ait_jv *v, int base, int64_t *out) {
  char buffer[72];
  ait_jv s = ait_jv_strip(v, &(ait_jv){0}, true, true);
  if (!s.size || s.size >= sizeof buffer) return false;
  memcpy(buffer, s.as.s, s.size);
  buffer[s.size] = 0;
  char *end;
  *out = strtoll(buffer, &end, base);
  return *end == 0 && end != buffer;
}

FN(f_int) {
  UNUSED_ARGS;
  int64_t base, value;
  double x;
  AIT_TRY(int_slot(r, &slots[1], 10, &base));
  *out = slots[0].kind == AIT_JV_UNSET ? ait_jv_int(0) : slots[0];
  if (base < 2 || base > 36) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "base must be 2 to 36");
  if (self->kind == AIT_JV_INT) *out = *self;
  else if (self->kind == AIT_JV_BOOL) *out = ait_jv_int(self->as.b);
  else if (self->kind == AIT_JV_STRING && parse_int(self, (int)base, &value)) *out = ait_jv_int(value);
  else if (self->kind == AIT_JV_FLOAT || (self->kind == AIT_JV_STRING && parse_real(self, &x))) {
    if (self->kind == AIT_JV_FLOAT) x = self->as.f;
    if (fabs(x) < 9e18) *out = ait_jv_int((int64_t)x);
  } else if (self->kind == AIT_JV_UNDEFINED) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'%s' is undefined", self->as.s ? self->as.s : "");
  return AIT_OK;
}

FN(f_float) {
  UNUSED_ARGS;
  double x;
  *out = slots[0].kind == AIT_JV_UNSET ? ait_jv_float(0) : slots[0];
  if (self->kind == AIT_JV_FLOAT) *out = *self;
  else if (self->kind == AIT_JV_INT || self->kind == AIT_JV_BOOL)
    *out = ait_jv_float(self->kind == AIT_JV_INT ? (double)self->as.i : self->as.b);
  else if (self->kind == AIT_JV_STRING && parse_real(self, &x)) *out = ait_jv_float(x);
  return AIT_OK;
}

FN(f_abs) {
  UNUSED_ARGS;
  if (self->kind == AIT_JV_FLOAT) *out = ait_jv_float(fabs(self->as.f));
  else if (self->kind == AIT_JV_INT && self->as.i != INT64_MIN) *out = ait_jv_int(self->as.i < 0 ? -self->as.i : self->as.i);
  else return ait_jfail(r, AIT_CODE_INVALID_MODEL, "bad operand type for abs(): '%s'", ait_jv_type(self));
  return AIT_OK;
}

/* Python's round of a float goes by its exact decimal value, ties to even: printf does, too. */
static double round_decimal(double x, int64_t digits) {
  char buffer[400];
  if (!isfinite(x) || digits > 300) return x;
  if (digits < 0) {
    double unit = pow(10, (double)-digits);
    return nearbyint(x / unit) * unit;
  }
  snprintf(buffer, sizeof buffer, "%.*f", (int)(digits > 60 ? 60 : digits), x);
  for (char *c = buffer; *c; ++c) *c = *c == ',' ? '.' : *c;
  return ait_parse_double(buffer, NULL);
}

FN(f_round) {
  UNUSED_ARGS;
  int64_t digits;
  double x;
  AIT_TRY(int_slot(r, &slots[0], 0, &digits));
  if (self->kind == AIT_JV_FLOAT) x = self->as.f;
  else if (self->kind == AIT_JV_INT || self->kind == AIT_JV_BOOL) x = self->kind == AIT_JV_INT ? (double)self->as.i : self->as.b;
  else return ait_jfail(r, AIT_CODE_INVALID_MODEL, "type %s doesn't define __round__ method", ait_jv_type(self));
  ait_jv method = given(&slots[1]) ? slots[1] : ait_jv_span("common", 6), common = ait_jv_span("common", 6),
         ceiling = ait_jv_span("ceil", 4);
  if (ait_jv_equal(&method, &common, 0)) {
    if (self->kind != AIT_JV_FLOAT && digits >= 0) *out = ait_jv_int((int64_t)x);
    else *out = ait_jv_float(round_decimal(x, digits));
    return AIT_OK;
  }
  double unit = pow(10, (double)digits), scaled = x * unit;
  *out = ait_jv_float((ait_jv_equal(&method, &ceiling, 0) ? ceil(scaled) : floor(scaled)) / unit + 0.0); /* no -0: Python's are integers */
  return AIT_OK;
}

/* ---- filters: sequences
 * ----------------------------------------------------------------------------------------------------------------------*/
FN(f_length) {
  UNUSED_ARGS;
  int64_t n;
  AIT_TRY(ait_jv_length(r, self, &n));
  *out = ait_jv_int(n);
  return AIT_OK;
}

static ait_status copy_list(ait_jrun *r, const ait_jv *self, ait_jlist_type type, bool backwards, ait_jv *out) {
  ait_jv *items;
  uint32_t count;
  AIT_TRY(ait_jv_items(r, self, &items, &count));
  AIT_TRY(ait_jlist_new(r, type, count, out));
  for (uint32_t i = 0; i < count; ++i) AIT_TRY(ait_jlist_add(r, out->as.list, items[backwards ? count - 1 - i : i]));
  return AIT_OK;
}

FN(f_list) {
  UNUSED_ARGS;
  return copy_list(r, self, AIT_JL_LIST, false, out);
}

FN(f_reverse) {
  UNUSED_ARGS;
  AIT_TRY(copy_list(r, self, AIT_JL_GENERATOR, true, out));
  if (self->kind != AIT_JV_STRING) return AIT_OK;
  ait_text text;
  ait_text_init(&text, r->arena.allocator);
  for (uint32_t i = 0; i < out->as.list->count; ++i) ait_text_append(&text, out->as.list->items[i].as.s, out->as.list->items[i].size);
  return ait_jv_copy_text(r, &text, out);
}

FN(f_first) {
  UNUSED_ARGS;
  ait_jv *items;
  uint32_t count;
  if (self->kind == AIT_JV_LIST && self->as.list->type == AIT_JL_GENERATOR) { /* takes one only */
    ait_jlist *list = self->as.list;
    *out = list->taken < list->count ? list->items[list->taken++] : ait_jv_undefined("the first item of an empty sequence");
    return AIT_OK;
  }
  AIT_TRY(ait_jv_items(r, self, &items, &count));
  *out = count ? items[0] : ait_jv_undefined("the first item of an empty sequence");
  return AIT_OK;
}

FN(f_last) {
  UNUSED_ARGS;
  ait_jv *items;
  uint32_t count;
  if (self->kind == AIT_JV_LIST && self->as.list->type == AIT_JL_GENERATOR)
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'generator' object is not reversible");
  AIT_TRY(ait_jv_items(r, self, &items, &count));
  *out = count ? items[count - 1] : ait_jv_undefined("the last item of an empty sequence");
  return AIT_OK;
}

FN(f_join) {
  UNUSED_ARGS;
  ait_jv *items, separator = ait_jv_span("", 0), item;
  uint32_t count;
  ait_text text;
  if (slots[0].kind != AIT_JV_UNSET) AIT_TRY(ait_jv_as_string(r, &slots[0], &separator));
  AIT_TRY(ait_jv_items(r, self, &items, &count));
  ait_text_init(&text, r->arena.allocator);
  ait_status status = AIT_OK;
  for (uint32_t i = 0; i < count && !status; ++i) {
    if (i) ait_text_append(&text, separator.as.s, separator.size);
    status = attribute(r, &items[i], &slots[1], &item);
    if (!status) status = ait_jv_str(r, &item, &text);
    if (!status && text.length > r->out_limit) status = ait_jfail(r, AIT_CODE_LIMIT, "a text of more than %zu MB", r->out_limit >> 20);
  }
  if (status) ait_text_deinit(&text);
  return status ? status : ait_jv_copy_text(r, &text, out);
}

FN(f_default) {
  UNUSED_ARGS;
  bool replace = self->kind == AIT_JV_UNDEFINED || (flag(&slots[1], false) && !ait_jv_truth(self));
  *out = !replace ? *self : slots[0].kind == AIT_JV_UNSET ? ait_jv_span("", 0) : slots[0];
  return AIT_OK;
}

static ait_status pairs(ait_jrun *r, const ait_jdict *d, ait_jlist_type type, ait_jv *out) {
  AIT_TRY(ait_jlist_new(r, type, d->count, out));
  for (uint32_t i = 0; i < d->count; ++i) {
    ait_jv pair;
    AIT_TRY(ait_jlist_new(r, AIT_JL_TUPLE, 2, &pair));
    AIT_TRY(ait_jlist_add(r, pair.as.list, d->keys[i]));
    AIT_TRY(ait_jlist_add(r, pair.as.list, d->values[i]));
    AIT_TRY(ait_jlist_add(r, out->as.list, pair));
  }
  return AIT_OK;
}

FN(f_items) {
  UNUSED_ARGS;
  static const ait_jdict none = {0};
  if (self->kind != AIT_JV_DICT && self->kind != AIT_JV_UNDEFINED)
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "Can only get item pairs from a mapping.");
  return pairs(r, self->kind == AIT_JV_DICT ? self->as.dict : &none, AIT_JL_GENERATOR, out);
}

FN(f_dictsort) {
  UNUSED_ARGS;
  ait_jv list, *items, *keys, path = ait_jv_int(0), value = ait_jv_span("value", 5);
  uint32_t count;
  if (self->kind != AIT_JV_DICT) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "dictsort of a %s", ait_jv_type(self));
  if (given(&slots[1]) && ait_jv_equal(&slots[1], &value, 0)) path = ait_jv_int(1);
  AIT_TRY(pairs(r, self->as.dict, AIT_JL_LIST, &list));
  AIT_TRY(keys_of(r, &list, &path, flag(&slots[0], false), &items, &count, &keys));
  return sorted(r, items, keys, count, flag(&slots[2], false), out);
}

FN(f_sort) {
  UNUSED_ARGS;
  ait_jv *items, *keys;
  uint32_t count;
  if (slots[2].kind == AIT_JV_STRING && memchr(slots[2].as.s, ',', slots[2].size))
    return ait_jfail(r, AIT_CODE_UNSUPPORTED, "sort by several attributes");
  AIT_TRY(keys_of(r, self, &slots[2], flag(&slots[1], false), &items, &count, &keys));
  return sorted(r, items, keys, count, flag(&slots[0], false), out);
}

FN(f_unique) {
  UNUSED_ARGS;
  ait_jv *items, *keys, seen;
  uint32_t count;
  AIT_TRY(keys_of(r, self, &slots[1], flag(&slots[0], false), &items, &count, &keys));
  AIT_TRY(ait_jlist_new(r, AIT_JL_GENERATOR, 0, out));
  AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, 0, &seen));
  for (uint32_t i = 0; i < count; ++i) {
    bool known;
    AIT_TRY(ait_jv_contains(r, &seen, &keys[i], &known));
    if (known) continue;
    AIT_TRY(ait_jlist_add(r, seen.as.list, keys[i]));
    AIT_TRY(ait_jlist_add(r, out->as.list, items[i]));
  }
  return AIT_OK;
}

static ait_status extreme(ait_jrun *r, const ait_jv *self, const ait_jv *slots, int sign, ait_jv *out) {
  ait_jv *items, *keys;
  uint32_t count, best = 0;
  AIT_TRY(keys_of(r, self, &slots[1], flag(&slots[0], false), &items, &count, &keys));
  for (uint32_t i = 1; i < count; ++i) {
    int order;
    AIT_TRY(ait_jv_compare(r, &keys[i], &keys[best], &order));
    if (order != 2 && order * sign < 0) best = i;
  }
  *out = count ? items[best] : ait_jv_undefined("an item of an empty sequence");
  return AIT_OK;
}

FN(f_min) {
  UNUSED_ARGS;
  return extreme(r, self, slots, 1, out);
}
FN(f_max) {
  UNUSED_ARGS;
  return extreme(r, self, slots, -1, out);
}

FN(f_sum) {
  UNUSED_ARGS;
  ait_jv *items, item;
  uint32_t count;
  *out = slots[1].kind == AIT_JV_UNSET ? ait_jv_int(0) : slots[1];
  AIT_TRY(ait_jv_items(r, self, &items, &count));
  for (uint32_t i = 0; i < count; ++i) {
    ait_jv before = *out;
    AIT_TRY(attribute(r, &items[i], &slots[0], &item));
    AIT_TRY(ait_jv_binary(r, AIT_JOP_ADD, &before, &item, out));
  }
  return AIT_OK;
}

FN(f_batch) {
  UNUSED_ARGS;
  ait_jv *items, row = {0};
  uint32_t count;
  int64_t size;
  AIT_TRY(int_slot(r, &slots[0], 1, &size));
  if (size < 1) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "batch wants a positive size");
  AIT_TRY(ait_jv_items(r, self, &items, &count));
  AIT_TRY(ait_jlist_new(r, AIT_JL_GENERATOR, 0, out));
  for (uint32_t i = 0; i < count; ++i) {
    if (i % (uint64_t)size == 0) {
      AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, 0, &row));
      AIT_TRY(ait_jlist_add(r, out->as.list, row));
    }
    AIT_TRY(ait_jlist_add(r, row.as.list, items[i]));
  }
  while (count && given(&slots[1]) && (int64_t)row.as.list->count < size) AIT_TRY(ait_jlist_add(r, row.as.list, slots[1]));
  return AIT_OK;
}

FN(f_attr) {
  UNUSED_ARGS;
  ait_jv name;
  AIT_TRY(ait_jv_as_string(r, &slots[0], &name));
  if (self->kind == AIT_JV_DICT && !ait_jinja_method(self, name.as.s, name.size))
    return *out = ait_jv_undefined(NULL), AIT_OK; /* members are no attributes */
  return ait_jv_attr(r, self, name.as.s, name.size, out);
}

/* The arguments behind the first `skip` positional ones. */
static ait_jargs rest(const ait_jargs *args, uint32_t skip) {
  return (ait_jargs){
      .values = args->values + skip, .names = args->names + skip, .positional = args->positional - skip, .keywords = args->keywords};
}

static ait_status name_text(ait_jrun *r, const ait_jv *v, const char **out) {
  if (v->kind != AIT_JV_STRING) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "the name of a filter or test must be a string");
  char *copy = ait_arena_strdup(&r->arena, v->as.s, v->size);
  *out = copy;
  return copy ? AIT_OK : AIT_OOM();
}

static const ait_jv *keyword(const ait_jargs *args, const char *name) {
  for (uint32_t k = args->positional; k < args->positional + args->keywords; ++k) {
    if (strcmp(args->names[k], name) == 0) return &args->values[k];
  }
  return NULL;
}

FN(f_map) {
  UNUSED_ARGS;
  ait_jv *items, item;
  uint32_t count;
  const ait_jv *path = keyword(args, "attribute"), *otherwise = keyword(args, "default");
  const char *name = NULL;
  AIT_TRY(ait_jv_items(r, self, &items, &count));
  AIT_TRY(ait_jlist_new(r, AIT_JL_GENERATOR, count, out));
  if (args->positional) AIT_TRY(name_text(r, &args->values[0], &name));
  else if (!path) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "map requires a filter argument");
  ait_jargs inner = args->positional ? rest(args, 1) : (ait_jargs){0};
  for (uint32_t i = 0; i < count; ++i) {
    if (name) AIT_TRY(ait_jinja_filter(r, name, &items[i], &inner, &item));
    else AIT_TRY(attribute(r, &items[i], path, &item));
    if (!name && item.kind == AIT_JV_UNDEFINED && otherwise) item = *otherwise;
    AIT_TRY(ait_jlist_add(r, out->as.list, item));
  }
  return AIT_OK;
}

static ait_status select_items(ait_jrun *r, const ait_jv *self, const ait_jargs *args, bool by_attribute, bool keep, ait_jv *out) {
  ait_jv *items, item;
  uint32_t count, skip = by_attribute;
  const char *name = NULL;
  if (args->positional < skip) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "Missing parameter for attribute name");
  if (args->positional > skip) AIT_TRY(name_text(r, &args->values[skip], &name));
  ait_jargs inner = rest(args, args->positional > skip ? skip + 1 : skip);
  AIT_TRY(ait_jv_items(r, self, &items, &count));
  AIT_TRY(ait_jlist_new(r, AIT_JL_GENERATOR, 0, out));
  for (uint32_t i = 0; i < count; ++i) {
    bool yes;
    item = items[i];
    if (by_attribute) AIT_TRY(attribute(r, &items[i], &args->values[0], &item));
    if (name) AIT_TRY(ait_jinja_test(r, name, &item, &inner, &yes));
    else yes = ait_jv_truth(&item);
    if (yes == keep) AIT_TRY(ait_jlist_add(r, out->as.list, items[i]));
  }
  return AIT_OK;
}

FN(f_select) {
  UNUSED_ARGS;
  return select_items(r, self, args, false, true, out);
}
FN(f_reject) {
  UNUSED_ARGS;
  return select_items(r, self, args, false, false, out);
}
FN(f_selectattr) {
  UNUSED_ARGS;
  return select_items(r, self, args, true, true, out);
}
FN(f_rejectattr) {
  UNUSED_ARGS;
  return select_items(r, self, args, true, false, out);
}

static const ait_jdef filters[] = {{"abs", "", f_abs, 0},
                                   {"attr", "name", f_attr, 1},
                                   {"batch", "linecount,fill_with", f_batch, 1},
                                   {"capitalize", "", f_capitalize, 0},
                                   {"count", "", f_length, 0},
                                   {"d", "default_value,boolean", f_default, 0},
                                   {"default", "default_value,boolean", f_default, 0},
                                   {"dictsort", "case_sensitive,by,reverse", f_dictsort, 0},
                                   {"e", "", f_escape, 0},
                                   {"escape", "", f_escape, 0},
                                   {"first", "", f_first, 0},
                                   {"float", "default", f_float, 0},
                                   {"forceescape", "", f_escape, 0},
                                   {"format", NULL, f_format, 0},
                                   {"indent", "width,first,blank", f_indent, 0},
                                   {"int", "default,base", f_int, 0},
                                   {"items", "", f_items, 0},
                                   {"join", "d,attribute", f_join, 0},
                                   {"last", "", f_last, 0},
                                   {"length", "", f_length, 0},
                                   {"list", "", f_list, 0},
                                   {"lower", "", f_lower, 0},
                                   {"map", NULL, f_map, 0},
                                   {"max", "case_sensitive,attribute", f_max, 0},
                                   {"min", "case_sensitive,attribute", f_min, 0},
                                   {"reject", NULL, f_reject, 0},
                                   {"rejectattr", NULL, f_rejectattr, 0},
                                   {"replace", "old,new,count", f_replace, 2},
                                   {"reverse", "", f_reverse, 0},
                                   {"round", "precision,method", f_round, 0},
                                   {"safe", "", f_string, 0},
                                   {"select", NULL, f_select, 0},
                                   {"selectattr", NULL, f_selectattr, 0},
                                   {"sort", "reverse,case_sensitive,attribute", f_sort, 0},
                                   {"string", "", f_string, 0},
                                   {"sum", "attribute,start", f_sum, 0},
                                   {"title", "", f_title, 0},
                                   {"tojson", "ensure_ascii,indent,separators,sort_keys", f_tojson, 0},
                                   {"trim", "chars", f_trim, 0},
                                   {"unique", "case_sensitive,attribute", f_unique, 0},
                                   {"upper", "", f_upper, 0},
                                   {"wordcount", "", f_wordcount, 0}};

ait_status ait_jinja_filter(ait_jrun *r, const char *name, const ait_jv *self, const ait_jargs *args, ait_jv *out) {
  AIT_TRY(ait_jinja_step(r, 1));
  for (size_t i = 0; i < AIT_COUNT(filters); ++i) {
    if (strcmp(filters[i].name, name) == 0) return ait_jinja_call_def(r, &filters[i], self, args, out);
  }
  return ait_jfail(r, AIT_CODE_UNSUPPORTED, "filter '%s' is not known here", name);
}

/* ---- tests
 * -----------------------------------------------------------------------------------------------------------------------------*/
static bool is_number(const ait_jv *v) { return v->kind == AIT_JV_INT || v->kind == AIT_JV_FLOAT || v->kind == AIT_JV_BOOL; }
static bool is_iterable(const ait_jv *v) {
  return v->kind == AIT_JV_UNDEFINED || v->kind == AIT_JV_STRING || v->kind == AIT_JV_LIST || v->kind == AIT_JV_DICT ||
         v->kind == AIT_JV_LOOP;
}
static bool is_sequence(const ait_jv *v) {
  return v->kind == AIT_JV_UNDEFINED || v->kind == AIT_JV_STRING || v->kind == AIT_JV_DICT ||
         (v->kind == AIT_JV_LIST && v->as.list->type <= AIT_JL_TUPLE);
}

#define TEST(name, condition)      \
  FN(name) {                       \
    UNUSED_ARGS;                   \
    *out = ait_jv_bool(condition); \
    return AIT_OK;                 \
  }
TEST(t_defined, self->kind != AIT_JV_UNDEFINED)
TEST(t_undefined, self->kind == AIT_JV_UNDEFINED)
TEST(t_none, self->kind == AIT_JV_NONE)
TEST(t_boolean, self->kind == AIT_JV_BOOL)
TEST(t_true, self->kind == AIT_JV_BOOL && self->as.b)
TEST(t_false, self->kind == AIT_JV_BOOL && !self->as.b)
TEST(t_integer, self->kind == AIT_JV_INT)
TEST(t_float, self->kind == AIT_JV_FLOAT)
TEST(t_number, is_number(self))
TEST(t_string, self->kind == AIT_JV_STRING)
TEST(t_mapping, self->kind == AIT_JV_DICT)
TEST(t_iterable, is_iterable(self))
TEST(t_sequence, is_sequence(self))
TEST(t_callable, self->kind == AIT_JV_FUNCTION || self->kind == AIT_JV_MACRO || self->kind == AIT_JV_UNDEFINED)
TEST(t_eq, ait_jv_equal(self, &slots[0], 0))
TEST(t_ne, !ait_jv_equal(self, &slots[0], 0))
TEST(t_sameas, self->kind == slots[0].kind && ait_jv_equal(self, &slots[0], 0))

FN(t_in) {
  UNUSED_ARGS;
  bool yes;
  AIT_TRY(ait_jv_contains(r, &slots[0], self, &yes));
  *out = ait_jv_bool(yes);
  return AIT_OK;
}

#define ORDER_TEST(name, condition)                      \
  FN(name) {                                             \
    UNUSED_ARGS;                                         \
    int order;                                           \
    AIT_TRY(ait_jv_compare(r, self, &slots[0], &order)); \
    *out = ait_jv_bool(order != 2 && (condition));       \
    return AIT_OK;                                       \
  }
ORDER_TEST(t_lt, order < 0)
ORDER_TEST(t_le, order <= 0)
ORDER_TEST(t_gt, order > 0)
ORDER_TEST(t_ge, order >= 0)

/* The remainder by a number: odd, even, divisibleby. */
static ait_status remainder_is(ait_jrun *r, const ait_jv *self, ait_jv by, int64_t want, ait_jv *out) {
  ait_jv rest_value, wanted = ait_jv_int(want);
  AIT_TRY(ait_jv_binary(r, AIT_JOP_MOD, self, &by, &rest_value));
  *out = ait_jv_bool(ait_jv_equal(&rest_value, &wanted, 0));
  return AIT_OK;
}
FN(t_odd) {
  UNUSED_ARGS;
  return remainder_is(r, self, ait_jv_int(2), 1, out);
}
FN(t_even) {
  UNUSED_ARGS;
  return remainder_is(r, self, ait_jv_int(2), 0, out);
}
FN(t_divisible) {
  UNUSED_ARGS;
  return remainder_is(r, self, slots[0], 0, out);
}

static ait_status is_case(ait_jrun *r, const ait_jv *self, ait_jcase how, ait_jv *out) {
  ait_jv s, changed, other;
  AIT_TRY(ait_jv_as_string(r, self, &s));
  AIT_TRY(ait_jv_case(r, &s, how, &changed));
  AIT_TRY(ait_jv_case(r, &s, how == AIT_JCASE_UPPER ? AIT_JCASE_LOWER : AIT_JCASE_UPPER, &other));
  *out = ait_jv_bool(ait_jv_equal(&s, &changed, 0) && !ait_jv_equal(&s, &other, 0));
  return AIT_OK;
}
FN(t_lower) {
  UNUSED_ARGS;
  return is_case(r, self, AIT_JCASE_LOWER, out);
}
FN(t_upper) {
  UNUSED_ARGS;
  return is_case(r, self, AIT_JCASE_UPPER, out);
}

static const ait_jdef tests[] = {{"defined", "", t_defined, 0},
                                 {"undefined", "", t_undefined, 0},
                                 {"none", "", t_none, 0},
                                 {"boolean", "", t_boolean, 0},
                                 {"true", "", t_true, 0},
                                 {"false", "", t_false, 0},
                                 {"integer", "", t_integer, 0},
                                 {"float", "", t_float, 0},
                                 {"number", "", t_number, 0},
                                 {"string", "", t_string, 0},
                                 {"mapping", "", t_mapping, 0},
                                 {"iterable", "", t_iterable, 0},
                                 {"sequence", "", t_sequence, 0},
                                 {"callable", "", t_callable, 0},
                                 {"odd", "", t_odd, 0},
                                 {"even", "", t_even, 0},
                                 {"lower", "", t_lower, 0},
                                 {"upper", "", t_upper, 0},
                                 {"divisibleby", "num", t_divisible, 1},
                                 {"in", "seq", t_in, 1},
                                 {"eq", "other", t_eq, 1},
                                 {"equalto", "other", t_eq, 1},
                                 {"==", "other", t_eq, 1},
                                 {"ne", "other", t_ne, 1},
                                 {"!=", "other", t_ne, 1},
                                 {"lt", "other", t_lt, 1},
                                 {"lessthan", "other", t_lt, 1},
                                 {"<", "other", t_lt, 1},
                                 {"le", "other", t_le, 1},
                                 {"<=", "other", t_le, 1},
                                 {"gt", "other", t_gt, 1},
                                 {"greaterthan", "other", t_gt, 1},
                                 {">", "other", t_gt, 1},
                                 {"ge", "other", t_ge, 1},
                                 {">=", "other", t_ge, 1},
                                 {"sameas", "other", t_sameas, 1}};

ait_status ait_jinja_test(ait_jrun *r, const char *name, const ait_jv *self, const ait_jargs *args, bool *out) {
  ait_jv value;
  AIT_TRY(ait_jinja_step(r, 1));
  for (size_t i = 0; i < AIT_COUNT(tests); ++i) {
    if (strcmp(tests[i].name, name) != 0) continue;
    AIT_TRY(ait_jinja_call_def(r, &tests[i], self, args, &value));
    *out = value.as.b;
    return AIT_OK;
  }
  return ait_jfail(r, AIT_CODE_UNSUPPORTED, "test '%s' is not known here", name);
}

/* ---- global functions
 * ----------------------------------------------------------------------------------------------------------------------*/
FN(g_raise) {
  UNUSED_ARGS;
  ait_jv text;
  AIT_TRY(ait_jv_as_string(r, &slots[0], &text));
  return ait_jfail(r, AIT_CODE_INVALID_ARGUMENT, "%.*s", (int)(text.size > 500 ? 500 : text.size), text.as.s);
}

FN(g_strftime) {
  UNUSED_ARGS;
  char format[200], buffer[512];
  struct tm parts;
  time_t now = (time_t)r->now;
  if (slots[0].kind != AIT_JV_STRING || slots[0].size >= sizeof format)
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "strftime_now wants a short string");
  memcpy(format, slots[0].as.s, slots[0].size);
  format[slots[0].size] = 0;
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!c) return AIT_OOM();
  gmtime_r(&now, &parts);
  size_t n = strftime_l(buffer, sizeof buffer, format, &parts, c);
  freelocale(c);
  char *copy = ait_arena_strdup(&r->arena, buffer, n);
  *out = ait_jv_span(copy, n);
  return copy ? AIT_OK : AIT_OOM();
}

FN(g_range) {
  UNUSED_ARGS;
  int64_t from = 0, to = 0, by = 1;
  AIT_TRY(int_slot(r, &slots[0], 0, &to));
  if (given(&slots[1])) {
    from = to;
    AIT_TRY(int_slot(r, &slots[1], 0, &to));
  }
  AIT_TRY(int_slot(r, &slots[2], 1, &by));
  if (by == 0) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "range() arg 3 must not be zero");
  AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, 0, out));
  for (int64_t i = from; by > 0 ? i < to : i > to;) {
    if (out->as.list->count == 100000)
      return ait_jfail(r, AIT_CODE_LIMIT, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    AIT_TRY(ait_jlist_add(r, out->as.list, ait_jv_int(i)));
    if (ait_add_overflows(i, by, &i)) break;
  }
  return AIT_OK;
}

/* dict(a=1) and namespace(a=1), both also of a mapping. */
static ait_status make_dict(ait_jrun *r, const ait_jargs *args, bool private_names, ait_jv *out) {
  AIT_TRY(ait_jdict_new(r, out));
  if (args->positional > 1 || (args->positional && args->values[0].kind != AIT_JV_DICT))
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "a mapping or keywords expected");
  for (uint32_t i = 0; args->positional && i < args->values[0].as.dict->count; ++i)
    AIT_TRY(ait_jdict_set(r, out->as.dict, args->values[0].as.dict->keys[i], args->values[0].as.dict->values[i]));
  for (uint32_t k = args->positional; k < args->positional + args->keywords; ++k) {
    if (args->names[k][0] == '_' && !private_names)
      return ait_jfail(r, AIT_CODE_INVALID_MODEL, "attributes of a namespace must not begin with '_'");
    AIT_TRY(ait_jdict_set(r, out->as.dict, ait_jv_span(args->names[k], strlen(args->names[k])), args->values[k]));
  }
  return AIT_OK;
}

FN(g_dict) {
  UNUSED_ARGS;
  return make_dict(r, args, true, out);
}
FN(g_namespace) {
  UNUSED_ARGS;
  AIT_TRY(make_dict(r, args, false, out));
  out->kind = AIT_JV_NAMESPACE;
  return AIT_OK;
}

const ait_jdef ait_jinja_functions[] = {{"raise_exception", "message", g_raise, 1}, {"strftime_now", "format", g_strftime, 1},
                                        {"range", "start,stop,step", g_range, 1},   {"dict", NULL, g_dict, 0},
                                        {"namespace", NULL, g_namespace, 0},        {NULL, NULL, NULL, 0}};
