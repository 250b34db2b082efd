/* A strict, read-only view of a ZIP file in memory. Nothing is copied but names: members that are stored can be used where they lie.
 *
 * Refused when opening, naming the member: names that are absolute, hold "..", NUL or invalid UTF-8; two members of one name; symbolic
 * links; encryption; methods other than stored and deflated; local headers that disagree with the directory; members that overlap or
 * reach beyond the file. Not thread-safe; the memory must outlive the view. */
#ifndef AIT_SRC_IMPORT_PT2_ZIP_H
#define AIT_SRC_IMPORT_PT2_ZIP_H

#include "base/base.h"

typedef struct ait_zip_member {
  const char *name;      /* NUL-terminated */
  const uint8_t *stored; /* the bytes in the file */
  uint64_t stored_size, size;
  uint64_t record_offset; /* of the local header */
  uint32_t crc;
  bool deflated;
} ait_zip_member;

typedef struct ait_zip {
  const uint8_t *data;
  size_t size;
  ait_zip_member *members; /* in the order of the directory */
  size_t count;
  uint32_t *slots; /* open addressing over names: member + 1, 0 is free */
  size_t slot_count;
} ait_zip;

/* Members and names come from the arena. Errors: invalid-model, unsupported, limit, out-of-memory. */
ait_status ait_zip_open(ait_arena *arena, const uint8_t *data, size_t size, ait_zip *out) AIT_MUST_USE;
/* NULL when there is none. */
const ait_zip_member *ait_zip_find(const ait_zip *zip, const char *name);

/* CRC of a stored member's bytes. Errors: invalid-model. */
ait_status ait_zip_check(const ait_zip_member *member) AIT_MUST_USE;
/* Writes the member's `size` bytes to out, inflating where needed, and checks the CRC. Errors: invalid-model, out-of-memory. */
ait_status ait_zip_extract(ait_allocator a, const ait_zip_member *member, uint8_t *out) AIT_MUST_USE;
/* Takes a deflated member's size from the budget that all inflating of one import shares; stored members are free. Errors: limit. */
ait_status ait_zip_spend(const ait_zip_member *member, uint64_t *budget) AIT_MUST_USE;
/* The contents, CRC checked: in place when stored, else inflated into the arena, within the budget. Errors: invalid-model, limit,
 * out-of-memory. */
ait_status ait_zip_contents(ait_arena *arena, const ait_zip_member *member, uint64_t *budget, const uint8_t **out,
                            size_t *out_size) AIT_MUST_USE;

#endif
