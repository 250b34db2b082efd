#include "tensor/tensor.h"

#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/test_support.h"

#include <stdio.h>
#include <unistd.h>
#include <zip.h>

static void expect_code(ait_status s, ait_code code) {
  assert_int_equal(ait_status_code(s), code);
  ait_status_free(s);
}

/* ---- npy -----------------------------------------------------------------------------------------------------------------------*/
/* A whole .npy of the given version: the header padded with blanks, then the data. Returns its size. */
static size_t make_npy(char *out, int version, const char *header, const void *data, size_t data_bytes) {
  size_t length = strlen(header) + 1, prefix = version == 1 ? 10 : 12;
  memcpy(out, "\x93NUMPY", 6);
  out[6] = (char)version;
  out[7] = 0;
  for (size_t i = 8; i < prefix; i++) out[i] = (char)(length >> (8 * (i - 8)));
  memcpy(out + prefix, header, length - 1);
  out[prefix + length - 1] = '\n';
  if (data_bytes) memcpy(out + prefix + length, data, data_bytes);
  return prefix + length + data_bytes;
}

static ait_status parse(int version, const char *header, const void *data, size_t data_bytes, ait_tensor *out) {
  static char file[1 << 17];
  return ait_npy_parse(ait_allocator_default(), file, make_npy(file, version, header, data, data_bytes), out);
}

static void npy_versions_and_orders(void **state) {
  AIT_UNUSED(state);
  float data[6] = {0, 1, 2, 3, 4, 5};
  for (int version = 1; version <= 3; version++) {
    ait_tensor t;
    assert_null(parse(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data, sizeof data, &t));
    assert_int_equal(t.dtype, AIT_F32);
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.shape[1], 3);
    assert_true(ait_tensor_is_contiguous(&t));
    assert_memory_equal(t.data, data, sizeof data);
    ait_tensor_release(&t);
    assert_null(parse(version, "{\"shape\":(2L,3L),'descr':'<f4','fortran_order':True}", data, sizeof data, &t));
    assert_int_equal(t.strides[0], 1);
    assert_int_equal(t.strides[1], 2);
    ait_tensor_release(&t);
  }
}

