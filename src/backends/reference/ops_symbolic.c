/* Arithmetic on sizes and other Python numbers, and assertions. */
#include "backends/reference/shapes.h"

#include <math.h>
#include <stdio.h>

/* ---- the operator module ----------------------------------------------------------------------------------------------------- */
typedef enum symbolic_op {
  OP_ADD,
  OP_SUB,
  OP_MUL,
  OP_FLOORDIV,
  OP_TRUEDIV,
  OP_MOD,
  OP_POW,
  OP_EQ,
  OP_NE,
  OP_LT,
  OP_LE,
  OP_GT,
  OP_GE,
  OP_AND,
  OP_OR,
  OP_XOR,
  OP_LSHIFT,
  OP_RSHIFT,
  OP_MAX,
  OP_MIN,
} symbolic_op;

static ait_ref_scalar whole(int64_t i) { return (ait_ref_scalar){.kind = AIT_KIND_INT, .i = i, .f = (double)i}; }
static ait_ref_scalar truth(bool b) { return (ait_ref_scalar){.kind = AIT_KIND_BOOL, .i = b, .f = b}; }
static ait_ref_scalar real(double f) { return (ait_ref_scalar){.kind = AIT_KIND_FLOAT, .i = (int64_t)(fabs(f) < 9e18 ? f : 0), .f = f}; }

static ait_status overflowed(const ait_ref_call *call) { return ait_ref_error(call, AIT_CODE_LIMIT, "the result does not fit 64 bits"); }
static ait_status zero_division(const ait_ref_call *call) {
  return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "integer division by zero");
}

static int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static ait_status power(const ait_ref_call *call, int64_t base, int64_t exponent, ait_ref_scalar *out) {
  if (exponent < 0) {
    if (base == 0) return zero_division(call);
    *out = real(pow((double)base, (double)exponent));
    return AIT_OK;
  }
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) && ait_mul_overflows(result, base, &result)) return overflowed(call);
    if (exponent > 1 && ait_mul_overflows(base, base, &base)) return overflowed(call);
  }
  *out = whole(result);
  return AIT_OK;
}

static ait_status shifted(const ait_ref_call *call, int64_t a, int64_t count, bool left, ait_ref_scalar *out) {
  if (count < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "negative shift count");
  if (!left) {
    *out = whole(count > 63 ? (a < 0 ? -1 : 0) : a >> count);
    return AIT_OK;
  }
  int64_t result = 0;
  if (a != 0 && (count > 62 || ait_mul_overflows(a, (int64_t)1 << count, &result))) return overflowed(call);
  *out = whole(result);
  return AIT_OK;
}

static ait_status on_ints(const ait_ref_call *call, symbolic_op op, int64_t a, int64_t b, ait_ref_scalar *out) {
  int64_t r = 0;
  switch (op) {
    case OP_ADD:
      if (ait_add_overflows(a, b, &r)) return overflowed(call);
      break;
    case OP_SUB:
      if (__builtin_sub_overflow(a, b, &r)) return overflowed(call);
      break;
    case OP_MUL:
      if (ait_mul_overflows(a, b, &r)) return overflowed(call);
      break;
    case OP_FLOORDIV:
      if (b == 0) return zero_division(call);
      if (b == -1 && a == INT64_MIN) return overflowed(call);
      r = floor_quotient(a, b);
      break;
    case OP_MOD:
      if (b == 0) return zero_division(call);
      r = b == -1 ? 0 : a - floor_quotient(a, b) * b;
      break;
    case OP_TRUEDIV:
      if (b == 0) return zero_division(call);
      *out = real((double)a / (double)b);
      return AIT_OK;
    case OP_POW: return power(call, a, b, out);
    case OP_LSHIFT: return shifted(call, a, b, true, out);
    case OP_RSHIFT: return shifted(call, a, b, false, out);
    case OP_AND: r = a & b; break;
    case OP_OR: r = a | b; break;
    case OP_XOR: r = a ^ b; break;
    case OP_MAX: r = a > b ? a : b; break;
    case OP_MIN: r = a < b ? a : b; break;
    case OP_EQ: *out = truth(a == b); return AIT_OK;
    case OP_NE: *out = truth(a != b); return AIT_OK;
    case OP_LT: *out = truth(a < b); return AIT_OK;
    case OP_LE: *out = truth(a <= b); return AIT_OK;
    case OP_GT: *out = truth(a > b); return AIT_OK;
    case OP_GE: *out = truth(a >= b); return AIT_OK;
  }
  *out = whole(r);
  return AIT_OK;
}

