/* Walks the tree. Every node costs a step; depth is bounded, so that macros cannot call themselves for ever. */
#include "llm/text/jinja.h"
#include "llm/text/unicode.h"

static ait_status eval(ait_jrun *r, const ait_jn *n, ait_jv *out);
static ait_status exec(ait_jrun *r, const ait_jn *n);

/* ---- names
 * -----------------------------------------------------------------------------------------------------------------------------*/
static ait_jv lookup(const ait_jrun *r, const char *name) {
  size_t size = strlen(name);
  for (const ait_jscope *s = r->scope; s; s = s->parent) {
    const ait_jv *v = ait_jdict_find(&s->names, name, size);
    if (v) return *v;
  }
  for (const ait_jdef *d = ait_jinja_functions; d->name; ++d) {
    if (strcmp(d->name, name) == 0)
      return (ait_jv){.kind = AIT_JV_FUNCTION, .as.bound = (ait_jbound *)(uintptr_t)d, .size = 1}; /* 1: a global */
  }
  return ait_jv_undefined(name);
}

static ait_status define(ait_jrun *r, const char *name, ait_jv value) {
  return ait_jdict_set(r, &r->scope->names, ait_jv_span(name, strlen(name)), value);
}

static ait_status assign(ait_jrun *r, const ait_jn *target, const ait_jv *value) {
  ait_jv *items;
  uint32_t count, i = 0;
  if (target->kind == AIT_JN_NAME) return define(r, target->text, *value);
  if (target->kind == AIT_JN_ATTR) {
    ait_jv base = lookup(r, target->a->text);
    if (base.kind != AIT_JV_NAMESPACE) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "cannot assign attribute on non-namespace object");
    if (target->text[0] == '_') return ait_jfail(r, AIT_CODE_INVALID_MODEL, "attributes of a namespace must not begin with '_'");
    return ait_jdict_set(r, base.as.dict, ait_jv_span(target->text, strlen(target->text)), *value);
  }
  AIT_TRY(ait_jv_items(r, value, &items, &count));
  for (const ait_jn *n = target->list; n; n = n->next, ++i) {
    if (i == count) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "not enough values to unpack");
    AIT_TRY(assign(r, n->a, &items[i]));
  }
  return i < count ? ait_jfail(r, AIT_CODE_INVALID_MODEL, "too many values to unpack") : AIT_OK;
}

static ait_jscope *push_scope(ait_jrun *r, ait_jscope *parent) {
  ait_jscope *s = AIT_ARENA_NEW(&r->arena, ait_jscope);
  if (s) s->parent = parent;
  return s;
}

/* ---- capturing output
 * --------------------------------------------------------------------------------------------------------------------*/
static ait_status capture(ait_jrun *r, const ait_jn *body, ait_jv *out) {
  ait_text text, *outer = r->out;
  ait_text_init(&text, r->arena.allocator);
  r->out = &text;
  ait_status status = exec(r, body);
  r->out = outer;
  if (status) ait_text_deinit(&text);
  return status ? status : ait_jv_copy_text(r, &text, out);
}

/* ---- calls
 * -----------------------------------------------------------------------------------------------------------------------------*/
enum { MAX_ARGS = 64 };

static ait_status add_arg(ait_jrun *r, ait_jargs *args, ait_jv value, const char *name) {
  uint32_t at = args->positional + args->keywords;
  if (at == MAX_ARGS) return ait_jfail(r, AIT_CODE_LIMIT, "more than %d arguments", MAX_ARGS);
  if (!name && args->keywords) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "a positional argument behind keyword arguments");
  args->values[at] = value;
  args->names[at] = name;
  if (name) ++args->keywords;
  else ++args->positional;
  return AIT_OK;
}

