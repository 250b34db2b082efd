/* Counted storage and strided views of it. */
#include "tensor/tensor.h"

#include <stdatomic.h>
#include <stdio.h>

/* ---- storage -------------------------------------------------------------------------------------------------------------------*/
enum { STORAGE_ALIGN = 64 };

struct ait_storage {
  ait_allocator allocator;
  atomic_size_t references;
  void *data;
  size_t bytes;
  bool inline_data; /* data follows this header in one allocation */
  void (*release)(void *ctx);
  void *ctx;
};
/* The header of inline storage is padded to a multiple of the alignment. */
static size_t header_bytes(void) { return ait_align_up(sizeof(struct ait_storage), STORAGE_ALIGN); }

ait_status ait_storage_create(ait_allocator a, size_t bytes, ait_storage **out) {
  size_t total;
  if (ait_add_overflows(bytes, header_bytes(), &total)) return ait_error(AIT_CODE_LIMIT, "a tensor of %zu bytes is too large", bytes);
  ait_storage *s = ait_alloc(a, total, STORAGE_ALIGN);
  if (!s) return AIT_OOM();
  *s = (ait_storage){.allocator = a, .data = (char *)s + header_bytes(), .bytes = bytes, .inline_data = true};
  atomic_init(&s->references, 1);
  *out = s;
  return AIT_OK;
}

ait_status ait_storage_wrap(ait_allocator a, void *data, size_t bytes, void (*release)(void *ctx), void *ctx, ait_storage **out) {
  ait_storage *s = ait_alloc(a, sizeof *s, _Alignof(ait_storage));
  if (!s) return AIT_OOM();
  *s = (ait_storage){.allocator = a, .data = data, .bytes = bytes, .release = release, .ctx = ctx};
  atomic_init(&s->references, 1);
  *out = s;
  return AIT_OK;
}

ait_storage *ait_storage_retain(ait_storage *s) {
  if (s) atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
  return s;
}

void ait_storage_release(ait_storage *s) {
  if (!s || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1) return;
  if (s->inline_data) {
    ait_free(s->allocator, s, header_bytes() + s->bytes);
    return;
  }
  if (s->release) s->release(s->ctx);
  else ait_free(s->allocator, s->data, s->bytes);
  ait_free(s->allocator, s, sizeof *s);
}

void *ait_storage_data(ait_storage *s) { return s->data; }
size_t ait_storage_bytes(const ait_storage *s) { return s->bytes; }

/* ---- views ---------------------------------------------------------------------------------------------------------------------*/
void ait_tensor_set_contiguous(ait_tensor *t) {
  int64_t stride = 1;
  for (int32_t i = t->rank - 1; i >= 0; i--) {
    t->strides[i] = stride;
    stride *= t->shape[i] > 1 ? t->shape[i] : 1;
  }
}

int64_t ait_tensor_count(const ait_tensor *t) {
  int64_t count = 1;
  for (int32_t i = 0; i < t->rank; i++) count *= t->shape[i];
  return count;
}

size_t ait_tensor_bytes(const ait_tensor *t) { return (size_t)ait_tensor_count(t) * ait_dtype_size(t->dtype); }

bool ait_tensor_is_contiguous(const ait_tensor *t) {
  int64_t expected = 1;
  for (int32_t i = 0; i < t->rank; i++) {
    if (t->shape[i] == 0) return true;
  }
  for (int32_t i = t->rank - 1; i >= 0; i--) {
    if (t->shape[i] == 1) continue;
    if (t->strides[i] != expected) return false;
    expected *= t->shape[i];
  }
  return true;
}

bool ait_tensor_same_shape(const ait_tensor *a, const ait_tensor *b) {
  return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

void ait_tensor_shape_text(const ait_tensor *t, char *out, size_t size) {
  size_t used = 0;
  for (int32_t i = 0; i < t->rank && used < size; i++) {
    used += (size_t)snprintf(out + used, size - used, "%s%lld", i ? ", " : "[", (long long)t->shape[i]);
  }
  if (used < size) snprintf(out + used, size - used, t->rank ? "]" : "[]");
}

/* Bytes of a contiguous tensor, checked. The strides' products are checked with it: a zero size hides no overflow. */
static ait_status checked_bytes(ait_dtype dtype, int32_t rank, const int64_t *shape, size_t *out) {
  size_t element = ait_dtype_size(dtype);
  if (element == 0) return ait_error(AIT_CODE_INVALID_ARGUMENT, "unknown dtype %d", (int)dtype);
  if (rank < 0 || rank > AIT_MAX_RANK) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "a tensor cannot have %d dimensions (at most %d)", rank, AIT_MAX_RANK);
  }
  int64_t span = (int64_t)element;
  bool empty = false;
  for (int32_t i = 0; i < rank; i++) {
    if (shape[i] < 0) return ait_error(AIT_CODE_INVALID_ARGUMENT, "dimension %d has the negative size %lld", i, (long long)shape[i]);
    if (shape[i] == 0) empty = true;
    else if (ait_mul_overflows(span, shape[i], &span))
      return ait_error(AIT_CODE_LIMIT, "the size of a tensor overflows at dimension %d", i);
  }
  *out = empty ? 0 : (size_t)span;
  return AIT_OK;
}

ait_status ait_tensor_create(ait_allocator allocator, ait_dtype dtype, int32_t rank, const int64_t *shape, ait_tensor *out) {
  size_t bytes = 0;
  AIT_TRY(checked_bytes(dtype, rank, shape, &bytes));
  ait_storage *storage;
  AIT_TRY(ait_storage_create(allocator, bytes, &storage));
  *out = ait_tensor_borrow(storage->data, dtype, rank, shape);
  out->storage = storage;
  return AIT_OK;
}

ait_tensor ait_tensor_borrow(void *data, ait_dtype dtype, int32_t rank, const int64_t *shape) {
  ait_tensor t = {.data = data, .dtype = dtype, .rank = rank};
  for (int32_t i = 0; i < rank; i++) t.shape[i] = shape[i];
  ait_tensor_set_contiguous(&t);
  return t;
}

ait_tensor ait_tensor_retain(const ait_tensor *t) {
  ait_storage_retain(t->storage);
  return *t;
}

void ait_tensor_release(ait_tensor *t) {
  if (!t) return;
  ait_storage_release(t->storage);
  memset(t, 0, sizeof *t);
}

ait_value ait_value_tensor(ait_tensor tensor) { return (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = tensor}; }

void ait_value_release(ait_value *value) {
  if (!value) return;
  if (value->kind == AIT_VALUE_TENSOR) ait_tensor_release(&value->as.tensor);
  memset(value, 0, sizeof *value);
}

bool ait_strides_fit(int32_t rank, const int64_t *shape, const int64_t *strides, int64_t offset, int64_t elements) {
  int64_t low = offset, high = offset; /* lowest and highest element reached */
  if (offset < 0) return false;
  for (int32_t i = 0; i < rank; i++) {
    if (shape[i] < 0) return false;
    if (shape[i] == 0) return true;
  }
  for (int32_t i = 0; i < rank; i++) {
    int64_t reach;
    if (ait_mul_overflows(shape[i] - 1, strides[i], &reach)) return false;
    if (reach < 0 ? ait_add_overflows(low, reach, &low) : ait_add_overflows(high, reach, &high)) return false;
  }
  return low >= 0 && high < elements;
}
