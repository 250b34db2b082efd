/* Compiling: which nodes become which steps, and the blob. */
#include "backends/native/lower.h"

#include "backends/dims.h"
#include "backends/region_codec.h"

/* ---- operators -------------------------------------------------------------------------------------------------------------------*/
enum need {
  ANY,
  SAME,
  F32,
  NUMBERS,
  REDUCTION,
  ATTENTION,
  ROWS,
  UPSAMPLE,
  INDEX,
  GATHER,
  CUMSUM,
  TOPK,
  RECURRENT,
  FEW_BITS,
  CACHED,
  SLOTS,
  CROSSED,
  EXPERTS
};
enum { LIST = 0x80 };
#define L(n) (LIST | (n))

typedef struct op_row {
  const char *name;
  nat_kind kind;
  enum need need;
  uint8_t operand_count;
  uint8_t operands[12];
} op_row;

#define OPERANDS(...) ((const uint8_t[]){0, ##__VA_ARGS__})
static const op_row rows[] = {
#define NAT_OP(name, kind, need, ...) {name, NAT_##kind, need, sizeof OPERANDS(__VA_ARGS__) - 1, {__VA_ARGS__}},
#include "backends/native/lower.inc"
#undef NAT_OP
};

static const op_row *row_of(const char *name) {
  for (size_t i = 0; i < AIT_COUNT(rows); ++i) {
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  }
  return NULL;
}

bool nat_number(const ait_arg *a, double *out) {
  switch (a->kind) {
    case AIT_ARG_INT: *out = (double)a->as.i; return true;
    case AIT_ARG_FLOAT: *out = a->as.f; return true;
    case AIT_ARG_BOOL: *out = a->as.b; return true;
    default: return false;
  }
}

bool nat_same_dims(const ait_region *r, uint32_t a, uint32_t b) {
  const ait_region_value *x = &r->values[a], *y = &r->values[b];
  if (x->rank != y->rank || x->rank < 0) return false;
  for (int32_t d = 0; d < x->rank; ++d) {
    const ait_dim_expr *p = &r->dims[x->shape[d]], *q = &r->dims[y->shape[d]];
    bool same = x->shape[d] == y->shape[d] || (p->op == AIT_DIM_CONST && q->op == AIT_DIM_CONST && p->value == q->value);
    if (!same) return false;
  }
  return true;
}

static void each_value(const ait_arg *a, nat_value_fn fn, void *ctx, int depth) {
  if (a->kind == AIT_ARG_VALUE) fn(ctx, a->as.value);
  if (a->kind != AIT_ARG_LIST || depth == 0) return;
  for (uint32_t i = 0; i < a->count; ++i) each_value(&a->as.list[i], fn, ctx, depth - 1);
}

enum { ARG_DEPTH = 8 }; /* as the region codec */

void nat_each_value(const ait_region_node *n, nat_value_fn fn, void *ctx) {
  for (uint32_t i = 0; i < n->arg_count; ++i) each_value(&n->args[i], fn, ctx, ARG_DEPTH);
}

static bool results_are_tensors(const ait_region *r, const ait_region_node *n) {
  for (uint32_t i = 0; i < n->result_count; ++i) {
    if (n->results[i] == AIT_NO_INDEX) return false;
    const ait_region_value *v = &r->values[n->results[i]];
    if (v->type != AIT_TYPE_TENSOR || v->rank < 0) return false;
  }
  return n->result_count > 0;
}

/* Calls fn on the value of each operand in the order of the row: NAT_NONE for an optional one that is absent. */
static ait_status each_operand(const ait_region_node *n, const op_row *row, ait_status (*fn)(void *ctx, uint32_t value), void *ctx) {
  for (uint32_t i = 0; i < row->operand_count; ++i) {
    uint32_t position = row->operands[i] & (LIST - 1u);
    const ait_arg *a = position < n->arg_count ? &n->args[position] : NULL;
    if ((row->operands[i] & LIST) == 0) {
      AIT_TRY(fn(ctx, a != NULL && a->kind == AIT_ARG_VALUE ? a->as.value : NAT_NONE));
      continue;
    }
    for (uint32_t k = 0; a != NULL && a->kind == AIT_ARG_LIST && k < a->count; ++k) {
      AIT_TRY(fn(ctx, a->as.list[k].kind == AIT_ARG_VALUE ? a->as.list[k].as.value : NAT_NONE));
    }
  }
  return AIT_OK;
}

typedef struct check {
  const ait_region *region;
  ait_dtype dtype; /* AIT_DTYPE_NONE: the first one decides */
  uint32_t tensors;
  bool good;
} check;

static ait_status check_operand(void *ctx, uint32_t value) {
  check *c = ctx;
  if (value == NAT_NONE) return AIT_OK;
  const ait_region_value *v = &c->region->values[value];
  if (c->dtype == AIT_DTYPE_NONE) c->dtype = v->dtype;
  c->good = c->good && v->type == AIT_TYPE_TENSOR && v->rank >= 0 && v->dtype == c->dtype;
  c->tensors++;
  return AIT_OK;
}

