/* Looking into models: each function returns one JSON (or text) document, to be freed with ait_string_free. libait only.
 * docs/json.md describes the documents. */
#ifndef AIT_TOOLS_H
#define AIT_TOOLS_H

#include <ait/model.h>
#include <ait/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Identity, inputs, outputs, states, module tree (calls, parameters, FLOPs, bytes), what each backend takes and the first reason why
 * not. model_path: .pt2 or .ait. options may be NULL. */
AIT_API AIT_MUST_USE ait_status ait_inspect(const char *model_path, const ait_load_options *options, char **out_json);
/* The same with more: given a roofline (ait_roofline_json), what bounds each module and the gain that fusion promises; given inputs, sizes
 * are theirs and modules have the times of the backend `eager`. */
typedef struct ait_inspect_options {
  uint32_t struct_size;
  const char *roofline_json; /* or NULL */
  const ait_value *inputs;   /* one call; NULL: nothing is measured */
  size_t input_count;
  int32_t threads; /* for the measurement; 0: one */
} ait_inspect_options;
AIT_API void ait_inspect_options_init(ait_inspect_options *options);
AIT_API AIT_MUST_USE ait_status ait_inspect_with(const char *model_path, const ait_load_options *load, const ait_inspect_options *options,
                                                 char **out_json);
/* Every "no" for a model: unmatched patterns, nodes on the portable path, fixed dimensions. filter: node name or module path prefix, or
 * NULL. */
AIT_API AIT_MUST_USE ait_status ait_explain(const char *model_path, const char *filter, const ait_load_options *options, char **out_json);
/* The graph as text after the given passes (comma-separated names or pipelines; NULL or "": as imported). print_after: a pass name after
 * which the text is wanted too, "all", or NULL. */
AIT_API AIT_MUST_USE ait_status ait_opt(const char *model_path, const char *passes, const char *print_after,
                                        const ait_load_options *options, char **out_text);
/* All operators: name, schema, dialects, whether the reference runs it. */
AIT_API AIT_MUST_USE ait_status ait_ops(char **out_json);
/* The same list as a Markdown page, docs/operators.md. */
AIT_API AIT_MUST_USE ait_status ait_ops_page(char **out_markdown);
/* Operators of a model that ait lacks: unknown ones, and known ones that nothing can run. */
AIT_API AIT_MUST_USE ait_status ait_ops_missing(const char *model_path, const ait_load_options *options, char **out_json);
typedef struct ait_export_options {
  uint32_t struct_size;
  int32_t opset;      /* of ONNX, 18 to 24; 0: 18 */
  bool external_data; /* weights in a file beside it, OUT.data, and not in the model; larger models do so anyhow */
} ait_export_options;
/* A model (.pt2, .ait) as an ONNX file: what the core passes make of it, its weights beside or inside. A buffer that calls change is an
 * input with its first contents as default, and an output "next.NAME". options and export_options may be NULL.
 * Errors: those of reading the model; unsupported (names node and operator, and why ONNX cannot say it); limit; invalid-argument; io. */
AIT_API AIT_MUST_USE ait_status ait_export(const char *model_path, const char *out_path, const ait_load_options *options,
                                           const ait_export_options *export_options);
/* Passes and pipelines with their help texts. */
AIT_API AIT_MUST_USE ait_status ait_passes(char **out_json);
/* Backends: found or not, version, detail, knobs. */
AIT_API AIT_MUST_USE ait_status ait_backends(char **out_json);
/* Sessions timed in turn, so that a busy machine hurts all alike. Measurements in which this thread was descheduled are dropped and
 * counted. */
typedef struct ait_bench_entry {
  const char *label;
  ait_session *session;
  const ait_value *inputs;
  size_t input_count, output_count;
  double load_seconds; /* reported as it is */
} ait_bench_entry;
/* *out_json: for each entry p50, p95, p99, calls per second, memory, and the ratio of its time to the first entry's with 95 % interval. */
AIT_API AIT_MUST_USE ait_status ait_bench(const ait_bench_entry *entries, size_t count, double min_seconds, char **out_json);
/* ---- recorded traffic: docs/traffic.md -------------------------------------------------------------------------------------------- */
/* One request more at the end of the trace: when it came (seconds on any clock that all writers share, like the time of day) and the shapes
 * of the inputs; never what is in them. The file is made when missing. Whole lines: several processes may write. */
