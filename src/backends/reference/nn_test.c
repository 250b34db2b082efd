/* Operators against PyTorch's answers: the .json files of tests/data/ref list calls, the .npz files beside them hold their tensors (made
 * by nn_cases.py there). */
#include "backends/reference/nn.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h> /* needs the headers above */

typedef struct bench {
  ait_arena arena;
  ait_tensor_file file;
  ait_region_value *values;
  ait_ref_value *table;
  uint32_t count;
} bench;
enum { MAX_VALUES = 128 };

static bool member(json_object *o, const char *key, json_object **out) { return json_object_object_get_ex(o, key, out); }
static const char *text_of(json_object *o, const char *key) {
  json_object *m;
  return member(o, key, &m) ? json_object_get_string(m) : NULL;
}

/* The stored tensor with its real dtype; "swap": as a view whose last two dims are swapped in memory. */
static void load_tensor(bench *b, json_object *o, ait_tensor *out) {
  const ait_tensor *stored = ait_tensor_file_find(&b->file, text_of(o, "t"));
  assert_non_null(stored);
  ait_tensor t = *stored;
  t.dtype = ait_dtype_from_name(text_of(o, "dtype"));
  json_object *swap;
  assert_null(ait_tensor_create(ait_allocator_default(), t.dtype, t.rank, t.shape, out));
  if (member(o, "swap", &swap) && t.rank >= 2) {
    int32_t r = t.rank;
    out->strides[r - 1] = out->shape[r - 2];
    out->strides[r - 2] = 1;
  }
  if (ait_tensor_count(&t) > 0) assert_null(ait_tensor_copy(out, &t));
}

static ait_arg read_arg(bench *b, json_object *o) {
  json_object *m;
  if (!o) return (ait_arg){.kind = AIT_ARG_NONE};
  if (member(o, "t", &m)) {
    uint32_t id = b->count++;
    assert_true(id < MAX_VALUES);
    b->table[id].type = AIT_TYPE_TENSOR;
    load_tensor(b, o, &b->table[id].as.tensor);
    b->values[id] = (ait_region_value){.name = "x", .type = AIT_TYPE_TENSOR, .dtype = b->table[id].as.tensor.dtype, .rank = -1};
    return (ait_arg){.kind = AIT_ARG_VALUE, .as.value = id};
  }
  if (member(o, "i", &m)) return (ait_arg){.kind = AIT_ARG_INT, .as.i = json_object_get_int64(m)};
  if (member(o, "f", &m)) return (ait_arg){.kind = AIT_ARG_FLOAT, .as.f = strtod(json_object_get_string(m), NULL)};
  if (member(o, "b", &m)) return (ait_arg){.kind = AIT_ARG_BOOL, .as.b = json_object_get_boolean(m)};
  if (member(o, "s", &m))
    return (ait_arg){.kind = AIT_ARG_STRING, .count = (uint32_t)json_object_get_string_len(m), .as.string = json_object_get_string(m)};
  if (member(o, "d", &m)) return (ait_arg){.kind = AIT_ARG_DTYPE, .as.i = ait_dtype_from_name(json_object_get_string(m))};
  if (member(o, "c", &m))
    return (ait_arg){
        .kind = AIT_ARG_COMPLEX,
        .as.complex = {json_object_get_double(json_object_array_get_idx(m, 0)), json_object_get_double(json_object_array_get_idx(m, 1))}};
  assert_true(member(o, "l", &m));
  uint32_t n = (uint32_t)json_object_array_length(m);
  ait_arg *list = ait_arena_array(&b->arena, n + 1, sizeof *list, 8);
  assert_non_null(list);
  for (uint32_t i = 0; i < n; ++i) list[i] = read_arg(b, json_object_array_get_idx(m, i));
  return (ait_arg){.kind = AIT_ARG_LIST, .count = n, .as.list = list};
}

/* Prints what differs; true when it agrees. */
static bool agrees(bench *b, json_object *want, const ait_tensor *got, const char *what) {
  ait_tensor w;
  load_tensor(b, want, &w);
  json_object *tol, *shape_only;
  member(want, "tol", &tol);
  ait_compare_rule rule = {.rtol = json_object_get_double(json_object_array_get_idx(tol, 0)),
                           .atol = json_object_get_double(json_object_array_get_idx(tol, 1))};
  rule.exact = rule.rtol == 0 && rule.atol == 0;
  bool same = got->dtype == w.dtype && ait_tensor_same_shape(got, &w);
  if (!same) {
    char a[128], e[128];
    ait_tensor_shape_text(got, a, sizeof a);
    ait_tensor_shape_text(&w, e, sizeof e);
    printf("%s: %s %s, want %s %s\n", what, ait_dtype_name(got->dtype), a, ait_dtype_name(w.dtype), e);
  } else if (!member(want, "shape_only", &shape_only)) {
    ait_compare_result result;
    assert_null(ait_compare(got, &w, &rule, &result));
    same = result.pass;
    if (!same)
      printf("%s: %lld of %lld differ, worst got %.9g, want %.9g at %lld\n", what, (long long)result.mismatches, (long long)result.count,
             result.worst_got, result.worst_want, (long long)result.worst_index);
  }
  ait_tensor_release(&w);
  return same;
}