static bool operands_are(const ait_region *r, const ait_region_node *n, const op_row *row, ait_dtype dtype, bool results) {
  check c = {r, dtype, 0, true};
  ait_status_ignore(each_operand(n, row, check_operand, &c));
  for (uint32_t i = 0; results && i < n->result_count; ++i) c.good = c.good && r->values[n->results[i]].dtype == c.dtype;
  return c.good;
}

static const ait_region_value *arg_value(const ait_region *r, const ait_region_node *n, uint32_t i) {
  return i < n->arg_count && nat_is_tensor(r, &n->args[i]) ? &r->values[n->args[i].as.value] : NULL;
}

static bool is_op(const ait_region_node *n, const char *name) { return strcmp(n->op, name) == 0; }
static bool is_index(const ait_region_value *v) { return v != NULL && (v->dtype == AIT_I64 || v->dtype == AIT_I32); }

static bool numbers_known(const ait_region_node *n) {
  for (uint32_t i = 0; i < n->arg_count; ++i) {
    double v;
    if (!nat_number(&n->args[i], &v) && n->args[i].kind != AIT_ARG_DIM && n->args[i].kind != AIT_ARG_DTYPE) return false;
  }
  return true;
}

static bool reduction_known(const ait_region *r, const ait_region_node *n) {
  const ait_region_value *x = arg_value(r, n, 0);
  if (x == NULL || x->dtype != AIT_F32 || x->rank < 0) return false;
  bool arg = is_op(n, "argmax") || is_op(n, "argmin");
  if (r->values[n->results[0]].dtype != (arg ? AIT_I64 : AIT_F32)) return false;
  return n->result_count == 1 || (n->result_count == 2 && r->values[n->results[1]].dtype == AIT_I64);
}

static bool attention_known(const ait_region *r, const ait_region_node *n, const op_row *row) {
  const ait_region_value *q = arg_value(r, n, 0), *mask = arg_value(r, n, 3);
  op_row products = *row;
  products.operand_count = 3;
  if (q == NULL || (q->rank != 3 && q->rank != 4) || !operands_are(r, n, &products, AIT_F32, true)) return false;
  return mask == NULL || ((mask->dtype == AIT_F32 || mask->dtype == AIT_BOOL) && mask->rank <= q->rank);
}

static bool rows_known(const ait_region *r, const ait_region_node *n) {
  bool embedding = is_op(n, "embedding");
  const ait_region_value *x = arg_value(r, n, 0), *index = arg_value(r, n, embedding ? 1 : 2);
  return x != NULL && is_index(index) && x->rank >= 1 && x->dtype == r->values[n->results[0]].dtype &&
         (embedding ? x->rank == 2 : index->rank <= 1);
}

static bool upsample_known(const ait_region *r, const ait_region_node *n) {
  const ait_region_value *x = arg_value(r, n, 0);
  if (x == NULL || x->dtype != AIT_F32 || x->rank != 4 || n->arg_count < 3 || n->args[2].kind != AIT_ARG_STRING) return false;
  return !strcmp(n->args[2].as.string, "nearest") || !strcmp(n->args[2].as.string, "linear");
}

static bool has_epilogue(nat_kind kind) {
  return kind == NAT_LINEAR || kind == NAT_WEIGHT_LINEAR || kind == NAT_MATMUL || kind == NAT_CONV || kind == NAT_CACHED_CONV1D;
}

/* The operands that a prepare function cannot do without. */
static bool has_operands(const ait_region *r, const ait_region_node *n, const op_row *row) {
  uint32_t needed = has_epilogue(row->kind) ? 2 : 1;
  if (row->operand_count == 0 || (row->operands[0] & LIST)) return true;
  for (uint32_t i = 0; i < needed; ++i) {
    if (arg_value(r, n, row->operands[i]) == NULL) return false;
  }
  return true;
}

/* Batched, and with the parameters that the kernels know: layers with a projection have one more each. */
static bool recurrent_known(const ait_region *r, const ait_region_node *n, const op_row *row) {
  uint32_t at = row->kind == NAT_LSTM ? 3 : 2; /* params, has_biases, num_layers, bidirectional */
  if (n->arg_count < at + 5 || !operands_are(r, n, row, AIT_F32, true)) return false;
  const ait_region_value *x = arg_value(r, n, 0), *h = arg_value(r, n, 1);
  const ait_arg *a = &n->args[at];
  if (x == NULL || h == NULL || x->rank != 3 || h->rank != 3 || a[0].kind != AIT_ARG_LIST || a[1].kind != AIT_ARG_BOOL ||
      a[2].kind != AIT_ARG_INT || a[3].kind != AIT_ARG_BOOL || a[2].as.i < 1 || a[2].as.i > 1024)
    return false;
  return a[0].count == a[2].as.i * (a[3].as.b ? 2 : 1) * (a[1].as.b ? 4 : 2);
}

