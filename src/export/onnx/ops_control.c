/* Nested graphs: If, Loop, Scan. Operands that bodies do not change are read from the outer graph, as ONNX allows. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

enum { MAX_PORTS = 256 };

typedef struct ports {
  ox_t items[MAX_PORTS];
  uint32_t count;
} ports;

static void add(ox *x, ports *p, ox_t t) {
  if (p->count == MAX_PORTS) ox_fail(x, "it has more than %d operands", MAX_PORTS);
  else p->items[p->count++] = t;
}

static void add_arg(ox *x, ports *p, uint32_t k) {
  const ait_arg *list;
  uint32_t count = ox_arg_list(x, k, &list);
  for (uint32_t i = 0; i < count && !ox_failed(x); ++i) add(x, p, ox_operand(x, &list[i], AIT_DTYPE_NONE));
}

static const ait_region *nested(ox *x, uint32_t k) {
  static const ait_region nothing;
  const ait_arg *a = ox_arg(x, k);
  if (a->kind == AIT_ARG_GRAPH) return a->as.graph;
  ox_fail(x, "argument %u is no graph", (unsigned)k);
  return &nothing;
}

static const ait_region_value *input_value(ox *x, const ait_region *r, uint32_t k) {
  static const ait_region_value nothing = {.rank = -1};
  if (k < r->input_count && r->inputs[k].value < r->value_count) return &r->values[r->inputs[k].value];
  ox_fail(x, "a graph in it takes other operands than it gets");
  return &nothing;
}

/* An input of a body: a new tensor with the metadata of the nested region's input. */
static ox_t body_input(ox *x, const ait_region *r, uint32_t k) {
  const ait_region_value *v = input_value(x, r, k);
  ox_t t = ox_tensor(x, ox_value_dtype(v));
  t.rank = v->type == AIT_TYPE_TENSOR ? v->rank : 0;
  t.shape = t.rank > 0 ? v->shape : NULL;
  return t;
}

/* The node's operands, in the dtypes in which the body wants them. */
static void cast_for_body(ox *x, const ait_region *r, ports *p) {
  for (uint32_t k = 0; k < p->count && !ox_failed(x); ++k) p->items[k] = ox_cast(x, p->items[k], ox_value_dtype(input_value(x, r, k)));
}

static ox_t flag(ox *x, ox_t t) { return ox_reshape_to(x, ox_cast(x, t, AIT_BOOL), NULL, 0); }

/* A node with as many results as the region's node, which become its results from `first` on. */
static void node_of(ox *x, const char *op, const ports *in, uint32_t result_count, ports *out) {
  out->count = 0;
  for (uint32_t k = 0; k < result_count; ++k) add(x, out, ox_tensor(x, ox_wants(x, k) ? ox_result_dtype(x, k) : AIT_F32));
  ox_node_new(x, op, in->items, in->count, out->items, out->count);
}

/* ---- branches --------------------------------------------------------------------------------------------------------------------*/
static const ox_frame *branch(ox *x, uint32_t k, const ports *operands) {
  ports out = {.count = 0};
  const ait_region *r = nested(x, k);
  ox_frame *f = ox_body_enter(x, ox_arg(x, k));
  for (uint32_t i = 0; i < operands->count; ++i) ox_body_bind(x, i, operands->items[i]);
  ox_body_nodes(x);
  for (uint32_t i = 0; i < r->output_count && !ox_failed(x); ++i) add(x, &out, ox_body_output(x, i));
  ox_body_leave(x, NULL, 0, out.items, out.count);
  return f;
}

/* pred, true_graph, false_graph, [operands] */
void ox_row_cond(ox *x) {
  ports operands = {.count = 0}, out;
  add_arg(x, &operands, 3);
  if (ox_failed(x)) return;
  ox_t pred = flag(x, ox_operand(x, ox_arg(x, 0), AIT_DTYPE_NONE));
  const ox_frame *yes = branch(x, 1, &operands), *no = branch(x, 2, &operands);
  if (ox_failed(x)) return;
  node_of(x, "If", &(ports){.items = {pred}, .count = 1}, x->node->result_count, &out);
  ox_graph(x, "then_branch", yes);
  ox_graph(x, "else_branch", no);
  for (uint32_t k = 0; k < out.count; ++k) ox_set(x, k, out.items[k]);
}

/* graph, operands.. (in a list or one by one; a name may stand between) */
void ox_row_call(ox *x) {
  ports operands = {.count = 0};
  for (uint32_t k = 1; k < x->node->arg_count && !ox_failed(x); ++k) {
    const ait_arg *a = ox_arg(x, k);
    if (a->kind == AIT_ARG_LIST) add_arg(x, &operands, k);
    else if (a->kind != AIT_ARG_STRING) add(x, &operands, ox_operand(x, a, AIT_DTYPE_NONE));
  }
  ports out = {.count = 0};
  ox_inline_enter(x, ox_arg(x, 0));
  for (uint32_t i = 0; i < operands.count; ++i) ox_body_bind(x, i, operands.items[i]);
  ox_body_nodes(x);
  for (uint32_t k = 0; k < x->node->result_count && !ox_failed(x); ++k) add(x, &out, ox_inline_output(x, k));
  ox_inline_leave(x);
  for (uint32_t k = 0; k < out.count; ++k) ox_set(x, k, out.items[k]);
}

