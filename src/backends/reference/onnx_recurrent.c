/* ONNX: RNN, GRU, LSTM with all their options, and linear attention. */
#include "backends/reference/onnx.h"

#include <strings.h>

typedef struct activation {
  const char *name;
  double alpha, beta;
} activation;

typedef enum cell { RNN, GRU, LSTM } cell;

typedef struct recurrent {
  cell kind;
  int64_t gates, steps, batch, in, hidden, directions;
  ait_tensor x, w, r, b, h0, c0, p; /* doubles; b, h0, c0, p may be empty */
  const ait_tensor *lengths;
  activation act[6];
  bool reverse_first, has_clip, reset_after, input_forget, layout;
  double clip;
  double *y, *y_h, *y_c; /* [steps, directions, batch, hidden], [directions, batch, hidden] */
} recurrent;

static double activate(const activation *a, double x) {
  const char *n = a->name;
  if (strcmp(n, "Sigmoid") == 0) return 1 / (1 + exp(-x));
  if (strcmp(n, "Tanh") == 0) return tanh(x);
  if (strcmp(n, "Relu") == 0) return x > 0 ? x : 0;
  if (strcmp(n, "Affine") == 0) return a->alpha * x + a->beta;
  if (strcmp(n, "LeakyRelu") == 0) return x >= 0 ? x : a->alpha * x;
  if (strcmp(n, "ThresholdedRelu") == 0) return x > a->alpha ? x : 0;
  if (strcmp(n, "ScaledTanh") == 0) return a->alpha * tanh(a->beta * x);
  if (strcmp(n, "HardSigmoid") == 0) return fmin(fmax(a->alpha * x + a->beta, 0), 1);
  if (strcmp(n, "Elu") == 0) return x >= 0 ? x : a->alpha * expm1(x);
  if (strcmp(n, "Softsign") == 0) return x / (1 + fabs(x));
  return log1p(exp(-fabs(x))) + fmax(x, 0); /* Softplus */
}

static ait_status set_activation(const ait_ref_call *call, activation *a, const char *name, size_t length) {
  static const struct {
    const char *name;
    double alpha, beta;
  } known[] = {{"Sigmoid", 0, 0},       {"Tanh", 0, 0},
               {"Relu", 0, 0},          {"Affine", 1, 0},
               {"LeakyRelu", 0.01f, 0}, {"ThresholdedRelu", 1, 0},
               {"ScaledTanh", 1, 1},    {"HardSigmoid", 0.2f, 0.5},
               {"Elu", 1, 0},           {"Softsign", 0, 0},
               {"Softplus", 0, 0}};
  for (size_t i = 0; i < AIT_COUNT(known); ++i) {
    if (strlen(known[i].name) != length || strncasecmp(known[i].name, name, length) != 0) continue;
    *a = (activation){known[i].name, known[i].alpha, known[i].beta};
    return AIT_OK;
  }
  return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "activation '%.*s' is not known", (int)length, name);
}

/* Names joined by commas, or the usual ones; alphas and betas in their order for those that take them. */
static ait_status read_activations(const ait_ref_call *call, recurrent *r) {
  static const char *const usual[] = {"Tanh", "Sigmoid,Tanh", "Sigmoid,Tanh,Tanh"};
  const char *names = ait_ref_string(call, 10);
  double alpha[AIT_MAX_RANK], beta[AIT_MAX_RANK];
  int32_t alphas, betas, each = r->kind == LSTM ? 3 : r->kind == GRU ? 2 : 1, n = 0;
  AIT_TRY(ait_ref_floats(call, 11, alpha, &alphas));
  AIT_TRY(ait_ref_floats(call, 12, beta, &betas));
  bool given = names && *names;
  for (const char *p = given ? names : usual[r->kind]; *p && n < 6; ++n) {
    size_t length = strcspn(p, ",");
    AIT_TRY(set_activation(call, &r->act[n], p, length));
    p += length + (p[length] == ',');
  }
  if (n != each * r->directions) {
    if (given && n != each) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "%d activations for %d directions", n, (int)r->directions);
    for (int32_t i = 0; i < each; ++i) r->act[each + i] = r->act[i];
    n = each * 2;
  }
  for (int32_t i = 0, a = 0, b = 0; i < n; ++i) {
    bool takes_alpha = r->act[i].alpha != 0, takes_beta = strcmp(r->act[i].name, "Affine") == 0 || r->act[i].beta != 0;
    if (takes_alpha && a < alphas) r->act[i].alpha = alpha[a++];
    if (takes_beta && b < betas) r->act[i].beta = beta[b++];
  }
  return AIT_OK;
}

