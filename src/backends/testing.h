/* Regions built by hand, and backends compared on them. For tests only. */
#ifndef AIT_SRC_BACKENDS_TESTING_H
#define AIT_SRC_BACKENDS_TESTING_H

#include "backends/registry.h"
#include "base/base.h"
#include "tensor/tensor.h"
#include <ait/backend.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RB_MAX = 256, RB_ARGS = 4096, RB_RUNS = 8 };

/* Everything is in fixed arrays; `args` holds all argument lists, nodes and lists refer to it. */
typedef struct region_builder {
  ait_region region;
  ait_symbol symbols[8];
  ait_dim_expr dims[RB_MAX];
  ait_region_value values[RB_MAX];
  ait_dim shapes[RB_MAX][AIT_MAX_RANK];
  ait_region_node nodes[RB_MAX];
  uint32_t results[RB_MAX][4];
  ait_region_input inputs[RB_MAX];
  ait_region_output outputs[RB_MAX];
  ait_arg args[RB_ARGS];
  uint32_t arg_count;
  ait_weight_store *weights;
  char names[RB_MAX][16];
  uint32_t user_count;
  uint64_t seed;
  ait_option option; /* of the backend under test; key NULL: none */
} region_builder;

static inline float rb_random(region_builder *r) {
  r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(r->seed >> 40) / (double)(1 << 23) - 1.0);
}

static inline void rb_init(region_builder *r) {
  memset(r, 0, sizeof *r);
  r->seed = 7;
  r->region = (ait_region){.struct_size = sizeof r->region,
                           .version = AIT_REGION_VERSION,
                           .name = "test",
                           .symbols = r->symbols,
                           .dims = r->dims,
                           .values = r->values,
                           .nodes = r->nodes,
                           .inputs = r->inputs,
                           .outputs = r->outputs};
  assert_null(ait_weight_store_create(ait_allocator_default(), &r->weights));
}
static inline void rb_deinit(region_builder *r) { ait_weight_store_release(r->weights); }

static inline ait_dim rb_const(region_builder *r, int64_t value) {
  for (uint32_t i = 0; i < r->region.dim_count; ++i) {
    if (r->dims[i].op == AIT_DIM_CONST && r->dims[i].value == value) return i;
  }
  assert_true(r->region.dim_count < RB_MAX);
  r->dims[r->region.dim_count] = (ait_dim_expr){.op = AIT_DIM_CONST, .value = value};
  return r->region.dim_count++;
}

static inline ait_dim rb_symbol(region_builder *r, const char *name) {
  r->symbols[r->region.symbol_count] = (ait_symbol){.name = name, .min = 0, .max = INT64_MAX, .hint = -1, .backed = true};
  r->dims[r->region.dim_count] = (ait_dim_expr){.op = AIT_DIM_SYMBOL, .a = r->region.symbol_count++};
  return r->region.dim_count++;
}

static inline ait_dim rb_dim(region_builder *r, ait_dim_op op, ait_dim a, ait_dim b) {
  r->dims[r->region.dim_count] = (ait_dim_expr){.op = op, .a = a, .b = b};
  return r->region.dim_count++;
}

/* Sizes are dims: make them with D(n). */
#define D(n) rb_const(r, (n))
#define SHAPE(...) ((const ait_dim[]){__VA_ARGS__}), (int32_t)(sizeof((const ait_dim[]){__VA_ARGS__}) / sizeof(ait_dim))

static inline uint32_t rb_value(region_builder *r, ait_dtype dtype, const ait_dim *shape, int32_t rank) {
  uint32_t v = r->region.value_count++;
  assert_true(v < RB_MAX);
  memcpy(r->shapes[v], shape, (size_t)rank * sizeof *shape);
  snprintf(r->names[v], sizeof r->names[v], "v%u", v);
  r->values[v] = (ait_region_value){.name = r->names[v], .type = AIT_TYPE_TENSOR, .dtype = dtype, .rank = rank, .shape = r->shapes[v]};
  return v;
}

static inline uint32_t rb_input(region_builder *r, ait_dtype dtype, const ait_dim *shape, int32_t rank) {
  uint32_t v = rb_value(r, dtype, shape, rank);
  r->inputs[r->region.input_count++] =
      (ait_region_input){.value = v, .kind = AIT_INPUT_USER, .name = r->names[v], .user_index = (int32_t)r->user_count++};
  return v;
}

