/* Shape and dtype inference: dispatch, building of nodes, and what the rules share. */
#include "ir/infer_internal.h"

#include <pthread.h>
#include <stdio.h>

/* ---- dispatch ------------------------------------------------------------------------------------------------------------------------*/

static const struct {
  const char *op;
  infer_rule rule;
} rules[] = {
#define AIT_RULE(op_, rule_) {op_, infer_rule_##rule_},
#include "ir/rules.inc"
#undef AIT_RULE
};

enum { MAX_PARAMS = 64, MAX_OPS = 4096 };
static infer_rule rule_of[MAX_OPS]; /* by operator id */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_table(void) {
  for (size_t i = 0; i < AIT_COUNT(rules); ++i) {
    const ait_op *op = ait_op_find(rules[i].op);
    if (op && op->id < MAX_OPS) rule_of[op->id] = rules[i].rule;
  }
}

static ait_status check_values(const infer_call *c, const ait_arg *arg, int depth) {
  if (arg->kind == AIT_ARG_VALUE && arg->as.value >= c->g->value_count) return infer_error(c, "operand does not exist");
  if (arg->kind == AIT_ARG_DIM && arg->as.dim >= c->g->root->dim_count) return infer_error(c, "size does not exist");
  if (arg->kind != AIT_ARG_LIST) return AIT_OK;
  if (depth == 0) return infer_error(c, "lists nest too deep");
  for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(check_values(c, &arg->as.list[i], depth - 1));
  return AIT_OK;
}

/* The given arguments, then defaults. */
static ait_status fill_args(const ait_op *op, const ait_arg *args, uint32_t count, ait_arg *out) {
  if (count > op->param_count || op->param_count > MAX_PARAMS)
    return ait_error(AIT_CODE_INVALID_MODEL, "%s: %u arguments, %u wanted", op->name, (unsigned)count, (unsigned)op->param_count);
  for (uint32_t i = 0; i < op->param_count; ++i) {
    const ait_param *p = &op->params[i];
    if (i >= count && !p->has_default) return ait_error(AIT_CODE_INVALID_MODEL, "%s: argument '%s' is missing", op->name, p->name);
    out[i] = i < count ? args[i] : p->default_value;
  }
  return AIT_OK;
}

ait_status ait_infer(ait_graph *g, const ait_op *op, const ait_arg *args, uint32_t arg_count, ait_value_info *out, uint32_t result_count) {
  pthread_once(&once, make_table);
  infer_rule rule = op->id < MAX_OPS ? rule_of[op->id] : NULL;
  if (!rule) return ait_error(AIT_CODE_UNSUPPORTED, "%s: no inference rule", op->name);
  if (result_count != op->result_count)
    return ait_error(AIT_CODE_INVALID_MODEL, "%s: %u results, %u wanted", op->name, (unsigned)result_count, (unsigned)op->result_count);
  ait_arg filled[MAX_PARAMS];
  AIT_TRY(fill_args(op, args, arg_count, filled));
  infer_call call = {.g = g, .op = op, .args = filled, .out = out, .result_count = result_count};
  for (uint32_t i = 0; i < op->param_count; ++i) AIT_TRY(check_values(&call, &filled[i], AIT_ARG_DEPTH_LIMIT));
  memset(out, 0, result_count * sizeof *out);
  return rule(&call);
}

ait_status ait_build(ait_graph *g, ait_node *before, const char *op_name, const char *name, uint32_t module, const ait_arg *args,
                     uint32_t arg_count, uint32_t *out_results, uint32_t result_count) {
  enum { MAX_RESULTS = 8 };
  ait_value_info infos[MAX_RESULTS];
  ait_arg filled[MAX_PARAMS];
  const ait_op *op = ait_op_find(op_name);
  if (!op || result_count > MAX_RESULTS) return ait_error(AIT_CODE_INVALID_ARGUMENT, "cannot build '%s': no such operator", op_name);
  AIT_TRY(ait_error_context(ait_infer(g, op, args, arg_count, infos, result_count), "cannot build '%s'", name));
  AIT_TRY(fill_args(op, args, arg_count, filled));
  for (uint32_t i = 0; i < result_count; ++i) AIT_TRY(ait_graph_add_value(g, name, &infos[i], &out_results[i]));
  const char *node_name = result_count ? g->values[out_results[0]].name : name;
  return ait_graph_add_node(g, before, op, NULL, 0, filled, op->param_count, out_results, result_count, node_name, module, NULL);
}

