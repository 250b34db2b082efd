/* The graph: values, nodes, names. Everything lives in the root graph's arena. */
#include "ir/ir_internal.h"

#include <stdio.h>

/* ---- names -----------------------------------------------------------------------------------------------------------------------*/

typedef struct name_slot {
  const char *name; /* NULL: free */
  uint64_t hash;
  uint32_t value;
  uint32_t next_suffix; /* for the next value that wants this name */
} name_slot;

struct ait_name_index {
  name_slot *slots;
  size_t count, slot_count; /* slot_count is a power of two */
};

enum { FIRST_SLOTS = 64, SUFFIX_ROOM = 12 };

static name_slot *find_slot(const struct ait_name_index *index, const char *name, uint64_t hash) {
  size_t mask = index->slot_count - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    name_slot *slot = &index->slots[i];
    if (!slot->name || (slot->hash == hash && strcmp(slot->name, name) == 0)) return slot;
  }
}

/* Makes room for one more. */
static ait_status reserve_name(ait_graph *g, struct ait_name_index *index) {
  if ((index->count + 1) * 2 <= index->slot_count) return AIT_OK;
  struct ait_name_index larger = {.count = index->count, .slot_count = index->slot_count ? index->slot_count * 2 : FIRST_SLOTS};
  larger.slots = AIT_ARENA_ARRAY(g->arena, name_slot, larger.slot_count);
  if (!larger.slots) return AIT_OOM();
  memset(larger.slots, 0, larger.slot_count * sizeof *larger.slots);
  for (size_t i = 0; i < index->slot_count; ++i) {
    const name_slot *slot = &index->slots[i];
    if (slot->name) *find_slot(&larger, slot->name, slot->hash) = *slot;
  }
  *index = larger;
  return AIT_OK;
}

static void insert_name(struct ait_name_index *index, const char *name, uint32_t value) {
  uint64_t hash = ait_hash(name, strlen(name), 0);
  *find_slot(index, name, hash) = (name_slot){.name = name, .hash = hash, .value = value, .next_suffix = 1};
  ++index->count;
}

static uint32_t find_name(const struct ait_name_index *index, const char *name) {
  if (index->slot_count == 0) return AIT_NO_INDEX;
  const name_slot *slot = find_slot(index, name, ait_hash(name, strlen(name), 0));
  return slot->name ? slot->value : AIT_NO_INDEX;
}

/* A copy in the arena of `wanted`, or of the first of wanted_1, wanted_2, … that is free. */
static ait_status unique_name(ait_graph *g, const char *wanted, const char **out) {
  name_slot *slot = find_slot(g->names, wanted, ait_hash(wanted, strlen(wanted), 0));
  size_t length = strlen(wanted);
  char *name = ait_arena_zero(g->arena, length + SUFFIX_ROOM, 1);
  if (!name) return AIT_OOM();
  memcpy(name, wanted, length);
  while (slot->name) {
    int digits = snprintf(name + length, SUFFIX_ROOM, "_%u", (unsigned)slot->next_suffix++);
    name_slot *other = find_slot(g->names, name, ait_hash(name, length + (size_t)digits, 0));
    if (!other->name) break;
  }
  *out = name;
  return AIT_OK;
}

uint32_t ait_graph_find_value(const ait_graph *g, const char *name) { return find_name(g->names, name); }

/* ---- graphs ----------------------------------------------------------------------------------------------------------------------*/

typedef struct root_block {
  ait_graph graph;
  ait_arena arena;
} root_block;