static ait_status on_floats(const ait_ref_call *call, symbolic_op op, double a, double b, ait_ref_scalar *out) {
  bool divides = op == OP_FLOORDIV || op == OP_TRUEDIV || op == OP_MOD;
  if (divides && b == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "float division by zero");
  double mod = divides ? fmod(a, b) : 0;
  if (mod != 0 && (mod < 0) != (b < 0)) mod += b;
  switch (op) {
    case OP_ADD: *out = real(a + b); break;
    case OP_SUB: *out = real(a - b); break;
    case OP_MUL: *out = real(a * b); break;
    case OP_FLOORDIV: *out = real(floor((a - mod) / b + 0.5)); break;
    case OP_TRUEDIV: *out = real(a / b); break;
    case OP_MOD: *out = real(mod); break;
    case OP_POW: *out = real(pow(a, b)); break;
    case OP_MAX: *out = real(a > b ? a : b); break;
    case OP_MIN: *out = real(a < b ? a : b); break;
    case OP_EQ: *out = truth(a == b); break;
    case OP_NE: *out = truth(a != b); break;
    case OP_LT: *out = truth(a < b); break;
    case OP_LE: *out = truth(a <= b); break;
    case OP_GT: *out = truth(a > b); break;
    case OP_GE: *out = truth(a >= b); break;
    default: return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "not defined for floats");
  }
  return AIT_OK;
}

static ait_status operate(ait_ref_call *call, symbolic_op op) {
  ait_ref_scalar a, b, r;
  AIT_TRY(ait_ref_scalar_arg(call, 0, &a));
  AIT_TRY(ait_ref_scalar_arg(call, 1, &b));
  if (a.kind == AIT_KIND_COMPLEX || b.kind == AIT_KIND_COMPLEX) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "complex numbers");
  bool floats = a.kind == AIT_KIND_FLOAT || b.kind == AIT_KIND_FLOAT;
  bool bools = a.kind == AIT_KIND_BOOL && b.kind == AIT_KIND_BOOL;
  if (floats) AIT_TRY(on_floats(call, op, a.f, b.f, &r));
  else AIT_TRY(on_ints(call, op, a.i, b.i, &r));
  if (bools && (op == OP_AND || op == OP_OR || op == OP_XOR)) r = truth(r.i != 0);
  ait_ref_set_scalar(call, 0, &r);
  return AIT_OK;
}

#define OPERATION(name, op) \
  ait_status ait_ref_##name(ait_ref_call *call) { return operate(call, op); }
OPERATION(number_add, OP_ADD)
OPERATION(number_sub, OP_SUB)
OPERATION(number_mul, OP_MUL)
OPERATION(number_floordiv, OP_FLOORDIV)
OPERATION(number_truediv, OP_TRUEDIV)
OPERATION(number_mod, OP_MOD)
OPERATION(number_pow, OP_POW)
OPERATION(number_eq, OP_EQ)
OPERATION(number_ne, OP_NE)
OPERATION(number_lt, OP_LT)
OPERATION(number_le, OP_LE)
OPERATION(number_gt, OP_GT)
OPERATION(number_ge, OP_GE)
OPERATION(number_and, OP_AND)
OPERATION(number_or, OP_OR)
OPERATION(number_xor, OP_XOR)
OPERATION(number_lshift, OP_LSHIFT)
OPERATION(number_rshift, OP_RSHIFT)
OPERATION(number_max, OP_MAX)
OPERATION(number_min, OP_MIN)

