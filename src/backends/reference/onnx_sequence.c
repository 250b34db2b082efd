/* ONNX: sequences of tensors. */
#include "backends/reference/onnx.h"

typedef struct sequence {
  ait_tensor *items; /* borrowed elements, an array of our own */
  uint32_t count;
} sequence;

static ait_status read_sequence(const ait_ref_call *call, uint32_t arg, sequence *s) {
  return ait_ref_tensors(call, arg, &s->items, &s->count);
}

static void sequence_free(const ait_ref_call *call, sequence *s) { ait_free(call->allocator, s->items, s->count * sizeof *s->items); }

/* The result: elements [0, count) of `s`, but for `without`, and x (or NULL) at `at`. */
static ait_status give(ait_ref_call *call, const sequence *s, int64_t without, const ait_tensor *x, int64_t at) {
  uint32_t count = s->count - (without >= 0) + (x != NULL), k = 0;
  ait_tensor *items = ait_alloc(call->allocator, count * sizeof *items, _Alignof(ait_tensor));
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i <= s->count; ++i) {
    if (x && at == (int64_t)i) items[k++] = ait_tensor_retain(x);
    if (i < s->count && without != (int64_t)i) items[k++] = ait_tensor_retain(&s->items[i]);
  }
  ait_ref_set_list(call, 0, items, count);
  return AIT_OK;
}

/* A place in tensor argument `arg`, counted from the end when negative; none: `otherwise`. limit: of the valid ones. */
static ait_status place(const ait_ref_call *call, uint32_t arg, int64_t size, int64_t limit, int64_t otherwise, int64_t *out) {
  double v;
  *out = otherwise;
  if (ait_ref_is_none(call, arg)) return limit > 0 ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the sequence is empty");
  AIT_TRY(ait_onnx_number(call, arg, &v));
  *out = (int64_t)v < 0 ? (int64_t)v + size : (int64_t)v;
  if (*out >= 0 && *out < limit) return AIT_OK;
  return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "place %lld of a sequence of %lld", (long long)v, (long long)size);
}

/* ([tensors]) */
ait_status ait_ref_onnx_sequence_construct(ait_ref_call *call) {
  sequence s;
  AIT_TRY(read_sequence(call, 0, &s));
  ait_status status = give(call, &s, -1, NULL, 0);
  sequence_free(call, &s);
  return status;
}

/* (sequence, tensor, position?) */
ait_status ait_ref_onnx_sequence_insert(ait_ref_call *call) {
  sequence s;
  const ait_tensor *x;
  int64_t at;
  AIT_TRY(ait_ref_tensor(call, 1, &x));
  AIT_TRY(read_sequence(call, 0, &s));
  ait_status status = place(call, 2, s.count, (int64_t)s.count + 1, s.count, &at);
  if (status == AIT_OK) status = give(call, &s, -1, x, at);
  sequence_free(call, &s);
  return status;
}

/* (sequence, position?) */
ait_status ait_ref_onnx_sequence_erase(ait_ref_call *call) {
  sequence s;
  int64_t at;
  AIT_TRY(read_sequence(call, 0, &s));
  ait_status status = place(call, 1, s.count, s.count, (int64_t)s.count - 1, &at);
  if (status == AIT_OK) status = give(call, &s, at, NULL, 0);
  sequence_free(call, &s);
  return status;
}

/* (sequence, position) */
ait_status ait_ref_onnx_sequence_at(ait_ref_call *call) {
  sequence s;
  int64_t at;
  AIT_TRY(read_sequence(call, 0, &s));
  ait_status status = place(call, 1, s.count, s.count, 0, &at);
  if (status == AIT_OK) status = ait_ref_copy_result(call, 0, s.items[at].dtype, &s.items[at]);
  sequence_free(call, &s);
  return status;
}

ait_status ait_ref_onnx_sequence_length(ait_ref_call *call) {
  sequence s;
  ait_tensor out;
  AIT_TRY(read_sequence(call, 0, &s));
  ait_status status = ait_ref_new(call, 0, AIT_I64, 0, NULL, &out);
  if (status == AIT_OK) *(int64_t *)out.data = s.count;
  sequence_free(call, &s);
  return status;
}

/* Pieces of x along d; without keepdims each loses that dim. */
static ait_status give_pieces(ait_ref_call *call, const ait_tensor *x, int32_t d, const int64_t *sizes, int64_t count, int64_t size,
                              bool keep) {
  ait_tensor *items = ait_alloc_zero(call->allocator, (size_t)count * sizeof *items, _Alignof(ait_tensor));
  ait_status status = items ? AIT_OK : AIT_OOM();
  int64_t start = 0;
  for (int64_t i = 0; i < count && status == AIT_OK; ++i) {
    int64_t n = sizes ? sizes[i] : ait_nn_min(size, x->shape[d] - start);
    if (n < 0 || n > x->shape[d] - start || (!keep && n != 1)) {
      status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a piece of %lld from %lld of %lld", (long long)n, (long long)start,
                             (long long)x->shape[d]);
      break;
    }
    ait_tensor piece = keep ? ait_ref_narrowed(x, d, start, n) : ait_ref_selected(x, d, start);
    status = ait_ref_temp(call, piece.dtype, piece.rank, piece.shape, &items[i]);
    if (status == AIT_OK) status = ait_ref_move(call, &items[i], &piece);
    start += n;
  }
  if (status == AIT_OK && start != x->shape[d])
    status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the pieces do not fill a dim of %lld", (long long)x->shape[d]);
  if (status == AIT_OK) {
    ait_ref_set_list(call, 0, items, (uint32_t)count);
    return AIT_OK;
  }
  for (int64_t i = 0; items && i < count; ++i) ait_tensor_release(&items[i]);
  ait_free(call->allocator, items, (size_t)count * sizeof *items);
  return status;
}

/* (x, split?, axis, keepdims): split is one size, or one for each piece; none: 1 */
ait_status ait_ref_onnx_split_to_sequence(ait_ref_call *call) {
  const ait_tensor *x, *split = ait_ref_tensor_or_null(call, 1);
  int64_t axis, sizes[1024], size = 1;
  int32_t d, n = -1;
  bool keep;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_int(call, 2, &axis));
  AIT_TRY(ait_ref_bool(call, 3, &keep));
  AIT_TRY(ait_ref_dim(call, axis, x->rank, &d));
  if (x->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the operand has no dims");
  if (split) AIT_TRY(ait_onnx_ints(call, 1, sizes, 1024, &n));
  if (split && split->rank == 0) size = sizes[0], n = -1;
  if (size < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "pieces of %lld", (long long)size);
  int64_t count = n >= 0 ? n : (x->shape[d] + size - 1) / size;
  return give_pieces(call, x, d, n >= 0 ? sizes : NULL, count, size, keep || split != NULL);
}

/* (sequence, axis, new_axis) */
ait_status ait_ref_onnx_concat_from_sequence(ait_ref_call *call) {
  bool fresh;
  AIT_TRY(ait_ref_bool(call, 2, &fresh));
  return ait_onnx_delegate(call, fresh ? "aten.stack" : "cat", call->node->args, 2);
}