ait_status ait_graph_create(ait_allocator a, ait_dialect dialect, ait_graph **out) {
  root_block *block = ait_alloc_zero(a, sizeof *block, _Alignof(root_block));
  if (!block) return AIT_OOM();
  ait_graph *g = &block->graph;
  ait_arena_init(&block->arena, a);
  g->root = g;
  g->allocator = a;
  g->arena = &block->arena;
  g->dialect = dialect;
  g->name = g->producer = "";
  g->names = AIT_ARENA_NEW(g->arena, struct ait_name_index);
  g->module_names = AIT_ARENA_NEW(g->arena, struct ait_name_index);
  g->symbol_names = AIT_ARENA_NEW(g->arena, struct ait_name_index);
  ait_status status = g->names && g->module_names && g->symbol_names ? ait_dims_create(g) : AIT_OOM();
  if (status) {
    ait_graph_destroy(g);
    return status;
  }
  *out = g;
  return AIT_OK;
}

ait_status ait_graph_create_nested(ait_graph *parent, ait_graph **out) {
  ait_graph *g = AIT_ARENA_NEW(parent->arena, ait_graph);
  struct ait_name_index *names = AIT_ARENA_NEW(parent->arena, struct ait_name_index);
  if (!g || !names) return AIT_OOM();
  g->root = parent->root;
  g->parent = parent;
  g->allocator = parent->allocator;
  g->arena = parent->arena;
  g->dialect = parent->dialect;
  g->name = g->producer = "";
  g->names = names;
  *out = g;
  return AIT_OK;
}

void ait_graph_destroy(ait_graph *graph) {
  if (!graph) return;
  root_block *block = (root_block *)graph;
  ait_weight_store_release(graph->weights);
  ait_allocator a = graph->allocator;
  ait_arena_deinit(&block->arena);
  ait_free(a, block, sizeof *block);
}

ait_status ait_graph_grow(ait_graph *g, void **data, size_t *capacity, size_t needed, size_t element_size) {
  if (needed <= *capacity) return AIT_OK;
  size_t count = *capacity ? *capacity : 8, bytes;
  while (count < needed) {
    if (ait_mul_overflows(count, (size_t)2, &count)) return AIT_OOM();
  }
  if (ait_mul_overflows(count, element_size, &bytes)) return AIT_OOM();
  void *larger = ait_arena_alloc(g->arena, bytes, 16);
  if (!larger) return AIT_OOM();
  if (*capacity) memcpy(larger, *data, *capacity * element_size);
  *data = larger;
  *capacity = count;
  return AIT_OK;
}

ait_status ait_graph_strdup(ait_graph *g, const char *text, const char **out) {
  const char *copy = text ? ait_arena_strdup(g->arena, text, strlen(text)) : NULL;
  if (text && !copy) return AIT_OOM();
  *out = copy;
  return AIT_OK;
}

ait_status ait_graph_add_module(ait_graph *g, const char *path, const char *type, uint32_t *out) {
  ait_graph *root = g->root;
  *out = find_name(root->module_names, path);
  if (*out != AIT_NO_INDEX) return AIT_OK;
  ait_module_info info = {0};
  AIT_TRY(reserve_name(root, root->module_names));
  AIT_TRY(ait_graph_grow(root, (void **)&root->modules, &root->module_capacity, root->module_count + 1, sizeof info));
  AIT_TRY(ait_graph_strdup(root, path, &info.path));
  AIT_TRY(ait_graph_strdup(root, type ? type : "", &info.type));
  *out = (uint32_t)root->module_count;
  root->modules[root->module_count++] = info;
  insert_name(root->module_names, info.path, *out);
  return AIT_OK;
}

uint32_t ait_graph_find_symbol(const ait_graph *g, const char *name) { return find_name(g->root->symbol_names, name); }

ait_status ait_graph_add_symbol(ait_graph *g, const ait_symbol *symbol) {
  ait_graph *root = g->root;
  ait_symbol copy = *symbol;
  if (root->symbol_count >= AIT_SYMBOL_LIMIT) return ait_error(AIT_CODE_LIMIT, "more than %d symbolic sizes", AIT_SYMBOL_LIMIT);
  AIT_TRY(reserve_name(root, root->symbol_names));
  AIT_TRY(ait_graph_grow(root, (void **)&root->symbols, &root->symbol_capacity, root->symbol_count + 1, sizeof copy));
  AIT_TRY(ait_graph_strdup(root, symbol->name, &copy.name));
  insert_name(root->symbol_names, copy.name, (uint32_t)root->symbol_count);
  root->symbols[root->symbol_count++] = copy;
  return AIT_OK;
}

