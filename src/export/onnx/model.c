/* From a region to the exporter's graph: inputs, weights, nodes in order, outputs, names. */
#include "export/onnx/emit.h"
#include "passes/passes.h"
#include <stdio.h>

enum { BODY_DEPTH_LIMIT = 32 };

/* ---- frames ----------------------------------------------------------------------------------------------------------------------*/
static oe_frame *new_frame(ox *x, const ait_region *region, const char *name) {
  oe_frame *f = oe_new(x, 1, sizeof *f);
  if (!f) return NULL;
  *f = (oe_frame){.parent = x->frame, .region = region, .name = name};
  f->into = f;
  f->values = oe_new(x, region->value_count, sizeof *f->values);
  f->lists = oe_new(x, region->value_count, sizeof *f->lists);
  f->list_counts = oe_new(x, region->value_count, sizeof *f->list_counts);
  f->sources = oe_new(x, region->dim_count, sizeof *f->sources);
  f->dims = oe_new(x, region->dim_count, sizeof *f->dims);
  return oe_failed(x) ? NULL : f;
}

static oe_t describe(const ait_region_value *v, oe_t t) {
  t.rank = v->type == AIT_TYPE_TENSOR ? v->rank : 0;
  t.shape = v->type == AIT_TYPE_TENSOR && v->rank >= 0 ? v->shape : NULL;
  return t;
}

static bool holdable(ox *x, const ait_region_value *v) {
  ait_dtype d = oe_value_dtype(v);
  if (v->type == AIT_TYPE_TENSOR_LIST) return false;
  if (d != AIT_DTYPE_NONE && oe_onnx_type(d) != 0 && !ait_dtype_is_complex(d)) return true;
  if (ait_dtype_is_complex(d)) oe_fail(x, "'%s' is complex, and ONNX operators have no complex numbers", v->name);
  else oe_fail(x, "'%s' is neither tensor nor number", v->name);
  return false;
}

/* ---- inputs ----------------------------------------------------------------------------------------------------------------------*/
static bool is_state(const ait_region *r, const ait_region_input *in) {
  if (in->kind == AIT_INPUT_USER || in->kind == AIT_INPUT_TOKEN) return false;
  for (uint32_t i = 0; i < r->output_count; ++i)
    if (r->outputs[i].kind == AIT_OUTPUT_STATE && r->outputs[i].name && !strcmp(r->outputs[i].name, in->name)) return true;
  return false;
}

static void add_weight(ox *x, const ait_region_input *in, oe_t t, bool state) {
  oe_weight *w = oe_new(x, 1, sizeof *w);
  if (!w) return;
  oe_set_status(x, x->provider.get(x->provider.ctx, in->name, &w->tensor));
  if (oe_failed(x)) return;
  w->name = t.name;
  w->state = state;
  t.name->hint = in->name;
  if (w->tensor.dtype != t.dtype)
    oe_set_status(x, ait_error(AIT_CODE_INVALID_MODEL, "weight '%s' has another dtype than the graph says", in->name));
  if (x->last_weight) x->last_weight->next = w;
  else x->first_weight = w;
  x->last_weight = w;
}

static void add_input(ox *x, const ait_region_input *in) {
  oe_frame *f = x->frame;
  if (in->value == AIT_NO_INDEX || in->kind == AIT_INPUT_TOKEN) return;
  const ait_region_value *v = &f->region->values[in->value];
  if (!holdable(x, v)) return;
  oe_t t = describe(v, oe_tensor(x, oe_value_dtype(v)));
  if (oe_failed(x)) return;
  f->values[in->value] = t;
  bool user = in->kind == AIT_INPUT_USER, state = is_state(f->region, in);
  if (user || state) {
    f->inputs[f->input_count++] = t;
    oe_claim(x, t.name, in->name && *in->name ? in->name : v->name);
  }
  if (!user) add_weight(x, in, t, state);
  oe_bind_sizes(x, t);
  if (v->type == AIT_TYPE_INT && v->shape) oe_bind_scalar(x, v->shape[0], t);
}

/* ---- nodes -----------------------------------------------------------------------------------------------------------------------*/
static const char *reason_for(const char *op) {
  const ait_op *row = ait_op_find(op);
  if (!row) return "the exporter does not know the operator";
  if (row->traits & AIT_OP_RANDOM) return "it draws random numbers, and those of ONNX are others";
  if (row->traits & AIT_OP_MUTATES) return "it writes into its operands, and ONNX has values only";
  return "the exporter has no row for it";
}

