/* Nothing is replaced unless it gives the same numbers: both values are computed by the oracle in double precision from the same random
 * operands, at several lengths and magnitudes. */
#include "deploy/internal.h"
#include <math.h>
#include <stdio.h>

ait_status dep_give_step(dep_work *w, dep_eval *e, int64_t length) {
  const ait_graph *g = w->g;
  int64_t pages = (length + w->page_size - 1) / w->page_size;
  for (size_t i = 0; i < g->symbol_count; ++i) {
    const char *name = g->symbols[i].name;
    int64_t value = 1;
    if (!strcmp(name, w->tokens_name)) value = length;
    else if (ait_starts_with(name, "table")) value = pages;
    else if (ait_starts_with(name, "pages")) value = pages;
    dep_eval_size(e, name, value);
  }
  for (size_t i = 0; i < g->input_count; ++i) {
    uint32_t v = g->inputs[i].value;
    int64_t shape[AIT_MAX_RANK];
    if (v == w->tokens || v == AIT_NO_INDEX || g->inputs[i].kind != AIT_INPUT_USER) continue;
    if (!dep_eval_shape(e, v, shape)) continue;
    ait_dtype dtype = ait_dtype_is_float(g->values[v].dtype) ? AIT_F64 : g->values[v].dtype;
    if (g->values[v].dtype == AIT_I8) dtype = AIT_I8;
    ait_tensor t;
    AIT_TRY(ait_tensor_create(e->a, dtype, g->values[v].rank, shape, &t));
    memset(t.data, 0, ait_tensor_bytes(&t));
    int64_t n = ait_tensor_count(&t);
    if (v == w->sequences) ((int32_t *)t.data)[1] = (int32_t)length;
    else if (dtype == AIT_I32)
      for (int64_t k = 0; k < n; ++k) ((int32_t *)t.data)[k] = (int32_t)k;
    else if (dtype == AIT_I64)
      for (int64_t k = 0; k < n; ++k) ((int64_t *)t.data)[k] = k;
    ait_status status = dep_eval_give(e, v, &t);
    ait_tensor_release(&t);
    AIT_TRY(status);
  }
  return AIT_OK;
}

static ait_status one_case(dep_work *w, dep_eval *e, uint32_t old_value, uint32_t new_value, const uint32_t *operands, uint32_t count,
                           uint32_t negative, int64_t length, double scale, double *out) {
  ait_tensor old, fresh, kept;
  dep_eval_forget(e);
  AIT_TRY(dep_give_step(w, e, length));
  for (uint32_t i = 0; i < count; ++i) AIT_TRY(dep_eval_give_random(e, operands[i], 977 * (uint64_t)length + i, scale, negative >> i & 1));
  AIT_TRY(dep_eval_run(e, old_value, &old));
  kept = ait_tensor_retain(&old);
  ait_status status = dep_eval_run(e, new_value, &fresh);
  if (!status) *out = dep_difference(&fresh, &kept);
  ait_tensor_release(&kept);
  return status;
}

ait_status dep_prove(dep_work *w, uint32_t old_value, uint32_t new_value, const uint32_t *operands, uint32_t count, uint32_t negative,
                     int64_t extra_length, bool *out_equal) {
  int64_t lengths[4] = {2, 7, 19, extra_length};
  const double scales[3] = {1, 4, 2};
  dep_eval e;
  for (int i = 0; i < 4; ++i)
    if (lengths[i] > w->max_seq) lengths[i] = w->max_seq; /* the export says nothing about longer ones */
  *out_equal = true;
  AIT_TRY(dep_eval_begin(w->g, w->a, true, &e));
  ait_status status = AIT_OK;
  for (int i = 0; i < 4 && lengths[i] && *out_equal && !status; ++i) {
    double apart = INFINITY;
    status = one_case(w, &e, old_value, new_value, operands, count, negative, lengths[i], scales[i % 3], &apart);
    if (!status && !(apart <= 1e-6)) {
      *out_equal = false;
      snprintf(w->near, sizeof w->near, "it looked like one, but gives other numbers at length %d (relative difference %.2g)",
               (int)lengths[i], apart);
    }
  }
  dep_eval_end(&e);
  return status;
}
