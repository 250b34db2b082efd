/* The backend interface: one constant table per backend, the same built in or in a plugin.
 *
 * compile() sees a region: a flat, read-only description of (part of) a graph. load() and run() never see it: they get the blob that
 * compile() made, and the model's weights by name. The structures here are append-only; struct_size tells what the other side knows. */
#ifndef AIT_BACKEND_H
#define AIT_BACKEND_H

#include <ait/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AIT_BACKEND_ABI 1u
#define AIT_REGION_VERSION 1u
#define AIT_NO_INDEX UINT32_MAX

/* ---- symbolic sizes ------------------------------------------------------------------------------------------------------------
 * A dim is an index into the region's (or graph's) table of integer expressions. Children always have smaller indices. */
typedef uint32_t ait_dim;

typedef enum ait_dim_op {
  AIT_DIM_CONST = 0, /* value */
  AIT_DIM_SYMBOL,    /* a = index into symbols */
  AIT_DIM_ADD,
  AIT_DIM_SUB,
  AIT_DIM_MUL,
  AIT_DIM_FLOORDIV, /* rounds towards minus infinity */
  AIT_DIM_CEILDIV,
  AIT_DIM_MOD, /* Python's sign rule */
  AIT_DIM_MIN,
  AIT_DIM_MAX,
  AIT_DIM_POW,
  AIT_DIM_UNKNOWN, /* depends on data, or on an expression that is not integer arithmetic: known only when the graph runs */
} ait_dim_op;

typedef struct ait_dim_expr {
  ait_dim_op op;
  ait_dim a, b;
  int64_t value;
} ait_dim_expr;

typedef struct ait_symbol {
  const char *name; /* "s77"; "u0" for a size that depends on data */
  int64_t min, max; /* inclusive; INT64_MAX: unbounded */
  int64_t hint;     /* value at export, or -1 */
  bool backed;      /* bound by the shape (or value) of an input */
} ait_symbol;

/* ---- arguments of a node -------------------------------------------------------------------------------------------------------
 * One per parameter of the operator's schema (ops.inc), in schema order, defaults filled in. */
typedef enum ait_arg_kind {
  AIT_ARG_NONE = 0,
  AIT_ARG_VALUE, /* as.value: a tensor, tensor list, or int/float/bool computed in the graph */
  AIT_ARG_INT,
  AIT_ARG_FLOAT,
  AIT_ARG_BOOL,
  AIT_ARG_STRING,  /* as.string, NUL-terminated; count = length */
  AIT_ARG_COMPLEX, /* as.complex: re, im */
  AIT_ARG_DTYPE,   /* as.i: an ait_dtype */
  AIT_ARG_DIM,     /* as.dim: an integer known once symbols are bound (core dialect) */
  AIT_ARG_LIST,    /* as.list, count: elements of any kind above */
  AIT_ARG_GRAPH,   /* as.graph: nested region (ait_region) or graph (ait_graph), whichever structure the arg stands in */
} ait_arg_kind;

typedef struct ait_arg {
  ait_arg_kind kind;
  uint32_t count;
  union {
    uint32_t value;
    int64_t i; /* memory formats: 0 contiguous, 1 preserve, 2 channels_last, 3 channels_last_3d (ATen numbering) */
    double f;
    bool b;
    const char *string;
    double complex[2];
    ait_dim dim;
    const struct ait_arg *list;
    const void *graph;
  } as;
} ait_arg;

/* ---- region --------------------------------------------------------------------------------------------------------------------*/
typedef enum ait_type {
  AIT_TYPE_NONE = 0,
  AIT_TYPE_TENSOR,
  AIT_TYPE_TENSOR_LIST,
  AIT_TYPE_INT, /* symbolic int */
  AIT_TYPE_FLOAT,
  AIT_TYPE_BOOL,
  AIT_TYPE_STRING,
} ait_type;

typedef struct ait_region_value {
  const char *name;
  ait_type type;
  ait_dtype dtype;      /* tensors */
  int32_t rank;         /* tensors; -1: unknown. Others: 0 */
  const ait_dim *shape; /* tensors: rank dims. Ints: one dim, their expression, or NULL when it is not known */
} ait_region_value;

enum {
  AIT_NODE_INPLACE = 1u, /* runs the functional operator and writes the result into args[0], which is also results[0] */
};

typedef struct ait_region_node {
  const char *op; /* name in ops.inc: "aten.add.Tensor", "linear" */
  uint32_t flags;
  uint32_t arg_count;
  const ait_arg *args;
  uint32_t result_count;
  const uint32_t *results; /* value ids; AIT_NO_INDEX: result not produced (None) */
  const char *name;        /* node's name in the user's program */
  const char *module;      /* path of the nn.Module it came from ("encoder.layer.0"), "" for the root */
} ait_region_node;

