/* Tokens to a tree. Grammar and precedence: jinja2.parser. */
#include "llm/text/jinja.h"

typedef struct parser {
  ait_arena *arena;
  const ait_jtok *t; /* the current token; the last one is END */
  int depth, loops;
} parser;

static ait_status fail(const parser *p, const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "line %d: %s", p->t->line, what); }

static ait_status new_node(parser *p, ait_jn_kind kind, ait_jn **out) {
  ait_jn *n = AIT_ARENA_NEW(p->arena, ait_jn);
  if (!n) return AIT_OOM();
  n->kind = kind;
  n->line = p->t->line;
  *out = n;
  return AIT_OK;
}

static bool is_op(const parser *p, const char *op) { return p->t->kind == AIT_JT_OP && strcmp(p->t->op, op) == 0; }
static bool is_name(const ait_jtok *t, const char *name) { return t->kind == AIT_JT_NAME && strcmp(t->text, name) == 0; }

static bool skip_op(parser *p, const char *op) {
  if (!is_op(p, op)) return false;
  ++p->t;
  return true;
}

static bool skip_name(parser *p, const char *name) {
  if (!is_name(p->t, name)) return false;
  ++p->t;
  return true;
}

static ait_status expect_op(parser *p, const char *op) {
  if (skip_op(p, op)) return AIT_OK;
  return ait_error(AIT_CODE_INVALID_MODEL, "line %d: '%s' expected", p->t->line, op);
}

static ait_status expect_end(parser *p) {
  if (p->t->kind != AIT_JT_BLOCK_END) return fail(p, "'%}' expected");
  ++p->t;
  return AIT_OK;
}

static ait_status parse_expression(parser *p, ait_jn **out);
static ait_status parse_unary(parser *p, bool filters, ait_jn **out);
static ait_status parse_statements(parser *p, const char *const *ends, ait_jn **out);

/* ---- arguments
 * -------------------------------------------------------------------------------------------------------------------------*/
static ait_status parse_arguments(parser *p, ait_jn **out) {
  ait_jn **tail = out;
  AIT_TRY(expect_op(p, "("));
  while (!is_op(p, ")")) {
    char spread = skip_op(p, "*") ? '*' : skip_op(p, "**") ? '2' : 0;
    const char *keyword = NULL;
    if (!spread && p->t->kind == AIT_JT_NAME && p->t[1].kind == AIT_JT_OP && strcmp(p->t[1].op, "=") == 0) {
      keyword = p->t->text;
      p->t += 2;
    }
    ait_jn *wrapper;
    AIT_TRY(new_node(p, AIT_JN_CONST, &wrapper)); /* a: the value; text: the keyword */
    AIT_TRY(parse_expression(p, &wrapper->a));
    wrapper->text = keyword;
    wrapper->spread = spread;
    *tail = wrapper;
    tail = &wrapper->next;
    if (!skip_op(p, ",")) break;
  }
  return expect_op(p, ")");
}

/* ---- primary expressions
 * -----------------------------------------------------------------------------------------------------------------*/
/* Wraps a value so that it can stand in a list without touching its own `next`. */
static ait_status parse_list_item(parser *p, ait_jn ***tail) {
  ait_jn *item;
  AIT_TRY(new_node(p, AIT_JN_CONST, &item));
  AIT_TRY(parse_expression(p, &item->a));
  **tail = item;
  *tail = &item->next;
  return AIT_OK;
}

static ait_status parse_list(parser *p, ait_jn **out) {
  AIT_TRY(new_node(p, AIT_JN_LIST, out));
  ait_jn **tail = &(*out)->list;
  ++p->t;
  while (!is_op(p, "]")) {
    AIT_TRY(parse_list_item(p, &tail));
    if (!skip_op(p, ",")) break;
  }
  return expect_op(p, "]");
}

