/* From logits to tokens, and from tokens to what the caller hears. */
#include "llm/engine.h"
#include <math.h>

/* ---- drawing -------------------------------------------------------------------------------------------------------------------------*/
bool lm_draw(ait_engine *e, const lm_lane *lane, const float *logits, int32_t *out) {
  const ait_sampling *s = &lane->request->options.sampling;
  if (s->temperature == 0) {
    *out = lm_sampler_best(&e->sampler, s, logits, lane->tokens, lane->prompt, lane->count);
    return *out >= 0;
  }
  if (!lm_sampler_prepare(&e->sampler, s, logits, lane->tokens, lane->prompt, lane->count)) return false;
  *out = lm_sampler_draw(&e->sampler, lm_uniform(s->seed + lane->choice, (uint64_t)lane->count, 0));
  return true;
}

static bool is_stop(const ait_engine *e, const ait_request *r, int32_t token) {
  for (size_t i = 0; i < r->stop_token_count; ++i)
    if (r->stop_tokens[i] == token) return true;
  for (uint32_t i = 0; !r->ignore_stop_tokens && i < e->model.info->stop_count; ++i)
    if (e->model.info->stops[i] == token) return true;
  return false;
}

void lm_append(ait_engine *e, lm_lane *lane, int32_t token, const float *logits) {
  const ait_request *r = &lane->request->options;
  lm_drawn *d = &lane->drawn[lane->drawn_count++];
  d->token = token;
  d->top_count = r->logprobs > 0 ? (uint32_t)r->logprobs : 0;
  d->logprob = r->logprobs >= 0 ? lm_logprobs(logits, e->model.info->vocab, token, d->top, d->top_count) : NAN;
  lane->tokens[lane->count++] = token;
  e->stats.answer_tokens++;
  if (is_stop(e, r, token)) lane->finish = AIT_FINISH_STOP;
  else if (lane->count >= lane->limit) lane->finish = AIT_FINISH_LENGTH;
}

/* ---- after the run -------------------------------------------------------------------------------------------------------------------*/
static ait_status keep_snapshot(ait_engine *e, lm_lane *lane) {
  if (!e->has_slots || lane->past % e->block) return AIT_OK;
  int32_t to = lm_chain_snapshot(&e->cache, &lane->chain, lane->past);
  return to < 0 ? AIT_OK : e->model.copy(e->model.ctx, e->slot_group, lane->slot, to);
}

/* Proposals that were refused stand in the caches: pages are written over, a state is taken back from its copy. */
static ait_status take_back(ait_engine *e, lm_lane *lane, int32_t before, int32_t known, int32_t accepted) {
  lane->past = before + known + accepted;
  if (!e->has_slots || accepted == lane->draft_count) return AIT_OK;
  lane->past = before;
  return e->model.copy(e->model.ctx, e->slot_group, lane->spare, lane->slot);
}

static ait_status take_lane(ait_engine *e, lm_lane *lane) {
  int32_t before = lane->past, drafts = lane->logit_rows > 0 ? lane->logit_rows - 1 : 0, known = lane->rows - drafts;
  int32_t drawn = lane->logit_rows > 0 ? lm_verify(e, lane) : 1;
  if (!e->model.info->cached) return AIT_OK;
  lane->draft_count = drafts;
  AIT_TRY(take_back(e, lane, before, known, drawn > 0 ? drawn - 1 : 0));
  lane->draft_count = 0;
  lm_chain_commit(&e->cache, &lane->chain, lane->tokens, lane->past);
  return keep_snapshot(e, lane);
}

void lm_lane_free(ait_engine *e, lm_lane *lane) {
  const char *text;
  size_t size;
  lm_lane_stop(e, lane);
  if (lane->stream) ait_status_ignore(ait_text_stream_finish(lane->stream, &text, &size)); /* as new */
  lm_request_drop(e, lane->request);
  lane->request = NULL;
  lane->stops = NULL;
  lane->ended = false;
  lane->rows = 0;
}

