#include "tune/child.h"
#include "tune/child_guard.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOST_RESULT = 70, LAST_WORDS = 96 };

typedef struct pipes {
  int result[2], words[2]; /* what the child computed; what it printed */
} pipes;

/* ---- in the child --------------------------------------------------------------------------------------------------------------------*/
static bool send_all(int fd, const void *data, size_t size) {
  for (const char *p = data; size > 0;) {
    ssize_t n = write(fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
}

/* Standard output may be a report, and the terminal the user's: neither is the child's. */
static void redirect(const pipes *p) {
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(p->words[1], STDOUT_FILENO);
  dup2(p->words[1], STDERR_FILENO);
}

static uint64_t weight_bytes(const ait_graph *raw) {
  uint64_t sum = 0;
  for (size_t i = 0; raw && raw->weights && i < ait_weight_store_storage_count(raw->weights); ++i)
    sum += ait_storage_bytes(ait_weight_store_storage(raw->weights, (uint32_t)i));
  return sum;
}

static _Noreturn void child(const ait_child_job *j, const pipes *p, ait_child_work *work, pid_t tuner) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);           /* a killed tuner leaves no children */
  if (getppid() != tuner) _exit(LOST_RESULT); /* it died before that */
  setpgid(0, 0);
  signal(SIGINT, SIG_IGN); /* the tuner decides */
  close(p->result[0]);
  close(p->words[0]);
  redirect(p);
  ait_child_guard(tuner, j->x->options->trial_bytes, 2 * weight_bytes(j->x->raw));
  j->run(j->ctx, work, j->out);
  uint64_t sum = ait_hash(j->out, j->out_size, 0);
  bool sent = send_all(p->result[1], j->out, j->out_size) && send_all(p->result[1], &sum, sizeof sum);
  _exit(sent ? 0 : LOST_RESULT);
}

/* ---- in the tuner --------------------------------------------------------------------------------------------------------------------*/
typedef enum end_kind { END_DONE, END_CRASHED, END_TIMEOUT, END_CANCELLED, END_SILENT, END_GARBLED } end_kind;

typedef struct receiver {
  const ait_child_job *job;
  pid_t pid;
  int result, words;
  size_t got;
  uint64_t sum;
  char said[4096]; /* the end of what it printed */
  size_t said_length;
} receiver;

/* *out_closed: nobody can send any more. */
static void read_result(receiver *r, bool *out_closed) {
  size_t size = r->job->out_size, whole = size + sizeof r->sum;
  void *to = r->got < size ? (char *)r->job->out + r->got : (char *)&r->sum + (r->got - size);
  ssize_t n = r->got == whole ? 0 : read(r->result, to, r->got < size ? size - r->got : whole - r->got);
  if (n > 0) r->got += (size_t)n;
  *out_closed = n == 0;
}

static bool is_whole(const receiver *r) { return r->got == r->job->out_size + sizeof r->sum; }

/* What is printed is read so that nobody waits for it, and all but the end is forgotten. */
static bool read_words(receiver *r) {
  char text[16384];
  ssize_t n = read(r->words, text, sizeof text);
  if (n <= 0) return false;
  size_t size = sizeof r->said, keep = (size_t)n > size ? size : (size_t)n;
  size_t old = r->said_length + keep > size ? size - keep : r->said_length;
  memmove(r->said, r->said + r->said_length - old, old);
  memcpy(r->said + old, text + n - keep, keep);
  r->said_length = old + keep;
  return true;
}

