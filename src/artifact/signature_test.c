/* Keys, signatures, and every way in which a signed file can be wrong. */
#include "artifact/signature.h"
#include "artifact/artifact.h"
#include "artifact/toy_models.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support.h"

#define PLAIN AIT_BINARY_DIR "/tests/signature_plain.ait"
#define SIGNED AIT_BINARY_DIR "/tests/signature_signed.ait"
#define OTHER AIT_BINARY_DIR "/tests/signature_other.ait"
#define FOLDER AIT_BINARY_DIR "/tests/signature_keys"

static ait_allocator heap(void) { return ait_allocator_default(); }

static void ok(ait_status status) {
  if (status) fail_msg("%s (%s)", ait_status_message(status), ait_status_hint(status) ? ait_status_hint(status) : "");
}

static void refused(ait_status status, ait_code code, const char *message) {
  assert_non_null(status);
  if (!strstr(ait_status_message(status), message)) fail_msg("'%s' is not in: %s", message, ait_status_message(status));
  assert_int_equal(ait_status_code(status), code);
  ait_status_free(status);
}

static ait_keys *fresh_keys(void) {
  ait_keys *keys;
  assert_int_equal(system("rm -rf '" FOLDER "'"), 0);
  ok(ait_keys_open(heap(), FOLDER "/deep", &keys));
  return keys;
}

static void put_text(const char *path, const char *text) { ok(ait_file_write_all(heap(), path, text, strlen(text))); }

/* RFC 8032, section 7.1, tests 1 and 2. */
static void test_rfc_vectors(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *seed, *key, *signature, *message;
    size_t size;
  } vectors[] = {
      {"\x9d\x61\xb1\x9d\xef\xfd\x5a\x60\xba\x84\x4a\xf4\x92\xec\x2c\xc4\x44\x49\xc5\x69\x7b\x32\x69\x19\x70\x3b\xac\x03\x1c\xae\x7f\x60",
       "\xd7\x5a\x98\x01\x82\xb1\x0a\xb7\xd5\x4b\xfe\xd3\xc9\x64\x07\x3a\x0e\xe1\x72\xf3\xda\xa6\x23\x25\xaf\x02\x1a\x68\xf7\x07\x51\x1a",
       "5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw==", "", 0},
      {"\x4c\xcd\x08\x9b\x28\xff\x96\xda\x9d\xb6\xc3\x46\xec\x11\x4e\x0f\x5b\x8a\x31\x9f\x35\xab\xa6\x24\xda\x8c\xf6\xed\x4f\xb8\xa6\xfb",
       "\x3d\x40\x17\xc3\xe8\x43\x89\x5a\x92\xb7\x0a\xa7\x4d\x1b\x7e\xbc\x9c\x98\x2c\xcf\x2e\xc4\x96\x8c\xc0\xcd\x55\xf1\x2a\xf4\x66\x0c",
       "kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==", "\x72", 1},
  };
  for (size_t i = 0; i < AIT_COUNT(vectors); ++i) {
    ait_private_key key;
    ait_text entry;
    uint8_t signer[AIT_KEY_BYTES];
    ait_text_init(&entry, heap());
    ok(ait_private_key_from_seed((const uint8_t *)vectors[i].seed, &key));
    assert_memory_equal(key.public_key, vectors[i].key, AIT_KEY_BYTES);
    ok(ait_signature_format(&key, vectors[i].message, vectors[i].size, &entry));
    assert_non_null(strstr(entry.data, vectors[i].signature));
    ok(ait_signature_check(entry.data, entry.length, vectors[i].message, vectors[i].size, signer));
    assert_memory_equal(signer, key.public_key, AIT_KEY_BYTES);
    refused(ait_signature_check(entry.data, entry.length, "other", 5, signer), AIT_CODE_INVALID_MODEL, "forged or altered");
    for (size_t n = 0; n < entry.length; ++n)
      refused(ait_signature_check(entry.data, n, vectors[i].message, vectors[i].size, signer), AIT_CODE_INVALID_MODEL, "damaged");
    for (size_t n = 0; n < entry.length; ++n) { /* no byte may change: there is one way of writing a signature */
      entry.data[n] ^= 1;
      ait_status status = ait_signature_check(entry.data, entry.length, vectors[i].message, vectors[i].size, signer);
      if (!status) fail_msg("byte %zu may change", n);
      ait_status_free(status);
      entry.data[n] ^= 1;
    }
    ait_text_deinit(&entry);
  }
}

