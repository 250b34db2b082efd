/* Nodes of the file: which row or function each one is, its operands, its module, its results. */
#include "import/onnx/onnx.h"

#include <stdlib.h>

typedef struct row {
  const char *domain, *op;
  int64_t since, until; /* versions of the domain's operator set, inclusive */
  ox_builder build;
  const char *variant;
} row;

static const row rows[] = {
#define OX_OP(domain, op, since, until, builder, variant) {domain, op, since, until, ox_build_##builder, variant},
#include "import/onnx/ops.inc"
#undef OX_OP
};

static const char *plain_domain(const char *domain) { return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain; }
static const char *domain_text(const char *domain) { return *domain ? domain : "ai.onnx"; }

int64_t ox_opset_version(const ox_scope *s, const char *domain) {
  for (size_t i = 0; i < s->opset_count; ++i)
    if (strcmp(s->opsets[i].domain, domain) == 0) return s->opsets[i].version;
  return 0;
}

/* *out_other: the operator is known in other versions of its domain. */
static const row *find_row(const char *domain, const char *op, int64_t version, const row **out_other) {
  *out_other = NULL;
  for (size_t i = 0; i < AIT_COUNT(rows); ++i) {
    if (strcmp(rows[i].op, op) != 0 || strcmp(rows[i].domain, domain) != 0) continue;
    if (version >= rows[i].since && version <= rows[i].until) return &rows[i];
    *out_other = &rows[i];
  }
  return NULL;
}

/* ---- modules ---------------------------------------------------------------------------------------------------------------------*/

static ait_status add_module(ox_import *in, const char *path, size_t length, const char *type, size_t type_length, uint32_t *out) {
  const char *p = ait_arena_strdup(&in->arena, path, length), *t = ait_arena_strdup(&in->arena, type, type_length);
  if (!p || !t) return AIT_OOM();
  AIT_TRY(ait_graph_add_module(in->graph, p, t, out));
  if (in->graph->modules[*out].calls == 0) in->graph->modules[*out].calls = 1;
  return AIT_OK;
}

/* "/encoder/layer.0/MatMul_1" as torch's exporter names nodes: the path without its last part. */
static ait_status module_from_name(ox_import *in, const char *name, uint32_t *out) {
  const char *last = strrchr(name, '/');
  if (name[0] != '/' || last == name) return AIT_OK;
  char *path = ait_arena_strdup(&in->arena, name + 1, (size_t)(last - name - 1));
  if (!path) return AIT_OOM();
  for (char *p = path;; ++p) {
    bool end = *p == '\0';
    if (*p != '/' && !end) continue;
    AIT_TRY(add_module(in, path, (size_t)(p - path), "", 0, out));
    if (end) return AIT_OK;
    *p = '.';
  }
}

/* The next item of a Python list of strings, "['', 'layer1', 'layer1.0']". */
static bool next_item(const char **p, const char **out, size_t *out_length) {
  const char *open = strpbrk(*p, "'\"");
  const char *close = open ? strchr(open + 1, *open) : NULL;
  if (!close) return false;
  *out = open + 1;
  *out_length = (size_t)(close - open - 1);
  *p = close + 1;
  return true;
}

/* Scopes and classes as the newer exporter of torch notes them; the last item of each is the node itself. */
static ait_status module_from_scopes(ox_import *in, const char *scopes, const char *classes, uint32_t *out) {
  const char *scope, *class, *next_scope, *next_class;
  size_t n, class_n, next_n, next_class_n;
  if (!next_item(&scopes, &scope, &n) || !next_item(&classes, &class, &class_n)) return AIT_OK;
  while (next_item(&scopes, &next_scope, &next_n) && next_item(&classes, &next_class, &next_class_n)) {
    AIT_TRY(add_module(in, scope, n, class, class_n, out));
    scope = next_scope, n = next_n, class = next_class, class_n = next_class_n;
  }
  return AIT_OK;
}

static ait_status module_of(ox_import *in, const Onnx__NodeProto *node, uint32_t *out) {
  const char *scopes = NULL, *classes = NULL;
  for (size_t i = 0; i < node->n_metadata_props; ++i) {
    const Onnx__StringStringEntryProto *e = node->metadata_props[i];
    if (!e->key || !e->value) continue;
    if (strcmp(e->key, "pkg.torch.onnx.name_scopes") == 0) scopes = e->value;
    if (strcmp(e->key, "pkg.torch.onnx.class_hierarchy") == 0) classes = e->value;
  }
  if (scopes && classes) return module_from_scopes(in, scopes, classes, out);
  return node->name ? module_from_name(in, node->name, out) : AIT_OK;
}

/* ---- a node ----------------------------------------------------------------------------------------------------------------------*/

static ait_status resolve_inputs(ox_call *c) {
  c->input_count = (uint32_t)c->node->n_input;
  c->inputs = AIT_ARENA_ARRAY(&c->in->arena, uint32_t, c->node->n_input + 1);
  if (!c->inputs) return AIT_OOM();
  for (uint32_t i = 0; i < c->input_count; ++i) {
    const char *name = c->node->input[i];
    c->inputs[i] = AIT_NO_INDEX;
    if (!*name) continue;
    AIT_TRY(ox_find(c->s, name, &c->inputs[i]));
    if (c->inputs[i] == AIT_NO_INDEX && !ox_is_absent(c->s, name))
      return ait_error_hint(ox_fail(c, AIT_CODE_INVALID_MODEL, "input %u ('%s') is not defined before", (unsigned)i, name),
                            "nodes must stand in the order of their dependencies");
  }
  return AIT_OK;
}

