/* Buckets: sizes with steps of their own. Which plan ran is seen by its answers: the null backend gives zeros. */
#include "artifact/toy_models.h"
#include "artifact/manifest.h"
#include "runtime/internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define FILE_NAME AIT_BINARY_DIR "/tests/bucket_test.ait"

static ait_allocator heap(void) { return ait_allocator_default(); }

static void ok(ait_status status) {
  if (status) fail_msg("%s (%s)", ait_status_message(status), ait_status_hint(status) ? ait_status_hint(status) : "");
}

static void refused(ait_status status, const char *message) {
  assert_non_null(status);
  if (!strstr(ait_status_message(status), message)) fail_msg("'%s' is not in: %s", message, ait_status_message(status));
  ait_status_free(status);
}

static const float w[6] = {1, 2, 3, 4, 5, 6}, tens[4] = {10, 20, 30, 40};

static ait_weight_store *make_weights(void) {
  ait_weight_store *store;
  ok(ait_weight_store_create(heap(), &store));
  ok(toy_add_weight(store, "w", w, 2, (int64_t[]){3, 2}));
  ok(toy_add_weight(store, "total", tens, 1, (int64_t[]){4}));
  return store;
}

typedef struct box {
  const char *symbol;
  int64_t min, max;
  const char *backend, *options; /* backend NULL: measured, and the plan for all sizes is best */
} box;

static char *copy_text(const char *text) {
  char *copy = ait_alloc(heap(), strlen(text) + 1, 1);
  assert_non_null(copy);
  return strcpy(copy, text);
}

static void add_range(ait_plan_bucket *b, const box *x) {
  ok(ait_plan_bucket_new_ranges(heap(), b, 1));
  b->ranges[0] = (ait_plan_range){copy_text(x->symbol), x->min, x->max};
}

static ait_plan make_plan(const ait_region *r, const ait_weight_store *store, const box *boxes, uint32_t count) {
  ait_plan plan;
  ait_weights weights = ait_weight_store_provider(store);
  ok(ait_plan_compile(heap(), "reference", NULL, r, weights, UINT64_MAX, "test-cpu", &plan));
  ok(ait_plan_new_buckets(&plan, count));
  for (uint32_t i = 0; i < count; ++i) {
    ait_plan_bucket *b = &plan.buckets[i];
    add_range(b, &boxes[i]);
    if (!boxes[i].backend) continue;
    b->plan = ait_alloc_zero(heap(), sizeof *b->plan, _Alignof(ait_plan));
    assert_non_null(b->plan);
    ok(ait_plan_compile(heap(), boxes[i].backend, boxes[i].options, r, weights, UINT64_MAX, NULL, b->plan));
  }
  return plan;
}

static void write_file(const char *path, const ait_region *r, const box *boxes, uint32_t count) {
  ait_weight_store *store = make_weights();
  ait_plan plan = make_plan(r, store, boxes, count);
  ait_artifact_content content = {
      .portable = r, .weights = store, .plans = &plan, .plan_count = 1, .producer = "by hand", .model_name = "toy"};
  ok(ait_artifact_write(heap(), path, &content));
  ait_plan_deinit(&plan);
  ait_weight_store_release(store);
}

static const box boxes[] = {{"s0", 2, 3, "null", NULL}, {"s0", 5, 5, NULL, NULL}, {"s0", 6, 8, "null", NULL}};

/* *out_zero: the null backend ran. */
static void run_size(ait_session *session, int64_t size, bool *out_zero) {
  float x[30];
  for (int i = 0; i < 30; ++i) x[i] = (float)(i % 7) + 1;
  ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){size, 3})}, out = {0};
  ok(ait_session_run(session, &in, 1, &out, 1));
  const float *y = out.as.tensor.data;
  *out_zero = y[0] == 0;
  for (int64_t i = 0; i < size && !*out_zero; ++i) {
    for (int k = 0; k < 2; ++k) assert_float_equal(y[i * 2 + k], x[i * 3] * w[k] + x[i * 3 + 1] * w[2 + k] + x[i * 3 + 2] * w[4 + k], 1e-4);
  }
  assert_int_equal(out.as.tensor.shape[0], size);
}

