#include "import/pt2/weights.h"
#include <stdio.h>

ait_dtype ait_pt2_dtype(int64_t code) {
  /* torch/_export/serde/schema.py, ScalarType; not ATen's numbering. */
  static const uint8_t codes[] = {
      [1] = AIT_U8,         [2] = AIT_I8,   [3] = AIT_I16,       [4] = AIT_I32,     [5] = AIT_I64,         [6] = AIT_F16,
      [7] = AIT_F32,        [8] = AIT_F64,  [9] = AIT_C32,       [10] = AIT_C64,    [11] = AIT_C128,       [12] = AIT_BOOL,
      [13] = AIT_BF16,      [28] = AIT_U16, [29] = AIT_F8E4M3FN, [30] = AIT_F8E5M2, [31] = AIT_F8E4M3FNUZ, [32] = AIT_F8E5M2FNUZ,
      [33] = AIT_F8E8M0FNU, [34] = AIT_U32, [35] = AIT_U64};
  return code >= 0 && code < (int64_t)AIT_COUNT(codes) ? (ait_dtype)codes[code] : AIT_DTYPE_NONE;
}

/* Storage classes of torch.save. Untyped ones count bytes; the tensor's dtype comes with it. */
static bool storage_dtype(const char *global, ait_dtype *out) {
  static const struct {
    const char *name;
    ait_dtype dtype;
  } classes[] = {{"torch FloatStorage", AIT_F32},
                 {"torch DoubleStorage", AIT_F64},
                 {"torch HalfStorage", AIT_F16},
                 {"torch BFloat16Storage", AIT_BF16},
                 {"torch LongStorage", AIT_I64},
                 {"torch IntStorage", AIT_I32},
                 {"torch ShortStorage", AIT_I16},
                 {"torch CharStorage", AIT_I8},
                 {"torch ByteStorage", AIT_U8},
                 {"torch BoolStorage", AIT_BOOL},
                 {"torch ComplexFloatStorage", AIT_C64},
                 {"torch ComplexDoubleStorage", AIT_C128},
                 {"torch UntypedStorage", AIT_DTYPE_NONE},
                 {"torch.storage UntypedStorage", AIT_DTYPE_NONE}};
  for (size_t i = 0; i < AIT_COUNT(classes); ++i) {
    if (strcmp(classes[i].name, global) != 0) continue;
    *out = classes[i].dtype;
    return true;
  }
  return false;
}

ait_status ait_pt2_weights_init(ait_pt2_weights *w, ait_arena *arena, ait_file_map *mapping, const ait_zip *zip, uint64_t *budget) {
  *w = (ait_pt2_weights){.arena = arena, .mapping = mapping, .zip = zip, .budget = budget};
  for (int i = 0; i < 2; ++i) ait_map_init(&w->entries[i], arena->allocator);
  ait_map_init(&w->storages, arena->allocator);
  ait_map_init(&w->archives, arena->allocator);
  return ait_weight_store_create(arena->allocator, &w->store);
}

void ait_pt2_weights_deinit(ait_pt2_weights *w) {
  for (int i = 0; i < 2; ++i) ait_map_deinit(&w->entries[i]);
  ait_map_deinit(&w->storages);
  ait_map_deinit(&w->archives);
  ait_weight_store_release(w->store);
}

ait_status ait_pt2_weights_set_config(ait_pt2_weights *w, ait_pt2_table table, const ait_json *config, const char *folder) {
  const ait_json *entries = ait_json_get_kind(config, "config", AIT_JSON_OBJECT);
  if (!entries) return ait_error(AIT_CODE_INVALID_MODEL, "no object 'config'");
  w->folder[table] = folder;
  for (uint32_t i = 0; i < entries->count; ++i) {
    AIT_TRY(ait_map_put(&w->entries[table], entries->as.items[i].key, (void *)(uintptr_t)&entries->as.items[i]));
  }
  return AIT_OK;
}

/* ---- torch.save ------------------------------------------------------------------------------------------------------------------*/

