/* Raw graphs: views of views, writes through them, and reads of everything that may have changed. Metadata of results comes from the rule
 * of the core operator that means the same. Values stay small by themselves: products are with fresh inputs in [-1, 1). */
#include "graph_fuzz.h"

#include <math.h>

#define NEED(x)             \
  do {                      \
    if (!(x)) return false; \
  } while (0)

static uint32_t below(gf_gen *g, int64_t n) { return gf_below(&g->random, (uint32_t)n); }
static bool chance(gf_gen *g, uint32_t percent) { return gf_chance(&g->random, percent); }
static int32_t rank_of(const gf_gen *g, const gf_value *v) { return gf_info(g, v)->rank; }

/* ---- nodes ---------------------------------------------------------------------------------------------------------------------------*/
static bool add_node(gf_gen *g, const char *op, const ait_arg *args, uint32_t count, uint32_t flags, const ait_value_info *like,
                     uint32_t *out) {
  ait_arg filled[16];
  const ait_op *row = ait_op_find(op);
  if (!row || row->param_count > AIT_COUNT(filled) || g->count + 4 >= GF_MAX_VALUES) return false;
  for (uint32_t i = 0; i < row->param_count; ++i) filled[i] = i < count ? args[i] : row->params[i].default_value;
  gf_must(ait_graph_add_value(g->g, "v", like, out), op);
  gf_must(
      ait_graph_add_node(g->g, NULL, row, row->name, flags, filled, row->param_count, out, 1, g->g->values[*out].name, AIT_NO_INDEX, NULL),
      op);
  return true;
}

/* The metadata that a core operator gives; false when its rule refuses. */
static bool meta(gf_gen *g, const char *core, const ait_arg *args, uint32_t count, ait_value_info *out) {
  ait_status status = ait_infer(g->g, ait_op_find(core), args, count, out, 1);
  ait_status_ignore(status);
  if (status != AIT_OK || out->rank < 0 || out->rank > 5) return false;
  for (int32_t d = 0; d < out->rank; ++d)
    if (!ait_dim_is_known(g->g, out->shape[d])) return false;
  return true;
}

static gf_value *made(gf_gen *g, uint32_t id, bool contiguous) {
  gf_value *v = gf_add(g, id);
  gf_range(v, -100, 100, false);
  v->contiguous = contiguous;
  v->writable = true;
  return v;
}

static gf_value *viewed(gf_gen *g, uint32_t id, const gf_value *of, bool contiguous) {
  uint32_t root = of->root;
  bool writable = of->writable;
  gf_value *v = made(g, id, contiguous);
  v->root = root;
  v->writable = writable;
  return v;
}

/* A size as a raw program states it: a number, or read from a tensor that has it. */
static bool size_arg(gf_gen *g, const gf_value *v, int32_t dim, ait_arg *out) {
  int64_t n;
  if (gf_size(g, v, dim, &n)) return *out = ait_arg_int(n), true;
  ait_value_info info = {.type = AIT_TYPE_INT, .scalar = gf_info(g, v)->shape[dim]};
  uint32_t id;
  NEED(add_node(g, "aten.sym_size.int", GF_ARGS(gf_v(v), ait_arg_int(dim)), 0, &info, &id));
  *out = ait_arg_value(id);
  return true;
}

/* ---- pure --------------------------------------------------------------------------------------------------------------------------*/
static const struct {
  const char *raw, *core;
} same_shape[] = {{"aten.relu", "relu"}, {"aten.sigmoid", "sigmoid"}, {"aten.tanh", "tanh"},  {"aten.neg", "neg"},
                  {"aten.abs", "abs"},   {"aten.gelu", "gelu"},       {"aten.clone", "relu"}, {"aten.hardtanh", "relu"}};

static const char *core_of(const char *raw) {
  for (size_t i = 0; i < AIT_COUNT(same_shape); ++i)
    if (!strcmp(same_shape[i].raw, raw)) return same_shape[i].core;
  return NULL;
}

