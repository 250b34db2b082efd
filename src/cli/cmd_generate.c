/* ait generate: prompts through one batched engine. */
#include "cli/cli.h"
#include "cli/generate.h"
#include "cli/texts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- one answer ----------------------------------------------------------------------------------------------------------------------*/
static bool append(void **data, size_t *count, size_t *capacity, const void *item, size_t size, size_t n) {
  if (n == 0) return true;
  if (*count + n > *capacity) {
    size_t more = 2 * *capacity + n + 16;
    void *grown = realloc(*data, more * size);
    if (!grown) return false;
    *data = grown;
    *capacity = more;
  }
  memcpy((char *)*data + *count * size, item, n * size);
  *count += n;
  return true;
}

static struct json_object *logprob_json(const ait_generation *e, double logprob) {
  struct json_object *o = json_object_new_object(), *top = json_object_new_array();
  json_object_object_add(o, "token", json_object_new_int(e->token));
  json_object_object_add(o, "logprob", json_object_new_double(logprob));
  for (uint32_t i = 0; i < e->top_count && e->top[i].token >= 0; ++i) {
    struct json_object *one = json_object_new_object();
    json_object_object_add(one, "token", json_object_new_int(e->top[i].token));
    json_object_object_add(one, "logprob", json_object_new_double((double)e->top[i].logprob));
    json_object_array_add(top, one);
  }
  json_object_object_add(o, "top", top);
  return o;
}

static void hear(void *ctx, const ait_generation *e) {
  gen_job *job = ctx;
  gen_answer *a = &job->answers[e->choice];
  if (e->token >= 0) {
    if (a->token_count == 0) a->first = cli_now();
    job->failed |= !append((void **)(void *)&a->tokens, &a->token_count, &a->token_capacity, &e->token, sizeof e->token, 1);
    if (job->request.logprobs >= 0) json_object_array_add(a->logprobs, logprob_json(e, (double)e->logprob));
  }
  job->failed |= !append((void **)(void *)&a->text, &a->text_size, &a->text_capacity, e->text, 1, e->text_size);
  if (job->stream) {
    fwrite(e->text, 1, e->text_size, stdout);
    fflush(stdout);
  }
  if (e->finish == AIT_FINISH_NONE) return;
  a->finish = e->finish;
  a->end = cli_now();
  a->reused = e->reused_tokens;
  if (e->error) snprintf(a->error, sizeof a->error, "%s", e->error);
}

/* ---- results -------------------------------------------------------------------------------------------------------------------------*/
static void answer_json(const gen_job *job, const gen_answer *a, struct json_object *o) {
  json_object_object_add(o, "tokens", cli_ids_json(a->tokens, a->token_count));
  json_object_object_add(o, "text", json_object_new_string_len(a->text ? a->text : "", (int)a->text_size));
  json_object_object_add(o, "finish", json_object_new_string(ait_finish_text(a->finish)));
  if (*a->error) json_object_object_add(o, "error", json_object_new_string(a->error));
  if (job->request.logprobs >= 0) json_object_object_add(o, "logprobs", json_object_get(a->logprobs));
  struct json_object *times = json_object_new_object();
  double first = a->token_count > 0 ? a->first - job->submitted : 0, rest = a->end - a->first;
  json_object_object_add(times, "first_token", json_object_new_double(first));
  json_object_object_add(times, "total", json_object_new_double(a->end - job->submitted));
  json_object_object_add(times, "tokens_per_second",
                         json_object_new_double(a->token_count > 1 && rest > 0 ? (double)(a->token_count - 1) / rest : 0));
  json_object_object_add(o, "times", times);
}

static struct json_object *job_json(const gen_job *job) {
  struct json_object *o = json_object_new_object();
  if (job->name) json_object_object_add(o, "id", json_object_get(job->name));
  json_object_object_add(o, "prompt_tokens", json_object_new_int64((int64_t)job->prompt.count));
  json_object_object_add(o, "prompt_ids", cli_ids_json(job->prompt.ids, job->prompt.count));
  if (job->decoder.count) json_object_object_add(o, "decoder_tokens", cli_ids_json(job->decoder.ids, job->decoder.count));
  json_object_object_add(o, "reused_tokens", json_object_new_int64(job->answers[0].reused));
  if (*job->refused) {
    json_object_object_add(o, "finish", json_object_new_string("error"));
    json_object_object_add(o, "error", json_object_new_string(job->refused));
    return o;
  }
  answer_json(job, &job->answers[0], o);
  if (job->answer_count < 2) return o;
  struct json_object *choices = json_object_new_array();
  for (uint32_t i = 0; i < job->answer_count; ++i) {
    struct json_object *c = json_object_new_object();
    answer_json(job, &job->answers[i], c);
    json_object_array_add(choices, c);
  }
  json_object_object_add(o, "choices", choices);
  return o;
}

