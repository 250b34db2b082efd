/* ait tokenize: text to token ids and back, conversations to text and ids. */
#include "cli/cli.h"
#include "cli/texts.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef struct tokens {
  const cli_args *args;
  ait_model *model; /* NULL: a folder or a tokenizer.json */
  ait_tokenizer *tokenizer;
  cli_texts texts;
  struct json_object *results; /* one for each text */
} tokens;

static ait_status missing(const char *path) {
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' has no tokenizer", path),
                        "a folder with tokenizer.json, or an .ait that "
                        "'ait deploy' made of one");
}

static bool is_plain(const char *path) {
  struct stat s;
  size_t n = strlen(path);
  return (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) || (n > 5 && !strcmp(path + n - 5, ".json"));
}

static ait_status open_tokenizer(tokens *t) {
  const char *path = t->args->positional[0], *json;
  ait_allocator a = ait_allocator_default();
  size_t size;
  cli_load load;
  if (is_plain(path)) return ait_tokenizer_load(a, path, &t->tokenizer);
  ait_status status = cli_load_open(t->args, &load);
  if (status != AIT_OK) return status;
  load.options.skip_checksum = true; /* of the weights, which nobody asks for */
  status = ait_model_load(path, &load.options, &t->model);
  cli_load_close(&load);
  if (status != AIT_OK) return status;
  json = ait_model_entry(t->model, "tokenizer.json", &size);
  return json ? ait_tokenizer_parse(a, json, size, &t->tokenizer) : missing(path);
}

static struct json_object *new_text(const char *text, size_t size) { return json_object_new_string_len(text, (int)size); }

/* ---- to ids --------------------------------------------------------------------------------------------------------------------------*/
static struct json_object *spelled(const ait_tokenizer *t, const ait_token_list *ids) {
  struct json_object *list = json_object_new_array();
  for (size_t i = 0; i < ids->count; ++i) {
    size_t size;
    const char *text = ait_tokenizer_token(t, ids->ids[i], &size);
    json_object_array_add(list, text ? new_text(text, size) : NULL);
  }
  return list;
}

static ait_status encode(tokens *t, const char *text, size_t size, const ait_encode_options *o) {
  ait_token_list ids = {.allocator = ait_allocator_default()}, types = {.allocator = ids.allocator};
  const char *pair = cli_option(t->args, "pair");
  ait_status status = ait_tokenizer_encode_with(t->tokenizer, text, size, pair, pair ? strlen(pair) : 0, o, &ids, &types);
  if (status == AIT_OK) {
    struct json_object *one = json_object_new_object();
    json_object_object_add(one, "text", new_text(text, size));
    if (pair) json_object_object_add(one, "pair", json_object_new_string(pair));
    json_object_object_add(one, "ids", cli_ids_json(ids.ids, ids.count));
    json_object_object_add(one, "types", cli_ids_json(types.ids, types.count));
    json_object_object_add(one, "tokens", spelled(t->tokenizer, &ids));
    json_object_array_add(t->results, one);
  }
  ait_token_list_deinit(&ids);
  ait_token_list_deinit(&types);
  return status;
}

static int encode_texts(tokens *t) {
  ait_encode_options o;
  ait_encode_options_init(&o);
  if (!cli_int(t->args, "max-length", 1, 1 << 30, 0, &o.max_length)) return CLI_USAGE;
  o.flags = (cli_flag(t->args, "no-special") ? 0 : AIT_ENCODE_SPECIAL) | (cli_flag(t->args, "as-text") ? AIT_ENCODE_AS_TEXT : 0);
  for (size_t i = 0; i < t->texts.count; ++i) {
    ait_status status = ait_error_context(encode(t, t->texts.items[i], t->texts.sizes[i], &o), "text %zu", i + 1);
    if (status != AIT_OK) return cli_fail(status);
  }
  return CLI_DONE;
}

/* ---- from ids ------------------------------------------------------------------------------------------------------------------------*/
static ait_status decode(tokens *t, const ait_token_list *ids, int flags) {
  char *text;
  size_t size;
  ait_allocator a = ait_allocator_default();
  ait_status status = ait_tokenizer_decode(t->tokenizer, ids->ids, ids->count, flags, a, &text, &size);
  if (status != AIT_OK) return status;
  struct json_object *one = json_object_new_object();
  json_object_object_add(one, "ids", cli_ids_json(ids->ids, ids->count));
  json_object_object_add(one, "text", new_text(text, size));
  json_object_array_add(t->results, one);
  ait_text_free(a, text, size);
  return AIT_OK;
}

static int decode_all(tokens *t) {
  const char *text, *bad;
  int flags = (cli_flag(t->args, "skip-special") ? AIT_DECODE_SKIP_SPECIAL : 0) | (cli_flag(t->args, "clean-up") ? AIT_DECODE_CLEAN_UP : 0);
  for (int k = 0; (text = cli_option_at(t->args, "decode", k)); ++k) {
    ait_token_list ids = {.allocator = ait_allocator_default()};
    ait_status status = cli_ids_parse(text, &ids, &bad);
    if (status == AIT_OK && !bad) status = decode(t, &ids, flags);
    ait_token_list_deinit(&ids);
    if (bad) return cli_usage("--decode is '%s'; ids are written 1,2,3", text);
    if (status != AIT_OK) return cli_fail(status);
  }
  return CLI_DONE;
}