static double limited(const recurrent *r, double v) { return r->has_clip ? fmin(fmax(v, -r->clip), r->clip) : v; }

/* W x + R h (+ biases) of gate g, row k. h may be NULL. */
static double gate(const recurrent *r, int64_t d, int64_t g, int64_t k, const double *x, const double *h, bool bias_w, bool bias_r) {
  int64_t rows = r->gates * r->hidden, row = g * r->hidden + k;
  const double *w = (const double *)r->w.data + (d * rows + row) * r->in, *u = (const double *)r->r.data + (d * rows + row) * r->hidden;
  const double *b = r->b.data ? (const double *)r->b.data + d * 2 * rows : NULL;
  double sum = 0;
  for (int64_t i = 0; x && i < r->in; ++i) sum += w[i] * x[i];
  for (int64_t i = 0; h && i < r->hidden; ++i) sum += u[i] * h[i];
  if (b && bias_w) sum += b[row];
  if (b && bias_r) sum += b[rows + row];
  return sum;
}

static void step_rnn(const recurrent *r, int64_t d, const double *x, const double *h, double *out) {
  const activation *f = &r->act[d];
  for (int64_t k = 0; k < r->hidden; ++k) out[k] = activate(f, limited(r, gate(r, d, 0, k, x, h, true, true)));
}

static void step_gru(const recurrent *r, int64_t d, const double *x, const double *h, double *out, double *scratch) {
  const activation *f = &r->act[2 * d], *g = f + 1;
  double *z = scratch, *reset = scratch + r->hidden, *masked = scratch + 2 * r->hidden;
  for (int64_t k = 0; k < r->hidden; ++k) {
    z[k] = activate(f, limited(r, gate(r, d, 0, k, x, h, true, true)));
    reset[k] = activate(f, limited(r, gate(r, d, 1, k, x, h, true, true)));
    masked[k] = reset[k] * h[k];
  }
  for (int64_t k = 0; k < r->hidden; ++k) {
    double v = r->reset_after ? gate(r, d, 2, k, x, NULL, true, false) + reset[k] * gate(r, d, 2, k, NULL, h, false, true)
                              : gate(r, d, 2, k, x, masked, true, true);
    out[k] = (1 - z[k]) * activate(g, limited(r, v)) + z[k] * h[k];
  }
}

static void step_lstm(const recurrent *r, int64_t d, const double *x, const double *h, double *c, double *out) {
  const activation *f = &r->act[3 * d], *g = f + 1, *last = f + 2;
  const double *p = r->p.data ? (const double *)r->p.data + d * 3 * r->hidden : NULL; /* peepholes of i, o, f */
  for (int64_t k = 0; k < r->hidden; ++k) {
    double i = activate(f, limited(r, gate(r, d, 0, k, x, h, true, true) + (p ? p[k] * c[k] : 0)));
    double forget =
        r->input_forget ? 1 - i : activate(f, limited(r, gate(r, d, 2, k, x, h, true, true) + (p ? p[2 * r->hidden + k] * c[k] : 0)));
    double cell_in = activate(g, limited(r, gate(r, d, 3, k, x, h, true, true)));
    c[k] = forget * c[k] + i * cell_in;
    double o = activate(f, limited(r, gate(r, d, 1, k, x, h, true, true) + (p ? p[r->hidden + k] * c[k] : 0)));
    out[k] = o * activate(last, c[k]);
  }
}

