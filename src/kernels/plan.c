/* What is decided before a kernel runs: grids, block shapes, scratch. Pure functions of the arguments. */
#include "kernels/tile.h"
#include <string.h>

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static size_t up64(size_t x) { return (x + 63) & ~(size_t)63; }

void ait_part_range(int64_t count, int64_t parts, int64_t index, int64_t step, int64_t *begin, int64_t *end) {
  int64_t steps = ceil_div(count, step);
  *begin = least(steps * index / parts * step, count);
  *end = least(steps * (index + 1) / parts * step, count);
}

ait_tile_scratch ait_tile_scratch_layout(int64_t pieces, int64_t rows, bool packed, int64_t border_floats) {
  ait_tile_scratch s = {0};
  s.rows = s.pieces + up64((size_t)pieces * sizeof(ait_piece));
  s.packed = s.rows + up64((size_t)rows * sizeof(float *));
  s.border = s.packed + (packed ? up64(AIT_PACK_FLOATS * sizeof(float)) : 0);
  s.total = s.border + up64((size_t)border_floats * sizeof(float));
  return s;
}

/* Below this many multiply-adds a second thread costs more than it saves (about 10 us of work). */
#define MIN_PART_WORK 500000.0

/* Splits rows first (each part then reads all of the right side), columns when rows are few. */
static void choose_grid(int64_t rows, int64_t row_step, int64_t panels, int64_t panel_step, double work, int32_t threads,
                        int64_t *row_parts, int64_t *column_parts) {
  int64_t parts = threads < 1 ? 1 : threads;
  *row_parts = *column_parts = 1;
  if (work / MIN_PART_WORK < (double)parts) parts = (int64_t)(work / MIN_PART_WORK);
  if (parts <= 1) return;
  int64_t row_units = ceil_div(rows, row_step), column_units = ceil_div(panels, panel_step);
  double best = 0;
  for (int64_t r = 1; r <= parts; ++r) {
    if (parts % r) continue;
    int64_t c = parts / r;
    if (r > row_units || c > column_units) continue;
    double balance =
        (double)row_units / (double)(ceil_div(row_units, r) * r) * ((double)column_units / (double)(ceil_div(column_units, c) * c));
    /* Few rows per part: the right side is streamed for little work, so columns are better cut. Else rows: the left side is then copied,
     * packed or read once. */
    double reuse = c == 1 ? 1.0 : 0.97;
    if (r > 1 && rows / r < 24) reuse *= 0.8;
    if (balance * reuse > best) {
      best = balance * reuse;
      *row_parts = r;
      *column_parts = c;
    }
  }
  if (best == 0) { /* no exact factor pair fits: as many as fit on one side */
    *row_parts = least(row_units, parts);
    *column_parts = *row_parts == 1 ? least(column_units, parts) : 1;
  }
}

static int64_t panel_step(const ait_kernels *k) { return most(1, k->tile_columns / AIT_PANEL); }

void ait_gemm_f32_plan(const ait_kernels *k, ait_gemm_f32 *g, int32_t threads) {
  int64_t matrices = g->batch[0] * g->batch[1];
  int32_t each = matrices >= threads ? 1 : (int32_t)ceil_div(threads, most(matrices, 1));
  choose_grid(g->m, k->tile_rows, ait_panels(g->n), panel_step(k), (double)g->m * (double)g->n * (double)g->k, each, &g->row_parts,
              &g->column_parts);
}

/* Packing the left side pays when its rows lie so far apart that a tile's fall on the same few cache sets, and many panels read it.
 * Measured on Zen 3: rows of up to 2 KiB are better left where they are (784 x 512 x 128: 85 instead of 61 GFLOP/s). */
bool ait_gemm_packs_left(const ait_gemm_f32 *g, int64_t rows, int64_t panels) {
  if (rows <= 8 || g->k == 0) return false;
  return g->a_stride >= 768 && panels >= 8;
}

size_t ait_gemm_f32_scratch(const ait_kernels *k, const ait_gemm_f32 *g) {
  (void)k;
  return ait_tile_scratch_layout(g->k / AIT_BLOCK_K + 1, AIT_BLOCK_PIXELS, true, 0).total;
}

