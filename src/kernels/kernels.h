/* Front door of the kernels room: pointers and strides in, numbers out.
 *
 * Every kernel has one shape: void kernel(const void *args, int64_t begin, int64_t end, void *scratch). It does the units [begin, end) of
 * its work; what a unit is stands in kernels.inc and ait_<kernel>_units says how many there are. Disjoint ranges may run on different
 * threads at the same time, each with scratch of its own (ait_<kernel>_scratch bytes, 64-byte aligned, contents of no meaning; NULL when
 * 0). Arguments are read only. Nothing allocates, locks, waits, or fails: arguments must be right, the planner checks them once. The result
 * does not depend on how the range is cut, for a given instruction set and grid.
 *
 * Sizes and strides are in elements unless said otherwise. Outputs must not overlap inputs unless said. Empty work (0 rows, 0 columns) is
 * fine. Memory needs element alignment only, except packed weights: 64 bytes. */
#ifndef AIT_SRC_KERNELS_H
#define AIT_SRC_KERNELS_H

#include <ait/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*ait_kernel_fn)(const void *args, int64_t begin, int64_t end, void *scratch);

typedef struct ait_kernels {
  const char *isa;                 /* "generic", "avx2", "avx512" */
  int32_t width;                   /* floats in a vector */
  int32_t tile_rows, tile_columns; /* of the matrix micro-kernel */
#define AIT_KERNEL(name, args, unit, text) ait_kernel_fn name;
#include "kernels/kernels.inc"
#undef AIT_KERNEL
} ait_kernels;

/* The best table for these CPU features (ait_cpu_features() & mask). Never NULL: the generic one runs anywhere. */
const ait_kernels *ait_kernels_for(uint64_t cpu_features);
/* All tables in rising order, also those that this machine cannot run; *out_features what each needs. NULL beyond the last. */
const ait_kernels *ait_kernels_at(size_t index, uint64_t *out_features);

/* ---- activations and epilogues -----------------------------------------------------------------------------------------------*/
typedef enum ait_act {
  AIT_ACT_NONE = 0,
  AIT_ACT_RELU,
  AIT_ACT_CLAMP, /* min(max(x, p), q) */
  AIT_ACT_GELU,
  AIT_ACT_GELU_TANH,
  AIT_ACT_SILU,
  AIT_ACT_SIGMOID,
  AIT_ACT_TANH,
  AIT_ACT_HARDSWISH,
  AIT_ACT_HARDSIGMOID,
  AIT_ACT_LEAKY_RELU, /* slope p */
  AIT_ACT_ELU,        /* x > 0 ? x * q : p * expm1(x) */
  AIT_ACT_MISH,
  AIT_ACT_SOFTPLUS, /* beta p, threshold q */
  AIT_ACT_COUNT
} ait_act;

/* y = act(acc + bias [+ residual]) [+ residual, or * residual]. The residual has the output's shape and must not overlap the output. */
typedef struct ait_epilogue {
  const float *bias; /* one per column; NULL: none */
  const float *residual;
  int64_t residual_stride; /* between rows (pixels) */
  bool residual_after;     /* added after the activation */
  bool residual_times;     /* with residual_after: multiplied instead (gated layers) */
  ait_act act;
  float p, q;
} ait_epilogue;

/* ---- packed matrices ---------------------------------------------------------------------------------------------------------------
 * The one packed form: [N/16][K/group][16][group], group 1 for fp32 (2 for bf16, 4 for int8), N padded with zeros to 16. */
#define AIT_PANEL 16
static inline int64_t ait_panels(int64_t n) { return (n + AIT_PANEL - 1) / AIT_PANEL; }
static inline size_t ait_packed_b_bytes(int64_t k, int64_t n) { return (size_t)k * (size_t)ait_panels(n) * AIT_PANEL * sizeof(float); }

/* Unit: a panel; units = batch[0] * batch[1] * ait_panels(n). Element (k, n) of a matrix is at k * k_stride + n * n_stride: both orders, so
 * Q K' needs no transposition. Matrices of a batch follow each other in dst, ait_packed_b_bytes apart, row-major in batch. */
