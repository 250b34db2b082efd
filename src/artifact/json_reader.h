/* Reads JSON from untrusted bytes front to back, without a tree: what is not wanted is skipped at the speed of memory.
 *
 *   ait_json_reader r; ait_json_read_init(&r, data, size);
 *   for (ait_json_read_enter(&r, '{'); ait_json_read_next(&r);) {
 *     if (ait_json_read_key_is(&r, "format")) format = ait_json_read_int(&r); else ait_json_read_skip(&r);
 *   }
 *   if (r.failed) …
 *
 * After a fault everything returns nothing and `failed` stays set. */
#ifndef AIT_SRC_ARTIFACT_JSON_READER_H
#define AIT_SRC_ARTIFACT_JSON_READER_H

#include "base/base.h"

#define AIT_JSON_MAX_DEPTH 64

typedef struct ait_json_reader {
  const char *p, *end;
  const char *key; /* of the current member: as written, escapes not resolved */
  size_t key_length;
  int depth;
  bool failed, out_of_memory, started[AIT_JSON_MAX_DEPTH];
  char closer[AIT_JSON_MAX_DEPTH];
} ait_json_reader;

void ait_json_read_init(ait_json_reader *r, const char *data, size_t size);
void ait_json_read_enter(ait_json_reader *r, char opener); /* '{' or '[' must stand here */
bool ait_json_read_next(ait_json_reader *r); /* at another element (or member: its key is set); false: the container is done */
bool ait_json_read_key_is(const ait_json_reader *r, const char *key);
int64_t ait_json_read_int(ait_json_reader *r);                       /* no fraction, no exponent, within int64 */
bool ait_json_read_at(const ait_json_reader *r, char first);         /* does the value begin with this character? */
char *ait_json_read_string(ait_json_reader *r, ait_arena *arena);    /* escapes resolved; NULL on fault */
const char *ait_json_read_raw(ait_json_reader *r, size_t *out_size); /* skips, and gives the value's own text; NULL on fault */
void ait_json_read_skip(ait_json_reader *r);
void ait_json_read_end(ait_json_reader *r); /* nothing but space may follow */

#endif
