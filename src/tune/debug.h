/* ait_debug: where a backend leaves the reference. debug.c searches, debug_slice.c cuts graphs. */
#ifndef AIT_SRC_TUNE_DEBUG_H
#define AIT_SRC_TUNE_DEBUG_H

#include "tune/candidate.h"

/* ---- debug_run.c: one call of a graph on a backend ---------------------------------------------------------------------------------*/
typedef struct ait_debug_call {
  const ait_load_options *load; /* threads, cpu_mask */
  const ait_graph *graph;
  const ait_backend *backend;
  const char *knobs;
  const ait_value *inputs;
  size_t input_count;
} ait_debug_call;
/* outputs: count values of kind none; owned by the caller afterwards. */
ait_status ait_debug_run(const ait_debug_call *call, ait_value *outputs, size_t count) AIT_MUST_USE;
/* The same in a child process. *crash: how it ended when it did not come back ("" when it did); then outputs are as they were. */
ait_status ait_debug_run_apart(const ait_debug_call *call, ait_value *outputs, size_t count, char crash[AIT_REASON_SIZE]) AIT_MUST_USE;
ait_status ait_debug_values_new(size_t count, ait_value **out) AIT_MUST_USE;
void ait_debug_values_free(ait_value *values, size_t count);

/* ---- debug_slice.c -----------------------------------------------------------------------------------------------------------------*/

/* The graph with these values as its outputs ("0", "1", …), and without the nodes after `last` (NULL: all nodes stay). */
ait_status ait_debug_probe(const ait_graph *g, const ait_node *last, const uint32_t *values, size_t count, ait_graph **out) AIT_MUST_USE;

/* Some nodes of a graph as a graph of its own, all sizes constant: what they read from elsewhere becomes user inputs. */
typedef struct ait_debug_slice {
  ait_graph *graph;
  uint32_t *inputs; /* the values of the whole graph that became user inputs, in their order; capacity: the graph's values */
  size_t input_count;
} ait_debug_slice;
/* taken[i]: node i in the order of execution belongs to the slice. known[v]: contents of values that are read from elsewhere; tensors and
 * numbers (else unsupported). result: its only output. symbols: values of the graph's symbols. */
ait_status ait_debug_cut(const ait_graph *g, const bool *taken, const ait_value *known, uint32_t result, const int64_t *symbols,
                         ait_debug_slice *out) AIT_MUST_USE;
/* Values that the nodes read and none of them makes: out has value_count flags. */
void ait_debug_boundary(const ait_graph *g, const bool *taken, bool *out);
void ait_debug_slice_deinit(const ait_graph *g, ait_debug_slice *slice);

#endif
