#include "tune/regions.h"

/* ---- where to cut ------------------------------------------------------------------------------------------------------------ */
bool ait_module_within(const char *module, const char *path) {
  size_t n = strlen(path);
  return n == 0 || (strncmp(module, path, n) == 0 && (module[n] == 0 || module[n] == '.'));
}

/* Characters of the first `depth` names of a path. */
static size_t prefix_length(const char *path, int depth) {
  size_t n = 0;
  for (; depth > 0 && path[n]; --depth) {
    n += strcspn(path + n, ".");
    if (depth > 1 && path[n] == '.') ++n;
  }
  return n;
}

static int pin_of(const char *module, const char *const *pins, uint32_t pin_count) {
  int found = -1;
  for (uint32_t i = 0; i < pin_count; ++i) /* the longest that fits */
    if (ait_module_within(module, pins[i]) && (found < 0 || strlen(pins[i]) > strlen(pins[found]))) found = (int)i;
  return found;
}

/* Nodes of the root module (reshapes between layers) stay with what came before. Returns how many cuts there are, also beyond the limit. */
static uint32_t cuts_at_depth(const ait_region *r, int depth, const char *const *pins, uint32_t pin_count, uint32_t cuts[AIT_PARTS_MAX]) {
  uint32_t count = 0;
  const char *last = NULL;
  int last_pin = -1;
  for (uint32_t i = 0; i < r->node_count; ++i) {
    const char *module = r->nodes[i].module ? r->nodes[i].module : "";
    int pin = pin_of(module, pins, pin_count);
    size_t n = prefix_length(module, depth);
    if (n == 0 && pin == last_pin) continue;
    bool same = last && pin == last_pin && prefix_length(last, depth) == n && strncmp(last, module, n) == 0;
    if (!same && i > 0 && last) {
      if (count + 1 < AIT_PARTS_MAX) cuts[count] = i;
      ++count;
    }
    last = module;
    last_pin = pin;
  }
  return count;
}

uint32_t ait_parts_find(const ait_region *whole, const char *const *pins, uint32_t pin_count, uint32_t cuts[AIT_PARTS_MAX]) {
  uint32_t best = cuts_at_depth(whole, 0, pins, pin_count, cuts), found[AIT_PARTS_MAX];
  if (best >= AIT_PARTS_MAX) return 0;
  for (int depth = 1; depth <= 8; ++depth) {
    uint32_t count = cuts_at_depth(whole, depth, pins, pin_count, found);
    if (count >= AIT_PARTS_MAX) break;
    if (count <= best) continue;
    best = count;
    memcpy(cuts, found, count * sizeof *cuts);
  }
  return best;
}

/* ---- what crosses ------------------------------------------------------------------------------------------------------------ */
enum { DEPTH_LIMIT = 32 };
typedef void (*value_fn)(void *ctx, uint32_t value);
typedef void (*dim_fn)(void *ctx, ait_dim dim);

static void each_in_arg(const ait_arg *a, value_fn value, dim_fn dim, void *ctx, int depth) {
  if (a->kind == AIT_ARG_VALUE) value(ctx, a->as.value);
  if (a->kind == AIT_ARG_DIM) dim(ctx, a->as.dim);
  for (uint32_t i = 0; a->kind == AIT_ARG_LIST && depth < DEPTH_LIMIT && i < a->count; ++i)
    each_in_arg(&a->as.list[i], value, dim, ctx, depth + 1);
}

typedef struct cutter {
  ait_parts *parts;
  const ait_region *whole;
  uint32_t *part_of;   /* per value: the part that makes it; AIT_NO_INDEX: an input */
  uint32_t *last_part; /* per value: the last part that reads it; AIT_NO_INDEX: none */
  uint32_t *input_of;  /* per value: input of the whole, or AIT_NO_INDEX */
  uint32_t *number;    /* per value: plan value, or AIT_NO_INDEX */
  uint32_t *scalar;    /* per output of the whole that is a size or a number and no value: plan value */
  uint32_t *taken;     /* per value: 1 + the part that has it as an input already */
  bool *bound;         /* per symbol, of the part at work: the sizes of its inputs tell it */
  bool *needed;        /* per symbol, of the part at work */
  uint32_t part;
  ait_region_input *inputs;
  ait_region_output *outputs;
} cutter;

static void note_symbols(const cutter *c, ait_dim d, bool *flags, int depth) {
  const ait_dim_expr *e = &c->whole->dims[d];
  if (e->op == AIT_DIM_SYMBOL) flags[e->a] = true;
  if (e->op == AIT_DIM_CONST || e->op == AIT_DIM_SYMBOL || e->op == AIT_DIM_UNKNOWN || depth > 400) return;
  note_symbols(c, e->a, flags, depth + 1);
  note_symbols(c, e->b, flags, depth + 1);
}

