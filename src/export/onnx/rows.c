/* The table of operators: rows.inc. */
#include "export/onnx/rows.h"

static const oe_row rows[] = {
#define AIT_ONNX(op, function, with) {op, oe_row_##function, with},
#include "export/onnx/rows.inc"
#undef AIT_ONNX
};

const oe_row *oe_row_find(const char *op) {
  for (size_t i = 0; i < AIT_COUNT(rows); ++i)
    if (!strcmp(rows[i].op, op)) return &rows[i];
  return NULL;
}
