/* Running: find the plan for the shapes at hand, set the pointers that changed, call. */
#include "backends/native/instance.h"

#include <sys/mman.h>

/* ---- calls ---------------------------------------------------------------------------------------------------------------------*/
static void run_part(void *ctx, int32_t i) {
  const nat_call *c = ctx;
  int64_t begin = c->units * i / c->tasks, end = c->units * (i + 1) / c->tasks;
  c->fn(c->args, begin, end, c->scratch + c->scratch_stride * (size_t)i);
}

static inline void run_call(const nat_call *c, ait_pool *pool) {
  if (c->tasks == 1) {
    c->fn(c->args, 0, c->units, c->scratch);
  } else {
    ait_pool_run(pool, run_part, (void *)(uintptr_t)c, c->tasks);
  }
}

static ait_status take_status(nat_run_state *state) {
  ait_status status = state->status;
  state->status = AIT_OK;
  return status;
}

ait_status nat_run_calls(const nat_call *calls, size_t count, nat_run_state *state, bool fallible) {
  ait_pool *pool = state->context->pool;
  if (!fallible) {
    for (size_t i = 0; i < count; ++i) run_call(&calls[i], pool);
    return AIT_OK;
  }
  for (size_t i = 0; i < count; ++i) {
    run_call(&calls[i], pool);
    if (state->status != AIT_OK) return take_status(state);
  }
  return AIT_OK;
}

static ait_status run_profiled(nat_instance *in, const nat_plan *plan) {
  for (uint32_t i = 0; i < plan->call_count; ++i) {
    const nat_call *c = &plan->calls[i];
    double start = ait_clock_seconds();
    run_call(c, in->state.context->pool);
    nat_step_time *t = &in->times[c->step];
    double seconds = ait_clock_seconds() - start;
    t->seconds += seconds;
    t->calls += i == 0 || plan->calls[i - 1].step != c->step;
    if (t->kernel == NULL || seconds > t->longest) {
      t->longest = seconds;
      t->kernel = c->kernel;
    }
    if (in->state.status != AIT_OK) return take_status(&in->state);
  }
  return AIT_OK;
}

/* ---- key: everything that a plan depends on --------------------------------------------------------------------------------------*/
static bool passed(const ait_region_input *in) { return in->value != AIT_NO_INDEX && (in->kind == AIT_INPUT_USER || in->mutated); }

static void extent(const ait_tensor *t, uintptr_t *low, uintptr_t *high) {
  int64_t first = 0, last = 0, size = (int64_t)ait_dtype_size(t->dtype);
  for (int32_t d = 0; d < t->rank; ++d) {
    if (t->shape[d] == 0) {
      *low = *high = 0;
      return;
    }
    int64_t reach = (t->shape[d] - 1) * t->strides[d];
    if (reach < 0) {
      first += reach;
    } else {
      last += reach;
    }
  }
  *low = (uintptr_t)t->data + (uintptr_t)(first * size);
  *high = (uintptr_t)t->data + (uintptr_t)((last + 1) * size);
}

static bool overlaps(const ait_tensor *a, const ait_tensor *b) {
  uintptr_t a0, a1, b0, b1;
  extent(a, &a0, &a1);
  extent(b, &b0, &b1);
  return a0 < b1 && b0 < a1;
}

/* May output i be written while inputs are still read? */
static bool is_direct(const nat_instance *in, const ait_run_context *c, uint32_t i) {
  const ait_region *r = in->program->region;
  const ait_tensor *t = &c->outputs[i].as.tensor;
  if (!ait_tensor_is_contiguous(t)) return false;
  for (uint32_t k = 0; k < r->input_count; ++k) {
    if (passed(&r->inputs[k]) && c->inputs[k].kind == AIT_VALUE_TENSOR && overlaps(t, &c->inputs[k].as.tensor)) return false;
  }
  for (uint32_t k = 0; k < r->output_count; ++k) {
    if (k != i && c->outputs[k].kind == AIT_VALUE_TENSOR && overlaps(t, &c->outputs[k].as.tensor)) return false;
  }
  return true;
}

static int64_t *put_tensor(int64_t *key, const ait_tensor *t) {
  *key++ = t->dtype;
  *key++ = t->rank;
  for (int32_t d = 0; d < t->rank; ++d) {
    *key++ = t->shape[d];
    *key++ = t->strides[d];
  }
  return key;
}

