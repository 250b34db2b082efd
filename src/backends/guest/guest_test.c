/* The skeleton of guests with an engine of the test's own: what is refused, blobs that are damaged, memory of callers, sizes that only the
 * engine knows. Real engines: tests/python/test_guests.py. */
#include "backends/guest/guest.h"
#include "backends/testing.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- the engine: y = 2 x; its "ONNX" is the word "double" ------------------------------------------------------------------------------
 */
static int sessions, requests;

static ait_status session_create(const guest_model *m, int32_t threads, void **out) {
  static int32_t last;
  last = threads;
  if (m->onnx_size != 6 || memcmp(m->onnx, "double", 6) != 0) return ait_error(AIT_CODE_INVALID_MODEL, "not my model");
  ++sessions;
  *out = &last;
  return AIT_OK;
}
static void session_destroy(void *session) {
  assert_non_null(session);
  --sessions;
}
static ait_status request_create(void *session, const guest_model *m, void **out) {
  AIT_UNUSED(m);
  ++requests;
  *out = session;
  return AIT_OK;
}
static void request_destroy(void *request) {
  assert_non_null(request);
  --requests;
}
static ait_status run_double(void *request, const guest_model *m, const ait_tensor *in, ait_tensor *out) {
  AIT_UNUSED(request);
  if (out->rank < 0) AIT_TRY(ait_tensor_create(m->allocator, in->dtype, in->rank, in->shape, out));
  for (int64_t i = 0; i < ait_tensor_count(in); ++i) ((float *)out->data)[i] = 2 * ((const float *)in->data)[i];
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero: must not stay */
#endif
  return AIT_OK;
}
static void open_nothing(guest_library *l) { l->usable = true; }
static guest_library here = {.lock = PTHREAD_MUTEX_INITIALIZER};
static const guest_engine engine = {.name = "doubler",
                                    .library = &here,
                                    .open = open_nothing,
                                    .session_create = session_create,
                                    .session_destroy = session_destroy,
                                    .request_create = request_create,
                                    .request_destroy = request_destroy,
                                    .run = run_double};

static bool takes(const char *op) { return strcmp(op, "relu") == 0; }
static ait_status write_word(ait_allocator a, const ait_region *region, ait_weights weights, ait_blob *out) {
  AIT_UNUSED(region);
  AIT_UNUSED(weights);
  out->data = ait_alloc(a, 6, 64);
  out->size = 6;
  if (!out->data) return AIT_OOM();
  memcpy(out->data, "double", 6);
  return AIT_OK;
}
static const ait_onnx_bridge bridge = {takes, write_word};

/* [n, 3] to [n, 3], or to a size that depends on the data. */
static void build(region_builder *r, const char *op, bool unknown) {
  ait_dim n = rb_symbol(r, "n"), free = n;
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, D(3)));
  if (unknown) {
    r->dims[r->region.dim_count] = (ait_dim_expr){.op = AIT_DIM_UNKNOWN};
    free = r->region.dim_count++;
  }
  rb_output(r, rb_node(r, op, ARGS(rb_v(x)), AIT_F32, SHAPE(free, D(3))));
}

static ait_blob compile(region_builder *r) {
  ait_blob blob;
  ait_compile_options o = {.struct_size = sizeof o, .allocator = ait_allocator_default()};
  check_ok(guest_compile(&engine, &r->region, &o, &blob), "compile");
  return blob;
}

static ait_status load(const void *data, size_t size, void **out) {
  static const ait_option option = {"color", "blue"};
  ait_load_context c = {.struct_size = sizeof c,
                        .allocator = ait_allocator_default(),
                        .blob = data,
                        .blob_size = size,
                        .option_count = 1,
                        .options = &option};
  return guest_load(&engine, &c, out);
}

static void test_supports(void **state) {
  AIT_UNUSED(state);
  ait_support_note notes[4];
  ait_support s = {.notes = notes, .note_capacity = 4};
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  build(r, "relu", false);
  check_ok(guest_supports(&engine, &r->region, &s), "supports");
  assert_true(s.supported);
  rb_deinit(r);
  rb_init(r);
  build(r, "softshrug", false);
  check_ok(guest_supports(&engine, &r->region, &s), "supports");
  assert_false(s.supported);
  assert_string_equal(notes[0].code, "op-not-in-onnx");
  assert_non_null(strstr(notes[0].reason, "softshrug"));
  rb_deinit(r);
  rb_init(r);
  build(r, "relu", false);
  r->outputs[0].kind = AIT_OUTPUT_STATE;
  check_ok(guest_supports(&engine, &r->region, &s), "supports");
  assert_false(s.supported);
  rb_deinit(r);
  free(r);
}

