/* A protobuf ModelProto without its bulk. protobuf-c copies every byte it unpacks; here the raw_data of tensors stays where it is: in the
 * slim copy each raw_data field holds an index (eight bytes, little-endian) into a table of views instead. The walk also checks what
 * protobuf-c does not: how deep messages nest. */
#ifndef AIT_SRC_IMPORT_ONNX_SLIM_H
#define AIT_SRC_IMPORT_ONNX_SLIM_H

#include "base/base.h"

typedef struct ox_bytes {
  const uint8_t *data;
  size_t size;
} ox_bytes;

typedef struct ox_slim {
  ait_allocator allocator;
  uint8_t *data; /* the slim message */
  size_t size, capacity;
  ox_bytes *bulks; /* in the caller's memory */
  size_t bulk_count, bulk_capacity;
} ox_slim;

/* Errors: invalid-model with the byte offset, limit (nesting), out-of-memory. deinit in any case. */
ait_status ox_slim_model(ait_allocator a, const uint8_t *data, size_t size, ox_slim *out) AIT_MUST_USE;
void ox_slim_deinit(ox_slim *slim);

#endif
