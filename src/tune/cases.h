/* Calls on which candidates are checked: the user's samples, and the smallest and largest sizes that the model allows, with the oracle's
 * answers in double and a tolerance from its own rounding noise. */
#ifndef AIT_SRC_TUNE_CASES_H
#define AIT_SRC_TUNE_CASES_H

#include "tune/tune.h"

typedef struct ait_tune_case {
  char label[32];   /* "sample 0", "smallest", "largest"; "larger": one more than the sample, where the largest takes the oracle too long */
  char shapes[256]; /* "[8, 128] [8, 128]" */
  ait_value *inputs; /* owned copies */
  size_t input_count;
  ait_value *expected; /* by output; tensors in double, or as they are when not floating */
  bool measured;       /* one of the user's samples: also timed */
  bool wanted;         /* a size that the user asked for (ait_tune_options.buckets): never left out */
  double cost;         /* of the largest: arithmetic as a multiple of the first sample's */
} ait_tune_case;

typedef struct ait_tune_output {
  const char *name;
  ait_dtype dtype; /* of the model; NONE: no tensor */
  bool exact;      /* integers and bools */
  double noise, max_abs, atol, rtol;
} ait_tune_output;

typedef struct ait_tune_cases {
  ait_tune_case *items;
  size_t count;
  ait_tune_output *outputs;
  size_t output_count;
  bool *may_change; /* by input of a call: the model itself writes into it */
  size_t input_count;
  bool pure;                /* a call does not depend on those before it */
  double reference_seconds; /* of one sample in single precision */
  bool double_precision;    /* the oracle ran in double; else single, and `why` says why */
  char why[256];
} ait_tune_cases;

/* Builds the cases: inputs only. buckets: as in ait_tune_options, or NULL. */
ait_status ait_tune_cases_create(const ait_graph *raw, const ait_sample *samples, size_t sample_count, const char *const *buckets,
                                 ait_tune_cases *out) AIT_MUST_USE;
/* One case, measured: a copy of this sample. The region outlives the cases. */
ait_status ait_tune_cases_single(const ait_region *region, const ait_sample *sample, ait_tune_cases *out) AIT_MUST_USE;
/* Runs the oracle: answers and tolerances. Uses threads threads, none are left when it returns. A largest case that would take the oracle
 * too long is dropped. */
ait_status ait_tune_cases_answer(ait_tune_cases *cases, const ait_graph *raw, const ait_tune_options *options,
                                 int32_t threads) AIT_MUST_USE;

/* What the oracle found, without its answers: plain data for the record, enough for a report when every trial is known already. */
enum { AIT_SUMMARY_OUTPUTS = 64 };
typedef struct ait_tune_summary {
  uint64_t case_count, output_count;
  bool double_precision;
  char why[256];
  double reference_seconds;
  struct {
    bool exact;
    double noise, max_abs, atol, rtol;
  } outputs[AIT_SUMMARY_OUTPUTS];
} ait_tune_summary;
/* false: too many outputs for a summary. */
bool ait_tune_cases_summarise(const ait_tune_cases *cases, ait_tune_summary *out);
/* Takes the summary over; false when it does not fit these cases. */
bool ait_tune_cases_recall(ait_tune_cases *cases, const ait_tune_summary *summary);
/* The first sample at other sizes: symbols has region->symbol_count values. *out_possible: false when a guard forbids them; then *out is
 * empty. Released with ait_tune_case_release. */
ait_status ait_tune_case_resized(const ait_tune_cases *cases, const ait_region *region, const int64_t *symbols, const char *label,
                                 ait_tune_case *out, bool *out_possible) AIT_MUST_USE;
void ait_tune_case_release(const ait_tune_cases *cases, ait_tune_case *c);
void ait_tune_cases_deinit(ait_tune_cases *cases);
uint64_t ait_tune_cases_hash(const ait_tune_cases *cases); /* of shapes and contents of the inputs */

/* How far a candidate's answers are off. worst: largest error divided by its tolerance, over outputs (1 is the limit). */
typedef struct ait_tune_error {
  bool pass;
  double worst, max_abs, snr_db;
  char reason[256];
} ait_tune_error;
/* The same for one output of one case. */
typedef struct ait_tune_row {
  uint32_t case_index, output_index;
  double worst, max_abs, snr_db;
} ait_tune_row;
typedef struct ait_tune_rows {
  ait_tune_row *items; /* the caller's; a full table keeps the first ones */
  uint32_t count, capacity;
} ait_tune_rows;
/* Runs every case on the session, twice (repeatability). The error of the run itself comes back as status. rows: may be NULL. */
ait_status ait_tune_check(ait_session *session, const ait_tune_cases *cases, ait_tune_rows *rows, ait_tune_error *out) AIT_MUST_USE;
/* The same on memory that is lent: inputs that are seen to stay as they are, unless the model writes into them, and outputs from
 * `allocator`, which are to be filled. */
ait_status ait_tune_check_lent(ait_session *session, const ait_tune_cases *cases, ait_allocator allocator,
                               ait_tune_error *out) AIT_MUST_USE;
/* Answers of one case that somebody else has called for. */
ait_status ait_tune_check_answers(const ait_tune_cases *cases, size_t index, const ait_value *outputs, ait_tune_error *out) AIT_MUST_USE;

#endif
