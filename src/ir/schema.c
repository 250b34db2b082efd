#include "ir/schema.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct cursor {
  const char *at;
  ait_schema_pool *pool;
  const char *error; /* first fault */
} cursor;

static const struct {
  const char *name;
  ait_param_type type;
} base_types[] = {
    {"Tensor", AIT_PARAM_TENSOR}, {"int", AIT_PARAM_INT},
    {"SymInt", AIT_PARAM_INT},    {"float", AIT_PARAM_FLOAT},
    {"bool", AIT_PARAM_BOOL},     {"Scalar", AIT_PARAM_SCALAR},
    {"str", AIT_PARAM_STRING},    {"ScalarType", AIT_PARAM_DTYPE},
    {"Layout", AIT_PARAM_LAYOUT}, {"MemoryFormat", AIT_PARAM_MEMORY_FORMAT},
    {"Device", AIT_PARAM_DEVICE}, {"Generator", AIT_PARAM_GENERATOR},
    {"Any", AIT_PARAM_ANY},
};

/* Default dtypes stand as ATen's ScalarType number or name. */
static const struct {
  int32_t number;
  const char *name;
  ait_dtype dtype;
} scalar_types[] = {
    {0, "BYTE", AIT_U8},    {1, "CHAR", AIT_I8},       {2, "SHORT", AIT_I16},  {3, "INT", AIT_I32},
    {4, "LONG", AIT_I64},   {5, "HALF", AIT_F16},      {6, "FLOAT", AIT_F32},  {7, "DOUBLE", AIT_F64},
    {9, "CFLOAT", AIT_C64}, {10, "CDOUBLE", AIT_C128}, {11, "BOOL", AIT_BOOL}, {15, "BFLOAT16", AIT_BF16},
};

