/* A deployed language model, or the same weights in llama.cpp, measured on request; tools/bench_llm drives one process of each in turn.
 *   llm_bench ait FILE.ait THREADS [CACHE_TOKENS]
 *   llm_bench llama FILE.gguf THREADS FOLDER_OF_LIBRARIES
 * Commands on standard input, a line of JSON for each on standard output:
 *   prefill N        one prompt of N tokens: seconds to its first token
 *   decode P N       behind a prompt of P tokens: seconds for each of N further tokens
 *   batch B P N      the same for B sequences at once: seconds for a step of all
 *   requests N       (ait) N requests of random lengths through the engine: resident memory before and after
 *   memory           resident bytes of this process; (ait) what the engine holds beside weights, host seconds of a step
 *   tokens P N       the N greedy tokens behind a prompt of P tokens: both should agree
 * llama.cpp is opened with dlopen; the declarations here are our own. Its parameter structures are passed by value: they are taken as the
 * library's defaults in a room that is large enough, and only their first fields, sizes of the context, are changed (checked by reading
 * them back through its functions). */
#include <ait/ait.h>
#include <ait/llm.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_BATCH = 16, MAX_TOKENS = 512, CONTEXT = 1024 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what) {
  fprintf(stderr, "llm_bench: %s\n", what);
  exit(1);
}

/* Both engines get the same prompts: sequence `which`, position i. */
static int32_t prompt_token(int32_t vocab, uint32_t which, uint32_t i) {
  uint64_t x = (uint64_t)(which + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 29)) * 0x94d049bb133111ebu;
  return (int32_t)((x >> 33) % (uint64_t)(vocab - 3)) + 3;
}

typedef struct runner {
  int32_t vocab;
  /* Prompts of `prompt` tokens for `batch` sequences, `steps` tokens each behind the first. *first: seconds to the last first token;
   * result: seconds of a step behind that. tokens: of sequence 0, or NULL. */
  double (*run)(void *ctx, int32_t batch, int32_t prompt, int32_t steps, double *first, int32_t *tokens);
  void *ctx;
} runner;

/* ---- ait -------------------------------------------------------------------------------------------------------------------------*/
typedef struct ours {
  ait_llm *llm;
  ait_engine *engine;
  int32_t vocab;
  uint32_t prompts; /* a counter: no two prompts are equal */
  /* of the run at hand */
  int32_t steps, firsts, batch, *tokens;
  int32_t seen;
  double first, last;
} ours;

static void check(ait_status status) {
  if (status == AIT_OK) return;
  fail(ait_status_message(status));
}

static void hear(void *ctx, const ait_generation *e) {
  ours *o = ctx;
  if (e->token < 0) return;
  if (o->tokens && o->seen < o->steps + 1) o->tokens[o->seen++] = e->token;
  o->last = now();
  if (o->firsts < o->batch && ++o->firsts == o->batch) o->first = o->last;
}

static void submit(ours *o, uint32_t which, int32_t prompt, int32_t tokens) {
  int32_t ids[CONTEXT];
  uint64_t id;
  ait_request r;
  ait_request_init(&r);
  for (int32_t i = 0; i < prompt; ++i) ids[i] = prompt_token(o->vocab, which, (uint32_t)i);
  r.tokens = ids;
  r.token_count = (size_t)prompt;
  r.max_tokens = (uint32_t)tokens;
  r.ignore_stop_tokens = true;
  r.on_event = hear;
  r.ctx = o;
  check(ait_engine_submit(o->engine, &r, &id));
}

static double ait_run(void *ctx, int32_t batch, int32_t prompt, int32_t steps, double *first, int32_t *tokens) {
  ours *o = ctx;
  o->batch = batch;
  o->steps = steps;
  o->firsts = o->seen = 0;
  o->tokens = tokens;
  double start = now();
  for (int32_t i = 0; i < batch; ++i) submit(o, tokens ? 0 : ++o->prompts, prompt, steps + 1);
  check(ait_engine_run(o->engine));
  *first = o->first - start;
  return steps > 0 ? (o->last - o->first) / steps : 0;
}

