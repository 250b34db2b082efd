/* Broken files: each is one change away from a good one, and the message must name that change, quickly and in little memory. */
#include "import/import.h"
#include "import/pt2/memory_test_support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define FOLDER AIT_TEST_DATA "/pt2/malformed"
#define MORE AIT_TEST_DATA "/pt2/malformed_more"
#define TIME_LIMIT 5.0 /* seconds of this thread: other programs do not count */

/* What the message says; NULL: the file imports. */
static const struct {
  const char *file, *says;
} files[] = {
    {"ok_layout_c", NULL},
    {"ok_layout_a", NULL},
    {"ok_unknown_fields", NULL},
    {"ok_minor_999", NULL},
    {"ok_deflated", NULL},
    {"ok_reordered_comment", NULL},
    {"ok_no_sample_inputs", NULL},
    {"empty", "the file is empty"},
    {"text", "not a zip archive"},
    {"truncated_half", "no end of central directory"},
    {"truncated_last", "no end of central directory"},
    {"no_directory", "no end of central directory"},
    {"crc_model", "'m/models/model.json' is damaged"},
    {"crc_weight", "'m/data/weights/weight_0' is damaged"},
    {"name_dotdot", "leads out of the archive"},
    {"name_absolute", "absolute path"},
    {"name_nul", "NUL"},
    {"name_not_utf8", "not UTF-8"},
    {"duplicate_member", "two members named 'm/models/model.json'"},
    {"symlink_weight", "'m/data/weights/weight_0' is a symbolic link"},
    {"encrypted", "'m/models/model.json' is encrypted"},
    {"size_beyond_file", "'m/data/weights/weight_0' reaches beyond"},
    {"local_offset_beyond_file", "'m/data/weights/weight_0' lies beyond"},
    {"local_name_differs", "'m/models/model.json' has another name"},
    {"count_lie", "60000 members"},
    {"bomb_declared_10g", "'m/data/weights/weight_0' claims 10737418240 bytes"},
    {"bomb_300m", "'m/data/weights/weight_0' inflates to 314572800 bytes"},
    {"bomb_overlap_10g", "'m/extra/1'"},
    {"no_model", "holds no model"},
    {"archive_version_9", "archive_version"},
    {"archive_format_odd", "archive_format"},
    {"byteorder_big", "byteorder"},
    {"json_array", "no JSON object"},
    {"json_truncated", "model.json': JSON is malformed at byte"},
    {"json_trailing", "text after the end"},
    {"json_deep", "nested too deeply"},
    {"json_deep_ignored", "nested too deeply"},
    {"json_not_utf8", "not UTF-8"},
    {"json_nul", "escaped NUL"},
    {"json_int_overflow", "integer beyond 64 bits"},
    {"schema_999", "schema version 999"},
    {"schema_missing", "schema_version"},
    {"union_two_tags", "exactly one tag"},
    {"union_unknown_tag", "'q'"},
    {"op_unknown", "node 'linear': operator 'aten.frobnicate' is not known"},
    {"target_not_op", "'os.system' is no operator"},
    {"input_missing", "argument 'weight' is missing"},
    {"input_unknown_name", "'wieght'"},
    {"value_undefined", "'ghost'"},
    {"cycle", "node 'a' (aten.add.Tensor): argument 'other': value 'b'"},
    {"output_undefined", "output 0: value 'ghost'"},
    {"value_twice", "'linear' is defined twice"},
    {"dtype_77", "dtype code 77"},
    {"signature_short", "the graph has 3 inputs, the signature 2"},
    {"signature_unknown_parameter", "weight 'nope' is missing"},
    {"weight_file_missing", "weight_99' is missing"},
    {"weight_path_traversal", "no plain name"},
    {"shape_overflow", "[1099511627776, 1099511627776]"},
    {"size_negative", "[-4, 3]"},
    {"offset_beyond", "needs 4000048 bytes"},
    {"stride_beyond", "out of bounds"},
    {"strides_count", "2 sizes, but 1 strides"},
    {"weight_short", "needs 48 bytes, 'm/data/weights/weight_0' has 44"},
    {"weight_empty", "weights missing: 'm/data/weights/weight_0' is empty"},
    {"weight_dtype_0", "dtype code 0"},
    {"weight_shape_differs", "'weight'"},
    {"pickle_os_system", "a call of 'os system' where a dict of tensors belongs; nothing of it was run"},
    {"pickle_memo", "memo number"},
    {"pickle_no_mark", "no mark"},
    {"pickle_truncated", "ends early"},
    {"pickle_deep", "a tuple where a dict of tensors belongs"},
    {"pickle_storage_lie", "claims 1099511627776 elements"},
};

static void check_file(const char *folder, const char *name, const char *says) {
  char path[512];
  ait_graph *graph;
  test_memory memory = {.limit = (size_t)256 << 20};
  snprintf(path, sizeof path, "%s/%s.pt2", folder, name);
  double begin = ait_clock_thread_seconds();
  ait_status status = ait_import_pt2(test_memory_allocator(&memory), path, NULL, &graph);
  double seconds = ait_clock_thread_seconds() - begin;
  if (!says) {
    assert_string_equal(ait_status_message(status), "");
    assert_non_null(graph);
    ait_graph_destroy(graph);
  } else {
    const char *message = ait_status_message(status);
    if (!strstr(message, says) || !strstr(message, name)) fail_msg("%s: expected '%s', got '%s'", name, says, message);
    assert_int_equal(ait_code_exit(ait_status_code(status)), 3);
    assert_null(graph);
  }
  ait_status_ignore(status);
  assert_int_equal(memory.used, 0);
  if (seconds > TIME_LIMIT) fail_msg("%s: %.1f s", name, seconds);
}

