/* Storage, views, copies, symbolic sizes, comparison, weights. */
#include "tensor/tensor.h"

#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/test_support.h"

static void expect_code(ait_status s, ait_code code) {
  assert_int_equal(ait_status_code(s), code);
  ait_status_free(s);
}

/* ---- storage and views ---------------------------------------------------------------------------------------------------------*/
static void set_flag(void *ctx) { *(int *)ctx += 1; }

static void storage_counts(void **state) {
  AIT_UNUSED(state);
  test_allocator t = {.fail_at = -1};
  ait_allocator a = test_allocator_of(&t);
  ait_storage *s;
  assert_null(ait_storage_create(a, 100, &s));
  assert_int_equal((uintptr_t)ait_storage_data(s) % 64, 0);
  assert_ptr_equal(ait_storage_retain(s), s);
  ait_storage_release(s);
  assert_int_equal(t.live, 1);
  ait_storage_release(s);
  int released = 0, data = 7;
  assert_null(ait_storage_wrap(a, &data, sizeof data, set_flag, &released, &s));
  assert_int_equal(ait_storage_bytes(s), sizeof data);
  ait_storage_release(s);
  assert_int_equal(released, 1);
  void *owned = ait_alloc(a, 33, 64);
  assert_null(ait_storage_wrap(a, owned, 33, NULL, NULL, &s));
  ait_storage_release(s);
  ait_storage_release(ait_storage_retain(NULL));
  assert_int_equal(t.live, 0);
}

static void tensors_check_sizes(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  ait_tensor t;
  int64_t huge[] = {INT64_MAX / 2, 3}, negative[] = {2, -1}, hidden[] = {0, INT64_MAX, 16}, many[AIT_MAX_RANK + 1] = {0};
  expect_code(ait_tensor_create(a, AIT_F32, 2, huge, &t), AIT_CODE_LIMIT);
  expect_code(ait_tensor_create(a, AIT_F32, 2, negative, &t), AIT_CODE_INVALID_ARGUMENT);
  expect_code(ait_tensor_create(a, AIT_F32, 3, hidden, &t), AIT_CODE_LIMIT);
  expect_code(ait_tensor_create(a, AIT_F32, AIT_MAX_RANK + 1, many, &t), AIT_CODE_INVALID_ARGUMENT);
  expect_code(ait_tensor_create(a, (ait_dtype)77, 0, NULL, &t), AIT_CODE_INVALID_ARGUMENT);
  assert_null(ait_tensor_create(a, AIT_F64, 0, NULL, &t));
  assert_int_equal(ait_tensor_count(&t), 1);
  ait_value v = ait_value_tensor(ait_tensor_retain(&t));
  ait_value_release(&v);
  assert_int_equal(v.kind, AIT_VALUE_NONE);
  ait_tensor_release(&t);
  assert_null(t.data);
  ait_tensor_release(&t);
  ait_tensor_release(NULL);
}

static void contiguity(void **state) {
  AIT_UNUSED(state);
  float data[24];
  ait_tensor t = ait_tensor_borrow(data, AIT_F32, 3, (int64_t[]){2, 3, 4});
  assert_true(ait_tensor_is_contiguous(&t));
  assert_int_equal(ait_tensor_bytes(&t), 96);
  t.shape[1] = 1;
  assert_false(ait_tensor_is_contiguous(&t));
  t.shape[0] = 1;
  assert_true(ait_tensor_is_contiguous(&t)); /* steps of single elements do not matter */
  t.shape[0] = 0;
  t.strides[2] = 9;
  assert_true(ait_tensor_is_contiguous(&t));
  char text[64], tiny[5];
  ait_tensor_shape_text(&t, text, sizeof text);
  assert_string_equal(text, "[0, 1, 4]");
  ait_tensor_shape_text(&t, tiny, sizeof tiny);
  assert_int_equal(strlen(tiny), 4);
  t.rank = 0;
  ait_tensor_shape_text(&t, text, sizeof text);
  assert_string_equal(text, "[]");
}

