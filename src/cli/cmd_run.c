/* ait run: call a model, write its outputs, say how right they are. */
#include "cli/buckets.h"
#include "cli/trace.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct run_state {
  const cli_args *args;
  ait_model *model;
  ait_session *session;
  cli_inputs inputs;
  ait_value *outputs;
  size_t output_count;
  ait_data *saved; /* outputs by name */
  double seconds;  /* of the last call */
  cli_trace *trace;
} run_state;

static ait_status call(run_state *r, const ait_value *inputs) {
  for (size_t i = 0; i < r->output_count; ++i) r->outputs[i] = (ait_value){.kind = AIT_VALUE_NONE};
  const char *record = cli_option(r->args, "record-trace");
  struct timespec day;
  clock_gettime(CLOCK_REALTIME, &day); /* all that write to the file share it */
  double start = cli_now();
  ait_status status = ait_session_run(r->session, inputs, r->inputs.count, r->outputs, r->output_count);
  r->seconds = cli_now() - start;
  if (status == AIT_OK && record)
    status = ait_trace_append(record, r->model, inputs, r->inputs.count, (double)day.tv_sec + 1e-9 * (double)day.tv_nsec);
  if (status == AIT_OK && r->trace) cli_trace_call(r->trace, start, r->seconds);
  return status;
}

static ait_status save_outputs(run_state *r) {
  ait_status status = ait_data_create(ait_allocator_default(), &r->saved);
  for (size_t i = 0; status == AIT_OK && i < r->output_count; ++i) {
    ait_port port;
    status = ait_model_output(r->model, i, &port);
    ait_value *v = &r->outputs[i];
    ait_tensor scalar = ait_tensor_borrow(&v->as.i, AIT_I64, 0, NULL);
    if (v->kind == AIT_VALUE_FLOAT) scalar = ait_tensor_borrow(&v->as.f, AIT_F64, 0, NULL);
    if (v->kind == AIT_VALUE_BOOL) scalar = ait_tensor_borrow(&v->as.b, AIT_BOOL, 0, NULL);
    if (status != AIT_OK || v->kind == AIT_VALUE_NONE || v->kind == AIT_VALUE_STRING) continue;
    status = ait_data_add(r->saved, port.name, v->kind == AIT_VALUE_TENSOR ? &v->as.tensor : &scalar);
  }
  return status;
}

static void print_outputs(const run_state *r) {
  cli_table table;
  cli_table_init(&table, 5, "LLLRR");
  cli_table_row(&table, "output", "dtype", "shape", "min", "max");
  for (size_t i = 0; i < r->output_count; ++i) {
    ait_port port = {0};
    ait_status_free(ait_model_output(r->model, i, &port));
    const ait_value *v = &r->outputs[i];
    if (v->kind != AIT_VALUE_TENSOR) continue;
    char shape[160] = "[", low[32] = "", high[32] = "";
    const ait_tensor *t = &v->as.tensor;
    for (int32_t d = 0; d < t->rank; ++d)
      snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", d ? ", " : "", (long long)t->shape[d]);
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "]");
    ait_tensor wide;
    ait_status status = ait_tensor_cast(ait_allocator_default(), t, AIT_F64, &wide);
    if (status == AIT_OK) {
      double lo = INFINITY, hi = -INFINITY;
      for (int64_t k = 0, n = ait_tensor_count(t); k < n; ++k) {
        double x = ((double *)wide.data)[k];
        if (x < lo || isnan(x)) lo = x;
        if (x > hi || isnan(x)) hi = x;
      }
      snprintf(low, sizeof low, "%.6g", lo);
      snprintf(high, sizeof high, "%.6g", hi);
      ait_tensor_release(&wide);
    }
    ait_status_free(status);
    cli_table_row(&table, port.name ? port.name : "", ait_dtype_name(t->dtype), shape, low, high);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

/* Freed by the caller; NULL when there is no memory. */
static ait_step_time *profile(const run_state *r, size_t *out_count) {
  size_t n = ait_session_profile(r->session, NULL, 0);
  ait_step_time *steps = calloc(n + 1, sizeof *steps);
  *out_count = steps ? ait_session_profile(r->session, steps, n) : 0;
  return steps;
}

static struct json_object *profile_json(const run_state *r) {
  size_t n;
  ait_step_time *steps = profile(r, &n);
  struct json_object *list = json_object_new_array();
  for (size_t i = 0; i < n; ++i) {
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "op", json_object_new_string(steps[i].op ? steps[i].op : ""));
    json_object_object_add(o, "kernel", json_object_new_string(steps[i].kernel ? steps[i].kernel : ""));
    json_object_object_add(o, "module", json_object_new_string(steps[i].module ? steps[i].module : ""));
    json_object_object_add(o, "node", json_object_new_string(steps[i].name ? steps[i].name : ""));
    json_object_object_add(o, "calls", json_object_new_int64((int64_t)steps[i].calls));
    json_object_object_add(o, "seconds", json_object_new_double(steps[i].seconds));
    json_object_array_add(list, o);
  }
  free(steps);
  return list;
}

