/* The outer form of a .ait: a ZIP of stored entries whose every byte is decided by names, sizes and checksums. The reader makes the headers
 * again and compares: what is not as the writer makes it is refused. docs/format.md, "Container". */
#ifndef AIT_SRC_ARTIFACT_ZIP_H
#define AIT_SRC_ARTIFACT_ZIP_H

#include "base/base.h"

#define AIT_ZIP_ALIGN 64        /* of every entry's data */
#define AIT_ZIP_BULK_ALIGN 4096 /* of weights and blobs */
#define AIT_ZIP_MAX_NAME 512
#define AIT_ZIP_MAX_ENTRIES 1000000u

typedef struct ait_zip_entry {
  char *name; /* relative path: letters, digits, "._-/" */
  uint64_t size, header_offset, data_offset;
  uint32_t crc;
} ait_zip_entry;

/* A relative path without "..", "//" or anything a file system or a shell would take amiss. */
bool ait_zip_name_valid(const char *name, size_t length);

/* The local header, its padding included: entry->data_offset - entry->header_offset bytes. */
void ait_zip_local_header(ait_text *out, const ait_zip_entry *entry);
/* Sets data_offset for data aligned to `align`, with the header at header_offset. */
void ait_zip_place(ait_zip_entry *entry, size_t align);
/* Central directory and end records, standing at `offset`. */
void ait_zip_directory(ait_text *out, const ait_zip_entry *entries, size_t count, uint64_t offset);

/* Takes the directory of a whole file apart and checks all structure; *out (count entries, from the arena) names and places every entry.
 * Errors: invalid-model, naming the entry; out-of-memory. */
ait_status ait_zip_parse(ait_arena *arena, const uint8_t *data, size_t size, ait_zip_entry **out, size_t *out_count) AIT_MUST_USE;

#endif