static void strides_are_bounded(void **state) {
  AIT_UNUSED(state);
  int64_t shape[] = {2, 3}, rows[] = {3, 1}, back[] = {3, -1}, zero[] = {0, 0}, wild[] = {INT64_MAX, 1}, empty[] = {0, 5};
  assert_true(ait_strides_fit(2, shape, rows, 0, 6));
  assert_false(ait_strides_fit(2, shape, rows, 1, 6));
  assert_false(ait_strides_fit(2, shape, rows, -1, 60));
  assert_true(ait_strides_fit(2, shape, back, 2, 6));
  assert_false(ait_strides_fit(2, shape, back, 1, 6));
  assert_true(ait_strides_fit(2, shape, zero, 5, 6));
  assert_false(ait_strides_fit(2, shape, wild, 1, INT64_MAX));
  assert_true(ait_strides_fit(2, empty, wild, 3, 0));
  assert_true(ait_strides_fit(0, NULL, NULL, 0, 1));
  assert_false(ait_strides_fit(0, NULL, NULL, 0, 0));
}

/* ---- copies --------------------------------------------------------------------------------------------------------------------*/
static uint32_t random_state = 1;
static int32_t random_below(int32_t n) {
  random_state = random_state * 1664525u + 1013904223u;
  return (int32_t)((random_state >> 8) % (uint32_t)n);
}

enum { ARENA_BYTES = 1 << 20 };

/* A view with any order of dimensions, gaps, and steps backwards or of zero, inside `memory`. */
static ait_tensor random_view(char *memory, ait_dtype dtype, int32_t rank, const int64_t *shape, bool may_repeat) {
  ait_tensor t = {.dtype = dtype, .rank = rank};
  int32_t order[AIT_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) order[i] = i;
  for (int32_t i = rank - 1; i > 0; i--) {
    int32_t j = random_below(i + 1), swap = order[i];
    order[i] = order[j];
    order[j] = swap;
  }
  int64_t step = 1, start = 0;
  for (int32_t k = 0; k < rank; k++) {
    int32_t d = order[k];
    t.shape[d] = shape[d];
    if (may_repeat && random_below(6) == 0) {
      t.strides[d] = 0;
      continue;
    }
    step += random_below(3) ? 0 : random_below(3);
    t.strides[d] = step;
    step *= shape[d];
    if (random_below(4) == 0) {
      start += t.strides[d] * (shape[d] - 1);
      t.strides[d] = -t.strides[d];
    }
  }
  t.data = memory + (size_t)start * ait_dtype_size(dtype);
  return t;
}

static char *element_of(const ait_tensor *t, int64_t flat) {
  char *p = t->data;
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    p += flat % t->shape[d] * t->strides[d] * (int64_t)ait_dtype_size(t->dtype);
    flat /= t->shape[d];
  }
  return p;
}

static void set_as(void *to, ait_dtype to_dtype, const void *from, ait_dtype from_dtype) {
  double v[2];
  if (from_dtype == to_dtype) memcpy(to, from, ait_dtype_size(to_dtype));
  else if (ait_dtype_is_integer(from_dtype) && from_dtype != AIT_U64) ait_element_set_i64(to, to_dtype, ait_element_i64(from, from_dtype));
  else ait_element_c128(from, from_dtype, v), ait_element_set_c128(to, to_dtype, v);
}

static void copies_match_single_elements(void **state) {
  AIT_UNUSED(state);
  static char from_memory[ARENA_BYTES], to_memory[ARENA_BYTES];
  for (int round = 0; round < 3000; round++) {
    int32_t rank = random_below(6);
    int64_t shape[AIT_MAX_RANK], count = 1;
    for (int32_t i = 0; i < rank; i++) {
      shape[i] = rank < 3 ? 1 + random_below(70) : 1 + random_below(6);
      count *= shape[i];
    }
    ait_dtype from = (ait_dtype)(1 + random_below(21)), to = random_below(3) ? (ait_dtype)(1 + random_below(21)) : from;
    ait_tensor src = random_view(from_memory, from, rank, shape, true), dst = random_view(to_memory, to, rank, shape, false);
    for (int64_t i = 0; i < count; i++)
      ait_element_set_f64(element_of(&src, i), from, (double)(random_below(200) - (from == AIT_U64 ? 0 : 60)));
    assert_null(ait_tensor_copy(&dst, &src));
    for (int64_t i = 0; i < count; i++) {
      char wanted[16];
      set_as(wanted, to, element_of(&src, i), from);
      assert_memory_equal(element_of(&dst, i), wanted, ait_dtype_size(to));
    }
  }
}