/* ---- conversations -------------------------------------------------------------------------------------------------------------------*/
static ait_status open_template(const tokens *t, ait_chat_template **out) {
  const char *path = t->args->positional[0], *name = cli_option(t->args, "template");
  ait_allocator a = ait_allocator_default();
  size_t source_size = 0, config_size = 0;
  if (!t->model) return ait_chat_template_load(a, path, name, out);
  const char *source = ait_model_entry(t->model, "chat_template.jinja", &source_size);
  const char *config = ait_model_entry(t->model, "tokenizer_config.json", &config_size);
  return ait_chat_template_make(a, source, source_size, config, config_size, name, out);
}

/* A list of messages, or the template's variables. */
static ait_status read_variables(const tokens *t, const char *path, struct json_object **out) {
  bool standard = !strcmp(path, "-");
  FILE *f = standard ? stdin : fopen(path, "rb");
  char *text = NULL;
  size_t size;
  if (!f) return ait_error(AIT_CODE_IO, "cannot open '%s'", path);
  ait_status status = cli_read_all(f, path, "a conversation", (size_t)64 << 20, &text, &size);
  if (!standard) fclose(f);
  if (status != AIT_OK) return status;
  struct json_object *v = json_tokener_parse(text);
  free(text);
  if (json_object_is_type(v, json_type_array)) {
    *out = json_object_new_object();
    json_object_object_add(*out, "messages", v);
  } else if (json_object_is_type(v, json_type_object)) {
    *out = v;
  } else {
    json_object_put(v);
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' holds neither a list of messages nor an object with one", path);
  }
  if (cli_flag(t->args, "generation-prompt")) json_object_object_add(*out, "add_generation_prompt", json_object_new_boolean(true));
  return AIT_OK;
}

static int render(tokens *t, const char *path) {
  struct json_object *variables = NULL;
  ait_chat_template *chat = NULL;
  char *text = NULL;
  size_t size = 0;
  const ait_chat_options options = {.now = (int64_t)time(NULL)};
  ait_encode_options plain;
  ait_encode_options_init(&plain);
  plain.flags = 0; /* begin tokens stand in the template */
  ait_status status = read_variables(t, path, &variables);
  if (status == AIT_OK) status = open_template(t, &chat);
  if (status == AIT_OK) {
    const char *json = json_object_to_json_string_ext(variables, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    status = ait_chat_template_render(chat, json, strlen(json), &options, ait_allocator_default(), &text, &size);
  }
  if (status == AIT_OK) status = encode(t, text, size, &plain);
  ait_text_free(ait_allocator_default(), text, size);
  ait_chat_template_destroy(chat);
  json_object_put(variables);
  return status != AIT_OK ? cli_fail(status) : CLI_DONE;
}

/* ---- results -------------------------------------------------------------------------------------------------------------------------*/
static struct json_object *member(struct json_object *o, const char *key) { return json_object_object_get(o, key); }

static void print_text(struct json_object *text) {
  fwrite(json_object_get_string(text), 1, (size_t)json_object_get_string_len(text), stdout);
  printf("\n");
}

static void print_ids(const tokens *t, struct json_object *one) {
  struct json_object *ids = member(one, "ids"), *words = member(one, "tokens"), *types = member(one, "types");
  size_t n = json_object_array_length(ids);
  if (!cli_flag(t->args, "verbose")) {
    for (size_t i = 0; i < n; ++i) printf("%s%d", i ? "," : "", json_object_get_int(json_object_array_get_idx(ids, i)));
    printf("\n");
    return;
  }
  cli_table table;
  cli_table_init(&table, 3, "RRL");
  cli_table_row(&table, "id", "type", "token");
  for (size_t i = 0; i < n; ++i) {
    char id[16], type[16];
    snprintf(id, sizeof id, "%d", json_object_get_int(json_object_array_get_idx(ids, i)));
    snprintf(type, sizeof type, "%d", json_object_get_int(json_object_array_get_idx(types, i)));
    const char *word = json_object_get_string(json_object_array_get_idx(words, i));
    cli_table_row(&table, id, type, word ? word : "");
  }
  cli_table_print(&table, stdout);
  cli_table_deinit(&table);
}

static int show(tokens *t, bool to_text) {
  if (cli_wants_json(t->args)) {
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "vocab_size", json_object_new_int(ait_tokenizer_vocab_size(t->tokenizer)));
    json_object_object_add(o, "texts", json_object_get(t->results));
    return cli_json(t->args, o);
  }
  for (size_t i = 0; i < json_object_array_length(t->results); ++i) {
    struct json_object *one = json_object_array_get_idx(t->results, i);
    if (to_text || cli_option(t->args, "chat")) print_text(member(one, "text"));
    if (!to_text) print_ids(t, one);
  }
  return CLI_DONE;
}

static int work(tokens *t) {
  const char *chat = cli_option(t->args, "chat");
  bool to_text = cli_option(t->args, "decode") != NULL;
  int code = cli_texts_read(t->args, cli_flag(t->args, "lines"), &t->texts);
  if (code != CLI_DONE) return code;
  ait_status status = open_tokenizer(t);
  if (status != AIT_OK) return cli_fail(status);
  code = to_text ? decode_all(t) : chat ? render(t, chat) : encode_texts(t);
  return code != CLI_DONE ? code : show(t, to_text);
}

int cli_cmd_tokenize(const cli_args *args) {
  tokens t = {.args = args, .results = json_object_new_array()};
  int ways =
      (cli_option(args, "text") || cli_option(args, "file")) + (cli_option(args, "decode") != NULL) + (cli_option(args, "chat") != NULL);
  int code = ways == 1 ? work(&t) : cli_usage("'ait tokenize' needs one of --text or --file, --decode, --chat");
  ait_tokenizer_destroy(t.tokenizer);
  ait_model_release(t.model);
  cli_texts_deinit(&t.texts);
  json_object_put(t.results);
  return cli_finish(code);
}
