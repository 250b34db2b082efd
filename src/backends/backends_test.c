/* Every backend of the list keeps the contract of ait/backend.h on one small region; the null backend gives zeros. */
#include "backends/testing.h"

static void build(region_builder *r) {
  ait_dim n = rb_symbol(r, "n");
  uint32_t x = rb_input(r, AIT_F32, SHAPE(n, D(5)));
  uint32_t w = rb_weight(r, 1, 0, SHAPE(D(7), D(5)));
  uint32_t y = rb_node(r, "linear", ARGS(rb_v(x), rb_v(w), rb_none()), AIT_F32, SHAPE(n, D(7)));
  rb_output(r, rb_node(r, "relu", ARGS(rb_v(y)), AIT_F32, SHAPE(n, D(7))));
}

/* Other people's engines are tested in src/backends/guest/guest_test.c and tests/python/test_guests.py. */
static bool is_here(const ait_backend *b) {
  ait_probe probe = {0};
  b->probe(&probe);
  return probe.available;
}

static void test_list(void **state) {
  AIT_UNUSED(state);
  assert_true(ait_backend_count() >= 4);
  for (size_t i = 0; i < ait_backend_count(); ++i) {
    const ait_backend *b = ait_backend_at(i);
    assert_ptr_equal(ait_backend_find(b->name), b);
    assert_int_equal(b->abi_version, AIT_BACKEND_ABI);
    assert_int_equal(b->struct_size, sizeof *b);
    assert_true(strlen(b->summary) > 10);
    for (const ait_knob *k = b->knobs; k->name != NULL; ++k) { /* what is tried includes what is used when nothing is said */
      bool listed = false;
      for (const char *const *v = k->values; *v != NULL; ++v) listed |= strcmp(*v, k->default_value) == 0;
      assert_true(listed);
    }
    ait_probe probe = {0};
    b->probe(&probe);
    assert_true(probe.available || probe.detail[0] != 0);
  }
  assert_null(ait_backend_at(ait_backend_count()));
  assert_null(ait_backend_find("no such backend"));
}

static void run_sizes(region_builder *r, runner *k, bool zeros) {
  static const int64_t sizes[] = {2, 0, 1, 9, 2};
  for (size_t s = 0; s < AIT_COUNT(sizes); ++s) {
    ait_value inputs[RB_MAX], outputs[1] = {{0}};
    rb_inputs(r, &sizes[s], 0, inputs);
    ait_run_context c = {.struct_size = sizeof c, .allocator = k->allocator, .inputs = inputs, .outputs = outputs};
    check_ok(k->backend->run(k->instance, &c), k->backend->name);
    const ait_tensor *t = &outputs[0].as.tensor;
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->shape[0], sizes[s]);
    assert_int_equal(t->shape[1], 7);
    bool all_zero = true;
    for (int64_t i = 0; i < ait_tensor_count(t); ++i) all_zero = all_zero && ((const float *)t->data)[i] == 0;
    assert_true(all_zero == (zeros || sizes[s] == 0));
    ait_value_release(&outputs[0]);
    rb_release(inputs, r->region.input_count);
  }
}

static void test_contract(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < ait_backend_count(); ++i) {
    const ait_backend *b = ait_backend_at(i);
    if (!is_here(b)) continue;
    region_builder *r = malloc(sizeof *r);
    rb_init(r);
    build(r);
    ait_support_note notes[8];
    ait_support support = {.note_capacity = 8, .notes = notes};
    check_ok(b->supports(&r->region, &support), b->name);
    assert_true(support.supported);
    ait_weights weights = ait_weight_store_provider(r->weights);
    runner k = {.allocator = ait_allocator_default()}, twin = {.allocator = ait_allocator_default()};
    check_ok(runner_compile(&k, b->name, &r->region, weights, NULL, 0), b->name);
    check_ok(runner_compile(&twin, b->name, &r->region, weights, NULL, 0), b->name);
    assert_int_equal((uintptr_t)k.blob.data % 64, 0);
    assert_int_equal(k.blob.size, twin.blob.size); /* the same region gives the same bytes */
    assert_memory_equal(k.blob.data, twin.blob.data, k.blob.size);
    check_ok(runner_load(&k, weights, UINT64_MAX), b->name);
    run_sizes(r, &k, strcmp(b->name, "null") == 0);
    runner_deinit(&k);
    runner_deinit(&twin);
    rb_deinit(r);
    free(r);
  }
}

/* A blob that is cut anywhere is refused. */
static void test_cut_blobs(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < ait_backend_count(); ++i) {
    if (!is_here(ait_backend_at(i))) continue;
    region_builder *r = malloc(sizeof *r);
    rb_init(r);
    build(r);
    ait_weights weights = ait_weight_store_provider(r->weights);
    runner k = {.allocator = ait_allocator_default()};
    check_ok(runner_compile(&k, ait_backend_at(i)->name, &r->region, weights, NULL, 0), "compile");
    for (size_t size = 0; size < k.blob.size; size += 1 + size / 16) {
      runner cut = {.allocator = k.allocator, .backend = k.backend};
      cut.blob.data = ait_alloc(k.allocator, size, 64);
      cut.blob.size = size;
      memcpy(cut.blob.data, k.blob.data, size);
      ait_status status = runner_load(&cut, weights, UINT64_MAX);
      assert_non_null(status);
      ait_status_free(status);
      runner_deinit(&cut);
    }
    runner_deinit(&k);
    rb_deinit(r);
    free(r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_list), cmocka_unit_test(test_contract), cmocka_unit_test(test_cut_blobs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
