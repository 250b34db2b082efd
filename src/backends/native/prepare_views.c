/* Steps that move or rename elements and compute nothing. */
#include "backends/native/prepare.h"

const nat_view *nat_wish(const nat_bind *b, const nat_step *s, uint32_t i) {
  if (i >= s->out_count || b->program->ids[s->out_begin + i] == NAT_NONE) return NULL;
  const nat_view *wish = &b->placed[b->program->ids[s->out_begin + i]];
  return wish->bound ? wish : NULL;
}

/* ---- views -----------------------------------------------------------------------------------------------------------------------*/
ait_status nat_prepare_reshape(nat_bind *b, const nat_step *s) {
  nat_view x, y;
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_out_shape(b, s, 0, &y));
  if (nat_count(&x) != nat_count(&y) || x.dtype != y.dtype) return nat_error(b, AIT_CODE_INVALID_MODEL, "the number of elements changes");
  y.root = x.root;
  y.offset = x.offset;
  y.dtype = x.dtype;
  if (nat_reshape_strides(&x, y.rank, y.shape, y.strides)) return nat_out_view(b, s, 0, &y);
  AIT_TRY(nat_out_plain(b, s, 0, &y));
  nat_view to = x;
  int32_t order[AIT_MAX_RANK];
  to.root = y.root;
  to.offset = y.offset;
  nat_order_row_major(x.rank, order);
  nat_order_strides(x.rank, x.shape, order, to.strides);
  return nat_copy(b, &to, &x);
}

ait_status nat_prepare_permute(nat_bind *b, const nat_step *s) {
  nat_view x, y;
  int64_t dims[AIT_MAX_RANK];
  int32_t count;
  bool seen[AIT_MAX_RANK] = {false};
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_arg_ints(b, s, 1, dims, &count));
  if (count != x.rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "permutation of %d dims for rank %d", count, x.rank);
  y = x;
  for (int32_t d = 0; d < count; ++d) {
    int64_t from = dims[d] < 0 ? dims[d] + x.rank : dims[d];
    if (from < 0 || from >= x.rank || seen[from]) return nat_error(b, AIT_CODE_INVALID_MODEL, "not a permutation");
    seen[from] = true;
    y.shape[d] = x.shape[from];
    y.strides[d] = x.strides[from];
  }
  return nat_out_view(b, s, 0, &y);
}

ait_status nat_prepare_expand(nat_bind *b, const nat_step *s) {
  nat_view x, y, wide;
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_out_shape(b, s, 0, &y));
  if (!nat_broadcast(&x, y.rank, y.shape, &wide)) return nat_error(b, AIT_CODE_INVALID_MODEL, "cannot be expanded to that shape");
  return nat_out_view(b, s, 0, &wide);
}

/* Python's rule: negative counts from the end, then clamped. */
static int64_t clamp_index(int64_t i, int64_t size) {
  if (i < 0) i += size;
  return i < 0 ? 0 : i > size ? size : i;
}

/* The part of `v` along the node's dim; first: position of the arguments dim, start, end, step. */
static ait_status slice_of(nat_bind *b, const nat_step *s, uint32_t first, nat_view *v) {
  int32_t dim;
  int64_t start, end, step;
  AIT_TRY(nat_arg_dim(b, s, first, v->rank, &dim));
  if (v->rank == 0) return nat_error(b, AIT_CODE_INVALID_MODEL, "a scalar has no slices");
  AIT_TRY(nat_arg_int(b, s, first + 1, 0, &start));
  AIT_TRY(nat_arg_int(b, s, first + 2, INT64_MAX, &end));
  AIT_TRY(nat_arg_int(b, s, first + 3, 1, &step));
  if (step < 1) return nat_error(b, AIT_CODE_INVALID_MODEL, "step %lld", (long long)step);
  start = clamp_index(start, v->shape[dim]);
  end = clamp_index(end, v->shape[dim]);
  v->shape[dim] = end > start ? (end - start - 1) / step + 1 : 0;
  v->offset += start * v->strides[dim] * (int64_t)ait_dtype_size(v->dtype);
  v->strides[dim] *= step;
  return AIT_OK;
}

ait_status nat_prepare_slice(nat_bind *b, const nat_step *s) {
  nat_view x;
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(slice_of(b, s, 1, &x));
  return nat_out_view(b, s, 0, &x);
}

