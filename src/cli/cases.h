/* A folder of test cases (CONTRACT.md, section 5): run one case, in this process. Beyond that format, a case that expects an error may hold
 * "message": words that the error must contain; a step may have "reset": the session's state becomes the model's before it runs. */
#ifndef AIT_SRC_CLI_CASES_H
#define AIT_SRC_CLI_CASES_H

#include "cli/cli.h"

typedef enum case_outcome { CASE_PASSED, CASE_FAILED, CASE_SKIPPED } case_outcome;

typedef struct case_result {
  case_outcome outcome;
  char text[1024]; /* why it failed or was skipped: output, worst element, both values; or the error that was expected */
  double max_abs;  /* over all outputs of all steps */
} case_result;

/* `folder` holds cases.json; `c` is one element of its "cases". */
void case_run(const cli_args *args, const char *folder, struct json_object *c, case_result *out);

/* case_compare.c: got against the array or scalar that `spec` describes. Writes the reason into out->text and returns false when it
 * differs. */
bool case_compare_value(const ait_value *got, const ait_tensor *want, struct json_object *spec, const char *what, case_result *out);
bool case_fail(case_result *out, const char *format, ...) AIT_PRINTF(2, 3); /* returns false */

#endif
