/* LSTM and GRU: one product for all steps' inputs, then for each step a product with the hidden state and the cell. */
#include "backends/native/prepare.h"

typedef struct recurrent {
  bool gru, biases, bidirectional, batch_first;
  int64_t layers, directions, steps, batch, hidden, gates; /* gates: 4 or 3 times hidden */
  uint32_t first_param;                                    /* operand */
  nat_view h0, c0, h, c;
} recurrent;

static ait_status read_arguments(nat_bind *b, const nat_step *s, recurrent *r, nat_view *x) {
  uint32_t arg = r->gru ? 3 : 4;
  AIT_TRY(nat_arg_bool(b, s, arg, true, &r->biases));
  AIT_TRY(nat_arg_int(b, s, arg + 1, 1, &r->layers));
  AIT_TRY(nat_arg_bool(b, s, arg + 2, false, &r->bidirectional));
  AIT_TRY(nat_arg_bool(b, s, arg + 3, false, &r->batch_first));
  AIT_TRY(nat_in_f32(b, s, 0, x));
  AIT_TRY(nat_in_f32(b, s, 1, &r->h0));
  if (!r->gru) AIT_TRY(nat_in_f32(b, s, 2, &r->c0));
  r->first_param = r->gru ? 2 : 3;
  r->directions = r->bidirectional ? 2 : 1;
  if (x->rank != 3 || r->h0.rank != 3 || r->layers < 1 || r->layers > 1024)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "ranks %d and %d", x->rank, r->h0.rank);
  r->steps = x->shape[r->batch_first ? 1 : 0];
  r->batch = x->shape[r->batch_first ? 0 : 1];
  r->hidden = r->h0.shape[2];
  r->gates = r->hidden * (r->gru ? 3 : 4);
  bool fits = r->h0.shape[0] == r->layers * r->directions && r->h0.shape[1] == r->batch;
  if (!r->gru) fits = fits && nat_same_shape(&r->h0, &r->c0);
  uint64_t params = (uint64_t)(r->layers * r->directions) * (r->biases ? 4 : 2);
  fits = fits && s->in_count == r->first_param + params;
  return fits ? AIT_OK : nat_error(b, AIT_CODE_INVALID_MODEL, "shapes do not fit");
}

typedef struct cell {
  nat_view w_ih, w_hh, b_ih, b_hh; /* weights packed */
  bool has_bias;
} cell;

static ait_status packed_param(nat_bind *b, const nat_step *s, uint32_t operand, uint32_t pack, int64_t n, int64_t k, nat_view *out) {
  nat_view w;
  int64_t dims[6] = {k, n, 1, 1, 1, 1};
  ait_status status;
  AIT_TRY(nat_in_f32(b, s, operand, &w));
  if (w.rank != 2 || w.shape[0] != n || w.shape[1] != k)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "weight %u has another shape", operand);
  if (nat_packed(b, s, pack, NAT_PACK_MATRIX, dims, out, &status)) return AIT_OK;
  AIT_TRY(status);
  nat_view t = w;
  t.shape[0] = k;
  t.shape[1] = n;
  t.strides[0] = w.strides[1];
  t.strides[1] = w.strides[0];
  return nat_pack_now(b, &t, out);
}

static ait_status cell_of(nat_bind *b, const nat_step *s, const recurrent *r, int64_t index, int64_t inputs, cell *out) {
  uint32_t first = r->first_param + (uint32_t)index * (r->biases ? 4 : 2);
  AIT_TRY(packed_param(b, s, first, (uint32_t)index * 2, r->gates, inputs, &out->w_ih));
  AIT_TRY(packed_param(b, s, first + 1, (uint32_t)index * 2 + 1, r->gates, r->hidden, &out->w_hh));
  out->has_bias = r->biases;
  if (!r->biases) return AIT_OK;
  AIT_TRY(nat_vector(b, s, first + 2, r->gates, &out->has_bias, &out->b_ih));
  return nat_vector(b, s, first + 3, r->gates, &out->has_bias, &out->b_hh);
}

static nat_view at(const nat_view *v, int64_t elements) {
  nat_view r = *v;
  r.offset += elements * (int64_t)sizeof(float);
  return r;
}

