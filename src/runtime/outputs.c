/* The end of a run: results to the caller, new contents to states and to inputs that the model changes.
 *
 * Backends may return views: of the caller's inputs, of states, of weights. What would change under the caller's hands, or could dangle, is
 * copied; the rest is lent. Everything that can fail comes before the first write. */
#include "backends/dims.h"
#include "runtime/internal.h"

/* ---- before the run ----------------------------------------------------------------------------------------------------------------*/
static ait_status refuse(const ait_session *s, uint32_t k, ait_status status) {
  return ait_error_context(status, "memory for output '%s'", s->model->outputs[k].name);
}

/* *out_known: dtype and all sizes are known before running, so the check is complete. */
static ait_status check_memory(const ait_session *s, uint32_t k, const ait_value *given, bool *out_known) {
  const ait_model *m = s->model;
  const ait_port *port = &m->outputs[k];
  const ait_region_output *result = m->results[k];
  *out_known = false;
  if (port->kind != AIT_VALUE_TENSOR) return refuse(s, k, ait_error(AIT_CODE_INVALID_ARGUMENT, "the output is not a tensor"));
  const ait_tensor *t = &given->as.tensor;
  if (t->dtype != port->dtype) {
    return refuse(s, k,
                  ait_error(AIT_CODE_INVALID_ARGUMENT, "dtype is %s, must be %s", ait_dtype_name(t->dtype), ait_dtype_name(port->dtype)));
  }
  if (!ait_tensor_is_contiguous(t)) return refuse(s, k, ait_error(AIT_CODE_INVALID_ARGUMENT, "it is not contiguous"));
  if (port->rank < 0) return AIT_OK;
  if (t->rank != port->rank)
    return refuse(s, k, ait_error(AIT_CODE_INVALID_ARGUMENT, "has %d dimensions, must have %d", t->rank, port->rank));
  *out_known = true;
  for (int32_t d = 0; d < t->rank; ++d) {
    int64_t want;
    if (!ait_dim_eval(m->region->dims, s->symbols, m->region->values[result->arg.as.value].shape[d], &want)) *out_known = false;
    else if (t->shape[d] != want) {
      return refuse(s, k,
                    ait_error(AIT_CODE_INVALID_ARGUMENT, "dimension %d is %lld, must be %lld", d, (long long)t->shape[d], (long long)want));
    }
  }
  return AIT_OK;
}

/* Written early, the memory must not be anything that is still read. */
static bool is_apart(const ait_session *s, const ait_value *inputs, const ait_value *outputs, uint32_t k) {
  const ait_model *m = s->model;
  const ait_tensor *t = &outputs[k].as.tensor;
  for (uint32_t i = 0; i < m->input_count; ++i) {
    if (inputs[i].kind == AIT_VALUE_TENSOR && ait_tensors_overlap(t, &inputs[i].as.tensor)) return false;
  }
  for (uint32_t i = 0; i < m->output_count; ++i) {
    if (i != k && outputs[i].kind == AIT_VALUE_TENSOR && ait_tensors_overlap(t, &outputs[i].as.tensor)) return false;
    if (i < k && s->results[i].direct && s->results[i].step == s->results[k].step && s->results[i].output == s->results[k].output)
      return false;
  }
  for (size_t i = 0; i < m->state_count; ++i) {
    if (ait_tensors_overlap(t, &s->states[i])) return false;
  }
  return true;
}

/* The last run's result, left in the array: the session's own memory, which gives nothing. */
static bool is_left_over(const ait_session *s, const ait_tensor *t) {
  for (uint32_t k = 0; k < s->model->output_count; ++k) {
    const ait_tensor *lent = &s->results[k].lent;
    if (lent->dtype == t->dtype && lent->data == t->data && lent->storage == t->storage && ait_tensor_same_shape(lent, t)) return true;
  }
  return false;
}

