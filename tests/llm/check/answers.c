/* Greedy answers through the engine, however it is set: those that transformers gives, token for token. */
#include "check.h"
#include <stdlib.h>

typedef struct way {
  const char *name;
  int32_t step_tokens, lanes, threads;
  bool no_reuse, small_cache, again, alone;
  ait_speculation speculation;
} way;

static const way ways[] = {
    {"one after the other", 512, 1, .threads = 1, .no_reuse = true, .alone = true},
    {"token by token", 1, 1, .threads = 1, .no_reuse = true, .alone = true},
    {"steps of a page", 16, 1, .threads = 1, .no_reuse = true, .alone = true},
    {"odd steps", 7, 3, .threads = 1, .no_reuse = true},
    {"in a batch", 512, 16, .threads = 1},
    {"two threads", 64, 8, .threads = 2},
    {"three threads", 33, 5, .threads = 3},
    {"prefixes reused", 64, 4, .threads = 1, .again = true},
    {"small cache", 24, 8, .threads = 2, .small_cache = true},
    {"proposals from the text", 64, 4, .threads = 1, .speculation = AIT_SPECULATE_NGRAM},
    {"the same, small cache", 24, 8, .threads = 2, .small_cache = true, .again = true, .speculation = AIT_SPECULATE_NGRAM},
    {"proposals of a draft model", 64, 4, .threads = 1, .speculation = AIT_SPECULATE_DRAFT},
    {"the same, small cache", 24, 8, .threads = 2, .small_cache = true, .again = true, .speculation = AIT_SPECULATE_DRAFT},
};

typedef struct item {
  int32_t *prompt, *answer, prompt_count, answer_count; /* what is wanted */
  int32_t got;                                          /* tokens that were right */
  bool wrong, done;
} item;

static void hear(void *ctx, const ait_generation *e) {
  item *it = ctx;
  if (e->token >= 0) {
    if (it->got < it->answer_count && it->answer[it->got] == e->token && !it->wrong) it->got++;
    else it->wrong = true;
  }
  it->done |= e->finish == AIT_FINISH_STOP || e->finish == AIT_FINISH_LENGTH;
}

static void submit(ait_engine *e, item *it) {
  ait_request r;
  uint64_t id;
  ait_request_init(&r);
  r.tokens = it->prompt;
  r.token_count = (size_t)it->prompt_count;
  r.max_tokens = (uint32_t)it->answer_count;
  r.on_event = hear;
  r.ctx = it;
  it->got = 0, it->wrong = it->done = false;
  must(ait_engine_submit(e, &r, &id));
}

/* The smallest cache that the engine takes. */
static ait_engine *open_engine(ait_llm *llm, ait_engine_options *o, bool small) {
  ait_engine *e;
  for (size_t bytes = 4096; small; bytes += bytes / 8) {
    o->cache_bytes = bytes;
    ait_status status = ait_engine_create(llm, o, &e);
    if (status == AIT_OK) return e;
    if (ait_status_code(status) != AIT_CODE_LIMIT) must(status);
    ait_status_free(status);
  }
  must(ait_engine_create(llm, o, &e));
  return e;
}

static int run_way(ait_llm *llm, ait_llm *draft, const way *w, item *items, int32_t count, int64_t longest) {
  ait_engine_options o;
  ait_engine_options_init(&o);
  o.max_tokens = w->step_tokens, o.max_sequences = w->lanes, o.threads = w->threads, o.no_prefix_reuse = w->no_reuse;
  o.speculation = w->speculation, o.draft = draft, o.max_seq = longest + 2;
  ait_engine *e = open_engine(llm, &o, w->small_cache);
  int wrong = 0;
  for (int round = 0; round <= w->again; ++round) {
    for (int32_t i = 0; i < count; ++i) {
      submit(e, &items[round ? count - 1 - i : i]); /* what was used last first: it is there still */
      if (w->alone) must(ait_engine_run(e));
    }
    must(ait_engine_run(e));
    for (int32_t i = 0; i < count; ++i) {
      const item *it = &items[i];
      if (it->done && !it->wrong && it->got == it->answer_count) continue;
      if (wrong++ < 3) printf("  answer %d differs at token %d\n", i, it->got);
    }
  }
  ait_engine_stats s = ait_engine_statistics(e);
  printf("  answers, %-26s %d of %d equal", w->name, count * (1 + w->again) - wrong, count * (1 + w->again));
  if (s.reused_tokens) printf(", %llu tokens reused", (unsigned long long)s.reused_tokens);
  if (s.preemptions) printf(", %llu gave way", (unsigned long long)s.preemptions);
  if (s.drafted) printf(", %llu of %llu proposals kept", (unsigned long long)s.accepted, (unsigned long long)s.drafted);
  printf("%s\n", wrong ? ": FAILED" : "");
  bool idle = w->again && !w->small_cache && s.reused_tokens == 0 && longest > 40; /* what was to be tested did not happen */
  if (idle) printf("  nothing was reused: FAILED\n");
  ait_engine_destroy(e);
  return wrong + idle;
}

static int32_t *row(const ait_tensor *t, int64_t i, int32_t *out_count) {
  *out_count = row_length(t, i);
  int32_t *tokens = calloc((size_t)*out_count + 1, sizeof *tokens);
  for (int32_t k = 0; k < *out_count; ++k) tokens[k] = (int32_t)int_at(t, i, k);
  return tokens;
}

int check_answers(ait_llm *llm, ait_llm *draft, const goldens *g) {
  int32_t count = (int32_t)g->prompts.shape[0];
  int64_t longest = 0;
  item *items = calloc((size_t)count, sizeof *items);
  int bad = 0;
  for (int32_t i = 0; i < count; ++i) {
    items[i].prompt = row(&g->prompts, i, &items[i].prompt_count);
    items[i].answer = row(&g->answers, i, &items[i].answer_count);
    int64_t length = items[i].prompt_count + items[i].answer_count;
    longest = length > longest ? length : longest;
  }
  for (size_t w = 0; w < AIT_COUNT(ways); ++w)
    if (ways[w].speculation != AIT_SPECULATE_DRAFT || draft) bad += run_way(llm, draft, &ways[w], items, count, longest);
  for (int32_t i = 0; i < count; ++i) free(items[i].prompt), free(items[i].answer);
  free(items);
  return bad;
}
