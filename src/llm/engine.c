/* Making an engine, taking requests, and the way of a step. */
#include "llm/encoder.h"
#include "llm/engine.h"

void ait_engine_options_init(ait_engine_options *o) {
  *o = (ait_engine_options){.struct_size = sizeof *o, .allocator = ait_allocator_default()};
}
void ait_request_init(ait_request *r) {
  *r = (ait_request){.struct_size = sizeof *r, .logprobs = -1};
  ait_sampling_init(&r->sampling);
}

const char *ait_finish_text(ait_finish finish) {
  static const char *const texts[] = {"", "stop", "length", "cancelled", "error"};
  return (size_t)finish < AIT_COUNT(texts) ? texts[finish] : "";
}

/* ---- sizes ---------------------------------------------------------------------------------------------------------------------------*/
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Blocks of a group that a sequence of `tokens` holds at once. */
static int64_t group_blocks(const ait_engine *e, uint32_t g, int64_t tokens) {
  int64_t blocks = (tokens + e->block - 1) / e->block, window = e->model.info->groups[g].window;
  return window > 0 ? least(blocks, (window + e->options.max_tokens) / e->block + 2) : blocks;
}

/* Pages of each group and slots: cache_bytes shared out so that each group holds the same number of tokens. */
static ait_status choose_shape(ait_engine *e, lm_cache_shape *s) {
  const ait_lm_info *info = e->model.info;
  int64_t lanes = e->lane_count, tokens = lanes * least(1024, e->max_len);
  bool speculates = e->options.speculation != AIT_SPECULATE_NONE;
  size_t slot_bytes = 0, each = 0, one = 0;
  *s = (lm_cache_shape){.block = e->block,
                        .keeps = !e->options.no_prefix_reuse && info->cached &&
                                 !info->has_source}; /* what a prefix is depends on the encoder's input */
  s->max_blocks = (int32_t)((e->max_len + e->block - 1) / e->block + 1);
  if (tokens < e->max_len) tokens = e->max_len;
  for (uint32_t g = 0; g < info->group_count; ++g) {
    if (info->groups[g].kind == AIT_LM_SLOTS) {
      e->has_slots = true;
      e->slot_group = g;
      s->slots = (int32_t)(lanes * (speculates ? 2 : 1) + (s->keeps ? 2 * lanes + 8 : 0));
      slot_bytes = (size_t)s->slots * info->groups[g].unit_bytes;
    } else if (info->groups[g].kind == AIT_LM_MEMORY) {
      e->has_memory = true;
      slot_bytes = (size_t)lanes * info->groups[g].unit_bytes;
    } else {
      e->group_of[s->groups] = g;
      s->window[s->groups] = info->groups[g].window;
      one += (size_t)group_blocks(e, g, e->max_len) * info->groups[g].unit_bytes;
      each += info->groups[g].unit_bytes;
      s->groups++;
    }
  }
  int64_t blocks = (tokens + e->block - 1) / e->block + 1;
  if (e->options.cache_bytes > 0 && each > 0) {
    if (e->options.cache_bytes < one + slot_bytes)
      return ait_error_hint(
          ait_error(AIT_CODE_LIMIT, "%zu bytes of cache do not hold one sequence of %d tokens", e->options.cache_bytes, e->max_len),
          "that takes %zu; or a smaller max_seq", one + slot_bytes);
    blocks = (int64_t)((e->options.cache_bytes - slot_bytes) / each);
  }
  for (uint32_t g = 0; g < s->groups; ++g) {
    int64_t need = group_blocks(e, e->group_of[g], e->max_len) + 1;
    s->pages[g] = (int32_t)least(blocks > need ? blocks : need, INT32_MAX / 2);
  }
  return AIT_OK;
}

/* ---- making --------------------------------------------------------------------------------------------------------------------------*/
static ait_status make_lanes(ait_engine *e) {
  e->lanes = ait_alloc_zero(e->allocator, (size_t)e->lane_count * sizeof *e->lanes, _Alignof(lm_lane));
  if (!e->lanes) return AIT_OOM();
  for (int32_t i = 0; i < e->lane_count; ++i) {
    lm_lane *l = &e->lanes[i];
    l->slot = l->spare = -1;
    l->tokens = ait_alloc(e->allocator, ((size_t)e->max_len + 1) * sizeof *l->tokens, 16);
    if (!l->tokens) return AIT_OOM();
    AIT_TRY(lm_chain_create(&e->cache, &l->chain));
    if (e->tokenizer) AIT_TRY(ait_text_stream_create(e->tokenizer, AIT_DECODE_SKIP_SPECIAL, e->allocator, &l->stream));
  }
  return AIT_OK;
}