static const char *const memory_formats[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

static void fail(cursor *c, const char *error) {
  if (!c->error) c->error = error;
}

static void skip_spaces(cursor *c) {
  while (*c->at == ' ') ++c->at;
}

static bool accept(cursor *c, const char *token) {
  skip_spaces(c);
  size_t n = strlen(token);
  if (strncmp(c->at, token, n) != 0) return false;
  c->at += n;
  return true;
}

static void expect(cursor *c, const char *token, const char *error) {
  if (!accept(c, token)) fail(c, error);
}

static size_t word_length(cursor *c) {
  skip_spaces(c);
  size_t n = 0;
  while (isalnum((unsigned char)c->at[n]) || c->at[n] == '_') ++n;
  return n;
}

static bool word_is(const char *word, size_t length, const char *name) { return strlen(name) == length && memcmp(word, name, length) == 0; }

static const char *keep_text(cursor *c, const char *data, size_t length) {
  ait_schema_pool *pool = c->pool;
  if (pool->text_capacity - pool->text_count <= length) {
    fail(c, "no room for names");
    return "";
  }
  char *copy = pool->text + pool->text_count;
  memcpy(copy, data, length);
  copy[length] = '\0';
  pool->text_count += length + 1;
  return copy;
}

static void parse_alias(cursor *c, ait_param *p) {
  if (*c->at != '(') return;
  const char *close = strchr(c->at, ')');
  if (!close) {
    fail(c, "unclosed alias annotation");
    return;
  }
  p->aliased = true;
  for (const char *s = c->at; s < close; ++s) p->written |= *s == '!';
  c->at = close + 1;
}

static void parse_list(cursor *c, ait_param *p) {
  ++c->at; /* '[' */
  p->is_list = true;
  if (isdigit((unsigned char)*c->at)) {
    char *end;
    long n = strtol(c->at, &end, 10);
    if (n > AIT_MAX_RANK) fail(c, "list length is too large");
    p->list_length = (int32_t)n;
    c->at = end;
  }
  expect(c, "]", "expected ']'");
}

/* Tensor(a!)?[2]? … */
static void parse_type(cursor *c, ait_param *p) {
  size_t n = word_length(c);
  for (size_t i = 0; i < AIT_COUNT(base_types); ++i) {
    if (word_is(c->at, n, base_types[i].name)) p->type = base_types[i].type;
  }
  if (p->type == 0) {
    fail(c, "unknown type");
    return;
  }
  c->at += n;
  parse_alias(c, p);
  while (!c->error && (*c->at == '?' || *c->at == '[')) {
    if (*c->at == '[') {
      parse_list(c, p);
    } else {
      ++c->at;
      if (*c->at == '[') p->element_optional = true;
      else p->is_optional = true;
    }
  }
}

static ait_arg dtype_default(cursor *c, const char *word, size_t length) {
  for (size_t i = 0; i < AIT_COUNT(scalar_types); ++i) {
    if (word_is(word, length, scalar_types[i].name)) return ait_arg_dtype(scalar_types[i].dtype);
  }
  char *end;
  long number = strtol(word, &end, 10);
  for (size_t i = 0; end == word + length && i < AIT_COUNT(scalar_types); ++i) {
    if (scalar_types[i].number == number) return ait_arg_dtype(scalar_types[i].dtype);
  }
  fail(c, "unknown default dtype");
  return ait_arg_none();
}

static ait_arg number_default(cursor *c, const ait_param *p) {
  char *int_end, *float_end;
  long long i = strtoll(c->at, &int_end, 10);
  double f = ait_parse_double(c->at, &float_end);
  if (float_end == c->at) fail(c, "unreadable default");
  bool whole = int_end == float_end;
  c->at = float_end;
  if (p->type == AIT_PARAM_FLOAT || !whole) return ait_arg_float(f);
  return ait_arg_int(i);
}

static ait_arg string_default(cursor *c) {
  const char *close = strchr(++c->at, '"');
  if (!close) {
    fail(c, "unclosed string");
    return ait_arg_none();
  }
  ait_arg arg = ait_arg_string(keep_text(c, c->at, (size_t)(close - c->at)));
  c->at = close + 1;
  return arg;
}

static ait_arg scalar_default(cursor *c, const ait_param *p) {
  skip_spaces(c);
  if (*c->at == '"') return string_default(c);
  size_t n = word_length(c);
  const char *word = c->at;
  if (p->type == AIT_PARAM_DTYPE && !word_is(word, n, "None")) {
    c->at += n;
    return dtype_default(c, word, n);
  }
  if (n == 0 || !isalpha((unsigned char)*word)) return number_default(c, p);
  c->at += n;
  if (word_is(word, n, "None")) return ait_arg_none();
  if (word_is(word, n, "True")) return ait_arg_bool(true);
  if (word_is(word, n, "False")) return ait_arg_bool(false);
  for (size_t i = 0; i < AIT_COUNT(memory_formats); ++i) {
    if (word_is(word, n, memory_formats[i])) return ait_arg_int((int64_t)i);
  }
  fail(c, "unreadable default");
  return ait_arg_none();
}

static void push_arg(cursor *c, ait_arg arg) {
  if (c->pool->arg_count == c->pool->arg_capacity) fail(c, "no room for default lists");
  else c->pool->args[c->pool->arg_count++] = arg;
}

static ait_arg list_default(cursor *c, const ait_param *p) {
  size_t first = c->pool->arg_count;
  if (accept(c, "[")) {
    while (!c->error && !accept(c, "]")) {
      push_arg(c, scalar_default(c, p));
      skip_spaces(c);
      if (*c->at != ']') expect(c, ",", "expected ',' or ']'");
    }
  } else {
    ait_arg one = scalar_default(c, p);
    if (one.kind == AIT_ARG_NONE) return one;
    for (int32_t i = 0; !c->error && i < (p->list_length ? p->list_length : 1); ++i) push_arg(c, one);
  }
  return ait_arg_list(c->pool->args + first, (uint32_t)(c->pool->arg_count - first));
}

static void parse_param(cursor *c, ait_param *p) {
  parse_type(c, p);
  size_t n = word_length(c);
  if (n == 0) fail(c, "parameter has no name");
  p->name = keep_text(c, c->at, n);
  c->at += n;
  if (c->error || !accept(c, "=")) return;
  p->has_default = true;
  p->default_value = p->is_list ? list_default(c, p) : scalar_default(c, p);
}

static void parse_params(cursor *c, ait_op *op) {
  size_t first = c->pool->param_count;
  bool keyword_only = false;
  expect(c, "(", "expected '('");
  while (!c->error && !accept(c, ")")) {
    if (accept(c, "*")) {
      keyword_only = true;
    } else if (c->pool->param_count == c->pool->param_capacity) {
      fail(c, "no room for parameters");
    } else {
      ait_param *p = &c->pool->params[c->pool->param_count++];
      *p = (ait_param){.keyword_only = keyword_only};
      parse_param(c, p);
    }
    skip_spaces(c);
    if (*c->at != ')') expect(c, ",", "expected ',' or ')'");
  }
  op->params = c->pool->params + first;
  op->param_count = (uint32_t)(c->pool->param_count - first);
}

static ait_type result_type(cursor *c, const ait_param *p) {
  switch (p->type) {
    case AIT_PARAM_TENSOR: return p->is_list ? AIT_TYPE_TENSOR_LIST : AIT_TYPE_TENSOR;
    case AIT_PARAM_INT: return AIT_TYPE_INT;
    case AIT_PARAM_FLOAT: return AIT_TYPE_FLOAT;
    case AIT_PARAM_BOOL: return AIT_TYPE_BOOL;
    case AIT_PARAM_SCALAR: return AIT_TYPE_NONE;
    default: fail(c, "not a result type"); return AIT_TYPE_NONE;
  }
}

static void parse_result(cursor *c, ait_op *op) {
  ait_param p = {0};
  parse_type(c, &p);
  if (c->error) return;
  c->at += word_length(c); /* optional name */
  ait_type type = result_type(c, &p);
  if (op->result_count < AIT_COUNT(op->result_types)) op->result_types[op->result_count] = type;
  else if (type != AIT_TYPE_TENSOR) fail(c, "results beyond the fourth must be tensors");
  ++op->result_count;
}

static void parse_results(cursor *c, ait_op *op) {
  expect(c, "->", "expected '->'");
  if (!accept(c, "(")) {
    parse_result(c, op);
    return;
  }
  while (!c->error && !accept(c, ")")) {
    parse_result(c, op);
    skip_spaces(c);
    if (*c->at != ')') expect(c, ",", "expected ',' or ')'");
  }
}

const char *ait_schema_parse(const char *schema, ait_schema_pool *pool, ait_op *op) {
  cursor c = {.at = schema, .pool = pool};
  op->param_count = op->result_count = 0;
  op->params = NULL;
  memset(op->result_types, 0, sizeof op->result_types);
  op->variadic = strcmp(schema, "(...)") == 0;
  if (op->variadic) return NULL;
  parse_params(&c, op);
  if (!c.error) parse_results(&c, op);
  skip_spaces(&c);
  if (!c.error && *c.at != '\0') fail(&c, "text after the results");
  return c.error;
}
