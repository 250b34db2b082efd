/* ait bench: models and backends timed in turn. */
#include "cli/buckets.h"
#include "cli/json_view.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_ENTRIES = 64 };

typedef struct bench_lane {
  ait_model *model;
  ait_session *session;
  cli_inputs inputs;
  char label[256];
} bench_lane;

static ait_status open_lane(const cli_args *args, const char *path, const char *backend, bench_lane *l, double *out_load) {
  double start = cli_now();
  ait_status status = cli_model_open(args, path, backend, &l->model);
  if (status == AIT_OK) status = cli_session_open(args, l->model, false, &l->session);
  *out_load = cli_now() - start;
  if (status == AIT_OK)
    status = cli_option(args, "data")
                 ? cli_inputs_load(args, l->model, "data", &l->inputs)
                 : cli_inputs_random(args, l->model, cli_option(args, "random") ? strtoull(cli_option(args, "random"), NULL, 10) : 0,
                                     &l->inputs);
  const char *slash = strrchr(path, '/');
  snprintf(l->label, sizeof l->label, "%s%s%s", slash ? slash + 1 : path, backend ? " " : "", backend ? backend : "");
  return status;
}

static void print_table(struct json_object *o) {
  cli_table table;
  cli_table_init(&table, 7, "LRRRRRR");
  cli_table_row(&table, "model", "p50", "p95", "p99", "calls/s", "load", "time / first");
  for (size_t i = 0; i < cli_member_count(o, "entries"); ++i) {
    struct json_object *e = cli_member_at(o, "entries", i);
    char cells[4][16], rate[16], ratio[64];
    cli_seconds(cli_member_number(e, "p50_s"), cells[0]);
    cli_seconds(cli_member_number(e, "p95_s"), cells[1]);
    cli_seconds(cli_member_number(e, "p99_s"), cells[2]);
    cli_seconds(cli_member_number(e, "load_s"), cells[3]);
    cli_count(cli_member_number(e, "calls_per_s"), rate);
    snprintf(ratio, sizeof ratio, "%.3f (%.3f-%.3f)", cli_member_number(e, "time_over_first"), cli_member_number(e, "time_over_first_low"),
             cli_member_number(e, "time_over_first_high"));
    cli_table_row(&table, cli_member(e, "label"), cells[0], cells[1], cells[2], rate, cells[3], ratio);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  printf("%s rounds in turn, %s dropped (descheduled)\n", cli_member(o, "rounds"), cli_member(o, "dropped"));
}

int cli_cmd_bench(const cli_args *args) {
  double min_time;
  if (!cli_double(args, "min-time", 2, &min_time)) return CLI_USAGE;
  bench_lane *lanes = calloc(MAX_ENTRIES, sizeof *lanes);
  ait_bench_entry entries[MAX_ENTRIES];
  size_t count = 0;
  ait_status status = lanes ? AIT_OK : ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  char backends[512];
  for (int m = 0; status == AIT_OK && m < args->positional_count; ++m) {
    size_t n = strlen(args->positional[m]);
    bool sealed = n > 4 && !strcmp(args->positional[m] + n - 4, ".ait");
    snprintf(backends, sizeof backends, "%s", cli_option(args, "backend") ? cli_option(args, "backend") : "native");
    char *save = NULL;
    for (char *b = strtok_r(backends, ",", &save); b && status == AIT_OK && count < MAX_ENTRIES;
         b = sealed ? NULL : strtok_r(NULL, ",", &save)) {
      bench_lane *l = &lanes[count];
      double load = 0;
      status = open_lane(args, args->positional[m], sealed ? NULL : b, l, &load);
      entries[count] = (ait_bench_entry){
          .label = l->label, .session = l->session, .inputs = l->inputs.values, .input_count = l->inputs.count, .load_seconds = load};
      if (status == AIT_OK) entries[count].output_count = ait_model_output_count(l->model);
      ++count;
    }
  }
  char *text = NULL;
  int code;
  if (status == AIT_OK) status = ait_bench(entries, count, min_time, &text);
  struct json_object *o = cli_document(status, text, &code);
  if (o && cli_wants_json(args)) code = cli_json(args, o);
  else if (o) print_table(o), json_object_put(o);
  for (size_t i = 0; o && !cli_wants_json(args) && i < count; ++i) cli_buckets_print(lanes[i].session);
  for (size_t i = 0; lanes && i < count; ++i) {
    ait_session_destroy(lanes[i].session);
    cli_inputs_deinit(&lanes[i].inputs);
    ait_model_release(lanes[i].model);
  }
  free(lanes);
  return code;
}
