/* Element-wise programs. */
#include "backends/native/prepare.h"

#include "backends/dims.h"

/* ---- the loop nest ---------------------------------------------------------------------------------------------------------------*/
/* The shape in the order in which dst lies, dims merged where all operands allow. */
typedef struct nest {
  int32_t rank;
  int64_t shape[AIT_MAX_RANK];
  int64_t strides[NAT_EW_INPUTS][AIT_MAX_RANK];
} nest;

static void make_nest(const nat_view *dst, const nat_view *inputs, int32_t count, nest *n) {
  int32_t order[AIT_MAX_RANK];
  nat_order_of(dst, order);
  n->rank = 0;
  for (int32_t k = 0; k < dst->rank; ++k) {
    int32_t d = order[k], last = n->rank - 1;
    if (dst->shape[d] == 1) continue;
    bool merges = last >= 0;
    for (int32_t i = 0; merges && i < count; ++i) merges = n->strides[i][last] == inputs[i].strides[d] * dst->shape[d];
    if (!merges) last = n->rank++;
    n->shape[last] = merges ? n->shape[last] * dst->shape[d] : dst->shape[d];
    for (int32_t i = 0; i < count; ++i) n->strides[i][last] = inputs[i].strides[d];
  }
  if (n->rank > 0) return;
  n->rank = 1;
  n->shape[0] = 1;
  for (int32_t i = 0; i < count; ++i) n->strides[i][0] = 0;
}

/* Beyond the ranks that kernels take, operands are copied to dst's own order: then everything merges. */
static ait_status fit_nest(nat_bind *b, const nat_view *dst, nat_view *inputs, int32_t count, int32_t limit, nest *n) {
  make_nest(dst, inputs, count, n);
  if (n->rank <= limit) return AIT_OK;
  int32_t order[AIT_MAX_RANK];
  nat_order_of(dst, order);
  for (int32_t i = 0; i < count; ++i) {
    nat_view dense;
    AIT_TRY(nat_dense(b, &inputs[i], order, &dense));
    inputs[i] = dense;
  }
  make_nest(dst, inputs, count, n);
  return n->rank <= limit ? AIT_OK : nat_error(b, AIT_CODE_UNSUPPORTED, "rank %d is too high", n->rank);
}

ait_status nat_emit_ew(nat_bind *b, ait_ew_f32 *e, const nat_view *inputs, const nat_view *dst) {
  nest n;
  nat_view fitted[NAT_EW_INPUTS];
  memcpy(fitted, inputs, (size_t)e->input_count * sizeof *inputs);
  AIT_TRY(fit_nest(b, dst, fitted, e->input_count, AIT_EW_MAX_RANK, &n));
  e->rank = n.rank;
  memcpy(e->shape, n.shape, sizeof e->shape);
  for (int32_t i = 0; i < e->input_count; ++i) {
    e->inputs[i].dtype = fitted[i].dtype;
    memcpy(e->inputs[i].strides, n.strides[i], sizeof e->inputs[i].strides);
  }
  e->output_count = 1;
  e->outputs[0].dtype = dst->dtype;
  ait_ew_f32_prepare(e);
  double elements = (double)nat_count(dst);
  nat_work work = {b->kernels->elementwise_f32, "elementwise", ait_ew_f32_units(e),
                   elements * (0.1 * e->input_count + 0.15 * e->instruction_count), ait_ew_f32_scratch(b->kernels, e)};
  ait_ew_f32 *args;
  AIT_TRY(nat_emit(b, &work, e, sizeof *e, &args));
  for (int32_t i = 0; i < e->input_count; ++i) AIT_TRY(NAT_POINTER(b, args->inputs[i].data, &fitted[i]));
  return NAT_POINTER(b, args->outputs[0].data, dst);
}

/* ---- where the result lies -------------------------------------------------------------------------------------------------------*/
static bool is_dense(const nat_view *v, int32_t order[AIT_MAX_RANK]) {
  nat_order_of(v, order);
  return nat_has_order(v, order);
}

/* Another operand that reads the same memory in another way forbids writing there. */
static bool only_reader(const nat_view *operands, uint32_t count, uint32_t i) {
  for (uint32_t k = 0; k < count; ++k) {
    if (k == i || operands[k].root != operands[i].root) continue;
    bool same = operands[k].offset == operands[i].offset && nat_same_shape(&operands[k], &operands[i]);
    for (int32_t d = 0; same && d < operands[i].rank; ++d) same = operands[k].strides[d] == operands[i].strides[d];
    if (!same) return false;
  }
  return true;
}

