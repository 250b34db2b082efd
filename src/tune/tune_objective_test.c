/* Each strategy against backends whose speed and memory are known: who wins, at which batch size, and what a crash or a lie at one size
 * costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/reference/reference.h"
#include "passes/testing.h"
#include "tune/batch.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- backends ----------------------------------------------------------------------------------------------------------------------
 * The first call of a size computes; later ones give that result again and take the time that they shall take. Right as long as there is
 * one sample. */
enum { SIZES = 64 };
static struct known {
  int64_t rows;
  ait_value result;
} known[SIZES];

/* The images are among the weights: the one input of 8 x 8. */
static int64_t rows_of(const ait_run_context *c) {
  const ait_value *v = c->inputs;
  while (v->kind != AIT_VALUE_TENSOR || v->as.tensor.rank != 4 || v->as.tensor.shape[2] != 8) ++v;
  return v->as.tensor.shape[0];
}

static struct known *find(int64_t rows) {
  for (int i = 0; i < SIZES; ++i)
    if (known[i].rows == rows || known[i].rows == 0) return &known[i];
  return NULL;
}

static ait_status in_time(void *instance, const ait_run_context *c, double seconds) {
  double end = ait_clock_seconds() + seconds;
  struct known *k = find(rows_of(c));
  if (!k) return ait_error(AIT_CODE_LIMIT, "too many sizes for a test");
  if (k->rows == 0) {
    AIT_TRY(ait_backend_reference.run(instance, c));
    k->result.kind = AIT_VALUE_TENSOR;
    AIT_TRY(ait_tensor_cast(ait_allocator_default(), &c->outputs[0].as.tensor, AIT_F32, &k->result.as.tensor));
    k->rows = rows_of(c);
  }
  if (c->outputs[0].kind == AIT_VALUE_TENSOR) AIT_TRY(ait_tensor_copy(&c->outputs[0].as.tensor, &k->result.as.tensor));
  else {
    c->outputs[0] = k->result;
    c->outputs[0].as.tensor.storage = NULL; /* lent */
  }
  while (ait_clock_seconds() < end) {}
  return AIT_OK;
}

/* Best for few rows: 20 us each. */
static ait_status prompt_run(void *in, const ait_run_context *c) { return in_time(in, c, 20e-6 * (double)rows_of(c)); }
/* Best for many: 200 us, and 1 us for each row. 5 rows take 205 us, where the prompt one takes 100; 64 take 264 instead of 1280. */
static ait_status bulk_run(void *in, const ait_run_context *c) { return in_time(in, c, 200e-6 + 1e-6 * (double)rows_of(c)); }
static ait_status slow_run(void *in, const ait_run_context *c) { return in_time(in, c, 10e-3 * (double)rows_of(c)); }
/* Dies beyond 20 rows. */
static ait_status fragile_run(void *in, const ait_run_context *c) {
  if (rows_of(c) > 20) {
    signal(SIGABRT, SIG_DFL);
    abort();
  }
  return in_time(in, c, 30e-6);
}
/* Wrong, but only beyond the sizes at which candidates are checked, which are at most four times the sample's. */
static ait_status sly_run(void *in, const ait_run_context *c) {
  AIT_TRY(in_time(in, c, 10e-6));
  if (rows_of(c) > 20) ((float *)c->outputs[0].as.tensor.data)[0] += 1;
  return AIT_OK;
}

/* The more a second the more rows; at the sample's 5 rows, and only there, its defaults take longest. */
static const char *const variants[] = {"0", "1", "2", "3", "4", "5", "6", "7", NULL};
static const ait_knob fickle_knobs[] = {{"variant", "", "0", variants}, {0}};
static bool fickle_defaults;
static ait_status fickle_compile(const ait_region *region, const ait_compile_options *o, ait_blob *out) {
  fickle_defaults = o->option_count == 0;
  return ait_backend_reference.compile(region, o, out);
}
static ait_status fickle_run(void *in, const ait_run_context *c) {
  bool trial = rows_of(c) == 5;
  return in_time(in, c, trial && fickle_defaults ? 130e-6 : trial ? 100e-6 : 100e-6 + 1e-6 * (double)rows_of(c));
}

