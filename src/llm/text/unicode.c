#include "llm/text/unicode.h"
#include <utf8proc.h>

int ait_utf8_step(const char *s, size_t size, uint32_t *out) {
  const unsigned char *b = (const unsigned char *)s;
  if (size == 0) return 0;
  if (b[0] < 0x80) return *out = b[0], 1;
  if (b[0] < 0xC2 || b[0] > 0xF4) return -1;
  int length = b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
  unsigned low = b[0] == 0xE0 ? 0xA0 : b[0] == 0xF0 ? 0x90 : 0x80, high = b[0] == 0xED ? 0x9F : b[0] == 0xF4 ? 0x8F : 0xBF;
  uint32_t code = b[0] & (0x7Fu >> length);
  for (int i = 1; i < length; ++i) {
    if ((size_t)i == size) return 0;
    if (b[i] < low || b[i] > high) return -i;
    code = code << 6 | (b[i] & 63);
    low = 0x80, high = 0xBF;
  }
  *out = code;
  return length;
}

uint32_t ait_utf8_write(char out[4], uint32_t c) { return (uint32_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)out); }

size_t ait_utf8_count(const char *s, size_t size) {
  size_t n = 0;
  for (size_t i = 0; i < size; ++i) n += ((unsigned char)s[i] & 0xC0) != 0x80;
  return n;
}

bool ait_char_is_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

/* ---- characters that the library does not know yet ----------------------------------------------------------------------------------*/
static const struct young {
  uint32_t first, last;
  int flags;
} young[] = {
#define AIT_YOUNG(first, last, flags) {first, last, flags},
#include "llm/text/young.inc"
#undef AIT_YOUNG
};

static bool is_young(uint32_t c, int flag) {
  if (c < young[0].first) return false;
  size_t low = 0, high = AIT_COUNT(young);
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (young[middle].last < c) low = middle + 1;
    else high = middle;
  }
  return low < AIT_COUNT(young) && young[low].first <= c && (young[low].flags & flag);
}

void ait_young_class(ait_text *out) {
  for (size_t i = 0; i < AIT_COUNT(young); ++i) {
    if (young[i].flags & AIT_YOUNG_SCRIPT) ait_text_printf(out, "\\x{%X}-\\x{%X}", young[i].first, young[i].last);
  }
}

/* ---- classes -------------------------------------------------------------------------------------------------------------------------*/
bool ait_char_ends_line(uint32_t c) {
  return (c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static utf8proc_category_t category(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c); }

bool ait_char_is_punctuation(uint32_t c) {
  if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO && !is_young(c, AIT_YOUNG_CATEGORY);
}

bool ait_char_is_numeric(uint32_t c) {
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool ait_char_is_mark(uint32_t c) {
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME && !is_young(c, AIT_YOUNG_NORMAL);
}

bool ait_char_is_mark_nonspacing(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_MN && !is_young(c, AIT_YOUNG_CATEGORY); }

bool ait_char_is_other(uint32_t c) {
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_CC && k <= UTF8PROC_CATEGORY_CO && !is_young(c, AIT_YOUNG_CATEGORY);
}

bool ait_char_is_cjk(uint32_t c) {
  static const uint32_t ranges[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                       {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  if (c < 0x3400) return false;
  for (size_t i = 0; i < AIT_COUNT(ranges); ++i) {
    if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
  }
  return false;
}

int ait_char_lower(uint32_t c, uint32_t out[2]) {
  out[1] = 0;
  if (c == 0x130) return out[0] = 'i', out[1] = 0x307, 2; /* the only one-to-two mapping (SpecialCasing.txt) without a condition */
  out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
  return 1;
}

bool ait_normal_unknown(uint32_t c) { return is_young(c, AIT_YOUNG_NORMAL); }

uint32_t ait_normal_safe_below(ait_normal_form form) { return form == AIT_NFC ? 0x300 : form == AIT_NFD ? 0xC0 : 0xA0; }

ait_status ait_normalize(ait_allocator a, const char *s, size_t size, ait_normal_form form, int32_t **codes, size_t *capacity,
                         size_t *out_count) {
  bool compose = form == AIT_NFC || form == AIT_NFKC, compat = form == AIT_NFKC || form == AIT_NFKD;
  utf8proc_option_t options =
      (utf8proc_option_t)(UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compat ? UTF8PROC_COMPAT : 0));
  while (true) {
    utf8proc_ssize_t n =
        utf8proc_decompose((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)size, *codes, (utf8proc_ssize_t)*capacity, options);
    if (n < 0) return ait_error(AIT_CODE_INTERNAL, "cannot normalise text: %s", utf8proc_errmsg(n));
    if ((size_t)n <= *capacity) {
      n = utf8proc_normalize_utf32(*codes, n, options);
      if (n < 0) return ait_error(AIT_CODE_INTERNAL, "cannot normalise text: %s", utf8proc_errmsg(n));
      *out_count = (size_t)n;
      return AIT_OK;
    }
    AIT_TRY(ait_grow(a, (void **)codes, capacity, (size_t)n, sizeof **codes));
  }
}

bool ait_grapheme_break(uint32_t a, uint32_t b, int32_t *state) {
  return utf8proc_grapheme_break_stateful((utf8proc_int32_t)a, (utf8proc_int32_t)b, state);
}