static void test_key_texts(void **state) {
  AIT_UNUSED(state);
#define BASE64 "213wl2xIcqw6KM33493BJgk59+H4PsQFK7JdZ05ojCQ="
  static const struct {
    const char *text, *name;
  } good[] = {{"ait-ed25519 " BASE64, ""}, {"ait-ed25519 " BASE64 " bob\r\n", "bob"}, {" \n ait-ed25519 " BASE64 " b.o-b_1 \t", "b.o-b_1"}};
  static const char *const bad[] = {"",
                                    "ait-ed25519",
                                    "ait-ed25519 ",
                                    "ait-ed25518 " BASE64,
                                    "ait-ed25519  " BASE64,
                                    "ait-ed25519 " BASE64 "x",
                                    "ait-ed25519 " BASE64 " a b",
                                    "ait-ed25519 " BASE64 " ../b",
                                    "ait-ed25519 " BASE64 " .b",
                                    "ait-ed25519 213wl2xIcqw6KM33493BJgk59+H4PsQFK7JdZ05ojCR=", /* a bit that no byte has */
                                    "ait-ed25519 213wl2xIcqw6KM33493BJgk59+H4PsQFK7JdZ05ojC==",
                                    "ait-ed25519 213wl2xIcqw6KM33493BJgk5",
                                    "ait-ed25519-private " BASE64};
  uint8_t key[AIT_KEY_BYTES];
  char name[AIT_KEY_NAME_MAX + 1];
  for (size_t i = 0; i < AIT_COUNT(good); ++i) {
    assert_true(ait_key_text_parse(good[i].text, strlen(good[i].text), key, name));
    assert_string_equal(name, good[i].name);
    assert_int_equal(key[0], 0xdb);
    assert_int_equal(key[31], 0x24);
  }
  for (size_t i = 0; i < AIT_COUNT(bad); ++i)
    if (ait_key_text_parse(bad[i], strlen(bad[i]), key, name)) fail_msg("'%s' is taken for a key", bad[i]);
}

