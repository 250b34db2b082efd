/* For the wheel of ait-rt (CMakeLists.txt). None of these functions draws random numbers or chooses code by the processor, so sodium_init,
 * which sets both up, is not called. */
#include "artifact/crypto.h"

#include <sodium.h>

bool ait_crypto_sha256(const void *data, size_t size, uint8_t out[AIT_SHA256_BYTES]) { return crypto_hash_sha256(out, data, size) == 0; }

bool ait_ed25519_sign(const uint8_t seed[AIT_ED25519_KEY_BYTES], const void *message, size_t size,
                      uint8_t out[AIT_ED25519_SIGNATURE_BYTES]) {
  uint8_t public_key[AIT_ED25519_KEY_BYTES], secret[crypto_sign_SECRETKEYBYTES];
  bool good = crypto_sign_seed_keypair(public_key, secret, seed) == 0 && crypto_sign_detached(out, NULL, message, size, secret) == 0;
  sodium_memzero(secret, sizeof secret);
  return good;
}

bool ait_ed25519_verify(const uint8_t key[AIT_ED25519_KEY_BYTES], const uint8_t *signature, const void *message, size_t size,
                        bool *out_right) {
  *out_right = crypto_sign_verify_detached(signature, message, size, key) == 0;
  return true;
}

bool ait_ed25519_public_key(const uint8_t seed[AIT_ED25519_KEY_BYTES], uint8_t out[AIT_ED25519_KEY_BYTES]) {
  uint8_t secret[crypto_sign_SECRETKEYBYTES];
  bool good = crypto_sign_seed_keypair(out, secret, seed) == 0;
  sodium_memzero(secret, sizeof secret);
  return good;
}
