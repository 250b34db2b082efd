/* What the engine tells beside token ids: text up to stop strings that go across tokens, log probabilities, several answers. Each against a
 * plain computation from the tokens and logits of the request run by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "llm/fake_model.h"
#include <math.h>
#include <stdio.h>

enum { LONGEST = 48, TOP = 3 };

/* ---- a tokenizer of 37 tokens
 * ----------------------------------------------------------------------------------------------------------*/
/* \u00c3 and \u00a9 are the bytes of e with an acute accent, in the alphabet of byte-level tokenizers; \u0120 is a space. */
static ait_tokenizer *make_tokenizer(void) {
  static const char *const tokens[VOCAB] = {
      "a",   "b",   "c",       "ab",       "bc",       "ca",       "abc",     "bca",     "aa",
      "bb",  "cc",  "\\u0120", "\\u0120a", "\\u0120b", "\\u0120c", "\\u00c3", "\\u00a9", "\\u00c3\\u00a9",
      "x",   "y",   "z",       "xa",       "ya",       "ac",       "ba",      "cb",      "cab",
      "bac", "acb", "cba",     "aab",      "abb",      "bcc",      "cca",     "axy",     "yx",
      "!"};
  ait_tokenizer *out;
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(&t,
                  "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": null, \"post_processor\": null,"
                  "\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {");
  for (int i = 0; i < VOCAB; ++i) ait_text_printf(&t, "%s\"%s\": %d", i ? ", " : "", tokens[i], i);
  ait_text_printf(&t, "}}}");
  ait_status status = ait_tokenizer_parse(ait_allocator_default(), t.data, t.length, &out);
  if (status) fail_msg("%s", ait_status_message(status));
  ait_text_deinit(&t);
  return out;
}

/* ---- requests
 * ----------------------------------------------------------------------------------------------------------------------------*/
typedef struct heard {
  int32_t tokens[LONGEST], count;
  char text[8 * LONGEST];
  size_t text_size;
  float logprobs[LONGEST];
  ait_token_logprob top[LONGEST][TOP];
  float want_logprobs[LONGEST];
  int32_t want_top[LONGEST][TOP];
  ait_finish finish;
  const ait_engine *alone; /* its logits are those of the token */
} heard;

/* From the logits, without the engine's code. */
static void recompute(heard *h, int32_t token) {
  const float *logits = h->alone->logits;
  double sum = 0;
  bool used[VOCAB] = {false};
  for (int v = 0; v < VOCAB; ++v) sum += exp((double)logits[v]);
  h->want_logprobs[h->count] = (float)((double)logits[token] - log(sum));
  for (int k = 0; k < TOP; ++k) {
    int best = -1;
    for (int v = 0; v < VOCAB; ++v)
      if (!used[v] && (best < 0 || logits[v] > logits[best])) best = v;
    used[best] = true;
    h->want_top[h->count][k] = best;
  }
}

static void hear(void *ctx, const ait_generation *e) {
  heard *h = (heard *)ctx + e->choice;
  assert_int_equal(h->finish, AIT_FINISH_NONE);
  if (e->token >= 0) {
    assert_true(h->count < LONGEST);
    if (h->alone) recompute(h, e->token);
    h->logprobs[h->count] = e->logprob;
    if (e->top_count) memcpy(h->top[h->count], e->top, sizeof h->top[0]);
    h->tokens[h->count++] = e->token;
  }
  assert_true(h->text_size + e->text_size < sizeof h->text);
  memcpy(h->text + h->text_size, e->text, e->text_size);
  h->text_size += e->text_size;
  h->finish = e->finish;
}

static ait_request request_of(heard *h, int32_t index, int32_t prompt[8]) {
  ait_request r;
  ait_request_init(&r);
  for (int i = 0; i < 8; ++i) prompt[i] = (index * 7 + i * (index % 3 + 1)) % VOCAB;
  r.tokens = prompt;
  r.token_count = 8;
  r.max_tokens = 12 + (uint32_t)index % 20;
  r.logprobs = TOP;
  r.ignore_stop_tokens = true;
  r.sampling.temperature = index % 3 ? 0.9f : 0;
  r.sampling.seed = (uint64_t)(100 * index);
  r.on_event = hear;
  r.ctx = h;
  return r;
}

