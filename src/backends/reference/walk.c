/* Walking strided tensors. */
#include "backends/reference/reference.h"

#define PARALLEL_WORK 32768 /* rough element operations below which splitting costs more than it gains */
#define PIECES_PER_THREAD 4

typedef struct split {
  ait_ref_range_fn fn;
  void *ctx;
  int64_t count;
  int32_t pieces;
} split;

static void run_piece(void *ctx, int32_t i) {
  split *s = ctx;
  int64_t each = s->count / s->pieces, rest = s->count % s->pieces;
  int64_t begin = i * each + (i < rest ? i : rest);
  s->fn(s->ctx, begin, begin + each + (i < rest));
}

void ait_ref_parallel(const ait_ref_call *call, int64_t count, int64_t work_per_item, ait_ref_range_fn fn, void *ctx) {
  if (count <= 0) return;
  int32_t threads = ait_pool_threads(call->pool);
  int64_t work;
  bool worth = ait_mul_overflows(count, work_per_item, &work) || work >= PARALLEL_WORK;
  if (threads <= 1 || count == 1 || !worth) {
    fn(ctx, 0, count);
    return;
  }
  int64_t pieces = (int64_t)threads * PIECES_PER_THREAD;
  split s = {.fn = fn, .ctx = ctx, .count = count, .pieces = (int32_t)(pieces < count ? pieces : count)};
  ait_pool_run(call->pool, run_piece, &s, s.pieces);
}

ait_status ait_ref_broadcast(const ait_ref_call *call, const ait_tensor *const *tensors, uint32_t count, int32_t *out_rank,
                             int64_t out_shape[AIT_MAX_RANK]) {
  int32_t rank = 0;
  for (uint32_t i = 0; i < count; ++i)
    if (tensors[i]->rank > rank) rank = tensors[i]->rank;
  for (int32_t d = 0; d < rank; ++d) out_shape[d] = 1;
  for (uint32_t i = 0; i < count; ++i) {
    const ait_tensor *t = tensors[i];
    for (int32_t d = 0; d < t->rank; ++d) {
      int64_t *size = &out_shape[rank - t->rank + d];
      if (t->shape[d] == *size || t->shape[d] == 1) continue;
      if (*size != 1)
        return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "sizes %lld and %lld of dimension %d cannot be broadcast", (long long)*size,
                             (long long)t->shape[d], rank - t->rank + d);
      *size = t->shape[d];
    }
  }
  *out_rank = rank;
  return AIT_OK;
}

ait_tensor ait_ref_expand(const ait_tensor *t, int32_t rank, const int64_t *shape) {
  ait_tensor v = {.data = t->data, .dtype = t->dtype, .rank = rank};
  int32_t lead = rank - t->rank;
  for (int32_t d = 0; d < rank; ++d) {
    v.shape[d] = shape[d];
    v.strides[d] = d < lead || (t->shape[d - lead] == 1 && shape[d] != 1) ? 0 : t->strides[d - lead];
  }
  return v;
}

ait_status ait_ref_to_f64(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) {
  return ait_tensor_cast(call->allocator, t, ait_dtype_is_complex(t->dtype) ? AIT_C128 : AIT_F64, out);
}

bool ait_ref_next(int32_t rank, const int64_t *shape, int64_t *index) {
  for (int32_t d = rank; d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}