static ait_status make_batch(ait_engine *e) {
  size_t vocab = (size_t)e->model.info->vocab, lanes = (size_t)e->lane_count;
  e->tokens = ait_alloc(e->allocator, (size_t)e->options.max_tokens * sizeof *e->tokens, 16);
  e->rows = ait_alloc(e->allocator, (size_t)e->max_rows * sizeof *e->rows, 16);
  e->sequences = ait_alloc_zero(e->allocator, lanes * sizeof *e->sequences, 16);
  e->members = ait_alloc_zero(e->allocator, lanes * sizeof *e->members, 16);
  e->logits = ait_alloc(e->allocator, (size_t)e->max_rows * vocab * sizeof *e->logits, 64);
  if (!e->tokens || !e->rows || !e->sequences || !e->members || !e->logits) return AIT_OOM();
  return lm_sampler_create(e->allocator, e->model.info->vocab, &e->sampler);
}

/* Options and sizes that follow from them; e->model, e->tokenizer and e->draft.model are set. */
ait_status lm_engine_plan(ait_engine *e, lm_cache_shape *shape) {
  ait_engine_options *o = &e->options;
  const ait_lm_info *info = e->model.info;
  e->allocator = o->allocator;
  if (o->max_tokens <= 0) o->max_tokens = 512;
  if (o->max_sequences <= 0) o->max_sequences = 16;
  if (o->max_sequences > 256) o->max_sequences = 256;
  if (o->draft_tokens <= 0) o->draft_tokens = 4;
  if (o->draft_tokens > LM_MAX_DRAFT) o->draft_tokens = LM_MAX_DRAFT;
  if (!info->cached) o->speculation = AIT_SPECULATE_NONE;
  e->max_len = (int32_t)least(o->max_seq > 0 ? o->max_seq : info->max_seq, info->max_seq);
  if (e->draft.model.info) e->max_len = (int32_t)least(e->max_len, e->draft.model.info->max_seq);
  if (e->max_len < 2) return ait_error(AIT_CODE_INVALID_ARGUMENT, "sequences of at most %d tokens", e->max_len);
  if (!info->cached && o->max_tokens < e->max_len) o->max_tokens = e->max_len; /* a sequence is computed whole */
  e->block = info->page_size > 0 ? (int32_t)info->page_size : 64;
  e->lane_count = o->max_sequences;
  for (uint32_t g = 0; g < info->group_count && o->cache_bytes > 0; ++g) /* half of the cache at most for what the encoder gives */
    while (info->groups[g].kind == AIT_LM_MEMORY && e->lane_count > 1 &&
           (size_t)e->lane_count * info->groups[g].unit_bytes > o->cache_bytes / 2)
      --e->lane_count;
  e->max_rows = e->lane_count * (o->speculation == AIT_SPECULATE_NONE ? 1 : 1 + o->draft_tokens);
  return choose_shape(e, shape);
}

ait_status lm_engine_build(ait_engine *e, const lm_cache_shape *shape) {
  AIT_TRY(lm_cache_create(e->allocator, shape, &e->cache));
  AIT_TRY(make_lanes(e));
  AIT_TRY(make_batch(e));
  if (e->options.speculation == AIT_SPECULATE_DRAFT) AIT_TRY(lm_draft_create(e));
  if (!e->options.no_overlap && e->lane_count > 1) AIT_TRY(lm_worker_create(e->allocator, &e->worker));
  return AIT_OK;
}

ait_engine *lm_engine_new(const ait_engine_options *options) {
  ait_engine_options o;
  ait_engine_options_init(&o);
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ait_engine *e = ait_alloc_zero(o.allocator, sizeof *e, _Alignof(ait_engine));
  if (!e) return NULL;
  e->options = o;
  e->allocator = o.allocator;
  e->queue_end = &e->queue;
  e->inbox_end = &e->inbox;
  pthread_mutex_init(&e->lock, NULL);
  return e;
}

/* ---- requests ------------------------------------------------------------------------------------------------------------------------*/
void lm_request_drop(ait_engine *e, lm_request *r) {
  if (--r->users > 0) return;
  pthread_mutex_lock(&e->lock);
  *r->link = r->next;
  if (r->next) r->next->link = r->link;
  pthread_mutex_unlock(&e->lock);
  uint32_t n = r->options.n;
  for (uint32_t i = 0; r->stops && i < n; ++i) lm_stops_destroy(r->stops[i]);
  ait_free(e->allocator, r->stops, n * sizeof *r->stops);
  ait_tensor_release(&r->source);
  ait_free(e->allocator, r, r->bytes);
}

