#include "ir/scan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

ait_status scan_error(const scanner *s, const char *format, ...) {
  int line = 1;
  for (const char *p = s->start; p < s->at; ++p) line += *p == '\n';
  char message[256];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  return ait_error(AIT_CODE_INVALID_MODEL, "line %d: %s", line, message);
}

ait_status scan_enter(scanner *s) {
  return ++s->depth > SCAN_DEPTH_LIMIT ? scan_error(s, "nested deeper than %d", SCAN_DEPTH_LIMIT) : AIT_OK;
}

void scan_skip(scanner *s) {
  while (s->at < s->end) {
    if (*s->at == '#') {
      while (s->at < s->end && *s->at != '\n') ++s->at;
    } else if (isspace((unsigned char)*s->at)) {
      ++s->at;
    } else {
      break;
    }
  }
}

bool scan_at_end(scanner *s) {
  scan_skip(s);
  return s->at == s->end;
}

bool scan_peek(scanner *s, const char *token) {
  scan_skip(s);
  size_t n = strlen(token);
  return (size_t)(s->end - s->at) >= n && memcmp(s->at, token, n) == 0;
}

bool scan_accept(scanner *s, const char *token) {
  if (!scan_peek(s, token)) return false;
  s->at += strlen(token);
  return true;
}

ait_status scan_expect(scanner *s, const char *token) { return scan_accept(s, token) ? AIT_OK : scan_error(s, "expected '%s'", token); }

static bool word_start(char c) { return isalpha((unsigned char)c) || c == '_'; }
static bool word_part(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

size_t scan_word_length(scanner *s) {
  scan_skip(s);
  const char *p = s->at;
  if (p == s->end || !word_start(*p)) return 0;
  while (p < s->end && word_part(*p)) ++p;
  return (size_t)(p - s->at);
}

bool scan_accept_word(scanner *s, const char *word) {
  size_t n = scan_word_length(s);
  if (n != strlen(word) || memcmp(s->at, word, n) != 0) return false;
  s->at += n;
  return true;
}

ait_status scan_word(scanner *s, const char **out) {
  size_t n = scan_word_length(s);
  if (n == 0) return scan_error(s, "expected a name");
  *out = ait_arena_strdup(s->graph->arena, s->at, n);
  if (!*out) return AIT_OOM();
  s->at += n;
  return AIT_OK;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character after a backslash; -1: no such escape. Moves past it. */
static int unescape(scanner *s) {
  char c = s->at < s->end ? *s->at++ : '\0';
  if (c == '"' || c == '\\') return c;
  if (c == 'n') return '\n';
  if (c == 't') return '\t';
  if (c != 'x' || s->end - s->at < 2) return -1;
  int high = hex_digit(s->at[0]), low = hex_digit(s->at[1]);
  s->at += 2;
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

ait_status scan_string(scanner *s, const char **out, size_t *out_length) {
  AIT_TRY(scan_expect(s, "\""));
  const char *close = s->at;
  while (close < s->end && *close != '"') close += *close == '\\' && s->end - close > 1 ? 2 : 1;
  if (close == s->end) return scan_error(s, "unclosed string");
  char *text = ait_arena_alloc(s->graph->arena, (size_t)(close - s->at) + 1, 1);
  if (!text) return AIT_OOM();
  size_t n = 0;
  while (s->at < close) {
    int c = (unsigned char)*s->at++;
    if (c == '\\' && (c = unescape(s)) < 0) return scan_error(s, "no such escape in a string");
    text[n++] = (char)c;
  }
  text[n] = '\0';
  ++s->at;
  *out = text;
  if (out_length) *out_length = n;
  return AIT_OK;
}

bool scan_at_digit(scanner *s) {
  scan_skip(s);
  return s->at < s->end && isdigit((unsigned char)*s->at);
}

/* Copies what may belong to a number, so that the C library sees a terminated text. */
static size_t number_text(scanner *s, char *out, size_t size) {
  scan_skip(s);
  size_t n = 0;
  const char *p = s->at;
  if (p < s->end && *p == '-') out[n++] = *p++;
  for (; p < s->end && n + 1 < size; ++p) {
    bool exponent_sign = (*p == '-' || *p == '+') && n > 0 && (out[n - 1] == 'e');
    if (!isalnum((unsigned char)*p) && *p != '.' && !exponent_sign) break;
    out[n++] = *p;
  }
  out[n] = '\0';
  return n;
}

ait_status scan_int(scanner *s, int64_t *out) {
  ait_arg arg;
  AIT_TRY(scan_number(s, &arg));
  if (arg.kind != AIT_ARG_INT) return scan_error(s, "expected a whole number");
  *out = arg.as.i;
  return AIT_OK;
}

ait_status scan_number(scanner *s, ait_arg *out) {
  char text[64], *end;
  size_t n = number_text(s, text, sizeof text);
  bool whole = n > 0 && !strpbrk(text, ".eni"); /* a decimal point, an exponent, nan, inf */
  errno = 0;
  if (whole) *out = ait_arg_int(strtoll(text, &end, 10));
  else *out = ait_arg_float(ait_parse_double(text, &end));
  bool bad = n == 0 || *end != '\0' || !(isdigit((unsigned char)text[n - 1]) || !whole) || (whole && errno == ERANGE);
  if (bad) return scan_error(s, "expected a number");
  s->at += n;
  return AIT_OK;
}

bool scan_is_name(const char *text, size_t length) {
  if (length == 0 || !word_start(text[0])) return false;
  for (size_t i = 0; i < length; ++i) {
    if (!word_part(text[i])) return false;
  }
  return true;
}

void scan_print_string(ait_text *out, const char *text, size_t length) {
  ait_text_append(out, "\"", 1);
  for (size_t i = 0; i < length; ++i) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\') ait_text_printf(out, "\\%c", c);
    else if (c == '\n') ait_text_append(out, "\\n", 2);
    else if (c == '\t') ait_text_append(out, "\\t", 2);
    else if (c < ' ' || c == 0x7f) ait_text_printf(out, "\\x%02x", c);
    else ait_text_append(out, &text[i], 1);
  }
  ait_text_append(out, "\"", 1);
}

void scan_print_name(ait_text *out, const char *text) {
  size_t length = strlen(text);
  if (scan_is_name(text, length)) ait_text_append(out, text, length);
  else scan_print_string(out, text, length);
}
