/* ait ops, backends, opt: lists and graph text, rendered from the library's JSON. */
#include "cli/json_view.h"

static int ops_missing(const cli_args *args, const char *path) {
  int code;
  char *text = NULL;
  ait_load_options options;
  ait_load_options_init(&options);
  options.model_name = cli_option(args, "model-name");
  ait_status status = ait_ops_missing(path, &options, &text);
  struct json_object *o = cli_document(status, text, &code);
  if (!o) return code;
  struct json_object *missing = cli_member_object(o, "missing");
  size_t n = json_object_array_length(missing);
  if (cli_wants_json(args)) {
    code = cli_json(args, o);
    return code == CLI_DONE && n ? CLI_NO : code;
  }
  cli_table table;
  cli_table_init(&table, 4, "LRLL");
  if (n) cli_table_row(&table, "operator", "nodes", "first node", "why");
  for (size_t i = 0; i < n; ++i) {
    struct json_object *row = json_object_array_get_idx(missing, i);
    char nodes[24];
    snprintf(nodes, sizeof nodes, "%lld", (long long)json_object_get_int64(cli_member_object(row, "nodes")));
    cli_table_row(&table, cli_member(row, "name"), nodes, cli_member(row, "first_node"), cli_member(row, "why"));
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  if (!n) printf("nothing is missing for '%s'\n", path);
  json_object_put(o);
  return n ? CLI_NO : CLI_DONE;
}

static int ops_page(void) {
  char *text = NULL;
  ait_status status = ait_ops_page(&text);
  if (status != AIT_OK) return cli_fail(status);
  fputs(text, stdout);
  ait_string_free(text);
  return CLI_DONE;
}

int cli_cmd_ops(const cli_args *args) {
  const char *path = cli_option(args, "missing");
  if (path) return ops_missing(args, path);
  if (cli_flag(args, "markdown")) return ops_page();
  int code;
  char *text = NULL;
  ait_status status = ait_ops(&text);
  struct json_object *o = cli_document(status, text, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  struct json_object *list = cli_member_object(o, "operators");
  cli_table table;
  cli_table_init(&table, 3, "LLL");
  cli_table_row(&table, "operator", "dialect", "reference");
  size_t runs = 0, n = json_object_array_length(list);
  for (size_t i = 0; i < n; ++i) {
    struct json_object *row = json_object_array_get_idx(list, i);
    runs += cli_member_true(row, "reference");
    cli_table_row(&table, cli_member(row, "name"), cli_member(row, "dialects"), cli_member_true(row, "reference") ? "yes" : "no");
  }
  cli_table_print(&table, stdout);
  printf("%zu operators, %zu run on the reference\n", n, runs);
  cli_table_deinit(&table);
  json_object_put(o);
  return CLI_DONE;
}

int cli_cmd_backends(const cli_args *args) {
  int code;
  char *text = NULL;
  ait_status status = ait_backends(&text);
  struct json_object *o = cli_document(status, text, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  struct json_object *list = cli_member_object(o, "backends");
  cli_table table;
  cli_table_init(&table, 4, "LLLL");
  cli_table_row(&table, "backend", "here", "version", "what it is");
  for (size_t i = 0; i < json_object_array_length(list); ++i) {
    struct json_object *row = json_object_array_get_idx(list, i), *knobs = cli_member_object(row, "knobs");
    bool here = cli_member_true(row, "available");
    cli_table_row(&table, cli_member(row, "name"), here ? "yes" : "no", cli_member(row, "version"),
                  here ? cli_member(row, "summary") : cli_member(row, "detail"));
    for (size_t k = 0; cli_flag(args, "verbose") && k < json_object_array_length(knobs); ++k) {
      struct json_object *knob = json_object_array_get_idx(knobs, k);
      char line[256];
      snprintf(line, sizeof line, "%s=%s: %s", cli_member(knob, "name"), cli_member(knob, "default"), cli_member(knob, "help"));
      cli_table_row(&table, "", "", "", line);
    }
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  json_object_put(o);
  return CLI_DONE;
}

static int list_passes(const cli_args *args) {
  int code;
  char *text = NULL;
  ait_status status = ait_passes(&text);
  struct json_object *o = cli_document(status, text, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  struct json_object *list = cli_member_object(o, "passes");
  cli_table table;
  cli_table_init(&table, 2, "LL");
  for (size_t i = 0; i < json_object_array_length(list); ++i) {
    struct json_object *row = json_object_array_get_idx(list, i);
    cli_table_row(&table, cli_member(row, "name"), cli_member(row, "help"));
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  json_object_put(o);
  return CLI_DONE;
}

int cli_cmd_opt(const cli_args *args) {
  if (cli_flag(args, "list")) return list_passes(args);
  if (!args->positional_count) return cli_usage("'ait opt' needs a MODEL (or --list)");
  char *text = NULL;
  ait_load_options options;
  ait_load_options_init(&options);
  options.model_name = cli_option(args, "model-name");
  options.weights = cli_option(args, "weights");
  ait_status status = ait_opt(args->positional[0], cli_option(args, "passes"), cli_option(args, "print-after"), &options, &text);
  if (status != AIT_OK) return cli_fail(status);
  const char *path = cli_option(args, "output");
  int code = CLI_DONE;
  if (path) code = cli_write_file(path, text);
  else fputs(text, stdout);
  ait_string_free(text);
  return code;
}
