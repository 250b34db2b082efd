/* The machine's roofline, measured once and kept in the user's cache folder. */
#ifndef AIT_SRC_CLI_ROOFLINE_CACHE_H
#define AIT_SRC_CLI_ROOFLINE_CACHE_H

#include "cli/cli.h"

/* JSON text as ait_roofline_json gives it, freed by the caller; NULL: not known for this machine and this number of threads. */
char *cli_roofline_cached(int32_t threads);
/* Measures, and keeps it where it can; NULL after a note when it cannot be measured. */
char *cli_roofline_measure(const cli_args *args, int32_t threads);

#endif
