/* Gives the backends that are fed with ONNX the exporter, which libait has and libait-rt has not. */
#include "backends/guest/guest.h"
#include "export/export.h"
#include "tune/tune.h"

static ait_status write(ait_allocator a, const ait_region *region, ait_weights weights, ait_blob *out) {
  const ait_onnx_options options = {.producer = ait_version()};
  return ait_export_onnx(a, region, weights, &options, out);
}

void ait_onnx_bridge_connect(void) {
  static const ait_onnx_bridge bridge = {.takes = ait_onnx_has_row, .write = write};
  ait_onnx_bridge_install(&bridge);
}
