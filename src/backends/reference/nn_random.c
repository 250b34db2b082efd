/* Random numbers. Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). What is promised is shape, dtype
 * and distribution, not PyTorch's own stream. */
#include "backends/reference/nn.h"

static void philox(const uint32_t key_in[2], const uint32_t counter[4], uint32_t out[4]) {
  uint32_t k0 = key_in[0], k1 = key_in[1], c[4];
  memcpy(c, counter, sizeof c);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
    c[1] = (uint32_t)p1;
    c[3] = (uint32_t)p0;
    c[0] = n0;
    c[2] = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  memcpy(out, c, sizeof c);
}

/* The seed is fixed; the stream is chosen by how many draws the session made before, and by the node when no session counts them. */
void ait_nn_random_init(ait_ref_call *call, ait_nn_random *r) {
  memset(r, 0, sizeof *r);
  uint64_t *draws = call->run ? call->run->draws : NULL;
  uint64_t seed = ait_hash(call->node->name, strlen(call->node->name), 0x5eed + (draws ? (*draws)++ : 0));
  r->key[0] = (uint32_t)seed;
  r->key[1] = (uint32_t)(seed >> 32);
  r->used = 4;
}

uint32_t ait_nn_random_u32(ait_nn_random *r) {
  if (r->used == 4) {
    philox(r->key, r->counter, r->block);
    if (++r->counter[0] == 0) ++r->counter[1];
    r->used = 0;
  }
  return r->block[r->used++];
}

double ait_nn_random_uniform(ait_nn_random *r) {
  uint64_t high = ait_nn_random_u32(r), low = ait_nn_random_u32(r);
  return (double)((high << 21) ^ (low >> 11)) * 0x1p-53;
}

/* Box and Muller */
double ait_nn_random_normal(ait_nn_random *r) {
  double u = 1 - ait_nn_random_uniform(r), v = ait_nn_random_uniform(r);
  return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* ---- distributions: one number from parameters a and b
 * -----------------------------------------------------------------------------------*/
typedef double (*distribution)(ait_nn_random *r, double a, double b);

static double draw_uniform(ait_nn_random *r, double a, double b) {
  double v = a + (b - a) * ait_nn_random_uniform(r);
  return v < b ? v : a;
}
static double draw_normal(ait_nn_random *r, double a, double b) { return a + b * ait_nn_random_normal(r); }
static double draw_log_normal(ait_nn_random *r, double a, double b) { return exp(draw_normal(r, a, b)); }
static double draw_exponential(ait_nn_random *r, double a, double b) {
  AIT_UNUSED(b);
  return -log(1 - ait_nn_random_uniform(r)) / a;
}
static double draw_cauchy(ait_nn_random *r, double a, double b) { return a + b * tan(M_PI * (ait_nn_random_uniform(r) - 0.5)); }
static double draw_geometric(ait_nn_random *r, double a, double b) {
  AIT_UNUSED(b);
  double n = ceil(log(1 - ait_nn_random_uniform(r)) / log1p(-a));
  return n < 1 ? 1 : n;
}
static double draw_bernoulli(ait_nn_random *r, double a, double b) {
  AIT_UNUSED(b);
  return ait_nn_random_uniform(r) < a;
}

/* Rounding to a float type may reach the end of [a, b), which must stay outside. */
static void keep_below(const ait_tensor *t, double low, double high) {
  if (t->dtype != AIT_F32 && t->dtype != AIT_F16 && t->dtype != AIT_BF16) return;
  size_t size = ait_dtype_size(t->dtype);
  for (int64_t i = 0; i < ait_tensor_count(t); ++i) {
    char *p = (char *)t->data + i * (int64_t)size;
    if (ait_element_f64(p, t->dtype) >= high) ait_element_set_f64(p, t->dtype, low);
  }
}

static ait_status fill(ait_ref_call *call, int32_t rank, const int64_t *shape, ait_dtype dtype, distribution draw, double a, double b) {
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, 0, dtype, rank, shape, &out));
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  size_t size = ait_dtype_size(dtype);
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i) {
    char *p = (char *)out.data + i * (int64_t)size;
    double v[2] = {draw(&r, a, b), 0};
    if (!ait_dtype_is_complex(dtype)) {
      ait_element_set_f64(p, dtype, v[0]);
      continue;
    }
    v[1] = draw(&r, a, b);
    if (draw == draw_normal) v[0] *= M_SQRT1_2, v[1] *= M_SQRT1_2; /* unit variance of the pair */
    ait_element_set_c128(p, dtype, v);
  }
  if (draw == draw_uniform) keep_below(&out, a, b);
  return AIT_OK;
}

