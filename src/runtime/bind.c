/* The caller's inputs against what the exported program declares: the gate before every run. */
#include "backends/dims.h"
#include "runtime/runtime.h"
#include <stdio.h>

#define UNBOUND INT64_MIN

typedef struct binder {
  const ait_region *region;
  const ait_value *inputs;
  size_t input_count;
  int64_t *symbols;
} binder;

static const char *kind_name(ait_value_kind kind) {
  static const char *const names[] = {"none", "a tensor", "an int", "a float", "a bool", "a string"};
  return kind <= AIT_VALUE_STRING ? names[kind] : "of an unknown kind";
}

static const char *input_name(const ait_region_input *in, char *buffer, size_t size) {
  if (in->name && in->name[0]) return in->name;
  snprintf(buffer, size, "%d", in->user_index);
  return buffer;
}

/* "input 'ids': " and the rest. */
static ait_status refuse(const ait_region_input *in, ait_status status) {
  char buffer[24];
  return ait_error_context(status, "input '%s'", input_name(in, buffer, sizeof buffer));
}

/* ---- baked values ----------------------------------------------------------------------------------------------------------------*/
static ait_status check_baked(const ait_region_input *in, const ait_value *v) {
  const ait_arg *want = &in->baked;
  bool same = false;
  switch (want->kind) {
    case AIT_ARG_INT:
      same = v->kind == AIT_VALUE_INT && v->as.i == want->as.i;
      if (!same) return refuse(in, ait_error(AIT_CODE_INVALID_ARGUMENT, "export fixed it at %lld", (long long)want->as.i));
      break;
    case AIT_ARG_FLOAT:
      same = v->kind == AIT_VALUE_FLOAT && (v->as.f == want->as.f || (v->as.f != v->as.f && want->as.f != want->as.f));
      if (!same) return refuse(in, ait_error(AIT_CODE_INVALID_ARGUMENT, "export fixed it at the float %.17g", want->as.f));
      break;
    case AIT_ARG_BOOL:
      same = v->kind == AIT_VALUE_BOOL && v->as.b == want->as.b;
      if (!same) return refuse(in, ait_error(AIT_CODE_INVALID_ARGUMENT, "export fixed it at %s", want->as.b ? "true" : "false"));
      break;
    case AIT_ARG_STRING:
      same = v->kind == AIT_VALUE_STRING && v->as.s && strcmp(v->as.s, want->as.string) == 0;
      if (!same) return refuse(in, ait_error(AIT_CODE_INVALID_ARGUMENT, "export fixed it at '%s'", want->as.string));
      break;
    default:
      if (v->kind != AIT_VALUE_NONE)
        return refuse(in, ait_error(AIT_CODE_INVALID_ARGUMENT, "is %s, but export fixed it at none", kind_name(v->kind)));
  }
  return AIT_OK;
}

/* ---- symbols ---------------------------------------------------------------------------------------------------------------------*/
/* What is being compared with an expression: a dimension of a tensor input, or (dim < 0) an int input. */
typedef struct place {
  const ait_region_input *input;
  int32_t dim;
} place;

static void describe(place p, int64_t got, char *out, size_t size) {
  if (p.dim >= 0) snprintf(out, size, "dimension %d is %lld", p.dim, (long long)got);
  else snprintf(out, size, "is %lld", (long long)got);
}

/* `value`: what the symbol becomes; `got`: the size it was read or solved from. */
static ait_status bind_symbol(binder *b, place p, uint32_t symbol, int64_t value, int64_t got) {
  const ait_symbol *s = &b->region->symbols[symbol];
  b->symbols[symbol] = value;
  if (value >= s->min && value <= s->max) return AIT_OK;
  char what[64], so[96] = "";
  describe(p, got, what, sizeof what);
  if (value != got) snprintf(so, sizeof so, ", so %.32s is %lld", s->name, (long long)value);
  char max[24] = "infinity";
  if (s->max != INT64_MAX) snprintf(max, sizeof max, "%lld", (long long)s->max);
  return refuse(p.input, ait_error(AIT_CODE_INVALID_ARGUMENT, "%s%s, outside its range %lld to %s (symbol %s)", what, so, (long long)s->min,
                                   max, s->name));
}