static bool raw_unary(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT, 0, 5);
  ait_value_info info;
  uint32_t id;
  NEED(x);
  NEED(meta(g, core_of(op), GF_ARGS(gf_v(x)), &info));
  NEED(add_node(g, op, GF_ARGS(gf_v(x)), 0, &info, &id));
  made(g, id, x->contiguous);
  return true;
}

static bool raw_binary(gf_gen *g, const char *op) {
  gf_value *a = gf_pick(g, GF_FLOAT, 0, 5), *b;
  ait_value_info info;
  uint32_t id;
  NEED(a);
  if (!strcmp(op, "aten.mul.Tensor")) b = gf_input(g, 's', 0, gf_info(g, a)->dtype, rank_of(g, a), gf_info(g, a)->shape, chance(g, 50));
  else b = gf_partner(g, a, GF_FLOAT, false);
  NEED(b);
  NEED(meta(g, "add", GF_ARGS(gf_v(a), gf_v(b)), &info));
  ait_arg alpha = chance(g, 30) ? ait_arg_int(2) : ait_arg_int(1);
  bool has_alpha = strcmp(op, "aten.mul.Tensor") && strcmp(op, "aten.maximum");
  NEED(add_node(g, op, GF_ARGS(gf_v(a), gf_v(b), alpha), 0, &info, &id) || !has_alpha);
  made(g, id, a->contiguous && b->contiguous);
  return true;
}

static bool raw_reduce(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT, 1, 5);
  ait_value_info info;
  uint32_t id;
  NEED(x);
  ait_arg axis[] = {ait_arg_int((int64_t)below(g, rank_of(g, x)))};
  ait_arg keep = ait_arg_bool(chance(g, 50));
  NEED(meta(g, "mean", GF_ARGS(gf_v(x), ait_arg_list(axis, 1), keep), &info));
  NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_list(axis, 1), keep), 0, &info, &id));
  made(g, id, true);
  return true;
}

static bool raw_softmax(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT, 1, 5);
  ait_value_info info;
  uint32_t id;
  NEED(x);
  ait_arg axis = ait_arg_int((int64_t)below(g, rank_of(g, x)) - (chance(g, 50) ? rank_of(g, x) : 0));
  NEED(meta(g, "softmax", GF_ARGS(gf_v(x), axis), &info));
  NEED(add_node(g, op, GF_ARGS(gf_v(x), axis), 0, &info, &id));
  made(g, id, x->contiguous);
  return true;
}

static bool raw_linear(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT, 1, 4);
  ait_value_info info;
  uint32_t id;
  NEED(x);
  ait_dim shape[2] = {gf_const(g, gf_some_size(g)), gf_info(g, x)->shape[rank_of(g, x) - 1]};
  gf_value *w = gf_input(g, 's', 0, gf_info(g, x)->dtype, 2, shape, chance(g, 80));
  NEED(w);
  NEED(meta(g, "linear", GF_ARGS(gf_v(x), gf_v(w)), &info));
  NEED(add_node(g, op, GF_ARGS(gf_v(x), gf_v(w)), 0, &info, &id));
  made(g, id, true);
  return true;
}

static bool raw_cat(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT, 1, 4), *y;
  ait_value_info info;
  uint32_t id;
  NEED(x);
  ait_arg items[] = {gf_v(x), gf_v(x)};
  if ((y = gf_partner(g, x, GF_FLOAT, true)) && rank_of(g, y) == rank_of(g, x) &&
      !memcmp(gf_info(g, y)->shape, gf_info(g, x)->shape, (size_t)rank_of(g, x) * sizeof(ait_dim)))
    items[1] = gf_v(y);
  ait_arg axis = ait_arg_int((int64_t)below(g, rank_of(g, x)));
  NEED(meta(g, "cat", GF_ARGS(ait_arg_list(items, 2), axis), &info));
  NEED(add_node(g, op, GF_ARGS(ait_arg_list(items, 2), axis), 0, &info, &id));
  made(g, id, true);
  return true;
}