ait_status ait_session_check_outputs(ait_session *s, const ait_value *inputs, const ait_value *outputs) {
  for (uint32_t k = 0; k < s->model->output_count; ++k) {
    s->results[k].direct = false;
    s->results[k].given = outputs[k].kind == AIT_VALUE_TENSOR && !is_left_over(s, &outputs[k].as.tensor);
    if (!s->results[k].given) continue;
    bool known;
    AIT_TRY(check_memory(s, k, &outputs[k], &known));
    s->results[k].direct = known && s->results[k].step != AIT_NO_INDEX && is_apart(s, inputs, outputs, k);
  }
  return AIT_OK;
}

/* ---- after the run -----------------------------------------------------------------------------------------------------------------*/
static bool same_place(const ait_tensor *a, const ait_tensor *b) {
  if (a->data != b->data || a->dtype != b->dtype || !ait_tensor_same_shape(a, b)) return false;
  for (int32_t d = 0; d < a->rank; ++d) {
    if (a->shape[d] > 1 && a->strides[d] != b->strides[d]) return false;
  }
  return true;
}

ait_status ait_session_copy(ait_session *s, ait_tensor *scratch, const ait_tensor *source) {
  size_t bytes = ait_tensor_bytes(source);
  if (!scratch->storage || ait_storage_bytes(scratch->storage) < bytes) {
    ait_tensor fresh;
    AIT_TRY(ait_tensor_create(s->allocator, source->dtype, source->rank, source->shape, &fresh));
    ait_tensor_release(scratch);
    *scratch = fresh;
  }
  ait_storage *storage = scratch->storage;
  *scratch = *source;
  scratch->storage = storage;
  scratch->data = ait_storage_data(storage);
  ait_tensor_set_contiguous(scratch);
  return ait_tensor_copy(scratch, source);
}

static ait_status find_target(ait_session *s, const ait_value *inputs, ait_session_commit *c) {
  const ait_model_step *step = &s->code[c->step];
  const ait_region_output *o = &step->plan->region->outputs[c->output];
  const ait_value *made = &s->steps[c->step].outputs[c->output];
  const char *name = o->name ? o->name : "";
  uint32_t state = step->state_of_output[c->output];
  c->source = NULL;
  if (o->arg.kind != AIT_ARG_VALUE) return ait_error(AIT_CODE_INVALID_MODEL, "new contents of '%s' are not a value", name);
  if (o->kind == AIT_OUTPUT_STATE) {
    c->target = &s->states[state];
  } else if (inputs[o->user_index].kind == AIT_VALUE_TENSOR) {
    c->target = &inputs[o->user_index].as.tensor;
  } else {
    return ait_error(AIT_CODE_INVALID_MODEL, "input %d is changed, but is not a tensor", o->user_index);
  }
  if (made->kind != AIT_VALUE_TENSOR)
    return ait_error(AIT_CODE_INTERNAL, "backend '%s' gave no new contents of '%s'", step->backend->name, name);
  if (!ait_tensor_same_shape(&made->as.tensor, c->target)) {
    return ait_error(AIT_CODE_INVALID_MODEL, "new contents of '%s' have another shape", name);
  }
  if (!same_place(&made->as.tensor, c->target)) c->source = &made->as.tensor;
  return AIT_OK;
}

/* Will any commit (but number `except`) write into this memory? */
static bool is_overwritten(const ait_session *s, const ait_tensor *t, uint32_t except) {
  for (uint32_t c = 0; c < s->commit_count; ++c) {
    if (c != except && s->commits[c].source && ait_tensors_overlap(t, s->commits[c].target)) return true;
  }
  return false;
}

static ait_status prepare_commits(ait_session *s, const ait_value *inputs) {
  for (uint32_t c = 0; c < s->commit_count; ++c) AIT_TRY(find_target(s, inputs, &s->commits[c]));
  for (uint32_t c = 0; c < s->commit_count; ++c) {
    ait_session_commit *commit = &s->commits[c];
    /* A view of the very memory it goes to, but another view (a transposed state), needs its copy, too. */
    if (!commit->source) continue;
    if (!is_overwritten(s, commit->source, c) && !ait_tensors_overlap(commit->source, commit->target)) continue;
    AIT_TRY(ait_session_copy(s, &commit->copy, commit->source));
    commit->source = &commit->copy;
  }
  return AIT_OK;
}

