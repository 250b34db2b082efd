/* The engine on a made-up model. Traces of requests, with all that makes schedules differ, must give each request the tokens that it gets
 * alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "llm/fake_model.h"
#include <math.h>
#include <stdio.h>

/* ---- requests ------------------------------------------------------------------------------------------------------------------------*/
enum { REQUESTS = 60, LONGEST = MAX_SEQ };
typedef struct asked {
  int32_t prompt[LONGEST], prompt_count, max_tokens;
  float temperature;
  int32_t got[LONGEST], count;
  ait_finish finish;
  uint64_t id;
  bool cancel;
} asked;

static uint64_t seed = 1;
static uint32_t below(uint32_t n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 33) % n;
}

/* Prompts that share beginnings, so that prefixes are found. */
static void make_requests(asked *a, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    a[i] = (asked){.prompt_count = 1 + (int32_t)below(LONGEST - 40),
                   .max_tokens = 1 + (int32_t)below(30),
                   .cancel = below(8) == 0,
                   .temperature = below(3) == 0 ? 0.9f : 0};
    int32_t shared = below(2) && i > 0 ? (int32_t)below(20) : 0;
    for (int32_t t = 0; t < a[i].prompt_count; ++t)
      a[i].prompt[t] = shared > t ? a[(int32_t)below(2) * (i - 1)].prompt[t] : (int32_t)below(3) ? (int32_t)below(5) : (int32_t)below(36);
  }
}

static void hear(void *ctx, const ait_generation *event) {
  asked *a = ctx;
  assert_int_equal(a->finish, AIT_FINISH_NONE); /* nothing after the end */
  if (event->token >= 0) a->got[a->count++] = event->token;
  a->finish = event->finish;
}

static ait_request request_of(asked *a, int32_t index) {
  ait_request r;
  ait_request_init(&r);
  r.tokens = a->prompt;
  r.token_count = (size_t)a->prompt_count;
  r.max_tokens = (uint32_t)a->max_tokens;
  r.sampling.temperature = a->temperature;
  r.sampling.seed = (uint64_t)index * 1000;
  r.sampling.top_k = index % 5 == 0 ? 7 : 0;
  r.sampling.top_p = index % 4 == 0 ? 0.8f : 1;
  r.sampling.min_p = index % 7 == 0 ? 0.1f : 0;
  r.sampling.repetition_penalty = index % 3 == 0 ? 1.2f : 1;
  r.sampling.presence_penalty = index % 6 == 0 ? 0.3f : 0;
  r.sampling.frequency_penalty = index % 8 == 0 ? 0.2f : 0;
  r.on_event = hear;
  r.ctx = a;
  return r;
}

/* Each request by itself, one token of prompt at a time, nothing kept. */
static void run_alone(kind k, asked *a, int32_t count) {
  fake f;
  ait_engine_options o;
  ait_engine_options_init(&o);
  o.max_tokens = 1, o.max_sequences = 1, o.no_prefix_reuse = true;
  fake_init(&f, k);
  ait_engine *e = open_engine(&f, &o, 0);
  for (int32_t i = 0; i < count; ++i) {
    ait_request r = request_of(&a[i], i);
    assert_null(ait_engine_submit(e, &r, &a[i].id));
    assert_null(ait_engine_run(e));
    assert_true(a[i].finish == AIT_FINISH_STOP || a[i].finish == AIT_FINISH_LENGTH);
  }
  close_engine(e, &f);
}

static ait_engine_stats run_trace(kind k, const ait_engine_options *o, int32_t pages, asked *a, const asked *want, int32_t count) {
  fake f, draft;
  fake_init(&f, k);
  fake_init(&draft, FULL);
  draft.twist = k == SLOTS ? 9 : 0; /* FULL: proposals that are right, else mostly wrong */
  ait_engine *e = open_engine_with(&f, o->speculation == AIT_SPECULATE_DRAFT ? &draft : NULL, o, NULL, pages);
  int32_t next = 0;
  for (bool busy = true; busy || next < count;) {
    while (next < count && below(3)) {
      ait_request r = request_of(&a[next], next);
      assert_null(ait_engine_submit(e, &r, &a[next].id));
      ++next;
    }
    if (next > 0 && below(6) == 0) {
      asked *victim = &a[below((uint32_t)next)];
      if (victim->cancel) ait_engine_cancel(e, victim->id);
    }
    assert_null(ait_engine_step(e, &busy));
  }
  ait_engine_stats stats = ait_engine_statistics(e);
  close_engine(e, &f);
  for (int32_t i = 0; i < count; ++i) {
    bool sampled_otherwise = o->speculation == AIT_SPECULATE_DRAFT && a[i].temperature > 0;
    if (a[i].finish == AIT_FINISH_CANCELLED) assert_true(a[i].cancel && a[i].count <= want[i].count);
    else if (!sampled_otherwise) assert_int_equal(a[i].finish, want[i].finish);
    if (sampled_otherwise) continue;
    if (a[i].finish != AIT_FINISH_CANCELLED) assert_int_equal(a[i].count, want[i].count);
    assert_memory_equal(a[i].got, want[i].got, (size_t)a[i].count * sizeof(int32_t));
  }
  return stats;
}

