/* Signatures by Ed25519, base64 (RFC 4648, section 4), and the text forms of keys and signatures. */
#include "artifact/signature.h"
#include "artifact/checksum.h"
#include "artifact/crypto.h"
#include <errno.h>
#include <sys/random.h>

#define KEY_WORD "ait-ed25519"
#define PRIVATE_WORD "ait-ed25519-private"
#define SIGNATURE_HEAD "ait-signature 1\n"

/* ---- base64 ------------------------------------------------------------------------------------------------------------------------*/
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
enum { KEY_BASE64 = 44, SIGNATURE_BASE64 = 88 };

static void put_base64(ait_text *out, const uint8_t *data, size_t size) {
  for (size_t i = 0; i < size; i += 3) {
    uint32_t v = (uint32_t)data[i] << 16 | (i + 1 < size ? (uint32_t)data[i + 1] << 8 : 0) | (i + 2 < size ? data[i + 2] : 0);
    char four[4] = {alphabet[v >> 18], alphabet[v >> 12 & 63], i + 1 < size ? alphabet[v >> 6 & 63] : '=',
                    i + 2 < size ? alphabet[v & 63] : '='};
    ait_text_append(out, four, 4);
  }
}

/* Exactly `size` bytes from the characters that they take; only the one way of writing them is right. */
static bool get_base64(const char *text, uint8_t *out, size_t size) {
  size_t at = 0, chars = (size + 2) / 3 * 4;
  for (size_t i = 0; i < chars; i += 4) {
    uint32_t v = 0, used = size - at < 3 ? (uint32_t)(size - at) : 3;
    for (size_t k = 0; k < 4; ++k) {
      const char *c = text[i + k] ? strchr(alphabet, text[i + k]) : NULL;
      if (k > used ? text[i + k] != '=' : !c) return false;
      v = v << 6 | (k > used ? 0 : (uint32_t)(c - alphabet));
    }
    if (used < 3 && v & ((1u << (24 - 8 * used)) - 1)) return false; /* bits that no byte has */
    for (size_t k = 0; k < used; ++k) out[at++] = (uint8_t)(v >> (16 - 8 * k));
  }
  return true;
}

/* ---- Ed25519 ------------------------------------------------------------------------------------------------------------------------*/
static ait_status no_ed25519(void) { return ait_error(AIT_CODE_UNAVAILABLE, "libcrypto offers no Ed25519 here"); }

void ait_private_key_wipe(ait_private_key *key) { explicit_bzero(key, sizeof *key); }

ait_status ait_private_key_from_seed(const uint8_t seed[AIT_KEY_BYTES], ait_private_key *out) {
  if (!ait_ed25519_public_key(seed, out->public_key)) return no_ed25519();
  memcpy(out->seed, seed, AIT_KEY_BYTES);
  return AIT_OK;
}

ait_status ait_private_key_make(ait_private_key *out) {
  uint8_t seed[AIT_KEY_BYTES];
  ssize_t n;
  do n = getrandom(seed, sizeof seed, 0);
  while (n < 0 && errno == EINTR);
  if (n != (ssize_t)sizeof seed) return ait_error(AIT_CODE_UNAVAILABLE, "the system gives no random numbers");
  ait_status status = ait_private_key_from_seed(seed, out);
  explicit_bzero(seed, sizeof seed);
  return status;
}

/* ---- text --------------------------------------------------------------------------------------------------------------------------*/
void ait_key_fingerprint(const uint8_t public_key[AIT_KEY_BYTES], char out[AIT_FINGERPRINT_HEX + 1]) {
  char hex[AIT_SHA256_HEX + 1] = "";
  ait_status_ignore(ait_sha256_hex(public_key, AIT_KEY_BYTES, hex));
  memcpy(out, hex, AIT_FINGERPRINT_HEX);
  out[AIT_FINGERPRINT_HEX] = 0;
}

