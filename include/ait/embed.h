/* Sentence embeddings: texts in, one vector each out.
 *
 * The model is an .ait that `ait deploy` made of an encoder (docs/embeddings.md), or any model whose inputs are input_ids and, where it has
 * them, attention_mask and token_type_ids, all integers [batch, length], and whose first output is floats: [batch, size], the embeddings;
 * or [batch, length, size], which are pooled here.
 *
 * Thread rule: an embedder is used by one thread at a time; any number of them share a model. */
#ifndef AIT_EMBED_H
#define AIT_EMBED_H

#include <ait/model.h>
#include <ait/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the vectors of a text's tokens become one, where the graph does not do it itself. */
typedef enum ait_pooling {
  AIT_POOL_DEFAULT = 0, /* mean */
  AIT_POOL_CLS,         /* the first token's */
  AIT_POOL_MEAN,
  AIT_POOL_MEAN_SQRT_LEN, /* the sum divided by the square root of the number of tokens */
  AIT_POOL_MAX,
  AIT_POOL_LAST, /* the last token's */
} ait_pooling;
AIT_API const char *ait_pooling_name(ait_pooling pooling); /* "cls", "mean", …; NULL: no such value. AIT_POOL_DEFAULT: "default" */

typedef struct ait_embedder_options {
  uint32_t struct_size;
  ait_allocator allocator;
  int32_t threads;                /* that compute, the caller's included; 0: as the plan says */
  int32_t batch;                  /* texts of one call of the model; 0: 32 */
  int64_t max_length;             /* longer texts are cut to so many tokens; 0: as the file says, else as the tokenizer says */
  const ait_tokenizer *tokenizer; /* borrowed as long as the embedder lives; NULL: the file's own */
  ait_pooling pooling;
  int normalize;           /* 1: vectors are divided by their length, 0: not, -1: as the file says. What the graph itself does stays */
  const char *prompt;      /* in front of each text; NULL: none */
  const char *prompt_name; /* a prompt that the file holds ("query"); NULL: its default one, if it has one */
} ait_embedder_options;
AIT_API void ait_embedder_options_init(ait_embedder_options *options);

typedef struct ait_embedder ait_embedder;
typedef struct ait_embedder_info {
  int64_t size;        /* numbers of an embedding */
  int64_t max_length;  /* tokens of a text */
  ait_pooling pooling; /* that is done here; AIT_POOL_DEFAULT: the graph pools */
  bool normalized;     /* by the graph or here */
  bool token_types;    /* the model takes them */
  const char *prompt;  /* "" when there is none; lives as long as the embedder */
} ait_embedder_info;

/* Retains the model. Errors: invalid-argument (no tokenizer, no such prompt, an option out of range), unsupported (inputs or outputs that
 * are none of the above), invalid-model (the file's embed.json is damaged), out-of-memory. */
AIT_API AIT_MUST_USE ait_status ait_embedder_create(ait_model *model, const ait_embedder_options *options, ait_embedder **out);
AIT_API void ait_embedder_destroy(ait_embedder *embedder); /* takes NULL */
AIT_API ait_embedder_info ait_embedder_describe(const ait_embedder *embedder);

/* out: [count, size] float32, row i for text i, whatever the order of work. token_counts: NULL, or count numbers: tokens of each text as
 * the model saw it. A vector depends on its text alone up to rounding. Errors: those of the tokenizer and of running; invalid-argument for
 * a text without any token. */
AIT_API AIT_MUST_USE ait_status ait_embedder_run(ait_embedder *embedder, const char *const *texts, const size_t *sizes, size_t count,
                                                 float *out, int64_t *token_counts);

#ifdef __cplusplus
}
#endif
#endif
