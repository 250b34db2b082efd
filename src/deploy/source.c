/* What there is beside the graph: a folder that `python -m ait.export_lm` made, or nothing. */
#include "base/json.h"
#include "deploy/internal.h"
#include <ait/text.h>
#include <stdio.h>
#include <sys/stat.h>

enum { TEXT_LIMIT = 64 << 20 };

static bool is_folder(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool exists(const char *path) {
  struct stat s;
  return stat(path, &s) == 0;
}

static const char *inside(dep_source *s, const char *name) {
  if (*name == '/') return ait_arena_strdup(&s->arena, name, strlen(name));
  return ait_arena_printf(&s->arena, "%s/%s", s->folder, name);
}

ait_status dep_read_text(dep_source *s, const char *path, const char **out, size_t *out_size) {
  char *text;
  AIT_TRY(ait_file_read(s->arena.allocator, path, TEXT_LIMIT, &text, out_size));
  *out = ait_arena_strdup(&s->arena, text, *out_size);
  ait_free(s->arena.allocator, text, *out_size + 1);
  return *out ? AIT_OK : AIT_OOM();
}

static ait_status read_names(dep_source *s, const ait_json *names) {
  if (!names) return AIT_OK;
  s->renames = AIT_ARENA_ARRAY(&s->arena, struct dep_rename, names->count + 1);
  if (!s->renames) return AIT_OOM();
  for (uint32_t i = 0; i < names->count; ++i) {
    if (names->as.items[i].kind != AIT_JSON_STRING) return ait_error(AIT_CODE_INVALID_MODEL, "'names' holds what is not a name");
    s->renames[s->rename_count++] = (struct dep_rename){names->as.items[i].key, names->as.items[i].as.string};
  }
  return AIT_OK;
}

static ait_status read_stops(dep_source *s, const ait_json *stops) {
  for (uint32_t i = 0; stops && i < stops->count && s->stop_count < AIT_LM_MAX_STOPS; ++i) {
    if (stops->as.items[i].kind != AIT_JSON_INT) return ait_error(AIT_CODE_INVALID_MODEL, "'stops' holds what is no token");
    s->stops[s->stop_count++] = stops->as.items[i].as.i;
  }
  return AIT_OK;
}

static ait_status read_number(const ait_json *root, const char *key, int64_t *out) {
  if (!ait_json_get(root, key) || ait_json_get_int(root, key, out)) return AIT_OK;
  return ait_error(AIT_CODE_INVALID_MODEL, "'%s' is no whole number", key);
}

/* One that is damaged is an error now, and not when a text comes. */
static ait_status try_tokenizer(const dep_source *s, const dep_file *f) {
  ait_tokenizer *tokenizer;
  if (strcmp(f->name, "tokenizer.json")) return AIT_OK;
  AIT_TRY(ait_error_context(ait_tokenizer_parse(s->arena.allocator, f->text, f->size, &tokenizer), "'%s'", f->name));
  ait_tokenizer_destroy(tokenizer);
  return AIT_OK;
}

static ait_status read_description(dep_source *s, const char *path) {
  const char *text, *name;
  size_t size;
  const ait_json *root;
  int64_t format = 0;
  AIT_TRY(dep_read_text(s, path, &text, &size));
  AIT_TRY(ait_error_context(ait_json_parse(&s->arena, text, size, &root), "'%s'", path));
  if (!ait_json_get_int(root, "format", &format) || format != 1)
    return ait_error(AIT_CODE_INCOMPATIBLE, "'%s' has format %lld, this ait reads 1", path, (long long)format);
  s->description = root;
  if ((name = ait_json_get_string(root, "task"))) s->task = name;
  if (strcmp(s->task, "lm") && strcmp(s->task, "embed") && strcmp(s->task, "seq2seq"))
    return ait_error(AIT_CODE_INCOMPATIBLE, "'%s' is for the task '%s', this ait knows lm, embed and seq2seq", path, s->task);
  name = ait_json_get_string(root, "graph");
  s->graph = inside(s, name ? name : "model.pt2");
  if ((name = ait_json_get_string(root, "checkpoint"))) s->checkpoint = inside(s, name);
  if ((name = ait_json_get_string(root, "extra"))) s->extra = inside(s, name);
  static const char *const keys[] = {"max_positions", "max_source", "bos", "pad"};
  int64_t *const numbers[] = {&s->max_positions, &s->max_source, &s->bos, &s->pad};
  for (size_t i = 0; i < AIT_COUNT(keys); ++i) AIT_TRY(ait_error_context(read_number(root, keys[i], numbers[i]), "'%s'", path));
  AIT_TRY(ait_error_context(read_stops(s, ait_json_get_kind(root, "stops", AIT_JSON_ARRAY)), "'%s'", path));
  if (!s->graph) return AIT_OOM();
  return ait_error_context(read_names(s, ait_json_get_kind(root, "names", AIT_JSON_OBJECT)), "'%s'", path);
}

ait_status dep_source_open(ait_allocator a, const char *path, dep_source *out) {
  *out = (dep_source){.bos = -1, .pad = -1, .task = "lm"};
  ait_arena_init(&out->arena, a);
  if (!is_folder(path)) {
    out->graph = ait_arena_strdup(&out->arena, path, strlen(path));
    return out->graph ? AIT_OK : AIT_OOM();
  }
  out->folder = ait_arena_strdup(&out->arena, path, strlen(path));
  const char *description = out->folder ? inside(out, "ait.json") : NULL;
  if (!description) return AIT_OOM();
  if (!exists(description))
    return ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "'%s' has no ait.json: its model was not exported yet", path),
                          "python -m ait.export_lm %s", path);
  AIT_TRY(read_description(out, description));
  static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"};
  for (size_t i = 0; i < AIT_COUNT(files); ++i) {
    const char *file = inside(out, files[i]);
    if (file && !exists(file) && out->checkpoint) file = ait_arena_printf(&out->arena, "%s/%s", out->checkpoint, files[i]);
    if (!file) return AIT_OOM();
    if (!exists(file)) continue;
    dep_file *f = &out->files[out->file_count++];
    f->name = files[i];
    AIT_TRY(dep_read_text(out, file, &f->text, &f->size));
    AIT_TRY(try_tokenizer(out, f));
  }
  return AIT_OK;
}

void dep_source_close(dep_source *s) { ait_arena_deinit(&s->arena); }