/* One layer in one direction. x is a matrix [rows][inputs] with rows in the order of the sequence tensor; out: where hidden states go. */
typedef struct pass {
  const recurrent *r;
  const cell *cell;
  nat_view gates_x, gates_h; /* [rows][gates]; [batch][gates] */
  nat_view out;              /* first element of this direction's part of a row */
  int64_t out_row;           /* stride between rows */
  nat_view c_state;          /* [batch][hidden], lstm */
  nat_view h_start;          /* [batch][hidden] */
} pass;

static int64_t row_of(const recurrent *r, int64_t step) { return r->batch_first ? step : step * r->batch; }
static int64_t rows_apart(const recurrent *r) { return r->batch_first ? r->steps : 1; }

static ait_status emit_lstm_cell(nat_bind *b, const pass *p, const nat_view *gates, int64_t gates_stride, const nat_view *h_out) {
  const recurrent *r = p->r;
  ait_lstm_cell_f32 k = {.rows = r->batch,
                         .n = r->hidden,
                         .gates_stride = gates_stride,
                         .c_in_stride = r->hidden,
                         .c_out_stride = r->hidden,
                         .h_out_stride = p->out_row * rows_apart(r)},
                    *args;
  nat_work work = {b->kernels->lstm_cell_f32, "lstm cell", k.rows, (double)(r->batch * r->hidden) * 4, 0};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->gates, gates));
  AIT_TRY(NAT_POINTER(b, args->c_in, &p->c_state));
  AIT_TRY(NAT_POINTER(b, args->c_out, &p->c_state));
  return NAT_POINTER(b, args->h_out, h_out);
}

static ait_status emit_gru_cell(nat_bind *b, const pass *p, const nat_view *gates_x, int64_t gates_x_stride, const nat_view *h_in,
                                int64_t h_in_stride, const nat_view *h_out) {
  const recurrent *r = p->r;
  ait_gru_cell_f32 k = {.rows = r->batch,
                        .n = r->hidden,
                        .gates_x_stride = gates_x_stride,
                        .gates_h_stride = r->gates,
                        .h_in_stride = h_in_stride,
                        .h_out_stride = p->out_row * rows_apart(r)},
                   *args;
  nat_work work = {b->kernels->gru_cell_f32, "gru cell", k.rows, (double)(r->batch * r->hidden) * 4, 0};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->gates_x, gates_x));
  AIT_TRY(NAT_POINTER(b, args->gates_h, &p->gates_h));
  AIT_TRY(NAT_POINTER(b, args->h_in, h_in));
  return NAT_POINTER(b, args->h_out, h_out);
}

static ait_status run_pass(nat_bind *b, const pass *p, bool backwards) {
  const recurrent *r = p->r;
  nat_view h = p->h_start;
  int64_t h_stride = r->hidden;
  for (int64_t i = 0; i < r->steps; ++i) {
    int64_t step = backwards ? r->steps - 1 - i : i, gates_stride = r->gates * rows_apart(r);
    nat_view gates_x = at(&p->gates_x, row_of(r, step) * r->gates), h_out = at(&p->out, row_of(r, step) * p->out_row);
    nat_product product = {.g = {.m = r->batch, .n = r->gates, .k = r->hidden, .a_stride = h_stride, .c_stride = r->gates},
                           .a = &h,
                           .packed = &p->cell->w_hh,
                           .c = &p->gates_h,
                           .bias = p->cell->has_bias ? &p->cell->b_hh : NULL};
    if (!r->gru) {
      product.residual = &gates_x;
      product.g.ep.residual_stride = gates_stride;
    }
    AIT_TRY(nat_emit_product(b, &product));
    if (r->gru) {
      AIT_TRY(emit_gru_cell(b, p, &gates_x, gates_stride, &h, h_stride, &h_out));
    } else {
      AIT_TRY(emit_lstm_cell(b, p, &p->gates_h, r->gates, &h_out));
    }
    h = h_out;
    h_stride = p->out_row * rows_apart(r);
  }
  return AIT_OK;
}

static ait_status matrix_copy(nat_bind *b, const nat_view *to, int64_t to_stride, const nat_view *from, int64_t from_stride, int64_t rows,
                              int64_t n) {
  nat_view d = *to, s = *from;
  d.rank = s.rank = 2;
  d.shape[0] = s.shape[0] = rows;
  d.shape[1] = s.shape[1] = n;
  d.strides[0] = to_stride;
  s.strides[0] = from_stride;
  d.strides[1] = s.strides[1] = 1;
  d.dtype = s.dtype = AIT_F32;
  return nat_copy(b, &d, &s);
}