static ait_dtype default_float(const ait_ref_call *call) { return call->fp64 ? AIT_F64 : AIT_F32; }

static ait_status sized(ait_ref_call *call, uint32_t size_arg, ait_dtype otherwise, distribution draw, double a, double b) {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  AIT_TRY(ait_ref_ints(call, size_arg, shape, &rank));
  return fill(call, rank, shape, ait_nn_dtype(call, 0, otherwise), draw, a, b);
}

static ait_status like(ait_ref_call *call, distribution draw, double a, double b) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  return fill(call, t->rank, t->shape, ait_nn_dtype(call, 0, t->dtype), draw, a, b);
}

ait_status ait_ref_rand(ait_ref_call *call) { return sized(call, 0, default_float(call), draw_uniform, 0, 1); }
ait_status ait_ref_randn(ait_ref_call *call) { return sized(call, 0, default_float(call), draw_normal, 0, 1); }
ait_status ait_ref_rand_like(ait_ref_call *call) { return like(call, draw_uniform, 0, 1); }
ait_status ait_ref_randn_like(ait_ref_call *call) { return like(call, draw_normal, 0, 1); }

/* normal.float_float(mean, std, size) */
ait_status ait_ref_normal_sized(ait_ref_call *call) {
  double mean, std;
  AIT_TRY(ait_ref_float(call, 0, &mean));
  AIT_TRY(ait_ref_float(call, 1, &std));
  return sized(call, 2, default_float(call), draw_normal, mean, std);
}

/* self, two floats (one for exponential and geometric): uniform, exponential, log_normal, cauchy, geometric */
ait_status ait_ref_random_from(ait_ref_call *call) {
  static const struct {
    const char *op;
    distribution draw;
    bool two;
  } table[] = {{"aten.uniform", draw_uniform, true},
               {"aten.exponential", draw_exponential, false},
               {"aten.log_normal", draw_log_normal, true},
               {"aten.cauchy", draw_cauchy, true},
               {"aten.geometric", draw_geometric, false}};
  double a, b = 0;
  AIT_TRY(ait_ref_float(call, 1, &a));
  for (size_t i = 0; i < AIT_COUNT(table); ++i) {
    if (!ait_nn_is(call, table[i].op)) continue;
    if (table[i].two) AIT_TRY(ait_ref_float(call, 2, &b));
    return like(call, table[i].draw, a, b);
  }
  return ait_ref_error(call, AIT_CODE_INTERNAL, "no such distribution");
}

static ait_status with_one(ait_ref_call *call, distribution draw) {
  double p;
  AIT_TRY(ait_ref_float(call, 1, &p));
  return like(call, draw, p, 0);
}
/* bernoulli.p: self is only a shape */
ait_status ait_ref_bernoulli_p(ait_ref_call *call) { return with_one(call, draw_bernoulli); }
ait_status ait_ref_normal_like(ait_ref_call *call) {
  double mean, std;
  AIT_TRY(ait_ref_float(call, 1, &mean));
  AIT_TRY(ait_ref_float(call, 2, &std));
  return like(call, draw_normal, mean, std);
}

/* normal_: fills its operand, which is also the result */
ait_status ait_ref_normal_inplace(ait_ref_call *call) {
  const ait_tensor *t;
  double mean, std;
  ait_tensor v;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_float(call, 1, &mean));
  AIT_TRY(ait_ref_float(call, 2, &std));
  AIT_TRY(ait_ref_temp(call, AIT_F64, t->rank, t->shape, &v));
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  for (int64_t i = 0; i < ait_tensor_count(&v); ++i) ait_nn_data_mut(&v)[i] = draw_normal(&r, mean, std);
  ait_status status = ait_tensor_copy(t, &v);
  ait_tensor_release(&v);
  if (!status) ait_ref_set_view(call, 0, t, t);
  return status;
}

/* ---- parameters in tensors
 * ---------------------------------------------------------------------------------------------------------------*/
static ait_status from_tensors(ait_ref_call *call, ait_tensor *a, const ait_tensor *b, double b_all, distribution draw, ait_dtype dtype) {
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  double *v = a->data;
  for (int64_t i = 0; i < ait_tensor_count(a); ++i) v[i] = draw(&r, v[i], b ? ait_nn_data(b)[i] : b_all);
  return ait_nn_result(call, 0, dtype, a);
}

ait_status ait_ref_bernoulli(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor p;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_nn_f64(call, t, &p));
  ait_status status = from_tensors(call, &p, NULL, 0, draw_bernoulli, ait_nn_dtype(call, 0, t->dtype));
  ait_tensor_release(&p);
  return status;
}