static ait_status bind_outputs(ox_call *c) {
  for (uint32_t i = 0; i < c->node->n_output; ++i) {
    const char *name = c->node->output[i];
    if (!*name) continue;
    if (i >= OX_MAX_OUTPUTS || c->outputs[i] == AIT_NO_INDEX)
      return ox_fail(c, AIT_CODE_UNSUPPORTED, "output %u ('%s') is not computed", (unsigned)i, name);
    AIT_TRY(ox_define(c->s, name, c->outputs[i]));
  }
  return AIT_OK;
}

static ait_status unknown_operator(const ox_call *c, const char *domain, const row *other) {
  const char *op = c->node->op_type ? c->node->op_type : "";
  ait_status status;
  if (c->version == 0) {
    status = ox_fail(c, AIT_CODE_INVALID_MODEL, "the model does not import the operator set '%s'", domain_text(domain));
    return ait_error_hint(status, "opset_import must name the domain of each operator");
  }
  if (other && other->until == OX_LATEST)
    status = ox_fail(c, AIT_CODE_UNSUPPORTED, "operator '%s' of '%s' is known from version %lld on, not in opset %lld", op,
                     domain_text(domain), (long long)other->since, (long long)c->version);
  else if (other)
    status = ox_fail(c, AIT_CODE_UNSUPPORTED, "operator '%s' of '%s' is known from version %lld to %lld, not in opset %lld", op,
                     domain_text(domain), (long long)other->since, (long long)other->until, (long long)c->version);
  else
    status =
        ox_fail(c, AIT_CODE_UNSUPPORTED, "operator '%s' of '%s' (opset %lld) is not known", op, domain_text(domain), (long long)c->version);
  return ait_error_hint(status, "'ait ops --missing %s' lists all such operators", c->in->path);
}

static ait_status unknown_results(ox_call *c) {
  ait_value_info info = {.type = AIT_TYPE_TENSOR, .rank = -1, .scalar = AIT_NO_INDEX};
  for (uint32_t i = 0; i < c->node->n_output && i < OX_MAX_OUTPUTS; ++i) AIT_TRY(ait_graph_add_value(c->g, c->name, &info, &c->outputs[i]));
  return AIT_OK;
}

/* For "ait ops --missing": the name is kept, the results are of unknown type. */
static ait_status note_missing(ox_call *c, const char *domain) {
  const char *name = ait_arena_printf(&c->in->arena, "%s::%s", domain_text(domain), c->node->op_type ? c->node->op_type : "");
  if (!name) return AIT_OOM();
  AIT_TRY(ait_missing_add(c->in->missing, name, c->name, *domain != '\0'));
  return unknown_results(c);
}

static ait_status find_function(const ox_call *c, const char *domain, const Onnx__FunctionProto **out) {
  void *found = NULL;
  const char *key = ait_arena_printf(&c->in->arena, "%s:%s:%s", domain, c->node->op_type ? c->node->op_type : "",
                                     c->node->overload ? c->node->overload : "");
  if (!key) return AIT_OOM();
  *out = ait_map_get(&c->in->functions, key, &found) ? found : NULL;
  return AIT_OK;
}

static ait_status build(ox_call *c) {
  const char *domain = plain_domain(c->node->domain);
  const Onnx__FunctionProto *function;
  const row *other, *r;
  AIT_TRY(resolve_inputs(c));
  AIT_TRY(find_function(c, domain, &function));
  c->version = ox_opset_version(c->s, domain);
  if (function) return ox_call_function(c, function);
  r = find_row(domain, c->node->op_type ? c->node->op_type : "", c->version, &other);
  if (!r) {
    bool found;
    AIT_TRY(ox_custom_operator(c, domain, &found));
    if (found) return AIT_OK;
    return c->in->missing ? note_missing(c, domain) : unknown_operator(c, domain, other);
  }
  c->variant = r->variant;
  ait_status status = r->build(c);
  if (!status || !c->in->missing) return status;
  ait_status_ignore(status); /* only names of unknown operators are wanted; what follows one may have no types */
  return unknown_results(c);
}

/* The name for what is added: the first output's, since that is what users know. */
static ait_status name_node(ox_call *c) {
  const char *name = c->node->name && *c->node->name ? c->node->name : c->node->op_type ? c->node->op_type : "node";
  for (size_t i = c->node->n_output; i > 0; --i)
    if (c->node->output[i - 1][0]) name = c->node->output[i - 1];
  c->name = *c->s->prefix ? ait_arena_printf(&c->in->arena, "%s%s", c->s->prefix, name) : name;
  return c->name ? AIT_OK : AIT_OOM();
}

static ait_status add_node(ox_scope *s, const Onnx__NodeProto *node) {
  ox_import *in = s->in;
  if (++in->node_count > OX_NODE_LIMIT) return ait_error(AIT_CODE_LIMIT, "more than %d nodes", OX_NODE_LIMIT);
  ox_call *c = AIT_ARENA_NEW(&in->arena, ox_call);
  if (!c) return AIT_OOM();
  *c = (ox_call){.s = s, .in = in, .g = s->frame->graph, .node = node, .module = s->module};
  for (size_t i = 0; i < OX_MAX_OUTPUTS; ++i) c->outputs[i] = AIT_NO_INDEX;
  ait_status status = name_node(c);
  if (!status) status = module_of(in, node, &c->module);
  if (!status) status = build(c);
  if (!status) status = bind_outputs(c);
  const char *label = node->name && *node->name ? node->name : c->name ? c->name : "";
  return status ? ait_error_context(status, "node '%s' (%s)", label, node->op_type ? node->op_type : "") : AIT_OK;
}

ait_status ox_add_nodes(ox_scope *s, Onnx__NodeProto *const *nodes, size_t count) {
  for (size_t i = 0; i < count; ++i) AIT_TRY(add_node(s, nodes[i]));
  return AIT_OK;
}