/* Index tensors of ints; a bool one has a result whose size depends on data. */
static bool indices_known(const ait_region *r, const ait_region_node *n) {
  const ait_region_value *x = arg_value(r, n, 0);
  uint32_t tensors = 0;
  if (n->arg_count < 2 || n->args[1].kind != AIT_ARG_LIST || x->rank < 0 || n->args[1].count > (uint32_t)x->rank) return false;
  for (uint32_t i = 0; i < n->args[1].count; ++i) {
    const ait_arg *a = &n->args[1].as.list[i];
    if (a->kind == AIT_ARG_NONE) continue;
    if (!nat_is_tensor(r, a) || !is_index(&r->values[a->as.value]) || r->values[a->as.value].rank < 0) return false;
    tensors++;
  }
  return tensors > 0 && tensors <= 8 && x->dtype == r->values[n->results[0]].dtype;
}

/* Few of each line, as routers of experts and beams take them: found by insertion. */
static bool topk_known(const ait_region *r, const ait_region_node *n) {
  const ait_region_value *x = arg_value(r, n, 0);
  if (x == NULL || x->dtype != AIT_F32 || x->rank < 1 || n->result_count != 2) return false;
  if (n->arg_count < 2 || n->args[1].kind != AIT_ARG_INT || n->args[1].as.i < 1 || n->args[1].as.i > NAT_TOPK_MOST) return false;
  return r->values[n->results[0]].dtype == AIT_F32 && r->values[n->results[1]].dtype == AIT_I64;
}

static bool cumsum_known(const ait_region *r, const ait_region_node *n) {
  ait_dtype from = arg_value(r, n, 0)->dtype, to = r->values[n->results[0]].dtype;
  bool ints = ait_dtype_is_integer(from) && (to == AIT_I64 || to == AIT_I32);
  return ints || (from == AIT_F32 && to == AIT_F32);
}

/* Rows and heads in float32, int32 tables, pools of a form that the kernel knows. */
static bool cached_known(const ait_region *r, const ait_region_node *n) {
  static const struct {
    ait_dtype dtype; /* NONE: any pool */
    int32_t rank;
    bool optional;
  } want[] = {{AIT_F32, 3, false}, {AIT_F32, 3, false},        {AIT_F32, 3, false},        {AIT_I32, 2, false},
              {AIT_I32, 2, false}, {AIT_DTYPE_NONE, 4, false}, {AIT_DTYPE_NONE, 4, false}, {AIT_F32, 3, true},
              {AIT_F32, 3, true},  {AIT_F32, 1, true},         {AIT_F32, 1, true}};
  for (uint32_t i = 0; i < AIT_COUNT(want); ++i) {
    const ait_region_value *v = arg_value(r, n, i);
    if (!v && want[i].optional) continue;
    if (!v || v->rank != want[i].rank) return false;
    bool pool = v->dtype == AIT_F32 || v->dtype == AIT_BF16 || v->dtype == AIT_I8;
    if (want[i].dtype == AIT_DTYPE_NONE ? !pool : v->dtype != want[i].dtype) return false;
  }
  const ait_region_value *k = arg_value(r, n, 5), *v = arg_value(r, n, 6);
  const ait_region_value *bias = n->arg_count > 14 ? arg_value(r, n, 14) : NULL;
  bool scales = arg_value(r, n, 7) && arg_value(r, n, 8);
  if (bias && (bias->dtype != AIT_F32 || bias->rank != 2)) return false;
  return k->dtype == v->dtype && (k->dtype == AIT_I8) == scales && r->values[n->results[0]].dtype == AIT_F32;
}

/* Floats of the right ranks; their last two operands are the table of sequences and the state. */
static bool slots_known(const ait_region *r, const ait_region_node *n, const op_row *row) {
  static const int32_t ranks[2][7] = {{2, 2, 1, 2, 3}, {3, 2, 0, 3, 3, 2, 4}}; /* 0: one or two */
  const int32_t *want = ranks[row->kind == NAT_CACHED_SCAN];
  for (uint32_t i = 0; i < row->operand_count; ++i) {
    const ait_region_value *v = arg_value(r, n, i);
    if (!v && want[i] == 1) continue; /* the bias */
    if (!v || v->dtype != (i + 2 == row->operand_count ? AIT_I32 : AIT_F32)) return false;
    if (want[i] ? v->rank != want[i] : v->rank != 1 && v->rank != 2) return false;
  }
  return r->values[n->results[0]].dtype == AIT_F32;
}

static bool crossed_known(const ait_region *r, const ait_region_node *n) {
  static const struct {
    ait_dtype dtype;
    int32_t rank;
  } want[] = {{AIT_F32, 3}, {AIT_I32, 2}, {AIT_I32, 1}, {AIT_F32, 4}, {AIT_F32, 4}};
  for (uint32_t i = 0; i < AIT_COUNT(want); ++i) {
    const ait_region_value *v = arg_value(r, n, i);
    if (!v || v->rank != want[i].rank || v->dtype != want[i].dtype) return false;
  }
  return r->values[n->results[0]].dtype == AIT_F32;
}