/* States in and out of this pass: row `index` of [layers * directions][batch][hidden]. */
static ait_status one_direction(nat_bind *b, const nat_step *s, const recurrent *r, int64_t index, bool backwards, const nat_matrix *x,
                                const nat_view *out, int64_t out_row) {
  cell w;
  AIT_TRY(cell_of(b, s, r, index, x->n, &w));
  pass p = {.r = r, .cell = &w, .out = *out, .out_row = out_row};
  int64_t state[2] = {r->batch, r->hidden}, gates[2] = {r->batch, r->gates}, all[2] = {x->rows, r->gates},
          at_state = index * r->batch * r->hidden;
  AIT_TRY(nat_temp(b, AIT_F32, 2, all, NULL, &p.gates_x));
  AIT_TRY(nat_temp(b, AIT_F32, 2, gates, NULL, &p.gates_h));
  nat_product product = {.g = {.m = x->rows, .n = r->gates, .k = x->n, .a_stride = x->stride, .c_stride = r->gates},
                         .a = &x->view,
                         .packed = &w.w_ih,
                         .c = &p.gates_x,
                         .bias = w.has_bias ? &w.b_ih : NULL};
  AIT_TRY(nat_emit_product(b, &product));
  p.h_start = at(&r->h0, at_state);
  if (!r->gru) {
    nat_view c0 = at(&r->c0, at_state);
    AIT_TRY(nat_temp(b, AIT_F32, 2, state, NULL, &p.c_state));
    AIT_TRY(matrix_copy(b, &p.c_state, r->hidden, &c0, r->hidden, r->batch, r->hidden));
  }
  AIT_TRY(run_pass(b, &p, backwards));
  nat_view h = at(&r->h, at_state), c = at(&r->c, at_state), last = at(out, row_of(r, backwards ? 0 : r->steps - 1) * out_row);
  if (r->steps == 0) {
    AIT_TRY(matrix_copy(b, &h, r->hidden, &p.h_start, r->hidden, r->batch, r->hidden));
  } else {
    AIT_TRY(matrix_copy(b, &h, r->hidden, &last, out_row * rows_apart(r), r->batch, r->hidden));
  }
  return r->gru ? AIT_OK : matrix_copy(b, &c, r->hidden, &p.c_state, r->hidden, r->batch, r->hidden);
}

static ait_status prepare(nat_bind *b, const nat_step *s, bool gru) {
  recurrent r = {.gru = gru};
  nat_view x, y, dense;
  AIT_TRY(read_arguments(b, s, &r, &x));
  AIT_TRY(nat_dense(b, &r.h0, NULL, &dense));
  r.h0 = dense;
  if (!gru) {
    AIT_TRY(nat_dense(b, &r.c0, NULL, &dense));
    r.c0 = dense;
  }
  AIT_TRY(nat_out_plain(b, s, 0, &y));
  AIT_TRY(nat_out_plain(b, s, 1, &r.h));
  if (!gru) AIT_TRY(nat_out_plain(b, s, 2, &r.c));
  int64_t want[3] = {x.shape[0], x.shape[1], r.hidden * r.directions};
  bool fits = y.rank == 3 && memcmp(y.shape, want, sizeof want) == 0 && nat_same_shape(&r.h, &r.h0) && (gru || nat_same_shape(&r.c, &r.h0));
  if (!fits) return nat_error(b, AIT_CODE_INVALID_MODEL, "results have other shapes");
  if (r.batch == 0 || r.hidden == 0) return AIT_OK;
  nat_matrix from;
  AIT_TRY(nat_matrix_in(b, &x, 1, &from));
  for (int64_t layer = 0; layer < r.layers; ++layer) {
    nat_view to = y;
    if (layer + 1 < r.layers) AIT_TRY(nat_temp(b, AIT_F32, 3, want, NULL, &to));
    for (int64_t d = 0; d < r.directions; ++d) {
      nat_view part = at(&to, d * r.hidden);
      AIT_TRY(one_direction(b, s, &r, layer * r.directions + d, d == 1, &from, &part, want[2]));
    }
    if (!nat_matrix_of(&to, 1, &from)) return nat_error(b, AIT_CODE_INTERNAL, "a layer's result is no matrix");
  }
  return AIT_OK;
}

ait_status nat_prepare_lstm(nat_bind *b, const nat_step *s) { return prepare(b, s, false); }
ait_status nat_prepare_gru(nat_bind *b, const nat_step *s) { return prepare(b, s, true); }
