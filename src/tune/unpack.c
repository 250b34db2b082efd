/* An .ait as a folder of plain files. */
#include "tensor/safetensors.h"
#include "tune/put_json.h"
#include "tune/tune.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void ait_unpack_options_init(ait_unpack_options *options) { *options = (ait_unpack_options){.struct_size = sizeof *options}; }

/* Those that come out in another form: the weights as one file, and sums that would be wrong of what is here. */
static bool is_left_out(const char *name) {
  static const char *const names[] = {AIT_ENTRY_WEIGHTS, AIT_ENTRY_SIGNATURE, AIT_ENTRY_SUMS, AIT_ENTRY_SHA256};
  for (size_t i = 0; i < AIT_COUNT(names); ++i)
    if (strcmp(name, names[i]) == 0) return true;
  return ait_starts_with(name, "weights/");
}

static ait_status io_fault(const char *what, const char *path) {
  return ait_error(AIT_CODE_IO, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* mkdir tells whether the folder is new; an old one must be empty (rmdir says so), for in a folder that somebody else filled a link could
 * lead anywhere. */
static ait_status make_folder(const char *folder) {
  if (mkdir(folder, 0777) == 0) return AIT_OK;
  if (errno != EEXIST) return io_fault("make the folder", folder);
  if (rmdir(folder) == 0 && mkdir(folder, 0777) == 0) return AIT_OK;
  if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is no empty folder", folder), "name a folder that is not there");
  return io_fault("make the folder", folder);
}

static ait_status entry_path(const char *folder, const char *name, char out[PATH_MAX]) {
  int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);
  return n < 0 || n >= PATH_MAX ? ait_error(AIT_CODE_IO, "the path of '%s' is too long", name) : AIT_OK;
}

/* The container's names are relative, of letters, digits and "._-/", without "." and ".." parts (ait_zip_name_valid). */
static ait_status write_entry(const char *folder, const char *name, const void *data, size_t size) {
  char path[PATH_MAX];
  AIT_TRY(entry_path(folder, name, path));
  for (char *p = path + strlen(folder) + 1; (p = strchr(p, '/')); ++p) {
    *p = 0;
    int made = mkdir(path, 0777);
    if (made != 0 && errno != EEXIST) return io_fault("make the folder", path);
    *p = '/';
  }
  return ait_file_write_all(ait_allocator_default(), path, data, size);
}

static ait_status write_entries(const ait_artifact *f, const char *folder) {
  for (size_t i = 0; i < ait_artifact_entry_count(f); ++i) {
    const char *name = ait_artifact_entry_name(f, i);
    size_t size;
    const void *data = ait_artifact_entry(f, name, &size);
    if (!is_left_out(name)) AIT_TRY(write_entry(folder, name, data, size));
  }
  return AIT_OK;
}

static ait_status write_graph(const ait_artifact *f, const char *folder) {
  ait_graph *graph;
  ait_text text;
  AIT_TRY(ait_graph_from_region(ait_allocator_default(), ait_artifact_region(f), AIT_DIALECT_RAW, NULL, &graph));
  ait_text_init(&text, ait_allocator_default());
  ait_status status = ait_graph_print(graph, &text);
  if (!status && text.failed) status = AIT_OOM();
  if (!status) status = write_entry(folder, "graph.txt", text.data, text.length);
  ait_text_deinit(&text);
  ait_graph_destroy(graph);
  return status;
}

static ait_status write_weights(const ait_artifact *f, const char *folder, bool npz) {
  ait_allocator a = ait_allocator_default();
  const ait_weight_store *store = ait_artifact_weights(f);
  ait_weights provider = ait_weight_store_provider(store);
  ait_tensor_file all;
  char path[PATH_MAX];
  AIT_TRY(entry_path(folder, npz ? "weights.npz" : "weights.safetensors", path));
  ait_tensor_file_init(&all, a);
  ait_status status = AIT_OK;
  for (size_t i = 0; !status && i < ait_weight_store_count(store); ++i) {
    const char *name = ait_weight_store_at(store, i)->name;
    ait_tensor t;
    status = provider.get(provider.ctx, name, &t);
    if (!status) status = ait_tensor_file_add(&all, name, &t);
  }
  if (!status) status = npz ? ait_npz_write(path, &all) : ait_safetensors_write(a, path, &all);
  ait_tensor_file_deinit(&all);
  return !npz && ait_status_code(status) == AIT_CODE_UNSUPPORTED ? ait_error_hint(status, "--weights npz has more types") : status;
}

static ait_status list(const char *path, const char *folder, const ait_artifact *f, char **out) {
  ait_text t;
  bool first = true;
  ait_signature s = ait_artifact_signature(f);
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(&t, "{\n  ");
  ait_put_string(&t, &first, "file", path);
  if (folder) ait_put_string(&t, &first, "folder", folder);
  ait_put_string(&t, &first, "name", ait_artifact_model_name(f));
  ait_put_string(&t, &first, "producer", ait_artifact_producer(f));
  ait_put_string(&t, &first, "signature", ait_signature_state_name(s.state));
  ait_text_printf(&t, ",\n  \"entries\": [");
  for (size_t i = 0; i < ait_artifact_entry_count(f); ++i) {
    const char *name = ait_artifact_entry_name(f, i);
    size_t size;
    bool inner = true;
    AIT_UNUSED(ait_artifact_entry(f, name, &size));
    ait_text_printf(&t, "%s\n    {", i ? "," : "");
    ait_put_string(&t, &inner, "name", name);
    ait_put_int(&t, &inner, "size", (int64_t)size);
    ait_text_printf(&t, "}");
  }
  ait_text_printf(&t, "]\n}\n");
  return ait_put_finish(&t, out);
}

static ait_status unpack(ait_artifact *f, const char *folder, bool npz) {
  AIT_TRY(ait_artifact_verify(f));
  if (!folder) return AIT_OK;
  AIT_TRY(make_folder(folder));
  AIT_TRY(write_entries(f, folder));
  AIT_TRY(write_graph(f, folder));
  return write_weights(f, folder, npz);
}

ait_status ait_unpack(const char *path, const char *folder, const ait_unpack_options *options, char **out) {
  ait_unpack_options known;
  ait_artifact *f;
  ait_unpack_options_init(&known);
  if (options) memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
  if (out) *out = NULL;
  ait_artifact_open_options open = {.keys = known.keys, .require_signature = known.require_signature};
  AIT_TRY(ait_artifact_open(ait_allocator_default(), path, &open, &f));
  ait_status status = ait_error_context(unpack(f, folder, known.npz), "cannot unpack '%s'", path);
  if (!status && out) status = list(path, folder, f, out);
  ait_artifact_release(f);
  return status;
}
