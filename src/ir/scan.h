/* Scanner for the text forms of the ir room: graphs and symbolic sizes. Blanks, line ends and "#" comments separate tokens. */
#ifndef AIT_SRC_IR_SCAN_H
#define AIT_SRC_IR_SCAN_H

#include "ir/ir_internal.h"

typedef struct scanner {
  const char *start, *at, *end;
  ait_graph *graph; /* strings are unescaped into its arena */
  int depth;        /* of the construct being read */
} scanner;

enum { SCAN_DEPTH_LIMIT = 250 };

/* "line 3: expected …" (invalid-model). */
ait_status scan_error(const scanner *s, const char *format, ...) AIT_PRINTF(2, 3) AIT_MUST_USE;
ait_status scan_enter(scanner *s) AIT_MUST_USE; /* one level deeper; limit error */
void scan_skip(scanner *s);
bool scan_at_end(scanner *s);
bool scan_peek(scanner *s, const char *token);
bool scan_accept(scanner *s, const char *token); /* punctuation */
ait_status scan_expect(scanner *s, const char *token) AIT_MUST_USE;
size_t scan_word_length(scanner *s); /* letters, digits, '_' and '.' ahead; not beginning with a digit or '.' */
bool scan_accept_word(scanner *s, const char *word);
ait_status scan_word(scanner *s, const char **out) AIT_MUST_USE;                       /* copied to the arena */
ait_status scan_string(scanner *s, const char **out, size_t *out_length) AIT_MUST_USE; /* "…" */
bool scan_at_digit(scanner *s);
ait_status scan_int(scanner *s, int64_t *out) AIT_MUST_USE;    /* with sign */
ait_status scan_number(scanner *s, ait_arg *out) AIT_MUST_USE; /* INT, or FLOAT when written with '.', 'e', inf or nan */

bool scan_is_name(const char *text, size_t length); /* readable as a word */
void scan_print_string(ait_text *out, const char *text, size_t length);
void scan_print_name(ait_text *out, const char *text); /* as a word where possible, else as a string */

/* dim_text.c */
ait_status scan_dim(scanner *s, ait_dim *out) AIT_MUST_USE;

#endif
