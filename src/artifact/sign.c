/* A signature into a file that is there: all other entries are copied byte for byte. */
#include "artifact/artifact.h"
#include "artifact/signature.h"
#include "artifact/zip.h"

static bool is_made_again(const char *name) {
  return strcmp(name, AIT_ENTRY_SIGNATURE) == 0 || strcmp(name, AIT_ENTRY_SUMS) == 0 || strcmp(name, AIT_ENTRY_SHA256) == 0;
}

ait_status ait_artifact_copy_entry(ait_artifact_writer *w, const ait_artifact *from, const char *name) {
  size_t size;
  const void *data = ait_artifact_entry(from, name, &size);
  if (!data) return ait_error(AIT_CODE_NOT_FOUND, "there is no entry '%s'", name);
  return ait_artifact_add(w, name, data, size, ait_entry_is_bulk(name) ? AIT_ZIP_BULK_ALIGN : AIT_ZIP_ALIGN);
}

static ait_status copy_signed(ait_artifact_writer *w, const ait_artifact *from, const ait_private_key *key) {
  for (size_t i = 0; i < ait_artifact_entry_count(from); ++i) {
    const char *name = ait_artifact_entry_name(from, i);
    if (!is_made_again(name)) AIT_TRY(ait_artifact_copy_entry(w, from, name));
  }
  AIT_TRY(ait_artifact_add_signature(w, key));
  return ait_artifact_finish(w);
}

ait_status ait_sign(const char *path, const char *out_path, const ait_keys *keys, const char *key_name) {
  ait_allocator a = ait_allocator_default();
  ait_private_key key;
  ait_artifact *from = NULL;
  ait_artifact_writer *w = NULL;
  AIT_TRY(ait_private_key_find(keys, key_name, &key));
  /* No keys: a signature that is there is replaced, whosever it is. A bad one is refused like any damage. */
  ait_status status = ait_artifact_open(a, path, NULL, &from);
  if (!status) status = ait_error_context(ait_artifact_verify(from), "cannot load '%s'", path);
  if (!status) status = ait_artifact_create(a, out_path, &w);
  if (!status) status = ait_error_context(copy_signed(w, from, &key), "cannot write '%s'", out_path);
  ait_artifact_writer_destroy(w);
  ait_artifact_release(from);
  ait_private_key_wipe(&key);
  return status;
}