static void add_input(cutter *c, uint32_t value) {
  ait_part *p = &c->parts->items[c->part];
  const ait_region *w = c->whole;
  if (c->taken[value] == c->part + 1) return;
  c->taken[value] = c->part + 1;
  uint32_t own = c->input_of[value], at = p->region.input_count++;
  uint32_t users = 0;
  for (uint32_t i = 0; i < at; ++i) users += c->inputs[i].kind == AIT_INPUT_USER;
  if (own != AIT_NO_INDEX) c->inputs[at] = w->inputs[own];
  else c->inputs[at] = (ait_region_input){.value = value, .kind = AIT_INPUT_USER, .name = w->values[value].name};
  p->inputs[at] = AIT_NO_INDEX;
  if (c->inputs[at].kind == AIT_INPUT_USER) {
    c->inputs[at].user_index = (int32_t)users;
    c->inputs[at].mutated = false; /* new contents of a user input are an output of the whole */
    p->inputs[at] = c->number[value];
  }
  const ait_region_value *v = &w->values[value];
  for (int32_t d = 0; v->type == AIT_TYPE_TENSOR && d < v->rank; ++d) {
    const ait_dim_expr *e = &w->dims[v->shape[d]];
    if (e->op == AIT_DIM_SYMBOL) c->bound[e->a] = true;
    else note_symbols(c, v->shape[d], c->needed, 0); /* backends check the sizes of inputs */
  }
}

static void need_value(void *ctx, uint32_t value) {
  cutter *c = ctx;
  if (c->part_of[value] != c->part) add_input(c, value);
}
static void need_dim(void *ctx, ait_dim dim) {
  cutter *c = ctx;
  note_symbols(c, dim, c->needed, 0);
}

/* A size that none of the part's inputs tells comes from a user input that does, though no node reads it. */
static void bind_symbol(cutter *c, uint32_t symbol) {
  const ait_region *w = c->whole;
  for (uint32_t i = 0; i < w->input_count && !c->bound[symbol]; ++i) {
    const ait_region_input *in = &w->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX || w->values[in->value].type != AIT_TYPE_TENSOR) continue;
    const ait_region_value *v = &w->values[in->value];
    for (int32_t d = 0; d < v->rank && !c->bound[symbol]; ++d)
      if (w->dims[v->shape[d]].op == AIT_DIM_SYMBOL && w->dims[v->shape[d]].a == symbol) add_input(c, in->value);
  }
}

static void bind_rest(cutter *c) {
  for (int round = 0; round < 2; ++round) /* twice: an input that is added has other sizes, too */
    for (uint32_t s = 0; s < c->whole->symbol_count; ++s)
      if (c->needed[s] && !c->bound[s]) bind_symbol(c, s);
}

static void add_output(cutter *c, const ait_region_output *o, uint32_t number) {
  ait_part *p = &c->parts->items[c->part];
  uint32_t at = p->region.output_count++;
  c->outputs[at] = *o;
  if (o->kind == AIT_OUTPUT_USER) {
    uint32_t users = 0;
    for (uint32_t i = 0; i < at; ++i) users += c->outputs[i].kind == AIT_OUTPUT_USER;
    c->outputs[at].user_index = (int32_t)users;
  }
  p->outputs[at] = number;
}

/* ---- one part ---------------------------------------------------------------------------------------------------------------- */
static bool is_last(const cutter *c) { return c->part + 1 == c->parts->count; }

/* Lowering may have found that a value is a size or a number; the plan still gives it back. */
static bool is_scalar_result(const ait_region_output *o) {
  return o->kind == AIT_OUTPUT_USER && o->arg.kind != AIT_ARG_VALUE && o->arg.kind != AIT_ARG_NONE;
}

static void part_inputs(cutter *c) {
  const ait_part *p = &c->parts->items[c->part];
  memset(c->bound, 0, c->whole->symbol_count);
  memset(c->needed, 0, c->whole->symbol_count);
  for (uint32_t i = p->begin; i < p->end; ++i) {
    const ait_region_node *n = &c->whole->nodes[i];
    for (uint32_t k = 0; k < n->arg_count; ++k) each_in_arg(&n->args[k], need_value, need_dim, c, 0);
    for (uint32_t k = 0; k < n->result_count; ++k) {
      if (n->results[k] == AIT_NO_INDEX) continue;
      const ait_region_value *v = &c->whole->values[n->results[k]];
      for (int32_t d = 0; v->type == AIT_TYPE_TENSOR && d < v->rank; ++d) need_dim(c, v->shape[d]);
    }
  }
  /* what no node makes and the model gives back: the last part passes it through */
  for (uint32_t i = 0; is_last(c) && i < c->whole->output_count; ++i) {
    const ait_region_output *o = &c->whole->outputs[i];
    if (o->arg.kind == AIT_ARG_VALUE && c->part_of[o->arg.as.value] == AIT_NO_INDEX && c->number[o->arg.as.value] == AIT_NO_INDEX)
      add_input(c, o->arg.as.value);
    if (o->arg.kind == AIT_ARG_VALUE && c->part_of[o->arg.as.value] == AIT_NO_INDEX && o->kind != AIT_OUTPUT_USER)
      add_input(c, o->arg.as.value);
    if (is_scalar_result(o)) each_in_arg(&o->arg, need_value, need_dim, c, 0);
  }
  bind_rest(c);
}