typedef struct ait_pack_b_f32 {
  const float *src;
  float *dst;
  int64_t k, n, k_stride, n_stride;
  int64_t batch[2], batch_stride[2]; /* of src; {1, 1} for one matrix */
} ait_pack_b_f32;
static inline int64_t ait_pack_b_f32_units(const ait_pack_b_f32 *p) { return p->batch[0] * p->batch[1] * ait_panels(p->n); }

/* ---- matrix product ----------------------------------------------------------------------------------------------------------------
 * c[m][n] = epilogue(a[m][k] b[k][n]) for each matrix of the batch. Batches have two levels, {1, 1} for one product; a stride of 0 shares a
 * matrix. bias and residual: bias is shared, the residual moves with residual_batch_stride. */
typedef struct ait_gemm_f32 {
  int64_t m, n, k;
  const float *a;
  int64_t a_stride; /* between rows; the k elements of a row lie side by side */
  const float *b;   /* packed */
  float *c;
  int64_t c_stride;
  int64_t batch[2], a_batch_stride[2], b_batch_stride[2], c_batch_stride[2], residual_batch_stride[2];
  ait_epilogue ep;
  int64_t row_parts, column_parts; /* the grid: set by ait_gemm_f32_plan, or {1, 1} */
} ait_gemm_f32;
/* Chooses the grid for up to `threads` threads (1 part when there is too little work). */
void ait_gemm_f32_plan(const ait_kernels *k, ait_gemm_f32 *g, int32_t threads);
static inline int64_t ait_gemm_f32_units(const ait_gemm_f32 *g) { return g->batch[0] * g->batch[1] * g->row_parts * g->column_parts; }
size_t ait_gemm_f32_scratch(const ait_kernels *k, const ait_gemm_f32 *g);

/* ---- matrix product with weights of few bits -----------------------------------------------------------------------------------------
 * c[m][n] = epilogue(a[m][k] w[n][k]) where w is stored as bfloat16, or as integers with one bfloat16 scale for each `group` of 32 * i
 * neighbours along k: w = scale * q, q in [-127, 127] (int8) or [-8, 7] (int4). With integers the rows of a are quantised to 8 bits for
 * each 32 neighbours while the kernel runs; NaN or infinity among them gives NaN. A row's result does not depend on the other rows or on m.
 * Packed: panels of 16 columns; bf16 [K/2][16][2], int8 [K/4][16][4], int4 [K/8][16][4] bytes with k+0..3 in the low halves and k+4..7 in
 * the high ones, q + 8; k padded with zeros to 2 or 32. Scales: [N/16][K/group][16]. */
typedef enum ait_weight_form { AIT_WEIGHT_BF16, AIT_WEIGHT_INT8, AIT_WEIGHT_INT4, AIT_WEIGHT_FORM_COUNT } ait_weight_form;
#define AIT_QUANT_GROUP 32
typedef struct ait_gemm_weight_f32 {
  int64_t m, n, k;
  const float *a;
  int64_t a_stride;
  ait_weight_form form;
  int64_t group;          /* integers: a multiple of 32 */
  const void *b;          /* packed, 64-byte aligned */
  const uint16_t *scales; /* packed; integers only */
  float *c;
  int64_t c_stride;
  ait_epilogue ep;
  int64_t row_parts, column_parts; /* ait_gemm_weight_f32_plan, or {1, 1} */
} ait_gemm_weight_f32;
void ait_gemm_weight_f32_plan(const ait_kernels *k, ait_gemm_weight_f32 *g, int32_t threads);
static inline int64_t ait_gemm_weight_f32_units(const ait_gemm_weight_f32 *g) { return g->row_parts * g->column_parts; }
size_t ait_gemm_weight_f32_scratch(const ait_kernels *k, const ait_gemm_weight_f32 *g);
/* Bytes of a packed panel, of all of them, of the packed scales. */
size_t ait_weight_panel_bytes(ait_weight_form form, int64_t k);
size_t ait_packed_weight_bytes(ait_weight_form form, int64_t k, int64_t n);
size_t ait_packed_scale_bytes(int64_t groups, int64_t n);
/* From rows of n: bf16 or int8 [n][k], int4 [n][(k + 1) / 2] bytes, even k in the low half. Not for the run path. */
void ait_pack_weight(void *dst, ait_weight_form form, const void *src, int64_t k, int64_t n);
void ait_pack_scales(uint16_t *dst, const uint16_t *src, int64_t groups, int64_t n); /* src [n][groups] */

