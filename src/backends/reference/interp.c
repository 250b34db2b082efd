#include "backends/reference/interp.h"

#include "backends/dims.h"

#define AIT_REF_MAX_CASTS 16

/* ---- plan ------------------------------------------------------------------------------------------------------------------------*/
static void note_use(const ait_region *region, uint32_t *last_use, const ait_arg *arg, uint32_t node) {
  if (arg->kind == AIT_ARG_VALUE && arg->as.value < region->value_count) last_use[arg->as.value] = node;
  if (arg->kind != AIT_ARG_LIST) return;
  for (uint32_t i = 0; i < arg->count; ++i) { /* lists of lists hold no values */
    const ait_arg *e = &arg->as.list[i];
    if (e->kind == AIT_ARG_VALUE && e->as.value < region->value_count) last_use[e->as.value] = node;
  }
}

static ait_status find_functions(const ait_region *region, ait_ref_fn *functions) {
  for (uint32_t n = 0; n < region->node_count; ++n) {
    functions[n] = ait_ref_find(region->nodes[n].op);
    if (!functions[n]) return ait_ref_missing(region->nodes[n].name, region->nodes[n].op);
  }
  return AIT_OK;
}

ait_status ait_ref_plan_create(ait_allocator a, const ait_region *region, ait_ref_plan *out) {
  ait_ref_plan plan = {ait_alloc(a, region->node_count * sizeof *plan.functions, _Alignof(ait_ref_fn)),
                       ait_alloc(a, region->value_count * sizeof *plan.last_use, _Alignof(uint32_t))};
  ait_status status = plan.functions && plan.last_use ? find_functions(region, plan.functions) : AIT_OOM();
  if (status != AIT_OK) {
    ait_ref_plan_destroy(a, region, &plan);
    return status;
  }
  for (uint32_t v = 0; v < region->value_count; ++v) plan.last_use[v] = AIT_NO_INDEX;
  for (uint32_t n = 0; n < region->node_count; ++n) {
    const ait_region_node *node = &region->nodes[n];
    for (uint32_t r = 0; r < node->result_count; ++r)
      if (node->results[r] < region->value_count) plan.last_use[node->results[r]] = n;
    for (uint32_t i = 0; i < node->arg_count; ++i) note_use(region, plan.last_use, &node->args[i], n);
  }
  for (uint32_t i = 0; i < region->output_count; ++i) note_use(region, plan.last_use, &region->outputs[i].arg, AIT_NO_INDEX);
  *out = plan;
  return AIT_OK;
}

void ait_ref_plan_destroy(ait_allocator a, const ait_region *region, ait_ref_plan *plan) {
  ait_free(a, plan->functions, region->node_count * sizeof *plan->functions);
  ait_free(a, plan->last_use, region->value_count * sizeof *plan->last_use);
  *plan = (ait_ref_plan){0};
}

/* ---- in-place nodes --------------------------------------------------------------------------------------------------------------*/
static bool same_view(const ait_tensor *a, const ait_tensor *b) {
  if (a->data != b->data || a->dtype != b->dtype || !ait_tensor_same_shape(a, b)) return false;
  for (int32_t d = 0; d < a->rank; ++d)
    if (a->shape[d] > 1 && a->strides[d] != b->strides[d]) return false;
  return true;
}

static bool inside(const ait_tensor *t, const ait_tensor *base) {
  return t->data == base->data && t->dtype == base->dtype && t->storage == base->storage;
}

/* The functional operator ran: its result 0 goes into the memory of argument 0, and is argument 0 from now on. A result that is a view of
 * argument 0 (squeeze_, t_) stays that view, and a resized one stays what it is. */
ait_status ait_ref_write_in_place(ait_ref_call *call) {
  const ait_tensor *self;
  AIT_TRY(ait_ref_tensor(call, 0, &self));
  if (call->node->result_count == 0 || call->results[0].type != AIT_TYPE_TENSOR) return AIT_OK;
  ait_tensor *result = &call->results[0].as.tensor;
  if (same_view(self, result)) return AIT_OK;
  if (!ait_tensor_same_shape(self, result)) {
    bool resized = ait_starts_with(call->node->op, "aten.resize");
    if (resized || inside(result, self) || ait_tensor_count(self) != ait_tensor_count(result)) return AIT_OK;
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "an in-place operator changes the shape of its argument");
  }
  if (inside(result, self)) return AIT_OK;
  AIT_TRY(ait_tensor_copy(self, result));
  ait_ref_set_view(call, 0, self, self);
  return AIT_OK;
}

