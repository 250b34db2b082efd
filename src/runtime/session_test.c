/* Sessions over hand-built regions on the reference backend. */
#include "artifact/toy_models.h"
#include "backends/registry.h"
#include "runtime/runtime.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void ok(ait_status status) {
  if (status) fail_msg("%s (%s)", ait_status_message(status), ait_status_hint(status) ? ait_status_hint(status) : "");
}

static void release_store(void *owner) { ait_weight_store_release(owner); }

typedef struct weight_spec {
  const char *name;
  const float *data;
  int32_t rank;
  int64_t shape[2];
} weight_spec;

static ait_model *make_model(const ait_region *r, const weight_spec *weights, size_t count) {
  ait_weight_store *store;
  ait_model *model;
  ok(ait_weight_store_create(ait_allocator_default(), &store));
  for (size_t i = 0; i < count; ++i) ok(toy_add_weight(store, weights[i].name, weights[i].data, weights[i].rank, weights[i].shape));
  ok(ait_model_create(ait_allocator_default(), r, ait_weight_store_provider(store), NULL, store, release_store, &model));
  return model;
}

static ait_session *make_session(ait_model *model) {
  ait_session *session;
  ok(ait_session_create(model, NULL, &session));
  return session;
}

static ait_value vector(float *data, int64_t n) {
  return (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(data, AIT_F32, 1, &n)};
}

static void equal4(const ait_tensor *t, float a, float b, float c, float d) {
  assert_int_equal(ait_tensor_count(t), 4);
  const float want[] = {a, b, c, d};
  assert_true(ait_tensor_is_contiguous(t));
  assert_memory_equal(t->data, want, sizeof want);
}

static const float ones[4] = {1, 1, 1, 1}, tens[4] = {10, 20, 30, 40};

static void test_run(void **state) {
  AIT_UNUSED(state);
  static const float w[6] = {1, 2, 3, 4, 5, 6};
  ait_region r = toy_linear();
  ait_model *model = make_model(&r, (weight_spec[]){{"w", w, 2, {3, 2}}}, 1);
  ait_session *session = make_session(model);
  assert_string_equal(ait_session_backend(session), "reference");
  assert_string_equal(ait_model_target(model), "portable");
  assert_string_equal(ait_model_reason(model), "");
  float x[6] = {1, 0, 0, 0, 1, 1}, y[4] = {0};
  ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){2, 3})}, out = {0};
  ok(ait_session_run(session, &in, 1, &out, 1));
  equal4(&out.as.tensor, 1, 2, 8, 10);
  out = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(y, AIT_F32, 2, (int64_t[]){2, 2})};
  ok(ait_session_run(session, &in, 1, &out, 1));
  assert_ptr_equal(out.as.tensor.data, y);
  equal4(&out.as.tensor, 1, 2, 8, 10);

  out.as.tensor = ait_tensor_borrow(y, AIT_F32, 2, (int64_t[]){1, 2});
  ait_status status = ait_session_run(session, &in, 1, &out, 1);
  assert_string_equal(ait_status_message(status), "memory for output 'y': dimension 0 is 1, must be 2");
  ait_status_free(status);

  ait_port port;
  ok(ait_model_input(model, 0, &port));
  assert_string_equal(port.name, "x");
  assert_string_equal(port.shape[0].text, "s0");
  assert_int_equal(port.shape[0].min, 2);
  assert_int_equal(port.shape[0].max, 64);
  assert_int_equal(port.shape[1].min, 3);
  ok(ait_model_output(model, 0, &port));
  assert_string_equal(port.name, "y");
  assert_int_equal(port.rank, 2);
  status = ait_model_output(model, 1, &port);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
  ait_session_destroy(session);
  ait_model_release(model);
}

static void check_counter(ait_session *s, ait_session *other) {
  float x[4] = {1, 2, 3, 4};
  ait_value in = vector(x, 4), out[2] = {0};
  ok(ait_session_run(s, &in, 1, out, 2));
  equal4(&out[0].as.tensor, 11, 22, 33, 44);
  equal4(&out[1].as.tensor, 121, 484, 1089, 1936);
  ok(ait_session_run(s, &in, 1, out, 2));
  equal4(&out[0].as.tensor, 12, 24, 36, 48);
  ait_tensor t;
  ok(ait_session_state(s, "total", &t));
  equal4(&t, 12, 24, 36, 48);
  ok(ait_session_state(other, "total", &t));
  equal4(&t, 10, 20, 30, 40);
  ok(ait_session_reset(s));
  ok(ait_session_run(s, &in, 1, out, 2));
  equal4(&out[0].as.tensor, 11, 22, 33, 44);
}