/* As the first operand that fills the whole shape; its memory itself when this is the last use of it. */
static ait_status place_result(nat_bind *b, const nat_step *s, const nat_view *operands, uint32_t count, nat_view *y) {
  int32_t order[AIT_MAX_RANK], plain[AIT_MAX_RANK];
  bool row_major = (b->program->flags & NAT_NCHW) != 0, found = false;
  AIT_TRY(nat_out_shape(b, s, 0, y));
  nat_order_row_major(y->rank, plain);
  for (uint32_t i = 0; i < count; ++i) {
    int32_t own[AIT_MAX_RANK];
    if (!nat_has_in(b, s, i) || !nat_same_shape(&operands[i], y) || !is_dense(&operands[i], own) ||
        (row_major && !nat_has_order(&operands[i], plain)))
      continue;
    if (!found) memcpy(order, own, sizeof order);
    if (found && !nat_has_order(&operands[i], order)) continue;
    found = true;
    if (operands[i].dtype == y->dtype && nat_wish(b, s, 0) == NULL && nat_dies_here(b, s, i, &operands[i]) &&
        only_reader(operands, count, i)) {
      *y = operands[i];
      return nat_out_view(b, s, 0, y);
    }
  }
  if (!found) nat_order_row_major(y->rank, order);
  return nat_out(b, s, 0, order, false, y);
}

static ait_status read_operands(nat_bind *b, const nat_step *s, nat_view *operands, nat_view *wide, nat_view *shape) {
  AIT_TRY(nat_out_shape(b, s, 0, shape));
  if (s->in_count > NAT_EW_INPUTS) return nat_error(b, AIT_CODE_INVALID_MODEL, "too many operands");
  for (uint32_t i = 0; i < s->in_count; ++i) {
    AIT_TRY(nat_in(b, s, i, &operands[i]));
    if (!nat_broadcast(&operands[i], shape->rank, shape->shape, &wide[i])) {
      return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "operands of these shapes cannot be combined");
    }
  }
  return AIT_OK;
}

static const nat_code *codes_of(const nat_bind *b, const nat_step *s) { return b->program->codes + s->code_begin; }

static ait_status dim_value(const nat_bind *b, const nat_code *c, int64_t *out) {
  if (c->dim < b->region->dim_count && ait_dim_eval(b->region->dims, b->plan->symbols, c->dim, out)) return AIT_OK;
  return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "a size in it cannot be computed");
}

/* ---- float programs --------------------------------------------------------------------------------------------------------------*/
typedef struct assembler {
  ait_ew_f32 e;
  nat_view inputs[NAT_EW_INPUTS];
  uint8_t reg[AIT_EW_MAX_INSTRUCTIONS];       /* of each code */
  uint32_t last_use[AIT_EW_MAX_INSTRUCTIONS]; /* code that reads it last */
} assembler;

static bool reads(const nat_code *c, int k) {
  int32_t count = c->op == NAT_CODE_CONST ? 0 : ait_ew_operands((ait_ew_op)c->op);
  return k < count;
}

static ait_status check_codes(nat_bind *b, const nat_step *s, assembler *m) {
  const nat_code *codes = codes_of(b, s);
  if (s->code_count == 0 || s->code_count > AIT_EW_MAX_INSTRUCTIONS)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "program of %u codes", s->code_count);
  for (uint32_t i = 0; i < s->code_count; ++i) {
    const nat_code *c = &codes[i];
    if (c->op != NAT_CODE_CONST && c->op >= AIT_EW_OP_COUNT) return nat_error(b, AIT_CODE_INVALID_MODEL, "unknown code");
    const uint32_t regs[] = {c->a, c->b, c->c};
    for (int k = 0; k < 3; ++k) {
      if (!reads(c, k)) continue;
      if (regs[k] >= s->in_count + i) return nat_error(b, AIT_CODE_INVALID_MODEL, "register used before it is set");
      if (regs[k] >= s->in_count) m->last_use[regs[k] - s->in_count] = i;
    }
  }
  return AIT_OK;
}

