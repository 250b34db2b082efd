/* ONNX: the negative log likelihood, n-grams. */
#include "backends/reference/onnx.h"

/* (log probabilities [n, c, …], target [n, …], weight?, reduction, ignore_index?) */
ait_status ait_ref_onnx_nll_loss(ait_ref_call *call) {
  const ait_tensor *x, *target, *weight = ait_ref_tensor_or_null(call, 2);
  const char *reduction = ait_ref_string(call, 3);
  int64_t ignored;
  ait_tensor in = {0}, weights = {0}, out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &target));
  AIT_TRY(ait_ref_int_or(call, 4, 0, &ignored));
  bool ignores = !ait_ref_is_none(call, 4), none = reduction && strcmp(reduction, "none") == 0,
       mean = reduction && strcmp(reduction, "mean") == 0;
  bool fits = x->rank >= 2 && target->rank == x->rank - 1 && target->shape[0] == x->shape[0];
  for (int32_t d = 1; fits && d < target->rank; ++d) fits = target->shape[d] == x->shape[d + 1];
  if (!fits || (weight && (weight->rank != 1 || weight->shape[0] != x->shape[1])))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operand, target and weight do not fit");
  int64_t classes = x->shape[1], inner = ait_nn_span(x, 2, x->rank), index[AIT_MAX_RANK] = {0}, n = ait_tensor_count(target);
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, none ? target->rank : 0, none ? target->shape : NULL, &out));
  ait_status status = ait_ref_to_f64(call, x, &in);
  if (status == AIT_OK && weight) status = ait_ref_to_f64(call, weight, &weights);
  double sum = 0, weight_sum = 0;
  for (int64_t i = 0; status == AIT_OK && i < n; ++i) {
    int64_t c = ait_element_i64(ait_ref_at(target, index), target->dtype);
    double w = 0, loss = 0;
    if (!ignores || c != ignored) {
      status = ait_ref_wrap_index(call, c, classes, &c);
      if (status != AIT_OK) break;
      w = weight ? ((const double *)weights.data)[c] : 1;
      loss = -w * ((const double *)in.data)[(i / inner * classes + c) * inner + i % inner];
    }
    sum += loss;
    weight_sum += w;
    if (none) ait_element_set_f64(ait_onnx_at(&out, i), out.dtype, loss);
    ait_ref_next(target->rank, target->shape, index);
  }
  if (status == AIT_OK && !none) ait_element_set_f64(out.data, out.dtype, mean ? sum / weight_sum : sum);
  ait_tensor_release(&in);
  ait_tensor_release(&weights);
  return status;
}

/* ---- n-grams ---------------------------------------------------------------------------------------------------------------------*/

typedef struct ngrams {
  int64_t *counts, *indexes, *pool; /* counts[k]: where the (k+1)-grams begin in the pool */
  uint32_t count_n, index_n, pool_n;
  int64_t width, least, most, skip;
} ngrams;

/* Adds one for each occurrence of gram number `id` (of `size` items at `gram`) in the row, items `distance` apart. */
static void count_gram(const int64_t *gram, int64_t size, int64_t distance, const int64_t *row, int64_t n, double *to) {
  for (int64_t i = 0; i + (size - 1) * distance < n; ++i) {
    int64_t k = 0;
    while (k < size && row[i + k * distance] == gram[k]) ++k;
    *to += k == size;
  }
}

static bool ngrams_fit(const ngrams *g) {
  int64_t total = 0;
  if (g->least < 1 || g->most < g->least || g->skip < 0 || g->most > (int64_t)g->count_n) return false;
  for (uint32_t k = 0; k < g->count_n; ++k) {
    int64_t end = k + 1 < g->count_n ? g->counts[k + 1] : g->pool_n;
    if (g->counts[k] < 0 || end < g->counts[k] || end > (int64_t)g->pool_n || (end - g->counts[k]) % (k + 1)) return false;
    total += (end - g->counts[k]) / (k + 1);
  }
  for (uint32_t i = 0; i < g->index_n; ++i)
    if (g->indexes[i] < 0 || g->indexes[i] >= g->width) return false;
  return total == g->index_n;
}

