/* Which nodes of a graph a backend fused into each of its steps, guessed from the nodes that the steps are named after: what follows a
 * named node and is not named itself belongs to it; what is left belongs to whatever uses it. */
#include "tune/cost.h"
#include "tune/evidence.h"

enum { NO_STEP = UINT32_MAX };

typedef struct grouping {
  const ait_graph *g;
  const int64_t *symbols;
  const ait_node **nodes; /* in order */
  uint32_t *step;         /* of each node */
  size_t node_count;
  uint32_t *producer; /* step of each value; NO_STEP: an input, or not known */
  uint32_t *root;     /* the value whose memory it is */
  uint32_t *death;    /* of each root: the last step that reads it */
  uint32_t *seen;     /* 1 + the last step that counted the value as read */
  ait_step_cost *out;
  uint32_t step_count, current;
  uint32_t found;     /* while looking over operands */
  uint32_t row_table; /* the operand of the current node of which only rows are read */
} grouping;

static void latest_producer(void *ctx, uint32_t value) {
  grouping *k = ctx;
  uint32_t p = k->producer[value];
  if (p != NO_STEP && (k->found == NO_STEP || p > k->found)) k->found = p;
}

static void take_over(void *ctx, uint32_t value) {
  grouping *k = ctx;
  const ait_node *n = k->g->values[value].def;
  if (n && k->producer[value] == NO_STEP)
    for (uint32_t r = 0; r < n->result_count; ++r)
      if (n->results[r] != AIT_NO_INDEX) k->producer[n->results[r]] = k->current;
}

static void set_producer(grouping *k, size_t i) {
  for (uint32_t r = 0; r < k->nodes[i]->result_count; ++r)
    if (k->nodes[i]->results[r] != AIT_NO_INDEX) k->producer[k->nodes[i]->results[r]] = k->step[i];
}

static void name_key(char out[64], const char *name) {
  size_t n = strnlen(name ? name : "", 63);
  memcpy(out, name ? name : "", n);
  out[n] = 0;
}

static ait_status assign(grouping *k, const ait_profile *p) {
  ait_map steps;
  ait_map_init(&steps, ait_allocator_default());
  ait_status status = AIT_OK;
  for (uint32_t i = 0; status == AIT_OK && i < p->step_count; ++i)
    status = ait_map_put(&steps, p->steps[i].name, (void *)(uintptr_t)(i + 1));
  for (size_t i = 0; status == AIT_OK && i < k->node_count; ++i) {
    char key[64];
    void *at = NULL;
    name_key(key, k->nodes[i]->name);
    k->found = NO_STEP;
    if (ait_map_get(&steps, key, &at)) k->step[i] = (uint32_t)(uintptr_t)at - 1;
    else ait_node_each_operand(k->nodes[i], latest_producer, k), k->step[i] = k->found;
    set_producer(k, i);
  }
  for (size_t i = k->node_count; status == AIT_OK && i-- > 0;) {
    if (k->step[i] == NO_STEP && k->nodes[i]->result_count && k->nodes[i]->results[0] != AIT_NO_INDEX)
      k->step[i] = k->producer[k->nodes[i]->results[0]];
    if (k->step[i] == NO_STEP) continue;
    k->current = k->step[i];
    ait_node_each_operand(k->nodes[i], take_over, k);
  }
  ait_map_deinit(&steps);
  return status;
}

static void read_value(void *ctx, uint32_t value) {
  grouping *k = ctx;
  uint32_t root = k->root[value], s = k->current;
  if (k->death[root] == NO_STEP || k->death[root] < s) k->death[root] = s;
  if (k->producer[value] == s || k->seen[value] == s + 1) return;
  if (value == k->row_table) return;
  k->seen[value] = s + 1;
  k->out[s].bytes += ait_value_bytes(k->g, value, k->symbols);
}

static void first_operand(void *ctx, uint32_t value) {
  grouping *k = ctx;
  if (k->found == NO_STEP) k->found = value;
}

static void count(grouping *k) {
  for (size_t i = 0; i < k->node_count; ++i) {
    const ait_node *n = k->nodes[i];
    bool view = ait_node_is_view(n);
    k->found = NO_STEP;
    if (view) ait_node_each_operand(n, first_operand, k);
    if (k->found != NO_STEP && n->result_count && n->results[0] != AIT_NO_INDEX) k->root[n->results[0]] = k->root[k->found];
    if (k->step[i] == NO_STEP) continue;
    k->current = k->step[i];
    k->out[k->current].known = true;
    k->out[k->current].flops += ait_node_cost(k->g, n, k->symbols).flops;
    k->row_table = ait_node_reads_rows(n) ? n->args[0].as.value : AIT_NO_INDEX;
    if (k->row_table != AIT_NO_INDEX) k->out[k->current].bytes += ait_value_bytes(k->g, n->results[0], k->symbols);
    if (!view) ait_node_each_operand(n, read_value, k);
  }
  for (size_t i = 0; i < k->g->output_count; ++i)
    if (k->g->outputs[i].arg.kind == AIT_ARG_VALUE) k->death[k->root[k->g->outputs[i].arg.as.value]] = k->step_count;
  for (size_t v = 0; v < k->g->value_count; ++v) { /* results that leave their step */
    uint32_t birth = k->producer[v], death = k->death[v];
    if (k->root[v] != v || birth == NO_STEP || death == NO_STEP || death <= birth) continue;
    double bytes = ait_value_bytes(k->g, (uint32_t)v, k->symbols);
    k->out[birth].bytes += bytes;
    for (uint32_t s = birth; s <= death && s < k->step_count; ++s) k->out[s].live_bytes += bytes;
  }
}

ait_status ait_step_costs(const ait_graph *g, const int64_t *symbols, const ait_profile *p, ait_step_cost *out) {
  ait_allocator a = ait_allocator_default();
  size_t nodes = g->node_count + 1, values = g->value_count + 1;
  size_t node_bytes = nodes * sizeof(ait_node *), index_bytes = (nodes + 4 * values) * sizeof(uint32_t);
  const ait_node **list = ait_alloc(a, node_bytes, _Alignof(ait_node *));
  uint32_t *indices = ait_alloc(a, index_bytes, _Alignof(uint32_t));
  ait_status status = list && indices ? AIT_OK : AIT_OOM();
  memset(out, 0, p->step_count * sizeof *out);
  if (status == AIT_OK) {
    memset(indices, 0xff, index_bytes);
    grouping k = {.g = g, .symbols = symbols, .nodes = list, .step = indices, .producer = indices + nodes, .out = out};
    k.root = k.producer + values;
    k.death = k.root + values;
    k.seen = k.death + values;
    k.step_count = p->step_count;
    for (const ait_node *n = g->first; n; n = n->next) list[k.node_count++] = n;
    for (size_t v = 0; v < g->value_count; ++v) k.root[v] = (uint32_t)v;
    status = assign(&k, p);
    if (status == AIT_OK) count(&k);
  }
  ait_free(a, indices, index_bytes);
  ait_free(a, list, node_bytes);
  return status;
}
