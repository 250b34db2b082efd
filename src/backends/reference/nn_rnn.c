/* LSTM, GRU and plain recurrent layers and cells. All in double: [time, batch, feature], gates of a time step as one product. */
#include "backends/reference/nn.h"

typedef enum rnn_kind { RNN_TANH, RNN_RELU, RNN_GRU, RNN_LSTM } rnn_kind;
static const int64_t gates_of[] = {1, 1, 3, 4};

typedef struct rnn {
  const ait_ref_call *call;
  rnn_kind kind;
  bool biases, bidirectional, batch_first, train;
  int64_t layers, time, batch, hidden; /* hidden: size of the cell */
  int64_t projected;                   /* size of h: hidden, or less with LSTM projections */
  double dropout;
  ait_tensor *params; /* doubles */
  uint32_t param_count;
  ait_tensor h, c; /* doubles [layers * directions, batch, size], updated in place to the final state */
} rnn;

/* The parameters of one layer and direction. */
typedef struct weights {
  const double *w_ih, *w_hh, *b_ih, *b_hh, *w_hr;
  int64_t in;
} weights;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Activates one sample: gx, gh: gate inputs from x and from h, biases included. h, c: `n` numbers, updated. */
static void cell(rnn_kind kind, int64_t n, const double *gx, const double *gh, double *h, double *c) {
  for (int64_t j = 0; j < n; ++j) {
    if (kind == RNN_LSTM) {
      double i = sigmoid(gx[j] + gh[j]), f = sigmoid(gx[n + j] + gh[n + j]), g = tanh(gx[2 * n + j] + gh[2 * n + j]);
      c[j] = f * c[j] + i * g;
      h[j] = sigmoid(gx[3 * n + j] + gh[3 * n + j]) * tanh(c[j]);
    } else if (kind == RNN_GRU) {
      double r = sigmoid(gx[j] + gh[j]), z = sigmoid(gx[n + j] + gh[n + j]), g = tanh(gx[2 * n + j] + r * gh[2 * n + j]);
      h[j] = (1 - z) * g + z * h[j];
    } else {
      double s = gx[j] + gh[j];
      h[j] = kind == RNN_TANH ? tanh(s) : s < 0 ? 0 : s;
    }
  }
}

/* out [rows, n] = x [rows, in] W^T (+ bias) */
static ait_status affine(const ait_ref_call *call, const double *x, int64_t rows, int64_t in, const double *w, const double *bias,
                         int64_t n, double *out) {
  ait_nn_mat a = ait_nn_mat_of(x, in, 1), b = ait_nn_mat_of(w, 1, in);
  AIT_TRY(ait_nn_product(call, &a, &b, rows, n, in, out));
  for (int64_t r = 0; bias && r < rows; ++r)
    for (int64_t j = 0; j < n; ++j) out[r * n + j] += bias[j];
  return AIT_OK;
}

/* One time step of one direction for the whole batch. gx: [batch, gates]; gh, cell_h: scratch. */
static ait_status step(const rnn *r, const weights *w, const double *gx, double *gh, double *cell_h, double *h, double *c) {
  int64_t n = r->hidden, gates = gates_of[r->kind] * n;
  AIT_TRY(affine(r->call, h, r->batch, r->projected, w->w_hh, w->b_hh, gates, gh));
  for (int64_t b = 0; b < r->batch; ++b) {
    double *to = w->w_hr ? cell_h + b * n : h + b * n;
    cell(r->kind, n, gx + b * gates, gh + b * gates, to, c ? c + b * n : NULL);
  }
  return w->w_hr ? affine(r->call, cell_h, r->batch, n, w->w_hr, NULL, r->projected, h) : AIT_OK;
}

/* out: [time, batch, width]; this direction's part begins at `offset`. */
static ait_status run_direction(const rnn *r, const weights *w, const double *x, bool backward, double *out, int64_t width, int64_t offset,
                                double *h, double *c) {
  int64_t gates = gates_of[r->kind] * r->hidden, total = (r->time + 1) * r->batch * gates + r->batch * r->hidden;
  double *gx = ait_nn_doubles(r->call, total);
  if (!gx) return AIT_OOM();
  double *gh = gx + r->time * r->batch * gates, *cell_h = gh + r->batch * gates;
  ait_status status = affine(r->call, x, r->time * r->batch, w->in, w->w_ih, w->b_ih, gates, gx);
  for (int64_t s = 0; !status && s < r->time; ++s) {
    int64_t t = backward ? r->time - 1 - s : s;
    status = step(r, w, gx + t * r->batch * gates, gh, cell_h, h, c);
    for (int64_t b = 0; b < r->batch; ++b)
      memcpy(out + (t * r->batch + b) * width + offset, h + b * r->projected, (size_t)r->projected * sizeof *out);
  }
  ait_nn_doubles_free(r->call, gx, total);
  return status;
}

