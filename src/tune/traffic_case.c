/* Requests of a trace as inputs of a model. */
#include "tune/traffic.h"
#include <stdio.h>

/* ---- inputs ----------------------------------------------------------------------------------------------------------------------*/
static const ait_region_value *input_value(const ait_region *region, const char *name, int32_t *out_user) {
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX || strcmp(in->name, name)) continue;
    *out_user = in->user_index;
    return &region->values[in->value];
  }
  return NULL;
}

static ait_status no_input(const char *name) {
  return ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has no input '%s' with a size", name);
}

/* Sizes that a shape says by themselves. */
static ait_status symbols_of_input(const ait_region *region, const ait_traffic_size *size, int64_t *symbols) {
  int32_t user;
  const ait_region_value *v = input_value(region, size->name, &user);
  if (!v) return no_input(size->name);
  bool number = v->type == AIT_TYPE_INT && v->shape;
  if (size->rank < 0 ? !number : v->type != AIT_TYPE_TENSOR || size->rank != v->rank)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s' is %s", size->name, number ? "a whole number" : "a tensor of another rank");
  for (int32_t d = 0; d < (number ? 1 : v->rank); ++d)
    if (region->dims[v->shape[d]].op == AIT_DIM_SYMBOL) symbols[region->dims[v->shape[d]].a] = size->dims[d];
  return AIT_OK;
}

static ait_status symbol_by_name(const ait_region *region, const ait_traffic_size *size, int64_t *symbols) {
  for (uint32_t s = 0; s < region->symbol_count; ++s) {
    if (strcmp(region->symbols[s].name, size->name)) continue;
    symbols[s] = size->dims[0];
    return AIT_OK;
  }
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has no size '%s'", size->name), "'ait inspect' lists the sizes");
}

/* "batch": dimension 0 of the first tensor whose dimension 0 is free. */
static ait_status symbol_of_batch(const ait_region *region, int64_t batch, int64_t *symbols) {
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX) continue;
    const ait_region_value *v = &region->values[in->value];
    if (v->type != AIT_TYPE_TENSOR || v->rank < 1 || region->dims[v->shape[0]].op != AIT_DIM_SYMBOL) continue;
    symbols[region->dims[v->shape[0]].a] = batch;
    return AIT_OK;
  }
  return ait_error(AIT_CODE_INVALID_ARGUMENT, "the model has no free batch size");
}

static ait_status symbols_of_kind(const ait_traffic_kind *k, const ait_region *region, int64_t *symbols) {
  for (uint32_t i = 0; i < k->input_count; ++i) AIT_TRY(symbols_of_input(region, &k->inputs[i], symbols));
  for (uint32_t i = 0; i < k->symbol_count; ++i) AIT_TRY(symbol_by_name(region, &k->symbols[i], symbols));
  return k->batch ? symbol_of_batch(region, k->batch, symbols) : AIT_OK;
}

/* A dimension that the model fixes, or that depends on another, may ask for something else than the trace does. */
static ait_status check_sizes(const ait_traffic_kind *k, const ait_region *region, const ait_tune_case *c) {
  for (uint32_t i = 0; i < k->input_count; ++i) {
    const ait_traffic_size *size = &k->inputs[i];
    int32_t user = -1;
    if (!input_value(region, size->name, &user) || size->rank < 0 || c->inputs[user].kind != AIT_VALUE_TENSOR) continue;
    for (int32_t d = 0; d < size->rank; ++d)
      if (c->inputs[user].as.tensor.shape[d] != size->dims[d])
        return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s': dimension %d is %lld, the model wants %lld", size->name, d,
                         (long long)size->dims[d], (long long)c->inputs[user].as.tensor.shape[d]);
  }
  return AIT_OK;
}

/* Tensors of the file in place of the sample's. */
static ait_status take_data(const ait_traffic *t, const char *file, const ait_region *region, ait_tune_case *c) {
  char path[2200];
  ait_data *data;
  snprintf(path, sizeof path, "%s%s", *file == '/' ? "" : t->folder, file);
  AIT_TRY(ait_data_load(ait_allocator_default(), path, &data));
  ait_status status = AIT_OK;
  for (uint32_t i = 0; status == AIT_OK && i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->user_index < 0 || c->inputs[in->user_index].kind != AIT_VALUE_TENSOR) continue;
    char position[32];
    snprintf(position, sizeof position, "arr_%d", in->user_index);
    const ait_tensor *found = ait_data_find(data, in->name);
    if (!found) found = ait_data_find(data, position);
    if (!found) {
      status = ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' has no data for input '%s'", file, in->name);
      break;
    }
    ait_value_release(&c->inputs[in->user_index]);
    c->inputs[in->user_index] = (ait_value){0};
    status = ait_tensor_cast(ait_allocator_default(), found, found->dtype, &c->inputs[in->user_index].as.tensor);
    if (status == AIT_OK) c->inputs[in->user_index].kind = AIT_VALUE_TENSOR;
  }
  ait_data_destroy(data);
  return status;
}

static ait_status make_case(const ait_traffic *t, const ait_traffic_kind *k, const ait_tune_cases *cases, const ait_region *region,
                            int64_t *symbols, ait_tune_case *out) {
  bool possible;
  AIT_TRY(ait_bind_inputs(region, cases->items[0].inputs, cases->items[0].input_count, symbols));
  AIT_TRY(symbols_of_kind(k, region, symbols));
  for (uint32_t s = 0; s < region->symbol_count; ++s)
    if (symbols[s] != INT64_MIN && (symbols[s] < region->symbols[s].min || symbols[s] > region->symbols[s].max))
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "size %s = %lld: the model takes %lld to %lld", region->symbols[s].name,
                       (long long)symbols[s], (long long)region->symbols[s].min, (long long)region->symbols[s].max);
  AIT_TRY(ait_tune_case_resized(cases, region, symbols, "traffic", out, &possible));
  if (!possible) return ait_error(AIT_CODE_INVALID_ARGUMENT, "the model does not take these sizes");
  ait_status status = check_sizes(k, region, out);
  if (status == AIT_OK && k->data) status = take_data(t, k->data, region, out);
  if (status == AIT_OK && k->data) status = ait_bind_inputs(region, out->inputs, out->input_count, symbols);
  if (status != AIT_OK) ait_tune_case_release(cases, out);
  return status;
}

ait_status ait_traffic_case(const ait_traffic *t, size_t kind, const ait_tune_cases *cases, const ait_region *region, ait_tune_case *out) {
  size_t bytes = (region->symbol_count + 1) * sizeof(int64_t);
  int64_t *symbols = ait_alloc(ait_allocator_default(), bytes, _Alignof(int64_t));
  *out = (ait_tune_case){0};
  ait_status status = symbols ? make_case(t, &t->kinds[kind], cases, region, symbols, out) : AIT_OOM();
  ait_free(ait_allocator_default(), symbols, bytes);
  return status == AIT_OK ? AIT_OK : ait_error_context(status, "trace '%s' line %u", t->name, t->kinds[kind].line);
}
