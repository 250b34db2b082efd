/* Which sizes ran on which plan (ait_session_buckets), for run, bench and report. */
#ifndef AIT_SRC_CLI_BUCKETS_H
#define AIT_SRC_CLI_BUCKETS_H

#include "cli/cli.h"

/* A list; NULL where the plan has no buckets. */
struct json_object *cli_buckets_json(const ait_session *session);
/* With run counts; nothing where the plan has no buckets. */
void cli_buckets_print(const ait_session *session);

#endif
