/* Rows with a matrix each: mixtures of experts. */
#include "backends/native/prepare.h"

typedef struct check_args {
  const void *experts;
  int64_t rows, count;
  int32_t index_size, *flag;
} check_args;

static void check_experts(const void *args, int64_t begin, int64_t end, void *scratch) {
  const check_args *c = args;
  AIT_UNUSED(scratch);
  for (int64_t i = 0; begin < end && i < c->rows; ++i) {
    int64_t e = c->index_size == 8 ? ((const int64_t *)c->experts)[i] : ((const int32_t *)c->experts)[i];
    if (e < 0 || e >= c->count) *c->flag = 1;
  }
}

static ait_status emit_check(nat_bind *b, const nat_step *s, const ait_expert_f32 *p, const nat_view *experts) {
  check_args check = {.rows = p->rows, .count = p->count, .index_size = p->index_size, .flag = nat_keep(b, sizeof *check.flag)}, *args;
  if (!check.flag) return AIT_OOM();
  *check.flag = 0;
  nat_work work = {check_experts, "check experts", 1, 0, 0};
  AIT_TRY(nat_emit(b, &work, &check, sizeof check, &args));
  AIT_TRY(NAT_POINTER(b, args->experts, experts));
  return nat_emit_range_check(b, s, check.flag, p->count);
}

ait_status nat_prepare_expert_linear(nat_bind *b, const nat_step *s) {
  nat_view in, x, w, e, o;
  AIT_TRY(nat_in_f32(b, s, 0, &in));
  AIT_TRY(nat_rows(b, &in, &x));
  AIT_TRY(nat_in(b, s, 1, &in));
  AIT_TRY(nat_dense(b, &in, NULL, &w));
  AIT_TRY(nat_in(b, s, 2, &in));
  AIT_TRY(nat_dense(b, &in, NULL, &e));
  AIT_TRY(nat_out_plain(b, s, 0, &o));
  ait_expert_f32 p = {.rows = x.shape[0],
                      .n = w.shape[1],
                      .k = x.shape[1],
                      .count = w.shape[0],
                      .x_stride = x.strides[0],
                      .bf16 = w.dtype == AIT_BF16,
                      .index_size = e.dtype == AIT_I64 ? 8 : 4},
                 *args;
  if (w.shape[2] != p.k || e.shape[0] != p.rows || o.rank != 2 || o.shape[0] != p.rows || o.shape[1] != p.n)
    return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "rows, weights and experts do not fit together");
  if (p.rows == 0) return AIT_OK;
  AIT_TRY(emit_check(b, s, &p, &e));
  if (p.n == 0) return AIT_OK;
  nat_work work = {b->kernels->expert_f32, "linear, experts", ait_expert_f32_units(&p), (double)(p.rows * p.n * p.k) * 0.12, 0};
  AIT_TRY(nat_emit(b, &work, &p, sizeof p, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x));
  AIT_TRY(NAT_POINTER(b, args->weight, &w));
  AIT_TRY(NAT_POINTER(b, args->experts, &e));
  return NAT_POINTER(b, args->y, &o);
}