/* normal.Tensor_float, normal.Tensor_Tensor */
ait_status ait_ref_normal_tensor(ait_ref_call *call) {
  const ait_tensor *operands[2];
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  bool both = ait_ref_is_tensor(call, 1);
  double std = 1;
  AIT_TRY(ait_ref_tensor(call, 0, &operands[0]));
  if (both) AIT_TRY(ait_ref_tensor(call, 1, &operands[1]));
  else AIT_TRY(ait_ref_float(call, 1, &std));
  AIT_TRY(ait_ref_broadcast(call, operands, both ? 2 : 1, &rank, shape));
  ait_tensor mean = {0}, stds = {0};
  ait_status status;
  AIT_GOTO(ait_nn_arg_expanded(call, 0, rank, shape, &mean));
  if (both) AIT_GOTO(ait_nn_arg_expanded(call, 1, rank, shape, &stds));
  status = from_tensors(call, &mean, both ? &stds : NULL, std, draw_normal, ait_nn_dtype(call, 0, operands[0]->dtype));
cleanup:
  ait_tensor_release(&mean);
  ait_tensor_release(&stds);
  return status;
}

/* bernoulli.Tensor(self, p): the second operand holds the probabilities */
ait_status ait_ref_bernoulli_tensor(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor p;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_nn_arg_expanded(call, 1, t->rank, t->shape, &p));
  ait_status status = from_tensors(call, &p, NULL, 0, draw_bernoulli, ait_nn_dtype(call, 0, t->dtype));
  ait_tensor_release(&p);
  return status;
}

/* normal.float_Tensor(mean, std) */
ait_status ait_ref_normal_float_tensor(ait_ref_call *call) {
  double mean;
  ait_tensor std, out = {0};
  ait_status status;
  AIT_TRY(ait_ref_float(call, 0, &mean));
  AIT_TRY(ait_nn_arg(call, 1, &std));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, std.rank, std.shape, &out));
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i) ait_nn_data_mut(&out)[i] = mean;
  status = from_tensors(call, &out, &std, 0, draw_normal, ait_nn_dtype(call, 0, AIT_F32));
cleanup:
  ait_tensor_release(&std);
  ait_tensor_release(&out);
  return status;
}

/* Knuth's product of uniforms in logarithms, in parts of at most 500 so that it stays exact; large rates take as long as they are. */
static double draw_poisson(ait_nn_random *r, double rate, double unused) {
  AIT_UNUSED(unused);
  double count = 0;
  if (!(rate > 0)) return isnan(rate) ? rate : 0;
  if (rate > 1e6) return fmax(0, nearbyint(rate + sqrt(rate) * ait_nn_random_normal(r))); /* indistinguishable at this size */
  while (rate > 0) {
    double part = rate < 500 ? rate : 500, sum = 0;
    for (;;) {
      sum -= log(1 - ait_nn_random_uniform(r));
      if (sum > part) break;
      ++count;
    }
    rate -= part;
  }
  return count;
}

static double draw_binomial(ait_nn_random *r, double n, double p) {
  double count = 0;
  if (n > 1e6) return fmin(n, fmax(0, nearbyint(n * p + sqrt(n * p * (1 - p)) * ait_nn_random_normal(r))));
  for (double i = 0; i < n; ++i) count += ait_nn_random_uniform(r) < p;
  return count;
}

/* poisson(rates), binomial(counts, probabilities) */
ait_status ait_ref_counts(ait_ref_call *call) {
  bool binomial = ait_nn_is(call, "aten.binomial");
  const ait_tensor *t;
  ait_tensor x = {0}, p = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_GOTO(ait_nn_f64(call, t, &x));
  if (binomial) AIT_GOTO(ait_nn_arg_expanded(call, 1, x.rank, x.shape, &p));
  status = from_tensors(call, &x, binomial ? &p : NULL, 0, binomial ? draw_binomial : draw_poisson, ait_nn_dtype(call, 0, t->dtype));
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&p);
  return status;
}

/* ---- integers
 * ----------------------------------------------------------------------------------------------------------------------------*/