static ait_status run_function(ait_ref_call *call, ait_ref_fn fn) {
  AIT_TRY(fn(call));
  return call->node->flags & AIT_NODE_INPLACE ? ait_ref_write_in_place(call) : AIT_OK;
}

ait_status ait_ref_run_node(const ait_region *region, const ait_region_node *node, ait_allocator a, ait_pool *pool, bool fp64,
                            const int64_t *symbol_values, const ait_ref_value *value_table, ait_ref_value *results) {
  ait_ref_fn fn = ait_ref_find(node->op);
  if (!fn) return ait_ref_missing(node->name, node->op);
  struct ait_ref_run run = {region, value_table, symbol_values, a, pool, fp64, 0, NULL};
  ait_ref_call call = {&run, region, node, results, a, pool, fp64};
  ait_status status = run_function(&call, fn);
  if (status != AIT_OK)
    for (uint32_t r = 0; r < node->result_count; ++r) ait_ref_value_release(a, &results[r]);
  return status;
}

/* ---- execution -------------------------------------------------------------------------------------------------------------------*/
static void drop_if_last(ait_ref_frame *f, const ait_arg *arg, uint32_t node) {
  if (arg->kind == AIT_ARG_VALUE && arg->as.value < f->region->value_count && f->plan->last_use[arg->as.value] == node)
    ait_ref_value_release(f->allocator, &f->values[arg->as.value]);
  if (arg->kind != AIT_ARG_LIST) return;
  for (uint32_t i = 0; i < arg->count; ++i)
    if (arg->as.list[i].kind == AIT_ARG_VALUE) drop_if_last(f, &arg->as.list[i], node);
}

/* squeeze_ and its like give argument 0 itself another shape. */
static ait_status follow_shape(ait_ref_frame *f, const ait_region_node *node, const ait_ref_value *results) {
  if (!(node->flags & AIT_NODE_INPLACE) || node->result_count == 0 || results[0].type != AIT_TYPE_TENSOR) return AIT_OK;
  uint32_t id = node->arg_count && node->args[0].kind == AIT_ARG_VALUE ? node->args[0].as.value : AIT_NO_INDEX;
  if (id >= f->region->value_count || f->values[id].type != AIT_TYPE_TENSOR || same_view(&f->values[id].as.tensor, &results[0].as.tensor))
    return AIT_OK;
  ait_ref_value replacement;
  AIT_TRY(ait_ref_value_retain(f->allocator, &results[0], &replacement));
  ait_ref_value_release(f->allocator, &f->values[id]);
  f->values[id] = replacement;
  return AIT_OK;
}

static void store_results(ait_ref_frame *f, const ait_region_node *node, ait_ref_value *results) {
  for (uint32_t r = 0; r < node->result_count; ++r) {
    uint32_t id = node->results[r];
    if (id >= f->region->value_count) {
      ait_ref_value_release(f->allocator, &results[r]);
      continue;
    }
    ait_ref_value_release(f->allocator, &f->values[id]);
    f->values[id] = results[r];
    results[r] = (ait_ref_value){0};
  }
}

/* ---- autocast ----------------------------------------------------------------------------------------------------------------------
 * What torch does inside an enabled region shows in the declared dtypes: a product of float32 matrices that gives bfloat16 read bfloat16
 * copies of them; a softmax of bfloat16 that gives float32 read a float32 copy. So float operands are cast to the result's dtype. */
typedef struct cast_values {
  uint32_t count, ids[AIT_REF_MAX_CASTS];
  ait_ref_value originals[AIT_REF_MAX_CASTS];
} cast_values;

