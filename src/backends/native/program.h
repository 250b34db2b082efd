/* What native's compile makes and its load reads: the region, and beside it a flat list of steps that says how to run it.
 *
 * A step stands for one node, or for several that were fused into it. Sizes, strides and memory are not decided here: that happens when
 * shapes are bound (bind.h). The records below lie in the blob as they are (little-endian machines only, which is all that ait runs on). */
#ifndef AIT_SRC_BACKENDS_NATIVE_PROGRAM_H
#define AIT_SRC_BACKENDS_NATIVE_PROGRAM_H

#include "base/base.h"
#include "kernels/kernels.h"
#include "tensor/tensor.h"
#include <ait/backend.h>

#define NAT_MAGIC "AITNATV"
#define NAT_VERSION 1u
#define NAT_NONE UINT32_MAX

/* Kinds of steps: steps.inc lists them with the function that prepares them. */
typedef enum nat_kind {
#define NAT_STEP(name, text, prepare) NAT_##name,
#include "backends/native/steps.inc"
#undef NAT_STEP
  NAT_KIND_COUNT
} nat_kind;

typedef enum nat_int_op {
#define NAT_INT(name, operands, expression) NAT_INT_##name,
#include "backends/native/int_ops.inc"
#undef NAT_INT
  NAT_INT_OP_COUNT
} nat_int_op;

enum {                         /* nat_step.flags */
       NAT_STEP_STATIC = 1u,   /* depends on weights and sizes only: runs once per bound shape */
       NAT_STEP_WINOGRAD = 2u, /* a convolution by winograd_f32, its weight packed for that */
};

enum {                 /* nat_header.flags */
       NAT_EAGER = 1u, /* every optimisation off */
       NAT_NCHW = 2u,  /* values keep row-major order; image operators convert on the way in and out */
};

enum { NAT_TOPK_MOST = 64 };                                              /* most that the kernel of topk takes of a line */
enum { NAT_RESIDUAL_BEFORE = 0, NAT_RESIDUAL_AFTER, NAT_RESIDUAL_TIMES }; /* the activation; the last multiplies behind it */

typedef struct nat_step {
  uint32_t kind; /* nat_kind */
  uint32_t node; /* region node that it stands for; for a fused step the last one */
  uint32_t flags;
  uint32_t in_begin, in_count; /* value ids in the id table; NAT_NONE: absent operand */
  uint32_t out_begin, out_count;
  uint32_t pack_begin, pack_count;
  uint32_t code_begin, code_count; /* element-wise program */
  uint32_t act;                    /* epilogue: ait_act, applied after the bias */
  float p, q;                      /* its parameters */
  uint32_t residual_after;         /* NAT_RESIDUAL_… */
} nat_step;

/* A weight in the form that a kernel reads, in the data section. dims: what it was packed from. */
typedef struct nat_pack {
  uint32_t kind;         /* nat_pack_kind */
  uint32_t same_as;      /* while compiling: 1 + the pack that holds the same weight; 0 in the blob */
  uint64_t offset, size; /* in the data section, 64-byte aligned */
  int64_t dims[6];
} nat_pack;

typedef enum nat_pack_kind {
  NAT_PACK_MATRIX = 1, /* [N/16][K][16]; dims K, N, matrices */
  NAT_PACK_CONV,       /* ait_pack_conv_weight; dims groups, IC, OC, KD, KH, KW */
  NAT_PACK_DEPTHWISE,  /* [KD*KH*KW][C]; dims C, KD, KH, KW */
  NAT_PACK_WINOGRAD,   /* ait_pack_winograd_weight; dims 1, IC, OC, 1, 3, 3 */
  NAT_PACK_TRANSPOSED, /* per group [IC/g] x [KD*KH*KW*OC/g] as MATRIX; dims groups, IC, OC, KD, KH, KW */
  NAT_PACK_WEIGHT,     /* ait_pack_weight; dims K, N, ait_weight_form, matrices */
  NAT_PACK_SCALES,     /* ait_pack_scales; dims groups, N, matrices */
} nat_pack_kind;

/* One instruction of an element-wise program. Registers are operands first (0 .. in_count-1), then the results of earlier instructions
 * (in_count + index); the last instruction's result is the step's. */
typedef struct nat_code {
  uint32_t op;      /* ait_ew_op (float programs), nat_int_op (integer programs), NAT_CODE_CONST */
  uint32_t a, b, c; /* registers */
  uint32_t dim;     /* expression whose value replaces p (or i) when shapes are bound, or NAT_NONE */
  uint32_t reserved;
  double p, q; /* constants of the operator */
  int64_t i;   /* constant of integer programs */
} nat_code;
#define NAT_CODE_CONST 0xffffu /* register = p (or i) */

typedef struct nat_header {
  char magic[8];
  uint32_t version, flags;
  uint64_t region_offset, region_size;
  uint64_t steps_offset, ids_offset, packs_offset, codes_offset, data_offset, data_size;
  uint32_t step_count, id_count, pack_count, code_count;
} nat_header;

/* A loaded blob: immutable, shared by all instances. */
typedef struct nat_program {
  ait_allocator allocator;
  ait_weights provider;
  ait_region *region; /* owned */
  uint32_t flags;
  uint32_t step_count;
  const nat_step *steps; /* in the blob, as everything below */
  const uint32_t *ids;
  const nat_pack *packs;
  const nat_code *codes;
  const uint8_t *data;
  size_t data_size;
  /* derived */
  ait_tensor *weights;    /* per region input: what the provider gave, dtype NONE where no step reads it */
  uint32_t *value_input;  /* per value: region input that it is, or NAT_NONE */
  uint32_t *last_step;    /* per value: last step that reads it; step_count when it is an output; NAT_NONE: never */
  uint32_t *def_step;     /* per value: step that makes it, or NAT_NONE */
  uint8_t *channels_last; /* per value: preferred physical order */
  const ait_kernels *kernels;
} nat_program;

/* program.c. Refuses any blob whose records do not hang together. */
ait_status nat_program_load(const ait_load_context *context, nat_program **out) AIT_MUST_USE;
void nat_program_unload(nat_program *program); /* takes NULL */

/* pack.c: bytes of a packed weight; 0 when the dims make no sense. */
size_t nat_pack_bytes(nat_pack_kind kind, const int64_t dims[6]);

/* Of a weight_linear's weight: bfloat16, int8, or int4 as uint8. */
ait_weight_form nat_weight_form(ait_dtype dtype);

static inline const ait_region_node *nat_node(const nat_program *p, const nat_step *s) { return &p->region->nodes[s->node]; }

#endif
