/* weight_linear and weight_embedding: weights of few bits, made floats again and used as such.
 *
 * bfloat16 [n][k] without scales; int8 [n][k], or int4 as uint8 [n][(k + 1) / 2], q + 8 with an even k in the low half; integers with
 * scales [n][ceil(k / group)]: w = scale * q. */
#include "backends/reference/nn.h"

typedef struct few_bits {
  const ait_tensor *weight, *scales; /* scales NULL: none */
  int64_t k, group, groups;
} few_bits;

static ait_status open_weight(const ait_ref_call *call, const ait_tensor *weight, const ait_tensor *scales, int64_t k, int64_t group,
                              few_bits *out) {
  bool integers = weight->dtype == AIT_I8 || weight->dtype == AIT_U8;
  int64_t stored = weight->dtype == AIT_U8 ? k / 2 + k % 2 : k;
  *out = (few_bits){weight, scales, k, group, integers && group > 0 ? k / group + (k % group != 0) : 0};
  if (weight->rank != 2 || k < 0 || weight->shape[1] != stored)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "the weight does not have %lld columns", (long long)stored);
  if (!integers) return scales ? ait_ref_error(call, AIT_CODE_INVALID_MODEL, "scales of weights that are no integers") : AIT_OK;
  if (!scales || group < 1 || scales->rank != 2 || scales->shape[0] != weight->shape[0] || scales->shape[1] != out->groups)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "scales do not fit weights in groups of %lld", (long long)group);
  return AIT_OK;
}

/* Row r as doubles. scratch: groups doubles. */
static void load_row(const few_bits *f, int64_t r, double *scratch, double *out) {
  const ait_tensor *w = f->weight;
  const char *row = (const char *)w->data + r * w->strides[0] * (int64_t)ait_dtype_size(w->dtype);
  if (!f->scales) {
    ait_nn_load(row, w->dtype, w->strides[1], f->k, out);
    return;
  }
  const ait_tensor *s = f->scales;
  ait_nn_load((const char *)s->data + r * s->strides[0] * (int64_t)ait_dtype_size(s->dtype), s->dtype, s->strides[1], f->groups, scratch);
  for (int64_t i = 0; i < f->k; ++i) {
    int q = w->dtype == AIT_I8 ? ((const int8_t *)row)[i * w->strides[1]]
                               : (((const uint8_t *)row)[i / 2 * w->strides[1]] >> (i % 2 * 4) & 15) - 8;
    out[i] = scratch[i / f->group] * q;
  }
}

/* Rows of the weight, each by number or, where rows is NULL, all of them in order. */
static ait_status load_rows(const ait_ref_call *call, const few_bits *f, const int64_t *rows, int64_t count, ait_tensor *to) {
  double *scratch = ait_nn_doubles(call, f->groups + f->k);
  if (!scratch) return AIT_OOM();
  char *at = to->data;
  for (int64_t i = 0; i < count; ++i, at += f->k * (int64_t)ait_dtype_size(to->dtype)) {
    load_row(f, rows ? rows[i] : i, scratch, scratch + f->groups);
    ait_nn_store(at, to->dtype, 1, f->k, scratch + f->groups);
  }
  ait_free(call->allocator, scratch, (size_t)(f->groups + f->k) * sizeof *scratch);
  return AIT_OK;
}

ait_status ait_ref_weight_linear(ait_ref_call *call) {
  const ait_tensor *x, *weight;
  few_bits f;
  ait_tensor plain;
  int64_t group;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &weight));
  AIT_TRY(ait_ref_int(call, 4, &group));
  if (x->rank < 1) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "input of rank %d", x->rank);
  AIT_TRY(open_weight(call, weight, ait_ref_tensor_or_null(call, 2), x->shape[x->rank - 1], group, &f));
  int64_t shape[2] = {weight->shape[0], f.k};
  AIT_TRY(ait_ref_temp(call, ait_ref_widen(call, AIT_F32), 2, shape, &plain));
  ait_status status = load_rows(call, &f, NULL, shape[0], &plain);
  if (status == AIT_OK) status = ait_nn_linear(call, x, &plain, ait_ref_tensor_or_null(call, 3));
  ait_tensor_release(&plain);
  return status;
}

static ait_status check_indices(const ait_ref_call *call, const int64_t *rows, int64_t count, int64_t limit) {
  for (int64_t i = 0; i < count; ++i)
    if (rows[i] < 0 || rows[i] >= limit)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "index %lld is outside a table of %lld rows", (long long)rows[i],
                           (long long)limit);
  return AIT_OK;
}