static bool is_little_endian(const ait_zip_member *order) {
  return !order || order->deflated || (order->stored_size >= 6 && memcmp(order->stored, "little", 6) == 0);
}

/* The member folder + name; *out is NULL when there is none. */
static ait_status find_joined(const ait_pt2_weights *w, const ait_zip *zip, const char *folder, const char *name,
                              const ait_zip_member **out) {
  const char *path = ait_arena_printf(w->arena, "%s%s", folder, name);
  if (!path) return AIT_OOM();
  *out = ait_zip_find(zip, path);
  return AIT_OK;
}

static ait_status open_pickled(ait_pt2_weights *w, const ait_zip_member *member, ait_pt2_pickled *p) {
  const uint8_t *data;
  size_t size;
  AIT_TRY(ait_zip_contents(w->arena, member, w->budget, &data, &size));
  AIT_TRY(ait_zip_open(w->arena, data, size, &p->zip));
  const ait_zip_member *pickle = NULL, *order;
  for (size_t i = 0; i < p->zip.count && !pickle; ++i) {
    const char *name = p->zip.members[i].name, *slash = strchr(name, '/');
    if (slash && strcmp(slash, "/data.pkl") == 0) pickle = &p->zip.members[i];
  }
  if (!pickle) return ait_error(AIT_CODE_INVALID_MODEL, "it holds no data.pkl: not written by torch.save");
  p->root = ait_arena_strdup(w->arena, pickle->name, strlen(pickle->name) - strlen("data.pkl"));
  if (!p->root) return AIT_OOM();
  AIT_TRY(find_joined(w, &p->zip, p->root, "byteorder", &order));
  if (!is_little_endian(order)) return ait_error(AIT_CODE_UNSUPPORTED, "its weights are big-endian");
  AIT_TRY(ait_zip_contents(w->arena, pickle, w->budget, &data, &size));
  return ait_pickle_parse(w->arena, data, size, &p->value);
}

static ait_status get_pickled(ait_pt2_weights *w, const ait_zip_member *member, const ait_pt2_pickled **out) {
  void *known;
  if (ait_map_get(&w->archives, member->name, &known)) {
    *out = known;
    return AIT_OK;
  }
  ait_pt2_pickled *p = AIT_ARENA_NEW(w->arena, ait_pt2_pickled);
  if (!p) return AIT_OOM();
  p->name = member->name;
  ait_status status = open_pickled(w, member, p);
  if (status) return ait_error_context(status, "member '%s'", member->name);
  *out = p;
  return ait_map_put(&w->archives, member->name, p);
}

ait_status ait_pt2_weights_set_pickle(ait_pt2_weights *w, ait_pt2_table table, const ait_zip_member *member) {
  if (member->size == 0) return AIT_OK;
  const ait_pt2_pickled *p;
  char what[160];
  AIT_TRY(get_pickled(w, member, &p));
  if (p->value->kind != AIT_PICKLE_DICT) {
    return ait_error(AIT_CODE_INVALID_MODEL, "member '%s' holds %s where a dict of tensors belongs; nothing of it was run", member->name,
                     ait_pickle_describe(p->value, what, sizeof what));
  }
  w->whole[table] = p;
  for (uint32_t i = 0; i + 1 < p->value->count; i += 2) {
    const ait_pickle *key = p->value->as.items[i];
    if (key->kind != AIT_PICKLE_STRING)
      return ait_error(AIT_CODE_INVALID_MODEL, "member '%s': a key is %s", member->name, ait_pickle_describe(key, what, sizeof what));
    AIT_TRY(ait_map_put(&w->entries[table], key->as.string, p->value->as.items[i + 1]));
  }
  return AIT_OK;
}

static bool get_int(const ait_pickle *v, int64_t *out) {
  if (!v || v->kind != AIT_PICKLE_INT) return false;
  *out = v->as.i;
  return true;
}

static bool get_ints(const ait_pickle *v, int32_t *out_count, int64_t *out) {
  if (!v || (v->kind != AIT_PICKLE_TUPLE && v->kind != AIT_PICKLE_LIST) || v->count > AIT_MAX_RANK) return false;
  *out_count = (int32_t)v->count;
  for (uint32_t i = 0; i < v->count; ++i) {
    if (!get_int(v->as.items[i], &out[i])) return false;
  }
  return true;
}

