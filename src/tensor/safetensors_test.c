/* Safetensors: good files, what must be refused and how the message names it, shards, folders. */
#include "tensor/safetensors.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support.h"

#define FOLDER AIT_TEST_DATA "/safetensors/"

/* What the message says; NULL: the file is good. */
static const struct {
  const char *file, *says;
} files[] = {
    {"ok_plain.safetensors", NULL},
    {"ok_metadata.safetensors", NULL},
    {"ok_empty_and_scalar.safetensors", NULL},
    {"empty.safetensors", "shorter than 8 bytes"},
    {"short.safetensors", "shorter than 8 bytes"},
    {"header_beyond.safetensors", "header reaches beyond"},
    {"header_huge.safetensors", "longer than 100 MB"},
    {"header_text.safetensors", "does not begin with '{'"},
    {"header_array.safetensors", "does not begin with '{'"},
    {"header_space_first.safetensors", "does not begin with '{'"},
    {"header_not_utf8.safetensors", "not UTF-8"},
    {"truncated.safetensors", "tensor 'b': its data reaches beyond"},
    {"trailing.safetensors", "1 bytes behind the last tensor"},
    {"overlap.safetensors", "tensors 'a' and 'b' share bytes"},
    {"hole.safetensors", "unused bytes before tensor 'b'"},
    {"offsets_reversed.safetensors", "tensor 'a': its data ends before it begins"},
    {"offsets_negative.safetensors", "tensor 'a': an offset"},
    {"size_differs.safetensors", "tensor 'a': its shape needs 24 bytes, its offsets give 28"},
    {"shape_overflow.safetensors", "tensor 'a': its shape is too large"},
    {"shape_negative.safetensors", "tensor 'a': a size"},
    {"shape_float.safetensors", "tensor 'a': a size"},
    {"dtype_unknown.safetensors", "tensor 'a': dtype 'Q7' is not known"},
    {"dtype_sub_byte.safetensors", "tensor 'a': its elements do not fill whole bytes"},
    {"duplicate_name.safetensors", "one key twice"},
    {"metadata_number.safetensors", "'__metadata__' holds 'n'"},
    {"dotdot.safetensors.index.json", "shard '../ok_plain.safetensors' is no plain file name"},
    {"absent.safetensors.index.json", "shard 'model-00001-of-00002.safetensors' is not there"},
    {"lacks.safetensors.index.json", "tensor 'zzz' is not in its shard 'ok_plain.safetensors'"},
};

static void test_files(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < AIT_COUNT(files); ++i) {
    ait_tensor_file file;
    ait_tensor_file_init(&file, ait_allocator_default());
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s", files[i].file);
    ait_status status = ait_safetensors_open(path, &file);
    const char *message = ait_status_message(status);
    bool right = files[i].says ? strstr(message, files[i].says) && strstr(message, files[i].file) : !status;
    if (!right) fail_msg("%s: '%s'", files[i].file, message);
    if (status) assert_int_equal(ait_code_exit(ait_status_code(status)), 3);
    if (status) assert_int_equal(file.count, 0);
    ait_status_free(status);
    ait_tensor_file_deinit(&file);
  }
}

static void test_table_is_complete(void **state) {
  AIT_UNUSED(state);
  DIR *folder = opendir(FOLDER);
  size_t count = 0;
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  assert_int_equal(count, AIT_COUNT(files));
}

static void test_contents(void **state) {
  AIT_UNUSED(state);
  ait_tensor_file file;
  ait_tensor_file_init(&file, ait_allocator_default());
  assert_null(ait_safetensors_read(FOLDER "ok_plain.safetensors", &file));
  const ait_tensor *a = ait_tensor_file_find(&file, "a"), *b = ait_tensor_file_find(&file, "b");
  assert_int_equal(a->dtype, AIT_F32);
  assert_int_equal(a->rank, 2);
  for (int i = 0; i < 6; ++i) assert_true(((const float *)a->data)[i] == (float)(i + 1));
  assert_int_equal(b->dtype, AIT_I16);
  assert_true(((const int16_t *)b->data)[0] == -1 && ((const int16_t *)b->data)[1] == 7);
  assert_null(ait_safetensors_read(FOLDER "ok_empty_and_scalar.safetensors", &file)); /* adds */
  assert_int_equal(file.count, 4);
  ait_tensor_file_deinit(&file);
}