static ait_status select_of(nat_bind *b, const nat_step *s, uint32_t first, nat_view *v) {
  int32_t dim;
  int64_t index;
  AIT_TRY(nat_arg_dim(b, s, first, v->rank, &dim));
  AIT_TRY(nat_arg_int(b, s, first + 1, 0, &index));
  if (v->rank == 0) return nat_error(b, AIT_CODE_INVALID_MODEL, "a scalar has no dims");
  if (index < 0) index += v->shape[dim];
  if (index < 0 || index >= v->shape[dim]) {
    return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "index %lld is out of range for size %lld", (long long)index, (long long)v->shape[dim]);
  }
  v->offset += index * v->strides[dim] * (int64_t)ait_dtype_size(v->dtype);
  for (int32_t d = dim; d + 1 < v->rank; ++d) {
    v->shape[d] = v->shape[d + 1];
    v->strides[d] = v->strides[d + 1];
  }
  v->rank--;
  return AIT_OK;
}

ait_status nat_prepare_select(nat_bind *b, const nat_step *s) {
  nat_view x;
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(select_of(b, s, 1, &x));
  return nat_out_view(b, s, 0, &x);
}

ait_status nat_prepare_unfold(nat_bind *b, const nat_step *s) {
  nat_view x;
  int32_t dim;
  int64_t size, step;
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_arg_dim(b, s, 1, x.rank, &dim));
  AIT_TRY(nat_arg_int(b, s, 2, 1, &size));
  AIT_TRY(nat_arg_int(b, s, 3, 1, &step));
  bool single = x.rank == 0; /* counts as one element; torch gives the window alone */
  if (single) x.rank = 1, x.shape[0] = 1, x.strides[0] = 1;
  if (x.rank == AIT_MAX_RANK || size < 0 || step < 1 || size > x.shape[dim]) {
    return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "windows of %lld every %lld do not fit", (long long)size, (long long)step);
  }
  x.shape[x.rank] = size;
  x.strides[x.rank] = x.strides[dim];
  x.shape[dim] = (x.shape[dim] - size) / step + 1;
  x.strides[dim] *= step;
  if (single) x.shape[0] = size;
  else x.rank++;
  return nat_out_view(b, s, 0, &x);
}

/* ---- copies ----------------------------------------------------------------------------------------------------------------------*/
/* The order in which the operand lies, if all of its memory is used; else row-major. */
static void order_like(const nat_bind *b, const nat_view *x, int32_t order[AIT_MAX_RANK]) {
  nat_order_of(x, order);
  if ((b->program->flags & NAT_NCHW) || !nat_has_order(x, order)) nat_order_row_major(x->rank, order);
}

ait_status nat_prepare_flip(nat_bind *b, const nat_step *s) {
  nat_view x, y;
  int64_t dims[AIT_MAX_RANK];
  int32_t count, order[AIT_MAX_RANK];
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_arg_ints(b, s, 1, dims, &count));
  order_like(b, &x, order);
  for (int32_t i = 0; i < count; ++i) {
    int64_t d = dims[i] < 0 ? dims[i] + x.rank : dims[i];
    if (d < 0 || d >= x.rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "dimension out of range");
    if (x.shape[d] > 0) x.offset += (x.shape[d] - 1) * x.strides[d] * (int64_t)ait_dtype_size(x.dtype);
    x.strides[d] = -x.strides[d];
  }
  AIT_TRY(nat_out(b, s, 0, order, true, &y));
  return nat_copy(b, &y, &x);
}

static bool same_place(const nat_view *a, const nat_view *b) {
  if (a->root != b->root || a->offset != b->offset) return false;
  for (int32_t d = 0; d < a->rank; ++d) {
    if (a->shape[d] != 1 && a->strides[d] != b->strides[d]) return false;
  }
  return true;
}

ait_status nat_prepare_cat(nat_bind *b, const nat_step *s) {
  nat_view y, part;
  int32_t dim;
  int64_t at = 0;
  AIT_TRY(nat_out(b, s, 0, NULL, true, &y));
  AIT_TRY(nat_arg_dim(b, s, 1, y.rank, &dim));
  if (y.rank == 0) return nat_error(b, AIT_CODE_INVALID_MODEL, "scalars cannot be joined");
  for (uint32_t i = 0; i < s->in_count; ++i) {
    nat_view x;
    AIT_TRY(nat_in(b, s, i, &x));
    if (x.rank == 1 && x.shape[0] == 0 && y.rank != 1) continue; /* torch's old empty tensor */
    if (x.rank != y.rank || x.dtype != y.dtype || x.shape[dim] > y.shape[dim] - at)
      return nat_error(b, AIT_CODE_INVALID_MODEL, "shapes do not fit");
    part = y;
    part.shape[dim] = x.shape[dim];
    part.offset += at * y.strides[dim] * (int64_t)ait_dtype_size(y.dtype);
    at += x.shape[dim];
    if (!nat_same_shape(&x, &part)) return nat_error(b, AIT_CODE_INVALID_MODEL, "shapes do not fit");
    if (!same_place(&x, &part)) AIT_TRY(nat_copy(b, &part, &x));
  }
  return at == y.shape[dim] ? AIT_OK : nat_error(b, AIT_CODE_INVALID_MODEL, "sizes do not add up");
}

