/* What a child process may not do to the machine and to the tuner. It guards against accidents, not against an attacker. */
#ifndef AIT_SRC_TUNE_CHILD_GUARD_H
#define AIT_SRC_TUNE_CHILD_GUARD_H

#include "base/base.h"
#include <sys/types.h>

/* In the child, first: no core files; at most `memory` bytes of addresses (0: no limit); files of at most 1 GiB and `files` bytes; the
 * kernel takes it first when the machine is out of memory; signals to the tuner, to the tuner's group and to everybody are refused (EPERM),
 * where the kernel has seccomp. */
void ait_child_guard(pid_t tuner, uint64_t memory, uint64_t files);

#endif
