#define AIT_ISA avx2
#define VL 8
#include "kernels/isa.h"
#include "kernels/template/rows.inc"
#include "kernels/template/depthwise_f32.inc"
#include "kernels/template/pool_f32.inc"
#include "kernels/template/slots_f32.inc"
