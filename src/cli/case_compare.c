/* Comparison rules of a case: exact, rtol/atol, random. */
#include "cli/cases.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool case_fail(case_result *out, const char *format, ...) {
  va_list list;
  va_start(list, format);
  out->outcome = CASE_FAILED;
  vsnprintf(out->text, sizeof out->text, format, list);
  va_end(list);
  return false;
}

static const char *text_of(struct json_object *o, const char *key) {
  struct json_object *v;
  return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
}

/* NaN and infinities stand as text in manifests. */
static double number_of(struct json_object *v) {
  const char *text = json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
  if (!text) return json_object_get_double(v);
  if (!strcasecmp(text, "nan")) return NAN;
  if (strstr(text, "nf") || strstr(text, "NF")) return *text == '-' ? -INFINITY : INFINITY;
  return strtod(text, NULL);
}

static bool compare_scalar(const ait_value *got, struct json_object *spec, const char *what, case_result *out) {
  struct json_object *want;
  json_object_object_get_ex(spec, "value", &want);
  const char *type = text_of(spec, "type");
  if (!type) type = "none";
  static const struct {
    const char *type;
    ait_value_kind kind;
  } kinds[] = {
      {"none", AIT_VALUE_NONE}, {"int", AIT_VALUE_INT}, {"float", AIT_VALUE_FLOAT}, {"bool", AIT_VALUE_BOOL}, {"str", AIT_VALUE_STRING}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    if (strcmp(kinds[i].type, type)) continue;
    if (got->kind != kinds[i].kind) return case_fail(out, "%s: is of kind %d, want %s", what, (int)got->kind, type);
    if (got->kind == AIT_VALUE_INT && got->as.i != json_object_get_int64(want))
      return case_fail(out, "%s: got %lld, want %lld", what, (long long)got->as.i, (long long)json_object_get_int64(want));
    if (got->kind == AIT_VALUE_BOOL && got->as.b != (bool)json_object_get_boolean(want))
      return case_fail(out, "%s: got %d", what, got->as.b);
    if (got->kind == AIT_VALUE_STRING && strcmp(got->as.s, json_object_get_string(want)))
      return case_fail(out, "%s: got '%s', want '%s'", what, got->as.s, json_object_get_string(want));
    double w = got->kind == AIT_VALUE_FLOAT ? number_of(want) : 0;
    if (got->kind == AIT_VALUE_FLOAT && got->as.f != w && !(isnan(got->as.f) && isnan(w)) && fabs(got->as.f - w) > 1e-12 * fabs(w))
      return case_fail(out, "%s: got %.17g, want %.17g", what, got->as.f, w);
    return true;
  }
  return case_fail(out, "%s: the case has an unknown type '%s'", what, type);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* {"min", "max", "max_open", "integer", "values", "permutation", "sum_last"}: what random numbers must obey. */
static bool compare_random_rules(double *v, int64_t n, int64_t last, struct json_object *rules, const char *what, case_result *out) {
  struct json_object *r;
  bool has_min = json_object_object_get_ex(rules, "min", &r);
  double min = has_min ? number_of(r) : 0;
  bool has_max = json_object_object_get_ex(rules, "max", &r);
  double max = has_max ? number_of(r) : 0;
  bool open = json_object_object_get_ex(rules, "max_open", &r) && json_object_get_boolean(r);
  bool integer = json_object_object_get_ex(rules, "integer", &r) && json_object_get_boolean(r);
  struct json_object *values = NULL;
  json_object_object_get_ex(rules, "values", &values);
  for (int64_t i = 0; i < n; ++i) {
    if ((has_min && !(v[i] >= min)) || (has_max && !(open ? v[i] < max : v[i] <= max)))
      return case_fail(out, "%s: element %lld is %.9g, outside [%.9g, %.9g]", what, (long long)i, v[i], min, max);
    if (integer && v[i] != floor(v[i])) return case_fail(out, "%s: element %lld is %.9g, not whole", what, (long long)i, v[i]);
    bool found = !values;
    for (size_t k = 0; values && k < json_object_array_length(values); ++k)
      found |= v[i] == number_of(json_object_array_get_idx(values, k));
    if (!found) return case_fail(out, "%s: element %lld is %.9g, not an allowed value", what, (long long)i, v[i]);
  }
  if (json_object_object_get_ex(rules, "sum_last", &r))
    for (int64_t row = 0; last > 0 && row < n / last; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < last; ++i) sum += v[row * last + i];
      if (!(fabs(sum - number_of(r)) <= 1e-4 * (1 + fabs(number_of(r)))))
        return case_fail(out, "%s: row %lld sums to %.9g", what, (long long)row, sum);
    }
  if (json_object_object_get_ex(rules, "permutation", &r) && json_object_get_boolean(r)) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    for (int64_t i = 0; i < n; ++i)
      if (v[i] != (double)i) return case_fail(out, "%s: is no permutation of 0..%lld", what, (long long)n - 1);
  }
  return true;
}