/* randint (high, size), randint.low (low, high, size), randint_like (self, high), randint_like.low_dtype (self, low, high) */
ait_status ait_ref_randint(ait_ref_call *call) {
  bool is_like = strstr(call->node->op, "_like") != NULL, has_low = strstr(call->node->op, ".low") != NULL;
  uint32_t at = is_like ? 1 : 0;
  int64_t low = 0, high, shape[AIT_MAX_RANK];
  int32_t rank;
  if (has_low) AIT_TRY(ait_ref_int(call, at++, &low));
  AIT_TRY(ait_ref_int(call, at++, &high));
  if (high <= low) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "empty range %lld to %lld", (long long)low, (long long)high);
  ait_dtype otherwise = AIT_I64;
  if (is_like) {
    const ait_tensor *t;
    AIT_TRY(ait_ref_tensor(call, 0, &t));
    rank = t->rank;
    memcpy(shape, t->shape, sizeof shape);
    otherwise = t->dtype;
  } else {
    AIT_TRY(ait_ref_ints(call, at, shape, &rank));
  }
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, 0, ait_nn_dtype(call, 0, otherwise), rank, shape, &out));
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  uint64_t span = (uint64_t)high - (uint64_t)low;
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i) {
    uint64_t bits = (uint64_t)ait_nn_random_u32(&r) << 32 | ait_nn_random_u32(&r);
    int64_t v = (int64_t)((uint64_t)low + (uint64_t)(((unsigned __int128)bits * span) >> 64));
    ait_element_set_i64((char *)out.data + i * (int64_t)ait_dtype_size(out.dtype), out.dtype, v);
  }
  return AIT_OK;
}

static int64_t draw_below(ait_nn_random *r, int64_t n) {
  uint64_t bits = (uint64_t)ait_nn_random_u32(r) << 32 | ait_nn_random_u32(r);
  return (int64_t)(((unsigned __int128)bits * (uint64_t)n) >> 64);
}

/* 0 .. n-1 shuffled (Fisher and Yates) */
ait_status ait_ref_randperm(ait_ref_call *call) {
  int64_t n;
  ait_tensor out;
  AIT_TRY(ait_ref_int(call, 0, &n));
  AIT_TRY(ait_ref_new(call, 0, ait_nn_dtype(call, 0, ait_ref_dtype(call, 1, AIT_I64)), 1, &n, &out));
  int64_t size = (int64_t)ait_dtype_size(out.dtype);
  char *p = out.data;
  for (int64_t i = 0; i < n; ++i) ait_element_set_i64(p + i * size, out.dtype, i);
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  for (int64_t i = n - 1; i > 0; --i) {
    int64_t j = draw_below(&r, i + 1), a = ait_element_i64(p + i * size, out.dtype), b = ait_element_i64(p + j * size, out.dtype);
    ait_element_set_i64(p + i * size, out.dtype, b);
    ait_element_set_i64(p + j * size, out.dtype, a);
  }
  return AIT_OK;
}

/* The largest n so that the dtype holds 0 .. n - 1 exactly. */
static int64_t integers_of(ait_dtype d) {
  switch (d) {
    case AIT_F16: return (1 << 11) + 1;
    case AIT_BF16: return (1 << 8) + 1;
    case AIT_F32: return (1 << 24) + 1;
    case AIT_F64: return ((int64_t)1 << 53) + 1;
    case AIT_BOOL: return 2;
    default: {
      int64_t bits = 8 * (int64_t)ait_dtype_size(d) - (ait_dtype_kind_of(d) == AIT_KIND_INT);
      return bits >= 63 ? INT64_MAX : (int64_t)1 << bits;
    }
  }
}

/* random(self), random.to(self, to), random.from(self, from, to): integers in [from, to) in self's dtype */
ait_status ait_ref_random_int(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor out;
  int64_t from = 0, to;
  uint32_t at = 1;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  ait_dtype dtype = ait_nn_dtype(call, 0, t->dtype);
  if (ait_ends_with(call->node->op, ".from")) AIT_TRY(ait_ref_int(call, at++, &from));
  to = integers_of(t->dtype);
  if (strchr(call->node->op + 5, '.')) AIT_TRY(ait_ref_int_or(call, at, to, &to));
  if (to <= from) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "empty range");
  AIT_TRY(ait_ref_new(call, 0, dtype, t->rank, t->shape, &out));
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  int64_t size = (int64_t)ait_dtype_size(dtype), span;
  if (__builtin_sub_overflow(to, from, &span)) span = INT64_MAX;
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i) ait_element_set_i64((char *)out.data + i * size, dtype, from + draw_below(&r, span));
  return AIT_OK;
}