static const ait_pickle *item(const ait_pickle *tuple, uint32_t index) {
  return tuple && tuple->kind == AIT_PICKLE_TUPLE && index < tuple->count ? tuple->as.items[index] : NULL;
}

static ait_dtype global_dtype(const ait_pickle *v) {
  bool is_dtype = v && v->kind == AIT_PICKLE_GLOBAL && ait_starts_with(v->as.string, "torch ");
  return is_dtype ? ait_dtype_from_name(v->as.string + strlen("torch ")) : AIT_DTYPE_NONE;
}

/* ('storage', class, key, location, count): the file, checked against the count. dtype stays when the storage is untyped. */
static ait_status find_storage(ait_pt2_weights *w, const ait_pt2_pickled *p, const ait_pickle *id, ait_pt2_tensor *t) {
  const ait_pickle *tuple = id && id->kind == AIT_PICKLE_PERSISTENT ? id->as.items[0] : NULL;
  const ait_pickle *tag = item(tuple, 0), *class = item(tuple, 1), *key = item(tuple, 2);
  int64_t count;
  bool known = tag && tag->kind == AIT_PICKLE_STRING && strcmp(tag->as.string, "storage") == 0 && class &&
               class->kind == AIT_PICKLE_GLOBAL && key && key->kind == AIT_PICKLE_STRING && get_int(item(tuple, 4), &count);
  if (!known) return ait_error(AIT_CODE_INVALID_MODEL, "a storage is described in an unknown way");
  ait_dtype dtype;
  if (!storage_dtype(class->as.string, &dtype)) return ait_error(AIT_CODE_UNSUPPORTED, "storage class '%s' is not known", class->as.string);
  if (dtype != AIT_DTYPE_NONE) t->dtype = dtype;
  if (t->dtype == AIT_DTYPE_NONE) return ait_error(AIT_CODE_INVALID_MODEL, "a tensor without a dtype");
  const char *path = ait_arena_printf(w->arena, "%sdata/%s", p->root, key->as.string);
  if (!path) return AIT_OOM();
  t->file = ait_zip_find(&p->zip, path);
  if (!t->file) return ait_error(AIT_CODE_INVALID_MODEL, "its storage '%s' is missing in '%s'", path, p->name);
  uint64_t unit = dtype == AIT_DTYPE_NONE ? 1 : ait_dtype_size(dtype);
  if (count < 0 || (uint64_t)count > t->file->size / unit) {
    return ait_error(AIT_CODE_INVALID_MODEL, "its storage claims %lld elements, '%s' has %llu bytes", (long long)count, path,
                     (unsigned long long)t->file->size);
  }
  return AIT_OK;
}

/* (storage, offset, sizes, strides, requires_grad, hooks[, dtype]) */
static ait_status read_rebuild(ait_pt2_weights *w, const ait_pt2_pickled *p, const ait_pickle *args, bool untyped, ait_pt2_tensor *out) {
  int32_t strides;
  if (!get_int(item(args, 1), &out->offset) || !get_ints(item(args, 2), &out->rank, out->shape) ||
      !get_ints(item(args, 3), &strides, out->strides)) {
    return ait_error(AIT_CODE_INVALID_MODEL, "a tensor's sizes, strides or offset are malformed, or it has more than %d dims",
                     AIT_MAX_RANK);
  }
  if (strides != out->rank) return ait_error(AIT_CODE_INVALID_MODEL, "%d sizes, but %d strides", (int)out->rank, (int)strides);
  out->pickled = p;
  if (untyped) out->dtype = global_dtype(item(args, 6));
  return find_storage(w, p, item(args, 0), out);
}

