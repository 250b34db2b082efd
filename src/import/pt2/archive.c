/* The file: which layout it has, which program of it is wanted, where the weights are. */
#include "import/pt2/pt2.h"

/* Inflating may give 100 times the file, and 64 MiB in any case: JSON reaches 30, weights hardly 2; a bomb has 1000. */
enum { INFLATE_RATIO = 100, INFLATE_FREE = 64 << 20, MEMORY_RATIO = 32, MEMORY_FREE = 160 << 20 };

typedef struct archive {
  ait_pt2_import in;
  const uint8_t *data;
  size_t size;
  ait_file_map *mapping; /* that data lies in; NULL: in the caller's memory */
  ait_zip zip;
  uint64_t budget;
} archive;

/* The archive_format members that can be the archive's own: at the top, or in one folder. Deeper ones are the user's. */
static size_t count_roots(const ait_zip *zip, const ait_zip_member **out) {
  static const char name[] = "archive_format";
  size_t count = 0;
  *out = NULL;
  for (size_t i = 0; i < zip->count; ++i) {
    const char *slash = strchr(zip->members[i].name, '/');
    if (strcmp(slash ? slash + 1 : zip->members[i].name, name) != 0) continue;
    *out = &zip->members[i];
    ++count;
  }
  return count;
}

/* "m/" of "m/archive_format", "" of "archive_format". */
static const char *root_of(ait_arena *arena, const ait_zip_member *format) {
  return ait_arena_strdup(arena, format->name, strlen(format->name) - strlen("archive_format"));
}

static bool has_prefix(const ait_zip *zip, const char *root, const char *folder) {
  size_t length = strlen(root);
  for (size_t i = 0; i < zip->count; ++i) {
    const char *name = zip->members[i].name;
    if (strncmp(name, root, length) == 0 && ait_starts_with(name + length, folder)) return true;
  }
  return false;
}

static bool has_member_in_folder(const ait_zip *zip, const char *file) {
  for (size_t i = 0; i < zip->count; ++i) {
    const char *slash = strchr(zip->members[i].name, '/');
    if (slash && strcmp(slash + 1, file) == 0) return true;
  }
  return false;
}

/* root: of a PyTorch archive, NULL when it is none. */
static ait_file_kind kind_of(const ait_zip *zip, const char *root) {
  if (root && has_prefix(zip, root, "models/")) return AIT_FILE_PT2;
  if (root && has_prefix(zip, root, "data/aotinductor/")) return AIT_FILE_AOTI;
  if (root || ait_zip_find(zip, "serialized_exported_program.json")) return AIT_FILE_PT2;
  if (ait_zip_find(zip, "manifest.json")) return AIT_FILE_AIT;
  if (has_member_in_folder(zip, "constants.pkl")) return AIT_FILE_TORCHSCRIPT;
  return has_member_in_folder(zip, "data.pkl") ? AIT_FILE_CHECKPOINT : AIT_FILE_UNKNOWN;
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------*/

static ait_status read_json(archive *ar, const ait_zip_member *member, const ait_json **out) {
  const uint8_t *text;
  size_t size;
  AIT_TRY(ait_zip_contents(&ar->in.arena, member, &ar->budget, &text, &size));
  return ait_error_context(ait_json_parse(&ar->in.arena, (const char *)text, size, out), "member '%s'", member->name);
}

static ait_status check_text(archive *ar, const ait_zip_member *member, const char *wanted) {
  const uint8_t *text;
  size_t size;
  if (!member) return AIT_OK;
  AIT_TRY(ait_zip_contents(&ar->in.arena, member, &ar->budget, &text, &size));
  while (size && (text[size - 1] == '\n' || text[size - 1] == ' ')) --size;
  if (size == strlen(wanted) && memcmp(text, wanted, size) == 0) return AIT_OK;
  return ait_error(AIT_CODE_UNSUPPORTED, "member '%s' is '%.*s'; only '%s' is known", member->name, (int)(size < 20 ? size : 20),
                   (const char *)text, wanted);
}

/* The program that the caller wants, or the only one. */
static ait_status choose_model(archive *ar, const char *root, const char **out) {
  const char *wanted = ar->in.options ? ar->in.options->model_name : NULL;
  const char *folder = ait_arena_printf(&ar->in.arena, "%smodels/", root);
  if (!folder) return AIT_OOM();
  ait_text names;
  ait_text_init(&names, ar->in.arena.allocator);
  size_t count = 0;
  *out = NULL;
  for (size_t i = 0; i < ar->zip.count; ++i) {
    const char *name = ar->zip.members[i].name;
    if (!ait_starts_with(name, folder) || !ait_ends_with(name, ".json")) continue;
    const char *model = ait_arena_strdup(&ar->in.arena, name + strlen(folder), strlen(name) - strlen(folder) - strlen(".json"));
    if (!model) {
      names.failed = true;
      break;
    }
    ait_text_printf(&names, "%s'%s'", count++ ? ", " : "", model);
    if (!wanted || strcmp(model, wanted) == 0) *out = model;
  }
  ait_status status = names.failed ? AIT_OOM() : AIT_OK;
  if (status) {
    *out = NULL;
  } else if (count == 0) {
    status = ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "the archive holds no model (no '%s*.json')", folder),
                            "a save that failed leaves such a file behind; export again");
  } else if (!*out) {
    status =
        ait_error(AIT_CODE_NOT_FOUND, "the archive holds no model '%s', but %s", wanted ? wanted : "", names.data ? names.data : "others");
  } else if (!wanted && count > 1) {
    status = ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the archive holds %zu models: %s", count, names.data ? names.data : ""),
                            "name the one to import");
  }
  ait_text_deinit(&names);
  return status;
}