/* ---- convolution, channels last ----------------------------------------------------------------------------------------------------
 * Images are [batch][D][H][W][C] with dense pixels order and `stride` elements from pixel to pixel (>= C: a slice of channels of a wider
 * tensor may be read or written). Missing leading dimensions are 1. Trailing padding follows from the output size. */
typedef struct ait_image_dims {
  int64_t batch;
  int64_t in[3], out[3];                     /* D, H, W */
  int64_t kernel[3], stride[3], dilation[3]; /* >= 1 */
  int64_t pad[3];                            /* leading */
} ait_image_dims;

/* Weights: for each group its own packed matrix [OCg/16][KD*KH*KW*ICg][16], groups ait_packed_b_bytes(KD*KH*KW*ICg, OCg) apart. */
typedef struct ait_conv_f32 {
  ait_image_dims d;
  int64_t groups, ic, oc; /* channels of all groups together */
  const float *x;
  int64_t x_stride;
  const float *w;
  float *y;
  int64_t y_stride;
  ait_epilogue ep; /* residual_stride: between pixels */
  int64_t row_parts, column_parts;
} ait_conv_f32;
void ait_conv_f32_plan(const ait_kernels *k, ait_conv_f32 *c, int32_t threads);
static inline int64_t ait_conv_f32_units(const ait_conv_f32 *c) { return c->row_parts * c->column_parts; }
size_t ait_conv_f32_scratch(const ait_kernels *k, const ait_conv_f32 *c);
/* Element (o, i, kd, kh, kw) of w is at sum of index * strides; i counts within the group. dst: ait_conv_weight_bytes. Not for the run
 * path. */
size_t ait_conv_weight_bytes(int64_t groups, int64_t ic, int64_t oc, const int64_t kernel[3]);
void ait_pack_conv_weight(float *dst, const float *w, int64_t groups, int64_t ic, int64_t oc, const int64_t kernel[3],
                          const int64_t strides[5]);

/* The same for kernels of 3 x 3 in H and W, stride 1, no dilation, one group, one depth, by Winograd's F(2x2, 3x3): 2.25 times fewer
 * products; rounding errors grow by about as much. Weights: 16 packed matrices [OC/16][IC][16], ait_pack_winograd_weight. d.pad may be
 * anything. */
typedef struct ait_winograd_f32 {
  ait_image_dims d;
  int64_t ic, oc;
  const float *x;
  int64_t x_stride;
  const float *w;
  float *y;
  int64_t y_stride;
  ait_epilogue ep; /* residual_stride: between pixels */
  int64_t row_parts, column_parts;
} ait_winograd_f32;
bool ait_winograd_fits(const ait_image_dims *d, int64_t groups);
void ait_winograd_f32_plan(const ait_kernels *k, ait_winograd_f32 *c, int32_t threads);
static inline int64_t ait_winograd_f32_units(const ait_winograd_f32 *c) { return c->row_parts * c->column_parts; }
size_t ait_winograd_f32_scratch(const ait_kernels *k, const ait_winograd_f32 *c);
/* Element (o, i, kh, kw) of w is at sum of index * strides. dst: ait_winograd_weight_bytes. Not for the run path. */
size_t ait_winograd_weight_bytes(int64_t ic, int64_t oc);
void ait_pack_winograd_weight(float *dst, const float *w, int64_t ic, int64_t oc, const int64_t strides[4]);

/* y[pixel][c] = epilogue(sum x[tap][c / multiplier] w[tap][c]); c output channels. Weights [KD*KH*KW][C], dense. Unit: batch*OD*OH rows. */
typedef struct ait_depthwise_f32 {
  ait_image_dims d;
  int64_t c, multiplier; /* output channels; c / multiplier input channels */
  const float *x;
  int64_t x_stride;
  const float *w;
  float *y;
  int64_t y_stride;
  ait_epilogue ep;
} ait_depthwise_f32;
static inline int64_t ait_depthwise_f32_units(const ait_depthwise_f32 *p) { return p->d.batch * p->d.out[0] * p->d.out[1]; }

/* Transposed convolution in two steps. First gemm_f32: columns[batch*D*H*W][KD*KH*KW*OC] = x[pixels][IC] * packed w [IC][KD*KH*KW*OC] (one
 * product per group); then this: y[output pixel][OC] = epilogue(sum over the taps that reach it). d.in is the transposed convolution's
 * input, d.out its output, d.pad its padding, stride and dilation as in torch. Unit: batch*OD*OH rows. */