/* One sequence in one direction. scratch: 5 * hidden */
static void run_sequence(const recurrent *r, int64_t d, int64_t n, double *scratch) {
  int64_t length = r->lengths ? ait_element_i64(ait_onnx_at(r->lengths, n * r->lengths->strides[0]), r->lengths->dtype) : r->steps;
  int64_t state = (d * r->batch + n) * r->hidden;
  bool backwards = d == 1 || r->reverse_first;
  double *h = scratch, *c = scratch + r->hidden;
  size_t bytes = (size_t)r->hidden * sizeof *h;
  if (length > r->steps) length = r->steps;
  for (int64_t k = 0; k < r->hidden; ++k) {
    h[k] = r->h0.data ? ((const double *)r->h0.data)[state + k] : 0;
    c[k] = r->c0.data ? ((const double *)r->c0.data)[state + k] : 0;
  }
  for (int64_t i = 0; i < length; ++i) {
    int64_t t = backwards ? length - 1 - i : i;
    const double *x = (const double *)r->x.data + (t * r->batch + n) * r->in;
    double *out = r->y + ((t * r->directions + d) * r->batch + n) * r->hidden;
    if (r->kind == RNN) step_rnn(r, d, x, h, out);
    else if (r->kind == GRU) step_gru(r, d, x, h, out, scratch + 2 * r->hidden);
    else step_lstm(r, d, x, h, c, out);
    memcpy(h, out, bytes);
  }
  memcpy(r->y_h + state, h, bytes);
  memcpy(r->y_c + state, c, bytes);
}

/* Dims 0 and 1 exchanged, as contiguous doubles; none stays empty. */
static ait_status load(const ait_ref_call *call, uint32_t arg, bool swap, ait_tensor *out) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, arg);
  if (!t) return AIT_OK;
  ait_tensor view = swap && t->rank >= 2 ? ait_ref_transposed(t, 0, 1) : *t;
  return ait_ref_to_f64(call, &view, out);
}

static bool shape_is(const ait_tensor *t, int32_t rank, int64_t a, int64_t b, int64_t c) {
  return !t->data || (t->rank == rank && t->shape[0] == a && t->shape[1] == b && (rank < 3 || t->shape[2] == c));
}

static ait_status read_recurrent(const ait_ref_call *call, recurrent *r) {
  const char *kind = ait_ref_string(call, 8), *direction = ait_ref_string(call, 9);
  r->kind = kind && strcmp(kind, "lstm") == 0 ? LSTM : kind && strcmp(kind, "gru") == 0 ? GRU : RNN;
  r->gates = r->kind == LSTM ? 4 : r->kind == GRU ? 3 : 1;
  r->directions = direction && strcmp(direction, "bidirectional") == 0 ? 2 : 1;
  r->reverse_first = direction && strcmp(direction, "reverse") == 0;
  r->has_clip = !ait_ref_is_none(call, 13);
  AIT_TRY(ait_ref_float_or(call, 13, 0, &r->clip));
  AIT_TRY(ait_ref_bool(call, 14, &r->reset_after));
  AIT_TRY(ait_ref_bool(call, 15, &r->input_forget));
  AIT_TRY(ait_ref_bool(call, 16, &r->layout));
  AIT_TRY(load(call, 0, r->layout, &r->x));
  AIT_TRY(load(call, 1, false, &r->w));
  AIT_TRY(load(call, 2, false, &r->r));
  AIT_TRY(load(call, 3, false, &r->b));
  AIT_TRY(load(call, 5, r->layout, &r->h0));
  AIT_TRY(load(call, 6, r->layout, &r->c0));
  AIT_TRY(load(call, 7, false, &r->p));
  r->lengths = ait_ref_tensor_or_null(call, 4);
  if (r->x.rank != 3 || r->w.rank != 3 || r->r.rank != 3) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "ranks do not fit");
  r->steps = r->x.shape[0], r->batch = r->x.shape[1], r->in = r->x.shape[2], r->hidden = r->r.shape[2];
  int64_t rows = r->gates * r->hidden, d = r->directions;
  bool fits = shape_is(&r->w, 3, d, rows, r->in) && shape_is(&r->r, 3, d, rows, r->hidden) && shape_is(&r->b, 2, d, 2 * rows, 0) &&
              shape_is(&r->h0, 3, d, r->batch, r->hidden) && shape_is(&r->c0, 3, d, r->batch, r->hidden) &&
              shape_is(&r->p, 2, d, 3 * r->hidden, 0) && (!r->lengths || (r->lengths->rank == 1 && r->lengths->shape[0] == r->batch));
  return fits ? read_activations(call, r) : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the shapes of its tensors do not fit");
}

static ait_status give(ait_ref_call *call, uint32_t k, ait_dtype dtype, ait_tensor *values, bool layout) {
  if (!ait_nn_wants(call, k)) return AIT_OK;
  ait_tensor view = *values;
  if (layout && view.rank == 4) { /* [steps, d, batch, hidden] to [batch, steps, d, hidden] */
    view = ait_ref_transposed(&view, 1, 2);
    view = ait_ref_transposed(&view, 0, 1);
  } else if (layout) {
    view = ait_ref_transposed(&view, 0, 1);
  }
  return ait_ref_copy_result(call, k, dtype, &view);
}

