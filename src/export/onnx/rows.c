/* The table of operators: rows.inc. */
#include "export/onnx/rows.h"

static const ox_row rows[] = {
#define AIT_ONNX(op, function, with) {op, ox_row_##function, with},
#include "export/onnx/rows.inc"
#undef AIT_ONNX
};

const ox_row *ox_row_find(const char *op) {
  for (size_t i = 0; i < AIT_COUNT(rows); ++i)
    if (!strcmp(rows[i].op, op)) return &rows[i];
  return NULL;
}
