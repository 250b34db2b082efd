/* Operators and subscripts, as Python has them and jinja's sandbox allows them; texts: case, strip, replace, %. */
#include "llm/text/jinja.h"
#include "llm/text/unicode.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

static bool real(const ait_jv *v, double *out) {
  if (v->kind == AIT_JV_FLOAT) *out = v->as.f;
  else if (v->kind == AIT_JV_INT) *out = (double)v->as.i;
  else if (v->kind == AIT_JV_BOOL) *out = v->as.b;
  else return false;
  return true;
}

static bool whole(const ait_jv *v, int64_t *out) {
  if (v->kind == AIT_JV_INT) *out = v->as.i;
  else if (v->kind == AIT_JV_BOOL) *out = v->as.b;
  else return false;
  return true;
}

/* ---- numbers
 * -----------------------------------------------------------------------------------------------------------------------------*/
static ait_status too_large(ait_jrun *r) { return ait_jfail(r, AIT_CODE_LIMIT, "an integer beyond 64 bits"); }
static ait_status by_zero(ait_jrun *r) { return ait_jfail(r, AIT_CODE_INVALID_MODEL, "division by zero"); }

static ait_status int_power(ait_jrun *r, int64_t a, int64_t b, ait_jv *out) {
  int64_t result = 1;
  if (b < 0) return a == 0 ? by_zero(r) : (*out = ait_jv_float(pow((double)a, (double)b)), AIT_OK);
  if (b > 64 && a != 0 && a != 1 && a != -1) return too_large(r);
  if (b > 64) b = 64 + b % 2;
  for (int64_t i = 0; i < b; ++i) {
    if (ait_mul_overflows(result, a, &result)) return too_large(r);
  }
  *out = ait_jv_int(result);
  return AIT_OK;
}

static ait_status int_binary(ait_jrun *r, ait_jop op, int64_t a, int64_t b, ait_jv *out) {
  int64_t result = 0;
  bool over = false;
  switch (op) {
    case AIT_JOP_ADD: over = ait_add_overflows(a, b, &result); break;
    case AIT_JOP_SUB: over = __builtin_sub_overflow(a, b, &result); break;
    case AIT_JOP_MUL: over = ait_mul_overflows(a, b, &result); break;
    case AIT_JOP_POW: return int_power(r, a, b, out);
    case AIT_JOP_DIV:
      if (b == 0) return by_zero(r);
      *out = ait_jv_float((double)a / (double)b);
      return AIT_OK;
    default:
      if (b == 0) return by_zero(r);
      if (a == INT64_MIN && b == -1) return too_large(r);
      result = op == AIT_JOP_MOD ? a % b : a / b; /* towards zero; Python goes down */
      if (a % b != 0 && (a % b < 0) != (b < 0)) result += op == AIT_JOP_MOD ? b : -1;
  }
  *out = ait_jv_int(result);
  return over ? too_large(r) : AIT_OK;
}

static ait_status real_binary(ait_jrun *r, ait_jop op, double a, double b, ait_jv *out) {
  double mod;
  switch (op) {
    case AIT_JOP_ADD: *out = ait_jv_float(a + b); return AIT_OK;
    case AIT_JOP_SUB: *out = ait_jv_float(a - b); return AIT_OK;
    case AIT_JOP_MUL: *out = ait_jv_float(a * b); return AIT_OK;
    case AIT_JOP_POW: *out = ait_jv_float(pow(a, b)); return AIT_OK;
    default: break;
  }
  if (b == 0) return by_zero(r);
  if (op == AIT_JOP_DIV) return *out = ait_jv_float(a / b), AIT_OK;
  mod = fmod(a, b);
  if (mod != 0 && (b < 0) != (mod < 0)) mod += b;
  *out = ait_jv_float(op == AIT_JOP_MOD ? mod : floor((a - mod) / b + 0.5));
  return AIT_OK;
}

/* ---- sequences
 * -----------------------------------------------------------------------------------------------------------------------------*/
