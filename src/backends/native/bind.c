/* Binding: what prepare functions are made of, and the walk over the steps. */
#include "backends/native/bind.h"

#include "backends/dims.h"
#include "backends/native/plan.h"
#include <stdio.h>

static const nat_prepare_fn prepare_table[NAT_KIND_COUNT] = {
#define NAT_STEP(name, text, prepare) [NAT_##name] = prepare,
#include "backends/native/steps.inc"
#undef NAT_STEP
};

ait_status nat_error(const nat_bind *b, ait_code code, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (b->now == NULL) return ait_error(code, "%s", text);
  const ait_region_node *n = nat_node(b->program, b->now);
  return ait_error(code, "node '%s' (%s): %s", n->name ? n->name : "", n->op, text);
}

/* ---- roots and temporaries -----------------------------------------------------------------------------------------------------*/
static ait_status add_root(nat_bind *b, nat_root root, uint32_t *out) {
  void *roots = b->roots;
  AIT_TRY(ait_grow(b->allocator, &roots, &b->root_capacity, b->root_count + 1, sizeof *b->roots));
  b->roots = roots;
  root.first_call = NAT_NONE;
  *out = (uint32_t)b->root_count;
  b->roots[b->root_count++] = root;
  return AIT_OK;
}

static nat_root_kind own_kind(const nat_bind *b) { return b->is_static ? NAT_ROOT_STATIC : NAT_ROOT_ARENA; }

ait_status nat_const(nat_bind *b, const void *pointer, size_t bytes, uint32_t *out_root) {
  return add_root(b, (nat_root){.kind = NAT_ROOT_CONST, .pointer = pointer, .bytes = bytes}, out_root);
}

ait_status nat_temp(nat_bind *b, ait_dtype dtype, int32_t rank, const int64_t *shape, const int32_t *order, nat_view *out) {
  *out = (nat_view){.bound = true, .dtype = dtype, .rank = rank};
  size_t bytes = ait_dtype_size(dtype);
  for (int32_t d = 0; d < rank; ++d) {
    out->shape[d] = shape[d];
    if (shape[d] < 0 || ait_mul_overflows(bytes, (size_t)shape[d], &bytes) || bytes > (size_t)1 << 46) {
      return nat_error(b, AIT_CODE_LIMIT, "a value of this shape is too large");
    }
  }
  int32_t plain[AIT_MAX_RANK];
  nat_order_row_major(rank, plain);
  nat_order_strides(rank, shape, order ? order : plain, out->strides);
  return add_root(b, (nat_root){.kind = own_kind(b), .bytes = bytes, .last_step = b->step}, &out->root);
}

ait_status nat_scratch(nat_bind *b, size_t bytes, nat_view *out) {
  int64_t size = (int64_t)bytes;
  return nat_temp(b, AIT_U8, 1, &size, NULL, out);
}

void *nat_keep(nat_bind *b, size_t bytes) { return ait_arena_zero(&b->plan->memory, bytes, 64); }

/* ---- calls ---------------------------------------------------------------------------------------------------------------------*/
/* A thread is worth waking only for so much work. */
static const double TASK_NANOSECONDS = 15000;

static int32_t task_count(const nat_bind *b, const nat_work *work) {
  double most = work->nanoseconds / TASK_NANOSECONDS;
  int64_t tasks = most < (double)b->threads ? (int64_t)most : b->threads;
  if (tasks > work->units) tasks = work->units;
  return tasks < 1 ? 1 : (int32_t)tasks;
}

ait_status nat_emit(nat_bind *b, const nat_work *work, const void *args, size_t args_bytes, void *out_args) {
  int which = b->is_static;
  void *calls = b->calls[which];
  AIT_TRY(ait_grow(b->allocator, &calls, &b->call_capacity[which], b->call_count[which] + 1, sizeof(nat_call)));
  b->calls[which] = calls;
  void *copy = ait_arena_alloc(&b->plan->memory, args_bytes ? args_bytes : 1, 64);
  if (copy == NULL) return AIT_OOM();
  memcpy(copy, args, args_bytes);
  nat_call *call = &b->calls[which][b->call_count[which]++];
  *call = (nat_call){.fn = work->fn,
                     .args = copy,
                     .units = work->units,
                     .tasks = task_count(b, work),
                     .step = b->step,
                     .kernel = work->kernel,
                     .scratch_stride = ait_align_up(work->scratch, 64)};
  void **out = out_args;
  *out = copy;
  if (work->scratch == 0) return AIT_OK;
  /* The array of calls may move before the plan is done, so the scratch pointer is set when the calls are final: see plan.c. */
  nat_view scratch;
  AIT_TRY(nat_scratch(b, call->scratch_stride * (size_t)call->tasks, &scratch));
  call = &b->calls[which][b->call_count[which] - 1];
  call->scratch = (char *)(uintptr_t)(scratch.root + 1);
  nat_root *root = &b->roots[scratch.root];
  root->first_call = root->last_call = (uint32_t)b->call_count[which] - 1;
  return AIT_OK;
}

