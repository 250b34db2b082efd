/* Symbolic sizes as text: "2*s0 + 1", "(s0 + 3)//4", "max(s0, s1)", "?3" (unknown). Reading also takes the names that torch writes. */
#include "ir/scan.h"

/* ---- print ---------------------------------------------------------------------------------------------------------------------------*/

enum { LEVEL_SUM = 1, LEVEL_PRODUCT, LEVEL_FACTOR, LEVEL_ATOM };

static void print(const ait_graph *g, ait_dim d, int level, ait_text *out);

static int level_of(const ait_dim_expr *e) {
  switch (e->op) {
    case AIT_DIM_CONST: return e->value < 0 ? LEVEL_SUM : LEVEL_ATOM;
    case AIT_DIM_ADD:
    case AIT_DIM_SUB: return LEVEL_SUM;
    case AIT_DIM_MUL:
    case AIT_DIM_FLOORDIV:
    case AIT_DIM_MOD: return LEVEL_PRODUCT;
    case AIT_DIM_POW: return LEVEL_FACTOR;
    default: return LEVEL_ATOM;
  }
}

static void print_call(const ait_graph *g, const char *name, const ait_dim_expr *e, ait_text *out) {
  ait_text_printf(out, "%s(", name);
  print(g, e->a, LEVEL_SUM, out);
  ait_text_append(out, ", ", 2);
  print(g, e->b, LEVEL_SUM, out);
  ait_text_append(out, ")", 1);
}

static void print_infix(const ait_graph *g, const char *sign, const ait_dim_expr *e, int left, int right, ait_text *out) {
  print(g, e->a, left, out);
  ait_text_append(out, sign, strlen(sign));
  print(g, e->b, right, out);
}

/* -1*x as "-x"; 2*(x*y) and (x*y)*z without parentheses. */
static void print_product(const ait_graph *g, const ait_dim_expr *e, ait_text *out) {
  const ait_dim_expr *a = &g->root->dims[e->a], *b = &g->root->dims[e->b];
  int right = a->op == AIT_DIM_CONST && b->op == AIT_DIM_MUL ? LEVEL_PRODUCT : LEVEL_FACTOR;
  if (a->op == AIT_DIM_CONST && a->value == -1) {
    ait_text_append(out, "-", 1);
    print(g, e->b, right, out);
  } else if (a->op == AIT_DIM_CONST && a->value < 0) {
    ait_text_printf(out, "%lld*", (long long)a->value);
    print(g, e->b, right, out);
  } else {
    print_infix(g, "*", e, a->op == AIT_DIM_MUL ? LEVEL_PRODUCT : LEVEL_FACTOR, right, out);
  }
}

static bool prints_minus(const ait_graph *g, ait_dim d) {
  const ait_dim_expr *e = &g->root->dims[d];
  if (e->op == AIT_DIM_MUL) e = &g->root->dims[e->a];
  return e->op == AIT_DIM_CONST && e->value < 0;
}

/* a + -b as "a - b": prints b's own minus sign apart. */
static void print_sum(const ait_graph *g, const ait_dim_expr *e, ait_text *out) {
  if (!prints_minus(g, e->b)) {
    print_infix(g, " + ", e, LEVEL_SUM, LEVEL_PRODUCT, out);
    return;
  }
  print(g, e->a, LEVEL_SUM, out);
  ait_text_append(out, " - ", 3);
  size_t sign_at = out->length;
  print(g, e->b, LEVEL_SUM, out);
  if (out->failed || out->data[sign_at] != '-') return;
  memmove(out->data + sign_at, out->data + sign_at + 1, out->length - sign_at);
  --out->length;
}

static void print_expr(const ait_graph *g, const ait_dim_expr *e, ait_text *out) {
  switch (e->op) {
    case AIT_DIM_CONST: ait_text_printf(out, "%lld", (long long)e->value); break;
    case AIT_DIM_UNKNOWN: ait_text_printf(out, "?%lld", (long long)e->value); break;
    case AIT_DIM_SYMBOL: scan_print_name(out, g->root->symbols[e->a].name); break;
    case AIT_DIM_ADD: print_sum(g, e, out); break;
    case AIT_DIM_SUB: print_infix(g, " - ", e, LEVEL_SUM, LEVEL_PRODUCT, out); break;
    case AIT_DIM_MUL: print_product(g, e, out); break;
    case AIT_DIM_FLOORDIV: print_infix(g, "//", e, LEVEL_FACTOR, LEVEL_FACTOR, out); break;
    case AIT_DIM_MOD: print_infix(g, " % ", e, LEVEL_FACTOR, LEVEL_FACTOR, out); break;
    case AIT_DIM_POW: print_infix(g, "**", e, LEVEL_ATOM, LEVEL_ATOM, out); break;
    case AIT_DIM_CEILDIV: print_call(g, "ceildiv", e, out); break;
    case AIT_DIM_MIN: print_call(g, "min", e, out); break;
    case AIT_DIM_MAX: print_call(g, "max", e, out); break;
  }
}

static void print(const ait_graph *g, ait_dim d, int level, ait_text *out) {
  const ait_dim_expr *e = &g->root->dims[d];
  bool parentheses = level_of(e) < level;
  if (parentheses) ait_text_append(out, "(", 1);
  print_expr(g, e, out);
  if (parentheses) ait_text_append(out, ")", 1);
}

