/* The part of ONNX Runtime's C function table that is used, as facts: position, result, name, arguments. The table is append-only, so a
 * position never changes. Written from the published C API; nothing is included from that project. */
#ifndef AIT_SRC_BACKENDS_ORT_API_H
#define AIT_SRC_BACKENDS_ORT_API_H

#include <stddef.h>
#include <stdint.h>

/* Every later library has this table, while a version that is too new is refused with a line on standard error. */
enum { ORT_API_VERSION = 18 };

typedef struct ort_status ort_status;
typedef struct ort_env ort_env;
typedef struct ort_session ort_session;
typedef struct ort_session_options ort_session_options;
typedef struct ort_run_options ort_run_options;
typedef struct ort_memory_info ort_memory_info;
typedef struct ort_value ort_value;
typedef struct ort_tensor_info ort_tensor_info;
typedef struct ort_allocator ort_allocator;
typedef void (*ort_log_fn)(void *, int, const char *, const char *, const char *, const char *);

/* `ort_status *`: NULL is success, else ReleaseStatus. */
#define ORT_FUNCTIONS(X)                                                                                                           \
  X(1, int, GetErrorCode, (const ort_status *))                                                                                    \
  X(2, const char *, GetErrorMessage, (const ort_status *))                                                                        \
  X(4, ort_status *, CreateEnvWithCustomLogger, (ort_log_fn, void *, int, const char *, ort_env **))                               \
  X(8, ort_status *, CreateSessionFromArray, (const ort_env *, const void *, size_t, const ort_session_options *, ort_session **)) \
  X(9, ort_status *, Run,                                                                                                          \
    (ort_session *, const ort_run_options *, const char *const *, const ort_value *const *, size_t, const char *const *, size_t,   \
     ort_value **))                                                                                                                \
  X(10, ort_status *, CreateSessionOptions, (ort_session_options **))                                                              \
  X(22, ort_status *, SetSessionLogSeverityLevel, (ort_session_options *, int))                                                    \
  X(23, ort_status *, SetSessionGraphOptimizationLevel, (ort_session_options *, int))                                              \
  X(24, ort_status *, SetIntraOpNumThreads, (ort_session_options *, int))                                                          \
  X(25, ort_status *, SetInterOpNumThreads, (ort_session_options *, int))                                                          \
  X(30, ort_status *, SessionGetInputCount, (const ort_session *, size_t *))                                                       \
  X(31, ort_status *, SessionGetOutputCount, (const ort_session *, size_t *))                                                      \
  X(36, ort_status *, SessionGetInputName, (const ort_session *, size_t, ort_allocator *, char **))                                \
  X(37, ort_status *, SessionGetOutputName, (const ort_session *, size_t, ort_allocator *, char **))                               \
  X(49, ort_status *, CreateTensorWithDataAsOrtValue,                                                                              \
    (const ort_memory_info *, void *, size_t, const int64_t *, size_t, int, ort_value **))                                         \
  X(51, ort_status *, GetTensorMutableData, (ort_value *, void **))                                                                \
  X(60, ort_status *, GetTensorElementType, (const ort_tensor_info *, int *))                                                      \
  X(61, ort_status *, GetDimensionsCount, (const ort_tensor_info *, size_t *))                                                     \
  X(62, ort_status *, GetDimensions, (const ort_tensor_info *, int64_t *, size_t))                                                 \
  X(65, ort_status *, GetTensorTypeAndShape, (const ort_value *, ort_tensor_info **))                                              \
  X(69, ort_status *, CreateCpuMemoryInfo, (int, int, ort_memory_info **))                                                         \
  X(76, ort_status *, AllocatorFree, (ort_allocator *, void *))                                                                    \
  X(78, ort_status *, GetAllocatorWithDefaultOptions, (ort_allocator **))                                                          \
  X(93, void, ReleaseStatus, (ort_status *))                                                                                       \
  X(94, void, ReleaseMemoryInfo, (ort_memory_info *))                                                                              \
  X(95, void, ReleaseSession, (ort_session *))                                                                                     \
  X(96, void, ReleaseValue, (ort_value *))                                                                                         \
  X(99, void, ReleaseTensorTypeAndShapeInfo, (ort_tensor_info *))                                                                  \
  X(100, void, ReleaseSessionOptions, (ort_session_options *))                                                                     \
  X(130, ort_status *, AddSessionConfigEntry, (ort_session_options *, const char *, const char *))

/* What the one exported function, OrtGetApiBase, returns. */
typedef struct ort_api_base {
  const void *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} ort_api_base;

typedef struct ort_api {
#define ORT_MEMBER(position, result, name, arguments) result(*name) arguments;
  ORT_FUNCTIONS(ORT_MEMBER)
#undef ORT_MEMBER
} ort_api;

static inline void ort_api_bind(ort_api *api, const void *table) {
  typedef void (*any_fn)(void);
  const any_fn *slot = table;
#define ORT_BIND(position, result, name, arguments) api->name = (result(*) arguments)slot[position];
  ORT_FUNCTIONS(ORT_BIND)
#undef ORT_BIND
}

enum { ORT_ERROR = 3, ORT_OPTIMIZE_ALL = 99, ORT_ALLOCATOR_DEVICE = 0, ORT_MEMORY_DEFAULT = 0, ORT_INVALID_ARGUMENT = 2 };

#endif