/* A constant is an input with one element. */
static ait_status constant_input(nat_bind *b, assembler *m, const nat_code *c, const nat_view *shape, uint8_t *out_reg) {
  float *element = nat_keep(b, sizeof(float));
  if (element == NULL) return AIT_OOM();
  if (m->e.input_count == NAT_EW_INPUTS) return nat_error(b, AIT_CODE_INVALID_MODEL, "too many constants");
  *element = (float)c->p;
  if (c->dim != NAT_NONE) {
    int64_t v;
    AIT_TRY(dim_value(b, c, &v));
    *element = (float)v;
  }
  nat_view *v = &m->inputs[m->e.input_count];
  *v = *shape;
  v->bound = true;
  v->dtype = AIT_F32;
  v->offset = 0;
  memset(v->strides, 0, sizeof v->strides);
  *out_reg = (uint8_t)m->e.input_count++;
  return nat_const(b, element, sizeof *element, &v->root);
}

static int free_register(const bool *used, int32_t from) {
  for (int32_t r = from; r < AIT_EW_MAX_REGISTERS; ++r) {
    if (!used[r]) return r;
  }
  return -1;
}

static ait_status assemble(nat_bind *b, const nat_step *s, assembler *m) {
  const nat_code *codes = codes_of(b, s);
  bool used[AIT_EW_MAX_REGISTERS] = {false};
  int32_t inputs = m->e.input_count;
  for (uint32_t i = 0; i < s->code_count; ++i) {
    const nat_code *c = &codes[i];
    if (c->op == NAT_CODE_CONST) continue;
    ait_ew_instruction *t = &m->e.code[m->e.instruction_count++];
    *t = (ait_ew_instruction){.op = (uint8_t)c->op, .p = (float)c->p, .q = (float)c->q};
    if (c->dim != NAT_NONE) {
      int64_t v;
      AIT_TRY(dim_value(b, c, &v));
      t->p = (float)v;
    }
    const uint32_t regs[] = {c->a, c->b, c->c};
    uint8_t *to[] = {&t->a, &t->b, &t->c};
    for (int k = 0; k < 3; ++k) {
      if (!reads(c, k)) continue;
      *to[k] = regs[k] < s->in_count ? (uint8_t)regs[k] : m->reg[regs[k] - s->in_count];
      bool dies = regs[k] >= s->in_count && m->last_use[regs[k] - s->in_count] == i;
      if (dies && *to[k] >= inputs) used[*to[k]] = false;
    }
    int r = free_register(used, inputs);
    if (r < 0) return nat_error(b, AIT_CODE_INVALID_MODEL, "program needs too many registers");
    used[r] = true;
    t->dst = m->reg[i] = (uint8_t)r;
    if (m->e.register_count <= r) m->e.register_count = r + 1;
  }
  m->e.outputs[0].reg = m->reg[s->code_count - 1];
  return AIT_OK;
}

static bool float_program_reads(ait_dtype d) {
  switch (d) {
    case AIT_F32:
    case AIT_F16:
    case AIT_BF16:
    case AIT_BOOL:
    case AIT_U8:
    case AIT_I8:
    case AIT_I16:
    case AIT_I32:
    case AIT_I64: return true;
    default: return false;
  }
}

ait_status nat_prepare_ew(nat_bind *b, const nat_step *s) {
  assembler m = {0};
  nat_view operands[NAT_EW_INPUTS], shape, y;
  AIT_TRY(read_operands(b, s, operands, m.inputs, &shape));
  AIT_TRY(check_codes(b, s, &m));
  bool known = float_program_reads(shape.dtype);
  for (uint32_t i = 0; i < s->in_count; ++i) known = known && float_program_reads(operands[i].dtype);
  if (!known) return nat_error(b, AIT_CODE_INVALID_MODEL, "dtype of an operand");
  m.e.input_count = (int32_t)s->in_count;
  for (uint32_t i = 0; i < s->code_count; ++i) {
    if (codes_of(b, s)[i].op == NAT_CODE_CONST) AIT_TRY(constant_input(b, &m, &codes_of(b, s)[i], &shape, &m.reg[i]));
  }
  m.e.register_count = m.e.input_count;
  AIT_TRY(assemble(b, s, &m));
  if (m.e.instruction_count == 0) return nat_error(b, AIT_CODE_INVALID_MODEL, "program without instructions");
  AIT_TRY(place_result(b, s, operands, s->in_count, &y));
  if (nat_count(&y) == 0) return AIT_OK;
  return nat_emit_ew(b, &m.e, m.inputs, &y);
}

