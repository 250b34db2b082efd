/* Hand-built regions for the tests of artifact and runtime: no importer, no graph. Tests only. */
#ifndef AIT_SRC_ARTIFACT_TOY_MODELS_H
#define AIT_SRC_ARTIFACT_TOY_MODELS_H

#include "tensor/tensor.h"
#include <ait/backend.h>

#define TOY_V(n) \
  { .kind = AIT_ARG_VALUE, .as.value = (n) }
#define TOY_I(n) \
  { .kind = AIT_ARG_INT, .as.i = (n) }
#define TOY_NODE(opname, flag, argv, resultv, label)                                                                   \
  {                                                                                                                    \
    .op = (opname), .flags = (flag), .arg_count = AIT_COUNT(argv), .args = (argv), .result_count = AIT_COUNT(resultv), \
    .results = (resultv), .name = (label), .module = "toy"                                                             \
  }
#define TOY_F32(label, r, dims_) \
  { .name = (label), .type = AIT_TYPE_TENSOR, .dtype = AIT_F32, .rank = (r), .shape = (dims_) }
#define TOY_USER(v, label, index, changed) \
  { .value = (v), .kind = AIT_INPUT_USER, .name = (label), .mutated = (changed), .user_index = (index) }
#define TOY_WEIGHT(v, kind_, label, changed) \
  { .value = (v), .kind = (kind_), .name = (label), .mutated = (changed), .user_index = -1 }
#define TOY_OUT(v, label) \
  { .arg = TOY_V(v), .kind = AIT_OUTPUT_USER, .name = (label), .user_index = -1 }
#define TOY_REGION(label)                                                                                                      \
  {                                                                                                                            \
    .struct_size = sizeof(ait_region), .version = AIT_REGION_VERSION, .name = (label), .symbol_count = AIT_COUNT(toy_symbols), \
    .dim_count = AIT_COUNT(toy_dims), .symbols = toy_symbols, .dims = toy_dims                                                 \
  }
#define TOY_PART(region, field, array) ((region).field##_count = AIT_COUNT(array), (region).field##s = (array))

/* Shared sizes. Symbols: s0 in 2..64, n in 0..100, free in 1..9. Dims by name. */
static const ait_symbol toy_symbols[] = {
    {.name = "s0", .min = 2, .max = 64, .hint = 4, .backed = true},
    {.name = "n", .min = 0, .max = 100, .hint = 3, .backed = true},
    {.name = "free", .min = 1, .max = 9, .hint = 2, .backed = true},
};
enum { TOY_2, TOY_3, TOY_4, TOY_S0, TOY_N, TOY_2S0, TOY_FREE, TOY_2FREE, TOY_2FREE_1, TOY_10 };
static const ait_dim_expr toy_dims[] = {
    [TOY_2] = {.op = AIT_DIM_CONST, .value = 2},
    [TOY_3] = {.op = AIT_DIM_CONST, .value = 3},
    [TOY_4] = {.op = AIT_DIM_CONST, .value = 4},
    [TOY_S0] = {.op = AIT_DIM_SYMBOL, .a = 0},
    [TOY_N] = {.op = AIT_DIM_SYMBOL, .a = 1},
    [TOY_2S0] = {.op = AIT_DIM_MUL, .a = TOY_2, .b = TOY_S0},
    [TOY_FREE] = {.op = AIT_DIM_SYMBOL, .a = 2},
    [TOY_2FREE] = {.op = AIT_DIM_MUL, .a = TOY_2, .b = TOY_FREE},
    [TOY_2FREE_1] = {.op = AIT_DIM_ADD, .a = TOY_2FREE, .b = TOY_3},
    [TOY_10] = {.op = AIT_DIM_CONST, .value = 10},
};
static const ait_dim toy_shape_4[] = {TOY_4}, toy_shape_s3[] = {TOY_S0, TOY_3}, toy_shape_32[] = {TOY_3, TOY_2},
                     toy_shape_s2[] = {TOY_S0, TOY_2};
static const ait_dim toy_shape_n[] = {TOY_N};