static void run_alone(const ait_tokenizer *tokenizer, ait_request r, heard *h) {
  fake f;
  ait_engine_options o;
  ait_engine_options_init(&o);
  o.max_sequences = 1, o.no_prefix_reuse = true;
  fake_init(&f, HYBRID);
  ait_engine *e = open_engine_with(&f, NULL, &o, tokenizer, 0);
  uint64_t id;
  h->alone = e;
  assert_null(ait_engine_submit(e, &r, &id));
  assert_null(ait_engine_run(e));
  close_engine(e, &f);
  h->alone = NULL;
}

/* The text and tokens that an answer with stop strings must have, given the answer without. */
static void cut(const ait_tokenizer *tokenizer, heard *h, const char *const *stops, size_t stop_count) {
  for (int32_t n = 1; n <= h->count; ++n) {
    char *text;
    size_t size, first = SIZE_MAX, begin = 0;
    assert_null(ait_tokenizer_decode(tokenizer, h->tokens, (size_t)n, AIT_DECODE_SKIP_SPECIAL, ait_allocator_default(), &text, &size));
    for (size_t i = 0; i < stop_count; ++i) {
      const char *at = strstr(text, stops[i]);
      if (!at) continue;
      size_t end = (size_t)(at - text) + strlen(stops[i]);
      if (end < first || (end == first && (size_t)(at - text) < begin)) first = end, begin = (size_t)(at - text);
    }
    if (first != SIZE_MAX) {
      h->count = n;
      h->finish = AIT_FINISH_STOP;
      memcpy(h->text, text, begin);
      h->text_size = begin;
    }
    ait_text_free(ait_allocator_default(), text, size);
    if (first != SIZE_MAX) return;
  }
}

static void same(const heard *got, const heard *want) {
  if (got->finish != want->finish || got->count != want->count || got->text_size != want->text_size)
    fail_msg("%d tokens, '%.*s' (%s); alone %d, '%.*s' (%s)", got->count, (int)got->text_size, got->text, ait_finish_text(got->finish),
             want->count, (int)want->text_size, want->text, ait_finish_text(want->finish));
  assert_int_equal(got->finish, want->finish);
  assert_int_equal(got->count, want->count);
  assert_memory_equal(got->tokens, want->tokens, (size_t)want->count * sizeof(int32_t));
  assert_int_equal(got->text_size, want->text_size);
  assert_memory_equal(got->text, want->text, want->text_size);
  for (int32_t i = 0; i < want->count; ++i) {
    assert_true(fabsf(got->logprobs[i] - want->want_logprobs[i]) < 1e-5f);
    for (int k = 0; k < TOP; ++k) assert_int_equal(got->top[i][k].token, want->want_top[i][k]);
  }
}

static void text_stops_and_log_probabilities(void **state) {
  AIT_UNUSED(state);
  enum { REQUESTS = 40 };
  static heard want[REQUESTS], got[REQUESTS];
  static const char *const stops[] = {"bca",
                                      "\xC3\xA9"
                                      "b",
                                      "cca", "abcab"};
  static const struct {
    int32_t max_tokens, lanes, pages;
    ait_speculation speculation;
  } ways[] = {{512, 16, 0, AIT_SPECULATE_NONE}, {3, 8, 30, AIT_SPECULATE_NONE}, {32, 16, 0, AIT_SPECULATE_NGRAM}};
  ait_tokenizer *tokenizer = make_tokenizer();
  int32_t prompt[8];
  int stopped = 0, whole = 0;
  for (int32_t i = 0; i < REQUESTS; ++i) {
    run_alone(tokenizer, request_of(&want[i], i, prompt), &want[i]);
    if (i % 4) cut(tokenizer, &want[i], stops, AIT_COUNT(stops));
    stopped += want[i].finish == AIT_FINISH_STOP, whole += want[i].finish == AIT_FINISH_LENGTH;
  }
  assert_true(stopped > 5 && whole > 5);
  for (size_t w = 0; w < AIT_COUNT(ways); ++w) {
    fake f;
    ait_engine_options o;
    ait_engine_options_init(&o);
    o.max_tokens = ways[w].max_tokens, o.max_sequences = ways[w].lanes, o.speculation = ways[w].speculation;
    memset(got, 0, sizeof got);
    fake_init(&f, HYBRID);
    ait_engine *e = open_engine_with(&f, NULL, &o, tokenizer, ways[w].pages);
    for (int32_t i = 0; i < REQUESTS; ++i) {
      uint64_t id;
      ait_request r = request_of(&got[i], i, prompt);
      if (i % 4) r.stops = stops, r.stop_count = AIT_COUNT(stops);
      assert_null(ait_engine_submit(e, &r, &id));
    }
    assert_null(ait_engine_run(e));
    close_engine(e, &f);
    for (int32_t i = 0; i < REQUESTS; ++i) same(&got[i], &want[i]);
  }
  ait_tokenizer_destroy(tokenizer);
}

