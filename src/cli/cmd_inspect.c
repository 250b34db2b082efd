/* ait inspect and ait explain. */
#include "cli/json_view.h"
#include <string.h>

static void load_options(const cli_args *args, ait_load_options *out) {
  ait_load_options_init(out);
  out->model_name = cli_option(args, "model-name");
  out->weights = cli_option(args, "weights");
}

static void shape_text(struct json_object *port, char *out, size_t size) {
  snprintf(out, size, "%s%s", cli_member(port, "dtype"), *cli_member(port, "dtype") ? " [" : cli_member(port, "type"));
  for (size_t d = 0; d < cli_member_count(port, "shape"); ++d)
    snprintf(out + strlen(out), size - strlen(out), "%s%s", d ? ", " : "", json_object_get_string(cli_member_at(port, "shape", d)));
  if (*cli_member(port, "dtype")) snprintf(out + strlen(out), size - strlen(out), "]");
  if (cli_member_true(port, "baked")) snprintf(out + strlen(out), size - strlen(out), " (fixed by export)");
}

static void print_ports(struct json_object *o, const char *key, const char *title) {
  cli_table table;
  cli_table_init(&table, 3, "LLL");
  for (size_t i = 0; i < cli_member_count(o, key); ++i) {
    struct json_object *port = cli_member_at(o, key, i);
    char text[256];
    shape_text(port, text, sizeof text);
    cli_table_row(&table, i ? "" : title, cli_member(port, "name"), text);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static void print_symbols(struct json_object *o) {
  for (size_t i = 0; i < cli_member_count(o, "symbols"); ++i) {
    struct json_object *s = cli_member_at(o, "symbols", i);
    bool bounded = cli_member_object(s, "max") != NULL;
    printf("%s  %s = %s to %s%s\n", i ? "       " : "sizes  ", cli_member(s, "name"), cli_member(s, "min"),
           bounded ? cli_member(s, "max") : "any", cli_member_true(s, "from_inputs") ? "" : " (depends on data)");
  }
}

static int depth_of(const char *path) {
  int depth = *path != 0;
  for (; *path; ++path) depth += *path == '.';
  return depth;
}

static void print_modules(struct json_object *o, int max_depth) {
  cli_table table;
  cli_table_init(&table, 6, "LLRRRR");
  cli_table_row(&table, "module", "type", "calls", "params", "FLOP", "share");
  double total = cli_member_number(o, "flops");
  for (size_t i = 0; i < cli_member_count(o, "modules"); ++i) {
    struct json_object *m = cli_member_at(o, "modules", i);
    const char *path = cli_member(m, "path"), *type = cli_member(m, "type"), *dot = strrchr(type, '.');
    int depth = depth_of(path);
    if (depth > max_depth) continue;
    char name[128], parameters[16], flops[16], share[16];
    const char *leaf = strrchr(path, '.');
    snprintf(name, sizeof name, "%*s%.60s", 2 * depth, "", *path ? (leaf ? leaf + 1 : path) : "(root)");
    cli_count(cli_member_number(m, "parameters"), parameters);
    cli_count(cli_member_number(m, "flops"), flops);
    snprintf(share, sizeof share, "%.1f%%", total > 0 ? 100 * cli_member_number(m, "flops") / total : 0);
    cli_table_row(&table, name, dot ? dot + 1 : type, cli_member(m, "calls"), parameters, flops, share);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static void print_backends(struct json_object *o) {
  cli_table table;
  cli_table_init(&table, 4, "LLRL");
  cli_table_row(&table, "backend", "takes it", "noted", "first reason");
  for (size_t i = 0; i < cli_member_count(o, "backends"); ++i) {
    struct json_object *b = cli_member_at(o, "backends", i);
    cli_table_row(&table, cli_member(b, "name"), cli_member_true(b, "supported") ? "yes" : "no", cli_member(b, "noted"),
                  cli_member(b, "first_reason"));
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

int cli_cmd_inspect(const cli_args *args) {
  int64_t depth;
  if (!cli_int(args, "depth", 0, 100, 3, &depth)) return CLI_USAGE;
  int code;
  char *text = NULL;
  ait_load_options options;
  load_options(args, &options);
  ait_status status = ait_inspect(args->positional[0], &options, &text);
  struct json_object *o = cli_document(status, text, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  char bytes[16], flops[16];
  cli_bytes(cli_member_number(o, "weight_bytes"), bytes);
  cli_count(cli_member_number(o, "flops"), flops);
  printf("%s: %s by %s\n%s nodes, weights %s, %s FLOP a call\n\n", cli_member(o, "file"), cli_member(o, "name"), cli_member(o, "producer"),
         cli_member(o, "nodes"), bytes, flops);
  print_ports(o, "inputs", "inputs");
  print_ports(o, "outputs", "outputs");
  print_symbols(o);
  printf("\n");
  print_modules(o, (int)depth);
  printf("\n");
  print_backends(o);
  json_object_put(o);
  return CLI_DONE;
}

int cli_cmd_explain(const cli_args *args) {
  int code;
  char *text = NULL;
  ait_load_options options;
  load_options(args, &options);
  ait_status status = ait_explain(args->positional[0], args->positional_count > 1 ? args->positional[1] : NULL, &options, &text);
  struct json_object *o = cli_document(status, text, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  cli_table table;
  cli_table_init(&table, 4, "LLLL");
  cli_table_row(&table, "where", "code", "node", "why");
  for (size_t i = 0; i < cli_member_count(o, "notes"); ++i) {
    struct json_object *n = cli_member_at(o, "notes", i);
    cli_table_row(&table, cli_member(n, "source"), cli_member(n, "code"), cli_member(n, "node"), cli_member(n, "text"));
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  json_object_put(o);
  return CLI_DONE;
}
