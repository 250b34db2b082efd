/* Normal forms of element-wise programs, copies and attention: dimensions merged, blocks and scratch chosen. */
#include "kernels/attention.h"
#include "kernels/tile.h"

/* ---- element-wise programs -----------------------------------------------------------------------------------------------------------*/
int32_t ait_ew_operands(ait_ew_op op) {
  static const uint8_t operands[] = {
#define AIT_EW(name, count) count,
#include "kernels/ew_ops.inc"
#undef AIT_EW
  };
  return (size_t)op < sizeof operands ? operands[op] : 0;
}

static bool ew_mergeable(const ait_ew_f32 *e, int32_t d) {
  for (int32_t i = 0; i < e->input_count; ++i)
    if (e->inputs[i].strides[d] != e->inputs[i].strides[d + 1] * e->shape[d + 1]) return false;
  return true;
}
static void ew_drop(ait_ew_f32 *e, int32_t d) {
  for (int32_t k = d; k + 1 < e->rank; ++k) {
    e->shape[k] = e->shape[k + 1];
    for (int32_t i = 0; i < e->input_count; ++i) e->inputs[i].strides[k] = e->inputs[i].strides[k + 1];
  }
  --e->rank;
}

void ait_ew_f32_prepare(ait_ew_f32 *e) {
  for (int32_t d = e->rank - 1; d >= 0 && e->rank > 1; --d)
    if (e->shape[d] == 1) ew_drop(e, d);
  for (int32_t d = e->rank - 2; d >= 0; --d)
    if (ew_mergeable(e, d)) {
      e->shape[d + 1] *= e->shape[d];
      ew_drop(e, d);
    }
  int64_t columns = e->shape[e->rank - 1];
  if (columns <= AIT_EW_BLOCK / 2) {
    e->block_columns = columns > 0 ? columns : 1;
    e->block_rows = AIT_EW_BLOCK / e->block_columns;
  } else {
    int64_t pieces = (columns + AIT_EW_BLOCK - 1) / AIT_EW_BLOCK;
    e->block_rows = 1;
    e->block_columns = ((columns + pieces - 1) / pieces + 15) / 16 * 16;
  }
}

int64_t ait_ew_f32_units(const ait_ew_f32 *e) {
  int64_t rows = 1, columns = e->shape[e->rank - 1];
  for (int32_t d = 0; d < e->rank - 1; ++d) rows *= e->shape[d];
  return (rows + e->block_rows - 1) / e->block_rows * ((columns + e->block_columns - 1) / e->block_columns);
}

size_t ait_ew_f32_scratch(const ait_kernels *k, const ait_ew_f32 *e) {
  (void)k;
  return (size_t)e->register_count * AIT_EW_BLOCK * sizeof(float);
}

/* ---- copies --------------------------------------------------------------------------------------------------------------------------*/
static void copy_move(ait_copy *c, int32_t to, int32_t from) {
  c->shape[to] = c->shape[from];
  c->src_stride[to] = c->src_stride[from];
  c->dst_stride[to] = c->dst_stride[from];
}
static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

void ait_copy_prepare(ait_copy *c) {
  int32_t r = 0;
  for (int32_t d = 0; d < c->rank; ++d)
    if (c->shape[d] != 1) copy_move(c, r++, d);
  for (int32_t i = 1; i < r; ++i) /* largest step of dst first; stable */
    for (int32_t j = i; j > 0 && magnitude(c->dst_stride[j - 1]) < magnitude(c->dst_stride[j]); --j) {
      int64_t shape = c->shape[j], s = c->src_stride[j], t = c->dst_stride[j];
      copy_move(c, j, j - 1);
      c->shape[j - 1] = shape;
      c->src_stride[j - 1] = s;
      c->dst_stride[j - 1] = t;
    }
  int32_t n = 0; /* merged into dimension n - 1 */
  for (int32_t d = 0; d < r; ++d) {
    if (n > 0 && c->src_stride[n - 1] == c->src_stride[d] * c->shape[d] && c->dst_stride[n - 1] == c->dst_stride[d] * c->shape[d]) {
      c->shape[n - 1] *= c->shape[d];
      c->src_stride[n - 1] = c->src_stride[d];
      c->dst_stride[n - 1] = c->dst_stride[d];
    } else copy_move(c, n++, d);
  }
  if (n == 0) {
    c->shape[0] = 1;
    c->src_stride[0] = c->dst_stride[0] = 1;
    n = 1;
  }
  c->rank = n;
  for (int32_t d = 0; d < n; ++d)
    if (c->shape[d] == 0) { /* nothing to do: no units */
      c->rank = 1;
      c->shape[0] = 0;
      break;
    }
}

/* ---- attention -----------------------------------------------------------------------------------------------------------------------*/
static size_t put(size_t *at, size_t bytes) {
  size_t begin = *at;
  *at = (begin + bytes + 63) & ~(size_t)63;
  return begin;
}

ait_attention_scratch ait_attention_scratch_layout(const ait_attention_f32 *a) {
  const size_t dv = (size_t)ait_panels(a->dv) * AIT_PANEL, d = (size_t)a->d, f = sizeof(float);
  const size_t queries = AIT_ATTENTION_QUERIES, keys = AIT_ATTENTION_KEYS;
  ait_attention_scratch s = {0};
  size_t at = 0;
  s.pieces = put(&at, (d / AIT_BLOCK_K + 1) * sizeof(ait_piece));
  s.rows = put(&at, 2 * queries * sizeof(float *));
  s.state = put(&at, 2 * queries * f);
  s.keys = put(&at, keys * d * f);
  s.values = put(&at, keys * dv * f);
  s.scores = put(&at, queries * keys * f);
  s.sums = put(&at, queries * dv * f);
  s.total = at;
  return s;
}

int64_t ait_attention_f32_units(const ait_attention_f32 *a) { return a->batch * a->heads * ait_attention_blocks(a->q_len); }
size_t ait_attention_f32_scratch(const ait_kernels *k, const ait_attention_f32 *a) {
  (void)k;
  return ait_attention_scratch_layout(a).total;
}