ait_status nat_pointer(nat_bind *b, void **where, const nat_view *view) {
  nat_root *root = &b->roots[view->root];
  if (root->kind == NAT_ROOT_CONST) { /* never moves */
    *where = (char *)(uintptr_t)root->pointer + view->offset;
    return AIT_OK;
  }
  if (b->is_static && root->kind != NAT_ROOT_STATIC) return nat_error(b, AIT_CODE_INTERNAL, "a static step depends on data");
  uint32_t now = (uint32_t)b->call_count[b->is_static] - 1;
  if (root->kind == NAT_ROOT_STATIC && !b->is_static) now = NAT_FOREVER;
  if (root->first_call == NAT_NONE) root->first_call = now;
  if (root->last_call < now) root->last_call = now;
  void *pending = b->pending;
  AIT_TRY(ait_grow(b->allocator, &pending, &b->pending_capacity, b->pending_count + 1, sizeof *b->pending));
  b->pending = pending;
  b->pending[b->pending_count++] = (nat_pending){where, view->root, view->offset};
  return AIT_OK;
}

/* ---- operands ------------------------------------------------------------------------------------------------------------------*/
bool nat_has_in(const nat_bind *b, const nat_step *s, uint32_t i) {
  return i < s->in_count && b->program->ids[s->in_begin + i] != NAT_NONE;
}

/* Weights get their view when they are first read. */
static ait_status view_weight(nat_bind *b, uint32_t value, uint32_t input) {
  const ait_tensor *t = &b->program->weights[input];
  nat_view *v = &b->views[value];
  *v = (nat_view){.bound = true, .dtype = t->dtype, .rank = t->rank};
  memcpy(v->shape, t->shape, sizeof v->shape);
  memcpy(v->strides, t->strides, sizeof v->strides);
  return nat_const(b, t->data, 0, &v->root);
}

ait_status nat_in(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) {
  if (!nat_has_in(b, s, i)) return nat_error(b, AIT_CODE_INVALID_MODEL, "operand %u is missing", i);
  uint32_t value = b->program->ids[s->in_begin + i];
  if (b->region->values[value].type != AIT_TYPE_TENSOR) return nat_error(b, AIT_CODE_INVALID_MODEL, "operand %u is not a tensor", i);
  nat_view *v = &b->views[value];
  uint32_t input = b->program->value_input[value];
  if (!v->bound && input != NAT_NONE && b->program->weights[input].dtype != AIT_DTYPE_NONE) AIT_TRY(view_weight(b, value, input));
  if (!v->bound) return nat_error(b, AIT_CODE_INVALID_MODEL, "operand %u is used before it is made", i);
  *out = *v;
  return AIT_OK;
}

ait_status nat_in_f32(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) {
  AIT_TRY(nat_in(b, s, i, out));
  if (out->dtype != AIT_F32) return nat_error(b, AIT_CODE_INVALID_MODEL, "operand %u is not float32", i);
  return AIT_OK;
}

bool nat_dies_here(const nat_bind *b, const nat_step *s, uint32_t i, const nat_view *view) {
  const nat_root *root = &b->roots[view->root];
  uint32_t value = b->program->ids[s->in_begin + i];
  if (root->kind != own_kind(b) || b->program->last_step[value] != b->step || root->last_step != b->step) return false;
  if (b->program->flags & NAT_EAGER) return false;
  if (root->last_call == NAT_FOREVER) return false; /* steps of runs read it, though this static one is the last in order */
  return view->offset == 0 && nat_size(view) == root->bytes;
}

