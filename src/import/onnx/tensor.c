/* TensorProto to weights: bytes that lie in the file stay there where they are aligned; typed fields are converted; external data is
 * mapped. */
#include "import/onnx/onnx.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- dtypes ----------------------------------------------------------------------------------------------------------------------*/

/* By TensorProto.DataType. bits: of an element in raw_data; below 8 they are packed, the first in the lowest bits. */
static const struct {
  const char *text;
  ait_dtype dtype;
  int bits;
} dtypes[] = {
    {"undefined", AIT_DTYPE_NONE, 0},
    {"float", AIT_F32, 32},
    {"uint8", AIT_U8, 8},
    {"int8", AIT_I8, 8},
    {"uint16", AIT_U16, 16},
    {"int16", AIT_I16, 16},
    {"int32", AIT_I32, 32},
    {"int64", AIT_I64, 64},
    {"string", AIT_DTYPE_NONE, 0},
    {"bool", AIT_BOOL, 8},
    {"float16", AIT_F16, 16},
    {"double", AIT_F64, 64},
    {"uint32", AIT_U32, 32},
    {"uint64", AIT_U64, 64},
    {"complex64", AIT_C64, 64},
    {"complex128", AIT_C128, 128},
    {"bfloat16", AIT_BF16, 16},
    {"float8e4m3fn", AIT_F8E4M3FN, 8},
    {"float8e4m3fnuz", AIT_F8E4M3FNUZ, 8},
    {"float8e5m2", AIT_F8E5M2, 8},
    {"float8e5m2fnuz", AIT_F8E5M2FNUZ, 8},
    {"uint4", AIT_U8, 4},
    {"int4", AIT_I8, 4},
    {"float4e2m1", AIT_F8E4M3FN, 4},
    {"float8e8m0", AIT_F8E8M0FNU, 8},
    {"uint2", AIT_U8, 2},
    {"int2", AIT_I8, 2},
};

ait_dtype ox_dtype(int32_t onnx) { return onnx > 0 && onnx < (int32_t)AIT_COUNT(dtypes) ? dtypes[onnx].dtype : AIT_DTYPE_NONE; }
const char *ox_dtype_text(int32_t onnx) { return onnx >= 0 && onnx < (int32_t)AIT_COUNT(dtypes) ? dtypes[onnx].text : "unknown"; }

/* ---- storages --------------------------------------------------------------------------------------------------------------------*/

static void release_mapping(void *ctx) { ait_file_map_release(ctx); }

/* Bytes of a mapping as a storage of their own. */
static ait_status add_mapped(ox_import *in, ait_file_map *mapping, const uint8_t *data, size_t size, uint32_t *out) {
  ait_storage *storage;
  ait_file_map *held = ait_file_map_retain(mapping);
  ait_status status = ait_storage_wrap(in->arena.allocator, (void *)(uintptr_t)data, size, release_mapping, held, &storage);
  if (status != AIT_OK) {
    ait_file_map_release(held);
    return status;
  }
  status = ait_weight_store_add_storage(in->weights, storage, out);
  if (status != AIT_OK) ait_storage_release(storage);
  return status;
}

static ait_status new_storage(ox_import *in, size_t bytes, uint32_t *out, uint8_t **out_data) {
  ait_storage *storage;
  AIT_TRY(ait_storage_create(in->arena.allocator, bytes, &storage));
  *out_data = ait_storage_data(storage);
  ait_status status = ait_weight_store_add_storage(in->weights, storage, out);
  if (status != AIT_OK) ait_storage_release(storage);
  return status;
}

/* Elements of less than a byte, spread to one byte each. float4e2m1 becomes the same number as float8e4m3fn. */
static uint8_t spread(int32_t type, uint8_t v) {
  static const uint8_t e2m1[8] = {0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c}; /* 0, 0.5, 1, 1.5, 2, 3, 4, 6 */
  switch (type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT4: return (uint8_t)(v & 8 ? v | 0xf0 : v);
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT4E2M1: return (uint8_t)(e2m1[v & 7] | (v & 8 ? 0x80 : 0));
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT2 + 1: return (uint8_t)(v & 2 ? v | 0xfc : v); /* INT2 */
    default: return v;
  }
}

static ait_status unpack_bits(ox_import *in, int32_t type, const uint8_t *data, size_t count, ait_weight *out) {
  int bits = dtypes[type].bits;
  size_t per_byte = 8 / (size_t)bits;
  uint8_t *to;
  AIT_TRY(new_storage(in, count, &out->storage, &to));
  for (size_t i = 0; i < count; ++i)
    to[i] = spread(type, (uint8_t)(data[i / per_byte] >> (i % per_byte * (size_t)bits) & ((1 << bits) - 1)));
  return AIT_OK;
}