static void any_schedule_gives_the_same_tokens(void **state) {
  AIT_UNUSED(state);
  static asked want[REQUESTS], got[REQUESTS];
  static const struct {
    int32_t max_tokens, max_sequences, pages;
    bool no_reuse, no_overlap;
    ait_speculation speculation;
  } ways[] = {
      {64, 4, 0, false, true, AIT_SPECULATE_NONE},    {7, 8, 0, false, false, AIT_SPECULATE_NONE},
      {16, 8, 40, false, false, AIT_SPECULATE_NONE},  {5, 3, 27, true, true, AIT_SPECULATE_NONE},
      {32, 16, 30, false, false, AIT_SPECULATE_NONE}, {32, 6, 0, false, true, AIT_SPECULATE_NGRAM},
      {9, 12, 32, false, false, AIT_SPECULATE_NGRAM}, {1, 1, 0, false, true, AIT_SPECULATE_NGRAM},
      {32, 6, 0, false, true, AIT_SPECULATE_DRAFT},   {11, 12, 31, false, false, AIT_SPECULATE_DRAFT},
  };
  uint64_t reused = 0, preempted = 0, accepted = 0;
  for (int k = 0; k < KINDS; ++k) {
    make_requests(want, REQUESTS);
    memcpy(got, want, sizeof got);
    run_alone((kind)k, want, REQUESTS);
    static asked fresh[REQUESTS];
    memcpy(fresh, got, sizeof fresh);
    for (size_t w = 0; w < AIT_COUNT(ways); ++w) {
      ait_engine_options o;
      ait_engine_options_init(&o);
      o.max_tokens = ways[w].max_tokens, o.max_sequences = ways[w].max_sequences;
      o.no_prefix_reuse = ways[w].no_reuse, o.no_overlap = ways[w].no_overlap, o.speculation = ways[w].speculation;
      memcpy(got, fresh, sizeof got);
      ait_engine_stats s = run_trace((kind)k, &o, ways[w].pages, got, want, REQUESTS);
      if (ways[w].no_reuse) assert_int_equal(s.reused_tokens, 0);
      reused += s.reused_tokens, preempted += s.preemptions, accepted += s.accepted;
    }
  }
  assert_true(reused > 100 && preempted > 10 && accepted > 10);
}

/* ---- other things --------------------------------------------------------------------------------------------------------------------*/
static void answers_of_one_request_differ_by_seed_and_share_the_prompt(void **state) {
  AIT_UNUSED(state);
  fake f;
  asked a = {.prompt_count = 20, .max_tokens = 8};
  ait_engine_options o;
  ait_engine_options_init(&o);
  fake_init(&f, FULL);
  ait_engine *e = open_engine(&f, &o, 0);
  for (int i = 0; i < 20; ++i) a.prompt[i] = i;
  ait_request r = request_of(&a, 0);
  r.n = 3;
  r.on_event = NULL;
  assert_null(ait_engine_submit(e, &r, &a.id));
  assert_null(ait_engine_run(e));
  assert_int_equal(ait_engine_statistics(e).reused_tokens, 2 * 16); /* whole pages before the last token */
  close_engine(e, &f);
}

static void bad_requests_are_refused(void **state) {
  AIT_UNUSED(state);
  fake f;
  uint64_t id;
  int32_t tokens[MAX_SEQ + 4] = {0};
  ait_engine_options o;
  ait_engine_options_init(&o);
  fake_init(&f, FULL);
  ait_engine *e = open_engine(&f, &o, 0);
  ait_request good;
  ait_request_init(&good);
  good.tokens = tokens;
  good.token_count = 3;
  ait_request bad[8];
  for (size_t i = 0; i < AIT_COUNT(bad); ++i) bad[i] = good;
  int32_t outside[1] = {VOCAB};
  const char *stop = "x";
  bad[0].token_count = 0;
  bad[1].token_count = MAX_SEQ;
  bad[2].tokens = outside, bad[2].token_count = 1;
  bad[3].sampling.top_p = 0;
  bad[4].sampling.temperature = NAN;
  bad[5].logprobs = 21;
  bad[6].stops = &stop, bad[6].stop_count = 1; /* no tokenizer */
  bad[7].sampling.top_k = -1;
  for (size_t i = 0; i < AIT_COUNT(bad); ++i) {
    ait_status status = ait_engine_submit(e, &bad[i], &id);
    assert_non_null(status);
    assert_int_equal(ait_status_code(status), i == 1 ? AIT_CODE_LIMIT : AIT_CODE_INVALID_ARGUMENT);
    ait_status_free(status);
  }
  close_engine(e, &f);
}

