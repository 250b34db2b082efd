#include "tune/child_guard.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void limit(int what, uint64_t bytes) {
  struct rlimit l = {bytes, bytes};
  setrlimit((__rlimit_resource_t)what, &l);
}

static void die_first(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t n = write(fd, "1000", 4);
  (void)n; /* as the system allows */
  close(fd);
}

/* seccomp(2): the number of the call, then the low half of its first argument (whom the signal is for), each compared and refused. */
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value, forward) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), forward, 0)
#define END(what) BPF_STMT(BPF_RET | BPF_K, what)

static void refuse_signals(pid_t tuner) {
  struct sock_filter filter[] = {
      LOAD(nr),
      IS(SYS_kill, 5),
      IS(SYS_tkill, 4),
      IS(SYS_tgkill, 3),
      IS(SYS_rt_sigqueueinfo, 2),
      IS(SYS_rt_tgsigqueueinfo, 1),
      END(SECCOMP_RET_ALLOW),
      LOAD(args[0]),
      IS(tuner, 3),
      IS(-getpgid(tuner), 2),
      IS(-1, 1),
      END(SECCOMP_RET_ALLOW),
      END(SECCOMP_RET_ERRNO | 1 /* EPERM */),
  };
  struct sock_fprog program = {.len = AIT_COUNT(filter), .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

void ait_child_guard(pid_t tuner, uint64_t memory, uint64_t files) {
  limit(RLIMIT_CORE, 0);
  signal(SIGXFSZ, SIG_DFL); /* whatever the tuner was started with */
  limit(RLIMIT_FSIZE, ((uint64_t)1 << 30) + files);
  if (memory) limit(RLIMIT_AS, memory);
  die_first();
  refuse_signals(tuner);
}
