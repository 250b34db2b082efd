/* First byte: what the rest is. 0: a whole file, 1: a manifest, 2: a weights table (of files whose checksums are
 * right), 3: a signature entry, 4: a key's text. */
#include "artifact/manifest.h"
#include "artifact/signature.h"
#include "artifact/toy_models.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_file(const uint8_t *data, size_t size) {
  char path[64];
  int fd = memfd_create("artifact", 0);
  if (fd < 0) return;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (write(fd, data, size) == (ssize_t)size) {
    ait_artifact *f = NULL;
    ait_status_free(ait_artifact_open(ait_allocator_default(), path, NULL, &f));
    ait_artifact_release(f);
  }
  close(fd);
}

static const char blob[4096];

static const void *find(void *ctx, const char *name, size_t *out_size) {
  AIT_UNUSED(ctx);
  *out_size = sizeof blob;
  return strlen(name) < 20 ? blob : NULL;
}

static ait_status storage(void *ctx, const char *name, ait_storage **out) {
  AIT_UNUSED(ctx);
  if (strlen(name) > 9) return ait_error(AIT_CODE_INVALID_MODEL, "no entry '%s'", name);
  return ait_storage_create(ait_allocator_default(), sizeof blob, out);
}

static void parse(const char *text, size_t size, bool weights) {
  const ait_entry_source source = {NULL, find, storage};
  ait_allocator a = ait_allocator_default();
  ait_weight_store *store = NULL;
  ait_manifest manifest = {0};
  ait_arena arena;
  ait_arena_init(&arena, a);
  if (weights) {
    ait_status_free(ait_weights_parse(a, text, size, &source, &store));
    ait_weight_store_release(store);
  } else {
    ait_status_free(ait_manifest_parse(a, &arena, text, size, &source, &manifest));
    ait_region portable = toy_linear();
    for (size_t i = 0; i < manifest.plan_count; ++i) ait_status_free(ait_plan_check(&manifest.plans[i], &portable));
    ait_manifest_deinit(a, &manifest);
  }
  ait_arena_deinit(&arena);
}

/* A signature is right, or refused; a key's text is refused, or is what the key is written as. */
static void read_signature(const char *text, size_t size) {
  uint8_t key[AIT_KEY_BYTES];
  ait_status_free(ait_signature_check(text, size, "message", 7, key));
}

static void read_key(const char *text, size_t size) {
  uint8_t key[AIT_KEY_BYTES], again[AIT_KEY_BYTES];
  char name[AIT_KEY_NAME_MAX + 1], same[AIT_KEY_NAME_MAX + 1];
  ait_text out;
  ait_text_init(&out, ait_allocator_default());
  if (ait_key_text_parse(text, size, key, name)) {
    ait_key_text_format(key, name, &out);
    bool equal = ait_key_text_parse(out.data, out.length, again, same) && !memcmp(key, again, sizeof key) && !strcmp(name, same);
    if (!equal) __builtin_trap();
  }
  ait_text_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  if (data[0] == 0) open_file(data + 1, size - 1);
  else if (data[0] == 3) read_signature((const char *)data + 1, size - 1);
  else if (data[0] == 4) read_key((const char *)data + 1, size - 1);
  else parse((const char *)data + 1, size - 1, data[0] == 2);
  return 0;
}
