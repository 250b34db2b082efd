/* The emitters that rows.inc names. */
#ifndef AIT_SRC_EXPORT_ONNX_ROWS_H
#define AIT_SRC_EXPORT_ONNX_ROWS_H

#include "export/onnx/emit.h"

/* Several rows may share one; declaring it again is harmless. */
#define AIT_ONNX(op, function, with) void oe_row_##function(ox *x);
#include "export/onnx/rows.inc"
#undef AIT_ONNX

#endif
