/* ZIP headers, both ways. APPNOTE.TXT of PKWARE 6.3.10 is the specification of the fields. */
#include "artifact/zip.h"

#define LOCAL_SIGNATURE 0x04034b50u
#define CENTRAL_SIGNATURE 0x02014b50u
#define END64_SIGNATURE 0x06064b50u
#define LOCATOR64_SIGNATURE 0x07064b50u
#define END_SIGNATURE 0x06054b50u
#define LOCAL_BYTES 30u
#define CENTRAL_BYTES 46u
#define END64_BYTES 56u
#define LOCATOR64_BYTES 20u
#define END_BYTES 22u
#define LOCAL_ZIP64_EXTRA 20u /* id, length, two sizes */
#define PADDING_ID 0x6961u    /* "ai": an extra field of zeros, so that the data is aligned */
#define FIXED_DATE 0x0021u    /* 1 January 1980: equal contents give equal bytes */
#define UNIX_FILE_0644 (0100644u << 16)
#define FULL32 0xffffffffu
#define FULL16 0xffffu

/* ---- names -----------------------------------------------------------------------------------------------------------------------*/
bool ait_zip_name_valid(const char *name, size_t length) {
  if (length == 0 || length > AIT_ZIP_MAX_NAME || name[length - 1] == '/') return false;
  for (size_t i = 0, start = 0; i <= length; ++i) {
    char c = i < length ? name[i] : '/';
    if (c == '/') {
      size_t part = i - start;
      if (part == 0 || (part == 1 && name[start] == '.') || (part == 2 && name[start] == '.' && name[start + 1] == '.')) return false;
      start = i + 1;
    } else if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-')) {
      return false;
    }
  }
  return true;
}

/* ---- writing ---------------------------------------------------------------------------------------------------------------------*/
static void put16(ait_text *t, uint32_t v) { ait_text_append(t, (uint8_t[]){(uint8_t)v, (uint8_t)(v >> 8)}, 2); }

static void put32(ait_text *t, uint32_t v) {
  put16(t, v & FULL16);
  put16(t, v >> 16);
}

static void put64(ait_text *t, uint64_t v) {
  put32(t, (uint32_t)v);
  put32(t, (uint32_t)(v >> 32));
}

static bool is_long(uint64_t v) { return v >= FULL32; }
static uint32_t short32(uint64_t v) { return is_long(v) ? FULL32 : (uint32_t)v; }

static uint64_t header_bytes(const ait_zip_entry *e) { return LOCAL_BYTES + strlen(e->name) + (is_long(e->size) ? LOCAL_ZIP64_EXTRA : 0); }

void ait_zip_place(ait_zip_entry *e, size_t align) {
  uint64_t least = e->header_offset + header_bytes(e), at = (least + align - 1) & ~(uint64_t)(align - 1);
  /* A padding field has a head of four bytes: a smaller gap becomes a larger one. */
  if (at != least && at - least < 4) at += align;
  e->data_offset = at;
}

/* The fields that both headers share, from "flags" to "uncompressed size". */
static void put_common(ait_text *out, const ait_zip_entry *e) {
  put16(out, 0); /* flags */
  put16(out, 0); /* stored */
  put16(out, 0); /* time */
  put16(out, FIXED_DATE);
  put32(out, e->crc);
  put32(out, short32(e->size));
  put32(out, short32(e->size));
}

static uint32_t version_needed(const ait_zip_entry *e) { return is_long(e->size) || is_long(e->header_offset) ? 45 : 20; }

void ait_zip_local_header(ait_text *out, const ait_zip_entry *e) {
  static const uint8_t zeros[256];
  uint64_t padding = e->data_offset - e->header_offset - header_bytes(e);
  put32(out, LOCAL_SIGNATURE);
  put16(out, version_needed(e));
  put_common(out, e);
  put16(out, (uint32_t)strlen(e->name));
  put16(out, (uint32_t)((is_long(e->size) ? LOCAL_ZIP64_EXTRA : 0) + padding));
  ait_text_append(out, e->name, strlen(e->name));
  if (is_long(e->size)) {
    put16(out, 1);
    put16(out, LOCAL_ZIP64_EXTRA - 4);
    put64(out, e->size);
    put64(out, e->size);
  }
  if (padding == 0) return;
  put16(out, PADDING_ID);
  put16(out, (uint32_t)padding - 4);
  for (uint64_t left = padding - 4; left;) {
    size_t n = left < sizeof zeros ? (size_t)left : sizeof zeros;
    ait_text_append(out, zeros, n);
    left -= n;
  }
}

