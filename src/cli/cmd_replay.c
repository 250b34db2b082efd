/* ait replay: recorded traffic against a model. */
#include "cli/json_view.h"
#include <stdlib.h>
#include <string.h>

static void print_replay(struct json_object *o) {
  static const struct {
    const char *what, *p50, *p99, *mean;
  } rows[] = {{"in the queue", "wait_p50_s", "wait_p99_s", "wait_mean_s"}, {"at work", "service_p50_s", "service_p99_s", "service_mean_s"}};
  char a[16], b[16], c[16];
  printf("%s on %s: %s requests", cli_member(o, "trace"), cli_member(o, "backend"), cli_member(o, "requests"));
  cli_seconds(cli_member_number(o, "span_s"), a);
  printf(" in %s; %s calls measured in %s passes\n\n", a, cli_member(o, "measured"), cli_member(o, "passes"));
  cli_table table;
  cli_table_init(&table, 4, "LRRR");
  cli_table_row(&table, "time", "p50", "p99", "mean");
  cli_seconds(cli_member_number(o, "p50_s"), a);
  cli_seconds(cli_member_number(o, "p99_s"), b);
  cli_table_row(&table, "from arrival to answer", a, b, "");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    cli_seconds(cli_member_number(o, rows[i].p50), a);
    cli_seconds(cli_member_number(o, rows[i].p99), b);
    cli_seconds(cli_member_number(o, rows[i].mean), c);
    cli_table_row(&table, rows[i].what, a, b, c);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  cli_seconds(cli_member_number(o, "limit_s"), a);
  printf("\nthroughput %.4g requests/s, at work %.1f%% of the time\n", cli_member_number(o, "requests_per_s"),
         100 * cli_member_number(o, "utilisation"));
  printf("goodput %.4g requests/s: %.2f%% answered within %s\n\n", cli_member_number(o, "goodput_per_s"),
         100 * cli_member_number(o, "good_share"), a);
  cli_table_init(&table, 3, "LRR");
  cli_table_row(&table, "shape", "requests", "call");
  for (size_t i = 0; i < cli_member_count(o, "shapes"); ++i) {
    struct json_object *s = cli_member_at(o, "shapes", i);
    cli_seconds(cli_member_number(s, "service_p50_s"), a);
    char shape[48];
    snprintf(shape, sizeof shape, "%.47s", cli_member(s, "shape"));
    cli_table_row(&table, shape, cli_member(s, "requests"), a);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

/* Milliseconds, or with a unit. */
static bool read_limit(const cli_args *args, double *out) {
  const char *text = cli_option(args, "limit");
  if (!cli_double(args, "limit", 0, out)) return false;
  if (text && !strchr(text, 's')) *out /= 1000;
  return true;
}

static ait_status replay(const cli_args *args, const ait_replay_options *options, char **text) {
  const char *path = args->positional[0], *backend = cli_option(args, "backend");
  size_t n = strlen(path);
  bool sealed = n > 4 && !strcmp(path + n - 4, ".ait");
  ait_model *model = NULL;
  cli_inputs inputs = {0};
  ait_status status = cli_model_open(args, path, backend ? backend : sealed ? NULL : "native", &model);
  if (status == AIT_OK)
    status = cli_option(args, "data")
                 ? cli_inputs_load(args, model, "data", &inputs)
                 : cli_inputs_random(args, model, cli_option(args, "random") ? strtoull(cli_option(args, "random"), NULL, 10) : 0, &inputs);
  if (status == AIT_OK) status = ait_replay(model, cli_option(args, "trace"), inputs.values, inputs.count, options, text);
  cli_inputs_deinit(&inputs);
  ait_model_release(model);
  return status;
}

int cli_cmd_replay(const cli_args *args) {
  ait_replay_options options;
  int64_t threads;
  char *text = NULL;
  int code;
  ait_replay_options_init(&options);
  if (!cli_option(args, "trace")) return cli_usage("'ait replay' needs --trace FILE");
  if (!cli_int(args, "threads", 1, 1024, 0, &threads) || !cli_double(args, "budget", 10, &options.seconds)) return CLI_USAGE;
  if (!read_limit(args, &options.limit_seconds)) return CLI_USAGE;
  options.threads = (int32_t)threads;
  ait_status status = replay(args, &options, &text);
  struct json_object *o = cli_document(status, text, &code);
  if (o && cli_wants_json(args)) code = cli_json(args, o);
  else if (o) print_replay(o), json_object_put(o);
  return code;
}
