/* What a file needs and ait lacks: all of it at once. */
#include "import/import.h"

void ait_missing_init(ait_missing *m, ait_allocator a) {
  ait_arena_init(&m->arena, a);
  ait_map_init(&m->by_name, a);
}

void ait_missing_deinit(ait_missing *m) {
  ait_map_deinit(&m->by_name);
  ait_arena_deinit(&m->arena);
}

ait_status ait_missing_add(ait_missing *m, const char *name, const char *node, bool custom) {
  void *known;
  if (ait_map_get(&m->by_name, name, &known)) {
    ++((ait_missing_operator *)known)->nodes;
    return AIT_OK;
  }
  ait_missing_operator *o = AIT_ARENA_NEW(&m->arena, ait_missing_operator);
  if (!o) return AIT_OOM();
  *o = (ait_missing_operator){.name = ait_arena_strdup(&m->arena, name, strlen(name)),
                              .first_node = ait_arena_strdup(&m->arena, node ? node : "", node ? strlen(node) : 0),
                              .nodes = 1,
                              .custom = custom};
  return o->name && o->first_node ? ait_map_put(&m->by_name, name, o) : AIT_OOM();
}

static ait_status graph_missing(const ait_graph *g, ait_missing *m, int depth) {
  if (depth == 0) return ait_error(AIT_CODE_LIMIT, "graphs nest too deep");
  for (const ait_node *n = g->first; n; n = n->next) {
    for (uint32_t i = 0; i < n->arg_count; ++i)
      if (n->args[i].kind == AIT_ARG_GRAPH) AIT_TRY(graph_missing(n->args[i].as.graph, m, depth - 1));
    bool is_custom = strcmp(n->op->name, "custom") == 0;
    const ait_op *schema = NULL;
    if (is_custom) AIT_TRY(ait_op_custom(n->op_name, &schema));
    if (is_custom ? !schema : !ait_op_runs(n->op)) AIT_TRY(ait_missing_add(m, n->op_name, n->name, is_custom));
  }
  return AIT_OK;
}

ait_status ait_missing_of_graph(const ait_graph *g, ait_missing *m) { return graph_missing(g, m, 64); }

ait_status ait_missing_tell(const ait_missing *m, ait_status status) {
  enum { SHOWN = 24 };
  uint32_t nodes = 0;
  for (size_t i = 0; i < m->by_name.count; ++i) nodes += ((const ait_missing_operator *)m->by_name.entries[i].value)->nodes;
  if (!status || nodes < 2) return status;
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  for (size_t i = 0; i < m->by_name.count && i < SHOWN; ++i) {
    const ait_missing_operator *o = m->by_name.entries[i].value;
    ait_text_printf(&text, "%s'%s' (%u node%s, first '%s')", i ? ", " : "", o->name, o->nodes, o->nodes == 1 ? "" : "s", o->first_node);
  }
  if (m->by_name.count > SHOWN) ait_text_printf(&text, ", and %zu more", m->by_name.count - SHOWN);
  ait_status all =
      ait_error(ait_status_code(status), "%s; all that is missing: %s", ait_status_message(status), text.data ? text.data : "");
  if (ait_status_hint(status)) all = ait_error_hint(all, "%s", ait_status_hint(status));
  ait_text_deinit(&text);
  ait_status_free(status);
  return all;
}
