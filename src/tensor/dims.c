/* Values of symbolic sizes. Below the neck too: a session binds its plan with them. */
#include "tensor/tensor.h"

static bool floor_divide(int64_t a, int64_t b, int64_t *out) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  int64_t q = a / b;
  *out = q - (a % b != 0 && (a < 0) != (b < 0));
  return true;
}

static bool modulo(int64_t a, int64_t b, int64_t *out) {
  if (b == 0 || b == -1) return *out = 0, b != 0;
  int64_t r = a % b;
  *out = r != 0 && (r < 0) != (b < 0) ? r + b : r;
  return true;
}

static bool power(int64_t base, int64_t exponent, int64_t *out) {
  if (exponent < 0) return false;
  int64_t result = 1;
  for (;;) { /* by squaring: at most 63 rounds */
    if (exponent & 1 && ait_mul_overflows(result, base, &result)) return false;
    exponent >>= 1;
    if (exponent == 0) break;
    if (ait_mul_overflows(base, base, &base)) return false;
  }
  *out = result;
  return true;
}

static bool combine(ait_dim_op op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
    case AIT_DIM_ADD: return !ait_add_overflows(a, b, out);
    case AIT_DIM_SUB: return !__builtin_sub_overflow(a, b, out);
    case AIT_DIM_MUL: return !ait_mul_overflows(a, b, out);
    case AIT_DIM_FLOORDIV: return floor_divide(a, b, out);
    case AIT_DIM_CEILDIV: {
      int64_t rest;
      return floor_divide(a, b, out) && modulo(a, b, &rest) && !ait_add_overflows(*out, (int64_t)(rest != 0), out);
    }
    case AIT_DIM_MOD: return modulo(a, b, out);
    case AIT_DIM_MIN: return *out = a < b ? a : b, true;
    case AIT_DIM_MAX: return *out = a > b ? a : b, true;
    case AIT_DIM_POW: return power(a, b, out);
    default: return false;
  }
}

/* Steps are counted because expressions share their parts: walking them as a tree can take exponential time. */
typedef struct eval_budget {
  int32_t steps, depth;
} eval_budget;

static bool eval(const ait_dim_expr *dims, const int64_t *symbols, ait_dim d, eval_budget *budget, int64_t *out) {
  const ait_dim_expr *e = &dims[d];
  int64_t a, b;
  if (budget->steps-- <= 0) return false;
  if (e->op == AIT_DIM_CONST) return *out = e->value, true;
  if (e->op == AIT_DIM_SYMBOL) return *out = symbols[e->a], symbols[e->a] != INT64_MIN;
  if (e->op == AIT_DIM_UNKNOWN || e->a >= d || e->b >= d || budget->depth <= 0) return false;
  budget->depth--;
  bool ok = eval(dims, symbols, e->a, budget, &a) && eval(dims, symbols, e->b, budget, &b);
  budget->depth++;
  return ok && combine(e->op, a, b, out);
}

bool ait_dim_eval(const ait_dim_expr *dims, const int64_t *symbol_values, ait_dim d, int64_t *out) {
  eval_budget budget = {.steps = 1 << 16, .depth = 500};
  return eval(dims, symbol_values, d, &budget, out);
}

/* Undoes the outer operation: what must the unknown side be, so that the whole is `value`? */
static bool invert(ait_dim_op op, bool left_unknown, int64_t known, int64_t value, int64_t *out) {
  int64_t rest;
  switch (op) {
    case AIT_DIM_ADD: return !__builtin_sub_overflow(value, known, out);
    case AIT_DIM_SUB: return left_unknown ? !ait_add_overflows(value, known, out) : !__builtin_sub_overflow(known, value, out);
    case AIT_DIM_MUL: return known != 0 && modulo(value, known, &rest) && rest == 0 && floor_divide(value, known, out);
    default: return false; /* floordiv, min and the like do not tell their operand */
  }
}

bool ait_dim_bind(const ait_dim_expr *dims, int64_t *symbol_values, ait_dim d, int64_t value) {
  for (int steps = 0; steps < 500; ++steps) {
    const ait_dim_expr *e = &dims[d];
    if (e->op == AIT_DIM_SYMBOL) {
      if (symbol_values[e->a] != INT64_MIN) return false;
      symbol_values[e->a] = value;
      return true;
    }
    if (e->op == AIT_DIM_CONST || e->op == AIT_DIM_UNKNOWN || e->a >= d || e->b >= d) return false;
    int64_t a, b;
    bool has_a = ait_dim_eval(dims, symbol_values, e->a, &a), has_b = ait_dim_eval(dims, symbol_values, e->b, &b);
    if (has_a == has_b || !invert(e->op, has_b, has_a ? a : b, value, &value)) return false;
    d = has_a ? e->b : e->a;
  }
  return false;
}

void ait_dim_eval_all(const ait_dim_expr *dims, uint32_t count, const int64_t *symbol_values, int64_t *out) {
  for (uint32_t d = 0; d < count; d++) {
    const ait_dim_expr *e = &dims[d];
    out[d] = INT64_MIN;
    if (e->op == AIT_DIM_CONST) out[d] = e->value;
    else if (e->op == AIT_DIM_SYMBOL) out[d] = symbol_values[e->a];
    else if (e->op != AIT_DIM_UNKNOWN && e->a < d && e->b < d && out[e->a] != INT64_MIN && out[e->b] != INT64_MIN) {
      if (!combine(e->op, out[e->a], out[e->b], &out[d])) out[d] = INT64_MIN;
    }
  }
}