typedef enum ait_input_kind {
  AIT_INPUT_USER = 0,
  AIT_INPUT_PARAMETER,
  AIT_INPUT_BUFFER, /* state: kept over calls; may be written */
  AIT_INPUT_CONSTANT,
  AIT_INPUT_TOKEN, /* ordering only, no data */
} ait_input_kind;

typedef struct ait_region_input {
  uint32_t value; /* value id; AIT_NO_INDEX for a user input that export baked in (then `baked` is what the caller must pass) */
  ait_input_kind kind;
  const char *name;   /* user input's name, or fully qualified name of the weight */
  ait_arg baked;      /* NONE, INT, FLOAT, BOOL, STRING */
  bool mutated;       /* the region may write into this tensor */
  int32_t user_index; /* position among the user inputs; -1 for weights */
} ait_region_input;

typedef enum ait_output_kind {
  AIT_OUTPUT_USER = 0,
  AIT_OUTPUT_STATE, /* new contents of the buffer (or parameter) `name` */
  AIT_OUTPUT_INPUT, /* new contents of user input `user_index` */
  AIT_OUTPUT_TOKEN,
} ait_output_kind;

typedef struct ait_region_output {
  ait_arg arg; /* VALUE, or a constant */
  ait_output_kind kind;
  const char *name;
  int32_t user_index;
} ait_region_output;

/* A condition that the caller's sizes must meet, from the exported program's guards: left REL right. */
typedef enum ait_guard_op { AIT_GUARD_EQ = 0, AIT_GUARD_NE, AIT_GUARD_LE, AIT_GUARD_LT } ait_guard_op;
typedef struct ait_region_guard {
  ait_guard_op op;
  ait_dim left, right;
  const char *text; /* as the program states it */
} ait_region_guard;

typedef struct ait_region {
  uint32_t struct_size, version;
  const char *name;
  uint32_t symbol_count, dim_count, value_count, node_count, input_count, output_count, guard_count;
  const ait_symbol *symbols;
  const ait_dim_expr *dims;
  const ait_region_value *values;
  const ait_region_node *nodes; /* in execution order */
  const ait_region_input *inputs;
  const ait_region_output *outputs;
  const ait_region_guard *guards;
  /* The file that this region is the whole of, as torch.export.save wrote it (.pt2), while it is compiled; NULL: a part of a model, a graph
   * that passes have changed, or one that came from elsewhere. Not part of what is sealed. */
  const char *program;
} ait_region;

/* ---- weights -------------------------------------------------------------------------------------------------------------------
 * get() fills a view of the named parameter, buffer or constant as the user's file has it (strides kept), valid as long as the provider.
 * Thread-safe. Errors: not-found, io. */
typedef struct ait_weights {
  void *ctx;
  ait_status (*get)(void *ctx, const char *name, ait_tensor *out);
} ait_weights;

/* ---- knobs ---------------------------------------------------------------------------------------------------------------------
 * Options are key=value texts. A backend lists what it knows with the values worth trying; the tuner makes candidates of them. */
typedef struct ait_knob {
  const char *name, *help, *default_value;
  const char *const *values; /* NULL-terminated: what a tuner should try */
} ait_knob;

typedef struct ait_option {
  const char *key, *value;
} ait_option;

typedef struct ait_compile_options {
  uint32_t struct_size;
  ait_allocator allocator;
  ait_weights weights;
  uint32_t option_count;
  const ait_option *options; /* knobs */
  uint64_t cpu_mask;         /* CPU features that may be used: ait_cpu_* bits of src/base/cpu.h */
} ait_compile_options;

typedef struct ait_blob {
  void *data; /* from the options' allocator, 64-byte aligned */
  size_t size;
} ait_blob;

/* Why a region, or a node of it, is not taken. */
typedef struct ait_support_note {
  uint32_t node;    /* AIT_NO_INDEX: the whole region */
  const char *code; /* short, stable: "op-not-in-native" */
  char reason[192];
} ait_support_note;

typedef struct ait_support {
  bool supported;
  uint32_t note_count, note_capacity;
  ait_support_note *notes; /* caller's storage; a full table keeps the first ones. Nodes that run on the portable path are noted, too */
} ait_support;

typedef struct ait_probe {
  bool available;
  char version[64];
  char detail[256]; /* path, or why not */
} ait_probe;

/* Threads that run a step. run(pool, fn, ctx, n) calls fn(ctx, i) for i in 0..n-1 and returns when all are done. */
typedef struct ait_pool ait_pool;
AIT_API int32_t ait_pool_threads(const ait_pool *pool); /* 1 for NULL */

