/* Lists and graph text for people and programs: include/ait/tools.h. */
#include "tune/put_json.h"
#include "tune/tune.h"
#include "backends/reference/reference.h"
#include <ait/custom_op.h>

void ait_string_free(char *text) { ait_free(ait_allocator_default(), text, text ? strlen(text) + 1 : 0); }

/* The text's memory as a C string of exactly strlen + 1 bytes, owned by the caller (ait_string_free). Ends the text. */
ait_status ait_put_finish(ait_text *text, char **out) {
  ait_status status = AIT_OK;
  *out = NULL;
  if (text->failed) status = AIT_OOM();
  if (status == AIT_OK) {
    *out = ait_alloc(ait_allocator_default(), text->length + 1, 1);
    if (*out) memcpy(*out, text->data ? text->data : "", text->length + 1);
    else status = AIT_OOM();
  }
  ait_text_deinit(text);
  return status;
}

void ait_put_key(ait_text *text, bool *first, const char *key) {
  ait_text_printf(text, "%s", *first ? "" : ", ");
  *first = false;
  ait_text_json_string(text, key, strlen(key));
  ait_text_append(text, ": ", 2);
}

void ait_put_string(ait_text *text, bool *first, const char *key, const char *value) {
  ait_put_key(text, first, key);
  if (value) ait_text_json_string(text, value, strlen(value));
  else ait_text_append(text, "null", 4);
}

void ait_put_int(ait_text *text, bool *first, const char *key, int64_t value) {
  ait_put_key(text, first, key);
  ait_text_printf(text, "%lld", (long long)value);
}

void ait_put_double(ait_text *text, bool *first, const char *key, double value) {
  ait_put_key(text, first, key);
  ait_text_json_double(text, value);
}

void ait_put_bool(ait_text *text, bool *first, const char *key, bool value) {
  ait_put_key(text, first, key);
  ait_text_printf(text, "%s", value ? "true" : "false");
}

/* ---- operators -------------------------------------------------------------------------------------------------------------------*/
static bool runs_on_reference(const char *op) { return ait_ref_find(op) != NULL; }

ait_status ait_ops(char **out) {
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(&t, "{\"operators\": [");
  for (size_t i = 0; i < ait_op_count(); ++i) {
    const ait_op *op = ait_op_at(i);
    bool first = true;
    ait_text_printf(&t, "%s\n{", i ? "," : "");
    ait_put_string(&t, &first, "name", op->name);
    ait_put_string(&t, &first, "schema", op->schema);
    ait_put_string(&t, &first, "dialects",
                   op->dialects == AIT_DIALECT_BOTH   ? "raw,core"
                   : op->dialects == AIT_DIALECT_CORE ? "core"
                                                      : "raw");
    ait_put_bool(&t, &first, "reference", runs_on_reference(op->name));
    ait_text_printf(&t, "}");
  }
  for (size_t i = 0; i < ait_custom_op_count(); ++i) {
    const ait_custom_op *op = ait_custom_op_at(i);
    bool first = true;
    ait_text_printf(&t, ",\n{");
    ait_put_string(&t, &first, "name", op->name);
    ait_put_string(&t, &first, "schema", op->schema);
    ait_put_string(&t, &first, "dialects", "custom");
    ait_put_bool(&t, &first, "reference", true);
    ait_text_printf(&t, "}");
  }
  ait_text_printf(&t, "\n]}\n");
  return ait_put_finish(&t, out);
}

ait_status ait_ops_page(char **out) {
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_ops_markdown(&t);
  return ait_put_finish(&t, out);
}

static ait_status find_missing(const char *path, const ait_load_options *options, ait_missing *m) {
  ait_file_kind kind;
  AIT_TRY(ait_import_detect(path, &kind));
  ait_import_options import = {.model_name = options->model_name};
  if (kind == AIT_FILE_PT2) return ait_import_pt2_operators(options->allocator, path, &import, m);
  if (kind == AIT_FILE_ONNX) return ait_import_onnx_operators(options->allocator, path, &import, m);
  ait_graph *graph;
  AIT_TRY(ait_graph_open(path, options, &graph));
  ait_status status = ait_missing_of_graph(graph, m);
  ait_graph_destroy(graph);
  return status;
}

static void print_missing(const ait_missing_operator *o, ait_text *t) {
  bool known = ait_op_find(o->name) != NULL, first = true;
  ait_text_printf(t, "\n{");
  ait_put_string(t, &first, "name", o->name);
  ait_put_int(t, &first, "nodes", o->nodes);
  ait_put_string(t, &first, "first_node", o->first_node);
  ait_put_string(t, &first, "why",
                 o->custom ? "a custom operator that is not registered"
                 : known   ? "known, but nothing runs it yet"
                           : "not in the operator list");
  ait_put_string(t, &first, "hint", o->custom ? "--plugin FILE.so, or ait_custom_op_add" : "it can be registered like a custom operator");
  ait_text_printf(t, "}");
}