/* A tensor of constant shape without elements needs no node; runtimes have faults with those. */
static bool write_empty_results(ox *x, const ait_region_node *n) {
  for (uint32_t k = 0; k < n->result_count; ++k) {
    const ait_region_value *v = oe_result_value(x, k);
    bool empty = false;
    int64_t size;
    if (!oe_wants(x, k) || v->type != AIT_TYPE_TENSOR) return false;
    for (int32_t i = 0; i < v->rank; ++i) {
      if (!oe_dim_const(x, v->shape[i], &size)) return false;
      empty |= size == 0;
    }
    if (!empty) return false;
  }
  for (uint32_t k = 0; k < n->result_count && !oe_failed(x); ++k) {
    const ait_region_value *v = oe_result_value(x, k);
    int64_t shape[AIT_MAX_RANK];
    for (int32_t i = 0; i < v->rank; ++i) oe_dim_const(x, v->shape[i], &shape[i]);
    oe_set(x, k, oe_const(x, v->dtype, v->rank, shape, ""));
  }
  return n->result_count > 0;
}

static void write_node(ox *x, const ait_region_node *n) {
  const oe_row *row = oe_row_find(n->op);
  x->node = n;
  if (n->flags & AIT_NODE_INPLACE) oe_fail(x, "it writes in place; export takes the core dialect");
  else if (!row) oe_fail(x, "%s", reason_for(n->op));
  for (uint32_t k = 0; k < n->result_count && !oe_failed(x); ++k)
    if (n->results[k] != AIT_NO_INDEX && x->frame->region->values[n->results[k]].type != AIT_TYPE_TENSOR_LIST)
      holdable(x, &x->frame->region->values[n->results[k]]);
  if (oe_failed(x) || write_empty_results(x, n)) return;
  x->with = row->with;
  row->run(x);
}

static void write_nodes(ox *x) {
  const ait_region *r = x->frame->region;
  for (uint32_t i = 0; i < r->node_count && !oe_failed(x); ++i) write_node(x, &r->nodes[i]);
}

/* ---- bodies ----------------------------------------------------------------------------------------------------------------------*/
oe_frame *oe_body_enter(ox *x, const ait_arg *graph) {
  if (graph->kind != AIT_ARG_GRAPH) oe_fail(x, "an argument is no graph");
  else if (++x->depth > BODY_DEPTH_LIMIT) oe_fail(x, "graphs nest deeper than %d", BODY_DEPTH_LIMIT);
  if (oe_failed(x)) return NULL;
  const ait_region *r = graph->as.graph;
  oe_frame *f = new_frame(x, r, r->name && *r->name ? r->name : "body");
  if (f) x->frame = f;
  return f;
}

void oe_body_bind(ox *x, uint32_t input, oe_t t) {
  const ait_region *r = x->frame->region;
  if (oe_failed(x) || input >= r->input_count || r->inputs[input].value == AIT_NO_INDEX) return;
  const ait_region_value *v = &r->values[r->inputs[input].value];
  t = describe(v, oe_cast(x, t, oe_value_dtype(v)));
  x->frame->values[r->inputs[input].value] = t;
  if (t.name && !t.name->hint) t.name->hint = v->name;
  oe_bind_sizes(x, t);
  if (v->type == AIT_TYPE_INT && v->shape) oe_bind_scalar(x, v->shape[0], t);
}

void oe_body_nodes(ox *x) {
  const ait_region_node *outer = x->node;
  const char *with = x->with;
  write_nodes(x);
  x->node = outer;
  x->with = with;
}

oe_t oe_body_output(ox *x, uint32_t k) {
  const ait_region *r = x->frame->region;
  if (oe_failed(x) || k >= r->output_count) return oe_none();
  oe_t t = oe_operand(x, &r->outputs[k].arg, AIT_DTYPE_NONE);
  oe_t copy = OE(x, "Identity", t.dtype, t); /* a body's output may be no outer value and no input */
  copy.rank = t.rank;
  copy.shape = t.shape;
  return copy;
}

void oe_body_leave(ox *x, const oe_t *inputs, uint32_t input_count, const oe_t *outputs, uint32_t output_count) {
  oe_frame *f = x->frame;
  if (oe_failed(x)) return;
  f->inputs = oe_new(x, input_count, sizeof *f->inputs);
  f->outputs = oe_new(x, output_count, sizeof *f->outputs);
  if (!f->inputs || !f->outputs) return;
  memcpy(f->inputs, inputs, input_count * sizeof *inputs);
  memcpy(f->outputs, outputs, output_count * sizeof *outputs);
  f->input_count = input_count;
  f->output_count = output_count;
  x->frame = f->parent;
  --x->depth;
}

