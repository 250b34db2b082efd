/* Read-only mappings, whole-file reads, atomic writes. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static ait_status io_error(int number, const char *doing, const char *path) {
  char text[128];
  bool missing =
      (number == ENOENT || number == ENOTDIR) && strcmp(doing, "write") != 0; /* no folder to write into: this place, not the data */
  ait_code code = missing ? AIT_CODE_NOT_FOUND : number == ENOMEM ? AIT_CODE_OUT_OF_MEMORY : AIT_CODE_IO;
  return ait_error(code, "cannot %s '%s': %s", doing, path, strerror_r(number, text, sizeof text));
}

/* O_NONBLOCK: opening a FIFO that nobody writes to must not hang. */
static ait_status open_read(const char *path, int *out_fd, struct stat *out_stat) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error(errno, "open", path);
  if (fstat(fd, out_stat) != 0) {
    ait_status status = io_error(errno, "open", path);
    close(fd);
    return status;
  }
  if (S_ISDIR(out_stat->st_mode)) {
    close(fd);
    return io_error(EISDIR, "open", path);
  }
  *out_fd = fd;
  return AIT_OK;
}

/* ---- mapping -------------------------------------------------------------------------------------------------------------------*/
struct ait_file_map {
  ait_allocator allocator;
  atomic_size_t references;
  const uint8_t *data;
  size_t size;
};

ait_status ait_file_map_open(ait_allocator a, const char *path, ait_file_map **out) {
  int fd = -1;
  struct stat info;
  AIT_TRY(open_read(path, &fd, &info));
  ait_status status = AIT_OK;
  void *data = NULL;
  ait_file_map *map = ait_alloc(a, sizeof *map, _Alignof(ait_file_map));
  if (!map) AIT_GOTO(AIT_OOM());
  if (!S_ISREG(info.st_mode)) AIT_GOTO(ait_error(AIT_CODE_IO, "cannot map '%s': not a regular file", path));
  if (info.st_size > 0) data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) AIT_GOTO(io_error(errno, "map", path));
  map->allocator = a;
  atomic_init(&map->references, 1);
  map->data = data ? data : (const uint8_t *)""; /* an empty file cannot be mapped */
  map->size = (size_t)info.st_size;
  *out = map;
  map = NULL;
cleanup:
  close(fd);
  ait_free(a, map, sizeof *map);
  return status;
}

const uint8_t *ait_file_map_data(const ait_file_map *map) { return map->data; }
size_t ait_file_map_size(const ait_file_map *map) { return map->size; }

ait_file_map *ait_file_map_retain(ait_file_map *map) {
  if (map) atomic_fetch_add_explicit(&map->references, 1, memory_order_relaxed);
  return map;
}

void ait_file_map_release(ait_file_map *map) {
  if (!map || atomic_fetch_sub_explicit(&map->references, 1, memory_order_acq_rel) != 1) return;
  if (map->size) munmap((void *)map->data, map->size);
  ait_free(map->allocator, map, sizeof *map);
}

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

void ait_file_map_prefetch(const ait_file_map *map, size_t offset, size_t size) {
  if (offset >= map->size || size == 0) return;
  if (size > map->size - offset) size = map->size - offset;
  size_t page = (size_t)sysconf(_SC_PAGESIZE), start = offset & ~(page - 1);
  void *p = (void *)(map->data + start);
  if (madvise(p, offset - start + size, MADV_POPULATE_READ) != 0) madvise(p, offset - start + size, MADV_WILLNEED);
}

/* ---- whole file ----------------------------------------------------------------------------------------------------------------*/
/* read() that ends only at the end of the file, an error or a full buffer. -1: errno says why. */
static ssize_t read_fully(int fd, char *data, size_t size) {
  size_t done = 0;
  while (done < size) {
    size_t chunk = size - done < (size_t)1 << 30 ? size - done : (size_t)1 << 30;
    ssize_t n = read(fd, data + done, chunk);
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    done += (size_t)n;
  }
  return (ssize_t)done;
}

/* Files such as those of /proc have no size: read until nothing comes. The text always has room for one byte more than `limit`. */
static ait_status read_growing(int fd, const char *path, size_t limit, ait_text *text) {
  char chunk[16384];
  for (;;) {
    ssize_t n = read_fully(fd, chunk, sizeof chunk);
    if (n < 0) return io_error(errno, "read", path);
    if (n == 0) return AIT_OK;
    if ((size_t)n > limit - text->length) return ait_error(AIT_CODE_LIMIT, "cannot read '%s': it has more than %zu bytes", path, limit);
    ait_text_append(text, chunk, (size_t)n);
    if (text->failed) return AIT_OOM();
  }
}