static ait_status parse_dict(parser *p, ait_jn **out) {
  AIT_TRY(new_node(p, AIT_JN_DICT, out));
  ait_jn **tail = &(*out)->list;
  ++p->t;
  while (!is_op(p, "}")) {
    AIT_TRY(parse_list_item(p, &tail));
    AIT_TRY(expect_op(p, ":"));
    AIT_TRY(parse_list_item(p, &tail));
    if (!skip_op(p, ",")) break;
  }
  return expect_op(p, "}");
}

/* a, b, c: a tuple; one expression alone is itself. Ends before `)`, a block's end, "in" of a target … */
static ait_status parse_tuple(parser *p, bool parentheses, ait_status (*item)(parser *, ait_jn **), ait_jn **out) {
  ait_jn *tuple, **tail;
  bool comma = false;
  size_t count = 0;
  AIT_TRY(new_node(p, AIT_JN_TUPLE, &tuple));
  tail = &tuple->list;
  while (!(p->t->kind == AIT_JT_BLOCK_END || p->t->kind == AIT_JT_VARIABLE_END || is_op(p, ")") || is_name(p->t, "in"))) {
    ait_jn *wrapper;
    AIT_TRY(new_node(p, AIT_JN_CONST, &wrapper));
    AIT_TRY(item(p, &wrapper->a));
    *tail = wrapper;
    tail = &wrapper->next;
    ++count;
    comma = skip_op(p, ",");
    if (!comma) break;
    tuple->op = AIT_JOP_CONCAT; /* had a comma */
  }
  if (count == 1 && tuple->op == AIT_JOP_NONE) *out = tuple->list->a;
  else if (count == 0 && !parentheses) return fail(p, "an expression expected");
  else *out = tuple;
  tuple->op = AIT_JOP_NONE;
  return AIT_OK;
}

static ait_status parse_literal_name(parser *p, ait_jn **out) {
  const char *name = p->t->text;
  if (!strcmp(name, "true") || !strcmp(name, "True") || !strcmp(name, "false") || !strcmp(name, "False"))
    (*out)->value = ait_jv_bool(name[0] == 't' || name[0] == 'T');
  else if (!strcmp(name, "none") || !strcmp(name, "None")) (*out)->value = ait_jv_none();
  else {
    (*out)->kind = AIT_JN_NAME;
    (*out)->text = name;
  }
  ++p->t;
  return AIT_OK;
}

static ait_status parse_strings(parser *p, ait_jn *out) {
  ait_text text;
  ait_text_init(&text, p->arena->allocator);
  for (; p->t->kind == AIT_JT_STRING; ++p->t) ait_text_append(&text, p->t->text, p->t->size);
  char *copy = text.failed ? NULL : ait_arena_strdup(p->arena, text.data ? text.data : "", text.length);
  out->value = ait_jv_span(copy, text.length);
  ait_text_deinit(&text);
  return copy ? AIT_OK : AIT_OOM();
}

static ait_status parse_primary(parser *p, ait_jn **out) {
  AIT_TRY(new_node(p, AIT_JN_CONST, out));
  switch (p->t->kind) {
    case AIT_JT_NAME: return parse_literal_name(p, out);
    case AIT_JT_STRING: return parse_strings(p, *out);
    case AIT_JT_INT: return (*out)->value = ait_jv_int(p->t++->i), AIT_OK;
    case AIT_JT_FLOAT: return (*out)->value = ait_jv_float(p->t++->f), AIT_OK;
    default: break;
  }
  if (is_op(p, "[")) return parse_list(p, out);
  if (is_op(p, "{")) return parse_dict(p, out);
  if (skip_op(p, "(")) {
    AIT_TRY(parse_tuple(p, true, parse_expression, out));
    return expect_op(p, ")");
  }
  return fail(p, "an expression expected");
}

/* ---- a.b, a[b], a(b), a|f, a is t
 * --------------------------------------------------------------------------------------------------------*/