static ait_status eval_args(ait_jrun *r, const ait_jn *list, ait_jargs *args) {
  args->values = AIT_ARENA_ARRAY(&r->arena, ait_jv, MAX_ARGS);
  args->names = AIT_ARENA_ARRAY(&r->arena, const char *, MAX_ARGS);
  if (!args->values || !args->names) return AIT_OOM();
  for (const ait_jn *n = list; n; n = n->next) {
    ait_jv value, *items;
    uint32_t count;
    AIT_TRY(eval(r, n->a, &value));
    if (!n->spread) {
      AIT_TRY(add_arg(r, args, value, n->text));
    } else if (n->spread == '*') {
      AIT_TRY(ait_jv_items(r, &value, &items, &count));
      for (uint32_t i = 0; i < count; ++i) AIT_TRY(add_arg(r, args, items[i], NULL));
    } else {
      if (value.kind != AIT_JV_DICT) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'**' wants a mapping");
      for (uint32_t i = 0; i < value.as.dict->count; ++i) {
        const ait_jv *key = &value.as.dict->keys[i];
        if (key->kind != AIT_JV_STRING) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "keywords must be strings");
        char *name = ait_arena_strdup(&r->arena, key->as.s, key->size);
        if (!name) return AIT_OOM();
        AIT_TRY(add_arg(r, args, value.as.dict->values[i], name));
      }
    }
  }
  return AIT_OK;
}

ait_status ait_jinja_call_def(ait_jrun *r, const ait_jdef *def, const ait_jv *self, const ait_jargs *args, ait_jv *out) {
  ait_jv slots[AIT_JINJA_SLOTS] = {0};
  const char *p = def->parameters;
  uint32_t given = 0;
  *out = ait_jv_none();
  if (!p) return def->fn(r, self, slots, args, out);
  for (uint32_t slot = 0; *p; ++slot) {
    size_t size = strcspn(p, ",");
    if (slot < args->positional) slots[slot] = args->values[slot], ++given;
    for (uint32_t k = args->positional; k < args->positional + args->keywords; ++k) {
      if (strlen(args->names[k]) != size || memcmp(args->names[k], p, size) != 0) continue;
      slots[slot] = args->values[k];
      ++given;
    }
    if ((int)slot < def->required && slots[slot].kind == AIT_JV_UNSET)
      return ait_jfail(r, AIT_CODE_INVALID_MODEL, "%s() misses argument '%.*s'", def->name, (int)size, p);
    p += size + (p[size] == ',');
  }
  if (given != args->positional + args->keywords)
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "%s() takes '%s', and was given something else", def->name, def->parameters);
  return def->fn(r, self, slots, args, out);
}

/* The macro's parameters in its scope, which is current: given ones, defaults, undefined. */
static ait_status bind_macro(ait_jrun *r, const ait_jmacro *m, const ait_jargs *args) {
  uint32_t index = 0, used = 0;
  for (const ait_jn *p = m->node->other; p; p = p->next, ++index) {
    ait_jv value = ait_jv_undefined(p->text);
    bool given = index < args->positional;
    if (given) value = args->values[index], ++used;
    for (uint32_t k = args->positional; k < args->positional + args->keywords; ++k) {
      if (strcmp(args->names[k], p->text) != 0) continue;
      if (given) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "macro '%s' got argument '%s' twice", m->name ? m->name : "caller", p->text);
      value = args->values[k], given = true, ++used;
    }
    if (!given && p->a) AIT_TRY(eval(r, p->a, &value));
    AIT_TRY(define(r, p->text, value));
  }
  ait_jv extra, named;
  AIT_TRY(ait_jlist_new(r, AIT_JL_TUPLE, 0, &extra));
  AIT_TRY(ait_jdict_new(r, &named));
  for (; index < args->positional; ++index) AIT_TRY(ait_jlist_add(r, extra.as.list, args->values[index]));
  AIT_TRY(define(r, "varargs", extra));
  AIT_TRY(define(r, "kwargs", named));
  if (used + extra.as.list->count < args->positional + args->keywords)
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "macro '%s' takes no such keyword argument", m->name ? m->name : "caller");
  return args->caller ? define(r, "caller", *args->caller) : AIT_OK;
}

