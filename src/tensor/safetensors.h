/* Weights in safetensors files, alone or in shards. Internal to libait and libait-rt. */
#ifndef AIT_SRC_TENSOR_SAFETENSORS_H
#define AIT_SRC_TENSOR_SAFETENSORS_H

#include "tensor/tensor.h"

/* Adds the tensors of one file, all or none. They are views of a mapping that they keep alive (copies where the file has them at an odd
 * address); nothing is read before it is used. What the format forbids is refused: holes, overlaps, bytes behind the last tensor, duplicate
 * names, sizes that do not fit. Errors name the file and the tensor: not-found, io, invalid-model, unsupported (types smaller than a byte),
 * limit, out-of-memory. */
ait_status ait_safetensors_read(const char *path, ait_tensor_file *out) AIT_MUST_USE;
/* The same from memory; tensors are copies. */
ait_status ait_safetensors_parse(const void *data, size_t size, ait_tensor_file *out) AIT_MUST_USE;
/* safetensors_set.c: one file, an index of shards (….index.json), or a folder with either of them under one of the names that libraries
 * use. Of shards only what the index says is in them is taken. */
ait_status ait_safetensors_open(const char *path, ait_tensor_file *out) AIT_MUST_USE;

/* safetensors_write.c: whole or not at all; equal contents give equal bytes. Errors: unsupported (a dtype that the format has not), io. */
ait_status ait_safetensors_write(ait_allocator a, const char *path, const ait_tensor_file *tensors) AIT_MUST_USE;
const char *ait_safetensors_dtype(ait_dtype dtype); /* "BF16"; NULL: the format has none */

#endif
