/* Writing JSON documents: one member after the other; *first is true before the first of an object. */
#ifndef AIT_SRC_TUNE_PUT_JSON_H
#define AIT_SRC_TUNE_PUT_JSON_H

#include "base/base.h"

void ait_put_key(ait_text *text, bool *first, const char *key);
void ait_put_string(ait_text *text, bool *first, const char *key, const char *value); /* NULL: null */
void ait_put_int(ait_text *text, bool *first, const char *key, int64_t value);
void ait_put_double(ait_text *text, bool *first, const char *key, double value);
void ait_put_bool(ait_text *text, bool *first, const char *key, bool value);
/* Hands the text over as a string for ait_string_free and ends it. */
ait_status ait_put_finish(ait_text *text, char **out) AIT_MUST_USE;

#endif
