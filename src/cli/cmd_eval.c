/* ait eval: the perplexity of a text under a language model. */
#include "cli/cli.h"
#include <stdlib.h>

static void progress(void *ctx, int64_t done, int64_t total) {
  (void)ctx;
  fprintf(stderr, "%lld of %lld tokens\n", (long long)done, (long long)total);
}

static int show(const cli_args *args, const ait_perplexity *p) {
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"perplexity", p->perplexity}, {"bits_per_byte", p->bits_per_byte}, {"nll", p->nll}, {"seconds", p->seconds}};
  if (!cli_wants_json(args)) {
    printf("perplexity %.4f, %.4f bits per byte, over %lld tokens\n", p->perplexity, p->bits_per_byte, (long long)p->tokens);
    return CLI_DONE;
  }
  struct json_object *o = json_object_new_object();
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    json_object_object_add(o, numbers[i].name, json_object_new_double(numbers[i].value));
  json_object_object_add(o, "tokens", json_object_new_int64(p->tokens));
  json_object_object_add(o, "windows", json_object_new_int64(p->windows));
  return cli_json(args, o);
}

int cli_cmd_eval(const cli_args *args) {
  const char *path = cli_option(args, "text");
  int64_t window, threads;
  cli_load load;
  ait_llm *llm = NULL;
  ait_perplexity result;
  char *text = NULL;
  size_t size = 0;
  if (!path) return cli_usage("'ait eval' needs --text FILE");
  if (!cli_int(args, "window", 2, 1 << 24, 0, &window) || !cli_int(args, "threads", 1, 4096, 0, &threads)) return CLI_USAGE;
  ait_status status = cli_load_open(args, &load);
  if (status == AIT_OK) status = ait_llm_load(args->positional[0], &load.options, &llm);
  cli_load_close(&load);
  if (status == AIT_OK) status = cli_read_text(path, &text, &size);
  bool tells = cli_flag(args, "verbose");
  if (status == AIT_OK) status = ait_llm_perplexity(llm, text, size, window, (int32_t)threads, tells ? progress : NULL, NULL, &result);
  int code = status != AIT_OK ? cli_fail(status) : show(args, &result);
  free(text);
  ait_llm_release(llm);
  return cli_finish(code);
}