ait_status ait_graph_add_guard(ait_graph *g, ait_guard_op op, ait_dim left, ait_dim right, const char *text) {
  ait_graph *root = g->root;
  ait_region_guard guard = {.op = op, .left = left, .right = right};
  AIT_TRY(ait_graph_strdup(root, text ? text : "", &guard.text));
  AIT_TRY(ait_graph_grow(root, (void **)&root->guards, &root->guard_capacity, root->guard_count + 1, sizeof guard));
  root->guards[root->guard_count++] = guard;
  return AIT_OK;
}

/* ---- values ----------------------------------------------------------------------------------------------------------------------*/

static ait_status copy_metadata(ait_graph *g, ait_value_info *v) {
  if (v->type != AIT_TYPE_INT || v->scalar == 0) v->scalar = AIT_NO_INDEX; /* dim 0 is never made: what was not set is not known */
  if (v->type == AIT_TYPE_TENSOR && v->rank > 0) {
    ait_dim *shape = AIT_ARENA_ARRAY(g->arena, ait_dim, (size_t)v->rank);
    if (!shape) return AIT_OOM();
    memcpy(shape, v->shape, (size_t)v->rank * sizeof *shape);
    v->shape = shape;
  } else {
    v->shape = NULL;
  }
  if (v->type != AIT_TYPE_TENSOR_LIST || !v->elements || v->list_count == 0) {
    v->elements = NULL;
    return AIT_OK;
  }
  ait_value_info *elements = AIT_ARENA_ARRAY(g->arena, ait_value_info, v->list_count);
  if (!elements) return AIT_OOM();
  for (uint32_t i = 0; i < v->list_count; ++i) {
    elements[i] = v->elements[i];
    elements[i].type = AIT_TYPE_TENSOR; /* no lists of lists */
    elements[i].name = NULL;
    elements[i].def = NULL;
    AIT_TRY(copy_metadata(g, &elements[i]));
  }
  v->elements = elements;
  return AIT_OK;
}

ait_status ait_graph_add_value(ait_graph *g, const char *name, const ait_value_info *like, uint32_t *out) {
  ait_value_info v = *like;
  if (g->value_count >= AIT_NO_INDEX - 1) return ait_error(AIT_CODE_LIMIT, "graph has too many values");
  AIT_TRY(ait_graph_grow(g, (void **)&g->values, &g->value_capacity, g->value_count + 1, sizeof v));
  AIT_TRY(reserve_name(g, g->names));
  AIT_TRY(copy_metadata(g, &v));
  AIT_TRY(unique_name(g, name && *name ? name : "v", &v.name));
  v.def = NULL;
  v.def_index = 0;
  uint32_t id = (uint32_t)g->value_count++;
  g->values[id] = v;
  insert_name(g->names, v.name, id);
  *out = id;
  return AIT_OK;
}

ait_status ait_graph_set_metadata(ait_graph *g, uint32_t value, const ait_value_info *like) {
  ait_value_info v = *like;
  AIT_TRY(copy_metadata(g, &v));
  ait_value_info *old = &g->values[value];
  v.name = old->name;
  v.def = old->def;
  v.def_index = old->def_index;
  *old = v;
  return AIT_OK;
}

/* ---- arguments -------------------------------------------------------------------------------------------------------------------*/

