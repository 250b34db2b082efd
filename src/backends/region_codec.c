/* Regions as bytes. Layout (docs/format.md): header, string table, then regions depth first; all integers little-endian, no padding.
 * One table of limits serves both directions, so that what encode writes decode reads. */
#include "backends/region_codec.h"

#define MAGIC "AITREGN" /* 8 bytes with its NUL */
#define ENCODING_VERSION 1u
#define MAX_REGION_DEPTH 32
#define MAX_LIST_DEPTH 8
#define NULL_STRING UINT32_MAX

#define LAST_DIM_OP AIT_DIM_UNKNOWN
#define LAST_ARG_KIND AIT_ARG_GRAPH
#define LAST_TYPE AIT_TYPE_STRING
#define LAST_INPUT_KIND AIT_INPUT_TOKEN
#define LAST_OUTPUT_KIND AIT_OUTPUT_TOKEN
#define LAST_GUARD_OP AIT_GUARD_LT
#define KNOWN_NODE_FLAGS AIT_NODE_INPLACE

enum { SHARES_SYMBOLS = 1u, SHARES_DIMS = 2u }; /* flags of a nested region */

static bool names_weight(ait_input_kind kind) {
  return kind == AIT_INPUT_PARAMETER || kind == AIT_INPUT_BUFFER || kind == AIT_INPUT_CONSTANT;
}

/* ---- encoding ------------------------------------------------------------------------------------------------------------------*/
typedef struct encoder {
  ait_text *out;
  ait_text strings; /* the table's bytes: each string with its NUL */
  ait_map seen;     /* text -> offset + 1 in `strings` */
} encoder;

static void put_u8(ait_text *t, uint8_t v) { ait_text_append(t, &v, 1); }

static void put_u32(ait_text *t, uint32_t v) {
  uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
  ait_text_append(t, b, 4);
}

static void put_u64(ait_text *t, uint64_t v) {
  put_u32(t, (uint32_t)v);
  put_u32(t, (uint32_t)(v >> 32));
}

static void put_i64(ait_text *t, int64_t v) { put_u64(t, (uint64_t)v); }

static void put_f64(ait_text *t, double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  put_u64(t, bits);
}

/* A string is its offset and length in the table. Equal texts are stored once. */
static ait_status put_bytes(encoder *e, const char *text, size_t length) {
  if (text == NULL) {
    put_u32(e->out, NULL_STRING);
    put_u32(e->out, 0);
    return AIT_OK;
  }
  void *found = NULL;
  bool plain = memchr(text, 0, length) == NULL;
  size_t offset = e->strings.length;
  if (plain && ait_map_get(&e->seen, text, &found)) {
    offset = (size_t)(uintptr_t)found - 1;
  } else {
    if (offset + length >= NULL_STRING) return ait_error(AIT_CODE_LIMIT, "region has more than 4 GiB of text");
    ait_text_append(&e->strings, text, length);
    ait_text_append(&e->strings, "", 1);
    if (plain) AIT_TRY(ait_map_put(&e->seen, text, (void *)(uintptr_t)(offset + 1)));
  }
  put_u32(e->out, (uint32_t)offset);
  put_u32(e->out, (uint32_t)length);
  return AIT_OK;
}

static ait_status put_string(encoder *e, const char *text) { return put_bytes(e, text, text ? strlen(text) : 0); }

static ait_status put_required(encoder *e, const char *text, const char *what) {
  return text ? put_string(e, text) : ait_error(AIT_CODE_INVALID_ARGUMENT, "%s has no name", what);
}

static ait_status encode_region(encoder *e, const ait_region *r, const ait_region *parent, int depth);