ait_status ait_ops_missing(const char *path, const ait_load_options *options, char **out) {
  ait_load_options defaults;
  if (!options) ait_load_options_init(&defaults), options = &defaults;
  ait_missing missing;
  ait_missing_init(&missing, options->allocator);
  ait_status status = find_missing(path, options, &missing);
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(&t, "{\"missing\": [");
  for (size_t i = 0; status == AIT_OK && i < missing.by_name.count; ++i) {
    ait_text_printf(&t, "%s", i ? "," : "");
    print_missing(missing.by_name.entries[i].value, &t);
  }
  ait_text_printf(&t, "]}\n");
  ait_missing_deinit(&missing);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return ait_file_context(status, "read", path);
}

/* ---- passes ----------------------------------------------------------------------------------------------------------------------*/
ait_status ait_passes(char **out) {
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(&t, "{\"passes\": [");
  for (size_t i = 0; i < ait_pass_count(); ++i) {
    const ait_pass *pass = ait_pass_at(i);
    bool first = true;
    ait_text_printf(&t, "%s\n{", i ? "," : "");
    ait_put_string(&t, &first, "name", pass->name);
    ait_put_string(&t, &first, "help", pass->help);
    ait_put_bool(&t, &first, "changes_numbers", pass->changes_numbers);
    ait_text_printf(&t, "}");
  }
  ait_text_printf(&t, "]}\n");
  return ait_put_finish(&t, out);
}

typedef struct opt_printer {
  const char *after;
  ait_text *text;
  ait_status status;
} opt_printer;

static void print_after(void *ctx, const char *pass, const ait_graph *graph) {
  opt_printer *p = ctx;
  if (!p->after || p->status != AIT_OK || (strcmp(p->after, "all") && strcmp(p->after, pass))) return;
  ait_text_printf(p->text, "// after %s\n", pass);
  p->status = ait_graph_print(graph, p->text);
  ait_text_printf(p->text, "\n");
}

ait_status ait_opt(const char *path, const char *passes, const char *after, const ait_load_options *options, char **out) {
  *out = NULL;
  ait_graph *graph = NULL;
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  opt_printer printer = {.after = after, .text = &t};
  ait_pass_context context = {.allocator = ait_allocator_default()};
  ait_status status = ait_graph_open(path, options, &graph);
  if (status == AIT_OK && passes && *passes) status = ait_passes_run(graph, passes, &context, print_after, &printer);
  if (status == AIT_OK) status = printer.status;
  if (status == AIT_OK) status = ait_graph_print(graph, &t);
  ait_graph_destroy(graph);
  if (status == AIT_OK) return ait_put_finish(&t, out);
  ait_text_deinit(&t);
  return ait_file_context(status, "read", path);
}

/* ---- backends and machine --------------------------------------------------------------------------------------------------------*/
static void print_knobs(ait_text *t, const ait_knob *knobs) {
  ait_text_printf(t, ", \"knobs\": [");
  for (const ait_knob *k = knobs; k && k->name; ++k) {
    bool first = true;
    ait_text_printf(t, "%s{", k == knobs ? "" : ", ");
    ait_put_string(t, &first, "name", k->name);
    ait_put_string(t, &first, "default", k->default_value);
    ait_put_string(t, &first, "help", k->help);
    ait_text_printf(t, "}");
  }
  ait_text_printf(t, "]");
}

ait_status ait_backends(char **out) {
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_text_printf(&t, "{\"backends\": [");
  for (size_t i = 0; i < ait_backend_count(); ++i) {
    const ait_backend *b = ait_backend_at(i);
    ait_probe probe = {0};
    bool first = true;
    b->probe(&probe);
    ait_text_printf(&t, "%s\n{", i ? "," : "");
    ait_put_string(&t, &first, "name", b->name);
    ait_put_bool(&t, &first, "available", probe.available);
    ait_put_string(&t, &first, "version", probe.version);
    ait_put_string(&t, &first, "detail", probe.detail);
    ait_put_string(&t, &first, "summary", b->summary);
    print_knobs(&t, b->knobs);
    ait_text_printf(&t, "}");
  }
  ait_text_printf(&t, "]}\n");
  return ait_put_finish(&t, out);
}

ait_status ait_machine(char **out) {
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  char names[256];
  ait_cpu_names(ait_cpu_features(), names, sizeof names);
  ait_cpu_caches caches = ait_cpu_cache_sizes();
  bool first = true;
  ait_text_printf(&t, "{");
  ait_put_string(&t, &first, "cpu", ait_cpu_model());
  ait_put_string(&t, &first, "features", names);
  ait_put_int(&t, &first, "cores", ait_cpu_count());
  ait_put_int(&t, &first, "l1d_bytes", (int64_t)caches.l1d);
  ait_put_int(&t, &first, "l2_bytes", (int64_t)caches.l2);
  ait_put_int(&t, &first, "l3_bytes", (int64_t)caches.l3);
  ait_text_printf(&t, "}");
  return ait_put_finish(&t, out);
}

ait_status ait_cpu_mask(const char *text, uint64_t *out) { return ait_cpu_mask_parse(text, out); }