/* Bytes of a mapped file as they stand, or copied where they are not aligned (mapping: NULL in the caller's memory). */
static ait_status place_bytes(ox_import *in, int32_t type, ait_file_map *mapping, const uint8_t *data, size_t count, ait_weight *out) {
  size_t element = ait_dtype_size(out->dtype);
  if (dtypes[type].bits < 8) return unpack_bits(in, type, data, count, out);
  if (mapping && (uintptr_t)data % (element < 8 ? element : 8) == 0) return add_mapped(in, mapping, data, count * element, &out->storage);
  uint8_t *to;
  AIT_TRY(new_storage(in, count * element, &out->storage, &to));
  if (count) memcpy(to, data, count * element);
  return AIT_OK;
}

static size_t packed_bytes(int32_t type, size_t count) { return (count * (size_t)dtypes[type].bits + 7) / 8; }

static ait_status wrong_size(size_t got, size_t want) {
  return ait_error(AIT_CODE_INVALID_MODEL, "it holds %zu bytes, its shape and type need %zu", got, want);
}

static ait_status place_raw(ox_import *in, const Onnx__TensorProto *t, size_t count, ait_weight *out) {
  uint64_t index = 0;
  if (t->raw_data.len == 8) memcpy(&index, t->raw_data.data, 8);
  if (t->raw_data.len != 8 || index >= in->slim.bulk_count) return ait_error(AIT_CODE_INVALID_MODEL, "raw_data is damaged");
  ox_bytes bytes = in->slim.bulks[index];
  if (bytes.size != packed_bytes(t->data_type, count)) return wrong_size(bytes.size, packed_bytes(t->data_type, count));
  return place_bytes(in, t->data_type, in->mapping, bytes.data, count, out);
}

/* ---- external data ---------------------------------------------------------------------------------------------------------------*/

static const char *external_entry(const Onnx__TensorProto *t, const char *key) {
  for (size_t i = 0; i < t->n_external_data; ++i) {
    const Onnx__StringStringEntryProto *e = t->external_data[i];
    if (e->key && e->value && strcmp(e->key, key) == 0) return e->value;
  }
  return NULL;
}

static ait_status external_number(const Onnx__TensorProto *t, const char *key, uint64_t otherwise, uint64_t *out) {
  const char *text = external_entry(t, key);
  *out = otherwise;
  if (!text) return AIT_OK;
  *out = 0;
  for (const char *p = text; *p || p == text; ++p) {
    if (*p < '0' || *p > '9' || ait_mul_overflows(*out, (uint64_t)10, out) || ait_add_overflows(*out, (uint64_t)(*p - '0'), out))
      return ait_error(AIT_CODE_INVALID_MODEL, "external data: %s is '%.40s', which is no number", key, text);
  }
  return AIT_OK;
}

static ait_status outside(const char *location) {
  return ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "external data '%.200s' lies outside of the model's folder", location),
                        "the file must lie beside the model, and not be a link to elsewhere");
}

/* The file's path, links resolved, when it lies in the model's folder or below. */
static ait_status external_path(const ox_import *in, const char *location, char out[PATH_MAX]) {
  char folder[PATH_MAX], joined[PATH_MAX];
  if (!in->mapping) return ait_error(AIT_CODE_UNSUPPORTED, "external data '%.200s' of a model that is not a file", location);
  for (const char *p = location; p; p = strchr(p, '/')) {
    p += *p == '/';
    if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0')) return outside(location);
  }
  if (location[0] == '/' || location[0] == '\0' || strchr(location, '\\')) return outside(location);
  const char *slash = strrchr(in->path, '/');
  int length = slash ? (int)(slash - in->path) : 1;
  if (snprintf(joined, sizeof joined, "%.*s/", length, slash ? in->path : ".") >= (int)sizeof joined || !realpath(joined, folder))
    return ait_error(AIT_CODE_IO, "the model's folder cannot be found");
  if (snprintf(joined, sizeof joined, "%s/%s", folder, location) >= (int)sizeof joined)
    return ait_error(AIT_CODE_LIMIT, "external data: the path '%.200s' is too long", location);
  if (!realpath(joined, out))
    return ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "external data '%.200s' cannot be found", location),
                          "it belongs beside the model file");
  size_t n = strlen(folder);
  if (n == 1) n = 0; /* "/" */
  return strncmp(out, folder, n) == 0 && out[n] == '/' ? AIT_OK : outside(location);
}

