/* Front door of the passes room: graph to graph, one file per rewrite, each registered by one line of passes.inc. */
#ifndef AIT_SRC_PASSES_H
#define AIT_SRC_PASSES_H

#include "ir/ir.h"

typedef struct ait_pass_context {
  ait_allocator allocator;
  /* Gets a line for each thing done or declined: code ("attention-mask-unproven"), node name, sentence. NULL: not wanted. */
  void (*note)(void *ctx, const char *pass, const char *code, const char *node, const char *text);
  void *note_ctx;
} ait_pass_context;

enum { AIT_PASS_LOSSY = 2 };
typedef struct ait_pass {
  const char *name, *help;
  ait_status (*run)(ait_graph *graph, const ait_pass_context *context, bool *out_changed);
  bool changes_numbers; /* declared: not required to give bit-equal results */
  bool lossy;           /* asked for, to save memory or time: weights of few bits */
} ait_pass;

/* The passes themselves: ait_pass_<function>, from passes.inc. */
#define AIT_PASS(function, name, changes, help) \
  ait_status ait_pass_##function(ait_graph *graph, const ait_pass_context *context, bool *out_changed) AIT_MUST_USE;
#define AIT_PIPELINE(name, passes, help)
#include "passes/passes.inc"
#undef AIT_PASS
#undef AIT_PIPELINE

size_t ait_pass_count(void);
const ait_pass *ait_pass_at(size_t index);
const ait_pass *ait_pass_find(const char *name);

/* Runs "functionalise,canonicalise,…" or a named pipeline ("core": raw to core, everything that keeps meaning; "eager": raw to core with
 * no fusion and no folding, one node per user operator), verifying after each. after(ctx, pass, graph) may be NULL. */
ait_status ait_passes_run(ait_graph *graph, const char *pipeline, const ait_pass_context *context,
                          void (*after)(void *ctx, const char *pass, const ait_graph *graph), void *after_ctx) AIT_MUST_USE;

#endif
