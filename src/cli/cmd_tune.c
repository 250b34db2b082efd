/* ait tune and ait report. */
#include "cli/json_view.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BACKENDS = 32, MAX_MODULES = 32, MAX_SAMPLES = 64 };

static volatile bool interrupted;
static void on_interrupt(int signal_number) {
  (void)signal_number;
  if (interrupted) _exit(CLI_INTERRUPTED); /* asked twice: now. What was tried is in the record */
  interrupted = true;
}

/* ---- progress: a bar on a terminal, plain lines elsewhere ------------------------------------------------------------------------*/
typedef struct bar {
  bool terminal, quiet, drawn;
} bar;

static void clear_bar(bar *b) {
  if (b->drawn) fputs("\r\033[K", stderr);
  b->drawn = false;
}

static void on_progress(void *ctx, const ait_tune_progress *p) {
  bar *b = ctx;
  if (b->quiet) return;
  if (p->line) {
    clear_bar(b);
    fprintf(stderr, "%s\n", p->line);
  }
  if (!b->terminal) return;
  int width = 20, filled = p->total ? (int)(width * p->done / p->total) : 0;
  fprintf(stderr, "\r\033[K[%.*s%.*s] %u/%u %s %.40s %.0f s", filled, "####################", width - filled, "--------------------",
          p->done, p->total, p->phase, p->candidate, p->seconds);
  fflush(stderr);
  b->drawn = true;
}

/* ---- options ---------------------------------------------------------------------------------------------------------------------*/
static int parse_options(const cli_args *args, ait_tune_options *o, char *record, size_t record_size, char *names, size_t names_size,
                         const char **backends, const char **modules, const char **wishes, const char **buckets) {
  int64_t threads, seed;
  ait_tune_options_init(o);
  if (!cli_int(args, "threads", 1, 1024, 0, &threads) || !cli_int(args, "seed", 0, INT64_MAX, 0, &seed) ||
      !cli_double(args, "budget", 60, &o->budget_seconds) || !cli_double(args, "trial-limit", 120, &o->trial_seconds))
    return CLI_USAGE;
  o->threads = (int32_t)threads;
  o->seed = (uint64_t)seed;
  o->from_record = cli_flag(args, "from-record");
  o->strategy = cli_option(args, "strategy");
  o->regions = cli_option(args, "regions");
  const char *module;
  size_t pins = 0;
  while (pins < MAX_MODULES && (module = cli_option_at(args, "module", (int)pins))) modules[pins++] = module;
  modules[pins] = NULL;
  o->module_backends = modules;
  size_t sizes = 0;
  while (sizes < MAX_MODULES && (buckets[sizes] = cli_option_at(args, "buckets", (int)sizes))) ++sizes;
  buckets[sizes] = NULL;
  o->buckets = sizes ? buckets : NULL;
  o->model_name = cli_option(args, "model-name");
  o->weights = cli_option(args, "weights");
  const char *tolerance = cli_option(args, "tolerance"), *list = cli_option(args, "backends"), *isa = cli_option(args, "isa");
  if (tolerance && sscanf(tolerance, "%lf,%lf", &o->rtol, &o->atol) != 2)
    return cli_usage("option '--tolerance': '%s' is not RTOL,ATOL", tolerance);
  if (isa) {
    ait_status status = ait_cpu_mask(isa, &o->cpu_mask);
    if (status != AIT_OK) return cli_fail(status);
  }
  if (list) {
    size_t n = 0;
    snprintf(names, names_size, "%s", list);
    char *save = NULL;
    for (char *b = strtok_r(names, ",", &save); b && n < MAX_BACKENDS; b = strtok_r(NULL, ",", &save)) backends[n++] = b;
    backends[n] = NULL;
    o->backends = backends;
  }
  pins = 0;
  while (pins < MAX_MODULES && (module = cli_option_at(args, "module-strategy", (int)pins))) wishes[pins++] = module;
  wishes[pins] = NULL;
  o->module_strategies = wishes;
  o->batch_sizes = cli_option(args, "batch-sizes");
  if (!cli_byte_count(args, "memory", &o->memory_bytes)) return CLI_USAGE;
  o->record_path = cli_record_path(args, record, record_size);
  o->append = cli_flag(args, "append");
  o->embed_samples = cli_flag(args, "embed-samples");
  return CLI_DONE;
}