static void ait_open(ours *o, const char *path, int32_t threads, int64_t cache_tokens) {
  ait_load_options load;
  ait_engine_options options;
  ait_load_options_init(&load);
  load.threads = threads;
  ait_engine_options_init(&options);
  check(ait_llm_load(path, &load, &o->llm));
  ait_llm_info info = ait_llm_describe(o->llm);
  o->vocab = (int32_t)info.vocab;
  options.threads = threads;
  options.max_tokens = MAX_TOKENS;
  options.max_sequences = MAX_BATCH;
  options.max_seq = CONTEXT;
  options.cache_bytes = (size_t)cache_tokens * info.token_bytes;
  options.no_prefix_reuse = true;
  check(ait_engine_create(o->llm, &options, &o->engine));
}

/* ---- llama.cpp -------------------------------------------------------------------------------------------------------------------*/
typedef struct params {
  union {
    struct {
      uint32_t n_ctx, n_batch, n_ubatch, n_seq_max;
    } context;
    uint8_t room[1024];
  };
} params;
typedef struct llama_batch {
  int32_t n_tokens;
  int32_t *token;
  float *embd;
  int32_t *pos;
  int32_t *n_seq_id;
  int32_t **seq_id;
  int8_t *logits;
} llama_batch;

#define LLAMA(X)                                                        \
  X(params, llama_model_default_params, (void))                         \
  X(params, llama_context_default_params, (void))                       \
  X(void *, llama_model_load_from_file, (const char *, params))         \
  X(void *, llama_init_from_model, (void *, params))                    \
  X(const void *, llama_model_get_vocab, (const void *))                \
  X(int32_t, llama_vocab_n_tokens, (const void *))                      \
  X(uint32_t, llama_n_ctx, (const void *))                              \
  X(uint32_t, llama_n_ubatch, (const void *))                           \
  X(uint32_t, llama_n_seq_max, (const void *))                          \
  X(void, llama_set_n_threads, (void *, int32_t, int32_t))              \
  X(void, llama_attach_threadpool, (void *, void *, void *))            \
  X(llama_batch, llama_batch_init, (int32_t, int32_t, int32_t))         \
  X(int32_t, llama_decode, (void *, llama_batch))                       \
  X(float *, llama_get_logits_ith, (void *, int32_t))                   \
  X(void *, llama_get_memory, (const void *))                           \
  X(void, llama_memory_clear, (void *, bool))                           \
  X(void, llama_log_set, (void (*)(int, const char *, void *), void *)) \
  X(const char *, llama_print_system_info, (void))
#define DECLARE(result, name, arguments) static result(*name) arguments;
LLAMA(DECLARE)
#undef DECLARE

typedef struct theirs {
  void *model, *single, *many;
  int32_t vocab;
  uint32_t prompts;
  llama_batch batch;
} theirs;

static void quiet(int level, const char *text, void *ctx) {
  (void)ctx;
  if (level == 4) fputs(text, stderr); /* errors */
}

static void *open_library(const char *folder, const char *name, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  void *handle = dlopen(path, RTLD_NOW | flags);
  if (!handle) fail(dlerror());
  return handle;
}