/* Parameters of layer l, direction d, their shapes checked. */
static ait_status find_weights(const rnn *r, int64_t l, int64_t d, int64_t in, weights *w) {
  int64_t directions = r->bidirectional ? 2 : 1, gates = gates_of[r->kind] * r->hidden;
  bool projection = r->projected != r->hidden;
  uint32_t per = (r->biases ? 4u : 2u) + projection, first = (uint32_t)(l * directions + d) * per;
  if (first + per > r->param_count) return ait_ref_error(r->call, AIT_CODE_INVALID_MODEL, "too few parameters");
  const ait_tensor *p = r->params + first;
  if (ait_tensor_count(&p[0]) != gates * in || ait_tensor_count(&p[1]) != gates * r->projected)
    return ait_ref_error(r->call, AIT_CODE_INVALID_MODEL, "weight shapes of layer %lld", (long long)l);
  *w = (weights){.w_ih = p[0].data, .w_hh = p[1].data, .in = in};
  if (r->biases) w->b_ih = p[2].data, w->b_hh = p[3].data;
  if (projection) w->w_hr = p[per - 1].data;
  return AIT_OK;
}

static void drop(const rnn *r, int64_t layer, double *x, int64_t count, const ait_nn_random *state) {
  if (!r->train || r->dropout <= 0 || layer + 1 >= r->layers) return;
  ait_nn_random random = *state;
  random.counter[2] = (uint32_t)layer;
  for (int64_t i = 0; i < count; ++i) x[i] = ait_nn_random_uniform(&random) < r->dropout ? 0 : x[i] / (1 - r->dropout);
}

/* *x: [time, batch, in], replaced by the last layer's output. */
static ait_status run_layers(ait_ref_call *call, rnn *r, ait_tensor *x) {
  int64_t directions = r->bidirectional ? 2 : 1, in = x->shape[2], width = directions * r->projected;
  ait_nn_random random;
  ait_nn_random_init(call, &random);
  for (int64_t l = 0; l < r->layers; ++l) {
    ait_tensor out;
    int64_t shape[3] = {r->time, r->batch, width};
    AIT_TRY(ait_ref_temp(call, AIT_F64, 3, shape, &out));
    ait_status status = AIT_OK;
    for (int64_t d = 0; !status && d < directions; ++d) {
      weights w;
      int64_t state = l * directions + d;
      double *h = ait_nn_data_mut(&r->h) + state * r->batch * r->projected;
      double *c = r->kind == RNN_LSTM ? ait_nn_data_mut(&r->c) + state * r->batch * r->hidden : NULL;
      status = find_weights(r, l, d, in, &w);
      if (!status) status = run_direction(r, &w, x->data, d == 1, out.data, width, d * r->projected, h, c);
    }
    drop(r, l, out.data, ait_tensor_count(&out), &random);
    ait_tensor_release(x);
    *x = out;
    AIT_TRY(status);
    in = width;
  }
  return AIT_OK;
}

static void swap_first_dims(ait_tensor *t) {
  int64_t n = t->shape[0], s = t->strides[0];
  t->shape[0] = t->shape[1], t->strides[0] = t->strides[1];
  t->shape[1] = n, t->strides[1] = s;
}

static ait_status run_rnn(ait_ref_call *call, rnn *r, const ait_tensor *input) {
  if (input->rank != 3 || r->h.rank != 3) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", input->rank);
  ait_tensor view = *input, x = {0}, out = {0};
  if (r->batch_first) swap_first_dims(&view);
  r->time = view.shape[0], r->batch = view.shape[1];
  r->projected = r->h.shape[2];
  r->hidden = r->kind == RNN_LSTM ? r->c.shape[2] : r->projected;
  int64_t states = r->layers * (r->bidirectional ? 2 : 1);
  if (r->h.shape[0] != states || r->h.shape[1] != r->batch)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the initial state does not fit the input");
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, &view, &x));
  AIT_GOTO(run_layers(call, r, &x));
  view = x;
  if (r->batch_first) swap_first_dims(&view);
  AIT_GOTO(ait_nn_f64(call, &view, &out));
  AIT_GOTO(ait_nn_result_like(call, 0, ait_nn_dtype(call, 0, input->dtype), &out, &view)); /* batch first is a transposed view in torch */
  AIT_GOTO(ait_nn_result(call, 1, ait_nn_dtype(call, 1, input->dtype), &r->h));
  if (r->kind == RNN_LSTM) status = ait_nn_result(call, 2, ait_nn_dtype(call, 2, input->dtype), &r->c);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

