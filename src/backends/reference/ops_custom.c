/* Operators of the application: arguments as include/ait/custom_op.h describes them, results by the operator's own rule.
 *
 * A node that has more results than the schema is functional: each written argument is copied, the copy is written, and is one of the
 * further results. Without them the operator writes into the arguments themselves. */
#include "custom/custom.h"

#include "backends/reference/interp.h"

enum { DEPTH_LIMIT = 8 };

/* A tensor that run gets: the argument itself or a copy of it, contiguous or of another dtype. */
typedef struct lent {
  struct lent *next;
  ait_tensor tensor;         /* holds a reference */
  const ait_tensor *written; /* where the contents go after the call; NULL: nowhere */
} lent;

typedef struct custom_run {
  ait_ref_call *call;
  const ait_custom_entry *entry;
  ait_arena scratch;
  lent *lent;
  ait_custom_call public;
  ait_custom_shape shapes[AIT_CUSTOM_RESULT_LIMIT];
  ait_value results[AIT_CUSTOM_RESULT_LIMIT];
  uint32_t copies;                            /* written arguments met so far: further results */
  ait_tensor outputs[AIT_CUSTOM_PARAM_LIMIT]; /* of functional nodes: the copies, in order */
} custom_run;

static bool is_functional(const custom_run *r) { return r->call->node->result_count > r->entry->signature.result_count; }

/* In fp64 mode floats come in double; an operator that does not take that gets what the program declares. */
static ait_dtype wanted_dtype(const custom_run *r, uint32_t value, const ait_tensor *t) {
  const ait_region *region = r->call->region;
  ait_dtype declared = value < region->value_count ? region->values[value].dtype : AIT_DTYPE_NONE;
  bool widened = r->call->fp64 && declared != AIT_DTYPE_NONE && t->dtype == ait_ref_widen(r->call, declared);
  return widened && !(r->entry->op->flags & AIT_CUSTOM_DOUBLE) ? declared : t->dtype;
}

/* ---- arguments -------------------------------------------------------------------------------------------------------------------*/
static ait_status lend(custom_run *r, uint32_t value, const ait_tensor *t, bool written, ait_custom_arg *out) {
  lent *l = AIT_ARENA_NEW(&r->scratch, lent);
  if (!l) return AIT_OOM();
  ait_dtype dtype = wanted_dtype(r, value, t);
  bool direct = dtype == t->dtype && (r->entry->op->flags & AIT_CUSTOM_STRIDED || ait_tensor_is_contiguous(t));
  if (direct && !(written && is_functional(r))) l->tensor = ait_tensor_retain(t);
  else AIT_TRY(ait_tensor_cast(r->call->allocator, t, dtype, &l->tensor));
  l->written = written && !is_functional(r) && !direct ? t : NULL;
  l->next = r->lent;
  r->lent = l;
  if (written && is_functional(r)) r->outputs[r->copies++] = l->tensor;
  *out = (ait_custom_arg){.kind = AIT_CUSTOM_TENSOR, .as.tensor = &l->tensor};
  return AIT_OK;
}

static ait_status read_arg(custom_run *r, const ait_arg *arg, bool written, int depth, ait_custom_arg *out);

static ait_status lend_list(custom_run *r, uint32_t value, const ait_ref_value *v, ait_custom_arg *out) {
  ait_custom_arg *items = AIT_ARENA_ARRAY(&r->scratch, ait_custom_arg, v->as.list.count + 1u);
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < v->as.list.count; ++i) AIT_TRY(lend(r, value, &v->as.list.items[i], false, &items[i]));
  *out = (ait_custom_arg){.kind = AIT_CUSTOM_LIST, .count = v->as.list.count, .as.list = items};
  return AIT_OK;
}

static ait_status read_value(custom_run *r, uint32_t value, bool written, ait_custom_arg *out) {
  if (value >= r->call->region->value_count) return ait_ref_error(r->call, AIT_CODE_INVALID_MODEL, "value %u is not there", value);
  const ait_ref_value *v = &r->call->run->values[value];
  switch (v->type) {
    case AIT_TYPE_TENSOR: return lend(r, value, &v->as.tensor, written, out);
    case AIT_TYPE_TENSOR_LIST: return lend_list(r, value, v, out);
    case AIT_TYPE_INT: *out = (ait_custom_arg){.kind = AIT_CUSTOM_INT, .as.i = v->as.i}; return AIT_OK;
    case AIT_TYPE_FLOAT:
      if (v->is_complex) *out = (ait_custom_arg){.kind = AIT_CUSTOM_COMPLEX, .as.pair = {v->as.c[0], v->as.c[1]}};
      else *out = (ait_custom_arg){.kind = AIT_CUSTOM_FLOAT, .as.f = v->as.f};
      return AIT_OK;
    case AIT_TYPE_BOOL: *out = (ait_custom_arg){.kind = AIT_CUSTOM_BOOL, .as.b = v->as.b}; return AIT_OK;
    case AIT_TYPE_STRING: *out = (ait_custom_arg){.kind = AIT_CUSTOM_STRING, .as.string = v->as.s}; return AIT_OK;
    default: *out = (ait_custom_arg){.kind = AIT_CUSTOM_NONE}; return AIT_OK;
  }
}

