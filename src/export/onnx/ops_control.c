/* Nested graphs: If, Loop, Scan. Operands that bodies do not change are read from the outer graph, as ONNX allows. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

enum { MAX_PORTS = 256 };

typedef struct ports {
  oe_t items[MAX_PORTS];
  uint32_t count;
} ports;

static void add(ox *x, ports *p, oe_t t) {
  if (p->count == MAX_PORTS) oe_fail(x, "it has more than %d operands", MAX_PORTS);
  else p->items[p->count++] = t;
}

static void add_arg(ox *x, ports *p, uint32_t k) {
  const ait_arg *list;
  uint32_t count = oe_arg_list(x, k, &list);
  for (uint32_t i = 0; i < count && !oe_failed(x); ++i) add(x, p, oe_operand(x, &list[i], AIT_DTYPE_NONE));
}

static const ait_region *nested(ox *x, uint32_t k) {
  static const ait_region nothing;
  const ait_arg *a = oe_arg(x, k);
  if (a->kind == AIT_ARG_GRAPH) return a->as.graph;
  oe_fail(x, "argument %u is no graph", (unsigned)k);
  return &nothing;
}

static const ait_region_value *input_value(ox *x, const ait_region *r, uint32_t k) {
  static const ait_region_value nothing = {.rank = -1};
  if (k < r->input_count && r->inputs[k].value < r->value_count) return &r->values[r->inputs[k].value];
  oe_fail(x, "a graph in it takes other operands than it gets");
  return &nothing;
}

/* An input of a body: a new tensor with the metadata of the nested region's input. */
static oe_t body_input(ox *x, const ait_region *r, uint32_t k) {
  const ait_region_value *v = input_value(x, r, k);
  oe_t t = oe_tensor(x, oe_value_dtype(v));
  t.rank = v->type == AIT_TYPE_TENSOR ? v->rank : 0;
  t.shape = t.rank > 0 ? v->shape : NULL;
  return t;
}

/* The node's operands, in the dtypes in which the body wants them. */
static void cast_for_body(ox *x, const ait_region *r, ports *p) {
  for (uint32_t k = 0; k < p->count && !oe_failed(x); ++k) p->items[k] = oe_cast(x, p->items[k], oe_value_dtype(input_value(x, r, k)));
}

static oe_t flag(ox *x, oe_t t) { return oe_reshape_to(x, oe_cast(x, t, AIT_BOOL), NULL, 0); }

/* A node with as many results as the region's node, which become its results from `first` on. */
static void node_of(ox *x, const char *op, const ports *in, uint32_t result_count, ports *out) {
  out->count = 0;
  for (uint32_t k = 0; k < result_count; ++k) add(x, out, oe_tensor(x, oe_wants(x, k) ? oe_result_dtype(x, k) : AIT_F32));
  oe_node_new(x, op, in->items, in->count, out->items, out->count);
}

/* ---- branches --------------------------------------------------------------------------------------------------------------------*/
static const oe_frame *branch(ox *x, uint32_t k, const ports *operands) {
  ports out = {.count = 0};
  const ait_region *r = nested(x, k);
  oe_frame *f = oe_body_enter(x, oe_arg(x, k));
  for (uint32_t i = 0; i < operands->count; ++i) oe_body_bind(x, i, operands->items[i]);
  oe_body_nodes(x);
  for (uint32_t i = 0; i < r->output_count && !oe_failed(x); ++i) add(x, &out, oe_body_output(x, i));
  oe_body_leave(x, NULL, 0, out.items, out.count);
  return f;
}

/* pred, true_graph, false_graph, [operands] */
void oe_row_cond(ox *x) {
  ports operands = {.count = 0}, out;
  add_arg(x, &operands, 3);
  if (oe_failed(x)) return;
  oe_t pred = flag(x, oe_operand(x, oe_arg(x, 0), AIT_DTYPE_NONE));
  const oe_frame *yes = branch(x, 1, &operands), *no = branch(x, 2, &operands);
  if (oe_failed(x)) return;
  node_of(x, "If", &(ports){.items = {pred}, .count = 1}, x->node->result_count, &out);
  oe_graph(x, "then_branch", yes);
  oe_graph(x, "else_branch", no);
  for (uint32_t k = 0; k < out.count; ++k) oe_set(x, k, out.items[k]);
}