static struct json_object *stats_json(const ait_engine_stats *s, double seconds) {
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"seconds", seconds},
                 {"answer_tokens_per_second", seconds > 0 ? (double)s->answer_tokens / seconds : 0},
                 {"host_seconds_per_step", s->steps ? (s->step_seconds - s->model_seconds) / (double)s->steps : 0}};
  const struct {
    const char *name;
    uint64_t value;
  } counts[] = {{"steps", s->steps},
                {"prompt_tokens", s->prompt_tokens},
                {"reused_tokens", s->reused_tokens},
                {"answer_tokens", s->answer_tokens},
                {"preemptions", s->preemptions},
                {"drafted", s->drafted},
                {"accepted", s->accepted},
                {"cache_bytes", s->bytes}};
  struct json_object *o = json_object_new_object();
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i)
    json_object_object_add(o, counts[i].name, json_object_new_int64((int64_t)counts[i].value));
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    json_object_object_add(o, numbers[i].name, json_object_new_double(numbers[i].value));
  return o;
}

static void print_job(const gen_run *run, const gen_job *job) {
  if (*job->refused) {
    fprintf(stderr, "ait: %s\n", job->refused);
    return;
  }
  for (uint32_t i = 0; i < job->answer_count && !job->stream; ++i) {
    const gen_answer *a = &job->answers[i];
    if (run->job_count > 1 || job->answer_count > 1) printf("%s[%zu.%u] ", i + job->number > 0 ? "\n" : "", job->number + 1, i + 1);
    if (a->text_size > 0) fwrite(a->text, 1, a->text_size, stdout);
    else
      for (size_t t = 0; t < a->token_count && !run->has_tokenizer; ++t) printf("%s%d", t ? "," : "", a->tokens[t]);
    printf("\n");
  }
  if (job->stream && run->has_tokenizer) printf("\n");
  else if (job->stream)
    for (size_t t = 0; t < job->answers[0].token_count; ++t)
      printf("%d%s", job->answers[0].tokens[t], t + 1 < job->answers[0].token_count ? "," : "\n");
}

static void print_stats(const ait_engine_stats *s, double seconds) {
  fprintf(stderr,
          "%llu prompt tokens (%llu reused), %llu answer tokens, %llu steps in %.2f s: %.1f tokens/s, %.0f us of each step on the host\n",
          (unsigned long long)s->prompt_tokens, (unsigned long long)s->reused_tokens, (unsigned long long)s->answer_tokens,
          (unsigned long long)s->steps, seconds, seconds > 0 ? (double)s->answer_tokens / seconds : 0,
          s->steps ? 1e6 * (s->step_seconds - s->model_seconds) / (double)s->steps : 0);
}

/* One object a line, in the order in which the requests were given. */
static int write_lines(const gen_run *run) {
  const char *path = cli_option(run->args, "json");
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return cli_fail(ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory"));
  for (size_t number = 0; number < run->job_count; ++number)
    for (size_t i = 0; i < run->job_count; ++i) {
      if (run->jobs[i].number != number) continue;
      struct json_object *o = job_json(&run->jobs[i]);
      fprintf(f, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE));
      json_object_put(o);
    }
  bool good = fclose(f) == 0;
  int code = !good ? cli_fail(ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory")) : path && *path ? cli_write_file(path, text) : CLI_DONE;
  if (good && !(path && *path)) fwrite(text, 1, size, stdout);
  free(text);
  return code;
}

static int report(gen_run *run, const ait_engine_stats *stats, double seconds) {
  int code = CLI_DONE;
  for (size_t i = 0; i < run->job_count; ++i) {
    const gen_job *job = &run->jobs[i];
    bool bad = *job->refused;
    for (uint32_t k = 0; k < job->answer_count; ++k) bad |= job->answers[k].finish == AIT_FINISH_ERROR;
    if (bad && code == CLI_DONE) code = CLI_BAD_MODEL;
  }
  if (cli_option(run->args, "requests") && cli_wants_json(run->args)) {
    int written = write_lines(run);
    if (!cli_flag(run->args, "quiet")) print_stats(stats, seconds);
    return written != CLI_DONE ? written : code;
  }
  if (cli_wants_json(run->args)) {
    struct json_object *o = job_json(&run->jobs[0]);
    json_object_object_add(o, "engine", stats_json(stats, seconds));
    int written = cli_json(run->args, o);
    return written != CLI_DONE ? written : code;
  }
  for (size_t i = 0; i < run->job_count; ++i) print_job(run, &run->jobs[i]);
  if (!cli_flag(run->args, "quiet")) print_stats(stats, seconds);
  return code;
}

/* ---- running -------------------------------------------------------------------------------------------------------------------------*/
/* With an encoder the prompt, or the features, are its input. */
static void give_source(gen_job *job) {
  const int64_t length = (int64_t)job->prompt.count;
  if (job->features) {
    job->encoder_input = *ait_data_tensor(job->features, 0);
    job->encoder_input.storage = NULL;
  } else {
    job->encoder_input = ait_tensor_borrow(job->prompt.ids, AIT_I32, 1, &length);
  }
  job->request.source = &job->encoder_input;
}

static ait_status submit(ait_engine *engine, gen_job *job, bool encoder) {
  uint64_t id;
  const ait_token_list *begin = encoder ? &job->decoder : &job->prompt;
  job->request.tokens = begin->ids;
  job->request.token_count = begin->count;
  if (encoder || job->features) give_source(job);
  job->request.on_event = hear;
  job->request.ctx = job;
  job->answer_count = job->request.n > 1 ? job->request.n : 1;
  job->answers = calloc(job->answer_count, sizeof *job->answers);
  if (!job->answers) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < job->answer_count; ++i) job->answers[i].logprobs = json_object_new_array();
  job->submitted = cli_now();
  ait_status status = ait_engine_submit(engine, &job->request, &id);
  if (status == AIT_OK || ait_status_code(status) == AIT_CODE_OUT_OF_MEMORY) return status;
  snprintf(job->refused, sizeof job->refused, "request %zu: %s", job->number + 1, ait_status_message(status));
  ait_status_free(status);
  return AIT_OK;
}

