/* Element-wise operators become programs, and chains of them one program. */
#include "backends/native/lower.h"

#include <math.h>

enum { EW_NONE = 0xfffe };
#define AIT_EW_NONE EW_NONE
#define NAT_INT_NONE EW_NONE

typedef struct ew_row {
  const char *name;
  uint16_t arity, float_op, right_constant, left_constant, int_op;
} ew_row;

static const ew_row rows[] = {
#define NAT_EW(name, arity, float_op, right, left, int_op) \
  {name, arity, AIT_EW_##float_op, AIT_EW_##right, AIT_EW_##left, NAT_INT_##int_op},
#include "backends/native/ew_ops.inc"
#undef NAT_EW
};

static const ew_row *row_of(const char *name) {
  for (size_t i = 0; i < AIT_COUNT(rows); ++i) {
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  }
  return NULL;
}

static bool is_op(const ait_region_node *n, const char *name) { return strcmp(n->op, name) == 0; }

/* ---- which programs can do it exactly as torch does ------------------------------------------------------------------------------*/
static bool float_holds(ait_dtype d) { return d == AIT_F32 || d == AIT_BOOL || d == AIT_U8 || d == AIT_I8 || d == AIT_I16; }
static bool is_half(ait_dtype d) { return d == AIT_F16 || d == AIT_BF16; }
static bool int_holds(ait_dtype d) { return d == AIT_BOOL || d == AIT_U8 || d == AIT_I8 || d == AIT_I16 || d == AIT_I32 || d == AIT_I64; }

static bool is_scalar(const ait_arg *a) {
  return a->kind == AIT_ARG_INT || a->kind == AIT_ARG_FLOAT || a->kind == AIT_ARG_BOOL || a->kind == AIT_ARG_DIM;
}

/* Any float among the operands makes the others floats before the operation. */
static bool float_class(const ait_region *r, const ait_region_node *n, const ew_row *row, ait_dtype result) {
  bool cast = is_op(n, "cast"), floats = false;
  if (row->float_op == EW_NONE) return false;
  for (uint32_t i = 0; i < row->arity && i < n->arg_count; ++i) {
    if (!nat_is_tensor(r, &n->args[i])) {
      floats |= n->args[i].kind == AIT_ARG_FLOAT;
      continue;
    }
    ait_dtype d = r->values[n->args[i].as.value].dtype;
    if (cast && int_holds(d) && d != AIT_BOOL && !ait_dtype_is_float(result)) return false; /* between ints: exactly */
    if (!float_holds(d) && !is_half(d) && !(cast && int_holds(d))) return false;
    floats |= ait_dtype_is_float(d);
  }
  if (cast) return result == AIT_F32 || is_half(result) || int_holds(result);
  return (result == AIT_BOOL && floats) || result == AIT_F32 || is_half(result);
}

static bool positive_int(const ait_arg *a) { return a->kind == AIT_ARG_INT && a->as.i > 0; }

static bool int_class(const ait_region *r, const ait_region_node *n, const ew_row *row, ait_dtype result) {
  if (row->int_op == EW_NONE || !int_holds(result)) return false;
  bool divides = row->int_op == NAT_INT_FLOOR_DIV || row->int_op == NAT_INT_TRUNC_DIV || row->int_op == NAT_INT_REMAINDER ||
                 row->int_op == NAT_INT_FMOD;
  if (divides && (n->arg_count < 2 || !positive_int(&n->args[1]))) return false;
  for (uint32_t i = 0; i < row->arity && i < n->arg_count; ++i) {
    const ait_arg *a = &n->args[i];
    if (a->kind == AIT_ARG_FLOAT) return false;
    if (nat_is_tensor(r, a) && !int_holds(r->values[a->as.value].dtype)) return false;
  }
  return true;
}

/* Parameters beyond the operands that the programs do not know. */
static bool parameters_known(const ait_region_node *n) {
  double v;
  if (is_op(n, "gelu")) {
    return n->arg_count < 2 || n->args[1].kind == AIT_ARG_NONE ||
           (n->args[1].kind == AIT_ARG_STRING && (!strcmp(n->args[1].as.string, "none") || !strcmp(n->args[1].as.string, "tanh")));
  }
  bool scalars = is_op(n, "softplus") || is_op(n, "elu") || is_op(n, "leaky_relu");
  for (uint32_t i = 1; scalars && i < n->arg_count; ++i) {
    if (!nat_number(&n->args[i], &v)) return false;
  }
  return true;
}

nat_class nat_ew_class(const ait_region *region, const ait_region_node *n) {
  const ew_row *row = row_of(n->op);
  if (row == NULL || n->result_count != 1 || n->results[0] == AIT_NO_INDEX || n->arg_count < row->arity) return NAT_CLASS_NONE;
  const ait_region_value *result = &region->values[n->results[0]];
  if (result->type != AIT_TYPE_TENSOR || result->rank < 0) return NAT_CLASS_NONE;
  uint32_t tensors = 0;
  for (uint32_t i = 0; i < row->arity; ++i) {
    const ait_arg *a = &n->args[i];
    if (nat_is_tensor(region, a)) {
      tensors++;
    } else if (!is_scalar(a) && !(is_op(n, "clamp") && i > 0 && a->kind == AIT_ARG_NONE)) {
      return NAT_CLASS_NONE;
    }
  }
  if (tensors == 0 || !parameters_known(n)) return NAT_CLASS_NONE;
  if (float_class(region, n, row, result->dtype)) return NAT_CLASS_FLOAT;
  return int_class(region, n, row, result->dtype) ? NAT_CLASS_INT : NAT_CLASS_NONE;
}

/* ---- building --------------------------------------------------------------------------------------------------------------------*/
typedef struct builder {
  nat_lower *l;
  nat_group *g;
  uint32_t node;
  uint32_t absorbed;
  bool full;
} builder;

/* Temporaries: a node alone needs no more than OWN; a program may need LIMIT, which leaves registers for all inputs. */
enum { PEAK_OWN = 4, PEAK_LIMIT = AIT_EW_MAX_REGISTERS - AIT_EW_MAX_INPUTS };

static uint32_t add_input(builder *b, uint32_t value) {
  nat_group *g = b->g;
  for (uint32_t i = 0; i < g->input_count; ++i) {
    if (g->inputs[i] == value) return i;
  }
  if (g->input_count == NAT_GROUP_INPUTS) {
    b->full = true;
    return 0;
  }
  g->inputs[g->input_count] = value;
  return g->input_count++;
}

static uint32_t add_code(builder *b, nat_code code) {
  nat_group *g = b->g;
  if (g->code_count == NAT_GROUP_CODES) {
    b->full = true;
    return 0;
  }
  g->codes[g->code_count] = code;
  return NAT_GROUP_INPUTS + g->code_count++;
}

static nat_code code_of(uint32_t op, uint32_t a, uint32_t b, uint32_t c) {
  return (nat_code){.op = op, .a = a, .b = b, .c = c, .dim = NAT_NONE};
}

static void set_constant(nat_code *code, const ait_arg *a) {
  double v = 0;
  if (a->kind == AIT_ARG_DIM) {
    code->dim = a->as.dim;
  } else {
    (void)nat_number(a, &v);
    code->p = v;
    code->i = a->kind == AIT_ARG_INT ? a->as.i : a->kind == AIT_ARG_BOOL ? a->as.b : (int64_t)v;
  }
}

static uint32_t add_constant(builder *b, const ait_arg *a) {
  nat_code code = code_of(NAT_CODE_CONST, 0, 0, 0);
  set_constant(&code, a);
  return add_code(b, code);
}

static uint32_t occurrences(const ait_region_node *n, uint32_t value) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->arg_count; ++i) count += n->args[i].kind == AIT_ARG_VALUE && n->args[i].as.value == value;
  return count;
}

