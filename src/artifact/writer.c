/* Entry by entry into a file that appears only when it is whole. */
#include "artifact/artifact.h"
#include "artifact/checksum.h"
#include "artifact/signature.h"
#include "artifact/zip.h"

struct ait_artifact_writer {
  ait_allocator allocator;
  ait_arena arena; /* names */
  ait_file_writer *file;
  ait_zip_entry *entries;
  size_t count, capacity;
  ait_map names;
  ait_text sha256, sums, scratch;
};

ait_status ait_artifact_create(ait_allocator a, const char *path, ait_artifact_writer **out) {
  *out = NULL;
  ait_artifact_writer *w = ait_alloc_zero(a, sizeof *w, _Alignof(ait_artifact_writer));
  if (!w) return AIT_OOM();
  w->allocator = a;
  ait_arena_init(&w->arena, a);
  ait_map_init(&w->names, a);
  ait_text_init(&w->sha256, a);
  ait_text_init(&w->sums, a);
  ait_text_init(&w->scratch, a);
  ait_status status = ait_file_writer_create(a, path, &w->file);
  if (status) {
    ait_artifact_writer_destroy(w);
    return status;
  }
  *out = w;
  return AIT_OK;
}

void ait_artifact_writer_destroy(ait_artifact_writer *w) {
  if (!w) return;
  ait_file_writer_destroy(w->file);
  ait_free(w->allocator, w->entries, w->capacity * sizeof *w->entries);
  ait_text_deinit(&w->scratch);
  ait_text_deinit(&w->sums);
  ait_text_deinit(&w->sha256);
  ait_map_deinit(&w->names);
  ait_arena_deinit(&w->arena);
  ait_free(w->allocator, w, sizeof *w);
}

static ait_status write_text(ait_artifact_writer *w, const ait_text *text) {
  return text->failed ? AIT_OOM() : ait_file_writer_write(w->file, text->data, text->length);
}

/* Header and data; no checksum lines. */
static ait_status write_entry(ait_artifact_writer *w, const char *name, const void *data, size_t size, size_t align) {
  void *entries = w->entries;
  ait_status status = ait_grow(w->allocator, &entries, &w->capacity, w->count + 1, sizeof *w->entries);
  w->entries = entries;
  AIT_TRY(status);
  AIT_TRY(ait_map_put(&w->names, name, w));
  ait_zip_entry *e = &w->entries[w->count];
  *e = (ait_zip_entry){.size = size, .crc = ait_crc32(0, data, size), .header_offset = ait_file_writer_offset(w->file)};
  e->name = ait_arena_strdup(&w->arena, name, strlen(name));
  if (!e->name) return AIT_OOM();
  ait_zip_place(e, align);
  w->scratch.length = 0;
  ait_zip_local_header(&w->scratch, e);
  AIT_TRY(write_text(w, &w->scratch));
  ++w->count;
  return size ? ait_file_writer_write(w->file, data, size) : AIT_OK;
}

ait_status ait_artifact_add(ait_artifact_writer *w, const char *entry, const void *data, size_t size, size_t align) {
  if (!ait_zip_name_valid(entry, strlen(entry))) return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' cannot name an entry", entry);
  if (ait_map_get(&w->names, entry, NULL)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "two entries are named '%s'", entry);
  if (align < AIT_ZIP_ALIGN) align = AIT_ZIP_ALIGN;
  if (align > AIT_ZIP_BULK_ALIGN || (align & (align - 1)))
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "entry '%s': alignment %zu", entry, align);
  char hex[AIT_SHA256_HEX + 1];
  uint64_t sum;
  AIT_TRY(ait_sha256_hex(data, size, hex));
  AIT_TRY(ait_sum(w->allocator, data, size, &sum));
  ait_text_printf(&w->sha256, "%s  %s\n", hex, entry);
  ait_text_printf(&w->sums, "%016llx  %s\n", (unsigned long long)sum, entry);
  return write_entry(w, entry, data, size, align);
}

ait_status ait_artifact_add_signature(ait_artifact_writer *w, const ait_private_key *key) {
  ait_text entry;
  if (w->sha256.failed) return AIT_OOM();
  ait_text_init(&entry, w->allocator);
  ait_status status = ait_signature_format(key, w->sha256.data, w->sha256.length, &entry);
  if (!status) status = ait_artifact_add(w, AIT_ENTRY_SIGNATURE, entry.data, entry.length, AIT_ZIP_ALIGN);
  ait_text_deinit(&entry);
  return status;
}

ait_status ait_artifact_finish(ait_artifact_writer *w) {
  char hex[AIT_SHA256_HEX + 1];
  if (w->sums.failed || w->sha256.failed) return AIT_OOM();
  AIT_TRY(ait_sha256_hex(w->sums.data, w->sums.length, hex));
  ait_text_printf(&w->sha256, "%s  %s\n", hex, AIT_ENTRY_SUMS);
  if (w->sha256.failed) return AIT_OOM();
  AIT_TRY(write_entry(w, AIT_ENTRY_SUMS, w->sums.data, w->sums.length, AIT_ZIP_ALIGN));
  AIT_TRY(write_entry(w, AIT_ENTRY_SHA256, w->sha256.data, w->sha256.length, AIT_ZIP_ALIGN));
  w->scratch.length = 0;
  ait_zip_directory(&w->scratch, w->entries, w->count, ait_file_writer_offset(w->file));
  AIT_TRY(write_text(w, &w->scratch));
  return ait_file_writer_commit(w->file);
}
