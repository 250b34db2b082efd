/* The engine's insides: lanes (answers at work), the queue, and a step's batch. Public: ait/llm.h.
 *
 * A step: answers whose tokens are all known but the last ones are rows of one batch; where a lane's last token is among them, the next
 * is drawn from its logits. A lane that decodes has one token to compute (and those that were proposed by speculation), a prompt has
 * many and may be cut. That is the only difference between prefill and decode. */
#ifndef AIT_SRC_LLM_ENGINE_H
#define AIT_SRC_LLM_ENGINE_H

#include "llm/cache.h"
#include "llm/sampler.h"
#include "llm/stops.h"
#include <ait/llm.h>
#include <pthread.h>
#include <stdatomic.h>

/* What the engine runs: a context of step.h, or a made-up model in tests. */
typedef struct lm_model {
  void *ctx;
  const ait_lm_info *info;
  ait_status (*run)(void *ctx, const ait_lm_batch *batch);
  ait_status (*copy)(void *ctx, uint32_t group, int32_t from, int32_t to);
  ait_status (*encode)(void *ctx, int32_t unit, const ait_tensor *source); /* models with an encoder */
} lm_model;

enum { LM_MAX_DRAFT = 16, LM_MAX_LOGPROBS = 20 };

/* A request with its answers. Counted: by each waiting answer and each lane. */
typedef struct lm_request {
  uint64_t id;
  struct lm_request *next, **link; /* all that are not done */
  ait_request options;             /* pointers into this allocation */
  size_t bytes;                    /* of this allocation */
  uint32_t users;
  atomic_bool cancelled; /* by any thread */
  lm_stops **stops;      /* one for each answer; NULL: no stop strings */
  ait_tensor source;     /* of the encoder, owned; data NULL: none */
} lm_request;

typedef struct lm_waiting {
  struct lm_waiting *next;
  lm_request *request;
  uint32_t choice;
} lm_waiting;

/* A token that was drawn, until its text has been told. */
typedef struct lm_drawn {
  int32_t token;
  float logprob;
  uint32_t top_count;
  ait_token_logprob top[LM_MAX_LOGPROBS];
} lm_drawn;

typedef struct lm_lane {
  lm_request *request; /* NULL: free */
  uint32_t choice;
  uint64_t order;               /* of arrival: the youngest gives way first */
  int32_t *tokens;              /* prompt and answer; max_seq + 1 */
  int32_t prompt, count, limit; /* limit: where the answer ends at the latest */
  int32_t past;                 /* computed */
  int32_t reused;
  int32_t slot, spare; /* of the state; spare: copy before a speculative step. -1: none */
  lm_chain chain;
  int32_t draft[LM_MAX_DRAFT], draft_count;
  int32_t draft_past; /* tokens that the draft model holds */
  /* this step */
  int32_t rows, first_row; /* of the batch; 0 rows: not in it */
  int32_t first_logits, logit_rows;
  bool started; /* has pages, is scheduled */
  bool encoded; /* its unit of the memory holds what the encoder made of its request; kept when the lane gives way */
  ait_finish finish;
  /* text */
  ait_text_stream *stream;
  lm_stops *stops;                  /* the request's */
  bool ended;                       /* its end was told while the step still ran; freed after it */
  lm_drawn drawn[LM_MAX_DRAFT + 1]; /* drawn in the last step, not told yet */
  int32_t drawn_count;
} lm_lane;

typedef struct lm_draft { /* AIT_SPECULATE_DRAFT */
  lm_model model;
  int32_t blocks;                /* pages of a lane in each group */
  int32_t *pages;                /* 0, 1, 2 …: lane l has [l * blocks, (l + 1) * blocks) */
  float *logits, *probabilities; /* [lanes, vocab]; [lanes, draft_tokens, vocab] */
  ait_lm_sequence *sequences;
  int32_t *tokens, *rows, max_tokens;
} lm_draft;

