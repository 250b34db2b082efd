#define AIT_ISA wide16
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/elementwise_f32.inc"
#include "kernels/ref/ref.h"
#include "kernels/testing.h"

static size_t all_isas(test_isa *out) {
  size_t n = test_isas(out);
  out[n++] = (test_isa){"wide16", {.isa = "wide16", .elementwise_f32 = ait_k_elementwise_f32_wide16}};
  return n;
}

static void run(const test_isa *isa, ait_ew_f32 *e) {
  ait_ew_f32_prepare(e);
  int64_t units = ait_ew_f32_units(e), cut = test_random((uint32_t)units + 1);
  void *scratch = test_scratch(ait_ew_f32_scratch(&isa->table, e));
  isa->table.elementwise_f32(e, cut, units, scratch);
  isa->table.elementwise_f32(e, 0, cut, scratch);
  free(scratch);
}

/* The operators in double, from their definitions. */
static double reference(ait_ew_op op, double a, double b, double c, double p, double q) {
  switch (op) {
    case AIT_EW_COPY: return a;
    case AIT_EW_ADD: return a + b;
    case AIT_EW_SUB: return a - b;
    case AIT_EW_MUL: return a * b;
    case AIT_EW_DIV: return a / b;
    case AIT_EW_MAX: return isnan(a) || isnan(b) ? NAN : fmax(a, b);
    case AIT_EW_MIN: return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    case AIT_EW_ADDC: return a + p;
    case AIT_EW_MULC: return a * p;
    case AIT_EW_RSUBC: return p - a;
    case AIT_EW_RDIVC: return p / a;
    case AIT_EW_DIVC: return a / p;
    case AIT_EW_AXPBC: return a * p + q;
    case AIT_EW_MULADD: return a * b + c;
    case AIT_EW_CLAMP: return a < p ? p : a > q ? q : a;
    case AIT_EW_NEG: return -a;
    case AIT_EW_ABS: return fabs(a);
    case AIT_EW_SIGN: return (a > 0) - (a < 0);
    case AIT_EW_SQRT: return sqrt(a);
    case AIT_EW_RSQRT: return 1 / sqrt(a);
    case AIT_EW_RECIPROCAL: return 1 / a;
    case AIT_EW_SQUARE: return a * a;
    case AIT_EW_EXP: return exp(a);
    case AIT_EW_EXP2: return exp2(a);
    case AIT_EW_EXPM1: return expm1(a);
    case AIT_EW_LOG: return log(a);
    case AIT_EW_LOG2: return log2(a);
    case AIT_EW_LOG10: return log10(a);
    case AIT_EW_LOG1P: return log1p(a);
    case AIT_EW_SIN: return sin(a);
    case AIT_EW_COS: return cos(a);
    case AIT_EW_TANH: return tanh(a);
    case AIT_EW_SIGMOID: return 1 / (1 + exp(-a));
    case AIT_EW_ERF: return erf(a);
    case AIT_EW_GELU: return ref_act(a, AIT_ACT_GELU, 0, 0);
    case AIT_EW_GELU_TANH: return ref_act(a, AIT_ACT_GELU_TANH, 0, 0);
    case AIT_EW_SILU: return ref_act(a, AIT_ACT_SILU, 0, 0);
    case AIT_EW_RELU: return ref_act(a, AIT_ACT_RELU, 0, 0);
    case AIT_EW_LEAKY_RELU: return ref_act(a, AIT_ACT_LEAKY_RELU, p, q);
    case AIT_EW_ELU: return ref_act(a, AIT_ACT_ELU, p, q);
    case AIT_EW_SOFTPLUS: return ref_act(a, AIT_ACT_SOFTPLUS, p, q);
    case AIT_EW_MISH: return ref_act(a, AIT_ACT_MISH, p, q);
    case AIT_EW_HARDSWISH: return isnan(a) ? a : ref_act(a, AIT_ACT_HARDSWISH, p, q);
    case AIT_EW_HARDSIGMOID: return isnan(a) ? a : ref_act(a, AIT_ACT_HARDSIGMOID, p, q);
    case AIT_EW_POWC: return pow(a, p);
    case AIT_EW_POW: return pow(a, b);
    case AIT_EW_REMAINDER: {
      double r = fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case AIT_EW_FMOD: return fmod(a, b);
    case AIT_EW_ATAN2: return atan2(a, b);
    case AIT_EW_TAN: return tan(a);
    case AIT_EW_ASIN: return asin(a);
    case AIT_EW_ACOS: return acos(a);
    case AIT_EW_ATAN: return atan(a);
    case AIT_EW_SINH: return sinh(a);
    case AIT_EW_COSH: return cosh(a);
    case AIT_EW_ASINH: return asinh(a);
    case AIT_EW_ACOSH: return acosh(a);
    case AIT_EW_ATANH: return atanh(a);
    case AIT_EW_ERFC: return erfc(a);
    case AIT_EW_FLOOR: return floor(a);
    case AIT_EW_CEIL: return ceil(a);
    case AIT_EW_ROUND: return nearbyint(a);
    case AIT_EW_TRUNC: return trunc(a);
    case AIT_EW_EQ: return a == b;
    case AIT_EW_NE: return a != b;
    case AIT_EW_LT: return a < b;
    case AIT_EW_LE: return a <= b;
    case AIT_EW_GT: return a > b;
    case AIT_EW_GE: return a >= b;
    case AIT_EW_EQC: return a == p;
    case AIT_EW_NEC: return a != p;
    case AIT_EW_LTC: return a < p;
    case AIT_EW_LEC: return a <= p;
    case AIT_EW_GTC: return a > p;
    case AIT_EW_GEC: return a >= p;
    case AIT_EW_NOT: return a == 0;
    case AIT_EW_AND: return a != 0 && b != 0;
    case AIT_EW_OR: return a != 0 || b != 0;
    case AIT_EW_XOR: return (a != 0) != (b != 0);
    case AIT_EW_ISNAN: return isnan(a);
    case AIT_EW_ISINF: return isinf(a) != 0;
    case AIT_EW_WHERE: return a != 0 ? b : c;
    case AIT_EW_OP_COUNT: break;
  }
  return 0;
}
static const char *const op_names[] = {
#define AIT_EW(name, operands) #name,
#include "kernels/ew_ops.inc"
#undef AIT_EW
};

/* Error in units of the last place of the true value (of the smallest normal number below that). */
static double ulps(float got, double want) {
  if (isnan(want)) return isnan(got) ? 0 : 1e9;
  float rounded = (float)want;
  if (isinf(rounded) || isinf(got)) return got == rounded || (isinf(got) && fabs(want) > 3.4028e38) ? 0 : 1e9;
  double unit = fmax(ldexp(1.0, ilogb(fmax(fabs(want), 1e-300)) - 23), 1.401298464e-45);
  return fabs((double)got - want) / unit;
}
/* Allowed: ulps; or an absolute error where the definition itself cancels (gelu of large negative numbers, remainders of a rounded sum). */
static void tolerance(ait_ew_op op, double *max_ulps, double *absolute) {
  *absolute = 0;
  *max_ulps = 0.51;
  switch (op) {
    case AIT_EW_RSQRT:
    case AIT_EW_POWC:
    case AIT_EW_POW: *max_ulps = 2; break;
    case AIT_EW_AXPBC:
    case AIT_EW_MULADD:
      *max_ulps = 4;
      *absolute = 1e-4;
      break; /* with or without a fused product: the sum may cancel */
    case AIT_EW_EXP:
    case AIT_EW_EXP2:
    case AIT_EW_LOG:
    case AIT_EW_ELU:
    case AIT_EW_EXPM1: *max_ulps = 3; break;
    case AIT_EW_LOG2:
    case AIT_EW_LOG10:
    case AIT_EW_LOG1P:
    case AIT_EW_SIGMOID:
    case AIT_EW_SILU:
    case AIT_EW_TANH:
    case AIT_EW_ERF: *max_ulps = 4; break;
    case AIT_EW_SIN:
    case AIT_EW_COS:
      *max_ulps = 2;
      *absolute = 1e-7;
      break;
    case AIT_EW_MISH:
    case AIT_EW_SOFTPLUS:
      *max_ulps = 6;
      *absolute = 1e-7;
      break;
    case AIT_EW_GELU:
    case AIT_EW_GELU_TANH:
      *max_ulps = 8;
      *absolute = 5e-7;
      break;
    case AIT_EW_HARDSWISH:
    case AIT_EW_HARDSIGMOID:
      *max_ulps = 3;
      *absolute = 2e-7;
      break;
    case AIT_EW_REMAINDER:
      *max_ulps = 1;
      *absolute = 1e-6;
      break;
    default:
      if (op >= AIT_EW_ATAN2 && op <= AIT_EW_ERFC) *max_ulps = 4; /* the C library's own */
      break;
  }
}

#define SWEEP 5000
/* Magnitudes of all exponents, the neighbourhood of 0 and 1, and the odd ones out. */
static void sweep(float *x) {
  static const float special[] = {0,       -0.0f,    1,          -1,          INFINITY,     -INFINITY,     NAN,     1e-40f, -1e-40f,
                                  3.4e38f, -3.4e38f, 88.7f,      88.8f,       -87.4f,       -103.9f,       -104.5f, 0.5f,   1.5f,
                                  2.5f,    -2.5f,    8388607.5f, 16777216.0f, -0.49999997f, 2147483648.0f, 1e10f,   127.9f, -149.5f};
  for (int i = 0; i < SWEEP; ++i) {
    if (i < (int)AIT_COUNT(special)) x[i] = special[i];
    else if (i < 1500)
      x[i] = ldexpf(1.0f + (float)test_random(1 << 20) / (float)(1 << 20), (int)test_random(270) - 140) * (test_random(2) ? 1.0f : -1.0f);
    else if (i < 3000) x[i] = test_float() * 12.0f;
    else if (i < 4000) x[i] = test_float() * 100.0f;
    else x[i] = 1.0f + test_float() * 0.5f;
  }
}

static void operators(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  static float a[SWEEP], b[SWEEP], c[SWEEP], y[SWEEP];
  for (size_t t = 0; t < count; ++t)
    for (int op = 0; op < AIT_EW_OP_COUNT; ++op) {
      sweep(a);
      sweep(b);
      for (int i = SWEEP - 1; i > 0; --i) {
        int j = (int)test_random((uint32_t)i + 1);
        float f = b[i];
        b[i] = b[j];
        b[j] = f;
      }
      for (int i = 0; i < SWEEP; ++i) c[i] = test_float();
      float p = 0.75f, q = 1.25f;
      if (op == AIT_EW_SOFTPLUS) p = 2, q = 20;
      if (op == AIT_EW_POWC) p = (float[]){2, 3, 0.5f, -1, -0.5f, 1.7f}[test_random(6)];
      ait_ew_f32 e = {.rank = 1,
                      .shape = {SWEEP},
                      .input_count = 3,
                      .output_count = 1,
                      .instruction_count = 1,
                      .register_count = 4,
                      .inputs = {{a, AIT_F32, {1}}, {b, AIT_F32, {1}}, {c, AIT_F32, {1}}},
                      .outputs = {{y, AIT_F32, 3}},
                      .code = {{(uint8_t)op, 3, 0, 1, 2, p, q}}};
      run(&isas[t], &e);
      double max_ulps, absolute;
      tolerance((ait_ew_op)op, &max_ulps, &absolute);
      for (int i = 0; i < SWEEP; ++i) {
        double want = reference((ait_ew_op)op, (double)a[i], (double)b[i], (double)c[i], (double)p, (double)q);
        if ((op == AIT_EW_MISH || op == AIT_EW_SILU || op == AIT_EW_GELU || op == AIT_EW_GELU_TANH || op == AIT_EW_HARDSWISH) &&
            (isinf(a[i]) || fabsf(a[i]) > 1e37f))
          continue;
        if (op == AIT_EW_SIGMOID && a[i] < -80)
          want = want < 1e-36 && y[i] >= 0 && y[i] < 1e-35f ? (double)y[i] : want; /* e^-x overflows first */
        if (op == AIT_EW_SILU && a[i] < -80) continue;
        if (ulps(y[i], want) > max_ulps && !(fabs((double)y[i] - want) <= absolute)) {
          printf("%s %s(%.9g, %.9g, %.9g)", isas[t].name, op_names[op], (double)a[i], (double)b[i], (double)c[i]);
          fail_msg(": got %.9g, want %.9g, %.2f ulp", (double)y[i], want, ulps(y[i], want));
        }
      }
    }
}

/* Broadcasts, dtypes, shapes, several outputs: y0 = (a * b + c), y1 = y0 > 0 as bool, for random strides. */
static void broadcasts(void **state) {
  AIT_UNUSED(state);
  static const ait_dtype dtypes[] = {AIT_F32,  AIT_F32, AIT_F32, AIT_F64,  AIT_I32, AIT_I64,
                                     AIT_BOOL, AIT_U8,  AIT_F16, AIT_BF16, AIT_I8,  AIT_I16};
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int r = 0; r < 1200; ++r) {
      ait_ew_f32 e = {.rank = 1 + (int32_t)test_random(4),
                      .input_count = 3,
                      .output_count = 2,
                      .instruction_count = 2,
                      .register_count = 5,
                      .code = {{AIT_EW_MULADD, 3, 0, 1, 2, 0, 0}, {AIT_EW_GTC, 4, 3, 0, 0, 0.0f, 0}}};
      int64_t total = 1;
      for (int32_t d = 0; d < e.rank; ++d) total *= e.shape[d] = 1 + test_random(e.rank == 1 ? 2000 : e.rank == 2 ? 40 : 12);
      if (e.rank == 2 && test_random(3) == 0) total = total / e.shape[1] * 700, e.shape[1] = 700;
      const ait_ew_f32 shape = e;
      void *data[3];
      for (int i = 0; i < 3; ++i) {
        ait_dtype dtype = dtypes[test_random(AIT_COUNT(dtypes))];
        int64_t at = 1, size = (int64_t)ait_dtype_size(dtype);
        bool permute = test_random(4) == 0;
        e.inputs[i].dtype = dtype;
        for (int32_t d = e.rank - 1; d >= 0; --d) {
          int32_t k = permute ? e.rank - 1 - d : d;
          bool broadcast = test_random(4) == 0;
          e.inputs[i].strides[k] = broadcast ? 0 : at;
          if (!broadcast) at *= e.shape[k];
        }
        e.inputs[i].data = data[i] = malloc((size_t)(at * size));
        for (int64_t j = 0; j < at; ++j)
          ait_element_set_f64((char *)data[i] + j * size, dtype,
                              dtype == AIT_BOOL ? test_random(2) : (double)((int)test_random(9) - (dtype == AIT_U8 ? 0 : 4)));
      }
      ait_ew_input inputs[3];
      memcpy(inputs, e.inputs, sizeof inputs);
      ait_dtype out = dtypes[test_random(AIT_COUNT(dtypes))];
      if (out == AIT_U8 || out == AIT_BOOL) out = AIT_F32;
      void *y0 = malloc((size_t)total * ait_dtype_size(out));
      uint8_t *y1 = malloc((size_t)total);
      e.outputs[0] = (ait_ew_output){y0, out, 3};
      e.outputs[1] = (ait_ew_output){y1, AIT_BOOL, 4};
      run(&isas[t], &e);
      for (int64_t i = 0; i < total; ++i) {
        double v[3];
        for (int k = 0; k < 3; ++k) {
          int64_t left = i, at = 0;
          for (int32_t d = shape.rank - 1; d >= 0; --d) {
            at += left % shape.shape[d] * inputs[k].strides[d];
            left /= shape.shape[d];
          }
          v[k] = ait_element_f64((char *)data[k] + at * (int64_t)ait_dtype_size(inputs[k].dtype), inputs[k].dtype);
        }
        double want = v[0] * v[1] + v[2], got = ait_element_f64((char *)y0 + i * (int64_t)ait_dtype_size(out), out);
        TEST_NEAR(got, want, 0, "%s element-wise rank %d at %d", isas[t].name, (int)shape.rank, (int)i);
        assert_int_equal(y1[i], want > 0);
      }
      for (int i = 0; i < 3; ++i) free(data[i]);
      free(y0);
      free(y1);
    }
}