/* A session has 16 MB more than the reference's. */
static ait_status greedy_instance(void *loaded, ait_allocator a, void **out) {
  enum { MORE = 16 << 20 };
  char *p = ait_alloc(a, MORE, 64); /* until the process ends */
  if (!p) return AIT_OOM();
  memset(p, 1, MORE);
  return ait_backend_reference.instance_create(loaded, a, out);
}

enum { PROMPT, BULK, SLOW, FRAGILE, SLY, FICKLE, BACKENDS };
static const ait_knob no_knobs[] = {{0}};
static ait_backend backends[BACKENDS];
static const struct {
  const char *name;
  ait_status (*run)(void *, const ait_run_context *);
} made[BACKENDS] = {
    [PROMPT] = {"o-prompt", prompt_run},    [BULK] = {"o-bulk", bulk_run}, [SLOW] = {"o-slow", slow_run},
    [FRAGILE] = {"o-fragile", fragile_run}, [SLY] = {"o-sly", sly_run},    [FICKLE] = {"o-fickle", fickle_run},
};

/* ---- the model: handwritten digits, 5 of them a call ----------------------------------------------------------------------------------*/
static const char model[] = AIT_TEST_DATA "/models/digits/digits.pt2";
static char folder[] = AIT_BINARY_DIR "/tests/ait-objective-XXXXXX", out_file[sizeof folder + 16], record[sizeof folder + 16];
static ait_value input;

static int setup(void **state) {
  AIT_UNUSED(state);
  uint64_t seed = 5;
  for (int i = 0; i < BACKENDS; ++i) {
    backends[i] = ait_backend_reference;
    backends[i].name = made[i].name;
    backends[i].run = made[i].run;
    backends[i].knobs = no_knobs;
    if (i == PROMPT || i == BULK) backends[i].instance_create = greedy_instance;
    if (i == FICKLE) backends[i].compile = fickle_compile, backends[i].knobs = fickle_knobs;
    pt_ok(ait_backend_add(&backends[i]), "add");
  }
  assert_non_null(mkdtemp(folder));
  snprintf(out_file, sizeof out_file, "%s/out.ait", folder);
  snprintf(record, sizeof record, "%s/record.db", folder);
  input.kind = AIT_VALUE_TENSOR;
  pt_ok(ait_tensor_create(ait_allocator_default(), AIT_F32, 4, (int64_t[]){5, 1, 8, 8}, &input.as.tensor), "input");
  pt_fill(&input.as.tensor, &seed, false);
  return 0;
}

static int teardown(void **state) {
  AIT_UNUSED(state);
  char command[sizeof folder + 16];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  ait_value_release(&input);
  return system(command);
}

/* ---- tuning
 * -----------------------------------------------------------------------------------------------------------------------------*/
static struct json_object *member(struct json_object *o, const char *key) {
  struct json_object *v = NULL;
  return o && json_object_object_get_ex(o, key, &v) ? v : NULL;
}

static struct json_object *named(struct json_object *list, const char *key, const char *name) {
  for (size_t i = 0; list && i < json_object_array_length(list); ++i) {
    struct json_object *o = json_object_array_get_idx(list, i);
    if (!strncmp(json_object_get_string(member(o, key)), name, strlen(name))) return o;
  }
  return NULL;
}

typedef struct run {
  const char *strategy, *sizes;
  int a, b; /* backends; -1: none */
  bool from_record;
} run;

static struct json_object *tune(const run *r, ait_code want) {
  signal(SIGSEGV, SIG_DFL); /* a child that dies must not go on with the tests */
  const char *names[3] = {made[r->a].name, r->b >= 0 ? made[r->b].name : NULL, NULL};
  ait_sample sample = {&input, 1};
  ait_tune_options options;
  char *text = NULL;
  ait_tune_options_init(&options);
  options.strategy = r->strategy;
  options.batch_sizes = r->sizes;
  options.backends = names;
  options.threads = 1;
  options.budget_seconds = 2;
  options.regions = "whole";
  options.record_path = record;
  options.from_record = r->from_record;
  ait_status status = ait_tune(model, out_file, &sample, 1, &options, &text);
  if (ait_status_code(status) != want)
    fail_msg("%s: %s: %s", r->strategy, made[r->a].name, status == AIT_OK ? "tuned" : ait_status_message(status));
  ait_status_free(status);
  struct json_object *report = json_tokener_parse(text);
  assert_non_null(report);
  ait_string_free(text);
  return report;
}

