/* Matches the patterns of patterns.inc on core graphs. A pattern is parsed into a small tree; matching is a bounded walk from the root node
 * down through definitions. */
#include "passes/rewrite.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_PATTERN_NODES = 64, MAX_PATTERN_ARGS = 8, MAX_VARIABLES = 8, MAX_NAME = 24 };

typedef enum kind { P_OP, P_VARIABLE, P_NUMBER, P_DIMS, P_FLAG, P_NONE, P_STRING } kind;
typedef enum need { NEED_NOTHING, NEED_NUMBER, NEED_LAST, NEED_OUTPUT } need;

typedef struct pattern_node {
  kind kind;
  char name[MAX_NAME]; /* operator, or string */
  int variable;
  need need;
  double number; /* also: FLAG 0 or 1, DIMS its one element */
  uint32_t count;
  int args[MAX_PATTERN_ARGS];
} pattern_node;

typedef struct pattern {
  pattern_node nodes[MAX_PATTERN_NODES];
  int count, variables;
  char variable_names[MAX_VARIABLES][MAX_NAME];
} pattern;

/* ---- parsing: the text is ours, a fault in it is an internal error --------------------------------------------------------------*/
typedef struct parser {
  const char *p;
  pattern *out;
  bool failed;
} parser;

static void skip(parser *s) {
  while (*s->p == ' ') ++s->p;
}

static void take_name(parser *s, char out[MAX_NAME]) {
  int n = 0;
  while (isalnum((unsigned char)*s->p) || *s->p == '_') {
    if (n < MAX_NAME - 1) out[n++] = *s->p;
    ++s->p;
  }
  out[n] = 0;
}

static int variable_index(pattern *t, const char *name) {
  for (int i = 0; i < t->variables; ++i)
    if (!strcmp(t->variable_names[i], name)) return i;
  if (t->variables == MAX_VARIABLES) return -1;
  strcpy(t->variable_names[t->variables], name);
  return t->variables++;
}

static void parse_variable(parser *s, pattern_node *n) {
  char name[MAX_NAME], suffix[MAX_NAME] = "";
  ++s->p;
  take_name(s, name);
  if (*s->p == ':') ++s->p, take_name(s, suffix);
  n->kind = P_VARIABLE;
  n->variable = variable_index(s->out, name);
  n->need = !strcmp(suffix, "number")   ? NEED_NUMBER
            : !strcmp(suffix, "last")   ? NEED_LAST
            : !strcmp(suffix, "output") ? NEED_OUTPUT
                                        : NEED_NOTHING;
  s->failed |= n->variable < 0;
}

static int parse_node(parser *s, int depth);

static void parse_call(parser *s, int index, int depth) {
  ++s->p; /* ( */
  for (skip(s); *s->p && *s->p != ')'; skip(s)) {
    int child = parse_node(s, depth + 1);
    pattern_node *n = &s->out->nodes[index];
    if (child < 0 || n->count == MAX_PATTERN_ARGS) {
      s->failed = true;
      return;
    }
    n->args[n->count++] = child;
    skip(s);
    if (*s->p == ',') ++s->p;
  }
  s->failed |= *s->p != ')';
  if (*s->p) ++s->p;
}

static int parse_node(parser *s, int depth) {
  skip(s);
  if (depth > 16 || s->failed || s->out->count == MAX_PATTERN_NODES) return s->failed = true, -1;
  int index = s->out->count++;
  pattern_node *n = &s->out->nodes[index];
  *n = (pattern_node){0};
  if (*s->p == '?') {
    parse_variable(s, n);
  } else if (*s->p == '[' || *s->p == '-' || isdigit((unsigned char)*s->p)) {
    bool list = *s->p == '[';
    char *end;
    n->kind = list ? P_DIMS : P_NUMBER;
    n->number = ait_parse_double(s->p + list, &end);
    s->p = end + list;
  } else if (*s->p == '"') {
    ++s->p;
    n->kind = P_STRING;
    take_name(s, n->name);
    ++s->p;
  } else {
    take_name(s, n->name);
    n->kind = !strcmp(n->name, "none") ? P_NONE : !strcmp(n->name, "true") || !strcmp(n->name, "false") ? P_FLAG : P_OP;
    n->number = !strcmp(n->name, "true");
    if (n->kind == P_OP && *s->p == '(') parse_call(s, index, depth);
    else s->failed |= n->kind == P_OP;
  }
  return index;
}

static ait_status parse_pattern(const char *text, pattern *out) {
  parser s = {.p = text, .out = out};
  parse_node(&s, 0);
  skip(&s);
  return s.failed || *s.p ? ait_error(AIT_CODE_INTERNAL, "pattern '%s' does not parse", text) : AIT_OK;
}