/* New contents of states and inputs where they are made; values for later parts and for the caller once each. */
static void part_outputs(cutter *c) {
  const ait_region *w = c->whole;
  const ait_part *p = &c->parts->items[c->part];
  for (uint32_t i = 0; i < w->output_count; ++i) {
    const ait_region_output *o = &w->outputs[i];
    if (o->kind == AIT_OUTPUT_USER || o->arg.kind != AIT_ARG_VALUE) continue;
    uint32_t maker = c->part_of[o->arg.as.value];
    if (maker == c->part || (maker == AIT_NO_INDEX && is_last(c))) add_output(c, o, AIT_NO_INDEX);
  }
  for (uint32_t i = p->begin; i < p->end; ++i) {
    const ait_region_node *n = &w->nodes[i];
    for (uint32_t k = 0; k < n->result_count; ++k) {
      uint32_t v = n->results[k];
      if (v == AIT_NO_INDEX || c->number[v] == AIT_NO_INDEX) continue;
      add_output(c, &(ait_region_output){.arg = {.kind = AIT_ARG_VALUE, .as.value = v}, .kind = AIT_OUTPUT_USER, .name = w->values[v].name},
                 c->number[v]);
    }
  }
  for (uint32_t i = 0; is_last(c) && i < w->output_count; ++i) { /* a size or a weight as a result */
    const ait_region_output *o = &w->outputs[i];
    if (is_scalar_result(o)) add_output(c, o, c->scalar[i] = c->parts->value_count++);
    if (o->kind != AIT_OUTPUT_USER || o->arg.kind != AIT_ARG_VALUE) continue;
    uint32_t v = o->arg.as.value;
    if (c->part_of[v] != AIT_NO_INDEX || c->number[v] != AIT_NO_INDEX) continue;
    c->number[v] = c->parts->value_count++;
    add_output(c, o, c->number[v]);
  }
}

/* ---- all of them ------------------------------------------------------------------------------------------------------------- */
static void read_value(void *ctx, uint32_t value) {
  cutter *c = ctx;
  c->last_part[value] = c->part;
}
static void read_dim(void *ctx, ait_dim dim) { (void)ctx, (void)dim; }

static void find_crossings(cutter *c) {
  const ait_region *w = c->whole;
  for (c->part = 0; c->part < c->parts->count; ++c->part)
    for (uint32_t i = c->parts->items[c->part].begin; i < c->parts->items[c->part].end; ++i) {
      const ait_region_node *n = &w->nodes[i];
      for (uint32_t k = 0; k < n->arg_count; ++k) each_in_arg(&n->args[k], read_value, read_dim, c, 0);
      for (uint32_t k = 0; k < n->result_count; ++k)
        if (n->results[k] != AIT_NO_INDEX) c->part_of[n->results[k]] = c->part;
    }
  for (uint32_t i = 0; i < w->input_count; ++i) {
    if (w->inputs[i].value == AIT_NO_INDEX) continue;
    c->input_of[w->inputs[i].value] = i;
    if (w->inputs[i].kind == AIT_INPUT_USER) c->number[w->inputs[i].value] = (uint32_t)w->inputs[i].user_index;
  }
  for (uint32_t i = 0; i < w->output_count; ++i) {
    const ait_region_output *o = &w->outputs[i];
    bool made = o->arg.kind == AIT_ARG_VALUE && c->part_of[o->arg.as.value] != AIT_NO_INDEX;
    if (made && o->kind == AIT_OUTPUT_USER && c->number[o->arg.as.value] == AIT_NO_INDEX)
      c->number[o->arg.as.value] = c->parts->value_count++;
  }
  for (uint32_t v = 0; v < w->value_count; ++v) {
    bool crosses = c->part_of[v] != AIT_NO_INDEX && c->last_part[v] != AIT_NO_INDEX && c->last_part[v] > c->part_of[v];
    if (crosses && c->number[v] == AIT_NO_INDEX) c->number[v] = c->parts->value_count++;
  }
}