static void test_files(void **state) {
  (void)state;
  for (size_t i = 0; i < AIT_COUNT(files); ++i) check_file(FOLDER, files[i].file, files[i].says);
  assert_int_not_equal(access("ait-was-here", F_OK), 0); /* the pickles try to make it */
}

/* The files of make_more.py; expected.tsv says which message each one gets. */
static void test_more_files(void **state) {
  (void)state;
  FILE *table = fopen(MORE "/expected.tsv", "r");
  char line[512];
  size_t count = 0;
  assert_non_null(table);
  while (fgets(line, sizeof line, table)) {
    char *says = strchr(line, '\t');
    assert_non_null(says);
    *says++ = 0;
    says[strcspn(says, "\n")] = 0;
    check_file(MORE, line, says);
    ++count;
  }
  fclose(table);
  assert_true(count >= 60);
  assert_int_not_equal(access("ait-was-here", F_OK), 0);
}

/* Every file of the folder is in the table. */
static void test_table_is_complete(void **state) {
  (void)state;
  DIR *folder = opendir(FOLDER);
  size_t count = 0;
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) count += ait_ends_with(entry->d_name, ".pt2");
  closedir(folder);
  assert_int_equal(count, AIT_COUNT(files));
}

/* ---- variations ------------------------------------------------------------------------------------------------------------------*/

static const char *const good_files[] = {"ok_layout_c", "ok_layout_a", "ok_deflated"};

static char *read_good(const char *name, size_t *size) {
  char path[512], *data;
  snprintf(path, sizeof path, FOLDER "/%s.pt2", name);
  assert_null(ait_file_read(ait_allocator_default(), path, 1 << 20, &data, size));
  return data;
}

/* An exact copy, so that a sanitizer sees every byte read beyond the end. true: it imports. */
static bool import_copy(const char *data, size_t size) {
  test_memory memory = {.limit = (size_t)256 << 20};
  char *copy = malloc(size ? size : 1);
  ait_graph *graph;
  memcpy(copy, data, size);
  ait_status status = ait_import_pt2_memory(test_memory_allocator(&memory), "copy", copy, size, NULL, &graph);
  bool good = !status;
  if (status) assert_true(strlen(ait_status_message(status)) > strlen("cannot import 'copy': "));
  assert_true(good == (graph != NULL));
  ait_status_ignore(status);
  ait_graph_destroy(graph);
  free(copy);
  assert_int_equal(memory.used, 0);
  return good;
}

static void test_prefixes(void **state) {
  (void)state;
  for (size_t f = 0; f < AIT_COUNT(good_files); ++f) {
    size_t size;
    char *data = read_good(good_files[f], &size);
    for (size_t length = 0; length < size; length += length < 64 || size - length < 64 ? 1 : 29) {
      if (import_copy(data, length)) fail_msg("%s: the first %zu of %zu bytes import", good_files[f], length, size);
    }
    assert_true(import_copy(data, size));
    ait_free(ait_allocator_default(), data, size + 1);
  }
}

static void test_single_bytes(void **state) {
  (void)state;
  static const uint8_t flips[] = {0x01, 0x80, 0xff, 0x20};
  for (size_t f = 0; f < AIT_COUNT(good_files); ++f) {
    size_t size;
    char *data = read_good(good_files[f], &size);
    for (size_t at = 0; at < size; at += 3) {
      char old = data[at];
      data[at] = (char)(old ^ flips[at / 3 % AIT_COUNT(flips)]);
      import_copy(data, size);
      data[at] = old;
    }
    ait_free(ait_allocator_default(), data, size + 1);
  }
}

/* Whichever allocation fails: out of memory, and nothing is lost. */
static void test_failing_allocator(void **state) {
  (void)state;
  for (size_t f = 0; f < AIT_COUNT(good_files); ++f) {
    size_t size;
    char *data = read_good(good_files[f], &size);
    bool done = false;
    for (size_t n = 1; !done; ++n) {
      test_memory memory = {.limit = (size_t)256 << 20, .fail_at = n};
      ait_graph *graph;
      ait_status status = ait_import_pt2_memory(test_memory_allocator(&memory), "copy", data, size, NULL, &graph);
      if (status) assert_int_equal(ait_status_code(status), AIT_CODE_OUT_OF_MEMORY);
      done = memory.count < n;
      if (done != (status == NULL))
        fail_msg("%s: allocation %zu failed, and the import says '%s'", good_files[f], n, ait_status_message(status));
      ait_status_ignore(status);
      ait_graph_destroy(graph);
      assert_int_equal(memory.used, 0);
    }
    ait_free(ait_allocator_default(), data, size + 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_files),    cmocka_unit_test(test_more_files),   cmocka_unit_test(test_table_is_complete),
      cmocka_unit_test(test_prefixes), cmocka_unit_test(test_single_bytes), cmocka_unit_test(test_failing_allocator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
