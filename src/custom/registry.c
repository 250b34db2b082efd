/* The table of custom operators. Slots are written under the lock, before the count that readers go by. */
#include "custom/custom.h"

#include <pthread.h>
#include <stdatomic.h>

enum { OPERATOR_LIMIT = 256 };

static ait_custom_entry entries[OPERATOR_LIMIT];
static atomic_size_t entry_count;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* "mylib::foo.default", "mylib::foo" and "mylib.foo" name the same. */
static bool same_name(const char *a, const char *b) {
  for (;;) {
    if (a[0] == ':' && a[1] == ':') ++a;
    if (b[0] == ':' && b[1] == ':') ++b;
    if (strcmp(a, ".default") == 0) a += strlen(a);
    if (strcmp(b, ".default") == 0) b += strlen(b);
    char x = *a == ':' ? '.' : *a, y = *b == ':' ? '.' : *b;
    if (x != y) return false;
    if (!x) return true;
    ++a;
    ++b;
  }
}

const ait_custom_entry *ait_custom_find(const char *name) {
  for (size_t i = 0, n = atomic_load(&entry_count); i < n; ++i)
    if (same_name(entries[i].op->name, name)) return &entries[i];
  return NULL;
}

const ait_custom_op *ait_custom_op_find(const char *name) {
  const ait_custom_entry *e = name ? ait_custom_find(name) : NULL;
  return e ? e->op : NULL;
}

size_t ait_custom_op_count(void) { return atomic_load(&entry_count); }

const ait_custom_op *ait_custom_op_at(size_t index) { return index < atomic_load(&entry_count) ? entries[index].op : NULL; }

const char *ait_custom_schema(const ait_custom_op *op) {
  const char *open = strchr(op->schema, '(');
  return open ? open : op->schema;
}

static bool is_name(const char *name) {
  const char *colons = strstr(name, "::"), *dot = strchr(name, '.');
  const char *separator = colons ? colons : dot;
  const char *rest = separator ? separator + (colons ? 2 : 1) : NULL;
  return rest && separator > name && *rest && *rest != '.' && !strchr(rest, ':') && !strpbrk(name, " \t\n\"'()");
}

static ait_status add_locked(const ait_custom_op *op, const ait_custom_signature *signature) {
  size_t n = atomic_load(&entry_count);
  if (ait_custom_find(op->name)) return ait_error(AIT_CODE_INVALID_ARGUMENT, "custom operator '%s' is registered already", op->name);
  if (n == OPERATOR_LIMIT) return ait_error(AIT_CODE_LIMIT, "more than %d custom operators", OPERATOR_LIMIT);
  entries[n] = (ait_custom_entry){op, n, *signature};
  atomic_store(&entry_count, n + 1);
  return AIT_OK;
}

ait_status ait_custom_register(const ait_custom_op *op) {
  if (!op || op->struct_size < sizeof *op)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "a custom operator without a struct_size, or of another version of the header");
  if (!op->name || !is_name(op->name))
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' is no name of a custom operator", op->name ? op->name : ""),
                          "like \"mylib::foo\"");
  if (!op->schema || !op->infer || !op->run)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "custom operator '%s' lacks its schema, infer or run", op->name);
  ait_custom_signature signature;
  AIT_TRY(ait_error_context(ait_custom_read_signature(ait_custom_schema(op), &signature), "custom operator '%s'", op->name));
  pthread_mutex_lock(&adding);
  ait_status status = add_locked(op, &signature);
  pthread_mutex_unlock(&adding);
  return status;
}

ait_status ait_custom_missing(const char *node, const char *name) {
  ait_status status = node ? ait_error(AIT_CODE_UNSUPPORTED, "node '%s': custom operator '%s' is not registered", node, name)
                           : ait_error(AIT_CODE_UNSUPPORTED, "custom operator '%s' is not registered", name);
  return ait_error_hint(status, "register it before the model is opened: ait_custom_op_add, or ait_plugin_load (ait … --plugin FILE.so)");
}
