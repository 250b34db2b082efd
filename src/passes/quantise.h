/* Weights of few bits: linear becomes weight_linear, embedding becomes weight_embedding, expert_linear keeps its name, and the rounded
 * weights are new constants. A linear layer whose result decides what topk or sort takes (a router of experts) stays as it is. Rounding is
 * to nearest, with one scale for each `group` neighbours of a row. Activations stay as they are. */
#ifndef AIT_SRC_PASSES_QUANTISE_H
#define AIT_SRC_PASSES_QUANTISE_H

#include "passes/passes.h"

typedef enum ait_weight_bits {
  AIT_WEIGHTS_KEEP = 0,
  AIT_WEIGHTS_BF16,
  AIT_WEIGHTS_INT8,
  AIT_WEIGHTS_INT4,
} ait_weight_bits;

typedef struct ait_quantise_options {
  ait_weight_bits linear;
  ait_weight_bits embedding;
  ait_weight_bits head; /* linear layers behind which there is no other product: what makes the logits */
  int64_t group;        /* of integers: 32, 64, 128; 0: 32 */
  /* Tables of embeddings that are kept: where all their numbers are bfloat16 already they are stored as such, which changes nothing but
   * the room that they take. Those that something else reads, too, only with the second. */
  bool exact_tables, exact_shared_tables;
} ait_quantise_options;

/* On a core graph. Layers whose input is not float32, or whose weight is no constant matrix, stay as they are, with a note
 * ("weight-not-constant", "input-not-float32", "router"). The old weights are left in the store. */
ait_status ait_graph_quantise(ait_graph *graph, const ait_pass_context *context, const ait_quantise_options *options,
                              bool *out_changed) AIT_MUST_USE;

#endif
