/* Sets of named tensors, and .npz archives of them: ZIP files (PKWARE APPNOTE 6.3.10) with one .npy member for each.
 *
 * Reading goes through libzip (not in the Python wheel of libait-rt: AIT_WITHOUT_LIBZIP). Writing is done here: stored members, in order,
 * with a fixed time, so that equal contents give equal bytes.
 */
#include "tensor/npy.h"

#include <stdlib.h>
#ifndef AIT_WITHOUT_LIBZIP
#include <zip.h>
#endif

/* ---- sets ----------------------------------------------------------------------------------------------------------------------*/
void ait_tensor_file_init(ait_tensor_file *f, ait_allocator a) { *f = (ait_tensor_file){.allocator = a}; }

void ait_tensor_file_truncate(ait_tensor_file *f, size_t count) {
  while (f->count > count) {
    ait_named_tensor *item = &f->items[--f->count];
    ait_tensor_release(&item->tensor);
    ait_free(f->allocator, item->name, strlen(item->name) + 1);
  }
}

void ait_tensor_file_deinit(ait_tensor_file *f) {
  ait_tensor_file_truncate(f, 0);
  ait_free(f->allocator, f->items, f->capacity * sizeof *f->items);
  ait_tensor_file_init(f, f->allocator);
}

ait_status ait_tensor_file_add(ait_tensor_file *f, const char *name, const ait_tensor *t) {
  void *items = f->items;
  ait_status status = ait_grow(f->allocator, &items, &f->capacity, f->count + 1, sizeof *f->items);
  f->items = items;
  AIT_TRY(status);
  size_t bytes = strlen(name) + 1;
  ait_named_tensor item = {.name = ait_alloc(f->allocator, bytes, 1)};
  if (!item.name) return AIT_OOM();
  memcpy(item.name, name, bytes);
  if (t->storage) item.tensor = ait_tensor_retain(t);
  else status = ait_tensor_cast(f->allocator, t, t->dtype, &item.tensor);
  if (status) ait_free(f->allocator, item.name, bytes);
  else f->items[f->count++] = item;
  return status;
}

const ait_tensor *ait_tensor_file_find(const ait_tensor_file *f, const char *name) {
  for (size_t i = 0; i < f->count; i++) {
    if (strcmp(f->items[i].name, name) == 0) return &f->items[i].tensor;
  }
  return NULL;
}

/* ---- reading -------------------------------------------------------------------------------------------------------------------*/
#ifdef AIT_WITHOUT_LIBZIP
ait_status ait_npz_parse(const void *data, size_t size, ait_tensor_file *out) {
  (void)data, (void)size, (void)out;
  return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "this build of ait reads no .npz"),
                        "use .npy or .safetensors, or the full package");
}
#else
/* An archive may unpack to this much, or to UNPACK_RATIO times its own size when that is more. Deflate reaches 1:1000, real data does not.
 */
static const uint64_t UNPACK_MIN = (uint64_t)1 << 30;
enum { UNPACK_RATIO = 64 };

static ait_status member_read(zip_file_t *member, void *data, size_t size) {
  char *p = data;
  while (size > 0) {
    zip_int64_t n = zip_fread(member, p, size);
    if (n < 0) return ait_error(AIT_CODE_INVALID_MODEL, "%s", zip_error_strerror(zip_file_get_error(member)));
    if (n == 0) return ait_error(AIT_CODE_INVALID_MODEL, "it ends too early");
    p += n;
    size -= (size_t)n;
  }
  return AIT_OK;
}

/* libzip compares the CRC when it meets the end: so read on to it. Whatever follows the array is not looked at, as numpy does. */
static ait_status member_finish(zip_file_t *member, uint64_t left) {
  char rest[4096];
  for (;;) {
    zip_int64_t n = zip_fread(member, rest, sizeof rest);
    if (n < 0) return ait_error(AIT_CODE_INVALID_MODEL, "%s", zip_error_strerror(zip_file_get_error(member)));
    if (n == 0) return AIT_OK;
    if ((uint64_t)n > left) return ait_error(AIT_CODE_INVALID_MODEL, "it is longer than it says");
    left -= (uint64_t)n;
  }
}