/* An intermediate result that a register holds exactly as memory would. */
static bool register_holds(nat_class class, ait_dtype d) { return d == AIT_BOOL || d == (class == NAT_CLASS_FLOAT ? AIT_F32 : AIT_I64); }

/* Constants become inputs or registers, too, and at most so many of all can be live: this counts safely. */
static bool fits(const nat_group *into, const nat_group *from) {
  uint32_t constants = 0;
  for (uint32_t i = 0; i < into->code_count; ++i) constants += into->codes[i].op == NAT_CODE_CONST;
  for (uint32_t i = 0; i < from->code_count; ++i) constants += from->codes[i].op == NAT_CODE_CONST;
  return into->input_count + from->input_count + constants + 4 <= NAT_GROUP_INPUTS &&
         into->code_count + from->code_count + 6 <= NAT_GROUP_CODES;
}

static bool can_absorb(const builder *b, uint32_t value) {
  const nat_lower *l = b->l;
  const ait_region_node *n = &l->region->nodes[b->node];
  uint32_t def = l->def_node[value];
  if (!l->fuse || def == NAT_NONE || l->groups[def] == NULL || l->owner[def] != def) return false;
  if (l->uses[value] != occurrences(n, value) || l->is_static[value] != l->is_static[n->results[0]]) return false;
  if (l->groups[def]->class != b->g->class || !register_holds(b->g->class, nat_value(l, value)->dtype)) return false;
  if (l->groups[def]->peak + b->absorbed > PEAK_LIMIT) return false;
  return nat_same_dims(l->region, value, n->results[0]) && fits(b->g, l->groups[def]);
}

