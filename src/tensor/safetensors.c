/* One safetensors file: eight bytes of header length, a JSON header, the data. https://github.com/huggingface/safetensors */
#include "tensor/safetensors.h"

#include "base/json.h"

#include <stdlib.h>

enum { HEADER_LIMIT = 100000000, HEADER_MEMORY = 128 << 20 };

static const struct {
  const char *name;
  ait_dtype dtype; /* NONE: smaller than a byte */
  int bits;
} dtypes[] = {
    {"BOOL", AIT_BOOL, 8},
    {"U8", AIT_U8, 8},
    {"I8", AIT_I8, 8},
    {"F8_E5M2", AIT_F8E5M2, 8},
    {"F8_E4M3", AIT_F8E4M3FN, 8},
    {"F8_E8M0", AIT_F8E8M0FNU, 8},
    {"F8_E4M3FNUZ", AIT_F8E4M3FNUZ, 8},
    {"F8_E5M2FNUZ", AIT_F8E5M2FNUZ, 8},
    {"I16", AIT_I16, 16},
    {"U16", AIT_U16, 16},
    {"F16", AIT_F16, 16},
    {"BF16", AIT_BF16, 16},
    {"I32", AIT_I32, 32},
    {"U32", AIT_U32, 32},
    {"F32", AIT_F32, 32},
    {"C64", AIT_C64, 64},
    {"F64", AIT_F64, 64},
    {"I64", AIT_I64, 64},
    {"U64", AIT_U64, 64},
    {"F4", AIT_DTYPE_NONE, 4},
    {"F6_E2M3", AIT_DTYPE_NONE, 6},
    {"F6_E3M2", AIT_DTYPE_NONE, 6},
};

const char *ait_safetensors_dtype(ait_dtype dtype) {
  for (size_t i = 0; i < AIT_COUNT(dtypes) && dtype != AIT_DTYPE_NONE; ++i)
    if (dtypes[i].dtype == dtype) return dtypes[i].name;
  return NULL;
}

typedef struct entry {
  const char *name;
  ait_tensor tensor; /* dtype, rank, shape */
  uint64_t begin, end;
} entry;

typedef struct reader {
  ait_arena arena;
  const uint8_t *data; /* behind the header */
  uint64_t size;
  entry *entries;
  uint32_t count;
  ait_file_map *map; /* NULL: tensors are copied */
} reader;

static ait_status bad(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "not a safetensors file: %s", what); }

/* ---- header ----------------------------------------------------------------------------------------------------------------------*/
static ait_status read_dtype(const ait_json *info, entry *e, int *out_bits) {
  const char *name = ait_json_get_string(info, "dtype");
  if (!name) return ait_error(AIT_CODE_INVALID_MODEL, "no text 'dtype'");
  for (size_t i = 0; i < AIT_COUNT(dtypes); ++i) {
    if (strcmp(dtypes[i].name, name) != 0) continue;
    e->tensor.dtype = dtypes[i].dtype;
    *out_bits = dtypes[i].bits;
    return AIT_OK;
  }
  return ait_error(AIT_CODE_INVALID_MODEL, "dtype '%.40s' is not known", name);
}

/* Bits of all elements. */
static ait_status read_shape(const ait_json *info, entry *e, uint64_t *bits) {
  const ait_json *shape = ait_json_get_kind(info, "shape", AIT_JSON_ARRAY);
  if (!shape) return ait_error(AIT_CODE_INVALID_MODEL, "no list 'shape'");
  if (shape->count > AIT_MAX_RANK) return ait_error(AIT_CODE_UNSUPPORTED, "%u dims, more than %d", (unsigned)shape->count, AIT_MAX_RANK);
  bool empty = false;
  for (uint32_t i = 0; i < shape->count; ++i) {
    const ait_json *d = &shape->as.items[i];
    if (d->kind != AIT_JSON_INT || d->as.i < 0) return ait_error(AIT_CODE_INVALID_MODEL, "a size that is no integer from 0 on");
    e->tensor.shape[i] = d->as.i;
    empty |= d->as.i == 0;
    if (ait_mul_overflows(*bits, (uint64_t)(d->as.i ? d->as.i : 1), bits))
      return ait_error(AIT_CODE_INVALID_MODEL, "its shape is too large");
  }
  if (empty) *bits = 0;
  e->tensor.rank = (int32_t)shape->count;
  ait_tensor_set_contiguous(&e->tensor);
  return AIT_OK;
}

