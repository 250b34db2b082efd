/* The reference backend's table: compile keeps the region, load prepares it, run executes it. */
#include "backends/reference/interp.h"
#include "backends/region_codec.h"

#include <stdio.h>

typedef struct ref_loaded {
  ait_allocator allocator;
  ait_region *region;
  ait_ref_plan plan;
  ait_ref_value *weights; /* per region input; NONE for user inputs and for state that run passes */
  bool fp64;
} ref_loaded;

typedef struct ref_instance {
  const ref_loaded *loaded;
  ait_allocator allocator;
  ait_ref_value *values;
  int64_t *symbols;
  double *seconds; /* per node */
  uint64_t runs;   /* that were profiled */
  uint64_t draws;  /* random operators run so far */
} ref_instance;

static const char *const precision_values[] = {"fp32", "fp64", NULL};
static const ait_knob knobs[] = {
    {"precision", "fp64: every float is computed and kept in double", "fp32", precision_values},
    {NULL, NULL, NULL, NULL},
};

static void probe(ait_probe *out) {
  out->available = true;
  snprintf(out->version, sizeof out->version, "%s", ait_version());
  snprintf(out->detail, sizeof out->detail, "built in");
}

/* ---- what it takes -----------------------------------------------------------------------------------------------------------------*/
static void note_missing(const ait_region *region, uint32_t outer_node, int32_t depth, ait_support *out);

static void note_nested(const ait_arg *arg, uint32_t node, int32_t depth, ait_support *out) {
  if (arg->kind == AIT_ARG_GRAPH && depth < AIT_REF_MAX_DEPTH) note_missing(arg->as.graph, node, depth + 1, out);
}

/* Nodes of nested regions are noted under the outermost node that holds them. */
static void note_missing(const ait_region *region, uint32_t outer_node, int32_t depth, ait_support *out) {
  for (uint32_t n = 0; n < region->node_count; ++n) {
    const ait_region_node *node = &region->nodes[n];
    uint32_t at = depth == 0 ? n : outer_node;
    for (uint32_t i = 0; i < node->arg_count; ++i) note_nested(&node->args[i], at, depth, out);
    if (ait_ref_find(node->op)) continue;
    out->supported = false;
    if (out->note_count == out->note_capacity) continue;
    ait_support_note *note = &out->notes[out->note_count++];
    *note = (ait_support_note){.node = at, .code = "op-not-in-reference"};
    snprintf(note->reason, sizeof note->reason, "the reference backend has no operator '%.150s'", node->op);
  }
}

static ait_status supports(const ait_region *region, ait_support *out) {
  out->supported = true;
  out->note_count = 0;
  note_missing(region, AIT_NO_INDEX, 0, out);
  return AIT_OK;
}

static ait_status compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  ait_text text;
  ait_text_init(&text, options->allocator);
  ait_status status = ait_region_encode(region, &text);
  void *data = status == AIT_OK ? ait_alloc(options->allocator, text.length, 64) : NULL;
  if (status == AIT_OK && !data) status = AIT_OOM();
  if (status == AIT_OK) {
    memcpy(data, text.data, text.length);
    *out = (ait_blob){data, text.length};
  }
  ait_text_deinit(&text);
  return status;
}

/* ---- load --------------------------------------------------------------------------------------------------------------------------*/
static ait_status read_precision(const ait_load_context *context, bool *out_fp64) {
  *out_fp64 = false;
  for (uint32_t i = 0; i < context->option_count; ++i) {
    if (strcmp(context->options[i].key, "precision") != 0) continue;
    const char *value = context->options[i].value;
    *out_fp64 = strcmp(value, "fp64") == 0;
    if (!*out_fp64 && strcmp(value, "fp32") != 0)
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "precision '%s' is neither fp32 nor fp64", value);
  }
  return AIT_OK;
}

static bool is_widened(const ait_tensor *t) {
  return (ait_dtype_is_float(t->dtype) && t->dtype != AIT_F64) || (ait_dtype_is_complex(t->dtype) && t->dtype != AIT_C128);
}

static ait_status widen(ait_allocator a, const ait_tensor *t, ait_tensor *out) {
  return ait_tensor_cast(a, t, ait_dtype_is_complex(t->dtype) ? AIT_C128 : AIT_F64, out);
}

