/* Functions become part of the graph; If, Loop and Scan become operators with nested graphs. */
#include "import/onnx/onnx.h"

/* ---- functions -------------------------------------------------------------------------------------------------------------------*/

static ait_status bind_function(ox_call *c, const Onnx__FunctionProto *f, ox_scope *s) {
  if (c->input_count > f->n_input)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "%u inputs, the function takes %zu", (unsigned)c->input_count, f->n_input);
  for (size_t i = 0; i < f->n_input; ++i) AIT_TRY(ox_define(s, f->input[i], i < c->input_count ? c->inputs[i] : AIT_NO_INDEX));
  AIT_TRY(ox_read_opsets(c->in, f->opset_import, f->n_opset_import, &s->opsets));
  s->opset_count = f->n_opset_import;
  AIT_TRY(ox_add_nodes(s, f->node, f->n_node));
  for (size_t i = 0; i < f->n_output && i < OX_MAX_OUTPUTS; ++i) AIT_TRY(ox_find(s, f->output[i], &c->outputs[i]));
  return AIT_OK;
}

ait_status ox_call_function(ox_call *c, const Onnx__FunctionProto *f) {
  ox_scope s;
  if (c->s->depth >= OX_GRAPH_DEPTH) return ox_fail(c, AIT_CODE_LIMIT, "functions call functions deeper than %d", OX_GRAPH_DEPTH);
  ox_scope_init(&s, c->in, c->s->frame, NULL);
  s.call = c->node;
  s.call_scope = c->s;
  s.function = f;
  s.depth = c->s->depth + 1;
  s.module = c->module;
  s.prefix = ait_arena_printf(&c->in->arena, "%s/", c->name);
  ait_status status = s.prefix ? bind_function(c, f, &s) : AIT_OOM();
  ox_scope_deinit(&s);
  return status;
}

/* ---- nested graphs ---------------------------------------------------------------------------------------------------------------*/

typedef struct body {
  const Onnx__GraphProto *proto;
  ox_frame frame;
  ox_scope scope;
  ait_graph *graph;
  uint32_t *outputs; /* values of the nested graph */
} body;

static void body_deinit(body *b) {
  if (!b->proto) return;
  ox_scope_deinit(&b->scope);
  ox_frame_deinit(&b->frame);
}

static ait_status body_begin(ox_call *c, const Onnx__GraphProto *proto, body *b) {
  if (c->s->depth >= OX_GRAPH_DEPTH) return ox_fail(c, AIT_CODE_LIMIT, "graphs nest deeper than %d", OX_GRAPH_DEPTH);
  AIT_TRY(ait_graph_create_nested(c->g, &b->graph));
  b->proto = proto;
  ox_frame_init(&b->frame, b->graph, c->in);
  b->frame.captures_for = c->s;
  ox_scope_init(&b->scope, c->in, &b->frame, c->s);
  b->scope.module = c->module;
  b->outputs = AIT_ARENA_ARRAY(&c->in->arena, uint32_t, proto->n_output + 1);
  if (!b->outputs) return AIT_OOM();
  return ait_graph_strdup(b->graph, proto->name ? proto->name : "", &b->graph->name);
}

/* Input i of the nested graph, of a given type. */
static ait_status body_input(body *b, size_t i, const ait_value_info *info) {
  const char *name = i < b->proto->n_input && b->proto->input[i]->name ? b->proto->input[i]->name : "";
  uint32_t value;
  AIT_TRY(ait_graph_add_value(b->graph, *name ? name : "input", info, &value));
  ait_region_input input = {.value = value, .kind = AIT_INPUT_USER, .name = b->graph->values[value].name, .user_index = (int32_t)i};
  AIT_TRY(ait_graph_add_input(b->graph, &input));
  return *name ? ox_define(&b->scope, name, value) : AIT_OK;
}

static ait_status body_nodes(ox_call *c, body *b) {
  AIT_TRY(ox_add_initializers(&b->scope, b->proto));
  AIT_TRY(ox_add_nodes(&b->scope, b->proto->node, b->proto->n_node));
  for (size_t i = 0; i < b->proto->n_output; ++i) {
    const char *name = b->proto->output[i]->name ? b->proto->output[i]->name : "";
    AIT_TRY(ox_find(&b->scope, name, &b->outputs[i]));
    if (b->outputs[i] == AIT_NO_INDEX) return ox_fail(c, AIT_CODE_INVALID_MODEL, "output '%s' of a nested graph is computed nowhere", name);
  }
  return AIT_OK;
}

