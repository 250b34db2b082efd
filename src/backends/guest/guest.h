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

/* ---- an engine's library: opened once, kept for good ---------------------------------------------------------------------------- */
typedef struct guest_library {
  pthread_mutex_t lock; /* of opening, and of what the engine makes once per process */
  void *handle;         /* of dlopen; NULL: not here */
  bool usable;
  char path[512], version[64];
  char reason[256]; /* when it is not usable: where it was looked for, what dlopen said, what the engine objects to */
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
  guest_library *library;
  void (*open)(guest_library *library); /* called under its lock until it is usable */
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

/* Opens the library where that has not been done. */
bool guest_is_here(const guest_engine *engine);
ait_status guest_unavailable(const guest_engine *engine) AIT_MUST_USE; /* the error: why it is not */

/* ---- what a request wraps: handles of the engine for tensors, inputs first, then outputs ------------------------------------------ */
typedef struct guest_wraps {
  ait_allocator allocator;
  void (*release)(void *handle);
  void **handles;
  ait_tensor *seen; /* what each wraps */
  size_t count;
} guest_wraps;
ait_status guest_wraps_init(guest_wraps *w, const guest_model *m, void (*release)(void *handle)) AIT_MUST_USE;
void guest_wraps_deinit(guest_wraps *w);
/* true: handle i wraps this tensor already. Else it is released, and the caller makes it anew. */
bool guest_wraps_keep(guest_wraps *w, size_t i, const ait_tensor *t);
void *guest_data(const ait_tensor *t); /* an empty tensor has an address, too */

/* ---- a backend's table for an engine: GUEST_BACKEND(onnxruntime, engine, "summary", knobs) --------------------------------------- */
void guest_probe(const guest_engine *engine, ait_probe *out);
ait_status guest_supports(const guest_engine *engine, const ait_region *region, ait_support *out) AIT_MUST_USE;
ait_status guest_compile(const guest_engine *engine, const ait_region *region, const ait_compile_options *options,
                         ait_blob *out) AIT_MUST_USE;
ait_status guest_load(const guest_engine *engine, const ait_load_context *context, void **out_loaded) AIT_MUST_USE;
void guest_unload(void *loaded);
ait_status guest_instance_create(void *loaded, ait_allocator allocator, void **out_instance) AIT_MUST_USE;
void guest_instance_destroy(void *instance);
ait_status guest_run(void *instance, const ait_run_context *context) AIT_MUST_USE;

#define GUEST_BACKEND(ident, its_engine, text, its_knobs)                                                                             \
  static void table_probe(ait_probe *out) { guest_probe(&(its_engine), out); }                                                        \
  static ait_status table_supports(const ait_region *region, ait_support *out) { return guest_supports(&(its_engine), region, out); } \
  static ait_status table_compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {                      \
    return guest_compile(&(its_engine), region, options, out);                                                                        \
  }                                                                                                                                   \
  static ait_status table_load(const ait_load_context *context, void **out_loaded) {                                                  \
    return guest_load(&(its_engine), context, out_loaded);                                                                            \
  }                                                                                                                                   \
  const ait_backend ait_backend_##ident = {                                                                                           \
      .struct_size = sizeof(ait_backend),                                                                                             \
      .abi_version = AIT_BACKEND_ABI,                                                                                                 \
      .name = #ident,                                                                                                                 \
      .summary = text,                                                                                                                \
      .knobs = its_knobs,                                                                                                             \
      .probe = table_probe,                                                                                                           \
      .supports = table_supports,                                                                                                     \
      .compile = table_compile,                                                                                                       \
      .load = table_load,                                                                                                             \
      .instance_create = guest_instance_create,                                                                                       \
      .run = guest_run,                                                                                                               \
      .instance_destroy = guest_instance_destroy,                                                                                     \
      .unload = guest_unload,                                                                                                         \
  }

#endif