static ait_status load_weight(ref_loaded *l, const ait_weights *weights, uint32_t i) {
  const ait_region_input *input = &l->region->inputs[i];
  if (input->kind == AIT_INPUT_USER || input->kind == AIT_INPUT_TOKEN || input->mutated || input->value == AIT_NO_INDEX) return AIT_OK;
  ait_tensor view, wide;
  AIT_TRY(weights->get(weights->ctx, input->name, &view));
  l->weights[i].type = AIT_TYPE_TENSOR;
  if (!l->fp64 || !is_widened(&view)) {
    l->weights[i].as.tensor = ait_tensor_retain(&view);
    return AIT_OK;
  }
  l->weights[i].type = AIT_TYPE_NONE;
  AIT_TRY(widen(l->allocator, &view, &wide));
  l->weights[i] = (ait_ref_value){.type = AIT_TYPE_TENSOR, .as.tensor = wide};
  return AIT_OK;
}

static void unload(void *loaded) {
  ref_loaded *l = loaded;
  if (!l) return;
  if (l->region) {
    for (uint32_t i = 0; l->weights && i < l->region->input_count; ++i) ait_ref_value_release(l->allocator, &l->weights[i]);
    ait_free(l->allocator, l->weights, l->region->input_count * sizeof *l->weights);
    if (l->plan.functions) ait_ref_plan_destroy(l->allocator, l->region, &l->plan);
  }
  ait_region_destroy(l->region);
  ait_free(l->allocator, l, sizeof *l);
}

static ait_status load(const ait_load_context *context, void **out_loaded) {
  ref_loaded *l = ait_alloc_zero(context->allocator, sizeof *l, _Alignof(ref_loaded));
  if (!l) return AIT_OOM();
  ait_status status = AIT_OK;
  l->allocator = context->allocator;
  AIT_GOTO(read_precision(context, &l->fp64));
  AIT_GOTO(ait_region_decode(context->allocator, context->blob, context->blob_size, &l->region));
  AIT_GOTO(ait_ref_plan_create(context->allocator, l->region, &l->plan));
  l->weights = ait_alloc_zero(context->allocator, l->region->input_count * sizeof *l->weights, _Alignof(ait_ref_value));
  if (!l->weights) AIT_GOTO(AIT_OOM());
  for (uint32_t i = 0; i < l->region->input_count; ++i) AIT_GOTO(load_weight(l, &context->weights, i));
  *out_loaded = l;
  return AIT_OK;
cleanup:
  unload(l);
  return status;
}

/* ---- instance ------------------------------------------------------------------------------------------------------------------------*/
static void instance_destroy(void *instance) {
  ref_instance *s = instance;
  if (!s) return;
  const ait_region *region = s->loaded->region;
  ait_free(s->allocator, s->values, region->value_count * sizeof *s->values);
  ait_free(s->allocator, s->symbols, region->symbol_count * sizeof *s->symbols);
  ait_free(s->allocator, s->seconds, region->node_count * sizeof *s->seconds);
  ait_free(s->allocator, s, sizeof *s);
}

static ait_status instance_create(void *loaded, ait_allocator allocator, void **out_instance) {
  const ref_loaded *l = loaded;
  ref_instance *s = ait_alloc_zero(allocator, sizeof *s, _Alignof(ref_instance));
  if (!s) return AIT_OOM();
  s->loaded = l;
  s->allocator = allocator;
  s->values = ait_alloc_zero(allocator, l->region->value_count * sizeof *s->values, _Alignof(ait_ref_value));
  s->symbols = ait_alloc_zero(allocator, l->region->symbol_count * sizeof *s->symbols, _Alignof(int64_t));
  s->seconds = ait_alloc_zero(allocator, l->region->node_count * sizeof *s->seconds, _Alignof(double));
  if (!s->values || !s->symbols || !s->seconds) {
    instance_destroy(s);
    return AIT_OOM();
  }
  *out_instance = s;
  return AIT_OK;
}

/* ---- run ---------------------------------------------------------------------------------------------------------------------------*/
static ait_status tensor_input(const ref_loaded *l, ait_allocator a, const ait_tensor *t, ait_ref_value *out) {
  ait_tensor own;
  if (l->fp64 && is_widened(t)) AIT_TRY(widen(a, t, &own));
  else own = ait_tensor_retain(t);
  *out = (ait_ref_value){.type = AIT_TYPE_TENSOR, .as.tensor = own};
  return AIT_OK;
}