/* The input whose bare dimension or number gave a symbol its value, for the message. */
static void name_source(const binder *b, uint32_t symbol, char *out, size_t size) {
  const ait_region *r = b->region;
  char buffer[24];
  out[0] = 0;
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX || !r->values[in->value].shape) continue;
    const ait_region_value *v = &r->values[in->value];
    int32_t dims = v->type == AIT_TYPE_INT ? 1 : v->rank;
    for (int32_t d = 0; d < dims; ++d) {
      const ait_dim_expr *e = &r->dims[v->shape[d]];
      if (e->op != AIT_DIM_SYMBOL || e->a != symbol) continue;
      if (v->type == AIT_TYPE_INT) snprintf(out, size, " from input '%s'", input_name(in, buffer, sizeof buffer));
      else snprintf(out, size, " from dimension %d of input '%s'", d, input_name(in, buffer, sizeof buffer));
      return;
    }
  }
}

/* Appends "; s0 is 7 from dimension 0 of input 'x'" for each symbol of the expression that `out` does not tell of yet. */
static void tell_symbols(const binder *b, ait_dim expression, char *out, size_t size) {
  ait_dim stack[64] = {expression};
  for (int depth = 1; depth > 0;) {
    const ait_dim_expr *e = &b->region->dims[stack[--depth]];
    if (e->op == AIT_DIM_SYMBOL) {
      char text[240], source[128];
      name_source(b, e->a, source, sizeof source);
      snprintf(text, sizeof text, "; %.32s is %lld%s", b->region->symbols[e->a].name, (long long)b->symbols[e->a], source);
      if (!strstr(out, text)) snprintf(out + strlen(out), size - strlen(out), "%s", text);
    } else if (e->op != AIT_DIM_CONST && e->op != AIT_DIM_UNKNOWN && depth + 2 <= (int)AIT_COUNT(stack)) {
      stack[depth++] = e->b;
      stack[depth++] = e->a;
    }
  }
}

static ait_status differs(const binder *b, place p, ait_dim expression, int64_t got, int64_t want) {
  const ait_dim_expr *e = &b->region->dims[expression];
  char what[64], text[128], source[512] = "";
  describe(p, got, what, sizeof what);
  if (e->op == AIT_DIM_CONST) {
    return refuse(p.input, ait_error(AIT_CODE_INVALID_ARGUMENT, "%s, but export fixed it at %lld", what, (long long)want));
  }
  ait_region_dim_text(b->region, expression, text, sizeof text);
  if (e->op == AIT_DIM_SYMBOL) name_source(b, e->a, source, sizeof source);
  else tell_symbols(b, expression, source, sizeof source);
  return refuse(p.input, ait_error(AIT_CODE_INVALID_ARGUMENT, "%s, must be %lld (%s%s)", what, (long long)want, text, source));
}

/* Solves expression == got for the one symbol in it that is not bound yet, walking down sums and products of known parts.
 * false: nothing to bind, or not soluble in integers (*out_impossible set then). */
static bool solve(const binder *b, ait_dim expression, int64_t got, uint32_t *out_symbol, int64_t *out_value, bool *out_impossible) {
  const ait_dim_expr *dims = b->region->dims;
  for (;;) {
    const ait_dim_expr *e = &dims[expression];
    if (e->op == AIT_DIM_SYMBOL) {
      *out_symbol = e->a;
      *out_value = got;
      return true;
    }
    if (e->op != AIT_DIM_ADD && e->op != AIT_DIM_SUB && e->op != AIT_DIM_MUL) return false;
    int64_t left, right;
    bool has_left = ait_dim_eval(dims, b->symbols, e->a, &left), has_right = ait_dim_eval(dims, b->symbols, e->b, &right);
    if (has_left == has_right) return false;
    int64_t known = has_left ? left : right;
    bool overflow = false;
    if (e->op == AIT_DIM_ADD || (e->op == AIT_DIM_SUB && has_left)) {
      overflow = e->op == AIT_DIM_ADD ? __builtin_sub_overflow(got, known, &got) : __builtin_sub_overflow(known, got, &got);
    } else if (e->op == AIT_DIM_SUB) {
      overflow = ait_add_overflows(got, known, &got);
    } else {
      if (known == 0 || (known == -1 && got == INT64_MIN)) return false;
      if (got % known != 0) {
        *out_impossible = true;
        return false;
      }
      got /= known;
    }
    if (overflow) return false;
    expression = has_left ? e->b : e->a;
  }
}

