/* Deploying the models of tests/data/llm (made by tests/llm/make.py): those that must be cached run their proof; those that only look like
 * it are refused with the reason. */
#include "deploy/deploy.h"
#include <ait/ait.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const char *folder(void) { return AIT_TEST_DATA "/llm"; }

static ait_status deploy(const char *name, const char *out, char **json) {
  char path[512];
  ait_deploy_options options;
  ait_deploy_options_init(&options);
  options.max_seq = 64;
  snprintf(path, sizeof path, "%s/%s.pt2", folder(), name);
  return ait_deploy(path, out, &options, json);
}

static void temporary(char path[64]) {
  strcpy(path, "/tmp/ait_deploy_test.XXXXXX");
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
}

static int count_states(const char *json) {
  int count = 0;
  for (const char *at = json; (at = strstr(at, "\"name\":\"state.")); ++at) ++count;
  return count;
}

/* models.tsv: a name, "cached" and the number of states that its layers need, or a name and words of the error. */
static void every_model(void **state) {
  AIT_UNUSED(state);
  char list[512], line[256], path[64];
  snprintf(list, sizeof list, "%s/models.tsv", folder());
  FILE *f = fopen(list, "r");
  assert_non_null(f);
  temporary(path);
  int seen = 0;
  for (; fgets(line, sizeof line, f); ++seen) {
    char *name = strtok(line, "\t\n"), *want = strtok(NULL, "\t\n"), *states = strtok(NULL, "\t\n"), *json = NULL;
    ait_status status = deploy(name, path, &json);
    if (!strcmp(want, "cached")) {
      if (status) fail_msg("%s: %s", name, ait_status_message(status));
      assert_non_null(strstr(json, "\"proof\""));
      if (!states || count_states(json) != atoi(states))
        fail_msg("%s: %d states, not %s", name, count_states(json), states ? states : "told");
    } else {
      if (!status) fail_msg("%s was deployed", name);
      if (!strstr(ait_status_message(status), want)) fail_msg("%s: '%s' does not say '%s'", name, ait_status_message(status), want);
      ait_status_free(status);
    }
    ait_string_free(json);
  }
  fclose(f);
  unlink(path);
  assert_true(seen >= 20);
}

/* ---- a deployed model, step by step
 * ----------------------------------------------------------------------------------------------------*/
typedef struct fixture {
  ait_model *model;
  ait_lm *lm;
  ait_lm_context *context;
} fixture;

static void open_model(fixture *f, const char *name, const ait_lm_context_options *options) {
  char path[64], *json;
  temporary(path);
  ait_status status = deploy(name, path, &json);
  if (status) fail_msg("%s", ait_status_message(status));
  ait_string_free(json);
  assert_null(ait_model_load(path, NULL, &f->model));
  assert_null(ait_lm_create(ait_allocator_default(), f->model, &f->lm));
  assert_null(ait_lm_context_create(f->lm, options, &f->context));
  unlink(path);
}

static void close_model(fixture *f) {
  ait_lm_context_destroy(f->context);
  ait_lm_destroy(f->lm);
  ait_model_release(f->model);
}

static ait_status step(fixture *f, const int32_t *tokens, int32_t count, int32_t past, const int32_t *pages, int32_t slot, float *logits) {
  int32_t row = count - 1;
  ait_lm_sequence s = {.count = count, .past = past, .slot = slot, .page_count = 2};
  for (uint32_t g = 0; g < AIT_LM_MAX_GROUPS; ++g) s.pages[g] = pages;
  ait_lm_batch b = {
      .tokens = tokens, .token_count = count, .sequences = &s, .sequence_count = 1, .rows = &row, .row_count = 1, .logits = logits};
  return ait_lm_run(f->context, &b);
}

/* Copies of pages and slots go on as the original would: prefix reuse. */
static void copies_go_on(void **state) {
  AIT_UNUSED(state);
  fixture f;
  const int32_t tokens[6] = {3, 1, 4, 1, 5, 9}, first[2] = {0, 1}, second[2] = {3, 2};
  float a[128], b[128];
  ait_lm_context_options o = {.max_tokens = 8, .max_sequences = 1, .units = {2, 4}};
  for (int g = 0; g < AIT_LM_MAX_GROUPS; ++g) o.units[g] = 4;
  open_model(&f, "bamba", &o);
  const ait_lm_info *info = ait_lm_describe(f.lm);
  assert_int_equal(info->vocab, 128);
  assert_null(step(&f, tokens, 5, 0, first, 0, a));
  for (uint32_t g = 0; g < info->group_count; ++g) {
    assert_null(ait_lm_copy(f.context, g, 0, 3));
    if (info->groups[g].kind == AIT_LM_PAGES) assert_null(ait_lm_copy(f.context, g, 1, 2));
  }
  assert_null(step(&f, tokens + 5, 1, 5, first, 0, a));
  assert_null(step(&f, tokens + 5, 1, 5, second, 3, b));
  assert_memory_equal(a, b, sizeof a);
  assert_null(step(&f, tokens, 6, 0, second, 3, b)); /* whole, over the same memory: the old contents do not matter */
  for (int i = 0; i < 128; ++i) assert_true(a[i] - b[i] < 1e-4f && b[i] - a[i] < 1e-4f);
  close_model(&f);
}