/* ---- arguments --------------------------------------------------------------------------------------------------------------- */
static ait_status take_params(ait_ref_call *call, uint32_t arg, rnn *r) {
  ait_tensor *given;
  AIT_TRY(ait_ref_tensors(call, arg, &given, &r->param_count));
  ait_status status = AIT_OK;
  r->params = ait_alloc_zero(call->allocator, r->param_count * sizeof *r->params, 8);
  if (!r->params) status = AIT_OOM();
  for (uint32_t i = 0; !status && i < r->param_count; ++i) status = ait_nn_f64(call, &given[i], &r->params[i]);
  ait_free(call->allocator, given, r->param_count * sizeof *given);
  return status;
}

static void rnn_release(const ait_ref_call *call, rnn *r) {
  for (uint32_t i = 0; r->params && i < r->param_count; ++i) ait_tensor_release(&r->params[i]);
  ait_free(call->allocator, r->params, r->param_count * sizeof *r->params);
  ait_tensor_release(&r->h);
  ait_tensor_release(&r->c);
}

static ait_status take_pair(ait_ref_call *call, uint32_t arg, ait_tensor *h, ait_tensor *c) {
  ait_tensor *hx;
  uint32_t count;
  AIT_TRY(ait_ref_tensors(call, arg, &hx, &count));
  ait_status status = count == 2 ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_MODEL, "%u states for an lstm", count);
  if (!status) status = ait_nn_f64(call, &hx[0], h);
  if (!status) status = ait_nn_f64(call, &hx[1], c);
  ait_free(call->allocator, hx, count * sizeof *hx);
  return status;
}

static ait_status take_flags(ait_ref_call *call, uint32_t biases, uint32_t bidirectional, rnn *r) {
  AIT_TRY(ait_ref_bool(call, biases, &r->biases));
  AIT_TRY(ait_ref_int(call, biases + 1, &r->layers));
  AIT_TRY(ait_ref_bool(call, bidirectional, &r->bidirectional));
  return ait_ref_bool(call, bidirectional + 1, &r->batch_first);
}

static rnn_kind kind_of(const ait_ref_call *call) {
  const char *op = call->node->op;
  return strstr(op, "lstm") ? RNN_LSTM : strstr(op, "gru") ? RNN_GRU : strstr(op, "relu") ? RNN_RELU : RNN_TANH;
}

/* aten.lstm.input, gru.input, rnn_tanh.input, rnn_relu.input */
ait_status ait_ref_rnn(ait_ref_call *call) {
  rnn r = {.call = call, .kind = kind_of(call)};
  const ait_tensor *input;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &input));
  AIT_GOTO(r.kind == RNN_LSTM ? take_pair(call, 1, &r.h, &r.c) : ait_nn_arg(call, 1, &r.h));
  AIT_GOTO(take_params(call, 2, &r));
  AIT_GOTO(take_flags(call, 3, 7, &r));
  AIT_GOTO(ait_ref_float(call, 5, &r.dropout));
  AIT_GOTO(ait_ref_bool(call, 6, &r.train));
  status = run_rnn(call, &r, input);
cleanup:
  rnn_release(call, &r);
  return status;
}

/* ---- packed sequences: time step t holds the first batch_sizes[t] samples, longest first ------------------------------------- */
/* One direction over packed data; h, c: state of all samples of the first step. A sample's state stays once its sequence has ended. */
static ait_status run_packed_direction(rnn *r, const weights *w, const double *x, const int64_t *sizes, int64_t rows, bool backward,
                                       double *out, int64_t width, int64_t offset, double *h, double *c) {
  int64_t gates = gates_of[r->kind] * r->hidden, most = r->batch, total = (rows + most) * gates + most * r->hidden;
  double *gx = ait_nn_doubles(r->call, total);
  if (!gx) return AIT_OOM();
  double *gh = gx + rows * gates, *cell_h = gh + most * gates;
  ait_status status = affine(r->call, x, rows, w->in, w->w_ih, w->b_ih, gates, gx);
  int64_t at = backward ? rows : 0;
  for (int64_t s = 0; !status && s < r->time; ++s) {
    int64_t t = backward ? r->time - 1 - s : s;
    r->batch = sizes[t];
    if (backward) at -= sizes[t];
    status = step(r, w, gx + at * gates, gh, cell_h, h, c);
    for (int64_t b = 0; b < sizes[t]; ++b)
      memcpy(out + (at + b) * width + offset, h + b * r->projected, (size_t)r->projected * sizeof *out);
    if (!backward) at += sizes[t];
  }
  r->batch = most;
  ait_nn_doubles_free(r->call, gx, total);
  return status;
}

