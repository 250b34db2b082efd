/* Checksums of entries: SHA-256 for everything, and for the bulk a 64-bit sum that is as fast as memory. docs/format.md, "Integrity". */
#ifndef AIT_SRC_ARTIFACT_CHECKSUM_H
#define AIT_SRC_ARTIFACT_CHECKSUM_H

#include "base/base.h"

#define AIT_SHA256_HEX 64
ait_status ait_sha256_hex(const void *data, size_t size, char out[AIT_SHA256_HEX + 1]) AIT_MUST_USE;

/* The fast sum goes over pieces of this size, so that threads can share the work. */
#define AIT_SUM_CHUNK ((size_t)4 << 20)
static inline size_t ait_sum_chunks(size_t size) { return size / AIT_SUM_CHUNK + (size % AIT_SUM_CHUNK != 0); }
uint64_t ait_sum_chunk(const void *data, size_t size, size_t chunk); /* of piece number `chunk` of `size` bytes */
uint64_t ait_sum_join(const uint64_t *chunks, size_t count, size_t size);
/* All of it in the calling thread. */
ait_status ait_sum(ait_allocator a, const void *data, size_t size, uint64_t *out) AIT_MUST_USE;

#endif
