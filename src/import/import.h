/* Front door of the import room: model files to verified raw graphs. Parsing never runs code from the file. */
#ifndef AIT_SRC_IMPORT_H
#define AIT_SRC_IMPORT_H

#include "ir/ir.h"

typedef struct ait_import_options {
  const char *model_name;      /* which program of an archive that holds several; NULL: the only one */
  const char *const *custom_ops; /* names that the application registered, NULL-terminated; or NULL */
  size_t memory_limit;         /* bytes that inflating and parsing may take; 0: 1 GiB or 16 times the file, whichever is more */
} ait_import_options;

typedef enum ait_file_kind { AIT_FILE_UNKNOWN, AIT_FILE_PT2, AIT_FILE_AIT, AIT_FILE_ONNX, AIT_FILE_SAFETENSORS, AIT_FILE_TORCHSCRIPT, AIT_FILE_CHECKPOINT, AIT_FILE_AOTI } ait_file_kind;
/* By content, not by name. */
ait_status ait_import_detect(const char *path, ait_file_kind *out) AIT_MUST_USE;

/* A raw graph with its weights (mapped where the file allows). Errors name file, part and reason:
 * "cannot import 'm.pt2': node 'frob' : operator aten.frobnicate is not known (hint: ait ops --missing m.pt2)". */
ait_status ait_import_pt2(ait_allocator a, const char *path, const ait_import_options *options, ait_graph **out) AIT_MUST_USE;

/* Operators of the file that ops.inc does not know, each once, without refusing the file for them ("ait ops --missing"). */
ait_status ait_import_pt2_operators(ait_allocator a, const char *path, const ait_import_options *options, ait_map *out_names) AIT_MUST_USE;

#endif
