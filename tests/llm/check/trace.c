/* Requests at random, through one engine in many settings: each gets the tokens that it gets alone. */
#include "check.h"
#include <stdlib.h>
#include <time.h>

/* ---- requests ------------------------------------------------------------------------------------------------------------------------*/
static void hear(void *ctx, const ait_generation *e) {
  asked *a = ctx;
  heard_answer *h = &a->answers[e->choice];
  a->broken |= h->finish != AIT_FINISH_NONE || (e->token >= 0 && h->count == CHECK_MAX_TOKENS);
  if (a->broken) return;
  if (e->token >= 0) h->tokens[h->count++] = e->token;
  h->finish = e->finish;
}

static void ask_sampling(ait_sampling *s, dice *d) {
  if (roll(d, 5) < 2) return; /* greedy */
  s->temperature = roll_between(d, 0.5f, 1.3f);
  s->seed = roll(d, 1 << 30);
  if (roll(d, 3) == 0) s->top_k = 1 + (int32_t)roll(d, 60);
  if (roll(d, 3) == 0) s->top_p = roll_between(d, 0.5f, 1);
  if (roll(d, 4) == 0) s->min_p = roll_between(d, 0, 0.2f);
  if (roll(d, 4) == 0) s->repetition_penalty = roll_between(d, 1, 1.5f);
  if (roll(d, 5) == 0) s->presence_penalty = roll_between(d, -0.5f, 1);
  if (roll(d, 5) == 0) s->frequency_penalty = roll_between(d, 0, 0.5f);
}

void ask(asked *all, int32_t index, int32_t vocab, dice *d) {
  asked *a = &all[index];
  *a = (asked){.cancel = roll(d, 8) == 0};
  ait_request_init(&a->request);
  int32_t count = 1 + (int32_t)roll(d, CHECK_MAX_PROMPT), shared = 0;
  const asked *like = index > 0 ? &all[roll(d, (uint32_t)index)] : NULL;
  if (like && roll(d, 2)) shared = (int32_t)roll(d, (uint32_t)like->request.token_count) + 1;
  for (int32_t i = 0; i < count; ++i) a->prompt[i] = i < shared ? like->prompt[i] : (int32_t)roll(d, roll(d, 3) ? 20 : (uint32_t)vocab);
  a->request.tokens = a->prompt;
  a->request.token_count = (size_t)count;
  a->request.max_tokens = 1 + roll(d, CHECK_MAX_TOKENS);
  a->request.n = roll(d, 10) == 0 ? CHECK_MAX_ANSWERS : 1;
  a->request.ignore_stop_tokens = roll(d, 2);
  a->request.on_event = hear;
  a->request.ctx = a;
  ask_sampling(&a->request.sampling, d);
}

/* ---- one engine ----------------------------------------------------------------------------------------------------------------------*/
typedef struct way {
  const char *name;
  int32_t step_tokens, lanes, threads;
  bool no_reuse, no_overlap, small_cache, other_thread;
  ait_speculation speculation;
} way;

static const way ways[] = {
    {"in a batch", 256, 16, .threads = 2, .no_overlap = true},
    {"small cache", 64, 12, .threads = 2, .small_cache = true},
    {"nothing kept, odd steps", 37, 7, .threads = 1, .no_reuse = true, .small_cache = true},
    {"submitted by another thread", 96, 10, .threads = 2, .small_cache = true, .other_thread = true},
    {"proposals from the text", 64, 8, .threads = 2, .small_cache = true, .speculation = AIT_SPECULATE_NGRAM},
    {"proposals of a draft model", 64, 8, .threads = 2, .small_cache = true, .speculation = AIT_SPECULATE_DRAFT},
};

static ait_engine *open_engine(ait_llm *llm, ait_llm *draft, const way *w) {
  ait_engine_options o;
  ait_engine *e;
  ait_engine_options_init(&o);
  o.max_tokens = w->step_tokens, o.max_sequences = w->lanes, o.threads = w->threads, o.max_seq = CHECK_MAX_PROMPT + CHECK_MAX_TOKENS;
  o.no_prefix_reuse = w->no_reuse, o.no_overlap = w->no_overlap, o.speculation = w->speculation, o.draft = draft;
  size_t bytes = 0;
  for (size_t least = 4096; w->small_cache; least += least / 8) { /* one sequence fits; two times that */
    o.cache_bytes = least;
    ait_status status = ait_engine_create(llm, &o, &e);
    if (status == AIT_OK) {
      bytes = 2 * least;
      ait_engine_destroy(e);
      break;
    }
    if (ait_status_code(status) != AIT_CODE_LIMIT) must(status);
    ait_status_free(status);
  }
  o.cache_bytes = bytes;
  must(ait_engine_create(llm, &o, &e));
  return e;
}

static void submit(ait_engine *e, asked *a) { must(ait_engine_submit(e, &a->request, &a->id)); }