static void assert_wins(const run *r, const char *winner, int64_t smallest, int64_t largest) {
  struct json_object *report = tune(r, AIT_CODE_OK);
  const char *won = json_object_get_string(member(report, "winner"));
  int64_t batch = json_object_get_int64(member(member(member(report, "objective"), "batch"), "contest_batch"));
  if (strncmp(won, winner, strlen(winner))) fail_msg("%s: '%s' won", r->strategy, won);
  if (batch < smallest || batch > largest) fail_msg("%s: at batch size %lld", r->strategy, (long long)batch);
  json_object_put(report);
}

/* ---- tests
 * ------------------------------------------------------------------------------------------------------------------------------*/
static void throughput_and_latency_differ(void **state) {
  AIT_UNUSED(state);
  assert_wins(&(run){"min-latency", NULL, PROMPT, BULK, false}, "o-prompt", 0, 0);
  assert_wins(&(run){"max-throughput", NULL, PROMPT, BULK, false}, "o-bulk", 32, 1024); /* the larger the better, as far as time goes */
  assert_wins(&(run){"max-throughput", "1..4", PROMPT, BULK, false}, "o-prompt", 1, 4);
  assert_wins(&(run){"max-throughput", "2,64", PROMPT, BULK, false}, "o-bulk", 64, 64);
  assert_wins(&(run){"max-throughput", "2,64", PROMPT, BULK, true}, "o-bulk", 64, 64); /* from the record alone */
}

static void latency_budgets(void **state) {
  AIT_UNUSED(state);
  assert_wins(&(run){"latency-budget=0.5", NULL, PROMPT, BULK, false}, "o-bulk", 32, 300); /* 300 rows take it all */
  assert_wins(&(run){"latency-budget=0.19", NULL, PROMPT, BULK, false}, "o-prompt", 1, 9); /* the other one never does */
  assert_wins(&(run){"latency-budget=9", NULL, SLOW, -1, false}, "eager", 1, 1024);        /* the baseline may win */
  struct json_object *report = tune(&(run){"latency-budget=0.001,p50", NULL, PROMPT, BULK, false}, AIT_CODE_MISMATCH);
  const char *unmet = json_object_get_string(member(member(report, "objective"), "unmet"));
  assert_non_null(unmet);
  assert_non_null(strstr(unmet, "closest is o-prompt threads=1"));
  assert_non_null(strstr(unmet, "at batch size 1"));
  assert_string_equal(json_object_get_string(member(report, "winner")), "");
  json_object_put(report);
}

/* The two fast ones hold 16 MB more than any other. */
static void least_memory(void **state) {
  AIT_UNUSED(state);
  struct json_object *report = tune(&(run){"min-memory", NULL, PROMPT, SLOW, false}, AIT_CODE_OK), *list = member(report, "candidates");
  double prompt = json_object_get_double(member(named(list, "name", "o-prompt"), "memory_bytes"));
  double slow = json_object_get_double(member(named(list, "name", "o-slow"), "memory_bytes"));
  if (!(prompt > slow + (15 << 20) && prompt < slow + (24 << 20)))
    fail_msg("%.0f bytes, and %.0f: %s", prompt, slow, json_object_to_json_string(list));
  const char *won = json_object_get_string(member(report, "winner"));
  assert_true(strncmp(won, "o-prompt", 8));
  assert_true(json_object_get_boolean(member(named(member(report, "pareto"), "candidate", "o-prompt"), "front"))); /* it is the fastest */
  json_object_put(report);
}

/* A crash at 32 rows leaves what was measured below. */
static void a_crash_ends_the_search_only(void **state) {
  AIT_UNUSED(state);
  struct json_object *report = tune(&(run){"max-throughput", NULL, FRAGILE, -1, false}, AIT_CODE_OK);
  struct json_object *batch = member(member(report, "objective"), "batch"),
                     *c = named(member(batch, "candidates"), "candidate", "o-fragile");
  assert_string_equal(json_object_get_string(member(c, "stopped")), "failed");
  assert_non_null(strstr(json_object_get_string(member(c, "reason")), "Aborted"));
  assert_int_equal(json_object_get_int64(member(c, "best")), 16);
  assert_int_equal(json_object_array_length(member(c, "sizes")), 5);
  assert_true(!strncmp(json_object_get_string(member(report, "winner")), "o-fragile", 9));
  json_object_put(report);
}