/* The mapping lives as long as the import, or a storage that lies in it. */
static ait_status open_external(ox_import *in, const char *location, ait_file_map **out) {
  char path[PATH_MAX];
  void *found;
  AIT_TRY(external_path(in, location, path));
  if (ait_map_get(&in->externals, path, &found)) {
    *out = found;
    return AIT_OK;
  }
  AIT_TRY(ait_file_map_open(in->arena.allocator, path, out));
  ait_status status = ait_map_put(&in->externals, path, *out);
  if (status != AIT_OK) ait_file_map_release(*out);
  return status;
}

static ait_status place_external(ox_import *in, const Onnx__TensorProto *t, size_t count, ait_weight *out) {
  const char *location = external_entry(t, "location");
  uint64_t offset, length, want = packed_bytes(t->data_type, count), end;
  ait_file_map *map;
  if (!location) return ait_error(AIT_CODE_INVALID_MODEL, "external data without a location");
  AIT_TRY(external_number(t, "offset", 0, &offset));
  AIT_TRY(external_number(t, "length", want, &length));
  if (length != want) return wrong_size((size_t)length, (size_t)want);
  AIT_TRY(open_external(in, location, &map));
  if (ait_add_overflows(offset, want, &end) || end > ait_file_map_size(map))
    return ait_error(AIT_CODE_INVALID_MODEL, "external data '%.200s' has %zu bytes, %llu from byte %llu on are wanted", location,
                     ait_file_map_size(map), (unsigned long long)want, (unsigned long long)offset);
  return place_bytes(in, t->data_type, map, ait_file_map_data(map) + offset, count, out);
}

/* ---- typed fields ----------------------------------------------------------------------------------------------------------------*/

static ait_status place_int32s(const Onnx__TensorProto *t, uint8_t *to, ait_dtype dtype, size_t count) {
  bool packed = dtypes[t->data_type].bits < 8;
  if (packed) { /* the packed bytes, one in each number */
    size_t per_byte = 8 / (size_t)dtypes[t->data_type].bits;
    int bits = dtypes[t->data_type].bits;
    for (size_t i = 0; i < count; ++i)
      to[i] = spread(t->data_type, (uint8_t)(t->int32_data[i / per_byte] >> (i % per_byte * (size_t)bits) & ((1 << bits) - 1)));
    return AIT_OK;
  }
  size_t element = ait_dtype_size(dtype); /* floats: as bits */
  for (size_t i = 0; i < count; ++i) memcpy(to + i * element, &t->int32_data[i], element);
  if (dtype == AIT_BOOL)
    for (size_t i = 0; i < count; ++i) to[i] = t->int32_data[i] != 0;
  return AIT_OK;
}

static ait_status place_typed(ox_import *in, const Onnx__TensorProto *t, size_t count, ait_weight *out) {
  uint8_t *to;
  size_t element = ait_dtype_size(out->dtype), have, want = count;
  const void *from = NULL;
  switch (out->dtype) {
    case AIT_F32: have = t->n_float_data, from = t->float_data; break;
    case AIT_C64: have = t->n_float_data, from = t->float_data, want = count * 2; break;
    case AIT_F64: have = t->n_double_data, from = t->double_data; break;
    case AIT_C128: have = t->n_double_data, from = t->double_data, want = count * 2; break;
    case AIT_I64: have = t->n_int64_data, from = t->int64_data; break;
    case AIT_U32:
    case AIT_U64: have = t->n_uint64_data, from = t->uint64_data; break;
    default: have = t->n_int32_data, want = dtypes[t->data_type].bits < 8 ? packed_bytes(t->data_type, count) : count; break;
  }
  if (have != want) return ait_error(AIT_CODE_INVALID_MODEL, "it holds %zu numbers, its shape needs %zu", have, want);
  AIT_TRY(new_storage(in, count * element, &out->storage, &to));
  if (count == 0) return AIT_OK;
  if (out->dtype == AIT_U32)
    for (size_t i = 0; i < count; ++i) memcpy(to + 4 * i, &(uint32_t){(uint32_t)t->uint64_data[i]}, 4);
  else if (from) memcpy(to, from, count * element);
  else return place_int32s(t, to, out->dtype, count);
  return AIT_OK;
}

/* ---- tensors ---------------------------------------------------------------------------------------------------------------------*/

static void contiguous(ait_weight *w) {
  int64_t stride = 1;
  for (int32_t d = w->rank - 1; d >= 0; --d) {
    w->strides[d] = stride;
    stride *= w->shape[d] > 0 ? w->shape[d] : 1;
  }
}

