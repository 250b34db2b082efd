/* Speculation: tokens are proposed, computed in one step, and kept as far as the model would have drawn them itself.
 *
 * Where the proposal is no draw (greedy, or from the text itself) the token is drawn as without speculation, and the proposal stays when it
 * is that token: answers are those without speculation, token for token, and no rule keeps proposals more often. A proposal x that a draft
 * model drew from q stays by rejection sampling (Leviathan et al., "Fast inference from transformers via speculative decoding", 2023): with
 * probability min(1, p(x) / q(x)), else the token is drawn from max(p - q, 0), normalised: equal in distribution. */
#include "llm/engine.h"

static bool decodes(const lm_lane *l) { return l->request && l->finish == AIT_FINISH_NONE && l->started && l->count - l->past == 1; }

/* How many tokens may be proposed: what is drawn behind the last must still fit. */
static int32_t room_for_drafts(const ait_engine *e, const lm_lane *l) {
  int32_t room = l->limit - l->count - 1;
  return room < e->options.draft_tokens ? room : e->options.draft_tokens;
}

/* ---- from the text -------------------------------------------------------------------------------------------------------------------*/
enum { LONGEST_GRAM = 3 };

/* What followed the last time that the last tokens stood there; longer matches first. */
static void propose_from_text(const ait_engine *e, lm_lane *l) {
  int32_t room = room_for_drafts(e, l);
  for (int32_t n = LONGEST_GRAM; n > 0 && room > 0; --n)
    for (int32_t at = l->count - n - 1; at >= 0; --at) {
      if (memcmp(l->tokens + at, l->tokens + l->count - n, (size_t)n * sizeof *l->tokens)) continue;
      for (l->draft_count = 0; l->draft_count < room && at + n + l->draft_count < l->count; ++l->draft_count)
        l->draft[l->draft_count] = l->tokens[at + n + l->draft_count];
      return;
    }
}

/* ---- from a smaller model ------------------------------------------------------------------------------------------------------------*/
ait_status lm_draft_fits(const ait_lm_info *draft, int64_t vocab) {
  if (draft->has_source) return ait_error(AIT_CODE_UNSUPPORTED, "a draft model with an encoder");
  for (uint32_t g = 0; g < draft->group_count; ++g)
    if (draft->groups[g].kind == AIT_LM_SLOTS || !draft->cached)
      return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "a draft model with scans cannot take its proposals back"),
                            "a draft model of attention layers only, or --speculate ngram");
  if (draft->vocab == vocab) return AIT_OK;
  return ait_error(AIT_CODE_INVALID_ARGUMENT, "the draft model has %lld tokens, the model %lld", (long long)draft->vocab, (long long)vocab);
}

ait_status lm_draft_create(ait_engine *e) {
  lm_draft *d = &e->draft;
  const ait_lm_info *info = d->model.info;
  size_t vocab = (size_t)info->vocab, lanes = (size_t)e->lane_count, k = (size_t)e->options.draft_tokens;
  AIT_TRY(lm_draft_fits(info, e->model.info->vocab));
  if (info->switch_at > 0 && info->switch_at < e->max_len)
    return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "the draft model computes sequences of more than %lld tokens in another way",
                                    (long long)info->switch_at),
                          "--max-seq %lld, or --speculate ngram", (long long)info->switch_at);
  d->blocks = (int32_t)((e->max_len + info->page_size - 1) / info->page_size);
  d->max_tokens = e->options.max_tokens;
  d->pages = ait_alloc(e->allocator, lanes * (size_t)d->blocks * sizeof *d->pages, 16);
  d->logits = ait_alloc(e->allocator, lanes * vocab * sizeof *d->logits, 64);
  d->probabilities = ait_alloc(e->allocator, lanes * k * vocab * sizeof *d->probabilities, 64);
  d->sequences = ait_alloc_zero(e->allocator, lanes * sizeof *d->sequences, 16);
  d->tokens = ait_alloc(e->allocator, (size_t)d->max_tokens * sizeof *d->tokens, 16);
  d->rows = ait_alloc(e->allocator, lanes * sizeof *d->rows, 16);
  if (!d->pages || !d->logits || !d->probabilities || !d->sequences || !d->tokens || !d->rows) return AIT_OOM();
  for (size_t i = 0; i < lanes * (size_t)d->blocks; ++i) d->pages[i] = (int32_t)i;
  return AIT_OK;
}

