/* Evaluation of symbolic sizes, above and below the neck. */
#include "tensor/tensor.h"

/* Nesting and total work that an expression may need; larger ones come from hostile tables only. */
enum { DEPTH_LIMIT = 256, WORK_LIMIT = 20000 };

typedef struct evaluation {
  const ait_dim_expr *dims;
  const int64_t *symbols;
  int work;
} evaluation;

static int64_t floordiv(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

static bool power(int64_t base, int64_t exponent, int64_t *out) {
  if (exponent < 0) return false;
  *out = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    if (base == 0 || base == 1 || base == -1) {
      *out = base == -1 && exponent % 2 == 0 ? 1 : base;
      return true;
    }
    if (ait_mul_overflows(*out, base, out)) return false;
  }
  return true;
}

static bool divide(ait_dim_op op, int64_t a, int64_t b, int64_t *out) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  int64_t q = floordiv(a, b);
  if (op == AIT_DIM_FLOORDIV) *out = q;
  else if (op == AIT_DIM_CEILDIV) *out = q + (a % b != 0);
  else *out = a - q * b;
  return true;
}

static bool apply(ait_dim_op op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
    case AIT_DIM_ADD: return !ait_add_overflows(a, b, out);
    case AIT_DIM_SUB: return !__builtin_sub_overflow(a, b, out);
    case AIT_DIM_MUL: return !ait_mul_overflows(a, b, out);
    case AIT_DIM_FLOORDIV:
    case AIT_DIM_CEILDIV:
    case AIT_DIM_MOD: return divide(op, a, b, out);
    case AIT_DIM_MIN: *out = a < b ? a : b; return true;
    case AIT_DIM_MAX: *out = a > b ? a : b; return true;
    case AIT_DIM_POW: return power(a, b, out);
    default: return false;
  }
}

static bool evaluate(evaluation *e, ait_dim d, int depth, int64_t *out) {
  const ait_dim_expr *x = &e->dims[d];
  if (depth == 0 || --e->work < 0) return false;
  if (x->op == AIT_DIM_CONST) {
    *out = x->value;
    return true;
  }
  if (x->op == AIT_DIM_UNKNOWN) return false;
  if (x->op == AIT_DIM_SYMBOL) {
    *out = e->symbols[x->a];
    return *out != INT64_MIN;
  }
  int64_t a, b;
  return evaluate(e, x->a, depth - 1, &a) && evaluate(e, x->b, depth - 1, &b) && apply(x->op, a, b, out);
}

bool ait_dim_eval(const ait_dim_expr *dims, const int64_t *symbol_values, ait_dim d, int64_t *out) {
  evaluation e = {.dims = dims, .symbols = symbol_values, .work = WORK_LIMIT};
  return evaluate(&e, d, DEPTH_LIMIT, out);
}
