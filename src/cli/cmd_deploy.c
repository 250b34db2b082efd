/* ait deploy: a causal language model becomes an .ait with caches. */
#include "cli/json_view.h"
#include <stdlib.h>

static void show(void *ctx, const char *line) {
  (void)ctx;
  fprintf(stderr, "%s\n", line);
}

/* ---- what was proven and measured ----------------------------------------------------------------------------------------------------*/
static void put_check(cli_table *table, const char *title, const char *what, struct json_object *check) {
  char text[160];
  if (!check) return;
  snprintf(text, sizeof text, "%s: %.2g in prefill, %.2g token by token, %.2g in pieces", what, cli_member_number(check, "prefill"),
           cli_member_number(check, "steps"), cli_member_number(check, "pieces"));
  cli_table_row(table, title, text);
}

static void put_perplexity(cli_table *table, struct json_object *o) {
  char text[160];
  struct json_object *before = cli_member_object(o, "float32"), *after = cli_member_object(o, "reduced");
  if (!o) return;
  double was = cli_member_number(before, "perplexity"), is = cli_member_number(after, "perplexity");
  snprintf(text, sizeof text, "%.4f in float32", was);
  if (after) snprintf(text, sizeof text, "%.4f, %+.3f %% of %.4f in float32", is, 100 * (is / was - 1), was);
  cli_table_row(table, "perplexity", text);
  snprintf(text, sizeof text, "of a text of %.0f bytes, %.0f tokens", cli_member_number(o, "text_bytes"), cli_member_number(o, "tokens"));
  cli_table_row(table, "", text);
}

void cli_print_deploy(struct json_object *o) {
  cli_table table;
  char text[160];
  struct json_object *p = cli_member_object(o, "precision");
  cli_table_init(&table, 2, "LL");
  snprintf(text, sizeof text, "weights %.16s (group %.0f), embedding %.16s, head %.16s, caches %.16s", cli_member(p, "quantize"),
           cli_member_number(p, "group"), cli_member(p, "embedding"), cli_member(p, "head"), cli_member(p, "kv_dtype"));
  cli_table_row(&table, "precision", text);
  double draft = cli_member_number(cli_member_object(o, "draft"), "bytes");
  snprintf(text, sizeof text, "a model of %.4g MB in the file", 1e-6 * draft);
  if (draft > 0) cli_table_row(&table, "draft", text);
  put_check(&table, "proof", "from the original's logits", cli_member_object(o, "proof"));
  put_check(&table, "", "with fewer bits", cli_member_object(o, "reduced"));
  put_perplexity(&table, cli_member_object(o, "perplexity"));
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

/* ---- the command ---------------------------------------------------------------------------------------------------------------------*/
static void print_result(struct json_object *o) {
  cli_table table;
  cli_table_init(&table, 2, "LL");
  for (size_t i = 0; i < cli_member_count(o, "groups"); ++i) {
    struct json_object *g = cli_member_at(o, "groups", i);
    char text[96], window[32] = "";
    if (cli_member_number(g, "window") > 0) snprintf(window, sizeof window, ", window %.0f", cli_member_number(g, "window"));
    snprintf(text, sizeof text, "%.0f in %.16s%s", cli_member_number(g, "layers"), cli_member(g, "kind"), window);
    cli_table_row(&table, i ? "" : "caches", text);
  }
  if (!cli_member_true(o, "cached")) cli_table_row(&table, "caches", "none: every step computes the whole sequence");
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
  cli_print_deploy(o);
}

static int deploy(const cli_args *args, const ait_deploy_options *options, const char *path) {
  char *json;
  int code;
  ait_status status = ait_deploy(args->positional[0], path, options, &json);
  struct json_object *o = cli_document(status, json, &code);
  if (!o) return code;
  if (cli_wants_json(args)) return cli_json(args, o);
  if (!cli_flag(args, "quiet")) print_result(o);
  json_object_put(o);
  return CLI_DONE;
}

int cli_cmd_deploy(const cli_args *args) {
  ait_deploy_options options;
  const char *path = cli_option(args, "output"), *eval = cli_option(args, "eval");
  char *text = NULL;
  if (!path) return cli_usage("'ait deploy' needs -o OUT.ait");
  ait_deploy_options_init(&options);
  if (!cli_int(args, "max-seq", 2, 1 << 24, 0, &options.max_seq)) return CLI_USAGE;
  if (!cli_int(args, "page-size", 1, 1024, 0, &options.page_size)) return CLI_USAGE;
  if (!cli_int(args, "group", 1, 1024, 0, &options.group)) return CLI_USAGE;
  if (!cli_int(args, "max-source", 1, 1 << 24, 0, &options.max_source)) return CLI_USAGE;
  options.quantize = cli_option(args, "quantize");
  options.embedding = cli_option(args, "embedding");
  options.head = cli_option(args, "head");
  options.kv_dtype = cli_option(args, "kv-dtype");
  options.weights = cli_option(args, "weights");
  options.draft = cli_option(args, "draft");
  options.allow_unmatched = cli_flag(args, "allow-unmatched");
  options.skip_proof = cli_flag(args, "no-proof");
  if (!cli_flag(args, "quiet")) options.note = show;
  ait_status status = eval ? cli_read_text(eval, &text, &options.eval_size) : AIT_OK;
  options.eval_text = text;
  int code = status ? cli_fail(status) : deploy(args, &options, path);
  free(text);
  return cli_finish(code);
}