typedef struct ait_col2im_f32 {
  ait_image_dims d;
  int64_t c;            /* output channels of this group */
  const float *columns; /* dense */
  float *y;
  int64_t y_stride;
  ait_epilogue ep;
} ait_col2im_f32;
static inline int64_t ait_col2im_f32_units(const ait_col2im_f32 *p) { return p->d.batch * p->d.out[0] * p->d.out[1]; }

/* Max: padding never wins, NaN does. Average: include_pad counts padded positions inside in+pad on both sides (pad_end), as torch does;
 * divisor > 0 replaces the count. Unit: batch*OD*OH rows. */
typedef struct ait_pool_f32 {
  ait_image_dims d;
  int64_t pad_end[3]; /* trailing padding that counts for include_pad (torch: equal to pad) */
  int64_t c;
  const float *x;
  int64_t x_stride;
  float *y;
  int64_t y_stride;
  bool max, include_pad;
  int64_t divisor;
} ait_pool_f32;
static inline int64_t ait_pool_f32_units(const ait_pool_f32 *p) { return p->d.batch * p->d.out[0] * p->d.out[1]; }

/* y[image][c] over `pixels` pixels. For adaptive pooling to other sizes see pool_f32 when it divides, else the portable path. */
typedef struct ait_global_pool_f32 {
  int64_t batch, pixels, c;
  const float *x;
  int64_t x_stride; /* pixel to pixel; images are pixels * x_stride apart */
  float *y;
  int64_t y_stride; /* image to image */
  bool max;
} ait_global_pool_f32;
static inline int64_t ait_global_pool_f32_units(const ait_global_pool_f32 *p) { return p->batch; }

/* ---- norms and softmax -------------------------------------------------------------------------------------------------------------*/
/* y = (x - mean) / sqrt(var + eps) * weight + bias per row of n; rms: y = x / sqrt(mean(x^2) + eps) * weight. y may be x.
 * addend (optional): the row that is normalised is x + addend, and it is stored to `sum` when that is set (sum may be x or addend). */
typedef struct ait_norm_f32 {
  int64_t rows, n;
  const float *x;
  int64_t x_stride;
  const float *addend;
  int64_t addend_stride;
  float *sum;
  int64_t sum_stride;
  const float *weight, *bias; /* n each, or NULL */
  float *y;
  int64_t y_stride;
  float eps;
  bool rms;
} ait_norm_f32;
static inline int64_t ait_norm_f32_units(const ait_norm_f32 *p) { return p->rows; }

/* Rotary embedding, h = d / 2: y[j] = x[j] cos[j] - x[j + h] sin[j], y[j + h] = x[j + h] cos[j + h] + x[j] sin[j + h], for each index of
 * the outer dimensions; the d elements lie side by side. Unit: an index of the first two dimensions. */
typedef struct ait_rotary_f32 {
  int64_t outer[3], d;
  const float *x, *cos, *sin;
  float *y;
  int64_t x_stride[3], cos_stride[3], sin_stride[3], y_stride[3]; /* 0: shared */
} ait_rotary_f32;
static inline int64_t ait_rotary_f32_units(const ait_rotary_f32 *p) { return p->outer[0] * p->outer[1]; }

/* Channel c of pixel i of image b is at b * image_stride + i * pixel_stride + c * channel_stride: NHWC (channel_stride 1) and NCHW
 * (pixel_stride 1). weight, bias: channels each, or NULL. act as in epilogues. Unit: batch * groups. y may be x. */
typedef struct ait_group_norm_f32 {
  int64_t batch, groups, channels, pixels;
  const float *x;
  float *y;
  int64_t image_stride, pixel_stride, channel_stride; /* of both */
  const float *weight, *bias;
  float eps;
  ait_act act;
  float p, q;
} ait_group_norm_f32;
static inline int64_t ait_group_norm_f32_units(const ait_group_norm_f32 *p) { return p->batch * p->groups; }