static void npy_shapes(void **state) {
  AIT_UNUSED(state);
  ait_tensor t;
  int64_t data[3] = {1, 2, 3};
  assert_null(parse(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", data, 8, &t));
  assert_int_equal(t.rank, 0);
  ait_tensor_release(&t);
  assert_null(parse(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", data, 24, &t));
  assert_int_equal(t.shape[0], 3);
  ait_tensor_release(&t);
  assert_null(parse(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (5, 0, 2), }", data, 0, &t));
  assert_int_equal(ait_tensor_count(&t), 0);
  ait_tensor_release(&t);
}

static void npy_big_endian_is_swapped(void **state) {
  AIT_UNUSED(state);
  ait_tensor t;
  assert_null(parse(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", "\x01\x02\xFF\xFE", 4, &t));
  assert_int_equal(((int16_t *)t.data)[0], 0x102);
  assert_int_equal(((int16_t *)t.data)[1], -2);
  ait_tensor_release(&t);
  assert_null(parse(1, "{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", "\x3F\x80\0\0\x40\0\0\0", 8, &t));
  assert_true(((float *)t.data)[0] == 1 && ((float *)t.data)[1] == 2);
  ait_tensor_release(&t);
}

static void npy_booleans_become_0_and_1(void **state) {
  AIT_UNUSED(state);
  ait_tensor t;
  assert_null(parse(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\x00\x01\x7F", 3, &t));
  assert_memory_equal(t.data, "\x00\x01\x01", 3);
  ait_tensor_release(&t);
}

static void npy_refuses(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *header;
    ait_code code;
  } cases[] = {
      {"", AIT_CODE_INVALID_MODEL},
      {"[]", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False}", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': [1]}", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", AIT_CODE_INVALID_MODEL}, /* only two floats follow */
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", AIT_CODE_INVALID_MODEL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", AIT_CODE_LIMIT},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4, 0)}", AIT_CODE_LIMIT},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", AIT_CODE_UNSUPPORTED},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", AIT_CODE_UNSUPPORTED},
      {"{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", AIT_CODE_UNSUPPORTED},
      {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", AIT_CODE_UNSUPPORTED},
      {"{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}", AIT_CODE_UNSUPPORTED},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", AIT_CODE_UNSUPPORTED},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); i++) {
    ait_tensor t;
    for (int version = 1; version <= 2; version++) expect_code(parse(version, cases[i].header, "12345678", 8, &t), cases[i].code);
  }
  ait_tensor t;
  expect_code(parse(4, "{}", "", 0, &t), AIT_CODE_UNSUPPORTED);
  expect_code(ait_npy_parse(ait_allocator_default(), "\x93NUMPY\x02\0\xFF\xFF\xFF\x7F", 12, &t), AIT_CODE_LIMIT);
  expect_code(ait_npy_parse(ait_allocator_default(), "", 0, &t), AIT_CODE_INVALID_MODEL);
}

/* ---- npz -----------------------------------------------------------------------------------------------------------------------*/
static char path[64];

static int make_path(void **state) {
  AIT_UNUSED(state);
  snprintf(path, sizeof path, "/tmp/ait-npz-%ld", (long)getpid());
  return 0;
}
static int remove_path(void **state) {
  AIT_UNUSED(state);
  unlink(path);
  return 0;
}

/* One tensor of each dtype, some of them transposed. */
static ait_status fill(ait_allocator a, ait_tensor_file *f) {
  for (int d = 1; d <= 21; d++) {
    ait_tensor t;
    AIT_TRY(ait_tensor_create(a, (ait_dtype)d, 2, (int64_t[]){3, 5}, &t));
    for (int i = 0; i < 15; i++) ait_element_set_f64((char *)t.data + (size_t)i * ait_dtype_size(t.dtype), t.dtype, i % 2 ? i : 1);
    if (d % 2) {
      t.shape[0] = 5, t.shape[1] = 3;
      t.strides[0] = 1, t.strides[1] = 5;
    }
    ait_status status = ait_tensor_file_add(f, ait_dtype_name(t.dtype), &t);
    ait_tensor_release(&t);
    AIT_TRY(status);
  }
  int64_t borrowed[] = {1, 2};
  ait_tensor t = ait_tensor_borrow(borrowed, AIT_I64, 1, (int64_t[]){2});
  return ait_tensor_file_add(f, "geliehen \xC3\xA4", &t);
}

static ait_status write_and_read(ait_allocator a, void *ctx) {
  AIT_UNUSED(ctx);
  ait_tensor_file out, in;
  ait_tensor_file_init(&out, a);
  ait_tensor_file_init(&in, a);
  ait_status status = AIT_OK;
  AIT_GOTO(fill(a, &out));
  AIT_GOTO(ait_npz_write(path, &out));
  AIT_GOTO(ait_npz_read(path, &in));
  assert_int_equal(in.count, out.count);
  for (size_t i = 0; i < in.count; i++) {
    ait_compare_result r;
    ait_compare_rule exact = {.exact = true};
    assert_string_equal(in.items[i].name, out.items[i].name);
    assert_ptr_equal(ait_tensor_file_find(&in, out.items[i].name), &in.items[i].tensor);
    AIT_GOTO(ait_compare(&in.items[i].tensor, &out.items[i].tensor, &exact, &r));
    assert_true(r.pass);
  }
cleanup:
  ait_tensor_file_deinit(&in);
  ait_tensor_file_deinit(&out);
  return status;
}

static void npz_round_trip(void **state) {
  AIT_UNUSED(state);
  assert_null(write_and_read(ait_allocator_default(), NULL));
}

static void npz_survives_failures(void **state) {
  AIT_UNUSED(state);
  test_every_allocation_fails(write_and_read, NULL);
}

static void npz_bytes_are_the_same(void **state) {
  AIT_UNUSED(state);
  ait_allocator a = ait_allocator_default();
  char *data[2];
  size_t size[2];
  for (int i = 0; i < 2; i++) {
    ait_tensor_file f;
    ait_tensor_file_init(&f, a);
    assert_null(fill(a, &f));
    assert_null(ait_npz_write(path, &f));
    ait_tensor_file_deinit(&f);
    assert_null(ait_file_read(a, path, 1 << 20, &data[i], &size[i]));
  }
  assert_int_equal(size[0], size[1]);
  assert_memory_equal(data[0], data[1], size[0]);
  for (int i = 0; i < 2; i++) ait_free(a, data[i], size[i] + 1);
}

typedef struct member {
  const char *name;
  const void *data;
  size_t size;
  bool deflate;
} member;

static void make_zip(const member *members, size_t count) {
  int error;
  unlink(path);
  zip_t *z = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &error);
  assert_non_null(z);
  for (size_t i = 0; i < count; i++) {
    zip_int64_t at = zip_file_add(z, members[i].name, zip_source_buffer(z, members[i].data, members[i].size, 0), 0);
    assert_true(at >= 0);
    assert_int_equal(zip_set_file_compression(z, (zip_uint64_t)at, members[i].deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0), 0);
  }
  assert_int_equal(zip_close(z), 0);
}

static ait_status read_zip(const member *members, size_t count, ait_tensor_file *f) {
  make_zip(members, count);
  ait_tensor_file_init(f, ait_allocator_default());
  return ait_npz_read(path, f);
}

static void npz_deflated(void **state) {
  AIT_UNUSED(state);
  static char npy[1 << 17];
  static float data[20000];
  for (size_t i = 0; i < AIT_COUNT(data); i++) data[i] = (float)(i % 7);
  size_t size = make_npy(npy, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (20000,), }", data, sizeof data);
  ait_tensor_file f;
  member members[] = {{"a.npy", npy, size, true}, {"folder/", "", 0, false}, {"folder/b.npy", npy, size, false}};
  assert_null(read_zip(members, 3, &f));
  assert_int_equal(f.count, 2);
  assert_memory_equal(ait_tensor_file_find(&f, "a")->data, data, sizeof data);
  assert_memory_equal(ait_tensor_file_find(&f, "folder/b")->data, data, sizeof data);
  ait_tensor_file_deinit(&f);
}

static void npz_refuses(void **state) {
  AIT_UNUSED(state);
  char npy[256];
  size_t size = make_npy(npy, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678", 8);
  member other[] = {{"readme.txt", "hello", 5, false}}, shortened[] = {{"a.npy", npy, size - 1, true}}, none[] = {{"a.npy", npy, 0, false}},
         tiny[] = {{"a.npy", npy, 11, false}}, unnamed[] = {{".npy", npy, size, false}};
  const member *const cases[] = {other, shortened, none, tiny, unnamed};
  for (size_t i = 0; i < AIT_COUNT(cases); i++) {
    ait_tensor_file f;
    ait_status s = read_zip(cases[i], 1, &f);
    assert_int_equal(f.count, 0);
    assert_non_null(strstr(ait_status_message(s), cases[i][0].name));
    expect_code(s, AIT_CODE_INVALID_MODEL);
    ait_tensor_file_deinit(&f);
  }
  ait_tensor_file f;
  ait_tensor_file_init(&f, ait_allocator_default());
  assert_null(ait_file_write_all(ait_allocator_default(), path, "not a zip", 9));
  expect_code(ait_npz_read(path, &f), AIT_CODE_INVALID_MODEL);
  expect_code(ait_npz_parse("", 0, &f), AIT_CODE_INVALID_MODEL);
  unlink(path);
  expect_code(ait_npz_read(path, &f), AIT_CODE_NOT_FOUND);
  ait_tensor_file_deinit(&f);
}

/* 2 GiB of zeros in a few kilobytes of headers: the sizes in a small archive are changed to it. */
static void npz_bombs_are_refused(void **state) {
  AIT_UNUSED(state);
  char npy[256];
  size_t size = make_npy(npy, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2147483648,), }", "", 0), zip_size;
  member members[] = {{"bomb.npy", npy, size, true}};
  char *zip;
  make_zip(members, 1);
  assert_null(ait_file_read(ait_allocator_default(), path, 1 << 20, &zip, &zip_size));
  uint32_t claimed = 0x80000100u;
  for (size_t i = 0; i + 46 < zip_size; i++) {
    if (memcmp(zip + i, "PK\x01\x02", 4) == 0) memcpy(zip + i + 24, &claimed, 4);
    if (memcmp(zip + i, "PK\x03\x04", 4) == 0) memcpy(zip + i + 22, &claimed, 4);
  }
  ait_tensor_file f;
  ait_tensor_file_init(&f, ait_allocator_default());
  expect_code(ait_npz_parse(zip, zip_size, &f), AIT_CODE_LIMIT);
  ait_tensor_file_deinit(&f);
  ait_free(ait_allocator_default(), zip, zip_size + 1);
}

/* Every file that is one byte, or one cut, away from a good one: read or refused, nothing else. A changed element must be noticed. */
static void npz_damage_is_harmless(void **state) {
  AIT_UNUSED(state);
  char npy[256];
  size_t size = make_npy(npy, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678", 8), zip_size;
  member members[] = {{"a.npy", npy, size, true}, {"b.npy", npy, size, false}};
  char *zip;
  make_zip(members, 2);
  assert_null(ait_file_read(ait_allocator_default(), path, 1 << 20, &zip, &zip_size));
  for (size_t cut = 0; cut <= zip_size; cut++) {
    for (int change = 0; change < 256; change += 51) {
      size_t at = cut < zip_size ? cut : 0;
      char old = zip[at];
      zip[at] = (char)(zip[at] ^ change);
      ait_tensor_file f;
      ait_tensor_file_init(&f, ait_allocator_default());
      ait_status s = ait_npz_parse(zip, change ? zip_size : cut, &f);
      if (!s && f.count == 2) {
        for (size_t i = 0; i < 2; i++) assert_memory_equal(f.items[i].tensor.data, "12345678", 8);
      }
      ait_status_free(s);
      ait_tensor_file_deinit(&f);
      zip[at] = old;
    }
  }
  ait_free(ait_allocator_default(), zip, zip_size + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(npy_versions_and_orders),
      cmocka_unit_test(npy_shapes),
      cmocka_unit_test(npy_big_endian_is_swapped),
      cmocka_unit_test(npy_booleans_become_0_and_1),
      cmocka_unit_test(npy_refuses),
      cmocka_unit_test(npz_round_trip),
      cmocka_unit_test(npz_survives_failures),
      cmocka_unit_test(npz_bytes_are_the_same),
      cmocka_unit_test(npz_deflated),
      cmocka_unit_test(npz_refuses),
      cmocka_unit_test(npz_bombs_are_refused),
      cmocka_unit_test(npz_damage_is_harmless),
  };
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