/* A view of one element with every stride 0. */
static ait_status scalar_view(nat_bind *b, nat_view *v, const ait_arg *value) {
  void *element = nat_keep(b, 16);
  if (element == NULL) return AIT_OOM();
  int64_t i;
  if (value == NULL || value->kind == AIT_ARG_NONE) {
    ait_element_set_i64(element, v->dtype, 0);
  } else if (value->kind == AIT_ARG_FLOAT) {
    ait_element_set_f64(element, v->dtype, value->as.f);
  } else if (value->kind == AIT_ARG_COMPLEX) {
    ait_element_set_c128(element, v->dtype, value->as.complex);
  } else {
    uint32_t position = (uint32_t)(value - nat_node(b->program, b->now)->args);
    AIT_TRY(nat_arg_int(b, b->now, position, 0, &i));
    ait_element_set_i64(element, v->dtype, i);
  }
  v->bound = true;
  v->offset = 0;
  memset(v->strides, 0, sizeof v->strides);
  return nat_const(b, element, 16, &v->root);
}

static const ait_arg *argument(const nat_bind *b, const nat_step *s, uint32_t i) {
  const ait_region_node *n = nat_node(b->program, s);
  return i < n->arg_count ? &n->args[i] : NULL;
}

ait_status nat_prepare_full(nat_bind *b, const nat_step *s) {
  nat_view y;
  AIT_TRY(nat_out_shape(b, s, 0, &y));
  AIT_TRY(scalar_view(b, &y, argument(b, s, 1)));
  return nat_out_view(b, s, 0, &y);
}

ait_status nat_prepare_pad(nat_bind *b, const nat_step *s) {
  nat_view x, y, fill;
  int64_t pads[AIT_MAX_RANK];
  int32_t count, order[AIT_MAX_RANK];
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_arg_ints(b, s, 1, pads, &count));
  if (count % 2 != 0 || count / 2 > x.rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "%d pads for rank %d", count, x.rank);
  order_like(b, &x, order);
  AIT_TRY(nat_out(b, s, 0, order, true, &y));
  if (y.rank != x.rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "result of rank %d", y.rank);
  fill = y;
  AIT_TRY(scalar_view(b, &fill, argument(b, s, 2)));
  AIT_TRY(nat_copy(b, &y, &fill));
  nat_view to = y;
  int64_t size = (int64_t)ait_dtype_size(x.dtype);
  for (int32_t i = 0; i < count / 2; ++i) { /* last dim first; negative pads cut off */
    int32_t d = x.rank - 1 - i;
    int64_t before = pads[2 * i], after = pads[2 * i + 1];
    if (y.shape[d] != x.shape[d] + before + after) return nat_error(b, AIT_CODE_INVALID_MODEL, "padded size does not fit");
    int64_t cut_front = before < 0 ? -before : 0, cut_back = after < 0 ? -after : 0;
    int64_t kept = x.shape[d] - cut_front - cut_back;
    if (kept <= 0) return AIT_OK;
    x.offset += cut_front * x.strides[d] * size;
    to.offset += (before > 0 ? before : 0) * to.strides[d] * size;
    x.shape[d] = to.shape[d] = kept;
  }
  return nat_copy(b, &to, &x);
}

ait_status nat_prepare_roll(nat_bind *b, const nat_step *s) {
  nat_view x, y;
  int64_t shifts[AIT_MAX_RANK], dims[AIT_MAX_RANK], by[AIT_MAX_RANK] = {0};
  int32_t shift_count, count, order[AIT_MAX_RANK], moved[AIT_MAX_RANK], moved_count = 0;
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_arg_ints(b, s, 1, shifts, &shift_count));
  AIT_TRY(nat_arg_ints(b, s, 2, dims, &count));
  nat_view shape = x;
  if (count == 0 && shift_count == 1) { /* of the flattened tensor */
    nat_view flat;
    AIT_TRY(nat_dense(b, &x, NULL, &flat));
    x = flat;
    x.rank = 1;
    x.shape[0] = nat_count(&flat);
    x.strides[0] = 1;
    count = 1;
    dims[0] = 0;
  }
  if (count != shift_count) return nat_error(b, AIT_CODE_INVALID_MODEL, "%d shifts for %d dims", shift_count, count);
  if (nat_same_shape(&x, &shape)) {
    order_like(b, &x, order);
  } else {
    nat_order_row_major(shape.rank, order);
  }
  AIT_TRY(nat_out(b, s, 0, order, false, &y));
  if (!nat_same_shape(&y, &shape)) return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
  if (!nat_same_shape(&x, &shape)) {
    y.rank = 1;
    y.shape[0] = x.shape[0];
    y.strides[0] = 1;
  }
  if (nat_count(&x) == 0) return AIT_OK;
  for (int32_t i = 0; i < count; ++i) {
    int64_t d = dims[i] < 0 ? dims[i] + x.rank : dims[i];
    if (d < 0 || d >= x.rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "dimension out of range");
    by[d] = ((by[d] + shifts[i]) % x.shape[d] + x.shape[d]) % x.shape[d];
  }
  for (int32_t d = 0; d < x.rank; ++d) {
    if (by[d] != 0) moved[moved_count++] = d;
  }
  int64_t size = (int64_t)ait_dtype_size(x.dtype);
  for (uint32_t corner = 0; corner < 1u << moved_count; ++corner) { /* in each moved dim the part that wraps around, or the other one */
    nat_view from = x, to = y;
    for (int32_t i = 0; i < moved_count; ++i) {
      int32_t d = moved[i];
      bool wraps = (corner >> i & 1) != 0;
      from.shape[d] = to.shape[d] = wraps ? by[d] : x.shape[d] - by[d];
      if (wraps) {
        from.offset += (x.shape[d] - by[d]) * x.strides[d] * size;
      } else {
        to.offset += by[d] * y.strides[d] * size;
      }
    }
    AIT_TRY(nat_copy(b, &to, &from));
  }
  return AIT_OK;
}