static void central_header(ait_text *out, const ait_zip_entry *e) {
  uint32_t extra = (is_long(e->size) ? 16 : 0) + (is_long(e->header_offset) ? 8 : 0);
  put32(out, CENTRAL_SIGNATURE);
  put16(out, 3 << 8 | 45); /* made by: Unix, version 4.5 */
  put16(out, version_needed(e));
  put_common(out, e);
  put16(out, (uint32_t)strlen(e->name));
  put16(out, extra ? extra + 4 : 0);
  put16(out, 0); /* comment */
  put16(out, 0); /* disk */
  put16(out, 0); /* internal attributes */
  put32(out, UNIX_FILE_0644);
  put32(out, short32(e->header_offset));
  ait_text_append(out, e->name, strlen(e->name));
  if (!extra) return;
  put16(out, 1);
  put16(out, extra);
  if (is_long(e->size)) {
    put64(out, e->size);
    put64(out, e->size);
  }
  if (is_long(e->header_offset)) put64(out, e->header_offset);
}

void ait_zip_directory(ait_text *out, const ait_zip_entry *entries, size_t count, uint64_t offset) {
  size_t begin = out->length;
  for (size_t i = 0; i < count; ++i) central_header(out, &entries[i]);
  uint64_t bytes = out->length - begin;
  if (count >= FULL16 || is_long(bytes) || is_long(offset)) {
    put32(out, END64_SIGNATURE);
    put64(out, END64_BYTES - 12);
    put16(out, 3 << 8 | 45);
    put16(out, 45);
    put32(out, 0);
    put32(out, 0);
    put64(out, count);
    put64(out, count);
    put64(out, bytes);
    put64(out, offset);
    put32(out, LOCATOR64_SIGNATURE);
    put32(out, 0);
    put64(out, offset + bytes);
    put32(out, 1);
  }
  put32(out, END_SIGNATURE);
  put16(out, 0);
  put16(out, 0);
  put16(out, count >= FULL16 ? FULL16 : (uint32_t)count);
  put16(out, count >= FULL16 ? FULL16 : (uint32_t)count);
  put32(out, short32(bytes));
  put32(out, short32(offset));
  put16(out, 0);
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------*/
typedef struct directory {
  uint64_t offset, bytes, count;
} directory;

static uint32_t get16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t get32(const uint8_t *p) { return get16(p) | get16(p + 2) << 16; }
static uint64_t get64(const uint8_t *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }

static ait_status damaged(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "its %s is damaged", what); }

static ait_status find_directory(const uint8_t *data, size_t size, directory *out) {
  if (size < END_BYTES || get32(data + size - END_BYTES) != END_SIGNATURE) {
    return ait_error(AIT_CODE_INVALID_MODEL, "it does not end as a .ait file does (cut short, or another kind of file)");
  }
  const uint8_t *end = data + size - END_BYTES;
  *out = (directory){.count = get16(end + 10), .bytes = get32(end + 12), .offset = get32(end + 16)};
  if (out->count == FULL16 || out->bytes == FULL32 || out->offset == FULL32) {
    if (size < END_BYTES + LOCATOR64_BYTES + END64_BYTES) return damaged("directory");
    const uint8_t *end64 = end - LOCATOR64_BYTES - END64_BYTES;
    if (get32(end64) != END64_SIGNATURE) return damaged("directory");
    *out = (directory){.count = get64(end64 + 32), .bytes = get64(end64 + 40), .offset = get64(end64 + 48)};
  }
  if (out->offset > size || out->bytes > size - out->offset || out->count > AIT_ZIP_MAX_ENTRIES ||
      out->count > out->bytes / CENTRAL_BYTES) {
    return damaged("directory");
  }
  return AIT_OK;
}