/* The header is read and believed only as far as the member's declared size allows; only then is there memory for the elements. */
static ait_status member_tensor(zip_file_t *member, uint64_t size, ait_allocator a, ait_tensor *out) {
  char *header = NULL;
  char prefix[AIT_NPY_PREFIX_MAX];
  size_t header_bytes = 0, prefix_bytes = size < sizeof prefix ? (size_t)size : sizeof prefix;
  ait_npy_header h;
  ait_tensor t = {0};
  ait_status status = AIT_OK;
  AIT_GOTO(member_read(member, prefix, prefix_bytes));
  AIT_GOTO(ait_npy_header_size(prefix, prefix_bytes, &header_bytes));
  if (header_bytes > size || header_bytes < prefix_bytes) AIT_GOTO(ait_error(AIT_CODE_INVALID_MODEL, "its header has a wrong length"));
  header = ait_alloc(a, header_bytes, 1);
  if (!header) AIT_GOTO(AIT_OOM());
  memcpy(header, prefix, prefix_bytes);
  AIT_GOTO(member_read(member, header + prefix_bytes, header_bytes - prefix_bytes));
  AIT_GOTO(ait_npy_header_parse(header, header_bytes, &h));
  if (h.data_bytes > size - header_bytes) {
    AIT_GOTO(ait_error(AIT_CODE_INVALID_MODEL, "the array needs %zu bytes, the member has %llu", h.data_bytes,
                       (unsigned long long)(size - header_bytes)));
  }
  AIT_GOTO(ait_npy_tensor_create(a, &h, &t));
  AIT_GOTO(member_read(member, t.data, h.data_bytes));
  AIT_GOTO(member_finish(member, size - header_bytes - h.data_bytes));
  ait_npy_finish(&h, &t);
  *out = t;
  memset(&t, 0, sizeof t);
cleanup:
  ait_tensor_release(&t);
  ait_free(a, header, header_bytes);
  return status;
}

static ait_status read_member(zip_t *archive, zip_uint64_t index, uint64_t *budget, ait_tensor_file *out) {
  zip_stat_t info;
  if (zip_stat_index(archive, index, 0, &info) != 0 || !(info.valid & ZIP_STAT_NAME) || !(info.valid & ZIP_STAT_SIZE)) {
    return ait_error(AIT_CODE_INVALID_MODEL, "member %llu: %s", (unsigned long long)index, zip_strerror(archive));
  }
  size_t length = strlen(info.name);
  if (length && info.name[length - 1] == '/' && info.size == 0) return AIT_OK; /* a folder */
  if (length <= 4 || !ait_ends_with(info.name, ".npy"))
    return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' is not an .npy file", info.name);
  if (info.size > *budget) {
    return ait_error(AIT_CODE_LIMIT, "member '%s' would unpack to %llu bytes", info.name, (unsigned long long)info.size);
  }
  *budget -= info.size;
  char name[1024];
  if (length - 4 >= sizeof name) return ait_error(AIT_CODE_LIMIT, "the name of member %llu is too long", (unsigned long long)index);
  memcpy(name, info.name, length - 4);
  name[length - 4] = '\0';
  if (ait_tensor_file_find(out, name)) return ait_error(AIT_CODE_INVALID_MODEL, "two members are named '%s'", info.name);
  zip_file_t *member = zip_fopen_index(archive, index, 0);
  if (!member) return ait_error(AIT_CODE_INVALID_MODEL, "member '%s': %s", info.name, zip_strerror(archive));
  ait_tensor t = {0};
  ait_status status = member_tensor(member, info.size, out->allocator, &t);
  zip_fclose(member);
  if (status) return ait_error_context(status, "member '%s'", info.name);
  status = ait_tensor_file_add(out, name, &t);
  ait_tensor_release(&t);
  return status;
}