/* ---- matching --------------------------------------------------------------------------------------------------------------------*/
typedef struct matcher {
  const ait_graph *g;
  const pattern *p;
  ait_arg bound[MAX_VARIABLES];
  bool is_bound[MAX_VARIABLES];
} matcher;

static bool close_to(double a, double b) { return fabs(a - b) <= 1e-5 * fabs(b); }

/* A number as argument, or as a constant of one element. */
static bool number_of(const ait_graph *g, const ait_arg *a, double *out) {
  return ait_arg_as_number(g, a, out) || (ait_arg_is_tensor(g, a) && ait_scalar_constant(g, a->as.value, out));
}

static bool same_binding(const ait_arg *a, const ait_arg *b) {
  if (a->kind != b->kind) return false;
  if (a->kind == AIT_ARG_VALUE) return a->as.value == b->as.value;
  if (a->kind == AIT_ARG_FLOAT) return a->as.f == b->as.f;
  return a->kind == AIT_ARG_INT ? a->as.i == b->as.i : a->kind == AIT_ARG_NONE;
}

/* ?w:last, ?b:output: a vector along the last dimension of `like`. */
static bool is_vector_of(const ait_graph *g, const ait_arg *a, uint32_t like) {
  if (!ait_arg_is_tensor(g, a)) return false;
  const ait_value_info *v = &g->values[a->as.value], *x = &g->values[like];
  return v->rank == 1 && x->rank >= 1 && v->shape[0] == x->shape[x->rank - 1] && v->dtype == x->dtype;
}

static bool bind(matcher *m, const pattern_node *n, const ait_arg *a, uint32_t root) {
  double number;
  ait_arg value = *a;
  if (n->need == NEED_NUMBER) {
    if (!number_of(m->g, a, &number)) return false;
    value = ait_arg_float(number);
  }
  if ((n->need == NEED_LAST || n->need == NEED_OUTPUT) && !is_vector_of(m->g, a, root)) return false;
  if (m->is_bound[n->variable]) return same_binding(&m->bound[n->variable], &value);
  m->bound[n->variable] = value;
  return m->is_bound[n->variable] = true;
}

static bool match_op(matcher *m, const pattern_node *p, const ait_node *n, uint32_t root);

static bool match_arg(matcher *m, const pattern_node *p, const ait_node *user, const ait_arg *a, uint32_t root) {
  double number;
  int64_t dim;
  uint32_t count;
  int64_t dims[AIT_MAX_RANK];
  switch (p->kind) {
    case P_VARIABLE: return bind(m, p, a, root);
    case P_NUMBER: return number_of(m->g, a, &number) && (p->number == 0 ? number == 0 : close_to(number, p->number));
    case P_FLAG: return a->kind == AIT_ARG_BOOL && a->as.b == (p->number != 0);
    case P_NONE: return a->kind == AIT_ARG_NONE;
    case P_STRING: return a->kind == AIT_ARG_STRING && !strcmp(a->as.string, p->name);
    case P_DIMS:
      dim = (int64_t)p->number;
      if (!ait_arg_is_tensor(m->g, &user->args[0])) return false;
      int32_t rank = m->g->values[user->args[0].as.value].rank;
      return ait_arg_as_ints(m->g, a, dims, &count) && count == 1 && ait_wrap_dim(&dims[0], rank) && ait_wrap_dim(&dim, rank) &&
             dims[0] == dim;
    case P_OP: return ait_arg_is_tensor(m->g, a) && m->g->values[a->as.value].def && match_op(m, p, m->g->values[a->as.value].def, root);
  }
  return false;
}

static bool is_default(const ait_op *op, uint32_t i, const ait_arg *a) {
  const ait_arg *d = &op->params[i].default_value;
  if (a->kind == AIT_ARG_NONE) return true;
  if (!op->params[i].has_default || a->kind != d->kind) return false;
  if (a->kind == AIT_ARG_BOOL) return a->as.b == d->as.b;
  if (a->kind == AIT_ARG_FLOAT) return a->as.f == d->as.f;
  if (a->kind == AIT_ARG_STRING) return !strcmp(a->as.string, d->as.string);
  return a->kind == AIT_ARG_INT && a->as.i == d->as.i;
}

static bool match_args(matcher *m, const pattern_node *p, const ait_node *n, bool swapped, uint32_t root) {
  for (uint32_t i = 0; i < p->count; ++i) {
    uint32_t at = swapped && i < 2 ? 1 - i : i;
    if (!match_arg(m, &m->p->nodes[p->args[i]], n, &n->args[at], root)) return false;
  }
  for (uint32_t i = p->count; i < n->arg_count; ++i)
    if (!is_default(n->op, i, &n->args[i])) return false;
  return true;
}