static ait_status body_finish(body *b) {
  for (size_t i = 0; i < b->proto->n_output; ++i) {
    ait_region_output output = {
        .arg = ait_arg_value(b->outputs[i]), .kind = AIT_OUTPUT_USER, .name = b->proto->output[i]->name, .user_index = (int32_t)i};
    AIT_TRY(ait_graph_add_output(b->graph, &output));
  }
  return AIT_OK;
}

static ait_arg graph_arg(const body *b) { return (ait_arg){.kind = AIT_ARG_GRAPH, .as.graph = b->graph}; }

/* A size of a nested graph's value as the surrounding graph may say it: constants and functions of the inputs' symbols. */
static ait_status outer_size(ox_call *c, ait_dim d, ait_dim *out) {
  *out = d;
  return ait_dim_is_known(c->g, d) ? AIT_OK : ait_dim_unknown(c->g, out);
}

/* What two values have in common. */
static ait_status common_info(ox_call *c, const ait_value_info *a, const ait_value_info *b, ait_value_info *out) {
  *out = (ait_value_info){.type = a->type, .dtype = a->dtype, .rank = -1, .scalar = AIT_NO_INDEX};
  if (a->type != b->type) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the branches give values of different types");
  if (a->dtype != b->dtype) out->dtype = AIT_DTYPE_NONE;
  if (a->type != AIT_TYPE_TENSOR || a->rank != b->rank || a->rank < 0) return AIT_OK;
  ait_dim *dims;
  AIT_TRY(ox_dims(c, a->rank, &dims));
  for (int32_t d = 0; d < a->rank; ++d) {
    if (a->shape[d] == b->shape[d]) AIT_TRY(outer_size(c, a->shape[d], &dims[d]));
    else AIT_TRY(ait_dim_unknown(c->g, &dims[d]));
  }
  out->rank = a->rank;
  out->shape = dims;
  return AIT_OK;
}

/* ---- If --------------------------------------------------------------------------------------------------------------------------*/

static ait_status fill_inline(ox_scope *s, const Onnx__GraphProto *proto, const uint32_t *inputs, uint32_t input_count, uint32_t *outputs,
                              uint32_t output_count) {
  for (uint32_t i = 0; i < input_count && i < proto->n_input; ++i)
    if (proto->input[i]->name) AIT_TRY(ox_define(s, proto->input[i]->name, inputs[i]));
  AIT_TRY(ox_add_initializers(s, proto));
  AIT_TRY(ox_add_nodes(s, proto->node, proto->n_node));
  for (uint32_t i = 0; i < output_count && i < proto->n_output; ++i) {
    const char *name = proto->output[i]->name ? proto->output[i]->name : "";
    AIT_TRY(ox_find(s, name, &outputs[i]));
    if (outputs[i] == AIT_NO_INDEX) return ait_error(AIT_CODE_INVALID_MODEL, "output '%s' of a nested graph is computed nowhere", name);
  }
  return AIT_OK;
}

ait_status ox_inline_graph(ox_call *c, const Onnx__GraphProto *proto, const uint32_t *inputs, uint32_t input_count, uint32_t *outputs,
                           uint32_t output_count) {
  ox_scope s;
  if (c->s->depth >= OX_GRAPH_DEPTH) return ox_fail(c, AIT_CODE_LIMIT, "graphs nest deeper than %d", OX_GRAPH_DEPTH);
  if (proto->n_input < input_count || proto->n_output < output_count)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "a nested graph takes %zu values and gives %zu", proto->n_input, proto->n_output);
  ox_scope_init(&s, c->in, c->s->frame, c->s);
  s.module = c->module;
  ait_status status = fill_inline(&s, proto, inputs, input_count, outputs, output_count);
  ox_scope_deinit(&s);
  return status;
}

/* The condition is known: the branch's nodes become part of the graph. */
static ait_status inline_branch(ox_call *c, const Onnx__GraphProto *proto) {
  uint32_t n = proto->n_output < OX_MAX_OUTPUTS ? (uint32_t)proto->n_output : OX_MAX_OUTPUTS;
  return ox_inline_graph(c, proto, NULL, 0, c->outputs, n);
}

