/* Recorded traffic against a plan: each request is really called once its turn comes, and waits behind those before it. Requests come when
 * the trace says (open loop). The clock is the trace's: while nobody waits, idle time is skipped, and so a quiet hour costs nothing. */
#ifndef AIT_SRC_TUNE_REPLAY_H
#define AIT_SRC_TUNE_REPLAY_H

#include "tune/candidate.h"
#include "tune/traffic.h"

/* One server, first come first served (Lindley's recursion): waits[i] is the time from arrival to the start of request i. arrivals ascend.
 * Returns when the last one ends. All in seconds. */
double ait_queue_run(const double *arrivals, const double *services, size_t count, double *waits);

typedef struct ait_replay_numbers {
  double p50, p95, p99, max;                     /* from arrival to answer */
  double wait_p50, wait_p99, wait_mean;          /* in the queue */
  double service_p50, service_p99, service_mean; /* at work */
  double throughput, goodput, good_share;        /* requests a second; those within the limit, and their share */
  double utilisation, span;                      /* of the server; seconds from first arrival to last answer */
  double quantile;                               /* the one that was asked for */
} ait_replay_numbers;
/* scratch: 2 * count doubles. limit: of goodput, seconds; 0: none, then all are good. */
ait_replay_numbers ait_replay_judge(const double *arrivals, const double *services, size_t count, double limit, double quantile,
                                    double *scratch);

enum { AIT_REPLAY_PASSES = 10, AIT_REPLAY_KINDS = 64 };
/* Plain data, for the record. */
typedef struct ait_replay_result {
  ait_outcome outcome;
  char reason[AIT_REASON_SIZE];
  /* Of all passes. measured: calls that count. Where the thread was descheduled (dropped), or time was up, times of earlier calls of that
   * kind stand in. */
  uint64_t requests, measured, dropped;
  uint32_t passes;
  double scores[AIT_REPLAY_PASSES];      /* of each pass: the quantile, or 1 / goodput; less is better */
  double score;                          /* their median */
  ait_replay_numbers numbers;            /* of the pass with the median score */
  double kind_service[AIT_REPLAY_KINDS]; /* median of each kind, of the first so many */
} ait_replay_result;

typedef struct ait_replay_request {
  const ait_traffic *traffic;
  const ait_tune_cases *cases; /* for inputs */
  const ait_region *region;
  size_t output_count;
  double seconds;  /* to measure for, about; every kind is measured once at least */
  uint32_t passes; /* at most; 0: AIT_REPLAY_PASSES */
  double limit, quantile;
} ait_replay_request;
/* Both as one: passes of the second after those of the first, as many as there is room for. */
void ait_replay_join(ait_replay_result *first, const ait_replay_result *second);
/* Passes over the trace on this session until the time is up, the first one whole. Errors name file and line of the request. */
ait_status ait_replay_session(const ait_replay_request *request, ait_session *session, ait_replay_result *out) AIT_MUST_USE;
/* The same in a child process. The only error is cancelled. */
ait_status ait_trial_replay(const ait_trial_context *context, const ait_candidate *candidate, const ait_replay_request *request,
                            ait_replay_result *out) AIT_MUST_USE;

/* Members "requests" to "shapes" of docs/json.md, ait replay. limit: of goodput; 0: none. */
void ait_replay_put(ait_text *t, bool *first, const ait_traffic *traffic, const ait_replay_result *result, double limit);

#endif
