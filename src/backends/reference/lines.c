#include "backends/reference/lines.h"

#include <math.h>
#include <stdatomic.h>

ait_tensor ait_ref_lines_view(const ait_tensor *t, int32_t dim) {
  ait_tensor v = t->rank ? ait_ref_dim_last(t, dim) : ait_ref_unsqueezed(t, 0);
  v.storage = NULL;
  return v;
}

int64_t ait_ref_line_count(const ait_ref_lines *lines) {
  const ait_tensor *t = &lines->tensors[0];
  int64_t count = 1;
  for (int32_t d = 0; d + 1 < t->rank; ++d) count *= t->shape[d];
  return count;
}

ait_tensor ait_ref_line(const ait_ref_lines *lines, uint32_t k, int64_t o) {
  const ait_tensor *t = &lines->tensors[k];
  int64_t offset = 0;
  for (int32_t d = t->rank - 1; d-- > 0; o /= t->shape[d]) offset += o % t->shape[d] * t->strides[d];
  ait_tensor line = {.dtype = t->dtype, .rank = 1};
  line.data = t->data ? (char *)t->data + offset * (int64_t)ait_dtype_size(t->dtype) : NULL;
  line.shape[0] = t->shape[t->rank - 1];
  line.strides[0] = t->strides[t->rank - 1];
  return line;
}

typedef struct line_job {
  const ait_ref_lines *lines;
  ait_ref_line_fn fn;
  _Atomic(ait_status) failure; /* the first one */
} line_job;

static void run_lines(void *ctx, int64_t begin, int64_t end) {
  line_job *job = ctx;
  for (int64_t o = begin; o < end; ++o) {
    ait_status status = job->fn(job->lines, o), none = AIT_OK;
    if (status == AIT_OK) continue;
    if (!atomic_compare_exchange_strong(&job->failure, &none, status)) ait_status_ignore(status);
    return;
  }
}

ait_status ait_ref_each_line(const ait_ref_lines *lines, int64_t work, ait_ref_line_fn fn) {
  line_job job = {.lines = lines, .fn = fn};
  ait_ref_parallel(lines->call, ait_ref_line_count(lines), work + 8, run_lines, &job);
  return atomic_load(&job.failure);
}

/* ---- stable order ------------------------------------------------------------------------------------------------------------ */
static bool before_f(double a, double b, bool descending) {
  if (descending) return a > b || (isnan(a) && !isnan(b));
  return a < b || (isnan(b) && !isnan(a));
}

static bool before(ait_ref_domain domain, const void *keys, int64_t a, int64_t b, bool descending) {
  if (domain == AIT_REF_F) return before_f(((const double *)keys)[a], ((const double *)keys)[b], descending);
  int64_t x = ((const int64_t *)keys)[a], y = ((const int64_t *)keys)[b];
  return descending ? x > y : x < y;
}

/* Bottom-up merge sort. */
void ait_ref_sort_order(ait_ref_domain domain, const void *keys, int64_t n, bool descending, int64_t *order, int64_t *scratch) {
  int64_t *from = order, *to = scratch;
  for (int64_t i = 0; i < n; ++i) from[i] = i;
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t start = 0; start < n; start += 2 * width) {
      int64_t middle = start + width < n ? start + width : n, end = middle + width < n ? middle + width : n;
      int64_t a = start, b = middle;
      for (int64_t k = start; k < end; ++k) {
        bool take_b = a == middle || (b < end && before(domain, keys, from[b], from[a], descending));
        to[k] = take_b ? from[b++] : from[a++];
      }
    }
    int64_t *t = from;
    from = to;
    to = t;
  }
  if (from != order) memcpy(order, from, (size_t)n * sizeof *order);
}
