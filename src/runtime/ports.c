/* What a model takes and gives, from its portable region. */
#include "runtime/internal.h"
#include <stdio.h>

typedef struct ranges {
  int64_t *min, *max;
} ranges;

static ait_value_kind kind_of(ait_type type) {
  switch (type) {
    case AIT_TYPE_TENSOR:
    case AIT_TYPE_TENSOR_LIST: return AIT_VALUE_TENSOR;
    case AIT_TYPE_INT: return AIT_VALUE_INT;
    case AIT_TYPE_FLOAT: return AIT_VALUE_FLOAT;
    case AIT_TYPE_BOOL: return AIT_VALUE_BOOL;
    case AIT_TYPE_STRING: return AIT_VALUE_STRING;
    case AIT_TYPE_NONE: break;
  }
  return AIT_VALUE_NONE;
}

static ait_value_kind kind_of_constant(ait_arg_kind kind) {
  switch (kind) {
    case AIT_ARG_INT:
    case AIT_ARG_DIM: return AIT_VALUE_INT;
    case AIT_ARG_FLOAT: return AIT_VALUE_FLOAT;
    case AIT_ARG_BOOL: return AIT_VALUE_BOOL;
    case AIT_ARG_STRING: return AIT_VALUE_STRING;
    default: return AIT_VALUE_NONE;
  }
}

static ait_status describe_value(ait_model *m, const ranges *r, uint32_t value, ait_port *port) {
  const ait_region_value *v = &m->region->values[value];
  port->kind = kind_of(v->type);
  if (v->type != AIT_TYPE_TENSOR) return AIT_OK;
  port->dtype = v->dtype;
  port->rank = v->rank;
  for (int32_t d = 0; d < v->rank; ++d) {
    char text[128];
    ait_region_dim_text(m->region, v->shape[d], text, sizeof text);
    int64_t min = r->min[v->shape[d]];
    port->shape[d] = (ait_dim_info){min < 0 ? 0 : min, r->max[v->shape[d]], ait_arena_strdup(&m->arena, text, strlen(text))};
    if (!port->shape[d].text) return AIT_OOM();
  }
  return AIT_OK;
}

static const char *fallback_name(ait_model *m, const char *what, uint32_t index) {
  const char *name = ait_arena_printf(&m->arena, "%s_%u", what, index);
  return name ? name : what;
}

static ait_status describe_inputs(ait_model *m, const ranges *r) {
  for (uint32_t i = 0; i < m->region->input_count; ++i) {
    const ait_region_input *in = &m->region->inputs[i];
    if (in->kind != AIT_INPUT_USER) continue;
    ait_port *port = &m->inputs[in->user_index];
    *port = (ait_port){.rank = -1};
    port->name = in->name && in->name[0] ? in->name : fallback_name(m, "input", (uint32_t)in->user_index);
    if (in->value != AIT_NO_INDEX) {
      AIT_TRY(describe_value(m, r, in->value, port));
    } else {
      port->baked = true;
      port->kind = kind_of_constant(in->baked.kind);
    }
  }
  return AIT_OK;
}

static ait_status describe_outputs(ait_model *m, const ranges *r) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < m->region->output_count; ++i) {
    const ait_region_output *o = &m->region->outputs[i];
    if (o->kind != AIT_OUTPUT_USER) continue;
    ait_port *port = &m->outputs[k];
    *port = (ait_port){.rank = -1};
    bool computed = o->arg.kind == AIT_ARG_VALUE;
    if (computed) AIT_TRY(describe_value(m, r, o->arg.as.value, port));
    else port->kind = kind_of_constant(o->arg.kind);
    port->baked = !computed && o->arg.kind != AIT_ARG_DIM;
    port->name = o->name && o->name[0] ? o->name : computed ? m->region->values[o->arg.as.value].name : NULL;
    if (!port->name) port->name = fallback_name(m, "output", k);
    m->results[k++] = o;
  }
  return AIT_OK;
}

ait_status ait_model_describe(ait_model *m) {
  m->input_count = ait_region_user_inputs(m->region);
  m->output_count = ait_region_user_outputs(m->region);
  m->inputs = AIT_ARENA_ARRAY(&m->arena, ait_port, m->input_count);
  m->outputs = AIT_ARENA_ARRAY(&m->arena, ait_port, m->output_count);
  m->results = AIT_ARENA_ARRAY(&m->arena, const ait_region_output *, m->output_count);
  size_t bytes = (size_t)m->region->dim_count * sizeof(int64_t);
  ranges r = {ait_alloc(m->allocator, bytes, 8), ait_alloc(m->allocator, bytes, 8)};
  ait_status status = AIT_OK;
  if (!m->inputs || !m->outputs || !m->results || !r.min || !r.max) {
    status = AIT_OOM();
  } else {
    ait_region_dim_ranges(m->region, r.min, r.max);
    status = describe_inputs(m, &r);
    if (!status) status = describe_outputs(m, &r);
  }
  ait_free(m->allocator, r.min, bytes);
  ait_free(m->allocator, r.max, bytes);
  return status;
}
