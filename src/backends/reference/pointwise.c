#include "backends/reference/pointwise.h"

ait_ref_operand ait_ref_operand_tensor(const ait_tensor *t) { return (ait_ref_operand){.is_tensor = true, .tensor = *t}; }

ait_ref_operand ait_ref_operand_number(double value) {
  return (ait_ref_operand){.scalar = {.kind = AIT_KIND_FLOAT, .i = (int64_t)value, .f = value}};
}

ait_status ait_ref_operand_at(const ait_ref_call *call, uint32_t arg, ait_ref_operand *out) {
  *out = (ait_ref_operand){0};
  const ait_tensor *t = ait_ref_tensor_or_null(call, arg);
  if (!t) return ait_ref_scalar_arg(call, arg, &out->scalar);
  *out = ait_ref_operand_tensor(t);
  return AIT_OK;
}

/* ---- torch.result_type -------------------------------------------------------------------------------------------------------------*/
static ait_dtype scalar_dtype(const ait_ref_call *call, ait_dtype_kind kind) {
  switch (kind) {
    case AIT_KIND_BOOL: return AIT_BOOL;
    case AIT_KIND_FLOAT: return ait_ref_widen(call, AIT_F32);
    case AIT_KIND_COMPLEX: return ait_ref_widen(call, AIT_C64);
    default: return AIT_I64;
  }
}

static ait_dtype promote(ait_dtype a, ait_dtype b) {
  if (a == AIT_DTYPE_NONE) return b;
  return b == AIT_DTYPE_NONE ? a : ait_dtype_promote(a, b);
}

static ait_dtype complex_of(ait_dtype d) { return d == AIT_F64 ? AIT_C128 : d == AIT_F16 ? AIT_C32 : AIT_C64; }

/* A lower rank of operands (0-d tensors below tensors, numbers below both) counts only when its kind is higher. */
static ait_dtype combine(ait_dtype high, ait_dtype low) {
  if (high == AIT_DTYPE_NONE || low == AIT_DTYPE_NONE) return promote(high, low);
  if (ait_dtype_is_complex(high)) return high;
  if (ait_dtype_is_float(high)) return ait_dtype_is_complex(low) ? complex_of(high) : high;
  if (high == AIT_BOOL || !ait_dtype_is_integer(low)) return promote(high, low);
  return high;
}

ait_dtype ait_ref_common_dtype(const ait_ref_call *call, const ait_ref_operand *operands, uint32_t count) {
  ait_dtype full = AIT_DTYPE_NONE, zero = AIT_DTYPE_NONE, number = AIT_DTYPE_NONE;
  for (uint32_t i = 0; i < count; ++i) {
    const ait_ref_operand *o = &operands[i];
    if (o->condition) continue;
    if (!o->is_tensor) number = promote(number, scalar_dtype(call, o->scalar.kind));
    else if (o->tensor.rank == 0) zero = promote(zero, o->tensor.dtype);
    else full = promote(full, o->tensor.dtype);
  }
  return combine(combine(full, zero), number);
}

/* ---- the engine --------------------------------------------------------------------------------------------------------------------*/
typedef struct map_job {
  ait_tensor tensors[1 + AIT_REF_OPERANDS]; /* output, then the operands that are tensors */
  int32_t slot[AIT_REF_OPERANDS];           /* index into tensors; -1: a number */
  ait_ref_scalar numbers[AIT_REF_OPERANDS];
  ait_ref_domain domains[AIT_REF_OPERANDS], out_domain;
  bool round[AIT_REF_OPERANDS];
  uint32_t count;
  ait_ref_kernel kernel;
  ait_ref_params params;
} map_job;

static void fill_number(const ait_ref_scalar *s, ait_ref_domain domain, ait_ref_block *block) {
  for (int k = 0; k < AIT_REF_BLOCK; ++k) {
    if (domain == AIT_REF_F) block->f[k] = s->f;
    else if (domain == AIT_REF_I) block->i[k] = s->kind == AIT_KIND_FLOAT ? (int64_t)s->f : s->i;
    else block->c[k] = __builtin_complex(s->f, s->imag);
  }
}

static void map_range(void *ctx, int64_t begin, int64_t end) {
  const map_job *job = ctx;
  ait_ref_block blocks[AIT_REF_OPERANDS], out;
  void *in[AIT_REF_OPERANDS];
  for (uint32_t i = 0; i < AIT_REF_OPERANDS; ++i) {
    in[i] = &blocks[i < job->count ? i : 0];
    if (i < job->count && job->slot[i] < 0) fill_number(&job->numbers[i], job->domains[i], &blocks[i]);
  }
  for (int64_t at = begin; at < end; at += AIT_REF_BLOCK) {
    int64_t n = end - at < AIT_REF_BLOCK ? end - at : AIT_REF_BLOCK;
    for (uint32_t i = 0; i < job->count; ++i) {
      if (job->slot[i] < 0) continue;
      ait_ref_load(&job->tensors[job->slot[i]], at, n, job->domains[i], in[i]);
      if (job->round[i]) ait_ref_round_to(job->params.dtype, n, blocks[i].f);
    }
    job->kernel(n, &out, in, &job->params);
    ait_ref_store(&job->tensors[0], at, n, job->out_domain, &out);
  }
}

