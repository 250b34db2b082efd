/* Gathering and scattering. Negative indices count from the end in ONNX as in torch, and one out of range is an error in both. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

static oe_t at_least_1d(ox *x, oe_t a) { return a.rank == 0 ? oe_reshape_to(x, a, (const int64_t[]){1}, 1) : a; }

void oe_row_gather(ox *x) {
  oe_t a = oe_in(x, 0), index = oe_in_as(x, 2, AIT_I64);
  oe_t r = OE(x, "GatherElements", a.dtype, at_least_1d(x, a), at_least_1d(x, index));
  oe_int(x, "axis", oe_axis(x, oe_arg_int(x, 1), a.rank));
  oe_set(x, 0, index.rank == 0 ? oe_reshape_to(x, r, NULL, 0) : r);
}

void oe_row_index_select(ox *x) {
  oe_t a = oe_in(x, 0), r = OE(x, "Gather", a.dtype, at_least_1d(x, a), at_least_1d(x, oe_in_as(x, 2, AIT_I64)));
  oe_int(x, "axis", oe_axis(x, oe_arg_int(x, 1), a.rank));
  oe_set(x, 0, a.rank == 0 ? oe_reshape_to(x, r, NULL, 0) : r);
}

void oe_row_embedding(ox *x) {
  oe_t weight = oe_in(x, 0);
  oe_set(x, 0, OE(x, "Gather", weight.dtype, weight, oe_in_as(x, 1, AIT_I64)));
}

/* ---- several indices -------------------------------------------------------------------------------------------------------------*/
typedef struct index_plan {
  oe_t indices[AIT_MAX_RANK]; /* int64 */
  int64_t dims[AIT_MAX_RANK]; /* the dim that each is for */
  uint32_t count;
  bool adjacent;      /* then their broadcast shape goes where the first is, else to the front */
  int32_t index_rank; /* of that shape */
} index_plan;

/* A truth mask takes as many dims as it has, and is their places. */
static void add_mask(ox *x, index_plan *p, oe_t mask, int64_t dim) {
  oe_t places = OE(x, "NonZero", AIT_I64, oe_cast(x, mask, AIT_BOOL)); /* [rank, count] */
  for (int32_t i = 0; i < mask.rank && p->count < AIT_MAX_RANK; ++i) {
    oe_t row = OE(x, "Gather", AIT_I64, places, oe_i64(x, i));
    row.rank = 1;
    p->indices[p->count] = row;
    p->dims[p->count++] = dim + i;
  }
}

static bool plan_indices(ox *x, oe_t a, index_plan *p) {
  const ait_arg *list;
  uint32_t count = oe_arg_list(x, 1, &list);
  int64_t dim = 0;
  *p = (index_plan){.adjacent = true};
  for (uint32_t i = 0; i < count && !oe_failed(x); ++i) {
    if (list[i].kind == AIT_ARG_NONE) {
      ++dim;
      continue;
    }
    oe_t index = oe_operand(x, &list[i], AIT_DTYPE_NONE);
    bool mask = index.dtype == AIT_BOOL || index.dtype == AIT_U8;
    if (index.rank < 0 || (mask && index.rank == 0) || p->count == AIT_MAX_RANK) {
      oe_fail(x, "an index has a rank that is not known, or none");
      return false;
    }
    if (mask) {
      add_mask(x, p, index, dim);
      dim += index.rank;
      continue;
    }
    p->indices[p->count] = oe_cast(x, index, AIT_I64);
    p->dims[p->count++] = dim++;
  }
  for (uint32_t i = 0; i < p->count; ++i) {
    if (i && p->dims[i] != p->dims[i - 1] + 1) p->adjacent = false;
    if (p->indices[i].rank > p->index_rank) p->index_rank = p->indices[i].rank;
  }
  if (a.rank < 0) oe_fail(x, "the rank of its operand is not known");
  return !oe_failed(x);
}

/* [.., count]: the indices broadcast together, as the last dim. */
static oe_t stacked(ox *x, const index_plan *p) {
  oe_t columns[AIT_MAX_RANK], shape = oe_none();
  if (p->count == 1) return oe_unsqueeze(x, p->indices[0], p->index_rank);
  oe_t sum = p->indices[0]; /* has the broadcast shape */
  for (uint32_t i = 1; i < p->count; ++i) sum = oe_same2(x, "Add", sum, p->indices[i]);
  shape = oe_shape_of(x, sum);
  for (uint32_t i = 0; i < p->count; ++i) columns[i] = oe_unsqueeze(x, oe_expand(x, p->indices[i], shape), p->index_rank);
  return oe_concat(x, columns, p->count, p->index_rank);
}

/* The indexed dims to the front, the others behind them. */
static uint32_t indexed_first(const index_plan *p, int32_t rank, int64_t *order) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < p->count; ++i) order[at++] = p->dims[i];
  for (int64_t d = 0; d < rank; ++d) {
    bool indexed = false;
    for (uint32_t i = 0; i < p->count; ++i) indexed |= p->dims[i] == d;
    if (!indexed) order[at++] = d;
  }
  return at;
}

