/* Symbols take their values from the shapes (and ints) of the inputs. */
#include "backends/dims.h"
#include "backends/native/instance.h"

static const char *input_name(const ait_region_input *in) { return in->name != NULL ? in->name : ""; }

static ait_status check_rank(const ait_region *r, uint32_t i, const ait_value *value) {
  const ait_region_input *in = &r->inputs[i];
  const ait_region_value *v = &r->values[in->value];
  if (v->type != AIT_TYPE_TENSOR) return AIT_OK;
  if (value->kind != AIT_VALUE_TENSOR) return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s' is not a tensor", input_name(in));
  const ait_tensor *t = &value->as.tensor;
  if (t->dtype != v->dtype) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s' is %s, not %s", input_name(in), ait_dtype_name(t->dtype),
                     ait_dtype_name(v->dtype));
  }
  if (t->rank != v->rank) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s' has rank %d, not %d", input_name(in), t->rank, v->rank);
  }
  return AIT_OK;
}

static ait_status check_dims(const ait_region *r, uint32_t i, const ait_value *value, const int64_t *symbols) {
  const ait_region_input *in = &r->inputs[i];
  const ait_region_value *v = &r->values[in->value];
  if (v->type != AIT_TYPE_TENSOR) return AIT_OK;
  const ait_tensor *t = &value->as.tensor;
  for (int32_t d = 0; d < t->rank; ++d) {
    int64_t want;
    if (ait_dim_eval(r->dims, symbols, v->shape[d], &want) && want == t->shape[d] && want >= 0) continue;
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s': dimension %d is %lld, which does not fit the other sizes", input_name(in), d,
                     (long long)t->shape[d]);
  }
  return AIT_OK;
}

static bool passed(const ait_region *r, uint32_t i) {
  const ait_region_input *in = &r->inputs[i];
  return in->value != AIT_NO_INDEX && (in->kind == AIT_INPUT_USER || in->mutated);
}

ait_status nat_bind_symbols(const ait_region *region, const ait_value *inputs, int64_t *symbols) {
  for (uint32_t i = 0; i < region->symbol_count; ++i) symbols[i] = INT64_MIN;
  for (uint32_t i = 0; i < region->input_count; ++i) {
    if (passed(region, i)) AIT_TRY(check_rank(region, i, &inputs[i]));
  }
  /* Twice: an expression of two symbols can be solved once the other one is known. */
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < region->input_count; ++i) {
      if (!passed(region, i)) continue;
      const ait_region_value *v = &region->values[region->inputs[i].value];
      if (v->type == AIT_TYPE_INT && v->shape != NULL && inputs[i].kind == AIT_VALUE_INT)
        ait_dim_bind(region->dims, symbols, v->shape[0], inputs[i].as.i);
      if (v->type != AIT_TYPE_TENSOR) continue;
      for (int32_t d = 0; d < v->rank; ++d) ait_dim_bind(region->dims, symbols, v->shape[d], inputs[i].as.tensor.shape[d]);
    }
  }
  for (uint32_t i = 0; i < region->input_count; ++i) {
    if (passed(region, i)) AIT_TRY(check_dims(region, i, &inputs[i], symbols));
  }
  return AIT_OK;
}
