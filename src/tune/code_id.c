#include "tune/code_id.h"
#include <ait/custom_op.h>
#include <dlfcn.h>
#include <stdio.h>

typedef void (*function)(void);

static const char *file_of(function f) {
  Dl_info info = {0};
  void *address;
  memcpy(&address, &f, sizeof address); /* POSIX: a function's address fits; ISO C has no cast for it */
  return dladdr(address, &info) ? info.dli_fname : NULL;
}

uint64_t ait_code_id(function f) {
  const char *path = file_of(f), *own = file_of((function)ait_code_id);
  ait_file_map *map;
  if (!path || (own && !strcmp(path, own))) return 0;
  ait_status status = ait_file_map_open(ait_allocator_default(), path, &map);
  if (status != AIT_OK) return ait_status_free(status), 0;
  uint64_t id = ait_hash(ait_file_map_data(map), ait_file_map_size(map), 1);
  ait_file_map_release(map);
  return id;
}

/* In the spelling of printed graphs, "mylib.foo". */
static bool names(const char *text, const char *op) {
  char name[256];
  const char *colons = strstr(op, "::");
  snprintf(name, sizeof name, "%.*s%s%s", colons ? (int)(colons - op) : 200, op, colons ? "." : "", colons ? colons + 2 : "");
  return strstr(text, name) || strstr(text, op);
}

uint64_t ait_code_id_of_operators(const char *text) {
  uint64_t id = 0;
  for (size_t i = 0; i < ait_custom_op_count(); ++i) {
    const ait_custom_op *op = ait_custom_op_at(i);
    if (!names(text, op->name)) continue;
    uint64_t code = ait_code_id((function)op->run);
    id = ait_hash(&code, sizeof code, id);
  }
  return id;
}
