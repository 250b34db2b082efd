/* Proofs on deployed language models: the program ait_llm_check (tests/llm/README.md). */
#ifndef AIT_TESTS_LLM_CHECK_H
#define AIT_TESTS_LLM_CHECK_H

#include "llm/engine.h"
#include "tensor/tensor.h"
#include <ait/ait.h>
#include <stdio.h>

/* Prints the status and ends the program: the check could not be made. */
void must(ait_status status);

/* main.c: an .ait; or a .pt2 or folder, which is deployed for sequences of max_seq tokens (0: as the model says). */
ait_llm *open_llm(const char *path, int64_t max_seq);

/* Random numbers of the checks. */
typedef struct dice {
  uint64_t state;
} dice;
uint32_t roll(dice *d, uint32_t below);
float roll_between(dice *d, float low, float high);

/* What transformers gave (tests/llm/goldens.py). -1 in prompts and answers: nothing. */
typedef struct goldens {
  ait_tensor_file file;
  ait_tensor ids;     /* [sequences, length], int64 */
  ait_tensor logits;  /* [sequences, length, vocab], float32: those of float64 */
  ait_tensor prompts; /* [items, longest], int64 */
  ait_tensor answers; /* [items, longest], int64: greedy */
  double bound;       /* 10 times the noise of float32 */
} goldens;
void read_goldens(const char *path, goldens *out);
int64_t int_at(const ait_tensor *t, int64_t row, int64_t column); /* of a matrix */
int32_t row_length(const ait_tensor *t, int64_t row);             /* before the first -1 */

/* Each prints a line for each way and returns the number of failures. */
int check_logits(ait_llm *llm, const goldens *g);                            /* logits.c */
int check_answers(ait_llm *llm, ait_llm *draft, const goldens *g);           /* answers.c; draft may be NULL */
int check_trace(ait_llm *llm, ait_llm *draft, int32_t count, uint64_t seed); /* trace.c */
int check_memory(ait_llm *llm, int32_t count, uint64_t seed);                /* memory.c */

/* trace.c: a request at random, and what was heard of its answers. */
enum { CHECK_MAX_ANSWERS = 3, CHECK_MAX_TOKENS = 32, CHECK_MAX_PROMPT = 72 };
typedef struct heard_answer {
  int32_t tokens[CHECK_MAX_TOKENS], count;
  ait_finish finish;
} heard_answer;
typedef struct asked {
  ait_request request; /* tokens, on_event and ctx point into this */
  int32_t prompt[CHECK_MAX_PROMPT];
  heard_answer answers[CHECK_MAX_ANSWERS];
  uint64_t id;
  bool cancel; /* may be cancelled */
  bool broken; /* something was heard after the end */
} asked;
/* Beginnings are shared with requests before it. */
void ask(asked *all, int32_t index, int32_t vocab, dice *d);

#endif
