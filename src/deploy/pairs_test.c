/* Pairs of encoder and decoder, and an encoder of texts, of tests/data/llm (made by tests/llm/make.py): what transformers gave, token for
 * token, alone and together; embeddings as their steps give them one by one. */
#include "base/json.h"
#include <ait/ait.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_REQUESTS = 8, MAX_TOKENS = 64 };

static void good(ait_status status) {
  if (status) fail_msg("%s", ait_status_message(status));
}

static void deploy(const char *name, char out[64]) {
  char path[512], *json;
  ait_deploy_options options;
  ait_deploy_options_init(&options);
  options.page_size = 8;
  strcpy(out, "/tmp/ait_pairs_test.XXXXXX");
  int fd = mkstemp(out);
  assert_true(fd >= 0);
  close(fd);
  snprintf(path, sizeof path, "%s/llm/%s", AIT_TEST_DATA, name);
  good(ait_deploy(path, out, &options, &json));
  assert_non_null(strstr(json, "\"proof\""));
  ait_string_free(json);
}

static const ait_json *expected(ait_arena *arena, const char *name) {
  char path[512], *text;
  size_t size;
  const ait_json *root;
  snprintf(path, sizeof path, "%s/llm/%s/expected.json", AIT_TEST_DATA, name);
  good(ait_file_read(ait_allocator_default(), path, 1 << 20, &text, &size));
  good(ait_json_parse(arena, text, size, &root));
  ait_free(ait_allocator_default(), text, size + 1);
  return root;
}

/* ---- answers -------------------------------------------------------------------------------------------------------------------------*/
typedef struct answer {
  const ait_json *want;
  int32_t tokens[MAX_TOKENS];
  uint32_t count;
  ait_finish finish;
  ait_data *features;
  ait_tensor source;
  int32_t ids[MAX_TOKENS];
} answer;

static void hear(void *ctx, const ait_generation *e) {
  answer *a = ctx;
  if (e->token >= 0 && a->count < MAX_TOKENS) a->tokens[a->count++] = e->token;
  if (e->finish) a->finish = e->finish;
}

static void make_source(answer *a, const char *name, const ait_json *request) {
  const char *file = ait_json_get_string(request, "source");
  char path[512];
  if (file) {
    snprintf(path, sizeof path, "%s/llm/%s/%s", AIT_TEST_DATA, name, file);
    good(ait_data_load(ait_allocator_default(), path, &a->features));
    a->source = *ait_data_tensor(a->features, 0);
    a->source.storage = NULL;
    return;
  }
  const ait_json *ids = ait_json_get_kind(request, "tokens", AIT_JSON_ARRAY);
  const int64_t length = ids->count;
  for (uint32_t i = 0; i < ids->count; ++i) a->ids[i] = (int32_t)ids->as.items[i].as.i;
  a->source = ait_tensor_borrow(a->ids, AIT_I32, 1, &length);
}

static void submit(ait_engine *engine, answer *a, const ait_json *request) {
  ait_request r;
  uint64_t id;
  int64_t most;
  ait_request_init(&r);
  assert_true(ait_json_get_int(request, "max_tokens", &most));
  r.max_tokens = (uint32_t)most;
  r.source = &a->source;
  r.on_event = hear;
  r.ctx = a;
  good(ait_engine_submit(engine, &r, &id));
}

static void compare(const answer *a, const char *name, const char *way, uint32_t number) {
  bool same = a->count == a->want->count;
  for (uint32_t i = 0; same && i < a->count; ++i) same = a->tokens[i] == a->want->as.items[i].as.i;
  if (!same) fail_msg("%s, %s: answer %u differs", name, way, number);
  assert_true(a->finish == AIT_FINISH_STOP || a->finish == AIT_FINISH_LENGTH);
}

/* All requests through one engine, or one after the other. */
static void run(ait_llm *llm, const char *name, const ait_json *requests, const ait_engine_options *options, const char *way, bool alone) {
  static answer answers[MAX_REQUESTS];
  ait_engine *engine;
  good(ait_engine_create(llm, options, &engine));
  assert_true(requests->count <= MAX_REQUESTS);
  memset(answers, 0, sizeof answers);
  for (uint32_t i = 0; i < requests->count; ++i) {
    const ait_json *request = &requests->as.items[i];
    answers[i].want = ait_json_get_kind(request, "expected", AIT_JSON_ARRAY);
    make_source(&answers[i], name, request);
    submit(engine, &answers[i], request);
    if (alone) good(ait_engine_run(engine));
  }
  good(ait_engine_run(engine));
  for (uint32_t i = 0; i < requests->count; ++i) compare(&answers[i], name, way, i);
  for (uint32_t i = 0; i < requests->count; ++i) ait_data_destroy(answers[i].features);
  ait_engine_destroy(engine);
}

