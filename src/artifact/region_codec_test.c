#include "backends/region_codec.h"
#include "artifact/toy_models.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static ait_allocator heap(void) { return ait_allocator_default(); }

static void ok(ait_status status) {
  if (status) fail_msg("%s", ait_status_message(status));
}

/* Every kind of argument, a nested region that shares sizes, one that has its own, and one more below. */
static ait_region everything(void) {
  static ait_region inner, shared, own;
  inner = toy_sizes();
  shared = toy_linear();
  own = toy_swap();
  static const ait_symbol symbols[] = {{.name = "u0", .min = 0, .max = INT64_MAX, .hint = -1}};
  static const ait_dim_expr dims[] = {{.op = AIT_DIM_SYMBOL}, {.op = AIT_DIM_UNKNOWN}, {.op = AIT_DIM_POW, .a = 0, .b = 1}};
  own.symbols = symbols;
  own.symbol_count = 1;
  own.dims = dims;
  own.dim_count = AIT_COUNT(dims);
  own.values = NULL;
  own.value_count = own.input_count = own.output_count = 0;
  static const ait_arg inner_args[] = {{.kind = AIT_ARG_GRAPH, .as.graph = &inner}};
  static const ait_region_node inner_nodes[] = {{.op = "map", .arg_count = 1, .args = inner_args}};
  shared.nodes = inner_nodes;
  shared.node_count = 1;
  static const ait_arg leaf[] = {{.kind = AIT_ARG_NONE}, TOY_I(-5), {.kind = AIT_ARG_BOOL, .as.b = true}};
  static const ait_arg lists[] = {{.kind = AIT_ARG_LIST, .count = 3, .as.list = leaf}, {.kind = AIT_ARG_LIST}};
  static const ait_arg args[] = {
      {.kind = AIT_ARG_NONE},
      TOY_V(1),
      TOY_I(INT64_MIN),
      {.kind = AIT_ARG_FLOAT, .as.f = -0.0},
      {.kind = AIT_ARG_BOOL},
      {.kind = AIT_ARG_STRING, .count = 3, .as.string = "a\0b"},
      {.kind = AIT_ARG_STRING, .as.string = ""},
      {.kind = AIT_ARG_COMPLEX, .as.complex = {1, -2}},
      {.kind = AIT_ARG_DTYPE, .as.i = AIT_BF16},
      {.kind = AIT_ARG_DIM, .as.dim = TOY_2S0},
      {.kind = AIT_ARG_LIST, .count = 2, .as.list = lists},
      {.kind = AIT_ARG_GRAPH, .as.graph = &shared},
      {.kind = AIT_ARG_GRAPH, .as.graph = &own},
  };
  static const uint32_t results[] = {2, AIT_NO_INDEX};
  static const ait_region_node nodes[] = {TOY_NODE("all", AIT_NODE_INPLACE, args, results, "all"), {.op = "bare"}};
  ait_region r = toy_linear();
  TOY_PART(r, node, nodes);
  return r;
}

static ait_text encode(const ait_region *r) {
  ait_text text;
  ait_text_init(&text, heap());
  ok(ait_region_encode(r, &text));
  return text;
}

static void round_trip(ait_region r) {
  ait_text first = encode(&r);
  ait_region *copy;
  ok(ait_region_decode(heap(), first.data, first.length, &copy));
  ait_text second = encode(copy);
  assert_int_equal(first.length, second.length);
  assert_memory_equal(first.data, second.data, first.length);
  ait_text_deinit(&first);
  ait_text_deinit(&second);
  ait_region_destroy(copy);
}

static void test_round_trip(void **state) {
  AIT_UNUSED(state);
  round_trip(toy_linear());
  round_trip(toy_counter());
  round_trip(toy_functional());
  round_trip(toy_swap());
  round_trip(toy_inputs());
  round_trip(toy_scalars());
  round_trip(toy_sizes());
  round_trip(everything());
  round_trip((ait_region){.struct_size = sizeof(ait_region)});
}

static void test_contents(void **state) {
  AIT_UNUSED(state);
  ait_region r = everything(), *c;
  ok(ait_region_copy(heap(), &r, &c));
  const ait_region_node *n = &c->nodes[0];
  assert_string_equal(n->op, "all");
  assert_string_equal(n->module, "toy");
  assert_int_equal(n->flags, AIT_NODE_INPLACE);
  assert_true(n->args[2].as.i == INT64_MIN);
  assert_memory_equal(n->args[5].as.string, "a\0b", 4);
  assert_int_equal(n->args[10].as.list[0].as.list[1].as.i, -5);
  const ait_region *shared = n->args[11].as.graph, *own = n->args[12].as.graph;
  assert_ptr_equal(shared->dims, c->dims);
  assert_ptr_equal(shared->symbols, c->symbols);
  assert_ptr_not_equal(own->dims, c->dims);
  assert_string_equal(own->symbols[0].name, "u0");
  assert_int_equal(n->results[1], AIT_NO_INDEX);
  assert_int_equal(c->version, AIT_REGION_VERSION);
  ait_region_destroy(c);

  r = toy_scalars();
  ok(ait_region_copy(heap(), &r, &c));
  assert_int_equal(c->values[0].type, AIT_TYPE_INT);
  assert_int_equal(c->values[0].shape[0], TOY_N);
  assert_true(c->inputs[2].baked.as.f == 2.0);
  assert_int_equal(c->inputs[2].value, AIT_NO_INDEX);
  ait_region_destroy(c);
}