static ait_status copy_arg(ait_graph *g, const ait_arg *arg, int depth, ait_arg *out) {
  *out = *arg;
  if (arg->kind == AIT_ARG_STRING) {
    out->as.string = ait_arena_strdup(g->arena, arg->as.string, arg->count);
    return out->as.string ? AIT_OK : AIT_OOM();
  }
  if (arg->kind != AIT_ARG_LIST) return AIT_OK;
  if (depth == 0) return ait_error(AIT_CODE_LIMIT, "argument lists nest deeper than %d", AIT_ARG_DEPTH_LIMIT);
  out->as.list = NULL;
  if (arg->count == 0) return AIT_OK;
  ait_arg *items = AIT_ARENA_ARRAY(g->arena, ait_arg, arg->count);
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(copy_arg(g, &arg->as.list[i], depth - 1, &items[i]));
  out->as.list = items;
  return AIT_OK;
}

ait_status ait_graph_copy_arg(ait_graph *g, const ait_arg *arg, ait_arg *out) { return copy_arg(g, arg, AIT_ARG_DEPTH_LIMIT, out); }

static bool arg_equal(const ait_arg *a, const ait_arg *b, int depth) {
  if (a->kind != b->kind || depth == 0) return false;
  switch (a->kind) {
    case AIT_ARG_NONE: return true;
    case AIT_ARG_VALUE: return a->as.value == b->as.value;
    case AIT_ARG_INT:
    case AIT_ARG_DTYPE: return a->as.i == b->as.i;
    case AIT_ARG_FLOAT: return memcmp(&a->as.f, &b->as.f, sizeof a->as.f) == 0;
    case AIT_ARG_BOOL: return a->as.b == b->as.b;
    case AIT_ARG_STRING: return a->count == b->count && memcmp(a->as.string, b->as.string, a->count) == 0;
    case AIT_ARG_COMPLEX: return memcmp(a->as.complex, b->as.complex, sizeof a->as.complex) == 0;
    case AIT_ARG_DIM: return a->as.dim == b->as.dim;
    case AIT_ARG_GRAPH: return a->as.graph == b->as.graph;
    case AIT_ARG_LIST:
      if (a->count != b->count) return false;
      for (uint32_t i = 0; i < a->count; ++i) {
        if (!arg_equal(&a->as.list[i], &b->as.list[i], depth - 1)) return false;
      }
      return true;
  }
  return false;
}

bool ait_arg_equal(const ait_arg *a, const ait_arg *b) { return arg_equal(a, b, AIT_ARG_DEPTH_LIMIT + 1); }

static void each_value(const ait_arg *arg, int depth, void (*fn)(void *ctx, uint32_t value), void *ctx) {
  if (arg->kind == AIT_ARG_VALUE) fn(ctx, arg->as.value);
  if (arg->kind != AIT_ARG_LIST || depth == 0) return;
  for (uint32_t i = 0; i < arg->count; ++i) each_value(&arg->as.list[i], depth - 1, fn, ctx);
}

void ait_node_each_operand(const ait_node *n, void (*fn)(void *ctx, uint32_t value), void *ctx) {
  for (uint32_t i = 0; i < n->arg_count; ++i) each_value(&n->args[i], AIT_ARG_DEPTH_LIMIT, fn, ctx);
}

/* ---- nodes -----------------------------------------------------------------------------------------------------------------------*/

static void link_node(ait_graph *g, ait_node *n, ait_node *before) {
  n->next = before;
  n->prev = before ? before->prev : g->last;
  if (n->prev) n->prev->next = n;
  else g->first = n;
  if (before) before->prev = n;
  else g->last = n;
  ++g->node_count;
}

static void unlink_node(ait_graph *g, ait_node *n) {
  if (n->prev) n->prev->next = n->next;
  else g->first = n->next;
  if (n->next) n->next->prev = n->prev;
  else g->last = n->prev;
  n->prev = n->next = NULL;
  --g->node_count;
}