static ait_status cast_operand(ait_ref_frame *f, const ait_arg *arg, ait_dtype dtype, cast_values *casts) {
  for (uint32_t i = 0; arg->kind == AIT_ARG_LIST && i < arg->count; ++i)
    if (arg->as.list[i].kind == AIT_ARG_VALUE) AIT_TRY(cast_operand(f, &arg->as.list[i], dtype, casts));
  if (arg->kind != AIT_ARG_VALUE || arg->as.value >= f->region->value_count) return AIT_OK;
  ait_ref_value *v = &f->values[arg->as.value];
  if (v->type != AIT_TYPE_TENSOR || !ait_dtype_is_float(v->as.tensor.dtype) || v->as.tensor.dtype == dtype) return AIT_OK;
  if (casts->count == AIT_REF_MAX_CASTS) return AIT_OK;
  ait_tensor cast;
  AIT_TRY(ait_tensor_cast(f->allocator, &v->as.tensor, dtype, &cast));
  casts->ids[casts->count] = arg->as.value;
  casts->originals[casts->count++] = *v;
  *v = (ait_ref_value){.type = AIT_TYPE_TENSOR, .as.tensor = cast};
  return AIT_OK;
}

/* Conversions state their dtype themselves; in-place nodes write into their operand. */
static bool takes_casts(const ait_region_node *node) {
  return !(node->flags & AIT_NODE_INPLACE) && !ait_starts_with(node->op, "aten.to.") && !ait_starts_with(node->op, "aten._to_copy") &&
         !ait_starts_with(node->op, "aten.type_as") && !ait_starts_with(node->op, "aten.copy") &&
         !ait_starts_with(node->op, "higher_order.");
}

static ait_status cast_operands(ait_ref_frame *f, const ait_region_node *node, cast_values *casts) {
  if (!f->autocast || f->fp64 || !takes_casts(node) || node->result_count == 0 || node->results[0] >= f->region->value_count) return AIT_OK;
  ait_dtype dtype = f->region->values[node->results[0]].dtype;
  if (!ait_dtype_is_float(dtype)) return AIT_OK;
  for (uint32_t i = 0; i < node->arg_count; ++i) AIT_TRY(cast_operand(f, &node->args[i], dtype, casts));
  return AIT_OK;
}

static void restore_operands(ait_ref_frame *f, cast_values *casts) {
  while (casts->count-- > 0) {
    ait_ref_value_release(f->allocator, &f->values[casts->ids[casts->count]]);
    f->values[casts->ids[casts->count]] = casts->originals[casts->count];
  }
}

static ait_status execute_node(ait_ref_frame *f, struct ait_ref_run *run, uint32_t n, ait_ref_value *results) {
  const ait_region_node *node = &f->region->nodes[n];
  ait_ref_call call = {run, f->region, node, results, f->allocator, f->pool, f->fp64};
  cast_values casts = {.count = 0};
  ait_status status = cast_operands(f, node, &casts);
  if (status == AIT_OK) status = run_function(&call, f->plan->functions[n]);
  restore_operands(f, &casts);
  if (status == AIT_OK) status = follow_shape(f, node, results);
  if (status != AIT_OK) {
    for (uint32_t r = 0; r < node->result_count; ++r) ait_ref_value_release(f->allocator, &results[r]);
    return node->module && node->module[0] ? ait_error_context(status, "module '%s'", node->module) : status;
  }
  store_results(f, node, results);
  for (uint32_t i = 0; i < node->arg_count; ++i) drop_if_last(f, &node->args[i], n);
  for (uint32_t r = 0; r < node->result_count; ++r)
    if (node->results[r] < f->region->value_count && f->plan->last_use[node->results[r]] == n)
      ait_ref_value_release(f->allocator, &f->values[node->results[r]]);
  return AIT_OK;
}

static uint32_t most_results(const ait_region *region) {
  uint32_t most = 1;
  for (uint32_t n = 0; n < region->node_count; ++n)
    if (region->nodes[n].result_count > most) most = region->nodes[n].result_count;
  return most;
}

ait_status ait_ref_execute(ait_ref_frame *f) {
  size_t bytes = most_results(f->region) * sizeof(ait_ref_value);
  ait_ref_value *results = ait_alloc_zero(f->allocator, bytes, _Alignof(ait_ref_value));
  if (!results) return AIT_OOM();
  struct ait_ref_run run = {f->region, f->values, f->symbols, f->allocator, f->pool, f->fp64, f->depth, f->draws};
  ait_status status = AIT_OK;
  for (uint32_t n = 0; n < f->region->node_count && status == AIT_OK; ++n) {
    double start = f->seconds ? ait_clock_seconds() : 0;
    status = execute_node(f, &run, n, results);
    if (f->seconds) f->seconds[n] += ait_clock_seconds() - start;
  }
  ait_free(f->allocator, results, bytes);
  return status;
}

