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
static ox_t reordered(ox *x, const rnn *r, ox_t t) {
  static const uint32_t lstm[] = {0, 3, 1, 2}, gru[] = {1, 0, 2};
  ox_t parts[4];
  for (uint32_t i = 0; i < r->gates; ++i) {
    int64_t from = (r->lstm ? lstm : gru)[i];
    parts[i] = ox_slice_const(x, t, 0, from * r->hidden, (from + 1) * r->hidden);
  }
  return ox_concat(x, parts, r->gates, 0);
}

static ox_t parameter(ox *x, const rnn *r, uint32_t layer, uint32_t direction, uint32_t which) {
  return ox_operand(x, &r->params[(layer * r->directions + direction) * r->per_cell + which], r->dtype);
}

/* Parameter `which` of a layer, [directions, ..]. */
static ox_t layer_weights(ox *x, const rnn *r, uint32_t layer, uint32_t which) {
  ox_t parts[2];
  for (uint32_t d = 0; d < r->directions; ++d) parts[d] = ox_unsqueeze(x, reordered(x, r, parameter(x, r, layer, d, which)), 0);
  return ox_concat(x, parts, r->directions, 0);
}

static ox_t layer_biases(ox *x, const rnn *r, uint32_t layer) {
  if (!r->biases) return ox_none();
  return ox_concat(x, (const ox_t[]){layer_weights(x, r, layer, 2), layer_weights(x, r, layer, 3)}, 2, 1);
}

static ox_t layer_state(ox *x, const rnn *r, ox_t all, uint32_t layer) {
  if (r->layers == 1) return all;
  return ox_slice_const(x, all, 0, (int64_t)layer * r->directions, (int64_t)(layer + 1) * r->directions);
}

/* a: [time, batch, features]; returns the same of the layer's output. */
static ox_t run_layer(ox *x, const rnn *r, uint32_t layer, ox_t a, ox_t h0, ox_t c0, ox_t *h, ox_t *c) {
  ox_t in[8] = {a,         layer_weights(x, r, layer, 0), layer_weights(x, r, layer, 1), layer_biases(x, r, layer),
                ox_none(), layer_state(x, r, h0, layer)};
  ox_t out[3] = {ox_tensor(x, r->dtype), ox_tensor(x, r->dtype), ox_tensor(x, r->dtype)};
  if (r->lstm) in[6] = layer_state(x, r, c0, layer);
  ox_node_new(x, r->lstm ? "LSTM" : "GRU", in, r->lstm ? 7 : 6, out, r->lstm ? 3 : 2);
  ox_int(x, "hidden_size", r->hidden);
  if (r->bidirectional) ox_string(x, "direction", "bidirectional");
  if (!r->lstm) ox_int(x, "linear_before_reset", 1);
  h[layer] = out[1];
  c[layer] = out[2];
  if (r->directions == 1) return ox_squeeze(x, out[0], 1);
  ox_t together = ox_transpose(x, out[0], (const int64_t[]){0, 2, 1, 3}, 4); /* [time, batch, direction, hidden] */
  return ox_reshape_to(x, together, (const int64_t[]){0, 0, 2 * r->hidden}, 3);
}

static void finish_state(ox *x, const rnn *r, uint32_t result, const ox_t *states) {
  if (!ox_wants(x, result)) return;
  ox_t all = ox_concat(x, states, r->layers, 0);
  ox_set(x, result, r->batched ? all : ox_squeeze(x, all, 1));
}

static void run(ox *x, rnn *r, uint32_t params_at) {
  ox_t given = ox_in(x, 0), h0 = ox_in(x, 1), c0 = r->lstm ? ox_in(x, 2) : ox_none();
  uint32_t count = ox_arg_list(x, params_at, &r->params);
  r->biases = ox_arg_bool(x, params_at + 1);
  r->layers = (uint32_t)ox_arg_int(x, params_at + 2);
  r->bidirectional = ox_arg_bool(x, params_at + 3);
  r->batch_first = ox_arg_bool(x, params_at + 4);
  r->directions = r->bidirectional ? 2 : 1;
  r->per_cell = r->biases ? 4 : 2;
  r->batched = given.rank == 3;
  r->dtype = ox_dtype_in(given.dtype, OX_BIT(F32) | OX_BIT(F64));
  if (given.rank != 2 && given.rank != 3) ox_fail(x, "the rank of its operand is not known");
  if (count == r->layers * r->directions * (r->per_cell + 1)) ox_fail(x, "ONNX's LSTM has no projections");
  else if (count != r->layers * r->directions * r->per_cell || r->layers == 0) ox_fail(x, "its parameters are %u", (unsigned)count);
  if (!h0.shape || !ox_dim_const(x, h0.shape[h0.rank - 1], &r->hidden)) ox_fail(x, "the size of its state is not known");
  ox_t *h = ox_new(x, r->layers, sizeof *h), *c = ox_new(x, r->layers, sizeof *c);
  if (ox_failed(x)) return;
  ox_t a = ox_cast(x, given, r->dtype);
  h0 = ox_cast(x, h0, r->dtype);
  c0 = ox_cast(x, c0, r->dtype);
  if (!r->batched) {
    a = ox_unsqueeze(x, a, 1);
    h0 = ox_unsqueeze(x, h0, 1);
    if (r->lstm) c0 = ox_unsqueeze(x, c0, 1);
  } else if (r->batch_first) a = ox_transpose(x, a, (const int64_t[]){1, 0, 2}, 3);
  for (uint32_t layer = 0; layer < r->layers && !ox_failed(x); ++layer) a = run_layer(x, r, layer, a, h0, c0, h, c);
  if (!r->batched) a = ox_squeeze(x, a, 1);
  else if (r->batch_first) a = ox_transpose(x, a, (const int64_t[]){1, 0, 2}, 3);
  ox_set(x, 0, a);
  finish_state(x, r, 1, h);
  if (r->lstm) finish_state(x, r, 2, c);
}

void ox_row_lstm(ox *x) { run(x, &(rnn){.lstm = true, .gates = 4}, 3); }
void ox_row_gru(ox *x) { run(x, &(rnn){.gates = 3}, 2); }
