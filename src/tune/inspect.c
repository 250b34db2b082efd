/* ait_inspect and ait_explain: what a model is, what each backend takes of it, and every "no". */
#include "tune/cost.h"
#include "tune/put_json.h"
#include "tune/tune.h"
#include <stdio.h>

/* ---- sizes and ports -------------------------------------------------------------------------------------------------------------*/
static void put_shape(ait_text *t, const ait_graph *g, const ait_value_info *v) {
  ait_text_printf(t, "[");
  for (int32_t d = 0; d < v->rank; ++d) {
    ait_text dim;
    ait_text_init(&dim, ait_allocator_default());
    ait_dim_text(g, v->shape[d], &dim);
    ait_text_printf(t, "%s", d ? ", " : "");
    ait_text_json_string(t, dim.data ? dim.data : "", dim.length);
    t->failed |= dim.failed;
    ait_text_deinit(&dim);
  }
  ait_text_printf(t, "]");
}

static const char *type_text(ait_type type) {
  static const char *const names[] = {"none", "tensor", "list", "int", "float", "bool", "string"};
  return (size_t)type < AIT_COUNT(names) ? names[type] : "?";
}

static void put_port(ait_text *t, const ait_graph *g, const char *name, const ait_arg *arg, bool baked) {
  bool first = true;
  ait_text_printf(t, "{");
  ait_put_string(t, &first, "name", name ? name : "");
  if (arg->kind == AIT_ARG_VALUE) {
    const ait_value_info *v = &g->values[arg->as.value];
    ait_put_string(t, &first, "type", type_text(v->type));
    if (v->type == AIT_TYPE_TENSOR) {
      ait_put_string(t, &first, "dtype", ait_dtype_name(v->dtype));
      ait_put_key(t, &first, "shape");
      put_shape(t, g, v);
    }
  } else {
    ait_put_string(t, &first, "type", arg->kind == AIT_ARG_NONE ? "none" : "constant");
  }
  if (baked) ait_put_bool(t, &first, "baked", true);
  ait_text_printf(t, "}");
}

static void put_inputs(ait_text *t, const ait_graph *g) {
  bool any = false;
  ait_text_printf(t, "[");
  for (size_t i = 0; i < g->input_count; ++i) {
    const ait_region_input *in = &g->inputs[i];
    if (in->kind != AIT_INPUT_USER) continue;
    ait_arg arg = in->value == AIT_NO_INDEX ? in->baked : ait_arg_value(in->value);
    ait_text_printf(t, "%s\n    ", any ? "," : "");
    put_port(t, g, in->name, &arg, in->value == AIT_NO_INDEX);
    any = true;
  }
  ait_text_printf(t, "]");
}

static void put_outputs(ait_text *t, const ait_graph *g) {
  bool any = false;
  ait_text_printf(t, "[");
  for (size_t i = 0; i < g->output_count; ++i) {
    if (g->outputs[i].kind != AIT_OUTPUT_USER) continue;
    ait_text_printf(t, "%s\n    ", any ? "," : "");
    put_port(t, g, g->outputs[i].name, &g->outputs[i].arg, false);
    any = true;
  }
  ait_text_printf(t, "]");
}

