/* The engine on a made-up model whose logits follow from everything that its caches hold, so that a page, slot or position that is not
 * what it should be changes the tokens. Traces of requests, with all that makes schedules differ, must give each request the tokens that
 * it gets alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "llm/engine.h"
#include <math.h>
#include <stdio.h>

/* ---- a model -------------------------------------------------------------------------------------------------------------------------*/
enum { VOCAB = 37, PAGE = 4, WINDOW = 6, MAX_SEQ = 96 };

typedef struct fake {
  ait_lm_info info;
  int32_t *pages[2]; /* [units][PAGE] tokens */
  uint64_t *slots;   /* hash of all tokens */
  int32_t units[3];
  int64_t runs, copies, fail_at;
} fake;

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}

/* What a row at position p sees: every token through group 0, the last WINDOW through group 1, the state. */
static uint64_t sees(const fake *f, const ait_lm_sequence *s, int32_t p) {
  uint64_t h = 1;
  for (uint32_t g = 0; g < f->info.group_count; ++g) {
    if (f->info.groups[g].kind == AIT_LM_SLOTS) continue;
    int32_t from = f->info.groups[g].window ? p - (int32_t)f->info.groups[g].window + 1 : 0;
    for (int32_t j = from < 0 ? 0 : from; j <= p; ++j) {
      int32_t page = s->pages[g][j / PAGE];
      assert_in_range(page, 0, f->units[g] - 1);
      h = mix(h, (uint64_t)f->pages[g][page * PAGE + j % PAGE] + 1);
    }
  }
  return h;
}

static void logits_of(uint64_t h, float *out) {
  uint64_t pick = h;
  for (int32_t v = 0; v < VOCAB; ++v) pick = mix(pick, (uint64_t)v), out[v] = (float)(pick % 1000) / 250.0f;
}

static ait_status fake_run(void *ctx, const ait_lm_batch *b) {
  fake *f = ctx;
  uint64_t *hash = calloc((size_t)b->token_count + 1, sizeof *hash);
  if (++f->runs == f->fail_at) return free(hash), ait_error(AIT_CODE_INTERNAL, "made to fail");
  for (int32_t i = 0; i < b->sequence_count; ++i) {
    const ait_lm_sequence *s = &b->sequences[i];
    bool slots = f->slots != NULL;
    uint64_t state = slots && s->past > 0 ? f->slots[s->slot] : 7;
    for (int32_t r = 0; r < s->count; ++r) {
      int32_t p = s->past + r, token = b->tokens[s->first + r];
      assert_true(p < MAX_SEQ && p / PAGE < s->page_count + (f->pages[0] || f->pages[1] ? 0 : MAX_SEQ));
      for (int g = 0; g < 2; ++g)
        if (f->pages[g]) f->pages[g][s->pages[g][p / PAGE] * PAGE + p % PAGE] = token;
      state = mix(state, (uint64_t)token);
      hash[s->first + r] = slots ? state : 0;
    }
    for (int32_t r = 0; r < s->count; ++r) hash[s->first + r] = mix(hash[s->first + r], sees(f, s, s->past + r));
    if (slots) f->slots[s->slot] = state;
  }
  for (int32_t i = 0; i < b->row_count; ++i) logits_of(hash[b->rows[i]], b->logits + (size_t)i * VOCAB);
  free(hash);
  return AIT_OK;
}

static ait_status fake_copy(void *ctx, uint32_t group, int32_t from, int32_t to) {
  fake *f = ctx;
  f->copies++;
  assert_int_equal(f->info.groups[group].kind, AIT_LM_SLOTS);
  f->slots[to] = f->slots[from];
  return AIT_OK;
}

typedef enum kind { FULL, WINDOWED, SLOTS, HYBRID, KINDS } kind;

