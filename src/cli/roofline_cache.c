/* $XDG_CACHE_HOME/ait/roofline-<machine>-<threads>.json, else below ~/.cache. The file holds what it is of: a cache folder that two
 * machines share, or a hash that two of them have in common, does no harm. */
#include "cli/roofline_cache.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool cache_folder(char *out, size_t size) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n;
  if (cache && *cache) n = snprintf(out, size, "%s/ait", cache);
  else if (home && *home) n = snprintf(out, size, "%s/.cache/ait", home);
  else return false;
  return n > 0 && (size_t)n < size;
}

/* What the roofline depends on: the machine, and the version of the kernels. */
static struct json_object *machine(void) {
  char *text = NULL;
  ait_status status = ait_machine(&text);
  struct json_object *o = status == AIT_OK ? json_tokener_parse(text) : NULL;
  if (o) json_object_object_add(o, "ait", json_object_new_string(ait_version()));
  ait_status_free(status);
  ait_string_free(text);
  return o;
}

static bool file_name(struct json_object *key, int32_t threads, char *out, size_t size) {
  char folder[3900];
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (const char *c = json_object_to_json_string(key); *c; ++c) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
  if (!cache_folder(folder, sizeof folder)) return false;
  int n = snprintf(out, size, "%s/roofline-%016llx-%d.json", folder, (unsigned long long)hash, threads);
  return n > 0 && (size_t)n < size;
}

char *cli_roofline_cached(int32_t threads) {
  char path[4096], *text = NULL;
  struct json_object *key = machine(), *file = NULL, *of = NULL, *roofline = NULL;
  if (key && file_name(key, threads, path, sizeof path)) file = json_object_from_file(path);
  if (file && json_object_object_get_ex(file, "machine", &of) && json_object_object_get_ex(file, "roofline", &roofline) &&
      json_object_equal(of, key))
    text = strdup(json_object_to_json_string(roofline));
  json_object_put(file);
  json_object_put(key);
  return text;
}

static void make_folders(const char *path) {
  char part[4096];
  snprintf(part, sizeof part, "%s", path);
  for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(part, 0777) && errno != EEXIST) return;
    *slash = '/';
  }
}

/* A cache that cannot be written costs the next call half a second: no word of it. */
static void keep(struct json_object *roofline, int32_t threads) {
  char path[4096], temporary[4200];
  struct json_object *key = machine(), *file = json_object_new_object();
  if (key && file_name(key, threads, path, sizeof path)) {
    json_object_object_add(file, "machine", json_object_get(key));
    json_object_object_add(file, "roofline", json_object_get(roofline));
    make_folders(path);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (json_object_to_file(temporary, file) == 0 && rename(temporary, path)) remove(temporary);
  }
  json_object_put(file);
  json_object_put(key);
}

char *cli_roofline_measure(const cli_args *args, int32_t threads) {
  char *text = NULL, *copy;
  if (!cli_flag(args, "quiet")) fprintf(stderr, "measuring what this machine can do (once)\n");
  ait_status status = ait_roofline_json(threads, 0, &text);
  if (status != AIT_OK) {
    if (!cli_flag(args, "quiet")) fprintf(stderr, "it could not be measured: %s\n", ait_status_message(status));
    ait_status_free(status);
    return NULL;
  }
  struct json_object *o = json_tokener_parse(text);
  if (o) keep(o, threads);
  json_object_put(o);
  copy = strdup(text);
  ait_string_free(text);
  return copy;
}
