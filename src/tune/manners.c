#include "tune/manners.h"
#include <locale.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const int watched[AIT_MANNERS_SIGNALS] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS, SIGFPE,
                                                 SIGSEGV, SIGPIPE, SIGALRM, SIGTERM, SIGCHLD, SIGUSR1, SIGUSR2};

/* Bits of the control register of this thread's floating point that change results: flush to zero, denormals are zero. */
static uint64_t float_mode(void) {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr() & 0x8040;
#elif defined(__aarch64__)
  uint64_t v;
  __asm__ volatile("mrs %0, fpcr" : "=r"(v));
  return v & (1u << 24);
#else
  return 0;
#endif
}

static mode_t mask_now(void) {
  mode_t mask = umask(077);
  umask(mask);
  return mask;
}

void ait_manners_look(ait_manners *m) {
  memset(m, 0, sizeof *m);
  if (!getcwd(m->folder, sizeof m->folder)) *m->folder = 0;
  const char *locale = setlocale(LC_ALL, NULL);
  snprintf(m->locale, sizeof m->locale, "%s", locale ? locale : "");
  m->mask = mask_now();
  for (int i = 0; i < AIT_MANNERS_SIGNALS; ++i) {
    struct sigaction action;
    if (sigaction(watched[i], NULL, &action) == 0) memcpy(&m->handlers[i], &action.sa_sigaction, sizeof m->handlers[i]);
  }
  m->rounding = fegetround();
  m->float_mode = float_mode();
}

ait_status ait_manners_check(const ait_manners *before) {
  ait_manners now;
  const char *what = NULL;
  ait_manners_look(&now);
  if (strcmp(now.folder, before->folder)) what = "the working folder";
  if (strcmp(now.locale, before->locale)) what = "the locale";
  if (now.mask != before->mask) what = "the mask of file modes";
  if (now.rounding != before->rounding) what = "the direction of rounding";
  if (now.float_mode != before->float_mode) what = "what happens to denormal numbers";
  for (int i = 0; i < AIT_MANNERS_SIGNALS && !what; ++i)
    if (now.handlers[i] != before->handlers[i])
      return ait_error(AIT_CODE_MISMATCH, "it changes the handler of signal %d (%s) of the process", watched[i], strsignal(watched[i]));
  return what ? ait_error(AIT_CODE_MISMATCH, "it changes %s of the process", what) : AIT_OK;
}
