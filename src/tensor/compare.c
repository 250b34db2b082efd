/* How two tensors differ. */
#include "tensor/tensor.h"

#include <math.h>

/* ---- walking -------------------------------------------------------------------------------------------------------------------*/
/* Visits all elements in row-major order. */
typedef struct walk {
  const ait_tensor *tensor;
  const char *p;
  int64_t index[AIT_MAX_RANK];
} walk;

static void walk_next(walk *w) {
  const ait_tensor *t = w->tensor;
  int64_t size = (int64_t)ait_dtype_size(t->dtype);
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    w->p += t->strides[d] * size;
    if (++w->index[d] < t->shape[d]) return;
    w->p -= t->strides[d] * t->shape[d] * size;
    w->index[d] = 0;
  }
}

/* ---- one element ---------------------------------------------------------------------------------------------------------------*/
typedef struct element {
  double re, im;
  int64_t i; /* integers: the exact value, as bits when unsigned */
} element;

static element element_at(const walk *w) {
  double v[2];
  ait_element_c128(w->p, w->tensor->dtype, v);
  return (element){v[0], v[1], ait_dtype_is_integer(w->tensor->dtype) ? ait_element_i64(w->p, w->tensor->dtype) : 0};
}

static bool is_nan(element e) { return isnan(e.re) || isnan(e.im); }
static bool is_finite(element e) { return isfinite(e.re) && isfinite(e.im); }
static bool same_part(double a, double b) { return a == b || (isnan(a) && isnan(b)); }
static bool same(element a, element b) { return same_part(a.re, b.re) && same_part(a.im, b.im); }

/* What is being compared: chosen once from the two dtypes. */
typedef struct comparison {
  const ait_compare_rule *rule;
  bool integers, got_unsigned, want_unsigned;
} comparison;

__extension__ typedef __int128 wide;
static wide widen(int64_t bits, bool is_unsigned) { return is_unsigned ? (wide)(uint64_t)bits : (wide)bits; }

static double distance(const comparison *c, element got, element want) {
  if (c->integers) {
    wide d = widen(got.i, c->got_unsigned) - widen(want.i, c->want_unsigned);
    return (double)(d < 0 ? -d : d);
  }
  return got.im == 0 && want.im == 0 ? fabs(got.re - want.re) : hypot(got.re - want.re, got.im - want.im);
}

static double size_of(element e) { return e.im == 0 ? fabs(e.re) : hypot(e.re, e.im); }

static bool matches(const comparison *c, element got, element want, double d) {
  if (c->rule->exact) return c->integers ? d == 0 : same(got, want);
  if (is_nan(got) || is_nan(want)) return is_nan(got) && is_nan(want);
  if (!is_finite(got) || !is_finite(want)) return same(got, want);
  return d <= c->rule->atol + c->rule->rtol * size_of(want);
}

/* ---- sums ----------------------------------------------------------------------------------------------------------------------*/
typedef struct sums {
  double got_squares, want_squares, products, noise;
  double worst; /* how bad the worst mismatch (or, without one, the largest difference) is */
  bool worst_is_mismatch;
} sums;

static void note_worst(sums *s, ait_compare_result *out, int64_t index, element got, element want, double badness, bool mismatch) {
  bool first = out->worst_index < 0;
  if (!first && s->worst_is_mismatch && !mismatch) return;
  if (!first && s->worst_is_mismatch == mismatch && !(badness > s->worst)) return;
  s->worst = badness;
  s->worst_is_mismatch = mismatch;
  out->worst_index = index;
  out->worst_got = got.re;
  out->worst_want = want.re;
}

