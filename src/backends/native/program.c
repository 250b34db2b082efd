/* Loading: a blob of untrusted bytes becomes a program, or is refused. Sizes and shapes are checked again when shapes are bound. */
#include "backends/native/program.h"

#include "backends/dims.h"
#include "backends/reference/reference.h"
#include "backends/region_codec.h"

static ait_status damaged(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "blob of the native backend is damaged: %s", what); }

static bool section_fits(uint64_t offset, uint64_t count, size_t record, size_t align, size_t size) {
  uint64_t bytes;
  return !ait_mul_overflows(count, (uint64_t)record, &bytes) && offset % align == 0 && offset <= size && bytes <= size - offset;
}

static ait_status map_sections(nat_program *p, const ait_load_context *c) {
  const nat_header *h = c->blob;
  const uint8_t *base = c->blob;
  if (c->blob_size < sizeof *h || memcmp(h->magic, NAT_MAGIC, sizeof h->magic) != 0) {
    return ait_error(AIT_CODE_INVALID_MODEL, "not a blob of the native backend");
  }
  if (h->version != NAT_VERSION) {
    return ait_error(AIT_CODE_INCOMPATIBLE, "native blob has version %u, this ait reads %u", h->version, NAT_VERSION);
  }
  if ((uintptr_t)base % 64 != 0) return ait_error(AIT_CODE_INVALID_ARGUMENT, "native blob is not 64-byte aligned");
  if (!section_fits(h->region_offset, h->region_size, 1, 1, c->blob_size) ||
      !section_fits(h->steps_offset, h->step_count, sizeof(nat_step), 8, c->blob_size) ||
      !section_fits(h->ids_offset, h->id_count, sizeof(uint32_t), 8, c->blob_size) ||
      !section_fits(h->packs_offset, h->pack_count, sizeof(nat_pack), 8, c->blob_size) ||
      !section_fits(h->codes_offset, h->code_count, sizeof(nat_code), 8, c->blob_size) ||
      !section_fits(h->data_offset, h->data_size, 1, 64, c->blob_size)) {
    return damaged("a section lies outside");
  }
  p->flags = h->flags;
  p->step_count = h->step_count;
  p->steps = (const nat_step *)(base + h->steps_offset);
  p->ids = (const uint32_t *)(base + h->ids_offset);
  p->packs = (const nat_pack *)(base + h->packs_offset);
  p->codes = (const nat_code *)(base + h->codes_offset);
  p->data = base + h->data_offset;
  p->data_size = h->data_size;
  return ait_region_decode(p->allocator, base + h->region_offset, h->region_size, &p->region);
}

static bool range_fits(uint32_t begin, uint32_t count, uint32_t total) { return begin <= total && count <= total - begin; }

static ait_status check_records(const nat_program *p, const nat_header *h) {
  const ait_region *r = p->region;
  for (uint32_t i = 0; i < h->step_count; ++i) {
    const nat_step *s = &p->steps[i];
    if (s->kind >= NAT_KIND_COUNT || s->node >= r->node_count || s->act >= AIT_ACT_COUNT) return damaged("step");
    if (!range_fits(s->in_begin, s->in_count, h->id_count) || !range_fits(s->out_begin, s->out_count, h->id_count) ||
        !range_fits(s->pack_begin, s->pack_count, h->pack_count) || !range_fits(s->code_begin, s->code_count, h->code_count)) {
      return damaged("range of a step");
    }
  }
  for (uint32_t i = 0; i < h->id_count; ++i) {
    if (p->ids[i] != NAT_NONE && p->ids[i] >= r->value_count) return damaged("value");
  }
  for (uint32_t i = 0; i < h->pack_count; ++i) {
    const nat_pack *k = &p->packs[i];
    if (!section_fits(k->offset, k->size, 1, 64, p->data_size)) return damaged("packed weight");
  }
  for (uint32_t i = 0; i < r->input_count; ++i) {
    if (r->inputs[i].value != AIT_NO_INDEX && r->inputs[i].value >= r->value_count) return damaged("input");
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    if (r->outputs[i].arg.kind == AIT_ARG_VALUE && r->outputs[i].arg.as.value >= r->value_count) return damaged("output");
  }
  return ait_dims_valid(r->dims, r->dim_count, r->symbol_count) ? AIT_OK : damaged("sizes");
}