/* ---- samples: each --data file is one call ---------------------------------------------------------------------------------------*/
typedef struct sample_set {
  cli_inputs inputs[MAX_SAMPLES];
  ait_sample samples[MAX_SAMPLES];
  size_t count;
} sample_set;

static int is_sample_file(const struct dirent *e) {
  size_t n = strlen(e->d_name);
  return (n > 4 && !strcmp(e->d_name + n - 4, ".npz")) || (n > 12 && !strcmp(e->d_name + n - 12, ".safetensors"));
}

/* One file, one call. */
static ait_status load_sample(const char *path, ait_model *model, int64_t rows, sample_set *s) {
  cli_args one = {.option_count = 1, .options[0] = {"data", path}};
  cli_inputs *inputs = &s->inputs[s->count];
  ait_status status = cli_inputs_load(&one, model, "data", inputs);
  if (status != AIT_OK) return status;
  cli_inputs_take_rows(inputs, rows);
  s->samples[s->count++] = (ait_sample){inputs->values, inputs->count};
  return AIT_OK;
}

/* A folder's .npz and .safetensors files in the order of their names. *out_is_folder: false when it is none. */
static ait_status load_folder(const char *path, ait_model *model, int64_t rows, sample_set *s, bool *out_is_folder) {
  struct dirent **names;
  int n = scandir(path, &names, is_sample_file, alphasort);
  *out_is_folder = n >= 0;
  ait_status status = n == 0 ? ait_error(AIT_CODE_NOT_FOUND, "folder '%s' holds no .npz or .safetensors file", path) : AIT_OK;
  for (int i = 0; i < n; ++i) {
    char file[4096];
    snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
    if (status == AIT_OK && s->count < MAX_SAMPLES) status = load_sample(file, model, rows, s);
    free(names[i]);
  }
  if (n >= 0) free(names);
  return status;
}

/* name=file options belong to one call; each other --data is a call of its own, or a folder of them. */
static ait_status load_samples(const cli_args *args, ait_model *model, int64_t rows, sample_set *s) {
  if (cli_option(args, "random")) {
    ait_status status = cli_inputs_get(args, model, "data", &s->inputs[0]);
    if (status == AIT_OK) s->samples[s->count++] = (ait_sample){s->inputs[0].values, s->inputs[0].count};
    return status;
  }
  bool named = cli_option(args, "data") && strchr(cli_option(args, "data"), '=');
  if (named) {
    ait_status status = cli_inputs_load(args, model, "data", &s->inputs[0]);
    if (status != AIT_OK) return status;
    cli_inputs_take_rows(&s->inputs[0], rows);
    s->samples[s->count++] = (ait_sample){s->inputs[0].values, s->inputs[0].count};
  }
  for (int k = 0; !named && cli_option_at(args, "data", k) && s->count < MAX_SAMPLES; ++k) {
    bool folder;
    ait_status status = load_folder(cli_option_at(args, "data", k), model, rows, s, &folder);
    if (status == AIT_OK && !folder) status = load_sample(cli_option_at(args, "data", k), model, rows, s);
    if (status != AIT_OK) return status;
  }
  if (s->count) return AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "no sample inputs are given"), "use --data FILE.npz, or --random SEED");
}

static int write_page(const char *report, const char *path) {
  char *page = NULL;
  ait_status status = ait_report_html(report, &page);
  if (status != AIT_OK) return cli_fail(status);
  int code = cli_write_file(path, page);
  ait_string_free(page);
  return code;
}

static int print_report(const cli_args *args, char *report) {
  int code = CLI_DONE;
  const char *file = cli_option(args, "json"), *page = cli_option(args, "html");
  if (page) {
    code = write_page(report, page);
    if (code != CLI_DONE) return code;
    if (!cli_flag(args, "quiet")) fprintf(stderr, "wrote %s\n", page);
    if (!file && !strcmp(args->command, "report")) return code; /* the page was wanted, not the table */
  }
  if (file) {
    struct json_object *o = json_tokener_parse(report);
    if (o) code = cli_json(args, o);
  }
  if (!file || *file) {
    char *text = NULL;
    ait_status status = ait_report_text(report, &text);
    if (status != AIT_OK) return cli_fail(status);
    fputs(text, stdout);
    ait_string_free(text);
  }
  return code;
}

