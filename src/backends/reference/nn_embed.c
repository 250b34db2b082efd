/* embedding: rows of a table; embedding_bag: sums, means or maxima of rows. */
#include "backends/reference/nn.h"

static ait_status bad_index(const ait_ref_call *call, int64_t index, int64_t rows) {
  return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "index %lld is outside a table of %lld rows", (long long)index, (long long)rows);
}

/* aten.embedding, core embedding: the same first two arguments */
ait_status ait_ref_embedding(ait_ref_call *call) {
  const ait_tensor *table, *t;
  AIT_TRY(ait_ref_tensor(call, 0, &table));
  AIT_TRY(ait_ref_tensor(call, 1, &t));
  if (table->rank != 2 || t->rank + 1 > AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "table of rank %d", table->rank);
  ait_tensor index, out;
  int64_t shape[AIT_MAX_RANK], width = table->shape[1];
  memcpy(shape, t->shape, sizeof shape);
  shape[t->rank] = width;
  AIT_TRY(ait_ref_new(call, 0, table->dtype, t->rank + 1, shape, &out));
  AIT_TRY(ait_tensor_cast(call->allocator, t, AIT_I64, &index));
  size_t size = ait_dtype_size(table->dtype);
  ait_status status = AIT_OK;
  for (int64_t i = 0; !status && i < ait_tensor_count(&index); ++i) {
    int64_t row = ((const int64_t *)index.data)[i];
    if (row < 0 || row >= table->shape[0]) {
      status = bad_index(call, row, table->shape[0]);
      break;
    }
    char *to = (char *)out.data + i * width * (int64_t)size;
    const char *from = (const char *)table->data + row * table->strides[0] * (int64_t)size;
    if (table->strides[1] == 1) memcpy(to, from, (size_t)width * size);
    else
      for (int64_t j = 0; j < width; ++j) memcpy(to + j * (int64_t)size, from + j * table->strides[1] * (int64_t)size, size);
  }
  ait_tensor_release(&index);
  return status;
}

/* ---- bags -------------------------------------------------------------------------------------------------------------------- */
enum { BAG_SUM, BAG_MEAN, BAG_MAX };

typedef struct bags {
  ait_tensor table, index, offsets, weights; /* doubles, int64, int64, doubles or none */
  int64_t mode, padding, rows, width, count;
  double *out;
  int64_t *bag_of, *size, *argmax;
} bags;

static ait_status one_bag(const ait_ref_call *call, const bags *b, int64_t bag, int64_t from, int64_t to) {
  double *out = b->out + bag * b->width;
  int64_t used = 0;
  for (int64_t i = from; i < to; ++i) {
    int64_t row = ((const int64_t *)b->index.data)[i];
    b->bag_of[i] = bag;
    if (row < 0 || row >= b->rows) return bad_index(call, row, b->rows);
    if (row == b->padding) continue;
    const double *x = ait_nn_data(&b->table) + row * b->width;
    double w = b->weights.data ? ait_nn_data(&b->weights)[i] : 1;
    for (int64_t j = 0; j < b->width; ++j) {
      if (b->mode != BAG_MAX) out[j] += w * x[j];
      else if (used == 0 || x[j] > out[j]) out[j] = x[j], b->argmax[bag * b->width + j] = row;
    }
    ++used;
  }
  b->size[bag] = used;
  for (int64_t j = 0; b->mode == BAG_MEAN && used > 0 && j < b->width; ++j) out[j] /= (double)used;
  return AIT_OK;
}

static ait_status bags_run(ait_ref_call *call, bags *b, ait_dtype dtype, bool last_offset) {
  int64_t entries = ait_tensor_count(&b->offsets), n = ait_tensor_count(&b->index);
  b->count = entries - (last_offset && entries > 0);
  int64_t shape[2] = {b->count, b->width};
  ait_tensor out = {0}, bag_of = {0}, size = {0}, argmax = {0};
  ait_status status;
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 2, shape, &out));
  AIT_GOTO(ait_nn_zeros(call, AIT_I64, 1, &n, &bag_of));
  AIT_GOTO(ait_nn_zeros(call, AIT_I64, 1, &b->count, &size));
  AIT_GOTO(ait_nn_zeros(call, AIT_I64, 2, shape, &argmax));
  b->out = out.data, b->bag_of = bag_of.data, b->size = size.data, b->argmax = argmax.data;
  const int64_t *offset = b->offsets.data;
  for (int64_t i = 0; i < b->count; ++i) {
    int64_t to = i + 1 < entries ? offset[i + 1] : n;
    if (offset[i] < 0 || offset[i] > to || to > n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "offsets are not in order"));
    AIT_GOTO(one_bag(call, b, i, offset[i], to));
  }
  AIT_GOTO(ait_nn_result(call, 0, dtype, &out));
  /* The rest serves only the gradient. As torch's CPU code makes it: sums need none, and get zeros; means give the bag sizes twice. */
  ait_tensor *rest[3] = {&bag_of, &size, &argmax};
  if (b->mode == BAG_SUM) {
    bool fast = b->padding < 0 && dtype != AIT_F64;
    if (fast) bag_of.shape[0] = 0;
    for (int i = 1; i < 3; ++i) {
      ait_tensor_release(rest[i]);
      AIT_GOTO(ait_nn_zeros(call, AIT_I64, 1, &entries, rest[i]));
    }
  } else if (b->mode == BAG_MEAN) {
    ait_tensor_release(&argmax);
    argmax = ait_tensor_retain(&size);
  }
  for (uint32_t k = 0; k < 3; ++k)
    if (ait_nn_wants(call, k + 1)) {
      ait_ref_set(call, k + 1, *rest[k]);
      *rest[k] = (ait_tensor){0};
    }