/* ---- results -------------------------------------------------------------------------------------------------------------------*/
static ait_status value_shape(nat_bind *b, uint32_t value, nat_view *out) {
  const ait_region_value *v = &b->region->values[value];
  if (v->type != AIT_TYPE_TENSOR || v->rank < 0) return nat_error(b, AIT_CODE_INVALID_MODEL, "a result has no known rank");
  *out = (nat_view){.dtype = v->dtype, .rank = v->rank};
  for (int32_t d = 0; d < v->rank; ++d) {
    if (!ait_dim_eval(b->region->dims, b->plan->symbols, v->shape[d], &out->shape[d]) || out->shape[d] < 0) {
      return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "dimension %d of a result cannot be computed for these inputs", d);
    }
  }
  return AIT_OK;
}

ait_status nat_out_shape(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) {
  if (i >= s->out_count || b->program->ids[s->out_begin + i] == NAT_NONE)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "result %u is missing", i);
  return value_shape(b, b->program->ids[s->out_begin + i], out);
}

static void take_view(nat_bind *b, uint32_t value, const nat_view *view) {
  b->views[value] = *view;
  b->views[value].bound = true;
  nat_root *root = &b->roots[view->root];
  uint32_t last = b->program->last_step[value];
  if (last != NAT_NONE && root->last_step < last) root->last_step = last;
}

static bool is_permutation(const int32_t *order, int32_t rank) {
  uint32_t seen = 0;
  for (int32_t k = 0; k < rank; ++k) {
    if (order[k] < 0 || order[k] >= rank || (seen >> order[k] & 1) != 0) return false;
    seen |= 1u << order[k];
  }
  return true;
}

ait_status nat_out(nat_bind *b, const nat_step *s, uint32_t i, const int32_t *order, bool any_strides, nat_view *out) {
  nat_view v;
  AIT_TRY(nat_out_shape(b, s, i, &v));
  uint32_t value = b->program->ids[s->out_begin + i];
  const nat_view *wish = &b->placed[value];
  int32_t plain[AIT_MAX_RANK];
  if (order == NULL) {
    nat_order_row_major(v.rank, plain);
    order = plain;
  }
  if (!is_permutation(order, v.rank)) return nat_error(b, AIT_CODE_INVALID_MODEL, "result of rank %d", v.rank);
  if (wish->bound && wish->dtype == v.dtype && nat_same_shape(wish, &v) && (any_strides || nat_has_order(wish, order))) {
    *out = *wish;
  } else {
    AIT_TRY(nat_temp(b, v.dtype, v.rank, v.shape, order, out));
  }
  take_view(b, value, out);
  return AIT_OK;
}

ait_status nat_out_plain(nat_bind *b, const nat_step *s, uint32_t i, nat_view *out) { return nat_out(b, s, i, NULL, false, out); }

ait_status nat_out_view(nat_bind *b, const nat_step *s, uint32_t i, const nat_view *view) {
  nat_view v;
  AIT_TRY(nat_out_shape(b, s, i, &v));
  if (!nat_same_shape(&v, view) || v.dtype != view->dtype) {
    return nat_error(b, AIT_CODE_INVALID_MODEL, "result %u has not the shape that its operands give", i);
  }
  take_view(b, b->program->ids[s->out_begin + i], view);
  return AIT_OK;
}

/* ---- copies --------------------------------------------------------------------------------------------------------------------*/
/* Rough cost of moving bytes, in nanoseconds: 8 GB/s for what is strided, more for what is not. */
static double copy_work(const nat_view *v) { return (double)nat_size(v) * 0.125; }

static ait_status copy_same_type(nat_bind *b, const nat_view *dst, const nat_view *src) {
  ait_copy c = {.rank = dst->rank > 0 ? dst->rank : 1, .element_size = (int32_t)ait_dtype_size(dst->dtype), .shape = {1}};
  for (int32_t d = 0; d < dst->rank; ++d) {
    c.shape[d] = dst->shape[d];
    c.src_stride[d] = src->strides[d];
    c.dst_stride[d] = dst->strides[d];
  }
  ait_copy_prepare(&c);
  nat_work work = {b->kernels->copy, "copy", ait_copy_units(&c), copy_work(dst), 0};
  ait_copy *args;
  AIT_TRY(nat_emit(b, &work, &c, sizeof c, &args));
  AIT_TRY(NAT_POINTER(b, args->src, src));
  return NAT_POINTER(b, args->dst, dst);
}