/* ---- symbols ---------------------------------------------------------------------------------------------------------------------*/
static bool bind_dim(const ait_region *region, ait_dim dim, int64_t size, int64_t *symbols) {
  return dim < region->dim_count && ait_dim_bind(region->dims, symbols, dim, size);
}

static bool bind_input(const ait_region *region, uint32_t id, const ait_ref_value *value, int64_t *symbols) {
  const ait_region_value *declared = &region->values[id];
  bool bound = false;
  if (value->type == AIT_TYPE_INT && declared->type == AIT_TYPE_INT && declared->shape)
    return bind_dim(region, declared->shape[0], value->as.i, symbols);
  if (value->type != AIT_TYPE_TENSOR || declared->rank != value->as.tensor.rank) return false;
  for (int32_t d = 0; d < declared->rank; ++d) bound |= bind_dim(region, declared->shape[d], value->as.tensor.shape[d], symbols);
  return bound;
}

void ait_ref_bind_symbols(const ait_region *region, const ait_ref_value *values, int64_t *symbols) {
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t i = 0; i < region->input_count; ++i)
      if (region->inputs[i].value < region->value_count)
        progress |= bind_input(region, region->inputs[i].value, &values[region->inputs[i].value], symbols);
  }
}

/* ---- values ----------------------------------------------------------------------------------------------------------------------*/
ait_status ait_ref_value_retain(ait_allocator a, const ait_ref_value *v, ait_ref_value *out) {
  *out = *v;
  if (v->type == AIT_TYPE_TENSOR) out->as.tensor = ait_tensor_retain(&v->as.tensor);
  if (v->type != AIT_TYPE_TENSOR_LIST) return AIT_OK;
  out->as.list.items = ait_alloc(a, v->as.list.count * sizeof *v->as.list.items, _Alignof(ait_tensor));
  if (!out->as.list.items) {
    *out = (ait_ref_value){0};
    return AIT_OOM();
  }
  for (uint32_t i = 0; i < v->as.list.count; ++i) out->as.list.items[i] = ait_tensor_retain(&v->as.list.items[i]);
  return AIT_OK;
}

static ait_status list_value(const ait_ref_call *call, const ait_arg *arg, ait_ref_value *out) {
  ait_tensor *items = ait_alloc_zero(call->allocator, arg->count * sizeof *items, _Alignof(ait_tensor));
  if (!items) return AIT_OOM();
  *out = (ait_ref_value){.type = AIT_TYPE_TENSOR_LIST, .as.list = {items, arg->count}};
  for (uint32_t i = 0; i < arg->count; ++i) {
    const ait_arg *e = &arg->as.list[i];
    const ait_ref_value *v = e->kind == AIT_ARG_VALUE && e->as.value < call->region->value_count ? &call->run->values[e->as.value] : NULL;
    if (v && v->type == AIT_TYPE_TENSOR) items[i] = ait_tensor_retain(&v->as.tensor);
  }
  return AIT_OK;
}

ait_status ait_ref_arg_value(const ait_ref_call *call, const ait_arg *arg, ait_ref_value *out) {
  *out = (ait_ref_value){0};
  switch (arg->kind) {
    case AIT_ARG_VALUE:
      if (arg->as.value >= call->region->value_count)
        return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "value %u is not there", arg->as.value);
      return ait_ref_value_retain(call->allocator, &call->run->values[arg->as.value], out);
    case AIT_ARG_INT: *out = (ait_ref_value){.type = AIT_TYPE_INT, .as.i = arg->as.i}; return AIT_OK;
    case AIT_ARG_FLOAT: *out = (ait_ref_value){.type = AIT_TYPE_FLOAT, .as.f = arg->as.f}; return AIT_OK;
    case AIT_ARG_BOOL: *out = (ait_ref_value){.type = AIT_TYPE_BOOL, .as.b = arg->as.b}; return AIT_OK;
    case AIT_ARG_COMPLEX:
      *out = (ait_ref_value){.type = AIT_TYPE_FLOAT, .is_complex = true, .as.c = {arg->as.complex[0], arg->as.complex[1]}};
      return AIT_OK;
    case AIT_ARG_STRING: *out = (ait_ref_value){.type = AIT_TYPE_STRING, .as.s = arg->as.string}; return AIT_OK;
    case AIT_ARG_DIM:
      out->type = AIT_TYPE_INT;
      if (!ait_dim_eval(call->region->dims, call->run->symbols, arg->as.dim, &out->as.i))
        return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "a size depends on a symbol that no input determines");
      return AIT_OK;
    case AIT_ARG_LIST: return list_value(call, arg, out);
    default: return AIT_OK;
  }
}

