/* Rows with a matrix each: mixtures of experts. Packed matrices: rows are sorted by expert, each expert's go through one product, and the
 * results go back to where the rows were. Matrices as they lie: each row reads its own. */
#include "backends/native/prepare.h"

typedef struct operands {
  nat_view x, weight, experts, y;
  int64_t rows, n, k, count, group;
  int32_t index_size;
} operands;

static ait_status get_operands(nat_bind *b, const nat_step *s, operands *o) {
  nat_view in;
  AIT_TRY(nat_in_f32(b, s, 0, &in));
  AIT_TRY(nat_rows(b, &in, &o->x));
  AIT_TRY(nat_in(b, s, 1, &o->weight));
  AIT_TRY(nat_in(b, s, 2, &in));
  AIT_TRY(nat_dense(b, &in, NULL, &o->experts));
  AIT_TRY(nat_out_plain(b, s, 0, &o->y));
  AIT_TRY(nat_arg_int(b, s, 4, 0, &o->group));
  o->rows = o->x.shape[0], o->k = o->x.shape[1], o->count = o->weight.shape[0], o->n = o->weight.shape[1];
  o->index_size = o->experts.dtype == AIT_I64 ? 8 : 4;
  int64_t stored = o->weight.dtype == AIT_U8 ? o->k / 2 + o->k % 2 : o->k;
  if (o->weight.shape[2] != stored || o->experts.shape[0] != o->rows || o->y.rank != 2 || o->y.shape[0] != o->rows || o->y.shape[1] != o->n)
    return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "rows, weights and experts do not fit together");
  return AIT_OK;
}

/* ---- matrices as they lie
 * --------------------------------------------------------------------------------------------------------------*/
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

static ait_status emit_check(nat_bind *b, const nat_step *s, const operands *o) {
  check_args check = {.rows = o->rows, .count = o->count, .index_size = o->index_size, .flag = nat_keep(b, sizeof *check.flag)}, *args;
  if (!check.flag) return AIT_OOM();
  *check.flag = 0;
  nat_work work = {check_experts, "check experts", 1, 0, 0};
  AIT_TRY(nat_emit(b, &work, &check, sizeof check, &args));
  AIT_TRY(NAT_POINTER(b, args->experts, &o->experts));
  return nat_emit_range_check(b, s, check.flag, o->count);
}

static ait_status emit_plain(nat_bind *b, const nat_step *s, const operands *o) {
  nat_view weight;
  AIT_TRY(nat_dense(b, &o->weight, NULL, &weight));
  ait_expert_f32 p = {.rows = o->rows,
                      .n = o->n,
                      .k = o->k,
                      .count = o->count,
                      .x_stride = o->x.strides[0],
                      .bf16 = weight.dtype == AIT_BF16,
                      .index_size = o->index_size},
                 *args;
  AIT_TRY(emit_check(b, s, o));
  nat_work work = {b->kernels->expert_f32, "linear, experts", ait_expert_f32_units(&p), (double)(p.rows * p.n * p.k) * 0.12, 0};
  AIT_TRY(nat_emit(b, &work, &p, sizeof p, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &o->x));
  AIT_TRY(NAT_POINTER(b, args->weight, &weight));
  AIT_TRY(NAT_POINTER(b, args->experts, &o->experts));
  return NAT_POINTER(b, args->y, &o->y);
}

/* ---- packed matrices
 * -------------------------------------------------------------------------------------------------------------------*/
typedef struct packed {
  nat_view weight, scales, order, place, begin, x, y; /* x, y: sorted */
} packed;

/* false without an error: the blob has no packed weight. */
static bool find_packed(nat_bind *b, const nat_step *s, const operands *o, packed *p, ait_status *status) {
  ait_dtype dtype = o->weight.dtype;
  if (dtype == AIT_F32) return nat_packed(b, s, 0, NAT_PACK_MATRIX, (const int64_t[6]){o->k, o->n, o->count, 1, 1, 1}, &p->weight, status);
  const int64_t dims[6] = {o->k, o->n, nat_weight_form(dtype), o->count, 1, 1};
  if (!nat_packed(b, s, 0, NAT_PACK_WEIGHT, dims, &p->weight, status)) return false;
  if (dtype == AIT_BF16) return true;
  if (o->group < AIT_QUANT_GROUP || o->group % AIT_QUANT_GROUP) {
    *status = nat_error(b, AIT_CODE_INVALID_MODEL, "groups of %lld", (long long)o->group);
    return false;
  }
  int64_t groups = o->k / o->group + (o->k % o->group != 0);
  return nat_packed(b, s, 1, NAT_PACK_SCALES, (const int64_t[6]){groups, o->n, o->count, 1, 1, 1}, &p->scales, status);
}

typedef struct order_args {
  const void *experts;
  int64_t rows, count;
  int32_t index_size, *flag, *order, *place, *begin;
} order_args;

static void order_rows(const void *args, int64_t begin, int64_t end, void *scratch) {
  const order_args *a = args;
  AIT_UNUSED(scratch);
  if (begin < end && !ait_expert_order(a->experts, a->index_size, a->rows, a->count, a->order, a->place, a->begin)) *a->flag = 1;
}