static bool is_weight(const ait_region *r, const ait_arg *a) {
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (a->kind == AIT_ARG_VALUE && in->value == a->as.value) return in->kind != AIT_INPUT_USER && in->name != NULL && !in->mutated;
  }
  return false;
}

static bool experts_known(const ait_region *r, const ait_region_node *n) {
  const ait_region_value *x = arg_value(r, n, 0), *w = arg_value(r, n, 1), *e = arg_value(r, n, 2);
  int64_t group = n->arg_count > 4 && n->args[4].kind == AIT_ARG_INT ? n->args[4].as.i : 0;
  if (!x || !w || !e || x->dtype != AIT_F32 || x->rank != 2 || w->rank != 3 || e->rank != 1 || !is_index(e)) return false;
  if (w->dtype == AIT_F32 || w->dtype == AIT_BF16) return true;
  return (w->dtype == AIT_I8 || w->dtype == AIT_U8) && group > 0 && group % AIT_QUANT_GROUP == 0 && is_weight(r, &n->args[1]) &&
         is_weight(r, &n->args[3]);
}

/* Floats times a weight that is packed when compiling, in groups that the kernel knows. */
static bool few_bits_known(const ait_region *r, const ait_region_node *n) {
  const ait_region_value *x = arg_value(r, n, 0), *w = arg_value(r, n, 1), *bias = arg_value(r, n, 3);
  int64_t group = n->arg_count > 4 && n->args[4].kind == AIT_ARG_INT ? n->args[4].as.i : 0;
  if (x->dtype != AIT_F32 || r->values[n->results[0]].dtype != AIT_F32 || x->rank < 1 || (bias && bias->dtype != AIT_F32)) return false;
  if (!is_weight(r, &n->args[1]) || (w->dtype != AIT_BF16 && !is_weight(r, &n->args[2]))) return false;
  return w->dtype == AIT_BF16 || ((w->dtype == AIT_I8 || w->dtype == AIT_U8) && group > 0 && group % AIT_QUANT_GROUP == 0);
}

static bool need_met(const ait_region *r, const ait_region_node *n, const op_row *row) {
  if (!results_are_tensors(r, n) || !has_operands(r, n, row)) return false;
  switch (row->need) {
    case ANY: return true;
    case SAME: return operands_are(r, n, row, AIT_DTYPE_NONE, true);
    case F32: return operands_are(r, n, row, AIT_F32, true);
    case NUMBERS: return numbers_known(n);
    case REDUCTION: return reduction_known(r, n);
    case ATTENTION: return attention_known(r, n, row);
    case ROWS: return rows_known(r, n);
    case UPSAMPLE: return upsample_known(r, n);
    case INDEX: return indices_known(r, n);
    case GATHER:
      return is_index(arg_value(r, n, 2)) && arg_value(r, n, 0)->rank > 0 && arg_value(r, n, 0)->dtype == r->values[n->results[0]].dtype;
    case CUMSUM: return cumsum_known(r, n);
    case TOPK: return topk_known(r, n);
    case RECURRENT: return recurrent_known(r, n, row);
    case FEW_BITS: return few_bits_known(r, n);
    case CACHED: return cached_known(r, n);
    case SLOTS: return slots_known(r, n, row);
    case CROSSED: return crossed_known(r, n);
    case EXPERTS: return experts_known(r, n);
  }
  return false;
}

typedef struct scalar_check {
  const ait_region *region;
  bool good;
} scalar_check;

static void check_scalar(void *ctx, uint32_t value) {
  scalar_check *c = ctx;
  c->good = c->good && nat_is_sized(c->region, value);
}

/* Numbers that are computed when the region runs are known to the portable path only. */
static bool scalars_known(const ait_region *r, const ait_region_node *n) {
  scalar_check c = {r, true};
  nat_each_value(n, check_scalar, &c);
  return c.good;
}

static const op_row *kernel_row(const ait_region *r, const ait_region_node *n) {
  const op_row *row = (n->flags & AIT_NODE_INPLACE) || !scalars_known(r, n) ? NULL : row_of(n->op);
  return row != NULL && need_met(r, n, row) ? row : NULL;
}

bool nat_is_sized(const ait_region *r, uint32_t value) {
  const ait_region_value *v = &r->values[value];
  return v->type == AIT_TYPE_TENSOR || (v->type == AIT_TYPE_INT && v->shape != NULL && ait_dims_backed(r, v->shape[0]));
}

bool nat_gives_sizes(const ait_region *r, const ait_region_node *n) {
  for (uint32_t i = 0; i < n->result_count; ++i) {
    if (n->results[i] != AIT_NO_INDEX && (r->values[n->results[i]].type != AIT_TYPE_INT || !nat_is_sized(r, n->results[i]))) return false;
  }
  return n->result_count > 0;
}

bool nat_has_kernel(const ait_region *r, const ait_region_node *n) {
  return kernel_row(r, n) != NULL || (results_are_tensors(r, n) && nat_ew_class(r, n) != NAT_CLASS_NONE);
}

/* ---- uses ------------------------------------------------------------------------------------------------------------------------*/
typedef struct use_context {
  nat_lower *l;
  uint32_t node;
  bool all_static;
} use_context;

