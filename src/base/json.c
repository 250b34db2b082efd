#include "base/json.h"
#include <locale.h>
#include <math.h>
#include <stdlib.h>

/* An array or object being read: its children are on the stack of values from `first` on. */
typedef struct open_container {
  size_t first;
  const char *key;
  uint32_t key_size;
  bool is_object;
} open_container;

typedef struct parser {
  ait_arena *arena;
  const char *text, *end, *at;
  ait_json *values; /* finished children of the open containers */
  size_t value_count, value_capacity;
  open_container *open;
  size_t open_count;
  locale_t c_locale; /* strtod must not follow the caller's decimal comma */
  uint64_t *hashes;  /* scratch for duplicate keys */
  size_t hash_capacity;
  unsigned flags; /* AIT_JSON_NUL … */
} parser;

static ait_status fault(const parser *p, const char *what) {
  return ait_error(AIT_CODE_INVALID_MODEL, "JSON is malformed at byte %zu: %s", (size_t)(p->at - p->text), what);
}

static void skip_space(parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t')) ++p->at;
}

static bool take(parser *p, const char *token) {
  size_t length = strlen(token);
  if ((size_t)(p->end - p->at) < length || memcmp(p->at, token, length) != 0) return false;
  p->at += length;
  return true;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits after \u; -1 when there are not four. */
static int32_t hex4(const char *s, const char *end) {
  if (end - s < 4) return -1;
  int32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    int digit = hex_digit(s[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

static char *put_utf8(char *out, uint32_t c) {
  if (c < 0x80) {
    *out++ = (char)c;
  } else if (c < 0x800) {
    *out++ = (char)(0xc0 | c >> 6);
    *out++ = (char)(0x80 | (c & 63));
  } else if (c < 0x10000) {
    *out++ = (char)(0xe0 | c >> 12);
    *out++ = (char)(0x80 | (c >> 6 & 63));
    *out++ = (char)(0x80 | (c & 63));
  } else {
    *out++ = (char)(0xf0 | c >> 18);
    *out++ = (char)(0x80 | (c >> 12 & 63));
    *out++ = (char)(0x80 | (c >> 6 & 63));
    *out++ = (char)(0x80 | (c & 63));
  }
  return out;
}

/* After \u. A lone surrogate (Python writes them for undecodable file names) becomes U+FFFD. */
static ait_status read_unicode(parser *p, const char *end, char **out) {
  int32_t c = hex4(p->at, end);
  if (c < 0) return fault(p, "\\u without four hexadecimal digits");
  if (c == 0 && !(p->flags & AIT_JSON_NUL)) return fault(p, "an escaped NUL in a string");
  p->at += 4;
  uint32_t code = (uint32_t)c;
  if (c >= 0xd800 && c < 0xdc00 && end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
    int32_t low = hex4(p->at + 2, end);
    if (low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((uint32_t)(c - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
      p->at += 6;
    }
  }
  if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
  *out = put_utf8(*out, code);
  return AIT_OK;
}

static ait_status read_escapes(parser *p, const char *end, char *out, char **out_end) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  while (p->at < end) {
    if (*p->at != '\\') {
      *out++ = *p->at++;
      continue;
    }
    ++p->at; /* an escape is never the last byte: the end of the string was found by skipping escaped bytes */
    const char *known = strchr(from, *p->at);
    if (*p->at == 'u') {
      ++p->at;
      AIT_TRY(read_unicode(p, end, &out));
    } else if (known && *known) {
      *out++ = to[known - from];
      ++p->at;
    } else {
      return fault(p, "unknown escape in a string");
    }
  }
  *out_end = out;
  return AIT_OK;
}

static ait_status read_string(parser *p, const char **out, uint32_t *out_length) {
  if (p->at == p->end || *p->at != '"') return fault(p, "a string expected");
  const char *begin = ++p->at, *end = begin;
  bool escaped = false;
  while (end < p->end && *end != '"') {
    if ((unsigned char)*end < 32) {
      p->at = end;
      return fault(p, "a control character in a string");
    }
    escaped |= *end == '\\';
    end += *end == '\\' && p->end - end > 1 ? 2 : 1;
  }
  if (end >= p->end) return fault(p, "a string has no end");
  if (end - begin > INT32_MAX) return fault(p, "a string of more than 2 GiB");
  char *copy = ait_arena_alloc(p->arena, (size_t)(end - begin) + 1, 1);
  if (!copy) return AIT_OOM();
  char *copy_end = copy + (end - begin);
  if (escaped) AIT_TRY(read_escapes(p, end, copy, &copy_end));
  else memcpy(copy, begin, (size_t)(end - begin));
  *copy_end = 0;
  p->at = end + 1;
  *out = copy;
  *out_length = (uint32_t)(copy_end - copy);
  return AIT_OK;
}

static bool is_digit(const parser *p, const char *s) { return s < p->end && *s >= '0' && *s <= '9'; }

static ait_status read_number(parser *p, ait_json *value) {
  const char *begin = p->at, *s = begin;
  bool integer = true;
  if (*s == '-') ++s;
  if (!is_digit(p, s)) return fault(p, "a value expected");
  const char *leading = s;
  while (is_digit(p, s)) ++s;
  if (*leading == '0' && s - leading > 1) return fault(p, "a number with a leading zero");
  if (s < p->end && *s == '.') {
    integer = false;
    if (!is_digit(p, ++s)) return fault(p, "a number without digits after the point");
    while (is_digit(p, s)) ++s;
  }
  if (s < p->end && (*s == 'e' || *s == 'E')) {
    integer = false;
    ++s;
    if (s < p->end && (*s == '+' || *s == '-')) ++s;
    if (!is_digit(p, s)) return fault(p, "a number without digits in its exponent");
    while (is_digit(p, s)) ++s;
  }
  if (integer) {
    uint64_t magnitude = 0, limit = (uint64_t)INT64_MAX + (*begin == '-');
    bool over = false;
    for (const char *d = leading; d < s && !over; ++d)
      over = ait_mul_overflows(magnitude, 10u, &magnitude) || ait_add_overflows(magnitude, (uint64_t)(*d - '0'), &magnitude) ||
             magnitude > limit;
    if (over && !(p->flags & AIT_JSON_LARGE)) return fault(p, "an integer beyond 64 bits");
    integer = !over;
    value->kind = AIT_JSON_INT;
    value->as.i = *begin == '-' ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
  }
  if (!integer) {
    char buffer[400];
    size_t length = (size_t)(s - begin);
    if (length >= sizeof buffer) return fault(p, "a number of too many digits");
    memcpy(buffer, begin, length);
    buffer[length] = 0;
    value->kind = AIT_JSON_FLOAT;
    value->as.f = strtod_l(buffer, NULL, p->c_locale);
    value->count = (uint32_t)(begin - p->text);
  }
  p->at = s;
  return AIT_OK;
}

static ait_status read_scalar(parser *p, ait_json *value) {
  if (p->at == p->end) return fault(p, "the text ends early");
  if (*p->at == '"') {
    value->kind = AIT_JSON_STRING;
    return read_string(p, &value->as.string, &value->count);
  }
  if (take(p, "null")) return AIT_OK;
  if (take(p, "true") || take(p, "false")) {
    value->kind = AIT_JSON_BOOL;
    value->as.b = p->at[-2] == 'u';
    return AIT_OK;
  }
  value->kind = AIT_JSON_FLOAT;
  if (take(p, "NaN")) value->as.f = NAN;
  else if (take(p, "Infinity")) value->as.f = INFINITY;
  else if (take(p, "-Infinity")) value->as.f = -INFINITY;
  else return read_number(p, value);
  return AIT_OK;
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Two keys alike would let two readers see two programs. Equal 64-bit hashes count as equal keys: the chance of a false alarm is nil. */
static ait_status check_keys(parser *p, const ait_json *members, size_t count) {
  if (count < 12) {
    for (size_t i = 0; i < count; ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (members[i].key_size == members[k].key_size && memcmp(members[i].key, members[k].key, members[i].key_size) == 0)
          return fault(p, "an object has one key twice");
      }
    }
    return AIT_OK;
  }
  AIT_TRY(ait_grow(p->arena->allocator, (void **)&p->hashes, &p->hash_capacity, count, sizeof *p->hashes));
  for (size_t i = 0; i < count; ++i) p->hashes[i] = ait_hash(members[i].key, members[i].key_size, 1);
  qsort(p->hashes, count, sizeof *p->hashes, by_value);
  for (size_t i = 1; i < count; ++i) {
    if (p->hashes[i] == p->hashes[i - 1]) return fault(p, "an object has one key twice");
  }
  return AIT_OK;
}

/* The stack is no part of the arena, but bounded by its limit all the same. */
static ait_status push_value(parser *p, const ait_json *value) {
  size_t limit = p->arena->limit_bytes / 4 / sizeof *value;
  if (limit && p->value_count >= limit)
    return ait_error(AIT_CODE_LIMIT, "JSON is malformed: %zu values in arrays and objects that have not ended", limit);
  AIT_TRY(ait_grow(p->arena->allocator, (void **)&p->values, &p->value_capacity, p->value_count + 1, sizeof *p->values));
  p->values[p->value_count++] = *value;
  return AIT_OK;
}

static ait_status open_new(parser *p, const char *key, uint32_t key_size) {
  if (p->open_count == AIT_JSON_DEPTH) return fault(p, "nested too deeply");
  p->open[p->open_count++] = (open_container){.first = p->value_count, .key = key, .key_size = key_size, .is_object = *p->at == '{'};
  ++p->at;
  return AIT_OK;
}

static ait_status close_top(parser *p) {
  open_container top = p->open[--p->open_count];
  size_t count = p->value_count - top.first;
  if (count > UINT32_MAX) return fault(p, "too many members");
  ait_json value = {
      .key = top.key, .key_size = top.key_size, .count = (uint32_t)count, .kind = top.is_object ? AIT_JSON_OBJECT : AIT_JSON_ARRAY};
  if (count) {
    if (top.is_object) AIT_TRY(check_keys(p, p->values + top.first, count));
    ait_json *items = AIT_ARENA_ARRAY(p->arena, ait_json, count);
    if (!items) return AIT_OOM();
    memcpy(items, p->values + top.first, count * sizeof *items);
    value.as.items = items;
  }
  ++p->at;
  p->value_count = top.first;
  return push_value(p, &value);
}

/* One step of the loop below: a key if the place wants one, then a scalar, or the beginning of a container. */
static ait_status read_value(parser *p) {
  ait_json value = {.kind = AIT_JSON_NULL};
  if (p->open_count && p->open[p->open_count - 1].is_object) {
    AIT_TRY(read_string(p, &value.key, &value.key_size));
    skip_space(p);
    if (!take(p, ":")) return fault(p, "':' expected");
    skip_space(p);
  }
  if (p->at < p->end && (*p->at == '{' || *p->at == '[')) return open_new(p, value.key, value.key_size);
  AIT_TRY(read_scalar(p, &value));
  return push_value(p, &value);
}

static ait_status read_document(parser *p) {
  bool fresh = true; /* a value may begin here without a comma */
  while (true) {
    skip_space(p);
    const open_container *top = p->open_count ? &p->open[p->open_count - 1] : NULL;
    bool empty = top && p->value_count == top->first;
    if (top && p->at < p->end && *p->at == (top->is_object ? '}' : ']') && (!fresh || empty)) {
      AIT_TRY(close_top(p));
      fresh = false;
    } else {
      if (top && !fresh) {
        if (!take(p, ",")) return fault(p, p->at == p->end ? "the text ends early" : "',' expected");
        skip_space(p);
      }
      size_t depth = p->open_count;
      AIT_TRY(read_value(p));
      fresh = p->open_count > depth;
    }
    if (p->open_count == 0) break;
  }
  skip_space(p);
  return p->at == p->end ? AIT_OK : fault(p, "text after the end");
}

ait_status ait_json_parse_with(ait_arena *arena, const char *text, size_t length, unsigned flags, const ait_json **out) {
  parser p = {.arena = arena, .text = text, .end = text + length, .at = text, .flags = flags};
  ait_status status = AIT_OK;
  ait_json *root = AIT_ARENA_NEW(arena, ait_json);
  if (!ait_utf8_valid(text, length)) return ait_error(AIT_CODE_INVALID_MODEL, "JSON is malformed: not UTF-8");
  p.open = ait_alloc(arena->allocator, AIT_JSON_DEPTH * sizeof *p.open, _Alignof(open_container));
  p.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!root || !p.open || !p.c_locale) {
    status = AIT_OOM();
    goto cleanup;
  }
  AIT_GOTO(read_document(&p));
  *root = p.values[0];
  *out = root;
cleanup:
  if (p.c_locale) freelocale(p.c_locale);
  if (p.open) ait_free(arena->allocator, p.open, AIT_JSON_DEPTH * sizeof *p.open);
  ait_free(arena->allocator, p.values, p.value_capacity * sizeof *p.values);
  ait_free(arena->allocator, p.hashes, p.hash_capacity * sizeof *p.hashes);
  return status;
}

ait_status ait_json_parse(ait_arena *arena, const char *text, size_t length, const ait_json **out) {
  return ait_json_parse_with(arena, text, length, 0, out);
}

const ait_json *ait_json_get(const ait_json *object, const char *key) {
  if (!object || object->kind != AIT_JSON_OBJECT) return NULL;
  for (uint32_t i = 0; i < object->count; ++i) {
    const ait_json *member = &object->as.items[i];
    if (strcmp(member->key, key) == 0) return member->kind == AIT_JSON_NULL ? NULL : member;
  }
  return NULL;
}

const ait_json *ait_json_get_kind(const ait_json *object, const char *key, ait_json_kind kind) {
  const ait_json *member = ait_json_get(object, key);
  return member && member->kind == kind ? member : NULL;
}

const char *ait_json_get_string(const ait_json *object, const char *key) {
  const ait_json *member = ait_json_get_kind(object, key, AIT_JSON_STRING);
  return member ? member->as.string : NULL;
}

bool ait_json_get_int(const ait_json *object, const char *key, int64_t *out) {
  const ait_json *member = ait_json_get_kind(object, key, AIT_JSON_INT);
  if (member) *out = member->as.i;
  return member != NULL;
}
