/* A run as a trace that chrome://tracing and ui.perfetto.dev show: calls, in them modules, in them steps. */
#ifndef AIT_SRC_CLI_TRACE_H
#define AIT_SRC_CLI_TRACE_H

#include "cli/cli.h"

typedef struct cli_trace cli_trace;
/* Of a session that was made with `profile`. NULL: no memory. */
cli_trace *cli_trace_create(ait_session *session);
/* A call that began at `start` and took `seconds` of a monotonic clock: the steps' times since the call before lie in it. Of many calls the
 * first hundred are kept. */
void cli_trace_call(cli_trace *trace, double start, double seconds);
int cli_trace_write(cli_trace *trace, const char *path); /* returns an exit code */
void cli_trace_destroy(cli_trace *trace);                /* takes NULL */

#endif