/* Answer i of n is the answer of a request with seed + i, with stop strings of its own. */
static void several_answers(void **state) {
  AIT_UNUSED(state);
  enum { N = 6 };
  static heard want[N], got[N];
  static const char *const stops[] = {"ab", "c"};
  ait_tokenizer *tokenizer = make_tokenizer();
  int32_t prompt[8];
  fake f;
  ait_engine_options o;
  ait_engine_options_init(&o);
  o.max_sequences = 4; /* fewer than answers */
  for (int i = 0; i < N; ++i) {
    ait_request r = request_of(&want[i], 7, prompt);
    r.sampling.seed += (uint64_t)i;
    run_alone(tokenizer, r, &want[i]);
    cut(tokenizer, &want[i], stops, AIT_COUNT(stops));
  }
  fake_init(&f, HYBRID);
  ait_engine *e = open_engine_with(&f, NULL, &o, tokenizer, 0);
  uint64_t id;
  ait_request r = request_of(got, 7, prompt);
  r.n = N;
  r.stops = stops, r.stop_count = AIT_COUNT(stops);
  assert_null(ait_engine_submit(e, &r, &id));
  assert_null(ait_engine_run(e));
  close_engine(e, &f);
  for (int i = 0; i < N; ++i) same(&got[i], &want[i]);
  assert_true(got[0].count != got[1].count || memcmp(got[0].tokens, got[1].tokens, sizeof got[0].tokens));
  ait_tokenizer_destroy(tokenizer);
}

/* Requests come, and are cancelled, from another thread while steps run. */
typedef struct sender {
  ait_engine *engine;
  heard *heard;
  int32_t count;
} sender;

static void *send_all(void *ctx) {
  sender *s = ctx;
  int32_t prompt[8];
  for (int32_t i = 0; i < s->count; ++i) {
    uint64_t id;
    ait_request r = request_of(&s->heard[i], i, prompt);
    assert_null(ait_engine_submit(s->engine, &r, &id));
    if (i % 5 == 0) ait_engine_cancel(s->engine, id - (uint64_t)(i % 10 == 0 && i > 0));
  }
  return NULL;
}

static void submit_and_cancel_from_another_thread(void **state) {
  AIT_UNUSED(state);
  enum { REQUESTS = 60 };
  static heard want[REQUESTS], got[REQUESTS];
  ait_tokenizer *tokenizer = make_tokenizer();
  int32_t prompt[8];
  fake f;
  pthread_t thread;
  ait_engine_options o;
  ait_engine_options_init(&o);
  for (int32_t i = 0; i < REQUESTS; ++i) run_alone(tokenizer, request_of(&want[i], i, prompt), &want[i]);
  fake_init(&f, HYBRID);
  ait_engine *e = open_engine_with(&f, NULL, &o, tokenizer, 0);
  sender s = {e, got, REQUESTS};
  assert_int_equal(pthread_create(&thread, NULL, send_all, &s), 0);
  for (int i = 0; i < 200; ++i) {
    bool busy;
    assert_null(ait_engine_step(e, &busy));
  }
  pthread_join(thread, NULL);
  assert_null(ait_engine_run(e));
  close_engine(e, &f);
  for (int32_t i = 0; i < REQUESTS; ++i) {
    if (got[i].finish == AIT_FINISH_CANCELLED) assert_memory_equal(got[i].tokens, want[i].tokens, (size_t)got[i].count * sizeof(int32_t));
    else same(&got[i], &want[i]);
  }
  ait_tokenizer_destroy(tokenizer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_stops_and_log_probabilities),
      cmocka_unit_test(several_answers),
      cmocka_unit_test(submit_and_cancel_from_another_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
