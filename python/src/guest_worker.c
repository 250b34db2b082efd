/* A guest in an interpreter of its own. Requests and answers are packets of 64-bit words on a socket pair; tensors lie in memory that both
 * map. The worker ends when its end of the socket closes, so it never outlives the trial that started it. Its counterpart is
 * python/ait/_guest_worker.py. */
#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* File descriptors of the worker: the socket, shared memory, what it loads or what it made, weights, its standard error. */
enum { FD_SOCKET = 3, FD_SHARED, FD_BLOB, FD_WEIGHTS, FD_COUNT };
enum { ERROR_LOG = FD_COUNT, FILES };
enum { MAX_WORDS = 16384, ALIGN = 64 };
/* First word of an answer. */
enum { ANSWER_DONE = 0, ANSWER_UNSUPPORTED = 1, ANSWER_FAILED = 2 };

struct guest_worker {
  const char *name;
  pid_t pid;
  int socket, shared, log;
  char *memory;
  size_t size;
  char end[400];            /* how it ended */
  int64_t words[MAX_WORDS]; /* the last answer */
};

static char **command;
void guest_worker_command(char **argv) { command = argv; } /* the old one stays: a process that was just forked may be reading it */

static size_t aligned(size_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ait_status no_worker(const char *name, const char *what) {
  return ait_error(AIT_CODE_UNAVAILABLE, "'%s' has no process of its own: %s: %s", name, what, strerror(errno));
}

/* ---- starting ----------------------------------------------------------------------------------------------------------------------*/
/* The descriptors are first moved above all that they become, so that none is overwritten before it is copied. */
static int lift(int *fd) {
  int high = fcntl(*fd, F_DUPFD_CLOEXEC, 64);
  if (high < 0) return -1;
  close(*fd);
  *fd = high;
  return 0;
}

static int spawn(const int files[FILES], char *const *argv, char *const *environment, pid_t *out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0); /* ^C is for the tuner to answer */
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, files[ERROR_LOG], 2);
  for (int fd = FD_SOCKET; fd < FD_COUNT; ++fd) posix_spawn_file_actions_adddup2(&actions, files[fd], fd);
  int failed = posix_spawn(out, argv[0], &actions, &attributes, argv, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) errno = failed;
  return failed ? -1 : 0;
}

/* The caller's environment with as many threads as the trial has, for the libraries that read it when they are loaded. */
static char **make_environment(int32_t threads, char text[3][48]) {
  static const char *const names[] = {"OMP_NUM_THREADS=", "MKL_NUM_THREADS=", "OPENBLAS_NUM_THREADS="};
  size_t n = 0, k = 0;
  while (environ[n]) ++n;
  char **out = malloc((n + 4) * sizeof *out);
  for (size_t i = 0; out && i < n; ++i) {
    bool ours = false;
    for (int t = 0; t < 3; ++t) ours |= strncmp(environ[i], names[t], strlen(names[t])) == 0;
    if (!ours) out[k++] = environ[i];
  }
  for (int t = 0; out && t < 3; ++t) {
    snprintf(text[t], 48, "%s%d", names[t], threads);
    out[k++] = text[t];
  }
  if (out) out[k] = NULL;
  return out;
}

static ait_status start_process(guest_worker *w, const char *job, int32_t threads, const int files[FILES]) {
  char text[3][48];
  size_t n = 0;
  while (command && command[n]) ++n;
  char **argv = calloc(n + 2, sizeof *argv), **environment = make_environment(threads, text);
  ait_status status = AIT_OK;
  if (!argv || !environment) status = ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  else if (!n) status = ait_error(AIT_CODE_UNAVAILABLE, "'%s' has no process of its own: no interpreter is known", w->name);
  if (!status) {
    memcpy(argv, command, n * sizeof *argv);
    argv[n] = (char *)(uintptr_t)job;
    if (spawn(files, argv, environment, &w->pid)) status = no_worker(w->name, argv[0]);
  }
  free(argv);
  free(environment);
  return status;
}