void oe_inline_enter(ox *x, const ait_arg *graph) {
  oe_frame *outer = x->frame, *f = oe_body_enter(x, graph);
  if (f) f->into = outer->into;
}

oe_t oe_inline_output(ox *x, uint32_t k) {
  const ait_region *r = x->frame->region;
  if (k >= r->output_count) oe_fail(x, "a graph in it has too few results");
  return oe_failed(x) ? oe_none() : oe_operand(x, &r->outputs[k].arg, AIT_DTYPE_NONE);
}

void oe_inline_leave(ox *x) {
  if (oe_failed(x)) return;
  x->frame = x->frame->parent;
  --x->depth;
}

/* ---- outputs and names -----------------------------------------------------------------------------------------------------------*/
void oe_claim(ox *x, oe_name *name, const char *text) {
  if (oe_failed(x) || !name || name->text) return;
  const char *t = ait_arena_strdup(&x->arena, text, strlen(text));
  for (int n = 2; t && ait_map_get(&x->names, t, NULL); ++n) t = ait_arena_printf(&x->arena, "%s_%d", text, n);
  if (!t) oe_set_status(x, AIT_OOM());
  else oe_set_status(x, ait_map_put(&x->names, t, name));
  if (!oe_failed(x)) name->text = t;
}

static const char *output_name(ox *x, const ait_region_output *out, uint32_t index) {
  const char *name = out->name;
  if (out->kind == AIT_OUTPUT_USER) {
    if (name && *name) return name;
    name = ait_arena_printf(&x->arena, "output_%u", (unsigned)index);
  } else {
    for (uint32_t i = 0; out->kind == AIT_OUTPUT_INPUT && i < x->frame->region->input_count; ++i) {
      const ait_region_input *in = &x->frame->region->inputs[i];
      if (in->kind == AIT_INPUT_USER && in->user_index == out->user_index) name = in->name;
    }
    name = ait_arena_printf(&x->arena, "next.%s", name ? name : "");
  }
  if (!name) oe_set_status(x, AIT_OOM());
  return name ? name : "";
}

static void add_outputs(ox *x) {
  oe_frame *f = x->frame;
  const ait_region *r = f->region;
  x->node = NULL;
  for (uint32_t i = 0; i < r->output_count && !oe_failed(x); ++i) {
    const ait_region_output *out = &r->outputs[i];
    if (out->kind == AIT_OUTPUT_TOKEN || out->arg.kind == AIT_ARG_NONE || out->arg.kind == AIT_ARG_STRING) continue;
    oe_t t = oe_operand(x, &out->arg, AIT_DTYPE_NONE), own = t;
    bool taken = out->arg.kind != AIT_ARG_VALUE || (t.name && t.name->text);
    for (oe_weight *w = x->first_weight; w && !taken; w = w->next) taken = w->name == t.name;
    for (oe_constant *c = x->first_constant; c && !taken; c = c->next) taken = c->name == t.name;
    if (taken) own = OE(x, "Identity", t.dtype, t);
    own.rank = t.rank;
    own.shape = t.shape;
    oe_claim(x, own.name, output_name(x, out, i));
    f->outputs[f->output_count++] = own;
  }
}

static void name_tensor(ox *x, oe_name *name, uint32_t *temporaries) {
  if (!name || name->text || oe_failed(x)) return;
  if (name->hint && *name->hint) {
    oe_claim(x, name, name->hint);
    return;
  }
  const char *text = ait_arena_printf(&x->arena, "t%u", (unsigned)++*temporaries);
  if (!text) oe_set_status(x, AIT_OOM());
  else oe_claim(x, name, text);
}

static void name_frame(ox *x, const oe_frame *f, uint32_t *temporaries) {
  for (uint32_t i = 0; i < f->input_count; ++i) name_tensor(x, f->inputs[i].name, temporaries);
  for (const oe_node *n = f->first; n; n = n->next) {
    for (uint32_t i = 0; i < n->out_count; ++i) name_tensor(x, n->out[i], temporaries);
    for (const oe_attr *a = n->attrs; a; a = a->next)
      if (a->kind == OE_GRAPH) name_frame(x, a->graph, temporaries); /* as deep as BODY_DEPTH_LIMIT */
  }
}

