/* Requests for ait generate: -p, --tokens, or a line of JSON each. docs/json.md has the keys. */
#include "cli/generate.h"
#include "cli/texts.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- engine options ------------------------------------------------------------------------------------------------------------------*/
static bool bytes_option(const cli_args *args, const char *name, size_t *out) {
  const char *text = cli_option(args, name);
  char *end;
  if (!text) return true;
  double value = strtod(text, &end), unit = *end == 'K' ? 1024.0 : *end == 'M' ? 1048576.0 : *end == 'G' ? 1073741824.0 : 1;
  if (unit > 1) ++end;
  if (end == text || *end || !(value >= 1) || value * unit > 1e15)
    return cli_usage("--%s is '%s'; a size is 200M, 2G or bytes", name, text), false;
  *out = (size_t)(value * unit);
  return true;
}

static bool int32_option(const cli_args *args, const char *name, int64_t min, int64_t max, int32_t *out) {
  int64_t v = 0;
  if (!cli_int(args, name, min, max, 0, &v)) return false;
  *out = (int32_t)v;
  return true;
}

int gen_engine_options(const cli_args *args, ait_engine_options *out) {
  const char *speculate = cli_option(args, "speculate");
  ait_engine_options_init(out);
  if (!int32_option(args, "threads", 1, 4096, &out->threads) || !int32_option(args, "step-tokens", 1, 1 << 20, &out->max_tokens) ||
      !int32_option(args, "max-sequences", 1, 256, &out->max_sequences) || !int32_option(args, "draft-tokens", 1, 16, &out->draft_tokens) ||
      !cli_int(args, "max-seq", 2, 1 << 24, 0, &out->max_seq) || !bytes_option(args, "cache", &out->cache_bytes))
    return CLI_USAGE;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (out->threads == 0) out->threads = processors < 1 ? 1 : processors > 64 ? 64 : (int32_t)processors;
  out->no_prefix_reuse = cli_flag(args, "no-prefix-reuse");
  out->no_overlap = cli_flag(args, "no-overlap");
  if (speculate && strcmp(speculate, "ngram") && strcmp(speculate, "draft") && strcmp(speculate, "none"))
    return cli_usage("--speculate is '%s'; it can be ngram, draft or none", speculate);
  bool drafts = speculate ? !strcmp(speculate, "draft") : cli_option(args, "draft") != NULL;
  out->speculation = drafts ? AIT_SPECULATE_DRAFT : speculate && !strcmp(speculate, "ngram") ? AIT_SPECULATE_NGRAM : AIT_SPECULATE_NONE;
  return CLI_DONE;
}

/* ---- a request's values --------------------------------------------------------------------------------------------------------------*/
static bool float_option(const cli_args *args, const char *name, float *out) {
  double v = (double)*out;
  if (!cli_double(args, name, v, &v)) return false;
  *out = (float)v;
  return true;
}

/* What the command line says, for every request that does not say otherwise. */
static bool defaults(const cli_args *args, ait_request *r) {
  int64_t n, seed, answers, logprobs, top_k;
  ait_request_init(r);
  if (!cli_int(args, "max-tokens", 1, 1 << 24, 256, &n) || !cli_int(args, "answers", 1, 1024, 1, &answers) ||
      !cli_int(args, "seed", 0, INT64_MAX, 0, &seed) || !cli_int(args, "logprobs", 0, 20, -1, &logprobs) ||
      !cli_int(args, "top-k", 0, INT32_MAX, 0, &top_k))
    return false;
  r->max_tokens = (uint32_t)n;
  r->n = (uint32_t)answers;
  r->logprobs = (int32_t)logprobs;
  r->ignore_stop_tokens = cli_flag(args, "ignore-stop");
  r->sampling.seed = (uint64_t)seed;
  r->sampling.top_k = (int32_t)top_k;
  return float_option(args, "temperature", &r->sampling.temperature) && float_option(args, "top-p", &r->sampling.top_p) &&
         float_option(args, "min-p", &r->sampling.min_p) && float_option(args, "repetition-penalty", &r->sampling.repetition_penalty) &&
         float_option(args, "presence-penalty", &r->sampling.presence_penalty) &&
         float_option(args, "frequency-penalty", &r->sampling.frequency_penalty);
}