static ait_status join_texts(ait_jrun *r, const ait_jv *a, const ait_jv *b, ait_jv *out) {
  size_t size = (size_t)a->size + b->size;
  AIT_TRY(ait_jinja_step(r, 1 + size / 256));
  if (size > r->out_limit) return ait_jfail(r, AIT_CODE_LIMIT, "a text of more than %zu MB", r->out_limit >> 20);
  char *text = ait_arena_alloc(&r->arena, size + 1, 1);
  if (!text) return ait_jfail(r, AIT_CODE_LIMIT, "the template takes too much memory");
  memcpy(text, a->as.s, a->size);
  memcpy(text + a->size, b->as.s, b->size);
  text[size] = 0;
  *out = ait_jv_span(text, size);
  return AIT_OK;
}

static ait_status join_lists(ait_jrun *r, const ait_jlist *a, const ait_jlist *b, ait_jv *out) {
  AIT_TRY(ait_jinja_step(r, (uint64_t)a->count + b->count));
  AIT_TRY(ait_jlist_new(r, a->type, a->count + b->count + 1, out));
  for (uint32_t i = 0; i < a->count; ++i) AIT_TRY(ait_jlist_add(r, out->as.list, a->items[i]));
  for (uint32_t i = 0; i < b->count; ++i) AIT_TRY(ait_jlist_add(r, out->as.list, b->items[i]));
  return AIT_OK;
}

static ait_status repeat(ait_jrun *r, const ait_jv *v, int64_t times, ait_jv *out) {
  uint64_t n = times < 0 ? 0 : (uint64_t)times, unit = v->kind == AIT_JV_STRING ? v->size : v->as.list->count, total;
  if (ait_mul_overflows(n, unit, &total) || total > r->out_limit)
    return ait_jfail(r, AIT_CODE_LIMIT, "a sequence of more than %zu MB", r->out_limit >> 20);
  if (v->kind == AIT_JV_LIST) {
    AIT_TRY(ait_jlist_new(r, v->as.list->type, 0, out));
    for (uint64_t i = 0; i < total; ++i) AIT_TRY(ait_jlist_add(r, out->as.list, v->as.list->items[i % unit]));
    return AIT_OK;
  }
  AIT_TRY(ait_jinja_step(r, 1 + total / 256));
  char *text = ait_arena_alloc(&r->arena, total + 1, 1);
  if (!text) return ait_jfail(r, AIT_CODE_LIMIT, "the template takes too much memory");
  for (uint64_t i = 0; unit && i < n; ++i) memcpy(text + i * unit, v->as.s, unit);
  *out = ait_jv_span(text, total);
  return AIT_OK;
}

static bool is_sequence(const ait_jv *v) {
  return v->kind == AIT_JV_STRING || (v->kind == AIT_JV_LIST && v->as.list->type <= AIT_JL_TUPLE);
}

ait_status ait_jv_binary(ait_jrun *r, ait_jop op, const ait_jv *a, const ait_jv *b, ait_jv *out) {
  int64_t i, k;
  double x, y;
  const ait_jv *undefined = a->kind == AIT_JV_UNDEFINED ? a : b->kind == AIT_JV_UNDEFINED ? b : NULL;
  if (op == AIT_JOP_CONCAT) {
    ait_jv left, right;
    AIT_TRY(ait_jv_as_string(r, a, &left));
    AIT_TRY(ait_jv_as_string(r, b, &right));
    return join_texts(r, &left, &right, out);
  }
  if (undefined) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'%s' is undefined", undefined->as.s ? undefined->as.s : "");
  if (whole(a, &i) && whole(b, &k)) return int_binary(r, op, i, k, out);
  if (real(a, &x) && real(b, &y)) return real_binary(r, op, x, y, out);
  if (op == AIT_JOP_ADD && a->kind == AIT_JV_STRING && b->kind == AIT_JV_STRING) return join_texts(r, a, b, out);
  if (op == AIT_JOP_ADD && a->kind == AIT_JV_LIST && b->kind == AIT_JV_LIST && is_sequence(a) && a->as.list->type == b->as.list->type)
    return join_lists(r, a->as.list, b->as.list, out);
  if (op == AIT_JOP_MUL && is_sequence(a) && whole(b, &k)) return repeat(r, a, k, out);
  if (op == AIT_JOP_MUL && is_sequence(b) && whole(a, &k)) return repeat(r, b, k, out);
  if (op == AIT_JOP_MOD && a->kind == AIT_JV_STRING) return ait_jv_percent(r, a, b, out);
  static const char *const signs[] = {"", "+", "-", "*", "/", "//", "%", "**"};
  return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'%s' does not go between '%s' and '%s'", signs[op], ait_jv_type(a), ait_jv_type(b));
}