/* ---- weights of few bits -------------------------------------------------------------------------------------------------------------*/
static int64_t padded_k(ait_weight_form form, int64_t k) {
  int64_t step = form == AIT_WEIGHT_BF16 ? 2 : AIT_QUANT_GROUP;
  return ceil_div(k, step) * step;
}
size_t ait_weight_panel_bytes(ait_weight_form form, int64_t k) {
  size_t elements = (size_t)padded_k(form, k) * AIT_PANEL;
  return form == AIT_WEIGHT_BF16 ? elements * 2 : form == AIT_WEIGHT_INT8 ? elements : elements / 2;
}
size_t ait_packed_weight_bytes(ait_weight_form form, int64_t k, int64_t n) {
  return ait_weight_panel_bytes(form, k) * (size_t)ait_panels(n);
}
size_t ait_packed_scale_bytes(int64_t groups, int64_t n) { return (size_t)groups * (size_t)ait_panels(n) * AIT_PANEL * sizeof(uint16_t); }

void ait_pack_weight(void *dst, ait_weight_form form, const void *src, int64_t k, int64_t n) {
  const int64_t pad = padded_k(form, k), half = (k + 1) / 2;
  const size_t panel_bytes = ait_weight_panel_bytes(form, k);
  for (int64_t p = 0; p < ait_panels(n); ++p) {
    uint8_t *to = (uint8_t *)dst + (size_t)p * panel_bytes;
    for (int64_t i = 0; i < pad; ++i)
      for (int64_t j = 0; j < AIT_PANEL; ++j) {
        int64_t row = p * AIT_PANEL + j;
        bool in = i < k && row < n;
        if (form == AIT_WEIGHT_BF16)
          ((uint16_t *)(void *)to)[(i / 2 * AIT_PANEL + j) * 2 + i % 2] = in ? ((const uint16_t *)src)[row * k + i] : 0;
        else if (form == AIT_WEIGHT_INT8) to[(i / 4 * AIT_PANEL + j) * 4 + i % 4] = in ? ((const uint8_t *)src)[row * k + i] : 0;
        else {
          uint32_t q = in ? ((const uint8_t *)src)[row * half + i / 2] >> (i % 2 * 4) & 15u : 8u;
          uint8_t *at = &to[(i / 8 * AIT_PANEL + j) * 4 + i % 4];
          *at = (uint8_t)(i % 8 < 4 ? q : *at | q << 4);
        }
      }
  }
}

void ait_pack_scales(uint16_t *dst, const uint16_t *src, int64_t groups, int64_t n) {
  for (int64_t p = 0; p < ait_panels(n); ++p)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t j = 0; j < AIT_PANEL; ++j) {
        int64_t row = p * AIT_PANEL + j;
        *dst++ = row < n ? src[row * groups + g] : 0;
      }
}

/* Fetching a weight from memory takes as long as several multiply-adds. */
void ait_gemm_weight_f32_plan(const ait_kernels *k, ait_gemm_weight_f32 *g, int32_t threads) {
  static const double fetch[AIT_WEIGHT_FORM_COUNT] = {8, 4, 2};
  choose_grid(g->m, k->tile_rows, ait_panels(g->n), panel_step(k), ((double)g->m + fetch[g->form]) * (double)g->n * (double)g->k, threads,
              &g->row_parts, &g->column_parts);
}

ait_weight_scratch ait_weight_scratch_layout(ait_weight_form form, int64_t k) {
  ait_weight_scratch s = {0};
  if (form == AIT_WEIGHT_BF16) {
    s.tile = up64(AIT_WEIGHT_PANELS * AIT_BLOCK_K * AIT_PANEL * sizeof(float));
    s.total = s.tile + ait_tile_scratch_layout(2, AIT_BLOCK_PIXELS, true, 0).total;
    return s;
  }
  s.k = padded_k(form, k);
  s.rows = most(AIT_WEIGHT_ROWS, least(16 * AIT_WEIGHT_ROWS, 131072 / most(s.k, 1) / AIT_WEIGHT_ROWS * AIT_WEIGHT_ROWS));
  size_t groups = (size_t)(s.rows * (s.k / AIT_QUANT_GROUP));
  s.stride = s.k + 64; /* rows 4096 bytes apart would share a few lines of the first cache */
  size_t bytes = up64((size_t)(s.rows * s.stride)) + 192;
  s.size = form == AIT_WEIGHT_INT8 ? bytes : 0;
  s.scale = bytes + s.size;
  s.offset = s.scale + up64(groups * sizeof(float));
  s.total = s.offset + up64(groups * sizeof(int32_t));
  return s;
}

size_t ait_gemm_weight_f32_scratch(const ait_kernels *k, const ait_gemm_weight_f32 *g) {
  (void)k;
  return ait_weight_scratch_layout(g->form, g->k).total;
}

