/* Names of the leaves of arguments and results, from the pytree specs of the program's call signature. */
#include "import/pt2/pt2.h"

enum { TREE_DEPTH = 64, LEAF_LIMIT = 1 << 20 };

typedef struct walk {
  ait_arena *arena;
  ait_pt2_leaf *leaves;
  size_t count, capacity;
  bool understood;
} walk;

static ait_status add_leaf(walk *w, const char *name, const char *path) {
  if (w->count >= LEAF_LIMIT) {
    w->understood = false;
    return AIT_OK;
  }
  AIT_TRY(ait_grow(w->arena->allocator, (void **)&w->leaves, &w->capacity, w->count + 1, sizeof *w->leaves));
  w->leaves[w->count++] = (ait_pt2_leaf){.name = name, .path = path};
  return AIT_OK;
}

/* Keys of a dict-like node: its context is a JSON text of them. NULL when there are none. */
static ait_status keys_of(walk *w, const ait_json *node, const ait_json *children, const ait_json **out) {
  const char *context = ait_json_get_string(node, "context");
  *out = NULL;
  if (!context || *context != '[') return AIT_OK;
  const ait_json *keys;
  ait_status status = ait_json_parse(w->arena, context, strlen(context), &keys);
  if (ait_status_code(status) == AIT_CODE_OUT_OF_MEMORY) return status;
  bool parsed = !status;
  ait_status_ignore(status);
  if (!parsed || keys->kind != AIT_JSON_ARRAY || keys->count != children->count) return AIT_OK;
  for (uint32_t i = 0; i < keys->count; ++i) {
    if (keys->as.items[i].kind != AIT_JSON_STRING) return AIT_OK;
  }
  *out = keys;
  return AIT_OK;
}

/* Containers whose children's names follow from the spec. Of others (dataclasses, named tuples) only the children's order is known. */
static bool is_plain(const char *type) {
  static const char *const plain[] = {"builtins.tuple",
                                      "builtins.list",
                                      "builtins.dict",
                                      "collections.OrderedDict",
                                      "collections.defaultdict",
                                      "collections.deque",
                                      "torch.fx.immutable_collections.immutable_list",
                                      "torch.fx.immutable_collections.immutable_dict"};
  for (size_t i = 0; i < AIT_COUNT(plain); ++i) {
    if (strcmp(type, plain[i]) == 0) return true;
  }
  return false;
}

static ait_status walk_node(walk *w, const ait_json *node, const char *name, const char *path, int depth) {
  const ait_json *children = ait_json_get_kind(node, "children_spec", AIT_JSON_ARRAY), *keys;
  if (depth > TREE_DEPTH || !node || node->kind != AIT_JSON_OBJECT) {
    w->understood = false;
    return AIT_OK;
  }
  const char *type = ait_json_get_string(node, "type");
  if (!type) return add_leaf(w, name, path);
  if (!children) return AIT_OK;
  if (!is_plain(type)) path = "";
  AIT_TRY(keys_of(w, node, children, &keys));
  const char *joint = *name ? "_" : "";
  for (uint32_t i = 0; i < children->count && w->understood; ++i) {
    const char *key = keys ? keys->as.items[i].as.string : NULL;
    const char *child =
        key ? ait_arena_printf(w->arena, "%s%s%s", name, joint, key) : ait_arena_printf(w->arena, "%s%s%u", name, joint, (unsigned)i);
    const char *child_path = !*path ? ""
                             : key  ? ait_arena_printf(w->arena, "%s['%s']", path, key)
                                    : ait_arena_printf(w->arena, "%s[%u]", path, (unsigned)i);
    if (!child || !child_path) return AIT_OOM();
    AIT_TRY(walk_node(w, &children->as.items[i], child, child_path, depth + 1));
  }
  return AIT_OK;
}

/* The spec is a JSON text in the JSON: "[1, node]". NULL when it is absent or no such thing. */
static ait_status read_spec(ait_arena *arena, const ait_json *signature, const char *key, const ait_json **out) {
  const char *text = ait_json_get_string(signature, key);
  const ait_json *spec = NULL;
  *out = NULL;
  if (!text) return AIT_OK;
  ait_status status = ait_json_parse(arena, text, strlen(text), &spec);
  if (status) return ait_error_context(status, "%s", key);
  if (spec->kind == AIT_JSON_ARRAY && spec->count == 2) *out = &spec->as.items[1];
  return AIT_OK;
}

static ait_status finish(walk *w, ait_status status, ait_pt2_leaf **out, uint32_t *out_count) {
  *out = NULL;
  *out_count = 0;
  if (!status && w->understood && w->count) {
    *out = AIT_ARENA_ARRAY(w->arena, ait_pt2_leaf, w->count);
    if (*out) memcpy(*out, w->leaves, w->count * sizeof **out);
    else status = AIT_OOM();
    *out_count = (uint32_t)w->count;
  }
  ait_free(w->arena->allocator, w->leaves, w->capacity * sizeof *w->leaves);
  return status;
}

static const ait_json *child_of(const ait_json *node, uint32_t index) {
  const ait_json *children = ait_json_get_kind(node, "children_spec", AIT_JSON_ARRAY);
  return children && index < children->count ? &children->as.items[index] : NULL;
}

/* tuple(tuple(args), dict(kwargs)); the names of positional arguments stand apart. */
static ait_status walk_inputs(walk *w, const ait_json *spec, const ait_json *names) {
  const ait_json *positional = ait_json_get_kind(child_of(spec, 0), "children_spec", AIT_JSON_ARRAY);
  for (uint32_t i = 0; positional && i < positional->count; ++i) {
    bool named = names && i < names->count && names->as.items[i].kind == AIT_JSON_STRING;
    const char *name = named ? names->as.items[i].as.string : ait_arena_printf(w->arena, "args_%u", (unsigned)i);
    const char *path = name ? ait_arena_printf(w->arena, "L['%s']", name) : NULL;
    if (!path) return AIT_OOM();
    AIT_TRY(walk_node(w, &positional->as.items[i], name, path, 0));
  }
  const ait_json *keywords = child_of(spec, 1);
  return keywords ? walk_node(w, keywords, "", "L", 0) : AIT_OK;
}

ait_status ait_pt2_input_leaves(ait_arena *arena, const ait_json *signature, ait_pt2_leaf **out, uint32_t *out_count) {
  walk w = {.arena = arena, .understood = true};
  const ait_json *spec;
  ait_status status = read_spec(arena, signature, "in_spec", &spec);
  if (!status && spec) status = walk_inputs(&w, spec, ait_json_get_kind(signature, "forward_arg_names", AIT_JSON_ARRAY));
  return finish(&w, status, out, out_count);
}

ait_status ait_pt2_output_leaves(ait_arena *arena, const ait_json *signature, ait_pt2_leaf **out, uint32_t *out_count) {
  walk w = {.arena = arena, .understood = true};
  const ait_json *spec;
  ait_status status = read_spec(arena, signature, "out_spec", &spec);
  if (!status && spec) status = walk_node(&w, spec, "", "", 0);
  if (!status) status = finish(&w, AIT_OK, out, out_count);
  else status = finish(&w, status, out, out_count);
  for (uint32_t i = 0; !status && i < *out_count; ++i) {
    ait_pt2_leaf *leaf = &(*out)[i];
    if (!*leaf->name) leaf->name = "output";
    else if (leaf->name[0] >= '0' && leaf->name[0] <= '9') leaf->name = ait_arena_printf(arena, "output_%s", leaf->name);
    if (!leaf->name) status = AIT_OOM();
  }
  return status;
}
