/* Schemas of custom operators, parsed once for each registered one and kept for the rest of the process. */
#include "custom/custom.h"
#include "ir/schema.h"

#include <pthread.h>
#include <stdlib.h>

enum { SLOT_LIMIT = 256, ARG_CAPACITY = 256 };

static const ait_op *slots[SLOT_LIMIT]; /* by index of the registry */
static pthread_mutex_t parsing = PTHREAD_MUTEX_INITIALIZER;

/* All memory of one schema in one piece. */
typedef struct parsed {
  ait_op op;
  ait_param params[AIT_CUSTOM_PARAM_LIMIT];
  ait_arg args[ARG_CAPACITY];
  char text[];
} parsed;

static ait_status parse(const ait_custom_entry *e, const ait_op **out) {
  const char *schema = ait_custom_schema(e->op);
  size_t capacity = strlen(schema) + AIT_CUSTOM_PARAM_LIMIT + 1;
  parsed *p = calloc(1, sizeof *p + capacity);
  if (!p) return AIT_OOM();
  ait_schema_pool pool = {.params = p->params,
                          .args = p->args,
                          .text = p->text,
                          .param_capacity = AIT_CUSTOM_PARAM_LIMIT,
                          .arg_capacity = ARG_CAPACITY,
                          .text_capacity = capacity};
  p->op = (ait_op){.name = e->op->name, .schema = e->op->schema, .dialects = AIT_DIALECT_BOTH, .traits = AIT_OP_EFFECT};
  if (e->signature.written_count) p->op.traits |= AIT_OP_MUTATES;
  const char *error = ait_schema_parse(schema, &pool, &p->op);
  if (!error && p->op.param_count != e->signature.param_count) error = "parameters that cannot be counted";
  if (error) {
    free(p);
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "custom operator '%s': its schema %s is wrong: %s", e->op->name, e->op->schema, error);
  }
  *out = &p->op;
  return AIT_OK;
}

ait_status ait_op_custom(const char *name, const ait_op **out) {
  const ait_custom_entry *e = ait_custom_find(name);
  ait_status status = AIT_OK;
  *out = NULL;
  if (!e) return AIT_OK;
  pthread_mutex_lock(&parsing);
  if (!slots[e->index]) status = parse(e, &slots[e->index]);
  *out = slots[e->index];
  pthread_mutex_unlock(&parsing);
  return status;
}
