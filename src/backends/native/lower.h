/* Compiling: from a region to steps and packed weights. lower.c walks the nodes, ew_lower.c builds element-wise programs, pack.c packs. */
#ifndef AIT_SRC_BACKENDS_NATIVE_LOWER_H
#define AIT_SRC_BACKENDS_NATIVE_LOWER_H

#include "backends/native/program.h"

/* ---- element-wise programs under construction -------------------------------------------------------------------------------------*/
enum { NAT_GROUP_INPUTS = AIT_EW_MAX_INPUTS, NAT_GROUP_CODES = AIT_EW_MAX_INSTRUCTIONS };

typedef enum nat_class { NAT_CLASS_NONE = 0, NAT_CLASS_FLOAT, NAT_CLASS_INT } nat_class;

/* Codes refer to inputs as registers 0 .. NAT_GROUP_INPUTS-1 and to code k as NAT_GROUP_INPUTS + k; emit makes that dense. */
typedef struct nat_group {
  nat_class class;
  uint32_t input_count, code_count;
  uint32_t peak;                     /* temporaries that are live at the same time, at most */
  uint32_t inputs[NAT_GROUP_INPUTS]; /* value ids */
  nat_code codes[NAT_GROUP_CODES];
} nat_group;

typedef struct nat_pack_job {
  uint32_t pack;     /* index */
  ait_tensor tensor; /* where it lies */
} nat_pack_job;

typedef enum nat_winograd { NAT_WINOGRAD_OFF = 0, NAT_WINOGRAD_AUTO, NAT_WINOGRAD_ON } nat_winograd;

typedef struct nat_lower {
  const ait_region *region;
  const ait_compile_options *options;
  ait_allocator allocator;
  ait_arena arena; /* all tables below but the growing ones */
  uint32_t flags;
  bool fuse, pack;
  nat_winograd winograd;
  /* per value */
  uint32_t *uses, *def_node, *last_user, *input_of;
  bool *is_static;
  /* per node */
  uint32_t *owner;    /* node whose step does this one, too; itself when it has a step of its own */
  nat_group **groups; /* of element-wise nodes that own themselves */
  struct nat_epilogue_plan *epilogues;
  struct nat_rotary *rotaries; /* of the node that makes the result; x NAT_NONE: none */
  /* result */
  nat_step *steps;
  size_t step_count, step_capacity;
  uint32_t *ids;
  size_t id_count, id_capacity;
  nat_pack *packs;
  size_t pack_count, pack_capacity;
  nat_code *codes;
  size_t code_count, code_capacity;
  nat_pack_job *jobs;
  size_t job_count, job_capacity;
} nat_lower;

/* What follows a product or convolution in the same step. */
typedef struct nat_epilogue_plan {
  uint32_t bias;           /* value that is added per column, when the operator itself has none; NAT_NONE */
  uint32_t residual;       /* NAT_NONE */
  uint32_t residual_after; /* NAT_RESIDUAL_… */
  ait_act act;
  float p, q;
  uint32_t last; /* last node of the chain */
} nat_epilogue_plan;

/* A rotary embedding, spelled out: what its last node stands for. */
typedef struct nat_rotary {
  uint32_t x, cos, sin; /* values */
} nat_rotary;

/* ---- lower.c ----------------------------------------------------------------------------------------------------------------------*/
/* Whether the node runs on a kernel of native; used by supports, too. */
bool nat_has_kernel(const ait_region *region, const ait_region_node *node);
/* A tensor, or an int that follows from the inputs' sizes. */
bool nat_is_sized(const ait_region *region, uint32_t value);
/* Nothing to run: all that it gives are ints, which follow from sizes. */
bool nat_gives_sizes(const ait_region *region, const ait_region_node *node);
typedef void (*nat_value_fn)(void *ctx, uint32_t value);
/* Every value that the node reads, lists included. */
void nat_each_value(const ait_region_node *node, nat_value_fn fn, void *ctx);
/* The knobs. flags: of nat_header. */
typedef struct nat_choices {
  uint32_t flags;
  bool fuse, pack;
  nat_winograd winograd;
} nat_choices;
ait_status nat_compile(const ait_region *region, const ait_compile_options *options, const nat_choices *choices,
                       ait_blob *out) AIT_MUST_USE;
bool nat_same_dims(const ait_region *region, uint32_t a, uint32_t b); /* the same shape whatever the symbols are */
static inline const ait_region_value *nat_value(const nat_lower *l, uint32_t v) { return &l->region->values[v]; }
static inline bool nat_is_tensor(const ait_region *r, const ait_arg *a) {
  return a->kind == AIT_ARG_VALUE && r->values[a->as.value].type == AIT_TYPE_TENSOR;
}
/* A number known now. */
bool nat_number(const ait_arg *a, double *out);

/* ---- ew_lower.c -------------------------------------------------------------------------------------------------------------------*/
nat_class nat_ew_class(const ait_region *region, const ait_region_node *node);
/* The node alone as a program; absorbs the programs of operands where that pays. */
ait_status nat_ew_group(nat_lower *l, uint32_t node) AIT_MUST_USE;
/* The node is an activation that an epilogue knows. */
bool nat_ew_act(const ait_region *region, const ait_region_node *node, ait_act *act, float *p, float *q);

/* ---- lower_rotary.c ---------------------------------------------------------------------------------------------------------------*/
/* The node is the last of a rotary embedding in halves, and nothing else reads what lies between: its nodes then belong to it. */
bool nat_take_rotary(nat_lower *l, uint32_t node);

/* ---- pack.c -----------------------------------------------------------------------------------------------------------------------*/
/* The weight that value is (through views), if the file holds it and nothing writes it. */
bool nat_constant(nat_lower *l, uint32_t value, ait_tensor *out);
void nat_pack_fill(const ait_kernels *k, const nat_pack *pack, const ait_tensor *t, void *dst);
/* Packs for the node's step. */
/* The convolution should run on winograd_f32. */
bool nat_takes_winograd(nat_lower *l, const ait_region_node *node);
ait_status nat_pack_node(nat_lower *l, const ait_region_node *n, nat_kind kind) AIT_MUST_USE;

#endif
