/* Front door of the artifact room: the .ait file. docs/format.md is its specification.
 *
 * A ZIP of stored entries, data 64-byte aligned (weights and blobs: 4096): manifest.json, graph.bin (the portable region, encoded),
 * weights.json + weights/<n> (one entry per storage), targets/<fingerprint>/<region>.blob, SHA256SUMS over all. Written atomically;
 * equal plans give equal bytes. */
#ifndef AIT_SRC_ARTIFACT_H
#define AIT_SRC_ARTIFACT_H

#include "artifact/region.h"
#include "backends/region_codec.h"
#include "base/base.h"
#include "tensor/tensor.h"
#include <ait/backend.h>
#include <ait/keys.h>

/* ---- plan: what the tuner decided, what the runtime runs ------------------------------------------------------------------------*/
/* One step runs one region on one backend. Values between steps are numbered; inputs[i] is the plan value for region input i
 * (AIT_NO_INDEX for weights), outputs[i] that of region output i (AIT_NO_INDEX for new contents of state and inputs, which go to the
 * buffer or user input that the region names). Plan values 0..user_inputs-1 are the model's user inputs, by position. */
typedef struct ait_plan_step {
  char *backend, *options; /* "native", "threads=2,winograd=off" */
  char *needs;             /* what the backend needs beside this library, "Python and torch"; NULL: nothing */
  ait_region *region;      /* owned copy (ait_region_copy) of the region's inputs and outputs; nodes empty unless the backend needs none */
  ait_blob blob;           /* owned, or mapped from the file */
  bool blob_mapped;
  uint32_t *inputs, *outputs;
} ait_plan_step;

/* Sizes that were measured: a box in the values of the model's symbols. Both ends belong to it; a symbol without a range: any value. */
typedef struct ait_plan_range {
  char *symbol;
  int64_t min, max; /* max INT64_MAX: unbounded */
} ait_plan_range;
typedef struct ait_plan_bucket {
  uint32_t range_count;
  ait_plan_range *ranges;
  struct ait_plan *plan; /* owned: what is fastest there, right at every other size, too. NULL: the plan that the bucket belongs to */
} ait_plan_bucket;

typedef struct ait_plan {
  ait_allocator allocator;
  char *target;       /* CPU features, "sse2,avx2" */
  char *machine;      /* where it was tuned, "AMD EPYC …"; NULL: not said */
  const char *report; /* the tuner's report of this plan, JSON, not ended by NUL; borrowed; NULL: the file's own is of this plan, too */
  size_t report_size;
  uint64_t cpu_needed; /* features that the blobs use */
  int32_t threads;     /* what it was tuned for */
  uint32_t value_count, step_count;
  ait_plan_step *steps;
  uint32_t output_count; /* user outputs of the model: */
  uint32_t *outputs;     /* the plan value of each; AIT_NO_INDEX: a constant that the portable region states */
  uint32_t bucket_count; /* no two of them meet; a bucket's plan has none, no target and no machine: they are its owner's */
  ait_plan_bucket *buckets;
} ait_plan;
void ait_plan_deinit(ait_plan *plan);
void ait_plan_step_deinit(ait_allocator a, ait_plan_step *step);
/* Every index in range, every value defined before it is used: plans come from files. Errors: invalid-model. plan.c */
ait_status ait_plan_check(const ait_plan *plan, const ait_region *portable) AIT_MUST_USE;
/* "s0 1 to 8, s1 16 and more"; "" for none. buckets.c */
void ait_plan_ranges_text(const ait_plan_bucket *bucket, char *out, size_t size);
enum { AIT_PLAN_BUCKETS_MAX = 64, AIT_PLAN_RANGES_MAX = 16 };
/* Room for `count` buckets, which are zeroed; ranges likewise. */
ait_status ait_plan_new_buckets(ait_plan *plan, uint32_t count) AIT_MUST_USE;
ait_status ait_plan_bucket_new_ranges(ait_allocator a, ait_plan_bucket *bucket, uint32_t count) AIT_MUST_USE;
void ait_plan_buckets_deinit(ait_plan *plan);
/* Known symbols, ranges that are not empty and not beyond the symbol's own, no two buckets with a size in common, plans that
 * ait_plan_check takes. Errors: invalid-model "bucket 1: …". */
