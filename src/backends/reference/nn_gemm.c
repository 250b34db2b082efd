/* The matrix product that linear, convolution and attention share: packed, blocked, in double.
 *
 * Blocks of MC x NC of the result are computed one after another along K in steps of KC, always in the same order, so that the numbers do
 * not depend on threads. The inner kernel holds 4 x 4 sums in registers (GNU vectors of two doubles: any CPU of the baseline has them). */
#include "backends/reference/nn.h"
#include <stdatomic.h>

enum { MR = 4, NR = 4 };
typedef double v2 __attribute__((vector_size(16), aligned(8), may_alias));

/* A block as panels of MR rows: for each k, MR numbers; missing rows are zero. */
static void pack_a(const ait_nn_mat *a, int64_t i0, int64_t rows, int64_t k0, int64_t kn, double *dst, double *row) {
  size_t size = ait_dtype_size(a->dtype);
  for (int64_t i = 0; i < rows; i += MR) {
    double *panel = dst + i * kn;
    for (int64_t r = 0; r < MR; ++r) {
      if (i + r >= rows) {
        for (int64_t k = 0; k < kn; ++k) panel[k * MR + r] = 0;
        continue;
      }
      const char *p = (const char *)a->data + ((i0 + i + r) * a->row_stride + k0 * a->col_stride) * (int64_t)size;
      ait_nn_load(p, a->dtype, a->col_stride, kn, row);
      for (int64_t k = 0; k < kn; ++k) panel[k * MR + r] = row[k];
    }
  }
}

/* One row of B into the panels of NR columns. */
static inline void scatter_row(const double *row, int64_t k, int64_t kn, int64_t cols, double *dst) {
  int64_t j = 0;
  for (; j + NR <= cols; j += NR)
    for (int64_t c = 0; c < NR; ++c) dst[j * kn + k * NR + c] = row[j + c];
  if (j < cols)
    for (int64_t c = 0; c < NR; ++c) dst[j * kn + k * NR + c] = j + c < cols ? row[j + c] : 0;
}

static void pack_b(const ait_nn_mat *b, int64_t j0, int64_t cols, int64_t k0, int64_t kn, double *dst, double *row) {
  size_t size = ait_dtype_size(b->dtype);
  int64_t cs = b->col_stride < 0 ? -b->col_stride : b->col_stride, rs = b->row_stride < 0 ? -b->row_stride : b->row_stride;
  if (cs <= rs) {
    for (int64_t k = 0; k < kn; ++k) {
      const char *p = (const char *)b->data + ((k0 + k) * b->row_stride + j0 * b->col_stride) * (int64_t)size;
      ait_nn_load(p, b->dtype, b->col_stride, cols, row);
      scatter_row(row, k, kn, cols, dst);
    }
    return;
  }
  for (int64_t j = 0; j < cols; j += NR) {
    double *panel = dst + j * kn;
    for (int64_t c = 0; c < NR; ++c) {
      if (j + c >= cols) {
        for (int64_t k = 0; k < kn; ++k) panel[k * NR + c] = 0;
        continue;
      }
      const char *p = (const char *)b->data + (k0 * b->row_stride + (j0 + j + c) * b->col_stride) * (int64_t)size;
      ait_nn_load(p, b->dtype, b->row_stride, kn, row);
      for (int64_t k = 0; k < kn; ++k) panel[k * NR + c] = row[k];
    }
  }
}

/* c[4][4] (rows ld apart) += a-panel * b-panel */
static inline void kernel(int64_t kn, const double *a, const double *b, double *c, int64_t ld) {
  v2 c00 = {0}, c01 = {0}, c10 = {0}, c11 = {0}, c20 = {0}, c21 = {0}, c30 = {0}, c31 = {0};
  for (int64_t k = 0; k < kn; ++k, a += MR, b += NR) {
    v2 b0 = *(const v2 *)b, b1 = *(const v2 *)(b + 2);
    v2 a0 = {a[0], a[0]}, a1 = {a[1], a[1]};
    c00 += a0 * b0;
    c01 += a0 * b1;
    c10 += a1 * b0;
    c11 += a1 * b1;
    v2 a2 = {a[2], a[2]}, a3 = {a[3], a[3]};
    c20 += a2 * b0;
    c21 += a2 * b1;
    c30 += a3 * b0;
    c31 += a3 * b1;
  }
  *(v2 *)c += c00;
  *(v2 *)(c + 2) += c01;
  *(v2 *)(c + ld) += c10;
  *(v2 *)(c + ld + 2) += c11;
  *(v2 *)(c + 2 * ld) += c20;
  *(v2 *)(c + 2 * ld + 2) += c21;
  *(v2 *)(c + 3 * ld) += c30;
  *(v2 *)(c + 3 * ld + 2) += c31;
}