/* Takes over the program that makes `value`; returns the register of its result. */
static uint32_t absorb(builder *b, uint32_t value) {
  nat_lower *l = b->l;
  uint32_t def = l->def_node[value];
  const nat_group *from = l->groups[def];
  uint32_t inputs[NAT_GROUP_INPUTS], result = 0, base = b->g->code_count;
  for (uint32_t i = 0; i < from->input_count; ++i) inputs[i] = add_input(b, from->inputs[i]);
  for (uint32_t i = 0; i < from->code_count; ++i) {
    nat_code code = from->codes[i];
    uint32_t *regs[] = {&code.a, &code.b, &code.c};
    for (int k = 0; k < 3; ++k) *regs[k] = *regs[k] < NAT_GROUP_INPUTS ? inputs[*regs[k]] : *regs[k] + base;
    result = add_code(b, code);
  }
  if (b->g->peak < from->peak + b->absorbed) b->g->peak = from->peak + b->absorbed;
  b->absorbed++;
  l->owner[def] = b->node;
  l->groups[def] = NULL;
  return result;
}

typedef struct operand_map {
  uint32_t value[3], reg[3];
  uint32_t count;
} operand_map;

static uint32_t tensor_register(builder *b, operand_map *map, uint32_t value) {
  for (uint32_t i = 0; i < map->count; ++i) {
    if (map->value[i] == value) return map->reg[i];
  }
  uint32_t reg = can_absorb(b, value) ? absorb(b, value) : add_input(b, value);
  map->value[map->count] = value;
  map->reg[map->count++] = reg;
  return reg;
}

static uint32_t operand(builder *b, operand_map *map, uint32_t arg) {
  const ait_arg *a = &b->l->region->nodes[b->node].args[arg];
  return a->kind == AIT_ARG_VALUE ? tensor_register(b, map, a->as.value) : add_constant(b, a);
}

static double parameter(const ait_region_node *n, uint32_t arg, double when_none) {
  double v;
  return arg < n->arg_count && nat_number(&n->args[arg], &v) ? v : when_none;
}