static void copies_refuse(void **state) {
  AIT_UNUSED(state);
  float data[6];
  ait_tensor a = ait_tensor_borrow(data, AIT_F32, 2, (int64_t[]){2, 3}), b = ait_tensor_borrow(data, AIT_F32, 2, (int64_t[]){3, 2});
  ait_status s = ait_tensor_copy(&a, &b);
  assert_non_null(strstr(ait_status_message(s), "[3, 2]"));
  expect_code(s, AIT_CODE_INVALID_ARGUMENT);
  b = a;
  b.dtype = AIT_DTYPE_NONE;
  expect_code(ait_tensor_copy(&a, &b), AIT_CODE_INVALID_ARGUMENT);
  ait_tensor none = ait_tensor_borrow(NULL, AIT_F32, 1, (int64_t[]){0});
  assert_null(ait_tensor_copy(&none, &none));
}

static void unsigned_64_keeps_its_range(void **state) {
  AIT_UNUSED(state);
  uint64_t big[] = {UINT64_MAX, 1};
  ait_tensor src = ait_tensor_borrow(big, AIT_U64, 1, (int64_t[]){2}), out;
  assert_null(ait_tensor_cast(ait_allocator_default(), &src, AIT_F32, &out));
  assert_true(((float *)out.data)[0] == 0x1p64f);
  ait_tensor_release(&out);
}

/* ---- symbolic sizes ------------------------------------------------------------------------------------------------------------*/
static void dims_evaluate(void **state) {
  AIT_UNUSED(state);
  static const struct {
    ait_dim_op op;
    int64_t a, b, result; /* INT64_MIN: none */
  } cases[] = {
      {AIT_DIM_ADD, 2, 3, 5},
      {AIT_DIM_SUB, 2, 3, -1},
      {AIT_DIM_MUL, -4, 3, -12},
      {AIT_DIM_FLOORDIV, -7, 2, -4},
      {AIT_DIM_FLOORDIV, 7, -2, -4},
      {AIT_DIM_FLOORDIV, 7, 0, INT64_MIN},
      {AIT_DIM_CEILDIV, 7, 2, 4},
      {AIT_DIM_CEILDIV, -7, 2, -3},
      {AIT_DIM_CEILDIV, 8, 2, 4},
      {AIT_DIM_MOD, -7, 3, 2},
      {AIT_DIM_MOD, 7, -3, -2},
      {AIT_DIM_MOD, 7, 0, INT64_MIN},
      {AIT_DIM_MIN, 2, 3, 2},
      {AIT_DIM_MAX, 2, 3, 3},
      {AIT_DIM_POW, 3, 4, 81},
      {AIT_DIM_POW, 2, 62, 1LL << 62},
      {AIT_DIM_POW, 2, 63, INT64_MIN},
      {AIT_DIM_POW, 2, -1, INT64_MIN},
      {AIT_DIM_POW, 5, 0, 1},
      {AIT_DIM_ADD, INT64_MAX, 1, INT64_MIN},
      {AIT_DIM_FLOORDIV, INT64_MIN + 1, -1, INT64_MAX},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); i++) {
    ait_dim_expr dims[] = {{AIT_DIM_CONST, 0, 0, cases[i].a}, {AIT_DIM_SYMBOL, 0, 0, 0}, {cases[i].op, 0, 1, 0}};
    int64_t all[3], one = INT64_MIN;
    bool known = ait_dim_eval(dims, &cases[i].b, 2, &one);
    assert_int_equal(known, cases[i].result != INT64_MIN);
    ait_dim_eval_all(dims, 3, &cases[i].b, all);
    assert_int_equal(all[2], cases[i].result);
    if (known) assert_int_equal(one, cases[i].result);
  }
}

static void dims_refuse(void **state) {
  AIT_UNUSED(state);
  int64_t unbound = INT64_MIN, out, bound = 1;
  ait_dim_expr symbol = {AIT_DIM_SYMBOL, 0, 0, 0}, unknown = {AIT_DIM_UNKNOWN, 0, 0, 0}, loop = {AIT_DIM_ADD, 0, 0, 0};
  assert_false(ait_dim_eval(&symbol, &unbound, 0, &out));
  assert_false(ait_dim_eval(&unknown, &unbound, 0, &out));
  assert_false(ait_dim_eval(&loop, &unbound, 0, &out));
  static ait_dim_expr doubling[2000] = {{AIT_DIM_SYMBOL, 0, 0, 0}};
  static int64_t all[2000];
  for (uint32_t i = 1; i < AIT_COUNT(doubling); i++) doubling[i] = (ait_dim_expr){AIT_DIM_MIN, i - 1, i - 1, 0};
  assert_false(ait_dim_eval(doubling, &bound, 1999, &out)); /* 2^1999 steps as a tree */
  assert_true(ait_dim_eval(doubling, &bound, 10, &out));
  ait_dim_eval_all(doubling, 2000, &bound, all);
  assert_int_equal(all[1999], 1);
}