static ait_status parse_subscribed(parser *p, ait_jn **out) {
  ait_jn *slice;
  AIT_TRY(new_node(p, AIT_JN_SLICE, &slice));
  if (!is_op(p, ":")) AIT_TRY(parse_expression(p, &slice->a));
  if (!is_op(p, ":")) return *out = slice->a, AIT_OK;
  ++p->t;
  if (!is_op(p, ":") && !is_op(p, "]")) AIT_TRY(parse_expression(p, &slice->b));
  if (skip_op(p, ":") && !is_op(p, "]")) AIT_TRY(parse_expression(p, &slice->c));
  *out = slice;
  return AIT_OK;
}

static ait_status parse_dot(parser *p, ait_jn **node) {
  ait_jn *n;
  AIT_TRY(new_node(p, AIT_JN_ATTR, &n));
  n->a = *node;
  if (p->t->kind == AIT_JT_NAME) {
    n->text = p->t->text;
  } else if (p->t->kind == AIT_JT_INT) {
    n->kind = AIT_JN_ITEM;
    AIT_TRY(new_node(p, AIT_JN_CONST, &n->b));
    n->b->value = ait_jv_int(p->t->i);
  } else {
    return fail(p, "a name expected behind '.'");
  }
  ++p->t;
  *node = n;
  return AIT_OK;
}

static ait_status parse_postfix(parser *p, bool calls, ait_jn **node) {
  while (true) {
    ait_jn *n;
    if (skip_op(p, ".")) {
      AIT_TRY(parse_dot(p, node));
    } else if (is_op(p, "[")) {
      AIT_TRY(new_node(p, AIT_JN_ITEM, &n));
      ++p->t;
      n->a = *node;
      AIT_TRY(parse_subscribed(p, &n->b));
      AIT_TRY(expect_op(p, "]"));
      *node = n;
    } else if (calls && is_op(p, "(")) {
      AIT_TRY(new_node(p, AIT_JN_CALL, &n));
      n->a = *node;
      AIT_TRY(parse_arguments(p, &n->list));
      *node = n;
    } else {
      return AIT_OK;
    }
  }
}

/* Behind '|' or as the first filter of a block. */
static ait_status parse_filter(parser *p, ait_jn **node) {
  ait_jn *n;
  AIT_TRY(new_node(p, AIT_JN_FILTER, &n));
  if (p->t->kind != AIT_JT_NAME) return fail(p, "the name of a filter expected");
  n->text = p->t++->text;
  n->a = *node;
  if (is_op(p, "(")) AIT_TRY(parse_arguments(p, &n->list));
  *node = n;
  return AIT_OK;
}

static ait_status parse_test(parser *p, ait_jn **node) {
  ait_jn *n, *negation;
  bool negated = skip_name(p, "not");
  AIT_TRY(new_node(p, AIT_JN_TEST, &n));
  if (p->t->kind != AIT_JT_NAME) return fail(p, "the name of a test expected");
  n->text = p->t++->text;
  n->a = *node;
  bool operand = p->t->kind == AIT_JT_STRING || p->t->kind == AIT_JT_INT || p->t->kind == AIT_JT_FLOAT || is_op(p, "[") || is_op(p, "{") ||
                 (p->t->kind == AIT_JT_NAME && !is_name(p->t, "else") && !is_name(p->t, "or") && !is_name(p->t, "and"));
  if (is_op(p, "(")) {
    AIT_TRY(parse_arguments(p, &n->list));
  } else if (operand) {
    if (is_name(p->t, "is")) return fail(p, "tests cannot be chained with 'is'");
    AIT_TRY(new_node(p, AIT_JN_CONST, &n->list));
    AIT_TRY(parse_primary(p, &n->list->a));
    AIT_TRY(parse_postfix(p, true, &n->list->a));
  }
  *node = n;
  if (!negated) return AIT_OK;
  AIT_TRY(new_node(p, AIT_JN_NOT, &negation));
  negation->a = n;
  *node = negation;
  return AIT_OK;
}