static void put_symbols(ait_text *t, const ait_graph *g) {
  ait_text_printf(t, "[");
  for (size_t i = 0; i < g->symbol_count; ++i) {
    const ait_symbol *s = &g->symbols[i];
    bool first = true;
    ait_text_printf(t, "%s{", i ? ", " : "");
    ait_put_string(t, &first, "name", s->name);
    ait_put_int(t, &first, "min", s->min);
    if (s->max != INT64_MAX) ait_put_int(t, &first, "max", s->max);
    if (s->hint >= 0) ait_put_int(t, &first, "seen", s->hint);
    ait_put_bool(t, &first, "from_inputs", s->backed);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
}

/* ---- module tree -----------------------------------------------------------------------------------------------------------------*/
static void put_modules(ait_text *t, const ait_graph *g, const ait_module_sum *sums) {
  ait_text_printf(t, "[");
  for (size_t m = 0; m < g->module_count; ++m) {
    bool first = true;
    ait_text_printf(t, "%s\n    {", m ? "," : "");
    ait_put_string(t, &first, "path", g->modules[m].path);
    ait_put_string(t, &first, "type", g->modules[m].type);
    ait_put_int(t, &first, "calls", g->modules[m].calls);
    ait_put_double(t, &first, "parameters", sums[m].parameters);
    ait_put_double(t, &first, "parameter_bytes", sums[m].parameter_bytes);
    ait_put_double(t, &first, "flops", sums[m].flops);
    ait_put_double(t, &first, "bytes", sums[m].bytes);
    ait_put_int(t, &first, "nodes", sums[m].nodes);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
}

/* ---- coverage --------------------------------------------------------------------------------------------------------------------*/
enum { NOTE_LIMIT = 4096 };

typedef struct note_sink {
  ait_text *t;
  const char *filter;
  bool any;
  const ait_region *region;
} note_sink;

static bool wanted(const note_sink *s, const char *node, const char *module) {
  if (!s->filter) return true;
  return (node && !strcmp(node, s->filter)) || (module && *module && ait_module_inside(module, s->filter));
}

static void put_note(note_sink *s, const char *source, const char *code, const char *node, const char *module, const char *text) {
  bool first = true;
  if (!wanted(s, node, module)) return;
  ait_text_printf(s->t, "%s\n    {", s->any ? "," : "");
  s->any = true;
  ait_put_string(s->t, &first, "source", source);
  ait_put_string(s->t, &first, "code", code);
  ait_put_string(s->t, &first, "node", node ? node : "");
  ait_put_string(s->t, &first, "module", module ? module : "");
  ait_put_string(s->t, &first, "text", text);
  ait_text_printf(s->t, "}");
}

static void pass_note(void *ctx, const char *pass, const char *code, const char *node, const char *text) {
  char source[64];
  snprintf(source, sizeof source, "pass %s", pass);
  put_note(ctx, source, code, node, NULL, text);
}

/* What one backend says of the model. notes may be NULL. */
static ait_status ask_backend(const ait_graph *raw, const ait_backend *backend, note_sink *sink, ait_support *out, uint32_t *out_nodes) {
  ait_allocator a = ait_allocator_default();
  ait_graph *graph = NULL;
  ait_region *region = NULL;
  ait_build_request request = {.allocator = a, .backend = backend, .cpu_mask = UINT64_MAX};
  if (sink) request.passes = (ait_pass_context){.note = pass_note, .note_ctx = sink};
  ait_status status = ait_plan_lower(raw, &request, &graph);
  if (status == AIT_OK) status = ait_graph_region(graph, a, &region);
  ait_onnx_bridge_connect();
  if (status == AIT_OK) status = backend->supports(region, out);
  if (status == AIT_OK) *out_nodes = region->node_count;
  char source[64];
  snprintf(source, sizeof source, "backend %s", backend->name);
  for (uint32_t i = 0; sink && status == AIT_OK && i < out->note_count; ++i) {
    const ait_region_node *n = out->notes[i].node < region->node_count ? &region->nodes[out->notes[i].node] : NULL;
    put_note(sink, source, out->notes[i].code, n ? n->name : "", n ? n->module : "", out->notes[i].reason);
  }
  if (status != AIT_OK && ait_status_code(status) == AIT_CODE_UNSUPPORTED) { /* a pass that declines: the backend cannot have the model */
    out->supported = false;
    if (out->note_capacity) {
      out->note_count = 1;
      out->notes[0] = (ait_support_note){.node = AIT_NO_INDEX, .code = "pass-declined"};
      snprintf(out->notes[0].reason, sizeof out->notes[0].reason, "%s", ait_status_message(status));
      if (sink) put_note(sink, source, "pass-declined", "", "", ait_status_message(status));
    }
    ait_status_free(status);
    status = AIT_OK;
  }
  ait_graph_region_destroy(a, region);
  ait_graph_destroy(graph);
  return status;
}

static ait_status put_backends(ait_text *t, const ait_graph *raw) {
  ait_support_note *notes = ait_alloc(ait_allocator_default(), NOTE_LIMIT * sizeof *notes, _Alignof(ait_support_note));
  ait_status status = notes ? AIT_OK : AIT_OOM();
  ait_text_printf(t, "[");
  for (size_t i = 0; status == AIT_OK && i < ait_backend_count(); ++i) {
    const ait_backend *b = ait_backend_at(i);
    ait_support support = {.notes = notes, .note_capacity = NOTE_LIMIT};
    uint32_t nodes = 0;
    status = ask_backend(raw, b, NULL, &support, &nodes);
    bool first = true;
    ait_text_printf(t, "%s\n    {", i ? "," : "");
    ait_put_string(t, &first, "name", b->name);
    ait_put_bool(t, &first, "supported", support.supported);
    ait_put_int(t, &first, "nodes", nodes);
    ait_put_int(t, &first, "noted", support.note_count);
    ait_put_string(t, &first, "first_reason", support.note_count ? notes[0].reason : "");
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
  ait_free(ait_allocator_default(), notes, NOTE_LIMIT * sizeof *notes);
  return status;
}

/* ---- the documents ---------------------------------------------------------------------------------------------------------------*/
static ait_status inspect_graph(ait_text *t, const char *path, const ait_graph *raw) {
  ait_allocator a = ait_allocator_default();
  ait_graph *core = NULL;
  ait_build_request request = {.allocator = a, .backend = ait_backend_find("eager"), .cpu_mask = UINT64_MAX};
  ait_status status = request.backend ? ait_plan_lower(raw, &request, &core) : AIT_OK;
  if (status != AIT_OK) ait_status_free(status); /* work is then counted on the raw graph */
  const ait_graph *g = core ? core : raw;
  ait_module_sum *sums = ait_alloc_zero(a, (g->module_count + 1) * sizeof *sums, _Alignof(ait_module_sum)), total = {0};
  int64_t *symbols = ait_cost_symbols(g, a);
  status = sums && symbols ? AIT_OK : AIT_OOM();
  bool first = true;
  if (status == AIT_OK) {
    ait_module_sums(g, symbols, sums, &total);
    ait_text_printf(t, "{\n  ");
    ait_put_string(t, &first, "file", path);
    ait_put_string(t, &first, "name", raw->name);
    ait_put_string(t, &first, "producer", raw->producer);
    ait_put_int(t, &first, "nodes", (int64_t)raw->node_count);
    ait_put_double(t, &first, "weight_bytes", ait_graph_weight_bytes(raw));
    ait_put_double(t, &first, "flops", total.flops);
    ait_put_double(t, &first, "bytes", total.bytes);
    ait_text_printf(t, ",\n  \"inputs\": ");
    put_inputs(t, raw);
    ait_text_printf(t, ",\n  \"outputs\": ");
    put_outputs(t, raw);
    ait_text_printf(t, ",\n  \"symbols\": ");
    put_symbols(t, raw);
    ait_text_printf(t, ",\n  \"modules\": ");
    put_modules(t, g, sums);
    ait_text_printf(t, ",\n  \"backends\": ");
    status = put_backends(t, raw);
    ait_text_printf(t, "\n}\n");
  }
  ait_free(a, symbols, (g->root->symbol_count + 1) * sizeof *symbols);
  ait_free(a, sums, (g->module_count + 1) * sizeof *sums);
  ait_graph_destroy(core);
  return status;
}

ait_status ait_inspect(const char *path, const ait_load_options *options, char **out) {
  ait_graph *graph = NULL;
  ait_text t;
  *out = NULL;
  ait_text_init(&t, ait_allocator_default());
  ait_status status = ait_graph_open(path, options, &graph);
  if (status == AIT_OK) status = inspect_graph(&t, path, graph);
  ait_graph_destroy(graph);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return ait_file_context(status, "inspect", path);
}

/* Dimensions of inputs: fixed or dynamic, and why. */
static void explain_dimensions(note_sink *s, const ait_graph *g) {
  for (size_t i = 0; i < g->input_count; ++i) {
    const ait_region_input *in = &g->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->value == AIT_NO_INDEX || g->values[in->value].type != AIT_TYPE_TENSOR) continue;
    const ait_value_info *v = &g->values[in->value];
    for (int32_t d = 0; d < v->rank; ++d) {
      char text[192];
      int64_t low, high;
      bool fixed = ait_dim_is_const(g, v->shape[d], &low);
      ait_dim_range(g, v->shape[d], &low, &high);
      if (fixed) snprintf(text, sizeof text, "dimension %d is fixed at %lld by the exported program", d, (long long)low);
      else if (high == INT64_MAX) snprintf(text, sizeof text, "dimension %d is dynamic, at least %lld", d, (long long)low);
      else snprintf(text, sizeof text, "dimension %d is dynamic, %lld to %lld", d, (long long)low, (long long)high);
      put_note(s, "dimension", fixed ? "dim-fixed" : "dim-dynamic", in->name, "", text);
    }
  }
}

ait_status ait_explain(const char *path, const char *filter, const ait_load_options *options, char **out) {
  ait_graph *graph = NULL;
  ait_text t;
  *out = NULL;
  ait_text_init(&t, ait_allocator_default());
  note_sink sink = {.t = &t, .filter = filter};
  ait_support_note *notes = ait_alloc(ait_allocator_default(), NOTE_LIMIT * sizeof *notes, _Alignof(ait_support_note));
  ait_status status = notes ? ait_graph_open(path, options, &graph) : AIT_OOM();
  ait_text_printf(&t, "{\"notes\": [");
  if (status == AIT_OK) explain_dimensions(&sink, graph);
  for (size_t i = 0; status == AIT_OK && i < ait_backend_count(); ++i) {
    ait_support support = {.notes = notes, .note_capacity = NOTE_LIMIT};
    uint32_t nodes;
    status = ask_backend(graph, ait_backend_at(i), &sink, &support, &nodes);
  }
  ait_text_printf(&t, "]}\n");
  ait_graph_destroy(graph);
  ait_free(ait_allocator_default(), notes, NOTE_LIMIT * sizeof *notes);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return ait_file_context(status, "explain", path);
}