/* ---- comparison ----------------------------------------------------------------------------------------------------------------*/
static ait_compare_result compare_f32(const float *got, const float *want, int64_t n, ait_compare_rule rule) {
  ait_tensor g = ait_tensor_borrow((void *)got, AIT_F32, 1, &n), w = ait_tensor_borrow((void *)want, AIT_F32, 1, &n);
  ait_compare_result r;
  assert_null(ait_compare(&g, &w, &rule, &r));
  return r;
}

static void compare_tolerances(void **state) {
  AIT_UNUSED(state);
  float want[] = {1, -2, 0, 100}, got[] = {1.001f, -2, 0.001f, 100.5f};
  ait_compare_result r = compare_f32(got, want, 4, (ait_compare_rule){.rtol = 1e-3, .atol = 2e-3});
  assert_false(r.pass);
  assert_int_equal(r.mismatches, 1);
  assert_int_equal(r.worst_index, 3);
  assert_true(r.worst_got == 100.5 && r.worst_want == 100 && r.max_abs == 0.5);
  assert_true(fabs(r.max_rel - 0.005) < 1e-9);
  assert_true(r.snr_db > 45 && r.snr_db < 47 && r.cosine > 0.99999);
  assert_int_equal(r.argmax_rows, 1);
  assert_int_equal(r.argmax_agree, 1);
  assert_true(compare_f32(got, want, 4, (ait_compare_rule){.rtol = 1e-2, .atol = 2e-3}).pass);
  r = compare_f32(want, want, 4, (ait_compare_rule){.exact = true});
  assert_true(r.pass && isinf(r.snr_db) && r.worst_index == -1);
}

static void compare_specials(void **state) {
  AIT_UNUSED(state);
  float a[] = {NAN, INFINITY, -0.0f, 1}, b[] = {NAN, INFINITY, 0.0f, 1}, c[] = {NAN, -INFINITY, 0, 1}, d[] = {0, INFINITY, 0, 1};
  ait_compare_rule exact = {.exact = true}, loose = {.rtol = 1, .atol = 1e9};
  assert_true(compare_f32(a, b, 4, exact).pass);
  assert_true(compare_f32(a, b, 4, loose).pass);
  assert_false(compare_f32(c, b, 4, loose).pass);
  ait_compare_result r = compare_f32(d, b, 4, loose);
  assert_false(r.pass);
  assert_int_equal(r.worst_index, 0);
  assert_int_equal(r.nan_want, 1);
  assert_int_equal(r.nan_got, 0);
}

static void compare_integers_exactly(void **state) {
  AIT_UNUSED(state);
  int64_t got[] = {INT64_MAX, -1}, want[] = {INT64_MAX - 1, -1}, n = 2;
  ait_tensor g = ait_tensor_borrow(got, AIT_I64, 1, &n), w = ait_tensor_borrow(want, AIT_I64, 1, &n);
  ait_compare_result r;
  ait_compare_rule exact = {.exact = true};
  assert_null(ait_compare(&g, &w, &exact, &r));
  assert_int_equal(r.mismatches, 1);
  assert_true(r.max_abs == 1);
  g.dtype = AIT_U64; /* -1 against 2^64 - 1 */
  assert_null(ait_compare(&g, &w, &exact, &r));
  assert_int_equal(r.mismatches, 2);
}

static void compare_complex_and_strides(void **state) {
  AIT_UNUSED(state);
  float got[] = {1, 2, 3, 4}, want[] = {1, 2, 3, 5};
  ait_tensor g = ait_tensor_borrow(got, AIT_C64, 1, (int64_t[]){2}), w = ait_tensor_borrow(want, AIT_C64, 1, (int64_t[]){2});
  ait_compare_result r;
  ait_compare_rule rule = {.atol = 0.5};
  assert_null(ait_compare(&g, &w, &rule, &r));
  assert_int_equal(r.mismatches, 1);
  assert_true(r.max_abs == 1);
  assert_int_equal(r.argmax_rows, 0);
  float columns[] = {1, 3, 2, 4}; /* [[1, 2], [3, 4]] column by column */
  g = ait_tensor_borrow(got, AIT_F32, 2, (int64_t[]){2, 2});
  w = ait_tensor_borrow(columns, AIT_F32, 2, (int64_t[]){2, 2});
  w.strides[0] = 1;
  w.strides[1] = 2;
  assert_null(ait_compare(&g, &w, &rule, &r));
  assert_true(r.pass);
  assert_int_equal(r.argmax_rows, 2);
  w.rank = 1;
  expect_code(ait_compare(&g, &w, &rule, &r), AIT_CODE_MISMATCH);
}

