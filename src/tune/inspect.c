/* ait_inspect and ait_explain: what a model is, what each backend takes of it, and every "no". */
#include "tune/bound.h"
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
typedef struct survey {
  const ait_graph *g;
  int64_t *symbols;
  ait_module_sum *sums, total;
  bool has_roofline;
  ait_roofline roofline;
  ait_module_bound *bounds; /* one for each module, and one for all */
  double *seconds;          /* the same; NULL: not measured */
} survey;

static void put_bound(ait_text *t, bool *first, const ait_module_bound *b) {
  ait_put_double(t, first, "roof_s", ait_bound_total(b));
  ait_put_string(t, first, "bound_by", ait_bound_text(ait_bound_main(b)));
}

static void put_modules(ait_text *t, const survey *s) {
  ait_text_printf(t, "[");
  for (size_t m = 0; m < s->g->module_count; ++m) {
    const ait_module_sum *sum = &s->sums[m];
    bool first = true;
    ait_text_printf(t, "%s\n    {", m ? "," : "");
    ait_put_string(t, &first, "path", s->g->modules[m].path);
    ait_put_string(t, &first, "type", s->g->modules[m].type);
    ait_put_int(t, &first, "calls", s->g->modules[m].calls);
    ait_put_double(t, &first, "parameters", sum->parameters);
    ait_put_double(t, &first, "parameter_bytes", sum->parameter_bytes);
    ait_put_double(t, &first, "flops", sum->flops);
    ait_put_double(t, &first, "bytes", sum->bytes);
    ait_put_double(t, &first, "flops_per_byte", sum->bytes > 0 ? sum->flops / sum->bytes : 0);
    ait_put_int(t, &first, "nodes", sum->nodes);
    if (s->has_roofline) put_bound(t, &first, &s->bounds[m]);
    if (s->seconds) ait_put_double(t, &first, "seconds", s->seconds[m]);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
}

/* ---- coverage --------------------------------------------------------------------------------------------------------------------*/
enum { NOTE_LIMIT = 4096 };

typedef struct note_sink {
  ait_text *t;
  const char *filter;
  bool any, filter_known;
  const ait_graph *raw; /* to find the modules of nodes that passes name */
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

static const char *module_of(const ait_graph *g, const char *node) {
  for (const ait_node *n = g->first; n && node; n = n->next)
    if (n->name && !strcmp(n->name, node)) return n->module == AIT_NO_INDEX ? "" : g->modules[n->module].path;
  return "";
}

static void pass_note(void *ctx, const char *pass, const char *code, const char *node, const char *text) {
  note_sink *s = ctx;
  char source[64];
  snprintf(source, sizeof source, "pass %s", pass);
  put_note(s, source, code, node, module_of(s->raw, node), text);
}

/* What a backend takes before anything is built: nodes that no note names. */
typedef struct coverage {
  uint32_t nodes, covered;
  double flops, covered_flops;
} coverage;

static ait_status count_coverage(const ait_graph *g, const ait_support *support, coverage *out) {
  ait_allocator a = ait_allocator_default();
  bool *noted = ait_alloc_zero(a, g->node_count + 1, 1);
  int64_t *symbols = ait_cost_symbols(g, a);
  uint32_t i = 0;
  bool whole = false; /* a note on the whole graph */
  ait_status status = noted && symbols ? AIT_OK : AIT_OOM();
  for (uint32_t k = 0; status == AIT_OK && k < support->note_count; ++k)
    if (support->notes[k].node < g->node_count) noted[support->notes[k].node] = true;
    else whole = true;
  for (const ait_node *n = g->first; status == AIT_OK && n; n = n->next, ++i) {
    double flops = ait_node_cost(g, n, symbols).flops;
    bool covered = !noted[i] && !(whole && !support->supported);
    ++out->nodes;
    out->covered += covered;
    out->flops += flops;
    out->covered_flops += covered ? flops : 0;
  }
  ait_free(a, symbols, symbols ? (g->root->symbol_count + 1) * sizeof *symbols : 0);
  ait_free(a, noted, g->node_count + 1);
  return status;
}

/* What one backend says of the model. notes may be NULL. */
static ait_status ask_backend(const ait_graph *raw, const ait_backend *backend, note_sink *sink, ait_support *out, coverage *out_coverage) {
  ait_allocator a = ait_allocator_default();
  ait_graph *graph = NULL;
  ait_region *region = NULL;
  ait_build_request request = {.allocator = a, .backend = backend, .cpu_mask = UINT64_MAX};
  if (sink) request.passes = (ait_pass_context){.note = pass_note, .note_ctx = sink};
  ait_status status = ait_plan_lower(raw, &request, &graph);
  if (status == AIT_OK) status = ait_graph_region(graph, a, &region);
  ait_onnx_bridge_connect();
  if (status == AIT_OK) status = backend->supports(region, out);
  if (status == AIT_OK) status = count_coverage(graph, out, out_coverage);
  for (uint32_t i = 0; sink && sink->filter && region && i < region->node_count; ++i)
    sink->filter_known |= !strcmp(region->nodes[i].name, sink->filter);
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
    coverage c = {0};
    status = ask_backend(raw, b, NULL, &support, &c);
    bool first = true;
    ait_text_printf(t, "%s\n    {", i ? "," : "");
    ait_put_string(t, &first, "name", b->name);
    ait_put_bool(t, &first, "supported", support.supported);
    ait_put_int(t, &first, "nodes", c.nodes);
    ait_put_int(t, &first, "covered_nodes", c.covered);
    if (c.flops > 0) ait_put_double(t, &first, "covered_flops", c.covered_flops / c.flops);
    ait_put_int(t, &first, "noted", support.note_count);
    ait_put_string(t, &first, "first_reason", support.note_count ? notes[0].reason : "");
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
  ait_free(ait_allocator_default(), notes, NOTE_LIMIT * sizeof *notes);
  return status;
}

/* ---- the documents ---------------------------------------------------------------------------------------------------------------*/
static ait_status bind_sizes(const ait_graph *g, const ait_inspect_options *o, int64_t *symbols) {
  ait_region *region;
  if (!o->inputs) return AIT_OK;
  AIT_TRY(ait_graph_region(g, ait_allocator_default(), &region));
  ait_status status = ait_bind_inputs(region, o->inputs, o->input_count, symbols);
  ait_graph_region_destroy(ait_allocator_default(), region);
  return status;
}

static ait_status make_survey(survey *s, const ait_graph *raw, const ait_inspect_options *o) {
  ait_allocator a = ait_allocator_default();
  size_t n = s->g->module_count + 1;
  s->sums = ait_alloc_zero(a, n * sizeof *s->sums, _Alignof(ait_module_sum));
  s->bounds = ait_alloc_zero(a, n * sizeof *s->bounds, _Alignof(ait_module_bound));
  s->symbols = ait_cost_symbols(s->g, a);
  if (!s->sums || !s->bounds || !s->symbols) return AIT_OOM();
  AIT_TRY(bind_sizes(s->g, o, s->symbols));
  ait_module_sums(s->g, s->symbols, s->sums, &s->total);
  s->has_roofline = ait_roofline_read(o->roofline_json, &s->roofline);
  if (s->has_roofline) ait_bound_modules(s->g, s->symbols, &s->roofline, s->bounds);
  if (!o->inputs) return AIT_OK;
  s->seconds = ait_alloc_zero(a, n * sizeof *s->seconds, _Alignof(double));
  if (!s->seconds) return AIT_OOM();
  return ait_measure_modules(raw, s->g, o->inputs, o->input_count, o->threads, s->seconds);
}

static void free_survey(survey *s) {
  ait_allocator a = ait_allocator_default();
  size_t n = s->g->module_count + 1;
  ait_free(a, s->sums, n * sizeof *s->sums);
  ait_free(a, s->bounds, n * sizeof *s->bounds);
  ait_free(a, s->seconds, n * sizeof *s->seconds);
  ait_free(a, s->symbols, s->symbols ? (s->g->root->symbol_count + 1) * sizeof *s->symbols : 0);
}

/* The least time of the baseline's nodes against that of the core graph with everything element-wise joined to what is before it. */
static ait_status put_prediction(ait_text *t, const ait_graph *raw, const survey *s, const ait_inspect_options *o) {
  ait_allocator a = ait_allocator_default();
  ait_build_request request = {.allocator = a, .backend = ait_backend_find("native"), .cpu_mask = UINT64_MAX};
  const ait_module_bound *all = &s->bounds[s->g->module_count];
  ait_graph *core = NULL;
  double before = ait_bound_total(all), after = 0;
  bool first = true;
  ait_status status = request.backend ? ait_plan_lower(raw, &request, &core) : AIT_OK;
  if (status != AIT_OK && ait_status_code(status) == AIT_CODE_UNSUPPORTED) ait_status_free(status), status = AIT_OK;
  int64_t *symbols = core ? ait_cost_symbols(core, a) : NULL;
  if (status == AIT_OK && core) status = symbols ? bind_sizes(core, o, symbols) : AIT_OOM();
  if (status == AIT_OK && core) status = ait_bound_fused(core, symbols, &s->roofline, &after);
  ait_text_printf(t, ",\n  \"roofline\": ");
  ait_roofline_put(t, &s->roofline);
  ait_text_printf(t, ",\n  ");
  put_bound(t, &first, all);
  if (after > 0) ait_put_double(t, &first, "fused_roof_s", after);
  if (after > 0) ait_put_double(t, &first, "predicted_gain", before / after);
  ait_free(a, symbols, symbols ? (core->root->symbol_count + 1) * sizeof *symbols : 0);
  ait_graph_destroy(core);
  return status;
}

/* Of an .ait only. */
/* *out NULL: another kind of file. */
static ait_status open_sealed(const char *path, const ait_load_options *options, ait_artifact **out) {
  ait_file_kind kind;
  *out = NULL;
  AIT_TRY(ait_import_detect(path, &kind));
  ait_artifact_open_options open = {.keys = options ? options->keys : NULL};
  return kind == AIT_FILE_AIT ? ait_artifact_open(ait_allocator_default(), path, &open, out) : AIT_OK;
}

/* Sizes that plans were measured at, and whether they have steps of their own. */
static void put_buckets(ait_text *t, bool *first, const ait_artifact *artifact) {
  bool any = false;
  ait_put_key(t, first, "buckets");
  ait_text_printf(t, "[");
  for (size_t i = 0; i < ait_artifact_plan_count(artifact); ++i) {
    const ait_plan *p = ait_artifact_plan(artifact, i);
    for (uint32_t b = 0; b < p->bucket_count; ++b) {
      const ait_plan *runs = p->buckets[b].plan ? p->buckets[b].plan : p;
      char sizes[512];
      bool inner = true;
      ait_plan_ranges_text(&p->buckets[b], sizes, sizeof sizes);
      ait_text_printf(t, "%s{", any ? ", " : "");
      any = true;
      ait_put_string(t, &inner, "target", p->target);
      ait_put_string(t, &inner, "sizes", sizes);
      ait_put_string(t, &inner, "backend", runs->step_count == 1 ? runs->steps[0].backend : "mixed");
      ait_put_int(t, &inner, "threads", runs->threads);
      ait_put_bool(t, &inner, "own_plan", p->buckets[b].plan != NULL);
      ait_text_printf(t, "}");
    }
  }
  ait_text_printf(t, "]");
}

static ait_status put_sealed(ait_text *t, bool *first, const char *path, const ait_load_options *options) {
  ait_artifact *artifact;
  AIT_TRY(open_sealed(path, options, &artifact));
  if (!artifact) return AIT_OK;
  ait_put_key(t, first, "signature");
  ait_text_printf(t, "{");
  ait_signature s = ait_artifact_signature(artifact);
  bool inner = true;
  ait_put_string(t, &inner, "state", ait_signature_state_name(s.state));
  if (s.state != AIT_SIGNATURE_UNSIGNED) ait_put_string(t, &inner, "key", s.key_name);
  if (s.state != AIT_SIGNATURE_UNSIGNED) ait_put_string(t, &inner, "fingerprint", s.fingerprint);
  ait_text_printf(t, "}");
  put_buckets(t, first, artifact);
  const char *deploy;
  ait_status status = ait_artifact_deploy(artifact, &deploy);
  if (deploy) ait_put_key(t, first, "deploy"), ait_text_printf(t, "%s", deploy);
  ait_artifact_release(artifact);
  return status;
}

static ait_status put_survey(ait_text *t, const char *path, const ait_graph *raw, const survey *s, const ait_load_options *load,
                             const ait_inspect_options *o) {
  bool first = true;
  ait_text_printf(t, "{\n  ");
  ait_put_string(t, &first, "file", path);
  ait_put_string(t, &first, "name", raw->name);
  ait_put_string(t, &first, "producer", raw->producer);
  AIT_TRY(put_sealed(t, &first, path, load));
  ait_put_int(t, &first, "nodes", (int64_t)raw->node_count);
  ait_put_double(t, &first, "weight_bytes", ait_graph_weight_bytes(raw));
  ait_put_double(t, &first, "flops", s->total.flops);
  ait_put_double(t, &first, "bytes", s->total.bytes);
  ait_put_double(t, &first, "flops_per_byte", s->total.bytes > 0 ? s->total.flops / s->total.bytes : 0);
  if (s->seconds) ait_put_double(t, &first, "seconds", s->seconds[s->g->module_count]);
  if (s->has_roofline) AIT_TRY(put_prediction(t, raw, s, o));
  ait_text_printf(t, ",\n  \"inputs\": ");
  put_inputs(t, raw);
  ait_text_printf(t, ",\n  \"outputs\": ");
  put_outputs(t, raw);
  ait_text_printf(t, ",\n  \"symbols\": ");
  put_symbols(t, raw);
  ait_text_printf(t, ",\n  \"modules\": ");
  put_modules(t, s);
  ait_text_printf(t, ",\n  \"backends\": ");
  AIT_TRY(put_backends(t, raw));
  ait_text_printf(t, "\n}\n");
  return AIT_OK;
}

static ait_status inspect_graph(ait_text *t, const char *path, const ait_graph *raw, const ait_load_options *load,
                                const ait_inspect_options *o) {
  ait_graph *core = NULL;
  ait_build_request request = {.allocator = ait_allocator_default(), .backend = ait_backend_find("eager"), .cpu_mask = UINT64_MAX};
  ait_status status = request.backend ? ait_plan_lower(raw, &request, &core) : AIT_OK;
  if (status != AIT_OK) ait_status_free(status); /* work is then counted on the raw graph */
  survey s = {.g = core ? core : raw};
  status = make_survey(&s, raw, o);
  if (status == AIT_OK) status = put_survey(t, path, raw, &s, load, o);
  free_survey(&s);
  ait_graph_destroy(core);
  return status;
}

void ait_inspect_options_init(ait_inspect_options *options) { *options = (ait_inspect_options){.struct_size = sizeof *options}; }

ait_status ait_inspect_with(const char *path, const ait_load_options *load, const ait_inspect_options *options, char **out) {
  ait_inspect_options o;
  ait_graph *graph = NULL;
  ait_text t;
  *out = NULL;
  ait_inspect_options_init(&o);
  if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ait_text_init(&t, ait_allocator_default());
  ait_status status = ait_graph_open(path, load, &graph);
  if (status == AIT_OK) status = inspect_graph(&t, path, graph, load, &o);
  ait_graph_destroy(graph);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return ait_file_context(status, "inspect", path);
}

ait_status ait_inspect(const char *path, const ait_load_options *options, char **out) { return ait_inspect_with(path, options, NULL, out); }

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

/* Which sizes of an .ait were tuned for; the others run on the plan for all sizes. */
static ait_status explain_buckets(note_sink *s, const char *path, const ait_load_options *options) {
  ait_artifact *artifact;
  AIT_TRY(open_sealed(path, options, &artifact));
  for (size_t i = 0; artifact && i < ait_artifact_plan_count(artifact); ++i) {
    const ait_plan *p = ait_artifact_plan(artifact, i);
    char sizes[512], text[800];
    for (uint32_t b = 0; b < p->bucket_count; ++b) {
      bool own = p->buckets[b].plan != NULL;
      ait_plan_ranges_text(&p->buckets[b], sizes, sizeof sizes);
      snprintf(text, sizeof text, "plan '%.64s', sizes %s: %s", p->target, sizes,
               own ? "another plan was faster beyond noise and runs" : "no other plan was faster beyond noise than the one for all sizes");
      put_note(s, "sizes", own ? "sizes-own-plan" : "sizes-general-plan", "", "", text);
    }
    if (!p->bucket_count) continue;
    snprintf(text, sizeof text, "plan '%.64s': sizes beyond these were not measured and run on the plan for all sizes", p->target);
    put_note(s, "sizes", "sizes-not-tuned", "", "", text);
  }
  ait_artifact_release(artifact);
  return AIT_OK;
}

static bool names_something(const ait_graph *g, const char *filter) {
  for (const ait_node *n = g->first; n; n = n->next)
    if (n->name && !strcmp(n->name, filter)) return true;
  for (size_t m = 0; m < g->module_count; ++m)
    if (ait_module_inside(g->modules[m].path, filter)) return true;
  for (size_t i = 0; i < g->input_count; ++i)
    if (!strcmp(g->inputs[i].name, filter)) return true;
  return false;
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
  sink.raw = graph;
  if (status == AIT_OK) explain_dimensions(&sink, graph);
  if (status == AIT_OK) status = explain_buckets(&sink, path, options);
  for (size_t i = 0; status == AIT_OK && i < ait_backend_count(); ++i) {
    ait_support support = {.notes = notes, .note_capacity = NOTE_LIMIT};
    coverage c = {0};
    status = ask_backend(graph, ait_backend_at(i), &sink, &support, &c);
  }
  if (status == AIT_OK && filter && !sink.filter_known && !names_something(graph, filter))
    status = ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "the model has no node, module or input '%s'", filter),
                            "'ait inspect --depth 99' shows the modules, 'ait opt' the nodes");
  ait_text_printf(&t, "]}\n");
  ait_graph_destroy(graph);
  ait_free(ait_allocator_default(), notes, NOTE_LIMIT * sizeof *notes);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return ait_file_context(status, "explain", path);
}
