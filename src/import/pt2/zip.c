/* ZIP reading after APPNOTE.TXT 6.3.10; section numbers below are its. */
#include "import/pt2/zip.h"
#include <stdlib.h>
#include <zlib.h>

enum {
  END_SIZE = 22,        /* 4.3.16 end of central directory */
  LOCATOR_SIZE = 20,    /* 4.3.15 zip64 locator */
  END64_SIZE = 56,      /* 4.3.14 zip64 end record, without extensible data */
  CENTRAL_SIZE = 46,    /* 4.3.12 */
  LOCAL_SIZE = 30,      /* 4.3.7 */
  FLAG_ENCRYPTED = 1,   /* 4.4.4 */
  FLAG_DESCRIPTOR = 8,  /* sizes and CRC follow the data */
  FLAG_STRONG = 0x40,   /* strong encryption */
  FLAG_MASKED = 0x2000, /* masked local headers */
  HOST_UNIX = 3,
  EXTRA_ZIP64 = 1,
};
#define MARK32 UINT32_MAX

static uint16_t u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t u32(const uint8_t *p) { return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16; }
static uint64_t u64(const uint8_t *p) { return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32; }

typedef struct directory {
  uint64_t offset, size, count;
  uint64_t end; /* where the records after it begin */
} directory;

/* The last end record whose comment reaches exactly to the end of the file. */
static bool find_end(const uint8_t *data, size_t size, size_t *out) {
  if (size < END_SIZE) return false;
  size_t lowest = size > END_SIZE + UINT16_MAX ? size - END_SIZE - UINT16_MAX : 0;
  for (size_t at = size - END_SIZE + 1; at-- > lowest;) {
    if (u32(data + at) == 0x06054b50 && u16(data + at + 20) == size - at - END_SIZE) {
      *out = at;
      return true;
    }
  }
  return false;
}

/* 4.3.14: the zip64 record, when a locator lies right before the end record (an inner archive's records lie elsewhere). */
static ait_status read_end64(const uint8_t *data, size_t end, directory *out, bool *out_found) {
  *out_found = false;
  if (end < LOCATOR_SIZE || u32(data + end - LOCATOR_SIZE) != 0x07064b50) return AIT_OK;
  size_t locator = end - LOCATOR_SIZE;
  uint64_t at = u64(data + locator + 8);
  if (u32(data + locator + 4) != 0 || u32(data + locator + 16) > 1)
    return ait_error(AIT_CODE_UNSUPPORTED, "the archive is split over several files");
  if (locator < END64_SIZE || at > locator - END64_SIZE || u32(data + at) != 0x06064b50) {
    return ait_error(AIT_CODE_INVALID_MODEL, "the zip64 end record is not where its locator says");
  }
  if (u64(data + at + 4) != locator - at - 12) return ait_error(AIT_CODE_INVALID_MODEL, "the zip64 end record has a wrong length");
  if (u32(data + at + 16) != 0 || u32(data + at + 20) != 0)
    return ait_error(AIT_CODE_UNSUPPORTED, "the archive is split over several files");
  if (u64(data + at + 24) != u64(data + at + 32)) return ait_error(AIT_CODE_INVALID_MODEL, "the zip64 end record contradicts itself");
  *out = (directory){.offset = u64(data + at + 48), .size = u64(data + at + 40), .count = u64(data + at + 32), .end = at};
  *out_found = true;
  return AIT_OK;
}

