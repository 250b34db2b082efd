/* ONNX: Loop. */
#include "backends/reference/interp.h"
#include "backends/reference/onnx.h"

typedef struct loop {
  ait_ref_call *call;
  const ait_region *body;
  uint32_t carried, captured, stacked;
  ait_ref_value *inputs;  /* of the body: iteration, condition, carried, captured */
  ait_ref_value *outputs; /* of the body */
  ait_tensor **steps;     /* of each stacked result: the step's tensors */
  size_t *capacity;
  int64_t count; /* steps made */
} loop;

static uint32_t list_length(const ait_region_node *n, uint32_t arg) { return n->args[arg].kind == AIT_ARG_LIST ? n->args[arg].count : 0; }

static ait_status scalar_input(loop *l, uint32_t k, ait_dtype dtype, int64_t v) {
  ait_ref_value_release(l->call->allocator, &l->inputs[k]);
  AIT_TRY(ait_ref_temp(l->call, dtype, 0, NULL, &l->inputs[k].as.tensor));
  l->inputs[k].type = AIT_TYPE_TENSOR;
  ait_element_set_i64(l->inputs[k].as.tensor.data, dtype, v);
  return AIT_OK;
}

static ait_status truth(const loop *l, const ait_ref_value *v, bool *out) {
  if (v->type == AIT_TYPE_BOOL) *out = v->as.b;
  else if (v->type == AIT_TYPE_TENSOR && ait_tensor_count(&v->as.tensor) == 1)
    *out = ait_element_f64(v->as.tensor.data, v->as.tensor.dtype) != 0;
  else return ait_ref_error(l->call, AIT_CODE_INVALID_ARGUMENT, "the condition is no truth value");
  return AIT_OK;
}

static ait_status keep_step(loop *l, uint32_t k, ait_ref_value *v) {
  if (v->type != AIT_TYPE_TENSOR) return ait_ref_error(l->call, AIT_CODE_UNSUPPORTED, "a step gives something that is no tensor");
  void *grown = l->steps[k];
  ait_status status = ait_grow(l->call->allocator, &grown, &l->capacity[k], (size_t)l->count + 1, sizeof **l->steps);
  l->steps[k] = grown;
  AIT_TRY(status);
  l->steps[k][l->count] = v->as.tensor;
  *v = (ait_ref_value){0};
  return AIT_OK;
}

static ait_status one_step(loop *l, bool *go_on) {
  uint32_t inputs = 2 + l->carried + l->captured;
  ait_allocator a = l->call->allocator;
  AIT_TRY(ait_ref_call_region(l->call, l->body, l->inputs, inputs, false, l->outputs));
  ait_status status = truth(l, &l->outputs[0], go_on);
  for (uint32_t k = 0; k < l->carried; ++k) {
    ait_ref_value_release(a, &l->inputs[2 + k]);
    l->inputs[2 + k] = l->outputs[1 + k];
    l->outputs[1 + k] = (ait_ref_value){0};
  }
  uint32_t kept = 0;
  for (; kept < l->stacked && !status; ++kept) status = keep_step(l, kept, &l->outputs[1 + l->carried + kept]);
  for (uint32_t k = 0; k < l->body->output_count; ++k) ait_ref_value_release(a, &l->outputs[k]);
  if (status) { /* what this step left in the lists */
    for (uint32_t k = 0; k + 1 < kept; ++k) ait_tensor_release(&l->steps[k][l->count]);
    return status;
  }
  ++l->count;
  return AIT_OK;
}

/* No step was made: an empty tensor of the shape that the body declares. */
static ait_status empty_stack(loop *l, uint32_t k, uint32_t result) {
  const ait_arg *arg = &l->body->outputs[1 + l->carried + k].arg;
  int64_t shape[AIT_MAX_RANK] = {0};
  int32_t rank = 1;
  ait_dtype dtype = ait_ref_result_dtype(l->call, result);
  ait_tensor out;
  if (arg->kind == AIT_ARG_VALUE && arg->as.value < l->body->value_count) {
    const ait_region_value *v = &l->body->values[arg->as.value];
    if (v->rank >= 0 && v->rank < AIT_MAX_RANK) rank = v->rank + 1;
    for (int32_t d = 1; d < rank; ++d) {
      const ait_dim_expr *e = &l->body->dims[v->shape[d - 1]];
      shape[d] = e->op == AIT_DIM_CONST ? e->value : 0;
    }
    if (dtype == AIT_DTYPE_NONE) dtype = ait_ref_widen(l->call, v->dtype);
  }
  return ait_ref_new(l->call, result, dtype, rank, shape, &out);
}

