/* Ed25519 keys and the SIGNATURE entry. docs/format.md, "Signature". */
#ifndef AIT_SRC_ARTIFACT_SIGNATURE_H
#define AIT_SRC_ARTIFACT_SIGNATURE_H

#include "base/base.h"
#include <ait/keys.h>

enum { AIT_KEY_BYTES = 32, AIT_SIGNATURE_BYTES = 64, AIT_FINGERPRINT_HEX = 32, AIT_KEY_NAME_MAX = 64 };

typedef struct ait_private_key {
  uint8_t seed[AIT_KEY_BYTES], public_key[AIT_KEY_BYTES];
} ait_private_key;
/* Overwritten in a way that the compiler keeps. */
void ait_private_key_wipe(ait_private_key *key);
ait_status ait_private_key_from_seed(const uint8_t seed[AIT_KEY_BYTES], ait_private_key *out) AIT_MUST_USE;
ait_status ait_private_key_make(ait_private_key *out) AIT_MUST_USE; /* from the system's random numbers */
/* `key` as in ait_sign; keys may be NULL when it is a path. */
ait_status ait_private_key_find(const ait_keys *keys, const char *key, ait_private_key *out) AIT_MUST_USE;

void ait_key_fingerprint(const uint8_t public_key[AIT_KEY_BYTES], char out[AIT_FINGERPRINT_HEX + 1]);
bool ait_key_name_valid(const char *name, size_t length);
/* "ait-ed25519 BASE64[ NAME]" and white space after it. The name (may be absent: "") is not longer than AIT_KEY_NAME_MAX. */
bool ait_key_text_parse(const char *text, size_t size, uint8_t out[AIT_KEY_BYTES], char name[AIT_KEY_NAME_MAX + 1]);
void ait_key_text_format(const uint8_t public_key[AIT_KEY_BYTES], const char *name, ait_text *out);
void ait_private_text_format(const ait_private_key *key, ait_text *out); /* the caller overwrites the text */
bool ait_private_text_parse(const char *text, size_t size, uint8_t seed[AIT_KEY_BYTES]);

/* The contents of the entry, for a message. */
ait_status ait_signature_format(const ait_private_key *key, const void *message, size_t size, ait_text *out) AIT_MUST_USE;
/* Errors: invalid-model (damaged, or not of this message). *out_key: who signed. */
ait_status ait_signature_check(const void *entry, size_t entry_size, const void *message, size_t size,
                               uint8_t out_key[AIT_KEY_BYTES]) AIT_MUST_USE;
/* What the store says of a key; "" and unknown without one. The name lives as long as the store. */
ait_signature_state ait_keys_judge(const ait_keys *keys, const uint8_t public_key[AIT_KEY_BYTES], const char **out_name);

#endif
