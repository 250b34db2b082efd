/* The public face of tensor files: include/ait/data.h. */
#include "tensor/safetensors.h"

struct ait_data {
  ait_allocator allocator;
  ait_tensor_file file;
};

ait_status ait_data_create(ait_allocator a, ait_data **out) {
  *out = NULL;
  ait_data *data = ait_alloc_zero(a, sizeof *data, _Alignof(ait_data));
  if (!data) return AIT_OOM();
  data->allocator = a;
  ait_tensor_file_init(&data->file, a);
  *out = data;
  return AIT_OK;
}

void ait_data_destroy(ait_data *data) {
  if (!data) return;
  ait_tensor_file_deinit(&data->file);
  ait_free(data->allocator, data, sizeof *data);
}

/* "dir/x.npy" -> "x" */
static ait_status stem_of(const char *path, char *out, size_t size) {
  const char *slash = strrchr(path, '/');
  const char *base = slash ? slash + 1 : path;
  size_t length = strlen(base) - strlen(".npy");
  if (length >= size) return ait_error(AIT_CODE_INVALID_ARGUMENT, "file name of '%s' is too long", path);
  memcpy(out, base, length);
  out[length] = 0;
  return AIT_OK;
}

static ait_status load_npy(ait_data *data, const char *path) {
  char name[256];
  AIT_TRY(stem_of(path, name, sizeof name));
  ait_tensor tensor;
  AIT_TRY(ait_npy_read(path, data->allocator, &tensor));
  ait_status status = ait_tensor_file_add(&data->file, name, &tensor);
  ait_tensor_release(&tensor);
  return status;
}

/* Copies: callers may write into what they were given, and a mapping is read-only. */
static ait_status load_safetensors(ait_data *data, const char *path) {
  ait_tensor_file file;
  ait_tensor_file_init(&file, data->allocator);
  ait_status status = ait_safetensors_open(path, &file);
  for (size_t i = 0; i < file.count && status == AIT_OK; ++i) status = ait_data_add(data, file.items[i].name, &file.items[i].tensor);
  ait_tensor_file_deinit(&file);
  return status;
}

ait_status ait_data_load(ait_allocator a, const char *path, ait_data **out) {
  *out = NULL;
  ait_data *data;
  AIT_TRY(ait_data_create(a, &data));
  ait_status status;
  if (ait_ends_with(path, ".npz")) status = ait_npz_read(path, &data->file);
  else if (ait_ends_with(path, ".npy")) status = load_npy(data, path);
  else if (ait_ends_with(path, ".safetensors") || ait_ends_with(path, ".safetensors.index.json")) status = load_safetensors(data, path);
  else
    status = ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "cannot read data '%s': unknown kind of file", path),
                            "use .npz, .npy or .safetensors");
  if (status != AIT_OK) {
    ait_data_destroy(data);
    return status;
  }
  *out = data;
  return AIT_OK;
}

ait_status ait_data_save(const ait_data *data, const char *path) { return ait_npz_write(path, &data->file); }

ait_status ait_data_add(ait_data *data, const char *name, const ait_tensor *tensor) {
  ait_tensor copy;
  AIT_TRY(ait_tensor_cast(data->allocator, tensor, tensor->dtype, &copy));
  ait_status status = ait_tensor_file_add(&data->file, name, &copy);
  ait_tensor_release(&copy);
  return status;
}

size_t ait_data_count(const ait_data *data) { return data->file.count; }
const char *ait_data_name(const ait_data *data, size_t i) { return i < data->file.count ? data->file.items[i].name : NULL; }
const ait_tensor *ait_data_tensor(const ait_data *data, size_t i) { return i < data->file.count ? &data->file.items[i].tensor : NULL; }
const ait_tensor *ait_data_find(const ait_data *data, const char *name) { return ait_tensor_file_find(&data->file, name); }