static ait_status check_request(const ait_engine *e, const ait_request *r) {
  int64_t vocab = e->model.info->vocab;
  if (r->token_count == 0) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the prompt has no tokens");
  if (e->has_memory && !r->source) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has an encoder: a request needs its input");
  if (!e->has_memory && r->source) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has no encoder that could take an input");
  if (r->source) AIT_TRY(lm_check_source(e->model.info, r->source));
  if (r->token_count > (size_t)e->max_len - 1)
    return ait_error_hint(ait_error(AIT_CODE_LIMIT, "the prompt has %zu tokens, the longest sequence %d", r->token_count, e->max_len),
                          "a shorter prompt, or an artifact with a larger --max-seq");
  for (size_t i = 0; i < r->token_count; ++i)
    if (r->tokens[i] < 0 || r->tokens[i] >= vocab)
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "token %d of the prompt, number %zu, is not among the model's %lld", r->tokens[i], i,
                       (long long)vocab);
  if (r->n > 1024) return ait_error(AIT_CODE_INVALID_ARGUMENT, "%u answers", r->n);
  if (r->logprobs > LM_MAX_LOGPROBS)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "%d log probabilities, at most %d", r->logprobs, LM_MAX_LOGPROBS);
  if (r->stop_count > 0 && !e->tokenizer)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "stop strings need a tokenizer, and the file has none");
  return lm_sampling_check(&r->sampling, vocab);
}

static void *tail_copy(char **at, const void *data, size_t bytes) {
  void *to = *at;
  if (bytes > 0) memcpy(to, data, bytes);
  *at += ait_align_up(bytes, 16);
  return to;
}

static ait_status copy_request(ait_engine *e, const ait_request *from, lm_request **out) {
  size_t tokens = from->token_count * sizeof(int32_t), stops = from->stop_token_count * sizeof(int32_t),
         bias = from->sampling.bias_count * 4;
  size_t bytes = ait_align_up(sizeof(lm_request), 16) + ait_align_up(tokens, 16) + ait_align_up(stops, 16) + 2 * ait_align_up(bias, 16);
  lm_request *r = ait_alloc_zero(e->allocator, bytes, 16);
  if (!r) return AIT_OOM();
  char *at = (char *)r + ait_align_up(sizeof *r, 16);
  r->bytes = bytes;
  r->options = *from;
  if (r->options.n == 0) r->options.n = 1;
  r->options.tokens = tail_copy(&at, from->tokens, tokens);
  r->options.stop_tokens = tail_copy(&at, from->stop_tokens, stops);
  r->options.sampling.bias_tokens = tail_copy(&at, from->sampling.bias_tokens, bias);
  r->options.sampling.bias = tail_copy(&at, from->sampling.bias, bias);
  r->options.stops = NULL;
  *out = r;
  if (from->source) AIT_TRY(ait_tensor_cast(e->allocator, from->source, from->source->dtype, &r->source));
  r->options.source = from->source ? &r->source : NULL;
  if (from->stop_count == 0) return AIT_OK;
  r->stops = ait_alloc_zero(e->allocator, r->options.n * sizeof *r->stops, 16);
  ait_status status = r->stops ? AIT_OK : AIT_OOM();
  for (uint32_t i = 0; i < r->options.n && status == AIT_OK; ++i)
    status = lm_stops_create(e->allocator, from->stops, from->stop_count, &r->stops[i]);
  return status;
}

static void free_request(ait_engine *e, lm_request *r) { /* that nobody has seen */
  for (uint32_t i = 0; r && r->stops && i < r->options.n; ++i) lm_stops_destroy(r->stops[i]);
  if (r) ait_free(e->allocator, r->stops, r->options.n * sizeof *r->stops);
  if (r) ait_tensor_release(&r->source);
  if (r) ait_free(e->allocator, r, r->bytes);
}

static ait_status make_waiting(ait_engine *e, lm_request *r, lm_waiting **out_first, lm_waiting **out_last) {
  *out_first = NULL;
  for (uint32_t i = r->options.n; i-- > 0;) {
    lm_waiting *w = ait_alloc_zero(e->allocator, sizeof *w, _Alignof(lm_waiting));
    if (!w) {
      for (lm_waiting *next; *out_first; *out_first = next)
        next = (*out_first)->next, ait_free(e->allocator, *out_first, sizeof **out_first);
      return AIT_OOM();
    }
    *w = (lm_waiting){*out_first, r, i};
    if (!*out_first) *out_last = w;
    *out_first = w;
  }
  r->users = r->options.n;
  return AIT_OK;
}

