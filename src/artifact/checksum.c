#include "artifact/checksum.h"
#include "artifact/crypto.h"

ait_status ait_sha256_hex(const void *data, size_t size, char out[AIT_SHA256_HEX + 1]) {
  static const char digits[] = "0123456789abcdef";
  uint8_t hash[AIT_SHA256_BYTES];
  if (!ait_crypto_sha256(data, size, hash)) return ait_error(AIT_CODE_INTERNAL, "SHA-256 is not available");
  for (int i = 0; i < AIT_SHA256_BYTES; ++i) {
    out[2 * i] = digits[hash[i] >> 4];
    out[2 * i + 1] = digits[hash[i] & 15];
  }
  out[AIT_SHA256_HEX] = 0;
  return AIT_OK;
}

uint64_t ait_sum_chunk(const void *data, size_t size, size_t chunk) {
  size_t begin = chunk * AIT_SUM_CHUNK, left = size - begin;
  return ait_hash((const char *)data + begin, left < AIT_SUM_CHUNK ? left : AIT_SUM_CHUNK, chunk);
}

uint64_t ait_sum_join(const uint64_t *chunks, size_t count, size_t size) {
  uint64_t sum = size;
  for (size_t i = 0; i < count; ++i) {
    uint8_t bytes[8];
    for (int k = 0; k < 8; ++k) bytes[k] = (uint8_t)(chunks[i] >> (8 * k));
    sum = ait_hash(bytes, sizeof bytes, sum);
  }
  return sum;
}

ait_status ait_sum(ait_allocator a, const void *data, size_t size, uint64_t *out) {
  size_t count = ait_sum_chunks(size), bytes = count * sizeof(uint64_t);
  uint64_t *chunks = ait_alloc(a, bytes, _Alignof(uint64_t));
  if (!chunks) return AIT_OOM();
  for (size_t i = 0; i < count; ++i) chunks[i] = ait_sum_chunk(data, size, i);
  *out = ait_sum_join(chunks, count, size);
  ait_free(a, chunks, bytes);
  return AIT_OK;
}