/* ---- integer programs ------------------------------------------------------------------------------------------------------------*/
enum { INT_BLOCK = 256, INT_RANK = 6, INT_REGISTERS = NAT_EW_INPUTS + AIT_EW_MAX_INSTRUCTIONS };

static const uint8_t int_operands[NAT_INT_OP_COUNT] = {
#define NAT_INT(name, operands, expression) operands,
#include "backends/native/int_ops.inc"
#undef NAT_INT
};

typedef struct int_code {
  uint32_t op, a, b, c;
  int64_t constant;
} int_code;

typedef struct int_input {
  const void *data;
  ait_dtype dtype;
  int64_t strides[INT_RANK];
} int_input;

typedef struct int_args {
  int32_t rank;
  uint32_t input_count, code_count;
  int64_t shape[INT_RANK]; /* rows are the last dim */
  int_input inputs[NAT_EW_INPUTS];
  void *y;
  ait_dtype dtype;
  int_code codes[AIT_EW_MAX_INSTRUCTIONS];
} int_args;

static int64_t wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static void load_ints(int64_t *to, const void *data, ait_dtype dtype, int64_t offset, int64_t stride, int64_t count) {
#define LOAD(type) \
  for (int64_t i = 0; i < count; ++i) to[i] = (int64_t)((const type *)data)[offset + i * stride]
  switch (dtype) {
    case AIT_BOOL:
      for (int64_t i = 0; i < count; ++i) to[i] = ((const uint8_t *)data)[offset + i * stride] != 0;
      break;
    case AIT_U8: LOAD(uint8_t); break;
    case AIT_I8: LOAD(int8_t); break;
    case AIT_I16: LOAD(int16_t); break;
    case AIT_I32: LOAD(int32_t); break;
    default: LOAD(int64_t); break;
  }
#undef LOAD
}

static void store_ints(void *data, ait_dtype dtype, int64_t offset, const int64_t *from, int64_t count) {
#define STORE(type) \
  for (int64_t i = 0; i < count; ++i) ((type *)data)[offset + i] = (type)from[i]
  switch (dtype) {
    case AIT_BOOL:
      for (int64_t i = 0; i < count; ++i) ((uint8_t *)data)[offset + i] = from[i] != 0;
      break;
    case AIT_U8: STORE(uint8_t); break;
    case AIT_I8: STORE(int8_t); break;
    case AIT_I16: STORE(int16_t); break;
    case AIT_I32: STORE(int32_t); break;
    default: STORE(int64_t); break;
  }
#undef STORE
}

static void run_code(const int_code *code, int64_t (*regs)[INT_BLOCK], int64_t *restrict to, int64_t count) {
  if (code->op == NAT_CODE_CONST) {
    for (int64_t i = 0; i < count; ++i) to[i] = code->constant;
    return;
  }
  const int64_t *x = regs[code->a], *y = regs[code->b], *z = regs[code->c];
  switch ((nat_int_op)code->op) {
#define NAT_INT(name, operands, expression) \
  case NAT_INT_##name:                      \
    for (int64_t i = 0; i < count; ++i) {   \
      int64_t a = x[i], b = y[i], c = z[i]; \
      AIT_UNUSED(b), AIT_UNUSED(c);         \
      to[i] = expression;                   \
    }                                       \
    break;
#include "backends/native/int_ops.inc"
#undef NAT_INT
    case NAT_INT_OP_COUNT: break;
  }
}

static void int_row(const int_args *a, int64_t row, int64_t (*regs)[INT_BLOCK]) {
  int64_t offsets[NAT_EW_INPUTS] = {0}, rest = row, columns = a->shape[a->rank - 1];
  for (int32_t d = a->rank - 2; d >= 0; --d) {
    int64_t i = rest % a->shape[d];
    rest /= a->shape[d];
    for (uint32_t k = 0; k < a->input_count; ++k) offsets[k] += i * a->inputs[k].strides[d];
  }
  for (int64_t at = 0; at < columns; at += INT_BLOCK) {
    int64_t count = columns - at < INT_BLOCK ? columns - at : INT_BLOCK;
    for (uint32_t k = 0; k < a->input_count; ++k) {
      const int_input *in = &a->inputs[k];
      int64_t stride = in->strides[a->rank - 1];
      load_ints(regs[k], in->data, in->dtype, offsets[k] + at * stride, stride, count);
    }
    for (uint32_t k = 0; k < a->code_count; ++k) run_code(&a->codes[k], regs, regs[a->input_count + k], count);
    store_ints(a->y, a->dtype, row * columns + at, regs[a->input_count + a->code_count - 1], count);
  }
}