/* Does the body use the name? Only then a macro takes any number of arguments. */
static bool mentions(const ait_jn *n, const char *name, int depth) {
  for (; n && depth < 2 * AIT_JINJA_NESTING; n = n->next) {
    if (n->kind == AIT_JN_NAME && n->text && strcmp(n->text, name) == 0) return true;
    if (mentions(n->a, name, depth + 1) || mentions(n->b, name, depth + 1) || mentions(n->c, name, depth + 1) ||
        mentions(n->list, name, depth + 1) || mentions(n->other, name, depth + 1))
      return true;
  }
  return false;
}

static uint32_t parameter_count(const ait_jmacro *m) {
  uint32_t n = 0;
  for (const ait_jn *p = m->node->other; p; p = p->next) ++n;
  return n;
}

static ait_status call_macro(ait_jrun *r, const ait_jmacro *m, const ait_jargs *args, ait_jv *out) {
  ait_jscope *outer = r->scope, *inner = push_scope(r, m->scope);
  if (!inner) return AIT_OOM();
  if (args->positional > parameter_count(m) && !mentions(m->node->list, "varargs", 0))
    return ait_jfail(r, AIT_CODE_INVALID_MODEL, "macro '%s' takes not more than %u arguments", m->name ? m->name : "caller",
                     parameter_count(m));
  r->scope = inner;
  ait_status status = bind_macro(r, m, args);
  if (!status) status = capture(r, m->node->list, out);
  r->scope = outer;
  return status;
}

static ait_status call_value(ait_jrun *r, const ait_jv *callee, const ait_jargs *args, ait_jv *out) {
  if (callee->kind == AIT_JV_MACRO) return call_macro(r, callee->as.macro, args, out);
  if (callee->kind == AIT_JV_FUNCTION && callee->size == 1)
    return ait_jinja_call_def(r, (const ait_jdef *)(const void *)callee->as.bound, NULL, args, out);
  if (callee->kind == AIT_JV_FUNCTION) return ait_jinja_call_def(r, callee->as.bound->def, &callee->as.bound->self, args, out);
  if (callee->kind == AIT_JV_UNDEFINED) return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'%s' is undefined", callee->as.s ? callee->as.s : "");
  return ait_jfail(r, AIT_CODE_INVALID_MODEL, "'%s' object is not callable", ait_jv_type(callee));
}

static ait_status eval_call(ait_jrun *r, const ait_jn *n, const ait_jv *caller, ait_jv *out) {
  ait_jv callee;
  ait_jargs args = {.caller = caller};
  AIT_TRY(eval(r, n->a, &callee));
  AIT_TRY(eval_args(r, n->list, &args));
  r->line = n->line;
  return call_value(r, &callee, &args, out);
}

/* a|f, or the body of a block (given) through its filters. */
static ait_status eval_filter(ait_jrun *r, const ait_jn *n, const ait_jv *given, ait_jv *out) {
  ait_jv input;
  ait_jargs args = {0};
  if (n->a && n->a->kind == AIT_JN_FILTER && given) AIT_TRY(eval_filter(r, n->a, given, &input));
  else if (n->a) AIT_TRY(eval(r, n->a, &input));
  else input = *given;
  AIT_TRY(eval_args(r, n->list, &args));
  r->line = n->line;
  return ait_jinja_filter(r, n->text, &input, &args, out);
}

static ait_status eval_test(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  ait_jv input;
  ait_jargs args = {0};
  bool yes = false;
  AIT_TRY(eval(r, n->a, &input));
  AIT_TRY(eval_args(r, n->list, &args));
  AIT_TRY(ait_jinja_test(r, n->text, &input, &args, &yes));
  *out = ait_jv_bool(yes);
  return AIT_OK;
}

/* ---- expressions
 * -------------------------------------------------------------------------------------------------------------------------*/
static ait_status compare_one(ait_jrun *r, ait_jop op, const ait_jv *a, const ait_jv *b, bool *out) {
  int order;
  if (op == AIT_JOP_EQ || op == AIT_JOP_NE) return *out = ait_jv_equal(a, b, 0) == (op == AIT_JOP_EQ), AIT_OK;
  if (op == AIT_JOP_IN || op == AIT_JOP_NOT_IN) {
    AIT_TRY(ait_jv_contains(r, b, a, out));
    *out ^= op == AIT_JOP_NOT_IN;
    return AIT_OK;
  }
  AIT_TRY(ait_jv_compare(r, a, b, &order));
  *out = order != 2 && (op == AIT_JOP_LT ? order < 0 : op == AIT_JOP_LE ? order <= 0 : op == AIT_JOP_GT ? order > 0 : order >= 0);
  return AIT_OK;
}