static bool compare_random(const ait_tensor *got, const ait_tensor *want, struct json_object *kind, const char *what, case_result *out) {
  if (json_object_is_type(kind, json_type_string) && !strcmp(json_object_get_string(kind), "shape")) return true;
  ait_tensor g, w;
  if (ait_tensor_cast(ait_allocator_default(), got, AIT_F64, &g) != AIT_OK) return case_fail(out, "%s: out of memory", what);
  bool ok = true;
  int64_t n = ait_tensor_count(got);
  if (json_object_is_type(kind, json_type_object)) {
    ok = compare_random_rules(g.data, n, got->rank ? got->shape[got->rank - 1] : 1, kind, what, out);
  } else if (want && ait_tensor_cast(ait_allocator_default(), want, AIT_F64, &w) == AIT_OK) { /* zero-or-equal */
    for (int64_t i = 0; ok && i < n; ++i) {
      double a = ((double *)g.data)[i], b = ((double *)w.data)[i];
      if (a != 0 && !(fabs(a - b) <= 1e-5 + 1e-5 * fabs(b)))
        ok = case_fail(out, "%s: element %lld is %.9g, neither 0 nor %.9g", what, (long long)i, a, b);
    }
    ait_tensor_release(&w);
  }
  ait_tensor_release(&g);
  return ok;
}

static bool shapes_agree(const ait_tensor *got, const ait_tensor *want, const char *what, case_result *out) {
  bool same = got->rank == want->rank;
  for (int32_t d = 0; same && d < got->rank; ++d) same = got->shape[d] == want->shape[d];
  if (same) return true;
  char text[2][160] = {"", ""};
  const ait_tensor *both[2] = {got, want};
  for (int k = 0; k < 2; ++k)
    for (int32_t d = 0; d < both[k]->rank; ++d)
      snprintf(text[k] + strlen(text[k]), sizeof text[k] - strlen(text[k]), "%s%lld", d ? ", " : "", (long long)both[k]->shape[d]);
  return case_fail(out, "%s: shape is [%s], want [%s]", what, text[0], text[1]);
}

/* A number of the program that the case holds as an array of no dims: the same number as such an array. */
static bool as_tensor(const ait_value *got, ait_tensor *out) {
  switch (got->kind) {
    case AIT_VALUE_TENSOR: *out = got->as.tensor; return true;
    case AIT_VALUE_INT: *out = ait_tensor_borrow((void *)&got->as.i, AIT_I64, 0, NULL); return true;
    case AIT_VALUE_FLOAT: *out = ait_tensor_borrow((void *)&got->as.f, AIT_F64, 0, NULL); return true;
    case AIT_VALUE_BOOL: *out = ait_tensor_borrow((void *)&got->as.b, AIT_BOOL, 0, NULL); return true;
    default: return false;
  }
}

bool case_compare_value(const ait_value *got, const ait_tensor *want, struct json_object *spec, const char *what, case_result *out) {
  struct json_object *v;
  ait_tensor tensor;
  if (json_object_object_get_ex(spec, "value", &v) || (!want && text_of(spec, "type"))) return compare_scalar(got, spec, what, out);
  if (!as_tensor(got, &tensor)) return case_fail(out, "%s: is no tensor", what);
  const ait_tensor *t = &tensor;
  const char *dtype = text_of(spec, "dtype");
  if (dtype && strcmp(dtype, ait_dtype_name(t->dtype)))
    return case_fail(out, "%s: dtype is %s, want %s", what, ait_dtype_name(t->dtype), dtype);
  if (want && !shapes_agree(t, want, what, out)) return false;
  struct json_object *compare = NULL, *part;
  json_object_object_get_ex(spec, "compare", &compare);
  if (compare && json_object_is_type(compare, json_type_object) && json_object_object_get_ex(compare, "random", &part))
    return compare_random(t, want, part, what, out);
  if (!want) return case_fail(out, "%s: the case holds no expected array", what);
  ait_compare_rule rule = {.exact = !compare || json_object_is_type(compare, json_type_string)};
  if (!rule.exact) {
    if (json_object_object_get_ex(compare, "rtol", &part)) rule.rtol = number_of(part);
    if (json_object_object_get_ex(compare, "atol", &part)) rule.atol = number_of(part);
  }
  ait_compare_result r;
  ait_status status = ait_compare(t, want, &rule, &r);
  if (status != AIT_OK) {
    case_fail(out, "%s: %s", what, ait_status_message(status));
    ait_status_free(status);
    return false;
  }
  if (r.max_abs > out->max_abs) out->max_abs = r.max_abs;
  if (r.pass) return true;
  return case_fail(out, "%s: %lld of %lld elements differ; worst at %lld: got %.9g, want %.9g (max abs %.3g)", what,
                   (long long)r.mismatches, (long long)r.count, (long long)r.worst_index, r.worst_got, r.worst_want, r.max_abs);
}