static void count_use(void *ctx, uint32_t value) {
  use_context *c = ctx;
  c->l->uses[value]++;
  c->l->last_user[value] = c->node;
  if (!nat_is_sized(c->l->region, value)) c->all_static = false;
  if (nat_value(c->l, value)->type == AIT_TYPE_TENSOR) c->all_static = c->all_static && c->l->is_static[value];
}

/* Only core operators (no namespace in the name) are known to be pure and to draw no random numbers. */
static bool may_be_static(const ait_region_node *n) {
  if (strchr(n->op, '.') != NULL || (n->flags & AIT_NODE_INPLACE)) return false;
  for (uint32_t i = 0; i < n->arg_count; ++i) {
    if (n->args[i].kind == AIT_ARG_GRAPH) return false;
  }
  return n->result_count > 0;
}

static bool is_state(const ait_region *r, const ait_region_input *in) {
  if (in->mutated) return true;
  for (uint32_t i = 0; i < r->output_count; ++i) {
    const ait_region_output *o = &r->outputs[i];
    if (o->kind == AIT_OUTPUT_STATE && o->name != NULL && in->name != NULL && strcmp(o->name, in->name) == 0) return true;
  }
  return false;
}

static ait_status analyse(nat_lower *l) {
  const ait_region *r = l->region;
  size_t values = (size_t)r->value_count + 1, nodes = (size_t)r->node_count + 1;
  l->uses = AIT_ARENA_ARRAY(&l->arena, uint32_t, values);
  l->def_node = AIT_ARENA_ARRAY(&l->arena, uint32_t, values);
  l->last_user = AIT_ARENA_ARRAY(&l->arena, uint32_t, values);
  l->input_of = AIT_ARENA_ARRAY(&l->arena, uint32_t, values);
  l->is_static = AIT_ARENA_ARRAY(&l->arena, bool, values);
  l->owner = AIT_ARENA_ARRAY(&l->arena, uint32_t, nodes);
  l->groups = AIT_ARENA_ARRAY(&l->arena, nat_group *, nodes);
  l->epilogues = AIT_ARENA_ARRAY(&l->arena, nat_epilogue_plan, nodes);
  l->rotaries = AIT_ARENA_ARRAY(&l->arena, nat_rotary, nodes);
  if (!l->uses || !l->def_node || !l->last_user || !l->input_of || !l->is_static || !l->owner || !l->groups || !l->epilogues ||
      !l->rotaries)
    return AIT_OOM();
  memset(l->def_node, 0xff, values * sizeof *l->def_node);
  memset(l->input_of, 0xff, values * sizeof *l->input_of);
  memset(l->rotaries, 0xff, nodes * sizeof *l->rotaries);
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->value == AIT_NO_INDEX) continue;
    l->input_of[in->value] = i;
    l->is_static[in->value] = in->kind != AIT_INPUT_USER && in->kind != AIT_INPUT_TOKEN && !is_state(r, in);
  }
  for (uint32_t i = 0; i < r->node_count; ++i) {
    const ait_region_node *n = &r->nodes[i];
    l->owner[i] = i;
    use_context c = {l, i, true};
    nat_each_value(n, count_use, &c);
    for (uint32_t k = 0; k < n->result_count; ++k) {
      if (n->results[k] == AIT_NO_INDEX) continue;
      l->def_node[n->results[k]] = i;
      l->is_static[n->results[k]] = c.all_static && may_be_static(n) && nat_value(l, n->results[k])->type == AIT_TYPE_TENSOR;
    }
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    use_context c = {l, NAT_NONE, true};
    each_value(&r->outputs[i].arg, count_use, &c, ARG_DEPTH);
  }
  return AIT_OK;
}

/* ---- epilogues -------------------------------------------------------------------------------------------------------------------*/

/* A vector added to the columns of a product: the weight of an nn.Linear that was exported as matmul + add. */
static bool is_column_bias(const nat_lower *l, uint32_t product, uint32_t value) {
  const ait_region_value *p = nat_value(l, product), *v = nat_value(l, value);
  const ait_dim_expr *dims = l->region->dims;
  if (v->type != AIT_TYPE_TENSOR || v->dtype != AIT_F32 || v->rank != 1 || p->rank < 2) return false;
  const ait_dim_expr *a = &dims[v->shape[0]], *b = &dims[p->shape[p->rank - 1]];
  return a->op == AIT_DIM_CONST && b->op == AIT_DIM_CONST && a->value == b->value;
}