static void test_state(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_counter();
  ait_model *model = make_model(&r, (weight_spec[]){{"total", tens, 1, {4}}}, 1);
  assert_string_equal(ait_model_state_name(model, 0), "total");
  assert_null(ait_model_state_name(model, 1));
  ait_session *a = make_session(model), *b = make_session(model);
  check_counter(a, b);
  ait_session_destroy(a);
  a = make_session(model);
  check_counter(a, b);
  check_counter(b, (ok(ait_session_reset(a)), a));
  ait_session_destroy(a);
  ait_session_destroy(b);
  ait_model_release(model);
}

static void test_functional_state(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_functional();
  ait_model *model = make_model(&r, (weight_spec[]){{"total", tens, 1, {4}}}, 1);
  ait_session *s = make_session(model);
  float x[4] = {1, 2, 3, 4};
  ait_value in = vector(x, 4), out[2] = {0};
  ok(ait_session_run(s, &in, 1, out, 2));
  equal4(&out[0].as.tensor, 10, 20, 30, 40); /* the old contents, though the state has changed since */
  equal4(&out[1].as.tensor, 1, 2, 3, 4);
  assert_ptr_not_equal(out[1].as.tensor.data, x); /* an input passed through is copied: it cannot dangle */
  ait_tensor t;
  ok(ait_session_state(s, "total", &t));
  equal4(&t, 11, 22, 33, 44);
  /* Results of the last run as inputs of the next. */
  in = out[0];
  out[0] = (ait_value){0};
  out[1] = (ait_value){0};
  ok(ait_session_run(s, &in, 1, out, 2));
  equal4(&out[0].as.tensor, 11, 22, 33, 44);
  equal4(&out[1].as.tensor, 10, 20, 30, 40);
  ok(ait_session_state(s, "total", &t));
  equal4(&t, 21, 42, 63, 84);
  ait_session_destroy(s);
  ait_model_release(model);
}

static void test_swap(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_swap();
  ait_model *model = make_model(&r, (weight_spec[]){{"a", tens, 1, {4}}, {"b", ones, 1, {4}}}, 2);
  ait_session *s = make_session(model);
  ait_value out = {0};
  ait_tensor t;
  for (int i = 0; i < 3; ++i) {
    out = (ait_value){0};
    ok(ait_session_run(s, NULL, 0, &out, 1));
    const float *a = i % 2 ? ones : tens, *b = i % 2 ? tens : ones;
    assert_memory_equal(out.as.tensor.data, a, sizeof ones);
    ok(ait_session_state(s, "a", &t));
    assert_memory_equal(t.data, b, sizeof ones);
    ok(ait_session_state(s, "b", &t));
    assert_memory_equal(t.data, a, sizeof ones);
  }
  ait_session_destroy(s);
  ait_model_release(model);
}

static void test_mutated_inputs(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_inputs();
  ait_model *model = make_model(&r, NULL, 0);
  ait_session *s = make_session(model);
  float x[8] = {1, -1, 2, -1, 3, -1, 4, -1}, y[4] = {10, 20, 30, 40}, z[4] = {0};
  ait_value in[3] = {vector(x, 4), vector(y, 4), vector(z, 4)}, out = {0};
  in[0].as.tensor.strides[0] = 2; /* every second element: what lies between stays */
  ok(ait_session_run(s, in, 3, &out, 1));
  equal4(&out.as.tensor, 11, 22, 33, 44);
  assert_memory_equal(x, ((float[]){11, -1, 22, -1, 33, -1, 44, -1}), sizeof x);
  assert_memory_equal(y, ((float[]){10, 20, 30, 40}), sizeof y);
  assert_memory_equal(z, ((float[]){21, 42, 63, 84}), sizeof z);
  ait_session_destroy(s);
  ait_model_release(model);
}

