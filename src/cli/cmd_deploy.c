/* ait deploy: a causal language model becomes an .ait with caches. */
#include "cli/cli.h"

static void show(void *ctx, const char *line) {
  (void)ctx;
  fprintf(stderr, "%s\n", line);
}

int cli_cmd_deploy(const cli_args *args) {
  ait_deploy_options options;
  const char *path = cli_option(args, "output");
  char *json;
  if (!path) return cli_usage("'ait deploy' needs -o OUT.ait");
  ait_deploy_options_init(&options);
  if (!cli_int(args, "max-seq", 2, 1 << 24, 0, &options.max_seq)) return CLI_USAGE;
  if (!cli_int(args, "page-size", 1, 1024, 0, &options.page_size)) return CLI_USAGE;
  if (!cli_int(args, "group", 1, 1024, 0, &options.group)) return CLI_USAGE;
  options.quantize = cli_option(args, "quantize");
  options.embedding = cli_option(args, "embedding");
  options.head = cli_option(args, "head");
  options.kv_dtype = cli_option(args, "kv-dtype");
  options.weights = cli_option(args, "weights");
  options.allow_unmatched = cli_flag(args, "allow-unmatched");
  options.skip_proof = cli_flag(args, "no-proof");
  if (!cli_flag(args, "quiet")) options.note = show;
  ait_status status = ait_deploy(args->positional[0], path, &options, &json);
  if (status) return cli_fail(status);
  int code = CLI_DONE;
  if (cli_wants_json(args)) code = cli_json(args, json_tokener_parse(json));
  else if (!cli_flag(args, "quiet")) printf("%s", json);
  ait_string_free(json);
  return cli_finish(code);
}