static ait_status check_output(const ait_region *r, const ait_tensor *t, uint32_t i) {
  const ait_region_output *o = &r->outputs[i];
  const ait_region_value *v = o->arg.kind == AIT_ARG_VALUE ? &r->values[o->arg.as.value] : NULL;
  if (v == NULL || v->type != AIT_TYPE_TENSOR) return ait_error(AIT_CODE_INVALID_ARGUMENT, "output %u is not a tensor", i);
  if (t->dtype != v->dtype || t->rank != v->rank) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "memory given for output %u has not its dtype or rank", i);
  }
  return AIT_OK;
}

static ait_status make_key(nat_instance *in, const ait_run_context *c) {
  const ait_region *r = in->program->region;
  int64_t *key = in->key;
  *key++ = ait_pool_threads(c->pool);
  for (uint32_t i = 0; i < r->input_count; ++i) {
    if (!passed(&r->inputs[i])) continue;
    const ait_value *v = &c->inputs[i];
    *key++ = v->kind;
    if (v->kind == AIT_VALUE_TENSOR) {
      if (v->as.tensor.rank < 0 || v->as.tensor.rank > AIT_MAX_RANK)
        return ait_error(AIT_CODE_INVALID_ARGUMENT, "input %u has no valid rank", i);
      key = put_tensor(key, &v->as.tensor);
    } else if (v->kind == AIT_VALUE_INT) {
      *key++ = v->as.i;
    }
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    const ait_value *v = &c->outputs[i];
    in->direct[i] = false;
    *key++ = v->kind;
    if (v->kind != AIT_VALUE_TENSOR) continue;
    AIT_TRY(check_output(r, &v->as.tensor, i));
    key = put_tensor(key, &v->as.tensor);
    in->direct[i] = is_direct(in, c, i);
    *key++ = in->direct[i];
  }
  in->key_count = (uint32_t)(key - in->key);
  return AIT_OK;
}

static bool fits(const nat_instance *in, const nat_plan *p) {
  return p != NULL && p->key_count == in->key_count && memcmp(p->key, in->key, in->key_count * sizeof *in->key) == 0;
}

/* ---- plans ---------------------------------------------------------------------------------------------------------------------*/
static ait_status reserve_arena(nat_instance *in, size_t bytes) {
  enum { HUGE_PAGE = 2 << 20 };
  if (bytes <= in->arena_bytes && in->arena != NULL) return AIT_OK;
  bool huge = bytes >= HUGE_PAGE;
  size_t size = ait_align_up(bytes, huge ? (size_t)HUGE_PAGE : 64);
  char *arena = ait_alloc(in->allocator, size, huge ? (size_t)HUGE_PAGE : 64);
  if (arena == NULL) return AIT_OOM();
  if (huge) (void)madvise(arena, size, MADV_HUGEPAGE); /* a wish: nothing depends on it */
  memset(arena, 0, size);                              /* page faults now, not in a run */
  ait_free(in->allocator, in->arena, in->arena_bytes);
  in->arena = arena;
  in->arena_bytes = size;
  return AIT_OK;
}

static ait_status bind_plan(nat_instance *in, const ait_run_context *c, nat_plan **out) {
  const nat_program *p = in->program;
  nat_plan *plan = ait_alloc_zero(in->allocator, sizeof *plan, _Alignof(nat_plan));
  if (plan == NULL) return AIT_OOM();
  plan->allocator = in->allocator;
  ait_arena_init(&plan->memory, in->allocator);
  ait_status status = AIT_OK;
  plan->symbols = AIT_ARENA_ARRAY(&plan->memory, int64_t, p->region->symbol_count + 1);
  plan->key = ait_alloc(in->allocator, in->key_count * sizeof *in->key, _Alignof(int64_t));
  if (plan->symbols == NULL || plan->key == NULL) {
    status = AIT_OOM();
    goto cleanup;
  }
  plan->key_count = in->key_count;
  memcpy(plan->key, in->key, in->key_count * sizeof *in->key);
  AIT_GOTO(nat_bind_symbols(p->region, c->inputs, plan->symbols));
  nat_bind bind = {.program = p,
                   .region = p->region,
                   .allocator = in->allocator,
                   .plan = plan,
                   .state = &in->state,
                   .inputs = c->inputs,
                   .outputs = c->outputs,
                   .direct = in->direct,
                   .threads = ait_pool_threads(c->pool),
                   .kernels = p->kernels};
  AIT_GOTO(nat_bind_plan(&bind));
  *out = plan;
  return AIT_OK;
cleanup:
  if (plan->key == NULL) plan->key_count = 0;
  nat_plan_destroy(plan, in->program->region);
  return status;
}

