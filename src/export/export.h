/* Front door of the export room: regions to other people's model files. */
#ifndef AIT_SRC_EXPORT_H
#define AIT_SRC_EXPORT_H

#include "base/base.h"
#include "ir/ir.h"
#include "tensor/tensor.h"

enum { AIT_ONNX_OPSET_MIN = 18, AIT_ONNX_OPSET_MAX = 24, AIT_ONNX_OPSET_DEFAULT = 18 };

typedef struct ait_onnx_options {
  int32_t opset;        /* 0: AIT_ONNX_OPSET_DEFAULT */
  bool external_data;   /* to a file: weights beside it, in PATH.data. They go there anyhow when the model would exceed protobuf's 2 GB */
  const char *producer; /* version text of the producer field; NULL: "" */
} ait_onnx_options;

/* A region of the core dialect as an ONNX model. Weights are initializers and lie in the bytes. State (a mutated buffer) is an input with
 * its first contents as default, and an output "next.NAME"; a user input that is written is an output "next.NAME", too. Symbols are
 * dim_param. Equal regions and weights give equal bytes.
 * Errors: unsupported (names node and operator, and why ONNX cannot say it), limit (more than 2 GB), invalid-argument (opset). */
ait_status ait_export_onnx(ait_allocator a, const ait_region *region, ait_weights weights, const ait_onnx_options *options,
                           ait_blob *out) AIT_MUST_USE;
/* The same to a file, whole or not at all. */
ait_status ait_export_onnx_file(ait_allocator a, const ait_region *region, ait_weights weights, const ait_onnx_options *options,
                                const char *path) AIT_MUST_USE;
/* A core graph's nested graphs, which the pipelines leave raw, become core as well. */
ait_status ait_export_lower(ait_allocator a, ait_graph *graph) AIT_MUST_USE;
/* true when an operator of that name has a row in export/onnx/rows.inc. */
bool ait_onnx_has_row(const char *op);

#endif