/* x viewed as [outer][n][inner], dense; over n. inner 1 is the last dimension. y may be x. A row of -inf gives NaN, as in torch. */
typedef struct ait_softmax_f32 {
  int64_t outer, n, inner;
  const float *x;
  float *y;
  bool log;
  float scale; /* multiplies x first; 1 for none */
} ait_softmax_f32;
static inline int64_t ait_softmax_f32_units(const ait_softmax_f32 *p) { return p->outer * p->inner; }

/* ---- element-wise programs -----------------------------------------------------------------------------------------------------------
 * A program computes, for every index of a shape, outputs from inputs by a list of instructions on registers. Registers 0 .. input_count-1
 * are the inputs, the next ones temporaries. Instructions run in order on blocks of up to AIT_EW_BLOCK elements that stay in the first
 * cache; a temporary may be written again and again, an input register never. */
typedef enum ait_ew_op {
#define AIT_EW(name, operands) AIT_EW_##name,
#include "kernels/ew_ops.inc"
#undef AIT_EW
  AIT_EW_OP_COUNT
} ait_ew_op;
/* Number of register operands of an operator; its name in lower case is not kept. */
int32_t ait_ew_operands(ait_ew_op op);

#define AIT_EW_BLOCK 512
#define AIT_EW_MAX_INPUTS 12
#define AIT_EW_MAX_OUTPUTS 4
#define AIT_EW_MAX_REGISTERS 24 /* inputs and temporaries together */
#define AIT_EW_MAX_INSTRUCTIONS 48
#define AIT_EW_MAX_RANK 6

typedef struct ait_ew_instruction {
  uint8_t op; /* ait_ew_op */
  uint8_t dst, a, b, c;
  float p, q;
} ait_ew_instruction;

typedef struct ait_ew_input {
  const void *data;
  ait_dtype dtype;                  /* float32, float64, float16, bfloat16, bool, uint8, int8, int16, int32, int64: read as float */
  int64_t strides[AIT_EW_MAX_RANK]; /* in elements; 0 is broadcast */
} ait_ew_input;

typedef struct ait_ew_output {
  void *data;      /* dense, row-major in the shape; may be the memory of an input that has the same dtype and is dense too */
  ait_dtype dtype; /* as for inputs; float to int truncates, to bool is != 0 */
  uint8_t reg;
} ait_ew_output;

typedef struct ait_ew_f32 {
  int32_t rank; /* >= 1; ait_ew_f32_prepare merges dimensions where all strides allow */
  int64_t shape[AIT_EW_MAX_RANK];
  int32_t input_count, output_count, instruction_count, register_count;
  ait_ew_input inputs[AIT_EW_MAX_INPUTS];
  ait_ew_output outputs[AIT_EW_MAX_OUTPUTS];
  ait_ew_instruction code[AIT_EW_MAX_INSTRUCTIONS];
  int64_t block_rows, block_columns; /* set by ait_ew_f32_prepare: a unit is so many rows by so many columns of the last dimension */
} ait_ew_f32;
/* Merges dimensions and chooses the block; call once after filling the rest (again after a change of shape or strides). */
void ait_ew_f32_prepare(ait_ew_f32 *e);
int64_t ait_ew_f32_units(const ait_ew_f32 *e);
size_t ait_ew_f32_scratch(const ait_kernels *k, const ait_ew_f32 *e);

/* ---- attention -----------------------------------------------------------------------------------------------------------------------
 * o[b][h][i][:] = sum_j softmax_j(scale q[b][h][i] . k[b][h / (heads / kv_heads)][j] + mask) v[...][j]. A row in which everything is masked
 * (mask all -inf or false, or no key within causal) gives 0. Elements of a row of q, k, v, o lie side by side; all else by strides. */
typedef enum ait_mask_kind { AIT_MASK_NONE = 0, AIT_MASK_FLOAT /* added */, AIT_MASK_BOOL /* false hides */ } ait_mask_kind;
typedef struct ait_attention_f32 {
  int64_t batch, heads, kv_heads, q_len, k_len, d, dv;
  const float *q, *k, *v;
  float *o;
  int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3]; /* batch, head, row */
  ait_mask_kind mask_kind;
  const void *mask;
  int64_t mask_stride[4]; /* batch, head, q, k; 0 is broadcast */
  bool causal;
  int64_t causal_offset; /* key j is seen by query i when j <= i + causal_offset; torch: 0 */
  float scale;
} ait_attention_f32;
int64_t ait_attention_f32_units(const ait_attention_f32 *a);
size_t ait_attention_f32_scratch(const ait_kernels *k, const ait_attention_f32 *a);