/* The plan for the current key, moved to the front. The least recently used one makes room. */
static ait_status find_plan(nat_instance *in, const ait_run_context *c, nat_plan **out) {
  int at = 0;
  while (at < NAT_PLANS && !fits(in, in->plans[at])) ++at;
  nat_plan *plan;
  if (at < NAT_PLANS) {
    plan = in->plans[at];
  } else {
    AIT_TRY(bind_plan(in, c, &plan));
    ait_status status = reserve_arena(in, plan->arena_bytes);
    if (status != AIT_OK) {
      nat_plan_destroy(plan, in->program->region);
      return status;
    }
    at = NAT_PLANS - 1;
    nat_plan_destroy(in->plans[at], in->program->region);
  }
  memmove(&in->plans[1], &in->plans[0], (size_t)at * sizeof in->plans[0]);
  in->plans[0] = plan;
  *out = plan;
  return AIT_OK;
}

/* ---- pointers ------------------------------------------------------------------------------------------------------------------*/
static void set_slot(nat_plan *plan, uint32_t index, const void *base) {
  nat_slot *slot = &plan->slots[index];
  if (slot->base == base || slot->reloc_count == 0) return;
  slot->base = base;
  const nat_reloc *r = &plan->relocs[slot->reloc_begin];
  for (uint32_t i = 0; i < slot->reloc_count; ++i) *r[i].where = (char *)(uintptr_t)base + r[i].offset;
}

static void set_slots(nat_instance *in, nat_plan *plan, const ait_run_context *c) {
  const ait_region *r = in->program->region;
  set_slot(plan, NAT_SLOT_ARENA, in->arena);
  for (uint32_t i = 0; i < r->input_count; ++i) {
    if (passed(&r->inputs[i]) && c->inputs[i].kind == AIT_VALUE_TENSOR) set_slot(plan, NAT_SLOT_ARENA + 1 + i, c->inputs[i].as.tensor.data);
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    if (c->outputs[i].kind == AIT_VALUE_TENSOR) set_slot(plan, NAT_SLOT_ARENA + 1 + r->input_count + i, c->outputs[i].as.tensor.data);
  }
}

static ait_value constant_output(const ait_arg *arg) {
  switch (arg->kind) {
    case AIT_ARG_INT: return (ait_value){.kind = AIT_VALUE_INT, .as.i = arg->as.i};
    case AIT_ARG_FLOAT: return (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = arg->as.f};
    case AIT_ARG_BOOL: return (ait_value){.kind = AIT_VALUE_BOOL, .as.b = arg->as.b};
    case AIT_ARG_STRING: return (ait_value){.kind = AIT_VALUE_STRING, .as.s = arg->as.string};
    default: return (ait_value){.kind = AIT_VALUE_NONE};
  }
}

/* The size that output i is, when it is an int. */
static bool int_output(const ait_region *r, const ait_arg *a, ait_dim *out) {
  if (a->kind == AIT_ARG_DIM) {
    *out = a->as.dim;
    return true;
  }
  if (a->kind != AIT_ARG_VALUE || r->values[a->as.value].type != AIT_TYPE_INT || r->values[a->as.value].shape == NULL) return false;
  *out = r->values[a->as.value].shape[0];
  return true;
}

static ait_status hand_out(nat_instance *in, const nat_plan *plan, const ait_run_context *c) {
  const ait_region *r = in->program->region;
  for (uint32_t i = 0; i < r->output_count; ++i) {
    const ait_region_output *o = &r->outputs[i];
    ait_value *v = &c->outputs[i];
    if (v->kind == AIT_VALUE_TENSOR) continue; /* the caller's memory: filled */
    ait_dim dim;
    if (int_output(r, &o->arg, &dim)) {
      *v = (ait_value){.kind = AIT_VALUE_INT};
      if (!ait_dim_eval(r->dims, plan->symbols, dim, &v->as.i)) return ait_error(AIT_CODE_UNSUPPORTED, "output %u cannot be computed", i);
    } else if (o->arg.kind != AIT_ARG_VALUE) {
      *v = constant_output(&o->arg);
    } else if (r->values[o->arg.as.value].type != AIT_TYPE_TENSOR) {
      return ait_error(AIT_CODE_UNSUPPORTED, "output %u is not a tensor", i);
    } else {
      *v = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = plan->results[i].tensor};
      v->as.tensor.data = in->arena + plan->results[i].offset;
    }
  }
  return AIT_OK;
}