static ait_status parse_filters(parser *p, ait_jn **node) {
  while (true) {
    if (skip_op(p, "|")) AIT_TRY(parse_filter(p, node));
    else if (skip_name(p, "is")) AIT_TRY(parse_test(p, node));
    else if (is_op(p, "(")) AIT_TRY(parse_postfix(p, true, node));
    else return AIT_OK;
  }
}

/* ---- operators
 * -------------------------------------------------------------------------------------------------------------------------*/
static ait_status parse_unary_inner(parser *p, bool filters, ait_jn **out) {
  bool minus = is_op(p, "-");
  if (minus || is_op(p, "+")) {
    AIT_TRY(new_node(p, minus ? AIT_JN_NEGATE : AIT_JN_PLUS, out));
    ++p->t;
    AIT_TRY(parse_unary(p, false, &(*out)->a));
  } else {
    AIT_TRY(parse_primary(p, out));
  }
  AIT_TRY(parse_postfix(p, true, out));
  return filters ? parse_filters(p, out) : AIT_OK;
}

static ait_status parse_unary(parser *p, bool filters, ait_jn **out) {
  if (++p->depth > AIT_JINJA_NESTING) return fail(p, "expressions nested too deeply");
  AIT_TRY(parse_unary_inner(p, filters, out));
  --p->depth;
  return AIT_OK;
}

/* Binary levels from the tightest to the loosest. */
static const struct {
  const char *text;
  ait_jop op;
} levels[4][5] = {{{"**", AIT_JOP_POW}},
                  {{"*", AIT_JOP_MUL}, {"/", AIT_JOP_DIV}, {"//", AIT_JOP_FLOORDIV}, {"%", AIT_JOP_MOD}},
                  {{"~", AIT_JOP_CONCAT}},
                  {{"+", AIT_JOP_ADD}, {"-", AIT_JOP_SUB}}};

static ait_jop level_op(const parser *p, int level) {
  for (int i = 0; levels[level][i].text; ++i) {
    if (is_op(p, levels[level][i].text)) return levels[level][i].op;
  }
  return AIT_JOP_NONE;
}

static ait_status parse_level(parser *p, int level, ait_jn **out) {
  if (level < 0) return parse_unary(p, true, out);
  AIT_TRY(parse_level(p, level - 1, out));
  for (ait_jop op; (op = level_op(p, level));) {
    ait_jn *n;
    AIT_TRY(new_node(p, AIT_JN_BINARY, &n));
    ++p->t;
    n->op = op;
    n->a = *out;
    AIT_TRY(parse_level(p, level - 1, &n->b));
    *out = n;
  }
  return AIT_OK;
}

static ait_jop take_comparison(parser *p) {
  static const struct {
    const char *text;
    ait_jop op;
  } known[] = {{"==", AIT_JOP_EQ}, {"!=", AIT_JOP_NE}, {"<", AIT_JOP_LT}, {"<=", AIT_JOP_LE}, {">", AIT_JOP_GT}, {">=", AIT_JOP_GE}};
  for (size_t i = 0; i < AIT_COUNT(known); ++i) {
    if (skip_op(p, known[i].text)) return known[i].op;
  }
  if (skip_name(p, "in")) return AIT_JOP_IN;
  if (!is_name(p->t, "not") || !is_name(p->t + 1, "in")) return AIT_JOP_NONE;
  p->t += 2;
  return AIT_JOP_NOT_IN;
}

static ait_status parse_compare(parser *p, ait_jn **out) {
  AIT_TRY(parse_level(p, 3, out));
  ait_jn *n = NULL, **tail = NULL, *operand;
  for (ait_jop op; (op = take_comparison(p));) {
    if (!n) {
      AIT_TRY(new_node(p, AIT_JN_COMPARE, &n));
      n->a = *out;
      *out = n;
      tail = &n->list;
    }
    AIT_TRY(new_node(p, AIT_JN_CONST, &operand));
    operand->op = op;
    AIT_TRY(parse_level(p, 3, &operand->a));
    *tail = operand;
    tail = &operand->next;
  }
  return AIT_OK;
}