ait_status ait_engine_submit(ait_engine *e, const ait_request *request, uint64_t *out_id) {
  ait_request full;
  lm_request *r = NULL;
  lm_waiting *first, *last = NULL;
  ait_request_init(&full);
  memcpy(&full, request, request->struct_size < sizeof full ? request->struct_size : sizeof full);
  if (full.token_count == 0 && e->has_memory) full.tokens = e->model.info->start, full.token_count = e->model.info->start_count;
  AIT_TRY(check_request(e, &full));
  ait_status status = copy_request(e, &full, &r);
  if (status == AIT_OK) status = make_waiting(e, r, &first, &last);
  if (status != AIT_OK) return free_request(e, r), status;
  pthread_mutex_lock(&e->lock);
  *out_id = r->id = ++e->next_id;
  r->next = e->requests;
  r->link = &e->requests;
  if (r->next) r->next->link = &r->next;
  e->requests = r;
  *e->inbox_end = first;
  e->inbox_end = &last->next;
  pthread_mutex_unlock(&e->lock);
  return AIT_OK;
}

void ait_engine_cancel(ait_engine *e, uint64_t id) {
  pthread_mutex_lock(&e->lock);
  for (lm_request *r = e->requests; r; r = r->next)
    if (r->id == id) {
      atomic_store(&r->cancelled, true);
      e->any_cancelled = true;
    }
  pthread_mutex_unlock(&e->lock);
}

/* ---- a step --------------------------------------------------------------------------------------------------------------------------*/
/* What came in since the last step; *out_cancelled: some request was cancelled. */
static bool take_inbox(ait_engine *e) {
  pthread_mutex_lock(&e->lock);
  bool cancelled = e->any_cancelled;
  e->any_cancelled = false;
  if (e->inbox) {
    for (lm_waiting *w = e->inbox; w; w = w->next) e->waiting++;
    *e->queue_end = e->inbox;
    e->queue_end = e->inbox_end;
    e->inbox = NULL;
    e->inbox_end = &e->inbox;
  }
  for (lm_request *r = cancelled ? e->requests : NULL; r; r = r->next)
    for (int32_t i = 0; atomic_load(&r->cancelled) && i < e->lane_count; ++i)
      if (e->lanes[i].request == r && e->lanes[i].finish == AIT_FINISH_NONE) e->lanes[i].finish = AIT_FINISH_CANCELLED;
  pthread_mutex_unlock(&e->lock);
  return cancelled;
}

/* Ends what waits: all of it, or what was cancelled. */
static void end_waiting(ait_engine *e, bool all, ait_finish finish, const char *error) {
  lm_waiting **at = &e->queue;
  while (*at) {
    lm_waiting *w = *at;
    if (!all && !atomic_load(&w->request->cancelled)) {
      at = &w->next;
      continue;
    }
    *at = w->next;
    e->waiting--;
    lm_tell_end(e, w->request, w->choice, finish, error);
    lm_request_drop(e, w->request);
    ait_free(e->allocator, w, sizeof *w);
  }
  e->queue_end = at;
}

static ait_status run_model(void *ctx) {
  ait_engine *e = ctx;
  double start = ait_clock_seconds();
  const ait_lm_batch batch = {.tokens = e->tokens,
                              .token_count = e->token_count,
                              .sequences = e->sequences,
                              .sequence_count = e->sequence_count,
                              .rows = e->rows,
                              .row_count = e->row_count,
                              .logits = e->logits};
  ait_status status = e->model.run(e->model.ctx, &batch);
  e->stats.model_seconds += ait_clock_seconds() - start;
  return status;
}

/* States that proposals will move on, kept so that they can be taken back. */
static ait_status keep_states(ait_engine *e) {
  for (int32_t i = 0; e->has_slots && i < e->sequence_count; ++i) {
    lm_lane *l = e->members[i];
    if (l->logit_rows > 1) AIT_TRY(e->model.copy(e->model.ctx, e->slot_group, l->slot, l->spare));
  }
  return AIT_OK;
}

/* Text takes microseconds: a thread is worth its waking when there is more than one answer to tell. */
static ait_status run_and_tell(ait_engine *e) {
  if (!e->worker || e->sequence_count < 4) {
    AIT_TRY(run_model(e));
    return AIT_OK;
  }
  e->in_flight = true;
  lm_worker_start(e->worker, run_model, e);
  ait_status told = lm_tell(e);
  lm_admit(e);
  ait_status status = lm_worker_wait(e->worker);
  e->in_flight = false;
  return ait_status_join(status, told);
}

