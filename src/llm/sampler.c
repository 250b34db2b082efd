#include "llm/sampler.h"
#include <math.h>

ait_status lm_sampler_create(ait_allocator a, int64_t vocab, lm_sampler *out) {
  size_t n = (size_t)vocab;
  *out = (lm_sampler){.allocator = a, .vocab = vocab};
  out->logits = ait_alloc(a, n * sizeof *out->logits, 64);
  out->marks = ait_alloc_zero(a, n * sizeof *out->marks, 64);
  out->candidates = ait_alloc(a, n * sizeof *out->candidates, 64);
  if (out->logits && out->marks && out->candidates) return AIT_OK;
  lm_sampler_destroy(out);
  return AIT_OOM();
}

void lm_sampler_destroy(lm_sampler *s) {
  size_t n = (size_t)s->vocab;
  ait_free(s->allocator, s->logits, n * sizeof *s->logits);
  ait_free(s->allocator, s->marks, n * sizeof *s->marks);
  ait_free(s->allocator, s->candidates, n * sizeof *s->candidates);
  *s = (lm_sampler){0};
}

void ait_sampling_init(ait_sampling *s) { *s = (ait_sampling){.repetition_penalty = 1, .top_p = 1}; }

ait_status lm_sampling_check(const ait_sampling *s, int64_t vocab) {
  const struct {
    const char *name;
    double value, low, high; /* low < value or low <= value, see `open` */
    bool open;
  } ranges[] = {
      {"temperature", (double)s->temperature, 0, 1e6, false},
      {"top_p", (double)s->top_p, 0, 1, true},
      {"min_p", (double)s->min_p, 0, 1, false},
      {"top_k", (double)s->top_k, 0, 2147483647.0, false},
      {"repetition_penalty", (double)s->repetition_penalty, 0, 1e6, true},
      {"presence_penalty", (double)s->presence_penalty, -1e6, 1e6, false},
      {"frequency_penalty", (double)s->frequency_penalty, -1e6, 1e6, false},
  };
  for (size_t i = 0; i < AIT_COUNT(ranges); ++i)
    if (!(ranges[i].open ? ranges[i].value > ranges[i].low : ranges[i].value >= ranges[i].low) || !(ranges[i].value <= ranges[i].high))
      return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "%s is %g", ranges[i].name, ranges[i].value), "%s from %g to %g",
                            ranges[i].open ? "above and not" : "it goes", ranges[i].low, ranges[i].high);
  for (size_t i = 0; i < s->bias_count; ++i)
    if (s->bias_tokens[i] < 0 || s->bias_tokens[i] >= vocab || isnan(s->bias[i]))
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "bias %g of token %d, which is not among %lld", (double)s->bias[i], s->bias_tokens[i],
                       (long long)vocab);
  return AIT_OK;
}

/* ---- logits ------------------------------------------------------------------------------------------------------------------------*/
static void penalise(lm_sampler *s, const ait_sampling *p, const int32_t *tokens, int32_t prompt, int32_t count) {
  bool counts = p->presence_penalty != 0 || p->frequency_penalty != 0;
  if (p->repetition_penalty != 1) {
    for (int32_t i = 0; i < count; ++i) {
      float *l = &s->logits[tokens[i]];
      if (s->marks[tokens[i]]++ == 0) *l = *l > 0 ? *l / p->repetition_penalty : *l * p->repetition_penalty;
    }
    for (int32_t i = 0; i < count; ++i) s->marks[tokens[i]] = 0;
  }
  if (!counts) return;
  for (int32_t i = prompt; i < count; ++i) {
    if (s->marks[tokens[i]]++ == 0) s->logits[tokens[i]] -= p->presence_penalty;
    s->logits[tokens[i]] -= p->frequency_penalty;
  }
  for (int32_t i = prompt; i < count; ++i) s->marks[tokens[i]] = 0;
}

