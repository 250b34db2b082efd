/* Template text to tokens: tags, and where space around them goes (trim_blocks, lstrip_blocks, '-' and '+'). */
#include "llm/text/jinja.h"
#include "llm/text/unicode.h"
#include <stdlib.h>

enum { MAX_TOKENS = 1 << 20 };

typedef struct lexer {
  ait_arena *arena;
  const char *source;       /* newlines are "\n" */
  size_t size, at, counted; /* counted: lines up to here */
  int line;
  bool line_starting; /* what came last ended a line, or nothing came yet */
  ait_jtok *tokens;
  size_t count, capacity;
} lexer;

static int line_at(lexer *x, size_t at) {
  for (; x->counted < at; ++x->counted) x->line += x->source[x->counted] == '\n';
  return x->line;
}

static ait_status fail_at(lexer *x, size_t at, const char *what) {
  x->counted = 0, x->line = 1;
  return ait_error(AIT_CODE_INVALID_MODEL, "line %d: %s", line_at(x, at), what);
}

static ait_status add(lexer *x, ait_jtok token) {
  if (x->count == MAX_TOKENS) return ait_error(AIT_CODE_LIMIT, "more than %d tokens", MAX_TOKENS);
  AIT_TRY(ait_grow(x->arena->allocator, (void **)&x->tokens, &x->capacity, x->count + 1, sizeof *x->tokens));
  x->tokens[x->count++] = token;
  return AIT_OK;
}

static bool starts(const lexer *x, const char *text) {
  size_t n = strlen(text);
  return x->size - x->at >= n && memcmp(x->source + x->at, text, n) == 0;
}

static size_t space_end(const lexer *x, size_t at) {
  uint32_t code;
  while (at < x->size) {
    uint32_t n = ait_utf8_read(x->source + at, &code);
    if (!ait_char_is_space(code) && !(code >= 0x1C && code <= 0x1F)) break; /* Python counts the separators as space */
    at += n;
  }
  return at;
}

static size_t space_begin(const char *text, size_t end) {
  uint32_t code;
  while (end) {
    size_t last = end - 1;
    while (last && ((unsigned char)text[last] & 0xC0) == 0x80) --last;
    ait_utf8_read(text + last, &code);
    if (!ait_char_is_space(code) && !(code >= 0x1C && code <= 0x1F)) break;
    end = last;
  }
  return end;
}

/* Text [from, to) in front of a tag with that sign; block: not a variable. */
static ait_status add_text(lexer *x, size_t from, size_t to, char sign, bool block) {
  const char *text = x->source + from;
  size_t n = to - from;
  if (sign == '-') {
    n = space_begin(text, n);
  } else if (sign != '+' && block) {
    size_t line = n;
    while (line && text[line - 1] != '\n') --line;
    if ((line || x->line_starting) && line < n && space_begin(text + line, n - line) == 0) n = line;
  }
  if (n == 0) return AIT_OK;
  return add(x, (ait_jtok){.kind = AIT_JT_TEXT, .line = line_at(x, from), .text = text, .size = (uint32_t)n});
}

/* Behind the end of a tag: '-' takes all space, trim_blocks one newline. */
static void after_tag(lexer *x, char sign, bool block) {
  size_t begin = x->at;
  if (sign == '-') x->at = space_end(x, x->at);
  else if (sign != '+' && block && x->at < x->size && x->source[x->at] == '\n') ++x->at;
  x->line_starting = x->at > begin && x->source[x->at - 1] == '\n';
}

static char take_sign(lexer *x) {
  char c = x->at < x->size ? x->source[x->at] : 0;
  if (c != '-' && c != '+') return 0;
  ++x->at;
  return c;
}

/* ---- inside tags
 * -----------------------------------------------------------------------------------------------------------------------*/
static bool is_name_start(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static ait_status lex_number(lexer *x, ait_jtok *t) {
  char buffer[400];
  size_t n = 0, at = x->at;
  bool real = false;
  for (; at < x->size && n < sizeof buffer - 1; ++at) {
    char c = x->source[at], next = at + 1 < x->size ? x->source[at + 1] : 0;
    if (c == '_' && is_digit(next)) continue;
    bool sign = (c == '-' || c == '+') && n && (buffer[n - 1] == 'e' || buffer[n - 1] == 'E') && real;
    char after = at + 2 < x->size ? x->source[at + 2] : 0;
    bool exponent = (c == 'e' || c == 'E') && n && (is_digit(next) || ((next == '-' || next == '+') && is_digit(after)));
    if (!is_digit(c) && !sign && !exponent && !(c == '.' && is_digit(next) && !real)) break;
    real |= c == '.' || exponent;
    buffer[n++] = c;
  }
  buffer[n] = 0;
  x->at = at;
  t->kind = real ? AIT_JT_FLOAT : AIT_JT_INT;
  if (real) t->f = ait_parse_double(buffer, NULL);
  for (size_t i = 0; !real && i < n; ++i) {
    if (ait_mul_overflows(t->i, 10, &t->i) || ait_add_overflows(t->i, buffer[i] - '0', &t->i))
      return fail_at(x, x->at, "an integer beyond 64 bits");
  }
  return AIT_OK;
}

static int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* \xNN \uNNNN \UNNNNNNNN, octal, or NULL where the digits are missing. */
static const char *coded_escape(const char *p, const char *end, uint32_t *code) {
  int digits = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
  *code = 0;
  if (!digits) {
    for (int i = 0; i < 3 && p < end && *p >= '0' && *p <= '7'; ++i) *code = *code * 8 + (uint32_t)(*p++ - '0');
    return p;
  }
  ++p;
  for (int i = 0; i < digits; ++i, ++p) {
    if (p >= end || hex_value(*p) < 0) return NULL;
    *code = *code * 16 + (uint32_t)hex_value(*p);
  }
  return *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000) ? NULL : p;
}