static ait_status user_input(const ref_loaded *l, ait_allocator a, const ait_value *v, ait_type declared, ait_ref_value *out) {
  switch (v->kind) {
    case AIT_VALUE_TENSOR: return tensor_input(l, a, &v->as.tensor, out);
    case AIT_VALUE_INT:
      if (declared == AIT_TYPE_FLOAT) *out = (ait_ref_value){.type = AIT_TYPE_FLOAT, .as.f = (double)v->as.i};
      else *out = (ait_ref_value){.type = AIT_TYPE_INT, .as.i = v->as.i};
      return AIT_OK;
    case AIT_VALUE_FLOAT: *out = (ait_ref_value){.type = AIT_TYPE_FLOAT, .as.f = v->as.f}; return AIT_OK;
    case AIT_VALUE_BOOL: *out = (ait_ref_value){.type = AIT_TYPE_BOOL, .as.b = v->as.b}; return AIT_OK;
    case AIT_VALUE_STRING: *out = (ait_ref_value){.type = AIT_TYPE_STRING, .as.s = v->as.s}; return AIT_OK;
    default: return AIT_OK;
  }
}

static ait_status place_inputs(ref_instance *s, const ait_run_context *context) {
  const ref_loaded *l = s->loaded;
  for (uint32_t i = 0; i < l->region->input_count; ++i) {
    const ait_region_input *input = &l->region->inputs[i];
    if (input->value >= l->region->value_count || input->kind == AIT_INPUT_TOKEN) continue;
    ait_ref_value *to = &s->values[input->value];
    /* State that another step of the plan changes comes as a tensor, though this region only reads it. */
    bool given = context->inputs[i].kind == AIT_VALUE_TENSOR;
    if (l->weights[i].type != AIT_TYPE_NONE && !given) AIT_TRY(ait_ref_value_retain(context->allocator, &l->weights[i], to));
    else AIT_TRY(user_input(l, context->allocator, &context->inputs[i], l->region->values[input->value].type, to));
    if (to->type == AIT_TYPE_NONE && l->region->values[input->value].type == AIT_TYPE_TENSOR)
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "input '%s' is not given", input->name ? input->name : "");
  }
  return AIT_OK;
}

/* In fp64 mode mutated inputs were widened copies: what the region wrote goes back. `copies` holds them while values are dropped. */
static ait_status write_back(const ref_loaded *l, const ait_run_context *context, const ait_ref_value *copies) {
  for (uint32_t i = 0; i < l->region->input_count; ++i) {
    if (copies[i].type != AIT_TYPE_TENSOR) continue;
    AIT_TRY(ait_tensor_copy(&context->inputs[i].as.tensor, &copies[i].as.tensor));
  }
  return AIT_OK;
}

static ait_status keep_mutated(ref_instance *s, const ait_run_context *context, ait_ref_value *copies) {
  const ait_region *region = s->loaded->region;
  for (uint32_t i = 0; s->loaded->fp64 && i < region->input_count; ++i) {
    const ait_region_input *input = &region->inputs[i];
    if (!input->mutated || input->value >= region->value_count || context->inputs[i].kind != AIT_VALUE_TENSOR) continue;
    const ait_ref_value *v = &s->values[input->value];
    if (v->type == AIT_TYPE_TENSOR && v->as.tensor.data != context->inputs[i].as.tensor.data)
      AIT_TRY(ait_ref_value_retain(context->allocator, v, &copies[i]));
  }
  return AIT_OK;
}

static ait_status give_output(const ait_region_output *output, ait_ref_value *v, ait_value *out) {
  if (out->kind == AIT_VALUE_TENSOR && v->type == AIT_TYPE_TENSOR && out->as.tensor.data) {
    if (!ait_tensor_same_shape(&out->as.tensor, &v->as.tensor))
      return ait_error(AIT_CODE_INVALID_ARGUMENT, "the memory given for output '%s' has another shape", output->name ? output->name : "");
    return ait_tensor_copy(&out->as.tensor, &v->as.tensor);
  }
  switch (v->type) {
    case AIT_TYPE_TENSOR:
      *out = ait_value_tensor(v->as.tensor);
      *v = (ait_ref_value){0};
      return AIT_OK;
    case AIT_TYPE_INT: *out = (ait_value){.kind = AIT_VALUE_INT, .as.i = v->as.i}; return AIT_OK;
    case AIT_TYPE_FLOAT:
      if (v->is_complex) return ait_error(AIT_CODE_UNSUPPORTED, "output '%s' is a complex number", output->name ? output->name : "");
      *out = (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = v->as.f};
      return AIT_OK;
    case AIT_TYPE_BOOL: *out = (ait_value){.kind = AIT_VALUE_BOOL, .as.b = v->as.b}; return AIT_OK;
    case AIT_TYPE_STRING: *out = (ait_value){.kind = AIT_VALUE_STRING, .as.s = v->as.s}; return AIT_OK;
    case AIT_TYPE_TENSOR_LIST: return ait_error(AIT_CODE_UNSUPPORTED, "output '%s' is a list of tensors", output->name ? output->name : "");
    default: *out = (ait_value){0}; return AIT_OK;
  }
}