static ait_status give(ait_ref_call *call, ait_ref_scalar r) {
  ait_ref_set_scalar(call, 0, &r);
  return AIT_OK;
}

/* A function of one number, seen as s. */
#define NUMBER(name, ...)                         \
  ait_status ait_ref_##name(ait_ref_call *call) { \
    ait_ref_scalar s;                             \
    AIT_TRY(ait_ref_scalar_arg(call, 0, &s));     \
    __VA_ARGS__                                   \
  }

/* A float as an integer; the value is whole. */
static ait_status to_whole(ait_ref_call *call, double f) {
  if (!(fabs(f) < 9223372036854775808.0)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%g is no 64-bit integer", f);
  return give(call, whole((int64_t)f));
}
static bool is_float(const ait_ref_scalar *s) { return s->kind == AIT_KIND_FLOAT; }

NUMBER(number_neg, {
  if (is_float(&s)) return give(call, real(-s.f));
  return s.i == INT64_MIN ? overflowed(call) : give(call, whole(-s.i));
})
NUMBER(number_pos, return give(call, is_float(&s) ? s : whole(s.i));)
NUMBER(number_abs, return is_float(&s) ? give(call, real(fabs(s.f))) : give(call, whole(s.i < 0 ? -s.i : s.i));)
NUMBER(number_invert, return give(call, whole(~s.i));)
NUMBER(number_not, return give(call, truth(s.f == 0));)
NUMBER(number_float, return give(call, real(s.f));)
NUMBER(number_bool, return give(call, truth(s.f != 0));)
NUMBER(number_trunc, return is_float(&s) ? to_whole(call, trunc(s.f)) : give(call, whole(s.i));)
NUMBER(number_floor, return is_float(&s) ? to_whole(call, floor(s.f)) : give(call, whole(s.i));)
NUMBER(number_ceil, return is_float(&s) ? to_whole(call, ceil(s.f)) : give(call, whole(s.i));)
NUMBER(number_round, return is_float(&s) ? to_whole(call, rint(s.f)) : give(call, whole(s.i));)
NUMBER(number_sqrt, {
  if (s.f < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "square root of %g", s.f);
  return give(call, real(sqrt(s.f)));
})
NUMBER(number_exp, return give(call, real(exp(s.f)));)
NUMBER(number_log2, return give(call, real(log2(s.f)));)
NUMBER(number_sin, return give(call, real(sin(s.f)));)
NUMBER(number_cos, return give(call, real(cos(s.f)));)

NUMBER(number_ite, {
  ait_ref_scalar chosen;
  AIT_TRY(ait_ref_scalar_arg(call, s.f != 0 ? 1 : 2, &chosen));
  return give(call, chosen);
})

/* ---- what tensors tell ------------------------------------------------------------------------------------------------------- */
static ait_status tensor_and_dim(const ait_ref_call *call, const ait_tensor **t, int32_t *dim) {
  AIT_TRY(ait_ref_tensor(call, 0, t));
  if ((*t)->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 has no sizes");
  return ait_ref_dim_arg(call, 1, 0, (*t)->rank, dim);
}
ait_status ait_ref_sym_size(ait_ref_call *call) {
  const ait_tensor *t;
  int32_t dim;
  AIT_TRY(tensor_and_dim(call, &t, &dim));
  return give(call, whole(t->shape[dim]));
}
ait_status ait_ref_sym_stride(ait_ref_call *call) {
  const ait_tensor *t;
  int32_t dim;
  AIT_TRY(tensor_and_dim(call, &t, &dim));
  return give(call, whole(t->strides[dim]));
}
ait_status ait_ref_sym_numel(ait_ref_call *call) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  return give(call, whole(ait_tensor_count(t)));
}
ait_status ait_ref_sym_storage_offset(ait_ref_call *call) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  const char *base = t->storage ? ait_storage_data(t->storage) : t->data;
  return give(call, whole(base && t->data ? ((const char *)t->data - base) / (int64_t)ait_dtype_size(t->dtype) : 0));
}
ait_status ait_ref_sym_is_contiguous(ait_ref_call *call) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  return give(call, truth(ait_tensor_is_contiguous(t)));
}