/* Tries to take node u, the only user of `result`, into the step's epilogue. */
static bool extend_epilogue(const nat_lower *l, nat_epilogue_plan *e, nat_kind kind, bool has_bias, uint32_t result, uint32_t u) {
  const ait_region_node *n = &l->region->nodes[u];
  if (nat_value(l, n->results[0])->dtype != AIT_F32 || e->residual_after == NAT_RESIDUAL_TIMES) return false;
  if (!nat_same_dims(l->region, result, n->results[0])) return false;
  bool add = is_op(n, "add"), times = is_op(n, "mul");
  if ((add || times) && nat_is_tensor(l->region, &n->args[0]) && nat_is_tensor(l->region, &n->args[1])) {
    uint32_t other = n->args[0].as.value == result ? n->args[1].as.value : n->args[0].as.value;
    if (other == result || kind == NAT_CACHED_CONV1D) return false;
    if (add && kind != NAT_CONV && !has_bias && e->bias == NAT_NONE && e->act == AIT_ACT_NONE && e->residual == NAT_NONE &&
        is_column_bias(l, result, other)) {
      e->bias = other;
      return true;
    }
    if (e->residual != NAT_NONE || nat_value(l, other)->dtype != AIT_F32 || !nat_same_dims(l->region, result, other)) return false;
    e->residual = other;
    e->residual_after = times ? NAT_RESIDUAL_TIMES : e->act != AIT_ACT_NONE ? NAT_RESIDUAL_AFTER : NAT_RESIDUAL_BEFORE;
    return true;
  }
  if (e->act != AIT_ACT_NONE || n->args[0].kind != AIT_ARG_VALUE || n->args[0].as.value != result) return false;
  ait_act act;
  float p, q;
  if (!nat_ew_act(l->region, n, &act, &p, &q)) return false;
  e->act = act;
  e->p = p;
  e->q = q;
  return true;
}

static void plan_epilogue(nat_lower *l, uint32_t node, nat_kind kind) {
  const ait_region_node *n = &l->region->nodes[node];
  nat_epilogue_plan *e = &l->epilogues[node];
  *e = (nat_epilogue_plan){.bias = NAT_NONE, .residual = NAT_NONE, .last = node};
  uint32_t result = n->results[0];
  /* A vector for a matrix: the last dim of the result is then not the columns. */
  if (!l->fuse || nat_value(l, n->args[1].as.value)->rank < 2 || nat_value(l, n->args[0].as.value)->rank < 2) return;
  uint32_t bias = kind == NAT_WEIGHT_LINEAR ? 3 : 2;
  bool has_bias = kind != NAT_MATMUL && n->arg_count > bias && n->args[bias].kind == AIT_ARG_VALUE;
  while (l->uses[result] == 1 && l->last_user[result] != NAT_NONE) {
    uint32_t u = l->last_user[result];
    const ait_region_node *user = &l->region->nodes[u];
    if (l->owner[u] != u || user->result_count != 1 || user->results[0] == AIT_NO_INDEX) return;
    if (l->is_static[result] != l->is_static[user->results[0]]) return;
    if (!extend_epilogue(l, e, kind, has_bias, result, u)) return;
    l->owner[u] = node;
    e->last = u;
    result = user->results[0];
  }
}

/* ---- steps -----------------------------------------------------------------------------------------------------------------------*/
static ait_status push(nat_lower *l, void **data, size_t *count, size_t *capacity, const void *item, size_t size) {
  AIT_TRY(ait_grow(l->allocator, data, capacity, *count + 1, size));
  memcpy((char *)*data + *count * size, item, size);
  ++*count;
  return AIT_OK;
}
#define PUSH(l, field, count, capacity, item) push((l), (void **)(void *)&(l)->field, &(l)->count, &(l)->capacity, (item), sizeof *(item))

static ait_status push_id(void *ctx, uint32_t value) {
  nat_lower *l = ctx;
  return PUSH(l, ids, id_count, id_capacity, &value);
}

typedef struct push_context {
  nat_lower *l;
  ait_status status;
} push_context;

static void push_each(void *ctx, uint32_t value) {
  push_context *c = ctx;
  ait_type type = nat_value(c->l, value)->type;
  if (c->status == AIT_OK && (type == AIT_TYPE_TENSOR || type == AIT_TYPE_TENSOR_LIST)) c->status = push_id(c->l, value);
}

static ait_status finish_step(nat_lower *l, nat_step *s, const ait_region_node *results_of) {
  s->in_count = (uint32_t)l->id_count - s->in_begin;
  s->out_begin = (uint32_t)l->id_count;
  for (uint32_t i = 0; i < results_of->result_count; ++i) {
    uint32_t v = results_of->results[i];
    bool wanted = v != AIT_NO_INDEX && (s->kind != NAT_PORTABLE || l->uses[v] > 0);
    AIT_TRY(push_id(l, wanted ? v : NAT_NONE));
    if (v != AIT_NO_INDEX && l->is_static[v]) s->flags |= NAT_STEP_STATIC;
  }
  s->out_count = results_of->result_count;
  s->pack_count = (uint32_t)l->pack_count - s->pack_begin;
  s->code_count = (uint32_t)l->code_count - s->code_begin;
  return PUSH(l, steps, step_count, step_capacity, s);
}

static nat_step new_step(const nat_lower *l, nat_kind kind, uint32_t node) {
  return (nat_step){.kind = kind,
                    .node = node,
                    .in_begin = (uint32_t)l->id_count,
                    .pack_begin = (uint32_t)l->pack_count,
                    .code_begin = (uint32_t)l->code_count};
}