struct ait_engine {
  ait_allocator allocator;
  ait_engine_options options;
  lm_model model;
  const ait_tokenizer *tokenizer;
  ait_llm *llm, *draft_llm;
  ait_lm_context *context, *draft_context;
  lm_cache cache;
  uint32_t group_of[AIT_LM_MAX_GROUPS]; /* the model's group of each of the cache's page groups */
  uint32_t slot_group;
  bool has_slots, has_memory; /* memory: lane i has unit i */
  int32_t encoded;            /* requests that this step's scheduling ran the encoder for */
  ait_status failure;         /* of the encoder, found when scheduling */
  int32_t max_len, block;     /* longest sequence; tokens of a page */

  lm_lane *lanes;
  int32_t lane_count;
  lm_draft draft;

  /* the step's batch */
  int32_t *tokens, *rows;
  ait_lm_sequence *sequences;
  lm_lane **members;
  float *logits;
  int32_t max_rows, token_count, sequence_count, row_count;
  lm_sampler sampler;

  /* shared with other threads */
  pthread_mutex_t lock;
  lm_waiting *inbox, **inbox_end;
  uint64_t next_id;
  bool any_cancelled;

  lm_waiting *queue, **queue_end;
  uint64_t next_order;
  uint32_t waiting;
  lm_request *requests;
  bool in_flight; /* the step runs */

  struct lm_worker *worker; /* overlap.c; NULL: none */
  ait_engine_stats stats;
};

/* llm.c */
ait_lm *lm_of(const ait_llm *llm);
/* engine.c */
ait_engine *lm_engine_new(const ait_engine_options *options); /* NULL: out of memory. Then e->model and e->tokenizer are set, */
ait_status lm_engine_plan(ait_engine *e, lm_cache_shape *shape) AIT_MUST_USE;        /* sizes follow, a context is made of them, */
ait_status lm_engine_build(ait_engine *e, const lm_cache_shape *shape) AIT_MUST_USE; /* and the rest */
void lm_engine_free(ait_engine *e);
void lm_request_drop(ait_engine *e, lm_request *request); /* one user less */

/* schedule.c */
void lm_schedule(ait_engine *e);                 /* fills the step's batch */
void lm_admit(ait_engine *e);                    /* free lanes take what waits */
void lm_lane_stop(ait_engine *e, lm_lane *lane); /* gives back what it holds of the cache */
/* rules.c: what a model with an encoder may say at the lane's next position; changes the row. */
void lm_apply_rules(const ait_engine *e, const lm_lane *lane, float *logits);
/* answers.c */
void lm_lane_free(ait_engine *e, lm_lane *lane);
ait_status lm_take_results(ait_engine *e) AIT_MUST_USE; /* after the run: draws, commits */
ait_status lm_tell(ait_engine *e) AIT_MUST_USE;         /* text and events of what was drawn in the step before */
void lm_tell_end(ait_engine *e, lm_request *request, uint32_t choice, ait_finish finish, const char *error); /* of one that never ran */
/* speculate.c */
/* May the first draft for a model of so many tokens? Errors: unsupported, invalid-argument. */
ait_status lm_draft_fits(const ait_lm_info *draft, int64_t vocab) AIT_MUST_USE;
ait_status lm_draft_create(ait_engine *e) AIT_MUST_USE;
void lm_draft_destroy(ait_engine *e);
ait_status lm_propose(ait_engine *e) AIT_MUST_USE; /* drafts for the lanes that decode */
/* Goes through the logits of a lane's rows and draws until a proposal is refused. Returns how many tokens it appended. */
int32_t lm_verify(ait_engine *e, lm_lane *lane);
/* answers.c: a token from one row; false: the logits are no numbers. */
bool lm_draw(ait_engine *e, const lm_lane *lane, const float *logits, int32_t *out);
/* Appends a token to the answer, with what is to be told of it. Sets lane->finish where it ends. */
void lm_append(ait_engine *e, lm_lane *lane, int32_t token, const float *logits);
/* overlap.c: a thread beside the caller's. */
ait_status lm_worker_create(ait_allocator a, struct lm_worker **out) AIT_MUST_USE;
void lm_worker_destroy(struct lm_worker *worker);
void lm_worker_start(struct lm_worker *worker, ait_status (*run)(void *ctx), void *ctx);
ait_status lm_worker_wait(struct lm_worker *worker) AIT_MUST_USE;

#endif