static void test_scalars(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_scalars();
  ait_model *model = make_model(&r, NULL, 0);
  ait_session *s = make_session(model);
  float x[3] = {1, 2, 3};
  ait_value in[5] = {{.kind = AIT_VALUE_INT, .as.i = 3},
                     vector(x, 3),
                     {.kind = AIT_VALUE_FLOAT, .as.f = 2.0},
                     {.kind = AIT_VALUE_NONE},
                     {.kind = AIT_VALUE_BOOL}};
  ait_value out[7] = {0};
  ok(ait_session_run(s, in, 5, out, 7));
  assert_true(out[0].kind == AIT_VALUE_INT && out[0].as.i == 3);
  assert_true(out[1].kind == AIT_VALUE_FLOAT && out[1].as.f == 2.5);
  assert_true(out[2].kind == AIT_VALUE_BOOL && out[2].as.b);
  assert_true(out[3].kind == AIT_VALUE_NONE);
  assert_true(out[4].kind == AIT_VALUE_STRING);
  assert_string_equal(out[4].as.s, "hi");
  assert_true(out[5].kind == AIT_VALUE_INT && out[5].as.i == 3);
  assert_memory_equal(out[6].as.tensor.data, x, sizeof x);
  ait_port port;
  ok(ait_model_input(model, 2, &port));
  assert_true(port.baked && port.kind == AIT_VALUE_FLOAT);
  ait_session_destroy(s);
  ait_model_release(model);
}

static void test_plan_falls_back(void **state) {
  AIT_UNUSED(state);
  static const float w[6] = {1, 2, 3, 4, 5, 6};
  ait_region r = toy_linear();
  ait_weight_store *store;
  ok(ait_weight_store_create(ait_allocator_default(), &store));
  ok(toy_add_weight(store, "w", w, 2, (int64_t[]){3, 2}));
  ait_plan plans[2];
  ok(ait_plan_compile(ait_allocator_default(), "reference", "precision=fp64", &r, ait_weight_store_provider(store), UINT64_MAX, "x",
                      &plans[0]));
  ok(ait_plan_compile(ait_allocator_default(), "reference", NULL, &r, ait_weight_store_provider(store), UINT64_MAX, "broken", &plans[1]));
  plans[0].cpu_needed = (uint64_t)1 << 40;
  memset(plans[1].steps[0].blob.data, 'x', 8);
  ait_model_parts parts = {
      .allocator = ait_allocator_default(),
      .portable = &r,
      .weights = ait_weight_store_provider(store),
      .plans = plans,
      .plan_count = 2,
      .cpu_mask = UINT64_MAX,
  };
  ait_model *model;
  ok(ait_model_build(&parts, &model));
  assert_string_equal(ait_model_target(model), "portable");
  assert_non_null(strstr(ait_model_reason(model), "plan 'x' needs "));
  assert_non_null(strstr(ait_model_reason(model), "plan 'broken' cannot be loaded: backend 'reference': "));
  ait_model_release(model);

  plans[0].cpu_needed = 0;
  ok(ait_model_build(&parts, &model));
  assert_string_equal(ait_model_target(model), "x");
  assert_string_equal(ait_model_reason(model), "");
  ait_model_release(model);

  plans[0].outputs[0] = 77;
  ok(ait_model_build(&parts, &model));
  assert_non_null(strstr(ait_model_reason(model), "output 0 is value 77, which is not made"));
  ait_model_release(model);
  ait_plan_deinit(&plans[0]);
  ait_plan_deinit(&plans[1]);
  ait_weight_store_release(store);
}

static void test_weights_must_fit(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_linear();
  ait_weight_store *store;
  ait_model *model;
  ok(ait_weight_store_create(ait_allocator_default(), &store));
  ok(toy_add_weight(store, "w", tens, 2, (int64_t[]){2, 2}));
  ait_status status = ait_model_create(ait_allocator_default(), &r, ait_weight_store_provider(store), NULL, NULL, NULL, &model);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
  assert_non_null(strstr(ait_status_message(status), "weight 'w' is float32 [2, 2]"));
  ait_status_free(status);
  ait_weight_store_release(store);
}

/* ---- threads: one model, a session each ----------------------------------------------------------------------------------------------*/
static void *count_up(void *argument) {
  ait_session *s;
  ait_status status = ait_session_create(argument, NULL, &s);
  ait_model_release(argument); /* the session keeps it */
  float x[4] = {1, 2, 3, 4};
  for (int i = 1; !status && i <= 50; ++i) {
    ait_value in = vector(x, 4), out[2] = {0};
    status = ait_session_run(s, &in, 1, out, 2);
    if (!status && ((const float *)out[0].as.tensor.data)[1] != 20 + 2 * (float)i)
      status = ait_error(AIT_CODE_INTERNAL, "wrong sum in run %d", i);
  }
  ait_session_destroy(s);
  return status;
}

