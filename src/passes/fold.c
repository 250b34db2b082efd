/* What depends on constants only is computed now, by the reference interpreter, and becomes a new constant named "folded.<hash>". Such
 * a weight belongs to the plan, not to the user's file; the tuner seals those that a plan asks for when it is loaded. */
#include "backends/reference/reference.h"
#include "passes/rewrite.h"

/* A folded value may take this much more than what it is made from: masks and position tables are small; broadcasts are not kept. */
enum { GROWTH_LIMIT = 1 << 20 };

typedef struct folder {
  ait_graph *g;
  ait_allocator a;
  ait_region *region;
  ait_ref_value *values; /* by value id: computed or constant */
  bool *known;
  size_t count;
} folder;

/* Its results were computed. */
static bool folded(const folder *f, const ait_node *n) {
  return n->result_count && n->results[0] != AIT_NO_INDEX && n->results[0] < f->count && f->known[n->results[0]];
}

typedef struct operands {
  folder *f;
  bool all_known;
  uint64_t bytes;
} operands;

static ait_status load_constant(folder *f, uint32_t v) {
  ait_tensor t;
  if (f->known[v] || !ait_constant_tensor(f->g, v, &t)) return AIT_OK;
  f->values[v].type = AIT_TYPE_TENSOR;
  f->values[v].as.tensor = ait_tensor_retain(&t);
  f->known[v] = true;
  return AIT_OK;
}

static void look_at(void *ctx, uint32_t v) {
  operands *o = ctx;
  ait_status_ignore(load_constant(o->f, v));
  if (!o->f->known[v]) o->all_known = false;
  else if (o->f->values[v].type == AIT_TYPE_TENSOR) o->bytes += ait_tensor_bytes(&o->f->values[v].as.tensor);
}

static bool has_symbols(const ait_graph *g, const ait_arg *a) {
  int64_t v;
  if (a->kind == AIT_ARG_DIM) return !ait_dim_is_const(g, a->as.dim, &v);
  if (a->kind == AIT_ARG_LIST)
    for (uint32_t i = 0; i < a->count; ++i)
      if (has_symbols(g, &a->as.list[i])) return true;
  return false;
}

static bool static_bytes(const ait_graph *g, uint32_t v, uint64_t *bytes) {
  const ait_value_info *info = &g->values[v];
  uint64_t n = ait_dtype_size(info->dtype);
  if (info->type != AIT_TYPE_TENSOR || info->rank < 0 || info->rank > AIT_MAX_RANK) return false;
  for (int32_t d = 0; d < info->rank; ++d) {
    int64_t size;
    if (!ait_dim_is_const(g, info->shape[d], &size) || size < 0 || ait_mul_overflows(n, (uint64_t)size, &n)) return false;
  }
  *bytes += n;
  return true;
}

static bool foldable(folder *f, const ait_node *n) {
  uint64_t bytes = 0;
  operands o = {.f = f, .all_known = true};
  if ((n->flags & AIT_NODE_INPLACE) || n->op->variadic || n->result_count == 0 || !ait_ref_find(n->op->name)) return false;
  if (n->op->traits & (AIT_OP_RANDOM | AIT_OP_EFFECT | AIT_OP_MUTATES | AIT_OP_HIGHER | AIT_OP_DYNAMIC | AIT_OP_UNINIT | AIT_OP_SYMBOLIC))
    return false;
  for (uint32_t i = 0; i < n->arg_count; ++i)
    if (has_symbols(f->g, &n->args[i])) return false;
  for (uint32_t i = 0; i < n->result_count; ++i)
    if (n->results[i] == AIT_NO_INDEX || !static_bytes(f->g, n->results[i], &bytes)) return false;
  ait_node_each_operand(n, look_at, &o);
  return o.all_known && bytes <= 2 * o.bytes + GROWTH_LIMIT;
}

static ait_status compute(folder *f, const ait_node *n, const ait_region_node *node) {
  ait_ref_value results[8] = {0};
  if (n->result_count > AIT_COUNT(results)) return AIT_OK;
  ait_status status = ait_ref_run_node(f->region, node, f->a, NULL, false, NULL, f->values, results);
  if (status != AIT_OK) { /* say, an index out of range: an error for the run, not for the pass */
    ait_status_ignore(status);
    return AIT_OK;
  }
  for (uint32_t i = 0; i < n->result_count; ++i) {
    f->values[n->results[i]] = results[i];
    f->known[n->results[i]] = true;
  }
  return AIT_OK;
}

/* A computed tensor as a weight and an input of the graph. */
static ait_status as_constant(folder *f, uint32_t v, uint32_t *out) {
  ait_tensor copy;
  AIT_TRY(ait_tensor_cast(f->a, &f->values[v].as.tensor, f->values[v].as.tensor.dtype, &copy));
  ait_status status = ait_constant_new(f->g, &copy, out);
  ait_tensor_release(&copy);
  return status;
}

typedef struct reads {
  uint32_t *uses;
} reads;
static void unread(void *ctx, uint32_t v) { --((reads *)ctx)->uses[v]; }

/* Values that something not folded reads become constants; what computed them goes. */
static ait_status replace_frontier(folder *f, bool *changed) {
  reads r;
  AIT_TRY(ait_graph_count_uses(f->g, f->a, &r.uses));
  size_t use_count = f->g->value_count;
  for (ait_node *n = f->g->first; n; n = n->next)
    if (folded(f, n)) ait_node_each_operand(n, unread, &r);
  ait_status status = AIT_OK;
  for (ait_node *n = f->g->first; n && status == AIT_OK; n = n->next)
    for (uint32_t i = 0; folded(f, n) && i < n->result_count && status == AIT_OK; ++i) {
      uint32_t fresh;
      if (!r.uses[n->results[i]] || f->values[n->results[i]].type != AIT_TYPE_TENSOR) continue;
      status = as_constant(f, n->results[i], &fresh);
      if (status == AIT_OK) ait_graph_replace_uses(f->g, n->results[i], fresh);
    }
  for (ait_node *n = f->g->last, *prev; n && status == AIT_OK; n = prev) {
    prev = n->prev;
    if (!folded(f, n)) continue;
    ait_graph_remove_node(f->g, n);
    *changed = true;
  }
  ait_free(f->a, r.uses, use_count * sizeof *r.uses);
  return status;
}

static ait_status fold_all(folder *f, bool *changed) {
  uint32_t i = 0; /* nodes of the region are in the graph's order */
  for (ait_node *n = f->g->first; n; n = n->next, ++i)
    if (foldable(f, n)) AIT_TRY(compute(f, n, &f->region->nodes[i]));
  return replace_frontier(f, changed);
}

ait_status ait_pass_fold(ait_graph *g, const ait_pass_context *context, bool *changed) {
  if (g->dialect != AIT_DIALECT_CORE || !g->weights) return AIT_OK;
  folder f = {.g = g, .a = context->allocator, .count = g->value_count};
  AIT_TRY(ait_graph_region(g, f.a, &f.region));
  f.values = ait_alloc_zero(f.a, (f.count + 1) * sizeof *f.values, _Alignof(ait_ref_value));
  f.known = ait_alloc_zero(f.a, f.count + 1, 1);
  ait_status status = f.values && f.known ? fold_all(&f, changed) : AIT_OOM();
  for (size_t i = 0; f.values && i < f.count; ++i)
    if (f.known && f.known[i]) ait_ref_value_release(f.a, &f.values[i]);
  ait_free(f.a, f.values, (f.count + 1) * sizeof *f.values);
  ait_free(f.a, f.known, f.count + 1);
  ait_graph_region_destroy(f.a, f.region);
  return status;
}