ait_status ait_file_read(ait_allocator a, const char *path, size_t limit, char **out, size_t *out_size) {
  int fd = -1;
  struct stat info;
  AIT_TRY(open_read(path, &fd, &info));
  int flags = fcntl(fd, F_GETFL);
  if (flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  ait_status status = AIT_OK;
  char *data = NULL;
  size_t size = 0;
  ait_text text;
  ait_text_init(&text, a);
  if (S_ISREG(info.st_mode) && (uint64_t)info.st_size > limit) {
    AIT_GOTO(ait_error(AIT_CODE_LIMIT, "cannot read '%s': it has more than %zu bytes", path, limit));
  }
  if (S_ISREG(info.st_mode) && info.st_size > 0) {
    size = (size_t)info.st_size;
    data = ait_alloc(a, size + 1, 1);
    if (!data) AIT_GOTO(AIT_OOM());
    ssize_t n = read_fully(fd, data, size);
    if (n < 0) AIT_GOTO(io_error(errno, "read", path));
    if ((size_t)n != size) AIT_GOTO(ait_error(AIT_CODE_IO, "cannot read '%s': it changed while being read", path));
  } else {
    AIT_GOTO(read_growing(fd, path, limit, &text));
    size = text.length;
    data = ait_alloc(a, size + 1, 1);
    if (!data) AIT_GOTO(AIT_OOM());
    if (size) memcpy(data, text.data, size);
  }
  data[size] = '\0';
  *out = data;
  *out_size = size;
  data = NULL;
cleanup:
  ait_free(a, data, size + 1);
  ait_text_deinit(&text);
  close(fd);
  return status;
}

/* ---- atomic writer -------------------------------------------------------------------------------------------------------------
 * Three ways: an unnamed file (O_TMPFILE) that gets its name at commit, so that even kill -9 leaves nothing; a named temporary file where
 * the file system has no unnamed ones; and plain writing where the target is a device or a pipe. */
enum { WRITER_BUFFER = 1 << 16 };
typedef enum writer_kind { WRITER_UNNAMED, WRITER_NAMED, WRITER_DIRECT } writer_kind;

struct ait_file_writer {
  ait_allocator allocator;
  writer_kind kind;
  int fd;
  uint64_t offset; /* of everything accepted, buffered or not */
  size_t buffered;
  bool failed, committed, linked; /* linked: the temporary name exists */
  char path[PATH_MAX];
  char temporary[PATH_MAX];
  uint8_t buffer[WRITER_BUFFER];
};

/* A symbolic link keeps pointing where it did: what it points to is replaced. */
static ait_status writer_target(ait_file_writer *w, const char *path) {
  struct stat info;
  if (strlen(path) + 64 > sizeof w->path) return io_error(ENAMETOOLONG, "write", path);
  if (*path == '\0' || ait_ends_with(path, "/")) return io_error(EISDIR, "write", path);
  if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
    char resolved[PATH_MAX];
    if (!realpath(path, resolved)) return io_error(errno, "write", path);
    if (strlen(resolved) + 64 > sizeof w->path) return io_error(ENAMETOOLONG, "write", path);
    path = resolved;
    memcpy(w->path, path, strlen(path) + 1);
    return AIT_OK;
  }
  memcpy(w->path, path, strlen(path) + 1);
  return AIT_OK;
}

static size_t directory_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (slash == path ? 1 : (size_t)(slash - path)) : 0;
}

static void directory_of(const char *path, char out[PATH_MAX]) {
  size_t length = directory_length(path);
  if (length == 0) out[length++] = '.';
  else memcpy(out, path, length);
  out[length] = '\0';
}

static void temporary_name(ait_file_writer *w) {
  static atomic_uint counter;
  snprintf(w->temporary, sizeof w->temporary, "%.*s.tmp-%ld-%u", PATH_MAX - 64, w->path, (long)getpid(), atomic_fetch_add(&counter, 1));
}

