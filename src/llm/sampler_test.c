/* The sampler: what each value does to hand-made logits, ties, draws in proportion, log probabilities; stop strings in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "llm/sampler.h"
#include "llm/stops.h"
#include <math.h>
#include <stdlib.h>

enum { V = 6 };

static void probabilities(const ait_sampling *p, const float *logits, const int32_t *tokens, int32_t prompt, int32_t count, float *out) {
  lm_sampler s;
  assert_null(lm_sampler_create(ait_allocator_default(), V, &s));
  assert_true(lm_sampler_prepare(&s, p, logits, tokens, prompt, count));
  lm_sampler_dense(&s, out);
  lm_sampler_destroy(&s);
}

static void softmax(const double *logits, double *out) { /* -inf: out */
  double sum = 0;
  for (int i = 0; i < V; ++i) sum += out[i] = exp(logits[i]);
  for (int i = 0; i < V; ++i) out[i] /= sum;
}

static void near(const float *got, const double *want) {
  for (int i = 0; i < V; ++i) assert_true(fabs((double)got[i] - want[i]) < 1e-6);
}

static void each_value_does_what_it_says(void **state) {
  AIT_UNUSED(state);
  const float logits[V] = {1, 3, 3, -2, 0.5f, 2};
  float got[V];
  double want[V];
  ait_sampling p;
  ait_sampling_init(&p);
  p.temperature = 2;
  probabilities(&p, logits, NULL, 0, 0, got);
  softmax((const double[]){0.5, 1.5, 1.5, -1, 0.25, 1}, want);
  near(got, want);
  p.temperature = 1;
  p.top_k = 1; /* ties with the last stay */
  probabilities(&p, logits, NULL, 0, 0, got);
  near(got, (const double[]){0, 0.5, 0.5, 0, 0, 0});
  p.top_k = 3;
  probabilities(&p, logits, NULL, 0, 0, got);
  softmax((const double[]){-INFINITY, 3, 3, -INFINITY, -INFINITY, 2}, want);
  near(got, want);
  p.top_k = 0;
  p.top_p = 0.5f; /* 0.374 + 0.374 */
  probabilities(&p, logits, NULL, 0, 0, got);
  near(got, (const double[]){0, 0.5, 0.5, 0, 0, 0});
  p.top_p = 1e-6f; /* one stays always */
  probabilities(&p, logits, NULL, 0, 0, got);
  near(got, (const double[]){0, 1, 0, 0, 0, 0});
  p.top_p = 1;
  p.min_p = 0.3f; /* e^-1 = 0.37 of the largest stays, e^-2 not */
  probabilities(&p, logits, NULL, 0, 0, got);
  softmax((const double[]){-INFINITY, 3, 3, -INFINITY, -INFINITY, 2}, want);
  near(got, want);
}

static void penalties_and_bias(void **state) {
  AIT_UNUSED(state);
  const float logits[V] = {1, 3, 3, -2, 0.5f, 2};
  const int32_t tokens[] = {1, 3, 1, 5, 5}; /* two of prompt */
  float got[V];
  double want[V];
  ait_sampling p;
  ait_sampling_init(&p);
  p.temperature = 1;
  p.repetition_penalty = 2;
  probabilities(&p, logits, tokens, 2, 5, got);
  softmax((const double[]){1, 1.5, 3, -4, 0.5, 1}, want);
  near(got, want);
  p.repetition_penalty = 1;
  p.presence_penalty = 0.5f;
  p.frequency_penalty = 0.25f;
  probabilities(&p, logits, tokens, 2, 5, got);
  softmax((const double[]){1, 3 - 0.75, 3, -2, 0.5, 2 - 1}, want);
  near(got, want);
  ait_sampling_init(&p);
  p.temperature = 1;
  p.bias_tokens = (const int32_t[]){1, 2};
  p.bias = (const float[]){-INFINITY, 1};
  p.bias_count = 2;
  probabilities(&p, logits, tokens, 2, 5, got);
  softmax((const double[]){1, -INFINITY, 4, -2, 0.5, 2}, want);
  near(got, want);
}

static void greedy_takes_the_first_of_equals(void **state) {
  AIT_UNUSED(state);
  const float logits[V] = {1, 3, 3, NAN, 0.5f, 2}, nothing[V] = {NAN, NAN, NAN, NAN, NAN, -INFINITY};
  lm_sampler s;
  ait_sampling p;
  ait_sampling_init(&p);
  assert_null(lm_sampler_create(ait_allocator_default(), V, &s));
  assert_int_equal(lm_sampler_best(&s, &p, logits, NULL, 0, 0), 1);
  assert_int_equal(lm_sampler_best(&s, &p, nothing, NULL, 0, 0), -1);
  p.temperature = 1;
  assert_false(lm_sampler_prepare(&s, &p, nothing, NULL, 0, 0));
  lm_sampler_destroy(&s);
}