static void answers_as_transformers(void **state) {
  AIT_UNUSED(state);
  static const char *const names[] = {"t5", "bart", "whisper"};
  for (size_t k = 0; k < AIT_COUNT(names); ++k) {
    char path[64];
    ait_arena arena;
    ait_llm *llm;
    ait_engine_options o;
    ait_arena_init(&arena, ait_allocator_default());
    const ait_json *requests = ait_json_get_kind(expected(&arena, names[k]), "requests", AIT_JSON_ARRAY);
    deploy(names[k], path);
    good(ait_llm_load(path, NULL, &llm));
    assert_true(ait_llm_describe(llm).encoder);
    ait_engine_options_init(&o);
    run(llm, names[k], requests, &o, "together", false);
    run(llm, names[k], requests, &o, "alone", true);
    o.max_sequences = 2, o.max_tokens = 3, o.threads = 2;
    run(llm, names[k], requests, &o, "two at a time", false);
    ait_engine_options_init(&o);
    o.speculation = AIT_SPECULATE_NGRAM;
    run(llm, names[k], requests, &o, "with speculation", false);
    ait_llm_release(llm);
    unlink(path);
    ait_arena_deinit(&arena);
  }
}

static void bad_sources(void **state) {
  AIT_UNUSED(state);
  char path[64];
  ait_llm *llm;
  ait_engine *engine;
  ait_request r;
  uint64_t id;
  const int32_t ids[3] = {3, 90, 5};
  const int64_t three = 3, none = 0;
  deploy("t5", path);
  good(ait_llm_load(path, NULL, &llm));
  good(ait_engine_create(llm, NULL, &engine));
  ait_request_init(&r);
  ait_status none_given = ait_engine_submit(engine, &r, &id);
  assert_int_equal(ait_status_code(none_given), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(none_given);
  const ait_tensor wrong[] = {
      ait_tensor_borrow((void *)(uintptr_t)ids, AIT_I32, 1, &three), /* 90 is no token */
      ait_tensor_borrow((void *)(uintptr_t)ids, AIT_I32, 1, &none),
      ait_tensor_borrow((void *)(uintptr_t)ids, AIT_F32, 1, &three),
  };
  for (size_t i = 0; i < AIT_COUNT(wrong); ++i) {
    r.source = &wrong[i];
    ait_status status = ait_engine_submit(engine, &r, &id);
    assert_non_null(status);
    ait_status_free(status);
  }
  ait_engine_destroy(engine);
  ait_llm_release(llm);
  unlink(path);
}

/* ---- embeddings ----------------------------------------------------------------------------------------------------------------------*/
static void embed(ait_model *model, const ait_json *texts, const ait_json *want, const char *prompt_name, int32_t batch) {
  ait_embedder_options o;
  ait_embedder *e;
  const char *items[16];
  size_t sizes[16];
  ait_embedder_options_init(&o);
  o.prompt_name = prompt_name;
  o.batch = batch;
  good(ait_embedder_create(model, &o, &e));
  ait_embedder_info info = ait_embedder_describe(e);
  assert_int_equal(info.size, 32);
  assert_int_equal(info.max_length, 20);
  assert_true(info.normalized && info.token_types);
  for (uint32_t i = 0; i < texts->count; ++i) items[i] = texts->as.items[i].as.string, sizes[i] = texts->as.items[i].count;
  float *out = calloc(texts->count * 32, sizeof *out);
  int64_t tokens[16];
  good(ait_embedder_run(e, items, sizes, texts->count, out, tokens));
  for (uint32_t i = 0; i < texts->count; ++i) {
    assert_in_range(tokens[i], 3, 20);
    for (uint32_t d = 0; d < 32; ++d) {
      double w = want->as.items[i].as.items[d].as.f;
      if (fabs(w - (double)out[i * 32 + d]) > 2e-6) fail_msg("text %u: %g is not %g", i, (double)out[i * 32 + d], w);
    }
  }
  free(out);
  ait_embedder_destroy(e);
}

static void embeddings(void **state) {
  AIT_UNUSED(state);
  char path[64];
  ait_arena arena;
  ait_model *model;
  ait_embedder *e;
  ait_embedder_options o;
  ait_arena_init(&arena, ait_allocator_default());
  const ait_json *root = expected(&arena, "embed"), *texts = ait_json_get_kind(root, "texts", AIT_JSON_ARRAY);
  deploy("embed", path);
  good(ait_model_load(path, NULL, &model));
  const ait_json *plain = ait_json_get_kind(root, "plain", AIT_JSON_ARRAY);
  embed(model, texts, plain, NULL, 0);
  embed(model, texts, plain, NULL, 1);
  embed(model, texts, plain, NULL, 4);
  embed(model, texts, ait_json_get_kind(root, "query", AIT_JSON_ARRAY), "query", 0);
  ait_embedder_options_init(&o);
  o.prompt_name = "nothing";
  ait_status status = ait_embedder_create(model, &o, &e);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
  o.prompt_name = NULL, o.pooling = AIT_POOL_CLS; /* the graph pools */
  status = ait_embedder_create(model, &o, &e);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
  ait_model_release(model);
  unlink(path);
  ait_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(answers_as_transformers), cmocka_unit_test(bad_sources),
                                     cmocka_unit_test(embeddings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
