/* ait compare: two tuning results, for people and for CI. */
#include "cli/json_view.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LARGEST_REPORT = 64 << 20 };

/* The report in an .ait; *out_bytes: how large that file is. */
static ait_status read_artifact(const char *path, char **out, uint64_t *out_bytes) {
  ait_model *model;
  struct stat info;
  ait_status status = ait_model_load(path, NULL, &model);
  if (status != AIT_OK) return ait_error_hint(status, "give an .ait of 'ait tune', or its report as JSON");
  struct json_object *tuning = cli_model_report(model);
  if (tuning) *out = strdup(json_object_to_json_string(tuning));
  if (!tuning) status = ait_error(AIT_CODE_NOT_FOUND, "'%s' holds no tuning report", path);
  else if (!*out) status = ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  if (stat(path, &info) == 0) *out_bytes = (uint64_t)info.st_size;
  json_object_put(tuning);
  ait_model_release(model);
  return status;
}

static ait_status read_report(const char *path, char **out, uint64_t *out_bytes) {
  FILE *f = fopen(path, "rb");
  if (!f) return ait_error(AIT_CODE_IO, "cannot read '%s': %s", path, strerror(errno));
  size_t size;
  int c = fgetc(f);
  ungetc(c, f);
  ait_status status = c == '{' ? cli_read_all(f, path, "a report", LARGEST_REPORT, out, &size) : AIT_OK;
  fclose(f);
  return c == '{' || status != AIT_OK ? status : read_artifact(path, out, out_bytes);
}

static void plain(double v, char out[16]) { snprintf(out, 16, "%.3g", v); }
static const struct {
  const char *metric, *title;
  void (*text)(double v, char out[16]);
} metrics[] = {
    {"latency_s", "latency of the winner", cli_seconds},  {"speedup", "speed-up over the baseline", plain},
    {"error_over_tolerance", "error / tolerance", plain}, {"plan_bytes", "working memory", cli_bytes},
    {"blob_bytes", "plan in the file", cli_bytes},        {"file_bytes", "file", cli_bytes},
};

static void change_text(struct json_object *o, char out[16]) {
  double ratio = cli_member_number(o, "b_over_a");
  if (ratio > 0) snprintf(out, 16, "%+.1f%%", 100 * (ratio - 1));
  else snprintf(out, 16, "-");
}

static void print_metrics(struct json_object *o) {
  cli_table table;
  cli_table_init(&table, 5, "LRRRL");
  cli_table_row(&table, "", "A", "B", "change", "");
  for (size_t i = 0; i < cli_member_count(o, "metrics"); ++i) {
    struct json_object *m = cli_member_at(o, "metrics", i);
    char a[16] = "-", b[16] = "-", change[16];
    for (size_t k = 0; k < sizeof metrics / sizeof *metrics; ++k) {
      if (strcmp(metrics[k].metric, cli_member(m, "metric"))) continue;
      if (cli_member_object(m, "a")) metrics[k].text(cli_member_number(m, "a"), a);
      if (cli_member_object(m, "b")) metrics[k].text(cli_member_number(m, "b"), b);
      change_text(m, change);
      cli_table_row(&table, metrics[k].title, a, b, change, strcmp(cli_member(m, "verdict"), "unknown") ? cli_member(m, "verdict") : "");
    }
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static void cell(struct json_object *c, const char *median, const char *outcome, char out[16]) {
  if (cli_member_number(c, median) > 0) cli_seconds(cli_member_number(c, median), out);
  else snprintf(out, 16, "%.15s", cli_member(c, outcome));
}

static void print_candidates(struct json_object *o) {
  cli_table table;
  cli_table_init(&table, 5, "LRRRL");
  cli_table_row(&table, "candidate", "A", "B", "change", "");
  for (size_t i = 0; i < cli_member_count(o, "candidates"); ++i) {
    struct json_object *c = cli_member_at(o, "candidates", i);
    char name[40], a[16], b[16], change[16];
    snprintf(name, sizeof name, "%.36s", cli_member(c, "name"));
    cell(c, "a_median_s", "a_outcome", a);
    cell(c, "b_median_s", "b_outcome", b);
    change_text(c, change);
    cli_table_row(&table, name, a, b, change, strcmp(cli_member(c, "verdict"), "unknown") ? cli_member(c, "verdict") : "");
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  for (size_t i = 0; i < cli_member_count(o, "candidates"); ++i) {
    struct json_object *c = cli_member_at(o, "candidates", i);
    if (*cli_member(c, "reason")) printf("%.30s in B: %.40s\n", cli_member(c, "name"), cli_member(c, "reason"));
  }
}

static int print_comparison(const cli_args *args, struct json_object *o) {
  int worse = (int)cli_member_number(o, "regressions"), better = (int)cli_member_number(o, "improvements");
  int code = worse ? CLI_NO : CLI_DONE;
  if (!cli_wants_json(args)) {
    bool changed = strcmp(cli_member(o, "a_winner"), cli_member(o, "b_winner")) != 0;
    const char *winner = cli_member(o, "b_winner");
    printf("winner: %s%s\n", *winner ? winner : "none is valid", changed ? "" : ", in both");
    if (changed) printf("   was: %s\n", *cli_member(o, "a_winner") ? cli_member(o, "a_winner") : "none was valid");
    if (!cli_member_true(o, "same_model")) printf("these seem to be two different models\n");
    if (!cli_member_true(o, "same_machine")) printf("different machines: times are shown and not judged\n");
    printf("\n");
    print_metrics(o);
    printf("\n");
    print_candidates(o);
    printf("\n%d worse, %d better, beyond noise and %g %%\n", worse, better, 100 * cli_member_number(o, "threshold"));
    json_object_put(o);
    return code;
  }
  int written = cli_json(args, o);
  return written != CLI_DONE ? written : code;
}

int cli_cmd_compare(const cli_args *args) {
  char *reports[2] = {NULL, NULL}, *text = NULL;
  ait_compare_options options;
  double percent;
  int code;
  ait_compare_options_init(&options);
  if (!cli_double(args, "threshold", 100 * options.threshold, &percent)) return CLI_USAGE;
  options.threshold = percent / 100;
  ait_status status = read_report(args->positional[0], &reports[0], &options.a_file_bytes);
  if (status == AIT_OK) status = read_report(args->positional[1], &reports[1], &options.b_file_bytes);
  if (status == AIT_OK) status = ait_compare_reports(reports[0], reports[1], &options, &text);
  free(reports[0]);
  free(reports[1]);
  struct json_object *o = cli_document(status, text, &code);
  return o ? print_comparison(args, o) : code;
}