static ait_status give_outputs(ref_instance *s, const ait_run_context *context, const ait_ref_frame *frame) {
  const ait_region *region = s->loaded->region;
  struct ait_ref_run run = {region, s->values, s->symbols, context->allocator, context->pool, frame->fp64, 0, frame->draws};
  static const ait_region_node output_node = {.op = "output", .name = "output"};
  ait_ref_call call = {&run, region, &output_node, NULL, context->allocator, context->pool, frame->fp64};
  for (uint32_t i = 0; i < region->output_count; ++i) {
    ait_ref_value v;
    AIT_TRY(ait_ref_arg_value(&call, &region->outputs[i].arg, &v));
    ait_status status = give_output(&region->outputs[i], &v, &context->outputs[i]);
    ait_ref_value_release(context->allocator, &v);
    AIT_TRY(status);
  }
  return AIT_OK;
}

static ait_status run(void *instance, const ait_run_context *context) {
  ref_instance *s = instance;
  const ref_loaded *l = s->loaded;
  size_t copies_bytes = l->region->input_count * sizeof(ait_ref_value);
  ait_ref_value *copies = ait_alloc_zero(context->allocator, copies_bytes, _Alignof(ait_ref_value));
  if (!copies) return AIT_OOM();
  ait_ref_frame frame = {.region = l->region,
                         .plan = &l->plan,
                         .values = s->values,
                         .symbols = s->symbols,
                         .allocator = context->allocator,
                         .pool = context->pool,
                         .fp64 = l->fp64,
                         .seconds = context->profile ? s->seconds : NULL,
                         .draws = &s->draws};
  ait_status status = AIT_OK;
  for (uint32_t i = 0; i < l->region->symbol_count; ++i) s->symbols[i] = INT64_MIN;
  AIT_GOTO(place_inputs(s, context));
  AIT_GOTO(keep_mutated(s, context, copies));
  ait_ref_bind_symbols(l->region, s->values, s->symbols);
  AIT_GOTO(ait_ref_execute(&frame));
  AIT_GOTO(give_outputs(s, context, &frame));
  AIT_GOTO(write_back(l, context, copies));
  s->runs += context->profile;
cleanup:
  for (uint32_t v = 0; v < l->region->value_count; ++v) ait_ref_value_release(context->allocator, &s->values[v]);
  for (uint32_t i = 0; i < l->region->input_count; ++i) ait_ref_value_release(context->allocator, &copies[i]);
  ait_free(context->allocator, copies, copies_bytes);
  return status;
}

static uint32_t profile(void *instance, ait_step_time *out, uint32_t capacity) {
  const ref_instance *s = instance;
  const ait_region *region = s->loaded->region;
  for (uint32_t n = 0; n < region->node_count && n < capacity; ++n)
    out[n] = (ait_step_time){.name = region->nodes[n].name,
                             .op = region->nodes[n].op,
                             .module = region->nodes[n].module,
                             .kernel = "reference",
                             .seconds = s->seconds[n],
                             .calls = s->runs,
                             .portable = true};
  return region->node_count;
}

const ait_backend ait_backend_reference = {
    .struct_size = sizeof(ait_backend),
    .abi_version = AIT_BACKEND_ABI,
    .name = "reference",
    .summary = "slow, exact, complete: the oracle",
    .knobs = knobs,
    .accepts_raw = true,
    .probe = probe,
    .supports = supports,
    .compile = compile,
    .load = load,
    .instance_create = instance_create,
    .run = run,
    .profile = profile,
    .instance_destroy = instance_destroy,
    .unload = unload,
};