static bool changes_logits(const ait_sampling *p) {
  return p->repetition_penalty != 1 || p->presence_penalty != 0 || p->frequency_penalty != 0 || p->bias_count > 0;
}

/* The processed logits: the given ones where nothing changes them. */
static const float *processed(lm_sampler *s, const ait_sampling *p, const float *logits, const int32_t *tokens, int32_t prompt,
                              int32_t count) {
  if (!changes_logits(p)) return logits;
  memcpy(s->logits, logits, (size_t)s->vocab * sizeof *logits);
  for (size_t i = 0; i < p->bias_count; ++i) s->logits[p->bias_tokens[i]] += p->bias[i];
  penalise(s, p, tokens, prompt, count);
  return s->logits;
}

int32_t lm_sampler_best(lm_sampler *s, const ait_sampling *p, const float *logits, const int32_t *tokens, int32_t prompt, int32_t count) {
  const float *l = processed(s, p, logits, tokens, prompt, count);
  float best = -INFINITY;
  int32_t at = -1;
  for (int64_t i = 0; i < s->vocab; ++i)
    if (l[i] > best) best = l[i], at = (int32_t)i;
  return at;
}

/* ---- candidates --------------------------------------------------------------------------------------------------------------------*/
static bool before(const lm_candidate *a, const lm_candidate *b) {
  return a->weight != b->weight ? a->weight > b->weight : a->token < b->token;
}

static void swap(lm_candidate *a, lm_candidate *b) {
  lm_candidate t = *a;
  *a = *b;
  *b = t;
}

static void sift(lm_candidate *heap, int64_t count, int64_t i) { /* the last in order at the top */
  for (;;) {
    int64_t child = 2 * i + 1;
    if (child >= count) return;
    if (child + 1 < count && before(&heap[child], &heap[child + 1])) ++child;
    if (!before(&heap[i], &heap[child])) return;
    swap(&heap[i], &heap[child]);
    i = child;
  }
}

/* The first k in order, sorted. O(n log k): k is small where it matters. */
static int64_t keep_first(lm_candidate *c, int64_t n, int64_t k) {
  if (k > n) k = n;
  for (int64_t i = k / 2; i-- > 0;) sift(c, k, i);
  for (int64_t i = k; i < n; ++i)
    if (before(&c[i], &c[0])) swap(&c[i], &c[0]), sift(c, k, 0);
  for (int64_t end = k - 1; end > 0; --end) {
    swap(&c[0], &c[end]);
    sift(c, end, 0);
  }
  return k;
}

static void normalise(lm_candidate *c, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (double)c[i].weight;
  for (int64_t i = 0; i < n; ++i) c[i].weight = (float)((double)c[i].weight / sum);
}

/* Logits to probabilities; c[0] is the largest. */
static void softmax(lm_candidate *c, int64_t n) {
  float most = c[0].weight;
  for (int64_t i = 0; i < n; ++i) c[i].weight = expf(c[i].weight - most);
  normalise(c, n);
}

/* How many of the sorted are needed: sorting all of a large vocabulary is what would take the time. Without top-k the tail matters only
 * where top-p asks for it, so ever more are sorted until the answer is among them. */
static int64_t top_p_count(lm_candidate *c, int64_t n, float top_p, double *sum) {
  double total = 0, most = -INFINITY;
  for (int64_t i = 0; i < n; ++i) most = fmax(most, (double)c[i].weight);
  for (int64_t i = 0; i < n; ++i) total += exp((double)c[i].weight - most);
  for (int64_t sorted = 64;; sorted *= 8) {
    int64_t k = keep_first(c, n, sorted);
    double seen = 0;
    for (int64_t i = 0; i < k; ++i) {
      seen += exp((double)c[i].weight - most) / total;
      if (seen >= (double)top_p) return *sum = seen, i + 1;
    }
    if (k == n) return *sum = seen, n;
  }
}

