/* Element-wise operators: operands are broadcast, loaded in one domain, computed block by block, stored as the declared dtype. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_POINTWISE_H
#define AIT_SRC_BACKENDS_REFERENCE_POINTWISE_H

#include "backends/reference/blocks.h"

#define AIT_REF_OPERANDS 4

typedef struct ait_ref_operand {
  bool is_tensor;
  bool condition; /* loaded in the int domain, whatever the others are */
  ait_tensor tensor;
  ait_ref_scalar scalar;
} ait_ref_operand;

/* Numbers that are not operands. */
typedef struct ait_ref_params {
  double f[4];
  int64_t i[2];
  ait_dtype dtype; /* in which the operator computes */
} ait_ref_params;

/* n <= AIT_REF_BLOCK elements. in[k] is a block of the compute domain, out of the output's. */
typedef void (*ait_ref_kernel)(int64_t n, void *out, void *const *in, const ait_ref_params *params);

/* One operator: its loops by compute domain (NULL: not defined there) and the domain of what they write. */
typedef struct ait_ref_kernels {
  ait_ref_kernel f, i, c;
  ait_ref_domain out_f, out_i, out_c;
} ait_ref_kernels;

ait_status ait_ref_operand_at(const ait_ref_call *call, uint32_t arg, ait_ref_operand *out) AIT_MUST_USE; /* tensor or number */
ait_ref_operand ait_ref_operand_tensor(const ait_tensor *t);
ait_ref_operand ait_ref_operand_number(double value);
/* torch.result_type. */
ait_dtype ait_ref_common_dtype(const ait_ref_call *call, const ait_ref_operand *operands, uint32_t count);
/* Result k, of dtype out_dtype, of the broadcast shape; computed as if in the dtype `compute`. */
ait_status ait_ref_map(ait_ref_call *call, uint32_t k, ait_dtype compute, ait_dtype out_dtype, const ait_ref_operand *operands,
                       uint32_t count, const ait_ref_kernels *kernels, ait_ref_params params) AIT_MUST_USE;
/* The same on arguments 0..count-1, all tensors or numbers. to_bool: computes in the operands' common dtype, else in the result's. */
ait_status ait_ref_map_args(ait_ref_call *call, uint32_t count, bool to_bool, const ait_ref_kernels *kernels,
                            ait_ref_params params) AIT_MUST_USE;

/* Loops from an expression of a (, b, c): double, int64_t or double complex; p are the params. */
#define AIT_REF_LOOP(name, in_type, out_type, expression)                            \
  static void name(int64_t n, void *out, void *const *in, const ait_ref_params *p) { \
    const in_type *x = in[0], *y = in[1], *z = in[2];                                \
    out_type *o = out;                                                               \
    AIT_UNUSED(p);                                                                   \
    for (int64_t k = 0; k < n; ++k) {                                                \
      const in_type a = x[k], b = y[k], c = z[k];                                    \
      AIT_UNUSED(a);                                                                 \
      AIT_UNUSED(b);                                                                 \
      AIT_UNUSED(c);                                                                 \
      o[k] = (expression);                                                           \
    }                                                                                \
  }
#define AIT_REF_LOOP_F(name, expression) AIT_REF_LOOP(name, double, double, expression)
#define AIT_REF_LOOP_I(name, expression) AIT_REF_LOOP(name, int64_t, int64_t, expression)
#define AIT_REF_LOOP_C(name, expression) AIT_REF_LOOP(name, double complex, double complex, expression)

#endif