bool ait_key_name_valid(const char *name, size_t length) {
  if (length == 0 || length > AIT_KEY_NAME_MAX) return false;
  for (size_t i = 0; i < length; ++i) {
    char c = name[i];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && (i == 0 || (c != '.' && c != '_' && c != '-'))) return false;
  }
  return true;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool ait_key_text_parse(const char *text, size_t size, uint8_t out[AIT_KEY_BYTES], char name[AIT_KEY_NAME_MAX + 1]) {
  static const size_t word = sizeof KEY_WORD; /* with the space */
  while (size && is_space(text[size - 1])) --size;
  while (size && is_space(*text)) ++text, --size; /* mail adds both */
  name[0] = 0;
  if (size < word + KEY_BASE64 || memcmp(text, KEY_WORD " ", word) != 0 || !get_base64(text + word, out, AIT_KEY_BYTES)) return false;
  text += word + KEY_BASE64;
  size -= word + KEY_BASE64;
  if (size == 0) return true;
  if (*text != ' ' || !ait_key_name_valid(text + 1, size - 1)) return false;
  memcpy(name, text + 1, size - 1);
  name[size - 1] = 0;
  return true;
}

void ait_key_text_format(const uint8_t public_key[AIT_KEY_BYTES], const char *name, ait_text *out) {
  ait_text_printf(out, "%s ", KEY_WORD);
  put_base64(out, public_key, AIT_KEY_BYTES);
  if (*name) ait_text_printf(out, " %s", name);
}

void ait_private_text_format(const ait_private_key *key, ait_text *out) {
  ait_text_printf(out, "%s ", PRIVATE_WORD);
  put_base64(out, key->seed, AIT_KEY_BYTES);
  ait_text_append(out, "\n", 1);
}

bool ait_private_text_parse(const char *text, size_t size, uint8_t seed[AIT_KEY_BYTES]) {
  static const size_t word = sizeof PRIVATE_WORD;
  while (size && is_space(text[size - 1])) --size;
  return size == word + KEY_BASE64 && memcmp(text, PRIVATE_WORD " ", word) == 0 && get_base64(text + word, seed, AIT_KEY_BYTES);
}

/* Three lines: head, key, signature. */
static void put_entry(const uint8_t key[AIT_KEY_BYTES], const uint8_t signature[AIT_SIGNATURE_BYTES], ait_text *out) {
  ait_text_append(out, SIGNATURE_HEAD, strlen(SIGNATURE_HEAD));
  ait_key_text_format(key, "", out);
  ait_text_append(out, "\n", 1);
  put_base64(out, signature, AIT_SIGNATURE_BYTES);
  ait_text_append(out, "\n", 1);
}

ait_status ait_signature_format(const ait_private_key *key, const void *message, size_t size, ait_text *out) {
  uint8_t signature[AIT_SIGNATURE_BYTES];
  if (!ait_ed25519_sign(key->seed, message, size, signature)) return no_ed25519();
  put_entry(key->public_key, signature, out);
  return out->failed ? AIT_OOM() : AIT_OK;
}

ait_status ait_signature_check(const void *entry, size_t entry_size, const void *message, size_t size, uint8_t out_key[AIT_KEY_BYTES]) {
  static const size_t head = sizeof SIGNATURE_HEAD - 1, word = sizeof KEY_WORD;
  const char *text = entry;
  uint8_t signature[AIT_SIGNATURE_BYTES];
  bool right;
  bool whole = entry_size == head + word + KEY_BASE64 + 1 + SIGNATURE_BASE64 + 1 && memcmp(text, SIGNATURE_HEAD, head) == 0 &&
               memcmp(text + head, KEY_WORD " ", word) == 0 && get_base64(text + head + word, out_key, AIT_KEY_BYTES) &&
               text[head + word + KEY_BASE64] == '\n' && get_base64(text + head + word + KEY_BASE64 + 1, signature, AIT_SIGNATURE_BYTES) &&
               text[entry_size - 1] == '\n';
  if (!whole) return ait_error(AIT_CODE_INVALID_MODEL, "its signature is damaged");
  if (!ait_ed25519_verify(out_key, signature, message, size, &right)) return no_ed25519();
  if (right) return AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "its signature is not one of these contents: it was forged or altered"),
                        "get the file again from where it came");
}