ait_status nat_copy(nat_bind *b, const nat_view *dst, const nat_view *src) {
  if (!nat_same_shape(dst, src)) return nat_error(b, AIT_CODE_INVALID_MODEL, "shapes do not fit");
  if (nat_count(dst) == 0) return AIT_OK;
  if (dst->dtype != src->dtype) return nat_error(b, AIT_CODE_INVALID_MODEL, "dtypes do not fit");
  return copy_same_type(b, dst, src);
}

ait_status nat_dense(nat_bind *b, const nat_view *view, const int32_t *order, nat_view *out) {
  int32_t plain[AIT_MAX_RANK];
  nat_order_row_major(view->rank, plain);
  if (nat_has_order(view, order ? order : plain)) {
    *out = *view;
    return AIT_OK;
  }
  AIT_TRY(nat_temp(b, view->dtype, view->rank, view->shape, order, out));
  return nat_copy(b, out, view);
}

ait_status nat_rows(nat_bind *b, const nat_view *view, nat_view *out) {
  int32_t last = view->rank - 1;
  bool good = last < 0 || view->shape[last] <= 1 || view->strides[last] == 1;
  for (int32_t d = 0; good && d < last; ++d) good = view->strides[d] >= 0;
  if (!good) return nat_dense(b, view, NULL, out);
  *out = *view;
  return AIT_OK;
}

/* ---- arguments -----------------------------------------------------------------------------------------------------------------*/
static const ait_arg *argument(const nat_bind *b, const nat_step *s, uint32_t arg) {
  const ait_region_node *n = nat_node(b->program, s);
  return arg < n->arg_count ? &n->args[arg] : NULL;
}

static bool int_of(const nat_bind *b, const ait_arg *a, int64_t *out) {
  switch (a->kind) {
    case AIT_ARG_INT:
    case AIT_ARG_DTYPE: *out = a->as.i; return true;
    case AIT_ARG_BOOL: *out = a->as.b; return true;
    case AIT_ARG_DIM: return ait_dim_eval(b->region->dims, b->plan->symbols, a->as.dim, out);
    case AIT_ARG_VALUE: { /* an int input of the user, or an int computed from sizes: its expression is its shape */
      const ait_region_value *v = &b->region->values[a->as.value];
      return v->type == AIT_TYPE_INT && v->shape != NULL && ait_dim_eval(b->region->dims, b->plan->symbols, v->shape[0], out);
    }
    default: return false;
  }
}

ait_status nat_arg_int(const nat_bind *b, const nat_step *s, uint32_t arg, int64_t when_none, int64_t *out) {
  const ait_arg *a = argument(b, s, arg);
  *out = when_none;
  if (a == NULL || a->kind == AIT_ARG_NONE || int_of(b, a, out)) return AIT_OK;
  return nat_error(b, AIT_CODE_INVALID_MODEL, "argument %u is not an int", arg);
}

ait_status nat_arg_float(const nat_bind *b, const nat_step *s, uint32_t arg, double when_none, double *out) {
  const ait_arg *a = argument(b, s, arg);
  int64_t i;
  *out = when_none;
  if (a == NULL || a->kind == AIT_ARG_NONE) return AIT_OK;
  if (a->kind == AIT_ARG_FLOAT) {
    *out = a->as.f;
  } else if (int_of(b, a, &i)) {
    *out = (double)i;
  } else {
    return nat_error(b, AIT_CODE_INVALID_MODEL, "argument %u is not a number", arg);
  }
  return AIT_OK;
}

ait_status nat_arg_bool(const nat_bind *b, const nat_step *s, uint32_t arg, bool when_none, bool *out) {
  int64_t i;
  AIT_TRY(nat_arg_int(b, s, arg, when_none, &i));
  *out = i != 0;
  return AIT_OK;
}

ait_status nat_arg_ints(const nat_bind *b, const nat_step *s, uint32_t arg, int64_t out[AIT_MAX_RANK], int32_t *out_count) {
  const ait_arg *a = argument(b, s, arg);
  *out_count = 0;
  if (a == NULL || a->kind == AIT_ARG_NONE) return AIT_OK;
  if (a->kind != AIT_ARG_LIST) {
    *out_count = 1;
    return nat_arg_int(b, s, arg, 0, &out[0]);
  }
  if (a->count > AIT_MAX_RANK) return nat_error(b, AIT_CODE_INVALID_MODEL, "argument %u has too many elements", arg);
  for (uint32_t i = 0; i < a->count; ++i) {
    if (!int_of(b, &a->as.list[i], &out[i])) return nat_error(b, AIT_CODE_INVALID_MODEL, "argument %u is not a list of ints", arg);
  }
  *out_count = (int32_t)a->count;
  return AIT_OK;
}