/* (class, dtype, sizes, strides, …), and a dict of the parts */
static ait_status read_subclass(const ait_pt2_pickled *p, const ait_pickle *args, const ait_pickle *state, ait_pt2_tensor *out) {
  if (state && state->kind == AIT_PICKLE_TUPLE && state->count) state = state->as.items[0];
  if (!state || state->kind != AIT_PICKLE_DICT) return ait_error(AIT_CODE_INVALID_MODEL, "a tensor subclass without parts");
  out->is_subclass = true;
  out->pickled = p;
  out->parts = state;
  out->dtype = global_dtype(item(args, 1));
  if (!get_ints(item(args, 2), &out->rank, out->shape)) return ait_error(AIT_CODE_INVALID_MODEL, "a tensor subclass without sizes");
  return AIT_OK;
}

static ait_status read_value(ait_pt2_weights *w, const ait_pt2_pickled *p, const ait_pickle *value, ait_pt2_tensor *out) {
  enum { WRAPPER_LIMIT = 8 };
  *out = (ait_pt2_tensor){0};
  for (int i = 0; i < WRAPPER_LIMIT; ++i) {
    const ait_pickle *args = ait_pickle_call(value, "torch._utils _rebuild_parameter");
    if (!args) args = ait_pickle_call(value, "torch._utils _rebuild_parameter_with_state");
    if (!args || args->count == 0) break;
    value = args->as.items[0];
  }
  const ait_pickle *args = ait_pickle_call(value, "torch._utils _rebuild_tensor_v2");
  if (args) return read_rebuild(w, p, args, false, out);
  args = ait_pickle_call(value, "torch._utils _rebuild_tensor_v3");
  if (args) return read_rebuild(w, p, args, true, out);
  /* (function, class, its arguments, state): a subclass; what is made by one of the plain functions is a plain tensor. */
  args = ait_pickle_call(value, "torch._tensor _rebuild_from_type_v2");
  const ait_pickle *function = item(args, 0);
  if (ait_pickle_is_global(function, "torch._utils _rebuild_tensor_v2")) return read_rebuild(w, p, item(args, 2), false, out);
  if (ait_pickle_is_global(function, "torch._utils _rebuild_tensor_v3")) return read_rebuild(w, p, item(args, 2), true, out);
  if (ait_pickle_is_global(function, "torch._utils _rebuild_wrapper_subclass")) return read_subclass(p, item(args, 2), item(args, 3), out);
  if (ait_pickle_call(value, "torch._utils _rebuild_meta_tensor_no_storage"))
    return ait_error(AIT_CODE_INVALID_MODEL, "a meta tensor: the model was saved without its data");
  char what[160];
  return ait_error(AIT_CODE_INVALID_MODEL, "%s where a tensor belongs; nothing of it was run",
                   ait_pickle_describe(value, what, sizeof what));
}

/* ---- config ----------------------------------------------------------------------------------------------------------------------*/

static ait_status read_ints(const ait_json *array, const char *what, int32_t *out_count, int64_t *out) {
  if (!array || array->count > AIT_MAX_RANK) return ait_error(AIT_CODE_INVALID_MODEL, "no %s, or more than %d", what, AIT_MAX_RANK);
  *out_count = (int32_t)array->count;
  for (uint32_t i = 0; i < array->count; ++i) {
    if (!ait_json_get_int(&array->as.items[i], "as_int", &out[i]))
      return ait_error(AIT_CODE_INVALID_MODEL, "%s that are no integers", what);
  }
  return AIT_OK;
}

static ait_status read_meta(const ait_json *meta, ait_pt2_tensor *out) {
  int64_t code = -1, layout = 7;
  int32_t strides = 0;
  ait_json_get_int(meta, "dtype", &code);
  out->dtype = ait_pt2_dtype(code);
  if (out->dtype == AIT_DTYPE_NONE) return ait_error(AIT_CODE_INVALID_MODEL, "dtype code %lld is not known", (long long)code);
  if (ait_json_get_int(meta, "layout", &layout) && layout != 7)
    return ait_error(AIT_CODE_UNSUPPORTED, "a tensor that is not strided (layout %lld)", (long long)layout);
  AIT_TRY(read_ints(ait_json_get_kind(meta, "sizes", AIT_JSON_ARRAY), "sizes", &out->rank, out->shape));
  AIT_TRY(read_ints(ait_json_get_kind(meta, "strides", AIT_JSON_ARRAY), "strides", &strides, out->strides));
  if (strides != out->rank) return ait_error(AIT_CODE_INVALID_MODEL, "%d sizes, but %d strides", (int)out->rank, (int)strides);
  const ait_json *offset = ait_json_get(meta, "storage_offset");
  if (offset && !ait_json_get_int(offset, "as_int", &out->offset))
    return ait_error(AIT_CODE_INVALID_MODEL, "a storage offset that is no integer");
  return AIT_OK;
}

