/* Arithmetic on views: where the elements of a value lie. */
#include "backends/native/bind.h"

int64_t nat_count(const nat_view *v) {
  int64_t n = 1;
  for (int32_t d = 0; d < v->rank; ++d) n *= v->shape[d];
  return n;
}

size_t nat_size(const nat_view *v) { return (size_t)nat_count(v) * ait_dtype_size(v->dtype); }

/* Entries beyond the rank are set, too, so that an order can be checked against any rank. */
void nat_order_row_major(int32_t rank, int32_t order[AIT_MAX_RANK]) {
  AIT_UNUSED(rank);
  for (int32_t d = 0; d < AIT_MAX_RANK; ++d) order[d] = d;
}

void nat_order_channels_last(int32_t rank, int32_t order[AIT_MAX_RANK]) {
  nat_order_row_major(rank, order);
  for (int32_t d = 1; d + 1 < rank; ++d) order[d] = d + 1;
  if (rank > 1) order[rank - 1] = 1;
}

void nat_order_strides(int32_t rank, const int64_t *shape, const int32_t *order, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t k = rank - 1; k >= 0; --k) {
    strides[order[k]] = stride;
    stride *= shape[order[k]] > 0 ? shape[order[k]] : 1;
  }
}

bool nat_has_order(const nat_view *v, const int32_t *order) {
  int64_t strides[AIT_MAX_RANK];
  if (nat_count(v) == 0) return true;
  nat_order_strides(v->rank, v->shape, order, strides);
  for (int32_t d = 0; d < v->rank; ++d) {
    if (v->shape[d] != 1 && v->strides[d] != strides[d]) return false;
  }
  return true;
}

bool nat_same_shape(const nat_view *a, const nat_view *b) {
  return a->rank == b->rank && (a->rank == 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0);
}

void nat_order_of(const nat_view *v, int32_t order[AIT_MAX_RANK]) {
  nat_order_row_major(v->rank, order);
  /* Insertion sort, stable; dims of size 1 stay where they are relative to their neighbours. */
  for (int32_t i = 1; i < v->rank; ++i) {
    int32_t d = order[i];
    int32_t j = i;
    while (j > 0 && v->shape[d] != 1 && v->shape[order[j - 1]] != 1 && v->strides[order[j - 1]] < v->strides[d]) {
      order[j] = order[j - 1];
      --j;
    }
    order[j] = d;
  }
}

/* Dims of v that lie in memory like one dim are merged into runs; each new dim must then divide a run. */
bool nat_reshape_strides(const nat_view *v, int32_t rank, const int64_t *shape, int64_t *strides) {
  int32_t to = rank - 1;
  int64_t total = nat_count(v);
  for (int32_t d = 0; d < rank; ++d) strides[d] = 1;
  if (total == 0) {
    int32_t order[AIT_MAX_RANK];
    nat_order_row_major(rank, order);
    nat_order_strides(rank, shape, order, strides);
    return true;
  }
  int32_t from = v->rank - 1;
  while (from >= 0) {
    if (v->shape[from] == 1) {
      --from;
      continue;
    }
    int64_t base = v->strides[from], run = v->shape[from];
    int32_t next = from - 1;
    for (; next >= 0; --next) {
      if (v->shape[next] == 1) continue;
      if (v->strides[next] != run * base) break;
      run *= v->shape[next];
    }
    int64_t taken = 1;
    while (to >= 0 && taken < run) {
      strides[to] = base * taken;
      taken *= shape[to];
      --to;
    }
    if (taken != run) return false;
    from = next;
  }
  for (; to >= 0; --to) {
    if (shape[to] != 1) return false;
  }
  return true;
}

bool nat_broadcast(const nat_view *v, int32_t rank, const int64_t *shape, nat_view *out) {
  if (v->rank > rank) return false;
  nat_view r = *v;
  int32_t lead = rank - v->rank;
  r.rank = rank;
  for (int32_t d = 0; d < rank; ++d) {
    int64_t size = d < lead ? 1 : v->shape[d - lead];
    if (size != 1 && size != shape[d]) return false;
    r.shape[d] = shape[d];
    r.strides[d] = size == 1 ? 0 : v->strides[d - lead];
  }
  *out = r;
  return true;
}