ait_status infer_error(const infer_call *c, const char *format, ...) {
  char message[256];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  return ait_error(AIT_CODE_INVALID_MODEL, "%s: %s", c->op->name, message);
}

/* ---- arguments -----------------------------------------------------------------------------------------------------------------------*/

const ait_value_info *infer_tensor_or_null(const infer_call *c, uint32_t arg) {
  const ait_arg *a = &c->args[arg];
  if (a->kind != AIT_ARG_VALUE) return NULL;
  const ait_value_info *v = &c->g->values[a->as.value];
  return v->type == AIT_TYPE_TENSOR ? v : NULL;
}

ait_status infer_tensor(const infer_call *c, uint32_t arg, const ait_value_info **out) {
  *out = infer_tensor_or_null(c, arg);
  return *out ? AIT_OK : infer_error(c, "argument '%s' is no tensor", c->op->params[arg].name);
}

static const ait_value_info *list_value(const infer_call *c, uint32_t arg) {
  const ait_arg *a = &c->args[arg];
  if (a->kind != AIT_ARG_VALUE || c->g->values[a->as.value].type != AIT_TYPE_TENSOR_LIST) return NULL;
  return &c->g->values[a->as.value];
}

uint32_t infer_list_count(const infer_call *c, uint32_t arg) {
  const ait_value_info *v = list_value(c, arg);
  if (v) return v->elements ? v->list_count : 0;
  return c->args[arg].kind == AIT_ARG_LIST ? c->args[arg].count : 0;
}

const ait_value_info *infer_list_item(const infer_call *c, uint32_t arg, uint32_t i) {
  const ait_value_info *v = list_value(c, arg);
  if (v) return &v->elements[i];
  const ait_arg *item = &c->args[arg].as.list[i];
  if (item->kind != AIT_ARG_VALUE) return NULL;
  v = &c->g->values[item->as.value];
  return v->type == AIT_TYPE_TENSOR ? v : NULL;
}

/* A number known now. */
static bool constant_int(const infer_call *c, const ait_arg *arg, int64_t *out) {
  if (arg->kind == AIT_ARG_INT) *out = arg->as.i;
  else if (arg->kind == AIT_ARG_BOOL) *out = arg->as.b;
  else if (arg->kind == AIT_ARG_DIM) return ait_dim_is_const(c->g, arg->as.dim, out);
  else if (arg->kind == AIT_ARG_VALUE) {
    const ait_value_info *v = &c->g->values[arg->as.value];
    return v->type == AIT_TYPE_INT && v->scalar != AIT_NO_INDEX && ait_dim_is_const(c->g, v->scalar, out);
  } else {
    return false;
  }
  return true;
}

ait_status infer_int(const infer_call *c, uint32_t arg, int64_t *out) {
  return constant_int(c, &c->args[arg], out) ? AIT_OK : infer_error(c, "argument '%s' is no constant int", c->op->params[arg].name);
}

bool infer_bool(const infer_call *c, uint32_t arg) {
  int64_t v;
  return constant_int(c, &c->args[arg], &v) && v != 0;
}