static ait_status find_directory(const uint8_t *data, size_t size, directory *out) {
  size_t end;
  if (size == 0) return ait_error(AIT_CODE_INVALID_MODEL, "the file is empty");
  if (!find_end(data, size, &end)) {
    return ait_error(AIT_CODE_INVALID_MODEL, "not a zip archive, or cut off: no end of central directory at the end of the file");
  }
  bool zip64;
  AIT_TRY(read_end64(data, end, out, &zip64));
  const uint8_t *p = data + end;
  if (u16(p + 4) != 0 || u16(p + 6) != 0) return ait_error(AIT_CODE_UNSUPPORTED, "the archive is split over several files");
  directory small = {.offset = u32(p + 16), .size = u32(p + 12), .count = u16(p + 10), .end = end};
  if (!zip64) *out = small;
  bool agree = u16(p + 8) == u16(p + 10) && (small.offset == out->offset || (zip64 && small.offset == MARK32)) &&
               (small.size == out->size || (zip64 && small.size == MARK32)) &&
               (small.count == out->count || (zip64 && small.count == UINT16_MAX));
  if (!agree) return ait_error(AIT_CODE_INVALID_MODEL, "the archive's end records disagree");
  if (out->offset > out->end || out->size != out->end - out->offset) {
    return ait_error(AIT_CODE_INVALID_MODEL, "the archive's central directory is not where its end record says");
  }
  if (out->count > out->size / CENTRAL_SIZE) {
    return ait_error(AIT_CODE_INVALID_MODEL, "the archive claims %llu members, its directory has room for %llu",
                     (unsigned long long)out->count, (unsigned long long)(out->size / CENTRAL_SIZE));
  }
  return AIT_OK;
}

/* 4.5.3: fields that overflow 32 bits, in the order size, stored size, offset; only those marked are there. */
static bool read_zip64_extra(const uint8_t *extra, size_t length, uint64_t *size, uint64_t *stored, uint64_t *offset) {
  uint64_t *fields[] = {size, stored, offset};
  bool wanted = *size == MARK32 || *stored == MARK32 || (offset && *offset == MARK32);
  for (size_t at = 0; wanted;) {
    if (length - at < 4) return false;
    size_t field = u16(extra + at + 2);
    if (field > length - at - 4) return false;
    if (u16(extra + at) != EXTRA_ZIP64) {
      at += 4 + field;
      continue;
    }
    size_t used = 0;
    for (size_t i = 0; i < AIT_COUNT(fields); ++i) {
      if (!fields[i] || *fields[i] != MARK32) continue;
      if (field - used < 8) return false;
      *fields[i] = u64(extra + at + 4 + used);
      used += 8;
    }
    return true;
  }
  return true;
}

/* Why a member name is refused, or NULL. */
static const char *name_fault(const char *name, size_t length) {
  if (length == 0) return "is empty";
  if (memchr(name, 0, length)) return "holds a NUL byte";
  if (!ait_utf8_valid(name, length)) return "is not UTF-8";
  if (name[0] == '/' || name[0] == '\\' || (length > 1 && name[1] == ':')) return "is an absolute path";
  for (size_t begin = 0, i = 0; i <= length; ++i) {
    if (i < length && name[i] != '/' && name[i] != '\\') continue;
    if (i - begin == 2 && name[begin] == '.' && name[begin + 1] == '.') return "leads out of the archive";
    begin = i + 1;
  }
  return NULL;
}

/* Text that may be printed: control and invalid bytes become '?'. */
static const char *printable(ait_arena *arena, const char *name, size_t length) {
  char *copy = ait_arena_strdup(arena, name, length < 200 ? length : 200);
  for (char *c = copy; c && (size_t)(c - copy) < length && (size_t)(c - copy) < 200; ++c) {
    if ((unsigned char)*c < 32 || (unsigned char)*c > 126) *c = '?';
  }
  return copy ? copy : "?";
}

/* 4.3.9: after the data, with or without signature, with 32- or 64-bit sizes. */
static bool descriptor_agrees(const uint8_t *p, uint64_t room, const ait_zip_member *m) {
  if (room >= 16 && u32(p) == 0x08074b50) {
    p += 4;
    room -= 4;
  }
  if (room >= 12 && u32(p) == m->crc && u32(p + 4) == m->stored_size && u32(p + 8) == m->size) return true;
  return room >= 20 && u32(p) == m->crc && u64(p + 4) == m->stored_size && u64(p + 12) == m->size;
}

