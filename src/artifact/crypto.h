/* SHA-256 and Ed25519 (RFC 8032) by a library: crypto_openssl.c everywhere, but crypto_sodium.c in the Python wheel of libait-rt, where a
 * whole libcrypto would be most of the wheel. Both give the same bytes. Thread rule: functions of their arguments only. */
#ifndef AIT_SRC_ARTIFACT_CRYPTO_H
#define AIT_SRC_ARTIFACT_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AIT_SHA256_BYTES = 32, AIT_ED25519_KEY_BYTES = 32, AIT_ED25519_SIGNATURE_BYTES = 64 };

/* false: the library has no such algorithm here. */
bool ait_crypto_sha256(const void *data, size_t size, uint8_t out[AIT_SHA256_BYTES]);
bool ait_ed25519_public_key(const uint8_t seed[AIT_ED25519_KEY_BYTES], uint8_t out[AIT_ED25519_KEY_BYTES]);
bool ait_ed25519_sign(const uint8_t seed[AIT_ED25519_KEY_BYTES], const void *message, size_t size,
                      uint8_t out[AIT_ED25519_SIGNATURE_BYTES]);
/* *out_right is set when the answer is known. */
bool ait_ed25519_verify(const uint8_t key[AIT_ED25519_KEY_BYTES], const uint8_t *signature, const void *message, size_t size,
                        bool *out_right);

#endif