static ait_status parse_not(parser *p, ait_jn **out) {
  ait_jn *first = NULL, *n;
  ait_jn **hole = &first;
  while (is_name(p->t, "not")) {
    AIT_TRY(new_node(p, AIT_JN_NOT, &n));
    ++p->t;
    *hole = n;
    hole = &n->a;
    if (++p->depth > AIT_JINJA_NESTING) return fail(p, "expressions nested too deeply");
  }
  for (n = first; n; n = n->a) --p->depth;
  AIT_TRY(parse_compare(p, hole));
  *out = first;
  return AIT_OK;
}

static ait_status parse_logic(parser *p, bool is_or, ait_jn **out) {
  AIT_TRY(is_or ? parse_logic(p, false, out) : parse_not(p, out));
  while (skip_name(p, is_or ? "or" : "and")) {
    ait_jn *n;
    AIT_TRY(new_node(p, is_or ? AIT_JN_OR : AIT_JN_AND, &n));
    n->a = *out;
    AIT_TRY(is_or ? parse_logic(p, false, &n->b) : parse_not(p, &n->b));
    *out = n;
  }
  return AIT_OK;
}

static ait_status parse_expression(parser *p, ait_jn **out) {
  if (++p->depth > AIT_JINJA_NESTING) return fail(p, "expressions nested too deeply");
  AIT_TRY(parse_logic(p, true, out));
  while (skip_name(p, "if")) {
    ait_jn *n;
    AIT_TRY(new_node(p, AIT_JN_COND, &n));
    n->a = *out;
    AIT_TRY(parse_logic(p, true, &n->b));
    if (skip_name(p, "else")) AIT_TRY(parse_expression(p, &n->c));
    *out = n;
  }
  --p->depth;
  return AIT_OK;
}

/* ---- statements
 * ------------------------------------------------------------------------------------------------------------------------*/
static ait_status parse_target_item(parser *p, ait_jn **out) {
  AIT_TRY(parse_primary(p, out));
  if (skip_op(p, ".")) {
    AIT_TRY(parse_dot(p, out));
    if ((*out)->kind != AIT_JN_ATTR || (*out)->a->kind != AIT_JN_NAME) return fail(p, "this cannot be assigned to");
  } else if ((*out)->kind != AIT_JN_NAME && (*out)->kind != AIT_JN_TUPLE) {
    return fail(p, "this cannot be assigned to");
  }
  for (ait_jn *n = (*out)->kind == AIT_JN_TUPLE ? (*out)->list : NULL; n; n = n->next) {
    if (n->a->kind != AIT_JN_NAME && n->a->kind != AIT_JN_TUPLE) return fail(p, "this cannot be assigned to");
  }
  return AIT_OK;
}

static ait_status parse_body(parser *p, const char *const *ends, ait_jn **out) {
  AIT_TRY(expect_end(p));
  return parse_statements(p, ends, out);
}

