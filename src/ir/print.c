/* Graphs as text, without loss. The grammar is in README.md; parse.c reads it. */
#include "ir/scan.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const input_kinds[] = {"user", "parameter", "buffer", "constant", "token"};
static const char *const output_kinds[] = {"user", "state", "input", "token"};
static const char *const guard_signs[] = {"==", "!=", "<=", "<"};

static void print_body(const ait_graph *g, int indent, ait_text *out);

static void put(ait_text *out, const char *text) { ait_text_append(out, text, strlen(text)); }

static void put_indent(ait_text *out, int indent) {
  for (int i = 0; i < indent; ++i) put(out, "  ");
}

static void put_quoted(ait_text *out, const char *text) { scan_print_string(out, text, strlen(text)); }

static void print_value_name(const ait_graph *g, uint32_t value, ait_text *out) {
  if (value == AIT_NO_INDEX) {
    put(out, "_");
    return;
  }
  put(out, "%");
  scan_print_name(out, value < g->value_count ? g->values[value].name : "");
}

static void print_tensor_type(const ait_graph *g, const ait_value_info *v, ait_text *out) {
  put(out, v->dtype == AIT_DTYPE_NONE ? "tensor" : ait_dtype_name(v->dtype));
  if (v->rank < 0) {
    put(out, "[...]");
    return;
  }
  put(out, "[");
  for (int32_t d = 0; d < v->rank; ++d) {
    if (d) put(out, ", ");
    ait_dim_text(g, v->shape[d], out);
  }
  put(out, "]");
}

static void print_list_type(const ait_graph *g, const ait_value_info *v, ait_text *out) {
  put(out, "list");
  if (v->list_count && !v->elements) ait_text_printf(out, "*%u", (unsigned)v->list_count);
  if (!v->elements) return;
  for (uint32_t i = 0; i < v->list_count; ++i) {
    put(out, i ? ", " : "(");
    print_tensor_type(g, &v->elements[i], out);
  }
  put(out, ")");
}

static void print_type(const ait_graph *g, const ait_value_info *v, ait_text *out) {
  switch (v->type) {
    case AIT_TYPE_NONE: put(out, "none"); break;
    case AIT_TYPE_TENSOR: print_tensor_type(g, v, out); break;
    case AIT_TYPE_TENSOR_LIST: print_list_type(g, v, out); break;
    case AIT_TYPE_INT:
      put(out, "int");
      if (v->scalar == AIT_NO_INDEX) break;
      put(out, "(");
      ait_dim_text(g, v->scalar, out);
      put(out, ")");
      break;
    case AIT_TYPE_FLOAT: put(out, "float"); break;
    case AIT_TYPE_BOOL: put(out, "bool"); break;
    case AIT_TYPE_STRING: put(out, "string"); break;
  }
}

static void print_definition(const ait_graph *g, uint32_t value, ait_text *out) {
  print_value_name(g, value, out);
  if (value >= g->value_count) return;
  put(out, ": ");
  print_type(g, &g->values[value], out);
}

/* Shortest decimal that reads back, always with a sign that it is no integer. */
static void print_double(double v, ait_text *out) {
  char text[48];
  for (int precision = 1; precision <= 17; ++precision) {
    ait_format_double(text, precision, v);
    double back = ait_parse_double(text, NULL);
    if (memcmp(&back, &v, sizeof v) == 0) break;
  }
  put(out, text);
  if (!strpbrk(text, ".eni")) put(out, ".0");
}

static void print_dtype(int64_t number, ait_text *out) {
  const char *name = ait_dtype_name((ait_dtype)number);
  if ((int64_t)ait_dtype_from_name(name) == number && number != AIT_DTYPE_NONE) put(out, name);
  else ait_text_printf(out, "dtype(%lld)", (long long)number);
}

static void print_nested(const ait_graph *nested, int indent, ait_text *out) {
  put(out, "graph ");
  if (*nested->name) {
    put_quoted(out, nested->name);
    put(out, " ");
  }
  put(out, "{\n");
  print_body(nested, indent + 1, out);
  put_indent(out, indent);
  put(out, "}");
}

/* Lists and graphs nest only as deep as the graph's own functions allow. */
static void print_arg(const ait_graph *g, const ait_arg *arg, int indent, ait_text *out) {
  switch (arg->kind) {
    case AIT_ARG_NONE: put(out, "none"); break;
    case AIT_ARG_VALUE: print_value_name(g, arg->as.value, out); break;
    case AIT_ARG_INT: ait_text_printf(out, "%lld", (long long)arg->as.i); break;
    case AIT_ARG_FLOAT: print_double(arg->as.f, out); break;
    case AIT_ARG_BOOL: put(out, arg->as.b ? "true" : "false"); break;
    case AIT_ARG_STRING: scan_print_string(out, arg->as.string, arg->count); break;
    case AIT_ARG_COMPLEX:
      put(out, "complex(");
      print_double(arg->as.complex[0], out);
      put(out, ", ");
      print_double(arg->as.complex[1], out);
      put(out, ")");
      break;
    case AIT_ARG_DTYPE: print_dtype(arg->as.i, out); break;
    case AIT_ARG_DIM:
      put(out, "{");
      ait_dim_text(g, arg->as.dim, out);
      put(out, "}");
      break;
    case AIT_ARG_LIST:
      put(out, "[");
      for (uint32_t i = 0; i < arg->count; ++i) {
        if (i) put(out, ", ");
        print_arg(g, &arg->as.list[i], indent, out);
      }
      put(out, "]");
      break;
    case AIT_ARG_GRAPH: print_nested(arg->as.graph, indent, out); break;
  }
}

