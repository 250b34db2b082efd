/* The store of keys: a folder of small text files, read whole. */
#include "artifact/artifact.h"
#include "artifact/signature.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_FILE_LIMIT = 4096, KEYS_LIMIT = 4096 };

typedef struct stored_key {
  char name[AIT_KEY_NAME_MAX + 1], fingerprint[AIT_FINGERPRINT_HEX + 1];
  char text[16 + 44 + 2 + AIT_KEY_NAME_MAX];
  uint8_t key[AIT_KEY_BYTES];
  bool revoked, own;
} stored_key;

struct ait_keys {
  ait_allocator allocator;
  char folder[PATH_MAX];
  stored_key *keys;
  size_t count, capacity;
};

static ait_status key_path(const ait_keys *s, const char *name, const char *suffix, char out[PATH_MAX]) {
  int n = snprintf(out, PATH_MAX, "%s/%s%s", s->folder, name, suffix);
  return n < 0 || n >= PATH_MAX ? ait_error(AIT_CODE_IO, "the path of the key folder is too long") : AIT_OK;
}

static ait_status io_fault(const char *what, const char *path) {
  return ait_error(AIT_CODE_IO, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* ---- reading -----------------------------------------------------------------------------------------------------------------------*/
static stored_key *find(const ait_keys *s, const char *name) {
  for (size_t i = 0; i < s->count; ++i)
    if (strcmp(s->keys[i].name, name) == 0) return &s->keys[i];
  return NULL;
}

static stored_key *find_public(const ait_keys *s, const uint8_t key[AIT_KEY_BYTES]) {
  for (size_t i = 0; i < s->count; ++i)
    if (memcmp(s->keys[i].key, key, AIT_KEY_BYTES) == 0) return &s->keys[i];
  return NULL;
}

static void describe(stored_key *k, ait_text *scratch) {
  scratch->length = 0;
  ait_key_text_format(k->key, k->name, scratch);
  snprintf(k->text, sizeof k->text, "%s", scratch->failed ? "" : scratch->data);
  ait_key_fingerprint(k->key, k->fingerprint);
}

static ait_status read_key(ait_keys *s, const char *name, size_t length, const char *suffix, ait_text *scratch) {
  char path[PATH_MAX], in_text[AIT_KEY_NAME_MAX + 1], *text;
  size_t size;
  stored_key k = {.revoked = *suffix == '.' && suffix[1] == 'r'};
  memcpy(k.name, name, length);
  AIT_TRY(key_path(s, k.name, suffix, path));
  AIT_TRY(ait_file_read(s->allocator, path, KEY_FILE_LIMIT, &text, &size));
  bool good = ait_key_text_parse(text, size, k.key, in_text);
  ait_free(s->allocator, text, size + 1);
  if (!good) return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' holds no key", path), "remove the file, or restore it");
  stored_key *same = find(s, k.name);
  if (same) { /* killed while it was revoked: the stricter one counts */
    same->revoked = true;
    return AIT_OK;
  }
  if (s->count == KEYS_LIMIT) return ait_error(AIT_CODE_LIMIT, "'%s' holds more than %d keys", s->folder, KEYS_LIMIT);
  void *keys = s->keys;
  ait_status status = ait_grow(s->allocator, &keys, &s->capacity, s->count + 1, sizeof *s->keys);
  s->keys = keys;
  AIT_TRY(status);
  AIT_TRY(key_path(s, k.name, ".key", path));
  k.own = access(path, F_OK) == 0;
  describe(&k, scratch);
  if (scratch->failed) return AIT_OOM();
  s->keys[s->count++] = k;
  return AIT_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(((const stored_key *)a)->name, ((const stored_key *)b)->name); }

static ait_status read_folder(ait_keys *s, DIR *dir) {
  static const char *const suffixes[] = {".pub", ".revoked"};
  ait_text scratch;
  ait_text_init(&scratch, s->allocator);
  ait_status status = AIT_OK;
  const struct dirent *e;
  while (!status && (e = readdir(dir))) {
    for (size_t i = 0; !status && i < AIT_COUNT(suffixes); ++i) {
      size_t length = strlen(e->d_name), cut = strlen(suffixes[i]);
      if (!ait_ends_with(e->d_name, suffixes[i]) || !ait_key_name_valid(e->d_name, length - cut)) continue;
      status = read_key(s, e->d_name, length - cut, suffixes[i], &scratch);
    }
  }
  ait_text_deinit(&scratch);
  if (s->count) qsort(s->keys, s->count, sizeof *s->keys, by_name);
  return status;
}

static ait_status reload(ait_keys *s) {
  s->count = 0;
  DIR *dir = opendir(s->folder);
  if (!dir && errno == ENOENT) return AIT_OK;
  if (!dir) return io_fault("read the key folder", s->folder);
  ait_status status = read_folder(s, dir);
  closedir(dir);
  if (status) s->count = 0;
  return status;
}

ait_status ait_keys_open(ait_allocator a, const char *folder, ait_keys **out) {
  *out = NULL;
  if (!folder || !*folder || strlen(folder) + AIT_KEY_NAME_MAX + 32 > PATH_MAX)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "the key folder has no name, or too long a one");
  ait_keys *s = ait_alloc_zero(a, sizeof *s, _Alignof(ait_keys));
  if (!s) return AIT_OOM();
  s->allocator = a;
  snprintf(s->folder, sizeof s->folder, "%s", folder);
  ait_status status = reload(s);
  if (status) ait_keys_destroy(s);
  else *out = s;
  return status;
}

void ait_keys_destroy(ait_keys *s) {
  if (!s) return;
  ait_free(s->allocator, s->keys, s->capacity * sizeof *s->keys);
  ait_free(s->allocator, s, sizeof *s);
}

/* ---- questions ---------------------------------------------------------------------------------------------------------------------*/
size_t ait_keys_count(const ait_keys *s) { return s->count; }

static void inform(const stored_key *k, ait_key_info *out) { *out = (ait_key_info){k->name, k->text, k->fingerprint, k->revoked, k->own}; }

bool ait_keys_at(const ait_keys *s, size_t index, ait_key_info *out) {
  if (index >= s->count) return false;
  inform(&s->keys[index], out);
  return true;
}

bool ait_keys_find(const ait_keys *s, const char *name, ait_key_info *out) {
  const stored_key *k = find(s, name);
  if (k) inform(k, out);
  return k != NULL;
}

ait_signature_state ait_keys_judge(const ait_keys *s, const uint8_t public_key[AIT_KEY_BYTES], const char **out_name) {
  const stored_key *k = s ? find_public(s, public_key) : NULL;
  *out_name = k ? k->name : "";
  return !k ? AIT_SIGNATURE_UNKNOWN : k->revoked ? AIT_SIGNATURE_REVOKED : AIT_SIGNATURE_TRUSTED;
}

const char *ait_signature_state_name(ait_signature_state state) {
  static const char *const names[] = {"unsigned", "trusted", "unknown", "revoked"};
  return (size_t)state < AIT_COUNT(names) ? names[state] : "?";
}

/* ---- changing ----------------------------------------------------------------------------------------------------------------------*/
static ait_status make_folder(const ait_keys *s) {
  char part[PATH_MAX];
  for (size_t i = 1, n = strlen(s->folder); i <= n; ++i) {
    if (s->folder[i] != '/' && i < n) continue;
    memcpy(part, s->folder, i);
    part[i] = 0;
    if (mkdir(part, 0700) != 0 && errno != EEXIST) return io_fault("make the folder", part);
  }
  return AIT_OK;
}

/* A file that appears whole or not at all, and never in the place of another. */
static ait_status write_new(const char *path, const char *text, mode_t mode) {
  char temporary[PATH_MAX + 32];
  snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return io_fault("write", path);
  size_t size = strlen(text);
  bool good = write(fd, text, size) == (ssize_t)size && fsync(fd) == 0;
  good = close(fd) == 0 && good;
  ait_status status = AIT_OK;
  if (!good || link(temporary, path) != 0) {
    status = good && errno == EEXIST ? ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' exists already", path) : io_fault("write", path);
  }
  unlink(temporary);
  return status;
}

static ait_status check_name(const ait_keys *s, const char *name) {
  if (!ait_key_name_valid(name, strlen(name)))
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' cannot name a key", name),
                          "1 to %d of A-Z a-z 0-9 . _ -, beginning with a letter or digit", AIT_KEY_NAME_MAX);
  if (find(s, name)) return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is a key '%s' already", name), "give another name");
  return AIT_OK;
}

