#include "tune/part_key.h"
#include "tensor/tensor.h"

enum { DEPTH_LIMIT = 24 };

typedef struct hasher {
  const ait_region *region;
  const int64_t *const *symbols;
  size_t set_count;
  uint32_t *number; /* per value: its place in the order of appearance; AIT_NO_INDEX: not met yet */
  uint32_t next;
  uint64_t hash;
} hasher;

static void add(hasher *h, const void *data, size_t size) { h->hash = ait_hash(data, size, h->hash); }
static void add_number(hasher *h, int64_t n) { add(h, &n, sizeof n); }
static void add_text(hasher *h, const char *text) { add(h, text ? text : "", text ? strlen(text) + 1 : 1); }

/* A size that data decides is told by its expression alone. */
static void add_dim(hasher *h, ait_dim d) {
  for (size_t i = 0; i < h->set_count; ++i) {
    int64_t v;
    if (ait_dim_eval(h->region->dims, h->symbols[i], d, &v)) add_number(h, v);
    else add_number(h, INT64_MIN + h->region->dims[d].op);
  }
}

static void add_value(hasher *h, uint32_t value) {
  if (value == AIT_NO_INDEX) return add_number(h, -1);
  bool known = h->number[value] != AIT_NO_INDEX;
  if (!known) h->number[value] = h->next++;
  add_number(h, h->number[value]);
  if (known) return;
  const ait_region_value *v = &h->region->values[value];
  add_number(h, v->type);
  add_number(h, v->type == AIT_TYPE_TENSOR ? (int64_t)v->dtype : -1);
  add_number(h, v->rank);
  for (int32_t d = 0; v->type == AIT_TYPE_TENSOR && d < v->rank; ++d) add_dim(h, v->shape[d]);
}

static void add_region(hasher *h, const ait_region *r, int depth);

static void add_arg(hasher *h, const ait_arg *a, int depth) {
  add_number(h, a->kind);
  add_number(h, a->kind == AIT_ARG_LIST ? a->count : 0);
  switch (a->kind) {
    case AIT_ARG_NONE: break;
    case AIT_ARG_VALUE: add_value(h, a->as.value); break;
    case AIT_ARG_INT:
    case AIT_ARG_DTYPE: add_number(h, a->as.i); break;
    case AIT_ARG_FLOAT: add(h, &a->as.f, sizeof a->as.f); break;
    case AIT_ARG_BOOL: add_number(h, a->as.b); break;
    case AIT_ARG_STRING: add_text(h, a->as.string); break;
    case AIT_ARG_COMPLEX: add(h, a->as.complex, sizeof a->as.complex); break;
    case AIT_ARG_DIM: add_dim(h, a->as.dim); break;
    case AIT_ARG_LIST:
      for (uint32_t i = 0; i < a->count && depth < DEPTH_LIMIT; ++i) add_arg(h, &a->as.list[i], depth + 1);
      break;
    case AIT_ARG_GRAPH:
      if (a->as.graph && depth < DEPTH_LIMIT) add_region(h, a->as.graph, depth + 1);
      break;
  }
}

static void add_nodes(hasher *h, int depth) {
  const ait_region *r = h->region;
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    add_number(h, in->kind);
    add_number(h, in->mutated);
    add_value(h, in->value);
    add_arg(h, &in->baked, depth);
  }
  for (uint32_t i = 0; i < r->node_count; ++i) {
    const ait_region_node *n = &r->nodes[i];
    add_text(h, n->op);
    add_number(h, n->flags);
    add_number(h, n->arg_count);
    for (uint32_t k = 0; k < n->arg_count; ++k) add_arg(h, &n->args[k], depth);
    for (uint32_t k = 0; k < n->result_count; ++k) add_value(h, n->results[k]);
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    add_number(h, r->outputs[i].kind);
    add_arg(h, &r->outputs[i].arg, depth);
  }
}

/* A nested region has values of its own, and shares the table of sizes. Without memory the hash is one that nothing else has: nothing is
 * taken for alike. */
static void add_region(hasher *h, const ait_region *r, int depth) {
  hasher inner = {.region = r, .symbols = h->symbols, .set_count = h->set_count, .hash = h->hash};
  size_t size = ((size_t)r->value_count + 1) * sizeof *inner.number;
  inner.number = ait_alloc(ait_allocator_default(), size, _Alignof(uint32_t));
  if (inner.number) {
    memset(inner.number, 0xff, size);
    add_nodes(&inner, depth);
  } else add(&inner, &r, sizeof r);
  ait_free(ait_allocator_default(), inner.number, size);
  h->hash = inner.hash;
}

uint64_t ait_part_hash(const ait_region *part, const int64_t *const *symbols, size_t set_count) {
  hasher h = {.symbols = symbols, .set_count = set_count, .hash = 1};
  add_region(&h, part, 0);
  return h.hash;
}

ait_status ait_parts_hash(const ait_parts *parts, const ait_tune_cases *cases, uint64_t hashes[AIT_PARTS_MAX]) {
  enum { SETS = 16 };
  const ait_region *whole = parts->whole;
  const int64_t *sets[SETS];
  size_t count = 0, size = (whole->symbol_count + 1) * sizeof(int64_t);
  int64_t *values = ait_alloc(ait_allocator_default(), SETS * size, _Alignof(int64_t));
  ait_status status = values ? AIT_OK : AIT_OOM();
  for (size_t i = 0; status == AIT_OK && i < cases->count && cases->items[i].measured && count < SETS; ++i) {
    int64_t *one = values + count * (whole->symbol_count + 1);
    status = ait_bind_inputs(whole, cases->items[i].inputs, cases->items[i].input_count, one);
    sets[count++] = one;
  }
  for (uint32_t p = 0; status == AIT_OK && p < parts->count; ++p) hashes[p] = ait_part_hash(&parts->items[p].region, sets, count);
  ait_free(ait_allocator_default(), values, SETS * size);
  return status;
}