static ait_status branch_results(ox_call *c, const body *yes, const body *no, ait_value_info *infos) {
  for (size_t i = 0; i < yes->proto->n_output; ++i)
    AIT_TRY(common_info(c, &yes->graph->values[yes->outputs[i]], &no->graph->values[no->outputs[i]], &infos[i]));
  return AIT_OK;
}

static ait_status build_branches(ox_call *c, body *yes, body *no) {
  ait_value_info infos[OX_MAX_OUTPUTS];
  uint32_t unused;
  size_t n = yes->proto->n_output;
  if (n != no->proto->n_output || n > OX_MAX_OUTPUTS)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "the branches give %zu and %zu values", n, no->proto->n_output);
  AIT_TRY(body_nodes(c, yes));
  /* Both branches take the same operands: what the first captured, then what only the second does. */
  for (size_t i = 0; i < yes->frame.capture_count; ++i) AIT_TRY(ox_capture(&no->scope, yes->frame.outer_values[i], &unused));
  AIT_TRY(body_nodes(c, no));
  for (size_t i = 0; i < no->frame.capture_count; ++i) AIT_TRY(ox_capture(&yes->scope, no->frame.outer_values[i], &unused));
  AIT_TRY(body_finish(yes));
  AIT_TRY(body_finish(no));
  AIT_TRY(branch_results(c, yes, no, infos));
  return ox_raw_args(
      c, "higher_order.cond",
      OX_ARGS(V(c->inputs[0]), graph_arg(yes), graph_arg(no), ox_list_values(c, yes->frame.outer_values, yes->frame.capture_count)), infos,
      c->outputs, (uint32_t)n);
}

ait_status ox_build_if(ox_call *c) {
  const Onnx__GraphProto *then_graph, *else_graph;
  uint32_t pred;
  double known;
  AIT_TRY(ox_need(c, 0, &pred));
  AIT_TRY(ox_graph(c, "then_branch", &then_graph));
  AIT_TRY(ox_graph(c, "else_branch", &else_graph));
  if (ox_known_number(c, pred, &known)) return inline_branch(c, known != 0 ? then_graph : else_graph);
  body yes = {0}, no = {0};
  ait_status status = body_begin(c, then_graph, &yes);
  if (!status) status = body_begin(c, else_graph, &no);
  if (!status) status = build_branches(c, &yes, &no);
  body_deinit(&yes);
  body_deinit(&no);
  return status;
}

/* ---- loops: what is carried ------------------------------------------------------------------------------------------------------*/

enum { MAX_CARRIED = OX_MAX_OUTPUTS };

/* Types of carried values: at first those they begin with; sizes that a step changes become unknown, and the graph is built again. */
typedef struct carried {
  uint32_t count, first_input, first_output; /* of the nested graph */
  const uint32_t *initial;
  ait_value_info infos[MAX_CARRIED];
} carried;

static ait_status carried_init(ox_call *c, carried *k) {
  if (k->count > MAX_CARRIED) return ox_fail(c, AIT_CODE_LIMIT, "more than %d values are carried", MAX_CARRIED);
  for (uint32_t i = 0; i < k->count; ++i) {
    if (k->initial[i] == AIT_NO_INDEX) return ox_fail(c, AIT_CODE_INVALID_MODEL, "carried value %u has no initial value", (unsigned)i);
    k->infos[i] = ox_like(c, k->initial[i]);
  }
  return AIT_OK;
}

/* Makes the types true of input and output of a step. *changed: another build is needed. */
static ait_status carried_widen(ox_call *c, carried *k, const body *b, bool *changed) {
  *changed = false;
  for (uint32_t i = 0; i < k->count; ++i) {
    const ait_value_info *got = &b->graph->values[b->outputs[k->first_output + i]];
    ait_value_info *have = &k->infos[i];
    if (got->type != have->type || (got->dtype != have->dtype && got->dtype != AIT_DTYPE_NONE))
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "a step changes the type of carried value %u", (unsigned)i);
    if (have->rank < 0 || have->type != AIT_TYPE_TENSOR) continue;
    if (got->rank != have->rank) {
      have->rank = -1;
      *changed = true;
      continue;
    }
    ait_dim *dims;
    AIT_TRY(ox_dims(c, have->rank, &dims));
    for (int32_t d = 0; d < have->rank; ++d) {
      dims[d] = have->shape[d];
      if (got->shape[d] == dims[d] || c->g->root->dims[dims[d]].op == AIT_DIM_UNKNOWN) continue;
      AIT_TRY(ait_dim_unknown(c->g, &dims[d]));
      *changed = true;
    }
    have->shape = dims;
  }
  return AIT_OK;
}