/* *x: [rows, in], replaced by the last layer's output */
static ait_status run_packed_layers(ait_ref_call *call, rnn *r, const int64_t *sizes, ait_tensor *x) {
  int64_t directions = r->bidirectional ? 2 : 1, in = x->shape[1], rows = x->shape[0], shape[2] = {rows, directions * r->projected};
  ait_nn_random random;
  ait_nn_random_init(call, &random);
  for (int64_t l = 0; l < r->layers; ++l) {
    ait_tensor out;
    AIT_TRY(ait_ref_temp(call, AIT_F64, 2, shape, &out));
    ait_status status = AIT_OK;
    for (int64_t d = 0; !status && d < directions; ++d) {
      weights w;
      int64_t state = l * directions + d;
      double *h = ait_nn_data_mut(&r->h) + state * r->batch * r->projected;
      double *c = r->kind == RNN_LSTM ? ait_nn_data_mut(&r->c) + state * r->batch * r->hidden : NULL;
      status = find_weights(r, l, d, in, &w);
      if (!status) status = run_packed_direction(r, &w, x->data, sizes, rows, d == 1, out.data, shape[1], d * r->projected, h, c);
    }
    drop(r, l, out.data, ait_tensor_count(&out), &random);
    ait_tensor_release(x);
    *x = out;
    AIT_TRY(status);
    in = shape[1];
  }
  return AIT_OK;
}

static ait_status run_packed(ait_ref_call *call, rnn *r, const ait_tensor *data, const ait_tensor *sizes) {
  if (data->rank != 2 || r->h.rank != 3 || ait_tensor_count(sizes) < 1)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "packed data");
  const int64_t *n = sizes->data;
  int64_t rows = 0;
  r->time = ait_tensor_count(sizes), r->batch = n[0];
  r->projected = r->h.shape[2], r->hidden = r->kind == RNN_LSTM ? r->c.shape[2] : r->projected;
  for (int64_t t = 0; t < r->time; ++t) {
    if (n[t] < 1 || n[t] > (t ? n[t - 1] : n[0])) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "batch sizes must not grow");
    rows += n[t];
  }
  if (rows != data->shape[0] || r->h.shape[1] != r->batch || r->h.shape[0] != r->layers * (r->bidirectional ? 2 : 1))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the initial state or the batch sizes do not fit the data");
  ait_tensor x = {0};
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, data, &x));
  AIT_GOTO(run_packed_layers(call, r, n, &x));
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, data->dtype), &x));
  AIT_GOTO(ait_nn_result(call, 1, ait_nn_dtype(call, 1, data->dtype), &r->h));
  if (r->kind == RNN_LSTM) status = ait_nn_result(call, 2, ait_nn_dtype(call, 2, data->dtype), &r->c);
cleanup:
  ait_tensor_release(&x);
  return status;
}

/* aten.lstm.data, gru.data, rnn_tanh.data, rnn_relu.data: data, batch_sizes, hx, params, .. */
ait_status ait_ref_rnn_packed(ait_ref_call *call) {
  rnn r = {.call = call, .kind = kind_of(call)};
  const ait_tensor *data, *sizes;
  ait_tensor flat = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &data));
  AIT_TRY(ait_ref_tensor(call, 1, &sizes));
  AIT_GOTO(ait_tensor_cast(call->allocator, sizes, AIT_I64, &flat));
  AIT_GOTO(r.kind == RNN_LSTM ? take_pair(call, 2, &r.h, &r.c) : ait_nn_arg(call, 2, &r.h));
  AIT_GOTO(take_params(call, 3, &r));
  AIT_GOTO(ait_ref_bool(call, 4, &r.biases));
  AIT_GOTO(ait_ref_int(call, 5, &r.layers));
  AIT_GOTO(ait_ref_float(call, 6, &r.dropout));
  AIT_GOTO(ait_ref_bool(call, 7, &r.train));
  AIT_GOTO(ait_ref_bool(call, 8, &r.bidirectional));
  status = run_packed(call, &r, data, &flat);