static ait_status write_public(const ait_keys *s, const uint8_t key[AIT_KEY_BYTES], const char *name) {
  char path[PATH_MAX];
  ait_text text;
  ait_text_init(&text, s->allocator);
  ait_key_text_format(key, name, &text);
  ait_text_append(&text, "\n", 1);
  ait_status status = text.failed ? AIT_OOM() : key_path(s, name, ".pub", path);
  if (!status) status = write_new(path, text.data, 0644);
  ait_text_deinit(&text);
  return status;
}

static ait_status write_private(const ait_keys *s, const ait_private_key *key, const char *name) {
  char path[PATH_MAX];
  ait_text text;
  ait_text_init(&text, s->allocator);
  ait_private_text_format(key, &text);
  ait_status status = text.failed ? AIT_OOM() : key_path(s, name, ".key", path);
  if (!status) status = write_new(path, text.data, 0600);
  if (text.data) explicit_bzero(text.data, text.length);
  ait_text_deinit(&text);
  return status;
}

ait_status ait_keys_new(ait_keys *s, const char *name) {
  ait_private_key key;
  AIT_TRY(check_name(s, name));
  AIT_TRY(make_folder(s));
  AIT_TRY(ait_private_key_make(&key));
  ait_status status = write_private(s, &key, name);
  if (!status) status = write_public(s, key.public_key, name);
  ait_private_key_wipe(&key);
  return status ? status : reload(s);
}