static void int_program(const void *args, int64_t begin, int64_t end, void *scratch) {
  const int_args *a = args;
  for (int64_t row = begin; row < end; ++row) int_row(a, row, (int64_t(*)[INT_BLOCK])scratch);
}

static bool int_program_reads(ait_dtype d) {
  return d == AIT_BOOL || d == AIT_U8 || d == AIT_I8 || d == AIT_I16 || d == AIT_I32 || d == AIT_I64;
}

static bool divides(uint32_t op) {
  return op == NAT_INT_FLOOR_DIV || op == NAT_INT_TRUNC_DIV || op == NAT_INT_REMAINDER || op == NAT_INT_FMOD;
}

static ait_status int_codes(nat_bind *b, const nat_step *s, int_args *a) {
  if (s->code_count == 0 || s->code_count > AIT_EW_MAX_INSTRUCTIONS)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "program of %u codes", s->code_count);
  a->code_count = s->code_count;
  for (uint32_t i = 0; i < s->code_count; ++i) {
    const nat_code *c = &codes_of(b, s)[i];
    int_code *t = &a->codes[i];
    *t = (int_code){.op = c->op, .constant = c->i};
    if (c->op == NAT_CODE_CONST) {
      if (c->dim != NAT_NONE) AIT_TRY(dim_value(b, c, &t->constant));
      continue;
    }
    if (c->op >= NAT_INT_OP_COUNT) return nat_error(b, AIT_CODE_INVALID_MODEL, "unknown code");
    const uint32_t regs[] = {c->a, c->b, c->c};
    uint32_t *to[] = {&t->a, &t->b, &t->c};
    for (int k = 0; k < int_operands[c->op]; ++k) {
      if (regs[k] >= s->in_count + i) return nat_error(b, AIT_CODE_INVALID_MODEL, "register used before it is set");
      *to[k] = regs[k];
    }
    if (!divides(c->op)) continue;
    const int_code *divisor = c->b >= s->in_count ? &a->codes[c->b - s->in_count] : NULL;
    if (divisor == NULL || divisor->op != NAT_CODE_CONST || divisor->constant < 1)
      return nat_error(b, AIT_CODE_INVALID_MODEL, "division by that");
  }
  return AIT_OK;
}

ait_status nat_prepare_ew_int(nat_bind *b, const nat_step *s) {
  nat_view operands[NAT_EW_INPUTS], wide[NAT_EW_INPUTS], shape, y;
  int_args a = {.input_count = s->in_count}, *args;
  nest n;
  AIT_TRY(read_operands(b, s, operands, wide, &shape));
  AIT_TRY(int_codes(b, s, &a));
  bool known = int_program_reads(shape.dtype);
  for (uint32_t i = 0; i < s->in_count; ++i) known = known && int_program_reads(operands[i].dtype);
  if (!known) return nat_error(b, AIT_CODE_INVALID_MODEL, "dtype of an operand");
  AIT_TRY(place_result(b, s, operands, s->in_count, &y));
  if (nat_count(&y) == 0) return AIT_OK;
  AIT_TRY(fit_nest(b, &y, wide, (int32_t)s->in_count, INT_RANK, &n));
  a.rank = n.rank;
  a.dtype = y.dtype;
  memcpy(a.shape, n.shape, sizeof a.shape);
  for (uint32_t i = 0; i < s->in_count; ++i) {
    a.inputs[i].dtype = wide[i].dtype;
    memcpy(a.inputs[i].strides, n.strides[i], sizeof a.inputs[i].strides);
  }
  int64_t rows = nat_count(&y) / n.shape[n.rank - 1];
  nat_work work = {int_program, "elementwise integer", rows, (double)nat_count(&y) * (0.5 * s->in_count + 0.5 * s->code_count),
                   (size_t)(s->in_count + s->code_count) * INT_BLOCK * sizeof(int64_t)};
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  for (uint32_t i = 0; i < s->in_count; ++i) AIT_TRY(NAT_POINTER(b, args->inputs[i].data, &wide[i]));
  return NAT_POINTER(b, args->y, &y);
}
