/* Sessions timed in turn: ait_bench. */
#include "tune/put_json.h"
#include "tune/stats.h"
#include "tune/stopwatch.h"
#include "tune/tune.h"

enum { MAX_ROUNDS = 2000 };

typedef struct lane {
  const ait_bench_entry *entry;
  ait_value *outputs;
  ait_stopwatch watch;
  double *times;
} lane;

static ait_status call(void *ctx) {
  lane *l = ctx;
  for (size_t k = 0; k < l->entry->output_count; ++k) l->outputs[k] = (ait_value){0};
  return ait_session_run(l->entry->session, l->entry->inputs, l->entry->input_count, l->outputs, l->entry->output_count);
}

static double transport(void *ctx) { return ait_session_transport_seconds(((const lane *)ctx)->entry->session); }

static ait_status run_rounds(lane *lanes, size_t count, double min_seconds, uint32_t *rounds, uint32_t *dropped) {
  double end = ait_clock_seconds() + min_seconds * (double)count;
  for (size_t k = 0; k < count; ++k) AIT_TRY(ait_stopwatch_warm_up(&lanes[k].watch));
  while (*rounds < MAX_ROUNDS && (*rounds < 5 || ait_clock_seconds() < end)) {
    bool all_clean = true;
    for (size_t i = 0; i < count; ++i) {
      size_t k = (i + *rounds) % count;
      bool clean;
      AIT_TRY(ait_stopwatch_measure(&lanes[k].watch, &lanes[k].times[*rounds], &clean));
      all_clean &= clean;
    }
    if (ait_stopwatch_rejects(all_clean, *rounds, *dropped, end)) ++*dropped;
    else ++*rounds;
  }
  return AIT_OK;
}

static void put_lane(ait_text *t, const lane *l, const lane *first_lane, uint32_t rounds, double *scratch) {
  bool first = true;
  ait_stats ratio = ait_stats_ratio(l->times, first_lane->times, rounds, scratch);
  memcpy(scratch, l->times, rounds * sizeof *scratch);
  ait_stats s = ait_stats_of(scratch, rounds);
  ait_put_string(t, &first, "label", l->entry->label);
  ait_put_string(t, &first, "backend", ait_session_backend(l->entry->session));
  ait_put_double(t, &first, "p50_s", s.median);
  ait_put_double(t, &first, "low_s", s.low);
  ait_put_double(t, &first, "high_s", s.high);
  ait_put_double(t, &first, "p95_s", s.p95);
  ait_put_double(t, &first, "p99_s", s.p99);
  ait_put_double(t, &first, "calls_per_s", s.mean > 0 ? 1 / s.mean : 0);
  ait_put_int(t, &first, "plan_bytes", (int64_t)ait_session_bytes(l->entry->session));
  ait_put_double(t, &first, "load_s", l->entry->load_seconds);
  ait_put_double(t, &first, "time_over_first", ratio.median);
  ait_put_double(t, &first, "time_over_first_low", ratio.low);
  ait_put_double(t, &first, "time_over_first_high", ratio.high);
}

/* Where runs went, with a plan that has buckets: those of warming up count, too. */
static ait_status put_buckets(ait_text *t, const ait_session *session) {
  ait_allocator a = ait_allocator_default();
  size_t n = ait_session_buckets(session, NULL, 0);
  if (n < 2) return AIT_OK;
  ait_bucket_info *list = ait_alloc(a, n * sizeof *list, _Alignof(ait_bucket_info));
  if (!list) return AIT_OOM();
  ait_session_buckets(session, list, n);
  ait_text_printf(t, ", \"buckets\": [");
  for (size_t i = 0; i < n; ++i) {
    bool first = true;
    ait_text_printf(t, "%s{", i ? ", " : "");
    ait_put_string(t, &first, "sizes", list[i].sizes);
    ait_put_string(t, &first, "backend", list[i].backend);
    ait_put_int(t, &first, "threads", list[i].threads);
    ait_put_bool(t, &first, "own_plan", list[i].own_plan);
    if (*list[i].why_not) ait_put_string(t, &first, "why_not", list[i].why_not);
    ait_put_int(t, &first, "runs", (int64_t)list[i].runs);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
  ait_free(a, list, n * sizeof *list);
  return AIT_OK;
}

static ait_status bench(const ait_bench_entry *entries, size_t count, double min_seconds, lane *lanes, double *times, ait_text *t) {
  ait_allocator a = ait_allocator_default();
  uint32_t rounds = 0, dropped = 0;
  ait_status status = AIT_OK;
  for (size_t k = 0; k < count; ++k) {
    lanes[k] = (lane){.entry = &entries[k], .times = times + k * MAX_ROUNDS, .watch = {call, &lanes[k], 1, 1, transport}};
    lanes[k].outputs = ait_alloc_zero(a, (entries[k].output_count + 1) * sizeof(ait_value), _Alignof(ait_value));
    if (!lanes[k].outputs) status = AIT_OOM();
  }
  if (status == AIT_OK) status = run_rounds(lanes, count, min_seconds, &rounds, &dropped);
  ait_text_printf(t, "{\"rounds\": %u, \"dropped\": %u, \"entries\": [", rounds, dropped);
  for (size_t k = 0; status == AIT_OK && k < count; ++k) {
    ait_text_printf(t, "%s\n  {", k ? "," : "");
    put_lane(t, &lanes[k], &lanes[0], rounds, times + count * MAX_ROUNDS);
    status = put_buckets(t, entries[k].session);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]}\n");
  for (size_t k = 0; k < count; ++k) ait_free(a, lanes[k].outputs, (entries[k].output_count + 1) * sizeof(ait_value));
  return status;
}

ait_status ait_bench(const ait_bench_entry *entries, size_t count, double min_seconds, char **out) {
  ait_allocator a = ait_allocator_default();
  *out = NULL;
  if (count == 0 || count > 64) return ait_error(AIT_CODE_INVALID_ARGUMENT, "%zu sessions to time: must be 1 to 64", count);
  lane *lanes = ait_alloc_zero(a, count * sizeof *lanes, _Alignof(lane));
  double *times = ait_alloc(a, (count + 1) * MAX_ROUNDS * sizeof *times, _Alignof(double));
  ait_text t;
  ait_text_init(&t, a);
  ait_status status = lanes && times ? bench(entries, count, min_seconds, lanes, times, &t) : AIT_OOM();
  ait_free(a, lanes, count * sizeof *lanes);
  ait_free(a, times, (count + 1) * MAX_ROUNDS * sizeof *times);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return status;
}