static ait_status wrong(const char *key, const char *want) { return ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is not %s", key, want); }

static ait_status read_number(struct json_object *o, const char *key, double low, double high, double *out) {
  struct json_object *v;
  if (!json_object_object_get_ex(o, key, &v)) return AIT_OK;
  if (!json_object_is_type(v, json_type_int) && !json_object_is_type(v, json_type_double)) return wrong(key, "a number");
  *out = json_object_get_double(v);
  return *out >= low && *out <= high ? AIT_OK
                                     : ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is %g, it goes from %g to %g", key, *out, low, high);
}

#define READ(o, key, low, high, field, type)          \
  do {                                                \
    double value_ = (double)(field);                  \
    status = read_number(o, key, low, high, &value_); \
    if (status != AIT_OK) return status;              \
    (field) = (type)value_;                           \
  } while (0)

static ait_status read_values(struct json_object *o, gen_job *job) {
  ait_status status;
  ait_request *r = &job->request;
  struct json_object *v;
  READ(o, "max_tokens", 1, 1 << 24, r->max_tokens, uint32_t);
  READ(o, "n", 1, 1024, r->n, uint32_t);
  READ(o, "logprobs", 0, 20, r->logprobs, int32_t);
  READ(o, "temperature", 0, 1e6, r->sampling.temperature, float);
  READ(o, "top_k", 0, INT32_MAX, r->sampling.top_k, int32_t);
  READ(o, "top_p", 0, 1, r->sampling.top_p, float);
  READ(o, "min_p", 0, 1, r->sampling.min_p, float);
  READ(o, "repetition_penalty", 0, 1e6, r->sampling.repetition_penalty, float);
  READ(o, "presence_penalty", -1e6, 1e6, r->sampling.presence_penalty, float);
  READ(o, "frequency_penalty", -1e6, 1e6, r->sampling.frequency_penalty, float);
  READ(o, "seed", 0, 9007199254740992.0, r->sampling.seed, uint64_t);
  READ(o, "at", 0, 1e9, job->at, double);
  if (json_object_object_get_ex(o, "ignore_stop", &v)) r->ignore_stop_tokens = json_object_get_boolean(v);
  if (json_object_object_get_ex(o, "id", &v)) job->name = json_object_get(v);
  return AIT_OK;
}

static ait_status read_stops(struct json_object *o, gen_job *job) {
  struct json_object *v;
  if (!json_object_object_get_ex(o, "stop", &v) || !v) return AIT_OK;
  bool list = json_object_is_type(v, json_type_array);
  size_t n = list ? json_object_array_length(v) : 1;
  job->stops = calloc(n + 1, sizeof *job->stops);
  if (!job->stops) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  for (size_t i = 0; i < n; ++i) {
    struct json_object *one = list ? json_object_array_get_idx(v, i) : v;
    if (!json_object_is_type(one, json_type_string)) return wrong("stop", "a string or a list of strings");
    job->stops[i] = json_object_get_string(one);
  }
  job->request.stops = job->stops;
  job->request.stop_count = n;
  return AIT_OK;
}

static ait_status read_bias(struct json_object *o, gen_job *job) {
  struct json_object *v;
  if (!json_object_object_get_ex(o, "logit_bias", &v) || !v) return AIT_OK;
  if (!json_object_is_type(v, json_type_object)) return wrong("logit_bias", "an object of token ids");
  size_t n = (size_t)json_object_object_length(v), i = 0;
  job->bias_tokens = calloc(n + 1, sizeof *job->bias_tokens);
  job->bias = calloc(n + 1, sizeof *job->bias);
  if (!job->bias_tokens || !job->bias) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  json_object_object_foreach(v, key, value) {
    char *end;
    long token = strtol(key, &end, 10);
    bool number = json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
    if (end == key || *end || token < 0 || token > INT32_MAX || !number) return wrong("logit_bias", "an object from token ids to numbers");
    job->bias_tokens[i] = (int32_t)token;
    job->bias[i++] = (float)json_object_get_double(value);
  }
  job->request.sampling.bias_tokens = job->bias_tokens;
  job->request.sampling.bias = job->bias;
  job->request.sampling.bias_count = n;
  return AIT_OK;
}

/* ---- prompts -------------------------------------------------------------------------------------------------------------------------*/
static ait_status encode(const ait_llm *llm, const char *text, size_t size, int flags, gen_job *job) {
  if (!ait_llm_tokenizer(llm))
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "the file has no tokenizer"),
                          "token ids: --tokens 1,2,3 or \"tokens\": [1, 2, 3]");
  return ait_tokenizer_encode(ait_llm_tokenizer(llm), text, size, flags, &job->prompt);
}

/* The conversation as the model's template writes it, with the beginning of the answer. Keys that the template knows beside it: "tools",
 * and what "chat_template_kwargs" holds. */