ait_status infer_ints(const infer_call *c, uint32_t arg, int64_t out[AIT_MAX_RANK], int32_t *out_count) {
  const ait_arg *a = &c->args[arg];
  *out_count = 0;
  if (a->kind == AIT_ARG_NONE) return AIT_OK;
  uint32_t count = a->kind == AIT_ARG_LIST ? a->count : 1;
  if (count > AIT_MAX_RANK) return infer_error(c, "argument '%s' has more than %d elements", c->op->params[arg].name, AIT_MAX_RANK);
  for (uint32_t i = 0; i < count; ++i) {
    if (!constant_int(c, a->kind == AIT_ARG_LIST ? &a->as.list[i] : a, &out[i]))
      return infer_error(c, "argument '%s' is not constant", c->op->params[arg].name);
  }
  *out_count = (int32_t)count;
  return AIT_OK;
}

ait_status infer_dim(const infer_call *c, const ait_arg *arg, ait_dim *out) {
  switch (arg->kind) {
    case AIT_ARG_INT: return ait_dim_const(c->g, arg->as.i, out);
    case AIT_ARG_BOOL: return ait_dim_const(c->g, arg->as.b, out);
    case AIT_ARG_DIM: *out = arg->as.dim; return AIT_OK;
    case AIT_ARG_VALUE: {
      const ait_value_info *v = &c->g->values[arg->as.value];
      if (v->type != AIT_TYPE_INT || v->scalar == AIT_NO_INDEX) return ait_dim_unknown(c->g, out);
      *out = v->scalar;
      return AIT_OK;
    }
    default: return infer_error(c, "a size is no int");
  }
}

ait_status infer_dims(const infer_call *c, uint32_t arg, infer_shape *out) {
  const ait_arg *a = &c->args[arg];
  uint32_t count = a->kind == AIT_ARG_LIST ? a->count : a->kind == AIT_ARG_NONE ? 0 : 1;
  if (count > AIT_MAX_RANK) return infer_error(c, "argument '%s' has more than %d elements", c->op->params[arg].name, AIT_MAX_RANK);
  out->rank = (int32_t)count;
  for (uint32_t i = 0; i < count; ++i) AIT_TRY(infer_dim(c, a->kind == AIT_ARG_LIST ? &a->as.list[i] : a, &out->dims[i]));
  return AIT_OK;
}

ait_status infer_axis(const infer_call *c, int64_t dim, int32_t rank, int32_t *out) {
  int32_t limit = rank > 0 ? rank : 1;
  if (dim < -limit || dim >= limit) return infer_error(c, "dim %lld is outside rank %d", (long long)dim, (int)rank);
  *out = (int32_t)(dim < 0 ? dim + limit : dim);
  return AIT_OK;
}

ait_status infer_axis_arg(const infer_call *c, uint32_t arg, int32_t rank, int32_t *out) {
  int64_t dim;
  AIT_TRY(infer_int(c, arg, &dim));
  return infer_axis(c, dim, rank, out);
}

/* ---- sizes ---------------------------------------------------------------------------------------------------------------------------*/

ait_status infer_make(const infer_call *c, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) {
  ait_status status = ait_dim_make(c->g, op, a, b, out);
  if (ait_status_code(status) != AIT_CODE_LIMIT) return status;
  ait_status_ignore(status);
  return ait_dim_unknown(c->g, out);
}

ait_status infer_make_const(const infer_call *c, ait_dim_op op, ait_dim a, int64_t b, ait_dim *out) {
  ait_dim constant;
  AIT_TRY(ait_dim_const(c->g, b, &constant));
  return infer_make(c, op, a, constant, out);
}

bool infer_is(const infer_call *c, ait_dim d, int64_t value) {
  int64_t v;
  return ait_dim_is_const(c->g, d, &v) && v == value;
}

bool infer_surely_differ(const infer_call *c, ait_dim a, ait_dim b) {
  ait_dim difference;
  if (a == b) return false;
  ait_status status = ait_dim_make(c->g, AIT_DIM_SUB, a, b, &difference);
  ait_status_ignore(status);
  if (status) return false;
  int64_t min, max;
  ait_dim_range(c->g, difference, &min, &max);
  return min > 0 || max < 0;
}

