/* The null backend computes nothing: every output has the right dtype and shape and is all zeros. It measures what everything around a
 * backend costs, and it is the template to copy for a new one: each function of the table, in the order in which they are called. */
#include "base/base.h"
#include "backends/dims.h"
#include "tensor/tensor.h"
#include <ait/backend.h>
#include <stdio.h>

extern const ait_backend ait_backend_null;

/* ---- blob ------------------------------------------------------------------------------------------------------------------------
 * Header, then fixed-size records. Everything in it is checked by load: the bytes may come from anywhere. */
enum { BLOB_VERSION = 1 };
static const char blob_magic[8] = "aitnull";

typedef struct null_header {
  char magic[8];
  uint32_t version, symbol_count, dim_count, input_count, output_count, reserved;
} null_header;

typedef struct null_port { /* an input or an output of the region */
  uint32_t is_tensor;
  uint32_t dtype;
  int32_t rank;
  uint32_t dims[AIT_MAX_RANK];
} null_port;

typedef struct null_loaded {
  ait_allocator allocator;
  const null_header *header; /* in the blob, which outlives this */
  const ait_dim_expr *dims;
  const null_port *inputs, *outputs;
} null_loaded;

typedef struct null_instance {
  const null_loaded *loaded;
  ait_allocator allocator;
  int64_t *symbols;
  ait_tensor *held; /* outputs for which the caller gave no memory; valid until the next run */
} null_instance;

static void null_probe(ait_probe *out) {
  out->available = true;
  memcpy(out->version, "1", 2);
  memcpy(out->detail, "built in", sizeof "built in");
}

static ait_status null_supports(const ait_region *region, ait_support *out) {
  out->supported = true;
  for (uint32_t i = 0; i < region->output_count; ++i) {
    const ait_arg *arg = &region->outputs[i].arg;
    if (arg->kind != AIT_ARG_VALUE) continue;
    const ait_region_value *v = &region->values[arg->as.value];
    bool known = v->type == AIT_TYPE_TENSOR && v->rank >= 0;
    for (int32_t d = 0; known && d < v->rank; ++d) known = ait_dims_backed(region, v->shape[d]);
    if (known) continue;
    out->supported = false;
    if (out->note_count == out->note_capacity) return AIT_OK;
    ait_support_note *note = &out->notes[out->note_count++];
    *note = (ait_support_note){.node = AIT_NO_INDEX, .code = "output-shape-unknown"};
    snprintf(note->reason, sizeof note->reason, "the shape of output %u is known only after computing it", i);
  }
  return AIT_OK;
}

static null_port port_of(const ait_region *region, uint32_t value) {
  null_port port = {0};
  if (value == AIT_NO_INDEX || region->values[value].type != AIT_TYPE_TENSOR || region->values[value].rank < 0) return port;
  const ait_region_value *v = &region->values[value];
  port.is_tensor = 1;
  port.dtype = (uint32_t)v->dtype;
  port.rank = v->rank;
  memcpy(port.dims, v->shape, (size_t)v->rank * sizeof port.dims[0]);
  return port;
}

static ait_status null_compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  size_t dims_bytes = region->dim_count * sizeof(ait_dim_expr);
  size_t ports = (size_t)region->input_count + region->output_count;
  size_t size = sizeof(null_header) + dims_bytes + ports * sizeof(null_port);
  char *data = ait_alloc_zero(options->allocator, size, 64);
  if (data == NULL) return AIT_OOM();
  null_header header = {.version = BLOB_VERSION,
                        .symbol_count = region->symbol_count,
                        .dim_count = region->dim_count,
                        .input_count = region->input_count,
                        .output_count = region->output_count};
  memcpy(header.magic, blob_magic, sizeof header.magic);
  memcpy(data, &header, sizeof header);
  ait_dim_expr *dims = (ait_dim_expr *)(data + sizeof header);
  for (uint32_t i = 0; i < region->dim_count; ++i) { /* member by member: padding must not make two blobs differ */
    dims[i].op = region->dims[i].op;
    dims[i].a = region->dims[i].a;
    dims[i].b = region->dims[i].b;
    dims[i].value = region->dims[i].value;
  }
  null_port *port = (null_port *)(data + sizeof header + dims_bytes);
  for (uint32_t i = 0; i < region->input_count; ++i) {
    bool user = region->inputs[i].kind == AIT_INPUT_USER;
    *port++ = port_of(region, user ? region->inputs[i].value : AIT_NO_INDEX);
  }
  for (uint32_t i = 0; i < region->output_count; ++i) {
    const ait_arg *arg = &region->outputs[i].arg;
    *port++ = port_of(region, arg->kind == AIT_ARG_VALUE ? arg->as.value : AIT_NO_INDEX);
  }
  *out = (ait_blob){.data = data, .size = size};
  return AIT_OK;
}

static bool port_valid(const null_port *port, uint32_t dim_count) {
  if (!port->is_tensor) return true;
  if (port->rank < 0 || port->rank > AIT_MAX_RANK || ait_dtype_size((ait_dtype)port->dtype) == 0) return false;
  for (int32_t d = 0; d < port->rank; ++d) {
    if (port->dims[d] >= dim_count) return false;
  }
  return true;
}

