#include "artifact/json_reader.h"

static void skip_space(ait_json_reader *r) {
  while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t')) ++r->p;
}

static bool fail(ait_json_reader *r) {
  r->failed = true;
  r->p = r->end;
  return false;
}

static bool take(ait_json_reader *r, char c) {
  if (r->p == r->end || *r->p != c) return false;
  ++r->p;
  return true;
}

void ait_json_read_init(ait_json_reader *r, const char *data, size_t size) {
  *r = (ait_json_reader){.p = data, .end = data + size};
  skip_space(r);
}

void ait_json_read_enter(ait_json_reader *r, char opener) {
  if (r->failed || r->depth == AIT_JSON_MAX_DEPTH || !take(r, opener)) {
    fail(r);
    return;
  }
  r->started[r->depth] = false;
  r->closer[r->depth] = opener == '{' ? '}' : ']';
  ++r->depth;
  skip_space(r);
}

/* Past the string; *out_begin..*out_length is what stands between the quotes. */
static bool raw_string(ait_json_reader *r, const char **out_begin, size_t *out_length) {
  if (!take(r, '"')) return fail(r);
  const char *begin = r->p;
  for (;; ++r->p) {
    if (r->p == r->end || (unsigned char)*r->p < 0x20) return fail(r);
    if (*r->p == '"') break;
    if (*r->p == '\\' && ++r->p == r->end) return fail(r);
  }
  *out_begin = begin;
  *out_length = (size_t)(r->p - begin);
  ++r->p;
  return true;
}

bool ait_json_read_next(ait_json_reader *r) {
  if (r->failed || r->depth == 0) return false;
  skip_space(r);
  int top = r->depth - 1;
  if (take(r, r->closer[top])) {
    --r->depth;
    skip_space(r);
    return false;
  }
  if (r->started[top] && !take(r, ',')) return fail(r);
  r->started[top] = true;
  skip_space(r);
  if (r->closer[top] == '}') {
    if (!raw_string(r, &r->key, &r->key_length)) return false;
    skip_space(r);
    if (!take(r, ':')) return fail(r);
    skip_space(r);
  }
  if (r->p == r->end || *r->p == r->closer[top]) return fail(r);
  return true;
}

bool ait_json_read_key_is(const ait_json_reader *r, const char *key) {
  return !r->failed && strlen(key) == r->key_length && memcmp(key, r->key, r->key_length) == 0;
}

bool ait_json_read_at(const ait_json_reader *r, char first) { return r->p < r->end && *r->p == first; }

int64_t ait_json_read_int(ait_json_reader *r) {
  bool negative = take(r, '-');
  int64_t v = 0;
  const char *begin = r->p;
  for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; ++r->p) {
    int64_t digit = *r->p - '0';
    if (ait_mul_overflows(v, (int64_t)10, &v) || __builtin_sub_overflow(v, digit, &v)) { /* downwards: INT64_MIN has no positive twin */
      fail(r);
      return 0;
    }
  }
  bool ended =
      r->p == r->end || *r->p == ',' || *r->p == '}' || *r->p == ']' || *r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t';
  if (r->failed || r->p == begin || !ended || (!negative && v == INT64_MIN)) {
    fail(r);
    return 0;
  }
  return negative ? v : -v;
}

/* ---- strings ---------------------------------------------------------------------------------------------------------------------*/
static bool hex4(const char *p, const char *end, uint32_t *out) {
  *out = 0;
  if (end - p < 4) return false;
  for (int i = 0; i < 4; ++i) {
    char c = p[i];
    uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                            : 16;
    if (digit == 16) return false;
    *out = *out << 4 | digit;
  }
  return true;
}

static char *put_utf8(char *q, uint32_t c) {
  if (c < 0x80) {
    *q++ = (char)c;
  } else if (c < 0x800) {
    *q++ = (char)(0xc0 | c >> 6);
    *q++ = (char)(0x80 | (c & 63));
  } else if (c < 0x10000) {
    *q++ = (char)(0xe0 | c >> 12);
    *q++ = (char)(0x80 | (c >> 6 & 63));
    *q++ = (char)(0x80 | (c & 63));
  } else {
    *q++ = (char)(0xf0 | c >> 18);
    *q++ = (char)(0x80 | (c >> 12 & 63));
    *q++ = (char)(0x80 | (c >> 6 & 63));
    *q++ = (char)(0x80 | (c & 63));
  }
  return q;
}

/* After "\u": one code point, from one or two units. NUL and lone surrogates are faults. */
static const char *code_point(const char *p, const char *end, uint32_t *out) {
  uint32_t low;
  if (!hex4(p, end, out) || *out == 0 || (*out >= 0xdc00 && *out < 0xe000)) return NULL;
  p += 4;
  if (*out < 0xd800 || *out >= 0xe000) return p;
  if (end - p < 6 || p[0] != '\\' || p[1] != 'u' || !hex4(p + 2, end, &low) || low < 0xdc00 || low >= 0xe000) return NULL;
  *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
  return p + 6;
}

char *ait_json_read_string(ait_json_reader *r, ait_arena *arena) {
  static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  const char *p;
  size_t length;
  if (r->failed || !raw_string(r, &p, &length)) return NULL;
  const char *end = p + length;
  char *text = ait_arena_alloc(arena, length + 1, 1), *q = text; /* no escape is shorter than what it stands for */
  if (!text) {
    r->out_of_memory = true;
    fail(r);
    return NULL;
  }
  while (p < end) {
    if (*p != '\\') {
      *q++ = *p++;
      continue;
    }
    ++p;
    const char *known = strchr(escapes, *p);
    uint32_t c;
    if (*p == 'u' && (p = code_point(p + 1, end, &c)) != NULL) {
      q = put_utf8(q, c);
    } else if (p && known && *p) {
      *q++ = meanings[known - escapes];
      ++p;
    } else {
      fail(r);
      return NULL;
    }
  }
  *q = 0;
  if (!ait_utf8_valid(text, (size_t)(q - text))) {
    fail(r);
    return NULL;
  }
  return text;
}

/* ---- skipping --------------------------------------------------------------------------------------------------------------------*/
static void skip_scalar(ait_json_reader *r) {
  const char *begin = r->p, *ignored;
  size_t length;
  if (ait_json_read_at(r, '"')) {
    raw_string(r, &ignored, &length);
    return;
  }
  while (r->p < r->end &&
         (*r->p == '+' || *r->p == '-' || *r->p == '.' || (*r->p >= '0' && *r->p <= '9') || (*r->p >= 'a' && *r->p <= 'z') || *r->p == 'E'))
    ++r->p;
  if (r->p == begin) fail(r);
}

void ait_json_read_skip(ait_json_reader *r) {
  int base = r->depth;
  do {
    if (r->failed) return;
    if (ait_json_read_at(r, '{') || ait_json_read_at(r, '[')) ait_json_read_enter(r, *r->p);
    else skip_scalar(r);
    while (!r->failed && r->depth > base && !ait_json_read_next(r)) continue; /* closes every container that ends here */
  } while (r->depth > base);
}

const char *ait_json_read_raw(ait_json_reader *r, size_t *out_size) {
  skip_space(r);
  const char *begin = r->p;
  ait_json_read_skip(r);
  const char *end = r->p;
  while (end > begin && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\r' || end[-1] == '\t')) --end;
  *out_size = r->failed ? 0 : (size_t)(end - begin);
  return r->failed ? NULL : begin;
}

void ait_json_read_end(ait_json_reader *r) {
  skip_space(r);
  if (r->p != r->end || r->depth) fail(r);
}
