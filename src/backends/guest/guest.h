/* What backends that run other people's engines share: where the library is found, a blob that holds an ONNX model, and a run that binds
 * the caller's tensors to the engine without a copy.
 *
 * An engine's library is opened at run time and stays open; sessions are freed, libraries are not (closing one unloads code that its own
 * threads may still run). An engine is called with the FPU's control word saved and restored. */
#ifndef AIT_SRC_BACKENDS_GUEST_H
#define AIT_SRC_BACKENDS_GUEST_H

#include "base/base.h"
#include "tensor/tensor.h"
#include <ait/backend.h>
#include <pthread.h>

/* ---- regions to ONNX: the bridge to the export room ------------------------------------------------------------------------------
 * libait installs it, libait-rt does not: there a guest loads and runs what was compiled. Thread-safe. */
typedef struct ait_onnx_bridge {
  bool (*takes)(const char *op);
  ait_status (*write)(ait_allocator a, const ait_region *region, ait_weights weights, ait_blob *out);
} ait_onnx_bridge;
void ait_onnx_bridge_install(const ait_onnx_bridge *bridge); /* kept, not copied */

/* ---- finding a library ---------------------------------------------------------------------------------------------------------- */
typedef struct guest_library {
  void *handle; /* of dlopen; NULL: not here */
  char path[512];
  char reason[256]; /* when it is not here: where it was looked for, or what dlopen said */
} guest_library;
/* Tries FOLDER/PATTERN (pattern: a glob below the folder) for each folder that ait_guests_configure named, and each that Python
 * packages are installed to. symbol: what the library must export. */
void guest_library_open(const char *pattern, const char *symbol, guest_library *out);
/* The caller of the library answers for ONNX Runtime's usage reporter (ait_guest_options). */
bool guest_reporting_settled(void);

/* ---- a model in a blob ----------------------------------------------------------------------------------------------------------- */
typedef struct guest_port {
  uint32_t index; /* of the region's input or output */
  ait_dtype dtype;
  int32_t rank;
  const ait_dim *shape;
} guest_port;

typedef struct guest_model {
  ait_allocator allocator;
  ait_region *region; /* inputs, outputs and sizes; no nodes */
  const void *onnx;   /* in the blob */
  size_t onnx_size;
  uint32_t in_count, out_count;
  guest_port *in, *out; /* in the order of the ONNX model */
  ait_arena arena;      /* all of the above but the region; the options */
  ait_option *options;
  uint32_t option_count;
  const struct guest_engine *engine;
  pthread_mutex_t lock;           /* of sessions */
  struct guest_session *sessions; /* by number of threads; each made when it is first run */
} guest_model;
/* The value (AIT_NO_INDEX: none) is a tensor of that dtype. */
bool guest_is_tensor_of(const ait_region *region, uint32_t value, ait_dtype dtype);
const char *guest_option(const guest_model *m, const char *key, const char *missing);

/* One engine. session: a compiled model for a number of threads, shared by all callers; request: one caller's. */
typedef struct guest_engine {
  const char *name;
  /* Why the region cannot be taken although every operator has an ONNX form, or NULL. */
  const char *(*refuses)(const ait_region *region);
  ait_status (*session_create)(const guest_model *model, int32_t threads, void **out);
  void (*session_destroy)(void *session);
  ait_status (*request_create)(void *session, const guest_model *model, void **out);
  void (*request_destroy)(void *request);
  /* Contiguous tensors, written in place. An output of rank -1 has a size that depends on data: the engine makes it, `out[i]` becomes a
   * tensor with storage of its own. */
  ait_status (*run)(void *request, const guest_model *model, const ait_tensor *in, ait_tensor *out);
} guest_engine;

/* The functions of a backend's table, once the engine is known. */
ait_status guest_supports(const guest_engine *engine, const ait_region *region, ait_support *out) AIT_MUST_USE;
ait_status guest_compile(const guest_engine *engine, const ait_region *region, const ait_compile_options *options,
                         ait_blob *out) AIT_MUST_USE;
ait_status guest_load(const guest_engine *engine, const ait_load_context *context, void **out_loaded) AIT_MUST_USE;
void guest_unload(void *loaded);
ait_status guest_instance_create(void *loaded, ait_allocator allocator, void **out_instance) AIT_MUST_USE;
void guest_instance_destroy(void *instance);
ait_status guest_run(void *instance, const ait_run_context *context) AIT_MUST_USE;

#endif