/* Inside, at both ends of, and outside each bucket, in an order that changes the route each time and then keeps it. */
static void check_routes(const char *path) {
  static const struct {
    int64_t size;
    bool zero;
    uint32_t item;
  } runs[] = {{2, true, 1}, {4, false, 0}, {3, true, 1},  {5, false, 2}, {6, true, 3},  {9, false, 0}, {8, true, 3},  {8, true, 3},
              {7, true, 3}, {4, false, 0}, {4, false, 0}, {2, true, 1},  {5, false, 2}, {9, false, 0}, {5, false, 2}, {5, false, 2}};
  ait_model *model;
  ait_session *session;
  ait_bucket_info info[8];
  uint64_t counts[4] = {0};
  ok(ait_model_load(path, NULL, &model));
  assert_string_equal(ait_model_reason(model), "");
  ok(ait_session_create(model, NULL, &session));
  assert_string_equal(ait_session_backend(session), "reference+null");
  for (size_t i = 0; i < AIT_COUNT(runs); ++i) {
    bool zero;
    run_size(session, runs[i].size, &zero);
    if (zero != runs[i].zero) fail_msg("run %zu, size %d: %s plan", i, (int)runs[i].size, zero ? "bucket's" : "general");
    ++counts[runs[i].item];
  }
  assert_int_equal(ait_session_buckets(session, info, 8), 4);
  for (int i = 0; i < 4; ++i) assert_int_equal(info[i].runs, counts[i]);
  static const char *const sizes[] = {"", "s0 2 to 3", "s0 5", "s0 6 to 8"}, *const names[] = {"reference", "null", "reference", "null"};
  for (int i = 0; i < 4; ++i) {
    assert_string_equal(info[i].sizes, sizes[i]);
    assert_string_equal(info[i].backend, names[i]);
    assert_int_equal(info[i].own_plan, i == 1 || i == 3);
    assert_string_equal(info[i].why_not, "");
  }
  /* A run that is refused counts nowhere. */
  float x[30] = {0};
  ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){10, 3})}, out = {0};
  refused(ait_session_run(session, &in, 1, &out, 1), "x.size(0) < 10");
  assert_int_equal(ait_session_buckets(session, info, 1), 4);
  assert_int_equal(info[0].runs, counts[0]);
  ait_session_destroy(session);
  ait_model_release(model);
}

/* The second file was written when the format learned of buckets, and is never made again. */
static void test_routes(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_linear();
  write_file(FILE_NAME, &r, boxes, 3);
  check_routes(FILE_NAME);
  check_routes(AIT_TEST_DATA "/artifact/format1-buckets.ait");
}