static ait_status portable_step(nat_lower *l, uint32_t node) {
  nat_step s = new_step(l, NAT_PORTABLE, node);
  push_context c = {l, AIT_OK};
  nat_each_value(&l->region->nodes[node], push_each, &c);
  AIT_TRY(c.status);
  return finish_step(l, &s, &l->region->nodes[node]);
}

/* Registers of a group are dense only now. */
static ait_status group_step(nat_lower *l, uint32_t node) {
  const nat_group *g = l->groups[node];
  nat_step s = new_step(l, g->class == NAT_CLASS_FLOAT ? NAT_EW : NAT_EW_INT, node);
  for (uint32_t i = 0; i < g->input_count; ++i) AIT_TRY(push_id(l, g->inputs[i]));
  for (uint32_t i = 0; i < g->code_count; ++i) {
    nat_code code = g->codes[i];
    uint32_t *regs[] = {&code.a, &code.b, &code.c};
    for (int k = 0; k < 3; ++k) {
      if (*regs[k] >= NAT_GROUP_INPUTS) *regs[k] = *regs[k] - NAT_GROUP_INPUTS + g->input_count;
    }
    AIT_TRY(PUSH(l, codes, code_count, code_capacity, &code));
  }
  return finish_step(l, &s, &l->region->nodes[node]);
}

/* Products and convolutions: x, weight, bias, residual. The step is named after the operator, not after the last node of its epilogue. */
static ait_status product_step(nat_lower *l, uint32_t node, const op_row *row) {
  const ait_region_node *n = &l->region->nodes[node];
  const nat_epilogue_plan *e = &l->epilogues[node];
  nat_step s = new_step(l, row->kind, node);
  AIT_TRY(each_operand(n, row, push_id, l));
  if (row->kind == NAT_MATMUL) AIT_TRY(push_id(l, NAT_NONE));
  if (e->bias != NAT_NONE) l->ids[l->id_count - 1] = e->bias;
  AIT_TRY(push_id(l, e->residual));
  s.act = e->act;
  s.p = e->p;
  s.q = e->q;
  s.residual_after = e->residual_after;
  if (row->kind == NAT_CONV && nat_takes_winograd(l, n)) s.flags |= NAT_STEP_WINOGRAD;
  if (l->pack || row->kind == NAT_WEIGHT_LINEAR) AIT_TRY(nat_pack_node(l, n, row->kind));
  return finish_step(l, &s, &l->region->nodes[e->last]);
}

static ait_status plain_step(nat_lower *l, uint32_t node, const op_row *row) {
  const ait_region_node *n = &l->region->nodes[node];
  nat_step s = new_step(l, row->kind, node);
  AIT_TRY(each_operand(n, row, push_id, l));
  if (l->pack || (row->kind == NAT_EXPERT_LINEAR && nat_value(l, n->args[1].as.value)->dtype != AIT_F32))
    AIT_TRY(nat_pack_node(l, n, row->kind));
  return finish_step(l, &s, n);
}

static ait_status rotary_step(nat_lower *l, uint32_t node) {
  const nat_rotary *r = &l->rotaries[node];
  nat_step s = new_step(l, NAT_ROTARY, node);
  AIT_TRY(push_id(l, r->x));
  AIT_TRY(push_id(l, r->cos));
  AIT_TRY(push_id(l, r->sin));
  return finish_step(l, &s, &l->region->nodes[node]);
}

/* First products take what follows them, then rotary embeddings are found, then the element-wise operators that are left form groups. A
 * step runs where its last node stood, so all its operands are made before. */
static ait_status group_nodes(nat_lower *l) {
  const ait_region *r = l->region;
  for (uint32_t i = 0; i < r->node_count; ++i) {
    const op_row *row = kernel_row(r, &r->nodes[i]);
    l->epilogues[i].last = i;
    if (row != NULL && has_epilogue(row->kind)) plan_epilogue(l, i, row->kind);
  }
  for (uint32_t i = 0; l->fuse && i < r->node_count; ++i) (void)nat_take_rotary(l, i);
  for (uint32_t i = 0; i < r->node_count; ++i) {
    const ait_region_node *n = &r->nodes[i];
    bool alone = l->owner[i] == i && l->rotaries[i].x == NAT_NONE && kernel_row(r, n) == NULL && (n->flags & AIT_NODE_INPLACE) == 0;
    if (alone && nat_ew_class(r, n) != NAT_CLASS_NONE) AIT_TRY(nat_ew_group(l, i));
  }
  return AIT_OK;
}

static ait_status emit_node(nat_lower *l, uint32_t i) {
  const ait_region_node *n = &l->region->nodes[i];
  const op_row *row = kernel_row(l->region, n);
  if (l->groups[i] != NULL) return group_step(l, i);
  if (l->rotaries[i].x != NAT_NONE) return rotary_step(l, i);
  if (nat_gives_sizes(l->region, n)) return AIT_OK;
  if (row == NULL) return portable_step(l, i);
  return has_epilogue(row->kind) ? product_step(l, i, row) : plain_step(l, i, row);
}

