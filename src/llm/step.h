/* One step of a deployed language model: the line between the engine (scheduling, sampling) and the model (a cached graph).
 *
 * A model is the plan of an .ait that `ait deploy` made: a core graph over a flat batch of T tokens of any number of sequences, whose
 * caches are tensors that the caller sees (docs/llm.md). A context owns these tensors (the pools), the session that runs the plan, and
 * nothing else: which page belongs to whom is the engine's business.
 *
 * State comes in groups. Layers of a group share page ids: page p of group g is row p of every pool of that group. Three kinds:
 *   AIT_LM_MEMORY  keys and values of what an encoder gave: one unit per sequence, written by ait_lm_encode, read by steps.
 *   AIT_LM_PAGES  keys and values of attention. Position t of a sequence lies in its page t / page_size, at row t % page_size. A group with
 * a window W reads positions > p - W only: pages that lie wholly behind the window may be taken away (id -1) and reused. AIT_LM_SLOTS state
 * of scans and convolutions: one slot per sequence, overwritten at each step. A sequence with past == 0 starts from zeros, whatever the
 * slot holds. Snapshots are copies into other slots. Memory is written before it is read: nothing needs clearing.
 *
 * Threads: a model is immutable and shared; a context is used by one thread at a time. Nothing allocates in ait_lm_run once shapes have
 * been seen: T and the number of rows are rounded up to a few sizes inside (ait_lm_warm makes them all). */
#ifndef AIT_SRC_LLM_STEP_H
#define AIT_SRC_LLM_STEP_H

#include "base/base.h"
#include "tensor/tensor.h"
#include <ait/model.h>

/* Entries of the file: the graph that runs once for each request, and its plan. */
#define AIT_LM_SECOND_GRAPH "targets/encoder.bin"
#define AIT_LM_SECOND_BLOB "targets/encoder.blob"

enum { AIT_LM_MAX_GROUPS = 8, AIT_LM_MAX_STOPS = 16 };

typedef enum ait_lm_kind { AIT_LM_PAGES = 1, AIT_LM_SLOTS, AIT_LM_MEMORY } ait_lm_kind;

typedef struct ait_lm_group {
  ait_lm_kind kind;
  int64_t window; /* pages: keys that a query sees, itself included; 0: all */
  uint32_t layers;
  size_t unit_bytes; /* of one page, or one slot, over all pools of the group */
} ait_lm_group;

typedef struct ait_lm_info {
  int64_t vocab, max_seq; /* positions 0..max_seq-1 exist */
  int64_t page_size;
  uint32_t group_count;
  ait_lm_group groups[AIT_LM_MAX_GROUPS];
  int64_t bos, pad; /* -1: none */
  int64_t stops[AIT_LM_MAX_STOPS];
  uint32_t stop_count;
  bool has_source;                    /* an encoder's output is read: ait_lm_encode before the first step of a sequence */
  int64_t max_source;                 /* of the encoder's input, where its length is not fixed */
  int64_t source_vocab;               /* token ids of the encoder's input are below it; 0: it takes features */
  int32_t source_rank;                /* of the encoder's input without its batch */
  int64_t source_shape[AIT_MAX_RANK]; /* likewise; -1: any length up to max_source */
  ait_dtype source_dtype;
  const int32_t *start, *suppress, *begin_suppress; /* what decoding begins with, may never say, may not begin with */
  uint32_t start_count, suppress_count, begin_suppress_count;
  const int32_t *forced; /* [forced_count][2]: position in the decoder's sequence, token */
  uint32_t forced_count;
  int64_t forced_end; /* the token of the last position, when an answer gets that long; -1: none */
  int64_t switch_at;  /* longer sequences have other values of positions (a switch of rotary factors): what was computed for a shorter one
                         is no use for them. 0: there is no such length */
  bool cached;        /* false: deployed with --allow-unmatched: every step must hold whole sequences (past 0) */
} ait_lm_info;

