/* Any bytes as a .pt2. CRCs stand between a fuzzer and the interesting parts, so the seed corpus holds good files, and the other targets
 * take the parts one by one. */
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ait_import_options options = {.memory_limit = 64 << 20};
  ait_graph *graph;
  ait_status status = ait_import_pt2_memory(ait_allocator_default(), "fuzz", data, size, &options, &graph);
  ait_status_ignore(status);
  ait_graph_destroy(graph);
  return 0;
}