ait_status nat_instance_run(void *instance, const ait_run_context *context) {
  nat_instance *in = instance;
  nat_plan *plan;
  in->state.context = context;
  AIT_TRY(make_key(in, context));
  if (fits(in, in->plans[0])) {
    plan = in->plans[0];
  } else {
    AIT_TRY(find_plan(in, context, &plan));
  }
  set_slots(in, plan, context);
  if (context->profile) {
    size_t bytes = (in->program->step_count + 1u) * sizeof *in->times;
    if (in->times == NULL) in->times = ait_alloc_zero(in->allocator, bytes, _Alignof(nat_step_time));
    if (in->times == NULL) return AIT_OOM();
    AIT_TRY(run_profiled(in, plan));
  } else {
    AIT_TRY(nat_run_calls(plan->calls, plan->call_count, &in->state, plan->fallible));
  }
  return hand_out(in, plan, context);
}

/* ---- life ----------------------------------------------------------------------------------------------------------------------*/
static size_t key_limit(const ait_region *r) { return 2 + ((size_t)r->input_count + r->output_count) * (4 + 2 * AIT_MAX_RANK); }

void nat_instance_destroy(void *instance) {
  nat_instance *in = instance;
  if (in == NULL) return;
  for (int i = 0; i < NAT_PLANS; ++i) nat_plan_destroy(in->plans[i], in->program->region);
  ait_free(in->allocator, in->key, in->key_capacity * sizeof *in->key);
  ait_free(in->allocator, in->direct, in->program->region->output_count + 1u);
  ait_free(in->allocator, in->arena, in->arena_bytes);
  ait_free(in->allocator, in->times, (in->program->step_count + 1u) * sizeof *in->times);
  ait_free(in->allocator, in, sizeof *in);
}

ait_status nat_instance_create(void *loaded, ait_allocator allocator, void **out_instance) {
  const nat_program *p = loaded;
  nat_instance *in = ait_alloc_zero(allocator, sizeof *in, _Alignof(nat_instance));
  if (in == NULL) return AIT_OOM();
  in->program = p;
  in->allocator = allocator;
  in->key_capacity = key_limit(p->region);
  in->key = ait_alloc(allocator, in->key_capacity * sizeof *in->key, _Alignof(int64_t));
  in->direct = ait_alloc_zero(allocator, p->region->output_count + 1u, 1);
  if (in->key == NULL || in->direct == NULL) {
    nat_instance_destroy(in);
    return AIT_OOM();
  }
  *out_instance = in;
  return AIT_OK;
}

size_t nat_instance_bytes(const void *instance) {
  const nat_instance *in = instance;
  size_t bytes = in->arena_bytes;
  for (int i = 0; i < NAT_PLANS; ++i) bytes += in->plans[i] != NULL ? in->plans[i]->statics_bytes + in->plans[i]->memory.used_bytes : 0;
  return bytes;
}

uint32_t nat_instance_profile(void *instance, ait_step_time *out, uint32_t capacity) {
  const nat_instance *in = instance;
  const nat_program *p = in->program;
  static const char *const kind_text[NAT_KIND_COUNT] = {
#define NAT_STEP(name, text, prepare) [NAT_##name] = text,
#include "backends/native/steps.inc"
#undef NAT_STEP
  };
  for (uint32_t i = 0; i < p->step_count && i < capacity; ++i) {
    const nat_step *s = &p->steps[i];
    const ait_region_node *n = nat_node(p, s);
    out[i] = (ait_step_time){
        .name = n->name, .op = n->op, .module = n->module, .kernel = kind_text[s->kind], .portable = s->kind == NAT_PORTABLE};
    if (in->times == NULL) continue;
    out[i].seconds = in->times[i].seconds;
    out[i].calls = in->times[i].calls;
    if (in->times[i].kernel != NULL) out[i].kernel = in->times[i].kernel;
  }
  return p->step_count;
}