void lm_draft_destroy(ait_engine *e) {
  lm_draft *d = &e->draft;
  if (!d->model.info) return;
  size_t vocab = (size_t)d->model.info->vocab, lanes = (size_t)e->lane_count, k = (size_t)e->options.draft_tokens;
  ait_free(e->allocator, d->pages, lanes * (size_t)d->blocks * sizeof *d->pages);
  ait_free(e->allocator, d->logits, lanes * vocab * sizeof *d->logits);
  ait_free(e->allocator, d->probabilities, lanes * k * vocab * sizeof *d->probabilities);
  ait_free(e->allocator, d->sequences, lanes * sizeof *d->sequences);
  ait_free(e->allocator, d->tokens, (size_t)d->max_tokens * sizeof *d->tokens);
  ait_free(e->allocator, d->rows, lanes * sizeof *d->rows);
}

/* Token at a position of the lane's text with its proposals behind it. */
static int32_t token_at(const lm_lane *l, int32_t position) {
  return position < l->count ? l->tokens[position] : l->draft[position - l->count];
}

/* One step of the draft model over the lanes that want the proposal number `round`: what it has not seen yet, as much as fits. */
static ait_status draft_step(ait_engine *e, int32_t round, bool *out_any) {
  lm_draft *d = &e->draft;
  lm_lane *members[256];
  ait_lm_batch b = {.tokens = d->tokens, .sequences = d->sequences, .rows = d->rows, .logits = d->logits};
  *out_any = false;
  for (int32_t i = 0; i < e->lane_count && b.sequence_count < (int32_t)AIT_COUNT(members); ++i) {
    lm_lane *l = &e->lanes[i];
    int32_t end = l->count + l->draft_count, room = d->max_tokens - b.token_count;
    if (!decodes(l) || l->draft_count != round || room_for_drafts(e, l) <= round || room <= 0) continue;
    int32_t rows = end - l->draft_past < room ? end - l->draft_past : room;
    ait_lm_sequence *s = &d->sequences[b.sequence_count];
    *s = (ait_lm_sequence){.first = b.token_count, .count = rows, .past = l->draft_past, .page_count = d->blocks};
    for (uint32_t g = 0; g < d->model.info->group_count; ++g) s->pages[g] = d->pages + (size_t)i * (size_t)d->blocks;
    for (int32_t r = 0; r < rows; ++r) d->tokens[b.token_count + r] = token_at(l, l->draft_past + r);
    b.token_count += rows;
    l->draft_past += rows;
    members[b.sequence_count++] = l->draft_past == end ? l : NULL; /* else it catches up, and proposes in a later step */
    if (l->draft_past == end) d->rows[b.row_count++] = b.token_count - 1;
  }
  if (b.sequence_count == 0) return AIT_OK;
  AIT_TRY(d->model.run(d->model.ctx, &b));
  for (int32_t i = 0, row = 0; i < b.sequence_count; ++i) {
    lm_lane *l = members[i];
    if (!l) continue;
    const float *logits = d->logits + (size_t)row++ * (size_t)d->model.info->vocab;
    const ait_sampling *s = &l->request->options.sampling;
    int32_t token;
    if (s->temperature == 0) token = lm_sampler_best(&e->sampler, s, logits, l->tokens, l->prompt, l->count);
    else {
      size_t at = (size_t)(l - e->lanes) * (size_t)e->options.draft_tokens + (size_t)round;
      if (!lm_sampler_prepare(&e->sampler, s, logits, l->tokens, l->prompt, l->count)) continue;
      lm_sampler_dense(&e->sampler, d->probabilities + at * (size_t)d->model.info->vocab);
      token = lm_sampler_draw(&e->sampler, lm_uniform(s->seed + l->choice, (uint64_t)(l->count + round), 2));
    }
    if (token < 0) continue;
    l->draft[l->draft_count++] = token;
    *out_any = true;
  }
  return AIT_OK;
}