static void refuses(fixture *f, const int32_t *tokens, int32_t count, int32_t past, const int32_t *pages, int32_t slot, const char *words) {
  float logits[128];
  ait_status status = step(f, tokens, count, past, pages, slot, logits);
  if (!status) fail_msg("taken: %s", words);
  if (!strstr(ait_status_message(status), words)) fail_msg("'%s' does not say '%s'", ait_status_message(status), words);
  ait_status_free(status);
}

static void bad_steps_are_refused(void **state) {
  AIT_UNUSED(state);
  fixture f;
  const int32_t tokens[9] = {3, 1, 4, 1, 5, 9, 2, 6, 5}, pages[2] = {0, 1}, far[2] = {0, 7}, wrong[2] = {-1, 0}, alien[2] = {3, 128};
  ait_lm_context_options o = {.max_tokens = 8, .max_sequences = 1};
  for (int g = 0; g < AIT_LM_MAX_GROUPS; ++g) o.units[g] = 2;
  open_model(&f, "bamba", &o);
  refuses(&f, tokens, 9, 0, pages, 0, "tokens of a step");
  refuses(&f, alien, 2, 0, pages, 0, "vocabulary");
  refuses(&f, tokens, 1, 64, pages, 0, "longest sequence");
  refuses(&f, tokens, 1, 32, far, 0, "not in the pool");
  refuses(&f, tokens, 1, 0, wrong, 0, "not in the pool");
  refuses(&f, tokens, 1, 0, pages, 2, "slot");
  refuses(&f, tokens, 1, -1, pages, 0, "longest sequence");
  assert_true(ait_lm_context_bytes(f.context) > 0);
  assert_null(ait_lm_warm(f.context));
  close_model(&f);
}

/* What cannot be cached runs whole, and gives the original's logits. */
static void unmatched_runs_whole(void **state) {
  AIT_UNUSED(state);
  static const char *const names[] = {"prefix", "padding", "mean", "conv_ahead"};
  char path[64], source[512], *json;
  temporary(path);
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    ait_deploy_options options;
    ait_deploy_options_init(&options);
    options.allow_unmatched = true;
    options.max_seq = 64;
    snprintf(source, sizeof source, "%s/%s.pt2", folder(), names[i]);
    ait_status status = ait_deploy(source, path, &options, &json);
    if (status) fail_msg("%s: %s", names[i], ait_status_message(status));
    assert_non_null(strstr(json, "\"cached\":false"));
    ait_string_free(json);
  }
  unlink(path);
}

/* ---- through the engine
 * ----------------------------------------------------------------------------------------------------------------*/
enum { SHARED = 40, ANSWERS = 4, ANSWER = 10 };
typedef struct heard {
  int32_t got[ANSWER], count;
} heard;

static void hear(void *ctx, const ait_generation *event) {
  heard *h = ctx;
  if (event->token >= 0 && h->count < ANSWER) h->got[h->count++] = event->token;
}

/* Prompts with one beginning, each with an end of its own, one after the other. */
static ait_engine_stats answer(ait_llm *llm, const ait_engine_options *o, heard out[ANSWERS]) {
  ait_engine *e;
  assert_null(ait_engine_create(llm, o, &e));
  for (int i = 0; i < ANSWERS; ++i) {
    int32_t prompt[SHARED + ANSWERS];
    for (int t = 0; t < SHARED + i; ++t) prompt[t] = t < SHARED ? (t * 7 + t / 3) % 50 + 3 : 60 + 5 * t % 31;
    ait_request r;
    uint64_t id;
    ait_request_init(&r);
    r.tokens = prompt, r.token_count = (size_t)(SHARED + i), r.max_tokens = ANSWER, r.ignore_stop_tokens = true;
    r.on_event = hear, r.ctx = &out[i];
    out[i].count = 0;
    assert_null(ait_engine_submit(e, &r, &id));
    assert_null(ait_engine_run(e));
    assert_int_equal(out[i].count, ANSWER);
  }
  ait_engine_stats stats = ait_engine_statistics(e);
  ait_engine_destroy(e);
  return stats;
}

/* Scans, convolutions and attention in one model: kept prefixes go on from copies of their states, refused proposals go back to them. */
static void states_are_kept_and_taken_back(void **state) {
  AIT_UNUSED(state);
  char path[64], *json;
  ait_llm *llm;
  ait_engine_options o;
  static heard want[ANSWERS], got[ANSWERS];
  temporary(path);
  ait_status status = deploy("bamba", path, &json);
  if (status) fail_msg("%s", ait_status_message(status));
  ait_string_free(json);
  assert_null(ait_llm_load(path, NULL, &llm));
  assert_true(ait_llm_describe(llm).slot_bytes > 0 && ait_llm_describe(llm).token_bytes > 0);
  ait_engine_options_init(&o);
  o.no_prefix_reuse = true, o.max_tokens = 1;
  ait_engine_stats stats = answer(llm, &o, want);
  assert_int_equal(stats.reused_tokens, 0);
  for (int way = 0; way < 3; ++way) {
    ait_engine_options_init(&o);
    o.max_tokens = way == 1 ? 7 : 64;
    o.speculation = way == 2 ? AIT_SPECULATE_NGRAM : AIT_SPECULATE_NONE;
    stats = answer(llm, &o, got);
    assert_true(stats.reused_tokens >= (ANSWERS - 1) * 32); /* a page each */
    assert_memory_equal(got, want, sizeof got);
  }
  ait_llm_release(llm);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_model),
      cmocka_unit_test(copies_go_on),
      cmocka_unit_test(bad_steps_are_refused),
      cmocka_unit_test(unmatched_runs_whole),
      cmocka_unit_test(states_are_kept_and_taken_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
