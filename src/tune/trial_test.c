/* Candidates that misbehave in every way cost one candidate each, with their reason; the others are judged as if nothing was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/reference/reference.h"
#include "passes/testing.h"
#include "tune/candidate.h"
#include "tune/decide.h"
#include "tune/stats.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 }; /* limits of address space are none for them */
#else
enum { SANITIZED = 0 };
#endif

/* ---- backends: the reference, with a fault ---------------------------------------------------------------------------------------*/
static char counter_path[4096] = "/dev/null"; /* a byte for each session that was made, over all processes */

static long sessions_made(void) {
  struct stat s;
  return stat(counter_path, &s) ? 0 : (long)s.st_size;
}

static ait_status honest(void *instance, const ait_run_context *context) { return ait_backend_reference.run(instance, context); }

/* Right, and slower than the others: so that these are surely among the finalists. */
static ait_status slowly(void *instance, const ait_run_context *context) {
  AIT_TRY(honest(instance, context));
  AIT_TRY(honest(instance, context));
  return honest(instance, context);
}

static ait_status spoil(void *instance, const ait_run_context *context, double by) {
  AIT_TRY(honest(instance, context));
  float *y = context->outputs[0].as.tensor.data;
  y[0] += (float)by;
  return AIT_OK;
}
static ait_status lying(void *instance, const ait_run_context *context) { return spoil(instance, context, 0.5); }
static ait_status drifting(void *instance, const ait_run_context *context) {
  static int calls;
  return spoil(instance, context, ++calls % 2 ? 0 : 2e-6); /* within tolerance, and not the same */
}
static ait_status crashing(void *instance, const ait_run_context *context) {
  AIT_UNUSED(instance), AIT_UNUSED(context);
  signal(SIGABRT, SIG_DFL);
  abort();
  return AIT_OK;
}
static ait_status leaving(void *instance, const ait_run_context *context) {
  AIT_UNUSED(instance), AIT_UNUSED(context);
  _exit(3);
  return AIT_OK;
}
static ait_status hanging(void *instance, const ait_run_context *context) {
  AIT_UNUSED(instance), AIT_UNUSED(context);
  signal(SIGTERM, SIG_IGN);
  while (pause() < 0) {}
  return AIT_OK;
}
static ait_status failing(void *instance, const ait_run_context *context) {
  AIT_UNUSED(instance), AIT_UNUSED(context);
  return ait_error(AIT_CODE_INTERNAL, "the stars were wrong");
}
static ait_status hungry(void *instance, const ait_run_context *context) {
  for (size_t taken = 0; taken < (size_t)64 << 30; taken += 64 << 20) {
    char *p = ait_alloc(context->allocator, 64 << 20, 64); /* never given back */
    if (!p) return AIT_OOM();
  }
  return honest(instance, context);
}
/* As a guest in another process: most of the time of a call is the way there and back. */
enum { FAR_US = 5000 };
static double far_seconds;
static double far_transport(const void *instance) {
  AIT_UNUSED(instance);
  return far_seconds;
}
static ait_status far_away(void *instance, const ait_run_context *context) {
  double start = ait_clock_seconds();
  usleep(FAR_US);
  far_seconds += ait_clock_seconds() - start;
  return honest(instance, context);
}
/* As fast as the baseline, so that it comes into the contest, and right until its third session, which is the one there. */
static const ait_backend *fast;
static ait_status late_instance(void *loaded, ait_allocator a, void **out) {
  int fd = open(counter_path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (fd < 0 || write(fd, "x", 1) != 1) return ait_error(AIT_CODE_IO, "no counter");
  close(fd);
  return fast->instance_create(loaded, a, out);
}
static ait_status late(void *instance, const ait_run_context *context) {
  static long made; /* asked once in each child */
  if (made == 0) made = sessions_made();
  return made > 1 ? crashing(instance, context) : fast->run(instance, context);
}

static ait_status hanging_compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  AIT_UNUSED(region), AIT_UNUSED(options), AIT_UNUSED(out);
  while (pause() < 0) {}
  return AIT_OK;
}
static ait_status declining(const ait_region *region, ait_support *out) {
  AIT_UNUSED(region);
  out->supported = false;
  if (out->note_capacity > 0) {
    out->notes[0] = (ait_support_note){.node = AIT_NO_INDEX, .code = "no", .reason = "not on a Monday"};
    out->note_count = 1;
  }
  return AIT_OK;
}