/* ---- made files ------------------------------------------------------------------------------------------------------------------*/
static size_t make(char *out, const char *header, const void *data, size_t size) {
  uint64_t length = strlen(header);
  memcpy(out, &length, 8);
  memcpy(out + 8, header, length);
  memcpy(out + 8 + length, data, size);
  return 8 + length + size;
}

static ait_status parse(const char *header, size_t size, ait_tensor_file *file) {
  char bytes[2048], data[256] = {0};
  ait_tensor_file_init(file, ait_allocator_default());
  return ait_safetensors_parse(bytes, make(bytes, header, data, size), file);
}

static void test_dtypes(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *name;
    ait_dtype dtype;
  } all[] = {{"BOOL", AIT_BOOL},
             {"U8", AIT_U8},
             {"I8", AIT_I8},
             {"F8_E5M2", AIT_F8E5M2},
             {"F8_E4M3", AIT_F8E4M3FN},
             {"F8_E8M0", AIT_F8E8M0FNU},
             {"F8_E4M3FNUZ", AIT_F8E4M3FNUZ},
             {"F8_E5M2FNUZ", AIT_F8E5M2FNUZ},
             {"I16", AIT_I16},
             {"U16", AIT_U16},
             {"F16", AIT_F16},
             {"BF16", AIT_BF16},
             {"I32", AIT_I32},
             {"U32", AIT_U32},
             {"F32", AIT_F32},
             {"C64", AIT_C64},
             {"F64", AIT_F64},
             {"I64", AIT_I64},
             {"U64", AIT_U64}};
  for (size_t i = 0; i < AIT_COUNT(all); ++i) {
    char header[160];
    size_t bytes = 3 * ait_dtype_size(all[i].dtype);
    snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%zu]}}   ", all[i].name, bytes);
    ait_tensor_file file;
    assert_null(parse(header, bytes, &file));
    assert_int_equal(file.items[0].tensor.dtype, all[i].dtype);
    assert_int_equal(file.items[0].tensor.shape[0], 3);
    ait_tensor_file_deinit(&file);
  }
}

static void test_more_refusals(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *header, *says;
    size_t size;
    ait_code code;
  } cases[] = {
      {"{\"x\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}", "elements of 4 bits", 2, AIT_CODE_UNSUPPORTED},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", "17 dims", 4,
       AIT_CODE_UNSUPPORTED},
      {"{\"x\":{\"shape\":[1],\"data_offsets\":[0,4]}}", "no text 'dtype'", 4, AIT_CODE_INVALID_MODEL},
      {"{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "no list 'shape'", 4, AIT_CODE_INVALID_MODEL},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", "data_offsets", 4, AIT_CODE_INVALID_MODEL},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", "data_offsets", 4, AIT_CODE_INVALID_MODEL},
      {"{\"x\":[]}", "is no object", 0, AIT_CODE_INVALID_MODEL},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904,8],\"data_offsets\":[0,0]}}", "too large", 0, AIT_CODE_INVALID_MODEL},
      {"{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "NUL", 4, AIT_CODE_INVALID_MODEL},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,18446744073709551615]}}", "integer beyond 64 bits", 4,
       AIT_CODE_INVALID_MODEL},
      {"{\"__metadata__\":[]}", "'__metadata__' is no object", 0, AIT_CODE_INVALID_MODEL},
      {"{} x", "text after the end", 0, AIT_CODE_INVALID_MODEL},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_tensor_file file;
    ait_status status = parse(cases[i].header, cases[i].size, &file);
    if (!status || !strstr(ait_status_message(status), cases[i].says)) fail_msg("%s: '%s'", cases[i].header, ait_status_message(status));
    assert_int_equal(ait_status_code(status), cases[i].code);
    ait_status_free(status);
    ait_tensor_file_deinit(&file);
  }
  ait_tensor_file file;
  assert_null(parse("{}", 0, &file)); /* no tensor at all */
  ait_tensor_file_deinit(&file);
}

