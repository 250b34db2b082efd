/* x * cos + rotate_half(x) * sin, as exported: add(mul(x, cos), mul(cat([neg(slice(x, h..2h)), slice(x, 0..h)]), sin)). */
#include "backends/native/lower.h"

static const ait_region_node *maker(const nat_lower *l, const ait_arg *a, const char *op, uint32_t *out_node) {
  if (!nat_is_tensor(l->region, a)) return NULL;
  uint32_t node = l->def_node[a->as.value];
  if (node == NAT_NONE || l->owner[node] != node || l->uses[a->as.value] != 1) return NULL;
  const ait_region_node *n = &l->region->nodes[node];
  *out_node = node;
  return strcmp(n->op, op) == 0 && n->result_count == 1 && (n->flags & AIT_NODE_INPLACE) == 0 ? n : NULL;
}

static bool number(const nat_lower *l, const ait_arg *a, int64_t *out) {
  double v;
  if (a->kind == AIT_ARG_DIM && l->region->dims[a->as.dim].op == AIT_DIM_CONST) {
    *out = l->region->dims[a->as.dim].value;
    return true;
  }
  if (a->kind != AIT_ARG_INT || !nat_number(a, &v)) return false;
  *out = a->as.i;
  return true;
}

static bool is_last_dim(int64_t dim, int32_t rank) { return dim == rank - 1 || dim == -1; }

/* A half of the last dim: [from, to) of it. */
static const ait_region_node *half_of(const nat_lower *l, const ait_arg *a, uint32_t x, int64_t from, int64_t to, uint32_t *out_node) {
  const ait_region_node *n = maker(l, a, "slice", out_node);
  int64_t dim, begin, end, step = 1;
  if (n == NULL || n->arg_count < 4 || n->args[0].kind != AIT_ARG_VALUE || n->args[0].as.value != x) return NULL;
  if (!number(l, &n->args[1], &dim) || !number(l, &n->args[2], &begin) || !number(l, &n->args[3], &end)) return NULL;
  if (n->arg_count > 4 && n->args[4].kind != AIT_ARG_NONE && !number(l, &n->args[4], &step)) return NULL;
  return is_last_dim(dim, nat_value(l, x)->rank) && begin == from && (end == to || (end > to && from > 0)) && step == 1 ? n : NULL;
}

typedef struct taken {
  uint32_t nodes[6], count;
} taken;

/* rotate_half(x) for the x that `turned` shows. */
static bool is_turned(const nat_lower *l, const ait_arg *turned, uint32_t x, taken *t) {
  const ait_region_value *v = nat_value(l, x);
  const ait_region_node *cat = maker(l, turned, "cat", &t->nodes[0]), *neg;
  int64_t dim, width;
  if (cat == NULL || cat->arg_count < 2 || cat->args[0].kind != AIT_ARG_LIST || cat->args[0].count != 2 || v->rank < 1) return false;
  if (!number(l, &cat->args[1], &dim) || !is_last_dim(dim, v->rank)) return false;
  const ait_dim_expr *last = &l->region->dims[v->shape[v->rank - 1]];
  if (last->op != AIT_DIM_CONST || last->value < 2 || last->value % 2) return false;
  width = last->value;
  neg = maker(l, &cat->args[0].as.list[0], "neg", &t->nodes[1]);
  t->count = 4;
  return neg != NULL && half_of(l, &neg->args[0], x, width / 2, width, &t->nodes[2]) != NULL &&
         half_of(l, &cat->args[0].as.list[1], x, 0, width / 2, &t->nodes[3]) != NULL;
}

static bool floats(const nat_lower *l, uint32_t value) {
  const ait_region_value *v = nat_value(l, value);
  return v->type == AIT_TYPE_TENSOR && v->dtype == AIT_F32 && v->rank >= 1;
}

/* add's operands are `straight` = mul(x, cos) and `crossed` = mul(turned, sin), factors in any order. */
static bool match(const nat_lower *l, const ait_region_node *add, const ait_arg *straight, const ait_arg *crossed, nat_rotary *out,
                  taken *t) {
  uint32_t a, b;
  const ait_region_node *m = maker(l, straight, "mul", &a), *n = maker(l, crossed, "mul", &b);
  if (m == NULL || n == NULL) return false;
  for (int i = 0; i < 4; ++i) {
    const ait_arg *x = &m->args[i % 2], *cos = &m->args[1 - i % 2], *turned = &n->args[i / 2], *sin = &n->args[1 - i / 2];
    if (!nat_is_tensor(l->region, x) || !nat_is_tensor(l->region, cos) || !nat_is_tensor(l->region, sin)) continue;
    if (!floats(l, x->as.value) || !floats(l, cos->as.value) || !floats(l, sin->as.value)) continue;
    if (!nat_same_dims(l->region, x->as.value, add->results[0]) || !is_turned(l, turned, x->as.value, t)) continue;
    t->nodes[t->count++] = a;
    t->nodes[t->count++] = b;
    *out = (nat_rotary){x->as.value, cos->as.value, sin->as.value};
    return true;
  }
  return false;
}

bool nat_take_rotary(nat_lower *l, uint32_t node) {
  const ait_region_node *n = &l->region->nodes[node];
  nat_rotary r;
  taken t;
  if (l->owner[node] != node || strcmp(n->op, "add") != 0 || n->result_count != 1 || n->results[0] == AIT_NO_INDEX) return false;
  if (l->is_static[n->results[0]] || !floats(l, n->results[0]) || (n->flags & AIT_NODE_INPLACE)) return false;
  if (nat_value(l, n->results[0])->rank > 4) return false; /* as many dims as the kernel has loops */
  if (n->arg_count > 2 && n->args[2].kind != AIT_ARG_NONE) return false;
  if (!match(l, n, &n->args[0], &n->args[1], &r, &t) && !match(l, n, &n->args[1], &n->args[0], &r, &t)) return false;
  for (uint32_t i = 0; i < t.count; ++i) l->owner[t.nodes[i]] = node;
  l->rotaries[node] = r;
  return true;
}