ait_status ait_plan_check_buckets(const ait_plan *plan, const ait_region *portable) AIT_MUST_USE;
/* The region's interface: no nodes, no guards. For ait_plan_step.region. */
ait_status ait_region_interface(ait_allocator a, const ait_region *region, ait_region **out) AIT_MUST_USE;

/* ---- writing ---------------------------------------------------------------------------------------------------------------------*/
#define AIT_FORMAT 1u /* what this library writes, and the newest it reads */
#define AIT_ENTRY_MANIFEST "manifest.json"
#define AIT_ENTRY_GRAPH "graph.bin"
#define AIT_ENTRY_WEIGHTS "weights.json"
#define AIT_ENTRY_DRAFT "draft.ait" /* a whole file: the smaller model that proposes tokens for this one */
#define AIT_ENTRY_SIGNATURE "SIGNATURE"
#define AIT_ENTRY_SUMS "CHECKSUMS"
#define AIT_ENTRY_SHA256 "SHA256SUMS"

typedef struct ait_artifact_writer ait_artifact_writer;
ait_status ait_artifact_create(ait_allocator a, const char *path, ait_artifact_writer **out) AIT_MUST_USE;
/* align: a power of two, at most 4096. Entries under weights/ and targets/ are bulk: checked by the fast sum on load. */
ait_status ait_artifact_add(ait_artifact_writer *w, const char *entry, const void *data, size_t size, size_t align) AIT_MUST_USE;
/* Adds SIGNATURE, over everything added before: nothing but ait_artifact_finish may follow. */
struct ait_private_key;
ait_status ait_artifact_add_signature(ait_artifact_writer *w, const struct ait_private_key *key) AIT_MUST_USE;
/* Adds CHECKSUMS, SHA256SUMS, the directory, and commits. Entries are written in the order added. */
ait_status ait_artifact_finish(ait_artifact_writer *w) AIT_MUST_USE;
void ait_artifact_writer_destroy(ait_artifact_writer *w); /* aborts when not finished; takes NULL */

typedef struct ait_artifact_extra {
  const char *name;
  const void *data;
  size_t size;
} ait_artifact_extra;

/* Everything of a model at once: portable region, weights, plans, manifest text (see docs/format.md for its fields). */
typedef struct ait_artifact_content {
  const ait_region *portable;
  const ait_weight_store *weights;
  const ait_plan *plans;
  size_t plan_count;
  const char *report_json; /* tuner's record: goes into the manifest under "tuning"; NULL: none */
  const char *call_json;   /* how callers pass arguments and get results: into the manifest under "call"; NULL: nothing is known */
  const char *deploy_json; /* what was proven and measured of a language model: into the manifest under "deploy"; NULL: it is none */
  const char *producer;    /* "torch 2.13.0" */
  const char *model_name;
  const struct ait_private_key *signer; /* NULL: not signed */
  const ait_artifact_extra *extras;     /* entries that no reader needs: samples */
  size_t extra_count;
} ait_artifact_content;
ait_status ait_artifact_write(ait_allocator a, const char *path, const ait_artifact_content *content) AIT_MUST_USE;

/* ---- reading ---------------------------------------------------------------------------------------------------------------------*/
typedef struct ait_artifact ait_artifact; /* mapped; immutable, counted, thread-safe */
typedef struct ait_artifact_open_options {
  bool skip_bulk_checksum; /* weights and blobs are taken as they are; all else is always checked */
  int32_t threads;         /* that may check the bulk, the caller's included; 0 or 1: only the caller's */
  const ait_keys *keys;    /* whose signatures are trusted; NULL: nobody's */
  bool require_signature;  /* by a trusted key */
} ait_artifact_open_options;
/* options may be NULL. A signature that is not right is refused. A signed file is checked by SHA-256 throughout when keys are given or a
 * signature is required, whatever skip_bulk_checksum says: without that "trusted" would say nothing of the weights. Errors are "cannot load
 * 'x.ait': …" and name the entry: invalid-model (damaged, or no signature where one is required), unavailable (signed by an unknown key
 * where a trusted one is required), incompatible (newer), io, not-found, out-of-memory. */