bool lm_sampler_prepare(lm_sampler *s, const ait_sampling *p, const float *logits, const int32_t *tokens, int32_t prompt, int32_t count) {
  const float *l = processed(s, p, logits, tokens, prompt, count);
  lm_candidate *c = s->candidates;
  int64_t n = 0, largest = 0;
  float divisor = p->temperature > 0 ? p->temperature : 1;
  for (int64_t i = 0; i < s->vocab; ++i) {
    float w = l[i] / divisor;
    if (!(w > -INFINITY && w < INFINITY)) continue;
    c[n] = (lm_candidate){(int32_t)i, w};
    if (before(&c[n], &c[largest])) largest = n;
    ++n;
  }
  s->count = n;
  if (n == 0) return false;
  if (p->top_k > 0 && p->top_k < n) { /* ties with the last stay, as in transformers */
    int64_t k = keep_first(c, n, p->top_k), kept = k;
    float last = c[k - 1].weight;
    for (int64_t i = k; i < n; ++i)
      if (c[i].weight == last) c[kept++] = c[i];
    n = kept;
    largest = 0;
  }
  if (p->top_p < 1) {
    double sum;
    n = top_p_count(c, n, p->top_p, &sum);
    largest = 0;
  }
  lm_candidate first = c[largest];
  c[largest] = c[0];
  c[0] = first;
  if (p->min_p > 0) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i)
      if (exp((double)c[i].weight - (double)first.weight) >= (double)p->min_p) c[kept++] = c[i];
    n = kept;
  }
  softmax(c, n);
  s->count = n;
  return true;
}

int32_t lm_sampler_draw(const lm_sampler *s, double uniform) {
  double sum = 0;
  for (int64_t i = 0; i < s->count; ++i) {
    sum += (double)s->candidates[i].weight;
    if (uniform < sum) return s->candidates[i].token;
  }
  return s->candidates[s->count - 1].token;
}

float lm_sampler_probability(const lm_sampler *s, int32_t token) {
  for (int64_t i = 0; i < s->count; ++i)
    if (s->candidates[i].token == token) return s->candidates[i].weight;
  return 0;
}

void lm_sampler_dense(const lm_sampler *s, float *out) {
  memset(out, 0, (size_t)s->vocab * sizeof *out);
  for (int64_t i = 0; i < s->count; ++i) out[s->candidates[i].token] = s->candidates[i].weight;
}

/* ---- random numbers ----------------------------------------------------------------------------------------------------------------*/
/* Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). */
double lm_uniform(uint64_t seed, uint64_t position, uint32_t stream) {
  uint32_t c[4] = {(uint32_t)position, (uint32_t)(position >> 32), stream, 0}, k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a};
    memcpy(c, next, sizeof c);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return (double)(((uint64_t)c[0] << 21) ^ (c[1] >> 11)) * 0x1p-53;
}

/* ---- log probabilities -------------------------------------------------------------------------------------------------------------*/
float lm_logprobs(const float *logits, int64_t vocab, int32_t token, ait_token_logprob *top, uint32_t count) {
  double most = -INFINITY, sum = 0;
  uint32_t kept = 0;
  for (int64_t i = 0; i < vocab; ++i) most = fmax(most, (double)logits[i]);
  for (int64_t i = 0; i < vocab; ++i) sum += exp((double)logits[i] - most);
  double base = most + log(sum);
  for (int64_t i = 0; i < vocab && count > 0; ++i) {
    if (kept == count && !(logits[i] > top[kept - 1].logprob)) continue;
    uint32_t at = kept < count ? kept++ : kept - 1;
    for (; at > 0 && logits[i] > top[at - 1].logprob; --at) top[at] = top[at - 1];
    top[at] = (ait_token_logprob){(int32_t)i, logits[i]};
  }
  for (uint32_t i = 0; i < kept; ++i) top[i].logprob = (float)((double)top[i].logprob - base);
  for (uint32_t i = kept; i < count; ++i) top[i] = (ait_token_logprob){-1, -INFINITY};
  return token >= 0 ? (float)((double)logits[token] - base) : NAN;
}
