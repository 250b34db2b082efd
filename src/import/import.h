/* Front door of the import room: model files to verified raw graphs. Parsing never runs code from the file. */
#ifndef AIT_SRC_IMPORT_H
#define AIT_SRC_IMPORT_H

#include "ir/ir.h"

typedef struct ait_import_options {
  const char *model_name; /* which program of an archive that holds several; NULL: the only one */
  const ait_map
      *weights; /* name to ait_tensor: tensors that the file need not hold (ait_import_give_weights then puts all of them in); or NULL */
  size_t memory_limit; /* bytes that inflating and parsing may take; 0: 160 MiB and 32 times the file. Weights that are copied as
                        * they stand do not count, inflated ones have a limit of their own: 64 MiB or 100 times the file */
} ait_import_options;

typedef enum ait_file_kind {
  AIT_FILE_UNKNOWN,
  AIT_FILE_PT2,
  AIT_FILE_AIT,
  AIT_FILE_ONNX,
  AIT_FILE_SAFETENSORS,
  AIT_FILE_TORCHSCRIPT,
  AIT_FILE_CHECKPOINT,
  AIT_FILE_AOTI,
  AIT_FILE_TEXT /* a graph as `ait opt` prints it: no weights */
} ait_file_kind;
/* By content, not by name. */
ait_status ait_import_detect(const char *path, ait_file_kind *out) AIT_MUST_USE;

/* A raw graph with its weights (mapped where the file allows). Errors name file, part and reason:
 * "cannot import 'm.pt2': node 'frob': operator 'aten.frobnicate' is not known", hint "ait ops --missing m.pt2". Codes: io (cannot be
 * read), invalid-model, unsupported, limit, out-of-memory; invalid-argument or not-found when model_name does not settle which program is
 * meant. */
ait_status ait_import_pt2(ait_allocator a, const char *path, const ait_import_options *options, ait_graph **out) AIT_MUST_USE;

/* The same from memory: all weights are copied, data is not needed afterwards. `name` stands for the path in messages. */
ait_status ait_import_pt2_memory(ait_allocator a, const char *name, const void *data, size_t size, const ait_import_options *options,
                                 ait_graph **out) AIT_MUST_USE;

/* ---- missing.c: operators of a file that ait cannot run ---------------------------------------------------------------------------*/
typedef struct ait_missing_operator {
  const char *name, *first_node;
  uint32_t nodes;
  bool custom; /* the application's: it could be registered */
} ait_missing_operator;
typedef struct ait_missing {
  ait_arena arena;
  ait_map by_name; /* to ait_missing_operator, in the order of the file */
} ait_missing;
void ait_missing_init(ait_missing *m, ait_allocator a);
void ait_missing_deinit(ait_missing *m);
ait_status ait_missing_add(ait_missing *m, const char *name, const char *node, bool custom) AIT_MUST_USE; /* one node of it */
ait_status ait_missing_of_graph(const ait_graph *g, ait_missing *m) AIT_MUST_USE;                         /* nested graphs, too */
/* The error of an import that stopped at the first of them, with all of them in its message. */
ait_status ait_missing_tell(const ait_missing *m, ait_status status) AIT_MUST_USE;

/* All of a file, without refusing it for them ("ait ops --missing"). */
ait_status ait_import_pt2_operators(ait_allocator a, const char *path, const ait_import_options *options, ait_missing *out) AIT_MUST_USE;

/* given.c: tensors of a checkpoint (name to contiguous ait_tensor with storage) in the place of the graph's own weights, by name; a weight
 * that shares its elements with one of that name follows it. Smaller floats are widened. Errors: invalid-argument (another shape or dtype;
 * a parameter is not given; no name fits). */
ait_status ait_import_give_weights(ait_graph *graph, const ait_map *given) AIT_MUST_USE;
/* One of them, into the store of a graph that is being made. */
ait_status ait_import_give_weight(ait_weight_store *store, const ait_graph *graph, const ait_value_info *declared, const char *name,
                                  const ait_tensor *tensor) AIT_MUST_USE;

/* The same three for ONNX models, opset 7 to 27. The graph is raw in dialect, made of pure operators of core, ATen and onnx.*; functions
 * are inlined, initializers mapped, external data mapped from the model's folder only. */
ait_status ait_import_onnx(ait_allocator a, const char *path, const ait_import_options *options, ait_graph **out) AIT_MUST_USE;
ait_status ait_import_onnx_memory(ait_allocator a, const char *name, const void *data, size_t size, const ait_import_options *options,
                                  ait_graph **out) AIT_MUST_USE;
ait_status ait_import_onnx_operators(ait_allocator a, const char *path, const ait_import_options *options, ait_missing *out) AIT_MUST_USE;

#endif
