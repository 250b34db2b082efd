/* Outputs, the arena, pointers. */
#include "backends/native/plan.h"

#include "backends/dims.h"
#include <stdlib.h>

/* ---- where results should lie --------------------------------------------------------------------------------------------------*/
static ait_status push_root(nat_bind *b, nat_root root, uint32_t *out) {
  void *roots = b->roots;
  AIT_TRY(ait_grow(b->allocator, &roots, &b->root_capacity, b->root_count + 1, sizeof *b->roots));
  b->roots = roots;
  root.first_call = NAT_NONE;
  *out = (uint32_t)b->root_count;
  b->roots[b->root_count++] = root;
  return AIT_OK;
}

static bool shape_of(const nat_bind *b, uint32_t value, nat_view *out) {
  const ait_region_value *v = &b->region->values[value];
  if (v->type != AIT_TYPE_TENSOR || v->rank < 0) return false;
  *out = (nat_view){.bound = true, .dtype = v->dtype, .rank = v->rank};
  for (int32_t d = 0; d < v->rank; ++d) {
    if (!ait_dim_eval(b->region->dims, b->plan->symbols, v->shape[d], &out->shape[d]) || out->shape[d] < 0) return false;
  }
  return true;
}

static const nat_step *maker(const nat_bind *b, uint32_t value) {
  uint32_t step = b->program->def_step[value];
  return step == NAT_NONE ? NULL : &b->program->steps[step];
}

/* What a wanted result is merely another shape of is wanted in the same place. */
static void place_through_reshapes(nat_bind *b, uint32_t value) {
  for (;;) {
    const nat_step *s = maker(b, value);
    if (s == NULL || s->kind != NAT_RESHAPE || s->in_count != 1) return;
    uint32_t source = b->program->ids[s->in_begin];
    nat_view v;
    if (source == NAT_NONE || b->placed[source].bound || maker(b, source) == NULL || !shape_of(b, source, &v)) return;
    if (b->program->last_step[source] == b->program->step_count || v.dtype != b->placed[value].dtype) return;
    if (nat_count(&v) != nat_count(&b->placed[value])) return;
    v.root = b->placed[value].root;
    int32_t order[AIT_MAX_RANK];
    nat_order_row_major(v.rank, order);
    nat_order_strides(v.rank, v.shape, order, v.strides);
    b->placed[source] = v;
    value = source;
  }
}

static ait_status place_output(nat_bind *b, uint32_t i) {
  const ait_region_output *o = &b->region->outputs[i];
  if (o->arg.kind != AIT_ARG_VALUE || b->outputs[i].kind != AIT_VALUE_TENSOR || !b->direct[i]) return AIT_OK;
  uint32_t value = o->arg.as.value;
  const nat_step *s = maker(b, value);
  nat_view v;
  if (s == NULL || (s->flags & NAT_STEP_STATIC) || b->placed[value].bound || !shape_of(b, value, &v)) return AIT_OK;
  AIT_TRY(push_root(b, (nat_root){.kind = NAT_ROOT_OUTPUT, .index = i}, &v.root));
  int32_t order[AIT_MAX_RANK];
  nat_order_row_major(v.rank, order);
  nat_order_strides(v.rank, v.shape, order, v.strides);
  b->placed[value] = v;
  place_through_reshapes(b, value);
  return AIT_OK;
}

/* Steps whose result lies wherever its operand does: asking them for a place would only move the copy. */
static bool makes_views(const nat_step *s) { return s->kind >= NAT_RESHAPE && s->kind <= NAT_FLIP; }

static ait_status place_parts(nat_bind *b, uint32_t step) {
  const nat_program *p = b->program;
  const nat_step *s = &p->steps[step];
  const ait_region_node *n = nat_node(p, s);
  uint32_t value = p->ids[s->out_begin];
  nat_view whole;
  if (s->out_count != 1 || !shape_of(b, value, &whole) || n->arg_count < 2 || n->args[1].kind != AIT_ARG_INT) return AIT_OK;
  int64_t dim = n->args[1].as.i < 0 ? n->args[1].as.i + whole.rank : n->args[1].as.i;
  if (dim < 0 || dim >= whole.rank) return AIT_OK;
  bool is_static = (s->flags & NAT_STEP_STATIC) != 0;
  if (!b->placed[value].bound) {
    int32_t order[AIT_MAX_RANK];
    if (p->channels_last[value]) {
      nat_order_channels_last(whole.rank, order);
    } else {
      nat_order_row_major(whole.rank, order);
    }
    nat_order_strides(whole.rank, whole.shape, order, whole.strides);
    nat_root root = {.kind = is_static ? NAT_ROOT_STATIC : NAT_ROOT_ARENA, .bytes = nat_size(&whole), .last_step = step};
    AIT_TRY(push_root(b, root, &whole.root));
    b->placed[value] = whole;
  }
  nat_view part = b->placed[value];
  for (uint32_t i = 0; i < s->in_count; ++i) {
    uint32_t from = p->ids[s->in_begin + i];
    nat_view v;
    if (from == NAT_NONE || !shape_of(b, from, &v) || v.rank != whole.rank) return AIT_OK;
    part.shape[dim] = v.shape[dim];
    const nat_step *m = maker(b, from);
    bool wanted = m != NULL && !makes_views(m) && ((m->flags & NAT_STEP_STATIC) != 0) == is_static && !b->placed[from].bound &&
                  p->last_step[from] == step && v.dtype == part.dtype && nat_same_shape(&part, &v);
    if (wanted) b->placed[from] = part;
    part.offset += v.shape[dim] * part.strides[dim] * (int64_t)ait_dtype_size(part.dtype);
  }
  return AIT_OK;
}