/* torch 2.8 has one pickle, later releases raw files with a config, which was named differently for a while. */
static ait_status read_table(archive *ar, const char *root, ait_pt2_table table) {
  static const char *const configs[2][2] = {{"_weights_config.json", "_model_param_config.json"},
                                            {"_constants_config.json", "_model_constants_config.json"}};
  const char *folder = ait_arena_printf(&ar->in.arena, "%s%s", root, table == AIT_PT2_WEIGHTS ? "data/weights/" : "data/constants/");
  if (!folder) return AIT_OOM();
  for (int i = 0; i < 2; ++i) {
    const char *path = ait_arena_printf(&ar->in.arena, "%s%s%s", folder, ar->in.model, configs[table][i]);
    const ait_json *config;
    if (!path) return AIT_OOM();
    const ait_zip_member *member = ait_zip_find(&ar->zip, path);
    if (!member) continue;
    AIT_TRY(read_json(ar, member, &config));
    return ait_error_context(ait_pt2_weights_set_config(&ar->in.weights, table, config, folder), "member '%s'", member->name);
  }
  const char *path = ait_arena_printf(&ar->in.arena, "%s%s.pt", folder, ar->in.model);
  if (!path) return AIT_OOM();
  const ait_zip_member *pickle = ait_zip_find(&ar->zip, path);
  return pickle ? ait_pt2_weights_set_pickle(&ar->in.weights, table, pickle) : AIT_OK;
}

static ait_status read_archive(archive *ar, const char *root, const ait_zip_member *format, const ait_json **out) {
  AIT_TRY(check_text(ar, format, "pt2"));
  const char *version = ait_arena_printf(&ar->in.arena, "%sarchive_version", root);
  const char *order = ait_arena_printf(&ar->in.arena, "%sbyteorder", root);
  if (!version || !order) return AIT_OOM();
  AIT_TRY(check_text(ar, ait_zip_find(&ar->zip, version), "0"));
  AIT_TRY(choose_model(ar, root, &ar->in.model));
  AIT_TRY(check_text(ar, ait_zip_find(&ar->zip, order), "little"));
  const char *path = ait_arena_printf(&ar->in.arena, "%smodels/%s.json", root, ar->in.model);
  if (!path) return AIT_OOM();
  AIT_TRY(read_json(ar, ait_zip_find(&ar->zip, path), out));
  AIT_TRY(read_table(ar, root, AIT_PT2_WEIGHTS));
  return read_table(ar, root, AIT_PT2_CONSTANTS);
}