/* graph, operands.. (in a list or one by one; a name may stand between) */
void oe_row_call(ox *x) {
  ports operands = {.count = 0};
  for (uint32_t k = 1; k < x->node->arg_count && !oe_failed(x); ++k) {
    const ait_arg *a = oe_arg(x, k);
    if (a->kind == AIT_ARG_LIST) add_arg(x, &operands, k);
    else if (a->kind != AIT_ARG_STRING) add(x, &operands, oe_operand(x, a, AIT_DTYPE_NONE));
  }
  ports out = {.count = 0};
  oe_inline_enter(x, oe_arg(x, 0));
  for (uint32_t i = 0; i < operands.count; ++i) oe_body_bind(x, i, operands.items[i]);
  oe_body_nodes(x);
  for (uint32_t k = 0; k < x->node->result_count && !oe_failed(x); ++k) add(x, &out, oe_inline_output(x, k));
  oe_inline_leave(x);
  for (uint32_t k = 0; k < out.count; ++k) oe_set(x, k, out.items[k]);
}

/* ---- loops -----------------------------------------------------------------------------------------------------------------------*/
static oe_t condition(ox *x, const ports *state) {
  oe_inline_enter(x, oe_arg(x, 0));
  for (uint32_t i = 0; i < state->count; ++i) oe_body_bind(x, i, state->items[i]);
  oe_body_nodes(x);
  oe_t more = flag(x, oe_inline_output(x, 0));
  oe_inline_leave(x);
  return OE(x, "Identity", AIT_BOOL, more);
}

/* cond_graph, body_graph, [carried], [additional] */
void oe_row_while_loop(ox *x) {
  const ait_region *body = nested(x, 1);
  ports state = {.count = 0}, in = {.count = 0}, next, out, inputs = {.count = 0}, outputs = {.count = 0};
  add_arg(x, &state, 2);
  uint32_t carried = state.count;
  add_arg(x, &state, 3);
  if (carried != body->output_count) oe_fail(x, "the body does not give what the loop carries");
  cast_for_body(x, body, &state);
  if (oe_failed(x)) return;
  add(x, &in, oe_none());
  add(x, &in, condition(x, &state));
  for (uint32_t i = 0; i < carried; ++i) add(x, &in, state.items[i]);
  oe_frame *f = oe_body_enter(x, oe_arg(x, 1));
  add(x, &inputs, oe_tensor(x, AIT_I64));
  add(x, &inputs, oe_tensor(x, AIT_BOOL));
  inputs.items[0].rank = inputs.items[1].rank = 0;
  for (uint32_t i = 0; i < state.count && !oe_failed(x); ++i) {
    if (i < carried) add(x, &inputs, body_input(x, body, i));
    oe_body_bind(x, i, i < carried ? inputs.items[inputs.count - 1] : state.items[i]);
  }
  oe_body_nodes(x);
  next = state;
  for (uint32_t i = 0; i < carried && !oe_failed(x); ++i) next.items[i] = oe_cast(x, oe_body_output(x, i), state.items[i].dtype);
  if (oe_failed(x)) return;
  add(x, &outputs, condition(x, &next));
  outputs.items[0].rank = 0;
  for (uint32_t i = 0; i < carried; ++i) add(x, &outputs, next.items[i]);
  oe_body_leave(x, inputs.items, inputs.count, outputs.items, outputs.count);
  if (oe_failed(x)) return;
  node_of(x, "Loop", &in, carried, &out);
  oe_graph(x, "body", f);
  for (uint32_t k = 0; k < carried; ++k) oe_set(x, k, out.items[k]);
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
  if (r->output_count < carried) oe_fail(x, "the graph does not give what the scan carries");
  oe_frame *f = oe_failed(x) ? NULL : oe_body_enter(x, oe_arg(x, graph_at));
  if (!f) return;
  for (uint32_t i = 0; i < in.count && !oe_failed(x); ++i) {
    oe_t t = body_input(x, r, i);
    if (i >= carried) t.dtype = in.items[i].dtype;
    add(x, &inputs, t);
    oe_body_bind(x, i, t);
  }
  for (uint32_t i = 0; i < s->additional.count; ++i) oe_body_bind(x, in.count + i, s->additional.items[i]);
  oe_body_nodes(x);
  for (uint32_t i = 0; i < r->output_count && !oe_failed(x); ++i) {
    oe_t t = oe_body_output(x, i);
    add(x, &outputs, i < carried ? oe_cast(x, t, all.items[i].dtype) : t);
  }
  oe_body_leave(x, inputs.items, inputs.count, outputs.items, outputs.count);
  if (oe_failed(x)) return;
  s->out.count = 0;
  for (uint32_t i = 0; i < outputs.count; ++i) add(x, &s->out, oe_tensor(x, outputs.items[i].dtype));
  oe_node_new(x, "Scan", in.items, in.count, s->out.items, s->out.count);
  oe_graph(x, "body", f);
  oe_int(x, "num_scan_inputs", s->xs.count);
  int64_t axes[MAX_PORTS], back[MAX_PORTS];
  for (uint32_t i = 0; i < MAX_PORTS; ++i) axes[i] = s->dim, back[i] = 1;
  if (s->dim) oe_ints(x, "scan_input_axes", axes, s->xs.count);
  if (s->reverse) oe_ints(x, "scan_input_directions", back, s->xs.count);
  if (s->reverse) oe_ints(x, "scan_output_directions", back, outputs.count - carried);
}