/* Depth is bounded where expressions are made. */
void ait_dim_text(const ait_graph *g, ait_dim d, ait_text *out) {
  if (d >= g->root->dim_count) ait_text_append(out, "?", 1);
  else print(g, d, LEVEL_SUM, out);
}

/* ---- parse ---------------------------------------------------------------------------------------------------------------------------*/

static const struct {
  const char *name;
  ait_dim_op op;
} functions[] = {
    {"min", AIT_DIM_MIN},           {"max", AIT_DIM_MAX},         {"ceildiv", AIT_DIM_CEILDIV},  {"Min", AIT_DIM_MIN},
    {"Max", AIT_DIM_MAX},           {"Mod", AIT_DIM_MOD},         {"PythonMod", AIT_DIM_MOD},    {"FloorDiv", AIT_DIM_FLOORDIV},
    {"CleanDiv", AIT_DIM_FLOORDIV}, {"CeilDiv", AIT_DIM_CEILDIV}, {"PowByNatural", AIT_DIM_POW},
};

static ait_status parse_sum(scanner *s, ait_dim *out);
static ait_status parse_unary(scanner *s, ait_dim *out);

static ait_status parse_call(scanner *s, const char *name, ait_dim *out) {
  for (size_t i = 0; i < AIT_COUNT(functions); ++i) {
    if (strcmp(functions[i].name, name) != 0) continue;
    ait_dim b;
    AIT_TRY(parse_sum(s, out));
    do { /* min and max of several */
      AIT_TRY(scan_expect(s, ","));
      AIT_TRY(parse_sum(s, &b));
      AIT_TRY(ait_dim_make(s->graph, functions[i].op, *out, b, out));
    } while (scan_peek(s, ",") && (functions[i].op == AIT_DIM_MIN || functions[i].op == AIT_DIM_MAX));
    return scan_expect(s, ")");
  }
  return scan_error(s, "unknown function '%s' in a size", name);
}

static ait_status parse_atom(scanner *s, ait_dim *out) {
  const char *name;
  int64_t number;
  if (scan_at_digit(s)) {
    AIT_TRY(scan_int(s, &number));
    return ait_dim_const(s->graph, number, out);
  }
  if (scan_accept(s, "?")) {
    AIT_TRY(scan_int(s, &number));
    return ait_dim_unknown_numbered(s->graph, number, out);
  }
  if (scan_accept(s, "(")) {
    AIT_TRY(parse_sum(s, out));
    return scan_expect(s, ")");
  }
  if (scan_peek(s, "\"")) {
    AIT_TRY(scan_string(s, &name, NULL));
  } else {
    AIT_TRY(scan_word(s, &name));
    if (scan_accept(s, "(")) return parse_call(s, name, out);
  }
  return ait_dim_symbol(s->graph, name, out);
}

static ait_status parse_power(scanner *s, ait_dim *out) {
  AIT_TRY(parse_atom(s, out));
  if (!scan_accept(s, "**")) return AIT_OK;
  ait_dim exponent;
  AIT_TRY(parse_unary(s, &exponent));
  return ait_dim_make(s->graph, AIT_DIM_POW, *out, exponent, out);
}

static ait_status parse_unary(scanner *s, ait_dim *out) {
  if (!scan_peek(s, "-")) return parse_power(s, out);
  if (s->end - s->at > 1 && s->at[1] >= '0' && s->at[1] <= '9') { /* the sign belongs to the number: INT64_MIN is readable */
    int64_t number;
    AIT_TRY(scan_int(s, &number));
    return ait_dim_const(s->graph, number, out);
  }
  ++s->at;
  AIT_TRY(scan_enter(s));
  AIT_TRY(parse_unary(s, out));
  --s->depth;
  ait_dim minus;
  AIT_TRY(ait_dim_const(s->graph, -1, &minus));
  return ait_dim_make(s->graph, AIT_DIM_MUL, minus, *out, out);
}

static ait_status parse_product(scanner *s, ait_dim *out) {
  AIT_TRY(parse_unary(s, out));
  for (;;) {
    ait_dim_op op;
    ait_dim b;
    if (scan_accept(s, "//")) op = AIT_DIM_FLOORDIV;
    else if (scan_accept(s, "*")) op = AIT_DIM_MUL;
    else if (scan_accept(s, "%")) op = AIT_DIM_MOD;
    else return AIT_OK;
    AIT_TRY(parse_unary(s, &b));
    AIT_TRY(ait_dim_make(s->graph, op, *out, b, out));
  }
}

static ait_status parse_sum(scanner *s, ait_dim *out) {
  AIT_TRY(scan_enter(s));
  AIT_TRY(parse_product(s, out));
  for (;;) {
    ait_dim_op op;
    ait_dim b;
    if (scan_accept(s, "+")) op = AIT_DIM_ADD;
    else if (scan_accept(s, "-")) op = AIT_DIM_SUB;
    else break;
    AIT_TRY(parse_product(s, &b));
    AIT_TRY(ait_dim_make(s->graph, op, *out, b, out));
  }
  --s->depth;
  return AIT_OK;
}

ait_status scan_dim(scanner *s, ait_dim *out) { return parse_sum(s, out); }

ait_status ait_dim_parse(ait_graph *g, const char *text, size_t length, ait_dim *out) {
  scanner s = {.start = text, .at = text, .end = text + length, .graph = g};
  AIT_TRY(scan_dim(&s, out));
  return scan_at_end(&s) ? AIT_OK : scan_error(&s, "text after the size");
}