AIT_API AIT_MUST_USE ait_status ait_trace_append(const char *trace_path, const ait_model *model, const ait_value *inputs,
                                                 size_t input_count, double arrival_seconds);
/* A trace against one session of the model, open loop: requests come when the trace says, and wait for those before them. Idle time is
 * skipped. inputs: one call, whose contents are repeated in the trace's shapes. */
typedef struct ait_replay_options {
  uint32_t struct_size;
  int32_t threads;      /* 0: what the plan was tuned for */
  double seconds;       /* of calls, about; 0: 10. Where time is up, times of earlier calls of that shape stand in */
  double limit_seconds; /* what goodput counts; 0: ten times the median time of a call */
} ait_replay_options;
AIT_API void ait_replay_options_init(ait_replay_options *options);
/* Errors: not-found, io, invalid-argument (a line that is no request, or that the model does not take: file and line). */
AIT_API AIT_MUST_USE ait_status ait_replay(ait_model *model, const char *trace_path, const ait_value *inputs, size_t input_count,
                                           const ait_replay_options *options, char **out_json);
/* A report of ait_tune as text for people: a table of 80 columns. */
AIT_API AIT_MUST_USE ait_status ait_report_text(const char *report_json, char **out_text);
/* The same as one HTML page that loads nothing and runs no script. */
AIT_API AIT_MUST_USE ait_status ait_report_html(const char *report_json, char **out_html);
/* Two reports of ait_tune side by side: the winners' latency, speed-up, error, memory and size, and every candidate. Latency is worse when
 * the two 95 % intervals are further apart than the threshold; sizes when they grew by more; the error when it more than doubled and comes
 * near its tolerance. *out_json: `regressions` counts what is worse of these, and candidates that are not correct any more. */
typedef struct ait_compare_options {
  uint32_t struct_size;
  double threshold;                    /* 0.05: 5 % */
  uint64_t a_file_bytes, b_file_bytes; /* of the .ait files; 0: not known */
} ait_compare_options;
AIT_API void ait_compare_options_init(ait_compare_options *options);
AIT_API AIT_MUST_USE ait_status ait_compare_reports(const char *a_report, const char *b_report, const ait_compare_options *options,
                                                    char **out_json);
/* Where a backend leaves the reference: the first node of the model, as the backend takes it, whose value is further off than ten times the
 * reference's own rounding noise. `load` names model, backend, knobs and passes; the inputs are one call. *out_json: `agrees`, else node,
 * operands, worst element, and the files of a reproducer. */
typedef struct ait_debug_options {
  uint32_t struct_size;
  double rtol, atol;  /* 0: from rounding noise */
  const char *output; /* writes a reproducer: OUTPUT.txt (graph), OUTPUT.npz (inputs), OUTPUT.expected.npz; NULL: none */
} ait_debug_options;
AIT_API void ait_debug_options_init(ait_debug_options *options);
AIT_API AIT_MUST_USE ait_status ait_debug(const char *model_path, const ait_load_options *load, const ait_value *inputs, size_t input_count,
                                          const ait_debug_options *options, char **out_json);
/* What lies in an .ait, and, unless folder is NULL, all of it into a folder that is made (or is empty): manifest.json, graph.bin, the graph
 * as text, the weights as one file, plans, samples. Names in the file are relative and without "..": nothing is written outside. */
typedef struct ait_unpack_options {
  uint32_t struct_size;
  const ait_keys *keys;
  bool require_signature;
  bool npz; /* weights.npz (small floats become float32) instead of weights.safetensors */
} ait_unpack_options;
AIT_API void ait_unpack_options_init(ait_unpack_options *options);
AIT_API AIT_MUST_USE ait_status ait_unpack(const char *path, const char *folder, const ait_unpack_options *options, char **out_json);
/* This machine: CPU, features, caches, cores, as JSON. */
AIT_API AIT_MUST_USE ait_status ait_machine(char **out_json);
/* This machine's roofline with that many threads (0: all that this process may use), measured for about `seconds` (0: 0.5): what the native
 * backend's matrix product and element-wise kernels reach. Callers keep it: it does not change. */
AIT_API AIT_MUST_USE ait_status ait_roofline_json(int32_t threads, double seconds, char **out_json);
/* Parses "scalar", "avx2", "avx512", "native"… into a mask for ait_load_options.cpu_mask. */
AIT_API AIT_MUST_USE ait_status ait_cpu_mask(const char *text, uint64_t *out);

#ifdef __cplusplus
}
#endif
#endif
