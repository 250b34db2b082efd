/* Convolutions and scans whose state lies in slots: the table of sequences is checked, then each runs in one call. */
#include "backends/native/prepare.h"

typedef struct check_args {
  ait_spans spans;
  int64_t rows, slots;
  int32_t *flag;
} check_args;

static void check_spans(const void *args, int64_t begin, int64_t end, void *scratch) {
  const check_args *c = args;
  AIT_UNUSED(begin), AIT_UNUSED(end), AIT_UNUSED(scratch);
  if (!ait_spans_check(&c->spans, c->rows, c->slots)) *c->flag = 1;
}

static ait_status emit_check(nat_bind *b, const nat_step *s, const nat_view *spans, int64_t rows, int64_t slots) {
  check_args check = {.spans.count = spans->shape[0], .rows = rows, .slots = slots, .flag = nat_keep(b, sizeof *check.flag)}, *args;
  if (!check.flag) return AIT_OOM();
  *check.flag = 0;
  nat_work work = {check_spans, "check tables", 1, 0, 0};
  AIT_TRY(nat_emit(b, &work, &check, sizeof check, &args));
  AIT_TRY(NAT_POINTER(b, args->spans.at, spans));
  return nat_emit_range_check(b, s, check.flag, slots);
}

/* The last two operands: the table as it is read, the state as it is written. */
static ait_status get_tables(nat_bind *b, const nat_step *s, uint32_t at, nat_view *spans, nat_view *state) {
  nat_view v;
  int32_t order[AIT_MAX_RANK];
  AIT_TRY(nat_in(b, s, at, &v));
  AIT_TRY(nat_dense(b, &v, NULL, spans));
  AIT_TRY(nat_in(b, s, at + 1, state));
  nat_order_row_major(state->rank, order);
  if (spans->shape[1] != 4) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "sequences are not integers [n, 4]");
  return nat_has_order(state, order) ? AIT_OK : nat_error(b, AIT_CODE_INVALID_ARGUMENT, "the state is written in place and not contiguous");
}

static ait_status rows_in(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) {
  nat_view v;
  AIT_TRY(nat_in_f32(b, s, i, &v));
  return nat_rows(b, &v, out);
}

static ait_status dense_in(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) {
  nat_view v;
  AIT_TRY(nat_in_f32(b, s, i, &v));
  return nat_dense(b, &v, NULL, out);
}

ait_status nat_prepare_cached_conv1d(nat_bind *b, const nat_step *s) {
  nat_view x, w, bias, spans, state, y;
  bool has_bias = nat_has_in(b, s, 2);
  AIT_TRY(rows_in(b, s, 0, &x));
  AIT_TRY(dense_in(b, s, 1, &w));
  if (has_bias) AIT_TRY(dense_in(b, s, 2, &bias));
  AIT_TRY(get_tables(b, s, 3, &spans, &state));
  AIT_TRY(nat_out_plain(b, s, 0, &y));
  ait_cached_conv1d_f32 c = {.rows = x.shape[0],
                             .channels = x.shape[1],
                             .taps = w.shape[0],
                             .x_stride = x.strides[0],
                             .y_stride = y.strides[0],
                             .spans.count = spans.shape[0],
                             .act = (ait_act)s->act,
                             .p = s->p,
                             .q = s->q},
                        *args;
  if (w.shape[1] != c.channels || c.taps < 1 || (has_bias && bias.shape[0] != c.channels) || state.shape[1] != c.taps - 1 ||
      state.shape[2] != c.channels || !nat_same_shape(&x, &y))
    return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "input, weight, bias and state do not fit together");
  AIT_TRY(emit_check(b, s, &spans, c.rows, state.shape[0]));
  nat_work work = {b->kernels->cached_conv1d_f32, "conv, cached", ait_cached_conv1d_f32_units(&c),
                   (double)(c.rows * c.channels * c.taps) * 0.2, 0};
  AIT_TRY(nat_emit(b, &work, &c, sizeof c, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x));
  AIT_TRY(NAT_POINTER(b, args->weight, &w));
  if (has_bias) AIT_TRY(NAT_POINTER(b, args->bias, &bias));
  AIT_TRY(NAT_POINTER(b, args->spans.at, &spans));
  AIT_TRY(NAT_POINTER(b, args->state, &state));
  return NAT_POINTER(b, args->y, &y);
}

enum { U, DT, A, B, C, SPANS, STATE, OPERANDS };

static bool scan_fits(const nat_view *in, const nat_view *y) {
  const int64_t *u = in[U].shape, *b = in[B].shape, *state = in[STATE].shape;
  return in[DT].shape[0] == u[0] && in[DT].shape[1] == u[1] && nat_same_shape(&in[B], &in[C]) && b[0] == u[0] && b[1] > 0 &&
         u[1] % b[1] == 0 && in[A].shape[0] == u[1] && (in[A].rank == 1 || in[A].shape[1] == b[2]) && state[1] == u[1] &&
         state[2] == u[2] && state[3] == b[2] && nat_same_shape(&in[U], y);
}

ait_status nat_prepare_cached_scan(nat_bind *b, const nat_step *s) {
  nat_view in[OPERANDS], y;
  for (uint32_t i = 0; i < SPANS; ++i) AIT_TRY(i == A ? dense_in(b, s, i, &in[i]) : rows_in(b, s, i, &in[i]));
  AIT_TRY(get_tables(b, s, SPANS, &in[SPANS], &in[STATE]));
  AIT_TRY(nat_out_plain(b, s, 0, &y));
  if (!scan_fits(in, &y)) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "operands and state do not fit together");
  ait_cached_scan_f32 p = {.rows = in[U].shape[0],
                           .heads = in[U].shape[1],
                           .width = in[U].shape[2],
                           .groups = in[B].shape[1],
                           .size = in[B].shape[2],
                           .a_matrix = in[A].rank == 2,
                           .spans.count = in[SPANS].shape[0]},
                      *args;
  const nat_view *views[5] = {&in[U], &in[DT], &in[B], &in[C], &y};
  int64_t *strides[5] = {p.u_stride, p.dt_stride, p.b_stride, p.c_stride, p.y_stride};
  for (int i = 0; i < 5; ++i) memcpy(strides[i], views[i]->strides, 2 * sizeof *strides[i]);
  AIT_TRY(emit_check(b, s, &in[SPANS], p.rows, in[STATE].shape[0]));
  double cells = (double)(p.rows * p.heads * p.width) * (double)p.size;
  nat_work work = {b->kernels->cached_scan_f32, "scan, cached", ait_cached_scan_f32_units(&p), cells * (p.a_matrix ? 1.0 : 0.2),
                   ait_cached_scan_f32_scratch(&p)};
  AIT_TRY(nat_emit(b, &work, &p, sizeof p, &args));
  AIT_TRY(NAT_POINTER(b, args->u, &in[U]));
  AIT_TRY(NAT_POINTER(b, args->dt, &in[DT]));
  AIT_TRY(NAT_POINTER(b, args->a, &in[A]));
  AIT_TRY(NAT_POINTER(b, args->b, &in[B]));
  AIT_TRY(NAT_POINTER(b, args->c, &in[C]));
  AIT_TRY(NAT_POINTER(b, args->spans.at, &in[SPANS]));
  AIT_TRY(NAT_POINTER(b, args->state, &in[STATE]));
  return NAT_POINTER(b, args->y, &y);
}
