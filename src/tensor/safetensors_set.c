/* Checkpoints: a file, an index of shards, a folder. */
#include "tensor/safetensors.h"

#include "base/json.h"

#include <stdio.h>
#include <sys/stat.h>

enum { INDEX_LIMIT = 100000000, INDEX_MEMORY = 128 << 20, PATH_LIMIT = 4096 };

/* ---- shards ----------------------------------------------------------------------------------------------------------------------*/
/* A name is a file beside the index and nothing else. */
static bool is_plain_name(const char *name) { return *name && !strpbrk(name, "/\\") && strcmp(name, ".") != 0 && strcmp(name, "..") != 0; }

static ait_status join(char out[PATH_LIMIT], const char *index, const char *shard) {
  const char *slash = strrchr(index, '/');
  int folder = slash ? (int)(slash - index) + 1 : 0;
  int n = snprintf(out, PATH_LIMIT, "%.*s%s", folder, index, shard);
  return n < PATH_LIMIT ? AIT_OK : ait_error(AIT_CODE_INVALID_ARGUMENT, "the path of shard '%.80s' is too long", shard);
}

typedef struct shard {
  ait_tensor_file file;
  ait_map by_name;
} shard;

static void shard_destroy(ait_allocator a, shard *s) {
  ait_tensor_file_deinit(&s->file);
  ait_map_deinit(&s->by_name);
  ait_free(a, s, sizeof *s);
}

static ait_status open_shard(ait_allocator a, const char *index, const char *name, shard **out) {
  char path[PATH_LIMIT];
  if (!is_plain_name(name)) return ait_error(AIT_CODE_INVALID_MODEL, "shard '%.200s' is no plain file name", name);
  AIT_TRY(join(path, index, name));
  shard *s = ait_alloc_zero(a, sizeof *s, _Alignof(shard));
  if (!s) return AIT_OOM();
  ait_tensor_file_init(&s->file, a);
  ait_map_init(&s->by_name, a);
  ait_status status = ait_safetensors_read(path, &s->file);
  if (ait_status_code(status) == AIT_CODE_NOT_FOUND || ait_status_code(status) == AIT_CODE_IO) {
    ait_status_ignore(status);
    status = ait_error(AIT_CODE_INVALID_MODEL, "its shard '%s' is not there, or is no file that can be read", name);
  }
  for (size_t i = 0; i < s->file.count && !status; ++i) status = ait_map_put(&s->by_name, s->file.items[i].name, &s->file.items[i].tensor);
  if (status) shard_destroy(a, s);
  else *out = s;
  return status;
}

/* Opens each shard once. */
static ait_status get_shard(ait_map *shards, const char *index, const char *name, shard **out) {
  void *known;
  if (ait_map_get(shards, name, &known)) {
    *out = known;
    return AIT_OK;
  }
  AIT_TRY(open_shard(shards->allocator, index, name, out));
  ait_status status = ait_map_put(shards, name, *out);
  if (status) shard_destroy(shards->allocator, *out);
  return status;
}

static ait_status add_mapped(ait_map *shards, const char *index, const ait_json *item, ait_tensor_file *out) {
  shard *s;
  void *tensor;
  if (item->kind != AIT_JSON_STRING) return ait_error(AIT_CODE_INVALID_MODEL, "tensor '%s' is mapped to no file name", item->key);
  AIT_TRY(get_shard(shards, index, item->as.string, &s));
  if (!ait_map_get(&s->by_name, item->key, &tensor))
    return ait_error(AIT_CODE_INVALID_MODEL, "tensor '%s' is not in its shard '%s'", item->key, item->as.string);
  return ait_tensor_file_add(out, item->key, tensor);
}

static ait_status read_map(const char *index, const ait_json *root, ait_tensor_file *out) {
  const ait_json *map = ait_json_get_kind(root, "weight_map", AIT_JSON_OBJECT);
  if (!map) return ait_error(AIT_CODE_INVALID_MODEL, "it holds no object 'weight_map'");
  ait_map shards;
  ait_map_init(&shards, out->allocator);
  ait_status status = AIT_OK;
  size_t before = out->count;
  for (uint32_t i = 0; i < map->count && !status; ++i) status = add_mapped(&shards, index, &map->as.items[i], out);
  for (size_t i = 0; i < shards.count; ++i) shard_destroy(shards.allocator, shards.entries[i].value);
  ait_map_deinit(&shards);
  if (status) ait_tensor_file_truncate(out, before);
  return status;
}

static ait_status read_index(const char *path, ait_tensor_file *out) {
  ait_arena arena;
  char *text;
  size_t size;
  const ait_json *root;
  AIT_TRY(ait_file_read(out->allocator, path, INDEX_LIMIT, &text, &size));
  ait_arena_init(&arena, out->allocator);
  arena.limit_bytes = INDEX_MEMORY;
  ait_status status = ait_json_parse(&arena, text, size, &root);
  if (!status) status = read_map(path, root, out);
  ait_arena_deinit(&arena);
  ait_free(out->allocator, text, size + 1);
  return ait_error_context(status, "cannot read '%s'", path);
}

/* ---- folders ---------------------------------------------------------------------------------------------------------------------*/
/* In the order in which libraries look. */
static const char *const file_names[] = {"model.safetensors.index.json", "model.safetensors",
                                         "diffusion_pytorch_model.safetensors.index.json", "diffusion_pytorch_model.safetensors",
                                         "adapter_model.safetensors"};

static ait_status read_folder(const char *folder, ait_tensor_file *out) {
  char path[PATH_LIMIT];
  struct stat info;
  for (size_t i = 0; i < AIT_COUNT(file_names); ++i) {
    if (snprintf(path, sizeof path, "%s/%s", folder, file_names[i]) >= PATH_LIMIT) break;
    if (stat(path, &info) == 0) return ait_safetensors_open(path, out);
  }
  return ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "the folder '%s' holds no weights under a known name", folder),
                        "like model.safetensors or model.safetensors.index.json; or name the file itself");
}

ait_status ait_safetensors_open(const char *path, ait_tensor_file *out) {
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return read_folder(path, out);
  return ait_ends_with(path, ".json") ? read_index(path, out) : ait_safetensors_read(path, out);
}
