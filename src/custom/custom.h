/* Front door of the custom room: operators that the application registered (include/ait/custom_op.h). */
#ifndef AIT_SRC_CUSTOM_H
#define AIT_SRC_CUSTOM_H

#include "base/base.h"
#include <ait/custom_op.h>

enum { AIT_CUSTOM_PARAM_LIMIT = 64, AIT_CUSTOM_RESULT_LIMIT = 16 };

/* What running one needs to know of its schema. ir's parser reads the rest. */
typedef struct ait_custom_signature {
  uint32_t param_count, result_count, written_count;
  bool written[AIT_CUSTOM_PARAM_LIMIT]; /* by parameter: "(a!)" */
  ait_type results[AIT_CUSTOM_RESULT_LIMIT];
} ait_custom_signature;

typedef struct ait_custom_entry {
  const ait_custom_op *op;
  size_t index;
  ait_custom_signature signature;
} ait_custom_entry;

/* Any spelling of the name; NULL when it is not registered. Thread-safe; entries never move. */
const ait_custom_entry *ait_custom_find(const char *name);
/* ait_custom_op_add without the look at ait's own names. */
ait_status ait_custom_register(const ait_custom_op *op) AIT_MUST_USE;
/* "(Tensor x, …) -> Tensor" from its parenthesis on: a name before it is skipped. */
const char *ait_custom_schema(const ait_custom_op *op);
/* invalid-argument, saying what is wrong with the schema. signature.c */
ait_status ait_custom_read_signature(const char *schema, ait_custom_signature *out) AIT_MUST_USE;
/* The error for an operator that nobody knows: unsupported, with what to do about it. `node` may be NULL. */
ait_status ait_custom_missing(const char *node, const char *name) AIT_MUST_USE;

#endif