/* The local header must say what the directory says. Sets member->stored. */
static ait_status check_local(const ait_zip *zip, const directory *dir, ait_zip_member *m, uint16_t flags, uint16_t method,
                              size_t name_length) {
  uint64_t at = m->record_offset;
  if (dir->offset < LOCAL_SIZE || at > dir->offset - LOCAL_SIZE) {
    return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' lies beyond the end of the archive", m->name);
  }
  const uint8_t *p = zip->data + at;
  if (u32(p) != 0x04034b50) return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' has no local header", m->name);
  size_t local_name = u16(p + 26), extra = u16(p + 28);
  uint64_t data = at + LOCAL_SIZE + local_name + extra;
  if (data > dir->offset || m->stored_size > dir->offset - data) {
    return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' reaches beyond the end of the archive", m->name);
  }
  if (local_name != name_length || memcmp(p + LOCAL_SIZE, m->name, name_length) != 0) {
    return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' has another name in its local header", m->name);
  }
  uint16_t local_flags = u16(p + 6);
  uint64_t crc = u32(p + 14), stored = u32(p + 18), size = u32(p + 22);
  bool late = local_flags & FLAG_DESCRIPTOR;
  bool sane = u16(p + 8) == method && (local_flags & (FLAG_ENCRYPTED | FLAG_DESCRIPTOR)) == (flags & (FLAG_ENCRYPTED | FLAG_DESCRIPTOR)) &&
              read_zip64_extra(p + LOCAL_SIZE + local_name, extra, &size, &stored, NULL);
  bool zero = late && crc == 0 && stored == 0 && size == 0;
  sane = sane && (zero || ((crc == m->crc || (late && crc == 0)) && (stored == m->stored_size || (late && stored == 0)) &&
                           (size == m->size || (late && size == 0))));
  sane = sane && (!late || descriptor_agrees(zip->data + data + m->stored_size, dir->offset - data - m->stored_size, m));
  if (!sane) return ait_error(AIT_CODE_INVALID_MODEL, "member '%s': local header and directory disagree", m->name);
  m->stored = zip->data + data;
  return AIT_OK;
}

static ait_status read_member(ait_arena *arena, const ait_zip *zip, const directory *dir, uint64_t *at, ait_zip_member *m) {
  uint64_t left = dir->offset + dir->size - *at;
  const uint8_t *p = zip->data + *at;
  if (left < CENTRAL_SIZE || u32(p) != 0x02014b50) return ait_error(AIT_CODE_INVALID_MODEL, "the archive's directory is damaged");
  size_t name_length = u16(p + 28), extra = u16(p + 30), comment = u16(p + 32);
  if (name_length + extra + comment > left - CENTRAL_SIZE) return ait_error(AIT_CODE_INVALID_MODEL, "the archive's directory is damaged");
  const char *name = (const char *)p + CENTRAL_SIZE;
  const char *fault = name_fault(name, name_length);
  if (fault) return ait_error(AIT_CODE_INVALID_MODEL, "member name '%s' %s", printable(arena, name, name_length), fault);
  uint16_t flags = u16(p + 8), method = u16(p + 10);
  *m = (ait_zip_member){.name = ait_arena_strdup(arena, name, name_length),
                        .stored_size = u32(p + 20),
                        .size = u32(p + 24),
                        .record_offset = u32(p + 42),
                        .crc = u32(p + 16),
                        .deflated = method == 8};
  if (!m->name) return AIT_OOM();
  if (flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED)) return ait_error(AIT_CODE_UNSUPPORTED, "member '%s' is encrypted", m->name);
  if (method != 0 && method != 8)
    return ait_error(AIT_CODE_UNSUPPORTED, "member '%s' is compressed by method %d; only stored and deflated are read", m->name, method);
  unsigned file_type = p[5] == HOST_UNIX ? u32(p + 38) >> 28 : 0; /* st_mode's type */
  if (file_type == 012) return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' is a symbolic link", m->name);
  if (file_type != 0 && file_type != 010 && file_type != 004)
    return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' is a special file", m->name);
  if (!read_zip64_extra(p + CENTRAL_SIZE + name_length, extra, &m->size, &m->stored_size, &m->record_offset)) {
    return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' has a damaged extra field", m->name);
  }
  if (!m->deflated && m->size != m->stored_size)
    return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' is stored, but its two sizes differ", m->name);
  /* Deflate cannot exceed 1032 to 1. */
  if (m->deflated && m->size / 1032 > m->stored_size) {
    return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' claims %llu bytes, more than its %llu deflated bytes can hold", m->name,
                     (unsigned long long)m->size, (unsigned long long)m->stored_size);
  }
  *at += CENTRAL_SIZE + name_length + extra + comment;
  return check_local(zip, dir, m, flags, method, name_length);
}