/* ---- subscripts
 * --------------------------------------------------------------------------------------------------------------------------*/
/* The byte where the n-th character begins. */
static uint32_t char_at(const ait_jv *v, int64_t n) {
  uint32_t at = 0, code;
  for (; n > 0 && at < v->size; --n) at += ait_utf8_read(v->as.s + at, &code);
  return at;
}

static ait_status undefined_base(ait_jrun *r, const ait_jv *v, const char *what, size_t size) {
  return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'%s' is undefined, it has no '%.*s'", v->as.s ? v->as.s : "a value", (int)size, what);
}

ait_status ait_jv_item(ait_jrun *r, const ait_jv *v, const ait_jv *key, ait_jv *out) {
  int64_t i, length;
  AIT_TRY(ait_jinja_step(r, 1));
  bool name = key->kind == AIT_JV_STRING;
  if (v->kind == AIT_JV_UNDEFINED) return undefined_base(r, v, name ? key->as.s : "item", name ? key->size : 4);
  *out = ait_jv_undefined(NULL);
  if (v->kind == AIT_JV_DICT) {
    const ait_jv *found = ait_jdict_get(v->as.dict, key);
    AIT_TRY(ait_jinja_step(r, v->as.dict->count / 16));
    if (found) return *out = *found, AIT_OK;
  } else if ((v->kind == AIT_JV_LIST && v->as.list->type <= AIT_JL_TUPLE) || v->kind == AIT_JV_STRING) {
    if (whole(key, &i)) {
      AIT_TRY(ait_jv_length(r, v, &length));
      if (i < 0) i += length;
      if (i < 0 || i >= length) return AIT_OK;
      if (v->kind == AIT_JV_LIST) return *out = v->as.list->items[i], AIT_OK;
      uint32_t at = char_at(v, i), code;
      *out = ait_jv_span(v->as.s + at, ait_utf8_read(v->as.s + at, &code));
      return AIT_OK;
    }
  }
  return name ? ait_jv_attr(r, v, key->as.s, key->size, out) : AIT_OK;
}

static ait_jv loop_attr(const ait_jloop *l, const char *name, size_t size) {
  struct {
    const char *name;
    ait_jv value;
  } known[] = {{"index", ait_jv_int((int64_t)l->index + 1)},
               {"index0", ait_jv_int(l->index)},
               {"revindex", ait_jv_int((int64_t)l->count - l->index)},
               {"revindex0", ait_jv_int((int64_t)l->count - l->index - 1)},
               {"first", ait_jv_bool(l->index == 0)},
               {"last", ait_jv_bool(l->index + 1 == l->count)},
               {"length", ait_jv_int(l->count)},
               {"depth", ait_jv_int(1)},
               {"depth0", ait_jv_int(0)},
               {"previtem", l->index ? l->items[l->index - 1] : ait_jv_undefined("there is no previous item")},
               {"nextitem", l->index + 1 < l->count ? l->items[l->index + 1] : ait_jv_undefined("there is no next item")}};
  for (size_t i = 0; i < AIT_COUNT(known); ++i) {
    if (strlen(known[i].name) == size && memcmp(known[i].name, name, size) == 0) return known[i].value;
  }
  return ait_jv_undefined(NULL);
}