static ait_status emit_order(nat_bind *b, const nat_step *s, const operands *o, packed *p) {
  const int64_t rows = o->rows, begins = o->count + 1;
  order_args order = {.rows = rows, .count = o->count, .index_size = o->index_size, .flag = nat_keep(b, sizeof *order.flag)}, *args;
  if (!order.flag) return AIT_OOM();
  *order.flag = 0;
  AIT_TRY(nat_temp(b, AIT_I32, 1, &rows, NULL, &p->order));
  AIT_TRY(nat_temp(b, AIT_I32, 1, &rows, NULL, &p->place));
  AIT_TRY(nat_temp(b, AIT_I32, 1, &begins, NULL, &p->begin));
  nat_work work = {order_rows, "sort by expert", 1, (double)rows * 5, 0};
  AIT_TRY(nat_emit(b, &work, &order, sizeof order, &args));
  AIT_TRY(NAT_POINTER(b, args->experts, &o->experts));
  AIT_TRY(NAT_POINTER(b, args->order, &p->order));
  AIT_TRY(NAT_POINTER(b, args->place, &p->place));
  AIT_TRY(NAT_POINTER(b, args->begin, &p->begin));
  return nat_emit_range_check(b, s, order.flag, o->count);
}

static ait_status emit_rows(nat_bind *b, const nat_view *from, const nat_view *index, const nat_view *to) {
  const int64_t size = (int64_t)sizeof(float);
  ait_gather_rows g = {.count = to->shape[0],
                       .table_rows = from->shape[0],
                       .index_size = 4,
                       .row_bytes = to->shape[1] * size,
                       .src_stride = from->strides[0] * size,
                       .dst_stride = to->strides[0] * size},
                  *args;
  nat_work work = {b->kernels->gather_rows, "rows of experts", ait_gather_rows_units(&g), (double)(g.count * g.row_bytes) * 0.1, 0};
  AIT_TRY(nat_emit(b, &work, &g, sizeof g, &args));
  AIT_TRY(NAT_POINTER(b, args->index, index));
  AIT_TRY(NAT_POINTER(b, args->src, from));
  return NAT_POINTER(b, args->dst, to);
}

static ait_status emit_product(nat_bind *b, const operands *o, const packed *p) {
  ait_dtype dtype = o->weight.dtype;
  ait_expert_gemm_f32 g = {.rows = o->rows,
                           .n = o->n,
                           .k = o->k,
                           .count = o->count,
                           .few_bits = dtype != AIT_F32,
                           .form = dtype == AIT_F32 ? AIT_WEIGHT_BF16 : nat_weight_form(dtype),
                           .group = dtype == AIT_I8 || dtype == AIT_U8 ? o->group : 0},
                      *args;
  ait_expert_gemm_f32_plan(b->kernels, &g, b->threads);
  nat_work work = {b->kernels->expert_gemm_f32, "linear, experts", ait_expert_gemm_f32_units(&g),
                   (double)g.rows * (double)g.n * (double)g.k * 0.06, ait_expert_gemm_f32_scratch(b->kernels, &g)};
  AIT_TRY(nat_emit(b, &work, &g, sizeof g, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &p->x));
  AIT_TRY(NAT_POINTER(b, args->begin, &p->begin));
  AIT_TRY(NAT_POINTER(b, args->weight, &p->weight));
  if (g.group) AIT_TRY(NAT_POINTER(b, args->scales, &p->scales));
  return NAT_POINTER(b, args->y, &p->y);
}

static ait_status emit_sorted(nat_bind *b, const nat_step *s, const operands *o, packed *p) {
  AIT_TRY(emit_order(b, s, o, p));
  AIT_TRY(nat_temp(b, AIT_F32, 2, (const int64_t[2]){o->rows, o->k}, NULL, &p->x));
  AIT_TRY(nat_temp(b, AIT_F32, 2, (const int64_t[2]){o->rows, o->n}, NULL, &p->y));
  AIT_TRY(emit_rows(b, &o->x, &p->order, &p->x));
  AIT_TRY(emit_product(b, o, p));
  return emit_rows(b, &p->y, &p->place, &o->y);
}

ait_status nat_prepare_expert_linear(nat_bind *b, const nat_step *s) {
  operands o;
  packed p;
  ait_status status;
  AIT_TRY(get_operands(b, s, &o));
  if (o.rows == 0 || o.n == 0) return AIT_OK;
  if (o.rows > INT32_MAX) return nat_error(b, AIT_CODE_LIMIT, "%lld rows", (long long)o.rows);
  if (find_packed(b, s, &o, &p, &status)) return emit_sorted(b, s, &o, &p);
  AIT_TRY(status);
  if (o.weight.dtype != AIT_F32 && o.weight.dtype != AIT_BF16) return nat_error(b, AIT_CODE_INVALID_MODEL, "the packed weight is missing");
  return emit_plain(b, s, &o);
}
