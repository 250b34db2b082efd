/* Growing text, JSON output, UTF-8. */
#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

void ait_text_init(ait_text *text, ait_allocator allocator) { *text = (ait_text){.allocator = allocator}; }

void ait_text_deinit(ait_text *text) {
  ait_free(text->allocator, text->data, text->capacity);
  ait_text_init(text, text->allocator);
}

/* Room for `more` characters and the NUL. */
static bool text_reserve(ait_text *text, size_t more) {
  if (text->failed) return false;
  size_t needed;
  if (ait_add_overflows(text->length, more, &needed) || ait_add_overflows(needed, (size_t)1, &needed)) {
    text->failed = true;
    return false;
  }
  if (needed > text->capacity) {
    void *data = text->data;
    ait_status status = ait_grow(text->allocator, &data, &text->capacity, needed, 1);
    text->data = data;
    text->failed = status != AIT_OK;
    ait_status_free(status);
  }
  return !text->failed;
}

void ait_text_append(ait_text *text, const void *data, size_t length) {
  if (!text_reserve(text, length)) return;
  if (length) memcpy(text->data + text->length, data, length);
  text->length += length;
  text->data[text->length] = '\0';
}

void ait_text_printf(ait_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0) text->failed = true;
  if (length < 0 || !text_reserve(text, (size_t)length)) return;
  va_start(args, format);
  vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
  va_end(args);
  text->length += (size_t)length;
}

/* Length in bytes of the UTF-8 sequence at p (RFC 3629: shortest forms, no surrogates, up to U+10FFFF); 0 when there is none. */
static size_t utf8_sequence(const uint8_t *p, size_t left) {
  uint8_t c = p[0];
  if (c < 0x80) return 1;
  size_t length = c >= 0xC2 && c <= 0xDF ? 2 : (c & 0xF0) == 0xE0 ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
  if (length == 0 || length > left) return 0;
  uint8_t low = 0x80, high = 0xBF; /* of the second byte */
  if (c == 0xE0) low = 0xA0;
  if (c == 0xED) high = 0x9F;
  if (c == 0xF0) low = 0x90;
  if (c == 0xF4) high = 0x8F;
  if (p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < length; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool ait_utf8_valid(const char *data, size_t length) {
  const uint8_t *p = (const uint8_t *)data;
  for (size_t i = 0; i < length;) {
    size_t n = utf8_sequence(p + i, length - i);
    if (n == 0) return false;
    i += n;
  }
  return true;
}

static void json_escape(ait_text *text, uint8_t c) {
  static const char letters[][2] = {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}};
  for (size_t i = 0; i < AIT_COUNT(letters); i++) {
    if ((uint8_t)letters[i][0] == c) {
      char pair[2] = {'\\', letters[i][1]};
      ait_text_append(text, pair, 2);
      return;
    }
  }
  ait_text_printf(text, "\\u%04x", c);
}

void ait_text_json_string(ait_text *text, const char *value, size_t length) {
  const uint8_t *p = (const uint8_t *)value;
  ait_text_append(text, "\"", 1);
  size_t plain = 0, i = 0; /* [plain, i) is copied as it stands */
  while (i < length) {
    size_t n = utf8_sequence(p + i, length - i);
    bool special = n == 0 || p[i] < 0x20 || p[i] == 0x7F || p[i] == '"' || p[i] == '\\';
    if (!special) {
      i += n;
      continue;
    }
    ait_text_append(text, p + plain, i - plain);
    if (n == 0) ait_text_append(text, "\xEF\xBF\xBD", 3);
    else json_escape(text, p[i]);
    plain = ++i;
  }
  ait_text_append(text, p + plain, i - plain);
  ait_text_append(text, "\"", 1);
}

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double ait_parse_double(const char *text, char **out_end) {
  pthread_once(&c_locale_once, make_c_locale);
  return c_locale ? strtod_l(text, out_end, c_locale) : strtod(text, out_end);
}

void ait_format_double(char out[48], int precision, double value) {
  char raw[48];
  snprintf(raw, sizeof raw, "%.*g", precision, value);
  /* The host's locale may write another decimal point, of several bytes even. */
  size_t n = 0;
  for (const char *p = raw; *p; p++) {
    if (strchr("0123456789+-einfa", *p)) out[n++] = *p;
    else if (n == 0 || out[n - 1] != '.') out[n++] = '.';
  }
  out[n] = 0;
}

void ait_text_json_double(ait_text *text, double value) {
  if (!isfinite(value)) {
    ait_text_printf(text, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return;
  }
  char decimal[48];
  for (int digits = isnormal(value) ? 15 : 1; digits <= 17; digits++) { /* %g drops zeros, so 15 digits serve for fewer */
    ait_format_double(decimal, digits, value);
    if (ait_parse_double(decimal, NULL) == value) break;
  }
  ait_text_append(text, decimal, strlen(decimal));
}

bool ait_starts_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

bool ait_ends_with(const char *text, const char *suffix) {
  size_t length = strlen(text), tail = strlen(suffix);
  return tail <= length && memcmp(text + length - tail, suffix, tail) == 0;
}