/* Requests with a time ("at", seconds from the start) come in then. */
static ait_status run_jobs(gen_run *run, ait_engine *engine, double start) {
  size_t next = 0;
  for (bool busy = true; busy || next < run->job_count;) {
    while (next < run->job_count && cli_now() - start >= run->jobs[next].at) {
      ait_status status = submit(engine, &run->jobs[next++], run->encoder);
      if (status != AIT_OK) return status;
    }
    ait_status status = ait_engine_step(engine, &busy);
    if (status != AIT_OK) return status;
    if (!busy && next < run->job_count) nanosleep(&(struct timespec){0, 200000}, NULL);
  }
  return AIT_OK;
}

static void free_run(gen_run *run) {
  for (size_t i = 0; i < run->job_count; ++i) {
    gen_job *job = &run->jobs[i];
    for (uint32_t k = 0; k < job->answer_count && job->answers; ++k) {
      json_object_put(job->answers[k].logprobs);
      free(job->answers[k].tokens);
      free(job->answers[k].text);
    }
    free(job->answers);
    ait_token_list_deinit(&job->prompt);
    ait_token_list_deinit(&job->decoder);
    ait_data_destroy(job->features);
    gen_job_deinit(job);
  }
  free(run->jobs);
}

int cli_cmd_generate(const cli_args *args) {
  gen_run run = {.args = args};
  ait_llm *llm = NULL, *draft = NULL;
  ait_engine *engine = NULL;
  ait_engine_options options;
  cli_load load;
  int code = gen_engine_options(args, &options);
  if (code != CLI_DONE) return code;
  ait_status status = cli_load_open(args, &load);
  if (status == AIT_OK) load.options.threads = options.threads;
  if (status == AIT_OK) status = ait_llm_load(args->positional[0], &load.options, &llm);
  if (status == AIT_OK && cli_option(args, "draft")) status = ait_llm_load(cli_option(args, "draft"), &load.options, &draft);
  cli_load_close(&load);
  options.draft = draft;
  bool drafts = !cli_option(args, "speculate") && llm && ait_llm_draft(llm); /* that is what it was deployed with */
  if (drafts) options.speculation = AIT_SPECULATE_DRAFT;
  if (status == AIT_OK) {
    run.has_tokenizer = ait_llm_tokenizer(llm) != NULL;
    run.encoder = ait_llm_describe(llm).encoder;
    code = gen_read_jobs(&run, llm);
  }
  if (status == AIT_OK && code == CLI_DONE) status = ait_engine_create(llm, &options, &engine);
  double start = cli_now();
  if (status == AIT_OK && code == CLI_DONE) status = run_jobs(&run, engine, start);
  if (status != AIT_OK) code = cli_fail(status);
  else if (code == CLI_DONE) {
    ait_engine_stats stats = ait_engine_statistics(engine);
    code = report(&run, &stats, cli_now() - start);
  }
  ait_engine_destroy(engine);
  ait_llm_release(draft);
  ait_llm_release(llm);
  free_run(&run);
  return cli_finish(code);
}
