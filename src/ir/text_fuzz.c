/* Graph text: whatever is read can be verified, cloned and flattened, and prints as text that reads as the same. */
#include "ir/ir.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const ait_graph *g) {
  ait_allocator a = ait_allocator_default();
  ait_text first, second;
  ait_text_init(&first, a);
  ait_text_init(&second, a);
  ait_graph *again;
  if (ait_graph_print(g, &first) == AIT_OK) {
    ait_status status = ait_graph_parse(a, first.data, first.length, &again);
    if (status) abort(); /* the printer writes what the parser reads */
    if (ait_graph_print(again, &second) == AIT_OK && strcmp(first.data, second.data) != 0) abort();
    ait_graph_destroy(again);
  }
  ait_text_deinit(&first);
  ait_text_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ait_allocator a = ait_allocator_default();
  ait_graph *g, *copy;
  ait_region *region;
  ait_status status = ait_graph_parse(a, (const char *)data, size, &g);
  if (status) {
    ait_status_free(status);
    return 0;
  }
  check_text(g);
  ait_status_ignore(ait_graph_verify(g));
  if (ait_graph_region(g, a, &region) == AIT_OK) ait_graph_region_destroy(a, region);
  if (ait_graph_clone(g, &copy) == AIT_OK) ait_graph_destroy(copy);
  ait_graph_destroy(g);
  return 0;
}
