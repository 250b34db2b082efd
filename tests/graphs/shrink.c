/* Smaller graphs that fail the same way: fewer outputs, nodes replaced by an operand or by an input, until nothing more can go. */
#include "graph_fuzz.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ATTEMPTS = 600 };

ait_graph *gf_clone(const ait_graph *g) {
  ait_graph *copy;
  ait_weight_store *store;
  uint32_t index;
  gf_must(ait_graph_clone(g, &copy), "clone");
  gf_must(ait_weight_store_create(ait_allocator_default(), &store), "clone");
  for (size_t i = 0; g->weights && i < ait_weight_store_storage_count(g->weights); ++i)
    gf_must(ait_weight_store_add_storage(store, ait_storage_retain(ait_weight_store_storage(g->weights, (uint32_t)i)), &index), "clone");
  for (size_t i = 0; g->weights && i < ait_weight_store_count(g->weights); ++i)
    gf_must(ait_weight_store_add(store, ait_weight_store_at(g->weights, i)), "clone");
  ait_weight_store_release(copy->weights);
  copy->weights = store;
  return copy;
}

/* ---- edits ---------------------------------------------------------------------------------------------------------------------------*/
static void drop_output(ait_graph *g, size_t k) {
  memmove(&g->outputs[k], &g->outputs[k + 1], (g->output_count - k - 1) * sizeof *g->outputs);
  --g->output_count;
  for (size_t i = 0; i < g->output_count; ++i) g->outputs[i].user_index = (int32_t)i;
}

static bool is_used(const ait_node *n, const uint32_t *uses, size_t count) {
  if (n->flags & AIT_NODE_INPLACE) return true;
  for (uint32_t i = 0; i < n->result_count; ++i)
    if (n->results[i] != AIT_NO_INDEX && (n->results[i] >= count || uses[n->results[i]])) return true;
  return false;
}

static void drop_unused_inputs(ait_graph *g, const uint32_t *uses) {
  size_t kept = 0;
  int32_t users = 0;
  for (size_t i = 0; i < g->input_count; ++i) {
    ait_region_input in = g->inputs[i];
    if (in.value != AIT_NO_INDEX && !uses[in.value]) continue;
    if (in.kind == AIT_INPUT_USER) in.user_index = users++;
    g->inputs[kept++] = in;
  }
  g->input_count = kept;
}

/* Nodes and inputs that nothing reads; inputs that bind a symbol stay only while another value has that size. */
static void drop_unused(ait_graph *g) {
  for (bool again = true; again;) {
    uint32_t *uses;
    size_t count = g->value_count;
    gf_must(ait_graph_count_uses(g, ait_allocator_default(), &uses), "uses");
    again = false;
    for (ait_node *n = g->last, *prev; n; n = prev) {
      prev = n->prev;
      if (is_used(n, uses, count)) continue;
      ait_graph_remove_node(g, n);
      again = true;
    }
    if (!again) drop_unused_inputs(g, uses);
    ait_free(ait_allocator_default(), uses, count * sizeof *uses);
  }
}

static ait_node *node_at(ait_graph *g, size_t k) {
  ait_node *n = g->first;
  while (n && k--) n = n->next;
  return n;
}

typedef struct operand_list {
  uint32_t items[32], count;
} operand_list;
static void collect(void *ctx, uint32_t value) {
  operand_list *l = ctx;
  if (l->count < 32) l->items[l->count++] = value;
}

static bool same_kind(const ait_value_info *a, const ait_value_info *b) {
  return a->type == b->type && a->dtype == b->dtype && a->rank == b->rank && a->rank >= 0 &&
         (a->rank == 0 || !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape));
}

/* The node's first result becomes its k-th operand of the same kind. */
static bool bypass(ait_graph *g, ait_node *n, uint32_t k) {
  operand_list l = {.count = 0};
  ait_node_each_operand(n, collect, &l);
  for (uint32_t i = 0; i < l.count; ++i) {
    if (!same_kind(&g->values[l.items[i]], &g->values[n->results[0]]) || k-- > 0) continue;
    ait_graph_replace_uses(g, n->results[0], l.items[i]);
    n->flags &= ~(uint32_t)AIT_NODE_INPLACE;
    return true;
  }
  return false;
}

static char domain_of(const ait_graph *g, const ait_value_info *v, int variant) {
  if (v->dtype == AIT_BOOL) return 'b';
  if (ait_dtype_is_integer(v->dtype)) return 'i';
  if (g->name && strstr(g->name, "wild")) return 'w';
  return variant ? 'g' : 's';
}