/* A private copy of exactly `size` bytes, so that the sanitizer sees every byte read beyond. */
static void decode_any(const char *data, size_t size, bool must_fail) {
  char *copy = malloc(size ? size : 1);
  memcpy(copy, data, size);
  ait_region *r = NULL;
  ait_status status = ait_region_decode(heap(), copy, size, &r);
  if (must_fail) assert_non_null(status);
  if (status) assert_true(ait_status_code(status) == AIT_CODE_INVALID_MODEL || ait_status_code(status) == AIT_CODE_INCOMPATIBLE);
  if (!status) {
    ait_text text = encode(r);
    ait_text_deinit(&text);
  }
  ait_region_destroy(r);
  ait_status_free(status);
  free(copy);
}

static void test_hostile(void **state) {
  AIT_UNUSED(state);
  ait_region r = everything();
  ait_text text = encode(&r);
  for (size_t n = 0; n < text.length; ++n) decode_any(text.data, n, true);
  for (size_t i = 0; i < text.length; ++i) {
    static const unsigned char changes[] = {1, 2, 0x80, 0xff};
    for (size_t k = 0; k < AIT_COUNT(changes); ++k) {
      text.data[i] = (char)(text.data[i] ^ changes[k]);
      decode_any(text.data, text.length, false);
      text.data[i] = (char)(text.data[i] ^ changes[k]);
    }
  }
  ait_text_append(&text, "", 1);
  decode_any(text.data, text.length, true);
  text.data[8] = 2; /* version */
  ait_region *out;
  ait_status status = ait_region_decode(heap(), text.data, text.length, &out);
  assert_int_equal(ait_status_code(status), AIT_CODE_INCOMPATIBLE);
  ait_status_free(status);
  ait_text_deinit(&text);
}

static void test_encode_refuses(void **state) {
  AIT_UNUSED(state);
  static ait_arg deep[10];
  for (int i = 0; i < 9; ++i) deep[i] = (ait_arg){.kind = AIT_ARG_LIST, .count = 1, .as.list = &deep[i + 1]};
  ait_region_node node = {.op = "x", .arg_count = 1, .args = deep};
  ait_region r = {.struct_size = sizeof r, .node_count = 1, .nodes = &node};
  static const ait_arg strings[] = {{.kind = AIT_ARG_STRING}}, graphs[] = {{.kind = AIT_ARG_GRAPH}}, kinds[] = {{.kind = (ait_arg_kind)77}};
  const ait_arg *bad[] = {deep, strings, graphs, kinds};
  for (size_t i = 0; i < AIT_COUNT(bad); ++i) {
    ait_text text;
    ait_text_init(&text, heap());
    node.args = bad[i];
    ait_status status = ait_region_encode(&r, &text);
    assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
    assert_int_equal(text.length, 0);
    ait_status_free(status);
    ait_text_deinit(&text);
  }
}

/* ---- memory --------------------------------------------------------------------------------------------------------------------------*/
typedef struct failing {
  long left, live;
} failing;

static void *failing_alloc(void *ctx, size_t size, size_t align) {
  failing *f = ctx;
  if (f->left-- <= 0) return NULL;
  ++f->live;
  return ait_alloc(heap(), size, align);
}

static void failing_free(void *ctx, void *p, size_t size) {
  --((failing *)ctx)->live;
  ait_free(heap(), p, size);
}

static void test_out_of_memory(void **state) {
  AIT_UNUSED(state);
  ait_region r = everything();
  failing f = {0};
  ait_allocator a = {&f, failing_alloc, failing_free};
  bool done = false;
  for (long n = 0; !done && n < 1000; ++n) {
    f = (failing){.left = n};
    ait_region *copy = NULL;
    ait_status status = ait_region_copy(a, &r, &copy);
    done = status == AIT_OK;
    if (!done) assert_int_equal(ait_status_code(status), AIT_CODE_OUT_OF_MEMORY);
    ait_status_free(status);
    ait_region_destroy(copy);
    assert_int_equal(f.live, 0);
  }
  assert_true(done);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_contents), cmocka_unit_test(test_hostile),
                                     cmocka_unit_test(test_encode_refuses), cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
