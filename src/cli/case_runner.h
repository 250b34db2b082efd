/* Many cases, in parallel child processes. */
#ifndef AIT_SRC_CLI_CASE_RUNNER_H
#define AIT_SRC_CLI_CASE_RUNNER_H

#include "cli/cases.h"

typedef struct case_run_options {
  const cli_args *args;
  const char *folder;
  struct json_object *cases; /* array */
  int jobs;
  double timeout; /* seconds for one case */
  double slack;   /* 1; more under sanitizers: the 5 s limit is multiplied, the memory limit dropped */
  void (*done)(void *ctx, size_t index, const case_result *result, double seconds); /* in order of finishing */
  void *ctx;
} case_run_options;

void case_run_all(const case_run_options *options, const bool *selected);

#endif