/* An operator of the application may be registered where the plan was made, and not here. */
static ait_status check_portable(const nat_program *p) {
  for (uint32_t i = 0; i < p->step_count; ++i) {
    const ait_region_node *n = &p->region->nodes[p->steps[i].node];
    if (p->steps[i].kind == NAT_PORTABLE && !ait_ref_find(n->op)) return ait_ref_missing(n->name, n->op);
  }
  return AIT_OK;
}

/* ---- derived tables --------------------------------------------------------------------------------------------------------------*/
static void *table(nat_program *p, size_t count, size_t size, int fill) {
  void *t = ait_alloc(p->allocator, (count + 1) * size, 8);
  if (t != NULL) memset(t, fill, (count + 1) * size);
  return t;
}

static ait_status index_values(nat_program *p) {
  const ait_region *r = p->region;
  p->value_input = table(p, r->value_count, sizeof(uint32_t), 0xff);
  p->last_step = table(p, r->value_count, sizeof(uint32_t), 0xff);
  p->def_step = table(p, r->value_count, sizeof(uint32_t), 0xff);
  p->channels_last = table(p, r->value_count, 1, 0);
  if (p->value_input == NULL || p->last_step == NULL || p->def_step == NULL || p->channels_last == NULL) return AIT_OOM();
  for (uint32_t i = 0; i < r->input_count; ++i) {
    if (r->inputs[i].value != AIT_NO_INDEX) p->value_input[r->inputs[i].value] = i;
  }
  for (uint32_t i = 0; i < p->step_count; ++i) {
    const nat_step *s = &p->steps[i];
    for (uint32_t k = 0; k < s->in_count; ++k) {
      if (p->ids[s->in_begin + k] != NAT_NONE) p->last_step[p->ids[s->in_begin + k]] = i;
    }
    for (uint32_t k = 0; k < s->out_count; ++k) {
      uint32_t v = p->ids[s->out_begin + k];
      if (v == NAT_NONE) continue;
      if (p->def_step[v] != NAT_NONE || p->value_input[v] != NAT_NONE) return damaged("a value is made twice");
      p->def_step[v] = i;
    }
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    if (r->outputs[i].arg.kind == AIT_ARG_VALUE) p->last_step[r->outputs[i].arg.as.value] = p->step_count;
  }
  return AIT_OK;
}

static bool images_stay_channels_last(uint32_t kind) { return kind == NAT_CAT || kind == NAT_EW || kind == NAT_PAD; }

/* Which values will probably lie channels last: results of image operators, and what is computed from them element by element. */
static void mark_channels_last(nat_program *p) {
  if (p->flags & NAT_NCHW) return;
  for (uint32_t i = 0; i < p->step_count; ++i) {
    const nat_step *s = &p->steps[i];
    bool last = s->kind == NAT_CONV || s->kind == NAT_POOL || s->kind == NAT_UPSAMPLE;
    if (images_stay_channels_last(s->kind)) {
      for (uint32_t k = 0; k < s->in_count && !last; ++k) {
        uint32_t v = p->ids[s->in_begin + k];
        last = v != NAT_NONE && p->channels_last[v];
      }
    }
    for (uint32_t k = 0; last && k < s->out_count; ++k) {
      if (p->ids[s->out_begin + k] != NAT_NONE) p->channels_last[p->ids[s->out_begin + k]] = 1;
    }
  }
}

/* A weight whose packed form is in the blob is read for its sizes only: its contents stay where they are, and need not even be in the file.
 */
static bool reads_sizes_only(const nat_step *s, uint32_t operand) {
  return (s->kind == NAT_LINEAR || s->kind == NAT_WEIGHT_LINEAR || s->kind == NAT_MATMUL || s->kind == NAT_CONV) && s->pack_count > 0 &&
         operand == 1;
}

static void mark_contents_read(const nat_program *p, uint8_t *read) {
  for (uint32_t i = 0; i < p->step_count; ++i) {
    const nat_step *s = &p->steps[i];
    for (uint32_t k = 0; k < s->in_count; ++k) {
      uint32_t v = p->ids[s->in_begin + k];
      if (v != NAT_NONE && !reads_sizes_only(s, k)) read[v] = 1;
    }
  }
  for (uint32_t i = 0; i < p->region->output_count; ++i) {
    const ait_arg *a = &p->region->outputs[i].arg;
    if (a->kind == AIT_ARG_VALUE) read[a->as.value] = 1;
  }
}