cleanup:
  ait_tensor_release(&out);
  ait_tensor_release(&bag_of);
  ait_tensor_release(&size);
  ait_tensor_release(&argmax);
  return status;
}

/* embedding_bag, embedding_bag.padding_idx, _embedding_bag, _embedding_bag_forward_only; the last two have padding_idx = -1 for none */
ait_status ait_ref_embedding_bag(ait_ref_call *call) {
  const ait_tensor *table, *index, *offsets;
  bool last_offset;
  bags b = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &table));
  AIT_TRY(ait_ref_tensor(call, 1, &index));
  AIT_TRY(ait_ref_tensor(call, 2, &offsets));
  AIT_TRY(ait_ref_int(call, 4, &b.mode));
  AIT_TRY(ait_ref_bool(call, 7, &last_offset));
  b.padding = INT64_MIN;
  if (ait_ref_arg_count(call) > 8) AIT_TRY(ait_ref_int_or(call, 8, INT64_MIN, &b.padding));
  if (table->rank != 2) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "table of rank %d", table->rank);
  b.rows = table->shape[0];
  b.width = table->shape[1];
  if (b.padding < 0 && b.padding != INT64_MIN && ait_nn_is(call, "aten.embedding_bag.padding_idx")) b.padding += b.rows;
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, table, &b.table));
  AIT_GOTO(ait_tensor_cast(call->allocator, index, AIT_I64, &b.index));
  AIT_GOTO(ait_tensor_cast(call->allocator, offsets, AIT_I64, &b.offsets));
  AIT_GOTO(ait_nn_arg_or_null(call, 6, &b.weights));
  status = bags_run(call, &b, ait_nn_dtype(call, 0, table->dtype), last_offset);
cleanup:
  ait_tensor_release(&b.table);
  ait_tensor_release(&b.index);
  ait_tensor_release(&b.offsets);
  ait_tensor_release(&b.weights);
  return status;
}

/* embedding_renorm(weight, indices, max_norm, norm_type): rows that are looked up are scaled down to a norm of max_norm, each once. */
ait_status ait_ref_embedding_renorm(ait_ref_call *call) {
  const ait_tensor *t, *ti;
  ait_tensor w = {0}, index = {0};
  double limit, p;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_tensor(call, 1, &ti));
  AIT_TRY(ait_ref_float(call, 2, &limit));
  AIT_TRY(ait_ref_float(call, 3, &p));
  if (t->rank != 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a table of rank %d", t->rank);
  AIT_GOTO(ait_nn_f64(call, t, &w));
  AIT_GOTO(ait_tensor_cast(call->allocator, ti, AIT_I64, &index));
  int64_t rows = t->shape[0], n = t->shape[1];
  for (int64_t k = 0; k < ait_tensor_count(&index); ++k) {
    int64_t i = ((const int64_t *)index.data)[k];
    if (i < 0 || i >= rows)
      AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "index %lld is out of range for size %lld", (long long)i, (long long)rows));
    double *row = ait_nn_data_mut(&w) + i * n, norm = 0;
    for (int64_t j = 0; j < n; ++j) norm = isinf(p) ? fmax(norm, fabs(row[j])) : norm + pow(fabs(row[j]), p);
    if (!isinf(p)) norm = pow(norm, 1 / p);
    for (int64_t j = 0; norm > limit && j < n; ++j) row[j] *= limit / (norm + 1e-7); /* below the limit from then on */
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &w);
cleanup:
  ait_tensor_release(&w);
  ait_tensor_release(&index);
  return status;
}