static void fake_init(fake *f, kind k) {
  *f = (fake){.info = {.vocab = VOCAB, .max_seq = MAX_SEQ, .page_size = PAGE, .stops = {36}, .stop_count = 1, .cached = true}};
  if (k == HYBRID) f->info.groups[f->info.group_count++] = (ait_lm_group){AIT_LM_SLOTS, 0, 1, 64}; /* in any order */
  if (k != SLOTS) f->info.groups[f->info.group_count++] = (ait_lm_group){AIT_LM_PAGES, 0, 1, 64};
  if (k == WINDOWED) f->info.groups[f->info.group_count++] = (ait_lm_group){AIT_LM_PAGES, WINDOW, 1, 64};
  if (k == SLOTS) f->info.groups[f->info.group_count++] = (ait_lm_group){AIT_LM_SLOTS, 0, 1, 64};
}

static ait_engine *open_engine(fake *f, const ait_engine_options *options, int32_t pages) {
  lm_cache_shape shape;
  ait_engine *e = lm_engine_new(options);
  assert_non_null(e);
  e->model = (lm_model){f, &f->info, fake_run, fake_copy};
  assert_null(lm_engine_plan(e, &shape));
  for (uint32_t g = 0; g < shape.groups; ++g) {
    if (pages > 0 && shape.pages[g] > pages) shape.pages[g] = pages;
    uint32_t group = e->group_of[g];
    f->units[group] = shape.pages[g];
    f->pages[group] = calloc((size_t)shape.pages[g] * PAGE, sizeof(int32_t));
  }
  if (shape.slots) f->slots = calloc((size_t)shape.slots, sizeof *f->slots);
  assert_null(lm_engine_build(e, &shape));
  return e;
}

static void close_engine(ait_engine *e, fake *f) {
  /* nothing is left in the cache but what is kept */
  for (uint32_t g = 0; g < e->cache.shape.groups; ++g) assert_int_equal(lm_cache_available(&e->cache, g), e->cache.shape.pages[g]);
  lm_engine_free(e);
  free(f->pages[0]), free(f->pages[1]), free(f->slots);
}

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
  fake f;
  fake_init(&f, k);
  ait_engine *e = open_engine(&f, o, pages);
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
    bool sampled_otherwise = o->speculation != AIT_SPECULATE_NONE && a[i].temperature > 0;
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

/* Rejection sampling keeps the distribution: many short answers with and without proposals. */
static void speculation_keeps_the_distribution(void **state) {
  AIT_UNUSED(state);
  enum { RUNS = 3000 };
  static int32_t seen[2][VOCAB];
  for (int speculates = 0; speculates < 2; ++speculates) {
    fake f;
    ait_engine_options o;
    ait_engine_options_init(&o);
    o.speculation = speculates ? AIT_SPECULATE_NGRAM : AIT_SPECULATE_NONE;
    fake_init(&f, FULL);
    ait_engine *e = open_engine(&f, &o, 0);
    for (int32_t i = 0; i < RUNS; ++i) {
      asked a = {.prompt_count = VOCAB, .max_tokens = 3, .temperature = 1};
      for (int v = 0; v < VOCAB; ++v) a.prompt[v] = v * 5 % VOCAB; /* whatever is drawn first stood there: something is proposed */
      ait_request r = request_of(&a, i + speculates * RUNS);
      r.sampling.top_k = 6;
      r.ignore_stop_tokens = true;
      assert_null(ait_engine_submit(e, &r, &a.id));
      assert_null(ait_engine_run(e));
      seen[speculates][a.got[1]]++;
    }
    if (speculates) assert_true(ait_engine_statistics(e).drafted > 0);
    close_engine(e, &f);
  }
  double chi = 0; /* two samples; at most VOCAB - 1 degrees of freedom: 73 has probability 0.0003 for 36 */
  for (int v = 0; v < VOCAB; ++v) {
    double sum = seen[0][v] + seen[1][v], difference = seen[0][v] - seen[1][v];
    if (sum > 0) chi += difference * difference / sum;
  }
  if (chi > 73) fail_msg("chi squared %g", chi);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_schedule_gives_the_same_tokens), cmocka_unit_test(answers_of_one_request_differ_by_seed_and_share_the_prompt),
      cmocka_unit_test(bad_requests_are_refused),           cmocka_unit_test(an_error_of_the_machine_ends_all_and_the_engine_goes_on),
      cmocka_unit_test(speculation_keeps_the_distribution),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
