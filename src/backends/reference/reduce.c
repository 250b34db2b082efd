#include "backends/reference/reduce.h"

#define MAX_RESULTS 2

ait_status ait_ref_axes_all(const ait_tensor *t, ait_ref_axes *out) {
  *out = (ait_ref_axes){0};
  for (int32_t d = 0; d < t->rank; ++d) out->reduced[d] = true;
  return AIT_OK;
}

ait_status ait_ref_axes_args(const ait_ref_call *call, const ait_tensor *t, uint32_t dims_arg, uint32_t keep_arg, ait_ref_axes *out) {
  int64_t dims[AIT_MAX_RANK];
  int32_t count, d;
  AIT_TRY(ait_ref_ints(call, dims_arg, dims, &count));
  if (count == 0) AIT_TRY(ait_ref_axes_all(t, out));
  else *out = (ait_ref_axes){0};
  for (int32_t i = 0; i < count; ++i) {
    AIT_TRY(ait_ref_dim(call, dims[i], t->rank, &d));
    if (out->reduced[d]) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "dimension %d is given twice", d);
    out->reduced[d] = true;
  }
  return ait_ref_bool_or(call, keep_arg, false, &out->keep);
}

typedef struct reduce_job {
  ait_tensor kept, gone; /* two views of the input: its kept dims, and its reduced dims (coalesced) from offset 0 */
  ait_tensor out[MAX_RESULTS];
  ait_ref_domain domain, out_domain[MAX_RESULTS];
  uint32_t result_count;
  const ait_ref_reduction *reduction;
  const double *params;
} reduce_job;

typedef void (*step_fn)(ait_ref_accumulator *a, const ait_ref_block *block, int64_t n, int64_t first, const double *params);

static void feed(const reduce_job *job, const ait_tensor *elements, step_fn step, ait_ref_accumulator *a) {
  ait_ref_block block;
  int64_t count = ait_tensor_count(elements);
  for (int64_t at = 0; at < count; at += AIT_REF_BLOCK) {
    int64_t n = count - at < AIT_REF_BLOCK ? count - at : AIT_REF_BLOCK;
    ait_ref_load(elements, at, n, job->domain, &block);
    step(a, &block, n, at, job->params);
  }
}

static void reduce_range(void *ctx, int64_t begin, int64_t end) {
  const reduce_job *job = ctx;
  int64_t size = (int64_t)ait_dtype_size(job->gone.dtype);
  for (int64_t o = begin; o < end; ++o) {
    int64_t rest = o, offset = 0;
    for (int32_t d = job->kept.rank; d-- > 0; rest /= job->kept.shape[d]) offset += rest % job->kept.shape[d] * job->kept.strides[d];
    ait_tensor elements = job->gone;
    if (elements.data) elements.data = (char *)elements.data + offset * size;
    ait_ref_accumulator a = job->reduction->start;
    feed(job, &elements, job->reduction->step, &a);
    if (job->reduction->again) feed(job, &elements, job->reduction->again, &a);
    for (uint32_t k = 0; k < job->result_count; ++k) {
      double complex value[1];
      job->reduction->finish(&a, k, value, job->params);
      ait_ref_store(&job->out[k], o, 1, job->out_domain[k], value);
    }
  }
}

static void keep_dim(ait_tensor *t, int64_t size, int64_t stride) {
  t->shape[t->rank] = size;
  t->strides[t->rank++] = stride;
}

ait_status ait_ref_reduce(ait_ref_call *call, const ait_tensor *t, const ait_ref_axes *axes, ait_ref_domain domain,
                          const ait_ref_reduction *reduction, const ait_ref_reduce_result *results, uint32_t result_count,
                          const double *params) {
  reduce_job job = {.domain = domain, .result_count = result_count, .reduction = reduction, .params = params};
  job.kept = job.gone = (ait_tensor){.data = t->data, .dtype = t->dtype};
  int64_t shape[AIT_MAX_RANK];
  int32_t rank = 0;
  for (int32_t d = 0; d < t->rank; ++d) {
    keep_dim(axes->reduced[d] ? &job.gone : &job.kept, t->shape[d], t->strides[d]);
    if (!axes->reduced[d] || axes->keep) shape[rank++] = axes->reduced[d] ? 1 : t->shape[d];
  }
  for (uint32_t k = 0; k < result_count; ++k) {
    ait_tensor out;
    AIT_TRY(ait_ref_new(call, k, results[k].dtype, rank, shape, &out));
    int64_t count = ait_tensor_count(&out);
    job.out[k] = ait_tensor_borrow(out.data, out.dtype, 1, &count);
    job.out_domain[k] = results[k].domain;
  }
  int64_t outputs = ait_tensor_count(&job.kept), reduced = ait_tensor_count(&job.gone);
  if (reduced == 0 && outputs > 0 && reduction->needs_elements)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "there are no elements to reduce");
  if (reduced > 0) ait_ref_coalesce(&job.gone, 1);
  ait_ref_parallel(call, outputs, reduced + 8, reduce_range, &job);
  return AIT_OK;
}
