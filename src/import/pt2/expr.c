#include "import/pt2/expr.h"

enum { DEPTH_LIMIT = 100, GUARD_LIMIT = 16, NAME_LIMIT = 64 };

/* An operand: a size, or something that is none (a float, a truth value, a string): then known is false. A float may be `real`:
 * dim * num / den, without rounding in double for every size below 2^33 (den is a power of two, or the quotient is rounded at once). */
typedef struct operand {
  ait_dim dim;
  bool known, real;
  int64_t num, den;
} operand;

typedef struct reader {
  ait_graph *graph;
  const ait_expr_names *names;
  const char *at;
  int depth;
  bool broken; /* no expression of the grammar */
} reader;

static const operand nothing = {0};

static void skip_space(reader *r) {
  while (*r->at == ' ') ++r->at;
}

static bool take(reader *r, const char *token) {
  skip_space(r);
  size_t length = strlen(token);
  if (strncmp(r->at, token, length) != 0) return false;
  r->at += length;
  return true;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static operand broken(reader *r) {
  r->broken = true;
  return nothing;
}

static ait_status parse_sum(reader *r, operand *out);

static ait_status combine(reader *r, ait_dim_op op, operand a, operand b, operand *out) {
  *out = nothing;
  if (!a.known || !b.known) return AIT_OK;
  int64_t divisor;
  bool divides = op == AIT_DIM_FLOORDIV || op == AIT_DIM_CEILDIV || op == AIT_DIM_MOD;
  if (divides && ait_dim_is_const(r->graph, b.dim, &divisor) && divisor == 0) return AIT_OK;
  out->known = true;
  return ait_dim_make(r->graph, op, a.dim, b.dim, &out->dim);
}

static ait_status constant(reader *r, int64_t value, operand *out) {
  out->known = true;
  return ait_dim_const(r->graph, value, &out->dim);
}

/* ---- floats that are fractions of sizes: a scale factor of an image ----------------------------------------------------------------*/
enum { FRACTION_BITS = 20 };

static ait_status real_constant(reader *r, double value, operand *out) {
  double scaled = value * (double)(1 << FRACTION_BITS);
  *out = nothing;
  if (!(value >= 0 && value <= (double)(1 << FRACTION_BITS)) || scaled != (double)(int64_t)scaled)
    return AIT_OK; /* 1.3 is no such fraction */
  *out = (operand){.real = true, .num = (int64_t)scaled, .den = 1 << FRACTION_BITS};
  while (out->num % 2 == 0 && out->den > 1) out->num /= 2, out->den /= 2;
  return ait_dim_const(r->graph, 1, &out->dim);
}

static bool is_dyadic(const operand *a) { return a->real && (a->den & (a->den - 1)) == 0; }

static ait_status multiply_real(reader *r, operand a, operand b, operand *out) {
  int64_t one;
  *out = nothing;
  if (!is_dyadic(&a) || !is_dyadic(&b)) return AIT_OK;
  if (ait_dim_is_const(r->graph, b.dim, &one) && one == 1) {
    operand swap = a;
    a = b;
    b = swap;
  }
  if (!ait_dim_is_const(r->graph, a.dim, &one) || one != 1) return AIT_OK;
  int64_t num = a.num * b.num, den = a.den * b.den; /* at most 2^40 each */
  if (num > 1 << FRACTION_BITS || den > 1 << FRACTION_BITS) return AIT_OK;
  *out = (operand){.dim = b.dim, .real = true, .num = num, .den = den};
  return AIT_OK;
}

/* Rounded to an integer: down (which is towards zero here), or up. */
static ait_status round_real(reader *r, ait_dim_op op, operand a, operand *out) {
  int64_t min, max;
  operand size = {.dim = a.dim, .known = true}, factor = nothing;
  *out = nothing;
  if (!a.real) return AIT_OK;
  ait_dim_range(r->graph, a.dim, &min, &max);
  if (min < 0) return AIT_OK;
  AIT_TRY(constant(r, a.num, &factor));
  AIT_TRY(combine(r, AIT_DIM_MUL, size, factor, &size));
  AIT_TRY(constant(r, a.den, &factor));
  return combine(r, op, size, factor, out);
}

/* *out_is: the head is one of these. */
static ait_status apply_real(reader *r, const char *head, const operand *args, int count, operand *out, bool *out_is) {
  int64_t divisor;
  *out_is = true;
  if (!strcmp(head, "ToFloat") && count == 1) {
    if (args[0].known) *out = (operand){.dim = args[0].dim, .real = true, .num = 1, .den = 1};
    return AIT_OK;
  }
  if (!strcmp(head, "IntTrueDiv") && count == 2) {
    bool fits = args[0].known && args[1].known && ait_dim_is_const(r->graph, args[1].dim, &divisor) && divisor > 0 && divisor <= INT32_MAX;
    if (fits) *out = (operand){.dim = args[0].dim, .real = true, .num = 1, .den = divisor};
    return AIT_OK;
  }
  if (!strcmp(head, "Mul") && count == 2 && (args[0].real || args[1].real)) return multiply_real(r, args[0], args[1], out);
  if ((!strcmp(head, "TruncToInt") || !strcmp(head, "FloorToInt")) && count == 1) return round_real(r, AIT_DIM_FLOORDIV, args[0], out);
  if (!strcmp(head, "CeilToInt") && count == 1) return round_real(r, AIT_DIM_CEILDIV, args[0], out);
  *out_is = false;
  return AIT_OK;
}

/* ---- calls -----------------------------------------------------------------------------------------------------------------------*/

/* Heads with a meaning in integers. A head of more than two arguments is applied from the left. */
static const struct {
  const char *name;
  ait_dim_op op;
} heads[] = {
    {"Add", AIT_DIM_ADD},           {"Mul", AIT_DIM_MUL},           {"Max", AIT_DIM_MAX},         {"Min", AIT_DIM_MIN},
    {"max", AIT_DIM_MAX},           {"min", AIT_DIM_MIN},           {"Mod", AIT_DIM_MOD},         {"PythonMod", AIT_DIM_MOD},
    {"FloorDiv", AIT_DIM_FLOORDIV}, {"CleanDiv", AIT_DIM_FLOORDIV}, {"CeilDiv", AIT_DIM_CEILDIV}, {"Pow", AIT_DIM_POW},
    {"PowByNatural", AIT_DIM_POW},
};

/* x to a constant, non-negative power: others are no integers. */
static ait_status power(reader *r, operand a, operand b, operand *out) {
  int64_t exponent;
  *out = nothing;
  if (!b.known || !ait_dim_is_const(r->graph, b.dim, &exponent) || exponent < 0 || exponent > 62) return AIT_OK;
  return combine(r, AIT_DIM_POW, a, b, out);
}

/* a * 2^b, a // 2^b */
static ait_status shift(reader *r, ait_dim_op op, operand a, operand b, operand *out) {
  operand two = nothing, scale;
  AIT_TRY(constant(r, 2, &two));
  AIT_TRY(power(r, two, b, &scale));
  return combine(r, op, a, scale, out);
}

static ait_status apply(reader *r, const char *head, const operand *args, int count, operand *out) {
  bool done;
  *out = nothing;
  AIT_TRY(apply_real(r, head, args, count, out, &done));
  if (done) return AIT_OK;
  if (strcmp(head, "Identity") == 0 && count == 1) {
    *out = args[0];
  } else if (strcmp(head, "ModularIndexing") == 0 && count == 3) {
    operand quotient;
    AIT_TRY(combine(r, AIT_DIM_FLOORDIV, args[0], args[1], &quotient));
    return combine(r, AIT_DIM_MOD, quotient, args[2], out);
  } else if (strcmp(head, "LShift") == 0 && count == 2) {
    return shift(r, AIT_DIM_MUL, args[0], args[1], out);
  } else if (strcmp(head, "RShift") == 0 && count == 2) {
    return shift(r, AIT_DIM_FLOORDIV, args[0], args[1], out);
  }
  for (size_t i = 0; i < AIT_COUNT(heads) && count > 0; ++i) {
    if (strcmp(head, heads[i].name) != 0) continue;
    if (heads[i].op == AIT_DIM_POW) return count == 2 ? power(r, args[0], args[1], out) : AIT_OK;
    *out = args[0];
    for (int k = 1; k < count; ++k) AIT_TRY(combine(r, heads[i].op, *out, args[k], out));
  }
  return AIT_OK;
}

/* 'text' with escapes left alone; *out_begin, *out_length: what stands between the quotes. */
static bool take_string(reader *r, const char **out_begin, size_t *out_length) {
  skip_space(r);
  char quote = *r->at;
  if (quote != '\'' && quote != '"') return false;
  const char *end = r->at + 1;
  while (*end && *end != quote) end += *end == '\\' && end[1] ? 2 : 1;
  if (!*end) return false;
  *out_begin = r->at + 1;
  *out_length = (size_t)(end - *out_begin);
  r->at = end + 1;
  return true;
}

/* "positive=True": assumptions of sympy, and precisions. */
static bool take_keyword(reader *r) {
  skip_space(r);
  const char *p = r->at;
  while (is_letter(*p) || is_digit(*p)) ++p;
  if (p == r->at || *p != '=' || p[1] == '=') return false;
  for (++p; is_letter(*p) || is_digit(*p) || *p == '-';) ++p;
  r->at = p;
  return true;
}

static ait_status symbol(reader *r, const char *name, size_t length, operand *out) {
  char copy[NAME_LIMIT];
  *out = nothing;
  /* s0, u3: sizes; zf0 is a float, oo infinity, True a truth value. */
  if (length < 2 || length >= sizeof copy || (name[0] != 's' && name[0] != 'u') || !is_digit(name[1])) return AIT_OK;
  memcpy(copy, name, length);
  copy[length] = 0;
  out->known = true;
  return ait_dim_symbol(r->graph, copy, &out->dim);
}

static ait_status parse_call(reader *r, const char *head, operand *out) {
  enum { ARG_LIMIT = 256 };
  operand args[ARG_LIMIT];
  int count = 0;
  bool is_symbol = strcmp(head, "Symbol") == 0, is_float = strcmp(head, "Float") == 0, is_integer = strcmp(head, "Integer") == 0;
  *out = nothing;
  while (!r->broken && !take(r, ")")) {
    const char *text;
    size_t length;
    operand arg = nothing;
    if (count == ARG_LIMIT) {
      broken(r);
      break;
    }
    if (take_string(r, &text, &length)) {
      if (is_symbol) AIT_TRY(symbol(r, text, length, &arg));
      if (is_float) AIT_TRY(real_constant(r, ait_parse_double(text, NULL), &arg)); /* stops at the quote */
      args[count++] = arg;
    } else if (!take_keyword(r)) {
      AIT_TRY(parse_sum(r, &arg));
      args[count++] = arg;
    }
    if (!take(r, ",") && *r->at != ')') broken(r);
  }
  if (r->broken) return AIT_OK;
  if (is_symbol || is_integer || is_float) {
    if (count == 1) *out = args[0];
    return AIT_OK;
  }
  return apply(r, head, args, count, out);
}

/* ---- operators -------------------------------------------------------------------------------------------------------------------*/

/* L['x']['k'][0].size()[1], L['n'] */
static ait_status parse_local(reader *r, operand *out) {
  const char *begin = r->at - 1; /* at L */
  const char *text;
  size_t length;
  *out = nothing;
  while (*r->at == '[') {
    ++r->at;
    if (!take_string(r, &text, &length)) {
      while (is_digit(*r->at)) ++r->at;
    }
    if (!take(r, "]")) return broken(r), AIT_OK;
  }
  size_t path = (size_t)(r->at - begin);
  int64_t axis = -1;
  if (take(r, ".size()[")) {
    axis = 0;
    while (is_digit(*r->at) && axis < AIT_MAX_RANK) axis = axis * 10 + (*r->at++ - '0');
    if (!take(r, "]")) return broken(r), AIT_OK;
  }
  if (r->names) out->known = r->names->find(r->names->ctx, begin, path, axis, &out->dim);
  return AIT_OK;
}

static ait_status parse_number(reader *r, operand *out) {
  int64_t value = 0;
  bool exact = true;
  while (is_digit(*r->at)) {
    exact = exact && !ait_mul_overflows(value, 10, &value) && !ait_add_overflows(value, *r->at - '0', &value);
    ++r->at;
  }
  if (*r->at == '.' || *r->at == 'e') { /* a float */
    exact = false;
    while (is_digit(*r->at) || *r->at == '.' || *r->at == 'e' || ((*r->at == '-' || *r->at == '+') && r->at[-1] == 'e')) ++r->at;
  }
  *out = nothing;
  return exact ? constant(r, value, out) : AIT_OK;
}

static ait_status parse_name(reader *r, operand *out) {
  const char *begin = r->at;
  while (is_letter(*r->at) || is_digit(*r->at) || (*r->at == '.' && is_letter(r->at[1]))) ++r->at;
  size_t length = (size_t)(r->at - begin);
  if (length == 1 && *begin == 'L' && *r->at == '[') return parse_local(r, out);
  if (*r->at != '(') return symbol(r, begin, length, out);
  char head[NAME_LIMIT] = "";
  if (length < sizeof head) memcpy(head, begin, length);
  ++r->at;
  return parse_call(r, head, out);
}

static ait_status parse_power(reader *r, operand *out);

static ait_status parse_primary(reader *r, operand *out) {
  *out = nothing;
  skip_space(r);
  if (++r->depth > DEPTH_LIMIT) return broken(r), AIT_OK;
  ait_status status = AIT_OK;
  if (take(r, "(")) {
    status = parse_sum(r, out);
    if (!status && !take(r, ")")) broken(r);
  } else if (take(r, "-")) {
    operand zero = nothing, value = nothing;
    AIT_TRY(parse_power(r, &value));
    AIT_TRY(constant(r, 0, &zero));
    status = combine(r, AIT_DIM_SUB, zero, value, out);
  } else if (is_digit(*r->at)) {
    status = parse_number(r, out);
  } else if (is_letter(*r->at)) {
    status = parse_name(r, out);
  } else {
    broken(r);
  }
  --r->depth;
  return status;
}

static ait_status parse_power(reader *r, operand *out) {
  AIT_TRY(parse_primary(r, out));
  if (r->broken || !take(r, "**")) return AIT_OK;
  operand exponent;
  AIT_TRY(parse_primary(r, &exponent));
  return r->broken ? AIT_OK : power(r, *out, exponent, out);
}

static ait_status parse_product(reader *r, operand *out) {
  AIT_TRY(parse_power(r, out));
  while (!r->broken) {
    ait_dim_op op;
    bool exact = true;
    if (take(r, "//")) op = AIT_DIM_FLOORDIV;
    else if (take(r, "*")) op = AIT_DIM_MUL;
    else if (take(r, "%")) op = AIT_DIM_MOD;
    else if (take(r, "/")) op = AIT_DIM_FLOORDIV, exact = false;
    else break;
    operand right;
    AIT_TRY(parse_power(r, &right));
    if (r->broken) break;
    AIT_TRY(combine(r, op, *out, right, out));
    if (!exact) *out = nothing; /* true division has no place among integers */
  }
  return AIT_OK;
}

static ait_status parse_sum(reader *r, operand *out) {
  AIT_TRY(parse_product(r, out));
  while (!r->broken) {
    ait_dim_op op;
    if (take(r, "+")) op = AIT_DIM_ADD;
    else if (take(r, "-")) op = AIT_DIM_SUB;
    else break;
    operand right;
    AIT_TRY(parse_product(r, &right));
    if (!r->broken) AIT_TRY(combine(r, op, *out, right, out));
  }
  return AIT_OK;
}

ait_status ait_expr_parse(ait_graph *graph, const char *text, const ait_expr_names *names, ait_dim *out) {
  reader r = {.graph = graph, .names = names, .at = text};
  operand value;
  AIT_TRY(parse_sum(&r, &value));
  skip_space(&r);
  if (r.broken || *r.at || !value.known) return ait_dim_unknown(graph, out);
  *out = value.dim;
  return AIT_OK;
}

/* ---- guards ----------------------------------------------------------------------------------------------------------------------*/

typedef struct comparison {
  ait_guard_op op;
  operand left, right;
} comparison;

static bool take_comparison(reader *r, ait_guard_op *op, bool *swapped) {
  static const struct {
    const char *token;
    ait_guard_op op;
    bool swapped;
  } tokens[] = {{"==", AIT_GUARD_EQ, false}, {"!=", AIT_GUARD_NE, false}, {"<=", AIT_GUARD_LE, false},
                {">=", AIT_GUARD_LE, true},  {"<", AIT_GUARD_LT, false},  {">", AIT_GUARD_LT, true}};
  for (size_t i = 0; i < AIT_COUNT(tokens); ++i) {
    if (!take(r, tokens[i].token)) continue;
    *op = tokens[i].op;
    *swapped = tokens[i].swapped;
    return true;
  }
  return false;
}

/* a <= b < c: two comparisons. */
static ait_status parse_chain(reader *r, comparison *found, int *count) {
  operand left, right;
  ait_guard_op op;
  bool swapped, any = false;
  AIT_TRY(parse_sum(r, &left));
  while (!r->broken && take_comparison(r, &op, &swapped)) {
    AIT_TRY(parse_sum(r, &right));
    if (r->broken || *count == GUARD_LIMIT) return broken(r), AIT_OK;
    found[(*count)++] = (comparison){.op = op, .left = swapped ? right : left, .right = swapped ? left : right};
    left = right;
    any = true;
  }
  if (!any) broken(r);
  return AIT_OK;
}

ait_status ait_expr_add_guards(ait_graph *graph, const char *text, const ait_expr_names *names) {
  reader r = {.graph = graph, .names = names, .at = text};
  comparison found[GUARD_LIMIT];
  int count = 0;
  do AIT_TRY(parse_chain(&r, found, &count));
  while (!r.broken && take(&r, "and "));
  skip_space(&r);
  if (r.broken || *r.at) return AIT_OK;
  for (int i = 0; i < count; ++i) {
    const comparison *c = &found[i];
    if (!c->left.known || !c->right.known) continue;
    if (c->left.dim == c->right.dim && (c->op == AIT_GUARD_EQ || c->op == AIT_GUARD_LE)) continue; /* the shapes say it already */
    if (!ait_dim_is_known(graph, c->left.dim) || !ait_dim_is_known(graph, c->right.dim)) continue;
    AIT_TRY(ait_graph_add_guard(graph, c->op, c->left.dim, c->right.dim, text));
  }
  return AIT_OK;
}
