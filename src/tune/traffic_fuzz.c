/* Any bytes as a trace. */
#include "tune/traffic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ait_traffic t;
  char text[64];
  ait_status status = ait_traffic_parse("fuzz.jsonl", (const char *)data, size, &t);
  if (status != AIT_OK) return ait_status_ignore(status), 0;
  uint64_t requests = 0;
  for (size_t k = 0; k < t.kind_count; ++k) {
    ait_traffic_kind_text(&t.kinds[k], text, sizeof text);
    requests += t.kinds[k].requests;
  }
  if (requests != t.request_count || t.request_count == 0) __builtin_trap();
  for (size_t i = 0; i < t.request_count; ++i)
    if (t.requests[i].kind >= t.kind_count || !(t.requests[i].at >= 0) || (i && t.requests[i].at < t.requests[i - 1].at)) __builtin_trap();
  ait_traffic_deinit(&t);
  return 0;
}