static void print_profile(const run_state *r) {
  size_t n;
  ait_step_time *steps = profile(r, &n);
  if (!steps) return;
  double total = 0;
  for (size_t i = 0; i < n; ++i) total += steps[i].seconds;
  cli_table table;
  cli_table_init(&table, 5, "RRLLL");
  cli_table_row(&table, "time", "share", "operator", "kernel", "module");
  for (size_t i = 0; i < n; ++i) {
    char time[16], share[16];
    cli_seconds(steps[i].seconds / (steps[i].calls ? (double)steps[i].calls : 1), time);
    snprintf(share, sizeof share, "%.1f%%", total > 0 ? 100 * steps[i].seconds / total : 0);
    cli_table_row(&table, time, share, steps[i].op ? steps[i].op : "", steps[i].kernel ? steps[i].kernel : "",
                  steps[i].module ? steps[i].module : "");
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  free(steps);
}

/* ---- accuracy --------------------------------------------------------------------------------------------------------------------*/
static int64_t argmax_row(const double *row, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (row[i] > row[best]) best = i;
  return best;
}

static ait_status count_right(const ait_tensor *scores, const ait_tensor *labels, int64_t begin, int64_t *right) {
  ait_tensor s, l;
  ait_status status = ait_tensor_cast(ait_allocator_default(), scores, AIT_F64, &s);
  if (status != AIT_OK) return status;
  status = ait_tensor_cast(ait_allocator_default(), labels, AIT_I64, &l);
  if (status == AIT_OK) {
    int64_t rows = s.shape[0], classes = rows ? ait_tensor_count(&s) / rows : 0;
    for (int64_t i = 0; i < rows; ++i) *right += argmax_row((double *)s.data + i * classes, classes) == ((int64_t *)l.data)[begin + i];
    ait_tensor_release(&l);
  }
  ait_tensor_release(&s);
  return status;
}

/* All rows of the data in calls of at most `batch`, against right classes. */
static ait_status run_labels(run_state *r, const char *name, int64_t batch, int64_t *out_right, int64_t *out_rows) {
  const ait_tensor *labels = NULL;
  for (int s = 0; s < r->inputs.source_count && !labels; ++s) labels = ait_data_find(r->inputs.sources[s], name);
  if (!labels || labels->rank != 1) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the data holds no one-dimensional array '%s'", name);
  int64_t rows = labels->shape[0];
  ait_value *part = calloc(r->inputs.count + 1, sizeof *part);
  ait_status status = part ? AIT_OK : ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  *out_right = 0;
  for (int64_t begin = 0; status == AIT_OK && begin < rows; begin += batch) {
    int64_t n = rows - begin < batch ? rows - begin : batch;
    for (size_t i = 0; i < r->inputs.count; ++i) {
      part[i] = r->inputs.values[i];
      ait_tensor *t = &part[i].as.tensor;
      if (part[i].kind != AIT_VALUE_TENSOR || !t->rank || t->shape[0] != rows) continue;
      t->data = (char *)t->data + begin * t->strides[0] * (int64_t)ait_dtype_size(t->dtype);
      t->shape[0] = n;
    }
    status = call(r, part);
    if (status == AIT_OK &&
        (r->outputs[0].kind != AIT_VALUE_TENSOR || r->outputs[0].as.tensor.rank < 1 || r->outputs[0].as.tensor.shape[0] != n))
      status = ait_error(AIT_CODE_INVALID_ARGUMENT, "the first output has no row per label");
    if (status == AIT_OK) status = count_right(&r->outputs[0].as.tensor, labels, begin, out_right);
  }
  free(part);
  *out_rows = rows;
  return status;
}

static ait_status open_all(run_state *r) {
  ait_status status = cli_model_open(r->args, r->args->positional[0], cli_option(r->args, "backend"), &r->model);
  if (status == AIT_OK) status = cli_inputs_get(r->args, r->model, "data", &r->inputs);
  if (status == AIT_OK)
    status = cli_session_open(r->args, r->model, cli_flag(r->args, "profile") || cli_option(r->args, "trace"), &r->session);
  if (status != AIT_OK) return status;
  if (cli_option(r->args, "trace") && !(r->trace = cli_trace_create(r->session))) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  r->output_count = ait_model_output_count(r->model);
  r->outputs = calloc(r->output_count + 1, sizeof *r->outputs);
  return r->outputs ? AIT_OK : ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
}

static int report_run(run_state *r, int64_t right, int64_t rows) {
  const cli_args *args = r->args;
  if (cli_wants_json(args)) {
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "backend", json_object_new_string(ait_session_backend(r->session)));
    json_object_object_add(o, "seconds", json_object_new_double(r->seconds));
    struct json_object *buckets = cli_buckets_json(r->session);
    if (buckets) json_object_object_add(o, "buckets", buckets);
    if (cli_flag(args, "profile")) json_object_object_add(o, "steps", profile_json(r));
    if (rows) json_object_object_add(o, "right", json_object_new_int64(right));
    if (rows) json_object_object_add(o, "rows", json_object_new_int64(rows));
    if (rows) json_object_object_add(o, "accuracy", json_object_new_double((double)right / (double)rows));
    int code = cli_json(args, o);
    if (code != CLI_DONE || !*cli_option(args, "json")) return code;
  }
  char time[16];
  cli_seconds(r->seconds, time);
  if (!rows) print_outputs(r);
  if (rows) printf("accuracy %.4f (%lld of %lld)\n", (double)right / (double)rows, (long long)right, (long long)rows);
  printf("last call %s on %s\n", time, ait_session_backend(r->session));
  if (cli_flag(args, "profile")) {
    print_profile(r);
    cli_buckets_print(r->session);
  }
  return CLI_DONE;
}