static ait_status encode_arg(encoder *e, const ait_region *r, const ait_arg *arg, int list_depth, int depth) {
  put_u8(e->out, (uint8_t)arg->kind);
  switch (arg->kind) {
    case AIT_ARG_NONE: return AIT_OK;
    case AIT_ARG_VALUE: put_u32(e->out, arg->as.value); return AIT_OK;
    case AIT_ARG_INT:
    case AIT_ARG_DTYPE: put_i64(e->out, arg->as.i); return AIT_OK;
    case AIT_ARG_FLOAT: put_f64(e->out, arg->as.f); return AIT_OK;
    case AIT_ARG_BOOL: put_u8(e->out, arg->as.b); return AIT_OK;
    case AIT_ARG_STRING:
      return arg->as.string ? put_bytes(e, arg->as.string, arg->count) : ait_error(AIT_CODE_INVALID_ARGUMENT, "string argument is missing");
    case AIT_ARG_COMPLEX:
      put_f64(e->out, arg->as.complex[0]);
      put_f64(e->out, arg->as.complex[1]);
      return AIT_OK;
    case AIT_ARG_DIM: put_u32(e->out, arg->as.dim); return AIT_OK;
    case AIT_ARG_LIST:
      if (list_depth >= MAX_LIST_DEPTH) return ait_error(AIT_CODE_INVALID_ARGUMENT, "lists nested more than %d deep", MAX_LIST_DEPTH);
      put_u32(e->out, arg->count);
      for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(encode_arg(e, r, &arg->as.list[i], list_depth + 1, depth));
      return AIT_OK;
    case AIT_ARG_GRAPH: return encode_region(e, arg->as.graph, r, depth + 1);
  }
  return ait_error(AIT_CODE_INVALID_ARGUMENT, "argument of unknown kind %d", (int)arg->kind);
}

static ait_status encode_symbols(encoder *e, const ait_region *r) {
  put_u32(e->out, r->symbol_count);
  for (uint32_t i = 0; i < r->symbol_count; ++i) {
    const ait_symbol *s = &r->symbols[i];
    AIT_TRY(put_required(e, s->name, "symbol"));
    put_i64(e->out, s->min);
    put_i64(e->out, s->max);
    put_i64(e->out, s->hint);
    put_u8(e->out, s->backed);
  }
  return AIT_OK;
}

static void encode_dims(encoder *e, const ait_region *r) {
  put_u32(e->out, r->dim_count);
  for (uint32_t i = 0; i < r->dim_count; ++i) {
    const ait_dim_expr *d = &r->dims[i];
    put_u8(e->out, (uint8_t)d->op);
    if (d->op == AIT_DIM_CONST) {
      put_i64(e->out, d->value);
    } else if (d->op == AIT_DIM_SYMBOL) {
      put_u32(e->out, d->a);
    } else if (d->op != AIT_DIM_UNKNOWN) {
      put_u32(e->out, d->a);
      put_u32(e->out, d->b);
    }
  }
}

static ait_status encode_values(encoder *e, const ait_region *r) {
  put_u32(e->out, r->value_count);
  for (uint32_t i = 0; i < r->value_count; ++i) {
    const ait_region_value *v = &r->values[i];
    AIT_TRY(put_string(e, v->name));
    put_u8(e->out, (uint8_t)v->type);
    put_u8(e->out, (uint8_t)v->dtype);
    /* An int's expression is its one dim; a shape that is not there is an unknown rank. */
    int32_t dims = v->type == AIT_TYPE_INT ? v->shape != NULL : v->rank > 0 && v->shape == NULL ? -1 : v->rank;
    put_u8(e->out, (uint8_t)(int8_t)dims);
    for (int32_t d = 0; d < dims; ++d) put_u32(e->out, v->shape[d]);
  }
  return AIT_OK;
}

static ait_status encode_nodes(encoder *e, const ait_region *r, int depth) {
  put_u32(e->out, r->node_count);
  for (uint32_t i = 0; i < r->node_count; ++i) {
    const ait_region_node *n = &r->nodes[i];
    AIT_TRY(put_required(e, n->op, "operator"));
    put_u32(e->out, n->flags);
    AIT_TRY(put_string(e, n->name));
    AIT_TRY(put_string(e, n->module));
    put_u32(e->out, n->arg_count);
    for (uint32_t k = 0; k < n->arg_count; ++k) {
      ait_status status = encode_arg(e, r, &n->args[k], 0, depth);
      if (status) return ait_error_context(status, "node %u '%s'", i, n->name ? n->name : "");
    }
    put_u32(e->out, n->result_count);
    for (uint32_t k = 0; k < n->result_count; ++k) put_u32(e->out, n->results[k]);
  }
  return AIT_OK;
}