static ait_status check_results(const ait_graph *g, const ait_op *op, const char *name, const uint32_t *results, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (results[i] == AIT_NO_INDEX) continue;
    if (results[i] >= g->value_count)
      return ait_error(AIT_CODE_INVALID_MODEL, "node '%s' (%s): result %u is no value", name, op->name, (unsigned)i);
    if (g->values[results[i]].def)
      return ait_error(AIT_CODE_INVALID_MODEL, "node '%s' (%s): value '%s' is defined twice", name, op->name, g->values[results[i]].name);
    for (uint32_t k = 0; k < i; ++k) {
      if (results[k] == results[i])
        return ait_error(AIT_CODE_INVALID_MODEL, "node '%s' (%s): value '%s' is two results", name, op->name, g->values[results[i]].name);
    }
  }
  return AIT_OK;
}

/* Given arguments, then the defaults of the rest. */
static ait_status copy_args(ait_graph *g, ait_node *n, const ait_arg *args, uint32_t count) {
  if (n->arg_count == 0) return AIT_OK;
  n->args = AIT_ARENA_ARRAY(g->arena, ait_arg, n->arg_count);
  if (!n->args) return AIT_OOM();
  for (uint32_t i = 0; i < n->arg_count; ++i) {
    AIT_TRY(ait_graph_copy_arg(g, i < count ? &args[i] : &n->op->params[i].default_value, &n->args[i]));
  }
  return AIT_OK;
}

ait_status ait_graph_add_node(ait_graph *g, ait_node *before, const ait_op *op, const char *op_name, uint32_t flags, const ait_arg *args,
                              uint32_t arg_count, const uint32_t *results, uint32_t result_count, const char *name, uint32_t module,
                              ait_node **out) {
  if (!name) name = "";
  if (!op->variadic && arg_count != op->param_count)
    return ait_error(AIT_CODE_INVALID_MODEL, "node '%s' (%s): %u arguments given, %u wanted", name, op->name, (unsigned)arg_count,
                     (unsigned)op->param_count);
  AIT_TRY(check_results(g, op, name, results, result_count));
  ait_node *n = AIT_ARENA_NEW(g->arena, ait_node);
  if (!n) return AIT_OOM();
  n->op = op;
  n->op_name = op->name;
  n->flags = flags;
  n->arg_count = arg_count;
  n->result_count = result_count;
  n->module = module;
  n->graph = g;
  if (op_name && strcmp(op_name, op->name) != 0) AIT_TRY(ait_graph_strdup(g, op_name, &n->op_name));
  AIT_TRY(ait_graph_strdup(g, name, &n->name));
  AIT_TRY(copy_args(g, n, args, arg_count));
  n->results = AIT_ARENA_ARRAY(g->arena, uint32_t, result_count ? result_count : 1);
  if (!n->results) return AIT_OOM();
  for (uint32_t i = 0; i < result_count; ++i) {
    n->results[i] = results[i];
    if (results[i] == AIT_NO_INDEX) continue;
    g->values[results[i]].def = n;
    g->values[results[i]].def_index = i;
  }
  link_node(g, n, before);
  if (out) *out = n;
  return AIT_OK;
}

ait_status ait_graph_add_result(ait_graph *g, ait_node *n, uint32_t value) {
  AIT_TRY(check_results(g, n->op, n->name, &value, 1));
  uint32_t *results = AIT_ARENA_ARRAY(g->arena, uint32_t, n->result_count + 1u);
  if (!results) return AIT_OOM();
  memcpy(results, n->results, n->result_count * sizeof *results);
  results[n->result_count] = value;
  g->values[value].def = n;
  g->values[value].def_index = n->result_count++;
  n->results = results;
  return AIT_OK;
}

void ait_graph_remove_node(ait_graph *g, ait_node *n) {
  if (n->removed) return;
  unlink_node(g, n);
  n->removed = true;
  for (uint32_t i = 0; i < n->result_count; ++i) {
    if (n->results[i] != AIT_NO_INDEX && g->values[n->results[i]].def == n) g->values[n->results[i]].def = NULL;
  }
}

