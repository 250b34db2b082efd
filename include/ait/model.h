/* Loaded models: what they take and give.
 *
 * A model is immutable after loading and may be shared by any number of threads and sessions; it is counted. Strings returned here
 * live as long as the model. */
#ifndef AIT_MODEL_H
#define AIT_MODEL_H

#include <ait/backend.h>
#include <ait/keys.h>
#include <ait/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ait_model ait_model;

typedef struct ait_load_options {
  uint32_t struct_size;
  ait_allocator allocator;
  uint64_t cpu_mask;      /* CPU features that may be used (see ait_cpu_mask_parse); all: UINT64_MAX */
  bool skip_checksum;     /* do not hash the weights on load; the small entries are always hashed */
  const char *model_name; /* which model of a .pt2 archive that holds several; NULL: the only one */
  const char *backend;    /* ait_model_import: build the whole model on this backend; NULL: "reference" */
  const char *passes;     /* ait_model_import: passes or pipelines to run first; NULL: what the backend needs */
  const char *knobs;      /* ait_model_import: "key=value,key=value" for that backend, or NULL */
  int32_t threads;        /* threads that may check a large file, the caller's included; 0 or 1: only the caller's */
  bool full_checksum;     /* SHA-256 of weights and plans, too, where loading is content with a fast sum (docs/format.md) */
  const char *weights;  /* ait_model_import: a .safetensors, an index of its shards or a folder with either: takes the place of the model's
                         * own weights, by name. Not for an .ait. NULL: the model's own */
  const ait_keys *keys; /* whose signatures are trusted; NULL: nobody's. Borrowed during the call. Needed where code runs from a file */
  bool require_signature; /* refuse a .ait that is not signed by a trusted key */
  bool check_when_read;   /* hash those weights and plans only that are read on this machine, before they are. A language model's file holds
                           * its weights twice, packed and plain: ait_llm_load sets this */
} ait_load_options;
AIT_API void ait_load_options_init(ait_load_options *options);

/* A sealed .ait file. options may be NULL. Errors name the file and the entry: io, invalid-model, incompatible, not-found;
 * unavailable where require_signature is set and the key that signed is not known. */
AIT_API AIT_MUST_USE ait_status ait_model_load(const char *path, const ait_load_options *options, ait_model **out);
/* libait only: a .pt2 (or, by content, a .ait) to be run unoptimised on the reference backend. */
AIT_API AIT_MUST_USE ait_status ait_model_import(const char *path, const ait_load_options *options, ait_model **out);
AIT_API ait_model *ait_model_retain(ait_model *model);
AIT_API void ait_model_release(ait_model *model);

typedef struct ait_dim_info {
  int64_t min, max; /* equal: fixed; max INT64_MAX: unbounded */
  const char *text; /* "8", "s0", "2*s0" */
} ait_dim_info;

typedef struct ait_port {
  const char *name;
  ait_value_kind kind; /* tensor, int, float, bool, string, none */
  ait_dtype dtype;     /* tensors */
  int32_t rank;        /* -1: not known before running */
  ait_dim_info shape[AIT_MAX_RANK];
  bool baked; /* export fixed this value: the caller must pass the same */
} ait_port;

AIT_API size_t ait_model_input_count(const ait_model *model);
AIT_API size_t ait_model_output_count(const ait_model *model);
/* Errors: invalid-argument when index is out of range. */
AIT_API AIT_MUST_USE ait_status ait_model_input(const ait_model *model, size_t index, ait_port *out);
AIT_API AIT_MUST_USE ait_status ait_model_output(const ait_model *model, size_t index, ait_port *out);
/* Buffers that a run may change, in the file's order. NULL when index is out of range. */
AIT_API const char *ait_model_state_name(const ait_model *model, size_t index);
/* Who signed the file (unsigned: an imported model, too). */
AIT_API ait_signature ait_model_signature(const ait_model *model);
/* The manifest of a .ait as JSON text ("" for an imported model). */
AIT_API const char *ait_model_manifest(const ait_model *model);
/* An entry of the file ("tokenizer.json", "embed.json"), not ended by NUL; NULL: there is none. Lives as long as the model. */
AIT_API const void *ait_model_entry(const ait_model *model, const char *name, size_t *out_size);
/* Why this model does not run on the best plan of its file ("plan 'x86-64-avx512' needs avx512, which ... "); "" when it does. */
AIT_API const char *ait_model_reason(const ait_model *model);
/* Target of the plan that runs, "x86-64-avx2"; "portable" when the portable graph does. */
AIT_API const char *ait_model_target(const ait_model *model);
/* The plans of a file, in the order in which they were tried. */
typedef struct ait_plan_info {
  const char *target, *machine; /* CPU features; the CPU it was tuned on, "" when the file does not say */
  const char *cpu;              /* features it needs, "sse2,avx2" */
  const char *why_not;          /* why it does not run here; "" when it does */
  int32_t threads;              /* it was tuned for */
  bool runs;
  bool made_here;     /* tuned on a CPU of this name */
  const char *report; /* its tuning report, JSON of report_size bytes, not ended by NUL; NULL: the manifest's "tuning" */
  size_t report_size;
} ait_plan_info;
AIT_API size_t ait_model_plan_count(const ait_model *model); /* an imported model has the one that was made for it */
AIT_API bool ait_model_plan(const ait_model *model, size_t index, ait_plan_info *out); /* false: index out of range */
/* The portable graph: exactly what the user's file says. Valid as long as the model. */
AIT_API const ait_region *ait_model_region(const ait_model *model);
AIT_API ait_weights ait_model_weights(const ait_model *model);

#ifdef __cplusplus
}
#endif
#endif
