#include "tune/memory_use.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A small file of the kernel; false when it cannot be read. */
static bool read_small(const char *path, char *out, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
  if (fd >= 0) close(fd);
  out[n > 0 ? n : 0] = 0;
  return n > 0;
}

static bool read_number(const char *path, uint64_t *out) {
  char text[64], *end;
  if (!read_small(path, text, sizeof text)) return false;
  errno = 0;
  *out = strtoull(text, &end, 10); /* "max" is none */
  return end != text && !errno;
}

/* "Name:   123 kB" in a text of such lines. */
static uint64_t kilobytes(const char *text, const char *name) {
  size_t n = strlen(name);
  for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
    if (!strncmp(line, name, n) && line[n] == ':') return strtoull(line + n + 1, NULL, 10) * 1024;
  return 0;
}

/* ---- what is left ----------------------------------------------------------------------------------------------------------------*/
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t room_in(const char *folder, const char *limit_file, const char *used_file) {
  char path[1400];
  uint64_t limit, used;
  snprintf(path, sizeof path, "%s/%s", folder, limit_file);
  if (!read_number(path, &limit)) return UINT64_MAX;
  snprintf(path, sizeof path, "%s/%s", folder, used_file);
  if (!read_number(path, &used)) return UINT64_MAX;
  return limit > used ? limit - used : 0;
}

/* The group and all above it: each may have a limit of its own. */
static uint64_t room_in_groups(const char *root, const char *mount, const char *group, const char *limit_file, const char *used_file) {
  char folder[1200];
  uint64_t room = UINT64_MAX;
  int n = snprintf(folder, sizeof folder, "%s%s%s", root, mount, group);
  size_t top = strlen(root) + strlen(mount);
  if (n < 0 || (size_t)n >= sizeof folder) return UINT64_MAX;
  for (;;) {
    room = least(room, room_in(folder, limit_file, used_file));
    char *slash = strrchr(folder, '/');
    if (!slash || (size_t)(slash - folder) < top) break;
    *slash = 0;
  }
  return room;
}

uint64_t ait_memory_available(const char *root) {
  char path[1100], text[8192];
  uint64_t room = UINT64_MAX;
  snprintf(path, sizeof path, "%s/proc/meminfo", root);
  if (read_small(path, text, sizeof text) && kilobytes(text, "MemAvailable")) room = kilobytes(text, "MemAvailable");
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (!read_small(path, text, sizeof text)) return room;
  char *save = NULL;
  for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) { /* "number:controllers:/group" */
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = 0;
    ++controllers;
    if (!strcmp(group, "/")) group = "";
    if (!*controllers) room = least(room, room_in_groups(root, "/sys/fs/cgroup", group, "memory.max", "memory.current"));
    else if (strstr(controllers, "memory"))
      room = least(room, room_in_groups(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes"));
  }
  return room;
}

/* ---- what this process has -------------------------------------------------------------------------------------------------------*/
ait_memory_use ait_memory_used(void) {
  char text[8192];
  if (!read_small("/proc/self/status", text, sizeof text)) return (ait_memory_use){0};
  uint64_t shared = kilobytes(text, "RssFile") + kilobytes(text, "RssShmem"), peak = kilobytes(text, "VmHWM");
  return (ait_memory_use){
      .own = kilobytes(text, "RssAnon"), .peak = peak > shared ? peak - shared : 0, .address_space = kilobytes(text, "VmSize")};
}

void ait_memory_mark(void) {
  malloc_trim(0);
  int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, "5", 1) != 1) errno = 0; /* without it the peak is that of the whole life */
  close(fd);
}

/* ---- energy ----------------------------------------------------------------------------------------------------------------------*/
static int is_package(const struct dirent *e) { /* "intel-rapl:0"; "intel-rapl:0:1" is a part of one */
  return !strncmp(e->d_name, "intel-rapl:", 11) && !strchr(e->d_name + 11, ':');
}

void ait_energy_read(const char *root, ait_energy *out) {
  char folder[1100], path[1400];
  struct dirent **names;
  *out = (ait_energy){0};
  snprintf(folder, sizeof folder, "%s/sys/class/powercap", root);
  int n = scandir(folder, &names, is_package, alphasort);
  if (n <= 0) snprintf(out->why_not, sizeof out->why_not, "this machine shows no RAPL counters");
  out->count = n < 0 ? 0 : n < AIT_ENERGY_PACKAGES ? n : AIT_ENERGY_PACKAGES;
  for (int i = 0; i < out->count; ++i) {
    uint64_t energy, range = 0;
    snprintf(path, sizeof path, "%s/%.64s/energy_uj", folder, names[i]->d_name);
    errno = 0;
    if (read_number(path, &energy)) out->joules[i] = 1e-6 * (double)energy;
    else
      snprintf(out->why_not, sizeof out->why_not, "the RAPL counters cannot be read: %s",
               errno == EACCES ? "only root may" : "not a number");
    snprintf(path, sizeof path, "%s/%.64s/max_energy_range_uj", folder, names[i]->d_name);
    if (read_number(path, &range)) out->wraps_at[i] = 1e-6 * (double)range;
  }
  for (int i = 0; i < n; ++i) free(names[i]);
  if (n >= 0) free(names);
}

double ait_energy_between(const ait_energy *before, const ait_energy *after) {
  if (*before->why_not || *after->why_not) return -1;
  double joules = 0;
  for (int i = 0; i < before->count && i < after->count; ++i) {
    double grown = after->joules[i] - before->joules[i];
    joules += grown < 0 ? grown + after->wraps_at[i] : grown;
  }
  return joules;
}
