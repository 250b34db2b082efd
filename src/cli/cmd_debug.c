/* ait debug: the first node where a backend leaves the reference. */
#include "cli/json_view.h"
#include <string.h>

static void list_text(struct json_object *o, const char *key, char *out, size_t size) {
  snprintf(out, size, "[");
  for (size_t i = 0; i < cli_member_count(o, key); ++i)
    snprintf(out + strlen(out), size - strlen(out), "%s%s", i ? ", " : "", json_object_get_string(cli_member_at(o, key, i)));
  snprintf(out + strlen(out), size - strlen(out), "]");
}

static void print_operands(struct json_object *o) {
  cli_table table;
  cli_table_init(&table, 5, "LLLRR");
  cli_table_row(&table, "operand", "dtype", "shape", "min", "max");
  for (size_t i = 0; i < cli_member_count(o, "operands"); ++i) {
    struct json_object *p = cli_member_at(o, "operands", i);
    char name[36], shape[160], low[32], high[40];
    list_text(p, "shape", shape, sizeof shape);
    snprintf(name, sizeof name, "%.32s", cli_member(p, "name"));
    snprintf(low, sizeof low, "%.5g", cli_member_number(p, "min"));
    snprintf(high, sizeof high, "%.5g%s", cli_member_number(p, "max"), cli_member_number(p, "not_finite") > 0 ? " inf/nan" : "");
    cli_table_row(&table, name, cli_member(p, "dtype"), shape, low, high);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static void print_node(struct json_object *o) {
  struct json_object *n = cli_member_object(o, "node");
  char shape[160];
  list_text(n, "shape", shape, sizeof shape);
  if (!strcmp(cli_member(o, "cause"), "fusion"))
    printf("each node alone is right: the fault is in what '%s' makes of them together.\nthe first value that is wrong then:\n",
           cli_member(o, "backend"));
  printf("module  %s\n", *cli_member(n, "module") ? cli_member(n, "module") : "(whole model)");
  printf("node    %s = %s -> %s %s\n\n", cli_member(n, "name"), cli_member(n, "op"), cli_member(n, "dtype"), shape);
  print_operands(o);
}

static void print_worst(struct json_object *o) {
  struct json_object *w = cli_member_object(o, "worst");
  char index[160];
  list_text(w, "index", index, sizeof index);
  printf("\nworst element %s: %.9g, the reference has %.9g\n", index, cli_member_number(w, "got"), cli_member_number(w, "want"));
  printf("%s of %s elements are outside the tolerance of %.3g\n", cli_member(w, "mismatches"), cli_member(w, "count"),
         cli_member_number(w, "tolerance"));
}

static void print_reproducer(struct json_object *o) {
  struct json_object *r = cli_member_object(o, "reproducer");
  if (!r) return;
  printf("\nreproducer: %s node%s%s\n", cli_member(r, "nodes"), cli_member_number(r, "nodes") == 1 ? "" : "s",
         cli_member_true(r, "reproduces") ? "" : " (cut out of the model these are right)");
  printf("  ait verify %s -i %s --backend %s \\\n    --expect %s\n", cli_member(r, "graph"), cli_member(r, "data"),
         cli_member(o, "backend"), cli_member(r, "expected"));
}

static int print_finding(const cli_args *args, struct json_object *o) {
  int code = cli_member_true(o, "agrees") ? CLI_DONE : CLI_NO;
  if (cli_wants_json(args)) {
    int written = cli_json(args, o);
    return written != CLI_DONE ? written : code;
  }
  if (code == CLI_DONE) printf("%s agrees with the reference on these inputs\n", cli_member(o, "backend"));
  else if (*cli_member(o, "crash")) printf("%s does not come back: %s\n\n", cli_member(o, "backend"), cli_member(o, "crash"));
  else printf("%s leaves the reference\n\n", cli_member(o, "backend"));
  if (*cli_member(o, "pass")) printf("the pass '%s' changes the answer: the backend is not to blame\n", cli_member(o, "pass"));
  if (cli_member_object(o, "node")) print_node(o);
  if (cli_member_object(o, "worst")) print_worst(o);
  print_reproducer(o);
  json_object_put(o);
  return code;
}

int cli_cmd_debug(const cli_args *args) {
  ait_debug_options options;
  ait_load_options load;
  ait_model *model = NULL;
  cli_inputs inputs = {0};
  int64_t threads;
  char *text = NULL;
  int code;
  const char *given = cli_option(args, "tolerance"), *isa = cli_option(args, "isa");
  ait_debug_options_init(&options);
  ait_load_options_init(&load);
  if (!cli_int(args, "threads", 1, 1024, 1, &threads)) return CLI_USAGE;
  if (given && sscanf(given, "%lf,%lf", &options.rtol, &options.atol) != 2)
    return cli_usage("option '--tolerance': '%s' is not RTOL,ATOL", given);
  options.output = cli_option(args, "output") ? cli_option(args, "output") : "ait-debug";
  load.backend = cli_option(args, "backend");
  if (!load.backend) return cli_usage("'ait debug' needs --backend B");
  load.knobs = cli_option(args, "knobs");
  load.passes = cli_option(args, "passes");
  load.model_name = cli_option(args, "model-name");
  load.weights = cli_option(args, "weights");
  load.threads = (int32_t)threads;
  ait_status status = isa ? ait_cpu_mask(isa, &load.cpu_mask) : AIT_OK;
  if (status == AIT_OK) status = cli_model_open(args, args->positional[0], "reference", &model); /* to name the inputs */
  if (status == AIT_OK)
    status = cli_option(args, "data") || cli_option(args, "random") ? cli_inputs_get(args, model, "data", &inputs)
                                                                    : cli_inputs_random(args, model, 0, &inputs);
  if (status == AIT_OK) status = ait_debug(args->positional[0], &load, inputs.values, inputs.count, &options, &text);
  cli_inputs_deinit(&inputs);
  ait_model_release(model);
  struct json_object *o = cli_document(status, text, &code);
  return o ? print_finding(args, o) : code;
}