static void build_clamp(builder *b, operand_map *map) {
  const ait_region_node *n = &b->l->region->nodes[b->node];
  const ait_arg *low = &n->args[1], *high = &n->args[2];
  bool is_float = b->g->class == NAT_CLASS_FLOAT;
  double p = -INFINITY, q = INFINITY;
  uint32_t x = operand(b, map, 0);
  if (is_float && (low->kind == AIT_ARG_NONE || nat_number(low, &p)) && (high->kind == AIT_ARG_NONE || nat_number(high, &q))) {
    nat_code code = code_of(AIT_EW_CLAMP, x, 0, 0);
    code.p = p;
    code.q = q;
    (void)add_code(b, code);
    return;
  }
  if (low->kind != AIT_ARG_NONE)
    x = add_code(b, code_of(is_float ? (uint32_t)AIT_EW_MAX : (uint32_t)NAT_INT_MAX, x, operand(b, map, 1), 0));
  if (high->kind != AIT_ARG_NONE)
    x = add_code(b, code_of(is_float ? (uint32_t)AIT_EW_MIN : (uint32_t)NAT_INT_MIN, x, operand(b, map, 2), 0));
  if (x < NAT_GROUP_INPUTS) (void)add_code(b, code_of(is_float ? (uint32_t)AIT_EW_COPY : (uint32_t)NAT_INT_COPY, x, 0, 0));
}

static void build_unary(builder *b, operand_map *map, const ew_row *row) {
  const ait_region_node *n = &b->l->region->nodes[b->node];
  nat_code code = code_of(row->float_op, operand(b, map, 0), 0, 0);
  if (is_op(n, "gelu") && n->arg_count > 1 && n->args[1].kind == AIT_ARG_STRING && strcmp(n->args[1].as.string, "tanh") == 0) {
    code.op = AIT_EW_GELU_TANH;
  } else if (is_op(n, "leaky_relu")) {
    code.p = parameter(n, 1, 0.01);
  } else if (is_op(n, "softplus")) {
    code.p = parameter(n, 1, 1);
    code.q = parameter(n, 2, 20);
  } else if (is_op(n, "elu")) {
    double alpha = parameter(n, 1, 1), scale = parameter(n, 2, 1), input_scale = parameter(n, 3, 1);
    if (input_scale != 1) {
      nat_code scaled = code_of(AIT_EW_MULC, code.a, 0, 0);
      scaled.p = input_scale;
      code.a = add_code(b, scaled);
    }
    code.p = alpha * scale;
    code.q = scale / input_scale;
  } else if (is_op(n, "cast") && b->l->region->values[n->results[0]].dtype == AIT_BOOL) {
    code.op = AIT_EW_NEC;
  }
  (void)add_code(b, code);
}

static bool is_bool_op(const builder *b) { return nat_value(b->l, b->l->region->nodes[b->node].results[0])->dtype == AIT_BOOL; }

static void build_float(builder *b, operand_map *map, const ew_row *row) {
  const ait_region_node *n = &b->l->region->nodes[b->node];
  if (row->arity == 1) {
    build_unary(b, map, row);
    return;
  }
  if (row->arity == 2) {
    bool left = n->args[0].kind != AIT_ARG_VALUE, right = n->args[1].kind != AIT_ARG_VALUE;
    uint32_t constant_op = left ? row->left_constant : right ? row->right_constant : EW_NONE;
    double v;
    if (constant_op == AIT_EW_POWC && !nat_number(&n->args[1], &v)) constant_op = EW_NONE;
    if (constant_op != EW_NONE) {
      nat_code code = code_of(constant_op, operand(b, map, left ? 1 : 0), 0, 0);
      set_constant(&code, &n->args[left ? 0 : 1]);
      if (constant_op == AIT_EW_POWC && code.p == 2) code.op = AIT_EW_SQUARE;
      if (constant_op == AIT_EW_POWC && code.p == 0.5) code.op = AIT_EW_SQRT;
      (void)add_code(b, code);
      return;
    }
  }
  uint32_t x = operand(b, map, 0), y = operand(b, map, 1), z = row->arity == 3 ? operand(b, map, 2) : 0;
  (void)add_code(b, code_of(row->float_op, x, y, z));
}

