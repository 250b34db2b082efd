/* Tuning: from a model file and data to a sealed .ait. libait only. */
#ifndef AIT_TUNE_H
#define AIT_TUNE_H

#include <ait/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call of the model: values in the order of its user inputs. */
typedef struct ait_sample {
  const ait_value *inputs;
  size_t input_count;
} ait_sample;

typedef struct ait_tune_progress {
  const char *phase;     /* "reference", "build", "check", "measure", "final" */
  const char *candidate; /* "native threads=2", or "" */
  uint32_t done, total;
  double seconds, budget_seconds;
  const char *line; /* a finished thing to report, or NULL */
} ait_tune_progress;

typedef struct ait_tune_options {
  uint32_t struct_size;
  ait_allocator allocator;
  const char *strategy;        /* of ait/strategies.inc, with its argument: "latency-budget=5"; NULL: the first there, max-throughput */
  const char *const *backends; /* NULL-terminated, in order of preference; NULL: all that are here */
  int32_t threads;             /* at most this many; 0: all that this process may use */
  double budget_seconds;       /* 0: 60 */
  double rtol, atol;           /* 0: from dtype and the reference's own rounding noise */
  const char *record_path;     /* SQLite record; NULL: none is kept */
  double trial_seconds;        /* limit for one candidate; 0: 120 */
  uint64_t trial_bytes;        /* address-space limit for one candidate; 0: none */
  uint64_t cpu_mask;
  const char *model_name;
  void (*progress)(void *ctx, const ait_tune_progress *event);
  void *progress_ctx;
  /* "auto" (default): also plans whose parts, cut where modules meet, run on different backends, when several are here; "modules": always
   * try them; "whole": never. */
  const char *regions;
  const char *const *module_backends; /* "MODULE=BACKEND", NULL-terminated: that module runs on that backend, whatever is fastest; NULL */
  const volatile bool *cancel;        /* set from a signal handler: stops after the running trial with `cancelled` */
  const char *weights;                /* as in ait_load_options */
  const ait_keys *keys;               /* borrowed */
  bool append;                        /* OUT_PATH exists and holds this model: its plans stay, and the new one joins them */
  bool embed_samples;                 /* the samples go into the file, as samples/<call>/<input>.npy; else nothing of the data does */
  const char *sign_key;               /* signs the result, as ait_sign; NULL: not signed */
  const char *call_json;              /* into the manifest under "call": how callers pass arguments (docs/python-pipelines.md); or NULL */
  bool from_record;                   /* decides from the record alone; what is not in it is an error (unavailable). Nothing is measured */
  uint64_t seed;                      /* of the order in which finalists are called; in the report */
  /* "NAME=1,8,64", NULL-terminated: sizes that candidates are measured at besides those of the samples; NAME is a symbol of the model or
   * INPUT.DIMENSION. Where another candidate is faster there, the sizes around get a plan of their own. NULL: the samples' sizes */
  const char *const *buckets;
  /* max-throughput and latency-budget: the sizes of dimension 0 that may be tried, "1..64" or "1,8,32"; NULL: all that the model takes, as
   * far as memory goes. */
  const char *batch_sizes;
  uint64_t memory_bytes;                /* no batch size may take more; 0: what the machine and its control groups leave */
  const char *const *module_strategies; /* "MODULE=STRATEGY", NULL-terminated: max-throughput, min-latency, first-wins; NULL */
  bool reference_last; /* the reference, where `backends` names it, only when nothing else is valid: as it is without a list */
} ait_tune_options;
AIT_API void ait_tune_options_init(ait_tune_options *options);

/* Tunes MODEL_PATH (.pt2) on the samples (at least one) and writes OUT_PATH. *out_report is JSON text (docs/json.md), to be freed with
 * ait_string_free, set also when nothing valid was found (status mismatch then). May be NULL. */
AIT_API AIT_MUST_USE ait_status ait_tune(const char *model_path, const char *out_path, const ait_sample *samples, size_t sample_count,
                                         const ait_tune_options *options, char **out_report);
/* ---- records of trials: SQLite files, safe under tuners at work ------------------------------------------------------------------------
 * Recorded trials are believed as if they had been run here: merge those of people whom you trust. *out_json (may be NULL): counts.
 * Errors: not-found; invalid-argument (no record, or damaged: nothing of that file is taken); incompatible (of a later version); io. */
/* A copy in one file, without a log beside it. */
AIT_API AIT_MUST_USE ait_status ait_record_export(const char *path, const char *out_path, char **out_json);
/* The trials of others into the record at path, which is made when missing. What both know: the newer counts. */
AIT_API AIT_MUST_USE ait_status ait_record_merge(const char *path, const char *const *from, size_t count, char **out_json);
typedef struct ait_record_prune_options {
  double older_seconds; /* remove what is older; 0: no limit */
  bool other_builds;    /* remove what another build of ait measured: this one does not reuse it */
} ait_record_prune_options;
AIT_API AIT_MUST_USE ait_status ait_record_prune(const char *path, const ait_record_prune_options *options, char **out_json);

AIT_API void ait_string_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
