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

#endif