static void build_int(builder *b, operand_map *map, const ew_row *row) {
  uint32_t op = row->int_op;
  if (op == NAT_INT_BIT_NOT && is_bool_op(b)) op = NAT_INT_NOT;
  uint32_t x = operand(b, map, 0), y = row->arity > 1 ? operand(b, map, 1) : 0, z = row->arity > 2 ? operand(b, map, 2) : 0;
  if (op == NAT_INT_COPY && is_bool_op(b)) {
    nat_code zero = code_of(NAT_CODE_CONST, 0, 0, 0);
    y = add_code(b, zero);
    op = NAT_INT_NE;
  }
  (void)add_code(b, code_of(op, x, y, z));
}

ait_status nat_ew_group(nat_lower *l, uint32_t node) {
  const ait_region_node *n = &l->region->nodes[node];
  const ew_row *row = row_of(n->op);
  nat_group *g = AIT_ARENA_NEW(&l->arena, nat_group);
  if (g == NULL) return AIT_OOM();
  g->class = nat_ew_class(l->region, n);
  g->peak = PEAK_OWN;
  builder b = {.l = l, .g = g, .node = node};
  operand_map map = {{0}, {0}, 0};
  if (is_op(n, "clamp")) {
    build_clamp(&b, &map);
  } else if (g->class == NAT_CLASS_FLOAT) {
    build_float(&b, &map, row);
  } else {
    build_int(&b, &map, row);
  }
  if (b.full) return ait_error(AIT_CODE_INTERNAL, "element-wise program of node '%s' outgrew its limits", n->name);
  l->groups[node] = g;
  return AIT_OK;
}

/* ---- activations of epilogues ------------------------------------------------------------------------------------------------------*/
static const struct {
  uint32_t op;
  ait_act act;
} acts[] = {
    {AIT_EW_RELU, AIT_ACT_RELU},           {AIT_EW_GELU, AIT_ACT_GELU},
    {AIT_EW_GELU_TANH, AIT_ACT_GELU_TANH}, {AIT_EW_SILU, AIT_ACT_SILU},
    {AIT_EW_SIGMOID, AIT_ACT_SIGMOID},     {AIT_EW_TANH, AIT_ACT_TANH},
    {AIT_EW_HARDSWISH, AIT_ACT_HARDSWISH}, {AIT_EW_HARDSIGMOID, AIT_ACT_HARDSIGMOID},
    {AIT_EW_MISH, AIT_ACT_MISH},
};

bool nat_ew_act(const ait_region *r, const ait_region_node *n, ait_act *act, float *p, float *q) {
  const ew_row *row = row_of(n->op);
  if (row == NULL || nat_ew_class(r, n) != NAT_CLASS_FLOAT || r->values[n->results[0]].dtype != AIT_F32) return false;
  *p = *q = 0;
  double low = -INFINITY, high = INFINITY;
  if (is_op(n, "clamp")) {
    if ((n->args[1].kind != AIT_ARG_NONE && !nat_number(&n->args[1], &low)) ||
        (n->args[2].kind != AIT_ARG_NONE && !nat_number(&n->args[2], &high))) {
      return false;
    }
    *act = AIT_ACT_CLAMP;
    *p = (float)low;
    *q = (float)high;
    return true;
  }
  if (is_op(n, "leaky_relu")) {
    *act = AIT_ACT_LEAKY_RELU;
    *p = (float)parameter(n, 1, 0.01);
    return true;
  }
  uint32_t op = row->float_op;
  if (is_op(n, "gelu") && n->arg_count > 1 && n->args[1].kind == AIT_ARG_STRING && strcmp(n->args[1].as.string, "tanh") == 0)
    op = AIT_EW_GELU_TANH;
  for (size_t i = 0; i < AIT_COUNT(acts); ++i) {
    if (acts[i].op != op) continue;
    *act = acts[i].act;
    return true;
  }
  return false;
}