static ait_status encode_interface(encoder *e, const ait_region *r, int depth) {
  put_u32(e->out, r->input_count);
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    put_u32(e->out, in->value);
    put_u8(e->out, (uint8_t)in->kind);
    AIT_TRY(names_weight(in->kind) ? put_required(e, in->name, "weight") : put_string(e, in->name));
    AIT_TRY(encode_arg(e, r, &in->baked, 0, depth));
    put_u8(e->out, in->mutated);
    put_u32(e->out, (uint32_t)in->user_index);
  }
  put_u32(e->out, r->output_count);
  for (uint32_t i = 0; i < r->output_count; ++i) {
    const ait_region_output *o = &r->outputs[i];
    AIT_TRY(encode_arg(e, r, &o->arg, 0, depth));
    put_u8(e->out, (uint8_t)o->kind);
    AIT_TRY(o->kind == AIT_OUTPUT_STATE ? put_required(e, o->name, "state output") : put_string(e, o->name));
    put_u32(e->out, (uint32_t)o->user_index);
  }
  return AIT_OK;
}

static ait_status encode_region(encoder *e, const ait_region *r, const ait_region *parent, int depth) {
  if (r == NULL) return ait_error(AIT_CODE_INVALID_ARGUMENT, "nested region is missing");
  if (depth >= MAX_REGION_DEPTH) return ait_error(AIT_CODE_INVALID_ARGUMENT, "regions nested more than %d deep", MAX_REGION_DEPTH);
  uint8_t shares = 0;
  if (parent && r->symbols == parent->symbols && r->symbol_count == parent->symbol_count) shares |= SHARES_SYMBOLS;
  if (shares && r->dims == parent->dims && r->dim_count == parent->dim_count) shares |= SHARES_DIMS;
  put_u8(e->out, shares);
  AIT_TRY(put_string(e, r->name));
  if (!(shares & SHARES_SYMBOLS)) AIT_TRY(encode_symbols(e, r));
  if (!(shares & SHARES_DIMS)) encode_dims(e, r);
  AIT_TRY(encode_values(e, r));
  AIT_TRY(encode_nodes(e, r, depth));
  AIT_TRY(encode_interface(e, r, depth));
  put_u32(e->out, r->guard_count);
  for (uint32_t i = 0; i < r->guard_count; ++i) {
    put_u8(e->out, (uint8_t)r->guards[i].op);
    put_u32(e->out, r->guards[i].left);
    put_u32(e->out, r->guards[i].right);
    AIT_TRY(put_string(e, r->guards[i].text));
  }
  return e->out->failed || e->strings.failed ? AIT_OOM() : AIT_OK;
}

ait_status ait_region_encode(const ait_region *region, ait_text *out) {
  ait_text body;
  ait_text_init(&body, out->allocator);
  encoder e = {.out = &body};
  ait_text_init(&e.strings, out->allocator);
  ait_map_init(&e.seen, out->allocator);
  ait_status status = encode_region(&e, region, NULL, 0);
  if (status == AIT_OK) {
    ait_text_append(out, MAGIC, 8);
    put_u32(out, ENCODING_VERSION);
    put_u32(out, (uint32_t)e.strings.length);
    if (e.strings.length) ait_text_append(out, e.strings.data, e.strings.length);
    ait_text_append(out, body.data, body.length);
    if (out->failed) status = AIT_OOM();
  }
  ait_map_deinit(&e.seen);
  ait_text_deinit(&e.strings);
  ait_text_deinit(&body);
  return status;
}

/* ---- decoding ------------------------------------------------------------------------------------------------------------------
 * A reader that has run past the end gives zeros and keeps `bad` set; callers check it after each structure, before its numbers are
 * used as sizes. */
