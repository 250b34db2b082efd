/* A crafted file may hold any graph that decodes, with all checksums right. Running it ends in an answer or an error, never in a crash:
 * small regions with changed bytes are built into models and run, with a limit on memory. */
#include "artifact/toy_models.h"
#include "runtime/runtime.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MEMORY_LIMIT ((size_t)16 << 20)

typedef struct limited {
  size_t used;
} limited;

static void *limited_alloc(void *ctx, size_t size, size_t align) {
  limited *l = ctx;
  if (size > MEMORY_LIMIT - l->used) return NULL;
  void *p = ait_alloc(ait_allocator_default(), size, align);
  if (p) l->used += size;
  return p;
}

static void limited_free(void *ctx, void *p, size_t size) {
  ((limited *)ctx)->used -= size;
  ait_free(ait_allocator_default(), p, size);
}

static uint64_t random_state = 88172645463325252u;
static uint32_t random_below(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 32) % n;
}

static float numbers[4096];

/* An input that fits the port as far as that can be seen from it. */
static ait_value input_for(const ait_port *port) {
  ait_value v = {.kind = port->kind};
  if (port->kind == AIT_VALUE_STRING) v.as.s = "x";
  if (port->kind == AIT_VALUE_INT) v.as.i = 3;
  if (port->kind != AIT_VALUE_TENSOR) return v;
  int64_t shape[AIT_MAX_RANK], count = 1;
  int32_t rank = port->rank < 0 ? 1 : port->rank;
  for (int32_t d = 0; d < rank; ++d) {
    shape[d] = port->rank < 0 ? 4 : port->shape[d].min < 2 && port->shape[d].max >= 3 ? 3 : port->shape[d].min;
    if (shape[d] < 0 || shape[d] > 64 || (count *= shape[d]) > 256) shape[d] = 0, count = 0;
  }
  v.as.tensor = ait_tensor_borrow(numbers, port->dtype, rank, shape);
  return v;
}

static ait_status run_model(ait_model *model, ait_allocator a) {
  ait_value inputs[16] = {0}, outputs[16] = {0};
  size_t input_count = ait_model_input_count(model), output_count = ait_model_output_count(model);
  if (input_count > AIT_COUNT(inputs) || output_count > AIT_COUNT(outputs)) return AIT_OK;
  for (size_t i = 0; i < input_count; ++i) {
    ait_port port;
    AIT_TRY(ait_model_input(model, i, &port));
    inputs[i] = input_for(&port);
  }
  ait_session_options options;
  ait_session_options_init(&options);
  options.allocator = a;
  ait_session *session;
  AIT_TRY(ait_session_create(model, &options, &session));
  ait_status status = ait_session_run(session, inputs, input_count, outputs, output_count);
  if (!status) status = ait_session_run(session, inputs, input_count, outputs, output_count);
  ait_session_destroy(session);
  return status;
}

static bool try_bytes(const char *bytes, size_t size, ait_weights weights) {
  limited l = {0};
  ait_allocator a = {&l, limited_alloc, limited_free};
  ait_region *region = NULL;
  ait_model *model = NULL;
  ait_status status = ait_region_decode(a, bytes, size, &region);
  bool decoded = status == AIT_OK;
  if (!status) status = ait_model_create(a, region, weights, NULL, NULL, NULL, &model);
  if (!status) status = run_model(model, a);
  ait_model_release(model);
  ait_region_destroy(region);
  ait_status_free(status);
  assert_int_equal(l.used, 0);
  return decoded;
}

static void test_changed_regions(void **state) {
  AIT_UNUSED(state);
  static const float data[6] = {1, 2, 3, 4, 5, 6};
  static const char *const names[] = {"w", "total", "a", "b"};
  ait_weight_store *store;
  assert_null(ait_weight_store_create(ait_allocator_default(), &store));
  for (size_t i = 0; i < AIT_COUNT(names); ++i) {
    assert_null(toy_add_weight(store, names[i], data, i ? 1 : 2, i ? (int64_t[]){4, 0} : (int64_t[]){3, 2}));
  }
  const ait_region regions[] = {toy_linear(), toy_counter(), toy_functional(), toy_swap(), toy_inputs(), toy_scalars(), toy_sizes()};
  uint32_t decoded = 0;
  for (size_t r = 0; r < AIT_COUNT(regions); ++r) {
    ait_text text;
    ait_text_init(&text, ait_allocator_default());
    assert_null(ait_region_encode(&regions[r], &text));
    char saved[4];
    for (int round = 0; round < 1500; ++round) {
      uint32_t changes = 1 + random_below(3), at[3];
      for (uint32_t c = 0; c < changes; ++c) {
        at[c] = random_below((uint32_t)text.length);
        saved[c] = text.data[at[c]];
        text.data[at[c]] = (char)(random_below(2) ? random_below(12) : random_below(256));
      }
      decoded += try_bytes(text.data, text.length, ait_weight_store_provider(store));
      for (uint32_t c = changes; c-- > 0;) text.data[at[c]] = saved[c];
    }
    ait_text_deinit(&text);
  }
  assert_true(decoded > 1000); /* else nothing was tested */
  ait_weight_store_release(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_changed_regions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