/* A parameter with random contents times `scale`, plus `shift`. Sizes are constants. */
static inline uint32_t rb_weight(region_builder *r, float scale, float shift, const ait_dim *shape, int32_t rank) {
  uint32_t v = rb_value(r, AIT_F32, shape, rank);
  ait_weight w = {.name = r->names[v], .dtype = AIT_F32, .rank = rank};
  int64_t count = 1;
  for (int32_t d = rank - 1; d >= 0; --d) {
    w.shape[d] = r->dims[shape[d]].value;
    w.strides[d] = count;
    count *= w.shape[d];
  }
  ait_storage *storage;
  assert_null(ait_storage_create(ait_allocator_default(), (size_t)count * sizeof(float), &storage));
  float *data = ait_storage_data(storage);
  for (int64_t i = 0; i < count; ++i) data[i] = rb_random(r) * scale + shift;
  assert_null(ait_weight_store_add_storage(r->weights, storage, &w.storage));
  assert_null(ait_weight_store_add(r->weights, &w));
  r->inputs[r->region.input_count++] = (ait_region_input){.value = v, .kind = AIT_INPUT_PARAMETER, .name = r->names[v], .user_index = -1};
  return v;
}

static inline ait_arg rb_v(uint32_t v) { return (ait_arg){.kind = AIT_ARG_VALUE, .as.value = v}; }
static inline ait_arg rb_i(int64_t i) { return (ait_arg){.kind = AIT_ARG_INT, .as.i = i}; }
static inline ait_arg rb_f(double f) { return (ait_arg){.kind = AIT_ARG_FLOAT, .as.f = f}; }
static inline ait_arg rb_b(bool b) { return (ait_arg){.kind = AIT_ARG_BOOL, .as.b = b}; }
static inline ait_arg rb_none(void) { return (ait_arg){.kind = AIT_ARG_NONE}; }
static inline ait_arg rb_d(ait_dim d) { return (ait_arg){.kind = AIT_ARG_DIM, .as.dim = d}; }
static inline ait_arg rb_dtype(ait_dtype d) { return (ait_arg){.kind = AIT_ARG_DTYPE, .as.i = d}; }
static inline ait_arg rb_s(const char *s) { return (ait_arg){.kind = AIT_ARG_STRING, .count = (uint32_t)strlen(s), .as.string = s}; }
static inline ait_arg rb_list(region_builder *r, const ait_arg *items, uint32_t count) {
  assert_true(r->arg_count + count < RB_ARGS);
  ait_arg *to = &r->args[r->arg_count];
  if (count > 0) memcpy(to, items, count * sizeof *items);
  r->arg_count += count;
  return (ait_arg){.kind = AIT_ARG_LIST, .count = count, .as.list = to};
}
#define ARGS(...) ((const ait_arg[]){__VA_ARGS__}), (uint32_t)(sizeof((const ait_arg[]){__VA_ARGS__}) / sizeof(ait_arg))
#define LIST(...) rb_list(r, ARGS(__VA_ARGS__))

static inline ait_region_node *rb_node_of(region_builder *r, const char *op, const ait_arg *args, uint32_t count) {
  uint32_t n = r->region.node_count++;
  assert_true(n < RB_MAX);
  ait_arg list = rb_list(r, args, count);
  r->nodes[n] = (ait_region_node){.op = op, .arg_count = count, .args = list.as.list, .results = r->results[n], .name = op, .module = "m"};
  return &r->nodes[n];
}

static inline uint32_t rb_result(region_builder *r, ait_region_node *n, ait_dtype dtype, const ait_dim *shape, int32_t rank) {
  uint32_t v = rb_value(r, dtype, shape, rank);
  r->results[n - r->nodes][n->result_count++] = v;
  return v;
}

static inline uint32_t rb_node(region_builder *r, const char *op, const ait_arg *args, uint32_t count, ait_dtype dtype,
                               const ait_dim *shape, int32_t rank) {
  return rb_result(r, rb_node_of(r, op, args, count), dtype, shape, rank);
}

static inline void rb_output(region_builder *r, uint32_t v) {
  r->outputs[r->region.output_count++] =
      (ait_region_output){.arg = rb_v(v), .kind = AIT_OUTPUT_USER, .name = r->names[v], .user_index = -1};
}

/* ---- running -----------------------------------------------------------------------------------------------------------------------*/
typedef struct runner {
  const ait_backend *backend;
  ait_blob blob;
  void *loaded, *instance;
  ait_allocator allocator;
} runner;

static inline ait_status runner_compile(runner *k, const char *backend, const ait_region *region, ait_weights weights,
                                        const ait_option *options, uint32_t count) {
  k->backend = ait_backend_find(backend);
  assert_non_null(k->backend);
  ait_compile_options o = {.struct_size = sizeof o,
                           .allocator = k->allocator,
                           .weights = weights,
                           .option_count = count,
                           .options = options,
                           .cpu_mask = UINT64_MAX};
  return k->backend->compile(region, &o, &k->blob);
}