/* One dimension (or number). bare: only the expressions that bind or are known at once; else the rest, and *progress when a symbol was
 * found by solving. */
static ait_status match(binder *b, place p, ait_dim expression, int64_t got, bool bare, bool *progress) {
  const ait_region *r = b->region;
  const ait_dim_expr *e = &r->dims[expression];
  if (e->op == AIT_DIM_UNKNOWN) return AIT_OK;
  if (e->op == AIT_DIM_SYMBOL && b->symbols[e->a] == UNBOUND) return bind_symbol(b, p, e->a, got, got);
  if (bare && e->op != AIT_DIM_CONST && e->op != AIT_DIM_SYMBOL) return AIT_OK;
  int64_t want;
  if (ait_dim_eval(r->dims, b->symbols, expression, &want)) return got == want ? AIT_OK : differs(b, p, expression, got, want);
  uint32_t symbol;
  int64_t value;
  bool impossible = false;
  if (solve(b, expression, got, &symbol, &value, &impossible)) {
    *progress = true;
    return bind_symbol(b, p, symbol, value, got);
  }
  if (impossible) {
    char what[64], text[128];
    describe(p, got, what, sizeof what);
    ait_region_dim_text(r, expression, text, sizeof text);
    return refuse(p.input, ait_error(AIT_CODE_INVALID_ARGUMENT, "%s, which cannot be %s", what, text));
  }
  return AIT_OK;
}

static ait_status match_input(binder *b, const ait_region_input *in, const ait_value *v, bool bare, bool *progress) {
  const ait_region_value *want = &b->region->values[in->value];
  if (!want->shape) return AIT_OK;
  if (want->type == AIT_TYPE_INT) return match(b, (place){in, -1}, want->shape[0], v->as.i, bare, progress);
  if (want->type != AIT_TYPE_TENSOR) return AIT_OK;
  for (int32_t d = 0; d < want->rank; ++d) AIT_TRY(match(b, (place){in, d}, want->shape[d], v->as.tensor.shape[d], bare, progress));
  return AIT_OK;
}

/* ---- kinds -----------------------------------------------------------------------------------------------------------------------*/
static ait_status check_tensor(const ait_region_input *in, const ait_region_value *want, const ait_tensor *t) {
  if (t->dtype != want->dtype) {
    return refuse(in,
                  ait_error(AIT_CODE_INVALID_ARGUMENT, "dtype is %s, must be %s", ait_dtype_name(t->dtype), ait_dtype_name(want->dtype)));
  }
  if (t->rank < 0 || t->rank > AIT_MAX_RANK || (want->rank >= 0 && t->rank != want->rank)) {
    return refuse(in, ait_error(AIT_CODE_INVALID_ARGUMENT, "has %d dimensions, must have %d", t->rank, want->rank));
  }
  bool empty = false;
  for (int32_t d = 0; d < t->rank; ++d) {
    if (t->shape[d] < 0)
      return refuse(in, ait_error(AIT_CODE_INVALID_ARGUMENT, "dimension %d is negative (%lld)", d, (long long)t->shape[d]));
    empty |= t->shape[d] == 0;
  }
  if (!t->data && !empty) return refuse(in, ait_error(AIT_CODE_INVALID_ARGUMENT, "tensor has no memory"));
  return AIT_OK;
}