static bool value_agrees(bench *b, json_object *want, const ait_ref_value *got, const char *what) {
  json_object *list;
  if (!member(want, "list", &list)) return got->type == AIT_TYPE_TENSOR && agrees(b, want, &got->as.tensor, what);
  bool ok = got->type == AIT_TYPE_TENSOR_LIST && got->as.list.count == json_object_array_length(list);
  for (uint32_t i = 0; ok && i < got->as.list.count; ++i) ok = agrees(b, json_object_array_get_idx(list, i), &got->as.list.items[i], what);
  return ok;
}

static bool run_case(bench *b, json_object *c, size_t index, bool fp64) {
  json_object *args, *outs, *after, *inplace;
  member(c, "args", &args);
  member(c, "out", &outs);
  uint32_t arg_count = (uint32_t)json_object_array_length(args), out_count = (uint32_t)json_object_array_length(outs), results[8];
  ait_region_value values[MAX_VALUES] = {{0}};
  ait_ref_value table[MAX_VALUES] = {{0}}, made[8] = {{0}};
  b->values = values;
  b->table = table;
  b->count = 0;
  ait_arg *list = ait_arena_array(&b->arena, arg_count + 1, sizeof *list, 8);
  for (uint32_t i = 0; i < arg_count; ++i) list[i] = read_arg(b, json_object_array_get_idx(args, i));
  uint32_t given = b->count;
  for (uint32_t i = 0; i < out_count; ++i) {
    json_object *o = json_object_array_get_idx(outs, i);
    results[i] = b->count;
    const char *dtype = text_of(o, "dtype");
    values[b->count++] = (ait_region_value){
        .name = "y", .type = dtype ? AIT_TYPE_TENSOR : AIT_TYPE_TENSOR_LIST, .dtype = ait_dtype_from_name(dtype ? dtype : ""), .rank = -1};
  }
  uint32_t flags = member(c, "inplace", &inplace) ? AIT_NODE_INPLACE : 0;
  ait_region_node node = {.op = text_of(c, "op"),
                          .flags = flags,
                          .arg_count = arg_count,
                          .args = list,
                          .result_count = out_count,
                          .results = results,
                          .name = "n",
                          .module = ""};
  ait_region region = {.struct_size = sizeof region,
                       .version = AIT_REGION_VERSION,
                       .value_count = b->count,
                       .values = values,
                       .node_count = 1,
                       .nodes = &node};
  char what[160];
  snprintf(what, sizeof what, "case %zu %s%s", index, node.op, fp64 ? " (fp64)" : "");
  ait_status status = ait_ref_run_node(&region, &node, ait_allocator_default(), NULL, fp64, NULL, table, made);
  bool ok = status == AIT_OK;
  if (!ok) printf("%s: %s\n", what, ait_status_message(status));
  ait_status_free(status);
  for (uint32_t i = 0; ok && !fp64 && i < out_count; ++i) ok = value_agrees(b, json_object_array_get_idx(outs, i), &made[i], what);
  if (ok && !fp64 && member(c, "after", &after)) {
    json_object_object_foreach(after, key, value) ok = ok && agrees(b, value, &table[list[atoi(key)].as.value].as.tensor, what);
  }
  for (uint32_t i = 0; i < out_count; ++i) ait_ref_value_release(ait_allocator_default(), &made[i]);
  for (uint32_t i = 0; i < given; ++i) ait_ref_value_release(ait_allocator_default(), &table[i]);
  return ok;
}

static void run_file(const char *npz, const char *json) {
  bench b = {0};
  ait_arena_init(&b.arena, ait_allocator_default());
  ait_tensor_file_init(&b.file, ait_allocator_default());
  assert_null(ait_npz_read(npz, &b.file));
  json_object *root = json_object_from_file(json), *cases;
  assert_non_null(root);
  assert_true(member(root, "cases", &cases));
  size_t n = json_object_array_length(cases), failed = 0;
  for (size_t i = 0; i < n; ++i) {
    json_object *c = json_object_array_get_idx(cases, i);
    failed += !run_case(&b, c, i, false) || !run_case(&b, c, i, true);
  }
  printf("%zu of %zu cases agree\n", n - failed, n);
  json_object_put(root);
  ait_tensor_file_deinit(&b.file);
  ait_arena_deinit(&b.arena);
  assert_int_equal(failed, 0);
}

static void test_nn(void **state) {
  AIT_UNUSED(state);
  run_file(AIT_TEST_DATA "/ref/nn.npz", AIT_TEST_DATA "/ref/nn.json");
}

static void test_raw(void **state) {
  AIT_UNUSED(state);
  run_file(AIT_TEST_DATA "/ref/raw.npz", AIT_TEST_DATA "/ref/raw.json");
}

static void test_complex(void **state) {
  AIT_UNUSED(state);
  run_file(AIT_TEST_DATA "/ref/complex.npz", AIT_TEST_DATA "/ref/complex.json");
}

static void test_more(void **state) {
  AIT_UNUSED(state);
  run_file(AIT_TEST_DATA "/ref/more.npz", AIT_TEST_DATA "/ref/more.json");
}

static void test_faults(void **state) {
  AIT_UNUSED(state);
  run_file(AIT_TEST_DATA "/ref/faults.npz", AIT_TEST_DATA "/ref/faults.json");
}

static void test_vision(void **state) {
  AIT_UNUSED(state);
  run_file(AIT_TEST_DATA "/ref/vision.npz", AIT_TEST_DATA "/ref/vision.json");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nn),   cmocka_unit_test(test_raw),    cmocka_unit_test(test_complex),
                                     cmocka_unit_test(test_more), cmocka_unit_test(test_faults), cmocka_unit_test(test_vision)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