/* Extra inputs of a nested graph: before the carried ones (Loop), or after (Scan's elements). */
typedef struct extra_inputs {
  uint32_t count;
  const ait_value_info *infos;
  bool before;
} extra_inputs;

static ait_status build_step(ox_call *c, const Onnx__GraphProto *proto, const carried *k, const extra_inputs *extra, body *b) {
  uint32_t total = k->count + extra->count;
  if (proto->n_input != total)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "the nested graph takes %zu inputs, %u are given", proto->n_input, (unsigned)total);
  if (proto->n_output < k->first_output + k->count)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "the nested graph gives %zu values, too few", proto->n_output);
  AIT_TRY(body_begin(c, proto, b));
  for (uint32_t i = 0; i < total; ++i) {
    bool is_extra = extra->before ? i < extra->count : i >= k->count;
    uint32_t at = is_extra ? (extra->before ? i : i - k->count) : i - k->first_input;
    AIT_TRY(body_input(b, i, is_extra ? &extra->infos[at] : &k->infos[at]));
  }
  return body_nodes(c, b);
}

static ait_status build_loop_body(ox_call *c, const Onnx__GraphProto *proto, carried *k, const extra_inputs *extra, body *b) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    bool changed;
    AIT_TRY(build_step(c, proto, k, extra, b));
    AIT_TRY(carried_widen(c, k, b, &changed));
    if (!changed) return body_finish(b);
    body_deinit(b);
    *b = (body){0};
  }
  return ox_fail(c, AIT_CODE_UNSUPPORTED, "the types of the carried values do not settle");
}

/* Values stacked over the steps: one more dim in front. */
static ait_status stacked_info(ox_call *c, const ait_value_info *element, ait_dim size, ait_value_info *out) {
  *out = (ait_value_info){.type = AIT_TYPE_TENSOR, .dtype = element->dtype, .rank = -1, .scalar = AIT_NO_INDEX};
  if (element->type != AIT_TYPE_TENSOR) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a step gives something that is no tensor");
  if (element->rank < 0 || element->rank >= AIT_MAX_RANK) return AIT_OK;
  ait_dim *dims;
  AIT_TRY(ox_dims(c, element->rank + 1, &dims));
  dims[0] = size;
  for (int32_t d = 0; d < element->rank; ++d) AIT_TRY(outer_size(c, element->shape[d], &dims[d + 1]));
  out->rank = element->rank + 1;
  out->shape = dims;
  return AIT_OK;
}

static ait_status loop_results(ox_call *c, const carried *k, const body *b, ait_dim size, ait_value_info *infos, uint32_t *out_count) {
  uint32_t count = (uint32_t)b->proto->n_output - k->first_output;
  if (count > OX_MAX_OUTPUTS) return ox_fail(c, AIT_CODE_LIMIT, "more than %d results", OX_MAX_OUTPUTS);
  for (uint32_t i = 0; i < count; ++i) {
    const ait_value_info *v = &b->graph->values[b->outputs[k->first_output + i]];
    if (i < k->count) AIT_TRY(common_info(c, &k->infos[i], &k->infos[i], &infos[i]));
    else AIT_TRY(stacked_info(c, v, size, &infos[i]));
  }
  *out_count = count;
  return AIT_OK;
}

/* ---- Loop ------------------------------------------------------------------------------------------------------------------------*/