static void load_symbols(const char *folder) {
  char path[4096], name[256] = "";
  snprintf(path, sizeof path, "ls '%s' | grep '^libllama[.]' | head -1", folder);
  FILE *f = popen(path, "r");
  if (!f || !fgets(name, sizeof name, f)) fail("no libllama in the folder");
  pclose(f);
  name[strcspn(name, "\n")] = 0;
  void *llama = open_library(folder, name, RTLD_GLOBAL);
#define LOAD(result, name, arguments) \
  if (!(*(void **)&name = dlsym(llama, #name))) fail("llama.cpp lacks " #name);
  LLAMA(LOAD)
#undef LOAD
  void (*load_all)(const char *);
  if (!(*(void **)&load_all = dlsym(RTLD_DEFAULT, "ggml_backend_load_all_from_path"))) fail("ggml lacks ggml_backend_load_all_from_path");
  llama_log_set(quiet, NULL);
  load_all(folder); /* chooses the fastest of its CPU libraries */
}

/* A pool of threads that stays, as llama-bench and the server have it. */
static void *thread_pool(int32_t threads) {
  typedef struct {
    uint8_t room[4096];
  } pool_params;
  void (*init)(pool_params *, int);
  void *(*by_name)(const char *), *(*address)(void *, const char *), *(*make)(pool_params *);
  pool_params p = {0};
  *(void **)&init = dlsym(RTLD_DEFAULT, "ggml_threadpool_params_init");
  *(void **)&by_name = dlsym(RTLD_DEFAULT, "ggml_backend_reg_by_name");
  *(void **)&address = dlsym(RTLD_DEFAULT, "ggml_backend_reg_get_proc_address");
  if (!init || !by_name || !address || !by_name("CPU")) fail("ggml has no CPU backend");
  *(void **)&make = address(by_name("CPU"), "ggml_threadpool_new");
  if (!make) return NULL;
  init(&p, threads);
  return make(&p);
}

static void *make_context(const theirs *t, uint32_t sequences, uint32_t length, void *pool, int32_t threads) {
  params p = llama_context_default_params();
  p.context.n_ctx = length * sequences;
  p.context.n_batch = p.context.n_ubatch = MAX_TOKENS;
  p.context.n_seq_max = sequences;
  void *c = llama_init_from_model(t->model, p);
  if (!c || llama_n_ctx(c) != length * sequences || llama_n_ubatch(c) != MAX_TOKENS || llama_n_seq_max(c) != sequences)
    fail("llama.cpp does not make the context that was asked for");
  llama_set_n_threads(c, threads, threads);
  if (pool) llama_attach_threadpool(c, pool, pool);
  return c;
}

static void llama_open(theirs *t, const char *path, int32_t threads, const char *folder) {
  load_symbols(folder);
  t->model = llama_model_load_from_file(path, llama_model_default_params());
  if (!t->model) fail("llama.cpp does not load the model");
  t->vocab = llama_vocab_n_tokens(llama_model_get_vocab(t->model));
  void *pool = thread_pool(threads);
  t->single = make_context(t, 1, CONTEXT, pool, threads);
  t->many = make_context(t, MAX_BATCH, 256, pool, threads);
  t->batch = llama_batch_init(MAX_TOKENS, 0, MAX_BATCH);
  fprintf(stderr, "%s\n", llama_print_system_info());
}

static void add(llama_batch *b, int32_t token, int32_t position, int32_t sequence, bool logits) {
  int32_t i = b->n_tokens++;
  b->token[i] = token;
  b->pos[i] = position;
  b->n_seq_id[i] = 1;
  b->seq_id[i][0] = sequence;
  b->logits[i] = logits;
}

static int32_t best(void *context, int32_t row, int32_t vocab) {
  const float *logits = llama_get_logits_ith(context, row);
  int32_t at = 0;
  for (int32_t i = 1; i < vocab; ++i)
    if (logits[i] > logits[at]) at = i;
  return at;
}

static double llama_run(void *ctx, int32_t batch, int32_t prompt, int32_t steps, double *first, int32_t *tokens) {
  theirs *t = ctx;
  void *c = batch > 1 ? t->many : t->single;
  int32_t next[MAX_BATCH], rows[MAX_BATCH];
  llama_memory_clear(llama_get_memory(c), false);
  double start = now();
  t->batch.n_tokens = 0;
  for (int32_t s = 0; s < batch; ++s) {
    uint32_t which = tokens ? 0 : ++t->prompts;
    for (int32_t i = 0; i < prompt; ++i) add(&t->batch, prompt_token(t->vocab, which, (uint32_t)i), i, s, i == prompt - 1);
    rows[s] = t->batch.n_tokens - 1;
  }
  for (int32_t step = 0;; ++step) {
    if (llama_decode(c, t->batch)) fail("llama_decode");
    for (int32_t s = 0; s < batch; ++s) next[s] = best(c, rows[s], t->vocab);
    if (step == 0) *first = now() - start;
    if (tokens) tokens[step] = next[0];
    if (step == steps) break;
    t->batch.n_tokens = 0;
    for (int32_t s = 0; s < batch; ++s) {
      rows[s] = s;
      add(&t->batch, next[s], prompt + step, s, true);
    }
  }
  return steps > 0 ? (now() - start - *first) / steps : 0;
}

/* ---- commands --------------------------------------------------------------------------------------------------------------------*/
static size_t resident(const char *field) {
  char line[256];
  size_t kb = 0;
  FILE *f = fopen("/proc/self/status", "r");
  if (!f) return 0;
  while (fgets(line, sizeof line, f))
    if (!strncmp(line, field, strlen(field))) sscanf(line + strlen(field), " %zu", &kb);
  fclose(f);
  return kb * 1024;
}

static void requests(ours *o, int32_t count) {
  o->batch = 1 << 30;
  o->tokens = NULL;
  size_t before = 0;
  for (int32_t i = 0; i < count; ++i) {
    ++o->prompts;
    submit(o, o->prompts, 1 + (int32_t)(o->prompts * 7919u % 48), 1 + (int32_t)(o->prompts * 104729u % 8));
    bool busy;
    if (i % 16 == 15) check(ait_engine_run(o->engine));
    else if (i % 3 == 0) check(ait_engine_step(o->engine, &busy));
    if (i == count / 4) before = resident("VmRSS:");
  }
  check(ait_engine_run(o->engine));
  printf("{\"requests\":%d,\"resident_at_a_quarter\":%zu,\"resident\":%zu}\n", count, before, resident("VmRSS:"));
}

static void memory(const ours *o) {
  printf("{\"resident\":%zu,\"anonymous\":%zu,\"file\":%zu", resident("VmRSS:"), resident("RssAnon:"), resident("RssFile:"));
  if (o) {
    ait_engine_stats s = ait_engine_statistics(o->engine);
    printf(",\"engine\":%zu,\"steps\":%llu,\"host_seconds\":%.9f,\"step_seconds\":%.9f", s.bytes, (unsigned long long)s.steps,
           s.step_seconds - s.model_seconds, s.step_seconds);
  }
  printf("}\n");
}

static void command(const runner *r, ours *o, const char *line) {
  int32_t batch = 1, prompt, steps = 0, tokens[MAX_TOKENS];
  double first, each;
  bool compare = sscanf(line, "tokens %d %d", &prompt, &steps) == 2;
  if (compare || sscanf(line, "prefill %d", &prompt) == 1 || sscanf(line, "decode %d %d", &prompt, &steps) == 2 ||
      sscanf(line, "batch %d %d %d", &batch, &prompt, &steps) == 3) {
    if (batch < 1 || batch > MAX_BATCH || prompt < 1 || batch * prompt > MAX_TOKENS || steps < 0 || steps >= MAX_TOKENS) fail("sizes");
    each = r->run(r->ctx, batch, prompt, steps, &first, compare ? tokens : NULL);
    printf("{\"first\":%.9f,\"step\":%.9f", first, each);
    for (int32_t i = 0; compare && i <= steps; ++i) printf("%s%d", i ? "," : ",\"tokens\":[", tokens[i]);
    printf("%s}\n", compare ? "]" : "");
  } else if (o && sscanf(line, "requests %d", &steps) == 1) requests(o, steps);
  else if (!strncmp(line, "memory", 6)) memory(o);
  else fail("unknown command");
}

int main(int argc, char **argv) {
  static ours o;
  static theirs t;
  if (argc < 4) fail("usage: llm_bench ait FILE.ait THREADS [CACHE_TOKENS] | llm_bench llama FILE.gguf THREADS FOLDER");
  int32_t threads = atoi(argv[3]);
  runner r;
  bool ait = !strcmp(argv[1], "ait");
  if (ait) {
    ait_open(&o, argv[2], threads, argc > 4 ? atoll(argv[4]) : 4096);
    r = (runner){o.vocab, ait_run, &o};
  } else {
    if (argc < 5) fail("the folder of llama.cpp's libraries is missing");
    llama_open(&t, argv[2], threads, argv[4]);
    r = (runner){t.vocab, llama_run, &t};
  }
  char line[256];
  printf("{\"ready\":true}\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    command(&r, ait ? &o : NULL, line);
    fflush(stdout);
  }
  return 0;
}