enum { HONEST, LYING, DRIFTING, CRASHING, LEAVING, HANGING, FAILING, HUNGRY, LATE, HANGING_COMPILE, DECLINING, FAR, BACKENDS };
static ait_backend backends[BACKENDS];
static const struct {
  const char *name;
  ait_status (*run)(void *, const ait_run_context *);
  ait_outcome outcome;
  const char *reason;
} wanted[BACKENDS] = {
    [HONEST] = {"t-honest", slowly, AIT_OUTCOME_VALID, ""},
    [LYING] = {"t-lying", lying, AIT_OUTCOME_INVALID, "elements outside tolerance"},
    [DRIFTING] = {"t-drifting", drifting, AIT_OUTCOME_INVALID, "second call with the same inputs"},
    [CRASHING] = {"t-crashing", crashing, AIT_OUTCOME_CRASHED, "Aborted"},
    [LEAVING] = {"t-leaving", leaving, AIT_OUTCOME_CRASHED, "exit code 3"},
    [HANGING] = {"t-hanging", hanging, AIT_OUTCOME_TIMEOUT, "took more than"},
    [FAILING] = {"t-failing", failing, AIT_OUTCOME_FAILED, "the stars were wrong"},
    [HUNGRY] = {"t-hungry", hungry, AIT_OUTCOME_FAILED, "out of memory"},
    [LATE] = {"t-late", late, AIT_OUTCOME_VALID, ""},
    [HANGING_COMPILE] = {"t-hanging-compile", honest, AIT_OUTCOME_TIMEOUT, "took more than"},
    [DECLINING] = {"t-declining", honest, AIT_OUTCOME_UNSUPPORTED, "not on a Monday"},
    [FAR] = {"t-far", far_away, AIT_OUTCOME_VALID, ""},
};

static void add_backends(void) {
  fast = ait_backend_find("eager");
  for (int i = 0; i < BACKENDS; ++i) {
    backends[i] = i == LATE ? *fast : ait_backend_reference;
    backends[i].name = wanted[i].name;
    backends[i].run = wanted[i].run;
  }
  backends[HANGING_COMPILE].compile = hanging_compile;
  backends[DECLINING].supports = declining;
  backends[LATE].instance_create = late_instance;
  backends[FAR].transport_seconds = far_transport;
  for (int i = 0; i < BACKENDS; ++i) pt_ok(ait_backend_add(&backends[i]), "add");
}

/* ---- one trial each --------------------------------------------------------------------------------------------------------------*/
static const char model_text[] =
    "graph \"m\" raw\nsymbol s0 [2, 64] hint 4 backed\ninput %x: float32[s0, 8] user 0 \"x\"\ninput %w: float32[8, 8] parameter -1 \"w\"\n"
    "%m: float32[s0, 8] = aten.mm(%x, %w)\n%y: float32[s0, 8] = aten.tanh(%m)\noutput user 0 \"y\" = %y\n";

typedef struct bench {
  ait_graph *raw;
  ait_region *region;
  ait_tune_cases cases;
  ait_tune_options options;
  ait_trial_context x;
  ait_value inputs[PT_MAX];
  size_t input_count;
  volatile bool cancel;
  int idles;
} bench;

static void on_idle(void *ctx) { ++((bench *)ctx)->idles; }

static void bench_open(bench *b) {
  *b = (bench){0};
  b->raw = pt_parse(model_text);
  pt_ok(ait_graph_region(b->raw, ait_allocator_default(), &b->region), "region");
  assert_true(pt_inputs(b->region, 0, b->inputs, &b->input_count));
  ait_tune_options_init(&b->options);
  b->options.rtol = 1e-5;
  b->options.atol = 1e-5;
  b->options.trial_seconds = 1;
  b->options.cancel = &b->cancel;
  ait_sample sample = {b->inputs, b->input_count};
  pt_ok(ait_tune_cases_create(b->raw, &sample, 1, NULL, &b->cases), "cases");
  pt_ok(ait_tune_cases_answer(&b->cases, b->raw, &b->options, 1), "answers");
  b->x =
      (ait_trial_context){.raw = b->raw, .region = b->region, .cases = &b->cases, .options = &b->options, .idle = on_idle, .idle_ctx = b};
}