ait_status lm_take_results(ait_engine *e) {
  ait_status status = AIT_OK;
  for (int32_t i = 0; i < e->sequence_count; ++i) {
    lm_lane *lane = e->members[i];
    if (lane->ended) lm_lane_free(e, lane);
    else if (lane->finish == AIT_FINISH_NONE && status == AIT_OK) status = take_lane(e, lane);
  }
  return status;
}

/* ---- telling -------------------------------------------------------------------------------------------------------------------------*/
static ait_generation event_of(const lm_lane *lane) {
  return (ait_generation){.request = lane->request->id,
                          .choice = lane->choice,
                          .token = -1,
                          .text = "",
                          .logprob = NAN,
                          .prompt_tokens = (uint32_t)lane->prompt,
                          .reused_tokens = (uint32_t)lane->reused};
}

static void tell(const lm_lane *lane, const ait_generation *event) {
  const ait_request *r = &lane->request->options;
  if (r->on_event) r->on_event(r->ctx, event);
}

void lm_tell_end(ait_engine *e, lm_request *request, uint32_t choice, ait_finish finish, const char *error) {
  AIT_UNUSED(e);
  ait_generation event = {.request = request->id,
                          .choice = choice,
                          .token = -1,
                          .text = "",
                          .logprob = NAN,
                          .finish = finish,
                          .error = error,
                          .prompt_tokens = (uint32_t)request->options.token_count};
  if (request->options.on_event) request->options.on_event(request->options.ctx, &event);
}

/* A piece of text on its way out; *hit: a stop string begins behind it. */
static ait_status through_stops(lm_lane *lane, ait_generation *event, bool *hit) {
  *hit = false;
  return lane->stops ? lm_stops_push(lane->stops, event->text, event->text_size, &event->text, &event->text_size, hit) : AIT_OK;
}

static ait_status tell_token(const ait_engine *e, lm_lane *lane, const lm_drawn *d) {
  ait_generation event = event_of(lane);
  bool hit = false;
  event.token = d->token;
  event.logprob = d->logprob;
  event.top = d->top;
  event.top_count = d->top_count;
  if (e->tokenizer) {
    AIT_TRY(ait_text_stream_push(lane->stream, d->token, &event.text, &event.text_size));
    AIT_TRY(through_stops(lane, &event, &hit));
  }
  if (hit) lane->finish = event.finish = AIT_FINISH_STOP;
  tell(lane, &event);
  lane->ended = hit;
  return AIT_OK;
}

/* What the stream and the stop strings held back, and the end. */
static ait_status tell_rest(const ait_engine *e, lm_lane *lane) {
  ait_generation event = event_of(lane);
  bool hit = false;
  if (e->tokenizer) {
    AIT_TRY(ait_text_stream_finish(lane->stream, &event.text, &event.text_size));
    AIT_TRY(through_stops(lane, &event, &hit));
    if (lane->stops && !hit) {
      if (event.text_size > 0) tell(lane, &event);
      lm_stops_finish(lane->stops, &event.text, &event.text_size);
    }
  }
  event.finish = hit ? AIT_FINISH_STOP : lane->finish;
  if (event.finish == AIT_FINISH_ERROR) event.error = "the model's logits are no numbers";
  tell(lane, &event);
  return lane->ended = true, AIT_OK;
}

static ait_status tell_lane(ait_engine *e, lm_lane *lane) {
  for (int32_t i = 0; i < lane->drawn_count && !lane->ended; ++i) AIT_TRY(tell_token(e, lane, &lane->drawn[i]));
  lane->drawn_count = 0;
  if (lane->finish != AIT_FINISH_NONE && !lane->ended) AIT_TRY(tell_rest(e, lane));
  return AIT_OK;
}

ait_status lm_tell(ait_engine *e) {
  ait_status status = AIT_OK;
  for (int32_t i = 0; i < e->lane_count; ++i) {
    lm_lane *lane = &e->lanes[i];
    if (!lane->request || lane->ended) continue;
    if (status == AIT_OK) status = tell_lane(e, lane);
    if (lane->ended && !(e->in_flight && lane->rows > 0)) lm_lane_free(e, lane);
  }
  return status;
}