static const ait_value *result_value(const ait_session *s, uint32_t k, ait_value *constant, ait_status *out_status) {
  uint32_t value = s->plan->outputs[k];
  if (value != AIT_NO_INDEX) return &s->values[value];
  *out_status = ait_session_constant(s->model->region, s->symbols, &s->model->results[k]->arg, constant);
  return constant;
}

static ait_status check_result(const ait_session *s, uint32_t k, const ait_value *made, const ait_value *given) {
  if (!s->results[k].given || made->kind != AIT_VALUE_TENSOR) return AIT_OK;
  if (ait_tensor_same_shape(&made->as.tensor, &given->as.tensor)) return AIT_OK;
  char have[256], want[256];
  ait_tensor_shape_text(&given->as.tensor, have, sizeof have);
  ait_tensor_shape_text(&made->as.tensor, want, sizeof want);
  return refuse(s, k, ait_error(AIT_CODE_INVALID_ARGUMENT, "has shape %s, the result has %s", have, want));
}

static bool can_lend(const ait_session *s, const ait_value *inputs, const ait_tensor *t) {
  if (!ait_tensor_is_contiguous(t) || is_overwritten(s, t, AIT_NO_INDEX)) return false;
  for (uint32_t i = 0; i < s->model->input_count; ++i) {
    if (inputs[i].kind == AIT_VALUE_TENSOR && ait_tensors_overlap(t, &inputs[i].as.tensor)) return false;
  }
  return true;
}

/* Copies what cannot be lent; the values to hand out are left where result_value finds them, or in scratch (then *out_value). */
static ait_status prepare_result(ait_session *s, const ait_value *inputs, uint32_t k, const ait_value *given, bool *out_copied) {
  ait_status status = AIT_OK;
  ait_value constant;
  const ait_value *made = result_value(s, k, &constant, &status);
  AIT_TRY(status);
  AIT_TRY(check_result(s, k, made, given));
  *out_copied = false;
  if (made->kind != AIT_VALUE_TENSOR) return AIT_OK;
  bool given_memory = s->results[k].given;
  if (given_memory && same_place(&given->as.tensor, &made->as.tensor)) return AIT_OK;
  /* Memory of the caller is filled last; a source that commits overwrite must wait for that in a copy. */
  if (given_memory ? !is_overwritten(s, &made->as.tensor, AIT_NO_INDEX) : can_lend(s, inputs, &made->as.tensor)) return AIT_OK;
  *out_copied = true;
  return ait_session_copy(s, &s->results[k].scratch, &made->as.tensor);
}

static ait_status hand_out(ait_session *s, uint32_t k, ait_value *output) {
  ait_status status = AIT_OK;
  ait_value constant;
  const ait_value *made = s->results[k].copied ? NULL : result_value(s, k, &constant, &status);
  AIT_TRY(status);
  s->results[k].lent = (ait_tensor){0};
  ait_value from = made ? *made : (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = s->results[k].scratch};
  if (!s->results[k].given || from.kind != AIT_VALUE_TENSOR) {
    *output = from;
    s->results[k].lent = from.kind == AIT_VALUE_TENSOR ? from.as.tensor : (ait_tensor){0};
    return AIT_OK;
  }
  return same_place(&output->as.tensor, &from.as.tensor) ? AIT_OK : ait_tensor_copy(&output->as.tensor, &from.as.tensor);
}

ait_status ait_session_finish(ait_session *s, const ait_value *inputs, ait_value *outputs) {
  AIT_TRY(prepare_commits(s, inputs));
  for (uint32_t k = 0; k < s->model->output_count; ++k) AIT_TRY(prepare_result(s, inputs, k, &outputs[k], &s->results[k].copied));
  for (uint32_t c = 0; c < s->commit_count; ++c) {
    if (s->commits[c].source) AIT_TRY(ait_tensor_copy(s->commits[c].target, s->commits[c].source));
  }
  for (uint32_t k = 0; k < s->model->output_count; ++k) AIT_TRY(hand_out(s, k, &outputs[k]));
  return AIT_OK;
}