typedef struct ait_lm ait_lm;
/* From a loaded .ait (retained). Errors: invalid-model (not made by `ait deploy`, or damaged), incompatible. */
ait_status ait_lm_create(ait_allocator a, ait_model *model, ait_lm **out) AIT_MUST_USE;
void ait_lm_destroy(ait_lm *lm); /* takes NULL */
const ait_lm_info *ait_lm_describe(const ait_lm *lm);
/* An entry of the file ("tokenizer.json", "chat_template.jinja", "llm.json"); NULL when it is not there. Lives as long as the model. */
const void *ait_lm_entry(const ait_lm *lm, const char *name, size_t *out_size);

typedef struct ait_lm_context_options {
  ait_allocator allocator;
  int32_t threads;                  /* that compute, the caller's included; 0: as the plan says */
  int32_t max_tokens;               /* T of the largest step; 0: 512 */
  int32_t max_sequences;            /* of one step; 0: 64 */
  int32_t max_rows;                 /* rows of logits of one step; 0: max_sequences */
  int64_t max_seq;                  /* longest sequence that will be run; 0: the model's */
  int32_t units[AIT_LM_MAX_GROUPS]; /* pages or slots of each group; 0: enough for one sequence of max_seq, or one slot */
} ait_lm_context_options;

typedef struct ait_lm_context ait_lm_context;
/* Errors: invalid-argument, limit, out-of-memory. */
ait_status ait_lm_context_create(ait_lm *lm, const ait_lm_context_options *options, ait_lm_context **out) AIT_MUST_USE;
void ait_lm_context_destroy(ait_lm_context *context);       /* takes NULL */
size_t ait_lm_context_bytes(const ait_lm_context *context); /* pools and planned memory; weights not counted */

/* A run of rows of the batch that continue one sequence. */
typedef struct ait_lm_sequence {
  int32_t first, count;                    /* rows first..first+count-1: positions past..past+count-1. Ranges of a step are disjoint */
  int32_t past;                            /* tokens that the state holds already */
  int32_t slot;                            /* of the slot group, or the unit of the memory group; ignored where there is neither */
  const int32_t *pages[AIT_LM_MAX_GROUPS]; /* per page group: ids of the sequence's pages, page_count of them; -1: behind the window */
  int32_t page_count;                      /* covers past + count */
  bool is_long;                            /* it is, or will be, longer than switch_at: the same in all its steps */
} ait_lm_sequence;

typedef struct ait_lm_batch {
  const int32_t *tokens; /* token_count ids */
  int32_t token_count;
  const ait_lm_sequence *sequences; /* no two with a page or slot in common that one of them writes */
  int32_t sequence_count;
  const int32_t *rows; /* batch rows whose logits are wanted, row_count of them, any order */
  int32_t row_count;
  float *logits; /* [row_count, vocab], written */
} ait_lm_batch;

/* Runs one step: state of the sequences is extended by their rows, logits are filled. A row's result depends on its sequence only, not on
 * what else is in the batch. Errors: invalid-argument names what is out of range (token id, page, slot, position) and nothing has been
 * written then. */
ait_status ait_lm_run(ait_lm_context *context, const ait_lm_batch *batch) AIT_MUST_USE;
/* Runs the encoder on one request's input and keeps what its attention reads in a unit of the memory group. source: [length] token ids
 * (int32 or int64), or features without a batch, or with one of 1. Errors: invalid-argument (shape, an id out of range), those of running.
 */
ait_status ait_lm_encode(ait_lm_context *context, int32_t unit, const ait_tensor *source) AIT_MUST_USE;
/* The checks of ait_lm_encode alone. */
ait_status ait_lm_check_source(const ait_lm *lm, const ait_tensor *source) AIT_MUST_USE;
const char *ait_lm_kind_name(ait_lm_kind kind); /* "pages", "slots", "memory" */
/* Runs every size of step that ait_lm_run rounds to, so that none later allocates. The pools' contents stay. */
ait_status ait_lm_warm(ait_lm_context *context) AIT_MUST_USE;
/* Copies a page or slot of a group, all layers: copy on write, snapshots. Errors: invalid-argument. */
ait_status ait_lm_copy(ait_lm_context *context, uint32_t group, int32_t from, int32_t to) AIT_MUST_USE;
/* Sizes that a step is rounded up to: what a scheduler should aim at. */
int32_t ait_lm_round(int32_t count);

#endif
