/* Scaled dot-product attention. A row whose keys are all masked gives zeros, as torch's fused and safe-softmax paths do. */
#include "backends/reference/nn.h"
#include <stdatomic.h>

enum { ROWS = 64 }; /* query rows of one job */

typedef struct attention {
  const ait_ref_call *call;
  ait_tensor q, k, v, mask; /* q, k, v: doubles [lead.., length, width]; mask: any dtype, data NULL when there is none */
  int32_t lead_rank;
  int64_t lead[AIT_MAX_RANK], batch, blocks;
  int64_t queries, keys, width, value_width;
  int64_t k_group, v_group; /* query heads that share a key (value) head */
  bool causal;
  double scale, dropout;
  ait_nn_random random; /* state at the start, for dropout */
  double *out;          /* [batch, queries, value_width] */
  double *logsumexp;    /* [batch, queries], or NULL */
  atomic_bool out_of_memory;
} attention;

/* Element offset of t for the leading index; the last leading dim (heads) is shared by `group` query heads. */
static int64_t lead_offset(const attention *a, const ait_tensor *t, const int64_t *index, int64_t group) {
  int64_t offset = 0;
  int32_t lead = t->rank - 2;
  for (int32_t d = 0; d < lead; ++d) {
    int32_t at = a->lead_rank - lead + d;
    int64_t i = index[at];
    if (at == a->lead_rank - 1) i /= group;
    if (t->shape[d] != 1) offset += i * t->strides[d];
  }
  return offset;
}

static void add_mask(const attention *a, const int64_t *index, int64_t row, double *scores, double *buffer) {
  const ait_tensor *m = &a->mask;
  int64_t offset = lead_offset(a, m, index, 1), step = m->shape[m->rank - 1] == 1 ? 0 : m->strides[m->rank - 1];
  if (m->shape[m->rank - 2] != 1) offset += row * m->strides[m->rank - 2];
  ait_nn_load((const char *)m->data + offset * (int64_t)ait_dtype_size(m->dtype), m->dtype, step, a->keys, buffer);
  bool keep = m->dtype == AIT_BOOL;
  for (int64_t j = 0; j < a->keys; ++j) {
    /* in single precision, as the spelled-out graph: large negative numbers wipe out what is below their last bit */
    if (!keep) scores[j] = a->call->fp64 || m->dtype == AIT_F64 ? scores[j] + buffer[j] : (double)(float)(scores[j] + buffer[j]);
    else if (buffer[j] == 0) scores[j] = -INFINITY;
  }
}

static double softmax_row(double *x, int64_t n) {
  double top = -INFINITY, sum = 0;
  for (int64_t j = 0; j < n; ++j)
    if (x[j] > top || isnan(x[j])) top = x[j];
  if (top == -INFINITY) {
    memset(x, 0, (size_t)n * sizeof *x);
    return -INFINITY;
  }
  for (int64_t j = 0; j < n; ++j) sum += x[j] = exp(x[j] - top);
  for (int64_t j = 0; j < n; ++j) x[j] /= sum;
  return top + log(sum);
}

static void drop(const attention *a, int64_t job, double *p, int64_t count) {
  ait_nn_random r = a->random;
  r.counter[2] = (uint32_t)job;
  r.counter[3] = (uint32_t)(job >> 32);
  r.used = 4;
  for (int64_t i = 0; i < count; ++i) p[i] = ait_nn_random_uniform(&r) < a->dropout ? 0 : p[i] / (1 - a->dropout);
}

/* scores: ROWS x keys; buffer: keys */
static void attend(const attention *a, int64_t job, double *scores, double *buffer, double *scratch) {
  int64_t block = job % a->blocks, batch = job / a->blocks, index[AIT_MAX_RANK], rest = batch;
  for (int32_t d = a->lead_rank - 1; d >= 0; --d) index[d] = rest % a->lead[d], rest /= a->lead[d];
  int64_t row0 = block * ROWS, rows = ait_nn_min(ROWS, a->queries - row0);
  ait_nn_mat q = ait_nn_mat_of(ait_nn_data(&a->q) + lead_offset(a, &a->q, index, 1) + row0 * a->width, a->width, 1);
  ait_nn_mat k = ait_nn_mat_of(ait_nn_data(&a->k) + lead_offset(a, &a->k, index, a->k_group), 1, a->width);
  ait_nn_mat v = ait_nn_mat_of(ait_nn_data(&a->v) + lead_offset(a, &a->v, index, a->v_group), a->value_width, 1);
  ait_nn_gemm_serial(&q, &k, rows, a->keys, a->width, scores, a->keys, scratch);
  for (int64_t i = 0; i < rows; ++i) {
    double *s = scores + i * a->keys;
    for (int64_t j = 0; j < a->keys; ++j) s[j] = a->causal && j > row0 + i ? -INFINITY : s[j] * a->scale;
    if (a->mask.data) add_mask(a, index, row0 + i, s, buffer);
    double total = softmax_row(s, a->keys);
    if (a->logsumexp) a->logsumexp[batch * a->queries + row0 + i] = total;
  }
  if (a->dropout > 0) drop(a, job, scores, rows * a->keys);
  ait_nn_mat p = ait_nn_mat_of(scores, a->keys, 1);
  double *out = a->out + (batch * a->queries + row0) * a->value_width;
  ait_nn_gemm_serial(&p, &v, rows, a->value_width, a->keys, out, a->value_width, scratch);
}

