/* Strings to ids and back. Built once, then only read. */
#ifndef AIT_SRC_LLM_TEXT_VOCAB_H
#define AIT_SRC_LLM_TEXT_VOCAB_H

#include "base/base.h"

typedef struct ait_vocab_entry {
  const char *text; /* lives as long as the arena */
  uint32_t size, hash;
  int32_t id;
} ait_vocab_entry;

typedef struct ait_vocab {
  ait_arena *arena;
  ait_vocab_entry *entries;
  uint32_t *slots; /* entry + 1; 0: free */
  int32_t *by_id;  /* entry, -1: none */
  uint32_t count, capacity, slot_mask;
  int32_t id_limit; /* largest id + 1 */
  uint32_t longest; /* bytes */
} ait_vocab;

/* For exactly up to `capacity` strings. */
ait_status ait_vocab_init(ait_vocab *vocab, ait_arena *arena, size_t capacity) AIT_MUST_USE;
/* The text is not copied. A string that is there already gets the new id. */
ait_status ait_vocab_add(ait_vocab *vocab, const char *text, size_t size, int64_t id) AIT_MUST_USE;
/* After the last add: makes by_id. Errors: limit, when ids are far sparser than strings. */
ait_status ait_vocab_seal(ait_vocab *vocab) AIT_MUST_USE;
int32_t ait_vocab_find(const ait_vocab *vocab, const char *text, size_t size); /* -1: none */
const ait_vocab_entry *ait_vocab_at(const ait_vocab *vocab, int32_t id);       /* NULL: none */

#endif