int cli_cmd_run(const cli_args *args) {
  run_state r = {.args = args};
  int64_t repeat, batch, right = 0, rows = 0;
  if (!cli_int(args, "repeat", 1, 1000000000, 1, &repeat) || !cli_int(args, "batch", 1, 1 << 30, 1 << 30, &batch)) return CLI_USAGE;
  const char *labels = cli_option(args, "labels"), *output = cli_option(args, "output");
  ait_status status = open_all(&r);
  if (status == AIT_OK && labels) status = run_labels(&r, labels, batch, &right, &rows);
  for (int64_t i = 0; status == AIT_OK && !labels && i < repeat; ++i) status = call(&r, r.inputs.values);
  if (status == AIT_OK && output) {
    status = save_outputs(&r);
    if (status == AIT_OK) status = ait_data_save(r.saved, output);
  }
  int code = status != AIT_OK ? cli_fail(status) : report_run(&r, right, rows);
  if (code == CLI_DONE && r.trace) code = cli_trace_write(r.trace, cli_option(args, "trace"));
  cli_trace_destroy(r.trace);
  ait_data_destroy(r.saved);
  free(r.outputs);
  ait_session_destroy(r.session);
  cli_inputs_deinit(&r.inputs);
  ait_model_release(r.model);
  return code;
}