static void attend_jobs(void *ctx, int64_t begin, int64_t end) {
  attention *a = ctx;
  int64_t scores = ROWS * a->keys, count = scores + a->keys + AIT_NN_GEMM_SCRATCH;
  double *memory = ait_nn_doubles(a->call, count);
  if (!memory) {
    atomic_store(&a->out_of_memory, true);
    return;
  }
  for (int64_t job = begin; job < end; ++job) attend(a, job, memory, memory + scores, memory + scores + a->keys);
  ait_nn_doubles_free(a->call, memory, count);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------------------ */
static ait_status group_of(const ait_ref_call *call, const ait_tensor *q, const ait_tensor *t, bool gqa, int64_t *out) {
  *out = 1;
  if (!gqa || q->rank < 3 || t->rank < 3) return AIT_OK;
  int64_t heads = q->shape[q->rank - 3], shared = t->shape[t->rank - 3];
  if (shared == heads || shared == 0) return AIT_OK;
  if (heads % shared != 0)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld query heads over %lld key heads", (long long)heads, (long long)shared);
  *out = heads / shared;
  return AIT_OK;
}

static ait_status set_shapes(const ait_ref_call *call, attention *a, bool gqa) {
  if (a->q.rank < 2 || a->k.rank < 2 || a->v.rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operands need two dims");
  AIT_TRY(group_of(call, &a->q, &a->k, gqa, &a->k_group));
  AIT_TRY(group_of(call, &a->q, &a->v, gqa, &a->v_group));
  ait_tensor lead[3] = {a->q, a->k, a->v};
  for (int i = 0; i < 3; ++i) lead[i].rank -= 2;
  if (a->k_group > 1) lead[1].shape[lead[1].rank - 1] = 1;
  if (a->v_group > 1) lead[2].shape[lead[2].rank - 1] = 1;
  const ait_tensor *leads[3] = {&lead[0], &lead[1], &lead[2]};
  AIT_TRY(ait_ref_broadcast(call, leads, 3, &a->lead_rank, a->lead));
  a->batch = 1;
  for (int32_t d = 0; d < a->lead_rank; ++d) a->batch *= a->lead[d];
  a->queries = a->q.shape[a->q.rank - 2], a->width = a->q.shape[a->q.rank - 1];
  a->keys = a->k.shape[a->k.rank - 2], a->value_width = a->v.shape[a->v.rank - 1];
  if (a->k.shape[a->k.rank - 1] != a->width || a->v.shape[a->v.rank - 2] != a->keys)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "query, key and value do not fit together");
  a->blocks = (a->queries + ROWS - 1) / ROWS;
  return AIT_OK;
}

/* The mask must broadcast to [lead.., queries, keys]; it gets two dims at least. */
static ait_status set_mask(const ait_ref_call *call, attention *a, const ait_tensor *mask) {
  if (!mask) return AIT_OK;
  ait_tensor m = *mask;
  while (m.rank < 2) {
    for (int32_t d = m.rank; d > 0; --d) m.shape[d] = m.shape[d - 1], m.strides[d] = m.strides[d - 1];
    m.shape[0] = 1, m.strides[0] = 0, m.rank++;
  }
  if (m.rank - 2 > a->lead_rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "mask of rank %d", mask->rank);
  for (int32_t d = 0; d < m.rank; ++d) {
    int32_t from_end = m.rank - 1 - d;
    int64_t want = from_end == 0 ? a->keys : from_end == 1 ? a->queries : a->lead[a->lead_rank - 1 - (from_end - 2)];
    if (m.shape[d] != 1 && m.shape[d] != want)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "mask of %lld where %lld is needed", (long long)m.shape[d], (long long)want);
  }
  a->mask = m;
  return AIT_OK;
}

/* torch's fused CPU path, which it takes under these conditions, gives its result the strides of the query; programs rely on them. */
static bool is_fused(const attention *a, const ait_tensor *q, const ait_tensor *k, const ait_tensor *v) {
  return q->rank == 4 && k->rank == 4 && v->rank == 4 && a->lead_rank == 2 && a->dropout == 0 && a->width == a->value_width &&
         (!a->mask.data || a->mask.rank == 2 || a->mask.rank == 4) && a->queries > 0 && a->keys > 0 && a->width > 0 && q->strides[3] == 1 &&
         k->strides[3] == 1 && v->strides[3] == 1;
}