bool ait_expert_order(const void *experts, int32_t index_size, int64_t rows, int64_t count, int32_t *order, int32_t *place,
                      int32_t *begin) {
  bool good = true;
  memset(begin, 0, (size_t)(count + 1) * sizeof *begin);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t e = index_size == 8 ? ((const int64_t *)experts)[r] : ((const int32_t *)experts)[r];
    bool in = e >= 0 && e < count;
    good = good && in;
    place[r] = in ? (int32_t)e : 0;
    begin[place[r] + 1]++;
  }
  for (int64_t e = 0; e < count; ++e) begin[e + 1] += begin[e];
  for (int64_t r = 0; r < rows; ++r) order[begin[place[r]]++] = (int32_t)r; /* begin[e] moves to the begin of e + 1 */
  for (int64_t e = count; e > 0; --e) begin[e] = begin[e - 1];
  begin[0] = 0;
  for (int64_t i = 0; i < rows; ++i) place[order[i]] = (int32_t)i;
  return good;
}

void ait_expert_gemm_f32_plan(const ait_kernels *k, ait_expert_gemm_f32 *p, int32_t threads) {
  int64_t parts, units = ceil_div(ait_panels(p->n), panel_step(k));
  double work = (double)p->rows * (double)p->n * (double)p->k / MIN_PART_WORK;
  parts = work < (double)threads ? (int64_t)work : threads;
  p->column_parts = most(1, least(parts, units));
}

size_t ait_expert_gemm_f32_scratch(const ait_kernels *k, const ait_expert_gemm_f32 *p) {
  ait_gemm_f32 dense = {.k = p->k};
  ait_gemm_weight_f32 few = {.k = p->k, .form = p->form};
  return p->few_bits ? ait_gemm_weight_f32_scratch(k, &few) : ait_gemm_f32_scratch(k, &dense);
}

ait_conv_shape ait_conv_shape_of(const ait_conv_f32 *c, int32_t tile_rows) {
  const ait_image_dims *d = &c->d;
  ait_conv_shape s = {.icg = c->ic / c->groups, .ocg = c->oc / c->groups, .taps = d->kernel[0] * d->kernel[1] * d->kernel[2]};
  bool unit_stride = true, padded = false;
  for (int i = 0; i < 3; ++i) {
    if (d->stride[i] != 1) unit_stride = false;
    if (d->pad[i] > 0 || (d->out[i] - 1) * d->stride[i] + (d->kernel[i] - 1) * d->dilation[i] + 1 - d->pad[i] > d->in[i]) padded = true;
  }
  s.as_gemm = s.taps == 1 && unit_stride && !padded;
  bool dense = c->x_stride == s.icg, merge = d->dilation[2] == 1 && d->kernel[2] > 1;
  s.bordered = !s.as_gemm && (padded || (merge && !dense && s.icg < 16));
  s.pixel = s.bordered ? s.icg : c->x_stride;
  merge = d->dilation[2] == 1 && s.pixel == s.icg;
  s.piece_length = merge ? d->kernel[2] * s.icg : s.icg;
  s.runs = s.taps / (merge ? d->kernel[2] : 1);
  s.pieces = s.runs * ceil_div(s.piece_length, AIT_BLOCK_K);
  if (s.as_gemm) return s;
  /* A row cut into equal tiles that are much smaller than the register tile wastes it: go over row ends then, when packing is paid back. */
  int64_t ow = d->out[2], rows = d->batch * d->out[0] * d->out[1], tiles = ceil_div(ow, tile_rows);
  double fill = (double)ow / (double)(tiles * tile_rows);
  s.packed = fill < 0.8 && rows > 1 && s.ocg >= 128;
  int64_t limit = s.packed ? AIT_PACK_FLOATS / AIT_BLOCK_K : AIT_BLOCK_PIXELS;
  s.block_rows = limit / ow;
  if (s.block_rows == 0) s.packed = false;
  if (!s.bordered) return s;
  int64_t reach_h = (d->kernel[1] - 1) * d->dilation[1] + 1, reach_w = (d->kernel[2] - 1) * d->dilation[2] + 1;
  int64_t width = (least(ow, s.block_rows ? ow : AIT_BLOCK_PIXELS) - 1) * d->stride[2] + reach_w, line = width * s.icg;
  if (s.block_rows) {
    int64_t fit = (AIT_BORDER_FLOATS / most(line * d->kernel[0], 1) - reach_h) / d->stride[1] + 1;
    s.block_rows = most(1, least(s.block_rows, fit));
  }
  /* a block of r rows touches at most 1 + ceil((r-1)/OH) + ... images; each has `height` lines in each slab */
  int64_t r = most(s.block_rows, 1), images = d->out[1] >= r ? least(2, r) : ceil_div(r, d->out[1]) + 1;
  int64_t height = (least(r, d->out[1]) - 1) * d->stride[1] + reach_h;
  s.border_floats = images * height * line * d->kernel[0];
  return s;
}