typedef struct decoder {
  const uint8_t *p, *end;
  bool bad;
  ait_arena *arena;
  const char *strings;
  uint32_t string_bytes;
} decoder;

typedef struct holder {
  ait_region region; /* first: ait_region_destroy gets its address */
  ait_allocator allocator;
  ait_arena arena;
} holder;

static ait_status corrupt(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "encoded region is damaged: %s", what); }

static uint8_t get_u8(decoder *d) {
  if (d->p == d->end) {
    d->bad = true;
    return 0;
  }
  return *d->p++;
}

static uint32_t get_u32(decoder *d) {
  if (d->end - d->p < 4) {
    d->bad = true;
    d->p = d->end;
    return 0;
  }
  uint32_t v = (uint32_t)d->p[0] | (uint32_t)d->p[1] << 8 | (uint32_t)d->p[2] << 16 | (uint32_t)d->p[3] << 24;
  d->p += 4;
  return v;
}

static uint64_t get_u64(decoder *d) {
  uint64_t low = get_u32(d);
  return low | (uint64_t)get_u32(d) << 32;
}

static int64_t get_i64(decoder *d) { return (int64_t)get_u64(d); }

static double get_f64(decoder *d) {
  uint64_t bits = get_u64(d);
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static bool get_bool(decoder *d) {
  uint8_t v = get_u8(d);
  if (v > 1) d->bad = true;
  return v == 1;
}

/* An enumerator 0..last. */
static int get_enum(decoder *d, int last) {
  uint8_t v = get_u8(d);
  if (v > last) d->bad = true;
  return v > last ? 0 : v;
}

/* A count of things that take at least `least` bytes each: bounds what a hostile file can make us allocate. */
static uint32_t get_count(decoder *d, size_t least) {
  uint32_t n = get_u32(d);
  if (n > (size_t)(d->end - d->p) / least) d->bad = true;
  return d->bad ? 0 : n;
}

static uint32_t get_index(decoder *d, uint32_t count, bool none_allowed) {
  uint32_t i = get_u32(d);
  if (i >= count && !(none_allowed && i == AIT_NO_INDEX)) d->bad = true;
  return i;
}

static const char *get_string(decoder *d, bool required, uint32_t *out_length) {
  uint32_t offset = get_u32(d), length = get_u32(d);
  if (out_length) *out_length = d->bad ? 0 : length;
  if (!d->bad && offset == NULL_STRING && length == 0 && !required) return NULL;
  /* The byte after the text must be its NUL; length < string_bytes leaves room for it. */
  if (d->bad || length >= d->string_bytes || offset > d->string_bytes - 1 - length || d->strings[offset + length] != 0 ||
      (!out_length && memchr(d->strings + offset, 0, length))) {
    d->bad = true;
    return required ? "" : NULL;
  }
  return d->strings + offset;
}

#define NEW_ARRAY(d, type, count) ((count) ? AIT_ARENA_ARRAY((d)->arena, type, (count)) : NULL)
#define NEED(pointer, count)                            \
  do {                                                  \
    if ((count) && (pointer) == NULL) return AIT_OOM(); \
  } while (0)

static ait_status decode_region(decoder *d, const ait_region *parent, int depth, ait_region *r);

static bool is_dtype(int64_t v) { return v == 0 || (v > 0 && v <= UINT8_MAX && ait_dtype_size((ait_dtype)v) != 0); }

static ait_status decode_arg(decoder *d, const ait_region *r, int list_depth, int depth, ait_arg *arg) {
  *arg = (ait_arg){.kind = (ait_arg_kind)get_enum(d, LAST_ARG_KIND)};
  switch (arg->kind) {
    case AIT_ARG_NONE: break;
    case AIT_ARG_VALUE: arg->as.value = get_index(d, r->value_count, false); break;
    case AIT_ARG_INT: arg->as.i = get_i64(d); break;
    case AIT_ARG_DTYPE:
      arg->as.i = get_i64(d);
      if (!is_dtype(arg->as.i)) d->bad = true;
      break;
    case AIT_ARG_FLOAT: arg->as.f = get_f64(d); break;
    case AIT_ARG_BOOL: arg->as.b = get_bool(d); break;
    case AIT_ARG_STRING: arg->as.string = get_string(d, true, &arg->count); break;
    case AIT_ARG_COMPLEX:
      arg->as.complex[0] = get_f64(d);
      arg->as.complex[1] = get_f64(d);
      break;
    case AIT_ARG_DIM: arg->as.dim = get_index(d, r->dim_count, false); break;
    case AIT_ARG_LIST: {
      if (list_depth >= MAX_LIST_DEPTH) return corrupt("lists nested too deep");
      arg->count = get_count(d, 1);
      ait_arg *items = NEW_ARRAY(d, ait_arg, arg->count);
      NEED(items, arg->count);
      for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(decode_arg(d, r, list_depth + 1, depth, &items[i]));
      arg->as.list = items;
      break;
    }
    case AIT_ARG_GRAPH: {
      ait_region *nested = AIT_ARENA_NEW(d->arena, ait_region);
      NEED(nested, 1);
      AIT_TRY(decode_region(d, r, depth + 1, nested));
      arg->as.graph = nested;
      break;
    }
  }
  return d->bad ? corrupt("argument") : AIT_OK;
}

static ait_status decode_symbols(decoder *d, ait_region *r) {
  r->symbol_count = get_count(d, 33);
  ait_symbol *symbols = NEW_ARRAY(d, ait_symbol, r->symbol_count);
  NEED(symbols, r->symbol_count);
  for (uint32_t i = 0; i < r->symbol_count; ++i) {
    ait_symbol *s = &symbols[i];
    s->name = get_string(d, true, NULL);
    s->min = get_i64(d);
    s->max = get_i64(d);
    s->hint = get_i64(d);
    s->backed = get_bool(d);
  }
  r->symbols = symbols;
  return d->bad ? corrupt("symbols") : AIT_OK;
}

static ait_status decode_dims(decoder *d, ait_region *r) {
  r->dim_count = get_count(d, 1);
  ait_dim_expr *dims = NEW_ARRAY(d, ait_dim_expr, r->dim_count);
  NEED(dims, r->dim_count);
  for (uint32_t i = 0; i < r->dim_count; ++i) {
    ait_dim_expr *x = &dims[i];
    *x = (ait_dim_expr){.op = (ait_dim_op)get_enum(d, LAST_DIM_OP)};
    if (x->op == AIT_DIM_CONST) {
      x->value = get_i64(d);
    } else if (x->op == AIT_DIM_SYMBOL) {
      x->a = get_index(d, r->symbol_count, false);
    } else if (x->op != AIT_DIM_UNKNOWN) {
      x->a = get_index(d, i, false); /* children come first: evaluation is a loop, never a recursion */
      x->b = get_index(d, i, false);
    }
  }
  r->dims = dims;
  return d->bad ? corrupt("dims") : AIT_OK;
}

static ait_status decode_values(decoder *d, ait_region *r) {
  r->value_count = get_count(d, 11);
  ait_region_value *values = NEW_ARRAY(d, ait_region_value, r->value_count);
  NEED(values, r->value_count);
  for (uint32_t i = 0; i < r->value_count; ++i) {
    ait_region_value *v = &values[i];
    v->name = get_string(d, false, NULL);
    v->type = (ait_type)get_enum(d, LAST_TYPE);
    v->dtype = (ait_dtype)get_u8(d);
    int32_t count = (int8_t)get_u8(d);
    bool is_int = v->type == AIT_TYPE_INT;
    if (d->bad || !is_dtype(v->dtype) || count < -1 || count > (is_int ? 1 : AIT_MAX_RANK)) return corrupt("value");
    v->rank = is_int ? 0 : count;
    ait_dim *shape = NEW_ARRAY(d, ait_dim, (size_t)(count > 0 ? count : 0));
    NEED(shape, count > 0);
    for (int32_t k = 0; k < count; ++k) shape[k] = get_index(d, r->dim_count, false);
    v->shape = shape;
  }
  r->values = values;
  return d->bad ? corrupt("values") : AIT_OK;
}

static ait_status decode_node(decoder *d, const ait_region *r, int depth, ait_region_node *n) {
  n->op = get_string(d, true, NULL);
  n->flags = get_u32(d);
  if (n->flags & ~(uint32_t)KNOWN_NODE_FLAGS) return corrupt("unknown node flag");
  n->name = get_string(d, false, NULL);
  n->module = get_string(d, false, NULL);
  n->arg_count = get_count(d, 1);
  ait_arg *args = NEW_ARRAY(d, ait_arg, n->arg_count);
  NEED(args, n->arg_count);
  for (uint32_t k = 0; k < n->arg_count; ++k) AIT_TRY(decode_arg(d, r, 0, depth, &args[k]));
  n->args = args;
  n->result_count = get_count(d, 4);
  uint32_t *results = NEW_ARRAY(d, uint32_t, n->result_count);
  NEED(results, n->result_count);
  for (uint32_t k = 0; k < n->result_count; ++k) results[k] = get_index(d, r->value_count, true);
  n->results = results;
  return d->bad ? corrupt("node") : AIT_OK;
}

static ait_status decode_nodes(decoder *d, ait_region *r, int depth) {
  uint32_t count = get_count(d, 36);
  ait_region_node *nodes = NEW_ARRAY(d, ait_region_node, count);
  NEED(nodes, count);
  for (uint32_t i = 0; i < count; ++i) AIT_TRY(decode_node(d, r, depth, &nodes[i]));
  r->node_count = count;
  r->nodes = nodes;
  return d->bad ? corrupt("nodes") : AIT_OK;
}

static ait_status decode_inputs(decoder *d, ait_region *r, int depth) {
  r->input_count = get_count(d, 19);
  ait_region_input *inputs = NEW_ARRAY(d, ait_region_input, r->input_count);
  NEED(inputs, r->input_count);
  for (uint32_t i = 0; i < r->input_count; ++i) {
    ait_region_input *in = &inputs[i];
    in->value = get_index(d, r->value_count, true);
    in->kind = (ait_input_kind)get_enum(d, LAST_INPUT_KIND);
    in->name = get_string(d, names_weight(in->kind), NULL);
    AIT_TRY(decode_arg(d, r, 0, depth, &in->baked));
    if (in->baked.kind == AIT_ARG_VALUE || in->baked.kind > AIT_ARG_STRING) return corrupt("baked input");
    in->mutated = get_bool(d);
    uint32_t index = get_u32(d);
    if (index != AIT_NO_INDEX && index >= r->input_count) d->bad = true;
    in->user_index = (int32_t)index;
  }
  r->inputs = inputs;
  return d->bad ? corrupt("inputs") : AIT_OK;
}

static ait_status decode_outputs(decoder *d, ait_region *r, int depth) {
  r->output_count = get_count(d, 14);
  ait_region_output *outputs = NEW_ARRAY(d, ait_region_output, r->output_count);
  NEED(outputs, r->output_count);
  for (uint32_t i = 0; i < r->output_count; ++i) {
    ait_region_output *o = &outputs[i];
    AIT_TRY(decode_arg(d, r, 0, depth, &o->arg));
    o->kind = (ait_output_kind)get_enum(d, LAST_OUTPUT_KIND);
    o->name = get_string(d, o->kind == AIT_OUTPUT_STATE, NULL);
    uint32_t index = get_u32(d);
    /* the user input that it is written to is the whole model's, of which this may be a part: plans are checked for it */
    if (o->kind == AIT_OUTPUT_INPUT ? index > INT32_MAX : index != AIT_NO_INDEX && index >= r->output_count) d->bad = true;
    o->user_index = (int32_t)index;
  }
  r->outputs = outputs;
  return d->bad ? corrupt("outputs") : AIT_OK;
}

static ait_status decode_guards(decoder *d, ait_region *r) {
  r->guard_count = get_count(d, 17);
  ait_region_guard *guards = NEW_ARRAY(d, ait_region_guard, r->guard_count);
  NEED(guards, r->guard_count);
  for (uint32_t i = 0; i < r->guard_count; ++i) {
    guards[i].op = (ait_guard_op)get_enum(d, LAST_GUARD_OP);
    guards[i].left = get_index(d, r->dim_count, false);
    guards[i].right = get_index(d, r->dim_count, false);
    guards[i].text = get_string(d, false, NULL);
  }
  r->guards = guards;
  return d->bad ? corrupt("guards") : AIT_OK;
}

static ait_status decode_region(decoder *d, const ait_region *parent, int depth, ait_region *r) {
  if (depth >= MAX_REGION_DEPTH) return corrupt("regions nested too deep");
  *r = (ait_region){.struct_size = sizeof *r, .version = AIT_REGION_VERSION};
  uint8_t shares = get_u8(d);
  if (shares & ~(SHARES_SYMBOLS | SHARES_DIMS) || (shares && !parent)) return corrupt("region flags");
  r->name = get_string(d, false, NULL);
  if (shares & SHARES_SYMBOLS) {
    r->symbol_count = parent->symbol_count;
    r->symbols = parent->symbols;
  } else {
    AIT_TRY(decode_symbols(d, r));
  }
  if (shares & SHARES_DIMS) {
    /* The parent's expressions refer to the parent's symbols. */
    if (!(shares & SHARES_SYMBOLS)) return corrupt("region flags");
    r->dim_count = parent->dim_count;
    r->dims = parent->dims;
  } else {
    AIT_TRY(decode_dims(d, r));
  }
  AIT_TRY(decode_values(d, r));
  AIT_TRY(decode_nodes(d, r, depth));
  AIT_TRY(decode_inputs(d, r, depth));
  AIT_TRY(decode_outputs(d, r, depth));
  return decode_guards(d, r);
}

/* Takes over the string table: strings of the region point into a copy. */
static ait_status decode_header(decoder *d) {
  if (d->end - d->p < 16 || memcmp(d->p, MAGIC, 8) != 0) return corrupt("no region here");
  d->p += 8;
  uint32_t version = get_u32(d);
  if (version != ENCODING_VERSION) {
    return ait_error_hint(
        ait_error(AIT_CODE_INCOMPATIBLE, "region encoding %u is newer than this library reads (%u)", version, ENCODING_VERSION),
        "use a newer ait");
  }
  d->string_bytes = get_count(d, 1);
  if (d->bad) return corrupt("string table");
  char *strings = ait_arena_alloc(d->arena, (size_t)d->string_bytes + 1, 1);
  if (!strings) return AIT_OOM();
  memcpy(strings, d->p, d->string_bytes);
  d->strings = strings;
  d->p += d->string_bytes;
  return AIT_OK;
}

ait_status ait_region_decode(ait_allocator a, const void *data, size_t size, ait_region **out) {
  holder *h = ait_alloc_zero(a, sizeof *h, _Alignof(holder));
  if (!h) return AIT_OOM();
  h->allocator = a;
  ait_arena_init(&h->arena, a);
  decoder d = {.p = data, .end = (const uint8_t *)data + size, .arena = &h->arena};
  ait_status status = decode_header(&d);
  if (!status) status = decode_region(&d, NULL, 0, &h->region);
  if (!status && d.p != d.end) status = corrupt("bytes after its end");
  if (status) {
    ait_region_destroy(&h->region);
    return status;
  }
  *out = &h->region;
  return AIT_OK;
}

void ait_region_destroy(ait_region *region) {
  if (!region) return;
  holder *h = (holder *)region;
  ait_arena_deinit(&h->arena);
  ait_free(h->allocator, h, sizeof *h);
}

ait_status ait_region_copy(ait_allocator a, const ait_region *region, ait_region **out) {
  ait_text bytes;
  ait_text_init(&bytes, a);
  ait_status status = ait_region_encode(region, &bytes);
  if (!status) status = ait_region_decode(a, bytes.data, bytes.length, out);
  ait_text_deinit(&bytes);
  return status;
}