void guest_worker_stop(guest_worker *w) {
  if (!w) return;
  if (w->socket >= 0) close(w->socket);
  if (w->pid > 0) {
    kill(w->pid, SIGKILL); /* it has nothing to lose */
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) {}
  }
  if (w->memory) munmap(w->memory, w->size);
  if (w->shared >= 0) close(w->shared);
  if (w->log >= 0) close(w->log);
  free(w);
}

/* ---- talking -------------------------------------------------------------------------------------------------------------------------*/
/* The last line that the worker wrote to its standard error: what Python says when it dies. */
static void last_words(const guest_worker *w, char *out, size_t size) {
  char tail[2048];
  off_t end = lseek(w->log, 0, SEEK_END), begin = end > (off_t)sizeof tail ? end - (off_t)sizeof tail : 0;
  ssize_t n = end > 0 ? pread(w->log, tail, (size_t)(end - begin), begin) : 0;
  size_t to = n > 0 ? (size_t)n : 0;
  while (to > 0 && (tail[to - 1] == '\n' || tail[to - 1] == ' ')) --to;
  size_t from = to;
  while (from > 0 && tail[from - 1] != '\n') --from;
  snprintf(out, size, "%.*s", (int)(to - from), tail + from);
}

/* How it ended, each time that somebody asks. */
static ait_status ended(guest_worker *w) {
  int code = 0;
  char line[160];
  pid_t pid = w->pid;
  if (w->socket < 0) return ait_error(AIT_CODE_INTERNAL, "%s", w->end);
  close(w->socket);
  w->socket = -1;
  w->pid = 0;
  if (pid > 0)
    while (waitpid(pid, &code, 0) < 0 && errno == EINTR) {}
  last_words(w, line, sizeof line);
  if (WIFSIGNALED(code)) snprintf(w->end, sizeof w->end, "the process of '%s' died: %s", w->name, strsignal(WTERMSIG(code)));
  else
    snprintf(w->end, sizeof w->end, "the process of '%s' ended with exit code %d%s%s", w->name, WEXITSTATUS(code), *line ? ": " : "", line);
  return ait_error(AIT_CODE_INTERNAL, "%s", w->end);
}

/* An answer that is no success carries its text after the second word. */
static ait_status receive(guest_worker *w, size_t least, size_t *out_words) {
  ssize_t n;
  if (w->socket < 0) return ended(w);
  do n = recv(w->socket, w->words, sizeof w->words, 0);
  while (n < 0 && errno == EINTR);
  if (n <= 0) return ended(w);
  *out_words = (size_t)n / sizeof *w->words;
  int64_t kind = w->words[0];
  if (kind == ANSWER_DONE && *out_words >= least) return AIT_OK;
  int length = n > 16 ? (int)(n - 16) : 0;
  const char *text = (const char *)&w->words[2];
  return ait_error(kind == ANSWER_UNSUPPORTED ? AIT_CODE_UNSUPPORTED : AIT_CODE_INTERNAL, "%.*s", length, length ? text : "no answer");
}

static ait_status send_words(guest_worker *w, const int64_t *words, size_t count) {
  ssize_t n;
  if (w->socket < 0) return ended(w);
  do n = send(w->socket, words, count * sizeof *words, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return n == (ssize_t)(count * sizeof *words) ? AIT_OK : ended(w);
}

/* ---- making one
 * ------------------------------------------------------------------------------------------------------------------------*/
static int new_memory(void) { return memfd_create("ait guest", MFD_CLOEXEC); }

/* blob, weights: descriptors that the worker gets; closed here. */
static ait_status start(const char *name, const char *job, int32_t threads, int blob, int weights, guest_worker **out) {
  int files[FILES] = {[FD_BLOB] = blob, [FD_WEIGHTS] = weights, [FD_SHARED] = new_memory(), [ERROR_LOG] = new_memory()}, pair[2] = {-1, -1};
  guest_worker *w = calloc(1, sizeof *w);
  ait_status status = w ? AIT_OK : ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  if (!status && (files[FD_SHARED] < 0 || files[ERROR_LOG] < 0 || blob < 0 || weights < 0 ||
                  socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)))
    status = no_worker(name, "shared memory");
  if (w) *w = (guest_worker){.name = name, .socket = pair[0], .shared = -1, .log = -1};
  files[FD_SOCKET] = pair[1];
  for (int fd = FD_SOCKET; !status && fd < FILES; ++fd)
    if (lift(&files[fd])) status = no_worker(name, "descriptors");
  if (!status) status = start_process(w, job, threads, files);
  if (w) w->shared = files[FD_SHARED], w->log = files[ERROR_LOG];
  for (int fd = FD_SOCKET; fd < FILES; ++fd)
    if (files[fd] >= 0 && fd != FD_SHARED && fd != ERROR_LOG && fd) close(files[fd]);
  if (status) guest_worker_stop(w);
  else *out = w;
  return status;
}

