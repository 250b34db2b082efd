/* One call of a graph on a backend, in this process or in one of its own. */
#include "tune/candidate.h"
#include "tune/debug.h"
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const double limit_seconds = 120;

/* ---- values ------------------------------------------------------------------------------------------------------------------------*/
void ait_debug_values_free(ait_value *values, size_t count) {
  for (size_t i = 0; values && i < count; ++i) ait_value_release(&values[i]);
  ait_free(ait_allocator_default(), values, (count + 1) * sizeof *values);
}

ait_status ait_debug_values_new(size_t count, ait_value **out) {
  *out = ait_alloc_zero(ait_allocator_default(), (count + 1) * sizeof **out, _Alignof(ait_value));
  return *out ? AIT_OK : AIT_OOM();
}

static ait_status copy_value(const ait_value *v, ait_value *out) {
  *out = *v;
  if (v->kind != AIT_VALUE_TENSOR) return AIT_OK;
  out->kind = AIT_VALUE_NONE;
  AIT_TRY(ait_tensor_cast(ait_allocator_default(), &v->as.tensor, v->as.tensor.dtype, &out->as.tensor));
  out->kind = AIT_VALUE_TENSOR;
  return AIT_OK;
}

/* ---- here --------------------------------------------------------------------------------------------------------------------------*/
static ait_status call_once(ait_session *session, const ait_value *inputs, size_t input_count, ait_value *outputs, size_t count) {
  ait_value *copies, *results;
  AIT_TRY(ait_debug_values_new(input_count, &copies));
  ait_status status = ait_debug_values_new(count, &results);
  for (size_t i = 0; status == AIT_OK && i < input_count; ++i)
    status = copy_value(&inputs[i], &copies[i]); /* a model may write into them */
  if (status == AIT_OK) status = ait_session_run(session, copies, input_count, results, count);
  for (size_t i = 0; status == AIT_OK && i < count; ++i) status = copy_value(&results[i], &outputs[i]);
  ait_free(ait_allocator_default(), results, (count + 1) * sizeof *results);
  ait_debug_values_free(copies, input_count);
  return status;
}

ait_status ait_debug_run(const ait_debug_call *c, ait_value *outputs, size_t count) {
  ait_allocator a = ait_allocator_default();
  ait_region *region = NULL;
  ait_plan plan = {0};
  ait_model *model = NULL;
  ait_session *session = NULL;
  ait_session_options so;
  ait_session_options_init(&so);
  so.threads = c->load->threads;
  ait_weights weights = c->graph->weights ? ait_weight_store_provider(c->graph->weights) : (ait_weights){0};
  ait_status status = ait_graph_region(c->graph, a, &region);
  if (status == AIT_OK) status = ait_region_taken(c->backend, region, "this", NULL);
  if (status == AIT_OK) status = ait_plan_compile(a, c->backend->name, c->knobs, region, weights, c->load->cpu_mask, "debug", &plan);
  if (status == AIT_OK) status = ait_model_create(a, region, weights, &plan, NULL, NULL, &model);
  if (status == AIT_OK) status = ait_session_create(model, &so, &session);
  if (status == AIT_OK) status = call_once(session, c->inputs, c->input_count, outputs, count);
  ait_session_destroy(session);
  ait_model_release(model);
  if (plan.steps) ait_plan_deinit(&plan);
  ait_graph_region_destroy(a, region);
  return status;
}

/* ---- apart: the values come back through a file in memory --------------------------------------------------------------------------*/
typedef struct answer {
  ait_code code;
  char message[480], hint[240];
} answer;

typedef struct order {
  const ait_debug_call *call;
  size_t count;
  int fd;
} order;

static ait_status put(int fd, const void *data, size_t size) {
  for (const char *p = data; size > 0;) {
    ssize_t n = write(fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ait_error(AIT_CODE_OUT_OF_MEMORY, "no memory for the results: %s", strerror(errno));
    p += n;
    size -= (size_t)n;
  }
  return AIT_OK;
}

static ait_status get(int fd, void *data, size_t size) {
  for (char *p = data; size > 0;) {
    ssize_t n = read(fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ait_error(AIT_CODE_INTERNAL, "the results of the child process are not whole");
    p += n;
    size -= (size_t)n;
  }
  return AIT_OK;
}

static size_t bytes_of(const ait_tensor *t) { return (size_t)ait_tensor_count(t) * ait_dtype_size(t->dtype); }

static void run_in_child(void *ctx, void *out) {
  order *o = ctx;
  answer *a = out;
  ait_value *outputs = NULL;
  ait_status status = ait_debug_values_new(o->count, &outputs);
  if (status == AIT_OK) status = ait_debug_run(o->call, outputs, o->count);
  for (size_t i = 0; status == AIT_OK && i < o->count; ++i) {
    status = put(o->fd, &outputs[i], sizeof outputs[i]);
    if (status == AIT_OK && outputs[i].kind == AIT_VALUE_TENSOR)
      status = put(o->fd, outputs[i].as.tensor.data, bytes_of(&outputs[i].as.tensor));
  }
  if (status == AIT_OK) return;
  a->code = ait_status_code(status);
  snprintf(a->message, sizeof a->message, "%s", ait_status_message(status));
  snprintf(a->hint, sizeof a->hint, "%s", ait_status_hint(status) ? ait_status_hint(status) : "");
}

static ait_status read_values(int fd, ait_value *outputs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    ait_value v;
    AIT_TRY(get(fd, &v, sizeof v));
    if (v.kind != AIT_VALUE_TENSOR) {
      if (v.kind != AIT_VALUE_STRING) outputs[i] = v; /* a text is in the child's memory */
      continue;
    }
    AIT_TRY(ait_tensor_create(ait_allocator_default(), v.as.tensor.dtype, v.as.tensor.rank, v.as.tensor.shape, &outputs[i].as.tensor));
    outputs[i].kind = AIT_VALUE_TENSOR;
    AIT_TRY(get(fd, outputs[i].as.tensor.data, bytes_of(&outputs[i].as.tensor)));
  }
  return AIT_OK;
}

ait_status ait_debug_run_apart(const ait_debug_call *call, ait_value *outputs, size_t count, char crash[AIT_REASON_SIZE]) {
  ait_tune_options options;
  answer a = {0};
  order o = {call, count, memfd_create("ait-debug", MFD_CLOEXEC)};
  ait_trial_context x = {.options = &options};
  ait_tune_options_init(&options);
  *crash = 0;
  if (o.fd < 0) return ait_error(AIT_CODE_OUT_OF_MEMORY, "no file in memory: %s", strerror(errno));
  ait_status status = ait_child_call(&x, run_in_child, &o, &a, sizeof a, limit_seconds, crash);
  if (status == AIT_OK && !*crash && a.code != 0) {
    status = ait_error(a.code, "%s", a.message);
    if (*a.hint) status = ait_error_hint(status, "%s", a.hint);
  } else if (status == AIT_OK && !*crash) {
    if (lseek(o.fd, 0, SEEK_SET) != 0) status = ait_error(AIT_CODE_INTERNAL, "cannot read the results of the child process");
    else status = read_values(o.fd, outputs, count);
  }
  close(o.fd);
  return status;
}