static ait_status writer_open(ait_file_writer *w) {
  struct stat info;
  bool exists = stat(w->path, &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return io_error(EISDIR, "write", w->path);
  if (exists && !S_ISREG(info.st_mode)) {
    w->kind = WRITER_DIRECT;
    w->fd = open(w->path, O_WRONLY | O_CLOEXEC);
    return w->fd < 0 ? io_error(errno, "write", w->path) : AIT_OK;
  }
  mode_t mode = exists ? info.st_mode & 0777 : 0666;
#ifdef O_TMPFILE
  char directory[PATH_MAX];
  directory_of(w->path, directory);
  if (access("/proc/self/fd", X_OK) == 0) w->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
#endif
  w->kind = WRITER_UNNAMED;
  if (w->fd < 0) {
    w->kind = WRITER_NAMED;
    for (int attempt = 0; attempt < 100 && w->fd < 0; attempt++) {
      temporary_name(w);
      w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      if (w->fd < 0 && errno != EEXIST) break;
    }
    if (w->fd < 0) return io_error(errno, "write", w->path);
    w->linked = true;
  }
  if (exists) AIT_UNUSED(fchmod(w->fd, mode)); /* without the umask; a refusal leaves a stricter mode */
  return AIT_OK;
}

ait_status ait_file_writer_create(ait_allocator a, const char *path, ait_file_writer **out) {
  ait_file_writer *w = ait_alloc(a, sizeof *w, _Alignof(ait_file_writer));
  if (!w) return AIT_OOM();
  w->allocator = a;
  w->fd = -1;
  w->offset = 0;
  w->buffered = 0;
  w->failed = w->committed = w->linked = false;
  ait_status status = writer_target(w, path);
  if (!status) status = writer_open(w);
  if (status) {
    ait_file_writer_destroy(w);
    return status;
  }
  *out = w;
  return AIT_OK;
}

static ait_status write_fully(ait_file_writer *w, const uint8_t *data, size_t size) {
  while (size > 0) {
    ssize_t n = write(w->fd, data, size < (size_t)1 << 30 ? size : (size_t)1 << 30);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      w->failed = true;
      return io_error(n < 0 ? errno : EIO, "write", w->path);
    }
    data += n;
    size -= (size_t)n;
  }
  return AIT_OK;
}

static ait_status writer_flush(ait_file_writer *w) {
  size_t size = w->buffered;
  w->buffered = 0;
  return write_fully(w, w->buffer, size);
}

static ait_status writer_usable(const ait_file_writer *w) {
  if (w->committed) return ait_error(AIT_CODE_INTERNAL, "cannot write '%s': already committed", w->path);
  return w->failed ? ait_error(AIT_CODE_IO, "cannot write '%s': an earlier write failed", w->path) : AIT_OK;
}

ait_status ait_file_writer_write(ait_file_writer *w, const void *data, size_t size) {
  AIT_TRY(writer_usable(w));
  if (size > WRITER_BUFFER - w->buffered) AIT_TRY(writer_flush(w));
  if (size >= WRITER_BUFFER) {
    AIT_TRY(write_fully(w, data, size));
  } else if (size > 0) {
    memcpy(w->buffer + w->buffered, data, size);
    w->buffered += size;
  }
  w->offset += size;
  return AIT_OK;
}

uint64_t ait_file_writer_offset(const ait_file_writer *w) { return w->offset; }

/* Gives an unnamed file a temporary name, since linking cannot replace. */
static ait_status writer_link(ait_file_writer *w) {
  char self[64];
  snprintf(self, sizeof self, "/proc/self/fd/%d", w->fd);
  for (int attempt = 0; attempt < 100; attempt++) {
    temporary_name(w);
    if (linkat(AT_FDCWD, self, AT_FDCWD, w->temporary, AT_SYMLINK_FOLLOW) == 0) {
      w->linked = true;
      return AIT_OK;
    }
    if (errno != EEXIST) break;
  }
  return io_error(errno, "write", w->path);
}

static void sync_directory(const char *path) {
  char directory[PATH_MAX];
  directory_of(path, directory);
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

ait_status ait_file_writer_commit(ait_file_writer *w) {
  AIT_TRY(writer_usable(w));
  AIT_TRY(writer_flush(w));
  if (fsync(w->fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) {
    w->failed = true;
    return io_error(errno, "write", w->path);
  }
  if (w->kind == WRITER_UNNAMED) AIT_TRY(writer_link(w));
  int fd = w->fd;
  w->fd = -1;
  if (close(fd) != 0 && errno != EINTR) {
    w->failed = true;
    return io_error(errno, "write", w->path);
  }
  if (w->kind != WRITER_DIRECT) {
    if (rename(w->temporary, w->path) != 0) {
      w->failed = true;
      return io_error(errno, "write", w->path);
    }
    w->linked = false;
    sync_directory(w->path);
  }
  w->committed = true;
  return AIT_OK;
}

void ait_file_writer_destroy(ait_file_writer *w) {
  if (!w) return;
  if (w->fd >= 0) close(w->fd);
  if (w->linked) unlink(w->temporary);
  ait_free(w->allocator, w, sizeof *w);
}

ait_status ait_file_write_all(ait_allocator a, const char *path, const void *data, size_t size) {
  ait_file_writer *w = NULL;
  AIT_TRY(ait_file_writer_create(a, path, &w));
  ait_status status = ait_file_writer_write(w, data, size);
  if (!status) status = ait_file_writer_commit(w);
  ait_file_writer_destroy(w);
  return status;
}