static ait_status lex_string(lexer *x, ait_jtok *t) {
  static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
  char quote = x->source[x->at];
  size_t begin = x->at + 1, close = begin;
  while (close < x->size && x->source[close] != quote) close += x->source[close] == '\\' ? 2 : 1;
  if (close >= x->size) return fail_at(x, x->at, "a string without its end");
  char *text = ait_arena_alloc(x->arena, close - begin + 1, 1);
  if (!text) return AIT_OOM();
  size_t n = 0;
  for (const char *p = x->source + begin, *end = x->source + close; p < end;) {
    if (*p != '\\') {
      text[n++] = *p++;
      continue;
    }
    const char *known = *++p ? strchr(from, *p) : NULL;
    if (known) {
      text[n++] = to[known - from];
      ++p;
    } else if (*p == '\n') {
      ++p;
    } else if (*p == 'x' || *p == 'u' || *p == 'U' || (*p >= '0' && *p <= '7')) {
      uint32_t code;
      p = coded_escape(p, end, &code);
      if (!p) return fail_at(x, x->at, "an escape without its digits");
      n += ait_utf8_write(text + n, code);
    } else {
      text[n++] = '\\';
    }
  }
  text[n] = 0;
  x->at = close + 1;
  t->kind = AIT_JT_STRING;
  t->text = text;
  t->size = (uint32_t)n;
  return AIT_OK;
}

static ait_status lex_operator(lexer *x, ait_jtok *t) {
  static const char two[][3] = {"//", "**", "==", "!=", ">=", "<="};
  t->kind = AIT_JT_OP;
  for (size_t i = 0; i < AIT_COUNT(two); ++i) {
    if (!starts(x, two[i])) continue;
    memcpy(t->op, two[i], 3);
    x->at += 2;
    return AIT_OK;
  }
  char c = x->source[x->at];
  if (!c || !strchr("+-/*%~[](){}><=.:|,;", c)) return fail_at(x, x->at, "an unexpected character");
  t->op[0] = c;
  ++x->at;
  return AIT_OK;
}

static ait_status lex_one(lexer *x) {
  ait_jtok t = {.line = line_at(x, x->at)};
  char c = x->source[x->at];
  if (is_name_start(c)) {
    size_t end = x->at;
    while (end < x->size && (is_name_start(x->source[end]) || is_digit(x->source[end]))) ++end;
    t.kind = AIT_JT_NAME;
    t.size = (uint32_t)(end - x->at);
    t.text = ait_arena_strdup(x->arena, x->source + x->at, end - x->at);
    if (!t.text) return AIT_OOM();
    x->at = end;
  } else if (is_digit(c)) {
    AIT_TRY(lex_number(x, &t));
  } else if (c == '"' || c == '\'') {
    AIT_TRY(lex_string(x, &t));
  } else {
    AIT_TRY(lex_operator(x, &t));
  }
  return add(x, t);
}

/* Up to the tag's end, which does not count within brackets. */
static ait_status lex_tag(lexer *x, bool block) {
  char stack[AIT_JINJA_NESTING];
  int depth = 0;
  const char *end = block ? "%}" : "}}";
  size_t begin = x->at;
  while (true) {
    x->at = space_end(x, x->at);
    if (x->at >= x->size) return fail_at(x, begin, block ? "a '{%' without its '%}'" : "a '{{' without its '}}'");
    if (depth == 0) {
      char sign = x->source[x->at];
      size_t skip = sign == '-' || (sign == '+' && block) ? 1 : 0;
      if (x->size - x->at >= skip + 2 && memcmp(x->source + x->at + skip, end, 2) == 0) {
        AIT_TRY(add(x, (ait_jtok){.kind = block ? AIT_JT_BLOCK_END : AIT_JT_VARIABLE_END, .line = line_at(x, x->at)}));
        x->at += skip + 2;
        after_tag(x, skip ? sign : 0, block);
        return AIT_OK;
      }
    }
    AIT_TRY(lex_one(x));
    const ait_jtok *t = &x->tokens[x->count - 1];
    char c = t->kind == AIT_JT_OP && !t->op[1] ? t->op[0] : 0;
    if (c == '(' || c == '[' || c == '{') {
      if (depth == AIT_JINJA_NESTING) return fail_at(x, x->at, "brackets nested too deeply");
      stack[depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth == 0 || stack[--depth] != c) return fail_at(x, x->at - 1, "a closing bracket without its opening one");
    }
  }
}