static ait_status read_offsets(const ait_json *info, uint64_t size, entry *e) {
  const ait_json *offsets = ait_json_get_kind(info, "data_offsets", AIT_JSON_ARRAY);
  if (!offsets || offsets->count != 2) return ait_error(AIT_CODE_INVALID_MODEL, "no two 'data_offsets'");
  for (int i = 0; i < 2; ++i) {
    const ait_json *o = &offsets->as.items[i];
    if (o->kind != AIT_JSON_INT || o->as.i < 0) return ait_error(AIT_CODE_INVALID_MODEL, "an offset that is no integer from 0 on");
    *(i ? &e->end : &e->begin) = (uint64_t)o->as.i;
  }
  if (e->end < e->begin) return ait_error(AIT_CODE_INVALID_MODEL, "its data ends before it begins");
  if (e->end > size) return ait_error(AIT_CODE_INVALID_MODEL, "its data reaches beyond the end of the file");
  return AIT_OK;
}

static ait_status read_entry(const ait_json *info, uint64_t size, entry *e) {
  int element_bits;
  if (info->kind != AIT_JSON_OBJECT) return ait_error(AIT_CODE_INVALID_MODEL, "its description is no object");
  AIT_TRY(read_dtype(info, e, &element_bits));
  uint64_t bits = (uint64_t)element_bits;
  AIT_TRY(read_shape(info, e, &bits));
  AIT_TRY(read_offsets(info, size, e));
  if (bits % 8 != 0) return ait_error(AIT_CODE_INVALID_MODEL, "its elements do not fill whole bytes");
  if (e->end - e->begin != bits / 8)
    return ait_error(AIT_CODE_INVALID_MODEL, "its shape needs %llu bytes, its offsets give %llu", (unsigned long long)bits / 8,
                     (unsigned long long)(e->end - e->begin));
  if (e->tensor.dtype == AIT_DTYPE_NONE) return ait_error(AIT_CODE_UNSUPPORTED, "elements of %d bits", element_bits);
  return AIT_OK;
}

static ait_status check_metadata(const ait_json *metadata) {
  if (metadata->kind != AIT_JSON_OBJECT) return ait_error(AIT_CODE_INVALID_MODEL, "'__metadata__' is no object");
  for (uint32_t i = 0; i < metadata->count; ++i)
    if (metadata->as.items[i].kind != AIT_JSON_STRING)
      return ait_error(AIT_CODE_INVALID_MODEL, "'__metadata__' holds '%.60s', which is no text", metadata->as.items[i].key);
  return AIT_OK;
}

static ait_status read_header(reader *r, const ait_json *header) {
  r->entries = AIT_ARENA_ARRAY(&r->arena, entry, header->count + 1u);
  if (!r->entries) return AIT_OOM();
  for (uint32_t i = 0; i < header->count; ++i) {
    const ait_json *item = &header->as.items[i];
    if (strcmp(item->key, "__metadata__") == 0) {
      AIT_TRY(check_metadata(item));
      continue;
    }
    entry *e = &r->entries[r->count++];
    *e = (entry){.name = item->key};
    AIT_TRY(ait_error_context(read_entry(item, r->size, e), "tensor '%s'", item->key));
  }
  return AIT_OK;
}

static int by_offset(const void *a, const void *b) {
  const entry *const *x = a, *const *y = b;
  if ((*x)->begin != (*y)->begin) return (*x)->begin < (*y)->begin ? -1 : 1;
  return ((*x)->end > (*y)->end) - ((*x)->end < (*y)->end);
}