ait_status lm_propose(ait_engine *e) {
  if (e->options.speculation == AIT_SPECULATE_NONE) return AIT_OK;
  for (int32_t i = 0; i < e->lane_count; ++i) {
    lm_lane *l = &e->lanes[i];
    l->draft_count = 0;
    if (l->draft_past >= l->count) l->draft_past = l->count - 1; /* behind it: proposals of a step that the lane then was not in */
    if (e->options.speculation == AIT_SPECULATE_NGRAM && decodes(l)) propose_from_text(e, l);
  }
  if (e->options.speculation != AIT_SPECULATE_DRAFT) return AIT_OK;
  bool any = true;
  for (int32_t round = 0; any && round < e->options.draft_tokens; ++round) AIT_TRY(draft_step(e, round, &any));
  return AIT_OK;
}

/* ---- verification --------------------------------------------------------------------------------------------------------------------*/
/* A draw from max(p - q, 0), p being what the sampler holds. */
static int32_t draw_residual(ait_engine *e, const float *q, double uniform) {
  lm_sampler *s = &e->sampler;
  double total = 0, sum = 0;
  int32_t last = s->candidates[0].token;
  for (int64_t i = 0; i < s->count; ++i) {
    lm_candidate *c = &s->candidates[i];
    float minus = q[c->token];
    c->weight = c->weight > minus ? c->weight - minus : 0;
    total += (double)c->weight;
  }
  for (int64_t i = 0; i < s->count; ++i) {
    sum += (double)s->candidates[i].weight;
    if (s->candidates[i].weight > 0) last = s->candidates[i].token;
    if (uniform * total < sum) return s->candidates[i].token;
  }
  return last;
}

/* The token behind row i of the lane; *kept: it is the proposal. */
static bool judge(ait_engine *e, const lm_lane *l, int32_t i, const float *logits, int32_t *out, bool *kept) {
  const ait_sampling *s = &l->request->options.sampling;
  bool proposed = i < l->logit_rows - 1, drawn = e->options.speculation == AIT_SPECULATE_DRAFT && s->temperature > 0;
  if (!proposed || !drawn) {
    if (!lm_draw(e, l, logits, out)) return false;
    *kept = proposed && *out == l->draft[i];
    return true;
  }
  if (!lm_sampler_prepare(&e->sampler, s, logits, l->tokens, l->prompt, l->count)) return false;
  size_t at = (size_t)(l - e->lanes) * (size_t)e->options.draft_tokens + (size_t)i;
  const float *q = e->draft.probabilities + at * (size_t)e->draft.model.info->vocab;
  double p = (double)lm_sampler_probability(&e->sampler, l->draft[i]), of = (double)q[l->draft[i]];
  uint64_t seed = s->seed + l->choice, position = (uint64_t)l->count;
  *kept = lm_uniform(seed, position, 1) * of < p;
  *out = *kept ? l->draft[i] : draw_residual(e, q, lm_uniform(seed, position, 0));
  return true;
}

int32_t lm_verify(ait_engine *e, lm_lane *l) {
  int32_t appended = 0;
  bool kept = true;
  for (int32_t i = 0; kept && i < l->logit_rows && l->finish == AIT_FINISH_NONE; ++i) {
    float *logits = e->logits + (size_t)(l->first_logits + i) * (size_t)e->model.info->vocab;
    int32_t token;
    if (e->has_memory) lm_apply_rules(e, l, logits);
    if (!judge(e, l, i, logits, &token, &kept)) {
      l->finish = AIT_FINISH_ERROR;
      break;
    }
    lm_append(e, l, token, logits);
    ++appended;
  }
  e->stats.drafted += (uint64_t)(l->logit_rows - 1);
  e->stats.accepted += appended > 0 ? (uint64_t)(appended - 1) : 0;
  int32_t valid = l->count - 1; /* the draft model's cache holds proposals that were refused */
  if (l->draft_past > valid) l->draft_past = valid;
  return appended;
}