ait_status ait_jv_attr(ait_jrun *r, const ait_jv *v, const char *name, size_t size, ait_jv *out) {
  AIT_TRY(ait_jinja_step(r, 1));
  if (v->kind == AIT_JV_UNDEFINED) return undefined_base(r, v, name, size);
  const ait_jdef *method = ait_jinja_method(v, name, size);
  char *copy = ait_arena_strdup(&r->arena, name, size);
  if (!copy) return AIT_OOM();
  if (ait_jinja_method_unsafe(v, name, size))
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'%s' of a %s would change it: not allowed in templates", copy, ait_jv_type(v));
  *out = ait_jv_undefined(copy);
  if (method) {
    ait_jbound *bound = AIT_ARENA_NEW(&r->arena, ait_jbound);
    if (!bound) return AIT_OOM();
    *bound = (ait_jbound){*v, method};
    *out = (ait_jv){.kind = AIT_JV_FUNCTION, .as.bound = bound};
    return AIT_OK;
  }
  if (v->kind == AIT_JV_LOOP) {
    *out = loop_attr(v->as.loop, name, size);
  } else if (v->kind == AIT_JV_DICT || v->kind == AIT_JV_NAMESPACE) {
    const ait_jv *found = ait_jdict_find(v->as.dict, name, size);
    if (found) *out = *found;
  } else if (v->kind == AIT_JV_MACRO && size == 4 && memcmp(name, "name", 4) == 0) {
    *out = v->as.macro->name ? ait_jv_span(v->as.macro->name, strlen(v->as.macro->name)) : ait_jv_none();
  }
  return AIT_OK;
}

static ait_status bound(ait_jrun *r, const ait_jv *v, int64_t length, int64_t low, int64_t high, int64_t absent, int64_t *out) {
  if (v->kind == AIT_JV_UNSET || v->kind == AIT_JV_NONE) return *out = absent, AIT_OK;
  if (!whole(v, out)) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "slice indices must be integers or None");
  if (*out < 0) *out = *out < -length - 1 ? low : *out + length;
  *out = *out < low ? low : *out > high ? high : *out;
  return AIT_OK;
}

ait_status ait_jv_slice(ait_jrun *r, const ait_jv *v, const ait_jv *start, const ait_jv *stop, const ait_jv *step, ait_jv *out) {
  int64_t length, by = 1, from, to;
  ait_jv *items;
  uint32_t count;
  if (v->kind == AIT_JV_UNDEFINED) return undefined_base(r, v, "slice", 5);
  if (!is_sequence(v)) return *out = ait_jv_undefined(NULL), AIT_OK;
  if (step->kind != AIT_JV_UNSET && step->kind != AIT_JV_NONE && (!whole(step, &by) || by == 0))
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "slice step must be an integer that is not zero");
  AIT_TRY(ait_jv_length(r, v, &length));
  AIT_TRY(bound(r, start, length, by < 0 ? -1 : 0, by < 0 ? length - 1 : length, by < 0 ? length - 1 : 0, &from));
  AIT_TRY(bound(r, stop, length, by < 0 ? -1 : 0, by < 0 ? length - 1 : length, by < 0 ? -1 : length, &to));
  if (v->kind == AIT_JV_STRING && by == 1) {
    uint32_t begin = char_at(v, from), end = to > from ? char_at(v, to) : begin;
    *out = ait_jv_span(v->as.s + begin, end - begin);
    return ait_jinja_step(r, 1 + v->size / 64);
  }
  AIT_TRY(ait_jv_items(r, v, &items, &count));
  AIT_TRY(ait_jlist_new(r, v->kind == AIT_JV_LIST ? v->as.list->type : AIT_JL_LIST, 0, out));
  for (int64_t i = from; by > 0 ? i < to : i > to;) {
    AIT_TRY(ait_jlist_add(r, out->as.list, items[i]));
    if (ait_add_overflows(i, by, &i)) break;
  }
  if (v->kind == AIT_JV_LIST) return AIT_OK;
  ait_text text;
  ait_text_init(&text, r->arena.allocator);
  for (uint32_t i = 0; i < out->as.list->count; ++i) ait_text_append(&text, out->as.list->items[i].as.s, out->as.list->items[i].size);
  return ait_jv_copy_text(r, &text, out);
}