static ait_status eval_compare(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  ait_jv left, right;
  bool yes = true;
  AIT_TRY(eval(r, n->a, &left));
  for (const ait_jn *o = n->list; o && yes; o = o->next) {
    AIT_TRY(eval(r, o->a, &right));
    AIT_TRY(compare_one(r, o->op, &left, &right, &yes));
    left = right;
  }
  *out = ait_jv_bool(yes);
  return AIT_OK;
}

static ait_status eval_list(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  AIT_TRY(ait_jlist_new(r, n->kind == AIT_JN_TUPLE ? AIT_JL_TUPLE : AIT_JL_LIST, 0, out));
  for (const ait_jn *i = n->list; i; i = i->next) {
    ait_jv item;
    AIT_TRY(eval(r, i->a, &item));
    AIT_TRY(ait_jlist_add(r, out->as.list, item));
  }
  return AIT_OK;
}

static ait_status eval_dict(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  AIT_TRY(ait_jdict_new(r, out));
  for (const ait_jn *i = n->list; i; i = i->next->next) {
    ait_jv key, value;
    AIT_TRY(eval(r, i->a, &key));
    AIT_TRY(eval(r, i->next->a, &value));
    AIT_TRY(ait_jdict_set(r, out->as.dict, key, value));
  }
  return AIT_OK;
}

static ait_status eval_item(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  ait_jv base, key[3] = {0};
  AIT_TRY(eval(r, n->a, &base));
  if (n->b->kind != AIT_JN_SLICE) {
    AIT_TRY(eval(r, n->b, &key[0]));
    return ait_jv_item(r, &base, &key[0], out);
  }
  if (n->b->a) AIT_TRY(eval(r, n->b->a, &key[0]));
  if (n->b->b) AIT_TRY(eval(r, n->b->b, &key[1]));
  if (n->b->c) AIT_TRY(eval(r, n->b->c, &key[2]));
  return ait_jv_slice(r, &base, &key[0], &key[1], &key[2], out);
}

static ait_status eval_sign(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  ait_jv zero = ait_jv_int(0);
  AIT_TRY(eval(r, n->a, out));
  if (out->kind == AIT_JV_FLOAT) return out->as.f = n->kind == AIT_JN_NEGATE ? -out->as.f : out->as.f, AIT_OK;
  ait_jv value = *out;
  return ait_jv_binary(r, n->kind == AIT_JN_NEGATE ? AIT_JOP_SUB : AIT_JOP_ADD, &zero, &value, out);
}

static ait_status eval_branch(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  ait_jv test;
  switch (n->kind) {
    case AIT_JN_AND:
    case AIT_JN_OR: AIT_TRY(eval(r, n->a, out)); return ait_jv_truth(out) == (n->kind == AIT_JN_AND) ? eval(r, n->b, out) : AIT_OK;
    case AIT_JN_NOT:
      AIT_TRY(eval(r, n->a, &test));
      *out = ait_jv_bool(!ait_jv_truth(&test));
      return AIT_OK;
    default: /* COND */
      AIT_TRY(eval(r, n->b, &test));
      if (ait_jv_truth(&test)) return eval(r, n->a, out);
      if (n->c) return eval(r, n->c, out);
      *out = ait_jv_undefined("the inline if-expression, which has no else");
      return AIT_OK;
  }
}