ait_status ait_artifact_open(ait_allocator a, const char *path, const ait_artifact_open_options *options, ait_artifact **out) AIT_MUST_USE;
/* A whole .ait that is an entry of another; it keeps the outer mapping, not the outer artifact. Its own sums are checked as `options` say,
 * the outer sum of the entry is not. Errors: not-found (no such entry), and those above. */
ait_status ait_artifact_open_inside(const ait_artifact *outer, const char *entry, const ait_artifact_open_options *options,
                                    ait_artifact **out) AIT_MUST_USE;
ait_artifact *ait_artifact_retain(ait_artifact *artifact);
void ait_artifact_release(ait_artifact *artifact);                  /* takes NULL */
ait_signature ait_artifact_signature(const ait_artifact *artifact); /* texts live as long as the artifact */
/* What skip_bulk_checksum left out, entry by entry: checks the one that `inside` points into, unless that was done. Any thread. Errors:
 * invalid-model. */
ait_status ait_artifact_check(const ait_artifact *artifact, const void *inside, int32_t threads) AIT_MUST_USE;
/* The file's weights, each checked so when it is asked for. */
ait_weights ait_artifact_checked_weights(const ait_artifact *artifact);
/* SHA-256 of every entry, the bulk included: for `ait verify`, before signing, appending and unpacking. */
ait_status ait_artifact_verify(const ait_artifact *artifact) AIT_MUST_USE;
/* A mapped entry; NULL when there is none of that name. */
const void *ait_artifact_entry(const ait_artifact *artifact, const char *name, size_t *out_size);
size_t ait_artifact_entry_count(const ait_artifact *artifact);
const char *ait_artifact_entry_name(const ait_artifact *artifact, size_t index);
bool ait_entry_is_bulk(const char *name); /* weights, blobs, a file within: aligned to pages, checked by the fast sum */
/* From one file into another, as it is. sign.c */
ait_status ait_artifact_copy_entry(ait_artifact_writer *w, const ait_artifact *from, const char *name) AIT_MUST_USE;
const char *ait_artifact_manifest(const ait_artifact *artifact); /* NUL-terminated JSON */
/* The file's report of its tuning, NUL-terminated, from the artifact's arena: for one thread at a time. *out NULL: there is none. */
ait_status ait_artifact_report(ait_artifact *artifact, const char **out) AIT_MUST_USE;
/* What the file says of its call, in the same way. */
ait_status ait_artifact_call(ait_artifact *artifact, const char **out) AIT_MUST_USE;
/* What was proven and measured of a language model, in the same way. */
ait_status ait_artifact_deploy(ait_artifact *artifact, const char **out) AIT_MUST_USE;
const char *ait_artifact_model_name(const ait_artifact *artifact);
const char *ait_artifact_producer(const ait_artifact *artifact);
const ait_region *ait_artifact_region(const ait_artifact *artifact);
const ait_weight_store *
ait_artifact_weights(const ait_artifact *artifact); /* views of the mapping; a retained store outlives the artifact */
/* All plans in the file, those that need most of a CPU first. Blobs are mapped. Whether this CPU can run them: cpu_needed. */
size_t ait_artifact_plan_count(const ait_artifact *artifact);
const ait_plan *ait_artifact_plan(const ait_artifact *artifact, size_t index); /* plans lie one after the other */
/* A cpu_needed bit that stands for features this library has no name for. */
#define AIT_CPU_UNKNOWN_FEATURE ((uint64_t)1 << 63)

#endif