/* One central header: name, size, CRC and place. All else is checked by making it again. */
static ait_status read_central(ait_arena *arena, const uint8_t **p, const uint8_t *end, ait_zip_entry *e) {
  if ((size_t)(end - *p) < CENTRAL_BYTES) return damaged("directory");
  const uint8_t *h = *p;
  size_t name_bytes = get16(h + 28), extra_bytes = get16(h + 30);
  if ((size_t)(end - h) - CENTRAL_BYTES < name_bytes + extra_bytes) return damaged("directory");
  const uint8_t *name = h + CENTRAL_BYTES, *extra = name + name_bytes;
  if (!ait_zip_name_valid((const char *)name, name_bytes)) return damaged("directory");
  *e = (ait_zip_entry){.crc = get32(h + 16), .size = get32(h + 24), .header_offset = get32(h + 42)};
  size_t wanted = (e->size == FULL32 ? 16u : 0u) + (e->header_offset == FULL32 ? 8u : 0u);
  if (wanted && extra_bytes != wanted + 4) return damaged("directory");
  extra += 4;
  if (e->size == FULL32) {
    e->size = get64(extra);
    extra += 16;
  }
  if (e->header_offset == FULL32) e->header_offset = get64(extra);
  e->name = ait_arena_strdup(arena, (const char *)name, name_bytes);
  if (!e->name) return AIT_OOM();
  *p = h + CENTRAL_BYTES + name_bytes + extra_bytes;
  return AIT_OK;
}

static ait_status header_damaged(const ait_zip_entry *e) {
  return ait_error(AIT_CODE_INVALID_MODEL, "the header of entry '%s' is damaged", e->name);
}

/* Entries follow each other without a gap, so each begins where the last one ended. */
static ait_status check_local(const uint8_t *data, uint64_t limit, uint64_t cursor, ait_zip_entry *e, ait_text *scratch) {
  if (e->header_offset != cursor || cursor > limit || limit - cursor < LOCAL_BYTES) return header_damaged(e);
  uint64_t extra = get16(data + cursor + 28), fixed = header_bytes(e);
  uint64_t total = LOCAL_BYTES + strlen(e->name) + extra;
  if (total > limit - cursor || e->size > limit - cursor - total) return header_damaged(e);
  if (total < fixed || (total != fixed && total - fixed < 4) || (cursor + total) % AIT_ZIP_ALIGN != 0) return header_damaged(e);
  e->data_offset = cursor + total;
  scratch->length = 0;
  ait_zip_local_header(scratch, e);
  if (scratch->failed) return AIT_OOM();
  return memcmp(scratch->data, data + cursor, (size_t)total) == 0 ? AIT_OK : header_damaged(e);
}

static ait_status check_all(const uint8_t *data, size_t size, const directory *d, ait_zip_entry *entries, ait_text *scratch) {
  uint64_t cursor = 0;
  for (uint64_t i = 0; i < d->count; ++i) {
    AIT_TRY(check_local(data, d->offset, cursor, &entries[i], scratch));
    cursor = entries[i].data_offset + entries[i].size;
  }
  if (cursor != d->offset) return damaged("directory");
  scratch->length = 0;
  ait_zip_directory(scratch, entries, (size_t)d->count, d->offset);
  if (scratch->failed) return AIT_OOM();
  bool same = scratch->length == size - d->offset && memcmp(scratch->data, data + d->offset, scratch->length) == 0;
  return same ? AIT_OK : damaged("directory");
}

ait_status ait_zip_parse(ait_arena *arena, const uint8_t *data, size_t size, ait_zip_entry **out, size_t *out_count) {
  directory d = {0};
  AIT_TRY(find_directory(data, size, &d));
  ait_zip_entry *entries = AIT_ARENA_ARRAY(arena, ait_zip_entry, (size_t)d.count);
  if (!entries) return AIT_OOM();
  const uint8_t *p = data + d.offset, *end = p + d.bytes;
  for (uint64_t i = 0; i < d.count; ++i) AIT_TRY(read_central(arena, &p, end, &entries[i]));
  ait_text scratch;
  ait_text_init(&scratch, arena->allocator);
  ait_status status = check_all(data, size, &d, entries, &scratch);
  ait_text_deinit(&scratch);
  *out = entries;
  *out_count = (size_t)d.count;
  return status;
}
