/* A causal language model becomes an .ait with caches (docs/llm.md). libait only. */
#ifndef AIT_DEPLOY_H
#define AIT_DEPLOY_H

#include <ait/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ait_deploy_options {
  uint32_t struct_size;
  ait_allocator allocator;
  int64_t max_seq;                           /* longest sequence; 0: what the model says, at most 32768 */
  int64_t page_size;                         /* tokens of a page, 16 to 128; 0: 32 */
  const char *kv_dtype;                      /* "float32", "bfloat16", "int8"; NULL: float32 */
  const char *quantize;                      /* weights of layers: "bf16", "int8", "int4"; NULL: as they are, in float32 */
  const char *embedding;                     /* the same for the table of embeddings; NULL: as they are */
  const char *head;                          /* the same for the last projection; NULL: as `quantize` says */
  int64_t group;                             /* neighbours in a row that share a scale: 32, 64, 128; 0: 32 */
  const char *weights;                       /* as in ait_load_options; NULL: the folder's checkpoint, or the model's own */
  const char *backend;                       /* that runs the plan; NULL: "native" */
  bool allow_unmatched;                      /* what cannot be cached runs whole sequences at each step */
  bool skip_proof;                           /* do not run the original beside the cached graph */
  const char *eval_text;                     /* perplexity is measured on this text, before and after; NULL: it is not */
  size_t eval_size;                          /* bytes */
  void (*note)(void *ctx, const char *line); /* progress and findings; NULL: not wanted */
  void *note_ctx;
  int64_t max_source; /* longest input of an encoder; 0: what the model says */
  const char *draft;  /* a smaller model with the same tokens, for speculation: an .ait of ait_deploy, or a source, which is deployed with
                       * these options; the file holds a copy. NULL: none */
} ait_deploy_options;
AIT_API void ait_deploy_options_init(ait_deploy_options *options);

/* source: a folder made by `python -m ait.export_lm`, or a .pt2 of a causal language model: token ids [batch, length] to logits [batch,
 * length, vocabulary]. *out_json (ait_string_free): what was matched, the proof, sizes, and with eval_text the perplexity in float32 and
 * in the precision that was chosen (docs/json.md); the file keeps them. Errors: unsupported names the module, the pattern and the nearest
 * match; those of reading the model; mismatch when the cached graph does not give the original's logits; invalid-argument when eval_text is
 * given for a source without tokenizer.json, or when the draft model has other tokens. */
AIT_API AIT_MUST_USE ait_status ait_deploy(const char *source, const char *out_path, const ait_deploy_options *options, char **out_json);

#ifdef __cplusplus
}
#endif
#endif