/* What a run lent may be the next run's input, and stays right when that takes another route. */
static void test_outputs_cross_routes(void **state) {
  AIT_UNUSED(state);
  static const ait_dim shape[] = {TOY_S0, TOY_3};
  static const ait_region_value values[] = {TOY_F32("x", 2, shape), TOY_F32("add", 2, shape)};
  static const ait_arg add[] = {TOY_V(0), TOY_V(0), TOY_I(1)};
  static const uint32_t results[] = {1};
  static const ait_region_node nodes[] = {TOY_NODE("aten.add.Tensor", 0, add, results, "add")};
  static const ait_region_input inputs[] = {TOY_USER(0, "x", 0, false)};
  static const ait_region_output outputs[] = {TOY_OUT(1, "y")};
  ait_region r = TOY_REGION("double");
  TOY_PART(r, value, values), TOY_PART(r, node, nodes), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs);
  write_file(FILE_NAME, &r, (box[]){{"s0", 2, 3, "reference", "precision=fp32"}, {"s0", 4, 6, "native", NULL}}, 2);
  ait_model *model;
  ait_session *session;
  ok(ait_model_load(FILE_NAME, NULL, &model));
  ok(ait_session_create(model, NULL, &session));
  float x[18];
  for (int i = 0; i < 18; ++i) x[i] = (float)i + 1;
  ait_value out = {0};
  for (int round = 0; round < 3; ++round) {
    ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){6, 3})};
    for (int step = 1; step <= 3; ++step) { /* 6 rows, then 4 of these, then 2 of those: native, native, reference */
      ok(ait_session_run(session, &in, 1, &out, 1));
      const float *y = out.as.tensor.data;
      for (int64_t i = 0; i < out.as.tensor.shape[0] * 3; ++i) assert_float_equal(y[i], x[i] * (float)(1 << step), 0);
      in = out;
      in.as.tensor.shape[0] -= 2;
    }
  }
  ait_session_destroy(session);
  ait_model_release(model);
}

/* total doubles with each run; x tells the size. */
static ait_region stateful(void) {
  static const ait_region_value values[] = {TOY_F32("total", 1, toy_shape_4), TOY_F32("x", 2, toy_shape_s3),
                                            TOY_F32("add", 1, toy_shape_4)};
  static const ait_arg add[] = {TOY_V(0), TOY_V(0), TOY_I(1)};
  static const uint32_t results[] = {2};
  static const ait_region_node nodes[] = {TOY_NODE("aten.add.Tensor", 0, add, results, "add")};
  static const ait_region_input inputs[] = {TOY_WEIGHT(0, AIT_INPUT_BUFFER, "total", true), TOY_USER(1, "x", 0, false)};
  static const ait_region_output outputs[] = {{.arg = TOY_V(2), .kind = AIT_OUTPUT_STATE, .name = "total", .user_index = -1},
                                              TOY_OUT(2, "doubled")};
  ait_region r = TOY_REGION("stateful");
  TOY_PART(r, value, values), TOY_PART(r, node, nodes), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs);
  return r;
}

static void run_stateful(ait_session *session, int64_t size, float want) {
  float x[30] = {0};
  ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){size, 3})}, out = {0};
  ait_tensor total;
  ok(ait_session_run(session, &in, 1, &out, 1));
  assert_float_equal(((const float *)out.as.tensor.data)[0], want, 0);
  ok(ait_session_state(session, "total", &total));
  assert_float_equal(((const float *)total.data)[3], 4 * want, 0);
}

static void test_state_is_shared(void **state) {
  AIT_UNUSED(state);
  ait_region r = stateful();
  write_file(FILE_NAME, &r, (box[]){{"s0", 2, 3, "reference", "precision=fp32"}, {"s0", 5, 64, "native", NULL}}, 2);
  ait_model *model;
  ait_session *session;
  ok(ait_model_load(FILE_NAME, NULL, &model));
  ok(ait_session_create(model, NULL, &session));
  for (int round = 0; round < 2; ++round) {
    float want = 10;
    static const int64_t sizes[] = {4, 2, 6, 4, 3, 9, 2};
    for (size_t i = 0; i < AIT_COUNT(sizes); ++i) run_stateful(session, sizes[i], want *= 2);
    ok(ait_session_reset(session));
  }
  ait_session_destroy(session);
  ait_model_release(model);
}

