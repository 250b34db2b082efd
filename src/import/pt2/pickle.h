/* Pickles, read as data. The machine builds tuples, lists, dicts and records; it has no way to call anything: a REDUCE of os.system gives
 * an inert record that says so. Whoever reads the result knows the few calls that stand for tensors (weights.c) and nothing else. */
#ifndef AIT_SRC_IMPORT_PT2_PICKLE_H
#define AIT_SRC_IMPORT_PT2_PICKLE_H

#include "base/base.h"

typedef enum ait_pickle_kind {
  AIT_PICKLE_NONE,
  AIT_PICKLE_BOOL,
  AIT_PICKLE_INT,
  AIT_PICKLE_FLOAT,
  AIT_PICKLE_STRING, /* and bytes */
  AIT_PICKLE_TUPLE,
  AIT_PICKLE_LIST,
  AIT_PICKLE_DICT,       /* items: key, value, key, value, … */
  AIT_PICKLE_GLOBAL,     /* a name: "module name" */
  AIT_PICKLE_CALL,       /* items: callable, arguments, and the state of BUILD when there was one */
  AIT_PICKLE_PERSISTENT, /* items: the id */
} ait_pickle_kind;

typedef struct ait_pickle {
  ait_pickle_kind kind;
  uint32_t count, capacity; /* of items; of a string: bytes */
  union {
    bool b;
    int64_t i;
    double f;
    const char *string; /* NUL-terminated; may hold NUL when it was bytes */
    struct ait_pickle **items;
  } as;
} ait_pickle;

/* Everything lies in the arena. Lists and dicts may contain themselves: walk with a limit. Errors: invalid-model with the byte offset,
 * unsupported for opcodes that torch does not write. */
ait_status ait_pickle_parse(ait_arena *arena, const uint8_t *data, size_t size, const ait_pickle **out) AIT_MUST_USE;

/* NULL when value is no dict or has no such string key. The last one wins, as in Python. */
const ait_pickle *ait_pickle_get(const ait_pickle *dict, const char *key);
bool ait_pickle_is_global(const ait_pickle *value, const char *name); /* "torch._utils _rebuild_tensor_v2" */
/* A call of that global: its argument tuple. NULL when value is something else. */
const ait_pickle *ait_pickle_call(const ait_pickle *value, const char *name);
/* What value is, for messages: "a call of 'os system'", "a dict", … Written to out. */
const char *ait_pickle_describe(const ait_pickle *value, char *out, size_t size);

#endif
