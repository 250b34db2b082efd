/* Regular expressions of tokenizer.json: written for Oniguruma (Ruby syntax, Unicode) or Rust's regex, run by PCRE2. */
#ifndef AIT_SRC_LLM_TEXT_REGEX_H
#define AIT_SRC_LLM_TEXT_REGEX_H

#include "base/base.h"

/* Pieces of PCRE2 syntax for classes that the engines define differently. */
#define AIT_RX_SPACE "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define AIT_RX_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

/* Oniguruma's syntax as PCRE2's, appended. Errors: unsupported, invalid-model, naming the construct. */
ait_status ait_regex_translate(const char *pattern, size_t size, ait_text *out) AIT_MUST_USE;

typedef struct ait_regex ait_regex; /* shared by threads */
/* PCRE2 syntax. */
ait_status ait_regex_compile(ait_allocator a, const char *pattern, size_t size, ait_regex **out) AIT_MUST_USE;
/* Translates, then compiles. */
ait_status ait_regex_compile_onig(ait_allocator a, const char *pattern, size_t size, ait_regex **out) AIT_MUST_USE;
void ait_regex_destroy(ait_regex *regex);

typedef struct ait_regex_matcher ait_regex_matcher; /* one thread's memory for matching; serves every regex */
ait_status ait_regex_matcher_create(ait_allocator a, ait_regex_matcher **out) AIT_MUST_USE;
void ait_regex_matcher_destroy(ait_regex_matcher *matcher);
/* The first match from `from` on in valid UTF-8; *found false: none. Errors: limit (too many steps), naming the byte. */
ait_status ait_regex_find(const ait_regex *regex, ait_regex_matcher *matcher, const char *text, size_t size, size_t from, bool *found,
                          size_t *start, size_t *end) AIT_MUST_USE;

#endif