static void count_row(const ngrams *g, const int64_t *row, int64_t n, double *frequencies) {
  int64_t id = 0;
  for (uint32_t k = 0; k < g->count_n; ++k) {
    int64_t size = k + 1, end = k + 1 < g->count_n ? g->counts[k + 1] : g->pool_n;
    for (int64_t at = g->counts[k]; at + size <= end; at += size, ++id) {
      if (size < g->least || size > g->most) continue;
      /* single items do not depend on the distance: they count once */
      for (int64_t distance = 1; distance <= (size == 1 ? 1 : g->skip + 1); ++distance)
        count_gram(g->pool + at, size, distance, row, n, &frequencies[g->indexes[id]]);
    }
  }
}

static ait_status give_tfidf(ait_ref_call *call, const ngrams *g, const ait_tensor *x, const ait_tensor *ids) {
  const char *mode = ait_ref_string(call, 1);
  int64_t rows = x->rank == 2 ? x->shape[0] : 1, n = x->shape[x->rank - 1], shape[2] = {rows, g->width};
  ait_tensor counts, out;
  const ait_arg *list = &call->node->args[8];
  uint32_t weight_n = list->kind == AIT_ARG_LIST ? list->count : 0;
  AIT_TRY(ait_onnx_new(call, 0, AIT_F32, x->rank, x->rank == 2 ? shape : shape + 1, &out));
  AIT_TRY(ait_nn_zeros(call, AIT_F64, 2, shape, &counts));
  bool idf = mode && strcmp(mode, "IDF") == 0, both = mode && strcmp(mode, "TFIDF") == 0;
  for (int64_t r = 0; r < rows; ++r) {
    double *f = (double *)counts.data + r * g->width;
    count_row(g, (const int64_t *)ids->data + r * n, n, f);
    for (int64_t i = 0; i < g->width; ++i) {
      double w = i < (int64_t)weight_n && list->as.list[i].kind == AIT_ARG_FLOAT ? list->as.list[i].as.f : 1;
      ait_element_set_f64(ait_onnx_at(&out, r * g->width + i), out.dtype, idf ? (f[i] > 0 ? w : 0) : both ? f[i] * w : f[i]);
    }
  }
  ait_tensor_release(&counts);
  return AIT_OK;
}

/* (x, mode, least, most, skip, counts, indexes, pool, weights) */
ait_status ait_ref_onnx_tfidf(ait_ref_call *call) {
  const ait_tensor *x;
  ngrams g = {0};
  ait_tensor ids = {0};
  ait_status status = AIT_OK;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  if (x->rank < 1 || x->rank > 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the operand has rank %d", x->rank);
  AIT_TRY(ait_ref_int(call, 2, &g.least));
  AIT_TRY(ait_ref_int(call, 3, &g.most));
  AIT_TRY(ait_ref_int(call, 4, &g.skip));
  AIT_GOTO(ait_ref_int_array(call, 5, &g.counts, &g.count_n));
  AIT_GOTO(ait_ref_int_array(call, 6, &g.indexes, &g.index_n));
  AIT_GOTO(ait_ref_int_array(call, 7, &g.pool, &g.pool_n));
  for (uint32_t i = 0; i < g.index_n; ++i) g.width = ait_nn_max(g.width, g.indexes[i] + 1);
  if (!ngrams_fit(&g)) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_MODEL, "counts, indexes and pool do not fit"));
  AIT_GOTO(ait_ref_as_i64(call, x, &ids));
  AIT_GOTO(give_tfidf(call, &g, x, &ids));
cleanup:
  ait_free(call->allocator, g.counts, g.count_n * sizeof *g.counts);
  ait_free(call->allocator, g.indexes, g.index_n * sizeof *g.indexes);
  ait_free(call->allocator, g.pool, g.pool_n * sizeof *g.pool);
  ait_tensor_release(&ids);
  return status;
}
