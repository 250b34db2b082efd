/* ait verify: one model against expected outputs, or a folder of cases. */
#include "cli/case_runner.h"
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLACK 10.0
#else
#define SLACK 1.0
#endif

/* ---- one model -------------------------------------------------------------------------------------------------------------------*/
static bool expected_for(const ait_data *data, ait_model *model, size_t i, const ait_tensor **out) {
  ait_port port;
  char key[32];
  snprintf(key, sizeof key, "arr_%zu", i);
  ait_status status = ait_model_output(model, i, &port);
  *out = status == AIT_OK ? ait_data_find(data, port.name) : NULL;
  ait_status_free(status);
  if (!*out) *out = ait_data_find(data, key);
  return *out != NULL;
}

static int compare_model(const cli_args *args, ait_model *model, const ait_value *outputs, const ait_data *expected,
                         ait_compare_rule rule) {
  struct json_object *report = json_object_new_object(), *list = json_object_new_array();
  cli_table table;
  cli_table_init(&table, 7, "LRRRRRL");
  cli_table_row(&table, "output", "elements", "differ", "max abs", "max rel", "SNR dB", "");
  bool all = true;
  size_t compared = 0;
  for (size_t i = 0; i < ait_model_output_count(model); ++i) {
    const ait_tensor *want;
    ait_port port = {0};
    ait_status_free(ait_model_output(model, i, &port));
    if (outputs[i].kind != AIT_VALUE_TENSOR || !expected_for(expected, model, i, &want)) continue;
    ait_compare_result r;
    ait_status status = ait_compare(&outputs[i].as.tensor, want, &rule, &r);
    if (status != AIT_OK) {
      json_object_put(report);
      json_object_put(list);
      cli_table_deinit(&table);
      return cli_fail(ait_error_context(status, "output '%s'", port.name));
    }
    ++compared;
    all &= r.pass;
    char cells[5][32];
    snprintf(cells[0], 32, "%lld", (long long)r.count);
    snprintf(cells[1], 32, "%lld", (long long)r.mismatches);
    snprintf(cells[2], 32, "%.3g", r.max_abs);
    snprintf(cells[3], 32, "%.3g", r.max_rel);
    snprintf(cells[4], 32, "%.1f", r.snr_db);
    cli_table_row(&table, port.name, cells[0], cells[1], cells[2], cells[3], cells[4], r.pass ? "ok" : "DIFFERS");
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "name", json_object_new_string(port.name));
    json_object_object_add(o, "pass", json_object_new_boolean(r.pass));
    json_object_object_add(o, "count", json_object_new_int64(r.count));
    json_object_object_add(o, "mismatches", json_object_new_int64(r.mismatches));
    json_object_object_add(o, "max_abs", json_object_new_double(r.max_abs));
    json_object_object_add(o, "max_rel", json_object_new_double(r.max_rel));
    json_object_object_add(o, "snr_db", json_object_new_double(r.snr_db));
    json_object_object_add(o, "cosine", json_object_new_double(r.cosine));
    json_object_array_add(list, o);
  }
  json_object_object_add(report, "pass", json_object_new_boolean(all && compared));
  json_object_object_add(report, "outputs", list);
  const char *file = cli_option(args, "json");
  if (!file || *file) cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  int code = file ? cli_json(args, report) : (json_object_put(report), CLI_DONE);
  if (!compared) return cli_fail(ait_error(AIT_CODE_INVALID_ARGUMENT, "the expected data has no array for any output of the model"));
  return code != CLI_DONE ? code : all ? CLI_DONE : CLI_NO;
}

static int verify_model(const cli_args *args) {
  const char *expect = cli_option(args, "expect");
  if (!expect) return cli_usage("'ait verify MODEL' needs --expect FILE.npz (or --cases DIR without a model)");
  ait_compare_rule rule = {0};
  if (!cli_double(args, "rtol", 1.3e-6, &rule.rtol) || !cli_double(args, "atol", 1e-5, &rule.atol)) return CLI_USAGE;
  ait_model *model = NULL;
  ait_session *session = NULL;
  ait_data *expected = NULL;
  cli_inputs inputs = {0};
  ait_value *outputs = NULL;
  int code;
  ait_status status = cli_model_open(args, args->positional[0], cli_option(args, "backend"), &model);
  if (status == AIT_OK) status = cli_inputs_get(args, model, "data", &inputs);
  if (status == AIT_OK) status = ait_data_load(ait_allocator_default(), expect, &expected);
  if (status == AIT_OK) status = cli_session_open(args, model, false, &session);
  if (status == AIT_OK) {
    outputs = calloc(ait_model_output_count(model) + 1, sizeof *outputs);
    status = outputs ? ait_session_run(session, inputs.values, inputs.count, outputs, ait_model_output_count(model))
                     : ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  }
  code = status != AIT_OK ? cli_fail(status) : compare_model(args, model, outputs, expected, rule);
  free(outputs);
  ait_session_destroy(session);
  cli_inputs_deinit(&inputs);
  ait_data_destroy(expected);
  ait_model_release(model);
  return code;
}