static bool match_op(matcher *m, const pattern_node *p, const ait_node *n, uint32_t root) {
  if (strcmp(n->op->name, p->name) || (n->flags & AIT_NODE_INPLACE) || n->arg_count < p->count) return false;
  matcher saved = *m;
  if (match_args(m, p, n, false, root)) return true;
  *m = saved;
  if (!(n->op->traits & AIT_OP_COMMUTATIVE) || p->count < 2) return false;
  if (match_args(m, p, n, true, root)) return true;
  *m = saved;
  return false;
}

/* ---- replacing -------------------------------------------------------------------------------------------------------------------*/
static ait_status build(const ait_rewrite *w, const matcher *m, const pattern *r, uint32_t *out) {
  const pattern_node *root = &r->nodes[0];
  ait_arg args[MAX_PATTERN_ARGS];
  for (uint32_t i = 0; i < root->count; ++i) {
    const pattern_node *n = &r->nodes[root->args[i]];
    args[i] = ait_arg_none();
    if (n->kind == P_NUMBER) args[i] = n->number == floor(n->number) ? ait_arg_int((int64_t)n->number) : ait_arg_float(n->number);
    if (n->kind == P_STRING) args[i] = ait_arg_string(n->name);
    for (int k = 0; n->kind == P_VARIABLE && k < m->p->variables; ++k)
      if (!strcmp(m->p->variable_names[k], r->variable_names[n->variable])) args[i] = m->bound[k];
  }
  return ait_emit(w, root->name, args, root->count, out);
}

typedef struct rule {
  const char *name, *pattern, *replacement;
} rule;
static const rule rules[] = {
#define AIT_PATTERN(name, pattern, replacement) {name, pattern, replacement},
#include "passes/patterns.inc"
#undef AIT_PATTERN
};

/* The composite operator must give what the root gave: same dtype and shape (a pattern over broadcast operands would not). */
static bool same_result(const ait_graph *g, uint32_t a, uint32_t b) {
  return g->values[a].dtype == g->values[b].dtype && ait_same_shape(&g->values[a], &g->values[b]);
}

static ait_status try_rule(ait_graph *g, const ait_pass_context *context, ait_node *n, const rule *r, const pattern *p,
                           const pattern *replacement, bool *done) {
  matcher m = {.g = g, .p = p};
  uint32_t old = n->results[0], value;
  if (!match_op(&m, &p->nodes[0], n, old)) return AIT_OK;
  for (int k = 0; k < p->variables; ++k) /* floats only: integer arithmetic of the same shape means something else */
    if (m.bound[k].kind == AIT_ARG_VALUE && !ait_dtype_is_float(g->values[m.bound[k].as.value].dtype)) return AIT_OK;
  ait_rewrite w = ait_rewrite_at(g, context, n);
  AIT_TRY(build(&w, &m, replacement, &value));
  if (!same_result(g, old, value)) {
    ait_graph_remove_node(g, g->values[value].def);
    return AIT_OK;
  }
  ait_note(&w, "match", "matched", "%s", r->name);
  AIT_TRY(ait_replace_value(g, old, value));
  ait_graph_remove_node(g, n);
  *done = true;
  return AIT_OK;
}

static ait_status run_rule(ait_graph *g, const ait_pass_context *context, const rule *r, pattern *p, pattern *replacement, bool *changed) {
  *p = *replacement = (pattern){0};
  AIT_TRY(parse_pattern(r->pattern, p));
  AIT_TRY(parse_pattern(r->replacement, replacement));
  for (ait_node *n = g->first, *next; n; n = next) {
    next = n->next;
    bool done = false;
    if (n->result_count == 1 && n->results[0] != AIT_NO_INDEX && !strcmp(n->op->name, p->nodes[0].name))
      AIT_TRY(try_rule(g, context, n, r, p, replacement, &done));
    *changed |= done;
  }
  return AIT_OK;
}

ait_status ait_pass_match(ait_graph *g, const ait_pass_context *context, bool *changed) {
  if (g->dialect != AIT_DIALECT_CORE) return AIT_OK;
  pattern *pair = ait_alloc_zero(context->allocator, 2 * sizeof *pair, _Alignof(pattern));
  if (!pair) return AIT_OOM();
  ait_status status = AIT_OK;
  for (size_t i = 0; i < AIT_COUNT(rules) && status == AIT_OK; ++i) status = run_rule(g, context, &rules[i], &pair[0], &pair[1], changed);
  ait_free(context->allocator, pair, 2 * sizeof *pair);
  return status;
}