static ait_status read_shape(const Onnx__TensorProto *t, ait_weight *out, size_t *out_count) {
  size_t count = 1, bytes;
  bool empty = false;
  if (t->n_dims > AIT_MAX_RANK) return ait_error(AIT_CODE_LIMIT, "it has %zu dimensions, at most %d are possible", t->n_dims, AIT_MAX_RANK);
  out->rank = (int32_t)t->n_dims;
  for (size_t d = 0; d < t->n_dims; ++d) {
    if (t->dims[d] < 0) return ait_error(AIT_CODE_INVALID_MODEL, "size %zu is %lld", d, (long long)t->dims[d]);
    out->shape[d] = t->dims[d];
    empty |= t->dims[d] == 0;
    if (t->dims[d] && ait_mul_overflows(count, (size_t)t->dims[d], &count))
      return ait_error(AIT_CODE_INVALID_MODEL, "its shape is too large");
  }
  if (ait_mul_overflows(count, (size_t)16, &bytes) || bytes > (size_t)INT64_MAX)
    return ait_error(AIT_CODE_INVALID_MODEL, "its shape is too large");
  contiguous(out);
  *out_count = empty ? 0 : count;
  return AIT_OK;
}

/* Readers of the two would see different numbers. */
static bool has_typed(const Onnx__TensorProto *t) {
  return t->n_float_data || t->n_double_data || t->n_int32_data || t->n_int64_data || t->n_uint64_data || t->n_string_data;
}

ait_status ox_tensor(ox_import *in, const Onnx__TensorProto *t, ait_weight *out) {
  size_t count;
  *out = (ait_weight){.dtype = ox_dtype(t->data_type)};
  if (out->dtype == AIT_DTYPE_NONE) {
    return ait_error(t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING ? AIT_CODE_UNSUPPORTED : AIT_CODE_INVALID_MODEL,
                     "tensors of type %s (%d) cannot be read", ox_dtype_text(t->data_type), (int)t->data_type);
  }
  if (t->segment) return ait_error(AIT_CODE_UNSUPPORTED, "a tensor in segments");
  AIT_TRY(read_shape(t, out, &count));
  bool external = t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  if ((external || t->has_raw_data) && has_typed(t))
    return ait_error(AIT_CODE_INVALID_MODEL, "its data stands twice: as %s and as typed numbers", external ? "a file" : "raw_data");
  if (external) return place_external(in, t, count, out);
  if (t->has_raw_data) return place_raw(in, t, count, out);
  return place_typed(in, t, count, out);
}

static ait_status unique_weight_name(ox_import *in, const char *wanted, const char **out) {
  *out = wanted;
  for (int i = 1; !*wanted || ait_map_get(&in->weight_names, *out, NULL); ++i) {
    *out = ait_arena_printf(&in->arena, "%s_%d", *wanted ? wanted : "constant", i);
    if (!*out) return AIT_OOM();
    if (!*wanted && !ait_map_get(&in->weight_names, *out, NULL)) break;
  }
  return ait_map_put(&in->weight_names, *out, NULL);
}

static ait_status add_to_graph(ox_scope *root, const char *name, ait_weight *w, ait_input_kind kind, uint32_t *out) {
  ox_import *in = root->in;
  ait_graph *g = in->graph;
  ait_dim dims[AIT_MAX_RANK];
  AIT_TRY(unique_weight_name(in, name, &w->name));
  AIT_TRY(ait_weight_store_add(in->weights, w));
  for (int32_t d = 0; d < w->rank; ++d) AIT_TRY(ait_dim_const(g, w->shape[d], &dims[d]));
  ait_value_info info = {.type = AIT_TYPE_TENSOR, .dtype = w->dtype, .rank = w->rank, .shape = dims, .scalar = AIT_NO_INDEX};
  AIT_TRY(ait_graph_add_value(g, w->name, &info, out));
  ait_region_input input = {.value = *out, .kind = kind, .name = w->name, .user_index = -1};
  AIT_TRY(ait_graph_add_input(g, &input));
  ait_tensor t;
  ait_weights provider = ait_weight_store_provider(in->weights);
  AIT_TRY(provider.get(provider.ctx, w->name, &t));
  ox_known known = {.has_tensor = true, .tensor = t};
  return ox_set_known(root, *out, &known);
}

ait_status ox_add_weight(ox_scope *root, const char *name, const Onnx__TensorProto *t, ait_input_kind kind, uint32_t *out) {
  ait_weight w;
  AIT_TRY(ox_tensor(root->in, t, &w));
  AIT_TRY(add_to_graph(root, name, &w, kind, out));
  if (dtypes[t->data_type].bits >= 8) return AIT_OK;
  ox_known known = *ox_get_known(root, *out);
  known.narrow = t->data_type;
  return ox_set_known(root, *out, &known);
}