bool ait_conv_cuts_rows(const ait_conv_f32 *c, const ait_conv_shape *s, int64_t parts) {
  return !s->as_gemm && !s->packed && c->d.batch * c->d.out[0] * c->d.out[1] >= 2 * parts;
}

void ait_conv_f32_plan(const ait_kernels *k, ait_conv_f32 *c, int32_t threads) {
  const ait_image_dims *d = &c->d;
  int64_t rows = d->batch * d->out[0] * d->out[1], pixels = rows * d->out[2], icg = c->ic / c->groups, ocg = c->oc / c->groups;
  double work = (double)pixels * (double)(d->kernel[0] * d->kernel[1] * d->kernel[2]) * (double)icg * (double)c->oc;
  ait_conv_shape s = ait_conv_shape_of(c, k->tile_rows);
  int64_t step = ait_conv_cuts_rows(c, &s, threads) ? d->out[2] : k->tile_rows;
  choose_grid(pixels, step, ait_panels(ocg), panel_step(k), work, threads, &c->row_parts, &c->column_parts);
}

size_t ait_conv_f32_scratch(const ait_kernels *k, const ait_conv_f32 *c) {
  ait_conv_shape s = ait_conv_shape_of(c, k->tile_rows);
  return ait_tile_scratch_layout(s.pieces + 1, AIT_BLOCK_PIXELS, s.as_gemm || s.packed, s.border_floats).total;
}

size_t ait_conv_weight_bytes(int64_t groups, int64_t ic, int64_t oc, const int64_t kernel[3]) {
  return (size_t)groups * ait_packed_b_bytes(ic / groups * kernel[0] * kernel[1] * kernel[2], oc / groups);
}

void ait_pack_conv_weight(float *dst, const float *w, int64_t groups, int64_t ic, int64_t oc, const int64_t kernel[3],
                          const int64_t strides[5]) {
  int64_t icg = ic / groups, ocg = oc / groups;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t p = 0; p < ait_panels(ocg); ++p)
      for (int64_t kd = 0; kd < kernel[0]; ++kd)
        for (int64_t kh = 0; kh < kernel[1]; ++kh)
          for (int64_t kw = 0; kw < kernel[2]; ++kw)
            for (int64_t i = 0; i < icg; ++i, dst += AIT_PANEL)
              for (int64_t j = 0; j < AIT_PANEL; ++j) {
                int64_t o = p * AIT_PANEL + j;
                dst[j] = o < ocg ? w[(g * ocg + o) * strides[0] + i * strides[1] + kd * strides[2] + kh * strides[3] + kw * strides[4]] : 0;
              }
}

/* ---- attention over pages ------------------------------------------------------------------------------------------------------------*/
/* Scores of a page for each head of a group and row of a block, its sums, a page of keys or values widened. */
size_t ait_cached_attention_f32_scratch(const ait_kernels *k, const ait_cached_attention_f32 *a) {
  (void)k;
  int64_t heads = a->heads / most(a->groups, 1) * AIT_CACHED_ROWS, width = most(a->d, a->dv);
  return up64((size_t)(heads * a->page) * sizeof(float)) + up64((size_t)(heads * (a->dv + 2)) * sizeof(float)) +
         (a->form == AIT_POOL_F32 ? 0 : up64((size_t)(a->page * width) * sizeof(float)));
}

bool ait_cached_attention_check(const ait_cached_attention_f32 *a) {
  for (int64_t i = 0; i < a->sequences; ++i) {
    const int32_t *s = a->spans + 4 * i, *pages = a->pages + i * a->table;
    int64_t first = s[0], count = s[1], past = s[2];
    if (count < 0) return false;
    if (count == 0) continue;
    if (first < 0 || first > a->rows - count || past < 0 || (past + count - 1) / a->page >= a->table) return false;
    int64_t low = a->window > 0 && past >= a->window ? past - a->window + 1 : 0;
    for (int64_t p = low / a->page; p <= (past + count - 1) / a->page; ++p)
      if (pages[p] < 0 || pages[p] >= a->pool_pages) return false;
  }
  return true;
}

bool ait_spans_check(const ait_spans *spans, int64_t rows, int64_t slots) {
  for (int64_t i = 0; i < spans->count; ++i) {
    const int32_t *s = spans->at + 4 * i;
    if (s[1] < 0 || (s[1] > 0 && (s[0] < 0 || s[0] > rows - s[1] || s[2] < 0 || s[3] < 0 || s[3] >= slots))) return false;
  }
  return true;
}

