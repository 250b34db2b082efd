/* Sequences of tensors: list values. Import follows the rank of their elements. */
#include "import/onnx/onnx.h"

static ait_status need_sequence(const ox_call *c, uint32_t *out) {
  if (ox_has(c, 0) && ox_info(c, c->inputs[0])->type == AIT_TYPE_TENSOR_LIST) {
    *out = c->inputs[0];
    return AIT_OK;
  }
  return ox_fail(c, AIT_CODE_INVALID_MODEL, "input 0 is no sequence");
}

static int32_t element_rank(const ox_call *c, uint32_t sequence) { /* -1: not known */
  const ox_known *k = ox_get_known(c->s, sequence);
  return k && k->element_rank > 0 ? k->element_rank - 1 : -1;
}

static ait_status emit_sequence(ox_call *c, const char *op, const ait_arg *args, uint32_t count, ait_dtype dtype, int32_t rank) {
  ait_value_info info = {.type = AIT_TYPE_TENSOR_LIST, .dtype = dtype, .rank = -1, .scalar = AIT_NO_INDEX};
  AIT_TRY(ox_raw_args(c, op, args, count, &info, c->outputs, 1));
  ox_known known = {.element_rank = rank + 1};
  return rank >= 0 ? ox_set_known(c->s, c->outputs[0], &known) : AIT_OK;
}

static uint32_t optional(const ox_call *c, uint32_t k) { return ox_has(c, k) ? c->inputs[k] : AIT_NO_INDEX; }

ait_status ox_build_sequence_construct(ox_call *c) {
  uint32_t x;
  AIT_TRY(ox_need(c, 0, &x));
  for (uint32_t i = 1, other; i < c->input_count; ++i) AIT_TRY(ox_need(c, i, &other));
  return emit_sequence(c, "onnx.SequenceConstruct", OX_ARGS(ox_list_values(c, c->inputs, c->input_count)), ox_dtype_of(c, x),
                       ox_info(c, x)->rank);
}

ait_status ox_build_sequence_empty(ox_call *c) {
  int64_t type;
  AIT_TRY(ox_int(c, "dtype", 1, &type));
  ait_dtype dtype = ox_dtype(type > 0 && type < 1000 ? (int32_t)type : 0);
  if (dtype == AIT_DTYPE_NONE) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a sequence of type %lld", (long long)type);
  return emit_sequence(c, "onnx.SequenceConstruct", OX_ARGS(ox_list_values(c, NULL, 0)), dtype, -1);
}

ait_status ox_build_sequence_insert(ox_call *c) {
  uint32_t s, x;
  AIT_TRY(need_sequence(c, &s));
  AIT_TRY(ox_need(c, 1, &x));
  return emit_sequence(c, "onnx.SequenceInsert", OX_ARGS(V(s), V(x), V(optional(c, 2))), ox_dtype_of(c, x), ox_info(c, x)->rank);
}

ait_status ox_build_sequence_erase(ox_call *c) {
  uint32_t s;
  AIT_TRY(need_sequence(c, &s));
  return emit_sequence(c, "onnx.SequenceErase", OX_ARGS(V(s), V(optional(c, 1))), ox_dtype_of(c, s), element_rank(c, s));
}

ait_status ox_build_sequence_at(ox_call *c) {
  uint32_t s, at;
  ait_value_info info;
  AIT_TRY(need_sequence(c, &s));
  AIT_TRY(ox_need(c, 1, &at));
  AIT_TRY(ox_unknown_info(c, ox_dtype_of(c, s), element_rank(c, s), &info));
  return OX_RAW(c, "onnx.SequenceAt", &info, &c->outputs[0], V(s), V(at));
}

ait_status ox_build_sequence_length(ox_call *c) {
  uint32_t s;
  ait_value_info info = ox_tensor_info(AIT_I64, 0, NULL);
  AIT_TRY(need_sequence(c, &s));
  return OX_RAW(c, "onnx.SequenceLength", &info, &c->outputs[0], V(s));
}

ait_status ox_build_split_to_sequence(ox_call *c) {
  uint32_t x;
  int64_t axis;
  bool keep;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_int(c, "axis", 0, &axis));
  AIT_TRY(ox_flag(c, "keepdims", true, &keep));
  int32_t rank = ox_info(c, x)->rank;
  if (!keep && !ox_has(c, 1) && rank > 0) --rank;
  return emit_sequence(c, "onnx.SplitToSequence", OX_ARGS(V(x), V(optional(c, 1)), I(axis), B(keep)), ox_dtype_of(c, x), rank);
}

ait_status ox_build_concat_from_sequence(ox_call *c) {
  uint32_t s;
  int64_t axis;
  bool fresh;
  ait_value_info info;
  AIT_TRY(need_sequence(c, &s));
  AIT_TRY(ox_int(c, "axis", 0, &axis));
  AIT_TRY(ox_flag(c, "new_axis", false, &fresh));
  int32_t rank = element_rank(c, s);
  AIT_TRY(ox_unknown_info(c, ox_dtype_of(c, s), rank < 0 ? -1 : rank + fresh, &info));
  return OX_RAW(c, "onnx.ConcatFromSequence", &info, &c->outputs[0], V(s), I(axis), B(fresh));
}