/* ---- attention over paged caches (docs/llm.md)
 * ------------------------------------------------------------------------------------------- Row r belongs to the sequence i with first <=
 * r < first + count, at position past + r - first; position j of it lies in page pages[i][j / page] at row j % page. cache_store_f32 puts k
 * and v of each row there, cached_attention_f32 computes o = sum_j softmax_j(cap(scale * q k_j) + slope * (j - position) + bias[position -
 * j]) v_j over the window's positions j <= position, cap(s) = cap * tanh(s / cap), a sink one more term in the denominator. Rows of no
 * sequence give zeros. A row's result depends on its sequence alone: blocks of keys are pages, whatever else is in the batch. Everything in
 * spans and pages must be in range: ait_cached_attention_check. */
typedef enum ait_pool_form { AIT_POOL_F32, AIT_POOL_BF16, AIT_POOL_INT8 } ait_pool_form;
typedef struct ait_cached_attention_f32 {
  int64_t rows, heads, groups, d, dv; /* groups: heads of k and v */
  const float *q, *k, *v;
  int64_t q_stride[2], k_stride[2], v_stride[2], o_stride[2]; /* row, head; elements of a head side by side */
  float *o;
  const int32_t *spans; /* [sequences][4]: first, count, past, ignored */
  const int32_t *pages; /* [sequences][table] */
  int64_t sequences, table, page, pool_pages;
  ait_pool_form form;
  void *k_pool, *v_pool;       /* [pool_pages][groups][page][d or dv] */
  float *k_scale, *v_scale;    /* int8: [pool_pages][groups][page] */
  const float *sinks, *slopes; /* one for each head, or NULL */
  const float *bias;           /* [heads][distances], added to a score by its distance position - j (the last one beyond); or NULL */
  int64_t distances;
  float scale, cap; /* cap 0: none */
  int64_t window;   /* 0: all */
} ait_cached_attention_f32;
static inline int64_t ait_cache_store_f32_units(const ait_cached_attention_f32 *a) { return a->rows; }
enum { AIT_CACHED_ROWS = 16 }; /* neighbouring rows that share what is read of a page */
static inline int64_t ait_cached_blocks(const ait_cached_attention_f32 *a) { return (a->rows + AIT_CACHED_ROWS - 1) / AIT_CACHED_ROWS; }
static inline int64_t ait_cached_attention_f32_units(const ait_cached_attention_f32 *a) { return ait_cached_blocks(a) * a->groups; }
size_t ait_cached_attention_f32_scratch(const ait_kernels *k, const ait_cached_attention_f32 *a);
/* false: a span leaves the batch, or a page that is read or written is not in the pool. */
bool ait_cached_attention_check(const ait_cached_attention_f32 *a);

/* ---- state of sequences in slots (docs/llm.md) -----------------------------------------------------------------------------------------
 * Row r belongs to the sequence i with first <= r < first + count of its span; the sequence's state lies in slot spans[i][3] and is zeros
 * when past is 0, whatever the slot holds. It is read, advanced over the sequence's rows in order, and written back. Rows of no sequence
 * give zeros. A row's result depends on its sequence alone, however its rows are cut into steps. Spans must be in range: ait_spans_check.
 */
typedef struct ait_spans {
  const int32_t *at; /* [count][4]: first row, rows, past, slot; entries with no rows are unused */
  int64_t count;
} ait_spans;
/* false: a span leaves the batch of `rows`, or its slot is none of `slots`. */
bool ait_spans_check(const ait_spans *spans, int64_t rows, int64_t slots);

/* y[r][c] = act(bias[c] + sum over k < taps of weight[k][c] x[r - taps + 1 + k][c]), x along the sequence; a slot holds its last taps - 1
 * inputs. */
typedef struct ait_cached_conv1d_f32 {
  int64_t rows, channels, taps;
  const float *x, *weight, *bias; /* x: channels side by side; weight [taps][channels]; bias NULL: none */
  int64_t x_stride;
  float *y;
  int64_t y_stride;
  ait_spans spans;
  float *state; /* [slots][taps - 1][channels] */
  ait_act act;
  float p, q;
} ait_cached_conv1d_f32;
enum { AIT_CONV1D_CHANNELS = 64 };
static inline int64_t ait_cached_conv1d_f32_units(const ait_cached_conv1d_f32 *c) {
  return (c->channels + AIT_CONV1D_CHANNELS - 1) / AIT_CONV1D_CHANNELS;
}