/* ---- nested regions --------------------------------------------------------------------------------------------------------------*/
static void inherit_symbols(const ait_ref_call *call, const ait_region *nested, int64_t *symbols) {
  const ait_region *outer = call->region;
  for (uint32_t i = 0; i < nested->symbol_count; ++i) {
    symbols[i] = INT64_MIN;
    if (!call->run->symbols) continue;
    if (nested->symbols == outer->symbols) {
      symbols[i] = call->run->symbols[i];
      continue;
    }
    for (uint32_t k = 0; k < outer->symbol_count; ++k)
      if (strcmp(outer->symbols[k].name, nested->symbols[i].name) == 0) symbols[i] = call->run->symbols[k];
  }
}

static ait_status place_inputs(const ait_ref_call *call, const ait_region *region, const ait_ref_value *inputs, ait_ref_value *values) {
  for (uint32_t i = 0; i < region->input_count; ++i) {
    uint32_t id = region->inputs[i].value;
    if (id < region->value_count) AIT_TRY(ait_ref_value_retain(call->allocator, &inputs[i], &values[id]));
  }
  return AIT_OK;
}

static ait_status take_outputs(ait_ref_frame *frame, ait_ref_value *outputs) {
  struct ait_ref_run run = {frame->region, frame->values, frame->symbols, frame->allocator,
                            frame->pool,   frame->fp64,   frame->depth,   frame->draws};
  static const ait_region_node output_node = {.op = "output", .name = "output"};
  ait_ref_call call = {&run, frame->region, &output_node, NULL, frame->allocator, frame->pool, frame->fp64};
  for (uint32_t i = 0; i < frame->region->output_count; ++i) AIT_TRY(ait_ref_arg_value(&call, &frame->region->outputs[i].arg, &outputs[i]));
  return AIT_OK;
}

ait_status ait_ref_call_region(const ait_ref_call *call, const ait_region *region, const ait_ref_value *inputs, uint32_t input_count,
                               bool autocast, ait_ref_value *outputs) {
  if (call->run->depth >= AIT_REF_MAX_DEPTH)
    return ait_ref_error(call, AIT_CODE_LIMIT, "graphs are nested more than %d deep", AIT_REF_MAX_DEPTH);
  if (input_count != region->input_count)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "a nested graph takes %u inputs, %u are given", region->input_count, input_count);
  ait_allocator a = call->allocator;
  ait_ref_plan plan;
  AIT_TRY(ait_ref_plan_create(a, region, &plan));
  ait_ref_value *values = ait_alloc_zero(a, region->value_count * sizeof *values, _Alignof(ait_ref_value));
  int64_t *symbols = ait_alloc(a, region->symbol_count * sizeof *symbols, _Alignof(int64_t));
  ait_ref_frame frame = {.region = region,
                         .plan = &plan,
                         .values = values,
                         .symbols = symbols,
                         .allocator = a,
                         .pool = call->pool,
                         .fp64 = call->fp64,
                         .depth = call->run->depth + 1,
                         .autocast = autocast,
                         .draws = call->run->draws};
  for (uint32_t i = 0; i < region->output_count; ++i) outputs[i] = (ait_ref_value){0};
  ait_status status = values && symbols ? place_inputs(call, region, inputs, values) : AIT_OOM();
  if (status == AIT_OK) {
    inherit_symbols(call, region, symbols);
    ait_ref_bind_symbols(region, values, symbols);
    status = ait_ref_execute(&frame);
  }
  if (status == AIT_OK) status = take_outputs(&frame, outputs);
  if (status != AIT_OK)
    for (uint32_t i = 0; i < region->output_count; ++i) ait_ref_value_release(a, &outputs[i]);
  for (uint32_t v = 0; values && v < region->value_count; ++v) ait_ref_value_release(a, &values[v]);
  ait_free(a, values, region->value_count * sizeof *values);
  ait_free(a, symbols, region->symbol_count * sizeof *symbols);
  ait_ref_plan_destroy(a, region, &plan);
  return status;
}