/* Every byte behind the header belongs to exactly one tensor. */
static ait_status check_cover(reader *r) {
  const entry **sorted = AIT_ARENA_ARRAY(&r->arena, const entry *, r->count + 1u);
  if (!sorted) return AIT_OOM();
  for (uint32_t i = 0; i < r->count; ++i) sorted[i] = &r->entries[i];
  qsort(sorted, r->count, sizeof *sorted, by_offset);
  uint64_t at = 0;
  for (uint32_t i = 0; i < r->count; ++i) {
    if (sorted[i]->begin < at)
      return ait_error(AIT_CODE_INVALID_MODEL, "tensors '%s' and '%s' share bytes", sorted[i - 1]->name, sorted[i]->name);
    if (sorted[i]->begin > at) return ait_error(AIT_CODE_INVALID_MODEL, "unused bytes before tensor '%s'", sorted[i]->name);
    at = sorted[i]->end;
  }
  if (at != r->size) return ait_error(AIT_CODE_INVALID_MODEL, "%llu bytes behind the last tensor", (unsigned long long)(r->size - at));
  return AIT_OK;
}

static ait_status open_header(reader *r, const uint8_t *data, size_t size) {
  uint64_t length = 0;
  const ait_json *header;
  if (size < 8) return bad("it is shorter than 8 bytes");
  for (int i = 0; i < 8; ++i) length |= (uint64_t)data[i] << 8 * i;
  if (length > HEADER_LIMIT) return bad("its header is longer than 100 MB");
  if (length > size - 8) return bad("its header reaches beyond the end of the file");
  if (length == 0 || data[8] != '{') return bad("its header does not begin with '{'");
  AIT_TRY(ait_error_context(ait_json_parse(&r->arena, (const char *)data + 8, (size_t)length, &header), "the header"));
  if (header->kind != AIT_JSON_OBJECT) return bad("its header is no object");
  r->data = data + 8 + length;
  r->size = size - 8 - length;
  AIT_TRY(read_header(r, header));
  return check_cover(r);
}

/* ---- tensors ---------------------------------------------------------------------------------------------------------------------*/
static void release_mapping(void *ctx) { ait_file_map_release(ctx); }

/* The storage is exactly the tensor's bytes: in place where they are aligned for their type, else a copy. */
static ait_status make_storage(const reader *r, ait_allocator a, const entry *e, ait_storage **out) {
  const uint8_t *bytes = r->data + e->begin;
  size_t size = (size_t)(e->end - e->begin);
  if (r->map && size && (uintptr_t)bytes % ait_dtype_size(e->tensor.dtype) == 0) {
    ait_file_map *map = ait_file_map_retain(r->map);
    ait_status status = ait_storage_wrap(a, (void *)(uintptr_t)bytes, size, release_mapping, map, out);
    if (status) ait_file_map_release(map);
    return status;
  }
  AIT_TRY(ait_storage_create(a, size, out));
  if (size) memcpy(ait_storage_data(*out), bytes, size);
  return AIT_OK;
}

static ait_status add_tensor(const reader *r, const entry *e, ait_tensor_file *out) {
  ait_tensor t = e->tensor;
  AIT_TRY(make_storage(r, out->allocator, e, &t.storage));
  t.data = ait_storage_data(t.storage);
  ait_status status = ait_tensor_file_add(out, e->name, &t);
  ait_tensor_release(&t);
  return status;
}

static ait_status add_all(const reader *r, ait_tensor_file *out) {
  size_t before = out->count;
  ait_status status = AIT_OK;
  for (uint32_t i = 0; i < r->count && !status; ++i) status = add_tensor(r, &r->entries[i], out);
  if (status) ait_tensor_file_truncate(out, before);
  return status;
}

static ait_status parse(const uint8_t *data, size_t size, ait_file_map *map, ait_tensor_file *out) {
  reader r = {.map = map};
  ait_arena_init(&r.arena, out->allocator);
  r.arena.limit_bytes = HEADER_MEMORY;
  ait_status status = open_header(&r, data, size);
  if (!status) status = add_all(&r, out);
  ait_arena_deinit(&r.arena);
  return status;
}

ait_status ait_safetensors_parse(const void *data, size_t size, ait_tensor_file *out) { return parse(data, size, NULL, out); }

ait_status ait_safetensors_read(const char *path, ait_tensor_file *out) {
  ait_file_map *map;
  AIT_TRY(ait_file_map_open(out->allocator, path, &map));
  ait_status status = parse(ait_file_map_data(map), ait_file_map_size(map), map, out);
  ait_file_map_release(map);
  return ait_error_context(status, "cannot read '%s'", path);
}