static void draws_follow_the_probabilities(void **state) {
  AIT_UNUSED(state);
  enum { DRAWS = 20000 };
  const float logits[V] = {1, 3, 3, -2, 0.5f, 2};
  int counts[V] = {0};
  lm_sampler s;
  ait_sampling p;
  ait_sampling_init(&p);
  p.temperature = 1.5f;
  assert_null(lm_sampler_create(ait_allocator_default(), V, &s));
  assert_true(lm_sampler_prepare(&s, &p, logits, NULL, 0, 0));
  for (uint64_t i = 0; i < DRAWS; ++i) counts[lm_sampler_draw(&s, lm_uniform(7, i, 0))]++;
  double chi = 0;
  for (int i = 0; i < V; ++i) {
    double want = DRAWS * (double)lm_sampler_probability(&s, i);
    chi += (counts[i] - want) * (counts[i] - want) / want;
  }
  assert_true(chi < 20.5); /* 5 degrees of freedom: probability 0.001 */
  assert_true(lm_uniform(7, 3, 0) == lm_uniform(7, 3, 0));
  assert_true(lm_uniform(7, 3, 0) != lm_uniform(7, 3, 1) && lm_uniform(7, 3, 0) != lm_uniform(8, 3, 0));
  lm_sampler_destroy(&s);
}

/* Many tokens: the way that does not sort them all finds what sorting finds. */
static void top_p_of_a_large_vocabulary(void **state) {
  AIT_UNUSED(state);
  enum { N = 5000 };
  static float logits[N];
  double sum = 0, seen = 0;
  for (int i = 0; i < N; ++i) logits[i] = (float)(lm_uniform(1, (uint64_t)i, 0) * 6), sum += exp((double)logits[i]);
  lm_sampler s;
  ait_sampling p;
  ait_sampling_init(&p);
  p.temperature = 1;
  p.top_p = 0.9f;
  assert_null(lm_sampler_create(ait_allocator_default(), N, &s));
  assert_true(lm_sampler_prepare(&s, &p, logits, NULL, 0, 0));
  float least = INFINITY;
  for (int64_t i = 0; i < s.count; ++i) {
    float l = logits[s.candidates[i].token];
    seen += exp((double)l) / sum;
    least = fminf(least, l);
  }
  assert_true(seen >= 0.9 && seen - exp((double)least) / sum < 0.9);
  for (int i = 0; i < N; ++i)
    if (logits[i] > least) assert_true(lm_sampler_probability(&s, i) > 0);
  lm_sampler_destroy(&s);
}

static void log_probabilities(void **state) {
  AIT_UNUSED(state);
  const float logits[V] = {1, 3, 3, -2, 0.5f, 2};
  ait_token_logprob top[3];
  double sum = 0;
  for (int i = 0; i < V; ++i) sum += exp((double)logits[i]);
  assert_true(fabs((double)lm_logprobs(logits, V, 5, top, 3) - (2 - log(sum))) < 1e-6);
  assert_int_equal(top[0].token, 1);
  assert_int_equal(top[1].token, 2);
  assert_int_equal(top[2].token, 5);
  assert_true(fabs((double)top[0].logprob - (3 - log(sum))) < 1e-6);
}

/* However the text is cut, what comes out is the text before the stop string that is complete first. */
static void stops_in_any_pieces(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *text, *stops[3], *want;
    bool hit;
  } cases[] = {
      {"one two three", {"two"}, "one ", true},
      {"one two three", {"four"}, "one two three", false},
      {"aaab", {"aab"}, "a", true},
      {"abcX", {"abcX", "bc"}, "a", true},
      {"abcabd", {"abd"}, "abc", true},
      {"xyENDz", {"END", "NDz"}, "xy", true},
      {"almost EN", {"END"}, "almost EN", false},
      {"", {"a"}, "", false},
  };
  for (size_t c = 0; c < AIT_COUNT(cases); ++c)
    for (size_t piece = 1; piece < 6; ++piece) {
      size_t count = 0, size, length = strlen(cases[c].text);
      while (count < 3 && cases[c].stops[count]) ++count;
      char got[64] = "";
      const char *out;
      bool hit = false;
      lm_stops *s;
      assert_null(lm_stops_create(ait_allocator_default(), cases[c].stops, count, &s));
      for (size_t at = 0; at < length && !hit; at += piece) {
        assert_null(lm_stops_push(s, cases[c].text + at, length - at < piece ? length - at : piece, &out, &size, &hit));
        strncat(got, out, size);
      }
      if (!hit) {
        lm_stops_finish(s, &out, &size);
        strncat(got, out, size);
      }
      assert_string_equal(got, cases[c].want);
      assert_int_equal(hit, cases[c].hit);
      lm_stops_destroy(s);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_value_does_what_it_says),
      cmocka_unit_test(penalties_and_bias),
      cmocka_unit_test(greedy_takes_the_first_of_equals),
      cmocka_unit_test(draws_follow_the_probabilities),
      cmocka_unit_test(top_p_of_a_large_vocabulary),
      cmocka_unit_test(log_probabilities),
      cmocka_unit_test(stops_in_any_pieces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