static ait_status open_error(zip_source_t *source, zip_error_t *error) {
  if (source) zip_source_free(source);
  ait_code code = zip_error_code_zip(error) == ZIP_ER_MEMORY ? AIT_CODE_OUT_OF_MEMORY : AIT_CODE_INVALID_MODEL;
  ait_status status = ait_error(code, "%s", zip_error_strerror(error));
  zip_error_fini(error);
  return status;
}

ait_status ait_npz_parse(const void *data, size_t size, ait_tensor_file *out) {
  if (size == 0) return ait_error(AIT_CODE_INVALID_MODEL, "the file is empty"); /* an empty archive to libzip */
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(data, size, 0, &error);
  if (!source) return open_error(NULL, &error);
  zip_t *archive = zip_open_from_source(source, ZIP_RDONLY, &error);
  if (!archive) return open_error(source, &error);
  zip_error_fini(&error);
  ait_tensor_file read;
  ait_tensor_file_init(&read, out->allocator);
  uint64_t budget = (uint64_t)size * UNPACK_RATIO;
  if (budget < UNPACK_MIN) budget = UNPACK_MIN;
  ait_status status = AIT_OK;
  zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count && !status; i++) status = read_member(archive, (zip_uint64_t)i, &budget, &read);
  zip_discard(archive);
  for (size_t i = 0; i < read.count && !status; i++) status = ait_tensor_file_add(out, read.items[i].name, &read.items[i].tensor);
  ait_tensor_file_deinit(&read);
  return status;
}

#endif

ait_status ait_npz_read(const char *path, ait_tensor_file *out) {
  ait_file_map *map;
  AIT_TRY(ait_file_map_open(out->allocator, path, &map));
  ait_status status = ait_npz_parse(ait_file_map_data(map), ait_file_map_size(map), out);
  ait_file_map_release(map);
  return ait_error_context(status, "cannot read '%s'", path);
}

/* ---- writing -------------------------------------------------------------------------------------------------------------------*/
enum { ZIP_TIME = 0, ZIP_DATE = 0x21, UTF8_NAMES = 0x800, VERSION_PLAIN = 20, VERSION_64 = 45 }; /* 1 January 1980 */

typedef struct member {
  uint32_t crc;
  uint64_t size, offset;
} member;

static void put(ait_text *text, uint64_t value, int bytes) {
  uint8_t le[8];
  for (int i = 0; i < bytes; i++) le[i] = (uint8_t)(value >> (8 * i));
  ait_text_append(text, le, (size_t)bytes);
}
static uint64_t cap32(uint64_t value) { return value < UINT32_MAX ? value : UINT32_MAX; }

/* The fields that local and central header share, from "version needed" to the lengths of name and extra field. */
static void put_common(ait_text *text, const member *m, const char *name, uint64_t extra_bytes, bool big) {
  put(text, big ? VERSION_64 : VERSION_PLAIN, 2);
  put(text, UTF8_NAMES, 2);
  put(text, 0, 2); /* stored */
  put(text, ZIP_TIME, 2);
  put(text, ZIP_DATE, 2);
  put(text, m->crc, 4);
  put(text, cap32(m->size), 4);
  put(text, cap32(m->size), 4);
  put(text, strlen(name) + 4, 2);
  put(text, extra_bytes, 2);
}

static void put_local(ait_text *text, const member *m, const char *name) {
  bool big = m->size >= UINT32_MAX;
  put(text, 0x04034b50, 4);
  put_common(text, m, name, big ? 20 : 0, big);
  ait_text_printf(text, "%s.npy", name);
  if (!big) return;
  put(text, 1, 2);
  put(text, 16, 2);
  put(text, m->size, 8);
  put(text, m->size, 8);
}

