/* Where other people's engines are found. */
#include "backends/guest/guest.h"
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- configuration: once, before the first use -------------------------------------------------------------------------------------- */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folders[4096]; /* separated by colons */
static atomic_bool settled;

ait_status ait_guests_configure(const ait_guest_options *options) {
  const char *path = options->search_path ? options->search_path : "";
  if (options->struct_size < sizeof *options) return ait_error(AIT_CODE_INVALID_ARGUMENT, "guest options of another version");
  if (strlen(path) >= sizeof folders) return ait_error(AIT_CODE_LIMIT, "a search path of more than %zu characters", sizeof folders - 1);
  pthread_mutex_lock(&lock);
  memcpy(folders, path, strlen(path) + 1);
  pthread_mutex_unlock(&lock);
  atomic_store(&settled, options->usage_reporting_settled);
  return AIT_OK;
}
bool guest_reporting_settled(void) { return atomic_load(&settled); }

/* ---- search -------------------------------------------------------------------------------------------------------------------------- */
/* Where distributions and Python put packages; a folder may be a glob. */
static const char system_folders[] =
    "/usr/local/lib/python3*/site-packages:/usr/local/lib/python3*/dist-packages:/usr/lib/python3/dist-packages:/usr/local/lib:/usr/lib";

static bool open_file(const char *file, const char *symbol, guest_library *out) {
  char real[PATH_MAX];
  if (!realpath(file, real) || strlen(real) >= sizeof out->path) return false; /* engines look for their parts beside the real file */
  void *handle = dlopen(real, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    snprintf(out->reason, sizeof out->reason, "%.250s", dlerror());
    return false;
  }
  if (!dlsym(handle, symbol)) {
    snprintf(out->reason, sizeof out->reason, "'%.150s' has no '%s'", real, symbol);
    return false;
  }
  out->handle = handle;
  memcpy(out->path, real, strlen(real) + 1); /* it fits: see above */
  return true;
}

/* The newest by name comes last in a glob's order. */
static bool open_pattern(const char *pattern, const char *symbol, guest_library *out) {
  glob_t found;
  bool done = false;
  if (glob(pattern, 0, NULL, &found) != 0) return false;
  for (size_t i = found.gl_pathc; i > 0 && !done; --i) done = open_file(found.gl_pathv[i - 1], symbol, out);
  globfree(&found);
  return done;
}

static bool open_in(const char *list, const char *pattern, const char *symbol, guest_library *out) {
  for (const char *at = list; *at;) {
    size_t length = strcspn(at, ":");
    char whole[PATH_MAX];
    int n = snprintf(whole, sizeof whole, "%.*s/%s", (int)length, at, pattern);
    if (length && n > 0 && (size_t)n < sizeof whole && open_pattern(whole, symbol, out)) return true;
    /* the library's own folder may be named, too */
    const char *file = strrchr(pattern, '/');
    n = file ? snprintf(whole, sizeof whole, "%.*s%s", (int)length, at, file) : 0;
    if (length && n > 0 && (size_t)n < sizeof whole && open_pattern(whole, symbol, out)) return true;
    at += length + (at[length] == ':');
  }
  return false;
}

void guest_library_open(const char *pattern, const char *symbol, guest_library *out) {
  char named[sizeof folders];
  out->handle = NULL;
  *out->path = *out->reason = 0;
  pthread_mutex_lock(&lock);
  memcpy(named, folders, sizeof named);
  pthread_mutex_unlock(&lock);
  if (open_in(named, pattern, symbol, out) || open_in(system_folders, pattern, symbol, out)) return;
  if (!*out->reason)
    snprintf(out->reason, sizeof out->reason, "no '%s' in %.100s%s%.100s", pattern, named, *named ? " or " : "", system_folders);
}

/* ---- opening ---------------------------------------------------------------------------------------------------------------------- */
bool guest_is_here(const guest_engine *engine) {
  guest_library *l = engine->library;
  pthread_mutex_lock(&l->lock);
  if (!l->usable) engine->open(l); /* again each time: another configuration may find it */
  bool usable = l->usable;
  pthread_mutex_unlock(&l->lock);
  return usable;
}

ait_status guest_unavailable(const guest_engine *engine) {
  return ait_error(AIT_CODE_UNAVAILABLE, "%s is not here: %s", engine->name, engine->library->reason);
}

void guest_probe(const guest_engine *engine, ait_probe *out) {
  out->available = guest_is_here(engine);
  snprintf(out->version, sizeof out->version, "%s", engine->library->version);
  snprintf(out->detail, sizeof out->detail, "%.250s", out->available ? engine->library->path : engine->library->reason);
}
