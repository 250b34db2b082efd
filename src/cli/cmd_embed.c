/* ait embed: a vector for each text. */
#include "cli/cli.h"
#include "cli/texts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct embedding {
  const cli_args *args;
  cli_texts texts;
  ait_tokenizer *tokenizer; /* --tokenizer */
  ait_model *model;
  ait_embedder *embedder;
  ait_embedder_info info;
  float *vectors;
  int64_t *tokens;
  double seconds;
} embedding;

static int read_options(const cli_args *args, ait_embedder_options *o) {
  int64_t batch, threads;
  const char *pooling = cli_option(args, "pooling"), *name;
  ait_embedder_options_init(o);
  if (!cli_int(args, "batch", 1, 4096, 0, &batch) || !cli_int(args, "threads", 1, 4096, 0, &threads) ||
      !cli_int(args, "max-length", 1, 1 << 24, 0, &o->max_length))
    return CLI_USAGE;
  o->batch = (int32_t)batch;
  o->threads = (int32_t)threads;
  o->normalize = cli_flag(args, "normalize") ? 1 : -1;
  o->prompt = cli_option(args, "prompt");
  o->prompt_name = cli_option(args, "prompt-name");
  if (o->prompt && o->prompt_name) return cli_usage("--prompt and --prompt-name exclude each other");
  for (int k = AIT_POOL_CLS; pooling && (name = ait_pooling_name((ait_pooling)k)); ++k)
    if (!strcmp(name, pooling)) return o->pooling = (ait_pooling)k, CLI_DONE;
  return pooling ? cli_usage("--pooling is '%s'; it can be cls, mean, mean_sqrt_len, max or lasttoken", pooling) : CLI_DONE;
}

static ait_status open_all(embedding *e, ait_embedder_options *o) {
  const char *path = cli_option(e->args, "tokenizer");
  ait_status status = cli_model_open(e->args, e->args->positional[0], "native", &e->model);
  if (status == AIT_OK && path) status = ait_tokenizer_load(ait_allocator_default(), path, &e->tokenizer);
  o->tokenizer = e->tokenizer;
  if (status == AIT_OK) status = ait_error_context(ait_embedder_create(e->model, o, &e->embedder), "'%s'", e->args->positional[0]);
  if (status == AIT_OK) e->info = ait_embedder_describe(e->embedder);
  return status;
}

static ait_status compute(embedding *e) {
  size_t n = e->texts.count;
  e->vectors = calloc(n * (size_t)e->info.size + 1, sizeof *e->vectors);
  e->tokens = calloc(n + 1, sizeof *e->tokens);
  if (!e->vectors || !e->tokens) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  double start = cli_now();
  ait_status status = ait_embedder_run(e->embedder, e->texts.items, e->texts.sizes, n, e->vectors, e->tokens);
  e->seconds = cli_now() - start;
  return status;
}

static ait_status save(const embedding *e, const char *path) {
  ait_data *data;
  const int64_t shape[2] = {(int64_t)e->texts.count, e->info.size};
  const ait_tensor vectors = ait_tensor_borrow(e->vectors, AIT_F32, 2, shape), tokens = ait_tensor_borrow(e->tokens, AIT_I64, 1, shape);
  ait_status status = ait_data_create(ait_allocator_default(), &data);
  if (status != AIT_OK) return status;
  status = ait_data_add(data, "embeddings", &vectors);
  if (status == AIT_OK) status = ait_data_add(data, "tokens", &tokens);
  if (status == AIT_OK) status = ait_data_save(data, path);
  ait_data_destroy(data);
  return status;
}

static int show_json(const embedding *e) {
  struct json_object *o = json_object_new_object(), *list = json_object_new_array();
  json_object_object_add(o, "size", json_object_new_int64(e->info.size));
  json_object_object_add(o, "max_length", json_object_new_int64(e->info.max_length));
  json_object_object_add(o, "normalized", json_object_new_boolean(e->info.normalized));
  json_object_object_add(o, "prompt", json_object_new_string(e->info.prompt));
  json_object_object_add(o, "seconds", json_object_new_double(e->seconds));
  for (size_t i = 0; i < e->texts.count; ++i) {
    struct json_object *one = json_object_new_object(), *vector = json_object_new_array();
    json_object_object_add(one, "text", json_object_new_string_len(e->texts.items[i], (int)e->texts.sizes[i]));
    json_object_object_add(one, "tokens", json_object_new_int64(e->tokens[i]));
    for (int64_t d = 0; d < e->info.size; ++d) {
      char digits[32];
      float x = e->vectors[(int64_t)i * e->info.size + d];
      snprintf(digits, sizeof digits, "%.9g", (double)x);
      json_object_array_add(vector, isfinite(x) ? json_object_new_double_s((double)x, digits) : NULL);
    }
    json_object_object_add(one, "embedding", vector);
    json_object_array_add(list, one);
  }
  json_object_object_add(o, "embeddings", list);
  return cli_json(e->args, o);
}

static void show_table(const embedding *e) {
  cli_table table;
  cli_table_init(&table, 4, "RRLL");
  cli_table_row(&table, "tokens", "length", "first numbers", "text");
  for (size_t i = 0; i < e->texts.count; ++i) {
    char tokens[24], length[24], numbers[96] = "", text[41];
    const float *x = e->vectors + (int64_t)i * e->info.size;
    double sum = 0;
    for (int64_t d = 0; d < e->info.size; ++d) sum += (double)x[d] * (double)x[d];
    for (int64_t d = 0; d < e->info.size && d < 4; ++d)
      snprintf(numbers + strlen(numbers), sizeof numbers - strlen(numbers), "%s%.4g", d ? ", " : "", (double)x[d]);
    size_t n = e->texts.sizes[i] < 40 ? e->texts.sizes[i] : 40;
    while (n < e->texts.sizes[i] && n > 0 && ((unsigned char)e->texts.items[i][n] & 0xC0) == 0x80) --n; /* whole characters */
    memcpy(text, e->texts.items[i], n);
    text[n] = 0;
    snprintf(tokens, sizeof tokens, "%lld", (long long)e->tokens[i]);
    snprintf(length, sizeof length, "%.4g", sqrt(sum));
    cli_table_row(&table, tokens, length, numbers, text);
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static int report(const embedding *e) {
  const char *output = cli_option(e->args, "output");
  if (output) {
    ait_status status = save(e, output);
    if (status != AIT_OK) return cli_fail(status);
  }
  if (cli_wants_json(e->args)) return show_json(e);
  if (!output) show_table(e);
  if (!cli_flag(e->args, "quiet"))
    fprintf(stderr, "%zu texts, %lld numbers each, in %.3f s\n", e->texts.count, (long long)e->info.size, e->seconds);
  return CLI_DONE;
}

int cli_cmd_embed(const cli_args *args) {
  embedding e = {.args = args};
  ait_embedder_options options;
  int code = read_options(args, &options);
  if (code == CLI_DONE && !cli_option(args, "text") && !cli_option(args, "file"))
    code = cli_usage("'ait embed' needs --text TEXT or --file FILE");
  if (code == CLI_DONE) code = cli_texts_read(args, true, &e.texts);
  if (code == CLI_DONE) {
    ait_status status = open_all(&e, &options);
    if (status == AIT_OK) status = compute(&e);
    code = status != AIT_OK ? cli_fail(status) : report(&e);
  }
  ait_embedder_destroy(e.embedder);
  ait_tokenizer_destroy(e.tokenizer);
  ait_model_release(e.model);
  cli_texts_deinit(&e.texts);
  free(e.vectors);
  free(e.tokens);
  return cli_finish(code);
}