/* torch 2.6 and 2.7. Early releases named the pickles .json. */
static ait_status read_flat(archive *ar, const ait_zip_member *program, const ait_json **out) {
  static const char *const names[2][2] = {{"serialized_state_dict.pt", "serialized_state_dict.json"},
                                          {"serialized_constants.pt", "serialized_constants.json"}};
  ar->in.model = "model";
  AIT_TRY(read_json(ar, program, out));
  for (int table = 0; table < 2; ++table) {
    const ait_zip_member *member = ait_zip_find(&ar->zip, names[table][0]);
    if (!member) member = ait_zip_find(&ar->zip, names[table][1]);
    if (member) AIT_TRY(ait_pt2_weights_set_pickle(&ar->in.weights, (ait_pt2_table)table, member));
  }
  return AIT_OK;
}

static ait_status decline(ait_file_kind kind) {
  switch (kind) {
    case AIT_FILE_AOTI:
      return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "it is an AOTInductor package: compiled code for one machine, and no program"),
                            "save the program itself with torch.export.save");
    case AIT_FILE_TORCHSCRIPT:
      return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "it is a TorchScript file, no exported program"),
                            "export the model with torch.export.export and torch.export.save");
    case AIT_FILE_CHECKPOINT:
      return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "it is a checkpoint of torch.save: weights without a program"),
                            "export the model with torch.export.export and torch.export.save");
    case AIT_FILE_AIT: return ait_error(AIT_CODE_UNSUPPORTED, "it is an .ait file: load it instead of importing it");
    default: return ait_error(AIT_CODE_INVALID_MODEL, "the archive holds no exported program");
  }
}

static ait_status read_all(archive *ar) {
  const ait_zip_member *format;
  const ait_json *program;
  AIT_TRY(ait_zip_open(&ar->in.arena, ar->data, ar->size, &ar->zip));
  AIT_TRY(ait_pt2_weights_init(&ar->in.weights, &ar->in.arena, ar->mapping, &ar->zip, &ar->budget));
  if (count_roots(&ar->zip, &format) > 1)
    return ait_error(AIT_CODE_INVALID_MODEL, "the archive has two members 'archive_format' in different folders");
  const char *root = format ? root_of(&ar->in.arena, format) : NULL;
  if (format && !root) return AIT_OOM();
  const ait_zip_member *flat = ait_zip_find(&ar->zip, "serialized_exported_program.json");
  ait_file_kind kind = kind_of(&ar->zip, root);
  if (kind != AIT_FILE_PT2) return decline(kind);
  if (root) AIT_TRY(read_archive(ar, root, format, &program));
  else AIT_TRY(read_flat(ar, flat, &program));
  AIT_TRY(ait_graph_create(ar->in.arena.allocator, AIT_DIALECT_RAW, &ar->in.graph));
  ar->in.graph->weights = ait_weight_store_retain(ar->in.weights.store);
  return ait_pt2_read_program(&ar->in, program);
}

static void start(archive *ar, ait_allocator a, const ait_import_options *options) {
  size_t limit = options ? options->memory_limit : 0, size = ar->size, scaled;
  ar->in.options = options;
  ait_arena_init(&ar->in.arena, a);
  if (limit == 0 && (ait_mul_overflows(size, (size_t)MEMORY_RATIO, &scaled) || ait_add_overflows(scaled, (size_t)MEMORY_FREE, &limit)))
    limit = SIZE_MAX;
  ar->in.arena.limit_bytes = limit;
  ar->budget = (uint64_t)INFLATE_RATIO * size > INFLATE_FREE ? (uint64_t)INFLATE_RATIO * size : INFLATE_FREE;
  if (ar->budget > limit) ar->budget = limit;
  ait_map_init(&ar->in.dims, a);
  ait_map_init(&ar->in.calls, a);
  ait_map_init(&ar->in.stacks, a);
}