static ait_status read_entry(ait_pt2_weights *w, ait_pt2_table table, const ait_json *entry, ait_pt2_tensor *out) {
  *out = (ait_pt2_tensor){0};
  const char *path = ait_json_get_string(entry, "path_name");
  const ait_json *pickled = ait_json_get_kind(entry, "use_pickle", AIT_JSON_BOOL);
  const ait_json *meta = ait_json_get(entry, "tensor_meta");
  if (!path || strchr(path, '/') || strchr(path, '\\'))
    return ait_error(AIT_CODE_INVALID_MODEL, "its file name '%s' is no plain name", path ? path : "");
  const ait_zip_member *file;
  AIT_TRY(find_joined(w, w->zip, w->folder[table], path, &file));
  if (!file) return ait_error(AIT_CODE_INVALID_MODEL, "its file '%s%s' is missing", w->folder[table], path);
  if (!meta) return ait_error(AIT_CODE_UNSUPPORTED, "it is an object of a TorchBind class, no tensor");
  if (pickled && pickled->as.b) {
    const ait_pt2_pickled *p;
    AIT_TRY(get_pickled(w, file, &p));
    return read_value(w, p, p->value, out);
  }
  out->file = file;
  return read_meta(meta, out);
}

/* ---- all -------------------------------------------------------------------------------------------------------------------------*/

ait_status ait_pt2_weights_find(ait_pt2_weights *w, ait_pt2_table first, const char *name, ait_pt2_tensor *out) {
  for (int i = 0; i < 2; ++i) {
    ait_pt2_table table = i == 0 ? first : first == AIT_PT2_WEIGHTS ? AIT_PT2_CONSTANTS : AIT_PT2_WEIGHTS;
    void *entry;
    if (!ait_map_get(&w->entries[table], name, &entry)) continue;
    ait_status status = w->whole[table] ? read_value(w, w->whole[table], entry, out) : read_entry(w, table, entry, out);
    return ait_error_context(status, "weight '%s'", name);
  }
  return ait_error(AIT_CODE_INVALID_MODEL, "weight '%s' is missing: the program names it, the file does not hold it", name);
}

ait_status ait_pt2_weights_part(ait_pt2_weights *w, const ait_pt2_tensor *whole, const char *attribute, ait_pt2_tensor *out) {
  const ait_pickle *value = ait_pickle_get(whole->parts, attribute);
  if (!value) return ait_error(AIT_CODE_INVALID_MODEL, "the tensor subclass has no part '%s'", attribute);
  return ait_error_context(read_value(w, whole->pickled, value, out), "part '%s'", attribute);
}

/* Elements from the storage's beginning to the farthest that the tensor reaches. false: overflow, or a negative size, stride or offset. */
static bool reach_of(const ait_pt2_tensor *t, int64_t *out) {
  int64_t last = t->offset, count = 1;
  if (t->offset < 0) return false;
  for (int32_t d = 0; d < t->rank; ++d) {
    int64_t step;
    if (t->shape[d] < 0 || t->strides[d] < 0 || ait_mul_overflows(count, t->shape[d] ? t->shape[d] : 1, &count)) return false;
    if (t->shape[d] == 0) continue;
    if (ait_mul_overflows(t->shape[d] - 1, t->strides[d], &step) || ait_add_overflows(last, step, &last)) return false;
  }
  bool empty = false;
  for (int32_t d = 0; d < t->rank; ++d) empty |= t->shape[d] == 0;
  *out = empty ? 0 : last + 1;
  return last < INT64_MAX;
}