static ait_status encode_chat(struct json_object *request, struct json_object *messages, const ait_llm *llm, gen_job *job) {
  ait_chat_template *chat;
  struct json_object *variables = json_object_new_object(), *v;
  char *text = NULL;
  size_t size = 0;
  const ait_chat_options options = {.now = (int64_t)time(NULL)};
  json_object_object_add(variables, "messages", json_object_get(messages));
  json_object_object_add(variables, "add_generation_prompt", json_object_new_boolean(true));
  if (request && json_object_object_get_ex(request, "tools", &v)) json_object_object_add(variables, "tools", json_object_get(v));
  if (request && json_object_object_get_ex(request, "chat_template_kwargs", &v) && json_object_is_type(v, json_type_object)) {
    json_object_object_foreach(v, key, value) json_object_object_add(variables, key, json_object_get(value));
  }
  ait_status status = ait_llm_chat_template(llm, &chat);
  if (status == AIT_OK) {
    const char *json = json_object_to_json_string_ext(variables, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    status = ait_chat_template_render(chat, json, strlen(json), &options, ait_allocator_default(), &text, &size);
    ait_chat_template_destroy(chat);
  }
  json_object_put(variables);
  if (status == AIT_OK) status = encode(llm, text, size, 0, job); /* begin tokens stand in the template */
  ait_text_free(ait_allocator_default(), text, size);
  return status;
}

static struct json_object *message(const char *role, const char *content) {
  struct json_object *m = json_object_new_object();
  json_object_object_add(m, "role", json_object_new_string(role));
  json_object_object_add(m, "content", json_object_new_string(content));
  return m;
}

static ait_status encode_prompt(const cli_args *args, const char *prompt, const ait_llm *llm, gen_job *job) {
  const char *system = cli_option(args, "system");
  if (!cli_flag(args, "chat") && !system) return encode(llm, prompt, strlen(prompt), AIT_ENCODE_SPECIAL, job);
  struct json_object *messages = json_object_new_array();
  if (system) json_object_array_add(messages, message("system", system));
  json_object_array_add(messages, message("user", prompt));
  ait_status status = encode_chat(NULL, messages, llm, job);
  json_object_put(messages);
  return status;
}

static ait_status read_ids(struct json_object *list, const char *key, ait_token_list *out) {
  for (size_t i = 0; i < json_object_array_length(list); ++i) {
    struct json_object *one = json_object_array_get_idx(list, i);
    int64_t id = json_object_get_int64(one);
    if (!json_object_is_type(one, json_type_int) || id < 0 || id > INT32_MAX) return wrong(key, "a list of token ids");
    int32_t narrow = (int32_t)id;
    ait_status status = ait_token_list_append(out, &narrow, 1);
    if (status != AIT_OK) return status;
  }
  return AIT_OK;
}

/* The encoder's input: the array input_features of a file, or its only one. */
static ait_status read_features(const char *path, gen_job *job) {
  ait_data *file;
  ait_status status = ait_data_load(ait_allocator_default(), path, &file);
  if (status != AIT_OK) return status;
  const ait_tensor *t = ait_data_find(file, "input_features");
  if (!t && ait_data_count(file) == 1) t = ait_data_tensor(file, 0);
  if (!t) status = ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' holds %zu arrays and none is 'input_features'", path, ait_data_count(file));
  if (status == AIT_OK) status = ait_data_create(ait_allocator_default(), &job->features);
  if (status == AIT_OK) status = ait_data_add(job->features, "source", t);
  ait_data_destroy(file);
  return status;
}

static ait_status read_prompt(struct json_object *o, const ait_llm *llm, gen_job *job) {
  struct json_object *v;
  if (json_object_object_get_ex(o, "decoder_tokens", &v)) {
    ait_status status = json_object_is_type(v, json_type_array) ? read_ids(v, "decoder_tokens", &job->decoder)
                                                                : wrong("decoder_tokens", "a list of token ids");
    if (status != AIT_OK) return status;
  }
  if (json_object_object_get_ex(o, "source", &v))
    return json_object_is_type(v, json_type_string) ? read_features(json_object_get_string(v), job) : wrong("source", "the path of a file");
  if (json_object_object_get_ex(o, "tokens", &v) || (json_object_object_get_ex(o, "prompt", &v) && json_object_is_type(v, json_type_array)))
    return json_object_is_type(v, json_type_array) ? read_ids(v, "tokens", &job->prompt) : wrong("tokens", "a list of token ids");
  if (json_object_object_get_ex(o, "messages", &v)) return encode_chat(o, v, llm, job);
  if (json_object_object_get_ex(o, "prompt", &v) && json_object_is_type(v, json_type_string))
    return encode(llm, json_object_get_string(v), (size_t)json_object_get_string_len(v), AIT_ENCODE_SPECIAL, job);
  return ait_error(AIT_CODE_INVALID_ARGUMENT, "the request has no 'prompt', 'tokens', 'messages' or 'source'");
}

static ait_status read_request(const char *line, const ait_llm *llm, gen_job *job) {
  job->source = json_tokener_parse(line);
  if (!json_object_is_type(job->source, json_type_object)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "not a JSON object");
  ait_status status = read_values(job->source, job);
  if (status == AIT_OK) status = read_stops(job->source, job);
  if (status == AIT_OK) status = read_bias(job->source, job);
  return status != AIT_OK ? status : read_prompt(job->source, llm, job);
}

static gen_job *add_job(gen_run *run, const ait_request *like) {
  gen_job *grown = realloc(run->jobs, (run->job_count + 1) * sizeof *run->jobs);
  if (!grown) return NULL;
  run->jobs = grown;
  gen_job *job = &run->jobs[run->job_count];
  *job = (gen_job){.number = run->job_count,
                   .request = *like,
                   .prompt = {.allocator = ait_allocator_default()},
                   .decoder = {.allocator = ait_allocator_default()}};
  run->job_count++;
  return job;
}

static int read_file(gen_run *run, const ait_llm *llm, const ait_request *like, const char *path) {
  FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
  char *line = NULL;
  size_t capacity = 0;
  int code = CLI_DONE;
  if (!f) return cli_fail(ait_error(errno == ENOENT ? AIT_CODE_NOT_FOUND : AIT_CODE_IO, "cannot open '%s': %s", path, strerror(errno)));
  for (long number = 1; code == CLI_DONE && getline(&line, &capacity, f) >= 0; ++number) {
    if (line[strspn(line, " \t\r\n")] == 0) continue;
    gen_job *job = add_job(run, like);
    ait_status status = job ? read_request(line, llm, job) : ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
    if (status != AIT_OK) code = cli_fail(ait_error_context(status, "%s, line %ld", path, number));
  }
  free(line);
  if (f != stdin) fclose(f);
  if (code == CLI_DONE && run->job_count == 0) code = cli_fail(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' holds no request", path));
  return code;
}

static int by_time(const void *a, const void *b) {
  const gen_job *x = a, *y = b;
  return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->number > y->number) - (x->number < y->number);
}

static int read_tokens(const char *option, const char *text, ait_token_list *out) {
  const char *bad;
  ait_status status = cli_ids_parse(text, out, &bad);
  if (status != AIT_OK) return cli_fail(status);
  return bad ? cli_usage("--%s is '%s'; ids are written 1,2,3", option, text) : CLI_DONE;
}

static void stops_of_options(const cli_args *args, ait_request *r, const char *stops[CLI_MAX_OPTIONS]) {
  while (r->stop_count < CLI_MAX_OPTIONS && (stops[r->stop_count] = cli_option_at(args, "stop", (int)r->stop_count)) != NULL)
    r->stop_count++;
  r->stops = stops;
}

int gen_read_jobs(gen_run *run, const ait_llm *llm) {
  static const char *stops[CLI_MAX_OPTIONS]; /* as long as the options */
  const char *prompt = cli_option(run->args, "prompt"), *tokens = cli_option(run->args, "tokens"),
             *file = cli_option(run->args, "requests"), *source = cli_option(run->args, "source"),
             *decoder = cli_option(run->args, "decoder-tokens");
  ait_request like;
  if ((prompt != NULL) + (tokens != NULL) + (file != NULL) + (source != NULL) != 1)
    return cli_usage("'ait generate' needs one of -p, --tokens, --requests, or --source for a model with an encoder of features");
  if (decoder && file) return cli_usage("--decoder-tokens is for one request; in a file it is the key \"decoder_tokens\"");
  if (!defaults(run->args, &like)) return CLI_USAGE;
  stops_of_options(run->args, &like, stops);
  if (file) {
    int code = read_file(run, llm, &like, file);
    if (run->job_count > 1) qsort(run->jobs, run->job_count, sizeof *run->jobs, by_time);
    return code;
  }
  gen_job *job = add_job(run, &like);
  if (!job) return cli_fail(ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory"));
  job->stream = !cli_wants_json(run->args) && like.n <= 1;
  if (decoder) {
    int code = read_tokens("decoder-tokens", decoder, &job->decoder);
    if (code != CLI_DONE) return code;
  }
  if (tokens) return read_tokens("tokens", tokens, &job->prompt);
  ait_status status = source ? read_features(source, job) : encode_prompt(run->args, prompt, llm, job);
  return status != AIT_OK ? cli_fail(status) : CLI_DONE;
}

void gen_job_deinit(gen_job *job) {
  json_object_put(job->name);
  json_object_put(job->source);
  free(job->stops);
  free(job->bias_tokens);
  free(job->bias);
}
