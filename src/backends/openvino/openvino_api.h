/* The part of OpenVINO's C interface that is used, as facts: result, name, arguments of each exported function. Written from the published
 * C API; nothing is included from that project. */
#ifndef AIT_SRC_BACKENDS_OPENVINO_API_H
#define AIT_SRC_BACKENDS_OPENVINO_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct ov_core ov_core;
typedef struct ov_model ov_model;
typedef struct ov_compiled ov_compiled;
typedef struct ov_request ov_request;
typedef struct ov_tensor ov_tensor;

typedef struct ov_shape { /* by value */
  int64_t rank;
  int64_t *dims;
} ov_shape;
typedef struct ov_version {
  const char *build, *description;
} ov_version;

/* int: a status, 0 is success; the cause stands in ov_get_last_err_msg, whose text must be freed. */
#define OV_FUNCTIONS(X)                                                                                                  \
  X(int, ov_get_openvino_version, (ov_version *))                                                                        \
  X(void, ov_version_free, (ov_version *))                                                                               \
  X(const char *, ov_get_last_err_msg, (void))                                                                           \
  X(void, ov_free, (const char *))                                                                                       \
  X(int, ov_core_create_with_config, (const char *, ov_core **))                                                         \
  X(int, ov_core_read_model_from_memory_buffer, (const ov_core *, const char *, size_t, const ov_tensor *, ov_model **)) \
  X(int, ov_core_compile_model, (const ov_core *, const ov_model *, const char *, size_t, ov_compiled **, ...))          \
  X(void, ov_model_free, (ov_model *))                                                                                   \
  X(int, ov_compiled_model_inputs_size, (const ov_compiled *, size_t *))                                                 \
  X(int, ov_compiled_model_outputs_size, (const ov_compiled *, size_t *))                                                \
  X(int, ov_compiled_model_create_infer_request, (const ov_compiled *, ov_request **))                                   \
  X(void, ov_compiled_model_free, (ov_compiled *))                                                                       \
  X(int, ov_tensor_create_from_host_ptr, (int, ov_shape, void *, ov_tensor **))                                          \
  X(int, ov_tensor_get_shape, (const ov_tensor *, ov_shape *))                                                           \
  X(int, ov_shape_free, (ov_shape *))                                                                                    \
  X(int, ov_tensor_get_element_type, (const ov_tensor *, int *))                                                         \
  X(int, ov_tensor_get_byte_size, (const ov_tensor *, size_t *))                                                         \
  X(int, ov_tensor_data, (const ov_tensor *, void **))                                                                   \
  X(void, ov_tensor_free, (ov_tensor *))                                                                                 \
  X(int, ov_infer_request_set_input_tensor_by_index, (ov_request *, size_t, const ov_tensor *))                          \
  X(int, ov_infer_request_set_output_tensor_by_index, (ov_request *, size_t, const ov_tensor *))                         \
  X(int, ov_infer_request_get_output_tensor_by_index, (const ov_request *, size_t, ov_tensor **))                        \
  X(int, ov_infer_request_infer, (ov_request *))                                                                         \
  X(void, ov_infer_request_free, (ov_request *))

typedef struct ov_api {
#define OV_MEMBER(result, name, arguments) result(*name) arguments;
  OV_FUNCTIONS(OV_MEMBER)
#undef OV_MEMBER
  void (*ov_util_set_log_callback)(void (*)(const char *)); /* NULL before 2025.4 */
} ov_api;

#endif
