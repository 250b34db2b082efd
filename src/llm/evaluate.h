/* Perplexity of a text, for whoever has a model but no file yet: `ait deploy --eval`. ait_llm_perplexity (ait/llm.h) has the meaning. */
#ifndef AIT_SRC_LLM_EVALUATE_H
#define AIT_SRC_LLM_EVALUATE_H

#include "llm/step.h"
#include <ait/llm.h>

typedef struct lm_evaluation {
  ait_lm *lm;
  const ait_tokenizer *tokenizer; /* NULL is an error: invalid-argument */
  const char *text;
  size_t size;
  int64_t window;  /* 0: 511, or what the model takes */
  int32_t threads; /* 0: as the plan says */
  void (*progress)(void *ctx, int64_t done, int64_t total);
  void *ctx;
} lm_evaluation;

ait_status lm_perplexity(const lm_evaluation *what, ait_perplexity *out) AIT_MUST_USE;

#endif