void ait_graph_move_node(ait_node *n, ait_node *before) {
  if (n == before) return;
  unlink_node(n->graph, n);
  link_node(n->graph, n, before);
}

/* ---- inputs and outputs ----------------------------------------------------------------------------------------------------------*/

ait_status ait_graph_add_input(ait_graph *g, const ait_region_input *input) {
  ait_region_input copy = *input;
  AIT_TRY(ait_graph_grow(g, (void **)&g->inputs, &g->input_capacity, g->input_count + 1, sizeof copy));
  AIT_TRY(ait_graph_strdup(g, input->name, &copy.name));
  AIT_TRY(ait_graph_copy_arg(g, &input->baked, &copy.baked));
  g->inputs[g->input_count++] = copy;
  return AIT_OK;
}

ait_status ait_graph_add_output(ait_graph *g, const ait_region_output *output) {
  ait_region_output copy = *output;
  AIT_TRY(ait_graph_grow(g, (void **)&g->outputs, &g->output_capacity, g->output_count + 1, sizeof copy));
  AIT_TRY(ait_graph_strdup(g, output->name, &copy.name));
  AIT_TRY(ait_graph_copy_arg(g, &output->arg, &copy.arg));
  g->outputs[g->output_count++] = copy;
  return AIT_OK;
}

/* ---- uses ------------------------------------------------------------------------------------------------------------------------*/

/* Lists are the arena's own copies: changing them in place is safe. */
static void replace_in_arg(ait_arg *arg, int depth, uint32_t old_value, uint32_t new_value) {
  if (arg->kind == AIT_ARG_VALUE && arg->as.value == old_value) arg->as.value = new_value;
  if (arg->kind != AIT_ARG_LIST || depth == 0) return;
  for (uint32_t i = 0; i < arg->count; ++i) replace_in_arg((ait_arg *)&arg->as.list[i], depth - 1, old_value, new_value);
}

void ait_graph_replace_uses(ait_graph *g, uint32_t old_value, uint32_t new_value) {
  for (ait_node *n = g->first; n; n = n->next) {
    for (uint32_t i = 0; i < n->arg_count; ++i) replace_in_arg(&n->args[i], AIT_ARG_DEPTH_LIMIT, old_value, new_value);
  }
  for (size_t i = 0; i < g->output_count; ++i) replace_in_arg(&g->outputs[i].arg, AIT_ARG_DEPTH_LIMIT, old_value, new_value);
}

static void count_use(void *ctx, uint32_t value) { ++((uint32_t *)ctx)[value]; }

ait_status ait_graph_count_uses(const ait_graph *g, ait_allocator a, uint32_t **out) {
  size_t bytes;
  if (ait_mul_overflows(g->value_count, sizeof **out, &bytes)) return AIT_OOM();
  uint32_t *uses = ait_alloc_zero(a, bytes, _Alignof(uint32_t));
  if (!uses) return AIT_OOM();
  for (const ait_node *n = g->first; n; n = n->next) ait_node_each_operand(n, count_use, uses);
  for (size_t i = 0; i < g->output_count; ++i) each_value(&g->outputs[i].arg, AIT_ARG_DEPTH_LIMIT, count_use, uses);
  *out = uses;
  return AIT_OK;
}

/* ---- clone -----------------------------------------------------------------------------------------------------------------------*/

static ait_status clone_body(const ait_graph *from, ait_graph *to, int depth);

/* Replaces nested graphs in a copied argument by clones. */
static ait_status clone_graphs(ait_graph *to, ait_arg *arg, int depth) {
  if (arg->kind == AIT_ARG_LIST) {
    for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(clone_graphs(to, (ait_arg *)&arg->as.list[i], depth));
  }
  if (arg->kind != AIT_ARG_GRAPH) return AIT_OK;
  if (depth == 0) return ait_error(AIT_CODE_LIMIT, "graphs nest deeper than %d", AIT_GRAPH_DEPTH_LIMIT);
  ait_graph *nested;
  AIT_TRY(ait_graph_create_nested(to, &nested));
  AIT_TRY(clone_body(arg->as.graph, nested, depth - 1));
  arg->as.graph = nested;
  return AIT_OK;
}