static ait_status stack(loop *l, uint32_t k, uint32_t result) {
  if (result >= l->call->node->result_count || l->call->node->results[result] == AIT_NO_INDEX) return AIT_OK;
  if (l->count == 0) return empty_stack(l, k, result);
  const ait_tensor *first = &l->steps[k][0];
  int64_t shape[AIT_MAX_RANK];
  ait_tensor out;
  if (first->rank >= AIT_MAX_RANK) return ait_ref_error(l->call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  shape[0] = l->count;
  memcpy(shape + 1, first->shape, (size_t)first->rank * sizeof *shape);
  AIT_TRY(ait_ref_new(l->call, result, first->dtype, first->rank + 1, shape, &out));
  for (int64_t i = 0; i < l->count; ++i) {
    ait_tensor part = ait_ref_selected(&out, 0, i);
    if (!ait_tensor_same_shape(&part, &l->steps[k][i]))
      return ait_ref_error(l->call, AIT_CODE_INVALID_ARGUMENT, "steps give tensors of different shapes");
    AIT_TRY(ait_ref_move(l->call, &part, &l->steps[k][i]));
  }
  return AIT_OK;
}

static ait_status run_steps(loop *l) {
  const ait_region_node *n = l->call->node;
  double trips = INFINITY, condition = 1;
  if (n->args[1].kind != AIT_ARG_NONE) AIT_TRY(ait_onnx_number(l->call, 1, &trips));
  if (n->args[2].kind != AIT_ARG_NONE) AIT_TRY(ait_onnx_number(l->call, 2, &condition));
  bool go_on = condition != 0;
  for (uint32_t k = 0; k < l->carried; ++k) AIT_TRY(ait_ref_arg_value(l->call, &n->args[3].as.list[k], &l->inputs[2 + k]));
  for (uint32_t k = 0; k < l->captured; ++k) AIT_TRY(ait_ref_arg_value(l->call, &n->args[4].as.list[k], &l->inputs[2 + l->carried + k]));
  for (int64_t i = 0; go_on && (double)i < trips; ++i) {
    AIT_TRY(scalar_input(l, 0, AIT_I64, i));
    AIT_TRY(scalar_input(l, 1, AIT_BOOL, 1));
    AIT_TRY(one_step(l, &go_on));
  }
  for (uint32_t k = 0; k < l->carried && k < n->result_count; ++k) {
    l->call->results[k] = l->inputs[2 + k];
    l->inputs[2 + k] = (ait_ref_value){0};
  }
  for (uint32_t k = 0; k < l->stacked; ++k) AIT_TRY(stack(l, k, l->carried + k));
  return AIT_OK;
}

static void *zeros(const loop *l, size_t count, size_t size) {
  return ait_alloc_zero(l->call->allocator, count * size, _Alignof(max_align_t));
}

static void loop_release(loop *l) {
  ait_allocator a = l->call->allocator;
  uint32_t inputs = 2 + l->carried + l->captured;
  for (uint32_t k = 0; l->inputs && k < inputs; ++k) ait_ref_value_release(a, &l->inputs[k]);
  for (uint32_t k = 0; l->steps && l->capacity && k < l->stacked; ++k) {
    for (int64_t i = 0; i < l->count; ++i) ait_tensor_release(&l->steps[k][i]);
    ait_free(a, l->steps[k], l->capacity[k] * sizeof **l->steps);
  }
  ait_free(a, l->inputs, inputs * sizeof *l->inputs);
  ait_free(a, l->outputs, l->body->output_count * sizeof *l->outputs);
  ait_free(a, l->steps, l->stacked * sizeof *l->steps);
  ait_free(a, l->capacity, l->stacked * sizeof *l->capacity);
}

/* (body, trip count?, condition?, [carried], [captured]) -> carried, then what each step gives, stacked */
ait_status ait_ref_onnx_loop(ait_ref_call *call) {
  const ait_region_node *n = call->node;
  if (n->arg_count != 5 || n->args[0].kind != AIT_ARG_GRAPH)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "its arguments are not those of a loop");
  loop l = {.call = call, .body = n->args[0].as.graph, .carried = list_length(n, 3), .captured = list_length(n, 4)};
  if (l.body->output_count < 1 + l.carried || l.body->input_count != 2 + l.carried + l.captured)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "the body does not fit what the loop carries");
  l.stacked = l.body->output_count - 1 - l.carried;
  l.inputs = zeros(&l, 2 + l.carried + l.captured, sizeof *l.inputs);
  l.outputs = zeros(&l, l.body->output_count, sizeof *l.outputs);
  l.steps = zeros(&l, l.stacked, sizeof *l.steps);
  l.capacity = zeros(&l, l.stacked, sizeof *l.capacity);
  ait_status status = l.inputs && l.outputs && l.steps && l.capacity ? run_steps(&l) : AIT_OOM();
  loop_release(&l);
  return status;
}
