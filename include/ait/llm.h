/* Language models: a deployed .ait, and an engine that runs many requests on it at once.
 *
 * An ait_llm is immutable and shared by threads. An engine belongs to one thread at a time, but for ait_engine_submit and
 * ait_engine_cancel, which any thread may call at any moment. Greedy results do not depend on what else the engine runs, on how prompts
 * are cut into steps, on the number of threads, on reuse of prefixes, or on speculation; sampled ones depend on the request's seed only
 * (with a draft model: equal in distribution). */
#ifndef AIT_LLM_H
#define AIT_LLM_H

#include <ait/model.h>
#include <ait/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- model -----------------------------------------------------------------------------------------------------------------------*/
typedef struct ait_llm ait_llm;

typedef struct ait_llm_info {
  int64_t vocab;      /* logits of a token */
  int64_t max_seq;    /* longest sequence, prompt and answer */
  int64_t page_size;  /* tokens in a page of the cache; 0: no attention cache */
  size_t token_bytes; /* cache of one token, all layers that keep every token */
  size_t slot_bytes;  /* state of one sequence, all scans and convolutions */
  /* Models with an encoder: an answer is what the decoder makes of the encoder's input. */
  bool encoder;
  int64_t source_vocab;               /* its input are token ids below this; 0: features */
  int64_t max_source;                 /* longest input where the length is not fixed */
  int32_t source_rank;                /* dimensions of the input, without a batch */
  int64_t source_shape[AIT_MAX_RANK]; /* -1: 1 to max_source */
  bool cached;                        /* false: deployed with --allow-unmatched; each token runs the whole sequence again */
} ait_llm_info;

/* Errors: as ait_model_load; invalid-model when the file is no language model (hint: ait deploy). */
AIT_API AIT_MUST_USE ait_status ait_llm_load(const char *path, const ait_load_options *options, ait_llm **out);
AIT_API void ait_llm_release(ait_llm *llm); /* takes NULL */
AIT_API ait_llm *ait_llm_retain(ait_llm *llm);
AIT_API ait_llm_info ait_llm_describe(const ait_llm *llm);
/* Does an input fit the encoder: dtype, shape, ids? A first dimension of 1 more is taken as a batch. Errors: invalid-argument, limit. */
AIT_API AIT_MUST_USE ait_status ait_llm_check_source(const ait_llm *llm, const ait_tensor *source);
/* The smaller model that the file brings for speculation (ait deploy --draft); NULL: none. Lives as long as the model. */
AIT_API ait_llm *ait_llm_draft(const ait_llm *llm);
/* NULL when the file has none. Lives as long as the model. */
AIT_API const ait_tokenizer *ait_llm_tokenizer(const ait_llm *llm);
/* From the file's chat_template.jinja or tokenizer_config.json; destroyed by the caller. Errors: not-found. */
AIT_API AIT_MUST_USE ait_status ait_llm_chat_template(const ait_llm *llm, ait_chat_template **out);
/* The text of an entry of the file ("chat_template.jinja", "llm.json"), not ended by NUL; NULL when it is not there. */
AIT_API const char *ait_llm_entry(const ait_llm *llm, const char *name, size_t *out_size);

/* ---- sampling --------------------------------------------------------------------------------------------------------------------*/
/* In the order of application, which is that of transformers' processors: bias, then penalties on the logits, temperature, top-k, top-p,
 * min-p; then one draw. Every draw is a function of seed and position in the sequence. */
typedef struct ait_sampling {
  float repetition_penalty; /* logits of tokens that stand in prompt or answer: divided by it when positive, else multiplied; 1: none */
  float presence_penalty;   /* subtracted once for a token that the answer holds; 0: none */
  float frequency_penalty;  /* subtracted for each time that the answer holds it; 0: none */
  const int32_t *bias_tokens;
  const float *bias; /* added to the logits of bias_tokens; may be -INFINITY */
  size_t bias_count;
  float temperature; /* 0: the largest logit, the smallest id among equals; the rest below is not looked at then */
  int32_t top_k;     /* 0: all */
  float top_p;       /* 1: all */
  float min_p;       /* 0: all */
  uint64_t seed;
} ait_sampling;
AIT_API void ait_sampling_init(ait_sampling *sampling); /* greedy */

/* ---- engine ----------------------------------------------------------------------------------------------------------------------*/
typedef enum ait_finish {
  AIT_FINISH_NONE = 0,  /* goes on */
  AIT_FINISH_STOP,      /* an end token of the model or of the request, or a stop string */
  AIT_FINISH_LENGTH,    /* max_tokens, or the longest sequence of the model */
  AIT_FINISH_CANCELLED, /* ait_engine_cancel */
  AIT_FINISH_ERROR,     /* see `error` */
} ait_finish;
AIT_API const char *ait_finish_text(ait_finish finish); /* "stop", "length", "cancelled", "error" */

typedef struct ait_token_logprob {
  int32_t token;
  float logprob; /* of the model's own distribution, before penalties and temperature */
} ait_token_logprob;

/* One thing that happened to one answer of a request. What pointers point at lives until the callback returns. */
typedef struct ait_generation {
  uint64_t request;
  uint32_t choice;              /* 0 .. n-1 */
  int32_t token;                /* -1: no token, only the end or held-back text */
  const char *text;             /* certain now: whole characters, nothing that may still become a stop string; "" without a tokenizer */
  size_t text_size;             /* bytes */
  float logprob;                /* of token; NaN without `logprobs` */
  const ait_token_logprob *top; /* the most probable tokens, falling; top_count of them */
  uint32_t top_count;
  ait_finish finish;
  const char *error;                     /* AIT_FINISH_ERROR: a sentence; else NULL */
  uint32_t prompt_tokens, reused_tokens; /* of the prompt: all; those whose cache was there already */
} ait_generation;

