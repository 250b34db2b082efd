/* A 64-bit hash of the folded-multiply family, the string map over it, and ZIP's checksum. Not for hostile keys that must not collide: use
 * SHA-256. */
#include "base/base.h"

#include <pthread.h>

/* ---- hash ----------------------------------------------------------------------------------------------------------------------*/
/* Odd constants with balanced bits: fractional parts of the square roots of 2, 3, 5, 7. */
static const uint64_t K0 = 0x6a09e667f3bcc909u, K1 = 0xbb67ae8584caa73bu, K2 = 0x3c6ef372fe94f82bu, K3 = 0xa54ff53a5f1d36f1u;

__extension__ typedef unsigned __int128 wide;

static uint64_t fold(uint64_t a, uint64_t b) {
  wide product = (wide)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t read_le(const uint8_t *p, size_t bytes) {
  uint64_t v = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  memcpy(&v, p, bytes);
#else
  for (size_t i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
#endif
  return v;
}

uint64_t ait_hash(const void *data, size_t length, uint64_t seed) {
  const uint8_t *p = data;
  uint64_t h = fold(seed ^ K0, K1) ^ (uint64_t)length;
  size_t left = length;
  if (left > 48) {
    uint64_t lane1 = h ^ K2, lane2 = h ^ K3;
    for (; left > 48; left -= 48, p += 48) {
      h = fold(read_le(p, 8) ^ K1, read_le(p + 8, 8) ^ h);
      lane1 = fold(read_le(p + 16, 8) ^ K2, read_le(p + 24, 8) ^ lane1);
      lane2 = fold(read_le(p + 32, 8) ^ K3, read_le(p + 40, 8) ^ lane2);
    }
    h ^= lane1 + (lane2 << 32 | lane2 >> 32);
  }
  for (; left > 16; left -= 16, p += 16) h = fold(read_le(p, 8) ^ K1, read_le(p + 8, 8) ^ h);
  uint64_t a = 0, b = 0; /* what is left, 0 to 16 bytes, padded with zeros; the length tells them apart */
  if (left > 8) a = read_le(p, 8), b = read_le(p + 8, left - 8);
  else if (left > 0) a = read_le(p, left);
  h = fold(a ^ K2, b ^ h ^ K3);
  return fold(h ^ K0, (uint64_t)length ^ K1);
}

/* ---- map -----------------------------------------------------------------------------------------------------------------------*/
void ait_map_init(ait_map *map, ait_allocator allocator) { *map = (ait_map){.allocator = allocator}; }

void ait_map_deinit(ait_map *map) {
  for (size_t i = 0; i < map->count; i++) ait_free(map->allocator, map->entries[i].key, strlen(map->entries[i].key) + 1);
  ait_free(map->allocator, map->entries, map->capacity * sizeof *map->entries);
  ait_free(map->allocator, map->slots, map->slot_count * sizeof *map->slots);
  ait_map_init(map, map->allocator);
}

/* The slot where the key is, or the free one where it would go. Slots hold entry index + 1; 0 is free. slot_count is a power of two. */
static size_t map_slot(const ait_map *map, const char *key, uint64_t hash) {
  size_t mask = map->slot_count - 1, at = (size_t)hash & mask;
  while (map->slots[at]) {
    const ait_map_entry *entry = &map->entries[map->slots[at] - 1];
    if (entry->hash == hash && strcmp(entry->key, key) == 0) break;
    at = (at + 1) & mask;
  }
  return at;
}

/* At most half full, so that probes are short. */
static ait_status map_rehash(ait_map *map) {
  if ((map->count + 1) * 2 <= map->slot_count) return AIT_OK;
  size_t slot_count = map->slot_count ? map->slot_count * 2 : 16;
  if (slot_count > UINT32_MAX) return ait_error(AIT_CODE_LIMIT, "too many keys in one map");
  uint32_t *slots = ait_alloc_zero(map->allocator, slot_count * sizeof *slots, _Alignof(uint32_t));
  if (!slots) return AIT_OOM();
  ait_free(map->allocator, map->slots, map->slot_count * sizeof *slots);
  map->slots = slots;
  map->slot_count = slot_count;
  for (size_t i = 0; i < map->count; i++) {
    size_t at = (size_t)map->entries[i].hash & (slot_count - 1);
    while (slots[at]) at = (at + 1) & (slot_count - 1);
    slots[at] = (uint32_t)i + 1;
  }
  return AIT_OK;
}

ait_status ait_map_put(ait_map *map, const char *key, void *value) {
  AIT_TRY(map_rehash(map));
  size_t length = strlen(key);
  uint64_t hash = ait_hash(key, length, 0);
  size_t at = map_slot(map, key, hash);
  if (map->slots[at]) {
    map->entries[map->slots[at] - 1].value = value;
    return AIT_OK;
  }
  void *entries = map->entries;
  ait_status status = ait_grow(map->allocator, &entries, &map->capacity, map->count + 1, sizeof *map->entries);
  map->entries = entries;
  AIT_TRY(status);
  char *copy = ait_alloc(map->allocator, length + 1, 1);
  if (!copy) return AIT_OOM();
  memcpy(copy, key, length + 1);
  map->entries[map->count++] = (ait_map_entry){copy, hash, value};
  map->slots[at] = (uint32_t)map->count;
  return AIT_OK;
}

bool ait_map_get(const ait_map *map, const char *key, void **out_value) {
  if (map->count == 0) return false;
  uint32_t slot = map->slots[map_slot(map, key, ait_hash(key, strlen(key), 0))];
  if (slot && out_value) *out_value = map->entries[slot - 1].value;
  return slot != 0;
}

/* ---- CRC-32 --------------------------------------------------------------------------------------------------------------------
 * The reflected polynomial 0xEDB88320 of ISO 3309, eight bytes a step (Kounavis and Berry, "Novel Table Lookup-Based Algorithms for
 * High-Performance CRC Generation", 2008). */
static uint32_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_init(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ 0xEDB88320u : c >> 1;
    crc_table[0][i] = c;
  }
  for (int t = 1; t < 8; t++) {
    for (uint32_t i = 0; i < 256; i++) crc_table[t][i] = crc_table[t - 1][i] >> 8 ^ crc_table[0][crc_table[t - 1][i] & 0xFF];
  }
}

uint32_t ait_crc32(uint32_t crc, const void *data, size_t length) {
  pthread_once(&crc_once, crc_init);
  const uint8_t *p = data;
  uint32_t c = ~crc;
  for (; length >= 8; length -= 8, p += 8) {
    uint64_t v = read_le(p, 8) ^ c;
    c = crc_table[7][v & 0xFF] ^ crc_table[6][v >> 8 & 0xFF] ^ crc_table[5][v >> 16 & 0xFF] ^ crc_table[4][v >> 24 & 0xFF] ^
        crc_table[3][v >> 32 & 0xFF] ^ crc_table[2][v >> 40 & 0xFF] ^ crc_table[1][v >> 48 & 0xFF] ^ crc_table[0][v >> 56];
  }
  for (; length; length--, p++) c = c >> 8 ^ crc_table[0][(c ^ *p) & 0xFF];
  return ~c;
}