/* From [index shape.., others..] to where torch has them. `order` of a Transpose, or its inverse. */
static uint32_t result_order(const index_plan *p, int32_t rank, int64_t *order) {
  int32_t others = rank - (int32_t)p->count, before = p->adjacent ? (int32_t)p->dims[0] : 0;
  uint32_t at = 0;
  for (int32_t i = 0; i < before; ++i) order[at++] = p->index_rank + i;
  for (int32_t i = 0; i < p->index_rank; ++i) order[at++] = i;
  for (int32_t i = before; i < others; ++i) order[at++] = p->index_rank + i;
  return at;
}

void oe_row_index(ox *x) {
  oe_t a = oe_in(x, 0);
  index_plan p;
  int64_t order[2 * AIT_MAX_RANK];
  if (!plan_indices(x, a, &p)) return;
  if (p.count == 0) {
    oe_set(x, 0, a);
    return;
  }
  if (p.count == 1) {
    oe_t r = OE(x, "Gather", a.dtype, a, p.indices[0]);
    oe_int(x, "axis", p.dims[0]);
    oe_set(x, 0, r);
    return;
  }
  uint32_t rank = indexed_first(&p, a.rank, order);
  oe_t front = oe_transpose(x, a, order, rank), r = OE(x, "GatherND", a.dtype, front, stacked(x, &p));
  oe_set(x, 0, oe_transpose(x, r, order, result_order(&p, a.rank, order)));
}

/* x, indices, values, accumulate. What duplicates leave behind without accumulate is open in both torch and ONNX. */
void oe_row_index_put(ox *x) {
  oe_t a = oe_in(x, 0), values = oe_in_as(x, 2, a.dtype);
  index_plan p;
  int64_t order[2 * AIT_MAX_RANK], back[2 * AIT_MAX_RANK];
  if (!plan_indices(x, a, &p)) return;
  if (p.count == 0) {
    oe_fail(x, "it has no index");
    return;
  }
  uint32_t rank = indexed_first(&p, a.rank, order);
  for (uint32_t i = 0; i < rank; ++i) back[order[i]] = i;
  oe_t front = oe_transpose(x, a, order, rank), places = stacked(x, &p);
  /* The values broadcast to the result of `index`; ScatterND wants [index shape.., others..]. */
  oe_t like = OE(x, "GatherND", a.dtype, front, places);
  int64_t to_torch[2 * AIT_MAX_RANK], from_torch[2 * AIT_MAX_RANK];
  uint32_t n = result_order(&p, a.rank, to_torch);
  for (uint32_t i = 0; i < n; ++i) from_torch[to_torch[i]] = i;
  oe_t updates = oe_transpose(x, oe_expand(x, values, oe_shape_of(x, oe_transpose(x, like, to_torch, n))), from_torch, n);
  oe_t r = OE(x, "ScatterND", a.dtype, front, places, updates);
  if (oe_arg_bool(x, 3)) oe_string(x, "reduction", "add");
  oe_set(x, 0, oe_transpose(x, r, back, rank));
}

/* x, dim, index, src, reduce. src may be larger than index: its beginning counts. */
void oe_row_scatter(ox *x) {
  static const struct {
    const char *torch, *onnx;
  } reductions[] = {{"none", "none"}, {"add", "add"},  {"sum", "add"}, {"multiply", "mul"},
                    {"prod", "mul"},  {"amax", "max"}, {"amin", "min"}};
  oe_t given = oe_in(x, 0), a = at_least_1d(x, given), index = at_least_1d(x, oe_in_as(x, 2, AIT_I64)), src = oe_in_as(x, 3, given.dtype);
  const char *name = oe_has(x, 4) ? oe_arg_string(x, 4) : "none", *reduction = NULL;
  for (size_t i = 0; i < AIT_COUNT(reductions); ++i)
    if (!strcmp(reductions[i].torch, name)) reduction = reductions[i].onnx;
  if (!reduction) {
    oe_fail(x, "ONNX has no scatter with reduction '%s'", name);
    return;
  }
  if (oe_arg(x, 3)->kind != AIT_ARG_VALUE || (src.rank == 0 && given.rank > 0)) {
    src = oe_expand(x, src, oe_shape_of(x, index));
  } else {
    src = at_least_1d(x, src);
    bool same = given.rank > 0 && src.rank == index.rank && src.shape && index.shape;
    for (int32_t i = 0; same && i < src.rank; ++i) same = oe_dim_same(x, src.shape[i], index.shape[i]);
    if (!same && given.rank > 0) {
      int64_t axes[AIT_MAX_RANK], starts[AIT_MAX_RANK] = {0};
      for (int32_t i = 0; i < given.rank; ++i) axes[i] = i;
      src = OE(x, "Slice", src.dtype, src, oe_list(x, starts, (uint32_t)given.rank), oe_shape_of(x, index),
               oe_list(x, axes, (uint32_t)given.rank));
    }
  }
  oe_t r = OE(x, "ScatterElements", a.dtype, a, index, src);
  oe_int(x, "axis", oe_axis(x, oe_arg_int(x, 1), given.rank));
  if (strcmp(reduction, "none")) oe_string(x, "reduction", reduction);
  oe_set(x, 0, given.rank == 0 ? oe_reshape_to(x, r, NULL, 0) : r);
}