/* Ended, and not yet waited for: its number is still its own. */
static bool has_ended(pid_t pid) {
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Until the result is whole, the child is gone, or time is over. */
static end_kind receive(receiver *r) {
  const ait_child_job *j = r->job;
  double deadline = ait_clock_seconds() + j->limit;
  bool closed = false, words = true;
  for (double closed_since = 0;;) {
    struct pollfd p[2] = {{.fd = closed ? -1 : r->result, .events = POLLIN}, {.fd = words ? r->words : -1, .events = POLLIN}};
    bool ended = has_ended(r->pid); /* before looking for what it may have sent last */
    int ready = poll(p, 2, ended ? 0 : 100);
    if (ready > 0 && p[0].revents) read_result(r, &closed);
    if (ready > 0 && p[1].revents) words = read_words(r);
    if (is_whole(r)) return r->sum == ait_hash(j->out, j->out_size, 0) ? END_DONE : END_GARBLED;
    if (ended && ready <= 0) return r->got ? END_GARBLED : END_CRASHED;
    if (closed && !closed_since) closed_since = ait_clock_seconds();
    if (closed && !ended && ait_clock_seconds() - closed_since > 1) return END_SILENT;
    if (j->x->idle) j->x->idle(j->x->idle_ctx);
    if (j->x->options->cancel && *j->x->options->cancel) return END_CANCELLED;
    if (ait_clock_seconds() > deadline) return END_TIMEOUT;
  }
}

/* The last line that it printed, of printable characters. */
static void last_words(receiver *r, char out[LAST_WORDS]) {
  size_t end = r->said_length, begin;
  while (end > 0 && (unsigned char)r->said[end - 1] <= ' ') --end;
  for (begin = end; begin > 0 && r->said[begin - 1] != '\n' && end - begin < LAST_WORDS - 1;) --begin;
  size_t n = 0;
  for (size_t i = begin; i < end; ++i) {
    char c = r->said[i];
    out[n++] = c >= ' ' && c < 127 ? c : '?';
  }
  out[n] = 0;
}

static void say_how(receiver *r, end_kind end, int code, const ait_child_work *work, char reason[AIT_REASON_SIZE]) {
  char words[LAST_WORDS], how[128];
  const char *doing = work->doing;
  if (end == END_TIMEOUT) snprintf(how, sizeof how, "took more than %.0f s", r->job->limit);
  else if (end == END_SILENT || (end == END_CRASHED && WIFEXITED(code) && WEXITSTATUS(code) == LOST_RESULT))
    snprintf(how, sizeof how, "its result did not come through: files were closed that are not its own");
  else if (end == END_GARBLED) snprintf(how, sizeof how, "its result did not come through whole");
  else if (WIFSIGNALED(code)) snprintf(how, sizeof how, "the child process died: %s", strsignal(WTERMSIG(code)));
  else snprintf(how, sizeof how, "the child process ended with exit code %d", WEXITSTATUS(code));
  last_words(r, words);
  snprintf(reason, AIT_REASON_SIZE, "%s%s%s%s%s%s", how, doing ? ", " : "", doing ? doing : "", *words ? "; it said '" : "", words,
           *words ? "'" : "");
}

static end_kind wait_for(ait_child_job *j, const pipes *p, pid_t pid, const ait_child_work *work, char reason[AIT_REASON_SIZE]) {
  receiver r = {.job = j, .pid = pid, .result = p->result[0], .words = p->words[0]};
  fcntl(r.words, F_SETFL, O_NONBLOCK);
  setpgid(pid, pid); /* as the child does: whoever comes first */
  end_kind end = receive(&r);
  kill(-pid, SIGKILL); /* and what it has started */
  kill(pid, SIGKILL);
  int code = 0;
  while (waitpid(pid, &code, 0) < 0 && errno == EINTR) {}
  while (r.said_length == 0 && read_words(&r)) {}
  if (end != END_DONE && end != END_CANCELLED) say_how(&r, end, code, work, reason);
  return end;
}

static void close_both(int fd[2]) {
  close(fd[0]);
  close(fd[1]);
}

static end_kind run_with(ait_child_job *j, ait_child_work *work, const pipes *p, char reason[AIT_REASON_SIZE]) {
  pid_t tuner = getpid(), pid = fork();
  if (pid == 0) child(j, p, work, tuner);
  close(p->result[1]);
  close(p->words[1]);
  end_kind end = END_CRASHED;
  if (pid < 0) snprintf(reason, AIT_REASON_SIZE, "no child process: %s", strerror(errno));
  else end = wait_for(j, p, pid, work, reason);
  close(p->result[0]);
  close(p->words[0]);
  return end;
}

ait_status ait_child_run(ait_child_job *j, ait_outcome *out_failure, char reason[AIT_REASON_SIZE]) {
  pipes p;
  end_kind end = END_CRASHED;
  *reason = 0;
  j->work = (ait_child_work){0};
  ait_child_work *work = mmap(NULL, sizeof *work, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (work == MAP_FAILED) return AIT_OOM();
  if (pipe(p.result)) snprintf(reason, AIT_REASON_SIZE, "no pipe: %s", strerror(errno));
  else if (pipe(p.words)) snprintf(reason, AIT_REASON_SIZE, "no pipe: %s", strerror(errno)), close_both(p.result);
  else end = run_with(j, work, &p, reason);
  j->work = *work;
  munmap(work, sizeof *work);
  *out_failure = end == END_TIMEOUT ? AIT_OUTCOME_TIMEOUT : end == END_DONE ? AIT_OUTCOME_NONE : AIT_OUTCOME_CRASHED;
  return end == END_CANCELLED ? ait_error(AIT_CODE_CANCELLED, "tuning was interrupted") : AIT_OK;
}