static void finish(archive *ar) {
  if (ar->in.weights.zip) ait_pt2_weights_deinit(&ar->in.weights);
  ait_map_deinit(&ar->in.dims);
  ait_map_deinit(&ar->in.calls);
  ait_map_deinit(&ar->in.stacks);
  ait_arena_deinit(&ar->in.arena);
}

/* The arena's own limit shows as no memory; tell the two apart. */
static ait_status explain_limit(const archive *ar, ait_status status) {
  const ait_arena *arena = &ar->in.arena;
  if (ait_status_code(status) != AIT_CODE_OUT_OF_MEMORY || arena->used_bytes < arena->limit_bytes / 2) return status;
  ait_status_ignore(status);
  return ait_error(AIT_CODE_LIMIT, "reading it needs more than the limit of %zu MiB", arena->limit_bytes >> 20);
}

/* With `missing` only the unknown operators are wanted, and *out becomes NULL. */
static ait_status import_archive(archive *ar, ait_allocator a, const ait_import_options *options, ait_graph **out) {
  start(ar, a, options);
  ait_status status = explain_limit(ar, read_all(ar));
  if (!status && !ar->in.missing) status = ait_graph_verify(ar->in.graph);
  if (status || ar->in.missing) {
    ait_graph_destroy(ar->in.graph);
    ar->in.graph = NULL;
  }
  *out = ar->in.graph;
  finish(ar);
  return status ? ait_error_context(status, "cannot import '%s'", ar->in.path) : AIT_OK;
}

static ait_status import_file(ait_allocator a, const char *path, const ait_import_options *options, ait_missing *missing, ait_graph **out) {
  archive ar = {.in = {.missing = missing, .path = path}};
  *out = NULL;
  ait_status status = ait_file_map_open(a, path, &ar.mapping);
  if (status) return ait_error_context(status, "cannot import '%s'", path);
  ar.data = ait_file_map_data(ar.mapping);
  ar.size = ait_file_map_size(ar.mapping);
  status = import_archive(&ar, a, options, out);
  ait_file_map_release(ar.mapping);
  return status;
}

ait_status ait_import_pt2(ait_allocator a, const char *path, const ait_import_options *options, ait_graph **out) {
  ait_status status = import_file(a, path, options, NULL, out);
  if (ait_status_code(status) != AIT_CODE_UNSUPPORTED) return status;
  ait_missing missing; /* the file is read once more, so that the user hears of all operators at once */
  ait_missing_init(&missing, a);
  ait_status again = ait_import_pt2_operators(a, path, options, &missing);
  if (!again) status = ait_missing_tell(&missing, status);
  ait_status_ignore(again);
  ait_missing_deinit(&missing);
  return status;
}

ait_status ait_import_pt2_operators(ait_allocator a, const char *path, const ait_import_options *options, ait_missing *out) {
  ait_graph *none;
  return import_file(a, path, options, out, &none);
}

ait_status ait_import_pt2_memory(ait_allocator a, const char *name, const void *data, size_t size, const ait_import_options *options,
                                 ait_graph **out) {
  archive ar = {.in = {.path = name}, .data = data, .size = size};
  return import_archive(&ar, a, options, out);
}

ait_file_kind ait_pt2_kind(ait_allocator a, const uint8_t *data, size_t size) {
  ait_arena arena;
  ait_zip zip;
  ait_file_kind kind = AIT_FILE_PT2; /* of a damaged zip: the importer says what is wrong with it */
  ait_arena_init(&arena, a);
  arena.limit_bytes = MEMORY_FREE;
  ait_status status = ait_zip_open(&arena, data, size, &zip);
  if (!status) {
    const ait_zip_member *format;
    count_roots(&zip, &format);
    kind = kind_of(&zip, format ? root_of(&arena, format) : NULL);
  }
  ait_status_ignore(status);
  ait_arena_deinit(&arena);
  return kind;
}
