/* Parser of operator schemas in ATen's notation. Internal to the ir room. */
#ifndef AIT_SRC_IR_SCHEMA_H
#define AIT_SRC_IR_SCHEMA_H

#include "ir/ir.h"

/* Fixed memory that parsed schemas live in; whatever does not fit is an error. */
typedef struct ait_schema_pool {
  ait_param *params;
  ait_arg *args; /* elements of default lists */
  char *text;    /* parameter names and default strings */
  size_t param_capacity, arg_capacity, text_capacity;
  size_t param_count, arg_count, text_count;
} ait_schema_pool;

/* Fills params, results and variadic of *op. NULL on success, else what is wrong (static text); *op is undefined then. */
const char *ait_schema_parse(const char *schema, ait_schema_pool *pool, ait_op *op);

#endif
