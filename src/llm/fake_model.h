/* For tests: a made-up model whose logits follow from everything that its caches hold, so that a page, slot or position that is not what it
 * should be changes the tokens. Included after cmocka.h. */
#ifndef AIT_SRC_LLM_FAKE_MODEL_H
#define AIT_SRC_LLM_FAKE_MODEL_H

#include "llm/engine.h"
#include <stdlib.h>

enum { VOCAB = 37, PAGE = 4, WINDOW = 6, MAX_SEQ = 96, SWITCH_AT = 30, LONG = 1000 };

typedef struct fake {
  ait_lm_info info;
  int32_t *pages[2]; /* [units][PAGE] tokens, + LONG where the sequence was said to be a long one */
  uint64_t *slots;   /* hash of all tokens */
  int32_t units[3];
  int64_t runs, copies, fail_at;
  uint64_t twist; /* not 0: other logits, near those of a model without: a draft model */
} fake;

static inline uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}

/* What a row at position p sees: every token through group 0, the last WINDOW through group 1, the state. */
static inline uint64_t sees(const fake *f, const ait_lm_sequence *s, int32_t p) {
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

static inline void logits_of(const fake *f, uint64_t h, float *out) {
  uint64_t pick = h;
  for (int32_t v = 0; v < VOCAB; ++v) {
    pick = mix(pick, (uint64_t)v);
    out[v] = (float)(pick % 1000) / 250.0f + (f->twist ? (float)(mix(pick, f->twist) % 1000) / 700.0f : 0);
  }
}

static inline ait_status fake_run(void *ctx, const ait_lm_batch *b) {
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
        if (f->pages[g]) f->pages[g][s->pages[g][p / PAGE] * PAGE + p % PAGE] = token + (s->is_long ? LONG : 0);
      assert_true(f->info.switch_at == 0 ? !s->is_long : s->is_long || p < f->info.switch_at);
      state = mix(state, (uint64_t)token);
      hash[s->first + r] = slots ? state : 0;
    }
    for (int32_t r = 0; r < s->count; ++r) hash[s->first + r] = mix(hash[s->first + r], sees(f, s, s->past + r));
    if (slots) f->slots[s->slot] = state;
  }
  for (int32_t i = 0; i < b->row_count; ++i) logits_of(f, hash[b->rows[i]], b->logits + (size_t)i * VOCAB);
  free(hash);
  return AIT_OK;
}

static inline ait_status fake_copy(void *ctx, uint32_t group, int32_t from, int32_t to) {
  fake *f = ctx;
  f->copies++;
  assert_int_equal(f->info.groups[group].kind, AIT_LM_SLOTS);
  f->slots[to] = f->slots[from];
  return AIT_OK;
}

typedef enum kind { FULL, WINDOWED, SLOTS, HYBRID, SWITCHED, KINDS } kind;

static inline void fake_init(fake *f, kind k) {
  *f = (fake){.info = {.vocab = VOCAB, .max_seq = MAX_SEQ, .page_size = PAGE, .stops = {36}, .stop_count = 1, .cached = true}};
  if (k == HYBRID) f->info.groups[f->info.group_count++] = (ait_lm_group){AIT_LM_SLOTS, 0, 1, 64}; /* in any order */
  if (k != SLOTS) f->info.groups[f->info.group_count++] = (ait_lm_group){AIT_LM_PAGES, 0, 1, 64};
  if (k == SWITCHED) f->info.switch_at = SWITCH_AT;
  if (k == WINDOWED || k == SWITCHED) f->info.groups[f->info.group_count++] = (ait_lm_group){AIT_LM_PAGES, WINDOW, 1, 64};
  if (k == SLOTS) f->info.groups[f->info.group_count++] = (ait_lm_group){AIT_LM_SLOTS, 0, 1, 64};
}

/* pages > 0: no more of them in any group. draft: of options->speculation == AIT_SPECULATE_DRAFT, made by fake_init(draft, FULL). */
static inline ait_engine *open_engine_with(fake *f, fake *draft, const ait_engine_options *options, const ait_tokenizer *tokenizer,
                                           int32_t pages) {
  lm_cache_shape shape;
  ait_engine *e = lm_engine_new(options);
  assert_non_null(e);
  e->model = (lm_model){f, &f->info, fake_run, fake_copy, NULL};
  e->tokenizer = tokenizer;
  if (draft) e->draft.model = (lm_model){draft, &draft->info, fake_run, fake_copy, NULL};
  assert_null(lm_engine_plan(e, &shape));
  for (uint32_t g = 0; g < shape.groups; ++g) {
    if (pages > 0 && shape.pages[g] > pages) shape.pages[g] = pages;
    uint32_t group = e->group_of[g];
    f->units[group] = shape.pages[g];
    f->pages[group] = calloc((size_t)shape.pages[g] * PAGE, sizeof(int32_t));
  }
  if (shape.slots) f->slots = calloc((size_t)shape.slots, sizeof *f->slots);
  assert_null(lm_engine_build(e, &shape));
  if (draft) {
    draft->units[0] = e->lane_count * e->draft.blocks;
    draft->pages[0] = calloc((size_t)draft->units[0] * PAGE, sizeof(int32_t));
  }
  return e;
}

static inline ait_engine *open_engine(fake *f, const ait_engine_options *options, int32_t pages) {
  return open_engine_with(f, NULL, options, NULL, pages);
}

static inline void close_engine(ait_engine *e, fake *f) {
  /* nothing is left in the cache but what is kept */
  for (uint32_t g = 0; g < e->cache.shape.groups; ++g) assert_int_equal(lm_cache_available(&e->cache, g), e->cache.shape.pages[g]);
  fake *draft = e->draft.model.ctx;
  lm_engine_free(e);
  free(f->pages[0]), free(f->pages[1]), free(f->slots);
  if (draft) free(draft->pages[0]);
}

#endif