/* Required leading parameters by position; from the first with a default on by name, defaults left out. */
static void print_args(const ait_graph *g, const ait_node *n, int indent, ait_text *out) {
  bool named = false;
  const char *separator = "";
  put(out, "(");
  for (uint32_t i = 0; i < n->arg_count; ++i) {
    const ait_param *p = i < n->op->param_count ? &n->op->params[i] : NULL;
    named |= p && p->has_default;
    if (p && p->has_default && ait_arg_equal(&p->default_value, &n->args[i])) continue;
    put(out, separator);
    separator = ", ";
    if (named && p) ait_text_printf(out, "%s=", p->name);
    print_arg(g, &n->args[i], indent, out);
  }
  put(out, ")");
}

static void print_node(const ait_graph *g, const ait_node *n, int indent, ait_text *out) {
  put_indent(out, indent);
  for (uint32_t i = 0; i < n->result_count; ++i) {
    if (i) put(out, ", ");
    print_definition(g, n->results[i], out);
  }
  put(out, n->result_count ? " = " : "do ");
  if (n->flags & AIT_NODE_INPLACE) put(out, "inplace ");
  put(out, n->op->name);
  if (strcmp(n->op_name, n->op->name) != 0) {
    put(out, " ");
    put_quoted(out, n->op_name);
  }
  print_args(g, n, indent, out);
  bool has_result = n->result_count && n->results[0] < g->value_count;
  if (strcmp(n->name, has_result ? g->values[n->results[0]].name : "") != 0) { /* nodes are named after their first result */
    put(out, " name ");
    put_quoted(out, n->name);
  }
  if (n->module < g->root->module_count) {
    put(out, " module ");
    put_quoted(out, g->root->modules[n->module].path);
  }
  put(out, "\n");
}

static void print_port_name(int32_t user_index, const char *name, ait_text *out) {
  ait_text_printf(out, " %d", (int)user_index);
  if (!name) return;
  put(out, " ");
  put_quoted(out, name);
}

static void print_input(const ait_graph *g, const ait_region_input *input, int indent, ait_text *out) {
  put_indent(out, indent);
  put(out, "input ");
  print_definition(g, input->value, out);
  ait_text_printf(out, " %s", input_kinds[input->kind]);
  print_port_name(input->user_index, input->name, out);
  if (input->mutated) put(out, " mutated");
  if (input->baked.kind != AIT_ARG_NONE) {
    put(out, " baked ");
    print_arg(g, &input->baked, indent, out);
  }
  put(out, "\n");
}

static void print_output(const ait_graph *g, const ait_region_output *output, int indent, ait_text *out) {
  put_indent(out, indent);
  ait_text_printf(out, "output %s", output_kinds[output->kind]);
  print_port_name(output->user_index, output->name, out);
  put(out, " = ");
  print_arg(g, &output->arg, indent, out);
  put(out, "\n");
}

static void print_body(const ait_graph *g, int indent, ait_text *out) {
  for (size_t i = 0; i < g->input_count; ++i) print_input(g, &g->inputs[i], indent, out);
  for (const ait_node *n = g->first; n; n = n->next) print_node(g, n, indent, out);
  for (size_t i = 0; i < g->output_count; ++i) print_output(g, &g->outputs[i], indent, out);
}

static void print_bound(int64_t bound, ait_text *out) {
  if (bound == INT64_MAX) put(out, "inf");
  else if (bound == INT64_MIN) put(out, "-inf");
  else ait_text_printf(out, "%lld", (long long)bound);
}

static void print_symbol(const ait_symbol *s, ait_text *out) {
  put(out, "symbol ");
  scan_print_name(out, s->name);
  put(out, " [");
  print_bound(s->min, out);
  put(out, ", ");
  print_bound(s->max, out);
  put(out, "]");
  if (s->hint != -1) ait_text_printf(out, " hint %lld", (long long)s->hint);
  put(out, s->backed ? " backed\n" : "\n");
}

static void print_module(const ait_module_info *m, ait_text *out) {
  put(out, "module ");
  put_quoted(out, m->path);
  put(out, " ");
  put_quoted(out, m->type);
  ait_text_printf(out, " calls %u\n", (unsigned)m->calls);
}

static void print_guard(const ait_graph *g, const ait_region_guard *guard, ait_text *out) {
  put(out, "guard ");
  ait_dim_text(g, guard->left, out);
  ait_text_printf(out, " %s ", guard_signs[guard->op]);
  ait_dim_text(g, guard->right, out);
  put(out, " text ");
  put_quoted(out, guard->text);
  put(out, "\n");
}

static void print_signature(const ait_graph *g, ait_text *out) {
  put(out, "signature [");
  for (size_t i = 0; i < g->user_input_count; ++i) {
    if (i) put(out, ", ");
    if (g->input_spec[i]) put_quoted(out, g->input_spec[i]);
    else put(out, "none");
  }
  put(out, "]\n");
}

static void print_root(const ait_graph *g, ait_text *out) {
  put(out, "graph ");
  put_quoted(out, g->name);
  put(out, g->dialect == AIT_DIALECT_RAW ? " raw" : g->dialect == AIT_DIALECT_CORE ? " core" : " both");
  put(out, " producer ");
  put_quoted(out, g->producer);
  put(out, "\n");
  for (size_t i = 0; i < g->symbol_count; ++i) print_symbol(&g->symbols[i], out);
  for (size_t i = 0; i < g->module_count; ++i) print_module(&g->modules[i], out);
  for (size_t i = 0; i < g->guard_count; ++i) print_guard(g, &g->guards[i], out);
  if (g->user_input_count) print_signature(g, out);
}

ait_status ait_graph_print(const ait_graph *g, ait_text *out) {
  if (g->root == g) print_root(g, out);
  print_body(g, 0, out);
  return out->failed ? AIT_OOM() : AIT_OK;
}
