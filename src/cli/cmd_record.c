/* ait record: the database of trials, shared and tidied up. */
#include "cli/json_view.h"
#include <stdlib.h>
#include <string.h>

const char *cli_record_path(const cli_args *args, char *buffer, size_t size) {
  const char *file = cli_option(args, "record"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (file) return strcmp(file, "none") ? file : NULL;
  if (cache && *cache) snprintf(buffer, size, "%s/ait/record.db", cache);
  else if (home && *home) snprintf(buffer, size, "%s/.cache/ait/record.db", home);
  else return NULL;
  return buffer;
}

static int export_record(const cli_args *args, const char *path, char **out) {
  const char *output = cli_option(args, "output");
  if (args->positional_count > 1) return cli_usage("'ait record export' takes no file; --record names the database");
  if (!output) return cli_usage("'ait record export' needs -o OUT.db");
  return cli_fail(ait_record_export(path, output, out));
}

static int merge_records(const cli_args *args, const char *path, char **out) {
  if (args->positional_count < 2) return cli_usage("'ait record merge' needs a file");
  return cli_fail(ait_record_merge(path, args->positional + 1, (size_t)args->positional_count - 1, out));
}

static int prune_record(const cli_args *args, const char *path, char **out) {
  double days;
  ait_record_prune_options options = {.other_builds = cli_flag(args, "other-builds")};
  if (args->positional_count > 1) return cli_usage("'ait record prune' takes no file; --record names the database");
  if (!cli_double(args, "older", 0, &days)) return CLI_USAGE;
  if (!cli_flag(args, "older") && !options.other_builds) return cli_usage("'ait record prune' needs --older DAYS or --other-builds");
  if (cli_flag(args, "older")) options.older_seconds = days > 0 ? days * 86400 : 1e-9; /* 0: all that is there */
  return cli_fail(ait_record_prune(path, &options, out));
}

static void say(const char *verb, struct json_object *o) {
  if (!strcmp(verb, "prune")) printf("removed %s, %s left\n", cli_member(o, "removed"), cli_member(o, "rows"));
  else if (!strcmp(verb, "export")) printf("wrote %s: %s rows\n", cli_member(o, "file"), cli_member(o, "rows"));
  else
    printf("read %s rows: %s added, %s replaced, %s now\n", cli_member(o, "rows_read"), cli_member(o, "added"), cli_member(o, "replaced"),
           cli_member(o, "rows"));
}

int cli_cmd_record(const cli_args *args) {
  const char *verb = args->positional[0];
  char buffer[1024], *text = NULL;
  const char *path = cli_record_path(args, buffer, sizeof buffer);
  int code;
  if (strcmp(verb, "export") && strcmp(verb, "merge") && strcmp(verb, "prune"))
    return cli_usage("'ait record %s': it is export, merge or prune", verb);
  if (!path) return cli_fail(ait_error_hint(ait_error(AIT_CODE_UNAVAILABLE, "there is no place for a record"), "use --record FILE"));
  if (!strcmp(verb, "export")) code = export_record(args, path, &text);
  else if (!strcmp(verb, "merge")) code = merge_records(args, path, &text);
  else code = prune_record(args, path, &text);
  if (code != CLI_DONE) return code;
  struct json_object *o = cli_document(AIT_OK, text, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  say(verb, o);
  json_object_put(o);
  return CLI_DONE;
}