/* ---- views ---------------------------------------------------------------------------------------------------------------------------*/
static bool raw_plain_view(gf_gen *g, const char *op) { /* alias, detach, contiguous */
  gf_value *x = gf_pick(g, GF_ANY, 0, 5);
  uint32_t id;
  NEED(x);
  ait_value_info info = *gf_info(g, x);
  NEED(add_node(g, op, GF_ARGS(gf_v(x)), 0, &info, &id));
  viewed(g, id, x, x->contiguous || !strcmp(op, "aten.contiguous"));
  return true;
}

static bool raw_slice(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 1, 5);
  ait_value_info info;
  uint32_t id;
  NEED(x);
  bool narrow = !strcmp(op, "aten.narrow");
  int64_t dim = below(g, rank_of(g, x)), start = below(g, 4), end = chance(g, 40) ? INT64_MAX : start + (int64_t)below(g, 5),
          step = 1 + (int64_t)below(g, 2);
  if (narrow) {
    int64_t least = gf_least(g, x, (int32_t)dim);
    if (least < 1) return false;
    start = below(g, least);
    end = start + below(g, least - start + 1);
    step = 1;
  } else if (chance(g, 20)) {
    start = -1 - start;
  }
  NEED(meta(g, "slice", GF_ARGS(gf_v(x), ait_arg_int(dim), ait_arg_int(start), ait_arg_int(end), ait_arg_int(step)), &info));
  if (narrow) NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_int(dim), ait_arg_int(start), ait_arg_int(end - start)), 0, &info, &id));
  else NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_int(dim), ait_arg_int(start), ait_arg_int(end), ait_arg_int(step)), 0, &info, &id));
  viewed(g, id, x, x->contiguous && dim == 0 && step == 1);
  return true;
}

static bool raw_select(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY | GF_NONEMPTY, 1, 5);
  ait_value_info info;
  uint32_t id;
  NEED(x);
  int64_t dim = below(g, rank_of(g, x)), index = below(g, gf_least(g, x, (int32_t)dim));
  if (chance(g, 30)) index = -1 - index;
  NEED(meta(g, "select", GF_ARGS(gf_v(x), ait_arg_int(dim), ait_arg_int(index)), &info));
  NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_int(dim), ait_arg_int(index)), 0, &info, &id));
  viewed(g, id, x, x->contiguous && dim == 0);
  return true;
}

static bool raw_permute(gf_gen *g, const char *op) {
  bool two = !strcmp(op, "aten.t"), swap = !strcmp(op, "aten.transpose.int");
  gf_value *x = gf_pick(g, GF_ANY, two ? 2 : 1, two ? 2 : 5);
  ait_value_info info;
  uint32_t id;
  NEED(x);
  int32_t rank = rank_of(g, x), a = (int32_t)below(g, rank), b = (int32_t)below(g, rank);
  if (two) a = 0, b = 1;
  ait_arg dims[AIT_MAX_RANK];
  for (int32_t d = 0; d < rank; ++d) dims[d] = ait_arg_int(d);
  dims[a] = ait_arg_int(b);
  dims[b] = ait_arg_int(a);
  if (!two && !swap && rank > 2) { /* a rotation on top */
    ait_arg first = dims[0];
    memmove(dims, dims + 1, (size_t)(rank - 1) * sizeof *dims);
    dims[rank - 1] = first;
  }
  NEED(meta(g, "permute", GF_ARGS(gf_v(x), ait_arg_list(dims, (uint32_t)rank)), &info));
  if (two) NEED(add_node(g, op, GF_ARGS(gf_v(x)), 0, &info, &id));
  else if (swap) NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_int(a), ait_arg_int(b)), 0, &info, &id));
  else NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_list(dims, (uint32_t)rank)), 0, &info, &id));
  viewed(g, id, x, false);
  return true;
}