static ait_status step(ait_engine *e) {
  if (take_inbox(e)) end_waiting(e, false, AIT_FINISH_CANCELLED, NULL);
  AIT_TRY(lm_tell(e)); /* what was cancelled, and what the last step drew when nothing ran beside it */
  lm_admit(e);
  AIT_TRY(lm_propose(e));
  lm_schedule(e);
  if (e->failure) {
    ait_status failure = e->failure;
    e->failure = AIT_OK;
    return failure;
  }
  if (e->sequence_count == 0) return AIT_OK;
  AIT_TRY(keep_states(e));
  e->stats.steps++;
  e->stats.step_tokens += (uint64_t)e->token_count;
  AIT_TRY(run_and_tell(e));
  AIT_TRY(lm_take_results(e));
  return e->worker && e->sequence_count >= 4 ? AIT_OK : lm_tell(e);
}

/* After an error of the machine: everything ends, and the engine is as new. */
static void give_up(ait_engine *e, const char *why) {
  end_waiting(e, true, AIT_FINISH_ERROR, why);
  for (int32_t i = 0; i < e->lane_count; ++i) {
    lm_lane *l = &e->lanes[i];
    if (!l->request) continue;
    if (!l->ended) lm_tell_end(e, l->request, l->choice, AIT_FINISH_ERROR, why);
    lm_lane_free(e, l);
  }
}

static bool is_busy(ait_engine *e) {
  bool busy = e->queue != NULL;
  for (int32_t i = 0; i < e->lane_count; ++i) busy |= e->lanes[i].request != NULL;
  pthread_mutex_lock(&e->lock);
  busy |= e->inbox != NULL;
  pthread_mutex_unlock(&e->lock);
  return busy;
}

ait_status ait_engine_step(ait_engine *e, bool *out_busy) {
  double start = ait_clock_seconds();
  ait_status status = step(e);
  if (status != AIT_OK) give_up(e, ait_status_message(status));
  e->stats.step_seconds += ait_clock_seconds() - start;
  *out_busy = is_busy(e);
  return status;
}

ait_status ait_engine_run(ait_engine *e) {
  for (bool busy = true; busy;) AIT_TRY(ait_engine_step(e, &busy));
  return AIT_OK;
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------------------*/
void lm_engine_free(ait_engine *e) {
  ait_allocator a = e->allocator;
  lm_worker_destroy(e->worker);
  take_inbox(e);
  for (lm_waiting *w = e->queue, *next; w; w = next) {
    next = w->next;
    lm_request_drop(e, w->request);
    ait_free(a, w, sizeof *w);
  }
  for (int32_t i = 0; e->lanes && i < e->lane_count; ++i) {
    lm_lane *l = &e->lanes[i];
    if (l->request) lm_request_drop(e, l->request);
    ait_free(a, l->tokens, ((size_t)e->max_len + 1) * sizeof *l->tokens);
    if (l->chain.blocks) lm_chain_destroy(&e->cache, &l->chain);
    ait_text_stream_destroy(l->stream);
  }
  ait_free(a, e->lanes, (size_t)e->lane_count * sizeof *e->lanes);
  ait_free(a, e->tokens, (size_t)e->options.max_tokens * sizeof *e->tokens);
  ait_free(a, e->rows, (size_t)e->max_rows * sizeof *e->rows);
  ait_free(a, e->sequences, (size_t)e->lane_count * sizeof *e->sequences);
  ait_free(a, e->members, (size_t)e->lane_count * sizeof *e->members);
  if (e->model.info) ait_free(a, e->logits, (size_t)e->max_rows * (size_t)e->model.info->vocab * sizeof *e->logits);
  lm_sampler_destroy(&e->sampler);
  lm_draft_destroy(e);
  if (e->cache.blocks) lm_cache_destroy(&e->cache);
  pthread_mutex_destroy(&e->lock);
  ait_free(a, e, sizeof *e);
}

ait_engine_stats ait_engine_statistics(const ait_engine *e) {
  ait_engine_stats s = e->stats;
  s.bytes = lm_cache_bytes(&e->cache) + (e->context ? ait_lm_context_bytes(e->context) : 0) +
            (e->draft_context ? ait_lm_context_bytes(e->draft_context) : 0);
  s.waiting = e->waiting;
  s.running = 0;
  for (int32_t i = 0; i < e->lane_count; ++i) s.running += e->lanes[i].request != NULL;
  for (uint32_t g = 0; g < e->cache.shape.groups; ++g) {
    uint32_t pages = (uint32_t)e->cache.shape.pages[g];
    if (g > 0 && pages >= s.pages) continue;
    s.pages = pages;
    s.free_pages = (uint32_t)lm_cache_available(&e->cache, g);
  }
  return s;
}