typedef struct ait_load_context {
  uint32_t struct_size;
  ait_allocator allocator;
  ait_weights weights;
  const void *blob; /* stays valid and mapped until unload; 64-byte aligned */
  size_t blob_size;
  uint64_t cpu_mask;
  uint32_t option_count;
  const ait_option *options;
} ait_load_context;

typedef struct ait_step_time {
  const char *name, *op, *module, *kernel;
  double seconds; /* summed over runs since profiling began */
  uint64_t calls;
  bool portable; /* ran on the portable path */
} ait_step_time;

/* One run. inputs[i] belongs to region input i (weights included only when the region mutates them: state is passed as a tensor; other
 * weights come from the provider at load and their entry is NONE). outputs[i] belongs to region output i: on entry NONE, or a tensor
 * with memory to fill; on return a value whose tensor stays valid until the instance's next run, or has storage: then it holds one
 * reference, which the caller releases. State is whatever a region declares `mutated` or has an AIT_OUTPUT_STATE for; a weight's tensor
 * in inputs[] goes before the provider's. */
typedef struct ait_run_context {
  uint32_t struct_size;
  ait_allocator allocator;
  ait_pool *pool; /* NULL: run in the calling thread */
  const ait_value *inputs;
  ait_value *outputs;
  bool profile;
} ait_run_context;

typedef struct ait_backend {
  uint32_t struct_size, abi_version;
  const char *name, *summary;
  const ait_knob *knobs; /* ends with a NULL name */
  bool accepts_raw;      /* takes the raw dialect (strided, aliasing); others get the core dialect */
  void (*probe)(ait_probe *out);
  ait_status (*supports)(const ait_region *region, ait_support *out);
  ait_status (*compile)(const ait_region *region, const ait_compile_options *options, ait_blob *out);
  /* Loaded code is shared by all sessions of a model and never changes; an instance is one session's memory. */
  ait_status (*load)(const ait_load_context *context, void **out_loaded);
  ait_status (*instance_create)(void *loaded, ait_allocator allocator, void **out_instance);
  ait_status (*run)(void *instance, const ait_run_context *context);
  uint32_t (*profile)(void *instance, ait_step_time *out, uint32_t capacity); /* returns how many steps there are; may be NULL */
  void (*instance_destroy)(void *instance);
  void (*unload)(void *loaded);
  size_t (*instance_bytes)(const void *instance); /* planned memory now held; may be NULL */
  bool blob_is_whole; /* load goes by the blob and the weights alone, not by options: equal blobs are equal plans */
  bool blob_is_code;  /* blobs hold machine code: from a file they are loaded only when a trusted key has signed it */
  /* ---- added later: a table whose struct_size ends before them has none of these (AIT_BACKEND_HAS) ---- */
  const char *needs; /* what a process must have beside this library, "Python and torch": said in the manifest; NULL: nothing */
  /* Seconds that all runs so far spent on taking tensors to another process and back: a measurement leaves them out, since where the plan
   * is used it runs without that process. NULL: there is none. */
  double (*transport_seconds)(const void *instance);
} ait_backend;
#define AIT_BACKEND_HAS(table, field) ((table)->struct_size >= offsetof(ait_backend, field) + sizeof((table)->field) && (table)->field)

/* ---- other people's engines ----------------------------------------------------------------------------------------------------------
 * The backends onnxruntime and openvino open the C library of that engine at run time. They look into the folders of search_path, then
 * where Python packages and libraries are installed system-wide; the library itself reads no environment. Call it before the first use of a
 * backend. */
typedef struct ait_guest_options {
  uint32_t struct_size;
  const char *search_path; /* folders separated by colons: a Python environment's site-packages, or the folder of the library; NULL: none */
  /* ONNX Runtime from 1.29 on reports usage over the network unless ORT_DISABLE_TELEMETRY=1 is in the environment before its first use.
   * true: the caller has set that, or wants the reports. false: such a version counts as not available. */
  bool usage_reporting_settled;
} ait_guest_options;
AIT_API AIT_MUST_USE ait_status ait_guests_configure(const ait_guest_options *options);

/* A plugin exports this name; NULL when it does not speak abi_version. */
typedef const ait_backend *(*ait_backend_query_fn)(uint32_t abi_version);
#define AIT_BACKEND_QUERY_SYMBOL "ait_backend_query"
/* One more backend, after the built-in ones, for the rest of the process. The table is kept, not copied. Thread-safe. Errors:
 * invalid-argument (another ABI, the name is taken), limit (32 are enough). */
AIT_API AIT_MUST_USE ait_status ait_backend_add(const ait_backend *backend);

#ifdef __cplusplus
}
#endif
#endif