static ait_status null_load(const ait_load_context *context, void **out_loaded) {
  const null_header *h = context->blob;
  if (context->blob_size < sizeof *h || memcmp(h->magic, blob_magic, sizeof blob_magic) != 0) {
    return ait_error(AIT_CODE_INVALID_MODEL, "not a blob of the null backend");
  }
  if (h->version != BLOB_VERSION) {
    return ait_error(AIT_CODE_INCOMPATIBLE, "blob has version %u, this ait reads %d", h->version, BLOB_VERSION);
  }
  /* 32-bit counts times small records cannot overflow 64-bit sizes. */
  size_t dims_bytes = (size_t)h->dim_count * sizeof(ait_dim_expr);
  size_t ports = (size_t)h->input_count + h->output_count;
  bool valid = context->blob_size == sizeof *h + dims_bytes + ports * sizeof(null_port);
  const ait_dim_expr *dims = (const ait_dim_expr *)(h + 1);
  const null_port *port = (const null_port *)((const char *)dims + dims_bytes);
  valid = valid && ait_dims_valid(dims, h->dim_count, h->symbol_count);
  for (size_t i = 0; valid && i < ports; ++i) valid = port_valid(&port[i], h->dim_count);
  if (!valid) return ait_error(AIT_CODE_INVALID_MODEL, "blob of the null backend is damaged");
  null_loaded *l = ait_alloc(context->allocator, sizeof *l, _Alignof(null_loaded));
  if (l == NULL) return AIT_OOM();
  *l = (null_loaded){context->allocator, h, dims, port, port + h->input_count};
  *out_loaded = l;
  return AIT_OK;
}

static void null_instance_destroy(void *instance) {
  null_instance *in = instance;
  if (in == NULL) return;
  const null_header *h = in->loaded->header;
  for (uint32_t i = 0; in->held != NULL && i < h->output_count; ++i) ait_tensor_release(&in->held[i]);
  ait_free(in->allocator, in->held, (h->output_count + 1) * sizeof *in->held);
  ait_free(in->allocator, in->symbols, (h->symbol_count + 1) * sizeof *in->symbols);
  ait_free(in->allocator, in, sizeof *in);
}

static ait_status null_instance_create(void *loaded, ait_allocator allocator, void **out_instance) {
  const null_loaded *l = loaded;
  null_instance *in = ait_alloc_zero(allocator, sizeof *in, _Alignof(null_instance));
  if (in == NULL) return AIT_OOM();
  in->loaded = l;
  in->allocator = allocator;
  in->held = ait_alloc_zero(allocator, (l->header->output_count + 1) * sizeof *in->held, _Alignof(ait_tensor));
  in->symbols = ait_alloc_zero(allocator, (l->header->symbol_count + 1) * sizeof *in->symbols, _Alignof(int64_t));
  if (in->held == NULL || in->symbols == NULL) {
    null_instance_destroy(in);
    return AIT_OOM();
  }
  *out_instance = in;
  return AIT_OK;
}

/* The symbols take their values from the shapes of the inputs. */
static ait_status bind_symbols(null_instance *in, const ait_value *inputs) {
  const null_loaded *l = in->loaded;
  for (uint32_t i = 0; i < l->header->symbol_count; ++i) in->symbols[i] = INT64_MIN;
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t i = 0; i < l->header->input_count; ++i) {
      const null_port *port = &l->inputs[i];
      if (!port->is_tensor || inputs[i].kind != AIT_VALUE_TENSOR) continue;
      const ait_tensor *t = &inputs[i].as.tensor;
      if (t->rank != port->rank) return ait_error(AIT_CODE_INVALID_ARGUMENT, "input %u has rank %d, not %d", i, t->rank, port->rank);
      for (int32_t d = 0; d < t->rank; ++d) progress |= ait_dim_bind(l->dims, in->symbols, port->dims[d], t->shape[d]);
    }
  }
  return AIT_OK;
}

static ait_status null_output(null_instance *in, uint32_t i, ait_value *out) {
  const null_loaded *l = in->loaded;
  const null_port *port = &l->outputs[i];
  int64_t shape[AIT_MAX_RANK];
  for (int32_t d = 0; d < port->rank; ++d) {
    if (!ait_dim_eval(l->dims, in->symbols, port->dims[d], &shape[d])) {
      return ait_error(AIT_CODE_UNSUPPORTED, "dimension %d of output %u cannot be computed from the inputs' shapes", d, i);
    }
  }
  if (out->kind == AIT_VALUE_NONE) {
    ait_tensor *held = &in->held[i];
    bool same = held->storage != NULL;
    for (int32_t d = 0; same && d < port->rank; ++d) same = held->shape[d] == shape[d];
    if (!same) {
      ait_tensor_release(held);
      AIT_TRY(ait_tensor_create(in->allocator, (ait_dtype)port->dtype, port->rank, shape, held));
    }
    *out = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = *held};
    out->as.tensor.storage = NULL;
  }
  if (out->as.tensor.data != NULL) memset(out->as.tensor.data, 0, ait_tensor_bytes(&out->as.tensor));
  return AIT_OK;
}

static ait_status null_run(void *instance, const ait_run_context *context) {
  null_instance *in = instance;
  AIT_TRY(bind_symbols(in, context->inputs));
  for (uint32_t i = 0; i < in->loaded->header->output_count; ++i) {
    if (in->loaded->outputs[i].is_tensor) AIT_TRY(null_output(in, i, &context->outputs[i]));
  }
  return AIT_OK;
}

static void null_unload(void *loaded) {
  null_loaded *l = loaded;
  if (l != NULL) ait_free(l->allocator, l, sizeof *l);
}

static const ait_knob null_knobs[] = {{0}};

const ait_backend ait_backend_null = {
    .struct_size = sizeof(ait_backend),
    .abi_version = AIT_BACKEND_ABI,
    .name = "null",
    .summary = "computes nothing, gives zeros: measures the overhead around a backend",
    .knobs = null_knobs,
    .probe = null_probe,
    .supports = null_supports,
    .compile = null_compile,
    .load = null_load,
    .instance_create = null_instance_create,
    .run = null_run,
    .instance_destroy = null_instance_destroy,
    .unload = null_unload,
};