/* x with a part replaced: in place when nobody reads x any more. */
static ait_status start_from_copy(nat_bind *b, const nat_step *s, nat_view *y) {
  nat_view x, source;
  int32_t order[AIT_MAX_RANK];
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_in(b, s, 1, &source));
  nat_order_of(&x, order);
  if (nat_wish(b, s, 0) == NULL && source.root != x.root && nat_dies_here(b, s, 0, &x) && nat_has_order(&x, order)) {
    *y = x;
    return nat_out_view(b, s, 0, &x);
  }
  order_like(b, &x, order);
  AIT_TRY(nat_out(b, s, 0, order, true, y));
  return nat_copy(b, y, &x);
}

static ait_status put_part(nat_bind *b, const nat_step *s, const nat_view *part) {
  nat_view source, wide;
  AIT_TRY(nat_in(b, s, 1, &source));
  if (!nat_broadcast(&source, part->rank, part->shape, &wide)) return nat_error(b, AIT_CODE_INVALID_MODEL, "the part has another shape");
  return nat_copy(b, part, &wide);
}

ait_status nat_prepare_slice_scatter(nat_bind *b, const nat_step *s) {
  nat_view y;
  AIT_TRY(start_from_copy(b, s, &y));
  AIT_TRY(slice_of(b, s, 2, &y));
  return put_part(b, s, &y);
}

ait_status nat_prepare_select_scatter(nat_bind *b, const nat_step *s) {
  nat_view y;
  AIT_TRY(start_from_copy(b, s, &y));
  AIT_TRY(select_of(b, s, 2, &y));
  return put_part(b, s, &y);
}

/* ---- arange ----------------------------------------------------------------------------------------------------------------------*/
typedef struct arange_args {
  void *y;
  ait_dtype dtype;
  bool whole; /* int arithmetic */
  int64_t start, step;
  double first, increment;
} arange_args;

static void arange(const void *args, int64_t begin, int64_t end, void *scratch) {
  const arange_args *a = args;
  size_t size = ait_dtype_size(a->dtype);
  AIT_UNUSED(scratch);
  for (int64_t i = begin; i < end; ++i) {
    char *at = (char *)a->y + (size_t)i * size;
    if (a->whole) {
      ait_element_set_i64(at, a->dtype, a->start + i * a->step);
    } else {
      ait_element_set_f64(at, a->dtype, a->first + (double)i * a->increment);
    }
  }
}

ait_status nat_prepare_arange(nat_bind *b, const nat_step *s) {
  nat_view y;
  arange_args a = {.whole = true}, *args;
  double end;
  AIT_TRY(nat_out_plain(b, s, 0, &y));
  if (y.rank != 1) return nat_error(b, AIT_CODE_INVALID_MODEL, "result has rank %d", y.rank);
  a.dtype = y.dtype;
  for (uint32_t i = 0; i < 3; ++i) {
    const ait_arg *arg = argument(b, s, i);
    if (arg != NULL && arg->kind == AIT_ARG_FLOAT) a.whole = false;
  }
  AIT_TRY(nat_arg_float(b, s, 0, 0, &a.first));
  AIT_TRY(nat_arg_float(b, s, 1, 0, &end));
  AIT_TRY(nat_arg_float(b, s, 2, 1, &a.increment));
  if (a.whole) {
    AIT_TRY(nat_arg_int(b, s, 0, 0, &a.start));
    AIT_TRY(nat_arg_int(b, s, 2, 1, &a.step));
  }
  nat_work work = {arange, "arange", y.shape[0], (double)y.shape[0] * 3, 0};
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  return NAT_POINTER(b, args->y, &y);
}