static void test_threads(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_counter();
  ait_model *model = make_model(&r, (weight_spec[]){{"total", tens, 1, {4}}}, 1);
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) assert_int_equal(pthread_create(&threads[i], NULL, count_up, ait_model_retain(model)), 0);
  ait_model_release(model);
  for (int i = 0; i < 8; ++i) {
    void *status;
    pthread_join(threads[i], &status);
    ok(status);
  }
}

/* ---- memory --------------------------------------------------------------------------------------------------------------------------*/
typedef struct failing {
  long left, live;
} failing;

static void *failing_alloc(void *ctx, size_t size, size_t align) {
  failing *f = ctx;
  if (f->left-- <= 0) return NULL;
  void *p = ait_alloc(ait_allocator_default(), size, align);
  if (p) ++f->live;
  return p;
}

static void failing_free(void *ctx, void *p, size_t size) {
  --((failing *)ctx)->live;
  ait_free(ait_allocator_default(), p, size);
}

static ait_status load_and_run(ait_allocator a, const ait_region *r, ait_weights weights) {
  ait_model *model;
  ait_session *session = NULL;
  AIT_TRY(ait_model_create(a, r, weights, NULL, NULL, NULL, &model));
  ait_session_options options;
  ait_session_options_init(&options);
  options.allocator = a;
  float x[4] = {1, 2, 3, 4};
  ait_value in = vector(x, 4), out[2] = {0};
  ait_status status = ait_session_create(model, &options, &session);
  if (!status) status = ait_session_run(session, &in, 1, out, 2);
  if (!status) status = ait_session_run(session, &in, 1, out, 2);
  ait_session_destroy(session);
  ait_model_release(model);
  return status;
}

static void test_out_of_memory(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_functional();
  ait_weight_store *store;
  ok(ait_weight_store_create(ait_allocator_default(), &store));
  ok(toy_add_weight(store, "total", tens, 1, (int64_t[]){4}));
  failing f = {0};
  ait_allocator a = {&f, failing_alloc, failing_free};
  bool done = false;
  for (long n = 0; !done && n < 10000; ++n) {
    f = (failing){.left = n};
    ait_status status = load_and_run(a, &r, ait_weight_store_provider(store));
    done = status == AIT_OK;
    if (!done) assert_int_equal(ait_status_code(status), AIT_CODE_OUT_OF_MEMORY);
    ait_status_free(status);
    assert_int_equal(f.live, 0);
  }
  assert_true(done);
  ait_weight_store_release(store);
}

/* After the first runs of a shape the session asks for no memory. The backend here is the one that computes nothing: this is about ours. */
static void test_steady_state(void **state) {
  AIT_UNUSED(state);
  static const float weights[6] = {0};
  ait_region r = toy_linear();
  ait_weight_store *store;
  ait_plan plan;
  ait_model *model;
  ait_session *session;
  ok(ait_weight_store_create(ait_allocator_default(), &store));
  ok(toy_add_weight(store, "w", weights, 2, (int64_t[]){3, 2}));
  ok(ait_plan_compile(ait_allocator_default(), "null", NULL, &r, ait_weight_store_provider(store), UINT64_MAX, "", &plan));
  ok(ait_model_create(ait_allocator_default(), &r, ait_weight_store_provider(store), &plan, NULL, NULL, &model));
  failing f = {.left = 1000000};
  ait_session_options options;
  ait_session_options_init(&options);
  options.allocator = (ait_allocator){&f, failing_alloc, failing_free};
  ok(ait_session_create(model, &options, &session));
  float x[6] = {0}, y[4];
  for (int i = 0; i < 10; ++i) {
    ait_value in = {.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(x, AIT_F32, 2, (int64_t[]){2, 3})}, out = {0};
    if (i % 2) out = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(y, AIT_F32, 2, (int64_t[]){2, 2})};
    ok(ait_session_run(session, &in, 1, &out, 1));
    if (i == 1) f.left = 0; /* from here on every request fails */
  }
  ait_session_destroy(session);
  ait_model_release(model);
  ait_plan_deinit(&plan);
  ait_weight_store_release(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_state),
      cmocka_unit_test(test_functional_state),
      cmocka_unit_test(test_swap),
      cmocka_unit_test(test_mutated_inputs),
      cmocka_unit_test(test_scalars),
      cmocka_unit_test(test_plan_falls_back),
      cmocka_unit_test(test_weights_must_fit),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_steady_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