/* Casting to the compute dtype would change values of this dtype. */
static bool rounds(ait_dtype compute, ait_dtype dtype) {
  if (compute == dtype || (compute != AIT_F32 && compute != AIT_F16 && compute != AIT_BF16)) return false;
  if (dtype == AIT_BOOL || dtype == AIT_U8 || dtype == AIT_I8) return false;
  return compute != AIT_F32 || (dtype != AIT_F16 && dtype != AIT_BF16);
}

static void place_operand(map_job *job, uint32_t i, const ait_ref_operand *o, ait_ref_domain domain, uint32_t *tensor_count) {
  job->domains[i] = o->condition ? AIT_REF_I : domain;
  job->slot[i] = o->is_tensor ? (int32_t)*tensor_count : -1;
  if (o->is_tensor) {
    job->round[i] = domain == AIT_REF_F && !o->condition && rounds(job->params.dtype, o->tensor.dtype);
    job->tensors[(*tensor_count)++] = ait_ref_expand(&o->tensor, job->tensors[0].rank, job->tensors[0].shape);
    return;
  }
  job->numbers[i] = o->scalar;
  if (domain == AIT_REF_I && !o->condition) { /* -1 among uint8 is 255 */
    int64_t element = 0, whole = o->scalar.kind == AIT_KIND_FLOAT ? (int64_t)o->scalar.f : o->scalar.i;
    ait_element_set_i64(&element, job->params.dtype, whole);
    job->numbers[i] = (ait_ref_scalar){.kind = AIT_KIND_INT, .i = ait_element_i64(&element, job->params.dtype)};
  }
  if (domain != AIT_REF_F) return;
  /* torch computes halves in float32, but compares them as they are */
  bool reduced = job->params.dtype == AIT_F32 || job->params.dtype == AIT_F16 || job->params.dtype == AIT_BF16;
  if (job->out_domain == AIT_REF_I) ait_ref_round_to(job->params.dtype, 1, &job->numbers[i].f);
  else if (reduced) job->numbers[i].f = (double)(float)o->scalar.f;
}

/* Laid out like the first operand of the whole shape. */
static ait_status new_output(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *const *operands, uint32_t count,
                             int32_t rank, const int64_t *shape, ait_tensor *out) {
  for (uint32_t i = 0; i < count; ++i) {
    bool whole = operands[i]->rank == rank;
    for (int32_t d = 0; d < rank && whole; ++d) whole = operands[i]->shape[d] == shape[d];
    if (whole) return ait_ref_new_like(call, k, dtype, operands[i], out);
  }
  return ait_ref_new(call, k, dtype, rank, shape, out);
}

ait_status ait_ref_map(ait_ref_call *call, uint32_t k, ait_dtype compute, ait_dtype out_dtype, const ait_ref_operand *operands,
                       uint32_t count, const ait_ref_kernels *kernels, ait_ref_params params) {
  ait_ref_domain domain = ait_ref_domain_of(compute);
  map_job job = {.count = count, .params = params};
  job.params.dtype = compute;
  job.kernel = domain == AIT_REF_F ? kernels->f : domain == AIT_REF_I ? kernels->i : kernels->c;
  job.out_domain = domain == AIT_REF_F ? kernels->out_f : domain == AIT_REF_I ? kernels->out_i : kernels->out_c;
  if (!job.kernel) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "not defined for %s", ait_dtype_name(compute));
  const ait_tensor *shapes[AIT_REF_OPERANDS];
  uint32_t tensors = 0;
  for (uint32_t i = 0; i < count; ++i)
    if (operands[i].is_tensor) shapes[tensors++] = &operands[i].tensor;
  int32_t rank;
  int64_t shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_broadcast(call, shapes, tensors, &rank, shape));
  AIT_TRY(new_output(call, k, out_dtype, shapes, tensors, rank, shape, &job.tensors[0]));
  int64_t total = ait_tensor_count(&job.tensors[0]);
  if (total == 0) return AIT_OK;
  uint32_t used = 1;
  for (uint32_t i = 0; i < count; ++i) place_operand(&job, i, &operands[i], domain, &used);
  ait_ref_coalesce(job.tensors, used);
  ait_ref_parallel(call, total, 8, map_range, &job);
  return AIT_OK;
}

ait_status ait_ref_map_args(ait_ref_call *call, uint32_t count, bool to_bool, const ait_ref_kernels *kernels, ait_ref_params params) {
  ait_ref_operand operands[AIT_REF_OPERANDS];
  for (uint32_t i = 0; i < count; ++i) AIT_TRY(ait_ref_operand_at(call, i, &operands[i]));
  ait_dtype declared = ait_ref_result_dtype(call, 0), common = ait_ref_common_dtype(call, operands, count);
  if (declared == AIT_DTYPE_NONE) declared = to_bool ? AIT_BOOL : common;
  bool from_complex = ait_dtype_is_complex(common) && !ait_dtype_is_complex(declared); /* abs, angle */
  return ait_ref_map(call, 0, to_bool || from_complex ? common : declared, declared, operands, count, kernels, params);
}