static ait_status eval_kind(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  ait_jv a, b;
  switch (n->kind) {
    case AIT_JN_CONST: *out = n->value; return AIT_OK;
    case AIT_JN_NAME: *out = lookup(r, n->text); return AIT_OK;
    case AIT_JN_LIST:
    case AIT_JN_TUPLE: return eval_list(r, n, out);
    case AIT_JN_DICT: return eval_dict(r, n, out);
    case AIT_JN_ATTR:
      AIT_TRY(eval(r, n->a, &a));
      r->line = n->line;
      return ait_jv_attr(r, &a, n->text, strlen(n->text), out);
    case AIT_JN_ITEM: return eval_item(r, n, out);
    case AIT_JN_CALL: return eval_call(r, n, NULL, out);
    case AIT_JN_FILTER: return eval_filter(r, n, NULL, out);
    case AIT_JN_TEST: return eval_test(r, n, out);
    case AIT_JN_NEGATE:
    case AIT_JN_PLUS: return eval_sign(r, n, out);
    case AIT_JN_BINARY:
      AIT_TRY(eval(r, n->a, &a));
      AIT_TRY(eval(r, n->b, &b));
      r->line = n->line;
      return ait_jv_binary(r, n->op, &a, &b, out);
    case AIT_JN_COMPARE: return eval_compare(r, n, out);
    default: return eval_branch(r, n, out);
  }
}

static ait_status eval(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  r->line = n->line;
  AIT_TRY(ait_jinja_step(r, 1));
  if (++r->depth > AIT_JINJA_DEPTH) return ait_jfail(r, AIT_CODE_LIMIT, "macros call each other too deeply");
  ait_status status = eval_kind(r, n, out);
  --r->depth;
  return status;
}

/* ---- loops
 * -----------------------------------------------------------------------------------------------------------------------------*/
static ait_status filter_items(ait_jrun *r, const ait_jn *n, ait_jv **items, uint32_t *count) {
  ait_jv kept, test;
  ait_jscope *outer = r->scope;
  AIT_TRY(ait_jlist_new(r, AIT_JL_LIST, 0, &kept));
  ait_status status = AIT_OK;
  for (uint32_t i = 0; i < *count && !status; ++i) {
    r->scope = push_scope(r, outer);
    status = r->scope ? assign(r, n->a, &(*items)[i]) : AIT_OOM();
    if (!status) status = eval(r, n->c, &test);
    if (!status && ait_jv_truth(&test)) status = ait_jlist_add(r, kept.as.list, (*items)[i]);
  }
  r->scope = outer;
  *items = kept.as.list->items;
  *count = kept.as.list->count;
  return status;
}

static ait_status run_loop(ait_jrun *r, const ait_jn *n, ait_jloop *loop) {
  ait_jscope *outer = r->scope;
  ait_status status = AIT_OK;
  for (loop->index = 0; loop->index < loop->count && !status; ++loop->index) {
    r->scope = push_scope(r, outer);
    status = r->scope ? define(r, "loop", (ait_jv){.kind = AIT_JV_LOOP, .as.loop = loop}) : AIT_OOM();
    if (!status) status = assign(r, n->a, &loop->items[loop->index]);
    if (!status) status = exec(r, n->list);
    bool stop = r->flow == AIT_JFLOW_BREAK;
    r->flow = AIT_JFLOW_NEXT;
    if (stop) break;
  }
  r->scope = outer;
  return status;
}

static ait_status exec_for(ait_jrun *r, const ait_jn *n) {
  ait_jv iterable, *items;
  uint32_t count;
  AIT_TRY(eval(r, n->b, &iterable));
  AIT_TRY(ait_jv_items(r, &iterable, &items, &count));
  if (n->c) AIT_TRY(filter_items(r, n, &items, &count));
  if (count == 0) return n->other ? exec(r, n->other) : AIT_OK;
  ait_jloop *loop = AIT_ARENA_NEW(&r->arena, ait_jloop);
  if (!loop) return AIT_OOM();
  *loop = (ait_jloop){.count = count, .items = items};
  return run_loop(r, n, loop);
}

/* ---- other statements
 * ----------------------------------------------------------------------------------------------------------------------*/
