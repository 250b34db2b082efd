/* Characters: UTF-8 steps, classes, case, normal forms. Tables are utf8proc's (Unicode 14 or later). */
#ifndef AIT_SRC_LLM_TEXT_UNICODE_H
#define AIT_SRC_LLM_TEXT_UNICODE_H

#include "base/base.h"

#define AIT_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* One step over bytes of any kind. > 0: the length of a character, *out its code; < 0: a maximal ill-formed part of that many bytes
 * (Unicode 3.9, what Python and Rust replace by one U+FFFD); 0: the bytes end within a character (or there are none). */
int ait_utf8_step(const char *s, size_t size, uint32_t *out);
/* Over text that is known to be UTF-8: the length of the character, *out its code. */
static inline uint32_t ait_utf8_read(const char *s, uint32_t *out) {
  const unsigned char *b = (const unsigned char *)s;
  if (b[0] < 0x80) return *out = b[0], 1;
  if (b[0] < 0xE0) return *out = (uint32_t)(b[0] & 31) << 6 | (b[1] & 63), 2;
  if (b[0] < 0xF0) return *out = (uint32_t)(b[0] & 15) << 12 | (uint32_t)(b[1] & 63) << 6 | (b[2] & 63), 3;
  return *out = (uint32_t)(b[0] & 7) << 18 | (uint32_t)(b[1] & 63) << 12 | (uint32_t)(b[2] & 63) << 6 | (b[3] & 63), 4;
}
uint32_t ait_utf8_write(char out[4], uint32_t code); /* length */
size_t ait_utf8_count(const char *s, size_t size);   /* characters */

bool ait_char_is_space(uint32_t c);       /* White_Space */
bool ait_char_ends_line(uint32_t c);      /* for Python's splitlines */
bool ait_char_is_punctuation(uint32_t c); /* ASCII's, or category P */
bool ait_char_is_numeric(uint32_t c);     /* Nd, Nl, No */
bool ait_char_is_mark(uint32_t c);        /* M */
bool ait_char_is_mark_nonspacing(uint32_t c);
bool ait_char_is_other(uint32_t c); /* control, format, private, surrogate */
bool ait_char_is_cjk(uint32_t c);   /* what BERT puts spaces around */
/* One or two characters. */
int ait_char_lower(uint32_t c, uint32_t out[2]);

typedef enum ait_normal_form { AIT_NFC, AIT_NFD, AIT_NFKC, AIT_NFKD } ait_normal_form;
/* Below it every character is its own normal form and no later one changes it. */
uint32_t ait_normal_safe_below(ait_normal_form form);
bool ait_normal_unknown(uint32_t c); /* stands for itself in every form, whatever the tables say (young.inc) */
/* Codes of a piece of text, normalised; *out from the allocator (free capacity * sizeof), at least one element. */
ait_status ait_normalize(ait_allocator a, const char *s, size_t size, ait_normal_form form, int32_t **codes, size_t *capacity,
                         size_t *out_count) AIT_MUST_USE;
/* What young.inc says of a character, and its ranges without a script, as "\\x{…}-\\x{…}". */
enum { AIT_YOUNG_NORMAL = 1, AIT_YOUNG_CATEGORY = 2, AIT_YOUNG_SCRIPT = 4 };
void ait_young_class(ait_text *out);
/* Is there a boundary of extended grapheme clusters between two neighbours? *state starts with 0 at each text. */
bool ait_grapheme_break(uint32_t a, uint32_t b, int32_t *state);

#endif
