/* Sizes as tensors: constants, or read from the shape of a value and computed. */
#include "export/onnx/emit.h"

enum { DEPTH_LIMIT = 500 };

static const ait_dim_expr *expr(const ox *x, ait_dim d) { return d < x->frame->region->dim_count ? &x->frame->region->dims[d] : NULL; }

bool oe_dim_const(const ox *x, ait_dim d, int64_t *out) {
  const ait_dim_expr *e = expr(x, d);
  if (!e || e->op != AIT_DIM_CONST) return false;
  *out = e->value;
  return true;
}

bool oe_dim_same(const ox *x, ait_dim a, ait_dim b) {
  int64_t va, vb;
  if (a == b) return true; /* expressions are hash-consed */
  return oe_dim_const(x, a, &va) && oe_dim_const(x, b, &vb) && va == vb;
}

/* A lower bound; INT64_MIN: none. */
static int64_t least(const ox *x, ait_dim d, int depth) {
  const ait_dim_expr *e = expr(x, d);
  int64_t a, b, r;
  if (!e || depth == 0) return INT64_MIN;
  switch (e->op) {
    case AIT_DIM_CONST: return e->value;
    case AIT_DIM_SYMBOL: return e->a < x->frame->region->symbol_count ? x->frame->region->symbols[e->a].min : INT64_MIN;
    case AIT_DIM_MOD: return least(x, e->b, depth - 1) > 0 ? 0 : INT64_MIN;
    case AIT_DIM_ADD:
    case AIT_DIM_MUL:
    case AIT_DIM_MIN:
    case AIT_DIM_MAX:
    case AIT_DIM_FLOORDIV:
    case AIT_DIM_CEILDIV:
      a = least(x, e->a, depth - 1);
      b = least(x, e->b, depth - 1);
      break;
    default: return INT64_MIN;
  }
  if (e->op == AIT_DIM_MAX) return a > b ? a : b;
  if (e->op == AIT_DIM_MIN) return a < b ? a : b;
  if (a == INT64_MIN || b == INT64_MIN) return INT64_MIN;
  if (e->op == AIT_DIM_ADD) return ait_add_overflows(a, b, &r) ? INT64_MIN : r;
  if (a < 0 || b < 0) return INT64_MIN;
  if (e->op == AIT_DIM_MUL) return ait_mul_overflows(a, b, &r) ? INT64_MIN : r;
  return b > 0 ? (e->op == AIT_DIM_CEILDIV && a > 0 ? 1 : 0) : INT64_MIN;
}

bool oe_dim_positive(const ox *x, ait_dim d) { return least(x, d, DEPTH_LIMIT) >= 1; }

/* ---- where sizes can be read -----------------------------------------------------------------------------------------------------*/
static void bind(ox *x, ait_dim d, oe_t t, int32_t axis) {
  const ait_dim_expr *e = expr(x, d);
  if (!e || e->op == AIT_DIM_CONST || !t.name) return;
  for (const oe_frame *f = x->frame; f; f = f->parent)
    if (f->sources[d].tensor.name) return;
  x->frame->sources[d] = (oe_source){t, axis};
}

void oe_bind_sizes(ox *x, oe_t t) {
  for (int32_t i = 0; t.shape && i < t.rank; ++i) bind(x, t.shape[i], t, i);
}
void oe_bind_scalar(ox *x, ait_dim d, oe_t t) { bind(x, d, t, -1); }

static const oe_source *source_of(const ox *x, ait_dim d) {
  for (const oe_frame *f = x->frame; f; f = f->parent)
    if (f->sources[d].tensor.name) return &f->sources[d];
  return NULL;
}

static oe_t read_source(ox *x, const oe_source *s) {
  if (s->axis < 0) return oe_reshape_to(x, oe_cast(x, s->tensor, AIT_I64), (const int64_t[]){1}, 1);
  oe_t out = OE(x, "Shape", AIT_I64, s->tensor);
  oe_int(x, "start", s->axis);
  oe_int(x, "end", s->axis + 1);
  return out;
}

/* ---- computing -------------------------------------------------------------------------------------------------------------------*/
static oe_t compute(ox *x, ait_dim d, int depth);

static oe_t floor_divide(ox *x, oe_t a, oe_t b, bool natural) {
  if (!natural) a = oe_same2(x, "Sub", a, oe_same2(x, "Mod", a, b)); /* ONNX truncates; Mod has the divisor's sign */
  return oe_same2(x, "Div", a, b);
}

