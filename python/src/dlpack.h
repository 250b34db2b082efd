/* DLPack 1.x, own declarations of what crosses between libraries (the specification: dmlc/dlpack, dlpack.h of version 1.3). */
#ifndef AIT_PYTHON_DLPACK_H
#define AIT_PYTHON_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA_HOST = 3, DL_ROCM_HOST = 11 }; /* device types whose memory the CPU can read */
enum { DL_READ_ONLY = 1u };                               /* of `flags` */

/* Type codes. */
enum {
  DL_INT = 0,
  DL_UINT = 1,
  DL_FLOAT = 2,
  DL_BFLOAT = 4,
  DL_COMPLEX = 5,
  DL_BOOL = 6,
  DL_F8E4M3FN = 10,
  DL_F8E4M3FNUZ = 11,
  DL_F8E5M2 = 12,
  DL_F8E5M2FNUZ = 13,
  DL_F8E8M0FNU = 14,
};

typedef struct dl_device {
  int32_t type, id;
} dl_device;

typedef struct dl_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} dl_dtype;

typedef struct dl_tensor {
  void *data;
  dl_device device;
  int32_t ndim;
  dl_dtype dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: contiguous */
  uint64_t byte_offset;
} dl_tensor;

/* Capsule "dltensor". */
typedef struct dl_managed {
  dl_tensor tensor;
  void *context;
  void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_version {
  uint32_t major, minor;
} dl_version;

/* Capsule "dltensor_versioned". */
typedef struct dl_managed_versioned {
  dl_version version;
  void *context;
  void (*deleter)(struct dl_managed_versioned *self);
  uint64_t flags;
  dl_tensor tensor;
} dl_managed_versioned;

/* Capsule "dlpack_exchange_api", attribute __dlpack_c_exchange_api__ of an array type (DLPack 1.3): the same without a Python call. */
typedef struct dl_exchange_header {
  dl_version version;
  struct dl_exchange_header *previous;
} dl_exchange_header;

typedef struct dl_exchange {
  dl_exchange_header header;
  int (*allocate)(dl_tensor *prototype, dl_managed_versioned **out, void *ctx, void (*set_error)(void *, const char *, const char *));
  int (*managed_from_object)(void *object, dl_managed_versioned **out);
  int (*object_from_managed)(dl_managed_versioned *tensor, void **out_object);
  int (*view_of_object)(void *object, dl_tensor *out); /* may be NULL */
  int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
} dl_exchange;

#endif