static ait_status parse_if(parser *p, ait_jn *n) {
  static const char *const ends[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
  while (true) {
    AIT_TRY(parse_expression(p, &n->a));
    AIT_TRY(parse_body(p, ends, &n->list));
    if (!skip_name(p, "elif")) break;
    AIT_TRY(new_node(p, AIT_JN_IF, &n->b));
    n = n->b;
  }
  if (skip_name(p, "else")) AIT_TRY(parse_body(p, last, &n->other));
  ++p->t; /* endif */
  return AIT_OK;
}

static ait_status parse_for(parser *p, ait_jn *n) {
  static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
  AIT_TRY(parse_tuple(p, false, parse_target_item, &n->a));
  if (!skip_name(p, "in")) return fail(p, "'in' expected");
  AIT_TRY(parse_logic(p, true, &n->b)); /* no "x if y" here: the if is the loop's */
  if (is_op(p, ",")) return fail(p, "a tuple without parentheses cannot be iterated over here");
  if (skip_name(p, "if")) AIT_TRY(parse_expression(p, &n->c));
  if (is_name(p->t, "recursive")) return ait_error(AIT_CODE_UNSUPPORTED, "line %d: recursive loops", p->t->line);
  ++p->loops;
  AIT_TRY(parse_body(p, ends, &n->list));
  --p->loops;
  if (skip_name(p, "else")) AIT_TRY(parse_body(p, last, &n->other));
  ++p->t; /* endfor */
  return AIT_OK;
}

static ait_status parse_set(parser *p, ait_jn *n) {
  static const char *const ends[] = {"endset", NULL};
  AIT_TRY(parse_tuple(p, false, parse_target_item, &n->a));
  if (skip_op(p, "=")) return parse_tuple(p, false, parse_expression, &n->b);
  n->kind = AIT_JN_SET_BLOCK;
  while (skip_op(p, "|")) AIT_TRY(parse_filter(p, &n->b));
  AIT_TRY(parse_body(p, ends, &n->list));
  ++p->t;
  return AIT_OK;
}

/* (a, b=1) */
static ait_status parse_parameters(parser *p, ait_jn **out) {
  AIT_TRY(expect_op(p, "("));
  while (!is_op(p, ")")) {
    if (p->t->kind != AIT_JT_NAME) return fail(p, "the name of a parameter expected");
    AIT_TRY(new_node(p, AIT_JN_NAME, out));
    (*out)->text = p->t++->text;
    if (skip_op(p, "=")) AIT_TRY(parse_expression(p, &(*out)->a));
    out = &(*out)->next;
    if (!skip_op(p, ",")) break;
  }
  return expect_op(p, ")");
}

static ait_status parse_macro(parser *p, ait_jn *n) {
  static const char *const ends[] = {"endmacro", NULL};
  int loops = p->loops;
  if (p->t->kind != AIT_JT_NAME) return fail(p, "the name of a macro expected");
  n->text = p->t++->text;
  AIT_TRY(parse_parameters(p, &n->other));
  p->loops = 0;
  AIT_TRY(parse_body(p, ends, &n->list));
  p->loops = loops;
  ++p->t;
  skip_name(p, n->text);
  return AIT_OK;
}

static ait_status parse_call_block(parser *p, ait_jn *n) {
  static const char *const ends[] = {"endcall", NULL};
  int loops = p->loops;
  if (is_op(p, "(")) AIT_TRY(parse_parameters(p, &n->other));
  AIT_TRY(parse_expression(p, &n->a));
  if (n->a->kind != AIT_JN_CALL) return fail(p, "a call expected");
  p->loops = 0;
  AIT_TRY(parse_body(p, ends, &n->list));
  p->loops = loops;
  ++p->t;
  return AIT_OK;
}

static ait_status parse_filter_block(parser *p, ait_jn *n) {
  static const char *const ends[] = {"endfilter", NULL};
  do AIT_TRY(parse_filter(p, &n->b));
  while (skip_op(p, "|"));
  AIT_TRY(parse_body(p, ends, &n->list));
  ++p->t;
  return AIT_OK;
}

static ait_status parse_with(parser *p, ait_jn *n) {
  static const char *const ends[] = {"endwith", NULL};
  for (ait_jn **tail = &n->other; p->t->kind != AIT_JT_BLOCK_END; tail = &(*tail)->next) {
    if (n->other) AIT_TRY(expect_op(p, ","));
    AIT_TRY(new_node(p, AIT_JN_SET, tail));
    AIT_TRY(parse_target_item(p, &(*tail)->a));
    AIT_TRY(expect_op(p, "="));
    AIT_TRY(parse_expression(p, &(*tail)->b));
  }
  AIT_TRY(parse_body(p, ends, &n->list));
  ++p->t;
  return AIT_OK;
}

static ait_status parse_generation(parser *p, ait_jn *n) {
  static const char *const ends[] = {"endgeneration", NULL};
  AIT_TRY(parse_body(p, ends, &n->list));
  ++p->t;
  return AIT_OK;
}

static ait_status parse_loop_control(parser *p, ait_jn *n) {
  AIT_UNUSED(n);
  return p->loops ? AIT_OK : fail(p, "'break' or 'continue' outside a loop");
}

static ait_status parse_block(parser *p, ait_jn **out) {
  static const struct {
    const char *name;
    ait_jn_kind kind;
    ait_status (*parse)(parser *, ait_jn *);
  } known[] = {{"if", AIT_JN_IF, parse_if},
               {"for", AIT_JN_FOR, parse_for},
               {"set", AIT_JN_SET, parse_set},
               {"macro", AIT_JN_MACRO, parse_macro},
               {"call", AIT_JN_CALL_BLOCK, parse_call_block},
               {"filter", AIT_JN_FILTER_BLOCK, parse_filter_block},
               {"with", AIT_JN_WITH, parse_with},
               {"generation", AIT_JN_BODY, parse_generation},
               {"break", AIT_JN_BREAK, parse_loop_control},
               {"continue", AIT_JN_CONTINUE, parse_loop_control}};
  const char *name = p->t->kind == AIT_JT_NAME ? p->t->text : "";
  for (size_t i = 0; i < AIT_COUNT(known); ++i) {
    if (strcmp(name, known[i].name) != 0) continue;
    AIT_TRY(new_node(p, known[i].kind, out));
    ++p->t;
    AIT_TRY(known[i].parse(p, *out));
    return expect_end(p);
  }
  return ait_error(*name ? AIT_CODE_UNSUPPORTED : AIT_CODE_INVALID_MODEL, "line %d: tag '%s' is not known here", p->t->line, name);
}

/* Up to a block whose tag is one of ends (its name is the current token then), or the end of the template. */
static ait_status parse_some(parser *p, const char *const *ends, ait_jn **out) {
  for (; p->t->kind != AIT_JT_END; out = &(*out)->next) {
    if (p->t->kind == AIT_JT_TEXT) {
      AIT_TRY(new_node(p, AIT_JN_TEXT, out));
      (*out)->value = ait_jv_span(p->t->text, p->t->size);
      ++p->t;
    } else if (p->t->kind == AIT_JT_VARIABLE) {
      AIT_TRY(new_node(p, AIT_JN_OUTPUT, out));
      ++p->t;
      AIT_TRY(parse_tuple(p, false, parse_expression, &(*out)->a));
      if (p->t->kind != AIT_JT_VARIABLE_END) return fail(p, "'}}' expected");
      ++p->t;
    } else {
      ++p->t; /* {% */
      for (size_t i = 0; ends && ends[i]; ++i) {
        if (is_name(p->t, ends[i])) return AIT_OK;
      }
      AIT_TRY(parse_block(p, out));
    }
  }
  return ends ? ait_error(AIT_CODE_INVALID_MODEL, "line %d: the template ends before '%s'", p->t->line, ends[0]) : AIT_OK;
}

static ait_status parse_statements(parser *p, const char *const *ends, ait_jn **out) {
  if (++p->depth > AIT_JINJA_NESTING) return fail(p, "blocks nested too deeply");
  AIT_TRY(parse_some(p, ends, out));
  --p->depth;
  return AIT_OK;
}

ait_status ait_jinja_parse(ait_arena *arena, const char *source, size_t size, ait_jn **out) {
  ait_jtok *tokens;
  size_t count;
  *out = NULL;
  AIT_TRY(ait_jinja_lex(arena, source, size, &tokens, &count));
  parser p = {.arena = arena, .t = tokens};
  return parse_statements(&p, NULL, out);
}
