/* ait_trace_append and ait_replay. */
#include "tune/put_json.h"
#include "tune/replay.h"
#include <ait/tools.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* ---- recording -------------------------------------------------------------------------------------------------------------------*/
static void put_input(ait_text *t, bool *first, const ait_region *region, const ait_region_input *in, const ait_value *v) {
  const ait_region_value *declared = &region->values[in->value];
  bool size = v->kind == AIT_VALUE_INT && declared->type == AIT_TYPE_INT && declared->shape;
  if (v->kind != AIT_VALUE_TENSOR && !size) return; /* a number that is no size is data */
  ait_put_key(t, first, in->name);
  if (size) ait_text_printf(t, "%lld", (long long)v->as.i);
  else ait_text_append(t, "[", 1);
  for (int32_t d = 0; !size && d < v->as.tensor.rank; ++d) ait_text_printf(t, "%s%lld", d ? ", " : "", (long long)v->as.tensor.shape[d]);
  if (!size) ait_text_append(t, "]", 1);
}

static ait_status write_line(const char *path, const ait_text *line) {
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return ait_error(AIT_CODE_IO, "cannot write '%s': %s", path, strerror(errno));
  ssize_t n = write(fd, line->data, line->length); /* one call: lines of others come before or after */
  ait_status status = AIT_OK;
  if (n < 0 || (size_t)n != line->length)
    status = ait_error(AIT_CODE_IO, "cannot write '%s': %s", path, n < 0 ? strerror(errno) : "no room");
  if (close(fd) && status == AIT_OK) status = ait_error(AIT_CODE_IO, "cannot write '%s': %s", path, strerror(errno));
  return status;
}

ait_status ait_trace_append(const char *path, const ait_model *model, const ait_value *inputs, size_t count, double arrival) {
  const ait_region *region = ait_model_region(model);
  char time[48];
  bool first = true;
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_format_double(time, 17, arrival);
  ait_text_printf(&t, "{\"t\": %s, \"inputs\": {", time);
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind == AIT_INPUT_USER && in->value != AIT_NO_INDEX && in->user_index >= 0 && (size_t)in->user_index < count)
      put_input(&t, &first, region, in, &inputs[in->user_index]);
  }
  ait_text_printf(&t, "}}\n");
  ait_status status = t.failed ? AIT_OOM() : write_line(path, &t);
  ait_text_deinit(&t);
  return status;
}

/* ---- replaying -------------------------------------------------------------------------------------------------------------------*/
void ait_replay_options_init(ait_replay_options *o) { *o = (ait_replay_options){.struct_size = sizeof *o, .seconds = 10}; }

static void put_numbers(ait_text *t, bool *first, const ait_replay_numbers *n) {
  const struct {
    const char *key;
    double value;
  } rows[] = {
      {"p50_s", n->p50},
      {"p95_s", n->p95},
      {"p99_s", n->p99},
      {"max_s", n->max},
      {"wait_p50_s", n->wait_p50},
      {"wait_p99_s", n->wait_p99},
      {"wait_mean_s", n->wait_mean},
      {"service_p50_s", n->service_p50},
      {"service_p99_s", n->service_p99},
      {"service_mean_s", n->service_mean},
      {"requests_per_s", n->throughput},
      {"goodput_per_s", n->goodput},
      {"good_share", n->good_share},
      {"utilisation", n->utilisation},
      {"span_s", n->span},
  };
  for (size_t i = 0; i < AIT_COUNT(rows); ++i) ait_put_double(t, first, rows[i].key, rows[i].value);
}

void ait_replay_put(ait_text *t, bool *first, const ait_traffic *traffic, const ait_replay_result *r, double limit) {
  ait_put_int(t, first, "requests", (int64_t)traffic->request_count);
  ait_put_int(t, first, "passes", r->passes);
  ait_put_int(t, first, "measured", (int64_t)r->measured);
  ait_put_int(t, first, "dropped", (int64_t)r->dropped);
  if (limit > 0) ait_put_double(t, first, "limit_s", limit);
  put_numbers(t, first, &r->numbers);
  ait_put_key(t, first, "shapes");
  ait_text_printf(t, "[");
  for (size_t k = 0; k < traffic->kind_count && k < AIT_REPLAY_KINDS; ++k) {
    char text[256];
    bool f = true;
    ait_traffic_kind_text(&traffic->kinds[k], text, sizeof text);
    ait_text_printf(t, "%s{", k ? ", " : "");
    ait_put_string(t, &f, "shape", text);
    ait_put_int(t, &f, "requests", (int64_t)traffic->kinds[k].requests);
    ait_put_double(t, &f, "service_p50_s", r->kind_service[k]);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
}

static ait_status replay(ait_model *model, const ait_traffic *traffic, const ait_tune_cases *cases, const ait_replay_options *o,
                         ait_text *t) {
  ait_session_options so;
  ait_session *session = NULL;
  ait_replay_result *r = ait_alloc_zero(ait_allocator_default(), sizeof *r, _Alignof(ait_replay_result));
  ait_replay_request q = {.traffic = traffic,
                          .cases = cases,
                          .region = ait_model_region(model),
                          .output_count = cases->output_count,
                          .seconds = o->seconds > 0 ? o->seconds : 10,
                          .limit = o->limit_seconds,
                          .quantile = 0.99};
  bool first = true;
  ait_session_options_init(&so);
  so.threads = o->threads;
  ait_status status = r ? ait_session_create(model, &so, &session) : AIT_OOM();
  if (status == AIT_OK && q.limit <= 0) { /* a short look first */
    ait_replay_request look = q;
    look.seconds = 0.05 * q.seconds;
    status = ait_replay_session(&look, session, r);
    q.limit = 10 * r->numbers.service_p50;
  }
  if (status == AIT_OK) status = ait_replay_session(&q, session, r);
  if (status == AIT_OK) {
    ait_text_printf(t, "{");
    ait_put_string(t, &first, "trace", traffic->name);
    ait_put_string(t, &first, "backend", ait_session_backend(session));
    ait_replay_put(t, &first, traffic, r, q.limit);
    ait_text_printf(t, "}\n");
  }
  ait_session_destroy(session);
  ait_free(ait_allocator_default(), r, sizeof *r);
  return status;
}

ait_status ait_replay(ait_model *model, const char *trace_path, const ait_value *inputs, size_t input_count,
                      const ait_replay_options *options, char **out) {
  ait_replay_options o;
  ait_traffic traffic = {0};
  ait_tune_cases cases = {0};
  ait_text t;
  *out = NULL;
  ait_replay_options_init(&o);
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ait_text_init(&t, ait_allocator_default());
  ait_status status = ait_traffic_open(trace_path, &traffic);
  if (status == AIT_OK) status = ait_tune_cases_single(ait_model_region(model), &(ait_sample){inputs, input_count}, &cases);
  if (status == AIT_OK) status = replay(model, &traffic, &cases, &o, &t);
  ait_tune_cases_deinit(&cases);
  ait_traffic_deinit(&traffic);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return status;
}
