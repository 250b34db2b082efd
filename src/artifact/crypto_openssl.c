#include "artifact/crypto.h"

/* The plain functions of SHA-256, though OpenSSL 3 would rather have EVP used: EVP reads openssl.cnf and the environment when it is first
 * called, which a library that is a guest in its process does not do, and takes 2 ms for it. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

bool ait_crypto_sha256(const void *data, size_t size, uint8_t out[AIT_SHA256_BYTES]) {
  SHA256_CTX context;
  return SHA256_Init(&context) == 1 && SHA256_Update(&context, data, size) == 1 && SHA256_Final(out, &context) == 1;
}

/* ---- Ed25519 -----------------------------------------------------------------------------------------------------------------------
 * Each operation has a library context of its own, so that nothing that the program configured changes what is computed. Ed25519 hashes
 * through EVP inside, and the first use of that in a process makes libcrypto read openssl.cnf: files without a signature never come here.
 * What OpenSSL notes about failures in the thread's error queue is taken back. */
typedef struct crypto {
  OSSL_LIB_CTX *library;
  EVP_PKEY *key;
  EVP_MD_CTX *digest;
} crypto;

static bool crypto_open(crypto *c, const uint8_t *private_key, const uint8_t *public_key) {
  ERR_set_mark();
  *c = (crypto){.library = OSSL_LIB_CTX_new(), .digest = EVP_MD_CTX_new()};
  if (!c->library || !c->digest) return false;
  if (private_key) c->key = EVP_PKEY_new_raw_private_key_ex(c->library, "ED25519", NULL, private_key, AIT_ED25519_KEY_BYTES);
  else c->key = EVP_PKEY_new_raw_public_key_ex(c->library, "ED25519", NULL, public_key, AIT_ED25519_KEY_BYTES);
  return c->key != NULL;
}

static void crypto_close(crypto *c) {
  EVP_MD_CTX_free(c->digest);
  EVP_PKEY_free(c->key);
  OSSL_LIB_CTX_free(c->library);
  ERR_pop_to_mark();
}

bool ait_ed25519_sign(const uint8_t seed[AIT_ED25519_KEY_BYTES], const void *message, size_t size,
                      uint8_t out[AIT_ED25519_SIGNATURE_BYTES]) {
  crypto c;
  size_t length = AIT_ED25519_SIGNATURE_BYTES;
  bool good = crypto_open(&c, seed, NULL) && EVP_DigestSignInit_ex(c.digest, NULL, NULL, c.library, NULL, c.key, NULL) == 1 &&
              EVP_DigestSign(c.digest, out, &length, message, size) == 1 && length == AIT_ED25519_SIGNATURE_BYTES;
  crypto_close(&c);
  return good;
}

bool ait_ed25519_verify(const uint8_t key[AIT_ED25519_KEY_BYTES], const uint8_t *signature, const void *message, size_t size,
                        bool *out_right) {
  crypto c;
  bool ready = crypto_open(&c, NULL, key) && EVP_DigestVerifyInit_ex(c.digest, NULL, NULL, c.library, NULL, c.key, NULL) == 1;
  *out_right = ready && EVP_DigestVerify(c.digest, signature, AIT_ED25519_SIGNATURE_BYTES, message, size) == 1;
  crypto_close(&c);
  return ready;
}

bool ait_ed25519_public_key(const uint8_t seed[AIT_ED25519_KEY_BYTES], uint8_t out[AIT_ED25519_KEY_BYTES]) {
  crypto c;
  size_t length = AIT_ED25519_KEY_BYTES;
  bool good = crypto_open(&c, seed, NULL) && EVP_PKEY_get_raw_public_key(c.key, out, &length) == 1 && length == AIT_ED25519_KEY_BYTES;
  crypto_close(&c);
  return good;
}