static ait_status read_list(custom_run *r, const ait_arg *arg, int depth, ait_custom_arg *out) {
  if (depth == DEPTH_LIMIT) return ait_ref_error(r->call, AIT_CODE_LIMIT, "lists nest deeper than %d", DEPTH_LIMIT);
  ait_custom_arg *items = AIT_ARENA_ARRAY(&r->scratch, ait_custom_arg, arg->count + 1u);
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(read_arg(r, &arg->as.list[i], false, depth + 1, &items[i]));
  *out = (ait_custom_arg){.kind = AIT_CUSTOM_LIST, .count = arg->count, .as.list = items};
  return AIT_OK;
}

static ait_status read_arg(custom_run *r, const ait_arg *arg, bool written, int depth, ait_custom_arg *out) {
  *out = (ait_custom_arg){.kind = AIT_CUSTOM_NONE};
  switch (arg->kind) {
    case AIT_ARG_VALUE: return read_value(r, arg->as.value, written, out);
    case AIT_ARG_LIST: return read_list(r, arg, depth, out);
    case AIT_ARG_INT: *out = (ait_custom_arg){.kind = AIT_CUSTOM_INT, .as.i = arg->as.i}; return AIT_OK;
    case AIT_ARG_FLOAT: *out = (ait_custom_arg){.kind = AIT_CUSTOM_FLOAT, .as.f = arg->as.f}; return AIT_OK;
    case AIT_ARG_BOOL: *out = (ait_custom_arg){.kind = AIT_CUSTOM_BOOL, .as.b = arg->as.b}; return AIT_OK;
    case AIT_ARG_STRING: *out = (ait_custom_arg){.kind = AIT_CUSTOM_STRING, .as.string = arg->as.string}; return AIT_OK;
    case AIT_ARG_DTYPE: *out = (ait_custom_arg){.kind = AIT_CUSTOM_DTYPE, .as.i = arg->as.i}; return AIT_OK;
    case AIT_ARG_COMPLEX:
      *out = (ait_custom_arg){.kind = AIT_CUSTOM_COMPLEX, .as.pair = {arg->as.complex[0], arg->as.complex[1]}};
      return AIT_OK;
    case AIT_ARG_DIM: {
      ait_ref_value size;
      AIT_TRY(ait_ref_arg_value(r->call, arg, &size));
      *out = (ait_custom_arg){.kind = AIT_CUSTOM_INT, .as.i = size.as.i};
      return AIT_OK;
    }
    case AIT_ARG_GRAPH: return ait_ref_error(r->call, AIT_CODE_UNSUPPORTED, "a graph as an argument of a custom operator");
    default: return AIT_OK;
  }
}

static ait_status read_args(custom_run *r) {
  const ait_region_node *n = r->call->node;
  const ait_custom_signature *s = &r->entry->signature;
  if (n->arg_count != s->param_count || (n->result_count != s->result_count && n->result_count != s->result_count + s->written_count))
    return ait_ref_error(r->call, AIT_CODE_INVALID_MODEL,
                         "%u arguments and %u results do not fit the schema of the registered operator, %s", n->arg_count, n->result_count,
                         r->entry->op->schema);
  ait_custom_arg *args = AIT_ARENA_ARRAY(&r->scratch, ait_custom_arg, n->arg_count + 1u);
  if (!args) return AIT_OOM();
  for (uint32_t i = 0; i < n->arg_count; ++i) AIT_TRY(read_arg(r, &n->args[i], s->written[i], 0, &args[i]));
  if (is_functional(r) && r->copies != s->written_count)
    return ait_ref_error(r->call, AIT_CODE_INVALID_MODEL, "an argument that the operator writes is no tensor");
  r->public = (ait_custom_call){.struct_size = sizeof r->public,
                                .op = r->entry->op->name,
                                .node = n->name ? n->name : "",
                                .module = n->module ? n->module : "",
                                .ctx = r->entry->op->ctx,
                                .arg_count = n->arg_count,
                                .result_count = s->result_count,
                                .args = args,
                                .allocator = r->call->allocator,
                                .pool = r->call->pool};
  return AIT_OK;
}