static void give_names(ox *x) {
  uint32_t temporaries = 0, constants = 0;
  for (oe_weight *w = x->first_weight; w; w = w->next) name_tensor(x, w->name, &temporaries);
  for (oe_constant *c = x->first_constant; c && !oe_failed(x); c = c->next) {
    const char *text = ait_arena_printf(&x->arena, "constant_%u", (unsigned)++constants);
    if (!text) oe_set_status(x, AIT_OOM());
    else oe_claim(x, c->name, text);
  }
  name_frame(x, x->frame, &temporaries);
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------------*/
static void write_region(ox *x, const ait_region *region) {
  oe_frame *f = new_frame(x, region, region->name && *region->name ? region->name : "model");
  if (!f) return;
  x->frame = f;
  f->inputs = oe_new(x, region->input_count, sizeof *f->inputs);
  f->outputs = oe_new(x, region->output_count, sizeof *f->outputs);
  for (uint32_t i = 0; i < region->input_count && !oe_failed(x); ++i) add_input(x, &region->inputs[i]);
  if (!oe_failed(x)) write_nodes(x);
  if (!oe_failed(x)) add_outputs(x);
  if (!oe_failed(x)) give_names(x);
}

static ait_status export_region(ait_allocator a, const ait_region *region, ait_weights weights, const ait_onnx_options *options,
                                ait_blob *out, const char *path) {
  ait_onnx_options defaults = {0};
  if (!options) options = &defaults;
  ox x = {.allocator = a, .provider = weights, .opset = options->opset ? options->opset : AIT_ONNX_OPSET_DEFAULT};
  if (x.opset < AIT_ONNX_OPSET_MIN || x.opset > AIT_ONNX_OPSET_MAX)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "opset %d is not one of %d to %d", (int)x.opset, AIT_ONNX_OPSET_MIN, AIT_ONNX_OPSET_MAX);
  ait_arena_init(&x.arena, a);
  ait_map_init(&x.names, a);
  ait_map_init(&x.constants, a);
  write_region(&x, region);
  if (!oe_failed(&x)) x.status = oe_write(&x, options, out, path);
  for (oe_weight *w = x.first_weight; w; w = w->next) ait_tensor_release(&w->tensor);
  ait_map_deinit(&x.constants);
  ait_map_deinit(&x.names);
  ait_arena_deinit(&x.arena);
  return x.status;
}

ait_status ait_export_onnx(ait_allocator a, const ait_region *region, ait_weights weights, const ait_onnx_options *options, ait_blob *out) {
  *out = (ait_blob){0};
  return export_region(a, region, weights, options, out, NULL);
}

ait_status ait_export_onnx_file(ait_allocator a, const ait_region *region, ait_weights weights, const ait_onnx_options *options,
                                const char *path) {
  return export_region(a, region, weights, options, NULL, path);
}

bool ait_onnx_has_row(const char *op) { return oe_row_find(op) != NULL; }

/* ---- lowering --------------------------------------------------------------------------------------------------------------------*/
static ait_status lower_nested(ait_graph *g, const ait_pass_context *context, int depth);

static ait_status lower_in_arg(const ait_arg *arg, const ait_pass_context *context, int depth) {
  if (arg->kind == AIT_ARG_LIST)
    for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(lower_in_arg(&arg->as.list[i], context, depth));
  if (arg->kind != AIT_ARG_GRAPH) return AIT_OK;
  if (depth == 0) return ait_error(AIT_CODE_LIMIT, "graphs nest deeper than %d", BODY_DEPTH_LIMIT);
  ait_graph *body = (ait_graph *)(uintptr_t)arg->as.graph;
  bool changed = false;
  AIT_TRY(ait_pass_views(body, context, &changed));
  AIT_TRY(ait_pass_functionalise(body, context, &changed));
  AIT_TRY(ait_pass_lower(body, context, &changed));
  return lower_nested(body, context, depth - 1);
}

static ait_status lower_nested(ait_graph *g, const ait_pass_context *context, int depth) {
  for (ait_node *n = g->first; n; n = n->next)
    for (uint32_t i = 0; i < n->arg_count; ++i) AIT_TRY(lower_in_arg(&n->args[i], context, depth));
  return AIT_OK;
}

ait_status ait_export_lower(ait_allocator a, ait_graph *graph) {
  ait_pass_context context = {.allocator = a};
  return lower_nested(graph, &context, BODY_DEPTH_LIMIT);
}