/* ---- Winograd ------------------------------------------------------------------------------------------------------------------------*/
bool ait_winograd_fits(const ait_image_dims *d, int64_t groups) {
  bool square = d->kernel[0] == 1 && d->kernel[1] == 3 && d->kernel[2] == 3 && groups == 1 && d->in[0] == 1 && d->out[0] == 1;
  for (int i = 0; i < 3; ++i) square = square && d->stride[i] == 1 && d->dilation[i] == 1;
  return square && d->pad[0] == 0;
}

/* A block's transformed values should stay in the second cache (512 KiB and more), but a block of few tiles reads all weights for little.
 */
#define WINOGRAD_BLOCK_BYTES 393216
ait_winograd_shape ait_winograd_shape_of(const ait_winograd_f32 *c) {
  const ait_image_dims *d = &c->d;
  ait_winograd_shape s = {.tiles_h = ceil_div(d->out[1], 2), .tiles_w = ceil_div(d->out[2], 2), .ocp = ait_panels(c->oc) * AIT_PANEL};
  s.tiles = d->batch * s.tiles_h * s.tiles_w;
  int64_t fit = WINOGRAD_BLOCK_BYTES / (64 * (c->ic + s.ocp));
  s.block = most(1, least(s.tiles, most(48, least(fit, 240)) / 12 * 12));
  /* one more line per plane: planes that lie a multiple of 4096 bytes apart would share cache sets */
  s.v_plane = ceil_div(s.block * c->ic, AIT_PANEL) * AIT_PANEL + AIT_PANEL;
  s.m_plane = s.block * s.ocp + AIT_PANEL;
  s.v_offset = ait_tile_scratch_layout(c->ic / AIT_BLOCK_K + 1, AIT_BLOCK_PIXELS, true, 0).total;
  s.m_offset = s.v_offset + up64((size_t)(16 * s.v_plane) * sizeof(float));
  s.total = s.m_offset + up64((size_t)(16 * s.m_plane) * sizeof(float));
  return s;
}

void ait_winograd_f32_plan(const ait_kernels *k, ait_winograd_f32 *c, int32_t threads) {
  ait_winograd_shape s = ait_winograd_shape_of(c);
  choose_grid(s.tiles, k->tile_rows, ait_panels(c->oc), panel_step(k), 16.0 * (double)s.tiles * (double)c->ic * (double)c->oc, threads,
              &c->row_parts, &c->column_parts);
}

size_t ait_winograd_f32_scratch(const ait_kernels *k, const ait_winograd_f32 *c) {
  (void)k;
  return ait_winograd_shape_of(c).total;
}

size_t ait_winograd_weight_bytes(int64_t ic, int64_t oc) { return 16 * ait_packed_b_bytes(ic, oc); }

/* G g G' with G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1]. */
static void winograd_weight(const double g[3][3], double u[16]) {
  double t[4][3];
  for (int x = 0; x < 3; ++x) {
    t[0][x] = g[0][x];
    t[1][x] = (g[0][x] + g[1][x] + g[2][x]) / 2;
    t[2][x] = (g[0][x] - g[1][x] + g[2][x]) / 2;
    t[3][x] = g[2][x];
  }
  for (int y = 0; y < 4; ++y) {
    u[4 * y] = t[y][0];
    u[4 * y + 1] = (t[y][0] + t[y][1] + t[y][2]) / 2;
    u[4 * y + 2] = (t[y][0] - t[y][1] + t[y][2]) / 2;
    u[4 * y + 3] = t[y][2];
  }
}

void ait_pack_winograd_weight(float *dst, const float *w, int64_t ic, int64_t oc, const int64_t strides[4]) {
  int64_t matrix = (int64_t)(ait_packed_b_bytes(ic, oc) / sizeof(float));
  for (int64_t o = 0; o < ait_panels(oc) * AIT_PANEL; ++o)
    for (int64_t i = 0; i < ic; ++i) {
      double g[3][3] = {{0}}, u[16];
      for (int y = 0; y < 3 && o < oc; ++y)
        for (int x = 0; x < 3; ++x) g[y][x] = (double)w[o * strides[0] + i * strides[1] + y * strides[2] + x * strides[3]];
      winograd_weight(g, u);
      float *to = dst + (o / AIT_PANEL * ic + i) * AIT_PANEL + o % AIT_PANEL;
      for (int e = 0; e < 16; ++e) to[e * matrix] = (float)u[e];
    }
}