/* Constants are known best, then functions of the inputs' sizes. */
static int knowledge(const infer_call *c, ait_dim d) { return ait_dim_is_const(c->g, d, NULL) ? 2 : ait_dim_is_known(c->g, d) ? 1 : 0; }

ait_status infer_unify(const infer_call *c, ait_dim a, ait_dim b, const char *what, ait_dim *out) {
  *out = knowledge(c, b) > knowledge(c, a) ? b : a;
  if (!infer_surely_differ(c, a, b)) return AIT_OK;
  ait_text text;
  ait_text_init(&text, c->g->allocator);
  ait_dim_text(c->g, a, &text);
  ait_text_append(&text, " and ", 5);
  ait_dim_text(c->g, b, &text);
  ait_status status = infer_error(c, "%s differ: %s", what, text.data ? text.data : "");
  ait_text_deinit(&text);
  return status;
}

static bool may_be_one(const infer_call *c, ait_dim d) {
  int64_t min, max;
  ait_dim_range(c->g, d, &min, &max);
  return min <= 1 && max >= 1;
}

/* capped is min(size, k) with a constant k of 1 or more: what a slice up to `size` of k elements has. Where the two are not equal, size is
 * the larger one, and they can be broadcast only if k is 1: the result is `size` either way. */
static bool is_capped(const infer_call *c, ait_dim capped, ait_dim size) {
  const ait_dim_expr *e = &c->g->root->dims[capped];
  int64_t k;
  if (e->op != AIT_DIM_MIN) return false;
  return (e->a == size && ait_dim_is_const(c->g, e->b, &k) && k >= 1) || (e->b == size && ait_dim_is_const(c->g, e->a, &k) && k >= 1);
}

/* Where neither operand is known not to be 1 and they are different expressions, nothing is known of the result. */
ait_status infer_broadcast_dim(const infer_call *c, ait_dim a, ait_dim b, ait_dim *out) {
  *out = a;
  if (a == b || infer_is(c, b, 1)) return AIT_OK;
  *out = b;
  if (infer_is(c, a, 1) || is_capped(c, a, b)) return AIT_OK;
  *out = a;
  if (is_capped(c, b, a)) return AIT_OK;
  bool a_one = may_be_one(c, a), b_one = may_be_one(c, b);
  if (!a_one && !b_one) return infer_unify(c, a, b, "sizes to be broadcast", out);
  if (a_one && b_one) return ait_dim_unknown(c->g, out);
  *out = a_one ? b : a;
  return AIT_OK;
}

ait_status infer_broadcast(const infer_call *c, infer_shape *out, int32_t rank, const ait_dim *shape) {
  if (out->rank < 0 || rank < 0) {
    out->rank = -1;
    return AIT_OK;
  }
  infer_shape r = {.rank = rank > out->rank ? rank : out->rank};
  for (int32_t i = 1; i <= r.rank; ++i) { /* from the last dim */
    ait_dim *to = &r.dims[r.rank - i];
    if (i > rank) *to = out->dims[out->rank - i];
    else if (i > out->rank) *to = shape[rank - i];
    else AIT_TRY(infer_broadcast_dim(c, out->dims[out->rank - i], shape[rank - i], to));
  }
  *out = r;
  return AIT_OK;
}

void infer_get_shape(const ait_value_info *v, infer_shape *out) {
  out->rank = v->rank;
  for (int32_t d = 0; d < v->rank; ++d) out->dims[d] = v->shape[d];
}

ait_status infer_product(const infer_call *c, const ait_dim *dims, int32_t count, ait_dim *out) {
  AIT_TRY(ait_dim_const(c->g, 1, out));
  for (int32_t i = 0; i < count; ++i) AIT_TRY(infer_make(c, AIT_DIM_MUL, *out, dims[i], out));
  return AIT_OK;
}

/* ---- results -------------------------------------------------------------------------------------------------------------------------*/

