/* Texts of the command line: --text, and the lines or the whole of --file. */
#ifndef AIT_SRC_CLI_TEXTS_H
#define AIT_SRC_CLI_TEXTS_H

#include "cli/cli.h"

typedef struct cli_texts {
  const char **items;
  size_t *sizes, count;
  char *file; /* what the items of --file point into */
} cli_texts;

/* lines: each line of the file is a text, without its end; else the file is one. Usage errors are printed; an exit code. */
int cli_texts_read(const cli_args *args, bool lines, cli_texts *out);
void cli_texts_deinit(cli_texts *texts);
/* "1,2,3" to ids, appended. *out_bad: where it cannot be read; NULL. */
ait_status cli_ids_parse(const char *text, ait_token_list *out, const char **out_bad) AIT_MUST_USE;
struct json_object *cli_ids_json(const int32_t *ids, size_t count);

#endif
