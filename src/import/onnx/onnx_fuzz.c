/* Any bytes as an ONNX model. */
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ait_import_options options = {.memory_limit = 64 << 20};
  ait_graph *graph;
  ait_status status = ait_import_onnx_memory(ait_allocator_default(), "fuzz", data, size, &options, &graph);
  ait_status_ignore(status);
  ait_graph_destroy(graph);
  return 0;
}