typedef struct ait_request {
  uint32_t struct_size;
  const int32_t *tokens; /* the prompt, at least one; copied. With an encoder: what the decoder begins with, none: as the model says */
  size_t token_count;
  uint32_t max_tokens; /* of an answer; 0: as many as fit */
  uint32_t n;          /* answers; 0: 1. Answer i samples with seed + i */
  ait_sampling sampling;
  int32_t logprobs;         /* -1: none; else the probability of each token, and of this many most probable ones (at most 20) */
  const char *const *stops; /* stop strings, stop_count of them, copied: the answer ends before the first that appears in its text */
  size_t stop_count;
  const int32_t *stop_tokens; /* besides the model's own */
  size_t stop_token_count;
  bool ignore_stop_tokens;                                  /* of the model: answers of exactly max_tokens, for measuring */
  void (*on_event)(void *ctx, const ait_generation *event); /* called in ait_engine_step. May submit and cancel */
  void *ctx;
  /* Models with an encoder: its input, copied (see ait_llm_check_source): token ids int32 or int64 [length], or features. The encoder runs
   * once for each answer; keys and values of its output are kept while the answer lasts. Tokens that the model forces or forbids are
   * heeded. NULL where there is no encoder. */
  const ait_tensor *source;
} ait_request;
AIT_API void ait_request_init(ait_request *request);

typedef enum ait_speculation { AIT_SPECULATE_NONE = 0, AIT_SPECULATE_NGRAM, AIT_SPECULATE_DRAFT } ait_speculation;

typedef struct ait_engine_options {
  uint32_t struct_size;
  ait_allocator allocator;
  int32_t threads;       /* that compute, the caller's included; 0: as tuned */
  int32_t max_tokens;    /* of one step: prompts and answers together; 0: 512 */
  int32_t max_sequences; /* answers that are worked on at once; 0: 16 */
  int64_t max_seq;       /* longest sequence; 0: the model's */
  size_t cache_bytes;    /* of the caches; 0: enough for max_sequences of 1024 tokens each, or one of max_seq when that is more */
  bool no_prefix_reuse;
  bool warm;       /* run every size of step now, so that none allocates later; else the first step of a size does (seconds, for servers) */
  bool no_overlap; /* scheduling and text wait for the kernels; else they go on beside them when several sequences run */
  ait_speculation speculation;
  int32_t draft_tokens; /* proposed per step; 0: 4 */
  ait_llm *draft;       /* AIT_SPECULATE_DRAFT: a smaller model with the same tokens, retained; NULL: the one that the file brings */
} ait_engine_options;
AIT_API void ait_engine_options_init(ait_engine_options *options);

typedef struct ait_engine ait_engine;
/* Errors: limit (cache_bytes hold less than one sequence), out-of-memory, invalid-argument. */
AIT_API AIT_MUST_USE ait_status ait_engine_create(ait_llm *llm, const ait_engine_options *options, ait_engine **out);
/* Requests that are not done end without a callback. Takes NULL. */
AIT_API void ait_engine_destroy(ait_engine *engine);
/* Any thread. *out_id is never 0. Errors: invalid-argument (empty prompt, a token outside the vocabulary, a sampling value outside its
 * range), limit (the prompt is longer than max_seq - 1 or than the cache), out-of-memory. */
AIT_API AIT_MUST_USE ait_status ait_engine_submit(ait_engine *engine, const ait_request *request, uint64_t *out_id);
/* Any thread. The request's answers end with AIT_FINISH_CANCELLED in the next step; unknown or finished ids are ignored. */
AIT_API void ait_engine_cancel(ait_engine *engine, uint64_t id);
/* One step of all running sequences. *out_busy: something is left to do. Errors are of the machine (out-of-memory, internal): all requests
 * have ended with AIT_FINISH_ERROR then, and the engine may be used on. */
AIT_API AIT_MUST_USE ait_status ait_engine_step(ait_engine *engine, bool *out_busy);
/* Steps until nothing is left. */
AIT_API AIT_MUST_USE ait_status ait_engine_run(ait_engine *engine);

typedef struct ait_engine_stats {
  uint64_t steps, step_tokens; /* rows computed */
  uint64_t prompt_tokens, reused_tokens, answer_tokens;
  uint64_t preemptions; /* sequences that lost their cache to others and were computed again */
  uint64_t drafted, accepted;
  double step_seconds, model_seconds; /* all of the steps; kernels alone. The difference is the host's part */
  size_t bytes;                       /* caches, planned memory, tables; weights not counted */
  uint32_t running, waiting;
  uint32_t pages, free_pages; /* of the group with the fewest; kept prefixes count as free */
} ait_engine_stats;
AIT_API ait_engine_stats ait_engine_statistics(const ait_engine *engine);

/* ---- judging ---------------------------------------------------------------------------------------------------------------------*/
typedef struct ait_perplexity {
  double nll;           /* sum over the tokens of -log p(token | those before it in its window), natural logarithm */
  double perplexity;    /* exp(nll / tokens) */
  double bits_per_byte; /* nll / log(2) / bytes of the text */
  int64_t tokens, windows;
  double seconds;
} ait_perplexity;
/* The text is tokenised without special tokens and cut into windows of `window` tokens (0: 511, or what the model takes); each window is
 * run by itself behind the model's begin token, and every token is predicted once. A model without one predicts all but the first of each
 * window. progress may be NULL. Errors: invalid-argument (no tokenizer, no text), out-of-memory. */
AIT_API AIT_MUST_USE ait_status ait_llm_perplexity(ait_llm *llm, const char *text, size_t size, int64_t window, int32_t threads,
                                                   void (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                                                   ait_perplexity *out);

#ifdef __cplusplus
}
#endif
#endif