static void test_store(void **state) {
  AIT_UNUSED(state);
  ait_keys *keys = fresh_keys(), *others;
  ait_key_info k;
  struct stat info;
  const char *name;
  assert_int_equal(ait_keys_count(keys), 0);
  ok(ait_keys_new(keys, "own"));
  ok(ait_keys_new(keys, "a-second"));
  assert_int_equal(ait_keys_count(keys), 2);
  assert_true(ait_keys_at(keys, 0, &k));
  assert_string_equal(k.name, "a-second"); /* by name */
  assert_true(k.own && !k.revoked);
  assert_int_equal(stat(FOLDER "/deep/own.key", &info), 0);
  assert_int_equal(info.st_mode & 0777, 0600);
  assert_int_equal(stat(FOLDER "/deep", &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
  refused(ait_keys_new(keys, "own"), AIT_CODE_INVALID_ARGUMENT, "there is a key 'own' already");
  refused(ait_keys_new(keys, "../own"), AIT_CODE_INVALID_ARGUMENT, "cannot name a key");
  refused(ait_keys_new(keys, ""), AIT_CODE_INVALID_ARGUMENT, "cannot name a key");
  /* by mail to somebody else */
  assert_true(ait_keys_find(keys, "own", &k));
  ok(ait_keys_open(heap(), FOLDER "/theirs", &others));
  ok(ait_keys_trust(others, k.text, "anna", &name));
  assert_string_equal(name, "anna");
  refused(ait_keys_trust(others, k.text, NULL, NULL), AIT_CODE_INVALID_ARGUMENT, "trusted already, as 'anna'");
  refused(ait_keys_trust(others, "nonsense", NULL, NULL), AIT_CODE_INVALID_ARGUMENT, "this is no key");
  assert_true(ait_keys_find(others, "anna", &k) && !k.own);
  ok(ait_keys_revoke(others, "anna"));
  assert_true(ait_keys_find(others, "anna", &k) && k.revoked);
  refused(ait_keys_trust(others, k.text, "bea", NULL), AIT_CODE_INVALID_ARGUMENT, "was revoked here, as 'anna'");
  refused(ait_keys_new(others, "anna"), AIT_CODE_INVALID_ARGUMENT, "there is a key 'anna' already");
  refused(ait_keys_revoke(others, "nobody"), AIT_CODE_NOT_FOUND, "there is no key 'nobody'");
  ait_keys_destroy(others);
  ait_keys_destroy(keys);
  ait_keys_destroy(NULL);
  /* a file that is no key: nothing of the store counts */
  put_text(FOLDER "/theirs/bad.pub", "ait-ed25519 what\n");
  refused(ait_keys_open(heap(), FOLDER "/theirs", &keys), AIT_CODE_INVALID_ARGUMENT, "bad.pub' holds no key");
  assert_null(keys);
}

/* ---- files -------------------------------------------------------------------------------------------------------------------------*/
static void write_plain(const char *path, const char *name) {
  static const float w[6] = {1, 2, 3, 4, 5, 6};
  ait_region r = toy_linear();
  ait_weight_store *weights;
  ok(ait_weight_store_create(heap(), &weights));
  ok(toy_add_weight(weights, "w", w, 2, (int64_t[]){3, 2}));
  ait_artifact_content content = {.portable = &r, .weights = weights, .producer = "by hand", .model_name = name};
  ok(ait_artifact_write(heap(), path, &content));
  ait_weight_store_release(weights);
}

static ait_signature signature_of(const char *path, const ait_keys *keys, char name[80]) {
  ait_artifact *f;
  ok(ait_artifact_open(heap(), path, &(ait_artifact_open_options){.keys = keys}, &f));
  ait_signature s = ait_artifact_signature(f);
  snprintf(name, 80, "%s", s.key_name);
  ait_artifact_release(f);
  return s;
}

static ait_status open_required(const char *path, const ait_keys *keys) {
  ait_artifact *f = NULL;
  ait_status status = ait_artifact_open(heap(), path, &(ait_artifact_open_options){.keys = keys, .require_signature = true}, &f);
  ait_artifact_release(f);
  return status;
}

static void test_states(void **state) {
  AIT_UNUSED(state);
  char name[80];
  ait_keys *keys = fresh_keys();
  ok(ait_keys_new(keys, "own"));
  write_plain(PLAIN, "toy");
  assert_int_equal(signature_of(PLAIN, keys, name).state, AIT_SIGNATURE_UNSIGNED);
  refused(open_required(PLAIN, keys), AIT_CODE_INVALID_MODEL, "it is not signed, and a signature is required");
  ok(ait_sign(PLAIN, SIGNED, keys, "own"));
  assert_int_equal(signature_of(SIGNED, keys, name).state, AIT_SIGNATURE_TRUSTED);
  assert_string_equal(name, "own");
  ok(open_required(SIGNED, keys));
  assert_int_equal(signature_of(SIGNED, NULL, name).state, AIT_SIGNATURE_UNKNOWN);
  refused(open_required(SIGNED, NULL), AIT_CODE_UNAVAILABLE, "a key that is not trusted here");
  /* the path of a key file; a second signature replaces the first */
  ok(ait_keys_new(keys, "second"));
  ok(ait_sign(SIGNED, OTHER, keys, FOLDER "/deep/second.key"));
  assert_int_equal(signature_of(OTHER, keys, name).state, AIT_SIGNATURE_TRUSTED);
  assert_string_equal(name, "second");
  ok(ait_keys_revoke(keys, "second"));
  assert_int_equal(signature_of(OTHER, keys, name).state, AIT_SIGNATURE_REVOKED);
  refused(open_required(OTHER, keys), AIT_CODE_INVALID_MODEL, "signed by key 'second', which was revoked");
  refused(ait_sign(PLAIN, OTHER, keys, "second"), AIT_CODE_INVALID_ARGUMENT, "key 'second' was revoked");
  refused(ait_sign(PLAIN, OTHER, keys, "nobody"), AIT_CODE_NOT_FOUND, "no private key 'nobody'");
  assert_int_equal(chmod(FOLDER "/deep/own.key", 0644), 0);
  refused(ait_sign(PLAIN, OTHER, keys, "own"), AIT_CODE_IO, "others may read the private key");
  ait_keys_destroy(keys);
}

/* Signing twice gives the same bytes; signing in place, too; what was signed is the model as it was. */
static void test_equal_bytes(void **state) {
  AIT_UNUSED(state);
  ait_keys *keys = fresh_keys();
  char *a, *b;
  size_t a_size, b_size;
  ok(ait_keys_new(keys, "own"));
  write_plain(PLAIN, "toy");
  ok(ait_sign(PLAIN, SIGNED, keys, "own"));
  ok(ait_sign(PLAIN, PLAIN, keys, "own"));
  ok(ait_file_read(heap(), SIGNED, 1 << 20, &a, &a_size));
  ok(ait_file_read(heap(), PLAIN, 1 << 20, &b, &b_size));
  assert_int_equal(a_size, b_size);
  assert_memory_equal(a, b, a_size);
  ait_free(heap(), a, a_size + 1);
  ait_free(heap(), b, b_size + 1);
  ait_keys_destroy(keys);
}

/* A forger makes all sums right. `change`: what becomes of the entries of SIGNED. */
typedef enum forgery { SWAPPED_WEIGHTS, SWAPPED_MANIFEST, ENTRY_ADDED, ENTRY_GONE, SIGNATURE_CUT, SIGNATURE_MOVED, FORGERIES } forgery;

static void forge(forgery how, const char *out) {
  ait_artifact *f, *other;
  ait_artifact_writer *w;
  ok(ait_artifact_open(heap(), SIGNED, NULL, &f));
  ok(ait_artifact_open(heap(), OTHER, NULL, &other));
  ok(ait_artifact_create(heap(), out, &w));
  for (size_t i = 0; i < ait_artifact_entry_count(f); ++i) {
    const char *name = ait_artifact_entry_name(f, i);
    size_t size;
    const char *data = ait_artifact_entry(f, name, &size);
    bool is_signature = strcmp(name, AIT_ENTRY_SIGNATURE) == 0;
    if (strcmp(name, AIT_ENTRY_SUMS) == 0 || strcmp(name, AIT_ENTRY_SHA256) == 0) continue;
    if (how == ENTRY_GONE && strcmp(name, "notes") == 0) continue;
    if (how == ENTRY_ADDED && is_signature) ok(ait_artifact_add(w, "more", "x", 1, 64));
    if (how == SWAPPED_WEIGHTS && strcmp(name, "weights/0") == 0) {
      ok(ait_artifact_add(w, name, "twenty-four other bytes!", 24, 4096));
    } else if (how == SWAPPED_MANIFEST && strcmp(name, AIT_ENTRY_MANIFEST) == 0) {
      ok(ait_artifact_copy_entry(w, other, name));
    } else {
      ok(ait_artifact_add(w, name, data, is_signature && how == SIGNATURE_CUT ? size - 9 : size, ait_entry_is_bulk(name) ? 4096 : 64));
    }
    if (is_signature && how == SIGNATURE_MOVED) ok(ait_artifact_add(w, "more", "x", 1, 64));
  }
  ok(ait_artifact_finish(w));
  ait_artifact_writer_destroy(w);
  ait_artifact_release(other);
  ait_artifact_release(f);
}

static void test_forgeries(void **state) {
  AIT_UNUSED(state);
  static const char *const messages[FORGERIES] = {"forged or altered", "forged or altered",        "forged or altered",
                                                  "forged or altered", "its signature is damaged", "'SIGNATURE' is not in its place"};
  ait_keys *keys = fresh_keys();
  ok(ait_keys_new(keys, "own"));
  write_plain(PLAIN, "toy");
  write_plain(OTHER, "another toy");
  { /* with an entry more, so that one can go */
    ait_artifact *f;
    ait_artifact_writer *w;
    ok(ait_artifact_open(heap(), PLAIN, NULL, &f));
    ok(ait_artifact_create(heap(), SIGNED, &w));
    for (size_t i = 0; i + 2 < ait_artifact_entry_count(f); ++i) ok(ait_artifact_copy_entry(w, f, ait_artifact_entry_name(f, i)));
    ok(ait_artifact_add(w, "notes", "x", 1, 64));
    ok(ait_artifact_finish(w));
    ait_artifact_writer_destroy(w);
    ait_artifact_release(f);
    ok(ait_sign(SIGNED, SIGNED, keys, "own"));
  }
  for (forgery how = 0; how < FORGERIES; ++how) {
    forge(how, PLAIN);
    ait_artifact *f = NULL;
    for (int with_keys = 0; with_keys < 2; ++with_keys) {
      ait_artifact_open_options options = {.keys = with_keys ? keys : NULL, .skip_bulk_checksum = true};
      refused(ait_artifact_open(heap(), PLAIN, &options, &f), AIT_CODE_INVALID_MODEL, messages[how]);
      assert_null(f);
    }
    refused(ait_sign(PLAIN, PLAIN, keys, "own"), AIT_CODE_INVALID_MODEL, messages[how]); /* nobody puts a good name on it unawares */
  }
  ait_keys_destroy(keys);
}

/* The fast sums can be forged, too: for a file that is trusted, SHA-256 looks at the bulk. */
static void test_bulk_is_hashed(void **state) {
  AIT_UNUSED(state);
  ait_keys *keys = fresh_keys();
  char *data;
  size_t size;
  ok(ait_keys_new(keys, "own"));
  write_plain(PLAIN, "toy");
  ok(ait_sign(PLAIN, SIGNED, keys, "own"));
  ok(ait_file_read(heap(), SIGNED, 1 << 20, &data, &size));
  const float five = 5;
  char *at = memmem(data, size, &five, sizeof five);
  assert_non_null(at);
  *at ^= 1;
  ok(ait_file_write_all(heap(), SIGNED, data, size));
  ait_free(heap(), data, size + 1);
  ait_artifact *f = NULL;
  ait_artifact_open_options options = {.keys = keys, .skip_bulk_checksum = true};
  refused(ait_artifact_open(heap(), SIGNED, &options, &f), AIT_CODE_INVALID_MODEL, "entry 'weights/0' does not match its SHA-256");
  options.keys = NULL; /* says nothing of trust, and does as it is told */
  ok(ait_artifact_open(heap(), SIGNED, &options, &f));
  assert_int_equal(ait_artifact_signature(f).state, AIT_SIGNATURE_UNKNOWN);
  ait_artifact_release(f);
  ait_keys_destroy(keys);
}

static ait_status open_everything(ait_allocator a, void *ctx) {
  AIT_UNUSED(ctx);
  ait_keys *keys = NULL;
  ait_artifact *f = NULL;
  AIT_TRY(ait_keys_open(a, FOLDER "/deep", &keys));
  ait_status status = ait_artifact_open(a, SIGNED, &(ait_artifact_open_options){.keys = keys, .require_signature = true}, &f);
  ait_artifact_release(f);
  ait_keys_destroy(keys);
  return status;
}

static ait_status change_everything(ait_allocator a, void *ctx) {
  AIT_UNUSED(ctx);
  ait_keys *keys = NULL;
  ait_key_info k;
  assert_int_equal(system("rm -rf '" FOLDER "/new'"), 0);
  AIT_TRY(ait_keys_open(a, FOLDER "/new", &keys));
  ait_status status = ait_keys_new(keys, "own");
  if (!status) status = ait_keys_revoke(keys, "own");
  if (!status && !ait_keys_find(keys, "own", &k)) status = ait_error(AIT_CODE_INTERNAL, "not found");
  ait_keys_destroy(keys);
  return status;
}

static void test_out_of_memory(void **state) {
  AIT_UNUSED(state);
  ait_keys *keys = fresh_keys();
  ok(ait_keys_new(keys, "own"));
  write_plain(PLAIN, "toy");
  ok(ait_sign(PLAIN, SIGNED, keys, "own"));
  ait_keys_destroy(keys);
  test_every_allocation_fails(open_everything, NULL);
  test_every_allocation_fails(change_everything, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rfc_vectors),    cmocka_unit_test(test_key_texts),     cmocka_unit_test(test_store),
      cmocka_unit_test(test_states),         cmocka_unit_test(test_equal_bytes),   cmocka_unit_test(test_forgeries),
      cmocka_unit_test(test_bulk_is_hashed), cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