static void multiply_block(int64_t rows, int64_t cols, int64_t kn, const double *a, const double *b, double *c, int64_t ld) {
  for (int64_t j = 0; j < cols; j += NR)
    for (int64_t i = 0; i < rows; i += MR) {
      if (i + MR <= rows && j + NR <= cols) {
        kernel(kn, a + i * kn, b + j * kn, c + i * ld + j, ld);
        continue;
      }
      double edge[MR * NR] = {0};
      kernel(kn, a + i * kn, b + j * kn, edge, NR);
      for (int64_t r = 0; r < ait_nn_min(MR, rows - i); ++r)
        for (int64_t s = 0; s < ait_nn_min(NR, cols - j); ++s) c[(i + r) * ld + j + s] += edge[r * NR + s];
    }
}

void ait_nn_gemm_serial(const ait_nn_mat *a, const ait_nn_mat *b, int64_t m, int64_t n, int64_t k, double *c, int64_t ld, double *scratch) {
  double *pa = scratch, *pb = pa + AIT_NN_MC * AIT_NN_KC, *row = pb + AIT_NN_KC * AIT_NN_NC;
  for (int64_t i = 0; i < m; ++i) memset(c + i * ld, 0, (size_t)n * sizeof *c);
  for (int64_t j0 = 0; j0 < n; j0 += AIT_NN_NC) {
    int64_t cols = ait_nn_min(AIT_NN_NC, n - j0);
    for (int64_t k0 = 0; k0 < k; k0 += AIT_NN_KC) {
      int64_t kn = ait_nn_min(AIT_NN_KC, k - k0);
      pack_b(b, j0, cols, k0, kn, pb, row);
      for (int64_t i0 = 0; i0 < m; i0 += AIT_NN_MC) {
        int64_t rows = ait_nn_min(AIT_NN_MC, m - i0);
        pack_a(a, i0, rows, k0, kn, pa, row);
        multiply_block(rows, cols, kn, pa, pb, c + i0 * ld + j0, ld);
      }
    }
  }
}

/* ---- over the pool -----------------------------------------------------------------------------------------------------------------*/
typedef struct gemm_job {
  const ait_nn_gemm *g;
  ait_allocator allocator;
  int64_t row_blocks, col_blocks, rows_per_block;
  atomic_bool out_of_memory;
} gemm_job;

static void fill_panels(const ait_nn_gemm *g, int64_t batch, int64_t k0, int64_t kn, int64_t j0, int64_t cols, double *pb, double *row) {
  for (int64_t k = 0; k < kn; ++k) {
    g->fill_b(g->fill_ctx, batch, k0 + k, j0, cols, row);
    scatter_row(row, k, kn, cols, pb);
  }
}

/* All rows of one job against one block of columns: B is packed once for them. */
static void gemm_block(const gemm_job *job, int64_t index, double *scratch, double *c) {
  const ait_nn_gemm *g = job->g;
  int64_t jb = index % job->col_blocks, rest = index / job->col_blocks, ib = rest % job->row_blocks, batch = rest / job->row_blocks;
  int64_t j0 = jb * AIT_NN_NC, cols = ait_nn_min(AIT_NN_NC, g->n - j0), i_begin = ib * job->rows_per_block;
  int64_t rows_all = ait_nn_min(job->rows_per_block, g->m - i_begin);
  double *pa = scratch, *pb = pa + AIT_NN_MC * AIT_NN_KC, *row = pb + AIT_NN_KC * AIT_NN_NC;
  ait_nn_mat a = g->a, b = g->b;
  a.data = (const char *)a.data + (g->a_offsets ? g->a_offsets[batch] : batch * g->a_step);
  if (!g->fill_b) b.data = (const char *)b.data + (g->b_offsets ? g->b_offsets[batch] : batch * g->b_step);
  memset(c, 0, (size_t)(rows_all * AIT_NN_NC) * sizeof *c);
  for (int64_t k0 = 0; k0 < g->k; k0 += AIT_NN_KC) {
    int64_t kn = ait_nn_min(AIT_NN_KC, g->k - k0);
    if (g->fill_b) fill_panels(g, batch, k0, kn, j0, cols, pb, row);
    else pack_b(&b, j0, cols, k0, kn, pb, row);
    for (int64_t i0 = 0; i0 < rows_all; i0 += AIT_NN_MC) {
      int64_t rows = ait_nn_min(AIT_NN_MC, rows_all - i0);
      pack_a(&a, i_begin + i0, rows, k0, kn, pa, row);
      multiply_block(rows, cols, kn, pa, pb, c + i0 * AIT_NN_NC, AIT_NN_NC);
    }
  }
  g->sink(g->sink_ctx, batch, i_begin, j0, rows_all, cols, c, AIT_NN_NC);
}

