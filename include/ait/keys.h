/* Keys and signatures: who sealed a file.
 *
 * Signatures are Ed25519 (RFC 8032). A store is a folder of small text files: NAME.pub is a trusted key, NAME.revoked one that is trusted
 * no more, NAME.key the private half of a key of one's own. The library looks for no folder by itself: the program says where it is.
 * Thread rule: a store may be read by any number of threads; nobody may use it while one changes it. */
#ifndef AIT_KEYS_H
#define AIT_KEYS_H

#include <ait/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ait_keys ait_keys;

typedef struct ait_key_info {
  const char *name;
  const char *text;        /* "ait-ed25519 BASE64 NAME": one line, to be mailed and given to ait_keys_trust */
  const char *fingerprint; /* 32 hex digits of the public key's SHA-256 */
  bool revoked;
  bool own; /* the private half is here */
} ait_key_info;

/* All keys of the folder, by name. A folder that is not there is an empty store. Errors: io; invalid-argument names the file that is no key
 * (a store that cannot be read whole trusts nobody). */
AIT_API AIT_MUST_USE ait_status ait_keys_open(ait_allocator allocator, const char *folder, ait_keys **out);
AIT_API void ait_keys_destroy(ait_keys *keys); /* takes NULL */
AIT_API size_t ait_keys_count(const ait_keys *keys);
/* false: index out of range. Texts are valid until the store changes. */
AIT_API bool ait_keys_at(const ait_keys *keys, size_t index, ait_key_info *out);
AIT_API bool ait_keys_find(const ait_keys *keys, const char *name, ait_key_info *out);

/* A new key pair, trusted. The folder is made (mode 0700) when it is missing; the private half has mode 0600. Names: 1 to 64 of
 * A-Z a-z 0-9 . _ -, beginning with a letter or digit. Errors: invalid-argument (the name, or it is taken), io. */
AIT_API AIT_MUST_USE ait_status ait_keys_new(ait_keys *keys, const char *name);
/* Trusts a key by its text. name: NULL takes the one in the text. Errors: invalid-argument: no key text, the name is taken, the key is
 * here already, or revoked. *out_name (out_name may be NULL) is the name that it has now, valid until the store changes. */
AIT_API AIT_MUST_USE ait_status ait_keys_trust(ait_keys *keys, const char *text, const char *name, const char **out_name);
/* For good: the key's files are kept so that its signatures are known as revoked. Errors: not-found. */
AIT_API AIT_MUST_USE ait_status ait_keys_revoke(ait_keys *keys, const char *name);

/* Signs a sealed file, in the place of any signature it had. out_path may be path. key: the name of an own key in the store, or the path
 * of a private key file. The file's other entries, byte for byte, are as before. Errors: those of loading; not-found (no such key);
 * invalid-argument (it is revoked); io (others may read the private key). */
AIT_API AIT_MUST_USE ait_status ait_sign(const char *path, const char *out_path, const ait_keys *keys, const char *key);

/* Numbers never change. A bad signature has none: such a file is refused. */
typedef enum ait_signature_state {
  AIT_SIGNATURE_UNSIGNED = 0,
  AIT_SIGNATURE_TRUSTED = 1,
  AIT_SIGNATURE_UNKNOWN = 2, /* right, by a key that is not in the store (or no store was given) */
  AIT_SIGNATURE_REVOKED = 3  /* right, by a key that is not trusted any more */
} ait_signature_state;

typedef struct ait_signature {
  ait_signature_state state;
  const char *key_name;    /* in the store: trusted and revoked; else "" */
  const char *fingerprint; /* of the key that signed; "" for unsigned files */
} ait_signature;
/* "unsigned", "trusted", "unknown", "revoked" */
AIT_API const char *ait_signature_state_name(ait_signature_state state);

#ifdef __cplusplus
}
#endif
#endif