static ait_status clone_values(const ait_graph *from, ait_graph *to) {
  for (uint32_t i = 0; i < from->value_count; ++i) {
    uint32_t id;
    AIT_TRY(ait_graph_add_value(to, from->values[i].name, &from->values[i], &id));
  }
  return AIT_OK;
}

static ait_status clone_nodes(const ait_graph *from, ait_graph *to, int depth) {
  for (const ait_node *n = from->first; n; n = n->next) {
    ait_node *copy;
    AIT_TRY(ait_graph_add_node(to, NULL, n->op, n->op_name, n->flags, n->args, n->arg_count, n->results, n->result_count, n->name,
                               n->module, &copy));
    for (uint32_t i = 0; i < copy->arg_count; ++i) AIT_TRY(clone_graphs(to, &copy->args[i], depth));
  }
  return AIT_OK;
}

static ait_status clone_body(const ait_graph *from, ait_graph *to, int depth) {
  to->dialect = from->dialect;
  AIT_TRY(ait_graph_strdup(to, from->name, &to->name));
  AIT_TRY(ait_graph_strdup(to, from->producer, &to->producer));
  AIT_TRY(ait_graph_strdup(to, from->program, &to->program));
  AIT_TRY(clone_values(from, to));
  for (size_t i = 0; i < from->input_count; ++i) AIT_TRY(ait_graph_add_input(to, &from->inputs[i]));
  AIT_TRY(clone_nodes(from, to, depth));
  for (size_t i = 0; i < from->output_count; ++i) AIT_TRY(ait_graph_add_output(to, &from->outputs[i]));
  return AIT_OK;
}

static ait_status clone_modules(const ait_graph *from, ait_graph *to) {
  for (size_t i = 0; i < from->module_count; ++i) {
    uint32_t index;
    AIT_TRY(ait_graph_add_module(to, from->modules[i].path, from->modules[i].type, &index));
    to->modules[index].calls = from->modules[i].calls;
  }
  return AIT_OK;
}

static ait_status clone_root(const ait_graph *from, ait_graph *to) {
  for (size_t i = 0; i < from->symbol_count; ++i) AIT_TRY(ait_graph_add_symbol(to, &from->symbols[i]));
  AIT_TRY(ait_dims_clone(to, from));
  AIT_TRY(clone_modules(from, to));
  for (size_t i = 0; i < from->guard_count; ++i) {
    const ait_region_guard *guard = &from->guards[i];
    AIT_TRY(ait_graph_add_guard(to, guard->op, guard->left, guard->right, guard->text));
  }
  AIT_TRY(ait_graph_set_input_spec(to, from->input_spec, from->user_input_count));
  if (from->weights) to->weights = ait_weight_store_retain(from->weights);
  return clone_body(from, to, AIT_GRAPH_DEPTH_LIMIT);
}

ait_status ait_graph_set_input_spec(ait_graph *g, const char *const *names, size_t count) {
  const char **copy = count ? AIT_ARENA_ARRAY(g->arena, const char *, count) : NULL;
  if (count && !copy) return AIT_OOM();
  for (size_t i = 0; i < count; ++i) AIT_TRY(ait_graph_strdup(g, names ? names[i] : NULL, &copy[i]));
  g->root->input_spec = copy;
  g->root->user_input_count = count;
  return AIT_OK;
}

ait_status ait_graph_clone(const ait_graph *graph, ait_graph **out) {
  ait_graph *copy;
  AIT_TRY(ait_graph_create(graph->allocator, graph->dialect, &copy));
  ait_status status = clone_root(graph, copy);
  if (status) ait_graph_destroy(copy);
  else *out = copy;
  return status;
}
