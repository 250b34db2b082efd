/* From logits to a token: bias and penalties, temperature, top-k, top-p, min-p, one draw. In the order, and with the meaning, of the
 * processors and warpers of transformers; presence and frequency penalties as OpenAI's API defines them (over the answer).
 *
 * A draw is a function of (seed, position, stream) and the probabilities alone: Philox-4x32-10, one number in [0, 1). */
#ifndef AIT_SRC_LLM_SAMPLER_H
#define AIT_SRC_LLM_SAMPLER_H

#include "base/base.h"
#include <ait/llm.h>

typedef struct lm_candidate {
  int32_t token;
  float weight; /* logit, then probability */
} lm_candidate;

/* Work space for one row at a time, of a fixed vocabulary. */
typedef struct lm_sampler {
  ait_allocator allocator;
  int64_t vocab;
  float *logits;            /* [vocab], after bias and penalties */
  int32_t *marks;           /* [vocab] zeros between calls: times that a token stands in the history */
  lm_candidate *candidates; /* [vocab]; after lm_sampler_prepare the count first have probabilities, falling; they sum to 1 */
  int64_t count;
} lm_sampler;

ait_status lm_sampler_create(ait_allocator a, int64_t vocab, lm_sampler *out) AIT_MUST_USE;
void lm_sampler_destroy(lm_sampler *s);

/* Is any value outside its range? Errors: invalid-argument naming it. */
ait_status lm_sampling_check(const ait_sampling *sampling, int64_t vocab) AIT_MUST_USE;
/* The token of a greedy answer: largest processed logit, smallest id among equals; -1 when no logit is a number. */
int32_t lm_sampler_best(lm_sampler *s, const ait_sampling *sampling, const float *logits, const int32_t *tokens, int32_t prompt,
                        int32_t count);
/* Probabilities of one row. tokens: prompt, then answer, count in all. false: no logit is a finite number. */
bool lm_sampler_prepare(lm_sampler *s, const ait_sampling *sampling, const float *logits, const int32_t *tokens, int32_t prompt,
                        int32_t count);
/* Of what lm_sampler_prepare left. */
int32_t lm_sampler_draw(const lm_sampler *s, double uniform);
float lm_sampler_probability(const lm_sampler *s, int32_t token);
void lm_sampler_dense(const lm_sampler *s, float *out); /* [vocab] */

/* A number in [0, 1); streams tell several draws at one position apart. */
double lm_uniform(uint64_t seed, uint64_t position, uint32_t stream);

/* Natural logarithm of the softmax of the raw logits: of one token, and of the `count` most probable (falling; smaller ids first). */
float lm_logprobs(const float *logits, int64_t vocab, int32_t token, ait_token_logprob *top, uint32_t count);

#endif