/* 100,000 nested lists: no deep recursion. */
static void test_deep(void **state) {
  AIT_UNUSED(state);
  enum { DEPTH = 100000 };
  char *bytes = malloc(2 * DEPTH + 64), *at = bytes + 8;
  at += sprintf(at, "{\"x\":");
  memset(at, '[', DEPTH), at += DEPTH;
  memset(at, ']', DEPTH), at += DEPTH;
  *at++ = '}';
  uint64_t length = (uint64_t)(at - bytes - 8);
  memcpy(bytes, &length, 8);
  ait_tensor_file file;
  ait_tensor_file_init(&file, ait_allocator_default());
  ait_status status = ait_safetensors_parse(bytes, (size_t)(at - bytes), &file);
  assert_non_null(strstr(ait_status_message(status), "nested too deeply"));
  ait_status_free(status);
  free(bytes);
}

/* Every prefix is refused; every changed byte ends in tensors or an error. The copy is exact, for the sanitizers. */
static void test_variations(void **state) {
  AIT_UNUSED(state);
  char *data;
  size_t size;
  assert_null(ait_file_read(ait_allocator_default(), FOLDER "ok_metadata.safetensors", 1 << 20, &data, &size));
  for (size_t n = 0; n <= size; ++n) {
    char *copy = memcpy(malloc(n ? n : 1), data, n);
    ait_tensor_file file;
    ait_tensor_file_init(&file, ait_allocator_default());
    ait_status status = ait_safetensors_parse(copy, n, &file);
    assert_true((status == NULL) == (n == size));
    ait_status_free(status);
    ait_tensor_file_deinit(&file);
    free(copy);
  }
  for (size_t at = 0; at < size; ++at)
    for (int flip = 1; flip < 256; flip += 36) {
      char *copy = memcpy(malloc(size), data, size);
      copy[at] = (char)(copy[at] ^ flip);
      ait_tensor_file file;
      ait_tensor_file_init(&file, ait_allocator_default());
      ait_status_free(ait_safetensors_parse(copy, size, &file));
      ait_tensor_file_deinit(&file);
      free(copy);
    }
  ait_free(ait_allocator_default(), data, size + 1);
}

static ait_status read_all(ait_allocator a, void *ctx) {
  ait_tensor_file file;
  ait_tensor_file_init(&file, a);
  ait_status status = ait_safetensors_open(ctx, &file);
  ait_tensor_file_deinit(&file);
  return status;
}

/* ---- shards and folders ----------------------------------------------------------------------------------------------------------*/
static void write_file(const char *folder, const char *name, const void *data, size_t size) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_null(ait_file_write_all(ait_allocator_default(), path, data, size));
}

static void test_shards(void **state) {
  AIT_UNUSED(state);
  char folder[] = "/tmp/ait-safetensors-XXXXXX", path[512], bytes[512];
  assert_non_null(mkdtemp(folder));
  const char *header =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"extra\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]}}";
  write_file(folder, "one.safetensors", bytes, make(bytes, header, (float[3]){1, 2}, 9));
  header = "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}";
  char odd[5] = {7};
  memcpy(odd + 1, &(float){3.5f}, 4);
  write_file(folder, "two.safetensors", bytes, make(bytes, header, odd, 5));
  const char *index =
      "{\"metadata\":{\"total_size\":13},\"weight_map\":{\"c\":\"two.safetensors\",\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}";
  write_file(folder, "model.safetensors.index.json", index, strlen(index));
  ait_tensor_file file;
  ait_tensor_file_init(&file, ait_allocator_default());
  assert_null(ait_safetensors_open(folder, &file));
  assert_int_equal(file.count, 3); /* what the index does not name is not taken */
  assert_true(*(const float *)ait_tensor_file_find(&file, "c")->data == 3.5f);
  assert_int_equal((uintptr_t)ait_tensor_file_find(&file, "c")->data % 4, 0); /* a copy: the file has it at an odd address */
  assert_true(((const float *)ait_tensor_file_find(&file, "a")->data)[1] == 2);
  ait_tensor_file_deinit(&file);
  snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
  test_every_allocation_fails(read_all, path);
  unlink(path);
  ait_status status = ait_safetensors_open(folder, &file);
  assert_int_equal(ait_status_code(status), AIT_CODE_NOT_FOUND);
  ait_status_free(status);
  snprintf(path, sizeof path, "rm -r %s", folder);
  assert_int_equal(system(path), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_files),         cmocka_unit_test(test_table_is_complete),
      cmocka_unit_test(test_contents),      cmocka_unit_test(test_dtypes),
      cmocka_unit_test(test_more_refusals), cmocka_unit_test(test_deep),
      cmocka_unit_test(test_variations),    cmocka_unit_test(test_shards),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