/* ---- texts
 * -------------------------------------------------------------------------------------------------------------------------------*/
static bool is_space(uint32_t c) { return ait_char_is_space(c) || (c >= 0x1C && c <= 0x1F); }

static bool in_chars(const ait_jv *chars, uint32_t c) {
  if (chars->kind != AIT_JV_STRING) return is_space(c);
  uint32_t code;
  for (uint32_t i = 0; i < chars->size;) {
    i += ait_utf8_read(chars->as.s + i, &code);
    if (code == c) return true;
  }
  return false;
}

ait_jv ait_jv_strip(const ait_jv *v, const ait_jv *chars, bool left, bool right) {
  uint32_t begin = 0, end = v->size, code;
  while (left && begin < end) {
    uint32_t n = ait_utf8_read(v->as.s + begin, &code);
    if (!in_chars(chars, code)) break;
    begin += n;
  }
  while (right && end > begin) {
    uint32_t last = end - 1;
    while (((unsigned char)v->as.s[last] & 0xC0) == 0x80) --last;
    ait_utf8_read(v->as.s + last, &code);
    if (!in_chars(chars, code)) break;
    end = last;
  }
  return ait_jv_span(v->as.s + begin, end - begin);
}

static bool is_cased(uint32_t c) {
  utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT;
}

static uint32_t upper_case(ait_text *out, uint32_t c) {
  char bytes[4];
  if (c == 0xDF) return ait_text_append(out, "SS", 2), 0; /* the usual one of the mappings to several characters */
  ait_text_append(out, bytes, ait_utf8_write(bytes, (uint32_t)utf8proc_toupper((utf8proc_int32_t)c)));
  return 0;
}

static void lower_case(ait_text *out, uint32_t c) {
  uint32_t lower[2];
  char bytes[4];
  int n = ait_char_lower(c, lower);
  for (int i = 0; i < n; ++i) ait_text_append(out, bytes, ait_utf8_write(bytes, lower[i]));
}

ait_status ait_jv_case(ait_jrun *r, const ait_jv *v, ait_jcase how, ait_jv *out) {
  ait_text text;
  bool before = false; /* a cased character came before */
  AIT_TRY(ait_jinja_step(r, 1 + v->size / 64));
  ait_text_init(&text, r->arena.allocator);
  for (uint32_t i = 0; i < v->size;) {
    uint32_t code, at = i;
    i += ait_utf8_read(v->as.s + i, &code);
    bool upper = how == AIT_JCASE_UPPER || (how == AIT_JCASE_CAPITALIZE && at == 0) || (how == AIT_JCASE_TITLE && !before) ||
                 (how == AIT_JCASE_SWAP && utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_LL);
    if (upper) upper_case(&text, code);
    else lower_case(&text, code);
    before = is_cased(code);
  }
  return ait_jv_copy_text(r, &text, out);
}

ait_status ait_jv_replace(ait_jrun *r, const ait_jv *v, const ait_jv *from, const ait_jv *to, int64_t count, ait_jv *out) {
  ait_text text;
  uint32_t at = 0, code;
  ait_text_init(&text, r->arena.allocator);
  for (ait_status status = AIT_OK; count != 0; --count) {
    const char *hit = from->size ? memmem(v->as.s + at, v->size - at, from->as.s, from->size) : v->as.s + at;
    if (!status) status = ait_jinja_step(r, 1);
    if (!status && text.length > r->out_limit) status = ait_jfail(r, AIT_CODE_LIMIT, "a text of more than %zu MB", r->out_limit >> 20);
    if (status) {
      ait_text_deinit(&text);
      return status;
    }
    if (!hit) break;
    uint32_t end = (uint32_t)(hit - v->as.s);
    ait_text_append(&text, v->as.s + at, end - at);
    ait_text_append(&text, to->as.s, to->size);
    at = end + from->size;
    if (from->size) continue;
    if (at == v->size) break; /* an empty pattern: before each character and at the end */
    uint32_t n = ait_utf8_read(v->as.s + at, &code);
    ait_text_append(&text, v->as.s + at, n);
    at += n;
  }
  ait_text_append(&text, v->as.s + at, v->size - at);
  return ait_jv_copy_text(r, &text, out);
}