static void gemm_blocks(void *ctx, int64_t begin, int64_t end) {
  gemm_job *job = ctx;
  size_t scratch = AIT_NN_GEMM_SCRATCH * sizeof(double), tile = (size_t)(job->rows_per_block * AIT_NN_NC) * sizeof(double);
  double *memory = ait_alloc(job->allocator, scratch + tile, 64);
  if (!memory) {
    atomic_store(&job->out_of_memory, true);
    return;
  }
  for (int64_t i = begin; i < end; ++i) gemm_block(job, i, memory, memory + AIT_NN_GEMM_SCRATCH);
  ait_free(job->allocator, memory, scratch + tile);
}

ait_status ait_nn_gemm_run(const ait_ref_call *call, const ait_nn_gemm *g) {
  if (g->batch == 0 || g->m == 0 || g->n == 0) return AIT_OK;
  enum { ROWS = 4 * AIT_NN_MC };
  gemm_job job = {.g = g, .allocator = call->allocator};
  job.rows_per_block = ait_nn_min(ROWS, g->m);
  job.row_blocks = (g->m + job.rows_per_block - 1) / job.rows_per_block;
  job.col_blocks = (g->n + AIT_NN_NC - 1) / AIT_NN_NC;
  int64_t work = 2 * job.rows_per_block * ait_nn_min(g->n, AIT_NN_NC) * (g->k + 1);
  ait_ref_parallel(call, g->batch * job.row_blocks * job.col_blocks, work, gemm_blocks, &job);
  return atomic_load(&job.out_of_memory) ? AIT_OOM() : AIT_OK;
}

typedef struct product_sink {
  double *c;
  int64_t m, n;
} product_sink;

static void store_product(void *ctx, int64_t batch, int64_t i0, int64_t j0, int64_t rows, int64_t cols, const double *tile, int64_t ld) {
  product_sink *s = ctx;
  double *c = s->c + batch * s->m * s->n;
  for (int64_t i = 0; i < rows; ++i) memcpy(c + (i0 + i) * s->n + j0, tile + i * ld, (size_t)cols * sizeof(double));
}

ait_status ait_nn_product(const ait_ref_call *call, const ait_nn_mat *a, const ait_nn_mat *b, int64_t m, int64_t n, int64_t k, double *c) {
  product_sink sink = {c, m, n};
  ait_nn_gemm g = {.batch = 1, .m = m, .n = n, .k = k, .a = *a, .b = *b, .sink = store_product, .sink_ctx = &sink};
  return ait_nn_gemm_run(call, &g);
}

/* Four real products make a complex one: (a + bi)(c + di) = (ac - bd) + (ad + bc)i. */
static ait_status complex_product(const ait_ref_call *call, int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c) {
  double *t = ait_nn_doubles(call, m * n);
  if (!t) return AIT_OOM();
  ait_status status = AIT_OK;
  for (int part = 0; part < 4 && !status; ++part) {
    int ai = part & 1, bi = part >> 1, imaginary = ai ^ bi;
    ait_nn_mat ma = ait_nn_mat_of(a + ai, 2 * k, 2), mb = ait_nn_mat_of(b + bi, 2 * n, 2);
    status = ait_nn_product(call, &ma, &mb, m, n, k, t);
    double sign = ai && bi ? -1 : 1;
    for (int64_t i = 0; i < m * n && !status; ++i) c[2 * i + imaginary] = (part < 2 ? 0 : c[2 * i + imaginary]) + sign * t[i];
  }
  ait_nn_doubles_free(call, t, m * n);
  return status;
}

ait_status ait_nn_multiply(const ait_ref_call *call, bool is_complex, int64_t batch, int64_t m, int64_t n, int64_t k, const double *a,
                           const double *b, double *c) {
  if (is_complex) {
    for (int64_t i = 0; i < batch; ++i) AIT_TRY(complex_product(call, m, n, k, a + 2 * i * m * k, b + 2 * i * k * n, c + 2 * i * m * n));
    return AIT_OK;
  }
  product_sink sink = {c, m, n};
  ait_nn_gemm g = {.batch = batch, .m = m, .n = n, .k = k, .a = ait_nn_mat_of(a, k, 1), .b = ait_nn_mat_of(b, n, 1)};
  g.a_step = m * k * (int64_t)sizeof(double), g.b_step = k * n * (int64_t)sizeof(double);
  g.sink = store_product, g.sink_ctx = &sink;
  return ait_nn_gemm_run(call, &g);
}