/* The node's results become inputs: what lies before it can go. */
static bool cut(ait_graph *g, ait_node *n, int variant) {
  bool any = false;
  for (uint32_t i = 0; i < n->result_count; ++i) {
    uint32_t r = n->results[i], id;
    if (r == AIT_NO_INDEX || g->values[r].type != AIT_TYPE_TENSOR || g->input_count >= GF_MAX_INPUTS) continue;
    char name[24];
    ait_value_info info = g->values[r];
    snprintf(name, sizeof name, "%c%u", domain_of(g, &info, variant), (unsigned)g->value_count);
    gf_must(ait_graph_add_value(g, name, &info, &id), name);
    ait_region_input in = {
        .value = id, .kind = AIT_INPUT_USER, .name = name, .user_index = (int32_t)g->input_count, .mutated = g->dialect == AIT_DIALECT_RAW};
    gf_must(ait_graph_add_input(g, &in), name);
    ait_graph_replace_uses(g, r, id);
    any = true;
  }
  n->flags &= ~(uint32_t)AIT_NODE_INPLACE;
  return any;
}

/* ---- search --------------------------------------------------------------------------------------------------------------------------*/
typedef struct search {
  ait_graph *best;
  const gf_result *failure;
  const gf_check *broken;
  void (*progress)(const ait_graph *g);
  int attempts;
} search;

/* Takes over the candidate. */
static bool keep_if_failing(search *s, ait_graph *candidate) {
  drop_unused(candidate);
  bool fails = false;
  ait_status bad = ait_graph_verify(candidate);
  if (bad == AIT_OK && candidate->output_count > 0 && s->attempts++ < MAX_ATTEMPTS) {
    gf_fill_weights(candidate, false);
    gf_result r = gf_examine_apart(candidate, s->broken ? NULL : s->failure->check, s->broken);
    fails = r.verdict == s->failure->verdict;
  }
  ait_status_ignore(bad);
  if (!fails) {
    ait_graph_destroy(candidate);
    return false;
  }
  ait_graph_destroy(s->best);
  s->best = candidate;
  if (s->progress) s->progress(candidate);
  return true;
}

static bool fewer_outputs(search *s) {
  bool any = false;
  for (size_t k = 0; s->best->output_count > 1 && k < s->best->output_count; ++k) { /* one alone */
    ait_graph *c = gf_clone(s->best);
    for (size_t i = c->output_count; i-- > 0;)
      if (i != k) drop_output(c, i);
    if (keep_if_failing(s, c)) return true;
  }
  for (size_t k = s->best->output_count; s->best->output_count > 1 && k-- > 0;) {
    ait_graph *c = gf_clone(s->best);
    drop_output(c, k);
    any |= keep_if_failing(s, c);
  }
  return any;
}

static bool fewer_nodes(search *s) {
  bool any = false;
  for (size_t k = s->best->node_count; k-- > 0;) {
    for (int way = 0; way < 4 && k < s->best->node_count; ++way) {
      ait_graph *c = gf_clone(s->best);
      ait_node *n = node_at(c, k);
      size_t before = c->node_count;
      bool edited = way < 2 ? cut(c, n, way) : bypass(c, n, (uint32_t)way - 2);
      if (edited) drop_unused(c);
      if (edited && c->node_count < before) any |= keep_if_failing(s, c);
      else ait_graph_destroy(c);
    }
  }
  return any;
}

ait_graph *gf_shrink(const ait_graph *g, const gf_result *failure, const gf_check *broken, void (*progress)(const ait_graph *g)) {
  search s = {.best = gf_clone(g), .failure = failure, .broken = broken, .progress = progress};
  while (s.attempts < MAX_ATTEMPTS && (fewer_outputs(&s) || fewer_nodes(&s))) {}
  return s.best;
}

/* ---- text ----------------------------------------------------------------------------------------------------------------------------*/
char *gf_text(const ait_graph *g, uint64_t seed, const gf_result *failure) {
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  ait_text_printf(&text, "# ait_graph_fuzz --seed %llu\n", (unsigned long long)seed);
  if (failure) {
    ait_text_printf(&text, "# check: %s\n# ", failure->check);
    for (const char *p = failure->reason; *p; ++p) ait_text_append(&text, *p == '\n' ? " " : p, 1);
    ait_text_append(&text, "\n", 1);
  }
  gf_must(ait_graph_print(g, &text), "print");
  if (text.failed) gf_must(AIT_OOM(), "print");
  char *copy = strdup(text.data);
  if (!copy) gf_must(AIT_OOM(), "print");
  ait_text_deinit(&text);
  return copy;
}

ait_graph *gf_parse(const char *text, size_t length) {
  ait_graph *g = NULL;
  ait_status status = ait_graph_parse(ait_allocator_default(), text, length, &g);
  if (status == AIT_OK) status = ait_graph_verify(g);
  if (status == AIT_OK) {
    gf_fill_weights(g, false);
    return g;
  }
  fprintf(stderr, "ait_graph_fuzz: %s\n", ait_status_message(status));
  ait_status_free(status);
  ait_graph_destroy(g);
  return NULL;
}