static ait_status tune(const cli_args *args, const ait_tune_options *options, int64_t rows, const char *out, char **report) {
  ait_model *model = NULL; /* to name the inputs; tuning opens the file itself */
  sample_set *s = calloc(1, sizeof *s);
  ait_status status = s ? cli_model_open(args, args->positional[0], "null", &model) : ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  if (status != AIT_OK && ait_status_code(status) == AIT_CODE_UNSUPPORTED) { /* data-dependent sizes: only the reference takes it */
    ait_status_free(status);
    status = cli_model_open(args, args->positional[0], "reference", &model);
  }
  if (status == AIT_OK) status = load_samples(args, model, rows, s);
  ait_model_release(model);
  if (status == AIT_OK) status = ait_tune(args->positional[0], out, s->samples, s->count, options, report);
  for (size_t i = 0; s && i < s->count; ++i) cli_inputs_deinit(&s->inputs[i]);
  free(s);
  return status;
}

int cli_cmd_tune(const cli_args *args) {
  ait_tune_options options;
  char record[1024], names[512], *report = NULL;
  const char *backends[MAX_BACKENDS + 1], *modules[MAX_MODULES + 1], *wishes[MAX_MODULES + 1], *buckets[MAX_MODULES + 1],
      *out = cli_option(args, "output");
  if (!out) return cli_usage("'ait tune' needs -o OUT.ait");
  int64_t rows;
  if (!cli_int(args, "batch", 1, INT64_MAX, INT64_MAX, &rows)) return CLI_USAGE;
  int code = parse_options(args, &options, record, sizeof record, names, sizeof names, backends, modules, wishes, buckets);
  if (code != CLI_DONE) return code;
  bar b = {.terminal = isatty(STDERR_FILENO), .quiet = cli_flag(args, "quiet")};
  ait_keys *keys = NULL;
  options.sign_key = cli_option(args, "sign");
  if (options.sign_key) {
    ait_status opened = cli_keys_open(args, &keys);
    if (opened == AIT_OK) opened = cli_keys_need(args, keys, options.sign_key);
    if (opened != AIT_OK) return ait_keys_destroy(keys), cli_fail(opened);
    options.keys = keys;
  }
  options.progress = on_progress;
  options.progress_ctx = &b;
  options.cancel = &interrupted;
  signal(SIGINT, on_interrupt);
  signal(SIGTERM, on_interrupt);
  ait_status status = tune(args, &options, rows, out, &report);
  clear_bar(&b);
  ait_keys_destroy(keys);
  if (report) code = print_report(args, report);
  ait_string_free(report);
  if (status != AIT_OK) return cli_fail(status);
  if (!cli_flag(args, "quiet")) fprintf(stderr, "wrote %s\n", out);
  return code;
}

/* ---- ait report -------------------------------------------------------------------------------------------------------------- */
static struct json_object *signature_json(ait_signature s) {
  struct json_object *o = json_object_new_object();
  json_object_object_add(o, "state", json_object_new_string(ait_signature_state_name(s.state)));
  if (s.state == AIT_SIGNATURE_UNSIGNED) return o;
  json_object_object_add(o, "key", json_object_new_string(s.key_name));
  json_object_object_add(o, "fingerprint", json_object_new_string(s.fingerprint));
  return o;
}

static struct json_object *plans_json(const ait_model *model) {
  struct json_object *list = json_object_new_array();
  ait_plan_info p;
  for (size_t i = 0; ait_model_plan(model, i, &p); ++i) {
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "target", json_object_new_string(p.target));
    json_object_object_add(o, "machine", json_object_new_string(p.machine));
    json_object_object_add(o, "cpu", json_object_new_string(p.cpu));
    json_object_object_add(o, "threads", json_object_new_int(p.threads));
    json_object_object_add(o, "runs", json_object_new_boolean(p.runs));
    json_object_object_add(o, "made_here", json_object_new_boolean(p.made_here));
    json_object_object_add(o, "why_not", json_object_new_string(p.why_not));
    json_object_array_add(list, o);
  }
  return list;
}

/* What a tuning here could gain; "" when the plan that runs was tuned on such a CPU. */
static void advice(const ait_model *model, const char *path, char *out, size_t size) {
  ait_plan_info p;
  bool runs = false, here = false;
  const char *machine = "";
  for (size_t i = 0; ait_model_plan(model, i, &p); ++i)
    if (p.runs) runs = true, here = p.made_here || !*p.machine, machine = p.machine;
  *out = 0;
  if (runs && here) return;
  if (runs) snprintf(out, size, "the plan that runs here was tuned on another CPU (%s)", machine);
  else snprintf(out, size, "no plan of the file runs here: the portable graph gives the same answers, slowly");
  snprintf(out + strlen(out), size - strlen(out), "; 'ait tune MODEL --data D -o %s --append' adds one for this machine", path);
}

