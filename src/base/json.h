/* JSON as torch writes it, into one compact tree in an arena. A value takes 32 bytes whatever its kind: a program of 30 MB of JSON has
 * millions of one-member objects, and a hash table for each of them (json-c: 800 bytes) would take gigabytes.
 *
 * Strict RFC 8259, plus the bare tokens NaN, Infinity and -Infinity of torch 2.6. Refused: invalid UTF-8, escaped NUL, duplicate keys,
 * integers beyond 64 bits, nesting deeper than AIT_JSON_DEPTH, text after the value. Numbers without point and exponent are exact. */
#ifndef AIT_SRC_BASE_JSON_H
#define AIT_SRC_BASE_JSON_H

#include "base/base.h"

enum { AIT_JSON_DEPTH = 1000 };

typedef enum ait_json_kind {
  AIT_JSON_NULL,
  AIT_JSON_BOOL,
  AIT_JSON_INT,
  AIT_JSON_FLOAT,
  AIT_JSON_STRING,
  AIT_JSON_ARRAY,
  AIT_JSON_OBJECT,
} ait_json_kind;

typedef struct ait_json {
  const char *key; /* of a member of an object, else NULL; NUL-terminated */
  uint32_t count;  /* items, members, or bytes of the string; of a float, where in the text its digits begin (mod 2^32) */
  uint32_t key_size;
  ait_json_kind kind;
  union {
    int64_t i;
    double f;
    bool b;
    const char *string; /* NUL-terminated */
    const struct ait_json *items;
  } as;
} ait_json;

/* The tree lies in the arena and does not point into text. Errors (invalid-model) tell the byte offset. */
ait_status ait_json_parse(ait_arena *arena, const char *text, size_t length, const ait_json **out) AIT_MUST_USE;
enum {
  AIT_JSON_NUL = 1,   /* strings and keys may hold an escaped NUL: only `count` and `key_size` tell how long they are */
  AIT_JSON_LARGE = 2, /* an integer beyond 64 bits is the nearest float (transformers writes "model_max_length": 10^30) */
};
ait_status ait_json_parse_with(ait_arena *arena, const char *text, size_t length, unsigned flags, const ait_json **out) AIT_MUST_USE;

/* The member, or NULL: when `object` is NULL or no object, or has no such member, or its value is null (torch 2.6 leaves members out where
 * later releases write null). Linear: objects of torch are small; large ones are walked. */
const ait_json *ait_json_get(const ait_json *object, const char *key);
/* The member when it has that kind, else NULL. */
const ait_json *ait_json_get_kind(const ait_json *object, const char *key, ait_json_kind kind);
/* NULL when absent or no string. */
const char *ait_json_get_string(const ait_json *object, const char *key);
bool ait_json_get_int(const ait_json *object, const char *key, int64_t *out);

#endif