/* Indices [nnz] into the flattened tensor, or [nnz, rank]. */
static ait_status fill_sparse(const ait_tensor *values, const ait_tensor *indices, const ait_weight *w, uint8_t *to) {
  size_t element = ait_dtype_size(w->dtype);
  int64_t n = values->shape[0], total = 1;
  for (int32_t d = 0; d < w->rank; ++d) total *= w->shape[d];
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    if (indices->rank == 1) at = ait_element_i64((const char *)indices->data + 8 * i, AIT_I64);
    for (int32_t d = 0; indices->rank == 2 && d < w->rank; ++d) {
      int64_t k = ait_element_i64((const char *)indices->data + 8 * (i * w->rank + d), AIT_I64);
      if (k < 0 || k >= w->shape[d]) return ait_error(AIT_CODE_INVALID_MODEL, "a sparse index is outside of the tensor");
      at += k * w->strides[d];
    }
    if (at < 0 || at >= total) return ait_error(AIT_CODE_INVALID_MODEL, "a sparse index is outside of the tensor");
    memcpy(to + (size_t)at * element, (const char *)values->data + (size_t)i * element, element);
  }
  return AIT_OK;
}

static ait_status sparse_part(ox_import *in, const Onnx__TensorProto *t, ait_tensor *out) {
  ait_weight w;
  if (!t) return ait_error(AIT_CODE_INVALID_MODEL, "a sparse tensor lacks values or indices");
  AIT_TRY(ox_tensor(in, t, &w));
  *out = (ait_tensor){.dtype = w.dtype, .rank = w.rank};
  memcpy(out->shape, w.shape, sizeof out->shape);
  memcpy(out->strides, w.strides, sizeof out->strides);
  out->data = (char *)ait_storage_data(ait_weight_store_storage(in->weights, w.storage)) + (size_t)w.offset * ait_dtype_size(w.dtype);
  return AIT_OK;
}

ait_status ox_add_sparse(ox_scope *root, const char *name, const Onnx__SparseTensorProto *t, uint32_t *out) {
  ox_import *in = root->in;
  ait_tensor values, indices;
  Onnx__TensorProto shape = {.n_dims = t->n_dims, .dims = t->dims};
  ait_weight w = {0};
  size_t count;
  uint8_t *to;
  AIT_TRY(sparse_part(in, t->values, &values));
  AIT_TRY(sparse_part(in, t->indices, &indices));
  AIT_TRY(read_shape(&shape, &w, &count));
  w.dtype = values.dtype;
  bool fits = values.rank == 1 && indices.dtype == AIT_I64 && (indices.rank == 1 || (indices.rank == 2 && indices.shape[1] == w.rank)) &&
              indices.shape[0] == values.shape[0];
  if (!fits) return ait_error(AIT_CODE_INVALID_MODEL, "sparse tensor '%s': values and indices do not fit", name);
  if (count > ((size_t)64 << 20) && count / 64 > in->size)
    return ait_error(AIT_CODE_LIMIT, "sparse tensor '%s' is too large when dense", name);
  AIT_TRY(new_storage(in, count * ait_dtype_size(w.dtype), &w.storage, &to));
  memset(to, 0, count * ait_dtype_size(w.dtype));
  AIT_TRY(fill_sparse(&values, &indices, &w, to));
  return add_to_graph(root, name, &w, AIT_INPUT_PARAMETER, out);
}

ait_status ox_add_constant(ox_call *c, ait_dtype dtype, int32_t rank, const int64_t *shape, const void *data, uint32_t *out) {
  ait_weight w = {.dtype = dtype, .rank = rank};
  size_t count = 1;
  uint8_t *to;
  ox_scope *root = c->s;
  for (int32_t d = 0; d < rank; ++d) {
    w.shape[d] = shape[d];
    count *= (size_t)shape[d];
  }
  contiguous(&w);
  while (root->frame->captures_for) root = root->frame->captures_for;
  AIT_TRY(new_storage(c->in, count * ait_dtype_size(dtype), &w.storage, &to));
  if (count) memcpy(to, data, count * ait_dtype_size(dtype));
  const char *name = ait_arena_printf(&c->in->arena, "%s.constant", c->name);
  if (!name) return AIT_OOM();
  AIT_TRY(add_to_graph(root, name, &w, AIT_INPUT_CONSTANT, out));
  return ox_bring_down(c->s, *out, out);
}