static ait_status make_macro(ait_jrun *r, const ait_jn *n, ait_jv *out) {
  ait_jmacro *m = AIT_ARENA_NEW(&r->arena, ait_jmacro);
  if (!m) return AIT_OOM();
  *m = (ait_jmacro){n->kind == AIT_JN_MACRO ? n->text : NULL, n, r->scope};
  *out = (ait_jv){.kind = AIT_JV_MACRO, .as.macro = m};
  return AIT_OK;
}

static ait_status write_value(ait_jrun *r, const ait_jv *v) {
  AIT_TRY(ait_jv_str(r, v, r->out));
  if (r->out->failed) return AIT_OOM();
  return r->out->length > r->out_limit ? ait_jfail(r, AIT_CODE_LIMIT, "a text of more than %zu MB", r->out_limit >> 20) : AIT_OK;
}

static ait_status exec_if(ait_jrun *r, const ait_jn *n) {
  for (; n; n = n->b) {
    ait_jv test;
    AIT_TRY(eval(r, n->a, &test));
    if (ait_jv_truth(&test)) return exec(r, n->list);
    if (!n->b) return exec(r, n->other);
  }
  return AIT_OK;
}

static ait_status exec_scoped(ait_jrun *r, const ait_jn *n) {
  ait_jscope *outer = r->scope;
  ait_jscope *inner = push_scope(r, outer);
  ait_status status = inner ? AIT_OK : AIT_OOM();
  for (const ait_jn *s = n->other; s && !status; s = s->next) {
    ait_jv value;
    status = eval(r, s->b, &value);
    if (inner) r->scope = inner;
    if (!status) status = assign(r, s->a, &value);
    r->scope = outer;
  }
  if (inner) r->scope = inner;
  if (!status) status = exec(r, n->list);
  r->scope = outer;
  return status;
}

static ait_status exec_captured(ait_jrun *r, const ait_jn *n) {
  ait_jv text, result;
  ait_jscope *outer = r->scope, *inner = push_scope(r, outer);
  if (!inner) return AIT_OOM();
  r->scope = inner;
  ait_status status = capture(r, n->list, &text);
  r->scope = outer;
  AIT_TRY(status);
  result = text;
  if (n->b) AIT_TRY(eval_filter(r, n->b, &text, &result));
  return n->kind == AIT_JN_SET_BLOCK ? assign(r, n->a, &result) : write_value(r, &result);
}

static ait_status exec_one(ait_jrun *r, const ait_jn *n) {
  ait_jv value, caller;
  switch (n->kind) {
    case AIT_JN_TEXT: return write_value(r, &n->value);
    case AIT_JN_OUTPUT: AIT_TRY(eval(r, n->a, &value)); return write_value(r, &value);
    case AIT_JN_IF: return exec_if(r, n);
    case AIT_JN_FOR: return exec_for(r, n);
    case AIT_JN_SET: AIT_TRY(eval(r, n->b, &value)); return assign(r, n->a, &value);
    case AIT_JN_MACRO: AIT_TRY(make_macro(r, n, &value)); return define(r, n->text, value);
    case AIT_JN_CALL_BLOCK:
      AIT_TRY(make_macro(r, n, &caller));
      AIT_TRY(eval_call(r, n->a, &caller, &value));
      return write_value(r, &value);
    case AIT_JN_SET_BLOCK:
    case AIT_JN_FILTER_BLOCK: return exec_captured(r, n);
    case AIT_JN_WITH:
    case AIT_JN_BODY: return exec_scoped(r, n);
    default: r->flow = n->kind == AIT_JN_BREAK ? AIT_JFLOW_BREAK : AIT_JFLOW_CONTINUE; return AIT_OK;
  }
}

static ait_status exec(ait_jrun *r, const ait_jn *n) {
  if (++r->depth > AIT_JINJA_DEPTH) return ait_jfail(r, AIT_CODE_LIMIT, "macros call each other too deeply");
  for (; n && r->flow == AIT_JFLOW_NEXT; n = n->next) {
    r->line = n->line;
    AIT_TRY(ait_jinja_step(r, 1));
    AIT_TRY(exec_one(r, n));
  }
  --r->depth;
  return AIT_OK;
}

ait_status ait_jinja_run(ait_jrun *r, const ait_jn *first) { return exec(r, first); }
