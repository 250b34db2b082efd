/* The nn.Module tree: names from module_call_graph, classes and calls from the nodes' nn_module_stack. */
#include "import/pt2/pt2.h"

ait_status ait_pt2_add_modules(ait_pt2_import *in, const ait_json *calls) {
  uint32_t index;
  AIT_TRY(ait_graph_add_module(in->graph, "", "", &index));
  for (uint32_t i = 0; calls && calls->kind == AIT_JSON_ARRAY && i < calls->count; ++i) {
    const char *name = ait_json_get_string(&calls->as.items[i], "fqn");
    if (name) AIT_TRY(ait_graph_add_module(in->graph, name, "", &index));
  }
  return AIT_OK;
}

/* The next comma outside of brackets and quotes, or the end. Keys hold them: L['self'].layers[0]. */
static const char *field_end(const char *p, const char *end) {
  int depth = 0;
  char quote = 0;
  for (; p < end; ++p) {
    if (quote) {
      if (*p == quote) quote = 0;
    } else if (*p == '\'' || *p == '"') {
      quote = *p;
    } else if (*p == '[' || *p == '(') {
      ++depth;
    } else if (*p == ']' || *p == ')') {
      --depth;
    } else if (*p == ',' && depth <= 0) {
      break;
    }
  }
  return p;
}

/* "L['self'].blocks[0].ln" (torch 2.6) -> "blocks.0.ln" */
static const char *plain_path(ait_arena *arena, const char *path, size_t length) {
  const char *end = path + length;
  if (length > 2 && path[0] == 'L' && path[1] == '[') {
    const char *close = memchr(path, ']', length);
    path = close ? close + 1 : path;
    if (path < end && *path == '.') ++path;
  }
  char *copy = ait_arena_strdup(arena, path, (size_t)(end - path));
  if (!copy) return NULL;
  char *out = copy;
  for (const char *p = copy; *p; ++p) {
    if (*p == '[' && out > copy) *out++ = '.';
    else if (*p != '[' && *p != ']' && *p != '\'' && *p != '"') *out++ = *p;
  }
  *out = 0;
  return copy;
}

static ait_status fill_module(ait_pt2_import *in, const char *path, const char *type, uint32_t *out) {
  AIT_TRY(ait_graph_add_module(in->graph, path, type, out));
  ait_module_info *module = &in->graph->modules[*out];
  if (!module->type || !*module->type) AIT_TRY(ait_graph_strdup(in->graph, type, &module->type));
  return AIT_OK;
}

/* A call instance is a key not seen before: the second call of a module has "@1" at its end. */
static ait_status count_call(ait_pt2_import *in, const char *key, size_t length, uint32_t module) {
  const char *copy = ait_arena_strdup(&in->arena, key, length);
  if (!copy) return AIT_OOM();
  if (ait_map_get(&in->calls, copy, NULL)) return AIT_OK;
  ++in->graph->modules[module].calls;
  return ait_map_put(&in->calls, copy, NULL);
}

/* One "key,path,class" of a stack. */
static ait_status read_frame(ait_pt2_import *in, const char *p, const char *end, uint32_t *out) {
  static const char dummy[] = "_empty_nn_module_stack_from_metadata_hook";
  const char *key = p, *key_end = field_end(p, end);
  if (key_end == end) return AIT_OK;
  const char *path = key_end + 1, *path_end = field_end(path, end);
  if ((size_t)(key_end - key) == strlen(dummy) && strncmp(key, dummy, strlen(dummy)) == 0) return AIT_OK;
  const char *type = path_end < end ? path_end + 1 : end;
  const char *path_text = plain_path(&in->arena, path, (size_t)(path_end - path));
  const char *type_text = ait_arena_strdup(&in->arena, type, (size_t)(end - type));
  if (!path_text || !type_text) return AIT_OOM();
  AIT_TRY(fill_module(in, path_text, type_text, out));
  return count_call(in, key, (size_t)(key_end - key), *out);
}

static ait_status read_stack(ait_pt2_import *in, const char *stack, uint32_t *out) {
  for (const char *p = stack; *p;) {
    const char *end = p + strcspn(p, ";");
    AIT_TRY(read_frame(in, p, end, out));
    p = *end ? end + 1 : end;
  }
  return AIT_OK;
}

ait_status ait_pt2_module_of(ait_pt2_import *in, const ait_json *metadata, uint32_t *out) {
  const char *stack = ait_json_get_string(metadata, "nn_module_stack");
  void *known;
  *out = AIT_NO_INDEX;
  if (!stack) return AIT_OK;
  if (ait_map_get(&in->stacks, stack, &known)) {
    *out = (uint32_t)(uintptr_t)known;
    return AIT_OK;
  }
  AIT_TRY(read_stack(in, stack, out));
  return ait_map_put(&in->stacks, stack, (void *)(uintptr_t)*out);
}
