/* LSTM and GRU, one ONNX node for each layer. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

typedef struct rnn {
  bool lstm, biases, bidirectional, batch_first, batched;
  uint32_t gates, layers, directions, per_cell;
  int64_t hidden;
  ait_dtype dtype;
  const ait_arg *params;
} rnn;

/* torch has the gates as i f g o and r z n, ONNX as i o f c and z r h. */
static oe_t reordered(ox *x, const rnn *r, oe_t t) {
  static const uint32_t lstm[] = {0, 3, 1, 2}, gru[] = {1, 0, 2};
  oe_t parts[4];
  for (uint32_t i = 0; i < r->gates; ++i) {
    int64_t from = (r->lstm ? lstm : gru)[i];
    parts[i] = oe_slice_const(x, t, 0, from * r->hidden, (from + 1) * r->hidden);
  }
  return oe_concat(x, parts, r->gates, 0);
}

static oe_t parameter(ox *x, const rnn *r, uint32_t layer, uint32_t direction, uint32_t which) {
  return oe_operand(x, &r->params[(layer * r->directions + direction) * r->per_cell + which], r->dtype);
}

/* Parameter `which` of a layer, [directions, ..]. */
static oe_t layer_weights(ox *x, const rnn *r, uint32_t layer, uint32_t which) {
  oe_t parts[2];
  for (uint32_t d = 0; d < r->directions; ++d) parts[d] = oe_unsqueeze(x, reordered(x, r, parameter(x, r, layer, d, which)), 0);
  return oe_concat(x, parts, r->directions, 0);
}

static oe_t layer_biases(ox *x, const rnn *r, uint32_t layer) {
  if (!r->biases) return oe_none();
  return oe_concat(x, (const oe_t[]){layer_weights(x, r, layer, 2), layer_weights(x, r, layer, 3)}, 2, 1);
}

static oe_t layer_state(ox *x, const rnn *r, oe_t all, uint32_t layer) {
  if (r->layers == 1) return all;
  return oe_slice_const(x, all, 0, (int64_t)layer * r->directions, (int64_t)(layer + 1) * r->directions);
}

/* a: [time, batch, features]; returns the same of the layer's output. */
static oe_t run_layer(ox *x, const rnn *r, uint32_t layer, oe_t a, oe_t h0, oe_t c0, oe_t *h, oe_t *c) {
  oe_t in[8] = {a,         layer_weights(x, r, layer, 0), layer_weights(x, r, layer, 1), layer_biases(x, r, layer),
                oe_none(), layer_state(x, r, h0, layer)};
  oe_t out[3] = {oe_tensor(x, r->dtype), oe_tensor(x, r->dtype), oe_tensor(x, r->dtype)};
  if (r->lstm) in[6] = layer_state(x, r, c0, layer);
  oe_node_new(x, r->lstm ? "LSTM" : "GRU", in, r->lstm ? 7 : 6, out, r->lstm ? 3 : 2);
  oe_int(x, "hidden_size", r->hidden);
  if (r->bidirectional) oe_string(x, "direction", "bidirectional");
  if (!r->lstm) oe_int(x, "linear_before_reset", 1);
  h[layer] = out[1];
  c[layer] = out[2];
  if (r->directions == 1) return oe_squeeze(x, out[0], 1);
  oe_t together = oe_transpose(x, out[0], (const int64_t[]){0, 2, 1, 3}, 4); /* [time, batch, direction, hidden] */
  return oe_reshape_to(x, together, (const int64_t[]){0, 0, 2 * r->hidden}, 3);
}

static void finish_state(ox *x, const rnn *r, uint32_t result, const oe_t *states) {
  if (!oe_wants(x, result)) return;
  oe_t all = oe_concat(x, states, r->layers, 0);
  oe_set(x, result, r->batched ? all : oe_squeeze(x, all, 1));
}

static void run(ox *x, rnn *r, uint32_t params_at) {
  oe_t given = oe_in(x, 0), h0 = oe_in(x, 1), c0 = r->lstm ? oe_in(x, 2) : oe_none();
  uint32_t count = oe_arg_list(x, params_at, &r->params);
  r->biases = oe_arg_bool(x, params_at + 1);
  r->layers = (uint32_t)oe_arg_int(x, params_at + 2);
  r->bidirectional = oe_arg_bool(x, params_at + 3);
  r->batch_first = oe_arg_bool(x, params_at + 4);
  r->directions = r->bidirectional ? 2 : 1;
  r->per_cell = r->biases ? 4 : 2;
  r->batched = given.rank == 3;
  r->dtype = oe_dtype_in(given.dtype, OE_BIT(F32) | OE_BIT(F64));
  if (given.rank != 2 && given.rank != 3) oe_fail(x, "the rank of its operand is not known");
  if (count == r->layers * r->directions * (r->per_cell + 1)) oe_fail(x, "ONNX's LSTM has no projections");
  else if (count != r->layers * r->directions * r->per_cell || r->layers == 0) oe_fail(x, "its parameters are %u", (unsigned)count);
  if (!h0.shape || !oe_dim_const(x, h0.shape[h0.rank - 1], &r->hidden)) oe_fail(x, "the size of its state is not known");
  oe_t *h = oe_new(x, r->layers, sizeof *h), *c = oe_new(x, r->layers, sizeof *c);
  if (oe_failed(x)) return;
  oe_t a = oe_cast(x, given, r->dtype);
  h0 = oe_cast(x, h0, r->dtype);
  c0 = oe_cast(x, c0, r->dtype);
  if (!r->batched) {
    a = oe_unsqueeze(x, a, 1);
    h0 = oe_unsqueeze(x, h0, 1);
    if (r->lstm) c0 = oe_unsqueeze(x, c0, 1);
  } else if (r->batch_first) a = oe_transpose(x, a, (const int64_t[]){1, 0, 2}, 3);
  for (uint32_t layer = 0; layer < r->layers && !oe_failed(x); ++layer) a = run_layer(x, r, layer, a, h0, c0, h, c);
  if (!r->batched) a = oe_squeeze(x, a, 1);
  else if (r->batch_first) a = oe_transpose(x, a, (const int64_t[]){1, 0, 2}, 3);
  oe_set(x, 0, a);
  finish_state(x, r, 1, h);
  if (r->lstm) finish_state(x, r, 2, c);
}

void oe_row_lstm(ox *x) { run(x, &(rnn){.lstm = true, .gates = 4}, 3); }
void oe_row_gru(ox *x) { run(x, &(rnn){.gates = 3}, 2); }