static void test_damaged_blobs(void **state) {
  AIT_UNUSED(state);
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  build(r, "relu", false);
  ait_blob blob = compile(r);
  void *loaded;
  for (size_t size = 0; size < blob.size; ++size) {
    void *cut = malloc(size + 1);
    memcpy(cut, blob.data, size);
    ait_status status = load(cut, size, &loaded);
    assert_non_null(status);
    ait_status_free(status);
    free(cut);
  }
  for (size_t at = 0; at < blob.size - 6; ++at) { /* taken or refused, never a crash */
    ((uint8_t *)blob.data)[at] ^= 0x41;
    ait_status status = load(blob.data, blob.size, &loaded);
    if (status == AIT_OK) guest_unload(loaded);
    ait_status_free(status);
    ((uint8_t *)blob.data)[at] ^= 0x41;
  }
  ait_free(ait_allocator_default(), blob.data, blob.size);
  rb_deinit(r);
  free(r);
}

static void run_once(void *instance, ait_pool *pool, float *in, int64_t rows, bool transposed, ait_value *out) {
  ait_tensor x = ait_tensor_borrow(in, AIT_F32, 2, (const int64_t[]){rows, 3});
  if (transposed) x.strides[0] = 1, x.strides[1] = rows;
  ait_value input = ait_value_tensor(x);
  ait_run_context c = {.struct_size = sizeof c, .allocator = ait_allocator_default(), .pool = pool, .inputs = &input, .outputs = out};
  check_ok(guest_run(instance, &c), "run");
  const ait_tensor *y = &out->as.tensor;
  assert_int_equal(out->kind, AIT_VALUE_TENSOR);
  assert_int_equal(y->shape[0], rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < 3; ++k)
      assert_true(((float *)y->data)[i * y->strides[0] + k * y->strides[1]] == 2 * in[transposed ? k * rows + i : i * 3 + k]);
}

static void run_region(bool unknown) {
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  build(r, "relu", unknown);
  ait_blob blob = compile(r);
  void *loaded, *instance;
  ait_pool *pool;
  check_ok(ait_pool_create(ait_allocator_default(), 2, &pool), "pool");
  check_ok(load(blob.data, blob.size, &loaded), "load");
  assert_string_equal(guest_option(loaded, "color", "red"), "blue");
  assert_string_equal(guest_option(loaded, "size", "7"), "7");
  check_ok(guest_instance_create(loaded, ait_allocator_default(), &instance), "instance");
  float in[12], memory[24];
  for (int i = 0; i < 12; ++i) in[i] = (float)i - 5;
#if defined(__x86_64__)
  unsigned modes = _mm_getcsr();
#endif
  for (int64_t rows = 4; rows >= 0; --rows) {
    ait_value own = {0}, given = ait_value_tensor(ait_tensor_borrow(memory, AIT_F32, 2, (const int64_t[]){rows, 3})), strided = given;
    run_once(instance, NULL, in, rows, false, &own);
    ait_value_release(&own);
    run_once(instance, pool, in, rows, true, &given);
    assert_ptr_equal(given.as.tensor.data, memory);
    strided.as.tensor.strides[0] = 6;
    strided.as.tensor.strides[1] = 2;
    run_once(instance, pool, in, rows, false, &strided);
    assert_ptr_equal(strided.as.tensor.data, memory);
  }
#if defined(__x86_64__)
  assert_int_equal(_mm_getcsr() & 0x8040u, modes & 0x8040u);
#endif
  ait_value wrong = {.kind = AIT_VALUE_INT}, out = {0};
  ait_run_context c = {.struct_size = sizeof c, .allocator = ait_allocator_default(), .inputs = &wrong, .outputs = &out};
  ait_status status = guest_run(instance, &c);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
  assert_int_equal(sessions, 2); /* one for each number of threads */
  guest_instance_destroy(instance);
  guest_unload(loaded);
  assert_int_equal(sessions, 0);
  assert_int_equal(requests, 0);
  ait_pool_destroy(pool);
  ait_free(ait_allocator_default(), blob.data, blob.size);
  rb_deinit(r);
  free(r);
}

static void test_run(void **state) {
  AIT_UNUSED(state);
  run_region(false);
  run_region(true);
}

static void test_search(void **state) {
  AIT_UNUSED(state);
  guest_library l = {.lock = PTHREAD_MUTEX_INITIALIZER};
  ait_guest_options o = {.struct_size = sizeof o, .search_path = "/nowhere:/tmp"};
  check_ok(ait_guests_configure(&o), "configure");
  assert_false(guest_reporting_settled());
  guest_library_open("no_such_engine/libno_such_engine*.so", "nothing", &l);
  assert_null(l.handle);
  assert_non_null(strstr(l.reason, "no_such_engine"));
  assert_non_null(strstr(l.reason, "/nowhere"));
  char *long_path = malloc(5000);
  memset(long_path, 'a', 4999);
  long_path[4999] = 0;
  o.search_path = long_path;
  ait_status status = ait_guests_configure(&o);
  assert_int_equal(ait_status_code(status), AIT_CODE_LIMIT);
  ait_status_free(status);
  free(long_path);
}

int main(void) {
  ait_onnx_bridge_install(&bridge);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_supports), cmocka_unit_test(test_damaged_blobs), cmocka_unit_test(test_run),
                                     cmocka_unit_test(test_search)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
