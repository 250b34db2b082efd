/* Which rows a step computes. Lanes that decode come first, then prompts in the order of their arrival, cut to what is left of the budget;
 * then what waits, as lanes and pages allow. When pages run out the youngest lane loses its own and is computed again later. */
#include "llm/engine.h"

static int32_t left_of(const lm_lane *lane) { return lane->count - lane->past; }
static bool at_work(const lm_lane *lane) { return lane->request && lane->finish == AIT_FINISH_NONE; }

/* ---- lanes and pages -----------------------------------------------------------------------------------------------------------------*/
void lm_lane_stop(ait_engine *e, lm_lane *lane) {
  lm_chain_release(&e->cache, &lane->chain);
  lm_slot_give(&e->cache, lane->slot);
  lm_slot_give(&e->cache, lane->spare);
  lane->slot = lane->spare = -1;
  lane->past = 0;
  lane->started = false;
  lane->draft_count = 0;
}

static lm_lane *youngest(const ait_engine *e) {
  lm_lane *found = NULL;
  for (int32_t i = 0; i < e->lane_count; ++i) {
    lm_lane *l = &e->lanes[i];
    if (at_work(l) && l->started && l->rows == 0 && (!found || l->order > found->order)) found = l;
  }
  return found;
}

/* Pages up to `end`, taken from younger lanes when need be. false: the lane itself is the youngest, and waits. */
static bool reserve(ait_engine *e, lm_lane *lane, int32_t end) {
  while (!lm_chain_reserve(&e->cache, &lane->chain, end)) {
    lm_lane *victim = youngest(e);
    if (!victim || victim->order < lane->order || victim == lane) return false;
    lm_lane_stop(e, victim);
    e->stats.preemptions++;
  }
  return true;
}

/* The encoder runs once for each answer, and for one of them in a step while others wait for their tokens. */
static bool encode_lane(ait_engine *e, lm_lane *lane) {
  if (!e->has_memory || lane->encoded) return true;
  if (e->failure || (e->encoded > 0 && e->token_count > 0)) return false;
  e->encoded++;
  e->failure = e->model.encode(e->model.ctx, (int32_t)(lane - e->lanes), &lane->request->source);
  return lane->encoded = e->failure == AIT_OK;
}

/* The prefix that is there already, and a slot. */
static bool start_lane(ait_engine *e, lm_lane *lane) {
  int32_t snapshot = -1;
  if (lane->started) return true;
  if (!encode_lane(e, lane)) return false;
  if (e->has_slots) {
    bool spare = e->options.speculation != AIT_SPECULATE_NONE;
    lane->slot = lm_slot_take(&e->cache);
    lane->spare = spare && lane->slot >= 0 ? lm_slot_take(&e->cache) : -1;
    if (lane->slot < 0 || (spare && lane->spare < 0)) return lm_lane_stop(e, lane), false;
  }
  lane->chain.is_long = e->model.info->switch_at > 0 && lane->count > e->model.info->switch_at;
  lane->past = e->model.info->cached ? lm_chain_match(&e->cache, &lane->chain, lane->tokens, lane->count, &snapshot) : 0;
  if (snapshot >= 0) {
    ait_status status = e->model.copy(e->model.ctx, e->slot_group, snapshot, lane->slot);
    if (status != AIT_OK) { /* then from the beginning */
      ait_status_ignore(status);
      lm_chain_release(&e->cache, &lane->chain);
      lane->past = 0;
    }
  }
  if (lane->count == lane->prompt) {
    lane->reused = lane->past;
    e->stats.reused_tokens += (uint64_t)lane->past;
  }
  return lane->started = true;
}

/* ---- rows ----------------------------------------------------------------------------------------------------------------------------*/
static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

static void add_lane(ait_engine *e, lm_lane *lane, int32_t rows) {
  ait_lm_sequence *s = &e->sequences[e->sequence_count];
  lane->rows = rows;
  lane->first_row = e->token_count;
  lane->first_logits = e->row_count;
  *s = (ait_lm_sequence){.first = e->token_count,
                         .count = rows,
                         .past = lane->past,
                         .slot = e->has_memory ? (int32_t)(lane - e->lanes) : lane->slot,
                         .page_count = lane->chain.count,
                         .is_long = lane->chain.is_long};
  for (uint32_t g = 0; g < e->cache.shape.groups; ++g) s->pages[e->group_of[g]] = lane->chain.pages[g];
  int32_t known = least(rows, left_of(lane));
  memcpy(e->tokens + e->token_count, lane->tokens + lane->past, (size_t)known * sizeof *e->tokens);
  memcpy(e->tokens + e->token_count + known, lane->draft, (size_t)(rows - known) * sizeof *e->tokens);
  e->token_count += rows;
  if (lane->past + known == lane->count) /* the last token's row, and one for each proposal behind it */
    for (int32_t i = known - 1; i < rows; ++i) e->rows[e->row_count++] = lane->first_row + i;
  lane->logit_rows = e->row_count - lane->first_logits;
  e->members[e->sequence_count++] = lane;
}

/* How much of a prompt comes next: a chunk ends where a snapshot is wanted. */
static int32_t chunk(const ait_engine *e, const lm_lane *lane, int32_t room) {
  int32_t rows = least(left_of(lane), room), boundary = (lane->count - 1) / e->block * e->block;
  if (e->has_slots && e->cache.shape.keeps && lane->past < boundary) rows = least(rows, boundary - lane->past);
  return !e->model.info->cached && rows < left_of(lane) ? 0 : rows;
}

