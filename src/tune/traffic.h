/* Recorded traffic: when requests came and of what sizes. Never what was in them. docs/traffic.md describes the file. */
#ifndef AIT_SRC_TUNE_TRAFFIC_H
#define AIT_SRC_TUNE_TRAFFIC_H

#include "tune/cases.h"

/* One input's shape, or a whole number that is a size; or one dynamic size by name. */
typedef struct ait_traffic_size {
  const char *name;
  int32_t rank; /* -1: dims[0] is the number itself */
  int64_t dims[AIT_MAX_RANK];
} ait_traffic_size;

/* Requests of equal sizes are of one kind. */
typedef struct ait_traffic_kind {
  uint32_t line; /* of the first such request */
  uint64_t requests;
  ait_traffic_size *inputs, *symbols; /* "inputs", "dims" */
  uint32_t input_count, symbol_count;
  int64_t batch;    /* "batch"; 0: not said */
  const char *data; /* "data": a file beside the trace; NULL */
} ait_traffic_kind;

typedef struct ait_traffic_request {
  double at; /* seconds after the first */
  uint32_t kind, line;
} ait_traffic_request;

typedef struct ait_traffic {
  ait_arena arena; /* all of it */
  char name[128];  /* of the file, without its folder */
  char folder[1024];
  ait_traffic_request *requests; /* in the order in which they came */
  size_t request_count;
  ait_traffic_kind *kinds;
  size_t kind_count;
  uint64_t hash; /* of the text */
} ait_traffic;

enum { AIT_TRAFFIC_KINDS = 1024 };
/* path: for messages and for the folder of data files. Errors: invalid-argument and limit, with file and line. */
ait_status ait_traffic_parse(const char *path, const char *text, size_t length, ait_traffic *out) AIT_MUST_USE;
ait_status ait_traffic_open(const char *path, ait_traffic *out) AIT_MUST_USE;
void ait_traffic_deinit(ait_traffic *traffic);
/* The request's inputs: those of the first case at the kind's sizes, or its data. Errors name file and line. Released with
 * ait_tune_case_release. */
ait_status ait_traffic_case(const ait_traffic *traffic, size_t kind, const ait_tune_cases *cases, const ait_region *region,
                            ait_tune_case *out) AIT_MUST_USE;
/* "x [4, 8], n 3", "batch 4" … */
void ait_traffic_kind_text(const ait_traffic_kind *kind, char *out, size_t size);

#endif