static ait_status run_recurrent(ait_ref_call *call, recurrent *r, ait_dtype dtype) {
  int64_t y_shape[4] = {r->steps, r->directions, r->batch, r->hidden};
  ait_tensor y = {0}, y_h = {0}, y_c = {0};
  ait_status status = AIT_OK;
  int64_t size = 5 * r->hidden + 1;
  double *scratch = ait_nn_doubles(call, size);
  if (!scratch) return AIT_OOM();
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 4, y_shape, &y));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 3, y_shape + 1, &y_h));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 3, y_shape + 1, &y_c));
  r->y = y.data, r->y_h = y_h.data, r->y_c = y_c.data;
  for (int64_t d = 0; d < r->directions; ++d)
    for (int64_t n = 0; n < r->batch; ++n) run_sequence(r, d, n, scratch);
  AIT_GOTO(give(call, 0, dtype, &y, r->layout));
  AIT_GOTO(give(call, 1, dtype, &y_h, r->layout));
  AIT_GOTO(give(call, 2, dtype, &y_c, r->layout));
cleanup:
  ait_nn_doubles_free(call, scratch, size);
  ait_tensor_release(&y);
  ait_tensor_release(&y_h);
  ait_tensor_release(&y_c);
  return status;
}

/* (x, w, r, b?, lengths?, h0?, c0?, p?, kind, direction, activations, alphas, betas, clip?, linear_before_reset, input_forget, layout) */
ait_status ait_ref_onnx_recurrent(ait_ref_call *call) {
  const ait_tensor *x;
  recurrent r = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  ait_status status = read_recurrent(call, &r);
  if (status == AIT_OK) status = run_recurrent(call, &r, ait_nn_dtype(call, 0, x->dtype));
  ait_tensor *const parts[] = {&r.x, &r.w, &r.r, &r.b, &r.h0, &r.c0, &r.p};
  for (size_t i = 0; i < AIT_COUNT(parts); ++i) ait_tensor_release(parts[i]);
  return status;
}

/* ---- linear attention ------------------------------------------------------------------------------------------------------------*/

typedef struct linear_attention {
  ait_tensor q, k, v, decay, beta, state; /* doubles; [b, t, heads * size]; state [b, kv heads, dk, dv] */
  int64_t batch, steps, q_heads, kv_heads, dk, dv;
  bool gated, delta;
  double scale;
} linear_attention;

/* One head of keys and values over all steps; y: [b, t, q heads * dv] */
static void attend(const linear_attention *a, int64_t b, int64_t h, double *y, double *fresh) {
  double *s = (double *)a->state.data + (b * a->kv_heads + h) * a->dk * a->dv;
  int64_t group = a->q_heads / a->kv_heads, decay_width = a->decay.data ? a->decay.shape[2] : 0,
          beta_width = a->beta.data ? a->beta.shape[2] : 0;
  for (int64_t t = 0; t < a->steps; ++t) {
    int64_t row = b * a->steps + t;
    const double *k = (const double *)a->k.data + (row * a->kv_heads + h) * a->dk,
                 *v = (const double *)a->v.data + (row * a->kv_heads + h) * a->dv;
    for (int64_t i = 0; a->gated && i < a->dk; ++i) {
      double g = ((const double *)a->decay.data)[row * decay_width + (decay_width == a->kv_heads ? h : h * a->dk + i)];
      for (int64_t j = 0; j < a->dv; ++j) s[i * a->dv + j] *= exp(g);
    }
    for (int64_t j = 0; j < a->dv; ++j) {
      double found = 0;
      for (int64_t i = 0; a->delta && i < a->dk; ++i) found += s[i * a->dv + j] * k[i];
      fresh[j] = a->delta ? ((const double *)a->beta.data)[row * beta_width + (beta_width == 1 ? 0 : h)] * (v[j] - found) : v[j];
    }
    for (int64_t i = 0; i < a->dk; ++i)
      for (int64_t j = 0; j < a->dv; ++j) s[i * a->dv + j] += k[i] * fresh[j];
    for (int64_t g = 0; g < group; ++g) {
      int64_t head = h * group + g;
      const double *q = (const double *)a->q.data + (row * a->q_heads + head) * a->dk;
      double *out = y + (row * a->q_heads + head) * a->dv;
      for (int64_t j = 0; j < a->dv; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < a->dk; ++i) sum += q[i] * s[i * a->dv + j];
        out[j] = a->scale * sum;
      }
    }
  }
}