/* A bucket that cannot run here costs its speed, and is told of. */
static void test_bucket_cannot_run(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_linear();
  ait_weight_store *store = make_weights();
  ait_plan plan = make_plan(&r, store, boxes, 3);
  ait_model *model;
  ait_session *session;
  ait_bucket_info info[4];
  bool zero;
  memset(plan.buckets[2].plan->steps[0].blob.data, 'x', 8);
  ok(ait_model_create(heap(), &r, ait_weight_store_provider(store), &plan, NULL, NULL, &model));
  assert_non_null(
      strstr(ait_model_reason(model), "sizes s0 6 to 8 run on the plan for all sizes: their own cannot be loaded: backend 'null'"));
  ok(ait_session_create(model, NULL, &session));
  run_size(session, 7, &zero);
  assert_false(zero);
  run_size(session, 2, &zero);
  assert_true(zero);
  ait_session_buckets(session, info, 4);
  assert_int_equal(info[3].runs, 1);
  assert_false(info[3].own_plan);
  assert_non_null(strstr(info[3].why_not, "cannot be loaded"));
  ait_session_destroy(session);
  ait_model_release(model);
  ait_plan_deinit(&plan);
  ait_weight_store_release(store);
}

/* Equal plans give equal bytes, and a bucket that has the same blob does not hold it again. */
static void test_file(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_linear();
  const box same[] = {{"s0", 2, 3, "reference", NULL}, {"s0", 9, INT64_MAX, "null", NULL}};
  char *first, *second;
  size_t first_size, second_size;
  ait_artifact *f;
  write_file(FILE_NAME, &r, boxes, 3);
  ok(ait_file_read(heap(), FILE_NAME, 1u << 24, &first, &first_size));
  write_file(FILE_NAME, &r, boxes, 3);
  ok(ait_file_read(heap(), FILE_NAME, 1u << 24, &second, &second_size));
  assert_int_equal(first_size, second_size);
  assert_memory_equal(first, second, first_size);
  ait_free(heap(), first, first_size + 1);
  ait_free(heap(), second, second_size + 1);

  ok(ait_artifact_open(heap(), FILE_NAME, NULL, &f));
  const ait_plan *p = ait_artifact_plan(f, 0);
  assert_int_equal(p->bucket_count, 3);
  assert_null(p->buckets[1].plan);
  assert_string_equal(p->buckets[2].ranges[0].symbol, "s0");
  assert_int_equal(p->buckets[2].ranges[0].max, 8);
  assert_string_equal(p->buckets[2].plan->steps[0].backend, "null");
  assert_non_null(ait_artifact_entry(f, "targets/test-cpu/b0/0.blob", NULL));
  assert_null(ait_artifact_entry(f, "targets/test-cpu/b2/0.blob", NULL)); /* as b0's */
  assert_ptr_equal(p->buckets[2].plan->steps[0].blob.data, p->buckets[0].plan->steps[0].blob.data);
  ait_artifact_release(f);

  ait_weight_store *store = make_weights();
  ait_plan plan = make_plan(&r, store, same, 2); /* 9 and more is beyond 64 */
  refused(ait_plan_check(&plan, &r), "bucket 1: the range 9 to 9223372036854775807 of 's0' is beyond the model's 2 to 64");
  ait_plan_deinit(&plan);
  ait_weight_store_release(store);
}

/* ---- hostile manifests -------------------------------------------------------------------------------------------------------------*/
static const void *find(void *ctx, const char *name, size_t *out_size) {
  AIT_UNUSED(ctx), AIT_UNUSED(name);
  *out_size = 0;
  return NULL;
}