/* h = exp(dt a) h + u b, y = c h for each head and each of its `width` rows of state; b and c are those of the head's group. */
typedef struct ait_cached_scan_f32 {
  int64_t rows, heads, width, groups, size; /* groups divide heads */
  const float *u, *dt, *a, *b, *c;          /* u [rows][heads][width], dt [rows][heads], b and c [rows][groups][size] */
  bool a_matrix;                            /* a: [heads][size] dense; else [heads] */
  int64_t u_stride[2], dt_stride[2], b_stride[2], c_stride[2], y_stride[2]; /* row, head or group; the innermost side by side */
  float *y;                                                                 /* [rows][heads][width] */
  ait_spans spans;
  float *state; /* [slots][heads][width][size] */
} ait_cached_scan_f32;
enum { AIT_SCAN_CHUNK = 64 };
/* Heads of a unit. */
static inline int64_t ait_scan_heads(const ait_cached_scan_f32 *s) {
  int64_t heads = s->width >= 32 ? 1 : s->width > 0 ? (32 + s->width - 1) / s->width : 1;
  return heads < s->heads ? heads : s->heads > 0 ? s->heads : 1;
}
static inline int64_t ait_cached_scan_f32_units(const ait_cached_scan_f32 *s) {
  return (s->heads + ait_scan_heads(s) - 1) / ait_scan_heads(s);
}
static inline size_t ait_cached_scan_f32_scratch(const ait_cached_scan_f32 *s) {
  return (size_t)ait_scan_heads(s) * AIT_SCAN_CHUNK * sizeof(float);
}

/* ---- reductions ----------------------------------------------------------------------------------------------------------------------*/
typedef enum ait_reduce_op {
  AIT_REDUCE_SUM = 0,
  AIT_REDUCE_MEAN,
  AIT_REDUCE_MAX, /* NaN wins */
  AIT_REDUCE_MIN,
  AIT_REDUCE_PROD,
  AIT_REDUCE_VAR,     /* divided by n - correction */
  AIT_REDUCE_ARG_MAX, /* writes int64; the first of equals; NaN wins */
  AIT_REDUCE_ARG_MIN,
} ait_reduce_op;
/* x viewed as [outer][n][inner], dense; y [outer][inner]. index (MAX and MIN, optional) gets where, as int64. */
typedef struct ait_reduce_f32 {
  int64_t outer, n, inner;
  const float *x;
  void *y; /* float, or int64 for ARG_* */
  int64_t *index;
  ait_reduce_op op;
  double correction;
} ait_reduce_f32;
static inline int64_t ait_reduce_f32_units(const ait_reduce_f32 *r) { return r->outer * r->inner; }

/* ---- copies ----------------------------------------------------------------------------------------------------------------------------
 * dst[i] = src[i] for every index of the shape, elements of 1, 2, 4, 8 or 16 bytes. Strides may be 0 (src) or negative. Unit: dimension 0.
 */
typedef struct ait_copy {
  int32_t rank; /* >= 1 */
  int32_t element_size;
  int64_t shape[AIT_MAX_RANK];
  const void *src;
  void *dst;
  int64_t src_stride[AIT_MAX_RANK], dst_stride[AIT_MAX_RANK];
} ait_copy;
/* Drops dimensions of 1, orders the rest for writing and merges them where both strides allow; call once before running. */
void ait_copy_prepare(ait_copy *c);
static inline int64_t ait_copy_units(const ait_copy *c) { return c->shape[0]; }

/* dst row i = src row index[i]; negative indices count from the end. Rows are row_bytes long, src rows src_stride bytes apart, dst rows
 * dst_stride. An index out of range leaves the row zero and sets *out_of_range to 1 (plain store of a whole int32; may be NULL). */
typedef struct ait_gather_rows {
  int64_t count, table_rows;
  const void *index;
  int32_t index_size; /* 4 or 8 bytes */
  const void *src;
  void *dst;
  int64_t row_bytes, src_stride, dst_stride;
  int32_t *out_of_range;
} ait_gather_rows;
static inline int64_t ait_gather_rows_units(const ait_gather_rows *g) { return g->count; }