const char *nat_arg_string(const nat_bind *b, const nat_step *s, uint32_t arg) {
  const ait_arg *a = argument(b, s, arg);
  return a != NULL && a->kind == AIT_ARG_STRING ? a->as.string : NULL;
}

ait_status nat_arg_dim(const nat_bind *b, const nat_step *s, uint32_t arg, int32_t rank, int32_t *out) {
  int64_t d;
  AIT_TRY(nat_arg_int(b, s, arg, 0, &d));
  int64_t range = rank > 0 ? rank : 1;
  if (d < -range || d >= range) return nat_error(b, AIT_CODE_INVALID_MODEL, "dimension %lld is out of range", (long long)d);
  *out = (int32_t)(d < 0 ? d + range : d);
  return AIT_OK;
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------------*/
/* A result that its consumer wanted elsewhere, and that its step could not put there, is copied. */
static ait_status finish_step(nat_bind *b, const nat_step *s) {
  for (uint32_t i = 0; i < s->out_count; ++i) {
    uint32_t value = b->program->ids[s->out_begin + i];
    if (value == NAT_NONE) continue;
    const nat_view *v = &b->views[value], *wish = &b->placed[value];
    if (!v->bound) return nat_error(b, AIT_CODE_INTERNAL, "result %u was not made", i);
    if (!wish->bound || (wish->root == v->root && wish->offset == v->offset)) continue;
    AIT_TRY(nat_copy(b, wish, v));
    take_view(b, value, wish);
  }
  return AIT_OK;
}

static ait_status prepare_steps(nat_bind *b) {
  for (b->step = 0; b->step < b->program->step_count; ++b->step) {
    const nat_step *s = &b->program->steps[b->step];
    b->now = s;
    b->is_static = (s->flags & NAT_STEP_STATIC) != 0;
    AIT_TRY(prepare_table[s->kind](b, s));
    AIT_TRY(finish_step(b, s));
  }
  b->is_static = false;
  return AIT_OK;
}

static void view_user_inputs(nat_bind *b, ait_status *status) {
  for (uint32_t i = 0; i < b->region->input_count && *status == AIT_OK; ++i) {
    const ait_region_input *in = &b->region->inputs[i];
    if (in->value == AIT_NO_INDEX || b->inputs[i].kind != AIT_VALUE_TENSOR) continue;
    const ait_tensor *t = &b->inputs[i].as.tensor;
    nat_view *v = &b->views[in->value];
    *v = (nat_view){.bound = true, .dtype = t->dtype, .rank = t->rank};
    memcpy(v->shape, t->shape, (size_t)t->rank * sizeof t->shape[0]);
    memcpy(v->strides, t->strides, (size_t)t->rank * sizeof t->strides[0]);
    *status = add_root(b, (nat_root){.kind = NAT_ROOT_INPUT, .index = i}, &v->root);
  }
}

static void release(nat_bind *b) {
  size_t values = b->region->value_count;
  ait_free(b->allocator, b->views, (values + 1) * sizeof *b->views);
  ait_free(b->allocator, b->placed, (values + 1) * sizeof *b->placed);
  ait_free(b->allocator, b->roots, b->root_capacity * sizeof *b->roots);
  for (int k = 0; k < 2; ++k) ait_free(b->allocator, b->calls[k], b->call_capacity[k] * sizeof(nat_call));
  ait_free(b->allocator, b->pending, b->pending_capacity * sizeof *b->pending);
}

ait_status nat_bind_plan(nat_bind *b) {
  ait_status status = AIT_OK;
  size_t values = b->region->value_count;
  b->views = ait_alloc_zero(b->allocator, (values + 1) * sizeof *b->views, _Alignof(nat_view));
  b->placed = ait_alloc_zero(b->allocator, (values + 1) * sizeof *b->placed, _Alignof(nat_view));
  if (b->views == NULL || b->placed == NULL) {
    status = AIT_OOM();
    goto cleanup;
  }
  view_user_inputs(b, &status);
  if (status != AIT_OK) goto cleanup;
  AIT_GOTO(nat_place_results(b));
  AIT_GOTO(prepare_steps(b));
  AIT_GOTO(nat_plan_finish(b));
cleanup:
  release(b);
  return status;
}