/* Where it dies at the first size already, that is why it cannot win. */
static void a_crash_at_every_size_is_named(void **state) {
  AIT_UNUSED(state);
  struct json_object *report = tune(&(run){"max-throughput", "64", FRAGILE, -1, false}, AIT_CODE_OK);
  struct json_object *c = named(member(member(report, "objective"), "barred"), "candidate", "o-fragile");
  const char *why = json_object_get_string(member(c, "reason"));
  if (!why || !strstr(why, "Aborted")) fail_msg("barred: %s", why ? why : "no");
  assert_true(!strncmp(json_object_get_string(member(report, "winner")), "eager", 5));
  json_object_put(report);
}

static void a_lie_at_the_best_size_is_found(void **state) {
  AIT_UNUSED(state);
  struct json_object *report = tune(&(run){"max-throughput", NULL, SLY, -1, false}, AIT_CODE_OK);
  struct json_object *c = named(member(report, "candidates"), "name", "o-sly");
  assert_string_equal(json_object_get_string(member(c, "outcome")), "wrong");
  assert_non_null(strstr(json_object_get_string(member(c, "reason")), "at batch size"));
  assert_true(!strncmp(json_object_get_string(member(report, "winner")), "eager", 5));
  json_object_put(report);
}

/* As fast as its seven options, but behind all of them in the trials: it is searched, and wins as the simplest. */
static void defaults_are_searched_beside_options(void **state) {
  AIT_UNUSED(state);
  struct json_object *report = tune(&(run){"max-throughput", NULL, FICKLE, -1, false}, AIT_CODE_OK);
  assert_string_equal(json_object_get_string(member(report, "winner")), "o-fickle threads=1");
  json_object_put(report);
}

static void write_trace(const char *path, int rows, double apart) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (int i = 0; i < 200; ++i) fprintf(f, "{\"t\": %g, \"batch\": %d}\n", i * apart, rows);
  fclose(f);
}

static void traffic(void **state) {
  AIT_UNUSED(state);
  char path[sizeof folder + 16], strategy[sizeof path + 64];
  snprintf(path, sizeof path, "%s/one.jsonl", folder);
  write_trace(path, 1, 1e-3);
  snprintf(strategy, sizeof strategy, "traffic=%s", path);
  assert_wins(&(run){strategy, NULL, BULK, PROMPT, false}, "o-prompt", 0, 0);
  assert_wins(&(run){strategy, NULL, BULK, PROMPT, true}, "o-prompt", 0, 0);
  snprintf(path, sizeof path, "%s/many.jsonl", folder);
  write_trace(path, 64, 1e-3); /* more than the prompt one can do: its queue grows */
  snprintf(strategy, sizeof strategy, "traffic=%s,goodput=5ms", path);
  assert_wins(&(run){strategy, NULL, PROMPT, BULK, false}, "o-bulk", 0, 0);
}

static void orders(void **state) {
  AIT_UNUSED(state);
  assert_wins(&(run){"first-wins", NULL, SLOW, PROMPT, false}, "o-slow", 0, 0);
  assert_wins(&(run){"first-wins", NULL, PROMPT, SLOW, false}, "o-prompt", 0, 0);
  assert_wins(&(run){"one-backend", NULL, SLOW, PROMPT, false}, "o-slow", 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(throughput_and_latency_differ),
      cmocka_unit_test(latency_budgets),
      cmocka_unit_test(least_memory),
      cmocka_unit_test(a_crash_ends_the_search_only),
      cmocka_unit_test(a_crash_at_every_size_is_named),
      cmocka_unit_test(a_lie_at_the_best_size_is_found),
      cmocka_unit_test(defaults_are_searched_beside_options),
      cmocka_unit_test(traffic),
      cmocka_unit_test(orders),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