/* The mask is argument `mask`. */
static ait_status attention_run(ait_ref_call *call, attention *a, bool gqa, uint32_t mask) {
  const ait_tensor *q;
  AIT_TRY(ait_ref_tensor(call, 0, &q));
  ait_tensor out = {0}, sums = {0};
  ait_status status;
  a->call = call;
  AIT_GOTO(ait_nn_f64(call, q, &a->q));
  AIT_GOTO(ait_nn_arg(call, 1, &a->k));
  AIT_GOTO(ait_nn_arg(call, 2, &a->v));
  AIT_GOTO(set_shapes(call, a, gqa));
  AIT_GOTO(set_mask(call, a, ait_ref_tensor_or_null(call, mask)));
  if (isnan(a->scale)) a->scale = a->width > 0 ? 1 / sqrt((double)a->width) : 1; /* heads without elements: scores of 0 */
  int64_t shape[AIT_MAX_RANK];
  memcpy(shape, a->lead, sizeof shape);
  shape[a->lead_rank] = a->queries, shape[a->lead_rank + 1] = a->value_width;
  AIT_GOTO(ait_ref_temp(call, AIT_F64, a->lead_rank + 2, shape, &out));
  a->out = out.data;
  if (strstr(call->node->op, "flash") || strstr(call->node->op, "efficient")) {
    AIT_GOTO(ait_ref_temp(call, AIT_F64, a->lead_rank + 1, shape, &sums));
    a->logsumexp = sums.data;
  }
  if (a->dropout > 0) ait_nn_random_init(call, &a->random);
  if (ait_tensor_count(&out) > 0)
    ait_ref_parallel(call, a->batch * a->blocks, ROWS * a->keys * (a->width + a->value_width + 8), attend_jobs, a);
  if (atomic_load(&a->out_of_memory)) AIT_GOTO(AIT_OOM());
  ait_dtype dtype = ait_nn_dtype(call, 0, q->dtype);
  bool fused = ait_nn_starts(call, "aten.") && is_fused(a, q, ait_ref_tensor_or_null(call, 1), ait_ref_tensor_or_null(call, 2));
  status = fused && ait_tensor_same_shape(q, &out) ? ait_nn_result_like(call, 0, dtype, &out, q) : ait_nn_result(call, 0, dtype, &out);
  if (!status && sums.data) status = ait_nn_result(call, 1, ait_nn_dtype(call, 1, AIT_F32), &sums);
cleanup:
  ait_tensor_release(&sums);
  ait_tensor_release(&a->q);
  ait_tensor_release(&a->k);
  ait_tensor_release(&a->v);
  ait_tensor_release(&out);
  return status;
}

ait_status ait_ref_sdpa(ait_ref_call *call) {
  attention a = {0};
  bool gqa;
  AIT_TRY(ait_ref_float(call, 4, &a.dropout));
  AIT_TRY(ait_ref_bool(call, 5, &a.causal));
  AIT_TRY(ait_ref_float_or(call, 6, NAN, &a.scale));
  AIT_TRY(ait_ref_bool(call, 7, &gqa));
  return attention_run(call, &a, gqa, 3);
}

/* query, key, value, dropout_p, is_causal, attn_mask, scale -> output, logsumexp */
ait_status ait_ref_flash_cpu(ait_ref_call *call) {
  attention a = {0};
  AIT_TRY(ait_ref_float(call, 3, &a.dropout));
  AIT_TRY(ait_ref_bool(call, 4, &a.causal));
  AIT_TRY(ait_ref_float_or(call, 6, NAN, &a.scale));
  return attention_run(call, &a, true, 5);
}

/* core: heads of k and v may always be fewer than those of q */
ait_status ait_ref_core_attention(ait_ref_call *call) {
  attention a = {0};
  AIT_TRY(ait_ref_bool(call, 4, &a.causal));
  AIT_TRY(ait_ref_float_or(call, 5, NAN, &a.scale));
  return attention_run(call, &a, true, 3);
}

/* _scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, enable_gqa) -> output,
 * weights. Nothing reads the weights outside training. */
ait_status ait_ref_sdpa_math(ait_ref_call *call) {
  attention a = {0};
  bool gqa;
  AIT_TRY(ait_ref_float(call, 4, &a.dropout));
  AIT_TRY(ait_ref_bool(call, 5, &a.causal));
  AIT_TRY(ait_ref_float_or(call, 7, NAN, &a.scale));
  AIT_TRY(ait_ref_bool(call, 8, &gqa));
  return attention_run(call, &a, gqa, 3);
}

/* _scaled_dot_product_efficient_attention, which programs exported for a GPU hold: query, key, value, bias, compute_log_sumexp, dropout_p,
 * is_causal, scale -> output, log_sumexp, and the state of its random numbers, which stays unset. */
ait_status ait_ref_sdpa_gpu(ait_ref_call *call) {
  attention a = {0};
  AIT_TRY(ait_ref_float(call, 5, &a.dropout));
  AIT_TRY(ait_ref_bool(call, 6, &a.causal));
  AIT_TRY(ait_ref_float_or(call, 7, NAN, &a.scale));
  return attention_run(call, &a, false, 3);
}