static void add_element(const comparison *c, sums *s, ait_compare_result *out, int64_t index, element got, element want) {
  double d = distance(c, got, want);
  bool ok = matches(c, got, want, d);
  out->mismatches += !ok;
  out->nan_got += is_nan(got);
  out->nan_want += is_nan(want);
  if (!is_finite(got) || !is_finite(want)) {
    if (!ok) note_worst(s, out, index, got, want, INFINITY, true);
    return;
  }
  double size = size_of(want);
  if (d > out->max_abs) out->max_abs = d;
  if (size > 0 && d / size > out->max_rel) out->max_rel = d / size;
  if (d > 0) note_worst(s, out, index, got, want, d / (c->rule->atol + c->rule->rtol * size + 1e-300), !ok);
  s->got_squares += got.re * got.re + got.im * got.im;
  s->want_squares += size * size;
  s->products += got.re * want.re + got.im * want.im;
  s->noise += d * d;
}

/* ---- argmax --------------------------------------------------------------------------------------------------------------------
 * A row agrees when the result has its largest value where the wanted row has it; ties in the result count as agreement. */
typedef struct argmax_row {
  double want_best, got_best, got_there;
  int64_t filled;
} argmax_row;

/* NaN is larger than everything, as for torch.argmax. */
static bool larger(double a, double b) { return isnan(a) ? !isnan(b) : a > b; }

static void argmax_add(argmax_row *row, ait_compare_result *out, int64_t length, double got, double want) {
  if (row->filled == 0 || larger(want, row->want_best)) {
    row->want_best = want;
    row->got_there = got;
  }
  if (row->filled == 0 || larger(got, row->got_best)) row->got_best = got;
  if (++row->filled < length) return;
  out->argmax_rows++;
  out->argmax_agree += same_part(row->got_there, row->got_best);
  row->filled = 0;
}

/* ---- whole ---------------------------------------------------------------------------------------------------------------------*/
static ait_status check_comparable(const ait_tensor *got, const ait_tensor *want) {
  if (ait_dtype_size(got->dtype) == 0 || ait_dtype_size(want->dtype) == 0) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "cannot compare tensors of unknown dtype");
  }
  if (ait_tensor_same_shape(got, want)) return AIT_OK;
  char got_text[256], want_text[256];
  ait_tensor_shape_text(got, got_text, sizeof got_text);
  ait_tensor_shape_text(want, want_text, sizeof want_text);
  return ait_error(AIT_CODE_MISMATCH, "shape %s where %s was expected", got_text, want_text);
}

static double similarity(const sums *s) {
  if (s->got_squares == 0 && s->want_squares == 0) return 1.0;
  double norm = sqrt(s->got_squares) * sqrt(s->want_squares);
  return norm > 0 ? fmin(1.0, fmax(-1.0, s->products / norm)) : 0.0;
}

ait_status ait_compare(const ait_tensor *got, const ait_tensor *want, const ait_compare_rule *rule, ait_compare_result *out) {
  AIT_TRY(check_comparable(got, want));
  *out = (ait_compare_result){.count = ait_tensor_count(want), .worst_index = -1};
  comparison c = {rule, ait_dtype_is_integer(got->dtype) && ait_dtype_is_integer(want->dtype), got->dtype == AIT_U64,
                  want->dtype == AIT_U64};
  int64_t length = want->rank > 0 ? want->shape[want->rank - 1] : 1;
  bool rows = want->rank > 0 && length > 1 && !ait_dtype_is_complex(want->dtype) && !ait_dtype_is_complex(got->dtype);
  walk g = {.tensor = got, .p = got->data}, w = {.tensor = want, .p = want->data};
  sums s = {0};
  argmax_row row = {0};
  for (int64_t i = 0; i < out->count; i++, walk_next(&g), walk_next(&w)) {
    element a = element_at(&g), b = element_at(&w);
    add_element(&c, &s, out, i, a, b);
    if (rows) argmax_add(&row, out, length, a.re, b.re);
  }
  out->snr_db = s.noise > 0 ? 10.0 * log10(s.want_squares / s.noise) : INFINITY;
  out->cosine = similarity(&s);
  out->pass = out->mismatches == 0;
  return AIT_OK;
}