static ait_status emit_loop(ox_call *c, const carried *k, const body *b) {
  ait_value_info infos[OX_MAX_OUTPUTS];
  ait_dim size;
  uint32_t count;
  double trips, first;
  /* All trips are made when no condition can end the loop. */
  bool counted = ox_has(c, 0) && ox_known_number(c, c->inputs[0], &trips) && trips >= 0 && trips <= 1e9;
  if (counted && ox_has(c, 1)) counted = ox_known_number(c, c->inputs[1], &first) && first != 0;
  const ox_known *cond = ox_get_known(&b->scope, b->outputs[0]);
  if (counted && cond && cond->has_tensor && ait_element_i64(cond->tensor.data, cond->tensor.dtype))
    AIT_TRY(ait_dim_const(c->g, (int64_t)trips, &size));
  else AIT_TRY(ait_dim_unknown(c->g, &size));
  AIT_TRY(loop_results(c, k, b, size, infos, &count));
  uint32_t trip = ox_has(c, 0) ? c->inputs[0] : AIT_NO_INDEX, condition = ox_has(c, 1) ? c->inputs[1] : AIT_NO_INDEX;
  AIT_TRY(ox_raw_args(c, "onnx.Loop",
                      OX_ARGS(graph_arg(b), V(trip), V(condition), ox_list_values(c, k->initial, k->count),
                              ox_list_values(c, b->frame.outer_values, b->frame.capture_count)),
                      infos, c->outputs, count));
  for (uint32_t i = 0; i < k->count; ++i) { /* what is known of sequences that the steps fill */
    const ox_known *known = ox_get_known(&b->scope, b->outputs[k->first_output + i]);
    if (known && known->element_rank) AIT_TRY(ox_set_known(c->s, c->outputs[i], &(ox_known){.element_rank = known->element_rank}));
  }
  return AIT_OK;
}

ait_status ox_build_loop(ox_call *c) {
  const Onnx__GraphProto *proto;
  AIT_TRY(ox_graph(c, "body", &proto));
  if (c->input_count < 2) return ox_fail(c, AIT_CODE_INVALID_MODEL, "%u inputs, at least 2 are needed", (unsigned)c->input_count);
  ait_value_info infos[2] = {ox_tensor_info(AIT_I64, 0, NULL), ox_tensor_info(AIT_BOOL, 0, NULL)}; /* iteration, condition */
  extra_inputs extra = {2, infos, true};
  carried *k = AIT_ARENA_NEW(&c->in->arena, carried);
  if (!k) return AIT_OOM();
  *k = (carried){.count = c->input_count - 2, .first_input = 2, .first_output = 1, .initial = c->inputs + 2};
  AIT_TRY(carried_init(c, k));
  body b = {0};
  ait_status status = build_loop_body(c, proto, k, &extra, &b);
  if (!status) status = emit_loop(c, k, &b);
  body_deinit(&b);
  return status;
}

/* ---- Scan ------------------------------------------------------------------------------------------------------------------------*/

/* The dim that is walked comes first, in the order of the walk; or the way back. */
static ait_status turn(ox_call *c, uint32_t x, int64_t axis, bool reverse, bool back, uint32_t *out) {
  int64_t perm[AIT_MAX_RANK], first = 0;
  int32_t rank = ox_info(c, x)->rank, a, n = 0;
  *out = x;
  if (rank < 0 && axis == 0 && !reverse) return AIT_OK;
  if (rank < 0) return ox_fail(c, AIT_CODE_UNSUPPORTED, "the rank of what is scanned is not known");
  AIT_TRY(ox_axis(c, axis, rank, &a));
  if (reverse && back) AIT_TRY(OX(c, "flip", out, V(*out), ox_list_ints(c, &first, 1)));
  if (a != 0 && !back) {
    perm[n++] = a;
    for (int32_t d = 0; d < rank; ++d)
      if (d != a) perm[n++] = d;
    AIT_TRY(ox_permute(c, *out, perm, rank, out));
  } else if (a != 0) {
    for (int32_t d = 0; d < rank; ++d) perm[d] = d < a ? d + 1 : d == a ? 0 : d;
    AIT_TRY(ox_permute(c, *out, perm, rank, out));
  }
  return reverse && !back ? OX(c, "flip", out, V(*out), ox_list_ints(c, &first, 1)) : AIT_OK;
}

typedef struct scan_options {
  uint32_t state_count, element_count, output_count;
  const int64_t *axes[2], *reverse[2]; /* inputs, outputs; NULL: zeros */
  size_t axis_counts[2], reverse_counts[2];
} scan_options;