ait_status nat_place_results(nat_bind *b) {
  for (uint32_t i = 0; i < b->region->output_count; ++i) AIT_TRY(place_output(b, i));
  if (b->program->flags & NAT_EAGER) return AIT_OK;
  for (uint32_t step = b->program->step_count; step-- > 0;) {
    if (b->program->steps[step].kind == NAT_CAT) AIT_TRY(place_parts(b, step));
  }
  return AIT_OK;
}

/* ---- outputs -------------------------------------------------------------------------------------------------------------------*/
static bool is_row_major(const nat_view *v) {
  int32_t order[AIT_MAX_RANK];
  nat_order_row_major(v->rank, order);
  return nat_has_order(v, order);
}

static bool is_tensor_output(const nat_bind *b, uint32_t i) {
  const ait_arg *a = &b->region->outputs[i].arg;
  return a->kind == AIT_ARG_VALUE && b->region->values[a->as.value].type == AIT_TYPE_TENSOR;
}

static ait_status view_of_output(nat_bind *b, uint32_t i, nat_view *out) {
  uint32_t value = b->region->outputs[i].arg.as.value;
  uint32_t input = b->program->value_input[value];
  if (!b->views[value].bound && input != NAT_NONE && b->program->weights[input].dtype != AIT_DTYPE_NONE) {
    const ait_tensor *t = &b->program->weights[input];
    nat_view v = {.bound = true, .dtype = t->dtype, .rank = t->rank};
    memcpy(v.shape, t->shape, sizeof v.shape);
    memcpy(v.strides, t->strides, sizeof v.strides);
    AIT_TRY(nat_const(b, t->data, 0, &v.root));
    b->views[value] = v;
  }
  if (!b->views[value].bound) return ait_error(AIT_CODE_INVALID_MODEL, "output %u is never made", i);
  *out = b->views[value];
  return AIT_OK;
}

/* A row-major copy, or the value itself when it may be kept. */
static ait_status settle(nat_bind *b, const nat_view *v, bool keep, nat_view *out) {
  *out = *v;
  if (keep) return AIT_OK;
  AIT_TRY(nat_temp(b, v->dtype, v->rank, v->shape, NULL, out));
  return nat_copy(b, out, v);
}

static void describe(nat_result *r, const nat_view *v, uint32_t slot) {
  r->slot = slot;
  r->offset = v->offset;
  r->tensor = (ait_tensor){.dtype = v->dtype, .rank = v->rank};
  memcpy(r->tensor.shape, v->shape, sizeof v->shape);
  ait_tensor_set_contiguous(&r->tensor);
}

/* Outputs that share their memory with inputs, or with each other, must not be written before everything was read: first loop makes sure
 * that every output's value lies in memory of our own, second loop writes. */