/* ---- cases -----------------------------------------------------------------------------------------------------------------------*/
typedef struct tally {
  const cli_args *args;
  struct json_object *cases, *report;
  size_t passed, failed, skipped;
} tally;

static void count_case(void *ctx, size_t index, const case_result *r, double seconds) {
  static const char *const words[] = {"passed", "failed", "skipped"};
  tally *t = ctx;
  struct json_object *c = json_object_array_get_idx(t->cases, index), *name = NULL;
  json_object_object_get_ex(c, "name", &name);
  const char *label = name ? json_object_get_string(name) : "?";
  *(r->outcome == CASE_PASSED ? &t->passed : r->outcome == CASE_FAILED ? &t->failed : &t->skipped) += 1;
  if (r->outcome == CASE_FAILED) printf("FAILED %s: %s\n", label, r->text);
  else if (cli_flag(t->args, "verbose")) printf("%s %s%s%s\n", words[r->outcome], label, *r->text ? ": " : "", r->text);
  struct json_object *o = json_object_new_object();
  json_object_object_add(o, "name", json_object_new_string(label));
  json_object_object_add(o, "outcome", json_object_new_string(words[r->outcome]));
  if (*r->text) json_object_object_add(o, "text", json_object_new_string(r->text));
  json_object_object_add(o, "max_abs", json_object_new_double(r->max_abs));
  json_object_object_add(o, "seconds", json_object_new_double(seconds));
  json_object_array_add(t->report, o);
}

/* Which cases --filter takes; NULL after a message. */
static bool *select_cases(const cli_args *args, struct json_object *cases) {
  size_t n = json_object_array_length(cases);
  bool *selected = calloc(n + 1, sizeof *selected);
  const char *filter = cli_option(args, "filter");
  regex_t expression;
  if (!selected) return NULL;
  if (filter && regcomp(&expression, filter, REG_EXTENDED | REG_NOSUB)) {
    cli_usage("option '--filter': '%s' is no extended regular expression", filter);
    free(selected);
    return NULL;
  }
  for (size_t i = 0; i < n; ++i) {
    struct json_object *name;
    bool has_name = json_object_object_get_ex(json_object_array_get_idx(cases, i), "name", &name);
    selected[i] = !filter || (has_name && regexec(&expression, json_object_get_string(name), 0, NULL, 0) == 0);
  }
  if (filter) regfree(&expression);
  return selected;
}

static int verify_cases(const cli_args *args, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/cases.json", folder);
  struct json_object *root = json_object_from_file(path), *cases = NULL;
  if (!root || !json_object_object_get_ex(root, "cases", &cases) || !json_object_is_type(cases, json_type_array)) {
    json_object_put(root);
    return cli_fail(ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "cannot read cases '%s'", path),
                                   "the folder must hold a cases.json of format 1"));
  }
  int64_t jobs;
  double timeout;
  bool *selected = NULL;
  int code = CLI_USAGE;
  if (cli_int(args, "jobs", 1, 64, sysconf(_SC_NPROCESSORS_ONLN), &jobs) && cli_double(args, "timeout", 120, &timeout) &&
      (selected = select_cases(args, cases))) {
    tally t = {.args = args, .cases = cases, .report = json_object_new_array()};
    case_run_options o = {.args = args,
                          .folder = folder,
                          .cases = cases,
                          .jobs = (int)jobs,
                          .timeout = timeout * SLACK,
                          .slack = SLACK,
                          .done = count_case,
                          .ctx = &t};
    case_run_all(&o, selected);
    struct json_object *report = json_object_new_object();
    json_object_object_add(report, "passed", json_object_new_int64((int64_t)t.passed));
    json_object_object_add(report, "failed", json_object_new_int64((int64_t)t.failed));
    json_object_object_add(report, "skipped", json_object_new_int64((int64_t)t.skipped));
    json_object_object_add(report, "cases", t.report);
    code = cli_wants_json(args) ? cli_json(args, report) : (json_object_put(report), CLI_DONE);
    printf("%zu passed, %zu failed, %zu skipped\n", t.passed, t.failed, t.skipped);
    if (code == CLI_DONE && (t.failed || !(t.passed + t.skipped))) code = CLI_NO;
  }
  free(selected);
  json_object_put(root);
  return code;
}

int cli_cmd_verify(const cli_args *args) {
  const char *folder = cli_option(args, "cases");
  if (folder && args->positional_count) return cli_usage("give a MODEL or --cases DIR, not both");
  if (!folder && !args->positional_count) return cli_usage("give a MODEL or --cases DIR");
  return folder ? verify_cases(args, folder) : verify_model(args);
}
