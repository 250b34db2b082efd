/* ait unpack. */
#include "cli/json_view.h"
#include <string.h>

static void print_entries(struct json_object *o) {
  cli_table table;
  cli_table_init(&table, 2, "RL");
  cli_table_row(&table, "bytes", "entry");
  for (size_t i = 0; i < cli_member_count(o, "entries"); ++i) {
    struct json_object *e = cli_member_at(o, "entries", i);
    cli_table_row(&table, cli_member(e, "size"), cli_member(e, "name"));
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

int cli_cmd_unpack(const cli_args *args) {
  const char *folder = cli_option(args, "output"), *form = cli_option(args, "weights");
  bool only_list = cli_flag(args, "list"), npz = form && !strcmp(form, "npz");
  if (form && !npz && strcmp(form, "safetensors") != 0) return cli_usage("option '--weights': '%s' is not safetensors or npz", form);
  if (only_list == (folder != NULL)) return cli_usage("'ait unpack' needs -o DIR, or --list");
  ait_unpack_options options;
  cli_load load;
  char *text = NULL;
  int code;
  ait_unpack_options_init(&options);
  ait_status status = cli_load_open(args, &load);
  options.keys = load.keys;
  options.require_signature = cli_flag(args, "require-signature");
  options.npz = npz;
  if (status == AIT_OK) status = ait_unpack(args->positional[0], folder, &options, &text);
  cli_load_close(&load);
  struct json_object *o = cli_document(status, text, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  if (only_list) print_entries(o);
  else if (!cli_flag(args, "quiet")) printf("unpacked %s into %s\n", args->positional[0], folder);
  json_object_put(o);
  return CLI_DONE;
}