cleanup:
  ait_tensor_release(&flat);
  rnn_release(call, &r);
  return status;
}

/* _pack_padded_sequence(input, lengths, batch_first) -> data, batch_sizes: time steps one after the other, without what is behind the ends
 */
ait_status ait_ref_pack_sequence(ait_ref_call *call) {
  const ait_tensor *t, *given;
  bool batch_first;
  ait_tensor lengths = {0}, sizes = {0}, out = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_tensor(call, 1, &given));
  AIT_TRY(ait_ref_bool(call, 2, &batch_first));
  if (t->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", t->rank);
  ait_tensor x = *t;
  if (batch_first) swap_first_dims(&x);
  AIT_GOTO(ait_tensor_cast(call->allocator, given, AIT_I64, &lengths));
  const int64_t *n = lengths.data;
  int64_t batch = x.shape[1], rows = 0, steps = batch ? n[0] : 0, shape[AIT_MAX_RANK];
  if (ait_tensor_count(&lengths) != batch || steps > x.shape[0]) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "lengths"));
  for (int64_t i = 0; i < batch; ++i) {
    if (n[i] < 1 || (i && n[i] > n[i - 1]))
      AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "lengths must fall, and not reach zero"));
    rows += n[i];
  }
  AIT_GOTO(ait_ref_temp(call, AIT_I64, 1, &steps, &sizes));
  shape[0] = rows;
  for (int32_t d = 2; d < x.rank; ++d) shape[d - 1] = x.shape[d];
  AIT_GOTO(ait_ref_new(call, 0, x.dtype, x.rank - 1, shape, &out));
  for (int64_t s = 0, at = 0; s < steps; ++s) {
    int64_t alive = 0;
    while (alive < batch && n[alive] > s) ++alive;
    ((int64_t *)sizes.data)[s] = alive;
    int64_t start[AIT_MAX_RANK] = {s}, to[AIT_MAX_RANK] = {at};
    ait_tensor from = x, part = out;
    from.data = ait_ref_at(&x, start), from.rank = x.rank - 1, from.shape[0] = alive;
    memmove(from.strides, x.strides + 1, sizeof(int64_t) * (size_t)(x.rank - 1));
    memmove(from.shape + 1, x.shape + 2, sizeof(int64_t) * (size_t)(x.rank - 2));
    part.data = ait_ref_at(&out, to), part.shape[0] = alive;
    AIT_GOTO(ait_tensor_copy(&part, &from));
    at += alive;
  }
  if (ait_nn_wants(call, 1)) ait_ref_set(call, 1, ait_tensor_retain(&sizes));
cleanup:
  ait_tensor_release(&lengths);
  ait_tensor_release(&sizes);
  return status;
}

/* _pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length) -> padded, lengths */
ait_status ait_ref_pad_packed(ait_ref_call *call) {
  const ait_tensor *data, *given;
  bool batch_first;
  int64_t total, shape[AIT_MAX_RANK];
  ait_ref_scalar padding;
  ait_tensor sizes = {0}, lengths = {0}, x = {0}, out = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &data));
  AIT_TRY(ait_ref_tensor(call, 1, &given));
  AIT_TRY(ait_ref_bool(call, 2, &batch_first));
  AIT_TRY(ait_ref_scalar_arg(call, 3, &padding));
  AIT_TRY(ait_ref_int(call, 4, &total));
  AIT_GOTO(ait_nn_f64(call, data, &x));
  AIT_GOTO(ait_tensor_cast(call->allocator, given, AIT_I64, &sizes));
  const int64_t *n = sizes.data;
  int64_t steps = ait_tensor_count(&sizes), batch = steps ? n[0] : 0, row = data->rank ? ait_nn_span(&x, 1, x.rank) : 1, at = 0;
  if (total < 0) total = steps;
  if (total < steps || data->rank < 1) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "total length below the longest sequence"));
  shape[0] = batch_first ? batch : total, shape[1] = batch_first ? total : batch;
  for (int32_t d = 1; d < x.rank; ++d) shape[d + 1] = x.shape[d];
  AIT_GOTO(ait_ref_temp(call, AIT_F64, x.rank + 1, shape, &out));
  AIT_GOTO(ait_nn_zeros(call, AIT_I64, 1, &batch, &lengths));
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i) ait_nn_data_mut(&out)[i] = padding.f;
  for (int64_t s = 0; s < steps; ++s)
    for (int64_t b = 0; b < n[s]; ++b, ++at) {
      if (b >= batch || at >= x.shape[0]) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "batch sizes do not fit the data"));
      memcpy(ait_nn_data_mut(&out) + (batch_first ? b * total + s : s * batch + b) * row, ait_nn_data(&x) + at * row,
             (size_t)row * sizeof(double));
      ((int64_t *)lengths.data)[b] = s + 1;
    }
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, data->dtype), &out));
  if (ait_nn_wants(call, 1)) ait_ref_set(call, 1, ait_tensor_retain(&lengths));
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&sizes);
  ait_tensor_release(&lengths);
  ait_tensor_release(&out);
  return status;
}