/* Tokens up to which what the lane has computed is good. */
static int32_t good_until(const ait_engine *e, const lm_lane *lane) {
  int64_t last = e->model.info->switch_at;
  return last > 0 && lane->started && !lane->chain.is_long ? least(e->max_len, (int32_t)last) : e->max_len;
}

static void schedule_lane(ait_engine *e, lm_lane *lane) {
  int32_t room = e->options.max_tokens - e->token_count, left;
  if (lane->count > good_until(e, lane)) lm_lane_stop(e, lane); /* it has become a long one: all of it is computed anew */
  if (!start_lane(e, lane)) return;
  left = left_of(lane);
  int32_t drafts = left == 1 ? least(lane->draft_count, room - 1) : 0;
  drafts = least(drafts, good_until(e, lane) - lane->count);
  drafts = drafts < 0 ? 0 : drafts;
  int32_t rows = left == 1 ? least(1, room) + drafts : chunk(e, lane, room);
  if (rows <= 0 || e->row_count + 1 + drafts > e->max_rows) return;
  if (drafts > 0 && !lm_chain_reserve(&e->cache, &lane->chain, lane->past + rows)) rows -= drafts, drafts = 0;
  lane->draft_count = drafts;
  if (!reserve(e, lane, lane->past + rows)) return;
  add_lane(e, lane, rows);
}

/* Lanes in the order of arrival; there are few. */
static lm_lane *next_lane(const ait_engine *e, uint64_t after, bool decodes) {
  lm_lane *found = NULL;
  for (int32_t i = 0; i < e->lane_count; ++i) {
    lm_lane *l = &e->lanes[i];
    bool fits = at_work(l) && l->rows == 0 && l->order > after && (l->started && left_of(l) == 1) == decodes;
    if (fits && (!found || l->order < found->order)) found = l;
  }
  return found;
}

void lm_schedule(ait_engine *e) {
  e->token_count = e->sequence_count = e->row_count = e->encoded = 0;
  for (int32_t i = 0; i < e->lane_count; ++i) e->lanes[i].rows = e->lanes[i].logit_rows = 0;
  for (int decodes = 1; decodes >= 0; --decodes) {
    uint64_t after = 0;
    for (lm_lane *l; e->token_count < e->options.max_tokens && (l = next_lane(e, after, decodes == 1)) != NULL;) {
      after = l->order;
      schedule_lane(e, l);
    }
  }
}

/* ---- admission -----------------------------------------------------------------------------------------------------------------------*/
/* Answers of one request share their prompt's cache: the later ones wait until the first has computed it. */
static bool waits_for_first(const ait_engine *e, const lm_waiting *w) {
  if (w->choice == 0 || !e->cache.shape.keeps) return false;
  for (int32_t i = 0; i < e->lane_count; ++i) {
    const lm_lane *l = &e->lanes[i];
    if (l->request == w->request && l->choice == 0) return l->count == l->prompt;
  }
  return false;
}

static int64_t blocks_wanted(const ait_engine *e, uint32_t g, size_t tokens) {
  int64_t blocks = (int64_t)(tokens / (size_t)e->block) + 1, window = e->cache.shape.window[g];
  int64_t most = window > 0 ? (window + e->options.max_tokens) / e->block + 2 : blocks;
  return blocks < most ? blocks : most;
}

/* Room for the whole prompt beside those that have not got their pages yet, so that what is admitted does not push out what runs. */
static bool has_room(const ait_engine *e, const lm_request *r) {
  for (uint32_t g = 0; g < e->cache.shape.groups; ++g) {
    int64_t wanted = blocks_wanted(e, g, r->options.token_count);
    bool alone = true;
    for (int32_t i = 0; i < e->lane_count; ++i) {
      const lm_lane *l = &e->lanes[i];
      if (!at_work(l)) continue;
      alone = false;
      int64_t more = blocks_wanted(e, g, (size_t)l->count) - l->chain.count;
      wanted += more > 0 ? more : 0;
    }
    if (!alone && lm_cache_available(&e->cache, g) < wanted) return false;
  }
  return true;
}

static void fill_lane(ait_engine *e, lm_lane *lane, const lm_waiting *w) {
  const ait_request *r = &w->request->options;
  int64_t limit = r->max_tokens > 0 ? (int64_t)r->token_count + r->max_tokens : e->max_len;
  lane->request = w->request;
  lane->choice = w->choice;
  lane->stops = w->request->stops ? w->request->stops[w->choice] : NULL;
  lane->order = ++e->next_order;
  lane->prompt = lane->count = (int32_t)r->token_count;
  lane->limit = limit < e->max_len ? (int32_t)limit : e->max_len;
  lane->past = lane->reused = lane->rows = lane->draft_count = lane->draft_past = lane->drawn_count = 0;
  lane->slot = lane->spare = -1;
  lane->started = lane->encoded = false;
  lane->finish = AIT_FINISH_NONE;
  memcpy(lane->tokens, r->tokens, r->token_count * sizeof *lane->tokens);
  if (w->choice == 0) e->stats.prompt_tokens += r->token_count;
}

void lm_admit(ait_engine *e) {
  for (int32_t i = 0; e->queue && i < e->lane_count; ++i) {
    lm_lane *lane = &e->lanes[i];
    lm_waiting *w = e->queue;
    if (lane->request) continue;
    if (waits_for_first(e, w) || !has_room(e, w->request)) return;
    fill_lane(e, lane, w);
    e->queue = w->next;
    if (!e->queue) e->queue_end = &e->queue;
    e->waiting--;
    ait_free(e->allocator, w, sizeof *w);
  }
}