static inline ait_status runner_load(runner *k, ait_weights weights, uint64_t mask) {
  ait_load_context c = {.struct_size = sizeof c,
                        .allocator = k->allocator,
                        .weights = weights,
                        .blob = k->blob.data,
                        .blob_size = k->blob.size,
                        .cpu_mask = mask};
  AIT_TRY(k->backend->load(&c, &k->loaded));
  return k->backend->instance_create(k->loaded, k->allocator, &k->instance);
}

static inline void runner_deinit(runner *k) {
  if (k->instance != NULL) k->backend->instance_destroy(k->instance);
  if (k->loaded != NULL) k->backend->unload(k->loaded);
  if (k->blob.data != NULL) ait_free(k->allocator, k->blob.data, k->blob.size);
  k->instance = k->loaded = k->blob.data = NULL;
}

static inline void check_ok(ait_status status, const char *what) {
  if (status != AIT_OK) fail_msg("%s: %s", what, ait_status_message(status));
}

/* Inputs for given symbol values: random in [-1, 1), ints in [0, `limit`). */
static inline void rb_inputs(region_builder *r, const int64_t *symbols, int64_t limit, ait_value *out) {
  for (uint32_t i = 0; i < r->region.input_count; ++i) {
    out[i] = (ait_value){.kind = AIT_VALUE_NONE};
    if (r->inputs[i].kind != AIT_INPUT_USER) continue;
    const ait_region_value *v = &r->values[r->inputs[i].value];
    int64_t shape[AIT_MAX_RANK];
    for (int32_t d = 0; d < v->rank; ++d) {
      const ait_dim_expr *e = &r->dims[v->shape[d]];
      shape[d] = e->op == AIT_DIM_SYMBOL ? symbols[e->a] : e->value;
    }
    ait_tensor t;
    check_ok(ait_tensor_create(ait_allocator_default(), v->dtype, v->rank, shape, &t), "input");
    for (int64_t k = 0, n = ait_tensor_count(&t); k < n; ++k) {
      void *at = (char *)t.data + (size_t)k * ait_dtype_size(v->dtype);
      double random = rb_random(r);
      if (ait_dtype_is_float(v->dtype)) {
        ait_element_set_f64(at, v->dtype, random);
      } else {
        ait_element_set_i64(at, v->dtype, v->dtype == AIT_BOOL ? random > 0 : (int64_t)((random + 1) * 0.5 * (double)limit));
      }
    }
    out[i] = ait_value_tensor(t);
  }
}

static inline void rb_release(ait_value *values, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) ait_value_release(&values[i]);
}

static inline void check_close(const char *what, const ait_tensor *got, const ait_tensor *want, double tolerance) {
  ait_compare_rule rule = {.exact = !ait_dtype_is_float(want->dtype), .rtol = tolerance, .atol = tolerance};
  ait_compare_result result;
  check_ok(ait_compare(got, want, &rule, &result), what);
  if (!result.pass) {
    fail_msg("%s: %lld of %lld differ, worst at %lld: got %g, want %g", what, (long long)result.mismatches, (long long)result.count,
             (long long)result.worst_index, result.worst_got, result.worst_want);
  }
}

/* Outputs of `backend` against the reference for one set of symbol values. */
static inline void rb_compare(region_builder *r, const char *what, const char *backend, const int64_t *symbols, int64_t limit,
                              double tolerance) {
  ait_weights weights = ait_weight_store_provider(r->weights);
  runner reference = {.allocator = ait_allocator_default()}, k = {.allocator = ait_allocator_default()};
  check_ok(runner_compile(&reference, "reference", &r->region, weights, NULL, 0), what);
  check_ok(runner_load(&reference, weights, UINT64_MAX), what);
  check_ok(runner_compile(&k, backend, &r->region, weights, &r->option, r->option.key != NULL), what);
  check_ok(runner_load(&k, weights, UINT64_MAX), what);
  ait_value inputs[RB_MAX], want[RB_MAX] = {{0}}, got[RB_MAX] = {{0}};
  rb_inputs(r, symbols, limit, inputs);
  ait_run_context c = {.struct_size = sizeof c, .allocator = k.allocator, .inputs = inputs, .outputs = want};
  check_ok(reference.backend->run(reference.instance, &c), what);
  c.outputs = got;
  check_ok(k.backend->run(k.instance, &c), what);
  for (uint32_t i = 0; i < r->region.output_count; ++i) check_close(what, &got[i].as.tensor, &want[i].as.tensor, tolerance);
  rb_release(want, r->region.output_count);
  rb_release(got, r->region.output_count);
  rb_release(inputs, r->region.input_count);
  runner_deinit(&k);
  runner_deinit(&reference);
}

#endif
