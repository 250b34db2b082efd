/* Steps for which native has no kernel: the node runs on the reference interpreter, on native's memory. */
#include "backends/native/prepare.h"

#include "backends/dims.h"
#include "backends/native/plan.h"
#include "backends/reference/reference.h"

/* A tensor operand or result: its place is a pointer of the plan. */
typedef struct portable_port {
  uint32_t value; /* NAT_NONE: a result that the program does not want */
  ait_tensor tensor;
} portable_port;

typedef struct portable_args {
  const ait_region *region;
  const ait_region_node *node;
  nat_plan *plan;
  nat_run_state *state;
  uint32_t operand_count, result_count;
  portable_port *operands, *ports; /* ports: per result */
  ait_ref_value *results;          /* scratch for the call */
} portable_args;

/* Tensors of a list that are views of operands would outlive the memory of these: they become copies. */
static ait_status own_items(ait_allocator a, ait_ref_value *v) {
  for (uint32_t i = 0; v->type == AIT_TYPE_TENSOR_LIST && i < v->as.list.count; ++i) {
    ait_tensor *item = &v->as.list.items[i], copy;
    if (item->storage != NULL || item->data == NULL) continue;
    AIT_TRY(ait_tensor_cast(a, item, item->dtype, &copy));
    *item = copy;
  }
  return AIT_OK;
}

static ait_status store_result(const portable_args *a, uint32_t i) {
  ait_ref_value *got = &a->results[i];
  const portable_port *want = &a->ports[i];
  if (want->value == NAT_NONE) return AIT_OK;
  if (a->region->values[want->value].type != AIT_TYPE_TENSOR) { /* stays in the table until the next run */
    AIT_TRY(own_items(a->plan->list_allocator, got));
    ait_ref_value_release(a->plan->list_allocator, &a->plan->values[want->value]);
    a->plan->values[want->value] = *got;
    *got = (ait_ref_value){0};
    return AIT_OK;
  }
  if (got->type != AIT_TYPE_TENSOR || !ait_tensor_same_shape(&got->as.tensor, &want->tensor)) {
    return ait_error(AIT_CODE_INTERNAL, "node '%s' (%s): result %u has not the shape that was planned", a->node->name, a->node->op, i);
  }
  return ait_tensor_copy(&want->tensor, &got->as.tensor);
}

static ait_status run_node(const portable_args *a) {
  const ait_run_context *c = a->state->context;
  ait_allocator memory = a->plan->list_allocator;
  for (uint32_t i = 0; i < a->operand_count; ++i) {
    a->plan->values[a->operands[i].value] = (ait_ref_value){.type = AIT_TYPE_TENSOR, .as.tensor = a->operands[i].tensor};
  }
  ait_status status = ait_ref_run_node(a->region, a->node, memory, c->pool, false, a->plan->symbols, a->plan->values, a->results);
  for (uint32_t i = 0; i < a->operand_count; ++i) a->plan->values[a->operands[i].value] = (ait_ref_value){0};
  AIT_TRY(status);
  for (uint32_t i = 0; i < a->result_count; ++i) {
    if (status == AIT_OK) status = store_result(a, i);
    ait_ref_value_release(memory, &a->results[i]);
  }
  return status;
}

static void portable(const void *args, int64_t begin, int64_t end, void *scratch) {
  const portable_args *a = args;
  AIT_UNUSED(scratch);
  if (begin < end) a->state->status = run_node(a);
}

/* ---- preparing -------------------------------------------------------------------------------------------------------------------*/
static ait_status value_table(nat_bind *b) {
  if (b->plan->values != NULL) return AIT_OK;
  b->plan->list_allocator = b->allocator;
  b->plan->value_count = b->region->value_count;
  b->plan->values = AIT_ARENA_ARRAY(&b->plan->memory, ait_ref_value, b->region->value_count + 1u);
  if (b->plan->values == NULL) return AIT_OOM();
  for (uint32_t i = 0; i < b->region->value_count; ++i) { /* ints are known once sizes are */
    const ait_region_value *v = &b->region->values[i];
    int64_t size;
    if (v->type != AIT_TYPE_INT || v->shape == NULL || !ait_dim_eval(b->region->dims, b->plan->symbols, v->shape[0], &size)) continue;
    b->plan->values[i] = (ait_ref_value){.type = AIT_TYPE_INT, .as.i = size};
  }
  return AIT_OK;
}