#define RANGE(symbol, min, max) "{\"symbol\": \"" symbol "\", \"min\": " min ", \"max\": " max "}"
#define SIZES(ranges) "{\"sizes\": [" ranges "]}"
static void test_hostile(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *buckets, *message; /* NULL: good */
  } cases[] = {
      {"", NULL},
      {SIZES(RANGE("s0", "2", "3")), NULL},
      {SIZES(RANGE("s0", "2", "3")) ", " SIZES(RANGE("s0", "4", "4")), NULL},
      {SIZES(RANGE("s0", "2", "3") ", " RANGE("n", "1", "1")) ", " SIZES(RANGE("s0", "2", "3") ", " RANGE("n", "2", "9")), NULL},
      {SIZES(RANGE("s0", "2", "3")) ", " SIZES(RANGE("s0", "3", "4")), "bucket 1: it has sizes in common with bucket 0"},
      {SIZES(RANGE("s0", "2", "3")) ", " SIZES(RANGE("n", "1", "1")), "bucket 1: it has sizes in common with bucket 0"},
      {SIZES(RANGE("s0", "4", "3")), "bucket 0: the range 4 to 3 of 's0' is empty"},
      {SIZES(RANGE("s0", "1", "3")), "bucket 0: the range 1 to 3 of 's0' is beyond the model's 2 to 64"},
      {SIZES(RANGE("s0", "2", "9223372036854775807")), "beyond the model's 2 to 64"},
      {SIZES(RANGE("s0", "-9223372036854775808", "3")), "beyond the model's 2 to 64"},
      {SIZES("{\"symbol\": \"s0\", \"min\": 2}"), "beyond the model's 2 to 64"},
      {SIZES(RANGE("s0", "2", "9223372036854775808")), "bucket 0: a range of sizes cannot be read"},
      {SIZES(RANGE("s0", "2", "1e3")), "bucket 0: a range of sizes cannot be read"},
      {SIZES(RANGE("s9", "2", "3")), "bucket 0: the model has no symbol 's9'"},
      {SIZES(RANGE("s0", "2", "3") ", " RANGE("s0", "2", "3")), "bucket 0: symbol 's0' has two ranges"},
      {SIZES("{\"min\": 2, \"max\": 3}"), "bucket 0: a range has no symbol"},
      {SIZES(""), "bucket 0: it has no ranges of sizes"},
      {"{}", "bucket 0: a bucket of a plan cannot be read"},
      {"7", "bucket 0: a bucket of a plan cannot be read"},
      {"{\"sizes\": 7}", "bucket 0: a list of ranges cannot be read"},
      {"{\"sizes\": [], \"sizes\": []}", "bucket 0: a list that is given twice cannot be read"},
      {"{\"sizes\": [" RANGE("s0", "2", "3") "], \"outputs\": [], \"values\": 1, \"steps\": []}", "bucket 0: plan has no steps"},
      {"{\"sizes\": [" RANGE("s0", "2", "3") "], \"steps\": [{}]}", "bucket 0: a step of a plan is incomplete"},
      {"{\"sizes\": [" RANGE("s0", "2", "3") "], \"steps\": [{\"blob\": \"x\"}]}", "bucket 0: entry 'x' is missing"},
  };
  const ait_entry_source source = {NULL, find, NULL};
  ait_region r = toy_linear();
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    char text[4096];
    ait_manifest m;
    ait_arena arena;
    ait_arena_init(&arena, heap());
    snprintf(text, sizeof text, "{\"plans\": [{\"target\": \"x\", \"outputs\": [], \"steps\": [], \"buckets\": [%s]}]}", cases[i].buckets);
    ait_status status = ait_manifest_parse(heap(), &arena, text, strlen(text), &source, &m);
    if (!status) status = ait_plan_check_buckets(&m.plans[0], &r);
    if (cases[i].message) refused(status, cases[i].message);
    else ok(status);
    ait_manifest_deinit(heap(), &m);
    ait_arena_deinit(&arena);
  }
}