static void bench_close(bench *b) {
  ait_tune_cases_deinit(&b->cases);
  pt_release(b->inputs, b->input_count);
  ait_graph_region_destroy(ait_allocator_default(), b->region);
  ait_graph_destroy(b->raw);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static ait_candidate candidate_of(int backend) {
  ait_candidate c = {.backend = &backends[backend], .threads = 1};
  snprintf(c.name, sizeof c.name, "%s threads=1", backends[backend].name);
  return c;
}

static void each_fault_costs_one_candidate(void **state) {
  AIT_UNUSED(state);
  bench b;
  bench_open(&b);
  for (int i = 0; i < BACKENDS; ++i) {
    if (i == HUNGRY && SANITIZED) continue;
    b.options.trial_bytes = i == HUNGRY ? (uint64_t)2 << 30 : 0;
    ait_candidate c = candidate_of(i);
    double start = ait_clock_seconds();
    pt_ok(ait_trial_run(&b.x, &c, 0.05, &c.result), wanted[i].name);
    if (c.result.outcome != wanted[i].outcome || !strstr(c.result.reason, wanted[i].reason))
      fail_msg("%s: %s: %s", wanted[i].name, ait_outcome_text(c.result.outcome), c.result.reason);
    assert_int_equal(c.result.sample_count > 0, wanted[i].outcome == AIT_OUTCOME_VALID);
    if (wanted[i].outcome == AIT_OUTCOME_TIMEOUT) assert_true(ait_clock_seconds() - start < 10);
  }
  assert_true(b.idles > 0);
  bench_close(&b);
}

/* What a guest's process costs to reach is measured and left out, in trials and in the contest. */
static void the_way_to_a_guest_does_not_count(void **state) {
  AIT_UNUSED(state);
  static ait_contest contest;
  bench b;
  bench_open(&b);
  ait_candidate c = candidate_of(FAR), other = candidate_of(HONEST);
  const ait_candidate *both[] = {&other, &c};
  pt_ok(ait_trial_run(&b.x, &c, 0.05, &c.result), "far");
  assert_int_equal(c.result.outcome, AIT_OUTCOME_VALID);
  assert_true(c.result.transport_seconds > 0.9e-6 * FAR_US);
  for (uint32_t i = 0; i < c.result.sample_count; ++i) assert_true(c.result.samples[i] > 0);
  assert_true(ait_stats_of(c.result.samples, c.result.sample_count).median < 0.5e-6 * FAR_US);
  pt_ok(ait_contest_run(&b.x, both, 2, 0.05, &contest), "contest");
  if (contest.failed) fail_msg("%s", contest.reason);
  assert_true(ait_stats_of(&contest.times[AIT_CONTEST_ROUNDS], contest.rounds).median < 0.5e-6 * FAR_US);
  bench_close(&b);
}

static void cancelling_stops_the_child(void **state) {
  AIT_UNUSED(state);
  bench b;
  bench_open(&b);
  b.options.trial_seconds = 100;
  b.cancel = true;
  ait_candidate c = candidate_of(HANGING);
  ait_status status = ait_trial_run(&b.x, &c, 0.05, &c.result);
  assert_int_equal(ait_status_code(status), AIT_CODE_CANCELLED);
  ait_status_free(status);
  bench_close(&b);
}

static void a_contest_names_who_failed(void **state) {
  AIT_UNUSED(state);
  static ait_contest contest;
  bench b;
  bench_open(&b);
  static const int members[] = {CRASHING, HANGING, FAILING, DECLINING};
  for (size_t i = 0; i < AIT_COUNT(members); ++i) {
    ait_candidate honest_one = candidate_of(HONEST), bad = candidate_of(members[i]);
    const ait_candidate *both[] = {&honest_one, &bad};
    pt_ok(ait_contest_run(&b.x, both, 2, 0.05, &contest), "contest");
    assert_true(contest.failed);
    assert_int_equal(contest.culprit, 1);
    assert_int_equal(contest.outcome, wanted[members[i]].outcome);
    assert_non_null(strstr(contest.reason, wanted[members[i]].reason));
  }
  ait_candidate one = candidate_of(HONEST), two = candidate_of(HONEST);
  const ait_candidate *both[] = {&one, &two};
  pt_ok(ait_contest_run(&b.x, both, 2, 0.05, &contest), "contest");
  assert_true(!contest.failed && contest.rounds >= 5 && contest.count == 2);
  bench_close(&b);
}

/* ---- the whole tuner -------------------------------------------------------------------------------------------------------------*/
static struct json_object *candidate_named(struct json_object *report, const char *name) {
  struct json_object *list;
  assert_true(json_object_object_get_ex(report, "candidates", &list));
  for (size_t i = 0; i < json_object_array_length(list); ++i) {
    struct json_object *c = json_object_array_get_idx(list, i), *member;
    if (json_object_object_get_ex(c, "backend", &member) && !strcmp(json_object_get_string(member), name)) return c;
  }
  fail_msg("no candidate of '%s'", name);
  return NULL;
}

static const char *text_of(struct json_object *o, const char *key) {
  struct json_object *member;
  return json_object_object_get_ex(o, key, &member) ? json_object_get_string(member) : "";
}

static void tuning_survives_them_all(void **state) {
  AIT_UNUSED(state);
  static const char model[] = AIT_TEST_DATA "/pt2/golden/mlp_t29.pt2";
  char folder[] = AIT_BINARY_DIR "/tests/ait-trial-XXXXXX", out[sizeof folder + 16], record[sizeof folder + 16];
  assert_non_null(mkdtemp(folder));
  snprintf(out, sizeof out, "%s/out.ait", folder);
  snprintf(record, sizeof record, "%s/record.db", folder);
  snprintf(counter_path, sizeof counter_path, "%s/counter", folder);
  ait_graph *raw;
  ait_region *region;
  ait_value inputs[PT_MAX] = {0};
  size_t input_count;
  pt_ok(ait_graph_open(model, NULL, &raw), "open");
  pt_ok(ait_graph_region(raw, ait_allocator_default(), &region), "region");
  assert_true(pt_inputs(region, 0, inputs, &input_count));
  const char *names[BACKENDS + 1] = {0};
  int count = 0;
  for (int i = BACKENDS; i-- > 0;)
    if (i != HUNGRY && i != FAR) names[count++] = wanted[i].name;
  ait_tune_options options;
  ait_tune_options_init(&options);
  options.backends = names;
  options.threads = 1;
  options.budget_seconds = 30;
  options.regions = "whole";
  options.strategy = "min-latency"; /* a search for batch sizes would meet the late one's second session before the contest does */
  options.trial_seconds = 1;
  options.rtol = options.atol = 1e-4;
  options.record_path = record;
  ait_sample sample = {inputs, input_count};
  for (int again = 0; again < 3; ++again) {
    char *text;
    double start = ait_clock_seconds();
    pt_ok(ait_tune(model, out, &sample, 1, &options, &text), "tune");
    if (again) assert_true(ait_clock_seconds() - start < 5); /* nothing is tried twice */
    struct json_object *report = json_tokener_parse(text);
    assert_non_null(report);
    for (int i = 0; i < BACKENDS; ++i) {
      if (i == HUNGRY || i == LATE || i == FAR) continue;
      struct json_object *c = candidate_named(report, wanted[i].name);
      assert_string_equal(text_of(c, "outcome"), ait_outcome_text(wanted[i].outcome));
      assert_non_null(strstr(text_of(c, "reason"), wanted[i].reason));
    }
    struct json_object *c = candidate_named(report, "t-late");
    assert_string_equal(text_of(c, "outcome"), "crashed");
    const char *reason = text_of(c, "reason"); /* its second session is in a later measurement or in the contest */
    if (!strstr(reason, "in the final contest") && !strstr(reason, "when measured again")) fail_msg("%s", reason);
    const char *winner = text_of(report, "winner");
    assert_true(!strcmp(winner, "t-honest threads=1") || !strcmp(winner, "eager threads=1"));
    assert_int_equal(access(out, R_OK), 0);
    json_object_put(report);
    ait_string_free(text);
  }
  pt_release(inputs, input_count);
  ait_graph_region_destroy(ait_allocator_default(), region);
  ait_graph_destroy(raw);
  char command[sizeof folder + 16];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

static void backends_are_added_once(void **state) {
  AIT_UNUSED(state);
  ait_backend old = backends[HONEST];
  ait_status status = ait_backend_add(&backends[HONEST]);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
  old.name = "t-old";
  old.abi_version = AIT_BACKEND_ABI + 1;
  status = ait_backend_add(&old);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
  assert_null(ait_backend_find("t-old"));
  assert_ptr_equal(ait_backend_find("t-late"), &backends[LATE]);
  assert_ptr_equal(ait_backend_at(ait_backend_count() - 1), &backends[BACKENDS - 1]);
  assert_null(ait_backend_at(ait_backend_count()));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_fault_costs_one_candidate), cmocka_unit_test(the_way_to_a_guest_does_not_count),
      cmocka_unit_test(cancelling_stops_the_child),     cmocka_unit_test(a_contest_names_who_failed),
      cmocka_unit_test(tuning_survives_them_all),       cmocka_unit_test(backends_are_added_once),
  };
  add_backends();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