static const char *common_path(ait_arena *arena, const ait_region *w, uint32_t begin, uint32_t end) {
  const char *path = NULL;
  size_t n = 0;
  for (uint32_t i = begin; i < end; ++i) {
    const char *module = w->nodes[i].module ? w->nodes[i].module : "";
    if (!*module) continue;
    if (!path) path = module, n = strlen(module);
    while (n > 0 && (strncmp(path, module, n) != 0 || (module[n] != 0 && module[n] != '.') || (path[n] != 0 && path[n] != '.'))) --n;
  }
  return ait_arena_strdup(arena, path ? path : "", n);
}

static uint32_t *table(ait_arena *arena, size_t count) {
  uint32_t *t = AIT_ARENA_ARRAY(arena, uint32_t, count + 1);
  for (size_t i = 0; t && i <= count; ++i) t[i] = AIT_NO_INDEX;
  return t;
}

static ait_status make_part(cutter *c, uint32_t part) {
  const ait_region *w = c->whole;
  ait_arena *arena = &c->parts->arena;
  ait_part *p = &c->parts->items[part];
  c->part = part;
  size_t inputs = (size_t)w->input_count + w->value_count, outputs = (size_t)w->output_count + w->value_count;
  c->inputs = AIT_ARENA_ARRAY(arena, ait_region_input, inputs + 1);
  c->outputs = AIT_ARENA_ARRAY(arena, ait_region_output, outputs + 1);
  p->inputs = table(arena, inputs);
  p->outputs = table(arena, outputs);
  p->module = common_path(arena, w, p->begin, p->end);
  if (!c->inputs || !c->outputs || !p->inputs || !p->outputs || !p->module) return AIT_OOM();
  p->region = *w;
  p->region.nodes = w->nodes + p->begin;
  p->region.node_count = p->end - p->begin;
  p->region.guard_count = p->region.input_count = p->region.output_count = 0;
  part_inputs(c);
  part_outputs(c);
  p->region.inputs = c->inputs;
  p->region.outputs = c->outputs;
  return AIT_OK;
}

static ait_status make_parts(cutter *c) {
  ait_arena *arena = &c->parts->arena;
  const ait_region *w = c->whole;
  c->part_of = table(arena, w->value_count);
  c->last_part = table(arena, w->value_count);
  c->input_of = table(arena, w->value_count);
  c->number = table(arena, w->value_count);
  c->scalar = table(arena, w->output_count);
  c->taken = table(arena, w->value_count);
  c->bound = AIT_ARENA_ARRAY(arena, bool, (size_t)w->symbol_count + 1);
  c->needed = AIT_ARENA_ARRAY(arena, bool, (size_t)w->symbol_count + 1);
  c->parts->results = table(arena, w->output_count);
  if (!c->part_of || !c->last_part || !c->input_of || !c->number || !c->scalar || !c->taken || !c->bound || !c->needed ||
      !c->parts->results)
    return AIT_OOM();
  find_crossings(c);
  for (uint32_t i = 0; i < c->parts->count; ++i) AIT_TRY(make_part(c, i));
  for (uint32_t i = 0; i < w->output_count; ++i) {
    if (w->outputs[i].kind != AIT_OUTPUT_USER) continue;
    bool value = w->outputs[i].arg.kind == AIT_ARG_VALUE;
    c->parts->results[c->parts->result_count++] = value ? c->number[w->outputs[i].arg.as.value] : c->scalar[i];
  }
  return AIT_OK;
}

ait_status ait_parts_create(ait_allocator a, const ait_region *whole, const uint32_t *cuts, uint32_t cut_count, ait_parts *out) {
  *out = (ait_parts){.whole = whole, .count = cut_count + 1};
  ait_arena_init(&out->arena, a);
  ait_status status = cut_count < AIT_PARTS_MAX ? AIT_OK : ait_error(AIT_CODE_LIMIT, "more than %d parts", AIT_PARTS_MAX);
  for (uint32_t i = 0; i < whole->input_count; ++i) {
    out->value_count += whole->inputs[i].kind == AIT_INPUT_USER;
    if (status == AIT_OK && whole->inputs[i].kind == AIT_INPUT_TOKEN)
      status = ait_error(AIT_CODE_UNSUPPORTED, "effects that are ordered by tokens cannot be cut apart");
  }
  for (uint32_t i = 0; status == AIT_OK && i <= cut_count; ++i) {
    out->items[i].begin = i ? cuts[i - 1] : 0;
    out->items[i].end = i < cut_count ? cuts[i] : whole->node_count;
    if (out->items[i].begin >= out->items[i].end) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "part %u is empty", i);
  }
  cutter c = {.parts = out, .whole = whole};
  if (status == AIT_OK) status = make_parts(&c);
  if (status != AIT_OK) ait_parts_deinit(out);
  return status;
}

void ait_parts_deinit(ait_parts *parts) {
  ait_arena_deinit(&parts->arena);
  parts->count = 0;
}