/* One %… of a format; p behind the '%'. Returns what follows, NULL on a fault (*status says which). */
static const char *percent_one(ait_jrun *r, const char *p, const char *end, const ait_jv *value, ait_text *out, ait_status *status) {
  char spec[24] = "%";
  size_t n = 1;
  double x;
  int64_t i;
  while (p < end && n < 12 && (strchr("-+ #0.", *p) || (*p >= '0' && *p <= '9')) && *p) spec[n++] = *p++;
  char kind = p < end ? *p++ : 0;
  ait_jv text;
  if ((kind == 's' || kind == 'r') && n == 1) {
    *status = kind == 's' ? ait_jv_str(r, value, out) : ait_jv_repr(r, value, out, 0);
  } else if (kind == 's') {
    *status = ait_jv_as_string(r, value, &text);
    if (!*status) memcpy(spec + n, "s", 2), ait_text_printf(out, "%*.*s", atoi(spec + 1 + (spec[1] == '.')), (int)text.size, text.as.s);
  } else if (strchr("dix", kind) && kind && real(value, &x)) {
    i = value->kind == AIT_JV_FLOAT ? (int64_t)x : 0;
    if (value->kind != AIT_JV_FLOAT) whole(value, &i);
    memcpy(spec + n, kind == 'x' ? "llx" : "lld", 4);
    char buffer[160];
    snprintf(buffer, sizeof buffer, spec, (long long)i);
    ait_text_printf(out, "%s", buffer);
  } else if (strchr("feg", kind) && kind && real(value, &x)) {
    spec[n] = kind, spec[n + 1] = 0;
    char buffer[160];
    snprintf(buffer, sizeof buffer, spec, x);
    for (char *c = buffer; *c; ++c) *c = *c == ',' ? '.' : *c;
    ait_text_printf(out, "%s", buffer);
  } else {
    *status = ait_jfail(r, AIT_CODE_UNSUPPORTED, "'%%%c' of a %s in a format", kind ? kind : ' ', ait_jv_type(value));
  }
  return *status ? NULL : p;
}

ait_status ait_jv_percent(ait_jrun *r, const ait_jv *format, const ait_jv *values, ait_jv *out) {
  bool tuple = values->kind == AIT_JV_LIST && values->as.list->type == AIT_JL_TUPLE;
  const ait_jv *items = tuple ? values->as.list->items : values;
  uint32_t count = tuple ? values->as.list->count : 1, used = 0;
  ait_status status = AIT_OK;
  ait_text text;
  ait_text_init(&text, r->arena.allocator);
  for (const char *p = format->as.s, *end = p + format->size; p && p < end && !status;) {
    if (*p != '%') {
      ait_text_append(&text, p++, 1);
    } else if (p + 1 < end && p[1] == '%') {
      ait_text_append(&text, "%", 1);
      p += 2;
    } else if (used == count) {
      status = ait_jfail(r, AIT_CODE_INVALID_MODEL, "not enough arguments for format string");
    } else {
      p = percent_one(r, p + 1, end, &items[used++], &text, &status);
    }
  }
  if (!status && used < count && !(values->kind == AIT_JV_DICT))
    status = ait_jfail(r, AIT_CODE_INVALID_MODEL, "not all arguments converted during string formatting");
  if (status) ait_text_deinit(&text);
  return status ? status : ait_jv_copy_text(r, &text, out);
}
