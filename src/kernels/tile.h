/* What the matrix and convolution templates share with the planner (plan.c): sizes of blocks and the layout of scratch. */
#ifndef AIT_KERNELS_TILE_H
#define AIT_KERNELS_TILE_H

#include "kernels/kernels.h"

/* The reduction is cut into pieces: runs of side-by-side floats in each row of the left side. A matrix has one run, a convolution one per
 * kernel row (or tap). No piece is longer than AIT_BLOCK_K; a block of pieces is at most that long in all, so that its panel of 16
 * columns stays in the first cache while the row tiles go by. */
typedef struct ait_piece {
  int64_t offset, length; /* floats, from the row's first element */
} ait_piece;
#define AIT_BLOCK_K 320
#define AIT_BLOCK_PIXELS 512    /* rows of a block at most */
#define AIT_PACK_FLOATS 57344   /* packed left side of a block: 224 KiB, a part of the second cache */
#define AIT_BORDER_FLOATS 49152 /* aim for the bordered copy of a convolution's block; one kernel's worth of rows may be more */

/* How a convolution runs; computed from the arguments by the planner and by the kernel alike (plan.c). */
typedef struct ait_conv_shape {
  int64_t icg, ocg, taps;
  bool as_gemm;  /* 1x1, stride 1, no padding: pixels are rows of a matrix */
  bool bordered; /* the block's input is copied into scratch, with its zero border */
  bool packed;   /* tiles run over row ends, their left side packed */
  int64_t pixel; /* stride between pixels of the (copied) input */
  int64_t pieces;
  int64_t piece_length; /* of a run before it is cut to AIT_BLOCK_K */
  int64_t runs;
  int64_t block_rows; /* output rows per block; 0: a row is cut into blocks of AIT_BLOCK_PIXELS */
  int64_t border_floats;
} ait_conv_shape;
ait_conv_shape ait_conv_shape_of(const ait_conv_f32 *c, int32_t tile_rows);
/* Whether `parts` parts are cut between output rows, not within. */
bool ait_conv_cuts_rows(const ait_conv_f32 *c, const ait_conv_shape *s, int64_t parts);

/* Scratch in this order, each part 64-byte aligned: pieces, row pointers, packed left side, border. */
typedef struct ait_tile_scratch {
  size_t pieces, rows, packed, border, total; /* byte offsets */
} ait_tile_scratch;
ait_tile_scratch ait_tile_scratch_layout(int64_t pieces, int64_t rows, bool packed, int64_t border_floats);
bool ait_gemm_packs_left(const ait_gemm_f32 *g, int64_t rows, int64_t panels);

/* gemm_weight_f32. bf16: AIT_WEIGHT_PANELS panels of a block of k, widened to floats, then the tile's own scratch. Integers: `rows` rows of
 * a at a time in 8 bits, `stride` bytes apart, for int8 weights `size` bytes behind that their absolute values, with a scale and an offset
 * for each 32, [rows][k/32]. Offsets in bytes. */
#define AIT_WEIGHT_PANELS 16
#define AIT_WEIGHT_ROWS 4                   /* of an integer tile */
#define AIT_INT_BLOCK 32                    /* groups of a block of k */
#define AIT_STRIP_BYTES ((size_t)128 << 10) /* of integer weights: a part of the second cache */
typedef struct ait_weight_scratch {
  int64_t k, stride, rows;
  size_t tile, size, scale, offset, total;
} ait_weight_scratch;
ait_weight_scratch ait_weight_scratch_layout(ait_weight_form form, int64_t k);

/* Winograd: tiles of 2 x 2 outputs, and where the transformed values of a block of them lie. */
typedef struct ait_winograd_shape {
  int64_t tiles_h, tiles_w, tiles;  /* of an image; of the batch */
  int64_t block;                    /* tiles at a time */
  int64_t ocp;                      /* OC rounded up to panels */
  int64_t v_plane, m_plane;         /* floats of one of the 16 planes */
  size_t v_offset, m_offset, total; /* scratch: the product's own first */
} ait_winograd_shape;
ait_winograd_shape ait_winograd_shape_of(const ait_winograd_f32 *c);
/* Part `index` of `parts` of [0, count) in steps of `step`. */
void ait_part_range(int64_t count, int64_t parts, int64_t index, int64_t step, int64_t *begin, int64_t *end);

#endif
