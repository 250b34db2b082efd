/* Plugins: shared objects with custom operators and backends. They stay loaded. */
#include "custom/custom.h"

#include "backends/registry.h"

#include <dlfcn.h>
#include <stdlib.h>

static ait_status unloadable(const char *path) {
  const char *reason = dlerror();
  return ait_error_hint(ait_error(AIT_CODE_UNAVAILABLE, "cannot load plugin '%s': %s", path, reason ? reason : "unknown reason"),
                        "a plugin is a shared object (cc -shared -fPIC) for this machine and this version of ait");
}

static ait_status incompatible(const char *path, const char *what) {
  return ait_error(AIT_CODE_INCOMPATIBLE, "'%s' is no plugin for this version of ait: %s", path, what);
}

/* A table that was registered from this very file before is no fault: the same plugin may be named twice. */
static ait_status add_op(const ait_custom_op *op) {
  const ait_custom_op *known = op && op->name ? ait_custom_op_find(op->name) : NULL;
  return known == op && op ? AIT_OK : ait_custom_op_add(op);
}

static ait_status add_backend(const ait_backend *backend) {
  if (!backend) return ait_error(AIT_CODE_INVALID_ARGUMENT, "a backend is NULL");
  return backend->name && ait_backend_find(backend->name) == backend ? AIT_OK : ait_backend_add(backend);
}

static ait_status add_all(const char *path, const ait_plugin *plugin) {
  if (plugin->abi_version != AIT_PLUGIN_ABI || plugin->struct_size < sizeof *plugin)
    return incompatible(path, "it has another interface version");
  for (uint32_t i = 0; i < plugin->custom_op_count; ++i) AIT_TRY(ait_error_context(add_op(plugin->custom_ops[i]), "plugin '%s'", path));
  for (uint32_t i = 0; i < plugin->backend_count; ++i) AIT_TRY(ait_error_context(add_backend(plugin->backends[i]), "plugin '%s'", path));
  return AIT_OK;
}

ait_status ait_plugin_load(const char *path) {
  if (!path || !*path) return ait_error(AIT_CODE_INVALID_ARGUMENT, "a plugin without a name");
  /* A path, never a name that the loader would look for in its own folders. */
  char *full = realpath(path, NULL);
  if (!full) return ait_error(AIT_CODE_NOT_FOUND, "there is no plugin '%s'", path);
  void *library = dlopen(full, RTLD_NOW | RTLD_LOCAL);
  free(full);
  if (!library) return unloadable(path);
  union { /* ISO C has no way from an object pointer to a function */
    void *symbol;
    ait_plugin_query_fn plugin;
    ait_backend_query_fn backend;
  } query = {.symbol = dlsym(library, AIT_PLUGIN_QUERY_SYMBOL)};
  if (query.symbol) {
    const ait_plugin *plugin = query.plugin(AIT_PLUGIN_ABI);
    return plugin ? add_all(path, plugin) : incompatible(path, "it does not speak plugin interface 1");
  }
  query.symbol = dlsym(library, AIT_BACKEND_QUERY_SYMBOL);
  if (!query.symbol) return incompatible(path, "it exports neither " AIT_PLUGIN_QUERY_SYMBOL " nor " AIT_BACKEND_QUERY_SYMBOL);
  const ait_backend *backend = query.backend(AIT_BACKEND_ABI);
  if (!backend) return incompatible(path, "it does not speak backend interface 1");
  return ait_error_context(add_backend(backend), "plugin '%s'", path);
}
