/* What ait generate is asked for: options of the engine, and requests from the command line or a file. */
#ifndef AIT_SRC_CLI_GENERATE_H
#define AIT_SRC_CLI_GENERATE_H

#include "cli/cli.h"

typedef struct gen_answer {
  int32_t *tokens;
  char *text;
  size_t token_count, token_capacity, text_size, text_capacity;
  double first, end; /* seconds */
  ait_finish finish;
  uint32_t reused;
  char error[160];
  struct json_object *logprobs;
} gen_answer;

typedef struct gen_job {
  size_t number;
  ait_request request;
  ait_token_list prompt;  /* with an encoder: its input */
  ait_token_list decoder; /* with an encoder: what the decoder begins with; empty: as the model says */
  ait_data *features;     /* --source, "source" */
  ait_tensor encoder_input;
  double at, submitted;
  struct json_object *name;   /* "id" of the request as it was given; NULL: none */
  struct json_object *source; /* holds the strings of the request */
  const char **stops;
  int32_t *bias_tokens;
  float *bias;
  char refused[256];
  bool stream, failed;
  gen_answer *answers;
  uint32_t answer_count;
} gen_job;

typedef struct gen_run {
  const cli_args *args;
  gen_job *jobs;
  size_t job_count;
  bool has_tokenizer, encoder;
} gen_run;

/* generate_requests.c. Exit codes; what is wrong is printed. */
int gen_engine_options(const cli_args *args, ait_engine_options *out);
int gen_read_jobs(gen_run *run, const ait_llm *llm);
void gen_job_deinit(gen_job *job);

#endif