/* What follows [init] and [xs]: torch 2.6 puts dim and reverse before the additional operands. */
static void scan_options(ox *x, scan *s, uint32_t first) {
  for (uint32_t k = first; k < x->node->arg_count; ++k) {
    const ait_arg *a = oe_arg(x, k);
    if (a->kind == AIT_ARG_INT) s->dim = a->as.i;
    else if (a->kind == AIT_ARG_BOOL) s->reverse = a->as.b;
    else if (a->kind == AIT_ARG_LIST) add_arg(x, &s->additional, k);
  }
}

/* graph, [init], [xs], dim?, reverse?, [additional] */
void oe_row_scan(ox *x) {
  scan s = {.dim = 0};
  add_arg(x, &s.state, 1);
  add_arg(x, &s.xs, 2);
  scan_options(x, &s, 3);
  run_scan(x, &s, 0);
  for (uint32_t k = 0; k < s.out.count && !oe_failed(x); ++k) oe_set(x, k, s.out.items[k]);
}

/* graph, [xs], [additional] */
void oe_row_map(ox *x) {
  scan s = {.dim = 0};
  add_arg(x, &s.xs, 1);
  scan_options(x, &s, 2);
  run_scan(x, &s, 0);
  for (uint32_t k = 0; k < s.out.count && !oe_failed(x); ++k) oe_set(x, k, s.out.items[k]);
}

/* graph, [xs], [additional]: y[0] = x[0], y[i] = graph(y[i-1], x[i]), by a Loop over i that carries y. */
static oe_t taken(ox *x, oe_t t, oe_t at) {
  oe_t r = OE(x, "Gather", t.dtype, t, at);
  oe_int(x, "axis", 0);
  return r;
}

void oe_row_associative_scan(ox *x) {
  const ait_region *r = nested(x, 0);
  ports xs = {.count = 0}, additional = {.count = 0}, in = {.count = 0}, inputs = {.count = 0}, outputs = {.count = 0}, out = {.count = 0};
  add_arg(x, &xs, 1);
  add_arg(x, &additional, 2);
  uint32_t n = xs.count;
  if (n == 0 || r->output_count != n) oe_fail(x, "the graph does not give what it takes");
  if (oe_failed(x)) return;
  oe_t length = oe_shape_of(x, xs.items[0]);
  oe_t rest = oe_same2(x, "Sub", oe_reshape_to(x, oe_slice_const(x, length, 0, 0, 1), NULL, 0), oe_i64(x, 1));
  add(x, &in, rest);
  add(x, &in, oe_const(x, AIT_BOOL, 0, (const int64_t[1]){0}, &(uint8_t){1}));
  for (uint32_t i = 0; i < n; ++i) add(x, &in, taken(x, xs.items[i], oe_i64(x, 0)));
  oe_frame *f = oe_body_enter(x, oe_arg(x, 0));
  add(x, &inputs, oe_tensor(x, AIT_I64));
  add(x, &inputs, oe_tensor(x, AIT_BOOL));
  inputs.items[0].rank = inputs.items[1].rank = 0;
  for (uint32_t i = 0; i < n && !oe_failed(x); ++i) {
    add(x, &inputs, body_input(x, r, i));
    oe_body_bind(x, i, inputs.items[2 + i]);
  }
  if (oe_failed(x)) return;
  oe_t at = oe_same2(x, "Add", inputs.items[0], oe_i64(x, 1));
  for (uint32_t i = 0; i < n; ++i) oe_body_bind(x, n + i, taken(x, xs.items[i], at));
  for (uint32_t i = 0; i < additional.count; ++i) oe_body_bind(x, 2 * n + i, additional.items[i]);
  oe_body_nodes(x);
  oe_t more = OE(x, "Identity", AIT_BOOL, inputs.items[1]);
  more.rank = 0;
  add(x, &outputs, more);
  for (uint32_t pass = 0; pass < 2; ++pass)
    for (uint32_t i = 0; i < n && !oe_failed(x); ++i) add(x, &outputs, oe_body_output(x, i)); /* carried, and stacked */
  oe_body_leave(x, inputs.items, inputs.count, outputs.items, outputs.count);
  if (oe_failed(x)) return;
  for (uint32_t i = 0; i < 2 * n; ++i) add(x, &out, oe_tensor(x, xs.items[i % n].dtype));
  oe_node_new(x, "Loop", in.items, in.count, out.items, out.count);
  oe_graph(x, "body", f);
  for (uint32_t i = 0; i < n; ++i) {
    oe_t parts[2] = {oe_unsqueeze(x, in.items[2 + i], 0), out.items[n + i]};
    oe_set(x, i, oe_concat(x, parts, 2, 0));
  }
}
