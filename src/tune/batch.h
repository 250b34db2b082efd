/* The batch size that gives the most rows a second, found without ever asking for more memory than there is. */
#ifndef AIT_SRC_TUNE_BATCH_H
#define AIT_SRC_TUNE_BATCH_H

#include "tune/candidate.h"

/* ---- which sizes -----------------------------------------------------------------------------------------------------------------*/
enum { AIT_BATCH_LIST = 32 };
typedef struct ait_batch_space {
  uint32_t symbol;              /* of the region: dimension 0 of an input */
  int64_t low, high;            /* of what the model and the user allow */
  int64_t list[AIT_BATCH_LIST]; /* the user's sizes, ascending; none: every size from low to high */
  uint32_t list_count;
} ait_batch_space;
/* "1..64", "8", "1,2,16": sizes >= 1. Fills low, high and list. Errors: invalid-argument. */
ait_status ait_batch_sizes_parse(const char *text, ait_batch_space *out) AIT_MUST_USE;
/* The batch is a free size that is dimension 0 of inputs and outputs, and no other dimension of an input. *out_found false: the model has
 * none. sizes: the user's, or NULL. Errors: invalid-argument (sizes that the model does not take). */
ait_status ait_batch_find(const ait_region *region, const char *sizes, ait_batch_space *out, bool *out_found) AIT_MUST_USE;

/* ---- the search: knows nothing of models -----------------------------------------------------------------------------------------*/
typedef struct ait_batch_point {
  int64_t size;
  double median, low, high; /* seconds of one call with its 95 % interval */
  double quantile;          /* seconds: the one that a limit is for */
  uint64_t bytes;           /* that the process took for it */
  uint32_t measurements;
} ait_batch_point;

typedef struct ait_batch_limits {
  double latency;     /* of the quantile, seconds; 0: none */
  double quantile;    /* 0.95 */
  uint64_t bytes;     /* UINT64_MAX: none */
  double seconds;     /* for the whole search: at least one size is measured */
  int64_t known_size; /* what is known before: this size took known_bytes; 0: nothing */
  uint64_t known_bytes;
} ait_batch_limits;

/* Why no larger size was tried. */
typedef enum ait_batch_stop {
  AIT_BATCH_STOP_RANGE,     /* that was the largest */
  AIT_BATCH_STOP_SATURATED, /* larger ones gain nothing */
  AIT_BATCH_STOP_LATENCY,
  AIT_BATCH_STOP_MEMORY,
  AIT_BATCH_STOP_TIME,
  AIT_BATCH_STOP_FAILED,
  AIT_BATCH_STOP_COUNT,
} ait_batch_stop;
const char *ait_batch_stop_text(ait_batch_stop stop);

/* Plain data, for the record. */
enum { AIT_BATCH_POINTS = 40 };
typedef struct ait_batch_result {
  ait_outcome outcome; /* valid: the points hold; they may be fewer than wanted, and the reason says why */
  char reason[AIT_REASON_SIZE];
  ait_batch_stop stop;
  int32_t best;           /* -1: no size keeps the limits */
  int64_t refused;        /* stop by memory: the size, */
  uint64_t refused_bytes; /* what it would have taken, */
  uint64_t limit_bytes;   /* and what there was */
  uint32_t count;
  ait_batch_point points[AIT_BATCH_POINTS]; /* in the order in which they were measured */
} ait_batch_result;

/* Doubles from the smallest size until more rows a second do not come, then narrows the peak by golden section (Kiefer 1953). What lies
 * within 1 % of the best is a tie, and the smallest of them wins. Memory of a size is foretold from those before: one that would not fit is
 * never tried. measure: fills all but `size`. Its errors end the search: outcome failed when there is no point yet. */
void ait_batch_search(const ait_batch_space *space, const ait_batch_limits *limits,
                      ait_status (*measure)(void *ctx, ait_batch_point *point), void *ctx, ait_batch_result *out);
/* Bytes of a size, by a line through the two largest points below it (through one: in proportion). 0: nothing is known. */
double ait_batch_foretell(const ait_batch_point *points, uint32_t count, int64_t size);
/* The best of the points that keep the limits; -1: none does. */
int32_t ait_batch_best(const ait_batch_point *points, uint32_t count, const ait_batch_limits *limits);
bool ait_batch_keeps(const ait_batch_point *point, const ait_batch_limits *limits);

/* ---- trial_batch.c: in a child process -------------------------------------------------------------------------------------------*/
/* The first case at other sizes. Whatever the child does, this returns, with the points that were measured before; the only error is
 * cancelled. */
ait_status ait_trial_batches(const ait_trial_context *context, const ait_candidate *candidate, const ait_batch_space *space,
                             const ait_batch_limits *limits, ait_batch_result *out) AIT_MUST_USE;

#endif
