/* --plugin: each is loaded in a child process first, so that one that crashes or hangs while it is loaded or asked costs no more than a
 * message. The command line has one thread then. */
#include "cli/cli.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT = 10 }; /* seconds */

/* What commands do in their own process with plugins: load them, and ask backends whether they are there. */
static void try_plugins(const char *const *paths, int count, int done) {
  char *text = NULL;
  for (int i = 0; i < count; ++i) ait_status_free(ait_plugin_load(paths[i])); /* what is wrong is told by the parent */
  ait_status_free(ait_backends(&text));
  _exit(write(done, "k", 1) == 1 ? 0 : 1);
}

/* Waits for the end; false: it took too long, and was killed. */
static bool ended(pid_t child, int *out_how) {
  for (int looks = 0; looks < 100 * LIMIT; ++looks) { /* a hundred a second, the first ones sooner */
    if (waitpid(child, out_how, WNOHANG) == child) return true;
    nanosleep(&(struct timespec){0, looks < 50 ? 1000000 : 10000000}, NULL);
  }
  kill(-child, SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, out_how, 0);
  return false;
}

static ait_status judge(const char *path, bool in_time, bool done, int how) {
  if (!in_time) return ait_error(AIT_CODE_UNAVAILABLE, "plugin '%s' took more than %d s to be loaded and asked what it is", path, LIMIT);
  if (WIFSIGNALED(how))
    return ait_error(AIT_CODE_UNAVAILABLE, "plugin '%s' crashed when it was loaded: %s", path, strsignal(WTERMSIG(how)));
  if (done) return AIT_OK;
  return ait_error(AIT_CODE_UNAVAILABLE, "plugin '%s' ended the process when it was loaded: exit code %d", path, WEXITSTATUS(how));
}

/* Named by the first of the paths. */
static ait_status survive(const char *const *paths, int count) {
  int pipes[2], how = 0;
  char byte = 0;
  if (pipe(pipes)) return ait_error(AIT_CODE_IO, "no pipe to try plugin '%s' with", paths[0]);
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    try_plugins(paths, count, pipes[1]);
  }
  close(pipes[1]);
  if (child < 0) return close(pipes[0]), ait_error(AIT_CODE_IO, "no process to try plugin '%s' in", paths[0]);
  bool in_time = ended(child, &how);
  kill(-child, SIGKILL); /* what it may have left behind */
  bool done = in_time && read(pipes[0], &byte, 1) == 1 && byte == 'k';
  close(pipes[0]);
  return ait_error_hint(judge(paths[0], in_time, done, how), "run without it");
}

/* All at once; one by one where that ends badly, to know which it is. */
static ait_status try_all(const char *const *paths, int count) {
  ait_status together = count > 0 ? survive(paths, count) : AIT_OK;
  for (int i = 0; together != AIT_OK && count > 1 && i < count; ++i) {
    ait_status alone = survive(&paths[i], 1);
    if (alone == AIT_OK) continue;
    ait_status_free(together);
    return alone;
  }
  return together;
}

int cli_plugins_load(const cli_args *args) {
  const char *paths[CLI_MAX_OPTIONS];
  int count = 0;
  while (count < CLI_MAX_OPTIONS && (paths[count] = cli_option_at(args, "plugin", count))) ++count;
  int code = cli_fail(try_all(paths, count));
  for (int i = 0; code == CLI_DONE && i < count; ++i) code = cli_fail(ait_plugin_load(paths[i]));
  return code;
}