static size_t slot_of(const ait_zip *zip, const char *name) {
  size_t i = (size_t)ait_hash(name, strlen(name), 0) & (zip->slot_count - 1);
  while (zip->slots[i] && strcmp(zip->members[zip->slots[i] - 1].name, name) != 0) i = (i + 1) & (zip->slot_count - 1);
  return i;
}

static int by_offset(const void *a, const void *b) {
  uint64_t x = (*(const ait_zip_member *const *)a)->record_offset, y = (*(const ait_zip_member *const *)b)->record_offset;
  return x < y ? -1 : x > y;
}

/* No byte may belong to two members: that is how a small file claims to be a huge one. */
static ait_status check_overlap(ait_arena *arena, const ait_zip *zip) {
  const ait_zip_member **order = AIT_ARENA_ARRAY(arena, const ait_zip_member *, zip->count ? zip->count : 1);
  if (!order) return AIT_OOM();
  for (size_t i = 0; i < zip->count; ++i) order[i] = &zip->members[i];
  qsort(order, zip->count, sizeof *order, by_offset);
  for (size_t i = 1; i < zip->count; ++i) {
    uint64_t end = (uint64_t)(order[i - 1]->stored - zip->data) + order[i - 1]->stored_size;
    if (end > order[i]->record_offset)
      return ait_error(AIT_CODE_INVALID_MODEL, "members '%s' and '%s' overlap", order[i - 1]->name, order[i]->name);
  }
  return AIT_OK;
}

ait_status ait_zip_open(ait_arena *arena, const uint8_t *data, size_t size, ait_zip *out) {
  directory dir = {0};
  AIT_TRY(find_directory(data, size, &dir));
  ait_zip zip = {.data = data, .size = size, .slot_count = 16};
  while (zip.slot_count < 2 * dir.count) zip.slot_count *= 2;
  zip.members = AIT_ARENA_ARRAY(arena, ait_zip_member, dir.count ? (size_t)dir.count : 1);
  zip.slots = ait_arena_zero(arena, zip.slot_count * sizeof *zip.slots, _Alignof(uint32_t));
  if (!zip.members || !zip.slots) return AIT_OOM();
  uint64_t at = dir.offset;
  for (uint64_t i = 0; i < dir.count; ++i) {
    ait_zip_member *m = &zip.members[zip.count];
    AIT_TRY(read_member(arena, &zip, &dir, &at, m));
    size_t slot = slot_of(&zip, m->name);
    if (zip.slots[slot]) return ait_error(AIT_CODE_INVALID_MODEL, "the archive has two members named '%s'", m->name);
    zip.slots[slot] = (uint32_t)++zip.count;
  }
  if (at != dir.offset + dir.size) return ait_error(AIT_CODE_INVALID_MODEL, "the archive's directory holds more than its end record says");
  AIT_TRY(check_overlap(arena, &zip));
  *out = zip;
  return AIT_OK;
}

const ait_zip_member *ait_zip_find(const ait_zip *zip, const char *name) {
  uint32_t found = zip->slot_count ? zip->slots[slot_of(zip, name)] : 0;
  return found ? &zip->members[found - 1] : NULL;
}

static uint32_t crc_of(const uint8_t *data, uint64_t size) { return (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, (size_t)size); }