static ait_status read_scan(ox_call *c, const Onnx__GraphProto *proto, scan_options *o) {
  static const char *const names[2][2] = {{"scan_input_axes", "scan_output_axes"}, {"scan_input_directions", "scan_output_directions"}};
  int64_t elements;
  AIT_TRY(ox_int(c, "num_scan_inputs", 0, &elements));
  if (elements < 1 || elements > c->input_count)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "num_scan_inputs is %lld of %u inputs", (long long)elements, (unsigned)c->input_count);
  o->element_count = (uint32_t)elements;
  o->state_count = c->input_count - o->element_count;
  if (proto->n_output < o->state_count) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the body gives %zu values, too few", proto->n_output);
  o->output_count = (uint32_t)proto->n_output - o->state_count;
  for (int i = 0; i < 2; ++i) {
    uint32_t n = i ? o->output_count : o->element_count;
    AIT_TRY(ox_ints(c, names[0][i], &o->axes[i], &o->axis_counts[i]));
    AIT_TRY(ox_ints(c, names[1][i], &o->reverse[i], &o->reverse_counts[i]));
    if ((o->axes[i] && o->axis_counts[i] != n) || (o->reverse[i] && o->reverse_counts[i] != n))
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "axes or directions do not fit %u tensors", (unsigned)n);
  }
  return AIT_OK;
}

static ait_status element_info(ox_call *c, uint32_t x, ait_value_info *out) {
  const ait_value_info *v = ox_info(c, x);
  if (v->rank == 0) return ox_fail(c, AIT_CODE_INVALID_MODEL, "what is scanned has no dims");
  *out = ox_tensor_info(v->dtype, v->rank < 0 ? -1 : v->rank - 1, v->rank < 0 ? NULL : v->shape + 1);
  return AIT_OK;
}

static ait_status finish_scan(ox_call *c, const scan_options *o, const carried *k, const body *b, const uint32_t *elements) {
  ait_value_info infos[OX_MAX_OUTPUTS];
  ait_dim size;
  uint32_t count;
  const ait_value_info *first = ox_info(c, elements[0]);
  if (first->rank > 0) size = first->shape[0];
  else AIT_TRY(ait_dim_unknown(c->g, &size));
  AIT_TRY(loop_results(c, k, b, size, infos, &count));
  AIT_TRY(ox_raw_args(c, "higher_order.scan",
                      OX_ARGS(graph_arg(b), ox_list_values(c, k->initial, k->count), ox_list_values(c, elements, o->element_count), I(0),
                              B(false), ox_list_values(c, b->frame.outer_values, b->frame.capture_count)),
                      infos, c->outputs, count));
  for (uint32_t i = 0; i < o->output_count; ++i) {
    uint32_t *y = &c->outputs[o->state_count + i];
    AIT_TRY(turn(c, *y, o->axes[1] ? o->axes[1][i] : 0, o->reverse[1] && o->reverse[1][i], true, y));
  }
  return AIT_OK;
}

ait_status ox_build_scan(ox_call *c) {
  const Onnx__GraphProto *proto;
  scan_options o = {0};
  uint32_t elements[OX_MAX_OUTPUTS];
  ait_value_info infos[OX_MAX_OUTPUTS];
  AIT_TRY(ox_graph(c, "body", &proto));
  AIT_TRY(read_scan(c, proto, &o));
  if (o.element_count > OX_MAX_OUTPUTS) return ox_fail(c, AIT_CODE_LIMIT, "more than %d tensors are scanned", OX_MAX_OUTPUTS);
  for (uint32_t i = 0; i < o.element_count; ++i) {
    AIT_TRY(ox_need(c, o.state_count + i, &elements[i]));
    AIT_TRY(turn(c, elements[i], o.axes[0] ? o.axes[0][i] : 0, o.reverse[0] && o.reverse[0][i], false, &elements[i]));
    AIT_TRY(element_info(c, elements[i], &infos[i]));
  }
  extra_inputs extra = {o.element_count, infos, false};
  carried *k = AIT_ARENA_NEW(&c->in->arena, carried);
  if (!k) return AIT_OOM();
  *k = (carried){.count = o.state_count, .initial = c->inputs};
  AIT_TRY(carried_init(c, k));
  body b = {0};
  ait_status status = build_loop_body(c, proto, k, &extra, &b);
  if (!status) status = finish_scan(c, &o, k, &b, elements);
  body_deinit(&b);
  return status;
}