/* Draws n indices by weight; without replacement a drawn weight is struck out. */
static ait_status multinomial_row(const ait_ref_call *call, ait_nn_random *r, double *w, int64_t count, int64_t n, bool replace,
                                  int64_t *out) {
  for (int64_t s = 0; s < n; ++s) {
    double total = 0, sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (!(w[i] >= 0) || isinf(w[i])) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a weight is negative, infinite or NaN");
      total += w[i];
    }
    if (!(total > 0)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "not enough weights that are not zero");
    double at = ait_nn_random_uniform(r) * total;
    int64_t chosen = -1;
    for (int64_t i = 0; i < count; ++i) {
      if (w[i] == 0) continue;
      chosen = i;
      sum += w[i];
      if (at < sum) break;
    }
    out[s] = chosen;
    if (!replace) w[chosen] = 0;
  }
  return AIT_OK;
}

ait_status ait_ref_multinomial(ait_ref_call *call) {
  int64_t n, shape[2];
  bool replace;
  ait_tensor w, out;
  AIT_TRY(ait_ref_int(call, 1, &n));
  AIT_TRY(ait_ref_bool(call, 2, &replace));
  AIT_TRY(ait_nn_arg(call, 0, &w));
  ait_status status;
  if (w.rank < 1 || w.rank > 2) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "weights of rank %d", w.rank));
  shape[0] = w.rank == 2 ? w.shape[0] : n;
  shape[1] = n;
  AIT_GOTO(ait_ref_new(call, 0, AIT_I64, w.rank, shape, &out));
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  int64_t count = w.shape[w.rank - 1], rows = w.rank == 2 ? w.shape[0] : 1;
  for (int64_t i = 0; i < rows && !status; ++i)
    status = multinomial_row(call, &r, ait_nn_data_mut(&w) + i * count, count, n, replace, (int64_t *)out.data + i * n);
cleanup:
  ait_tensor_release(&w);
  return status;
}

/* ---- dropout
 * -----------------------------------------------------------------------------------------------------------------------------*/
/* One mask number per element, or per channel plane (feature dropout). Kept elements get y = x * keep_a + keep_b, dropped ones drop_value.
 */
static ait_status drop(ait_ref_call *call, double p, bool features, bool alpha, bool want_mask) {
  const ait_tensor *t;
  ait_tensor x = {0}, mask = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_GOTO(ait_nn_f64(call, t, &x));
  AIT_GOTO(ait_ref_temp(call, AIT_BOOL, x.rank, x.shape, &mask));
  int64_t plane = features && x.rank > 2 ? ait_nn_span(&x, 2, x.rank) : 1;
  const double saturation = -1.7580993408473766; /* selu's limit at minus infinity */
  double scale = p < 1 ? 1 / (1 - p) : 0, shift = 0, dropped = 0;
  if (alpha && p < 1) {
    scale = 1 / sqrt((1 - p) * (1 + p * saturation * saturation));
    shift = -scale * p * saturation;
    dropped = scale * saturation + shift;
  }
  ait_nn_random r;
  ait_nn_random_init(call, &r);
  bool keep = true;
  for (int64_t i = 0; i < ait_tensor_count(&x); ++i) {
    if (i % plane == 0) keep = ait_nn_random_uniform(&r) >= p;
    double *v = ait_nn_data_mut(&x) + i;
    *v = keep ? *v * scale + shift : dropped;
    ((uint8_t *)mask.data)[i] = keep;
  }
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &x));
  if (want_mask && ait_nn_wants(call, 1)) {
    ait_ref_set(call, 1, mask);
    mask = (ait_tensor){0};
  }
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&mask);
  return status;
}

/* dropout, feature_dropout, alpha_dropout, feature_alpha_dropout: outside training their input itself */
ait_status ait_ref_dropout(ait_ref_call *call) {
  bool train;
  double p;
  AIT_TRY(ait_ref_float(call, 1, &p));
  AIT_TRY(ait_ref_bool(call, 2, &train));
  if (!train || p == 0) return ait_nn_alias(call);
  return drop(call, p, strstr(call->node->op, "feature") != NULL, strstr(call->node->op, "alpha") != NULL, false);
}

/* native_dropout gives the mask, too; all true outside training */
ait_status ait_ref_native_dropout(ait_ref_call *call) {
  bool train;
  double p;
  AIT_TRY(ait_ref_float(call, 1, &p));
  AIT_TRY(ait_ref_bool_or(call, 2, true, &train));
  return drop(call, train ? p : 0, false, false, true);
}

/* grad * mask * scale */
static double masked(double x, double y, const double *scale) { return x * y * *scale; }
ait_status ait_ref_native_dropout_backward(ait_ref_call *call) {
  double scale;
  AIT_TRY(ait_ref_float(call, 2, &scale));
  return ait_nn_map2(call, 0, 1, masked, &scale);
}