static void put_central(ait_text *text, const member *m, const char *name) {
  bool big_size = m->size >= UINT32_MAX, big_offset = m->offset >= UINT32_MAX;
  uint64_t extra = (big_size ? 16u : 0u) + (big_offset ? 8u : 0u);
  put(text, 0x02014b50, 4);
  put(text, 3 << 8 | VERSION_64, 2); /* made by: Unix, for the attributes */
  put_common(text, m, name, extra ? extra + 4 : 0, extra != 0);
  put(text, 0, 2); /* comment, disk, internal attributes */
  put(text, 0, 2);
  put(text, 0, 2);
  put(text, (uint64_t)0100644 << 16, 4);
  put(text, cap32(m->offset), 4);
  ait_text_printf(text, "%s.npy", name);
  if (!extra) return;
  put(text, 1, 2);
  put(text, extra, 2);
  if (big_size) put(text, m->size, 8);
  if (big_size) put(text, m->size, 8);
  if (big_offset) put(text, m->offset, 8);
}

static void put_end(ait_text *text, uint64_t count, uint64_t offset, uint64_t size) {
  if (count >= UINT16_MAX || offset >= UINT32_MAX || size >= UINT32_MAX) {
    put(text, 0x06064b50, 4);
    put(text, 44, 8);
    put(text, 3 << 8 | VERSION_64, 2);
    put(text, VERSION_64, 2);
    put(text, 0, 8); /* disks */
    put(text, count, 8);
    put(text, count, 8);
    put(text, size, 8);
    put(text, offset, 8);
    put(text, 0x07064b50, 4);
    put(text, 0, 4);
    put(text, offset + size, 8);
    put(text, 1, 4);
  }
  uint64_t short_count = count < UINT16_MAX ? count : UINT16_MAX;
  put(text, 0x06054b50, 4);
  put(text, 0, 4);
  put(text, short_count, 2);
  put(text, short_count, 2);
  put(text, cap32(size), 4);
  put(text, cap32(offset), 4);
  put(text, 0, 2);
}

static ait_status write_member(ait_file_writer *writer, ait_allocator a, const ait_named_tensor *item, ait_text *central) {
  if (strlen(item->name) > 1000) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the name '%.40s…' is too long", item->name);
  ait_tensor whole;
  AIT_TRY(ait_npy_contiguous(a, &item->tensor, &whole));
  ait_text header, local;
  ait_text_init(&header, a);
  ait_text_init(&local, a);
  ait_status status = AIT_OK;
  size_t bytes = ait_tensor_bytes(&whole);
  AIT_GOTO(ait_npy_header_format(&whole, &header));
  member m = {.size = header.length + bytes, .offset = ait_file_writer_offset(writer)};
  m.crc = ait_crc32(ait_crc32(0, header.data, header.length), whole.data, bytes);
  put_local(&local, &m, item->name);
  put_central(central, &m, item->name);
  if (local.failed || central->failed) AIT_GOTO(AIT_OOM());
  AIT_GOTO(ait_file_writer_write(writer, local.data, local.length));
  AIT_GOTO(ait_file_writer_write(writer, header.data, header.length));
  AIT_GOTO(ait_file_writer_write(writer, whole.data, bytes));
cleanup:
  ait_text_deinit(&header);
  ait_text_deinit(&local);
  ait_tensor_release(&whole);
  return status;
}

ait_status ait_npz_write(const char *path, const ait_tensor_file *f) {
  ait_file_writer *writer = NULL;
  AIT_TRY(ait_file_writer_create(f->allocator, path, &writer));
  ait_text central;
  ait_text_init(&central, f->allocator);
  ait_status status = AIT_OK;
  for (size_t i = 0; i < f->count; i++) AIT_GOTO(write_member(writer, f->allocator, &f->items[i], &central));
  put_end(&central, f->count, ait_file_writer_offset(writer), central.length);
  if (central.failed) AIT_GOTO(AIT_OOM());
  AIT_GOTO(ait_file_writer_write(writer, central.data, central.length));
  AIT_GOTO(ait_file_writer_commit(writer));
cleanup:
  ait_text_deinit(&central);
  ait_file_writer_destroy(writer);
  return status;
}