static ait_status hand_over_outputs(nat_bind *b, nat_view *settled) {
  for (uint32_t i = 0; i < b->region->output_count; ++i) {
    if (!is_tensor_output(b, i)) continue;
    nat_view v;
    AIT_TRY(view_of_output(b, i, &v));
    nat_root_kind kind = b->roots[v.root].kind;
    bool given = b->outputs[i].kind == AIT_VALUE_TENSOR;
    bool keep = given ? kind != NAT_ROOT_INPUT : kind == NAT_ROOT_ARENA && is_row_major(&v);
    AIT_TRY(settle(b, &v, keep, &settled[i]));
  }
  for (uint32_t i = 0; i < b->region->output_count; ++i) {
    nat_result *r = &b->plan->results[i];
    if (!is_tensor_output(b, i)) continue;
    nat_view *v = &settled[i];
    nat_root *root = &b->roots[v->root];
    if (b->outputs[i].kind != AIT_VALUE_TENSOR) {
      if (root->first_call == NAT_NONE) root->first_call = 0;
      root->last_call = NAT_FOREVER;
      describe(r, v, v->root); /* the offset in the arena is added by finish */
      continue;
    }
    describe(r, v, NAT_SLOT_ARENA + 1 + b->region->input_count + i);
    r->offset = 0;
    if (root->kind == NAT_ROOT_OUTPUT && root->index == i && v->offset == 0 && is_row_major(v)) continue;
    const ait_tensor *t = &b->outputs[i].as.tensor;
    nat_view to = {.bound = true, .dtype = t->dtype, .rank = t->rank};
    memcpy(to.shape, t->shape, sizeof to.shape);
    memcpy(to.strides, t->strides, sizeof to.strides);
    AIT_TRY(push_root(b, (nat_root){.kind = NAT_ROOT_OUTPUT, .index = i}, &to.root));
    AIT_TRY(nat_copy(b, &to, v));
  }
  return AIT_OK;
}

/* ---- arena ---------------------------------------------------------------------------------------------------------------------*/
typedef struct placement {
  uint32_t root, first, last;
  size_t bytes, offset;
} placement;

static int larger_first(const void *a, const void *b) {
  const placement *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->root < y->root ? -1 : 1;
}

/* Lowest gap between the pieces (sorted by offset) that live at the same time. */
static size_t lowest_gap(const placement *all, const uint32_t *by_offset, size_t placed, const placement *p) {
  size_t end = 0;
  for (size_t i = 0; i < placed; ++i) {
    const placement *q = &all[by_offset[i]];
    if (q->last < p->first || q->first > p->last) continue;
    if (q->offset >= end && q->offset - end >= p->bytes) break;
    if (q->offset + q->bytes > end) end = q->offset + q->bytes;
  }
  return end;
}

/* Greedy by size ("Efficient Memory Management for Deep Neural Net Inference", arXiv 2001.03288): each root, largest first, at the lowest
 * offset where it meets no other that lives at the same time. Eager gives each its own place. */
static ait_status lay_out(nat_bind *b, nat_root_kind kind, size_t *out_bytes) {
  size_t count = 0;
  bool share = (b->program->flags & NAT_EAGER) == 0;
  placement *all = ait_alloc(b->allocator, (b->root_count + 1) * sizeof *all, _Alignof(placement));
  uint32_t *by_offset = ait_alloc(b->allocator, (b->root_count + 1) * sizeof *by_offset, _Alignof(uint32_t));
  if (all == NULL || by_offset == NULL) {
    ait_free(b->allocator, all, (b->root_count + 1) * sizeof *all);
    ait_free(b->allocator, by_offset, (b->root_count + 1) * sizeof *by_offset);
    return AIT_OOM();
  }
  for (uint32_t i = 0; i < b->root_count; ++i) {
    const nat_root *r = &b->roots[i];
    if (r->kind != kind || r->first_call == NAT_NONE) continue;
    all[count++] = (placement){i, share ? r->first_call : 0, share ? r->last_call : NAT_FOREVER, ait_align_up(r->bytes, 64), 0};
  }
  qsort(all, count, sizeof *all, larger_first);
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    all[i].offset = lowest_gap(all, by_offset, i, &all[i]);
    size_t at = i;
    while (at > 0 && all[by_offset[at - 1]].offset > all[i].offset) {
      by_offset[at] = by_offset[at - 1];
      --at;
    }
    by_offset[at] = (uint32_t)i;
    b->roots[all[i].root].offset = all[i].offset;
    if (all[i].offset + all[i].bytes > total) total = all[i].offset + all[i].bytes;
  }
  ait_free(b->allocator, all, (b->root_count + 1) * sizeof *all);
  ait_free(b->allocator, by_offset, (b->root_count + 1) * sizeof *by_offset);
  *out_bytes = total;
  return AIT_OK;
}

/* ---- pointers ------------------------------------------------------------------------------------------------------------------*/
static uint32_t slot_of(const nat_bind *b, const nat_root *r) {
  if (r->kind == NAT_ROOT_INPUT) return NAT_SLOT_ARENA + 1 + r->index;
  if (r->kind == NAT_ROOT_OUTPUT) return NAT_SLOT_ARENA + 1 + b->region->input_count + r->index;
  return NAT_SLOT_ARENA;
}

static bool is_scratch(const nat_call *c) { return c->scratch != NULL; }