/* Behind "{%": "raw %}"; then its text up to {% endraw %}. *done false: another tag. */
static ait_status lex_raw(lexer *x, bool *done) {
  size_t at = space_end(x, x->at), begin = x->at;
  *done = false;
  if (x->size - at < 3 || memcmp(x->source + at, "raw", 3) != 0) return AIT_OK;
  at = space_end(x, at + 3);
  char sign = at < x->size && x->source[at] == '-' ? '-' : 0;
  at += sign == '-';
  if (x->size - at < 2 || memcmp(x->source + at, "%}", 2) != 0) return AIT_OK;
  x->at = at + 2;
  if (sign == '-') x->at = space_end(x, x->at);
  x->line_starting = x->source[x->at - 1] == '\n';
  size_t text = x->at;
  for (; x->at < x->size; ++x->at) {
    if (!starts(x, "{%")) continue;
    size_t tag = x->at;
    x->at += 2;
    char open = take_sign(x);
    x->at = space_end(x, x->at);
    if (starts(x, "endraw")) {
      x->at = space_end(x, x->at + 6);
      char close = take_sign(x);
      if (starts(x, "%}")) {
        x->at += 2;
        AIT_TRY(add_text(x, text, tag, open, true));
        after_tag(x, close, true);
        *done = true;
        return AIT_OK;
      }
    }
    x->at = tag;
  }
  return fail_at(x, begin, "a raw block without its end");
}

static ait_status lex_comment(lexer *x) {
  size_t begin = x->at;
  for (; x->at + 1 < x->size; ++x->at) {
    if (!starts(x, "#}")) continue;
    char sign = x->at > begin ? x->source[x->at - 1] : 0;
    x->at += 2;
    after_tag(x, sign == '-' || sign == '+' ? sign : 0, true);
    return AIT_OK;
  }
  return fail_at(x, begin, "a comment without its end");
}

static ait_status lex_all(lexer *x) {
  size_t text = 0;
  while (x->at < x->size) {
    char kind = x->source[x->at] == '{' && x->at + 1 < x->size ? x->source[x->at + 1] : 0;
    if (kind != '%' && kind != '{' && kind != '#') {
      ++x->at;
      continue;
    }
    size_t tag = x->at;
    x->at += 2;
    char sign = take_sign(x);
    AIT_TRY(add_text(x, text, tag, sign, kind != '{'));
    bool raw = false;
    if (kind == '%') AIT_TRY(lex_raw(x, &raw));
    if (kind == '#') AIT_TRY(lex_comment(x));
    if (kind != '#' && !raw) {
      AIT_TRY(add(x, (ait_jtok){.kind = kind == '%' ? AIT_JT_BLOCK : AIT_JT_VARIABLE, .line = line_at(x, tag)}));
      AIT_TRY(lex_tag(x, kind == '%'));
    }
    text = x->at;
  }
  if (text < x->size)
    AIT_TRY(
        add(x, (ait_jtok){.kind = AIT_JT_TEXT, .line = line_at(x, text), .text = x->source + text, .size = (uint32_t)(x->size - text)}));
  return add(x, (ait_jtok){.kind = AIT_JT_END, .line = line_at(x, x->size)});
}

/* Newlines of every kind as "\n"; one at the very end does not count. */
static char *clean_source(ait_arena *arena, const char *source, size_t size, size_t *out_size) {
  char *copy = ait_arena_alloc(arena, size + 1, 1);
  size_t n = 0;
  for (size_t i = 0; copy && i < size; ++i) {
    copy[n++] = source[i] == '\r' ? '\n' : source[i];
    if (source[i] == '\r' && i + 1 < size && source[i + 1] == '\n') ++i;
  }
  if (n && copy[n - 1] == '\n') --n;
  if (copy) copy[n] = 0;
  *out_size = n;
  return copy;
}

ait_status ait_jinja_lex(ait_arena *arena, const char *source, size_t size, ait_jtok **out, size_t *out_count) {
  lexer x = {.arena = arena, .line = 1, .line_starting = true};
  if (!ait_utf8_valid(source, size)) return ait_error(AIT_CODE_INVALID_MODEL, "not UTF-8");
  x.source = clean_source(arena, source, size, &x.size);
  if (!x.source) return AIT_OOM();
  ait_status status = lex_all(&x);
  if (!status) {
    *out_count = x.count;
    *out = AIT_ARENA_ARRAY(arena, ait_jtok, x.count);
    if (*out) memcpy(*out, x.tokens, x.count * sizeof *x.tokens);
    else status = AIT_OOM();
  }
  ait_free(arena->allocator, x.tokens, x.capacity * sizeof *x.tokens);
  return status;
}