/* ---- rows with a matrix each: mixtures of experts ------------------------------------------------------------------------------------
 * y[r] = weight[experts[r]] x[r]; weight [count][n][k] as it lies, float32 or bfloat16. Experts must be in range. Rows of one expert share
 * what is read of its matrix; a row's result does not depend on the others. */
typedef struct ait_expert_f32 {
  int64_t rows, n, k, count;
  const float *x;
  int64_t x_stride;
  const void *weight;
  bool bf16;
  const void *experts;
  int32_t index_size; /* 4 or 8 bytes */
  float *y;           /* [rows][n] */
} ait_expert_f32;
enum { AIT_EXPERT_COLUMNS = 16 };
static inline int64_t ait_expert_f32_units(const ait_expert_f32 *p) { return (p->n + AIT_EXPERT_COLUMNS - 1) / AIT_EXPERT_COLUMNS; }

/* The same with packed matrices, when rows are sorted: order[i] is the row that comes i-th, place[r] where row r went, and expert e has
 * the sorted rows [begin[e], begin[e + 1]). false: an expert is out of range; it counts as the first one then. */
bool ait_expert_order(const void *experts, int32_t index_size, int64_t rows, int64_t count, int32_t *order, int32_t *place, int32_t *begin);
/* y[i] = weight[e] x[i] for the rows of each expert; x [rows][k] and y [rows][n] dense and sorted. weight: `count` packed matrices, float32
 * (ait_packed_b_bytes apart) or of few bits (ait_packed_weight_bytes, ait_packed_scale_bytes). A row's result does not depend on the
 * others. */
typedef struct ait_expert_gemm_f32 {
  int64_t rows, n, k, count;
  const float *x;
  const int32_t *begin; /* [count + 1] */
  bool few_bits;
  ait_weight_form form; /* of few bits */
  int64_t group;        /* of integers */
  const void *weight;
  const uint16_t *scales;
  float *y;
  int64_t column_parts; /* ait_expert_gemm_f32_plan, or 1 */
} ait_expert_gemm_f32;
void ait_expert_gemm_f32_plan(const ait_kernels *k, ait_expert_gemm_f32 *p, int32_t threads);
static inline int64_t ait_expert_gemm_f32_units(const ait_expert_gemm_f32 *p) { return p->column_parts; }
size_t ait_expert_gemm_f32_scratch(const ait_kernels *k, const ait_expert_gemm_f32 *p);

/* ---- recurrent cells -----------------------------------------------------------------------------------------------------------------
 * The products are gemm_f32's: gates = x W_ih' + b_ih for all steps at once, then per step += h W_hh' + b_hh (as the residual). */
/* gates [rows][4n] in torch's order i, f, g, o. c_out may be c_in. */
typedef struct ait_lstm_cell_f32 {
  int64_t rows, n;
  const float *gates;
  int64_t gates_stride;
  const float *c_in;
  int64_t c_in_stride;
  float *c_out;
  int64_t c_out_stride;
  float *h_out;
  int64_t h_out_stride;
} ait_lstm_cell_f32;
static inline int64_t ait_lstm_cell_f32_units(const ait_lstm_cell_f32 *p) { return p->rows; }
/* gates_x, gates_h [rows][3n] in torch's order r, z, n, each with its bias: h' = (1-z) tanh(x_n + r h_n) + z h. h_out may be h_in. */
typedef struct ait_gru_cell_f32 {
  int64_t rows, n;
  const float *gates_x, *gates_h;
  int64_t gates_x_stride, gates_h_stride;
  const float *h_in;
  int64_t h_in_stride;
  float *h_out;
  int64_t h_out_stride;
} ait_gru_cell_f32;
static inline int64_t ait_gru_cell_f32_units(const ait_gru_cell_f32 *p) { return p->rows; }

/* ---- typed calls: ait_k_<kernel>(table, args, begin, end, scratch) ----------------------------------------------------------- */
#define AIT_KERNEL(name, type, unit, text)                                                                             \
  static inline void ait_k_##name(const ait_kernels *k, const type *args, int64_t begin, int64_t end, void *scratch) { \
    k->name(args, begin, end, scratch);                                                                                \
  }
#include "kernels/kernels.inc"
#undef AIT_KERNEL

#endif