ait_status ait_ref_item(ait_ref_call *call) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (ait_tensor_count(t) != 1)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of %lld elements is no number", (long long)ait_tensor_count(t));
  ait_ref_scalar s;
  AIT_TRY(ait_ref_scalar_arg(call, 0, &s));
  return give(call, s);
}

/* ---- assertions -------------------------------------------------------------------------------------------------------------- */
static ait_status assertion_failed(const ait_ref_call *call, const char *what) {
  return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "runtime assertion failed: %s", what);
}

static ait_status assert_message(ait_ref_call *call) {
  ait_ref_scalar s;
  AIT_TRY(ait_ref_scalar_arg(call, 0, &s));
  const char *message = ait_ref_string(call, 1);
  return s.f != 0 ? AIT_OK : assertion_failed(call, message ? message : "the condition is false");
}
ait_status ait_ref__assert_scalar(ait_ref_call *call) { return assert_message(call); }
ait_status ait_ref__assert_async(ait_ref_call *call) { return assert_message(call); }

/* The functional forms hand their token on: (…, dep_token) -> dep_token. */
static ait_status give_token(ait_ref_call *call, uint32_t arg) {
  const ait_tensor *token = ait_ref_tensor_or_null(call, arg);
  if (token) ait_ref_set_view(call, 0, token, token);
  return AIT_OK;
}
ait_status ait_ref__functional_assert(ait_ref_call *call) {
  AIT_TRY(assert_message(call));
  return give_token(call, 2);
}
ait_status ait_ref__functional_sym_constrain_range(ait_ref_call *call) {
  AIT_TRY(ait_ref_sym_constrain_range(call));
  return give_token(call, 3);
}

static ait_status check_list(const ait_ref_call *call, uint32_t arg, const int64_t *have, int32_t rank, const char *what) {
  int64_t want[AIT_MAX_RANK];
  int32_t count;
  if (ait_ref_is_none(call, arg)) return AIT_OK;
  AIT_TRY(ait_ref_ints(call, arg, want, &count));
  if (count != rank) return assertion_failed(call, what);
  for (int32_t d = 0; d < rank; ++d)
    if (want[d] != have[d]) return assertion_failed(call, what);
  return AIT_OK;
}

/* In fp64 mode the dtype argument is widened as the tensor was. */
ait_status ait_ref__assert_tensor_metadata(ait_ref_call *call) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  ait_dtype want = ait_ref_dtype(call, 3, t->dtype);
  AIT_TRY(check_list(call, 1, t->shape, t->rank, "the tensor has another shape"));
  if (want != t->dtype) return assertion_failed(call, "the tensor has another dtype");
  return AIT_OK;
}

ait_status ait_ref_sym_constrain_range(ait_ref_call *call) {
  int64_t size, low, high;
  AIT_TRY(ait_ref_int(call, 0, &size));
  AIT_TRY(ait_ref_int_or(call, 1, INT64_MIN, &low));
  AIT_TRY(ait_ref_int_or(call, 2, INT64_MAX, &high));
  if (size >= low && size <= high) return AIT_OK;
  char text[160];
  snprintf(text, sizeof text, "%lld is not in [%lld, %lld]", (long long)size, (long long)low, (long long)high);
  return assertion_failed(call, text);
}
ait_status ait_ref_sym_constrain_range_for_size(ait_ref_call *call) {
  int64_t size;
  AIT_TRY(ait_ref_int(call, 0, &size));
  if (size < 0) return assertion_failed(call, "a size is negative");
  return ait_ref_sym_constrain_range(call);
}