static ait_status emit_nodes(nat_lower *l) {
  for (uint32_t i = 0; i < l->region->node_count; ++i) {
    uint32_t owner = l->owner[i];
    if (owner == i && l->epilogues[i].last == i) {
      AIT_TRY(emit_node(l, i));
    } else if (owner != i && l->epilogues[owner].last == i) {
      AIT_TRY(emit_node(l, owner));
    }
  }
  return AIT_OK;
}

/* ---- blob ------------------------------------------------------------------------------------------------------------------------*/
typedef struct layout {
  nat_header header;
  size_t size;
} layout;

static uint64_t section(layout *o, size_t bytes, size_t align) {
  size_t at = ait_align_up(o->size, align);
  o->size = at + bytes;
  return at;
}

static layout lay_out(const nat_lower *l, size_t region_size) {
  layout o = {.header = {.version = NAT_VERSION, .flags = l->flags}, .size = sizeof(nat_header)};
  nat_header *h = &o.header;
  memcpy(h->magic, NAT_MAGIC, sizeof h->magic);
  h->step_count = (uint32_t)l->step_count;
  h->id_count = (uint32_t)l->id_count;
  h->pack_count = (uint32_t)l->pack_count;
  h->code_count = (uint32_t)l->code_count;
  h->region_size = region_size;
  h->region_offset = section(&o, region_size, 8);
  h->steps_offset = section(&o, l->step_count * sizeof(nat_step), 8);
  h->ids_offset = section(&o, l->id_count * sizeof(uint32_t), 8);
  h->packs_offset = section(&o, l->pack_count * sizeof(nat_pack), 8);
  h->codes_offset = section(&o, l->code_count * sizeof(nat_code), 8);
  for (size_t i = 0; i < l->pack_count; ++i) {
    nat_pack *p = &l->packs[i];
    uint32_t same = p->same_as;
    p->offset = same ? l->packs[same - 1].offset : h->data_size;
    p->same_as = 0;
    if (!same) h->data_size = ait_align_up(h->data_size + p->size, 64);
  }
  h->data_offset = section(&o, h->data_size, 64);
  return o;
}

static void put(char *base, uint64_t offset, const void *data, size_t bytes) {
  if (bytes > 0) memcpy(base + offset, data, bytes);
}

static ait_status write_blob(nat_lower *l, ait_blob *out) {
  ait_text region;
  ait_text_init(&region, l->allocator);
  ait_status status = ait_region_encode(l->region, &region);
  if (status == AIT_OK && region.failed) status = AIT_OOM();
  if (status != AIT_OK) {
    ait_text_deinit(&region);
    return status;
  }
  layout o = lay_out(l, region.length);
  char *blob = ait_alloc_zero(l->options->allocator, o.size, 64);
  if (blob == NULL) {
    ait_text_deinit(&region);
    return AIT_OOM();
  }
  put(blob, 0, &o.header, sizeof o.header);
  put(blob, o.header.region_offset, region.data, region.length);
  put(blob, o.header.steps_offset, l->steps, l->step_count * sizeof *l->steps);
  put(blob, o.header.ids_offset, l->ids, l->id_count * sizeof *l->ids);
  put(blob, o.header.packs_offset, l->packs, l->pack_count * sizeof *l->packs);
  put(blob, o.header.codes_offset, l->codes, l->code_count * sizeof *l->codes);
  ait_text_deinit(&region);
  const ait_kernels *k = ait_kernels_for(ait_cpu_features() & l->options->cpu_mask);
  for (size_t i = 0; i < l->job_count; ++i) {
    const nat_pack *p = &l->packs[l->jobs[i].pack];
    nat_pack_fill(k, p, &l->jobs[i].tensor, blob + o.header.data_offset + p->offset);
  }
  *out = (ait_blob){.data = blob, .size = o.size};
  return AIT_OK;
}

static void release(nat_lower *l) {
  ait_arena_deinit(&l->arena);
  ait_free(l->allocator, l->steps, l->step_capacity * sizeof *l->steps);
  ait_free(l->allocator, l->ids, l->id_capacity * sizeof *l->ids);
  ait_free(l->allocator, l->packs, l->pack_capacity * sizeof *l->packs);
  ait_free(l->allocator, l->codes, l->code_capacity * sizeof *l->codes);
  ait_free(l->allocator, l->jobs, l->job_capacity * sizeof *l->jobs);
}

ait_status nat_compile(const ait_region *region, const ait_compile_options *options, const nat_choices *choices, ait_blob *out) {
  nat_lower l = {.region = region,
                 .options = options,
                 .allocator = options->allocator,
                 .flags = choices->flags,
                 .fuse = choices->fuse,
                 .pack = choices->pack,
                 .winograd = choices->winograd};
  ait_arena_init(&l.arena, l.allocator);
  ait_status status = analyse(&l);
  if (status == AIT_OK) status = group_nodes(&l);
  if (status == AIT_OK) status = emit_nodes(&l);
  if (status == AIT_OK) status = write_blob(&l, out);
  release(&l);
  return status;
}