static void test_too_many(void **state) {
  AIT_UNUSED(state);
  const ait_entry_source source = {NULL, find, NULL};
  ait_text text;
  ait_manifest m;
  ait_arena arena;
  for (int ranges = 0; ranges < 2; ++ranges) {
    ait_arena_init(&arena, heap());
    ait_text_init(&text, heap());
    ait_text_printf(&text, "{\"plans\": [{\"target\": \"x\", \"outputs\": [], \"steps\": [], \"buckets\": [%s",
                    ranges ? "{\"sizes\": [" : "");
    for (int i = 0; i < 100; ++i)
      ait_text_printf(&text, "%s%s", i ? ", " : "", ranges ? RANGE("s0", "2", "3") : SIZES(RANGE("s0", "2", "3")));
    ait_text_printf(&text, "%s]}]}", ranges ? "]}" : "");
    refused(ait_manifest_parse(heap(), &arena, text.data, text.length, &source, &m),
            ranges ? "a bucket has more than 16 ranges" : "a plan has more than 64 buckets");
    ait_text_deinit(&text);
    ait_arena_deinit(&arena);
  }
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------------*/
typedef struct failing {
  long left, live;
} failing;
static void *failing_alloc(void *ctx, size_t size, size_t align) {
  failing *f = ctx;
  if (f->left-- <= 0) return NULL;
  ++f->live;
  return heap().alloc(heap().ctx, size, align);
}
static void failing_free(void *ctx, void *p, size_t size) {
  if (p) --((failing *)ctx)->live;
  heap().free(heap().ctx, p, size);
}

static ait_status load_and_run(ait_allocator a) {
  ait_model *model;
  ait_session *session = NULL;
  ait_load_options load;
  ait_session_options options;
  ait_load_options_init(&load);
  ait_session_options_init(&options);
  load.allocator = options.allocator = a;
  AIT_TRY(ait_model_load(FILE_NAME, &load, &model));
  ait_status status = ait_session_create(model, &options, &session);
  for (int64_t size = 2; !status && size < 10; ++size) {
    float x[30] = {0};
    ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){size, 3})}, out = {0};
    status = ait_session_run(session, &in, 1, &out, 1);
  }
  ait_session_destroy(session);
  ait_model_release(model);
  return status;
}

static void test_out_of_memory(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_linear();
  write_file(FILE_NAME, &r, boxes, 3);
  failing f;
  bool done = false;
  for (long n = 0; !done && n < 10000; ++n) {
    f = (failing){.left = n};
    ait_status status = load_and_run((ait_allocator){&f, failing_alloc, failing_free});
    done = status == AIT_OK;
    if (!done) assert_int_equal(ait_status_code(status), AIT_CODE_OUT_OF_MEMORY);
    ait_status_free(status);
    assert_int_equal(f.live, 0);
  }
  assert_true(done);
}

/* Once every route has seen its sizes, changing between them asks for no memory. */
static void test_steady_state(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_linear();
  ait_weight_store *store = make_weights();
  ait_plan plan = make_plan(&r, store, (box[]){{"s0", 2, 3, "null", NULL}, {"s0", 6, 8, "null", NULL}}, 2);
  ait_plan null;
  ait_model *model;
  ait_session *session;
  /* The reference backend asks for memory; here the session itself is looked at. */
  ok(ait_plan_compile(heap(), "null", NULL, &r, ait_weight_store_provider(store), UINT64_MAX, "", &null));
  ait_plan_step own = plan.steps[0];
  plan.steps[0] = null.steps[0];
  null.steps[0] = own;
  ok(ait_model_create(heap(), &r, ait_weight_store_provider(store), &plan, NULL, NULL, &model));
  failing f = {.left = 1000000};
  ait_session_options options;
  ait_session_options_init(&options);
  options.allocator = (ait_allocator){&f, failing_alloc, failing_free};
  ok(ait_session_create(model, &options, &session));
  for (int i = 0; i < 40; ++i) {
    bool zero;
    run_size(session, (int64_t[]){2, 4, 6}[i % 3], &zero);
    if (i == 5) f.left = 0;
  }
  ait_session_destroy(session);
  ait_model_release(model);
  ait_plan_deinit(&plan);
  ait_plan_deinit(&null);
  ait_weight_store_release(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_routes),
      cmocka_unit_test(test_outputs_cross_routes),
      cmocka_unit_test(test_state_is_shared),
      cmocka_unit_test(test_bucket_cannot_run),
      cmocka_unit_test(test_file),
      cmocka_unit_test(test_hostile),
      cmocka_unit_test(test_too_many),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_steady_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