static oe_t combine(ox *x, const ait_dim_expr *e, int depth) {
  oe_t a = compute(x, e->a, depth), b = compute(x, e->b, depth);
  bool natural = least(x, e->a, DEPTH_LIMIT) >= 0 && least(x, e->b, DEPTH_LIMIT) >= 1;
  switch (e->op) {
    case AIT_DIM_ADD: return oe_same2(x, "Add", a, b);
    case AIT_DIM_SUB: return oe_same2(x, "Sub", a, b);
    case AIT_DIM_MUL: return oe_same2(x, "Mul", a, b);
    case AIT_DIM_MIN: return oe_same2(x, "Min", a, b);
    case AIT_DIM_MAX: return oe_same2(x, "Max", a, b);
    case AIT_DIM_MOD: return oe_same2(x, "Mod", a, b);
    case AIT_DIM_POW: return oe_same2(x, "Pow", a, b);
    case AIT_DIM_FLOORDIV: return floor_divide(x, a, b, natural);
    default: return oe_same1(x, "Neg", floor_divide(x, oe_same1(x, "Neg", a), b, false)); /* CEILDIV */
  }
}

/* Does the expression hold the symbol d in exactly one place, under sums and products with constants? Then it can be solved for it. */
static bool solve(ox *x, ait_dim whole, ait_dim d, oe_t value, oe_t *out, int depth) {
  const ait_dim_expr *e = expr(x, whole);
  int64_t c;
  if (whole == d) {
    *out = value;
    return true;
  }
  if (!e || depth == 0 || (e->op != AIT_DIM_ADD && e->op != AIT_DIM_MUL && e->op != AIT_DIM_SUB)) return false;
  bool left = oe_dim_const(x, e->a, &c);
  if (!left && !oe_dim_const(x, e->b, &c)) return false;
  ait_dim inner = left ? e->b : e->a;
  if (e->op == AIT_DIM_MUL && c == 0) return false;
  if (!value.name) return solve(x, inner, d, value, out, depth - 1); /* only asking */
  oe_t number = oe_list1(x, c);
  if (e->op == AIT_DIM_SUB && left) value = oe_same2(x, "Sub", number, value);
  else value = oe_same2(x, e->op == AIT_DIM_ADD ? "Sub" : e->op == AIT_DIM_SUB ? "Add" : "Div", value, number);
  return solve(x, inner, d, value, out, depth - 1);
}

static oe_t solve_for(ox *x, ait_dim d) {
  oe_t out = oe_none();
  for (ait_dim other = 0; other < x->frame->region->dim_count; ++other) {
    const oe_source *s = source_of(x, other);
    if (!s || !solve(x, other, d, oe_none(), &out, DEPTH_LIMIT)) continue;
    if (solve(x, other, d, read_source(x, s), &out, DEPTH_LIMIT)) return out;
  }
  oe_fail(x, "a size in it cannot be computed from what is known before it runs");
  return oe_none();
}

static oe_t compute(ox *x, ait_dim d, int depth) {
  const ait_dim_expr *e = expr(x, d);
  const oe_source *s;
  if (oe_failed(x)) return oe_none();
  if (!e || depth == 0) {
    oe_fail(x, "a size in it is too deep an expression");
    return oe_none();
  }
  if (e->op == AIT_DIM_CONST) return oe_list1(x, e->value);
  for (const oe_frame *f = x->frame; f; f = f->parent)
    if (f->dims[d].name) return f->dims[d];
  oe_t out;
  if ((s = source_of(x, d))) out = read_source(x, s);
  else if (e->op == AIT_DIM_SYMBOL || e->op == AIT_DIM_UNKNOWN) out = solve_for(x, d);
  else out = combine(x, e, depth - 1);
  x->frame->dims[d] = out;
  return out;
}

oe_t oe_dim(ox *x, ait_dim d) { return compute(x, d, DEPTH_LIMIT); }

oe_t oe_dims(ox *x, const ait_dim *dims, uint32_t count) {
  ait_arg args[AIT_MAX_RANK];
  for (uint32_t i = 0; i < count && i < AIT_MAX_RANK; ++i) args[i] = (ait_arg){.kind = AIT_ARG_DIM, .as.dim = dims[i]};
  return oe_ints_tensor(x, args, count);
}