/* Arrivals in bursts; some are cancelled, before they start or while they run. */
static void arrive(ait_engine *e, asked *all, int32_t count, int32_t *next, dice *d) {
  while (*next < count && roll(d, 3)) submit(e, &all[(*next)++]);
  asked *victim = *next > 0 && roll(d, 3) == 0 ? &all[roll(d, (uint32_t)*next)] : NULL;
  if (victim && victim->cancel) ait_engine_cancel(e, victim->id);
}

typedef struct sender {
  ait_engine *engine;
  asked *all;
  int32_t count;
  dice dice;
} sender;

static void *send_all(void *ctx) {
  sender *s = ctx;
  for (int32_t next = 0; next < s->count;) {
    arrive(s->engine, s->all, s->count, &next, &s->dice);
    nanosleep(&(struct timespec){0, 100000 + 1000 * (long)roll(&s->dice, 3000)}, NULL);
  }
  return NULL;
}

static ait_engine_stats run_all(ait_engine *e, const way *w, asked *all, int32_t count, dice *d) {
  int32_t next = 0;
  if (w->other_thread) {
    sender s = {e, all, count, *d};
    pthread_t thread;
    if (pthread_create(&thread, NULL, send_all, &s)) exit(2);
    bool busy;
    for (int32_t i = 0; i < 20 * count; ++i) must(ait_engine_step(e, &busy));
    pthread_join(thread, NULL);
    must(ait_engine_run(e));
  } else
    for (bool busy = true; busy || next < count;) {
      arrive(e, all, count, &next, d);
      must(ait_engine_step(e, &busy));
    }
  return ait_engine_statistics(e);
}

/* ---- judging -------------------------------------------------------------------------------------------------------------------------*/
static bool same(const asked *got, const asked *want, bool draws) {
  bool good = !got->broken;
  for (uint32_t i = 0; i < want->request.n; ++i) {
    const heard_answer *g = &got->answers[i], *w = &want->answers[i];
    bool ended = g->finish == AIT_FINISH_CANCELLED;
    if (ended && !got->cancel) return false;
    if (draws) { /* equal in distribution only: it ends, and no later than alone might */
      good &= g->finish != AIT_FINISH_NONE && g->finish != AIT_FINISH_ERROR;
      continue;
    }
    good &= ended ? g->count <= w->count : g->count == w->count && g->finish == w->finish;
    good &= !memcmp(g->tokens, w->tokens, (size_t)(g->count < w->count ? g->count : w->count) * sizeof(int32_t));
  }
  return good;
}

static void run_alone(ait_llm *llm, asked *all, int32_t count) {
  static const way alone = {"alone", 512, 1, .threads = 1, .no_reuse = true, .no_overlap = true};
  ait_engine *e = open_engine(llm, NULL, &alone);
  for (int32_t i = 0; i < count; ++i) {
    submit(e, &all[i]);
    must(ait_engine_run(e));
  }
  ait_engine_destroy(e);
}

static int run_way(ait_llm *llm, ait_llm *draft, const way *w, asked *got, const asked *want, int32_t count, uint64_t seed) {
  dice d = {seed + 99};
  int wrong = 0, cancelled = 0;
  memcpy(got, want, (size_t)count * sizeof *got);
  for (int32_t i = 0; i < count; ++i) {
    got[i].request.ctx = &got[i];
    got[i].request.tokens = got[i].prompt;
    memset(got[i].answers, 0, sizeof got[i].answers);
  }
  ait_engine *e = open_engine(llm, draft, w);
  ait_engine_stats s = run_all(e, w, got, count, &d);
  for (int32_t i = 0; i < count; ++i) {
    bool draws = w->speculation == AIT_SPECULATE_DRAFT && want[i].request.sampling.temperature > 0;
    cancelled += got[i].answers[0].finish == AIT_FINISH_CANCELLED;
    if (same(&got[i], &want[i], draws)) continue;
    if (wrong++ < 3) printf("  request %d (temperature %g) has other tokens than alone\n", i, (double)want[i].request.sampling.temperature);
  }
  printf("  trace, %-28s %d of %d as alone; %d cancelled, %llu tokens reused, %llu gave way, %llu of %llu proposals kept%s\n", w->name,
         count - wrong, count, cancelled, (unsigned long long)s.reused_tokens, (unsigned long long)s.preemptions,
         (unsigned long long)s.accepted, (unsigned long long)s.drafted, wrong ? ": FAILED" : "");
  ait_engine_destroy(e);
  return wrong;
}

int check_trace(ait_llm *llm, ait_llm *draft, int32_t count, uint64_t seed) {
  dice d = {seed};
  int bad = 0;
  asked *want = calloc((size_t)count, sizeof *want), *got = calloc((size_t)count, sizeof *got);
  for (int32_t i = 0; i < count; ++i) ask(want, i, (int32_t)ait_llm_describe(llm).vocab, &d);
  run_alone(llm, want, count);
  for (size_t w = 0; w < AIT_COUNT(ways); ++w)
    if (ways[w].speculation != AIT_SPECULATE_DRAFT || draft) bad += run_way(llm, draft, &ways[w], got, want, count, seed + w);
  free(want), free(got);
  return bad;
}