static void shape_text(const ait_pt2_tensor *t, char *out, size_t size) {
  ait_tensor view = {.rank = t->rank};
  memcpy(view.shape, t->shape, sizeof view.shape);
  ait_tensor_shape_text(&view, out, size);
}

static ait_status check_bounds(const ait_pt2_tensor *t) {
  char shape[256];
  int64_t reach, bytes;
  shape_text(t, shape, sizeof shape);
  if (!reach_of(t, &reach) || ait_mul_overflows(reach, (int64_t)ait_dtype_size(t->dtype), &bytes)) {
    return ait_error(AIT_CODE_INVALID_MODEL, "shape %s with its strides and offset is out of bounds", shape);
  }
  if (bytes > 0 && t->file->size == 0) {
    return ait_error(AIT_CODE_INVALID_MODEL, "weights missing: '%s' is empty, but the shape is %s (the model was saved without its data)",
                     t->file->name, shape);
  }
  if ((uint64_t)bytes > t->file->size) {
    return ait_error(AIT_CODE_INVALID_MODEL, "shape %s with its strides and offset needs %lld bytes, '%s' has %llu", shape,
                     (long long)bytes, t->file->name, (unsigned long long)t->file->size);
  }
  return AIT_OK;
}

static void release_mapping(void *ctx) { ait_file_map_release(ctx); }

/* In place where the file has it aligned (torch 2.9 and later: to 64 bytes), else a copy. */
static ait_status make_storage(ait_pt2_weights *w, const ait_zip_member *file, ait_storage **out) {
  enum { ALIGNMENT = 64 };
  const uint8_t *mapped = w->mapping ? ait_file_map_data(w->mapping) : NULL;
  bool in_map = mapped && file->stored >= mapped && file->stored < mapped + ait_file_map_size(w->mapping);
  if (!file->deflated && in_map && (uintptr_t)file->stored % ALIGNMENT == 0) {
    AIT_TRY(ait_zip_check(file));
    ait_file_map *map = ait_file_map_retain(w->mapping);
    ait_status status =
        ait_storage_wrap(w->arena->allocator, (void *)(uintptr_t)file->stored, (size_t)file->size, release_mapping, map, out);
    if (status) ait_file_map_release(map);
    return status;
  }
  AIT_TRY(ait_zip_spend(file, w->budget));
  AIT_TRY(ait_storage_create(w->arena->allocator, (size_t)file->size, out));
  ait_status status = ait_zip_extract(w->arena->allocator, file, ait_storage_data(*out));
  if (status) ait_storage_release(*out);
  return status;
}

/* One storage for each file, however many tensors view it. */
static ait_status get_storage(ait_pt2_weights *w, const ait_zip_member *file, uint32_t *out) {
  char key[32];
  void *known;
  snprintf(key, sizeof key, "%p", (const void *)file);
  if (ait_map_get(&w->storages, key, &known)) {
    *out = (uint32_t)((uintptr_t)known - 1);
    return AIT_OK;
  }
  ait_storage *storage;
  AIT_TRY(make_storage(w, file, &storage));
  ait_status status = ait_weight_store_add_storage(w->store, storage, out);
  if (status) {
    ait_storage_release(storage);
    return status;
  }
  return ait_map_put(&w->storages, key, (void *)((uintptr_t)*out + 1));
}

ait_status ait_pt2_weights_add(ait_pt2_weights *w, const char *name, const ait_pt2_tensor *t) {
  if (ait_weight_store_find(w->store, name)) return AIT_OK;
  ait_weight weight = {.name = name, .dtype = t->dtype, .rank = t->rank, .offset = t->offset};
  memcpy(weight.shape, t->shape, sizeof weight.shape);
  memcpy(weight.strides, t->strides, sizeof weight.strides);
  ait_status status = check_bounds(t);
  if (!status) status = get_storage(w, t->file, &weight.storage);
  if (!status) status = ait_weight_store_add(w->store, &weight);
  return ait_error_context(status, "weight '%s'", name);
}