/* y = x @ w, x: [s0, 3], w: [3, 2]; s0 < 10 by a guard. */
static inline ait_region toy_linear(void) {
  static const ait_region_value values[] = {TOY_F32("w", 2, toy_shape_32), TOY_F32("x", 2, toy_shape_s3), TOY_F32("mm", 2, toy_shape_s2)};
  static const ait_arg args[] = {TOY_V(1), TOY_V(0)};
  static const uint32_t results[] = {2};
  static const ait_region_node nodes[] = {TOY_NODE("aten.mm", 0, args, results, "mm")};
  static const ait_region_input inputs[] = {TOY_WEIGHT(0, AIT_INPUT_PARAMETER, "w", false), TOY_USER(1, "x", 0, false)};
  static const ait_region_output outputs[] = {TOY_OUT(2, "y")};
  static const ait_region_guard guards[] = {{.op = AIT_GUARD_LT, .left = TOY_S0, .right = TOY_10, .text = "x.size(0) < 10"}};
  ait_region r = TOY_REGION("linear");
  TOY_PART(r, value, values), TOY_PART(r, node, nodes), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs),
      TOY_PART(r, guard, guards);
  return r;
}

/* total += x in place; gives total itself and total * total. */
static inline ait_region toy_counter(void) {
  static const ait_region_value values[] = {TOY_F32("total", 1, toy_shape_4), TOY_F32("x", 1, toy_shape_4), TOY_F32("add_", 1, toy_shape_4),
                                            TOY_F32("mul", 1, toy_shape_4)};
  static const ait_arg add[] = {TOY_V(0), TOY_V(1), TOY_I(1)}, mul[] = {TOY_V(2), TOY_V(2)};
  static const uint32_t add_results[] = {2}, mul_results[] = {3};
  static const ait_region_node nodes[] = {TOY_NODE("aten.add.Tensor", AIT_NODE_INPLACE, add, add_results, "add_"),
                                          TOY_NODE("aten.mul.Tensor", 0, mul, mul_results, "mul")};
  static const ait_region_input inputs[] = {TOY_WEIGHT(0, AIT_INPUT_BUFFER, "total", true), TOY_USER(1, "x", 0, false)};
  static const ait_region_output outputs[] = {TOY_OUT(2, "total"), TOY_OUT(3, "square")};
  ait_region r = TOY_REGION("counter");
  TOY_PART(r, value, values), TOY_PART(r, node, nodes), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs);
  return r;
}

/* The same as pure values: new contents of `total` are an output; gives the contents before. */
static inline ait_region toy_functional(void) {
  static const ait_region_value values[] = {TOY_F32("total", 1, toy_shape_4), TOY_F32("x", 1, toy_shape_4), TOY_F32("add", 1, toy_shape_4)};
  static const ait_arg add[] = {TOY_V(0), TOY_V(1), TOY_I(1)};
  static const uint32_t results[] = {2};
  static const ait_region_node nodes[] = {TOY_NODE("aten.add.Tensor", 0, add, results, "add")};
  static const ait_region_input inputs[] = {TOY_WEIGHT(0, AIT_INPUT_BUFFER, "total", true), TOY_USER(1, "x", 0, false)};
  static const ait_region_output outputs[] = {
      {.arg = TOY_V(2), .kind = AIT_OUTPUT_STATE, .name = "total", .user_index = -1}, TOY_OUT(0, "before"), TOY_OUT(1, "same")};
  ait_region r = TOY_REGION("functional");
  TOY_PART(r, value, values), TOY_PART(r, node, nodes), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs);
  return r;
}

/* Two buffers change places; gives the old a. */
static inline ait_region toy_swap(void) {
  static const ait_region_value values[] = {TOY_F32("a", 1, toy_shape_4), TOY_F32("b", 1, toy_shape_4)};
  static const ait_region_input inputs[] = {TOY_WEIGHT(0, AIT_INPUT_BUFFER, "a", true), TOY_WEIGHT(1, AIT_INPUT_BUFFER, "b", true)};
  static const ait_region_output outputs[] = {{.arg = TOY_V(1), .kind = AIT_OUTPUT_STATE, .name = "a", .user_index = -1},
                                              {.arg = TOY_V(0), .kind = AIT_OUTPUT_STATE, .name = "b", .user_index = -1},
                                              TOY_OUT(0, "old_a")};
  ait_region r = TOY_REGION("swap");
  TOY_PART(r, value, values), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs);
  return r;
}