static bool raw_unsqueeze(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 0, 4);
  uint32_t id;
  NEED(x);
  int32_t rank = rank_of(g, x), at = (int32_t)below(g, rank + 1);
  ait_dim shape[AIT_MAX_RANK];
  for (int32_t d = 0; d <= rank; ++d) shape[d] = d == at ? gf_const(g, 1) : gf_info(g, x)->shape[d - (d > at)];
  ait_value_info info = {.type = AIT_TYPE_TENSOR, .dtype = gf_info(g, x)->dtype, .rank = rank + 1, .shape = shape};
  NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_int(at)), 0, &info, &id));
  viewed(g, id, x, x->contiguous);
  return true;
}

static bool raw_squeeze(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 1, 5);
  uint32_t id;
  NEED(x);
  int32_t rank = rank_of(g, x), at = (int32_t)below(g, rank), n = 0;
  ait_dim shape[AIT_MAX_RANK];
  int64_t size;
  bool one = gf_size(g, x, at, &size) && size == 1;
  if (!one && !ait_dim_is_const(g->g, gf_info(g, x)->shape[at], &size)) return false; /* export would have guarded on it */
  for (int32_t d = 0; d < rank; ++d)
    if (d != at || !one) shape[n++] = gf_info(g, x)->shape[d];
  ait_value_info info = {.type = AIT_TYPE_TENSOR, .dtype = gf_info(g, x)->dtype, .rank = n, .shape = shape};
  NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_int(at)), 0, &info, &id));
  viewed(g, id, x, x->contiguous);
  return true;
}

static bool raw_expand(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 0, 4);
  ait_arg args[AIT_MAX_RANK], dims[AIT_MAX_RANK];
  ait_value_info info;
  uint32_t id;
  int32_t n = 0;
  NEED(x);
  if (chance(g, 50)) args[n] = dims[n] = ait_arg_int(2), ++n;
  for (int32_t d = 0; d < rank_of(g, x); ++d) {
    int64_t size;
    bool one = gf_size(g, x, d, &size) && size == 1;
    args[n] = one ? ait_arg_int(1 + (int64_t)below(g, 3)) : ait_arg_int(-1);
    dims[n] = args[n];
    ++n;
  }
  NEED(meta(g, "expand", GF_ARGS(gf_v(x), ait_arg_list(dims, (uint32_t)n)), &info));
  NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_list(args, (uint32_t)n)), 0, &info, &id));
  viewed(g, id, x, false)->writable = false; /* several elements in one place */
  return true;
}

/* view (memory must allow it) and reshape (a copy where it does not): two dims joined, or a constant one split. */
static bool raw_view(gf_gen *g, const char *op) {
  bool view = !strcmp(op, "aten.view");
  gf_value *x = gf_pick(g, GF_ANY, 1, 4);
  NEED(x);
  if (view && !x->contiguous) return false;
  int32_t rank = rank_of(g, x), at = (int32_t)below(g, rank), n = 0;
  ait_dim shape[AIT_MAX_RANK];
  ait_arg args[AIT_MAX_RANK];
  int64_t size;
  bool known = true;
  for (int32_t d = 0; d < rank; ++d) {
    if (d == at && d + 1 < rank && chance(g, 60)) {
      gf_must(ait_dim_make(g->g, AIT_DIM_MUL, gf_info(g, x)->shape[d], gf_info(g, x)->shape[d + 1], &shape[n]), "product");
      args[n] = ait_dim_is_const(g->g, shape[n], &size) ? ait_arg_int(size) : ait_arg_int(-1);
      known &= args[n].as.i != -1 || rank == 2;
      ++n;
      ++d;
    } else if (d == at && gf_size(g, x, d, &size) && size % 2 == 0 && size) {
      shape[n] = gf_const(g, 2);
      args[n++] = ait_arg_int(2);
      shape[n] = gf_const(g, size / 2);
      args[n++] = ait_arg_int(size / 2);
    } else {
      shape[n] = gf_info(g, x)->shape[d];
      NEED(size_arg(g, x, d, &args[n]));
      ++n;
    }
  }
  for (int32_t d = 0; d < rank && !known; ++d) known = false;
  for (int32_t d = 0; d < n; ++d) /* -1 with an empty dim beside it means nothing */
    if (args[d].kind == AIT_ARG_INT && args[d].as.i == -1)
      for (int32_t k = 0; k < rank; ++k) NEED(gf_least(g, x, k) > 0);
  ait_value_info info = {.type = AIT_TYPE_TENSOR, .dtype = gf_info(g, x)->dtype, .rank = n, .shape = shape};
  uint32_t id;
  NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_list(args, (uint32_t)n)), 0, &info, &id));
  viewed(g, id, x, true);
  return true;
}