static void an_error_of_the_machine_ends_all_and_the_engine_goes_on(void **state) {
  AIT_UNUSED(state);
  fake f;
  asked a[6];
  bool busy = true;
  ait_engine_options o;
  ait_engine_options_init(&o);
  o.max_sequences = 2;
  fake_init(&f, HYBRID);
  f.fail_at = 4;
  ait_engine *e = open_engine(&f, &o, 0);
  make_requests(a, 6);
  for (int32_t i = 0; i < 5; ++i) {
    a[i].max_tokens = 20;
    ait_request r = request_of(&a[i], i);
    assert_null(ait_engine_submit(e, &r, &a[i].id));
  }
  ait_status status = AIT_OK;
  while (busy && status == AIT_OK) status = ait_engine_step(e, &busy);
  assert_non_null(status);
  ait_status_free(status);
  for (int32_t i = 0; i < 5; ++i) assert_true(a[i].finish != AIT_FINISH_NONE);
  ait_request r = request_of(&a[5], 5);
  assert_null(ait_engine_submit(e, &r, &a[5].id));
  assert_null(ait_engine_run(e));
  assert_true(a[5].finish == AIT_FINISH_LENGTH || a[5].finish == AIT_FINISH_STOP);
  close_engine(e, &f);
}

/* Rejection sampling keeps the distribution: many short answers with and without a draft model, whose proposals for the second and third
 * token are judged in one step. */
static void rejection_sampling_keeps_the_distribution(void **state) {
  AIT_UNUSED(state);
  enum { RUNS = 4000, PLACES = 3 };
  static int32_t seen[2][PLACES][VOCAB];
  memset(seen, 0, sizeof seen);
  for (int speculates = 0; speculates < 2; ++speculates) {
    fake f, draft;
    ait_engine_options o;
    ait_engine_options_init(&o);
    o.speculation = speculates ? AIT_SPECULATE_DRAFT : AIT_SPECULATE_NONE;
    fake_init(&f, FULL);
    fake_init(&draft, FULL);
    draft.twist = 5;
    ait_engine *e = open_engine_with(&f, speculates ? &draft : NULL, &o, NULL, 0);
    for (int32_t i = 0; i < RUNS; ++i) {
      asked a = {.prompt_count = 5, .max_tokens = 4, .temperature = 1};
      for (int v = 0; v < 5; ++v) a.prompt[v] = v * 5 % VOCAB;
      ait_request r = request_of(&a, 11); /* no penalties */
      r.sampling.top_k = 5;
      r.sampling.seed = (uint64_t)(i + speculates * RUNS);
      r.ignore_stop_tokens = true;
      assert_null(ait_engine_submit(e, &r, &a.id));
      assert_null(ait_engine_run(e));
      for (int place = 0; place < PLACES; ++place) seen[speculates][place][a.got[place + 1]]++;
    }
    ait_engine_stats stats = ait_engine_statistics(e);
    if (speculates) assert_true(stats.accepted > RUNS / 4 && stats.accepted < stats.drafted - RUNS / 4);
    close_engine(e, &f);
  }
  for (int place = 0; place < PLACES; ++place) {
    double chi = 0; /* two samples; at most VOCAB - 1 degrees of freedom: 73 has probability 0.0003 for 36 */
    for (int v = 0; v < VOCAB; ++v) {
      double sum = seen[0][place][v] + seen[1][place][v], difference = seen[0][place][v] - seen[1][place][v];
      if (sum > 0) chi += difference * difference / sum;
    }
    if (chi > 73) fail_msg("chi squared %g at token %d", chi, place + 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_schedule_gives_the_same_tokens),
      cmocka_unit_test(answers_of_one_request_differ_by_seed_and_share_the_prompt),
      cmocka_unit_test(bad_requests_are_refused),
      cmocka_unit_test(an_error_of_the_machine_ends_all_and_the_engine_goes_on),
      cmocka_unit_test(rejection_sampling_keeps_the_distribution),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
