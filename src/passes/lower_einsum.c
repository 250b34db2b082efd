/* einsum of two tensors: permuted so that one matmul computes it. Letters of the first tensor keep their order, so that what is a head or a
 * token stays where it was. */
#include "passes/lower.h"
#include <stdio.h>

/* One tensor: its letters, each once, and their sizes. */
typedef struct side {
  uint32_t value;
  char letters[AIT_MAX_RANK + 1];
  int32_t rank;
  ait_arg sizes[AIT_MAX_RANK];
} side;

typedef struct equation {
  side a, b;
  char out[2 * AIT_MAX_RANK + 1];
  char rows;                     /* the last letter of a that b has not; 0: none */
  char lead[AIT_MAX_RANK + 1];   /* letters of a that are not summed, without rows */
  char summed[AIT_MAX_RANK + 1]; /* of both */
  char columns[AIT_MAX_RANK + 1];
} equation;

static bool has(const char *letters, char c) { return c && strchr(letters, c); }
static void add(char *letters, char c) {
  size_t n = strlen(letters);
  letters[n] = c;
  letters[n + 1] = 0;
}
static const ait_arg *size_of(const side *s, char c) { return &s->sizes[strchr(s->letters, c) - s->letters]; }

static bool same_size(const ait_arg *x, const ait_arg *y) {
  return x->kind == y->kind && (x->kind == AIT_ARG_DIM ? x->as.dim == y->as.dim : x->as.i == y->as.i);
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Letters up to `end`; false: something else than letters, one twice, or not as many as dimensions. */
static bool read_side(const ait_lower *l, const char **text, char end, side *s) {
  const ait_value_info *v = &l->g->values[s->value];
  s->rank = v->rank;
  if (v->rank < 1 || v->rank > AIT_MAX_RANK - 2 || !ait_dtype_is_float(v->dtype) || !ait_shape_args(l->g, s->value, s->sizes)) return false;
  for (; **text && **text != end; ++*text) {
    if (**text == ' ') continue;
    if (!is_letter(**text) || has(s->letters, **text) || (int32_t)strlen(s->letters) == s->rank) return false;
    add(s->letters, **text);
  }
  if (end && *(*text)++ != end) return false;
  return (int32_t)strlen(s->letters) == s->rank;
}

/* What stands behind the arrow; without one: the letters that appear once, in the alphabet's order. */
static bool read_out(const char *text, equation *e) {
  if (*text == '>') {
    while (*++text) {
      if (*text == ' ') continue;
      if (!is_letter(*text) || has(e->out, *text) || (!has(e->a.letters, *text) && !has(e->b.letters, *text))) return false;
      add(e->out, *text);
    }
    return true;
  }
  for (int c = 'A'; c <= 'z'; ++c)
    if (is_letter((char)c) && has(e->a.letters, (char)c) != has(e->b.letters, (char)c)) add(e->out, (char)c);
  return true;
}

/* Every letter's part; false: one is summed in one tensor alone, or has two sizes. */
static bool sort_letters(equation *e) {
  for (const char *c = e->a.letters; *c; ++c) {
    bool both = has(e->b.letters, *c);
    if (both && !same_size(size_of(&e->a, *c), size_of(&e->b, *c))) return false;
    if (!has(e->out, *c)) {
      if (!both) return false;
      add(e->summed, *c);
    } else if (!both) e->rows = *c;
  }
  for (const char *c = e->a.letters; *c; ++c)
    if (has(e->out, *c) && *c != e->rows) add(e->lead, *c);
  for (const char *c = e->b.letters; *c; ++c) {
    if (has(e->a.letters, *c)) continue;
    if (!has(e->out, *c)) return false;
    add(e->columns, *c);
  }
  return true;
}

static bool read_equation(ait_lower *l, equation *e) {
  const ait_arg *list = &l->a[1];
  if (l->a[0].kind != AIT_ARG_STRING || list->kind != AIT_ARG_LIST || list->count != 2) return false;
  const char *text = l->a[0].as.string, *arrow = strchr(text, '-');
  if (!ait_arg_is_tensor(l->g, &list->as.list[0]) || !ait_arg_is_tensor(l->g, &list->as.list[1])) return false;
  e->a.value = list->as.list[0].as.value;
  e->b.value = list->as.list[1].as.value;
  if (l->g->values[e->a.value].dtype != l->g->values[e->b.value].dtype) return false;
  return read_side(l, &text, ',', &e->a) && read_side(l, &text, arrow ? '-' : 0, &e->b) && read_out(text, e) && sort_letters(e);
}

static ait_status permuted(ait_lower *l, uint32_t value, const char *from, const char *to, uint32_t *out) {
  ait_arg order[2 * AIT_MAX_RANK];
  uint32_t n = (uint32_t)strlen(to);
  *out = value;
  if (!strcmp(from, to)) return AIT_OK;
  for (uint32_t i = 0; i < n; ++i) order[i] = ait_arg_int(strchr(from, to[i]) - from);
  return AIT_EMIT(&l->w, out, "permute", ait_arg_value(value), ait_arg_list(order, n));
}

/* The product of the letters' sizes. */
static ait_status merged(ait_lower *l, const side *s, const char *letters, ait_arg *out) {
  ait_dim all, one;
  if (strlen(letters) == 1) {
    *out = *size_of(s, *letters);
    return AIT_OK;
  }
  AIT_TRY(ait_dim_const(l->g, 1, &all));
  for (const char *c = letters; *c; ++c) {
    const ait_arg *size = size_of(s, *c);
    if (size->kind == AIT_ARG_DIM) one = size->as.dim;
    else AIT_TRY(ait_dim_const(l->g, size->as.i, &one));
    AIT_TRY(ait_dim_make(l->g, AIT_DIM_MUL, all, one, &all));
  }
  *out = ait_dim_as_arg(l->g, all);
  return AIT_OK;
}

/* [lead, rows, summed], a missing one as 1. */
static ait_status left(ait_lower *l, const equation *e, uint32_t *out) {
  char to[2 * AIT_MAX_RANK + 2];
  ait_arg shape[AIT_MAX_RANK + 2];
  uint32_t n = 0;
  snprintf(to, sizeof to, "%s%.1s%s", e->lead, &e->rows, e->summed);
  AIT_TRY(permuted(l, e->a.value, e->a.letters, to, out));
  if (e->rows && strlen(e->summed) == 1) return AIT_OK;
  for (const char *c = e->lead; *c; ++c) shape[n++] = *size_of(&e->a, *c);
  shape[n++] = e->rows ? *size_of(&e->a, e->rows) : ait_arg_int(1);
  AIT_TRY(merged(l, &e->a, e->summed, &shape[n++]));
  return AIT_EMIT(&l->w, out, "reshape", ait_arg_value(*out), ait_arg_list(shape, n));
}

/* [lead, summed, columns]: 1 where a has a letter alone. */
static ait_status right(ait_lower *l, const equation *e, uint32_t *out) {
  char to[AIT_MAX_RANK + 1] = "";
  ait_arg shape[AIT_MAX_RANK + 2];
  uint32_t n = 0, shared = 0;
  for (const char *c = e->lead; *c; ++c) {
    bool both = has(e->b.letters, *c);
    if (both) add(to, *c);
    shared += both;
    shape[n++] = both ? *size_of(&e->b, *c) : ait_arg_int(1);
  }
  strcat(strcat(to, e->summed), e->columns);
  AIT_TRY(permuted(l, e->b.value, e->b.letters, to, out));
  if (strlen(e->summed) == 1 && strlen(e->columns) == 1 && (shared == 0 || shared == strlen(e->lead))) return AIT_OK;
  AIT_TRY(merged(l, &e->b, e->summed, &shape[n++]));
  AIT_TRY(merged(l, &e->b, e->columns, &shape[n++]));
  return AIT_EMIT(&l->w, out, "reshape", ait_arg_value(*out), ait_arg_list(shape, n));
}

ait_status ait_lower_einsum(ait_lower *l) {
  equation e = {0};
  uint32_t x, y, out;
  char got[2 * AIT_MAX_RANK + 2];
  ait_arg shape[2 * AIT_MAX_RANK];
  uint32_t n = 0;
  if (!read_equation(l, &e)) return AIT_OK;
  if (e.a.rank < e.b.rank && !*e.summed) return AIT_OK;
  if (e.a.rank < e.b.rank) { /* the tensor with more letters keeps its order */
    side a = e.a;
    e.a = e.b;
    e.b = a;
    e.rows = 0;
    *e.lead = *e.summed = *e.columns = 0;
    if (!sort_letters(&e)) return AIT_OK;
  }
  if (strlen(e.out) > AIT_MAX_RANK || strlen(e.lead) + 2 > AIT_MAX_RANK) return AIT_OK;
  AIT_TRY(left(l, &e, &x));
  AIT_TRY(right(l, &e, &y));
  AIT_TRY(AIT_EMIT(&l->w, &out, "matmul", ait_arg_value(x), ait_arg_value(y)));
  for (const char *c = e.lead; *c; ++c) shape[n++] = *size_of(&e.a, *c);
  if (e.rows) shape[n++] = *size_of(&e.a, e.rows);
  for (const char *c = e.columns; *c; ++c) shape[n++] = *size_of(&e.b, *c);
  if (!e.rows || strlen(e.columns) != 1) AIT_TRY(AIT_EMIT(&l->w, &out, "reshape", ait_arg_value(out), ait_arg_list(shape, n)));
  snprintf(got, sizeof got, "%s%.1s%s", e.lead, &e.rows, e.columns);
  AIT_TRY(permuted(l, out, got, e.out, &out));
  return ait_lower_done(l, out);
}