/* core lstm (x, h0, c0, params, ..) and gru (x, h0, params, ..) */
ait_status ait_ref_core_rnn(ait_ref_call *call) {
  rnn r = {.call = call, .kind = kind_of(call)};
  const ait_tensor *input;
  ait_status status;
  uint32_t at = 1;
  AIT_TRY(ait_ref_tensor(call, 0, &input));
  AIT_GOTO(ait_nn_arg(call, at++, &r.h));
  if (r.kind == RNN_LSTM) AIT_GOTO(ait_nn_arg(call, at++, &r.c));
  AIT_GOTO(take_params(call, at++, &r));
  AIT_GOTO(take_flags(call, at, at + 2, &r));
  status = run_rnn(call, &r, input);
cleanup:
  rnn_release(call, &r);
  return status;
}

/* lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell: one step on [batch, in] */
static ait_status run_cell(ait_ref_call *call, rnn *r, const ait_tensor *input, ait_tensor *x, double *memory) {
  int64_t gates = gates_of[r->kind] * r->hidden;
  weights w = {.w_ih = r->params[0].data,
               .w_hh = r->params[1].data,
               .b_ih = r->params[2].data,
               .b_hh = r->params[3].data,
               .in = x->shape[x->rank - 1]};
  if (ait_tensor_count(&r->params[0]) != gates * w.in || ait_tensor_count(&r->params[1]) != gates * r->hidden)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "weight shapes");
  AIT_TRY(affine(call, x->data, r->batch, w.in, w.w_ih, w.b_ih, gates, memory));
  AIT_TRY(step(r, &w, memory, memory + r->batch * gates, NULL, r->h.data, r->c.data));
  AIT_TRY(ait_nn_result(call, 0, ait_nn_dtype(call, 0, input->dtype), &r->h));
  return r->kind == RNN_LSTM ? ait_nn_result(call, 1, ait_nn_dtype(call, 1, input->dtype), &r->c) : AIT_OK;
}

ait_status ait_ref_rnn_cell(ait_ref_call *call) {
  ait_tensor params[4] = {{0}}, x = {0};
  rnn r = {.call = call, .kind = kind_of(call), .params = params};
  const ait_tensor *input;
  double *memory = NULL;
  int64_t count = 0;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &input));
  AIT_GOTO(ait_nn_f64(call, input, &x));
  AIT_GOTO(r.kind == RNN_LSTM ? take_pair(call, 1, &r.h, &r.c) : ait_nn_arg(call, 1, &r.h));
  for (uint32_t i = 0; i < 4; ++i) AIT_GOTO(ait_nn_arg_or_null(call, 2 + i, &params[i]));
  if (x.rank < 1 || r.h.rank < 1 || !params[0].data || !params[1].data) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_MODEL, "operands"));
  r.hidden = r.projected = r.h.shape[r.h.rank - 1];
  r.batch = x.rank == 1 ? 1 : x.shape[0];
  if (ait_tensor_count(&r.h) != r.batch * r.hidden)
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the state does not fit the input"));
  count = 2 * r.batch * gates_of[r.kind] * r.hidden;
  if (!(memory = ait_nn_doubles(call, count))) AIT_GOTO(AIT_OOM());
  status = run_cell(call, &r, input, &x, memory);
cleanup:
  ait_nn_doubles_free(call, memory, count);
  for (uint32_t i = 0; i < 4; ++i) ait_tensor_release(&params[i]);
  ait_tensor_release(&x);
  ait_tensor_release(&r.h);
  ait_tensor_release(&r.c);
  return status;
}
