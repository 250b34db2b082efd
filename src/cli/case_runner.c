/* Runs many cases, each in a child process: a crash or a hang is a failed case, not the end. */
#include "cli/case_runner.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_JOBS = 64 };

typedef struct job {
  pid_t pid;
  int pipe;
  size_t index;
  double deadline, started;
  case_result result;
  size_t received; /* bytes of `result` */
} job;

static const char *expect_of(struct json_object *c) {
  struct json_object *v;
  return json_object_object_get_ex(c, "expect", &v) ? json_object_get_string(v) : "";
}

/* Limits of CONTRACT: refusing a file takes under 5 s and 256 MiB. */
static bool is_limited(struct json_object *c) { return !strcmp(expect_of(c), "error") || !strcmp(expect_of(c), "either"); }

static _Noreturn void child(const case_run_options *o, struct json_object *c, int out) {
  case_result result;
  case_run(o->args, o->folder, c, &result);
  const char *p = (const char *)&result;
  for (size_t left = sizeof result; left;) {
    ssize_t n = write(out, p, left);
    if (n <= 0) _exit(70);
    p += n;
    left -= (size_t)n;
  }
  _exit(0);
}

static bool start(const case_run_options *o, size_t index, job *j) {
  int ends[2];
  if (pipe(ends)) return false;
  struct json_object *c = json_object_array_get_idx(o->cases, index);
  fflush(NULL);
  pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return false;
  }
  if (pid == 0) {
    close(ends[0]);
    child(o, c, ends[1]);
  }
  close(ends[1]);
  double t = cli_now(), limit = is_limited(c) && o->timeout > 5 * o->slack ? 5 * o->slack : o->timeout;
  *j = (job){.pid = pid, .pipe = ends[0], .index = index, .started = t, .deadline = t + limit};
  return true;
}

/* The child's pipe closed, or its time is over. */
static void finish(const case_run_options *o, job *j, bool timed_out) {
  int code = 0;
  struct rusage usage = {0};
  if (timed_out) kill(j->pid, SIGKILL);
  while (wait4(j->pid, &code, 0, &usage) < 0 && errno == EINTR) {}
  close(j->pipe);
  struct json_object *c = json_object_array_get_idx(o->cases, j->index);
  double seconds = cli_now() - j->started;
  if (timed_out) case_fail(&j->result, "timed out after %.0f s", seconds);
  else if (WIFSIGNALED(code)) case_fail(&j->result, "crashed: %s", strsignal(WTERMSIG(code)));
  else if (j->received < sizeof j->result) case_fail(&j->result, "the process ended with exit code %d", WEXITSTATUS(code));
  else if (is_limited(c) && o->slack == 1 && usage.ru_maxrss > 256 * 1024 && j->result.outcome == CASE_PASSED)
    case_fail(&j->result, "took %ld MiB, want at most 256", usage.ru_maxrss / 1024);
  o->done(o->ctx, j->index, &j->result, seconds);
  j->pid = 0;
}

static void receive(const case_run_options *o, job *j) {
  ssize_t n = read(j->pipe, (char *)&j->result + j->received, sizeof j->result - j->received);
  if (n > 0) j->received += (size_t)n;
  if (n == 0 || j->received == sizeof j->result) finish(o, j, false);
}

void case_run_all(const case_run_options *o, const bool *selected) {
  job jobs[MAX_JOBS] = {0};
  int running = 0, limit = o->jobs < 1 ? 1 : o->jobs > MAX_JOBS ? MAX_JOBS : o->jobs;
  size_t next = 0, count = json_object_array_length(o->cases);
  while (next < count || running) {
    for (int k = 0; k < limit && next < count; ++k) {
      while (next < count && !selected[next]) ++next;
      if (jobs[k].pid || next == count) continue;
      if (start(o, next, &jobs[k])) {
        ++running, ++next;
      } else if (!running) {
        case_result r;
        case_fail(&r, "cannot start a process: %s", strerror(errno));
        o->done(o->ctx, next++, &r, 0);
      } else {
        break;
      }
    }
    struct pollfd fds[MAX_JOBS];
    int owner[MAX_JOBS], n = 0;
    double t = cli_now(), soonest = t + 60;
    for (int k = 0; k < limit; ++k) {
      if (!jobs[k].pid) continue;
      owner[n] = k;
      fds[n++] = (struct pollfd){.fd = jobs[k].pipe, .events = POLLIN};
      if (jobs[k].deadline < soonest) soonest = jobs[k].deadline;
    }
    if (n && poll(fds, (nfds_t)n, soonest > t ? (int)((soonest - t) * 1000) + 1 : 0) < 0 && errno != EINTR) break;
    for (int i = 0; i < n; ++i) {
      job *j = &jobs[owner[i]];
      if (fds[i].revents) receive(o, j);
      else if (cli_now() >= j->deadline) finish(o, j, true);
      running -= j->pid == 0;
    }
  }
}