static bool raw_split(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 1, 4);
  NEED(x);
  int32_t dim = (int32_t)below(g, rank_of(g, x));
  int64_t size, part = 1 + (int64_t)below(g, 3);
  NEED(gf_size(g, x, dim, &size) && size > 0);
  uint32_t count = (uint32_t)((size + part - 1) / part), id, list;
  ait_value_info items[40];
  ait_dim shapes[40][8];
  NEED(count < AIT_COUNT(items) && g->count + 4 < GF_MAX_VALUES);
  for (uint32_t i = 0; i < count; ++i) {
    memcpy(shapes[i], gf_info(g, x)->shape, (size_t)rank_of(g, x) * sizeof(ait_dim));
    shapes[i][dim] = gf_const(g, i + 1 < count ? part : size - (int64_t)i * part);
    items[i] = (ait_value_info){.type = AIT_TYPE_TENSOR, .dtype = gf_info(g, x)->dtype, .rank = rank_of(g, x), .shape = shapes[i]};
  }
  ait_value_info info = {.type = AIT_TYPE_TENSOR_LIST, .list_count = count, .elements = items};
  NEED(add_node(g, op, GF_ARGS(gf_v(x), ait_arg_int(part), ait_arg_int(dim)), 0, &info, &list));
  uint32_t of = (uint32_t)(x - g->values);
  for (uint32_t k = 0; k < 2; ++k) {
    uint32_t which = below(g, count);
    NEED(add_node(g, "_operator.getitem", GF_ARGS(ait_arg_value(list), ait_arg_int(which)), 0, &items[which], &id));
    viewed(g, id, &g->values[of], x->contiguous && dim == 0);
  }
  return true;
}

/* ---- writes --------------------------------------------------------------------------------------------------------------------------*/
static void mark_written(gf_gen *g, const gf_value *v) {
  uint32_t root = g->values[v->root].id;
  for (size_t i = 0; i < g->g->input_count; ++i)
    if (g->g->inputs[i].value == root) g->g->inputs[i].mutated = true;
}

static bool write_node(gf_gen *g, const char *op, gf_value *target, const ait_arg *args, uint32_t count) {
  ait_value_info info = *gf_info(g, target);
  uint32_t id;
  NEED(add_node(g, op, args, count, AIT_NODE_INPLACE, &info, &id));
  mark_written(g, target);
  viewed(g, id, target, target->contiguous);
  return true;
}

static gf_value *target_of(gf_gen *g) {
  gf_value *x = gf_pick(g, GF_FLOAT, 0, 5);
  return x && x->writable ? x : NULL;
}

static bool raw_write(gf_gen *g, const char *op) { /* relu_, sigmoid_, zero_, clamp_, fill_ */
  gf_value *x = target_of(g);
  NEED(x);
  const char *name = op + strlen("inplace ");
  if (!strcmp(name, "aten.fill.Scalar")) return write_node(g, name, x, GF_ARGS(gf_v(x), ait_arg_float(0.5)));
  if (!strcmp(name, "aten.clamp"))
    return write_node(g, name, x, GF_ARGS(gf_v(x), ait_arg_float(-0.25), chance(g, 50) ? ait_arg_none() : ait_arg_float(0.5)));
  return write_node(g, name, x, GF_ARGS(gf_v(x)));
}