/* An output may be an input's memory: x = relu(x + 1) with a second result made from the old x. */
static void in_place(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int64_t n = 1; n <= 1100; n += n < 40 ? 1 : 131) {
      test_buffer x = test_buffer_random(n), old = test_buffer_create(n), y = test_buffer_create(n);
      memcpy(old.data, x.data, (size_t)n * sizeof(float));
      ait_ew_f32 e = {.rank = 1,
                      .shape = {n},
                      .input_count = 1,
                      .output_count = 2,
                      .instruction_count = 3,
                      .register_count = 4,
                      .inputs = {{x.data, AIT_F32, {1}}},
                      .outputs = {{x.data, AIT_F32, 2}, {y.data, AIT_F32, 3}},
                      .code = {{AIT_EW_ADDC, 1, 0, 0, 0, 1.0f, 0}, {AIT_EW_RELU, 2, 1, 0, 0, 0, 0}, {AIT_EW_ADD, 3, 0, 2, 0, 0, 0}}};
      run(&isas[t], &e);
      for (int64_t i = 0; i < n; ++i) {
        float want = old.data[i] + 1 > 0 ? old.data[i] + 1 : 0;
        assert_true(x.data[i] == want && y.data[i] == old.data[i] + want);
      }
      test_buffer_free(&x), test_buffer_free(&old), test_buffer_free(&y);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(operators), cmocka_unit_test(broadcasts), cmocka_unit_test(in_place)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
