/* Custom operators: what a model calls by a name of the application's own, "mylib::foo".
 *
 * An operator is registered once for the whole process, before a model that calls it is opened, and stays registered. From then on import,
 * the reference interpreter, native and eager (which run it as a step of its own), the tuner and .ait files know it. Registration may come
 * from any thread. infer and run are called from any thread, also from several at once: they must not keep state without a lock of their
 * own. A name that ait itself knows cannot be registered. */
#ifndef AIT_CUSTOM_OP_H
#define AIT_CUSTOM_OP_H

#include <ait/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ait_custom_arg_kind {
  AIT_CUSTOM_NONE = 0,
  AIT_CUSTOM_TENSOR,
  AIT_CUSTOM_INT,
  AIT_CUSTOM_FLOAT,
  AIT_CUSTOM_BOOL,
  AIT_CUSTOM_STRING, /* NUL-terminated */
  AIT_CUSTOM_COMPLEX,
  AIT_CUSTOM_DTYPE, /* as.i: an ait_dtype */
  AIT_CUSTOM_LIST,  /* `count` elements of any kind above */
} ait_custom_arg_kind;

typedef struct ait_custom_arg {
  ait_custom_arg_kind kind;
  uint32_t count;
  union {
    const ait_tensor *tensor;
    int64_t i;
    double f;
    bool b;
    const char *string;
    double pair[2]; /* real, imaginary */
    const struct ait_custom_arg *list;
  } as;
} ait_custom_arg;

/* One call. Everything lives until the function returns. */
typedef struct ait_custom_call {
  uint32_t struct_size;
  const char *op, *node, *module; /* for messages: the operator's name, the node's in the program, its nn.Module's path */
  void *ctx;                      /* of the ait_custom_op */
  uint32_t arg_count, result_count;
  const ait_custom_arg *args; /* one for each parameter of the schema, in its order, defaults filled in */
  ait_allocator allocator;    /* for scratch memory */
  ait_pool *pool;             /* for ait_custom_parallel */
} ait_custom_call;

typedef struct ait_custom_shape {
  ait_dtype dtype;
  int32_t rank;
  int64_t shape[AIT_MAX_RANK];
} ait_custom_shape;

enum {
  AIT_CUSTOM_STRIDED = 1u, /* run takes tensors of any strides; without it tensors are contiguous (copied where they are not) */
  AIT_CUSTOM_DOUBLE = 2u,  /* infer and run also take float64 (complex128) where the program has smaller floats: the oracle then runs the
                            * operator in double, too. Without it the oracle casts around the call, and its result is only as exact as the
                            * operator in its own dtypes */
};

typedef struct ait_custom_op {
  uint32_t struct_size;
  uint32_t flags;
  const char *name;    /* as PyTorch registers it: "mylib::foo", with an overload "mylib::foo.out"; "mylib.foo" is the same */
  const char *schema;  /* as PyTorch has it, up to 64 parameters: "(Tensor x, Tensor(a!) y, float s=1.0) -> Tensor". "(a!)": run writes into
                        * that tensor. Results: up to 16 of Tensor, int, float, bool. A result is never an argument or a view of one */
  const char *summary; /* one line, or NULL */
  void *ctx;
  /* dtype and shape of each result that is a tensor; the others are left alone. Called before run with the same arguments, so sizes may
   * depend on contents. While an ONNX model is imported only dtypes and shapes are known: data is NULL then, and a rule that needs contents
   * returns an error of code unsupported. */
  ait_status (*infer)(const ait_custom_call *call, ait_custom_shape *results);
  /* Tensors are there, contiguous, with what infer said: fill them. Of numbers set as.i, as.f or as.b. */
  ait_status (*run)(const ait_custom_call *call, ait_value *results);
} ait_custom_op;

/* The structure is kept, not copied: it and its texts must stay as they are for the rest of the process. Errors: invalid-argument (the name
 * is taken or ait's own, the schema cannot be read, a function is missing), limit (256 are enough). */
AIT_API AIT_MUST_USE ait_status ait_custom_op_add(const ait_custom_op *op);
/* NULL when no operator of that name is registered. Either spelling. */
AIT_API const ait_custom_op *ait_custom_op_find(const char *name);
AIT_API size_t ait_custom_op_count(void);
AIT_API const ait_custom_op *ait_custom_op_at(size_t index); /* NULL when out of range */

/* fn(ctx, i) for i in 0..count-1 on the threads of the session; returns when all are done. */
AIT_API void ait_custom_parallel(const ait_custom_call *call, int32_t count, void (*fn)(void *ctx, int32_t index), void *ctx);

/* ---- plugins -----------------------------------------------------------------------------------------------------------------------
 * A shared object that brings custom operators, backends, or both. It exports ait_plugin_query, which gets the interface version of the
 * caller and answers NULL when it does not speak it. It calls functions of this library without being linked with it: they come from the
 * program that loads it. */
#define AIT_PLUGIN_ABI 1u
#define AIT_PLUGIN_QUERY_SYMBOL "ait_plugin_query"

typedef struct ait_plugin {
  uint32_t struct_size, abi_version;
  const char *name, *version;
  uint32_t custom_op_count, backend_count;
  const ait_custom_op *const *custom_ops;
  const ait_backend *const *backends;
} ait_plugin;

typedef const ait_plugin *(*ait_plugin_query_fn)(uint32_t abi_version);

/* Runs code of the file: load only what you trust. It stays loaded for the rest of the process; loading a file again does nothing. After an
 * error what was registered before the fault stays. A file that exports only ait_backend_query brings that backend.
 * Any thread. Errors: not-found, unavailable (the loader's reason), incompatible (no query symbol, another version), and those of
 * ait_custom_op_add and ait_backend_add. */
AIT_API AIT_MUST_USE ait_status ait_plugin_load(const char *path);

#ifdef __cplusplus
}
#endif
#endif