ait_status infer_set(const infer_call *c, uint32_t k, ait_dtype dtype, const infer_shape *shape) {
  ait_value_info *v = &c->out[k];
  *v = (ait_value_info){.type = AIT_TYPE_TENSOR, .dtype = dtype, .rank = shape->rank, .scalar = AIT_NO_INDEX};
  if (shape->rank <= 0) return AIT_OK;
  ait_dim *dims = AIT_ARENA_ARRAY(c->g->arena, ait_dim, (size_t)shape->rank);
  if (!dims) return AIT_OOM();
  memcpy(dims, shape->dims, (size_t)shape->rank * sizeof *dims);
  v->shape = dims;
  return AIT_OK;
}

ait_status infer_set_like(const infer_call *c, uint32_t k, ait_dtype dtype, const ait_value_info *like) {
  infer_shape shape;
  infer_get_shape(like, &shape);
  return infer_set(c, k, dtype, &shape);
}

/* ---- dtypes --------------------------------------------------------------------------------------------------------------------------*/

static ait_dtype promote(ait_dtype a, ait_dtype b) {
  if (a == AIT_DTYPE_NONE) return b;
  return b == AIT_DTYPE_NONE ? a : ait_dtype_promote(a, b);
}

static ait_dtype scalar_dtype(const infer_call *c, const ait_arg *arg) {
  switch (arg->kind) {
    case AIT_ARG_INT:
    case AIT_ARG_DIM: return AIT_I64;
    case AIT_ARG_FLOAT: return AIT_F32;
    case AIT_ARG_BOOL: return AIT_BOOL;
    case AIT_ARG_COMPLEX: return AIT_C64;
    case AIT_ARG_VALUE: {
      ait_type type = c->g->values[arg->as.value].type;
      return type == AIT_TYPE_FLOAT ? AIT_F32 : type == AIT_TYPE_BOOL ? AIT_BOOL : type == AIT_TYPE_INT ? AIT_I64 : AIT_DTYPE_NONE;
    }
    default: return AIT_DTYPE_NONE;
  }
}

void infer_promote_arg(const infer_call *c, infer_promotion *p, const ait_arg *arg) {
  if (arg->kind == AIT_ARG_VALUE && c->g->values[arg->as.value].type == AIT_TYPE_TENSOR) {
    const ait_value_info *v = &c->g->values[arg->as.value];
    ait_dtype *category = v->rank == 0 ? &p->zero_dim : &p->dimensioned;
    *category = promote(*category, v->dtype);
  } else {
    p->number = promote(p->number, scalar_dtype(c, arg));
  }
}

static ait_dtype complex_of(ait_dtype dtype) { return dtype == AIT_F64 ? AIT_C128 : dtype == AIT_F16 ? AIT_C32 : AIT_C64; }

/* The lower category raises the kind (bool, int, float, complex) of the higher, never its width. */
static ait_dtype combine(ait_dtype higher, ait_dtype lower) {
  if (ait_dtype_is_complex(higher)) return higher;
  if (ait_dtype_is_float(higher)) return ait_dtype_is_complex(lower) ? complex_of(higher) : higher;
  if (higher == AIT_BOOL || ait_dtype_is_float(lower) || ait_dtype_is_complex(lower)) return promote(higher, lower);
  return higher != AIT_DTYPE_NONE ? higher : lower;
}

ait_dtype infer_promoted(const infer_promotion *p) { return combine(p->dimensioned, combine(p->zero_dim, p->number)); }

ait_dtype infer_float_dtype(ait_dtype dtype) { return ait_dtype_is_integer(dtype) ? AIT_F32 : dtype; }

ait_dtype infer_sum_dtype(ait_dtype dtype) { return ait_dtype_is_integer(dtype) ? AIT_I64 : dtype; }

ait_dtype infer_real_dtype(ait_dtype dtype) {
  switch (dtype) {
    case AIT_C32: return AIT_F16;
    case AIT_C64: return AIT_F32;
    case AIT_C128: return AIT_F64;
    default: return dtype;
  }
}
