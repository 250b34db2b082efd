/* Front door of the tune room: building plans, measuring and judging candidates, the record, the report, and the tools that look into
 * models. The public functions of tune.h, tools.h and ait_model_import live here. */
#ifndef AIT_SRC_TUNE_H
#define AIT_SRC_TUNE_H

#include "artifact/artifact.h"
#include "backends/registry.h"
#include "import/import.h"
#include "ir/ir.h"
#include "passes/passes.h"
#include "runtime/runtime.h"
#include <ait/tools.h>
#include <ait/tune.h>

/* ---- plan_build.c ----------------------------------------------------------------------------------------------------------------*/
typedef struct ait_build_request {
  ait_allocator allocator;
  const ait_backend *backend;
  const char *options;  /* knobs, or NULL */
  const char *pipeline; /* passes to run; NULL: none for backends that take raw graphs, "eager" or "core" for others */
  uint64_t cpu_mask;
  ait_pass_context passes; /* allocator ignored */
} ait_build_request;
/* A plan of one step: the whole graph on one backend. The raw graph and its weights are left as they are; *out_weights is what the plan
 * finds its weights in: the graph's, and constants that passes folded; released by the caller.
 * Errors: unsupported with the backend's first reason. notes: may be NULL, else filled by the backend's `supports`. */
ait_status ait_plan_build(const ait_graph *raw, const ait_build_request *request, ait_support *notes, ait_plan *out_plan,
                          ait_weight_store **out_weights) AIT_MUST_USE;
/* What a plan for these CPU features is called: "sse2,avx2", "scalar". */
void ait_plan_target(uint64_t features, char *out, size_t size);
/* Asks the backend. Errors: unsupported, "backend 'x' does not take WHAT: " and its first reason. notes: may be NULL. */
ait_status ait_region_taken(const ait_backend *backend, const ait_region *region, const char *what, ait_support *notes) AIT_MUST_USE;
/* The graph in the form that the backend takes: raw, or after its pipeline. A new graph, owned by the caller. */
ait_status ait_plan_lower(const ait_graph *raw, const ait_build_request *request, ait_graph **out) AIT_MUST_USE;

/* ---- import_model.c --------------------------------------------------------------------------------------------------------------*/
/* The raw graph of a model file, or of the portable part of an .ait. */
ait_status ait_graph_open(const char *path, const ait_load_options *options, ait_graph **out) AIT_MUST_USE;
/* Of the sources, compiler and options that this library was built from (cmake/build_id.cmake): 16 hex digits. */
const char *ait_build_id(void);
/* onnx_bridge.c: backends that are fed with ONNX can compile from now on. Called wherever a backend is asked for its opinion. */
void ait_onnx_bridge_connect(void);
/* Is there, for each operator, something that runs it? Errors: unsupported, naming all that lack it. */
ait_status ait_graph_check_operators(const ait_graph *graph) AIT_MUST_USE;
/* The file's name in front of every error. */
ait_status ait_file_context(ait_status status, const char *what, const char *path) AIT_MUST_USE;

#endif