static void print_note(const char *text) {
  cli_table table;
  cli_table_init(&table, 2, "LL");
  cli_table_row(&table, "note", text);
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static void print_plans(const ait_model *model) {
  cli_table table;
  ait_plan_info p;
  cli_table_init(&table, 4, "LLRL");
  cli_table_row(&table, "  plan", "tuned on", "threads", "here");
  for (size_t i = 0; ait_model_plan(model, i, &p); ++i) {
    char target[64], machine[32], threads[16];
    snprintf(target, sizeof target, "%s %.58s", p.runs ? "*" : " ", p.target);
    snprintf(machine, sizeof machine, "%.28s", *p.machine ? p.machine : "?");
    snprintf(threads, sizeof threads, "%d", p.threads);
    cli_table_row(&table, target, machine, threads, p.runs ? "runs" : p.why_not);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

struct json_object *cli_model_report(const ait_model *model) {
  ait_plan_info p, chosen = {0};
  for (size_t i = 0; ait_model_plan(model, i, &p); ++i)
    if (i == 0 || p.runs) chosen = p;
  struct json_object *o = NULL;
  if (chosen.report) {
    struct json_tokener *tokener = json_tokener_new();
    o = tokener ? json_tokener_parse_ex(tokener, chosen.report, (int)chosen.report_size) : NULL;
    json_tokener_free(tokener);
  } else {
    struct json_object *manifest = json_tokener_parse(ait_model_manifest(model));
    o = json_object_get(cli_member_object(manifest, "tuning"));
    json_object_put(manifest);
  }
  if (json_object_is_type(o, json_type_object)) return o;
  json_object_put(o);
  return NULL;
}

static int report_of(const cli_args *args, const ait_model *model, struct json_object *tuning) {
  char note[512], line[192];
  ait_signature s = ait_model_signature(model);
  advice(model, args->positional[0], note, sizeof note);
  json_object_object_add(tuning, "signature", signature_json(s));
  json_object_object_add(tuning, "plans", plans_json(model));
  json_object_object_add(tuning, "advice", json_object_new_string(note));
  int code = print_report(args, (char *)(uintptr_t)json_object_to_json_string(tuning));
  const char *file = cli_option(args, "json");
  if (code != CLI_DONE || (file && !*file) || (cli_flag(args, "html") && !file)) return code;
  printf("\n");
  print_plans(model);
  if (*note) print_note(note);
  cli_signature_text(ait_signature_state_name(s.state), s.key_name, s.fingerprint, line);
  printf("\n%s\n", line);
  return code;
}

/* Of a language model without a tuning: what `ait deploy` proved and measured. */
static int report_deploy(const cli_args *args, const ait_model *model) {
  struct json_object *manifest = json_tokener_parse(ait_model_manifest(model)), *deploy = cli_member_object(manifest, "deploy");
  char line[192];
  ait_signature s = ait_model_signature(model);
  int code = CLI_DONE;
  if (!deploy || cli_flag(args, "html"))
    code = cli_fail(
        ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "'%s' holds no tuning report", args->positional[0]), "'ait tune' writes one"));
  else if (cli_wants_json(args)) {
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "deploy", json_object_get(deploy));
    json_object_object_add(o, "signature", signature_json(s));
    json_object_object_add(o, "plans", plans_json(model));
    code = cli_json(args, o);
  } else {
    cli_print_deploy(deploy);
    cli_signature_text(ait_signature_state_name(s.state), s.key_name, s.fingerprint, line);
    printf("\n%s\n", line);
  }
  json_object_put(manifest);
  return code;
}

int cli_cmd_report(const cli_args *args) {
  ait_model *model = NULL;
  cli_load load;
  ait_status status = cli_load_open(args, &load);
  if (status == AIT_OK) status = ait_model_load(args->positional[0], &load.options, &model);
  cli_load_close(&load);
  if (status != AIT_OK) return cli_fail(status);
  struct json_object *tuning = cli_model_report(model);
  int code = tuning ? report_of(args, model, tuning) : report_deploy(args, model);
  json_object_put(tuning);
  ait_model_release(model);
  return code;
}