ait_status ait_ref_weight_embedding(ait_ref_call *call) {
  const ait_tensor *weight, *indices;
  few_bits f;
  ait_tensor rows, out;
  int64_t features, group, shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_tensor(call, 0, &weight));
  AIT_TRY(ait_ref_tensor(call, 2, &indices));
  AIT_TRY(ait_ref_int(call, 3, &features));
  AIT_TRY(ait_ref_int(call, 4, &group));
  AIT_TRY(open_weight(call, weight, ait_ref_tensor_or_null(call, 1), features, group, &f));
  if (indices->rank + 1 > AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "indices of rank %d", indices->rank);
  memcpy(shape, indices->shape, sizeof shape);
  shape[indices->rank] = features;
  AIT_TRY(ait_ref_new(call, 0, ait_ref_dtype(call, 5, AIT_F32), indices->rank + 1, shape, &out));
  AIT_TRY(ait_tensor_cast(call->allocator, indices, AIT_I64, &rows));
  ait_status status = check_indices(call, rows.data, ait_tensor_count(&rows), weight->shape[0]);
  if (status == AIT_OK) status = load_rows(call, &f, rows.data, ait_tensor_count(&rows), &out);
  ait_tensor_release(&rows);
  return status;
}

/* ---- experts ---------------------------------------------------------------------------------------------------------------------*/
typedef struct expert_call {
  const ait_tensor *x, *weight, *experts;
  ait_tensor flat, flat_scales; /* few bits: rows of all matrices */
  few_bits f;
  bool few;
} expert_call;

/* [E, N, K] as [E N, K]. */
static ait_tensor stacked(const ait_tensor *t) {
  ait_tensor flat = *t;
  flat.rank = 2;
  flat.shape[0] = t->shape[0] * t->shape[1], flat.shape[1] = t->shape[2];
  flat.strides[0] = t->strides[1], flat.strides[1] = t->strides[2];
  return flat;
}

static ait_status open_experts(ait_ref_call *call, expert_call *e) {
  int64_t group;
  const ait_tensor *scales = ait_ref_tensor_or_null(call, 3);
  AIT_TRY(ait_ref_tensor(call, 0, &e->x));
  AIT_TRY(ait_ref_tensor(call, 1, &e->weight));
  AIT_TRY(ait_ref_tensor(call, 2, &e->experts));
  AIT_TRY(ait_ref_int_or(call, 4, 0, &group));
  e->few = e->weight->dtype == AIT_I8 || e->weight->dtype == AIT_U8;
  if (e->x->rank != 2 || e->weight->rank != 3 || e->experts->rank != 1 || e->experts->shape[0] != e->x->shape[0] ||
      (!e->few && e->weight->shape[2] != e->x->shape[1]))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "rows, weights and experts do not fit together");
  if (!e->few) return AIT_OK;
  if (!ait_tensor_is_contiguous(e->weight) || !scales || scales->rank != 3 || !ait_tensor_is_contiguous(scales))
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "weights of few bits, or their scales, are not dense");
  e->flat = stacked(e->weight), e->flat_scales = stacked(scales);
  return open_weight(call, &e->flat, &e->flat_scales, e->x->shape[1], group, &e->f);
}

/* Row n of matrix m as doubles. room: groups doubles. */
static void expert_row(const expert_call *e, int64_t m, int64_t n, double *room, double *out) {
  const ait_tensor *w = e->weight;
  int64_t at[3] = {m, n, 0};
  if (e->few) load_row(&e->f, m * w->shape[1] + n, room, out);
  else ait_nn_load(ait_ref_at(w, at), w->dtype, w->strides[2], w->shape[2], out);
}

/* y[r] = weight[experts[r]] x[r]. */
ait_status ait_ref_expert_linear(ait_ref_call *call) {
  expert_call e = {0};
  ait_tensor out, xs, ids = {0};
  AIT_TRY(open_experts(call, &e));
  const int64_t shape[2] = {e.x->shape[0], e.weight->shape[1]}, k = e.x->shape[1], room = k + e.f.groups;
  AIT_TRY(ait_ref_new(call, 0, ait_ref_widen(call, e.x->dtype), 2, shape, &out));
  AIT_TRY(ait_ref_to_f64(call, e.x, &xs));
  double *row = ait_nn_doubles(call, room);
  ait_status status = row ? ait_tensor_cast(call->allocator, e.experts, AIT_I64, &ids) : AIT_OOM();
  if (!status) status = check_indices(call, ids.data, ids.shape[0], e.weight->shape[0]);
  for (int64_t r = 0; r < shape[0] && !status; ++r)
    for (int64_t n = 0; n < shape[1]; ++n) {
      double sum = 0;
      expert_row(&e, ((int64_t *)ids.data)[r], n, row + k, row);
      for (int64_t i = 0; i < k; ++i) sum += row[i] * ((double *)xs.data)[r * k + i];
      ait_element_set_f64((char *)out.data + (size_t)(r * shape[1] + n) * ait_dtype_size(out.dtype), out.dtype, sum);
    }
  if (row) ait_nn_doubles_free(call, row, room);
  ait_tensor_release(&ids);
  ait_tensor_release(&xs);
  return status;
}