ait_status ait_keys_trust(ait_keys *s, const char *text, const char *name, const char **out_name) {
  uint8_t key[AIT_KEY_BYTES];
  char in_text[AIT_KEY_NAME_MAX + 1];
  if (!ait_key_text_parse(text, strlen(text), key, in_text))
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "this is no key"), "a key is one line: ait-ed25519 BASE64 NAME");
  const stored_key *same = find_public(s, key);
  if (same && same->revoked) return ait_error(AIT_CODE_INVALID_ARGUMENT, "this key was revoked here, as '%s'", same->name);
  if (same) return ait_error(AIT_CODE_INVALID_ARGUMENT, "this key is trusted already, as '%s'", same->name);
  if (!name && !*in_text) return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the key has no name"), "give one");
  if (!name) name = in_text;
  AIT_TRY(check_name(s, name));
  AIT_TRY(make_folder(s));
  AIT_TRY(write_public(s, key, name));
  AIT_TRY(reload(s));
  same = find_public(s, key);
  if (out_name) *out_name = same ? same->name : "";
  return AIT_OK;
}

ait_status ait_keys_revoke(ait_keys *s, const char *name) {
  char from[PATH_MAX], to[PATH_MAX];
  const stored_key *k = find(s, name);
  if (!k) return ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "there is no key '%s'", name), "'ait key list' lists them");
  if (k->revoked) return AIT_OK;
  AIT_TRY(key_path(s, name, ".pub", from));
  AIT_TRY(key_path(s, name, ".revoked", to));
  if (rename(from, to) != 0) return io_fault("write", to);
  return reload(s);
}

/* ---- private keys ------------------------------------------------------------------------------------------------------------------*/
static ait_status read_private(ait_allocator a, const char *path, ait_private_key *out) {
  struct stat info;
  char *text;
  size_t size;
  uint8_t seed[AIT_KEY_BYTES];
  if (stat(path, &info) == 0 && info.st_mode & 077)
    return ait_error_hint(ait_error(AIT_CODE_IO, "others may read the private key '%s'", path), "chmod 600 '%s'", path);
  AIT_TRY(ait_file_read(a, path, KEY_FILE_LIMIT, &text, &size));
  bool good = ait_private_text_parse(text, size, seed);
  explicit_bzero(text, size);
  ait_free(a, text, size + 1);
  if (!good) return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' holds no private key", path);
  ait_status status = ait_private_key_from_seed(seed, out);
  explicit_bzero(seed, sizeof seed);
  return status;
}

ait_status ait_private_key_find(const ait_keys *s, const char *key, ait_private_key *out) {
  char path[PATH_MAX];
  const char *name;
  if (strchr(key, '/')) {
    AIT_TRY(read_private(s ? s->allocator : ait_allocator_default(), key, out));
  } else {
    const stored_key *k = s ? find(s, key) : NULL;
    if (!k || !k->own)
      return ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "there is no private key '%s'%s", key, k ? ": only its public half is here" : ""),
                            "'ait key new NAME' makes one; the path of a key file needs a '/'");
    AIT_TRY(key_path(s, key, ".key", path));
    AIT_TRY(read_private(s->allocator, path, out));
  }
  if (ait_keys_judge(s, out->public_key, &name) != AIT_SIGNATURE_REVOKED) return AIT_OK;
  ait_private_key_wipe(out);
  return ait_error(AIT_CODE_INVALID_ARGUMENT, "key '%s' was revoked", name);
}