/* Sizes from the region, which says them as constants; no contents. */
static ait_status sizes_only(const nat_program *p, const ait_region_value *v, ait_tensor *t) {
  int64_t shape[AIT_MAX_RANK], count = (int64_t)ait_dtype_size(v->dtype);
  if (v->rank < 0 || v->rank > AIT_MAX_RANK) return damaged("a weight has no known rank");
  for (int32_t d = 0; d < v->rank; ++d) {
    if (p->region->dims[v->shape[d]].op != AIT_DIM_CONST) return damaged("a weight has no known size");
    shape[d] = p->region->dims[v->shape[d]].value;
    if (shape[d] < 0 || ait_mul_overflows(count, shape[d] > 1 ? shape[d] : 1, &count)) return damaged("a weight is too large");
  }
  *t = ait_tensor_borrow(NULL, v->dtype, v->rank, shape);
  return AIT_OK;
}

static ait_status fetch_weights_of(nat_program *p, const uint8_t *read) {
  const ait_region *r = p->region;
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    bool weight = in->kind == AIT_INPUT_PARAMETER || in->kind == AIT_INPUT_BUFFER || in->kind == AIT_INPUT_CONSTANT;
    if (!weight || in->mutated || in->value == AIT_NO_INDEX || p->last_step[in->value] == NAT_NONE) continue;
    if (in->name == NULL || p->provider.get == NULL) return damaged("a weight has no name");
    ait_tensor *t = &p->weights[i];
    const ait_region_value *v = &r->values[in->value];
    if (!read[in->value]) {
      AIT_TRY(sizes_only(p, v, t));
      continue;
    }
    AIT_TRY(p->provider.get(p->provider.ctx, in->name, t));
    bool fits = t->dtype == v->dtype && t->rank == v->rank;
    for (int32_t d = 0; fits && d < v->rank; ++d) {
      int64_t size;
      fits = r->dims[v->shape[d]].op == AIT_DIM_CONST && (size = r->dims[v->shape[d]].value) == t->shape[d];
    }
    if (!fits) return ait_error(AIT_CODE_INVALID_MODEL, "weight '%s' has not the dtype and shape that the blob was compiled for", in->name);
  }
  return AIT_OK;
}

static ait_status fetch_weights(nat_program *p) {
  p->weights = table(p, p->region->input_count, sizeof(ait_tensor), 0);
  if (p->weights == NULL) return AIT_OOM();
  uint8_t *read = table(p, p->region->value_count, 1, 0);
  if (read == NULL) return AIT_OOM();
  mark_contents_read(p, read);
  ait_status status = fetch_weights_of(p, read);
  ait_free(p->allocator, read, (size_t)p->region->value_count + 1);
  return status;
}

void nat_program_unload(nat_program *p) {
  if (p == NULL) return;
  ait_allocator a = p->allocator;
  if (p->region != NULL) {
    size_t values = (size_t)p->region->value_count + 1;
    ait_free(a, p->weights, (p->region->input_count + 1u) * sizeof(ait_tensor));
    ait_free(a, p->value_input, values * sizeof(uint32_t));
    ait_free(a, p->last_step, values * sizeof(uint32_t));
    ait_free(a, p->def_step, values * sizeof(uint32_t));
    ait_free(a, p->channels_last, values);
  }
  ait_region_destroy(p->region);
  ait_free(a, p, sizeof *p);
}

ait_status nat_program_load(const ait_load_context *context, nat_program **out) {
  nat_program *p = ait_alloc_zero(context->allocator, sizeof *p, _Alignof(nat_program));
  if (p == NULL) return AIT_OOM();
  p->allocator = context->allocator;
  p->provider = context->weights;
  p->kernels = ait_kernels_for(ait_cpu_features() & context->cpu_mask);
  ait_status status = AIT_OK;
  AIT_GOTO(map_sections(p, context));
  AIT_GOTO(check_records(p, context->blob));
  AIT_GOTO(check_portable(p));
  AIT_GOTO(index_values(p));
  mark_channels_last(p);
  AIT_GOTO(fetch_weights(p));
  *out = p;
  return AIT_OK;
cleanup:
  nat_program_unload(p);
  return status;
}
