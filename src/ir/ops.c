/* The operator table: ops.inc with its schemas parsed, made once per process in static memory and never freed. */
#include "ir/schema.h"

#include <pthread.h>

enum { PARAM_CAPACITY = 4096, ARG_CAPACITY = 512, TEXT_CAPACITY = 64 << 10, SLOT_COUNT = 4096, NAME_LIMIT = 256 };

static ait_op ops[] = {
#define AIT_OP(name_, schema_, dialects_, traits_, reference_) \
  {.name = (name_), .schema = (schema_), .dialects = (dialects_), .traits = (traits_)},
#include "ir/ops.inc"
#undef AIT_OP
};
_Static_assert(AIT_COUNT(ops) < SLOT_COUNT / 2, "the hash table is too small");

static ait_param params[PARAM_CAPACITY];
static ait_arg args[ARG_CAPACITY];
static char text[TEXT_CAPACITY];
static uint16_t slots[SLOT_COUNT]; /* index + 1; 0: free */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_table(void) {
  ait_schema_pool pool = {.params = params,
                          .args = args,
                          .text = text,
                          .param_capacity = PARAM_CAPACITY,
                          .arg_capacity = ARG_CAPACITY,
                          .text_capacity = TEXT_CAPACITY};
  for (size_t i = 0; i < AIT_COUNT(ops); ++i) {
    ops[i].id = (uint32_t)i;
    /* Every row parses (ops_test proves it); a row that did not would take any arguments. */
    if (ait_schema_parse(ops[i].schema, &pool, &ops[i])) ops[i].variadic = true;
    size_t slot = ait_hash(ops[i].name, strlen(ops[i].name), 0) % SLOT_COUNT;
    while (slots[slot]) slot = (slot + 1) % SLOT_COUNT;
    slots[slot] = (uint16_t)(i + 1);
  }
}

size_t ait_op_count(void) { return AIT_COUNT(ops); }

const ait_op *ait_op_at(size_t id) {
  pthread_once(&once, make_table);
  return id < AIT_COUNT(ops) ? &ops[id] : NULL;
}

const ait_op *ait_op_find(const char *name) {
  pthread_once(&once, make_table);
  size_t slot = ait_hash(name, strlen(name), 0) % SLOT_COUNT;
  for (; slots[slot]; slot = (slot + 1) % SLOT_COUNT) {
    const ait_op *op = &ops[slots[slot] - 1];
    if (strcmp(op->name, name) == 0) return op;
  }
  return NULL;
}

/* "aten.add_.Tensor" -> "aten.add.Tensor", "aten.__iand__.Tensor" -> "aten.__and__.Tensor". false: not an in-place name. */
static bool functional_name(const char *name, char *out, size_t out_size) {
  const char *base = strchr(name, '.');
  size_t length = strlen(name);
  if (!base || length >= out_size) return false;
  ++base;
  size_t base_length = strcspn(base, ".");
  size_t drop_at;
  if (base_length > 5 && strncmp(base, "__i", 3) == 0) {
    drop_at = 2;
  } else if (base_length > 1 && base[base_length - 1] == '_' && base[base_length - 2] != '_') {
    drop_at = base_length - 1;
  } else {
    return false;
  }
  size_t prefix = (size_t)(base - name) + drop_at;
  memcpy(out, name, prefix);
  memcpy(out + prefix, name + prefix + 1, length - prefix);
  return true;
}

const ait_op *ait_op_find_inplace(const char *name, bool *out_inplace) {
  *out_inplace = false;
  const ait_op *op = ait_op_find(name);
  char functional[NAME_LIMIT];
  if (op || !functional_name(name, functional, sizeof functional)) return op;
  op = ait_op_find(functional);
  *out_inplace = op != NULL;
  return op;
}

int32_t ait_op_param(const ait_op *op, const char *name) {
  for (uint32_t i = 0; i < op->param_count; ++i) {
    if (strcmp(op->params[i].name, name) == 0) return (int32_t)i;
  }
  return -1;
}
