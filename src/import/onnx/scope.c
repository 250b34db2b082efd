/* Names and what they stand for: values of the graph, initializers that nothing has asked for yet, names of the graphs around. */
#include "import/onnx/onnx.h"

#include <stdio.h>

void ox_frame_init(ox_frame *f, ait_graph *g, ox_import *in) {
  *f = (ox_frame){.graph = g};
  ait_map_init(&f->captured, in->arena.allocator);
}

void ox_frame_deinit(ox_frame *f) {
  ait_allocator a = f->captured.allocator;
  ait_free(a, f->known, f->known_capacity * sizeof *f->known);
  ait_free(a, f->outer_values, f->capture_capacity * sizeof *f->outer_values);
  ait_map_deinit(&f->captured);
}

void ox_scope_init(ox_scope *s, ox_import *in, ox_frame *frame, ox_scope *outer) {
  *s = (ox_scope){.in = in, .frame = frame, .outer = outer, .prefix = "", .module = AIT_NO_INDEX};
  if (outer) {
    s->opsets = outer->opsets;
    s->opset_count = outer->opset_count;
    s->prefix = outer->prefix;
    s->module = outer->module;
    s->depth = outer->depth + 1;
  }
  ait_map_init(&s->values, in->arena.allocator);
  ait_map_init(&s->initializers, in->arena.allocator);
}

void ox_scope_deinit(ox_scope *s) {
  ait_map_deinit(&s->values);
  ait_map_deinit(&s->initializers);
}

ait_status ox_define(ox_scope *s, const char *name, uint32_t value) {
  if (ait_map_get(&s->values, name, NULL) || ait_map_get(&s->initializers, name, NULL))
    return ait_error(AIT_CODE_INVALID_MODEL, "'%s' is defined twice", name);
  return ait_map_put(&s->values, name, (void *)((uintptr_t)value + 1));
}

static ox_scope *root_scope(ox_scope *s) {
  while (s->frame->captures_for) s = s->frame->captures_for;
  return s;
}

/* A value of the surrounding graph as an input of this one. */
ait_status ox_capture(ox_scope *s, uint32_t outer_value, uint32_t *out) {
  ox_frame *f = s->frame;
  ox_scope *around = f->captures_for;
  ait_allocator a = s->in->arena.allocator;
  char key[16];
  void *found;
  snprintf(key, sizeof key, "%u", (unsigned)outer_value);
  if (ait_map_get(&f->captured, key, &found)) {
    *out = (uint32_t)((uintptr_t)found - 1);
    return AIT_OK;
  }
  const ait_value_info *info = &around->frame->graph->values[outer_value];
  AIT_TRY(ait_graph_add_value(f->graph, info->name, info, out));
  ait_region_input input = {
      .value = *out, .kind = AIT_INPUT_USER, .name = f->graph->values[*out].name, .user_index = (int32_t)f->graph->input_count};
  AIT_TRY(ait_graph_add_input(f->graph, &input));
  void *grown = f->outer_values;
  ait_status status = ait_grow(a, &grown, &f->capture_capacity, f->capture_count + 1, sizeof *f->outer_values);
  f->outer_values = grown;
  AIT_TRY(status);
  f->outer_values[f->capture_count++] = outer_value;
  const ox_known *known = ox_get_known(around, outer_value);
  if (known) AIT_TRY(ox_set_known(s, *out, known));
  return ait_map_put(&f->captured, key, (void *)((uintptr_t)*out + 1));
}

/* A value of the root graph, brought down into the scope's graph. */
ait_status ox_bring_down(ox_scope *s, uint32_t root_value, uint32_t *out) {
  *out = root_value;
  if (!s->frame->captures_for) return AIT_OK;
  AIT_TRY(ox_bring_down(s->frame->captures_for, root_value, out));
  return ox_capture(s, *out, out);
}

static ait_status ask_for_initializer(ox_scope *s, const char *name, const Onnx__TensorProto *t, uint32_t *out) {
  ait_dtype dtype = ox_dtype(t->data_type);
  AIT_TRY(
      ait_error_context(ox_add_weight(root_scope(s), name, t, ait_dtype_is_float(dtype) ? AIT_INPUT_PARAMETER : AIT_INPUT_CONSTANT, out),
                        "initializer '%s'", name));
  AIT_TRY(ox_bring_down(s, *out, out));
  return ait_map_put(&s->values, name, (void *)((uintptr_t)*out + 1));
}

ait_status ox_find(ox_scope *s, const char *name, uint32_t *out) {
  void *found;
  *out = AIT_NO_INDEX;
  if (ait_map_get(&s->values, name, &found)) {
    *out = (uint32_t)((uintptr_t)found - 1);
    return AIT_OK;
  }
  if (ait_map_get(&s->initializers, name, &found)) return ask_for_initializer(s, name, found, out);
  if (!s->outer) return AIT_OK;
  AIT_TRY(ox_find(s->outer, name, out));
  if (*out != AIT_NO_INDEX && s->outer->frame != s->frame) AIT_TRY(ox_capture(s, *out, out));
  return AIT_OK;
}

ait_status ox_set_known(ox_scope *s, uint32_t value, const ox_known *known) {
  ox_frame *f = s->frame;
  if (value >= f->known_capacity) {
    size_t old = f->known_capacity;
    void *grown = f->known;
    ait_status status = ait_grow(s->in->arena.allocator, &grown, &f->known_capacity, (size_t)value + 1, sizeof *f->known);
    f->known = grown;
    AIT_TRY(status);
    memset(f->known + old, 0, (f->known_capacity - old) * sizeof *f->known);
  }
  ox_known *copy = AIT_ARENA_NEW(&s->in->arena, ox_known);
  if (!copy) return AIT_OOM();
  *copy = *known;
  if (known->has_dims) {
    ait_dim *dims = AIT_ARENA_ARRAY(&s->in->arena, ait_dim, (size_t)known->count + 1);
    if (!dims) return AIT_OOM();
    if (known->count) memcpy(dims, known->dims, known->count * sizeof *dims);
    copy->dims = dims;
  }
  f->known[value] = copy;
  return AIT_OK;
}

const ox_known *ox_get_known(const ox_scope *s, uint32_t value) { return value < s->frame->known_capacity ? s->frame->known[value] : NULL; }

bool ox_is_absent(const ox_scope *s, const char *name) {
  void *found;
  for (; s; s = s->outer)
    if (ait_map_get(&s->values, name, &found)) return (uint32_t)((uintptr_t)found - 1) == AIT_NO_INDEX;
  return false;
}