/* Static memory stays where it is: its pointers are final at once. The others are sorted by slot. */
static ait_status fix_pointers(nat_bind *b) {
  nat_plan *plan = b->plan;
  size_t scratches = 0, count = 0;
  for (uint32_t i = 0; i < plan->call_count; ++i) scratches += is_scratch(&plan->calls[i]);
  plan->relocs = ait_arena_array(&plan->memory, b->pending_count + scratches + 1, sizeof *plan->relocs, _Alignof(nat_reloc));
  if (plan->relocs == NULL) return AIT_OOM();
  for (size_t i = 0; i < b->pending_count; ++i) {
    const nat_pending *p = &b->pending[i];
    const nat_root *r = &b->roots[p->root];
    if (r->kind == NAT_ROOT_STATIC) {
      *p->where = plan->statics + r->offset + p->offset;
    } else {
      plan->slots[slot_of(b, r)].reloc_count++;
    }
  }
  plan->slots[NAT_SLOT_ARENA].reloc_count += (uint32_t)scratches;
  for (uint32_t s = 0; s < plan->slot_count; ++s) {
    plan->slots[s].reloc_begin = (uint32_t)count;
    count += plan->slots[s].reloc_count;
    plan->slots[s].reloc_count = 0;
  }
  for (size_t i = 0; i < b->pending_count; ++i) {
    const nat_pending *p = &b->pending[i];
    const nat_root *r = &b->roots[p->root];
    if (r->kind == NAT_ROOT_STATIC) continue;
    nat_slot *slot = &plan->slots[slot_of(b, r)];
    plan->relocs[slot->reloc_begin + slot->reloc_count++] = (nat_reloc){p->where, (int64_t)r->offset + p->offset};
  }
  for (uint32_t i = 0; i < plan->call_count; ++i) {
    if (!is_scratch(&plan->calls[i])) continue;
    const nat_root *r = &b->roots[(uintptr_t)plan->calls[i].scratch - 1];
    nat_slot *slot = &plan->slots[NAT_SLOT_ARENA];
    plan->relocs[slot->reloc_begin + slot->reloc_count++] = (nat_reloc){(void **)(void *)&plan->calls[i].scratch, (int64_t)r->offset};
  }
  return AIT_OK;
}

static ait_status run_statics(nat_bind *b) {
  for (size_t i = 0; i < b->call_count[1]; ++i) {
    nat_call *c = &b->calls[1][i];
    if (is_scratch(c)) c->scratch = b->plan->statics + b->roots[(uintptr_t)c->scratch - 1].offset;
  }
  return nat_run_calls(b->calls[1], b->call_count[1], b->state, true);
}

ait_status nat_plan_finish(nat_bind *b) {
  nat_plan *plan = b->plan;
  uint32_t outputs = b->region->output_count;
  plan->results = AIT_ARENA_ARRAY(&plan->memory, nat_result, outputs + 1);
  nat_view *settled = ait_arena_array(&plan->memory, outputs + 1, sizeof *settled, _Alignof(nat_view));
  plan->slot_count = NAT_SLOT_ARENA + 1 + b->region->input_count + outputs;
  plan->slots = AIT_ARENA_ARRAY(&plan->memory, nat_slot, plan->slot_count);
  if (plan->results == NULL || settled == NULL || plan->slots == NULL) return AIT_OOM();
  b->is_static = false;
  AIT_TRY(hand_over_outputs(b, settled));
  AIT_TRY(lay_out(b, NAT_ROOT_ARENA, &plan->arena_bytes));
  AIT_TRY(lay_out(b, NAT_ROOT_STATIC, &plan->statics_bytes));
  for (uint32_t i = 0; i < outputs; ++i) {
    if (!is_tensor_output(b, i) || b->outputs[i].kind == AIT_VALUE_TENSOR) continue;
    nat_result *r = &plan->results[i];
    r->offset += (int64_t)b->roots[r->slot].offset;
    r->slot = NAT_SLOT_ARENA;
  }
  plan->call_count = (uint32_t)b->call_count[0];
  plan->calls = ait_arena_array(&plan->memory, b->call_count[0] + 1, sizeof *plan->calls, _Alignof(nat_call));
  plan->statics = ait_alloc(plan->allocator, plan->statics_bytes, 64);
  if (plan->calls == NULL || plan->statics == NULL) return AIT_OOM();
  if (plan->call_count > 0) memcpy(plan->calls, b->calls[0], plan->call_count * sizeof *plan->calls);
  AIT_TRY(fix_pointers(b));
  return run_statics(b);
}

void nat_plan_destroy(nat_plan *plan, const ait_region *region) {
  if (plan == NULL) return;
  nat_plan_release_lists(plan, region);
  ait_allocator a = plan->allocator;
  ait_free(a, plan->statics, plan->statics_bytes);
  ait_free(a, plan->key, plan->key_count * sizeof *plan->key);
  ait_arena_deinit(&plan->memory);
  ait_free(a, plan, sizeof *plan);
}