/* ---- loops -----------------------------------------------------------------------------------------------------------------------*/
static ox_t condition(ox *x, const ports *state) {
  ox_inline_enter(x, ox_arg(x, 0));
  for (uint32_t i = 0; i < state->count; ++i) ox_body_bind(x, i, state->items[i]);
  ox_body_nodes(x);
  ox_t more = flag(x, ox_inline_output(x, 0));
  ox_inline_leave(x);
  return OX(x, "Identity", AIT_BOOL, more);
}

/* cond_graph, body_graph, [carried], [additional] */
void ox_row_while_loop(ox *x) {
  const ait_region *body = nested(x, 1);
  ports state = {.count = 0}, in = {.count = 0}, next, out, inputs = {.count = 0}, outputs = {.count = 0};
  add_arg(x, &state, 2);
  uint32_t carried = state.count;
  add_arg(x, &state, 3);
  if (carried != body->output_count) ox_fail(x, "the body does not give what the loop carries");
  cast_for_body(x, body, &state);
  if (ox_failed(x)) return;
  add(x, &in, ox_none());
  add(x, &in, condition(x, &state));
  for (uint32_t i = 0; i < carried; ++i) add(x, &in, state.items[i]);
  ox_frame *f = ox_body_enter(x, ox_arg(x, 1));
  add(x, &inputs, ox_tensor(x, AIT_I64));
  add(x, &inputs, ox_tensor(x, AIT_BOOL));
  inputs.items[0].rank = inputs.items[1].rank = 0;
  for (uint32_t i = 0; i < state.count && !ox_failed(x); ++i) {
    if (i < carried) add(x, &inputs, body_input(x, body, i));
    ox_body_bind(x, i, i < carried ? inputs.items[inputs.count - 1] : state.items[i]);
  }
  ox_body_nodes(x);
  next = state;
  for (uint32_t i = 0; i < carried && !ox_failed(x); ++i) next.items[i] = ox_cast(x, ox_body_output(x, i), state.items[i].dtype);
  if (ox_failed(x)) return;
  add(x, &outputs, condition(x, &next));
  outputs.items[0].rank = 0;
  for (uint32_t i = 0; i < carried; ++i) add(x, &outputs, next.items[i]);
  ox_body_leave(x, inputs.items, inputs.count, outputs.items, outputs.count);
  if (ox_failed(x)) return;
  node_of(x, "Loop", &in, carried, &out);
  ox_graph(x, "body", f);
  for (uint32_t k = 0; k < carried; ++k) ox_set(x, k, out.items[k]);
}

typedef struct scan {
  ports state, xs, additional, out;
  int64_t dim;
  bool reverse;
} scan;

/* Scan: graph(state.., slices.., additional..) gives state.. and what is stacked. */
static void run_scan(ox *x, scan *s, uint32_t graph_at) {
  const ait_region *r = nested(x, graph_at);
  ports in = {.count = 0}, inputs = {.count = 0}, outputs = {.count = 0}, all = {.count = 0};
  uint32_t carried = s->state.count;
  for (uint32_t i = 0; i < carried; ++i) add(x, &all, s->state.items[i]);
  cast_for_body(x, r, &all);
  in = all;
  for (uint32_t i = 0; i < s->xs.count; ++i) add(x, &in, s->xs.items[i]);
  if (r->output_count < carried) ox_fail(x, "the graph does not give what the scan carries");
  ox_frame *f = ox_failed(x) ? NULL : ox_body_enter(x, ox_arg(x, graph_at));
  if (!f) return;
  for (uint32_t i = 0; i < in.count && !ox_failed(x); ++i) {
    ox_t t = body_input(x, r, i);
    if (i >= carried) t.dtype = in.items[i].dtype;
    add(x, &inputs, t);
    ox_body_bind(x, i, t);
  }
  for (uint32_t i = 0; i < s->additional.count; ++i) ox_body_bind(x, in.count + i, s->additional.items[i]);
  ox_body_nodes(x);
  for (uint32_t i = 0; i < r->output_count && !ox_failed(x); ++i) {
    ox_t t = ox_body_output(x, i);
    add(x, &outputs, i < carried ? ox_cast(x, t, all.items[i].dtype) : t);
  }
  ox_body_leave(x, inputs.items, inputs.count, outputs.items, outputs.count);
  if (ox_failed(x)) return;
  s->out.count = 0;
  for (uint32_t i = 0; i < outputs.count; ++i) add(x, &s->out, ox_tensor(x, outputs.items[i].dtype));
  ox_node_new(x, "Scan", in.items, in.count, s->out.items, s->out.count);
  ox_graph(x, "body", f);
  ox_int(x, "num_scan_inputs", s->xs.count);
  int64_t axes[MAX_PORTS], back[MAX_PORTS];
  for (uint32_t i = 0; i < MAX_PORTS; ++i) axes[i] = s->dim, back[i] = 1;
  if (s->dim) ox_ints(x, "scan_input_axes", axes, s->xs.count);
  if (s->reverse) ox_ints(x, "scan_input_directions", back, s->xs.count);
  if (s->reverse) ox_ints(x, "scan_output_directions", back, outputs.count - carried);
}