static void describe(ait_tensor *t, const nat_view *v) {
  *t = (ait_tensor){.dtype = v->dtype, .rank = v->rank};
  memcpy(t->shape, v->shape, sizeof t->shape);
  memcpy(t->strides, v->strides, sizeof t->strides);
}

/* Lists and numbers have no memory of their own. */
static bool is_loose(const nat_bind *b, uint32_t value) { return b->region->values[value].type != AIT_TYPE_TENSOR; }

static ait_status read_operands(nat_bind *b, const nat_step *s, portable_args *a, nat_view *views) {
  for (uint32_t i = 0; i < s->in_count; ++i) {
    uint32_t value = b->program->ids[s->in_begin + i];
    if (value == NAT_NONE || is_loose(b, value)) continue;
    AIT_TRY(nat_in(b, s, i, &views[a->operand_count]));
    a->operands[a->operand_count].value = value;
    describe(&a->operands[a->operand_count].tensor, &views[a->operand_count]);
    a->operand_count++;
  }
  return AIT_OK;
}

/* A list or a number is bound, but lies nowhere. */
static ait_status make_results(nat_bind *b, const nat_step *s, portable_args *a, nat_view *views) {
  a->result_count = s->out_count;
  for (uint32_t i = 0; i < s->out_count; ++i) {
    uint32_t value = b->program->ids[s->out_begin + i];
    a->ports[i].value = value;
    if (value == NAT_NONE) continue;
    if (is_loose(b, value)) {
      b->views[value].bound = true;
      continue;
    }
    AIT_TRY(nat_out(b, s, i, NULL, true, &views[i]));
    describe(&a->ports[i].tensor, &views[i]);
  }
  return AIT_OK;
}

ait_status nat_prepare_portable(nat_bind *b, const nat_step *s) {
  const ait_region_node *n = nat_node(b->program, s);
  if (n->result_count != s->out_count) return nat_error(b, AIT_CODE_INVALID_MODEL, "%u results", s->out_count);
  AIT_TRY(value_table(b));
  portable_args a = {.region = b->region, .node = n, .plan = b->plan, .state = b->state}, *args;
  nat_view *views = nat_keep(b, (s->in_count + s->out_count + 1u) * sizeof *views);
  a.operands = nat_keep(b, (s->in_count + 1u) * sizeof *a.operands);
  a.ports = nat_keep(b, (s->out_count + 1u) * sizeof *a.ports);
  a.results = nat_keep(b, (s->out_count + 1u) * sizeof *a.results);
  if (views == NULL || a.operands == NULL || a.ports == NULL || a.results == NULL) return AIT_OOM();
  AIT_TRY(read_operands(b, s, &a, views));
  AIT_TRY(make_results(b, s, &a, views + s->in_count));
  nat_work work = {portable, "portable", 1, 0, 0};
  b->plan->fallible = true;
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  for (uint32_t i = 0; i < a.operand_count; ++i) AIT_TRY(NAT_POINTER(b, a.operands[i].tensor.data, &views[i]));
  for (uint32_t i = 0; i < s->out_count; ++i) {
    if (a.ports[i].value == NAT_NONE || is_loose(b, a.ports[i].value)) continue;
    AIT_TRY(NAT_POINTER(b, a.ports[i].tensor.data, &views[s->in_count + i]));
  }
  return AIT_OK;
}

void nat_plan_release_lists(nat_plan *plan, const ait_region *region) {
  for (uint32_t i = 0; plan->values != NULL && i < plan->value_count; ++i) {
    if (region->values[i].type != AIT_TYPE_TENSOR) ait_ref_value_release(plan->list_allocator, &plan->values[i]);
  }
}