/* ---- weights -------------------------------------------------------------------------------------------------------------------*/
static ait_status fill_store(ait_allocator a, ait_weight_store *s) {
  ait_storage *storage;
  AIT_TRY(ait_storage_create(a, 6 * sizeof(float), &storage));
  for (int i = 0; i < 6; i++) ((float *)ait_storage_data(storage))[i] = (float)i;
  uint32_t index;
  ait_status status = ait_weight_store_add_storage(s, storage, &index);
  if (status) ait_storage_release(storage);
  AIT_TRY(status);
  ait_weight w = {.name = "w", .storage = index, .dtype = AIT_F32, .rank = 2, .shape = {3, 2}, .strides = {1, 3}};
  AIT_TRY(ait_weight_store_add(s, &w));
  ait_weight row = {.name = "row", .storage = index, .dtype = AIT_F32, .rank = 1, .shape = {3}, .strides = {1}, .offset = 3};
  return ait_weight_store_add(s, &row);
}

static ait_status use_store(ait_allocator a, void *ctx) {
  AIT_UNUSED(ctx);
  ait_weight_store *s;
  AIT_TRY(ait_weight_store_create(a, &s));
  ait_status status = fill_store(a, s);
  if (!status) {
    ait_weights provider = ait_weight_store_provider(s);
    ait_tensor t;
    assert_null(provider.get(provider.ctx, "row", &t));
    assert_true(((float *)t.data)[2] == 5);
    assert_int_equal(ait_weight_store_count(s), 2);
    assert_string_equal(ait_weight_store_at(s, 0)->name, "w");
    expect_code(provider.get(provider.ctx, "x", &t), AIT_CODE_NOT_FOUND);
    assert_non_null(ait_weight_store_storage(s, 0));
    assert_null(ait_weight_store_storage(s, 1));
  }
  ait_weight_store_release(ait_weight_store_retain(s));
  ait_weight_store_release(s);
  return status;
}

static void weights_survive_failures(void **state) {
  AIT_UNUSED(state);
  test_every_allocation_fails(use_store, NULL);
}

static void weights_are_checked(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  ait_weight_store *s;
  assert_null(ait_weight_store_create(a, &s));
  assert_null(fill_store(a, s));
  ait_weight w = *ait_weight_store_find(s, "w");
  expect_code(ait_weight_store_add(s, &w), AIT_CODE_INVALID_MODEL); /* the name again */
  w.name = "v";
  w.offset = 1;
  expect_code(ait_weight_store_add(s, &w), AIT_CODE_INVALID_MODEL);
  w.offset = 0;
  w.storage = 9;
  expect_code(ait_weight_store_add(s, &w), AIT_CODE_INVALID_MODEL);
  w.storage = 0;
  w.rank = 99;
  expect_code(ait_weight_store_add(s, &w), AIT_CODE_INVALID_MODEL);
  w.rank = 2;
  w.dtype = (ait_dtype)99;
  expect_code(ait_weight_store_add(s, &w), AIT_CODE_INVALID_MODEL);
  ait_weight_store_release(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(storage_counts),
      cmocka_unit_test(tensors_check_sizes),
      cmocka_unit_test(contiguity),
      cmocka_unit_test(strides_are_bounded),
      cmocka_unit_test(copies_match_single_elements),
      cmocka_unit_test(copies_refuse),
      cmocka_unit_test(unsigned_64_keeps_its_range),
      cmocka_unit_test(dims_evaluate),
      cmocka_unit_test(dims_refuse),
      cmocka_unit_test(compare_tolerances),
      cmocka_unit_test(compare_specials),
      cmocka_unit_test(compare_integers_exactly),
      cmocka_unit_test(compare_complex_and_strides),
      cmocka_unit_test(weights_survive_failures),
      cmocka_unit_test(weights_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
