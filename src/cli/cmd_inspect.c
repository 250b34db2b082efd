/* ait inspect and ait explain. */
#include "cli/json_view.h"
#include "cli/roofline_cache.h"
#include <stdlib.h>
#include <string.h>

static void shape_text(struct json_object *port, char *out, size_t size) {
  snprintf(out, size, "%s%s", cli_member(port, "dtype"), *cli_member(port, "dtype") ? " [" : cli_member(port, "type"));
  for (size_t d = 0; d < cli_member_count(port, "shape"); ++d)
    snprintf(out + strlen(out), size - strlen(out), "%s%s", d ? ", " : "", json_object_get_string(cli_member_at(port, "shape", d)));
  if (*cli_member(port, "dtype")) snprintf(out + strlen(out), size - strlen(out), "]");
  if (cli_member_true(port, "baked")) snprintf(out + strlen(out), size - strlen(out), " (fixed by export)");
}

static void print_ports(struct json_object *o, const char *key, const char *title) {
  cli_table table;
  cli_table_init(&table, 3, "LLL");
  for (size_t i = 0; i < cli_member_count(o, key); ++i) {
    struct json_object *port = cli_member_at(o, key, i);
    char text[256];
    shape_text(port, text, sizeof text);
    cli_table_row(&table, i ? "" : title, cli_member(port, "name"), text);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static void print_symbols(struct json_object *o) {
  for (size_t i = 0; i < cli_member_count(o, "symbols"); ++i) {
    struct json_object *s = cli_member_at(o, "symbols", i);
    bool bounded = cli_member_object(s, "max") != NULL;
    printf("%s  %s = %s to %s%s\n", i ? "       " : "sizes  ", cli_member(s, "name"), cli_member(s, "min"),
           bounded ? cli_member(s, "max") : "any", cli_member_true(s, "from_inputs") ? "" : " (depends on data)");
  }
}

static void print_buckets(struct json_object *o) {
  for (size_t i = 0; i < cli_member_count(o, "buckets"); ++i) {
    struct json_object *b = cli_member_at(o, "buckets", i);
    printf("%s  %s: %s\n", i ? "       " : "tuned  ", cli_member(b, "sizes"),
           cli_member_true(b, "own_plan") ? "a plan of their own" : "the plan for all sizes");
  }
}

static int depth_of(const char *path) {
  int depth = *path != 0;
  for (; *path; ++path) depth += *path == '.';
  return depth;
}

/* The column after the work: time where it was measured, else what the roofline says. */
static void last_cells(struct json_object *o, struct json_object *m, char share[16], char last[16]) {
  double flops = cli_member_number(o, "flops"), seconds = cli_member_number(o, "seconds");
  snprintf(share, 16, "%.1f%%", flops > 0 ? 100 * cli_member_number(m, "flops") / flops : 0);
  snprintf(last, 16, "%.15s", cli_member(m, "bound_by"));
  if (!cli_member_object(o, "seconds")) return;
  cli_seconds(cli_member_number(m, "seconds"), last);
  snprintf(share, 16, "%.1f%%", seconds > 0 ? 100 * cli_member_number(m, "seconds") / seconds : 0);
}

static void print_modules(struct json_object *o, int max_depth) {
  cli_table table;
  bool timed = cli_member_object(o, "seconds") != NULL, bounded = cli_member_object(o, "roofline") != NULL;
  cli_table_init(&table, 7, "LLRRRRR");
  cli_table_row(&table, "module", "type", "calls", "params", "FLOP", timed ? "time" : "share", timed ? "share" : bounded ? "bound by" : "");
  for (size_t i = 0; i < cli_member_count(o, "modules"); ++i) {
    struct json_object *m = cli_member_at(o, "modules", i);
    const char *path = cli_member(m, "path"), *type = cli_member(m, "type"), *dot = strrchr(type, '.');
    int depth = depth_of(path);
    if (depth > max_depth) continue;
    char name[128], kind[24], parameters[16], flops[16], share[16], last[16];
    const char *leaf = strrchr(path, '.');
    snprintf(name, sizeof name, "%*s%.22s", 2 * depth, "", *path ? (leaf ? leaf + 1 : path) : "(root)");
    snprintf(kind, sizeof kind, "%.17s", dot ? dot + 1 : type);
    cli_count(cli_member_number(m, "parameters"), parameters);
    cli_count(cli_member_number(m, "flops"), flops);
    last_cells(o, m, share, last);
    cli_table_row(&table, name, kind, cli_member(m, "calls"), parameters, flops, timed ? last : share, timed ? share : last);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static void print_backends(struct json_object *o) {
  cli_table table;
  cli_table_init(&table, 5, "LLRRL");
  cli_table_row(&table, "backend", "takes it", "nodes", "FLOP", "first reason");
  for (size_t i = 0; i < cli_member_count(o, "backends"); ++i) {
    struct json_object *b = cli_member_at(o, "backends", i);
    char nodes[48], flops[16] = "-";
    snprintf(nodes, sizeof nodes, "%.15s/%.15s", cli_member(b, "covered_nodes"), cli_member(b, "nodes"));
    if (cli_member_object(b, "covered_flops")) snprintf(flops, sizeof flops, "%.0f%%", 100 * cli_member_number(b, "covered_flops"));
    cli_table_row(&table, cli_member(b, "name"), cli_member_true(b, "supported") ? "yes" : "no", nodes, flops,
                  cli_member(b, "first_reason"));
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static void print_signature(struct json_object *o) {
  struct json_object *s = cli_member_object(o, "signature");
  char line[192];
  if (!s) return; /* no .ait */
  cli_signature_text(cli_member(s, "state"), cli_member(s, "key"), cli_member(s, "fingerprint"), line);
  printf("%s\n\n", line);
}

static void print_bounds(struct json_object *o) {
  struct json_object *r = cli_member_object(o, "roofline");
  char roof[16], fused[16], peak[16], memory[16];
  if (!r) return;
  cli_seconds(cli_member_number(o, "roof_s"), roof);
  cli_count(cli_member_number(r, "flops_per_s"), peak);
  cli_bytes(cli_member_number(r, "memory_bytes_per_s"), memory);
  printf("measured here: %sFLOP/s, %s/s from memory\nbound by %s: at least %s a call\n", peak, memory, cli_member(o, "bound_by"), roof);
  if (cli_member_object(o, "predicted_gain")) {
    cli_seconds(cli_member_number(o, "fused_roof_s"), fused);
    printf("with everything fused that can be %s: up to %.2f times as fast\n", fused, cli_member_number(o, "predicted_gain"));
  }
  printf("\n");
}

/* The measured run of --data or --random. */
static ait_status load_inputs(const cli_args *args, ait_model **model, cli_inputs *inputs) {
  if (!cli_option(args, "data") && !cli_option(args, "random")) return AIT_OK;
  ait_status status = cli_model_open(args, args->positional[0], "null", model); /* to name the inputs */
  if (status != AIT_OK && ait_status_code(status) == AIT_CODE_UNSUPPORTED) {
    ait_status_free(status);
    status = cli_model_open(args, args->positional[0], "reference", model);
  }
  return status == AIT_OK ? cli_inputs_get(args, *model, "data", inputs) : status;
}

static ait_status inspect(const cli_args *args, int32_t threads, char **out) {
  cli_load load;
  ait_inspect_options options;
  ait_model *model = NULL;
  cli_inputs inputs = {0};
  ait_inspect_options_init(&options);
  options.threads = threads;
  char *roofline = NULL;
  bool wanted = !cli_flag(args, "no-roofline");
  if (wanted) roofline = cli_roofline_cached(threads);
  ait_status status = cli_load_open(args, &load);
  if (status == AIT_OK) status = load_inputs(args, &model, &inputs);
  if (status == AIT_OK && wanted && !roofline) { /* a model that cannot be opened costs no measurement */
    status = ait_inspect(args->positional[0], &load.options, out);
    ait_string_free(*out);
    *out = NULL;
    if (status == AIT_OK) roofline = cli_roofline_measure(args, threads);
  }
  options.roofline_json = roofline;
  options.inputs = inputs.count ? inputs.values : NULL;
  options.input_count = inputs.count;
  if (status == AIT_OK) status = ait_inspect_with(args->positional[0], &load.options, &options, out);
  cli_load_close(&load);
  cli_inputs_deinit(&inputs);
  ait_model_release(model);
  free(roofline);
  return status;
}

int cli_cmd_inspect(const cli_args *args) {
  int64_t depth;
  if (!cli_int(args, "depth", 0, 100, 3, &depth)) return CLI_USAGE;
  int code;
  int64_t threads;
  char *text = NULL;
  if (!cli_int(args, "threads", 1, 1024, 1, &threads)) return CLI_USAGE;
  ait_status status = inspect(args, (int32_t)threads, &text);
  struct json_object *o = cli_document(status, text, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  char bytes[16], flops[16], moved[16];
  cli_bytes(cli_member_number(o, "weight_bytes"), bytes);
  cli_bytes(cli_member_number(o, "bytes"), moved);
  cli_count(cli_member_number(o, "flops"), flops);
  printf("%s: %s by %s\n%s nodes, weights %s\n%s FLOP and %s moved a call, %.3g FLOP per byte\n", cli_member(o, "file"),
         cli_member(o, "name"), cli_member(o, "producer"), cli_member(o, "nodes"), bytes, flops, moved,
         cli_member_number(o, "flops_per_byte"));
  print_bounds(o);
  if (!cli_member_object(o, "roofline")) printf("\n");
  print_signature(o);
  if (cli_member_object(o, "deploy")) cli_print_deploy(cli_member_object(o, "deploy")), printf("\n");
  print_ports(o, "inputs", "inputs");
  print_ports(o, "outputs", "outputs");
  print_symbols(o);
  print_buckets(o);
  printf("\n");
  print_modules(o, (int)depth);
  printf("\n");
  print_backends(o);
  json_object_put(o);
  return CLI_DONE;
}

static bool alike(struct json_object *a, struct json_object *b) {
  return !strcmp(cli_member(a, "source"), cli_member(b, "source")) && !strcmp(cli_member(a, "code"), cli_member(b, "code")) &&
         strcmp(cli_member(a, "source"), "dimension");
}

/* One block for each source; unless all are wanted, of notes with the same code the first, and how many more there are. */
static void print_notes(struct json_object *o, bool all) {
  cli_table table;
  const char *source = "";
  size_t count = cli_member_count(o, "notes");
  cli_table_init(&table, 2, "LL");
  for (size_t i = 0; i < count; ++i) {
    struct json_object *n = cli_member_at(o, "notes", i);
    size_t more = 0;
    bool before = false;
    for (size_t k = 0; !all && k < count; ++k) {
      if (k == i || !alike(n, cli_member_at(o, "notes", k))) continue;
      before |= k < i;
      more += k > i;
    }
    if (before) continue;
    char text[640], place[160] = "";
    const char *node = cli_member(n, "node"), *module = cli_member(n, "module");
    if (strcmp(source, cli_member(n, "source"))) {
      cli_table_print(&table, stdout);
      cli_table_deinit(&table);
      cli_table_init(&table, 2, "LL");
      printf("%s%s\n", i ? "\n" : "", cli_member(n, "source"));
    }
    source = cli_member(n, "source");
    snprintf(place, sizeof place, "%.70s%s%.70s", module, *module && *node ? ", " : "", node);
    char code[40], extra[48] = "";
    if (more) snprintf(extra, sizeof extra, " (and %zu more: -v)", more);
    snprintf(code, sizeof code, "  %.30s", cli_member(n, "code"));
    snprintf(text, sizeof text, "%s%s%.400s%s", place, *place ? ": " : "", cli_member(n, "text"), extra);
    cli_table_row(&table, code, text);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

int cli_cmd_explain(const cli_args *args) {
  int code;
  char *text = NULL;
  cli_load load;
  ait_status status = cli_load_open(args, &load);
  if (status == AIT_OK)
    status = ait_explain(args->positional[0], args->positional_count > 1 ? args->positional[1] : NULL, &load.options, &text);
  cli_load_close(&load);
  struct json_object *o = cli_document(status, text, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  if (!cli_member_count(o, "notes")) printf("nothing was declined%s\n", args->positional_count > 1 ? " there" : "");
  print_notes(o, cli_flag(args, "verbose") || args->positional_count > 1);
  json_object_put(o);
  return CLI_DONE;
}