static bool write_all(int fd, const void *data, size_t size) {
  for (const char *p = data; size > 0;) {
    ssize_t n = write(fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
}

static bool pad(int fd, size_t size) {
  static const char zeros[ALIGN];
  return write_all(fd, zeros, aligned(size) - size);
}

/* Elements from the first to the last that the strides reach. */
static size_t extent(const ait_tensor *t) {
  size_t last = 0;
  for (int32_t d = 0; d < t->rank; ++d) {
    if (t->shape[d] == 0) return 0;
    last += (size_t)(t->shape[d] - 1) * (size_t)t->strides[d];
  }
  return last + 1;
}

/* Per weight: length of name, name, dtype's number, rank, shape, strides, bytes; then the bytes. Every part begins at a multiple of 64. */
static bool write_weight(int fd, const char *name, const ait_tensor *t) {
  int64_t words[4 + 2 * AIT_MAX_RANK];
  size_t n = strlen(name) + 1, bytes = extent(t) * ait_dtype_size(t->dtype), k = 0;
  words[k++] = (int64_t)n;
  words[k++] = t->dtype;
  words[k++] = t->rank;
  words[k++] = (int64_t)bytes;
  for (int32_t d = 0; d < t->rank; ++d) words[k++] = t->shape[d];
  for (int32_t d = 0; d < t->rank; ++d) words[k++] = t->strides[d];
  return write_all(fd, words, k * sizeof *words) && pad(fd, k * sizeof *words) && write_all(fd, name, n) && pad(fd, n) &&
         write_all(fd, t->data, bytes) && pad(fd, bytes);
}

/* ---- jobs: JSON, an argument of the worker's
 * -------------------------------------------------------------------------------------------*/
static void put_text(FILE *f, const char *key, const char *text) {
  fprintf(f, ", \"%s\": \"", key);
  for (const unsigned char *p = (const unsigned char *)text; *p; ++p) {
    if (*p == '"' || *p == '\\') fprintf(f, "\\%c", *p);
    else if (*p < 0x20) fprintf(f, "\\u%04x", *p);
    else fputc(*p, f);
  }
  fputc('"', f);
}

static char *make_job(const guest_row *row, const char *what, const char *options, const char *program, int32_t threads) {
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  if (!f) return NULL;
  fprintf(f, "{\"threads\": %d, \"dtypes\": [\"\"", threads);
  for (int number = 1; number < 64; ++number)
    fprintf(f, ", \"%s\"", ait_dtype_size((ait_dtype)number) ? ait_dtype_name((ait_dtype)number) : "");
  fprintf(f, "], \"spec\": %s", row->spec);
  put_text(f, "do", what);
  put_text(f, "name", row->table.name);
  put_text(f, "options", options);
  if (program) put_text(f, "program", program);
  fputc('}', f);
  if (fclose(f)) {
    free(text);
    return NULL;
  }
  return text;
}

/* ---- compiling
 * ---------------------------------------------------------------------------------------------------------------------------*/
static ait_status read_result(guest_worker *w, int fd, void **out, size_t *out_size) {
  size_t size = (size_t)w->words[1];
  char *data = malloc(size + 1);
  if (!data) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  for (size_t done = 0; done < size;) {
    ssize_t n = pread(fd, data + done, size - done, (off_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      free(data);
      return ait_error(AIT_CODE_INTERNAL, "the process of '%s' made less than it said", w->name);
    }
    done += (size_t)n;
  }
  *out = data;
  *out_size = size;
  return AIT_OK;
}

ait_status guest_worker_compile(const guest_row *row, const char *options, const char *program, const char *names, size_t names_size,
                                void **out, size_t *out_size, bool *out_weights) {
  guest_worker *w = NULL;
  size_t words;
  char *job = make_job(row, "compile", options, program, 1);
  int made = new_memory(), kept = made >= 0 ? fcntl(made, F_DUPFD_CLOEXEC, 0) : -1, list = new_memory();
  ait_status status = AIT_OK;
  if (!job || kept < 0 || list < 0 || !write_all(list, names, names_size)) status = no_worker(row->table.name, "shared memory");
  if (!status) status = start(row->table.name, job, 1, made, list, &w);
  if (!status) status = receive(w, 3, &words);
  if (!status) status = read_result(w, kept, out, out_size);
  if (!status) *out_weights = w->words[2] != 0;
  guest_worker_stop(w);
  if (kept >= 0) close(kept);
  free(job);
  return status;
}

/* ---- runs
 * --------------------------------------------------------------------------------------------------------------------------------*/
ait_status guest_worker_start(const guest_loaded *l, int32_t threads, guest_worker **out) {
  guest_worker *w = NULL;
  size_t words;
  char *job = make_job(l->row, "run", l->options, NULL, threads);
  int blob = new_memory(), weights = new_memory();
  bool written = job && blob >= 0 && weights >= 0 && write_all(blob, l->payload, l->payload_size);
  for (uint32_t i = 0; written && i < l->weight_count; ++i) written = write_weight(weights, l->names[i], &l->weights[i]);
  ait_status status = written ? AIT_OK : no_worker(l->row->table.name, "shared memory");
  if (!status) status = start(l->row->table.name, job, threads, blob, weights, &w);
  if (!status) status = receive(w, 1, &words);
  free(job);
  if (status) guest_worker_stop(w);
  else *out = w;
  return status;
}

static ait_status map(guest_worker *w, size_t size) {
  if (size <= w->size) return AIT_OK;
  if (w->memory) munmap(w->memory, w->size);
  w->memory = NULL;
  w->size = 0;
  size = (size + (1u << 16)) / 4096 * 4096;
  if (ftruncate(w->shared, (off_t)size)) return no_worker(w->name, "shared memory");
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, w->shared, 0);
  if (p == MAP_FAILED) return no_worker(w->name, "shared memory");
  w->memory = p;
  w->size = size;
  return AIT_OK;
}

/* Request: 1, bytes of shared memory, where outputs may begin, number of inputs; per input its kind, then dtype, rank, sizes, offset of a
 * tensor, or 64 bits of a number. */
static ait_status put_inputs(guest_worker *w, const ait_value *inputs, uint32_t count, int64_t *words, size_t *out_words) {
  size_t bytes = 0, k = 4;
  for (uint32_t i = 0; i < count; ++i)
    if (inputs[i].kind == AIT_VALUE_TENSOR)
      bytes += aligned((size_t)ait_tensor_count(&inputs[i].as.tensor) * ait_dtype_size(inputs[i].as.tensor.dtype));
  ait_status status = map(w, bytes + ALIGN);
  if (status) return status;
  size_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const ait_value *v = &inputs[i];
    const ait_tensor *t = &v->as.tensor;
    if (k + 4 + AIT_MAX_RANK > MAX_WORDS) return ait_error(AIT_CODE_LIMIT, "'%s' takes no call with that many inputs", w->name);
    words[k++] = v->kind;
    if (v->kind == AIT_VALUE_STRING) return ait_error(AIT_CODE_UNSUPPORTED, "'%s' takes no text as an input", w->name);
    if (v->kind != AIT_VALUE_TENSOR) {
      words[k] = 0;
      if (v->kind == AIT_VALUE_BOOL) words[k] = v->as.b;
      else if (v->kind == AIT_VALUE_FLOAT) memcpy(&words[k], &v->as.f, sizeof v->as.f);
      else if (v->kind == AIT_VALUE_INT) words[k] = v->as.i;
      ++k;
      continue;
    }
    size_t n = (size_t)ait_tensor_count(t) * ait_dtype_size(t->dtype);
    words[k++] = t->dtype;
    words[k++] = t->rank;
    for (int32_t d = 0; d < t->rank; ++d) words[k++] = t->shape[d];
    words[k++] = (int64_t)at;
    if (n) memcpy(w->memory + at, t->data, n);
    at += aligned(n);
  }
  words[0] = 1;
  words[1] = (int64_t)w->size;
  words[2] = (int64_t)at;
  words[3] = count;
  *out_words = k;
  return AIT_OK;
}

static ait_status damaged(const guest_worker *w) {
  return ait_error(AIT_CODE_INTERNAL, "the process of '%s' gave a damaged answer", w->name);
}

static ait_status take_tensor(guest_worker *w, size_t words, size_t *at, ait_value *out) {
  if (*at + 2 > words) return damaged(w);
  int64_t dtype = w->words[(*at)++], rank = w->words[(*at)++];
  if (rank < 0 || rank > AIT_MAX_RANK || *at + (size_t)rank + 1 > words || dtype < 1 || dtype > 255 || !ait_dtype_size((ait_dtype)dtype))
    return damaged(w);
  const int64_t *shape = &w->words[*at];
  *at += (size_t)rank;
  int64_t offset = w->words[(*at)++], count = 1;
  for (int64_t d = 0; d < rank; ++d)
    if (shape[d] < 0 || __builtin_mul_overflow(count, shape[d], &count)) return damaged(w);
  if (offset < 0 || (size_t)offset > w->size || (uint64_t)count > (w->size - (size_t)offset) / ait_dtype_size((ait_dtype)dtype))
    return damaged(w);
  *out = ait_value_tensor(ait_tensor_borrow(w->memory + offset, (ait_dtype)dtype, (int32_t)rank, shape));
  return AIT_OK;
}

/* Answer: 0, nanoseconds, bytes of shared memory, number of outputs; outputs as inputs are in the request. */
static ait_status take_outputs(guest_worker *w, size_t words, ait_value *outputs, uint32_t count) {
  size_t at = 4;
  ait_status status = map(w, (size_t)w->words[2]);
  if (!status && w->words[3] != count)
    status = ait_error(AIT_CODE_INTERNAL, "'%s' gave %lld results, not %u", w->name, (long long)w->words[3], count);
  for (uint32_t i = 0; !status && i < count; ++i) {
    if (at + 2 > words) return damaged(w);
    int64_t kind = w->words[at++];
    outputs[i] = (ait_value){.kind = (ait_value_kind)kind};
    if (kind == AIT_VALUE_TENSOR) status = take_tensor(w, words, &at, &outputs[i]);
    else if (kind == AIT_VALUE_BOOL) outputs[i].as.b = w->words[at++] != 0;
    else if (kind == AIT_VALUE_INT) outputs[i].as.i = w->words[at++];
    else if (kind == AIT_VALUE_FLOAT) memcpy(&outputs[i].as.f, &w->words[at++], sizeof(double));
    else if (kind == AIT_VALUE_NONE) ++at;
    else status = damaged(w);
  }
  return status;
}

ait_status guest_worker_run(guest_worker *w, const ait_value *inputs, uint32_t input_count, ait_value *outputs, uint32_t output_count,
                            double *out_transport) {
  static _Thread_local int64_t words[MAX_WORDS];
  size_t count = 0;
  double start_time = now();
  ait_status status = put_inputs(w, inputs, input_count, words, &count);
  if (!status) status = send_words(w, words, count);
  if (!status) status = receive(w, 4, &count);
  if (!status) status = take_outputs(w, count, outputs, output_count);
  double wall = now() - start_time, own = status ? wall : 1e-9 * (double)w->words[1];
  *out_transport = own < wall ? wall - own : 0; /* what the worker says it took cannot be more than what passed here */
  return status;
}