static ait_status check_kind(const ait_region *r, const ait_region_input *in, const ait_value *v) {
  static const ait_value_kind kinds[] = {
      [AIT_TYPE_NONE] = AIT_VALUE_NONE,   [AIT_TYPE_TENSOR] = AIT_VALUE_TENSOR, [AIT_TYPE_INT] = AIT_VALUE_INT,
      [AIT_TYPE_FLOAT] = AIT_VALUE_FLOAT, [AIT_TYPE_BOOL] = AIT_VALUE_BOOL,     [AIT_TYPE_STRING] = AIT_VALUE_STRING,
  };
  const ait_region_value *want = &r->values[in->value];
  if (want->type == AIT_TYPE_TENSOR_LIST) return refuse(in, ait_error(AIT_CODE_UNSUPPORTED, "a tensor list cannot be passed"));
  if (v->kind != kinds[want->type]) {
    return refuse(in, ait_error(AIT_CODE_INVALID_ARGUMENT, "is %s, must be %s", kind_name(v->kind), kind_name(kinds[want->type])));
  }
  return want->type == AIT_TYPE_TENSOR ? check_tensor(in, want, &v->as.tensor) : AIT_OK;
}

/* ---- guards ----------------------------------------------------------------------------------------------------------------------*/
static bool holds(ait_guard_op op, int64_t left, int64_t right) {
  switch (op) {
    case AIT_GUARD_EQ: return left == right;
    case AIT_GUARD_NE: return left != right;
    case AIT_GUARD_LE: return left <= right;
    case AIT_GUARD_LT: return left < right;
  }
  return false;
}

static ait_status check_guards(const binder *b) {
  static const char *const signs[] = {"==", "!=", "<=", "<"};
  const ait_region *r = b->region;
  for (uint32_t i = 0; i < r->guard_count; ++i) {
    const ait_region_guard *g = &r->guards[i];
    int64_t left, right;
    /* A guard over sizes that depend on data is an assertion in the graph, too, and is checked there. */
    if (!ait_dim_eval(r->dims, b->symbols, g->left, &left) || !ait_dim_eval(r->dims, b->symbols, g->right, &right)) continue;
    if (holds(g->op, left, right)) continue;
    char lhs[96], rhs[96], where[512] = "";
    ait_region_dim_text(r, g->left, lhs, sizeof lhs);
    ait_region_dim_text(r, g->right, rhs, sizeof rhs);
    tell_symbols(b, g->left, where, sizeof where);
    tell_symbols(b, g->right, where, sizeof where);
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "the model requires %s %s %s, but these inputs give %lld and %lld%s%s%s%s", lhs,
                     signs[g->op], rhs, (long long)left, (long long)right, where, g->text ? " (guard: " : "", g->text ? g->text : "",
                     g->text ? ")" : "");
  }
  return AIT_OK;
}

/* ---- all -------------------------------------------------------------------------------------------------------------------------*/
static ait_status check_count(const ait_region *r, size_t input_count) {
  size_t users = 0;
  for (uint32_t i = 0; i < r->input_count; ++i) users += r->inputs[i].kind == AIT_INPUT_USER;
  if (users != input_count) return ait_error(AIT_CODE_INVALID_ARGUMENT, "%zu inputs given, the model takes %zu", input_count, users);
  return AIT_OK;
}

static ait_status match_all(binder *b, bool bare, bool *progress) {
  const ait_region *r = b->region;
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX) continue;
    AIT_TRY(match_input(b, in, &b->inputs[in->user_index], bare, progress));
  }
  return AIT_OK;
}

ait_status ait_bind_inputs(const ait_region *region, const ait_value *inputs, size_t input_count, int64_t *symbol_values) {
  binder b = {region, inputs, input_count, symbol_values};
  for (uint32_t i = 0; i < region->symbol_count; ++i) symbol_values[i] = UNBOUND;
  AIT_TRY(check_count(region, input_count));
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER) continue;
    if (in->user_index < 0 || (size_t)in->user_index >= input_count)
      return ait_error(AIT_CODE_INVALID_MODEL, "input %u has no position", i);
    const ait_value *v = &inputs[in->user_index];
    AIT_TRY(in->value == AIT_NO_INDEX ? check_baked(in, v) : check_kind(region, in, v));
  }
  bool progress = true;
  AIT_TRY(match_all(&b, true, &progress));
  /* Each round of solving binds at least one symbol more, so this ends. */
  for (progress = true; progress;) {
    progress = false;
    AIT_TRY(match_all(&b, false, &progress));
  }
  return check_guards(&b);
}