/* add_, sub_, copy_ with another tensor, which may share the target's memory only when it is the same view. */
static bool raw_write_from(gf_gen *g, const char *op) {
  gf_value *x = target_of(g);
  NEED(x);
  const char *name = op + strlen("inplace ");
  gf_value *y = !strcmp(name, "aten.mul.Tensor")
                    ? gf_input(g, 's', 0, gf_info(g, x)->dtype, rank_of(g, x), gf_info(g, x)->shape, chance(g, 50))
                    : gf_partner(g, x, GF_FLOAT, true);
  NEED(y);
  if (y != x && y->root == x->root) return false; /* torch refuses, or says nothing of, partial overlap */
  return write_node(g, name, x, GF_ARGS(gf_v(x), gf_v(y)));
}

static bool raw_write_masked(gf_gen *g, const char *op) {
  gf_value *x = target_of(g), *mask;
  NEED(x);
  NEED(mask = gf_partner(g, x, GF_BOOL, true));
  return write_node(g, op + strlen("inplace "), x, GF_ARGS(gf_v(x), gf_v(mask), ait_arg_float(-0.75)));
}

static bool raw_write_indexed(gf_gen *g, const char *op) {
  gf_value *x = target_of(g);
  NEED(x);
  if (rank_of(g, x) < 1 || gf_least(g, x, 0) < 1) return false;
  ait_dim shape[] = {gf_const(g, 2)};
  gf_value *index = gf_input(g, 'n', gf_least(g, x, 0), AIT_I64, 1, shape, chance(g, 30)),
           *values = gf_input(g, 's', 0, gf_info(g, x)->dtype, 0, NULL, false);
  NEED(index && values);
  ait_arg items[] = {gf_v(index)};
  return write_node(g, op + strlen("inplace "), x, GF_ARGS(gf_v(x), ait_arg_list(items, 1), gf_v(values), ait_arg_bool(chance(g, 50))));
}

const gf_recipe gf_raw_recipes[] = {
    {"aten.relu", raw_unary, 3},
    {"aten.sigmoid", raw_unary, 3},
    {"aten.tanh", raw_unary, 3},
    {"aten.neg", raw_unary, 3},
    {"aten.abs", raw_unary, 2},
    {"aten.gelu", raw_unary, 2},
    {"aten.clone", raw_unary, 3},
    {"aten.hardtanh", raw_unary, 2},
    {"aten.add.Tensor", raw_binary, 8},
    {"aten.sub.Tensor", raw_binary, 4},
    {"aten.mul.Tensor", raw_binary, 4},
    {"aten.maximum", raw_binary, 3},
    {"aten.sum.dim_IntList", raw_reduce, 3},
    {"aten.mean.dim", raw_reduce, 3},
    {"aten.softmax.int", raw_softmax, 3},
    {"aten.linear", raw_linear, 4},
    {"aten.cat", raw_cat, 4},
    {"aten.alias", raw_plain_view, 3},
    {"aten.detach", raw_plain_view, 3},
    {"aten.contiguous", raw_plain_view, 3},
    {"aten.slice.Tensor", raw_slice, 8},
    {"aten.narrow", raw_slice, 3},
    {"aten.select.int", raw_select, 6},
    {"aten.permute", raw_permute, 4},
    {"aten.transpose.int", raw_permute, 4},
    {"aten.t", raw_permute, 3},
    {"aten.unsqueeze", raw_unsqueeze, 4},
    {"aten.squeeze.dim", raw_squeeze, 4},
    {"aten.expand", raw_expand, 4},
    {"aten.view", raw_view, 6},
    {"aten.reshape", raw_view, 5},
    {"aten.split.Tensor", raw_split, 4},
    {"inplace aten.relu", raw_write, 4},
    {"inplace aten.sigmoid", raw_write, 4},
    {"inplace aten.zero", raw_write, 3},
    {"inplace aten.clamp", raw_write, 3},
    {"inplace aten.fill.Scalar", raw_write, 5},
    {"inplace aten.add.Tensor", raw_write_from, 8},
    {"inplace aten.sub.Tensor", raw_write_from, 3},
    {"inplace aten.mul.Tensor", raw_write_from, 4},
    {"inplace aten.copy", raw_write_from, 8},
    {"inplace aten.masked_fill.Scalar", raw_write_masked, 4},
    {"inplace aten.index_put", raw_write_indexed, 4},
    {NULL, NULL, 0},
};