/* What follows [init] and [xs]: torch 2.6 puts dim and reverse before the additional operands. */
static void scan_options(ox *x, scan *s, uint32_t first) {
  for (uint32_t k = first; k < x->node->arg_count; ++k) {
    const ait_arg *a = ox_arg(x, k);
    if (a->kind == AIT_ARG_INT) s->dim = a->as.i;
    else if (a->kind == AIT_ARG_BOOL) s->reverse = a->as.b;
    else if (a->kind == AIT_ARG_LIST) add_arg(x, &s->additional, k);
  }
}

/* graph, [init], [xs], dim?, reverse?, [additional] */
void ox_row_scan(ox *x) {
  scan s = {.dim = 0};
  add_arg(x, &s.state, 1);
  add_arg(x, &s.xs, 2);
  scan_options(x, &s, 3);
  run_scan(x, &s, 0);
  for (uint32_t k = 0; k < s.out.count && !ox_failed(x); ++k) ox_set(x, k, s.out.items[k]);
}

/* graph, [xs], [additional] */
void ox_row_map(ox *x) {
  scan s = {.dim = 0};
  add_arg(x, &s.xs, 1);
  scan_options(x, &s, 2);
  run_scan(x, &s, 0);
  for (uint32_t k = 0; k < s.out.count && !ox_failed(x); ++k) ox_set(x, k, s.out.items[k]);
}

/* graph, [xs], [additional]: y[0] = x[0], y[i] = graph(y[i-1], x[i]), by a Loop over i that carries y. */
static ox_t taken(ox *x, ox_t t, ox_t at) {
  ox_t r = OX(x, "Gather", t.dtype, t, at);
  ox_int(x, "axis", 0);
  return r;
}

void ox_row_associative_scan(ox *x) {
  const ait_region *r = nested(x, 0);
  ports xs = {.count = 0}, additional = {.count = 0}, in = {.count = 0}, inputs = {.count = 0}, outputs = {.count = 0}, out = {.count = 0};
  add_arg(x, &xs, 1);
  add_arg(x, &additional, 2);
  uint32_t n = xs.count;
  if (n == 0 || r->output_count != n) ox_fail(x, "the graph does not give what it takes");
  if (ox_failed(x)) return;
  ox_t length = ox_shape_of(x, xs.items[0]);
  ox_t rest = ox_same2(x, "Sub", ox_reshape_to(x, ox_slice_const(x, length, 0, 0, 1), NULL, 0), ox_i64(x, 1));
  add(x, &in, rest);
  add(x, &in, ox_const(x, AIT_BOOL, 0, (const int64_t[1]){0}, &(uint8_t){1}));
  for (uint32_t i = 0; i < n; ++i) add(x, &in, taken(x, xs.items[i], ox_i64(x, 0)));
  ox_frame *f = ox_body_enter(x, ox_arg(x, 0));
  add(x, &inputs, ox_tensor(x, AIT_I64));
  add(x, &inputs, ox_tensor(x, AIT_BOOL));
  inputs.items[0].rank = inputs.items[1].rank = 0;
  for (uint32_t i = 0; i < n && !ox_failed(x); ++i) {
    add(x, &inputs, body_input(x, r, i));
    ox_body_bind(x, i, inputs.items[2 + i]);
  }
  if (ox_failed(x)) return;
  ox_t at = ox_same2(x, "Add", inputs.items[0], ox_i64(x, 1));
  for (uint32_t i = 0; i < n; ++i) ox_body_bind(x, n + i, taken(x, xs.items[i], at));
  for (uint32_t i = 0; i < additional.count; ++i) ox_body_bind(x, 2 * n + i, additional.items[i]);
  ox_body_nodes(x);
  ox_t more = OX(x, "Identity", AIT_BOOL, inputs.items[1]);
  more.rank = 0;
  add(x, &outputs, more);
  for (uint32_t pass = 0; pass < 2; ++pass)
    for (uint32_t i = 0; i < n && !ox_failed(x); ++i) add(x, &outputs, ox_body_output(x, i)); /* carried, and stacked */
  ox_body_leave(x, inputs.items, inputs.count, outputs.items, outputs.count);
  if (ox_failed(x)) return;
  for (uint32_t i = 0; i < 2 * n; ++i) add(x, &out, ox_tensor(x, xs.items[i % n].dtype));
  ox_node_new(x, "Loop", in.items, in.count, out.items, out.count);
  ox_graph(x, "body", f);
  for (uint32_t i = 0; i < n; ++i) {
    ox_t parts[2] = {ox_unsqueeze(x, in.items[2 + i], 0), out.items[n + i]};
    ox_set(x, i, ox_concat(x, parts, 2, 0));
  }
}