static ait_status read_linear(const ait_ref_call *call, linear_attention *a) {
  const char *rule = ait_ref_string(call, 9);
  AIT_TRY(load(call, 0, false, &a->q));
  AIT_TRY(load(call, 1, false, &a->k));
  AIT_TRY(load(call, 2, false, &a->v));
  AIT_TRY(load(call, 3, false, &a->state));
  AIT_TRY(load(call, 4, false, &a->decay));
  AIT_TRY(load(call, 5, false, &a->beta));
  AIT_TRY(ait_ref_int(call, 6, &a->q_heads));
  AIT_TRY(ait_ref_int(call, 7, &a->kv_heads));
  AIT_TRY(ait_ref_float(call, 8, &a->scale));
  a->gated = rule && strstr(rule, "gated") != NULL;
  a->delta = rule && strstr(rule, "delta") != NULL;
  if (a->q_heads < 1 || a->kv_heads < 1 || a->q_heads % a->kv_heads || a->q.rank != 3 || a->k.rank != 3 || a->v.rank != 3 ||
      a->q.shape[2] % a->q_heads || a->v.shape[2] % a->kv_heads || a->gated != (a->decay.data != NULL) ||
      a->delta != (a->beta.data != NULL))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operands, heads and update rule do not fit");
  a->batch = a->q.shape[0], a->steps = a->q.shape[1], a->dk = a->q.shape[2] / a->q_heads, a->dv = a->v.shape[2] / a->kv_heads;
  if (a->scale == 0) a->scale = 1 / sqrt((double)a->dk);
  int64_t b = a->batch, t = a->steps, decay = a->decay.data ? a->decay.shape[a->decay.rank - 1] : 0,
          beta = a->beta.data ? a->beta.shape[a->beta.rank - 1] : 0;
  bool fits = shape_is(&a->k, 3, b, t, a->kv_heads * a->dk) && shape_is(&a->v, 3, b, t, a->kv_heads * a->dv) &&
              shape_is(&a->decay, 3, b, t, decay) && shape_is(&a->beta, 3, b, t, beta) &&
              (!a->gated || decay == a->kv_heads || decay == a->kv_heads * a->dk) && (!a->delta || beta == 1 || beta == a->kv_heads) &&
              (!a->state.data || (a->state.rank == 4 && ait_tensor_count(&a->state) == b * a->kv_heads * a->dk * a->dv));
  return fits ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the shapes of its tensors do not fit");
}

/* (q, k, v, past?, decay?, beta?, q_heads, kv_heads, scale, update_rule) -> y, state */
ait_status ait_ref_onnx_linear_attention(ait_ref_call *call) {
  linear_attention a = {0};
  ait_tensor y = {0};
  double *fresh = NULL;
  ait_status status = AIT_OK;
  const ait_tensor *q, *past = ait_ref_tensor_or_null(call, 3);
  AIT_TRY(ait_ref_tensor(call, 0, &q));
  AIT_GOTO(read_linear(call, &a));
  if (!a.state.data) AIT_GOTO(ait_nn_zeros(call, AIT_F64, 4, (int64_t[]){a.batch, a.kv_heads, a.dk, a.dv}, &a.state));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 3, (int64_t[]){a.batch, a.steps, a.q_heads * a.dv}, &y));
  fresh = ait_nn_doubles(call, a.dv + 1);
  if (!fresh) AIT_GOTO(AIT_OOM());
  for (int64_t i = 0; i < a.batch * a.kv_heads; ++i) attend(&a, i / a.kv_heads, i % a.kv_heads, y.data, fresh);
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, q->dtype), &y));
  AIT_GOTO(ait_nn_result(call, 1, ait_nn_dtype(call, 1, past ? past->dtype : q->dtype), &a.state));
cleanup:
  if (fresh) ait_nn_doubles_free(call, fresh, a.dv + 1);
  ait_tensor *const parts[] = {&a.q, &a.k, &a.v, &a.decay, &a.beta, &a.state, &y};
  for (size_t i = 0; i < AIT_COUNT(parts); ++i) ait_tensor_release(parts[i]);
  return status;
}