/* ---- results ---------------------------------------------------------------------------------------------------------------------*/
static ait_status make_results(custom_run *r) {
  const ait_custom_signature *s = &r->entry->signature;
  for (uint32_t k = 0; k < s->result_count; ++k) r->shapes[k].rank = -1;
  AIT_TRY(r->entry->op->infer(&r->public, r->shapes));
  for (uint32_t k = 0; k < s->result_count; ++k) {
    ait_value *v = &r->results[k];
    if (s->results[k] == AIT_TYPE_INT) v->kind = AIT_VALUE_INT;
    if (s->results[k] == AIT_TYPE_FLOAT) v->kind = AIT_VALUE_FLOAT;
    if (s->results[k] == AIT_TYPE_BOOL) v->kind = AIT_VALUE_BOOL;
    if (s->results[k] != AIT_TYPE_TENSOR) continue;
    const ait_custom_shape *shape = &r->shapes[k];
    AIT_TRY(ait_error_context(ait_tensor_create(r->call->allocator, shape->dtype, shape->rank, shape->shape, &v->as.tensor),
                              "result %u by its rule", k));
    v->kind = AIT_VALUE_TENSOR;
  }
  return AIT_OK;
}

static ait_status set_tensor(custom_run *r, uint32_t k, const ait_tensor *t) {
  ait_dtype declared = ait_ref_result_dtype(r->call, k);
  if (declared == AIT_DTYPE_NONE || declared == t->dtype) {
    ait_ref_set(r->call, k, ait_tensor_retain(t));
    return AIT_OK;
  }
  if (!r->call->fp64 || declared != ait_ref_widen(r->call, t->dtype))
    return ait_ref_error(r->call, AIT_CODE_INVALID_MODEL, "result %u is %s, the program declares %s", k, ait_dtype_name(t->dtype),
                         ait_dtype_name(declared));
  ait_tensor wide;
  AIT_TRY(ait_tensor_cast(r->call->allocator, t, declared, &wide));
  ait_ref_set(r->call, k, wide);
  return AIT_OK;
}

static ait_status take_results(custom_run *r) {
  uint32_t count = r->public.result_count;
  for (uint32_t k = 0; k < count; ++k) {
    ait_value *v = &r->results[k];
    if (v->kind == AIT_VALUE_TENSOR) AIT_TRY(set_tensor(r, k, &v->as.tensor));
    else if (v->kind == AIT_VALUE_INT) ait_ref_set_int(r->call, k, v->as.i);
    else if (v->kind == AIT_VALUE_FLOAT) ait_ref_set_float(r->call, k, v->as.f);
    else if (v->kind == AIT_VALUE_BOOL) ait_ref_set_bool(r->call, k, v->as.b);
  }
  for (uint32_t k = 0; k < r->copies; ++k) AIT_TRY(set_tensor(r, count + k, &r->outputs[k]));
  for (const lent *l = r->lent; l; l = l->next)
    if (l->written) AIT_TRY(ait_tensor_copy(l->written, &l->tensor));
  return AIT_OK;
}

static ait_status call_operator(custom_run *r) {
  AIT_TRY(read_args(r));
  ait_status status = make_results(r);
  if (status == AIT_OK) status = r->entry->op->run(&r->public, r->results);
  if (status != AIT_OK) return ait_error_context(status, "node '%s' (%s)", r->public.node, r->public.op);
  return take_results(r);
}

ait_status ait_ref_custom(ait_ref_call *call) {
  custom_run r = {.call = call, .entry = ait_custom_find(call->node->op)};
  if (!r.entry) return ait_custom_missing(call->node->name, call->node->op);
  ait_arena_init(&r.scratch, call->allocator);
  ait_status status = call_operator(&r);
  for (uint32_t k = 0; k < AIT_CUSTOM_RESULT_LIMIT; ++k) ait_value_release(&r.results[k]);
  for (lent *l = r.lent; l; l = l->next) ait_tensor_release(&l->tensor);
  ait_arena_deinit(&r.scratch);
  return status;
}

void ait_custom_parallel(const ait_custom_call *call, int32_t count, void (*fn)(void *ctx, int32_t index), void *ctx) {
  ait_pool_run(call->pool, fn, ctx, count);
}

/* Here, and not with the table, for the sake of the names that are ait's own. */
ait_status ait_custom_op_add(const ait_custom_op *op) {
  if (op && op->struct_size >= sizeof *op && op->name && ait_ref_find_own(op->name))
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is an operator of ait itself", op->name);
  return ait_custom_register(op);
}