/* x += y in place, z is replaced by x + y (an output of kind INPUT). */
static inline ait_region toy_inputs(void) {
  static const ait_region_value values[] = {TOY_F32("x", 1, toy_shape_4), TOY_F32("y", 1, toy_shape_4), TOY_F32("z", 1, toy_shape_4),
                                            TOY_F32("add_", 1, toy_shape_4), TOY_F32("add", 1, toy_shape_4)};
  static const ait_arg inplace[] = {TOY_V(0), TOY_V(1), TOY_I(1)}, add[] = {TOY_V(3), TOY_V(1), TOY_I(1)};
  static const uint32_t inplace_results[] = {3}, add_results[] = {4};
  static const ait_region_node nodes[] = {TOY_NODE("aten.add.Tensor", AIT_NODE_INPLACE, inplace, inplace_results, "add_"),
                                          TOY_NODE("aten.add.Tensor", 0, add, add_results, "add")};
  static const ait_region_input inputs[] = {TOY_USER(0, "x", 0, true), TOY_USER(1, "y", 1, false), TOY_USER(2, "z", 2, true)};
  static const ait_region_output outputs[] = {{.arg = TOY_V(4), .kind = AIT_OUTPUT_INPUT, .name = "z", .user_index = 2},
                                              TOY_OUT(3, "x_out")};
  ait_region r = TOY_REGION("inputs");
  TOY_PART(r, value, values), TOY_PART(r, node, nodes), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs);
  return r;
}

/* An int that sizes x, a baked float, and outputs of every constant kind. */
static inline ait_region toy_scalars(void) {
  static const ait_dim n_dim[] = {TOY_N};
  static const ait_region_value values[] = {
      {.name = "n", .type = AIT_TYPE_INT, .shape = n_dim}, TOY_F32("x", 1, toy_shape_n), {.name = "flag", .type = AIT_TYPE_BOOL}};
  static const ait_region_input inputs[] = {
      TOY_USER(0, "n", 0, false),
      TOY_USER(1, "x", 1, false),
      {.value = AIT_NO_INDEX, .kind = AIT_INPUT_USER, .name = "scale", .baked = {.kind = AIT_ARG_FLOAT, .as.f = 2.0}, .user_index = 2},
      {.value = AIT_NO_INDEX, .kind = AIT_INPUT_USER, .name = "mask", .user_index = 3},
      TOY_USER(2, "flag", 4, false)};
  static const ait_region_output outputs[] = {TOY_OUT(0, "n"),
                                              {.arg = {.kind = AIT_ARG_FLOAT, .as.f = 2.5}, .name = "f"},
                                              {.arg = {.kind = AIT_ARG_BOOL, .as.b = true}, .name = "b"},
                                              {.arg = {.kind = AIT_ARG_NONE}, .name = "none"},
                                              {.arg = {.kind = AIT_ARG_STRING, .count = 2, .as.string = "hi"}, .name = "s"},
                                              {.arg = {.kind = AIT_ARG_DIM, .as.dim = TOY_N}, .name = "size"},
                                              TOY_OUT(1, "x")};
  ait_region r = TOY_REGION("scalars");
  TOY_PART(r, value, values), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs);
  return r;
}

/* Sizes to bind: x [s0, 3], y [2*s0], z [2*free + 3], n. */
static inline ait_region toy_sizes(void) {
  static const ait_dim y[] = {TOY_2S0}, z[] = {TOY_2FREE_1}, n_dim[] = {TOY_N};
  static const ait_region_value values[] = {
      TOY_F32("x", 2, toy_shape_s3), TOY_F32("y", 1, y), TOY_F32("z", 1, z), {.name = "n", .type = AIT_TYPE_INT, .shape = n_dim}};
  static const ait_region_input inputs[] = {TOY_USER(1, "y", 1, false), TOY_USER(0, "x", 0, false), TOY_USER(2, "z", 2, false),
                                            TOY_USER(3, "n", 3, false)};
  static const ait_region_output outputs[] = {TOY_OUT(0, "x")};
  static const ait_region_guard guards[] = {{.op = AIT_GUARD_NE, .left = TOY_N, .right = TOY_S0, .text = "Ne(n, s0)"}};
  ait_region r = TOY_REGION("sizes");
  TOY_PART(r, value, values), TOY_PART(r, input, inputs), TOY_PART(r, output, outputs), TOY_PART(r, guard, guards);
  return r;
}

/* One f32 weight over the caller's numbers. */
static inline ait_status toy_add_weight(ait_weight_store *store, const char *name, const float *data, int32_t rank, const int64_t *shape) {
  ait_tensor t = ait_tensor_borrow((void *)data, AIT_F32, rank, shape);
  ait_weight w = {.name = name, .dtype = AIT_F32, .rank = rank};
  memcpy(w.shape, t.shape, sizeof w.shape);
  memcpy(w.strides, t.strides, sizeof w.strides);
  ait_storage *storage;
  AIT_TRY(ait_storage_create(ait_allocator_default(), ait_tensor_bytes(&t), &storage));
  memcpy(ait_storage_data(storage), data, ait_tensor_bytes(&t));
  AIT_TRY(ait_weight_store_add_storage(store, storage, &w.storage));
  return ait_weight_store_add(store, &w);
}

#endif
