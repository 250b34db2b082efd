/* Tensors into a safetensors file: eight bytes of length, a JSON header, the elements. */
#include "tensor/safetensors.h"

typedef struct plan {
  ait_text header;
  uint64_t bytes;
} plan;

static ait_status place(plan *p, const char *name, const ait_tensor *t) {
  const char *dtype = ait_safetensors_dtype(t->dtype);
  uint64_t size = (uint64_t)ait_tensor_count(t) * ait_dtype_size(t->dtype), begin = p->bytes;
  if (!dtype) return ait_error(AIT_CODE_UNSUPPORTED, "tensor '%s': safetensors files have no %s", name, ait_dtype_name(t->dtype));
  if (ait_add_overflows(p->bytes, size, &p->bytes)) return ait_error(AIT_CODE_LIMIT, "the tensors are too large");
  ait_text_printf(&p->header, "%s", p->header.length > 1 ? "," : "");
  ait_text_json_string(&p->header, name, strlen(name));
  ait_text_printf(&p->header, ":{\"dtype\":\"%s\",\"shape\":[", dtype);
  for (int32_t d = 0; d < t->rank; ++d) ait_text_printf(&p->header, "%s%lld", d ? "," : "", (long long)t->shape[d]);
  ait_text_printf(&p->header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin, (unsigned long long)p->bytes);
  return AIT_OK;
}

/* A copy only of what is not contiguous. */
static ait_status write_elements(ait_file_writer *w, ait_allocator a, const ait_tensor *t) {
  ait_tensor copy;
  size_t size = (size_t)ait_tensor_count(t) * ait_dtype_size(t->dtype);
  if (size == 0 || ait_tensor_is_contiguous(t)) return size ? ait_file_writer_write(w, t->data, size) : AIT_OK;
  AIT_TRY(ait_tensor_cast(a, t, t->dtype, &copy));
  ait_status status = ait_file_writer_write(w, copy.data, size);
  ait_tensor_release(&copy);
  return status;
}

static ait_status write_all(ait_file_writer *w, ait_allocator a, const ait_tensor_file *f, plan *p) {
  ait_text_append(&p->header, "{", 1);
  for (size_t i = 0; i < f->count; ++i) AIT_TRY(place(p, f->items[i].name, &f->items[i].tensor));
  ait_text_append(&p->header, "}", 1);
  while (p->header.length % 8) ait_text_append(&p->header, " ", 1);
  if (p->header.failed) return AIT_OOM();
  uint8_t length[8];
  for (int k = 0; k < 8; ++k) length[k] = (uint8_t)((uint64_t)p->header.length >> (8 * k));
  AIT_TRY(ait_file_writer_write(w, length, sizeof length));
  AIT_TRY(ait_file_writer_write(w, p->header.data, p->header.length));
  for (size_t i = 0; i < f->count; ++i) AIT_TRY(write_elements(w, a, &f->items[i].tensor));
  return ait_file_writer_commit(w);
}

ait_status ait_safetensors_write(ait_allocator a, const char *path, const ait_tensor_file *tensors) {
  ait_file_writer *w;
  plan p = {0};
  AIT_TRY(ait_file_writer_create(a, path, &w));
  ait_text_init(&p.header, a);
  ait_status status = write_all(w, a, tensors, &p);
  ait_text_deinit(&p.header);
  ait_file_writer_destroy(w);
  return ait_error_context(status, "cannot write '%s'", path);
}