ait_status ait_zip_check(const ait_zip_member *m) {
  if (crc_of(m->stored, m->stored_size) == m->crc) return AIT_OK;
  return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' is damaged: its CRC is wrong", m->name);
}

/* zlib's memory comes from the caller's allocator, which wants sizes back. */
enum { BLOCK_HEADER = 16 };
static void *inflate_alloc(void *ctx, unsigned items, unsigned size) {
  size_t bytes = (size_t)items * size + BLOCK_HEADER;
  char *block = ait_alloc(*(ait_allocator *)ctx, bytes, BLOCK_HEADER);
  if (!block) return NULL;
  memcpy(block, &bytes, sizeof bytes);
  return block + BLOCK_HEADER;
}
static void inflate_free(void *ctx, void *p) {
  char *block = (char *)p - BLOCK_HEADER;
  size_t bytes;
  memcpy(&bytes, block, sizeof bytes);
  ait_free(*(ait_allocator *)ctx, block, bytes);
}

static unsigned chunk_of(uint64_t left) { return left > (1u << 30) ? 1u << 30 : (unsigned)left; }

static ait_status inflate_member(ait_allocator a, const ait_zip_member *m, uint8_t *out) {
  z_stream z = {.zalloc = inflate_alloc, .zfree = inflate_free, .opaque = &a};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return AIT_OOM();
  uint64_t in_left = m->stored_size, out_left = m->size;
  uint8_t spare[1]; /* room for one byte too many, so that a longer stream shows */
  z.next_in = (Bytef *)m->stored;
  z.next_out = out;
  int result = Z_OK;
  while (result == Z_OK) {
    if (z.avail_in == 0) in_left -= z.avail_in = chunk_of(in_left);
    if (z.avail_out == 0) {
      if (out_left == 0) {
        z.next_out = spare;
        z.avail_out = 1;
      } else {
        out_left -= z.avail_out = chunk_of(out_left);
      }
    }
    result = inflate(&z, Z_NO_FLUSH);
    if (z.next_out == spare + 1) break;
  }
  bool whole = result == Z_STREAM_END && z.avail_in == 0 && in_left == 0 && z.total_out == m->size;
  bool memory = result == Z_MEM_ERROR;
  inflateEnd(&z);
  if (memory) return AIT_OOM();
  return whole ? AIT_OK
               : ait_error(AIT_CODE_INVALID_MODEL, "member '%s' is damaged: its deflated data do not give %llu bytes", m->name,
                           (unsigned long long)m->size);
}

ait_status ait_zip_extract(ait_allocator a, const ait_zip_member *m, uint8_t *out) {
  if (!m->deflated) {
    AIT_TRY(ait_zip_check(m));
    if (m->size) memcpy(out, m->stored, (size_t)m->size);
    return AIT_OK;
  }
  AIT_TRY(inflate_member(a, m, out));
  if (crc_of(out, m->size) != m->crc) return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' is damaged: its CRC is wrong", m->name);
  return AIT_OK;
}

ait_status ait_zip_spend(const ait_zip_member *m, uint64_t *budget) {
  if (!m->deflated) return AIT_OK;
  if (m->size > *budget) {
    ait_status status = ait_error(AIT_CODE_LIMIT, "member '%s' inflates to %llu bytes, with the others more than a file of this size may",
                                  m->name, (unsigned long long)m->size);
    return ait_error_hint(status, "store the archive's members without compression");
  }
  *budget -= m->size;
  return AIT_OK;
}

ait_status ait_zip_contents(ait_arena *arena, const ait_zip_member *m, uint64_t *budget, const uint8_t **out, size_t *out_size) {
  *out_size = (size_t)m->size;
  if (!m->deflated) {
    *out = m->stored;
    return ait_zip_check(m);
  }
  AIT_TRY(ait_zip_spend(m, budget));
  uint8_t *buffer = ait_arena_alloc(arena, (size_t)m->size, 64);
  if (!buffer) return AIT_OOM();
  *out = buffer;
  return ait_zip_extract(arena->allocator, m, buffer);
}
